"""The settings of kpotufe2020: populations, values of tau, and sizes that meet the hypotheses."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jaxkern import rkhs
from jaxkern.bounds import Bound
from proofs_check import controls
from proofs_check.claim import Check, Control, Form, Setting, Statement, Tail
from proofs_check.papers import populations, shared
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import real

LANDMARKS = 60
FUNCTIONS = 3

Size = Callable[[Population, float], float]
"""A size as a function of the population and tau."""

Errors = np.ndarray
"""Relative errors, which an `Identity` returns."""

Formula = Callable[..., Bound]
"""A bound of `jaxkern.bounds`."""

Matrix = np.ndarray

Pairs = list[tuple[float, Bound]]
"""What an `Inequality` compares."""

Settings = tuple[Setting, ...]


class Literal(NamedTuple):
    """Objects of the library: functions of the RKHS, a kernel, and landmarks."""

    f: Any
    kernel: Any
    landmarks: Any


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs(shared.Inputs):
    """Populations and values of tau, and the settings that are made of them."""

    @cached_property
    def populations(self) -> Sequence[Population]:
        """The synthetic populations, or the one of the user's data."""
        return populations.synthetic() if self.data is None else (self.data,)

    @property
    def rough(self) -> tuple[Population, ...]:
        """The first two populations whose covariance operator really varies with the sample."""
        return tuple(p for p in self.populations if p.rank > 1.01)[:2]

    @cached_property
    def centred(self) -> tuple[Population, ...]:
        """The populations that are no single atom, about their means: Sigma is the centred covariance."""
        return tuple(_about_the_mean(p) for p in self.populations if p.rank > 1.01)

    @property
    def taus(self) -> tuple[float, ...]:
        """The values of tau."""
        return (2.0, 3.0, 5.0) if self.full else (3.0,)

    @cached_property
    def each(self) -> Settings:
        """One setting for every population, whose data is the population itself."""
        return tuple(Setting(p.name, p) for p in self.populations)

    @property
    def varying(self) -> Settings:
        """The settings of `each` in which Sigma is not of rank one."""
        return tuple(s for s in self.each if s.data.rank > 1.01)

    @cached_property
    def literals(self) -> Settings:
        """Settings with the library's objects for each population, a `Literal`."""
        return tuple(map(_literal, self.populations))

    def at(
        self,
        n: Size | float | None,
        *,
        d: Size | int | None = None,
        rows: Size | int | None = None,
        populations: Sequence[Population] | None = None,
        **shapes: int,
    ) -> Settings:
        """Return one setting for every population and tau.

        n and d are numbers, or formulas of both; `rows` is the d of a trial that draws all rows.
        """
        settings = []
        size = d if rows is None else rows
        for p, tau in itertools.product(populations or self.populations, self.taus):
            label = f"{p.name}, tau={tau:g}"
            numbers = {"tau": tau, "d": 1.0, "n": 1.0}
            static = dict(shapes)
            if n is not None:
                numbers["n"] = float(math.ceil(_evaluated(n, p, tau)))
                label += f", n={numbers['n']:.4g}"
            if size is not None:
                numbers["d"] = float(_evaluated(size, p, tau))
                label += f", d={numbers['d']:g}"
            if rows is not None:
                static["rows"] = int(numbers["d"])
            settings.append(Setting(label, p.arrays, numbers, static))
        return tuple(settings)

    def population_of(self, setting: Setting) -> Population:
        """Return the population of a setting with its arrays."""
        groups = ("populations", "centred")  # the centred ones only if they are needed
        known = (p for group in groups for p in getattr(self, group))
        return next(p for p in known if p.arrays is setting.data)

    def bound(self, formula: Formula, **options: Any) -> Callable[[Setting], Bound]:
        """Return the bound of a setting: population quantities by name, n, d and tau from its numbers."""
        return shared.bound_of(formula, of=self.population_of, **options)

    def ceiling(self, power: int) -> Callable[[Setting], float]:
        """Return the most that a difference of powers of covariance operators can be."""
        return lambda setting: self.population_of(setting).kappa ** power

    def squared(
        self, statement: Statement, n: Size | float, rows: int | None = None
    ) -> Control:
        """Return the control in which the trial compares with Sigma^2 in place of Sigma^3."""
        settings = self.at(n, rows=rows, populations=self.rough, target=2)
        return Control(
            "Sigma^2 in place of Sigma^3", statement, settings, "wrong power"
        )

    def repeated(self, statement: Statement) -> Control:
        """Return the control in which 1024 rows are all the same one."""
        wide = controls.one_draw(self.at(None, rows=1024, populations=self.rough))
        return Control(
            "one direction repeated 1024 times", statement, wide, "reused key"
        )


def _evaluated(size: Size | float, population: Population, tau: float) -> float:
    return size(population, tau) if callable(size) else size


def _literal(population: Population) -> Setting:
    rng = np.random.default_rng(3)
    points = population.points
    count = min(LANDMARKS, 4 * len(points))
    landmarks = points[rng.choice(len(points), count, p=population.weights)]
    # Functions of the span of the landmarks and of points beside them.
    beside = landmarks + 0.1 * np.std(landmarks, axis=0)
    centres = real(np.concatenate([landmarks, beside]))
    weights = real(rng.standard_normal((2 * count, FUNCTIONS)))
    f = rkhs.Function(population.kernel, centres, weights)
    data = Literal(f, population.kernel, real(landmarks))
    return Setting(f"{population.name}, n={count}", data, {"d": 40.0}, {"rows": 40})


def _about_the_mean(population: Population) -> Population:
    around = population.features - population.weights @ population.features
    features, eigenvalues = populations.diagonal(around, population.weights)
    name = f"{population.name}, centred"
    return dataclasses.replace(
        population, name=name, features=features, eigenvalues=eigenvalues
    )


def tight(tail: Tail, settings: Settings, fails: float, *wrong: Control) -> Check:
    """Return the check of a bound that holds; a share of it, `fails`, must not."""
    smaller = controls.part_of(fails, tail, settings)
    return Check(corrected=Form(tail, settings), controls=(*wrong, smaller))


def named(formula: Formula, /, **numbers: Any) -> Bound:
    """Return the bound of those numbers that a formula names."""
    return formula(**{name: numbers[name] for name in shared.arguments_of(formula)})


def lemma_n(p: Population, tau: float) -> float:
    """Return the sample size that Lemma B.2 asks for."""
    return max(1.0, 8 * p.kappa * tau / (9 * p.trace))


def small_n(p: Population, tau: float) -> float:
    """Return the sample size that (7) and (8) ask for."""
    return 32 * p.kappa * p.rank * tau / p.op_norm


def theorem_n(p: Population, tau: float) -> float:
    """Return the sample size that the corrected Theorem 1 asks for."""
    return 6272 * p.kappa * p.rank * max(1.0, math.sqrt(p.rank) / 4) * tau / p.op_norm


def times(factor: float, n: Size) -> Size:
    """Return a multiple of a sample size."""
    return lambda p, tau: factor * n(p, tau)


def enough_d(p: Population, tau: float) -> int:
    """Return a number of sketch rows of at least 4 s3 and tau."""
    # Powers of two keep the number of compiled shapes small.
    return 2 ** math.ceil(math.log2(max(4 * p.rank3, tau, 8)))


def safe_d(p: Population, tau: float) -> int:
    """Return d at least tau and tr Sigma_n^3 / |Sigma_n^3| for every sample (32 atoms), or for all but absurd ones."""
    return 32 if p.features.shape[0] <= 32 else 2 * enough_d(p, tau)
