"""Bounds of kpotufe2020: the sizes they ask for, scaling, monotonicity, and how they compare."""

import math

import numpy as np
import pytest
from support.bound_cases import TABLES, words_in, wrong_edges

from jaxkern.bounds import sketching

pytestmark = pytest.mark.optimised

SKETCHING = TABLES["sketching"]
UNIT = {"kappa": 1.0, "op_norm": 1.0, "trace": 1.0}
CASES = {name: case for name, case in SKETCHING.items() if " at " not in name}


def words_of(name, **changes):
    """Return the arguments of a bound, with changes to those that it has."""
    return {word: changes.get(word, value) for word, value in CASES[name].words.items()}


@pytest.mark.parametrize(
    ("name", "changes", "hypotheses"),
    [
        ("covariance_deviation", "kappa=9.0, tau=1.0", "n >= 8"),
        ("gaussian_covariance", "rank=4.0, tau=2.0", "n >= 4"),
        ("gaussian_covariance", "rank=4.0, tau=8.0", "n >= 8"),
        ("projected_inner_products", "trace3=4.0, tau=2.0", "d >= 4"),
        ("projected_inner_products", "trace3=4.0, tau=8.0", "d >= 8"),
        ("conditional_sketch", "op_norm3=0.5, trace3=2.0, tau=2.0", "d >= 4"),
        ("conditional_sketch", "op_norm3=0.5, trace3=2.0, tau=8.0", "d >= 8"),
        ("inner_products", "trace3=1.0, tau=1.0", "n >= 6272; d >= 4"),
        ("inner_products printed", "trace3=1.0, tau=1.0", "n >= 6272"),
        ("weak_difference printed", "kappa=64, op_norm=64, trace=64, tau=1", "n >= 64"),
    ],
)
def test_sizes_hold_up_to_edges_without_rounding(name, changes, hypotheses):
    words = words_of(name, **UNIT | words_in(changes))
    assert wrong_edges(CASES[name].bound, words, hypotheses) == []


RANK = 0.25 / 0.6**3


@pytest.mark.parametrize("tau", [2.5, 8.0])
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("projected_inner_products", RANK),
        ("conditional_sketch", 0.25 / 0.216),
        ("inner_products", 4 * RANK),
    ],
)
def test_enough_rows_make_a_bound_valid_and_fewer_do_not(name, least, tau):
    words = CASES[name].words | {"tau": tau, "d": 400}
    edge = f"d >~ {max(least, tau)}; tau >= 1"
    assert wrong_edges(CASES[name].bound, words, edge) == []


def test_as_printed_every_number_of_features_is_enough():
    printed = CASES["inner_products printed"]
    assert printed.bound(**printed.words | {"d": 1}).valid


def test_a_failure_probability_above_one_is_not_valid():
    for name, case in CASES.items():
        if "tau" in case.words and "weak_difference printed" not in name:
            for tau in (0.0, -1.0):
                bound = case.bound(**case.words | {"tau": tau})
                assert not bound.valid and bound.probability <= 0, name


@pytest.mark.parametrize(
    ("moved", "value", "others"),
    [
        ("op_norm", 0.66, {"hs_norm"}),
        ("hs_norm", 0.775, {"op_norm", "trace"}),
        ("trace", 1.31, {"kappa"}),
        ("trace3", 0.361, {"op_norm", "trace"}),
        ("eigenvalue", 0.601, {"op_norm"}),
        ("energy", 0.217, {"op_norm"}),
    ],
)
def test_quantities_that_no_kernel_has_are_not_valid(moved, value, others):
    """S = .6, |Sigma|_HS = .65, tr Sigma = 1 <= kappa and tr Sigma^3 = .25: each is moved beyond its neighbour."""
    for name, case in CASES.items():
        if case.words.keys() >= {moved, *others}:
            large = {size: 10**9 for size in ("n", "d") if size in case.words}
            bound = case.bound(**case.words | large | {moved: value})
            assert bound.valid is False, name


