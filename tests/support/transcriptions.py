"""What the right-hand sides in the registers need beyond arithmetic: quadratures, sums over nets, roots, maxima."""

from math import ceil, e, exp, gamma, inf, log, pi, sqrt  # noqa: F401 - the texts use them

import numpy as np
from scipy import integrate, optimize, special
from scipy.stats import chi2, invgamma, ncx2


def kl(u):
    return (u - 1 - log(u)) / 2


def stop_loss(t, eps):
    """Return the two bounds of `relative_distances_sharp`, with the means by quadrature."""
    law = chi2(t, scale=1 / t)
    u = (1 + eps) ** 2
    v = (1 - eps) ** 2
    c = max(u - 2 * u / (t * (u - 1)), 0)
    x = np.linspace(c, c + 40 * law.std(), 400_001)
    above = np.trapezoid(law.sf(x), x) / (u - c)
    c = v + 2 * v / (t * (1 - v))
    x = np.linspace(0, c, 400_001)
    return above + np.trapezoid(law.cdf(x), x) / (c - v)


def cap(d, tilt):
    """Return the mean over the sphere of exp(-tilt y), y the share of a squared length that one direction leaves."""
    a = (d - 1) / 2
    share = special.gammainc(a, tilt) if a else 1
    return gamma(d / 2) / sqrt(pi) / tilt**a * share


def chernoff(distance, ratio):
    """Return the tilt and the logarithm of Chernoff's bound for the mean of X / E X, by a sum over frequencies."""
    w = np.linspace(-12, 12, 4001)
    weights = np.exp(-(w**2) / 2)
    mean = 1 - exp(-(distance**2) / 2)
    Y = (1 - np.cos(distance * w)) / mean - ratio
    if ratio < 1:
        Y = -Y
    least = optimize.minimize_scalar(
        lambda s: special.logsumexp(s * Y, b=weights / weights.sum()),
        bounds=(0, 60),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return least.x, least.fun


def ball_failure(eps, t, d, M, tau, near, q, c):
    """Return the failure probability of `fourier.ball`: the part near zero, and shells of ratio q, with reach c."""
    u = (1 + eps) ** 2
    v = (1 - eps) ** 2
    lowest = v + near * (1 - v)
    B = sqrt(d) + sqrt(2 * (tau + log(t)))
    rho2 = min(12 / B**2 * (1 - v / lowest), 4 * near * (1 - 1 / u))
    highest = u * (1 - rho2 / 4)
    total = exp(-tau)
    total += exp(-t * kl(highest)) / cap(d, t * (highest - 1) / 2)
    total += exp(-t * kl(lowest)) / cap(
        d, t / 2 * (1 / lowest - 1) * (highest - lowest)
    )
    inner = outer = M
    while outer**2 > rho2:
        low = (1 - c) * inner
        mean = 1 - exp(-(low**2) / 2)
        peak = min(max(sqrt(3), low), outer + c * inner)
        curves = {u: exp(-(low**2) / 2), v: (peak**2 - 1) * exp(-(peak**2) / 2)}
        for ratio, curve in curves.items():
            tilt, logarithm = chernoff(low, ratio)
            k = t * tilt * (highest + ratio * curve) / (2 * mean)
            x = min(c * inner, sqrt((d / 2 + 1) / k))
            y = np.linspace(0, x, 20_001)
            mass = np.trapezoid(d * y ** (d - 1) * np.exp(-k * y**2), y)
            shell = (outer + x) ** d - (inner - x) ** d
            if outer > inner:
                shell /= 2
            total += shell / mass * exp(t * logarithm)
        outer = inner
        inner = q ** (ceil(log(inner) / log(q) - 1e-9) - 1)
    return total


def two_edges(t, eps):
    """Return the probability that two edges of a simplex with a common corner both fail, by quadrature over one length.

    Of chi-square numbers |U|^2 and |V|^2 with V = U / 2 + sqrt(3 / 4) G.
    """
    u = t * (1 + eps) ** 2
    v = t * (1 - eps) ** 2

    def density(x):
        fails = ncx2.sf(u * 4 / 3, t, x / 3) + ncx2.cdf(v * 4 / 3, t, x / 3)
        return chi2.pdf(x, t) * fails

    longer, _ = integrate.quad(density, u, 2 * u, epsabs=0, limit=200)
    shorter, _ = integrate.quad(density, v / 2, v, epsabs=0, limit=200)
    return longer + shorter


def scale_mean(nu, power, most):
    """Return E min(q, most)^power for the scale q of a Matern kernel of smoothness nu, by quadrature over log q."""
    logarithms = np.linspace(-8, 60, 400_001)
    q = np.exp(logarithms)
    weights = invgamma.pdf(q, nu, scale=nu) * q * (logarithms[1] - logarithms[0])
    return weights @ np.minimum(q, most) ** power


def bell(x, v, alpha):
    """Return the exponent of Lemma 5 by maximising over s."""
    return max(s * x - (s * v) ** 2 / 2 for s in np.linspace(0, 1 / alpha, 100_001))


def excess(rate):
    """Return the u > 0 with u - log(1 + u) = rate."""
    return -special.lambertw(-exp(-1 - rate), -1).real - 1
