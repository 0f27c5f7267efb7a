"""Every public function: how to call it on a case, what shapes must come back, and what must be true of the numbers.

`make(case)` returns {word: (value, shape)}; `check(case, values)` yields what is wrong with finite values. The stress
(`support.stress`) makes cases of data that hurt, and judges what holds of all functions there: shapes, dtypes, finite
numbers where the data allow it, missing data that show. For the contracts (`tests/jaxkern/test_contract.py`) a
function is a program whose arguments are the arrays that `make` asks its case for: `ENTRIES` and `WAYS`.
"""

import contextlib
import dataclasses
import importlib
import inspect
import os
import tempfile
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from support.bounds import ARGUMENTS, named
from support.cases import BOUNDED, KERNELS, as_program, user

from jaxkern import (
    audit,
    clustering,
    features,
    frequent_directions,
    gram,
    kernels,
    landmarks,
    learn,
    measures,
    metrics,
    problems,
    regression,
    rkhs,
    scale,
)
from jaxkern import io as files
from jaxkern import kmeans as partition
from jaxkern import sklearn as estimators
from jaxkern.bounds import concentration, fourier

TABLE = {}

MODULES = (
    *(
        "kernels",
        "gram",
        "measures",
        "problems",
        "rkhs",
        "landmarks",
        "features",
        "audit",
        "scale",
        "kmeans",
    ),
    "regression",
    *("clustering", "learn", "metrics", "frequent_directions", "io"),
    *(
        f"bounds.{topic}"
        for topic in ("sketching", "fourier", "streaming", "concentration")
    ),
)
LONG = {  # to compile; their own modules map them, too
    "audit.sampled_distance_error",
    "audit.spectral_error",
    "bounds.fourier.ball",
    "clustering.kernel_kmeans",
    "clustering.kernel_spectral",
    "clustering.spectral_from_gram",
    "features.fastfood",
    "features.streaming_pca",
    "kernels.sampled_quantile_lengthscale",
    "kmeans.kmeans",
    "learn.fit_lengthscale",
    "problems.gaussian_mixture",
    "regression.ridge_to",
}


@dataclasses.dataclass(frozen=True)
class Operation:
    """One public function, and what is asked of it.

    make, check : see the top of the module.
    words : names that a refusal may give, beside those of the arguments of the function itself.
    least : the least number of rows that it takes.
    kernels : the kernels that it is tried with.
    points : whether it is called on the points of the case; if not, their form and what they miss do not matter.
    used : how many rows of X it looks at, by default all.
    hides : why missing data need not show in the result; "" where they must.
    shows_infinity : whether infinite data must show, too; not where a limit is the right answer, such as K = 0.
    overflows : whether squares that leave the range of the dtype may make a result that is not finite; or a function of
        the case that tells whether the result itself leaves it.
    any_dtype : whether the result has a dtype of its own.
    arrays : whether it takes arrays of NumPy and JAX in their own dtype, and no lists.
    converts : whether it is an estimator of scikit-learn, which converts what it can, and refuses in its own words.
    of_one_array : words of results that know their diagonal where both sides are one array, which those of NumPy are
        not once each is converted; elsewhere it is rounded.
    skips : forms that are not tried, since the function takes arrays of any shape.
    widest : the largest dimension that it is tried in.
    gradient : whether gradients are asked of its program; not of integers, of what is piecewise constant, or of a loop
        as long as the data say.
    turned : words of results that rest on eigenvectors, so that their inner products alone are the same everywhere.
    unsteady : words of results that are left out of its program, since rounding decides where they go, or a loop as
        long as the data say has no derivative.
    example : what is special about the case of its program.
    program : a function of the case in the place of `make`.
    """

    make: Callable[[Any], dict]
    check: Callable[[Any, dict], Any]
    words: tuple[str, ...] = ()
    least: int = 1
    kernels: tuple[str, ...] = ("gaussian",)
    points: bool = True
    used: int | None = None
    hides: str = ""
    shows_infinity: bool = True
    overflows: Callable[[Any], bool] | bool = False
    any_dtype: bool = False
    arrays: bool = False
    converts: bool = False
    of_one_array: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()
    widest: int = 10_000
    gradient: bool = True
    turned: tuple[str, ...] = ()
    unsteady: tuple[str, ...] = ()
    example: dict[str, Any] = dataclasses.field(default_factory=dict)
    program: Callable[[Any], Any] | None = None

    def results(self, case):
        """Return what is the same wherever and however a program of the function runs."""
        if self.program:
            return self.program(case)
        made = {
            word: value
            for word, (value, _) in self.make(case).items()
            if word not in self.unsteady
        }
        return {
            word: products(value) if word in self.turned else value
            for word, value in made.items()
        }


def parts(result, **shapes):
    """Return fields of a result with the shapes that they should have."""
    return {word: (getattr(result, word), shape) for word, shape in shapes.items()}


def products(Z):
    return jnp.matmul(Z, Z.T, precision=jax.lax.Precision.HIGHEST)


ANY_SHAPE = ("stacked", "number", "no columns")


def nothing_more(c, v):
    return ()


def op(name, check=nothing_more, **words):
    def register(make):
        assert name not in TABLE, name
        TABLE[name] = Operation(make, check, **words)
        return make

    return register


def finite(values):
    values = np.float64(values)
    return values[np.isfinite(values)]


def within(word, values, low, high, slack=0.0):
    """Yield a complaint if a number that is finite lies outside [low - slack, high + slack]."""
    values = finite(values)
    if values.size and not (
        values.min() >= low - slack and values.max() <= high + slack
    ):
        yield f"{word} in [{values.min():.9g}, {values.max():.9g}], not in [{low:.9g}, {high:.9g}] +- {slack:.3g}"


def equal(word, first, second):
    """The same numbers to the last bit, but for NaN, which equals itself."""
    if not np.array_equal(first, second, equal_nan=True):
        yield f"{word} differ"


def near(word, found, wanted, slack):
    found, wanted = np.broadcast_arrays(np.float64(found), np.float64(wanted))
    both = np.isfinite(found) & np.isfinite(wanted)
    gap = np.abs(found - wanted)[both] - np.broadcast_to(slack, found.shape)[both]
    if gap.size and gap.max() > 0:
        yield f"{word} off by {gap.max():.3g} beyond the slack of {np.max(slack):.3g}"


def descending(word, values):
    values = finite(values)
    if (np.diff(values) > 0).any():
        yield f"{word} not descending"


def whole(word, values, low, high):
    if values.size and not (values.min() >= low and values.max() < high):
        yield f"{word} in [{values.min()}, {values.max()}], not in [{low}, {high})"


def rows_of(c, chosen, distinct=True):
    """Every row is one of the points, bit by bit, and taken as often at most as it is there."""
    points, left = c.plain + 0, {}  # no -0.0
    for row in points:
        left[row.tobytes()] = left.get(row.tobytes(), 0) + 1
    for row in np.asarray(chosen) + 0:
        count = left.get(row.tobytes(), 0)
        if count == 0:
            yield "a row that is none of the points, or taken too often"
            return
        if distinct:
            left[row.tobytes()] = count - 1


def sup(c):
    """The largest kernel value that is possible."""
    return 2.5 if c.kernel_name == "scaled" else 2.0 if c.kernel_name == "sum" else 1.0


