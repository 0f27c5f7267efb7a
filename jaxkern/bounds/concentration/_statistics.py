"""U-statistics and the parameters of blocks of a mean kernel: amini2021, Proposition 2 and its proof."""

from typing import Any

from jaxkern.bounds._bound import (
    Bound,
    Real,
    exact,
    fails,
    formula,
    note_of,
    xp,
)


@formula
def u_statistic(
    *, bound: Real, num_points: Real, t: Real, as_printed: bool = False
) -> Bound:
    """Bound |U - E U| for the mean U of h(Y_i, Y_j) over pairs of n independent points, |h| <= bound, h symmetric.

    2 bound t / sqrt(n - 1), by Hoeffding. As printed sqrt(8) bound t / sqrt(n), by bounded differences; it holds, and
    is larger for n >= 3.

    Parameters
    ----------
    bound, num_points, t, as_printed : sup |h|, n points, the size of the deviation, and whether as printed.

    Returns
    -------
    Bound with probability 1 - 2 exp(-t^2), valid for t >= 0 and n >= 2.

    Source: amini2021, proof of Proposition 2; claim amini2021:u-statistic.
    """
    value = (
        bound
        * t
        * (
            xp.sqrt(8 / num_points)
            if as_printed
            else 2 / xp.sqrt(xp.maximum(num_points - 1, 1e-30))
        )
    )
    valid = (t >= 0) & (num_points >= 2)
    source = "amini2021, proof of Proposition 2, U" + note_of(as_printed, "sharper")
    return fails(value, 2, t**2, valid, source)


@formula
def two_sample_statistic(
    *,
    bound: Real,
    num_points: Real,
    num_others: Real,
    t: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound |V - E V| for the mean V of h(Y_i, Z_j) over n and m independent points, |h| <= bound.

    sqrt(2) bound t / sqrt(min(n, m)), by Hoeffding. As printed sqrt(8) for sqrt(2), which holds.

    Parameters
    ----------
    bound, num_points, num_others, t : sup |h|, n and m points, and the size of the deviation.
    as_printed : take the statement as printed. Static.

    Returns
    -------
    Bound with probability 1 - 2 exp(-t^2), valid for t >= 0 and n and m >= 1.

    Source: amini2021, proof of Proposition 2; claim amini2021:v-statistic.
    """
    smallest = xp.minimum(num_points, num_others)
    value = (
        xp.sqrt(exact(8.0 if as_printed else 2.0, t)) * bound * t / xp.sqrt(smallest)
    )
    source = "amini2021, proof of Proposition 2, V" + note_of(as_printed, "sharper")
    return fails(value, 2, t**2, (t >= 0) & (smallest >= 1), source)


@formula
def block_means(
    *,
    bound: Real,
    smallest: Real,
    num_clusters: Real,
    t: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound |Psi_kl - Psi*_kl|, empirical against population, for a mean kernel bounded by `bound`.

    2 bound (t / sqrt(smallest) + 1 / smallest); the last part is the bias of the diagonal, which the paper's proof
    leaves out. As printed 3 bound t / sqrt(smallest), which holds all the same.

    Parameters
    ----------
    bound, smallest, num_clusters, t : sup |E K|, min(n_k, n_l), R clusters, and the deviation.
    as_printed : take the statement as printed. Static.

    Returns
    -------
    Bound with probability 1 - 4 R^2 exp(-t^2), for all k and l and together with `block_variances`.

    Source: amini2021, Proposition 2; Theorem D of docs/theory/amini2021.md; claims amini2021:prop2 and
    amini2021:prop2-bias.
    """
    value = (
        3 * bound * t / xp.sqrt(smallest)
        if as_printed
        else 2 * bound * _rate(smallest, t)
    )
    source = "amini2021, Proposition 2, means" + note_of(as_printed, "sharper")
    return _all_blocks(value, smallest, num_clusters, t, source)


@formula
def block_variances(
    *,
    bound: Real,
    smallest: Real,
    num_clusters: Real,
    t: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound |v_kl^2 - v*_kl^2|, empirical against population, for a mean kernel bounded by `bound`.

    5 bound^2 (t / sqrt(smallest) + 1 / smallest). As printed 9 bound^2 t / sqrt(smallest), which holds.

    Parameters
    ----------
    bound, smallest, num_clusters, t, as_printed : as in `block_means`.

    Returns
    -------
    Bound with probability 1 - 4 R^2 exp(-t^2), for all k and l and together with `block_means`.

    Source: amini2021, Proposition 2; Theorem D of docs/theory/amini2021.md; claim amini2021:prop2.
    """
    value = (
        9 * bound**2 * t / xp.sqrt(smallest)
        if as_printed
        else 5 * bound**2 * _rate(smallest, t)
    )
    source = "amini2021, Proposition 2, variances" + note_of(as_printed, "sharper")
    return _all_blocks(value, smallest, num_clusters, t, source)


@formula
def empirical_separation(
    *,
    gamma2: Real,
    bound: Real,
    min_share: Real,
    num_points: Real,
    num_clusters: Real,
    t: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound the empirical gamma^2 from *below* by gamma*^2 minus 8 bound times `block_means` of the smallest cluster.

    As printed gamma*^2 - 24 bound^2 t / sqrt(min_share n), which holds.

    Parameters
    ----------
    gamma2 : gamma*^2 of the population, with the empirical shares of the clusters.
    bound, min_share, num_points, num_clusters, t : sup |E K|, smallest share, n points, R clusters, and the deviation.
    as_printed : take the statement as printed. Static.

    Returns
    -------
    Bound whose value gamma^2 is at least, on the event of `block_means`.

    Source: amini2021, (30), left; claim amini2021:eq30.
    """
    smallest = min_share * num_points
    lost = (
        24 * bound**2 * t / xp.sqrt(smallest)
        if as_printed
        else 16 * bound**2 * _rate(smallest, t)
    )
    source = "amini2021, (30), separation" + note_of(as_printed, "sharper")
    return _all_blocks(gamma2 - lost, smallest, num_clusters, t, source)


@formula
def empirical_variance(
    *,
    vbar2: Real,
    bound: Real,
    min_share: Real,
    num_points: Real,
    num_clusters: Real,
    t: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound the empirical vbar^2 by the population's vbar*^2 plus `block_variances` of the smallest cluster.

    As printed vbar*^2 + 9 bound^2 t / sqrt(min_share n), which holds.

    Parameters
    ----------
    vbar2 : vbar*^2 of the population.
    bound, min_share, num_points, num_clusters, t, as_printed : as in `empirical_separation`.

    Returns
    -------
    Bound, on the event of `block_means`.

    Source: amini2021, (30), right; claim amini2021:eq30.
    """
    smallest = min_share * num_points
    added = (
        9 * bound**2 * t / xp.sqrt(smallest)
        if as_printed
        else 5 * bound**2 * _rate(smallest, t)
    )
    source = "amini2021, (30), variance" + note_of(as_printed, "sharper")
    return _all_blocks(vbar2 + added, smallest, num_clusters, t, source)


def _rate(smallest: Real, t: Real) -> Any:
    return t / xp.sqrt(smallest) + 1 / smallest


def _all_blocks(
    value: Real, smallest: Real, num_clusters: Real, t: Real, source: str
) -> Bound:
    """Return the bound with the probability of Proposition 2; where it is positive, t is large enough for the proof."""
    valid = (smallest >= 1) & (num_clusters >= 1) & (t >= 0)
    return fails(value, 4 * num_clusters**2, t**2, valid, source)
