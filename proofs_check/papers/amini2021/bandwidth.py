"""amini2021: what Example 5 says of the approximation error of nested spheres and of the bandwidth, (32) included."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np

from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Check, Control, Form, Inequality, Setting
from proofs_check.papers.amini2021 import exact
from proofs_check.papers.amini2021.exact import Pairs
from proofs_check.papers.shared import always

PAPER = "amini2021"

NOISE, TAU = 1.5, math.sqrt(3.25)
"""Of Section 3.5, with alpha = 1."""


@dataclass(frozen=True)
class _Spheres:
    """Population parameters of spheres of equal shares, isotropic noise and the Gaussian kernel, by exact psi.

    radii : scaled ones, r / (tau s). heights : the u of Example 5, which depend on the dimension. Both (R,).
    """

    radii: np.ndarray
    heights: np.ndarray
    dim: int

    @property
    def products(self) -> np.ndarray:
        """The x = r_k r_l of Example 5, (R, R)."""
        return np.outer(self.radii, self.radii)

    @property
    def variances(self) -> np.ndarray:
        """The v*_kl^2, (R, R)."""
        found = [[exact.psi(2 * x, self.dim) - exact.psi(x, self.dim) ** 2 for x in row] for row in self.products]
        return np.outer(self.heights, self.heights) ** 2 * np.array(found)

    @property
    def variance(self) -> float:
        """The average variance, vbar*^2."""
        return float(self.variances.mean())

    @property
    def separation(self) -> float:
        """The least separation, gamma*^2."""
        psi = np.array([[exact.psi(x, self.dim) for x in row] for row in self.products])
        means = np.outer(self.heights, self.heights) * psi
        apart = np.mean((means[:, None] - means) ** 2, axis=2)
        return float(np.min(apart[~np.eye(len(apart), dtype=bool)]))


def _spheres(radii: tuple[float, ...], dim: int, tau: float = TAU) -> _Spheres:
    s2 = 1 + 2 * NOISE**2 / (dim * tau**2)
    scaled = np.array(radii) / (tau * math.sqrt(s2))
    return _Spheres(scaled, s2 ** (-dim / 4) * np.exp(-(scaled**2) / 2), dim)


def _least_gap(values: np.ndarray) -> float:
    return float(np.min(np.diff(np.sort(values))))


# ------------------------------------------------------------------------------------------------------------- (32)


def _eq32() -> Check:
    def printed(key: jax.Array, setting: Setting) -> Pairs:
        """vbar^2 / gamma^2 with C1, C2 and the largest radii, the u in the limit, and the constant 2."""
        del key
        radii, d = setting.population, setting.shapes["d"]
        place = _spheres(radii, d)
        u = np.exp(-(np.array(radii) ** 2 + NOISE**2) / (2 * TAU**2))
        c1, c2 = float(u.max() ** 4), float(np.mean(u**2)) * _least_gap(u) ** 2
        right = 2 * c1 / c2 * max(radii) ** 4 / (TAU**4 * d)
        return [(place.variance / place.separation / right, always(1, "amini2021, (32)"))]

    def sides(power: int) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """The quotient between two bounds that differ by O(1 / d), in units of the upper one."""
            del key
            d = setting.shapes["d"]
            place = _spheres(setting.population, d)
            found = place.variance / place.separation
            top = float(np.mean(place.heights**2 * place.radii**power)) ** 2 / d
            largest = float(place.products.max())
            blur = float(place.heights.max()) * math.expm1(largest**2 / (2 * d))
            unit, gap = float(np.mean(place.heights**2)), _least_gap(place.heights)
            high = top * math.exp(2 * largest**2 / (d + 2)) / (unit * (gap - blur) ** 2)
            low = top / (unit * (gap + blur) ** 2)
            return [
                (found / high, always(1, "amini2021, (32)")),
                exact.at_least(found / high, always(low / high, "amini2021, (32)")),
            ]

        return Inequality(check)

    places = tuple(
        Setting(f"radii {radii}, d={d}", radii, shapes={"d": d})
        for radii in ((1.0, 2.0, 3.0), (0.5, 2.0, 2.5))
        for d in (1000, 100_000)
    )
    return Check(
        printed=Form(Inequality(printed), places),
        corrected=Form(sides(2), places),
        controls=(Control("r for r^2", sides(1), places[1::2], kind="wrong power"),),
    )


# ----------------------------------------------------------------------------------------------- the words around (32)


def _closest() -> Check:
    def sides(choose: Callable[[_Spheres], int], *, limit: bool = True) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """All variances v_kk^2 over that of the chosen sphere; in the limit up to exp(2 x^2 / (d + 2))."""
            del key
            place = _spheres(setting.population, setting.shapes["d"])
            variances = np.diag(place.variances)
            room = np.exp(2 * place.radii**4 / (place.dim + 2)) if limit else np.ones(len(variances))
            ratios = variances / variances[choose(place)] / room
            return [(float(r), always(1, "amini2021, after (32)")) for r in ratios]

        return Inequality(check)

    def steepest(place: _Spheres) -> int:
        return int(np.argmax(place.heights * place.radii))

    places = tuple(
        Setting(f"radii {radii}, d={d}", radii, shapes={"d": d})
        for radii in ((1.0, 2.0), (0.2, 1.5, 5.0))
        for d in (50, 5000)
    )
    return Check(
        printed=Form(sides(lambda place: int(np.argmin(place.radii)), limit=False), places),
        corrected=Form(sides(steepest), places),
        controls=(
            Control(
                "the outermost sphere", sides(lambda place: int(np.argmax(place.radii))), places[2:], "wrong operator"
            ),
        ),
    )


def _bandwidth() -> Check:
    d = 10_000

    def logs(radii: tuple[float, ...], tau: float) -> tuple[float, float]:
        place = _spheres(radii, d, tau)
        return -math.log(place.separation), math.log(place.variance / place.separation)

    def increase(key: jax.Array, setting: Setting) -> Pairs:
        """1 / gamma^2 and vbar^2 / gamma^2 over what they are for twice the bandwidth, from 0.7 to 2.8."""
        del key
        found = [logs(setting.population, 0.7 * 2**i) for i in range(3)]
        return [
            (math.exp(before - after), always(1, "amini2021, after (32)"))
            for first, second in itertools.pairwise(found)
            for before, after in zip(first, second, strict=True)
        ]

    def sides(level: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """d vbar^2 / gamma^2 over its limit, to within 4 times the largest (r^2 + sigma^2) / tau^2."""
            del key
            radii = np.array(setting.population)
            target = level * 4 * float(np.mean(radii**2)) ** 2 / _least_gap(radii**2) ** 2
            pairs = []
            for tau in (30.0, 100.0):
                found = d * math.exp(logs(setting.population, tau)[1])
                room = 4 * (radii.max() ** 2 + NOISE**2) / tau**2
                pairs.append((abs(found / target - 1), always(room, "amini2021, after (32), the limit")))
            return pairs

        return Inequality(check)

    places = tuple(Setting(f"radii {radii}, d={d}", radii) for radii in ((1.0, 5.0, 10.0), (1.0, 3.0, 4.0)))
    return Check(
        printed=Form(Inequality(increase), places),
        corrected=Form(sides(1.0), places),
        controls=(Control("twice the limit", sides(2.0), places, kind="wrong factor"),),
    )


def _consistency() -> Check:
    radii, tau, far = (1.0, 5.0, 10.0), math.sqrt(6.5), 2.5  # of Section 3.5, with alpha = 2

    def right(d: float, n: float) -> Bound:
        place = _spheres(radii, int(d), tau)
        gamma2 = place.separation
        return concentration.misclassification_population(
            gamma2=gamma2,
            gamma_tilde2=gamma2 / 3,
            vbar2=place.variance,
            bound=1.0,
            min_share=1 / 3,
            num_clusters=3,
            lipschitz=math.exp(-0.5) / tau,
            noise=NOISE,
            op_norm=1.0,
            dim=d,
            num_points=n,
            t=far,
        )

    def sides(power: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """The corrected (31) over d^-power + n^(-1/2), in units of itself at the first sizes where it holds."""
            del key
            start = setting.numbers["d"], setting.numbers["n"]

            def scaled(d: float, n: float) -> float:
                return float(right(d, n).value) / (d**-power + n**-0.5)

            pairs = []
            for more in (1.0, 10.0, 100.0):
                found = right(more * start[0], more**3 * start[1])
                value = scaled(more * start[0], more**3 * start[1]) / scaled(*start)
                pairs.append((value, Bound(1.0 + 1e-3, 1.0, found.valid, found.source)))
            return pairs

        return Inequality(check)

    places = (Setting("radii (1, 5, 10), d=4e6, n=1e16", numbers={"d": 4e6, "n": 1e16}),)
    return Check(
        corrected=Form(sides(1.0), places),
        controls=(Control("1 / d^2 for 1 / d", sides(2.0), places, kind="wrong power"),),
    )
