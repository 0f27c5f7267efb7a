"""Misclassification of kernel spectral clustering: amini2021, Theorem 3 and Corollary 1."""

import dataclasses
from typing import Any

from jaxkern.bounds._bound import (
    Bound,
    Real,
    exact,
    fails,
    formula,
    note_of,
    surely,
    xp,
)
from jaxkern.bounds.concentration._inner import inner_product_gaussian


@formula
def truncation(
    *, spectral: Real, num_clusters: Real, as_printed: bool = False
) -> Bound:
    """Bound |A_R - B|_F by sqrt(5 R) |A - B| for symmetric A, its R eigenvalues of largest size A_R, and rank B <= R.

    As printed sqrt(8 R), which holds. No number below sqrt(5) will do.

    Parameters
    ----------
    spectral, num_clusters, as_printed : |A - B|, R, and whether as printed.

    Returns
    -------
    Bound, deterministic, valid for R >= 1.

    Source: amini2021, (41); Theorem C of docs/theory/amini2021.md; claim amini2021:eq41.
    """
    source = "amini2021, (41)" + note_of(as_printed, "sharper")
    return surely(
        xp.sqrt((8.0 if as_printed else 5.0) * num_clusters) * spectral,
        (num_clusters >= 1) & (spectral >= 0),
        source,
    )


@formula
def truncation_eigengap(
    *,
    spectral: Real,
    eigenvalue: Real,
    next_eigenvalue: Real,
    rank: Real,
    num_clusters: Real,
) -> Bound:
    """Bound |A_R - A'_r|_F for symmetric A and A', r <= R, by |A - A'| and the gap below the r-th eigenvalue of A'.

    sqrt(2 r (theta spectral)^2 + (R - r) (next_eigenvalue + spectral)^2), theta = eigenvalue / (eigenvalue -
    next_eigenvalue - spectral). A_R and A'_r are the parts on the eigenvalues of largest size. With A = K / n,
    A' = E K / n, `distance_kernel_from_variance` over n for `spectral`, and |A'_r - K* / n|_F added, it is the `error`
    of `kmeans_step`, and says something of Algorithm 1 where `misclassification_operator_distance` does not.

    Parameters
    ----------
    spectral : |A - A'|.
    eigenvalue, next_eigenvalue, rank : sizes of the r-th and the next of the eigenvalues of A', and r.
    num_clusters : R.

    Returns
    -------
    Bound, deterministic, valid where eigenvalue > next_eigenvalue + spectral and 1 <= r <= R.

    Source: Theorem F of docs/theory/amini2021.md; claim jaxkern:truncation-eigengap.
    """
    theta = eigenvalue / (eigenvalue - next_eigenvalue - spectral)
    value = xp.sqrt(
        2 * rank * (theta * spectral) ** 2
        + (num_clusters - rank) * (next_eigenvalue + spectral) ** 2
    )
    valid = (
        (eigenvalue > next_eigenvalue + spectral)
        & (spectral >= 0)
        & (next_eigenvalue >= 0)
    )
    valid = valid & (rank >= 1) & (rank <= num_clusters) & (xp.floor(rank) == rank)
    return surely(value, valid, "jaxkern, Theorem F of amini2021")


@formula
def kmeans_step(
    *,
    error: Real,
    gamma2: Real,
    gamma_tilde2: Real,
    kmeans_factor: Real = 1.0,
    as_printed: bool = False,
) -> Bound:
    """Bound the misclassification rate of k-means on rows at Frobenius distance `error` from those of K* / n.

    4 (1 + sqrt(kmeans_factor))^2 error^2 / gamma2; as printed without the root, which holds and is the same for exact
    k-means.

    Parameters
    ----------
    error : Frobenius distance of the rows from those of K* / n.
    gamma2, gamma_tilde2 : separations of the clusters, as in `BlockParameters`.
    kmeans_factor, as_printed : factor by which k-means may miss the optimal cost, at least 1, and whether as printed.

    Returns
    -------
    Bound, deterministic, valid where the same with gamma_tilde2 for gamma2 is below 1.

    Source: amini2021, proof of Theorem 3; Theorem C of docs/theory/amini2021.md; claim amini2021:kmeans-step.
    """
    cost = _kmeans_constant(kmeans_factor, as_printed) * error**2
    valid = (cost < gamma_tilde2) & (gamma_tilde2 <= gamma2)
    valid = valid & (kmeans_factor >= 1) & (error >= 0)
    source = "amini2021, proof of Theorem 3, k-means" + note_of(as_printed, "sharper")
    return surely(cost / gamma2, valid, source)


