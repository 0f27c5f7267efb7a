"""Planners: a planned size is certified and the next smaller one is not, worst cases, and every refusal."""

import math

import jax
import numpy as np
import pytest
from scipy import stats

from jaxkern import features, kernels, plan
from jaxkern.bounds import fourier, sketching, streaming

POPULATION = dict(kappa=1.0, op_norm=0.5, trace=1.0, trace3=0.15, hs_norm=0.6)

SEARCHED = {
    (100, 0.1): 974,
    (100, 0.2): 242,
    (100, 0.3): 110,
    (1000, 0.1): 1420,
    (1000, 0.2): 355,
    (1000, 0.3): 163,
}
"""Fewest frequencies at which a tight cluster of n orthonormal points succeeds in 95% of 1,000 to 4,000 draws."""


@pytest.mark.parametrize("num_points", [1, 2, 10, 1000, 10**9])
@pytest.mark.parametrize("eps", [0.02, 0.2, 0.9])
@pytest.mark.parametrize("delta", [1e-6, 0.05, 0.5])
def test_fourier_sizes_are_certified_and_one_less_is_not(num_points, eps, delta):
    found = plan.fourier(eps, delta, num_points=num_points)
    bounds = (fourier.relative_distances, fourier.relative_distances_sharp)

    def probability(size):
        return max(
            b(eps=eps, num_frequencies=size, num_points=num_points).probability
            for b in bounds
        )

    assert (
        found.proved
        and "chen2016" in found.source
        and found.num_features == 2 * found.num_frequencies
    )
    assert (
        probability(found.num_frequencies) == pytest.approx(found.probability)
        and found.probability >= 1 - delta
    )
    assert (
        found.num_frequencies == 1 or probability(found.num_frequencies - 1) < 1 - delta
    )
    closed = math.ceil(
        math.log(max(num_points * (num_points - 1), 1) / delta)
        / (eps * (1 - eps / 2)) ** 2
    )
    assert found.num_frequencies <= max(closed, 1)


@pytest.mark.parametrize(("num_points", "eps"), SEARCHED)
def test_worst_cases_are_planned_within_an_eighth_of_what_search_finds(num_points, eps):
    """By proved statements alone."""
    found = plan.fourier(eps, 0.05, num_points=num_points)
    assert found.proved
    assert 1.0 <= found.num_frequencies / SEARCHED[num_points, eps] <= 1.125


def test_tiny_errors_are_planned_by_the_closed_form():
    found = plan.fourier(1e-6, 0.1, num_points=10)
    assert "closed form" in found.source and found.num_frequencies == pytest.approx(
        math.log(900) * 1e12, rel=1e-5
    )
    assert not fourier.relative_distances_sharp(
        eps=1e-5, num_frequencies=1e12, num_points=10
    ).valid
    nearly = plan.fourier(1.01e-4, 0.1, num_points=10)
    assert 0.8 < nearly.num_frequencies * 1.01e-4**2 / math.log(900) < 1


def test_a_ball_is_planned_whatever_the_number_of_points():
    found = plan.fourier(0.2, 0.1, dim=2, diameter=10.0)
    assert "Theorem 5.1" in found.source and found.num_frequencies < 240  # 584 by a net
    assert found.probability >= 0.9
    both = plan.fourier(0.2, 0.1, dim=2, diameter=10.0, num_points=10)
    assert (
        both.num_frequencies
        == plan.fourier(0.2, 0.1, num_points=10).num_frequencies
        < found.num_frequencies
    )
    assert plan.fourier(0.2, 0.1, dim=2, diameter=10.0, num_points=10**15) == found
    sizes = [
        plan.fourier(0.2, 0.1, dim=2, diameter=M).num_frequencies
        for M in (1e-3, 1.0, 1e8)
    ]
    assert (
        sizes == sorted(sizes)
        and sizes[0] < 140
        and sizes[1] == found.num_frequencies < sizes[-1]
    )
    assert (
        plan.fourier(0.2, 0.1, dim=3, diameter=10.0).num_frequencies
        > found.num_frequencies
    )
    matern = (kernels.Matern32(1.0), kernels.Matern52(1.0))
    rough, smooth = (
        plan.fourier(0.5, 0.1, dim=2, diameter=10.0, kernel=kernel) for kernel in matern
    )
    assert (
        1e4 < smooth.num_frequencies < 1e5 < 1e8 < rough.num_frequencies
        and "Theorem M" in rough.source
    )


