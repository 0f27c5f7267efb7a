"""Every bound at numbers: a table of its arguments, its literal formula, and the edges of its hypotheses.

A row is `name | arguments | value | failure probability | hypotheses`; "same" is what stands there in the row above. An
edge is in force, or to be left out where the sign has no equals sign, or known to rounding only where it has a tilde.
Ranks are whole numbers: they are tried one beside an edge, other numbers 1e-9 beside it.
"""

import inspect
import math
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import integrate, optimize, special
from scipy.stats import chi2, invgamma, ncx2

from jaxkern.bounds import concentration, fourier, sketching, streaming

STEP = 1e-9


class Case(NamedTuple):
    bound: object
    words: dict
    value: float
    failure: float
    edges: list
    """(word, sign, edge)"""


def bound_of(module, name):
    """Return a bound by its name, to which a case, "printed" and "centered" may be added."""
    function, flag = (
        getattr(module, name.split()[0]),
        {"printed": "as_printed", "centered": "centered"},
    )
    last = flag.get(name.split()[-1])
    return partial(function, **{last: True}) if last else function


def cases(module, text, names):
    """Return the cases of a table; names are those of its expressions, beside those of `math`."""
    known, table, above = vars(math) | names, {}, [""] * 5
    for row in text.strip().replace("\n    ", " ").split("\n"):
        cells = [cell.strip() for cell in f"{row} | | |".split("|")[:5]]
        above = name, words, value, failure, hypotheses = [
            old if cell == "same" else cell
            for cell, old in zip(cells, above, strict=True)
        ]
        value = eval(value, known)
        edges = edges_of(hypotheses, known | {"value": value})
        table[name] = Case(
            bound_of(module, name),
            eval(f"dict({words})", known),
            value,
            eval(failure, known),
            edges,
        )
    return table


def edges_of(hypotheses, known):
    """Return the conditions of a text such as "eps > 0; distance >= 1"."""
    parts = (
        condition.split(None, 2) for condition in hypotheses.split(";") if condition
    )
    return [(word, sign, float(eval(edge, known))) for word, sign, edge in parts]


def wrong_edges(bound, words, edges):
    """Return the edges at which, just inside and just outside of which, a bound does not say what its hypotheses do."""
    wrong = []
    for word, sign, edge in (
        edges_of(edges, vars(math)) if isinstance(edges, str) else edges
    ):
        step = 1 if word == "rank" else STEP * max(abs(edge), 1)
        outward = step if sign[0] == "<" else -step
        tried = [
            (edge + outward, False),
            (edge - outward, True),
            (edge, sign.endswith("=")),
        ]
        for value, allowed in tried[: 2 if sign.endswith("~") else 3]:
            if bound(**words | {word: value}).valid is not allowed:
                wrong.append((word, value, allowed))
    return wrong


def kl(u):
    return (u - 1 - math.log(u)) / 2


def both_tails(t, eps):
    return math.exp(-t * kl((1 + eps) ** 2)) + math.exp(-t * kl((1 - eps) ** 2))


def pairs(n):
    return n * (n - 1) / 2


def stop_loss(t, eps):
    """Return the two bounds of `relative_distances_sharp`, with the means by quadrature."""
    law = chi2(t, scale=1 / t)
    u, v = (1 + eps) ** 2, (1 - eps) ** 2
    c = max(u - 2 * u / (t * (u - 1)), 0)
    x = np.linspace(c, c + 40 * law.std(), 400_001)
    above = np.trapezoid(law.sf(x), x) / (u - c)
    c = v + 2 * v / (t * (1 - v))
    x = np.linspace(0, c, 400_001)
    return above + np.trapezoid(law.cdf(x), x) / (c - v)


def ball_failure(eps, t, d, M, tau, near, q, c):
    """With the mean of exp(s X) by a sum over the frequency, and the mass of a neighbourhood by quadrature."""
    u, v = (1 + eps) ** 2, (1 - eps) ** 2
    lowest, B = v + near * (1 - v), math.sqrt(d) + math.sqrt(2 * (tau + math.log(t)))
    rho2 = min(12 / B**2 * (1 - v / lowest), 4 * near * (1 - 1 / u))
    highest, w = u * (1 - rho2 / 4), np.linspace(-12, 12, 4001)
    weights, z = (
        np.exp(-(w**2) / 2) / np.exp(-(w**2) / 2).sum(),
        t / 2 * (1 / lowest - 1) * (highest - lowest),
    )
    total = math.exp(-tau)
    for value, tilt in ((highest, t * (highest - 1) / 2), (lowest, z)):
        a = (d - 1) / 2
        sphere = (
            math.gamma(d / 2)
            / math.sqrt(math.pi)
            / tilt**a
            * (special.gammainc(a, tilt) if a else 1)
        )
        total += math.exp(-t * kl(value)) / sphere
    inner, outer = M, M
    while outer**2 > rho2:
        low, high = (1 - c) * inner, outer + c * inner
        mean, peak = 1 - math.exp(-(low**2) / 2), min(max(math.sqrt(3), low), high)
        for ratio, sign, curve in (
            (u, 1, math.exp(-(low**2) / 2)),
            (v, -1, (peak**2 - 1) * math.exp(-(peak**2) / 2)),
        ):
            Y = sign * ((1 - np.cos(low * w)) / mean - ratio)
            found = optimize.minimize_scalar(
                lambda s, Y=Y: special.logsumexp(s * Y, b=weights),
                bounds=(0, 60),
                method="bounded",
                options={"xatol": 1e-9},
            )
            k = t * found.x * (highest + ratio * curve) / (2 * mean)
            x = min(c * inner, math.sqrt((d / 2 + 1) / k))
            mass = (
                d
                * integrate.quad(
                    lambda y, k=k: y ** (d - 1) * math.exp(-k * y**2), 0, x
                )[0]
            )
            shell = (outer + x) ** d - (inner - x) ** d
            total += (
                (0.5 if outer > inner else 1) * shell / mass * math.exp(t * found.fun)
            )
        inner, outer = q ** (math.ceil(math.log(inner) / math.log(q) - 1e-9) - 1), inner
    return total


def radius_literal(eps, t, d, tau):
    b = (math.sqrt(d) + math.sqrt(2 * tau)) / math.sqrt(t)
    B = math.sqrt(d) + math.sqrt(2 * (tau + math.log(t)))
    return math.sqrt(
        min(
            4 * (1 - ((1 + b) / (1 + eps)) ** 2),
            12 * (1 - ((1 - eps) / (1 - b)) ** 2) / B**2,
        )
    )


