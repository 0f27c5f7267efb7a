"""Planners: a planned size is certified and the next smaller one is not, and worst cases are planned without waste."""

import math

import house
import jax
import numpy as np
import pytest
from scipy import stats

from jaxkern import features, kernels, plan
from jaxkern.bounds import fourier, sketching, streaming

POPULATION = {
    "kappa": 1.0,
    "op_norm": 0.5,
    "trace": 1.0,
    "trace3": 0.15,
    "hs_norm": 0.6,
}
SEARCHED = {
    (100, 0.1): 974,
    (100, 0.2): 242,
    (100, 0.3): 110,
    (1000, 0.1): 1420,
    (1000, 0.2): 355,
    (1000, 0.3): 163,
}
"""Fewest frequencies at which a tight cluster of n orthonormal points succeeds in 95% of 1,000 to 4,000 draws."""


@pytest.mark.parametrize("num_points", [1, 2, 1000, 10**9])
@pytest.mark.parametrize(("eps", "delta"), [(0.02, 0.5), (0.2, 0.05), (0.9, 1e-6)])
def test_fourier_sizes_are_certified_and_one_less_is_not(num_points, eps, delta):
    planned = plan.fourier(eps, delta, num_points=num_points)
    size = planned.num_frequencies

    def probability(size):
        options = {"eps": eps, "num_frequencies": size, "num_points": num_points}
        return max(
            fourier.relative_distances(**options).probability,
            fourier.relative_distances_sharp(**options).probability,
        )

    assert planned.proved
    assert "chen2016" in planned.source
    assert planned.num_features == 2 * size
    assert probability(size) == pytest.approx(planned.probability)
    assert planned.probability >= 1 - delta
    assert size == 1 or probability(size - 1) < 1 - delta
    pairs = max(num_points * (num_points - 1), 1)
    closed = math.log(pairs / delta) / (eps * (1 - eps / 2)) ** 2
    assert size <= max(math.ceil(closed), 1)


def test_worst_cases_are_planned_within_an_eighth_of_what_search_finds():
    """By proved statements alone."""
    for (num_points, eps), least in SEARCHED.items():
        planned = plan.fourier(eps, 0.05, num_points=num_points)
        assert planned.proved
        assert 1 <= planned.num_frequencies / least <= 1.125


def test_tiny_errors_are_planned_by_the_closed_form():
    tiny = plan.fourier(1e-6, 0.1, num_points=10)
    assert "closed form" in tiny.source
    leading = math.log(900)
    assert tiny.num_frequencies == pytest.approx(leading * 1e12, rel=1e-5)
    # Rounding would decide.
    sharp = fourier.relative_distances_sharp(
        eps=1e-5, num_frequencies=1e12, num_points=10
    )
    assert not sharp.valid
    small = plan.fourier(1.01e-4, 0.1, num_points=10)
    assert 0.8 < small.num_frequencies * 1.01e-4**2 / leading < 1


def frequencies(eps=0.2, dim=2, diameter=10.0, **options):
    """Return the planned number of frequencies for all points of a ball."""
    return plan.fourier(eps, 0.1, dim=dim, diameter=diameter, **options).num_frequencies


def test_a_ball_is_planned_whatever_the_number_of_points():
    planned = plan.fourier(0.2, 0.1, dim=2, diameter=10.0)
    assert "Theorem 5.1" in planned.source
    assert planned.probability >= 0.9
    size = planned.num_frequencies
    assert size < 240  # 584 by a net
    ten_points = plan.fourier(0.2, 0.1, num_points=10).num_frequencies
    assert frequencies(num_points=10) == ten_points < size
    assert frequencies(num_points=10**15) == size
    assert frequencies(diameter=1e-3) < 140 < size < frequencies(diameter=1e8)
    assert size < frequencies(dim=3)


def test_balls_of_rough_kernels_take_more_frequencies():
    smooth = frequencies(0.5, kernel=kernels.Matern52(1.0))
    rough = plan.fourier(0.5, 0.1, dim=2, diameter=10.0, kernel=kernels.Matern32(1.0))
    assert 1e4 < smooth < 1e5 < 1e8 < rough.num_frequencies
    assert "Theorem M" in rough.source


