"""The public functions that partition, fit and judge: audit, k-means, clustering, regression, learn, metrics."""

import functools

import jax.numpy as jnp
import numpy as np

from jaxkern import audit, clustering, features, kernels, learn, metrics, regression
from jaxkern import kmeans as partition
from public.features import COSINES, fourier_map
from public.operation import near, op, parts, within


def error_values(error):
    return parts(
        error, largest=": 0..", mean=": 0..largest", counted=": 0..max(n,9)", finite=""
    )


@op("audit.distance_error", words="X Y", overflows=True)
def _(c):
    return error_values(audit.distance_error(fourier_map(c), c.kernel, c.X, c.Y[: c.n]))


@op(
    "audit.sampled_distance_error",
    least=2,
    overflows=True,
    hides="pairs are drawn",
)
def _(c):
    error = audit.sampled_distance_error(
        c.other_key, fourier_map(c), c.kernel, c.X, num_pairs=9
    )
    return error_values(error)


@op("audit.spectral_error", overflows=True)
def _(c):
    error = audit.spectral_error(
        c.other_key, fourier_map(c), c.kernel, c.X, num_steps=2, num_probes=min(c.n, 2)
    )
    return parts(error, lower=": 0..", upper=": lower..")


op_of_partition = functools.partial(op, overflows=True, gradient=False)


def partition_values(clusters, centers):
    labels = {"labels": "n: 0..few-1", "objective": ": 0.."}
    return parts(clusters, centers=centers, converged="", **labels)


def check_kmeans(c, v):
    if np.isfinite(v["centers"]).all():
        rows = np.float64(c.plain)
        exact = ((rows - v["centers"][v["labels"]]) ** 2).sum()
        largest = (rows**2).sum(axis=1).max()
        slack = 8 * (c.n + c.dim**0.5) * c.eps * exact
        # A centre is rounded by eps times its size, and a square below the normal range to it.
        slack += c.n * (4 * c.eps) ** 2 * largest
        slack += 4 * c.n * c.dim * float(np.finfo(c.dtype).tiny)
        yield from near("objective", v["objective"], exact, slack)


@op_of_partition("kmeans.kmeans", check_kmeans)
def _(c):
    clusters = partition.kmeans(c.key, c.X, c.few, num_restarts=2)
    return partition_values(clusters, "few dim")


@op_of_partition("clustering.kernel_spectral", kernels=("gaussian", "distance"))
def _(c):
    clusters = clustering.kernel_spectral(c.key, c.kernel, c.X, c.few, num_restarts=1)
    values = partition_values(clusters, "few few")
    return values | {"new": (clusters.predict(c.Y), "m")}


@op_of_partition("clustering.spectral_from_gram", words="K")
def _(c):
    clusters = clustering.spectral_from_gram(c.key, c.K, c.few, num_restarts=1)
    labels = clusters.predict(jnp.zeros((0, c.n), c.dtype))
    return partition_values(clusters, "few few") | {"none": (labels, "0")}


@op_of_partition("clustering.kernel_kmeans")
def _(c):
    clusters = clustering.kernel_kmeans(c.key, c.kernel, c.X, c.few, num_restarts=1)
    values = partition_values(clusters, "few n")
    return values | {"new": (clusters.predict(c.Y), "m")}


op_of_targets = functools.partial(op, overflows=True, words="y")
PENALTY = {"regularization": 0.1}


def bounds_of(certified):
    return parts(certified, training_bound=": 0..", radius=": 0..")


def ridge_values(c, ridge):
    return bounds_of(ridge) | {
        "values": (ridge(c.Y), "m"),
        "bounds": (ridge.bound_at(c.Y), "m: 0.."),
        "distance": (ridge.distance_bound, ": 0.."),
    }


def four(c):
    return {"num_landmarks": min(c.n, 4)}


@op_of_targets("regression.ridge")
def _(c):
    y = c.numbers(c.n)
    settings = {"weights": c.shares, **PENALTY, **four(c)}
    return ridge_values(c, regression.ridge(c.key, c.kernel, c.X, y, **settings))


@op_of_targets("regression.ridge_to", gradient=False)
def _(c):
    y = c.numbers(c.n)
    settings = {"tolerance": 0.1, "max_products": 15, **PENALTY, **four(c)}
    return ridge_values(c, regression.ridge_to(c.key, c.kernel, c.X, y, **settings))


@op_of_targets("regression.leave_one_out")
def _(c):
    path = c.share * jnp.array([1, 9], c.dtype)
    residuals = regression.leave_one_out(
        c.kernel, c.X, c.numbers(c.n), regularization=path, weights=c.ones
    )
    return {"residuals": (residuals, "2 n")}


