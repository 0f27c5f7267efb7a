r"""Trials for `Rare`: unbiased estimates, in [0, 1] after division by a ceiling, of probabilities too small to count.

*Tilting.* X has the log moment generating function Lambda, S is the sum of m independent copies, and the event is
S >= m a, a above the mean. For theta > 0 the tilted law has the density exp(theta x - Lambda(theta)) with respect to
that of X. With all copies from the tilted law,

    P(S >= m a) = E_theta[exp(m Lambda(theta) - theta S) 1{S >= m a}] = exp(m (Lambda(theta) - theta a)) E_theta[W],
    W = exp(-theta (S - m a)) 1{S >= m a}, which lies in [0, 1].

So W is an unbiased estimate of the probability over the ceiling exp(m (Lambda(theta) - theta a)), Chernoff's bound,
whatever theta is; theta < 0 is for S <= m a. At the saddle point, Lambda'(theta) = a, the ceiling is smallest, and the
event has a tilted probability near 1/2. There, for a smooth law, theta (S - m a) is nearly N(0, s^2) with
s = theta sqrt(m Lambda''), so that E W ~ 1 / (s sqrt(2 pi)), E W^2 ~ E W / 2, and as s^2 ~ 2 L for a probability
exp(-L),

    Var W / (E W)^2 ~ sqrt(pi L) - 1:

4.6 for e^-10 and 10 for e^-40, so 2,000 trials have a standard error of 5 and 7 percent. A plain count has exp(L).

*Two sides.* With ceilings c1, c2 and independent estimates W1, W2 the number (c1 W1 + c2 W2) / (c1 + c2) lies in [0, 1]
and is an unbiased estimate of the probability of either event over the common ceiling c1 + c2.

*Conditioning.* A standard normal matrix G is R U, R^2 chi-square and independent of the direction U. For an event that
occurs as soon as R^2 >= y(U), its probability given U is the tail Q(y(U)) of chi-square, at most Q(y0), y0 the
smallest y(U). So Q(y(U)) / Q(y0) is an unbiased estimate over the ceiling Q(y0). No length is drawn.

Ceilings are logs, computed on the host in float64; trials run in the default float dtype. There the
deviations from a are summed, so W has a relative error of about eps(dtype) |theta| m max |x| at most; acceptance and
inversion compare with a uniform number on a grid of 2^-23 or 2^-52, which moves a probability by as much.

Sources: Siegmund (1976) for tilting at the saddle point; Bahadur and Ranga Rao (1960) for the tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy import optimize, special

from jaxkern import checks
from jaxkern.draws import invert
from jaxkern.linalg import eigvalsh, matmul
from jaxkern.pytrees import pytree, static
from proofs_check.claim import Setting

MOST_BLOCKS = 10_000
"""What is missing after so many blocks of proposals is NaN, which the judge reports; no other law takes its place."""

LEAST_ACCEPTED = 0.02
_TERMS = 60
_State = tuple[jax.Array, jax.Array, jax.Array, jax.Array]

Draw = Callable[[jax.Array, Mapping[str, jax.Array], int, Any], jax.Array]
"""`draw(key, parameters, count, dtype) -> (count,)`: independent copies from a tilted law."""


class Law(Protocol):
    """A real random variable X that can be tilted: all that `sums` needs to know."""

    @property
    def domain(self) -> tuple[float, float]:
        """Where log E exp(theta X) is finite, an open interval around 0."""

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest value of X."""

    def cumulant(self, theta: float) -> tuple[float, float]:
        """Return Lambda(theta) = log E exp(theta X) and its derivative, the mean of the tilted law."""

    def tilted(self, theta: float) -> dict[str, Any]:
        """Return the parameters of the tilted law that `draw` needs, or raise where it cannot be drawn from."""

    @property
    def draw(self) -> Draw:
        """The sampler of the tilted law."""


# ---------------------------------------------------------------------------------------------------------------- laws


@dataclass(frozen=True)
class Normal:
    """A standard normal variable; tilted, N(theta, 1)."""

    domain = (-math.inf, math.inf)
    span = (-math.inf, math.inf)

    def cumulant(self, theta: float) -> tuple[float, float]:
        """Return theta^2 / 2 and theta."""
        return theta**2 / 2, theta

    def tilted(self, theta: float) -> dict[str, Any]:
        """Return the mean of the tilted law."""
        return {"mean": theta}

    @property
    def draw(self) -> Draw:
        """The sampler of the tilted law."""
        return _draw_normal


