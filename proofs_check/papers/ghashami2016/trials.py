"""ghashami2016: one trial each of the errors that its statements bound, and means that are known exactly."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy import special

from jaxkern import features, kernels, landmarks
from jaxkern.linalg import eigh, eigvalsh, matmul
from proofs_check.claim import sample


def draw(key: Array, population: Mapping[str, Any], size: int, paired: int) -> Any:
    """Return the library's map: `size` pairs of a cosine and a sine, or `size` shifted cosines."""
    points = population["points"]
    make = features.paired_fourier if paired else features.shifted_fourier
    options = {"num_frequencies": size, "dtype": points.dtype}
    return make(key, population["kernel"], points.shape[1], **options)


def _norm(E: Array) -> Array:
    return jnp.max(jnp.abs(eigvalsh((E + E.T) / 2)))


def _difference(population: Any, Y: Array, scale: Any = 1) -> Array:
    """(G - scale Y Y') / n."""
    return (population["gram"] - scale * matmul(Y, Y.T)) / len(Y)


def _gram_error(
    statistic: Callable[[Array], Array],
    key: Array,
    population: Any,
    numbers: Any,
    **shapes: int,
) -> Array:
    """Return a statistic of (G - scale Z Z') / n."""
    Z = draw(key, population, **shapes)(population["points"])
    return statistic(_difference(population, Z, numbers["scale"]))


spectral_error = partial(_gram_error, _norm)
"""|G - Ghat|_2 / n."""
frobenius_error = partial(_gram_error, jnp.linalg.norm)
"""|G - Ghat|_F / n."""
frobenius_square = partial(_gram_error, lambda E: jnp.sum(E**2))
"""|G - Ghat|_F^2 / n^2."""
form_error = partial(_gram_error, lambda E: jnp.abs(jnp.sum(E)) / len(E))
"""|x'(G - Ghat) x| / n for x = (1, ..., 1) / sqrt(n)."""
entry_error = partial(_gram_error, lambda E: jnp.max(jnp.abs(E)) * len(E))
"""The largest |z(x)'z(y) - K(x, y)| over all pairs of points."""


def weighted_form_error(
    key: Array, population: Any, numbers: Any, **shapes: int
) -> Array:
    """|x'(G - Ghat) x| / n for the weights x."""
    x = population["weights"]
    E = _gram_error(jnp.asarray, key, population, numbers, **shapes)
    return jnp.abs(jnp.sum(x[:, None] * x[None, :] * E))


def inner_product(key: Array, population: Any, numbers: Any, *, size: int) -> Array:
    """z(x)'z(y) for two points and shifted features."""
    z = draw(key, population, size, 0)(population["points"])
    return numbers["scale"] * jnp.sum(z[0] * z[1])


def _streamed(
    key: Array,
    population: Any,
    numbers: Any,
    *,
    rows: int,
    shrink_at: int,
    **shapes: int,
) -> Array:
    """Z W for streaming kernel PCA of the first `numbers["seen"]` points, by the library."""
    points = population["points"]
    phi = draw(key, population, **shapes)
    pca = features.streaming_pca(phi, sketch_size=rows, shrink_at=shrink_at)
    order = jnp.arange(len(points), dtype=points.dtype)
    weights = (order < numbers["seen"]).astype(points.dtype)
    state = pca.update(pca.init(), points, weights)
    return pca.finalize(state, num_components=rows)(points)


def stream_error(key: Array, population: Any, numbers: Any, **shapes: int) -> Array:
    """|G - Z W W'Z'|_2 / n for streaming kernel PCA of the first `numbers["seen"]` points, by the library."""
    Y = _streamed(key, population, numbers, **shapes)
    return _norm(_difference(population, Y))


@sample("excess")
def stream_excess(key: Array, population: Any, numbers: Any, **shapes: int) -> Array:
    """The same without 2 / l, what a sketch of l = `rows` rows of norm 1 may lose."""
    return stream_error(key, population, numbers, **shapes) - 2 / shapes["rows"]


def stream_rank_excess(
    key: Array, population: Any, numbers: Any, *, rank: int, **shapes: int
) -> Array:
    """(|G - Gtilde_k|_F - |G - G_k|_F) / n, k = `rank`, for the library's stream of shifted features."""
    Y = _streamed(key, population, numbers, paired=0, **shapes)
    values, vectors = eigh(matmul(Y, Y.T))
    leading = vectors[:, :rank]
    E = population["gram"] - matmul(leading * values[None, :rank], leading.T)
    return (jnp.linalg.norm(E) - population["tail"]) / len(Y)


def nystrom_error(key: Array, population: Any, numbers: Any, *, size: int) -> Array:
    """|G - Gbar|_2 / n from `size` uniform landmarks or, where `numbers["first"]` is 1, from the first points."""
    points = population["points"]
    uniform = landmarks.uniform(key, points, num_landmarks=size)
    chosen = jnp.where(numbers["first"] > 0, points[:size], uniform)
    Y = features.nystrom(population["kernel"], chosen)(points)
    return _norm(_difference(population, Y))


def with_replacement(key: Array, G: Array, first: Any, size: int) -> Array:
    """Return `size` independent landmarks from the first points, as indices."""
    uniform = jax.random.uniform(key, (size,), G.dtype)
    return jnp.minimum((uniform * first).astype(jnp.int32), len(G) - 1)


def without_replacement(key: Array, G: Array, first: Any, size: int) -> Array:
    """Return `size` different landmarks from the first points, as indices."""
    uniform = jax.random.uniform(key, (len(G),), G.dtype)
    return jnp.argsort(uniform + (jnp.arange(len(G), dtype=G.dtype) >= first))[:size]


