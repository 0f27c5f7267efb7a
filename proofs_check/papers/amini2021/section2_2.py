"""amini2021, Section 2.2: the inner product kernel, Theorem 2 and a step of its proof; Theorem B."""

import functools
import math
from collections.abc import Callable, Sequence
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
from proofs_check.papers.amini2021 import laws, trials
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.amini2021.setup import (
    KAPPA,
    NOISE,
    Inputs,
    inner_products,
    per_point,
    rank_two,
)
from proofs_check.papers.shared import (
    grid,
    lines,
    listed,
    op_norm,
    parametrized,
    rng_of,
)


def _gram(
    cases: Sequence[tuple[int, float]], inputs: Inputs, **numbers: Callable[..., float]
) -> tuple[Setting, ...]:
    """Return dimensions and norms of the means with failure probabilities, and numbers that depend on these three."""
    return tuple(
        inner_products(trials.POINTS, dim, norm, 64).setting(
            f"delta={delta:g}",
            {"dim": float(dim), "operator": 1.0}
            | {name: of(norm, delta) for name, of in numbers.items()},
        )
        for dim, norm in cases
        for delta in inputs.deltas
    )


def _u(_: float, delta: float) -> float:
    """The u of 3 exp(-u^2 / 2) = delta."""
    return math.sqrt(2 * math.log(3 / delta))


CASES = ((16, 0.0), (16, 20.0), (64, 40.0))


def _theorem_2(inputs: Inputs) -> Check:
    n = 384
    c1 = math.log(4 / 0.3) / math.log(n)  # 4 n^-c1 = 0.3
    signs = (
        Setting(f"random signs, n=d={n}", None, {"u": 0.0}, {"n": n, "steps": 32}),
    )

    def printed(setting: Setting) -> Bound:
        given = {
            "kappa": 1 / math.sqrt(math.log(2)),
            "scale": 1,
            "mean_norm": 0,
            "dim": n,
            "num_points": n,
            "c2": 1.0,
        }
        right = concentration.inner_product_kernel(
            **given, u=setting.numbers["u"], c1=c1, as_printed=True
        )
        return laws.rescaled(right, 1 / n)

    def forgotten(setting: Setting) -> Bound:
        return bound(Setting("", numbers={**setting.numbers, "mean_norm": 0.0}))

    bound = per_point(concentration.inner_product_gaussian)
    given = {
        "mean_norm": lambda norm, _: norm,
        "mean_rank": lambda norm, _: 2.0 * (norm > 0),
        "u": _u,
    }
    control = Tail(trials.gram_error, forgotten)
    return Check(
        printed=Form(Tail(trials.signs_norm, printed), signs),
        corrected=Form(Tail(trials.gram_error, bound), _gram(CASES, inputs, **given)),
        controls=(
            Control(
                "without the means",
                control,
                _gram(CASES[-1:], inputs, **given),
                "term left out",
            ),
        ),
    )


def _net() -> Check:
    eps = 0.25

    def sides(constant: float, factor: float = 1.0) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """|B| over the largest |z'Bz| of a net of the circle whose farthest point is at distance eps."""
            rng = rng_of(key)
            angle = 2 * math.asin(eps / 2)  # between vectors at distance eps
            angles = np.add.outer(
                np.arange(4) * math.pi / 2, np.linspace(angle, math.pi / 2 - angle, 4)
            ).ravel()
            net = np.stack([np.cos(angles), np.sin(angles)], axis=1)
            pairs = []
            for i in range(201):
                # Both eigenvectors of the first one are as far from the net as can be.
                A = rng.standard_normal((2, 2)) if i else np.diag([0.5, -0.5])
                best = float(
                    np.max(np.abs(np.einsum("ki,ij,kj->k", net, A + A.T, net)))
                )
                pairs.append((op_norm(A + A.T) / best / constant, factor))
            return lines(
                [*pairs, (len(net) / 9**2, 1)], "amini2021, proof of Theorem 2"
            )

        return Inequality(check)

    sharp = 1 / (1 - 2 * eps**2 + eps**4 / 2)
    settings = (Setting("a 1/4-net of the circle"),)
    return Check(
        printed=Form(sides(2.0), settings),
        corrected=Form(sides(sharp), settings),
        controls=(
            Control("99 per cent of it", sides(sharp, 0.99), settings, "wrong factor"),
        ),
    )


