"""Settings and constants of single claims of chen2016, against literal constructions."""

import dataclasses

import jax
import numpy as np
import pytest

from proofs_check.claim import Setting
from proofs_check.papers.chen2016 import section6, trials


def test_no_fewer_frequencies_do_for_a_union_over_all_points(claims):
    form = claims["chen2016:sec1.1-points"].corrected
    for setting in form.settings:
        numbers = dict(setting.numbers)
        numbers["num_frequencies"] -= 1
        fewer = dataclasses.replace(setting, numbers=numbers)
        success = 1 - numbers["delta"]
        assert form.statement.bound(fewer).probability < success
        assert form.statement.bound(setting).probability >= success


def test_lemma_3_3_is_for_errors_below_one(claims):
    form = claims["chen2016:lem3.3"].corrected
    numbers = {"tau": 2.0, "distance": 0.1}
    edge = Setting("edge", numbers=numbers | {"num_frequencies": 24.0})
    inside = Setting("inside", numbers=numbers | {"num_frequencies": 24.5})
    assert form.statement.bound(edge).value == 1
    assert not form.statement.bound(edge).valid
    assert form.statement.bound(inside).valid


def test_settings_of_5_have_the_two_sided_hypothesis(claims):
    for setting in claims["chen2016:eq5"].corrected.settings:
        p, q = setting.numbers["p"], setting.numbers["q"]
        s = np.linspace(-1 / q, 1 / q, 1_001)
        assert np.all(-np.log1p(-2 * s) / 2 - s <= s**2 * p / 2 * (1 + 1e-12) + 1e-15)


@pytest.mark.parametrize(
    ("name", "n", "dim", "coherence", "least"),
    [
        ("simplex", 13, 12, 1 / 12, 12),
        ("6 lines in 3 dimensions", 6, 3, 5**-0.5, 3),
        ("28 lines in 7 dimensions", 28, 7, 1 / 3, 7),
        ("two bases of 64 dimensions", 128, 64, 1 / 8, 43),
    ],
)
def test_near_orthogonal_vectors_are_what_they_are_said_to_be(
    name, n, dim, coherence, least
):
    V = section6.near_orthogonal(name)
    B = V @ V.T
    assert B.shape == (n, n) and np.linalg.matrix_rank(B) == dim
    np.testing.assert_allclose(np.diag(B), 1)
    assert np.max(np.abs(B - np.eye(n))) == pytest.approx(coherence)
    assert section6.least_rank(n, coherence) == least


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.float64
def test_the_residual_of_a_shrinking_line_is_the_product_of_recurrence_coefficients(
    components,
):
    """Against the smallest eigenvalues themselves, whose relative error is of the order of the scale squared."""
    key = jax.random.key(3)
    w = np.asarray(trials.frequencies(key, 1, 7, np.float64))[:, 0]
    x = 0.05 * np.linspace(-1, 1, components + 1)
    gaps = x[:, None] - x
    images = np.mean(np.cos(gaps[:, :, None] * w), axis=2)
    least = np.linalg.eigvalsh([images, np.exp(-(gaps**2) / 2)])[:, 0]
    tail_ratio = jax.jit(trials.tail_ratio, static_argnames=("rows", "components"))
    residual = float(tail_ratio(key, {}, {}, rows=7, components=components))
    assert residual == pytest.approx(abs(least[0] / least[1] - 1), abs=0.02)
