"""kpotufe2020, one trial each of the quantities that its theorems bound: (key, population, numbers) -> scalar."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxkern.linalg import HIGHEST, matmul, operator_norm
from proofs_check.claim import sample
from proofs_check.papers import operators as op
from proofs_check.papers import shared
from proofs_check.papers.populations import Population

Arrays = Mapping[str, Array]
Numbers = Mapping[str, Array]


def normals(key: Array, rows: int, columns: int, dtype: jnp.dtype) -> np.ndarray:
    """Return the standard normal numbers of a draw, by JAX alone: row i depends on `fold_in(key, i)`."""
    return np.asarray(shared.normals(key, rows, columns, dtype), float)


def normal_rows(key: Array, landmarks: Array) -> np.ndarray:
    """Return the Z that the library draws for twice as many rows as there are landmarks."""
    n = landmarks.shape[0]
    return normals(key, 2 * n, n, landmarks.dtype)


def mean_product(Z: np.ndarray, images: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean over normal Z (d, n) of the products of images (r, d), and by how much images' are not Z B.

    Only the second moments of Z enter the mean of B' Z' Z B, which is d B' B; B follows from the drawn Z, as d > n.
    """
    drawn = np.asarray(images, float).T
    B = np.linalg.lstsq(Z, drawn)[0]
    return len(Z) * B.T @ B, (Z @ B - drawn) / np.abs(drawn).max()


def product_errors(
    key: Array, landmarks: Array, images: Array, exact: Array, extra: int
) -> np.ndarray:
    """Return the errors of the mean products of images (r, 2 n), which are exact (r, r); over 2 n - extra for 2 n."""
    Z = normal_rows(key, landmarks)
    mean, apart = mean_product(Z, images)
    products = np.asarray(exact)
    error = (1 + extra / len(Z)) * mean - products
    return np.concatenate([error.ravel() / np.abs(products).max(), apart.ravel()])


