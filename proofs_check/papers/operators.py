"""Operators on the feature space of a population, applied but never formed where the space is large."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern.draws import normal_rows
from jaxkern.linalg import HIGHEST, eigh, matmul, operator_norm

Apply = Callable[[jax.Array], jax.Array]
Population = Mapping[str, jax.Array]

_DENSE = 64
_LEADING = 160
_STEPS = 10


def shares(key: jax.Array, population: Population, n: jax.Array) -> jax.Array:
    """Return the shares (p,) of the atoms in a sample of n independent draws."""
    weights = population["weights"]
    return jax.random.multinomial(key, n, weights, dtype=weights.dtype) / n


def covariance(population: Population, weights: jax.Array) -> Apply:
    """Return u -> Phi' diag(weights) Phi u: Sigma_n for the shares of a sample."""
    features = population["features"]

    def apply(u: jax.Array) -> jax.Array:
        return jnp.matmul(
            features.T,
            weights * jnp.matmul(features, u, precision=HIGHEST),
            precision=HIGHEST,
        )

    return apply


def exact_power(population: Population, exponent: float) -> Apply:
    """Return u -> Sigma^exponent u for the population, whose features make Sigma diagonal."""
    scale = population["eigenvalues"] ** exponent
    return lambda u: scale * u


def cube(apply: Apply) -> Apply:
    """Return the third power of an operator."""
    return lambda u: apply(apply(apply(u)))


def hilbert_schmidt(population: Population, weights: jax.Array) -> jax.Array:
    """Return |Phi' diag(weights) Phi|_HS, whose square is the quadratic form of the squared kernel, exactly."""
    form = jnp.vdot(weights, matmul(population["squares"], weights), precision=HIGHEST)
    return jnp.sqrt(jnp.maximum(form, 0))


def trace_cube(population: Population, weights: jax.Array) -> jax.Array:
    """Return tr C^3 of the covariance C with these weights.

    Beyond 160 dimensions the leading 160 coordinates are used, which can only make it smaller; what they leave out are
    third powers of the small eigenvalues (a test compares the two).
    """
    features = population["features"][:, :_LEADING]
    C = matmul(features.T, weights[:, None] * features)
    return jnp.sum(matmul(C, C) * C)


def sketch(
    key: jax.Array, population: Population, weights: jax.Array, rows: int
) -> Apply:
    """Return u -> V' V u / d for d = `rows` independent rows of V from N(0, C^3), C the covariance with these weights.

    C B' g with B = diag(sqrt(weights)) Phi has covariance C (B' B) C = C^3: no root of an operator is taken, exactly
    as in the matrix product Z K of Kernel JL. V is applied factor by factor, which is cheaper than forming it.
    """
    features = population["features"]
    normal = normal_rows(key, rows, features.shape[0], features.dtype)
    root, apply = jnp.sqrt(weights), covariance(population, weights)

    def sketched(u: jax.Array) -> jax.Array:
        image = jnp.matmul(
            normal,
            root * jnp.matmul(features, apply(u), precision=HIGHEST),
            precision=HIGHEST,
        )
        back = root * jnp.matmul(normal.T, image, precision=HIGHEST)
        return apply(jnp.matmul(features.T, back, precision=HIGHEST)) / rows

    return sketched


def exact_sketch(key: jax.Array, population: Population, rows: int) -> Apply:
    """Return u -> Theta* Theta u for `rows` independent directions from N(0, Sigma^3) of the population."""
    scale = population["eigenvalues"] ** 1.5
    normal = normal_rows(key, rows, scale.shape[0], scale.dtype)

    def sketched(u: jax.Array) -> jax.Array:
        image = jnp.matmul(normal, scale * u, precision=HIGHEST)
        return scale * jnp.matmul(normal.T, image, precision=HIGHEST) / rows

    return sketched


def difference(first: Apply, second: Apply) -> Apply:
    """Return u -> first(u) - second(u)."""
    return lambda u: first(u) - second(u)


def norm(apply: Apply, population: Population, key: jax.Array) -> jax.Array:
    """Return the operator norm of a self-adjoint operator on the feature space; see `norms`."""
    return norms((apply,), population, key)[0]


def norms(
    applies: Sequence[Apply], population: Population, key: jax.Array
) -> jax.Array:
    """Return the operator norms of several self-adjoint operators on the feature space, by one decomposition.

    Up to 64 dimensions the matrices are formed. Beyond, 10 Lanczos steps from a random start are taken; the operators
    here are differences of third powers, whose spectra fall so fast that the value is exact to five digits and more
    (a test compares the two). It never exceeds the norm.

    Two independent decompositions in one program can wait for each other for ever on two cores, where LAPACK brings
    threads of its own. So a trial decomposes once.
    """
    dim, dtype = population["features"].shape[1], population["features"].dtype
    if dim <= _DENSE:
        return jax.vmap(operator_norm)(_dense(applies, dim, dtype))
    start = jax.random.normal(key, (dim,), dtype)
    return jax.vmap(operator_norm)(
        jnp.stack([_lanczos(apply, start)[0] for apply in applies])
    )


def powers_applied(applies: Sequence[Apply], power: float, f: jax.Array) -> jax.Array:
    """Return C^power f for several positive semidefinite C, stacked: densely, or from the Krylov spaces of f.

    In a Krylov space the vectors are less exact than the differences between close operators, whose errors cancel.
    """
    dim = f.shape[0]
    if dim <= _DENSE:
        values, vectors = jax.vmap(eigh)(_dense(applies, dim, f.dtype))
        return jax.vmap(
            lambda w, V: matmul(V, jnp.maximum(w, 0) ** power * matmul(V.T, f))
        )(values, vectors)
    krylov = [_lanczos(apply, f) for apply in applies]
    values, vectors = jax.vmap(eigh)(
        jnp.stack([tridiagonal for tridiagonal, _ in krylov])
    )
    coordinates = jax.vmap(lambda w, V: matmul(V, jnp.maximum(w, 0) ** power * V[0]))(
        values, vectors
    )
    bases = jnp.stack([basis for _, basis in krylov])
    return jnp.linalg.norm(f) * jax.vmap(lambda basis, c: matmul(basis.T, c))(
        bases, coordinates
    )


def _dense(applies: Sequence[Apply], dim: int, dtype: Any) -> jax.Array:
    return jnp.stack([jax.vmap(apply)(jnp.eye(dim, dtype=dtype)) for apply in applies])


def _lanczos(apply: Apply, start: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the tridiagonal matrix and the orthonormal basis (steps, r) of the Krylov space, reorthogonalised."""
    dim, dtype = start.shape[0], start.dtype
    steps = min(_STEPS, dim)
    tiny = jnp.finfo(dtype).tiny

    def step(
        carry: tuple[jax.Array, jax.Array], i: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        basis, q = carry
        basis = basis.at[i].set(q)
        image = apply(q)
        rest = image
        for _ in range(2):
            rest = rest - matmul(basis.T, matmul(basis, rest))
        size = jnp.linalg.norm(rest)
        # A Krylov space that closes early leaves rounding behind, which must not be blown up to a unit vector.
        closed = size <= 100 * jnp.finfo(dtype).eps * jnp.linalg.norm(image) + tiny
        return (basis, jnp.where(closed, 0, rest / jnp.where(closed, 1, size))), image

    init = jnp.zeros((steps, dim), dtype), start / jnp.linalg.norm(start)
    (basis, _), images = lax.scan(step, init, jnp.arange(steps))
    projected = matmul(basis, images.T)
    return (projected + projected.T) / 2, basis
