"""The sampling operator S, the covariance operator Sigma, Gaussian draws and random projections, of whatever is drawn.

What is exact is compared with matrices in explicit coordinates of the span of all points, in float64
(`support.drawn.Exact`), up to rounding: S* beta is F' beta there, and Sigma is F' diag(w) F. What is random has an
exact law given the points: |Theta f|^2 is <f, Sigma^p f> chi2_d / d. A test refutes it with probability 1e-9 a number
at most, where it holds, and compares at most 20 numbers: 3e-7 for the whole module at 6 examples a test.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from support.drawn import (
    DIM,
    PLAIN,
    N,
    drawn,
    in_every_precision,
    in_one_precision,
    power,
    unlikely,
)

from jaxkern import rkhs

POWERS = (1, 2, 2.5, 3)
DRAWS = 1000


@partial(jax.jit, static_argnames=("centered", "powers"))
def operators(kernel, X, Y, w, a, beta, *, centered, powers=POWERS):
    """Return what the operators make of f, two functions at Y with weights a, and of a vector beta."""
    S, sigma = (
        rkhs.SamplingOperator(kernel, X),
        rkhs.Covariance(kernel, X, w, centered=centered),
    )
    plain = rkhs.Covariance(kernel, X)
    f = rkhs.Function(kernel, Y, a)
    back = S.adjoint(beta)
    return {
        "S f": S(f),
        "<S f, beta>": jnp.tensordot(S(f), beta, (0, 0)),
        "<f, S* beta>": rkhs.inner(f, back),
        "<K_x, f>": rkhs.inner(rkhs.section(kernel, X), f),
        "K": S.gram(),
        "S S*": S(S.adjoint(jnp.eye(N, dtype=X.dtype))),
        "S* S f": S.adjoint(S(f))(Y),
        "n Sigma_n f": N * plain(f)(Y),
        "mean": sigma.mean()(Y),
        "tr": jnp.stack([sigma.trace(p) for p in POWERS]),
        "|Sigma|": sigma.op_norm(),
        "|Sigma|_HS": sigma.hs_norm(),
        "Sigma^p f": jnp.stack([sigma(f, power=p)(Y) for p in powers]),
        "<f, Sigma^p f>": jnp.stack([sigma.inner(f, f, power=p) for p in powers]),
    }


def wanted(exact, a, beta, centered):
    """Return the same from matrices, and the size of each, to which its rounding is relative."""
    f, FX, FY = exact.FY.T @ a, exact.FX, exact.FY
    sigma, plain = exact.covariance(centered), exact.covariance(weights=np.ones(N))
    powers = [power(sigma, p) for p in POWERS]
    values = {
        "S f": FX @ f,
        "<S f, beta>": (FX @ f).T @ beta,
        "<f, S* beta>": f.T @ (FX.T @ beta),
        "<K_x, f>": FX @ f,
        "K": FX @ FX.T,
        "S S*": FX @ FX.T,
        "S* S f": N * FY @ plain @ f,
        "n Sigma_n f": FY @ FX.T @ FX @ f,
        "mean": FY @ FX.T @ exact.weights,
        "tr": np.array([np.trace(each) for each in powers]),
        "|Sigma|": np.linalg.norm(sigma, 2),
        "|Sigma|_HS": np.linalg.norm(sigma),
        "Sigma^p f": np.stack([FY @ each @ f for each in powers]),
        "<f, Sigma^p f>": np.stack([f.T @ each @ f for each in powers]),
    }
    k, one = exact.size, np.abs(a).sum(axis=0).max()
    grown = np.array([k ** (p + 1) for p in POWERS])[:, None, None]
    sizes = {
        "S f": k * one,
        "<S f, beta>": k * one * np.abs(beta).sum(),
        "<f, S* beta>": k * one * np.abs(beta).sum(),
    }
    sizes |= {
        "<K_x, f>": k * one,
        "K": k,
        "S S*": k,
        "S* S f": N * k**2 * one,
        "n Sigma_n f": N * k**2 * one,
    }
    sizes |= {"mean": k, "tr": k ** np.array(POWERS), "|Sigma|": k, "|Sigma|_HS": k}
    return values, sizes | {"Sigma^p f": grown * one, "<f, Sigma^p f>": grown * one**2}


def off(case, dtype, centered, *, instead=None, **sabotage):
    """Return the names of the numbers that are not what they should be; `instead` asks for another centring."""
    with jax.enable_x64(dtype == "float64"):
        given_, exact = case.given(dtype), case.exact(dtype)
        a, beta = case.numbers(dtype, N, 2), case.numbers(dtype, N)
        found = operators(
            *given_,
            a,
            beta,
            centered=centered if instead is None else instead,
            **sabotage,
        )
        values, sizes = wanted(exact, np.float64(a), np.float64(beta), centered)
        slack = (
            16 * (4 + DIM**0.5 + N**0.5) * exact.spread * float(jnp.finfo(dtype).eps)
        )
        return {
            name
            for name in values
            if np.any(
                ~(np.abs(np.float64(found[name]) - values[name]) <= slack * sizes[name])
            )
        }


@in_every_precision
@pytest.mark.parametrize(
    "centered", [pytest.param(False, marks=pytest.mark.slow), True]
)
@given(case=drawn())
def test_operators_are_the_matrices_that_they_stand_for(dtype, centered, case):
    """<S f, beta> = <f, S* beta>, <K_x, f> = f(x), S S* = K, S* S = n Sigma_n; powers of Sigma, traces and norms."""
    assert not off(case, dtype, centered)


@pytest.mark.slow
@in_one_precision
def test_wrong_operators_are_caught(dtype):
    powers = {"Sigma^p f", "<f, Sigma^p f>"}
    assert off(PLAIN, dtype, True, instead=False) == powers | {
        "tr",
        "|Sigma|",
        "|Sigma|_HS",
    }
    assert (
        off(PLAIN, dtype, False, powers=(1, 2, 2.5, 2)) == powers
    )  # Sigma^2 for Sigma^3
    uneven = rkhs.Covariance.inner
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            rkhs.Covariance,
            "inner",
            lambda *args, **options: uneven(*args, **options) * (1 - 1 / N),
        )
        operators.clear_cache()
        assert off(PLAIN, dtype, False) == {"<f, Sigma^p f>"}
    operators.clear_cache()


@partial(jax.jit, static_argnames=("centered", "make"))
def projections(key, kernel, X, Y, w, *, centered, make):
    """Return values <v_i, f> of the draws, (DRAWS, functions), at sections f of Y and of the heaviest atom."""
    points = jnp.concatenate([X[jnp.argmax(w)][None], Y[:2]])
    return make(
        key,
        rkhs.Covariance(kernel, X, w, centered=centered),
        rkhs.section(kernel, points),
    )


def draws(key, sigma, f, p=3):
    return rkhs.inner(rkhs.draw_gaussian(key, sigma, power=p, num_draws=DRAWS), f)


def projected(key, sigma, f, p=3):
    theta = rkhs.RandomProjection(key, sigma, num_features=DRAWS, power=p)
    return theta(f).T * DRAWS**0.5


def key_used_twice(key, sigma, f):
    v = rkhs.draw_gaussian(key, sigma, power=3, num_draws=DRAWS // 2)
    values = rkhs.inner(v, f)
    return jnp.stack([values, values], axis=1).reshape(DRAWS, -1)


def refuted(case, dtype, make, *, p=3, centered=False, instead=None):
    """Return what the draws say against the law N(0, Sigma^p); `instead` asks for another centring."""
    with jax.enable_x64(dtype == "float64"):
        given_, exact = case.given(dtype), case.exact(dtype)
        asked = centered if instead is None else instead
        values = np.float64(projections(case.key(), *given_, centered=asked, make=make))
    f = np.stack([exact.FX[int(np.argmax(np.asarray(given_[3])))], *exact.FY[:2]])
    rounding = 100 * exact.spread * float(jnp.finfo(dtype).eps) * exact.size ** (p + 1)
    return unlikely(values, f, power(exact.covariance(centered), p), rounding)


MAKES = [(draws, 3, False), (projected, 3, True), (partial(draws, p=2), 2, True)]
MAKES += [
    pytest.param(make, p, not centered, marks=pytest.mark.slow)
    for make, p, centered in MAKES
]


@in_every_precision
@pytest.mark.parametrize(("make", "p", "centered"), MAKES)
@given(case=drawn())
def test_draws_have_the_covariance_that_was_asked_for(dtype, make, p, centered, case):
    assert not refuted(case, dtype, make, p=p, centered=centered)


@pytest.mark.slow
@in_one_precision
def test_wrong_draws_are_caught(dtype):
    assert refuted(PLAIN, dtype, partial(draws, p=2)) >= {"f", "f + g"}
    assert refuted(PLAIN, dtype, lambda *args: 1.3 * draws(*args)) >= {"f", "f + g"}
    assert refuted(PLAIN, dtype, key_used_twice) >= {
        "f, neighbours",
        "f + g, neighbours",
    }
    assert refuted(PLAIN, dtype, draws, centered=True, instead=False) >= {"f + g"}


@jax.jit
def theta_and_its_adjoint(key, kernel, X, Y, w, a, alpha):
    theta = rkhs.RandomProjection(key, rkhs.Covariance(kernel, X, w), num_features=5)
    f = rkhs.Function(kernel, Y, a)
    return (
        jnp.dot(theta(f), alpha),
        rkhs.inner(f, theta.adjoint(alpha)),
        rkhs.inner(theta.directions, f),
    )


@in_every_precision
@given(case=drawn())
def test_theta_has_its_adjoint(dtype, case):
    """<Theta f, alpha> = <f, Theta* alpha>, and Theta f = (<v_i, f>)_i / sqrt(d)."""
    with jax.enable_x64(dtype == "float64"):
        kernel, X, Y, w = case.given(dtype)
        a, alpha = case.numbers(dtype, N), case.numbers(dtype, 5)
        found = theta_and_its_adjoint(case.key(), kernel, X, Y, w, a, alpha)
        there, back, values, alpha = (np.float64(x) for x in (*found, alpha))
        exact = case.exact(dtype)
    slack = (
        1e3
        * exact.spread
        * float(jnp.finfo(dtype).eps)
        * exact.size**2.5
        * np.abs(a).sum()
        * np.abs(alpha).sum()
    )
    assert abs(there - back) <= slack and abs(there - values @ alpha / 5**0.5) <= slack
