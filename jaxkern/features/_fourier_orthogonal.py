"""Orthogonal random Fourier features: frequencies orthogonal within blocks, of radial kernels."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern._types import DTypeLike, PRNGKeyArray
from jaxkern.features._fourier import PairedFourier, draw_arguments
from jaxkern.kernels import Kernel, KernelLike
from jaxkern.kernels._spectra import spectral_law


def orthogonal_fourier(
    key: PRNGKeyArray,
    kernel: KernelLike,
    dim: int,
    *,
    num_frequencies: int,
    dtype: DTypeLike | None = None,
) -> PairedFourier:
    """Draw the map of `paired_fourier` with frequencies that are orthogonal within blocks of `dim`.

    Each block holds the rows of a uniformly distributed orthogonal matrix times independent lengths |w_j|, w_j drawn
    from the spectral law. A single frequency has that law still, so E <phi(x), phi(y)> = K(x, y); blocks are
    independent. Within a block the terms cos<w_j, x - y> have, for the Gaussian kernel and r the distance over the
    lengthscale, the covariance

        1F1(dim; dim/2; -r^2/2) - exp(-r^2),

    negative for small r: the variance is then below that of `paired_fourier`.

    Parameters
    ----------
    key : typed random key. The first direction of each block is that of `paired_fourier` under this key, and so are all
        the lengths |w_j|; a larger map repeats the frequencies of a smaller one.
    kernel : Gaussian, Exponential, Matern32 or Matern52, or a positive multiple of one: a radial kernel, since
        directions have to be uniform and independent of the lengths.
    dim : dimension of the points, at least 1. For dim = 1 nothing is left to orthogonalise.
    num_frequencies : m, at least 1, need not be a multiple of dim. There are 2m features.
    dtype : as in `paired_fourier`.

    Returns
    -------
    PairedFourier, a callable PyTree.

    Notes
    -----
    Drawing takes ceil(m / dim) QR decompositions of dim x dim matrices, O(m dim^2), whole blocks even where the last
    one is cut; mapping and memory are those of `paired_fourier`. Source: yu2016.
    """
    return _orthogonal(
        *draw_arguments(
            key, kernel, dim, num_frequencies, dtype, rotation_invariant=True
        )
    )


@partial(jax.jit, static_argnums=(2, 3, 4))
def _orthogonal(
    key: jax.Array, kernel: Kernel, dim: int, m: int, dtype: Any
) -> PairedFourier:
    """Gram-Schmidt of independent draws: directions of a rotation invariant law are independent of lengths."""
    num_blocks = -(-m // dim)
    draws = spectral_law(kernel).frequencies(key, num_blocks * dim, dim, dtype)
    lengths = jnp.sqrt(jnp.sum(draws * draws, axis=1, keepdims=True))
    blocks = (draws / jnp.where(lengths > 0, lengths, 1)).reshape(num_blocks, dim, dim)
    Q, R = jnp.linalg.qr(jnp.swapaxes(blocks, 1, 2))
    # With a positive diagonal of R the decomposition is unique, and Q has the uniform law.
    signs = jnp.where(jnp.diagonal(R, axis1=1, axis2=2) < 0, -1, 1).astype(dtype)
    directions = jnp.swapaxes(Q * signs[:, None, :], 1, 2).reshape(
        num_blocks * dim, dim
    )
    return PairedFourier(kernel, (lengths * directions)[:m])