def matern_failure(eps, t, d, M, nu, corr, Q, x, tau, inner, q):
    """Theorem M of chen2016, with the moments of the scale by quadrature."""
    scale = invgamma(nu, scale=nu)
    v, p = np.linspace(-8, 60, 400_001), min(2, nu - 0.25)  # logarithms of scales
    weights = scale.pdf(np.exp(v)) * np.exp(v) * (v[1] - v[0])
    mean, second = (
        weights @ np.minimum(np.exp(v), Q),
        Q ** (2 - p) * weights @ np.exp(p * v),
    )
    count = math.log((1 + x) ** 2 * Q / mean / (2 * x), 1 + x) + 2
    failure = t * scale.sf(Q) + math.exp(-tau)
    failure += (
        2
        * count
        * math.exp(-t * x**2 / (2 * (second / mean**2 - 1 + Q / mean * x / 3)))
    )
    low = math.sqrt(mean / scale.mean() * (1 - x) / (1 + x))
    e = min((1 + eps) / (1 + x) - 1, 1 - (1 - eps) / low)
    e1 = inner * e
    xi = (e - e1) / 4
    L = (1 + e1) / (1 - xi)
    eta = (
        low
        * math.sqrt(2 - 2 * corr)
        / math.sqrt((1 + x) * mean)
        * (e - e1)
        / (1 + e1 + L)
    )
    B2 = (math.sqrt(d) + math.sqrt(2 * (tau + math.log(t)))) ** 2
    rho2 = (
        min(
            4 * (1 - (L / (1 + e)) ** 2),
            12 / B2 * (1 - ((1 - e) / (1 - e1 - xi * L)) ** 2),
        )
        / Q
    )
    nets = (1 + 2 / xi) ** d + (1 + 2 * max(M, 1) / eta) ** d
    nets += (max(0, math.log(min(M, 1) / math.sqrt(rho2), q)) + 1) * (
        1 + 2 * q / eta
    ) ** d
    rates = (((1 + s * e1) ** 2 - 1) / 2 - math.log(1 + s * e1) for s in (1, -1))
    return failure + nets * sum(
        math.exp(-t * (1 - x) * mean / Q * rate) for rate in rates
    )


def net_literal(eps, t, d, M, tau, share):
    b = (math.sqrt(d) + math.sqrt(2 * tau)) / math.sqrt(t)
    xi = (1 - share) * eps / (1 + b + math.exp(-0.5))
    return 2 * (1 + 2 * M / xi) ** d * math.exp(-t * (share * eps) ** 2 / 2)


def hadamard_of(k, eps, d, R):
    log_n = d * math.log(R / math.sqrt(2 * math.log(1 / eps)))
    return (
        k
        / math.e
        * math.exp((min(log_n, -2 * k * math.log(2 * eps)) - math.log(2)) / k)
        - k
        + 1
    )


def hadamard(eps, d, R):
    return max(1, *[hadamard_of(k, eps, d, R) for k in range(1, 33)])


def simplex(t, eps, n):
    """Of chi-square numbers |U|^2 and |V|^2 with V = U / 2 + sqrt(3 / 4) G: by quadrature over the first."""
    u, v = t * (1 + eps) ** 2, t * (1 - eps) ** 2
    p = chi2.sf(u, t) + chi2.cdf(v, t)

    def density(x):
        return chi2.pdf(x, t) * (
            ncx2.sf(u * 4 / 3, t, x / 3) + ncx2.cdf(v * 4 / 3, t, x / 3)
        )

    both = sum(
        integrate.quad(density, *ends, epsabs=0, limit=200)[0]
        for ends in ((u, 2 * u), (v / 2, v))
    )
    return 1 - math.comb(n, 2) * p / (
        1 + math.comb(n - 2, 2) * p + 2 * (n - 2) * both / p
    )


