"""kpotufe2020: that the shortcut of its trials, by multinomial counts, is the literal construction (ours).

Two landmarks at one atom are two copies of it. So Kernel JL sees a sample by its counts c, and its Gaussian rows by
their normalised sums over the copies of each atom, which are independent and standard normal again.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array

from jaxkern import features, rkhs
from proofs_check.claim import Check, Identity
from proofs_check.papers import operators as op
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.setup import (
    Errors,
    Inputs,
    Matrix,
)
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import check_of, op_norm, real, rng_of, wrong

_LANDMARKS = 40
_ROWS = 5


def _sample(key: Array, population: Population) -> tuple[Matrix, Matrix]:
    """Return which atoms the landmarks are, and the shares of the atoms."""
    atoms = len(population.weights)
    index = rng_of(key).choice(atoms, _LANDMARKS, p=population.weights)
    return index, np.bincount(index, minlength=atoms) / _LANDMARKS


@jax.jit
def _images(key: Array, kernel: Any, points: Array, landmarks: Array) -> list[Array]:
    phi = features.kernel_jl(key, kernel, landmarks, num_features=_ROWS)
    return [phi(points).T, phi.embed(rkhs.section(kernel, points)).T]


def _counts(counts: Matrix) -> Matrix:
    return counts


def _literal_errors(
    key: Array,
    data: Population,
    size: Callable[[Matrix], Matrix] = np.sqrt,
) -> Errors:
    """The images of all atoms by the library's map, from the counts and the normalised sums of its Z."""
    index, w = _sample(key, data)
    n = len(index)
    K = data.features @ data.features.T
    points = data.points
    images = _images(key, data.kernel, real(points), real(points[index]))
    copies = np.eye(len(w))[index] / size(np.maximum(w * n, 1))
    sums = trials.normals(key, _ROWS, n, real(0).dtype) @ copies
    exact = sums @ (np.sqrt(w)[:, None] * K) @ (w[:, None] * K) / np.sqrt(_ROWS)
    errors = [trials.relative(image, exact) for image in images]
    orthonormal = trials.relative(copies.T @ copies, np.diag(np.sign(w)))
    return np.concatenate([*errors, orthonormal])


def shortcut_literal(inputs: Inputs) -> Check:
    over_counts = wrong("sums over counts", "missing normalisation", size=_counts)
    return check_of(Identity, inputs.each, over_counts, corrected=_literal_errors)


@partial(jax.jit, static_argnames=("exponent", "transposed"))
def _by_counts(
    key: Array,
    arrays: op.Population,
    shares: Array,
    *,
    exponent: float,
    transposed: bool,
) -> tuple[list[Array], list[Array]]:
    """Return operators of trials applied to all atoms, and three sizes."""
    rows = arrays["features"]
    sketched = {**arrays, "features": rows.T} if transposed else arrays
    cubed = op.cube(op.covariance(arrays, shares))
    exact = op.exact_power(arrays, exponent)
    operators = (
        op.sketch(key, sketched, shares, _ROWS),
        op.exact_sketch(key, arrays, _ROWS),
        cubed,
        exact,
    )
    key_norm = jax.random.fold_in(key, 1)
    sizes = [
        op.norm(op.difference(cubed, exact), arrays, key_norm),
        op.hilbert_schmidt(arrays, shares - arrays["weights"]),
        op.trace_cube(arrays, shares),
    ]
    return [jax.vmap(apply)(rows) for apply in operators], sizes


def _one_by_one(
    key: Array, data: Population, index: Matrix, w: Matrix
) -> tuple[list[Matrix], list[float]]:
    """Return the same by landmarks one by one and dense matrices.

    Each landmark has an equal part of the normal number of its atom.
    """
    rows = data.features
    n = len(index)
    Z = trials.normals(key, _ROWS, len(w), real(w).dtype)
    copies = Z[:, index] / np.sqrt(n * w[index])
    K = rows @ rows.T
    images = copies @ K[np.ix_(index, index)] @ K[index] / (n * np.sqrt(n * _ROWS))
    scaled = Z[:, : rows.shape[1]] * data.eigenvalues**1.5
    directions = scaled @ rows.T / np.sqrt(_ROWS)
    sample = rows.T @ (w[:, None] * rows)
    sigma = rows.T @ (data.weights[:, None] * rows)
    cubed = np.linalg.matrix_power(sample, 3)
    exact = np.linalg.matrix_power(sigma, 3)
    products = [images.T @ images, directions.T @ directions]
    products += [rows @ cubed @ rows.T, rows @ exact @ rows.T]
    deviation = float(np.linalg.norm(sample - sigma))
    return products, [op_norm(cubed - exact), deviation, float(np.trace(cubed))]


def _counts_errors(
    key: Array, data: Population, exponent: float = 3.0, transposed: bool = False
) -> Errors:
    """What trials do with shares and normal numbers; operators are applied to all atoms at once."""
    index, w = _sample(key, data)
    applied, sizes = _by_counts(
        key, data.arrays, real(w), exponent=exponent, transposed=transposed
    )
    products, numbers = _one_by_one(key, data, index, w)
    errors = []
    for left, right in zip(applied, products, strict=True):
        errors.append(trials.relative(np.asarray(left, float) @ data.features.T, right))
    for left, number in zip(sizes, numbers, strict=True):
        if number > 1e-9:
            errors.append(trials.relative(left, number))
    return np.concatenate(errors)


def _is_square(population: Population) -> bool:
    rows, columns = population.features.shape
    return rows == columns


def shortcut_counts(inputs: Inputs) -> Check:
    square = [s for s in inputs.varying if _is_square(s.data)]
    transposed = wrong(
        "L' for L in K = L L'",
        "transpose for adjoint",
        settings=square[-1:],
        transposed=True,
    )
    power = wrong(
        "Sigma^3.003 in place of Sigma^3",
        "wrong power",
        settings=inputs.varying,
        exponent=3.003,
    )
    return check_of(Identity, inputs.each, transposed, power, corrected=_counts_errors)
