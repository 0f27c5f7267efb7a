"""Laws of the noise W in X = mu + sqrt(Sigma) W, one or more for each class of amini2021, Definition 2.

All are centred, have unit variances and uncorrelated coordinates, and know the constant omega with which they belong.
"""

from __future__ import annotations

import abc
import math
from functools import cache
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import checks
from jaxkern._types import Array, DTypeLike, Float, PRNGKeyArray
from jaxkern.draws import normal_rows, numbered
from jaxkern.pytrees import pytree

FLOATS = (np.dtype("float32"), np.dtype("float64"))


class Law(abc.ABC):
    """The law of W, of mean 0 and covariance I in every dimension.

    Attributes
    ----------
    lc_class : "a" for Lipschitz images of independent Gaussians, "b" for independent coordinates with densities at
        least 1/omega on an interval, "c" for strongly log-concave laws of curvature at least 1/omega^2.
    omega : the constant of the class, as small as the class allows.
    """

    lc_class: ClassVar[str]

    @property
    @abc.abstractmethod
    def omega(self) -> Any:
        """The constant of the class."""

    @abc.abstractmethod
    def _rows(self, key: jax.Array, num_points: int, dim: int, dtype: Any) -> jax.Array:
        """Return (num_points, dim) independent draws; row i depends on the key and i alone."""

    def sample(
        self, key: PRNGKeyArray, *, num_points: int, dim: int, dtype: DTypeLike = float
    ) -> Float[Array, "num_points dim"]:
        """Return independent draws of W as rows, (num_points, dim)."""
        num_points, dim = (
            checks.count("num_points", num_points),
            checks.count("dim", dim),
        )
        checks.numbers("law", self)
        return self._rows(checks.key(key), num_points, dim, float_dtype(dtype))


@pytree
class GaussianLaw(Law):
    """W ~ N(0, I): strongly log-concave with curvature 1, the case in which amini2021's constant c is 1/2."""

    lc_class: ClassVar[str] = "c"

    @property
    def omega(self) -> float:
        """1."""
        return 1.0

    def _rows(self, key: jax.Array, num_points: int, dim: int, dtype: Any) -> jax.Array:
        return normal_rows(key, num_points, dim, dtype)


@pytree
class UniformImageLaw(Law):
    """W_j = sqrt(3) (2 Phi(Z_j) - 1): uniform on [-sqrt(3), sqrt(3)], as a Lipschitz image of a Gaussian."""

    lc_class: ClassVar[str] = "a"

    @property
    def omega(self) -> float:
        """sqrt(6/pi), the slope of the map at 0."""
        return math.sqrt(6 / math.pi)

    def _rows(self, key: jax.Array, num_points: int, dim: int, dtype: Any) -> jax.Array:
        Z = normal_rows(key, num_points, dim, dtype)
        return math.sqrt(3) * jax.scipy.special.erf(Z / math.sqrt(2))


@pytree
class SoftplusImageLaw(Law):
    """W_j = (log(1 + exp Z_j) - mean) / sd: skewed to the right, unbounded, a Lipschitz image of a Gaussian."""

    lc_class: ClassVar[str] = "a"

    @property
    def omega(self) -> float:
        """1/sd, the slope of the map at infinity."""
        return 1 / _softplus_moments()[1]

    def _rows(self, key: jax.Array, num_points: int, dim: int, dtype: Any) -> jax.Array:
        mean, sd = _softplus_moments()
        return (jax.nn.softplus(normal_rows(key, num_points, dim, dtype)) - mean) / sd


@pytree
class UniformLaw(Law):
    """Independent W_j uniform on [-sqrt(3), sqrt(3)]."""

    lc_class: ClassVar[str] = "b"

    @property
    def omega(self) -> float:
        """2 sqrt(3), the length of the support."""
        return 2 * math.sqrt(3)

    def _rows(self, key: jax.Array, num_points: int, dim: int, dtype: Any) -> jax.Array:
        return math.sqrt(3) * (2 * uniform_rows(key, num_points, dim, dtype) - 1)


