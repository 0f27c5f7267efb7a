"""The public functions that partition, fit and judge: audit, k-means, clustering, regression, learn, metrics."""

import jax.numpy as jnp
import numpy as np

from jaxkern import audit, clustering, features, kernels, learn, metrics, regression
from jaxkern import kmeans as partition
from public.features import fourier_map
from public.operation import finite, near, op, parts, whole, within


def check_errors(c, v):
    yield from within("largest", v["largest"], 0, np.inf)
    slack = 64 * c.eps * (1 + float(finite(v["largest"]).max(initial=0)))
    yield from within(
        "mean - largest", np.float64(v["mean"]) - v["largest"], -np.inf, 0, slack
    )
    yield from whole("counted", v["counted"], 0, max(c.n, 9) + 1)


def error_values(found):
    return parts(found, largest="", mean="", counted="", finite="")


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
    return parts(found, lower="", upper="")


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
    return parts(found, labels="n", centers=centers, objective="", converged="")


@op("kmeans.kmeans", check_kmeans, overflows=True, gradient=False)
def _(c):
    return partition_values(
        c, partition.kmeans(c.key, c.X, c.few, num_restarts=2), "few dim"
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
    return partition_values(c, found, "few few") | {"new": (found.predict(c.Y), "m")}


@op(
    "clustering.spectral_from_gram",
    check_partition,
    words=("K",),
    overflows=True,
    gradient=False,
)
def _(c):
    found = clustering.spectral_from_gram(c.key, c.K, c.few, num_restarts=1)
    return partition_values(c, found, "few few") | {
        "none": (found.predict(jnp.zeros((0, c.n), c.dtype)), "0")
    }


@op("clustering.kernel_kmeans", check_partition, overflows=True, gradient=False)
def _(c):
    found = clustering.kernel_kmeans(c.key, c.kernel, c.X, c.few, num_restarts=1)
    return partition_values(c, found, "few n") | {"new": (found.predict(c.Y), "m")}


def check_ridge(c, v):
    for word in ("distance", "radius", "training", "bounds"):
        yield from within(word, v[word], 0, np.inf)


def ridge_values(c, found):
    bounds = {
        "distance": (found.distance_bound, ""),
        "radius": (found.radius, ""),
        "training": (found.training_bound, ""),
    }
    return {
        "values": (found(c.Y), "m"),
        "bounds": (found.bound_at(c.Y), "m"),
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
    return {"residuals": (found, "2 n")}


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
    return {"lower": (lower, "m"), "upper": (upper, "m")}


def check_head(c, v):
    yield from within("residual", v["residual"], 0, np.inf)


@op("regression.head", check_head, overflows=True, words=("y",))
def _(c):
    found = regression.head(
        fourier_map(c), c.X, c.numbers(c.n), regularization=0.1, weights=c.shares
    )
    return {"values": (found(c.Y), "m")} | parts(found, residual="")


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
        "values": (values, "m"),
        "bounds": (bounds, "m"),
        "training": (found.training_bound, ""),
    }
    return own | parts(found.dual, distance_bound="", radius="")


@op("regression.streaming_ridge", check_head, least=0, overflows=True)
def _(c):
    ridge = regression.streaming_ridge(fourier_map(c))
    first = ridge.update(ridge.init(c.dtype), c.X, c.numbers(c.n), c.shares)
    found = ridge.finalize(ridge.merge(first, first), regularization=0.1)
    return {"values": (found(c.Y), "m")} | parts(found, residual="")


@op(
    "learn.alignment",
    lambda c, v: within("alignment", v["alignment"], -1, 1, 16 * c.n * c.eps),
)
def _(c):
    return {"alignment": (learn.alignment(c.kernel, c.X, c.labels, num_labels=3), "")}


@op(
    "learn.eigengap",
    lambda c, v: within("gap", v["gap"], 0, 1, 16 * c.n * c.eps),
    least=2,
)
def _(c):
    return {"gap": (learn.eigengap(c.kernel, c.X, num_components=1), "")}


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
    return {"lengthscale": (fit.kernel.lengthscale, "")} | parts(
        fit, objective="", objectives="3", finite=""
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
        return {"score": (score(far, other), ""), "same": (score(far, far), "")}


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
        return {"error": (getattr(metrics, name)(c.K, jnp.eye(c.n, dtype=c.dtype)), "")}
