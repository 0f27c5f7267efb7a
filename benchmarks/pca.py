"""Kernel principal components: of all points at once, and of a stream of features."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.decomposition import IncrementalPCA, KernelPCA

from benchmarks._case import Case, Work, agree
from benchmarks._data import gamma, lengthscale, points
from benchmarks._floor import decomposition, small_products
from benchmarks._numpy import frequent_directions
from jaxkern import features
from jaxkern.kernels import Gaussian
from jaxkern.pytrees import pytree, static


@pytree
class Rows:
    """The map that leaves points as they are: a stream of features that others have computed."""

    num_features: int = static()

    def __call__(self, X: jax.Array) -> jax.Array:
        return X


def streamed(
    pca: features.StreamingPCA, batches: Sequence[jax.Array], num_components: int
) -> features.StreamingMap:
    """Return the leading components of a stream of batches in float32."""
    state = pca.init(jnp.float32)
    for each in batches:
        state = pca.update(state, each)
    return pca.finalize(state, num_components=num_components)


def _kernel_pca(small: bool) -> Work:
    n, dim, k = (200, 5, 4) if small else (2000, 10, 50)
    X, scale = points(n, dim), lengthscale(dim)
    there, kernel = jnp.asarray(X), Gaussian(scale)

    def theirs(solver: str) -> Any:
        model = KernelPCA(
            k,
            kernel="rbf",
            gamma=gamma(scale),
            eigen_solver=solver,
            random_state=0,
            copy_X=False,
        )
        return model.fit(X)

    def check(ours: Any, peers: Mapping[str, Any]) -> dict[str, float]:
        wanted = peers["sklearn dense"].eigenvalues_
        report: dict[str, float] = {}
        found = {
            "ours": np.asarray(ours.eigenvalues),
            "arpack": peers["sklearn arpack"].eigenvalues_,
        }
        for name, values in found.items():
            report |= agree(
                f"error of {name}", np.max(np.abs(values - wanted)) / wanted[0], 1e-3
            )
        # Approximate by design: only its largest eigenvalue is sure to agree.
        values = peers["sklearn randomized"].eigenvalues_
        report |= {
            "error of randomized": float(np.max(np.abs(values - wanted)) / wanted[0])
        }
        report |= agree(
            "error of randomized in the first",
            abs(values[0] - wanted[0]) / wanted[0],
            1e-3,
        )
        first = np.abs(
            np.corrcoef(
                np.asarray(ours(there))[:, 0], peers["sklearn dense"].transform(X)[:, 0]
            )[0, 1]
        )
        return report | agree(
            "1 - correlation of the first components", 1 - first, 1e-3
        )

    return Work(
        ours=lambda: features.kernel_pca(kernel, there, num_components=k),
        peers={
            f"sklearn {solver}": partial(theirs, solver)
            for solver in ("dense", "arpack", "randomized")
        },
        check=check,
        items=n,
        unit="points",
    )


def _streaming(small: bool) -> Work:
    """Ours, incremental PCA and Frequent Directions by hand get the same features in batches of the same size."""
    rows, m, size = (1200, 40, 6) if small else (100_000, 1000, 50)
    leading = size // 2  # of a sketch of l rows the last ones have lost what was shrunk
    dim = 20
    draw = features.paired_fourier(
        jax.random.key(0),
        Gaussian(2 * lengthscale(dim)),
        dim,
        num_frequencies=m // 2,
        dtype=jnp.float32,
    )
    # A fast decay and a long tail, as features of real tables have.
    there = draw(
        jnp.asarray(
            points(rows, dim) * (np.arange(1, dim + 1) ** -0.5).astype(np.float32) * 3
        )
    )
    Z = np.asarray(there)
    batch = 5 * m  # what scikit-learn takes by default
    starts = range(0, rows, batch)
    batches = [there[start : start + batch] for start in starts]
    pca = features.streaming_pca(Rows(m), sketch_size=size, centered=True)

    def incremental(batch_size: int | None) -> np.ndarray:
        return IncrementalPCA(size, batch_size=batch_size).fit(Z).components_

    def check(ours: Any, peers: Mapping[str, Any]) -> dict[str, float]:
        scatter = np.cov(Z.T.astype(np.float64), bias=True)
        report: dict[str, float] = {}
        for name, rows in {"ours": ours, **peers}.items():
            report[f"spectral error of {name}"] = _left(
                scatter, np.asarray(rows[:leading], np.float64)
            )
        best = np.linalg.eigvalsh(scatter)[::-1][leading] / np.linalg.norm(scatter, 2)
        report["least spectral error"] = float(best)
        reference = report["spectral error of sklearn IncrementalPCA"]
        return report | agree(
            "our spectral error over sklearn's",
            report["spectral error of ours"] / reference,
            1.05,
        )

    # Full buffers are shrunk: the first after 2 l rows, then every l rows.
    shrinks = max((rows - 1) // size - 1, 1)
    return Work(
        ours=lambda: streamed(pca, batches, leading).components,
        peers={
            "sklearn IncrementalPCA": lambda: incremental(None),
            "sklearn IncrementalPCA, small batches": lambda: incremental(4 * size),
            "numpy FD by SVD": lambda: frequent_directions(Z, size, by_gram=False),
            "numpy FD by Gram": lambda: frequent_directions(Z, size, by_gram=True),
        },
        check=check,
        floor=(
            small_products("b b'", 2 * size, m, 2 * size, shrinks),
            decomposition(2 * size, shrinks),
            small_products("w b", size, 2 * size, m, shrinks),
        ),
        items=rows,
        unit="rows",
    )


def _left(scatter: np.ndarray, components: np.ndarray) -> float:
    """Return |(I - P) S (I - P)| / |S| for the projector P on the span of the rows: what the components leave."""
    basis = np.linalg.qr(components.T)[0]
    rest = np.eye(scatter.shape[0]) - basis @ basis.T
    return float(np.linalg.norm(rest @ scatter @ rest, 2) / np.linalg.norm(scatter, 2))


CASES = (
    Case(
        "kernel-pca",
        "50 centred components of 2,000 points",
        _kernel_pca,
        {"sklearn dense": 2, "sklearn arpack": 2, "sklearn randomized": 2},
    ),
    Case(
        "streaming-pca",
        "25 leading centred components of 100,000 rows of 1,000 given features, by sketches of 50 rows",
        _streaming,
        {"sklearn IncrementalPCA": 8},
        1.3,
        rounds=3,
    ),
)
