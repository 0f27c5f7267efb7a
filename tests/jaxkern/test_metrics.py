"""Scores of partitions against literal loops and peers; errors of Gram matrices against their eigenvalues."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from support.jaxprs import largest_intermediate
from support.numerics import eps

from jaxkern import metrics

SCORES = [
    metrics.rand_index,
    metrics.adjusted_rand_index,
    metrics.normalized_mutual_info,
]
PARTITION = [*SCORES, metrics.misclassification_rate]
GRAM = [metrics.spectral_error, metrics.frobenius_error]


def call(score, a, b):
    """Score two labelings of at most 41 labels; one num_labels for all of them is one compilation."""
    return (
        score(a, b, num_labels=41)
        if score is metrics.misclassification_rate
        else score(a, b)
    )


def rand_by_pairs(a, b):
    pairs = list(itertools.combinations(range(len(a)), 2))
    return (
        sum((a[i] == a[j]) == (b[i] == b[j]) for i, j in pairs) / len(pairs)
        if pairs
        else 1
    )


def rate_by_assignment(a, b):
    rows, columns = (
        np.unique(a, return_inverse=True)[1],
        np.unique(b, return_inverse=True)[1],
    )
    table = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(table, (rows, columns), 1)
    return 1 - table[linear_sum_assignment(-table)].sum() / len(a)


ORACLES = [
    (metrics.rand_index, rand_by_pairs),
    (metrics.adjusted_rand_index, adjusted_rand_score),
    (metrics.normalized_mutual_info, normalized_mutual_info_score),
    (metrics.misclassification_rate, rate_by_assignment),
]


def labelings(rng, n=40, count=12):
    """Pairs of labelings between independent and equal, with different numbers of cells; and trivial ones."""
    for trial in range(count):
        a = rng.integers(0, 1 + trial % 6, n)
        noise = rng.random(n) < trial / (count - 1)
        yield (
            a,
            np.where(noise, rng.integers(0, 1 + (3 * trial) % 7, n), (5 * a + 2) % 7),
        )
    yield from itertools.product(
        [np.zeros(n, int), np.arange(n), np.arange(n) % 2], repeat=2
    )
    yield from itertools.product(np.array([[0, 0], [0, 1]]), repeat=2)
    yield np.array([5]), np.array([3])


@pytest.mark.parametrize(("score", "oracle"), ORACLES)
def test_scores_agree_with_an_independent_oracle(score, oracle, dtype, rng):
    """From either side, and whatever labels are called."""
    for a, b in labelings(rng):
        names = rng.permutation(np.arange(-50, 50)) * 1000 - 3
        for first, second in ((a, b), (b, names[a])):
            value = call(score, first, second)
            assert value.dtype == dtype and value.shape == ()
            assert abs(float(value) - oracle(first, second)) <= 4 * eps(dtype)


@pytest.mark.parametrize(
    ("score", "best"),
    [*[(score, 1) for score in SCORES], (metrics.misclassification_rate, 0)],
)
@pytest.mark.parametrize("cells", [1, 5, 40])
def test_agreement_is_exact_and_one_moved_point_is_seen(score, best, cells, dtype):
    a = np.arange(40) % cells
    b = 10 - 3 * a
    assert float(call(score, a, b)) == best
    b[0] = -1000
    if cells < 40:  # a point alone in its cell may be renamed
        assert abs(float(call(score, a, b)) - best) > 0.005


def test_rounding_makes_no_mutual_information_negative():
    """Independent partitions: without its limit the score is -eps in float32, in a program with optimisations."""
    points, before = jnp.arange(21), jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    try:
        score = jax.jit(metrics._normalized_mutual_info.__wrapped__)(
            *metrics._cell_sizes(points // 7, points % 7)
        )
    finally:
        jax.config.update("jax_disable_most_optimizations", before)
    assert 0 <= float(score) <= 4 * eps("float32")


@pytest.mark.parametrize("share", [0.5, 2e-5])
def test_float32_keeps_its_digits_for_many_points(share, rng):
    """7e4 points make 2.4e9 pairs, beyond int32; a share of 2e-5 leaves all but a few in one cell."""
    n = 70_000
    a = (rng.random(n) < share).astype(int)
    b = np.where(rng.random(n) < 0.1 * share, 1 - a, a)
    single = [float(score(a, b)) for score in SCORES]
    with jax.enable_x64(True):
        double = [float(score(a, b)) for score in SCORES]
    np.testing.assert_allclose(
        single, double, rtol=4 * eps("float32"), atol=4 * eps("float32")
    )
    assert abs(double[1] - adjusted_rand_score(a, b)) < 1e-9
    assert abs(double[2] - normalized_mutual_info_score(a, b)) < 1e-9


def test_labels_beyond_the_default_integers_are_told_apart():
    a = np.arange(40) % 4
    assert float(metrics.rand_index(a * 2**32, a)) == 1
    assert (
        float(call(metrics.misclassification_rate, a * 2**33, np.zeros(40, np.uint8)))
        == 0.75
    )
    assert (
        float(
            metrics.rand_index((a * (2**30 - 1)).astype(np.uint32), a.astype(np.int8))
        )
        == 1
    )
    assert float(metrics.rand_index(-a * 2**32, a)) == 1


@pytest.mark.parametrize("score", SCORES)
def test_partition_scores_never_hold_all_pairs(score):
    labels = jnp.zeros(300, jnp.int32)
    assert largest_intermediate(score, labels, labels) <= 2 * 300


def test_the_side_with_more_labels_sizes_the_matching():
    a, b = np.zeros(6, int), np.array([0, 1, 1, 1, 1, 2])
    for first, second in ((a, b), (b, a)):
        for num_labels in (None, 3):
            rate = metrics.misclassification_rate(first, second, num_labels=num_labels)
            assert float(rate) == pytest.approx(1 / 3, abs=eps("float32"))
        with pytest.raises(
            ValueError,
            match="num_labels must be at least the number of distinct labels, 3, got 2",
        ):
            metrics.misclassification_rate(first, second, num_labels=2)


def test_the_table_of_a_matching_has_no_more_labels_than_points():
    labels = jnp.arange(6)
    generous = partial(metrics.misclassification_rate, num_labels=1000)
    assert largest_intermediate(generous, labels, labels) <= 6 * 6


def test_traced_labels_beyond_num_labels_are_errors():
    a = jnp.array([0, 0, 1, 1, 2])
    assert float(
        jax.jit(lambda x: metrics.misclassification_rate(x, x, num_labels=2))(a)
    ) == pytest.approx(0.2)


def test_traced_labels_need_num_labels():
    with pytest.raises(ValueError, match="num_labels must be given"):
        jax.jit(metrics.misclassification_rate)(jnp.array([0, 1]), jnp.array([0, 1]))
    for one_traced in (
        lambda x: metrics.misclassification_rate(x, [0, 1]),
        lambda x: metrics.misclassification_rate([0, 1], x),
    ):
        with pytest.raises(ValueError, match="num_labels must be given"):
            jax.jit(one_traced)(jnp.array([0, 1]))
        with pytest.raises(ValueError, match="num_labels must be given"):
            jax.vmap(one_traced)(jnp.array([[0, 1]]))


@pytest.mark.parametrize("score", PARTITION)
def test_bad_labels_are_refused_by_name(score):
    good = np.array([0, 1, 1])
    with pytest.raises(ValueError, match="labels_true must hold integer labels"):
        score(good.astype("float32"), good)
    with pytest.raises(ValueError, match="labels_pred must hold integer labels"):
        score(good, good.astype(bool))
    with pytest.raises(ValueError, match=r"labels_pred must have shape \(3,\)"):
        score(good, good[:2])
    with pytest.raises(ValueError, match="labels_true must have shape"):
        score(good[:0], good[:0])
    with pytest.raises(ValueError, match="labels_true must have shape"):
        score(good[:, None], good)


@pytest.mark.parametrize(
    ("error", "norm", "power"), [(GRAM[0], 2, 1), (GRAM[1], None, 2)]
)
def test_gram_errors_are_literal_norms(error, norm, power, dtype, rng):
    """Of differences with eigenvalues of both signs, and of matrices that are not symmetric."""
    n = 12
    K, Khat = (A @ A.T for A in rng.normal(size=(2, n, n)))
    assert np.linalg.eigvalsh(K - Khat)[0] < 0 < np.linalg.eigvalsh(K - Khat)[-1]
    for A, B in ((K, Khat), rng.normal(size=(2, n, n))):
        A, B = A.astype(dtype), B.astype(dtype)
        found, size = error(A, B), np.linalg.norm(np.float64(A) - np.float64(B), norm)
        assert (
            found.dtype == dtype
            and abs(float(found) - size / n**power) <= 10 * eps(dtype) * size
        )
        assert float(error(A, A)) == 0 and float(error(B, A)) == float(found)
    assert float(error(np.ones((1, 1), dtype), np.zeros((1, 1), dtype))) == 1


@pytest.mark.parametrize("error", GRAM)
def test_bad_matrices_are_refused_by_name(error):
    square = np.eye(3, dtype=np.float32)
    with pytest.raises(ValueError, match="K must be a square matrix"):
        error(square[:2], square)
    with pytest.raises(ValueError, match="Khat must be a square matrix"):
        error(square, square[0])
    with pytest.raises(ValueError, match="Khat must have the shape of K"):
        error(square, np.eye(2, dtype=np.float32))
    with pytest.raises(ValueError, match="K must have dtype float32 or float64"):
        error(np.eye(3, dtype=int), square)
    with (
        jax.enable_x64(True),
        pytest.raises(ValueError, match="Khat must have the dtype of K"),
    ):
        error(np.eye(3, dtype="float32"), np.eye(3, dtype="float64"))
