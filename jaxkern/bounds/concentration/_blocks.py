"""Block parameters of a mean kernel: amini2021, (20) to (22)."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern._types import Array, Float, Int
from jaxkern.linalg import matmul
from jaxkern.pytrees import pytree


@pytree
class BlockParameters:
    """How far a mean kernel is from constant on blocks, and how far apart the blocks are.

    Attributes
    ----------
    psi : (R, R) means over the blocks.
    v2 : (R, R) variances over the blocks.
    shares : (R,) shares of the clusters, the paper's pi.
    vbar2 : average variance, sum over k and l of shares_k shares_l v2_kl.
    separations : (R, R) D_kl = sum over r of shares_r (psi_kr - psi_lr)^2.
    gamma2 : min over k != l of D_kl.
    gamma_tilde2 : min over k != l of shares_l D_kl.
    mean_gap : a bound of |E K - K*| / n, K* the block matrix of psi.
    """

    psi: Float[Array, "R R"]
    v2: Float[Array, "R R"]
    shares: Float[Array, " R"]
    vbar2: Float[Array, ""]
    separations: Float[Array, "R R"]
    gamma2: Float[Array, ""]
    gamma_tilde2: Float[Array, ""]
    mean_gap: Float[Array, ""]


def block_parameters(
    mean_kernel: Float[Array, "n n"],
    labels: Int[Array, " n"],
    *,
    num_clusters: int,
    off_diagonal: bool = False,
) -> BlockParameters:
    """Return the empirical block parameters of E K, which holds E K(X_i, X_i) on its diagonal.

    By default over all entries, as Theorem 3 needs them. With off_diagonal=True the diagonal is left out of psi, v2 and
    vbar2, and enters as a diagonal matrix: mean_gap = sqrt(vbar2) + max_i |E K_ii - psi_kk| / n instead of sqrt(vbar2).

    Parameters
    ----------
    mean_kernel : (n, n) symmetric matrix E K.
    labels : (n,) integers in 0, ..., num_clusters - 1, none of which should be missing: an empty cluster has psi = 0
        and makes gamma_tilde2 zero.
    num_clusters : R, at least 2. Static.
    off_diagonal : static.

    Returns
    -------
    BlockParameters. O(n^2 R) time.

    Source: amini2021, (20) to (22); Theorem C of docs/theory/amini2021.md; claim amini2021:sec3.4.
    """
    matrix = checks.square("mean_kernel", mean_kernel)
    members = checks.labels("labels", labels, size=matrix.shape[0])
    count = checks.count("num_clusters", num_clusters, minimum=2)
    return _blocks(
        matrix,
        members,
        num_clusters=count,
        off_diagonal=checks.flag("off_diagonal", off_diagonal),
    )


def population_parameters(
    psi: Float[Array, "R R"], v2: Float[Array, "R R"], shares: Float[Array, " R"]
) -> BlockParameters:
    """Return the block parameters that follow from the means and the variances of the blocks.

    Parameters
    ----------
    psi, v2 : (R, R) means and variances, such as those of Examples 5 and 6; R >= 2.
    shares : (R,) shares of the clusters, which sum to one; they are used as given.

    Returns
    -------
    BlockParameters with mean_gap = sqrt(vbar2).

    Source: amini2021, (21), (22) and Section 3.3.
    """
    means = checks.square("psi", psi)
    size = checks.count(
        "the number of clusters, rows of psi,", means.shape[0], minimum=2
    )
    variances = checks.square("v2", v2)
    if variances.shape != means.shape:
        raise ValueError(
            f"v2 must have the shape of psi, {means.shape}, got {variances.shape}"
        )
    weights = checks.vector("shares", shares, size=size)
    return _finish(means, variances, weights, jnp.zeros((), means.dtype))


@partial(jax.jit, static_argnames=("num_clusters", "off_diagonal"))
def _blocks(
    matrix: jax.Array, labels: jax.Array, *, num_clusters: int, off_diagonal: bool
) -> BlockParameters:
    n, dtype = matrix.shape[0], matrix.dtype
    members = jax.nn.one_hot(labels, num_clusters, dtype=dtype)
    counts = jnp.sum(members, axis=0)
    eye = jnp.eye(n, dtype=dtype)
    kept = 1 - eye if off_diagonal else jnp.ones_like(eye)

    def over_blocks(entries: jax.Array) -> jax.Array:
        return matmul(matmul(members.T, entries), members)

    pairs = over_blocks(kept)
    # A cluster of one point has no pairs: its own entry then serves as psi, and its variance is zero.
    alone = over_blocks(matrix * eye)
    means = jnp.where(
        pairs > 0, over_blocks(matrix * kept) / jnp.maximum(pairs, 1), alone
    )
    residual = matrix - matmul(matmul(members, means), members.T)
    v2 = over_blocks(kept * residual**2) / jnp.maximum(pairs, 1)
    gap = (
        jnp.max(jnp.abs(jnp.diag(residual))) / n
        if off_diagonal
        else jnp.zeros((), dtype)
    )
    left_out = jnp.sum(pairs * v2) / n**2
    return _finish(means, v2, counts / n, gap, left_out)


@jax.jit
def _finish(
    psi: jax.Array,
    v2: jax.Array,
    shares: jax.Array,
    gap: jax.Array,
    vbar2: jax.Array | None = None,
) -> BlockParameters:
    """Return the parameters; vbar2 is given where blocks have fewer entries than their shares say."""
    if vbar2 is None:
        vbar2 = jnp.sum(shares[:, None] * shares[None, :] * v2)
    separations = jnp.sum(
        shares[None, None, :] * (psi[:, None, :] - psi[None, :, :]) ** 2, axis=-1
    )
    apart = ~jnp.eye(psi.shape[0], dtype=bool)
    gamma2 = jnp.min(jnp.where(apart, separations, jnp.inf))
    gamma_tilde2 = jnp.min(jnp.where(apart, separations * shares[None, :], jnp.inf))
    none = vbar2 == 0
    spread = jnp.where(
        none, 0, jnp.sqrt(jnp.where(none, 1, vbar2))
    )  # its gradient at 0 is 0, not infinite
    return BlockParameters(
        psi, v2, shares, vbar2, separations, gamma2, gamma_tilde2, spread + gap
    )