FOURIER = cases(
    fourier,
    """
kernel_value | eps=0.2, num_frequencies=300 | 0.2 | 2 * exp(-300 * 0.04 / 2) | eps > 0
kernel_value printed | same | 0.2 | 2 * exp(-300 * 0.04 / 8) | eps > 0; eps < 0.5
kernel_values | eps=0.2, num_frequencies=700, num_points=30 | 0.2 | 870 * exp(-14) | eps > 0
kernel_values_shifted | eps=0.4, num_features=700, num_points=30 | 0.4 | 930 * exp(-14) | eps > 0
segment | num_frequencies=1200, distance=0.1, tau=4 | 0.2 | 4 * exp(-4) |
    num_frequencies > 48; tau >~ log(4); distance <~ sqrt(0.2) / 4
far_distance | eps=0.09, num_frequencies=9000, distance=1 | 0.09 |
    2 * exp(-9000 * (0.09 * (1 - exp(-0.5))) ** 2 / 2) | eps > 0; eps < 1; distance >= 1
far_distance printed | eps=0.09, num_frequencies=90000, distance=1 | 0.09 | 2 * exp(-90000 * (0.09 / 4) ** 2 / 8) |
    eps > 0; eps < 0.1; distance >= 1
distance_lower | distance=0.5 | 0.5 * sqrt(2 - 2 / sqrt(e)) | 0 | distance <= 1
distance_lower printed | same | 0.43 | 0 | same
squared_distance_lower | eps=0.1, distance=0.5 | 0.225 | 0 | distance <= 2 * sqrt(0.1)
ratio_upper | second_moment=1.2, distance=0.8 | 1.2 / (1 - 0.16) | 0 | distance < 2
ratio_upper printed | same | 1.2 / (1 - 0.32) | 0 | distance <= 1
ratio_lower | second_moment=1.2, fourth_moment=3.5, distance=0.8 | 1.2 - 0.64 / 12 * 3.5 | 0 | distance >= 0
chi_square_mean | eps=0.3, num_frequencies=200 | 0.3 | exp(-200 * kl(1.3)) + exp(-200 * kl(0.7)) | eps > 0; eps < 1
chi_square_mean printed | eps=0.3, num_frequencies=900 | 0.3 | 2 * exp(-900 * 0.09 / 8) | eps > 0; eps < 1
success_limit | eps=0.1, num_frequencies=800, num_points=100 |
    (chi2.cdf(800 * 1.21, 800) - chi2.cdf(800 * 0.81, 800)) ** 50 | 0 | eps > 0; eps < 1; num_points >= 2
simplex_success_limit | eps=0.1, num_frequencies=800, num_points=100 | simplex(800, 0.1, 100) | 0 |
    eps > 0; eps < 1; num_points >= 2
log_mgf | s=0.9, distance=0.7 | -log(1 - 1.8 * (1 - exp(-0.245))) / 2 - 0.9 * (1 - exp(-0.245)) | 0 |
    s <~ 0.5 / (1 - exp(-0.245))
log_mgf printed | same | 0.81 * 0.7**4 / 4 | 0 | s >= 0; s <~ 0.5 / 0.49
sub_exponential | eps=0.5, mean=0.3, p=0.1, q=0.6, num_frequencies=90 | 0.5 |
    2 * exp(-90 * min(0.0225 / 0.2, 0.15 / 1.2)) | eps > 0; p > 0; q > 0
sub_exponential far | eps=0.5, mean=0.3, p=0.01, q=0.6, num_frequencies=90 | 0.5 | 2 * exp(-90 * 0.15 / 1.2)
near_distance | eps=0.2, num_frequencies=300, distance=0.6 | 0.2 | both_tails(300, 0.2) |
    eps > 0; eps < 1; distance > 0
near_distance printed | eps=0.2, num_frequencies=900, distance=0.6 | 0.2 |
    2 * exp(-900 * 0.04 / 6 * ((2 - 2 * exp(-0.18)) / 0.36) ** 2) | eps > 0; eps < 1; distance > 0; distance <= 1
relative_distances_closed_form | eps=0.2, num_frequencies=600, num_points=300 | 0.2 |
    2 * pairs(300) * exp(-600 * 0.04 * 0.81) | eps > 0; eps < 1; num_points >= 1
relative_distances | same | 0.2 | pairs(300) * both_tails(600, 0.2) | same
relative_distances_sharp | eps=0.2, num_frequencies=400, num_points=300 | 0.2 | pairs(300) * stop_loss(400, 0.2) |
    eps >= 1e-4; eps < 1; num_points >= 1
relative_distances_given | eps=0.2, num_frequencies=400, squared_distances=[0.0], pairs=[pairs(300)] | 0.2 |
    pairs(300) * stop_loss(400, 0.2) | eps >= 1e-4; eps < 1
kernel_values_given | eps=0.01, num_frequencies=9, squared_distances=[0.0016], pairs=[3.0] | 0.01 |
    3 * exp(-9 * kl(1 + 0.01 / (1 - exp(-0.0008)))) | eps >= 1e-4
gradient | frequency_energy=50.0, distance=0.5, dim=4, num_frequencies=20 | 2 / 20 * 25 | 0 | distance >= 0
gradient printed | same | 2 * 25 | 0 | same
lipschitz_squared | radius=0.5, dim=4, num_frequencies=100, tau=2 | (1 + (2 + 2) / 10) ** 2 | exp(-2) | tau > 0
ball | eps=0.2, num_frequencies=300, dim=2, diameter=10, tau=5, near=0.1, shell=1.5, reach=0.15 | 0.2 |
    ball_failure(0.2, 300, 2, 10, 5, 0.1, 1.5, 0.15) | eps < 1; tau > 0; near > 0; near < 1; reach > 0; reach <= 0.5
ball_matern | eps=0.4, num_frequencies=1e5, dim=2, diameter=3, nu=2.5, correlation=0.524, truncation=400, scales=0.03,
    tau=6, inner=0.8, shell=2 | 0.4 | matern_failure(0.4, 1e5, 2, 3, 2.5, 0.524, 400, 0.03, 6, 0.8, 2) |
    eps < 1; scales > 0; tau > 0; diameter > 0; inner > 0; inner < 1; shell > 1; correlation > 0; correlation < 1
ball_matern rough | eps=0.4, num_frequencies=1e10, dim=1, diameter=0.5, nu=1.5, correlation=0.4834, truncation=1e7,
    scales=0.03, tau=6, inner=0.8, shell=2 | 0.4 |
    matern_failure(0.4, 1e10, 1, 0.5, 1.5, 0.4834, 1e7, 0.03, 6, 0.8, 2)
vanishing_ball of few | eps=0.99, num_frequencies=2, dim=1, tau=0.01 | radius_literal(0.99, 2, 1, 0.01) | 3 * exp(-0.01)
vanishing_ball | eps=0.3, num_frequencies=900, dim=2, tau=5 | radius_literal(0.3, 900, 2, 5) | 3 * exp(-5) |
    eps < 1; eps >~ (sqrt(2) + sqrt(10)) / 30; tau > 0
ball_additive | eps=0.3, num_frequencies=600, dim=2, diameter=10, tau=5 | 0.3 |
    exp(-5) + min(net_literal(0.3, 600, 2, 10, 5, i / 40) for i in range(2, 39)) | eps > 0; tau > 0; diameter > 0
ball_additive wide | eps=0.3, num_frequencies=600, dim=6, diameter=10, tau=5 | 0.3 |
    exp(-5) + min(net_literal(0.3, 600, 6, 10, 5, i / 40) for i in range(2, 39))
dimension_limit | eps=0.05, dim=10, radius=100 | hadamard(0.05, 10, 100) | 0 |
    eps > 0; eps < 0.25; radius >~ sqrt(2 * log(20))
gram_spectral_shifted | eps=0.3, num_features=400, num_points=50 | 0.3 | 100 * exp(-0.09 * 400 / 2.4) | eps > 0
gram_spectral_shifted printed | eps=0.3, num_features=900, num_points=50 | 0.3 | 100 * exp(-0.09 * 900 / 11.4)
gram_spectral_paired | eps=0.3, num_frequencies=200, num_points=50 | 0.3 | 100 * exp(-0.09 * 200 / 0.7) | eps > 0
gram_spectral_paired_all_n | eps=0.3, num_frequencies=100 | 0.3 | 40 * exp(-0.09 * 100 / 0.7) |
    eps >= 1 / 20 + 1 / 300
gram_frobenius_shifted | num_features=400, tau=3 | (sqrt(1.5) + 2 * sqrt(3)) / 20 | exp(-3) | tau > 0
gram_frobenius_paired | num_frequencies=400, tau=3, variance=0.5 | (sqrt(0.5) + sqrt(3)) / 20 | exp(-3) | tau > 0
gram_frobenius_paired_bernstein | eps=0.3, num_frequencies=100, variance=0.5 | 0.3 |
    2 * exp(-9 / (1 + 0.2 * sqrt(2))) | eps > 0
quadratic_form_shifted | eps=0.1, num_features=1000 | 0.1 | 2 * exp(-8.23) | eps > 0
quadratic_form_shifted printed | eps=0.1, num_features=200 | 0.1 | 2 * exp(-4)
quadratic_form_paired | eps=0.1, num_frequencies=200 | 0.1 | 2 * exp(-4) | eps > 0
""",
    globals(),
)

