"""Random Fourier features: the laws of their draws. The features of a draw are exact: test_fourier.py.

With delta = x - y a paired frequency gives cos <w, delta>, whose mean is K(delta) and whose square has the mean
(1 + K(2 delta)) / 2. A shifted one gives 2 cos(<w, x> + b) cos(<w, y> + b), whose mean is K(delta) and whose square has
that mean plus 1/2. A single row of a block of orthogonal frequencies or of Fastfood has the law of a paired frequency,
and blocks are independent. Terms are bounded, so Hoeffding's and Bernstein's inequalities judge their averages: a
number is refuted with probability ALARM at most where it holds, which is 1e-6 for the module at 6 examples a test.
"""

import math
from functools import cache

import house
import jax
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special
from support.drawn import ALARM, VALUES

from jaxkern import features, kernels
from jaxkern.kernels._spectra import LAWS

DIM = house.USUAL[2]
TERMS = 24_000
"""Frequencies of a draw, which are whole blocks of 3 and of 4: means of cosines are known to 0.02."""
SLACK = 32 * np.finfo(np.float32).eps
"""Relative rounding of a frequency of float32 by the functions that other machines may have."""
LEVEL = math.log(4 / ALARM)
BLOCK = {"paired_fourier": 1, "orthogonal_fourier": 3, "fastfood": 4}

SECOND = """
paired_fourier Gaussian -2.44245577 -2.03568053 0.205544233
paired_fourier Laplacian -6.90837049 -2.67158771 0.17440407
paired_fourier Exponential -6.90837049 -5.75782585 0.581372142
paired_fourier Cauchy -2.05166602 -3.34954071 0.276211351
paired_fourier Matern32 -2.92306328 -2.43624592 0.245989621
paired_fourier Matern52 -2.91875029 -2.43265128 0.245626673
shifted_fourier Gaussian -1.25747764 -0.401604414 -1.12136006
orthogonal_fourier Gaussian -2.14846039 -2.35262656 -0.0331635028
fastfood Gaussian 1.35700452 -0.375983357 -1.72879338
fastfood Matern52 1.46232164 -0.405163407 -1.86296487
"""
"""The second frequency under jax.random.key(0) in float32: seeds mean what they meant in the first release."""
ROWS = [line.split() for line in SECOND.split("\n") if line]
LAWS_OF_ROWS = [row[:2] for row in ROWS if row[0] in BLOCK]


@cache
def draw(name, kernel_name, seed=0, count=TERMS):
    """Return a map of so many frequencies, drawn in float32 whatever the precision of the environment is."""
    kernel = getattr(kernels, kernel_name)(1.0)
    make = getattr(features, name)
    return make(house.key(seed), kernel, DIM, num_frequencies=count, dtype="float32")


@cache
def frequencies(name, kernel_name, seed=0):
    return np.float64(draw(name, kernel_name, seed).frequencies)


def refuted(terms, kernel_name, delta, *, shifted=False):
    """Return which averages of terms (count, pairs) are too far from their means: "mean" and "square"."""
    count = len(terms)
    mean = VALUES[kernel_name](delta)
    square = (1 + VALUES[kernel_name](2 * delta) + shifted) / 2
    bound = 1 + shifted
    rate = LEVEL / count
    variance = np.maximum(square - mean**2, 0)
    # Terms are in [-bound, bound], so deviations are at most 2 bound.
    bernstein = np.sqrt(2 * variance * rate) + 4 / 3 * bound * rate
    # Squares are in [0, bound^2].
    hoeffding = bound**2 * math.sqrt(rate / 2)
    complaints = set()
    mean_error = np.abs(terms.mean(axis=0) - mean)
    square_error = np.abs((terms**2).mean(axis=0) - square)
    # Frequencies are rounded to float32, which moves means by less than 1e-5.
    if (mean_error > bernstein + 1e-5).any():
        complaints.add("mean")
    if (square_error > hoeffding + 1e-5).any():
        complaints.add("square")
    return complaints


def differences(seed, scale):
    """Return an axis and two other directions, with lengths about 10^scale."""
    rows = house.rng(seed).normal(size=(3, DIM))
    # Products over coordinates and radial kernels agree on an axis, and nowhere else.
    rows[0] = [1, 0, 0]
    return 10**scale * rows


def shifted_terms(W, shifts, delta):
    """Return terms of pairs (x, y) with x - y = delta.

    Near the origin the shifts matter: without them the mean has K(x + y) beside K(x - y).
    """
    x = np.full((1, DIM), 0.3)
    first = np.cos(W @ x.T + shifts)
    second = np.cos(W @ (x - delta).T + shifts)
    return 2 * first * second


