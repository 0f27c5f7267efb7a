"""amini2021 by enclosures, written out anew: counterexamples, probabilities, and inequalities over whole ranges."""

from collections.abc import Callable
from fractions import Fraction as Q
from functools import cache, partial
from typing import Any

import numpy as np

from proofs_check.claim import Enclosed
from proofs_check.engine import enclosures
from proofs_check.engine.enclosures import (
    Ball,
    at_most,
    ball,
    binomial_tail,
    each,
    equal,
    normal_tail,
    prove,
)
from proofs_check.papers.shared import everywhere

HALF = Q(1, 2)
_exp, _log, _root = (
    (lambda x: ball(x).exp()),
    (lambda x: ball(x).log()),
    (lambda x: ball(x).sqrt()),
)
# Counterexamples: (left, right) of what is claimed to be at most, or equal.

# W uniform within e = 1/10 of -a and of a, omega = 4 e: the slope is 2 (a - e) / omega over 1/50. No other map is
# better: the image of the line under a Lipschitz map is an interval.
def2b = partial(
    at_most,
    lambda: (250 * (_root(1 - Q(1, 300)) - ball(Q(1, 10))), 1),
    "slope over omega",
)
ATOMS = np.array([-172, -142, -115, -90, -62, 62, 90, 115, 142, 172])  # hundredths
MASSES = np.array([10, 15, 22, 25, 28, 28, 25, 22, 15, 10])  # of 200


@cache
def property_33() -> Enclosed:
    """P(A) <= exp(-(E d(W, A))^2), which is (33) with c = 1, for all 1023 sets A of the law on ten points."""
    sets = (np.arange(1, 1024)[:, None] >> np.arange(10)) & 1
    away = (
        np.min(
            np.where(sets[:, None] == 1, np.abs(ATOMS[:, None] - ATOMS), 1000), axis=2
        )
        @ MASSES
    )
    cases = {(int(p), int(far)) for p, far in zip(sets @ MASSES, away, strict=True)}
    return each(lambda p, far: (Q(p, 200), _exp(-(Q(far, 20_000) ** 2))), *cases)


def _one_point(power: int, factor: int) -> Enclosed:
    """Decide factor E |W|^power <= factor for that law, with c = L = omega = Sigma = n = 1."""
    if not property_33().holds:
        raise ArithmeticError("the law on ten points has not the property (33)")
    moment = Q(int(MASSES @ np.abs(ATOMS) ** power), 200 * 100**power)
    return at_most(
        lambda: (factor * moment, factor), f"{factor} E |W|^{power}; all sets have (33)"
    )


eq6 = lem2_diagonal = partial(_one_point, 2, 4)  # K(X, X) = 2 W
prop4 = partial(_one_point, 1, 2)


def _chi(d: int) -> Ball:
    """E |w| for a standard normal w in R^d."""
    return _root(2) * (ball(Q(d + 1, 2)).lgamma() - ball(Q(d, 2)).lgamma()).exp()


# n = 2, N(0, I / d), d = 10^6, f(r) = r: half of E (|X - Y| - 1)^2 = 3 - 2 E |X - Y|, and 100 (1 / d + 100 / d).
eq7 = partial(
    at_most, lambda: ((3 - 2 * _root(2) * _chi(10**6) / 1000) / 2, Q(101, 10**4))
)
ex1_lipschitz_printed = partial(
    at_most, lambda: (_exp(-HALF), _root(2) / _exp(1)), "the slope at tau, times tau"
)
eq9 = partial(equal, lambda: (1, 1 / _root(3)), "the diagonal at d = sigma = tau = 1")
# tau = 2: f_(s tau)(2) >= f_2(2) = exp(-1/2), as s >= 1, and f_1(2) = exp(-2).
ex1_limit_printed = partial(
    at_most, lambda: (_exp(-HALF) - _exp(-2), 0), "|f_(s tau) - f_1| at 2, for every d"
)
# M = (1, 0), W = (0, 1), s^2 = 1/100: K - E K = [[-s^2, 1], [1, 0]]; 2 |M'W| = 2, to within s^2 |W'W - I| = s^2.
sec2_2_limit = partial(
    at_most, lambda: (2 - (ball(Q(1, 100)) + _root(Q(40_001, 10_000))) / 2, Q(1, 100))
)
# Rank one, n = 1000, l^2 = 2 n: P(|y| + |y_1| < l) >= P(|y_1| < 4) P(chi^2_999 < l^2 - 8 l).
sec2_2_lower_printed = partial(
    at_most,
    lambda: (
        (1 - 2 * normal_tail(4))
        * enclosures.chi_square_below(2000 - 8 * _root(2000), 999),
        HALF,
    ),
)