@formula
def misclassification(
    *,
    gamma2: Real,
    gamma_tilde2: Real,
    vbar2: Real,
    num_clusters: Real,
    lipschitz: Real,
    noise: Real,
    op_norm: Real,
    dim: Real,
    num_points: Real,
    t: Real,
    kmeans_factor: Real = 1.0,
    as_printed: bool = False,
) -> Bound:
    """Bound the misclassification rate of Algorithm 1 by C1 F(gamma2), C1 = 4 (1 + kmeans_factor)^2.

    F(g) = 16 R / g (8 L^2 noise^2 op_norm / dim (1 + t / sqrt(n))^2 + vbar2). As printed 4 for 8, which the proof does
    not give; it is right for distance kernels. vbar2 must be taken over all entries of E K, the diagonal E K(X_i, X_i)
    included (`block_parameters`), so that F does not vanish as dim grows: `misclassification_operator` does better.

    Parameters
    ----------
    gamma2, gamma_tilde2 : separations of the clusters, as in `BlockParameters`.
    vbar2 : mean variance within blocks.
    num_clusters, num_points, t : R clusters, n points, and the size of the deviation.
    lipschitz, noise, op_norm, dim : L, sigma, max |Sigma(mu_i)|, and the dimension.
    kmeans_factor, as_printed : factor by which k-means may miss the optimal cost, at least 1, and whether as printed.

    Returns
    -------
    Bound with probability 1 - exp(-t^2), valid for C1 F(gamma_tilde2) <= 1.

    Source: amini2021, Theorem 3; claim amini2021:thm3.
    """
    spread = _spread(lipschitz, noise, op_norm, dim, num_points, t, as_printed)
    cost = 4 * (1 + kmeans_factor) ** 2 * 16 * num_clusters * (spread + vbar2)
    source = "amini2021, Theorem 3" + note_of(as_printed, "corrected")
    valid = (t >= 0) & (kmeans_factor >= 1) & _separated(cost, gamma2, gamma_tilde2)
    return fails(cost / gamma2, 1, t**2, valid, source)


@formula
def misclassification_population(
    *,
    gamma2: Real,
    gamma_tilde2: Real,
    vbar2: Real,
    bound: Real,
    min_share: Real,
    num_clusters: Real,
    lipschitz: Real,
    noise: Real,
    op_norm: Real,
    dim: Real,
    num_points: Real,
    t: Real,
    kmeans_factor: Real = 1.0,
    as_printed: bool = False,
) -> Bound:
    """Bound the misclassification rate of Algorithm 1 by 2 C1 F(gamma*^2) + C3 / sqrt(n), from population parameters.

    F and C1 are those of `misclassification`, C3 = 288 R C1 bound^2 t / (sqrt(min_share) gamma*^2). As printed 18 for
    288 R C1, the condition has F for 2 F, and n must exceed a multiple of 1 / gamma*^2 that is not named; either
    condition makes n large enough without it.

    Parameters
    ----------
    bound, min_share : largest |E K|, and share of the smallest cluster.
    gamma2, gamma_tilde2, vbar2 : of the population, otherwise as in `misclassification`.
    num_clusters, lipschitz, noise, op_norm, dim, num_points, t, kmeans_factor, as_printed : as there.

    Returns
    -------
    Bound with probability 1 - 5 R^2 exp(-t^2), valid where the same with gamma_tilde*^2 for gamma*^2 is at most 1.

    Source: amini2021, Corollary 1; Theorem D of docs/theory/amini2021.md; claim amini2021:cor1.
    """
    spread = _spread(lipschitz, noise, op_norm, dim, num_points, t, as_printed)
    constant = 4 * (1 + kmeans_factor) ** 2
    theorem = constant * 16 * num_clusters * (spread + vbar2) / gamma2
    extra = 18 * bound**2 * t / xp.sqrt(min_share * num_points) / gamma2
    pairs = 5 * num_clusters**2
    possible = (t >= 0) & (kmeans_factor >= 1) & (min_share > 0) & (min_share <= 1)
    if as_printed:
        least = (1 - constant * extra) * gamma_tilde2
        separated = _separated(theorem * gamma2, gamma2, least)
        valid = possible & separated & (gamma_tilde2 > 0)
        source = "amini2021, Corollary 1 (printed)"
        return fails(2 * theorem + extra, pairs, t**2, valid, source)
    value = 2 * theorem + 16 * num_clusters * constant * extra
    valid = possible & _separated(value * gamma2, gamma2, gamma_tilde2)
    return fails(value, pairs, t**2, valid, "amini2021, Corollary 1 (corrected)")


