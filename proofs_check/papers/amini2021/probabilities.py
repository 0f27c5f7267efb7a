"""amini2021 by enclosures: probabilities, and what they are claimed to be at most, at the settings of the checks.

A function that takes the value of a bound returns the probability alone: what is claimed is that of the bound.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction as Q
from functools import partial
from typing import Any

from jaxkern.bounds import concentration
from proofs_check.engine.decided import bound
from proofs_check.engine.enclosures import (
    Ball,
    ball,
    binomial_tail,
    chi_square_below,
    chi_square_tail,
    normal_tail,
)
from proofs_check.papers.amini2021.proofs import HALF, Sides, exp, mean_chi
from proofs_check.papers.amini2021.section3_3 import (
    block_means,
    separation_and_variance,
)
from proofs_check.papers.shared import everywhere


def _at(claim: str, *, above: bool = False, **forms: Any) -> Any:
    return everywhere(f"amini2021:{claim}", above=above, **forms)


def _sum_of_normals(value: Ball, n: int) -> Ball:
    """K = x + y and normal points: |K - E K|_F^2 = 2 n (2 a^2 + q) is at most 4 n chi^2_n."""
    return chi_square_tail(value**2 / (4 * n), n)


def _norm_below(value: Ball, n: int) -> Ball:
    """P(|y| + |y_1| < value) <= P(|y| < value)."""
    return chi_square_below(value**2, n)


def _clipped(value: Ball, n: int, p: Any = HALF) -> Ball:
    """P(max(N - p, p) <= value) for N ~ Bin(n, p), the number of X in {-2, 0, 2} that are not 0."""
    most = int((value + ball(p)).floor().unique_fmpz())
    return binomial_tail(n - most, n, 1 - p)


def _any_share(n: int, p: Ball) -> Sides:
    return _clipped(n * p / 4, n, p), (-(p**2) * n / 2).exp()


def _gaussian(k: int, t: Ball) -> Sides:
    """A coordinate, k = 0, or the norm in R^k."""
    tail = chi_square_tail((mean_chi(k) + t) ** 2, k) if k else normal_tail(t)
    return tail, (-t * t / 2).exp()


def _truncated_normal(low: Ball, high: Ball, t: Ball) -> Sides:
    """A standard normal variable between low and high."""
    beyond = ball(0)
    mean = (-low * low / 2).exp()
    if high.is_finite():
        beyond = normal_tail(high)
        mean -= (-high * high / 2).exp()
    mass = normal_tail(low) - beyond
    mean /= (8 * ball(1).atan()).sqrt() * mass
    tail = (normal_tail(mean + t) - beyond) / mass
    return tail.nonnegative_part(), (-t * t / 2).exp()


def _smirnov(m: int, log: Ball) -> Sides:
    """2 P(D+ > x) at x^2 = (ln 2 + log) / 2 m, by the formula of Birnbaum and Tingey."""
    x = ((ball(2).log() + log) / (2 * m)).sqrt()
    total = ball(0)
    count = ball(1)
    for j in range(int((m * (1 - x)).floor().unique_fmpz()) + 1):
        point = x + ball(j) / m
        total += count * point ** (j - 1) * (1 - point) ** (m - j)
        count *= ball(m - j) / (j + 1)
    return 2 * x * total, (-log).exp()


def _mixture(rate: int, d: int, x: Ball) -> Iterator[tuple[Ball, Ball]]:
    """Poisson weights and P(chi^2_(d + 2 j) > x) for j up to 3 rate.

    The probability grows by (x / 2)^(d / 2 + j) exp(-x / 2) / Gamma(d / 2 + j + 1).
    """
    y = x / 2
    freedom = ball(Q(d, 2))
    weight = exp(-rate)
    above = chi_square_tail(x, d)
    step = y**freedom * (-y).exp() / (freedom + 1).gamma()
    for j in range(3 * rate + 1):
        yield weight, above
        weight *= ball(rate) / (j + 1)
        above += step
        freedom += 1
        step *= y / freedom


def _noncentral(value: Ball, d: int, size: Ball) -> Ball:
    """|X z|^2, noncentral chi-square, beyond the value of its mean: a Poisson mixture of chi-squares."""
    rate = int(float(size)) ** 2 // 2
    mean = d + size**2
    # P(Poisson(rate) > 3 rate).
    total = chi_square_below(2 * rate, 6 * rate + 2) if rate else ball(0)
    for weight, tail in _mixture(rate, d, mean + value):
        total += weight * tail
    if mean > value:
        for weight, tail in _mixture(rate, d, mean - value):
            total += weight * (1 - tail)
    return total


def _exponential(value: Ball) -> Ball:
    """X + 1 exponential: P(|X| > value)."""
    below = 1 - (value - 1).exp() if value < 1 else 0
    return (-1 - value).exp() + below


def _above(n: int, p: Any, level: Ball) -> Ball:
    """P(Bin(n, p) > level), and no less where the level is not told from a whole number."""
    return binomial_tail(int(level.lower().floor().unique_fmpz()) + 1, n, p)


def _signs_outside(value: Ball, n: int) -> Ball:
    """P(|mean of n signs| > value)."""
    return 2 * _above(n, HALF, n * (1 + value) / 2)


def _around(centre: Ball, radius: Ball) -> Ball:
    """Return the interval around a mean of signs."""
    return (centre - radius).max(ball(-1)).union((centre + radius).min(ball(1)))


def _outside(
    inside: Callable[[Ball, Ball], bool], m: int, p: Ball, q: Ball, claimed: Ball
) -> Sides:
    """P(outside), and what is claimed, for two clusters of m signs, 1 with chances p and q.

    At most the chance that a mean of signs is farther than 2 h from its own, where all within is inside.
    """
    for k in range(60):
        h = ball(Q(9, 10) ** k)
        Y = _around(2 * p - 1, 2 * h)
        Z = _around(2 * q - 1, 2 * h)
        tail = sum(_above(m, c, m * (c + h)) for c in (p, 1 - p, q, 1 - q))
        if tail <= claimed and inside(Y, Z):
            return tail, claimed
    raise ArithmeticError("no rectangle decides")


def _changes(p: Ball, q: Ball, Y: Ball, Z: Ball) -> tuple[list[Ball], list[Ball]]:
    """Return the changes of Psi_11, Psi_12, Psi_22 for the kernel y z, in factors, and those of their squares."""
    y = 2 * p - 1
    z = 2 * q - 1
    dy = Y - y
    dz = Z - z
    changes = [dy * (Y + y), dy * Z + dz * y, dz * (Z + z)]
    blocks = block_means(y, z)
    squares = [d * (2 * psi + d) for d, psi in zip(changes, blocks, strict=True)]
    return changes, squares


def _blocks_outside(m: int, t: Ball, p: Ball, q: Ball, **form: bool) -> Sides:
    """Block means and variances beyond their bounds; as the kernel is -1 or 1, v^2 = 1 - Psi^2."""
    sizes = {"bound": 1, "smallest": m, "num_clusters": 2, "t": t, **form}
    means = bound(concentration.block_means, **sizes)
    variances = bound(concentration.block_variances, **sizes)

    def inside(Y: Ball, Z: Ball) -> bool:
        changes, squares = _changes(p, q, Y, Z)
        near = all(abs(d) <= means.value for d in changes)
        return near and all(abs(d) <= variances.value for d in squares)

    return _outside(inside, m, p, q, means.log_failure.exp())


def _separation_outside(m: int, t: Ball, p: Ball, q: Ball, **form: bool) -> Sides:
    """gamma^2 below and vbar^2 above their bounds."""
    gamma2, vbar2 = separation_and_variance(2 * p - 1, 2 * q - 1)
    sizes = {"bound": 1, "min_share": HALF, "num_points": 2 * m, "num_clusters": 2}
    sizes |= {"t": t, **form}
    low = bound(concentration.empirical_separation, gamma2=gamma2, **sizes)
    high = bound(concentration.empirical_variance, vbar2=vbar2, **sizes)
    first, mixed, second = block_means(2 * p - 1, 2 * q - 1)

    def inside(Y: Ball, Z: Ball) -> bool:
        changes, squares = _changes(p, q, Y, Z)
        d = changes[0] - changes[1]
        e = changes[2] - changes[1]
        wider = d * (2 * (first - mixed) + d) + e * (2 * (second - mixed) + e)
        spread = -(squares[0] + 2 * squares[1] + squares[2]) / 4
        return wider / 2 >= low.value - gamma2 and spread <= high.value - vbar2

    return _outside(inside, m, p, q, low.log_failure.exp())


def _display(more: int, t: Ball, values: Ball) -> Sides:
    """Two points of equally likely values, h = 1 where they agree and else -1: Psi is 0, or 1; t + more is allowed."""
    apart = (1 - 1 / values) * (1 - 2 / values > t + more)
    agree = 1 / values * (2 - 2 / values > t + more)
    return apart + agree, 2 * (-t * t).exp()


def _split(multiple: int, m: Ball, s: Ball) -> Sides:
    """w in {-m, 0, m} with variance one, A = 1: P(|Y + 2 T| >= multiple s), and P(|Y| >= s) + P(|T| >= s)."""
    p = 1 / (2 * m * m)
    left = ball(0)
    right = ball(0)
    for w, chance in ((-m, p), (0, 1 - 2 * p), (m, p)):
        Y = w * w - 1
        T = 0.9 * s / m * w
        left += chance * (abs(Y + 2 * T) >= multiple * s)
        right += chance * ((abs(Y) >= s) + (abs(T) >= s))
    return left, right


thm1_33_printed, thm1_33 = _at(
    "thm1-33", above=True, printed=_sum_of_normals, corrected=_sum_of_normals
)
prop1 = _at("prop1", printed=_clipped)
prop1_any = _at("prop1-any", corrected=_any_share)
sec2_2_lower = _at("sec2.2-lower", above=True, corrected=_norm_below)
thm4 = _at("thm4", printed=_gaussian)
thm5 = _at("thm5", corrected=_truncated_normal)
lem3 = _at("lem3", corrected=_noncentral)
eq29 = _at("eq29", corrected=_smirnov)
prop2_printed, prop2 = _at(
    "prop2",
    above=True,
    printed=partial(_blocks_outside, as_printed=True),
    corrected=_blocks_outside,
)
eq30_printed, eq30 = _at(
    "eq30",
    above=True,
    printed=partial(_separation_outside, as_printed=True),
    corrected=_separation_outside,
)
u_statistic_printed, u_statistic = _at(
    "u-statistic", printed=_signs_outside, corrected=_signs_outside
)
v_statistic_printed, v_statistic = _at(
    "v-statistic", printed=_signs_outside, corrected=_signs_outside
)
prop2_display_printed, prop2_display = _at(
    "prop2-display", printed=partial(_display, 0), corrected=partial(_display, 1)
)
thm6_split_printed, thm6_split = _at(
    "thm6-split", printed=partial(_split, 2), corrected=partial(_split, 3)
)
lem5_printed, lem5 = _at("lem5", printed=_exponential, corrected=_exponential)
