"""The feature maps, and the streams of Frequent Directions."""

import functools

import jax.numpy as jnp
import numpy as np

from jaxkern import features, frequent_directions, kernels
from public.operation import function, near, op, parts, within

EIGENVALUES = "few: 0..n descending"


def check_projection(c, v):
    # |phi(x)|^2 <= K(x, x): eigenvalues are cut off at eps sqrt(n), which may enlarge rounding by 1 / sqrt(eps).
    squares = np.float64(v["Z"]) ** 2
    slack = 4 * c.n * (c.eps * (1 + min(c.reach * (1 + c.dim**0.5), 1 / c.eps))) ** 0.5
    yield from within("|phi(x)|^2", squares.sum(axis=1), 0, 1, slack)


@op(
    "features.nystrom",
    check_projection,
    words="landmarks",
    kernels=("gaussian", "exponential"),
    turned=("Z", "embed"),
    unsteady=("one", "none"),
)
def _(c):
    phi = features.nystrom(c.kernel, c.X, rank=c.few, X=c.Y)
    scalars = parts(phi, eigenvalues=EIGENVALUES, rank=": 0..few", trace_residual="")
    return scalars | {
        "Z": (phi(c.Y), "m few"),
        "one": (phi(c.Y[0]), "few"),
        "none": (phi(c.Y[:0]), "0 few"),
        "embed": (phi.embed(function(c)), "2 few"),
    }


@op("features.kernel_jl", words="landmarks", kernels=("gaussian", "laplacian"))
def _(c):
    phi = features.kernel_jl(c.key, c.kernel, c.X, num_features=4, centered=True)
    return {
        "Z": (phi(c.Y), "m 4"),
        "none": (phi(c.Y[:0]), "0 4"),
        "embed": (phi.embed(function(c)), "2 4"),
    }


def check_pca(c, v):
    # Both variances are rounded like K, and may be as small.
    slack = 8 * c.n * c.eps / max(float(v["total_variance"]), c.eps)
    yield from within("ratio", v["explained_variance_ratio"], 0, 1, slack)
    yield from within("residual", v["residual"], 0, 4, 1)


def components(c):
    return features.kernel_pca(c.kernel, c.X, num_components=c.few)


@op("features.kernel_pca", check_pca, words="landmarks", turned=("Z",))
def _(c):
    phi = components(c)
    variances = {"total_variance": ": 0..1", "explained_variance_ratio": "few"}
    return parts(phi, eigenvalues=EIGENVALUES, **variances) | {
        "Z": (phi(c.Y), "m few"),
        "residual": (phi.reconstruction_residual(c.Y), "m"),
        "none": (phi.reconstruction_residual(c.Y[:0]), "0"),
    }


@op("features.preimage", words="landmarks", unsteady=("points",))
def _(c):
    phi = components(c)
    preimage = features.preimage(phi, phi(c.Y), num_steps=5)
    return parts(preimage, points="m dim", residual="m: 0..", converged="m")


COSINES = ": -0.5**0.5..0.5**0.5"
"""The range of cosines of amplitude sqrt(1/m) or sqrt(2/m), whatever their phases."""
op_of_rows = functools.partial(op, least=0, overflows=True, skips=("stacked",))
"""Entries of maps that take any number of rows, none too."""


def fourier_map(c, name="paired_fourier", kernel=None):
    draw = getattr(features, name)
    kernel = kernel or c.kernel
    return draw(c.key, kernel, c.dim, num_frequencies=4, dtype=c.dtype)


FOURIER = {
    "paired_fourier": ("gaussian", "laplacian", "cauchy"),
    "shifted_fourier": ("gaussian",),
    "orthogonal_fourier": ("gaussian", "matern52"),
    "fastfood": ("gaussian", "exponential"),
}
for _name, _kernels in FOURIER.items():

    @op_of_rows(
        f"features.{_name}",
        kernels=_kernels,
        # An orthogonal map takes dim^3 to draw.
        widest=3 if _name == "orthogonal_fourier" else 10_000,
        example={"kernel_name": "scaled matern32"},
    )
    def _(c, name=_name):
        width = "n 4" if name == "shifted_fourier" else "n 8"
        return {"Z": (fourier_map(c, name)(c.X), width + COSINES)}


@op("features.random_feature_pca", overflows=True, turned=("Z",))
def _(c):
    pca = features.random_feature_pca(fourier_map(c), c.X, num_components=min(c.n, 4))
    few = "min(n,4)"
    return {"Z": (pca(c.Y), f"m {few}")} | parts(
        pca,
        eigenvalues=f"{few}: 0..1 descending",
        explained_variance_ratio=f"{few}: 0..1",
    )


