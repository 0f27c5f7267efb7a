"""Clusters of known shape: those of the papers' experiments, and mixtures."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import checks
from jaxkern._types import ArrayLike, DTypeLike, Float, PRNGKeyArray
from jaxkern._weights import mass
from jaxkern.draws import invert, normal_rows
from jaxkern.linalg import matmul
from jaxkern.measures._noise import IsotropicNoise, RadialNoise, per_point
from jaxkern.problems._laws import float_dtype, uniform_rows
from jaxkern.problems._problem import Problem, perturb


def nested_spheres(
    key: PRNGKeyArray,
    *,
    num_points: int,
    dim: int,
    radii: Float[ArrayLike, " R"] | Sequence[float],
    noise: Any,
    radial: bool,
    weights: Float[ArrayLike, " R"] | None = None,
    dtype: DTypeLike = float,
) -> Problem:
    """Return a Problem on concentric spheres with Gaussian noise, amini2021's running example (Sections 3.2 to 3.5).

    The means are uniform on the spheres; then X_i = mu_i + (noise/sqrt(d)) w_i with w_i ~ N(0, I) (their (8)), or
    X_i = mu_i + (noise/sqrt(d)) (mu_i/|mu_i|) xi_i with xi_i ~ N(0, 1) for radial noise (their (27)).

    Parameters
    ----------
    key : typed random key.
    num_points : n, at least 1. The first rows do not depend on it.
    dim : d, at least 2.
    radii : (R,) not negative, one cluster each.
    noise : not negative, scalar or (n,): amini2021's sigma; one coordinate has standard deviation noise / sqrt(d).
    radial : whether the noise is along the mean only; a sphere of radius 0 then gets none.
    weights : (R,) probabilities with which labels are drawn; by default the label of point i is i mod R, so that
        sizes differ by at most one. Points are NaN where one is negative, or their sum is not positive and finite.
    dtype : dtype of the points.

    Notes
    -----
    Time and memory O(n d).

    Examples
    --------
    >>> import jax
    >>> problem = nested_spheres(jax.random.key(0), num_points=6, dim=50, radii=(1, 5, 10), noise=1.5, radial=False)
    >>> problem.points.shape, problem.labels.tolist()
    ((6, 50), [0, 1, 2, 0, 1, 2])
    """
    num_points, dim = (
        checks.count("num_points", num_points),
        checks.count("dim", dim, minimum=2),
    )
    dtype, radial = float_dtype(dtype), checks.flag("radial", radial)
    radii = _numbers("radii", radii, dtype)
    weights = _weights(weights, radii.shape[0], dtype)
    checks.non_negative("noise", noise)
    key, noise_key = jax.random.split(checks.key(key))
    means, labels = _spheres(key, radii, weights, num_points=num_points, dim=dim)
    return perturb(
        noise_key,
        means,
        RadialNoise(per_point("noise", noise, means)) if radial else noise,
        labels=labels,
    )


def circles(
    key: PRNGKeyArray,
    *,
    num_points: int = 500,
    radii: Any = (1.0, 3.0),
    noise: Any = 0.3,
    dtype: DTypeLike = float,
) -> Problem:
    """Return noisy concentric circles in the plane: `nested_spheres` with dim 2 and isotropic noise.

    Parameters
    ----------
    key, num_points, radii, noise, dtype : as in `nested_spheres`.
    """
    return nested_spheres(
        key,
        num_points=num_points,
        dim=2,
        radii=radii,
        noise=noise,
        radial=False,
        dtype=dtype,
    )


def cluster_in_cluster(
    key: PRNGKeyArray,
    *,
    num_points: int = 5000,
    radius: Any = 1.0,
    ring: tuple[Any, Any] = (4.0, 5.0),
    noise: Any = 0.1,
    dtype: DTypeLike = float,
) -> Problem:
    """Return a disc (label 0) inside a ring (label 1), in the plane: the shape of kpotufe2020, Figure 1 (left).

    The paper gives the name and 5000 points, but no numbers; sizes and noise are ours. Means are uniform in area, and
    points are the means plus isotropic Gaussian noise. Labels alternate.

    Parameters
    ----------
    key, num_points, noise, dtype : as in `nested_spheres`, with d = 2.
    radius : of the disc, not negative.
    ring : inner and outer radius of the ring, not negative.
    """
    return _disc_and_ring(key, num_points, radius, ring, 1.0, noise, dtype)


def crescent_full_moon(
    key: PRNGKeyArray,
    *,
    num_points: int = 5000,
    radius: Any = 1.0,
    crescent: tuple[Any, Any] = (2.0, 3.0),
    noise: Any = 0.1,
    dtype: DTypeLike = float,
) -> Problem:
    """Return a disc (label 0) above a half ring (label 1) around it: the shape of kpotufe2020, Figure 1 (right).

    Parameters
    ----------
    key, num_points, radius, noise, dtype : as in `cluster_in_cluster`, the disc being the moon.
    crescent : inner and outer radius of the half ring below it, not negative.
    """
    return _disc_and_ring(key, num_points, radius, crescent, 0.5, noise, dtype)


def gaussian_mixture(
    key: PRNGKeyArray,
    *,
    num_points: int = 500,
    dim: int = 2,
    num_clusters: int = 3,
    separation: Any = 5.0,
    noise: Any = 1.0,
    centers: Float[ArrayLike, "num_clusters dim"] | None = None,
    weights: Float[ArrayLike, " num_clusters"] | None = None,
    dtype: DTypeLike = float,
) -> Problem:
    """Return a mixture of Gaussians N(center_k, (noise^2 / d) I).

    Parameters
    ----------
    key, num_points : as in `nested_spheres`.
    dim : d, at least 1.
    num_clusters : number of components, at least 1.
    separation : root mean square distance between two random centres, not negative.
    noise : not negative, scalar or (n,): a point is about this far from its centre.
    centers : (num_clusters, dim) to take instead of random ones; then `separation` does not matter.
    weights : (num_clusters,) probabilities with which labels are drawn; by default label i is i mod num_clusters.
        Points are NaN where one is negative, or their sum is not positive and finite.
    dtype : dtype of the points, unless centers are given.

    Returns
    -------
    Problem with points (n, d), each mean a centre.
    """
    num_points, dim = checks.count("num_points", num_points), checks.count("dim", dim)
    num_clusters, dtype = checks.count("num_clusters", num_clusters), float_dtype(dtype)
    checks.non_negative("separation", separation)
    checks.non_negative("noise", noise)
    center_key, label_key, noise_key = jax.random.split(checks.key(key), 3)
    if centers is None:
        scale = checks.scalar("separation", separation, dtype) / math.sqrt(2 * dim)
        centers = scale * normal_rows(center_key, num_clusters, dim, dtype)
    centers = checks.matrix("centers", centers, dim=dim)
    if centers.shape[0] != num_clusters:
        raise ValueError(
            f"centers must have shape ({num_clusters}, {dim}), got {centers.shape}"
        )
    weights = _weights(weights, num_clusters, centers.dtype)
    labels, known = _labels(label_key, weights, centers, num_points=num_points)
    return perturb(
        noise_key, jnp.take(known, labels, axis=0, mode="clip"), noise, labels=labels
    )


def random_noisy(
    key: PRNGKeyArray,
    *,
    num_points: int = 20_000,
    dim: int = 1000,
    signal_dim: int = 50,
    zeta: Any = 10.0,
    dtype: DTypeLike = float,
) -> Problem:
    """Return A = S D U + F / zeta, the data set RandomNoisy of ghashami2016 (Section 4).

    S (n, s) and F (n, d) have independent N(0, 1) entries, D = diag(1 - (i - 1)/d), i = 1, ..., s, and U (s, d) has
    uniformly random orthonormal rows. The means are the rows of S D U, and there is one label, 0.

    Parameters
    ----------
    key, num_points, dtype : as in `nested_spheres`.
    dim, signal_dim : d, at least 1, and s, between 1 and d.
    zeta : positive; one coordinate of the noise has standard deviation 1/zeta.

    Returns
    -------
    Problem with points (n, d), whose noise is isotropic of level sqrt(d) / zeta.

    Notes
    -----
    Time O(n s d + d s^2), memory O(n d).
    """
    num_points, dim, dtype = (
        checks.count("num_points", num_points),
        checks.count("dim", dim),
        float_dtype(dtype),
    )
    signal_dim = checks.count(
        "signal_dim", signal_dim, maximum=dim, limit="the dimension"
    )
    level = math.sqrt(dim) / checks.scalar("zeta", checks.positive("zeta", zeta), dtype)
    key, noise_key = jax.random.split(checks.key(key))
    means = _signal(
        key, num_points=num_points, dim=dim, signal_dim=signal_dim, dtype=dtype
    )
    return perturb(noise_key, means, IsotropicNoise(level))


def _disc_and_ring(
    key: Any,
    num_points: int,
    radius: Any,
    ring: Any,
    turn: float,
    noise: Any,
    dtype: Any,
) -> Problem:
    num_points, dtype = checks.count("num_points", num_points), float_dtype(dtype)
    checks.non_negative("noise", noise)
    edges = _numbers("radius and ring", (0.0, radius, *ring), dtype)
    if edges.shape != (4,):
        raise ValueError(f"ring must be an inner and an outer radius, got {ring!r}")
    key, noise_key = jax.random.split(checks.key(key))
    means, labels = _plane(key, edges, num_points=num_points, turn=turn)
    return perturb(noise_key, means, noise, labels=labels)


def _numbers(name: str, value: Any, dtype: Any) -> jax.Array:
    """Return a list of non-negative numbers as a vector of the given dtype, or raise."""
    array = checks.as_array(name, checks.non_negative(name, value))
    if array.ndim != 1 or array.shape[0] < 1:
        raise ValueError(
            f"{name} must be a list of at least one number, got shape {array.shape}"
        )
    if not (
        jnp.issubdtype(array.dtype, jnp.floating)
        or jnp.issubdtype(array.dtype, jnp.integer)
    ):
        raise ValueError(f"{name} must be real numbers, got dtype {array.dtype}")
    return array.astype(dtype)


def _weights(value: Any, size: int, dtype: Any) -> jax.Array | None:
    """Return probabilities as a vector of the given size and dtype, or None."""
    if value is None:
        return None
    numbers = _numbers("weights", value, dtype)
    given = value.astype(dtype) if isinstance(value, np.ndarray) else numbers
    return checks.weights(given, "weights", jnp.zeros(size, dtype))


@partial(jax.jit, static_argnames=("num_points",))
def _labels(
    key: jax.Array, weights: jax.Array | None, clusters: jax.Array, *, num_points: int
) -> tuple[jax.Array, jax.Array]:
    """Return the labels of points, and the clusters (R,) or (R, d): NaN if the weights are none, which no label is."""
    if weights is None:
        return jnp.arange(num_points, dtype=jnp.int32) % clusters.shape[0], clusters
    labels = invert(
        weights, uniform_rows(key, num_points, 1, weights.dtype)[:, 0]
    ).astype(jnp.int32)
    return labels, clusters + 0 * mass(weights)


@partial(jax.jit, static_argnames=("num_points", "dim"))
def _spheres(
    key: jax.Array,
    radii: jax.Array,
    weights: jax.Array | None,
    *,
    num_points: int,
    dim: int,
) -> tuple[jax.Array, jax.Array]:
    label_key, key = jax.random.split(key)
    labels, radii = _labels(label_key, weights, radii, num_points=num_points)
    rows = normal_rows(key, num_points, dim, radii.dtype)
    return radii[labels][:, None] * (
        rows / jnp.sqrt(jnp.sum(rows * rows, axis=1, keepdims=True))
    ), labels


@partial(jax.jit, static_argnames=("num_points", "turn"))
def _plane(
    key: jax.Array, edges: jax.Array, *, num_points: int, turn: float
) -> tuple[jax.Array, jax.Array]:
    """Return means in the disc of radius edges[1], or in the ring between edges[2] and edges[3], and their labels.

    The ring is a whole one (turn 1) or its lower half (turn 1/2).
    """
    labels = jnp.arange(num_points, dtype=jnp.int32) % 2
    uniform = uniform_rows(key, num_points, 2, edges.dtype)
    low, high = edges[2 * labels] ** 2, edges[2 * labels + 1] ** 2
    radius = jnp.sqrt(low + (high - low) * uniform[:, 0])
    turns = jnp.asarray([1, turn], edges.dtype)[labels]
    angle = -2 * math.pi * turns * uniform[:, 1]
    return radius[:, None] * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1), labels


@partial(jax.jit, static_argnames=("num_points", "dim", "signal_dim", "dtype"))
def _signal(
    key: jax.Array, *, num_points: int, dim: int, signal_dim: int, dtype: Any
) -> jax.Array:
    key_s, key_u = jax.random.split(key)
    S = normal_rows(key_s, num_points, signal_dim, dtype)
    Q, R = jnp.linalg.qr(normal_rows(key_u, dim, signal_dim, dtype))
    # Without the signs of the diagonal of R the columns of Q are not uniformly distributed.
    U = (Q * jnp.where(jnp.diagonal(R) < 0, -1, 1).astype(dtype)[None, :]).T
    decay = 1 - jnp.arange(signal_dim).astype(dtype) / dim
    return matmul(S * decay[None, :], U)
