"""What the property modules draw: a kernel, points that are hard for it, weights and a key, all on one shape.

A case is made of a few numbers and names, so the line that hypothesis prints repeats it. Kernels are sums of three with
drawn coefficients, so that one compiled program serves them all. The oracle, `Exact`, is float64 NumPy on explicit
coordinates of the span of all points; it shares no code with the package.
"""

import dataclasses
import functools

import house
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from scipy import stats

from jaxkern import kernels

N, _, DIM = house.USUAL
ALARM = 1e-9
"""The probability at most, where a statement holds, of one test of one case of it saying that it does not."""

ROWS = (2 * N, DIM)


def clusters(rng):
    centers = 3 * rng.normal(size=(3, DIM))
    return centers[np.arange(2 * N) % 3] + 0.1 * rng.normal(size=ROWS)


ARRANGEMENTS = {
    "clusters": clusters,
    "repeated": lambda rng: rng.normal(size=(4, DIM))[rng.integers(0, 4, 2 * N)],
    "on a line": lambda rng: np.outer(rng.normal(size=2 * N), rng.normal(size=DIM)),
    "far": lambda rng: 1e3 + rng.normal(size=ROWS) * [1, 10, 100],
    "nearly equal": lambda rng: rng.normal(size=DIM) + 1e-4 * rng.normal(size=ROWS),
    "plain": lambda rng: rng.normal(size=ROWS),
}


def radial(profile):
    """Return a function of differences over the lengthscale, by its profile of their squared lengths."""
    return lambda u: profile((u**2).sum(axis=-1))


VALUES = {
    "Gaussian": radial(lambda s: np.exp(-s / 2)),
    "Exponential": radial(lambda s: np.exp(-np.sqrt(s))),
    "Matern32": radial(lambda s: (1 + np.sqrt(3 * s)) * np.exp(-np.sqrt(3 * s))),
    "Matern52": radial(
        lambda s: (1 + np.sqrt(5 * s) + 5 * s / 3) * np.exp(-np.sqrt(5 * s))
    ),
    "Laplacian": lambda u: np.exp(-np.abs(u).sum(axis=-1)),
    "Cauchy": lambda u: 1 / np.prod(1 + u**2, axis=-1),
}
"""By name of a kernel, its value in NumPy, at differences over the lengthscale, of any numbers that NumPy holds."""
PARTS = ("Gaussian", "Laplacian", "Matern32")


def kernel(lengthscale, parts):
    """Return the kernel with these coefficients of its three parts."""
    first, second, third = (getattr(kernels, name)(lengthscale) for name in PARTS)
    return first * parts[0] + second * parts[1] + third * parts[2]


@dataclasses.dataclass(frozen=True)
class Drawn:
    """One case. `parts` are the coefficients of the kernel, `uneven` the powers of ten over which weights range."""

    seed: int
    arrangement: str
    lengthscale: float
    parts: tuple
    uneven: float
    missing: int

    def given(self):
        """Return kernel, points X and Y (N, DIM) each, and weights (N,), in the precision of the environment."""
        dtype = house.dtype()
        rng = np.random.default_rng(self.seed)
        scale = 10**self.lengthscale
        points = np.asarray(scale * ARRANGEMENTS[self.arrangement](rng), dtype)
        weights = 10 ** (-self.uneven * rng.permutation(np.linspace(0, 1, N)))
        weights[: self.missing] = 0
        parts = [jnp.asarray(part, dtype) for part in self.parts]
        mixture = kernel(jnp.asarray(scale, dtype), parts)
        return mixture, *map(
            jnp.asarray, (points[:N], points[N:], weights.astype(dtype))
        )

    def key(self, number=0):
        """Return one of the keys of the case."""
        return jax.random.fold_in(jax.random.key(self.seed), number)

    def numbers(self, *shape):
        """Return standard normal numbers that are the same for equal shapes."""
        source = np.random.default_rng([self.seed, *shape])
        return jnp.asarray(source.normal(size=shape), house.dtype())

    def exact(self):
        """Return the oracle for the same numbers."""
        mixture, *arrays = self.given()
        return Exact(*jax.tree.map(np.float64, (jax.tree.leaves(mixture), *arrays)))


