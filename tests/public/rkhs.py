"""The public functions of the RKHS and of landmarks."""

import jax.numpy as jnp
import numpy as np

from jaxkern import landmarks, rkhs
from public.operation import (
    descending,
    equal,
    function,
    near,
    op,
    parts,
    rows_of,
    whole,
    within,
)


def check_function(c, v):
    total = np.abs(np.asarray(c.numbers(c.n + 1, 2))).sum(axis=0).max()
    yield from within("f(X)", v["f(X)"], -total, total, 4 * (c.n + 1) * c.eps * total)


@op("rkhs.Function", check_function, least=0, kernels=("gaussian", "exponential"), words=("points",),
    shows_infinity=False)  # fmt: skip
def _(c):
    f = function(c)
    return {"f(X)": (f(c.X), "n 2"), "(2 f - f)(X)": ((2.0 * f - f)(c.X), "n 2")}


def check_section(c, v):
    yield from within("K", v["values"], 0, 1, 4 * c.eps)
    yield from near(
        "diagonal",
        np.diagonal(v["own"]),
        1,
        4 * c.eps + 4 * c.eps * (1 + c.dim**0.5) * min(c.reach, 1e9),
    )


@op("rkhs.section", check_section, words=("points",))
def _(c):
    f = rkhs.section(c.kernel, c.X)
    return {"values": (f(c.Y), "m n"), "own": (f(c.plain), "n n")}


def check_inner(c, v):
    # Cauchy and Schwarz, with the rounding of the sums of |weights|, of which K is at most 1.
    sizes = [
        np.float64(np.abs(np.asarray(w)).sum(axis=0))
        for w in (c.numbers(c.n, 2, salt=1), c.numbers(c.n + 1, 2))
    ]
    slack = 8 * (c.n + 1) * c.eps * sizes[0][:, None] * sizes[1][None, :]
    product = v["|f|"][:, None] * v["|g|"][None, :]
    # In products of centred points K itself is rounded by eps times the squared reach.
    rounding = (
        min(4 * (4 + c.dim**0.5) * c.eps * c.reach, 1.0)
        if np.isfinite(c.reach)
        else 1.0
    )
    slack = slack + rounding * sizes[0][:, None] * sizes[1][None, :]
    root = np.sqrt(slack) * (1 + np.sqrt(np.maximum(product, slack)))
    yield from within(
        "<f, g> - |f| |g|", np.abs(v["<f, g>"]) - product - root, -np.inf, 0
    )


def inner_values(c):
    f = rkhs.Function(c.kernel, c.X, c.numbers(c.n, 2, salt=1))
    g = function(c)
    return {
        "<f, g>": (rkhs.inner(f, g), "2 2"),
        "|f|": (rkhs.norm(f), "2"),
        "|g|": (rkhs.norm(g), "2"),
    }


op("rkhs.inner", check_inner, words=("points",), kernels=("gaussian", "matern32"))(
    inner_values
)


def check_norm(c, v):
    yield from within(
        "|f|", v["|f|"], 0, np.float64(np.abs(np.asarray(c.numbers(c.n))).sum()), 1e-3
    )


@op("rkhs.norm", check_norm, words=("points",))
def _(c):
    return {"|f|": (rkhs.norm(rkhs.Function(c.kernel, c.X, c.numbers(c.n))), "")}


@op(
    "rkhs.SamplingOperator",
    lambda c, v: within("K", v["K"], 0, 1, 4 * c.eps),
    words=("points", "beta"),
    of_one_array=("S S* beta",),
)
def _(c):
    S = rkhs.SamplingOperator(c.kernel, c.X)
    return {
        "S f": (S(function(c)), "n 2"),
        "S S* beta": (S(S.adjoint(c.numbers(c.n))), "n"),
        "K": (S.gram(), "n n"),
    }


def check_covariance(c, v):
    yield from within("eigenvalues", v["eigenvalues"], 0, 1, 8 * c.n * c.eps)
    yield from descending("eigenvalues", v["eigenvalues"])
    yield from near("trace", v["trace"], 1, 8 * c.n * c.eps)
    yield from within("effective rank", v["rank"], 1, c.n, 64 * c.n**2 * c.eps)
    yield from near("kappa", v["kappa"], 1, 4 * c.eps)
    yield from within("centred trace", v["centred trace"], 0, 1, 8 * c.n * c.eps)


