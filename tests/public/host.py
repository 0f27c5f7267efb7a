"""The public functions that run on the host: scale, io, estimators; and bounds that take arrays."""

import functools
import os
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import frequent_directions, kernels, rkhs, scale
from jaxkern import io as files
from jaxkern import sklearn as estimators
from jaxkern.bounds import concentration, fourier
from public.features import (
    COSINES,
    SKETCH,
    check_sketch,
    fourier_map,
    sketch_of,
    sketch_values,
    stream_values,
    streaming,
)
from public.judges import check_kmeans, partition_values
from public.operation import op, parts
from public.rkhs import check_landmarks


@op("scale.embed", least=0, overflows=True, arrays=True)
def _(c):
    Z = scale.embed(fourier_map(c), c.X, block_size=5)
    if not isinstance(Z, np.ndarray):
        Z = np.concatenate(list(Z))  # a list is refused once its blocks are read
    return {"Z": (Z, "n 8" + COSINES)}


def mesh():
    return jax.make_mesh((1,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))


@op("scale.kmeans", check_kmeans, overflows=True, arrays=True)
def _(c):
    return partition_values(scale.kmeans(c.key, c.X, c.few, sharding=mesh()), "few dim")


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
    return {"rows": (chosen, "few dim")}


@op("scale.stream", overflows=True, arrays=True)
def _(c):
    pca = streaming(c)
    state = scale.stream(pca, c.X, num_streams=2)
    return stream_values(c, pca.finalize(state, num_components=2))


@op("scale.merge_tree", check_sketch("X", "Y", "Y"), **SKETCH)
def _(c):
    states = [sketch_of(c, rows) for rows in (c.X, c.Y, c.Y)]
    return sketch_values(scale.merge_tree(frequent_directions.merge, states))


@op("scale.local_rows", any_dtype=True, points=False, hides="a range of rows")
def _(c):
    rows = scale.local_rows(c.n, mesh())
    return {"rows": (np.arange(rows.start, rows.stop), "n")}


@op(
    "scale.open_rows",
    any_dtype=True,
    points=False,
    hides="a file has numbers of its own",
)
def _(c):
    with tempfile.TemporaryDirectory() as folder:
        np.save(os.path.join(folder, "X.npy"), np.asarray(c.X))
        rows = scale.open_rows(folder)[:]
    return {"rows": (rows, "n dim")}


def saved(c):
    """What comes back from a file."""
    f = rkhs.Function(kernels.Gaussian(1.0), jnp.asarray(c.plain), c.numbers(c.n))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f.npz")
        files.save(path, f)
        return parts(files.load(path), points="n dim", weights="n")


def check_saved(c, v):
    if v["points"].tobytes() != c.plain.tobytes():
        yield "points are not what was saved"


SAVED = "what is saved comes back, missing entries with it"
op("io.save", check_saved, least=0, points=False, hides=SAVED)(saved)
op("io.load", check_saved, least=0, points=False, hides=SAVED)(saved)


@op(
    "bounds.concentration.block_parameters",
    least=2,
    words="mean_kernel",
    hides="whole blocks are as they are",
)
def _(c):
    labels = jnp.arange(c.n, dtype=jnp.int32) % c.few
    blocks = concentration.block_parameters(c.K, labels, num_clusters=c.few)
    return parts(blocks, gamma2="", vbar2="", shares="few")


@op("bounds.concentration.population_parameters", least=2, hides="the same")
def _(c):
    squares = c.numbers(c.n, c.n) ** 2
    population = concentration.population_parameters(c.K, squares, c.shares)
    return parts(population, gamma2="", vbar2="")


for _name in ("relative_distances_given", "kernel_values_given"):

    @op(
        f"bounds.fourier.{_name}",
        words="squared_distances",
        hides="see `valid`",
        points=False,
    )
    def _(c, name=_name):
        squares = c.numbers(5) ** 2 * c.ratio
        pairs = {"squared_distances": squares, "pairs": jnp.ones(5, c.dtype)}
        if name == "kernel_values_given":
            pairs["farthest"] = squares + 0.1
        bound = getattr(fourier, name)
        return parts(bound(eps=0.3, num_frequencies=400.0, **pairs), probability="")


op_of_estimator = functools.partial(op, converts=True, any_dtype=True, overflows=True)
"""Entries of estimators: scikit-learn converts what it can to float64, and refuses NaN, infinity and the rest in its
own words."""
FREQUENCIES = {"n_frequencies": 4}
LANDMARKS = {"n_landmarks": 5}
MAPS = {
    "PairedFourier": ("n 8" + COSINES, FREQUENCIES),
    "OrthogonalFourier": ("n 8" + COSINES, FREQUENCIES),
    "Fastfood": ("n 8" + COSINES, FREQUENCIES),
    "ShiftedFourier": ("n 4" + COSINES, FREQUENCIES),
    "KernelJL": ("n 4", {"n_components": 4, **LANDMARKS}),
    "KernelPCA": ("n min(n,2)", LANDMARKS),
    "Nystrom": ("n min(n,5)", LANDMARKS),
    "StreamingPCA": ("n 2", {"sketch_size": 3, **FREQUENCIES}),
}
"""By name, the shape of the features and the settings of the estimator."""
for _name in MAPS:
    # An orthogonal map takes dim^3 to draw.
    @op_of_estimator(
        f"sklearn.{_name}", widest=3 if _name == "OrthogonalFourier" else 10_000
    )
    def _(c, name=_name):
        text, settings = MAPS[name]
        make = getattr(estimators, name)
        estimator = make(**settings, lengthscale=None, random_state=c.seed)
        return {"Z": (estimator.fit(c.X).transform(c.X), text)}


for _name in ("KernelKMeans", "KernelSpectral"):

    @op_of_estimator(f"sklearn.{_name}", hides="labels are whole numbers")
    def _(c, name=_name):
        make = getattr(estimators, name)
        estimator = make(min(c.n, 2), n_init=1, random_state=c.seed)
        return parts(estimator.fit(c.X), labels_="n")


for _name in ("KernelRidge", "KernelRidgeClassifier"):

    @op_of_estimator(f"sklearn.{_name}", least=2)
    def _(c, name=_name):
        make = getattr(estimators, name)
        ridge = make(n_landmarks=min(c.n, 5), random_state=c.seed)
        ridge = ridge.fit(c.X, np.arange(c.n) % 2)
        function = getattr(ridge, "decision_function", ridge.predict)
        return {"values": (function(c.X), "n"), "bounds": (ridge.bound(c.X), "n: 0..")}