@op_of_rows("features.as_map")
def _(c):
    return {"Z": (features.as_map(fourier_map(c))(c.X), "n 8" + COSINES)}


def standardized_map(c):
    mean = jnp.mean(c.Y, axis=0)
    spread = 1 + jnp.std(c.Y, axis=0)
    kernel = kernels.Gaussian(jnp.asarray(c.ratio, c.dtype))
    return features.standardized(fourier_map(c, kernel=kernel), mean, spread)


@op_of_rows("features.standardized")
def _(c):
    return {"Z": (standardized_map(c)(c.X), "n 8" + COSINES)}


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


@op("features.TableMap", least=0, skips=NUMBERS_OF_TABLES, overflows=True)
def _(c):
    columns = tuple(map(str, range(c.dim)))
    phi = features.TableMap(standardized_map(c), columns, (tuple(range(c.dim)),))
    return {"Z": (phi(c.X), "n 8" + COSINES)}


def stream_values(c, phi):
    energies = parts(phi, eigenvalues="2: 0..2*n+1 descending", shrinkage=": 0..2*n+1")
    others = parts(phi, variances="2", residual="", finite="")
    return {"Z": (phi(c.Y), "m 2"), **energies, **others}


def streaming(c):
    return features.streaming_pca(fourier_map(c), sketch_size=3, centered=True)


@op("features.streaming_pca", least=0, overflows=True, gradient=False, turned=("Z",))
def _(c):
    pca = streaming(c)
    first = pca.update(pca.init(c.dtype), c.X, c.shares)
    second = pca.update(pca.init(c.dtype), c.Y)
    return stream_values(c, pca.finalize(pca.merge(first, second), num_components=2))


def check_sketch(*names):
    """Return the check of a sketch of the rows of these arrays of the case, X and Y."""

    def check(c, v):
        arrays = {"X": c.plain, "Y": np.asarray(c.Y)}
        rows = np.float64(np.concatenate([arrays[name] for name in names]))
        norm = np.float64(v["squared_norm"])
        squared = (rows**2).sum()
        if c.in_range:
            slack = 8 * (c.n + c.dim**0.5) * c.eps * squared
            yield from near("|A|^2", norm, squared, slack)
        B = np.float64(v["rows"]).T
        sizes = [norm, v["shrinkage"], *v["singular_values"]]
        # A norm near the subnormal numbers has no digits to compare; of wide rows the matrix is too large.
        is_normal = norm > 1e3 * np.finfo(c.dtype).tiny / c.eps
        if c.dim <= 100 and is_normal and np.isfinite(sizes).all():
            errors = np.linalg.eigvalsh(rows.T @ rows - B.T @ B) / norm
            limit = np.float64(v["shrinkage"]) / norm
            # The certificate holds an allowance for its own rounding; the difference here is rounded in float64.
            slack = 8 * c.eps + 2 * len(rows) * float(np.finfo(np.float64).eps)
            yield from within("A'A - B'B", errors, 0, limit, slack)

    return check


def sketch_values(state):
    sketch = frequent_directions.finalize(state)
    factors = parts(sketch, singular_values="2: 0.. descending", basis="dim 2")
    scalars = parts(sketch, shrinkage="", squared_norm="", rank="", finite="")
    return {"rows": (sketch.rows.T, "dim 2"), **factors, **scalars}


SKETCH = {
    "least": 0,
    "words": "rows state",
    "overflows": True,
    "gradient": False,
    "turned": ("rows",),
    "unsteady": ("basis",),
}


def sketch_of(c, *arrays, **settings):
    """Return the state after arrays of rows."""
    state = frequent_directions.init(2, c.dim, c.dtype, **settings)
    for rows in arrays:
        state = frequent_directions.update(state, rows)
    return state


@op("frequent_directions.init", check_sketch("X"), **SKETCH)
def _(c):
    return sketch_values(sketch_of(c, c.X, shrink_at=1))


@op("frequent_directions.update", check_sketch("X"), **SKETCH)
def _(c):
    return sketch_values(frequent_directions.update(sketch_of(c), c.X, c.ones))


@op("frequent_directions.merge", check_sketch("X", "Y"), **SKETCH)
def _(c):
    first = sketch_of(c, c.X)
    return sketch_values(frequent_directions.merge(first, sketch_of(c, c.Y)))


@op("frequent_directions.finalize", check_sketch("X", "Y"), **SKETCH)
def _(c):
    return sketch_values(sketch_of(c, c.X, c.Y))
