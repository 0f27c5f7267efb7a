"""amini2021, Example 1 and (12): the Gaussian kernel with isotropic noise, and anisotropic noise (Section 2.1)."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxkern import kernels, measures
from jaxkern.bounds import Bound, concentration
from proofs_check import controls
from proofs_check.claim import (
    Check,
    Control,
    Form,
    Identity,
    Inequality,
    Rate,
    Setting,
    Tail,
)
from proofs_check.papers.amini2021 import laws, trials
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.amini2021.setup import NOISE, Inputs, around
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import always, grid, lines, parametrized, real, rng_of

TAU = 2.0


def _gaussian_lipschitz() -> Check:
    @parametrized(Inequality)
    def sides(
        setting: Setting, constant: Callable[[float], float], dtype: Any = np.float64
    ) -> Pairs:
        tau = setting.numbers["tau"]
        r, h = (
            tau * np.linspace(0.01, 5, 500),
            1e-3 * tau,
        )  # 499 steps of .01 tau, one of which is at tau
        before, after = (
            np.exp(-(x**2) / (2 * tau**2)).astype(dtype).astype(float)
            for x in (r - h, r + h)
        )
        slopes = tau * (np.abs(before - after) / (2 * h))
        return lines(((s, tau * constant(tau)) for s in slopes), "amini2021, Example 1")

    def printed(tau: float) -> float:
        return float(
            concentration.gaussian_lipschitz(lengthscale=tau, as_printed=True).value
        )

    def gamma_for_tau(tau: float) -> float:
        return trials.lipschitz_gaussian((2 * tau) ** -0.5)

    true = trials.lipschitz_gaussian
    settings = grid("tau={tau:g}", tau=(0.3, 1.7))
    swapped = sides(constant=gamma_for_tau)
    return Check(
        printed=Form(sides(constant=printed), settings),
        corrected=Form(sides(constant=true), settings),
        controls=(
            Control(
                "0.6 for exp(-1/2)",
                sides(constant=lambda tau: 0.6 / tau),
                settings,
                "wrong factor",
            ),
            Control(
                "tau taken for gamma in exp(-gamma r^2)",
                swapped,
                settings,
                "swapped constants",
            ),
            Control(
                "the kernel in float16",
                sides(constant=true, dtype=np.float16),
                settings,
                "low precision",
            ),
        ),
    )


def _means_and_noise(data: Population | None) -> tuple[Setting, ...]:
    rng = np.random.default_rng(3)
    clouds = {d: 3 * rng.standard_normal((5, d)) / math.sqrt(d) for d in (1, 50)}
    tau = 1.8
    if data is not None:
        rows, tau = data.points[:5], float(data.kernel.lengthscale)
        clouds = {rows.shape[1]: rows}
    settings = []
    for d, means in clouds.items():
        for name, shape in (
            ("equal noise", np.ones(len(means))),
            ("unequal noise", np.linspace(0.5, 2, len(means))),
        ):
            population = {"means": means, "noise": 0.8 * tau * shape, "tau": tau}
            settings.append(
                Setting(
                    f"{'means' if data is None else 'rows'}, d={d}, {name}", population
                )
            )
    return tuple(settings)


def _mean_kernel(inputs: Inputs) -> Check:
    def error(mean: Any, setting: Setting) -> np.ndarray:
        """A mean kernel matrix minus the true one, by quadrature."""
        means, noise, tau = (setting.data[name] for name in ("means", "noise", "tau"))
        variances = noise**2 / means.shape[1]
        true = np.ones((len(means), len(means)))
        for i, j in zip(*np.where(~np.eye(len(means), dtype=bool)), strict=True):
            true[i, j] = laws.mean_of_gaussian(
                means[i] - means[j], variances[i] + variances[j], tau
            )
        return np.asarray(mean - real(true))

    @parametrized(Identity)
    def library(setting: Setting, factor: float = 1.0, power: int = 1) -> np.ndarray:
        means, noise, tau = (setting.data[name] for name in ("means", "noise", "tau"))
        mean = measures.mean_gaussian_kernel(
            real(means), real(factor * noise**power), tau
        )
        return error(mean, setting)

    def between(setting: Setting) -> np.ndarray:
        """The printed function of mu_i and mu_j, on the diagonal as well."""
        means, noise, tau = (setting.data[name] for name in ("means", "noise", "tau"))
        X = real(means)
        return error(
            measures.mean_kernel_between(kernels.Gaussian(tau), X, X, float(noise[0])),
            setting,
        )

    settings = _means_and_noise(inputs.data)
    equal = tuple(s for s in settings if np.ptp(s.data["noise"]) == 0)
    halved = library(factor=0.5**0.5)
    return Check(
        printed=Form(Identity(between), equal),
        corrected=Form(library(), settings),
        controls=(
            Control(
                "the noise of one of the two points", halved, settings, "term left out"
            ),
            Control(
                "the variance of the noise for its root",
                library(power=2),
                settings,
                "swapped constants",
            ),
        ),
    )


def _pair_variance() -> Check:
    @parametrized(
        Identity, tolerance=3e5
    )  # the quadrature subtracts numbers that nearly agree
    def residual(
        setting: Setting, factor: float = 1.0, power: float = 1.0
    ) -> np.ndarray:
        m, v, tau = setting.data["m"], setting.numbers["v"], 1.4
        squares = laws.mean_of_gaussian(
            m, v, tau / math.sqrt(2)
        )  # K^2 is a Gaussian kernel, too
        variance = squares - laws.mean_of_gaussian(m, v, tau) ** 2
        right = concentration.gaussian_pair_variance(
            squared_distance=float(m @ m),
            noise_variance=factor * v**power,
            lengthscale=tau,
            dim=len(m),
        )
        return np.array([right.value / variance - 1])

    settings = tuple(
        Setting(
            f"v={v:g}, |m|={float(np.linalg.norm(m)):.3g}, d={len(m)}",
            {"m": np.array(m)},
            {"v": v},
        )
        for v in (0.01, 0.3, 1.2)
        for m in ([0.0, 0.0], [0.7, -1.1], [0.5] * 20)
    )
    root = residual(power=0.5)
    return Check(
        corrected=Form(residual(), settings),
        controls=(
            Control(
                "the noise of one of the two points",
                residual(factor=0.5),
                settings,
                "term left out",
            ),
            Control(
                "the root of the variance for the variance",
                root,
                settings,
                "swapped constants",
            ),
        ),
    )


def _limit() -> Check:
    r = np.linspace(0, 12, 601)
    source = "amini2021, Example 1, the limits"

    def kernel(scale: float) -> np.ndarray:
        return np.exp(-(r**2) / (2 * scale**2))

    @parametrized(Inequality)
    def sides(setting: Setting, target: float = TAU, factor: float = 1.0) -> Pairs:
        """|f_(s tau) - f_target| in units of the bound, and s^-d against exp(-sigma^2 / tau^2) in its units."""
        d = setting.shapes["d"]
        a = NOISE**2 / TAU**2
        right = 2 * a / (math.e * d)
        left = float(
            np.max(np.abs(kernel(TAU * math.sqrt(1 + 2 * a / d)) - kernel(target)))
        )
        excess = math.expm1(a - d / 2 * math.log1p(2 * a / d))  # s^-d / exp(-a) - 1
        return [
            (left / right, always(factor, source)),
            (excess / math.expm1(a**2 / d), always(factor, source)),
            laws.at_least(excess, always(0, source)),
        ]

    settings = grid("sigma=1.5, tau=2, d={d}", shapes="d", d=(2, 100, 10_000))
    return Check(
        printed=Form(sides(target=1.0), settings[-1:]),
        corrected=Form(sides(), settings),
        controls=(
            Control(
                "nine tenths of both", sides(factor=0.9), settings[-1:], "wrong factor"
            ),
        ),
    )


def _eq10(inputs: Inputs) -> Check:
    @parametrized(functools.partial(Tail, trials.gram_error))
    def tail(
        setting: Setting,
        as_printed: bool = True,
        *,
        power: float = 0.0,
        square: bool = False,
    ) -> Bound:
        """The bound on |K - E K| / n times d^power, in units of the lengthscale, which L tells.

        With `square` the square of the standard deviation of a coordinate stands for it.
        """
        n, d = setting.numbers, setting.data.means.shape[1]
        deviation = n["scale"] * n["lipschitz"] * math.exp(0.5)
        noise = math.sqrt(d) * (deviation**2 if square else deviation)
        given = {
            "noise": noise,
            "lengthscale": 1.0,
            "dim": d,
            "num_points": n["n"],
            "t": n["t"],
        }
        return laws.rescaled(
            concentration.gaussian_kernel(**given, as_printed=as_printed), d**power
        )

    settings = around(inputs.models, inputs.deltas, operator=True, square=1.0)
    return Check(
        printed=Form(tail(), settings),
        corrected=Form(tail(False), around(inputs.models, inputs.deltas, square=1.0)),
        controls=(
            Control(
                "1 / d for 1 / sqrt(d)", tail(power=-0.5), settings[:1], "wrong power"
            ),
            controls.part_of(
                0.75, tail(False), around(inputs.models, inputs.deltas, square=1.0)
            ),
            Control(
                "the variance of a coordinate for its root",
                tail(square=True),
                settings[:1],
                "swapped constants",
            ),
        ),
    )


def _rate_on_simplexes(
    levels: Sequence[float],
    dims: Sequence[int],
    size: str,
    exponent: float,
    wrong: float,
) -> Check:
    """Centres are at the mutual distance of one bandwidth, where an entry has nearly the largest variance."""
    n, most = trials.POINTS, 128
    settings = tuple(
        trials.gaussian("simplex", trials.simplex(n, most, 1.0), level, dim).setting(
            f"d={dim}, noise={level:g}", {"sigma": level, "dim": float(dim)}
        )
        for level in levels
        for dim in dims
    )
    true, control = (
        Rate(trials.gram_error, size, power, moment=trials.gram_moment)
        for power in (exponent, wrong)
    )
    return Check(
        printed=Form(true, settings),
        controls=(
            Control(f"the exponent {wrong:g}", control, settings, "wrong power"),
        ),
    )


def _dimension() -> Check:
    return _rate_on_simplexes((0.05,), (48, 64, 80, 104, 128), "dim", -0.5, -0.75)


def _noise() -> Check:
    return _rate_on_simplexes((0.02, 0.04, 0.08, 0.12, 0.2), (64,), "sigma", 1.0, 0.75)


def _rescaling() -> Check:
    @parametrized(Identity)
    def residual(setting: Setting, power: float) -> np.ndarray:
        """Deviations of a coordinate of sigma and a bandwidth of tau d^power, against (10)."""
        d = setting.shapes["d"]
        given: dict[str, Any] = {
            "dim": d,
            "num_points": 50,
            "t": 1.3,
            "as_printed": True,
        }
        wide = concentration.gaussian_kernel(
            noise=NOISE * math.sqrt(d), lengthscale=TAU * d**power, **given
        )
        unscaled = concentration.gaussian_kernel(noise=NOISE, lengthscale=TAU, **given)
        # The exponents of the kernels: sqrt(d) times the points and the bandwidth.
        x, y = rng_of(jax.random.key(d)).standard_normal((2, 5))
        exponent = -np.sum((x - y) ** 2) / (2 * TAU**2)
        wide_exponent = -np.sum((math.sqrt(d) * (x - y)) ** 2) / (
            2 * (TAU * d**power) ** 2
        )
        return np.array([wide.value / unscaled.value - 1, wide_exponent / exponent - 1])

    settings = grid("d={d}", shapes="d", d=(4, 1000))
    return Check(
        printed=Form(residual(power=0.5), settings),
        controls=(
            Control(
                "tau d for tau sqrt(d)", residual(power=1.0), settings, "wrong power"
            ),
        ),
    )


def _eq12(inputs: Inputs) -> Check:
    n = d = trials.POINTS
    decay = 1 / np.arange(1.0, d + 1)
    anisotropic = np.tile(decay / d, (n, 1))
    models = (
        trials.sums("x + y, |Sigma|=1", variances=decay / d),
        trials.Model(
            "distances, |Sigma|=1",
            kernels.Distance(),
            1.0,
            trials.two_centres(n, d, 1.0),
            anisotropic,
        ),
    )

    @parametrized(functools.partial(Tail, trials.gram_error))
    def tail(setting: Setting, as_printed: bool = False, op_norm: float = 1.0) -> Bound:
        given = {
            "lipschitz": 1.0,
            "op_norm": op_norm,
            "dim": d,
            "num_points": n,
            "t": setting.numbers["t"],
        }
        return concentration.anisotropic_noise(**given, as_printed=as_printed)

    settings = around(models, inputs.deltas, operator=True, square=1.0)
    mean = tail(op_norm=float(decay.mean()))
    return Check(
        printed=Form(tail(True), settings),
        corrected=Form(tail(), settings),
        controls=(
            Control(
                "tr Sigma / d for |Sigma|", mean, settings[:1], "swapped constants"
            ),
        ),
    )
