"""chen2016 by enclosures: counterexamples, probabilities, and inequalities over their whole range.

Probabilities are computed in ball arithmetic; right-hand sides are the bounds of `jaxkern.bounds` in balls. A proof by
`prove` needs its formula in power series as well, which bounds do not take: there it is written out.
"""

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from jaxkern.bounds import fourier
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
from proofs_check.papers.chen2016 import section2, section4, section4_ours
from proofs_check.papers.shared import everywhere

Sides = tuple[Ball, Any]
WIDEST = 20
"""No frequency of a sample is larger, but for a probability below 1e-80."""


def _mean(r: Any) -> Ball:
    """E X for X = 1 - cos(r w), w standard normal."""
    return 1 - (-(ball(r) * r) / 2).exp()


def _dot(weights: Any, values: Any) -> Ball:
    return sum(map(operator.mul, weights, values), start=ball(0))


def _moments(s: Ball, r: Any, most: int) -> list[Ball]:
    """E X^j exp(s X), j <= most: exp(-s cos) is the sum of (-1)^k I_k(s) e^(ik.), and E e^(ikrw) = e^(-k^2 r^2 / 2)."""
    last = 3 * int(float(abs(s)) + 1) + 40
    bessel = [(-1) ** k * s.bessel_i(k) for k in range(last)]
    # |I_k(s)| <= |s / 2|^k e^|s| / k!, of which each is less than half of the one before.
    rest = 4 * (abs(s) / 2) ** last * abs(s).exp() / ball(last).gamma()
    means = [(-(ball(r) * r) * k * k / 2).exp() for k in range(last + most)]
    waves = []
    moments = []
    for j in range(most + 1):
        # E cos(r w)^j exp(-s cos(r w)), with cos^j a sum of waves
        binomials = [math.comb(j, i) for i in range(j + 1)]
        weights = []
        for k in range(last):
            frequencies = range(k - j, k + j + 1, 2)
            weights.append(_dot(binomials, [means[abs(i)] for i in frequencies]))
        total = bessel[0] * weights[0] / 2 + _dot(bessel[1:], weights[1:])
        waves.append(2 * total / 2**j)
        # (1 - cos)^j by the powers of the cosine
        signed = [(-1) ** i * x for i, x in enumerate(binomials)]
        moments.append(s.exp() * (_dot(signed, waves) + 2**j * rest.union(-rest)))
    return moments


def _outside(t: Ball, low: Ball, high: Ball) -> Ball:
    """P(chi2_t / t outside [low, high])."""
    below = 0 if low <= 0 else chi_square_below(t * low, t)
    return below + chi_square_tail(t * high, t)


def _near(r: Ball, t: Ball, low: Ball, high: Ball) -> Ball:
    """P(Z outside [low, high]), Z = Dhat^2 / D^2, by (4): S2 (1 - (rW)^2 / 12) <= Z <= S2 / (1 - r^2 / 4), w_i <= W."""
    up = 1 - r * r / 4
    down = 1 - r * r * WIDEST**2 / 12
    wide = 2 * t * normal_tail(WIDEST)
    below = _outside(t, low * up, high / down)
    above = _outside(t, low / down, high * up)
    return (below - wide).union(above + wide)


def _tilted(r: Ball, t: Ball, level: Ball) -> Ball:
    """P(Z >= level), or P(Z <= level) for level < 1: at most Chernoff's bound, at any slope s, times what is in excess.

    That is E exp(-b (V - o)) 1{V >= o} with V of mean 0 and variance 1 under the tilted law, at most 1 / (b sqrt(2 pi))
    and twice the .4748 E|v|^3 / sqrt(t) of Berry and Esseen (Shevtsova's constant).
    """
    mu = _mean(r)
    w = np.linspace(-8, 8, 401)
    slopes = (float(level) - 1) * np.geomspace(0.2, 20, 80) / float(mu)
    copies = 1 - np.cos(float(r) * w) - float(level * mu)
    tilts = np.exp(np.minimum(slopes[:, None] * copies, 600) - w**2 / 2)
    s = ball(float(slopes[np.argmin(tilts.sum(1))]))
    total, *moments = _moments(s, r, 4)
    mean, second, third, fourth = (x / total for x in moments)
    variance = second - mean * mean
    central = fourth - 4 * mean * third + 6 * mean * mean * second - 3 * mean**4
    kurtosis = central / variance**2
    normal = 1 / (abs(s) * (8 * ball(1).atan() * t * variance).sqrt())
    excess = ball(1).min(normal + 2 * ball("0.4748") * (kurtosis / t).sqrt())
    return (t * (total.log() - s * level * mu)).exp() * excess


