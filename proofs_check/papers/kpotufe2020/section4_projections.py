"""kpotufe2020, Section 4: Theorems 2 and 3, how the sketch and the random projection differ along fixed directions."""

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern.bounds import sketching
from jaxkern.linalg import HIGHEST
from proofs_check import controls
from proofs_check.claim import Check, Control, Form, Identity, Law, Rate, Setting, Tail
from proofs_check.papers import operators as op
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.places import Scope, small_n, times
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import bound_of, parametrized, rng_of


def squared_difference(key: jax.Array, population: Mapping[str, jax.Array], numbers: Any) -> jax.Array:
    """d <alpha, (V^T S - Theta) f>^2 over <f, Sigma^3 f> when both operators share their Gaussians."""
    f = population["f"]
    exact = jnp.vdot(f, op.exact_power(population, 3)(f), precision=HIGHEST)
    return trials.weak_difference_coupled(key, population, numbers) ** 2 / exact


def _thm2_text(scope: Scope) -> Check:
    def at(n: float, d: float) -> Setting:
        return Setting(f"{rough.name}, n={n:g}, d={d:g}", rough.arrays, {"n": n, "d": d})

    rough = scope.rough[0]
    rows = tuple(at(1e8, d) for d in (1.0, 10.0, 100.0, 1e3, 1e4))
    sizes = tuple(at(n, 1.0) for n in (1e4, 1e5, 1e6, 1e7, 1e8))
    return Check(
        printed=Form(Rate(trials.weak_difference, "d", -0.5), rows),
        corrected=Form(Rate(squared_difference, "n", -1.0), sizes),
        controls=(
            Control("a rate of d^-1", Rate(trials.weak_difference, "d", -1.0), rows, "wrong power"),
            Control("a rate of n^-2", Rate(squared_difference, "n", -2.0), sizes, "wrong power"),
        ),
    )


def _thm2(scope: Scope) -> Check:
    printed = scope.bound(sketching.weak_difference, as_printed=True)
    coupled = scope.bound(sketching.weak_difference_coupled)

    def printed_n(p: Population, tau: float) -> float:
        return p.kappa * p.rank * tau * max(32 / p.op_norm, 1.0)

    unscaled = Tail(trials.weak_difference_unscaled, printed)
    wide = scope.at(printed_n, d=10**6, populations=scope.rough)
    apart = Tail(trials.weak_difference, coupled)
    far = scope.at(times(1e8, small_n), d=10, populations=scope.rough)
    return Check(
        printed=Form(Tail(trials.weak_difference, printed), scope.at(printed_n, d=10)),
        corrected=Form(
            Tail(trials.weak_difference_coupled, coupled), scope.at(small_n, d=10) + scope.at(times(1e6, small_n), d=10)
        ),
        controls=(
            Control("without 1/sqrt(d)", unscaled, wide, "missing normalisation"),
            Control("independent Gaussians under the coupled bound", apart, far, "hypothesis broken"),
        ),
    )


def standardised_difference(key: jax.Array, population: Mapping[str, jax.Array], numbers: Any) -> jax.Array:
    """|<alpha, V^T S f> - <alpha, Theta f>| over sqrt(2 <f, (Sigma^3 + Sigma_n^3) f> / d)."""
    first, second = trials.scales(key, population, numbers)
    normal = jax.random.normal(jax.random.fold_in(key, 1), (2,), first.dtype)
    return jnp.abs(first * normal[0] - second * normal[1]) / jnp.sqrt(2 * (first**2 + second**2))


def _eq9(scope: Scope) -> Check:
    # The statistic is in units in which the energy is 1/2 and d = 1.
    bound = bound_of(sketching.weak_difference_given, energy=0.5)
    printed = bound_of(sketching.weak_difference_given, energy=0.5, as_printed=True)
    settings = scope.at(20.0)
    half = Tail(standardised_difference, controls.scaled(printed, lambda s: 0.5))
    return Check(
        printed=Form(Tail(standardised_difference, printed), settings),
        corrected=Form(Tail(standardised_difference, bound), settings),
        controls=(Control("half of the bound", half, settings, "wrong factor"),),
    )


def _given_the_sample(scope: Scope) -> Check:
    @parametrized(Identity)
    def holds(key: jax.Array, setting: Setting, power: int) -> np.ndarray:
        """<alpha, V^T S f> is linear in the independent entries of Z: its variance is a sum of squares."""
        population, rng, n, d = scope.population_of(setting), rng_of(key), 20, 3
        sample = population.features[rng.choice(len(population.weights), n, p=population.weights)]
        f, alpha = rng.standard_normal(sample.shape[1]), rng.standard_normal(d)
        entries = np.outer(alpha, sample @ (sample.T @ (sample @ f))) / (n * math.sqrt(n * d))
        energy = f @ np.linalg.matrix_power(sample.T @ sample / n, power) @ f
        return np.array([np.sum(entries**2) / (alpha @ alpha * energy / d) - 1])

    return Check(
        printed=Form(holds(3), scope.each),
        controls=(Control("Sigma_n^2 in place of Sigma_n^3", holds(2), scope.varying, "wrong power"),),
    )


def _thm3(scope: Scope) -> Check:
    def at(population: Population, n: float) -> Setting:
        return Setting(f"{population.name}, n={n:g}", population.arrays, {"n": n, "d": 1.0, "tau": 1.0})

    law = Law(trials.standardised_image, stats.norm.cdf)
    sizes = tuple(at(scope.rough[0], n) for n in (300.0, 1e3, 1e4, 1e6, 1e8))
    far = tuple(at(population, 1e10) for population in scope.rough)
    wrong = controls.changed(far, "Sigma^2", shapes={"target": 2})
    return Check(
        printed=Form(law, far),
        corrected=Form(Rate(trials.coupling_distance, "n", -1.0), sizes),
        controls=(
            Control("Sigma^2 in place of Sigma^3", law, wrong, "wrong power"),
            Control("a rate of n^-2", Rate(trials.coupling_distance, "n", -2.0), sizes, "wrong power"),
        ),
    )