STREAMING = cases(
    streaming,
    """
frequent_directions | residual_energy=12.0, sketch_size=11, rank=2 | 12 / 3 | 0 | rank >= 0; rank < 5
frequent_directions printed | residual_energy=12.0, sketch_size=10, rank=2 | 12 / 8 | 0 | rank >= 0; rank < 10
frequent_directions_rowwise | same | 12 / 8 | 0 | same
frequent_directions_buffered | same | 12 / 9 | 0 | rank >= 0; rank < 11
leftover_rows | energy=60.0, sketch_size=11, row_energy=2 | 12 + 22 | 0 | energy >= 0; sketch_size >= 2
projection | num_points=100, sketch_size=21 | 20 | 0 | num_points >= 1; sketch_size >= 2
projection printed | num_points=100, sketch_size=20 | 10 | 0
projection_buffered | num_points=100, sketch_size=19 | 5 | 0 | num_points >= 1; sketch_size >= 1
streaming_gram | eps=0.2, num_features=900, num_points=40, sketch_size=21 | 0.4 |
    80 * exp(-0.04 * 900 / (2 + 0.8 / 3)) | eps > 0; sketch_size >= 2
streaming_gram printed | eps=0.2, num_features=900, num_points=40, sketch_size=20 | 0.3 | 80 * exp(-0.04 * 900 / 10.6)
streaming_gram_buffered | eps=0.2, num_frequencies=200, num_points=40, sketch_size=19 | 0.25 |
    40 * exp(-0.04 * 200 / (0.5 + 0.4 / 3)) | eps > 0; sketch_size >= 1
frobenius_from_spectral | spectral=3.0, num_points=16 | 12 | 0 | spectral >= 0
best_rank | tail=1.0, spectral=2.0, rank=4 | 1 + 4 * sqrt(5) | 0 | rank >= 0
best_rank printed | same | 5 | 0
nystrom_best_rank | num_landmarks=100, rank=4, tau=4 | 0.6 | exp(-4) | tau >= 0; rank >= 1; rank <= 100
nystrom_coherence | eps=0.5, coherence=1.5, rank=2, num_landmarks=90, num_points=180, tau=3 - log(2) | 5 |
    2 * exp(-3) | num_landmarks >~ 72; num_landmarks <= 180; eps < 1; rank >= 1
nystrom_frobenius_mean | mean_square=0.3, num_landmarks=10 | 0.07 | 0 | mean_square <= 1
nystrom_spectral | eps=0.2, num_landmarks=200 | 0.2 | 20 * exp(-8 / (0.5 + 0.4 / 3)) |
    eps >= 1 / (2 * sqrt(200)) + 1 / 600
pivoted_cholesky_mean | eps=0.5, rank=3, tail=0.25, num_landmarks=13 | 0.375 | 0 |
    num_landmarks >~ 6 + 3 * log(8); rank >= 1; tail <= 1
""",
    {},
)


def bell(x, v=3.0, alpha=1.5):
    """Return the exponent of Lemma 5 by maximising over s."""
    return max(s * x - (s * v) ** 2 / 2 for s in np.linspace(0, 1 / alpha, 100_001))


def clustering(constant, kmeans, gamma2, R=3, vbar2=1e-5):
    """Return C1 F(gamma2) for lipschitz 1, noise 1.5, op_norm 1.2, dim 40000, n = 500 and t = 1.7."""
    factor = (
        16
        * R
        / gamma2
        * (constant * 1.5**2 * 1.2 / 40_000 * (1 + 1.7 / math.sqrt(500)) ** 2 + vbar2)
    )
    return 4 * (1 + kmeans) ** 2 * factor


def population(constant, weight):
    """Return the right-hand side of Corollary 1, the last term of which has a weight."""
    spread = constant * 2.25 * 1.2 / 400_000 * (1 + 2.5 / math.sqrt(500)) ** 2
    return 2 * 25 * 16 * 3 / 4 * (spread + 1e-5) + weight * EXTRA


EXTRA = 18 * 0.01**2 * 2.5 / (math.sqrt(0.25) * 4) / math.sqrt(500)
GAMMAS = dict(gamma2=4.0, gamma_tilde2=1.3)
MODEL = dict(
    GAMMAS,
    **dict(
        num_clusters=3,
        lipschitz=1,
        noise=1.5,
        op_norm=1.2,
        dim=40_000,
        num_points=500,
        t=1.7,
    ),
    **dict(vbar2=1e-5, kmeans_factor=1.5),
)
POPULATION = MODEL | dict(t=2.5, dim=400_000, bound=0.01, min_share=0.25)
OPERATOR = GAMMAS | dict(
    num_clusters=3,
    lipschitz=1,
    omega=1.5,
    scale=0.004,
    num_points=400,
    t=1.7,
    mean_gap=0.03,
)
EUCLIDEAN = dict(
    gamma2=4e5,
    gamma_tilde2=9e4,
    num_clusters=3,
    mean_gap=0.3,
    scale=0.5,
    mean_norm=30,
    mean_rank=4,
)
EUCLIDEAN |= dict(dim=16, num_points=25, u=3)
EMPIRICAL = dict(bound=1.5, min_share=0.25, num_points=100, num_clusters=3, t=2.5)
SPHERES = dict(radius=1.5, other_radius=3, noise=1.5, lengthscale=1.8, dim=20)
LC = dict(lipschitz=0.7, omega=1.3, scale=0.4)
KERNEL = dict(LC, num_points=50, t=1.5)
LWS = 0.7 * 1.3 * 0.4
S2 = 1 + 2 * 1.5**2 / (20 * 1.8**2)
UU, X = S2**-10 * math.exp(-11.25 / (2 * S2 * 1.8**2)), 4.5 / (S2 * 1.8**2)
W6, X6 = math.exp(-11.25 / (2 * 1.8**2)), 4.5 / 1.8**2

