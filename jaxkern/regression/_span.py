"""The span of landmarks: which they are, its features, and systems with their product Z Z' + lambda."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern._blocks import sum_by_blocks
from jaxkern._weights import order
from jaxkern.gram import _gram, _product
from jaxkern.landmarks._choices import _uniform_indices
from jaxkern.landmarks._pivoted import _pivots
from jaxkern.linalg import matmul
from jaxkern.regression._certificate import System

SHIFT = 1e-5
"""What is added to the landmarks' Gram matrix stands for this share of the regularization."""
BLOCK = 4096
"""Rows whose features are held at once."""


class _Span(NamedTuple):
    """Landmarks, and features Z of their span for all rows, with Khat = Z Z' up to what matters less than lambda.

    `roots`, (l,), are those of the landmarks, 0 after the last one that exists; `projection`, (l, l), is P with
    Z = K(., landmarks) P', and `inner` P K P' of the landmarks. `features` is Z of the rows `at`, not scaled, and None
    where it is to be computed.
    """

    at: jax.Array
    chosen: jax.Array
    points: jax.Array
    roots: jax.Array
    projection: jax.Array
    inner: jax.Array
    features: jax.Array | None


def _span(key: jax.Array, system: System, num_landmarks: int, choice: str) -> _Span:
    """Return landmarks drawn by weight: uniformly, or by what the ones before them leave."""
    weights, eye = system.roots**2, jnp.eye(num_landmarks, dtype=system.roots.dtype)
    at = order(weights)
    if choice == "uniform":
        count = jnp.sum(weights > 0, dtype=jnp.int32)
        chosen = at[_uniform_indices(key, count, num_landmarks, weights[at])]
        roots = jnp.where(
            lax.iota(jnp.int32, num_landmarks) < count, system.roots[chosen], 0
        )
        points = system.points[chosen]
        return _Span(
            at, chosen, points, roots, _projection(system, points, roots), eye, None
        )
    kernel, X = system.kernel, system.points[at]
    pivots, factor, residual = _pivots(
        key, kernel, X, lax.stop_gradient(weights[at]), num_landmarks=num_landmarks
    )
    L, points = factor[pivots], X[pivots]
    fine = jnp.diag(L) > 0  # nothing but rounding is left where it is not
    L = jnp.where(fine[:, None] & fine[None, :], L, eye)
    projection = jax.scipy.linalg.solve_triangular(L, eye, lower=True)
    projection = jnp.where(fine[:, None], projection, 0) + 0 * jnp.sum(residual)
    Z, inner = _moving(kernel, X, points, projection, factor)
    chosen = at[pivots]
    return _Span(
        at,
        chosen,
        points,
        jnp.where(fine, system.roots[chosen], 0),
        projection,
        inner,
        Z,
    )


@jax.custom_jvp
def _moving(
    kernel: Any,  # noqa: ARG001 (derivatives)
    X: jax.Array,  # noqa: ARG001
    landmarks: jax.Array,  # noqa: ARG001
    P: jax.Array,
    Z: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Return Z, which is K(X, landmarks) P', and the identity, which is P K P', with derivatives of these but in P."""
    return Z, jnp.eye(len(P), dtype=P.dtype)


@_moving.defjvp
def _moving_jvp(primals: Any, tangents: Any) -> Any:
    P = primals[3]

    def known(
        kernel: Any, X: jax.Array, landmarks: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        return _product(kernel, X, landmarks, P.T), matmul(
            P, _product(kernel, landmarks, landmarks, P.T)
        )

    return _moving(*primals), jax.jvp(known, primals[:3], tangents[:3])[1]


def _projection(system: System, landmarks: jax.Array, roots: jax.Array) -> jax.Array:
    """Return P with Khat = Z Z' for Z = K(., landmarks) P', up to what matters less than the regularization.

    An eigenvalue mu of the landmarks' Gram matrix stands for about mu n / m of the whole one.
    """
    exist = (roots > 0).astype(roots.dtype)
    K = exist[:, None] * _gram(system.kernel, landmarks) * exist[None, :]
    least = (
        SHIFT
        * system.regularization
        * jnp.sum(exist)
        / jnp.maximum(jnp.sum(system.roots**2), 1)
    )
    shift = jnp.maximum(least, 4 * jnp.finfo(K.dtype).eps * jnp.trace(K))
    eye = jnp.eye(len(roots), dtype=K.dtype)
    return (
        jax.scipy.linalg.solve_triangular(
            jnp.linalg.cholesky(K + shift * eye), eye, lower=True
        )
        * exist[None, :]
    )


def _normal_equations(system: System, span: _Span) -> tuple[jax.Array, jax.Array]:
    """Return Z' Z and Z' y of the features of all rows, block by block."""
    if span.features is not None:
        scaled = system.roots[span.at][:, None]
        Z = scaled * span.features
        return _own_product(Z), matmul(Z.T, scaled * system.labels[span.at])

    def term(
        phi: Any, points: jax.Array, roots: jax.Array, labels: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        kernel, landmarks, projection = phi
        Z = roots[:, None] * _product(kernel, points, landmarks, projection.T)
        return _own_product(Z), matmul(Z.T, roots[:, None] * labels)

    phi = system.kernel, span.points, span.projection
    return sum_by_blocks(
        term, phi, system.points, system.roots, system.labels, block_size=BLOCK
    )


def _own_product(Z: jax.Array) -> jax.Array:
    """Return Z' Z, which is symmetric: little more than half of it is computed where it is large."""
    width = Z.shape[1]
    if width < 256:
        return matmul(Z.T, Z)
    upper = [
        matmul(Z[:, i : i + -(-width // 4)].T, Z[:, i:])
        for i in range(0, width, -(-width // 4))
    ]
    found = jnp.concatenate(
        [jnp.pad(part, ((0, 0), (width - part.shape[1], 0))) for part in upper]
    )
    above = jnp.triu(found)
    return above + jnp.triu(found, 1).T


def _factor(ZZ: jax.Array, span: _Span, regularization: jax.Array) -> jax.Array:
    """Return the lower Cholesky factor of Z' Z + lambda, or of Z' Z + its rounding if lambda is less."""
    rounding = jnp.finfo(ZZ.dtype).eps * jnp.trace(ZZ)
    missing = jnp.maximum(rounding - regularization, 0)
    return jnp.linalg.cholesky(
        ZZ + regularization * span.inner + missing * jnp.eye(len(ZZ), dtype=ZZ.dtype)
    )


def _preconditioner(system: System, span: _Span) -> tuple[jax.Array, jax.Array]:
    """Return Z, (n, l), with Khat = Z Z', and the lower Cholesky factor of Z' Z + lambda."""
    if span.features is None:
        Z = _product(system.kernel, system.points, span.points, span.projection.T)
    else:
        Z = jnp.zeros_like(span.features).at[span.at].set(span.features)
    Z = system.roots[:, None] * Z
    return Z, _factor(_own_product(Z), span, system.regularization)


def _solved(
    regularization: jax.Array, Z: jax.Array, factor: jax.Array, V: jax.Array
) -> jax.Array:
    """Return (Z Z' + lambda)^{-1} V."""
    return (
        V - matmul(Z, jax.scipy.linalg.cho_solve((factor, True), matmul(Z.T, V)))
    ) / regularization