def test_kernel_values_of_near_pairs_are_planned_with_few_frequencies(rng):
    sizes = [
        plan.kernel_values(
            0.01, 0.05, squared_distances=[r**2], pairs=[1]
        ).num_frequencies
        for r in (0.1, 0.5)
    ]
    assert sizes == [7, 1808]
    squared = np.sort(rng.exponential(size=300))  # more than there are bins
    words = dict(squared_distances=squared, pairs=np.ones(300), farthest=1.02 * squared)
    found = plan.kernel_values(0.1, 0.05, **words)
    sizes = math.ceil(found.num_frequencies / 1.03) - 1, found.num_frequencies
    bounds = [
        fourier.kernel_values_given(eps=0.1, num_frequencies=size, **words)
        for size in sizes
    ]
    assert (
        [bound.probability >= 0.95 for bound in bounds]
        == [False, found.probability >= 0.95]
        == [False, True]
    )


@pytest.mark.parametrize("eps", [0.05, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("num_points", [None, 4, 10**6])
def test_streams_are_planned_at_sizes_of_which_neither_can_shrink(eps, num_points):
    delta = 0.01
    found = plan.streaming(eps, delta, num_points=num_points)

    def holds(size, rows):
        share = eps - 1 / (rows + 1)
        if share <= 0:
            return False
        bound = streaming.streaming_gram_buffered(
            eps=share,
            num_frequencies=size,
            num_points=num_points or 1e300,
            sketch_size=rows,
        )
        return (
            bound.valid
            and bound.value <= eps * (1 + 1e-12)
            and bound.probability >= 1 - delta
        )

    assert holds(found.num_frequencies, found.sketch_size)
    assert not holds(found.num_frequencies - 1, found.sketch_size)
    assert not holds(found.num_frequencies, found.sketch_size - 1)
    given = plan.streaming(
        eps, delta, num_points=num_points, sketch_size=found.sketch_size
    )
    assert given == found
    more = plan.streaming(
        eps, delta, num_points=num_points, sketch_size=10 * found.sketch_size
    )
    assert more.num_frequencies < found.num_frequencies


@pytest.mark.parametrize("eps", [0.1, 0.3])
@pytest.mark.parametrize("count", [1, 1770, 10**7])
def test_kernel_jl_for_finitely_many_functions_uses_the_exact_law(eps, count):
    found = plan.kernel_jl(eps, 0.01, num_functions=count)

    def failure(d):
        return count * (
            stats.chi2.sf(d * (1 + eps), d) + stats.chi2.cdf(d * (1 - eps), d)
        )

    assert failure(found.num_features) <= 0.01 < failure(found.num_features - 1)
    closed = math.log(2 * count / 0.01) / (eps**2 / 4 - eps**3 / 6)
    assert found.num_features <= closed and found.num_landmarks is None


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("landmarks", [None, 10**6])
def test_kernel_jl_for_all_functions_inverts_theorems_e_and_f(landmarks, centered):
    eps, delta = 0.5, 0.05
    found = plan.kernel_jl(
        eps, delta, **POPULATION, num_landmarks=landmarks, centered=centered
    )
    target = eps * POPULATION["op_norm"] ** 3

    def holds(
        n,
        d,
        theorems=(
            (sketching.inner_products_every_n, 4),
            (sketching.inner_products_intrinsic, 6),
        ),
    ):
        def value(theorem, times):
            tau = math.log((times + 2 * centered) / delta)
            return theorem(**POPULATION, n=n, d=d, tau=tau, centered=centered).value

        return any(value(*theorem) <= target * (1 + 1e-9) for theorem in theorems)

    n, d = found.num_landmarks, found.num_features
    assert holds(n, d) and not holds(n, d - 1) and found.probability >= 1 - delta
    if landmarks:
        assert n == landmarks
    else:  # no other pair of sizes is much cheaper
        others = (int(f * n) for f in np.linspace(0.5, 2, 31))
        assert not any(holds(m, int(0.99 * n * d / m)) for m in others)


def test_kernel_jl_takes_no_landmark_too_many():
    """Five equal eigenvalues at eps = .9: shares of eps alone would give 4,210 landmarks."""
    equal = dict(kappa=1.0, op_norm=0.2, trace=1.0, trace3=0.04, hs_norm=0.2**0.5)
    found = plan.kernel_jl(0.9, 0.05, **equal)
    less = found.num_landmarks - 1
    fewer = plan.kernel_jl(0.9, 0.05, **equal, num_landmarks=less)
    assert fewer.num_features > found.num_features


@pytest.mark.parametrize("eps", [0.02, 0.1, 0.5])
def test_nystrom_is_planned_by_theorem_g(eps):
    found = plan.nystrom(eps, 0.01)
    at, below = (
        streaming.nystrom_spectral(eps=eps, num_landmarks=c)
        for c in (found.num_landmarks, found.num_landmarks - 1)
    )
    assert (
        at.valid
        and at.probability >= 0.99
        and not (below.valid and below.probability >= 0.99)
    )
    assert found.source == at.source


@pytest.mark.parametrize("rank", [None, 4])
@pytest.mark.parametrize("delta", [None, 0.3])
@pytest.mark.parametrize("known", [8, 30])
def test_pivoted_cholesky_is_planned_by_theorem_j(rank, delta, known):
    """By matrices: the mean of a step is A - A^2 / tr A, and what is not known of A stays as it is."""
    values = np.random.default_rng(1).permutation(0.5 ** np.arange(30.0))
    leading = np.sort(values)[::-1][:known]
    found = plan.pivoted_cholesky(
        0.2,
        delta,
        eigenvalues=leading,
        trace=None if known == 30 else 2 - 2**-29,
        rank=rank,
    )
    tails = [float(values.sum() - np.sort(values)[::-1][:n].sum()) for n in range(31)]
    target = 0.2 * tails[0] if rank is None else 1.2 * tails[rank]
    A, sizes = np.diag(leading), []
    rest = tails[known] * (known < 30)
    for n in range(1, 31):
        A = A - A @ A / (np.trace(A) + rest)
        least = tails[n] if n <= known else 0
        if np.trace(A) + rest <= least + (delta or 1) * (target - least):
            sizes.append(n)
    assert sizes[0] == found.num_landmarks > 1
    assert (
        found.probability == (1 if delta is None else 1 - delta)
        and "Theorem J" in found.source
    )


def test_plans_of_pivoted_cholesky_end():
    """At the rank, where a matrix has one, and by the closed form, where the recursion would take too long."""
    assert (
        plan.pivoted_cholesky(
            1e-6, 0.01, eigenvalues=[3.0, 2.0, 1.0, 0.0]
        ).num_landmarks
        == 3
    )
    for gap, words in ((1e-6, {}), (2e-4, {"rank": 2})):
        found = plan.pivoted_cholesky(
            0.1 + gap if not words else gap,
            eigenvalues=[0.45, 0.45],
            trace=1.0,
            **words,
        )
        closed = 2 * 0.1 / gap if not words else 2 / gap
        assert found.num_landmarks == pytest.approx(closed, rel=0.01)


def test_memory_counts_the_arrays_of_the_library():
    found = plan.memory(dim=3, num_features=10, num_points=7, sketch_size=4)
    phi = features.paired_fourier(
        jax.random.key(0), kernels.Gaussian(1.0), 3, num_frequencies=5
    )
    assert found.map_bytes == 4 * 15 and phi.num_features == 10
    assert found.feature_bytes == phi(jax.numpy.zeros((7, 3))).nbytes
    init, *_ = features.streaming_pca(phi, sketch_size=4)
    largest = max(
        leaf.nbytes for leaf in jax.tree.leaves(init()) if hasattr(leaf, "nbytes")
    )
    assert found.sketch_bytes == largest == 4 * 2 * 4 * 10
    assert (
        found.total_bytes == found.map_bytes + found.feature_bytes + found.sketch_bytes
    )
    landmarks = plan.memory(dim=3, num_features=10, num_landmarks=6, itemsize=8)
    assert landmarks.map_bytes == 8 * 6 * 13 and landmarks.num_frequencies is None


@pytest.mark.parametrize(
    "delta", [0.0, 1.0, -1, math.nan, None, "x", True, jax.numpy.asarray(0.1)]
)
def test_targets_outside_zero_and_one_are_refused_by_name(delta):
    for planner in (
        lambda e, d: plan.fourier(e, d, num_points=3),
        plan.streaming,
        lambda e, d: plan.kernel_jl(e, d, num_functions=3),
        plan.nystrom,
    ):
        with pytest.raises(ValueError, match="delta must be"):
            planner(0.1, delta)
        with pytest.raises(ValueError, match="eps must be"):
            planner(delta, 0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plan.fourier(0.1, 0.1), "num_points must be given"),
        (lambda: plan.fourier(0.1, 0.1, dim=3), "diameter"),
        (lambda: plan.fourier(0.1, 0.1, num_points=3, diameter=3.0), "dim"),
        (lambda: plan.fourier(0.1, 0.1, num_points=0), "num_points"),
        (lambda: plan.fourier(0.1, 0.1, num_points=2.5), "num_points"),
        (lambda: plan.fourier(0.1, 0.1, dim=0, diameter=1.0), "dim"),
        (lambda: plan.fourier(0.1, 0.1, dim=2, diameter=-1.0), "diameter"),
        (
            lambda: plan.fourier(0.1, 0.1, num_points=3, kernel=kernels.Cauchy(1.0)),
            "must be kernels.Gaussian",
        ),
        (
            lambda: plan.fourier(0.1, 0.1, num_points=3, kernel=kernels.Matern52(1.0)),
            "dim and diameter alone",
        ),
        (
            lambda: plan.fourier(0.1, 0.1, num_points=3, kernel=kernels.Laplacian(1.0)),
            "by Theorem N of",
        ),
        (
            lambda: plan.fourier(
                0.1, 0.1, dim=2, diameter=1.0, kernel=kernels.Exponential(1.0)
            ),
            "by Theorem N of",
        ),
        (
            lambda: plan.fourier(1e-9, 0.1, num_points=10),
            "eps and delta must be larger",
        ),
        (
            lambda: plan.fourier(0.1, 0.1, squared_distances=[1.0]),
            "squared_distances and pairs must be given together",
        ),
        (
            lambda: plan.fourier(0.1, 0.1, squared_distances=[1.0], pairs=[1, 2]),
            r"pairs must have the shape .*\(1,\)",
        ),
        (
            lambda: plan.fourier(0.1, 0.1, squared_distances=["a"], pairs=[1]),
            "squared_distances must be a vector",
        ),
        (
            lambda: plan.fourier(0.1, 0.1, squared_distances=[math.nan], pairs=[1]),
            "squared_distances must be a vector",
        ),
        (
            lambda: plan.fourier(0.1, 0.1, squared_distances=[1.0], pairs=[-1]),
            "pairs must be a vector of finite",
        ),
        (
            lambda: plan.fourier(0.1, 0.1, squared_distances=[[1.0]], pairs=[[1]]),
            "must be a vector of finite numbers",
        ),
        (
            lambda: plan.kernel_values(
                0.1, 0.1, squared_distances=[1.0], pairs=[1], farthest=[0.5]
            ),
            "farthest must be at least squared_distances",
        ),
        (lambda: plan.streaming(1e-16, 0.1), "eps must be larger: no size below"),
        (lambda: plan.streaming(0.1, 0.1, sketch_size=9), "sketch_size must exceed"),
        (lambda: plan.streaming(0.1, 0.1, num_points=0), "num_points"),
        (lambda: plan.kernel_jl(0.1, 0.1), "kappa must be given"),
        (lambda: plan.kernel_jl(0.1, 0.1, kappa=1.0), "op_norm must be given"),
        (
            lambda: plan.kernel_jl(0.1, 0.1, num_functions=3, kappa=1.0),
            "num_functions must be given alone",
        ),
        (lambda: plan.kernel_jl(0.1, 0.1, num_functions=0), "num_functions"),
        (lambda: plan.kernel_jl(0.1, 0.1, **{**POPULATION, "trace": -1.0}), "trace"),
        (
            lambda: plan.kernel_jl(0.9, 0.1, **POPULATION | {"kappa": 0.9}),
            "trace <= kappa must hold.*trace=1, .*norms of the covariance operator",
        ),
        (
            lambda: plan.kernel_jl(0.9, 0.1, **POPULATION | {"trace3": 0.1}),
            "op_norm .* op_norm <= trace3",
        ),
        (
            lambda: plan.kernel_jl(
                0.1, 0.1, **{**POPULATION, "trace": jax.numpy.ones(2)}
            ),
            "trace must be a positive",
        ),
        (
            lambda: plan.kernel_jl(1e-9, 0.1, **POPULATION),
            "no statement reaches eps=1e-09 with fewer than 2",
        ),
        (
            lambda: plan.kernel_jl(0.1, 0.1, **POPULATION, num_landmarks=100),
            "num_landmarks must be larger",
        ),
        (
            lambda: plan.pivoted_cholesky(0.1, eigenvalues=[0.0]),
            "eigenvalues must have a positive sum",
        ),
        (
            lambda: plan.pivoted_cholesky(0.1, eigenvalues=[2.0], trace=1.0),
            "eigenvalues must have .* at most the trace",
        ),
        (
            lambda: plan.pivoted_cholesky(0.1, eigenvalues=[-1.0]),
            "eigenvalues must be a vector of finite numbers",
        ),
        (
            lambda: plan.pivoted_cholesky(0.1, eigenvalues=[1.0], rank=2),
            "rank must be at most 1",
        ),
        (
            lambda: plan.pivoted_cholesky(0.1, 0.5, eigenvalues=[0.9], trace=1.0),
            "leave out 0.1 of 1",
        ),
        (lambda: plan.pivoted_cholesky(0.1, 1.0, eigenvalues=[0.9]), "delta must be"),
        (lambda: plan.memory(dim=0, num_features=4), "dim"),
        (lambda: plan.memory(dim=2, num_features=3), "num_features must be even"),
        (lambda: plan.memory(dim=2, num_features=4, itemsize=2), "itemsize"),
    ],
)
def test_what_no_statement_certifies_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
