"""ghashami2016: one trial each of the errors that its statements bound, and means that are known exactly."""

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from jaxkern import features, kernels, landmarks
from jaxkern.linalg import eigh, eigvalsh, matmul
from proofs_check.claim import sample


def draw(key: jax.Array, population: Mapping[str, Any], size: int, paired: int) -> Any:
    """Return the library's map: `size` pairs of a cosine and a sine, or `size` shifted cosines."""
    points = population["points"]
    make = features.paired_fourier if paired else features.shifted_fourier
    return make(
        key,
        population["kernel"],
        points.shape[1],
        num_frequencies=size,
        dtype=points.dtype,
    )


def _difference(
    key: jax.Array, population: Mapping[str, Any], numbers: Any, size: int, paired: int
) -> jax.Array:
    """(G - scale Z Z') / n."""
    Z = draw(key, population, size, paired)(population["points"])
    return (population["gram"] - numbers["scale"] * matmul(Z, Z.T)) / Z.shape[0]


def _norm(E: jax.Array) -> jax.Array:
    return jnp.max(jnp.abs(eigvalsh((E + E.T) / 2)))


def spectral_error(
    key: jax.Array, population: Any, numbers: Any, *, size: int, paired: int
) -> jax.Array:
    """|G - Ghat|_2 / n."""
    return _norm(_difference(key, population, numbers, size, paired))


def frobenius_error(
    key: jax.Array, population: Any, numbers: Any, *, size: int, paired: int
) -> jax.Array:
    """|G - Ghat|_F / n."""
    return jnp.linalg.norm(_difference(key, population, numbers, size, paired))


def frobenius_square(
    key: jax.Array, population: Any, numbers: Any, *, size: int, paired: int
) -> jax.Array:
    """|G - Ghat|_F^2 / n^2."""
    return jnp.sum(_difference(key, population, numbers, size, paired) ** 2)


def form_error(
    key: jax.Array, population: Any, numbers: Any, *, size: int, paired: int
) -> jax.Array:
    """|x'(G - Ghat) x| / n for x = (1, ..., 1) / sqrt(n)."""
    E = _difference(key, population, numbers, size, paired)
    return jnp.abs(jnp.sum(E)) / E.shape[0]


def stream_error(
    key: jax.Array,
    population: Any,
    numbers: Any,
    *,
    size: int,
    paired: int,
    rows: int,
    shrink_at: int,
) -> jax.Array:
    """|G - Z W W'Z'|_2 / n for streaming kernel PCA of the first `numbers["seen"]` points, by the library."""
    Y = _streamed(key, population, numbers, size, paired, rows, shrink_at)
    return _norm((population["gram"] - matmul(Y, Y.T)) / Y.shape[0])


def _streamed(
    key: jax.Array,
    population: Any,
    numbers: Any,
    size: int,
    paired: int,
    rows: int,
    shrink_at: int,
) -> jax.Array:
    """Z W for streaming kernel PCA of the first `numbers["seen"]` points, by the library."""
    points = population["points"]
    phi = draw(key, population, size, paired)
    pca = features.streaming_pca(phi, sketch_size=rows, shrink_at=shrink_at)
    weights = (
        jnp.arange(points.shape[0], dtype=points.dtype) < numbers["seen"]
    ).astype(points.dtype)
    return pca.finalize(pca.update(pca.init(), points, weights), num_components=rows)(
        points
    )


@sample("excess")
def stream_excess(
    key: jax.Array, population: Any, numbers: Any, *, rows: int, **shapes: int
) -> jax.Array:
    """The same without 2 / l, what a sketch of l = `rows` rows of norm 1 may lose."""
    return stream_error(key, population, numbers, rows=rows, **shapes) - 2 / rows


def stream_rank_excess(
    key: jax.Array,
    population: Any,
    numbers: Any,
    *,
    size: int,
    rows: int,
    shrink_at: int,
    rank: int,
) -> jax.Array:
    """(|G - Gtilde_k|_F - |G - G_k|_F) / n, k = `rank`, for the library's stream of shifted features."""
    Y = _streamed(key, population, numbers, size, 0, rows, shrink_at)
    values, vectors = eigh(matmul(Y, Y.T))
    leading = vectors[:, :rank]
    E = population["gram"] - matmul(leading * values[None, :rank], leading.T)
    return (jnp.linalg.norm(E) - population["tail"]) / Y.shape[0]


def nystrom_error(
    key: jax.Array, population: Any, numbers: Any, *, size: int
) -> jax.Array:
    """|G - Gbar|_2 / n from `size` uniform landmarks or, where `numbers["first"]` is 1, from the first points."""
    points = population["points"]
    uniform = landmarks.uniform(key, points, num_landmarks=size)
    chosen = jnp.where(numbers["first"] > 0, points[:size], uniform)
    Y = features.nystrom(population["kernel"], chosen)(points)
    return _norm((population["gram"] - matmul(Y, Y.T)) / points.shape[0])


def _sample(
    key: jax.Array,
    population: Any,
    numbers: Any,
    size: int,
    rank: int,
    *,
    replace: bool,
) -> jax.Array:
    """G - C W_k^+ C', k = `rank`, for `size` landmarks from the first `numbers["from"]` points.

    With `replace` they are independent and uniform; without, they are different ones.
    """
    G = population["gram"]
    n, uniform = (
        G.shape[0],
        jax.random.uniform(key, (size if replace else G.shape[0],), G.dtype),
    )
    if replace:
        chosen = jnp.minimum((uniform * numbers["from"]).astype(jnp.int32), n - 1)
    else:
        chosen = jnp.argsort(
            uniform + (jnp.arange(n, dtype=G.dtype) >= numbers["from"])
        )[:size]
    C = G[:, chosen]
    values, vectors = eigh(C[chosen])
    values, vectors = values[:rank], vectors[:, :rank]
    some = values > size * jnp.finfo(G.dtype).eps * values[0]
    Y = (
        matmul(C, vectors)
        * jnp.where(some, 1 / jnp.sqrt(jnp.where(some, values, 1)), 0)[None]
    )
    return G - matmul(Y, Y.T)


