"""Functions, operators, Gaussian draws and projections on the RKHS against matrices, of whatever is drawn.

In explicit coordinates of the span of all points (`support.drawn.Exact`), S* beta is F' beta and Sigma is F' diag(w) F.
Draws are exact, too, given their normal numbers g, which a draw of power 1 shows: v = B* A^((p - 1) / 2) g. That g is
standard normal is left to statistics: a test refutes it with probability 1e-9 a number at most, where it is.
"""

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import eps
from hypothesis import example, given
from hypothesis import strategies as st
from support.drawn import DIM, PLAIN, N, drawn, power, unlikely

from jaxkern import rkhs
from jaxkern.kernels import Gaussian

pytestmark = [pytest.mark.float64, pytest.mark.optimised]

FEATURES = house.FEATURES
DRAWS = 1000
POWERS = (0, 2.5, 3)


@jax.jit
def computed(key, kernel, X, Y, w, numbers):
    """Return by name what the package computes of two functions f at Y, g at X, and one function h at X."""
    a, b, beta, alpha = numbers
    S = rkhs.SamplingOperator(kernel, X, w)
    plain = rkhs.Covariance(kernel, X, w)
    sigma = rkhs.Covariance(kernel, X, w, centered=True)
    f = rkhs.Function(kernel, Y, a)
    g = rkhs.Function(kernel, X, b)
    h = rkhs.Function(kernel, X, beta)
    theta = rkhs.RandomProjection(key, sigma, num_features=FEATURES)
    normal = rkhs.draw_gaussian(key, plain, num_draws=FEATURES)
    squared = rkhs.draw_gaussian(key, sigma, power=2, num_draws=FEATURES)
    return {
        "noise": normal.weights,
        "values": rkhs.inner(rkhs.section(kernel, X), f),
        "S f": S(f),
        "S* beta": S.adjoint(beta)(Y),
        "S S*": S.gram(),
        "2 f - 3 g": (2.0 * f - g * 3.0)(Y),
        "<f, g>": rkhs.inner(f, g),
        "|f|^2": rkhs.norm(f) ** 2,
        "mean": sigma.mean()(Y),
        "kappa": sigma.kappa(),
        "total": sigma.total,
        "eigenvalues": sigma.eigenvalues(),
        "trace": sigma.trace(),
        "trace of a root": sigma.trace(0.5),
        "norm": sigma.op_norm(),
        "|Sigma|_HS": sigma.hs_norm(),
        "rank": sigma.effective_rank(3),
        "Sigma f": sigma(f)(Y),
        "Sigma^p f": jnp.stack([sigma(f, power=p)(Y) for p in POWERS]),
        "<f, Sigma^p f>": jnp.stack([sigma.inner(f, f, power=p) for p in POWERS]),
        "<f, C^3 h>": plain.inner(f, h),
        "<v, f>": rkhs.inner(squared, f),
        "Theta f": theta(f),
        "Theta* alpha": theta.adjoint(alpha)(Y),
    }


def exactly(case, noise, centered):
    """Return by name the same from matrices, and the size to which its rounding is relative."""
    exact = case.exact()
    w = np.float64(case.given()[3])
    a, b, beta, alpha = map(np.float64, numbers_of(case))
    k = exact.size
    # Powers below 1 are not Lipschitz: rounding of eigenvalues comes as its root.
    steep = slack_of(exact) ** -0.5
    FX = exact.FX
    FY = exact.FY
    f = FY.T @ a
    g = FX.T @ b
    h = FX.T @ beta
    size_f = np.abs(a).sum(axis=0).max()
    size_g = np.abs(b).sum(axis=0).max()
    size_h = np.abs(beta).sum()
    reach_f = k * size_f
    root = np.sqrt(w)[:, None]
    at_X = FX @ f
    cross = FY @ FX.T
    results = {
        "values": (at_X, reach_f),
        "S f": (root * at_X, reach_f),
        "S* beta": (cross @ (root[:, 0] * beta), k * size_h),
        "S S*": (root * FX @ FX.T * root.T, k),
        "2 f - 3 g": (FY @ (2 * f - 3 * g), k * (2 * size_f + 3 * size_g)),
        "<f, g>": (f.T @ g, reach_f * size_g),
        "|f|^2": ((f**2).sum(axis=0), reach_f * size_f),
        "mean": (cross @ exact.weights, k),
        "kappa": (np.diag(exact.G)[:N][w > 0].max(), k),
        "total": (w.sum(), w.sum()),
    }

    sigma = exact.covariance(centered)
    values = np.maximum(np.linalg.eigvalsh(sigma)[::-1][:N], 0)
    cubes = values**3
    top = max(cubes[0], 1e-300)  # of equal points, whose centred operator is zero
    rank = cubes.sum() / top
    results |= {
        "eigenvalues": (values, k),
        "trace": (values.sum(), N * k),
        "trace of a root": ((values**0.5).sum(), N * k**0.5 * steep),
        "norm": (values[0], k),
        "|Sigma|_HS": ((values**2).sum() ** 0.5, N * k),
        # The error of a quotient.
        "rank": (rank, (1 + rank) * 3 * k**3 / top),
    }
    powers = np.stack([power(sigma, p) for p in POWERS])
    cube = power(exact.covariance(), 3)
    sizes = reach_f * np.array([k**p for p in POWERS])[:, None, None]
    results |= {
        "Sigma f": (FY @ sigma @ f, k * reach_f),
        "Sigma^p f": (FY @ powers @ f, sizes),
        "<f, Sigma^p f>": (f.T @ powers @ f, sizes * size_f),
        "<f, C^3 h>": (f.T @ cube @ h, k**3 * reach_f * size_h),
    }

    # A draw of power 1 has the weights sqrt(w) g.
    shares = np.sqrt(exact.weights)[:, None]
    normal = noise / np.where(shares > 0, shares, 1)
    B = shares * (FX - centered * (exact.weights @ FX))
    # Of power 2, with the root of A, and of power 3.
    squared = B.T @ power(B @ B.T, 0.5) @ normal
    directions = B.T @ B @ B.T @ normal / FEATURES**0.5
    reach = N * np.abs(normal).max() * k**2
    adjoint = FY @ directions @ alpha
    return results | {
        "<v, f>": (squared.T @ f, reach * size_f * steep),
        "Theta f": (f.T @ directions, reach * size_f),
        "Theta* alpha": (adjoint, reach * np.abs(alpha).sum()),
    }


