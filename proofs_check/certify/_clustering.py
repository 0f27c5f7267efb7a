"""The goal "clustering": k-means of a map's features shall find the clusters of kernel k-means.

A draw is what a user does: a map is drawn, and `jaxkern.kmeans.kmeans` clusters its features from seeds of its own,
with the number of restarts that the certificate prints. Nothing starts from the exact partition. k-means only finds
local minima, and a draw that ends in a bad one has failed, whether the map or the seeds are to blame.

Kernel k-means itself is k-means of exact features Z, K = Z Z' in float64. Its partition is the best of two sets of
restarts. How far the two differ is measured too, as `Clusters.own_disagreement`.

`Clustering.with_restarts` chooses the number of restarts: k-means of the exact features is seeded `SEEDINGS` times, and
the share of seedings that end near the best partition says how many restarts miss it rarely enough.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import lapack

from jaxkern import checks
from jaxkern.gram import gram
from jaxkern.kernels import psd_kernel
from jaxkern.kmeans import kmeans
from jaxkern.metrics import adjusted_rand_index, misclassification_rate
from proofs_check.certify._model import Goal
from proofs_check.certify._rows import compiled, distinct, features, padded, rows_of

RESIDUAL = 1e-6
"""Exact features leave out at most this share of the mean squared distance of a point from the mean."""
SEEDINGS = 100
RESTARTS = (10, 30, 100)
"""The numbers of restarts to choose from. One that is too small makes draws fail, and certifies nothing false."""
MISSED = 0.1
"""Restarts with the exact kernel may miss the best partition with this share of delta."""
_TOLERANCE = 1e-4
"""The default of `kmeans`."""


@dataclass(frozen=True)
class Clusters:
    """What kernel k-means makes of some points.

    Attributes
    ----------
    points : (s, dim), as maps get them.
    labels : (s,) int32, the best partition of two sets of restarts.
    own_disagreement : misclassification rate between the best partitions of the two sets. Where it is large, several
        partitions are nearly as good as the best, and an error of this size need not be the map's.
    num_restarts : seedings of each set.
    classes : (s,) int, the classes of the points; None without labels.
    """

    points: jax.Array
    labels: jax.Array
    own_disagreement: float
    num_restarts: int
    classes: Any

    @property
    def words(self) -> str:
        """Return how reliable the exact partition is, in one sentence."""
        if self.own_disagreement == 0:
            return (
                f"Two independent sets of {self.num_restarts} restarts of k-means with the exact kernel find the same "
                "partition."
            )
        return (
            f"The exact kernel's own k-means differs from itself on {100 * self.own_disagreement:.2g} % of the points, "
            f"between two sets of {self.num_restarts} restarts; an error of that size need not be the map's."
        )


@dataclass
class Clustering(Goal):
    """The error of a map is the share of points that k-means of its features clusters otherwise than kernel k-means.

    The misclassification rate between the partition that `kmeans` finds in the features, from fresh seeds, and that of
    kernel k-means, at the best matching of their clusters.

    Attributes
    ----------
    kernel : positive semidefinite.
    num_clusters : at least 2.
    num_restarts : of `kmeans` on the features, and of each of the two sets for the exact kernel.
    found_by_one : share of single seedings with the exact kernel that find its best partition; None if not measured.

    Notes
    -----
    `prepare` takes s^2 rank multiply-adds for s points, and 4 s rank num_restarts num_clusters for each of some 10 to
    30 iterations of k-means; `error` takes half of that, with num_features in place of the rank. Programs are compiled
    once for each number of points and 64 features.
    """

    kernel: Any
    num_clusters: int
    num_restarts: int = RESTARTS[0]
    found_by_one: float | None = None

    name = "clustering"

    def __post_init__(self) -> None:
        """Check what can be checked without points."""
        self.kernel = psd_kernel(self.kernel)
        self.num_clusters = checks.count("num_clusters", self.num_clusters, minimum=2)
        self.num_restarts = checks.count("num_restarts", self.num_restarts)
        self.words = (
            f"the share of points that k-means of the features with {self.num_restarts} restarts puts into another "
            "cluster than kernel k-means does, at the best matching of the clusters"
        )
        # How many times as much as usual a pair of rows takes, see `_work`.
        self.effort = self.num_restarts / RESTARTS[0]

    def with_restarts(
        self, key: Any, points: np.ndarray, eps: float, delta: float
    ) -> "Clustering":
        """Return the goal with as many restarts as find the best partition of some points, up to eps, often enough."""
        if len(points) < self.num_clusters:
            return self
        keys = jax.random.split(checks.key(key), SEEDINGS)
        with jax.enable_x64(True):
            Z = jnp.asarray(exact_features(self.kernel, points))
            labels, objectives = _seedings(keys, Z, self.num_clusters)
            best_first = labels[jnp.argsort(objectives)]
        # Of several seedings the best is taken, so that only what is better than the first bad one counts.
        bad = (
            number
            for number in range(SEEDINGS)
            if self._disagreement(best_first[0], best_first[number]) > eps
        )
        found_by_one = next(bad, SEEDINGS) / SEEDINGS
        enough = (
            count for count in RESTARTS if (1 - found_by_one) ** count <= MISSED * delta
        )
        return replace(
            self, num_restarts=next(enough, RESTARTS[-1]), found_by_one=found_by_one
        )

    def prepare(
        self, key: Any, points: Any, labels: np.ndarray | None = None
    ) -> Clusters:
        """Cluster the points (s, dim) or `Rows` by the exact kernel, twice; their labels play no part in that.

        Raises ValueError if fewer than `num_clusters` points are distinct, or numbers are not finite.
        """
        rows = rows_of(points)
        num_distinct = len(distinct(rows.points)[0])
        if num_distinct < self.num_clusters:
            raise ValueError(
                f"num_clusters must be at most the number of distinct points, {num_distinct} of {len(rows.points)}, "
                f"got {self.num_clusters}; ask for fewer clusters"
            )
        with jax.enable_x64(True):
            Z = jnp.asarray(exact_features(self.kernel, rows.points))
            # All at once, which is faster than the restarts of `kmeans` one after the other.
            keys = jax.random.split(checks.key(key), 2 * self.num_restarts)
            partitions, objectives = _seedings(keys, Z, self.num_clusters)
            by_set = objectives.reshape(2, -1).argmin(axis=1)
            first = partitions[by_set[0]]
            second = partitions[self.num_restarts + by_set[1]]
            best = partitions[objectives.argmin()]
        return Clusters(
            jnp.asarray(rows.inputs),
            best,
            self._disagreement(first, second),
            self.num_restarts,
            None if labels is None else np.unique(labels, return_inverse=True)[1],
        )

    def cluster(self, key: Any, Z: jax.Array) -> tuple[jax.Array, float]:
        """Return the labels that `kmeans` gives to features, which zeros may fill up, and its objective."""
        labels, objective = _clustered(key, Z, self.num_clusters, self.num_restarts)
        return labels, float(objective)

    def error(self, key: Any, phi: Any, prepared: Clusters) -> float:
        """Return the share of points that the map's partition has elsewhere; NaN for features that are not finite."""
        labels, objective = self.cluster(
            checks.key(key), features(phi, prepared.points)
        )
        return (
            self._disagreement(prepared.labels, labels)
            if math.isfinite(objective)
            else math.nan
        )

    def agreement(self, key: Any, phi: Any, prepared: Clusters) -> float:
        """Return the adjusted Rand index of the classes and of a map's clusters, or the exact ones if phi is None."""
        labels = prepared.labels
        if phi is not None:
            labels = self.cluster(key, features(phi, prepared.points))[0]
        return float(adjusted_rand_index(prepared.classes, labels))

    def detail(self, _phi: Any, prepared: Clusters) -> dict[str, Any]:
        """Return how reliable the exact partition is, in words."""
        return {"words": prepared.words}

    def python(self, made: str) -> list[str]:
        """Return the lines of Python that cluster the rows of the table by the map `phi`."""
        arguments = f"{self.num_clusters}, num_restarts={self.num_restarts}"
        return [
            "from jaxkern.kmeans import kmeans",
            "rows = jnp.asarray(table.take(range(table.rows), dtype, raw=True))",
            f"key_seeds = jax.random.fold_in({made}, 2**31)",
            f"labels = kmeans(key_seeds, phi(rows), {arguments}).labels",
        ]

    def _disagreement(self, first: jax.Array, second: jax.Array) -> float:
        rate = float(
            misclassification_rate(first, second, num_labels=self.num_clusters)
        )
        # A tenth in float32 is more than a tenth, and would fail a limit of 0.1.
        return round(rate * len(first)) / len(first)


