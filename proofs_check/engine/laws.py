"""Laws of one variable that can be tilted: their cumulants, and samplers of the tilted laws for `tilting`."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy import optimize, special

from jaxkern import checks

MOST_BLOCKS = 10_000
"""What is missing after so many blocks of proposals is NaN, which the judge reports; no other law takes its place."""

LEAST_ACCEPTED = 0.02
_State = tuple[jax.Array, jax.Array, jax.Array, jax.Array]


Draw = Callable[[jax.Array, Mapping[str, jax.Array], int, Any], jax.Array]
"""`draw(key, parameters, count, dtype) -> (count,)`: independent copies from a tilted law."""


class Tiltable(Protocol):
    """A bounded random variable X that can be tilted: all that `sums` needs to know."""

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


def _draw_angle(
    key: jax.Array, parameters: Mapping[str, jax.Array], count: int, dtype: Any
) -> jax.Array:
    def propose(key: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
        value = jnp.cos(
            math.pi * jax.random.uniform(key, (size,), dtype)
        )  # half of the circle has all cosines
        return value, parameters["theta"] * value - jnp.abs(parameters["theta"])

    return _accepted(key, propose, count, dtype)


@dataclass(frozen=True)
class UniformCosine:
    """cos U, U uniform on the circle: Lambda(theta) = log I_0(theta), I_0 the Bessel function.

    It is 2 cos^2(b) - 1 for the random shift b of a shifted Fourier feature.
    """

    span = (-1.0, 1.0)
    draw = staticmethod(_draw_angle)

    def cumulant(self, theta: float) -> tuple[float, float]:
        """Return log I_0(theta) and I_1(theta) / I_0(theta)."""
        return math.log(special.ive(0, theta)) + abs(theta), float(
            special.ive(1, theta) / special.ive(0, theta)
        )

    def tilted(self, theta: float) -> dict[str, Any]:
        """Return theta; a uniform angle is accepted with probability exp(theta cos U - |theta|)."""
        _enough("cos U", theta, float(special.ive(0, theta)))
        return {"theta": theta}


def _draw_switched(
    key: jax.Array, parameters: Mapping[str, jax.Array], count: int, dtype: Any
) -> jax.Array:
    key_on, key_angle = jax.random.split(key)
    on = jax.random.uniform(key_on, (count,), dtype) < parameters["on"]
    return jnp.where(on, 1 + _draw_angle(key_angle, parameters, count, dtype), 0)


@dataclass(frozen=True)
class SwitchedCosine:
    """Y (1 + cos U), U uniform on the circle and independently Y = 1 with probability p, else 0.

    It is x'P x / n, P the Gram matrix of one shifted feature, where that is most spread.
    """

    p: float
    span = (0.0, 2.0)
    draw = staticmethod(_draw_switched)

    def cumulant(self, theta: float) -> tuple[float, float]:
        """Return log(1 - p + p exp(theta) I_0(theta)), and its derivative."""
        log_on, mean = UniformCosine().cumulant(theta)
        on = self.p * math.exp(theta + log_on)
        return math.log1p(on - self.p), on * (1 + mean) / (1 - self.p + on)

    def tilted(self, theta: float) -> dict[str, Any]:
        """Return the tilt of the cosine, and the probability that Y is 1."""
        on = self.p * math.exp(theta + UniformCosine().cumulant(theta)[0])
        return {**UniformCosine().tilted(theta), "on": on / (1 - self.p + on)}


def _draw_pair(
    key: jax.Array, parameters: Mapping[str, jax.Array], count: int, dtype: Any
) -> jax.Array:
    def propose(key: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
        z = jax.random.normal(key, (size,), dtype)
        rest = 2 * jnp.sin(parameters["phase"] * z / 2) ** 2
        return rest, parameters["s"] * rest - parameters[
            "square"
        ] * z**2 / 2 - parameters["most"]

    return _accepted(key, propose, count, dtype) / parameters["mu"]


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
    draw = staticmethod(_draw_pair)

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
        for rho in np.linspace(0, min(limit, 1.0), 129)[
            : -1 if limit >= 1 else None
        ].tolist():
            c = rho / limit
            x = (
                optimize.brentq(lambda x, c=c: math.sin(x) - c * x, 1e-9, 3.2)
                if c < 1 - 1e-12
                else 0.0
            )
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
        return dict(
            zip(
                names,
                (self.distance * scale, self.mu, theta / self.mu, rho * scale**2, b),
                strict=True,
            )
        )


def _enough(name: str, theta: float, accepted: float) -> None:
    if not accepted >= LEAST_ACCEPTED:
        raise ValueError(
            f"{name} tilted by {theta:.4g} would be drawn from {1 / max(accepted, 1e-300):.3g} proposals; "
            "take a level closer to the mean and more copies"
        )


def _accepted(
    key: jax.Array,
    propose: Callable[[jax.Array, int], tuple[jax.Array, jax.Array]],
    count: int,
    dtype: Any,
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
        taken = jax.random.uniform(key_accept, (2 * count,), dtype) < jnp.exp(
            log_accept
        )
        order = filled + jnp.cumsum(taken, dtype=jnp.int32)
        values = values.at[jnp.where(taken, order - 1, count)].set(new, mode="drop")
        return key, step + 1, order[-1], values

    start = (
        key,
        jnp.zeros((), jnp.int32),
        jnp.zeros((), jnp.int32),
        jnp.full((count,), jnp.nan, dtype),
    )
    return lax.while_loop(waiting, again, start)[3]
