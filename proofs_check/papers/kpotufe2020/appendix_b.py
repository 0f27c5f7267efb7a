"""kpotufe2020, Appendix B: the values of a Gaussian draw, and Lemmas B.2 and B.3 with our sharper forms."""

import math
from collections.abc import Callable
from functools import partial

import jax
import numpy as np
from jax import Array
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
from proofs_check.papers.kpotufe2020.setup import (
    Errors,
    Formula,
    Inputs,
    Literal,
    Pairs,
    Settings,
    lemma_n,
    named,
    safe_d,
    tight,
    times,
)
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import (
    Exceeds,
    Grids,
    bound_of,
    check_of,
    lines,
    op_norm,
    real,
    share_of,
    wrong,
)

C = sketching.KOLTCHINSKII_LOUNICI_TRACE
ENOUGH = times(1e6, lemma_n)


@partial(jax.jit, static_argnames="power")
def _drawn(key: Array, data: Literal, *, power: int) -> tuple[Array, Array]:
    """Return the values of draws at the landmarks, and the Gram matrix."""
    _, kernel, landmarks = data
    sigma = rkhs.Covariance(kernel, landmarks)
    count = 2 * landmarks.shape[0]
    draws = rkhs.draw_gaussian(key, sigma, power=power, num_draws=count)
    return draws(landmarks), gram(kernel, landmarks)


def _values_of_a_draw(
    key: Array, data: Literal, power: int = 1, lost: int = 0
) -> Errors:
    """Values of draws are linear in standard normal numbers, so jointly normal, and their mean products are M."""
    values, gram_matrix = _drawn(key, data, power=power)
    K = np.asarray(gram_matrix, float)
    n = len(K)
    Z = trials.normal_rows(key, data.landmarks)
    mean, apart = trials.mean_product(Z, values)
    error = mean / (2 * n) - K @ K / (n - lost)
    return np.concatenate([error.ravel() / (K @ K / n).max(), apart])


def propB_1(inputs: Inputs) -> Check:
    name = "draws from N(0, Sigma^3)"
    settings = inputs.literals
    return check_of(
        Identity,
        settings,
        wrong(name, "wrong law", settings=settings[:2], power=3),
        wrong("Sigma over n - 1", "n for n - 1", lost=1),
        printed=_values_of_a_draw,
    )


def _inverse_root(setting: Setting) -> float:
    return setting.numbers["n"] ** -0.5


def _faster(inputs: Inputs, bound: Callable[[Setting], Bound]) -> Control:
    """Return the control of a bound on |Sigma_n - Sigma|_HS; a constant kernel, which never deviates, has none."""
    faster = controls.scaled(bound, _inverse_root)
    tail = Tail(trials.covariance_deviation, faster)
    large = inputs.at(ENOUGH, populations=inputs.rough)
    return Control("a bound that falls like 1/n", tail, large, "wrong power")


def lemB_2(inputs: Inputs) -> Check:
    bound = inputs.bound(sketching.covariance_deviation)
    kappa = inputs.ceiling(1)

    def ceiling(setting: Setting) -> float:
        return math.sqrt(2) * kappa(setting)

    tail = Tail(trials.covariance_deviation, bound, ceiling)
    settings = inputs.at(lemma_n) + inputs.at(ENOUGH)
    return Check(printed=Form(tail, settings), controls=(_faster(inputs, bound),))


def _moments(data: Population, factor: float = 1.0, variance: str = "trace") -> Pairs:
    """Return the steps of the proof, each over its right side; the variance is at most kappa tr Sigma."""
    kappa = data.kappa
    rows = data.features
    lengths = np.sum(rows**2, axis=1)  # K(x, x)
    ratio = op_norm(np.outer(rows[0], rows[0])) / (factor * lengths[0])
    # |K_x x K_x - Sigma|_HS^2 = K(x, x)^2 - 2 <K_x, Sigma K_x> + |Sigma|_HS^2.
    squares = lengths**2 - 2 * rows**2 @ data.eigenvalues + data.hs_norm**2
    sizes = np.sqrt(np.maximum(squares, 0)) / kappa
    pairs = [(abs(ratio - 1), 0.0), (np.max(sizes), 2.0)]
    for m in (2, 3, 4):
        right = 2 ** (m - 2) * getattr(data, variance) / kappa
        pairs.append((data.weights @ sizes**m, right))
    return lines(pairs, "kpotufe2020, Lemma B.2")


def lemB_2_proof(inputs: Inputs) -> Check:
    norm = wrong(
        "|Sigma| for tr Sigma",
        "wrong operator",
        settings=inputs.varying,
        variance="op_norm",
    )
    return check_of(
        Inequality,
        inputs.each,
        wrong("2 K(x, x)", "wrong factor", factor=2.0),
        norm,
        printed=_moments,
    )


DEVIATIONS = (
    sketching.covariance_deviation,
    sketching.covariance_deviation_bernstein,
    sketching.covariance_deviation_sharp,
    sketching.covariance_deviation_operator,
)
"""Lemma B.2, Bernstein's inequality, and Propositions H and F, which alone is about the operator norm."""


def deviation_of_two_atoms(*, w: float, n: float, tau: float, formula: float) -> Bound:
    """Return one of `DEVIATIONS` for two orthogonal atoms of masses w and 1 - w."""
    return named(
        DEVIATIONS[int(formula)],
        kappa=1.0,
        op_norm=max(w, 1 - w),
        trace=1.0,
        hs_norm=(w * w + (1 - w) * (1 - w)) ** 0.5,
        n=n,
        tau=tau,
    )