def exact_features(kernel: Any, points: np.ndarray) -> np.ndarray:
    """Return Z with Z Z' = K in float64 up to `RESIDUAL`, filled up with zeros: a Cholesky decomposition with pivots.

    Raises ValueError if the kernel of the points is not finite.
    """
    with jax.enable_x64(True):
        K = np.asarray(_gram(kernel, jnp.asarray(points)))
    if not np.isfinite(K).all():
        raise ValueError(
            "kernel k-means of the points is not finite; look for NaN or huge entries in the points"
        )
    spread = max(K.diagonal().mean() - K.mean(), 0.0)
    factor, order, rank, _ = lapack.dpstrf(K, tol=RESIDUAL * spread, lower=1)
    Z = np.empty((len(K), rank))
    Z[order - 1] = np.tril(factor)[:, :rank]
    return padded(Z)


_gram = jax.jit(gram)


@partial(compiled, static_argnums=2)
def _seedings(
    keys: jax.Array, Z: jax.Array, num_clusters: int
) -> tuple[jax.Array, jax.Array]:
    """Return the labels and the objective of k-means from one seeding for each key."""
    results = jax.vmap(lambda key: kmeans(key, Z, num_clusters))(keys)
    return results.labels, results.objective


@partial(compiled, static_argnums=(2, 3))
def _clustered(
    key: jax.Array, Z: jax.Array, num_clusters: int, num_restarts: int
) -> tuple[jax.Array, jax.Array]:
    # The tolerance of `kmeans` is relative to the mean variance of a column, which columns of zeros lower.
    columns = jnp.maximum(jnp.any(Z != 0, axis=0).sum(), 1)
    tolerance = _TOLERANCE * Z.shape[1] / columns.astype(Z.dtype)
    result = kmeans(
        key, Z, num_clusters, num_restarts=num_restarts, tolerance=tolerance
    )
    return result.labels, result.objective
