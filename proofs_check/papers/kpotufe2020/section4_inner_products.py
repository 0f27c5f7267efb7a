"""kpotufe2020, Section 4, on inner products: Proposition 1, Theorem 1, and the steps of its proof.

Populations have few atoms and are exact. A sample enters through multinomial counts, and the sketch given the sample
through its Gaussian law N(0, Sigma_n^3). `docs/theory/kpotufe2020.md` derives every correction.
"""

import itertools
import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from jax import Array, random

from jaxkern.bounds import Bound, sketching
from proofs_check import controls
from proofs_check.claim import (
    Calibrated,
    Check,
    Control,
    Exact,
    Form,
    Inequality,
    Setting,
    Tail,
)
from proofs_check.engine import tilting
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.setup import (
    Formula,
    Inputs,
    Matrix,
    Pairs,
    Settings,
    enough_d,
    named,
    small_n,
    theorem_n,
    tight,
    times,
)
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import (
    Exceeds,
    Grids,
    check_of,
    lines,
    op_norm,
    share_of,
    wrong,
)

C = sketching.KOLTCHINSKII_LOUNICI_TRACE
MOST_COORDINATES = 64


def prop1(inputs: Inputs) -> Check:
    settings = inputs.at(None, rows=enough_d)
    formula = sketching.projected_inner_products
    least = sketching.KOLTCHINSKII_LOUNICI_LOWER
    shape = inputs.bound(formula, constant=1.0)
    calibrated = Calibrated(trials.projection, shape, least, C)
    tail = Tail(trials.projection, inputs.bound(formula))
    return Check(
        printed=Form(calibrated, settings),
        corrected=Form(tail, settings),
        controls=(inputs.repeated(tail),),
    )


def _one_atom_tail(deviation: float, d: float) -> float:
    """Return log P(|chi2_d / d - 1| > deviation) for a deviation of at least 1, which no lower tail reaches."""
    if deviation < 1:
        raise ValueError(f"the lower tail counts at a deviation of {deviation}")
    return float(tilting.log_chi_square_tail(d, d * (1 + deviation)))


def prop1_rare(grids: Grids) -> Check:
    one_atom = partial(sketching.projected_inner_products, op_norm=1.0, trace3=1.0)
    exceeds = Exact(Exceeds(_one_atom_tail, one_atom))
    smaller = Exact(Exceeds(_one_atom_tail, partial(one_atom, constant=3.5)))
    return Check(
        corrected=Form(exceeds, grids["corrected"]),
        controls=(Control("C = 3.5", smaller, grids["deep"], "wrong factor"),),
    )


def prop1_explicit(inputs: Inputs) -> Check:
    bound = inputs.bound(sketching.projected_inner_products_all_d)
    tail = Tail(trials.projection, bound)
    settings = inputs.at(None, rows=1) + inputs.at(None, rows=enough_d)
    return tight(tail, settings, 0.55, inputs.repeated(tail))


FOR_EVERY_D = (
    sketching.projected_inner_products_all_d,
    sketching.inner_products_all_d,
    sketching.inner_products_every_n,
    sketching.largest_stretch,
    sketching.relative_norms,
)
"""Bounds of what Kernel JL does to one function or to all of them, without a condition on d."""


def orthogonal_atoms(*, p: float, tau: float, formula: float) -> Bound:
    """Return one of `FOR_EVERY_D` for p orthogonal atoms of equal weight, d = 1, in units of |Sigma|^3.

    There are so many landmarks that Sigma_n is Sigma.
    """
    return named(
        FOR_EVERY_D[int(formula)],
        kappa=p,
        op_norm=1.0,
        trace=p,
        trace3=p,
        hs_norm=p**0.5,
        num_functions=1.0,
        n=1e60,
        d=1.0,
        tau=tau,
    )


def _orthogonal_atoms_tail(value: float, p: float, formula: float) -> float:
    """Return log P(chi2_p > value), or of chi2_p - 1 for all bounds but that of the largest stretch."""
    is_stretch = FOR_EVERY_D[int(formula)] is sketching.largest_stretch
    threshold = value if is_stretch else value + 1
    return float(tilting.log_chi_square_tail(p, threshold))


def prop1_explicit_rare(grids: Grids) -> Check:
    exceeds = Exact(Exceeds(_orthogonal_atoms_tail, orthogonal_atoms))
    smaller = Exact(Exceeds(_orthogonal_atoms_tail, share_of(0.99, orthogonal_atoms)))
    settings = sum(grids.values(), ())
    extreme = tuple(s for s in settings if max(s.numbers["p"], s.numbers["tau"]) == 1e6)
    return Check(
        corrected=Form(exceeds, settings),
        controls=(Control("0.99 of the bound", smaller, extreme, "wrong factor"),),
    )


