"""The public functions of laws, means of kernels and clustering problems."""

import functools

import jax.numpy as jnp
import numpy as np

from jaxkern import kernels, measures, problems
from public.operation import (
    ANY_SHAPE,
    finite,
    near,
    op,
    parts,
    positive,
    within,
)


def check_grid(c, v):
    yield from near("mass", v["weights"].sum(), 1, 20 * c.eps)
    variance = v["weights"] @ (v["points"][:, 0] / c.lengthscale) ** 2
    yield from near("variance", variance, 1, 1e-5)


@op(
    "measures.gaussian_grid",
    check_grid,
    words="std",
    points=False,
    hides="a grid of its own",
)
def _(c):
    law = measures.gaussian_grid(33, std=c.length, dtype=c.dtype)
    return parts(law, points="33 1", weights="33")


def check_spectrum(c, v):
    # The sum stops where eigenvalues are small; a short lengthscale has more of them than are summed.
    slack = 48 * c.eps * (1 + min(np.exp(2) / c.lengthscale, 1e3))
    yield from near("trace", v["trace"], 1, slack)
    yield from within("effective rank", v["rank"], 1, np.inf, 8 * c.eps)


def spectrum_of_few(c):
    law = measures.gaussian_spectrum(c.length, 0.5 + positive(c, 2))
    return law.eigenvalues(20), law.trace(3), law.op_norm(), law.effective_rank(2)


@op(
    "measures.gaussian_spectrum",
    check_spectrum,
    words="std",
    points=False,
    hides="numbers of its own",
    program=spectrum_of_few,
)
def _(c):
    # Standard deviations of at most 3 coordinates: the largest of products grow too many otherwise.
    stds = jnp.exp(10 * jnp.clip(c.numbers(min(c.dim, 3)), -2, 2))
    law = measures.gaussian_spectrum(c.length, stds)
    return {
        "eigenvalues": (law.eigenvalues(6), "6: 0..1 descending"),
        "trace": (law.trace(), ""),
        "rank": (law.effective_rank(), ""),
        "norm": (law.op_norm(2), ""),
    }


@op(
    "measures.GaussianSpectrum",
    points=False,
    hides="numbers of its own",
    overflows=True,
)
def _(c):
    rates = c.numbers(max(c.n, 1)) ** 2 / 100
    scales = c.shares if c.n else jnp.ones(1, c.dtype)
    law = measures.GaussianSpectrum(scales, rates)
    return {"trace": (law.trace(3), ""), "norm": (law.op_norm(), "")}


op_of_means = functools.partial(op, shows_infinity=False, overflows=True)
"""Entries of means of kernels: K = 0 is right for points that are infinitely far."""


def check_mean(c, v):
    yield from near("diagonal", np.diagonal(v["E K"]), 1, 4 * c.eps)


NOISES = {
    "IsotropicNoise": lambda c: measures.IsotropicNoise(c.shares),
    "RadialNoise": lambda c: measures.RadialNoise(c.shares),
    "DiagonalNoise": lambda c: measures.DiagonalNoise(c.numbers(c.dim) ** 2),
    "GeneralNoise": lambda c: measures.GeneralNoise(
        0.5 * jnp.eye(c.dim, dtype=c.dtype) + 0.25 / c.dim
    ),
}
for _name in NOISES:

    @op_of_means(
        f"measures.{_name}",
        check_mean,
        words="means U",
        # A covariance matrix of 10,000 dimensions is too large.
        widest=3 if _name == "GeneralNoise" else 10_000,
    )
    def _(c, name=_name):
        noise = NOISES[name](c)
        X = c.X
        return {
            "E K": (measures.mean_kernel(c.kernel, X, noise), "n n: 0..1"),
            "norms": (noise.op_norm(X), "n: 0.."),
        }


@op_of_means("measures.mean_gaussian_kernel", check_mean, words="means")
def _(c):
    mean = measures.mean_gaussian_kernel(c.X, c.shares, c.length)
    return {"E K": (mean, "n n: 0..1")}


def check_mean_distance(c, v):
    yield from near("diagonal", np.diagonal(v["E d"]), 0, 0)


