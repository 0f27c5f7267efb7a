"""amini2021, Section 2.2: the inner product kernel and Theorem 2; Theorem B."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from scipy import stats

from jaxkern import kernels
from jaxkern.bounds import Bound, concentration
from proofs_check.claim import (
    Calibrated,
    Check,
    Control,
    Exact,
    Form,
    Identity,
    Inequality,
    Setting,
    Tail,
    sample,
)
from proofs_check.papers.amini2021 import trials
from proofs_check.papers.amini2021.setup import (
    GRAM_TAIL,
    KAPPA,
    NOISE,
    Inputs,
    Pairs,
    inner_products,
    log_of,
    per_point,
    rank_two,
    rescaled,
    with_numbers,
)
from proofs_check.papers.shared import (
    Grids,
    bound_of,
    check_of,
    exceeds,
    lines,
    op_norm,
    rng_of,
    wrong,
)

CASES = ((16, 0.0), (16, 20.0), (64, 40.0))
"""Dimensions and norms of the matrix of means."""


def _inner_products(
    cases: Sequence[tuple[int, float]], deltas: Sequence[float], *names: str
) -> tuple[Setting, ...]:
    """Return cases with failure probabilities delta, and some numbers: t = delta, u with 3 exp(-u^2 / 2) = delta."""
    settings = []
    for dim, norm in cases:
        model = inner_products(trials.POINTS, dim, norm, 64)
        for delta in deltas:
            known = {
                "mean_norm": norm,
                "mean_rank": 2.0 * (norm > 0),
                "u": math.sqrt(2 * math.log(3 / delta)),
                "t": delta,
            }
            numbers = {name: known[name] for name in names}
            numbers |= {"dim": float(dim), "operator": 1.0}
            settings.append(model.setting(f"delta={delta:g}", numbers))
    return tuple(settings)


def random_signs_bound(n: int, u: float) -> Bound:
    """Return the printed bound per point for n = d, no means, 4 n^-c1 = 0.3 and c2 = 1."""
    right = concentration.inner_product_kernel(
        kappa=1 / math.sqrt(math.log(2)),
        scale=1,
        mean_norm=0,
        dim=n,
        num_points=n,
        u=u,
        c1=math.log(4 / 0.3) / math.log(n),
        c2=1.0,
        as_printed=True,
    )
    return replace(right, value=right.value / n)


def thm2(inputs: Inputs, grids: Grids) -> Check:
    signs = Tail(trials.signs_norm, bound_of(random_signs_bound))
    bound = per_point(concentration.inner_product_gaussian)
    without_means = GRAM_TAIL(
        lambda setting: bound(with_numbers(setting, mean_norm=0.0))
    )
    settings = _inner_products(CASES, inputs.deltas, "mean_norm", "mean_rank", "u")
    far = settings[-len(inputs.deltas) :]
    return Check(
        printed=Form(signs, grids["printed"]),
        corrected=Form(GRAM_TAIL(bound), settings),
        controls=(Control("without the means", without_means, far, "term left out"),),
    )


def inner_product_any(inputs: Inputs) -> Check:
    n = trials.POINTS
    d = 12
    width = 64
    deviations = np.random.default_rng(7).uniform(0.2, 0.7, (n, d)) @ np.eye(d, width)
    size = float(np.sqrt(np.sum(deviations**4, axis=1)).max())
    settings = []
    for norm in (0.0, 20.0):
        means = rank_two(n, d, norm) @ np.eye(d, width)
        name = f"unequal variances, d={d}, |M|={norm:g}"
        model = trials.Model(name, kernels.Linear(), math.inf, means, deviations**2)
        for delta in inputs.deltas:
            numbers = {"mean_norm": norm, "tau": math.log(1 / delta), "operator": 1.0}
            settings.append(model.setting(f"delta={delta:g}", numbers))
    formula = concentration.inner_product_gaussian_any
    bound = per_point(formula, frobenius=size)
    # A net of the sphere in one dimension: without any point there would be no bound at all.
    one_dimension = per_point(formula, frobenius=size, num_points=1.0)
    without_net = wrong("without the net", "term left out", one_dimension)
    return check_of(GRAM_TAIL, tuple(settings), without_net, corrected=bound)


def _eq14_shape(setting: Setting, mean_norm: float | None = None) -> Bound:
    numbers = setting.numbers
    n = numbers["n"]
    size = numbers["mean_norm"] if mean_norm is None else mean_norm
    noise = KAPPA**2 * (n + math.sqrt(n * numbers["dim"]))
    value = (noise + KAPPA * math.sqrt(n) * size) / n
    return Bound(value, 1 - numbers["t"], True, "amini2021, (14), shape")


def eq14(inputs: Inputs) -> Check:
    # From Theorem B with u <= sqrt(n) and rank M <= n.
    upper = max(4 / KAPPA**2, 6 / KAPPA)
    settings = _inner_products(CASES, inputs.deltas, "mean_norm", "t")
    far = settings[-len(inputs.deltas) :]
    trial = trials.gram_error
    tenth = Calibrated(trial, _eq14_shape, 0.0, upper / 10)
    without_means = Calibrated(
        trial,
        lambda setting: rescaled(_eq14_shape(setting, mean_norm=0.0), 0.4),
        0.0,
        4 / KAPPA**2,
    )
    return Check(
        printed=Form(Calibrated(trial, _eq14_shape, 0.0, upper), settings),
        controls=(
            Control("a tenth of the constant", tenth, settings, "wrong factor"),
            Control("without the means", without_means, far, "term left out"),
        ),
    )


def mean_errors(
    key: jax.Array, diagonal: Callable[[np.ndarray], float] = np.trace
) -> np.ndarray:
    """E K over all 64 choices of signs W (2, 3), against the formula."""
    rng = rng_of(key)
    n = 3
    d = 2
    M = rng.standard_normal((d, n))
    roots = rng.standard_normal((n, d, d))
    total = np.zeros((n, n))
    for number in range(2 ** (n * d)):
        W = 1.0 - 2 * ((number >> np.arange(n * d)) & 1).reshape(n, d)
        X = M + np.einsum("ijk,ik->ji", roots, W)
        total += X.T @ X / 2 ** (n * d)
    formula = np.diag([diagonal(S @ S.T) for S in roots]) + M.T @ M
    return (total - formula) / op_norm(total)


def sec2_2_mean(grids: Grids) -> Check:
    norms = wrong("|Sigma_i| for its trace", "swapped constants", diagonal=op_norm)
    nothing = wrong("no diagonal", "term left out", diagonal=lambda Sigma: 0.0)
    return check_of(Identity, grids["printed"], norms, nothing, printed=mean_errors)


def relative_errors(key: jax.Array, power: float = 1.0) -> Pairs:
    """|M|^power |K - E K| / |E K| against the limit of its upper bound, which is fixed."""
    rng = rng_of(key)
    n = 30
    d = 10
    W = rng.standard_normal((d, n))
    direction = np.outer(np.eye(1, d)[0], np.full(n, n**-0.5))
    right = 2 * op_norm(W) + op_norm(W.T @ W - d * np.eye(n)) / 10
    pairs = []
    for size in (10.0, 100.0, 1000.0):
        M = size * direction
        K = (M + W).T @ (M + W)
        mean = M.T @ M + d * np.eye(n)
        left = size**power * op_norm(K - mean) / op_norm(mean)
        pairs.append((left / right, 1))
    return lines(pairs, "amini2021, after (14)")


def sec2_2_relative(grids: Grids) -> Check:
    faster = wrong("1 / |M|^2", "wrong power", power=2.0)
    return check_of(Inequality, grids["printed"], faster, printed=relative_errors)


def shape_error(n: float, d: float, M: float, power: float = -0.5) -> np.ndarray:
    """The shape of (14) over n, at sigma_inf = sigma / sqrt(d) and kappa = 1, against Example 2."""
    s = NOISE / math.sqrt(d)
    centred = s**2 * (n + math.sqrt(n * d))
    shape = (centred + s * math.sqrt(n) * M) / n
    size = NOISE * (n * d) ** power * M
    printed = NOISE**2 * (1 / d + (n * d) ** -0.5) + size
    return np.array([printed / shape - 1])


def ex2(grids: Grids) -> Check:
    faster = wrong("1 / (n d) for its root", "wrong power", power=-1.0)
    return check_of(Identity, grids["printed"], faster, printed=shape_error)


@sample("centred")
def over_gram_error(
    key: jax.Array, population: Any, numbers: trials.Numbers
) -> jax.Array:
    """n / |K - E K|, which is at most n over a lower bound."""
    return 1 / trials.gram_error(key, population, numbers)


def _over_lower(setting: Setting, factor: float = 1.0) -> Bound:
    """Return n over a multiple of the lower bound, with probability 1 - t."""
    numbers = setting.numbers
    lower = concentration.inner_product_lower_centred(
        scale=1.0, dim=numbers["dim"], num_points=numbers["n"], u=numbers["u"]
    )
    value = numbers["n"] / (factor * lower.value)
    return Bound(value, 1 - numbers["t"], lower.valid, lower.source)


def _centred_shape(setting: Setting) -> Bound:
    numbers = setting.numbers
    value = 1 + math.sqrt(numbers["dim"] / numbers["n"])
    return Bound(value, 1 - numbers["t"], True, "amini2021, Section 2.2, shape")


def sec2_2_centred(inputs: Inputs) -> Check:
    cases = ((64, 0.0), (16, 0.0))
    settings = _inner_products(cases, inputs.deltas, "u", "t")
    shape = partial(Calibrated, trials.gram_error, _centred_shape, 0.0)
    tenfold = Tail(over_gram_error, partial(_over_lower, factor=10.0))
    return Check(
        printed=Form(shape(4.0), settings),
        corrected=Form(Tail(over_gram_error, _over_lower), settings),
        controls=(
            Control("ten times the lower bound", tenfold, settings[:1], "wrong factor"),
            Control("a tenth of the constant", shape(0.4), settings, "wrong factor"),
        ),
    )


def limit_errors(
    n: int, d: int, rank: int, transposed: float = 1.0, factor: float = 1.0
) -> Pairs:
    """| |K - E K| - factor |M'W + transposed W'M| | for X = M / s + s W, against s^2 |W'W - d I|."""
    rng = np.random.default_rng(rank)
    W = rng.standard_normal((d, n))
    M = rng.standard_normal((d, rank)) @ rng.standard_normal((rank, n))
    M /= op_norm(M)
    limit = factor * op_norm(M.T @ W + transposed * W.T @ M)
    pairs = []
    for s in (0.03, 0.01):
        X = M / s + s * W
        mean = M.T @ M / s**2 + d * s**2 * np.eye(n)
        right = s**2 * op_norm(W.T @ W - d * np.eye(n))
        pairs.append((abs(op_norm(X.T @ X - mean) - limit), right))
    return lines(pairs, "amini2021, Section 2.2, the limit")


