"""amini2021: mean kernels, and variances of entries and of whole kernel matrices; no sampling."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import jax
import numpy as np

from jaxkern import kernels, measures
from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Check, Control, Exact, Form, Identity, Inequality, Setting
from proofs_check.papers.amini2021 import exact
from proofs_check.papers.amini2021 import trials as t
from proofs_check.papers.amini2021.exact import Pairs
from proofs_check.papers.amini2021.places import Scope
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import always

PAPER = "amini2021"

Formula = Callable[..., Bound]


# --------------------------------------------------------------------------------------------------------- mean kernels


def _mean_places(data: Population | None) -> tuple[Setting, ...]:
    rng = np.random.default_rng(3)
    clouds = {d: 3 * rng.standard_normal((5, d)) / math.sqrt(d) for d in (1, 50)}
    tau = 1.8
    if data is not None:
        rows, tau = data.points[:5], float(data.kernel.lengthscale)
        clouds = {rows.shape[1]: rows}
    places = []
    for d, means in clouds.items():
        for name, shape in (("equal noise", np.ones(len(means))), ("unequal noise", np.linspace(0.5, 2, len(means)))):
            population = {"means": means, "noise": 0.8 * tau * shape, "tau": tau}
            places.append(Setting(f"{'means' if data is None else 'rows'}, d={d}, {name}", population))
    return tuple(places)


def _mean_kernel(scope: Scope) -> Check:
    def truth(setting: Setting) -> np.ndarray:
        means, noise, tau = (setting.population[name] for name in ("means", "noise", "tau"))
        variances = noise**2 / means.shape[1]
        return np.array(
            [
                [
                    1.0 if i == j else exact.mean_of_gaussian(x - y, variances[i] + variances[j], tau)
                    for j, y in enumerate(means)
                ]
                for i, x in enumerate(means)
            ]
        )

    def library(factor: float, power: int, key: jax.Array, setting: Setting) -> np.ndarray:
        del key
        means, noise, tau = (setting.population[name] for name in ("means", "noise", "tau"))
        found = measures.mean_gaussian_kernel(t.real(means), t.real(factor * noise**power), tau)
        return np.asarray(found - t.real(truth(setting)))

    def between(key: jax.Array, setting: Setting) -> np.ndarray:
        """The printed function of mu_i and mu_j, on the diagonal as well."""
        del key
        means, noise, tau = (setting.population[name] for name in ("means", "noise", "tau"))
        found = measures.mean_kernel_between(kernels.Gaussian(tau), t.real(means), t.real(means), float(noise[0]))
        return np.asarray(found - t.real(truth(setting)))

    places = _mean_places(scope.data)
    equal = tuple(place for place in places if np.ptp(place.population["noise"]) == 0)
    return Check(
        printed=Form(Identity(between), equal),
        corrected=Form(Identity(functools.partial(library, 1.0, 1)), places),
        controls=(
            Control(
                "the noise of one of the two points",
                Identity(functools.partial(library, 0.5**0.5, 1)),
                places,
                kind="term left out",
            ),
            Control(
                "the variance of the noise for its root",
                Identity(functools.partial(library, 1.0, 2)),
                places,
                kind="swapped constants",
            ),
        ),
    )


def _lemma_7() -> Check:
    settings = tuple(
        Setting(f"m={m:g}, t={s:g}", numbers={"m": m, "t": s}) for m in (0.0, 0.7, -2.5) for s in (0.1, 1.0, 1.5)
    )

    def residual(power: int, square: int = 2) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            m, s = setting.numbers["m"], setting.numbers["t"]
            spread = math.sqrt(1 + s**square)
            claimed = spread**-power * math.exp(-(m**2) / (2 * spread**2))
            return np.array([claimed / exact.mean_of_gaussian(np.array([m]), s**2, 1.0) - 1])

        return Identity(check)

    return Check(
        printed=Form(residual(1), settings),
        controls=(
            Control("s^-2 for s^-1", residual(2), settings, kind="wrong power"),
            Control("1 + t for 1 + t^2", residual(1, 1), settings, kind="swapped constants"),
        ),
    )


# ----------------------------------------------------------------------------------------- variances, and their sums


_WORDS = {"lipschitz": 1.0, "omega": 1.0, "scale": 1.0}
_TEN = "ten points, c=1, K=x+y"


def _under_33(left: Callable[[int], float], formula: Formula, factor: float = 1.0) -> Inequality:
    """Return the check of a quantity of n points of the law on ten points, in units of n, against a bound for c = 1."""

    def check(key: jax.Array, setting: Setting) -> Pairs:
        del key
        n = setting.shapes.get("n", 1)
        size = {"num_points": n} if "n" in setting.shapes else {}
        right = exact.rescaled(formula(**_WORDS, **size, c=1.0), factor)
        return [(left(n), dataclasses.replace(right, valid=bool(right.valid) and exact.has_property_33(1.0)))]

    return Inequality(check)


def _lemma_2_pairs() -> Check:
    return _lemma_2(diagonal=False)


def _lemma_2_diagonal() -> Check:
    return _lemma_2(diagonal=True)


def _lemma_2(*, diagonal: bool) -> Check:
    variance = float(exact.MASSES @ exact.ATOMS**2)
    formula = concentration.diagonal_variance if diagonal else concentration.pair_variance
    printed = functools.partial(formula, as_printed=True)
    places = (Setting(_TEN),)

    def left(n: int) -> float:
        return (4 if diagonal else 2) * variance

    # For a pair the law leaves room up to 2 var W = 2.4.
    control = Control(
        "2 for 2 (1 + ln 2)", _under_33(left, formula, 1 / (1 + math.log(2))), places, kind="wrong factor"
    )
    if diagonal:
        control = Control(
            "the constant of a pair", _under_33(left, concentration.pair_variance), places, kind="wrong factor"
        )
    return Check(
        printed=Form(_under_33(left, printed), places),
        corrected=Form(_under_33(left, formula), places),
        controls=(control,),
    )


def _sizes(*counts: int) -> tuple[Setting, ...]:
    return tuple(Setting(f"{_TEN}, n={n}", shapes={"n": n}) for n in counts)


def _proposition_4() -> Check:
    def left(n: int) -> float:
        return exact.sum_errors(n)[1]

    formula = concentration.frobenius_mean
    return Check(
        printed=Form(_under_33(left, functools.partial(formula, as_printed=True)), _sizes(1)),
        corrected=Form(_under_33(left, formula), _sizes(1, 2, 3)),
        controls=(Control("n for n + 1", _under_33(left, formula, 2**-0.5), _sizes(1), kind="n for n - 1"),),
    )


def _eq6() -> Check:
    def left(n: int) -> float:
        return exact.sum_errors(n)[0] / n**2

    formula = concentration.frobenius_mean_square
    return Check(
        printed=Form(_under_33(left, functools.partial(formula, as_printed=True)), _sizes(1)),
        corrected=Form(_under_33(left, formula), _sizes(1, 2, 3)),
        controls=(
            Control(
                "1 / c for 2 (1 + ln 2) / c",
                _under_33(left, formula, 0.5 / (1 + math.log(2))),
                _sizes(1, 3),
                kind="wrong factor",
            ),
            Control("1 for 1 + 1 / n", _under_33(left, formula, 0.5), _sizes(1), kind="n for n - 1"),
        ),
    )


def _concentrated_data() -> Check:
    def probability(as_printed: bool, mean: bool = True) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            n, far = setting.shapes["n"], setting.numbers["t"]
            words = {**_WORDS, "num_points": n, "c": 1.0}
            right = concentration.concentrated_data(**words, t=far, as_printed=as_printed)
            lost = 0.0 if mean else concentration.concentrated_data(**words, t=0.0, as_printed=as_printed).value
            chances, norms = exact.sum_norms(n)
            if not exact.has_property_33(1.0):
                raise ValueError("the law on ten points must have property (33) with c = 1")
            return exact.log_of(float(chances @ (norms > right.value - lost))), math.log(1 - right.probability)

        return Exact(check)

    settings = tuple(
        Setting(f"{_TEN}, n={n}, t={far:g}", numbers={"t": far}, shapes={"n": n})
        for n in (1, 2, 4)
        for far in (0.2, 0.6, 1.0)
    )
    return Check(
        printed=Form(probability(True), settings),
        corrected=Form(probability(False), settings),
        controls=(Control("without the mean", probability(False, mean=False), settings, kind="term left out"),),
    )


# ---------------------------------------------------------------------------------------------------------------- ours


def _variance_lc() -> Check:
    def sides(factor: float, *, off_by_one: bool = False) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            del key
            pair = exact.rescaled(concentration.pair_variance_lc(**_WORDS), factor)
            diagonal = exact.rescaled(concentration.diagonal_variance_lc(**_WORDS), factor)
            pairs = [(2.0, pair), (4.0, diagonal)]  # K = x + y, W ~ N(0, 1)
            for n in (1, 2, 30):
                mean = concentration.frobenius_mean_lc(**_WORDS, num_points=n)
                square = mean.value**2 * (n / (n + 1) if off_by_one else 1)
                pairs.append((2.0 * n * (n + 1) / n**2, always(factor * square / n**2, mean.source)))
            for tau in (0.5, 1.0, 3.0):  # the Gaussian kernel, in units of L^2
                for squared in (0.0, 1.0, 9.0):
                    words = {"squared_distance": squared, "noise_variance": 2.0, "lengthscale": tau, "dim": 2}
                    variance = concentration.gaussian_pair_variance(**words).value
                    pairs.append((variance / t.lipschitz_gaussian(tau) ** 2, pair))
            return pairs

        return Inequality(check)

    settings = (Setting("standard normal noise"),)
    return Check(
        corrected=Form(sides(1.0), settings),
        controls=(
            Control("0.98 of it", sides(0.98), settings, kind="wrong factor"),
            Control("n for n + 1", sides(1.0, off_by_one=True), settings, kind="n for n - 1"),
        ),
    )


def _pair_variance() -> Check:
    settings = tuple(
        Setting(f"v={v:g}, |m|={float(np.linalg.norm(m)):.3g}, d={len(m)}", {"m": np.array(m)}, {"v": v})
        for v in (0.01, 0.3, 1.2)
        for m in ([0.0, 0.0], [0.7, -1.1], [0.5] * 20)
    )

    def residual(factor: float, power: float = 1.0) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            m, v, tau = setting.population["m"], setting.numbers["v"], 1.4
            squares = exact.mean_of_gaussian(m, v, tau / math.sqrt(2))  # K^2 is a Gaussian kernel, too
            variance = squares - exact.mean_of_gaussian(m, v, tau) ** 2
            words = {"squared_distance": float(m @ m), "lengthscale": tau, "dim": len(m)}
            words["noise_variance"] = factor * v**power
            return np.array([concentration.gaussian_pair_variance(**words).value / variance - 1])

        return Identity(check, tolerance=3e5)  # the quadrature subtracts numbers that nearly agree

    return Check(
        corrected=Form(residual(1.0), settings),
        controls=(
            Control("the noise of one of the two points", residual(0.5), settings, kind="term left out"),
            Control(
                "the root of the variance for the variance", residual(1.0, 0.5), settings, kind="swapped constants"
            ),
        ),
    )
