"""amini2021 by enclosures: counterexamples, probabilities, and inequalities over whole ranges."""

from collections.abc import Callable, Iterator
from fractions import Fraction as Q
from functools import cache, partial
from typing import Any

import numpy as np

from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Enclosed
from proofs_check.engine.enclosures import (
    Ball,
    at_most,
    ball,
    binomial_tail,
    bound,
    chi_square_below,
    chi_square_tail,
    each,
    equal,
    normal_tail,
    prove,
    together,
)
from proofs_check.papers.amini2021.section3_3 import (
    block_means,
    separation_and_variance,
)
from proofs_check.papers.amini2021.ten_points import UNIT
from proofs_check.papers.shared import everywhere

HALF = Q(1, 2)
NOISE = Q(3, 2)
TAU_SQUARED = Q(13, 4)
"""Of Section 3.5, with alpha = 1."""

Sides = tuple[Any, Any]


def _exp(x: Any) -> Ball:
    return ball(x).exp()


def _root(x: Any) -> Ball:
    return ball(x).sqrt()


def _decided(
    how: Callable[..., Enclosed], note: str = ""
) -> Callable[[Callable[[], Sides]], Callable[[], Enclosed]]:
    """Make the enclosure of left <= right, or of left = right, from a function that returns both sides."""
    return lambda sides: partial(how, sides, note)


# Counterexamples.


@_decided(at_most, "slope over omega")
def def2b() -> Sides:
    """W uniform within e = 1/10 of -a and of a, omega = 4 e: the slope is 2 (a - e) / omega over 1/50.

    No other map is better: the image of the line under a Lipschitz map is an interval.
    """
    return 250 * (_root(1 - Q(1, 300)) - ball(Q(1, 10))), 1


ATOMS = np.array([-172, -142, -115, -90, -62, 62, 90, 115, 142, 172])  # hundredths
MASSES = np.array([10, 15, 22, 25, 28, 28, 25, 22, 15, 10])  # of 200


def _mass_of_set(p: int, far: int) -> Sides:
    return Q(p, 200), _exp(-(Q(far, 20_000) ** 2))


@cache
def property_33() -> Enclosed:
    """P(A) <= exp(-(E d(W, A))^2), which is (33) with c = 1, for all 1023 sets A of the law on ten points."""
    numbers = np.arange(1, 1024)
    sets = (numbers[:, None] >> np.arange(10)) & 1
    gaps = np.abs(ATOMS[:, None] - ATOMS)
    distances = np.min(np.where(sets[:, None] == 1, gaps, 1000), axis=2)
    masses = (sets @ MASSES).tolist()
    away = (distances @ MASSES).tolist()
    return each(_mass_of_set, *set(zip(masses, away, strict=True)))


def _one_point(
    formula: Callable[..., Bound], power: int, factor: int, **sizes: int
) -> Enclosed:
    """Decide factor E |W|^power <= bound for that law, one point and c = L = omega = Sigma = 1."""
    if not property_33().holds:
        raise ArithmeticError("the law on ten points has not the property (33)")
    moment = Q(int(MASSES @ np.abs(ATOMS) ** power), 200 * 100**power)

    def sides() -> Sides:
        return factor * moment, bound(formula, **UNIT, c=1, **sizes).value

    return at_most(sides, f"{factor} E |W|^{power}; all sets have (33)")


def _printed(formula: Callable[..., Bound]) -> Callable[..., Bound]:
    return partial(formula, as_printed=True)


eq6 = partial(
    _one_point, _printed(concentration.frobenius_mean_square), 2, 4, num_points=1
)
prop4 = partial(_one_point, _printed(concentration.frobenius_mean), 1, 2, num_points=1)
# K(X, X) = 2 W.
lem2_diagonal = partial(_one_point, _printed(concentration.diagonal_variance), 2, 4)


def _chi(d: int) -> Ball:
    """E |w| for a standard normal w in R^d."""
    half = ball(Q(d, 2))
    log_ratio = ball(Q(d + 1, 2)).lgamma() - half.lgamma()
    return _root(2) * log_ratio.exp()


@_decided(at_most)
def eq7() -> Sides:
    """n = 2, N(0, I / d), d = 10^6, f(r) = r: half of E (|X - Y| - 1)^2, and 100 (1 / d + 100 / d)."""
    distance = _root(2) * _chi(10**6) / 1000
    return (3 - 2 * distance) / 2, Q(101, 10**4)


@_decided(at_most, "the slope at tau, times tau")
def ex1_lipschitz_printed() -> Sides:
    """The slope at one lengthscale of 1."""
    formula = _printed(concentration.gaussian_lipschitz)
    return _exp(-HALF), bound(formula, lengthscale=1).value


@_decided(equal, "the diagonal at d = sigma = tau = 1")
def eq9() -> Sides:
    """The true mean is 1 there."""
    return 1, 1 / _root(3)