def _pair(r: Ball, t: Ball, low: Ball, high: Ball) -> Ball:
    """P(Z outside [low, high]), to some digits at tiny distances."""
    if r < 0.01:
        return _near(r, t, low, high)
    # The values of Z are between 0 and 2 / E X.
    levels = [x for x in (low, high) if not (x <= 0 or x * _mean(r) >= 2)]
    return sum((_tilted(r, t, x) for x in levels), start=ball(0))


# What exceeds the value of a bound, as `shared.Exceeds` has it: a function gets the value, and numbers by their names.


def _relative(value: Ball, distance: Ball, num_frequencies: Ball) -> Ball:
    """P(|Dhat / D - 1| > value)."""
    return _pair(distance, num_frequencies, (1 - value) ** 2, (1 + value) ** 2)


def _inverse(value: Ball, distance: Ball, num_frequencies: Ball) -> Ball:
    """P(|D / Dhat - 1| > value)."""
    return _pair(distance, num_frequencies, (1 + value) ** -2, (1 - value) ** -2)


def _value(value: Ball, distance: Ball, num_frequencies: Ball) -> Ball:
    """P(|Khat - K| > value), where K - Khat = (Z - 1) E X."""
    error = value / _mean(distance)
    return _pair(distance, num_frequencies, 1 - error, 1 + error)


def _squares(value: Ball, num_frequencies: Ball) -> Ball:
    """P(|chi2_t / t - 1| > value)."""
    return _outside(num_frequencies, 1 - value, 1 + value)


def _near_squares(value: Ball, distance: Ball, num_frequencies: Ball) -> Ball:
    """P(|Z - 1| > value) at a tiny distance."""
    return _near(distance, num_frequencies, 1 - value, 1 + value)


def _limit(value: Ball, num_frequencies: Ball) -> Ball:
    """P(|Dhat / D - 1| > value) in the limit of small distances."""
    return _outside(num_frequencies, (1 - value) ** 2, (1 + value) ** 2)


def _additive(value: Ball, num_frequencies: Ball, distance: Any = None) -> Ball:
    """P(|Khat - K| > value) of a Gaussian pair, or, without a distance, of signs."""
    t = num_frequencies
    if distance is not None:
        return _value(value, distance, t)
    heads = (t * (1 + value) / 2 - ball("1e-6")).ceil().unique_fmpz()
    return 2 * binomial_tail(int(heads), int(float(t)), 0.5)


def _claimed(
    tail: Callable[..., Ball],
    formula: Callable[..., Any],
    eps: Ball,
    num_frequencies: Ball,
    **numbers: Ball,
) -> Sides:
    """Return a tail and the failure probability that a bound claims, at any distance."""
    right = bound(formula, eps=eps, num_frequencies=num_frequencies)
    left = tail(eps, num_frequencies=num_frequencies, **numbers)
    return left, right.log_failure.exp()


def _claimed_in_floats(tail: Callable[..., Ball], eps: Ball, **numbers: Ball) -> Sides:
    """Return a tail alone: the bound is a quadrature in floats, so that the right side is what the check claims."""
    return tail(eps, **numbers), None


def _massart(t: Ball, x: Ball) -> Sides:
    root = 2 * (x / t).sqrt()
    return _outside(t, 1 - root, 1 + root + 2 * x / t), 2 * (-x).exp()


def _success(num_frequencies: Ball, eps: Ball, num_points: Ball) -> Sides:
    """The probability of success, or of failure where the number of points is infinite, and 1/2."""
    if not num_points.is_finite():
        return _limit(eps, num_frequencies), 0.5
    success = bound(
        fourier.success_limit,
        eps=eps,
        num_frequencies=num_frequencies,
        num_points=num_points,
    )
    return success.value, 0.5


