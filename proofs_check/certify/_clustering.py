"""The goal "clustering": k-means of a map's features shall find the clusters of kernel k-means.

k-means knows points by the distances of their features alone, so that one program serves the exact kernel and every
map, of whatever number of features: it is given the (s, s) Gram matrix of the centred features, scaled to a mean
diagonal of 1. A partition with members C_j has the means m_j = sum_{i in C_j} phi(x_i) / n_j, and

    |phi(x_i) - m_j|^2 = G_ii - 2 (G M)_ij + (M' G M)_jj,    M_ij = 1 / n_j for i in C_j and 0 elsewhere,

so an iteration is one product of G with the columns M of all restarts, in float64: the kernel's from the points in
float64, a map's from its features as they came out. Scaling changes neither a partition nor their
order, which lets maps like Kernel JL take part, whose distances are of another size than the kernel's.

k-means only finds local minima. The map is not to be blamed for that: its partition is the best of the same number of
seedings and of one start from the exact partition, and the goal is about the minimum, not about what one run of
k-means happens to find. What the exact kernel cannot repeat itself is measured too, as `Clusters.own_disagreement`.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import checks
from jaxkern.draws import invert, numbered
from jaxkern.gram import center, gram
from jaxkern.kernels import psd_kernel
from jaxkern.linalg import matmul
from jaxkern.metrics import misclassification_rate
from proofs_check.certify._model import Goal
from proofs_check.certify._rows import distinct, features, ranged, rows_of

_MOST_ITERATIONS = 100


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
    """

    points: jax.Array
    labels: jax.Array
    own_disagreement: float
    num_restarts: int

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

    The misclassification rate between the partition of the features and that of kernel k-means on the full Gram matrix,
    at the best matching of their clusters. It is 0 for every map that keeps all distances up to one factor.

    Attributes
    ----------
    kernel : positive semidefinite.
    num_clusters : at least 2.
    num_restarts : seedings of k-means on the features; one more for each of the two sets for the exact kernel.

    Notes
    -----
    `prepare` and `error` take s^2 num_features multiply-adds for the Gram matrix and 2 s^2 num_restarts num_clusters
    for each of some 10 to 30 iterations: seconds for more than 2,000 points; memory 2 s^2. No embedding of the exact
    kernel is computed, which would take s^3. Programs are compiled once for each number of points and 64 features.
    """

    kernel: Any
    num_clusters: int
    num_restarts: int = 10

    name = "clustering"
    words = (
        "the share of points that k-means of the features puts into another cluster than kernel k-means does, "
        "at the best matching of the clusters"
    )

    def __post_init__(self) -> None:
        """Check what can be checked without points."""
        self.kernel = psd_kernel(self.kernel)
        self.num_clusters = checks.count("num_clusters", self.num_clusters, minimum=2)
        self.num_restarts = checks.count("num_restarts", self.num_restarts)

    def prepare(
        self, key: Any, points: Any, _labels: np.ndarray | None = None
    ) -> Clusters:
        """Cluster the points (s, dim) or `Rows` by the exact kernel, twice; the labels of the points play no part.

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
            G = _kernel_gram(self.kernel, rows.points)
        first_key, second_key = jax.random.split(checks.key(key))
        nothing = jnp.full(len(rows.points), -1, jnp.int32)
        (first, first_within), (second, second_within) = (
            self._best(one, G, nothing) for one in (first_key, second_key)
        )
        if not math.isfinite(first_within + second_within):
            raise ValueError(
                "kernel k-means of the points is not finite; look for NaN or huge entries in the points"
            )
        better = first if first_within <= second_within else second
        return Clusters(
            jnp.asarray(rows.inputs),
            better,
            self._disagreement(first, second),
            self.num_restarts + 1,
        )

    def error(self, key: Any, phi: Any, prepared: Clusters) -> float:
        """Return the share of points that the map's partition has elsewhere; NaN for features that are not finite."""
        labels, within = self._best(
            checks.key(key), _gram_of(phi, prepared.points), prepared.labels
        )
        return (
            self._disagreement(prepared.labels, labels)
            if math.isfinite(within)
            else math.nan
        )

    def detail(self, _phi: Any, prepared: Clusters) -> dict[str, Any]:
        """Return how reliable the exact partition is, in words."""
        return {"words": prepared.words}

    def _best(
        self, key: jax.Array, G: jax.Array, start: jax.Array
    ) -> tuple[jax.Array, float]:
        with jax.enable_x64(True):
            labels, within = _partition(
                key,
                G,
                start,
                num_clusters=self.num_clusters,
                num_restarts=self.num_restarts,
            )
            return labels, float(within)

    def _disagreement(self, first: jax.Array, second: jax.Array) -> float:
        rate = float(
            misclassification_rate(first, second, num_labels=self.num_clusters)
        )
        # A tenth in float32 is more than a tenth, and would fail a limit of 0.1.
        return round(rate * len(first)) / len(first)


def _gram_of(phi: Any, points: jax.Array) -> jax.Array:
    """Return the scaled Gram matrix of the centred features, in float64."""
    Z = features(phi, points)
    with jax.enable_x64(True):
        return _features_gram(Z.astype("float64"))


@jax.jit
def _features_gram(Z: jax.Array) -> jax.Array:
    Z = ranged(Z)
    Z = Z - jnp.mean(Z, axis=0, keepdims=True)
    return _scaled(matmul(Z, Z.T))


@jax.jit
def _kernel_gram(kernel: Any, points: jax.Array) -> jax.Array:
    return _scaled(center(gram(kernel, points)))