def _share_tail(value: float, n: float, w: float, formula: float) -> float:
    """Return log P(|share of the first atom - w| >= gap), where |Sigma_n - Sigma| = gap and sqrt(2) gap in HS norm."""
    is_operator = DEVIATIONS[int(formula)] is sketching.covariance_deviation_operator
    gap = value if is_operator else value / math.sqrt(2)
    most = math.ceil(n * (w + gap))
    least = math.floor(n * (w - gap))
    # Beyond 50,000 terms on either side is less than 1e-15 of the sum.
    below = np.arange(max(least - 50_000, 0), least + 1)
    above = np.arange(most, min(most + 50_000, int(n) + 1))
    outside = np.concatenate([below, above])
    return float(special.logsumexp(stats.binom.logpmf(outside, n, w)))


def lemB_2_rare(grids: Grids) -> Check:
    exceeds = Exact(Exceeds(_share_tail, deviation_of_two_atoms))
    smaller = Exact(Exceeds(_share_tail, share_of(0.99, deviation_of_two_atoms)))
    sharp = grids["H"]
    operator = grids["F"]
    extreme = sharp[-1:] + operator[-1:]
    name = "0.99 of Propositions F and H"
    return Check(
        printed=Form(exceeds, grids["printed"]),
        corrected=Form(exceeds, grids["Bernstein"] + sharp + operator),
        controls=(Control(name, smaller, extreme, "wrong factor"),),
    )


def _for_every_n(inputs: Inputs, formula: Formula, fails: float) -> Check:
    bound = inputs.bound(formula)
    tail = Tail(trials.covariance_deviation, bound)
    settings = inputs.at(1.0) + inputs.at(ENOUGH)
    return tight(tail, settings, fails, _faster(inputs, bound))


def lemB_2_bernstein(inputs: Inputs) -> Check:
    return _for_every_n(inputs, sketching.covariance_deviation_bernstein, 0.35)


def lemB_2_sharp(inputs: Inputs) -> Check:
    return _for_every_n(inputs, sketching.covariance_deviation_sharp, 0.45)


def lemB_2_operator(inputs: Inputs) -> Check:
    bound = inputs.bound(sketching.covariance_deviation_operator)
    tail = Tail(trials.operator_deviation, bound)
    in_hs_norm = Tail(trials.covariance_deviation, bound)
    large = inputs.at(ENOUGH)
    settings = inputs.at(1.0) + large
    other = Control("the Hilbert-Schmidt norm", in_hs_norm, large, "wrong operator")
    return tight(tail, settings, 0.6, other)


def _sample(inputs: Inputs, population: Population, n: int, seed: int) -> list[Setting]:
    """Return the settings of one sample, for every tau, with the numbers of Lemma B.3, which depend on it."""
    rows = population.features
    shares = np.random.default_rng(seed).multinomial(n, population.weights) / n
    eigenvalues = np.linalg.eigvalsh(rows.T @ (shares[:, None] * rows))
    cubes = np.maximum(eigenvalues, 0) ** 3
    data = {**population.arrays, "shares": real(shares)}
    d = safe_d(population, max(inputs.taus))
    sizes = {"op_norm3": float(cubes[-1]), "trace3": float(cubes.sum())}
    settings = []
    for tau in inputs.taus:
        name = f"{population.name}, a sample of {n}, d={d}, tau={tau:g}"
        numbers = {"n": n, "d": d, "tau": tau, **sizes}
        settings.append(Setting(name, data, numbers, {"rows": d}))
    return settings


def _samples(inputs: Inputs) -> Settings:
    """Return settings with one sample each, drawn beforehand."""
    samples = [(p, 300) for p in inputs.populations]
    # Where all eigenvalues are nearly equal, and as many as d, the lemma is at its sharpest.
    samples += [(inputs.rough[0], 6), (inputs.rough[-1], 10**6)]
    settings = []
    for seed, (population, n) in enumerate(samples):
        settings += _sample(inputs, population, n, seed)
    return tuple(settings)


def _one_row(tail: Tail, settings: Settings) -> Control:
    wide = controls.changed(settings, "d=1024", numbers={"d": 1024.0})
    repeated = controls.one_draw(wide)
    return Control("one direction repeated 1024 times", tail, repeated, "reused key")


def lemB_3(inputs: Inputs) -> Check:
    settings = _samples(inputs)
    sketch = partial(Tail, trials.conditional_deviation)
    formula = sketching.conditional_sketch
    tail = sketch(bound_of(formula))
    two = sketch(bound_of(formula, constant=2.0))
    least = sketching.KOLTCHINSKII_LOUNICI_LOWER
    shape = bound_of(formula, constant=1.0)
    calibrated = Calibrated(trials.conditional_deviation, shape, least, C)
    return Check(
        printed=Form(calibrated, settings),
        corrected=Form(tail, settings),
        controls=(
            _one_row(tail, settings[:2]),
            Control("C = 2", two, settings[-1:], "wrong factor"),
        ),
    )


def _inverse_square(setting: Setting) -> float:
    return setting.numbers["n"] ** -2


def lemB_3_proof(inputs: Inputs) -> Check:
    settings = _samples(inputs)[:1]
    bound = bound_of(sketching.conditional_sketch)
    printed = controls.scaled(bound, _inverse_square)
    tail = Tail(trials.conditional_deviation, bound)
    return Check(
        printed=Form(Tail(trials.conditional_deviation, printed), settings),
        corrected=Form(tail, settings),
        controls=(_one_row(tail, settings),),
    )
