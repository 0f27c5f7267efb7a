"""amini2021 by enclosures, written out anew: counterexamples, probabilities, and inequalities over whole ranges."""

import math
from collections.abc import Callable
from fractions import Fraction as Q
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from proofs_check import register
from proofs_check.engine import enclosures
from proofs_check.engine.enclosures import Ball, Enclosed, at_most, ball, binomial_tail, each, equal, normal_tail, prove

HALF = Q(1, 2)
_exp, _log, _root = (lambda x: ball(x).exp()), (lambda x: ball(x).log()), (lambda x: ball(x).sqrt())
# Counterexamples: (left, right) of what is claimed to be at most, or equal.

# W uniform within e = 1/10 of -a and of a, omega = 4 e: the slope is 2 (a - e) / omega over 1/50. No other map is
# better: the image of the line under a Lipschitz map is an interval.
def2b = partial(at_most, lambda: (250 * (_root(1 - Q(1, 300)) - ball(Q(1, 10))), 1), "slope over omega")
ATOMS = np.array([-172, -142, -115, -90, -62, 62, 90, 115, 142, 172])  # hundredths
MASSES = np.array([10, 15, 22, 25, 28, 28, 25, 22, 15, 10])  # of 200


@cache
def property_33() -> Enclosed:
    """P(A) <= exp(-(E d(W, A))^2), which is (33) with c = 1, for all 1023 sets A of the law on ten points."""
    sets = (np.arange(1, 1024)[:, None] >> np.arange(10)) & 1
    away = np.min(np.where(sets[:, None] == 1, np.abs(ATOMS[:, None] - ATOMS), 1000), axis=2) @ MASSES
    cases = {(int(p), int(far)) for p, far in zip(sets @ MASSES, away, strict=True)}
    return each(lambda p, far: (Q(p, 200), _exp(-(Q(far, 20_000) ** 2))), *cases)


def _one_point(power: int, factor: int) -> Enclosed:
    """Decide factor E |W|^power <= factor for that law, with c = L = omega = Sigma = n = 1."""
    if not property_33().holds:
        raise ArithmeticError("the law on ten points has not the property (33)")
    moment = Q(int(MASSES @ np.abs(ATOMS) ** power), 200 * 100**power)
    return at_most(lambda: (factor * moment, factor), f"{factor} E |W|^{power}; all sets have (33)")


eq6 = lem2_diagonal = partial(_one_point, 2, 4)  # K(X, X) = 2 W
prop4 = partial(_one_point, 1, 2)


def _chi(d: int) -> Ball:
    """E |w| for a standard normal w in R^d."""
    return _root(2) * (ball(Q(d + 1, 2)).lgamma() - ball(Q(d, 2)).lgamma()).exp()


# n = 2, N(0, I / d), d = 10^6, f(r) = r: half of E (|X - Y| - 1)^2 = 3 - 2 E |X - Y|, and 100 (1 / d + 100 / d).
eq7 = partial(at_most, lambda: ((3 - 2 * _root(2) * _chi(10**6) / 1000) / 2, Q(101, 10**4)))
ex1_lipschitz_printed = partial(at_most, lambda: (_exp(-HALF), _root(2) / _exp(1)), "the slope at tau, times tau")
eq9 = partial(equal, lambda: (1, 1 / _root(3)), "the diagonal at d = sigma = tau = 1")
# tau = 2: f_(s tau)(2) >= f_2(2) = exp(-1/2), as s >= 1, and f_1(2) = exp(-2).
ex1_limit_printed = partial(at_most, lambda: (_exp(-HALF) - _exp(-2), 0), "|f_(s tau) - f_1| at 2, for every d")
# M = (1, 0), W = (0, 1), s^2 = 1/100: K - E K = [[-s^2, 1], [1, 0]]; 2 |M'W| = 2, to within s^2 |W'W - I| = s^2.
sec2_2_limit = partial(at_most, lambda: (2 - (ball(Q(1, 100)) + _root(Q(40_001, 10_000))) / 2, Q(1, 100)))
# Rank one, n = 1000, l^2 = 2 n: P(|y| + |y_1| < l) >= P(|y_1| < 4) P(chi^2_999 < l^2 - 8 l).
sec2_2_lower_printed = partial(
    at_most, lambda: ((1 - 2 * normal_tail(4)) * enclosures.chi_square_below(2000 - 8 * _root(2000), 999), HALF)
)