CONCENTRATION = cases(
    concentration,
    """
gaussian_lipschitz | lengthscale=2 | 1 / (2 * sqrt(e)) | 0 | lengthscale > 0
gaussian_lipschitz printed | same | sqrt(2) / (2 * e) | 0 | same
gram_displacement | lipschitz=0.7, num_points=50, displacement=3 | 2 * sqrt(50) * 2.1 | 0 | displacement >= 0
gram_displacement_distance | same | 10 * 2.1 | 0 | same
pair_variance | LC, c=0.5 | 4 * (1 + log(2)) * LWS**2 | 0 | c > 0
pair_variance printed | same | 8 * LWS**2 | 0 | same
pair_variance_lc | LC | 2 * LWS**2 | 0 | scale >= 0
diagonal_variance | LC, c=0.5 | 8 * (1 + log(2)) * LWS**2 | 0 | c > 0
diagonal_variance printed | same | 8 * LWS**2 | 0 | same
diagonal_variance_lc | LC | 4 * LWS**2 | 0 | scale >= 0
frobenius_mean_square | LC, num_points=50, c=0.5 | 4 * (1 + log(2)) * 1.02 * LWS**2 | 0 | c > 0; num_points >= 1
frobenius_mean_square printed | same | 8 * LWS**2 | 0
frobenius_mean | same | LWS * sqrt(4 * (1 + log(2)) * 50 * 51) | 0 | c > 0; num_points >= 1
frobenius_mean printed | same | 2 / sqrt(0.5) * 50 * LWS | 0
frobenius_mean_lc | LC, num_points=50 | LWS * sqrt(2 * 50 * 51) | 0 | num_points >= 1
gaussian_pair_variance | squared_distance=3, noise_variance=0.5, lengthscale=4, dim=6 |
    (17 / 16) ** -3 * exp(-3 / 17) - (33 / 32) ** -6 * exp(-6 / 33) | 0 | noise_variance >= 0
lipschitz_kernel | KERNEL | LWS * (sqrt(2 * 50 * 51) + 2 * sqrt(50) * 1.5) | exp(-1.125) | t >= 0; num_points >= 1
lipschitz_kernel printed | KERNEL, c=0.3 | 2 * LWS * (50 / sqrt(0.3) + sqrt(50) * 1.5) | exp(-0.3 * 2.25) |
    t >= 0; num_points >= 1
distance_kernel | KERNEL, mean_scale=0.3 | 0.91 * (0.3 * sqrt(2 * 50 * 49) + 0.4 * 10 * 1.5) | exp(-1.125) |
    t >= 0; num_points >= 1
distance_kernel_from_variance | KERNEL, total_variance=36 | 6 + LWS * 10 * 1.5 | exp(-1.125) | t >= 0; num_points >= 1
concentrated_data | KERNEL, c=0.3 | LWS * (sqrt(2 * (1 + log(2)) * 50 * 51 / 0.3) + 2 * sqrt(50) * 1.5) |
    exp(-0.3 * 2.25) | t >= 0; c > 0; num_points >= 1
concentrated_data printed | same | 2 * LWS * (50 / sqrt(0.3) + sqrt(50) * 1.5) | exp(-0.3 * 2.25) | same
deviation | same | 2 * sqrt(50) * LWS * 1.5 | exp(-0.3 * 2.25) | t >= 0; c > 0
lower_limit | lipschitz=0.7, scale=0.4, num_points=24 | 0.84 | exp(-3) | num_points >= 8
gaussian_kernel | noise=1.5, lengthscale=2, dim=9, num_points=50, t=1.5 |
    0.25 / sqrt(e) * (sqrt(2 - 2 / 50) + 3 / sqrt(50)) | exp(-2.25) | t >= 0; num_points >= 1
gaussian_kernel printed | same | 4 / e * 0.25 * (1 + 1.5 / sqrt(50)) | exp(-2.25) | same
anisotropic_noise | lipschitz=0.7, op_norm=4, dim=9, num_points=50, t=1.5 |
    0.7 * 2 / 3 * (sqrt(2 * 51 / 50) + 2 * sqrt(2) * 1.5 / sqrt(50)) | exp(-2.25) | t >= 0; num_points >= 1
anisotropic_noise printed | same | 2 * sqrt(2) * 0.7 * 2 / 3 * (1 + 1.5 / sqrt(50)) | exp(-2.25) | same
inner_product_kernel | kappa=1.2, scale=0.5, mean_norm=3, dim=20, num_points=30, u=3, c1=0.1, c2=0.4 |
    2 * 0.36 * (sqrt((log(9) + 0.1) / 0.4 * 30) + 3) ** 2 | 4 * exp(-3 - 3.6) | u >= 0; num_points >= 1; c1 > 0; c2 > 0
inner_product_kernel printed | kappa=1.2, scale=0.5, mean_norm=3, dim=200, num_points=30, u=3, c1=0.5, c2=0.4 |
    2 * 0.36 * 225 * (sqrt(30) + 3) / 15 | 4 / sqrt(30) * exp(-3.6) | u >= 0; num_points >= 1; c1 > 0; c2 > 0
inner_product_gaussian | scale=0.5, mean_norm=3, mean_rank=4, dim=16, num_points=25, u=3 |
    0.25 * (8 * 8 + 64) + 3 * 10 | 3 * exp(-4.5) | u >= 0
inner_product_gaussian_any | scale=0.5, frobenius=1.5, mean_norm=3, num_points=25, tau=2 |
    (2 * sqrt(6.75 * (2 + 25 * log(9))) + 0.5 * (2 + 25 * log(9))) / (1 - 2 / 16 + 1 / 512) | exp(-2) | tau > 0
inner_product_lower | mean_norm=3, mean_rank=4, num_points=40.5, u=3 | 3 * 3 | exp(-4.5) | u >= 0; mean_rank <= 39.5
inner_product_lower_centred | scale=3, dim=64.5, num_points=17.5, u=1 | 9 * 7 * 3 | 3 * exp(-0.5) |
    u >= 0; u <= 4; dim >= 1.5; num_points >= 2.5
inner_product_lower_centred flat | scale=2, dim=4.5, num_points=401.5, u=1.5 | 4 * ((sqrt(404.5) - 1.5) ** 2 - 4.5) |
    3 * exp(-1.125)
quadratic_form | kappa=1.2, scale=0.5, mean_norm=3, dim=20, t=8, c=0.4 | 0.36 * 8 | 4 * exp(-0.4 * 64 / 45) |
    t >= 0; c > 0
quadratic_form far | kappa=1.2, scale=0.5, mean_norm=3, dim=20, t=60, c=0.05 | 0.36 * 60 | 4 * exp(-3)
quadratic_form_gaussian | scale=0.5, frobenius=1.5, mean_norm=3, tau=2 | 2 * sqrt(6.75 * 2) + 1 | 2 * exp(-2) |
    tau > 0
hanson_wright | kappa=1.2, frobenius=1.5, op_norm=1.1, mean_frobenius=3, dim=7, t=9, c=0.6 | 1.44 * 9 |
    4 * exp(-0.6 * 81 / (15.75 + 9 / 1.44)) | t >= 0; c > 0
hanson_wright far | kappa=1.2, frobenius=1.5, op_norm=1.25, mean_frobenius=3, dim=7, t=40, c=0.1 | 1.44 * 40 |
    4 * exp(-3.2)
hanson_wright_gaussian | scale=0.5, frobenius=1.5, op_norm=1.1, mean_frobenius=3, dim=7, tau=2 |
    2 * sqrt((15.75 / 16 + 4.5) * 2) + 1.1 | 2 * exp(-2) | tau > 0
sub_exponential | t=7, v=3, alpha=1.5 | 7 | 2 * exp(-bell(7)) | t >= 0; v > 0; alpha > 0
sub_exponential small | t=2, v=3, alpha=1.5 | 2 | 2 * exp(-bell(2))
sub_exponential printed | t=7, v=3, alpha=1.5 | 7 | 2 * exp(-7 / 3) | t >= 0; v > 0; alpha > 0
sub_exponential near printed | t=2, v=3, alpha=1.5 | 2 | 2 * exp(-2 / 9)
u_statistic | bound=2, num_points=26, t=1.5 | 6 / 5 | 2 * exp(-2.25) | t >= 0; num_points >= 2
u_statistic printed | same | 3 * sqrt(8 / 26) | 2 * exp(-2.25) | same
two_sample_statistic other | bound=2, num_points=18, num_others=26, t=1.5 | 1 | 2 * exp(-2.25)
two_sample_statistic | bound=2, num_points=26, num_others=18, t=1.5 | 1 | 2 * exp(-2.25) |
    t >= 0; num_points >= 1; num_others >= 1
two_sample_statistic printed | same | 2 | 2 * exp(-2.25) | same
block_means | bound=2, smallest=25, num_clusters=3, t=2.5 | 4 * (0.5 + 0.04) | 36 * exp(-6.25) |
    smallest >= 1; num_clusters >= 1; t >= 0
block_means printed | same | 3 | 36 * exp(-6.25) | same
block_variances | bound=1.5, smallest=25, num_clusters=3, t=2.5 | 11.25 * (0.5 + 0.04) | 36 * exp(-6.25) |
    smallest >= 1; num_clusters >= 1; t >= 0
block_variances printed | same | 10.125 | 36 * exp(-6.25) | same
empirical_separation | EMPIRICAL, gamma2=50 | 50 - 36 * 0.54 | 36 * exp(-6.25) |
    num_points >= 4; num_clusters >= 1; t >= 0
empirical_separation printed | same | 50 - 24 * 2.25 * 0.5 | 36 * exp(-6.25) | same
empirical_variance | EMPIRICAL, vbar2=0.1 | 0.1 + 11.25 * 0.54 | 36 * exp(-6.25) |
    num_points >= 4; num_clusters >= 1; t >= 0
empirical_variance printed | same | 0.1 + 10.125 | 36 * exp(-6.25) | same
truncation | spectral=0.3, num_clusters=3 | sqrt(15) * 0.3 | 0 | num_clusters >= 1
truncation printed | same | sqrt(24) * 0.3 | 0 | same
truncation_eigengap | spectral=0.2, eigenvalue=3, next_eigenvalue=0.4, rank=2, num_clusters=5 |
    sqrt(4 * (3 / 2.4 * 0.2) ** 2 + 3 * 0.36) | 0 | eigenvalue > 0.6; spectral >= 0; rank <= 5; rank >= 1
kmeans_step | GAMMAS, error=0.1, kmeans_factor=2.25 | 4 * 2.5**2 * 0.01 / 4 | 0 |
    gamma_tilde2 >~ 0.25; gamma_tilde2 <= 4; kmeans_factor >= 1
kmeans_step printed | same | 4 * 3.25**2 * 0.01 / 4 | 0 | gamma_tilde2 >~ 0.4225; gamma_tilde2 <= 4
misclassification | MODEL | clustering(8, 1.5, 4) | exp(-2.89) |
    t >= 0; gamma2 >= 1.3; gamma_tilde2 >~ 4 * value; kmeans_factor >= 1
misclassification printed | same | clustering(4, 1.5, 4) | exp(-2.89) |
    t >= 0; gamma2 >= 1.3; gamma_tilde2 >~ 4 * value; kmeans_factor >= 1
misclassification_population | POPULATION | population(8, 1200) | 45 * exp(-6.25) |
    t >= 0; gamma_tilde2 >~ 4 * value; kmeans_factor >= 1; min_share <= 1
misclassification_population printed | same | population(4, 1) | 45 * exp(-6.25) |
    t >= 0; gamma_tilde2 >~ 2 * population(4, 0) / (1 - 25 * EXTRA)
misclassification_operator | OPERATOR, kmeans_factor=1.44 |
    4 * 2.2**2 * 15 / 4 * (0.006 * (sqrt(2 + 2 / 400) + sqrt(2) * 3.4 / 20) + 0.03) ** 2 | exp(-2.89) |
    t >= 0; gamma2 >= 1.3; gamma_tilde2 >~ 4 * value; kmeans_factor >= 1
misclassification_operator_distance | OPERATOR, truncation_factor=8 |
    16 * 24 / 4 * (0.006 * (sqrt(2 - 2 / 400) + 3.4 / 20) + 0.03) ** 2 | exp(-2.89) |
    t >= 0; gamma2 >= 1.3; gamma_tilde2 >~ 4 * value; kmeans_factor >= 1
misclassification_operator_inner_product | EUCLIDEAN, kmeans_factor=1.44 |
    4 * 2.2**2 * 15 / 4e5 * ((0.25 * (8 * 8 + 64) + 0.5 * 2 * 30 * (8 + 2)) / 25 + 0.3) ** 2 | 3 * exp(-4.5) |
    u >= 0; gamma2 >= 9e4; gamma_tilde2 >~ 4e5 * value; kmeans_factor >= 1; truncation_factor >= 5; scale > 0
sphere_moment | u=3, dim=10 | exp(0.45) | 0 | dim >= 1; u <~ sqrt(600 * 20)
sphere_moment printed | same | exp(0.225) | 0 | dim >= 1; u <~ sqrt(600 * 40)
isotropic_block_mean | SPHERES, psi=1.1 | UU * 1.1 | 0 | dim >= 1
isotropic_block_variance | SPHERES, psi=1.1, psi_double=1.4 | UU**2 * (1.4 - 1.21) | 0 | dim >= 1
isotropic_block_variance printed | same | UU**2 * (1.4 - 1.1) | 0 | same
isotropic_block_variance_upper | SPHERES | UU**2 * X**2 / 20 * exp(X**2 / 11) | 0 |
    dim >= 2; radius <~ sqrt(600 * 11) * S2 * 1.8 ** 2 / 3
isotropic_block_variance_lower | same | UU**2 * X**2 / 20 | 0 | dim >= 2
radial_mean_gap | noise=1.5, lengthscale=1.8, dim=20 | 2.25 / 3.24 / 20 | 0 | dim >= 1
radial_block_variance | SPHERES | (W6 * X6 / sqrt(20) * exp(X6**2 / 22) + 2.25 / 3.24 / 20) ** 2 | 0 |
    dim >= 2; radius <~ sqrt(600 * 22) * 1.8 ** 2 / 3
radial_block_variance printed | same | W6**2 / (1.8**4 * 20) | 0 | dim >= 2
""",
    globals(),
)

