r"""Trials for `Rare`: unbiased estimates, in [0, 1] after division by a ceiling, of probabilities too small to count.

docs/verdicts.md derives them: sums of copies from the tilted law at the saddle point, over Chernoff's bound, and two
sides over the sum of their ceilings. In its words W = exp(-theta (S - m a)) 1{S >= m a} is the estimate, theta < 0 is
for S <= m a.

Ceilings are logs, computed on the host in float64; trials run in the default float dtype. There the
deviations from a are summed, so W has a relative error of about eps(dtype) |theta| m max |x| at most; acceptance and
inversion compare with a uniform number on a grid of 2^-23 or 2^-52, which moves a probability by as much.

Sources: Siegmund (1976) for tilting at the saddle point; Bahadur and Ranga Rao (1960) for the tail.
"""

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize, special, stats

from jaxkern import checks
from jaxkern.pytrees import pytree, static
from proofs_check.claim import Setting
from proofs_check.engine.laws import (
    Draw,
    FourierPair,
    SwitchedCosine,
    Tiltable,
    UniformCosine,
)

__all__ = [
    "FourierPair", "Side", "Sides", "SwitchedCosine", "UniformCosine", "log_ceiling", "log_chi_square_tail",
    "saddle_point", "sum_estimate", "sums",
]  # fmt: skip

_TERMS = 60


@pytree
class Side:
    """One side of an event on the mean of copies of a law, tilted.

    Attributes
    ----------
    theta : the tilt; positive for means of at least `level`, negative for means of at most it.
    level : the mean at which the event begins.
    share : the ceiling of this side over the sum of all ceilings.
    parameters : of the tilted law.
    draw : its sampler. Static.
    """

    theta: Any
    level: Any
    share: Any
    parameters: Mapping[str, Any]
    draw: Draw = static()


@pytree
class Sides:
    """All sides of an event, and the log of the sum of their ceilings: the population of the settings of `sums`."""

    sides: tuple[Side, ...]
    log_ceiling: Any


def saddle_point(law: Tiltable, level: float) -> float:
    """Return the theta at which the tilted law has the mean `level`.

    Raises ValueError where the level is the mean or does not lie strictly within the values of the law. Cost: some 60
    evaluations of the cumulant.
    """
    mean = law.cumulant(0.0)[1]
    low, high = law.span
    if not low < level < high or level == mean:
        raise ValueError(
            f"level must lie strictly between {low:g} and {high:g} and differ from {mean:g}, got {level}"
        )
    sign, far = math.copysign(1.0, level - mean), 1.0
    for power in range(1, 60):
        far = sign * 2.0 ** (power - 5)
        if sign * (law.cumulant(far)[1] - level) >= 0:
            break
    else:
        raise ValueError(f"level {level} is too close to the end of the law")
    return float(
        optimize.brentq(
            lambda theta: law.cumulant(theta)[1] - level,
            0.0,
            far,
            xtol=1e-14,
            rtol=1e-13,
        )
    )


def sums(
    name: str,
    law: Tiltable,
    *,
    copies: int,
    above: float | None = None,
    below: float | None = None,
    numbers: Mapping[str, float] | None = None,
) -> Setting:
    """Return the setting of P(mean >= above) + P(mean <= below) for the mean of independent copies of a law.

    Either level may be None. A level that no mean reaches adds nothing, and is left out. The trial is
    `sum_estimate`, the ceiling `log_ceiling`, and `numbers` are those of the setting, for the claim.

    Raises ValueError where no level remains, where `above` is not above the mean or `below` not below it, where a level
    is an end of the law (there the probability is a power, with no need of trials), and where the tilted law is too
    hard to draw from. Settings of one law, number of copies and number of sides share a compiled trial.
    """
    count = checks.count("copies", copies)
    mean, (low, high) = law.cumulant(0.0)[1], law.span
    levels = []
    if (above is not None and not above > mean) or (
        below is not None and not below < mean
    ):
        raise ValueError(
            f"above must exceed the mean {mean:g} and below fall short of it, got {above} and {below}"
        )
    if above is not None and above <= high:
        levels.append(float(above))
    if below is not None and below >= low:
        levels.append(float(below))
    if not levels:
        raise ValueError(
            f"no mean of values in [{low:g}, {high:g}] is above {above} or below {below}"
        )
    thetas = [saddle_point(law, level) for level in levels]
    logs = [
        count * (law.cumulant(theta)[0] - theta * a)
        for theta, a in zip(thetas, levels, strict=True)
    ]
    total = float(special.logsumexp(logs))
    sides = tuple(
        Side(theta, level, math.exp(log - total), law.tilted(theta), law.draw)
        for theta, level, log in zip(thetas, levels, logs, strict=True)
    )
    return Setting(name, Sides(sides, total), dict(numbers or {}), {"copies": count})


def sum_estimate(
    key: jax.Array, population: Sides, numbers: Mapping[str, jax.Array], *, copies: int
) -> jax.Array:
    """Return one estimate, a scalar in [0, 1], of the probability of the event over its ceiling.

    Unbiased, with a relative variance of about sqrt(pi L) for a probability exp(-L); docs/verdicts.md has the proof.
    NaN where `MOST_BLOCKS` blocks of proposals were not enough. Cost: the copies, on each side.
    """
    del numbers
    dtype = jnp.result_type(float)
    estimate = jnp.zeros((), dtype)
    for index, side in enumerate(population.sides):
        real = jax.tree.map(lambda x: jnp.asarray(x, dtype), side)
        x = real.draw(jax.random.fold_in(key, index), real.parameters, copies, dtype)
        beyond = real.theta * jnp.sum(x - real.level)
        # Where the event does not occur exp could overflow, and 0 times inf is NaN; NaN itself must pass.
        estimate += real.share * jnp.where(beyond < 0, 0, jnp.exp(-beyond))
    return jnp.minimum(estimate, 1)


def log_ceiling(setting: Setting) -> float:
    """Return the log of the ceiling of a setting made here, in float64: what `Rare` asks for."""
    population = setting.data
    return float(population.log_ceiling)


def log_chi_square_tail(degrees: float, y: Any) -> Any:
    """Return log P(chi2 >= y), of numbers y far beyond what underflows, too."""
    a, x = degrees / 2, np.asarray(y, float) / 2
    far = np.maximum(x, 1.5 * a + 1)
    beyond = a * np.log(far) - far - math.lgamma(a) - np.log(_fraction(a, far))
    return np.where(x < far, stats.chi2.logsf(y, degrees), beyond)


def _fraction(a: float, x: Any) -> Any:
    """Return f with Gamma(a, x) = x^a exp(-x) / f for x > a: Legendre's continued fraction, from its far end."""
    f = x + (2 * _TERMS + 1 - a)
    for k in range(_TERMS, 0, -1):
        f = x + (2 * k - 1 - a) - k * (k - a) / f
    return f
