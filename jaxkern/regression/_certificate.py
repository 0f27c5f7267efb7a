"""How far a function is from the exact solution of kernel ridge regression: bounds of it, rounding included.

For labels y and weights w let K be the Gram matrix of the points with rows and columns scaled by sqrt(w), and y scaled
likewise. The exact solution is f* = S* a* with (K + lambda) a* = y. Any f = S* a has a residual
rho = y - (K + lambda) a and the error f - f* = -S* (K + lambda)^{-1} rho, so that, for every vector z,

    |f - f*|^2        =  rho' (K + lambda)^{-1} K (K + lambda)^{-1} rho  <=  |rho|^2 / (4 lambda),
    |f - f*|          <= sqrt(z' K z) + |rho - (K + lambda) z| / (2 sqrt(lambda)),
    |f(x) - f*(x)|    <= s(x) r,
    r^2  = rho' K (K + lambda)^{-1} rho / lambda      <= z' K z + |rho - lambda z|^2 / lambda,
    s(x)^2 = K(x, x) - k_x' (K + lambda)^{-1} k_x     <= K(x, x) - 2 q' k_x + q' (K + lambda) q   for every vector q,

and |f - f*| <= r. All right sides are sums that a computer can bound whatever solver has found a, z and q: what
products with K lack to the exact ones is at most what `gram.rounding` and the length of their sums say, and it is
added. Proofs: docs/theory/regression.md.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern._distances import everywhere, safe_sqrt
from jaxkern.gram import _gram, _product, _terms
from jaxkern.kernels import Kernel
from jaxkern.linalg import matmul
from jaxkern.pytrees import pytree

TERMS = {"float32": 32, "float64": None}
"""How many products are summed at once, where the rounding of a long sum is what a bound could not go below."""


@pytree
class System:
    """The system (K + lambda) a = y of rows that are scaled by the roots of their weights.

    Attributes
    ----------
    kernel, points : what K is the Gram matrix of, (n, d).
    roots : (n,), the square roots of the weights.
    labels : (n, t), y, not scaled.
    regularization : scalar, lambda.
    """

    kernel: Kernel
    points: jax.Array
    roots: jax.Array
    labels: jax.Array
    regularization: jax.Array

    def product(self, V: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return K V for V (n, t), and a bound of its error, entry by entry."""
        return self.product_with(self.points, self.roots, V)

    def product_with(
        self, landmarks: jax.Array, roots: jax.Array, V: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return the same of V (m, t) for the columns of K that belong to other points with roots of their own."""
        V, unit = roots[:, None] * V, jnp.finfo(V.dtype).eps
        values = self.roots[:, None] * _product(
            self.kernel, self.points, landmarks, V, terms=TERMS[V.dtype.name]
        )
        error = product_error(self.kernel, self.points, landmarks, V)
        return values, self.roots[:, None] * error + unit * jnp.abs(values)

    def residual(
        self, a: jax.Array, product: jax.Array, error: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return rho = y - K a - lambda a, and a bound of its error, of K a with a bound of its own."""
        shrunk, wanted = self.regularization * a, self.roots[:, None] * self.labels
        rho = wanted - product - shrunk
        unit = jnp.finfo(a.dtype).eps
        return rho, error + 2 * unit * (
            jnp.abs(wanted) + jnp.abs(product) + jnp.abs(shrunk)
        )


def product_error(
    kernel: Kernel, X: jax.Array, Y: jax.Array, V: jax.Array
) -> jax.Array:
    """Return a bound of |K(X, Y) V - what `gram_matmul` returns|, (n, t), by |K(x, y)| <= sqrt(K(x, x) K(y, y))."""
    unit = jnp.finfo(V.dtype).eps / 2
    terms = _terms(X, Y, TERMS[V.dtype.name]) + 8  # and what is rounded here
    entry = entry_error(kernel, X, Y)
    of_rows, of_columns = (
        safe_sqrt(jnp.abs(kernel._diagonal(points))) for points in (X, Y)
    )
    # 0 times an unknown error is none.
    each = jnp.where(
        V == 0, 0, (entry + terms * unit) * of_columns[:, None] * jnp.abs(V)
    )
    return of_rows[:, None] * _up(jnp.sum(each, axis=0), Y.shape[0])[None, :]


def entry_error(kernel: Kernel, X: jax.Array, Y: jax.Array) -> jax.Array:
    """Return the bound of `gram.rounding`, infinite for a user's function, of which it is not known."""
    try:
        return kernel._rounding(X, Y)
    except ValueError:
        return jnp.full((), jnp.inf, X.dtype)


def _up(value: jax.Array, terms: int) -> jax.Array:
    """Return a sum of so many non-negative terms, no smaller than the exact one."""
    return value * (1 + (terms + 16) * float(jnp.finfo(value.dtype).eps))


def length(V: jax.Array) -> jax.Array:
    """Return the norms of the columns, (t,), no smaller than the exact ones."""
    largest = jnp.max(jnp.abs(V), axis=0)
    scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1)
    return _up(
        scale * safe_sqrt(jnp.sum((V / scale[None, :]) ** 2, axis=0)), V.shape[0]
    )


