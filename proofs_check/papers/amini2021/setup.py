"""What the statements of amini2021 are tried on."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxkern import kernels
from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Setting
from proofs_check.papers import shared
from proofs_check.papers.amini2021 import trials
from proofs_check.papers.shared import listed, real

NOISE, TAU = 1.5, math.sqrt(3.25)
"""Of Section 3.5, with alpha = 1."""

KAPPA = math.sqrt(8 / 3)
"""The sub-Gaussian norm of N(0, 1), the smallest kappa with E exp(X^2 / kappa^2) <= 2."""

PROVED = (2 * math.sqrt(2 * KAPPA**2) + 2) / KAPPA**2
"""1 / c for Gaussian coordinates: v <= 2 kappa^2 scale^4 eta in `quadratic_form_gaussian`."""

SPHERE_POINTS, SPHERE_DIM = 96, 256


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


def around(
    models: Sequence[trials.Model],
    deltas: Sequence[float],
    *,
    operator: bool = False,
    square: float = 2.0,
) -> tuple[Setting, ...]:
    """Return the models, in a norm, with t such that exp(-t^2 / square) = delta."""
    return tuple(
        model.setting(
            f"delta={delta:g}",
            {"t": math.sqrt(square * math.log(1 / delta)), "operator": float(operator)},
        )
        for model in models
        for delta in deltas
    )


def per_point(
    formula: Callable[..., Bound], **options: Any
) -> Callable[[Setting], Bound]:
    """Return a bound divided by n, from the numbers of the setting and options as `bound_of` has them."""
    bound_of_all = shared.bound_of(formula, **{"num_points": "n", **options})

    def right(setting: Setting) -> Bound:
        bound = bound_of_all(setting)
        return Bound(
            bound.value / setting.numbers["n"],
            bound.probability,
            bound.valid,
            bound.source,
        )

    return right


def clipped(*sizes: int) -> tuple[Setting, ...]:
    """Return sizes for the kernel of Proposition 1."""
    return tuple(
        Setting(f"n={n}", None, {"n": float(n)}, {"most": max(sizes)}) for n in sizes
    )


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
    S, means = (A + A.T) / 2, model.means
    numbers = {
        "tau": tau,
        "dim": float(means.shape[1]),
        "mean_norm": float(np.linalg.norm(means, 2)),
    }
    numbers |= {
        "frobenius": float(np.linalg.norm(S)),
        "op_norm": float(np.linalg.norm(S, 2)),
    }
    numbers["mean_frobenius"] = float(np.linalg.norm(means.T @ S))
    setting = dataclasses.replace(model, extra={"A": A}).setting(
        f"delta={delta:g}", numbers
    )
    return dataclasses.replace(setting, name=label + setting.name)


def form_shape(
    spread: Callable[[Mapping[str, float]], float],
    size: Callable[[Mapping[str, float]], float],
) -> Callable[[Setting], Bound]:
    """Return kappa^2 max(sqrt(spread tau), size tau), with probability 1 - 4 exp(-tau)."""

    def shape(setting: Setting) -> Bound:
        n, tau = setting.numbers, setting.numbers["tau"]
        value = KAPPA**2 * max(math.sqrt(spread(n) * tau), size(n) * tau)
        return Bound(
            value, 1 - 4 * math.exp(-tau), True, "amini2021, a quadratic form, shape"
        )

    return shape


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
    n, d = SPHERE_POINTS, SPHERE_DIM
    rows, labels = (
        np.random.default_rng(41).standard_normal((n, d)) * (np.arange(d) < dim),
        np.arange(n) % 2,
    )
    lengths = np.array(radii)[labels] / np.linalg.norm(rows, axis=1)
    name = f"spheres of radii {radii[0]:g} and {radii[1]:g}, noise {noise:g}, d={dim}"
    model = trials.distances(name, lengths[:, None] * rows, noise / math.sqrt(dim), dim)
    return dataclasses.replace(model, extra={"labels": labels})


def two_spheres(*dims: int) -> tuple[Setting, ...]:
    """Return pairs of radii in several dimensions."""
    rows = [
        (r, q, d)
        for d in dims
        for r, q in ((1.0, 1.0), (1.0, 5.0), (2.0, 3.0), (5.0, 5.0))
    ]
    return listed("radii {r:g} and {q:g}, d={d}", "r q d", rows, shapes="d")


def sphere_parameters(setting: Setting) -> dict[str, float]:
    """Return the arguments of the bounds for two spheres, with the noise and the bandwidth of Section 3.5."""
    radii = {"radius": setting.numbers["r"], "other_radius": setting.numbers["q"]}
    return {**radii, "noise": NOISE, "lengthscale": TAU, "dim": setting.shapes["d"]}