@op_of_means("measures.mean_kernel", check_mean_distance, words="means")
def _(c):
    mean = measures.mean_kernel(kernels.Distance(), c.X, c.shares)
    return {"E d": (mean, "n n: 0..")}


@op_of_means("measures.mean_kernel_between", words="U V")
def _(c):
    mean = measures.mean_kernel_between(c.kernel, c.X, c.Y, 0.5)
    return {"E K(U, V)": (mean, "n m: 0..1")}


def check_log_mgf(c, v):
    # Convex, even, between 0 and |u|.
    u = np.abs(np.float64(c.plain))
    slack = float(4 * c.eps * (1 + finite(u).max(initial=0)))
    yield from within("log psi - |u|", np.float64(v["log psi"]) - u, -np.inf, 0, slack)


op_of_numbers = functools.partial(op, words="u", least=0, skips=ANY_SHAPE)


@op_of_numbers("measures.log_sphere_mgf", check_log_mgf, overflows=True)
def _(c):
    values = measures.log_sphere_mgf(c.X, max(min(c.dim, 5), 1))
    return {"log psi": (values, "n dim: 0..")}


def is_beyond_exp(c):
    return np.abs(c.plain).max(initial=0) > np.log(np.finfo(c.dtype).max)


def check_mgf(c, v):
    yield from within("psi", v["psi"], 1, np.inf, 4 * c.eps)


@op_of_numbers("measures.sphere_mgf", check_mgf, overflows=is_beyond_exp)
def _(c):
    return {"psi": (measures.sphere_mgf(c.X, 5), "n dim")}


LAWS = ("Gaussian", "UniformImage", "SoftplusImage", "Uniform", "Ramp", "Skewed")
for _name in LAWS:

    @op(
        f"problems.{_name}Law",
        words="means",
        hides="rows are drawn around each mean",
        shows_infinity=False,
    )
    def _(c, name=_name):
        make = getattr(problems, f"{name}Law")
        law = make(1 + c.share) if name in ("Ramp", "Skewed") else make()
        problem = problems.perturb(c.key, c.X, c.shares, law=law)
        draws = law.sample(c.other_key, num_points=5, dim=c.dim, dtype=c.dtype)
        return {
            "points": (problem.points, "n dim"),
            "noise": (problem.sigma_inf(), ""),
            "omega": (jnp.asarray(problem.omega, c.dtype), ""),
            "draws": (draws, "5 dim"),
        }


def check_perturbed(c, v):
    """Noise of level zero: the means themselves."""
    # XLA rounds what is below the normal numbers to zero.
    yield from near("points", v["points"], v["means"], np.finfo(c.dtype).tiny)


@op("problems.perturb", check_perturbed, words="means")
def _(c):
    problem = problems.perturb(c.key, c.X, 0.0, labels=c.labels)
    noisy = problems.perturb(c.other_key, c.X, measures.RadialNoise(c.shares))
    arrays = parts(problem, points="n dim", means="n dim", labels="n: 0..2")
    return arrays | {"mean kernel": (noisy.mean_kernel(c.kernel), "n n")}


SAMPLERS = {
    "nested_spheres": lambda c: {
        "dim": 3,
        "radii": (1.0, c.length),
        "noise": c.length,
        "radial": True,
    },
    "circles": lambda c: {"noise": c.length},
    "cluster_in_cluster": lambda c: {"radius": c.length},
    "crescent_full_moon": lambda c: {"radius": c.length},
    "random_noisy": lambda c: {"dim": 3, "signal_dim": 2, "zeta": c.length},
}
for _name in SAMPLERS:

    @op(
        f"problems.{_name}",
        words="noise radii zeta radius",
        points=False,
        hides="it draws its own points",
        overflows=True,
    )
    def _(c, name=_name):
        settings = SAMPLERS[name](c)
        draw = getattr(problems, name)
        problem = draw(c.key, num_points=max(c.n, 1), dtype=c.dtype, **settings)
        dim = settings.get("dim", 2)
        return parts(problem, points=f"max(n,1) {dim}", labels="max(n,1): 0..2")


@op(
    "problems.gaussian_mixture",
    words="centers",
    skips=("None",),
    shows_infinity=False,
)
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
    return parts(problem, points="2*n dim", labels="2*n: 0..n-1")
