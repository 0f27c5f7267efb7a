"""The Gaussian measure, under which the spectrum of the Gaussian kernel is known exactly."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern._types import Array, ArrayLike, Float
from jaxkern.pytrees import pytree


@pytree
class GaussianSpectrum:
    """Eigenvalues leading * prod_j ratio_j^(k_j), k_j = 0, 1, ...: a product of geometric sequences.

    Attributes
    ----------
    leading : (d,) largest eigenvalue of each coordinate.
    ratio : (d,) ratio of consecutive eigenvalues of each coordinate.
    gap : (d,) 1 - ratio, or None where the ratio tells it: a measure that is wide for the kernel has a ratio that
        rounds to 1.
    """

    leading: jax.Array
    ratio: jax.Array
    gap: jax.Array | None = None

    def op_norm(self, power: float = 1) -> jax.Array:
        """Return the operator norm of Sigma^power."""
        return jnp.prod(self.leading) ** power

    def trace(self, power: float = 1) -> jax.Array:
        """Return tr Sigma^power, in closed form."""
        return jnp.prod(self.leading**power / self._decay(power))

    def effective_rank(self, power: float = 1) -> jax.Array:
        """Return tr Sigma^power / |Sigma^power|, in closed form."""
        return jnp.prod(1 / self._decay(power))

    def _decay(self, power: float) -> jax.Array:
        """Return 1 - ratio^power, (d,)."""
        if self.gap is None:
            return 1 - self.ratio**power
        # The ratio where it is far from 1, the gap where it is not: each has the digits that the other lacks.
        near = self.gap < 0.5
        return jnp.where(
            near,
            -jnp.expm1(power * jnp.log1p(-jnp.where(near, self.gap, 0))),
            1 - self.ratio**power,
        )

    def eigenvalues(self, num: int) -> Float[Array, " num"]:
        """Return the `num` largest eigenvalues, (num,), in descending order with their multiplicities."""
        num = checks.count("num", num)
        orders = jnp.arange(num).astype(self.leading.dtype)
        values = jnp.ones((1,), self.leading.dtype)
        for j in range(self.leading.shape[0]):
            one = self.leading[j] * self.ratio[j] ** orders
            products = (values[:, None] * one[None, :]).reshape(-1)
            values = jnp.sort(products)[::-1][:num]
        return values


def gaussian_spectrum(
    lengthscale: Float[ArrayLike, ...], std: Float[ArrayLike, " d"]
) -> GaussianSpectrum:
    """Return the spectrum of the covariance operator of the Gaussian kernel under N(mean, diag(std^2)).

    In one dimension, with a = 1 / (4 std^2), b = 1 / (2 lengthscale^2), c = sqrt(a^2 + 2 a b) and A = a + b + c, the
    eigenvalues are sqrt(2 a / A) (b / A)^k; in more they are products over coordinates. The mean does not matter. For
    a general covariance matrix pass the square roots of its eigenvalues: both kernel and measure rotate along. Where
    lengthscale / std rounds to zero in the dtype, nothing is left of the spectrum, and traces and ranks are NaN.

    Parameters
    ----------
    lengthscale : positive scalar, or an array (d,), one for each coordinate.
    std : (d,) standard deviations, or a scalar for d = 1.

    Returns
    -------
    GaussianSpectrum, with `trace(power)`, `op_norm(power)`, `effective_rank(power)` and `eigenvalues(num)`.
    """
    checks.positive("lengthscale", lengthscale)
    checks.positive("std", std)
    if checks.is_static(std):
        std = float(std)  # type: ignore[arg-type]
    scales = jnp.atleast_1d(checks.floating("std", std))
    if scales.ndim != 1:
        raise ValueError(f"std must have shape (d,), got {scales.shape}")
    lengthscale = checks.scalar(
        "lengthscale", lengthscale, scales.dtype, columns=scales.shape[0]
    )
    return _gaussian_spectrum(lengthscale, scales)


@jax.jit
def _gaussian_spectrum(lengthscale: jax.Array, std: jax.Array) -> GaussianSpectrum:
    # a, c and A in units of b, and in units of a where that is larger: what is squared is at most 1.
    t = lengthscale / std / math.sqrt(2.0)
    below = t <= 1
    low, u = jnp.where(below, t, 1), jnp.where(below, 1, 1 / t) ** 2
    a, c, q = low**2, low * jnp.sqrt(low**2 + 2), jnp.sqrt(1 + 2 * u)
    A, U = a + 1 + c, 1 + u + q
    return GaussianSpectrum(
        jnp.where(below, low * jnp.sqrt(2 / A), jnp.sqrt(2 / U)),
        jnp.where(below, 1 / A, u / U),
        jnp.where(below, (a + c) / A, (1 + q) / U),
    )
