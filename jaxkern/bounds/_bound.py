"""The value of a bound, with the probability it is claimed to hold with and whether its hypotheses are met."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
import operator
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, ParamSpec

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import checks
from jaxkern._types import Array, Float
from jaxkern.pytrees import pytree, static

Real = float | Float[Array, "..."]
"""What a bound takes: a number of Python or NumPy, or an array of numbers, which broadcasts against the others.

It also takes numbers of another arithmetic (`is_other`), which have no common type.
"""


@pytree
class Bound:
    """A right-hand side.

    Attributes
    ----------
    value : the number that the quantity is claimed not to exceed.
    probability : the probability with which it is claimed to hold (1 for a deterministic statement; it may be
        negative, and then the claim says nothing).
    valid : whether the hypotheses of the statement are met.
    source : bib key and number of the statement. Static.
    exponent : minus the log of the failure probability, where the formula gives it; None elsewhere.
    """

    value: Any
    probability: Any
    valid: Any
    source: str = static()
    exponent: Any = None

    @property
    def log_failure(self) -> Any:
        """The log of the failure probability 1 - probability: exact where it underflows, if there is an `exponent`."""
        return xp.log1p(-self.probability) if self.exponent is None else -self.exponent


_VECTORS = frozenset({"squared_distances", "pairs", "farthest"})
"""Arguments that may be empty."""

_SIZES = frozenset({"n", "d", "sketch_size"})
"""Arguments that count something, beside those whose names begin with `num_`."""

_OF_AN_OPERATOR = """
op_norm <= hs_norm
op_norm <= trace
hs_norm <= trace
hs_norm * hs_norm <= op_norm * trace
trace <= kappa
op_norm * op_norm * op_norm <= trace3
trace3 <= op_norm * op_norm * trace
op_norm3 <= trace3
eigenvalue <= op_norm
energy <= op_norm * op_norm * op_norm
"""
"""What holds between arguments for every kernel: S <= h <= sqrt(S tr), S <= tr <= kappa and
S^3 <= tr3 <= S^2 tr, an eigenvalue is at most S, and <f, Sigma^3 f> at most S^3 for a unit f. Only bounds of
kpotufe2020 have two of these arguments together."""

_P = ParamSpec("_P")


def formula(function: Callable[_P, Bound]) -> Callable[_P, Bound]:
    """Make a bound compute in float64 with Python floats wherever it gets Python or NumPy scalars.

    If one argument is a number of another arithmetic, the others are converted to it, exactly, and nothing is rounded
    to a float. Numbers of mpmath raise ZeroDivisionError where others are infinite.

    Python raises where a float divides by zero, leaves the range, or has no real root. There the bound is computed by
    the rules of IEEE, as it is for arrays; `valid` then says whether it means anything. It does not where the value,
    the probability or an argument is not a number, or less than one thing is counted, or no kernel has the quantities
    that were passed together (`consistent`), whatever the hypotheses say.
    """
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
    }

    @functools.wraps(function)
    def with_floats(*args: _P.args, **kwargs: _P.kwargs) -> Bound:
        given = {
            name: _number(name, value, defaults.get(name, 0.0))
            for name, value in kwargs.items()
        }
        other = next(filter(is_other, given.values()), None)
        if other is None:
            return _judged(in_floats(args, given), given)
        exactly: Any = {name: exact(v, other) for name, v in given.items()}
        return _judged(function(*args, **exactly), exactly)

    @np.errstate(all="ignore")
    def in_floats(args: Any, given: dict[str, Any]) -> Bound:
        plain: Any = {
            name: float(v) if checks.is_static(v) else v for name, v in given.items()
        }
        try:
            bound = function(*args, **plain)
            if not any(
                isinstance(v, complex) for v in (bound.value, bound.probability)
            ):
                return bound
        except (ArithmeticError, TypeError, ValueError):
            if not any(isinstance(v, float) for v in plain.values()):
                raise
        scalars: Any = {
            name: np.float64(v) if isinstance(v, float) else v
            for name, v in plain.items()
        }
        bound = function(*args, **scalars)
        return jax.tree.map(
            lambda v: v.item() if isinstance(v, np.generic) else v, bound
        )

    return with_floats


def one_at_a_time(function: Callable[_P, Bound]) -> Callable[_P, Bound]:
    """Make a bound that sums over an axis of its own take arrays of its numbers too; its vectors stay as they are."""

    @functools.wraps(function)
    def over_arrays(*args: _P.args, **kwargs: _P.kwargs) -> Bound:
        plain: dict[str, Any] = kwargs
        given = {k: v for k, v in plain.items() if np.ndim(v) and k not in _VECTORS}
        if not given:
            return function(*args, **kwargs)
        arrays = jnp.broadcast_arrays(*given.values())

        def of_one(numbers: Any) -> Bound:
            return function(*args, **plain | dict(zip(given, numbers, strict=True)))

        found = jax.lax.map(of_one, [v.ravel() for v in arrays])
        return jax.tree.map(lambda v: v.reshape(arrays[0].shape), found)

    return over_arrays


def floats_only(function: Callable[_P, Bound]) -> Callable[_P, Bound]:
    """Make a bound refuse other arithmetics: its quadrature and the allowance for rounding are those of floats."""

    @functools.wraps(function)
    def of_floats(*args: _P.args, **kwargs: _P.kwargs) -> Bound:
        if any(map(is_other, kwargs.values())):
            raise ValueError(
                f"{function.__name__} is computed in floats; pass numbers of Python, NumPy or JAX"
            )
        return function(*args, **kwargs)

    return of_floats


def _number(name: str, value: Any, default: Any) -> Any:
    """Return an argument that is a number or an array of them, or left at None; flags are checked where they count."""
    optional = value is None and default is None
    if optional or isinstance(default, bool) or is_other(value):
        return value
    if isinstance(value, list | tuple):
        with contextlib.suppress(ValueError):  # of ragged lists
            array = np.asarray(value)
            if array.dtype.kind in "fiu" and (array.size or name in _VECTORS):
                return array.astype(float)
    return checks.real(name, value)


def _judged(bound: Bound, given: dict[str, Any]) -> Bound:
    """Return a bound that is not valid where its value, probability or an argument is no number, or a size below 1."""
    shapes = (
        (),
        np.shape(bound.value),
    )  # arguments of other shapes are summed up in the value
    arguments = {
        k: v
        for k, v in given.items()
        if not (v is None or isinstance(v, bool)) and np.shape(v) in shapes
    }
    possible = consistent(given).values()
    valid = functools.reduce(operator.and_, possible, bound.valid)
    bound = dataclasses.replace(bound, valid=valid)
    numbers = [bound.value, bound.probability, *arguments.values()]
    sizes = [
        v for name, v in arguments.items() if name in _SIZES or name.startswith("num_")
    ]
    known = all(checks.is_static(v) or is_other(v) for v in numbers)
    if known and isinstance(bound.valid, bool | np.bool_):
        fit = all(v == v for v in numbers) and all(v >= 1 for v in sizes)
        return bound if fit else dataclasses.replace(bound, valid=False)
    tests = [
        *(jnp.logical_not(jnp.isnan(v)) for v in numbers),
        *(jnp.asarray(v) >= 1 for v in sizes),
    ]
    return dataclasses.replace(
        bound, valid=functools.reduce(jnp.logical_and, tests, bound.valid)
    )


def consistent(quantities: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether each inequality that every kernel meets holds, by its words, such as "trace <= kappa".

    Only inequalities between the given quantities are returned. They hold up to 1e-9, or the rounding of float32.
    """
    known = {
        name: float(value) if checks.is_static(value) else value
        for name, value in quantities.items()
        if value is not None
    }
    holds = {}
    for words in _OF_AN_OPERATOR.strip().splitlines():
        smaller, larger = (side.split(" * ") for side in words.split(" <= "))
        names = [*smaller, *larger]
        if known.keys() >= set(names):
            rounding = max(_rounding(quantities[name]) for name in names)
            left, right = (
                math.prod(map(known.__getitem__, side)) for side in (smaller, larger)
            )
            holds[words] = (left <= right * (1 + rounding)) & (known[smaller[0]] >= 0)
    return holds


