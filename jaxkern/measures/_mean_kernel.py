"""Mean kernels: E K(X_i, X_j) for points with Gaussian noise around their means."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import checks
from jaxkern._distances import safe_sqrt, squared_distances, squared_distances_direct
from jaxkern._types import Array, ArrayLike, Float
from jaxkern.kernels import Distance, Gaussian, Kernel, KernelLike, Linear, Scaled, Sum
from jaxkern.linalg import matmul
from jaxkern.linalg._dense import scale_of
from jaxkern.measures._noise import LogMean, Noise, model_of, over


def mean_gaussian_kernel(
    means: Float[ArrayLike, "n d"],
    noise: Noise | Float[ArrayLike, ...],
    lengthscale: Float[ArrayLike, ...],
) -> Float[Array, "n n"]:
    """Return E K(X), (n, n), of the Gaussian kernel for independent X_i = mu_i + Gaussian noise.

    **A number as noise is amini2021's sigma_i: X_i ~ N(mu_i, (sigma_i^2 / d) I)**, the same word and scaling as in
    `problems`. The standard deviation of one coordinate is noise / sqrt(d); if s is that standard deviation, pass
    s * sqrt(d). For other covariances pass a noise model.

    Off the diagonal, E K_ij = s_ij^-d exp(-|mu_i - mu_j|^2 / (2 s_ij^2 lengthscale^2)) with
    s_ij^2 = 1 + (sigma_i^2 + sigma_j^2) / (d lengthscale^2) (amini2021, Example 1); for covariances Sigma_i it is
    det(C)^-1/2 exp(-(mu_i - mu_j)' C^-1 (mu_i - mu_j) / (2 lengthscale^2)), C = I + (Sigma_i + Sigma_j)/lengthscale^2.
    The diagonal is K(x, x) = 1, and not s^-d, which amini2021's remark that E K is itself a kernel matrix suggests.

    Parameters
    ----------
    means : (n, d).
    noise : not negative, scalar or (n,); or a noise model (`IsotropicNoise`, `RadialNoise`, `DiagonalNoise`,
        `GeneralNoise`).
    lengthscale : positive scalar, or an array (d,), one for each column.

    Notes
    -----
    Time O(n^2 d), memory O(n^2); O(n^2 d^3) and O(n d^2) more with one full covariance matrix per point. Powers of s
    are taken through log1p, so that d may be large.
    """
    means = checks.matrix("means", means)
    checks.positive("lengthscale", lengthscale)
    scale = checks.scalar(
        "lengthscale", lengthscale, means.dtype, columns=means.shape[1]
    )
    return mean_kernel(Gaussian(scale), means, noise)


def mean_kernel(
    kernel: KernelLike, means: Float[ArrayLike, "n d"], noise: Any
) -> Float[Array, "n n"]:
    """Return E K(X), (n, n), for independent X_i = mu_i + Gaussian noise, with E K(X_i, X_i) on the diagonal.

    Parameters
    ----------
    kernel : `Gaussian`, `Linear`, `Distance`, or sums and multiples of them.
    means : (n, d).
    noise : as in `mean_gaussian_kernel`: a number is amini2021's sigma_i, for covariance (sigma_i^2 / d) I.

    Notes
    -----
    For |x - y| the identity E sqrt(Q) = int_0^inf (1 - E e^(-t Q)) t^(-3/2) dt / (2 sqrt pi) is evaluated by a
    trapezoidal rule in log t, to about 10 eps(dtype): some 220 times the work of the Gaussian kernel in float64, 45
    times in float32. With `RadialNoise` the Gaussian kernel has the closed form of amini2021 (28), rearranged so
    that parallel, opposite and orthogonal means are no exceptions.
    """
    _known(kernel)
    means = checks.matrix("means", means)
    return _mean(kernel, means, means, *(model_of(noise, means),) * 2, same=True)


def mean_kernel_between(
    kernel: KernelLike,
    U: Float[ArrayLike, "r d"],
    V: Float[ArrayLike, "q d"],
    noise: Any,
    other_noise: Noise | Float[ArrayLike, ...] | None = None,
) -> Float[Array, "r q"]:
    """Return E K(u_i + noise, v_j + other noise), (r, q), for independent Gaussian noise on the two sides.

    This is amini2021's mean kernel function (18) on two sets of centres: the noise is independent also where u = v.

    Parameters
    ----------
    kernel : as in `mean_kernel`.
    U : (r, d).
    V : (q, d) of the dtype of U.
    noise : of the points of U, as in `mean_kernel`.
    other_noise : of the points of V, of the same kind as `noise`; by default `noise`, if all points share it.

    Notes
    -----
    Time and memory as for `mean_kernel`, with r q pairs.
    """
    _known(kernel)
    U = checks.matrix("U", U)
    V = checks.same_dtype("V", checks.matrix("V", V, dim=U.shape[1]), "U", U)
    own = model_of(noise, U)
    if other_noise is None and not own._shared:
        raise ValueError(
            "other_noise must be given where noise has one parameter per point of U, got None"
        )
    other = own if other_noise is None else model_of(other_noise, V)
    if type(own) is not type(other):
        raise ValueError(
            f"other_noise must be of the kind of noise, {type(own).__name__}, got {type(other).__name__}"
        )
    return _mean(kernel, U, V, own, other, same=False)


def _known(kernel: Any) -> None:
    if isinstance(kernel, Sum):
        _known(kernel.first)
        _known(kernel.second)
    elif isinstance(kernel, Scaled):
        _known(kernel.kernel)
    elif not isinstance(kernel, Gaussian | Linear | Distance):
        raise ValueError(
            "kernel must be Gaussian, Linear, Distance, or sums and multiples of them for its mean to be known, "
            f"got {type(kernel).__name__}"
        )


@partial(jax.jit, static_argnames=("same",))
def _mean(
    kernel: Kernel,
    X: jax.Array,
    Y: jax.Array,
    noise: Noise,
    other: Noise,
    *,
    same: bool,
) -> jax.Array:
    if isinstance(kernel, Sum):
        first, second = (
            _mean(k, X, Y, noise, other, same=same)
            for k in (kernel.first, kernel.second)
        )
        return first + second
    if isinstance(kernel, Scaled):
        return jnp.asarray(kernel.factor, X.dtype) * _mean(
            kernel.kernel, X, Y, noise, other, same=same
        )
    coincident = jnp.eye(X.shape[0], dtype=bool) if same else None
    one = jnp.ones((), X.dtype)
    if isinstance(kernel, Linear):
        values, diagonal = matmul(X, Y.T), jnp.sum(X * X, axis=1) + noise._spread(X)
    elif isinstance(kernel, Gaussian):
        scale = kernel._scale(X)
        if scale.ndim:  # both the points and the noise are divided by it
            noise, other = over(noise, X, scale), over(other, Y, scale)
            X, Y, scale = X / scale[None, :], Y / scale[None, :], one
        # Squares of huge and of tiny numbers leave the range of the dtype.
        sizes = [jnp.max(jnp.abs(each)) for each in (X, Y)]
        unit = scale_of(jnp.stack([*sizes, noise._largest(), other._largest()]))
        X, Y, scale = X / unit, Y / unit, scale / unit
        noise, other = noise._over(unit), other._over(unit)
        rate = _bounded(1 / (2 * scale**2), noise, X, other, Y)
        squares = squared_distances(X, Y, one, jnp.max(rate))
        log_mean = noise._log_mean(X, Y, other, squares)
        values, diagonal = jnp.exp(log_mean(rate)), 1 + _nothing(X, noise) / scale
    else:
        squares = squared_distances_direct(X, Y, one)
        mean_square = squares + noise._spread(X)[:, None] + other._spread(Y)[None, :]
        values, diagonal = (
            _mean_root(noise._log_mean(X, Y, other, squares), mean_square),
            _nothing(X, noise),
        )
    return (
        values
        if coincident is None
        else jnp.where(coincident, diagonal[:, None], values)
    )


def _bounded(
    rate: jax.Array, noise: Noise, X: jax.Array, other: Noise, Y: jax.Array
) -> jax.Array:
    """Return the rate, or one for each pair, so small that its product with the noise can be squared.

    Where the noise is so many lengthscales, the mean is below the rounding of 1 with either rate.
    """
    spread = noise._spread(X)[:, None] + other._spread(Y)[None, :]
    if noise._shared and other._shared:
        spread = jnp.max(spread)
    most = float(jnp.finfo(X.dtype).max) / 4
    limit = most**0.45 / jnp.where(spread > 0, spread, 1)
    return jnp.minimum(jnp.minimum(rate, most), jnp.where(spread > 0, limit, most))


def _nothing(X: jax.Array, noise: Noise) -> jax.Array:
    """Return zeros (n,), and NaN where a point or its noise is not finite: a constant would hide it."""
    return jnp.sum(0 * X, axis=1) + 0 * noise._spread(X)


def _mean_root(log_mean: LogMean, mean_square: jax.Array) -> jax.Array:
    """Return E sqrt(Q) given t -> log E exp(-t Q) and E Q.

    The exponential law e^(-t E Q), whose integral is sqrt(E Q), is subtracted under the integral: what is left decays
    like s^(3/2) at zero and 1/s at infinity in s = t E Q, and stays below sqrt(E Q), so that its error does not
    matter relative to the result. In x = log s the integrand is analytic in a strip of half-width pi/2.
    """
    dtype = mean_square.dtype
    digits = -math.log(float(jnp.finfo(dtype).eps))
    step = math.pi**2 / digits
    nodes = jnp.asarray(np.arange(-digits / 1.5, digits, step), dtype)
    # Any scale serves; its derivative would only move the nodes.
    scale = lax.stop_gradient(jnp.where(mean_square > 0, mean_square, 1))

    @jax.checkpoint
    def term(x: jax.Array) -> jax.Array:
        t = jnp.exp(x) / scale
        return (jnp.expm1(-t * mean_square) - jnp.expm1(log_mean(t))) * jnp.exp(-x / 2)

    total = lax.scan(
        lambda total, x: (total + term(x), None), jnp.zeros_like(scale), nodes
    )[0]
    return safe_sqrt(mean_square) + jnp.sqrt(scale) * total * (
        step / (2 * math.sqrt(math.pi))
    )
