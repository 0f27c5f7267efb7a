"""kpotufe2020, one trial each of the quantities that its theorems bound: (key, population, numbers) -> scalar."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, random

from jaxkern.linalg import HIGHEST, matmul, operator_norm
from proofs_check.claim import sample
from proofs_check.papers import operators as op
from proofs_check.papers import shared
from proofs_check.papers.kpotufe2020.setup import Errors, Matrix
from proofs_check.papers.populations import Population

Arrays = Mapping[str, Array]
Numbers = Mapping[str, Array]


def normals(key: Array, rows: int, columns: int, dtype: jnp.dtype) -> Matrix:
    """Return the standard normal numbers of a draw, by JAX alone: row i depends on `fold_in(key, i)`."""
    return np.asarray(shared.normals(key, rows, columns, dtype), float)


def relative(left: Any, right: Any) -> Errors:
    """Return the errors of all entries of left, over the largest entry of right."""
    exact = np.asarray(right)
    return np.ravel(np.asarray(left) - exact) / np.abs(exact).max()


def normal_rows(key: Array, landmarks: Array) -> Matrix:
    """Return the Z that the library draws for twice as many rows as there are landmarks."""
    n = landmarks.shape[0]
    return normals(key, 2 * n, n, landmarks.dtype)


def mean_product(Z: Matrix, images: Any) -> tuple[Matrix, Errors]:
    """Return the mean over normal Z (d, n) of the products of images (r, d), and the errors of Z B for images'.

    Only the second moments of Z enter the mean of B' Z' Z B, which is d B' B; B follows from the drawn Z, as d > n.
    """
    drawn = np.asarray(images, float).T
    B = np.linalg.lstsq(Z, drawn)[0]
    return len(Z) * B.T @ B, relative(Z @ B, drawn)


def product_errors(
    key: Array, landmarks: Array, images: Any, exact: Any, extra: int
) -> Errors:
    """Return the errors of the mean products of images (r, 2 n), which are exact (r, r); over 2 n - extra for 2 n."""
    Z = normal_rows(key, landmarks)
    mean, apart = mean_product(Z, images)
    return np.concatenate([relative((1 + extra / len(Z)) * mean, exact), apart])


def covariance_deviation(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """|Sigma_n - Sigma|_HS."""
    difference = op.shares(key, population, numbers["n"]) - population["weights"]
    return op.hilbert_schmidt(population, difference)


def _sampled(key: Array, population: Arrays, numbers: Numbers) -> op.Apply:
    """Return Sigma_n of a sample."""
    return op.covariance(population, op.shares(key, population, numbers["n"]))


def _distance(
    first: op.Apply, second: op.Apply, population: Arrays, key: Array
) -> Array:
    return op.norm(op.difference(first, second), population, key)


@sample("operator norm")
def operator_deviation(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """|Sigma_n - Sigma|."""
    key_sample, key_norm = random.split(key)
    sigma_n = _sampled(key_sample, population, numbers)
    return _distance(sigma_n, op.exact_power(population, 1), population, key_norm)


def cube_deviation(
    key: Array, population: Arrays, numbers: Numbers, *, target: int = 3
) -> Array:
    """|Sigma_n^3 - Sigma^3|, or its distance from another power."""
    key_sample, key_norm = random.split(key)
    cubed = op.cube(_sampled(key_sample, population, numbers))
    return _distance(cubed, op.exact_power(population, target), population, key_norm)


def cube_trace(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """tr Sigma_n^3."""
    return op.trace_cube(population, op.shares(key, population, numbers["n"]))


def projection(key: Array, population: Arrays, numbers: Numbers, *, rows: int) -> Array:
    """|Theta* Theta - Sigma^3| with `rows` independent directions."""
    del numbers
    key_rows, key_norm = random.split(key)
    drawn = op.exact_sketch(key_rows, population, rows)
    return _distance(drawn, op.exact_power(population, 3), population, key_norm)


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
    key_sample, key_rows, key_norm = random.split(key, 3)
    shares = op.shares(key_sample, population, numbers["n"])
    if centred:
        features = population["features"]
        mean = jnp.matmul(shares, features, precision=HIGHEST)
        population = {**population, "features": features - mean}
    drawn = op.sketch(key_rows, population, shares, rows)
    return _distance(drawn, op.exact_power(population, target), population, key_norm)


def conditional_deviation(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int
) -> Array:
    """|S* V V^T S - Sigma_n^3| for a fixed sample, by the shares of its atoms."""
    del numbers
    key_rows, key_norm = random.split(key)
    shares = population["shares"]
    drawn = op.sketch(key_rows, population, shares, rows)
    exact = op.cube(op.covariance(population, shares))
    return _distance(drawn, exact, population, key_norm)


def two_normals(key: Array, dtype: jnp.dtype) -> Array:
    """Return two independent standard normal numbers, from fold_in(key, 1)."""
    return random.normal(random.fold_in(key, 1), (2,), dtype)


def weak_difference(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """|<alpha, V^T S f> - <alpha, Theta f>| for unit alpha and f and independent V and Theta, by their exact laws."""
    first, second = scales(key, population, numbers)
    normal = two_normals(key, first.dtype)
    return jnp.abs(first * normal[0] - second * normal[1]) / jnp.sqrt(numbers["d"])


@sample("unscaled")
def weak_difference_unscaled(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """The same without the factor 1 / sqrt(d)."""
    return weak_difference(key, population, numbers) * jnp.sqrt(numbers["d"])


@sample("coupled")
def weak_difference_coupled(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """The same difference when both operators are driven by one and the same Gaussians."""
    key_sample, key_normal = random.split(key)
    f = population["f"]
    sigma_n = _sampled(key_sample, population, numbers)
    sigma = op.exact_power(population, 1)
    sketched, projected = op.powers_applied((sigma_n, sigma), 1.5, f)
    normal = jnp.abs(random.normal(key_normal, (), f.dtype))
    return jnp.linalg.norm(sketched - projected) * normal / jnp.sqrt(numbers["d"])


def standardised_image(
    key: Array, population: Arrays, numbers: Numbers, *, target: int = 3
) -> Array:
    """One coordinate of V^T S f over the standard deviation that Theta f has."""
    first, second = scales(key, population, numbers, target)
    normal = random.normal(random.fold_in(key, 1), (), first.dtype)
    return first * normal / second


def scales(
    key: Array, population: Arrays, numbers: Numbers, target: int = 3
) -> tuple[Array, Array]:
    """<f, Sigma_n^3 f>^(1/2) and <f, Sigma^3 f>^(1/2), or the latter for another power; from fold_in(key, 0)."""
    f = population["f"]
    cubed = op.cube(_sampled(random.fold_in(key, 0), population, numbers))
    exact = op.exact_power(population, target)
    sketched = jnp.vdot(f, cubed(f), precision=HIGHEST)
    projected = jnp.vdot(f, exact(f), precision=HIGHEST)
    return jnp.sqrt(sketched), jnp.sqrt(projected)


def mean_cube(population: Population, f: Matrix, n: float) -> float:
    """Return E <f, Sigma_n^3 f>: the terms of (A_1 + ... + A_n)^3 / n^3, A_i = K_i x K_i, by which indices agree."""
    rows = population.features
    weights = population.weights
    sigma = population.eigenvalues
    lengths = np.sum(rows**2, axis=1)
    values = rows @ f
    square = rows.T @ (weights * lengths * values)  # E[A^2] f
    twice = float(square @ (sigma * f))  # <f, E[A^2] Sigma f>
    between = np.sum(rows**2 * sigma, axis=1)
    inner = float(np.sum(weights * values**2 * between))  # <f, E[A Sigma A] f>
    alone = float(np.sum(weights * lengths**2 * values**2))  # <f, E[A^3] f>
    cubed = float(np.sum(sigma**3 * f**2))
    pairs = n * (n - 1)
    return (pairs * (n - 2) * cubed + pairs * (2 * twice + inner) + n * alone) / n**3


def wishart_root(key: Array, dim: int, d: Array, dtype: jnp.dtype) -> Array:
    """Return a lower triangular L with L L' Wishart: the sum of g g' over d >= dim standard normal g in R^dim.

    Bartlett's decomposition: chi-square diagonal with d, d - 1, ... degrees of freedom, normal entries below. It makes
    any number of sketch rows cost as much as one.
    """
    key_diagonal, key_below = random.split(key)
    halves = (d - jnp.arange(dim, dtype=dtype)) / 2
    squares = 2 * random.gamma(key_diagonal, halves, dtype=dtype)
    below = jnp.tril(random.normal(key_below, (dim, dim), dtype), -1)
    return below + jnp.diag(jnp.sqrt(squares))


def _halves(key: Array, population: Arrays, numbers: Numbers) -> tuple[Array, Array]:
    """Return A and B, (r, p), with A A' = Sigma_n^3 and, given the sample, B B' distributed as S* V V^T S."""
    key_sample, key_rows = random.split(key)
    features = population["features"]
    shares = op.shares(key_sample, population, numbers["n"])
    weighted = jnp.sqrt(shares)[:, None] * features
    half = matmul(matmul(weighted.T, weighted), weighted.T)
    root = wishart_root(key_rows, features.shape[0], numbers["d"], features.dtype)
    return half, matmul(half, root) / jnp.sqrt(numbers["d"])


def _squares(half: Array, vectors: Array) -> Array:
    """Return h' B B' h for the rows h of `vectors`."""
    return jnp.sum(matmul(vectors, half) ** 2, axis=1)


def separation_loss(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """The largest lambda_k^3 |f - g|^2 - |V^T S (f - g)|^2 over the pairs of atoms."""
    _, half = _halves(key, population, numbers)
    pairs = population["pairs"]
    scaled = numbers["eigenvalue"] ** 3 * jnp.sum(pairs**2, axis=1)
    return jnp.max(scaled - _squares(half, pairs))


def stretch(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """The largest |V^T S h|^2 over unit h."""
    _, half = _halves(key, population, numbers)
    return operator_norm(matmul(half, half.T))


def mean_separation_loss(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """lambda_1^3 |mu_1 - mu_2|^2 - |V^T S (mu_1 - mu_2)|^2."""
    gap = {**population, "pairs": population["gap"][None]}
    return separation_loss(key, gap, numbers)


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
    widest = jnp.max(jnp.where(within, images, -jnp.inf))
    return widest / jnp.min(jnp.where(within, jnp.inf, images))