def _rounding(value: Any) -> float:
    """Return the relative error that a quantity of this dtype may have."""
    dtype = getattr(value, "dtype", np.dtype(float))
    if not jnp.issubdtype(dtype, jnp.floating):
        return 1e-9
    return max(1e-9, 128 * float(jnp.finfo(dtype).eps))


def surely(value: Any, valid: Any, source: str) -> Bound:
    """Return the bound of a deterministic statement: its probability is 1, of the kind of its value."""
    is_array = isinstance(value, jax.Array | np.ndarray)
    probability = jnp.ones_like(value) if is_array else exact(1.0, value)
    return Bound(value, probability, valid, source)


def fails(value: Any, times: Real, exponent: Any, valid: Any, source: str) -> Bound:
    """Return a bound that fails with probability times exp(-exponent)."""
    return Bound(
        value,
        1 - times * xp.exp(-exponent),
        valid,
        source,
        exponent=exponent - xp.log(exact(times, exponent)),
    )


def note_of(as_printed: bool, otherwise: str) -> str:
    """Return what to add to a source."""
    return " (printed)" if checks.flag("as_printed", as_printed) else f" ({otherwise})"


def is_other(value: Any) -> bool:
    """Tell whether a value is a number of another arithmetic than those of Python, NumPy and JAX.

    That is a number of mpmath, or one whose methods have the names of functions of NumPy: `log1p`, `max` and so on. Its
    comparisons must say whether they hold, and a number must equal itself unless it is NaN.
    """
    if isinstance(value, int | float) or hasattr(value, "dtype"):
        return False
    of_mpmath = hasattr(value, "context") and hasattr(value, "_mpf_")
    return of_mpmath or (hasattr(value, "log1p") and hasattr(value, "max"))


