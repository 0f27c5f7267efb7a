"""Figures 1 and 2 of chen2016: their parts against NumPy, and the printed baselines on real data."""

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from proofs_check.engine.reading import DataError
from proofs_check.papers.chen2016 import figure1 as one
from proofs_check.papers.chen2016 import figure2 as two

USPS = Path(__file__).resolve().parents[4] / "shared" / "data" / "usps.npz"


def test_the_first_rows_of_each_label():
    labels = np.array([2, 1, 2, 2, 1, 1])
    assert one.first_rows(labels, 2).tolist() == [1, 4, 0, 2]
    with pytest.raises(ValueError, match="needs 4 rows"):
        one.first_rows(labels, 4)


@pytest.mark.parametrize("centred", [False, True])
def test_residuals_are_those_of_numpy(centred, x64, rng):
    X = rng.standard_normal((20, 3))
    n, components, t, lengthscale = 20, 4, 6, 1.5
    H = np.eye(n) - (1 / n if centred else 0)
    squared = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    K = np.exp(-squared / (2 * lengthscale**2))
    exact = np.linalg.eigvalsh(H @ K @ H)[: n - components].sum()
    assert one.exact_residual(
        jnp.asarray(X), lengthscale, components=components, centred=centred
    ) == pytest.approx(exact)

    computed = one.residuals(
        jnp.asarray(X),
        lengthscale,
        t,
        components=components,
        centred=centred,
        draws=2,
        seed=3,
    )
    assert computed[:1] == one.residuals(
        jnp.asarray(X),
        lengthscale,
        t,
        components=components,
        centred=centred,
        draws=1,
        seed=3,
    )
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(3), t), 1500)
    from jaxkern import features, kernels

    for number, value in enumerate(computed):
        phi = features.paired_fourier(
            jax.random.fold_in(key, number),
            kernels.Gaussian(lengthscale),
            3,
            num_frequencies=t,
            dtype=np.float64,
        )
        phases = X @ np.asarray(phi.frequencies).T / lengthscale
        Z = H @ np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / math.sqrt(t)
        assert value == pytest.approx(
            np.sum(np.linalg.svd(Z, compute_uv=False)[components:] ** 2)
        )


def test_scores_and_what_the_printed_numbers_may_be():
    rows = [
        {
            "reading": reading,
            "lengthscale": 4.0,
            "frequencies": t,
            "mean": printed + shift,
            "sd": 2**0.5,
        }
        for reading, scale in (("uncentred", 1), ("centred", 2))
        for t, printed, shift in zip(
            one.FREQUENCIES,
            one.PRINTED[4.0],
            np.array([1, -1, 1, 0, 2]) * scale,
            strict=True,
        )
    ]
    comparison = one.compare(rows)
    scores = [row["score"] * math.sqrt(2) for row in comparison]
    np.testing.assert_allclose(scores[:5], [-1, 1, -1, 0, -2], atol=1e-9)
    chances = one.probabilities(comparison, draws=2)
    totals = [3.5 / 1.5, 3.5 / 0.6, 14 / 1.5, 14 / 0.6]
    assert [row["averaged"] for row in chances] == [1, 10, 1, 10]
    for row, total in zip(chances, totals, strict=True):
        assert row["p"] == pytest.approx(stats.chi2.sf(total, 5))


@pytest.mark.parametrize(
    ("count", "message"), [(4, "got 4"), (0, "got 0"), ([1, 2], "a number of rows")]
)
def test_a_number_of_training_rows_that_does_not_fit_is_refused(
    count, message, tmp_path
):
    path = tmp_path / "usps.npz"
    np.savez(path, X=np.zeros((3, 2)), y=np.zeros(3, int), n_train=count)
    with pytest.raises(DataError, match=message):
        one.read(path)
    np.savez(path, X=np.zeros((3, 2)), y=np.arange(3), n_train=2)
    X, y = one.read(path)
    assert X.shape == (2, 2) and y.tolist() == [0, 1]


