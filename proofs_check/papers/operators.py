"""Operators on the feature space of a population, applied but never formed where the space is large."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax, random

from jaxkern.draws import normal_rows
from jaxkern.linalg import HIGHEST, eigh, matmul, operator_norm

Apply = Callable[[Array], Array]
Population = Mapping[str, Array]
_Pair = tuple[Array, Array]

_DENSE = 64
_LEADING = 160
_STEPS = 10


def shares(key: Array, population: Population, n: Array) -> Array:
    """Return the shares (p,) of the atoms in a sample of n independent draws."""
    weights = population["weights"]
    return random.multinomial(key, n, weights, dtype=weights.dtype) / n


def covariance(population: Population, weights: Array) -> Apply:
    """Return u -> Phi' diag(weights) Phi u: Sigma_n for the shares of a sample."""
    features = population["features"]

    def apply(u: Array) -> Array:
        return matmul(features.T, weights * matmul(features, u))

    return apply


def exact_power(population: Population, exponent: float) -> Apply:
    """Return u -> Sigma^exponent u for the population, whose features make Sigma diagonal."""
    scale = population["eigenvalues"] ** exponent
    return lambda u: scale * u


def cube(apply: Apply) -> Apply:
    """Return the third power of an operator."""
    return lambda u: apply(apply(apply(u)))


def hilbert_schmidt(population: Population, weights: Array) -> Array:
    """Return |Phi' diag(weights) Phi|_HS, whose square is the quadratic form of the squared kernel, exactly."""
    form = jnp.vdot(weights, matmul(population["squares"], weights), precision=HIGHEST)
    return jnp.sqrt(jnp.maximum(form, 0))


def trace_cube(population: Population, weights: Array) -> Array:
    """Return tr C^3 of the covariance C with these weights.

    Beyond 160 dimensions the leading 160 coordinates are used, which can only make it smaller; what they leave out are
    third powers of the small eigenvalues (a test compares the two).
    """
    features = population["features"][:, :_LEADING]
    C = matmul(features.T, weights[:, None] * features)
    return jnp.sum(matmul(C, C) * C)


def sketch(key: Array, population: Population, weights: Array, rows: int) -> Apply:
    """Return u -> V' V u / d for d = `rows` independent rows of V from N(0, C^3), C the covariance with these weights.

    C B' g with B = diag(sqrt(weights)) Phi has covariance C (B' B) C = C^3: no root of an operator is taken, exactly
    as in the matrix product Z K of Kernel JL. V is applied factor by factor, which is cheaper than forming it.
    """
    features = population["features"]
    normal = normal_rows(key, rows, features.shape[0], features.dtype)
    root = jnp.sqrt(weights)
    apply = covariance(population, weights)

    def sketched(u: Array) -> Array:
        image = matmul(normal, root * matmul(features, apply(u)))
        back = root * matmul(normal.T, image)
        return apply(matmul(features.T, back)) / rows

    return sketched


def exact_sketch(key: Array, population: Population, rows: int) -> Apply:
    """Return u -> Theta* Theta u for `rows` independent directions from N(0, Sigma^3) of the population."""
    scale = population["eigenvalues"] ** 1.5
    normal = normal_rows(key, rows, scale.shape[0], scale.dtype)

    def sketched(u: Array) -> Array:
        image = matmul(normal, scale * u)
        return scale * matmul(normal.T, image) / rows

    return sketched


def difference(first: Apply, second: Apply) -> Apply:
    """Return u -> first(u) - second(u)."""
    return lambda u: first(u) - second(u)


def norm(apply: Apply, population: Population, key: Array) -> Array:
    """Return the operator norm of a self-adjoint operator on the feature space; see `norms`."""
    return norms((apply,), population, key)[0]


def norms(applies: Sequence[Apply], population: Population, key: Array) -> Array:
    """Return the operator norms of several self-adjoint operators on the feature space, by one decomposition.

    Up to 64 dimensions the matrices are formed. Beyond, 10 Lanczos steps from a random start are taken; the operators
    here are differences of third powers, whose spectra fall so fast that the value is exact to five digits and more
    (a test compares the two). It never exceeds the norm.

    Two independent decompositions in one program can wait for each other for ever on two cores, where LAPACK brings
    threads of its own. So a trial decomposes once.
    """
    features = population["features"]
    dim = features.shape[1]
    dtype = features.dtype
    if dim <= _DENSE:
        return jax.vmap(operator_norm)(_dense(applies, dim, dtype))
    start = random.normal(key, (dim,), dtype)
    tridiagonals = [_lanczos(apply, start)[0] for apply in applies]
    return jax.vmap(operator_norm)(jnp.stack(tridiagonals))


def powers_applied(applies: Sequence[Apply], power: float, f: Array) -> Array:
    """Return C^power f for several positive semidefinite C, stacked: densely, or from the Krylov spaces of f.

    In a Krylov space the vectors are less exact than the differences between close operators, whose errors cancel.
    """
    dim = f.shape[0]
    if dim <= _DENSE:
        values, vectors = jax.vmap(eigh)(_dense(applies, dim, f.dtype))
        return jax.vmap(lambda w, V: _power_applied(w, V, power, matmul(V.T, f)))(
            values, vectors
        )
    krylov = [_lanczos(apply, f) for apply in applies]
    tridiagonals = jnp.stack([tridiagonal for tridiagonal, _ in krylov])
    bases = jnp.stack([basis for _, basis in krylov])
    values, vectors = jax.vmap(eigh)(tridiagonals)
    images = jax.vmap(
        lambda w, V, basis: matmul(basis.T, _power_applied(w, V, power, V[0]))
    )(values, vectors, bases)
    return jnp.linalg.norm(f) * images


def _power_applied(
    values: Array, vectors: Array, power: float, coordinates: Array
) -> Array:
    return matmul(vectors, jnp.maximum(values, 0) ** power * coordinates)


def _dense(applies: Sequence[Apply], dim: int, dtype: Any) -> Array:
    return jnp.stack([jax.vmap(apply)(jnp.eye(dim, dtype=dtype)) for apply in applies])


def _lanczos(apply: Apply, start: Array) -> _Pair:
    """Return the tridiagonal matrix and the orthonormal basis (steps, r) of the Krylov space, reorthogonalised."""
    dim = start.shape[0]
    dtype = start.dtype
    steps = min(_STEPS, dim)
    tiny = jnp.finfo(dtype).tiny

    def step(carry: _Pair, i: Array) -> tuple[_Pair, Array]:
        basis, q = carry
        basis = basis.at[i].set(q)
        image = apply(q)
        rest = image
        for _ in range(2):
            rest = rest - matmul(basis.T, matmul(basis, rest))
        size = jnp.linalg.norm(rest)
        # A Krylov space that closes early leaves rounding behind, which must not be blown up to a unit vector.
        closed = size <= 100 * jnp.finfo(dtype).eps * jnp.linalg.norm(image) + tiny
        q = jnp.where(closed, 0, rest / jnp.where(closed, 1, size))
        return (basis, q), image

    init = jnp.zeros((steps, dim), dtype), start / jnp.linalg.norm(start)
    (basis, _), images = lax.scan(step, init, jnp.arange(steps))
    projected = matmul(basis, images.T)
    return (projected + projected.T) / 2, basis
