"""Lengthscales learned by gradient ascent: kernel alignment with labels, or the eigengap of the embedding.

`fit_lengthscale` maximises any objective `(kernel, X) -> scalar` over the lengthscales of a kernel, sums and products
included. optax is imported when it is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import checks
from jaxkern._distances import safe_sqrt
from jaxkern._types import Array, ArrayLike, Float, Int
from jaxkern._weights import mass, present
from jaxkern.gram import _center, _gram
from jaxkern.kernels import KernelLike, as_kernel
from jaxkern.linalg import eigvalsh
from jaxkern.linalg._dense import scale_of
from jaxkern.pytrees import pytree

__all__ = ["Fit", "alignment", "eigengap", "fit_lengthscale"]


@pytree
class Fit:
    """What `fit_lengthscale` found.

    Attributes
    ----------
    kernel : the kernel with the lengthscales of the largest objective seen.
    objective : scalar, that objective.
    objectives : (num_steps + 1,), the objective before every step and at the end.
    finite : scalar bool, whether every objective and gradient was finite; where not, `kernel` is the best before.
    """

    kernel: Any
    objective: jax.Array
    objectives: jax.Array
    finite: jax.Array


def alignment(
    kernel: KernelLike,
    X: Float[ArrayLike, "n dim"],
    labels: Int[ArrayLike, " n"],
    *,
    num_labels: int,
    weights: Float[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """Return the centred alignment of a kernel with labels, <H K H, Y Y'>_F / (|H K H|_F |H Y Y' H|_F) in [-1, 1].

    Y (n, num_labels) marks the labels and H = I - 1 1'/n centres. It is 1 for a kernel that only tells the labels
    apart, and 0 by definition where the kernel or the labels are constant.

    Parameters
    ----------
    kernel : a kernel, or a function of two points.
    X : (n, dim) points, floating.
    labels : (n,) integers in [0, num_labels).
    num_labels : at least 1.
    weights : (n,) non-negative weights in the dtype of X, of any positive sum; a row of weight 0 does not exist,
        whatever it holds. By default all are 1. NumPy weights that are negative, not finite or all zero raise
        ValueError; with others that are, the result is NaN.

    Returns
    -------
    Scalar, differentiable in the kernel and the points, also where it is constant.

    Notes
    -----
    O(n^2 (dim + num_labels)) time, O(n^2) memory. Source: cortes2012, (5).
    """
    kernel = as_kernel(kernel)
    X = checks.matrix("X", X)
    labels = checks.labels("labels", labels, size=X.shape[0])
    num_labels = checks.count("num_labels", num_labels)
    return _alignment(
        kernel, X, labels, checks.weights(weights, "X", X), num_labels=num_labels
    )


def eigengap(
    kernel: KernelLike,
    X: Float[ArrayLike, "n dim"],
    *,
    num_components: int,
    weights: Float[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """Return (lambda_R - lambda_{R+1}) / tr K for the eigenvalues of the Gram matrix, R = num_components, in [0, 1].

    A wide gap is what keeps the span of the first R eigenvectors, and with it spectral clustering, apart from noise.
    It is 0 for constant kernels (R > 1) and for kernels that tell all points apart, so a maximum lies between.

    Parameters
    ----------
    kernel : a positive semidefinite kernel, or a function of two points.
    X : (n, dim) points, floating, n > num_components.
    num_components : R, in [1, n - 1].
    weights : as in `alignment`.

    Returns
    -------
    Scalar, differentiable. Where lambda_R or lambda_{R+1} is a multiple eigenvalue it has kinks; the gradient is then
    the one of some choice of eigenvectors, finite always.

    Notes
    -----
    O(n^3) time, O(n^2) memory.
    """
    kernel = as_kernel(kernel)
    X = checks.matrix("X", X, min_rows=2)
    most, said = X.shape[0] - 1, "one less than the number of points"
    count = checks.count("num_components", num_components, maximum=most, limit=said)
    return _eigengap(kernel, X, checks.weights(weights, "X", X), num_components=count)


def fit_lengthscale(
    kernel: KernelLike,
    X: Any,
    objective: Callable[[Any, Any], Any],
    *,
    num_steps: int = 100,
    learning_rate: float = 0.1,
    factor: float = 1e3,
    optimizer: Any = None,
) -> Fit:
    """Maximise objective(kernel, X) over the lengthscales of a kernel, from those it has.

    Every lengthscale l moves by gradient steps in log l and is projected to [l / factor, l * factor] of its start, so
    it stays positive; of an array of them, one for each column, every entry for itself. Other parameters
    stay as they are.

    Parameters
    ----------
    kernel : a kernel with at least one lengthscale, such as `Gaussian(1.0)` or a sum or product of several.
    X : what the objective takes next to the kernel, usually (n, dim) points; it passes through unchanged. Under `vmap`
        over data sets of different sizes a pair of points and weights, for
        `lambda kernel, data: eigengap(kernel, data[0], num_components=3, weights=data[1])`.
    objective : `(kernel, X) -> scalar`, differentiable: `partial(eigengap, num_components=3)`, or
        `lambda kernel, X: alignment(kernel, X, labels, num_labels=3)`. Compiled once for each function object.
    num_steps : gradient steps, at least 1.
    learning_rate : step of Adam in log l, positive.
    factor : how far a lengthscale may go from its start, above 1.
    optimizer : an optax optimizer to use instead of `optax.adam(learning_rate)`.

    Returns
    -------
    Fit: the best kernel seen, its objective, all objectives, and whether all numbers were finite.

    Notes
    -----
    num_steps + 1 evaluations of the objective and num_steps gradients. Objectives are seldom concave: start
    from a quantile of the distances (`kernels.quantile_lengthscale`), or vmap over stacked kernels of several starts.

    Examples
    --------
    >>> from functools import partial
    >>> import jax
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (30, 2))
    >>> fit_lengthscale(Gaussian(1.0), X, partial(eigengap, num_components=2), num_steps=5).objectives.shape
    (6,)
    """
    kernel = as_kernel(kernel)
    num_steps = checks.count("num_steps", num_steps)
    if not checks.is_static(checks.positive("learning_rate", learning_rate)):
        raise ValueError(
            f"learning_rate must be a static number, got {learning_rate!r}"
        )
    checks.numbers("learning_rate", learning_rate)
    if not (checks.is_static(factor) and factor > 1):
        raise ValueError(f"factor must be a number above 1, got {factor!r}")
    if not any(
        _is_lengthscale(path) for path, _ in jax.tree_util.tree_leaves_with_path(kernel)
    ):
        raise ValueError(
            f"kernel must have a lengthscale to learn, got {type(kernel).__name__}"
        )
    if optimizer is None:
        optimizer = _adam(learning_rate)
    X = jax.tree.map(partial(checks.as_array, "X"), X)
    reach = math.log(float(factor))
    return _fit(
        kernel,
        X,
        objective=objective,
        optimizer=optimizer,
        num_steps=num_steps,
        reach=reach,
    )


@cache
def _adam(learning_rate: float) -> Any:
    """Return one and the same object for one rate: programs are compiled for each optimizer."""
    import optax

    return optax.adam(learning_rate)


@partial(jax.jit, static_argnames="num_labels")
def _alignment(
    kernel: Any,
    X: jax.Array,
    labels: jax.Array,
    weights: jax.Array | None,
    *,
    num_labels: int,
) -> jax.Array:
    numbers = jnp.arange(num_labels)
    if weights is not None:
        total, X = mass(weights), present(X, weights)
        labels = jnp.where(weights > 0, labels, labels[jnp.argmax(weights)])
    marks = (labels.astype(numbers.dtype)[:, None] == numbers[None, :]).astype(X.dtype)
    K = _gram(kernel, X)
    K = K / scale_of(K)
    if weights is None:
        marks, K = marks - marks.mean(axis=0, keepdims=True), _center(K)
    else:
        share = (weights / total)[:, None]
        roots = safe_sqrt(share)
        marks, K = (
            marks - marks[:1],
            roots * _center(K, weights) * roots.T,
        )  # exactly zero of what is constant
        marks = roots * (marks - jnp.sum(share * marks, axis=0, keepdims=True))
    both = jnp.sum(marks * jnp.matmul(K, marks, precision=lax.Precision.HIGHEST))
    inner = jnp.matmul(marks.T, marks, precision=lax.Precision.HIGHEST)
    square = jnp.sum(K * K) * jnp.sum(inner * inner)
    constant = ~(square > 0)  # not "<= 0": NaN is no constant
    size = jnp.sqrt(jnp.where(constant, 1, square))
    return jnp.where(jnp.isnan(square), jnp.nan, jnp.where(constant, 0, both / size))


@partial(jax.jit, static_argnames="num_components")
def _eigengap(
    kernel: Any, X: jax.Array, weights: jax.Array | None, *, num_components: int
) -> jax.Array:
    K = _gram(kernel, X if weights is None else present(X, weights))
    if weights is not None:
        roots = jnp.sqrt(weights / mass(weights))
        K = roots[:, None] * K * roots[None, :]
    K = K / scale_of(K)
    values = eigvalsh(K)
    return (values[num_components - 1] - values[num_components]) / jnp.trace(K)


def _is_lengthscale(path: Any) -> bool:
    return bool(path) and getattr(path[-1], "name", None) == "lengthscale"


@partial(jax.jit, static_argnames=("objective", "optimizer", "num_steps", "reach"))
def _fit(
    kernel: Any, X: Any, *, objective: Any, optimizer: Any, num_steps: int, reach: float
) -> Fit:
    leaves, structure = jax.tree_util.tree_flatten_with_path(kernel)
    start = [jnp.asarray(leaf) for path, leaf in leaves if _is_lengthscale(path)]

    def rebuilt(steps: list[jax.Array]) -> Any:
        moved = iter(
            [length * jnp.exp(step) for length, step in zip(start, steps, strict=True)]
        )
        return jax.tree.unflatten(
            structure,
            [next(moved) if _is_lengthscale(path) else leaf for path, leaf in leaves],
        )

    def loss(steps: list[jax.Array]) -> jax.Array:
        return -objective(rebuilt(steps), X)

    def keep(best: Any, steps: Any, value: jax.Array) -> Any:
        better = value > best[1]  # never for NaN
        return jax.tree.map(partial(jnp.where, better), (steps, value), best)

    def step(state: Any, _: None) -> tuple[Any, tuple[jax.Array, jax.Array]]:
        steps, memory, best = state
        value, slope = jax.value_and_grad(loss)(steps)
        best = keep(best, steps, -value)
        with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
            change, memory = optimizer.update(slope, memory, steps)
        steps = [
            jnp.clip(old + new, -reach, reach)
            for old, new in zip(steps, change, strict=True)
        ]
        finite = (
            jnp.isfinite(value)
            & jnp.array([jnp.isfinite(s).all() for s in slope]).all()
        )
        return (steps, memory, best), (-value, finite)

    steps = [jnp.zeros_like(length) for length in start]
    worst = jnp.full_like(objective(kernel, X), -jnp.inf)
    begin = steps, optimizer.init(steps), (steps, worst)
    (steps, _, best), (seen, finite) = lax.scan(step, begin, None, length=num_steps)
    last = -loss(steps)
    chosen, value = keep(best, steps, last)
    return Fit(
        rebuilt(chosen),
        value,
        jnp.append(seen, last),
        finite.all() & jnp.isfinite(last),
    )