STATIONARY = (
    "gaussian",
    "laplacian",
    "exponential",
    "cauchy",
    "matern32",
    "matern52",
    "sum",
    "product",
    "scaled",
)
EVERY = tuple(
    name for name in KERNELS if name != "scaled matern32"
)  # that one is for examples of Fourier features
PSD = tuple(name for name in EVERY if name != "distance")


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
            "K": (kernel(x, y), ()),
            "K'": (kernel(y, x), ()),
            "diagonal": (kernel(x, x), ()),
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
        return {"K": (gram.gram(getattr(kernels, name)(user), c.X), (c.n, c.n))}


@op("kernels.kappa", kernels=STATIONARY, hides="a constant of the kernel", points=False,
    example={"kernel_name": "scaled matern32"})  # fmt: skip
def _(c):
    return {"kappa": (jnp.asarray(kernels.kappa(c.kernel), c.dtype), ())}


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
    return {"L": (jnp.asarray(kernels.lipschitz(c.kernel, dim=c.dim), c.dtype), ())}


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
        "median": (kernels.quantile_lengthscale(X, 0.5), ()),
        "decile": (kernels.quantile_lengthscale(X, c.share), ()),
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
        "median": (kernels.sampled_quantile_lengthscale(c.key, c.X, num_pairs=20), ())
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
        "K": (gram.gram(c.kernel, X), (c.n, c.n)),
        "K(X, Y)": (gram.gram(c.kernel, X, c.Y), (c.n, c.n + 1)),
    }


def check_rounding(c, v):
    if c.kernel_name in BOUNDED - {"product"}:
        most = {"float32": 1e-5, "float64": 1e-11}[np.dtype(c.dtype).name]
        yield from within("bound", v["bound"], 0, most, c.dim * c.eps)


@op("gram.rounding", check_rounding, kernels=PSD[:-1], hides="in few dimensions no point plays a part", overflows=True,
    gradient=False, example={"dim": 12})  # fmt: skip
def _(c):
    return {"bound": (gram.rounding(c.kernel, c.X, c.Y), ())}


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
        else {"K w": (gram.gram_matmul(c.kernel, X, None, c.shares), (c.n,))}
    )
    return own | {
        "K V": (gram.gram_matmul(c.kernel, X, c.Y, weights, block_size=5), (c.n,))
    }


def check_center(c, v):
    yield from near("means of rows", v["HKH"].mean(axis=1), 0, 4 * c.n * c.eps)
    yield from near("means of columns", v["HKH"].mean(axis=0), 0, 4 * c.n * c.eps)


@op("gram.center", check_center, words=("K",), shows_infinity=False)
def _(c):
    return {"HKH": (gram.center(c.K), (c.n, c.n))}


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
        "distance": (gram.kernel_distance(c.kernel, X, Y), (c.n,)),
        "back": (gram.kernel_distance(c.kernel, Y, X), (c.n,)),
        "itself": (gram.kernel_distance(c.kernel, X, X), (c.n,)),
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
        "draws": (law.sample(c.key, num_points=5), (5, c.dim)),
        "total": (law.total, ()),
    }


def check_grid(c, v):
    yield from near("mass", v["weights"].sum(), 1, 20 * c.eps)
    yield from near(
        "variance",
        (v["weights"] * (v["points"][:, 0] / c.lengthscale) ** 2).sum(),
        1,
        1e-5,
    )


@op(
    "measures.gaussian_grid",
    check_grid,
    words=("std",),
    points=False,
    hides="a grid of its own",
)
def _(c):
    law = measures.gaussian_grid(33, std=c.length, dtype=c.dtype)
    return {"points": (law.points, (33, 1)), "weights": (law.weights, (33,))}


def check_spectrum(c, v):
    yield from within("eigenvalues", v["eigenvalues"], 0, 1, 4 * c.eps)
    yield from descending("eigenvalues", v["eigenvalues"])
    yield from near(
        "trace", v["trace"], 1, 48 * c.eps * (1 + min(np.exp(2) / c.lengthscale, 1e3))
    )
    yield from within("effective rank", v["rank"], 1, np.inf, 8 * c.eps)


def positive(c, *shape):
    return jnp.abs(c.numbers(*shape))


def spectrum_values(law):
    return {
        "eigenvalues": (law.eigenvalues(6), (6,)),
        "trace": (law.trace(), ()),
        "rank": (law.effective_rank(), ()),
        "norm": (law.op_norm(2), ()),
    }


def spectrum_of_few(c):
    law = measures.gaussian_spectrum(c.length, 0.5 + positive(c, 2))
    return law.eigenvalues(20), law.trace(3), law.op_norm(), law.effective_rank(2)


@op("measures.gaussian_spectrum", check_spectrum, words=("std",), points=False, hides="numbers of its own",
    program=spectrum_of_few)  # fmt: skip
def _(c):
    # Standard deviations of at most 3 coordinates: the largest of products grow too many otherwise.
    stds = jnp.exp(10 * jnp.clip(c.numbers(min(c.dim, 3)), -2, 2))
    return spectrum_values(measures.gaussian_spectrum(c.length, stds))


@op(
    "measures.GaussianSpectrum",
    points=False,
    hides="numbers of its own",
    overflows=True,
)
def _(c):
    law = measures.GaussianSpectrum(
        c.shares if c.n else jnp.ones(1, c.dtype), c.numbers(max(c.n, 1)) ** 2 / 100
    )
    return {"trace": (law.trace(3), ()), "norm": (law.op_norm(), ())}


def check_mean(c, v):
    for word in v:
        if word.startswith("E K"):
            yield from within(word, v[word], 0, 1, 8 * c.eps)
            if word == "E K":
                yield from near("diagonal", np.diagonal(v[word]), 1, 4 * c.eps)
    yield from within("norms", v.get("norms", np.zeros(1)), 0, np.inf)


def noise_entry(name, make, **words):
    @op(
        f"measures.{name}",
        check_mean,
        words=("means", "U"),
        shows_infinity=False,
        overflows=True,
        **words,
    )
    def _(c):
        noise, X = make(c), c.X
        return {
            "E K": (measures.mean_kernel(c.kernel, X, noise), (c.n, c.n)),
            "norms": (noise.op_norm(X), (c.n,)),
        }


noise_entry("IsotropicNoise", lambda c: measures.IsotropicNoise(c.shares))
noise_entry("RadialNoise", lambda c: measures.RadialNoise(c.shares))
noise_entry("DiagonalNoise", lambda c: measures.DiagonalNoise(c.numbers(c.dim) ** 2))
noise_entry(
    "GeneralNoise",
    lambda c: measures.GeneralNoise(jnp.eye(c.dim, dtype=c.dtype) * 0.5 + 0.25 / c.dim),
    widest=3,
)


@op(
    "measures.mean_gaussian_kernel",
    check_mean,
    words=("means",),
    shows_infinity=False,
    overflows=True,
)
def _(c):
    return {"E K": (measures.mean_gaussian_kernel(c.X, c.shares, c.length), (c.n, c.n))}


def check_mean_distance(c, v):
    yield from within("E |X - Y|", v["E d"], 0, np.inf)
    yield from near("diagonal", np.diagonal(v["E d"]), 0, 0)


@op(
    "measures.mean_kernel",
    check_mean_distance,
    words=("means",),
    shows_infinity=False,
    overflows=True,
)
def _(c):
    return {
        "E d": (measures.mean_kernel(kernels.Distance(), c.X, c.shares), (c.n, c.n))
    }


