"""Settings and constants of single claims of chen2016, against literal constructions."""

import dataclasses
import math

import jax
import numpy as np
import pytest

from proofs_check.claim import Setting
from proofs_check.engine import samples
from proofs_check.papers.chen2016 import section6, trials


def test_no_fewer_frequencies_do_for_a_union_over_all_points(claims):
    form = claims["chen2016:sec1.1-points"].corrected
    for setting in form.settings:
        fewer = dataclasses.replace(
            setting,
            numbers={
                **setting.numbers,
                "num_frequencies": setting.numbers["num_frequencies"] - 1,
            },
        )
        most = 1 - setting.numbers["delta"]
        assert (
            form.statement.bound(fewer).probability
            < most
            <= form.statement.bound(setting).probability
        )


def test_lemma_3_3_is_for_errors_below_one(claims):
    form = claims["chen2016:lem3.3"].corrected
    numbers = {"tau": 2.0, "distance": 0.1}
    bounds = [
        form.statement.bound(Setting("edge", numbers={**numbers, "num_frequencies": t}))
        for t in (24.0, 24.5)
    ]
    assert [bool(b.valid) for b in bounds] == [False, True] and bounds[0].value == 1


def test_one_line_of_points_succeeds_as_often_as_one_pair(claims, rng):
    """Theorem 3.1 in one dimension: eight points near zero, the same 30 frequencies for all pairs."""
    form = claims["chen2016:thm3.1"].corrected
    log_failure, _ = samples.evaluate(form.statement.probability, form.settings[-1])
    exact = 1 - math.exp(log_failure)
    count, x = 20_000, 1e-4 * rng.standard_normal(8)
    gaps = (x[:, None] - x)[np.triu_indices(8, 1)]
    w = rng.standard_normal((count, 30, 1))
    ratios = np.sqrt(
        np.mean(2 * np.sin(gaps * w / 2) ** 2, axis=1) / -np.expm1(-(gaps**2) / 2)
    )
    success = np.mean(np.max(np.abs(ratios - 1), axis=1) <= 0.1)
    assert exact > 0.5 and abs(success - exact) < 5 * math.sqrt(
        exact * (1 - exact) / count
    )


def test_settings_of_5_have_the_two_sided_hypothesis(claims):
    for setting in claims["chen2016:eq5"].corrected.settings:
        p, q = setting.numbers["p"], setting.numbers["q"]
        s = np.linspace(-1 / q, 1 / q, 1_001)
        assert np.all(-np.log1p(-2 * s) / 2 - s <= s**2 * p / 2 * (1 + 1e-12) + 1e-15)


def test_near_orthogonal_vectors_are_what_they_are_said_to_be():
    expected = {
        "simplex": (13, 12, 1 / 12, 12),
        "6 lines in 3 dimensions": (6, 3, 5**-0.5, 3),
    }
    expected |= {
        "28 lines in 7 dimensions": (28, 7, 1 / 3, 7),
        "two bases of 64 dimensions": (128, 64, 1 / 8, 43),
    }
    for name, (n, dim, coherence, least) in expected.items():
        V = section6.near_orthogonal(name)
        B = V @ V.T
        assert B.shape == (n, n) and np.linalg.matrix_rank(B) == dim
        np.testing.assert_allclose(np.diag(B), 1)
        assert np.max(np.abs(B - np.eye(n))) == pytest.approx(coherence)
        assert section6.least_rank(n, coherence) == least, name


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.float64
def test_the_residual_of_a_shrinking_line_is_the_product_of_recurrence_coefficients(
    components,
):
    """Against the smallest eigenvalues themselves, whose relative error is of the order of the scale squared."""
    key, t, scale = jax.random.key(3), 7, 0.05
    w = np.asarray(trials.frequencies(key, 1, t, np.float64))[:, 0]
    x = scale * np.linspace(-1, 1, components + 1)
    gaps = x[:, None] - x
    images = np.mean(np.cos(gaps[:, :, None] * w), axis=2)
    ratio = (
        np.linalg.eigvalsh(images)[0] / np.linalg.eigvalsh(np.exp(-(gaps**2) / 2))[0]
    )
    tail_ratio = jax.jit(trials.tail_ratio, static_argnames=("rows", "components"))
    computed = float(tail_ratio(key, {}, {}, rows=t, components=components))
    assert computed == pytest.approx(abs(ratio - 1), abs=0.02)