@_decided(at_most, "|f_(s tau) - f_1| at 2, for every d")
def ex1_limit_printed() -> Sides:
    """tau = 2: f_(s tau)(2) >= f_2(2) = exp(-1/2), as s >= 1, and f_1(2) = exp(-2)."""
    return _exp(-HALF) - _exp(-2), 0


@_decided(at_most)
def sec2_2_limit() -> Sides:
    """M = (1, 0), W = (0, 1), s^2 = 1/100: K - E K = [[-s^2, 1], [1, 0]].

    2 |M'W| = 2, to within s^2 |W'W - I| = s^2.
    """
    norm = (ball(Q(1, 100)) + _root(Q(40_001, 10_000))) / 2
    return 2 - norm, Q(1, 100)


@_decided(at_most)
def sec2_2_lower_printed() -> Sides:
    """Rank one, n = 1000, l^2 = 2 n: P(|y| + |y_1| < l) >= P(|y_1| < 4) P(chi^2_999 < l^2 - 8 l)."""
    others = chi_square_below(2000 - 8 * _root(2000), 999)
    return (1 - 2 * normal_tail(4)) * others, HALF


def _over_entries(q: Ball) -> Ball:
    """vbar^2 / gamma^2 for two clusters of two copies, 2 s tau apart: E K is 1 on its diagonal, q for two copies."""
    return ((1 - q) / (1 + q - 2 * q * _exp(-2))) ** 2 / 2


@_decided(at_most)
def ex3_noise() -> Sides:
    """q = exp(-sigma^2 / tau^2) as d grows: sigma = 2 tau and sigma = tau."""
    return _over_entries(_exp(-4)) - _over_entries(_exp(-1)), 0


@_decided(at_most)
def sec3_4() -> Sides:
    """q = s^-50 with sigma = 1 and tau = 2."""
    return _over_entries(1 / ball(Q(101, 100)) ** 25), 0


def _mean_gap(d: int) -> Ball:
    """How far the mean kernel is from its limit, by the bound of `b3`."""
    formula = concentration.radial_mean_gap
    return bound(formula, noise=NOISE, lengthscale=_root(TAU_SQUARED), dim=d).value


@_decided(at_most)
def ex4_alpha_printed() -> Sides:
    """How much it differs between the cosines .9 and .01: for d = 10^6, and half of what it is for d = 10.

    In the limit it is f_tau(|u - v|), at |u| = |v| = 5.
    """
    limit = _exp(Q(-10, 13)) - _exp(Q(-99, 13))
    return limit - 2 * _mean_gap(10**6), (limit + 2 * _mean_gap(10)) / 2


def _psi(u: Q, d: int) -> Ball:
    return ball(u * u / 4).hypgeom_0f1(ball(Q(d, 2)))


def _spread(r: int) -> Ball:
    """(v*_kk)^2 over s^-100 for d = 50."""
    x = r**2 / (TAU_SQUARED + Q(9, 100))
    return _exp(-2 * x) * (_psi(2 * x, 50) - _psi(x, 50) ** 2)


@_decided(equal)
def ex5_variance() -> Sides:
    """d = 3, where a is uniform on [-1, 1] and psi(u) = sinh(u) / u, for radii and a lengthscale of 1, without noise.

    The variance of exp(a - 1) ends in psi(1)^2.
    """
    once = ball(1).sinh()
    twice = ball(2).sinh() / 2
    formula = _printed(concentration.isotropic_block_variance)
    spheres = {"radius": 1, "other_radius": 1, "noise": 0, "lengthscale": 1, "dim": 3}
    printed = bound(formula, **spheres, psi=once, psi_double=twice)
    return printed.value, (twice - once**2) * _exp(-2)


@_decided(at_most, "ratio of the logarithms at u=5, d=10000")
def psi_printed() -> Sides:
    """The ratio would be about 1."""
    about = bound(_printed(concentration.sphere_moment), u=5, dim=10**4)
    return _psi(Q(5), 10**4).log() / about.value.log(), Q(3, 2)


@_decided(at_most)
def ex5_limit_printed() -> Sides:
    """|d (1 - psi(u) / psi(2 u)) / u^2 - 3/4| and exp(2 u^2 / d) - 1 at u = 1/2, d = 1000."""
    value = 4000 * (1 - _psi(HALF, 1000) / _psi(Q(1), 1000))
    return abs(value - 0.75), ball(Q(1, 2000)).expm1()


@_decided(at_most, "radii 2 and 1, d = 50")
def ex5_closest_printed() -> Sides:
    """The variances on the outer and on the inner sphere."""
    return _spread(2), _spread(1)