def _any_covariance(inputs: Inputs) -> Check:
    n, d, width = trials.POINTS, 12, 64
    sd = np.random.default_rng(7).uniform(0.2, 0.7, (n, d)) @ np.eye(d, width)
    size = float(np.sqrt(np.sum(sd**4, axis=1)).max())

    def tail(net: float) -> Tail:
        formula = concentration.inner_product_gaussian_any
        return Tail(
            trials.gram_error, per_point(formula, frobenius=size, num_points=net * n)
        )

    settings = []
    for norm in (0.0, 20.0):
        means, name = (
            rank_two(n, d, norm) @ np.eye(d, width),
            f"unequal variances, d={d}, |M|={norm:g}",
        )
        model = trials.Model(name, kernels.Linear(), math.inf, means, sd**2)
        for delta in inputs.deltas:
            numbers = {"mean_norm": norm, "tau": math.log(1 / delta), "operator": 1.0}
            settings.append(model.setting(f"delta={delta:g}", numbers))
    return Check(
        corrected=Form(tail(1.0), tuple(settings)),
        # A net of the sphere in one dimension: without any point there would be no bound at all.
        controls=(
            Control("without the net", tail(1 / n), tuple(settings), "term left out"),
        ),
    )


def _eq14(inputs: Inputs) -> Check:
    upper = max(4 / KAPPA**2, 6 / KAPPA)
    """From Theorem B with u <= sqrt(n) and rank M <= n."""

    def shape(setting: Setting) -> Bound:
        n, d, size = (setting.numbers[name] for name in ("n", "dim", "mean_norm"))
        value = KAPPA**2 * (n + math.sqrt(n * d)) + KAPPA * math.sqrt(n) * size
        return Bound(
            value / n, 1 - setting.numbers["t"], True, "amini2021, (14), shape"
        )

    def forgotten(setting: Setting) -> Bound:
        return laws.rescaled(
            shape(Setting("", numbers={**setting.numbers, "mean_norm": 0.0})), 0.4
        )

    settings = _gram(
        CASES, inputs, mean_norm=lambda norm, _: norm, t=lambda _, delta: delta
    )
    far, trial = settings[-len(inputs.deltas) :], trials.gram_error
    tenth = Calibrated(trial, shape, 0.0, upper / 10)
    return Check(
        printed=Form(Calibrated(trial, shape, 0.0, upper), settings),
        controls=(
            Control("a tenth of the constant", tenth, settings, "wrong factor"),
            Control(
                "without the means",
                Calibrated(trial, forgotten, 0.0, 4 / KAPPA**2),
                far,
                "term left out",
            ),
        ),
    )


def _mean() -> Check:
    def residual(diagonal: Callable[[np.ndarray], float]) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """E K over all 64 choices of signs W (2, 3), against the formula."""
            rng = rng_of(key)
            n, d = 3, 2
            M, roots = rng.standard_normal((d, n)), rng.standard_normal((n, d, d))
            total = np.zeros((n, n))
            for number in range(2 ** (n * d)):
                W = 1.0 - 2 * ((number >> np.arange(n * d)) & 1).reshape(n, d)
                X = M + np.einsum("ijk,ik->ji", roots, W)
                total += X.T @ X / 2 ** (n * d)
            formula = np.diag([diagonal(S @ S.T) for S in roots]) + M.T @ M
            return (total - formula) / op_norm(total)

        return Identity(check)

    settings = (Setting("random signs, n=3, d=2"),)
    return Check(
        printed=Form(residual(lambda Sigma: float(np.trace(Sigma))), settings),
        controls=(
            Control(
                "|Sigma_i| for its trace",
                residual(op_norm),
                settings,
                "swapped constants",
            ),
            Control(
                "no diagonal", residual(lambda Sigma: 0.0), settings, "term left out"
            ),
        ),
    )


