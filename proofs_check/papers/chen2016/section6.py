"""chen2016, Section 6: how many dimensions any map needs.

`docs/theory/chen2016.md` derives every correction.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy import linalg, spatial, special

from jaxkern import features, kernels
from jaxkern.bounds import fourier
from jaxkern.gram import gram
from proofs_check.claim import Check, Control, Form, Inequality, Setting, sample
from proofs_check.papers.chen2016.setup import above, all_distances
from proofs_check.papers.shared import (
    always,
    at_most_one,
    grid,
    listed,
    parametrized,
    real,
    rng_of,
)


def least_rank(n: int, eps: float, power: float = 2.0) -> int:
    """Return the smallest r with binom(r + k - 1, k) >= n / (1 + (n - 1) eps^(power k)) for k = 1, ..., 32."""
    r = 1
    while any(
        special.comb(r + k - 1, k) < n / (1 + (n - 1) * eps ** (power * k)) * (1 - 1e-9)
        for k in range(1, 33)
    ):
        r += 1
    return r


def near_orthogonal(name: str) -> np.ndarray:
    """Return unit vectors, one a row, whose inner products are all small."""
    if name == "simplex":
        values, vectors = np.linalg.eigh(np.eye(13) - 1 / 13)
        return np.asarray(vectors[:, values > 0.5] * math.sqrt(13 / 12))
    if name == "6 lines in 3 dimensions":
        golden = (1 + math.sqrt(5)) / 2
        rows = [np.roll([0, 1, s * golden], k) for k in range(3) for s in (1, -1)]
        return np.array(rows) / math.sqrt(1 + golden**2)
    if name == "28 lines in 7 dimensions":
        pairs = itertools.combinations(range(8), 2)
        return np.array(
            [[3.0 if i in pair else -1.0 for i in range(8)] for pair in pairs]
        ) / math.sqrt(24)
    return np.concatenate([np.eye(64), linalg.hadamard(64) / 8])


def _unbounded() -> Check:
    @parametrized(Inequality)
    def least_ratios(key: jax.Array, setting: Setting, power: float = 1.0) -> list[Any]:
        """Return the least Dhat / D at whole differences up to Q^(t / d), over 2 pi / (Q D(1)), of 10 draws."""
        d, t, q = (setting.shapes[k] for k in ("d", "t", "Q"))
        most = math.floor(q ** (power * t / d) * (1 + 1e-12))
        whole = (
            np.indices((2 * most + 1,) * d).reshape(d, -1)[
                :, : (2 * most + 1) ** d // 2
            ]
            - most
        )
        true = np.sqrt(-2 * np.expm1(-np.sum(whole**2, axis=0) / 2))
        phases = (rng_of(key).standard_normal((10, t, d)) @ whole) / 2
        ratios = np.min(
            np.sqrt(np.mean(4 * np.sin(phases) ** 2, axis=1)) / true, axis=1
        )
        right = 2 * math.pi / (q * math.sqrt(-2 * math.expm1(-0.5)))
        return [
            at_most_one(ratio / right, "jaxkern, Section 6 of chen2016")
            for ratio in ratios
        ]

    sizes = ((1, 2, 8), (1, 3, 20), (2, 4, 9))
    settings = listed(
        "{t} frequencies in dimension {d}, Q={Q}", "d t Q", sizes, shapes="d t Q"
    )
    return Check(
        printed=Form(least_ratios(), settings),
        controls=(
            Control(
                "differences up to the root of it",
                least_ratios(power=0.5),
                settings,
                "wrong power",
            ),
        ),
    )


def _rank() -> Check:
    @parametrized(Inequality)
    def holds(setting: Setting, power: float) -> list[Any]:
        V = near_orthogonal(setting.name)
        B = V @ V.T
        eps = float(np.max(np.abs(B - np.eye(len(B)))))
        least = least_rank(len(B), eps, power)
        return [
            at_most_one(
                least / np.linalg.matrix_rank(B), "jaxkern, the rank of Hadamard powers"
            )
        ]

    names = (
        "simplex",
        "6 lines in 3 dimensions",
        "28 lines in 7 dimensions",
        "two bases of 64 dimensions",
    )
    settings = tuple(Setting(name) for name in names)
    return Check(
        corrected=Form(holds(2.0), settings),
        controls=(
            Control("eps^(3 k) for eps^(2 k)", holds(3.0), settings, "wrong power"),
        ),
    )


def _on_a_line(
    key: jax.Array, setting: Setting
) -> tuple[jax.Array, np.ndarray, np.ndarray]:
    """Return equally spaced points of a line, their Gram matrix, and Fourier features of them (n, 2 t)."""
    kernel = kernels.Gaussian(1.0)
    X = real(np.arange(setting.shapes["n"])[:, None] * setting.numbers["spacing"])
    phi = features.paired_fourier(
        key, kernel, 1, num_frequencies=setting.shapes["t"], dtype=X.dtype
    )
    return X, np.asarray(gram(kernel, X), float), np.asarray(phi(X), float)


def map_dimensions(key: jax.Array, setting: Setting) -> tuple[int, int, float, float]:
    """Return (dimension, points, largest error, spacing) of a unit-norm map of equally spaced points of a line.

    With `t` in the setting the map has Fourier features; with as many dimensions as points it is exact; and with half
    as many it takes the points to two bases whose inner products are the roots of 1 / dim.
    """
    n, spacing = setting.shapes["n"], float(setting.numbers["spacing"])
    if "t" in setting.shapes:
        _, K, h = _on_a_line(key, setting)
    else:
        K = np.asarray(
            gram(kernels.Gaussian(1.0), real(np.arange(n)[:, None] * spacing)), float
        )
        if setting.shapes["dim"] == n:
            h = np.linalg.cholesky(K)
        else:
            h = np.concatenate(
                [np.eye(n // 2), linalg.hadamard(n // 2) / math.sqrt(n // 2)]
            )
    error = float(np.max(np.abs(K - h @ h.T)[~np.eye(n, dtype=bool)]))
    return h.shape[1], n, error, spacing


def _lemma_6_1() -> Check:
    def limit(key: jax.Array, setting: Setting) -> list[Any]:
        dimension, n, error, spacing = map_dimensions(key, setting)
        eps = max(error, math.exp(-(spacing**2) / 2))
        bound = fourier.dimension_limit(
            eps=eps, dim=1, radius=n * math.sqrt(2 * math.log(1 / eps))
        )
        return [above(dimension, bound)]

    @sample("points")
    def points(key: jax.Array, setting: Setting) -> list[Any]:
        dimension, n, _, _ = map_dimensions(key, setting)
        return [at_most_one(n / dimension, "as many dimensions as points")]

    settings = (
        Setting(
            "exact features of 200 points",
            None,
            {"spacing": 3.5},
            {"n": 200, "dim": 200},
        ),
        Setting(
            "two bases of 256 dimensions, 512 points",
            None,
            {"spacing": 6.0},
            {"n": 512, "dim": 256},
        ),
        Setting(
            "Fourier features, t=400, 1000 points",
            None,
            {"spacing": 3.0},
            {"n": 1000, "t": 400},
        ),
    )
    return Check(
        corrected=Form(Inequality(limit), settings),
        controls=(
            Control(
                "as many dimensions as points",
                Inequality(points),
                settings[1:],
                "wrong power",
            ),
        ),
    )


def packing(dim: int, ratio: float, seed: int) -> int:
    """Return how many of 30,000 random points of a ball of radius `ratio` keep distances above 1, chosen greedily."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((30_000, dim))
    points *= (
        ratio
        * rng.uniform(0, 1, (30_000, 1)) ** (1 / dim)
        / np.linalg.norm(points, axis=1, keepdims=True)
    )
    count = 0
    while len(points):
        points = points[np.sum((points - points[0]) ** 2, axis=1) > 1]
        count += 1
    return count


