"""A thousand small data sets at once, against a loop over them: of one size, and of sizes from 50 to 300."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial.distance import pdist
from sklearn.decomposition import KernelPCA
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.random_projection import GaussianRandomProjection

from benchmarks._case import Case, Work, agree
from benchmarks._data import ROUNDING, clouds, exact_gram, gamma
from benchmarks.clustering import spectral_peer
from jaxkern import clustering, features, kernels, ragged
from jaxkern.kmeans import kmeans

DIM, CLUSTERS, SCALE, FEATURES, COMPONENTS = 5, 3, 3.0, 32, 5
KERNEL = kernels.Gaussian(SCALE)
rbf = partial(rbf_kernel, gamma=gamma(SCALE))


def problems(sizes: Sequence[int]) -> list[np.ndarray]:
    """Return clouds of points of these sizes."""
    return [clouds(n, DIM, CLUSTERS, 3.0, seed)[0] for seed, n in enumerate(sizes)]


def grams(sets: Sequence[np.ndarray]) -> np.ndarray:
    """Return the Gram matrices of sets of one size."""
    return np.stack([exact_gram(X, X, SCALE) for X in sets]).astype(np.float32)


@partial(jax.jit, static_argnames="together")
def labels_by_grams(keys: jax.Array, Ks: jax.Array, together: int = 50) -> jax.Array:
    """Return the labels of many small problems in one call, so many side by side: by default what a cache holds."""

    def labels(given: tuple[jax.Array, jax.Array]) -> jax.Array:
        return clustering.spectral_from_gram(*given, CLUSTERS).labels

    return jax.lax.map(labels, (keys, Ks), batch_size=together)


def _sizes(small: bool, equal: bool) -> list[int]:
    count, n = (5, 60) if small else (1000, 200)
    return (
        [n] * count
        if equal
        else [
            int(m)
            for m in np.random.default_rng(0).integers(n // 4, 3 * n // 2 + 1, count)
        ]
    )


def _same_partitions(
    sets: Sequence[np.ndarray], ours: Any, peers: Mapping[str, Any]
) -> dict[str, float]:
    """Compare with the same k-means of LAPACK's eigenvectors in float64; one set of 1,000 may have a tie."""
    (theirs,) = peers.values()
    pairs = [np.linalg.eigh(exact_gram(X, X, SCALE)) for X in sets]
    rows = [
        (vectors * values)[:, -CLUSTERS:].astype(np.float32)
        for values, vectors in pairs
    ]
    wanted = _mapping(
        lambda R, w, key: kmeans(key, R, CLUSTERS, weights=w, num_restarts=10).labels,
        rows,
    )()
    differ = [
        adjusted_rand_score(full, np.asarray(own)) < 1
        for full, own in zip(wanted, ours, strict=True)
    ]
    agreement = [
        adjusted_rand_score(other, np.asarray(own))
        for other, own in zip(theirs, ours, strict=True)
    ]
    report = {"mean agreement with scikit-learn": float(np.mean(agreement))}
    return report | agree("share unlike the full decomposition", np.mean(differ), 1e-3)


def _spectral(small: bool, *, equal: bool, by_grams: bool) -> Work:
    sets = problems(_sizes(small, equal))
    if by_grams:
        Ks = grams(sets)
        keys, there = jax.random.split(jax.random.key(0), len(sets)), jnp.asarray(Ks)
        return Work(
            ours=lambda: labels_by_grams(keys, there),
            peers={
                "sklearn SpectralClustering": lambda: [
                    spectral_peer(K, CLUSTERS) for K in Ks
                ]
            },
            check=partial(_same_partitions, sets),
            items=len(sets),
            unit="problems",
        )
    return _mapped(
        sets,
        lambda X, w, key: (
            clustering.kernel_spectral(key, KERNEL, X, CLUSTERS, weights=w).labels
        ),
        {"sklearn SpectralClustering": lambda X: spectral_peer(rbf(X), CLUSTERS)},
        partial(_same_partitions, sets),
    )


def _mapping(f: Callable[..., Any], sets: Sequence[np.ndarray]) -> Callable[[], Any]:
    return partial(
        ragged.map, f, ragged.pack(sets), jax.random.split(jax.random.key(0), len(sets))
    )