def _draw_normal(key: jax.Array, parameters: Mapping[str, jax.Array], count: int, dtype: Any) -> jax.Array:
    return parameters["mean"] + jax.random.normal(key, (count,), dtype)


@dataclass(frozen=True)
class ChiSquare:
    """A chi-square variable with `degrees` of freedom, not necessarily whole; tilted, 1 / (1 - 2 theta) times one."""

    degrees: float = 1.0
    domain = (-math.inf, 0.5)
    span = (0.0, math.inf)

    def __post_init__(self) -> None:
        """Refuse what is not positive."""
        checks.positive("degrees", self.degrees)

    def cumulant(self, theta: float) -> tuple[float, float]:
        """Return -(k / 2) log(1 - 2 theta) and k / (1 - 2 theta)."""
        return -self.degrees / 2 * math.log1p(-2 * theta), self.degrees / (1 - 2 * theta)

    def tilted(self, theta: float) -> dict[str, Any]:
        """Return half the degrees of freedom and the scale of the gamma law."""
        return {"half": self.degrees / 2, "scale": 2 / (1 - 2 * theta)}

    @property
    def draw(self) -> Draw:
        """The sampler of the tilted law."""
        return _draw_gamma


def _draw_gamma(key: jax.Array, parameters: Mapping[str, jax.Array], count: int, dtype: Any) -> jax.Array:
    return parameters["scale"] * jax.random.gamma(key, parameters["half"], (count,), dtype)


@dataclass(frozen=True)
class Finite:
    """Finitely many `values`, each with its probability; tilted, the same values with other probabilities.

    Sums of values on a lattice have ties: put the level between two values of the sum, so that rounding decides
    nothing. Raises ValueError for probabilities that are not positive or do not add up to 1.
    """

    values: tuple[float, ...]
    probabilities: tuple[float, ...]
    domain = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        """Refuse what is not a law."""
        p = np.asarray(self.probabilities, float)
        if len(self.values) != len(p) or len(p) < 2 or not np.all(p > 0) or abs(p.sum() - 1) > 1e-12:
            raise ValueError(
                f"probabilities must be positive and add up to 1, one for each of at least 2 values, got "
                f"{self.probabilities} for {self.values}"
            )

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return min(self.values), max(self.values)

    def cumulant(self, theta: float) -> tuple[float, float]:
        """Return the log of the sum over the values, and the tilted mean."""
        log_p = theta * np.array(self.values) + np.log(self.probabilities)
        total = float(special.logsumexp(log_p))
        return total, float(np.exp(log_p - total) @ np.array(self.values))

    def tilted(self, theta: float) -> dict[str, Any]:
        """Return the values and their tilted probabilities."""
        log_p = theta * np.array(self.values) + np.log(self.probabilities)
        return {"values": np.array(self.values), "weights": np.exp(log_p - special.logsumexp(log_p))}

    @property
    def draw(self) -> Draw:
        """The sampler of the tilted law."""
        return _draw_atoms


def bernoulli(probability: float) -> Finite:
    """Return the law of 1 with this probability and of 0 otherwise."""
    return Finite((0.0, 1.0), (1 - probability, probability))


def _draw_atoms(key: jax.Array, parameters: Mapping[str, jax.Array], count: int, dtype: Any) -> jax.Array:
    return parameters["values"][invert(parameters["weights"], jax.random.uniform(key, (count,), dtype))]


@dataclass(frozen=True)
class UniformCosine:
    """cos U, U uniform on the circle: Lambda(theta) = log I_0(theta), I_0 the Bessel function.

    It is 2 cos^2(b) - 1 for the random shift b of a shifted Fourier feature.
    """

    domain = (-math.inf, math.inf)
    span = (-1.0, 1.0)

    def cumulant(self, theta: float) -> tuple[float, float]:
        """Return log I_0(theta) and I_1(theta) / I_0(theta)."""
        return math.log(special.ive(0, theta)) + abs(theta), float(special.ive(1, theta) / special.ive(0, theta))

    def tilted(self, theta: float) -> dict[str, Any]:
        """Return theta; a uniform angle is accepted with probability exp(theta cos U - |theta|)."""
        _enough("cos U", theta, float(special.ive(0, theta)))
        return {"theta": theta}

    @property
    def draw(self) -> Draw:
        """The sampler of the tilted law."""
        return _draw_angle


