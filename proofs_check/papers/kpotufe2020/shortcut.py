"""kpotufe2020: that the shortcut of its trials, by multinomial counts, is the literal construction (ours).

Two landmarks at one atom are two copies of it. So Kernel JL sees a sample by its counts c, and its Gaussian rows by
their normalised sums over the copies of each atom, which are independent and standard normal again.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxkern import features, rkhs
from proofs_check.claim import Check, Control, Form, Identity, Setting
from proofs_check.papers import operators as op
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.setup import Inputs
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import op_norm, parametrized, real, rng_of

_ROWS = 5


def _sample(
    key: jax.Array, population: Population, n: int = 40
) -> tuple[np.ndarray, np.ndarray]:
    """Return which atoms n landmarks are, and the shares of the atoms."""
    index = rng_of(key).choice(len(population.weights), n, p=population.weights)
    return index, np.bincount(index, minlength=len(population.weights)) / n


def _errors(*pairs: tuple[object, np.ndarray]) -> np.ndarray:
    return np.concatenate(
        [
            np.ravel(np.asarray(left) - right) / np.abs(right).max()
            for left, right in pairs
        ]
    )


@jax.jit
def _images(
    key: jax.Array, kernel: Any, points: jax.Array, landmarks: jax.Array
) -> tuple[jax.Array, jax.Array]:
    phi = features.kernel_jl(key, kernel, landmarks, num_features=_ROWS)
    return phi(points).T, phi.embed(rkhs.section(kernel, points)).T


def _shortcut_literal(inputs: Inputs) -> Check:
    @parametrized(Identity)
    def holds(
        key: jax.Array,
        setting: Setting,
        size: Callable[[np.ndarray], np.ndarray] = np.sqrt,
    ) -> np.ndarray:
        """The images of all atoms by the library's map, from the counts and the normalised sums of its Z."""
        population, dtype = inputs.population_of(setting), real(0).dtype
        index, w = _sample(key, population)
        n, K = len(index), population.features @ population.features.T
        points = population.points
        images, embedded = _images(
            key, population.kernel, real(points), real(points[index])
        )
        copies = np.eye(len(w))[index] / size(np.maximum(w * n, 1))
        sums = trials.normals(key, _ROWS, n, dtype) @ copies
        exact = sums @ (np.sqrt(w)[:, None] * K) @ (w[:, None] * K) / np.sqrt(_ROWS)
        orthonormal = (copies.T @ copies, np.diag(np.sign(w)))
        return _errors((images, exact), (embedded, exact), orthonormal)

    return Check(
        corrected=Form(holds(), inputs.each),
        controls=(
            Control(
                "sums over counts",
                holds(lambda counts: counts),
                inputs.each,
                "missing normalisation",
            ),
        ),
    )


@functools.partial(jax.jit, static_argnames=("exponent", "transposed"))
def _operators(
    key: jax.Array,
    arrays: op.Population,
    shares: jax.Array,
    *,
    exponent: float,
    transposed: bool,
) -> tuple[list[jax.Array], list[jax.Array]]:
    """Return operators of trials applied to all atoms, and three sizes."""
    sketched = op.sketch(
        key,
        {**arrays, "features": arrays["features"].T} if transposed else arrays,
        shares,
        _ROWS,
    )
    cubed, exact = (
        op.cube(op.covariance(arrays, shares)),
        op.exact_power(arrays, exponent),
    )
    operators = (sketched, op.exact_sketch(key, arrays, _ROWS), cubed, exact)
    applied = [jax.vmap(each)(arrays["features"]) for each in operators]
    difference = op.norm(
        op.difference(cubed, exact), arrays, jax.random.fold_in(key, 1)
    )
    return applied, [
        difference,
        op.hilbert_schmidt(arrays, shares - arrays["weights"]),
        op.trace_cube(arrays, shares),
    ]


def _shortcut_counts(inputs: Inputs) -> Check:
    @parametrized(Identity)
    def holds(
        key: jax.Array,
        setting: Setting,
        exponent: float = 3.0,
        *,
        transposed: bool = False,
    ) -> np.ndarray:
        """What trials do with shares and normal numbers, against landmarks one by one and dense matrices.

        Each landmark has an equal part of the normal number of its atom. Operators are applied to all atoms at once.
        """
        population = inputs.population_of(setting)
        arrays, rows = population.arrays, population.features
        index, w = _sample(key, population)
        n, shares = len(index), real(w)
        applied, sizes = _operators(
            key, arrays, shares, exponent=exponent, transposed=transposed
        )
        Z = trials.normals(key, _ROWS, len(w), shares.dtype)
        listed = Z[:, index] / np.sqrt(n * w[index])
        images = (
            listed
            @ (rows @ rows.T)[np.ix_(index, index)]
            @ (rows[index] @ rows.T)
            / (n * np.sqrt(n * _ROWS))
        )
        directions = (
            Z[:, : rows.shape[1]]
            * population.eigenvalues**1.5
            @ rows.T
            / np.sqrt(_ROWS)
        )
        sample, sigma = (
            rows.T @ (weights[:, None] * rows) for weights in (w, population.weights)
        )
        cubes = [np.linalg.matrix_power(C, 3) for C in (sample, sigma)]
        literal = [
            images.T @ images,
            directions.T @ directions,
            *(rows @ cube @ rows.T for cube in cubes),
        ]
        numbers = [
            op_norm(cubes[0] - cubes[1]),
            np.linalg.norm(sample - sigma),
            np.trace(cubes[0]),
        ]
        return _errors(
            *(
                (np.asarray(left, float) @ rows.T, right)
                for left, right in zip(applied, literal, strict=True)
            ),
            *(
                (left, np.asarray(right))
                for left, right in zip(sizes, numbers, strict=True)
                if right > 1e-9
            ),
        )

    square = tuple(
        s
        for s in inputs.varying
        if len(set(inputs.population_of(s).features.shape)) == 1
    )
    return Check(
        corrected=Form(holds(), inputs.each),
        controls=(
            Control(
                "L' for L in K = L L'",
                holds(transposed=True),
                square[-1:],
                "transpose for adjoint",
            ),
            Control(
                "Sigma^3.003 in place of Sigma^3",
                holds(3.003),
                inputs.varying,
                "wrong power",
            ),
        ),
    )
