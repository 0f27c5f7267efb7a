"""The goals "distance" and "spectral" of a certificate, against dense float64 NumPy."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from jaxkern import features
from jaxkern.kernels import Exponential, FromFunction, Gaussian, Laplacian, Linear
from proofs_check.certify import _distance, _leading, _spectral, _tiles
from proofs_check.certify._distance import Distance
from proofs_check.certify._rows import distinct, embed
from proofs_check.certify._spectral import Spectral

EPS = 0.1
DIM = 3


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Make a few hundred points fill several tiles, blocks and chunks."""
    monkeypatch.setattr(_distance, "_SIDE", 64)
    monkeypatch.setattr(_distance, "_ROUND_SIDE", 16)
    monkeypatch.setattr(_distance, "_CHUNKS", (16, 32))
    monkeypatch.setattr(_spectral, "_ROWS", 64)
    monkeypatch.setattr(_spectral, "_EXACT", 0)
    monkeypatch.setattr(_spectral, "_FACTORED", 0)


def _points(rng, dtype, size=150, gap=1e-7):
    """Return points of which some are equal and some nearly so, and far ones."""
    X = rng.standard_normal((size, DIM))
    X[20:40] = X[:20] + gap * rng.standard_normal((20, DIM))
    X[40:44] = X[0]
    X[45] = X[44]
    X[50:60] = X[60:70] + 1e-3 * rng.standard_normal((10, DIM))
    X[70] *= 100
    X[71] = X[70] + 1e-2
    return rng.permutation(X).astype(dtype)


def _draw(name, kernel, X, size=40):
    key = jax.random.key(7)
    if name == "nystrom":
        return features.nystrom(kernel, jnp.asarray(X[:size]))
    return getattr(features, name)(
        key, kernel, X.shape[1], num_frequencies=size, dtype=X.dtype
    )


def _prepared(goal, X):
    return goal.prepare(jax.random.key(0), X)


