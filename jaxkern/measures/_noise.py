"""Noise: the covariances Sigma_i of X_i = mu_i + sqrt(Sigma_i) W_i, with W_i centred and of unit covariance.

A model is a PyTree. Parameters are shared by all points or given point by point, and every model answers the same
questions: how to shape W, how large the noise is, and, for Gaussian W, E exp(-t |X_i - Y_j|^2) for all pairs, from
which the mean kernels follow.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import solve_triangular

from jaxkern import checks
from jaxkern._distances import squared_distances, squared_distances_direct
from jaxkern._types import Array, ArrayLike, Float
from jaxkern.linalg import HIGHEST, matmul, psd_power
from jaxkern.pytrees import pytree

LogMean = Callable[[jax.Array], jax.Array]
"""t of shape () or (n, m) -> log E exp(-t |X_i - Y_j|^2), (n, m)."""


class Noise(abc.ABC):
    """A model of the covariances of the points around their means."""

    @abc.abstractmethod
    def _arrays(self, means: jax.Array) -> Any:
        """Return the model with its parameters as arrays of the dtype of the means, or raise."""

    @property
    @abc.abstractmethod
    def _shared(self) -> bool:
        """Whether all points share the parameters."""

    def _width(self, dim: int) -> int:
        """Return how many coordinates of W are used."""
        return dim

    @abc.abstractmethod
    def _shape(self, means: jax.Array, W: jax.Array) -> jax.Array:
        """Return sqrt(Sigma_i) W_i as rows, (n, d), from W (n, width)."""

    @abc.abstractmethod
    def _spread(self, means: jax.Array) -> jax.Array:
        """Return (tr Sigma_i)_i, shape (n,)."""

    @abc.abstractmethod
    def _op_norm(self, means: jax.Array) -> jax.Array:
        """Return (|Sigma_i|)_i, shape (n,)."""

    @abc.abstractmethod
    def _log_mean(
        self, X: jax.Array, Y: jax.Array, other: Any, squares: jax.Array
    ) -> LogMean:
        """Return t -> log E exp(-t |x_i + noise - y_j - other noise|^2), given squares = |x_i - y_j|^2.

        For small t the result keeps its relative accuracy.
        """

    def _largest(self) -> jax.Array:
        """Return the largest standard deviation, or a bound of it up to a factor."""
        return jnp.sqrt(jnp.max(jnp.abs(jax.tree.leaves(self)[0])))

    def _over(self, scale: jax.Array) -> Any:
        """Return the model of the noise divided by a scalar."""
        return jax.tree.map(lambda each: each / scale / scale, self)

    def op_norm(self, means: Float[ArrayLike, "n d"]) -> Float[Array, " n"]:
        """Return the operator norms |Sigma_i| of the covariances, (n,); amini2021's sigma_inf^2 is their maximum."""
        means = checks.matrix("means", means)
        return self._arrays(means)._op_norm(means)


class _LevelNoise(Noise):
    """Noise of one size, `level`: a scalar, or (n,), one for each point."""

    level: Any

    def __post_init__(self) -> None:
        checks.non_negative("level", self.level)

    def _arrays(self, means: jax.Array) -> Any:
        return type(self)(per_point("level", self.level, means))  # type: ignore[call-arg]

    @property
    def _shared(self) -> bool:
        return self.level.ndim == 0

    def _largest(self) -> jax.Array:
        return jnp.max(self.level)

    def _over(self, scale: jax.Array) -> Any:
        return type(self)(self.level / scale)  # type: ignore[call-arg]


@pytree
class IsotropicNoise(_LevelNoise):
    """Sigma_i = (level_i^2 / d) I: the noise has about the length level_i in every dimension d (amini2021 (8)).

    Parameters
    ----------
    level : scalar or (n,), not negative; the standard deviation of one coordinate is level / sqrt(d).
    """

    level: Any

    def _shape(self, means: jax.Array, W: jax.Array) -> jax.Array:
        return _column(self.level / jnp.sqrt(_size(means))) * W

    def _spread(self, means: jax.Array) -> jax.Array:
        return jnp.broadcast_to(self.level**2, means.shape[:1])

    def _op_norm(self, means: jax.Array) -> jax.Array:
        return self._spread(means) / _size(means)

    def _log_mean(
        self, X: jax.Array, Y: jax.Array, other: IsotropicNoise, squares: jax.Array
    ) -> LogMean:
        variance = self._op_norm(X)[:, None] + other._op_norm(Y)[None, :]

        def log_mean(t: jax.Array) -> jax.Array:
            widening = 2 * t * variance
            return -X.shape[1] / 2 * jnp.log1p(widening) - t * squares / (1 + widening)

        return log_mean


