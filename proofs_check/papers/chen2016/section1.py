"""chen2016, Section 1: the kernel distance, its exact embedding, projections of it, and what is counted."""

from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy import ndarray
from numpy.linalg import norm

from jaxkern import features
from jaxkern.bounds import fourier
from jaxkern.gram import gram
from jaxkern.linalg import eigh
from proofs_check.claim import Check, Identity, Inequality, Setting
from proofs_check.controls import changed, part_of
from proofs_check.papers import flops
from proofs_check.papers.chen2016.setup import (
    DELTA,
    Sides,
    all_at_most_one,
    all_distances,
    cloud,
    differences_of,
    fewest,
    sized,
    tail,
)
from proofs_check.papers.chen2016.trials import GAUSSIAN, projection_error
from proofs_check.papers.shared import Grids, as_residual, check_of, real, wrong


def _triangles(data: ndarray, power: int = 1) -> Sides:
    X = real(data)
    D = all_distances(X) ** power
    points = np.arange(len(X))
    i, j, k = (a.ravel() for a in np.meshgrid(points, points, points, indexing="ij"))
    distinct = (i < k) & (j != i) & (j != k)
    ratios = D[i, k][distinct] / (D[i, j] + D[j, k])[distinct]
    return all_at_most_one(ratios, "triangle inequality")


def sec1_metric() -> Check:
    settings = (
        Setting("a cloud of 10 points", cloud(10)),
        Setting("a small cloud", cloud(10, 0.05)),
        Setting("8 points on a line", np.linspace(0, 1, 8)[:, None] @ np.eye(1, 3)),
    )
    return check_of(
        Inequality,
        settings,
        wrong("the squared distance", "wrong power", power=2),
        part_of(0.95, Inequality(_triangles), settings),
        printed=_triangles,
    )


@jax.jit
def _factor(X: Array) -> Array:
    """Return F with F F' = K: the exact embedding of n points into n dimensions."""
    values, vectors = eigh(gram(GAUSSIAN, X))
    return vectors * jnp.sqrt(jnp.maximum(values, 0))[None]


def _embedded_distances(data: ndarray, dropped: int = 0) -> ndarray:
    X = real(data)
    n = len(X)
    F = np.asarray(_factor(X), float)[:, : n - dropped]
    images = norm(differences_of(F), axis=1)
    return as_residual(images / all_distances(X)[np.triu_indices(n, 1)] - 1)


def sec1_embedding() -> Check:
    settings = [Setting(f"{n} points", cloud(n)) for n in (3, 8)]
    return check_of(
        Identity,
        settings,
        wrong("one dimension less", "n for n - 1", dropped=1),
        printed=_embedded_distances,
    )


def sec1_jl() -> Check:
    n = 16
    F = _factor(real(cloud(n)))
    first, second = np.triu_indices(n, 1)
    gaps = F[first] - F[second]
    data = {"units": gaps / jnp.linalg.norm(gaps, axis=1, keepdims=True)}
    bound = fourier.relative_distances
    settings = []
    for eps in (0.2, 0.4):
        m = fewest(bound, DELTA, eps=eps, num_points=n)
        settings.append(sized(f"eps={eps:g}, m={m}", data, m, eps=eps, num_points=n))
    name = "half of the dimensions"
    half = changed(settings[:1], name, shapes={"part": 2})
    statement = tail(projection_error)
    return check_of(
        statement,
        settings,
        wrong(name, "wrong factor", settings=half),
        part_of(0.77, statement(bound), settings),
        corrected=bound,
    )


def _lift(X: Any, w: Any) -> Any:
    return features.PairedFourier(GAUSSIAN, w)(X)


def _costs(n: int, d: int, t: int, per_frequency: int = 1) -> ndarray:
    """Return the errors of the counts: of products and numbers of the features, and of products of a Gram matrix."""
    dtype = jnp.result_type(float)
    X = jax.ShapeDtypeStruct((n, d), dtype)
    w = jax.ShapeDtypeStruct((t, d), dtype)
    products = flops.multiply_adds(_lift, X, w)
    of_gram = flops.multiply_adds(partial(gram, GAUSSIAN), X)
    numbers = prod(jax.eval_shape(_lift, X, w).shape)
    claimed = np.array([n * d * t * per_frequency, 2 * n * t, n**2 * d])
    return np.array([products, numbers, of_gram]) / claimed - 1


def sec1_cost(grids: Grids) -> Check:
    return check_of(
        Identity,
        grids["printed"],
        wrong("two products a frequency", "wrong cost", per_frequency=2),
        printed=_costs,
    )