@op("regression.posterior_variance", overflows=True)
def _(c):
    settings = {"weights": c.ones, "landmarks": "pivoted_cholesky", **PENALTY}
    lower, upper = regression.posterior_variance(
        c.key, c.kernel, c.X, c.Y, **settings, **four(c)
    )
    return {"lower": (lower, "m: 0.."), "upper": (upper, "m: lower..")}


def head_values(c, head):
    return {"values": (head(c.Y), "m"), "residual": (head.residual, ": 0..")}


@op_of_targets("regression.head")
def _(c):
    y = c.numbers(c.n)
    head = regression.head(fourier_map(c), c.X, y, weights=c.shares, **PENALTY)
    return head_values(c, head)


@op_of_targets("regression.certified_head")
def _(c):
    phi = features.nystrom(c.kernel, c.Y)
    coefficients = c.numbers(c.n + 1)
    penalty = jnp.asarray(0.1, c.dtype)
    head = regression.Head(phi, coefficients, penalty, c.share, c.share)
    certified = regression.certified_head(
        c.key, head, c.kernel, c.X, c.numbers(c.n), **four(c)
    )
    values, bounds = certified.with_bounds(c.Y)
    return parts(certified.dual, distance_bound="", radius="") | {
        "values": (values, "m"),
        "bounds": (bounds, "m: 0.."),
        "training": (certified.training_bound, ""),
    }


@op("regression.streaming_ridge", least=0, overflows=True)
def _(c):
    ridge = regression.streaming_ridge(fourier_map(c))
    first = ridge.update(ridge.init(c.dtype), c.X, c.numbers(c.n), c.shares)
    return head_values(c, ridge.finalize(ridge.merge(first, first), **PENALTY))


@op("regression.TablePredictor", least=0, skips=("stacked",), overflows=True)
def _(c):
    coefficients = c.numbers(8, 2)
    model = regression.TablePredictor(
        fourier_map(c), coefficients, c.numbers(2), ("a", "b")
    )
    return {"Z": (model(c.X), "n 8" + COSINES)}


@op("learn.alignment")
def _(c):
    alignment = learn.alignment(c.kernel, c.X, c.labels, num_labels=3)
    return {"alignment": (alignment, ": -1..1")}


def first_gap(kernel, X):
    return learn.eigengap(kernel, X, num_components=1)


@op("learn.eigengap", least=2)
def _(c):
    return {"gap": (first_gap(c.kernel, c.X), ": 0..1")}


def check_fit(c, v):
    if v["finite"]:
        yield from near("objective", v["objective"], np.max(v["objectives"]), 0)
        ratio = np.log(np.float64(v["lengthscale"]) / c.lengthscale)
        yield from within("log of the ratio", ratio, -np.log(1e3), np.log(1e3), 1e-4)


@op("learn.fit_lengthscale", check_fit, least=2, overflows=True, gradient=False)
def _(c):
    fit = learn.fit_lengthscale(kernels.Gaussian(c.length), c.X, first_gap, num_steps=2)
    fields = parts(fit, objective="", objectives="3", finite="")
    return {"lengthscale": (fit.kernel.lengthscale, ""), **fields}


SCORES = {
    "rand_index": 0,
    "adjusted_rand_index": -0.5,
    "normalized_mutual_info": 0,
    "misclassification_rate": 0,
}
"""By name of a score of two partitions, the least value."""


def program_of_score(c, name):
    # No program can count labels.
    settings = {"num_labels": 3} if name == "misclassification_rate" else {}
    return getattr(metrics, name)(c.labels, c.other_labels, **settings)


for _name in SCORES:

    @op(
        f"metrics.{_name}",
        any_dtype=True,
        hides="labels are whole numbers",
        points=False,
        gradient=False,
        words="labels_true labels_pred",
        program=functools.partial(program_of_score, name=_name),
    )
    def _(c, name=_name):
        rng = np.random.default_rng([c.seed, c.n])
        # Labels of few and of many values, far apart, negative, and beyond 32 bits.
        labels = rng.choice([0, 1, 5, -3, 2**31 - 1, -(2**31), 2**40], size=c.n)
        score = getattr(metrics, name)
        value = score(labels, rng.integers(0, 3, c.n))
        best = 0 if name == "misclassification_rate" else 1
        return {
            "score": (value, f": {SCORES[name]}..1"),
            "same": (score(labels, labels) - best, ": 0..0"),
        }


for _name in ("spectral_error", "frobenius_error"):

    @op(f"metrics.{_name}", words="K")
    def _(c, name=_name):
        error = getattr(metrics, name)(c.K, jnp.eye(c.n, dtype=c.dtype))
        return {"error": (error, ": 0..1")}