def certificate(
    system: System, rho: jax.Array, error: jax.Array, z: Any = None, product: Any = None
) -> Any:
    """Return bounds of |f - f*| and of r, (t,) each, from the residual and, where it is given, from z and K z.

    `product` is what `System.product` returns for z. All are first divided by a power of two, so that no square of a
    small number is zero: bounds are proportional to them.
    """
    _, exponent = jnp.frexp(jnp.max(jnp.abs(rho), axis=0))
    scale = jnp.ldexp(jnp.ones((), rho.dtype), exponent)
    scale = jnp.where((scale > 0) & jnp.isfinite(scale), scale, 1)
    rho, error = rho / scale[None, :], error / scale[None, :]
    root = jnp.sqrt(system.regularization)
    rest = length(error)
    whole = length(rho)
    distance, radius = whole / (2 * root), whole / root
    if z is not None:
        z, Kz, unknown = (V / scale[None, :] for V in (z, *product))
        unit = float(jnp.finfo(rho.dtype).eps)
        unknown = (
            jnp.where(z == 0, 0, jnp.abs(z) * unknown),
            unknown,
        )  # 0 times an unknown error is none
        terms = jnp.abs(z * Kz) + unknown[0]
        energy = jnp.maximum(jnp.sum(z * Kz, axis=0), 0) + jnp.sum(unknown[0], axis=0)
        energy = _up(energy, z.shape[0]) + (z.shape[0] + 16) * unit * jnp.sum(
            terms, axis=0
        )
        energy = jnp.where(
            jnp.isnan(energy) & jnp.isfinite(whole), jnp.inf, energy
        )  # of what leaves the range
        shrunk = system.regularization * z
        left = rho - shrunk
        left = jnp.abs(left) + 2 * unit * (jnp.abs(rho) + jnp.abs(shrunk))
        other = (
            jnp.abs(rho - Kz - shrunk)
            + unknown[1]
            + 2 * unit * (jnp.abs(rho) + jnp.abs(Kz) + jnp.abs(shrunk))
        )
        # Of the multiples t z the best for r, whose square is t^2 energy + |rho - t lambda z|^2 / lambda.
        along = jnp.sum(rho * z, axis=0) / (
            energy + system.regularization * jnp.sum(z * z, axis=0)
        )
        best = jnp.clip(jnp.nan_to_num(along), 0, 2)
        scaled = jnp.abs(rho - best[None, :] * shrunk)
        scaled = scaled + 3 * unit * (jnp.abs(rho) + best[None, :] * jnp.abs(shrunk))
        for factor, remaining in ((1.0, left), (best, scaled)):
            squared = (
                jnp.where(factor > 0, factor**2 * energy, 0)
                + (length(remaining) / root) ** 2
            )
            radius = jnp.fmin(radius, _up(jnp.sqrt(squared), 8))
        distance = jnp.fmin(distance, jnp.sqrt(energy) + length(other) / (2 * root))
    distance = jnp.minimum(distance, radius)
    return scale * _up(distance + rest / (2 * root), 8), scale * _up(
        radius + rest / root, 8
    )


