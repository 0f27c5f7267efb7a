"""Bounds of chen2016 and of Fourier Gram matrices: quadrature, how they relate, and the edges of their hypotheses.

That they hold is what the claims of `proofs_check` say, which tests/papers judges: by default all that need no draws.
"""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special, stats
from support.bound_cases import TABLES, wrong_edges
from support.transcriptions import kl, stop_loss

from jaxkern import plan
from jaxkern.bounds import fourier
from jaxkern.bounds.fourier import _given

FOURIER = TABLES["fourier"]
SIZES = {"num_frequencies", "num_features"}
FREE = {"truncation"}
"""What must grow with them."""


@pytest.mark.parametrize(
    "name",
    [
        n
        for n, case in FOURIER.items()
        if SIZES & {*case.words} and not FREE & {*case.words}
    ],
)
def test_more_frequencies_never_make_a_bound_worse(name):
    bound, words, *_ = FOURIER[name]
    word = (SIZES & set(words)).pop()
    before, after = (
        bound(**{**words, word: words[word] * factor}) for factor in (1, 1.3)
    )
    if name.split()[0] not in (
        "success_limit",
        "simplex_success_limit",
        "vanishing_ball",
    ):  # limits from the other side
        assert after.value <= before.value
    assert after.probability >= before.probability


def test_hypotheses_that_need_other_words_hold_up_to_their_edges():
    many = FOURIER["ball"].words | dict(num_frequencies=1e11)
    assert wrong_edges(fourier.ball, many, "eps >= 1e-4") == []
    assert fourier.log_mgf(s=-50.0, distance=1.0).valid
    short = FOURIER["log_mgf printed"].bound
    assert wrong_edges(short, dict(s=0.4, distance=0.5), "distance <= 1; s < 2") == []
    one = dict(eps=0.2, num_frequencies=400)
    for squared, counts, valid in (
        (0.0, 0.0, True),
        (0.0, -1e-9, False),
        (-1e-9, 1.0, False),
    ):
        found = fourier.relative_distances_given(
            squared_distances=[1.0, squared], pairs=[1.0, counts], **one
        )
        assert found.valid is valid


def exponent(ratio, distance):
    """Return the exponent of Chernoff's bound for the mean of X / E X at a ratio, by quadrature over the frequency."""
    w = np.linspace(-12, 12, 60_001)
    X, weights = (
        1 - np.cos(distance * w),
        np.exp(-(w**2) / 2) / np.exp(-(w**2) / 2).sum(),
    )
    mean = 1 - math.exp(-(distance**2) / 2)
    sign = 1 if ratio > 1 else -1
    found = optimize.minimize_scalar(
        lambda s: special.logsumexp(sign * s * (X - ratio * mean), b=weights),
        bounds=(0, 128),
        method="bounded",
        options=dict(xatol=1e-9),
    )
    return -found.fun


@pytest.mark.parametrize(("eps", "t"), [(0.3, 400), (0.05, 8000), (0.95, 40)])
@pytest.mark.parametrize("distance", [0.06, 0.3, 1.0, 2.5, 5.9])
def test_pairs_at_a_distance_fail_by_the_exponents_of_their_law(eps, t, distance):
    """Unless chi-square says more, which the sharp bound does for close pairs."""
    found = fourier.relative_distances_given(
        eps=eps, num_frequencies=t, squared_distances=[distance**2], pairs=[1.0]
    )
    rates = [
        max(exponent(ratio, distance), kl(ratio))
        for ratio in ((1 + eps) ** 2, (1 - eps) ** 2)
    ]
    sharp = fourier.relative_distances_sharp(eps=eps, num_frequencies=t, num_points=2)
    expected = min(sum(math.exp(-t * rate) for rate in rates), 1 - sharp.probability)
    assert 1 - found.probability == pytest.approx(expected, rel=1e-6, abs=1e-15)
    assert distance < 0.5 or expected < 0.9 * (1 - sharp.probability)


@pytest.mark.parametrize("eps", [0.05, pytest.param(0.3, marks=pytest.mark.slow), 0.99])
def test_rates_are_the_exponents_of_both_tails_from_below(eps):
    """At eps = 0.99 and distance 2.5 no ratio is so large: the exponent is that of the largest tilt."""
    places = [0.05, 0.3, 2.5]
    squared = np.array([0.0, *(r**2 for r in places)])
    double = _given._relative_rates(np, eps, squared)
    single = jax.device_get(
        jax.jit(partial(_given._relative_rates, jnp, eps))(np.float32(squared))
    )
    for found, rounded, ratio in zip(
        double, single, ((1 + eps) ** 2, (1 - eps) ** 2), strict=True
    ):
        expected = [kl(ratio), *(max(exponent(ratio, r), kl(ratio)) for r in places)]
        np.testing.assert_allclose(found, expected, rtol=1e-7)
        assert np.all(rounded[1:] <= np.maximum(found[1:], kl(ratio) * (1 + 1e-6)))


