"""amini2021, Section 3.3: Examples 5 and 6, nested spheres with isotropic and with radial noise; Theorem E."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from jaxkern import measures
from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Check, Identity, Inequality, Setting
from proofs_check.papers.amini2021 import expectations
from proofs_check.papers.amini2021.expectations import (
    cosines,
    radial_mean,
    still_kernel,
)
from proofs_check.papers.amini2021.setup import (
    NOISE,
    TAU,
    Pairs,
    at_least,
    rescaled,
    two_spheres,
)
from proofs_check.papers.shared import Grids, as_residual, check_of, lines, real, wrong

Radii = tuple[float, ...]


def moments(r: float, q: float, d: int) -> tuple[float, float, float]:
    """Return mean and variance of the mean kernel over two spheres, by quadrature, and the x of Example 5."""
    a, weights = cosines(d)
    s2 = 1 + 2 * NOISE**2 / (d * TAU**2)
    values = s2 ** (-d / 2) * still_kernel(a, r, q, math.sqrt(s2) * TAU)
    mean = float(weights @ values)
    return mean, float(weights @ (values - mean) ** 2), r * q / (s2 * TAU**2)


def block_mean_error(
    r: float, q: float, d: int, power: float = 1.0, noise: float = NOISE
) -> np.ndarray:
    """The formula of Example 5 with a power of psi over the mean, minus 1."""
    mean, _, x = moments(r, q, d)
    about = concentration.isotropic_block_mean(**two_spheres(r, q, d, noise), psi=1.0)
    moment = np.asarray(measures.sphere_mgf(real([x]), d))
    return as_residual(moment**power * float(about.value / mean) - 1)


def ex5_mean(grids: Grids) -> Check:
    return check_of(
        Identity,
        grids["printed"],
        wrong("the root of psi", "wrong power", power=0.5),
        wrong(
            "the variance of the noise for its root",
            "swapped constants",
            noise=NOISE**2,
        ),
        printed=block_mean_error,
    )


def block_variance_error(
    r: float,
    q: float,
    d: int,
    as_printed: bool = False,
    factor: float = 1.0,
    centred: bool = True,
) -> np.ndarray:
    """The formula of Example 5 over the variance, minus 1."""
    _, variance, x = moments(r, q, d)
    once, twice = np.asarray(measures.sphere_mgf(real([x, 2 * x]), d)).tolist()
    right = concentration.isotropic_block_variance(
        **two_spheres(r, q, d),
        psi=once if centred else 0.0,
        psi_double=twice,
        as_printed=as_printed,
    )
    return as_residual([factor * right.value / variance - 1])


def ex5_variance(grids: Grids) -> Check:
    return check_of(
        Identity,
        grids["both"],
        wrong("1.05 times it", "wrong factor", factor=1.05),
        wrong(
            "the second moment for the variance", "centred for uncentred", centred=False
        ),
        printed=partial(block_variance_error, as_printed=True),
        corrected=block_variance_error,
    )


def _log_psi(u: float, d: int) -> float:
    return float(measures.log_sphere_mgf(real(u), d))


def psi_ratio(u: float, d: int, as_printed: bool = False, factor: float = 1.0) -> Pairs:
    """The ratio of the logarithms is at most 1, and at least 1 - u^2 / 4 d."""
    about = concentration.sphere_moment(u=u, dim=d, as_printed=as_printed)
    ratio = _log_psi(u, d) / (factor * math.log(about.value))
    return lines([(ratio, 1), (1 - u**2 / (4 * d), ratio)], about.source)


def psi(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["both"],
        wrong("0.98 of the exponent", "wrong factor", factor=0.98),
        printed=partial(psi_ratio, as_printed=True),
        corrected=psi_ratio,
    )


def numerator_gap(u: float, d: int, power: int = 2, target: float = 1.0) -> Pairs:
    """| d (1 - psi(u)^power / psi(2 u)) / u^2 - target |, at most exp(2 u^2 / d) - 1 by Theorem E."""
    log_ratio = power * _log_psi(u, d) - _log_psi(2 * u, d)
    value = -math.expm1(log_ratio) * d / u**2
    pair = (abs(value - target), math.expm1(2 * u**2 / d))
    return lines([pair], "amini2021, Example 5, the numerator of (32)")


def ex5_limit(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["both"],
        wrong("3 u^2 / 4 d for the squared one", "wrong factor", target=0.75),
        printed=partial(numerator_gap, power=1, target=0.75),
        corrected=numerator_gap,
    )


def sphere_variances(r: float, q: float, d: int, exponent: bool = True) -> Pairs:
    """The variance between its bounds, in units of the lower one."""
    _, variance, _ = moments(r, q, d)
    spheres = two_spheres(r, q, d)
    lower = concentration.isotropic_block_variance_lower(**spheres)
    upper = lower
    if exponent:
        upper = concentration.isotropic_block_variance_upper(**spheres)
    unit = lower.value
    ratio = variance / unit
    low = rescaled(lower, 1 / unit)
    return [at_least(ratio, low), (ratio, rescaled(upper, 1 / unit))]


def sphere_variance(grids: Grids) -> Check:
    name = "without the exponential factor"
    without = wrong(name, "wrong factor", exponent=False)
    return check_of(Inequality, grids["corrected"], without, corrected=sphere_variances)


@dataclass(frozen=True)
class Spheres:
    """Population parameters of spheres of equal shares, isotropic noise and the Gaussian kernel, by exact psi.

    radii : scaled ones, r / (tau s). heights : the u of Example 5, which depend on the dimension. Both (R,).
    """

    radii: np.ndarray
    heights: np.ndarray
    dim: int

    @classmethod
    def of(cls, radii: Radii, dim: int, tau: float = TAU) -> Spheres:
        """Return those of the given radii."""
        s2 = 1 + 2 * NOISE**2 / (dim * tau**2)
        scaled = np.array(radii) / (tau * math.sqrt(s2))
        return cls(scaled, s2 ** (-dim / 4) * np.exp(-(scaled**2) / 2), dim)

    @property
    def products(self) -> np.ndarray:
        """The x = r_k r_l of Example 5, (R, R)."""
        return np.outer(self.radii, self.radii)

    def psi(self, multiple: float) -> np.ndarray:
        """Return psi of a multiple of the products, (R, R)."""
        entries = [
            expectations.psi(multiple * x, self.dim) for x in self.products.ravel()
        ]
        return np.reshape(entries, self.products.shape)

    @property
    def variances(self) -> np.ndarray:
        """The v*_kl^2, (R, R)."""
        spread = self.psi(2.0) - self.psi(1.0) ** 2
        return np.outer(self.heights, self.heights) ** 2 * spread

    @property
    def variance(self) -> float:
        """The average variance, vbar*^2."""
        return float(self.variances.mean())

    @property
    def separation(self) -> float:
        """The least separation, gamma*^2."""
        means = np.outer(self.heights, self.heights) * self.psi(1.0)
        apart = np.mean((means[:, None] - means) ** 2, axis=2)
        return float(np.min(apart[~np.eye(len(apart), dtype=bool)]))

    @property
    def quotient(self) -> float:
        """The left side of (32), vbar*^2 / gamma*^2."""
        return self.variance / self.separation


def _least_gap(values: np.ndarray) -> float:
    return float(np.min(np.diff(np.sort(values))))


def nested(rows: tuple[Radii, ...], *dims: int) -> tuple[Setting, ...]:
    """Return spheres in several dimensions."""
    return tuple(
        Setting(f"radii {radii}, d={d}", radii, shapes={"d": d})
        for radii in rows
        for d in dims
    )


def printed_quotient(data: Radii, d: int) -> Pairs:
    """vbar^2 / gamma^2 with C1, C2 and the largest radii, the u in the limit, and the constant 2."""
    squares = np.array(data) ** 2
    u = np.exp(-(squares + NOISE**2) / (2 * TAU**2))
    c1 = float(u.max() ** 4)
    c2 = float(np.mean(u**2)) * _least_gap(u) ** 2
    right = 2 * c1 / c2 * max(data) ** 4 / (TAU**4 * d)
    return lines([(Spheres.of(data, d).quotient / right, 1)], "amini2021, (32)")


def quotient(data: Radii, d: int, power: int = 2) -> Pairs:
    """The quotient between two bounds that differ by O(1 / d), in units of the upper one."""
    spheres = Spheres.of(data, d)
    top = float(np.mean(spheres.heights**2 * spheres.radii**power)) ** 2 / d
    largest = float(spheres.products.max())
    blur = float(spheres.heights.max()) * math.expm1(largest**2 / (2 * d))
    unit = float(np.mean(spheres.heights**2))
    gap = _least_gap(spheres.heights)
    room = math.exp(2 * largest**2 / (d + 2))
    high = top * room / (unit * (gap - blur) ** 2)
    low = top / (unit * (gap + blur) ** 2)
    ratio = spheres.quotient / high
    return lines([(ratio, 1), (low / high, ratio)], "amini2021, (32)")


def eq32() -> Check:
    settings = nested(((1.0, 2.0, 3.0), (0.5, 2.0, 2.5)), 1000, 100_000)
    larger = settings[1::2]
    return check_of(
        Inequality,
        settings,
        wrong("r for r^2", "wrong power", settings=larger, power=1),
        printed=printed_quotient,
        corrected=quotient,
    )


def weighted_radii(spheres: Spheres) -> np.ndarray:
    """Return u_k r_k, by which the sphere of the largest variance is chosen."""
    return spheres.heights * spheres.radii


def over_largest(
    data: Radii,
    d: int,
    size: Callable[[Spheres], np.ndarray] = weighted_radii,
    limit: bool = True,
) -> Pairs:
    """All variances v_kk^2 over that of the sphere of the largest size; in the limit up to exp(2 x^2 / (d + 2))."""
    spheres = Spheres.of(data, d)
    variances = np.diag(spheres.variances)
    room = np.exp(2 * spheres.radii**4 / (d + 2)) if limit else 1
    ratios = variances / variances[np.argmax(size(spheres))] / room
    return lines(((ratio, 1) for ratio in ratios), "amini2021, after (32)")


def ex5_closest() -> Check:
    settings = nested(((1.0, 2.0), (0.2, 1.5, 5.0)), 50, 5000)
    return check_of(
        Inequality,
        settings,
        wrong(
            "the outermost sphere",
            "wrong operator",
            settings=settings[2:],
            size=lambda spheres: spheres.radii,
        ),
        printed=partial(over_largest, size=lambda spheres: -spheres.radii, limit=False),
        corrected=over_largest,
    )


BANDWIDTH_DIM = 10_000


def bandwidth_growth(data: Radii, least: float = 10.0) -> Pairs:
    """1 / gamma^2 and vbar^2 / gamma^2 over what they are for twice the bandwidth, three times from the least."""
    spheres = [Spheres.of(data, BANDWIDTH_DIM, least * 2**i) for i in range(4)]
    pairs = []
    for narrow, wide in itertools.pairwise(spheres):
        pairs.append((wide.separation / narrow.separation, 1))
        pairs.append((narrow.quotient / wide.quotient, 1))
    return lines(pairs, "amini2021, after (32)")


def bandwidth_limit(data: Radii, level: float = 1.0) -> Pairs:
    """d vbar^2 / gamma^2 over its limit, to within 4 times the largest (r^2 + sigma^2) / tau^2."""
    squares = np.array(data) ** 2
    target = level * 4 * float(np.mean(squares)) ** 2 / _least_gap(squares) ** 2
    pairs = []
    for tau in (30.0, 100.0):
        value = BANDWIDTH_DIM * Spheres.of(data, BANDWIDTH_DIM, tau).quotient
        room = 4 * (squares.max() + NOISE**2) / tau**2
        pairs.append((abs(value / target - 1), room))
    return lines(pairs, "amini2021, after (32), the limit")


def ex5_bandwidth() -> Check:
    settings = []
    for radii in ((1.0, 5.0, 10.0), (1.0, 3.0, 4.0)):
        settings.append(Setting(f"radii {radii}, d={BANDWIDTH_DIM}", radii))
    kind = "hypothesis broken"
    return check_of(
        Inequality,
        tuple(settings),
        wrong("twice the limit", "wrong factor", level=2.0),
        wrong("small bandwidths", kind, bandwidth_growth, least=0.7),
        printed=bandwidth_growth,
        corrected=bandwidth_limit,
    )


def corollary_on_spheres(d: float, n: float) -> Bound:
    """Return the corrected (31) for the spheres of Section 3.5 with alpha = 2."""
    tau = math.sqrt(6.5)
    spheres = Spheres.of((1.0, 5.0, 10.0), int(d), tau)
    return concentration.misclassification_population(
        bound=1.0,
        min_share=1 / 3,
        num_clusters=3,
        lipschitz=math.exp(-0.5) / tau,
        noise=NOISE,
        gamma2=spheres.separation,
        gamma_tilde2=spheres.separation / 3,
        vbar2=spheres.variance,
        op_norm=1.0,
        dim=d,
        num_points=n,
        t=2.5,
    )


def corollary_rate(d: float, n: float, power: float = 1.0) -> Pairs:
    """The corrected (31) over d^-power + n^(-1/2), in units of itself at the first sizes where it holds."""

    def scaled(more: float) -> tuple[float, bool]:
        right = corollary_on_spheres(more * d, more**3 * n)
        rate = (more * d) ** -power + (more**3 * n) ** -0.5
        return float(right.value) / rate, right.valid

    unit, _ = scaled(1.0)
    source = "amini2021, Corollary 1 (corrected)"
    pairs = []
    for more in (1.0, 10.0, 100.0):
        value, valid = scaled(more)
        pairs.append((value / unit, Bound(1 + 1e-3, 1.0, valid, source)))
    return pairs


def consistency(grids: Grids) -> Check:
    faster = wrong("1 / d^2 for 1 / d", "wrong power", power=2.0)
    return check_of(Inequality, grids["corrected"], faster, corrected=corollary_rate)


def radial_variance(r: float, q: float, d: int) -> float:
    """Return the variance of the mean kernel over two spheres under radial noise, by quadrature."""
    a, weights = cosines(d)
    values = radial_mean(a, r, q, NOISE, TAU, d)
    return float(weights @ (values - weights @ values) ** 2)


def radial_variance_order(r: float, q: float, d: int) -> Pairs:
    """The order u_k^2 u_l^2 / (tau^4 d), with constants that depend on the radii: within 2 of (r_k r_l)^2."""
    formula = concentration.radial_block_variance
    order = formula(**two_spheres(r, q, d), as_printed=True)
    ratio = radial_variance(r, q, d) / (order.value * (r * q) ** 2)
    return lines([(ratio, 2), (0.5, ratio)], order.source)


def radial_variance_bound(r: float, q: float, d: int, power: int = 1) -> Pairs:
    """The variance in units of the bound, with a power of the dimension."""
    right = concentration.radial_block_variance(**two_spheres(r, q, d**power))
    unit = rescaled(right, 1 / right.value)
    return [(radial_variance(r, q, d) / right.value, unit)]


def ex6(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["corrected"],
        wrong("d^2 for d", "wrong power", power=2),
        printed=radial_variance_order,
        corrected=radial_variance_bound,
        printed_settings=grids["printed"],
    )