@op(
    "measures.mean_kernel_between",
    check_mean,
    words=("U", "V"),
    shows_infinity=False,
    overflows=True,
)
def _(c):
    return {
        "E K(U, V)": (
            measures.mean_kernel_between(c.kernel, c.X, c.Y, 0.5),
            (c.n, c.n + 1),
        )
    }


def check_log_mgf(c, v):
    # Convex, even, between 0 and |u|.
    yield from within("log psi", v["log psi"], 0, np.inf)
    u = np.abs(np.float64(c.plain))
    slack = float(4 * c.eps * (1 + finite(u).max(initial=0)))
    yield from within("log psi - |u|", np.float64(v["log psi"]) - u, -np.inf, 0, slack)


@op(
    "measures.log_sphere_mgf",
    check_log_mgf,
    words=("u",),
    least=0,
    skips=ANY_SHAPE,
    overflows=True,
)
def _(c):
    return {
        "log psi": (measures.log_sphere_mgf(c.X, max(min(c.dim, 5), 1)), c.plain.shape)
    }


@op("measures.sphere_mgf", lambda c, v: within("psi", v["psi"], 1, np.inf, 4 * c.eps), words=("u",), least=0,
    skips=ANY_SHAPE, overflows=lambda c: np.abs(c.plain).max(initial=0) > np.log(np.finfo(c.dtype).max))  # fmt: skip
def _(c):
    return {"psi": (measures.sphere_mgf(c.X, 5), c.plain.shape)}


for _name, _law in {
    "GaussianLaw": lambda c: problems.GaussianLaw(),
    "UniformImageLaw": lambda c: problems.UniformImageLaw(),
    "SoftplusImageLaw": lambda c: problems.SoftplusImageLaw(),
    "UniformLaw": lambda c: problems.UniformLaw(),
    "RampLaw": lambda c: problems.RampLaw(1 + c.share),
    "SkewedLaw": lambda c: problems.SkewedLaw(1 + c.share),
}.items():

    @op(
        f"problems.{_name}",
        words=("means",),
        hides="rows are drawn around each mean",
        shows_infinity=False,
    )
    def _(c, law=_law):
        problem = problems.perturb(c.key, c.X, c.shares, law=law(c))
        draws = law(c).sample(c.other_key, num_points=5, dim=c.dim, dtype=c.dtype)
        omega = jnp.asarray(problem.omega, c.dtype)
        return {
            "points": (problem.points, (c.n, c.dim)),
            "noise": (problem.sigma_inf(), ()),
            "omega": (omega, ()),
            "draws": (draws, (5, c.dim)),
        }


def check_perturbed(c, v):
    """Noise of level zero: the means themselves."""
    # XLA rounds what is below the normal numbers to zero.
    yield from near("points", v["points"], v["means"], np.finfo(c.dtype).tiny)
    yield from whole("labels", v["labels"], 0, 3)


@op("problems.perturb", check_perturbed, words=("means",))
def _(c):
    problem = problems.perturb(c.key, c.X, 0.0, labels=c.labels)
    noisy = problems.perturb(c.other_key, c.X, measures.RadialNoise(c.shares))
    own = parts(problem, points=(c.n, c.dim), means=(c.n, c.dim), labels=(c.n,))
    return own | {"mean kernel": (noisy.mean_kernel(c.kernel), (c.n, c.n))}


def sampler_entry(name, width, given):
    words = {
        "words": ("noise", "radii", "zeta", "radius"),
        "points": False,
        "hides": "it draws its own points",
    }

    @op(
        f"problems.{name}",
        lambda c, v: whole("labels", v["labels"], 0, 3),
        overflows=True,
        **words,
    )
    def _(c):
        n = max(c.n, 1)
        problem = getattr(problems, name)(
            c.key, num_points=n, dtype=c.dtype, **given(c)
        )
        return parts(problem, points=(n, width), labels=(n,))


sampler_entry(
    "nested_spheres",
    3,
    lambda c: dict(dim=3, radii=(1.0, c.length), noise=c.length, radial=True),
)
sampler_entry("circles", 2, lambda c: dict(noise=c.length))
for _name in ("cluster_in_cluster", "crescent_full_moon"):
    sampler_entry(_name, 2, lambda c: dict(radius=c.length))
sampler_entry("random_noisy", 3, lambda c: dict(dim=3, signal_dim=2, zeta=c.length))


@op("problems.gaussian_mixture", lambda c, v: whole("labels", v["labels"], 0, c.n), words=("centers",),
    skips=("None",), shows_infinity=False)  # fmt: skip
def _(c):
    problem = problems.gaussian_mixture(
        c.key,
        num_points=2 * c.n,
        dim=c.dim,
        num_clusters=c.n,
        centers=c.X,
        noise=0.5,
        dtype=c.dtype,
    )
    return parts(problem, points=(2 * c.n, c.dim), labels=(2 * c.n,))


def function(c, columns=2):
    return rkhs.Function(c.kernel, c.Y, c.numbers(c.n + 1, columns))


def check_function(c, v):
    total = np.abs(np.asarray(c.numbers(c.n + 1, 2))).sum(axis=0).max()
    yield from within("f(X)", v["f(X)"], -total, total, 4 * (c.n + 1) * c.eps * total)


@op("rkhs.Function", check_function, least=0, kernels=("gaussian", "exponential"), words=("points",),
    shows_infinity=False)  # fmt: skip
def _(c):
    f = function(c)
    return {"f(X)": (f(c.X), (c.n, 2)), "(2 f - f)(X)": ((2.0 * f - f)(c.X), (c.n, 2))}


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
    return {"values": (f(c.Y), (c.n + 1, c.n)), "own": (f(c.plain), (c.n, c.n))}


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
        "<f, g>": (rkhs.inner(f, g), (2, 2)),
        "|f|": (rkhs.norm(f), (2,)),
        "|g|": (rkhs.norm(g), (2,)),
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
    return {"|f|": (rkhs.norm(rkhs.Function(c.kernel, c.X, c.numbers(c.n))), ())}


@op(
    "rkhs.SamplingOperator",
    lambda c, v: within("K", v["K"], 0, 1, 4 * c.eps),
    words=("points", "beta"),
    of_one_array=("S S* beta",),
)
def _(c):
    S = rkhs.SamplingOperator(c.kernel, c.X)
    return {
        "S f": (S(function(c)), (c.n, 2)),
        "S S* beta": (S(S.adjoint(c.numbers(c.n))), (c.n,)),
        "K": (S.gram(), (c.n, c.n)),
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
        "eigenvalues": (sigma.eigenvalues(), (c.n,)),
        "trace": (sigma.trace(), ()),
        "rank": (sigma.effective_rank(3), ()),
        "norm": (sigma.op_norm(0.5), ()),
        "Hilbert-Schmidt": (sigma.hs_norm(), ()),
        "kappa": (sigma.kappa(), ()),
        "<f, Sigma f>": (sigma.inner(f, f, power=2.5), (2, 2)),
        "Sigma f": (sigma(f)(c.Y), (c.n + 1, 2)),
        "centred trace": (centred.trace(), ()),
    }


@op("rkhs.draw_gaussian", words=("points",))
def _(c):
    draws = rkhs.draw_gaussian(
        c.key, rkhs.Covariance(c.kernel, c.X), power=2, num_draws=2
    )
    return {"values": (draws(c.Y), (c.n + 1, 2)), "weights": (draws.weights, (c.n, 2))}


