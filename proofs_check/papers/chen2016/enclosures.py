"""chen2016 by enclosures: counterexamples, probabilities, and inequalities over their whole range.

Formulas are those of the paper or of `docs/theory/chen2016.md`, in ball arithmetic, and call nothing of the library.
"""

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

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
from proofs_check.papers.shared import everywhere

Sides = Callable[..., tuple[Ball, Any]]
WIDEST = 20
"""No frequency of a sample is larger, but for a probability below 1e-80."""


def _mean(r: Any) -> Ball:
    """E X for X = 1 - cos(r w), w standard normal."""
    return 1 - (-(ball(r) * r) / 2).exp()


def _moments(s: Ball, r: Any, most: int) -> list[Ball]:
    """E X^j exp(s X), j <= most: exp(-s cos) is the sum of (-1)^k I_k(s) e^(ik.), and E e^(ikrw) = e^(-k^2 r^2 / 2)."""
    last = 3 * int(float(abs(s)) + 1) + 40
    bessel = [(-1) ** k * s.bessel_i(k) for k in range(last)]
    # |I_k(s)| <= |s / 2|^k e^|s| / k!, of which each is less than half of the one before.
    rest = 4 * (abs(s) / 2) ** last * abs(s).exp() / ball(last).gamma()
    means = [(-(ball(r) * r) * k * k / 2).exp() for k in range(last + most)]
    found = []
    for j in range(
        most + 1
    ):  # E cos(r w)^j exp(-s cos(r w)), with cos^j a sum of waves
        waves = [(math.comb(j, i), 2 * i - j) for i in range(j + 1)]
        weights = [
            sum((c * means[abs(k + i)] for c, i in waves), start=ball(0))
            for k in range(last)
        ]
        found.append(
            (
                2
                * sum(
                    map(operator.mul, bessel[1:], weights[1:]),
                    start=bessel[0] * weights[0] / 2,
                )
            )
            / 2**j
        )
    signed = [
        [(-1) ** i * math.comb(j, i) * found[i] for i in range(j + 1)]
        for j in range(most + 1)
    ]
    return [
        s.exp() * (sum(x, start=ball(0)) + 2**j * rest.union(-rest))
        for j, x in enumerate(signed)
    ]


def _outside(t: Ball, low: Ball, high: Ball) -> Ball:
    """P(chi2_t / t outside [low, high])."""
    return (0 if low <= 0 else chi_square_below(t * low, t)) + chi_square_tail(
        t * high, t
    )


def _chernoff(t: Ball, *levels: Ball) -> Ball:
    return sum(((-t * (x - 1 - x.log()) / 2).exp() for x in levels), start=ball(0))


def _near(r: Ball, t: Ball, low: Ball, high: Ball) -> Ball:
    """P(Z outside [low, high]), Z = Dhat^2 / D^2, by (4): S2 (1 - (rW)^2 / 12) <= Z <= S2 / (1 - r^2 / 4), w_i <= W."""
    up, down, wide = (
        1 - r * r / 4,
        1 - r * r * WIDEST**2 / 12,
        2 * t * normal_tail(WIDEST),
    )
    below, above = (
        _outside(t, low * x, high * y) for x, y in ((up, 1 / down), (1 / down, up))
    )
    return (below - wide).union(above + wide)


def _tilted(r: Ball, t: Ball, level: Ball) -> Ball:
    """P(Z >= level), or P(Z <= level) for level < 1: at most Chernoff's bound, at any slope s, times what is in excess.

    That is E exp(-b (V - o)) 1{V >= o} with V of mean 0 and variance 1 under the tilted law, at most 1 / (b sqrt(2 pi))
    and twice the .4748 E|v|^3 / sqrt(t) of Berry and Esseen (Shevtsova's constant).
    """
    mu, w = _mean(r), np.linspace(-8, 8, 401)
    s = (float(level) - 1) * np.geomspace(0.2, 20, 80)[:, None] / float(mu)
    tilts = np.exp(
        np.minimum(s * (1 - np.cos(float(r) * w) - float(level * mu)), 600) - w**2 / 2
    )
    best = ball(float(s[np.argmin(tilts.sum(1)), 0]))
    whole, mean, second, third, fourth = _moments(best, r, 4)
    mean, second, third, fourth = (x / whole for x in (mean, second, third, fourth))
    variance = second - mean * mean
    kurtosis = (
        fourth - 4 * mean * third + 6 * mean * mean * second - 3 * mean**4
    ) / variance**2
    normal = 1 / (abs(best) * (8 * ball(1).atan() * t * variance).sqrt())
    excess = ball(1).min(normal + 2 * ball("0.4748") * (kurtosis / t).sqrt())
    return (t * (whole.log() - best * level * mu)).exp() * excess