@pytest.mark.parametrize(("distance", "eps"), [(0.3, 0.05), (1.0, 0.1), (2.0, 0.3)])
def test_kernel_values_fail_by_the_exponents_of_the_nearest_distance_at_the_error_of_the_farthest(
    distance, eps
):
    mu = 1 - math.exp(-0.605 * distance**2)
    words = dict(
        squared_distances=[distance**2], farthest=[1.21 * distance**2], pairs=[3.0]
    )
    found = fourier.kernel_values_given(eps=eps, num_frequencies=100, **words)
    ratios = [ratio for ratio in (1 + eps / mu, 1 - eps / mu) if ratio > 0]
    expected = sum(
        3 * math.exp(-100 * max(exponent(ratio, distance), kl(ratio)))
        for ratio in ratios
    )
    assert found.valid and 1 - found.probability == pytest.approx(
        expected, rel=1e-6, abs=1e-14
    )
    assert not fourier.kernel_values_given(
        eps=eps, num_frequencies=100, **words | dict(farthest=[0.01])
    ).valid
    # Both ends are the worst: a distance between them that is known fails less.
    for known in (1.0, 1.1, 1.21):
        one = fourier.kernel_values_given(
            eps=eps,
            num_frequencies=100,
            squared_distances=[known * distance**2],
            pairs=[3.0],
        )
        assert one.probability >= found.probability


def failure(distance, eps=0.3, t=400):
    """Return what the bound says of one pair."""
    words = dict(
        eps=eps, num_frequencies=t, squared_distances=[distance**2], pairs=[1.0]
    )
    return 1 - fourier.relative_distances_given(**words).probability


def test_distances_out_of_the_range_of_the_quadrature_count_as_its_ends():
    sharp = fourier.relative_distances_sharp(eps=0.3, num_frequencies=400, num_points=2)
    assert (
        failure(0.0) == failure(0.049) == pytest.approx(1 - sharp.probability, rel=1e-9)
    )
    assert failure(6.0) == failure(60.0)
    assert (
        failure(0.0, 0.9, 1.0)
        <= 1
        - fourier.relative_distances(
            eps=0.9, num_frequencies=1, num_points=2
        ).probability
    )


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
                assert (
                    given
                    >= bound(eps=eps, num_frequencies=t, num_points=n).probability
                    - 1e-9
                )
    at_zero = plan.fourier(eps, 0.05, squared_distances=[0.0], pairs=[total])
    assert at_zero.num_frequencies == size


def test_clusters_that_are_far_apart_need_fewer_frequencies_than_one_cluster(rng):
    centers = 3 * np.eye(20)
    spread = np.concatenate([c + 0.3 * rng.standard_normal((10, 20)) for c in centers])
    tight = 0.02 * rng.standard_normal((200, 20))
    sizes = []
    for X in (spread, tight):
        squared = np.sum((X[:, None] - X[None]) ** 2, axis=2)[np.triu_indices(200, 1)]
        sizes.append(
            plan.fourier(
                0.1, 0.05, squared_distances=squared, pairs=np.ones_like(squared)
            ).num_frequencies
        )
    worst = plan.fourier(0.1, 0.05, num_points=200).num_frequencies
    assert sizes[0] < 0.7 * worst and 0.99 * worst < sizes[1] <= worst


def test_float32_is_the_same_up_to_its_allowance_and_never_better(dtype):
    squared, pairs = [0.0, 0.2, 1.0, 9.0], [1.0, 9.0, 80.0, 200.0]
    words = dict(eps=0.2, num_frequencies=250)
    exact = fourier.relative_distances_given(
        **words, squared_distances=squared, pairs=pairs
    )
    arrays = dict(
        squared_distances=jnp.asarray(squared, dtype), pairs=jnp.asarray(pairs, dtype)
    )
    found = jax.jit(lambda a: fourier.relative_distances_given(**words, **a))(arrays)
    assert (
        found.probability.dtype == dtype and bool(found.valid) and exact.valid is True
    )
    slack = 3e-2 if dtype == "float32" else 1e-9
    assert 1 - exact.probability == pytest.approx(
        1 - float(found.probability), rel=slack
    )


