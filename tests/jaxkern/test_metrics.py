"""Scores of partitions against literal loops and peers; errors of Gram matrices against their norms."""

import itertools
from functools import partial

import house
import jax
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import (
    adjusted_rand_score,
    normalized_mutual_info_score,
    rand_score,
)
from support.jaxprs import largest_intermediate

from jaxkern import metrics

ROWS, _, _ = house.USUAL


def rate_by_assignment(a, b):
    overlaps = np.array([[np.sum((a == i) & (b == j)) for j in set(b)] for i in set(a)])
    return 1 - overlaps[linear_sum_assignment(-overlaps)].sum() / len(a)


def misclassification_rate(a, b):
    """Return the rate of labelings of any number of labels, in one program."""
    return metrics.misclassification_rate(a, b, num_labels=ROWS)


PEERS = {
    metrics.rand_index: rand_score,
    metrics.adjusted_rand_index: adjusted_rand_score,
    metrics.normalized_mutual_info: normalized_mutual_info_score,
}
ORACLES = PEERS | {misclassification_rate: rate_by_assignment}
BEST = dict.fromkeys(PEERS, 1) | {misclassification_rate: 0}


def labelings():
    """Yield pairs between independent and equal, with different numbers of cells; then pairs of trivial ones."""
    rng = house.rng()
    for trial in range(12):
        a = rng.integers(0, 1 + trial % 6, ROWS)
        other = rng.integers(0, 1 + (3 * trial) % 7, ROWS)
        yield a, np.where(rng.random(ROWS) < trial / 11, other, (5 * a + 2) % 7)
    trivial = (np.zeros(ROWS, int), np.arange(ROWS), np.arange(ROWS) % 2)
    yield from itertools.product(trivial, repeat=2)
    yield np.array([5]), np.array([3])  # one point has no pairs


@pytest.mark.parametrize("score", ORACLES)
def test_scores_agree_with_an_independent_oracle(score):
    """From either side, and whatever labels are called."""
    names = house.rng().permutation(np.arange(-50, 50)) * 1000 - 3
    for a, b in labelings():
        for first, second in ((a, b), (b, names[a])):
            error = float(score(first, second)) - ORACLES[score](first, second)
            assert abs(error) <= 4 * house.eps()
        # Agreement is exact.
        assert float(score(a, names[a])) == BEST[score]


@pytest.mark.parametrize("score", [metrics.rand_index, misclassification_rate])
def test_labels_beyond_the_default_integers_are_told_apart(score):
    """In 32 bits all multiples of 2^32 are 0."""
    a = np.arange(ROWS) % 4
    for far in (a * 2**32, -a * 2**32, (a * (2**30 - 1)).astype(np.uint32)):
        assert float(score(far, a)) == BEST[score]


def test_rounding_makes_no_mutual_information_negative():
    """Independent partitions, whose score is 0: without a limit it is -eps in an optimised program in float32."""
    points = np.arange(ROWS)
    score = jax.jit(metrics.normalized_mutual_info)
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    try:
        scores = [float(score(points // n, points % n)) for n in (2, 3, 4, 8, 12)]
    finally:
        jax.config.update("jax_disable_most_optimizations", before)
    assert 0 <= min(scores) <= max(scores) <= 4 * house.eps()


@pytest.mark.parametrize("share", [0.5, 2e-5])
def test_no_digit_is_lost_for_many_points(share):
    """7e4 points make 2.4e9 pairs, beyond int32; a share of 2e-5 leaves all but a few in one cell."""
    rng = house.rng()
    count = 70_000
    a = (rng.random(count) < share).astype(int)
    b = np.where(rng.random(count) < 0.1 * share, 1 - a, a)
    # The peers lose a few digits of float64.
    error = 4 * house.eps() + 1e-9
    for score, peer in PEERS.items():
        np.testing.assert_allclose(score(a, b), peer(a, b), rtol=error, atol=error)


@pytest.mark.parametrize("score", PEERS)
def test_scores_never_hold_all_pairs(score):
    labels = np.zeros(300, np.int32)  # enough for pairs to exceed what is held
    assert largest_intermediate(score, labels, labels) <= 2 * len(labels)


def test_the_table_of_a_matching_has_no_more_labels_than_points():
    labels = np.arange(6)  # fewer than num_labels
    rate = partial(metrics.misclassification_rate, num_labels=1000)
    assert largest_intermediate(rate, labels, labels) <= 6 * 6


def test_the_side_with_more_labels_sizes_the_matching():
    a = np.zeros(ROWS, int)
    b = np.arange(ROWS) % 3
    for first, second in ((a, b), (b, a)):
        rate = metrics.misclassification_rate(first, second)
        assert float(rate) == pytest.approx(2 / 3, abs=house.eps())


def test_traced_labels_need_num_labels_and_those_beyond_it_are_errors():
    labels = np.array([0, 0, 1, 1, 2])
    rate = metrics.misclassification_rate
    few = jax.jit(lambda a: rate(a, a, num_labels=2))(labels)
    assert float(few) == pytest.approx(0.2)
    traced = (rate, lambda a, b: rate(a, labels), lambda a, b: rate(labels, b))
    for function in traced:
        with pytest.raises(ValueError, match="num_labels must be given"):
            jax.eval_shape(function, labels, labels)


@pytest.mark.parametrize(
    ("error", "norm", "power"),
    [(metrics.spectral_error, 2, 1), (metrics.frobenius_error, None, 2)],
)
def test_gram_errors_are_literal_norms(error, norm, power):
    """Of differences with eigenvalues of both signs, and of matrices that are not symmetric."""
    A, B = house.rng().normal(size=(2, ROWS, ROWS)).astype(house.dtype())
    for K, Khat in ((A @ A.T, B @ B.T), (A, B)):
        size = np.linalg.norm(np.float64(K) - np.float64(Khat), norm)
        value = float(error(K, Khat))
        np.testing.assert_allclose(value, size / ROWS**power, rtol=20 * house.eps())
        assert float(error(K, K)) == 0
        assert float(error(Khat, K)) == value