def _two_exponents(num_frequencies: Ball, eps: Ball, distance: Ball) -> Sides:
    share = _mean(distance) / (distance * distance)
    exponent = (eps * eps * share * share).min(eps * share / 4)
    claimed = 2 * (-num_frequencies * exponent).exp()
    return _near_squares(eps, distance, num_frequencies), claimed


def _some(t: Ball, p: Ball) -> Ball:
    """The probability of at least one of t independent events of probability p."""
    return -((t * (-p).log1p()).expm1())


def _truncated(t: Ball, delta: Ball) -> Sides:
    """P(max w_i^2 > 2 ln(2 t / delta)) <= delta."""
    limit = (2 * (2 * t / delta).log()).sqrt()
    return _some(t, 2 * normal_tail(limit)), delta


def _truncated_as_printed(t: Ball, delta: Ball) -> Sides:
    return _some(t, 2 * normal_tail((-delta.log()).sqrt())), delta


def _energies(d: Ball, t: Ball, n: Ball, delta: Ball) -> Sides:
    """P(max |w_i| > sqrt(d) + sqrt(2 ln(t / delta))) <= delta, in d dimensions."""
    limit = d.sqrt() + (2 * (t / delta).log()).sqrt()
    return _some(t, chi_square_tail(limit**2, d)), delta


def _energies_as_printed(d: Ball, t: Ball, n: Ball, delta: Ball) -> Sides:
    limit = (1 + ball(2).sqrt()) ** 2 * n.log()
    return _some(t, chi_square_tail(limit, d)), delta


# Exact probabilities, at all settings of the check.
of_pair = partial(everywhere, above=True)
VALUES: dict[str, Any] = {
    "printed": partial(_claimed, _additive, section2.PRINTED_VALUE),
    "corrected": partial(_claimed, _additive, fourier.kernel_value),
}
cor2_2_printed, cor2_2 = of_pair("chen2016:cor2.2", **VALUES)
cor2_2_rare_printed, cor2_2_rare = of_pair("chen2016:cor2.2-rare", **VALUES)
lem2_2_printed, lem2_2 = of_pair(
    "chen2016:lem2.2", printed=_inverse, corrected=_relative
)
lem3_2_printed, lem3_2 = everywhere(
    "chen2016:lem3.2", printed=_squares, corrected=_squares
)
lem3_2_rare_printed, lem3_2_rare = everywhere(
    "chen2016:lem3.2-rare", printed=_squares, corrected=_squares
)
lem3_2_proof = everywhere("chen2016:lem3.2-proof", printed=_massart)
lem3_3_proof_printed, lem3_3_proof = everywhere(
    "chen2016:lem3.3-proof", printed=_truncated_as_printed, corrected=_truncated
)
thm3_1 = everywhere("chen2016:thm3.1", corrected=_success)
eq5_printed, eq5 = everywhere("chen2016:eq5", printed=_squares, corrected=_squares)
lem4_2_printed, lem4_2 = of_pair(
    "chen2016:lem4.2", printed=_relative, corrected=_relative
)
lem4_2_rare_printed, lem4_2_rare = everywhere(
    "chen2016:lem4.2-rare",
    printed=partial(_claimed, _limit, section4.PRINTED_LIMIT),
    corrected=partial(_claimed, _limit, section4.NEAR_LIMIT),
)
lem4_2_proof_printed, lem4_2_proof = everywhere(
    "chen2016:lem4.2-proof", printed=_two_exponents, corrected=_near_squares
)
pair = of_pair("jaxkern:relative-distances-pair", corrected=_relative)
pair_rare = everywhere(
    "jaxkern:relative-distances-rare",
    corrected=partial(_claimed, _limit, section4_ours.SHARP_PAIR),
)
given_pair = of_pair(
    "jaxkern:relative-distances-given-pair",
    corrected=partial(_claimed_in_floats, _relative),
)
values_given = of_pair(
    "jaxkern:kernel-values-given", corrected=partial(_claimed_in_floats, _value)
)
cor5_1_proof_printed, cor5_1_proof = everywhere(
    "chen2016:cor5.1-proof", printed=_energies_as_printed, corrected=_energies
)


