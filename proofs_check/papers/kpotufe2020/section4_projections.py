"""kpotufe2020, Section 4: Theorems 2 and 3, how the sketch and the random projection differ along fixed directions."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special, stats

from jaxkern.bounds import Bound, sketching
from proofs_check import controls
from proofs_check.claim import (
    Check,
    Control,
    Exact,
    Form,
    Identity,
    Inequality,
    Law,
    Rate,
    Setting,
    Tail,
    Trial,
)
from proofs_check.papers.kpotufe2020 import laws, trials
from proofs_check.papers.kpotufe2020.setup import Inputs, small_n, times
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import (
    bound_of,
    claimed,
    grid,
    lines,
    parametrized,
    rng_of,
)


def _thm2_text() -> Check:
    law = laws.two_atoms(0.7)
    f = np.asarray(law.arrays["f"], float)
    cubed = float(law.eigenvalues**3 @ f**2)

    def at(n: float, d: float) -> Setting:
        return Setting(f"{law.name}, n={n:g}, d={d:g}", law.arrays, {"n": n, "d": d})

    def apart(setting: Setting) -> float:
        """The mean square of the difference, that of two independent normal numbers given the sample."""
        return (
            trials.mean_cube(law, f, setting.numbers["n"]) + cubed
        ) / setting.numbers["d"]

    def coupled(setting: Setting) -> float:
        """A bound of the mean square: x^(3/2) is Lipschitz in the Hilbert-Schmidt norm on [0, kappa]."""
        variance = (
            float(law.weights @ np.sum(law.features**2, axis=1) ** 2) - law.hs_norm**2
        )
        return 2.25 * law.kappa * variance / setting.numbers["n"] / setting.numbers["d"]

    def rate(
        trial: Trial, size: str, exponent: float, moment: Callable[[Setting], float]
    ) -> Rate:
        return Rate(trial, size, exponent, moment=moment)

    rows = tuple(at(1e8, d) for d in (1.0, 10.0, 100.0, 1e3, 1e4))
    sizes = tuple(at(n, 1.0) for n in (1e4, 1e5, 1e6, 1e7, 1e8))
    independent, together = (
        (trials.weak_difference, "d"),
        (trials.weak_difference_coupled, "n"),
    )
    return Check(
        printed=Form(rate(*independent, -0.5, apart), rows),
        corrected=Form(rate(*together, -0.5, coupled), sizes),
        controls=(
            Control(
                "a rate of d^(-1/4)",
                rate(*independent, -0.25, apart),
                rows,
                "wrong power",
            ),
            Control(
                "a rate of n^-1", rate(*together, -1.0, coupled), sizes, "wrong power"
            ),
        ),
    )


def _thm2(inputs: Inputs) -> Check:
    printed = inputs.bound(sketching.weak_difference, as_printed=True)
    coupled = inputs.bound(sketching.weak_difference_coupled)

    def printed_n(p: Population, tau: float) -> float:
        return p.kappa * p.rank * tau * max(32 / p.op_norm, 1.0)

    unscaled = Tail(trials.weak_difference_unscaled, printed)
    wide = inputs.at(printed_n, d=10**6, populations=inputs.rough)
    apart = Tail(trials.weak_difference, coupled)
    far = inputs.at(times(1e8, small_n), d=10, populations=inputs.rough)
    # Sigma_n is Sigma where there is one atom.
    varying = [p for p in inputs.populations if p.rank > 1.01]
    enough, many = (
        inputs.at(n, d=10, populations=varying) for n in (small_n, times(1e6, small_n))
    )
    return Check(
        printed=Form(Tail(trials.weak_difference, printed), inputs.at(printed_n, d=10)),
        corrected=Form(Tail(trials.weak_difference_coupled, coupled), enough + many),
        controls=(
            Control("without 1/sqrt(d)", unscaled, wide, "missing normalisation"),
            Control(
                "independent Gaussians under the coupled bound",
                apart,
                far,
                "hypothesis broken",
            ),
        ),
    )


def standardised_difference(
    key: jax.Array, population: Mapping[str, jax.Array], numbers: Any
) -> jax.Array:
    """|<alpha, V^T S f> - <alpha, Theta f>| over sqrt(2 <f, (Sigma^3 + Sigma_n^3) f> / d)."""
    first, second = trials.scales(key, population, numbers)
    normal = jax.random.normal(jax.random.fold_in(key, 1), (2,), first.dtype)
    return jnp.abs(first * normal[0] - second * normal[1]) / jnp.sqrt(
        2 * (first**2 + second**2)
    )


def _eq9(inputs: Inputs) -> Check:
    @parametrized(Exact)
    def normal(setting: Setting, part: float = 1.0) -> tuple[float, float]:
        """Given the sample the difference is normal, with the variance energy / d."""
        right, numbers = (
            bound_of(sketching.weak_difference_given)(setting),
            setting.numbers,
        )
        standardised = part * right.value / math.sqrt(numbers["energy"] / numbers["d"])
        tail = math.log(2) + stats.norm.logsf(standardised)
        return float(tail), claimed(right, setting)

    # The statistic is in units in which the energy is 1/2 and d = 1.
    printed = bound_of(sketching.weak_difference_given, energy=0.5, as_printed=True)
    taus = (0.1, 1.0, 10.0, 1e3, 1e5)
    given = grid("tau={tau:g}", tau=taus, energy=[2.0], d=[3.0])
    return Check(
        printed=Form(Tail(standardised_difference, printed), inputs.at(20.0)),
        corrected=Form(normal(), given),
        controls=(Control("0.99 of the bound", normal(0.99), given, "wrong factor"),),
    )


def _given_the_sample(inputs: Inputs) -> Check:
    @parametrized(Identity)
    def holds(key: jax.Array, setting: Setting, power: int) -> np.ndarray:
        """<alpha, V^T S f> is linear in the independent entries of Z: its variance is a sum of squares."""
        population, rng, n, d = inputs.population_of(setting), rng_of(key), 20, 3
        sample = population.features[
            rng.choice(len(population.weights), n, p=population.weights)
        ]
        f, alpha = rng.standard_normal(sample.shape[1]), rng.standard_normal(d)
        entries = np.outer(alpha, sample @ (sample.T @ (sample @ f))) / (
            n * math.sqrt(n * d)
        )
        energy = f @ np.linalg.matrix_power(sample.T @ sample / n, power) @ f
        return np.array([np.sum(entries**2) / (alpha @ alpha * energy / d) - 1])

    return Check(
        printed=Form(holds(3), inputs.each),
        controls=(
            Control(
                "Sigma_n^2 in place of Sigma_n^3",
                holds(2),
                inputs.varying,
                "wrong power",
            ),
        ),
    )


def _wasserstein(
    n: int, power: int, w: float, f: np.ndarray
) -> tuple[float, float, float]:
    """Return W_2 of one coordinate of V^T S f from that of Theta f, or of N(0, <f, Sigma^power f>), and its limits.

    Two orthonormal atoms, d = 1, and all counts: V^T S f is a mixture of normal laws. On the line the optimal coupling
    is monotone, and the integral over the density is one over the quantiles. Theorem G bounds it from above, and from
    below the difference of standard deviations does.
    """
    counts = np.arange(n + 1.0)
    weights = stats.binom.pmf(counts, n, w)
    scales = np.sqrt(f @ np.stack([counts / n, 1 - counts / n]) ** 3)
    exact, given = (math.sqrt(f @ np.array([w, 1 - w]) ** k) for k in (3, power))
    # The integrand is smooth and even: sums over a grid, here of a tenth of the smallest scale, are exact to rounding.
    x = np.arange(0.5, 100 * scales.max() / scales.min())[:, None] * scales.min() / 10
    density = (
        np.exp(-((x / scales) ** 2) / 2) / scales @ weights / math.sqrt(2 * math.pi)
    )
    apart = x[:, 0] + given * special.ndtri(special.ndtr(-x / scales) @ weights)
    u = (scales / exact) ** 2 - 1
    far = 3 * u * u > 1
    near = math.hypot(
        weights @ np.where(far, 0, u), 0.75 * (weights @ np.where(far, 0, u * u))
    )
    above = exact * (math.sqrt(weights @ np.where(far, u * u, 0)) + near)
    below = abs(math.sqrt(weights @ scales**2) - exact)
    return math.sqrt(2 * scales.min() / 10 * float(density @ apart**2)), above, below


def _thm3(inputs: Inputs) -> Check:
    @parametrized(Inequality)
    def distances(
        setting: Setting, power: int = 3, rate: float = 1.0
    ) -> list[tuple[float, Bound]]:
        """W_2 between its limits, and the upper one against its closed form, times n; kappa = tr Sigma = 1."""
        w, pairs = setting.numbers["w"], []
        law = {
            "kappa": 1.0,
            "op_norm": max(w, 1 - w),
            "trace": 1.0,
            "hs_norm": math.hypot(w, 1 - w),
            "d": 1.0,
        }
        for second in (0.1, 1.0):
            f = np.array([1.0, second])  # the squares of the coordinates
            energy = f @ np.array([w, 1 - w]) ** 3 / f.sum()
            for n in (1, 20, 400):
                found, above, below = (
                    n * distance for distance in _wasserstein(n, power, w, f)
                )
                closed = (
                    n
                    * math.sqrt(f.sum())
                    * sketching.law_distance(**law, energy=energy, n=n).value
                )
                pairs += [
                    (found, above * n ** (1 - rate)),
                    (below, found),
                    (above, closed),
                ]
        return lines(pairs, "jaxkern, Theorem G")

    law = Law(trials.standardised_image, stats.norm.cdf)
    far = tuple(
        Setting(p.name, p.arrays, {"n": 1e10, "d": 1.0, "tau": 1.0})
        for p in inputs.rough
    )
    wrong = controls.changed(far, "Sigma^2", shapes={"target": 2})
    atoms = grid("two orthonormal atoms, pi_1={w:g}", w=(0.3, 0.67))
    return Check(
        printed=Form(law, far),
        corrected=Form(distances(), atoms),
        controls=(
            Control("Sigma^2 in place of Sigma^3", law, wrong, "wrong power"),
            Control("Sigma^2 in the distance", distances(2), atoms, "wrong power"),
            Control("a rate of n^(-3/2)", distances(rate=1.5), atoms, "wrong power"),
        ),
    )