SPECTRUM = {
    "kappa": 1.3,
    "op_norm": 0.6,
    "trace": 1.0,
    "trace3": 0.25,
    "hs_norm": 0.65,
    "op_norm3": 0.216,
}
SPECTRUM |= {
    "theta": 0.8,
    "scale": 0.5,
    "eigenvalue": 0.4,
    "epsilon": 0.1,
    "num_points": 50,
    "eta": 1e-4,
}
SPECTRUM |= {
    "sigma": 0.05,
    "weight": 0.3,
    "mean_gap": 1.5,
    "num_functions": 60,
    "num_pairs": 60,
    "rank": 1.8,
}
SPECTRUM |= {
    "energy": 0.2,
    "squared_diameter": 0.4,
    "squared_distance": 2.5,
    "n": 10**6,
    "d": 400,
    "tau": 2.5,
}
SETTINGS = (
    {},
    {"op_norm": 1.7, "trace": 4.0, "trace3": 6.0, "hs_norm": 2.0, "kappa": 5.0},
    {"op_norm": 0.1, "trace": 1.2, "trace3": 0.002, "hs_norm": 0.3, "eigenvalue": 0.1}
    | {"op_norm3": 0.001, "energy": 0.001},
    {"tau": 0.3, "d": 1, "n": 7},
)