def _pair(r: Ball, t: Ball, low: Ball, high: Ball) -> Ball:
    """P(Z outside [low, high]), to some digits at tiny distances."""
    if r < 0.01:
        return _near(r, t, low, high)
    return sum(
        (_tilted(r, t, x) for x in (low, high) if not (x <= 0 or x * _mean(r) >= 2)),
        start=ball(0),
    )


def _relative(r: Ball, t: Ball, eps: Ball) -> Ball:
    return _pair(r, t, (1 - eps) * (1 - eps), (1 + eps) * (1 + eps))


def _value(r: Ball, t: Ball, eps: Ball) -> Ball:
    """P(|Khat - K| > eps), where K - Khat = (Z - 1) E X."""
    return _pair(r, t, 1 - eps / _mean(r), 1 + eps / _mean(r))


def _some(t: Ball, p: Ball) -> Ball:
    """The probability of at least one of t independent events of probability p."""
    return -((t * (-p).log1p()).expm1())


def _stop_loss(t: Ball, eps: Ball) -> Ball:
    u, v = (1 + eps) * (1 + eps), (1 - eps) * (1 - eps)
    c, e = (u - 2 * u / (t * (u - 1))).max(ball(0)), v + 2 * v / (t * (1 - v))
    above = chi_square_tail(t * c, t + 2) - c * chi_square_tail(t * c, t)
    return above / (u - c) + (
        e * chi_square_below(t * e, t) - chi_square_below(t * e, t + 2)
    ) / (e - v)


def _chi(right: Callable[[Ball, Ball], Ball]) -> Sides:
    """P(chi2_t / t outside [1 - eps, 1 + eps])."""
    return lambda t, eps, **_: (_outside(t, 1 - eps, 1 + eps), right(t, eps))


def _eq5(t: Ball, eps: Ball, p: Ball, q: Ball) -> tuple[Ball, Ball]:
    return _outside(t, 1 - eps, 1 + eps), 2 * (
        -t * (eps * eps / (2 * p)).min(eps / (2 * q))
    ).exp()


def _massart(t: Ball, x: Ball) -> tuple[Ball, Ball]:
    root = 2 * (x / t).sqrt()
    return _outside(t, 1 - root, 1 + root + 2 * x / t), 2 * (-x).exp()


def _thm3_1(t: Ball, eps: Ball, n: Ball) -> tuple[Ball, Any]:
    p = _outside(t, (1 - eps) * (1 - eps), (1 + eps) * (1 + eps))
    return (n / 2 * (-p).log1p()).exp() if n.is_finite() else p, 0.5


def _lem4_2_proof(t: Ball, eps: Ball, r: Ball) -> tuple[Ball, Ball]:
    share = _mean(r) / (r * r)
    return _near(r, t, 1 - eps, 1 + eps), 2 * (
        -t * (eps * eps * share * share).min(eps * share / 4)
    ).exp()


def _truncated(limit: Callable[[Ball, Ball], Ball]) -> Sides:
    """P(max w_i^2 > limit) <= delta."""
    return lambda t, delta: (_some(t, 2 * normal_tail(limit(t, delta).sqrt())), delta)


def _energies(limit: Callable[..., Ball]) -> Sides:
    """P(max |w_i| > limit) <= delta, in d dimensions."""
    return lambda delta, **n: (
        _some(n["t"], chi_square_tail(limit(delta=delta, **n) ** 2, n["d"])),
        delta,
    )


def _pairs(
    outside: Callable[..., Ball], right: Callable[[Ball, Ball, Ball], Any]
) -> Sides:
    return lambda r, t, eps: (outside(r, t, eps), right(r, t, eps))


