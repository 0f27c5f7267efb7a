"""Data that hurt: families of points, the forms in which they may be passed, and a case, which is one of each.

A case is made of names, sizes and a seed alone, so a line of text repeats it.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import kernels

FAMILIES = {}
"""Generators (rng, rows, dim) -> float64 array; the dtype of the case rounds it."""
ORDINARY, EXTREME, MISSING = set(), set(), set()
"""Families by what may be asked of a result: that it is finite; that what is finite is right; that it shows."""


def family(kind, name):
    def register(make):
        FAMILIES[name] = make
        kind.add(name)
        return make

    return register


def shifted(by):
    return lambda rng, n, d: by + rng.standard_normal((n, d))


def scaled(by):
    return lambda rng, n, d: by * rng.standard_normal((n, d))


family(ORDINARY, "plain")(scaled(1.0))
family(ORDINARY, "offset 1e3")(shifted(1e3))
family(ORDINARY, "offset 1e6")(shifted(1e6))
for _power in (-6, -3, 3, 6):
    family(ORDINARY, f"scale 1e{_power}")(scaled(10.0**_power))


@family(ORDINARY, "near-duplicates")
def _(rng, n, d):
    """Every point has a neighbour at a distance of 1e-7."""
    base = rng.standard_normal((n, d))
    return base[np.arange(n) // 2] + 1e-7 * rng.standard_normal((n, d))


@family(ORDINARY, "rank one")
def _(rng, n, d):
    return np.outer(rng.standard_normal(n), rng.standard_normal(d))


@family(ORDINARY, "constant")
def _(rng, n, d):
    return np.tile(rng.standard_normal(d), (n, 1))


@family(ORDINARY, "zeros")
def _(rng, n, d):
    return np.zeros((n, d))


@family(ORDINARY, "mixed scales")
def _(rng, n, d):
    """One column at 1e-6, one at 1e6, the others between."""
    return rng.standard_normal((n, d)) * np.geomspace(1e-6, 1e6, d)


@family(ORDINARY, "far point")
def _(rng, n, d):
    """The first point is a million away from the others."""
    X = rng.standard_normal((n, d))
    X[:1] += 1e6
    return X


@family(ORDINARY, "few values")
def _(rng, n, d):
    """Whole numbers, -0.0 among them: ties everywhere."""
    return np.round(rng.standard_normal((n, d)))


def of_range(edge):
    """Points whose squares leave the range of the dtype, by a factor of the edge of it."""

    def make(rng, n, d):
        return rng.standard_normal((n, d)) * edge

    return make


# float32 ends at 3.4e38 and is subnormal from 1.2e-38; the same powers are harmless in float64, and a test there.
family(EXTREME, "tiny")(of_range(1e-30))
family(EXTREME, "huge")(of_range(1e30))
family(EXTREME, "subnormal")(of_range(1e-41))
family(EXTREME, "tiny squared")(of_range(1e-180))
family(EXTREME, "huge squared")(of_range(1e180))


def _holding(value, everywhere=False):
    def make(rng, n, d):
        X = rng.standard_normal((n, d))
        if n:
            X[
                slice(None) if everywhere else rng.integers(max(n // 2, 1)),
                rng.integers(d),
            ] = value
        return X

    return make


family(MISSING, "nan")(_holding(np.nan))
family(MISSING, "nan column")(_holding(np.nan, everywhere=True))
family(MISSING, "infinity")(_holding(np.inf))
family(MISSING, "minus infinity")(_holding(-np.inf))


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _strided(X):
    """Every third number of every second row of a larger array, the others of which are NaN."""
    between = tuple(slice(None, None, step) for step in (2, 3)[: X.ndim])
    wide = np.full(
        [size * step.step for size, step in zip(X.shape, between, strict=True)],
        np.nan,
        X.dtype,
    )
    wide[between] = X
    return wide[between]


def _reversed(X):
    return np.flip(np.ascontiguousarray(np.flip(X)))


def _masked(X):
    return np.ma.masked_array(X, np.zeros(X.shape, bool))


ACCEPTED = {
    "NumPy": np.ascontiguousarray,
    "JAX": jnp.asarray,
    "read-only": _read_only,
    "Fortran order": np.asfortranarray,
    "strided": _strided,
    "negative strides": _reversed,
    "list": lambda X: X.tolist(),
    "list of arrays": list,
    "memoryview": lambda X: memoryview(np.ascontiguousarray(X)),
    "wider": lambda X: X.astype(np.float64),
}
"""Forms that give the bits of the plain array. "wider" is float64, which JAX makes float32 where x64 is off."""
REFUSED = {
    "float16": lambda X: X.astype(np.float16),
    "bfloat16": lambda X: jnp.asarray(X).astype(jnp.bfloat16),
    "NumPy bfloat16": lambda X: X.astype(jnp.bfloat16),
    "int32": lambda X: np.ones(X.shape, np.int32),
    "whole numbers in a list": lambda X: np.ones(X.shape, int).tolist(),
    "uint8": lambda X: np.ones(X.shape, np.uint8),
    "bool": lambda X: np.ones(X.shape, bool),
    "complex": lambda X: X.astype(np.complex64),
    "big-endian": lambda X: X.astype(X.dtype.newbyteorder(">")),
    "masked": _masked,
    "objects": lambda X: X.astype(object),
    "text": lambda X: np.full(X.shape, "x").tolist(),
    "structured": lambda X: np.zeros(X.shape, [("x", X.dtype)]),
    "ragged": lambda X: [[1.0], [1.0, 2.0], []],
    "stacked": lambda X: X[None],
    "no columns": lambda X: X[..., :0],
    "number": lambda X: 1.5,
    "None": lambda X: None,
    "dict": lambda X: {"X": X},
}
"""Forms that are refused, by a ValueError that names the argument."""
OF_NO_ROWS = (
    "NumPy",
    "JAX",
    "read-only",
    "Fortran order",
    "float16",
    "big-endian",
    "stacked",
    "no columns",
    "None",
)
"""Forms of an empty batch: lists of nothing have neither a dimension nor a dtype."""


def formed(case, array):
    """Return an array in the form of a case."""
    with np.errstate(all="ignore"):  # of float16
        return {**ACCEPTED, **REFUSED}[case.form](array)


SIZES = ((1, 1), (1, 3), (2, 1), (2, 3), (3, 3), (12, 1), (12, 3), (3, 10_000), (0, 3))
RATIOS = (1e-3, 0.1, 1.0, 10.0, 1e3)
"""Lengthscales over the median distance."""


def user(x, y):
    return 1 / (1 + jnp.sum(jnp.abs(x - y)))


KERNELS = {
    "gaussian": kernels.Gaussian,
    "laplacian": kernels.Laplacian,
    "exponential": kernels.Exponential,
    "cauchy": kernels.Cauchy,
    "matern32": kernels.Matern32,
    "matern52": kernels.Matern52,
    "sum": lambda length: kernels.Gaussian(length) + kernels.Matern32(length),
    "product": lambda length: kernels.Gaussian(length) * kernels.Cauchy(length),
    "scaled": lambda length: 2.5 * kernels.Gaussian(length),
    "scaled matern32": lambda length: length * kernels.Matern32(length),
    "linear": lambda length: kernels.Linear(),
    "polynomial": lambda length: kernels.Polynomial(2, 1.0, length),
    "distance": lambda length: kernels.Distance(),
    "user": lambda length: kernels.FromFunction(user),
}
BOUNDED = {
    "gaussian",
    "laplacian",
    "exponential",
    "cauchy",
    "matern32",
    "matern52",
    "product",
}
"""Kernels with values in [0, 1]."""


@dataclasses.dataclass(frozen=True)
class Case:
    """One call: of what, on which points, of which lengthscale, and in which form."""

    name: str
    family: str = "plain"
    n: int = 12
    dim: int = 3
    dtype: str = "float32"
    ratio: float = 1.0
    kernel_name: str = "gaussian"
    form: str = "NumPy"
    seed: int = 0

    def line(self):
        """Return the arguments that repeat the case: `Case(*line)`."""
        return repr(dataclasses.astuple(self))

    @functools.cached_property
    def rows(self):
        """The points of X and of Y, in the dtype of the case."""
        rng = np.random.default_rng([self.seed, self.n, self.dim])
        with np.errstate(over="ignore", under="ignore"):
            made = FAMILIES[self.family](rng, 2 * self.n + 1, self.dim).astype(
                self.dtype
            )
        return (
            made
            if self.family in MISSING | {"far point"}
            else made[rng.permutation(len(made))]
        )

    @property
    def plain(self):
        """The points X as they are, (n, dim)."""
        return np.ascontiguousarray(self.rows[: self.n])

    @property
    def X(self):
        """The points, (n, dim), in the form of the case."""
        return formed(self, self.plain)

    @property
    def Y(self):
        """Further points of the family, (n + 1, dim)."""
        return jnp.asarray(self.rows[self.n :])

    @functools.cached_property
    def lengthscale(self):
        """The ratio times the median of the distances that are positive, or times 1."""
        rows = np.float64(self.rows)
        rows = rows[np.isfinite(rows).all(axis=1)]
        with np.errstate(all="ignore"):
            # Divided by the largest entry, so that the squares are in the range of float64.
            largest = np.abs(rows).max(initial=0) or 1.0
            apart = (
                np.linalg.norm((rows[:, None] - rows[None]) / largest, axis=2) * largest
            )
            apart = apart[(apart > 0) & np.isfinite(apart)]
            return float(self.ratio * (np.median(apart) if apart.size else 1.0))

    @property
    def x(self):
        """The first point, in the form of the case."""
        return (
            formed(self, self.plain[0])
            if self.form != "list of arrays"
            else list(self.plain[0])
        )

    @property
    def K(self):
        """A Gaussian Gram matrix of the points, computed in float64 and rounded, in the form of the case."""
        rows = np.float64(self.plain)
        with np.errstate(all="ignore"):
            squares = (((rows[:, None] - rows[None]) / self.lengthscale) ** 2).sum(
                axis=2
            )
            return formed(self, np.exp(-squares / 2).astype(self.dtype))

    @property
    def length(self):
        """The lengthscale as functions are given it: a number of Python, in an example an array."""
        return self.lengthscale

    @property
    def kernel(self):
        return KERNELS[self.kernel_name](self.length)

    @property
    def fits(self):
        """Whether the lengthscale is in the range of the dtype."""
        info = np.finfo(self.dtype)
        return float(info.tiny) <= self.lengthscale <= float(info.max)

    @property
    def in_range(self):
        """Whether sums of squares of the points, and of their differences where they differ, are normal numbers."""
        info, rows = np.finfo(self.dtype), np.float64(self.rows)
        largest = np.abs(rows).max()
        with np.errstate(all="ignore"):
            return (
                largest == 0
                or float(info.tiny) / self.eps**2
                <= largest**2
                <= float(info.max) * self.eps / self.dim
            )

    @property
    def grows(self):
        """Whether kernel values, or sums and products of a few, leave the range of the dtype."""
        rows = np.float64(self.rows)
        with np.errstate(all="ignore"):
            square = (rows**2).sum(axis=1).max()
            largest = {
                "linear": square,
                "polynomial": (1 + square / np.float64(self.lengthscale) ** 2) ** 2,
            }
            return not largest.get(self.kernel_name, 1.0) * len(rows) < float(
                np.finfo(self.dtype).max
            )

    @property
    def key(self):
        return jax.random.key(self.seed % 2**31)

    @property
    def other_key(self):
        return jax.random.fold_in(self.key, 1)

    @property
    def few(self):
        """A number of clusters, landmarks or components that there are points for."""
        return max(min(3, self.n), 1)

    def numbers(self, *shape, salt=0):
        """Standard normal numbers in the dtype of the case, which have nothing to do with the points."""
        rng = np.random.default_rng([self.seed, 7, salt, *shape])
        return jax.device_put(
            rng.standard_normal(shape).astype(self.dtype)
        )  # which compiles nothing

    @property
    def shares(self):
        """Positive weights (n,) with sum 1."""
        weights = np.random.default_rng([self.seed, 8]).uniform(0.1, 1, self.n)
        return jnp.asarray(weights / weights.sum(), self.dtype)

    @property
    def ones(self):
        """A weight of one for every point."""
        return jnp.ones(self.n, self.dtype)

    @property
    def share(self):
        """A number between 0 and 1."""
        return jnp.asarray(0.1, self.dtype)

    @property
    def labels(self):
        return jnp.asarray(
            np.random.default_rng([self.seed, 9]).integers(0, 3, self.n), jnp.int32
        )

    @property
    def other_labels(self):
        return jnp.asarray(
            np.random.default_rng([self.seed, 10]).integers(0, 3, self.n), jnp.int32
        )

    @property
    def eps(self):
        return float(np.finfo(self.dtype).eps)

    @property
    def reach(self):
        """The largest distance of a point from the mean, over the lengthscale, squared: what products round by."""
        rows = np.float64(self.rows)
        with np.errstate(all="ignore"):
            return float(
                (((rows - rows.mean(axis=0)) / self.lengthscale) ** 2).sum(axis=1).max()
            )


ARRAYS = (
    "K", "X", "Y", "kernel", "key", "labels", "length", "ones", "other_key", "other_labels", "share", "shares", "x"
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Example(Case):
    """A case of twelve points whose numbers are arrays, so that any of them may be an argument of a program."""

    form: str = "JAX"

    @property
    def length(self):
        return jnp.asarray(self.lengthscale, self.dtype)

    @property
    def kernel(self):
        return jax.tree.map(
            lambda number: jnp.asarray(number, self.dtype), super().kernel
        )

    @property
    def ones(self):
        return 12 * self.shares

    @property
    def share(self):
        return jnp.asarray(0.3 + 0.05 * self.seed, self.dtype)


class Asked:
    """A case whose arrays are those that are given, and that notes which ones a function asks for."""

    def __init__(self, case, given=None):
        self.case, self.given = case, {} if given is None else given

    def __getattr__(self, word):
        make = functools.partial(getattr, self.case, word)
        return self.array(word, make) if word in ARRAYS else make()

    def numbers(self, *shape, salt=0):
        return self.array((shape, salt), lambda: self.case.numbers(*shape, salt=salt))

    def array(self, word, make):
        if word not in self.given:
            self.given[word] = make()
        return self.given[word]


def as_program(call, **settings):
    """Return `make(dtype, seed) -> (function, arguments)` of a function of a case: its arguments are what it asks for.

    Keys are consumed once, so every call of `make` draws them again.
    """

    @functools.cache
    def words():
        asked = Asked(Example("", **settings))
        jax.eval_shape(lambda: call(asked))
        return tuple(asked.given)

    def make(dtype, seed):
        case = Example("", dtype=np.dtype(dtype).name, seed=seed, **settings)
        args = [
            case.numbers(*word[0], salt=word[1])
            if isinstance(word, tuple)
            else getattr(case, word)
            for word in words()
        ]
        return lambda *args: call(
            Asked(case, dict(zip(words(), args, strict=True)))
        ), tuple(args)

    return make
