"""amini2021: the mean kernel of radial noise and nested spheres, by quadrature (Examples 4 to 6, Appendix B)."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy import stats

from jaxkern import kernels, measures
from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Law, Setting
from proofs_check.papers.amini2021 import exact
from proofs_check.papers.amini2021 import trials as t
from proofs_check.papers.amini2021.exact import Pairs
from proofs_check.papers.shared import always

PAPER = "amini2021"

NOISE, TAU = 1.5, math.sqrt(3.25)
"""Of Section 3.5, with alpha = 1."""

RADII = ((1.0, 1.0), (1.0, 5.0), (2.0, 3.0), (5.0, 5.0))

Residual = Callable[[jax.Array, Setting], np.ndarray]


def _spheres(dims: tuple[int, ...]) -> tuple[Setting, ...]:
    return tuple(
        Setting(f"radii {r:g} and {q:g}, d={d}", numbers={"r": r, "q": q}, shapes={"d": d})
        for d in dims
        for r, q in RADII
    )


def _words(setting: Setting) -> dict[str, float]:
    words = {"radius": setting.numbers["r"], "other_radius": setting.numbers["q"], "noise": NOISE}
    return {**words, "lengthscale": TAU, "dim": setting.shapes["d"]}


# --------------------------------------------------------------------------------------------- Example 4: radial noise


COSINES = (0.0, 1e-9, 0.3, -0.3, 0.9, -1.0, 1.0)


def _eq28() -> Check:
    def residual(cosines: tuple[float, ...], zero: int, noise: float = NOISE) -> Residual:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            r, q, d = setting.numbers["r"], setting.numbers["q"], setting.shapes["d"]
            true = np.array([exact.radial_quadrature(a, r, q, NOISE, TAU, d) for a in cosines])
            return exact.radial_mean(np.array(cosines), r, q, noise, TAU, d, zero) / true - 1

        return check

    def library(key: jax.Array, setting: Setting) -> np.ndarray:
        del key
        r, q, d = setting.numbers["r"], setting.numbers["q"], setting.shapes["d"]
        true = t.real([exact.radial_quadrature(a, r, q, NOISE, TAU, d) for a in COSINES])
        others = np.stack([q * np.array(COSINES), q * np.sqrt(1 - np.array(COSINES) ** 2)], axis=1)
        pad = np.eye(2, d)
        found = measures.mean_kernel_between(
            kernels.Gaussian(TAU), t.real([[r, 0.0]] @ pad), t.real(others @ pad), measures.RadialNoise(NOISE)
        )
        return np.asarray(found[0] / true - 1)

    places = _spheres((4, 50))
    return Check(
        printed=Form(Identity(residual(COSINES[1:], 1)), places),
        corrected=Form(Identity(library), places),
        controls=(
            Control("sign(0) = 0", Identity(residual(COSINES[:1], 0)), places, kind="hypothesis broken"),
            Control(
                "the variance of the noise for its root",
                Identity(residual(COSINES[1:], 1, NOISE**2)),
                places,
                kind="swapped constants",
            ),
        ),
    )


def _angle() -> Check:
    dims, r = (10, 100, 10**6), 5.0

    def goes_away(key: jax.Array, setting: Setting) -> Pairs:
        """By how much the kernel differs between two angles: in high dimensions, and in dimension 10."""
        del key
        low, high = (
            float(np.ptp(exact.radial_mean(np.array([0.01, 0.9]), r, r, NOISE, TAU, d))) for d in (dims[0], dims[-1])
        )
        return [(high, always(low / 2, "amini2021, Example 4"))]

    def limit(level: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """|f_d - f_tau(|u - v|)| in units of the bound."""
            del key
            a = np.linspace(-1, 1, 41)
            pairs = []
            for d in dims:
                right = concentration.radial_mean_gap(noise=NOISE, lengthscale=TAU, dim=d)
                found = exact.radial_mean(a, r, r, NOISE, TAU, d)
                apart = np.abs(found - exact.still_kernel(level * a, r, r, TAU)) / right.value
                pairs += [(float(x), exact.rescaled(right, 1 / right.value)) for x in apart]
            return pairs

        return Inequality(check)

    places = (Setting("both at distance 5 from the origin, noise 1.5"),)
    return Check(
        printed=Form(Inequality(goes_away), places),
        corrected=Form(limit(1.0), places),
        controls=(Control("a limit that depends on the norms alone", limit(0.0), places, kind="term left out"),),
    )


def _gap() -> Check:
    def sides(constant: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """The largest gap over radii, for every cosine, in units of the bound."""
            del key
            d, a = setting.shapes["d"], np.linspace(-1, 1, 401)
            right = concentration.radial_mean_gap(noise=NOISE, lengthscale=TAU, dim=d)
            gaps = [
                np.abs(exact.radial_mean(a, r, q, NOISE, TAU, d) - exact.still_kernel(a, r, q, TAU))
                for r, q in itertools.product((0.01, 0.5, 1.0, 3.0, 5.0), repeat=2)
            ]
            return [(float(x / right.value), exact.rescaled(right, constant / right.value)) for x in np.max(gaps, 0)]

        return Inequality(check)

    places = tuple(Setting(f"radii from .01 to 5, d={d}", shapes={"d": d}) for d in (2, 10, 1000))
    return Check(
        corrected=Form(sides(1.0), places),
        controls=(Control("nine tenths of C", sides(0.9), places, kind="wrong factor"),),
    )


# ----------------------------------------------------------------------------------------- Example 5: isotropic noise


def _kernel_values(setting: Setting) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the mean kernel at the nodes of the cosine, their weights, and x of Example 5."""
    r, q, d = setting.numbers["r"], setting.numbers["q"], setting.shapes["d"]
    a, weights = exact.cosines(d)
    s2 = 1 + 2 * NOISE**2 / (d * TAU**2)
    return s2 ** (-d / 2) * exact.still_kernel(a, r, q, math.sqrt(s2) * TAU), weights, r * q / (s2 * TAU**2)


