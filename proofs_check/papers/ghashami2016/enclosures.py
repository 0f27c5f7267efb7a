"""ghashami2016 by enclosures, written out anew: counterexamples, probabilities, and constants of its theorems."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction as Q
from functools import partial
from typing import Any

from proofs_check.claim import Enclosed
from proofs_check.engine.enclosures import (
    Ball,
    at_most,
    ball,
    binomial_tail,
    each,
    equal,
)


def copies_tail(m: int, eps: Q) -> tuple[Ball, Q]:
    """P(|mean of m independent cos U| > eps), which is 1 - (2 / pi) int_0^inf sin(m eps s) J_0(s)^m / s ds, and 1/2.

    Beyond a = 12 / sqrt(m) the integral is at most log(2 / a) e^(-36) + 2 / (m pi^(m / 2)): J_0(s) is at most
    e^(-s^2 / 4) up to 2, by its product over its zeros, and sqrt(2 / (pi s)) in size everywhere.
    """
    from flint import acb, arb

    root = ball(m).sqrt()

    def density(w: Any, _: Any) -> Any:
        return (
            (w * root * ball(eps)).sinc()
            * root
            * ball(eps)
            * (-w * w / (4 * m)).hypgeom_0f1(1) ** m
        )

    rest = (root / 6).log() * ball(-36).exp() + 2 / (m * arb.pi() ** (ball(m) / 2))
    return 1 - 2 / arb.pi() * (
        acb.integral(density, 0, 12, rel_tol=1e-9).real + arb(0, rest.upper())
    ), Q(1, 2)


def slope(theta: Any) -> Any:
    """Return (E exp(theta (1 + cos U)) - 1) / theta, U uniform, for |theta| <= 8.

    E (1 + cos U)^k is binom(2 k, k) / 2^k, at most 2^k. So the terms of the series beyond the 80th, and of its first
    three derivatives over their factorials, add up to less than the sum of k^3 16^k / k!, which is below 1e-15.
    """
    from flint import arb, arb_series

    if (
        theta[0] if isinstance(theta, arb_series) else theta
    ) < -1:  # E exp(theta (1 - cos U)) is the same mean
        return ((2 * theta).exp() * (1 - theta * slope(-theta)) - 1) / theta
    total, rest = ball(0), arb(0, 1e-15)
    for k in range(80, 0, -1):
        total = total * theta + ball(Q(math.comb(2 * k, k), 2**k * math.factorial(k)))
    return total + (arb_series([rest] * 4) if isinstance(theta, arb_series) else rest)


# m = C (log n) / eps for n = 10^9 and eps = 1 / (200 C), and m = 3 / eps^2.
few = ((math.ceil(200 * c * c * math.log(10**9)), Q(1, 200 * c)) for c in (1, 10, 100))
rnca_markov_printed = partial(each, copies_tail, *few)
rnca_markov = partial(
    each, copies_tail, *((3 * e * e, Q(1, e)) for e in (1000, 10_000))
)
# d = 21, eps = 1/20 and k = 3, over (log n) / eps^2: d + 1 / eps in Section 2, d + k in Table 1.
table1 = partial(equal, lambda: (21 + 20, 21 + 3), "test time of SKPCA")


def _bernstein(n: int, d: int, q: Q, t: int) -> tuple[Ball, Ball]:
    """P(|sum of d centred coins| >= t in one of n independent places), and 2 n exp(-t^2 / (3 sigma^2 + 2 R t))."""
    one = binomial_tail(math.ceil(d * q + t), d, q) + binomial_tail(
        math.ceil(d * (1 - q) + t), d, 1 - q
    )
    return 1 - (1 - one) ** n, 2 * n * ball(
        -(t**2) / (3 * d * q * (1 - q) + 2 * max(q, 1 - q) * t)
    ).exp()


COINS = (
    (400, Q(1, 2), 40),
    (400, Q(1, 2), 80),
    (1000, Q(1, 1000), 15),
    (1000, Q(1, 100), 30),
)
bernstein = partial(
    each, _bernstein, *((n, *coins) for n in (1, 16) for coins in COINS)
)


def _hoeffding(r: int, step: Q, alpha: Q) -> tuple[Ball, Ball]:
    """P(|M - E M| > alpha) for r fair coins of 0 or `step`, and 2 exp(-2 alpha^2 / (r step^2))."""
    above = math.floor(Q(r, 2) + alpha / step) + 1
    return 2 * binomial_tail(above, r, Q(1, 2)), 2 * ball(
        -2 * alpha**2 / (r * step**2)
    ).exp()


SMALL = (100, Q(1, 50), Q(1, 5)), (100, Q(1, 50), Q(2, 5))
USED = (265, Q(200, 265), Q(10)), (1060, Q(200, 1060), Q(10)), (400, Q(1, 2), Q(60))
hoeffding_printed, hoeffding = (
    partial(each, _hoeffding, *SMALL),
    partial(each, _hoeffding, *SMALL, *USED),
)
# A = diag(10, 1) = U S V' with U = V = I, B = (1, 1), y = (1, -10): y'A = (10, -10) has y'A B' = 0, and B x = B y.
lem3_2_proof = partial(equal, lambda: (1 - 10, 0), "B x")
# The first row of Z (I - W W') Z^-1 for the same matrices is (1/2, -5).
lem3_3_proof = partial(at_most, lambda: (Q(1, 4) + 25, 1), "|v|^2")


def returned(directions: Sequence[int], size: int) -> set[int]:
    """Return what Algorithm 1 returns, l = `size`, for rows sqrt(2) e_i, i in `directions`: B'B stays diagonal."""
    squares: dict[int, int] = {}
    filled, W = 0, set[int]()
    for i in directions:
        squares[i], filled = squares.get(i, 0) + 2, filled + 1
        if filled == size:
            W, delta = (
                set(squares),
                sorted([*squares.values(), *[0] * size])[-(size // 2)],
            )
            squares = {
                j: square - delta for j, square in squares.items() if square > delta
            }
            filled = len(squares)
    return W


def _lost(directions: Sequence[int]) -> Enclosed:
    """Decide |Ghat - Gtilde| <= eps n for l = 8 = 2 / eps and points, chosen last, all of whose cosines are 1 or -1."""
    W, n = returned(directions, 8), len(directions)
    lost = 2 * max(count for i, count in Counter(directions).items() if i not in W)
    return at_most(lambda: (lost, Q(n, 4)), f"l=8, n={n}")


# Every shrink loses all of a batch, and W spans the last l rows; l different rows and then one direction l - 1 times.
lem3_3 = partial(_lost, [*[0, 0, 1, 1, 2, 2, 3, 3] * 99, *range(4, 12)])
lem3_3_literal = partial(_lost, [*range(8), *[8] * 7])
# G = diag(1, .81), G' = diag(.9, .91), k = 1: |G - G'_1|_F^2 = 1 + (.81 - .91)^2, |G - G_1|_F = .81, |G - G'|_2 = .1.
lem3_5 = partial(at_most, lambda: (ball(Q(101, 100)).sqrt(), Q(91, 100)))
# G = diag(1, 1/2), G - G' = .1 off the diagonal: v = (1, 1) and (1, -1) over sqrt(2), v'G v = 3/4, u_2'G u_2 = 1/2.
lem3_5_proof = partial(
    at_most, lambda: (Q(3, 4) ** 2, Q(1, 2) ** 2), "in either order of the v"
)