def _over_entries(q: Ball) -> Ball:
    """vbar^2 / gamma^2 for two clusters of two copies, 2 tau apart: E K is 1 on its diagonal, q for the two copies."""
    return ((1 - q) / (1 + q - 2 * q * _exp(-2))) ** 2 / 2


# q = exp(-sigma^2 / tau^2) as d grows: sigma = 2 tau and sigma = tau. And s^-50 with sigma = 1, tau = 2.
ex3_noise = partial(at_most, lambda: (_over_entries(_exp(-4)) - _over_entries(_exp(-1)), 0))
sec3_4 = partial(at_most, lambda: (_over_entries(1 / ball(Q(101, 100)) ** 25), 0))


def _angles() -> Ball:
    """f_tau(|u - v|) at |u| = |v| = 5, tau^2 = 13/4: how much it differs between the cosines .9 and .01."""
    return _exp(Q(-10, 13)) - _exp(Q(-99, 13))


# The mean kernel is within sigma^2 / d tau^2 of that (b3), sigma = 3/2: d = 10^6, and half of what it is at d = 10.
ex4_alpha_printed = partial(
    at_most, lambda: (_angles() - 2 * ball(Q(9, 13 * 10**6)), (_angles() + 2 * ball(Q(9, 130))) / 2)
)


def _psi(u: Q, d: int) -> Ball:
    return ball(u * u / 4).hypgeom_0f1(ball(Q(d, 2)))


def _spread(r: int) -> Ball:
    """(v*_kk)^2 over s^-100 for d = 50, sigma^2 = 9/4 and tau^2 = 13/4."""
    x = r**2 / (Q(13, 4) + Q(9, 100))
    return _exp(-2 * x) * (_psi(2 * x, 50) - _psi(x, 50) ** 2)


# d = 3, where a is uniform on [-1, 1] and psi(u) = sinh(u) / u, at x = 1: the variance of exp(a) ends in psi(1)^2.
ex5_variance = partial(equal, lambda: (ball(2).sinh() / 2 - ball(1).sinh(), ball(2).sinh() / 2 - ball(1).sinh() ** 2))
psi_printed = partial(at_most, lambda: (_psi(Q(5), 10**4).log() * 1600, Q(3, 2)), "over u^2 / 4 d at u=5, d=10000")
# |d (1 - psi(u) / psi(2 u)) / u^2 - 3/4| and exp(2 u^2 / d) - 1 at u = 1/2, d = 1000.
ex5_limit_printed = partial(
    at_most, lambda: (abs(4000 * (1 - _psi(HALF, 1000) / _psi(Q(1), 1000)) - 0.75), ball(Q(1, 2000)).expm1())
)
ex5_closest_printed = partial(at_most, lambda: (_spread(2), _spread(1)), "radii 2 and 1, d = 50")
# L = sigma = d = t = vbar^2 = 1, n = 4: 2 (omega + b), n^2 omega = 4 (sqrt(2) n + sqrt(2 n) t)^2, and gamma^2 F / 8 R.
eq40 = partial(at_most, lambda: (2 * (4 * (4 * _root(2) + _root(8)) ** 2 / 16 + 1), 2 * (4 * Q(3, 2) ** 2 + 1)))
# 1{y = z}, two points that are 0 or 1 equally often: E Psi_kk = (1 + 1/2) / 2, and Psi*_kk.
prop2_bias = partial(equal, lambda: (Q(3, 4), HALF))
# A = 1 and X normal: log E exp(s X^2) at s = 1 / (4 C1), and s^2 C1.
thm6_mgf_printed = partial(each, lambda c: (-(1 - ball(Q(1, 2 * c))).log() / 2, Q(1, 16 * c)), (1,), (100,), (10_000,))
# alpha = .3, |u| = 1, |v| = 5: (1 - 1.3) u_1 and -alpha v_1, u_1 = sqrt(.65).
b1 = partial(equal, lambda: (-3 * _root(Q(13, 20)) / 10, -15 * _root(Q(13, 20)) / 10))