@pytree
class RadialNoise(_LevelNoise):
    """Sigma_i = (level_i^2 / d) mu_i mu_i' / |mu_i|^2: noise along the mean only (amini2021 (27)).

    A mean at the origin has no direction and gets no noise.

    Parameters
    ----------
    level : scalar or (n,), not negative; the standard deviation along the mean is level / sqrt(d).
    """

    level: Any

    def _width(self, dim: int) -> int:
        return 1

    def _shape(self, means: jax.Array, W: jax.Array) -> jax.Array:
        return _column(self.level / jnp.sqrt(_size(means))) * W * _directions(means)

    def _spread(self, means: jax.Array) -> jax.Array:
        there = jnp.any(means != 0, axis=1)
        return jnp.where(
            there, jnp.broadcast_to(self.level**2, means.shape[:1]) / _size(means), 0
        )

    def _op_norm(self, means: jax.Array) -> jax.Array:
        return self._spread(means)

    def _log_mean(
        self, X: jax.Array, Y: jax.Array, other: RadialNoise, squares: jax.Array
    ) -> LogMean:
        # |X - Y|^2 = A^2 + B^2 - 2 alpha A B for independent normal A and B with means |x|, |y| and variances a, b.
        # Completing the square leaves sums of positive terms, with no sign of alpha and no division by 1 - |alpha|.
        # A product of directions would lose 1 - alpha^2 for nearly parallel means: their difference and sum keep it.
        a, b = self._spread(X)[:, None], other._spread(Y)[None, :]
        U, V, one = _directions(X), _directions(Y), jnp.ones((), X.dtype)
        sine = (
            squared_distances_direct(U, V, one)
            * squared_distances_direct(U, -V, one)
            / 4
        )
        tilt = sine * (
            a * jnp.sum(Y * Y, axis=1)[None, :] + b * jnp.sum(X * X, axis=1)[:, None]
        )

        def log_mean(t: jax.Array) -> jax.Array:
            # t^2 alone could leave the range of float32 where the points are close together.
            widening = 2 * t * (a + b) + sine * (2 * t * a) * (2 * t * b)
            return -jnp.log1p(widening) / 2 - t * (squares + 2 * t * tilt) / (
                1 + widening
            )

        return log_mean


@pytree
class DiagonalNoise(Noise):
    """Sigma_i = diag(variances_i): plain variances, not divided by the dimension.

    Parameters
    ----------
    variances : (d,), or (n, d) for one set per point, not negative.
    """

    variances: Any

    def _arrays(self, means: jax.Array) -> DiagonalNoise:
        return DiagonalNoise(_stack("variances", self.variances, means, 1))

    @property
    def _shared(self) -> bool:
        return self.variances.ndim == 1

    def _rows(self, means: jax.Array) -> jax.Array:
        return jnp.broadcast_to(self.variances, means.shape)

    def _shape(self, means: jax.Array, W: jax.Array) -> jax.Array:
        return jnp.sqrt(self._rows(means)) * W

    def _spread(self, means: jax.Array) -> jax.Array:
        return jnp.sum(self._rows(means), axis=1)

    def _op_norm(self, means: jax.Array) -> jax.Array:
        return jnp.max(self._rows(means), axis=1)

    def _log_mean(
        self, X: jax.Array, Y: jax.Array, other: DiagonalNoise, squares: jax.Array
    ) -> LogMean:
        def log_mean(t: jax.Array) -> jax.Array:
            if self._shared and other._shared and t.ndim == 0:
                widening = 2 * t * (self.variances + other.variances)
                root = jnp.sqrt(1 + widening)[None, :]
                apart = squared_distances(X / root, Y / root, jnp.ones((), X.dtype), t)
                return -jnp.sum(jnp.log1p(widening)) / 2 - t * apart

            # One coordinate after the other: memory O(n m), also on the way back.
            @jax.checkpoint
            def term(
                x: jax.Array, y: jax.Array, v: jax.Array, w: jax.Array
            ) -> jax.Array:
                widening = 2 * t * (v[:, None] + w[None, :])
                return -jnp.log1p(widening) / 2 - t * (x[:, None] - y[None, :]) ** 2 / (
                    1 + widening
                )

            columns = (X.T, Y.T, self._rows(X).T, other._rows(Y).T)
            zero = jnp.zeros((X.shape[0], Y.shape[0]), X.dtype)
            return lax.scan(
                lambda total, column: (total + term(*column), None), zero, columns
            )[0]

        return log_mean


