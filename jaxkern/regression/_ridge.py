"""Kernel ridge regression by landmarks or to a tolerance, with bounds against the exact solution."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import checks
from jaxkern._distances import safe_sqrt
from jaxkern._mesh import mesh_of
from jaxkern._types import Array, ArrayLike, Float, PRNGKeyArray
from jaxkern._weights import mass, present
from jaxkern.gram import _product
from jaxkern.kernels import KernelLike, psd_kernel
from jaxkern.linalg import matmul
from jaxkern.pytrees import pytree
from jaxkern.regression._certificate import (
    TERMS,
    System,
    certificate,
    entry_error,
    factor_of,
    length,
    narrowed,
    product_error,
    solved,
)
from jaxkern.regression._span import (
    _factor,
    _normal_equations,
    _preconditioner,
    _solved,
    _span,
)

STEPS = 5
"""Steps of conjugate gradients between two residuals that are computed anew."""


@pytree
class Ridge:
    """A solution of kernel ridge regression: `f(X)` predicts, `f.bound_at(X)` bounds what it lacks to the exact one.

    The exact solution f* minimises sum_i w_i (f(x_i) - y_i)^2 + regularization |f|_H^2 over the whole RKHS, for the
    kernel, points and labels as they are in their dtype. Shapes are those for y (n,); for y (n, t) there is a trailing
    axis of t, but for `landmarks`, `roots`, `factor` and scalars without one.

    Attributes
    ----------
    kernel : the kernel.
    points : (m, d), with f = sum_j coefficients_j K(., points_j).
    coefficients : (m,).
    landmarks : (l, d) points of the training set that narrow `bound_at`.
    roots : (l,), the square roots of their weights.
    factor : (l, l), the Cholesky factor of their Gram matrix, scaled with the roots, plus the regularization.
    regularization : scalar.
    distance_bound : scalar, or NaN without a certificate: |f - f*|_H is at most this. Infinite, as the next two are,
        where the rounding of the kernel is not known, as that of a user's function.
    radius : scalar, or NaN: |f(x) - f*(x)| <= s(x) radius, s(x)^2 the posterior variance of the landmarks.
    training_bound : scalar, or NaN: |f(x_i) - f*(x_i)| sqrt(w_i) is at most this at every training point.
    num_products : scalar int32, how many products with the n x n Gram matrix were made.
    converged : scalar bool: whether the bounds reached the tolerance; true where there was none.
    """

    kernel: Any
    points: jax.Array
    coefficients: jax.Array
    landmarks: jax.Array
    roots: jax.Array
    factor: jax.Array
    regularization: jax.Array
    distance_bound: jax.Array
    radius: jax.Array
    training_bound: jax.Array
    num_products: jax.Array
    converged: jax.Array

    def __call__(self, X: Float[ArrayLike, "q d"]) -> Float[Array, " q"]:
        """Return f(X), (q,) or (q, t), of points (q, d) in the dtype of the training set; q m kernel evaluations."""
        return _predict(self, self._points(X))

    def bound_at(self, X: Float[ArrayLike, "q d"]) -> Float[Array, " q"]:
        """Return bounds of |f(x) - f*(x)|, (q,) or (q, t), at points (q, d), of f(x) as it is computed.

        Notes
        -----
        q l^2 multiply-adds for l landmarks, and q l kernel evaluations.
        """
        return _bound_at(self, self._points(X))

    def _points(self, X: Any) -> jax.Array:
        X = checks.matrix("X", X, dim=self.points.shape[1])
        return checks.same_dtype("X", X, "the training points", self.points)


def ridge(
    key: PRNGKeyArray,
    kernel: KernelLike,
    X: Float[ArrayLike, "n d"],
    y: Float[ArrayLike, " n"],
    *,
    regularization: float | Float[Array, ""],
    num_landmarks: int,
    landmarks: str = "uniform",
    weights: Float[ArrayLike, " n"] | None = None,
    certified: bool = True,
) -> Ridge:
    """Fit kernel ridge regression over the span of landmarks, and bound how far it is from the exact solution.

    Parameters
    ----------
    key : typed random key, for the landmarks.
    kernel : a positive semidefinite kernel; of a user's function the bounds are infinite.
    X : (n, d) points.
    y : (n,) labels in the dtype of X, or (n, t) for t functions at once, such as one for each class.
    regularization : positive, what scikit-learn's KernelRidge calls alpha: it is added to the diagonal of the n x n
        Gram matrix, whatever n.
    num_landmarks : m, in [1, n].
    landmarks : "uniform", rows drawn without replacement, with weights by weight; or "pivoted_cholesky", each drawn by
        what the ones before it leave (`landmarks.pivoted_cholesky`): better ones where the table has clusters or
        outliers, in O(n m) memory.
    weights : (n,) non-negative weights in the dtype of X: 2 counts as if the row stood there twice, and a row of weight
        0 does not exist, whatever it holds. By default all are 1.
    certified : whether to make the one product with the n x n Gram matrix (in tiles, never held) that the bounds need.

    Returns
    -------
    Ridge. With all rows as landmarks it is the exact solution up to the rounding of a factorization of K +
    regularization, and the bounds are that rounding. With fewer the span is shifted by up to 4 eps(dtype) m, the
    rounding of m landmarks: a regularization of that order, 1e-4 for 200 landmarks in float32, needs float64 or all
    rows. The bounds hold in either case.

    Raises
    ------
    ValueError
        For labels of another length, labels that are not finite (where they are known when it is called), a
        regularization that is not positive.

    Notes
    -----
    Time O(n m^2 + m^3), n m kernel evaluations to fit and n^2 for the certificate; memory O(m^2 + n). The bound is at
    most 1 + |K - Khat|_2 / regularization times the distance, up to rounding, for the Nystrom approximation Khat of the
    landmarks. Sources: williams2001 for the method; the certificate is `docs/theory/regression.md`, Theorem 1.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from jaxkern.kernels import Gaussian
    >>> with jax.enable_x64(True):
    ...     X = jax.random.uniform(jax.random.key(0), (500, 2))
    ...     y = jnp.sin(6 * X[:, 0]) * X[:, 1]
    ...     f = ridge(jax.random.key(1), Gaussian(0.5), X, y, regularization=0.1, num_landmarks=50)
    ...     bool(f.distance_bound < 0.1), f(X[:3]).shape, f.bound_at(X[:3]).shape
    (True, (3,), (3,))
    """
    key, system, flat = _arguments(key, kernel, X, y, regularization, weights)
    count = checks.count(
        "num_landmarks",
        num_landmarks,
        maximum=system.points.shape[0],
        limit="the number of points",
    )
    certified, choice = checks.flag("certified", certified), _choice(landmarks)
    return _flat(
        _ridge(key, system, num_landmarks=count, choice=choice, certified=certified),
        flat,
    )


def ridge_to(
    key: PRNGKeyArray,
    kernel: KernelLike,
    X: Float[ArrayLike, "n d"],
    y: Float[ArrayLike, " n"],
    *,
    regularization: float | Float[Array, ""],
    tolerance: float | Float[Array, ""],
    num_landmarks: int,
    landmarks: str = "uniform",
    max_products: int = 300,
    weights: Float[ArrayLike, " n"] | None = None,
) -> Ridge:
    """Fit kernel ridge regression to a tolerance: until the bounds against the exact solution are below it.

    Preconditioned conjugate gradients on products with the n x n Gram matrix, which is never held; the landmarks make
    the preconditioner, Khat + regularization.

    Parameters
    ----------
    key, kernel, X, y, regularization, landmarks, weights : as for `ridge`.
    tolerance : positive, in units of y: `distance_bound` and `training_bound` are to be at most this, in all columns.
    num_landmarks : m, in [1, n]: of the preconditioner, and of `bound_at`.
    max_products : the most products with the Gram matrix, at least 15. Without convergence the bounds still hold.

    Returns
    -------
    Ridge, with a coefficient for every row; `converged` says whether the tolerance was reached.

    Raises
    ------
    ValueError
        As `ridge`; and for a tolerance that is not positive.

    Notes
    -----
    Time O(n^2 + n m) for each product, and O(n m^2 + m^3); memory O(n m). The bounds cannot go below the rounding of
    the products, in float32 some 1e-5 sqrt(n) times the sum of all coefficients: take float64 for small tolerances.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.uniform(jax.random.key(0), (500, 2))
    >>> y = jnp.sin(6 * X[:, 0]) * X[:, 1]
    >>> f = ridge_to(
    ...     jax.random.key(1), Gaussian(1.0), X, y, regularization=1.0, tolerance=0.02, num_landmarks=40
    ... )
    >>> bool(f.converged), bool(f.training_bound < 0.02)
    (True, True)
    """
    key, system, flat = _arguments(key, kernel, X, y, regularization, weights)
    count = checks.count(
        "num_landmarks",
        num_landmarks,
        maximum=system.points.shape[0],
        limit="the number of points",
    )
    most = checks.count("max_products", max_products, minimum=STEPS + 5)
    tolerance = checks.scalar(
        "tolerance", checks.positive("tolerance", tolerance), system.points.dtype
    )
    choice = _choice(landmarks)
    return _flat(
        _ridge_to(
            key,
            system,
            tolerance,
            num_landmarks=count,
            choice=choice,
            max_products=most,
        ),
        flat,
    )


def _arguments(
    key: Any, kernel: Any, X: Any, y: Any, regularization: Any, weights: Any
) -> tuple[Any, System, bool]:
    key, kernel, X = checks.key(key), psd_kernel(kernel), checks.matrix("X", X)
    weights = checks.weights(weights, "X", X)
    labels = checks.same_dtype("y", checks.floating("y", y), "X", X)
    if labels.ndim not in (1, 2) or labels.shape[0] != X.shape[0] or 0 in labels.shape:
        raise ValueError(
            f"y must have shape ({X.shape[0]},) or ({X.shape[0]}, t) for X {X.shape}, got {labels.shape}"
        )
    flat = labels.ndim == 1
    labels = labels[:, None] if flat else labels
    regularization = checks.scalar(
        "regularization", checks.positive("regularization", regularization), X.dtype
    )
    if weights is None:
        roots = jnp.ones(X.shape[0], X.dtype)
    else:
        X, labels, roots = _weighted(X, labels, weights)
    known = (
        not isinstance(labels, jax.core.Tracer) and labels.is_fully_addressable
    )  # by one process
    if known and not np.isfinite(np.asarray(labels)).all():
        raise ValueError(
            "y must be finite, got a NaN or an infinity; leave these rows out, or give them weight 0"
        )
    return key, System(kernel, X, roots, labels, regularization), flat


@jax.jit
def _weighted(
    X: jax.Array, labels: jax.Array, weights: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    roots = safe_sqrt(weights) + 0 * mass(weights)
    return present(X, weights), jnp.where((weights > 0)[:, None], labels, 0), roots


def _choice(landmarks: Any) -> str:
    if landmarks not in ("uniform", "pivoted_cholesky"):
        raise ValueError(
            f"landmarks must be uniform or pivoted_cholesky, got {landmarks!r}"
        )
    return str(landmarks)


def _flat(found: Ridge, flat: bool) -> Ridge:
    """Return the result of one column without its axis."""
    if not flat:
        return found
    names = ("coefficients", "distance_bound", "radius", "training_bound")
    own = {name: getattr(found, name)[..., 0] for name in names}
    return Ridge(
        **{
            name: own.get(name, getattr(found, name))
            for name in Ridge.__dataclass_fields__
        }
    )


@partial(jax.jit, static_argnames=("num_landmarks", "choice", "certified"))
def _ridge(
    key: jax.Array, system: System, *, num_landmarks: int, choice: str, certified: bool
) -> Ridge:
    if num_landmarks == len(system.roots) and mesh_of(system.points) is None:
        # The span of all rows has no need of its features, whose rounding is that of roots of eigenvalues.
        chosen, landmarks, roots = (
            jnp.arange(num_landmarks),
            system.points,
            system.roots,
        )
        a, factor = solved(system)
        coefficients = roots[:, None] * a
    else:
        span = _span(key, system, num_landmarks, choice)
        _, chosen, landmarks, roots, projection, *_ = span
        ZZ, Zy = _normal_equations(system, span)
        beta = jax.scipy.linalg.cho_solve(
            (_factor(ZZ, span, system.regularization), True), Zy
        )
        coefficients = matmul(projection.T, beta)
        factor = factor_of(system.kernel, landmarks, roots, system.regularization)
        a = jnp.where(
            roots[:, None] > 0,
            coefficients / jnp.where(roots > 0, roots, 1)[:, None],
            0,
        )
    nothing = jnp.full(system.labels.shape[1], jnp.nan, system.labels.dtype)
    distance, radius, training = nothing, nothing, nothing
    if certified:
        # What f is by a: a coefficient, divided and multiplied again, is rounded twice.
        product, error = system.product_with(landmarks, roots, a)
        rows = jnp.zeros_like(system.labels).at[chosen].add(a)
        rho, error = system.residual(rows, product, error)
        z = rho / system.regularization
        distance, radius = certificate(system, rho, error, z, system.product(z))
        training = jnp.minimum(
            length(rho) + length(error), jnp.sqrt(system.regularization) * radius
        )
    return Ridge(
        system.kernel, landmarks, coefficients, landmarks, roots, factor, system.regularization, distance, radius,
        training, jnp.asarray(int(certified), jnp.int32), jnp.asarray(True),
    )  # fmt: skip


@partial(jax.jit, static_argnames=("num_landmarks", "choice", "max_products"))
def _ridge_to(
    key: jax.Array,
    system: System,
    tolerance: jax.Array,
    *,
    num_landmarks: int,
    choice: str,
    max_products: int,
) -> Ridge:
    from jax.scipy.sparse.linalg import (
        cg,
    )  # which loads modules that nothing else needs

    span = _span(key, system, num_landmarks, choice)
    landmarks, roots, regularization = span.points, span.roots, system.regularization
    preconditioned = partial(_solved, regularization, *_preconditioner(system, span))

    def applied(V: jax.Array) -> jax.Array:
        KV = _product(
            system.kernel, system.points, system.points, system.roots[:, None] * V
        )
        return system.roots[:, None] * KV + regularization * V

    def judged(a: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        rho, error = system.residual(a, *system.product(a))
        return rho, error, length(rho) + length(error)

    def open_(state: Any) -> jax.Array:
        *_, size, products, falls = state
        reached = (
            jnp.max(size) * jnp.maximum(1, 1 / (2 * jnp.sqrt(regularization)))
            <= tolerance
        )
        return ~reached & falls & (products + STEPS + 3 <= max_products)

    def step(state: Any) -> Any:
        a, rho, error, size, products, _ = state
        change, _ = cg(applied, rho, tol=0.0, atol=0.0, maxiter=STEPS, M=preconditioned)
        moved = a + change
        new = judged(moved)
        falls = jnp.max(new[2]) < jnp.max(size)  # until it is rounding
        kept = jax.tree.map(
            lambda x, y: jnp.where(falls, x, y), (moved, *new), (a, rho, error, size)
        )
        return (*kept, products + STEPS + 2, falls)

    start = preconditioned(system.roots[:, None] * system.labels)
    state = (start, *judged(start), jnp.asarray(1, jnp.int32), jnp.asarray(True))
    a, rho, error, size, products, _ = lax.while_loop(open_, step, state)
    a = (
        a + 0 * size[None, :]
    )  # where a point is infinite its kernel is 0, and the start is a number
    z = preconditioned(rho)
    distance, radius = certificate(system, rho, error, z, system.product(z))
    training = jnp.minimum(size, jnp.sqrt(regularization) * radius)
    return Ridge(
        system.kernel, system.points, system.roots[:, None] * a, landmarks, roots,
        factor_of(system.kernel, landmarks, roots, regularization), regularization, distance, radius, training,
        products + 1, jnp.max(jnp.maximum(distance, training)) <= tolerance,
    )  # fmt: skip


@jax.jit
def _predict(f: Ridge, X: jax.Array) -> jax.Array:
    return _product(f.kernel, X, f.points, f.coefficients, terms=TERMS[X.dtype.name])


@jax.jit
def _bound_at(f: Ridge, X: jax.Array) -> jax.Array:
    flat = f.coefficients.ndim == 1
    coefficients = f.coefficients[:, None] if flat else f.coefficients
    narrow = narrowed(f.kernel, f.landmarks, f.roots, f.factor, f.regularization, X)
    radius, distance = (
        jnp.atleast_1d(f.radius)[None, :],
        jnp.atleast_1d(f.distance_bound)[None, :],
    )
    entry = entry_error(f.kernel, X, X) + 8 * float(jnp.finfo(X.dtype).eps)
    largest = safe_sqrt(f.kernel._diagonal(X))[:, None] * (1 + entry)
    found = jnp.minimum(narrow[:, None] * radius, largest * distance)
    found = found + product_error(f.kernel, X, f.points, coefficients)
    return found[:, 0] if flat else found
