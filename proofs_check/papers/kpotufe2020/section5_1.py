"""kpotufe2020, Section 5.1: Assumption 1, Example 1 with (10) and (11), and what can be said without a scale."""

import math
from dataclasses import replace
from functools import wraps
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxkern.bounds import Bound, sketching
from proofs_check import controls
from proofs_check.claim import Check, Control, Exact, Form, Inequality, Setting, Tail
from proofs_check.engine import tilting
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.setup import (
    Pairs,
    Settings,
    tight,
)
from proofs_check.papers.kpotufe2020.two_groups import (
    FEW,
    MANY,
    TwoGroups,
    four_atoms,
    two_clusters,
)
from proofs_check.papers.shared import Grids, bound_of, check_of, lines, wrong


def _markov(data: TwoGroups, power: float = 1.0) -> Pairs:
    squares = data.features**2
    lengths = squares.sum(1)
    mean = float(np.linalg.norm(data.weights @ data.features))
    pairs = [(mean / math.sqrt(data.kappa), 0.0)]
    for k in range(1, len(data.eigenvalues)):
        outside = squares[:, k:].sum(1) / lengths
        rest = float(data.eigenvalues[k:].sum()) / float(lengths.min())
        for epsilon in (0.01, 0.03, 0.1, 0.3):
            share = data.weights[outside > epsilon].sum()
            pairs.append((float(share), rest / epsilon**power))
    return lines(pairs, "kpotufe2020, Assumption 1")


def assumption1() -> Check:
    laws = (four_atoms(), two_clusters(), two_clusters(0.5))
    settings = tuple(Setting(law.name, law) for law in laws)
    constant = wrong("without 1 / epsilon", "wrong power", power=0.0)
    return check_of(Inequality, settings, constant, corrected=_markov)


def _settings(*sizes: dict[str, float]) -> Settings:
    laws = (four_atoms(), two_clusters())
    return tuple(law.setting(numbers) for law in laws for numbers in sizes)


@wraps(sketching.separation_shortfall)
def shortfall_as_printed(*, epsilon: float, **numbers: float) -> Bound:
    # (10) has 2 epsilon kappa for 4 epsilon kappa. Its last term has a free constant; this is the corrected one.
    return sketching.separation_shortfall(epsilon=epsilon / 2, **numbers)


def _limit(b: float) -> Pairs:
    """The statement as n and d grow, f = (1, b) and g = -f."""
    law = four_atoms(b)
    h = 2 * law.features[0]
    cube = law.eigenvalues**3
    large = law.setting({"n": 1e60, "d": 1e60})
    left = cube[0] * float(h @ h) - bound_of(shortfall_as_printed)(large).value
    return lines([(left, float(cube @ h**2))], "kpotufe2020, (10)")


def eq10(grids: Grids) -> Check:
    tail = Tail(trials.separation_loss, bound_of(sketching.separation_shortfall))
    printed = Tail(trials.separation_loss, bound_of(shortfall_as_printed))
    settings: Settings = ()
    for law in (four_atoms(), two_clusters()):
        settings += (law.setting(MANY), law.setting(MANY, k=2), law.setting(FEW))
    largest = {"eigenvalue": settings[0].numbers["eigenvalue"]}
    swapped = controls.changed(settings[1:2], "lambda_1", numbers=largest)
    return Check(
        printed=Form(Inequality(_limit), grids["printed"]),
        corrected=Form(tail, settings),
        controls=(
            Control("2 epsilon kappa", printed, settings[:1], "wrong factor"),
            Control("lambda_1 for lambda_k", tail, swapped, "swapped constants"),
            controls.part_of(0.9, tail, settings),
        ),
    )


def _one_atom(d: float, tau: float, C2: float, c: float) -> tuple[float, float]:
    """K = 1 and h = c: P(c^2 chi2_d / d > c^2 + C2 sqrt(tau / d)) against exp(-tau)."""
    threshold = d + C2 * math.sqrt(tau * d) / c**2
    return float(tilting.log_chi_square_tail(d, threshold)), -tau


def eq11(grids: Grids) -> Check:
    stretch = bound_of(sketching.largest_stretch)

    def without_deviation(setting: Setting) -> Bound:
        return replace(stretch(setting), value=setting.numbers["op_norm"] ** 3)

    tail = Tail(trials.stretch, stretch)
    cubed = replace(tail, bound=without_deviation)
    settings = _settings(MANY, FEW)
    return Check(
        printed=Form(Exact(_one_atom), grids["unit"] + grids["long"]),
        corrected=Form(tail, settings),
        controls=(
            Control("without the deviation term", cubed, settings[:1], "term left out"),
            controls.part_of(0.95, tail, settings),
        ),
    )


def relative() -> Check:
    bound = bound_of(sketching.relative_norms, num_functions="num_pairs")
    tail = Tail(trials.relative_error, bound)
    settings = _settings({"n": 200.0, "d": 16.0}, {"n": 200.0, "d": 4096.0})
    return tight(tail, settings, 0.45)


def _separated(law: TwoGroups, d: float, k: int) -> Setting:
    setting = law.setting({"n": 1.0, "d": d}, k=k)
    squares = np.sum(np.asarray(setting.data["pairs"]) ** 2, axis=1)
    within = np.asarray(setting.data["within"])
    sizes = {
        "squared_diameter": float(squares[within].max()),
        "squared_distance": float(squares[~within].min()),
    }
    return replace(setting, numbers={**setting.numbers, **sizes})


def _mixed(arrays: dict[str, Any]) -> dict[str, Any]:
    return {**arrays, "within": jnp.roll(arrays["within"], 1)}


def scale_free() -> Check:
    # Groups by the second sign are as wide as they can be against what separates them: there the bound is sharp.
    laws = ((two_clusters(), 1), (four_atoms(labels=(0, 1, 0, 1)), 2))
    settings = tuple(_separated(law, d, k) for law, k in laws for d in (300.0, 1e5))
    tail = Tail(trials.image_ratio, bound_of(sketching.relative_separation))
    mixed = controls.changed(settings[:1], "mixed", data=_mixed)
    name = "pairs of the other set counted as within"
    control = Control(name, tail, mixed, "hypothesis broken")
    return tight(tail, settings, 0.95, control)