def _over_entries(q: Ball) -> Ball:
    """vbar^2 / gamma^2 for two clusters of two copies, 2 s tau apart: E K is 1 on its diagonal, q for two copies."""
    return ((1 - q) / (1 + q - 2 * q * _exp(-2))) ** 2 / 2


# q = exp(-sigma^2 / tau^2) as d grows: sigma = 2 tau and sigma = tau. And s^-50 with sigma = 1, tau = 2.
ex3_noise = partial(
    at_most, lambda: (_over_entries(_exp(-4)) - _over_entries(_exp(-1)), 0)
)
sec3_4 = partial(at_most, lambda: (_over_entries(1 / ball(Q(101, 100)) ** 25), 0))


def _angles() -> Ball:
    """f_tau(|u - v|) at |u| = |v| = 5, tau^2 = 13/4: how much it differs between the cosines .9 and .01."""
    return _exp(Q(-10, 13)) - _exp(Q(-99, 13))


# The mean kernel is within sigma^2 / d tau^2 of that (b3), sigma = 3/2: d = 10^6, and half of what it is at d = 10.
ex4_alpha_printed = partial(
    at_most,
    lambda: (
        _angles() - 2 * ball(Q(9, 13 * 10**6)),
        (_angles() + 2 * ball(Q(9, 130))) / 2,
    ),
)


def _psi(u: Q, d: int) -> Ball:
    return ball(u * u / 4).hypgeom_0f1(ball(Q(d, 2)))


def _spread(r: int) -> Ball:
    """(v*_kk)^2 over s^-100 for d = 50, sigma^2 = 9/4 and tau^2 = 13/4."""
    x = r**2 / (Q(13, 4) + Q(9, 100))
    return _exp(-2 * x) * (_psi(2 * x, 50) - _psi(x, 50) ** 2)


# d = 3, where a is uniform on [-1, 1] and psi(u) = sinh(u) / u, at x = 1: the variance of exp(a) ends in psi(1)^2.
ex5_variance = partial(
    equal,
    lambda: (
        ball(2).sinh() / 2 - ball(1).sinh(),
        ball(2).sinh() / 2 - ball(1).sinh() ** 2,
    ),
)
psi_printed = partial(
    at_most,
    lambda: (_psi(Q(5), 10**4).log() * 1600, Q(3, 2)),
    "over u^2 / 4 d at u=5, d=10000",
)
# |d (1 - psi(u) / psi(2 u)) / u^2 - 3/4| and exp(2 u^2 / d) - 1 at u = 1/2, d = 1000.
ex5_limit_printed = partial(
    at_most,
    lambda: (
        abs(4000 * (1 - _psi(HALF, 1000) / _psi(Q(1), 1000)) - 0.75),
        ball(Q(1, 2000)).expm1(),
    ),
)
ex5_closest_printed = partial(
    at_most, lambda: (_spread(2), _spread(1)), "radii 2 and 1, d = 50"
)
# L = sigma = d = t = vbar^2 = 1, n = 4: 2 (omega + b), n^2 omega = 4 (sqrt(2) n + sqrt(2 n) t)^2, and gamma^2 F / 8 R.
eq40 = partial(
    at_most,
    lambda: (
        2 * (4 * (4 * _root(2) + _root(8)) ** 2 / 16 + 1),
        2 * (4 * Q(3, 2) ** 2 + 1),
    ),
)
# 1{y = z}, two points that are 0 or 1 equally often: E Psi_kk = (1 + 1/2) / 2, and Psi*_kk.
prop2_bias = partial(equal, lambda: (Q(3, 4), HALF))
# A = 1 and X normal: log E exp(s X^2) at s = 1 / (4 C1), and s^2 C1.
thm6_mgf_printed = partial(
    each,
    lambda c: (-(1 - ball(Q(1, 2 * c))).log() / 2, Q(1, 16 * c)),
    (1,),
    (100,),
    (10_000,),
)
# alpha = .3, |u| = 1, |v| = 5: (1 - 1.3) u_1 and -alpha v_1, u_1 = sqrt(.65).
b1 = partial(equal, lambda: (-3 * _root(Q(13, 20)) / 10, -15 * _root(Q(13, 20)) / 10))


