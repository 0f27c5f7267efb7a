"""Sizes that plans ask for, against the smallest that a search over draws finds: the table of docs/planning.md.

`python -m benchmarks.planning [DIR]` tries the worst cases that we know, and 300 rows each of usps.npz, avila.npz and
cpu.npz in DIR (arrays X; columns standardised, but for usps), with the median distance for the lengthscale. Only plans
are computed by the library. A draw is made at the largest of many sizes and cut to the others. Found is the size from
which on a share 1 - delta of the draws meets the target; the interval is that of Clopper and Pearson, 95 % for a size.
"""

import itertools
import sys
from functools import partial
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import pdist, squareform

from jaxkern import plan

EPS, DELTA = 0.2, 0.05


def search(errors, planned, draws):
    """Return the size found and its interval; `errors(rng, sizes)` are those of one draw, at increasing sizes."""
    rng, sizes = np.random.default_rng(0), np.geomspace(planned / 100, planned, 20)
    for number in (40, 100, draws):
        sizes = np.unique(np.ceil(sizes)).astype(int)
        met = sum(np.fromiter(errors(rng, sizes), float) <= EPS for _ in range(number))
        limits = np.array(
            [
                (c / number, *reversed(stats.binomtest(int(c), number).proportion_ci()))
                for c in met
            ]
        )
        ends = [
            sizes[
                min(
                    max(np.flatnonzero(row < 1 - DELTA), default=-1) + 1, len(sizes) - 1
                )
            ]
            for row in limits.T
        ]
        sizes = ends[0] * np.geomspace(0.7, 1.4, 24)
    return ends


def means(W, sizes):
    """Return the means of w w' over the first rows w of W, one after the other."""
    totals = itertools.accumulate(V.T @ V for V in np.split(W[: sizes[-1]], sizes[:-1]))
    return (total / size for total, size in zip(totals, sizes, strict=True))


def relative(squares, exact):
    ratios = squares / exact
    return max(ratios.max() ** 0.5 - 1, 1 - max(ratios.min(), 0) ** 0.5)


def spectral(A):
    return (
        abs(eigsh(A, 1, return_eigenvectors=False, tol=1e-4)[0]) / len(A)
        if A.any()
        else 0.0
    )


def of_features(X, error, rng, sizes, law=np.random.Generator.standard_normal):
    angles = law(rng, size=(sizes[-1], X.shape[1])) @ X.T
    return (
        error(2 * G)
        for G in means(
            np.stack([np.cos(angles), np.sin(angles)], 1).reshape(-1, len(X)), 2 * sizes
        )
    )


def of_landmarks(K, rng, sizes):
    """Nystrom with the first landmarks of a random order: what elimination leaves of K."""
    left, order = K.copy(), rng.permutation(len(K))
    for chosen in np.split(order[: sizes[-1]], sizes[:-1]):
        for i in chosen[left[chosen, chosen] > 1e-10]:
            left -= np.outer(left[i], left[i]) / max(left[i, i], 1e-10)
        yield spectral(left)


