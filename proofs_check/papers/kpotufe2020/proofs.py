"""kpotufe2020 by enclosures: counterexamples and exact probabilities.

Right sides are bounds of `jaxkern.bounds` in balls wherever they have one.
"""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from jaxkern.bounds import sketching
from proofs_check.claim import Enclosed
from proofs_check.engine.decided import bound
from proofs_check.engine.enclosures import (
    Ball,
    at_most,
    ball,
    binomial_tail,
    chi_square_below,
    chi_square_tail,
    equal,
    normal_tail,
    prove,
    together,
)
from proofs_check.papers.kpotufe2020.appendix_b import DEVIATIONS
from proofs_check.papers.kpotufe2020.appendix_c import rank_one
from proofs_check.papers.kpotufe2020.section4_inner_products import FOR_EVERY_D
from proofs_check.papers.kpotufe2020.section5_1 import shortfall_as_printed
from proofs_check.papers.shared import everywhere

Sides = tuple[Any, Any]


def _no_identity(r: Ball, B: Ball) -> Sides:
    return chi_square_below(B, r), (-r / 2 * (B / r - 1 - (B / r).log())).exp()


def _one_atom_tail(deviation: Ball, d: Ball) -> Ball:
    """Return the probability that chi2_d / d exceeds 1 by a deviation of more than 1."""
    return chi_square_tail(d * (1 + deviation), d)


def _eq11(d: Ball, tau: Ball, C2: Ball, c: Ball) -> Sides:
    return chi_square_tail(d + C2 * (tau * d).sqrt() / c**2, d), (-tau).exp()


def _binomial(n: Ball, w: Ball, gap: Ball) -> Ball:
    """P(|share - w| >= gap) for the share of n draws in an atom of mass w."""
    draws = int(float(n))
    above = int((n * (w + gap)).ceil().unique_fmpz())
    below = int((n * (1 - w + gap)).ceil().unique_fmpz())
    return binomial_tail(above, draws, w) + binomial_tail(below, draws, 1 - w)


def _share_tail(value: Ball, n: Ball, w: Ball, formula: Ball) -> Ball:
    """|Sigma_n - Sigma| is |share - w| for two orthogonal atoms, and sqrt(2) times that in the Hilbert-Schmidt norm."""
    chosen = DEVIATIONS[int(float(formula))]
    is_operator = chosen is sketching.covariance_deviation_operator
    return _binomial(n, w, value if is_operator else value / ball(2).sqrt())


def _orthogonal_atoms_tail(value: Ball, p: Ball, formula: Ball) -> Ball:
    """Return P(chi2_p > value), or of chi2_p - 1 for all bounds but that of the largest stretch."""
    is_stretch = FOR_EVERY_D[int(float(formula))] is sketching.largest_stretch
    threshold = value if is_stretch else value + 1
    if p == 1:
        return 2 * normal_tail(threshold.sqrt())
    return chi_square_tail(threshold, p)


def _normal_tail(value: Ball, energy: Ball, d: Ball) -> Ball:
    return 2 * normal_tail(value / (energy / d).sqrt())


def _exponentials_tail(value: Ball, n: Ball) -> Ball:
    """The mean of n signed exponential variables."""
    total = n * value
    if n == 1:
        return (-total).exp()
    count = int(float(n))
    tail = ball(0)
    for j in range(1, count + 1):
        ways = math.comb(2 * count - j - 1, count - 1)
        share = Fraction(ways, 2 ** (2 * count - j))
        tail += ball(share) * chi_square_tail(2 * total, 2 * j)
    return 2 * tail


def _cramer(n: Ball, C: Ball) -> Sides:
    right = bound(rank_one, n=n, C=C, rank=1 / (2 * ball(1).atan()))
    return right.log_failure.exp(), chi_square_tail(n * (1 + right.value), n)


def _signs_tail(value: Ball, n: Ball) -> Ball:
    return _binomial(n, ball(0.5), value / 2)


def _one_row_tail(deviation: Ball, p: Ball) -> Ball:
    return chi_square_tail(1 + deviation, p)


no_identity = everywhere("kpotufe2020:no-identity", printed=_no_identity)
prop1_rare = everywhere("kpotufe2020:prop1-rare", corrected=_one_atom_tail)
eq11 = everywhere("kpotufe2020:eq11", printed=_eq11)
lemB_2_rare_printed, lemB_2_rare = everywhere(
    "kpotufe2020:lemB.2-rare", printed=_share_tail, corrected=_share_tail
)
thmC_1_lower = everywhere("jaxkern:thmC.1-lower", corrected=_cramer)
thmC_2_printed, thmC_2 = everywhere(
    "kpotufe2020:thmC.2", printed=_signs_tail, corrected=_exponentials_tail
)
prop1_explicit_rare = everywhere(
    "jaxkern:prop1-explicit-rare", corrected=_orthogonal_atoms_tail
)
eq9 = everywhere("kpotufe2020:eq9", corrected=_normal_tail)