@op("rkhs.RandomProjection", words=("points",))
def _(c):
    theta = rkhs.RandomProjection(c.key, rkhs.Covariance(c.kernel, c.X), num_features=4)
    return {
        "theta f": (theta(function(c)), (2, 4)),
        "adjoint": (theta.adjoint(c.numbers(4))(c.Y), (c.n + 1,)),
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
        return {"rows": (choose(c), (c.few, c.dim))}


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
        found, num_landmarks=(), trace_residual=(), trace=(), reached=(), exhausted=()
    )
    used = jnp.where(found.weights[:, None] > 0, found.landmarks, chosen)
    return {"rows": (chosen, (c.few, c.dim)), "used": (used, (c.few, c.dim)), **scalars}


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
    return {"rows": (state.points, (5, c.dim)), "seen": (state.seen, ())}


def check_projection(c, v):
    # |phi(x)|^2 <= K(x, x): eigenvalues are cut off at eps sqrt(n), which may enlarge rounding by 1 / sqrt(eps).
    squares = np.float64(v["Z"]) ** 2
    slack = 4 * c.n * (c.eps * (1 + min(c.reach * (1 + c.dim**0.5), 1 / c.eps))) ** 0.5
    yield from within("|phi(x)|^2", squares.sum(axis=1), 0, 1, slack)
    yield from within("eigenvalues", v["eigenvalues"], 0, c.n, 8 * c.n * c.eps)
    yield from descending("eigenvalues", v["eigenvalues"])
    yield from whole("rank", v["rank"], 0, v["Z"].shape[1] + 1)


@op("features.nystrom", check_projection, words=("landmarks",), kernels=("gaussian", "exponential"),
    turned=("Z", "embed"), unsteady=("one", "none"))  # fmt: skip
def _(c):
    phi = features.nystrom(c.kernel, c.X, rank=c.few, X=c.Y)
    return {
        "Z": (phi(c.Y), (c.n + 1, c.few)),
        "one": (phi(c.Y[0]), (c.few,)),
        "none": (phi(c.Y[:0]), (0, c.few)),
        "embed": (phi.embed(function(c)), (2, c.few)),
        "eigenvalues": (phi.eigenvalues, (c.few,)),
        "rank": (phi.rank, ()),
        "residual": (phi.trace_residual, ()),
    }


@op("features.kernel_jl", words=("landmarks",), kernels=("gaussian", "laplacian"))
def _(c):
    phi = features.kernel_jl(c.key, c.kernel, c.X, num_features=4, centered=True)
    return {
        "Z": (phi(c.Y), (c.n + 1, 4)),
        "none": (phi(c.Y[:0]), (0, 4)),
        "embed": (phi.embed(function(c)), (2, 4)),
    }


def check_pca(c, v):
    yield from within("eigenvalues", v["eigenvalues"], 0, c.n, 8 * c.n * c.eps)
    yield from descending("eigenvalues", v["eigenvalues"])
    yield from within("variance", v["total_variance"], 0, 1, 8 * c.n * c.eps)
    # Both are rounded like K, and may be as small.
    slack = 8 * c.n * c.eps / max(float(v["total_variance"]), c.eps)
    yield from within("ratio", v["explained_variance_ratio"], 0, 1, slack)
    yield from within("residual", v["residual"], 0, 4, 1)


@op("features.kernel_pca", check_pca, words=("landmarks",), turned=("Z",))
def _(c):
    phi = features.kernel_pca(c.kernel, c.X, num_components=c.few)
    return parts(
        phi, eigenvalues=(c.few,), total_variance=(), explained_variance_ratio=(c.few,)
    ) | {
        "Z": (phi(c.Y), (c.n + 1, c.few)),
        "residual": (phi.reconstruction_residual(c.Y), (c.n + 1,)),
        "none": (phi.reconstruction_residual(c.Y[:0]), (0,)),
    }


@op("features.preimage", lambda c, v: within("residual", v["residual"], 0, np.inf), words=("landmarks",),
    unsteady=("points",))  # fmt: skip
def _(c):
    phi = features.kernel_pca(c.kernel, c.X, num_components=c.few)
    found = features.preimage(phi, phi(c.Y), num_steps=5)
    return parts(
        found, points=(c.n + 1, c.dim), residual=(c.n + 1,), converged=(c.n + 1,)
    )


def check_fourier(c, v):
    # Cosines of amplitude sqrt(1/m) or sqrt(2/m), whatever their phases.
    yield from within("features", v["Z"], -(0.5**0.5), 0.5**0.5, 4 * c.eps)


def fourier_entry(name, kernel_names, width, **words):
    @op(f"features.{name}", check_fourier, **words, least=0, kernels=kernel_names, skips=("stacked",), overflows=True,
        example={"kernel_name": "scaled matern32"})  # fmt: skip
    def _(c):
        phi = getattr(features, name)(
            c.key, c.kernel, c.dim, num_frequencies=4, dtype=c.dtype
        )
        return {"Z": (phi(c.X), (*c.plain.shape[:-1], width))}


fourier_entry("paired_fourier", ("gaussian", "laplacian", "cauchy"), 8)
fourier_entry("shifted_fourier", ("gaussian",), 4)
fourier_entry(
    "orthogonal_fourier", ("gaussian", "matern52"), 8, widest=3
)  # it takes dim^3 to draw
fourier_entry("fastfood", ("gaussian", "exponential"), 8)


def fourier_map(c):
    return features.paired_fourier(
        c.key, c.kernel, c.dim, num_frequencies=4, dtype=c.dtype
    )


def check_feature_pca(c, v):
    yield from descending("eigenvalues", v["eigenvalues"])
    yield from within("eigenvalues", v["eigenvalues"], 0, 1, 16 * c.eps)
    yield from within("ratio", v["explained_variance_ratio"], 0, 1, 16 * c.eps)


@op("features.random_feature_pca", check_feature_pca, overflows=True, turned=("Z",))
def _(c):
    few = min(c.n, 4)
    pca = features.random_feature_pca(fourier_map(c), c.X, num_components=few)
    return {"Z": (pca(c.Y), (c.n + 1, few))} | parts(
        pca, eigenvalues=(few,), explained_variance_ratio=(few,)
    )


@op("features.as_map", check_fourier, least=0, skips=("stacked",), overflows=True)
def _(c):
    return {"Z": (features.as_map(fourier_map(c))(c.X), (*c.plain.shape[:-1], 8))}


def standardized_map(c):
    mean, spread = jnp.mean(c.Y, axis=0), 1 + jnp.std(c.Y, axis=0)
    kernel = kernels.Gaussian(jnp.asarray(c.ratio, c.dtype))
    phi = features.paired_fourier(
        c.key, kernel, c.dim, num_frequencies=4, dtype=c.dtype
    )
    return features.standardized(phi, mean, spread)


@op("features.standardized", check_fourier, least=0, skips=("stacked",), overflows=True)
def _(c):
    return {"Z": (standardized_map(c)(c.X), (*c.plain.shape[:-1], 8))}


NUMBERS_OF_TABLES = (
    "float16",
    "int32",
    "whole numbers in a list",
    "uint8",
    "bool",
    "big-endian",
    "objects",
    "stacked",
)


@op(
    "features.TableMap", check_fourier, least=0, skips=NUMBERS_OF_TABLES, overflows=True
)
def _(c):
    columns = tuple(map(str, range(c.dim)))
    phi = features.TableMap(standardized_map(c), columns, (tuple(range(c.dim)),))
    return {"Z": (phi(c.X), (*c.plain.shape[:-1], 8))}


