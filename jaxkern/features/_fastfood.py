"""Fastfood: random Fourier features whose frequency matrix is a product of Hadamard and diagonal ones, never formed."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern._types import Array, DTypeLike, Float, PRNGKeyArray
from jaxkern.draws import normal_rows, numbered
from jaxkern.features._fourier import _Fourier, draw_arguments, turns_by_digits
from jaxkern.kernels import Kernel, KernelLike
from jaxkern.kernels._spectra import spectral_law
from jaxkern.linalg import matmul
from jaxkern.pytrees import pytree

_ONE_PRODUCT = 64
"""Up to this size one matrix product is the fastest transform; beyond it two with factors of about the root are."""


@pytree
class Fastfood(_Fourier):
    """The map of `fastfood`: columns [cos | sin].

    With D the least power of two that is at least dim there are ceil(num_frequencies / D) blocks.

    Attributes
    ----------
    kernel : the kernel.
    signs : (blocks, dim), the diagonals of B, random signs; coordinates beyond dim are padding.
    permutations : (blocks, D) int32 in [0, D), the permutations Pi.
    gains : (blocks, D), the diagonals of G, uniform on the sphere of radius 1 / sqrt(D).
    lengths : (num_frequencies,), the diagonals of S: lengths of frequencies in R^D, drawn for lengthscale 1 and divided
        by the kernel's at every call.
    """

    kernel: Any
    signs: jax.Array
    permutations: jax.Array
    gains: jax.Array
    lengths: jax.Array

    @property
    def num_frequencies(self) -> int:
        """Number of frequencies."""
        return self.lengths.shape[0]

    @property
    def frequencies(self) -> Float[Array, "num_frequencies dim"]:  # type: ignore[override]
        """Frequencies for lengthscale 1, (num_frequencies, dim): formed at every access, while the map never does."""
        return _frequencies(self)

    def _turns(self, X: jax.Array) -> jax.Array:
        turn = self._turn(X.dtype)
        if turn.ndim:
            return _along_directions(self, X / turn) * self.lengths[None, :]
        return _along_directions(self, X) * (self.lengths / turn)[None, :]

    def _mean_length(self) -> jax.Array:
        return jnp.mean(self.lengths)

    def _turns_by_digits(self, X: jax.Array) -> jax.Array:
        num_blocks, size = self.gains.shape
        turn, eye = self._turn(X.dtype), jnp.eye(X.shape[1], dtype=X.dtype)
        if turn.ndim:
            eye = eye / turn
        lengths = jnp.pad(
            self.lengths, (0, num_blocks * size - self.num_frequencies)
        ).reshape(num_blocks, size)

        def block(parts: Any) -> jax.Array:
            signs, permutations, gains, lengths = parts
            one = Fastfood(
                self.kernel, signs[None], permutations[None], gains[None], lengths
            )
            rates = lengths if turn.ndim else lengths / turn
            return turns_by_digits(
                X, (_along_directions(one, eye) * rates[None, :]).T, turn
            )

        # A block of frequencies at a time: all of them are never formed.
        turns = lax.map(block, (self.signs, self.permutations, self.gains, lengths))
        return jnp.swapaxes(turns, 0, 1).reshape(X.shape[0], num_blocks * size)[
            :, : self.num_frequencies
        ]

    def _like(self) -> jax.Array:
        return self.signs


def fastfood(
    key: PRNGKeyArray,
    kernel: KernelLike,
    dim: int,
    *,
    num_frequencies: int,
    dtype: DTypeLike | None = None,
) -> Fastfood:
    """Draw the map of `paired_fourier` with frequencies that are the rows of blocks S H G Pi H B.

    A block has size D, the least power of two that is at least dim; points are padded with zeros. B is a diagonal of
    random signs, H a Hadamard matrix (entries 1 and -1, orthogonal rows), Pi a random permutation, G a diagonal of
    normals g divided by sqrt(D) |g|, and S a diagonal of independent lengths |w_j|, w_j in R^D drawn from the spectral
    law. A single frequency has that law exactly, so E <phi(x), phi(y)> = K(x, y); <phi(x), phi(x)> = 1; blocks are
    independent. Within a block frequencies are dependent: the cosines of any two have one covariance c, so that for
    m = q D + t, t < D,

        Var <phi(x), phi(y)> = (1 + K(2x, 2y) - 2 K(x, y)^2) / (2m) + c (q D (D - 1) + t (t - 1)) / m^2.

    For the Gaussian kernel, u = (x - y) / lengthscale, r = |u|, rho = sum_a u_a^4 / r^4 and t = 0 the variance is that
    of `paired_fourier` times a factor that tends to (3 + 2 D (1 - rho)) / (D + 2) as r -> 0, and to
    1 + (1 - 2 rho) (r^2 / 2 / sinh(r^2 / 2))^2 as D grows. Both are below 2: near that for close points that differ in
    many coordinates, below 1 where they differ mostly in one, and the second falls to 1 with the distance.

    Parameters
    ----------
    key, dim, dtype : as in `paired_fourier`.
    kernel : as in `orthogonal_fourier`, and for the same reason.
    num_frequencies : m, at least 1, need not be a multiple of D. There are 2m features.

    Returns
    -------
    Fastfood, a callable PyTree.

    Notes
    -----
    With M = D ceil(m / D), m rounded up to whole blocks: drawing takes O(M log D) time, keeping the map at most
    3 M + m numbers, not m dim. Mapping N points takes, beyond the N m sines and cosines, 2 N M additions per level of a
    fast Hadamard transform, of which there are log2(D). It is computed by two matrix products with factors of size
    about sqrt(D), one for D <= 64: 4 N M sqrt(D) multiply-adds, and still faster than the additions. Memory to map is a
    few times N M numbers. On a CPU `paired_fourier` is as fast or faster up to about 250 dimensions, and has the
    smaller variance for most pairs of points.

    Why the mean is exact: let h_j be row j of H. The vector G h_j has the entries of g with fixed signs, so that it is
    uniform on a sphere whatever B and Pi are; H B / sqrt(D) and Pi are orthogonal, so (B H Pi^T) G h_j is uniform on
    the unit sphere of R^D, and S multiplies it by an independent length with the right law. The first dim coordinates
    of a vector with the law in R^D are one with the law in R^dim, as both are s z with z normal. Source: le2013, whose
    G has the length of g and whose S divides by it.
    """
    key, kernel, dim, m, dtype = draw_arguments(
        key, kernel, dim, num_frequencies, dtype, rotation_invariant=True
    )
    size = 1 << (dim - 1).bit_length()
    blocks_key, radii_key, mixing_key = jax.random.split(key, 3)
    blocks = _blocks(blocks_key, dim, size, -(-m // size), dtype)
    return _fastfood(
        kernel, blocks, _radii(radii_key, jnp.asarray(size / 2, dtype), m), mixing_key
    )


@partial(jax.jit, static_argnums=(1, 2, 3, 4))
def _blocks(
    key: jax.Array, dim: int, size: int, count: int, dtype: Any
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Draw B (count, dim), Pi (count, size) and G (count, size)."""

    def block(key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        signs_key, permutation_key, gains_key = jax.random.split(key, 3)
        permutation = jax.random.permutation(
            permutation_key, jnp.arange(size, dtype=jnp.int32)
        )
        direction = _unit(jax.random.normal(gains_key, (size,), dtype))
        # Not `rademacher`, whose uniform numbers have the default dtype: the draw would depend on the mode of JAX.
        signs = 1 - 2 * jax.random.randint(signs_key, (dim,), 0, 2, jnp.int32).astype(
            dtype
        )
        return signs, permutation, direction / math.sqrt(size)

    return jax.vmap(block)(numbered(key, count))


def _unit(normals: jax.Array) -> jax.Array:
    """Return a vector divided by its length; zero, which one float32 normal is once in ten million draws, gets one."""
    norm = jnp.sqrt(jnp.sum(normals * normals))
    return jnp.where(
        norm > 0, normals / jnp.where(norm > 0, norm, 1), 1 / math.sqrt(normals.size)
    )


@partial(jax.jit, static_argnums=2)
def _radii(key: jax.Array, half: jax.Array, m: int) -> jax.Array:
    """Draw m lengths of normal vectors with twice `half` coordinates, in a program of its own: it is slow to compile.

    A length is that of a gamma variable. Normals for all coordinates would cost what this map saves.
    """
    return jax.vmap(lambda k: jnp.sqrt(2 * jax.random.gamma(k, half, (), half.dtype)))(
        numbered(key, m)
    )


@jax.jit
def _fastfood(
    kernel: Kernel, blocks: tuple[Any, Any, Any], radii: jax.Array, key: jax.Array
) -> Fastfood:
    law = spectral_law(kernel)
    lengths = radii * law.scale(
        normal_rows(key, radii.shape[0], law.num_normals, radii.dtype)
    )
    return Fastfood(kernel, *blocks, lengths)


def _along_directions(phi: Fastfood, X: jax.Array) -> jax.Array:
    """Return <w_j / |w_j|, x_i>, (n, num_frequencies), with the |w_j| in R^D of `lengths`."""
    n, dim = X.shape
    num_blocks, size = phi.gains.shape
    signed = jnp.pad(X[:, None, :] * phi.signs[None], ((0, 0), (0, 0), (0, size - dim)))
    permuted = jax.vmap(lambda Z, permutation: Z[:, permutation], (1, 0), 1)(
        _hadamard(signed), phi.permutations
    )
    return _hadamard(permuted * phi.gains[None]).reshape(n, num_blocks * size)[
        :, : phi.num_frequencies
    ]


def _hadamard(X: jax.Array) -> jax.Array:
    """Return X H^T over the last axis, of size D; H is the Hadamard matrix of Sylvester, its rows in another order.

    It is the Kronecker product of two smaller ones. After both products the indices of the two factors have changed
    places; bringing them back would be a pass over memory that changes nothing in law.
    """
    *lead, size = X.shape
    level = size.bit_length() - 1
    if size <= _ONE_PRODUCT:
        return matmul(X, _sylvester(level, X.dtype))
    first, second = level // 2, level - level // 2
    half = matmul(
        X.reshape(*lead, 1 << first, 1 << second), _sylvester(second, X.dtype)
    )
    return matmul(jnp.swapaxes(half, -1, -2), _sylvester(first, X.dtype)).reshape(
        *lead, size
    )


def _sylvester(level: int, dtype: Any) -> jax.Array:
    """Return the Hadamard matrix of size 2^level, symmetric."""
    matrix: Any = np.ones((1, 1))
    for _ in range(level):
        matrix = np.kron(matrix, [[1, 1], [1, -1]])
    return jnp.asarray(matrix, dtype)


@jax.jit
def _frequencies(phi: Fastfood) -> jax.Array:
    directions = _along_directions(
        phi, jnp.eye(phi.signs.shape[1], dtype=phi.signs.dtype)
    )
    return (directions * phi.lengths[None, :]).T
