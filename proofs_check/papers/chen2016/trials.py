"""chen2016: one trial each of what is bounded.

Distances are in units of the lengthscale. Trials draw their frequencies by the library. Where points are close, the
distance of two features is taken from the difference of the points, 2 sin(<w, x - y> / 2), which loses no digits;
the claim `jaxkern:fourier-pair-law` certifies the distances of the features themselves.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, random

from jaxkern import features, kernels
from jaxkern.linalg import HIGHEST, eigvalsh, matmul
from proofs_check.claim import sample

Arrays = Mapping[str, Any]
Numbers = Mapping[str, Array]


GAUSSIAN = kernels.Gaussian(1.0)


def frequencies(key: Array, dim: int, rows: int, dtype: Any) -> Array:
    """Return the frequencies (rows, dim) of the library's map for a Gaussian kernel."""
    phi = features.paired_fourier(key, GAUSSIAN, dim, num_frequencies=rows, dtype=dtype)
    return phi.frequencies


def frequencies_on_host(key: Array, dim: int, rows: int) -> np.ndarray:
    """Return these frequencies, drawn in the default dtype, in float64."""
    return np.asarray(frequencies(key, dim, rows, jnp.result_type(float)), float)


def features_on_host(
    key: Array, X: Array, rows: int, kernel: Any = GAUSSIAN
) -> np.ndarray:
    """Return `fourier_features` in float64."""
    return np.asarray(fourier_features(key, X, rows, kernel), float)


def fourier_features(key: Array, X: Array, rows: int, kernel: Any = GAUSSIAN) -> Array:
    """Return the features (n, 2 rows) of points (n, d) by the library's map."""
    phi = features.paired_fourier(
        key, kernel, X.shape[1], num_frequencies=rows, dtype=X.dtype
    )
    return phi(X)


def _versine(phases: Array) -> Array:
    """Return 1 - cos(phase), half of the squared distance of two features of one frequency."""
    return 2 * jnp.sin(phases / 2) ** 2


def _mean(squared: Array) -> Array:
    """Return the mean of 1 - cos(<w, x - y>), half of D^2, for squared distances |x - y|^2."""
    return -jnp.expm1(-squared / 2)


def _ratio(phases: Array, squared: Array) -> Array:
    """Return Dhat^2 / D^2 for phases <w, x - y> (t, ...) and squared distances (...), 1 where x = y."""
    true = jnp.where(squared > 0, _mean(squared), 1)
    images = jnp.mean(_versine(phases), axis=0)
    return jnp.where(squared > 0, images / true, 1)


def _over_ball(w: Array, population: Arrays) -> Array:
    """Return the phases (t, directions, radii) of the differences within a ball."""
    along = matmul(w, population["directions"].T)
    return along[:, :, None] * population["radii"][None, None, :]


def inner_product(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int
) -> Array:
    """<phi(x), phi(y)> by the library, in the mean over x, where y is the last point."""
    Z = fourier_features(key, population["pair"], rows, population["kernel"])
    return jnp.vdot(jnp.mean(Z[:-1], axis=0), Z[-1], precision=HIGHEST)


def squared_ratio(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int
) -> Array:
    """|phi(x) - phi(y)|^2 / D^2 by the library."""
    x, y = fourier_features(key, population["pair"], rows)
    return jnp.sum((x - y) ** 2) / (2 * _mean(numbers["distance"] ** 2))


def distance_to_the_limit(
    key: Array,
    population: Arrays,
    numbers: Numbers,
    *,
    rows: int,
    maps: int,
    limit: int = 1,
) -> Array:
    """|Dhat^2 / D^2 - (1 / t) sum w^2| for one pair at distance r, in the mean over maps; or less 1, with `limit=0`."""
    r = numbers["r"]
    w = frequencies(key, 1, rows * maps, r.dtype).reshape(rows, maps)
    limits = jnp.mean(w**2, axis=0) if limit else 1
    return jnp.mean(jnp.abs(_ratio(w * r, r**2) - limits))


def largest_error(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int
) -> Array:
    """max |Dhat / D - 1| over the pairs whose differences (N, d) the population holds."""
    differences = population["differences"]
    w = frequencies(key, differences.shape[1], rows, differences.dtype)
    ratios = _ratio(matmul(w, differences.T), population["squared"])
    return jnp.max(jnp.abs(jnp.sqrt(ratios) - 1))