def check_stream(c, v):
    yield from descending("eigenvalues", v["eigenvalues"])
    yield from within("eigenvalues", v["eigenvalues"], 0, 2 * c.n + 1, 64 * c.n * c.eps)
    yield from within("shrinkage", v["shrinkage"], 0, 2 * c.n + 1, 64 * c.n * c.eps)


def stream_values(c, phi):
    own = parts(
        phi, eigenvalues=(2,), shrinkage=(), variances=(2,), residual=(), finite=()
    )
    return {"Z": (phi(c.Y), (c.n + 1, 2))} | own


@op(
    "features.streaming_pca",
    check_stream,
    least=0,
    overflows=True,
    gradient=False,
    turned=("Z",),
)
def _(c):
    pca = features.streaming_pca(fourier_map(c), sketch_size=3, centered=True)
    state = pca.merge(
        pca.update(pca.init(c.dtype), c.X, c.shares), pca.update(pca.init(c.dtype), c.Y)
    )
    return stream_values(c, pca.finalize(state, num_components=2))


def check_sketch(*parts):
    """The sketch is of the rows of these parts of the case, X and Y."""

    def check(c, v):
        rows = np.float64(
            np.concatenate(
                [c.plain if part == "X" else np.asarray(c.Y) for part in parts]
            )
        )
        yield from descending("singular values", v["singular_values"])
        if np.isfinite(v["singular_values"]).all() and np.isfinite(v["shrinkage"]):
            B, norm = np.float64(v["rows"]).T, np.float64(v["squared_norm"])
            if (
                rows.shape[1] <= 100
                and np.isfinite(norm)
                and norm > 1e3 * np.finfo(c.dtype).tiny / c.eps
            ):
                apart = np.linalg.eigvalsh(rows.T @ rows - B.T @ B)
                # The certificate holds an allowance for its own rounding; the difference here is rounded in float64.
                slack = 8 * c.eps + 2 * len(rows) * float(np.finfo(np.float64).eps)
                yield from within(
                    "A'A - B'B",
                    apart / norm,
                    0,
                    np.float64(v["shrinkage"]) / norm,
                    slack,
                )
            if c.in_range:
                squared = (rows**2).sum()
                yield from near(
                    "|A|^2", norm, squared, 8 * (c.n + c.dim**0.5) * c.eps * squared
                )

    return check


def sketch_values(c, state):
    sketch = frequent_directions.finalize(state)
    own = parts(
        sketch,
        singular_values=(2,),
        basis=(c.dim, 2),
        shrinkage=(),
        squared_norm=(),
        rank=(),
        finite=(),
    )
    return own | {"rows": (sketch.rows.T, (c.dim, 2))}


def sketched(state, *rows):
    return frequent_directions.update(state, *rows)


SKETCH = {
    "least": 0,
    "words": ("rows", "state"),
    "overflows": True,
    "gradient": False,
    "turned": ("rows",),
    "unsteady": ("basis",),
}


for _name, _parts, _state in (
    (
        "init",
        "X",
        lambda c, empty: sketched(
            frequent_directions.init(2, c.dim, c.dtype, shrink_at=1), c.X
        ),
    ),
    ("update", "X", lambda c, empty: sketched(empty, c.X, c.ones)),
    (
        "merge",
        "XY",
        lambda c, empty: frequent_directions.merge(
            sketched(empty, c.X), sketched(empty, c.Y)
        ),
    ),
    ("finalize", "XY", lambda c, empty: sketched(sketched(empty, c.X), c.Y)),
):

    @op(f"frequent_directions.{_name}", check_sketch(*_parts), **SKETCH)
    def _(c, state=_state):
        return sketch_values(c, state(c, frequent_directions.init(2, c.dim, c.dtype)))


def check_errors(c, v):
    yield from within("largest", v["largest"], 0, np.inf)
    slack = 64 * c.eps * (1 + float(finite(v["largest"]).max(initial=0)))
    yield from within(
        "mean - largest", np.float64(v["mean"]) - v["largest"], -np.inf, 0, slack
    )
    yield from whole("counted", v["counted"], 0, max(c.n, 9) + 1)


def error_values(found):
    return parts(found, largest=(), mean=(), counted=(), finite=())


@op("audit.distance_error", check_errors, words=("X", "Y"), overflows=True)
def _(c):
    return error_values(audit.distance_error(fourier_map(c), c.kernel, c.X, c.Y[: c.n]))


@op(
    "audit.sampled_distance_error",
    check_errors,
    least=2,
    overflows=True,
    hides="pairs are drawn",
)
def _(c):
    return error_values(
        audit.sampled_distance_error(
            c.other_key, fourier_map(c), c.kernel, c.X, num_pairs=9
        )
    )


def check_spectral_error(c, v):
    yield from within("lower", v["lower"], 0, np.inf)
    yield from within("lower - upper", np.float64(v["lower"]) - v["upper"], -np.inf, 0)


@op("audit.spectral_error", check_spectral_error, overflows=True)
def _(c):
    found = audit.spectral_error(
        c.other_key, fourier_map(c), c.kernel, c.X, num_steps=2, num_probes=min(c.n, 2)
    )
    return parts(found, lower=(), upper=())


def check_partition(c, v):
    yield from whole("labels", v["labels"], 0, c.few)
    yield from within("objective", v["objective"], 0, np.inf)


def check_kmeans(c, v):
    yield from check_partition(c, v)
    if np.isfinite(v["centers"]).all() and np.isfinite(v["objective"]):
        rows, centers = np.float64(c.plain), np.float64(v["centers"])
        own = ((rows - centers[v["labels"]]) ** 2).sum(axis=1).sum()
        largest = (rows**2).sum(axis=1).max()
        slack = 8 * (c.n + c.dim**0.5) * c.eps * own + c.n * (4 * c.eps) ** 2 * largest
        yield from near(
            "objective",
            v["objective"],
            own,
            slack + 4 * c.n * c.dim * float(np.finfo(c.dtype).tiny),
        )


def partition_values(c, found, centers):
    return parts(found, labels=(c.n,), centers=centers, objective=(), converged=())


@op("kmeans.kmeans", check_kmeans, overflows=True, gradient=False)
def _(c):
    return partition_values(
        c, partition.kmeans(c.key, c.X, c.few, num_restarts=2), (c.few, c.dim)
    )


@op(
    "clustering.kernel_spectral",
    check_partition,
    kernels=("gaussian", "distance"),
    overflows=True,
    gradient=False,
)
def _(c):
    found = clustering.kernel_spectral(c.key, c.kernel, c.X, c.few, num_restarts=1)
    return partition_values(c, found, (c.few, c.few)) | {
        "new": (found.predict(c.Y), (c.n + 1,))
    }


@op(
    "clustering.spectral_from_gram",
    check_partition,
    words=("K",),
    overflows=True,
    gradient=False,
)
def _(c):
    found = clustering.spectral_from_gram(c.key, c.K, c.few, num_restarts=1)
    return partition_values(c, found, (c.few, c.few)) | {
        "none": (found.predict(jnp.zeros((0, c.n), c.dtype)), (0,))
    }


@op("clustering.kernel_kmeans", check_partition, overflows=True, gradient=False)
def _(c):
    found = clustering.kernel_kmeans(c.key, c.kernel, c.X, c.few, num_restarts=1)
    return partition_values(c, found, (c.few, c.n)) | {
        "new": (found.predict(c.Y), (c.n + 1,))
    }


