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

    return register


def normal(kind, name, scale=1.0, offset=0.0):
    """Add a family of normal numbers."""

    @family(kind, name)
    def _(rng, n, d):
        return offset + scale * rng.standard_normal((n, d))


normal(ORDINARY, "plain")
normal(ORDINARY, "offset 1e3", offset=1e3)
normal(ORDINARY, "offset 1e6", offset=1e6)
for _power in (-6, -3, 3, 6):
    normal(ORDINARY, f"scale 1e{_power}", 10.0**_power)


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


# float32 ends at 3.4e38 and is subnormal from 1.2e-38; the same powers are harmless in float64, and a test there.
normal(EXTREME, "tiny", 1e-30)
normal(EXTREME, "huge", 1e30)
normal(EXTREME, "subnormal", 1e-41)
normal(EXTREME, "tiny squared", 1e-180)
normal(EXTREME, "huge squared", 1e180)

for _name, _value in (
    ("nan", np.nan),
    ("nan column", np.nan),
    ("infinity", np.inf),
    ("minus infinity", -np.inf),
):

    @family(MISSING, _name)
    def _(rng, n, d, name=_name, value=_value):
        X = rng.standard_normal((n, d))
        # One of the rows that become X, if there is any.
        row = rng.integers(max(n // 2, 1))
        rows = slice(None) if name == "nan column" else slice(row, row + 1)
        X[rows, rng.integers(d)] = value
        return X


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _strided(X):
    """Every third number of every second row of a larger array, the others of which are NaN."""
    wide = np.full([3 * size for size in X.shape], np.nan, X.dtype)
    strided = wide[::3] if X.ndim == 1 else wide[: 2 * len(X) : 2, ::3]
    strided[...] = X
    return strided


def _reversed(X):
    return np.flip(np.ascontiguousarray(np.flip(X)))


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
    "masked": lambda X: np.ma.masked_array(X, np.zeros(X.shape, bool)),
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


def between(points, lengthscale=1.0):
    """Return the distances of all pairs of rows over the lengthscale, in float64."""
    rows = np.float64(points)
    # Divided by the largest entry, so that the squares are in the range of float64.
    largest = np.abs(rows[np.isfinite(rows)]).max(initial=0) or 1.0
    with np.errstate(all="ignore"):
        differences = (rows[:, None] - rows[None]) / largest
        return np.linalg.norm(differences, axis=2) * largest / lengthscale


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
"""Kernels of differences, with sums and multiples of them."""
BOUNDED = set(STATIONARY) - {"sum", "scaled"}
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
            rows = FAMILIES[self.family](rng, 2 * self.n + 1, self.dim)
            rows = rows.astype(self.dtype)
        # What is special about the points of these families is so in the first half, which becomes X.
        is_ordered = self.family in MISSING | {"far point"}
        return rows if is_ordered else rng.permutation(rows)

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
        distances = between(self.rows)
        distances = distances[(distances > 0) & np.isfinite(distances)]
        return float(self.ratio * (np.median(distances) if distances.size else 1.0))

    @property
    def x(self):
        """The first point, in the form of the case."""
        if self.form == "list of arrays":
            return list(self.plain[0])
        return formed(self, self.plain[0])

    @property
    def K(self):
        """A Gaussian Gram matrix of the points, computed in float64 and rounded, in the form of the case."""
        with np.errstate(all="ignore"):
            K = np.exp(-(between(self.plain, self.lengthscale) ** 2) / 2)
            return formed(self, K.astype(self.dtype))

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
        info = np.finfo(self.dtype)
        least = float(info.tiny) / self.eps**2
        most = float(info.max) * self.eps / self.dim
        with np.errstate(all="ignore"):
            square = np.abs(np.float64(self.rows)).max() ** 2
            # The square of a number that is not 0 may be.
            return not self.rows.any() or least <= square <= most

    @property
    def grows(self):
        """Whether kernel values, or sums and products of a few, leave the range of the dtype."""
        with np.errstate(all="ignore"):
            square = (np.float64(self.rows) ** 2).sum(axis=1).max()
            limit = np.float64(np.finfo(self.dtype).max) / len(self.rows)
            if self.kernel_name == "linear":
                return not square < limit
            ratio = square / np.float64(self.lengthscale) ** 2
            return self.kernel_name == "polynomial" and not (1 + ratio) ** 2 < limit

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
        # `jnp.asarray` would compile a program.
        return jax.device_put(rng.standard_normal(shape).astype(self.dtype))

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
        rng = np.random.default_rng([self.seed, 9])
        return jnp.asarray(rng.integers(0, 3, self.n), jnp.int32)

    @property
    def other_labels(self):
        rng = np.random.default_rng([self.seed, 10])
        return jnp.asarray(rng.integers(0, 3, self.n), jnp.int32)

    @property
    def eps(self):
        return float(np.finfo(self.dtype).eps)

    @property
    def reach(self):
        """The largest distance of a point from the mean, over the lengthscale, squared: what products round by."""
        rows = np.float64(self.rows)
        with np.errstate(all="ignore"):
            differences = (rows - rows.mean(axis=0)) / self.lengthscale
            return float((differences**2).sum(axis=1).max())


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


class Recorded:
    """A case whose arrays come from `arrays`; arrays that a function asks for are added there."""

    def __init__(self, case, arrays):
        self.case = case
        self.arrays = arrays

    def __getattr__(self, word):
        if word not in ARRAYS:
            return getattr(self.case, word)
        if word not in self.arrays:
            self.arrays[word] = getattr(self.case, word)
        return self.arrays[word]

    def numbers(self, *shape, salt=0):
        if (shape, salt) not in self.arrays:
            self.arrays[shape, salt] = self.case.numbers(*shape, salt=salt)
        return self.arrays[shape, salt]


def as_program(call, **settings):
    """Return `make(dtype, seed) -> (function, arguments)` of a function of a case: its arguments are what it asks for.

    Keys are consumed once, so every call of `make` draws them again.
    """

    @functools.cache
    def words():
        arrays = {}
        case = Recorded(Example("", **settings), arrays)
        jax.eval_shape(lambda: call(case))
        return tuple(arrays)

    def make(dtype, seed):
        case = Example("", dtype=np.dtype(dtype).name, seed=seed, **settings)

        def array(word):
            if isinstance(word, str):
                return getattr(case, word)
            shape, salt = word
            return case.numbers(*shape, salt=salt)

        def function(*args):
            return call(Recorded(case, dict(zip(words(), args, strict=True))))

        return function, tuple(map(array, words()))

    return make