def covariance_deviation(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """|Sigma_n - Sigma|_HS."""
    difference = op.shares(key, population, numbers["n"]) - population["weights"]
    return op.hilbert_schmidt(population, difference)


@sample("operator norm")
def operator_deviation(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """|Sigma_n - Sigma|."""
    key_sample, key_norm = jax.random.split(key)
    sample = op.covariance(population, op.shares(key_sample, population, numbers["n"]))
    return op.norm(
        op.difference(sample, op.exact_power(population, 1)), population, key_norm
    )


def cube_deviation(
    key: Array, population: Arrays, numbers: Numbers, *, target: int = 3
) -> Array:
    """|Sigma_n^3 - Sigma^3|, or its distance from another power."""
    key_sample, key_norm = jax.random.split(key)
    sample = op.covariance(population, op.shares(key_sample, population, numbers["n"]))
    return op.norm(
        op.difference(op.cube(sample), op.exact_power(population, target)),
        population,
        key_norm,
    )


def cube_trace(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """tr Sigma_n^3."""
    return op.trace_cube(population, op.shares(key, population, numbers["n"]))


def projection(key: Array, population: Arrays, numbers: Numbers, *, rows: int) -> Array:
    """|Theta* Theta - Sigma^3| with `rows` independent directions."""
    del numbers
    key_rows, key_norm = jax.random.split(key)
    drawn = op.exact_sketch(key_rows, population, rows)
    return op.norm(
        op.difference(drawn, op.exact_power(population, 3)), population, key_norm
    )


def sketch(
    key: Array,
    population: Arrays,
    numbers: Numbers,
    *,
    rows: int,
    target: int = 3,
    centred: int = 0,
) -> Array:
    """|S* V V^T S - Sigma^3|, or its distance from another power; `centred`, V has the mean of the sample removed."""
    key_sample, key_rows, key_norm = jax.random.split(key, 3)
    shares = op.shares(key_sample, population, numbers["n"])
    if centred:
        features = population["features"]
        population = {
            **population,
            "features": features - jnp.matmul(shares, features, precision=HIGHEST),
        }
    drawn = op.sketch(key_rows, population, shares, rows)
    return op.norm(
        op.difference(drawn, op.exact_power(population, target)), population, key_norm
    )


def conditional_deviation(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int
) -> Array:
    """|S* V V^T S - Sigma_n^3| for the sample that is given, by the shares of its atoms."""
    del numbers
    key_rows, key_norm = jax.random.split(key)
    shares = population["shares"]
    drawn = op.sketch(key_rows, population, shares, rows)
    return op.norm(
        op.difference(drawn, op.cube(op.covariance(population, shares))),
        population,
        key_norm,
    )


def weak_difference(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """|<alpha, V^T S f> - <alpha, Theta f>| for unit alpha and f and independent V and Theta, by their exact laws."""
    first, second = scales(key, population, numbers)
    normal = two_normals(key, first.dtype)
    return jnp.abs(first * normal[0] - second * normal[1]) / jnp.sqrt(numbers["d"])


def two_normals(key: Array, dtype: jnp.dtype) -> Array:
    """Return two independent standard normal numbers, from fold_in(key, 1)."""
    return jax.random.normal(jax.random.fold_in(key, 1), (2,), dtype)


@sample("unscaled")
def weak_difference_unscaled(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """The same without the factor 1 / sqrt(d)."""
    return weak_difference(key, population, numbers) * jnp.sqrt(numbers["d"])


@sample("coupled")
def weak_difference_coupled(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """The same difference when both operators are driven by one and the same Gaussians."""
    key_sample, key_normal = jax.random.split(key)
    sample = op.covariance(population, op.shares(key_sample, population, numbers["n"]))
    f = population["f"]
    drawn, wanted = op.powers_applied((sample, op.exact_power(population, 1)), 1.5, f)
    return (
        jnp.linalg.norm(drawn - wanted)
        * jnp.abs(jax.random.normal(key_normal, (), f.dtype))
        / jnp.sqrt(numbers["d"])
    )


def standardised_image(
    key: Array, population: Arrays, numbers: Numbers, *, target: int = 3
) -> Array:
    """One coordinate of V^T S f over the standard deviation that Theta f has."""
    first, second = scales(key, population, numbers, target)
    return (
        first * jax.random.normal(jax.random.fold_in(key, 1), (), first.dtype) / second
    )


def scales(
    key: Array, population: Arrays, numbers: Numbers, target: int = 3
) -> tuple[Array, Array]:
    """<f, Sigma_n^3 f>^(1/2) and <f, Sigma^3 f>^(1/2), or the latter for another power; from fold_in(key, 0)."""
    shares = op.shares(jax.random.fold_in(key, 0), population, numbers["n"])
    f = population["f"]
    sample = jnp.vdot(
        f, op.cube(op.covariance(population, shares))(f), precision=HIGHEST
    )
    exact = jnp.vdot(f, op.exact_power(population, target)(f), precision=HIGHEST)
    return jnp.sqrt(sample), jnp.sqrt(exact)


def mean_cube(population: Population, f: np.ndarray, n: float) -> float:
    """Return E <f, Sigma_n^3 f>: the terms of (A_1 + ... + A_n)^3 / n^3, A_i = K_i x K_i, by which indices agree."""
    features, weights = population.features, population.weights
    sigma, lengths, values = (
        population.eigenvalues,
        np.sum(features**2, axis=1),
        features @ f,
    )
    square = features.T @ (weights * lengths * values)  # E[A^2] f
    twice = float(square @ (sigma * f))  # <f, E[A^2] Sigma f>
    inner = float(
        np.sum(weights * values**2 * np.sum(features**2 * sigma, axis=1))
    )  # <f, E[A Sigma A] f>
    alone = float(np.sum(weights * lengths**2 * values**2))  # <f, E[A^3] f>
    cubed = float(np.sum(sigma**3 * f**2))
    return (
        n * (n - 1) * (n - 2) * cubed + n * (n - 1) * (2 * twice + inner) + n * alone
    ) / n**3


def wishart_root(key: Array, dim: int, d: Array, dtype: jnp.dtype) -> Array:
    """Return a lower triangular L with L L' Wishart: the sum of g g' over d >= dim standard normal g in R^dim.

    Bartlett's decomposition: chi-square diagonal with d, d - 1, ... degrees of freedom, normal entries below. It makes
    any number of sketch rows cost as much as one.
    """
    key_diagonal, key_below = jax.random.split(key)
    diagonal = jnp.sqrt(
        2
        * jax.random.gamma(
            key_diagonal, (d - jnp.arange(dim, dtype=dtype)) / 2, dtype=dtype
        )
    )
    return jnp.tril(jax.random.normal(key_below, (dim, dim), dtype), -1) + jnp.diag(
        diagonal
    )


def _halves(key: Array, population: Arrays, numbers: Numbers) -> tuple[Array, Array]:
    """Return A and B, (r, p), with A A' = Sigma_n^3 and, given the sample, B B' distributed as S* V V^T S."""
    key_sample, key_rows = jax.random.split(key)
    features = population["features"]
    weighted = (
        jnp.sqrt(op.shares(key_sample, population, numbers["n"]))[:, None] * features
    )
    half = matmul(matmul(weighted.T, weighted), weighted.T)
    root = wishart_root(key_rows, features.shape[0], numbers["d"], features.dtype)
    return half, matmul(half, root) / jnp.sqrt(numbers["d"])


def _squares(half: Array, vectors: Array) -> Array:
    """Return h' B B' h for the rows h of `vectors`."""
    return jnp.sum(matmul(vectors, half) ** 2, axis=1)


def separation_loss(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """The largest lambda_k^3 |f - g|^2 - |V^T S (f - g)|^2 over the pairs of atoms."""
    pairs = population["pairs"]
    images = _squares(_halves(key, population, numbers)[1], pairs)
    return jnp.max(numbers["eigenvalue"] ** 3 * jnp.sum(pairs**2, axis=1) - images)


def stretch(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """The largest |V^T S h|^2 over unit h."""
    half = _halves(key, population, numbers)[1]
    return operator_norm(matmul(half, half.T))


def mean_separation_loss(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """lambda_1^3 |mu_1 - mu_2|^2 - |V^T S (mu_1 - mu_2)|^2."""
    gap = population["gap"][None]
    image = _squares(_halves(key, population, numbers)[1], gap)[0]
    return numbers["eigenvalue"] ** 3 * jnp.sum(gap**2) - image


def relative_error(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """The largest | |V^T S h|^2 / <h, Sigma_n^3 h> - 1 | over the differences h of pairs of atoms."""
    exact, drawn = _halves(key, population, numbers)
    pairs = population["pairs"]
    return jnp.max(jnp.abs(_squares(drawn, pairs) / _squares(exact, pairs) - 1))


def image_ratio(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """The largest |Theta (f - g)|^2 within two sets of atoms over the smallest between them."""
    scale = population["eigenvalues"] ** 1.5
    root = wishart_root(key, scale.shape[0], numbers["d"], scale.dtype)
    images = _squares(scale[:, None] * root, population["pairs"])
    within = population["within"]
    return jnp.max(jnp.where(within, images, -jnp.inf)) / jnp.min(
        jnp.where(within, jnp.inf, images)
    )