# Probabilities, and what they are claimed to be at most, at the settings of the checks.


def _split(multiple: int, m: Ball, s: Ball) -> tuple[Any, Any]:
    """w in {-m, 0, m} with variance one, A = 1: P(|Y + 2 T| >= multiple s), and P(|Y| >= s) + P(|T| >= s)."""
    p = 1 / (2 * m * m)
    law = [
        (w * w - 1, 0.9 * s / m * w, chance)
        for w, chance in ((-m, p), (0, 1 - 2 * p), (m, p))
    ]
    right = sum(chance * ((abs(y) >= s) + (abs(t) >= s)) for y, t, chance in law)
    return sum(chance * (abs(y + 2 * t) >= multiple * s) for y, t, chance in law), right


def _smirnov(m: int, log: Ball) -> tuple[Ball, Ball]:
    """2 P(D+ > x) at x^2 = (ln 2 + log) / 2 m, by the formula of Birnbaum and Tingey."""
    x, total, count = ((_log(2) + log) / (2 * m)).sqrt(), ball(0), ball(1)
    for j in range(int((m * (1 - x)).floor().unique_fmpz()) + 1):
        at = x + ball(j) / m
        total, count = (
            total + count * at ** (j - 1) * (1 - at) ** (m - j),
            count * (m - j) / (j + 1),
        )
    return 2 * x * total, (-log).exp()


def _thm5(low: Ball, high: Ball, t: Ball) -> tuple[Ball, Ball]:
    """A standard normal variable between low and high."""
    beyond, last = (
        (normal_tail(high), (-high * high / 2).exp())
        if high.is_finite()
        else (ball(0), ball(0))
    )
    mass = normal_tail(low) - beyond
    mean = ((-low * low / 2).exp() - last) / (8 * ball(1).atan()).sqrt() / mass
    return ((normal_tail(mean + t) - beyond) / mass).nonnegative_part(), (
        -t * t / 2
    ).exp()


def _lem3(d: int, size: Ball, tau: Ball) -> tuple[Ball, Ball]:
    """|X z|^2, noncentral chi-square, beyond 2 sqrt(v tau) + 2 tau of its mean: a Poisson mixture of chi-squares."""
    rate, mean, far = (
        int(float(size)) ** 2 // 2,
        d + size**2,
        2 * _root((d + 2 * size**2) * tau) + 2 * tau,
    )
    weight, last = _exp(-rate), 3 * rate
    total = (
        enclosures.chi_square_below(2 * rate, 2 * last + 2) if rate else ball(0)
    )  # P(Poisson(rate) > last)
    # P(chi^2_(d + 2 j) > 2 y) grows with j by y^(d / 2 + j) exp(-y) / Gamma(d / 2 + j + 1).
    places = [x / 2 for x in (mean + far, mean - far) if x > 0]
    above = [enclosures.chi_square_tail(2 * y, d) for y in places]
    steps = [
        y ** ball(Q(d, 2)) * (-y).exp() / ball(Q(d, 2) + 1).gamma() for y in places
    ]
    for j in range(last + 1):
        total, weight = (
            total + weight * (above[0] + sum(1 - x for x in above[1:])),
            weight * rate / (j + 1),
        )
        above = [x + step for x, step in zip(above, steps, strict=True)]
        steps = [
            step * y / ball(Q(d, 2) + j + 1)
            for step, y in zip(steps, places, strict=True)
        ]
    return total, 2 * (-tau).exp()


def _lem5(long: Callable[[Ball, Ball], Ball], t: Ball) -> tuple[Ball, Ball]:
    """X + 1 exponential, alpha = 2, v^2 = 8 (ln 2 - 1/2): the exponent t^2 / 2 v^2 up to v^2 / 2, and a long one."""
    v2 = 8 * _log(2) - 4
    exponent = t * t / (2 * v2) if t <= v2 / 2 else long(t, v2)
    return (-1 - t).exp() + (1 - (t - 1).exp() if t < 1 else 0), 2 * (-exponent).exp()


def _above(n: int, p: Any, level: Ball) -> Ball:
    """P(Bin(n, p) > level), and no less where the level is not told from a whole number."""
    return binomial_tail(int(level.lower().floor().unique_fmpz()) + 1, n, p)


