"""Every bound is the same formula on balls and on numbers of mpmath: nothing becomes a float or is guessed."""

import math
import subprocess
import sys

import numpy as np
import pytest
from support.bound_cases import TABLES, function_of, words_in

from jaxkern.bounds import concentration, fourier, streaming
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


@pytest.mark.parametrize("name", CASES)
def test_bounds_are_those_of_floats_in_every_arithmetic_with_the_digits_of_it(name):
    """Balls refuse to become floats, so that a step of mpmath in float64 would be an error of 1e-17."""
    case = CASES[name]
    expected = case.bound(**case.words)
    ball = in_balls(case)
    number = in_mpmath(case)
    assert ball.valid is number.valid is expected.valid
    assert ball.source == number.source == expected.source
    for field in ("value", "probability", "log_failure"):
        left = getattr(ball, field)
        right = getattr(number, field)
        assert type(left) is flint.arb and type(right) is mpmath.mpf
        relative = LOSSY.get(name, 1e-13)
        single = pytest.approx(getattr(expected, field), rel=relative, abs=1e-300)
        assert float(left) == single and float(right) == single
        if not left.is_finite():
            assert float(left) == float(right) == -math.inf
            continue
        assert float(left.rad()) <= 1e-30 * abs(float(left))
        # In mpmath the sum over points takes seconds to more digits, and is one of floats.
        if name != SLOW:
            assert abs(left - flint.arb(right)) <= 1e-25 * abs(left)


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
    at_edge = decided.bound(
        streaming.leftover_rows, sketch_size=2, energy=60, row_energy=2
    )
    assert at_edge.valid is True and at_edge.value == 64


@pytest.mark.parametrize(
    ("words", "is_valid"),
    [
        ("sketch_size=10, rank=2", True),
        ("sketch_size=10, rank=1.5", False),
        ("sketch_size=10, rank=2, as_printed=True", True),
        ("sketch_size=11, rank=2, as_printed=True", False),
    ],
)
def test_sizes_that_must_be_whole_or_even_are_decided(words, is_valid):
    words = words_in(words) | {"residual_energy": 12}
    assert decided.bound(streaming.frequent_directions, **words).valid is is_valid


@pytest.mark.parametrize("arithmetic", [float, mpmath.mpf, decided._Decided])
def test_the_log_of_a_tiny_failure_probability_is_exact(arithmetic):
    """exp(-1000) is none of float64; `CONSTANTS` has the digits of what multiplies it."""
    words = dict.fromkeys(("num_landmarks", "tau"), arithmetic(1000))
    bound = streaming.nystrom_best_rank(**words, rank=arithmetic(4))
    assert bound.log_failure == -1000
    words = dict(bound=arithmetic(2), num_points=arithmetic(26), t=arithmetic(32))
    value = concentration.u_statistic(**words).log_failure + 1024
    assert -1e-12 < value - math.log(2) < 1e-12  # eps of 1024


NUMBER = decided._Decided
WIDE = NUMBER(flint.arb(0, 0.1))
UNDECIDED = {
    "sqrt": WIDE.sqrt,
    "log": WIDE.log,
    "quotient": lambda: 1 / WIDE,
    "power": lambda: WIDE**0.5,
    "less": lambda: WIDE < 0.05,
    "equal": lambda: WIDE == 0,
    "copy": lambda: NUMBER(WIDE) == WIDE,
}


def test_what_is_certainly_infinite_or_undefined_is_so_as_in_ieee():
    zero = NUMBER(0)
    infinity = flint.arb.pos_inf()
    assert (1 / zero).ball == infinity and (-1 / zero).ball == -infinity
    assert zero.log().ball == NUMBER(-1).log1p().ball == -infinity
    for value in (zero / 0, NUMBER(-1).sqrt(), NUMBER(-2).log(), NUMBER(-2) ** 0.5):
        assert value.ball.is_nan()
        assert not (value == value or value < 1 or value >= 1)


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_a_wide_ball_leaves_open_raises(name):
    with pytest.raises(ArithmeticError, match=r"not decided|not known"):
        UNDECIDED[name]()


def test_what_a_wide_ball_decides_is_decided():
    assert WIDE == WIDE and WIDE <= WIDE and not WIDE < WIDE and WIDE < 0.2
    assert (WIDE**2).ball.contains(0) and WIDE.max(0.05).ball.contains(flint.arb("0.1"))
    assert NUMBER(2) ** -3 == 0.125 and 2 ** NUMBER(3) == 8
    with pytest.raises(TypeError):
        float(NUMBER(1))


