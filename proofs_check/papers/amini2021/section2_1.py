"""amini2021, Section 2.1: Lipschitz kernels up to Remark 1; Theorem A."""

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from scipy import stats

from jaxkern import kernels, problems
from jaxkern.bounds import Bound, concentration
from proofs_check import controls
from proofs_check.claim import (
    Check,
    Control,
    Exact,
    Form,
    Inequality,
    Rate,
    Setting,
    Tail,
)
from proofs_check.papers.amini2021 import trials
from proofs_check.papers.amini2021.expectations import mean_norm
from proofs_check.papers.amini2021.setup import (
    GRAM_TAIL,
    Inputs,
    Pairs,
    around,
    log_of,
    per_point,
    rescaled,
    with_numbers,
)
from proofs_check.papers.amini2021.ten_points import UNIT, bound_under_33, sum_errors
from proofs_check.papers.shared import (
    Grids,
    check_of,
    exceeds,
    lines,
    real,
    rng_of,
    share_of,
    wrong,
)


def joint_quotients(
    key: jax.Array, setting: Setting, factor: float = 1.0, back: bool = False
) -> Pairs:
    """Quotients of differences: over |x - x'| + |y - y'|, or `back` over the norm of the pair."""
    rng = rng_of(key)
    is_sum = setting.name == "x + y"
    pairs = []
    for _ in range(500):
        x, y, move = rng.standard_normal((3, 2))
        start = np.concatenate([x, y])
        for step in (np.concatenate([move, move]), rng.standard_normal(4)):
            if is_sum:
                change = abs(step[0] + step[2])
            else:
                end = start + step
                change = abs(float(np.linalg.norm(start) - np.linalg.norm(end)))
            apart = float(np.linalg.norm(step[:2]) + np.linalg.norm(step[2:]))
            length = float(np.linalg.norm(step)) if back else apart
            pairs.append((change / length, factor))
    if back and is_sum:
        # Random steps come close to the constant, and a common step along the first axis attains it.
        pairs.append((2 / math.sqrt(2), factor))
    return lines(pairs, "amini2021, after (2)")


def sec2_1_jointly() -> Check:
    joint = (Setting("|(x, y)|"),)
    total = (Setting("x + y"),)
    back = partial(joint_quotients, factor=math.sqrt(2), back=True)
    return check_of(
        Inequality,
        joint + total,
        wrong("1.4 for sqrt(2)", "wrong factor", settings=total, factor=1.4),
        printed=joint_quotients,
        corrected=back,
        printed_settings=joint,
    )


@jax.jit
def _values(kernel: Any, X: jax.Array, Y: jax.Array) -> jax.Array:
    return jax.vmap(kernel)(X, Y)