def _rate(rate: Callable[[Ball], Any]) -> Callable[[Ball, Ball, Ball], Ball]:
    """2 exp(-t eps^2 rate(r))."""
    return lambda r, t, eps: 2 * (-t * eps * eps * rate(r)).exp()


def _additive(t: Ball, eps: Ball, r: Any = None) -> tuple[Ball, Ball]:
    """P(|Khat - K| > eps) of a Gaussian pair, or, without r, where each cosine is 1 or -1 with equal chances."""
    if r is None:
        heads = int((t * (1 + eps) / 2 - ball("1e-6")).ceil().unique_fmpz())
        return 2 * binomial_tail(heads, int(float(t)), 0.5), 2 * (
            -t * eps * eps / 2
        ).exp()
    return _value(r, t, eps), 2 * (-t * eps * eps / 2).exp()


def _vanishing(right: Callable[[Ball, Ball], Ball]) -> Sides:
    """P(|Dhat / D - 1| > eps) in the limit of small distances."""
    return lambda t, eps: (_outside(t, (1 - eps) ** 2, (1 + eps) ** 2), right(t, eps))


def _inverse(r: Ball, t: Ball, eps: Ball) -> Ball:
    return _pair(r, t, (1 + eps) ** -2, (1 - eps) ** -2)


# Exact probabilities, at all settings of the check.
of_pair = partial(everywhere, above=True)
cor2_2_printed, cor2_2 = of_pair(
    "chen2016:cor2.2",
    printed=_pairs(_value, _rate(lambda r: ball(1) / 8)),
    corrected=_additive,
)
cor2_2_rare_printed, cor2_2_rare = of_pair(
    "chen2016:cor2.2-rare",
    printed=_pairs(_value, _rate(lambda r: ball(1) / 8)),
    corrected=_additive,
)
lem2_2_printed, lem2_2 = of_pair(
    "chen2016:lem2.2",
    printed=_pairs(_inverse, _rate(lambda r: ball(1) / 128)),
    corrected=_pairs(_relative, _rate(lambda r: _mean(1) ** 2 / 2)),
)
CHI: dict[str, Any] = {
    "printed": _chi(lambda t, e: 2 * (-t * e * e / 8).exp()),
    "corrected": _chi(lambda t, e: _chernoff(t, 1 + e, 1 - e)),
}
lem3_2_printed, lem3_2 = everywhere("chen2016:lem3.2", above=False, **CHI)
lem3_2_rare_printed, lem3_2_rare = everywhere(
    "chen2016:lem3.2-rare", above=False, **CHI
)
lem3_2_proof = everywhere("chen2016:lem3.2-proof", printed=_massart)
lem3_3_proof_printed, lem3_3_proof = everywhere(
    "chen2016:lem3.3-proof",
    printed=_truncated(lambda t, delta: -delta.log()),
    corrected=_truncated(lambda t, delta: 2 * (2 * t / delta).log()),
)
thm3_1 = everywhere("chen2016:thm3.1", corrected=_thm3_1)
eq5_printed, eq5 = everywhere("chen2016:eq5", printed=_eq5, corrected=_eq5)
lem4_2_printed, lem4_2 = of_pair(
    "chen2016:lem4.2",
    printed=_pairs(_relative, _rate(lambda r: (2 * _mean(r) / r / r) ** 2 / 6)),
    corrected=_pairs(
        _relative, lambda r, t, eps: _chernoff(t, (1 + eps) ** 2, (1 - eps) ** 2)
    ),
)
lem4_2_rare_printed, lem4_2_rare = everywhere(
    "chen2016:lem4.2-rare",
    printed=_vanishing(
        lambda t, eps: (
            2 * (-t * (eps * 2 * _mean(1e-4) / ball(1e-4) ** 2) ** 2 / 6).exp()
        )
    ),
    corrected=_vanishing(lambda t, eps: _chernoff(t, (1 + eps) ** 2, (1 - eps) ** 2)),
)
lem4_2_proof_printed, lem4_2_proof = everywhere(
    "chen2016:lem4.2-proof",
    printed=_lem4_2_proof,
    corrected=lambda t, eps, r: (
        _near(r, t, 1 - eps, 1 + eps),
        _chernoff(t, 1 + eps, 1 - eps),
    ),
)
pair = of_pair(
    "jaxkern:relative-distances-pair",
    corrected=_pairs(_relative, lambda r, t, eps: _stop_loss(t, eps)),
)
pair_rare = everywhere(
    "jaxkern:relative-distances-rare", corrected=_vanishing(_stop_loss)
)
given_pair = of_pair(
    "jaxkern:relative-distances-given-pair",
    corrected=_pairs(_relative, lambda r, t, eps: None),
)
values_given = of_pair(
    "jaxkern:kernel-values-given", corrected=_pairs(_value, lambda r, t, eps: None)
)
cor5_1_proof_printed, cor5_1_proof = everywhere(
    "chen2016:cor5.1-proof",
    printed=_energies(lambda n, **_: (1 + ball(2).sqrt()) * n.log().sqrt()),
    corrected=_energies(
        lambda d, t, delta, **_: d.sqrt() + (2 * (t / delta).log()).sqrt()
    ),
)


