"""The public functions of the RKHS and of landmarks."""

import jax.numpy as jnp
import numpy as np

from jaxkern import landmarks, rkhs
from public.operation import (
    equal,
    function,
    near,
    op,
    parts,
    rows_of,
    within,
)


def size_of(weights):
    """Return sum_i |w_i|, which bounds the norm of a function of weights w."""
    return np.abs(np.float64(weights)).sum(axis=0)


def check_function(c, v):
    total = size_of(c.numbers(c.n + 1, 2)).max()
    yield from within("f(X)", v["f(X)"], -total, total, 4 * (c.n + 1) * c.eps * total)


@op(
    "rkhs.Function",
    check_function,
    least=0,
    kernels=("gaussian", "exponential"),
    words="points",
    shows_infinity=False,
)
def _(c):
    f = function(c)
    return {"f(X)": (f(c.X), "n 2"), "(2 f - f)(X)": ((2.0 * f - f)(c.X), "n 2")}


def check_section(c, v):
    # In products of centred points K is rounded by eps times the squared reach.
    slack = 4 * c.eps * (1 + (1 + c.dim**0.5) * min(c.reach, 1e9))
    yield from near("diagonal", np.diagonal(v["diagonal"]), 1, slack)


@op("rkhs.section", check_section, words="points")
def _(c):
    f = rkhs.section(c.kernel, c.X)
    return {"values": (f(c.Y), "m n: 0..1"), "diagonal": (f(c.plain), "n n")}


def check_inner(c, v):
    # Cauchy and Schwarz, with the rounding of the sums of |weights|, of which K is at most 1.
    f_size = size_of(c.numbers(c.n, 2, salt=1))[:, None]
    g_size = size_of(c.numbers(c.n + 1, 2))[None, :]
    # In products of centred points K itself is rounded by eps times the squared reach, which may be NaN.
    rounding = min(1.0, 4 * (4 + c.dim**0.5) * c.eps * c.reach)
    slack = (8 * (c.n + 1) * c.eps + rounding) * f_size * g_size
    product = v["|f|"][:, None] * v["|g|"][None, :]
    limit = product + np.sqrt(slack) * (1 + np.sqrt(np.maximum(product, slack)))
    excess = np.abs(v["<f, g>"]) - limit
    yield from within("<f, g> - |f| |g|", excess, -np.inf, 0)


@op("rkhs.inner", check_inner, words="points", kernels=("gaussian", "matern32"))
def _(c):
    f = rkhs.Function(c.kernel, c.X, c.numbers(c.n, 2, salt=1))
    g = function(c)
    return {
        "<f, g>": (rkhs.inner(f, g), "2 2"),
        "|f|": (rkhs.norm(f), "2"),
        "|g|": (rkhs.norm(g), "2"),
    }


def check_norm(c, v):
    yield from within("|f|", v["|f|"], 0, size_of(c.numbers(c.n)), 1e-3)


@op("rkhs.norm", check_norm, words="points")
def _(c):
    return {"|f|": (rkhs.norm(rkhs.Function(c.kernel, c.X, c.numbers(c.n))), "")}


@op("rkhs.SamplingOperator", words="points beta", of_one_array=("S S* beta",))
def _(c):
    S = rkhs.SamplingOperator(c.kernel, c.X)
    return {
        "S f": (S(function(c)), "n 2"),
        "S S* beta": (S(S.adjoint(c.numbers(c.n))), "n"),
        "K": (S.gram(), "n n: 0..1"),
    }


def check_rank(c, v):
    yield from within("effective rank", v["rank"], 1, c.n, 64 * c.n**2 * c.eps)


@op("rkhs.Covariance", check_rank, words="points")
def _(c):
    sigma = rkhs.Covariance(c.kernel, c.X, c.shares)
    centred = rkhs.Covariance(c.kernel, c.X, centered=True)
    f = function(c)
    return {
        "eigenvalues": (sigma.eigenvalues(), "n: 0..1 descending"),
        "trace": (sigma.trace(), ": 1..1"),
        "rank": (sigma.effective_rank(3), ""),
        "norm": (sigma.op_norm(0.5), ""),
        "Hilbert-Schmidt": (sigma.hs_norm(), ""),
        "kappa": (sigma.kappa(), ": 1..1"),
        "<f, Sigma f>": (sigma.inner(f, f, power=2.5), "2 2"),
        "Sigma f": (sigma(f)(c.Y), "m 2"),
        "centred trace": (centred.trace(), ": 0..1"),
    }


@op("rkhs.draw_gaussian", words="points")
def _(c):
    sigma = rkhs.Covariance(c.kernel, c.X)
    draws = rkhs.draw_gaussian(c.key, sigma, power=2, num_draws=2)
    return {"values": (draws(c.Y), "m 2"), "weights": (draws.weights, "n 2")}


@op("rkhs.RandomProjection", words="points")
def _(c):
    sigma = rkhs.Covariance(c.kernel, c.X)
    theta = rkhs.RandomProjection(c.key, sigma, num_features=4)
    return {
        "theta f": (theta(function(c)), "2 4"),
        "adjoint": (theta.adjoint(c.numbers(4))(c.Y), "m"),
    }


DRAWN = "rows of the points are returned as they are, missing entries with them; which ones are drawn says nothing"


def check_landmarks(c, v):
    if not np.isnan(v["rows"]).all():  # where no number tells which to choose
        yield from rows_of(c, v["rows"])


@op("landmarks.uniform", check_landmarks, hides=DRAWN, overflows=True)
def _(c):
    return {"rows": (landmarks.uniform(c.key, c.X, num_landmarks=c.few), "few dim")}


@op("landmarks.kmeans_plus_plus", check_landmarks, overflows=True)
def _(c):
    chosen = landmarks.kmeans_plus_plus(c.key, c.X, num_landmarks=c.few)
    return {"rows": (chosen, "few dim")}


@op("landmarks.leverage", check_landmarks, shows_infinity=False, overflows=True)
def _(c):
    chosen = landmarks.leverage(c.key, c.kernel, c.X, num_landmarks=c.few)
    return {"rows": (chosen, "few dim")}


def check_pivots(c, v):
    yield from check_landmarks(c, v)
    yield from equal("the first landmarks", v["used"], v["rows"])


@op(
    "landmarks.pivoted_cholesky",
    check_pivots,
    overflows=True,
    unsteady=("trace_residual",),
)
def _(c):
    pivots = landmarks.pivoted_cholesky(
        c.key, c.kernel, c.X, tolerance=0.05, max_landmarks=c.few
    )
    chosen = landmarks.pivoted_cholesky(c.key, c.kernel, c.X, num_landmarks=c.few)
    used = jnp.where(pivots.weights[:, None] > 0, pivots.landmarks, chosen)
    traces = parts(pivots, trace_residual=": 0..n", trace=": n..n")
    signs = parts(pivots, num_landmarks=": 1..few", reached="", exhausted="")
    return {"rows": (chosen, "few dim"), "used": (used, "few dim"), **traces, **signs}


def check_reservoir(c, v):
    yield from rows_of(c, v["rows"][: min(c.n, 5)])


@op(
    "landmarks.reservoir",
    check_reservoir,
    least=0,
    words="rows",
    hides=DRAWN,
    gradient=False,
)
def _(c):
    init, update, merge = landmarks.reservoir(num_landmarks=5)
    first = update(init(c.key, c.dim, c.dtype), c.X)
    state = merge(first, init(c.other_key, c.dim, c.dtype))
    return parts(state, seen=": n..n") | {"rows": (state.points, "5 dim")}