# Probabilities, and what they are claimed to be at most.


def _split(multiple: int, m: Q) -> tuple[Q, Q]:
    """w in {-m, 0, m} with variance one, A = 1: P(|Y + 2 T| >= multiple s), and P(|Y| >= s) + P(|T| >= s)."""
    s, p = (m**2 - 1) / Q(9, 10), 1 / (2 * m**2)
    law = [(w**2 - 1, Q(9, 10) * s / m * w, chance) for w, chance in ((-m, p), (0, 1 - 2 * p), (m, p))]
    right = sum(chance * ((abs(y) >= s) + (abs(t) >= s)) for y, t, chance in law)
    return Q(sum(chance * (abs(y + 2 * t) >= multiple * s) for y, t, chance in law)), Q(right)


def _smirnov(m: int, log: int) -> tuple[Ball, Ball]:
    """2 P(D+ > x) at x^2 = (ln 2 + log) / 2 m, by the formula of Birnbaum and Tingey."""
    x, total, count = ((_log(2) + log) / (2 * m)).sqrt(), ball(0), ball(1)
    for j in range(int((m * (1 - x)).floor().unique_fmpz()) + 1):
        at = x + ball(j) / m
        total, count = total + count * at ** (j - 1) * (1 - at) ** (m - j), count * (m - j) / (j + 1)
    return 2 * x * total, _exp(-log)


def _thm5(ends: tuple[int, int], s: Q) -> tuple[Ball, Ball]:
    """A standard normal variable above low and, where high is not 0, below high."""
    low, high = ends
    beyond, last = (normal_tail(high), _exp(-Q(high**2, 2))) if high else (ball(0), ball(0))
    mass = normal_tail(low) - beyond
    mean = (_exp(-Q(low**2, 2)) - last) / (8 * ball(1).atan()).sqrt() / mass
    return ((normal_tail(mean + ball(s)) - beyond) / mass).nonnegative_part(), _exp(-(s**2) / 2)


def _lem3(d: int, size: int, tau: int) -> tuple[Ball, Ball]:
    """|X z|^2, noncentral chi-square, beyond 2 sqrt(v tau) + 2 tau of its mean: a Poisson mixture of chi-squares."""
    rate, mean, far = size**2 // 2, d + size**2, 2 * _root((d + 2 * size**2) * tau) + 2 * tau
    weight, last = _exp(-rate), 3 * rate
    total = enclosures.chi_square_below(2 * rate, 2 * last + 2) if rate else ball(0)  # P(Poisson(rate) > last)
    # P(chi^2_(d + 2 j) > 2 y) grows with j by y^(d / 2 + j) exp(-y) / Gamma(d / 2 + j + 1).
    places = [x / 2 for x in (mean + far, mean - far) if x > 0]
    above = [enclosures.chi_square_tail(2 * y, d) for y in places]
    steps = [y ** ball(Q(d, 2)) * _exp(-y) / ball(Q(d, 2) + 1).gamma() for y in places]
    for j in range(last + 1):
        total, weight = total + weight * (above[0] + sum(1 - x for x in above[1:])), weight * rate / (j + 1)
        above = [x + step for x, step in zip(above, steps, strict=True)]
        steps = [step * y / ball(Q(d, 2) + j + 1) for step, y in zip(steps, places, strict=True)]
    return total, 2 * _exp(-tau)


def _signs(samples: int, over: Callable[[int], Q], n: int, t: int) -> tuple[Ball, Ball]:
    """P(|mean of samples n signs| > t sqrt(over(n)))."""
    most = (samples * n * (1 + t * _root(over(n))) / 2).floor().unique_fmpz()
    return 2 * binomial_tail(int(most) + 1, samples * n, HALF), 2 * _exp(-(t**2))