def _log_mgf(y: Ball, r: Ball) -> Ball:
    """ln E exp(s (X - E X)) at s r^2 = y."""
    s = y / (r * r)
    return _moments(s, r, 0)[0].log() - s * _mean(r)


# Counterexamples: each meets every hypothesis, as its note says.
sec1_1 = partial(
    equal,
    lambda: ((-ball(0.5)).exp() / 2, (-ball(0.5)).exp()),
    "E <phi(x), phi(y)> and K at |x - y| = sigma",
)
sec3_taylor = partial(
    at_most, lambda: (1 - ball(0.25), 2 - 2 * ball(0.5).exp()), "|Delta| = 1"
)
sec3_expansions = partial(
    equal,
    lambda: (
        (1 - ball(1).cos()) / (1 - (-ball(0.5)).exp()),
        (1 - ball(1).cos()) / (1 - ball(0.5).exp()),
    ),
    "t = w = |Delta| = 1",
)
lem3_3_display = partial(
    at_most,  # r^2 w^4 / 12 = (w r)^4 / (12 r^2) with L = ln 10, (w r)^2 = eps / L and r^2 = eps / (4 L^2)
    lambda: (
        (ball("0.1") / ball(10).log()) ** 2
        / (12 * ball("0.1") / (4 * ball(10).log() ** 2)),
        ball("0.1") / 12,
    ),
    "eps = delta = .1, |Delta| half of what it may be, all |w_i| |Delta| at their limit",
)
sec3_1_norms = partial(
    equal, lambda: (ball("0.1"), ball("0.1").sqrt()), "t = w = |x - y| = 1, lambda = .1"
)
lem4_1 = partial(
    at_most,
    lambda: (_log_mgf(ball("0.499"), ball("0.3")), ball("0.499") ** 2 / 4),
    "|Delta| = .3, s r^2 = .499",
)
lem4_1_taylor = partial(at_most, lambda: (ball(1).exp(), Fraction(5, 2)), "x = -1")
lem4_1_proof = partial(
    at_most,
    lambda: (
        _log_mgf(ball(0.25), ball(0.5)),
        (ball(0.5) ** 2 / 4 - 1) / 8 - (1 + ball(0.25)).log() / 2,
    ),
    "|Delta| = .5, s |Delta|^2 = 1/4",
)
lem4_2_mean = partial(
    equal,
    lambda: (_moments(ball(0), 1, 1)[1], 2 - 2 * (-ball(0.5)).exp()),
    "|Delta| = 1",
)
lem5_1 = partial(
    at_most, lambda: (2 * ball("0.1").sin(), ball("0.1")), "t = d = w = 1, Delta = .1"
)
lem5_1_proof = partial(
    equal,
    lambda: (2 * ball(2).sqrt() * ball("0.3").sin(), 0),
    "w = (1, -1), Delta = (.4, .1)",
)


