"""amini2021, Section 3.1: Algorithm 1 and its k-means step."""

import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import kmeans, metrics
from jaxkern.bounds import Bound
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting, Tail
from proofs_check.papers.amini2021 import trials
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.amini2021.setup import distances_on_spheres
from proofs_check.papers.shared import (
    always,
    as_residual,
    grid,
    parametrized,
    real,
    rng_of,
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


def _isometry() -> Check:
    def residual(power: int) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """Distances between rows of U1 diag(values)^power against those of A^(R) = U1 L1 U1'."""
            A = rng_of(key).standard_normal((12, 12))
            values, vectors = leading(A + A.T, setting.shapes["R"])
            apart = distances((vectors * values) @ vectors.T)
            return (distances(vectors * values**power) - apart) / apart.max()

        return Identity(check)

    settings = grid("R={R}, n=12", shapes="R", R=(2, 5))
    return Check(
        printed=Form(residual(1), settings),
        controls=(
            Control("without the eigenvalues", residual(0), settings, "wrong operator"),
        ),
    )


def _recovery() -> Check:
    def on_spheres(*dims: int) -> tuple[Setting, ...]:
        models = (distances_on_spheres((5.0, 10.0), 1.5, dim) for dim in dims)
        return tuple(
            model.setting("two clusters", {}, {"clusters": 2}) for model in models
        )

    def bound(setting: Setting) -> Bound:
        return Bound(0.02, 0.9, True, "amini2021, Section 3.5")

    return Check(
        printed=Form(
            Tail(trials.misclassified, bound, lambda setting: 0.5), on_spheres(32, 256)
        ),
        controls=(
            Control(
                "in the plane",
                Tail(trials.misclassified, bound),
                on_spheres(2),
                "hypothesis broken",
            ),
        ),
    )


def seeded_costs(X: np.ndarray, num: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the chances of all sequences of k-means++ seeds, and the cost of each."""
    n = len(X)
    square = np.sum((X[:, None] - X) ** 2, axis=2)
    seeds, chances = np.arange(n)[:, None], np.full(n, 1 / n)
    for _ in range(num - 1):
        nearest = np.min(square[seeds], axis=1)
        following = chances[:, None] * nearest / nearest.sum(axis=1, keepdims=True)
        rows, cols = np.indices((len(seeds), n)).reshape(2, -1)
        seeds, chances = np.column_stack([seeds[rows], cols]), following.reshape(-1)
        seeds, chances = seeds[chances > 0], chances[chances > 0]
    return chances, np.min(square[seeds], axis=1).sum(axis=1)


def least_cost(X: np.ndarray, num: int) -> float:
    """Return the least cost over all partitions into at most `num` cells."""
    best = math.inf
    for labels in itertools.product(range(num), repeat=len(X) - 1):
        cells = np.array((0, *labels))
        cost = sum(
            float(np.sum((X[cells == k] - X[cells == k].mean(axis=0)) ** 2))
            for k in set(cells.tolist())
        )
        best = min(best, cost)
    return best


def _factor() -> Check:
    @functools.cache
    def cases(rank: int) -> list[tuple[np.ndarray, np.ndarray, float]]:
        rng = np.random.default_rng(rank)
        clouds = [rng.standard_normal((7, 2)) for _ in range(3)]
        clouds.append(np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [30.0], [30.2]]))
        clouds.append(np.append(np.linspace(0, 1e-3, 6), 1.0)[:, None])
        return [(*seeded_costs(X, rank), least_cost(X, rank)) for X in clouds]

    @parametrized(Inequality)
    def sides(
        setting: Setting, level: float | None = None, *, surely: bool = False
    ) -> Pairs:
        rank = setting.shapes["R"]
        right = always(
            8 * (math.log(rank) + 2) if level is None else level, "k-means++"
        )
        return [
            (float(costs.max() if surely else chances @ costs) / least, right)
            for chances, costs, least in cases(rank)
        ]

    settings = grid("R={R}, 7 points", shapes="R", R=(2, 3))
    return Check(
        corrected=Form(sides(), settings),
        controls=(
            Control(
                "a factor 1.5 in the mean", sides(level=1.5), settings, "wrong factor"
            ),
            Control(
                "the same factor surely",
                sides(surely=True),
                settings,
                "hypothesis broken",
            ),
        ),
    )


def _clusters() -> Check:
    def residual(*, share: float = 1.0, cost: float = 1.0) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """The rate against all matchings, and what k-means costs against the best of all partitions."""
            rank, rng = setting.shapes["R"], rng_of(key)
            errors = []
            for _ in range(5):
                first, second = rng.integers(rank, size=(2, 11))
                matched = max(
                    np.mean(first == np.array(p)[second])
                    for p in itertools.permutations(range(rank))
                )
                rate = metrics.misclassification_rate(first, second, num_labels=rank)
                errors.append(share * float(rate) - (1 - matched))
            X = rng.standard_normal((7, 2))
            found = kmeans.kmeans(key, real(X), rank, num_restarts=50)
            return as_residual(
                [*errors, cost * float(found.objective) / least_cost(X, rank) - 1]
            )

        return Identity(check)

    settings = (Setting("three clusters", shapes={"R": 3}),)
    return Check(
        corrected=Form(residual(), settings),
        controls=(
            Control(
                "0.99 of the share", residual(share=0.99), settings, "wrong factor"
            ),
            Control("0.99 of the cost", residual(cost=0.99), settings, "wrong factor"),
        ),
    )


def _linear_time() -> Check:
    @parametrized(Inequality)
    def sides(setting: Setting, *, products: bool = False) -> Pairs:
        """Operations of the program at 16 times n over 16 times those at n, or with all n^2 inner products besides.

        XLA counts them, and bodies of loops once: the seeds after the first, and a step of Lloyd's.
        """
        rank = setting.shapes["R"]

        def run(key: jax.Array, X: jax.Array) -> Any:
            labels = kmeans.kmeans(
                key, X, rank, num_restarts=1, num_candidates=1
            ).labels
            return (labels, X @ X.T) if products else labels

        def spent(n: int) -> float:
            shape = jax.ShapeDtypeStruct((n, rank), jnp.result_type(float))
            key = jax.eval_shape(lambda: jax.random.key(0))
            return float(jax.jit(run).lower(key, shape).cost_analysis()["flops"])

        return [(spent(4096) / (16 * spent(256)), always(1, "amini2021, Section 3.1"))]

    settings = grid("n=256 and 4096, R=D={R}", shapes="R", R=(2, 8))
    return Check(
        corrected=Form(sides(), settings),
        controls=(
            Control(
                "with all n^2 inner products",
                sides(products=True),
                settings,
                "wrong cost",
            ),
        ),
    )