def _dense(X, phi, lengthscale):
    """Return all distances of the Gaussian kernel and all relative errors, pair by pair, from differences."""
    i, j = np.triu_indices(len(X), 1)
    apart = (X.astype(float)[i] - X.astype(float)[j]) / lengthscale
    D = np.sqrt(-2 * np.expm1(-np.sum(apart * apart, axis=1) / 2))
    Z = _features(phi, X)
    image = np.sqrt(np.sum((Z[i] - Z[j]) ** 2, axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return D, np.abs(image / D - 1)


def _features(phi, X):
    """Return float64 copies of the features that the goal sees: mapped by its program, padded to a side of 64 or 48."""
    different = X[distinct(X)[0]]
    side = 16 * -(-len(different) // (-(-len(different) // 64) * 16))
    filled = np.pad(
        different, ((0, -len(different) % side), (0, 0)), mode="edge"
    ).reshape(-1, side, X.shape[1])
    Z = np.concatenate(
        [np.asarray(embed(phi, jnp.asarray(block)), float) for block in filled]
    )
    found = {row.tobytes(): k for k, row in enumerate(different)}
    return Z[[found[row.tobytes()] for row in np.ascontiguousarray(X)]]


def _twice_where(coordinate, Y):
    return jnp.where(Y[:, :1] == coordinate, 2 * Y, Y)


SLOW = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in ("shifted_fourier", "fastfood")
]


@pytest.mark.parametrize(
    "name", ["paired_fourier", "nystrom", "orthogonal_fourier", *SLOW]
)
def test_distance_is_the_largest_error_of_all_pairs(name, dtype, rng):
    X = _points(rng, dtype)
    kernel = Gaussian(1.5)
    goal = Distance(kernel, EPS)
    phi = _draw(name, kernel, X)
    pairs = _prepared(goal, X)
    D, errors = _dense(X, phi, 1.5)
    assert goal.error(jax.random.key(1), phi, pairs) == pytest.approx(
        errors[D > 0].max(), rel=0.01, abs=0.01 * EPS
    )
    np.testing.assert_allclose(
        np.asarray(embed(phi, jnp.asarray(X)))[:, : phi.num_features],
        phi(jnp.asarray(X)),
        atol=100 * np.finfo(dtype).eps ** (0.5 if name == "nystrom" else 1),
    )


@pytest.mark.parametrize("size", [2, 64, 65])
def test_every_pair_counts_whatever_the_number_of_points(size, rng):
    X = rng.standard_normal((size, DIM)).astype(np.float32)
    linear = Distance(Linear(), EPS)
    pairs = _prepared(linear, X)
    # One bad pair is found wherever it is: all features but one point's are exact.
    for bad in (0, size // 2, size - 1):
        others = np.delete(X, bad, axis=0)
        off = np.linalg.norm(2 * X[bad] - others, axis=1) / np.linalg.norm(
            X[bad] - others, axis=1
        )
        phi = jax.tree_util.Partial(_twice_where, jnp.asarray(X[bad, 0]))
        found = linear.detail(phi, pairs)["pairs"]
        assert (found["pairs"], found["largest"]) == (
            math.comb(size, 2),
            linear.error(None, phi, pairs),
        )
        assert found["largest"] == pytest.approx(np.abs(off - 1).max(), rel=1e-4)


@pytest.mark.parametrize("offset", [0, 1000])
def test_an_exact_map_has_no_error_however_close_the_points(offset, dtype, rng):
    X = (_points(rng, float) + offset).astype(dtype)
    goal = Distance(Linear(), EPS)
    pairs = _prepared(goal, X)
    assert sum(len(tile.near) for tile in pairs.tiles) > 0
    assert goal.error(None, lambda Y: Y, pairs) < 0.01 * EPS
    assert goal.error(None, lambda Y: 2 * Y, pairs) == pytest.approx(1, abs=0.01 * EPS)
    assert goal.error(None, lambda Y: 0 * Y, pairs) == 1


@pytest.mark.parametrize(
    "choice", [None, "none", (64, True), (128, False), (256, True)]
)
def test_few_directions_find_the_error_that_all_features_have(choice, rng, monkeypatch):
    """Of many tiles, most pairs are only bounded where few directions do, and that is not seen; so with bfloat16."""
    X = _points(rng, np.float32, gap=1e-4)
    goal = Distance(Gaussian(1.5), EPS)
    pairs = _prepared(goal, X)
    if choice == "none":
        monkeypatch.setattr(_leading, "_WORTH", 0.0)
    elif choice:
        pairs._choices[256] = _leading.Choice(*choice)
    products = []
    monkeypatch.setattr(
        _leading,
        "all_ratios",
        lambda *args: products.append(1) or _tiles.all_ratios(*args),
    )
    monkeypatch.setattr(_leading, "_STEP", 16)
    monkeypatch.setattr(_leading, "_DEAR", 1)
    monkeypatch.setattr(_distance, "_FEW_TILES", 0)
    for seed in range(3):
        phi = features.paired_fourier(
            jax.random.key(seed), goal.kernel, DIM, num_frequencies=120
        )
        D, errors = _dense(X, phi, 1.5)
        assert goal.error(None, phi, pairs) == pytest.approx(
            errors[D > 0].max(), rel=0.01, abs=0.01 * EPS
        )
    assert (pairs._choices[256].rank > 0) != (choice == "none")
    all_tiles = 3 * sum(not tile.wide for tile in pairs.tiles)
    assert (
        3 <= len(products) < all_tiles
        if pairs._choices[256].rank
        else len(products) == all_tiles
    )
    assert not goal.error(None, lambda Y: phi(Y).at[3, 0].set(jnp.nan), pairs) <= EPS


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("rank", [0, 8, 32, None])
def test_no_pair_that_is_worse_is_missed_whatever_the_directions_are(rank, narrow, rng):
    A, B = (
        (rng.gamma(1, 1, (64, 1)) * rng.standard_normal((64, 32))).astype(np.float32)
        for _ in "ab"
    )
    basis = (
        None
        if rank is None
        else jnp.asarray(
            np.linalg.qr(rng.standard_normal((32, 32)))[0][:, :rank], jnp.float32
        )
    )
    first, second = (
        _leading._along(
            jnp.asarray(Z), jnp.sum(Z * Z, axis=1), basis, narrow=narrow and rank != 0
        )
        for Z in (A, B)
    )
    images = ((A[:, None].astype(float) - B) ** 2).sum(-1)
    squared = images * rng.uniform(0.5, 2.0, images.shape)
    squared[3, 5] = np.nan  # it does not count
    off = np.abs(np.sqrt(images / squared) - 1)
    suspects = np.asarray(
        _leading._outside(
            first, second, jnp.asarray(squared, jnp.float32), 1.3**2, 0.7**2
        )
    )
    assert suspects[off > 0.301].all() and not suspects[3, 5]
    if rank in (32, None):
        assert not suspects[off < (0.28 if narrow else 0.299)].any()


def test_what_rounding_to_bfloat16_moves_is_in_the_rests():
    """Two rows that all move as far as they can, and others that hardly do: no common share of the norms."""
    up, down = 1 + 2.0**-8 - 2.0**-20, 1.0 + 2.0**-9 - 2.0**-16
    A, B = np.full((1, 64), up, np.float32), np.full((1, 64), down, np.float32)
    A, B = (
        np.concatenate([A, B]),
        np.concatenate([B, A, np.full((1, 64), 1.0, np.float32)]),
    )
    first, second = (
        _leading._along(jnp.asarray(Z), jnp.sum(Z * Z, axis=1), None, narrow=True)
        for Z in (A, B)
    )
    inner = np.asarray(first.along, float) @ np.asarray(second.along, float).T
    gaps = np.abs(inner - A.astype(float) @ B.astype(float).T)
    assert gaps.min() > 0 and (gaps <= np.outer(first.rest, second.rest)).all()
    assert gaps.max() > 0.4 * np.outer(first.rest, second.rest).max()


def test_all_three_routes_agree(rng, monkeypatch):
    X = _points(rng, np.float32, gap=1e-4)
    kernel = Gaussian(1.5)
    goal = Distance(kernel, EPS)
    phi = _draw("paired_fourier", kernel, X)
    D, errors = _dense(X, phi, 1.5)
    found = {}
    routes = {
        "as chosen": {},
        "double": {"_CROWDED": 10**9},
        "differences": {"_CANCELLATION": 1e9, "_CROWDED": 0.5},
    }
    for route, constants in routes.items():
        with monkeypatch.context() as patch:
            for constant, value in constants.items():
                patch.setattr(_distance, constant, value)
            pairs = _prepared(goal, X)
        wide, near = (
            sum(tile.wide for tile in pairs.tiles),
            sum(len(tile.near) for tile in pairs.tiles),
        )
        found[route] = goal.error(None, phi, pairs), wide, near
        with monkeypatch.context() as patch:
            for constant, value in constants.items():
                patch.setattr(_distance, constant, value)
            patch.setattr(_distance, "_HELD_BYTES", 0)
            again = _prepared(goal, X)
            assert all(tile.squared is None for tile in again.tiles)
            assert goal.error(None, phi, again) == found[route][0]
    assert found["as chosen"][1] == 0 < found["double"][1]
    assert found["differences"][2] > 100
    for error, _, _ in found.values():
        assert error == pytest.approx(errors[D > 0].max(), abs=0.01 * EPS)


def test_near_duplicates_need_the_other_routes(rng, monkeypatch):
    """The control: with float32 products alone the error of an exact map is not small."""
    X = _points(rng, np.float32)
    monkeypatch.setattr(_distance, "_CANCELLATION", 0.0)
    monkeypatch.setattr(_tiles, "KERNEL_CANCELLATION", 0.0)
    reach = _distance.reach_of

    def blind(*args):
        found = reach(*args)
        return found._replace(exact=0 * found.exact, rounding=0 * found.rounding)

    monkeypatch.setattr(_distance, "reach_of", blind)
    goal = Distance(Linear(), EPS)
    assert goal.error(None, lambda Y: Y, _prepared(goal, X)) > EPS


@pytest.mark.parametrize(
    "kernel", [Exponential(1.5), Laplacian(2.0), 4 * Gaussian(1.0)]
)
def test_distances_of_other_kernels(kernel, rng):
    X = _points(rng, np.float32, gap=1e-4)
    phi = _draw("paired_fourier", kernel, X)
    goal = Distance(kernel, EPS)
    i, j = np.triu_indices(len(X), 1)
    with jax.enable_x64(True):
        gaps = jax.jit(jax.vmap(lambda x, y: kernel(x, x) - kernel(x, y)))(
            X[i].astype(float), X[j].astype(float)
        )
    Z = _features(phi, X)
    D = np.sqrt(2 * np.asarray(gaps))
    sure = D > 1e-6
    errors = np.abs(np.linalg.norm(Z[i] - Z[j], axis=1)[sure] / D[sure] - 1)
    assert goal.error(None, phi, _prepared(goal, X)) == pytest.approx(
        errors.max(), rel=0.01
    )


def test_equal_points_are_left_out_and_counted(rng):
    X = _points(rng, np.float32)
    X[5], X[6] = [0.0, 1.0, 2.0], [-0.0, 1.0, 2.0]
    goal = Distance(Gaussian(1.0), EPS)
    i, j = np.triu_indices(len(X), 1)
    equal = (X[i] == X[j]).all(axis=1).sum()
    pairs = _prepared(goal, X)
    assert pairs.zero_pairs == equal > 0
    phi = _draw("paired_fourier", Gaussian(1.0), X)
    found = goal.detail(phi, pairs)["pairs"]
    assert found["zero_pairs"] + found["pairs"] == len(i)
    one = _prepared(goal, np.ones((7, DIM), np.float32))
    assert (goal.error(None, phi, one), one.zero_pairs) == (0.0, 21)
    assert goal.detail(phi, one)["pairs"]["bins"] == []


def test_pairs_that_float32_cannot_resolve_are_said_to_be(rng):
    X = _points(rng, np.float32, gap=2e-7)
    goal = Distance(Gaussian(1.5), EPS)
    single = _prepared(goal, X)
    phi = _draw("paired_fourier", Gaussian(1.5), X, size=800)
    D, errors = _dense(X, phi, 1.5)
    with jax.enable_x64(True):
        wider = jax.tree.map(
            lambda leaf: leaf.astype(float) if isinstance(leaf, jax.Array) else leaf,
            phi,
        )
        double = _prepared(goal, X.astype(float))
        truth = goal.error(None, wider, double)
    assert double.unresolved == 0 < single.unresolved < 40
    # What float32 adds to the largest error is all among those pairs.
    worst = np.sort(errors[D > 0])[::-1]
    assert worst[0] > 5 * truth
    assert worst[single.unresolved] < truth + 0.01 * EPS


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_numbers_are_failures(value, rng):
    X = _points(rng, np.float32)
    last = jnp.asarray(X[-1, 0])
    goal, spectral = Distance(Gaussian(1.0), EPS), Spectral(Gaussian(1.0), EPS)

    def phi(Y):
        return jnp.where(Y[:, :1] == last, jnp.asarray(value, Y.dtype), Y)

    pairs = _prepared(goal, X)
    assert not goal.error(None, phi, pairs) <= EPS
    json.dumps(goal.detail(phi, pairs), allow_nan=False)
    matrix = _prepared(spectral, np.concatenate([X, X[:50]]))
    assert not spectral.error(jax.random.key(1), phi, matrix) <= EPS


def test_detail_bins_the_errors_of_all_pairs(rng):
    X = _points(rng, np.float32, gap=1e-3)
    goal = Distance(Gaussian(1.5), EPS)
    phi = _draw("paired_fourier", Gaussian(1.5), X)
    pairs = _prepared(goal, X)
    found = json.loads(json.dumps(goal.detail(phi, pairs), allow_nan=False))["pairs"]
    assert found.keys() == {
        "points",
        "pairs",
        "zero_pairs",
        "unresolved",
        "largest",
        "bins",
    }
    assert all(
        entry.keys() == {"low", "high", "pairs", "q50", "q95", "q100"}
        for entry in found["bins"]
    )
    D, errors = _dense(X, phi, 1.5)
    D, errors = D[D > 0], errors[D > 0]
    assert (
        found["largest"]
        == goal.error(None, phi, pairs)
        == max(entry["q100"] for entry in found["bins"])
    )
    assert sum(entry["pairs"] for entry in found["bins"]) == found["pairs"] == len(D)
    assert found["bins"][0]["low"] == pytest.approx(D.min(), rel=1e-5)
    assert found["bins"][-1]["high"] == pytest.approx(D.max(), rel=1e-5)
    top = found["bins"][-1]
    inside = errors[top["low"] <= D]
    assert top["pairs"] == pytest.approx(len(inside), abs=2)
    assert top["q50"] == pytest.approx(np.median(inside), rel=0.02)


def test_detail_looks_at_a_sample_of_many_points(rng, monkeypatch):
    monkeypatch.setattr(_distance, "_MOST_DETAIL", 60)
    X = rng.standard_normal((150, DIM)).astype(np.float32)
    goal = Distance(Gaussian(1.5), EPS)
    phi = _draw("paired_fourier", Gaussian(1.5), X)
    pairs = _prepared(goal, X)
    found = goal.detail(phi, pairs)["pairs"]
    assert (found["points"], found["pairs"]) == (60, 60 * 59 // 2)
    assert found["largest"] <= goal.error(None, phi, pairs)
    assert {row.tobytes() for row in pairs.sample.points.astype("float32")} <= {
        row.tobytes() for row in X
    }


def test_neighbouring_sizes_share_the_program(rng):
    goal = Distance(Gaussian(1.5), EPS)
    sizes = set()
    for size, frequencies in ((185, 150), (192, 170)):
        X = rng.standard_normal((size, DIM)).astype(np.float32)
        goal.error(
            None,
            _draw("paired_fourier", Gaussian(1.5), X, frequencies),
            _prepared(goal, X),
        )
        sizes.add((_tiles.by_product._cache_size(), _tiles.tile_of._cache_size()))
    assert len(sizes) == 1


def test_what_the_goals_refuse(rng):
    for goal in (Distance(Gaussian(1.0), EPS), Spectral(Gaussian(1.0), EPS)):
        assert "Sigma^3" in goal.refuses("kernel_jl")
        assert goal.refuses("nystrom") == goal.refuses("paired_fourier") == ""
    with pytest.raises(ValueError, match="eps must be a number"):
        Distance(Gaussian(1.0), 1.5)
    with pytest.raises(ValueError, match="slack must be a number"):
        Spectral(Gaussian(1.0), EPS, 0.0)
    with pytest.raises(ValueError, match="finite and positive sup"):
        Spectral(Linear(), EPS)
    with pytest.raises(ValueError, match="points must be finite"):
        _prepared(Distance(Gaussian(1.0), EPS), np.full((3, 2), np.nan, np.float32))


def _keys(seed, count):
    return [jax.random.fold_in(jax.random.key(seed), number) for number in range(count)]


def _spectral_error(X, phi, lengthscale):
    X, Z = X.astype(float), np.asarray(phi(jnp.asarray(X)), float)
    K = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / (2 * lengthscale**2))
    return np.abs(np.linalg.eigvalsh(K - Z @ Z.T)).max() / len(X)


def _spectral_case(name, dtype, rng):
    """Return a goal, 200 points as it prepares them, a map, and the map's error by dense eigenvalues."""
    X = _points(rng, dtype, size=200)
    goal = Spectral(Gaussian(1.5), EPS)
    phi = _draw(name, Gaussian(1.5), X, 20)
    return goal, _prepared(goal, X), phi, _spectral_error(X, phi, 1.5)


@pytest.mark.parametrize("name", ["paired_fourier", "nystrom"])
def test_the_spectral_error_of_few_points_is_exact(name, dtype, rng, monkeypatch):
    monkeypatch.setattr(_spectral, "_EXACT", 512)
    goal, matrix, phi, truth = _spectral_case(name, dtype, rng)
    lower, upper = goal.bounds(jax.random.key(1), phi, matrix)
    assert lower == upper == pytest.approx(truth, abs=20 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("name", ["paired_fourier", "nystrom"])
def test_the_bound_holds_for_every_seed_and_is_tight(name, rng):
    """False alarms: 1e-6 for a seed, so less than 1e-3 for all of them."""
    goal, matrix, phi, truth = _spectral_case(name, np.float32, rng)
    found = np.array([goal.bounds(key, phi, matrix) for key in _keys(3, 60)])
    rounding = 20 * np.finfo(np.float32).eps
    assert (found[:, 0] <= truth + rounding).all()
    assert (found[:, 1] >= truth - rounding).all()
    assert (found[:, 1] <= 1.05 * truth + rounding).all()


@pytest.mark.parametrize("name", ["paired_fourier", "nystrom"])
def test_a_factor_bounds_the_same_error_and_stands_in_only_where_it_leaves_little(
    name, dtype, rng
):
    """False alarms: 1e-6 for a seed, and 1e-9 for the factor."""
    goal, matrix, phi, truth = _spectral_case(name, dtype, rng)
    lasting = goal.lasting(jax.random.key(1), matrix)
    K = np.asarray(matrix.kernel_matrix, float)[:200]
    F = np.asarray(lasting.factor, float)
    assert lasting.kernel_matrix is None and F.shape[1] < 100
    assert np.linalg.norm(K - F @ F.T, 2) <= lasting.left <= _spectral._LEFT * EPS * 200
    found = np.array([goal.bounds(key, phi, lasting) for key in _keys(3, 50)])
    assert (found[:, 0] <= truth).all() and (found[:, 1] >= truth).all()
    assert (found[:, 1] <= 1.05 * truth + 2 * lasting.left / 200).all()
    flat = _prepared(goal, (50 * np.arange(200)[:, None] * [1, 0, 0]).astype(dtype))
    assert goal.lasting(jax.random.key(1), flat) is flat


def test_a_flat_spectrum_makes_the_bound_as_loose_as_promised_and_no_looser(rng):
    X = (rng.permutation(200)[:, None] * [2.5, 0, 0]).astype(np.float32)
    phi = _draw("paired_fourier", Gaussian(1.0), X, 20)
    truth = _spectral_error(X, phi, 1.0)
    goal = Spectral(Gaussian(1.0), EPS)
    matrix = _prepared(goal, X)
    for key in _keys(4, 5):
        assert truth * (1 - 1e-5) <= goal.error(key, phi, matrix) <= 1.05 * truth


def test_slack_is_the_probability_of_a_bound_that_is_too_small(rng, monkeypatch):
    """After two steps a bound leans on its probability: it may fail in half of all runs if slack is 1/2.

    Of 200 runs more than 135 would fail with probability below 1e-6 if each failed with probability 1/2; and there are
    failures, or this test would say nothing.
    """
    monkeypatch.setattr(_spectral, "_STEPS", 2)
    monkeypatch.setattr(_spectral, "_LOOSENESS", 1e3)
    X = rng.standard_normal((200, DIM)).astype(np.float32)
    phi = _draw("paired_fourier", Gaussian(1.5), X, 2)
    truth = _spectral_error(X, phi, 1.5)
    goal = Spectral(Gaussian(1.5), EPS, 0.5)
    matrix = _prepared(goal, X)
    found = np.array([goal.error(key, phi, matrix) for key in _keys(5, 200)])
    assert 0 < np.count_nonzero(found < truth * (1 - 1e-5)) <= 135
    assert all(goal.bounds(key, phi, matrix)[0] <= truth for key in _keys(6, 20))


def test_the_bound_is_where_the_smallest_mass_is_the_quantile(rng):
    """The minimum of integral p^2 dm over p(x) = 1, by least squares in another basis, equals |G|^2 / most at x."""
    values, mass = (
        np.linspace(-1, 0.8, 40),
        special.gammaincinv(4, rng.uniform(size=40)),
    )
    for steps in (1, 3, 6):
        now, before, beta = np.ones(40) / math.sqrt(mass.sum()), np.zeros(40), 0.0
        diagonal, beside = [], []
        for _ in range(steps):
            diagonal.append(np.sum(mass * values * now * now))
            after = (values - diagonal[-1]) * now - beta * before
            beta = math.sqrt(np.sum(mass * after * after))
            beside.append(beta)
            now, before = after / beta, now
        most = 1e4
        lower, upper = _spectral._bounds(np.array(diagonal), np.array(beside), most)
        assert lower <= 1 < upper

        def smallest(x, degree=steps):
            basis = np.polynomial.chebyshev.chebvander(values, degree)
            at = np.polynomial.chebyshev.chebvander(np.array([x]), degree)[0]
            moments = basis.T @ (mass[:, None] * basis)
            return 1 / (at @ np.linalg.solve(moments, at))

        reached = max(smallest(upper), smallest(-upper))
        assert reached == pytest.approx(mass.sum() / most, rel=1e-4)
        assert upper <= math.cosh(math.acosh(math.sqrt(most)) / steps)


def test_bounds_of_nothing():
    zero = np.zeros(4)
    assert _spectral._bounds(zero, zero, 1e6) == (0.0, 0.0)
    assert _spectral._bounds(np.array([2.0, 0, 0]), zero[:3], 1e6) == (2.0, 2.0)
    assert math.isnan(_spectral._bounds(np.array([np.nan]), np.array([1.0]), 1e6)[1])


def test_the_kernel_matrix_need_not_be_held_and_a_factor_does_not_matter(
    dtype, rng, monkeypatch
):
    X = _points(rng, dtype, size=200)
    phi = _draw("paired_fourier", Gaussian(1.5), X, 20)
    goal = Spectral(Gaussian(1.5), EPS)
    error = goal.error(jax.random.key(1), phi, _prepared(goal, X))
    scaled = Spectral(4 * Gaussian(1.5), EPS)
    twice = _draw("paired_fourier", 4 * Gaussian(1.5), X, 20)
    close = pytest.approx(error, abs=100 * float(np.finfo(dtype).eps))
    assert scaled.error(jax.random.key(1), twice, _prepared(scaled, X)) == close
    monkeypatch.setattr(_spectral, "_HELD_BYTES", 0)
    matrix = _prepared(goal, X)
    assert matrix.kernel_matrix is None
    assert goal.error(jax.random.key(1), phi, matrix) == close


def test_an_exact_map_has_a_spectral_error_of_rounding(rng):
    X = rng.uniform(-0.5, 0.5, (200, DIM)).astype(np.float32)
    goal = Spectral(FromFunction(lambda x, y: jnp.sum(x * y), sup=0.75), EPS)
    assert goal.error(jax.random.key(1), lambda Y: Y, _prepared(goal, X)) < 1e-5
