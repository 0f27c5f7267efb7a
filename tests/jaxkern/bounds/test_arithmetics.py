"""Every bound is the same formula on balls and on numbers of mpmath: nothing becomes a float or is guessed."""

import importlib
import math
import subprocess
import sys

import numpy as np
import pytest
from support.bound_cases import TABLES

from jaxkern.bounds import concentration, fourier, sketching, streaming
from jaxkern.bounds._bound import exact, is_other, xp
from proofs_check.engine import decided, enclosures

flint = pytest.importorskip("flint")
mpmath = pytest.importorskip("mpmath")

IN_FLOATS = {"ball", "kernel_values_given", "relative_distances_given"}
"""Quadratures, which refuse other arithmetics."""
CASES = {
    f"{topic}.{name}": case
    for topic, table in TABLES.items()
    for name, case in table.items()
    if name.partition(" ")[0] not in IN_FLOATS
}
LOSSY = {"fourier.relative_distances_sharp": 1e-11}
"""The relative error of the floats where they are a difference of nearly equal numbers."""
SLOW = "fourier.simplex_success_limit"
EDGES = [
    (name, edge)
    for name, case in CASES.items()
    for edge in case.edges
    if name != SLOW or edge[0] == "num_points"
]


@pytest.fixture(autouse=True)
def digits():
    with enclosures.precision(128), mpmath.workdps(30):
        yield


def in_balls(case, **changes):
    return decided.bound(case.bound, **case.words | changes)


def in_mpmath(case, **changes):
    """Return a bound of which one argument alone is a number of mpmath."""
    words = case.words | changes
    first = next(iter(words))
    return case.bound(**words | {first: mpmath.mpf(words[first])})


def test_bounds_are_those_of_floats_in_every_arithmetic_with_the_digits_of_it():
    """Balls refuse to become floats, so that a step of mpmath in float64 would be an error of 1e-17."""
    for name, case in CASES.items():
        expected = case.bound(**case.words)
        ball = in_balls(case)
        number = in_mpmath(case)
        for bound in (ball, number):
            assert bound.valid is expected.valid, name
            assert bound.source == expected.source, name
        for field in ("value", "probability", "log_failure"):
            left = getattr(ball, field)
            right = getattr(number, field)
            assert type(left) is flint.arb and type(right) is mpmath.mpf, name
            single = pytest.approx(
                getattr(expected, field), rel=LOSSY.get(name, 1e-13), abs=1e-300
            )
            assert float(left) == single and float(right) == single, name
            if not left.is_finite():
                assert float(left) == float(right) == -math.inf, name
                continue
            assert float(left.rad()) <= 1e-30 * abs(float(left)), name
            # In mpmath the sum over points takes seconds to more digits, and is one of floats.
            if name != SLOW:
                assert abs(left - flint.arb(right)) <= 1e-25 * abs(left), name


def test_quadratures_in_floats_refuse_other_arithmetics_by_name():
    for name in sorted(IN_FLOATS):
        case = TABLES["fourier"][name]
        for evaluate in (in_balls, in_mpmath):
            with pytest.raises(ValueError, match=f"{name} is computed in floats"):
                evaluate(case)


def test_a_hypothesis_that_a_ball_leaves_open_raises():
    for name, (word, _, edge) in EDGES:
        with pytest.raises(ArithmeticError, match=r"not decided|not known"):
            in_balls(CASES[name], **{word: flint.arb(edge, 0.1 * max(abs(edge), 1))})
            pytest.fail(f"{name} is decided at a ball around {word} = {edge}")


def test_beside_an_edge_the_hypotheses_hold_where_they_do_for_floats():
    for name, (word, _, edge) in EDGES:
        case = CASES[name]
        step = 1 if word == "rank" else 1e-6 * max(abs(edge), 1)
        for number in (edge - step, edge + step):
            changes = {word: number}
            expected = case.bound(**case.words | changes).valid
            assert in_balls(case, **changes).valid is expected, (name, changes)
            try:
                valid = in_mpmath(case, **changes).valid
            except ZeroDivisionError:  # where floats and balls have infinity
                valid = False
            assert valid is expected, (name, changes)


