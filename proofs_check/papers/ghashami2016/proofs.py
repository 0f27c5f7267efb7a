"""ghashami2016 by enclosures: counterexamples, exact probabilities, and a constant of its theorems."""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction as Q
from functools import partial
from typing import Any

from jaxkern.bounds import streaming
from proofs_check.claim import Enclosed
from proofs_check.engine.decided import bound
from proofs_check.engine.enclosures import (
    Ball,
    at_most,
    ball,
    binomial_tail,
    equal,
)
from proofs_check.papers.ghashami2016 import algorithm1
from proofs_check.papers.ghashami2016.section1_2 import costs
from proofs_check.papers.ghashami2016.section3_1_1 import coins_beyond
from proofs_check.papers.ghashami2016.section3_1_3 import PRINTED_PROJECTION
from proofs_check.papers.shared import everywhere


def copies_tail(m: int, eps: Any) -> Ball:
    """P(|mean of m independent cos U| > eps), which is 1 - (2 / pi) int_0^inf sin(m eps s) J_0(s)^m / s ds.

    Beyond a = 12 / sqrt(m) the integral is at most log(2 / a) e^(-36) + 2 / (m pi^(m / 2)): J_0(s) is at most
    e^(-s^2 / 4) up to 2, by its product over its zeros, and sqrt(2 / (pi s)) in size everywhere.
    """
    from flint import acb, arb

    root = ball(m).sqrt()
    scale = root * ball(eps)

    def density(w: Any, _: Any) -> Any:
        bessel = (-w * w / (4 * m)).hypgeom_0f1(1)
        return (w * scale).sinc() * scale * bessel**m

    rest = (root / 6).log() * ball(-36).exp() + 2 / (m * arb.pi() ** (ball(m) / 2))
    integral = acb.integral(density, 0, 12, rel_tol=1e-9).real
    return 1 - 2 / arb.pi() * (integral + arb(0, rest.upper()))


def _copies_exceed(m: Ball, eps: Ball, delta: Ball) -> tuple[Ball, Ball]:
    return copies_tail(int(float(m)), eps), delta


def slope(theta: Any) -> Any:
    """Return (E exp(theta (1 + cos U)) - 1) / theta, U uniform, for |theta| <= 8.

    E (1 + cos U)^k is binom(2 k, k) / 2^k, at most 2^k. So the terms of the series beyond the 80th, and of its first
    three derivatives over their factorials, add up to less than the sum of k^3 16^k / k!, which is below 1e-15.
    """
    from flint import arb, arb_series

    is_series = isinstance(theta, arb_series)
    if (theta[0] if is_series else theta) < -1:
        # E exp(theta (1 - cos U)) is the same mean; the series alternates.
        return ((2 * theta).exp() * (1 - theta * slope(-theta)) - 1) / theta
    total = ball(0)
    for k in range(80, 0, -1):
        total = total * theta + ball(Q(math.comb(2 * k, k), 2**k * math.factorial(k)))
    rest = arb(0, 1e-15)
    return total + (arb_series([rest] * 4) if is_series else rest)


def _test_time_of_table() -> tuple[Ball, Ball]:
    """Return the test time of SKPCA a feature, d + 1 / eps in Section 2 and d + k in Table 1."""
    n = ball(7373)
    eps = ball(Q(1, 20))
    num_features = n.log() / eps**2
    text, entry = costs(n, ball(21), eps, ball(3))["SKPCA, test"]
    return text / num_features, entry / num_features


def _centred_coins_tail(t: Ball, n: Ball, d: Ball, q: Ball) -> Ball:
    """Return P(|sum of d centred coins| >= t in one of n independent entries)."""
    low, high = coins_beyond(float(d), float(q), float(t))
    coins = int(float(d))
    one_entry = binomial_tail(high, coins, q) + binomial_tail(coins - low, coins, 1 - q)
    return 1 - (1 - one_entry) ** n


def coins_tail(alpha: Ball, r: Ball, step: Ball) -> Ball:
    """Return P(|M - E M| >= alpha) for r fair coins of 0 or `step`.

    What is claimed is for > and not for >=. As `step` is rounded, a tie might be on either side of alpha.
    """
    least = math.ceil(float(r / 2 + alpha / step) - 1e-9)
    return 2 * binomial_tail(least, int(float(r)), Q(1, 2))


rnca_markov_printed, rnca_markov = everywhere(
    "ghashami2016:rnca-markov", printed=_copies_exceed, corrected=_copies_exceed
)
bernstein = everywhere("ghashami2016:bernstein", printed=_centred_coins_tail)
hoeffding_printed, hoeffding = everywhere(
    "ghashami2016:hoeffding", printed=coins_tail, corrected=coins_tail
)
table1 = partial(equal, _test_time_of_table, "test time of SKPCA")
# A = diag(10, 1) = U S V' with U = V = I, B = (1, 1), y = (1, -10): y'A = (10, -10) has y'A B' = 0, and B x = B y.
lem3_2_proof = partial(equal, lambda: (1 - 10, 0), "B x")
# The first row of Z (I - W W') Z^-1 for the same matrices is (1/2, -5).
lem3_3_proof = partial(at_most, lambda: (Q(1, 4) + 25, 1), "|v|^2")


def returned(directions: Iterable[int], size: int) -> set[int]:
    """Return what Algorithm 1 returns, l = `size`, for rows sqrt(2) e_i, i in `directions`: B'B stays diagonal."""
    squares: dict[int, int] = {}
    W = set[int]()
    filled = 0
    for i in directions:
        squares[i] = squares.get(i, 0) + 2
        filled += 1
        if filled == size:
            W = set(squares)
            delta = sorted([*squares.values(), *[0] * size])[-(size // 2)]
            squares = {j: s - delta for j, s in squares.items() if s > delta}
            filled = len(squares)
    return W


def _lost(directions: Iterable[int]) -> Enclosed:
    """Decide Lemma 3.3 as printed for l = 8 and points, chosen last, all of whose cosines are 1 or -1."""
    counts = Counter(directions)
    n = counts.total()
    W = returned(directions, 8)
    lost = 2 * max(count for i, count in counts.items() if i not in W)
    right = partial(bound, PRINTED_PROJECTION, num_points=n, sketch_size=8)
    return at_most(lambda: (lost, right().value), f"l=8, n={n}")


def _best_rank() -> tuple[Ball, Ball]:
    """Return both sides of Lemma 3.5 as printed for G = diag(1, .81), G' = diag(.9, .91) and k = 1.

    |G - G'_1|_F^2 = 1 + (.81 - .91)^2, |G - G_1|_F = .81, and |G - G'|_2 = .1.
    """
    exact = {"tail": Q(81, 100), "spectral": Q(1, 10), "rank": 1}
    right = bound(streaming.best_rank, **exact, as_printed=True)
    return ball(Q(101, 100)).sqrt(), right.value


# Every shrink loses all of a batch, and W spans the last l rows.
lem3_3 = partial(_lost, algorithm1.doubled_then_elsewhere(8, 99).tolist())
lem3_3_literal = partial(_lost, algorithm1.then_one_direction(8, 7).tolist())
lem3_5 = partial(at_most, _best_rank)
# G = diag(1, 1/2), G - G' = .1 off the diagonal: v = (1, 1) and (1, -1) over sqrt(2), v'G v = 3/4, u_2'G u_2 = 1/2.
lem3_5_proof = partial(
    at_most, lambda: (Q(3, 4) ** 2, Q(1, 2) ** 2), "in either order of the v"
)
