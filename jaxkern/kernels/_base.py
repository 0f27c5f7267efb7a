"""The kernel interface: one pair of points in, one number out; sums, products, and a user's own function behind it."""

from __future__ import annotations

import abc
import math
import types
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern._types import Array, ArrayLike, Float
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

    A kernel of your own is a class that derives from this one, is decorated with `pytrees.pytree` and has the one
    method `evaluate(x, y)`. It may also say `psd = False`, its `kappa`, the supremum of K(x, x), and its
    `lipschitz(dim)`; what needs one of the two says so where it is missing.
    """

    psd: ClassVar[bool] = True
    """Whether the kernel is positive semidefinite."""
    __array_ufunc__ = None
    """A NumPy array times a kernel is left to the kernel, and not made an array of kernels."""

    def __call__(
        self, x: Float[ArrayLike, " d"], y: Float[ArrayLike, " d"]
    ) -> Float[Array, ""]:
        """Return K(x, y) for two points of shape (d,)."""
        x = checks.vector("x", x)
        y = checks.same_dtype("y", checks.vector("y", y, size=x.shape[0]), "x", x)
        return _value(self, x, y)

    @abc.abstractmethod
    def evaluate(
        self, x: Float[Array, " d"], y: Float[Array, " d"]
    ) -> Float[Array, ""]:
        """Return K(x, y) of two points of one dtype, written with jax.numpy."""

    @property
    def kappa(self) -> Any:
        """The supremum of K(x, x)."""
        raise ValueError(self._unknown("kappa", "sup", "kappa"))

    def lipschitz(self, dim: int | None) -> Any:
        """Return the smallest known L with |K(x1, x2) - K(y1, y2)| <= L (|x1 - y1| + |x2 - y2|)."""
        raise ValueError(
            self._unknown("the Lipschitz constant", "slope", "lipschitz(dim)")
        )

    def _unknown(self, what: str, field: str, member: str) -> str:
        function = isinstance(self, FromFunction | FromPyTree)
        advice = (
            f"wrap it as kernels.FromFunction(f, {field}=...)"
            if function
            else f"give its class a {member}"
        )
        return f"kernel: {what} of {self._named()} is not known; {advice}"

    def _named(self) -> str:
        return (
            "a user's function"
            if isinstance(self, FromFunction | FromPyTree)
            else type(self).__name__
        )

    def _value(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """Return K(x, y), a scalar of the dtype of the points, or raise."""
        value = jnp.asarray(self.evaluate(x, y))
        if value.shape != ():
            raise ValueError(
                f"kernel: {self._named()} must return a scalar for two points, got shape {value.shape}"
            )
        return value.astype(x.dtype)

    def _pair(self, x: jax.Array, y: jax.Array) -> Pair:
        """Return the diagonal and the gap of one pair; built-in kernels are accurate for close points, too."""
        a, b, c = self._value(x, x), self._value(y, y), self._value(x, y)
        return Pair((a + b) / 2, (a - b) / 2, (a + b) / 2 - c)

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        """Return K(X, Y), shape (n, m)."""
        return jax.vmap(lambda x: jax.vmap(lambda y: self._value(x, y))(Y))(X)

    def _rounding(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        """Return a bound of the error of `_tile`, relative to sqrt(K(x, x) K(y, y))."""
        raise ValueError(
            f"kernel: the rounding of {type(self).__name__} is not known; pass a built-in kernel"
        )

    def _diagonal(self, X: jax.Array) -> jax.Array:
        """Return (K(x_i, x_i))_i for the rows of X, (n,)."""
        return jax.vmap(lambda x: self._value(x, x))(X)

    def __add__(self, other: KernelLike) -> Kernel:
        """Return the kernel K + other."""
        return Sum(self, as_kernel(other))

    def __radd__(self, other: KernelLike) -> Kernel:
        """Return the kernel other + K."""
        return Sum(as_kernel(other), self)

    def __mul__(self, other: Any) -> Kernel:
        """Return the product with another kernel, or the kernel scaled by a non-negative number."""
        return (
            Product(self, as_kernel(other)) if callable(other) else Scaled(self, other)
        )

    def __rmul__(self, other: Any) -> Kernel:
        """Return the product with another kernel, or the kernel scaled by a non-negative number."""
        return (
            Product(as_kernel(other), self) if callable(other) else Scaled(self, other)
        )


KernelLike = Kernel | Callable[[jax.Array, jax.Array], Any]
"""What is taken for a kernel everywhere: one of this package, or a function of two points."""


@pytree
class FromFunction(Kernel):
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

    def evaluate(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """Return function(x, y)."""
        return self.function(x, y)

    @property
    def kappa(self) -> Any:
        """The field `sup`, where it is given."""
        return super().kappa if self.sup is None else self.sup

    def lipschitz(self, dim: int | None) -> Any:
        """Return the field `slope`, where it is given."""
        return super().lipschitz(dim) if self.slope is None else self.slope


@pytree
class FromPyTree(Kernel):
    """A user's own PyTree with a `__call__(x, y) -> scalar`."""

    function: Any

    def evaluate(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """Return function(x, y)."""
        return self.function(x, y)


@jax.jit
def _value(kernel: Kernel, x: jax.Array, y: jax.Array) -> jax.Array:
    return kernel._value(x, y)


def product(a: Pair, b: Pair) -> Pair:
    """Return what is known of the product of two kernels: no difference of close numbers is taken."""
    mean = a.mean * b.mean + a.half * b.half
    half = a.mean * b.half + a.half * b.mean
    return Pair(mean, half, a.gap * b.mean + (a.mean - a.gap) * b.gap + a.half * b.half)


def _times(factor: Any, constant: Any) -> Any:
    """Return the constant of a scaled kernel: that of the zero kernel is zero, be the other one infinite."""
    return 0.0 if checks.is_static(factor) and factor == 0 else factor * constant


@pytree
class Sum(Kernel):
    """K = first + second.

    Parameters
    ----------
    first, second : the kernels.
    """

    first: Any
    second: Any

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether both terms are positive semidefinite."""
        return self.first.psd and self.second.psd

    def evaluate(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return self.first._value(x, y) + self.second._value(x, y)

    def _pair(self, x: jax.Array, y: jax.Array) -> Pair:
        a, b = self.first._pair(x, y), self.second._pair(x, y)
        return Pair(a.mean + b.mean, a.half + b.half, a.gap + b.gap)

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return self.first._tile(X, Y) + self.second._tile(X, Y)

    def _rounding(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        # sqrt(a b) + sqrt(c d) <= sqrt((a + c) (b + d))
        first, second = self.first._rounding(X, Y), self.second._rounding(X, Y)
        return jnp.maximum(first, second) + jnp.finfo(X.dtype).eps

    @property
    def kappa(self) -> Any:
        """The sum of the two."""
        return self.first.kappa + self.second.kappa

    def lipschitz(self, dim: int | None) -> Any:
        return self.first.lipschitz(dim) + self.second.lipschitz(dim)


@pytree
class Product(Kernel):
    """K = first * second.

    Parameters
    ----------
    first, second : the kernels.
    """

    first: Any
    second: Any

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether both factors are positive semidefinite."""
        return self.first.psd and self.second.psd

    def evaluate(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return self.first._value(x, y) * self.second._value(x, y)

    def _pair(self, x: jax.Array, y: jax.Array) -> Pair:
        return product(self.first._pair(x, y), self.second._pair(x, y))

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return self.first._tile(X, Y) * self.second._tile(X, Y)

    def _rounding(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        first, second = self.first._rounding(X, Y), self.second._rounding(X, Y)
        return first + second + first * second + jnp.finfo(X.dtype).eps

    @property
    def kappa(self) -> Any:
        """The product of the two."""
        return self.first.kappa * self.second.kappa

    def lipschitz(self, dim: int | None) -> Any:
        # |K| <= kappa for a positive semidefinite kernel; one that is not may be unbounded.
        first, second = (
            k.kappa if k.psd else math.inf for k in (self.first, self.second)
        )
        return first * self.second.lipschitz(dim) + second * self.first.lipschitz(dim)


@pytree
class Scaled(Kernel):
    """K = factor * kernel.

    Parameters
    ----------
    kernel : the kernel.
    factor : a number that is not negative.
    """

    kernel: Any
    factor: Any

    def __post_init__(self) -> None:
        checks.non_negative("factor", self.factor)

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether the scaled kernel is positive semidefinite."""
        return self.kernel.psd

    def evaluate(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return self.kernel._value(x, y) * checks.scalar("factor", self.factor, x.dtype)

    def _pair(self, x: jax.Array, y: jax.Array) -> Pair:
        factor = checks.scalar("factor", self.factor, x.dtype)
        mean, half, gap = self.kernel._pair(x, y)
        return Pair(factor * mean, factor * half, factor * gap)

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return self.kernel._tile(X, Y) * checks.scalar("factor", self.factor, X.dtype)

    def _rounding(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return self.kernel._rounding(X, Y) + jnp.finfo(X.dtype).eps

    @property
    def kappa(self) -> Any:
        """That of the kernel, scaled."""
        return _times(self.factor, self.kernel.kappa)

    def lipschitz(self, dim: int | None) -> Any:
        return _times(self.factor, self.kernel.lipschitz(dim))


def as_kernel(kernel: KernelLike) -> Kernel:
    """Return `kernel` itself, or a user's two-argument function wrapped as one.

    Parameters
    ----------
    kernel : a kernel, or a function of two points.
    """
    if isinstance(kernel, Kernel):
        return checks.numbers("kernel", kernel, unless=FromPyTree)
    if isinstance(kernel, type) or not callable(kernel):
        raise ValueError(
            f"kernel must be a kernel such as Gaussian(1.0) or a function of two points, got {kernel!r}"
        )
    kernel = _opened(kernel)
    leaves = jax.tree.leaves(kernel)
    return (
        FromFunction(kernel)
        if len(leaves) == 1 and leaves[0] is kernel
        else FromPyTree(kernel)
    )


def _opened(function: Any) -> Any:
    """Return a PyTree that calls a user's function, with what JAX traces in its closure or defaults as its leaves.

    So derivatives and maps in these hold wherever the kernel goes. What holds none is returned as it is.
    """
    if not isinstance(function, types.FunctionType):
        return function
    cells = function.__closure__ or ()
    try:
        held = [cell.cell_contents for cell in cells], list(function.__defaults__ or ())
    except ValueError:  # a cell that is empty as yet
        return function
    leaves, structure = jax.tree.flatten(jax.tree.map(_opened, held))
    traced = {
        i: leaf for i, leaf in enumerate(leaves) if isinstance(leaf, jax.core.Tracer)
    }
    fixed = [None if i in traced else leaf for i, leaf in enumerate(leaves)]
    return (
        jax.tree_util.Partial(partial(_closed, function, structure, fixed), traced)
        if traced
        else function
    )


def _closed(
    function: Any,
    structure: Any,
    fixed: list[Any],
    traced: dict[int, Any],
    *points: jax.Array,
) -> Any:
    """Return what a function gives with such values in the cells of its closure, and such defaults."""
    held, defaults = jax.tree.unflatten(
        structure, [traced.get(i, leaf) for i, leaf in enumerate(fixed)]
    )
    cells = tuple(map(types.CellType, held))
    own = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        tuple(defaults),
        cells,
    )
    own.__kwdefaults__ = function.__kwdefaults__
    return own(*points)


def psd_kernel(kernel: KernelLike) -> Kernel:
    """Return a kernel that has an RKHS, or raise.

    Parameters
    ----------
    kernel : a kernel, or a function of two points, which is taken at its word.
    """
    kernel = as_kernel(kernel)
    if not kernel.psd:
        raise ValueError(
            f"kernel must be positive semidefinite to have an RKHS, got {type(kernel).__name__}; pass another kernel"
        )
    return kernel


def kappa(kernel: KernelLike) -> Any:
    """Return kappa = sup_x K(x, x) over the whole space: 1 for a stationary kernel, inf for an unbounded one.

    Parameters
    ----------
    kernel : a kernel.

    Returns
    -------
    A number, or an array where a parameter of the kernel is one.

    Raises
    ------
    ValueError
        For a user's kernel or function that does not state it.
    """
    return as_kernel(kernel).kappa


def lipschitz(kernel: KernelLike, dim: int | None = None) -> Any:
    """Return an L with |K(x1, x2) - K(y1, y2)| <= L (|x1 - y1| + |x2 - y2|) for all points (amini2021, (2)).

    The constant is the smallest one for the kernels of this package, and an upper bound for sums and products.

    Parameters
    ----------
    kernel : a kernel.
    dim : dimension of the points; needed by the kernels that are products over coordinates.

    Raises
    ------
    ValueError
        If `dim` is needed and missing, or for a user's kernel or function that does not state its constant.
    """
    return as_kernel(kernel).lipschitz(
        None if dim is None else checks.count("dim", dim)
    )