def _scaled(G: jax.Array) -> jax.Array:
    """Return the matrix over the mean of its diagonal."""
    size = jnp.mean(jnp.diagonal(G))
    return G / jnp.where(size > 0, size, 1)


@partial(jax.jit, static_argnames=("num_clusters", "num_restarts"))
def _partition(
    key: jax.Array,
    G: jax.Array,
    start: jax.Array,
    *,
    num_clusters: int,
    num_restarts: int,
) -> tuple[jax.Array, jax.Array]:
    """Return the best of some partitions, and the variance within its clusters.

    All but one are seeded, and that one starts from given labels; where these are -1 it is seeded as well.
    """
    labels = jax.vmap(lambda one: _seeded(one, G, num_clusters))(
        numbered(key, num_restarts + 1)
    )
    labels = labels.at[-1].set(jnp.where(start >= 0, start, labels[-1]))

    def unfinished(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        return (state[0] != state[1]).any() & (state[2] < _MOST_ITERATIONS)

    def step(
        state: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        return _moved(G, state[0], num_clusters), state[0], state[2] + 1

    labels = lax.while_loop(
        unfinished, step, (labels, jnp.full_like(labels, -1), jnp.zeros((), jnp.int32))
    )[0]
    within = jax.vmap(lambda one: _variance_within(G, one, num_clusters))(labels)
    best = jnp.argmin(jnp.where(jnp.isfinite(within), within, jnp.inf))
    return labels[best], within[best]


def _seeded(key: jax.Array, G: jax.Array, num_clusters: int) -> jax.Array:
    """Return the nearest of seeds chosen by greedy k-means++ with 2 + log k candidates, for every point."""
    lengths = jnp.diagonal(G)
    num_candidates = 2 + int(math.log(num_clusters))

    def choose(
        state: tuple[jax.Array, jax.Array], number: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array], None]:
        nearest, labels = state
        uniform = jax.random.uniform(
            jax.random.fold_in(key, number), (num_candidates,), G.dtype
        )
        weights = jnp.where(number == 0, jnp.ones_like(nearest), nearest)
        drawn = jax.vmap(invert, (None, 0))(weights, uniform)
        # Nothing rounded comes out negative, and no point is away from itself.
        distances = jnp.maximum(
            lengths[None, :] + lengths[drawn][:, None] - 2 * G[drawn], 0
        )
        left = jnp.minimum(distances, nearest[None, :]).sum(axis=1)
        best = distances[jnp.where(number == 0, 0, jnp.argmin(left))]
        closer = best < nearest
        return (
            jnp.where(closer, best, nearest),
            jnp.where(closer, number.astype(jnp.int32), labels),
        ), None

    state = jnp.full(len(G), jnp.inf, G.dtype), jnp.zeros(len(G), jnp.int32)
    return lax.scan(choose, state, jnp.arange(num_clusters, dtype=jnp.uint32))[0][1]


def _moved(G: jax.Array, labels: jax.Array, num_clusters: int) -> jax.Array:
    """Return the nearest mean of every point, for partitions (r, s); a cluster that is lost gets a far point.

    A distance of the size of rounding is none, or clusters would take equal points from each other for ever.
    """
    num_points, eps = len(G), float(jnp.finfo(G.dtype).eps)
    lengths = jnp.diagonal(G)
    averages, counts = jax.vmap(lambda one: _averages(one, num_clusters, G.dtype))(
        labels
    )
    # Points come last: a minimum over the few clusters is then one over long rows.
    products = matmul(averages.reshape(-1, num_points), G).reshape(averages.shape)
    squares = (averages * products).sum(axis=2, keepdims=True)
    scores = jnp.where(counts[:, :, None] > 0, squares - 2 * products, jnp.inf)
    moved = lax.argmin(scores, 1, jnp.int32)
    distances = lengths[None, :] + scores.min(axis=1)
    rounding = 8 * math.sqrt(num_points) * eps * lengths.max()

    def filled(moved: jax.Array, distances: jax.Array) -> jax.Array:
        empty = jnp.zeros(num_clusters, jnp.int32).at[moved].add(1) == 0
        far = lax.top_k(distances.astype(jnp.float32), num_clusters)[1]
        chosen = far[jnp.maximum(jnp.cumsum(empty) - 1, 0)]
        chosen = jnp.where(empty & (distances[chosen] > rounding), chosen, num_points)
        return moved.at[chosen].set(
            jnp.arange(num_clusters, dtype=jnp.int32), mode="drop"
        )

    return jax.vmap(filled)(moved, distances)


def _averages(
    labels: jax.Array, num_clusters: int, dtype: Any
) -> tuple[jax.Array, jax.Array]:
    """Return M' (k, s), whose rows take the mean over a cluster, and the sizes (k,) of the clusters."""
    members = (
        labels[None, :] == jnp.arange(num_clusters, dtype=jnp.int32)[:, None]
    ).astype(dtype)
    counts = members.sum(axis=1)
    return members / jnp.maximum(counts, 1)[:, None], counts


def _variance_within(G: jax.Array, labels: jax.Array, num_clusters: int) -> jax.Array:
    """Return the mean squared distance of a point from the mean of its cluster: 1 less the variance between them."""
    averages, counts = _averages(labels, num_clusters, G.dtype)
    between = (averages * matmul(averages, G)).sum(axis=1)
    return jnp.mean(jnp.diagonal(G)) - (counts / len(G) * between).sum()
