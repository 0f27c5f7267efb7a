"""Figure 1 of kpotufe2020: Kernel JL in two dimensions on cluster in cluster and on crescent and full moon.

The paper shows the N = 5,000 points of each set before and after centred Kernel JL with n = 100 landmarks and d = 2,
and says that it separates the clusters as kernel PCA does. It gives no numbers. Here the separation is counted: the
share of the points that the best line puts on the right side (for d > 2 the best hyperplane normal to Fisher's
direction), over many draws of landmarks and sketch. A draw separates when that share is at least 0.95.

The data are `jaxkern.problems.cluster_in_cluster` and `crescent_full_moon`, whose radii and noise are ours; the kernel
is exp(-|x - x'|^2 / sigma^2) with sigma the 25th percentile of the distances. The baseline is the kernel PCA of the
same landmarks.

`python -m proofs_check.papers.kpotufe2020.figure1` computes all of it; `--plot FILE` draws the figure.
"""

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxkern import checks, features, landmarks, problems
from jaxkern.kernels import Gaussian, quantile_lengthscale
from proofs_check.papers import figures

SETS = ("cluster in cluster", "crescent and full moon")
METHODS = ("K-JL", "KPCA")
POINTS, LANDMARKS, DRAWS = 5000, 100, 100
FEATURES = (2, 10)
ANGLES = 180
SEPARATED = 0.95
SHOWN = 240
COLUMNS = (
    "data",
    "d",
    "method",
    "draws that separate",
    "mean share",
    "least share",
    "largest share",
)

Separations = Mapping[tuple[str, int, str], np.ndarray]


def data(
    name: str, *, num_points: int = POINTS, seed: int = 0, dtype: Any = "float32"
) -> tuple[Any, np.ndarray]:
    """Return the points, (num_points, 2), and the labels, 0 or 1, of one of SETS.

    Raises ValueError for another name.
    """
    if name not in SETS:
        raise ValueError(f"data must be one of {', '.join(SETS)}, got {name!r}")
    draw = (
        problems.cluster_in_cluster if name == SETS[0] else problems.crescent_full_moon
    )
    problem = draw(jax.random.key(seed), num_points=num_points, dtype=dtype)
    return problem.points, np.asarray(problem.labels)