def _lem5(long: Callable[[Ball, Ball], Ball], t: float) -> tuple[Ball, Ball]:
    """X + 1 exponential, alpha = 2, v^2 = 8 (ln 2 - 1/2): the exponent t^2 / 2 v^2 up to v^2 / 2, and a long one."""
    v2 = 8 * _log(2) - 4
    exponent = ball(t) ** 2 / (2 * v2) if t <= v2 / 2 else long(ball(t), v2)
    return _exp(-1 - t) + (1 - _exp(t - 1) if t < 1 else 0), 2 * (-exponent).exp()


def _clipped(p: Q, n: int) -> tuple[Ball, Ball]:
    """P(max(N - p, p) <= n p / 4) for N ~ Bin(n, p), the number of X in {-2, 0, 2} that are not 0."""
    return binomial_tail(n - math.floor(n * p / 4 + p), n, 1 - p), _exp(-n * p**2 / 2)


def _two_clusters(limits: tuple[int, int, int], m: int, t: float, p: Q, q: Q) -> tuple[Ball, Ball]:
    """m points of {0, 1} in each cluster, with chances p and q, and 1{y = z}: P(outside), and 16 exp(-t^2).

    At most the chance that a share of ones is farther than h from p or q, where all within h is inside: the changes of
    block means and variances or, where the first limit is above 15, of -gamma^2 and vbar^2, in t / sqrt(m) + 1 / m.
    """
    psi = [ball(x) for x in (p * p + (1 - p) ** 2, 1 - p - q + 2 * p * q, q * q + (1 - q) ** 2)]
    unit = t / _root(m) + ball(Q(limits[2], m))
    for h in (Q(3, 4) ** k for k in range(40)):
        x, y = (ball(max(c - h, Q(0))).union(ball(min(c + h, Q(1)))) for c in (p, q))
        dx, dy = x - ball(p), y - ball(q)
        means = [2 * dx * (x + ball(p - 1)), dx * (2 * y - 1) + dy * ball(2 * p - 1), 2 * dy * (y + ball(q - 1))]
        spreads = [d * (1 - 2 * old - d) for d, old in zip(means, psi, strict=True)]
        gamma2 = sum((means[i] - means[1]) * (2 * (psi[i] - psi[1]) + means[i] - means[1]) for i in (0, 2)) / 2
        if limits[0] > 15:
            inside = -gamma2 <= limits[0] * unit and spreads[0] + 2 * spreads[1] + spreads[2] <= 4 * limits[1] * unit
        else:
            inside = all(abs(d) <= limits[0] * unit for d in means) and all(abs(d) <= limits[1] * unit for d in spreads)
        tails = [binomial_tail(math.floor(m * (c + h)) + 1, m, c) for c in (p, 1 - p, q, 1 - q) if inside]
        if inside and sum(tails) <= 16 * _exp(-t * t):
            return sum(tails), 16 * _exp(-t * t)
    raise ArithmeticError("no rectangle decides")


def _at_settings(claim: str, form: str, *limits: int) -> Enclosed:
    settings = register.claims(papers=["amini2021"], only=[f"amini2021:{claim}"])[0].forms[form].settings
    places = [(s.shapes["m"], *(s.numbers[x] for x in "tpq")) for s in settings]
    return each(partial(_two_clusters, limits), *((m, t, Q(p), Q(q)) for m, t, p, q in places))