def narrowed(
    kernel: Kernel,
    landmarks: jax.Array,
    roots: jax.Array,
    factor: jax.Array,
    regularization: jax.Array,
    X: jax.Array,
) -> jax.Array:
    """Return s(x), (q,), no smaller than the exact one, of some rows with the Cholesky factor of their K + lambda."""
    unit = float(jnp.finfo(X.dtype).eps)
    k = _gram(kernel, X, landmarks) * roots[None, :]
    q = jax.scipy.linalg.cho_solve((factor, True), k.T).T
    K = roots[:, None] * _gram(kernel, landmarks) * roots[None, :]
    Kq = matmul(q, K)
    diagonal, own = kernel._diagonal(X), safe_sqrt(kernel._diagonal(landmarks)) * roots
    squared = diagonal - jnp.sum(q * (2 * k - Kq - regularization * q), axis=1)
    entry = jnp.maximum(
        entry_error(kernel, X, landmarks), entry_error(kernel, landmarks, landmarks)
    )
    size = safe_sqrt(diagonal) + jnp.sum(jnp.abs(q) * own[None, :], axis=1)
    squares = size**2 + regularization * jnp.sum(q * q, axis=1)
    squared = squared + _up(
        (entry + (2 * len(roots) + 32) * unit) * squares, len(roots)
    )
    # q = 0 gives K(x, x).
    most = diagonal * (1 + entry_error(kernel, X, X) + 8 * unit)
    return _up(
        safe_sqrt(jnp.minimum(jnp.where(jnp.isnan(squared), jnp.inf, squared), most)), 8
    )


def factor_of(
    kernel: Kernel, landmarks: jax.Array, roots: jax.Array, regularization: jax.Array
) -> jax.Array:
    """Return the lower Cholesky factor of K + lambda of landmarks, or of K + its rounding if lambda is too small."""
    return _factor(weighted_gram(kernel, landmarks, roots), regularization)


def weighted_gram(kernel: Kernel, points: jax.Array, roots: jax.Array) -> jax.Array:
    """Return D K D for D = diag(roots)."""
    return roots[:, None] * _gram(kernel, points) * roots[None, :]


def _factor(K: jax.Array, regularization: jax.Array) -> jax.Array:
    # Nothing is added to lambda unless there is no factor: what rounding may ask for is of the order of 1e-4 for 200
    # rows in float32, and a sum of both would be another regularization.
    eye = jnp.eye(len(K), dtype=K.dtype)
    rounding = 4 * jnp.finfo(K.dtype).eps * jnp.trace(K)
    trial = lax.stop_gradient(K + regularization * eye)
    enough = lax.stop_gradient(regularization >= rounding)
    fine = lax.cond(
        everywhere(enough),
        lambda: jnp.asarray(True),
        lambda: jnp.isfinite(jnp.linalg.cholesky(trial)).all(),
    )
    shift = jnp.where(fine, regularization, regularization + rounding)
    return jnp.linalg.cholesky(K + shift * eye)


def solved(system: System) -> tuple[jax.Array, jax.Array]:
    """Return (K + lambda)^{-1} D y by a factor of the whole matrix, (n, t), and the factor."""
    K = weighted_gram(system.kernel, system.points, system.roots)
    factor = _factor(K, system.regularization)
    labels = system.roots[:, None] * system.labels
    return jax.scipy.linalg.cho_solve((factor, True), labels), factor
