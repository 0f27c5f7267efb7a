"""chen2016, Section 6: how many dimensions any map needs.

`docs/theory/chen2016.md` derives every correction.
"""

from collections.abc import Callable
from itertools import combinations
from math import exp, expm1, floor, log, pi, sqrt

import numpy as np
from jax import Array
from numpy import ndarray
from numpy.linalg import eigh, norm
from numpy.random import default_rng
from scipy import linalg, spatial, special

from jaxkern.bounds import Bound, fourier
from proofs_check.claim import Check, Inequality, Setting, sample
from proofs_check.papers.chen2016.cosines import versine
from proofs_check.papers.chen2016.setup import (
    Sides,
    above,
    all_at_most_one,
    all_distances,
    gram_of,
)
from proofs_check.papers.chen2016.trials import features_on_host
from proofs_check.papers.shared import (
    Grids,
    check_of,
    lines,
    real,
    rng_of,
    wrong,
)

NEAR_ORTHOGONAL = (
    "simplex",
    "6 lines in 3 dimensions",
    "28 lines in 7 dimensions",
    "two bases of 64 dimensions",
)


def least_rank(n: int, eps: float, power: float = 2.0) -> int:
    """Return the smallest r with binom(r + k - 1, k) >= n / (1 + (n - 1) eps^(power k)) for k = 1, ..., 32."""
    k = np.arange(1, 33)
    needed = n / (1 + (n - 1) * eps ** (power * k)) * (1 - 1e-9)
    r = 1
    while np.any(special.comb(r + k - 1, k) < needed):
        r += 1
    return r


def near_orthogonal(name: str) -> ndarray:
    """Return unit vectors, one a row, whose inner products are all small."""
    if name == "simplex":
        values, vectors = eigh(np.eye(13) - 1 / 13)
        return np.asarray(vectors[:, values > 0.5] * sqrt(13 / 12))
    if name == "6 lines in 3 dimensions":
        golden = (1 + sqrt(5)) / 2
        rows = [np.roll([0, 1, s * golden], k) for k in range(3) for s in (1, -1)]
        return np.array(rows) / sqrt(1 + golden**2)
    if name == "28 lines in 7 dimensions":
        equiangular = -np.ones((28, 8))
        for line, pair in zip(equiangular, combinations(range(8), 2), strict=True):
            line[list(pair)] = 3.0
        return equiangular / sqrt(24)
    return np.concatenate([np.eye(64), linalg.hadamard(64) / 8])