@_decided(at_most)
def eq40() -> Sides:
    """L = sigma = d = t = vbar^2 = R = 1, n = 4: 2 (omega + b) from Theorem 1, and gamma^2 F / 8 R from Theorem 3."""
    model = {"lipschitz": 1, "op_norm": 1, "dim": 1, "num_points": 4, "t": 1}
    deviation = bound(_printed(concentration.anisotropic_noise), **model).value
    theorem = bound(
        _printed(concentration.misclassification),
        **model,
        noise=1,
        num_clusters=1,
        gamma2=1,
        gamma_tilde2=1,
        vbar2=1,
    )
    return 2 * (deviation**2 + 1), theorem.value / (16 * 8)


@_decided(equal)
def prop2_bias() -> Sides:
    """1{y = z}, two points that are 0 or 1 equally often: E Psi_kk = (1 + 1/2) / 2, and Psi*_kk."""
    return Q(3, 4), HALF


def _log_mgf(c: int) -> Sides:
    """A = 1 and X normal: log E exp(s X^2) at s = 1 / (4 C1), and s^2 C1."""
    doubled = ball(Q(1, 2 * c))
    return -(1 - doubled).log() / 2, Q(1, 16 * c)


def thm6_mgf_printed() -> Enclosed:
    """The constants that are tried."""
    return each(_log_mgf, (1,), (100,), (10_000,))


@_decided(equal)
def b1() -> Sides:
    """alpha = .3, |u| = 1, |v| = 5: (1 - 1.3) u_1 and -alpha v_1, u_1 = sqrt(.65)."""
    component = _root(Q(13, 20))
    return -3 * component / 10, -15 * component / 10


# Probabilities, and what they are claimed to be at most, at the settings of the checks. A function that takes the value
# of the bound returns the probability alone.


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
    tail = chi_square_tail((_chi(k) + t) ** 2, k) if k else normal_tail(t)
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
    weight = _exp(-rate)
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


# Inequalities over their whole range; more are on the page of the theorems. `prove` needs power series, which bounds do
# not take, so that the formulas are written out.


def ex1_lipschitz() -> Enclosed:
    """u - 1 - ln u, which falls up to 1 and then grows, u = r^2 / tau^2: the square of the slope over its maximum."""
    box = [(Q(1, 16), 16)]
    return prove(lambda u: u - 1 - u.log(), box, zeros={0: (1, 2)})


def psi() -> Enclosed:
    """ln(1 + x) >= x - x^2 / 2, whose difference grows by x^2 / (1 + x).

    x = u^2 / 2 d: 1 + x <= psi <= e^x, term by term of its series.
    """
    box = [(0, 16)]
    return prove(lambda x: (1 + x).log() - x + x * x / 2, box, zeros={0: (0, 3)})


def ex1_limit() -> Enclosed:
    """y = 2 sigma^2 / d tau^2 and q = 1 / (1 + y): the largest of e^(-qx) - e^(-x) is (1 - q) q^(q / (1 - q)).

    q^(1 / (1 - q)) <= 1 / e; for the prefactor y - y^2 / 2 <= ln(1 + y) <= y, times d / 2.
    """
    largest = ex1_lipschitz()
    return together((largest, psi()))


def b3() -> Enclosed:
    """(28), s_i^2 = 1 + y l_i, y = sigma^2 / d tau^2: the derivative in y is at most 1 in size.

    It is e^(-p-q) (w1 (2 p - 1) + w2 (2 q - 1)) / 2 s1 s2, linear in w_i = l_i / s_i^2, w1 + w2 <= 2, and so at most
    the largest |2 p - 1| e^-p, 1; beyond 16 that falls.
    """
    box = [(0, 16)]
    above = prove(lambda p: 1 - (2 * p - 1) * (-p).exp(), box)
    below = prove(lambda p: 1 + (2 * p - 1) * (-p).exp(), box, zeros={0: (0, 1)})
    return together((above, below))


ex4_alpha = b3


def thm6_mgf() -> Enclosed:
    """Of one eigenvalue, y = lambda beta: -ln(1 - 2 y) / 2 - y <= 2 y^2."""
    box = [(-HALF / 2, HALF / 2)]
    zeros = {0: (0, 2)}
    return prove(lambda y: 2 * y * y + (1 - 2 * y).log() / 2 + y, box, zeros=zeros)


def thm2_net() -> Enclosed:
    """|B| = 1, z = e cos + f sin at distance r: z'Bz >= 1 - 2 sin^2, sin^2 = s - s^2 / 4 and s = r^2, growing to 2."""
    return prove(lambda s: 1 - s / 2, [(0, Q(19, 10))])


@_decided(at_most, "a net of (1 + 2 / (1/4))^n points")
def _net() -> Sides:
    sine_squared = Q(1, 16) - Q(1, 1024)
    return 1, 2 * (1 - 2 * sine_squared)


def thm2_net_printed() -> Enclosed:
    """The factor 2 is more than is needed."""
    return together((thm2_net(), _net()))