def _two_clusters(
    limits: tuple[int, int, int], m: int, t: Ball, p: Ball, q: Ball
) -> tuple[Ball, Ball]:
    """Clusters of m signs, 1 with chances p and q, and the kernel y z: P(outside), and 16 exp(-t^2).

    At most the chance that a mean of signs is farther than 2 h from its own, where all within is inside: block means
    and variances or, where the first limit is above 15, gamma^2 and vbar^2, within limits of t / sqrt(m) + rest / m.
    """
    (first, second, rest), claimed = limits, 16 * (-t * t).exp()
    unit, y, z = t / _root(m) + ball(rest) / m, 2 * p - 1, 2 * q - 1
    for h in (Q(9, 10) ** k for k in range(60)):
        Y, Z = (
            (c - 2 * ball(h)).max(ball(-1)).union((c + 2 * ball(h)).min(ball(1)))
            for c in (y, z)
        )
        means = [(Y - y) * (Y + y), (Y - y) * Z + (Z - z) * y, (Z - z) * (Z + z)]
        spreads = [
            -d * (2 * psi + d)
            for d, psi in zip(means, (y * y, y * z, z * z), strict=True)
        ]
        gaps = [
            (old - y * z, d - means[1])
            for old, d in ((y * y, means[0]), (z * z, means[2]))
        ]
        if first > 15:
            means = [sum(d * (2 * gap + d) for gap, d in gaps).min(ball(0)) / 2]
            spreads = [((spreads[0] + 2 * spreads[1] + spreads[2]) / 4).max(ball(0))]
        tails = sum(
            (_above(m, c, m * (c + ball(h))) for c in (p, 1 - p, q, 1 - q)),
            start=ball(0),
        )
        inside = all(abs(d) <= first * unit for d in means) and all(
            abs(d) <= second * unit for d in spreads
        )
        if inside and tails <= claimed:
            return tails, claimed
    raise ArithmeticError("no rectangle decides")


def _of_signs(over: Callable[[int], Q], n: int, t: Ball) -> tuple[Ball, Ball]:
    """P(|mean of n signs| > t sqrt(over(n)))."""
    return 2 * _above(n, HALF, n * (1 + t * _root(over(n))) / 2), 2 * (-t * t).exp()


def _display(more: int, t: Ball, values: Ball) -> tuple[Ball, Ball]:
    """Two points of equally likely values, h = 1 where they agree and else -1: Psi is 0, or 1; t + more is allowed."""
    both = [
        chance * (off > t + more)
        for chance, off in (
            (1 - 1 / values, 1 - 2 / values),
            (1 / values, 2 - 2 / values),
        )
    ]
    return sum(both), 2 * (-t * t).exp()


def _thm1_33(mean: Callable[[int], Ball]) -> Any:
    """K = x + y, c = 1/2, normal points: |K - E K|_F^2 = 2 n (2 a^2 + q) is at most 4 n chi^2_n."""
    return lambda n, t: (
        enclosures.chi_square_tail((mean(n) / _root(4 * n) + t) ** 2, n),
        (-t * t / 2).exp(),
    )


def _clipped(n: int, p: Any = HALF) -> tuple[Ball, Ball]:
    """P(max(N - p, p) <= n p / 4) for N ~ Bin(n, p), the number of X in {-2, 0, 2} that are not 0."""
    most = int((ball(p) * n / 4 + ball(p)).floor().unique_fmpz())
    return binomial_tail(n - most, n, 1 - p), (-(ball(p) ** 2) * n / 2).exp()


def _at(claim: str, **forms: Any) -> Any:
    return everywhere(
        f"amini2021:{claim}",
        above=claim in ("sec2.2-lower", "thm1-33", "prop2", "eq30"),
        **forms,
    )