def numbers_of(case):
    """Return the weights of f, g and h, and the coefficients of directions."""
    return (
        case.numbers(N, 2),
        case.numbers(2, N).T,
        case.numbers(N),
        case.numbers(FEATURES),
    )


def slack_of(exact):
    """Return the rounding of a sum of N products, relative to its size."""
    return 16 * (4 + DIM**0.5 + N**0.5) * exact.spread * eps()


def off(case, *, spoil=lambda results: results, centered=True):
    """Return the names of results that are wrong: of results that are spoilt, or for oracles of another centring."""
    results = computed(case.key(), *case.given(), numbers_of(case))
    results = spoil(jax.tree.map(np.float64, results))
    slack = slack_of(case.exact())
    literal = exactly(case, results["noise"], centered)
    assert set(literal) | {"noise"} == set(results)
    return {
        name
        for name, (value, size) in literal.items()
        # NaN is wrong, too.
        if not np.all(np.abs(results[name] - value) <= slack * size)
    }


@given(case=drawn())
@example(case=PLAIN)
def test_operators_are_the_matrices_that_they_stand_for(case):
    """<K_x, f> = f(x); powers of Sigma, their traces and norms; draws and projections given their normal numbers."""
    assert not off(case)


def test_wrong_operators_are_caught():
    of_sigma = {"<v, f>", "Theta f", "Theta* alpha"}
    of_sigma |= {"Sigma f", "Sigma^p f", "<f, Sigma^p f>"}
    of_sigma |= {"eigenvalues", "trace", "trace of a root", "rank", "norm"}
    of_sigma.add("|Sigma|_HS")
    assert off(PLAIN, centered=False) == of_sigma

    def with_another_power(results):
        return results | {"Sigma^p f": results["Sigma^p f"][[0, 1, 1]]}

    assert off(PLAIN, spoil=with_another_power) == {"Sigma^p f"}

    def without_a_point(results):
        return results | {"<f, Sigma^p f>": results["<f, Sigma^p f>"] * (1 - 1 / N)}

    assert off(PLAIN, spoil=without_a_point) == {"<f, Sigma^p f>"}


def test_the_same_lengthscale_may_be_written_in_two_ways():
    X = house.data(shape=house.ODD).X
    f = rkhs.Function(Gaussian(1.0), X, X[:, 0])
    g = rkhs.Function(Gaussian(1), X, X[:, 0])
    assert float(rkhs.inner(f, g)) == float(rkhs.inner(f, f))


@jax.jit
def normal_numbers(key, X):
    """Return the numbers of DRAWS draws, of which a draw of power 1 is a multiple."""
    sigma = rkhs.Covariance(house.KERNEL, X)
    weights = rkhs.draw_gaussian(key, sigma, num_draws=DRAWS).weights
    return weights.T * len(X) ** 0.5


def refuted(numbers):
    """Return what is refuted of three coordinates of independent draws with the law N(0, I)."""
    return unlikely(numbers[:, :3], np.eye(3), np.eye(3), 0)


@given(seed=st.integers(0, 2**32 - 1))
def test_draws_have_standard_normal_numbers(seed):
    assert not refuted(np.asarray(normal_numbers(house.key(seed), house.data().X)))


def test_other_numbers_are_caught():
    numbers = np.asarray(normal_numbers(house.key(), house.data().X))
    assert refuted(1.3 * numbers) >= {"f", "f + g"}
    twice = np.repeat(numbers[::2], 2, axis=0)
    assert refuted(twice) >= {"f, neighbours", "f + g, neighbours"}
    assert refuted(numbers[:, [0, 0, 1]]) >= {"f + g"}