@formula
def misclassification_operator(
    *,
    gamma2: Real,
    gamma_tilde2: Real,
    mean_gap: Real,
    num_clusters: Real,
    lipschitz: Real,
    omega: Real,
    scale: Real,
    num_points: Real,
    t: Real,
    kmeans_factor: Real = 1.0,
    truncation_factor: Real = 5.0,
) -> Bound:
    """Bound the misclassification rate of Algorithm 1 with everything in operator norm: Theorem 3 made sharper.

    4 (1 + sqrt(kmeans_factor))^2 truncation_factor R / gamma2 times
    (L omega scale (sqrt(2 (1 + 1 / n)) + 2 sqrt(2) t / sqrt(n)) + mean_gap)^2. K* is the block matrix of *any* Psi,
    from which gamma2 and gamma_tilde2 are computed. In the words of `misclassification` scale is
    noise sqrt(op_norm / dim).

    Parameters
    ----------
    gamma2, gamma_tilde2 : separations of the clusters, as in `BlockParameters`.
    mean_gap : a bound of |E K - K*| / n: `BlockParameters.mean_gap` with off_diagonal=True, or the norm itself.
    lipschitz, omega, scale : L in the sense of (2), the constant of LC, and max |Sigma_i|^(1/2).
    num_clusters, num_points, t, kmeans_factor : as in `misclassification`.
    truncation_factor : 5, or the paper's 8; at least 5.

    Returns
    -------
    Bound with probability 1 - exp(-t^2), valid where the same with gamma_tilde2 for gamma2 is at most 1.

    Source: Theorem C of docs/theory/amini2021.md; claim jaxkern:misclassification-operator, for distance kernels.
    """
    root = xp.sqrt(2 * (1 + 1 / num_points))
    root = root + 2 * xp.sqrt(exact(2.0, t)) * t / xp.sqrt(num_points)
    spectral = lipschitz * omega * scale * root + mean_gap
    bound = fails(spectral, 1, t**2, t >= 0, "jaxkern, Theorem C of amini2021")
    return _operator(
        bound, gamma2, gamma_tilde2, num_clusters, kmeans_factor, truncation_factor
    )


@formula
def misclassification_operator_distance(
    *,
    gamma2: Real,
    gamma_tilde2: Real,
    mean_gap: Real,
    num_clusters: Real,
    lipschitz: Real,
    omega: Real,
    scale: Real,
    num_points: Real,
    t: Real,
    kmeans_factor: Real = 1.0,
    truncation_factor: Real = 5.0,
) -> Bound:
    """Bound the quantity of `misclassification_operator` for K(x, y) = g(x - y) with L-Lipschitz g.

    The first bracket becomes sqrt(2 (1 - 1 / n)) + 2 t / sqrt(n).

    Parameters
    ----------
    gamma2, gamma_tilde2, mean_gap, num_clusters, lipschitz, omega, scale : as in `misclassification_operator`.
    num_points, t, kmeans_factor, truncation_factor : as there.

    Returns
    -------
    Bound with probability 1 - exp(-t^2), valid where the same with gamma_tilde2 for gamma2 is at most 1.

    Source: Theorem C of docs/theory/amini2021.md; claim jaxkern:misclassification-operator.
    """
    root = xp.sqrt(2 * (1 - 1 / num_points)) + 2 * t / xp.sqrt(num_points)
    spectral = lipschitz * omega * scale * root + mean_gap
    source = "jaxkern, Theorem C of amini2021 (distance kernels)"
    bound = fails(spectral, 1, t**2, t >= 0, source)
    return _operator(
        bound, gamma2, gamma_tilde2, num_clusters, kmeans_factor, truncation_factor
    )