def check_ridge(c, v):
    for word in ("distance", "radius", "training", "bounds"):
        yield from within(word, v[word], 0, np.inf)


def ridge_values(c, found):
    bounds = {
        "distance": (found.distance_bound, ()),
        "radius": (found.radius, ()),
        "training": (found.training_bound, ()),
    }
    return {
        "values": (found(c.Y), (c.n + 1,)),
        "bounds": (found.bound_at(c.Y), (c.n + 1,)),
        **bounds,
    }


@op("regression.ridge", check_ridge, overflows=True, words=("y",))
def _(c):
    y = c.numbers(c.n)
    few = min(c.n, 4)
    found = regression.ridge(
        c.key, c.kernel, c.X, y, regularization=0.1, num_landmarks=few, weights=c.shares
    )
    return ridge_values(c, found)


@op("regression.ridge_to", check_ridge, overflows=True, words=("y",), gradient=False)
def _(c):
    y = c.numbers(c.n)
    sizes = {"num_landmarks": min(c.n, 4), "max_products": 15}
    found = regression.ridge_to(
        c.key, c.kernel, c.X, y, regularization=0.1, tolerance=0.1, **sizes
    )
    return ridge_values(c, found)


@op("regression.leave_one_out", overflows=True, words=("y",))
def _(c):
    path = c.share * jnp.array([1, 9], c.dtype)
    found = regression.leave_one_out(
        c.kernel, c.X, c.numbers(c.n), regularization=path, weights=c.ones
    )
    return {"residuals": (found, (2, c.n))}


def check_variance(c, v):
    yield from within("lower", v["lower"], 0, np.inf)
    yield from within("gap", np.float64(v["upper"]) - v["lower"], 0, np.inf)


@op("regression.posterior_variance", check_variance, overflows=True)
def _(c):
    given = {
        "regularization": 0.1,
        "num_landmarks": min(c.n, 4),
        "weights": c.ones,
        "landmarks": "pivoted_cholesky",
    }
    lower, upper = regression.posterior_variance(c.key, c.kernel, c.X, c.Y, **given)
    return {"lower": (lower, (c.n + 1,)), "upper": (upper, (c.n + 1,))}


def check_head(c, v):
    yield from within("residual", v["residual"], 0, np.inf)


@op("regression.head", check_head, overflows=True, words=("y",))
def _(c):
    found = regression.head(
        fourier_map(c), c.X, c.numbers(c.n), regularization=0.1, weights=c.shares
    )
    return {"values": (found(c.Y), (c.n + 1,))} | parts(found, residual=())


@op(
    "regression.certified_head",
    lambda c, v: within("bounds", v["bounds"], 0, np.inf),
    overflows=True,
    words=("y",),
)
def _(c):
    phi, few = features.nystrom(c.kernel, c.Y), min(c.n, 4)
    own = regression.Head(
        phi, c.numbers(c.n + 1), jnp.asarray(0.1, c.dtype), c.share, c.share
    )
    found = regression.certified_head(
        c.key, own, c.kernel, c.X, c.numbers(c.n), num_landmarks=few
    )
    values, bounds = found.with_bounds(c.Y)
    own = {
        "values": (values, (c.n + 1,)),
        "bounds": (bounds, (c.n + 1,)),
        "training": (found.training_bound, ()),
    }
    return own | parts(found.dual, distance_bound=(), radius=())


@op("regression.streaming_ridge", check_head, least=0, overflows=True)
def _(c):
    ridge = regression.streaming_ridge(fourier_map(c))
    first = ridge.update(ridge.init(c.dtype), c.X, c.numbers(c.n), c.shares)
    found = ridge.finalize(ridge.merge(first, first), regularization=0.1)
    return {"values": (found(c.Y), (c.n + 1,))} | parts(found, residual=())


@op(
    "learn.alignment",
    lambda c, v: within("alignment", v["alignment"], -1, 1, 16 * c.n * c.eps),
)
def _(c):
    return {"alignment": (learn.alignment(c.kernel, c.X, c.labels, num_labels=3), ())}


@op(
    "learn.eigengap",
    lambda c, v: within("gap", v["gap"], 0, 1, 16 * c.n * c.eps),
    least=2,
)
def _(c):
    return {"gap": (learn.eigengap(c.kernel, c.X, num_components=1), ())}


def first_gap(kernel, X):
    return learn.eigengap(kernel, X, num_components=1)


def check_fit(c, v):
    if v["finite"] and np.isfinite(v["objective"]):
        yield from near("objective", v["objective"], np.max(v["objectives"]), 0)
        ratio = np.float64(v["lengthscale"]) / c.lengthscale
        yield from within(
            "log of the ratio", np.log(ratio), -np.log(1e3), np.log(1e3), 1e-4
        )


@op("learn.fit_lengthscale", check_fit, least=2, overflows=True, gradient=False)
def _(c):
    fit = learn.fit_lengthscale(kernels.Gaussian(c.length), c.X, first_gap, num_steps=2)
    return {"lengthscale": (fit.kernel.lengthscale, ())} | parts(
        fit, objective=(), objectives=(3,), finite=()
    )


def score_entry(name, low):
    def check(c, v):
        yield from within("score", v["score"], low, 1, 16 * c.eps)
        yield from near(
            "agreement", v["same"], 0 if name == "misclassification_rate" else 1, 0
        )

    def program(c):
        few = (
            {"num_labels": 3} if name == "misclassification_rate" else {}
        )  # no program can count them
        return getattr(metrics, name)(c.labels, c.other_labels, **few)

    @op(f"metrics.{name}", check, any_dtype=True, hides="labels are whole numbers", points=False, gradient=False,
        words=("labels_true", "labels_pred"), program=program)  # fmt: skip
    def _(c):
        rng = np.random.default_rng([c.seed, c.n])
        # Labels of few and of many values, far apart, negative, and beyond 32 bits.
        far, other = (
            rng.choice([0, 1, 5, -3, 2**31 - 1, -(2**31), 2**40], size=c.n),
            rng.integers(0, 3, c.n),
        )
        score = getattr(metrics, name)
        return {"score": (score(far, other), ()), "same": (score(far, far), ())}


for _name in (
    "rand_index",
    "adjusted_rand_index",
    "normalized_mutual_info",
    "misclassification_rate",
):
    score_entry(_name, -0.5 if _name == "adjusted_rand_index" else 0)

for _name in ("spectral_error", "frobenius_error"):

    @op(
        f"metrics.{_name}",
        lambda c, v: within("error", v["error"], 0, 1, 8 * c.eps),
        words=("K",),
    )
    def _(c, name=_name):
        return {"error": (getattr(metrics, name)(c.K, jnp.eye(c.n, dtype=c.dtype)), ())}


@op("scale.embed", check_fourier, least=0, overflows=True, arrays=True)
def _(c):
    out = scale.embed(fourier_map(c), c.X, block_size=5)
    out = (
        out
        if isinstance(out, np.ndarray)
        else np.concatenate([np.zeros((0, 8), c.dtype), *out])
    )
    return {"Z": (out, (c.n, 8))}


def mesh():
    return jax.make_mesh((1,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))


@op("scale.kmeans", check_kmeans, overflows=True, arrays=True)
def _(c):
    return partition_values(
        c, scale.kmeans(c.key, c.X, c.few, sharding=mesh()), (c.few, c.dim)
    )


