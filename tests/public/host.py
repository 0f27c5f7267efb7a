"""The public functions that run on the host: scale, io, estimators; and bounds that take arrays."""

import os
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import features, frequent_directions, kernels, rkhs, scale
from jaxkern import io as files
from jaxkern import sklearn as estimators
from jaxkern.bounds import concentration, fourier
from public.features import (
    SKETCH,
    check_fourier,
    check_sketch,
    check_stream,
    fourier_map,
    sketch_values,
    sketched,
    stream_values,
)
from public.judges import check_kmeans, partition_values
from public.operation import nothing_more, op, parts, within
from public.rkhs import check_landmarks


@op("scale.embed", check_fourier, least=0, overflows=True, arrays=True)
def _(c):
    out = scale.embed(fourier_map(c), c.X, block_size=5)
    out = (
        out
        if isinstance(out, np.ndarray)
        else np.concatenate([np.zeros((0, 8), c.dtype), *out])
    )
    return {"Z": (out, "n 8")}


def mesh():
    return jax.make_mesh((1,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))


@op("scale.kmeans", check_kmeans, overflows=True, arrays=True)
def _(c):
    return partition_values(
        c, scale.kmeans(c.key, c.X, c.few, sharding=mesh()), "few dim"
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
    return {"rows": (chosen, "few dim")}


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
        rows = scale.open_rows(folder)
        return {
            "rows": (rows[:], "n dim"),
            "same": (np.float64(np.array_equal(rows[:], c.X, equal_nan=True)), ""),
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
    return parts(found, points=c.plain.shape, weights="n")


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
    return parts(found, gamma2="", vbar2="", shares="few")


@op("bounds.concentration.population_parameters", least=2, hides="the same")
def _(c):
    found = concentration.population_parameters(c.K, c.numbers(c.n, c.n) ** 2, c.shares)
    return parts(found, gamma2="", vbar2="")


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
            probability="",
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
        return {"labels": (estimator.fit(c.X).labels_, "n")}


def ridge_entry(name, function):
    @op(f"sklearn.{name}", lambda c, v: within("bounds", v["bounds"], 0, np.inf), converts=True, any_dtype=True,
        overflows=True, least=2)  # fmt: skip
    def _(c):
        fitted = getattr(estimators, name)(
            n_landmarks=min(c.n, 5), random_state=c.seed
        ).fit(c.X, np.arange(c.n) % 2)
        return {
            "values": (getattr(fitted, function)(c.X), "n"),
            "bounds": (fitted.bound(c.X), "n"),
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
