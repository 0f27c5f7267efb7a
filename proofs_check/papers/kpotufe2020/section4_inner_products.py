"""kpotufe2020, Section 4, on inner products: Proposition 1, Theorem 1, and the steps of its proof.

Populations have few atoms and are exact. A sample enters through multinomial counts, and the sketch given the sample
through its Gaussian law N(0, Sigma_n^3). `docs/theory/kpotufe2020.md` derives every correction.
"""

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

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
    Inputs,
    enough_d,
    small_n,
    theorem_n,
    times,
)
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import (
    Exceeds,
    Grids,
    grid,
    lines,
    listed,
    op_norm,
    parametrized,
    part_of,
)

C = sketching.KOLTCHINSKII_LOUNICI_TRACE
MOST_COORDINATES = 64

Pairs = list[tuple[float, Bound]]


def prop1(inputs: Inputs) -> Check:
    settings = inputs.at(None, rows=enough_d)
    shape = inputs.bound(sketching.projected_inner_products, constant=1.0)
    calibrated = Calibrated(
        trials.projection, shape, sketching.KOLTCHINSKII_LOUNICI_LOWER, C
    )
    tail = Tail(trials.projection, inputs.bound(sketching.projected_inner_products))
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
    return Check(
        corrected=Form(tail, settings),
        controls=(inputs.repeated(tail), controls.part_of(0.55, tail, settings)),
    )


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
    bound = FOR_EVERY_D[int(formula)]
    arguments = {
        "kappa": p,
        "op_norm": 1.0,
        "trace": p,
        "trace3": p,
        "hs_norm": p**0.5,
        "num_functions": 1.0,
        "n": 1e60,
        "d": 1.0,
        "tau": tau,
    }
    names = inspect.signature(bound).parameters
    return bound(**{name: arguments[name] for name in names if name in arguments})


def _orthogonal_atoms_tail(value: float, p: float, formula: float) -> float:
    """Return log P(chi2_p > value), or of chi2_p - 1 for all bounds but that of the largest stretch."""
    is_stretch = FOR_EVERY_D[int(formula)] is sketching.largest_stretch
    threshold = value if is_stretch else value + 1
    return float(tilting.log_chi_square_tail(p, threshold))


def prop1_explicit_rare(grids: Grids) -> Check:
    exceeds = Exact(Exceeds(_orthogonal_atoms_tail, orthogonal_atoms))
    smaller = Exact(Exceeds(_orthogonal_atoms_tail, part_of(0.99, orthogonal_atoms)))
    settings = sum(grids.values(), ())
    extreme = tuple(s for s in settings if max(s.numbers["p"], s.numbers["tau"]) == 1e6)
    return Check(
        corrected=Form(exceeds, settings),
        controls=(Control("0.99 of the bound", smaller, extreme, "wrong factor"),),
    )


def _chi_square_violation(setting: Setting) -> tuple[float, float]:
    """Return the log-probability that the printed Theorem 1 fails, and the log of the failure it allows.

    Orthogonal atoms of equal weight, one of them for the constant kernel: with d = 1 the deviation is
    S^3 (chi2_p - 1), exactly for p = 1 and in the limit of large n otherwise.
    """
    p, tau, constant = (setting.numbers[k] for k in ("p", "tau", "C"))
    n_term = 28 * math.sqrt(2 / 6272) / p**2
    threshold = 1 + 3 * constant * (math.sqrt(2 * p) + math.sqrt(tau)) + n_term
    return float(tilting.log_chi_square_tail(p, threshold)), math.log(5) - tau


def thm1(inputs: Inputs) -> Check:
    tail = Tail(trials.sketch, inputs.bound(sketching.inner_products))
    taus = {c: math.ceil((3 * c) ** 2) + 12.0 for c in (1.0, 3.505, C, 100.0)}
    one = listed(
        "one atom, d=1, C={C:g}, tau={tau:g}",
        "p tau C",
        [(1.0, tau, c) for c, tau in taus.items()],
    )
    name = "{p:g} orthogonal atoms, d=1, n large, C={C}, tau={tau:g}"
    many = grid(name, p=(1e4, 1e6), tau=[3.0], C=[C])
    large = inputs.at(times(1e4, theorem_n), rows=enough_d, populations=inputs.rough)
    return Check(
        printed=Form(Exact(_chi_square_violation), one + many),
        corrected=Form(tail, inputs.at(theorem_n, rows=enough_d) + large),
        controls=(inputs.squared(tail, times(100, theorem_n), rows=1024),),
    )