def test_equal_exact_numbers_are_decided():
    words = dict(energy=60, row_energy=2)
    at_edge = decided.bound(streaming.leftover_rows, sketch_size=2, **words)
    assert at_edge.valid is True and at_edge.value == 64
    rank = dict(residual_energy=12, sketch_size=10, rank=2)
    assert decided.bound(streaming.frequent_directions, **rank).valid is True
    odd = rank | {"sketch_size": 11}
    printed = streaming.frequent_directions
    assert decided.bound(printed, **odd, as_printed=True).valid is False
    assert decided.bound(printed, **rank, as_printed=True).valid is True
    half = rank | {"rank": 1.5}
    assert decided.bound(streaming.frequent_directions, **half).valid is False


@pytest.mark.parametrize("arithmetic", [float, mpmath.mpf, flint.arb])
def test_the_log_of_a_tiny_failure_probability_is_exact(arithmetic):
    def log_failure(formula, **words):
        if arithmetic is flint.arb:
            return decided.bound(formula, **words).log_failure
        return formula(**{k: arithmetic(v) for k, v in words.items()}).log_failure

    size = dict(num_landmarks=100, rank=4)
    assert log_failure(streaming.nystrom_best_rank, **size, tau=1000) == -1000
    u_statistic = dict(bound=2, num_points=26, t=32)
    expected = xp.log(exact(2, arithmetic(1))) if arithmetic is not flint.arb else None
    value = log_failure(concentration.u_statistic, **u_statistic) + 1024
    if expected is None:
        assert value.overlaps(flint.arb(2).log()) and value.rad() < 1e-30
    else:
        assert abs(value - expected) < (1e-12 if arithmetic is float else 1e-25)
    words = TABLES["sketching"]["separation_shortfall"].words | {"tau": 1000, "eta": 0}
    value = log_failure(sketching.separation_shortfall, **words)
    assert abs(value + 1000 - math.log(4)) < 1e-12 or arithmetic is float


def test_what_is_certainly_infinite_or_undefined_is_so_as_in_ieee_and_the_rest_raises():
    number = decided._Decided
    wide = number(flint.arb(0, 0.1))
    assert (number(1) / 0).ball == flint.arb.pos_inf()
    assert (-1 / number(0)).ball == flint.arb.neg_inf()
    assert number(0).log().ball == number(-1).log1p().ball == flint.arb.neg_inf()
    undefined = (number(0) / 0, number(-1).sqrt(), number(-2).log(), number(-2) ** 0.5)
    for value in undefined:
        assert value.ball.is_nan()
        assert not (value == value or value < 1 or value >= 1)
    open_cases = (
        wide.sqrt,
        wide.log,
        lambda: 1 / wide,
        lambda: wide**0.5,
        lambda: wide < 0.05,
        lambda: wide == 0,
        lambda: wide == number(wide),
    )
    for case in open_cases:
        with pytest.raises(ArithmeticError, match=r"not decided|not known"):
            case()
    assert wide == wide and wide <= wide and not wide < wide and wide < 0.2
    assert (wide**2).ball.contains(0) and wide.max(0.05).ball.contains(flint.arb("0.1"))
    assert number(2) ** -3 == 0.125 and 2 ** number(3) == 8
    with pytest.raises(TypeError):
        float(number(1))


def test_functions_are_those_of_the_arithmetic_also_of_mixed_numbers():
    ball = decided._Decided(2)
    third = mpmath.mpf(1) / 3
    assert xp.sqrt(third) == mpmath.sqrt(third) and xp.floor(third + 5) == 5
    assert xp.maximum(third, 0.25) == xp.maximum(0.25, third) == third
    assert xp.minimum(1, ball) == 1 and xp.maximum(1.0, ball) is not ball
    assert mpmath.isnan(xp.sqrt(-third)) and mpmath.isnan(xp.log(-third))
    assert exact(np.float32(0.1), ball) == float(np.float32(0.1))
    assert type(exact(3, third)) is mpmath.mpf and exact(0.5, 3.0) == 0.5
    numbers = (1, 1.0, np.float64(1), np.ones(2), None, "1", 1j, mpmath.mpc(1, 1))
    assert not any(map(is_other, numbers)) and not is_other(flint.acb(1))
    for name, limits in (("gammainc", (0, 3)), ("gammaincc", (3, mpmath.inf))):
        expected = mpmath.gammainc(2, *limits, regularized=True)
        value = getattr(ball, name)(3).ball
        assert abs(mpmath.mpf(value.str(40, radius=False)) - expected) < 1e-28
    assert (ball.gammainc(0) == 0) and (ball.gammaincc(0) == 1)
    assert ball.gammainc(-1).ball.is_nan() and (-ball).gammaln().ball.is_nan()