@pytree
class GeneralNoise(Noise):
    """Sigma_i = covariances_i: full covariance matrices, not divided by the dimension.

    Parameters
    ----------
    covariances : (d, d), or (n, d, d) for one matrix per point; symmetric and positive semidefinite.
    """

    covariances: Any

    def _arrays(self, means: jax.Array) -> GeneralNoise:
        return GeneralNoise(_stack("covariances", self.covariances, means, 2))

    @property
    def _shared(self) -> bool:
        return self.covariances.ndim == 2

    def _shape(self, means: jax.Array, W: jax.Array) -> jax.Array:
        # Any root would do, but that of Cholesky fails on singular matrices.
        if self._shared:
            return matmul(W, psd_power(self.covariances, 0.5))
        roots = jax.vmap(partial(psd_power, power=0.5))(self.covariances)
        return jnp.einsum("nij,nj->ni", roots, W, precision=HIGHEST)

    def _spread(self, means: jax.Array) -> jax.Array:
        return jnp.broadcast_to(
            jnp.trace(self.covariances, axis1=-2, axis2=-1), means.shape[:1]
        )

    def _op_norm(self, means: jax.Array) -> jax.Array:
        return jnp.broadcast_to(
            jnp.linalg.eigvalsh(self.covariances)[..., -1], means.shape[:1]
        )

    def _log_mean(
        self, X: jax.Array, Y: jax.Array, other: GeneralNoise, squares: jax.Array
    ) -> LogMean:
        eye = jnp.eye(X.shape[1], dtype=X.dtype)

        def shared(t: jax.Array) -> jax.Array:
            root = jnp.linalg.cholesky(
                eye + 2 * t * (self.covariances + other.covariances)
            )
            both = solve_triangular(root, jnp.concatenate([X, Y]).T, lower=True).T
            apart = squared_distances(
                both[: len(X)], both[len(X) :], jnp.ones((), X.dtype), t
            )
            return -jnp.sum(jnp.log(jnp.diagonal(root))) - t * apart

        def one_row(row: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
            x, own, t = row
            C = own[None, :, :] + jnp.broadcast_to(
                other.covariances, (len(Y), *own.shape)
            )
            # log det by eigenvalues: near the identity the diagonal of a Cholesky root has lost the small numbers.
            log_det = jnp.sum(
                jnp.log1p(2 * t[:, None] * jnp.maximum(jnp.linalg.eigvalsh(C), 0)),
                axis=1,
            )
            root = jnp.linalg.cholesky(eye[None, :, :] + 2 * t[:, None, None] * C)
            z = solve_triangular(root, (x[None, :] - Y)[:, :, None], lower=True)[
                :, :, 0
            ]
            return -log_det / 2 - t * jnp.sum(z * z, axis=1)

        def log_mean(t: jax.Array) -> jax.Array:
            if self._shared and other._shared and t.ndim == 0:
                return shared(t)
            rows = jnp.broadcast_to(self.covariances, (len(X), *eye.shape))
            # A row of pairs at a time: memory O(m d^2), not O(n m d^2).
            return lax.map(
                jax.checkpoint(one_row), (X, rows, jnp.broadcast_to(t, squares.shape))
            )

        return log_mean


def _size(means: jax.Array) -> jax.Array:
    return jnp.asarray(means.shape[1], means.dtype)


def _column(values: jax.Array) -> jax.Array:
    return values.reshape(-1, 1)


def _directions(means: jax.Array) -> jax.Array:
    """Return mu_i / |mu_i|, and zero, with derivative zero, at the origin."""
    there = jnp.any(means != 0, axis=1, keepdims=True)
    safe = jnp.where(there, means, 1)
    # The largest entry is divided out first: squares neither overflow nor vanish.
    safe = safe / jnp.max(jnp.abs(safe), axis=1, keepdims=True)
    return jnp.where(
        there, safe / jnp.sqrt(jnp.sum(safe * safe, axis=1, keepdims=True)), 0
    )


def model_of(noise: Any, means: jax.Array) -> Any:
    """Return a noise model, isotropic for a number or (n,) of them, with arrays that fit the means, or raise."""
    if not isinstance(noise, Noise):
        noise = IsotropicNoise(per_point("noise", noise, means))
    return noise._arrays(means)


def over(noise: Any, means: jax.Array, scale: jax.Array) -> Any:
    """Return the model of the noise divided by a scale (d,), around the means divided by it."""
    if isinstance(noise, RadialNoise):
        stretch = _directions(means) / scale[None, :]
        return RadialNoise(noise.level * jnp.sqrt(jnp.sum(stretch * stretch, axis=1)))
    if isinstance(noise, GeneralNoise):
        both = scale[:, None] * scale[None, :]
        return GeneralNoise(
            noise.covariances / jnp.broadcast_to(both, noise.covariances.shape)
        )
    if isinstance(noise, IsotropicNoise):
        variances = noise.level[..., None] ** 2 / _size(means)
        noise = DiagonalNoise(
            jnp.broadcast_to(variances, (*noise.level.shape, means.shape[1]))
        )
    return DiagonalNoise(
        noise.variances / jnp.broadcast_to(scale * scale, noise.variances.shape)
    )


def per_point(name: str, value: Any, means: jax.Array) -> jax.Array:
    """Return a parameter as an array of shape () or (n,) of the dtype of the means, or raise."""
    array = checks.as_array(name, checks.non_negative(name, value))
    if array.ndim == 0:
        return checks.scalar(name, value, means.dtype)
    if array.shape != means.shape[:1]:
        raise ValueError(
            f"{name} must have shape () or {means.shape[:1]}, one number per point, got {array.shape}"
        )
    return checks.same_dtype(name, checks.floating(name, array), "means", means)


def _stack(name: str, value: Any, means: jax.Array, rank: int) -> jax.Array:
    """Return a parameter of shape (d,) or (d, d), or a stack of n of them, of the dtype of the means, or raise."""
    array = checks.floating(name, value)
    n, dim = means.shape
    one = (dim,) * rank
    if array.shape not in (one, (n, *one)):
        raise ValueError(
            f"{name} must have shape {one} or {(n, *one)}, got {array.shape}"
        )
    return checks.same_dtype(name, array, "means", means)
