"""amini2021, Section 2.1: Example 1, the Gaussian kernel with isotropic noise, and (12), anisotropic noise."""

import math
from collections.abc import Callable, Sequence
from functools import partial
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
)
from proofs_check.papers.amini2021 import trials
from proofs_check.papers.amini2021.expectations import mean_of_gaussian
from proofs_check.papers.amini2021.setup import (
    GRAM_TAIL,
    NOISE,
    Inputs,
    Pairs,
    around,
    rescaled,
)
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import (
    Grids,
    always,
    bound_of,
    check_of,
    lines,
    real,
    rng_of,
    wrong,
)

TAU = 2.0
TRUE_SLOPE = concentration.gaussian_lipschitz


def gaussian_slopes(
    tau: float, formula: Callable[..., Bound] = TRUE_SLOPE, dtype: Any = np.float64
) -> Pairs:
    """tau |f'(r)| by differences for 500 distances r, one of which is tau, against tau L."""
    r = tau * np.linspace(0.01, 5, 500)
    h = 1e-3 * tau

    def kernel(x: np.ndarray) -> np.ndarray:
        return np.exp(-(x**2) / (2 * tau**2)).astype(dtype).astype(float)

    slopes = tau * (np.abs(kernel(r - h) - kernel(r + h)) / (2 * h))
    right = tau * float(formula(lengthscale=tau).value)
    return lines(((slope, right) for slope in slopes), "amini2021, Example 1")


def rounded_slope(*, lengthscale: float) -> Bound:
    """Return 0.6 / tau."""
    return always(0.6 / lengthscale, "0.6")


def gamma_for_tau(*, lengthscale: float) -> Bound:
    """Return the constant of exp(-gamma r^2), with tau for gamma."""
    return TRUE_SLOPE(lengthscale=(2 * lengthscale) ** -0.5)


def ex1_lipschitz(grids: Grids) -> Check:
    name = "tau taken for gamma in exp(-gamma r^2)"
    return check_of(
        Inequality,
        grids["both"],
        wrong("0.6 for exp(-1/2)", "wrong factor", formula=rounded_slope),
        wrong(name, "swapped constants", formula=gamma_for_tau),
        wrong("the kernel in float16", "low precision", dtype=np.float16),
        printed=partial(gaussian_slopes, formula=partial(TRUE_SLOPE, as_printed=True)),
        corrected=gaussian_slopes,
    )


def _means_and_noise(data: Population | None) -> tuple[Setting, ...]:
    rng = np.random.default_rng(3)
    clouds = {d: 3 * rng.standard_normal((5, d)) / math.sqrt(d) for d in (1, 50)}
    label = "means"
    tau = 1.8
    if data is not None:
        rows = data.points[:5]
        clouds = {rows.shape[1]: rows}
        label = "rows"
        tau = float(data.kernel.lengthscale)
    settings = []
    for d, means in clouds.items():
        equal = np.ones(len(means))
        unequal = np.linspace(0.5, 2, len(means))
        for name, shape in (("equal noise", equal), ("unequal noise", unequal)):
            population = {"means": means, "noise": 0.8 * tau * shape, "tau": tau}
            settings.append(Setting(f"{label}, d={d}, {name}", population))
    return tuple(settings)


def _mean_by_quadrature(data: Any) -> np.ndarray:
    means = data["means"]
    variances = data["noise"] ** 2 / means.shape[1]
    mean = np.ones((len(means), len(means)))
    for i, j in zip(*np.where(~np.eye(len(means), dtype=bool)), strict=True):
        variance = variances[i] + variances[j]
        mean[i, j] = mean_of_gaussian(means[i] - means[j], variance, data["tau"])
    return mean


def mean_kernel_error(data: Any, factor: float = 1.0, power: float = 1.0) -> np.ndarray:
    """The mean kernel of the library minus the true one, by quadrature."""
    noise = real(factor * data["noise"] ** power)
    mean = measures.mean_gaussian_kernel(real(data["means"]), noise, data["tau"])
    return np.asarray(mean - real(_mean_by_quadrature(data)))