# P(|y| + |y_1| < l) <= P(|y| < l), l = sqrt(n - 3/2) - u; and a coordinate, k = 0, or the norm in R^k.
sec2_2_lower = _at(
    "sec2.2-lower",
    corrected=lambda n, u: (
        enclosures.chi_square_below((_root(n - 1.5) - u) ** 2, n),
        (-u * u / 2).exp(),
    ),
)
thm4 = _at(
    "thm4",
    printed=lambda k, t: (
        enclosures.chi_square_tail((_chi(k) + t) ** 2, k) if k else normal_tail(t),
        (-t * t / 2).exp(),
    ),
)
thm5, lem3, eq29 = (
    _at("thm5", corrected=_thm5),
    _at("lem3", corrected=_lem3),
    _at("eq29", corrected=_smirnov),
)
prop1, prop1_any = _at("prop1", printed=_clipped), _at("prop1-any", corrected=_clipped)
_any_n = _thm1_33(lambda n: (4 * (1 + _log(2)) * n * (n + 1)).sqrt())
thm1_33_printed, thm1_33 = _at(
    "thm1-33", printed=_thm1_33(lambda n: _root(8) * n), corrected=_any_n
)
prop2_printed, prop2 = _at(
    "prop2",
    printed=partial(_two_clusters, (3, 9, 0)),
    corrected=partial(_two_clusters, (2, 5, 1)),
)
eq30_printed, eq30 = _at(
    "eq30",
    printed=partial(_two_clusters, (24, 9, 0)),
    corrected=partial(_two_clusters, (16, 5, 1)),
)
_over_8, _over_4, _over_2 = (
    partial(_of_signs, x)
    for x in (lambda n: Q(8, n), lambda n: Q(4, n - 1), lambda n: Q(2, n))
)
u_statistic_printed, u_statistic = _at(
    "u-statistic", printed=_over_8, corrected=_over_4
)
v_statistic_printed, v_statistic = _at(
    "v-statistic", printed=_over_8, corrected=_over_2
)
prop2_display_printed, prop2_display = _at(
    "prop2-display", printed=partial(_display, 0), corrected=partial(_display, 1)
)
thm6_split_printed, thm6_split = _at(
    "thm6-split", printed=partial(_split, 2), corrected=partial(_split, 3)
)
_quarter, _best = (
    partial(_lem5, lambda t, v2: t / 4),
    partial(_lem5, lambda t, v2: t / 2 - v2 / 8),
)
lem5_printed, lem5 = _at("lem5", printed=_quarter, corrected=_best)


def _all(*parts: Any) -> Any:
    return partial(lambda: enclosures.together(part() for part in parts))


# Inequalities over their whole range; more are on the page of the theorems.

# u - 1 - ln u, which falls up to 1 and then grows, u = r^2 / tau^2: the square of the slope over its maximum.
ex1_lipschitz = partial(
    prove, lambda u: u - 1 - u.log(), [(Q(1, 16), 16)], zeros={0: (1, 2)}
)
# ln(1 + y) >= y - y^2 / 2, whose difference grows by y^2 / (1 + y).
_taylor = partial(
    prove, lambda y: (1 + y).log() - y + y * y / 2, [(0, 16)], zeros={0: (0, 3)}
)
# y = 2 sigma^2 / d tau^2 and q = 1 / (1 + y): the largest of e^(-qx) - e^(-x) is (1 - q) q^(q / (1 - q)), and
# q^(1 / (1 - q)) <= 1 / e; for the prefactor y - y^2 / 2 <= ln(1 + y) <= y, times d / 2.
ex1_limit = _all(ex1_lipschitz, _taylor)
# x = u^2 / 2 d: 1 + x <= psi <= e^x, term by term of its series, and ln(1 + x) >= x - x^2 / 2.
psi = _all(_taylor)
# (28), s_i^2 = 1 + y l_i, y = sigma^2 / d tau^2: the derivative in y, e^(-p-q) (w1 (2 p - 1) + w2 (2 q - 1)) / 2 s1 s2,
# is linear in w_i = l_i / s_i^2, w1 + w2 <= 2, and so at most the largest |2 p - 1| e^-p, 1; beyond 16 that falls.
b3 = ex4_alpha = _all(
    partial(prove, lambda p: 1 - (2 * p - 1) * (-p).exp(), [(0, 16)]),
    partial(
        prove, lambda p: 1 + (2 * p - 1) * (-p).exp(), [(0, 16)], zeros={0: (0, 1)}
    ),
)
# Of one eigenvalue, y = lambda beta: -ln(1 - 2 y) / 2 - y <= 2 y^2.
thm6_mgf = partial(
    prove,
    lambda y: 2 * y * y + (1 - 2 * y).log() / 2 + y,
    [(Q(-1, 4), Q(1, 4))],
    zeros={0: (0, 2)},
)
# |B| = 1, z = e cos + f sin at distance r: z'Bz >= 1 - 2 sin^2, sin^2 = s - s^2 / 4 and s = r^2, which grows up to 2.
thm2_net = partial(prove, lambda s: 1 - s / 2, [(0, Q(19, 10))])
_net = partial(
    at_most,
    lambda: (1, 2 * (1 - 2 * (Q(1, 16) - Q(1, 1024)))),
    "a net of (1 + 2 / (1/4))^n points",
)
thm2_net_printed = _all(thm2_net, _net)
