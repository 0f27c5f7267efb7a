"""Eigen-decompositions of symmetric matrices: sorted, with cut-offs relative to the dtype.

Every decomposition of the package goes through here, so that the order, the cut-off and the gradients are decided once.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern._programs import inlined
from jaxkern._types import Array, Float

HIGHEST = lax.Precision.HIGHEST


def matmul(A: Float[Array, "... n m"], B: Float[Array, "m ..."]) -> Float[Array, ...]:
    """Return A @ B in the full precision of the dtype on every platform."""
    return jnp.matmul(A, B, precision=HIGHEST)


@inlined
def eigh(A: Float[Array, "n n"]) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
    """Return the eigenvalues (n,) of a symmetric A in descending order and the eigenvectors as columns (n, n)."""
    vectors, values = lax.linalg.eigh(
        _all_or_none(A), **_by_qr("implementation", lax.linalg.EighImplementation.QR)
    )
    return values[::-1], vectors[:, ::-1]


def eigvalsh(A: Float[Array, "n n"]) -> Float[Array, " n"]:
    """Return the eigenvalues (n,) of a symmetric A in descending order."""
    return eigh(A)[0]


def svd(A: Float[Array, "n m"], **options: Any) -> Any:
    """Return what `lax.linalg.svd` returns for these options, in the precision of the dtype on every platform."""
    return lax.linalg.svd(
        A, **options, **_by_qr("algorithm", lax.linalg.SvdAlgorithm.QR)
    )


def _by_qr(option: str, way: Any) -> dict[str, Any]:
    """Return the option by which a GPU decomposes by QR steps.

    What JAX takes there for matrices up to 32 (`eigh`) and 1,024 (`svd`) rows are Jacobi rotations, which stop early:
    on an H200 a float32 norm had 40 roundings of 12 rows and 740 of 400, by QR steps at most 7.
    """
    return {option: way} if jax.default_backend() == "gpu" else {}


def _all_or_none(A: jax.Array) -> jax.Array:
    """Return A, or NaN alone where an entry is not finite: in a row of zeros it would not spread to the others."""
    return A + lax.stop_gradient(0 * jnp.max(jnp.abs(A)))


def scale_of(A: jax.Array) -> jax.Array:
    """Return a power of four near the largest entry of A in absolute value; 1 if that is zero or not finite.

    It has no derivative. A divided by it has the same digits, and squares and roots of its entries and of its
    eigenvalues stay in the range of the dtype.
    """
    largest = jnp.max(jnp.abs(lax.stop_gradient(A)))
    info = jnp.finfo(A.dtype)
    limits = 2 * float(info.tiny) ** 0.5, float(info.max) ** 0.5 / 4
    root = lax.reduce_precision(jnp.clip(jnp.sqrt(largest), *limits), info.nexp, 0)
    return jnp.where((largest > 0) & jnp.isfinite(largest), root * root, 1)


def power_of(scale: jax.Array, power: float) -> jax.Array:
    """Return scale^power of what `scale_of` returns, without rounding if twice the power is whole."""
    return jnp.sqrt(scale) ** (2 * power)


def norm(A: jax.Array) -> jax.Array:
    """Return the Frobenius norm of A, also if the squares of its entries leave the range of the dtype."""
    scale = scale_of(A)
    return scale * jnp.linalg.norm(A / scale)


def cutoff(values: jax.Array, size: jax.Array | None = None) -> jax.Array:
    """Return the size below which an eigenvalue is rounding: eps(dtype) * n * the largest in absolute value.

    Where rows of the matrix are zero as they do not exist, `size`, a scalar of the dtype, is the number of the others.
    """
    return (
        jnp.finfo(values.dtype).eps
        * (values.shape[0] if size is None else size)
        * jnp.max(jnp.abs(values))
    )


@inlined
def psd_eigvalsh(
    A: Float[Array, "n n"], size: jax.Array | None = None
) -> Float[Array, " n"]:
    """Return the eigenvalues of a positive semidefinite A, descending, with rounding below the cut-off set to zero."""
    values = eigvalsh(A)
    return jnp.where(values <= cutoff(values, size), 0, values)  # NaN is no rounding


def psd_power(
    A: Float[Array, "n n"], power: float, size: jax.Array | None = None
) -> Float[Array, "n n"]:
    """Return A^power for a positive semidefinite A; a negative power is that of the pseudo-inverse.

    Whole powers up to 4 are matrix products, which need no decomposition. Every power has the right derivative where
    eigenvalues are equal, too.
    """
    whole = round(power)
    if power == whole and 0 <= whole <= 4:
        result = jnp.eye(A.shape[0], dtype=A.dtype)
        for _ in range(whole):
            result = matmul(result, A)
        return result
    scale = scale_of(A)
    return power_of(scale, power) * _eigen_power(A / scale, float(power), size)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _eigen_power(A: jax.Array, power: float, size: jax.Array | None) -> jax.Array:
    values, vectors = eigh(A)
    kept = values > cutoff(values, size)
    powers = jnp.where(kept, jnp.where(kept, values, 1) ** power, 0)
    return matmul(vectors * powers[None, :], vectors.T)


@_eigen_power.defjvp
def _eigen_power_jvp(power: float, primals: Any, tangents: Any) -> Any:
    """Daleckii-Krein: the derivative is V (D o V' dA V) V' with divided differences D of the function.

    The derivatives of single eigenvectors, which do not exist where eigenvalues are equal, never enter.
    """
    (A, size), (tangent, _) = primals, tangents
    values, vectors = eigh(A)
    kept = values > cutoff(values, size)
    values = jnp.where(kept, values, 0)
    # Descending order: in row i and column j the larger value is that of the smaller index.
    order = jnp.arange(values.shape[0])
    large = values[jnp.minimum(order[:, None], order[None, :])]
    small = values[jnp.maximum(order[:, None], order[None, :])]
    base = jnp.where(large > 0, large, 1)
    apart = jnp.where((small > 0) & (small < large), (small - base) / base, -0.5)
    difference = jnp.expm1(power * jnp.log1p(apart)) / apart
    slope = jnp.where(
        small == 0, 1, jnp.where(small < large, difference, power)
    ) * base ** (power - 1)
    slope = jnp.where(large > 0, slope, 0)
    rotated = matmul(matmul(vectors.T, (tangent + tangent.T) / 2), vectors)
    powers = jnp.where(kept, jnp.where(kept, values, 1) ** power, 0)
    return (
        matmul(vectors * powers[None, :], vectors.T),
        matmul(matmul(vectors, slope * rotated), vectors.T),
    )


def trace_power(A: Float[Array, "n n"], power: int) -> Float[Array, ""]:
    """Return tr A^power of a symmetric A for a whole power >= 1, by products only."""
    if power == 1:
        return jnp.trace(A)
    half = A
    for _ in range(power // 2 - 1):
        half = matmul(half, A)
    other = half if power % 2 == 0 else matmul(half, A)
    return jnp.sum(half * other)


@jax.jit
def operator_norm(A: Float[Array, "n n"]) -> Float[Array, ""]:
    """Return the largest absolute eigenvalue of a symmetric A."""
    values = eigvalsh(A)
    return jnp.maximum(jnp.abs(values[0]), jnp.abs(values[-1]))
