"""Lemmas 3.2 and 3.3 of ghashami2016: their counterexamples by hand, and a sketch that forgets."""

import jax
import numpy as np

from proofs_check.claim import Setting
from proofs_check.engine import samples
from proofs_check.papers.ghashami2016 import section3_1_3
from proofs_check.papers.ghashami2016.setup import Inputs


def compare(part, setting):
    """Return the pairs that an inequality compares at a setting."""
    sides = part.statement.sides
    return samples.evaluate(sides, setting, lambda: jax.random.key(0))


def test_lemma_3_2_is_off_by_two_for_algorithm_1_and_attained_when_corrected(
    claims, compared
):
    """12 batches of 4 orthonormal rows, each twice: |A|_F^2 = 96, each of 4 squared singular values is 24."""
    printed = compared("ghashami2016:lem3.2", "printed", 0)
    control = claims["ghashami2016:lem3.2"].controls[0]
    for_algorithm_1 = compare(control, control.settings[0])
    np.testing.assert_allclose(
        [left for left, _ in for_algorithm_1], 24 / 96, rtol=1e-12
    )
    np.testing.assert_allclose(
        printed[:, 1], [max(4 - k, 0) / 4 / (8 - k) for k in range(8)], atol=1e-12
    )
    np.testing.assert_allclose(
        [right.value for _, right in for_algorithm_1], printed[:, 1]
    )
    assert np.all(printed[:4, 0] <= printed[:4, 1])
    corrected = compared("ghashami2016:lem3.2", "corrected", 0)
    np.testing.assert_allclose(corrected, np.full((4, 2), 1 / 4), rtol=1e-12)


def test_a_setting_of_a_user_may_be_added():
    setting = Setting("mine", {"rows": np.eye(8)[:5]}, shapes={"l": 4})
    check = section3_1_3.lem3_2(Inputs())
    ((left, right), *_) = compare(check.corrected, setting)
    assert 0 <= left <= right.value
