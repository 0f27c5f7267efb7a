"""How well two partitions agree, and how far one Gram matrix is from another.

The partition scores need no contingency table. Sorting tells every point how many points share its cell in the one
partition (a_i), in the other (b_i) and in both (c_i); each score is one minus means of terms that are never negative:

    Rand index                1 - mean (a_i + b_i - 2 c_i) / (n - 1)
    adjusted Rand index       1 - (the mean above) / (s_a (1 - s_b) + s_b (1 - s_a)),  s_a = mean (a_i - 1) / (n - 1)
    normalised information    1 - mean [log(a_i / c_i) + log(b_i / c_i)] / mean [log(n / a_i) + log(n / b_i)]

Nothing cancels and nothing overflows, so float32 is good for millions of points, and agreement gives exactly 1. With
weights w, a_i, b_i and c_i are sums of weights, means are weighted, and a point makes max(w_i - 1, 0) w_i pairs with
itself: those of copies, where weights are whole.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import checks
from jaxkern._types import Array, ArrayLike, Float, Int
from jaxkern._weights import mass
from jaxkern.linalg import svd
from jaxkern.linalg._dense import norm

__all__ = [
    "adjusted_rand_index", "frobenius_error", "misclassification_rate", "normalized_mutual_info", "rand_index",
    "spectral_error",
]  # fmt: skip


def rand_index(
    labels_true: Int[ArrayLike, " n"],
    labels_pred: Int[ArrayLike, " n"],
    *,
    weights: Float[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """Return the fraction of pairs of points on which two partitions agree.

    A pair counts as agreement where both partitions put it together or both keep it apart:
    1 - (#pairs together in exactly one of the two) / (n (n - 1) / 2). Symmetric; names of labels do not matter.

    Parameters
    ----------
    labels_true, labels_pred : (n,) integers of any kind, negative and not contiguous ones included.
    weights : (n,) non-negative weights, float32 or float64, of any positive sum; a row of weight 0 does not exist,
        whatever it holds. By default all are 1. NumPy weights that are negative, not finite or all zero raise
        ValueError; with others that are, the result is NaN.

    Returns
    -------
    A scalar in [0, 1] of the default float dtype; 1 for a single point, which has no pairs.

    Notes
    -----
    Two sorts, O(n log n) time, O(n) memory, as for the two scores that follow. Source: Rand (1971).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> float(rand_index(jnp.array([0, 0, 1, 1]), jnp.array([7, 7, -2, -2])))
    1.0
    """
    return _rand_index(*_cells(labels_true, labels_pred, weights))


def adjusted_rand_index(
    labels_true: Int[ArrayLike, " n"],
    labels_pred: Int[ArrayLike, " n"],
    *,
    weights: Float[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """Return the Rand index corrected for chance: 1 for agreement, 0 in expectation for a random relabelling.

    (RI - E RI) / (max RI - E RI), where E is over all partitions with the same cell sizes. 1 where the partitions are
    equal, so also for one point, for two single cells and for two partitions into single points, as in scikit-learn.

    Parameters
    ----------
    labels_true, labels_pred, weights : as in `rand_index`.

    Returns
    -------
    A scalar in [-1/2, 1] of the default float dtype.

    Notes
    -----
    Source: Hubert and Arabie (1985).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> bool(adjusted_rand_index(jnp.array([0, 0, 1, 1]), jnp.array([0, 1, 0, 1])) < 0)
    True
    """
    return _adjusted_rand_index(*_cells(labels_true, labels_pred, weights))


def normalized_mutual_info(
    labels_true: Int[ArrayLike, " n"],
    labels_pred: Int[ArrayLike, " n"],
    *,
    weights: Float[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """Return the mutual information of two partitions over the arithmetic mean of their entropies.

    I(a, b) / ((H(a) + H(b)) / 2), with the empirical distribution of the n points; the base of the logarithm cancels.
    1 where both partitions are a single cell, 0 where only one of them is, as in scikit-learn.

    Parameters
    ----------
    labels_true, labels_pred, weights : as in `rand_index`.

    Returns
    -------
    A scalar in [0, 1] of the default float dtype.

    Notes
    -----
    Source: Vinh, Epps and Bailey (2010), with their NMI_sum.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> float(normalized_mutual_info(jnp.array([0, 0, 1, 1]), jnp.array([3, 3, 3, 3])))
    0.0
    """
    return _normalized_mutual_info(*_cells(labels_true, labels_pred, weights))


def misclassification_rate(
    labels_true: Int[ArrayLike, " n"],
    labels_pred: Int[ArrayLike, " n"],
    *,
    num_labels: int | None = None,
    weights: Float[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """Return the smallest fraction of mismatches over all one-to-one matchings of predicted to true labels.

    1 - max_matching #{i : labels_pred_i is matched to labels_true_i} / n, by linear assignment. Where one side has more
    distinct labels than the other, the ones left over match nothing. Symmetric.

    Parameters
    ----------
    labels_true, labels_pred, weights : as in `rand_index`.
    num_labels : largest number of distinct labels on either side, at least 1. Counted from the data when left out,
        which needs concrete labels; to be given under `jit` and `vmap`. There, labels beyond the first `num_labels`
        in increasing order (it was set too small) count as errors.

    Returns
    -------
    A scalar in [0, 1] of the default float dtype. The matching is optimal for n below 2^24 in float32
    (2^53 in float64); beyond that the counts themselves are rounded.

    Notes
    -----
    O(n log n + num_labels^3) time, O(n + num_labels^2) memory. Needs optax.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> float(misclassification_rate(jnp.array([0, 0, 1, 1]), jnp.array([1, 1, 0, 1])))
    0.25
    """
    first, second, weights = _two_labelings(labels_true, labels_pred, weights)
    if num_labels is not None:
        num_labels = checks.count("num_labels", num_labels)
    if isinstance(first, jax.core.Tracer) or isinstance(second, jax.core.Tracer):
        if num_labels is None:
            raise ValueError(
                "num_labels must be given when the labels are traced (under jit or vmap), got None; "
                "pass the largest number of distinct labels on either side"
            )
    else:
        distinct = max(
            np.unique(np.asarray(first)).size, np.unique(np.asarray(second)).size
        )
        if num_labels is None:
            num_labels = distinct
        elif num_labels < distinct:
            raise ValueError(
                f"num_labels must be at least the number of distinct labels, {distinct}, got {num_labels}; "
                "pass a larger one, or None to count them"
            )
    return _misclassification_rate(
        first, second, weights, num_labels=min(num_labels, first.shape[0])
    )


def spectral_error(
    K: Float[ArrayLike, "n n"],
    Khat: Float[ArrayLike, "n n"],
    *,
    weights: Float[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """Return the error of an approximate Gram matrix in the spectral norm, |K - Khat|_2 / n.

    The norm is the largest singular value, so the matrices may also be unsymmetric. `audit.spectral_error` bounds the
    same error of a feature map on given points, without a matrix of size n x n.

    Parameters
    ----------
    K, Khat : (n, n), the same floating dtype.
    weights : (n,) weights of the rows and columns, in the dtype of K; else as in `rand_index`.

    Notes
    -----
    O(n^3) time, O(n^2) memory.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> float(spectral_error(jnp.eye(4), jnp.zeros((4, 4))))
    0.25
    """
    return _error(*_two_grams(K, Khat, weights), spectral=True)


def frobenius_error(
    K: Float[ArrayLike, "n n"],
    Khat: Float[ArrayLike, "n n"],
    *,
    weights: Float[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """Return the error of an approximate Gram matrix in the Frobenius norm, |K - Khat|_F / n^2.

    Parameters
    ----------
    K, Khat, weights : as in `spectral_error`.

    Notes
    -----
    O(n^2) time and memory.
    """
    return _error(*_two_grams(K, Khat, weights), spectral=False)


def _two_labelings(
    labels_true: Any, labels_pred: Any, weights: Any
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """Return the labels, where the weight is zero those of another point, and the weights."""
    first = checks.labels("labels_true", _narrow(labels_true))
    second = checks.labels("labels_pred", _narrow(labels_pred), size=first.shape[0])
    if weights is None:
        return first, second, None
    own = checks.floating("weights", weights)
    checks.weights(weights, "labels", jax.ShapeDtypeStruct(first.shape, own.dtype))
    exists, other = own > 0, jnp.argmax(own)
    first, second = (
        jnp.where(exists, first, first[other]),
        jnp.where(exists, second, second[other]),
    )
    return first, second, own.astype(_default_float())


def _cells(labels_true: Any, labels_pred: Any, weights: Any) -> tuple[jax.Array, ...]:
    first, second, weights = _two_labelings(labels_true, labels_pred, weights)
    return (
        _cell_sizes(first, second)
        if weights is None
        else (*_cell_masses(first, second, weights), weights)
    )


def _narrow(value: Any) -> Any:
    """Rename NumPy labels that JAX's default integers cannot hold: it would wrap them around, without a word."""
    if (
        isinstance(value, np.ndarray)
        and value.size
        and np.issubdtype(value.dtype, np.integer)
    ):
        limits = np.iinfo(jax.dtypes.canonicalize_dtype(value.dtype))
        if value.min() < limits.min or value.max() > limits.max:
            return (
                np.unique(value, return_inverse=True)[1]
                .reshape(value.shape)
                .astype(np.int32)
            )
    return value


def _two_grams(
    K: Any, Khat: Any, weights: Any
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    K = checks.square("K", K)
    Khat = checks.same_dtype("Khat", checks.square("Khat", Khat), "K", K)
    if Khat.shape != K.shape:
        raise ValueError(f"Khat must have the shape of K, {K.shape}, got {Khat.shape}")
    return K, Khat, checks.weights(weights, "K", K)


def _default_float() -> Any:
    return jax.dtypes.canonicalize_dtype(float)


def _run_lengths(starts: jax.Array) -> Float[Array, ""]:
    """Return the length of the run that each element of a sorted sequence is in, from the marked first elements."""
    position = lax.iota(jnp.int32, starts.shape[0])
    first = lax.cummax(jnp.where(starts, position, 0))
    ends = jnp.concatenate([starts[1:], jnp.ones(1, bool)])
    last = lax.cummin(jnp.where(ends, position, starts.shape[0]), reverse=True)
    return last - first + 1


def _starts(*keys: jax.Array) -> jax.Array:
    """Mark the elements of sorted keys that differ from their predecessor."""
    changes = [key[1:] != key[:-1] for key in keys]
    return jnp.concatenate([jnp.ones(1, bool), jnp.stack(changes).any(axis=0)])


@jax.jit  # by itself: the sorts are slow to compile, and all three scores begin with them
def _cell_sizes(
    first: jax.Array, second: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return how many points share each point's cell in the first, the second and the joint partition, in one order."""
    in_order, order = lax.sort(
        (second, lax.iota(jnp.int32, second.shape[0])), num_keys=1
    )
    second_size = (
        jnp.zeros(second.shape, jnp.int32)
        .at[order]
        .set(_run_lengths(_starts(in_order)))
    )
    first, second, second_size = lax.sort((first, second, second_size), num_keys=2)
    return (
        _run_lengths(_starts(first)),
        second_size,
        _run_lengths(_starts(first, second)),
    )


def _ranks(*labels: jax.Array) -> jax.Array:
    """Number the cells of a partition from zero, in the order of their labels."""
    *in_order, order = lax.sort(
        (*labels, lax.iota(jnp.int32, labels[0].shape[0])), num_keys=len(labels)
    )
    rank = jnp.cumsum(_starts(*in_order), dtype=jnp.int32) - 1
    return jnp.zeros(labels[0].shape, jnp.int32).at[order].set(rank)


@jax.jit
def _cell_masses(
    first: jax.Array, second: jax.Array, weights: jax.Array
) -> tuple[jax.Array, ...]:
    """Return what `_cell_sizes` does, in sums of weights: cells of the same points have sums in the same order."""
    ranks = _ranks(first), _ranks(second), _ranks(first, second)
    return tuple(
        jax.ops.segment_sum(weights, rank, weights.shape[0])[rank] for rank in ranks
    )


def _mean_over_pairs(counts: jax.Array, weights: jax.Array | None) -> jax.Array:
    if weights is None:
        return (counts.astype(_default_float()) / max(counts.shape[0] - 1, 1)).mean()
    pairs = jnp.sum(weights * (mass(weights) - jnp.minimum(weights, 1)))
    return jnp.sum(weights * counts) / jnp.where(pairs == 0, 1, pairs)


def _split_pairs(
    a: jax.Array, b: jax.Array, c: jax.Array, weights: jax.Array | None
) -> jax.Array:
    """Return the share of pairs that exactly one of the two partitions puts together."""
    # As two means: the integers a + b would overflow for half as many points as n does.
    return _mean_over_pairs(a - c, weights) + _mean_over_pairs(b - c, weights)


@jax.jit
def _rand_index(
    a: jax.Array, b: jax.Array, c: jax.Array, weights: jax.Array | None = None
) -> jax.Array:
    return 1 - _split_pairs(a, b, c, weights)


@jax.jit
def _adjusted_rand_index(
    a: jax.Array, b: jax.Array, c: jax.Array, weights: jax.Array | None = None
) -> jax.Array:
    n, own = (
        (a.shape[0], 1) if weights is None else (mass(weights), jnp.minimum(weights, 1))
    )
    split = _split_pairs(a, b, c, weights)
    agree = split == 0
    # 1 - s is a mean of the exact integers n - a: subtracting from 1 would lose the digits of one dominant cell.
    s_a, s_b = (_mean_over_pairs(size - own, weights) for size in (a, b))
    chance = s_a * _mean_over_pairs(n - b, weights) + s_b * _mean_over_pairs(
        n - a, weights
    )
    return 1 - split / jnp.where(agree, 1, chance)


@jax.jit
def _normalized_mutual_info(
    a: jax.Array, b: jax.Array, c: jax.Array, weights: jax.Array | None = None
) -> jax.Array:
    n, dtype = a.shape[0] if weights is None else mass(weights), _default_float()

    def mean_log_ratio(large: jax.Array | int, small: jax.Array) -> jax.Array:
        # log1p of the exact difference: log(n / a) has no correct digit where a is nearly n.
        ratios = jnp.log1p((large - small).astype(dtype) / small.astype(dtype))
        return ratios.mean() if weights is None else jnp.sum(weights * ratios) / n

    entropies = mean_log_ratio(n, a) + mean_log_ratio(n, b)
    apart = mean_log_ratio(a, c) + mean_log_ratio(b, c)
    trivial = entropies == 0
    return jnp.maximum(
        1 - apart / jnp.where(trivial, 1, entropies), 0
    )  # apart is 0 where both are trivial


@partial(jax.jit, static_argnames="num_labels")
def _misclassification_rate(
    first: jax.Array, second: jax.Array, weights: jax.Array | None, *, num_labels: int
) -> jax.Array:
    from optax.assignment import hungarian_algorithm

    a, b = _ranks(first), _ranks(second)
    # A rank beyond the table is dropped, which leaves its point unmatched: an error, as documented.
    table = jnp.zeros(
        (num_labels, num_labels), jnp.int32 if weights is None else weights.dtype
    )
    table = table.at[a, b].add(1 if weights is None else weights, mode="drop")
    rows, columns = hungarian_algorithm(-table.astype(_default_float()))
    if (
        weights is not None
    ):  # summed over the points that do not match, so that agreement is exactly zero
        match = (
            jnp.full(num_labels, num_labels, jnp.int32)
            .at[rows]
            .set(columns.astype(jnp.int32))
        )
        wrong = match.at[a].get(mode="fill", fill_value=num_labels) != b
        return jnp.sum(jnp.where(wrong, weights, 0)) / mass(weights)
    mismatches = first.shape[0] - table[rows, columns].sum(dtype=jnp.int32)
    return mismatches.astype(_default_float()) / first.shape[0]


@partial(jax.jit, static_argnames="spectral")
def _error(
    K: jax.Array, Khat: jax.Array, weights: jax.Array | None, *, spectral: bool
) -> jax.Array:
    """Return the norm of D (K - Khat) D, D = diag(sqrt(w)), over the sum of the weights or its square."""
    if weights is None:
        size: Any = K.shape[0]
        difference = K - Khat
    else:
        size, roots, exists = (
            mass(weights),
            jnp.sqrt(weights),
            (weights > 0)[:, None] & (weights > 0)[None, :],
        )
        difference = (
            roots[:, None]
            * (jnp.where(exists, K, 0) - jnp.where(exists, Khat, 0))
            * roots[None, :]
        )
    if not spectral:
        return norm(difference) / size**2
    # Singular values alone: for small matrices twice as fast as all eigenvalues, as fast for large ones. LAPACK may
    # never return from a matrix with an infinite entry where a gradient asks for the vectors, too.
    values = svd(
        jnp.where(jnp.isfinite(difference).all(), difference, jnp.nan), compute_uv=False
    )
    return jnp.max(values) / size