def exact(number: Any, like: Any) -> Any:
    """Return a Python or NumPy number in the arithmetic of `like`, so that its functions are not rounded to floats."""
    if not (checks.is_static(number) and is_other(like)):
        return number
    kind = like.context.mpf if hasattr(like, "context") else type(like)
    return kind(number if isinstance(number, int) else float(number))


def _of_other(name: str, *args: Any) -> Any:
    """Return a function of numbers one of which is of another arithmetic."""
    like = next(filter(is_other, args))
    first, *rest = (exact(x, like) for x in args)
    choose = {"maximum": max, "minimum": min}.get(name)
    if not hasattr(like, "context"):
        return getattr(first, choose.__name__ if choose else name)(*rest)
    if choose:
        return _unless_nan(choose)(first, *rest)
    value = getattr(like.context, name)(first)
    return value if is_other(value) else like.context.nan  # of a complex number


def _of_kind(
    name: str, of_floats: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Return a function of real numbers: of `math` on Python floats, by NumPy on its scalars, by JAX on arrays.

    Numbers of another arithmetic have their own.
    """
    of_floats = of_floats or getattr(math, name)

    def function(*args: Any) -> Any:
        if any(map(is_other, args)):
            return _of_other(name, *args)
        if any(isinstance(x, jax.Array | np.ndarray) for x in args):
            return getattr(jnp, name)(*args)
        if any(isinstance(x, np.generic) for x in args):
            return getattr(np, name)(*args)
        try:
            return of_floats(*args)
        except (
            OverflowError,
            ValueError,
        ):  # what IEEE has a number for; a complex number is a TypeError
            with np.errstate(all="ignore"):
                return getattr(np, name)(*args).item()

    return function


def _unless_nan(
    choose: Callable[[float, float], float],
) -> Callable[[float, float], float]:
    return lambda a, b: choose(a, b) if a == a and b == b else math.nan


xp = SimpleNamespace(
    **{
        name: _of_kind(name)
        for name in ("exp", "expm1", "floor", "log", "log1p", "sqrt")
    },
    maximum=_of_kind("maximum", _unless_nan(max)),
    minimum=_of_kind("minimum", _unless_nan(min)),
)
"""The functions that bounds use, in the arithmetic of their arguments: exact float64 for Python floats."""