def _relative() -> Check:
    def sides(power: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """|M|^power |K - E K| / |E K| against the limit of its upper bound, which is fixed."""
            rng = rng_of(key)
            n, d = 30, 10
            W, direction = (
                rng.standard_normal((d, n)),
                np.outer(np.eye(1, d)[0], np.full(n, n**-0.5)),
            )
            pairs = []
            for size in (10.0, 100.0, 1000.0):
                M = size * direction
                K, mean = (M + W).T @ (M + W), M.T @ M + d * np.eye(n)
                right = 2 * op_norm(W) + op_norm(W.T @ W - d * np.eye(n)) / 10
                left = size**power * op_norm(K - mean) / op_norm(mean)
                pairs.append((left / right, 1))
            return lines(pairs, "amini2021, after (14)")

        return Inequality(check)

    settings = (Setting("rank one, n=30, d=10"),)
    return Check(
        printed=Form(sides(1.0), settings),
        controls=(Control("1 / |M|^2", sides(2.0), settings, "wrong power"),),
    )


def _example_2() -> Check:
    @parametrized(Identity)
    def residual(setting: Setting, power: float = -0.5) -> np.ndarray:
        """The shape of (14) over n, at sigma_inf = sigma / sqrt(d) and kappa = 1, against Example 2."""
        n, d, size = setting.numbers["n"], setting.numbers["d"], setting.numbers["M"]
        s = NOISE / math.sqrt(d)
        shape = (s**2 * (n + math.sqrt(n * d)) + s * math.sqrt(n) * size) / n
        printed = NOISE**2 * (1 / d + (n * d) ** -0.5) + NOISE * (n * d) ** power * size
        return np.array([printed / shape - 1])

    settings = listed(
        "n={n:g}, d={d:g}, |M|={M:g}",
        "n d M",
        ((100.0, 10.0, 5.0), (50.0, 2000.0, 30.0)),
    )
    return Check(
        printed=Form(residual(), settings),
        controls=(
            Control(
                "1 / (n d) for its root", residual(power=-1.0), settings, "wrong power"
            ),
        ),
    )


def _centred(inputs: Inputs) -> Check:
    settings = _gram(((64, 0.0), (16, 0.0)), inputs, u=_u, t=lambda _, delta: delta)

    def shape(setting: Setting) -> Bound:
        n, d = setting.numbers["n"], setting.numbers["dim"]
        return Bound(
            1 + math.sqrt(d / n),
            1 - setting.numbers["t"],
            True,
            "amini2021, Section 2.2, shape",
        )

    @sample("centred")
    def over(key: jax.Array, population: Any, numbers: trials.Numbers) -> jax.Array:
        return 1 / trials.gram_error(key, population, numbers)

    @parametrized(functools.partial(Tail, over))
    def tail(setting: Setting, factor: float) -> Bound:
        n, d, u = (setting.numbers[name] for name in ("n", "dim", "u"))
        first = (math.sqrt(d - 0.5) - u) * (math.sqrt(n - 1.5) - u)
        second = (math.sqrt(n + d - 1.5) - u) ** 2 - d
        value = n / (factor * max(first, second))
        return Bound(value, 1 - setting.numbers["t"], True, "amini2021, Section 2.2")

    tenth = Calibrated(trials.gram_error, shape, 0.0, 0.4)
    return Check(
        printed=Form(Calibrated(trials.gram_error, shape, 0.0, 4.0), settings),
        corrected=Form(tail(1.0), settings),
        controls=(
            Control(
                "ten times the lower bound", tail(10.0), settings[:1], "wrong factor"
            ),
            Control("a tenth of the constant", tenth, settings, "wrong factor"),
        ),
    )


def _limit() -> Check:
    @parametrized(Inequality)
    def sides(
        setting: Setting, limit: Callable[[np.ndarray], np.ndarray], factor: float = 1.0
    ) -> Pairs:
        n, d, rank = (setting.shapes[name] for name in ("n", "d", "rank"))
        rng = np.random.default_rng(rank)
        W = rng.standard_normal((d, n))
        M = rng.standard_normal((d, rank)) @ rng.standard_normal((rank, n))
        M /= op_norm(M)
        pairs = []
        for s in (0.03, 0.01):
            X = M / s + s * W
            E = X.T @ X - M.T @ M / s**2 - d * s**2 * np.eye(n)
            left = abs(op_norm(E) - factor * op_norm(limit(M.T @ W)))
            pairs.append((left, s**2 * op_norm(W.T @ W - d * np.eye(n))))
        return lines(pairs, "amini2021, Section 2.2, the limit")

    settings = grid(
        "rank {rank}, n=40, d=3", shapes="n d rank", rank=(1, 3), n=[40], d=[3]
    )
    return Check(
        printed=Form(sides(limit=lambda C: C, factor=2.0), settings),
        corrected=Form(sides(limit=lambda C: C + C.T), settings),
        controls=(
            Control("|M'W|", sides(limit=lambda C: C), settings, "wrong factor"),
        ),
    )


def log_below(n: int, level: float) -> float:
    """Return log P(|y| + |y_1| < level) for y ~ N(0, I) in R^n: the norm |b y' + y b'| for b = e_1."""
    a = np.linspace(0, level / 2, 20_001)
    values = 2 * stats.norm.pdf(a) * stats.chi2.cdf((level - a) ** 2 - a**2, n - 1)
    return laws.log_of(float(np.trapezoid(values, a)))


def _lower() -> Check:
    @parametrized(Exact)
    def probability(setting: Setting, factor: float = 1.0) -> tuple[float, float]:
        n, u = setting.shapes["n"], setting.numbers["u"]
        right = concentration.inner_product_lower(
            mean_norm=1.0, mean_rank=1, num_points=n, u=u
        )
        return log_below(n, factor * (right.value + u) - u), math.log(
            1 - right.probability
        )

    def printed(setting: Setting) -> tuple[float, float]:
        n = setting.shapes["n"]
        return log_below(n, math.sqrt(2 * n)), math.log(0.5)

    settings = grid("rank one, n={n}, u={u:g}", shapes="n", n=(10, 1000), u=(1.0, 2.5))
    return Check(
        printed=Form(
            Exact(printed), (Setting("rank one, n=1000", shapes={"n": 1000}),)
        ),
        corrected=Form(probability(), settings),
        controls=(
            Control(
                "sqrt(2) times the root",
                probability(factor=math.sqrt(2)),
                settings,
                "wrong factor",
            ),
        ),
    )
