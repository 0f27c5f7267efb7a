"""amini2021, Section 3.1: Algorithm 1 and its k-means step."""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import kmeans, metrics
from jaxkern.bounds import Bound
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting, Tail
from proofs_check.papers.amini2021 import trials
from proofs_check.papers.amini2021.setup import Pairs, distances_on_spheres
from proofs_check.papers.shared import (
    Grids,
    as_residual,
    check_of,
    lines,
    real,
    rng_of,
    wrong,
)


def distances(rows: np.ndarray) -> np.ndarray:
    """Return the distances between rows."""
    return np.linalg.norm(rows[:, None] - rows, axis=2)


def leading(
    A: np.ndarray, rank: int, *, signed: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `rank` eigenvalues of largest size, or the largest ones where `signed`, and their vectors."""
    values, vectors = np.linalg.eigh(A)
    first = np.argsort(-(values if signed else np.abs(values)))[:rank]
    return values[first], vectors[:, first]


def truncated(A: np.ndarray, rank: int) -> np.ndarray:
    """Return the part of a symmetric matrix on its `rank` eigenvalues of largest size."""
    values, vectors = leading(A, rank)
    return (vectors * values) @ vectors.T


def isometry_errors(key: jax.Array, R: int, power: int = 1) -> np.ndarray:
    """Distances between rows of U1 diag(values)^power against those of A^(R) = U1 L1 U1'."""
    A = rng_of(key).standard_normal((12, 12))
    values, vectors = leading(A + A.T, R)
    apart = distances((vectors * values) @ vectors.T)
    return (distances(vectors * values**power) - apart) / apart.max()


def alg1_isometry(grids: Grids) -> Check:
    vectors = wrong("without the eigenvalues", "wrong operator", power=0)
    return check_of(Identity, grids["printed"], vectors, printed=isometry_errors)


def alg1() -> Check:
    def on_spheres(dim: int) -> Setting:
        model = distances_on_spheres((5.0, 10.0), 1.5, dim)
        return model.setting("two clusters", {}, {"clusters": 2})

    def bound(setting: Setting) -> Bound:
        return Bound(0.02, 0.9, True, "amini2021, Section 3.5")

    recovers = Tail(trials.misclassified, bound, lambda setting: 0.5)
    in_the_plane = Tail(trials.misclassified, bound)
    return Check(
        printed=Form(recovers, (on_spheres(32), on_spheres(256))),
        controls=(
            Control(
                "in the plane", in_the_plane, (on_spheres(2),), "hypothesis broken"
            ),
        ),
    )


def seeded_costs(X: np.ndarray, num: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the chances of all sequences of k-means++ seeds, and the cost of each."""
    n = len(X)
    square = np.sum((X[:, None] - X) ** 2, axis=2)
    seeds = np.arange(n)[:, None]
    chances = np.full(n, 1 / n)
    for _ in range(num - 1):
        nearest = np.min(square[seeds], axis=1)
        shares = nearest / nearest.sum(axis=1, keepdims=True)
        longer = (chances[:, None] * shares).reshape(-1)
        rows, cols = np.indices((len(seeds), n)).reshape(2, -1)
        possible = longer > 0
        seeds = np.column_stack([seeds[rows], cols])[possible]
        chances = longer[possible]
    return chances, np.min(square[seeds], axis=1).sum(axis=1)


def least_cost(X: np.ndarray, num: int) -> float:
    """Return the least cost over all partitions into at most `num` cells."""
    best = math.inf
    for labels in itertools.product(range(num), repeat=len(X) - 1):
        cells = np.array((0, *labels))
        cost = 0.0
        for k in set(cells.tolist()):
            members = X[cells == k]
            cost += float(np.sum((members - members.mean(axis=0)) ** 2))
        best = min(best, cost)
    return best


@functools.cache
def _costs(rank: int) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Return chances and costs of all seeds, and the least cost, for clouds of seven points."""
    rng = np.random.default_rng(rank)
    clouds = [rng.standard_normal((7, 2)) for _ in range(3)]
    clouds.append(np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [30.0], [30.2]]))
    clouds.append(np.append(np.linspace(0, 1e-3, 6), 1.0)[:, None])
    return [(*seeded_costs(X, rank), least_cost(X, rank)) for X in clouds]


def mean_cost(chances: np.ndarray, costs: np.ndarray) -> float:
    """Return the mean of the costs."""
    return float(chances @ costs)


def largest_cost(chances: np.ndarray, costs: np.ndarray) -> float:
    """Return the largest cost."""
    return float(costs.max())


def seeding_factor(R: int) -> float:
    """Return the factor of k-means++."""
    return 8 * (math.log(R) + 2)


def seeding_ratios(
    R: int,
    cost: Callable[..., float] = mean_cost,
    factor: Callable[[int], float] = seeding_factor,
) -> Pairs:
    """The cost of k-means++ seeds over the least cost, against a factor."""
    pairs = []
    for chances, costs, least in _costs(R):
        pairs.append((cost(chances, costs) / least, factor(R)))
    return lines(pairs, "k-means++")


def alg1_kmeans(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["corrected"],
        wrong("a factor 1.5 in the mean", "wrong factor", factor=lambda R: 1.5),
        wrong("the same factor surely", "hypothesis broken", cost=largest_cost),
        corrected=seeding_ratios,
    )


def clustering_errors(
    key: jax.Array, R: int, share: float = 1.0, cost: float = 1.0
) -> np.ndarray:
    """The rate against all matchings, and what k-means costs against the best of all partitions."""
    rng = rng_of(key)
    errors = []
    for _ in range(5):
        first, second = rng.integers(R, size=(2, 11))
        permutations = map(np.array, itertools.permutations(range(R)))
        matched = max(np.mean(first == p[second]) for p in permutations)
        rate = float(metrics.misclassification_rate(first, second, num_labels=R))
        errors.append(share * rate - (1 - matched))
    X = rng.standard_normal((7, 2))
    objective = float(kmeans.kmeans(key, real(X), R, num_restarts=50).objective)
    errors.append(cost * objective / least_cost(X, R) - 1)
    return as_residual(errors)


def misclassification(grids: Grids) -> Check:
    return check_of(
        Identity,
        grids["corrected"],
        wrong("0.99 of the share", "wrong factor", share=0.99),
        wrong("0.99 of the cost", "wrong factor", cost=0.99),
        corrected=clustering_errors,
    )


def _labels(key: jax.Array, X: jax.Array) -> jax.Array:
    rank = X.shape[1]
    return kmeans.kmeans(key, X, rank, num_restarts=1, num_candidates=1).labels


def _labels_and_products(key: jax.Array, X: jax.Array) -> Any:
    return _labels(key, X), X @ X.T


def operations(run: Callable[..., Any], n: int, dim: int) -> float:
    """Return the operations of a program on n points, as XLA counts them."""
    shape = jax.ShapeDtypeStruct((n, dim), jnp.result_type(float))
    key = jax.eval_shape(lambda: jax.random.key(0))
    analysis: Any = jax.jit(run).lower(key, shape).cost_analysis()
    return float(analysis["flops"])


def growth_of_operations(R: int, run: Callable[..., Any] = _labels) -> Pairs:
    """Operations of the program at 16 times n over 16 times those at n.

    XLA counts bodies of loops once: the seeds after the first, and a step of Lloyd's.
    """
    ratio = operations(run, 4096, R) / (16 * operations(run, 256, R))
    return lines([(ratio, 1)], "amini2021, Section 3.1")


def alg1_cost(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["corrected"],
        wrong("with all n^2 inner products", "wrong cost", run=_labels_and_products),
        corrected=growth_of_operations,
    )