def printed_mean_error(data: Any) -> np.ndarray:
    """The printed function of mu_i and mu_j, on the diagonal as well, minus the true mean kernel."""
    X = real(data["means"])
    kernel = kernels.Gaussian(data["tau"])
    mean = measures.mean_kernel_between(kernel, X, X, float(data["noise"][0]))
    return np.asarray(mean - real(_mean_by_quadrature(data)))


def eq9(inputs: Inputs) -> Check:
    settings = _means_and_noise(inputs.data)
    equal = tuple(s for s in settings if np.ptp(s.data["noise"]) == 0)
    return check_of(
        Identity,
        settings,
        wrong("the noise of one of the two points", "term left out", factor=0.5**0.5),
        wrong("the variance of the noise for its root", "swapped constants", power=2),
        printed=printed_mean_error,
        corrected=mean_kernel_error,
        printed_settings=equal,
    )


def pair_variance_error(
    data: np.ndarray, v: float, factor: float = 1.0, power: float = 1.0
) -> np.ndarray:
    """The variance of the Gaussian kernel at N(m, v I), by the formula, over the one by quadrature, minus 1."""
    tau = 1.4
    # The square of the kernel is a Gaussian kernel, too.
    squares = mean_of_gaussian(data, v, tau / math.sqrt(2))
    variance = squares - mean_of_gaussian(data, v, tau) ** 2
    right = concentration.gaussian_pair_variance(
        squared_distance=float(data @ data),
        noise_variance=factor * v**power,
        lengthscale=tau,
        dim=len(data),
    )
    return np.array([right.value / variance - 1])


def gaussian_pair_variance() -> Check:
    offsets = [np.zeros(2), np.array([0.7, -1.1]), np.full(20, 0.5)]
    settings = []
    for v in (0.01, 0.3, 1.2):
        for m in offsets:
            size = np.linalg.norm(m)
            name = f"v={v:g}, |m|={size:.3g}, d={len(m)}"
            settings.append(Setting(name, m, {"v": v}))
    # The quadrature subtracts numbers that nearly agree.
    identity = partial(Identity, tolerance=3e5)
    return check_of(
        identity,
        tuple(settings),
        wrong("the noise of one of the two points", "term left out", factor=0.5),
        wrong(
            "the root of the variance for the variance", "swapped constants", power=0.5
        ),
        corrected=pair_variance_error,
    )


def kernel_limit(d: int, target: float = TAU, factor: float = 1.0) -> Pairs:
    """|f_(s tau) - f_target| in units of the bound, and s^-d against exp(-sigma^2 / tau^2) in its units."""
    r = np.linspace(0, 12, 601)
    a = NOISE**2 / TAU**2
    widened = TAU * math.sqrt(1 + 2 * a / d)
    limit = np.exp(-(r**2) / (2 * target**2))
    change = np.abs(np.exp(-(r**2) / (2 * widened**2)) - limit)
    largest = 2 * a / (math.e * d)
    excess = math.expm1(a - d / 2 * math.log1p(2 * a / d))  # s^-d / exp(-a) - 1
    first = (np.max(change) / largest, factor)
    second = (excess / math.expm1(a**2 / d), factor)
    return lines([first, second, (0, excess)], "amini2021, Example 1, the limits")


def ex1_limit(grids: Grids) -> Check:
    last = grids["corrected"][-1:]
    return check_of(
        Inequality,
        grids["corrected"],
        wrong("nine tenths of both", "wrong factor", settings=last, factor=0.9),
        printed=partial(kernel_limit, target=1.0),
        corrected=kernel_limit,
        printed_settings=last,
    )


def _gaussian_deviation(
    as_printed: bool, power: float = 0.0, square: bool = False
) -> Callable[[Setting], Bound]:
    """Return the bound on |K - E K| / n times d^power, in units of the lengthscale, which L tells.

    With `square` the square of the standard deviation of a coordinate stands for it.
    """

    formula = partial(
        concentration.gaussian_kernel, lengthscale=1.0, as_printed=as_printed
    )

    def right(setting: Setting) -> Bound:
        d = setting.data.means.shape[1]
        numbers = setting.numbers
        deviation = numbers["scale"] * numbers["lipschitz"] * math.exp(0.5)
        noise = math.sqrt(d) * (deviation**2 if square else deviation)
        bound = formula(noise=noise, dim=d, num_points=numbers["n"], t=numbers["t"])
        return rescaled(bound, d**power)

    return right