def thm1_all_d(inputs: Inputs) -> Check:
    tail = Tail(trials.sketch, inputs.bound(sketching.inner_products_all_d))
    settings = inputs.at(small_n, rows=1) + inputs.at(
        times(1e4, small_n), rows=enough_d
    )
    return Check(
        corrected=Form(tail, settings),
        controls=(
            inputs.squared(tail, times(1e6, small_n), rows=1024),
            controls.part_of(0.5, tail, settings),
        ),
    )


def _without_conditions(
    inputs: Inputs,
    formula: Callable[..., Bound],
    fails: float,
    *,
    centered: bool = False,
) -> Check:
    """Every n and d: `fails` is a part of the bound that does not hold."""
    tail = Tail(trials.sketch, inputs.bound(formula, centered=centered))

    def at(n: float, rows: int, **laws: Any) -> tuple[Setting, ...]:
        return tuple(
            s for s in inputs.at(n, rows=rows, **laws) if tail.bound(s).probability > 0
        )

    laws: dict[str, Any] = (
        {"populations": inputs.centred, "centred": 1} if centered else {}
    )
    settings = at(1.0, 1, **laws) + at(1e3, 1, **laws) + at(1e10, 32, **laws)
    mixed = at(1e10, 1024, populations=inputs.rough, centred=1)
    wrong = Control(
        "Sigma in place of the centred one", tail, mixed, "centred for uncentred"
    )
    return Check(
        corrected=Form(tail, settings),
        controls=(
            wrong if centered else inputs.squared(tail, 1e10, rows=1024),
            controls.part_of(fails, tail, settings),
        ),
    )


def thm1_every_n(inputs: Inputs) -> Check:
    return _without_conditions(inputs, sketching.inner_products_every_n, 0.5)


def thm1_centred(inputs: Inputs) -> Check:
    return _without_conditions(
        inputs, sketching.inner_products_every_n, 0.4, centered=True
    )


def thm1_operator(inputs: Inputs) -> Check:
    return _without_conditions(inputs, sketching.inner_products_intrinsic, 0.4)


def thm1_operator_centred(inputs: Inputs) -> Check:
    return _without_conditions(
        inputs, sketching.inner_products_intrinsic, 0.4, centered=True
    )


def remark(inputs: Inputs) -> Check:
    source = "kpotufe2020, Remark after Theorem 1"

    def least_landmarks(p: Population) -> float:
        """Return the least n of the printed Theorem 1: its probability is positive for tau > ln 5."""
        return 6272 * p.kappa * p.rank**5 * math.log(5) / p.op_norm

    def constants(setting: Setting) -> list[tuple[float, Bound]]:
        p = inputs.population_of(setting)
        return lines([(p.op_norm / p.kappa, 1.0), (p.rank3 / p.rank, 1.0)], source)

    @parametrized(Inequality)
    def holds(setting: Setting, least: float) -> list[tuple[float, Bound]]:
        """Compare the landmarks that Theorem 1 needs, and Theorem E for K = 1 with n = d = 100 and tau = 1.6."""
        small = sketching.inner_products_every_n(**atom, n=100, d=100, tau=1.6)
        needed = least_landmarks(inputs.population_of(setting))
        return lines(
            [(least / needed, 1.0), (small.value, 1.0), (0.1, small.probability)],
            source,
        )

    atom = dict.fromkeys(("kappa", "op_norm", "trace", "trace3", "hs_norm"), 1.0)
    one_atom = (
        tuple(s for s in inputs.each if inputs.population_of(s).rank < 1.01)
        or inputs.each[:1]
    )
    return Check(
        printed=Form(Inequality(constants), inputs.each),
        corrected=Form(holds(6272 * math.log(5)), inputs.each),
        controls=(
            Control(
                "at least 11,000 landmarks", holds(11_000.0), one_atom, "wrong factor"
            ),
        ),
    )