@pytest.mark.float64  # rounding is that of the arguments, of either dtype
@pytest.mark.parametrize(("dtype", "rounding"), [("float32", 1e-6), ("float64", 1e-10)])
def test_quantities_of_one_point_are_valid_up_to_rounding(dtype, rounding):
    """All of them are equal there, and a sum may round to either side."""
    names = ("kappa", "op_norm", "trace3", "hs_norm")
    words = dict.fromkeys(names, np.ones(5, dtype))
    errors = np.array([0, rounding, -rounding, 1e-4, -1e-4])
    bound = sketching.inner_products_every_n(
        **words, trace=(1 + errors).astype(dtype), n=100, d=100, tau=2.0
    )
    assert bound.valid.tolist() == [True, True, True, False, False]


def value(name, **changes):
    return CASES[name].bound(**CASES[name].words | changes).value


def test_bounds_relate_as_documented():
    bernstein = value("covariance_deviation_bernstein")
    assert 1 <= value("covariance_deviation") / bernstein <= 4
    for name in ("inner_products", "cube_trace", "weak_difference"):
        assert value(name) < value(f"{name} printed")
    n = 10**12
    coupled = sketching.weak_difference_coupled
    words = CASES["weak_difference"].words | {"n": n}
    assert coupled(**words).value < 1e-2 * value("weak_difference", n=n)


def test_constants_of_koltchinskii_and_lounici_solve_their_equation():
    lower = sketching.KOLTCHINSKII_LOUNICI_LOWER
    upper = sketching.KOLTCHINSKII_LOUNICI_TRACE
    shape = value("projected_inner_products", constant=1)
    assert value("projected_inner_products") / shape == pytest.approx(upper)
    assert 1.999 < lower - math.log1p(lower) < 2 and lower < upper == 3.51


LINEAR = "kappa op_norm trace hs_norm theta scale eigenvalue sigma mean_gap squared_diameter squared_distance"
DEGREES = dict.fromkeys(LINEAR.split(), 1)
DEGREES |= {"trace3": 3, "op_norm3": 3, "energy": 3}
POWERS = {"hilbert_mean": 1, "relative_norms": 0, "relative_separation": 0}
POWERS |= {"separation_shortfall": 4, "mean_separation_shortfall": 4}


@pytest.mark.parametrize("name", [name for name in CASES if "printed" not in name])
def test_corrected_bounds_scale_with_the_kernel(name):
    """Multiplying the kernel by c multiplies operators by c: sizes and probabilities are the same, values scale."""
    c = 3.0
    bound, words, *_ = CASES[name]
    scaled = {word: words[word] * c ** DEGREES.get(word, 0) for word in words}
    power = POWERS.get(name, 3)
    if "covariance" in name:
        power = 1
    elif "weak" in name or "law" in name:
        power = 1.5
    value = c**power * bound(**words).value
    assert bound(**scaled).value == pytest.approx(value, rel=1e-12)
    assert bound(**scaled).valid == bound(**words).valid


def deviation(kind, words):
    name = f"covariance_deviation_{kind}"
    return CASES[name].bound(**words_of(name, **words)).value


@pytest.mark.parametrize("n", [1, 30, 10**6])
def test_sharper_bounds_are_sharper(n):
    for name, case in SKETCHING.items():
        if not name.startswith("inner_products_all_d"):
            continue
        words = case.words | {"n": n}
        assert deviation("sharp", words) < deviation("bernstein", words)
        general = sketching.inner_products_all_d(**words)
        every_n = sketching.inner_products_every_n(**words)
        assert not general.valid or every_n.value < general.value
        assert sketching.largest_stretch(**words).value > words["op_norm"] ** 3


def test_a_size_computed_from_a_condition_meets_it():
    """n = 32 kappa s tau / S in floating point, by another order of operations, still counts as enough."""
    for tau in np.linspace(0.1, 9, 50).tolist():
        words = words_of("cube_deviation", tau=tau)
        rank = words["trace"] / words["op_norm"]
        words["n"] = 32 * words["kappa"] * rank * tau / words["op_norm"]
        assert sketching.cube_deviation(**words).valid


def test_a_variance_of_zero_may_be_rounded_to_less():
    """All points are equal: kappa tr Sigma = h^2, and h is known to an ulp."""
    bound = sketching.covariance_deviation_sharp(
        kappa=1.0, trace=1.0, hs_norm=math.nextafter(1.0, 2), n=10, tau=3.0
    )
    assert bound.value == pytest.approx(math.sqrt(2) / 10, rel=1e-14)
