"""Bounds of chen2016 and of Fourier Gram matrices: quadrature, how they relate, and what they are beyond hypotheses.

That they hold is what the claims of `proofs_check` say, which tests/papers judges: by default all that need no draws.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special, stats
from support.bound_cases import TABLES, words_in, wrong_edges
from support.transcriptions import kl, stop_loss

from jaxkern import plan
from jaxkern.bounds import fourier
from jaxkern.bounds.fourier import _given

FOURIER = TABLES["fourier"]
SIZES = {"num_frequencies", "num_features"}
LIMITS = ("success_limit", "simplex_success_limit", "vanishing_ball")
"""Limits from the other side, which grow with the number of frequencies."""
PAIR = {"eps": 0.3, "num_frequencies": 400}


def failure_of(bound, **arguments):
    return 1 - bound(**arguments).probability


def failure_of_pair(distance, **changes):
    """Return the failure probability of `relative_distances_given` for one pair."""
    pair = {"squared_distances": [distance**2], "pairs": [1.0]}
    return failure_of(fourier.relative_distances_given, **PAIR | changes, **pair)


def test_more_frequencies_never_make_a_bound_worse():
    for name, case in FOURIER.items():
        # A truncation must grow with the frequencies.
        if not SIZES & case.words.keys() or "truncation" in case.words:
            continue
        (word,) = SIZES & case.words.keys()
        before = case.bound(**case.words)
        after = case.bound(**case.words | {word: 1.3 * case.words[word]})
        assert after.value <= before.value or name.startswith(LIMITS), name
        assert after.probability >= before.probability, name


def test_hypotheses_that_need_other_arguments_hold_up_to_their_edges():
    many = FOURIER["ball"].words | {"num_frequencies": 1e11}
    assert wrong_edges(fourier.ball, many, "eps >= 1e-4") == []
    assert fourier.log_mgf(s=-50.0, distance=1.0).valid
    short = FOURIER["log_mgf printed"].bound
    assert wrong_edges(short, dict(s=0.4, distance=0.5), "distance <= 1; s < 2") == []
    # At this distance E X is 1, without rounding.
    assert wrong_edges(fourier.log_mgf, dict(s=0.4, distance=40), "s < 0.5") == []
    edge = math.sqrt(2 * math.log(1 / 0.1))
    assert fourier.dimension_limit(eps=0.1, dim=3, radius=edge).valid is True


@pytest.mark.parametrize(
    ("squared", "count", "is_valid"),
    [(0, 0, True), (0, -1e-9, False), (-1e-9, 1, False)],
)
def test_distances_and_numbers_of_pairs_are_not_negative(squared, count, is_valid):
    pairs = {"squared_distances": [1.0, squared], "pairs": [1.0, count]}
    assert fourier.relative_distances_given(**PAIR, **pairs).valid is is_valid


def exponent(ratio, distance):
    """Return the exponent of Chernoff's bound for the mean of X / E X at a ratio, by quadrature over the frequency."""
    w = np.linspace(-12, 12, 20_001)
    weights = np.exp(-(w**2) / 2)
    weights /= weights.sum()
    mean = 1 - math.exp(-(distance**2) / 2)
    excess = 1 - np.cos(distance * w) - ratio * mean
    if ratio < 1:
        excess *= -1
    least = optimize.minimize_scalar(
        lambda s: special.logsumexp(s * excess, b=weights),
        bounds=(0, 128),
        method="bounded",
        options=dict(xatol=1e-9),
    )
    return -least.fun


def ratios_of(eps):
    return (1 + eps) ** 2, (1 - eps) ** 2


def rate(ratio, distance):
    """Return the better exponent of two: that of the law, and chi-square's, which holds for every distance."""
    return max(exponent(ratio, distance), kl(ratio))