def eq6(inputs: Inputs) -> Check:
    def sides(drop: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            """Every line of (6) and of the displays after it, for several samples and sketches; units of |Sigma|."""
            population = inputs.population_of(setting)
            rng = np.random.default_rng(int(jax.random.randint(key, (), 0, 2**31 - 1)))
            S = population.op_norm
            # The leading coordinates are a law of their own, with matrices that a table of thousands of rows needs.
            features = population.features[:, :MOST_COORDINATES] / math.sqrt(S)
            sigma = np.diag(population.eigenvalues[:MOST_COORDINATES] / S)
            pairs = []
            for n in (3, 30, 3000):
                for d in (1, 10):
                    frequencies = rng.multinomial(n, population.weights) / n
                    sample = features.T @ (frequencies[:, None] * features)
                    half = sample @ features.T * np.sqrt(frequencies)
                    drawn = half @ rng.standard_normal((len(frequencies), d))
                    compared = _compared(sigma, sample, drawn @ drawn.T / d, d, drop)
                    scale = max(1.0, *(right for _, right in compared))
                    pairs += [(left / scale, right / scale) for left, right in compared]
            return lines(pairs, "kpotufe2020, (6)")

        return Inequality(check)

    return Check(
        printed=Form(sides(1.0), inputs.each),
        controls=(
            Control(
                "without the square of the deviation",
                sides(0.0),
                inputs.each,
                "term left out",
            ),
        ),
    )


def _compared(
    sigma: np.ndarray, sample: np.ndarray, sketch: np.ndarray, d: int, drop: float
) -> tuple[tuple[float, float], ...]:
    """Return left and right of the lines of (6) and of the displays after it, with `drop` before one of the terms."""
    third, cube, tau = np.linalg.matrix_power(sample, 3), sigma**3, 2.0
    e, o, t = op_norm(third - cube), op_norm(third), float(np.trace(third))
    D, H, h = (
        op_norm(sample - sigma),
        float(np.linalg.norm(sample - sigma)),
        float(np.linalg.norm(sigma)),
    )
    constant = C
    given = constant * (math.sqrt(t * o / d) + o * math.sqrt(tau / d))
    split = constant * (math.sqrt(t * e / d) + math.sqrt(t / d) + math.sqrt(tau / d))
    return (
        (op_norm(sketch - cube), op_norm(sketch - third) + e),
        (given + e, split + e * (1 + constant * math.sqrt(tau / d))),
        (e, D**3 + drop * 3 * D**2 + 3 * D),
        (D**3 + 3 * D**2 + 3 * D, H**3 + 3 * H**2 + 3 * H),
        (t, float(np.trace(cube)) + H**3 + 3 * h * H**2 + 3 * h**2 * H),
    )


def eq7(inputs: Inputs) -> Check:
    bound = inputs.bound(sketching.cube_deviation)
    large = times(1e5, small_n)
    return Check(
        printed=Form(
            Tail(trials.cube_deviation, bound, inputs.ceiling(3)),
            inputs.at(small_n) + inputs.at(large),
        ),
        controls=(inputs.squared(Tail(trials.cube_deviation, bound), large),),
    )


def eq8(inputs: Inputs) -> Check:
    def tail(bound: Callable[[Setting], Bound]) -> Tail:
        return Tail(trials.cube_trace, bound, inputs.ceiling(3))

    def without_term(setting: Setting) -> Bound:
        b = bound(setting)
        return Bound(
            inputs.population_of(setting).trace3, b.probability, b.valid, b.source
        )

    bound = inputs.bound(sketching.cube_trace)
    settings = inputs.at(small_n) + inputs.at(times(1e5, small_n))
    wrong, rough = (
        Tail(trials.cube_trace, without_term),
        inputs.at(small_n, populations=inputs.rough),
    )
    return Check(
        printed=Form(
            tail(inputs.bound(sketching.cube_trace, as_printed=True)), settings
        ),
        corrected=Form(tail(bound), settings),
        controls=(
            Control("without the deviation term", wrong, rough, "term left out"),
            controls.part_of(0.95, tail(bound), settings),
        ),
    )


def thm1_proof(inputs: Inputs) -> Check:
    """The last paragraph of the proof, in units of |Sigma|^3."""

    @parametrized(Inequality)
    def sides(setting: Setting, most: float | None) -> list[tuple[float, Bound]]:
        """Return what is compared of s3, of the n-term and of that of the trace; as printed without `most`."""
        p = inputs.population_of(setting)
        n_term = 28 * math.sqrt(2 * p.kappa * p.trace / theorem_n(p, 1.0)) / p.op_norm
        trace_term = n_term * p.hs_norm / p.op_norm
        pairs = [(p.rank3, trace_term)]
        if most is not None:
            largest = (p.rank3 + trace_term) / (1 - n_term) / (most * p.rank3)
            pairs = [(2 * n_term, 1.0), (trace_term / p.rank3, 1.0), (largest, 1.0)]
        return lines(pairs, "kpotufe2020, proof of Theorem 1")

    return Check(
        printed=Form(sides(None), inputs.each),
        corrected=Form(sides(4.0), inputs.each),
        controls=(Control("3 s3 for 4 s3", sides(3.0), inputs.each, "wrong factor"),),
    )
