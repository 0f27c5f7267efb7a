"""What targets share: the registered forms, statements at one place, projections, and norms with a gradient."""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern.linalg import matmul
from proofs_check.claim import Claim, Form, Inequality, Setting
from proofs_check.papers.shared import always

FOUND = "the place found"


@functools.cache
def _claims() -> Mapping[str, Claim]:
    from proofs_check.register import claims

    with jax.enable_x64(True):
        return {claim.id: claim for claim in claims()}


def registered(claim: str, form: str) -> Form:
    """Return a form of a claim as the registry has it, "printed" or "corrected"."""
    registered_form: Form | None = getattr(_claims()[claim], form)
    if registered_form is None:
        raise ValueError(f"{claim} has no form as {form}")
    return registered_form


def registered_at(claim: str, form: str, population: Any, **shapes: int) -> Form:
    """Return a registered statement at one setting."""
    setting = Setting(FOUND, population, shapes=shapes)
    return Form(registered(claim, form).statement, (setting,))


def inequality(left: float, right: float, source: str) -> Form:
    """Return left <= right, two numbers that were computed on the host, as a form to be judged."""
    pair = (float(left), always(right, source))
    return Form(Inequality(lambda: [pair]), (Setting(FOUND),))


def length(x: jax.Array) -> jax.Array:
    """Return the Euclidean norm, with slope 0 at 0."""
    square = jnp.sum(x * x)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)


def between(x: jax.Array, shortest: float, longest: float) -> jax.Array:
    """Return the vector of the same direction whose norm is clipped to [shortest, longest]."""
    size = jnp.maximum(length(x), 1e-12)
    return x * (jnp.clip(size, shortest, longest) / size)


def gaussian(squared: jax.Array) -> jax.Array:
    """Return the Gaussian kernel at a squared distance in lengthscales."""
    return jnp.exp(-squared / 2)


def squared_distances(X: jax.Array, Y: jax.Array) -> jax.Array:
    """Return |x_i - y_j|^2, (n, q)."""
    return jnp.sum((X[:, None, :] - Y[None, :, :]) ** 2, axis=2)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def removed(C: jax.Array, number: int) -> tuple[jax.Array, jax.Array]:
    """Return min(C, delta I) and delta, the eigenvalue of C in place `number` from above: what a shrink takes away.

    For a symmetric C (m, m). The derivative needs no derivative of an eigenvector, so equal eigenvalues, which worst
    cases have, do no harm: the divided differences of the minimum lie in [0, 1].
    """
    values, vectors = jnp.linalg.eigh(C)
    delta = values[-number]
    return matmul(vectors * jnp.minimum(values, delta)[None, :], vectors.T), delta


@removed.defjvp
def _removed_jvp(number: int, primals: Any, tangents: Any) -> Any:
    (C,) = primals
    (tangent,) = tangents
    values, vectors = jnp.linalg.eigh(C)
    delta = values[-number]
    capped = jnp.minimum(values, delta)
    rotated = matmul(matmul(vectors.T, (tangent + tangent.T) / 2), vectors)
    apart = values[:, None] - values[None, :]
    same = apart == 0
    below = (values < delta).astype(values.dtype)
    differences = capped[:, None] - capped[None, :]
    divided = differences / jnp.where(same, 1, apart)
    slope = jnp.where(same, below[:, None] * below[None, :], divided)
    moved = rotated[-number, -number]
    change = slope * rotated + jnp.diag((1 - below) * moved)
    minimum = matmul(vectors * capped[None, :], vectors.T)
    slope_of_minimum = matmul(matmul(vectors, change), vectors.T)
    return (minimum, delta), (slope_of_minimum, moved)
