"""Bounds of `jaxkern.bounds` in balls: numbers whose comparisons are decided, or an error.

A comparison of two balls that overlap is false both ways, so a bound must not see one: it would take a hypothesis that
the balls leave open for one that does not hold. `bound` passes numbers that raise ArithmeticError there.
"""

import importlib.util
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxkern.bounds import Bound
from proofs_check.engine.enclosures import (
    Ball,
    ball,
    gamma_above,
    gamma_below,
    short,
)

if importlib.util.find_spec("flint"):  # an extra
    from flint import arb, ctx

_MOST_FACTORS = 64
"""The largest power of a ball around 0 that is computed as a product: `arb` has no power of it."""


def _quotient(left: Ball, right: Ball) -> Ball:
    if right == 0 and left != 0:
        return arb.pos_inf() if _Decided(left) > 0 else arb.neg_inf()
    return left / right


def _operators(
    operation: Callable[[Any, Any], Any],
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the methods of `_Decided` for self + other and other + self, if the operation is +."""

    def combine(left: Any, right: Any) -> "_Decided":
        left = _Decided(left)
        right = _Decided(right)
        return _determined(operation(left.ball, right.ball), left, right)

    def method(self: "_Decided", other: Any) -> Any:
        # NumPy then goes through the entries of the array.
        return NotImplemented if isinstance(other, np.ndarray) else combine(self, other)

    return method, lambda self, other: combine(other, self)


def _relation(
    holds: Callable[[Any, Any], Any], fails: Callable[[Any, Any], Any]
) -> Callable[..., bool]:
    """Return the comparison of `_Decided` that holds or fails for two balls, and raises where neither is known."""

    def compare(self: "_Decided", other: Any) -> bool:
        left = self.ball
        right = left if other is self else _Decided(other).ball
        if left.is_nan() or right.is_nan():
            return False
        if other is self:
            return bool(holds(0, 0))
        if holds(left, right) or fails(left, right):
            return bool(holds(left, right))
        sides = f"{short(left)} {holds.__name__} {short(right)}"
        raise ArithmeticError(f"{sides} is not decided by balls of {ctx.prec} bits")

    return compare


class _Decided:
    """A number in a ball, whose comparisons are decided: what the balls leave open raises ArithmeticError.

    The bounds of `jaxkern.bounds` take it as a number: it has the operators, and the functions of NumPy and SciPy that
    they use. As in IEEE arithmetic 1 / 0 is infinite, log(0) is minus infinity, and sqrt(-1) is NaN; but what may or
    may not be defined, such as the root of a ball around 0, raises ArithmeticError. There is no `__float__`.
    """

    def __init__(self, number: Any) -> None:
        self.ball: Ball = number.ball if isinstance(number, _Decided) else ball(number)

    def __repr__(self) -> str:
        return f"_Decided({self.ball})"

    __hash__ = None  # type: ignore[assignment]

    __add__, __radd__ = _operators(operator.add)
    __sub__, __rsub__ = _operators(operator.sub)
    __mul__, __rmul__ = _operators(operator.mul)
    __truediv__, __rtruediv__ = _operators(_quotient)
    __lt__ = _relation(operator.lt, operator.ge)
    __le__ = _relation(operator.le, operator.gt)
    __gt__ = _relation(operator.gt, operator.le)
    __ge__ = _relation(operator.ge, operator.lt)
    __eq__ = _relation(operator.eq, operator.ne)

    def __neg__(self) -> "_Decided":
        return _Decided(-self.ball)

    def __int__(self) -> int:
        if not self.ball.is_integer():
            raise ArithmeticError(f"{short(self.ball)} is no whole number")
        return int(self.ball.unique_fmpz())

    def __pow__(self, other: Any) -> "_Decided":
        return _power(self, _Decided(other))

    def __rpow__(self, other: Any) -> "_Decided":
        return _power(_Decided(other), self)

    def max(self, other: Any) -> "_Decided":
        return _Decided(self.ball.max(_Decided(other).ball))

    def min(self, other: Any) -> "_Decided":
        return _Decided(self.ball.min(_Decided(other).ball))

    def exp(self) -> "_Decided":
        return _determined(self.ball.exp(), self)

    def expm1(self) -> "_Decided":
        return _determined(self.ball.expm1(), self)

    def floor(self) -> "_Decided":
        return _determined(self.ball.floor(), self)

    def sqrt(self) -> "_Decided":
        return _Decided(self.ball.sqrt() if self >= 0 else arb.nan())

    def log(self) -> "_Decided":
        return _log(self, self.ball.log())

    def log1p(self) -> "_Decided":
        return _log(self + 1, self.ball.log1p())

    def gammaln(self) -> "_Decided":
        return _Decided(self.ball.lgamma() if self > 0 else arb.nan())

    def gammainc(self, x: Any) -> "_Decided":
        return _gamma(gamma_below, self, _Decided(x), 0)

    def gammaincc(self, x: Any) -> "_Decided":
        return _gamma(gamma_above, self, _Decided(x), 1)


def _determined(value: Ball, *arguments: _Decided) -> _Decided:
    """Return a number, or raise: it is NaN only where an argument is, or where all arguments are points."""
    balls = [x.ball for x in arguments]
    nan = any(x.is_nan() for x in balls) or all(x.is_exact() for x in balls)
    if value.is_nan() and not nan:
        raise ArithmeticError(
            f"not known to be defined at {', '.join(map(str, balls))}"
        )
    return _Decided(value)


def _power(base: _Decided, exponent: _Decided) -> _Decided:
    whole = exponent.ball.is_integer()
    if whole and 0 < exponent <= _MOST_FACTORS and base.ball.contains(0):
        return _Decided(math.prod([base.ball] * int(exponent.ball.unique_fmpz())))
    if whole or base >= 0:
        return _determined(base.ball**exponent.ball, base, exponent)
    return _Decided(arb.nan())


def _gamma(
    function: Callable[[Ball, Ball], Ball], a: _Decided, x: _Decided, at_zero: int
) -> _Decided:
    """Return an incomplete gamma function, by its value for a and x > 0 and its value at x = 0."""
    if not (a > 0 and x >= 0):
        return _Decided(arb.nan())
    return _determined(function(a.ball, x.ball), a, x) if x > 0 else _Decided(at_zero)


def _log(x: _Decided, value: Ball) -> _Decided:
    """Return a logarithm of x that has the value where x > 0."""
    if x > 0:
        return _Decided(value)
    return _Decided(arb.neg_inf() if x == 0 else arb.nan())


def bound(formula: Callable[..., Bound], /, **numbers: Any) -> Bound:
    """Return a bound of `jaxkern.bounds` in balls: the value, probability and log failure of the formula itself.

    Numbers become balls as by `ball`; flags, None and vectors are passed on. A hypothesis that the balls leave open
    raises ArithmeticError, and a bound that is a quadrature in floats ValueError.
    """
    arguments = {}
    for name, value in numbers.items():
        unchanged = value is None or isinstance(value, bool) or np.ndim(value)
        arguments[name] = value if unchanged else _Decided(value)
    found = formula(**arguments)
    return Bound(
        _Decided(found.value).ball,
        _Decided(found.probability).ball,
        found.valid,
        found.source,
        exponent=_Decided(-found.log_failure).ball,
    )