def _mapped(
    sets: Sequence[np.ndarray],
    f: Callable[..., Any],
    peers: Mapping[str, Callable[[np.ndarray], Any]],
    check: Callable[[Any, Mapping[str, Any]], dict[str, float]],
) -> Work:
    """One call of `ragged.map` against loops over the sets."""
    return Work(
        ours=_mapping(f, sets),
        peers={
            name: partial(lambda peer: [peer(X) for X in sets], peer)
            for name, peer in peers.items()
        },
        check=check,
        items=len(sets),
        unit="data sets",
    )


def _kernel_jl(small: bool) -> Work:
    def check(ours: Any, peers: Mapping[str, Any]) -> dict[str, float]:
        """Both are the Gram matrix times normal draws: their mean squares agree, up to the scale n^2 d."""
        (theirs,) = peers.values()
        size = np.mean([np.sum(np.square(P)) for P in ours]) * len(sets[0]) ** 3
        return agree(
            "difference of the mean squares",
            abs(size / np.mean([np.sum(np.square(Z)) for Z in theirs]) - 1),
            0.2,
        )

    sets = problems(_sizes(small, equal=True))
    return _mapped(
        sets,
        lambda X, w, key: (
            features.kernel_jl(
                key, KERNEL, X, num_features=FEATURES, weights=w
            ).projection
        ),
        {
            "sklearn projection": lambda X: GaussianRandomProjection(
                FEATURES, random_state=0
            ).fit_transform(rbf(X))
        },
        check,
    )


def _kernel_pca(small: bool) -> Work:
    def check(ours: Any, peers: Mapping[str, Any]) -> dict[str, float]:
        wanted = np.stack([model.eigenvalues_ for model in peers["sklearn KernelPCA"]])
        return agree(
            "error of the eigenvalues",
            np.max(np.abs(np.stack(ours) / wanted - 1)),
            ROUNDING,
        )

    sets = problems(_sizes(small, equal=True))
    return _mapped(
        sets,
        lambda X, w, _: (
            features.kernel_pca(
                KERNEL, X, num_components=COMPONENTS, weights=w
            ).eigenvalues
        ),
        {
            "sklearn KernelPCA": lambda X: KernelPCA(
                COMPONENTS, kernel="rbf", gamma=gamma(SCALE)
            ).fit(X)
        },
        check,
    )


def _lengthscales(small: bool) -> Work:
    def check(ours: Any, peers: Mapping[str, Any]) -> dict[str, float]:
        wanted = np.asarray(peers["scipy pdist"])
        return agree(
            "error of the medians", np.max(np.abs(np.asarray(ours) / wanted - 1)), 1e-5
        )

    return _mapped(
        problems(_sizes(small, equal=True)),
        lambda X, w, _: kernels.quantile_lengthscale(X, 0.5, weights=w),
        {"scipy pdist": lambda X: np.median(pdist(X))},
        check,
    )


def _case(
    name: str, what: str, make: Callable[[bool], Work], peer: str, at_least: float
) -> Case:
    return Case(name, what, make, {peer: at_least}, rounds=3, one_blas_thread=True)


_PEER = "sklearn SpectralClustering"
CASES = (
    _case(
        "small-spectral",
        "1,000 spectral clusterings of 200 points by their Gram matrices, 3 clusters each",
        partial(_spectral, equal=True, by_grams=True),
        _PEER,
        8,
    ),
    _case(
        "small-spectral-points",
        "the same, of points",
        partial(_spectral, equal=True, by_grams=False),
        _PEER,
        8,
    ),
    _case(
        "small-spectral-unequal",
        "the same, of 50 to 300 points",
        partial(_spectral, equal=False, by_grams=False),
        _PEER,
        8,
    ),
    _case(
        "small-kernel-jl",
        "1,000 Kernel JL maps of 32 features fitted to 200 points",
        _kernel_jl,
        "sklearn projection",
        10,
    ),
    _case(
        "small-kernel-pca",
        "1,000 kernel PCAs of 200 points, 5 components",
        _kernel_pca,
        "sklearn KernelPCA",
        10,
    ),
    _case(
        "small-lengthscales",
        "1,000 medians of the distances of 200 points",
        _lengthscales,
        "scipy pdist",
        10,
    ),
)
