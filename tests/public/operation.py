"""How a public function is called on a case, and what must be true of the numbers.

`make(case)` returns {word: (value, shape)}. A shape is written as "n dim" or "m 2", or "" for a number: n stands for
the rows of X, m for those of Y, few for the landmarks, clusters or components of the case. `check(case, values)` yields
what is wrong with finite values.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from support.cases import KERNELS

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
    words: tuple[str, ...] = ()
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
        made = {
            word: value
            for word, (value, _) in self.make(case).items()
            if word not in self.unsteady
        }
        return {
            word: products(value) if word in self.turned else value
            for word, value in made.items()
        }


def parts(result, **shapes):
    """Return fields of a result with the shapes that they should have."""
    return {word: (getattr(result, word), shape) for word, shape in shapes.items()}


def products(Z):
    return jnp.matmul(Z, Z.T, precision=jax.lax.Precision.HIGHEST)


ANY_SHAPE = ("stacked", "number", "no columns")


def nothing_more(c, v):
    return ()


def op(name, check=nothing_more, **words):
    def register(make):
        assert name not in TABLE, name
        TABLE[name] = Operation(make, check, **words)
        return make

    return register


def finite(values):
    values = np.float64(values)
    return values[np.isfinite(values)]


def within(word, values, low, high, slack=0.0):
    """Yield a complaint if a number that is finite lies outside [low - slack, high + slack]."""
    values = finite(values)
    if values.size and not (
        values.min() >= low - slack and values.max() <= high + slack
    ):
        yield f"{word} in [{values.min():.9g}, {values.max():.9g}], not in [{low:.9g}, {high:.9g}] +- {slack:.3g}"


def equal(word, first, second):
    """The same numbers to the last bit, but for NaN, which equals itself."""
    if not np.array_equal(first, second, equal_nan=True):
        yield f"{word} differ"


def near(word, found, wanted, slack):
    found, wanted = np.broadcast_arrays(np.float64(found), np.float64(wanted))
    both = np.isfinite(found) & np.isfinite(wanted)
    gap = np.abs(found - wanted)[both] - np.broadcast_to(slack, found.shape)[both]
    if gap.size and gap.max() > 0:
        yield f"{word} off by {gap.max():.3g} beyond the slack of {np.max(slack):.3g}"


def descending(word, values):
    values = finite(values)
    if (np.diff(values) > 0).any():
        yield f"{word} not descending"


def whole(word, values, low, high):
    if values.size and not (values.min() >= low and values.max() < high):
        yield f"{word} in [{values.min()}, {values.max()}], not in [{low}, {high})"


def rows_of(c, chosen, distinct=True):
    """Every row is one of the points, bit by bit, and taken as often at most as it is there."""
    points, left = c.plain + 0, {}  # no -0.0
    for row in points:
        left[row.tobytes()] = left.get(row.tobytes(), 0) + 1
    for row in np.asarray(chosen) + 0:
        count = left.get(row.tobytes(), 0)
        if count == 0:
            yield "a row that is none of the points, or taken too often"
            return
        if distinct:
            left[row.tobytes()] = count - 1


def sup(c):
    """The largest kernel value that is possible."""
    return 2.5 if c.kernel_name == "scaled" else 2.0 if c.kernel_name == "sum" else 1.0


STATIONARY = (
    "gaussian",
    "laplacian",
    "exponential",
    "cauchy",
    "matern32",
    "matern52",
    "sum",
    "product",
    "scaled",
)
EVERY = tuple(
    name for name in KERNELS if name != "scaled matern32"
)  # that one is for examples of Fourier features
PSD = tuple(name for name in EVERY if name != "distance")


def positive(c, *shape):
    return jnp.abs(c.numbers(*shape))


def function(c, columns=2):
    return rkhs.Function(c.kernel, c.Y, c.numbers(c.n + 1, columns))
