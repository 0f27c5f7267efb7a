"""The kernel interface: one pair of points in, one number out; and a user's own function behind it."""

from __future__ import annotations

import abc
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern.pytrees import pytree, static


class Pair(NamedTuple):
    """What a kernel knows of two points: half the sum and half the difference of its diagonal, and the gap."""

    mean: jax.Array
    half: jax.Array
    gap: jax.Array


class Kernel(abc.ABC):
    """A symmetric function of two points.

    `k(x, y)` takes two points of shape (d,) and returns a scalar of their dtype; `gram.gram(k, X, Y)` evaluates all
    pairs of two sets by the fast route. Kernels are frozen PyTrees whose parameters are leaves: they pass through
    `jit`, `vmap` and `grad`, and a kernel with stacked parameters is many kernels under `vmap`.
    """

    psd: ClassVar[bool] = True
    """Whether the kernel is positive semidefinite."""
    __array_ufunc__ = None
    """A NumPy array times a kernel is left to the kernel, and not made an array of kernels."""

    def __call__(self, x: Any, y: Any) -> jax.Array:
        """Return K(x, y) for two points of shape (d,).

        Raises
        ------
        ValueError
            If `x` or `y` is not a floating vector, or their shapes differ.
        """
        x = checks.vector("x", x)
        y = checks.same_dtype("y", checks.vector("y", y, size=x.shape[0]), "x", x)
        return self._value(x, y)

    @abc.abstractmethod
    def _value(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """Return K(x, y) by direct differences."""

    @abc.abstractmethod
    def _pair(self, x: jax.Array, y: jax.Array) -> Pair:
        """Return the diagonal and the gap of one pair, accurate for coincident and for close points."""

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        """Return K(X, Y), shape (n, m)."""
        return jax.vmap(lambda x: jax.vmap(lambda y: self._value(x, y))(Y))(X)

    def _rounding(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        """Return a bound of the error of `_tile`, relative to sqrt(K(x, x) K(y, y))."""
        raise ValueError(f"kernel: the rounding of {type(self).__name__} is not known; pass a built-in kernel")

    def _diagonal(self, X: jax.Array) -> jax.Array:
        """Return (K(x_i, x_i))_i for the rows of X, (n,)."""
        return jax.vmap(lambda x: self._value(x, x))(X)

    @property
    @abc.abstractmethod
    def _kappa(self) -> Any:
        """The supremum of K(x, x)."""

    @abc.abstractmethod
    def _lipschitz(self, dim: int | None) -> Any:
        """The smallest known L with |K(x1, x2) - K(y1, y2)| <= L (|x1 - y1| + |x2 - y2|)."""

    def __add__(self, other: Any) -> Kernel:
        """Return the kernel K + other."""
        return algebra().Sum(self, as_kernel(other))

    def __radd__(self, other: Any) -> Kernel:
        """Return the kernel other + K."""
        return algebra().Sum(as_kernel(other), self)

    def __mul__(self, other: Any) -> Kernel:
        """Return the product with another kernel, or the kernel scaled by a non-negative number."""
        if callable(other):
            return algebra().Product(self, as_kernel(other))
        return algebra().Scaled(self, other)

    def __rmul__(self, other: Any) -> Kernel:
        """Return the product with another kernel, or the kernel scaled by a non-negative number."""
        if callable(other):
            return algebra().Product(as_kernel(other), self)
        return algebra().Scaled(self, other)


def algebra() -> ModuleType:
    """Return the module of sums and products, which builds on this one."""
    from jaxkern.kernels import _algebra

    return _algebra


class _UserKernel(Kernel):
    """What a user's own function lacks: series and constants."""

    def _pair(self, x: jax.Array, y: jax.Array) -> Pair:
        a, b, c = self._value(x, x), self._value(y, y), self._value(x, y)
        return Pair((a + b) / 2, (a - b) / 2, (a + b) / 2 - c)

    @property
    def _kappa(self) -> Any:
        raise ValueError("kernel: kappa of a user's function is not known; wrap it as kernels.FromFunction(f, sup=...)")

    def _lipschitz(self, dim: int | None) -> Any:
        raise ValueError(
            "kernel: the Lipschitz constant of a user's function is not known; "
            "wrap it as kernels.FromFunction(f, slope=...)"
        )


@pytree
class FromFunction(_UserKernel):
    """A user's own `function(x, y) -> scalar` of two points of shape (d,), written with jax.numpy.

    Parameters
    ----------
    function : static; a PyTree with a `__call__` may be passed wherever a kernel is expected instead, and then its
        leaves are parameters that can be mapped and differentiated.
    sup : the supremum of K(x, x), if `kappa` is to be known.
    slope : the constant of amini2021 (2), if `lipschitz` is to be known.
    """

    function: Callable[[jax.Array, jax.Array], jax.Array] = static()
    sup: float | None = static(default=None)
    slope: float | None = static(default=None)

    def _value(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return _scalar_result(self.function(x, y), x)

    @property
    def _kappa(self) -> Any:
        return super()._kappa if self.sup is None else self.sup

    def _lipschitz(self, dim: int | None) -> Any:
        return super()._lipschitz(dim) if self.slope is None else self.slope


@pytree
class FromPyTree(_UserKernel):
    """A user's own PyTree with a `__call__(x, y) -> scalar`."""

    function: Any

    def _value(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return _scalar_result(self.function(x, y), x)


def _scalar_result(value: Any, x: jax.Array) -> jax.Array:
    value = jnp.asarray(value)
    if value.shape != ():
        raise ValueError(f"kernel: a user's function must return a scalar for two points, got shape {value.shape}")
    return value.astype(x.dtype)


def as_kernel(kernel: Any) -> Kernel:
    """Return `kernel` itself, or a user's two-argument function wrapped as one.

    Raises
    ------
    ValueError
        If `kernel` is neither a kernel nor callable, or a parameter of it is not a number.
    """
    if isinstance(kernel, Kernel):
        return checks.numbers("kernel", kernel, unless=FromPyTree)
    if isinstance(kernel, type) or not callable(kernel):
        raise ValueError(f"kernel must be a kernel such as Gaussian(1.0) or a function of two points, got {kernel!r}")
    leaves = jax.tree.leaves(kernel)
    return FromFunction(kernel) if len(leaves) == 1 and leaves[0] is kernel else FromPyTree(kernel)


def psd_kernel(kernel: Any) -> Kernel:
    """Return a kernel that has an RKHS, or raise."""
    kernel = as_kernel(kernel)
    if not kernel.psd:
        raise ValueError(
            f"kernel must be positive semidefinite to have an RKHS, got {type(kernel).__name__}; pass another kernel"
        )
    return kernel


def kappa(kernel: Any) -> Any:
    """Return kappa = sup_x K(x, x) over the whole space: 1 for a stationary kernel, inf for an unbounded one.

    Raises
    ------
    ValueError
        For a user's function that does not state it.
    """
    return as_kernel(kernel)._kappa


def lipschitz(kernel: Any, dim: int | None = None) -> Any:
    """Return an L with |K(x1, x2) - K(y1, y2)| <= L (|x1 - y1| + |x2 - y2|) for all points (amini2021, (2)).

    The constant is the smallest one for the kernels of this package, and an upper bound for sums and products.

    Parameters
    ----------
    kernel : a kernel.
    dim : dimension of the points; needed by the kernels that are products over coordinates.

    Raises
    ------
    ValueError
        If `dim` is needed and missing, or for a user's function that does not state its constant.
    """
    return as_kernel(kernel)._lipschitz(None if dim is None else checks.count("dim", dim))
