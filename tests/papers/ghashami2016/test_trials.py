"""What the trials of ghashami2016 return, against sums over all samples and exact laws."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import features
from jaxkern.kernels import Gaussian
from proofs_check.papers.ghashami2016 import clouds, trials


def test_rows_enter_a_reservoir_with_probability_c_over_i(claims):
    """Three rows, and then 3 / 4, 3 / 5, 3 / 6 expected; 6 standard errors of 400 streams: false alarms below 1e-8."""
    count = jax.jit(
        jax.vmap(lambda k: trials.reservoir_updates(k, None, {}, size=3, length=6))
    )
    counts = np.asarray(count(jax.random.split(jax.random.key(0), 400)))
    assert counts.min() == 3 and counts.max() == 6
    assert abs(counts.mean() - (3 + 3 / 4 + 3 / 5 + 3 / 6)) <= 6 * counts.std() / 20


def test_the_exact_mean_of_nystrom_is_that_of_all_samples():
    """Sets of landmarks with the number of samples that have them, against all 4^3 samples one by one."""
    G = clouds.small_grams()[4].data["gram"][:4, :4]
    one_by_one = [
        trials.landmark_loss(G, sorted(set(chosen)))
        for chosen in itertools.product(range(4), repeat=3)
    ]
    assert trials.nystrom_mean_squares(G)[2] == pytest.approx(
        np.mean(one_by_one), rel=1e-9
    )


def test_theorem_i_on_one_orthogonal_pair_by_hand():
    """G = I of order 2, one landmark: 1 is lost, and (n^2 - |G|^2) / c = 2; shifted features of one cosine lose 3."""
    G = np.eye(2)
    assert trials.nystrom_mean_squares(G)[0] == pytest.approx(1)
    assert trials.features_mean_square(G, np.eye(2), 1) == pytest.approx(4 + 1 - 2)


@pytest.mark.float64
@pytest.mark.parametrize("rank", [2, 8])
def test_nystrom_of_a_sample_is_a_pseudo_inverse(rank):
    """The trial's error against NumPy for the landmarks that its key draws, at full rank and cut to rank 2."""
    gram = clouds.clusters(6, 4).data["gram"]
    G = np.asarray(gram)
    uniform = jax.random.uniform(jax.random.key(0), (8,), np.float64)
    chosen = np.asarray(uniform * 10).astype(int)
    landmarks = trials.with_replacement(jax.random.key(0), gram, 10.0, 8)
    np.testing.assert_array_equal(landmarks, chosen)
    C = G[:, chosen]
    values, vectors = np.linalg.eigh(C[chosen])
    large = np.arange(8)[-rank:]
    large = large[values[large] > 1e-10]  # copies among the landmarks
    inverse = (vectors[:, large] / values[large]) @ vectors[:, large].T
    difference = jax.jit(trials.nystrom_difference, static_argnums=2)
    np.testing.assert_allclose(
        difference(gram, landmarks, rank), G - C @ inverse @ C.T, atol=1e-7
    )


@pytest.mark.float64
def test_one_feature_of_a_copy_by_hand():
    """|1 - 2 cos(b)^2| = |cos 2 b| for the shift b of the first feature, and the mean over two."""
    phi = features.shifted_fourier(
        jax.random.key(0), Gaussian(1.0), 1, num_frequencies=4, dtype=jnp.float64
    )
    twice = np.cos(2 * np.asarray(phi.shifts))
    copies_error = jax.jit(trials.copies_error, static_argnames="most")
    for m in (1, 2):
        error = copies_error(jax.random.key(0), None, {"m": float(m)}, most=4)
        assert float(error) == pytest.approx(abs(np.mean(twice[:m])), rel=1e-9)


def test_the_law_of_a_mean_of_cosines():
    """The integral of `copies_tail` against a grid over two shifts, and against a sample of 50."""
    grid = np.cos((np.arange(4000) + 0.5) * np.pi / 4000)
    share = np.mean(np.abs(np.add.outer(grid, grid)) > 0.6)
    assert share == pytest.approx(trials.copies_tail(2, 0.3), abs=2e-3)
    shifts = np.random.default_rng(7).uniform(0, 2 * np.pi, (40_000, 50))
    share = np.mean(np.abs(np.cos(shifts).mean(1)) > 0.1)
    # 5 standard errors: false alarms below 1e-6
    assert abs(share - trials.copies_tail(50, 0.1)) <= 5 * math.sqrt(0.25 / 40_000)