def eq10(inputs: Inputs) -> Check:
    in_operator_norm = around(inputs.models, inputs.deltas, operator=True, square=1.0)
    settings = around(inputs.models, inputs.deltas, square=1.0)
    first = in_operator_norm[:1]
    bound = _gaussian_deviation(False)
    faster = _gaussian_deviation(True, power=-0.5)
    squared = _gaussian_deviation(True, square=True)
    name = "the variance of a coordinate for its root"
    return check_of(
        GRAM_TAIL,
        settings,
        wrong("1 / d for 1 / sqrt(d)", "wrong power", faster, settings=first),
        controls.part_of(0.75, GRAM_TAIL(bound), settings),
        wrong(name, "swapped constants", squared, settings=first),
        printed=_gaussian_deviation(True),
        corrected=bound,
        printed_settings=in_operator_norm,
    )


def _rate_on_simplexes(
    levels: Sequence[float],
    dims: Sequence[int],
    size: str,
    exponent: float,
    wrong: float,
) -> Check:
    """Centres are at the mutual distance of one bandwidth, where an entry has nearly the largest variance."""
    centres = trials.simplex(trials.POINTS, 128, 1.0)
    settings = []
    for level in levels:
        for dim in dims:
            model = trials.gaussian("simplex", centres, level, dim)
            numbers = {"sigma": level, "dim": float(dim)}
            settings.append(model.setting(f"d={dim}, noise={level:g}", numbers))
    grows = partial(Rate, trials.gram_error, size, moment=trials.gram_moment)
    control = Control(
        f"the exponent {wrong:g}",
        grows(exponent=wrong),
        tuple(settings),
        "wrong power",
    )
    return Check(
        printed=Form(grows(exponent=exponent), tuple(settings)), controls=(control,)
    )


def rate_dimension() -> Check:
    return _rate_on_simplexes((0.05,), (48, 64, 80, 104, 128), "dim", -0.5, -0.75)


def rate_noise() -> Check:
    return _rate_on_simplexes((0.02, 0.04, 0.08, 0.12, 0.2), (64,), "sigma", 1.0, 0.75)


def rescaling_errors(d: int, power: float = 0.5) -> np.ndarray:
    """Deviations of a coordinate of sigma and a bandwidth of tau d^power, against (10)."""
    bound = partial(
        concentration.gaussian_kernel, dim=d, num_points=50, t=1.3, as_printed=True
    )
    wide = TAU * d**power
    rescaled_bound = bound(noise=NOISE * math.sqrt(d), lengthscale=wide)
    ratio = rescaled_bound.value / bound(noise=NOISE, lengthscale=TAU).value
    # The exponents of the kernels: sqrt(d) times the points and the bandwidth.
    x, y = rng_of(jax.random.key(d)).standard_normal((2, 5))
    exponent = -np.sum((x - y) ** 2) / (2 * TAU**2)
    wide_exponent = -np.sum((math.sqrt(d) * (x - y)) ** 2) / (2 * wide**2)
    return np.array([ratio - 1, wide_exponent / exponent - 1])


def ex1_rescaling(grids: Grids) -> Check:
    wider = wrong("tau d for tau sqrt(d)", "wrong power", power=1.0)
    return check_of(Identity, grids["printed"], wider, printed=rescaling_errors)


def eq12(inputs: Inputs) -> Check:
    n = trials.POINTS
    decay = 1 / np.arange(1.0, n + 1)
    sums = trials.sums("x + y, |Sigma|=1", variances=decay / n)
    means = trials.two_centres(n, n, 1.0)
    distances = trials.Model(
        "distances, |Sigma|=1", kernels.Distance(), 1.0, means, sums.variances
    )
    settings = around((sums, distances), inputs.deltas, operator=True, square=1.0)
    formula = partial(bound_of, concentration.anisotropic_noise, num_points="n", dim=n)
    mean = formula(op_norm=float(decay.mean()))
    first = settings[:1]
    return check_of(
        GRAM_TAIL,
        settings,
        wrong("tr Sigma / d for |Sigma|", "swapped constants", mean, settings=first),
        printed=formula(op_norm=1.0, as_printed=True),
        corrected=formula(op_norm=1.0),
    )
