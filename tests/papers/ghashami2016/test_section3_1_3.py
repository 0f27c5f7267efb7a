"""Lemmas 3.2 and 3.3 of ghashami2016: their counterexamples by hand, and a sketch that forgets."""

import jax
import numpy as np
import pytest

from proofs_check.engine import samples


def test_lemma_3_2_is_off_by_two_for_algorithm_1_and_attained_when_corrected(
    claims, compared
):
    """12 batches of 4 orthonormal rows, each twice: |A|_F^2 = 96, each of 4 squared singular values is 24."""
    claim = claims["ghashami2016:lem3.2"]
    printed = compared("ghashami2016:lem3.2", "printed", 0)
    bounds = [max(4 - k, 0) / 4 / (8 - k) for k in range(8)]
    np.testing.assert_allclose(printed[:, 1], bounds, atol=1e-12)
    assert np.all(printed[:4, 0] <= printed[:4, 1])
    control = claim.controls[0]
    sides = control.statement.sides
    pairs = samples.evaluate(sides, control.settings[0], lambda: jax.random.key(0))
    for (left, right), bound in zip(pairs, bounds, strict=True):
        assert left == pytest.approx(24 / 96, rel=1e-12)
        assert right.value == pytest.approx(bound)
    corrected = compared("ghashami2016:lem3.2", "corrected", 0)
    np.testing.assert_allclose(corrected, np.full((4, 2), 1 / 4), rtol=1e-12)