# Inequalities over their whole range.
def sec3_taylor_corrected() -> Enclosed:
    """0 <= x - (2 - 2 e^(-x/2)) <= x^2 / 4 for x = |Delta|^2 <= 4; beyond, D^2 <= 2 < x and x - x^2 / 4 < 0."""
    upper = prove(lambda x: x - 2 + 2 * (-x / 2).exp(), [(0, 4)], zeros={0: (0, 2)})
    lower = prove(
        lambda x: x * x / 4 - x + 2 - 2 * (-x / 2).exp(), [(0, 4)], zeros={0: (0, 3)}
    )
    return together([upper, lower])


def eq2_printed() -> Enclosed:
    """D^2 >= .86^2 x for x = |Delta|^2 <= 1, and the right side of (2)."""
    lower = prove(
        lambda x: 2 - 2 * (-x / 2).exp() - ball("0.7396") * x,
        [(0, 1)],
        zeros={0: (0, 1)},
    )
    return together([lower, sec3_taylor_corrected()])


def eq2() -> Enclosed:
    """D^2 >= D(1)^2 x for x <= 1, where both sides agree at 0 and 1."""

    def excess(x: Any) -> Any:
        return 2 - 2 * (-x / 2).exp() - (2 - 2 * (-ball(0.5)).exp()) * x

    halves = (
        prove(excess, [(0, ball(0.5))], zeros={0: (0, 1)}),
        prove(excess, [(ball(0.5), 1)], zeros={0: (1, 1)}),
    )
    return together([*halves, sec3_taylor_corrected()])


def _cosine() -> list[Enclosed]:
    """0 <= z^2 - (2 - 2 cos z) <= z^4 / 12 for |z| <= 3.5; beyond, z^2 > 4, and z^2 - z^4 / 12 < 0."""
    upper = prove(lambda z: z * z - 2 + 2 * z.cos(), [(0, 3.5)], zeros={0: (0, 4)})
    lower = prove(
        lambda z: 2 - 2 * z.cos() - z * z + z * z * z * z / 12,
        [(0, 3.5)],
        zeros={0: (0, 6)},
    )
    return [upper, lower]


def eq4() -> Enclosed:
    """(4), summand by summand at z = w_i |Delta|, with the bounds of D^2 for every length below 2.

    The proof of Lemma 4.1: X <= (w r)^2 / 2, so that E e^(s X) <= (1 - s r^2)^(-1/2), and E X >= r^2 / 2 - r^4 / 8.
    """
    return together([*_cosine(), sec3_taylor_corrected()])


def lem4_1_taylor_corrected() -> Enclosed:
    """For x >= 2, 1 - x + x^2 / 2 >= 1."""
    exponential = prove(
        lambda x: 1 - x + x * x / 2 - (-x).exp(), [(0, 2)], zeros={0: (0, 3)}
    )
    logarithm = prove(
        lambda x: (1 + x).log() - x + x * x / 2, [(0, ball(0.5))], zeros={0: (0, 3)}
    )
    return together([exponential, logarithm, *_cosine()])


def lem2_2_proof() -> Enclosed:
    """|D / Dhat - 1| <= eps where Dhat^2 = S +- eps / 2, for every S = D^2 in [.786, 2] and 0 < eps <= .1."""
    box = [(0, ball("0.1")), (ball("0.786"), 2)]
    far = prove(
        lambda e, S: (1 + e) * (1 + e) * (S - e / 2) - S, box, zeros={0: (0, 1)}
    )
    near = prove(
        lambda e, S: S - (1 - e) * (1 - e) * (S + e / 2), box, zeros={0: (0, 1)}
    )
    return together([far, near])


def sec1_1_variance() -> Enclosed:
    """(1 - k)^2 <= 1 - k + k^2 / 2 for k = K^2: m times the variances of paired and of shifted features."""
    return prove(
        lambda k: 1 - k + k * k / 2 - (1 - k) * (1 - k), [(0, 1)], zeros={0: (0, 1)}
    )


def lem5_1_corrected() -> Enclosed:
    """|sin z| <= |z|, and so |sum sin <w_i, Delta> w_i| <= sum |w_i|^2 |Delta|; beyond 1 since |sin z| <= 1."""
    return prove(lambda z: z - z.sin(), [(0, 1)], zeros={0: (0, 3)})