def _lemma_6_1_proof() -> Check:
    def of_a_grid(setting: Setting) -> list[Any]:
        """Half of ln of the claimed number of points, and ln of a volume that cubes around the points must fill."""
        d, radius, eps = (setting.numbers[k] for k in ("d", "M", "eps"))
        volume = d / 2 * math.log(math.pi) - special.gammaln(d / 2 + 1)
        least = volume + d * math.log(
            radius / math.sqrt(2 * math.log(1 / eps)) - math.sqrt(d) / 2
        )
        claimed = d * math.log(radius / math.log(1 / eps)) / 2
        return [(claimed / d, always(least / d, "points of a grid in a ball"))]

    @parametrized(Inequality)
    def packed(setting: Setting, factor: float) -> list[Any]:
        d, ratio = int(setting.numbers["d"]), setting.numbers["ratio"]
        return [
            at_most_one(
                (factor * ratio) ** d / packing(d, ratio, 0), "points of a packing"
            )
        ]

    far = grid("d={d:g}, M={M:g}, eps=0.05", d=(100.0, 400.0), M=(1e3, 1e9), eps=[0.05])
    near = listed(
        "d={d:g}, radius {ratio:g} spacings",
        "d ratio",
        ((1.0, 20.0), (2.0, 6.0), (3.0, 3.0)),
    )
    return Check(
        printed=Form(Inequality(of_a_grid), far),
        corrected=Form(packed(1.0), near),
        controls=(Control("three times as dense", packed(3.0), near, "wrong factor"),),
    )


def theorem_6_1() -> Check:
    """Return the check of the step from Lemma 6.1 to Theorem 6.1."""

    def holds(loss: Callable[[float], float], limit: bool) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            X, K, h = _on_a_line(key, setting)
            n, spacing = len(h), setting.numbers["spacing"]
            first, second = np.triu_indices(n, 1)
            ratios = all_distances(X)[first, second] / spatial.distance.pdist(h)
            eps = float(np.max(np.abs(ratios - 1)))
            additive = np.abs(K - h @ h.T)[first, second] / (1 - K[first, second])
            sides = [
                (
                    float(np.max(additive)),
                    always(loss(eps), "chen2016, proof of Theorem 6.1"),
                )
            ]
            error = max(loss(eps), math.exp(-(spacing**2) / 2))
            if limit and error < 0.25:
                radius = n * math.sqrt(2 * math.log(1 / error))
                sides.append(
                    above(
                        h.shape[1],
                        fourier.dimension_limit(eps=error, dim=1, radius=radius),
                    )
                )
            return sides

        return Inequality(both)

    def loss(eps: float) -> float:
        return (2 * eps - eps**2) / (1 - eps) ** 2

    sizes = ((60, 400, 0.3), (120, 2000, 2.5))
    settings = listed(
        "{n} points, t={t}, spacing {spacing:g}", "n t spacing", sizes, shapes="n t"
    )
    control = holds(lambda eps: eps, limit=False)
    return Check(
        corrected=Form(holds(loss, limit=True), settings),
        controls=(Control("eps for 2 eps", control, settings, "wrong factor"),),
    )
