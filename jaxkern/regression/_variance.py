"""The posterior variance of a Gaussian process, between two limits, by products that never hold n x n."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern._blocks import by_blocks
from jaxkern._distances import safe_sqrt
from jaxkern._types import Array, ArrayLike, Float, PRNGKeyArray
from jaxkern.gram import _gram
from jaxkern.kernels import KernelLike
from jaxkern.regression._certificate import (
    System,
    _up,
    entry_error,
    factor_of,
    length,
    narrowed,
)
from jaxkern.regression._ridge import _arguments, _choice
from jaxkern.regression._span import _preconditioner, _solved, _span

_BLOCK = 256


def posterior_variance(
    key: PRNGKeyArray,
    kernel: KernelLike,
    X: Float[ArrayLike, "n d"],
    points: Float[ArrayLike, "q d"],
    *,
    regularization: float | Float[Array, ""],
    num_landmarks: int,
    landmarks: str = "uniform",
    weights: Float[ArrayLike, " n"] | None = None,
) -> tuple[Float[Array, " q"], Float[Array, " q"]]:
    """Bound the posterior variance K(x, x) - k_x' (K + regularization)^{-1} k_x from below and from above.

    It is the variance of f(x) for a Gaussian process f of covariance K that is seen at the rows of X with independent
    noise of variance `regularization`, and the square of the width by which `Ridge.bound_at` multiplies a radius.

    Parameters
    ----------
    key, kernel, X, regularization, landmarks, weights : as for `ridge`; a weight divides the variance of the
        noise of its row.
    points : (q, d) in the dtype of X, where the variance is asked for.
    num_landmarks : m, in [1, n], of the choice. With delta = |K - Khat|_2 / regularization the limits are at most
        delta^2 (1 + delta) k_x' (K + regularization)^{-1} k_x apart, up to rounding.

    Returns
    -------
    (lower, upper), (q,) each, rounding included: 0 <= lower <= upper <= K(x, x), up to rounding. They are 0 and
    infinite where the kernel is a user's function, whose rounding is not known, and NaN where points are not finite.

    Raises
    ------
    ValueError
        As `ridge`.

    Notes
    -----
    Time O(q n^2) for products with the n x n Gram matrix, in tiles, never held; n^2 kernel evaluations for every 256
    points, and O(n m^2) once for all; memory O(n m). Source: `docs/theory/regression.md`, Theorem 4.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.uniform(jax.random.key(0), (500, 2))
    >>> at = jax.random.uniform(jax.random.key(1), (3, 2))
    >>> lower, upper = posterior_variance(
    ...     jax.random.key(2), Gaussian(0.5), X, at, regularization=0.1, num_landmarks=100
    ... )
    >>> bool((lower <= upper).all()), bool((upper < 0.01).all())
    (True, True)
    """
    X = checks.matrix("X", X)
    points = checks.same_dtype(
        "points", checks.matrix("points", points, dim=X.shape[1]), "X", X
    )
    key, system, _ = _arguments(
        key, kernel, X, jnp.zeros_like(X[:, 0]), regularization, weights
    )
    count = checks.count(
        "num_landmarks", num_landmarks, maximum=X.shape[0], limit="the number of points"
    )
    choice = _choice(landmarks)
    return _limits(key, system, points, num_landmarks=count, choice=choice)


@partial(jax.jit, static_argnames=("num_landmarks", "choice"))
def _limits(
    key: jax.Array,
    system: System,
    points: jax.Array,
    *,
    num_landmarks: int,
    choice: str,
) -> tuple[jax.Array, jax.Array]:
    span = _span(key, system, num_landmarks, choice)
    factor = factor_of(system.kernel, span.points, span.roots, system.regularization)
    given = system, *_preconditioner(system, span), span.points, span.roots, factor
    limits = by_blocks(_of_block, given, points, block_size=_BLOCK)
    # No row and no point is far enough to be none.
    fine = jnp.isfinite(system.points).all() & jnp.isfinite(points).all(axis=1)
    limits = jnp.where(fine[:, None], limits, jnp.nan)
    return limits[:, 0], limits[:, 1]


def _of_block(given: Any, points: jax.Array) -> jax.Array:
    system, Z, inner, landmarks, roots, factor = given
    kernel, regularization = system.kernel, system.regularization
    unit, n = float(jnp.finfo(points.dtype).eps), system.points.shape[0]
    # The columns k of the rows are the labels of one problem for each point, up to an error of their own.
    system = System(
        kernel,
        system.points,
        system.roots,
        _gram(kernel, system.points, points),
        regularization,
    )
    k, diagonal = system.roots[:, None] * system.labels, kernel._diagonal(points)
    entry = (
        jnp.maximum(
            entry_error(kernel, system.points, points),
            entry_error(kernel, points, points),
        )
        + 4 * unit
    )
    own = safe_sqrt(jnp.abs(kernel._diagonal(system.points))) * system.roots
    of_k = entry * own[:, None] * safe_sqrt(jnp.abs(diagonal))[None, :] * (1 + entry)
    q = _solved(regularization, Z, inner, k)
    rho, error = system.residual(q, *system.product(q))
    error = error + of_k
    # For every q the variance is U - rho' (K + lambda)^{-1} rho with U = K(x, x) - q' (k + rho).
    terms = jnp.abs(q) * (jnp.abs(k) + jnp.abs(rho))
    lost = jnp.sum(jnp.abs(q) * (error + of_k) + (n + 16) * unit * terms, axis=0)
    lost = _up(lost, n) + (entry + 8 * unit) * diagonal
    upper = diagonal - jnp.sum(q * (k + rho), axis=0)
    least = upper - lost - _up((length(rho) + length(error)) ** 2 / regularization, 8)
    # By Jensen's inequality, for the spectral measure of K_x.
    squares = _up(jnp.sum((jnp.abs(k) + of_k) ** 2, axis=0), n)
    simple = (
        diagonal
        * (diagonal / (diagonal + squares / regularization))
        * (1 - 2 * entry - 32 * unit)
    )
    lower = jnp.fmax(jnp.fmax(least, jnp.where(diagonal > 0, simple, 0)), 0)
    narrow = narrowed(kernel, landmarks, roots, factor, regularization, points)
    broken = 0 * (
        jnp.sum(k, axis=0) + jnp.sum(inner)
    )  # NaN where a kernel value is not finite
    return (
        jnp.stack([lower, _up(jnp.fmin(upper + lost, narrow**2), 8)], axis=1)
        + broken[:, None]
    )