@pytest.mark.parametrize(("eps", "t"), [(0.3, 400), (0.05, 8000), (0.95, 40)])
def test_pairs_at_a_distance_fail_by_the_exponents_of_their_law(eps, t):
    """Unless chi-square says more, which the sharp bound does for close pairs."""
    size = {"eps": eps, "num_frequencies": t}
    sharp = fourier.relative_distances_sharp(**size, num_points=2).log_failure
    for distance in (0.06, 1.0, 5.9):
        pair = {"squared_distances": [distance**2], "pairs": [1.0]}
        bound = fourier.relative_distances_given(**size, **pair)
        rates = np.array([rate(ratio, distance) for ratio in ratios_of(eps)])
        # Logarithms: at the farthest distance failures are below every absolute tolerance.
        expected = min(special.logsumexp(-t * rates), sharp)
        assert bound.log_failure == pytest.approx(expected, rel=1e-6)
        assert distance < 0.5 or expected < sharp - 0.1


def test_rates_in_float32_are_not_above_those_in_float64():
    """The probability hides what rounding takes off a rate: the private function shows it.

    At eps = 0.99 and distance 2.5 no ratio is so large: the exponent is that of the largest tilt.
    """
    squared = np.array([0.0, 0.05, 0.3, 2.5]) ** 2
    in_single = jax.jit(partial(_given._relative_rates, jnp))
    for eps in (0.05, 0.99):
        double = _given._relative_rates(np, eps, squared)
        single = in_single(eps, np.float32(squared))
        for rates, rounded, ratio in zip(double, single, ratios_of(eps), strict=True):
            assert rates[0] == pytest.approx(kl(ratio))
            assert rates[3] == pytest.approx(rate(ratio, 2.5))
            floor = kl(ratio) * (1 + 1e-6)
            assert np.all(np.asarray(rounded)[1:] <= np.maximum(rates[1:], floor))


@pytest.mark.parametrize(("distance", "eps"), [(0.3, 0.05), (2.0, 0.3)])
def test_kernel_values_fail_by_the_nearest_distance_at_the_error_of_the_farthest(
    distance, eps
):
    bound = partial(
        fourier.kernel_values_given, eps=eps, num_frequencies=100, pairs=[3.0]
    )
    nearest = [distance**2]
    spread = bound(squared_distances=nearest, farthest=[1.21 * distance**2])
    mu = 1 - math.exp(-0.605 * distance**2)
    expected = 3 * math.exp(-100 * rate(1 + eps / mu, distance))
    if eps < mu:
        expected += 3 * math.exp(-100 * rate(1 - eps / mu, distance))
    assert spread.valid
    assert 1 - spread.probability == pytest.approx(expected, rel=1e-6, abs=1e-14)
    assert not bound(squared_distances=nearest, farthest=[0.01]).valid
    # Both ends are the worst: a distance between them that is known fails less.
    for known in (1.0, 1.1, 1.21):
        single = bound(squared_distances=[known * distance**2])
        assert single.probability >= spread.probability


def test_distances_out_of_the_range_of_the_quadrature_count_as_its_ends():
    sharp = failure_of(fourier.relative_distances_sharp, **PAIR, num_points=2)
    assert failure_of_pair(0.0) == failure_of_pair(0.049) == pytest.approx(sharp)
    assert failure_of_pair(6.0) == failure_of_pair(60.0)
    single = {"eps": 0.9, "num_frequencies": 1}
    closed = failure_of(fourier.relative_distances, **single, num_points=2)
    assert failure_of_pair(0.0, **single) <= closed


@pytest.mark.parametrize("eps", [1e-4, 0.3])
def test_a_pair_that_is_farther_fails_less(eps):
    size = {"eps": eps, "num_frequencies": math.ceil(8 / eps**2)}
    distances = [0, 1e-3, *np.geomspace(0.03, 9, 60)]
    failures = np.array([failure_of_pair(distance, **size) for distance in distances])
    assert np.all(failures[1:] <= failures[:-1] * (1 + 1e-9) + 1e-15)
    assert failures[0] > 0 and failures[-1] < 0.9 * failures[0]


