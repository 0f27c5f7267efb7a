"""The counterexamples to Lemma 3.5 of ghashami2016."""

import math

import pytest


def test_the_counterexamples_to_lemma_3_5(compared):
    name = "ghashami2016:lem3.5"
    ((left, right),) = compared(name, "printed", 0)
    assert left == pytest.approx(math.hypot(1, 0.81 - 0.91)) and right == pytest.approx(0.81 + 0.1)
    for number, k in ((1, 1), (2, 3)):
        ((left, right),) = compared(name, "printed", number)
        assert left == pytest.approx(math.sqrt(5 * k)) and right == pytest.approx(math.sqrt(k))
        assert compared(name, "corrected", number)[0, 1] == pytest.approx(2 * math.sqrt(2 * k))