def printed_for_orthogonal_atoms(*, p: float, tau: float, C: float) -> Bound:
    """Return Theorem 1 as printed for p orthogonal atoms of equal weight and d = 1, in units of |Sigma|^3.

    One atom is that of a constant kernel. There are as few landmarks as it allows.
    """
    least = 6272 * p**5 * (p * tau)
    return sketching.inner_products(
        kappa=p,
        op_norm=1.0,
        trace=p,
        trace3=p,
        n=least,
        d=1.0,
        tau=tau,
        constant=C,
        as_printed=True,
    )


def _one_row_tail(deviation: float, p: float) -> float:
    """Return log P(chi2_p - 1 > deviation), which is that of Theorem 1 for p = 1, and in the limit of large n."""
    return float(tilting.log_chi_square_tail(p, 1 + deviation))


def thm1(inputs: Inputs, grids: Grids) -> Check:
    exceeds = Exact(Exceeds(_one_row_tail, printed_for_orthogonal_atoms))
    tail = Tail(trials.sketch, inputs.bound(sketching.inner_products))
    large = inputs.at(times(1e4, theorem_n), rows=enough_d, populations=inputs.rough)
    return Check(
        printed=Form(exceeds, grids["one atom"] + grids["many atoms"]),
        corrected=Form(tail, inputs.at(theorem_n, rows=enough_d) + large),
        controls=(inputs.squared(tail, times(100, theorem_n), rows=1024),),
    )


def thm1_all_d(inputs: Inputs) -> Check:
    tail = Tail(trials.sketch, inputs.bound(sketching.inner_products_all_d))
    small = inputs.at(small_n, rows=1)
    settings = small + inputs.at(times(1e4, small_n), rows=enough_d)
    squared = inputs.squared(tail, times(1e6, small_n), rows=1024)
    return tight(tail, settings, 0.5, squared)


def _telling(tail: Tail, settings: Settings) -> Settings:
    """Return the settings at which the bound claims a positive probability."""
    return tuple(s for s in settings if tail.bound(s).probability > 0)


def _every_size(inputs: Inputs, **laws: Any) -> Settings:
    few = inputs.at(1.0, rows=1, **laws) + inputs.at(1e3, rows=1, **laws)
    return few + inputs.at(1e10, rows=32, **laws)


def _uncentred(inputs: Inputs, formula: Formula, fails: float) -> Check:
    """Every n and d; `fails` is a share of the bound that does not hold."""
    tail = Tail(trials.sketch, inputs.bound(formula))
    settings = _telling(tail, _every_size(inputs))
    squared = inputs.squared(tail, 1e10, rows=1024)
    return tight(tail, settings, fails, squared)


def _centred(inputs: Inputs, formula: Formula) -> Check:
    tail = Tail(trials.sketch, inputs.bound(formula, centered=True))
    centred = _every_size(inputs, populations=inputs.centred, centred=1)
    settings = _telling(tail, centred)
    uncentred = inputs.at(1e10, rows=1024, populations=inputs.rough, centred=1)
    name = "Sigma in place of the centred one"
    control = Control(name, tail, _telling(tail, uncentred), "centred for uncentred")
    return tight(tail, settings, 0.4, control)


def thm1_every_n(inputs: Inputs) -> Check:
    return _uncentred(inputs, sketching.inner_products_every_n, 0.5)


def thm1_centred(inputs: Inputs) -> Check:
    return _centred(inputs, sketching.inner_products_every_n)


def thm1_operator(inputs: Inputs) -> Check:
    return _uncentred(inputs, sketching.inner_products_intrinsic, 0.4)


def thm1_operator_centred(inputs: Inputs) -> Check:
    return _centred(inputs, sketching.inner_products_intrinsic)


REMARK = "kpotufe2020, Remark after Theorem 1"


def _ranks(data: Population) -> Pairs:
    return lines([(data.op_norm / data.kappa, 1), (data.rank3 / data.rank, 1)], REMARK)


def _landmarks(data: Population, least: float = 6272 * math.log(5)) -> Pairs:
    """Compare the landmarks that Theorem 1 needs, and Theorem E for K = 1 with n = d = 100 and tau = 1.6."""
    # The probability of the printed theorem is positive for tau > ln 5.
    needed = 6272 * data.kappa * data.rank**5 * math.log(5) / data.op_norm
    small = sketching.inner_products_every_n(
        kappa=1.0,
        op_norm=1.0,
        trace=1.0,
        trace3=1.0,
        hs_norm=1.0,
        n=100,
        d=100,
        tau=1.6,
    )
    pairs = [(least / needed, 1), (small.value, 1), (0.1, small.probability)]
    return lines(pairs, REMARK)


def remark(inputs: Inputs) -> Check:
    one_atom = tuple(s for s in inputs.each if s.data.rank < 1.01) or inputs.each[:1]
    name = "at least 11,000 landmarks"
    return check_of(
        Inequality,
        inputs.each,
        wrong(name, "wrong factor", settings=one_atom, least=11_000.0),
        printed=_ranks,
        corrected=_landmarks,
    )