@pytest.mark.parametrize(("name", "kernel_name"), LAWS_OF_ROWS)
@given(seed=st.integers(0, 1), scale=st.floats(-1.5, 1.5))
@example(seed=0, scale=0.0)
def test_rows_of_blocks_have_the_mean_and_the_variance_of_the_kernel(
    name, kernel_name, seed, scale
):
    delta = differences(seed, scale)
    size = BLOCK[name]
    terms = np.cos(frequencies(name, kernel_name, seed) @ delta.T)
    for row in range(size):
        assert not refuted(terms[row::size], kernel_name, delta)


@given(seed=st.integers(0, 1), scale=st.floats(-1.5, 1.5))
@example(seed=0, scale=0.0)
def test_shifted_terms_have_the_mean_and_the_variance_of_the_kernel(seed, scale):
    delta = differences(seed, scale)
    phi = draw("shifted_fourier", "Gaussian", seed)
    shifts = np.float64(phi.shifts)
    assert shifts.min() >= 0
    assert shifts.max() < 2 * math.pi
    terms = shifted_terms(np.float64(phi.frequencies), shifts[:, None], delta)
    assert not refuted(terms, "Gaussian", delta, shifted=True)


def test_wrong_frequencies_are_caught():
    delta = differences(0, 0.0)

    def terms(name, scale=1.0):
        W = frequencies("paired_fourier", name)
        return np.cos(scale * W @ delta.T)

    # A lengthscale that is wrong by a fifth.
    narrow = terms("Gaussian", scale=1 / 1.2)
    assert "mean" in refuted(narrow, "Gaussian", delta)
    # Features without their factor sqrt(2), as in the map with a tilde of chen2016.
    halved = 0.5 * terms("Cauchy")
    assert refuted(halved, "Cauchy", delta) == {"mean", "square"}
    enlarged = 1.1 * terms("Matern32")
    assert "mean" in refuted(enlarged, "Matern32", delta)
    assert "mean" in refuted(terms("Exponential"), "Laplacian", delta)


def test_wrong_shifts_are_caught():
    delta = differences(0, 0.0)
    # One shift for all frequencies leaves K(x + y) in the mean.
    W = frequencies("shifted_fourier", "Gaussian")
    terms = shifted_terms(W, 0.0, delta)
    assert "mean" in refuted(terms, "Gaussian", delta, shifted=True)


@pytest.mark.parametrize("name", [*BLOCK, "shifted_fourier"])
def test_a_larger_map_repeats_the_frequencies_of_a_smaller_one(name):
    """Bit by bit, also if the last block of the smaller one is cut: 11 frequencies."""
    _, *arrays = jax.tree.leaves(draw(name, "Gaussian", count=11))
    _, *longer = jax.tree.leaves(draw(name, "Gaussian"))
    for array, other in zip(arrays, longer, strict=True):
        assert np.array_equal(array, np.asarray(other)[: len(array)])
    sample = frequencies(name, "Gaussian")
    assert len(np.unique(sample, axis=0)) == TERMS


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_frequencies_are_those_of_the_first_release(row):
    name, kernel_name, *expected = row
    second = frequencies(name, kernel_name)[1]
    np.testing.assert_allclose(second, np.float64(expected), rtol=SLACK)


def test_shifts_are_those_of_the_first_release():
    shifts = np.asarray(draw("shifted_fourier", "Gaussian").shifts)
    np.testing.assert_allclose(shifts[:2], [3.63691115, 0.570738971], rtol=SLACK)


@pytest.mark.parametrize("distance", [0.5, 1.5])
def test_cosines_of_an_orthogonal_block_have_the_covariance_that_is_documented(
    distance,
):
    """Over 32,000 blocks: 2 comparisons at 5 standard errors, false alarms below 2e-6."""
    draws = [frequencies("orthogonal_fourier", "Gaussian", seed) for seed in range(4)]
    coordinates = np.concatenate(draws)[:, 0].reshape(-1, DIM)
    square = distance**2
    centered = np.cos(distance * coordinates) - math.exp(-square / 2)
    # Every pair of a block has the same covariance, so all three are averaged.
    neighbours = np.roll(centered, 1, axis=1)
    products = (centered * neighbours).mean(axis=1)
    expected = special.hyp1f1(DIM, DIM / 2, -square / 2) - math.exp(-square)
    error = products.std() / len(products) ** 0.5
    assert abs(products.mean() - expected) < 5 * error
    assert 5 * error < -expected / 2  # independent rows would be refuted


@pytest.mark.parametrize("name", ["Exponential", "Laplacian", "Matern52"])
def test_normals_below_eps_in_the_denominator_are_taken_for_eps(name):
    """No draw of a reasonable size has one, so this asks the private laws."""
    law = LAWS[getattr(kernels, name)]
    normals = np.zeros((2, law.num_normals), house.dtype())
    scales = jax.jit(law.scale)(normals)
    np.testing.assert_allclose(scales, 1 / house.eps(), rtol=house.eps())