# P(|y| + |y_1| < l) <= P(|y| < l), l = sqrt(n - 3/2) - u.
sec2_2_lower = partial(
    each,
    lambda n, u: (enclosures.chi_square_below((_root(n - 1.5) - u) ** 2, n), _exp(-u * u / 2)),
    *product((10, 1000), (1.0, 2.5)),
)
# K = x + y, c = 1/2, normal points: |K - E K|_F^2 = 2 n (2 a^2 + q) is at most 4 n chi^2_n.
thm1_33_printed, thm1_33 = (
    partial(
        each,
        lambda n, t, mean=mean: (enclosures.chi_square_tail((mean(n) / _root(4 * n) + t) ** 2, n), _exp(-t * t / 2)),
        *product((2, 4, 100), (0.3, 0.9, 1.5)),
    )
    for mean in (lambda n: _root(8) * n, lambda n: (4 * (1 + _log(2)) * n * (n + 1)).sqrt())
)
prop1 = partial(each, _clipped, *product((HALF,), (8, 16, 32, 64)))
prop1_any = partial(
    each, _clipped, *((p, k * math.ceil(4 / p)) for p, k in product((Q(1, 20), Q(3, 10), HALF, Q(1)), (1, 4)))
)
eq29 = partial(each, _smirnov, *product((5, 100, 2000), (2, 8)))
# A coordinate, k = 0, or the norm in R^k.
thm4 = partial(
    each,
    lambda k, s: (enclosures.chi_square_tail((_chi(k) + s) ** 2, k) if k else normal_tail(s), _exp(-s * s / 2)),
    *product((0, 1, 10), (0.5, 2.0, 5.0)),
)
thm5 = partial(each, _thm5, *product(((-1, 0), (0, 0), (-1, 2)), (Q(1, 5), Q(1), Q(5))))
lem3 = partial(each, _lem3, *product((1, 16, 400), (0, 10), (1, 4, 12)))
SIGNS = list(product((20, 400), (1, 2, 3)))
u_statistic_printed, v_statistic_printed = (
    partial(each, partial(_signs, k, lambda n: Q(8, n)), *SIGNS) for k in (1, 2)
)
u_statistic = partial(each, partial(_signs, 1, lambda n: Q(4, n - 1)), *SIGNS)
v_statistic = partial(each, partial(_signs, 2, lambda n: Q(2, n)), *SIGNS)
# Two points of 10,000 equally likely values, h = 1 where they agree and else -1: Psi is 0, or 1 with a chance of 1e-4,
# and 1 - 2e-4 or 2 - 2e-4 off. Allowed is t sqrt(8 / 2) / 2 = t, and t + 1, at t = .99.
prop2_display_printed = partial(at_most, lambda: (1 - Q(1, 10_000), 2 * _exp(-(Q(99, 100) ** 2))), "1 - 2e-4 > .99")
prop2_display = partial(at_most, lambda: (Q(1, 10_000), 2 * _exp(-(Q(99, 100) ** 2))), "1 - 2e-4 < 1.99 < 2 - 2e-4")
prop2_printed = partial(_at_settings, "prop2", "printed", 3, 9, 0)
prop2 = partial(_at_settings, "prop2", "corrected", 2, 5, 1)
eq30_printed = partial(_at_settings, "eq30", "printed", 24, 9, 0)
eq30 = partial(_at_settings, "eq30", "corrected", 16, 5, 1)
THREE = ((Q(3, 2),), (Q(2),), (Q(4),))
thm6_split_printed, thm6_split = (partial(each, partial(_split, k), *THREE) for k in (2, 3))
FAR = [(0.5,), (1,), (2,), (4,), (8,)]
lem5_printed = partial(each, partial(_lem5, lambda t, v2: t / 4), *FAR)
lem5 = partial(each, partial(_lem5, lambda t, v2: t / 2 - v2 / 8), *FAR)


def _all(*parts: Any) -> Any:
    return partial(lambda: enclosures.together(part() for part in parts))


# Inequalities over their whole range.