def _steps(key: Array, data: Population, square: float = 1.0) -> Pairs:
    """Every line of (6) and of the displays after it, for several samples and sketches; units of |Sigma|."""
    rng = np.random.default_rng(int(random.randint(key, (), 0, 2**31 - 1)))
    S = data.op_norm
    # The leading coordinates are a law of their own, with matrices that a table of thousands of rows needs.
    features = data.features[:, :MOST_COORDINATES] / math.sqrt(S)
    sigma = np.diag(data.eigenvalues[:MOST_COORDINATES] / S)
    pairs = []
    for n, d in itertools.product((3, 30, 3000), (1, 10)):
        shares = rng.multinomial(n, data.weights) / n
        sample = features.T @ (shares[:, None] * features)
        half = sample @ features.T * np.sqrt(shares)
        rows = half @ rng.standard_normal((len(shares), d))
        compared = _compared(sigma, sample, rows @ rows.T / d, d, square)
        scale = max(1.0, *(right for _, right in compared))
        pairs += [(left / scale, right / scale) for left, right in compared]
    return lines(pairs, "kpotufe2020, (6)")


def _compared(
    sigma: Matrix, sample: Matrix, sketch: Matrix, d: int, square: float
) -> list[tuple[float, float]]:
    """Return left and right of the lines of (6) and of the displays after it, for tau = 2.

    `square` is a factor of 3 D^2 in the third one.
    """
    third = np.linalg.matrix_power(sample, 3)
    cube = sigma**3
    e = op_norm(third - cube)
    o = op_norm(third)
    t = float(np.trace(third))
    D = op_norm(sample - sigma)
    H = float(np.linalg.norm(sample - sigma))
    h = float(np.linalg.norm(sigma))
    root = math.sqrt(2.0 / d)
    sketched = sketching.conditional_sketch(op_norm3=o, trace3=t, d=d, tau=2.0).value
    split = C * (math.sqrt(t * e / d) + math.sqrt(t / d) + root)
    trace_bound = float(np.trace(cube)) + H**3 + 3 * h * H**2 + 3 * h**2 * H
    return [
        (op_norm(sketch - cube), op_norm(sketch - third) + e),
        (sketched + e, split + e * (1 + C * root)),
        (e, D**3 + square * 3 * D**2 + 3 * D),
        (D**3 + 3 * D**2 + 3 * D, H**3 + 3 * H**2 + 3 * H),
        (t, trace_bound),
    ]


def eq6(inputs: Inputs) -> Check:
    name = "without the square of the deviation"
    no_square = wrong(name, "term left out", square=0.0)
    return check_of(Inequality, inputs.each, no_square, printed=_steps)


def eq7(inputs: Inputs) -> Check:
    bound = inputs.bound(sketching.cube_deviation)
    tail = Tail(trials.cube_deviation, bound, inputs.ceiling(3))
    large = times(1e5, small_n)
    squared = inputs.squared(Tail(trials.cube_deviation, bound), large)
    return Check(
        printed=Form(tail, inputs.at(small_n) + inputs.at(large)),
        controls=(squared,),
    )


def eq8(inputs: Inputs) -> Check:
    bound = inputs.bound(sketching.cube_trace)
    printed = inputs.bound(sketching.cube_trace, as_printed=True)

    def without_term(setting: Setting) -> Bound:
        return replace(bound(setting), value=inputs.population_of(setting).trace3)

    tail = Tail(trials.cube_trace, bound, inputs.ceiling(3))
    settings = inputs.at(small_n) + inputs.at(times(1e5, small_n))
    cubed = Tail(trials.cube_trace, without_term)
    rough = inputs.at(small_n, populations=inputs.rough)
    return Check(
        printed=Form(replace(tail, bound=printed), settings),
        corrected=Form(tail, settings),
        controls=(
            Control("without the deviation term", cubed, rough, "term left out"),
            controls.part_of(0.95, tail, settings),
        ),
    )


PROOF = "kpotufe2020, proof of Theorem 1"


def _terms(data: Population) -> tuple[float, float]:
    """Return the n-term of (7) and the one of (8), at the smallest n of Theorem B, in units of |Sigma|^3."""
    numbers = {**data.quantities, "n": theorem_n(data, 1.0), "tau": 1.0}
    deviation = named(sketching.cube_deviation, **numbers)
    trace = named(sketching.cube_trace, **numbers)
    unit = data.op_norm**3
    return deviation.value / unit, (trace.value - data.trace3) / unit


def _last_paragraph_as_printed(data: Population) -> Pairs:
    _, trace_term = _terms(data)
    return lines([(data.rank3, trace_term)], PROOF)


def _last_paragraph(data: Population, most: float = 4.0) -> Pairs:
    n_term, trace_term = _terms(data)
    rank3 = data.rank3
    largest = (rank3 + trace_term) / (1 - n_term)
    pairs = [(2 * n_term, 1), (trace_term / rank3, 1), (largest / (most * rank3), 1)]
    return lines(pairs, PROOF)


def thm1_proof(inputs: Inputs) -> Check:
    return check_of(
        Inequality,
        inputs.each,
        wrong("3 s3 for 4 s3", "wrong factor", most=3.0),
        printed=_last_paragraph_as_printed,
        corrected=_last_paragraph,
    )