def test_kernel_values_of_near_pairs_are_planned_with_few_frequencies():
    for distance, size in ((0.1, 7), (0.5, 1808)):
        planned = plan.kernel_values(
            0.01, 0.05, squared_distances=[distance**2], pairs=[1]
        )
        assert planned.num_frequencies == size
    # More distances than there are bins.
    squared = np.sort(house.rng().exponential(size=300))
    pairs = {
        "squared_distances": squared,
        "pairs": np.ones(300),
        "farthest": 1.02 * squared,
    }
    planned = plan.kernel_values(0.1, 0.05, **pairs)

    def probability(size):
        bound = fourier.kernel_values_given(eps=0.1, num_frequencies=size, **pairs)
        return bound.probability

    assert planned.probability >= 0.95
    assert probability(planned.num_frequencies) >= 0.95
    # Bins cost at most 3 %.
    assert probability(math.ceil(planned.num_frequencies / 1.03) - 1) < 0.95


@pytest.mark.parametrize("eps", [0.05, 0.25])
@pytest.mark.parametrize("num_points", [None, 4])
def test_streams_are_planned_at_sizes_of_which_neither_can_shrink(eps, num_points):
    planned = plan.streaming(eps, 0.01, num_points=num_points)
    size = planned.num_frequencies
    rows = planned.sketch_size

    def certified(size, rows):
        share = eps - 1 / (rows + 1)
        if share <= 0:
            return False
        bound = streaming.streaming_gram_buffered(
            eps=share,
            num_frequencies=size,
            num_points=num_points or 1e300,
            sketch_size=rows,
        )
        close = bound.value <= eps * (1 + 1e-12)
        return bound.valid and close and bound.probability >= 0.99

    assert certified(size, rows)
    assert not certified(size - 1, rows)
    assert not certified(size, rows - 1)
    options = {"num_points": num_points}
    assert plan.streaming(eps, 0.01, sketch_size=rows, **options) == planned
    more = plan.streaming(eps, 0.01, sketch_size=10 * rows, **options)
    assert more.num_frequencies < size


@pytest.mark.parametrize("eps", [0.1, 0.3])
@pytest.mark.parametrize("count", [1, 10**7])
def test_kernel_jl_for_finitely_many_functions_uses_the_exact_law(eps, count):
    planned = plan.kernel_jl(eps, 0.01, num_functions=count)

    def failure(d):
        tails = stats.chi2.sf(d * (1 + eps), d) + stats.chi2.cdf(d * (1 - eps), d)
        return count * tails

    size = planned.num_features
    assert failure(size) <= 0.01 < failure(size - 1)
    assert size <= math.log(2 * count / 0.01) / (eps**2 / 4 - eps**3 / 6)
    assert planned.num_landmarks is None


@pytest.mark.parametrize(("landmarks", "centered"), [(10**6, False), (None, True)])
def test_kernel_jl_for_all_functions_inverts_theorems_e_and_f(landmarks, centered):
    planned = plan.kernel_jl(
        0.5, 0.05, **POPULATION, num_landmarks=landmarks, centered=centered
    )
    size = planned.num_features
    count = planned.num_landmarks

    def certified(n, d):
        values = []
        for theorem, events in (
            (sketching.inner_products_every_n, 4),
            (sketching.inner_products_intrinsic, 6),
        ):
            tau = math.log((events + 2 * centered) / 0.05)
            bound = theorem(**POPULATION, n=n, d=d, tau=tau, centered=centered)
            values.append(bound.value)
        return min(values) <= 0.5 * POPULATION["op_norm"] ** 3 * (1 + 1e-9)

    assert certified(count, size)
    assert not certified(count, size - 1)
    assert planned.probability >= 0.95
    if landmarks is None:
        # No other pair of sizes is much cheaper.
        for factor in np.linspace(0.5, 2, 16):
            other = int(factor * count)
            assert not certified(other, int(0.99 * count * size / other))
    else:
        assert count == landmarks


