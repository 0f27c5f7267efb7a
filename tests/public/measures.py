"""The public functions of laws, means of kernels and clustering problems."""

import jax.numpy as jnp
import numpy as np

from jaxkern import kernels, measures, problems
from public.operation import (
    ANY_SHAPE,
    descending,
    finite,
    near,
    op,
    parts,
    positive,
    whole,
    within,
)


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
    return {"points": (law.points, "33 1"), "weights": (law.weights, "33")}


def check_spectrum(c, v):
    yield from within("eigenvalues", v["eigenvalues"], 0, 1, 4 * c.eps)
    yield from descending("eigenvalues", v["eigenvalues"])
    yield from near(
        "trace", v["trace"], 1, 48 * c.eps * (1 + min(np.exp(2) / c.lengthscale, 1e3))
    )
    yield from within("effective rank", v["rank"], 1, np.inf, 8 * c.eps)


def spectrum_values(law):
    return {
        "eigenvalues": (law.eigenvalues(6), "6"),
        "trace": (law.trace(), ""),
        "rank": (law.effective_rank(), ""),
        "norm": (law.op_norm(2), ""),
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
    return {"trace": (law.trace(3), ""), "norm": (law.op_norm(), "")}


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
            "E K": (measures.mean_kernel(c.kernel, X, noise), "n n"),
            "norms": (noise.op_norm(X), "n"),
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
    return {"E K": (measures.mean_gaussian_kernel(c.X, c.shares, c.length), "n n")}


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
    return {"E d": (measures.mean_kernel(kernels.Distance(), c.X, c.shares), "n n")}


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
            "n m",
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
            "points": (problem.points, "n dim"),
            "noise": (problem.sigma_inf(), ""),
            "omega": (omega, ""),
            "draws": (draws, "5 dim"),
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
    own = parts(problem, points="n dim", means="n dim", labels="n")
    return own | {"mean kernel": (noisy.mean_kernel(c.kernel), "n n")}


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
    return parts(problem, points="2n dim", labels="2n")