def test_distances_are_vectors_of_one_size_and_any_numbers(x64):
    words = dict(eps=0.3, num_frequencies=400)
    whole = fourier.relative_distances_given(
        squared_distances=[1, 4], pairs=[3, 2], **words
    )
    exact = fourier.relative_distances_given(
        squared_distances=[1.0, 4.0], pairs=[3.0, 2.0], **words
    )
    assert whole.probability == exact.probability
    of_array = lambda squared: fourier.relative_distances_given(  # noqa: E731
        squared_distances=squared, pairs=np.ones(2), **words
    )
    assert (
        jax.eval_shape(of_array, np.ones(2, "float32")).probability.dtype == jnp.float32
    )
    assert (
        fourier.relative_distances_given(
            squared_distances=[], pairs=[], **words
        ).probability
        == 1
    )
    for squared, pairs_ in (([1.0, 2.0], [1.0]), (1.0, 1.0), ([[1.0]], [[1.0]])):
        with pytest.raises(ValueError, match="must be vectors of one size"):
            fourier.relative_distances_given(
                squared_distances=squared, pairs=pairs_, **words
            )


def test_extreme_eigenvalues_are_bounded_by_the_sphere(rng):
    """In a ball that is next to nothing they are all there is; most of what is lost is lost by Chernoff's bound too."""
    t, d, eps = 60, 3, 0.3
    found = fourier.ball(
        eps=eps, num_frequencies=t, dim=d, diameter=1e-6, tau=20, near=1e-5
    )
    W = rng.standard_normal((20_000, t, d))
    values = np.linalg.eigvalsh(np.einsum("nti,ntj->nij", W, W) / t)
    often = np.mean((values[:, -1] > (1 + eps) ** 2) | (values[:, 0] < (1 - eps) ** 2))
    assert often < 1 - found.probability < 25 * often


def test_beyond_its_hypotheses_a_ball_has_a_bound_that_is_a_number():
    words = dict(eps=0.2, num_frequencies=300, dim=2, diameter=10)
    for wrong in (
        dict(tau=-1),
        dict(shell=1),
        dict(shell=0.5),
        dict(reach=0.7),
        dict(num_frequencies=0.5, tau=-3),
    ):
        found = fourier.ball(**words | wrong)
        assert math.isfinite(found.probability) and not found.valid
    assert (
        -1e30
        < fourier.ball(**words | dict(dim=1000, num_frequencies=1e4)).probability
        < -1e20
    )  # exponents are cut


def hadamard_of(k, eps, d, R):
    log_n = d * math.log(R / math.sqrt(2 * math.log(1 / eps)))
    return (
        k
        / math.e
        * math.exp((min(log_n, -2 * k * math.log(2 * eps)) - math.log(2)) / k)
        - k
        + 1
    )


def hadamard(eps, d, R):
    return max(1, *[hadamard_of(k, eps, d, R) for k in range(1, 33)])


@pytest.mark.parametrize(
    ("eps", "dim", "radius", "power"),
    [
        (0.2, 1, 6 * math.sqrt(2 * math.log(5)), 1),
        (0.05, 100, 1e30, 32),
        (0.2, 1, math.sqrt(2 * math.log(5)), None),
    ],
)
def test_the_dimension_limit_is_the_best_of_its_32_powers(eps, dim, radius, power):
    found = fourier.dimension_limit(eps=eps, dim=dim, radius=radius).value
    assert found == pytest.approx(hadamard(eps, dim, radius), rel=1e-9)
    assert found == pytest.approx(
        1 if power is None else hadamard_of(power, eps, dim, radius), rel=1e-9
    )


def test_without_a_variance_that_of_every_kernel_counts():
    for name, largest in (
        ("gram_frobenius_paired", 1.0),
        ("gram_frobenius_paired_bernstein", 1.0),
    ):
        words = {
            word: value
            for word, value in FOURIER[name].words.items()
            if word != "variance"
        }
        found, expected = (
            getattr(fourier, name)(**words),
            getattr(fourier, name)(**words, variance=largest),
        )
        assert (found.value, found.probability) == (
            expected.value,
            expected.probability,
        )


def test_edges_that_are_known_without_rounding():
    assert (
        wrong_edges(fourier.log_mgf, dict(s=0.4, distance=40), "s < 0.5") == []
    )  # where E X is 1
    assert (
        fourier.dimension_limit(
            eps=0.1, dim=3, radius=math.sqrt(2 * math.log(1 / 0.1))
        ).valid
        is True
    )


