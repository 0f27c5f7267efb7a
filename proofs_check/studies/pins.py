"""Numbers that do not move: right-hand sides at a few arguments, and a few drawn numbers.

`pins.json` holds them. A right-hand side that is `transcribed` was computed with 40 digits from another transcription
of its formula, one that is `recorded` by the formula itself; what is drawn is recorded, by version of JAX.
"""

import importlib
import json
import math
from importlib import resources
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxkern as jk
from jaxkern.bounds import Bound
from proofs_check.studies.mutants import Mutant

PINS: dict[str, Any] = json.loads(
    resources.files("proofs_check.studies")
    .joinpath("pins.json")
    .read_text(encoding="utf-8")
)
TOLERANCE = 1e-12
SPECTRAL = ("Gaussian", "Laplacian", "Matern32", "Matern52", "Cauchy", "Exponential")


def wrong_formulas(begin: str = "") -> list[str]:
    """Return the bounds, of those whose names begin so, that are not what is pinned, relative to 1e-12."""
    return [
        pin["bound"]
        for pin in PINS["bounds"]
        if pin["bound"].startswith(begin) and not _holds(pin)
    ]


def _holds(pin: dict[str, Any]) -> bool:
    """Tell whether a bound is what is pinned, its log failure as far as a probability tells it."""
    (value, logs), pinned = (
        numbers_of(pin),
        -math.inf if pin["log_failure"] is None else pin["log_failure"],
    )
    rounding = 0 if math.isinf(pinned) else 1e-15 * math.exp(-pinned)
    same = math.isclose(value, pin["value"], rel_tol=TOLERANCE)
    return same and math.isclose(logs, pinned, rel_tol=TOLERANCE, abs_tol=rounding)


def numbers_of(pin: dict[str, Any]) -> tuple[float, float]:
    """Return the value and the log of the failure probability that a bound has at the arguments of a pin."""
    topic, _, name = pin["bound"].partition(".")
    bound: Bound = getattr(importlib.import_module(f"jaxkern.bounds.{topic}"), name)(
        **pin["arguments"]
    )
    return bound.value, bound.log_failure


def wrong_draws() -> list[str] | None:
    """Return what is not drawn as it was recorded, to 1e-9; None for a version of JAX of which there is no record."""
    pinned = PINS["drawn"].get(jax.__version__)
    if pinned is None:
        return None
    return [
        name
        for name, few in drawn().items()
        if not np.allclose(few, pinned[name], rtol=1e-9, atol=1e-9)
    ]


def drawn() -> dict[str, list[float]]:
    """Return a few numbers, by name, of what draws, is fitted or evaluated, at one key in float64."""
    key, gaussian, distance = (
        jax.random.key(21),
        jk.kernels.Gaussian(1.3),
        jk.kernels.Distance(),
    )
    X, levels, labels = (
        jax.random.normal(key, (12, 3)),
        jnp.array([0.1, 0.2, 0.3]),
        jnp.arange(12) % 2,
    )
    spectral = [getattr(jk.kernels, name)(0.9) for name in SPECTRAL]
    sigma, f = jk.rkhs.Covariance(gaussian, X), jk.rkhs.Function(gaussian, X, X[:, 0])
    noise = (
        jk.measures.IsotropicNoise(0.4),
        jk.measures.RadialNoise(0.4),
        jk.measures.DiagonalNoise(levels),
    )
    noise += (jk.measures.GeneralNoise(jnp.diag(levels) + 0.05),)
    phi = jk.features.orthogonal_fourier(key, gaussian, 3, num_frequencies=7)
    stream = jk.frequent_directions.update(
        jk.frequent_directions.init(2, 3, X.dtype), X
    )
    found: dict[str, Any] = {
        "kernel_jl": [
            jk.features.kernel_jl(key, gaussian, X, num_features=4, centered=c)(X)
            for c in (False, True)
        ],
        "kernel_pca": jk.features.kernel_pca(gaussian, X, num_components=2),
        "paired_fourier": [
            jk.features.paired_fourier(key, k, 3, num_frequencies=90)(X)
            for k in spectral
        ],
        "shifted_fourier": jk.features.shifted_fourier(
            key, gaussian, 3, num_frequencies=7
        )(X),
        "orthogonal_fourier": phi(X),
        "random_feature_pca": jk.features.random_feature_pca(phi, X, num_components=2)(
            X
        ),
        "fastfood": jk.features.fastfood(key, gaussian, 3, num_frequencies=7)(X),
        "nystrom": jk.features.nystrom(gaussian, X[:5])(X),
        "uniform": jk.landmarks.uniform(
            key, jnp.arange(800.0)[:, None], num_landmarks=400
        ),
        "frequent_directions": jk.frequent_directions.finalize(stream),
        "covariance": (
            sigma.inner(f, f),
            sigma.effective_rank(),
            jk.rkhs.draw_gaussian(key, sigma, power=3).weights,
        ),
        "sampling operator": jk.rkhs.SamplingOperator(gaussian, X)
        .adjoint(X[:, 0])
        .weights,
        "multinomial": jax.random.multinomial(
            key, jnp.array(1e4), levels / levels.sum(), dtype=levels.dtype
        ),
        "mean_kernel": [
            jk.measures.mean_kernel(k, X, model)
            for k in (gaussian, distance)
            for model in noise
        ],
        "gram": [
            jk.gram.gram(k, X) for k in (*spectral, jk.kernels.Linear(), distance)
        ],
        "noise": jk.problems.perturb(key, X, noise[2]).points,
        "kernel_distance": jk.gram.kernel_distance(gaussian, X[:6], X[6:]),
        "constants": (
            jk.measures.sphere_mgf(levels, 5),
            jnp.array(jk.kernels.lipschitz(gaussian)),
        ),
        "kmeans": jk.kmeans.kmeans(
            key, jnp.concatenate([X, X + 9] * 9), num_clusters=2
        ).labels,
        "misclassification": jk.metrics.misclassification_rate(
            labels, 1 - labels.at[0].set(1), num_labels=2
        ),
        "plan": jk.plan.streaming(0.3, 0.01).num_frequencies,
    }
    return {name: _few(tree) for name, tree in found.items()}


def _few(tree: Any) -> list[float]:
    """Return moments of the numbers in a tree, which a change of one of them moves."""
    flat = np.concatenate(
        [np.ravel(np.asarray(leaf, np.float64)) for leaf in jax.tree.leaves(tree)]
    )
    return [float(flat @ flat), float(flat @ np.cos(np.arange(flat.size)))]


def wrong(mutant: Mutant) -> bool | None:
    """Tell whether a pin catches a mutant that is planted; None where there are no pins for this version of JAX."""
    if mutant.is_bound:
        return bool(wrong_formulas())
    draws = wrong_draws()
    return None if draws is None else bool(draws)
