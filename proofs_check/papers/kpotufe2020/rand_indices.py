"""The protocol of Table 2 and Figure 2 of kpotufe2020: data, embeddings, k-means, Rand indices of many repetitions."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import checks, features, landmarks
from jaxkern.kernels import Gaussian, quantile_lengthscale
from jaxkern.kmeans import kmeans
from jaxkern.metrics import rand_index
from proofs_check.papers.figures import read_labelled

METHODS = ("k-means", "K-k-means", "KPCA", "K-JL")
FILES = {"avila": "avila.npz", "iot": "nbaiot.npz", "banknote": "banknote.npz"}
IOT_DEVICES = (0, 3, 4, 5, 6)
IOT_PER_DEVICE = 2000
BATCH_ELEMENTS = 2**26  # of the embedded points of a batch: 256 MB in float32
MAX_ITERATIONS = 100


def iot_sample(
    X: np.ndarray, y: np.ndarray, *, per_device: int = IOT_PER_DEVICE
) -> tuple[np.ndarray, np.ndarray]:
    """Return `per_device` rows (or as many as there are) of each of IOT_DEVICES, (N, dim) and (N,).

    The rows are chosen once for all. Raises ValueError if a device has no row.
    """
    rng = np.random.default_rng(0)
    if not set(IOT_DEVICES) <= set(y.tolist()):
        raise ValueError(f"y must have rows of every device of {IOT_DEVICES}")
    rows = [
        rng.permutation(np.flatnonzero(y == device))[:per_device]
        for device in IOT_DEVICES
    ]
    chosen = np.concatenate(rows)
    return X[chosen], y[chosen]


def standardise(X: Any) -> np.ndarray:
    """Return X, (N, dim), with mean 0 and variance 1 in every column; a constant column becomes 0."""
    X = np.asarray(X, np.float64)
    X = X - X.mean(0)
    deviation = X.std(0)
    return X / np.where(deviation > 0, deviation, 1)


class Clusters(NamedTuple):
    """Points to cluster, their true classes numbered from 0, the number of these, and the kernel."""

    X: Any
    truth: jax.Array
    k: int
    kernel: Any


def clusters(X: Any, labels: Any, width: Any = None) -> Clusters:
    """Return points (N, dim) with labels (N,), and the Gaussian kernel of a width, by default the 25th percentile.

    Raises ValueError where they do not fit.
    """
    X = checks.matrix("X", X, min_rows=2)
    labels = checks.labels("labels", labels, size=X.shape[0])
    classes, numbered = np.unique(np.asarray(labels), return_inverse=True)
    truth = jnp.asarray(numbered.reshape(-1), jnp.int32)
    if width is None:
        width = quantile_lengthscale(X, 0.25)
    return Clusters(X, truth, len(classes), Gaussian.from_width(width))


def load(
    folder: Path, name: str, *, per_device: int = IOT_PER_DEVICE
) -> tuple[np.ndarray, np.ndarray]:
    """Return the points (N, dim) and the labels (N,) of a data set, one of FILES, as the file has them."""
    X, labels = read_labelled(folder / FILES[name])
    if name == "iot":
        return iot_sample(X, labels, per_device=per_device)
    return X, labels


class Sizes(NamedTuple):
    """Clusters, landmarks and features."""

    k: int
    n: int
    d: int


def repeated(
    method: str,
    problem: Clusters,
    n: int,
    d: int,
    *,
    repetitions: int,
    seed: int = 0,
    batch_size: int | None = None,
) -> np.ndarray:
    """Return the Rand indices of repetitions with n landmarks and d features, (repetitions,).

    Repetition i depends on the seed and i alone.

    batch_size : repetitions embedded together; by default what BATCH_ELEMENTS numbers hold. It does not change results
        beyond rounding.

    Raises ValueError if n is larger than the number of points.
    """
    X, truth, k, kernel = problem
    checks.count("num_landmarks", n, maximum=len(X), limit="the number of points")
    if batch_size is None:
        batch_size = max(1, BATCH_ELEMENTS // (len(X) * d))
    # Equal batches: the last one is filled up with repetitions that are thrown away.
    batches = -(-repetitions // batch_size)
    batch = -(-repetitions // batches)
    numbers = jnp.arange(batches * batch, dtype=jnp.uint32).reshape(batches, batch)
    key = jax.random.key(seed)
    sizes = Sizes(k=k, n=n, d=d)
    parts = [
        rand_indices(method, key, part, kernel, X, truth, sizes=sizes)
        for part in numbers
    ]
    return np.concatenate(parts).astype(np.float64)[:repetitions]


def rand_indices(
    method: str,
    key: Any,
    numbers: jax.Array,
    kernel: Any,
    X: jax.Array,
    truth: jax.Array,
    *,
    sizes: Sizes,
) -> jax.Array:
    """Return the Rand indices of the repetitions with these numbers, (batch,)."""
    Z = X
    if method != "k-means":
        Z = embeddings(key, numbers, kernel, X, method=method, sizes=sizes)
    number = METHODS.index(method)
    return _scores(key, numbers, Z, truth, number_of_method=number, k=sizes.k)


@partial(jax.jit, static_argnames=("method", "sizes"))
def embeddings(
    key: Any,
    numbers: jax.Array,
    kernel: Any,
    X: jax.Array,
    *,
    method: str,
    sizes: Sizes,
) -> jax.Array:
    """Return the points as the repetitions with these numbers embed them, (batch, N, d)."""

    def one(number: jax.Array) -> jax.Array:
        key_landmarks, key_sketch, _ = _keys(key, number)
        L = landmarks.uniform(key_landmarks, X, num_landmarks=sizes.n)
        d = sizes.d
        phi: Any
        if method == "K-k-means":
            phi = features.nystrom(kernel, L, rank=d)
        elif method == "KPCA":
            phi = features.kernel_pca(kernel, L, num_components=d, normalized=False)
        else:
            phi = features.kernel_jl(
                key_sketch, kernel, L, num_features=d, centered=True
            )
        return phi(X)

    return jax.vmap(one)(numbers)


@partial(jax.jit, static_argnames="k")
def _scores(
    key: Any,
    numbers: jax.Array,
    Z: jax.Array,
    truth: jax.Array,
    *,
    number_of_method: int,
    k: int,
) -> jax.Array:
    def one(number: jax.Array, Z: jax.Array) -> jax.Array:
        key_clustering = jax.random.fold_in(_keys(key, number)[2], number_of_method)
        # k-means does not depend on the scale, but float32 does on a very small one.
        spread = jnp.sqrt(jnp.sum(jnp.var(Z, axis=0)))
        Z = Z / jnp.where(spread > 0, spread, 1)
        fit = kmeans(
            key_clustering,
            Z,
            k,
            max_iterations=MAX_ITERATIONS,
            tolerance=0.0,
            num_candidates=1,
        )
        return rand_index(truth, fit.labels)

    def in_turn(numbers: jax.Array, Z: jax.Array) -> jax.Array:
        if Z.ndim == 2:
            return lax.map(lambda number: one(number, Z), numbers)
        return lax.map(lambda pair: one(*pair), (numbers, Z))

    # One processor gains nothing from a batch, which ends only when the slowest of its repetitions does.
    at_once = jax.vmap(one, (0, None if Z.ndim == 2 else 0))
    return lax.platform_dependent(numbers, Z, cpu=in_turn, default=at_once)


def _keys(key: Any, number: jax.Array) -> Any:
    """Return the keys of a repetition for landmarks, sketch and clustering."""
    return jax.random.split(jax.random.fold_in(key, number), 3)