def _log_mgf(s: Ball, r: Ball) -> Ball:
    """ln E exp(s (X - E X))."""
    return _moments(s, r, 0)[0].log() - s * _mean(r)


def _log_mgf_as_printed() -> Sides:
    r = ball("0.3")
    s = ball("0.499") / (r * r)
    right = bound(fourier.log_mgf, s=s, distance=r, as_printed=True)
    return _log_mgf(s, r), right.value


def _log_mgf_of_proof() -> Sides:
    r = ball(0.5)
    y = ball(0.25)
    quartic = (r * r / 4 - 1) / 8
    return _log_mgf(y / (r * r), r), quartic - (1 + y).log() / 2


def _gradient_as_printed() -> Sides:
    distance = ball("0.1")
    right = bound(
        fourier.gradient,
        frequency_energy=1,
        distance=distance,
        dim=1,
        num_frequencies=1,
        as_printed=True,
    )
    return 2 * distance.sin(), right.value


def _truncation() -> Sides:
    """r^2 w^4 / 12 = (w r)^4 / (12 r^2) with L = ln 10, (w r)^2 = eps / L and r^2 = eps / (4 L^2)."""
    eps = ball("0.1")
    log = ball(10).log()
    return (eps / log) ** 2 / (12 * eps / (4 * log**2)), eps / 12


def _expansions() -> Sides:
    image = 1 - ball(1).cos()
    return image / (1 - (-ball(0.5)).exp()), image / (1 - ball(0.5).exp())


# Counterexamples: each meets every hypothesis, as its note says.
sec1_1 = partial(
    equal,
    lambda: ((-ball(0.5)).exp() / 2, (-ball(0.5)).exp()),
    "E <phi(x), phi(y)> and K at |x - y| = sigma",
)
sec3_taylor = partial(
    at_most, lambda: (1 - ball(0.25), 2 - 2 * ball(0.5).exp()), "|Delta| = 1"
)
sec3_expansions = partial(equal, _expansions, "t = w = |Delta| = 1")
lem3_3_display = partial(
    at_most,
    _truncation,
    "eps = delta = .1, |Delta| half of what it may be, all |w_i| |Delta| at their limit",
)
sec3_1_norms = partial(
    equal, lambda: (ball("0.1"), ball("0.1").sqrt()), "t = w = |x - y| = 1, lambda = .1"
)
lem4_1 = partial(at_most, _log_mgf_as_printed, "|Delta| = .3, s r^2 = .499")
lem4_1_taylor = partial(at_most, lambda: (ball(1).exp(), Fraction(5, 2)), "x = -1")
lem4_1_proof = partial(at_most, _log_mgf_of_proof, "|Delta| = .5, s |Delta|^2 = 1/4")
lem4_2_mean = partial(
    equal, lambda: (_moments(ball(0), 1, 1)[1], 2 * _mean(1)), "|Delta| = 1"
)
lem5_1 = partial(at_most, _gradient_as_printed, "t = d = w = 1, Delta = .1")
lem5_1_proof = partial(
    equal,
    lambda: (2 * ball(2).sqrt() * ball("0.3").sin(), 0),
    "w = (1, -1), Delta = (.4, .1)",
)


# Inequalities over their whole range. `_squared` and the like take power series as well as balls.
def _squared(x: Any) -> Any:
    """D^2 at |Delta|^2 = x."""
    return 2 - 2 * (-x / 2).exp()


def _from_zero(f: Callable[[Any], Any], end: Any, order: int) -> Enclosed:
    """Prove f > 0 from 0, where f vanishes with so many derivatives, to an end."""
    return prove(f, [(0, end)], zeros={0: (0, order)})


