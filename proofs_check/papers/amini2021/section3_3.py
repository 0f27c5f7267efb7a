"""amini2021, Section 3.3: (29), Proposition 2, (30) and Corollary 1; Theorem D."""

import math
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Check, Exact, Inequality
from proofs_check.papers.amini2021.setup import Pairs, at_least, log_sum
from proofs_check.papers.shared import Grids, check_of, wrong

Logs = tuple[float, float]
"""The log of a probability, and the log of what is claimed."""


def two_clusters(
    m: int, p: float, q: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what may be drawn from two clusters of m signs, 1 with chances p and q, and the kernel y z: b = d_0 = 1.

    That is the means (a, 1) and (1, c) of the signs, and the logs of their chances (a, c).
    """
    count = np.arange(m + 1)
    means = 2 * count / m - 1
    logs = np.add.outer(
        stats.binom.logpmf(count, m, p), stats.binom.logpmf(count, m, q)
    )
    return means[:, None], means[None, :], logs


def block_means(y: Any, z: Any) -> tuple[Any, Any, Any]:
    """Return Psi_11, Psi_12 and Psi_22 from the means of signs; as the kernel is -1 or 1, v^2 = 1 - Psi^2."""
    return y**2, y * z, z**2


def separation_and_variance(y: Any, z: Any) -> tuple[Any, Any]:
    """Return gamma^2 and vbar^2 for clusters of equal size."""
    first, mixed, second = block_means(y, z)
    gamma2 = ((first - mixed) ** 2 + (second - mixed) ** 2) / 2
    return gamma2, 1 - (first**2 + 2 * mixed**2 + second**2) / 4


def pairs_apart(m: int, log: float, sides: float = 2.0) -> Logs:
    """The distribution functions of pairs differ by twice the Kolmogorov distance of one sample at most."""
    distance = math.sqrt((math.log(sides) + log) / (2 * m))
    return float(stats.kstwo.logsf(distance, m)), -log


def eq29(grids: Grids) -> Check:
    larger = grids["corrected"][2:]
    name = "one side for two"
    one_sided = wrong(name, "wrong factor", settings=larger, sides=1.0)
    return check_of(Exact, grids["corrected"], one_sided, corrected=pairs_apart)


def block_bounds(
    *, m: float, t: float, as_printed: bool = False
) -> tuple[Bound, Bound]:
    """Return the bounds of block means and of variances for two clusters of m signs."""
    bounds = (concentration.block_means, concentration.block_variances)
    means, variances = (
        bound(bound=1.0, smallest=m, num_clusters=2, t=t, as_printed=as_printed)
        for bound in bounds
    )
    return means, variances


def blocks_outside(
    m: int,
    p: float,
    q: float,
    t: float,
    as_printed: bool = False,
    power: float = 0.0,
) -> Logs:
    """Some block mean or variance is farther from its own than m^power times the bound."""
    means, variances = block_bounds(m=m, t=t, as_printed=as_printed)
    y, z, logs = two_clusters(m, p, q)
    true_blocks = block_means(2 * p - 1, 2 * q - 1)
    outside = np.zeros((), bool)
    for psi, true in zip(block_means(y, z), true_blocks, strict=True):
        outside = outside | (np.abs(psi - true) > m**power * means.value)
        outside = outside | (np.abs(psi**2 - true**2) > m**power * variances.value)
    return log_sum(logs, outside), float(means.log_failure)


def prop2(grids: Grids) -> Check:
    return check_of(
        Exact,
        grids["both"],
        wrong("1 / n_k for the root", "wrong power", as_printed=True, power=-0.5),
        printed=partial(blocks_outside, as_printed=True),
        corrected=blocks_outside,
    )


def separation_bounds(
    *, gamma2: float, vbar2: float, m: float, t: float, as_printed: bool = False
) -> tuple[Bound, Bound]:
    """Return the bounds (30) of gamma^2, from below, and of vbar^2 for two clusters of m points."""
    sizes: dict[str, Any] = {
        "bound": 1.0,
        "min_share": 0.5,
        "num_points": 2 * m,
        "num_clusters": 2,
        "t": t,
        "as_printed": as_printed,
    }
    low = concentration.empirical_separation(gamma2=gamma2, **sizes)
    high = concentration.empirical_variance(vbar2=vbar2, **sizes)
    return low, high


def separation_outside(
    m: int,
    p: float,
    q: float,
    t: float,
    as_printed: bool = False,
    factor: float = 1.0,
) -> Logs:
    """gamma^2 or vbar^2 is farther from its own than a multiple of the bound."""
    gamma2, vbar2 = separation_and_variance(2 * p - 1, 2 * q - 1)
    low, high = separation_bounds(
        gamma2=gamma2, vbar2=vbar2, m=m, t=t, as_printed=as_printed
    )
    y, z, logs = two_clusters(m, p, q)
    separation, variance = separation_and_variance(y, z)
    outside = gamma2 - separation > factor * (gamma2 - low.value)
    outside = outside | (variance - vbar2 > factor * (high.value - vbar2))
    return log_sum(logs, outside), float(low.log_failure)


def eq30(grids: Grids) -> Check:
    return check_of(
        Exact,
        grids["both"],
        wrong(
            "a seventh of both",
            "wrong factor",
            settings=grids["further"],
            as_printed=True,
            factor=1 / 7,
        ),
        printed=partial(separation_outside, as_printed=True),
        corrected=separation_outside,
    )


def corollary_from_theorem(
    gamma2: float, n: float, dim: float, factor: float = 1.0
) -> Pairs:
    """Theorem 3 at the worst empirical parameters that (30) allows, in units of the corrected bound.

    With what is printed in both the theorem says less than the corollary: the constant is lost on the way.
    """
    share = 0.5
    vbar2 = 1e-9
    t = 2.5
    model: dict[str, Any] = {
        "num_clusters": 2,
        "lipschitz": 1.0,
        "noise": 1.0,
        "op_norm": 1.0,
        "dim": dim,
        "num_points": n,
        "t": t,
    }
    corollary = partial(
        concentration.misclassification_population,
        **model,
        gamma2=gamma2,
        gamma_tilde2=share * gamma2,
        vbar2=vbar2,
        bound=1.0,
        min_share=share,
    )
    low, high = separation_bounds(
        gamma2=gamma2, vbar2=vbar2, m=share * n, t=t, as_printed=True
    )
    theorem = partial(
        concentration.misclassification,
        **model,
        gamma2=low.value,
        gamma_tilde2=share * low.value,
        vbar2=high.value,
    )
    right = corollary()
    printed = corollary(as_printed=True)
    # The sides of an Inequality hold always.
    claimed = Bound(factor, 1.0, right.valid, right.source)
    less = Bound(printed.value / right.value, 1.0, printed.valid, printed.source)
    return [
        (float(theorem().value) / right.value, claimed),
        at_least(theorem(as_printed=True).value / right.value, less),
    ]


def cor1(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["corrected"],
        wrong("a fourth of it", "wrong factor", factor=0.25),
        corrected=corollary_from_theorem,
    )
