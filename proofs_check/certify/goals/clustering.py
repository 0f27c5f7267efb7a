"""The goal "clustering": k-means of a map's features finds the clusters of kernel k-means.

A draw is what a user does: a map is drawn, and `jaxkern.kmeans.kmeans` clusters its features from seeds of its own,
with the number of restarts that the certificate prints. Nothing starts from the exact partition. k-means only finds
local minima, and a draw that ends in a bad one has failed, whether the map or the seeds are to blame.

Kernel k-means itself is k-means of exact features Z, K = Z Z' in float64. Its partition is the better one of two sets
of restarts. How far the two differ is measured too, as `Clusters.own_disagreement`.

`Clustering.with_restarts` chooses the number of restarts: k-means of the exact features is seeded `SEEDINGS` times, and
the share of seedings that end near the best partition says how many restarts miss it rarely enough.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from scipy.linalg import lapack

from jaxkern import checks
from jaxkern.gram import gram
from jaxkern.kmeans import KMeansResult, kmeans
from jaxkern.metrics import adjusted_rand_index, misclassification_rate
from proofs_check.certify.goals import Goal
from proofs_check.certify.points import distinct, mapped, padding, rows_of

# Exact features leave out at most this share of the mean squared distance of a point from the mean. More would move
# points between clusters; less takes more features, and k-means as many times as long.
RESIDUAL = 1e-6
# Seedings that tell how often one finds the best partition. Of 30, one in 25 tables would see no such seeding where one
# in ten is.
SEEDINGS = 100
# The numbers of restarts to choose from. One that is too small makes draws fail, and certifies nothing false.
RESTARTS = (10, 30, 100)
# Restarts with the exact kernel may miss the best partition with this share of delta; the rest is left to the map.
MISSED = 0.1
# The default of `kmeans`, which is what a user runs.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Clusters:
    """What kernel k-means makes of some points.

    Attributes
    ----------
    inputs : (s, dim), as maps get them.
    labels : (s,) int32, the better partition of two sets of restarts.
    own_disagreement : misclassification rate between the partitions of the two sets. If it is large, several
        partitions are nearly as good as the best, and an error of this size need not be the map's.
    num_restarts : seedings of each set.
    classes : (s,) int, the classes of the points; None without labels.
    """

    inputs: np.ndarray
    labels: np.ndarray
    own_disagreement: float
    num_restarts: int
    classes: np.ndarray | None

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
    30 iterations of k-means; `error` takes half of that, with num_features in place of the rank.
    """

    kernel: Any
    num_clusters: int
    num_restarts: int = RESTARTS[0]
    found_by_one: float | None = None

    name = "clustering"
    # 300 draws of 512 paired frequencies take 60 s on two cores for 2,000 rows with 10 restarts, ten times as long with
    # 100.
    most_rows = 2_000
    # With the exact kernel's own k-means of every sample 45 s, and for 1,000 rows 3 minutes. In 100 rows a cluster may
    # have a handful of points.
    sample_rows = 500

    def __post_init__(self) -> None:
        """Check the number of clusters: a table may have a single class."""
        self.num_clusters = checks.count("num_clusters", self.num_clusters, minimum=2)
        self.words = (
            f"the share of points that k-means of the features with {self.num_restarts} restarts puts into another "
            "cluster than kernel k-means does, at the best matching of the clusters"
        )

    def with_restarts(
        self, key: Any, points: np.ndarray, eps: float, delta: float
    ) -> "Clustering":
        """Return the goal with as many restarts as find the best partition of some points, up to eps, often enough."""
        if len(points) < self.num_clusters:
            return self
        Z = exact_features(self.kernel, points)
        seeds = jax.random.split(checks.key(key), SEEDINGS)
        results = [self._kmeans(seed, Z, 1) for seed in seeds]
        results.sort(key=_objective)
        best = results[0].labels
        good = 0
        # The best of several restarts is taken, so that only what is better than the first bad one counts.
        for result in results:
            if self._disagreement(best, result.labels) > eps:
                break
            good += 1
        found_by_one = good / SEEDINGS
        for num_restarts in RESTARTS:
            if (1 - found_by_one) ** num_restarts <= MISSED * delta:
                break
        return replace(self, num_restarts=num_restarts, found_by_one=found_by_one)

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
        Z = exact_features(self.kernel, rows.points)
        first, second = (
            self._kmeans(seed, Z, self.num_restarts)
            for seed in jax.random.split(checks.key(key))
        )
        best = min(first, second, key=_objective)
        classes = None
        if labels is not None:
            classes = np.unique(labels, return_inverse=True)[1]
        return Clusters(
            rows.inputs,
            np.asarray(best.labels),
            self._disagreement(first.labels, second.labels),
            self.num_restarts,
            classes,
        )

    def cluster(self, key: Any, phi: Any, inputs: np.ndarray) -> KMeansResult:
        """Return what `kmeans` makes of the features of a map."""
        return self._kmeans(checks.key(key), mapped(phi, inputs), self.num_restarts)

    def error(self, key: Any, phi: Any, prepared: Clusters) -> float:
        """Return the share of points that the map's partition has elsewhere; NaN for features that are not finite."""
        result = self.cluster(key, phi, prepared.inputs)
        if not math.isfinite(_objective(result)):
            return math.nan
        return self._disagreement(prepared.labels, result.labels)

    def agreement(self, key: Any, phi: Any, prepared: Clusters) -> float:
        """Return the adjusted Rand index of the classes and of a map's clusters, or the exact ones if phi is None."""
        labels = prepared.labels
        if phi is not None:
            labels = self.cluster(key, phi, prepared.inputs).labels
        return float(adjusted_rand_index(prepared.classes, labels))

    def python(self, key: str) -> list[str]:
        """Return the lines of Python that cluster the rows of the table by the map `phi`, from the name of its key."""
        arguments = f"{self.num_clusters}, num_restarts={self.num_restarts}"
        return [
            "from jaxkern.kmeans import kmeans",
            "rows = jnp.asarray(table.take(range(table.rows), dtype, raw=True))",
            f"key_seeds = jax.random.fold_in({key}, 2**31)",
            f"labels = kmeans(key_seeds, phi(rows), {arguments}).labels",
        ]

    def _kmeans(self, key: Any, Z: np.ndarray, num_restarts: int) -> KMeansResult:
        """Return the best clustering of features, which zeros may fill up, of some restarts."""
        # The tolerance of `kmeans` is relative to the mean variance of a column, which columns of zeros lower.
        columns = max(np.count_nonzero(Z.any(axis=0)), 1)
        tolerance = np.asarray(_TOLERANCE * Z.shape[1] / columns, Z.dtype)
        with jax.enable_x64(Z.dtype.itemsize == 8):
            return kmeans(
                key,
                Z,
                self.num_clusters,
                num_restarts=num_restarts,
                tolerance=tolerance,
            )

    def _disagreement(self, first: Any, second: Any) -> float:
        rate = misclassification_rate(
            np.asarray(first), np.asarray(second), num_labels=self.num_clusters
        )
        # A tenth in float32 is more than a tenth, and would fail a limit of 0.1.
        return round(float(rate) * len(first)) / len(first)


def _objective(result: KMeansResult) -> float:
    return float(result.objective)


def exact_features(kernel: Any, points: np.ndarray) -> np.ndarray:
    """Return Z with Z Z' = K in float64 up to `RESIDUAL`: a Cholesky decomposition with pivots.

    Raises ValueError if the kernel of the points is not finite.
    """
    with jax.enable_x64(True):
        K = np.asarray(gram(kernel, points))
    if not np.isfinite(K).all():
        raise ValueError(
            "kernel k-means of the points is not finite; look for NaN or huge entries in the points"
        )
    spread = max(K.diagonal().mean() - K.mean(), 0.0)
    factor, order, rank, _ = lapack.dpstrf(K, tol=RESIDUAL * spread, lower=1)
    Z = np.empty((len(K), rank))
    Z[order - 1] = np.tril(factor)[:, :rank]
    # Samples have factors of different ranks, and each number of columns would be a program.
    return np.pad(Z, ((0, 0), (0, padding(rank))))
