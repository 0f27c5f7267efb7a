"""kpotufe2020 by enclosures: counterexamples and exact probabilities.

Formulas are those of the paper or of `docs/theory/kpotufe2020.md`, in ball arithmetic, and call nothing of the library.
"""

import math
from fractions import Fraction
from functools import partial
from typing import Any

from jaxkern.bounds.sketching import largest_stretch
from proofs_check.claim import Enclosed
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
from proofs_check.papers.kpotufe2020.section4_inner_products import FOR_EVERY_D
from proofs_check.papers.shared import everywhere

C = "3.51"


def _no_identity(r: Ball, B: Ball) -> tuple[Ball, Ball]:
    return chi_square_below(B, r), (-r / 2 * (B / r - 1 - (B / r).log())).exp()


def _one_atom_tail(deviation: Ball, d: Ball) -> Ball:
    """Return the probability that chi2_d / d exceeds 1 by a deviation of more than 1."""
    return chi_square_tail(d * (1 + deviation), d)


def _eq11(d: Ball, tau: Ball, C2: Ball, c: Ball) -> tuple[Ball, Ball]:
    return chi_square_tail(d + C2 * (tau * d).sqrt() / c**2, d), (-tau).exp()


def _binomial(n: int, w: Ball, gap: Ball) -> Ball:
    """P(|share - w| >= gap) for the share of n draws in an atom of mass w."""
    above, below = (
        int((n * (w + gap)).ceil().unique_fmpz()),
        int((n * (1 - w + gap)).ceil().unique_fmpz()),
    )
    return binomial_tail(above, n, w) + binomial_tail(below, n, 1 - w)


def _deviation(n: Ball, w: Ball, tau: Ball, formula: Ball) -> tuple[Ball, Ball]:
    """Two orthogonal atoms, kappa = tr Sigma = 1: the deviation is sqrt(2) |share - w|."""
    root = (2 * tau / n).sqrt()
    half = ball(0.5)  # |Sigma|_HS^2, where the third formula is tried
    y = tau + ball(2).log()  # the fourth formula, of the operator norm, times sqrt(2)
    every = (
        4 * root,
        root + 4 * tau / n,
        (half * 2 * tau / n).sqrt() + (1 + half).sqrt() * tau / (3 * n),
    )
    every = (*every, (y / n).sqrt() + ball(2).sqrt() * y / (3 * n))
    return _binomial(
        int(float(n)), w, every[int(float(formula))] / ball(2).sqrt()
    ), 2 * (-tau).exp()


def _orthogonal_atoms_tail(value: Ball, p: Ball, formula: Ball) -> Ball:
    """Return P(chi2_p > value), or of chi2_p - 1 for all bounds but that of the largest stretch."""
    is_stretch = FOR_EVERY_D[int(float(formula))] is largest_stretch
    threshold = value if is_stretch else value + 1
    if p == 1:
        return 2 * normal_tail(threshold.sqrt())
    return chi_square_tail(threshold, p)


def _normal(tau: Ball, energy: Ball, d: Ball) -> tuple[Ball, Ball]:
    return 2 * normal_tail((2 * tau).sqrt()), (-tau).exp()


def _laplace(n: Ball, tau: Ball) -> tuple[Ball, Ball]:
    """The mean of n signed exponential variables, B = 1 and theta^2 = 2."""
    n = int(float(n))
    total, half = n * (tau / n + (4 * tau / n).sqrt()), Fraction(1, 2)
    ways = [
        ball(math.comb(2 * n - j - 1, n - 1) * half ** (2 * n - j))
        for j in range(1, n + 1)
    ]
    tails = [
        chi_square_tail(2 * total, 2 * j) if n > 1 else (-total).exp()
        for j in range(1, n + 1)
    ]
    return 2 * sum(way * tail for way, tail in zip(ways, tails, strict=True)), 2 * (
        -tau
    ).exp()


