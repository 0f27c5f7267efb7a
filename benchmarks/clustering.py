"""k-means, and spectral clustering by a given Gram matrix."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score

from benchmarks._case import Case, Part, Work, agree
from benchmarks._data import clouds, exact_gram
from benchmarks._floor import product
from jaxkern.clustering import spectral_from_gram
from jaxkern.kmeans import kmeans


def spectral_peer(K: np.ndarray, clusters: int) -> np.ndarray:
    """Return the labels of scikit-learn, whose eigensolver is a partial one."""
    model = SpectralClustering(
        clusters,
        affinity="precomputed",
        eigen_solver="arpack",
        n_init=10,
        random_state=0,
    )
    return model.fit(K).labels_


def _kmeans(small: bool, *, iterations: int | None) -> Work:
    """Up to `iterations` Lloyd iterations, or by default until the centres rest as scikit-learn has it."""
    rows, dim, clusters = (1500, 8, 4) if small else (200_000, 50, 10)
    X, _ = clouds(rows, dim, clusters, 0.5)
    there = jnp.asarray(X)
    most, tolerance = (300, 1e-4) if iterations is None else (iterations, 0.0)
    turns = [1]  # Lloyd iterations of ours, known when the floor is timed

    def ours() -> Any:
        return kmeans(
            jax.random.key(0), there, clusters, max_iterations=most, tolerance=tolerance
        )

    def theirs() -> Any:
        return KMeans(
            clusters,
            n_init=1,
            max_iter=most,
            tol=tolerance,
            algorithm="lloyd",
            random_state=0,
        ).fit(X)

    def check(ours: Any, peers: Mapping[str, Any]) -> dict[str, float]:
        model = peers["sklearn KMeans"]
        turns[0] = int(ours.iterations)
        report = {
            "iterations of ours": float(turns[0]),
            "iterations of sklearn": float(model.n_iter_),
        }
        gaps = (
            X.astype(np.float64)
            - np.asarray(ours.centers, np.float64)[np.asarray(ours.labels)]
        )
        report |= agree(
            "error of our objective",
            abs(float(ours.objective) / np.sum(gaps * gaps) - 1),
            1e-3,
        )
        return report | agree(
            "our inertia over sklearn's", float(ours.objective) / model.inertia_, 1.02
        )

    return Work(
        ours=ours,
        peers={"sklearn KMeans": theirs},
        check=check,
        floor=tuple(
            _repeated(part, turns)
            for part in (
                product("x c'", rows, dim, clusters),
                product("onehot' x", clusters, rows, dim),
            )
        ),
        items=rows,
        unit="points",
    )


def _repeated(part: Part, turns: list[int]) -> Part:
    def again(run: Any) -> None:
        for _ in range(turns[0]):
            result = run()
        jax.block_until_ready(result)

    return Part(
        part.name, {name: partial(again, run) for name, run in part.libraries.items()}
    )


def _spectral(small: bool) -> Work:
    n, clusters = (150, 3) if small else (2000, 5)
    X, labels = clouds(n, 5, clusters, 3.0)
    K = exact_gram(X, X, 3.0).astype(np.float32)
    there = jnp.asarray(K)

    def check(ours: Any, peers: Mapping[str, Any]) -> dict[str, float]:
        found = {
            "ours": np.asarray(ours.labels),
            "sklearn": peers["sklearn SpectralClustering"],
        }
        report = {
            f"agreement of {name} with the truth": adjusted_rand_score(labels, at)
            for name, at in found.items()
        }
        return report | agree(
            "1 - agreement of both", 1 - adjusted_rand_score(*found.values()), 0.1
        )

    return Work(
        ours=lambda: spectral_from_gram(jax.random.key(0), there, clusters),
        peers={"sklearn SpectralClustering": lambda: spectral_peer(K, clusters)},
        check=check,
        items=n,
        unit="points",
    )


CASES = (
    Case(
        "kmeans",
        "10 clusters of 200,000 points of dimension 50, one seeding, until the centres rest",
        lambda s: _kmeans(s, iterations=None),
        {"sklearn KMeans": 1},
    ),
    Case(
        "kmeans-iterations",
        "the same, at most 10 iterations",
        lambda s: _kmeans(s, iterations=10),
    ),
    Case(
        "kernel-spectral",
        "5 clusters of 2,000 points by their Gram matrix",
        _spectral,
        {"sklearn SpectralClustering": 2},
    ),
)