@pytest.mark.parametrize("eps", [0.02, 0.8])
def test_nothing_is_lost_against_the_bounds_for_all_data(eps, rng):
    n = 300
    total = n * (n - 1) / 2
    size = plan.fourier(eps, 0.05, num_points=n).num_frequencies
    for scale in (0, 0.001, 1, 10):
        squared = np.sort(rng.exponential(size=7) * scale)
        known = {"squared_distances": squared, "pairs": rng.dirichlet([1] * 7) * total}
        planned = plan.fourier(eps, 0.05, **known)
        assert planned.num_frequencies <= size and planned.probability >= 0.95
        assert (planned.num_frequencies == size) == (scale < 0.01)
        for t in (max(size // 3, 1), size):
            words = {"eps": eps, "num_frequencies": t}
            failure = failure_of(fourier.relative_distances_given, **words, **known)
            for bound in (fourier.relative_distances_sharp, fourier.relative_distances):
                assert failure <= failure_of(bound, **words, num_points=n) + 1e-9


def test_float32_is_the_same_up_to_its_allowance_and_never_better():
    vectors = {"squared_distances": [0.0, 0.2, 1.0, 9.0], "pairs": [1.0, 9, 80, 200]}
    size = {"eps": 0.2, "num_frequencies": 250}
    exact = failure_of(fourier.relative_distances_given, **size, **vectors)
    arrays = {name: np.float32(vector) for name, vector in vectors.items()}
    bound = jax.jit(lambda a: fourier.relative_distances_given(**size, **a))(arrays)
    assert bound.probability.dtype == np.float32 and bool(bound.valid)
    # The allowance for rounding costs some per cent.
    assert exact * (1 - 1e-6) <= 1 - float(bound.probability) <= exact * 1.03


def test_distances_are_vectors_of_any_numbers_and_may_be_none():
    bound = fourier.relative_distances_given
    integers = bound(**PAIR, squared_distances=[1, 4], pairs=[3, 2])
    floats = bound(**PAIR, squared_distances=[1.0, 4.0], pairs=[3.0, 2.0])
    assert integers.probability == floats.probability
    assert bound(**PAIR, squared_distances=[], pairs=[]).probability == 1


def hadamard_of(power, eps, dim, radius):
    log_n = dim * math.log(radius / math.sqrt(2 * math.log(1 / eps)))
    log_terms = min(log_n, -2 * power * math.log(2 * eps)) - math.log(2)
    return power / math.e * math.exp(log_terms / power) - power + 1


@pytest.mark.parametrize(
    ("eps", "dim", "radius", "power"),
    [(0.2, 1, 10.8, 1), (0.05, 100, 1e30, 32)],
)
def test_the_dimension_limit_is_the_best_of_its_32_powers(eps, dim, radius, power):
    place = {"eps": eps, "dim": dim, "radius": radius}
    limit = fourier.dimension_limit(**place).value
    powers = [hadamard_of(k, **place) for k in range(1, 33)]
    assert 1 < max(powers) == powers[power - 1] == pytest.approx(limit, rel=1e-9)


def test_the_dimension_limit_holds_for_an_exact_gram_matrix_and_grows_with_the_ball():
    def limit(radius, eps=0.05):
        return fourier.dimension_limit(eps=eps, dim=3, radius=radius).value

    assert 1 <= limit(20.0) < limit(200.0)
    # The identity on n points is a unit map with error 0: its dimension is n, which no limit exceeds.
    edge = math.sqrt(2 * math.log(1 / 0.05))
    assert limit(8.0) <= (8.0 / edge) ** 3
    # Beyond its hypotheses the limit is the one at the edge. In a single point it is flat.
    assert limit(100.0, eps=0.4) == limit(100.0, eps=0.25 - 1e-6)
    value, slope = jax.jit(jax.value_and_grad(limit))(0.0)
    assert value == 1 and slope == 0 and limit(0.0) == limit(edge) == 1


@pytest.mark.parametrize(
    "name", ["gram_frobenius_paired", "gram_frobenius_paired_bernstein"]
)
def test_without_a_variance_that_of_every_kernel_counts(name):
    bound = FOURIER[name].bound
    words = FOURIER[name].words | {"variance": 1.0}
    largest = bound(**words)
    del words["variance"]
    default = bound(**words)
    assert default.value == largest.value
    assert default.probability == largest.probability


BALL = "num_frequencies=300, dim=2, diameter=10"
BEYOND = [
    ("chi_square_mean", "eps=-1.5, num_frequencies=20"),
    ("chi_square_mean", "eps=1.5, num_frequencies=20"),
    ("relative_distances_sharp", "eps=-0.1, num_frequencies=20, num_points=10"),
    ("relative_distances_sharp", "eps=0.0, num_frequencies=20, num_points=10"),
    ("relative_distances_sharp", "eps=1.0, num_frequencies=20, num_points=10"),
    ("relative_distances_sharp", "eps=1.5, num_frequencies=20, num_points=10"),
    ("log_mgf", "s=2.0, distance=1.0"),
    ("success_limit", "eps=-1e-3, num_frequencies=20, num_points=10"),
    ("ball", f"eps=0.2, {BALL}, tau=-1"),
    ("ball", f"eps=0.2, {BALL}, shell=1"),
    ("ball", f"eps=0.2, {BALL}, shell=0.5"),
    ("ball", f"eps=0.2, {BALL}, reach=0.7"),
    ("ball", "eps=0.2, num_frequencies=0.5, dim=2, diameter=10, tau=-3"),
]


@pytest.mark.parametrize(("name", "words"), BEYOND)
def test_beyond_their_hypotheses_bounds_are_numbers(name, words):
    bound = getattr(fourier, name)(**words_in(words))
    assert math.isfinite(bound.value) and math.isfinite(bound.probability)
    assert not bound.valid


def test_infinitely_many_frequencies_are_not_valid_and_exponents_are_cut():
    endless = {"num_frequencies": math.inf, "num_points": 10}
    assert not fourier.success_limit(eps=0.1, **endless).valid
    large = words_in("eps=0.2, num_frequencies=1e4, dim=1000, diameter=10")
    assert 1e20 < failure_of(fourier.ball, **large) < 1e30


def test_for_a_single_frequency_the_stop_loss_starts_at_zero():
    """The density has a pole there: quadrature with steps of 1e-4 is good for 1e-5."""
    words = {"eps": 0.5, "num_frequencies": 1, "num_points": 2}
    failure = failure_of(fourier.relative_distances_sharp, **words)
    assert failure == pytest.approx(stop_loss(1, 0.5), rel=1e-4)


def test_simplexes_succeed_as_often_as_is_said():
    """Half of them with 1.788 log n / eps^2 frequencies."""

    def simplex(t):
        words = {"eps": 0.05, "num_frequencies": t, "num_points": 1e6}
        return fourier.simplex_success_limit(**words).value

    half = 1.788 * math.log(1e6) / 0.05**2
    assert simplex(0.999 * half) < 0.5 < simplex(1.001 * half)
    # Beyond 8,178 frequencies terms are gathered, from above: a few frequencies more change nothing visible.
    assert 0 < simplex(8190) - simplex(8170) < 1e-2


@pytest.mark.parametrize("t", [5, 60, 1000])
@pytest.mark.parametrize("eps", [0.05, 0.2, 0.5])
def test_tails_bound_chi_square_and_the_sharp_one_is_within_a_factor_e(t, eps):
    law = stats.chi2(t, scale=1 / t)
    upper, lower = ratios_of(eps)
    exact = law.sf(upper) + law.cdf(lower)
    words = {"eps": eps, "num_frequencies": t, "num_points": 2}
    sharp = failure_of(fourier.relative_distances_sharp, **words)
    chernoff = failure_of(fourier.relative_distances, **words)
    closed = failure_of(fourier.relative_distances_closed_form, **words)
    assert exact <= sharp * (1 + 1e-9) + 1e-15
    assert exact <= chernoff + 1e-15
    assert chernoff <= closed * (1 + 1e-12)
    if 1e-12 < exact < 1e-2:  # where a size is planned
        assert sharp <= math.e * exact and sharp < chernoff
