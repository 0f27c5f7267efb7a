"""Kernel JL: its literal formula, its law given the landmarks, and what it keeps at planned sizes.

Given the landmarks the coordinates of phi(x) are independent draws of <v, K_x>, v from N(0, Sigma_n^3) / d, so squares
have exact chi-square laws, which are refuted with probability 1e-9 a number at most; a centred map has the centred
Sigma_n and K_x - mu_n. At planned sizes a draw fails with probability DELTA at most, and more than ALLOWED of DRAWS do
with probability 1e-9 at most. At 6 examples a test that is 2e-6 for the module.
"""

import math

import house
import jax
import numpy as np
import pytest
from hypothesis import example, given
from scipy import stats
from support.drawn import ALARM, PLAIN, Drawn, N, drawn, power, unlikely
from support.numerics import literal_gram

from jaxkern import plan
from jaxkern.bounds import sketching
from jaxkern.draws import normal_rows
from jaxkern.features import kernel_jl
from jaxkern.rkhs import section

EPS = 0.5
DELTA = 0.1
DRAWS = 100
ALLOWED = int(stats.binom.isf(ALARM, DRAWS, DELTA))
PAIRS = np.triu_indices(N, 1)
PLANNED = plan.kernel_jl(EPS, DELTA, num_functions=len(PAIRS[0])).num_features
APART = Drawn(
    seed=3,
    arrangement="clusters",
    lengthscale=0.5,
    parts=(1.0, 0.0, 0.0),
    uneven=0.0,
    missing=0,
)
"""Three clusters, whose features are close to the three leading eigenfunctions."""

both_centerings = pytest.mark.parametrize("centered", [False, True])


def fit(landmarks, **options):
    key = house.key(1)
    number = house.FEATURES
    return kernel_jl(key, house.KERNEL, landmarks, num_features=number, **options)


def normals():
    """Return the normals of the map, (features, landmarks)."""
    count = house.USUAL[0]
    return np.float64(normal_rows(house.key(1), house.FEATURES, count, house.dtype()))


@both_centerings
def test_the_map_is_the_literal_formula(centered):
    """Z C (k(x) - mean) / (n sqrt(n d)) with the Gram matrix C; embed(f) has the same matrix on the values of f."""
    data = house.data()
    phi = fit(data.X, centered=centered)
    count = len(data.X)
    Z = normals() / (count**3 * house.FEATURES) ** 0.5
    K = literal_gram(data.X, data.X, house.LENGTHSCALE)
    H = np.eye(count) - centered / count
    values = literal_gram(data.Y, data.X, house.LENGTHSCALE)
    deviations = values - centered * K.mean(axis=0)
    expected = deviations @ (Z @ H @ K @ H).T
    # Two sums of n kernel values of at most 1, over n.
    slack = {"rtol": 0, "atol": 20 * house.eps() * np.abs(normals()).max()}
    np.testing.assert_allclose(phi(data.Y), expected, **slack)
    embedded = phi.embed(section(house.KERNEL, data.Y))
    np.testing.assert_allclose(embedded - phi.offset[None], expected, **slack)
    assert np.abs(expected).max() > 100 * slack["atol"]


def test_nothing_is_left_of_equal_landmarks_if_they_are_centered():
    data = house.data()
    landmarks = np.broadcast_to(data.X[:1], data.X.shape)
    assert not np.asarray(fit(landmarks, centered=True)(data.Y)).any()


def test_nothing_is_decomposed():
    """The cost, d n^2 to draw and d n for every point, is a claim."""
    text = str(jax.make_jaxpr(fit)(house.data().X))
    for name in ("eigh", "cholesky", "svd", "triangular_solve"):
        assert name not in text


def draw(case, centered):
    """Return a map of d features, enough for DRAWS maps of planned size, with the rows (d, n) times sqrt(d)."""
    kernel, X, _, _ = case.given()
    count = DRAWS * PLANNED
    phi = kernel_jl(case.key(), kernel, X, num_features=count, centered=centered)
    rows = np.float64(phi.projection) * count**0.5
    return rows, np.float64(phi.offset) * count**0.5


def noise(exact):
    return 100 * exact.spread * house.eps() * exact.size**4


def coordinates(case, centered):
    """Return the images (d, 3) of a landmark and of two other points."""
    rows, offset = draw(case, centered)
    # The map is exactly P k(x) - offset (the literal formula above), so NumPy can evaluate it.
    values = case.exact().G[:N, [0, N, N + 1]]
    return rows @ values - offset[:, None]


def functions(exact, centered):
    """Return the three sections that they are images of, and the cube of the covariance of the landmarks."""
    sections = np.concatenate([exact.FX[:1], exact.FY[:2]])
    covariance = exact.covariance(centered, np.ones(N))
    return sections - centered * exact.FX.mean(axis=0), power(covariance, 3)


