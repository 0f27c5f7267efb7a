"""Functions of the span of kernel sections, and the operator that takes their values."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern._distances import safe_sqrt
from jaxkern._types import Array, ArrayLike, Float
from jaxkern._weights import mass, present
from jaxkern.gram import _product, gram
from jaxkern.kernels import Kernel, KernelLike, as_kernel
from jaxkern.linalg import HIGHEST
from jaxkern.pytrees import pytree


@pytree
class Function:
    """A function f = sum_i weights_i K(., points_i) of the RKHS, or several of them on common points.

    Parameters
    ----------
    kernel : a kernel, or a function of two points.
    points : (p, d) points.
    weights : (p,) for one function, or (p, r) for r of them.

    Calling f(X) with X (n, d) returns (n,) or (n, r). Functions add, subtract and scale.
    """

    kernel: Any
    points: Any
    weights: Any

    def __call__(self, X: Float[ArrayLike, "n d"]) -> Float[Array, "n ..."]:
        """Return the values f(X), (n,) or (n, r), tile by tile."""
        kernel, points, weights = _parts(self)
        X = checks.matrix("X", X, dim=points.shape[1], min_rows=0)
        checks.same_dtype("X", X, "the points", points)
        return _product(kernel, X, points, weights)

    def __add__(self, other: Function) -> Function:
        """Return f + g; both need the same kernel, and the same number of functions."""
        kernel, points, weights = _parts(self)
        _, other_points, other_weights = _parts(same_space(other, kernel))
        checks.matrix("points", other_points, dim=points.shape[1])
        checks.same_dtype(
            "points of the second function", other_points, "those of the first", points
        )
        if weights.shape[1:] != other_weights.shape[1:]:
            raise ValueError(
                f"weights of the two functions do not match: {weights.shape} and {other_weights.shape}"
            )
        both = (
            jnp.concatenate([points, other_points]),
            jnp.concatenate([weights, other_weights]),
        )
        return Function(kernel, *both)

    def __neg__(self) -> Function:
        """Return -f."""
        return Function(
            self.kernel, self.points, -checks.as_array("weights", self.weights)
        )

    def __sub__(self, other: Function) -> Function:
        """Return f - g."""
        return self + (-other)

    def __mul__(self, factor: Any) -> Function:
        """Return factor * f."""
        return Function(
            self.kernel, self.points, checks.as_array("weights", self.weights) * factor
        )

    __rmul__ = __mul__


def section(kernel: KernelLike, X: Float[ArrayLike, "n d"]) -> Function:
    """Return the kernel sections K(., x) of all rows x of X, as n functions.

    Parameters
    ----------
    kernel : a kernel, or a function of two points.
    X : (n, d) points.
    """
    X = checks.matrix("X", X)
    return Function(as_kernel(kernel), X, _identity(X.shape[0], X.dtype))


def inner(f: Function, g: Function) -> Float[Array, ...]:
    """Return <f, g> in H: a scalar, or all pairs (r_f, r_g) where f or g stand for several functions.

    Parameters
    ----------
    f, g : functions of one RKHS.

    Raises
    ------
    ValueError
        If the two belong to different kernels, or shapes do not match.

    Notes
    -----
    Time O(p_f p_g (d + r_g)); no p_f x p_g matrix is held.
    """
    kernel, points, weights = _parts(f)
    values = same_space(g, kernel)(points)
    return contract(weights, values)


def norm(f: Function) -> Float[Array, ...]:
    """Return |f| in H, () or (r,).

    Parameters
    ----------
    f : one function, or r of them.
    """
    return _norm(*_parts(f))


@pytree
class SamplingOperator:
    """S: H -> R^n, f -> (f(X_1), ..., f(X_n)) (kpotufe2020, (3)); with weights w, f -> (sqrt(w_i) f(X_i))_i.

    S* S is the sum of the weights, or n, times the covariance operator Sigma of these points and weights.

    Parameters
    ----------
    kernel : a kernel, or a function of two points.
    points : (n, d) points X_1, ..., X_n.
    weights : (n,) non-negative weights in the dtype of the points, of any positive sum; a row of weight 0 does not
        exist, whatever it holds: it has value 0, and its entry of beta counts for nothing. By default all are 1.
    """

    kernel: Any
    points: Any
    weights: Any = None

    def __call__(self, f: Function) -> Float[Array, "n ..."]:
        """Return S f, (n,) or (n, r)."""
        points, root = self._rows()
        values = same_space(f, as_kernel(self.kernel))(points)
        return values if root is None else along(root, values) * values

    def adjoint(self, beta: Float[ArrayLike, "n ..."]) -> Function:
        """Return S* beta = sum_i sqrt(w_i) beta_i K(., X_i), beta (n,) or (n, r); <S f, beta> = <f, S* beta>."""
        points, root = self._rows()
        kernel, points, beta = _parts(Function(self.kernel, points, beta), "beta")
        if root is not None:
            root = along(root, beta)
            beta = jnp.where(root == 0, 0, root * beta)
        return Function(kernel, points, beta)

    def gram(self) -> Float[Array, "n n"]:
        """Return the matrix S S*, (n, n): the Gram matrix, or with weights sqrt(w_i) K(X_i, X_j) sqrt(w_j)."""
        points, root = self._rows()
        K = gram(self.kernel, points)
        return K if root is None else root[:, None] * K * root[None, :]

    def _rows(self) -> tuple[Any, jax.Array | None]:
        points = (
            self.points
            if self.weights is None
            else checks.matrix("points", self.points)
        )
        weights = checks.weights(self.weights, "points", points)
        if weights is None:
            return points, None
        return present(points, weights), safe_sqrt(weights) + 0 * mass(weights)


@partial(jax.jit, static_argnums=(0, 1), inline=True)
def _identity(size: int, dtype: Any) -> jax.Array:
    return jnp.eye(size, dtype=dtype)


@jax.jit
def _norm(kernel: Kernel, points: jax.Array, weights: jax.Array) -> jax.Array:
    values = _product(kernel, points, points, weights)
    return jnp.sqrt(jnp.maximum(jnp.sum(weights * values, axis=0), 0))


def _parts(
    f: Function, weights_name: str = "weights"
) -> tuple[Kernel, jax.Array, jax.Array]:
    points = checks.matrix("points", f.points)
    weights = checks.columns(weights_name, f.weights, rows=points.shape[0])
    return (
        as_kernel(f.kernel),
        points,
        checks.same_dtype(weights_name, weights, "points", points),
    )


def same_space(f: Any, kernel: Kernel) -> Function:
    if not isinstance(f, Function):
        raise ValueError(
            f"f must be a Function of the RKHS, got {type(f).__name__}; pass Function(kernel, points, weights)"
        )
    own = as_kernel(f.kernel)
    same = jax.tree.structure(own) == jax.tree.structure(kernel)  # type: ignore[operator]
    if not same or any(map(_differ, jax.tree.leaves(own), jax.tree.leaves(kernel))):
        raise ValueError(
            f"f must belong to the same kernel, got {f.kernel!r} next to {kernel!r}"
        )
    return f


def _differ(a: Any, b: Any) -> bool:
    """Tell whether two parameters are known to differ; arrays and tracers may not be looked at."""
    return checks.is_static(a) and checks.is_static(b) and a != b


def along(vector: jax.Array, like: jax.Array) -> jax.Array:
    """Return a vector (n,) in the shape in which it multiplies the rows of `like`, (n,) or (n, r)."""
    return vector if like.ndim == 1 else vector[:, None]


def contract(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return a' b with vectors as single functions."""
    return jnp.tensordot(a, b, axes=(0, 0), precision=HIGHEST)