def nystrom_excess(
    key: jax.Array,
    population: Any,
    numbers: Any,
    *,
    size: int,
    rank: int,
    spectral: int,
) -> jax.Array:
    """(|G - C W_k^+ C'| - |G - G_k|) / n in the spectral or the Frobenius norm, landmarks with replacement."""
    E = _sample(key, population, numbers, size, rank, replace=True)
    norm = _norm(E) if spectral else jnp.linalg.norm(E)
    return numbers["scale"] * (norm - population["tail"]) / E.shape[0]


def nystrom_ratio(
    key: jax.Array, population: Any, numbers: Any, *, size: int, rank: int
) -> jax.Array:
    """|G - C W_k^+ C'|_2 / |G - G_k|_2, landmarks without replacement; `rank` cuts the first G alone."""
    return (
        _norm(_sample(key, population, numbers, size, rank, replace=False))
        / population["tail"]
    )


def entry_error(
    key: jax.Array, population: Any, numbers: Any, *, size: int, paired: int
) -> jax.Array:
    """The largest |z(x)'z(y) - K(x, y)| over all pairs of points."""
    E = _difference(key, population, numbers, size, paired)
    return jnp.max(jnp.abs(E)) * E.shape[0]


def inner_product(
    key: jax.Array, population: Any, numbers: Any, *, size: int
) -> jax.Array:
    """z(x)'z(y) for two points and shifted features."""
    z = draw(key, population, size, 0)(population["points"])
    return numbers["scale"] * jnp.sum(z[0] * z[1])


def copies_error(
    key: jax.Array, population: Any, numbers: Any, *, most: int
) -> jax.Array:
    """|G - Ghat|_2 / n for copies of a point and the first `numbers["m"]` of `most` shifted features."""
    del population
    dtype = jnp.result_type(float)
    phi = features.shifted_fourier(
        key, kernels.Gaussian(1.0), 1, num_frequencies=most, dtype=dtype
    )
    squares = phi(jnp.zeros((1, 1), dtype))[0] ** 2
    first = jnp.arange(most, dtype=dtype) < numbers["m"]
    return jnp.abs(1 - most / numbers["m"] * jnp.sum(jnp.where(first, squares, 0)))


def reservoir_updates(
    key: jax.Array, population: Any, numbers: Any, *, size: int, length: int
) -> jax.Array:
    """The number of rows of a stream that enter a reservoir of `size` rows, one row at a time, by the library."""
    del population, numbers
    dtype = jnp.result_type(float)
    init, update, _ = landmarks.reservoir(num_landmarks=size)

    def step(
        state: landmarks.Reservoir, row: jax.Array
    ) -> tuple[landmarks.Reservoir, jax.Array]:
        after = update(state, row[None, None])
        return after, jnp.any(after.points[:, 0] != state.points[:, 0])

    # Rows with different numbers, none of them 0, so that every change of the sample shows.
    return jnp.sum(
        jax.lax.scan(step, init(key, 1, dtype), 1 + jnp.arange(length, dtype=dtype))[1],
        dtype=dtype,
    )


def copies_tail(m: float, eps: float) -> float:
    """Return P(|mean of m independent cos U| > eps), U uniform: |G - Ghat|_2 > eps n for copies of a point.

    The characteristic function of cos U is the Bessel function J_0, so
    P(|sum| > x) = 1 - (2 / pi) int_0^infinity sin(t x) J_0(t)^m / t dt.
    """
    s = np.linspace(0, 40 / math.sqrt(m), 40_001)[
        1:
    ]  # J_0(s)^m is about exp(-m s^2 / 4): below 1e-170 at the end
    values = np.concatenate([[m * eps], np.sin(s * m * eps) * special.j0(s) ** m / s])
    return 1 - 2 / math.pi * float(np.trapezoid(values, dx=float(s[0])))


def landmark_loss(G: np.ndarray, chosen: Iterable[int]) -> float:
    """Return |G - C W^+ C'|_F^2 for these landmarks."""
    index = list(chosen)
    C = G[:, index]
    return float(
        np.sum(
            (G - C @ np.linalg.pinv(C[index], rcond=1e-12, hermitian=True) @ C.T) ** 2
        )
    )


def nystrom_mean_squares(G: np.ndarray) -> list[float]:
    """Return E |G - C W^+ C'|_F^2 for 1, 2, ..., n landmarks drawn with replacement, as sums over sets of landmarks.

    Copies of a landmark change nothing; the sequences of c landmarks that hold exactly s given ones are those onto
    them, sum_j (-1)^j binom(s, j) (s - j)^c.
    """
    n = len(G)
    sets = [
        sum(landmark_loss(G, chosen) for chosen in itertools.combinations(range(n), s))
        for s in range(n + 1)
    ]

    def onto(c: int, s: int) -> int:
        return sum((-1) ** j * math.comb(s, j) * (s - j) ** c for j in range(s + 1))

    return [
        sum(onto(c, s) * sets[s] for s in range(1, c + 1)) / n**c
        for c in range(1, n + 1)
    ]


def features_mean_square(G: np.ndarray, doubled: np.ndarray, m: int) -> float:
    """Return E |G - Ghat|_F^2 for m shifted features; `doubled` has the kernel at twice the differences."""
    return (len(G) ** 2 + float(np.sum(doubled)) / 2 - float(np.sum(G**2))) / m