def refuted(case, values, centered):
    """Return what images say against their law."""
    exact = case.exact()
    return unlikely(values, *functions(exact, centered), noise(exact))


@both_centerings
@given(case=drawn())
@example(case=APART)
def test_coordinates_are_draws_with_the_cubed_covariance_of_the_landmarks(
    centered, case
):
    """E phi(x) = 0 and E <phi(x), phi(y)> = <K_x, Sigma_n^3 K_y>, with the law that belongs to it."""
    assert not refuted(case, coordinates(case, centered), centered)


def test_wrong_coordinates_are_caught():
    values = coordinates(PLAIN, centered=False)
    assert "f" in refuted(PLAIN, 1.3 * values, centered=False)
    assert "f" in refuted(PLAIN, values, centered=True)
    # Every second row is a copy: the law of one number does not see it.
    pairs = np.repeat(values[::2], 2, axis=0)
    neighbours = {"f, neighbours", "f + g, neighbours"}
    assert refuted(PLAIN, pairs, centered=False) >= neighbours
    sections, cube = functions(PLAIN.exact(), centered=False)
    normals = house.rng().normal(size=(len(values), len(cube)))
    # Draws for Sigma^2 in the place of Sigma^3.
    squared = normals @ power(cube, 1 / 3) @ sections.T
    assert refuted(PLAIN, squared, centered=False) >= {"f", "f + g"}


def failures(case, centered, *, size=PLANNED, factor=1.0):
    """Return how many maps fail: a relative error of a pair, the deviation of Theta* Theta, and a lost separation."""
    rows, _ = draw(case, centered)
    exact = case.exact()
    rounding = noise(exact)
    # Coordinates of the span of the landmarks alone: half as many, and norms take an eighth of the time.
    sections = np.linalg.qr(exact.FX.T, mode="r").T
    blocks = rows.reshape(DRAWS, PLANNED, N)[:, :size]
    operators = (blocks.reshape(-1, N) @ sections).reshape(DRAWS, size, N)
    operators *= factor / size**0.5
    deviations = sections - centered * sections.mean(axis=0)
    covariance = deviations.T @ deviations / N
    cube = power(covariance, 3)
    first, second = PAIRS
    pairs = sections[first] - sections[second]
    products = operators.reshape(-1, N) @ pairs.T
    images = (products**2).reshape(DRAWS, size, -1).sum(axis=1)
    norms = (pairs @ cube * pairs).sum(axis=1)
    # |Theta h|^2 of a difference of sections against <h, Sigma^3 h>.
    errors = np.abs(images - norms) > EPS * norms + rounding
    counts = {"pairs": errors.any(axis=1).sum()}
    top = np.linalg.eigvalsh(cube)[-1]
    sizes = {"op_norm3": top, "trace3": np.trace(cube), "d": size}
    bound = sketching.conditional_sketch(**sizes, tau=math.log(1 / DELTA))
    if bound.valid:
        squares = operators.transpose(0, 2, 1) @ operators
        largest = np.abs(np.linalg.eigvalsh(squares - cube)).max(axis=1)
        counts["deviation"] = (largest > bound.value + rounding).sum()
    # The places of the clusters alternate over the rows.
    across = (first % 3 == 0) != (second % 3 == 0)
    gap = (pairs[across] ** 2).sum(axis=1).min()
    level = separation(deviations, covariance, gap)
    if level > 0:
        nearest = images[:, across].min(axis=1)
        counts["separation"] = (nearest < (1 - EPS) * level - rounding).sum()
    return counts


def separation(deviations, covariance, gap):
    """Return lambda_k^3 (Delta - 4 epsilon kappa), below which no distance across two sets may fall.

    The sets are every third point, those of one place of the clusters, and the others, Delta = gap; k = 3, and epsilon
    is the most that a feature has outside of the leading eigenfunctions. Without room it is not positive.
    """
    values, vectors = np.linalg.eigh(covariance)
    leading = deviations @ vectors[:, -3:]
    outside = (deviations**2).sum(axis=1) - (leading**2).sum(axis=1)
    return values[-3] ** 3 * (gap - 4 * outside.max())


@both_centerings
@given(case=drawn())
@example(case=APART)
def test_maps_of_the_planned_size_keep_distances_operators_and_separations(
    centered, case
):
    assert max(failures(case, centered).values()) <= ALLOWED


def test_small_maps_and_wrong_factors_are_caught():
    counts = failures(APART, centered=False)
    assert set(counts) == {"pairs", "deviation", "separation"}
    # An eighth of the planned size.
    small = failures(APART, centered=False, size=PLANNED // 8)
    assert small["pairs"] > ALLOWED
    large = failures(APART, centered=False, factor=2.0)
    assert min(large["pairs"], large["deviation"]) > ALLOWED
    halved = failures(APART, centered=False, factor=0.5)
    assert halved["separation"] > ALLOWED
