"""How a public function is called on a case, and what must be true of the numbers.

`make(case)` returns {word: (value, text)}. The text has the shape, such as "n dim" or "m 2", or "" for a number. After
a colon it may have the interval in which finite numbers lie, and say that they descend: "few: 0..n descending". It may
name n for the rows of X, m for the rows of Y, dim, few for the landmarks, clusters or components of the case, low and
sup for the limits of kernel values, length for the lengthscale, and other results by their words. `check(case, values)`
yields what else is wrong with finite values.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from support.cases import BOUNDED, KERNELS

from jaxkern import rkhs

TABLE = {}


@dataclasses.dataclass(frozen=True)
class Operation:
    """One public function, and what is asked of it.

    make, check : see the top of the module.
    words : names that a refusal may give, beside those of the arguments of the function itself.
    least : the least number of rows that it takes.
    kernels : the kernels that it is tried with.
    points : whether it is called on the points of the case; if not, their form and what they miss do not matter.
    used : how many rows of X it looks at, by default all.
    hides : why missing data need not show in the result; "" where they must.
    shows_infinity : whether infinite data must show, too; not where a limit is the right answer, such as K = 0.
    overflows : whether squares that leave the range of the dtype may make a result that is not finite; or a function of
        the case that tells whether the result itself leaves it.
    any_dtype : whether the result has a dtype of its own.
    arrays : whether it takes arrays of NumPy and JAX in their own dtype, and no lists.
    converts : whether it is an estimator of scikit-learn, which converts what it can, and refuses in its own words.
    of_one_array : words of results that know their diagonal where both sides are one array, which those of NumPy are
        not once each is converted; elsewhere it is rounded.
    skips : forms that are not tried, since the function takes arrays of any shape.
    widest : the largest dimension that it is tried in.
    gradient : whether gradients are asked of its program; not of integers, of what is piecewise constant, or of a loop
        as long as the data say.
    turned : words of results that rest on eigenvectors, so that their inner products alone are the same everywhere.
    unsteady : words of results that are left out of its program, since rounding decides where they go, or a loop as
        long as the data say has no derivative.
    example : what is special about the case of its program.
    program : a function of the case in the place of `make`.
    """

    make: Callable[[Any], dict]
    check: Callable[[Any, dict], Any]
    words: str = ""
    least: int = 1
    kernels: tuple[str, ...] = ("gaussian",)
    points: bool = True
    used: int | None = None
    hides: str = ""
    shows_infinity: bool = True
    overflows: Callable[[Any], bool] | bool = False
    any_dtype: bool = False
    arrays: bool = False
    converts: bool = False
    of_one_array: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()
    widest: int = 10_000
    gradient: bool = True
    turned: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()
    example: dict[str, Any] = dataclasses.field(default_factory=dict)
    program: Callable[[Any], Any] | None = None

    def results(self, case):
        """Return what is the same wherever and however a program of the function runs."""
        if self.program:
            return self.program(case)
        values = {word: value for word, (value, _) in self.make(case).items()}
        for word in self.unsteady:
            del values[word]
        for word in self.turned:
            values[word] = products(values[word])
        return values


def parts(result, **texts):
    """Return fields of a result with the texts on their shapes and ranges."""
    return {word: (getattr(result, word), text) for word, text in texts.items()}


def products(Z):
    return jnp.matmul(Z, Z.T, precision=jax.lax.Precision.HIGHEST)


ANY_SHAPE = ("stacked", "number", "no columns")


def nothing_more(c, v):
    return ()


def op(name, check=nothing_more, **settings):
    def register(make):
        assert name not in TABLE, name
        TABLE[name] = Operation(make, check, **settings)
        return make

    return register


def names_of(c):
    """Return the sizes and limits that a text may name."""
    sizes = {"n": c.n, "m": c.n + 1, "dim": c.dim, "few": c.few}
    low = 0 if sup(c) < np.inf else -np.inf
    return sizes | {"inf": np.inf, "low": low, "sup": sup(c), "length": c.lengthscale}


def shape_of(c, text):
    """Return the shape that a text says."""
    words = text.partition(":")[0].split()
    return tuple(eval(word, names_of(c)) for word in words)


def check_range(c, values, word, text):
    """Yield a complaint if finite numbers leave the interval that a text says, or do not descend as it says."""
    names = names_of(c) | values
    for fact in text.partition(":")[2].split():
        if fact == "descending":
            if (np.diff(finite(values[word])) > 0).any():
                yield f"{word} not descending"
            continue
        low, _, high = fact.partition("..")
        high = eval(high or "inf", names)
        # Sums of n numbers, and eigenvalues of n rows, are rounded by n eps times the largest. A sign alone is exact.
        slack = np.where(np.isfinite(high), 16 * (c.n + 1) * c.eps * high, 0.0)
        yield from within(word, values[word], eval(low, names), high, slack)


def finite(values):
    values = np.float64(values)
    return values[np.isfinite(values)]


def within(word, values, low, high, slack=0.0):
    """Yield a complaint if a number that is finite lies outside [low - slack, high + slack]."""
    values = np.float64(values)
    excess = finite(np.maximum(low - values, values - high) - slack)
    if (excess > 0).any():
        limits = f"[{np.min(low):.9g}, {np.max(high):.9g}]"
        yield f"{word} not in {limits}, by {excess.max():.3g} beyond the slack of {np.max(slack):.3g}"


def near(word, values, expected, slack):
    """Yield a complaint if a finite number is further than the slack from a finite number expected."""
    yield from within(word, values, np.float64(expected), np.float64(expected), slack)


def equal(word, first, second):
    """Yield a complaint unless numbers are the same to the last bit; NaN equals itself."""
    if not np.array_equal(first, second, equal_nan=np.asarray(first).dtype.kind == "f"):
        yield f"{word} differ"


def rows_of(c, rows, distinct=True):
    """Yield a complaint unless the rows are points, bit by bit, and each at most as often as among the points."""
    # Adding 0 makes -0.0 the same bits as 0.0.
    points = Counter(row.tobytes() for row in c.plain + 0)
    chosen = Counter(row.tobytes() for row in np.asarray(rows) + 0)
    if not (chosen <= points if distinct else chosen.keys() <= points.keys()):
        yield "a row that is none of the points, or taken too often"


def sup(c):
    """Return the largest kernel value that is possible."""
    limits = {"scaled": 2.5, "sum": 2.0, "user": 1.0}
    return limits.get(c.kernel_name, 1.0 if c.kernel_name in BOUNDED else np.inf)


EVERY = tuple(name for name in KERNELS if name != "scaled matern32")
"""Kernels of the stress; the other one is for examples of Fourier features."""
PSD = tuple(name for name in EVERY if name != "distance")


def positive(c, *shape):
    return jnp.abs(c.numbers(*shape))


def function(c, columns=2):
    return rkhs.Function(c.kernel, c.Y, c.numbers(c.n + 1, columns))