@pytree
class RampLaw(Law):
    """Independent W_j = (Y_j - mean) / sd, where Y_j in [0, 1] has the density (1 + slope y) / (1 + slope/2).

    The support is an interval. With bounded supports of several pieces, which Definition 2 (b) admits as printed,
    Theorem 1 of amini2021 is false.

    Parameters
    ----------
    slope : not negative; 0 is the uniform law.
    """

    slope: Any = 2.0

    lc_class: ClassVar[str] = "b"

    def __post_init__(self) -> None:
        checks.non_negative("slope", self.slope)

    def _moments(self) -> tuple[Any, Any]:
        mean = (1 / 2 + self.slope / 3) / (1 + self.slope / 2)
        return mean, ((1 / 3 + self.slope / 4) / (1 + self.slope / 2) - mean**2) ** 0.5

    @property
    def omega(self) -> Any:
        """(1 + slope/2) / sd, one over the density at the lower end."""
        return (1 + self.slope / 2) / self._moments()[1]

    def _rows(self, key: jax.Array, num_points: int, dim: int, dtype: Any) -> jax.Array:
        slope, (mean, sd) = (
            _cast(self.slope, dtype),
            (_cast(value, dtype) for value in self._moments()),
        )
        mass = (1 + slope / 2) * uniform_rows(key, num_points, dim, dtype)
        # The root of y + slope y^2 / 2 = mass, in the form that holds for slope 0, too.
        return (2 * mass / (1 + jnp.sqrt(1 + 2 * slope * mass)) - mean) / sd


@pytree
class SkewedLaw(Law):
    """A tilted Gaussian, density proportional to exp(-|x|^2/2) Phi(tilt <a, x>), a = (1, ..., 1)/sqrt(d), standardised.

    The coordinates are uncorrelated but not independent. -log Phi is convex, so before standardising the curvature is
    at least 1. Drawn exactly: Z or -Z, whichever has tilt <a, Z> above an independent normal variable.

    Parameters
    ----------
    tilt : a number; 0 is the Gaussian.
    """

    tilt: Any = 3.0

    lc_class: ClassVar[str] = "c"

    def _shift(self) -> Any:
        """The mean of <a, x>."""
        return math.sqrt(2 / math.pi) * self.tilt / (1 + self.tilt**2) ** 0.5

    @property
    def omega(self) -> Any:
        """(1 - mean^2)^(-1/2) for the mean of <a, x>, whose standard deviation is 1/omega."""
        return (1 - self._shift() ** 2) ** -0.5

    def _rows(self, key: jax.Array, num_points: int, dim: int, dtype: Any) -> jax.Array:
        Z = normal_rows(key, num_points, dim + 1, dtype)
        Z, extra = Z[:, 1:], Z[:, :1]
        root = math.sqrt(dim)
        along = jnp.sum(Z, axis=1, keepdims=True) / root
        sign = jnp.where(_cast(self.tilt, dtype) * along >= extra, 1, -1).astype(dtype)
        wanted = (sign * along - _cast(self._shift(), dtype)) * _cast(self.omega, dtype)
        return sign * Z + (wanted - sign * along) / root


def float_dtype(dtype: Any) -> np.dtype:
    """Return float32 or float64, whichever is meant and enabled, or raise."""
    canonical = np.dtype(jax.dtypes.canonicalize_dtype(dtype))
    if canonical not in FLOATS:
        raise ValueError(f"dtype must be float32 or float64, got {canonical}")
    return canonical


def _cast(value: Any, dtype: Any) -> jax.Array:
    return checks.scalar("the parameter of a law", value, dtype)


def uniform_rows(key: jax.Array, num_rows: int, num_cols: int, dtype: Any) -> jax.Array:
    """Return a (num_rows, num_cols) matrix uniform on [0, 1): row i depends on the key and i alone."""
    return jax.vmap(lambda k: jax.random.uniform(k, (num_cols,), dtype))(
        numbered(key, num_rows)
    )


@cache
def _softplus_moments() -> tuple[float, float]:
    """Return the mean and standard deviation of log(1 + exp Z): a trapezoidal rule, exact to rounding."""
    z = np.linspace(-12, 12, 481)
    weights = np.exp(-z * z / 2)
    weights /= weights.sum()
    values = np.logaddexp(0, z)
    mean = float(weights @ values)
    return mean, math.sqrt(float(weights @ (values - mean) ** 2))
