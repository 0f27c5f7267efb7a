"""chen2016, Section 1: the kernel distance, its exact embedding, projections of it, and what is counted."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import features, kernels
from jaxkern.bounds import fourier
from jaxkern.gram import gram
from jaxkern.linalg import eigh
from proofs_check import controls
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting, Tail
from proofs_check.papers import flops
from proofs_check.papers.chen2016 import trials
from proofs_check.papers.chen2016.setup import (
    DELTA,
    all_at_most_one,
    all_distances,
    cloud,
    fewest,
)
from proofs_check.papers.shared import as_residual, bound_of, listed, parametrized, real


def _metric() -> Check:
    @parametrized(Inequality)
    def holds(setting: Setting, power: int) -> list[Any]:
        X = real(setting.data)
        D = all_distances(X) ** power
        i, j, k = (
            a.ravel() for a in np.meshgrid(*[np.arange(len(X))] * 3, indexing="ij")
        )
        distinct = (i < k) & (j != i) & (j != k)
        left, right = D[i, k][distinct], (D[i, j] + D[j, k])[distinct]
        return all_at_most_one(left / right, "triangle inequality")

    line = np.linspace(0, 1, 8)[:, None] @ np.eye(1, 3)
    settings = (
        Setting("a cloud of 10 points", cloud(10)),
        Setting("a small cloud", cloud(10, 0.05)),
        Setting("8 points on a line", line),
    )
    return Check(
        printed=Form(holds(1), settings),
        controls=(
            Control("the squared distance", holds(2), settings, "wrong power"),
            controls.part_of(0.95, holds(1), settings),
        ),
    )


@jax.jit
def _factor(X: jax.Array) -> jax.Array:
    """Return F with F F' = K: the exact embedding of n points into n dimensions."""
    values, vectors = eigh(gram(kernels.Gaussian(1.0), X))
    return vectors * jnp.sqrt(jnp.maximum(values, 0))[None]


def _embedding() -> Check:
    @parametrized(Identity)
    def residual(setting: Setting, dropped: int) -> np.ndarray:
        X = real(setting.data)
        F = np.asarray(_factor(X), float)[:, : len(X) - dropped]
        first, second = np.triu_indices(len(X), 1)
        return as_residual(
            np.linalg.norm(F[first] - F[second], axis=1)
            / all_distances(X)[first, second]
            - 1
        )

    settings = tuple(Setting(f"{n} points", cloud(n)) for n in (3, 8))
    return Check(
        printed=Form(residual(0), settings),
        controls=(Control("one dimension less", residual(1), settings, "n for n - 1"),),
    )


def _johnson_lindenstrauss() -> Check:
    n = 16
    F = _factor(real(cloud(n)))
    first, second = np.triu_indices(n, 1)
    gaps = F[first] - F[second]
    units = gaps / jnp.linalg.norm(gaps, axis=1, keepdims=True)
    settings = []
    for eps in (0.2, 0.4):
        m = fewest(
            functools.partial(fourier.relative_distances, eps=eps, num_points=n), DELTA
        )
        numbers = {"eps": eps, "m": float(m), "n": float(n)}
        settings.append(
            Setting(f"eps={eps:g}, m={m}", {"units": units}, numbers, {"rows": m})
        )
    bound = bound_of(fourier.relative_distances, num_frequencies="m", num_points="n")
    statement = Tail(trials.projection_error, bound)
    half = controls.changed(settings[:1], "half of the dimensions", shapes={"part": 2})
    return Check(
        corrected=Form(statement, tuple(settings)),
        controls=(
            Control("half of the dimensions", statement, half, "wrong factor"),
            controls.part_of(0.77, statement, settings),
        ),
    )


def _cost() -> Check:
    @parametrized(Identity)
    def residual(setting: Setting, per_frequency: int) -> np.ndarray:
        n, d, t = (setting.shapes[name] for name in ("n", "d", "t"))
        dtype, kernel = jnp.result_type(float), kernels.Gaussian(1.0)
        X, w = jax.ShapeDtypeStruct((n, d), dtype), jax.ShapeDtypeStruct((t, d), dtype)

        def lift(X: Any, w: Any) -> Any:
            return features.PairedFourier(kernel, w)(X)

        lifted, whole = (
            flops.multiply_adds(lift, X, w),
            flops.multiply_adds(lambda X: gram(kernel, X), X),
        )
        numbers = math.prod(jax.eval_shape(lift, X, w).shape)
        return np.array(
            [
                lifted / (n * d * t * per_frequency) - 1,
                numbers / (2 * n * t) - 1,
                whole / n**2 / d - 1,
            ]
        )

    settings = listed(
        "n={n}, d={d}, t={t}",
        "n d t",
        ((1000, 10, 50), (20_000, 256, 800)),
        shapes="n d t",
    )
    return Check(
        printed=Form(residual(1), settings),
        controls=(
            Control("two products a frequency", residual(2), settings, "wrong cost"),
        ),
    )
