"""Bounds of kpotufe2020: the sizes they ask for, scaling, monotonicity, and how they compare."""

import math

import numpy as np
import pytest
from support.bound_cases import TABLES, wrong_edges

from jaxkern.bounds import sketching

SKETCHING = TABLES["sketching"]
CASES = {name: case for name, case in SKETCHING.items() if " at " not in name}
FAILING = {name: case for name, case in CASES.items() if "tau" in case.words}


def words_of(name, **changes):
    """Return the arguments of a bound, with changes to those that it has."""
    return {word: changes.get(word, value) for word, value in CASES[name].words.items()}


@pytest.mark.parametrize(
    "name", [name for name in FAILING if "weak_difference printed" not in name]
)
def test_a_failure_probability_above_one_is_not_valid(name):
    bound, words, *_ = CASES[name]
    for tau in (0.0, -1.0):
        found = bound(**words | {"tau": tau})
        assert not found.valid and found.probability <= 0
        logarithm = (
            "relative" in name or name == "covariance_deviation_operator"
        )  # beside tau
        assert tau == 0 or not found.value > 0 or logarithm


@pytest.mark.parametrize("name", CASES)
def test_quantities_that_no_kernel_has_are_not_valid(name):
    """S = .6, |Sigma|_HS = .65, tr Sigma = 1 <= kappa and tr Sigma^3 = .25: each is moved beyond its neighbour."""
    bound, words, *_ = CASES[name]
    words = words | {size: 10**9 for size in ("n", "d") if size in words}
    known = {"op_norm": 0.66, "hs_norm": 0.775, "trace": 1.31, "trace3": 0.361}
    known |= {"eigenvalue": 0.601, "energy": 0.217}
    for moved, value in known.items():
        neighbours = {"op_norm": "hs_norm", "trace": "kappa"}.get(moved, "op_norm")
        last = "trace" if moved in ("hs_norm", "trace3") else moved
        if words.keys() >= {moved, neighbours, last}:
            assert bound(**words | {moved: value}).valid is False, moved


@pytest.mark.parametrize(("dtype", "rounding"), [("float32", 1e-6), ("float64", 1e-10)])
def test_quantities_of_one_point_are_valid_up_to_rounding(x64, dtype, rounding):
    """All of them are equal there, and a sum may round to either side."""
    names = "kappa", "op_norm", "trace", "trace3", "hs_norm"
    for sign in (-1, 1):
        words = {name: np.ones(3, dtype) for name in names}
        words["trace"] += np.asarray(sign * rounding, dtype)
        found = sketching.inner_products_every_n(**words, n=100, d=100, tau=2.0)
        assert found.valid.all()
        words["trace"] += np.asarray(sign * 1e-4, dtype)
        found = sketching.inner_products_every_n(**words, n=100, d=100, tau=2.0)
        assert not found.valid.any()


@pytest.mark.parametrize(
    ("name", "changes", "hypotheses"),
    [
        ("covariance_deviation", {"kappa": 9.0, "trace": 1.0, "tau": 1.0}, "n >= 8"),
        ("gaussian_covariance", {"rank": 4.0, "tau": 2.0}, "n >= 4"),
        ("gaussian_covariance", {"rank": 4.0, "tau": 8.0}, "n >= 8"),
        (
            "projected_inner_products",
            {"op_norm": 1.0, "trace3": 4.0, "tau": 2.0},
            "d >= 4",
        ),
        (
            "projected_inner_products",
            {"op_norm": 1.0, "trace3": 4.0, "tau": 8.0},
            "d >= 8",
        ),
        ("conditional_sketch", {"op_norm3": 0.5, "trace3": 2.0, "tau": 2.0}, "d >= 4"),
        ("conditional_sketch", {"op_norm3": 0.5, "trace3": 2.0, "tau": 8.0}, "d >= 8"),
        ("inner_products", {"trace3": 1.0, "tau": 1.0}, "n >= 6272; d >= 4"),
        ("inner_products printed", {"trace3": 1.0, "tau": 1.0}, "n >= 6272"),
        (
            "weak_difference printed",
            {"kappa": 64.0, "op_norm": 64.0, "trace": 64.0, "tau": 1.0},
            "n >= 64",
        ),
    ],
)
def test_sizes_hold_up_to_edges_without_rounding(name, changes, hypotheses):
    words = words_of(name, **{"kappa": 1.0, "op_norm": 1.0, "trace": 1.0, **changes})
    assert wrong_edges(CASES[name].bound, words, hypotheses) == []


