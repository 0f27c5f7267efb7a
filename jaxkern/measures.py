"""Probability measures on points: finite-support ones, and the Gaussian one whose kernel spectrum is known exactly."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import _checks
from jaxkern._draws import invert
from jaxkern._pytree import pytree

__all__ = ["Discrete", "GaussianSpectrum", "gaussian_grid", "gaussian_spectrum"]


@pytree
class Discrete:
    """A measure sum_i weights_i delta(points_i).

    Parameters
    ----------
    points : (p, d) atoms.
    weights : (p,) probabilities. They are used as given: `total` tells whether they sum to one.
    """

    points: Any
    weights: Any

    @property
    def total(self) -> jax.Array:
        """The mass, 1 for a probability measure."""
        return jnp.sum(jnp.asarray(self.weights))

    def sample(self, key: Any, *, num_points: int) -> jax.Array:
        """Return (num_points, d) independent draws.

        Raises
        ------
        ValueError
            If the key is old-style or num_points < 1.
        """
        points = _checks.matrix("points", self.points)
        weights = _checks.vector("weights", self.weights, size=points.shape[0])
        return _sample(_checks.key(key), points, weights, num_points=_checks.count("num_points", num_points))


@partial(jax.jit, static_argnames=("num_points",))
def _sample(key: jax.Array, points: jax.Array, weights: jax.Array, *, num_points: int) -> jax.Array:
    return points[invert(weights, jax.random.uniform(key, (num_points,), weights.dtype))]


def gaussian_grid(num_points: int, *, width: float = 6.0, std: Any = 1.0, dtype: Any = float) -> Discrete:
    """Return the Gaussian density N(0, std^2) on `num_points` evenly spaced atoms of [-width std, width std].

    The trapezoidal rule converges faster than any power for smooth kernels, so that population quantities agree with
    those of the Gaussian measure to many digits, while every expectation is a finite sum.

    Parameters
    ----------
    num_points : number of atoms, at least 2.
    width : half-width of the grid in standard deviations.
    std : standard deviation.
    dtype : dtype of the result.

    Returns
    -------
    Discrete measure with points (num_points, 1).

    Raises
    ------
    ValueError
        If num_points < 2, or width or a static std is not positive.
    """
    num_points = _checks.count("num_points", num_points, minimum=2)
    _checks.positive("width", width)
    _checks.positive("std", std)
    x = jnp.linspace(-width, width, num_points, dtype=jax.dtypes.canonicalize_dtype(dtype))
    density = jnp.exp(-x * x / 2)
    return Discrete((x * jnp.asarray(std, x.dtype))[:, None], density / jnp.sum(density))


@pytree
class GaussianSpectrum:
    """Eigenvalues leading * prod_j ratio_j^(k_j), k_j = 0, 1, ...: a product of geometric sequences.

    Attributes
    ----------
    leading : (d,) largest eigenvalue of each coordinate.
    ratio : (d,) ratio of consecutive eigenvalues of each coordinate.
    """

    leading: jax.Array
    ratio: jax.Array

    def op_norm(self, power: float = 1) -> jax.Array:
        """Return the operator norm of Sigma^power."""
        return jnp.prod(self.leading) ** power

    def trace(self, power: float = 1) -> jax.Array:
        """Return tr Sigma^power, in closed form."""
        return jnp.prod(self.leading**power / (1 - self.ratio**power))

    def effective_rank(self, power: float = 1) -> jax.Array:
        """Return tr Sigma^power / |Sigma^power|, in closed form."""
        return jnp.prod(1 / (1 - self.ratio**power))

    def eigenvalues(self, num: int) -> jax.Array:
        """Return the `num` largest eigenvalues, (num,), in descending order with their multiplicities.

        Raises
        ------
        ValueError
            If num < 1.
        """
        num = _checks.count("num", num)
        orders = jnp.arange(num).astype(self.leading.dtype)
        values = jnp.ones((1,), self.leading.dtype)
        for j in range(self.leading.shape[0]):
            one = self.leading[j] * self.ratio[j] ** orders
            products = (values[:, None] * one[None, :]).reshape(-1)
            values = jnp.sort(products)[::-1][:num]
        return values


def gaussian_spectrum(lengthscale: Any, std: Any) -> GaussianSpectrum:
    """Return the spectrum of the covariance operator of the Gaussian kernel under N(mean, diag(std^2)).

    In one dimension, with a = 1 / (4 std^2), b = 1 / (2 lengthscale^2), c = sqrt(a^2 + 2 a b) and A = a + b + c, the
    eigenvalues are sqrt(2 a / A) (b / A)^k; in more they are products over coordinates. The mean does not matter. For
    a general covariance matrix pass the square roots of its eigenvalues: both kernel and measure rotate along.

    Parameters
    ----------
    lengthscale : positive scalar.
    std : (d,) standard deviations, or a scalar for d = 1.

    Returns
    -------
    GaussianSpectrum, with `trace(power)`, `op_norm(power)`, `effective_rank(power)` and `eigenvalues(num)`.

    Raises
    ------
    ValueError
        If a static argument is not positive, or std has rank above 1.
    """
    _checks.positive("lengthscale", lengthscale)
    _checks.positive("std", std)
    if _checks.is_static(std):
        std = float(std)
    scales = jnp.atleast_1d(_checks.floating("std", std))
    if scales.ndim != 1:
        raise ValueError(f"std must have shape (d,), got {scales.shape}")
    return _gaussian_spectrum(_checks.scalar("lengthscale", lengthscale, scales.dtype), scales)


@jax.jit
def _gaussian_spectrum(lengthscale: jax.Array, std: jax.Array) -> GaussianSpectrum:
    a, b = 1 / (4 * std**2), 1 / (2 * lengthscale**2)
    A = a + b + jnp.sqrt(a * a + 2 * a * b)
    return GaussianSpectrum(jnp.sqrt(2 * a / A), b / A)
