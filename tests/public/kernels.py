"""The public functions of kernels and Gram matrices."""

import jax.numpy as jnp
import numpy as np
from support.cases import BOUNDED, EXTREME, MISSING, STATIONARY, between, user

from jaxkern import gram, kernels, measures
from public.operation import (
    EVERY,
    PSD,
    equal,
    near,
    op,
    rows_of,
    sup,
    within,
)


def check_diagonal(c, diagonal):
    """K(x, x) is the limit of kernels that have one, and nearer to it than sums of the rows are rounded."""
    if sup(c) < np.inf:
        yield from near("K(x, x)", diagonal, sup(c), 4 * c.eps)


def check_value(c, v):
    yield from check_diagonal(c, v["diagonal"])
    yield from equal("K(x, y) and K(y, x)", v["K"], v["K'"])


for _name in EVERY:

    @op(
        f"kernels.{'FromFunction' if _name == 'user' else _name.capitalize()}",
        check_value,
        words="x y",
        kernels=(_name,),
        used=1,
        skips=("stacked",),
        shows_infinity=False,
        overflows=True,
    )
    def _(c):
        x = c.x
        y = c.Y[0]
        return {
            "K": (c.kernel(x, y), ": low..sup"),
            "K'": (c.kernel(y, x), ""),
            "diagonal": (c.kernel(x, x), ""),
        }


for _name in ("as_kernel", "psd_kernel"):

    @op(f"kernels.{_name}", kernels=("user",), shows_infinity=False)
    def _(c, name=_name):
        kernel = getattr(kernels, name)(user)
        return {"K": (gram.gram(kernel, c.X), "n n: 0..1")}


@op(
    "kernels.kappa",
    kernels=STATIONARY,
    hides="a constant of the kernel",
    points=False,
    example={"kernel_name": "scaled matern32"},
)
def _(c):
    return {"kappa": (jnp.asarray(kernels.kappa(c.kernel), c.dtype), "")}


@op(
    "kernels.lipschitz",
    kernels=STATIONARY,
    hides="a constant",
    points=False,
)
def _(c):
    slope = jnp.asarray(kernels.lipschitz(c.kernel, dim=c.dim), c.dtype)
    # No profile of lengthscale 1 is steeper than sqrt(dim). Sums and products have two of them, "scaled" 2.5.
    return {"L": (slope, ": 0..5*dim**0.5/length")}


def distances(c):
    return between(c.plain)[np.triu_indices(c.n, 1)]


STEADY = {"plain", "offset 1e3", "offset 1e6", "scale 1e6", "scale 1e-6"}
STEADY |= {"near-duplicates", "few values"}
"""Families of which no quantile is a distance that products of centred points lose."""


def check_quantile(c, v):
    if c.family not in STEADY:
        return
    exact = distances(c)
    # A squared distance is kept to 100 eps by the products, and to (dim + 4) eps by the sums.
    slack = (100 + c.dim) * c.eps
    median = np.quantile(exact, 0.5)
    yield from near("median distance", v["median"], median, slack * median)
    decile = np.quantile(exact, float(c.share))
    yield from near("first decile", v["decile"], decile, slack * exact.max())


@op(
    "kernels.quantile_lengthscale",
    check_quantile,
    least=2,
    overflows=True,
    shows_infinity=False,
)
def _(c):
    X = c.X
    return {
        "median": (kernels.quantile_lengthscale(X, 0.5), ": 0.."),
        "decile": (kernels.quantile_lengthscale(X, c.share), ""),
    }


def check_sampled(c, v):
    if c.family not in EXTREME | MISSING:
        exact = distances(c)
        slack = (4 + c.dim) * c.eps * exact.max()
        yield from within("quantile", v["median"], exact.min(), exact.max(), slack)


@op(
    "kernels.sampled_quantile_lengthscale",
    check_sampled,
    least=2,
    overflows=True,
    hides="pairs are drawn",
)
def _(c):
    median = kernels.sampled_quantile_lengthscale(c.key, c.X, num_pairs=20)
    return {"median": (median, "")}


