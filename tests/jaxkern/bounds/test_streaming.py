"""Bounds of ghashami2016: streams that attain them.

The lemmas as printed and corrected are claims of `proofs_check`, and tests/papers judges those that need no draws.
"""

import numpy as np
import pytest

from jaxkern.bounds import fourier, streaming
from proofs_check.papers.ghashami2016.algorithm1 import algorithm_1


def test_beyond_its_hypotheses_a_sketch_has_a_bound_that_says_nothing():
    for rank in (5, 6):
        bound = streaming.frequent_directions(
            residual_energy=2.0, sketch_size=10, rank=rank
        )
        assert bound.value == pytest.approx(2e30, rel=1e-12) and not bound.valid


def streams(ell):
    """Yield rows: few directions in turn, and then new ones that push them out of the buffer."""
    half = ell // 2
    for length in range(12 * ell, 14 * ell):
        for count, fresh in ((half, 0), (half, ell), (ell, 0), (half + 1, half)):
            turns = np.arange(length) % count
            yield np.eye(3 * ell)[[*turns, *range(2 * ell, 2 * ell + fresh)]]


@pytest.mark.parametrize("ell", [2, 3, 4, 5, 7])
def test_algorithm_1_attains_its_bounds_at_odd_sizes_as_well(ell):
    """The worst of many streams."""
    shrunk = []
    projected = []
    for A in streams(ell):
        B, W = algorithm_1(A, ell, last=True)
        size = {"sketch_size": ell}
        bound = streaming.frequent_directions(**size, residual_energy=len(A), rank=0)
        shrunk.append(np.linalg.norm(A.T @ A - B.T @ B, 2) / bound.value)
        assert bound.valid
        bound = streaming.projection(**size, num_points=len(A), row_energy=1.0)
        projected.append(np.linalg.norm(A - A @ W @ W.T, 2) ** 2 / bound.value)
        assert bound.valid
    assert 0.9 < max(shrunk) <= 1 + 1e-9
    assert 0.9 < max(projected) <= 1 + 1e-9
    if ell % 2:  # the paper's l / 2, which is not true, and not valid
        assert max(shrunk) * ell / (ell - 1) > 1
        printed = {"sketch_size": ell, "as_printed": True}
        gram = {"num_points": 9, "eps": 0.1, "num_features": 9}
        bound = streaming.frequent_directions(**printed, residual_energy=1.0, rank=0)
        assert not bound.valid
        assert not streaming.projection(**printed, num_points=9).valid
        assert not streaming.streaming_gram(**printed, **gram).valid


def test_theorem_e_adds_features_and_sketch():
    bound = streaming.streaming_gram_buffered(
        eps=0.1, num_frequencies=600, num_points=10**6, sketch_size=99
    )
    free = fourier.gram_spectral_paired_all_n(eps=0.1, num_frequencies=600)
    assert bound.value == pytest.approx(0.11) and bound.probability == free.probability
    few = streaming.streaming_gram_buffered(
        eps=0.1, num_frequencies=600, num_points=3, sketch_size=99
    )
    assert few.probability > bound.probability
