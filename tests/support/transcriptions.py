"""What the right-hand sides in the registers need beyond arithmetic: quadratures, sums over nets, roots, maxima."""

import math

import numpy as np
from scipy import integrate, optimize, special
from scipy.stats import chi2, invgamma, ncx2


def kl(u):
    return (u - 1 - math.log(u)) / 2


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
    return -special.lambertw(-math.exp(-1 - rate), -1).real - 1
