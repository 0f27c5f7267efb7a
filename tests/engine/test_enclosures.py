"""Enclosures hold what they enclose, prove what is true over a whole box, and never what is false."""

import functools
import math
import time
from concurrent import futures
from fractions import Fraction

import numpy as np
import pytest

from proofs_check.claim import Enclosed, Form, Undecided, Verdict
from proofs_check.engine import enclosures
from proofs_check.engine.enclosures import at_most, ball, balls, equal, prove, together
from proofs_check.engine.work import enclosed

pytest.importorskip("flint")
mpmath = pytest.importorskip("mpmath")


def holds(ball, value):
    """Whether a ball holds a number of mpmath, and is narrow."""
    value = mpmath.mpf(value)
    low, high = (
        mpmath.mpf(end.str(60, radius=False)) for end in (ball.lower(), ball.upper())
    )
    slack = abs(value) * mpmath.mpf(10) ** -45
    return (
        low - slack <= value <= high + slack
        and high - low <= abs(value) * mpmath.mpf(10) ** -20
    )


def test_numbers_become_balls_exactly():
    with enclosures.precision(128):
        assert ball(0.1) == ball(Fraction(0.1)) != ball("0.1") and ball(
            Fraction(1, 10)
        ).overlaps(ball("0.1"))
    grid = balls(np.array([[0.5, 3], [-1, 2**60]]))
    assert grid.shape == (2, 2) and grid[1, 1] == 2**60 and balls(np.float64(2.0)) == 2


@mpmath.workdps(50)
def test_tails_hold_what_mpmath_says():
    with enclosures.precision(192):
        for x in (-3.0, 0.1, 40.0):
            assert holds(
                enclosures.normal_tail(x),
                mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2,
            )
        for x, k in ((0.001, 7), (5.0, 2), (900.0, 31)):
            upper = mpmath.gammainc(
                mpmath.mpf(k) / 2, mpmath.mpf(x) / 2, regularized=True
            )
            lower = mpmath.gammainc(
                mpmath.mpf(k) / 2, 0, mpmath.mpf(x) / 2, regularized=True
            )
            assert holds(enclosures.chi_square_tail(x, k), upper) and holds(
                enclosures.chi_square_below(x, k), lower
            )
        p = Fraction(3, 7)
        for count in range(12):
            chance = sum(
                math.comb(10, i) * p**i * (1 - p) ** (10 - i) for i in range(count, 11)
            )
            tail = enclosures.binomial_tail(count, 10, p)
            assert holds(tail, mpmath.mpf(chance.numerator) / chance.denominator)


@mpmath.workdps(50)
def test_spectra_hold_what_mpmath_says():
    A = np.random.default_rng(0).normal(size=(6, 4)) * 10.0 ** np.arange(0, -8, -2)
    A[:, 3] = A[:, 2]  # singular, with a value that is exactly zero
    values = enclosures.singular_values(A)
    exact = mpmath.svd_r(mpmath.matrix(A.tolist()), compute_uv=False)
    assert all(
        x.lower() <= ball(str(y)) <= x.upper()
        for x, y in zip(values[:3], exact, strict=False)
    )
    assert values[3].contains(0) and all(float(x.rad()) < 1e-13 for x in values)
    spectral, frobenius = enclosures.norms(A)
    assert (
        spectral.overlaps(values[0])
        and abs(float(frobenius) - np.linalg.norm(A)) < 1e-13
    )
    gram = enclosures.eigenvalues(balls(A).T @ balls(A))
    assert all(x.overlaps(y * y) for x, y in zip(gram[::-1], values, strict=True))
    with pytest.raises(ValueError, match="symmetric"):
        enclosures.eigenvalues(A[:4])


@mpmath.workdps(80)
@pytest.mark.parametrize("smallest", [-8, -40])
def test_later_precisions_know_small_eigenvalues_to_many_digits(smallest):
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    A = Q * np.logspace(0, smallest, 5) @ Q.T + np.diag([0, 0, 0, 0, 1.0])
    A = (A + A.T) / 2
    with enclosures.precision(512):
        found = enclosures.eigenvalues(A)
        exact = sorted(mpmath.eigsy(mpmath.matrix(A.tolist()), eigvals_only=True))
        assert all(holds(x, y) for x, y in zip(found, exact, strict=True))
        assert enclosures.eigenvalues(np.eye(3))[0] == 1 and enclosures.eigenvalues(
            np.ones((3, 3))
        )[0].contains(0)