def of_ball(dim, radius, rng, sizes):
    """The largest error that ascent finds over |x - y| <= radius, and that in the limit 0: at most the supremum."""
    V = (W := rng.standard_normal((sizes[-1], dim)))[: sizes[len(sizes) // 2]]
    X = rng.standard_normal((int(np.clip(2e7 / V.size, 8, 600)), dim))
    X *= radius * (
        rng.uniform(size=(len(X), 1)) ** (1 / min(dim, 3))
        / np.linalg.norm(X, axis=1, keepdims=True)
    )
    X = np.concatenate(
        [X, *(r * np.linalg.eigh(V.T @ V)[1][:, [0, -1]].T for r in (0.5, 1.0, 2.0))]
    )
    for step in np.geomspace(0.3, 0.01, 25):
        angles, square = X @ V.T, np.sum(X**2, axis=1, keepdims=True)
        slope = np.sin(angles) @ V / np.sum(
            1 - np.cos(angles), axis=1, keepdims=True
        ) - X / np.expm1(square / 2)
        slope[::2] *= -1  # half of them look for distances that are too small
        X += step * slope / np.linalg.norm(slope, axis=1, keepdims=True)
        X *= np.minimum(1, radius / np.linalg.norm(X, axis=1, keepdims=True))
    X = X[
        np.linalg.norm(X, axis=1) > 1e-3
    ]  # not where differences are rounding, nor NaN: the limit 0 is known
    sums, exact = (
        np.cumsum(1 - np.cos(W @ X.T), axis=0),
        -np.expm1(-np.sum(X**2, axis=1) / 2),
    )
    for size, A in zip(sizes, means(W, sizes), strict=True):
        yield max(
            relative(sums[size - 1] / size, exact), relative(np.linalg.eigvalsh(A), 1)
        )


def cases(folder):
    """Yield the name of a case, the planned size, the errors of a draw and the number of draws."""
    pairs, landmarks = (
        partial(plan.fourier, EPS, DELTA),
        plan.nystrom(EPS, DELTA).num_landmarks,
    )
    features = plan.streaming(
        EPS, DELTA, num_points=1000, sketch_size=10**7
    ).num_frequencies  # nothing is sketched
    signs = {
        "law": lambda rng, size: np.pi * rng.integers(2, size=size)
    }  # three groups, and features that are signs
    copies = partial(of_features, np.eye(3), lambda G: spectral(G - np.eye(3)), **signs)
    yield "Gram matrix, features, copies of three points", features, copies, 2000
    clouds, balls = (
        {},
        {
            f"dimension {dim}, diameter {span}": (dim, span)
            for dim, span in ((1, 10), (2, 10), (3, 5))
        },
    )
    for n in (100, 1000):
        clouds[f"a tight cluster of {n}"], group = (
            1e-3 * np.eye(n),
            np.arange(n) // (n // 5 + 1),
        )
        K = (group[:, None] == group) & (group < 4) | np.eye(
            n, dtype=bool
        )  # four, just too large to be missed
        yield (
            f"Gram matrix, landmarks, groups of {n} points",
            landmarks,
            partial(of_landmarks, 1.0 * K),
            400,
        )
    for name in ("usps", "avila", "cpu") if folder else ():
        X = np.load(folder / f"{name}.npz")["X"].astype(float)
        X = np.random.default_rng(0).permutation(
            X if name == "usps" else (X - X.mean(0)) / X.std(0)
        )[:300]
        X = clouds[name] = X / np.median(pdist(X))
        K = np.exp(-(squareform(pdist(X)) ** 2) / 2)
        balls[f"dimension {X.shape[1]}, diameter of {name}"] = (
            X.shape[1],
            (1 + 1e-9) * pdist(X).max(),
        )
        yield (
            f"Gram matrix, features, {name}",
            features,
            partial(of_features, X, lambda G, K=K: spectral(G - K)),
            400,
        )
        yield (
            f"Gram matrix, landmarks, {name}",
            landmarks,
            partial(of_landmarks, K),
            400,
        )
    for name, (dim, span) in balls.items():
        size, draws = (
            pairs(dim=dim, diameter=span).num_frequencies,
            400 if dim < 4 else 100,
        )
        yield f"ball, {name}", size, partial(of_ball, dim, span), draws
    for name, X in clouds.items():
        r2, upper = pdist(X) ** 2, np.triu_indices(len(X), 1)
        errors = partial(
            of_features,
            X,
            lambda G, u=upper, r2=r2: relative(1 - G[u], -np.expm1(-r2 / 2)),
        )
        yield (
            f"pairs, {name}",
            pairs(num_points=len(X)).num_frequencies,
            errors,
            max(400, 200_000 // len(X)),
        )
        if X.shape[1] < len(X):  # a table
            known = pairs(squared_distances=r2, pairs=np.ones_like(r2)).num_frequencies
            yield f"pairs, {name}, its distances", known, errors, 400


if __name__ == "__main__":
    np.seterr(divide="ignore", invalid="ignore")  # of points that hit 0
    print(
        "| case | planned | found | interval | planned over found | draws |\n|"
        + " --- |" * 6,
        flush=True,
    )
    for name, planned, errors, draws in cases(
        Path(sys.argv[1]) if sys.argv[1:] else None
    ):
        found, low, high = search(errors, planned, draws)
        print(
            f"| {name} | {planned} | {found} | {low} to {high} | {planned / found:.2f} | {draws} |",
            flush=True,
        )