def numbers(**changes):
    """Return a spectrum and generous sizes, with changes, and what the formulas have in common."""
    w = SPECTRUM | changes
    S, tau, n, d = w["op_norm"], w["tau"], w["n"], w["d"]
    unit = math.sqrt(2 * w["kappa"] * w["trace"] * tau / n)
    x = math.sqrt(2 * (w["kappa"] * w["trace"] - w["hs_norm"] ** 2) * tau / n)
    x += math.hypot(w["kappa"], w["hs_norm"]) * tau / (3 * n)

    def all_d(e, t, above=None):
        o = math.sqrt(S**3 + (e if above is None else above))
        D = (math.sqrt(t) + o * (0.51 + math.sqrt(2 * tau))) / math.sqrt(d)
        return 2 * o * D + D * D + e

    def relative(count):
        return (
            -special.lambertw(-math.exp(-1 - 2 * (math.log(count) + tau) / d), -1).real
            - 1
        )

    cube = (S + x) ** 3 - S**3
    t = w["trace3"] + cube + 3 * x * S * (w["hs_norm"] - S)
    e, mean = (
        all_d(cube, t),
        math.sqrt(2 * w["trace"] * tau / n) + math.sqrt(w["kappa"]) * tau / (3 * n),
    )
    centered = all_d((S + x + mean**2) ** 3 - S**3, t, cube)
    variance = S * (w["kappa"] - S)
    y = max(
        tau + math.log((w["kappa"] * w["trace"] - w["hs_norm"] ** 2) / variance), 1.26
    )
    above, below = (
        math.sqrt(2 * variance * y / n) + L * y / (3 * n) for L in (w["kappa"], S)
    )
    apart = max(above, below + mean**2)

    def intrinsic(apart, x1):
        t = w["trace3"] + 3 * x * S * w["hs_norm"] + 3 * x * x * S + x * x * x1
        return all_d((S + apart) ** 3 - S**3, t, (S + x1) ** 3 - S**3)

    x1 = min(above, x)
    intrinsic = [intrinsic(x1, x1), intrinsic(max(x1, min(below, x) + mean**2), x1)]
    flat = all_d(28 * S**2 * unit, w["trace3"] + 28 * S * w["hs_norm"] * unit)
    D = (math.sqrt(w["trace3"] / S**3) + 0.51 + math.sqrt(2 * tau)) / math.sqrt(d)
    least = w["kappa"] * w["trace"] * tau / S**2
    derived = dict(
        S=S,
        s=w["trace"] / S,
        s3=w["trace3"] / S**3,
        C=3.51,
        D=D,
        x=x,
        e=e,
        unit=unit,
        least=least,
    )
    derived |= dict(v=w["kappa"] * w["trace"] - w["hs_norm"] ** 2)
    return (
        w
        | derived
        | dict(
            all_d=flat,
            relative=relative,
            centered=centered,
            above=above,
            apart=apart,
            intrinsic=intrinsic,
        )
    )


def words_of(bound, **changes):
    given = {**SPECTRUM, **changes}
    return {
        word: given[word]
        for word in inspect.signature(bound).parameters
        if word in given
    }


