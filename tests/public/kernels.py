"""The public functions of kernels and Gram matrices."""

import jax.numpy as jnp
import numpy as np
from support.cases import BOUNDED, user

from jaxkern import gram, kernels, measures
from public.operation import (
    EVERY,
    PSD,
    STATIONARY,
    equal,
    finite,
    near,
    op,
    rows_of,
    sup,
    within,
)


def check_value(c, v):
    if c.kernel_name in STATIONARY or c.kernel_name == "user":
        yield from within("K", v["K"], 0, sup(c), 4 * c.eps)
        yield from near("K(x, x)", v["diagonal"], sup(c), 4 * c.eps)
    yield from equal("K(x, y) and K(y, x)", v["K"], v["K'"])


def kernel_entry(name, kernel_name):
    words = {
        "words": ("x", "y"),
        "kernels": (kernel_name,),
        "used": 1,
        "skips": ("stacked",),
    }

    @op(f"kernels.{name}", check_value, shows_infinity=False, overflows=True, **words)
    def _(c):
        x, y, kernel = c.x, c.Y[0], c.kernel
        return {
            "K": (kernel(x, y), ""),
            "K'": (kernel(y, x), ""),
            "diagonal": (kernel(x, x), ""),
        }


for _name in EVERY:
    kernel_entry("FromFunction" if _name == "user" else _name.capitalize(), _name)


for _name in ("as_kernel", "psd_kernel"):

    @op(
        f"kernels.{_name}",
        lambda c, v: within("K", v["K"], 0, 1),
        kernels=("user",),
        shows_infinity=False,
    )
    def _(c, name=_name):
        return {"K": (gram.gram(getattr(kernels, name)(user), c.X), "n n")}


@op("kernels.kappa", kernels=STATIONARY, hides="a constant of the kernel", points=False,
    example={"kernel_name": "scaled matern32"})  # fmt: skip
def _(c):
    return {"kappa": (jnp.asarray(kernels.kappa(c.kernel), c.dtype), "")}


def check_lipschitz(c, v):
    # The slope of no profile of lengthscale 1 exceeds sqrt(dim), and sums and products have two of them.
    yield from within("L", v["L"], 0, 2.5 * 2 * c.dim**0.5 / c.lengthscale)


@op(
    "kernels.lipschitz",
    check_lipschitz,
    kernels=STATIONARY,
    hides="a constant",
    points=False,
)
def _(c):
    return {"L": (jnp.asarray(kernels.lipschitz(c.kernel, dim=c.dim), c.dtype), "")}


def distances(c):
    points = np.float64(c.plain)
    with np.errstate(all="ignore"):
        largest = np.abs(points).max() or 1.0
        gaps = (
            np.linalg.norm((points[:, None] - points[None]) / largest, axis=2) * largest
        )
    return gaps[np.triu_indices(c.n, 1)]


def check_quantile(c, v):
    if c.family in (
        "plain",
        "offset 1e3",
        "offset 1e6",
        "scale 1e6",
        "scale 1e-6",
        "near-duplicates",
        "few values",
    ):
        apart = distances(c)
        # A squared distance is kept to 100 eps by the products, and to (dim + 4) eps by the sums.
        slack = (100 + c.dim) * c.eps
        yield from near(
            "median distance",
            v["median"],
            np.quantile(apart, 0.5),
            slack * np.quantile(apart, 0.5),
        )
        yield from near(
            "first decile",
            v["decile"],
            np.quantile(apart, float(c.share)),
            slack * apart.max(),
        )
    yield from within("quantile", v["median"], 0, np.inf)


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
        "median": (kernels.quantile_lengthscale(X, 0.5), ""),
        "decile": (kernels.quantile_lengthscale(X, c.share), ""),
    }


def check_sampled(c, v):
    if c.n >= 2 and c.family not in (
        "tiny",
        "huge",
        "subnormal",
        "tiny squared",
        "huge squared",
        "nan",
        "infinity",
    ):
        apart = finite(distances(c))
        if apart.size:
            slack = (4 + c.dim) * c.eps * apart.max()
            yield from within("quantile", v["median"], apart.min(), apart.max(), slack)


@op(
    "kernels.sampled_quantile_lengthscale",
    check_sampled,
    least=2,
    overflows=True,
    hides="pairs are drawn",
)
def _(c):
    return {
        "median": (kernels.sampled_quantile_lengthscale(c.key, c.X, num_pairs=20), "")
    }