def _cramer(n: Ball, C: Ball) -> tuple[Ball, Ball]:
    """Rank one and tau = n: r = 2 / pi."""
    pi = 4 * ball(1).atan()
    return (-n).exp(), chi_square_tail(n * (1 + C * (1 + (2 / (pi * n)).sqrt())), n)


def _signs(n: Ball, tau: Ball) -> tuple[Ball, Ball]:
    """The mean of n signs, for B = 1 and theta^2 = 1/3."""
    return _binomial(
        int(float(n)), ball(0.5), (2 * tau / n + (2 * tau / (3 * n)).sqrt()) / 2
    ), 2 * (-tau).exp()


no_identity = everywhere("kpotufe2020:no-identity", printed=_no_identity)
prop1_rare = everywhere("kpotufe2020:prop1-rare", corrected=_one_atom_tail)
eq11 = everywhere("kpotufe2020:eq11", printed=_eq11)
lemB_2_rare_printed, lemB_2_rare = everywhere(
    "kpotufe2020:lemB.2-rare", printed=_deviation, corrected=_deviation
)
thmC_1_lower = everywhere("jaxkern:thmC.1-lower", corrected=_cramer)
thmC_2_printed, thmC_2 = everywhere(
    "kpotufe2020:thmC.2", printed=_signs, corrected=_laplace
)
every_d = everywhere("jaxkern:prop1-explicit-rare", corrected=_orthogonal_atoms_tail)
eq9 = everywhere("kpotufe2020:eq9", corrected=_normal)

# Counterexamples.
thm1_proof = partial(
    at_most,
    lambda: (1, 28 * (ball(2) / 6272).sqrt()),
    "K = 1, n = 6272 tau: tr Sigma^3 and Delta",
)
eq10 = partial(
    at_most,
    lambda: (4 + 2 * ball(0.25), 4 + 4 * ball(0.5) ** 8),
    "atoms (+-1, +-1/2), k = 1, f - g = (2, 1)",
)
mixture = partial(
    equal,
    lambda: (Fraction(-1, 3), Fraction(1, 3)),
    "pi_1 = 1/4, mu_1 = 1, so that mu_2 = -1/3",
)
ORTHONORMAL = "two orthonormal atoms, pi_1 = "
eq12 = partial(
    at_most,
    lambda: (2 * ball("0.9") ** 3, ball("0.9") ** 3 + ball("0.1") ** 3),
    ORTHONORMAL + ".9",
)
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


def thm1() -> Enclosed:
    """Refute Theorem 1 for every constant C > 0, by one atom, d = 1 and tau = 9 C^2 + 12.

    P(chi2_1 > x) >= sqrt(2 x / pi) e^(-x/2) / (1 + x) (Mills) exceeds 5 e^-tau, for C <= 1 and for C = 1 / u, u <= 1,
    where u^2 times the difference of logarithms is taken, ln(1 + x) <= ln x + 1 / x and u^2 ln u >= -u / e.
    """

    def small(c: Any) -> Any:
        x = ball(1.5) + 3 * c * (ball(2).sqrt() + (9 * c * c + 12).sqrt())
        return (
            9 * c * c
            + 12
            - x / 2
            + (x / (50 * ball(1).atan())).log() / 2
            - (1 + x).log()
        )

    def large(u: Any) -> Any:
        y = ball(1.5) * u * u + 3 * (
            ball(2).sqrt() * u + (9 + 12 * u * u).sqrt()
        )  # u^2 x
        rest = (50 * ball(1).atan() * y).log() / 2 + u * u / y
        return 9 + 12 * u * u - y / 2 - u * u * rest - u / ball(1).exp()

    parts = together([prove(small, [(0, 1)]), prove(large, [(0, 1)])])
    return Enclosed(
        not parts.holds,
        parts.digits,
        f"5 exp(-tau) is exceeded for every C > 0: {parts.because}",
    )