def test_enough_rows_make_a_bound_valid_and_fewer_do_not():
    rank = 0.25 / 0.6**3
    for name, least in (
        ("projected_inner_products", rank),
        ("conditional_sketch", 0.25 / 0.216),
        ("inner_products", 4 * rank),
    ):
        bound, words, *_ = CASES[name]
        for tau in (2.5, 8.0):
            edge = f"d >~ {max(least, tau)}; tau >= 1"
            assert wrong_edges(bound, words | {"tau": tau, "d": 400}, edge) == []
    printed, words, *_ = CASES["inner_products printed"]
    assert printed(**words | {"d": 1}).valid  # as printed, every d


def test_bounds_relate_as_documented():
    def value(name):
        return CASES[name].bound(**CASES[name].words).value

    assert (
        1
        <= value("covariance_deviation") / value("covariance_deviation_bernstein")
        <= 4
    )
    for name in ("inner_products", "cube_trace", "weak_difference"):
        assert value(name) < value(f"{name} printed")
    words, lower = (
        CASES["projected_inner_products"].words,
        sketching.KOLTCHINSKII_LOUNICI_LOWER,
    )
    shape = sketching.projected_inner_products(**words, constant=1).value
    assert value("projected_inner_products") / shape == pytest.approx(
        sketching.KOLTCHINSKII_LOUNICI_TRACE
    )
    assert (
        1.999 < lower - math.log1p(lower) < 2
        and lower < sketching.KOLTCHINSKII_LOUNICI_TRACE == 3.51
    )
    more = CASES["weak_difference"].words | {"n": 10**12}
    assert (
        sketching.weak_difference_coupled(**more).value
        < 1e-2 * sketching.weak_difference(**more).value
    )
    assert words["op_norm"] ** 3 == pytest.approx(
        CASES["conditional_sketch"].words["op_norm3"]
    )


@pytest.mark.parametrize("name", [name for name in CASES if "printed" not in name])
def test_corrected_bounds_scale_with_the_kernel(name):
    """Multiplying the kernel by c multiplies operators by c: sizes and probabilities are the same, values scale."""
    bound, words, *_ = CASES[name]
    c = 3.0
    degree = dict.fromkeys(("trace3", "op_norm3", "energy"), 3)
    degree |= dict.fromkeys(
        (
            "kappa",
            "op_norm",
            "trace",
            "hs_norm",
            "theta",
            "scale",
            "eigenvalue",
            "sigma",
        ),
        1,
    )
    degree |= dict.fromkeys(("mean_gap", "squared_diameter", "squared_distance"), 1)
    scaled = {key: value * c ** degree.get(key, 0) for key, value in words.items()}
    others = {"hilbert_mean": 1, "relative_norms": 0, "relative_separation": 0}
    others |= {"separation_shortfall": 4, "mean_separation_shortfall": 4}
    power = (
        1
        if "covariance" in name
        else 1.5
        if "weak" in name or "law" in name
        else others.get(name, 3)
    )
    assert bound(**scaled).value == pytest.approx(
        c**power * bound(**words).value, rel=1e-12
    )
    assert bound(**scaled).valid == bound(**words).valid


def test_sharper_bounds_are_sharper():
    for name, (_, words, *_) in SKETCHING.items():
        if not name.startswith("inner_products_all_d"):
            continue
        for n in (1, 30, 10**6):
            given = words | {"n": n}
            sharp, bernstein = (
                CASES[deviation].bound(**words_of(deviation, **given)).value
                for deviation in (
                    "covariance_deviation_sharp",
                    "covariance_deviation_bernstein",
                )
            )
            assert sharp < bernstein
            general = sketching.inner_products_all_d(**given)
            assert (
                not general.valid
                or sketching.inner_products_every_n(**given).value < general.value
            )
            assert sketching.largest_stretch(**given).value > given["op_norm"] ** 3


def test_a_size_computed_from_a_condition_meets_it():
    """n = 32 kappa s tau / S in floating point, by another order of operations, still counts as enough."""
    for tau in np.linspace(0.1, 9, 50).tolist():
        words = words_of("cube_deviation", tau=tau)
        words["n"] = (
            32
            * words["kappa"]
            * (words["trace"] / words["op_norm"])
            * tau
            / words["op_norm"]
        )
        assert sketching.cube_deviation(**words).valid


def test_a_variance_of_zero_may_be_rounded_to_less():
    """All points are equal: kappa tr Sigma = h^2, and h is known to an ulp."""
    found = sketching.covariance_deviation_sharp(
        kappa=1.0, trace=1.0, hs_norm=math.nextafter(1.0, 2), n=10, tau=3.0
    )
    assert found.value == pytest.approx(math.sqrt(2) / 10, rel=1e-14)