def _least_ratios(key: Array, d: int, t: int, Q: int, power: float = 1.0) -> Sides:
    """Return the least Dhat / D at whole differences up to Q^(t / d), over 2 pi / (Q D(1)), of 10 draws."""
    most = floor(Q ** (power * t / d) * (1 + 1e-12))
    side = 2 * most + 1
    # Half of the differences: the others are opposite to these.
    grid = np.indices((side,) * d).reshape(d, -1)
    differences = grid[:, : side**d // 2] - most
    squared = np.sum(differences**2, axis=0)
    true = np.sqrt(-2 * np.expm1(-squared / 2))
    phases = rng_of(key).standard_normal((10, t, d)) @ differences
    images = np.sqrt(np.mean(2 * versine(phases), axis=1))
    ratios = np.min(images / true, axis=1)
    right = 2 * pi / (Q * sqrt(-2 * expm1(-0.5)))
    return all_at_most_one(ratios / right, "jaxkern, Section 6 of chen2016")


def sec6_unbounded(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["printed"],
        wrong("differences up to the root of it", "wrong power", power=0.5),
        printed=_least_ratios,
    )


def _ranks(setting: Setting, power: float = 2.0) -> Sides:
    V = near_orthogonal(setting.name)
    B = V @ V.T
    eps = np.max(np.abs(B - np.eye(len(B))))
    ratio = least_rank(len(B), eps, power) / np.linalg.matrix_rank(B)
    return all_at_most_one([ratio], "jaxkern, the rank of Hadamard powers")


def sec6_rank() -> Check:
    settings = [Setting(name) for name in NEAR_ORTHOGONAL]
    return check_of(
        Inequality,
        settings,
        wrong("eps^(3 k) for eps^(2 k)", "wrong power", power=3.0),
        corrected=_ranks,
    )


def _on_a_line(n: int, spacing: float) -> tuple[Array, ndarray]:
    """Return equally spaced points of a line, and their Gram matrix."""
    X = real(np.arange(n)[:, None] * spacing)
    return X, gram_of(X)


def map_dimensions(key: Array, setting: Setting) -> tuple[int, int, float, float]:
    """Return (dimension, points, largest error, spacing) of a unit-norm map of equally spaced points of a line.

    With `t` in the setting the map has Fourier features; with as many dimensions as points it is exact; and with half
    as many it takes the points to two bases whose inner products are the roots of 1 / dim.
    """
    n = setting.shapes["n"]
    spacing = setting.numbers["spacing"]
    X, K = _on_a_line(n, spacing)
    if "t" in setting.shapes:
        h = features_on_host(key, X, setting.shapes["t"])
    elif setting.shapes["dim"] == n:
        h = np.linalg.cholesky(K)
    else:
        half = n // 2
        h = np.concatenate([np.eye(half), linalg.hadamard(half) / sqrt(half)])
    error = np.max(np.abs(K - h @ h.T)[~np.eye(n, dtype=bool)])
    return h.shape[1], n, error, spacing


def _dimension_limit(n: int, eps: float) -> Bound:
    """Return the bound for a segment that holds n points whose kernel values are eps."""
    radius = n * sqrt(2 * log(1 / eps))
    return fourier.dimension_limit(eps=eps, dim=1, radius=radius)


def _dimensions(key: Array, setting: Setting) -> Sides:
    dimension, n, error, spacing = map_dimensions(key, setting)
    eps = max(error, exp(-(spacing**2) / 2))
    return [above(dimension, _dimension_limit(n, eps))]


@sample("points")
def _points_over_dimension(key: Array, setting: Setting) -> Sides:
    dimension, n, _, _ = map_dimensions(key, setting)
    return all_at_most_one([n / dimension], "as many dimensions as points")


def lem6_1(grids: Grids) -> Check:
    fewer = (*grids["bases"], *grids["features"])
    return check_of(
        Inequality,
        (*grids["exact"], *fewer),
        wrong(
            "as many dimensions as points",
            "wrong power",
            _points_over_dimension,
            settings=fewer,
        ),
        corrected=_dimensions,
    )


def packing(dim: int, ratio: float, seed: int) -> int:
    """Return how many of 30,000 random points of a ball of radius `ratio` keep distances above 1, chosen greedily."""
    rng = default_rng(seed)
    points = rng.standard_normal((30_000, dim))
    lengths = ratio * rng.uniform(0, 1, (30_000, 1)) ** (1 / dim)
    points *= lengths / norm(points, axis=1, keepdims=True)
    count = 0
    while len(points):
        points = points[np.sum((points - points[0]) ** 2, axis=1) > 1]
        count += 1
    return count


def _points_of_grid(dim: float, radius: float, eps: float) -> Sides:
    """Return half of ln of the claimed number of points, and ln of a volume that cubes around the points must fill."""
    volume = dim / 2 * log(pi) - special.gammaln(dim / 2 + 1)
    sides = radius / sqrt(2 * log(1 / eps)) - sqrt(dim) / 2
    least = volume + dim * log(sides)
    claimed = dim * log(radius / log(1 / eps)) / 2
    return lines([(claimed / dim, least / dim)], "points of a grid in a ball")


def _packed(dim: float, ratio: float, factor: float = 1.0) -> Sides:
    size = packing(int(dim), ratio, 0)
    return all_at_most_one([(factor * ratio) ** dim / size], "points of a packing")


def lem6_1_proof(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["near"],
        wrong("three times as dense", "wrong factor", factor=3.0),
        printed=_points_of_grid,
        printed_settings=grids["far"],
        corrected=_packed,
    )


def _loss(eps: float) -> float:
    """Return the error of kernel values, over 1 - K, that a relative error eps of distances allows."""
    return (2 * eps - eps**2) / (1 - eps) ** 2


def _additive_errors(
    key: Array,
    n: int,
    t: int,
    spacing: float,
    loss: Callable[[float], float] = _loss,
    limit: bool = True,
) -> Sides:
    X, K = _on_a_line(n, spacing)
    h = features_on_host(key, X, t)
    pairs = np.triu_indices(n, 1)
    ratios = all_distances(X)[pairs] / spatial.distance.pdist(h)
    eps = np.max(np.abs(ratios - 1))
    additive = np.abs(K - h @ h.T)[pairs] / (1 - K[pairs])
    pairs_of_errors = [(np.max(additive), loss(eps))]
    sides = lines(pairs_of_errors, "chen2016, proof of Theorem 6.1")
    error = max(loss(eps), exp(-(spacing**2) / 2))
    if limit and error < 0.25:
        sides.append(above(h.shape[1], _dimension_limit(n, error)))
    return sides


def _no_loss(eps: float) -> float:
    return eps


def thm6_1(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["corrected"],
        wrong("eps for 2 eps", "wrong factor", loss=_no_loss, limit=False),
        corrected=_additive_errors,
    )