def check_gram(c, v):
    yield from equal("K and its transpose", v["K"], v["K"].T)
    if c.kernel_name in BOUNDED | {"sum", "scaled", "user"}:
        yield from within("K", v["K"], 0, sup(c), 4 * c.eps)
        yield from within("K(X, Y)", v["K(X, Y)"], 0, sup(c), 4 * c.eps)
        yield from near("diagonal", np.diagonal(v["K"]), sup(c), 4 * c.eps)
    if c.kernel_name == "distance":
        yield from near("diagonal", np.diagonal(v["K"]), 0, 0)
    if c.kernel_name == "gaussian":
        # Products of centred points: eps times the squared reach, over the squared lengthscale.
        rows = np.float64(c.plain)
        with np.errstate(all="ignore"):
            squares = (((rows[:, None] - rows[None]) / c.lengthscale) ** 2).sum(axis=2)
            slack = 4 * (c.dim**0.5 + 4) * c.eps * (1 + c.reach)
        yield from near("K", v["K"], np.exp(-squares / 2), min(slack, 1.0))


@op("gram.gram", check_gram, kernels=EVERY, shows_infinity=False, overflows=True)
def _(c):
    X = c.X
    return {
        "K": (gram.gram(c.kernel, X), "n n"),
        "K(X, Y)": (gram.gram(c.kernel, X, c.Y), "n m"),
    }


def check_rounding(c, v):
    if c.kernel_name in BOUNDED - {"product"}:
        most = {"float32": 1e-5, "float64": 1e-11}[np.dtype(c.dtype).name]
        yield from within("bound", v["bound"], 0, most, c.dim * c.eps)


@op("gram.rounding", check_rounding, kernels=PSD[:-1], hides="in few dimensions no point plays a part", overflows=True,
    gradient=False, example={"dim": 12})  # fmt: skip
def _(c):
    return {"bound": (gram.rounding(c.kernel, c.X, c.Y), "")}


def check_product(c, v):
    if c.kernel_name in BOUNDED:
        yield from within("K V", v["K V"], -1, 1, 4 * c.n * c.eps)


@op(
    "gram.gram_matmul",
    check_product,
    kernels=EVERY,
    least=0,
    shows_infinity=False,
    overflows=True,
)
def _(c):
    X = c.X
    weights = jnp.ones(c.n + 1, c.dtype) / (c.n + 1)
    own = (
        {}
        if c.n == 0
        else {"K w": (gram.gram_matmul(c.kernel, X, None, c.shares), "n")}
    )
    return own | {
        "K V": (gram.gram_matmul(c.kernel, X, c.Y, weights, block_size=5), "n")
    }


def check_center(c, v):
    yield from near("means of rows", v["HKH"].mean(axis=1), 0, 4 * c.n * c.eps)
    yield from near("means of columns", v["HKH"].mean(axis=0), 0, 4 * c.n * c.eps)


@op("gram.center", check_center, words=("K",), shows_infinity=False)
def _(c):
    return {"HKH": (gram.center(c.K), "n n")}


def check_distance(c, v):
    if c.kernel_name in BOUNDED | {"sum", "scaled"}:
        yield from within("distance", v["distance"], 0, (2 * sup(c)) ** 0.5, 8 * c.eps)
    yield from within("distance", v["distance"], 0, np.inf)
    yield from near("distance to itself", v["itself"], 0, 0)
    yield from equal("|K_x - K_y| and |K_y - K_x|", v["distance"], v["back"])
    if c.kernel_name == "gaussian":
        x, y = np.float64(c.plain), np.float64(np.asarray(c.Y)[: c.n])
        with np.errstate(all="ignore"):
            squares = (((x - y) / c.lengthscale) ** 2).sum(axis=1)
        wanted = np.sqrt(-2 * np.expm1(-squares / 2))
        # Relative to itself, however close: 2 (d + 4) roundings, and the exponent's again.
        slack = 2 * (c.dim**0.5 + 8) * c.eps * wanted
        # Squares below the normal range are rounded to it, or flushed to zero.
        yield from near(
            "distance",
            v["distance"],
            wanted,
            slack + 4 * (c.dim * float(np.finfo(c.dtype).tiny)) ** 0.5,
        )


@op(
    "gram.kernel_distance",
    check_distance,
    kernels=PSD,
    shows_infinity=False,
    overflows=True,
)
def _(c):
    X, Y = c.X, c.Y[: c.n]
    return {
        "distance": (gram.kernel_distance(c.kernel, X, Y), "n"),
        "back": (gram.kernel_distance(c.kernel, Y, X), "n"),
        "itself": (gram.kernel_distance(c.kernel, X, X), "n"),
    }


@op(
    "measures.Discrete",
    lambda c, v: rows_of(c, v["draws"], distinct=False) if c.in_range else (),
    words=("points",),
    hides="rows are drawn",
    gradient=False,
)
def _(c):
    law = measures.Discrete(c.X, c.shares)
    return {
        "draws": (law.sample(c.key, num_points=5), "5 dim"),
        "total": (law.total, ""),
    }