def _moments(setting: Setting) -> tuple[float, float, float]:
    """Return mean and variance of the mean kernel over two spheres, by quadrature, and x."""
    values, weights, x = _kernel_values(setting)
    mean = float(weights @ values)
    return mean, float(weights @ (values - mean) ** 2), x


def _psi_of(x: float, d: int, dtype: np.dtype) -> np.ndarray:
    """Return psi(x) and psi(2 x) by the library."""
    return np.asarray(measures.sphere_mgf(t.real([x, 2 * x]), d), dtype)


def _mean() -> Check:
    def residual(power: float, noise: float = NOISE) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            mean, _, x = _moments(setting)
            psi = measures.sphere_mgf(t.real([x]), setting.shapes["d"])
            unit = concentration.isotropic_block_mean(**{**_words(setting), "noise": noise}, psi=1.0).value
            return np.asarray(psi**power * t.real(unit / mean) - 1)

        return Identity(check)

    places = _spheres((10, 50))
    return Check(
        printed=Form(residual(1.0), places),
        controls=(
            Control("the root of psi", residual(0.5), places, kind="wrong power"),
            Control(
                "the variance of the noise for its root", residual(1.0, NOISE**2), places, kind="swapped constants"
            ),
        ),
    )


def _variance() -> Check:
    def residual(as_printed: bool, factor: float = 1.0, *, centred: bool = True) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            _, variance, x = _moments(setting)
            dtype = np.dtype(t.real(0).dtype)
            psi, double = (float(v) for v in _psi_of(x, setting.shapes["d"], dtype))
            words = {**_words(setting), "psi": psi if centred else 0.0, "psi_double": double}
            found = concentration.isotropic_block_variance(**words, as_printed=as_printed)
            return np.array([factor * found.value / variance - 1], dtype)

        return Identity(check)

    places = _spheres((10, 50))
    return Check(
        printed=Form(residual(True), places),
        corrected=Form(residual(False), places),
        controls=(
            Control("1.05 times it", residual(False, 1.05), places, kind="wrong factor"),
            Control(
                "the second moment for the variance",
                residual(False, centred=False),
                places,
                kind="centred for uncentred",
            ),
        ),
    )


def _log_psi(u: float, d: int) -> float:
    return float(measures.log_sphere_mgf(t.real(u), d))


def _growing(values: tuple[float, ...]) -> tuple[Setting, ...]:
    """Return settings with u much smaller than d."""
    return tuple(Setting(f"u={u:g}, d={d}", numbers={"u": u}, shapes={"d": d}) for u in values for d in (1000, 10_000))