def test_kernel_jl_takes_no_landmark_too_many():
    """Five equal eigenvalues at eps = .9: shares of eps alone would give 4,210 landmarks."""
    equal = {"kappa": 1.0, "op_norm": 0.2, "trace": 1.0, "trace3": 0.04}
    equal["hs_norm"] = 0.2**0.5
    planned = plan.kernel_jl(0.9, 0.05, **equal)
    less = planned.num_landmarks - 1
    fewer = plan.kernel_jl(0.9, 0.05, **equal, num_landmarks=less)
    assert fewer.num_features > planned.num_features


@pytest.mark.parametrize("eps", [0.02, 0.5])
def test_nystrom_is_planned_by_theorem_g(eps):
    planned = plan.nystrom(eps, 0.01)
    size = planned.num_landmarks
    bound = streaming.nystrom_spectral(eps=eps, num_landmarks=size)
    assert bound.valid
    assert bound.probability >= 0.99
    assert planned.source == bound.source
    below = streaming.nystrom_spectral(eps=eps, num_landmarks=size - 1)
    assert not below.valid or below.probability < 0.99


@pytest.mark.parametrize("rank", [None, 4])
@pytest.mark.parametrize("delta", [None, 0.3])
@pytest.mark.parametrize("known", [8, 30])
def test_pivoted_cholesky_is_planned_by_theorem_j(rank, delta, known):
    """By matrices: the mean of a step is A - A^2 / tr A, and what is not known of A stays as it is."""
    values = 0.5 ** np.arange(30.0)
    trace = values.sum() if known < 30 else None
    planned = plan.pivoted_cholesky(
        0.2,
        delta,
        eigenvalues=house.rng().permutation(values[:known]),
        trace=trace,
        rank=rank,
    )
    tails = [values[n:].sum() for n in range(31)]
    rest = tails[known]
    target = 0.2 * tails[0] if rank is None else 1.2 * tails[rank]
    A = np.diag(values[:known])
    steps = 0
    reached = False
    while not reached:
        A = A - A @ A / (np.trace(A) + rest)
        steps += 1
        least = tails[steps] if steps <= known else 0
        # By Markov's inequality above what so many landmarks leave at least.
        reached = np.trace(A) + rest - least <= (delta or 1) * (target - least)
    assert planned.num_landmarks == steps > 1
    assert planned.probability == 1 - (delta or 0)
    assert "Theorem J" in planned.source


def test_plans_of_pivoted_cholesky_end():
    """At the rank, where a matrix has one, and by the closed form, where the recursion would take too long."""
    singular = plan.pivoted_cholesky(1e-6, 0.01, eigenvalues=[3.0, 2.0, 1.0, 0.0])
    assert singular.num_landmarks == 3
    leading = {"eigenvalues": [0.45, 0.45], "trace": 1.0}
    close = plan.pivoted_cholesky(0.1 + 1e-6, **leading)
    assert close.num_landmarks == pytest.approx(0.2 / 1e-6, rel=0.01)
    best = plan.pivoted_cholesky(2e-4, rank=2, **leading)
    assert best.num_landmarks == pytest.approx(2 / 2e-4, rel=0.01)


def test_memory_counts_the_arrays_of_the_library():
    rows, sketch_size, dim = house.USUAL
    width = 2 * house.FEATURES
    sizes = {"dim": dim, "num_features": width, "num_points": rows}
    counted = plan.memory(**sizes, sketch_size=sketch_size)

    def arrays(key):
        phi = features.paired_fourier(
            key, house.KERNEL, dim, num_frequencies=width // 2
        )
        return features.streaming_pca(phi, sketch_size=sketch_size).init()

    state = jax.eval_shape(arrays, house.key())
    assert counted.sketch_bytes == 4 * max(leaf.size for leaf in jax.tree.leaves(state))
    assert counted.map_bytes == 4 * dim * width // 2
    assert counted.feature_bytes == 4 * rows * width
    total = counted.map_bytes + counted.feature_bytes + counted.sketch_bytes
    assert counted.total_bytes == total
    landmarks = plan.memory(dim=3, num_features=10, num_landmarks=6, itemsize=8)
    assert landmarks.map_bytes == 8 * 6 * 13
    assert landmarks.num_frequencies is None