def test_complex_numbers_are_refused_by_name():
    for number in (mpmath.mpc(1, 1), flint.acb(1)):
        with pytest.raises(ValueError, match="eps must be a real number"):
            fourier.kernel_value(eps=number, num_frequencies=300)


def test_the_library_imports_no_arithmetic_of_its_own_accord():
    program = (
        "import sys, jaxkern.bounds as b; b.concentration, b.fourier, b.streaming\n"
        "print([name for name in ('flint', 'mpmath') if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


CONSTANTS = {
    "streaming.best_rank": (dict(tail=0, spectral=1, rank=1), "sqrt(5)", ""),
    "streaming.nystrom_spectral": (dict(eps=1, num_landmarks=7), "1", "log(20) - 6"),
    "fourier.distance_lower": (dict(distance=1), "sqrt(2 - 2 / sqrt(e))", ""),
    "fourier.kernel_value": (dict(eps=2, num_frequencies=1), "2", "log(2) - 2"),
    "fourier.segment": (
        dict(num_frequencies=48, distance=0, tau=2),
        "sqrt(0.5)",
        "log(4) - 2",
    ),
    "fourier.gram_spectral_paired_all_n": (
        dict(eps=1.5, num_frequencies=2),
        "1.5",
        "log(40) - 3",
    ),
    "fourier.gram_frobenius_paired_bernstein": (
        dict(eps=3, num_frequencies=2),
        "3",
        "log(2) - 9 / (1 + sqrt(2))",
    ),
    "fourier.vanishing_ball": (
        dict(eps=0.5, num_frequencies=900, dim=1, tau=2),
        "",
        "log(3) - 2",
    ),
    "sketching.cube_deviation": (
        dict(kappa=1, op_norm=1, trace=1, n=2, tau=1),
        "28",
        "log(2) - 1",
    ),
    "sketching.weak_difference_coupled": (
        dict(kappa=1, op_norm=1, trace=1, n=1, d=1, tau=2),
        "24 * sqrt(2)",
        "log(3) - 2",
    ),
    "concentration.gaussian_lipschitz": (dict(lengthscale=1), "exp(-0.5)", ""),
    "concentration.pair_variance": (
        dict(lipschitz=1, omega=1, scale=1, c=1),
        "2 + 2 * log(2)",
        "",
    ),
    "concentration.frobenius_mean": (
        dict(lipschitz=1, omega=1, scale=1, num_points=1, c=1),
        "2 * sqrt(1 + log(2))",
        "",
    ),
    "concentration.anisotropic_noise": (
        dict(lipschitz=1, op_norm=1, dim=1, num_points=1, t=1),
        "2 + 2 * sqrt(2)",
        "-1",
    ),
    "concentration.gaussian_kernel": (
        dict(noise=1, lengthscale=1, dim=1, num_points=1, t=1),
        "2 * exp(-0.5)",
        "-1",
    ),
    "concentration.inner_product_gaussian_any": (
        dict(scale=1, frobenius=1, mean_norm=0, num_points=1, tau=0),
        "1024 / mpf(449) * (sqrt(log(9)) + log(9))",
        "0",
    ),
    "concentration.two_sample_statistic": (
        dict(bound=1, num_points=1, num_others=1, t=1),
        "sqrt(2)",
        "log(2) - 1",
    ),
}
"""By bound, its arguments, and its value and log failure by mpmath; a bound has one of these at least."""


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_have_the_digits_of_the_arithmetic(name):
    """Log 2 in float64 would be an error of 1e-17 in both arithmetics, so that their agreement does not show it."""
    words, *formulas = CONSTANTS[name]
    topic, function = name.split(".")
    formula = getattr(importlib.import_module(f"jaxkern.bounds.{topic}"), function)
    ball = decided.bound(formula, **words)
    number = formula(**{word: mpmath.mpf(value) for word, value in words.items()})
    for text, field in zip(formulas, ("value", "log_failure"), strict=True):
        if text:
            expected = eval(text, vars(mpmath).copy())
            assert mpmath.almosteq(getattr(number, field), expected, 1e-28, 1e-28)
            assert abs(getattr(ball, field) - flint.arb(expected)) < 1e-28