@op("rkhs.Covariance", check_covariance, words=("points",))
def _(c):
    sigma = rkhs.Covariance(c.kernel, c.X, c.shares)
    centred = rkhs.Covariance(c.kernel, c.X, centered=True)
    f = function(c)
    return {
        "eigenvalues": (sigma.eigenvalues(), "n"),
        "trace": (sigma.trace(), ""),
        "rank": (sigma.effective_rank(3), ""),
        "norm": (sigma.op_norm(0.5), ""),
        "Hilbert-Schmidt": (sigma.hs_norm(), ""),
        "kappa": (sigma.kappa(), ""),
        "<f, Sigma f>": (sigma.inner(f, f, power=2.5), "2 2"),
        "Sigma f": (sigma(f)(c.Y), "m 2"),
        "centred trace": (centred.trace(), ""),
    }


@op("rkhs.draw_gaussian", words=("points",))
def _(c):
    draws = rkhs.draw_gaussian(
        c.key, rkhs.Covariance(c.kernel, c.X), power=2, num_draws=2
    )
    return {"values": (draws(c.Y), "m 2"), "weights": (draws.weights, "n 2")}


@op("rkhs.RandomProjection", words=("points",))
def _(c):
    theta = rkhs.RandomProjection(c.key, rkhs.Covariance(c.kernel, c.X), num_features=4)
    return {
        "theta f": (theta(function(c)), "2 4"),
        "adjoint": (theta.adjoint(c.numbers(4))(c.Y), "m"),
    }


DRAWN = "rows of the points are returned as they are, missing entries with them; which ones are drawn says nothing"


def check_landmarks(c, v):
    if not np.isnan(v["rows"]).all():  # where no number tells which to choose
        yield from rows_of(c, v["rows"])


def landmark_entry(name, choose):
    hides, limited = DRAWN if name == "uniform" else "", name != "kmeans_plus_plus"

    @op(
        f"landmarks.{name}",
        check_landmarks,
        hides=hides,
        shows_infinity=not limited,
        overflows=True,
    )
    def _(c):
        return {"rows": (choose(c), "few dim")}


landmark_entry("uniform", lambda c: landmarks.uniform(c.key, c.X, num_landmarks=c.few))
landmark_entry(
    "kmeans_plus_plus",
    lambda c: landmarks.kmeans_plus_plus(c.key, c.X, num_landmarks=c.few),
)
landmark_entry(
    "leverage", lambda c: landmarks.leverage(c.key, c.kernel, c.X, num_landmarks=c.few)
)


def check_pivots(c, v):
    yield from check_landmarks(c, v)
    yield from equal("the first landmarks", v["used"], v["rows"])
    yield from whole("landmarks", v["num_landmarks"], 1, c.few + 1)
    yield from within("residual", v["trace_residual"], 0, c.n, 8 * c.n * c.eps)
    yield from near("trace", v["trace"], c.n, 8 * c.n * c.eps)


@op(
    "landmarks.pivoted_cholesky",
    check_pivots,
    overflows=True,
    unsteady=("trace_residual",),
)
def _(c):
    found = landmarks.pivoted_cholesky(
        c.key, c.kernel, c.X, tolerance=0.05, max_landmarks=c.few
    )
    chosen = landmarks.pivoted_cholesky(c.key, c.kernel, c.X, num_landmarks=c.few)
    scalars = parts(
        found, num_landmarks="", trace_residual="", trace="", reached="", exhausted=""
    )
    used = jnp.where(found.weights[:, None] > 0, found.landmarks, chosen)
    return {"rows": (chosen, "few dim"), "used": (used, "few dim"), **scalars}


def check_reservoir(c, v):
    seen = int(v["seen"])
    if seen != c.n:
        yield f"{seen} rows seen of {c.n}"
    yield from rows_of(c, v["rows"][: min(seen, 5)])


@op(
    "landmarks.reservoir",
    check_reservoir,
    least=0,
    words=("rows",),
    hides=DRAWN,
    gradient=False,
)
def _(c):
    init, update, merge = landmarks.reservoir(num_landmarks=5)
    state = merge(
        update(init(c.key, c.dim, c.dtype), c.X), init(c.other_key, c.dim, c.dtype)
    )
    return {"rows": (state.points, "5 dim"), "seen": (state.seen, "")}