def kernel_quotients(key: jax.Array, data: Any, dim: int, factor: float = 1.0) -> Pairs:
    """|K(x1, x2) - K(y1, y2)| over |x1 - y1| + |x2 - y2|, against the constant that the library has."""
    count = 300
    normal = jax.random.normal(key, (4, count, dim))
    x1, x2, first, second = np.array(normal, np.float64)
    steps = 10.0 ** np.random.default_rng(1).uniform(-1, 0.5, (count, 1))
    is_second = (np.arange(count) % 2)[:, None]
    y1 = x1 + steps * first
    y2 = x2 + is_second * steps * second
    # The other steps are short ones along a line, where f is steepest, too.
    axis = np.eye(dim)[0]
    x1[::2] = x2[::2] + np.linspace(0, 3, count // 2)[:, None] * axis
    y1[::2] = x1[::2] + 0.002 * axis
    apart = np.sum(np.linalg.norm([x1 - y1, x2 - y2], axis=2), axis=0)
    before = _values(data["kernel"], real(x1), real(x2))
    after = _values(data["kernel"], real(y1), real(y2))
    change = np.abs(np.asarray(before - after, np.float64))
    constant = factor * float(kernels.lipschitz(data["kernel"], dim))
    return lines(((slope, constant) for slope in change / apart), "amini2021, (3)")


def lem4() -> Check:
    built_in = (kernels.Distance(), kernels.Gaussian(0.7), kernels.Exponential(0.5))
    settings = []
    for kernel in built_in:
        name = f"{type(kernel).__name__}, d=3"
        settings.append(Setting(name, {"kernel": kernel}, shapes={"dim": 3}))
    smaller = wrong("0.995 of the constant", "wrong factor", factor=0.995)
    return check_of(Inequality, tuple(settings), smaller, printed=kernel_quotients)


def _slopes_over_omega(
    quantiles: Callable[[np.ndarray], np.ndarray], omega: float, constant: float
) -> Pairs:
    """Slopes of the map that takes a standard normal variable to one with these quantiles."""
    z = np.linspace(-4, 4, 801)
    slopes = np.diff(quantiles(stats.norm.cdf(z))) / np.diff(z) / omega
    source = "amini2021, proof of Theorem 1, class (b)"
    return lines(((slope, constant) for slope in slopes), source)


def slopes_to_two_intervals(e: float) -> Pairs:
    """The density is 1 / (4 e) within e of a and of -a."""
    a = math.sqrt(1 - e**2 / 3)

    def quantiles(u: np.ndarray) -> np.ndarray:
        return np.where(u < 0.5, -a - e, a - 3 * e) + 4 * e * u

    return _slopes_over_omega(quantiles, 4 * e, 1.0)


def slopes_to_ramp(slope: float, constant: float = 1 / math.sqrt(2 * math.pi)) -> Pairs:
    """The density is (1 + slope y) / (1 + slope / 2) on [0, 1], at least 1 / omega."""
    omega = 1 + slope / 2

    def quantiles(u: np.ndarray) -> np.ndarray:
        mass = omega * u
        return 2 * mass / (1 + np.sqrt(1 + 2 * slope * mass))

    return _slopes_over_omega(quantiles, omega, constant)


def def2b(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["corrected"],
        wrong("0.39 for 1 / sqrt(2 pi)", "wrong factor", constant=0.39),
        printed=slopes_to_two_intervals,
        corrected=slopes_to_ramp,
        printed_settings=grids["printed"],
    )


def without_t(formula: Callable[..., Bound]) -> Callable[..., Bound]:
    """Return a bound without its term in t, with its probability, for controls."""

    @functools.wraps(formula)
    def still(**arguments: Any) -> Bound:
        value = formula(**{**arguments, "t": 0.0}).value
        return replace(formula(**arguments), value=value)

    return still


def thm1_lc(inputs: Inputs) -> Check:
    laws = {
        "Gaussian": trials.GAUSSIAN,
        "class (a), softplus": problems.SoftplusImageLaw(),
        "class (b), uniform": problems.RampLaw(0.0),
        "class (b), ramp": problems.RampLaw(),
        "class (c), skewed": problems.SkewedLaw(),
    }
    models = [trials.sums(name, law) for name, law in laws.items()]
    settings = around(models, inputs.deltas)
    (rare,) = around(models[:1], (0.01,))
    reused = (with_numbers(rare, reused=1.0),)
    formula = concentration.lipschitz_kernel
    still = per_point(without_t(formula), mean_scale="mean_scale")
    first = settings[:1]
    name = "one draw of the noise for all points"
    return check_of(
        GRAM_TAIL,
        settings,
        wrong("without the term in t", "term left out", still, settings=first),
        wrong(name, "reused key", settings=reused),
        corrected=per_point(formula, mean_scale="mean_scale"),
    )


def within(c: float, e: float) -> Setting:
    """Return W within e of -1 or 1, which is in class (b) with omega = 4 e, and t for delta = 0.05 with this c."""
    t = math.sqrt(math.log(20) / c)
    numbers = {**UNIT, "omega": 4 * e, "n": 32.0, "c": c, "e": e, "t": t}
    return Setting(f"W within {e:g} of -1 or 1, c={c:g}", None, numbers, {"n": 32})


def thm1(inputs: Inputs) -> Check:
    formula = concentration.lipschitz_kernel
    bound = per_point(formula, as_printed=True)

    def rooted(setting: Setting) -> Bound:
        """The mean of the order of sqrt(n) instead of n."""
        right = bound(setting)
        root = 1 - setting.numbers["n"] ** -0.5
        lost = 2 * setting.numbers["omega"] * root * math.sqrt(2)
        return replace(right, value=right.value - lost)

    gap = Tail(trials.gap_error, per_point(formula, c="c", as_printed=True))
    gaps = (within(0.5, 0.01), within(0.01, 0.003), within(1e-4, 1e-4))
    models = (
        trials.sums("x + y, Gaussian"),
        trials.sums("x + y, ramp", problems.RampLaw()),
    )
    settings = around(models, inputs.deltas, operator=True)
    wrong = Tail(trials.gram_error, rooted)
    return Check(
        printed=Form(gap, gaps),
        corrected=Form(Tail(trials.gram_error, bound), settings),
        controls=(Control("sqrt(n) for n", wrong, settings[:1], "wrong power"),),
    )


def distance_kernel(inputs: Inputs) -> Check:
    n = trials.POINTS
    rng = np.random.default_rng(21)
    normal = rng.standard_normal((n, n)) * (np.arange(n) < 3)
    clouds = np.repeat([0.0, 0.3, 3.0], n // 3)[:, None] * normal
    levels = np.repeat([0.2, 0.5, 1.0], n // 3)
    near = trials.distances("distances, three levels of noise", clouds, levels, 3)
    # Two far centres nearly attain the bound.
    centres = trials.two_centres(n, n, 50.0)
    far = trials.distances("distances, two far centres", centres, 1.0, 3)
    bound = per_point(concentration.distance_kernel, mean_scale="mean_scale")
    settings = around((near, *inputs.models, far), inputs.deltas)
    smaller = controls.part_of(0.74, GRAM_TAIL(bound), settings)
    return check_of(GRAM_TAIL, settings, smaller, corrected=bound)


def total_variance(model: trials.Model) -> float:
    """Return the sum of var K(X_i, X_j) over all i and j, for the Gaussian kernel and noise of one level."""
    means = model.means
    squared = np.sum((means[:, None] - means) ** 2, axis=2)
    off_diagonal = squared[~np.eye(len(means), dtype=bool)]
    distinct, counts = np.unique(off_diagonal, return_counts=True)
    variance = partial(
        concentration.gaussian_pair_variance,
        noise_variance=2 * float(model.variances[0, 0]),
        lengthscale=float(model.kernel.lengthscale),
        dim=means.shape[1],
    )
    variances = [variance(squared_distance=float(x)).value for x in distinct]
    return float(counts @ variances)


def distance_kernel_variance(inputs: Inputs) -> Check:
    totals = {model: total_variance(model) for model in inputs.models}
    settings = tuple(
        with_numbers(s, total_variance=totals[s.data])
        for s in around(inputs.models, inputs.deltas)
    )
    first = settings[:: len(inputs.deltas)]
    formula = concentration.distance_kernel_from_variance
    bound = per_point(formula)
    without = per_point(without_t(formula))
    still = wrong("without the term in t", "term left out", without, settings=first)
    smaller = controls.part_of(0.75, GRAM_TAIL(bound), first)
    return check_of(GRAM_TAIL, settings, still, smaller, corrected=bound)


def variances_lc(
    factor: float = 1.0, count: Callable[[int], int] = lambda n: n + 1
) -> Pairs:
    """Variances of standard normal noise, for K = x + y and the Gaussian kernel in units of L^2.

    E |K - E K|_F^2 is 2 n (n + 1) for K = x + y; the square of the bound is multiplied by n + 1 over `count`.
    """
    pair = rescaled(concentration.pair_variance_lc(**UNIT), factor)
    diagonal = rescaled(concentration.diagonal_variance_lc(**UNIT), factor)
    pairs = [(2.0, pair), (4.0, diagonal)]
    for n in (1, 2, 30):
        mean = concentration.frobenius_mean_lc(**UNIT, num_points=n)
        square = mean.value**2 * count(n) / (n + 1)
        right = replace(mean, value=factor * square / n**2)
        pairs.append((2.0 * n * (n + 1) / n**2, right))
    for tau in (0.5, 1.0, 3.0):
        for squared in (0.0, 1.0, 9.0):
            variance = concentration.gaussian_pair_variance(
                squared_distance=squared, noise_variance=2.0, lengthscale=tau, dim=2
            )
            unit = trials.lipschitz_gaussian(tau) ** 2
            pairs.append((variance.value / unit, pair))
    return pairs


def variance_lc(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["corrected"],
        wrong("0.98 of it", "wrong factor", factor=0.98),
        wrong("n for n + 1", "n for n - 1", count=lambda n: n),
        corrected=variances_lc,
    )


def concentrated_normal(
    *, n: float, t: float, as_printed: bool = False, mean: bool = True
) -> Bound:
    """Return the bound for n normal points and K = x + y, or the term in t alone without the `mean`."""
    formula = partial(
        concentration.concentrated_data,
        **UNIT,
        num_points=n,
        c=0.5,
        as_printed=as_printed,
    )
    right = formula(t=t)
    lost = 0 if mean else formula(t=0.0).value
    return replace(right, value=right.value - lost)


def sum_of_normals_tail(value: float, n: int) -> float:
    """log P(|K - E K|_F > value), the square is 2 n (2 a^2 + q): a standard normal a, chi-square q of n - 1 degrees."""
    a = np.linspace(-12, 12, 20_001)
    q = value**2 / (2 * n) - 2 * a**2
    density = stats.norm.pdf(a) * (a[1] - a[0])
    return log_of(float(density @ stats.chi2.sf(q, n - 1)))


def thm1_33(grids: Grids) -> Check:
    statement = exceeds(sum_of_normals_tail)
    return check_of(
        statement,
        grids["both"],
        wrong("without the mean", "term left out", mean=False),
        printed=partial(concentrated_normal, as_printed=True),
        corrected=concentrated_normal,
    )


def lowest_norm(*, n: float) -> Bound:
    """Return the bound of Proposition 1 from below, for s = L = 1."""
    return concentration.lower_limit(lipschitz=1.0, scale=1.0, num_points=n)


def clipped_below(value: float, n: int, p: float = 0.5) -> float:
    """log P(|K - E K| <= value): X is -2, 0 or 2, and |K - E K| the larger of N - p and p, N ~ Bin(n, p)."""
    count = np.arange(n + 1)
    below = np.maximum(count - p, p) <= value
    return log_of(float(stats.binom.pmf(count, n, p) @ below))


def prop1(grids: Grids) -> Check:
    return check_of(
        exceeds(clipped_below),
        grids["printed"],
        wrong("n / 2 for n / 8", "wrong factor", share_of(4.0, lowest_norm)),
        printed=lowest_norm,
    )


def any_share(n: int, p: float, power: float = 1.0) -> tuple[float, float]:
    """X is -2, 0 or 2 and s = L = 1; the bound is n p / 4, with probability 1 - exp(-n p^2 / 2)."""
    return clipped_below(n * p**power / 4, n, p), -n * p**2 / 2


def prop1_any(grids: Grids) -> Check:
    first = grids["corrected"][:1]
    larger = wrong("1 for p", "wrong power", settings=first, power=0.0)
    return check_of(Exact, grids["corrected"], larger, corrected=any_share)


def rate_points(grids: Grids) -> Check:
    settings = grids["printed"]
    grows = partial(
        Rate, trials.clipped_norm, "n", width=0.05, moment=trials.clipped_moment
    )
    slower = grows(exponent=0.9)
    return Check(
        printed=Form(grows(exponent=1.0), settings),
        controls=(Control("the exponent 0.9", slower, settings, "wrong power"),),
    )


def mean_square(n: int, as_printed: bool = False, factor: float = 1.0) -> Pairs:
    """E |K - E K|_F^2 / n^2 for K = x + y and n of the ten points."""
    formula = partial(concentration.frobenius_mean_square, as_printed=as_printed)
    right = bound_under_33(formula, num_points=n)
    square, _ = sum_errors(n)
    return [(square / n**2, rescaled(right, factor))]


def eq6(grids: Grids) -> Check:
    settings = grids["corrected"]
    share = 0.5 / (1 + math.log(2))
    return check_of(
        Inequality,
        settings,
        wrong(
            "1 / c for 2 (1 + ln 2) / c",
            "wrong factor",
            settings=settings[::2],
            factor=share,
        ),
        wrong("1 for 1 + 1 / n", "n for n - 1", settings=settings[:1], factor=0.5),
        printed=partial(mean_square, as_printed=True),
        corrected=mean_square,
        printed_settings=grids["printed"],
    )


def distance_variance_printed(d: int, constant: float = 100.0) -> Pairs:
    """K = |x - y|, equal means, Sigma = I / d: E (K - tr Sigma)^2 against C (tr Sigma^2 + C1 |Sigma|), C1 = C."""
    left = 2 - 2 * mean_norm(d, 2 / d, 0.0) + 1
    return lines([(left, constant * (1 + constant) / d)], "amini2021, (7)")


def distance_variance(d: int, offset: float, factor: float = 1.0) -> Pairs:
    """E (|X - Y| - a)^2 = 2 a (a - E |X - Y|), a^2 = |m|^2 + 2 tr Sigma, in units of the bound."""
    square = offset**2 + 2 * d
    a = math.sqrt(square)
    left = 2 * a * (a - mean_norm(d, 2.0, offset))
    sharp = 2 * a * 2 / (a + math.sqrt(square - 2))
    pairs = [(left / sharp, factor), (sharp / 4, 1)]
    return lines(pairs, "amini2021, (7), corrected")


def eq7(grids: Grids) -> Check:
    last = grids["corrected"][-1:]
    return check_of(
        Inequality,
        grids["corrected"],
        wrong("nine tenths of it", "wrong factor", settings=last, factor=0.9),
        printed=distance_variance_printed,
        corrected=distance_variance,
        printed_settings=grids["printed"],
    )
