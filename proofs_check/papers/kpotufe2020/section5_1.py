"""kpotufe2020, Section 5.1: Assumption 1, Example 1 with (10) and (11), and what can be said without a scale."""

import dataclasses
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxkern.bounds import Bound, sketching
from proofs_check import controls
from proofs_check.claim import Check, Control, Exact, Form, Inequality, Setting, Tail
from proofs_check.engine import tilting
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.two_groups import (
    FEW,
    MANY,
    TwoGroups,
    four_atoms,
    two_clusters,
)
from proofs_check.papers.shared import bound_of, grid, lines, parametrized


def _assumption1() -> Check:
    def uncentred(law: TwoGroups) -> tuple[float, float]:
        return float(np.linalg.norm(law.weights @ law.features)) / math.sqrt(
            law.kappa
        ), 0.0

    @parametrized(Inequality)
    def markov(setting: Setting, power: float) -> list[tuple[float, Bound]]:
        law: TwoGroups = setting.data
        squares, pairs = law.features**2, [uncentred(law)]
        for k in range(1, len(law.eigenvalues)):
            outside = squares[:, k:].sum(1) / squares.sum(1)
            rest = float(law.eigenvalues[k:].sum()) / float(squares.sum(1).min())
            for epsilon in (0.01, 0.03, 0.1, 0.3):
                pairs.append(
                    (float(law.weights[outside > epsilon].sum()), rest / epsilon**power)
                )
        return lines(pairs, "kpotufe2020, Assumption 1")

    def at(*laws: TwoGroups) -> tuple[Setting, ...]:
        return tuple(Setting(law.name, law) for law in laws)

    centred = at(four_atoms(), two_clusters(), two_clusters(0.5))
    return Check(
        corrected=Form(markov(1.0), centred),
        controls=(Control("without 1 / epsilon", markov(0.0), centred, "wrong power"),),
    )


def _settings(*sizes: dict[str, float]) -> tuple[Setting, ...]:
    return tuple(
        law.setting(numbers)
        for law in (four_atoms(), two_clusters())
        for numbers in sizes
    )


def _eq10() -> Check:
    def limit(setting: Setting) -> list[tuple[float, Bound]]:
        """The statement as n and d grow, f = (1, b) and g = -f."""
        law = four_atoms(setting.numbers["b"])
        h = 2 * law.features[0]
        left = law.eigenvalues[0] ** 3 * (float(h @ h) - 2 * law.epsilon(1) * law.kappa)
        return lines([(left, float(law.eigenvalues**3 @ h**2))], "kpotufe2020, (10)")

    def with_two(setting: Setting) -> Bound:
        right, numbers = shortfall(setting), setting.numbers
        lost = 2 * numbers["epsilon"] * numbers["kappa"] * numbers["eigenvalue"] ** 3
        return dataclasses.replace(right, value=right.value - lost)

    shortfall = bound_of(sketching.separation_shortfall)
    tail = Tail(trials.separation_loss, shortfall)
    laws = (four_atoms(), two_clusters())
    settings = tuple(
        law.setting(sizes, k=k)
        for law in laws
        for sizes, k in ((MANY, 1), (MANY, 2), (FEW, 1))
    )
    atoms = grid("atoms (+-1, +-b), b={b:g}", b=(0.25, 0.5, 0.75))
    largest = {"eigenvalue": settings[0].numbers["eigenvalue"]}
    swapped = controls.changed(settings[1:2], "lambda_1", numbers=largest)
    return Check(
        printed=Form(Inequality(limit), atoms),
        corrected=Form(tail, settings),
        controls=(
            Control(
                "2 epsilon kappa",
                Tail(trials.separation_loss, with_two),
                settings[:1],
                "wrong factor",
            ),
            Control("lambda_1 for lambda_k", tail, swapped, "swapped constants"),
            controls.part_of(0.9, tail, settings),
        ),
    )


def _eq11() -> Check:
    def violation(setting: Setting) -> tuple[float, float]:
        """K = 1 and h = c: P(c^2 chi2_d / d > c^2 + C2 sqrt(tau / d)) against exp(-tau)."""
        d, tau, constant, c = (setting.numbers[key] for key in ("d", "tau", "C2", "c"))
        y = d + constant * math.sqrt(tau * d) / c**2
        return float(tilting.log_chi_square_tail(d, y)), -tau

    def constant_kernel(c: float, d: float, c2: float, tau: float) -> Setting:
        name = f"K=1, |h|={'1' if c == 1 else '1e4'}, d={d:g}, C2={c2:g}, tau={tau:g}"
        return Setting(name, numbers={"d": d, "tau": tau, "C2": c2, "c": c})

    def without_deviation(setting: Setting) -> Bound:
        return dataclasses.replace(
            stretch(setting), value=setting.numbers["op_norm"] ** 3
        )

    sizes = ((1.0, 10.0, 10.0, 300.0), (1.0, 1e3, 10.0, 3e4), (1.0, 1e6, 100.0, 1e10))
    sizes += ((1e4, 1e3, 10.0, 3.0), (1e4, 1e6, 100.0, 3.0))
    stretch, settings = bound_of(sketching.largest_stretch), _settings(MANY, FEW)
    wrong = Tail(trials.stretch, without_deviation)
    return Check(
        printed=Form(Exact(violation), tuple(constant_kernel(*size) for size in sizes)),
        corrected=Form(Tail(trials.stretch, stretch), settings),
        controls=(
            Control("without the deviation term", wrong, settings[:1], "term left out"),
            controls.part_of(0.95, Tail(trials.stretch, stretch), settings),
        ),
    )


def _relative() -> Check:
    bound = bound_of(sketching.relative_norms, num_functions="num_pairs")
    settings = _settings({"n": 200.0, "d": 16.0}, {"n": 200.0, "d": 4096.0})
    tail = Tail(trials.relative_error, bound)
    return Check(
        corrected=Form(tail, settings),
        controls=(controls.part_of(0.45, tail, settings),),
    )


def _scale_free() -> Check:
    def separated(law: TwoGroups, d: float, k: int) -> Setting:
        setting = law.setting({"n": 1.0, "d": d}, k=k)
        squares = np.sum(np.asarray(setting.data["pairs"]) ** 2, axis=1)
        within = np.asarray(setting.data["within"])
        sizes = {
            "squared_diameter": float(squares[within].max()),
            "squared_distance": float(squares[~within].min()),
        }
        return dataclasses.replace(setting, numbers={**setting.numbers, **sizes})

    def mixed(arrays: dict[str, Any]) -> dict[str, Any]:
        return {**arrays, "within": jnp.roll(arrays["within"], 1)}

    # Groups by the second sign are as wide as they can be against what separates them: there the bound is sharp.
    laws = ((two_clusters(), 1), (four_atoms(labels=(0, 1, 0, 1)), 2))
    settings = tuple(separated(law, d, k) for law, k in laws for d in (300.0, 1e5))
    tail = Tail(trials.image_ratio, bound_of(sketching.relative_separation))
    wrong = controls.changed(settings[:1], "mixed", data=mixed)
    return Check(
        corrected=Form(tail, settings),
        controls=(
            Control(
                "pairs of the other set counted as within",
                tail,
                wrong,
                "hypothesis broken",
            ),
            controls.part_of(0.95, tail, settings),
        ),
    )