SHARED = {
    "abs": 1, "cos": 1, "cosh": 1, "cumsum": 1, "exp": 1, "expm1": 1, "log": 1, "log1p": 1, "mean": 1, "negative": 1,
    "prod": 1, "reciprocal": 1, "sin": 1, "sinh": 1, "sqrt": 1, "square": 1, "sum": 1, "tan": 1, "tanh": 1, "trace": 1,
    "max": 1, "min": 1, "linalg.eigvalsh": 0, "linalg.svdvals": 1, "linalg.norm": 1, "linalg.det": 1, "linalg.inv": 1,
    "add": 2, "divide": 2, "dot": 2, "inner": 2, "kron": 2, "matmul": 2, "multiply": 2, "outer": 2, "power": 2,
    "subtract": 2, "tensordot": 2, "maximum": 2, "minimum": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", SHARED)
def test_the_namespace_of_balls_encloses_what_numpy_computes(name):
    def function(namespace):
        for part in name.split("."):
            namespace = getattr(namespace, part)
        return namespace

    A, B = np.random.default_rng(0).uniform(0.5, 2, (2, 3, 3))
    given = [A @ A.T] if SHARED[name] == 0 else [A, B][: SHARED[name]]
    with np.errstate(all="raise"):
        expected = np.asarray(function(np)(*given))
    found = np.asarray(function(enclosures.xp)(*map(balls, given)), dtype=object)
    assert found.shape == expected.shape
    for x, y in zip(found.ravel(), expected.ravel(), strict=True):
        assert (
            abs(float(x) - y) <= 1e-13 * max(1, abs(y)) and float(ball(x).rad()) < 1e-12
        )


def test_the_namespace_of_balls_rounds_nothing_and_has_nothing_that_needs_a_comparison():
    xp = enclosures.xp
    assert set(SHARED) == {
        *xp._COMPUTING,
        "max",
        "min",
        "maximum",
        "minimum",
        *(n for n in SHARED if "." in n),
    }
    with enclosures.precision(128):
        assert (
            abs(xp.sqrt(2) ** 2 - 2) < 1e-30
            and abs(xp.sin(xp.pi)) < 1e-30
            and abs(xp.exp(1.0).log() - 1) < 1e-30
        )
    A = balls(np.arange(6.0).reshape(2, 3))
    assert np.array_equal(xp.einsum("ij,kj->ik", A, A), A @ A.T) and xp.linalg.norm(
        A, 2
    ) < xp.linalg.norm(A, "fro")
    assert all(hasattr(xp, name) for name in xp._SHAPING)
    for name in ("sort", "argmax", "where", "linspace"):
        with pytest.raises(AttributeError, match=f"balls have no '{name}'"):
            getattr(xp, name)
    with pytest.raises(ValueError, match="norms of balls"):
        xp.linalg.norm(A, 1)


def test_both_sides_are_floats_with_all_their_digits():
    def sides():  # 1e-200 and -2e-200, as a difference
        return (1 + ball("1e-200")) - 1, -2 * ball("1e-200")

    assert enclosures.rounded(sides) == (1e-200, -2e-200)
    assert enclosures.rounded(lambda: (0, 0)) == (0, 0)
    with pytest.raises(ArithmeticError, match="cannot be enclosed"):
        enclosures.rounded(lambda: (ball(1) / 0, 1))


def test_two_sides_are_decided_only_where_they_are_apart():
    third = Fraction(1, 3)
    assert at_most(
        lambda: (third, ball(third) + ball("1e-300"))
    ).holds  # at the third precision
    verdict = at_most(
        lambda: (ball(2).sqrt(), Fraction(14142135623730950, 10**16)), "the square root"
    )
    assert (
        not verdict.holds
        and verdict.digits >= 10
        and "the square root" in verdict.because
    )
    for decide in (at_most, equal):
        with pytest.raises(ArithmeticError, match="cannot be told apart"):
            decide(lambda: (ball(2).sqrt() ** 2, 2))
    assert (
        equal(lambda: (2, 2)).holds and not equal(lambda: (ball(2).sqrt(), 1.5)).holds
    )
    both = together([at_most(lambda: (1, 2)), verdict])
    assert not both.holds and both.because.startswith(verdict.because)
    assert together([at_most(lambda: (1, 2))] * 3).holds


def test_a_true_inequality_is_proved_and_a_slightly_false_one_is_not():
    def taylor(size):
        return lambda x: 1 - x * x / 2 + x * x * x * x / size - x.cos()

    assert prove(taylor(24), [(0, 3)], zeros={0: (0, 6)}).holds
    assert not prove(taylor(24.5), [(0, 3)], zeros={0: (0, 4)}).holds
    assert prove(
        lambda x: (x.exp() + (-x).exp()) / 2 - x.cos(), [(-2, 3)], zeros={0: (0, 2)}
    ).holds
    assert prove(lambda x: x - x.sin(), [(-2, 0)], zeros={0: (0, 3)}).holds is False
    assert prove(
        lambda x: x.sin() - x, [(-2, 0)], zeros={0: (0, 3)}
    ).holds  # odd order, the upper end

    def norm(least):
        return lambda x, y: x * x + y * y - x * y - least

    assert prove(norm(ball("-1e-3")), [(-1, 1), (-1, 2)]).holds
    assert not prove(norm(ball("1e-3")), [(-1, 1), (-1, 2)]).holds
    with pytest.raises(ArithmeticError, match="not decided"):
        prove(norm(0), [(-1, 1), (-1, 1)], pieces=500)
    assert prove(
        lambda x, y: (x * y).exp() - 1 - x * y, [(0, 1), ("0.5", 3)], zeros={0: (0, 2)}
    ).holds
    with pytest.raises(ValueError, match="even order"):
        prove(lambda x: x - x.sin(), [(-1, 1)], zeros={0: (0, 3)})


def test_proofs_of_several_threads_keep_their_precisions():
    def proof(bits):
        with enclosures.precision(bits):
            time.sleep(0.01)
            return Enclosed(enclosures.ctx.prec == bits, 1, "")

    verdict = Verdict("consistent", "", 1.0, 1e-3, (), {})
    forms = [
        Form(
            Undecided(""), (), "consistent", enclosed=functools.partial(proof, 100 + i)
        )
        for i in range(16)
    ]
    with futures.ThreadPoolExecutor(4) as pool:
        assert {
            found.status for found in pool.map(enclosed, forms, [verdict] * len(forms))
        } == {"proved"}
