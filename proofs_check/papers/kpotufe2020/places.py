"""Where claims are tried: populations, values of tau, and sample sizes that meet the hypotheses."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from jaxkern.bounds import Bound
from proofs_check.claim import Setting
from proofs_check.papers import populations, shared
from proofs_check.papers.populations import Population


@dataclasses.dataclass(frozen=True, eq=False)
class Scope(shared.Scope):
    """Populations and values of tau, and the settings that are made of them."""

    @cached_property
    def people(self) -> Sequence[Population]:
        """The synthetic populations, or that of the user's data."""
        return populations.synthetic() if self.data is None else (self.data,)

    @property
    def taus(self) -> tuple[float, ...]:
        """The values of tau."""
        return (2.0, 3.0, 5.0) if self.full else (3.0,)

    def at(
        self,
        n: Callable[[Population, float], float] | None,
        *,
        d: Callable[[Population, float], int] | None = None,
        rows: Callable[[Population, float], int] | None = None,
        people: Sequence[Population] | None = None,
        taus: tuple[float, ...] | None = None,
        **shapes: int,
    ) -> tuple[Setting, ...]:
        """Return one setting for every population and tau: n and d by formula, `rows` the rows that are drawn."""
        settings = []
        for person in people or self.people:
            for tau in taus or self.taus:
                numbers = {"tau": float(tau), "d": 1.0, "n": 1.0}
                label = f"{person.name}, tau={tau:g}"
                if n is not None:
                    numbers["n"] = float(math.ceil(n(person, tau)))
                    label += f", n={numbers['n']:.4g}"
                static = dict(shapes)
                if d is not None:
                    numbers["d"] = float(d(person, tau))
                    label += f", d={numbers['d']:g}"
                    if rows is not None:
                        static["rows"] = rows(person, tau)
                settings.append(Setting(label, person.arrays, numbers, static))
        return tuple(settings)

    def person(self, setting: Setting) -> Population:
        """Return the population of a setting."""
        return next(p for p in self.people if p.arrays is setting.population)

    def bound(self, formula: Callable[..., Bound], *names: str, **options: Any) -> Callable[[Setting], Bound]:
        """Return the bound of a setting: population quantities by name, n, d and tau from its numbers."""

        def evaluate(setting: Setting) -> Bound:
            person = self.person(setting)
            numbers = {k: setting.numbers[k] for k in ("n", "d", "tau") if k in names}
            return formula(**{k: getattr(person, k) for k in names if k not in numbers}, **numbers, **options)

        return evaluate

    def ceiling(self, power: int) -> Callable[[Setting], float]:
        """Return the most that a difference of powers of covariance operators can be."""
        return lambda setting: self.person(setting).kappa ** power


def lemma_n(p: Population, tau: float) -> float:
    """Return the sample size that Lemma B.2 asks for."""
    return max(1.0, 8 * p.kappa * tau / (9 * p.trace))


def small_n(p: Population, tau: float) -> float:
    """Return the sample size that (7) and (8) ask for."""
    return 32 * p.kappa * p.rank * tau / p.op_norm


def theorem_n(p: Population, tau: float) -> float:
    """Return the sample size that the corrected Theorem 1 asks for."""
    return 6272 * p.kappa * p.rank * max(1.0, math.sqrt(p.rank) / 4) * tau / p.op_norm


def times(factor: float, n: Callable[[Population, float], float]) -> Callable[[Population, float], float]:
    """Return a multiple of a sample size."""
    return lambda p, tau: factor * n(p, tau)


def enough_d(p: Population, tau: float) -> int:
    """Return a number of sketch rows of at least 4 s3 and tau."""
    # Powers of two keep the number of compiled shapes small.
    return 2 ** math.ceil(math.log2(max(4 * p.rank3, tau, 8)))


def fixed(d: int) -> Callable[[Population, float], int]:
    """Return a constant number of sketch rows."""
    return lambda p, tau: d


def rough(places: Scope) -> tuple[Population, ...]:
    """Return the populations whose covariance operator really varies with the sample."""
    return tuple(p for p in places.people if p.rank > 1.01)[:2]


def safe_d(p: Population, tau: float) -> int:
    """Return d at least tr Sigma_n^3 / |Sigma_n^3| for every sample (32 atoms), or for all but absurd ones."""
    atoms = p.features.shape[0]
    return max(32, enough_d(p, tau)) if atoms <= 32 else 2 * enough_d(p, tau)
