"""amini2021, Examples 5 and 6: nested spheres with isotropic and with radial noise (Section 3.3); Theorem E."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxkern import measures
from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting
from proofs_check.papers.amini2021 import laws
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.amini2021.setup import (
    NOISE,
    TAU,
    sphere_parameters,
    two_spheres,
)
from proofs_check.papers.shared import (
    always,
    as_residual,
    grid,
    lines,
    parametrized,
    real,
)


def moments(setting: Setting) -> tuple[float, float, float]:
    """Return mean and variance of the mean kernel over two spheres, by quadrature, and the x of Example 5."""
    r, q, d = setting.numbers["r"], setting.numbers["q"], setting.shapes["d"]
    a, weights = laws.cosines(d)
    s2 = 1 + 2 * NOISE**2 / (d * TAU**2)
    values = s2 ** (-d / 2) * laws.still_kernel(a, r, q, math.sqrt(s2) * TAU)
    mean = float(weights @ values)
    return mean, float(weights @ (values - mean) ** 2), r * q / (s2 * TAU**2)


def _block_mean() -> Check:
    @parametrized(Identity)
    def residual(
        setting: Setting, power: float = 1.0, noise: float = NOISE
    ) -> np.ndarray:
        mean, _, x = moments(setting)
        psi = measures.sphere_mgf(real([x]), setting.shapes["d"])
        unit = concentration.isotropic_block_mean(
            **{**sphere_parameters(setting), "noise": noise}, psi=1.0
        ).value
        return as_residual(np.asarray(psi) ** power * float(unit / mean) - 1)

    settings = two_spheres(10, 50)
    variance = residual(noise=NOISE**2)
    return Check(
        printed=Form(residual(), settings),
        controls=(
            Control("the root of psi", residual(power=0.5), settings, "wrong power"),
            Control(
                "the variance of the noise for its root",
                variance,
                settings,
                "swapped constants",
            ),
        ),
    )


def _block_variance() -> Check:
    @parametrized(Identity)
    def residual(
        setting: Setting,
        as_printed: bool = False,
        factor: float = 1.0,
        centred: bool = True,
    ) -> np.ndarray:
        _, variance, x = moments(setting)
        psi, double = (
            float(v)
            for v in np.asarray(
                measures.sphere_mgf(real([x, 2 * x]), setting.shapes["d"])
            )
        )
        given = {
            **sphere_parameters(setting),
            "psi": psi if centred else 0.0,
            "psi_double": double,
        }
        right = concentration.isotropic_block_variance(**given, as_printed=as_printed)
        return np.asarray([factor * right.value / variance - 1], real(0).dtype)

    settings = two_spheres(10, 50)
    second_moment = residual(centred=False)
    return Check(
        printed=Form(residual(as_printed=True), settings),
        corrected=Form(residual(), settings),
        controls=(
            Control("1.05 times it", residual(factor=1.05), settings, "wrong factor"),
            Control(
                "the second moment for the variance",
                second_moment,
                settings,
                "centred for uncentred",
            ),
        ),
    )


def _log_psi(u: float, d: int) -> float:
    return float(measures.log_sphere_mgf(real(u), d))


def _small(*values: float) -> tuple[Setting, ...]:
    """Return settings with u much smaller than d."""
    return grid("u={u:g}, d={d}", shapes="d", u=values, d=(1000, 10_000))


def _psi() -> Check:
    @parametrized(Inequality)
    def sides(setting: Setting, as_printed: bool = False, factor: float = 1.0) -> Pairs:
        """The ratio of the logarithms is at most 1, and at least 1 - u^2 / 4 d."""
        u, d = setting.numbers["u"], setting.shapes["d"]
        about = concentration.sphere_moment(u=u, dim=d, as_printed=as_printed)
        ratio = _log_psi(u, d) / (factor * math.log(about.value))
        low = always(1 - u**2 / (4 * d), about.source)
        return [(ratio, always(1, about.source)), laws.at_least(ratio, low)]

    settings = _small(0.5, 5.0)
    return Check(
        printed=Form(sides(as_printed=True), settings),
        corrected=Form(sides(), settings),
        controls=(
            Control(
                "0.98 of the exponent", sides(factor=0.98), settings, "wrong factor"
            ),
        ),
    )


def _limit() -> Check:
    @parametrized(Inequality)
    def sides(setting: Setting, power: int, target: float) -> Pairs:
        """| d (1 - psi(u)^power / psi(2 u)) / u^2 - target |, at most exp(2 u^2 / d) - 1 by Theorem E."""
        u, d = setting.numbers["u"], setting.shapes["d"]
        value = -math.expm1(power * _log_psi(u, d) - _log_psi(2 * u, d)) * d / u**2
        return [
            (
                abs(value - target),
                always(
                    math.expm1(2 * u**2 / d),
                    "amini2021, Example 5, the numerator of (32)",
                ),
            )
        ]

    settings = _small(0.5, 3.0)
    mixed = sides(power=2, target=0.75)
    return Check(
        printed=Form(sides(power=1, target=0.75), settings),
        corrected=Form(sides(power=2, target=1.0), settings),
        controls=(
            Control("3 u^2 / 4 d for the squared one", mixed, settings, "wrong factor"),
        ),
    )


def _sphere_variance() -> Check:
    @parametrized(Inequality)
    def sides(setting: Setting, exponent: bool = True) -> Pairs:
        """The variance in units of its lower bound."""
        _, variance, _ = moments(setting)
        lower = concentration.isotropic_block_variance_lower(
            **sphere_parameters(setting)
        )
        upper = (
            concentration.isotropic_block_variance_upper(**sphere_parameters(setting))
            if exponent
            else lower
        )
        low, high = (laws.rescaled(bound, 1 / lower.value) for bound in (lower, upper))
        return [
            laws.at_least(variance / lower.value, low),
            (variance / lower.value, high),
        ]

    settings = two_spheres(2, 10, 50, 200)
    return Check(
        corrected=Form(sides(), settings),
        controls=(
            Control(
                "without the exponential factor",
                sides(exponent=False),
                settings,
                "wrong factor",
            ),
        ),
    )


@dataclass(frozen=True)
class Spheres:
    """Population parameters of spheres of equal shares, isotropic noise and the Gaussian kernel, by exact psi.

    radii : scaled ones, r / (tau s). heights : the u of Example 5, which depend on the dimension. Both (R,).
    """

    radii: np.ndarray
    heights: np.ndarray
    dim: int

    @classmethod
    def of(cls, radii: tuple[float, ...], dim: int, tau: float = TAU) -> Spheres:
        """Return those of the given radii."""
        s2 = 1 + 2 * NOISE**2 / (dim * tau**2)
        scaled = np.array(radii) / (tau * math.sqrt(s2))
        return cls(scaled, s2 ** (-dim / 4) * np.exp(-(scaled**2) / 2), dim)

    @property
    def products(self) -> np.ndarray:
        """The x = r_k r_l of Example 5, (R, R)."""
        return np.outer(self.radii, self.radii)

    @property
    def variances(self) -> np.ndarray:
        """The v*_kl^2, (R, R)."""
        spread = [
            [laws.psi(2 * x, self.dim) - laws.psi(x, self.dim) ** 2 for x in row]
            for row in self.products
        ]
        return np.outer(self.heights, self.heights) ** 2 * np.array(spread)

    @property
    def variance(self) -> float:
        """The average variance, vbar*^2."""
        return float(self.variances.mean())

    @property
    def separation(self) -> float:
        """The least separation, gamma*^2."""
        psi = np.array([[laws.psi(x, self.dim) for x in row] for row in self.products])
        means = np.outer(self.heights, self.heights) * psi
        apart = np.mean((means[:, None] - means) ** 2, axis=2)
        return float(np.min(apart[~np.eye(len(apart), dtype=bool)]))


def _least_gap(values: np.ndarray) -> float:
    return float(np.min(np.diff(np.sort(values))))


def _nested(
    all_radii: tuple[tuple[float, ...], ...], *dims: int
) -> tuple[Setting, ...]:
    return tuple(
        Setting(f"radii {radii}, d={d}", radii, shapes={"d": d})
        for radii in all_radii
        for d in dims
    )


def _eq32() -> Check:
    source = "amini2021, (32)"

    def printed(setting: Setting) -> Pairs:
        """vbar^2 / gamma^2 with C1, C2 and the largest radii, the u in the limit, and the constant 2."""
        radii, d = setting.data, setting.shapes["d"]
        spheres = Spheres.of(radii, d)
        u = np.exp(-(np.array(radii) ** 2 + NOISE**2) / (2 * TAU**2))
        c1, c2 = float(u.max() ** 4), float(np.mean(u**2)) * _least_gap(u) ** 2
        right = 2 * c1 / c2 * max(radii) ** 4 / (TAU**4 * d)
        return [(spheres.variance / spheres.separation / right, always(1, source))]

    @parametrized(Inequality)
    def sides(setting: Setting, power: int = 2) -> Pairs:
        """The quotient between two bounds that differ by O(1 / d), in units of the upper one."""
        d = setting.shapes["d"]
        spheres = Spheres.of(setting.data, d)
        quotient = spheres.variance / spheres.separation
        top = float(np.mean(spheres.heights**2 * spheres.radii**power)) ** 2 / d
        largest = float(spheres.products.max())
        blur = float(spheres.heights.max()) * math.expm1(largest**2 / (2 * d))
        unit, gap = float(np.mean(spheres.heights**2)), _least_gap(spheres.heights)
        high = top * math.exp(2 * largest**2 / (d + 2)) / (unit * (gap - blur) ** 2)
        low = top / (unit * (gap + blur) ** 2)
        return [
            (quotient / high, always(1, source)),
            laws.at_least(quotient / high, always(low / high, source)),
        ]

    settings = _nested(((1.0, 2.0, 3.0), (0.5, 2.0, 2.5)), 1000, 100_000)
    return Check(
        printed=Form(Inequality(printed), settings),
        corrected=Form(sides(), settings),
        controls=(Control("r for r^2", sides(power=1), settings[1::2], "wrong power"),),
    )


def _closest() -> Check:
    @parametrized(Inequality)
    def sides(
        setting: Setting, choose: Callable[[Spheres], Any], limit: bool = True
    ) -> Pairs:
        """All variances v_kk^2 over that of the chosen sphere; in the limit up to exp(2 x^2 / (d + 2))."""
        spheres = Spheres.of(setting.data, setting.shapes["d"])
        variances = np.diag(spheres.variances)
        room = (
            np.exp(2 * spheres.radii**4 / (spheres.dim + 2))
            if limit
            else np.ones(len(variances))
        )
        return lines(
            ((r, 1) for r in variances / variances[choose(spheres)] / room),
            "amini2021, after (32)",
        )

    settings = _nested(((1.0, 2.0), (0.2, 1.5, 5.0)), 50, 5000)
    outermost = sides(choose=lambda spheres: np.argmax(spheres.radii))
    return Check(
        printed=Form(
            sides(choose=lambda spheres: np.argmin(spheres.radii), limit=False),
            settings,
        ),
        corrected=Form(
            sides(choose=lambda spheres: np.argmax(spheres.heights * spheres.radii)),
            settings,
        ),
        controls=(
            Control("the outermost sphere", outermost, settings[2:], "wrong operator"),
        ),
    )


def _bandwidth() -> Check:
    d = 10_000

    def logs(radii: tuple[float, ...], tau: float) -> tuple[float, float]:
        spheres = Spheres.of(radii, d, tau)
        return -math.log(spheres.separation), math.log(
            spheres.variance / spheres.separation
        )

    @parametrized(Inequality)
    def increase(setting: Setting, least: float = 10.0) -> Pairs:
        """1 / gamma^2 and vbar^2 / gamma^2 over what they are for twice the bandwidth, three times from the least."""
        values = [logs(setting.data, least * 2**i) for i in range(4)]
        return [
            (math.exp(before - after), always(1, "amini2021, after (32)"))
            for first, second in itertools.pairwise(values)
            for before, after in zip(first, second, strict=True)
        ]

    @parametrized(Inequality)
    def sides(setting: Setting, level: float = 1.0) -> Pairs:
        """d vbar^2 / gamma^2 over its limit, to within 4 times the largest (r^2 + sigma^2) / tau^2."""
        radii = np.array(setting.data)
        target = level * 4 * float(np.mean(radii**2)) ** 2 / _least_gap(radii**2) ** 2
        pairs = []
        for tau in (30.0, 100.0):
            value = d * math.exp(logs(setting.data, tau)[1])
            pairs.append(
                (abs(value / target - 1), 4 * (radii.max() ** 2 + NOISE**2) / tau**2)
            )
        return lines(pairs, "amini2021, after (32), the limit")

    settings = tuple(
        Setting(f"radii {radii}, d={d}", radii)
        for radii in ((1.0, 5.0, 10.0), (1.0, 3.0, 4.0))
    )
    return Check(
        printed=Form(increase(), settings),
        corrected=Form(sides(), settings),
        controls=(
            Control("twice the limit", sides(level=2.0), settings, "wrong factor"),
            Control(
                "small bandwidths", increase(least=0.7), settings, "hypothesis broken"
            ),
        ),
    )


def _consistency() -> Check:
    radii, tau = (1.0, 5.0, 10.0), math.sqrt(6.5)  # of Section 3.5, with alpha = 2
    model = {
        "bound": 1.0,
        "min_share": 1 / 3,
        "num_clusters": 3,
        "lipschitz": math.exp(-0.5) / tau,
        "noise": NOISE,
    }

    def right(d: float, n: float) -> Bound:
        spheres = Spheres.of(radii, int(d), tau)
        gamma2 = spheres.separation
        parameters = {
            "gamma2": gamma2,
            "gamma_tilde2": gamma2 / 3,
            "vbar2": spheres.variance,
        }
        return concentration.misclassification_population(
            **model, **parameters, op_norm=1.0, dim=d, num_points=n, t=2.5
        )

    @parametrized(Inequality)
    def sides(setting: Setting, power: float = 1.0) -> Pairs:
        """The corrected (31) over d^-power + n^(-1/2), in units of itself at the first sizes where it holds."""
        sizes = [
            (more * setting.numbers["d"], more**3 * setting.numbers["n"])
            for more in (1.0, 10.0, 100.0)
        ]
        bounds = [right(d, n) for d, n in sizes]
        scaled = [
            float(b.value) / (d**-power + n**-0.5)
            for b, (d, n) in zip(bounds, sizes, strict=True)
        ]
        return [
            (x / scaled[0], Bound(1 + 1e-3, 1.0, b.valid, b.source))
            for x, b in zip(scaled, bounds, strict=True)
        ]

    settings = (
        Setting("radii (1, 5, 10), d=4e6, n=1e16", numbers={"d": 4e6, "n": 1e16}),
    )
    return Check(
        corrected=Form(sides(), settings),
        controls=(
            Control("1 / d^2 for 1 / d", sides(power=2.0), settings, "wrong power"),
        ),
    )


def _radial_variance() -> Check:
    def variance_at(setting: Setting) -> float:
        r, q, d = setting.numbers["r"], setting.numbers["q"], setting.shapes["d"]
        a, weights = laws.cosines(d)
        values = laws.radial_mean(a, r, q, NOISE, TAU, d)
        return float(weights @ (values - weights @ values) ** 2)

    def printed(setting: Setting) -> Pairs:
        """The order u_k^2 u_l^2 / (tau^4 d), with constants that depend on the radii: within 2 of (r_k r_l)^2."""
        order = formula(**sphere_parameters(setting), as_printed=True)
        ratio = variance_at(setting) / (
            order.value * (setting.numbers["r"] * setting.numbers["q"]) ** 2
        )
        return lines([(ratio, 2), (0.5, ratio)], order.source)

    @parametrized(Inequality)
    def sides(setting: Setting, formula: Callable[..., Bound]) -> Pairs:
        """The variance in units of the bound."""
        right = formula(**sphere_parameters(setting))
        return [
            (variance_at(setting) / right.value, laws.rescaled(right, 1 / right.value))
        ]

    def squared_dimension(*, dim: float, **others: Any) -> Bound:
        return formula(**others, dim=dim**2)

    settings = two_spheres(10, 50, 200)
    formula = concentration.radial_block_variance
    return Check(
        printed=Form(Inequality(printed), two_spheres(500, 1000, 2000)),
        corrected=Form(sides(formula=formula), settings),
        controls=(
            Control(
                "d^2 for d", sides(formula=squared_dimension), settings, "wrong power"
            ),
        ),
    )
