"""kpotufe2020, Appendix B: the values of a Gaussian draw, and Lemmas B.2 and B.3 with our sharper forms."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy import special, stats

from jaxkern import rkhs
from jaxkern.bounds import Bound, sketching
from jaxkern.gram import gram
from proofs_check import controls
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
)
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.setup import Inputs, lemma_n, safe_d, times
from proofs_check.papers.shared import (
    bound_of,
    claimed,
    lines,
    listed,
    op_norm,
    parametrized,
    real,
)

C = sketching.KOLTCHINSKII_LOUNICI_TRACE


@functools.partial(jax.jit, static_argnames="power")
def _drawn(
    key: jax.Array, kernel: Any, landmarks: jax.Array, *, power: int
) -> tuple[jax.Array, jax.Array]:
    """Return the values of draws at the landmarks, and the Gram matrix."""
    sigma = rkhs.Covariance(kernel, landmarks)
    draws = rkhs.draw_gaussian(
        key, sigma, power=power, num_draws=2 * landmarks.shape[0]
    )
    return draws(landmarks), gram(kernel, landmarks)


def _values_of_a_draw(inputs: Inputs) -> Check:
    @parametrized(Identity)
    def holds(
        key: jax.Array, setting: Setting, power: int = 1, extra: int = 0
    ) -> np.ndarray:
        """Values of draws are linear in standard normal numbers, so jointly normal, and their mean products are M."""
        kernel, landmarks = setting.data["kernel"], setting.data["landmarks"]
        n, (values, K) = landmarks.shape[0], _drawn(key, kernel, landmarks, power=power)
        K = np.asarray(K, float)
        mean, apart = trials.mean_product(
            trials.normals(key, 2 * n, n, landmarks.dtype), np.asarray(values).T
        )
        error = mean / (2 * n) - K @ K / (n - extra)
        return np.concatenate([error.ravel() / (K @ K / n).max(), apart.ravel()])

    return Check(
        printed=Form(holds(), inputs.literals),
        controls=(
            Control(
                "draws from N(0, Sigma^3)",
                holds(power=3),
                inputs.literals[:2],
                "wrong law",
            ),
            Control("Sigma over n - 1", holds(extra=1), inputs.literals, "n for n - 1"),
        ),
    )


def _faster(inputs: Inputs, bound: Callable[[Setting], Bound]) -> Control:
    """Return the control of a bound on |Sigma_n - Sigma|_HS; a constant kernel, which never deviates, has none."""
    wrong = Tail(
        trials.covariance_deviation,
        controls.scaled(bound, lambda s: s.numbers["n"] ** -0.5),
    )
    large = inputs.at(times(1e6, lemma_n), populations=inputs.rough)
    return Control("a bound that falls like 1/n", wrong, large, "wrong power")


def _lemma_b2(inputs: Inputs) -> Check:
    bound = inputs.bound(sketching.covariance_deviation)
    tail = Tail(
        trials.covariance_deviation,
        bound,
        lambda s: math.sqrt(2) * inputs.population_of(s).kappa,
    )
    settings = inputs.at(lemma_n) + inputs.at(times(1e6, lemma_n))
    return Check(printed=Form(tail, settings), controls=(_faster(inputs, bound),))


def _lemma_b2_moments(inputs: Inputs) -> Check:
    @parametrized(Inequality)
    def holds(setting: Setting, factor: float, share: str) -> list[tuple[float, Bound]]:
        """Return the steps of the proof, each over its right side; `share` is what takes the place of tr Sigma."""
        population = inputs.population_of(setting)
        kappa, rows = population.kappa, population.features
        lengths = np.sum(rows**2, axis=1)  # K(x, x)
        ratio = op_norm(np.outer(rows[0], rows[0])) / (factor * lengths[0])
        # |K_x x K_x - Sigma|_HS^2 = K(x, x)^2 - 2 <K_x, Sigma K_x> + |Sigma|_HS^2.
        sizes = np.sqrt(
            np.maximum(
                lengths**2
                - 2 * rows**2 @ population.eigenvalues
                + population.hs_norm**2,
                0,
            )
        )
        pairs = [(abs(ratio - 1), 0.0), (np.max(sizes) / kappa, 2.0)]
        variance = getattr(population, share) / kappa
        pairs += [
            (population.weights @ (sizes / kappa) ** m, 2 ** (m - 2) * variance)
            for m in (2, 3, 4)
        ]
        return lines(pairs, "kpotufe2020, Lemma B.2")

    return Check(
        printed=Form(holds(1.0, "trace"), inputs.each),
        controls=(
            Control("2 K(x, x)", holds(2.0, "trace"), inputs.each, "wrong factor"),
            Control(
                "|Sigma| for tr Sigma",
                holds(1.0, "op_norm"),
                inputs.varying,
                "wrong operator",
            ),
        ),
    )


def _lemma_b2_rare(inputs: Inputs) -> Check:
    formulas = (
        sketching.covariance_deviation,
        sketching.covariance_deviation_bernstein,
        _sharp,
        _operator,
    )

    @parametrized(Exact)
    def exact(setting: Setting, part: float = 1.0) -> tuple[float, float]:
        n, w, tau = (setting.numbers[k] for k in ("n", "w", "tau"))
        right = formulas[int(setting.numbers["formula"])](
            kappa=1.0, trace=1.0, n=n, tau=tau
        )
        gap = (
            part * right.value / math.sqrt(2)
        )  # |Sigma_n - Sigma|_HS = sqrt(2) |share of the first atom - w|
        most, least = math.ceil(n * (w + gap)), math.floor(n * (w - gap))
        # Beyond 50,000 terms on either side is less than 1e-15 of the sum.
        outside = np.r_[
            max(least - 50_000, 0) : least + 1, most : min(most + 50_000, int(n) + 1)
        ]
        tail = float(special.logsumexp(stats.binom.logpmf(outside, n, w)))
        return tail, claimed(right, setting)

    def at(formula: int, *places: tuple[float, float, float]) -> tuple[Setting, ...]:
        name = ("Lemma B.2", "Bernstein", "Proposition H", "Proposition F")[formula]
        rows = [(*place, formula) for place in places]
        return listed(
            "two orthogonal atoms, w={w:g}, n={n:g}, tau={tau:g}, " + name,
            "w n tau formula",
            rows,
        )

    places = tuple((w, 1e4, tau) for w in (0.5, 0.02) for tau in inputs.logs)
    sharp, operator = (
        at(formula, (0.5, 1e4, 10.0), (0.5, 1e9, 400.0)) for formula in (2, 3)
    )
    return Check(
        printed=Form(exact(), at(0, *places)),
        corrected=Form(exact(), at(1, *places) + sharp + operator),
        controls=(
            Control(
                "0.99 of Propositions F and H",
                exact(0.99),
                sharp[-1:] + operator[-1:],
                "wrong factor",
            ),
        ),
    )


def _sharp(**arguments: float) -> Bound:
    """Proposition H for two orthogonal atoms of equal mass."""
    return sketching.covariance_deviation_sharp(hs_norm=math.sqrt(0.5), **arguments)


def _operator(**arguments: float) -> Bound:
    """Proposition F for the same two, where the Hilbert-Schmidt norm is sqrt(2) times the operator norm."""
    half = {"op_norm": 0.5, "hs_norm": math.sqrt(0.5)}
    found = sketching.covariance_deviation_operator(**half, **arguments)
    return dataclasses.replace(found, value=math.sqrt(2) * found.value)


def _for_every_n(inputs: Inputs, formula: Callable[..., Bound], fails: float) -> Check:
    bound = inputs.bound(formula)
    settings, tail = (
        inputs.at(1.0) + inputs.at(times(1e6, lemma_n)),
        Tail(trials.covariance_deviation, bound),
    )
    return Check(
        corrected=Form(tail, settings),
        controls=(_faster(inputs, bound), controls.part_of(fails, tail, settings)),
    )


def _lemma_b2_bernstein(inputs: Inputs) -> Check:
    return _for_every_n(inputs, sketching.covariance_deviation_bernstein, 0.35)


def _lemma_b2_sharp(inputs: Inputs) -> Check:
    return _for_every_n(inputs, sketching.covariance_deviation_sharp, 0.45)


def _lemma_b2_operator(inputs: Inputs) -> Check:
    bound = inputs.bound(sketching.covariance_deviation_operator)
    settings, tail = (
        inputs.at(1.0) + inputs.at(times(1e6, lemma_n)),
        Tail(trials.operator_deviation, bound),
    )
    wrong = Tail(trials.covariance_deviation, bound)
    return Check(
        corrected=Form(tail, settings),
        controls=(
            Control(
                "the Hilbert-Schmidt norm",
                wrong,
                inputs.at(times(1e6, lemma_n)),
                "wrong operator",
            ),
            controls.part_of(0.6, tail, settings),
        ),
    )


_given = bound_of(sketching.conditional_sketch)


def _samples(inputs: Inputs) -> tuple[Setting, ...]:
    """Return settings with one sample each, drawn beforehand, and the numbers of Lemma B.3, which depend on it."""
    settings = []
    # Where all eigenvalues are nearly equal, and as many as d, the lemma is at its sharpest.
    places = [
        *((p, 300) for p in inputs.populations),
        (inputs.rough[0], 6),
        (inputs.rough[-1], 10**6),
    ]
    for seed, (p, n) in enumerate(places):
        shares = np.random.default_rng(seed).multinomial(n, p.weights) / n
        cubes = (
            np.maximum(
                np.linalg.eigvalsh(p.features.T @ (shares[:, None] * p.features)), 0
            )
            ** 3
        )
        data, d = {**p.arrays, "shares": real(shares)}, safe_d(p, max(inputs.taus))
        for tau in inputs.taus:
            numbers = {
                "n": n,
                "d": d,
                "tau": tau,
                "op_norm3": float(cubes[-1]),
                "trace3": float(cubes.sum()),
            }
            settings.append(
                Setting(
                    f"{p.name}, a sample of {n}, d={d}, tau={tau:g}",
                    data,
                    numbers,
                    {"rows": d},
                )
            )
    return tuple(settings)


def _one_row(tail: Tail, settings: tuple[Setting, ...]) -> Control:
    wide = controls.changed(settings, "d=1024", numbers={"d": 1024.0})
    return Control(
        "one direction repeated 1024 times", tail, controls.one_draw(wide), "reused key"
    )


def _lemma_b3(inputs: Inputs) -> Check:
    settings, shape = (
        _samples(inputs),
        bound_of(sketching.conditional_sketch, constant=1.0),
    )
    tail = Tail(trials.conditional_deviation, _given)
    two = Tail(trials.conditional_deviation, controls.scaled(_given, lambda s: 2 / C))
    least = sketching.KOLTCHINSKII_LOUNICI_LOWER
    return Check(
        printed=Form(
            Calibrated(trials.conditional_deviation, shape, least, C), settings
        ),
        corrected=Form(tail, settings),
        controls=(
            _one_row(tail, settings[:2]),
            Control("C = 2", two, settings[-1:], "wrong factor"),
        ),
    )


def _lemma_b3_proof(inputs: Inputs) -> Check:
    settings = _samples(inputs)[:1]
    printed = controls.scaled(_given, lambda s: s.numbers["n"] ** -2)
    tail = Tail(trials.conditional_deviation, _given)
    return Check(
        printed=Form(Tail(trials.conditional_deviation, printed), settings),
        corrected=Form(tail, settings),
        controls=(_one_row(tail, settings),),
    )
