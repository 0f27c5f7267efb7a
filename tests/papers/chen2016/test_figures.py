"""Figures 1 and 2 of chen2016: their parts against NumPy, and the printed baselines on real data."""

import math
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from support.numerics import literal_gram

from jaxkern import features, kernels
from proofs_check.engine.reading import DataError
from proofs_check.papers.chen2016 import figure1 as one
from proofs_check.papers.chen2016 import figure2 as two

USPS = Path(__file__).resolve().parents[4] / "shared" / "data" / "usps.npz"


def test_the_first_rows_of_each_label():
    labels = np.array([2, 1, 2, 2, 1, 1])
    assert one.first_rows(labels, 2).tolist() == [1, 4, 0, 2]
    with pytest.raises(ValueError, match="needs 4 rows"):
        one.first_rows(labels, 4)


def residual(Z, components, centred):
    """Return the sum of the squared singular values of Z, centred or not, after the first components."""
    lengths = np.linalg.svd(Z - centred * Z.mean(axis=0), compute_uv=False)
    return np.sum(lengths[components:] ** 2)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.float64
def test_residuals_are_those_of_numpy(centred, rng):
    X = rng.standard_normal((20, 3))
    options = {"components": 4, "centred": centred}
    root = np.linalg.cholesky(literal_gram(X, X, 1.5))
    exact = one.exact_residual(jnp.asarray(X), 1.5, **options)
    assert exact == pytest.approx(residual(root, **options))
    draws = partial(one.residuals, jnp.asarray(X), 1.5, 6, seed=3, **options)
    values = draws(draws=2)
    assert values[:1] == draws(draws=1)
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(3), 6), 1500)
    for number, value in enumerate(values):
        phi = features.paired_fourier(
            jax.random.fold_in(key, number),
            kernels.Gaussian(1.5),
            3,
            num_frequencies=6,
            dtype=np.float64,
        )
        phases = X @ np.asarray(phi.frequencies).T / 1.5
        Z = np.hstack([np.cos(phases), np.sin(phases)]) / math.sqrt(6)
        assert value == pytest.approx(residual(Z, **options))


def test_scores_and_what_the_printed_numbers_may_be():
    """Means off print by `shifts`, and twice as far in the other reading, with a standard deviation of sqrt(2)."""
    shifts = np.array([1, -1, 1, 0, 2])
    rows = []
    for reading, scale in (("uncentred", 1), ("centred", 2)):
        means = np.array(one.PRINTED[4.0]) + scale * shifts
        for t, mean in zip(one.FREQUENCIES, means, strict=True):
            row = {"reading": reading, "lengthscale": 4.0, "frequencies": t}
            rows.append(row | {"mean": mean, "sd": 2**0.5})
    comparison = one.compare(rows)
    scores = [row["score"] for row in comparison[:5]]
    np.testing.assert_allclose(scores, -shifts / 2**0.5, atol=1e-9)
    chances = one.probabilities(comparison, draws=2)
    assert [row["averaged"] for row in chances] == [1, 10, 1, 10]
    tails = stats.chi2.sf([3.5 / 1.5, 3.5 / 0.6, 14 / 1.5, 14 / 0.6], 5)
    np.testing.assert_allclose([row["p"] for row in chances], tails)


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
    options = {"components": 40, "centred": False, "draws": 8, "seed": 0}
    for t in (50, 100):
        values = np.array(one.residuals(points, 4.0, t, **options))
        printed = one.PRINTED[4.0][one.FREQUENCIES.index(t)]
        assert abs(printed - values.mean()) < 4 * values.std(ddof=1)


@pytest.mark.float64
def test_relative_errors_by_differences_and_by_features_agree_if_no_digits_are_lost():
    def differences(dtype):
        options = {"dim": 3, "frequencies": 20, "pairs": 50, "dtype": dtype}
        key = jax.random.key(5)
        errors = two.relative_errors(key, **options)
        return np.abs(errors - two.relative_errors(key, from_features=True, **options))

    r = two.distances(50)
    assert r[0] == pytest.approx(1e-4) and r[-1] == pytest.approx(1e4)
    apart = differences("float64")
    assert apart[r > 1e-2].max() < 1e-8 and apart.max() < 1e-6
    lost = differences("float32")
    assert lost[r < 1e-3].max() > 0.02 > lost[(r > 0.1) & (r < 100)].max()


def test_the_standard_deviation_is_that_of_many_draws():
    """2,000 draws with t = 200 at three distances: within 9 %, more than 5 standard errors."""
    rng = np.random.default_rng(0)
    for r in (0.01, 1.2, 6.0):
        w = rng.standard_normal((2000, 200))
        squares = np.mean(2 * np.sin(r * w / 2) ** 2, axis=1)
        ratios = np.sqrt(squares / -np.expm1(-(r**2) / 2))
        exact = float(two.standard_deviation(r, 200))
        assert np.std(ratios) == pytest.approx(exact, rel=0.09)


def test_slopes_are_those_of_least_squares_with_their_standard_errors(rng):
    sizes = np.repeat([10, 20, 40], 4)
    errors = rng.uniform(1, 2, 12) / sizes
    rows = [
        {"dim": 2, "frequencies": t, "values": errors[sizes == t]} for t in (10, 20, 40)
    ]
    line = stats.linregress(np.log(sizes), np.log(errors))
    slope = two.slope([*rows, {"dim": 3}], 2)
    assert slope["slope"] == pytest.approx(line.slope)
    assert slope["error"] == pytest.approx(line.stderr)


def test_errors_of_a_decade_are_its_root_mean_square():
    r = two.distances(16)
    # The errors of a decade are its number. The last distance is in no decade.
    errors = np.floor(np.log10(r) + 1e-12)
    errors[-1] = 1e9
    rows = two.by_decade({"frequencies": 100, "distances": r, "errors": errors})
    np.testing.assert_allclose([row["start"] for row in rows], 10.0 ** np.arange(-4, 4))
    np.testing.assert_allclose([row["rms"] for row in rows], abs(np.arange(-4, 4)))
    assert rows[0]["theory"] == pytest.approx(200**-0.5, rel=1e-5)
    assert rows[-1]["theory"] == pytest.approx(800**-0.5)