def nystrom_difference(G: Array, chosen: Array, rank: int) -> Array:
    """G - C W_k^+ C', k = `rank`, for these landmarks."""
    C = G[:, chosen]
    values, vectors = eigh(C[chosen])
    leading = values[:rank]
    positive = leading > len(chosen) * jnp.finfo(G.dtype).eps * values[0]
    roots = jnp.where(positive, 1 / jnp.sqrt(jnp.where(positive, leading, 1)), 0)
    Y = matmul(C, vectors[:, :rank]) * roots[None]
    return G - matmul(Y, Y.T)


def nystrom_excess(
    key: Array,
    population: Any,
    numbers: Any,
    *,
    size: int,
    rank: int,
    spectral: int,
) -> Array:
    """(|G - C W_k^+ C'| - |G - G_k|) / n in the spectral or the Frobenius norm, landmarks with replacement."""
    G = population["gram"]
    E = nystrom_difference(G, with_replacement(key, G, numbers["from"], size), rank)
    norm = _norm(E) if spectral else jnp.linalg.norm(E)
    return numbers["scale"] * (norm - population["tail"]) / len(G)


def nystrom_ratio(
    key: Array, population: Any, numbers: Any, *, size: int, rank: int
) -> Array:
    """|G - C W_k^+ C'|_2 / |G - G_k|_2, landmarks without replacement; `rank` cuts the first G alone."""
    G = population["gram"]
    chosen = without_replacement(key, G, numbers["from"], size)
    return _norm(nystrom_difference(G, chosen, rank)) / population["tail"]


def squares_at_origin(key: Array, size: int) -> Array:
    """The squares of `size` shifted features of a point."""
    points = jnp.zeros((1, 1), jnp.result_type(float))
    origin = {"kernel": kernels.Gaussian(1.0), "points": points}
    return draw(key, origin, size, 0)(points)[0] ** 2


def copies_error(key: Array, population: Any, numbers: Any, *, most: int) -> Array:
    """|G - Ghat|_2 / n for copies of a point and the first `numbers["m"]` of `most` shifted features."""
    squares = squares_at_origin(key, most)
    first = jnp.arange(most, dtype=squares.dtype) < numbers["m"]
    return jnp.abs(1 - most / numbers["m"] * jnp.sum(jnp.where(first, squares, 0)))


def reservoir_updates(
    key: Array, population: Any, numbers: Any, *, size: int, length: int
) -> Array:
    """The number of rows of a stream that enter a reservoir of `size` rows, one row at a time, by the library."""
    dtype = jnp.result_type(float)
    init, update, _ = landmarks.reservoir(num_landmarks=size)

    def step(
        state: landmarks.Reservoir, row: Array
    ) -> tuple[landmarks.Reservoir, Array]:
        after = update(state, row[None, None])
        return after, jnp.any(after.points[:, 0] != state.points[:, 0])

    # Rows with different numbers, none of them 0, so that every change of the sample shows.
    rows = 1 + jnp.arange(length, dtype=dtype)
    _, entered = jax.lax.scan(step, init(key, 1, dtype), rows)
    return jnp.sum(entered, dtype=dtype)


def copies_tail(m: float, eps: float) -> float:
    """Return P(|mean of m independent cos U| > eps), U uniform: |G - Ghat|_2 > eps n for copies of a point.

    The characteristic function of cos U is the Bessel function J_0, so
    P(|sum| > x) = 1 - (2 / pi) int_0^infinity sin(t x) J_0(t)^m / t dt.
    """
    # J_0(s)^m is about exp(-m s^2 / 4): below 1e-170 at the end.
    s = np.linspace(0, 40 / math.sqrt(m), 40_001)[1:]
    values = np.sin(s * m * eps) * special.j0(s) ** m / s
    integral = np.trapezoid(np.append(m * eps, values), dx=s[0])
    return 1 - 2 / math.pi * float(integral)


def landmark_loss(G: np.ndarray, chosen: Iterable[int]) -> float:
    """Return |G - C W^+ C'|_F^2 for these landmarks."""
    index = [*chosen]
    C = G[:, index]
    inverse = np.linalg.pinv(C[index], rcond=1e-12, hermitian=True)
    return float(np.sum((G - C @ inverse @ C.T) ** 2))


def _onto(c: int, s: int) -> int:
    """Return how many sequences of c landmarks have exactly s given ones."""
    return sum((-1) ** j * math.comb(s, j) * (s - j) ** c for j in range(s + 1))


def nystrom_mean_squares(G: np.ndarray) -> list[float]:
    """Return E |G - C W^+ C'|_F^2 for 1, 2, ..., n landmarks drawn with replacement, as sums over sets of landmarks.

    Copies of a landmark change nothing.
    """
    n = len(G)
    of_size = [
        sum(landmark_loss(G, chosen) for chosen in itertools.combinations(range(n), s))
        for s in range(n + 1)
    ]
    return [
        sum(_onto(c, s) * of_size[s] for s in range(1, c + 1)) / n**c
        for c in range(1, n + 1)
    ]


def features_mean_square(G: np.ndarray, doubled: np.ndarray, m: int) -> float:
    """Return E |G - Ghat|_F^2 for m shifted features; `doubled` has the kernel at twice the differences."""
    return (len(G) ** 2 + float(np.sum(doubled)) / 2 - float(np.sum(G**2))) / m