@op(
    "scale.landmarks",
    check_landmarks,
    overflows=True,
    arrays=True,
    shows_infinity=False,
)
def _(c):
    try:
        chosen = scale.landmarks(
            c.key, c.X, num_landmarks=c.few, method="pivoted_cholesky", kernel=c.kernel
        )
    except ValueError as error:  # data of a file, which no program sees as a whole
        if "X must be finite" not in str(error):
            raise
        chosen = np.full((c.few, c.dim), np.nan, c.dtype)
    return {"rows": (chosen, (c.few, c.dim))}


@op("scale.stream", check_stream, overflows=True, arrays=True)
def _(c):
    pca = features.streaming_pca(fourier_map(c), sketch_size=3, centered=True)
    return stream_values(
        c, pca.finalize(scale.stream(pca, c.X, num_streams=2), num_components=2)
    )


@op("scale.merge_tree", check_sketch("X", "Y", "Y"), **SKETCH)
def _(c):
    empty = frequent_directions.init(2, c.dim, c.dtype)
    states = [sketched(empty, rows) for rows in (c.X, c.Y, c.Y)]
    return sketch_values(c, scale.merge_tree(frequent_directions.merge, states))


@op("scale.local_rows", any_dtype=True, points=False, hides="a range of rows")
def _(c):
    rows = scale.local_rows(c.n, mesh())
    return {"rows": (np.arange(rows.start, rows.stop), (c.n,))}


@op(
    "scale.open_rows",
    any_dtype=True,
    points=False,
    hides="a file has numbers of its own",
)
def _(c):
    with tempfile.TemporaryDirectory() as folder:
        np.save(os.path.join(folder, "X.npy"), np.asarray(c.X))
        rows = scale.open_rows(folder)
        return {
            "rows": (rows[:], (c.n, c.dim)),
            "same": (np.float64(np.array_equal(rows[:], c.X, equal_nan=True)), ()),
        }