def _limit() -> Check:
    def sides(power: int, target: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """| d (1 - psi(u)^power / psi(2 u)) / u^2 - target |, at most exp(2 u^2 / d) - 1 by Theorem E."""
            del key
            u, d = setting.numbers["u"], setting.shapes["d"]
            found = -math.expm1(power * _log_psi(u, d) - _log_psi(2 * u, d)) * d / u**2
            right = always(math.expm1(2 * u**2 / d), "amini2021, before (32)")
            return [(abs(found - target), right)]

        return Inequality(check)

    places = _growing((0.5, 3.0))
    return Check(
        printed=Form(sides(1, 0.75), places),
        corrected=Form(sides(2, 1.0), places),
        controls=(Control("3 u^2 / 4 d for the squared one", sides(2, 0.75), places, kind="wrong factor"),),
    )


def _eq32() -> Check:
    def sides(exponent: bool) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """The variance in units of its lower bound."""
            del key
            _, variance, _ = _moments(setting)
            lower = concentration.isotropic_block_variance_lower(**_words(setting))
            upper = concentration.isotropic_block_variance_upper(**_words(setting)) if exponent else lower
            unit = lower.value
            return [
                exact.at_least(variance / unit, exact.rescaled(lower, 1 / unit)),
                (variance / unit, exact.rescaled(upper, 1 / unit)),
            ]

        return Inequality(check)

    places = _spheres((2, 10, 50, 200))
    return Check(
        corrected=Form(sides(True), places),
        controls=(Control("without the exponential factor", sides(False), places, kind="wrong factor"),),
    )


# -------------------------------------------------------------------------------------------------- Lemma 6: the angle


def _lemma_6() -> Check:
    d = 400

    def place(name: str, factor: float, *, reused: bool = False) -> tuple[Setting, ...]:
        return (Setting(f"{name}, d={d}", None, {"factor": factor, "reused": float(reused)}, {"dim": d}),)

    law = Law(t.angle, stats.norm.cdf)
    return Check(
        printed=Form(law, place("sqrt(2 d)", math.sqrt(2 * d))),
        corrected=Form(law, place("sqrt(d)", math.sqrt(d))),
        controls=(
            Control("half of the factor", law, place("sqrt(d) / 2", math.sqrt(d) / 2), kind="wrong factor"),
            Control("one direction twice", law, place("sqrt(d), twice", math.sqrt(d), reused=True), kind="reused key"),
        ),
    )


def _psi() -> Check:
    def sides(as_printed: bool, factor: float = 1.0) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """The ratio of the logarithms is at most 1, and at least 1 - u^2 / 4 d."""
            del key
            u, d = setting.numbers["u"], setting.shapes["d"]
            about = concentration.sphere_moment(u=u, dim=d, as_printed=as_printed)
            ratio = _log_psi(u, d) / (factor * math.log(about.value))
            low = always(1 - u**2 / (4 * d), about.source)
            return [(ratio, always(1, about.source)), exact.at_least(ratio, low)]

        return Inequality(check)

    places = _growing((0.5, 5.0))
    return Check(
        printed=Form(sides(True), places),
        corrected=Form(sides(False), places),
        controls=(Control("0.98 of the exponent", sides(False, 0.98), places, kind="wrong factor"),),
    )


# ----------------------------------------------------------------------------------------------- Example 6: both noises


def _radial_variance() -> Check:
    def sides(formula: Callable[..., Bound]) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """The variance in units of the bound."""
            del key
            r, q, d = setting.numbers["r"], setting.numbers["q"], setting.shapes["d"]
            a, weights = exact.cosines(d)
            values = exact.radial_mean(a, r, q, NOISE, TAU, d)
            variance = float(weights @ (values - weights @ values) ** 2)
            right = formula(**_words(setting))
            return [(variance / right.value, exact.rescaled(right, 1 / right.value))]

        return Inequality(check)

    def squared_dimension(*, dim: float, **words: Any) -> Bound:
        return concentration.radial_block_variance(**words, dim=dim**2)

    places = _spheres((10, 50, 200))
    formula = concentration.radial_block_variance
    return Check(
        printed=Form(sides(functools.partial(formula, as_printed=True)), places),
        corrected=Form(sides(formula), places),
        controls=(Control("d^2 for d", sides(squared_dimension), places, kind="wrong power"),),
    )