def _draw_angle(key: jax.Array, parameters: Mapping[str, jax.Array], count: int, dtype: Any) -> jax.Array:
    def propose(key: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
        value = jnp.cos(math.pi * jax.random.uniform(key, (size,), dtype))  # half of the circle has all cosines
        return value, parameters["theta"] * value - jnp.abs(parameters["theta"])

    return _accepted(key, propose, count, dtype)


@dataclass(frozen=True)
class FourierPair:
    """Y = (1 - cos(r g)) / mu, g standard normal, mu = 1 - exp(-r^2 / 2): Dhat^2 / D^2 of one Gaussian frequency.

    Y has mean 1, and cos(r g) = 1 - mu Y is the inner product of a pair of Fourier features of two points at distance r
    lengthscales: with t frequencies Khat - K = mu (1 - mean of Y). With Y in place of the cosine no digits are lost
    where r is small. Raises ValueError where `distance` is not positive.

    The tilted law has a density proportional to exp(s (1 - cos x) - g^2 / 2), x = r g, s = theta / mu. It is drawn by
    rejection from N(0, 1 / (1 - rho)), 0 <= rho < 1, with the acceptance exp(s (1 - cos x) - rho g^2 / 2 - b), b the
    largest value of what stands before it. The density of an accepted draw is that of the proposal times the
    acceptance, up to a constant, which is the tilted one exactly, and the first m accepted of a sequence of independent
    proposals are independent. rho is chosen for the most acceptance: 0 for s <= 0, and near s r^2 for small r, where
    Y is nearly chi-square.
    """

    distance: float
    domain = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        """Refuse what is not positive."""
        checks.positive("distance", self.distance)

    @property
    def mu(self) -> float:
        """E(1 - cos(r g)) = 1 - exp(-r^2 / 2)."""
        return -math.expm1(-(self.distance**2) / 2)

    @property
    def span(self) -> tuple[float, float]:
        """0 and 2 / mu."""
        return 0.0, 2 / self.mu

    def cumulant(self, theta: float) -> tuple[float, float]:
        """Return Lambda(theta) and Lambda'(theta), by the trapezoidal rule, which has no error beyond rounding.

        The integrand exp(s (1 - cos(r g)) - g^2 / 2) has its mass where the exponent may exceed -40, and frequencies up
        to r (10 sqrt|s| + 20), for s > 0 plus r s, beside those of the normal density; the step resolves twice that.
        """
        r, s = self.distance, theta / self.mu
        most = math.sqrt(80 + 4 * max(s, 0.0))
        if 0 < s * r**2 < 1:  # the exponent is at most -(1 - s r^2) g^2 / 2
            most = min(most, math.sqrt(80 / (1 - s * r**2)))
        step = 2 * math.pi / (2 * r * (max(s, 0.0) + 10 * math.sqrt(abs(s)) + 20) + 20)
        g = step * np.arange(math.ceil(most / step) + 1)
        rest = 2 * np.sin(r * g / 2) ** 2
        log_weights = s * rest - g**2 / 2
        log_weights[0] -= math.log(2.0)  # the other half of the line
        total = special.logsumexp(log_weights)
        log_mean = float(total) + math.log(2 * step) - math.log(2 * math.pi) / 2
        return log_mean, float(np.exp(log_weights - total) @ rest) / self.mu

    def acceptance(self, theta: float) -> tuple[float, float, float]:
        """Return rho, b and the probability with which a proposal is accepted.

        For s > 0, s (1 - cos x) - rho x^2 / (2 r^2) is largest where sin x = c x, c = rho / (s r^2), within [0, pi]: of
        all x with one cosine the one there has the smallest square.
        """
        s = theta / self.mu
        if s <= 0:
            return 0.0, 0.0, math.exp(self.cumulant(theta)[0])
        best = (0.0, 0.0, -math.inf)
        limit = s * self.distance**2
        for rho in np.linspace(0, min(limit, 1.0), 129)[: -1 if limit >= 1 else None].tolist():
            c = rho / limit
            x = optimize.brentq(lambda x, c=c: math.sin(x) - c * x, 1e-9, 3.2) if c < 1 - 1e-12 else 0.0
            b = s * (2 * math.sin(x / 2) ** 2 - c * x**2 / 2)
            if math.log1p(-rho) / 2 - b > best[2]:
                best = (rho, b, math.log1p(-rho) / 2 - b)
        return best[0], best[1], math.exp(self.cumulant(theta)[0] + best[2])

    def tilted(self, theta: float) -> dict[str, Any]:
        """Return r, mu, s, and the scale and the acceptance of proposals."""
        rho, b, accepted = self.acceptance(theta)
        _enough(f"a Fourier pair at distance {self.distance:g}", theta, accepted)
        scale = 1 / math.sqrt(1 - rho)
        names = ("phase", "mu", "s", "square", "most")
        return dict(zip(names, (self.distance * scale, self.mu, theta / self.mu, rho * scale**2, b), strict=True))

    @property
    def draw(self) -> Draw:
        """The sampler of the tilted law."""
        return _draw_pair


def _draw_pair(key: jax.Array, parameters: Mapping[str, jax.Array], count: int, dtype: Any) -> jax.Array:
    def propose(key: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
        z = jax.random.normal(key, (size,), dtype)
        rest = 2 * jnp.sin(parameters["phase"] * z / 2) ** 2
        return rest, parameters["s"] * rest - parameters["square"] * z**2 / 2 - parameters["most"]

    return _accepted(key, propose, count, dtype) / parameters["mu"]


def _enough(name: str, theta: float, accepted: float) -> None:
    if not accepted >= LEAST_ACCEPTED:
        raise ValueError(
            f"{name} tilted by {theta:.4g} would be drawn from {1 / max(accepted, 1e-300):.3g} proposals; "
            "take a level closer to the mean and more copies"
        )


def _accepted(
    key: jax.Array, propose: Callable[[jax.Array, int], tuple[jax.Array, jax.Array]], count: int, dtype: Any
) -> jax.Array:
    """Return the first `count` accepted of a sequence of proposals, in blocks.

    `propose(key, size)` returns values and the logs of their acceptances, (size,) each.
    """

    def waiting(state: _State) -> jax.Array:
        _, step, filled, _ = state
        return jnp.logical_and(step < MOST_BLOCKS, filled < count)

    def again(state: _State) -> _State:
        key, step, filled, values = state
        key, key_propose, key_accept = jax.random.split(key, 3)
        new, log_accept = propose(key_propose, 2 * count)
        taken = jax.random.uniform(key_accept, (2 * count,), dtype) < jnp.exp(log_accept)
        order = filled + jnp.cumsum(taken, dtype=jnp.int32)
        values = values.at[jnp.where(taken, order - 1, count)].set(new, mode="drop")
        return key, step + 1, order[-1], values

    start = (key, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32), jnp.full((count,), jnp.nan, dtype))
    return lax.while_loop(waiting, again, start)[3]


# ------------------------------------------------------------------------------------------------------------- tilting


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


def saddle_point(law: Law, level: float) -> float:
    """Return the theta at which the tilted law has the mean `level`.

    Raises ValueError where the level is the mean or does not lie strictly within the values of the law. Cost: some 60
    evaluations of the cumulant.
    """
    mean = law.cumulant(0.0)[1]
    low, high = law.span
    if not low < level < high or level == mean:
        raise ValueError(f"level must lie strictly between {low:g} and {high:g} and differ from {mean:g}, got {level}")
    edge = law.domain[1 if level > mean else 0]
    sign, far = math.copysign(1.0, edge), 1.0
    for power in range(1, 60):
        far = edge * (1 - 2.0**-power) if math.isfinite(edge) else sign * 2.0 ** (power - 5)
        if sign * (law.cumulant(far)[1] - level) >= 0:
            break
    else:
        raise ValueError(f"level {level} is too close to the end of the law")
    return float(optimize.brentq(lambda theta: law.cumulant(theta)[1] - level, 0.0, far, xtol=1e-14, rtol=1e-13))


def sums(
    name: str,
    law: Law,
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
    if (above is not None and not above > mean) or (below is not None and not below < mean):
        raise ValueError(f"above must exceed the mean {mean:g} and below fall short of it, got {above} and {below}")
    if above is not None and above <= high:
        levels.append(float(above))
    if below is not None and below >= low:
        levels.append(float(below))
    if not levels:
        raise ValueError(f"no mean of values in [{low:g}, {high:g}] is above {above} or below {below}")
    thetas = [saddle_point(law, level) for level in levels]
    logs = [count * (law.cumulant(theta)[0] - theta * a) for theta, a in zip(thetas, levels, strict=True)]
    total = float(special.logsumexp(logs))
    sides = tuple(
        Side(theta, level, math.exp(log - total), law.tilted(theta), law.draw)
        for theta, level, log in zip(thetas, levels, logs, strict=True)
    )
    return Setting(name, Sides(sides, total), dict(numbers or {}), {"copies": count})


def sum_estimate(key: jax.Array, population: Sides, numbers: Mapping[str, jax.Array], *, copies: int) -> jax.Array:
    """Return one estimate, a scalar in [0, 1], of the probability of the event over its ceiling.

    Unbiased, with a relative variance of about sqrt(pi L) for a probability exp(-L); the module has the proof.
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
    population = setting.population
    return float(population.log_ceiling)


# -------------------------------------------------------------------------------------------------------- conditioning


@pytree
class Radial:
    """An event of a standard normal matrix G, (rows, p), that its length decides: |G diag(scales)|_op^2 >= level.

    Attributes
    ----------
    scales : (p,), the largest is 1.
    level : the squared length that is enough in the best direction.
    log_ceiling : log P(chi2 >= level) with rows * p degrees of freedom.
    """

    scales: Any
    level: Any
    log_ceiling: Any


def radial(
    name: str, scales: Sequence[float], *, rows: int, level: float, numbers: Mapping[str, float] | None = None
) -> Setting:
    """Return the setting of P(|G diag(scales)|_op^2 >= level), G a standard normal (rows, p) matrix.

    With one row this is the tail of the quadratic form sum scales_i^2 g_i^2. The trial is `radial_estimate`, the
    ceiling `log_ceiling`. Estimates do not vary where p = 1, or where rows = 1 and all scales are equal. Otherwise
    their mean falls like y^(-k/2), y the level over the largest squared scale and k the number of directions that lead
    away from the best ones: rows (p - 1) where one scale is the largest, (rows - 1) (p - 1) where all are equal. It is
    for small k, up to 3 or so.

    Raises ValueError where the scales are not positive, or the level is not in the tail, y >= rows p + 2.
    """
    c, count = np.asarray(scales, float), checks.count("rows", rows)
    if c.ndim != 1 or c.size < 1 or not np.all(c > 0):
        raise ValueError(f"scales must be a vector of positive numbers, got {scales!r}")
    y = level / float(np.max(c)) ** 2
    if not y >= count * c.size + 2:
        raise ValueError(
            f"level must be at least {count * c.size + 2} times the largest squared scale, got {y:.4g} times"
        )
    population = Radial(c / np.max(c), y, log_chi_square_tail(count * c.size, y))
    return Setting(name, population, dict(numbers or {}), {"rows": count})


def radial_estimate(key: jax.Array, population: Radial, numbers: Mapping[str, jax.Array], *, rows: int) -> jax.Array:
    """Return one estimate, a scalar in [0, 1]: the probability of the event given the direction of G, over the ceiling.

    Unbiased by the tower rule. Cost: an eigendecomposition of order p.
    """
    del numbers
    dtype = jnp.result_type(float)
    scales, level = jnp.asarray(population.scales, dtype), jnp.asarray(population.level, dtype)
    G = jax.random.normal(key, (rows, scales.shape[0]), dtype)
    C = (G / jnp.sqrt(jnp.sum(G**2))) * scales[None, :]
    largest = jnp.minimum(eigvalsh(matmul(C.T, C))[0], 1)  # 1 is the most but for rounding
    return chi_square_ratio(rows * scales.shape[0], level / largest, level)


def log_chi_square_tail(degrees: int, y: float) -> float:
    """Return log P(chi2 >= y) for y >= degrees + 2, far beyond what underflows."""
    a, x = degrees / 2, y / 2
    return a * math.log(x) - x - math.lgamma(a) - math.log(_fraction(a, x))


def chi_square_ratio(degrees: int, y: jax.Array, start: jax.Array) -> jax.Array:
    """Return P(chi2 >= y) / P(chi2 >= start) for y >= start >= degrees + 2, with its relative accuracy kept.

    No tail is formed, so nothing underflows but the ratio itself.
    """
    a = degrees / 2
    ratio = _fraction(a, start / 2) / _fraction(a, y / 2)
    return jnp.minimum(ratio * jnp.exp(a * jnp.log(y / start) - (y - start) / 2), 1)


def _fraction(a: float, x: Any) -> Any:
    """Return f with Gamma(a, x) = x^a exp(-x) / f for x > a: Legendre's continued fraction, from its far end."""
    f = x + (2 * _TERMS + 1 - a)
    for k in range(_TERMS, 0, -1):
        f = x + (2 * k - 1 - a) - k * (k - a) / f
    return f