def saved(c):
    """What comes back from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f.npz")
        files.save(
            path,
            rkhs.Function(kernels.Gaussian(1.0), jnp.asarray(c.plain), c.numbers(c.n)),
        )
        found = files.load(path)
    return parts(found, points=c.plain.shape, weights=(c.n,))


def check_saved(c, v):
    if v["points"].tobytes() != c.plain.tobytes():
        yield "points are not what was saved"


SAVED = "what is saved comes back, missing entries with it"
op("io.save", check_saved, least=0, points=False, hides=SAVED)(saved)
op("io.load", check_saved, least=0, points=False, hides=SAVED)(saved)


@op(
    "bounds.concentration.block_parameters",
    least=2,
    words=("mean_kernel",),
    hides="whole blocks are as they are",
)
def _(c):
    labels = jnp.arange(c.n, dtype=jnp.int32) % c.few
    found = concentration.block_parameters(c.K, labels, num_clusters=c.few)
    return parts(found, gamma2=(), vbar2=(), shares=(c.few,))


@op("bounds.concentration.population_parameters", least=2, hides="the same")
def _(c):
    found = concentration.population_parameters(c.K, c.numbers(c.n, c.n) ** 2, c.shares)
    return parts(found, gamma2=(), vbar2=())


for _name in ("relative_distances_given", "kernel_values_given"):

    @op(
        f"bounds.fourier.{_name}",
        words=("squared_distances",),
        hides="see `valid`",
        points=False,
    )
    def _(c, name=_name):
        squares = c.numbers(5) ** 2 * c.ratio
        words = {"squared_distances": squares, "pairs": jnp.ones(5, c.dtype)}
        words |= {"farthest": squares + 0.1} if name == "kernel_values_given" else {}
        return parts(
            getattr(fourier, name)(eps=0.3, num_frequencies=400.0, **words),
            probability=(),
        )


def estimator_entry(name, width, widest=10_000, **settings):
    """scikit-learn converts what it can to float64, and refuses NaN, infinity and the rest in its own words."""
    check = check_fourier if name.endswith(("Fourier", "Fastfood")) else nothing_more

    @op(
        f"sklearn.{name}",
        check,
        converts=True,
        any_dtype=True,
        overflows=True,
        widest=widest,
    )
    def _(c):
        estimator = getattr(estimators, name)(
            **settings, lengthscale=None, random_state=c.seed
        )
        return {"Z": (estimator.fit(c.X).transform(c.X), (c.n, width(c)))}


def clusterer_entry(name):
    @op(
        f"sklearn.{name}",
        converts=True,
        any_dtype=True,
        overflows=True,
        hides="labels are whole numbers",
    )
    def _(c):
        estimator = getattr(estimators, name)(
            min(c.n, 2), n_init=1, random_state=c.seed
        )
        return {"labels": (estimator.fit(c.X).labels_, (c.n,))}


def ridge_entry(name, function):
    @op(f"sklearn.{name}", lambda c, v: within("bounds", v["bounds"], 0, np.inf), converts=True, any_dtype=True,
        overflows=True, least=2)  # fmt: skip
    def _(c):
        fitted = getattr(estimators, name)(
            n_landmarks=min(c.n, 5), random_state=c.seed
        ).fit(c.X, np.arange(c.n) % 2)
        return {
            "values": (getattr(fitted, function)(c.X), (c.n,)),
            "bounds": (fitted.bound(c.X), (c.n,)),
        }


for _name in ("PairedFourier", "OrthogonalFourier", "Fastfood"):
    estimator_entry(
        _name,
        lambda c: 8,
        3 if _name == "OrthogonalFourier" else 10_000,
        n_frequencies=4,
    )
estimator_entry("ShiftedFourier", lambda c: 4, n_frequencies=4)
estimator_entry("KernelJL", lambda c: 4, n_components=4, n_landmarks=5)
estimator_entry("KernelPCA", lambda c: min(c.n, 2), n_landmarks=5)
estimator_entry("Nystrom", lambda c: min(c.n, 5), n_landmarks=5)
for _name in ("KernelKMeans", "KernelSpectral"):
    clusterer_entry(_name)
ridge_entry("KernelRidge", "predict")
ridge_entry("KernelRidgeClassifier", "decision_function")
estimator_entry("StreamingPCA", lambda c: 2, n_frequencies=4, sketch_size=3)


def public_names(*modules):
    return {
        f"{module}.{name}"
        for module in modules
        for name in importlib.import_module(f"jaxkern.{module}").__all__
    }


def is_no_call(name):
    """Tell whether a public name is none to call: a class that functions return, a base class, a type or a number."""
    value = named(name)
    if not inspect.isclass(value):
        return not callable(value)
    return name not in TABLE and (value in BASES or not issubclass(value, BASES))


BASES = (kernels.Kernel, problems.Law)
ENTRIES = {}
"""By public name, `make(dtype, seed) -> (function, arguments)`: all arrays, keys and kernels are arguments, so that the
function can be jitted, vmapped over stacked arguments, lowered and differentiated as it is."""
WAYS = {}
"""The same for what the entries do not reach: other kernels, and functions of streams."""
ON_THE_HOST = ("io.", "scale.", "sklearn.")

for _name, _operation in TABLE.items():
    if not _name.startswith(ON_THE_HOST):
        _settings = {"kernel_name": _operation.kernels[0]} | _operation.example
        ENTRIES[_name] = as_program(_operation.results, **_settings)


def bound_entry(name, values):
    def make(dtype, seed):
        args = (
            jnp.asarray(value * (1 + 0.05 * i * seed), dtype)
            for i, value in enumerate(values.values(), 1)
        )
        return lambda *args: named(name)(**dict(zip(values, args, strict=True))), tuple(
            args
        )

    ENTRIES[name] = make


for _name, _values in ARGUMENTS.items():
    bound_entry(_name, _values)


def method(name):
    """What the functions above do not call. Results of fits are made by hand: what makes them is compiled above."""
    return lambda call: ENTRIES.update({name: as_program(call)})


def whole_number(value):
    return jnp.asarray(value, jnp.int32)


def nystrom_map(c):
    return features.Nystrom(
        c.kernel, c.X, c.numbers(4, c.n), positive(c, 4), whole_number(4), 0.5 * c.share
    )


def clusters(c):
    """Return labels, centres, the objective and whether it converged."""
    return jnp.arange(c.n) % 2, c.numbers(2, 4), 3 + c.share, jnp.asarray(True)


@method("audit.DistanceError.exceeding")
def _(c):
    counted = 9 + jnp.sum(c.labels)
    return audit.DistanceError(
        c.share, 0.3 * c.share, counted, jnp.asarray(True)
    ).exceeding(0.01)


@method("clustering.KernelKMeans.predict")
def _(c):
    return clustering.KernelKMeans(nystrom_map(c), *clusters(c)).predict(c.Y)


@method("clustering.KernelSpectral.predict")
def _(c):
    parts = (c.X, c.numbers(4, c.n), *clusters(c), positive(c, 4))
    spectral = clustering.KernelSpectral(c.kernel, *parts)
    return (
        spectral.predict(c.Y),
        spectral.embed(rkhs.section(c.kernel, c.Y)),
        spectral(c.Y),
    )


@method("clustering.SpectralPartition.predict")
def _(c):
    return clustering.SpectralPartition(
        *clusters(c), positive(c, 4), c.numbers(4, c.n)
    ).predict(c.numbers(5, c.n))


@method("features.Fastfood.frequencies")
def _(c):
    turned = jnp.asarray([[2, 0, 3, 1], [1, 3, 0, 2]], jnp.int32)
    signs = jnp.sign(c.numbers(2, c.dim))
    return features.Fastfood(
        c.kernel, signs, turned, c.numbers(2, 4), positive(c, 6)
    ).frequencies


@method("features.KernelPCA.coefficients")
def _(c):
    parts = (
        c.numbers(4, c.n),
        c.numbers(4),
        positive(c, 4),
        whole_number(4),
        3 + c.share,
        c.share,
    )
    return features.KernelPCA(c.kernel, c.X, *parts).coefficients(c.numbers(5, 4))


@method("features.RandomFeaturePCA.explained_variance")
def _(c):
    phi = features.paired_fourier(
        c.key, c.kernel, c.dim, num_frequencies=20, dtype=c.dtype
    )
    return features.random_feature_pca(
        phi, c.X, num_components=4
    ).explained_variance  # fewer points than features


@method("features.StreamingMap.relative_residual")
def _(c):
    numbers = (0.1 * c.share, 0.4 * c.share, 9 + c.share, 12 + c.share)
    parts = (c.numbers(2, 4), c.numbers(4), positive(c, 2), *numbers)
    phi = features.StreamingMap(
        nystrom_map(c), *parts, whole_number(2), jnp.asarray(True), True
    )
    return phi.relative_residual, phi.relative_shrinkage, phi.variances


@method("kernels.Gaussian.from_gamma")
def _(c):
    makers = (
        getattr(kernels, name).from_gamma
        for name in ("Gaussian", "Exponential", "Laplacian")
    )
    return [
        gram.gram(make(c.length), c.X)
        for make in (kernels.Gaussian.from_width, *makers)
    ]


@method("rkhs.Covariance.matrix")
def _(c):
    sigma = rkhs.Covariance(c.kernel, c.X)
    return sigma.matrix(), sigma.mean()(c.Y), sigma.total


NO_GRADIENT = {name for name, operation in TABLE.items() if not operation.gradient}
NO_GRADIENT |= {name for name in ENTRIES if name.endswith(".predict")}


def way(name):
    return lambda call: WAYS.update({name: as_program(call)})


SPECTRAL = tuple(
    name for name in STATIONARY if name not in ("sum", "product", "scaled")
)

for _name in (*SPECTRAL, "linear", "polynomial"):

    @way(f"gram and distances of {_name}")
    def _(c, make=KERNELS[_name]):
        k = make(c.length)
        K, KV = (
            gram.gram(k, c.X, c.Y),
            gram.gram_matmul(k, c.X, c.Y, c.numbers(c.n + 1, 2), block_size=5),
        )
        return K, KV, gram.kernel_distance(k, c.Y, c.Y + 1e-3)


@way("frequencies of every kernel")
def _(c):
    laws = [KERNELS[name](c.length) for name in SPECTRAL]
    keys = zip(jax.random.split(c.key, len(laws)), laws, strict=True)
    return [
        features.paired_fourier(k, law, c.dim, num_frequencies=3, dtype=c.dtype)(c.X)
        for k, law in keys
    ]


@way("constants of every kernel")
def _(c):
    values = []
    known = kernels.FromFunction(user, sup=1.0, slope=1.0)
    for kernel in (known, *(make(c.length) for make in KERNELS.values())):
        with contextlib.suppress(ValueError):  # of a function they are not known
            values += [kernels.lipschitz(kernel, dim=c.dim), kernels.kappa(kernel)]
    return [
        jnp.asarray(value, c.dtype) for value in values if isinstance(value, jax.Array)
    ]


@way("merged reservoirs")
def _(c):
    init, update, merge = landmarks.reservoir(num_landmarks=5)
    first = update(init(c.key, c.dim, c.dtype), c.X)
    return merge(first, update(init(c.other_key, c.dim, c.dtype), c.Y)).points


@way("mean kernels of a sum")
def _(c):
    noise = measures.RadialNoise(c.shares)
    return measures.mean_kernel(c.kernel + kernels.Linear(), c.X, noise), noise.op_norm(
        c.X
    )


CALLS = {**ENTRIES, **WAYS}
GROUPS = {}
"""The names in `CALLS` by program: small functions of one module that decompose nothing share one. Decompositions side
by side may wait for each other: see docs/design.md."""
LARGE = {
    "ball",
    "ball_additive",
    "ball_matern",
    "dimension_limit",
    "relative_distances_given",
    "kernel_values_given",
}
LARGE |= {"relative_distances_sharp", "simplex_success_limit", "success_limit"}
LARGE = {f"bounds.fourier.{_word}" for _word in LARGE}
"""Functions whose programs take more time together than each for itself."""
SHARED = ("bounds.", "kernels.", "problems.", "gram and distances")

for _name in CALLS:
    _alone = _name in LONG | NO_GRADIENT | LARGE or not _name.startswith(SHARED)
    GROUPS.setdefault(
        _name if _alone else _name.rpartition(".")[0] or SHARED[-1], []
    ).append(_name)


def joined(group, dtype, seed):
    """Return the functions of a group as one of {name: arguments}, and these."""
    made = {name: CALLS[name](dtype, seed) for name in GROUPS.get(group, [group])}

    def call(args):
        return {name: function(*args[name]) for name, (function, _) in made.items()}

    return call, {name: args for name, (_, args) in made.items()}
