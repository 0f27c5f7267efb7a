"""amini2021 by enclosures: counterexamples, and inequalities over whole ranges."""

from collections.abc import Callable
from fractions import Fraction as Q
from functools import cache, partial
from typing import Any

import numpy as np

from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Enclosed
from proofs_check.engine.decided import bound
from proofs_check.engine.enclosures import (
    Ball,
    at_most,
    ball,
    chi_square_below,
    each,
    equal,
    normal_tail,
    prove,
    together,
)
from proofs_check.papers.amini2021.ten_points import UNIT

HALF = Q(1, 2)
NOISE = Q(3, 2)
TAU_SQUARED = Q(13, 4)
"""Of Section 3.5, with alpha = 1."""

Sides = tuple[Any, Any]


def exp(x: Any) -> Ball:
    return ball(x).exp()


def root(x: Any) -> Ball:
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
    return 250 * (root(1 - Q(1, 300)) - ball(Q(1, 10))), 1


ATOMS = np.array([-172, -142, -115, -90, -62, 62, 90, 115, 142, 172])  # hundredths
MASSES = np.array([10, 15, 22, 25, 28, 28, 25, 22, 15, 10])  # of 200


def _mass_of_set(p: int, far: int) -> Sides:
    return Q(p, 200), exp(-(Q(far, 20_000) ** 2))


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


def mean_chi(d: int) -> Ball:
    """E |w| for a standard normal w in R^d."""
    half = ball(Q(d, 2))
    log_ratio = ball(Q(d + 1, 2)).lgamma() - half.lgamma()
    return root(2) * log_ratio.exp()


@_decided(at_most)
def eq7() -> Sides:
    """n = 2, N(0, I / d), d = 10^6, f(r) = r: half of E (|X - Y| - 1)^2, and 100 (1 / d + 100 / d)."""
    distance = root(2) * mean_chi(10**6) / 1000
    return (3 - 2 * distance) / 2, Q(101, 10**4)


@_decided(at_most, "the slope at tau, times tau")
def ex1_lipschitz_printed() -> Sides:
    """The slope at one lengthscale of 1."""
    formula = _printed(concentration.gaussian_lipschitz)
    return exp(-HALF), bound(formula, lengthscale=1).value


@_decided(equal, "the diagonal at d = sigma = tau = 1")
def eq9() -> Sides:
    """The true mean is 1 there."""
    return 1, 1 / root(3)


@_decided(at_most, "|f_(s tau) - f_1| at 2, for every d")
def ex1_limit_printed() -> Sides:
    """tau = 2: f_(s tau)(2) >= f_2(2) = exp(-1/2), as s >= 1, and f_1(2) = exp(-2)."""
    return exp(-HALF) - exp(-2), 0


@_decided(at_most)
def sec2_2_limit() -> Sides:
    """M = (1, 0), W = (0, 1), s^2 = 1/100: K - E K = [[-s^2, 1], [1, 0]].

    2 |M'W| = 2, to within s^2 |W'W - I| = s^2.
    """
    norm = (ball(Q(1, 100)) + root(Q(40_001, 10_000))) / 2
    return 2 - norm, Q(1, 100)


@_decided(at_most)
def sec2_2_lower_printed() -> Sides:
    """Rank one, n = 1000, l^2 = 2 n: P(|y| + |y_1| < l) >= P(|y_1| < 4) P(chi^2_999 < l^2 - 8 l)."""
    others = chi_square_below(2000 - 8 * root(2000), 999)
    return (1 - 2 * normal_tail(4)) * others, HALF


def _over_entries(q: Ball) -> Ball:
    """vbar^2 / gamma^2 for two clusters of two copies, 2 s tau apart: E K is 1 on its diagonal, q for two copies."""
    return ((1 - q) / (1 + q - 2 * q * exp(-2))) ** 2 / 2


@_decided(at_most)
def ex3_noise() -> Sides:
    """q = exp(-sigma^2 / tau^2) as d grows: sigma = 2 tau and sigma = tau."""
    return _over_entries(exp(-4)) - _over_entries(exp(-1)), 0


@_decided(at_most)
def sec3_4() -> Sides:
    """q = s^-50 with sigma = 1 and tau = 2."""
    return _over_entries(1 / ball(Q(101, 100)) ** 25), 0


def _mean_gap(d: int) -> Ball:
    """How far the mean kernel is from its limit, by the bound of `b3`."""
    formula = concentration.radial_mean_gap
    return bound(formula, noise=NOISE, lengthscale=root(TAU_SQUARED), dim=d).value


@_decided(at_most)
def ex4_alpha_printed() -> Sides:
    """How much it differs between the cosines .9 and .01: for d = 10^6, and half of what it is for d = 10.

    In the limit it is f_tau(|u - v|), at |u| = |v| = 5.
    """
    limit = exp(Q(-10, 13)) - exp(Q(-99, 13))
    return limit - 2 * _mean_gap(10**6), (limit + 2 * _mean_gap(10)) / 2


def _psi(u: Q, d: int) -> Ball:
    return ball(u * u / 4).hypgeom_0f1(ball(Q(d, 2)))


def _spread(r: int) -> Ball:
    """(v*_kk)^2 over s^-100 for d = 50."""
    x = r**2 / (TAU_SQUARED + Q(9, 100))
    return exp(-2 * x) * (_psi(2 * x, 50) - _psi(x, 50) ** 2)


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
    return printed.value, (twice - once**2) * exp(-2)


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
    component = root(Q(13, 20))
    return -3 * component / 10, -15 * component / 10


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
