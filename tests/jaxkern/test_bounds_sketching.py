"""Bounds of kpotufe2020 against literal transcriptions, on floats and on arrays; hypotheses, scaling, monotonicity."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.edges import wrong_edges

from jaxkern.bounds import Bound, sketching
from jaxkern.bounds._bound import xp

C = 5.92
"""Theorem A of docs/theory/kpotufe2020.md."""


def numbers(**changes):
    """A spectrum with op_norm .6, trace 1, trace3 .25, hs_norm .65, and generous n and d."""
    words = {"kappa": 1.3, "op_norm": 0.6, "trace": 1.0, "trace3": 0.25, "hs_norm": 0.65, "op_norm3": 0.216}
    words |= {"theta": 0.8, "scale": 0.5, "eigenvalue": 0.4, "epsilon": 0.1, "num_points": 50, "eta": 1e-4}
    words |= {"sigma": 0.05, "weight": 0.3, "mean_gap": 1.5, "num_functions": 60, "num_pairs": 60}
    words |= {"rank": 1.8, "energy": 0.3, "squared_diameter": 0.4, "squared_distance": 2.5}
    return {**words, "n": 10**6, "d": 400, "tau": 2.5, **changes}


def covariance_deviation(kappa, trace, n, tau):
    return 4 * math.sqrt(2 * kappa * trace * tau / n), 1 - 2 * math.exp(-tau), 8 * kappa * tau / (9 * trace)


def covariance_deviation_bernstein(kappa, trace, n, tau):
    return math.sqrt(2 * kappa * trace * tau / n) + 4 * kappa * tau / n, 1 - 2 * math.exp(-tau), 1


def covariance_deviation_sharp(kappa, trace, hs_norm, n, tau):
    first = math.sqrt(2 * (kappa * trace - hs_norm * hs_norm) * tau / n)
    return first + math.hypot(kappa, hs_norm) * tau / (3 * n), 1 - 2 * math.exp(-tau), 1


def hilbert_mean(theta, scale, n, tau):
    return theta * math.sqrt(2 * tau / n) + scale * tau / n, 1 - 2 * math.exp(-tau), 1


def hilbert_mean_printed(theta, scale, n, tau):
    return 2 * scale * tau / n + math.sqrt(2 * theta**2 * tau / n), 1 - 2 * math.exp(-tau), 1


def gaussian_covariance(op_norm, rank, n, tau, constant=C):
    return constant * op_norm * (math.sqrt(rank) + math.sqrt(tau)) / math.sqrt(n), 1 - math.exp(-tau), max(rank, tau)


def cube_deviation(kappa, op_norm, trace, n, tau):
    value = 28 * op_norm * op_norm * math.sqrt(2 * kappa * trace * tau / n)
    return value, 1 - 2 * math.exp(-tau), 32 * kappa * (trace / op_norm) * tau / op_norm


def cube_trace(kappa, op_norm, trace, trace3, hs_norm, n, tau):
    value = trace3 + 28 * op_norm * hs_norm * math.sqrt(2 * kappa * trace * tau / n)
    return value, 1 - 2 * math.exp(-tau), 32 * kappa * (trace / op_norm) * tau / op_norm


def cube_trace_printed(kappa, op_norm, trace, trace3, hs_norm, n, tau):
    value = trace3 + 28 * hs_norm * hs_norm * math.sqrt(2 * kappa * trace * tau / n)
    return value, 1 - 2 * math.exp(-tau), 32 * kappa * (trace / op_norm) * tau / op_norm


def projected_inner_products(op_norm, trace3, d, tau, constant=C):
    s3 = trace3 / op_norm**3
    return constant * op_norm**3 * (math.sqrt(s3) + math.sqrt(tau)) / math.sqrt(d), 1 - math.exp(-tau), None


def projected_inner_products_all_d(op_norm, trace3, d, tau):
    D = (math.sqrt(trace3 / op_norm**3) + 0.51 + math.sqrt(2 * tau)) / math.sqrt(d)
    return op_norm**3 * (2 * D + D * D), 1 - 2 * math.exp(-tau), None


def conditional_sketch(op_norm3, trace3, d, tau, constant=C):
    value = constant * (math.sqrt(trace3 * op_norm3 / d) + op_norm3 * math.sqrt(tau / d))
    return value, 1 - math.exp(-tau), None


def inner_products(kappa, op_norm, trace, trace3, n, d, tau, constant=C):
    S, s, s3 = op_norm, trace / op_norm, trace3 / op_norm**3
    value = constant * S**3 * (math.sqrt(3 * s3) + 1.5 * math.sqrt(tau)) / math.sqrt(d)
    value += 28 * S**2.5 * math.sqrt(2 * kappa * s * tau / n)
    return value, 1 - 3 * math.exp(-tau), 6272 * kappa * s * max(1, math.sqrt(s) / 4) * tau / S


def inner_products_printed(kappa, op_norm, trace, trace3, n, d, tau, constant=C):
    S, s, s3 = op_norm, trace / op_norm, trace3 / op_norm**3
    value = 3 * constant * S**3 * (math.sqrt(2 * s3) + math.sqrt(tau)) / math.sqrt(d)
    value += 28 * S**2.5 * math.sqrt(2 * kappa * s * tau / n)
    return value, 1 - 5 * math.exp(-tau), 6272 * kappa * s**5 * tau / S


def inner_products_all_d(kappa, op_norm, trace, trace3, hs_norm, n, d, tau):
    S = op_norm
    Dp = 28 * S**2 * math.sqrt(2 * kappa * trace * tau / n)
    o, t = math.sqrt(S**3 + Dp), trace3 + Dp * hs_norm / S
    D = (math.sqrt(t) + o * (0.51 + math.sqrt(2 * tau))) / math.sqrt(d)
    return 2 * o * D + D * D + Dp, 1 - 4 * math.exp(-tau), 32 * kappa * (trace / S) * tau / S


def inner_products_every_n(kappa, op_norm, trace, trace3, hs_norm, n, d, tau):
    S, x = op_norm, covariance_deviation_sharp(kappa, trace, hs_norm, n, tau)[0]
    e = (S + x) ** 3 - S**3
    o, t = math.sqrt(S**3 + e), trace3 + e + 3 * x * S * (hs_norm - S)
    D = (math.sqrt(t) + o * (0.51 + math.sqrt(2 * tau))) / math.sqrt(d)
    return 2 * o * D + D * D + e, 1 - 4 * math.exp(-tau), 1


def separation_shortfall(
    kappa, op_norm, trace, trace3, hs_norm, n, d, tau, eigenvalue, epsilon, num_points, eta
):  # fmt: skip
    e = inner_products_every_n(kappa, op_norm, trace, trace3, hs_norm, n, d, tau)[0]
    value = 4 * epsilon * kappa * eigenvalue**3 + 4 * kappa * e
    return value, 1 - 4 * math.exp(-tau) - num_points * eta, 1


def largest_stretch(kappa, op_norm, trace, trace3, hs_norm, n, d, tau):
    e = inner_products_every_n(kappa, op_norm, trace, trace3, hs_norm, n, d, tau)[0]
    return op_norm**3 + e, 1 - 4 * math.exp(-tau), 1


def mean_separation_shortfall(
    kappa, op_norm, trace, trace3, hs_norm, n, d, tau, sigma, weight, mean_gap
):  # fmt: skip
    e = inner_products_every_n(kappa, op_norm, trace, trace3, hs_norm, n, d, tau)[0]
    return op_norm**3 * sigma / weight / (1 - weight) + e * mean_gap, 1 - 4 * math.exp(-tau), 1


def relative_norms(num_functions, d, tau):
    x = math.log(num_functions) + tau
    return 2 * math.sqrt(x / d) + 2 * x / d, 1 - 2 * math.exp(-tau), None


def relative_separation(
    num_pairs, d, tau, kappa, op_norm, eigenvalue, epsilon, squared_diameter, squared_distance
):  # fmt: skip
    u = relative_norms(num_pairs, d, tau)[0]
    value = squared_diameter * (op_norm / eigenvalue) ** 3 / (squared_distance - 4 * epsilon * kappa)
    return value * (1 + u) / (1 - u), 1 - 2 * math.exp(-tau), None


def weak_difference_given(energy, d, tau):
    return math.sqrt(2 * tau * energy / d), 1 - math.exp(-tau), None


def weak_difference_given_printed(energy, d, tau):
    return math.sqrt(2 * tau * energy / d), 1 - 2 * math.exp(-tau), None


def weak_difference(kappa, op_norm, trace, n, d, tau):
    value = 3 * math.sqrt(2 * tau) * op_norm**1.5 / math.sqrt(d)
    return value, 1 - 3 * math.exp(-tau), 32 * kappa * (trace / op_norm) * tau / op_norm


def weak_difference_printed(kappa, op_norm, trace, n, d, tau):
    value = 16 * math.sqrt(2 * tau) * max(op_norm**1.5, op_norm**1.25) / math.sqrt(d)
    return value, 1 - 4 * math.exp(-tau), kappa * (trace / op_norm) * tau * max(32 / op_norm, 1)


def weak_difference_coupled(kappa, op_norm, trace, n, d, tau):
    value = 12 * math.sqrt(2) * tau * op_norm * math.sqrt(kappa * (trace / op_norm) / (n * d))
    return value, 1 - 3 * math.exp(-tau), 32 * kappa * (trace / op_norm) * tau / op_norm


PAIRS = {
    "covariance_deviation": (sketching.covariance_deviation, covariance_deviation),
    "covariance_deviation_bernstein": (sketching.covariance_deviation_bernstein, covariance_deviation_bernstein),
    "covariance_deviation_sharp": (sketching.covariance_deviation_sharp, covariance_deviation_sharp),
    "hilbert_mean": (sketching.hilbert_mean, hilbert_mean),
    "hilbert_mean printed": (partial(sketching.hilbert_mean, as_printed=True), hilbert_mean_printed),
    "gaussian_covariance": (sketching.gaussian_covariance, gaussian_covariance),
    "cube_deviation": (sketching.cube_deviation, cube_deviation),
    "cube_trace": (sketching.cube_trace, cube_trace),
    "cube_trace printed": (partial(sketching.cube_trace, as_printed=True), cube_trace_printed),
    "projected_inner_products": (sketching.projected_inner_products, projected_inner_products),
    "projected_inner_products_all_d": (sketching.projected_inner_products_all_d, projected_inner_products_all_d),
    "conditional_sketch": (sketching.conditional_sketch, conditional_sketch),
    "inner_products": (sketching.inner_products, inner_products),
    "inner_products printed": (partial(sketching.inner_products, as_printed=True), inner_products_printed),
    "inner_products_all_d": (sketching.inner_products_all_d, inner_products_all_d),
    "inner_products_every_n": (sketching.inner_products_every_n, inner_products_every_n),
    "separation_shortfall": (sketching.separation_shortfall, separation_shortfall),
    "largest_stretch": (sketching.largest_stretch, largest_stretch),
    "mean_separation_shortfall": (sketching.mean_separation_shortfall, mean_separation_shortfall),
    "relative_norms": (sketching.relative_norms, relative_norms),
    "relative_separation": (sketching.relative_separation, relative_separation),
    "weak_difference_given": (sketching.weak_difference_given, weak_difference_given),
    "weak_difference_given printed": (
        partial(sketching.weak_difference_given, as_printed=True),
        weak_difference_given_printed,
    ),
    "weak_difference": (sketching.weak_difference, weak_difference),
    "weak_difference printed": (partial(sketching.weak_difference, as_printed=True), weak_difference_printed),
    "weak_difference_coupled": (sketching.weak_difference_coupled, weak_difference_coupled),
}
SETTINGS = [
    {},
    {"op_norm": 1.7, "trace": 4.0, "trace3": 6.0, "hs_norm": 2.0, "kappa": 5.0},
    {"op_norm": 0.1, "trace": 4.0, "trace3": 0.002, "hs_norm": 0.4, "op_norm3": 0.001},
    {"tau": 0.3, "d": 1, "n": 7},
]


def words_of(literal):
    return [name for name in literal.__code__.co_varnames[: literal.__code__.co_argcount] if name != "constant"]


def arguments(literal, **changes):
    return {name: numbers(**changes)[name] for name in words_of(literal)}


def test_every_public_bound_is_tested():
    tested = {getattr(bound, "func", bound).__name__ for bound, _ in PAIRS.values()}
    public = {name for name in sketching.__all__ if callable(getattr(sketching, name))}
    assert tested == public


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("setting", range(len(SETTINGS)))
def test_bounds_on_python_numbers_are_the_literal_formula_in_float64(name, setting):
    bound, literal = PAIRS[name]
    words = arguments(literal, **SETTINGS[setting])
    found = bound(**words)
    value, probability, _ = literal(**words)
    assert isinstance(found, Bound)
    assert type(found.value) is float and type(found.probability) is float and type(found.valid) is bool
    assert found.value == pytest.approx(value, rel=1e-14) and found.probability == pytest.approx(probability, rel=1e-14)
    assert isinstance(found.source, str) and ("kpotufe2020" in found.source or "jaxkern" in found.source)
    assert ("printed" in found.source) == ("printed" in name)


@pytest.mark.parametrize("name", PAIRS)
def test_enough_landmarks_make_a_bound_valid_and_fewer_do_not(name):
    bound, literal = PAIRS[name]
    for setting in SETTINGS[:3]:
        words = arguments(literal, **setting)
        least = literal(**words)[2]
        if least is None:
            assert bound(**words).valid
            continue
        least = max(least, 1.0)
        assert bound(**{**words, "n": least * (1 + 1e-9)}).valid
        assert not bound(**{**words, "n": least * (1 - 1e-9)}).valid


@pytest.mark.parametrize("name", [name for name in PAIRS if "weak_difference printed" not in name])
def test_a_failure_probability_above_one_is_not_valid(name):
    bound, literal = PAIRS[name]
    for tau in (0.0, -1.0):
        found = bound(**arguments(literal, tau=tau))
        assert not found.valid and found.probability <= 0
        assert tau == 0 or not found.value > 0 or "relative" in name  # these have a logarithm beside tau


HYPOTHESES = {
    "covariance_deviation": "tau > 0",
    "covariance_deviation_bernstein": "tau > 0, n >= 1",
    "covariance_deviation_sharp": "tau > 0, n >= 1",
    "hilbert_mean": "tau > 0, n >= 1",
    "hilbert_mean printed": "tau > 0, n >= 1",
    "gaussian_covariance": "tau >= 1",
    "cube_deviation": "tau > 0",
    "cube_trace": "tau > 0",
    "cube_trace printed": "tau > 0",
    "projected_inner_products": "tau >= 1",
    "projected_inner_products_all_d": "tau > 0",
    "conditional_sketch": "tau >= 1",
    "inner_products": "tau >= 1",
    "inner_products printed": "tau >= 1",
    "inner_products_all_d": "tau > 0",
    "inner_products_every_n": "tau > 0, n >= 1, d >= 1",
    "separation_shortfall": "tau > 0, n >= 1, d >= 1, epsilon >= 0, epsilon <= 1",
    "largest_stretch": "tau > 0, n >= 1, d >= 1",
    "mean_separation_shortfall": "tau > 0, n >= 1, d >= 1, weight > 0, weight < 1",
    "relative_norms": "tau > 0, d >= 1, num_functions >= 1",
    "relative_separation": (
        f"tau > 0, num_pairs >= 1, squared_distance >~ 0.52, d >~ {4 * (math.log(60) + 2.5) / (math.sqrt(3) - 1) ** 2}"
    ),
    "weak_difference_given": "tau > 0, d >= 1",
    "weak_difference_given printed": "tau > 0, d >= 1",
    "weak_difference": "tau > 0",
    "weak_difference printed": "tau > 0",
    "weak_difference_coupled": "tau > 0",
}


def test_every_bound_has_hypotheses():
    assert set(HYPOTHESES) == set(PAIRS)


@pytest.mark.parametrize("name", HYPOTHESES)
def test_hypotheses_hold_up_to_their_edges(name):
    bound, literal = PAIRS[name]
    assert wrong_edges(bound, arguments(literal), HYPOTHESES[name]) == []


@pytest.mark.parametrize(
    ("name", "changes", "hypotheses"),
    [
        ("covariance_deviation", {"kappa": 9.0, "trace": 1.0, "tau": 1.0}, "n >= 8"),
        ("projected_inner_products", {"op_norm": 1.0, "trace3": 4.0, "tau": 2.0}, "d >= 4"),
        ("projected_inner_products", {"op_norm": 1.0, "trace3": 4.0, "tau": 8.0}, "d >= 8"),
        ("conditional_sketch", {"op_norm3": 0.5, "trace3": 2.0, "tau": 2.0}, "d >= 4"),
        ("conditional_sketch", {"op_norm3": 0.5, "trace3": 2.0, "tau": 8.0}, "d >= 8"),
        ("inner_products", {"trace3": 1.0, "tau": 1.0}, "n >= 6272, d >= 4"),
        ("inner_products printed", {"trace3": 1.0, "tau": 1.0}, "n >= 6272"),
        ("weak_difference printed", {"kappa": 64.0, "op_norm": 64.0, "trace": 4.0, "tau": 1.0}, "n >= 4"),
    ],
)
def test_sizes_hold_up_to_edges_without_rounding(name, changes, hypotheses):
    bound, literal = PAIRS[name]
    words = arguments(literal, **{"kappa": 1.0, "op_norm": 1.0, "trace": 1.0, **changes})
    assert wrong_edges(bound, words, hypotheses) == []


def test_enough_rows_make_a_bound_valid_and_fewer_do_not():
    rank = 0.25 / 0.6**3
    for name, least in [
        ("projected_inner_products", max(rank, 2.5)),
        ("conditional_sketch", max(0.25 / 0.216, 2.5)),
        ("inner_products", max(4 * rank, 2.5)),
    ]:
        bound, literal = PAIRS[name]
        for tau in (2.5, 8.0):
            least = max(least, tau)
            assert bound(**arguments(literal, tau=tau, d=least + 1e-9)).valid
            assert not bound(**arguments(literal, tau=tau, d=least - 1e-6)).valid
        assert not bound(**arguments(literal, tau=0.99)).valid and bound(**arguments(literal, tau=1.0)).valid
    printed, literal = PAIRS["inner_products printed"]
    assert printed(**arguments(literal, d=1)).valid  # as printed, every d


@pytest.mark.parametrize("name", PAIRS)
def test_bounds_on_arrays_pass_through_jit_vmap_and_grad(name, dtype):
    bound, literal = PAIRS[name]
    words = arguments(literal)
    taus = jnp.asarray([0.5, 1.0, 4.0], dtype)
    others = {key: value for key, value in words.items() if key != "tau"}
    batched = jax.jit(jax.vmap(lambda tau: bound(**others, tau=tau)))(taus)
    assert batched.value.shape == (3,) and batched.value.dtype == dtype and batched.valid.dtype == bool
    expected = [bound(**others, tau=tau) for tau in (0.5, 1.0, 4.0)]
    rounding = 20 * float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(batched.value, [b.value for b in expected], rtol=rounding)
    np.testing.assert_allclose(batched.probability, [b.probability for b in expected], atol=5 * rounding)
    assert batched.valid.tolist() == [b.valid for b in expected]
    assert batched.source == expected[0].source
    slope = jax.grad(lambda tau: bound(**others, tau=tau).value)(jnp.asarray(2.0, dtype))
    difference = (bound(**others, tau=2.0 + 1e-6).value - bound(**others, tau=2.0 - 1e-6).value) / 2e-6
    assert float(slope) == pytest.approx(difference, rel=1e-6 + 10 * rounding)


@pytest.mark.parametrize("name", PAIRS)
def test_bounds_fall_with_more_data_and_rise_with_confidence(name):
    bound, literal = PAIRS[name]
    words = arguments(literal)
    base = bound(**words)
    for word in {"n", "d"} & set(words):
        assert bound(**{**words, word: 4 * words[word]}).value <= base.value
    assert any(bound(**{**words, word: 4 * words[word]}).value < base.value for word in {"n", "d"} & set(words))
    surer = bound(**{**words, "tau": 5.0})
    assert surer.value > base.value and surer.probability > base.probability


def test_bounds_relate_as_documented():
    words = numbers()
    deviation = arguments(covariance_deviation)
    assert 1 <= sketching.covariance_deviation(**deviation).value / sketching.covariance_deviation_bernstein(
        **deviation
    ).value <= 4  # fmt: skip
    corrected = sketching.inner_products(**arguments(inner_products))
    printed = sketching.inner_products(**arguments(inner_products), as_printed=True)
    assert corrected.value < printed.value and corrected.probability > printed.probability
    shape = sketching.projected_inner_products(**arguments(projected_inner_products), constant=1)
    assert sketching.projected_inner_products(
        **arguments(projected_inner_products)
    ).value / shape.value == pytest.approx(C)
    weak = arguments(weak_difference)
    assert sketching.weak_difference(**weak).value < sketching.weak_difference(**weak, as_printed=True).value
    lower = sketching.KOLTCHINSKII_LOUNICI_LOWER
    assert 1.999 < lower - math.log1p(lower) < 2 and lower < C == sketching.KOLTCHINSKII_LOUNICI
    cube = arguments(cube_trace)
    assert sketching.cube_trace(**cube).value < sketching.cube_trace(**cube, as_printed=True).value
    more = {**weak, "n": 10**12}
    assert sketching.weak_difference_coupled(**more).value < 1e-2 * sketching.weak_difference(**more).value
    assert words["op_norm"] ** 3 == pytest.approx(words["op_norm3"])


@pytest.mark.parametrize("name", [name for name in PAIRS if "printed" not in name])
def test_corrected_bounds_scale_with_the_kernel(name):
    """Multiplying the kernel by c multiplies operators by c: sizes and probabilities are the same, values scale."""
    bound, literal = PAIRS[name]
    c = 3.0
    degree = {"kappa": 1, "op_norm": 1, "trace": 1, "hs_norm": 1, "trace3": 3, "op_norm3": 3}
    degree |= {
        "energy": 3,
        "squared_diameter": 1,
        "squared_distance": 1,
        "theta": 1,
        "scale": 1,
        "eigenvalue": 1,
        "sigma": 1,
        "mean_gap": 1,
    }
    words = arguments(literal)
    scaled = {key: value * c ** degree.get(key, 0) for key, value in words.items()}
    others = {
        "weak_difference": 1.5,
        "weak_difference_coupled": 1.5,
        "hilbert_mean": 1,
        "relative_norms": 0,
        "relative_separation": 0,
    }
    others |= {"weak_difference_given": 1.5, "separation_shortfall": 4, "mean_separation_shortfall": 4}
    power = 1 if "covariance" in name else others.get(name, 3)
    assert bound(**scaled).value == pytest.approx(c**power * bound(**words).value, rel=1e-12)
    assert bound(**scaled).valid == bound(**words).valid


def test_sharper_bounds_are_sharper():
    for changes in SETTINGS:
        for n in (1, 30, 10**6):
            words = numbers(**{**changes, "n": n})

            def value(bound, words=words):
                literal = next(literal for ours, literal in PAIRS.values() if ours is bound)
                return bound(**{name: words[name] for name in words_of(literal)}).value

            assert value(sketching.covariance_deviation_sharp) < value(sketching.covariance_deviation_bernstein)
            if sketching.inner_products_all_d(**{k: words[k] for k in words_of(inner_products_all_d)}).valid:
                assert value(sketching.inner_products_every_n) < value(sketching.inner_products_all_d)
            assert value(sketching.largest_stretch) > words["op_norm"] ** 3


def test_parameters_out_of_range_are_not_valid():
    words = arguments(separation_shortfall)
    for epsilon in (-0.1, 1.1):
        assert not sketching.separation_shortfall(**{**words, "epsilon": epsilon}).valid
    words = arguments(mean_separation_shortfall)
    for weight in (-0.5, 1.5):
        assert not sketching.mean_separation_shortfall(**{**words, "weight": weight}).valid
    for word in ("d", "num_functions"):
        assert not sketching.relative_norms(**{**arguments(relative_norms), word: 0.5}).valid


def test_a_size_computed_from_a_condition_meets_it():
    """n = 32 kappa s tau / S in floating point, by another order of operations, still counts as enough."""
    for tau in np.linspace(0.1, 9, 50).tolist():
        words = arguments(cube_deviation, tau=tau)
        words["n"] = 32 * words["kappa"] * (words["trace"] / words["op_norm"]) * tau / words["op_norm"]
        assert sketching.cube_deviation(**words).valid


def test_a_variance_of_zero_may_be_rounded_to_less():
    """All points are equal: kappa tr Sigma = h^2, and h is known to an ulp."""
    found = sketching.covariance_deviation_sharp(kappa=1.0, trace=1.0, hs_norm=math.nextafter(1.0, 2), n=10, tau=3.0)
    assert found.value == pytest.approx(math.sqrt(2) / 10, rel=1e-14)


def test_numpy_scalars_count_as_python_numbers():
    words = {name: np.float64(value) for name, value in arguments(inner_products).items()}
    found = sketching.inner_products(**words)
    assert found.value == sketching.inner_products(**arguments(inner_products)).value
    assert not isinstance(found.value, jax.Array)


def test_numpy_scalars_of_any_dtype_give_float64():
    exact = sketching.weak_difference_coupled(kappa=1.0, op_norm=0.5, trace=1.0, n=10**9, d=10**4, tau=3.0)
    narrow = sketching.weak_difference_coupled(
        kappa=np.float32(1), op_norm=np.float32(0.5), trace=1, n=np.int32(10**9), d=np.int32(10**4), tau=np.float32(3)
    )
    assert type(narrow.value) is float and narrow.value == exact.value and narrow.valid is exact.valid is True


def test_what_python_refuses_to_compute_is_a_number_of_ieee():
    """A power of a negative number is complex in Python, and exp(1000) an error; a default is a plain float."""
    words = arguments(weak_difference, op_norm=-0.6)
    found = sketching.weak_difference(**words)
    assert type(found.value) is float and math.isnan(found.value) and math.isfinite(found.probability)
    assert found.valid is False
    mapped = sketching.weak_difference(**words | {"op_norm": jnp.array([-0.6, 0.6])})
    assert mapped.valid.tolist() == [False, True] and np.isfinite(mapped.probability).all()
    found = sketching.projected_inner_products(op_norm=0.6, trace3=0.25, d=400, tau=-1000.0)
    assert found.probability == -math.inf and math.isnan(found.value) and found.valid is False


def test_nan_is_never_the_larger_nor_the_smaller_of_two_numbers():
    for function in (xp.maximum, xp.minimum):
        assert all(math.isnan(function(*pair)) for pair in ((1.0, math.nan), (math.nan, 1.0)))
    assert xp.maximum(1.0, 2.0) == 2 and xp.minimum(1.0, 2.0) == 1