ROWS = """
covariance_deviation | 4 * unit | 2 * exp(-tau) | tau > 0 | 8 * kappa * tau / (9 * trace)
covariance_deviation_bernstein | unit + 4 * kappa * tau / n | 2 * exp(-tau) | tau > 0; n >= 1 | 1
covariance_deviation_sharp | x | 2 * exp(-tau) | tau > 0; n >= 1 | 1
covariance_deviation_operator | above | 2 * exp(-tau) | tau > 0; n >= 1 | 1
covariance_deviation_operator centered | apart | 4 * exp(-tau) | tau > 0; n >= 1 | 1
hilbert_mean | theta * sqrt(2 * tau / n) + scale * tau / n | 2 * exp(-tau) | tau > 0; n >= 1 | 1
hilbert_mean printed | 2 * scale * tau / n + sqrt(2 * theta**2 * tau / n) | 2 * exp(-tau) | tau > 0; n >= 1 | 1
gaussian_covariance | 4.376 * op_norm * (sqrt(rank) + sqrt(tau)) / sqrt(n) | exp(-tau) | tau >= 1 | max(rank, tau)
cube_deviation | 28 * S * S * unit | 2 * exp(-tau) | tau > 0 | 32 * least
cube_trace | trace3 + 28 * S * hs_norm * unit | 2 * exp(-tau) | tau > 0 | 32 * least
cube_trace printed | trace3 + 28 * hs_norm * hs_norm * unit | 2 * exp(-tau) | tau > 0 | 32 * least
projected_inner_products | C * S**3 * (sqrt(s3) + sqrt(tau)) / sqrt(d) | exp(-tau) | tau >= 1
projected_inner_products_all_d | S**3 * (2 * D + D * D) | 2 * exp(-tau) | tau > 0
conditional_sketch | C * (sqrt(trace3 * op_norm3 / d) + op_norm3 * sqrt(tau / d)) | exp(-tau) | tau >= 1
inner_products | C * S**3 * (sqrt(3 * s3) + 1.5 * sqrt(tau)) / sqrt(d) + 28 * S**2.5 * sqrt(2 * kappa * s * tau / n) |
    3 * exp(-tau) | tau >= 1 | 6272 * kappa * s * max(1, sqrt(s) / 4) * tau / S
inner_products printed |
    3 * C * S**3 * (sqrt(2 * s3) + sqrt(tau)) / sqrt(d) + 28 * S**2.5 * sqrt(2 * kappa * s * tau / n) |
    5 * exp(-tau) | tau >= 1 | 6272 * kappa * s**5 * tau / S
inner_products_all_d | all_d | 4 * exp(-tau) | tau > 0 | 32 * least
inner_products_every_n | e | 4 * exp(-tau) | tau > 0; n >= 1; d >= 1 | 1
inner_products_every_n centered | centered | 6 * exp(-tau) | tau > 0; n >= 1; d >= 1 | 1
inner_products_intrinsic | intrinsic[0] | 6 * exp(-tau) | tau > 0; n >= 1; d >= 1 | 1
inner_products_intrinsic centered | intrinsic[1] | 8 * exp(-tau) | tau > 0; n >= 1; d >= 1 | 1
separation_shortfall | 4 * epsilon * kappa * eigenvalue**3 + 4 * kappa * e | 4 * exp(-tau) + num_points * eta |
    tau > 0; n >= 1; d >= 1; epsilon >= 0; epsilon <= 1 | 1
largest_stretch | S**3 + e | 4 * exp(-tau) | tau > 0; n >= 1; d >= 1 | 1
mean_separation_shortfall | S**3 * sigma / weight / (1 - weight) + e * mean_gap | 4 * exp(-tau) |
    tau > 0; n >= 1; d >= 1; weight > 0; weight < 1 | 1
relative_norms | relative(num_functions) | 2 * exp(-tau) | tau > 0; d >= 1; num_functions >= 1
relative_separation | squared_diameter * (S / eigenvalue) ** 3 / (squared_distance - 4 * epsilon * kappa)
    * (1 + relative(num_pairs)) / (1 - relative(num_pairs)) | 2 * exp(-tau) |
    tau > 0; num_pairs >= 1; squared_distance >~ 0.52; d >~ 2 * (log(60) + 2.5) / (1 - log(2))
law_distance | (3 * S**2 * (kappa - S) / n + kappa**2 * S / n**2) / sqrt(energy) + 2.1 * sqrt(d + 2) * 9 * kappa**4
    / energy**1.5 * sqrt(3 * v**2 / n**2 + v * (kappa**2 + hs_norm**2) / n**3) | 0 | n >= 1; d >= 1; energy > 0 | 1
weak_difference_given | sqrt(2 * tau * energy / d) | exp(-tau) | tau > 0; d >= 1
weak_difference_given printed | sqrt(2 * tau * energy / d) | 2 * exp(-tau) | tau > 0; d >= 1
weak_difference | 3 * sqrt(2 * tau) * S**1.5 / sqrt(d) | 3 * exp(-tau) | tau > 0 | 32 * least
weak_difference printed | 16 * sqrt(2 * tau) * max(S**1.5, S**1.25) / sqrt(d) | 4 * exp(-tau) | tau > 0 |
    kappa * s * tau * max(32 / S, 1)
weak_difference_coupled | 12 * sqrt(2) * tau * S * sqrt(kappa * s / (n * d)) | 3 * exp(-tau) | tau > 0 | 32 * least
"""


def sketches():
    """Return the cases of kpotufe2020 at every setting; the last cell is the fewest landmarks that a bound asks for."""
    table = {}
    for row in ROWS.strip().replace("\n    ", " ").split("\n"):
        name, value, failure, hypotheses, least = (
            cell.strip() for cell in f"{row} | |".split("|")[:5]
        )
        for i, changes in enumerate(SETTINGS):
            bound, known = bound_of(sketching, name), vars(math) | numbers(**changes)
            label = (
                name
                if i == 0
                else f"{name.split()[0]} at {i} {name.partition(' ')[2]}".strip()
            )
            edges = edges_of(hypotheses, known) if i == 0 else []
            if least and i < 3:  # in the last one tau is too small for some
                edges += edges_of(f"n >~ max(1, {least})", known)
            table[label] = Case(
                bound,
                words_of(bound, **changes),
                eval(value, known),
                eval(failure, known),
                edges,
            )
    return table


SKETCHING = sketches()