def drawn():
    """Return the strategy of cases."""
    part = st.floats(0.1, 2)
    alone = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]
    powers = st.floats(-2, 2)
    return st.builds(
        Drawn,
        seed=st.integers(0, 2**32 - 1),
        arrangement=st.sampled_from(sorted(ARRANGEMENTS)),
        lengthscale=powers.map(lambda power: round(power, 3)),
        parts=st.sampled_from(alone) | st.tuples(part, part, part),
        uneven=st.just(0.0) | st.floats(0, 3),
        missing=st.integers(0, N // 2),
    )


PLAIN = Drawn(
    seed=1,
    arrangement="plain",
    lengthscale=0.0,
    parts=(1.0, 0.0, 0.0),
    uneven=1.0,
    missing=2,
)
"""With which planted mistakes are looked for."""


class Exact:
    """Coordinates of the span of the sections at X and Y, in float64: row i of `F` is the section at the i-th point."""

    def __init__(self, leaves, X, Y, weights):
        """Take the leaves of a kernel, and the points: every part has its lengthscale and its coefficient."""
        scales = leaves[::2]
        self.weights = weights / weights.sum()
        Z = np.concatenate([X, Y])
        differences = Z[:, None] - Z[None]
        self.G = 0.0
        for name, scale, part in zip(PARTS, scales, leaves[1::2], strict=True):
            self.G = self.G + part * VALUES[name](differences / scale)
        values, vectors = np.linalg.eigh(self.G)
        self.F = vectors * np.sqrt(np.maximum(values, 0))
        self.FX = self.F[: len(X)]
        self.FY = self.F[len(X) :]
        spread = ((Z - Z.mean(axis=0)) ** 2).sum(axis=1).max() / min(scales) ** 2
        self.size = self.G.max()
        self.spread = 1 + min(spread, 84.0)
        """Rounding of a kernel value is at most a few times `spread` times `size` times eps."""

    def covariance(self, centered=False, weights=None):
        """Return Sigma as a matrix in these coordinates, with the weights of the case or others."""
        w = self.weights if weights is None else np.asarray(weights) / np.sum(weights)
        mean = w @ self.FX if centered else 0.0
        return ((self.FX - mean).T * w) @ (self.FX - mean)


def power(sigma, p):
    """Return a power of a positive semidefinite matrix, by its eigenvalues."""
    values, vectors = np.linalg.eigh(sigma)
    return (vectors * np.maximum(values, 0) ** p) @ vectors.T


def unlikely(values, f, sigma, rounding):
    """Return what independent draws (draws, functions) of <v_i, f> say against the law N(0, sigma) of v.

    Sums of squares of values have chi-square laws, and so have those of values of sums and differences of functions.
    Where neighbours v_i and v_(i+1) are independent, (<v_i, f> + <v_(i+1), f>) / sqrt(2) has the law of <v_i, f>; and
    the mean of all draws is normal. `rounding` is that of a variance.
    """
    mixes = {"f": [1, 0, 0], "g": [0, 1, 0], "f + g": [1, 1, 0], "g - h": [0, 1, -1]}
    unlikely = set()
    for name, mix in mixes.items():
        mixed = values @ mix
        samples = {
            name: mixed,
            f"{name}, neighbours": (mixed[::2] + mixed[1::2]) / 2**0.5,
            f"{name}, mean": len(mixed) ** 0.5 * mixed.mean(keepdims=True),
        }
        variance = float((mix @ f) @ sigma @ (mix @ f))
        for words, sample in samples.items():
            law = stats.chi2(sample.size)
            low = law.ppf(ALARM / 2) / sample.size
            high = law.isf(ALARM / 2) / sample.size
            square = np.mean(sample**2)
            if square < variance * low - rounding:
                unlikely.add(words)
            if square > (variance + rounding) * high:
                unlikely.add(words)
    return unlikely


def natural(function, cases, slack):
    """Assert that a function mapped over stacked arguments gives what it gives one by one, in one program.

    The function must be one of a module: what is compiled for it is kept.
    """
    alone, mapped = _compiled(function)
    together = jax.tree.leaves(mapped(*jax.tree.map(_stack, *cases())))
    for i, case in enumerate(cases()):
        for rows, part in zip(together, jax.tree.leaves(alone(*case)), strict=True):
            size = 1 + np.abs(np.asarray(part)).max(initial=0)
            house.close(rows[i], part, slack * size)


def programs_of(function):
    """Return how many programs were compiled for a function by `natural`: one by one, and mapped."""
    return tuple(program._cache_size() for program in _compiled(function))


@functools.cache
def _compiled(function):
    return jax.jit(function), jax.jit(jax.vmap(function))


def _stack(*leaves):
    if jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
        numbers = [jax.random.key_data(leaf) for leaf in leaves]
        return jax.random.wrap_key_data(jnp.stack(numbers))
    return jnp.stack(leaves)