def test_beyond_their_hypotheses_bounds_of_pairs_are_numbers():
    many = dict(num_frequencies=20, num_points=10)
    found = [
        fourier.chi_square_mean(eps=eps, num_frequencies=20) for eps in (-1.5, 1.5)
    ]
    found += [
        fourier.relative_distances_sharp(eps=eps, **many)
        for eps in (-0.1, 0.0, 1.0, 1.5)
    ]
    found += [
        fourier.log_mgf(s=2.0, distance=1.0),
        fourier.success_limit(eps=-1e-3, **many),
    ]
    for bound in found:
        assert (
            math.isfinite(bound.value)
            and math.isfinite(bound.probability)
            and not bound.valid
        )
    assert not fourier.success_limit(
        eps=0.1, num_frequencies=math.inf, num_points=10
    ).valid


def test_for_a_single_frequency_the_stop_loss_starts_at_zero():
    """The density has a pole there: quadrature with steps of 1e-4 is good for 1e-5."""
    found = fourier.relative_distances_sharp(eps=0.5, num_frequencies=1, num_points=2)
    assert 1 - found.probability == pytest.approx(stop_loss(1, 0.5), rel=1e-4)


def test_in_a_single_point_the_dimension_limit_is_flat():
    limit = jax.jit(
        jax.value_and_grad(
            lambda radius: fourier.dimension_limit(eps=0.1, dim=3, radius=radius).value
        )
    )
    assert [float(found) for found in limit(jnp.zeros(()))] == [1, 0]


def test_beyond_its_hypotheses_the_dimension_limit_stays_where_it_is_at_the_edge():
    words = dict(dim=3, radius=100.0)
    at_the_edge = fourier.dimension_limit(eps=0.25 - 1e-6, **words).value
    assert fourier.dimension_limit(eps=0.4, **words).value == at_the_edge
    assert fourier.dimension_limit(eps=0.1, dim=3, radius=0.0).value == 1


def test_planned_sizes_are_within_a_tenth_of_what_a_simplex_needs():
    for n, eps, ratio in ((1000, 0.05, 1.08), (10**6, 0.05, 1.04), (10**6, 0.2, 1.05)):
        words = dict(eps=eps, num_points=n)
        needed = plan.smallest_size(
            lambda t, words=words: fourier.relative_distances_sharp(
                num_frequencies=t, **words
            ),
            0.05,
        )
        allowed = fourier.simplex_success_limit(
            num_frequencies=needed / ratio, **words
        ).value
        assert (
            allowed
            < 0.95
            < fourier.simplex_success_limit(num_frequencies=needed, **words).value
        )
    half = optimize.brentq(
        lambda t: (
            fourier.simplex_success_limit(
                eps=0.05, num_frequencies=t, num_points=1e6
            ).value
            - 0.5
        ),
        5e3,
        2e4,
    )
    assert half * 0.05**2 / math.log(1e6) == pytest.approx(1.788, abs=1e-3)
    # Beyond 8,178 frequencies terms are gathered, from above: a single frequency more changes nothing visible.
    near = [
        fourier.simplex_success_limit(eps=0.05, num_frequencies=t, num_points=1e6).value
        for t in (8170, 8190)
    ]
    assert 0 < near[1] - near[0] < 1e-2


@pytest.mark.parametrize("t", [5, 60, 1000])
@pytest.mark.parametrize("eps", [0.05, 0.2, 0.5])
def test_tails_bound_chi_square_and_the_sharp_one_is_within_a_factor_e_where_it_matters(
    t, eps
):
    exact = stats.chi2.sf(t * (1 + eps) ** 2, t) + stats.chi2.cdf(t * (1 - eps) ** 2, t)
    words = dict(eps=eps, num_frequencies=t, num_points=2)
    sharp, chernoff, closed = (
        1 - bound(**words).probability
        for bound in (
            fourier.relative_distances_sharp,
            fourier.relative_distances,
            fourier.relative_distances_closed_form,
        )
    )
    assert exact <= sharp * (1 + 1e-9) + 1e-15
    assert exact <= chernoff + 1e-15 and chernoff <= closed * (1 + 1e-12)
    if 1e-12 < exact < 1e-2:
        assert sharp <= math.e * exact and sharp < chernoff


def test_the_dimension_limit_holds_for_an_exact_gram_matrix_and_grows_with_the_ball():
    small, large = (
        fourier.dimension_limit(eps=0.05, dim=3, radius=r).value for r in (20.0, 200.0)
    )
    assert 1 <= small < large
    # The identity on n points is a unit map with error 0: its dimension is n, which no limit exceeds.
    eps, radius, dim = 0.05, 8.0, 3
    n = (radius / math.sqrt(2 * math.log(1 / eps))) ** dim
    assert fourier.dimension_limit(eps=eps, dim=dim, radius=radius).value <= n
    assert not fourier.dimension_limit(eps=0.3, dim=3, radius=20.0).valid
