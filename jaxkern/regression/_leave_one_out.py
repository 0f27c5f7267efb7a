"""Leave-one-out residuals of kernel ridge regression in closed form, for one regularization or for a path.

With rows scaled by the roots of their weights the fitted values are H y, where H = K (K + lambda)^{-1}, or
H = Z (Z'Z + lambda)^{-1} Z' of features Z. Once a weight w falls by v, the residual is (y - H y)_i / (1 - v H_ii / w).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import checks
from jaxkern._programs import _is_traced
from jaxkern._types import Array, ArrayLike, Float
from jaxkern.gram import _gram, _product
from jaxkern.kernels import KernelLike
from jaxkern.linalg import eigh, matmul
from jaxkern.regression._certificate import System
from jaxkern.regression._ridge import _arguments
from jaxkern.regression._span import _projection


def leave_one_out(
    kernel: KernelLike,
    X: Float[ArrayLike, "n d"],
    y: Float[ArrayLike, " n"],
    *,
    regularization: float | Float[ArrayLike, " r"],
    landmarks: Float[ArrayLike, "m d"] | None = None,
    weights: Float[ArrayLike, " n"] | None = None,
) -> Float[Array, " n"]:
    """Return y_i - f_i(x_i) for the kernel ridge regression f_i of all rows but row i, without a single refit.

    Parameters
    ----------
    kernel, X, y : as for `ridge`.
    regularization : positive, as for `ridge`; or (r,) of a path, which one eigendecomposition serves.
    landmarks : (m, d) points in the dtype of X, such as `ridge(...).landmarks`, for solutions in their span. They stay:
        where row i is one, its label is left out, and its point is not. By default the solutions are exact.
    weights : (n,) as for `ridge`. Of a weight above 1 one copy of the row is left out, of others the whole row. Where
        the weight is 0 the residual is 0.

    Returns
    -------
    (n,) or (n, t) like y, of a path (r, n) or (r, n, t). Derivatives are right also where eigenvalues coincide, but not
    in a weight of 1. NaN where one regularization is lost in the rounding of K; a path takes eigenvalues below 0 for 0.

    Notes
    -----
    Time O(n^3) and memory O(n^2), or O(n m^2 + m^3) and O(n m); derivatives take this for each regularization. The best
    of a path has the least mean square; for lengthscales see `docs/prediction.md`. Source: rasmussen2006, (5.12).
    """
    single = np.ndim(regularization) == 0
    _, system, flat = _arguments(
        jax.random.key(0), kernel, X, y, regularization if single else 1.0, weights
    )
    shifts = system.regularization[None]
    if not single:
        for one in (
            regularization
            if isinstance(regularization, list | tuple | np.ndarray)
            else ()
        ):
            checks.positive("regularization", one)
        shifts = checks.vector("regularization", regularization).astype(
            system.points.dtype
        )
    if landmarks is not None:
        landmarks = checks.matrix("landmarks", landmarks, dim=system.points.shape[1])
        checks.same_dtype("landmarks", landmarks, "X", system.points)
        if landmarks.shape == system.points.shape and not any(
            map(_is_traced, (landmarks, X))
        ):
            # The span of all rows is exact without features, whose rounding is that of roots of eigenvalues.
            same = np.array_equal(landmarks, checks.matrix("X", X))
            landmarks = None if same else landmarks
    found = _residuals(system, shifts, landmarks, single=single)
    return found[
        (0 if single else slice(None), slice(None), 0 if flat else slice(None))
    ]


@partial(jax.jit, static_argnames="single")
def _residuals(
    system: System, shifts: jax.Array, landmarks: Any, *, single: bool
) -> jax.Array:
    """Return (r, n, t)."""
    kernel, X, roots, resolved = (
        system.kernel,
        system.points,
        system.roots,
        _of_one if single else _of_path,
    )
    shifts, wanted = (
        jnp.where(shifts > 0, shifts, jnp.nan),
        roots[:, None] * system.labels,
    )
    if landmarks is None:
        K = roots[:, None] * _gram(kernel, X) * roots[None, :]
        solved, forms = resolved(K, jnp.eye(X.shape[0], dtype=X.dtype), wanted, shifts)
        left, rest = (
            shifts[:, None, None] * solved,
            shifts[:, None] * forms,
        )  # y - H y and 1 - H_ii
    else:
        head = System(kernel, X, roots, system.labels, jnp.min(shifts))
        projection = _projection(head, landmarks, jnp.ones_like(landmarks[:, 0]))
        Z = roots[:, None] * _product(kernel, X, landmarks, projection.T)
        solved, forms = resolved(matmul(Z.T, Z), Z, matmul(Z.T, wanted), shifts)
        left, rest = wanted[None] - matmul(Z, solved), 1 - forms
    inverse = jnp.where(roots == 0, 0, 1 / jnp.where(roots == 0, 1, roots))
    share = jnp.where(roots > 1, inverse**2, 1)[None, :]
    return inverse[None, :, None] * left / ((1 - share) + share * rest)[:, :, None]


def _of_one(
    A: jax.Array, B: jax.Array, Y: jax.Array, shifts: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return what `_of_path` does, for one shift."""
    L = jnp.linalg.cholesky(A + shifts[0] * jnp.eye(A.shape[0], dtype=A.dtype))
    half = jax.scipy.linalg.solve_triangular(L, B.T, lower=True)
    return jax.scipy.linalg.cho_solve((L, True), Y)[None], jnp.sum(half * half, axis=0)[
        None
    ]


@jax.custom_jvp
def _of_path(
    A: jax.Array, B: jax.Array, Y: jax.Array, shifts: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return G Y, (r, m, t), and b' G b of the rows b of B, (r, n), for G = (A + shift)^{-1} and A (m, m) PSD."""
    solved, forms, *_ = _resolved(*eigh(A), B, Y, shifts)
    return solved, forms


def _resolved(
    values: Any, vectors: Any, B: jax.Array, Y: jax.Array, shifts: jax.Array
) -> tuple[jax.Array, ...]:
    inverse, turned = (
        1 / (jnp.maximum(values, 0)[None, :] + shifts[:, None]),
        matmul(B, vectors),
    )
    solved = matmul(vectors, inverse[:, :, None] * matmul(vectors.T, Y)[None])
    return solved, matmul(inverse, (turned * turned).T), inverse, turned


@_of_path.defjvp
def _of_path_jvp(primals: Any, tangents: Any) -> Any:
    """dG = -G (dA + dshift) G, in the eigenvectors: none of their derivatives enters."""
    (A, B, Y, shifts), (dA, dB, dY, dshifts) = primals, tangents
    values, vectors = eigh(A)
    solved, forms, inverse, turned = _resolved(values, vectors, B, Y, shifts)
    moved, slid = (
        matmul(matmul(vectors.T, (dA + dA.T) / 2), vectors),
        matmul(dB, vectors),
    )

    @partial(jax.checkpoint, prevent_cse=False)
    def one(inputs: Any) -> tuple[jax.Array, jax.Array]:
        inverse, solved, dshift = inputs
        W = turned * inverse[None, :]
        change = matmul(vectors.T, dY - dshift * solved) - matmul(
            moved, matmul(vectors.T, solved)
        )
        return matmul(vectors, inverse[:, None] * change), jnp.sum(
            W * (2 * slid - matmul(W, moved) - dshift * W), 1
        )

    return (solved, forms), lax.map(one, (inverse, solved, dshifts))