def sec3_taylor_corrected() -> Enclosed:
    """0 <= x - D^2 <= x^2 / 4 for x = |Delta|^2 <= 4; beyond, D^2 <= 2 < x and x - x^2 / 4 < 0."""
    upper = _from_zero(lambda x: x - _squared(x), 4, 2)
    lower = _from_zero(lambda x: x * x / 4 - x + _squared(x), 4, 3)
    return together([upper, lower])


def _above_lower(x: Any, as_printed: bool = False) -> Any:
    """D^2 less the square of its lower bound, which is c |Delta| with the same c at every |Delta| <= 1."""
    lower = bound(fourier.distance_lower, distance=1, as_printed=as_printed)
    return _squared(x) - lower.value * lower.value * x


def eq2_printed() -> Enclosed:
    """D >= .86 |Delta| for |Delta| <= 1, and the right side of (2)."""
    lower = _from_zero(partial(_above_lower, as_printed=True), 1, 1)
    return together([lower, sec3_taylor_corrected()])


def eq2() -> Enclosed:
    """D >= D(1) |Delta| for |Delta| <= 1, where both sides agree at 0 and 1."""
    near = _from_zero(_above_lower, ball(0.5), 1)
    far = prove(_above_lower, [(ball(0.5), 1)], zeros={0: (1, 1)})
    return together([near, far, sec3_taylor_corrected()])


def _cosine() -> list[Enclosed]:
    """0 <= z^2 - (2 - 2 cos z) <= z^4 / 12 for |z| <= 3.5; beyond, z^2 > 4, and z^2 - z^4 / 12 < 0."""
    upper = _from_zero(lambda z: z * z - 2 + 2 * z.cos(), 3.5, 4)
    lower = _from_zero(lambda z: 2 - 2 * z.cos() - z * z + z * z * z * z / 12, 3.5, 6)
    return [upper, lower]


def eq4() -> Enclosed:
    """(4), summand by summand at z = w_i |Delta|, with the bounds of D^2 for every length below 2.

    The proof of Lemma 4.1: X <= (w r)^2 / 2, so that E e^(s X) <= (1 - s r^2)^(-1/2), and E X >= r^2 / 2 - r^4 / 8.
    """
    return together([*_cosine(), sec3_taylor_corrected()])


def lem4_1_taylor_corrected() -> Enclosed:
    """For x >= 2, 1 - x + x^2 / 2 >= 1."""
    exponential = _from_zero(lambda x: 1 - x + x * x / 2 - (-x).exp(), 2, 3)
    logarithm = _from_zero(lambda x: (1 + x).log() - x + x * x / 2, ball(0.5), 3)
    return together([exponential, logarithm, *_cosine()])


def _inverse_error(e: Any, S: Any, sign: int) -> Any:
    e = sign * e
    return sign * ((1 + e) * (1 + e) * (S - e / 2) - S)


def lem2_2_proof() -> Enclosed:
    """|D / Dhat - 1| <= eps where Dhat^2 = S +- eps / 2, for every S = D^2 in [.786, 2] and 0 < eps <= .1."""
    box = [(0, ball("0.1")), (ball("0.786"), 2)]
    far = prove(partial(_inverse_error, sign=1), box, zeros={0: (0, 1)})
    near = prove(partial(_inverse_error, sign=-1), box, zeros={0: (0, 1)})
    return together([far, near])


def sec1_1_variance() -> Enclosed:
    """(1 - k)^2 <= 1 - k + k^2 / 2 for k = K^2: m times the variances of paired and of shifted features."""
    return _from_zero(lambda k: 1 - k + k * k / 2 - (1 - k) * (1 - k), 1, 1)


def _gradient_excess(z: Any) -> Any:
    """The bound of two frequencies, w and 0, over |w|, less the norm of the gradient, |sin z| at z = |w| |Delta|."""
    right = bound(
        fourier.gradient, frequency_energy=1, distance=1, dim=1, num_frequencies=2
    )
    return right.value * z - z.sin()


def lem5_1_corrected() -> Enclosed:
    """|sin z| <= |z|, and so |sum sin <w_i, Delta> w_i| <= sum |w_i|^2 |Delta|; beyond 1 since |sin z| <= 1."""
    return _from_zero(_gradient_excess, 1, 3)
