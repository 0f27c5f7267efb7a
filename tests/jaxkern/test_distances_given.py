"""The bound of relative errors that knows the distances of all pairs: by quadrature, by order, by draws."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxkern import plan
from jaxkern.bounds import fourier

FALSE_ALARM = 1e-6
"""Of every statistical test below: the chance to fail although the statement holds."""


def failure(distance, eps, size):
    """Return what the bound says of one pair."""
    words = dict(squared_distances=np.array([distance**2]), pairs=np.array([1.0]))
    return 1 - fourier.relative_distances_given(eps=eps, num_frequencies=size, **words).probability


@pytest.mark.parametrize("eps", [1e-4, 0.03, 0.3, 0.9])
def test_a_pair_that_is_farther_fails_less(eps):
    size = math.ceil(8 / eps**2)
    distances = np.concatenate([[0, 1e-3], np.geomspace(0.03, 9, 120)])
    found = [failure(r, eps, size) for r in distances]
    assert all(b <= a * (1 + 1e-9) + 1e-15 for a, b in itertools.pairwise(found))
    assert found[0] > 0 and found[-1] < 0.9 * found[0]


@pytest.mark.parametrize("eps", [0.02, 0.2, 0.8])
def test_nothing_is_lost_against_the_bounds_for_all_data(eps, rng):
    n = 300
    total = n * (n - 1) / 2
    for _ in range(5):
        squared = np.sort(rng.exponential(size=7) * rng.choice([0.001, 1, 10]))
        pairs = rng.dirichlet(np.ones(7)) * total
        size = plan.fourier(eps, 0.05, num_points=n).num_frequencies
        found = plan.fourier(eps, 0.05, squared_distances=squared, pairs=pairs)
        assert found.num_frequencies <= size and found.probability >= 0.95
        for t in (max(size // 3, 1), size):
            given = fourier.relative_distances_given(
                eps=eps, num_frequencies=t, squared_distances=squared, pairs=pairs
            ).probability
            for bound in (fourier.relative_distances_sharp, fourier.relative_distances):
                assert given >= bound(eps=eps, num_frequencies=t, num_points=n).probability - 1e-9
    at_zero = plan.fourier(eps, 0.05, squared_distances=[0.0], pairs=[total])
    assert at_zero.num_frequencies == size


def ratios(rng, X, size, trials):
    """Return Dhat / D of all pairs, (trials, pairs)."""
    first, second = np.triu_indices(len(X), 1)
    differences = X[first] - X[second]
    true = -2 * np.expm1(-np.sum(differences**2, axis=1) / 2)
    found = []
    for _ in range(trials):
        W = rng.standard_normal((X.shape[1], size)).astype(np.float32)
        found.append(np.mean(4 * np.sin(differences.astype(np.float32) @ W / 2) ** 2, axis=1) / true)
    return np.sqrt(found)


@pytest.mark.parametrize("distance", [1.0, 2.5])
def test_planned_sizes_keep_a_simplex_and_half_of_them_do_not(distance, rng):
    """n orthonormal points, all at one distance; 600 draws, which may fail with probability .05 each."""
    n, eps, delta, trials = 20, 0.3, 0.05, 600
    X = np.eye(n) * distance / math.sqrt(2)
    pairs = n * (n - 1) / 2
    size = plan.fourier(eps, delta, squared_distances=[distance**2], pairs=[pairs]).num_frequencies
    assert size < 0.92 * plan.fourier(eps, delta, num_points=n).num_frequencies

    def failed(t):
        return int(np.sum(np.any(np.abs(ratios(rng, X, t, trials) - 1) > eps, axis=1)))

    assert stats.binom.sf(failed(size) - 1, trials, delta) > FALSE_ALARM
    assert stats.binom.sf(failed(size // 2) - 1, trials, delta) < FALSE_ALARM


def test_clusters_that_are_far_apart_need_fewer_frequencies_than_one_cluster(rng):
    centers = 3 * np.eye(20)
    spread = np.concatenate([c + 0.3 * rng.standard_normal((10, 20)) for c in centers])
    tight = 0.02 * rng.standard_normal((200, 20))
    sizes = []
    for X in (spread, tight):
        squared = np.sum((X[:, None] - X[None]) ** 2, axis=2)[np.triu_indices(200, 1)]
        sizes.append(plan.fourier(0.1, 0.05, squared_distances=squared, pairs=np.ones_like(squared)).num_frequencies)
    worst = plan.fourier(0.1, 0.05, num_points=200).num_frequencies
    assert sizes[0] < 0.7 * worst and 0.99 * worst < sizes[1] <= worst


def test_bins_may_be_merged_downwards_only(rng):
    squared, pairs = np.array([0.1, 1.0, 4.0]), np.array([5.0, 50.0, 500.0])

    def probability(at):
        return fourier.relative_distances_given(
            eps=0.2, num_frequencies=300, squared_distances=at, pairs=pairs
        ).probability

    assert probability(squared * 0.8) < probability(squared) < probability(squared * 1.2)


def test_float32_is_the_same_up_to_its_allowance_and_never_better(dtype):
    squared, pairs = [0.0, 0.2, 1.0, 9.0], [1.0, 9.0, 80.0, 200.0]
    words = dict(eps=0.2, num_frequencies=250)
    exact = fourier.relative_distances_given(**words, squared_distances=squared, pairs=pairs)
    arrays = dict(squared_distances=jnp.asarray(squared, dtype), pairs=jnp.asarray(pairs, dtype))
    found = jax.jit(lambda a: fourier.relative_distances_given(**words, **a))(arrays)
    assert found.probability.dtype == dtype and bool(found.valid) and exact.valid is True
    slack = 3e-2 if dtype == "float32" else 1e-9
    assert 1 - exact.probability == pytest.approx(1 - float(found.probability), rel=slack)
