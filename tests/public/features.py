"""The feature maps, and the streams of Frequent Directions."""

import jax.numpy as jnp
import numpy as np

from jaxkern import features, frequent_directions, kernels
from public.operation import descending, function, near, op, parts, whole, within


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
        "Z": (phi(c.Y), "m few"),
        "one": (phi(c.Y[0]), "few"),
        "none": (phi(c.Y[:0]), "0 few"),
        "embed": (phi.embed(function(c)), "2 few"),
        "eigenvalues": (phi.eigenvalues, "few"),
        "rank": (phi.rank, ""),
        "residual": (phi.trace_residual, ""),
    }


@op("features.kernel_jl", words=("landmarks",), kernels=("gaussian", "laplacian"))
def _(c):
    phi = features.kernel_jl(c.key, c.kernel, c.X, num_features=4, centered=True)
    return {
        "Z": (phi(c.Y), "m 4"),
        "none": (phi(c.Y[:0]), "0 4"),
        "embed": (phi.embed(function(c)), "2 4"),
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
        phi, eigenvalues="few", total_variance="", explained_variance_ratio="few"
    ) | {
        "Z": (phi(c.Y), "m few"),
        "residual": (phi.reconstruction_residual(c.Y), "m"),
        "none": (phi.reconstruction_residual(c.Y[:0]), "0"),
    }


@op("features.preimage", lambda c, v: within("residual", v["residual"], 0, np.inf), words=("landmarks",),
    unsteady=("points",))  # fmt: skip
def _(c):
    phi = features.kernel_pca(c.kernel, c.X, num_components=c.few)
    found = features.preimage(phi, phi(c.Y), num_steps=5)
    return parts(found, points="m dim", residual="m", converged="m")


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
        phi, eigenvalues="2", shrinkage="", variances="2", residual="", finite=""
    )
    return {"Z": (phi(c.Y), "m 2")} | own


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
        singular_values="2",
        basis="dim 2",
        shrinkage="",
        squared_norm="",
        rank="",
        finite="",
    )
    return own | {"rows": (sketch.rows.T, "dim 2")}


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
