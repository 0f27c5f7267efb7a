"""What the statements of amini2021 are tried on."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy import special

from jaxkern import kernels
from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Setting, Tail
from proofs_check.papers import shared
from proofs_check.papers.amini2021 import trials
from proofs_check.papers.shared import real

NOISE = 1.5
TAU = math.sqrt(3.25)
"""Of Section 3.5, with alpha = 1."""

KAPPA = math.sqrt(8 / 3)
"""The sub-Gaussian norm of N(0, 1), the smallest kappa with E exp(X^2 / kappa^2) <= 2."""

PROVED = (2 * math.sqrt(2 * KAPPA**2) + 2) / KAPPA**2
"""1 / c for Gaussian coordinates: v <= 2 kappa^2 scale^4 eta in `quadratic_form_gaussian`."""

SPHERE_POINTS = 96
SPHERE_DIM = 256

Pairs = list[tuple[float, Bound]]
"""The sides of an Inequality."""


@dataclass(frozen=True, eq=False)
class Inputs(shared.Inputs):
    """Models with a Gaussian kernel, and failure probabilities.

    On a user's table the statements about Gaussian kernels and about Lemma 1 are tried around its rows; the others,
    which need clusters, special kernels or special laws, stay as they are.
    """

    @property
    def deltas(self) -> tuple[float, ...]:
        """Failure probabilities."""
        return (0.05, 0.01) if self.full else (0.05,)

    @cached_property
    def models(self) -> tuple[trials.Model, ...]:
        """Points with isotropic noise and a Gaussian kernel."""
        return trials.gaussian_models(self.data)


GRAM_TAIL = partial(Tail, trials.gram_error)
"""What makes a Tail of a bound on |K - E K| / n."""


def at_least(value: Any, lower: Bound) -> tuple[float, Bound]:
    """Return the two sides of: the value is at least what the bound says."""
    return float(lower.value), dataclasses.replace(lower, value=float(value))


def rescaled(right: Bound, factor: float) -> Bound:
    """Return a bound times a number."""
    return dataclasses.replace(right, value=right.value * factor)


def log_of(probability: float) -> float:
    """Return the logarithm of a probability, minus infinity of zero."""
    return math.log(probability) if probability > 0 else -math.inf


def log_sum(logs: np.ndarray, where: Any) -> float:
    """Return the logarithm of the probability of an event from the logs of chances, minus infinity of none."""
    return float(special.logsumexp(logs[where])) if np.any(where) else -math.inf


def around(
    models: Sequence[trials.Model],
    deltas: Sequence[float],
    *,
    operator: bool = False,
    square: float = 2.0,
) -> tuple[Setting, ...]:
    """Return the models, in a norm, with t such that exp(-t^2 / square) = delta."""
    settings = []
    for model in models:
        for delta in deltas:
            t = math.sqrt(square * math.log(1 / delta))
            numbers = {"t": t, "operator": float(operator)}
            settings.append(model.setting(f"delta={delta:g}", numbers))
    return tuple(settings)


def with_numbers(setting: Setting, **numbers: float) -> Setting:
    """Return a setting with some of its numbers replaced."""
    return dataclasses.replace(setting, numbers={**setting.numbers, **numbers})


def per_point(
    formula: Callable[..., Bound], **options: Any
) -> Callable[[Setting], Bound]:
    """Return a bound divided by n, from the numbers of the setting and options as `bound_of` has them."""
    bound_of_all = shared.bound_of(formula, **{"num_points": "n", **options})

    def right(setting: Setting) -> Bound:
        bound = bound_of_all(setting)
        return dataclasses.replace(bound, value=bound.value / setting.numbers["n"])

    return right


def inner_products(
    num_points: int, dim: int, norm: float, width: int | None = None
) -> trials.Model:
    """Return points N(mu_i, I) in R^dim with the inner product kernel, as rows of `width` numbers."""
    means = rank_two(num_points, dim, norm) @ np.eye(dim, width or dim)
    variances = trials.isotropic(means, math.sqrt(dim), dim)
    return trials.Model(
        f"d={dim}, |M|={norm:g}", kernels.Linear(), math.inf, means, variances
    )


def rank_two(num_points: int, dim: int, norm: float) -> np.ndarray:
    """Return (n, d) means of rank 2 and the given operator norm."""
    rng = np.random.default_rng(31)
    M = rng.standard_normal((num_points, 2)) @ rng.standard_normal((2, dim))
    return norm * M / np.linalg.norm(M, 2)


def with_form(
    model: trials.Model, A: np.ndarray, tau: float, delta: float, label: str = ""
) -> Setting:
    """Return a setting with the quadratic form sum a_ij K_ij, and the norms of A and of M A."""
    S = (A + A.T) / 2
    means = model.means
    numbers = {
        "tau": tau,
        "dim": float(means.shape[1]),
        "mean_norm": float(np.linalg.norm(means, 2)),
        "frobenius": float(np.linalg.norm(S)),
        "op_norm": float(np.linalg.norm(S, 2)),
        "mean_frobenius": float(np.linalg.norm(means.T @ S)),
    }
    with_weights = dataclasses.replace(model, extra={"A": A})
    setting = with_weights.setting(f"delta={delta:g}", numbers)
    return dataclasses.replace(setting, name=label + setting.name)


def form_shape(setting: Setting, spread: float, size: float) -> Bound:
    """Return kappa^2 max(sqrt(spread tau), size tau), with probability 1 - 4 exp(-tau)."""
    tau = setting.numbers["tau"]
    value = KAPPA**2 * max(math.sqrt(spread * tau), size * tau)
    return Bound(
        value, 1 - 4 * math.exp(-tau), True, "amini2021, a quadratic form, shape"
    )


def blocks(mean: Any, labels: np.ndarray, *, off_diagonal: bool) -> Any:
    """Return the parameters of the blocks of a mean kernel matrix, averages over all entries or over those off it."""
    count = int(labels.max()) + 1
    return concentration.block_parameters(
        real(mean), jnp.asarray(labels), num_clusters=count, off_diagonal=off_diagonal
    )


def distances_on_spheres(
    radii: tuple[float, float], noise: float, dim: int
) -> trials.Model:
    """Return points on two spheres of R^dim in turns, with noise and their labels, and the kernel |x - y|.

    All have `SPHERE_POINTS` rows of `SPHERE_DIM` numbers.
    """
    rng = np.random.default_rng(41)
    used = np.arange(SPHERE_DIM) < dim
    rows = rng.standard_normal((SPHERE_POINTS, SPHERE_DIM)) * used
    labels = np.arange(SPHERE_POINTS) % 2
    lengths = np.array(radii)[labels] / np.linalg.norm(rows, axis=1)
    name = f"spheres of radii {radii[0]:g} and {radii[1]:g}, noise {noise:g}, d={dim}"
    model = trials.distances(name, lengths[:, None] * rows, noise / math.sqrt(dim), dim)
    return dataclasses.replace(model, extra={"labels": labels})


def two_spheres(r: float, q: float, d: float, noise: float = NOISE) -> dict[str, Any]:
    """Return the arguments of the bounds for two spheres, with the noise and the bandwidth of Section 3.5."""
    return {
        "radius": r,
        "other_radius": q,
        "noise": noise,
        "lengthscale": TAU,
        "dim": d,
    }