@formula
def misclassification_operator_inner_product(
    *,
    gamma2: Real,
    gamma_tilde2: Real,
    mean_gap: Real,
    num_clusters: Real,
    scale: Real,
    mean_norm: Real,
    mean_rank: Real,
    dim: Real,
    num_points: Real,
    u: Real,
    kmeans_factor: Real = 1.0,
    truncation_factor: Real = 5.0,
) -> Bound:
    """Bound the quantity of `misclassification_operator` for K(x, y) = <x, y> and X_i ~ N(mu_i, scale^2 I).

    `inner_product_gaussian` over n stands in the place of the first term of the bracket. Where each cluster has one
    mean, Psi_kl = <mu_k, mu_l> has mean_gap = scale^2 dim / n.

    Parameters
    ----------
    gamma2, gamma_tilde2, mean_gap, num_clusters : as in `misclassification_operator`.
    scale, mean_norm, mean_rank, dim, num_points, u : as in `inner_product_gaussian`.
    kmeans_factor, truncation_factor : as in `misclassification_operator`.

    Returns
    -------
    Bound with probability 1 - 3 exp(-u^2 / 2), valid where the same with gamma_tilde2 for gamma2 is at most 1.

    Source: Theorem C of docs/theory/amini2021.md; claim amini2021:sec3.2-euclidean.
    """
    noise = inner_product_gaussian(
        scale=scale,
        mean_norm=mean_norm,
        mean_rank=mean_rank,
        dim=dim,
        num_points=num_points,
        u=u,
    )
    bound = dataclasses.replace(
        noise,
        value=noise.value / num_points + mean_gap,
        valid=noise.valid & (scale > 0),
        source="jaxkern, Theorem C of amini2021 (inner products)",
    )
    return _operator(
        bound, gamma2, gamma_tilde2, num_clusters, kmeans_factor, truncation_factor
    )


def _spread(
    lipschitz: Real,
    noise: Real,
    op_norm: Real,
    dim: Real,
    n: Real,
    t: Real,
    as_printed: bool,
) -> Any:
    """Return the part of the noise in F(g), times g / (16 R)."""
    return (
        (4.0 if as_printed else 8.0)
        * (lipschitz * noise) ** 2
        * op_norm
        / dim
        * (1 + t / xp.sqrt(n)) ** 2
    )


def _operator(
    spectral: Bound,
    gamma2: Real,
    gamma_tilde2: Real,
    clusters: Real,
    kmeans: Real,
    factor: Real,
) -> Bound:
    """Return the bound that follows from one of |K - K*| / n."""
    cost = _kmeans_constant(kmeans, False) * factor * clusters * spectral.value**2
    valid = spectral.valid & _separated(cost, gamma2, gamma_tilde2)
    valid = valid & (kmeans >= 1) & (factor >= 5)
    return dataclasses.replace(spectral, value=cost / gamma2, valid=valid)


def _kmeans_constant(kmeans_factor: Real, as_printed: bool) -> Any:
    return 4 * (1 + (kmeans_factor if as_printed else xp.sqrt(kmeans_factor))) ** 2


def _separated(cost: Real, gamma2: Real, gamma_tilde2: Real) -> Any:
    """Return whether the clusters are far enough apart for every cluster to keep a well-placed point."""
    ordered = (gamma_tilde2 > 0) & (gamma_tilde2 <= gamma2)
    return ordered & (cost <= gamma_tilde2)