def test_functions_are_those_of_the_arithmetic_also_of_mixed_numbers():
    ball = NUMBER(2)
    third = mpmath.mpf(1) / 3
    assert xp.sqrt(third) == mpmath.sqrt(third) and xp.floor(third + 5) == 5
    assert xp.maximum(third, 0.25) == xp.maximum(0.25, third) == third
    assert xp.minimum(1, ball) == 1 and xp.maximum(1.0, ball) is not ball
    assert mpmath.isnan(xp.sqrt(-third)) and mpmath.isnan(xp.log(-third))
    assert exact(np.float32(0.1), ball) == float(np.float32(0.1))
    assert type(exact(3, third)) is mpmath.mpf and exact(0.5, 3.0) == 0.5
    # That gamma functions have the digits of mpmath is compared with the bounds.
    assert ball.gammainc(0) == 0 and ball.gammaincc(0) == 1
    assert ball.gammainc(-1).ball.is_nan() and (-ball).gammaln().ball.is_nan()


@pytest.mark.parametrize(
    "number", [1, 1.0, np.float64(1), np.ones(2), None, "1", 1j, mpmath.mpc(1, 1)]
)
def test_other_arithmetics_are_real_and_not_of_numpy(number):
    assert not is_other(number) and not is_other(flint.acb(1))


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


CONSTANTS = [
    ("streaming.best_rank", "tail=0, spectral=1, rank=1", "sqrt(5)", ""),
    ("streaming.nystrom_spectral", "eps=1, num_landmarks=7", "1", "log(20) - 6"),
    ("fourier.distance_lower", "distance=1", "sqrt(2 - 2 / sqrt(e))", ""),
    ("fourier.kernel_value", "eps=2, num_frequencies=1", "2", "log(2) - 2"),
    (
        "fourier.segment",
        "num_frequencies=48, distance=0, tau=2",
        "sqrt(0.5)",
        "log(4) - 2",
    ),
    (
        "fourier.gram_spectral_paired_all_n",
        "eps=1.5, num_frequencies=2",
        "1.5",
        "log(40) - 3",
    ),
    (
        "fourier.gram_frobenius_paired_bernstein",
        "eps=3, num_frequencies=2",
        "3",
        "log(2) - 9 / (1 + sqrt(2))",
    ),
    (
        "fourier.vanishing_ball",
        "eps=0.5, num_frequencies=900, dim=1, tau=2",
        "",
        "log(3) - 2",
    ),
    (
        "sketching.cube_deviation",
        "kappa=1, op_norm=1, trace=1, n=2, tau=1",
        "28",
        "log(2) - 1",
    ),
    (
        "sketching.weak_difference_coupled",
        "kappa=1, op_norm=1, trace=1, n=1, d=1, tau=2",
        "24 * sqrt(2)",
        "log(3) - 2",
    ),
    ("concentration.gaussian_lipschitz", "lengthscale=1", "exp(-0.5)", ""),
    (
        "concentration.pair_variance",
        "lipschitz=1, omega=1, scale=1, c=1",
        "2 + 2 * log(2)",
        "",
    ),
    (
        "concentration.frobenius_mean",
        "lipschitz=1, omega=1, scale=1, num_points=1, c=1",
        "2 * sqrt(1 + log(2))",
        "",
    ),
    (
        "concentration.anisotropic_noise",
        "lipschitz=1, op_norm=1, dim=1, num_points=1, t=1",
        "2 + 2 * sqrt(2)",
        "-1",
    ),
    (
        "concentration.gaussian_kernel",
        "noise=1, lengthscale=1, dim=1, num_points=1, t=1",
        "2 * exp(-0.5)",
        "-1",
    ),
    (
        "concentration.inner_product_gaussian_any",
        "scale=1, frobenius=1, mean_norm=0, num_points=1, tau=0",
        "1024 / mpf(449) * (sqrt(log(9)) + log(9))",
        "0",
    ),
    (
        "concentration.two_sample_statistic",
        "bound=1, num_points=1, num_others=1, t=1",
        "sqrt(2)",
        "log(2) - 1",
    ),
]
"""Bounds, their arguments, and their values and log failures by mpmath, one of which may be missing."""


@pytest.mark.parametrize(("name", "arguments", "value", "log_failure"), CONSTANTS)
def test_constants_have_the_digits_of_the_arithmetic(
    name, arguments, value, log_failure
):
    """Log 2 in float64 would be an error of 1e-17 in both arithmetics, so that their agreement does not show it."""
    formula = function_of(name)
    words = words_in(arguments)
    ball = decided.bound(formula, **words)
    number = formula(**{word: mpmath.mpf(value) for word, value in words.items()})
    for text, field in ((value, "value"), (log_failure, "log_failure")):
        if text:
            expected = eval(text, vars(mpmath).copy())
            assert mpmath.almosteq(getattr(number, field), expected, 1e-28, 1e-28)
            assert abs(getattr(ball, field) - flint.arb(expected)) < 1e-28