# u - 1 - ln u, which falls up to 1 and then grows, u = r^2 / tau^2: the square of the slope over its maximum.
ex1_lipschitz = partial(prove, lambda u: u - 1 - u.log(), [(Q(1, 16), 16)], zeros={0: (1, 2)})
# ln(1 + y) >= y - y^2 / 2, whose difference grows by y^2 / (1 + y).
_taylor = partial(prove, lambda y: (1 + y).log() - y + y * y / 2, [(0, 16)], zeros={0: (0, 3)})
# y = 2 sigma^2 / d tau^2 and q = 1 / (1 + y): the largest of e^(-qx) - e^(-x) is (1 - q) q^(q / (1 - q)), and
# q^(1 / (1 - q)) <= 1 / e; for the prefactor y - y^2 / 2 <= ln(1 + y) <= y, times d / 2.
ex1_limit = _all(ex1_lipschitz, _taylor)
# x = u^2 / 2 d: 1 + x <= psi <= e^x, term by term of its series, and ln(1 + x) >= x - x^2 / 2.
psi = _all(_taylor)
# (28), s_i^2 = 1 + y l_i, y = sigma^2 / d tau^2: the derivative in y, e^(-p-q) (w1 (2 p - 1) + w2 (2 q - 1)) / 2 s1 s2,
# is linear in w_i = l_i / s_i^2, w1 + w2 <= 2, and so at most the largest |2 p - 1| e^-p, 1; beyond 16 that falls.
b3 = ex4_alpha = _all(
    partial(prove, lambda p: 1 - (2 * p - 1) * (-p).exp(), [(0, 16)]),
    partial(prove, lambda p: 1 + (2 * p - 1) * (-p).exp(), [(0, 16)], zeros={0: (0, 1)}),
)
# Of one eigenvalue, y = lambda beta: -ln(1 - 2 y) / 2 - y <= 2 y^2.
thm6_mgf = partial(prove, lambda y: 2 * y * y + (1 - 2 * y).log() / 2 + y, [(Q(-1, 4), Q(1, 4))], zeros={0: (0, 2)})
# |B| = 1, z = e cos + f sin at distance r: z'Bz >= 1 - 2 sin^2, sin^2 = s - s^2 / 4 and s = r^2, which grows up to 2.
thm2_net = partial(prove, lambda s: 1 - s / 2, [(0, Q(19, 10))])
_net = partial(at_most, lambda: (1, 2 * (1 - 2 * (Q(1, 16) - Q(1, 1024)))), "a net of (1 + 2 / (1/4))^n points")
thm2_net_printed = _all(thm2_net, _net)


RANGES = {
    # v = 1 - 2 x: 4 v (x^2 / v + x + ln(v) / 2) >= 0; below 1/64 it is at least 1 - v^2 - 2 v |ln v| > 0.
    "Theorem B, -ln(1 - 2 x) / 2 - x <= x^2 / (1 - 2 x), 0 <= x < 1/2": partial(
        prove, lambda v: 1 - v * v + 2 * v * v.log(), [(Q(1, 64), 1)], zeros={0: (1, 3)}
    ),
    "Theorem B, -ln(1 - 2 x) / 2 - x <= x^2, x <= 0": _taylor,  # y = -2 x
    "Lemma 5, v: (-s - ln(1 - s)) / s^2 grows up to 1/2": partial(
        prove, lambda s: s * s / (1 - s) + 2 * s + 2 * (1 - s).log(), [(0, HALF)], zeros={0: (0, 3)}
    ),
    "E chi_k >= sqrt(k - 1/2)": partial(each, lambda k: (Q(2 * k - 1, 2), _chi(k) ** 2), *((k,) for k in range(1, 65))),
}
CONSTANTS = {
    "(6) as printed, n >= 6": lambda: ((1 + _log(2)) * 7 / 6, 2),
    "(6) as printed, not n = 5": lambda: (2, (1 + _log(2)) * 6 / 5),
    "(10), the mean": lambda: (_root(2) * _exp(HALF), 4),
    "(10), the deviation": lambda: (2 * _exp(HALF), 4),
    "Theorem 2, 2.885 < 3": lambda: (2 / _log(2), 3),
    "Lemma 3, 1 / c": lambda: (3 * (2 * _root(Q(16, 3)) + 2) / 8, Q(249, 100)),
    "(14), 3.68": lambda: (6 / _root(Q(8, 3)), Q(368, 100)),
    "Theorem C, 0.70": lambda: (_root(2) * (1 + 1.4), Q(34, 10)),
    "Theorem D, means, sqrt(3) >= 2 / t": lambda: (4 / _log(4), 3),
    "Theorem D, variances, sqrt(2) >= 5 / 4 t": lambda: (25 / (16 * _log(4)), 2),
    "Theorem D, m = 2, 3 t / sqrt(2) >= t + 1": lambda: (1 / _root(_log(4)), Q(112, 100)),
}
"""What the theorems of docs/theory/amini2021.md rest on beside these claims, in numbers."""