# Counterexamples.
ORTHONORMAL = "two orthonormal atoms, pi_1 = "
LARGE = {"n": 1e60, "d": 1e60, "tau": 3}
"""Sizes at which the errors of the sample and of the sketch are nothing, for statements in the limit."""


def _thm1_proof() -> Sides:
    names = ("kappa", "op_norm", "trace", "trace3", "hs_norm", "tau")
    atom = dict.fromkeys(names, 1)
    return 1, bound(sketching.cube_trace, **atom, n=6272).value - 1


def _eq10() -> Sides:
    """|f - g|^2 = 5, lambda_1 = 1 and lambda_2 = 1/4, and the image of f - g in the limit."""
    lost = bound(
        shortfall_as_printed,
        kappa=1.25,
        op_norm=1,
        trace=1.25,
        trace3=1 + 0.25**3,
        hs_norm=(1 + ball(0.25) ** 2).sqrt(),
        eigenvalue=1,
        epsilon=Fraction(1, 5),
        num_points=1,
        eta=0,
        **LARGE,
    )
    return 5 - lost.value, 4 + ball(0.25) ** 3


def _eq12() -> Sides:
    w = ball("0.9")
    lost = bound(
        sketching.mean_separation_shortfall,
        kappa=1,
        op_norm=w,
        trace=1,
        trace3=w**3 + (1 - w) ** 3,
        hs_norm=(w**2 + (1 - w) ** 2).sqrt(),
        sigma=0,
        weight=w,
        mean_gap=2,
        **LARGE,
    )
    return 2 * w**3 - lost.value, w**3 + (1 - w) ** 3


thm1_proof = partial(at_most, _thm1_proof, "K = 1, n = 6272 tau: tr Sigma^3 and Delta")
eq10 = partial(at_most, _eq10, "atoms (+-1, +-1/2), k = 1, f - g = (2, 1)")
mixture = partial(
    equal,
    lambda: (Fraction(-1, 3), Fraction(1, 3)),
    "pi_1 = 1/4, mu_1 = 1, so that mu_2 = -1/3",
)
eq12 = partial(at_most, _eq12, ORTHONORMAL + ".9")
eq13 = partial(
    at_most,
    lambda: (Fraction(3, 5), 0),
    ORTHONORMAL + ".4: lambda_1 = pi_2, <f_1, mu_1> = sigma = 0",
)
eq14 = partial(
    at_most,
    lambda: (9, Fraction(9, 10)),
    ORTHONORMAL + ".9: gamma |mu_1|^2 and lambda_1",
)
_thm1_at_settings = everywhere("kpotufe2020:thm1", printed=_one_row_tail)


def threshold(C: Any) -> Any:
    """Return 1 + the bound of Theorem 1 as printed for one atom, d = 1 and tau = 9 C^2 + 12, where the n-term is 1/2.

    `prove` needs a function of balls and of series, and of all C; bounds take no series.
    """
    return ball(1.5) + 3 * C * (ball(2).sqrt() + (9 * C * C + 12).sqrt())


def _gap(C: Any) -> Any:
    x = threshold(C)
    tau = 9 * C * C + 12
    return tau - x / 2 + (x / (50 * ball(1).atan())).log() / 2 - (1 + x).log()


def _gap_of_inverse(u: Any) -> Any:
    """Return a lower bound of u^2 times the gap at C = 1 / u, u <= 1: y is u^2 x there."""
    tau = 9 + 12 * u * u
    y = ball(1.5) * u * u + 3 * (ball(2).sqrt() * u + tau.sqrt())
    rest = (50 * ball(1).atan() * y).log() / 2 + u * u / y
    return tau - y / 2 - u * u * rest - u / ball(1).exp()


def thm1() -> Enclosed:
    """Refute Theorem 1 at a setting, and for every constant C > 0, by one atom, d = 1 and tau = 9 C^2 + 12.

    P(chi2_1 > x) >= sqrt(2 x / pi) e^(-x/2) / (1 + x) (Mills) exceeds 5 e^-tau, for C <= 1 and for C = 1 / u, u <= 1,
    where u^2 times the difference of logarithms is taken, ln(1 + x) <= ln x + 1 / x and u^2 ln u >= -u / e.
    """
    at_setting: Enclosed = _thm1_at_settings()
    gaps = together([prove(_gap, [(0, 1)]), prove(_gap_of_inverse, [(0, 1)])])
    because = (
        f"{at_setting.because}; 5 exp(-tau) is exceeded for every C > 0: {gaps.because}"
    )
    holds = at_setting.holds or not gaps.holds
    return replace(at_setting, holds=holds, because=because)