def sec2_2_limit(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["both"],
        wrong("|M'W|", "wrong factor", transposed=0.0),
        printed=partial(limit_errors, transposed=0.0, factor=2.0),
        corrected=limit_errors,
    )


def lower_rank_one(*, n: float, u: float, factor: float = 1.0) -> Bound:
    """Return the lower bound for |M| = 1 and rank M = 1, the root multiplied by a factor."""
    right = concentration.inner_product_lower(
        mean_norm=1.0, mean_rank=1, num_points=n, u=u
    )
    return replace(right, value=factor * (right.value + u) - u)


def log_below(level: float, n: int) -> float:
    """Return log P(|y| + |y_1| < level) for y ~ N(0, I) in R^n: the norm |b y' + y b'| for b = e_1."""
    a = np.linspace(0, level / 2, 20_001)
    others = stats.chi2.cdf((level - a) ** 2 - a**2, n - 1)
    values = 2 * stats.norm.pdf(a) * others
    return log_of(float(np.trapezoid(values, a)))


def printed_lower_limit(n: int) -> tuple[float, float]:
    """The norm exceeds sqrt(2 n) |M| with probability 1/2 or more: log P of the opposite."""
    return log_below(math.sqrt(2 * n), n), math.log(0.5)


def sec2_2_lower(grids: Grids) -> Check:
    check = check_of(
        exceeds(log_below),
        grids["corrected"],
        wrong("sqrt(2) times the root", "wrong factor", factor=math.sqrt(2)),
        corrected=lower_rank_one,
    )
    # What is printed has no bound in the library.
    return replace(check, printed=Form(Exact(printed_lower_limit), grids["printed"]))