@pytest.mark.slow
@pytest.mark.skipif(
    not USPS.exists(), reason="needs usps.npz, which is not part of the project"
)
def test_the_printed_baselines_come_from_the_training_digits():
    X, y = one.read(USPS)
    points = jnp.asarray(X[one.first_rows(y, 200)], np.float32)
    for lengthscale, printed in one.BASELINES.items():
        assert abs(one.exact_residual(points, lengthscale) - printed) < 0.2
    assert abs(one.exact_residual(points, 16.0, centred=True) - one.BASELINES[16.0]) > 2
    for t in (50, 100):
        values = np.array(
            one.residuals(points, 4.0, t, components=40, centred=False, draws=8, seed=0)
        )
        assert abs(
            one.PRINTED[4.0][one.FREQUENCIES.index(t)] - values.mean()
        ) < 4 * values.std(ddof=1)


def test_relative_errors_by_differences_and_by_features_agree_where_no_digits_are_lost(
    x64,
):
    options = {"dim": 3, "frequencies": 20, "pairs": 50, "dtype": "float64"}
    errors = two.relative_errors(jax.random.key(5), **options)
    direct = two.relative_errors(jax.random.key(5), from_features=True, **options)
    r = two.distances(50)
    assert r[0] == pytest.approx(1e-4) and r[-1] == pytest.approx(1e4)
    np.testing.assert_allclose(errors[r > 1e-2], direct[r > 1e-2], atol=1e-8)
    assert np.max(np.abs(direct - errors)) < 1e-6
    options["dtype"] = "float32"
    lost = np.abs(
        two.relative_errors(jax.random.key(5), **options)
        - two.relative_errors(jax.random.key(5), from_features=True, **options)
    )
    assert lost[r < 1e-3].max() > 0.02 > lost[(r > 0.1) & (r < 100)].max()


def test_the_standard_deviation_is_that_of_many_draws():
    """2,000 draws with t = 200 at three distances: within 9 %, more than 5 standard errors."""
    rng = np.random.default_rng(0)
    for r in (0.01, 1.2, 6.0):
        w = rng.standard_normal((2000, 200))
        ratios = np.sqrt(
            np.mean(2 * np.sin(r * w / 2) ** 2, axis=1) / -np.expm1(-(r**2) / 2)
        )
        assert np.std(ratios) == pytest.approx(
            float(two.standard_deviation(r, 200)), rel=0.09
        )


def test_slopes_and_decades():
    def largest(values):
        rows = zip((10, 20, 40), values, strict=True)
        return [{"dim": 2, "frequencies": t, "values": v} for t, v in rows]

    exact = two.slope(largest([[5 / t**0.5] * 3 for t in (10, 20, 40)]), 2)
    assert exact["slope"] == pytest.approx(-0.5)
    assert exact["error"] == pytest.approx(0, abs=1e-7)
    values = np.random.default_rng(0).uniform(1, 2, (3, 4)) / [[10], [20], [40]]
    noisy = two.slope([*largest(values), {"dim": 3}], 2)
    sizes = np.repeat(np.log([10, 20, 40]), 4)
    logs = np.log(values.ravel())
    design = np.stack([sizes, np.ones(12)], axis=1)
    (slope, _), squares, *_ = np.linalg.lstsq(design, logs, rcond=None)
    error = np.sqrt(squares[0] / 10 * np.linalg.inv(design.T @ design)[0, 0])
    assert noisy["slope"] == pytest.approx(slope)
    assert noisy["error"] == pytest.approx(error)

    r = two.distances(16)
    # The errors of a decade are its number. The last distance is in no decade.
    errors = np.floor(np.log10(r) + 1e-12)
    errors[-1] = 1e9
    rows = two.by_decade({"frequencies": 100, "distances": r, "errors": errors})
    np.testing.assert_allclose([row["start"] for row in rows], 10.0 ** np.arange(-4, 4))
    np.testing.assert_allclose([row["rms"] for row in rows], abs(np.arange(-4, 4)))
    assert rows[0]["theory"] == pytest.approx(200**-0.5, rel=1e-5)
    assert rows[-1]["theory"] == pytest.approx(800**-0.5)