def check_gram(c, v):
    yield from equal("K and its transpose", v["K"], v["K"].T)
    diagonal = np.diagonal(v["K"])
    yield from check_diagonal(c, diagonal)
    if c.kernel_name == "distance":
        yield from near("diagonal", diagonal, 0, 0)
    if c.kernel_name == "gaussian":
        # Products of centred points: eps times the squared reach, over the squared lengthscale.
        slack = 4 * (c.dim**0.5 + 4) * c.eps * (1 + c.reach)
        exact = np.exp(-(between(c.plain, c.lengthscale) ** 2) / 2)
        yield from near("K", v["K"], exact, min(slack, 1.0))


@op("gram.gram", check_gram, kernels=EVERY, shows_infinity=False, overflows=True)
def _(c):
    X = c.X
    return {
        "K": (gram.gram(c.kernel, X), "n n: low..sup"),
        "K(X, Y)": (gram.gram(c.kernel, X, c.Y), "n m: low..sup"),
    }


def check_rounding(c, v):
    if c.kernel_name in BOUNDED - {"product"}:
        limit = {"float32": 1e-5, "float64": 1e-11}[c.dtype]
        yield from within("bound", v["bound"], 0, limit, c.dim * c.eps)


@op(
    "gram.rounding",
    check_rounding,
    kernels=PSD[:-1],
    hides="in few dimensions no point plays a part",
    overflows=True,
    gradient=False,
    example={"dim": 12},
)
def _(c):
    return {"bound": (gram.rounding(c.kernel, c.X, c.Y), "")}


@op(
    "gram.gram_matmul",
    kernels=EVERY,
    least=0,
    shows_infinity=False,
    overflows=True,
)
def _(c):
    X = c.X
    weights = jnp.ones(c.n + 1, c.dtype) / (c.n + 1)
    product = gram.gram_matmul(c.kernel, X, c.Y, weights, block_size=5)
    products = {"K V": (product, "n: -sup..sup")}
    if c.n > 0:
        products["K w"] = (gram.gram_matmul(c.kernel, X, None, c.shares), "n")
    return products


def check_center(c, v):
    for axis in (0, 1):
        yield from near("means", v["HKH"].mean(axis=axis), 0, 4 * c.n * c.eps)


@op("gram.center", check_center, words="K", shows_infinity=False)
def _(c):
    return {"HKH": (gram.center(c.K), "n n")}


def check_distance(c, v):
    yield from near("distance to itself", v["itself"], 0, 0)
    yield from equal("|K_x - K_y| and |K_y - K_x|", v["distance"], v["back"])
    if c.kernel_name == "gaussian":
        differences = np.float64(c.plain) - np.float64(c.Y[: c.n])
        squares = ((differences / c.lengthscale) ** 2).sum(axis=1)
        exact = np.sqrt(-2 * np.expm1(-squares / 2))
        # Relative to itself, however close: 2 (d + 4) roundings, and the exponent's again.
        slack = 2 * (c.dim**0.5 + 8) * c.eps * exact
        # Squares below the normal range are rounded to it, or flushed to zero.
        slack = slack + 4 * (c.dim * float(np.finfo(c.dtype).tiny)) ** 0.5
        yield from near("distance", v["distance"], exact, slack)


@op(
    "gram.kernel_distance",
    check_distance,
    kernels=PSD,
    shows_infinity=False,
    overflows=True,
)
def _(c):
    X = c.X
    Y = c.Y[: c.n]
    return {
        "distance": (gram.kernel_distance(c.kernel, X, Y), "n: 0..(2*sup)**0.5"),
        "back": (gram.kernel_distance(c.kernel, Y, X), "n"),
        "itself": (gram.kernel_distance(c.kernel, X, X), "n"),
    }


def check_draws(c, v):
    return rows_of(c, v["draws"], distinct=False) if c.in_range else ()


@op(
    "measures.Discrete",
    check_draws,
    words="points",
    hides="rows are drawn",
    gradient=False,
)
def _(c):
    law = measures.Discrete(c.X, c.shares)
    return {
        "draws": (law.sample(c.key, num_points=5), "5 dim"),
        "total": (law.total, ""),
    }