@sample("part of the points")
def largest_error_of_part(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int, part: int
) -> Array:
    """The same with a part of the frequencies."""
    return largest_error(key, population, numbers, rows=rows // part)


def projection_error(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int, part: int = 1
) -> Array:
    """max |(|R u| / sqrt(m)) - 1| over unit vectors u (N, n), for a Gaussian R of m = rows / part rows."""
    units = population["units"]
    R = random.normal(key, (rows // part, units.shape[1]), units.dtype)
    lengths = jnp.sqrt(jnp.mean(matmul(R, units.T) ** 2, axis=0))
    return jnp.max(jnp.abs(lengths - 1))


def accuracy(key: Array, population: Arrays, numbers: Numbers, *, rows: int) -> Array:
    """One over that error: it is at most 1 / eps where some pair fails."""
    return 1 / projection_error(key, population, numbers, rows=rows)


def kernel_error(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int, part: int = 1
) -> Array:
    """max |Khat - K| over the pairs whose differences (N, d) the population holds."""
    differences = population["differences"]
    w = frequencies(key, differences.shape[1], rows // part, differences.dtype)
    # K and Khat are both 1 less a multiple of Dhat^2 / D^2 and D^2.
    images = jnp.mean(_versine(matmul(w, differences.T)), axis=0)
    return jnp.max(jnp.abs(images - _mean(population["squared"])))


def kernel_error_over_ball(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int
) -> Array:
    """max |Khat - K| over a grid of differences, at most that of the ball."""
    radii = population["radii"]
    w = frequencies(key, population["directions"].shape[1], rows, radii.dtype)
    images = jnp.mean(_versine(_over_ball(w, population)), axis=0)
    return jnp.max(jnp.abs(images - _mean(radii**2)[None]))


def minimum_error(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int
) -> Array:
    """max over x of |min_y Dhat / min_y D - 1| for differences x - y (number of x, number of y, d)."""
    differences = population["differences"]
    w = frequencies(key, differences.shape[2], rows, differences.dtype)
    phases = matmul(differences.reshape(-1, differences.shape[2]), w.T)
    images = jnp.mean(_versine(phases), axis=1).reshape(differences.shape[:2])
    nearest = _mean(population["squared"].min(axis=1))
    return jnp.max(jnp.abs(jnp.sqrt(images.min(axis=1) / nearest) - 1))


def largest_along(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int
) -> Array:
    """max |Dhat^2 / D^2 - 1| over scales lambda in (0, 1] of one difference of length r, and over lambda to 0."""
    r = numbers["distance"]
    w = frequencies(key, 1, rows, r.dtype)
    sizes = population["scales"] * r
    ratios = _ratio(matmul(w, sizes[None]), sizes**2)
    return jnp.maximum(jnp.max(jnp.abs(ratios - 1)), jnp.abs(jnp.mean(w**2) - 1))


@sample("tail ratio")
def tail_ratio(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int, components: int
) -> Array:
    """|Rhat_k / R_k - 1| of k + 1 points of a line that shrinks to a point, in the limit, k = `components`.

    It is the product of the recurrence coefficients of the orthogonal polynomials of the measure that puts 1 / (2 t)
    on every w and -w, over k!, the same product for the normal law.
    """
    w = frequencies(key, 1, rows, jnp.result_type(float))[:, 0]
    before = jnp.zeros_like(w)
    polynomial = jnp.ones_like(w)
    last = jnp.ones((), w.dtype)
    ratio = jnp.ones((), w.dtype)
    coefficient = jnp.zeros((), w.dtype)
    for j in range(1, components + 1):
        following = w * polynomial - coefficient * before
        before = polynomial
        polynomial = following
        energy = jnp.mean(polynomial**2)
        coefficient = energy / last
        last = energy
        ratio = ratio * coefficient / j
    return jnp.abs(ratio - 1)


def largest_inverse_error(
    key: Array, population: Arrays, numbers: Numbers, *, most: int, maps: int
) -> Array:
    """max |D / Dhat - 1| over pairs, from the first t of `most` frequencies, in the mean over maps."""
    differences = population["differences"]
    w = frequencies(key, differences.shape[1], most * maps, differences.dtype)
    copies = _versine(matmul(w, differences.T)).reshape(most, maps, -1)
    used = jnp.arange(most, dtype=differences.dtype) < numbers["t"]
    total = jnp.sum(jnp.where(used[:, None, None], copies, 0), axis=0)
    true = _mean(population["squared"])[None]
    errors = jnp.abs(jnp.sqrt(true / (total / numbers["t"])) - 1)
    return jnp.mean(jnp.max(errors, axis=1))


def lipschitz(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int, dim: int
) -> Array:
    """2 c |A| with A = sum w w' / t: the Lipschitz constant of Dhat^2 over |Delta| <= c, in the limit of small c."""
    w = frequencies(key, dim, rows, numbers["radius"].dtype)
    return 2 * numbers["radius"] * eigvalsh(matmul(w.T, w) / rows)[0]


def error_over_ball(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int
) -> Array:
    """max |Dhat / D - 1| over a grid of differences and over all that shrink to zero, at most that of the ball."""
    w = frequencies(key, population["directions"].shape[1], rows, numbers["eps"].dtype)
    phases = _over_ball(w, population)
    squared = jnp.broadcast_to(population["radii"][None] ** 2, phases.shape[1:])
    errors = jnp.abs(jnp.sqrt(_ratio(phases, squared)) - 1)
    # For small differences the ratio is a quadratic form of A, whose extremes are the eigenvalues of A.
    values = jnp.maximum(eigvalsh(matmul(w.T, w) / w.shape[0]), 0)
    vanishing = jnp.abs(jnp.sqrt(values) - 1)
    return jnp.maximum(jnp.max(errors), jnp.max(vanishing))