def embed(
    key: Any, X: Any, *, method: str, n: int, d: int, width: Any = None
) -> np.ndarray:
    """Return X as `method`, one of METHODS, maps it from n landmarks, (N, d). Both methods take the same landmarks.

    width : sigma, by default the 25th percentile of all distances.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    key_landmarks, key_sketch = jax.random.split(key)
    kernel = Gaussian.from_width(
        quantile_lengthscale(X, 0.25) if width is None else width
    )
    points = landmarks.uniform(key_landmarks, X, num_landmarks=n)
    if method == "K-JL":
        return np.asarray(
            features.kernel_jl(
                key_sketch, kernel, points, num_features=d, centered=True
            )(X)
        )
    return np.asarray(
        features.kernel_pca(kernel, points, num_components=d, normalized=False)(X)
    )


def separation(Z: np.ndarray, labels: np.ndarray) -> float:
    """Return the largest share of points that a half space puts on the right side, in [1/2, 1].

    For d = 2 over ANGLES directions, for others over Fisher's direction alone; over all thresholds.
    """
    Z = np.asarray(Z, float)
    Z = (Z - Z.mean(0)) / np.where(Z.std(0) > 0, Z.std(0), 1)
    sides = np.where(np.asarray(labels) == 1, 1, -1)
    if Z.shape[1] == 2:
        angles = np.arange(ANGLES) * math.pi / ANGLES
        directions = np.stack([np.cos(angles), np.sin(angles)])
    else:
        means = [Z[sides == side].mean(0) for side in (1, -1)]
        spread = sum(np.cov(Z[sides == side].T, bias=True) for side in (1, -1))
        directions = np.linalg.lstsq(spread, means[0] - means[1], rcond=None)[0][
            :, None
        ]
    best = 0
    for scores in (Z @ directions).T:
        order = np.argsort(scores)
        below = np.concatenate([[0], np.cumsum(sides[order])])
        # Ties cannot be cut, so a threshold counts only where the score changes.
        change = np.concatenate([[True], np.diff(scores[order]) > 0, [True]])
        best = max(best, int(np.max(np.abs(2 * below - sides.sum())[change])))
    return (1 + best / len(sides)) / 2


def _key(name: str, seed: int) -> Any:
    return jax.random.fold_in(jax.random.key(seed), 1 + SETS.index(name))


def figure1(
    *,
    num_points: int = POINTS,
    n: int = LANDMARKS,
    features: Sequence[int] = FEATURES,
    draws: int = DRAWS,
    seed: int = 0,
    dtype: Any = "float32",
) -> dict[tuple[str, int, str], np.ndarray]:
    """Return the separations, {(data, d, method): (draws,) array}. A draw depends on the seed and its number alone."""
    checks.count("num_landmarks", n, maximum=num_points, limit="num_points")
    checks.count("draws", draws)
    separations = {}
    for name in SETS:
        X, labels = data(name, num_points=num_points, seed=seed, dtype=dtype)
        width, key = quantile_lengthscale(X, 0.25), _key(name, seed)
        for d in features:
            for method in METHODS:
                maps = partial(embed, X=X, method=method, n=n, d=d, width=width)
                shares = [
                    separation(maps(jax.random.fold_in(key, i)), labels)
                    for i in range(draws)
                ]
                separations[name, d, method] = np.asarray(shares)
    return separations


def plot(
    pyplot: Any,
    *,
    num_points: int = POINTS,
    n: int = LANDMARKS,
    seed: int = 0,
    dtype: Any = "float32",
) -> Any:
    """Draw the points, three draws of Kernel JL and kernel PCA, for both sets; SHOWN of the points are drawn."""
    figure, axes = pyplot.subplots(2, 5, figsize=(12.5, 5))
    for row, name in zip(axes, SETS, strict=True):
        X, labels = data(name, num_points=num_points, seed=seed, dtype=dtype)
        panels = [(name, np.asarray(X))]
        for draw, method in ((0, "K-JL"), (1, "K-JL"), (2, "K-JL"), (0, "KPCA")):
            Z = embed(
                jax.random.fold_in(_key(name, seed), draw), X, method=method, n=n, d=2
            )
            panels.append(
                (
                    f"{method}, draw {draw + 1}: {separation(Z, labels):.3f}",
                    Z / np.abs(Z).max(),
                )
            )
        for axis, (title, points) in zip(row, panels, strict=True):
            for label, colour in ((0, "tab:orange"), (1, "tab:blue")):
                # A few hundred points say as much as 5,000, in a twentieth of the file.
                chosen = np.flatnonzero(labels == label)[: SHOWN // 2]
                axis.scatter(*points[chosen].T, s=4, color=colour, linewidths=0)
            axis.set_title(title, fontsize=9)
            axis.set(xticks=[], yticks=[])
    figure.tight_layout()
    return figure


def result(
    separations: Separations, about: Mapping[str, Any], path: Path | None = None
) -> figures.Result:
    """Return how often the sets are separated, and every share."""
    cells = [
        (
            name,
            str(d),
            method,
            f"{int((shares >= SEPARATED).sum())} of {len(shares)}",
            *(f"{value:.3f}" for value in (shares.mean(), shares.min(), shares.max())),
        )
        for (name, d, method), shares in separations.items()
    ]
    rows = [
        {"data": name, "d": d, "method": method, "shares": shares.tolist()}
        for (name, d, method), shares in separations.items()
    ]
    table = figures.Table(
        "kpotufe2020, Figure 1: share of points on the right side of a line",
        COLUMNS,
        cells,
    )
    return figures.Result(
        [table], about, {"rows": rows}, [("--plot", path, partial(plot, **about))]
    )


def _compute(options: argparse.Namespace, say: figures.Say) -> figures.Result:
    about = {
        "num_points": options.points,
        "n": options.landmarks,
        "seed": options.seed,
        "dtype": options.dtype,
    }
    with figures.as_usage():
        separations = figure1(features=options.features, draws=options.draws, **about)
    return result(separations, about, options.plot)


FIGURE = figures.Figure(
    "kpotufe2020_figure1",
    "Figure 1",
    "Reproduce Figure 1 of kpotufe2020, with numbers.",
    _compute,
    (
        figures.number("--points", POINTS, "N"),
        figures.number("--landmarks", LANDMARKS, "n"),
        figures.numbers("--features", FEATURES, "d"),
        figures.number("--draws", DRAWS),
        figures.plot(),
    ),
)
main = FIGURE.main

if __name__ == "__main__":
    sys.exit(main())
