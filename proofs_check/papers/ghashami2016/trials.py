"""What the claims of ghashami2016 are tried on, the errors that their trials return, and its Algorithm 1 literally."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from scipy import linalg, special

from jaxkern import features, kernels, landmarks
from jaxkern.gram import gram
from jaxkern.linalg import eigh, eigvalsh, matmul
from proofs_check.claim import Setting
from proofs_check.papers.populations import Population

MOST_POINTS = 128

# ------------------------------------------------------------------------------------------------------------- points


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points, in the order in which a stream brings them, and a kernel with K(x, x) = 1 of a known spectral law."""

    name: str
    kernel: Any
    points: np.ndarray

    @property
    def num_points(self) -> int:
        """n."""
        return len(self.points)

    @functools.cached_property
    def population(self) -> dict[str, Any]:
        """What trials need: the kernel, the points (n, d) and their Gram matrix (n, n), in the default dtype."""
        points = jnp.asarray(self.points, jax.dtypes.canonicalize_dtype(float))
        return {"kernel": self.kernel, "points": points, "gram": gram(self.kernel, points)}

    def setting(self, label: str, numbers: Mapping[str, float], shapes: Mapping[str, int]) -> Setting:
        """Return a setting on these points; its numbers have their number, n."""
        name = f"{self.name}, n={self.num_points}, {label}"
        return Setting(name, self.population, {"n": float(self.num_points), **numbers}, shapes)


def clusters(first: int, second: int) -> Cloud:
    """Return a cluster of points in the plane and, after it, one that is far away."""
    rng = np.random.default_rng(11)
    centres = np.repeat([[0.0, 0.0], [20.0, 20.0]], [first, second], axis=0)
    return Cloud(
        f"clusters of {first} and {second}", kernels.Gaussian(1.0), centres + 0.1 * rng.standard_normal(centres.shape)
    )


def clouds(data: Population | None, num_points: int = 32) -> tuple[Cloud, ...]:
    """Return copies of a point, two clusters and skewed points in the plane, or the user's own rows."""
    if data is not None:
        return (own(data),)
    plane = np.random.default_rng(12).standard_normal((num_points, 2)) * [2.0, 0.5] + [100.0, -40.0]
    return (
        Cloud("copies of a point", kernels.Gaussian(1.0), np.zeros((num_points, 2))),
        clusters(num_points * 5 // 8, num_points - num_points * 5 // 8),
        Cloud("skewed plane", kernels.Gaussian(1.0), plane),
    )


def grid_then_cluster(first: int, second: int) -> Cloud:
    """Return points of a grid, whose features are far from dependent, and copies of a point far away after them."""
    side = math.isqrt(first - 1) + 1
    grid = 2.0 * np.stack(np.divmod(np.arange(first), side), axis=1)
    return Cloud("grid, then a point", kernels.Gaussian(1.0), np.concatenate([grid, np.full((second, 2), 50.0)]))


def own(data: Population) -> Cloud:
    """Return the user's rows in their order, or 128 of them at equal distances."""
    rows = np.linspace(0, len(data.points) - 1, min(len(data.points), MOST_POINTS)).astype(int)
    return Cloud(data.name, data.kernel, data.points[rows])


# ---------------------------------------------------------------------------------------------- errors of feature maps


def draw(key: jax.Array, population: Mapping[str, Any], size: int, paired: int) -> Any:
    """Return the library's map: `size` pairs of a cosine and a sine, or `size` shifted cosines."""
    points = population["points"]
    make = features.paired_fourier if paired else features.shifted_fourier
    return make(key, population["kernel"], points.shape[1], num_frequencies=size, dtype=points.dtype)


def _difference(key: jax.Array, population: Mapping[str, Any], numbers: Any, size: int, paired: int) -> jax.Array:
    """(G - scale Z Z') / n."""
    Z = draw(key, population, size, paired)(population["points"])
    return (population["gram"] - numbers["scale"] * matmul(Z, Z.T)) / Z.shape[0]


def _norm(E: jax.Array) -> jax.Array:
    return jnp.max(jnp.abs(eigvalsh((E + E.T) / 2)))


def spectral_error(key: jax.Array, population: Any, numbers: Any, *, size: int, paired: int) -> jax.Array:
    """|G - Ghat|_2 / n."""
    return _norm(_difference(key, population, numbers, size, paired))


def frobenius_error(key: jax.Array, population: Any, numbers: Any, *, size: int, paired: int) -> jax.Array:
    """|G - Ghat|_F / n."""
    return jnp.linalg.norm(_difference(key, population, numbers, size, paired))


def frobenius_square(key: jax.Array, population: Any, numbers: Any, *, size: int, paired: int) -> jax.Array:
    """|G - Ghat|_F^2 / n^2."""
    return jnp.sum(_difference(key, population, numbers, size, paired) ** 2)


def form_error(key: jax.Array, population: Any, numbers: Any, *, size: int, paired: int) -> jax.Array:
    """|x'(G - Ghat) x| / n for x = (1, ..., 1) / sqrt(n)."""
    E = _difference(key, population, numbers, size, paired)
    return jnp.abs(jnp.sum(E)) / E.shape[0]


# --------------------------------------------------------------------------------------- errors of streams and samples


def stream_error(
    key: jax.Array, population: Any, numbers: Any, *, size: int, paired: int, rows: int, shrink_at: int
) -> jax.Array:
    """|G - Z W W'Z'|_2 / n for streaming kernel PCA of the first `numbers["kept"]` points, by the library."""
    Y = _streamed(key, population, numbers, size, paired, rows, shrink_at)
    return _norm((population["gram"] - matmul(Y, Y.T)) / Y.shape[0])


def _streamed(
    key: jax.Array, population: Any, numbers: Any, size: int, paired: int, rows: int, shrink_at: int
) -> jax.Array:
    """Z W for streaming kernel PCA of the first `numbers["kept"]` points, by the library."""
    points = population["points"]
    phi = draw(key, population, size, paired)
    pca = features.streaming_pca(phi, sketch_size=rows, shrink_at=shrink_at)
    seen = (jnp.arange(points.shape[0], dtype=points.dtype) < numbers["kept"]).astype(points.dtype)
    return pca.finalize(pca.update(pca.init(), points, seen), num_components=rows)(points)


def literal_stream_error(key: jax.Array, population: Any, numbers: Any, *, size: int, rows: int) -> jax.Array:
    """The same for Algorithm 1 to the letter, shifted features and at most 3 l / 2 points."""
    del numbers
    Y = _literally_streamed(key, population, size, rows)
    return _norm((population["gram"] - matmul(Y, Y.T)) / Y.shape[0])


def _literally_streamed(key: jax.Array, population: Any, size: int, rows: int) -> jax.Array:
    """Y with Gtilde = Y Y' for Algorithm 1 to the letter, shifted features and at most 3 l / 2 points.

    The buffer is full after l points, of which at most l / 2 - 1 rows are left, and is never full again: W spans the
    first l rows of Z, so Gtilde = C M^-1 C' with the first l columns C of Z Z' and the first l rows M of C.
    """
    Z = draw(key, population, size, 0)(population["points"])
    C = matmul(Z, Z[:rows].T)
    return solve_triangular(jnp.linalg.cholesky(C[:rows]), C.T, lower=True).T


def stream_rank_excess(
    key: jax.Array, population: Any, numbers: Any, *, size: int, rows: int, shrink_at: int, rank: int
) -> jax.Array:
    """(|G - Gtilde_k|_F - |G - G_k|_F) / n, k = `rank`, for the library's stream or, `shrink_at` 0, to the letter."""
    if shrink_at:
        Y = _streamed(key, population, numbers, size, 0, rows, shrink_at)
    else:
        Y = _literally_streamed(key, population, size, rows)
    values, vectors = eigh(matmul(Y, Y.T))
    kept = vectors[:, :rank]
    E = population["gram"] - matmul(kept * values[None, :rank], kept.T)
    return (jnp.linalg.norm(E) - population["tail"]) / Y.shape[0]


def nystrom_error(key: jax.Array, population: Any, numbers: Any, *, size: int) -> jax.Array:
    """|G - Gbar|_2 / n from `size` uniform landmarks or, where `numbers["first"]` is 1, from the first points."""
    points = population["points"]
    uniform = landmarks.uniform(key, points, num_landmarks=size)
    chosen = jnp.where(numbers["first"] > 0, points[:size], uniform)
    Y = features.nystrom(population["kernel"], chosen)(points)
    return _norm((population["gram"] - matmul(Y, Y.T)) / points.shape[0])


def _sample(key: jax.Array, population: Any, numbers: Any, size: int, rank: int, *, replace: bool) -> jax.Array:
    """G - C W_k^+ C', k = `rank`, for `size` landmarks from the first `numbers["from"]` points.

    With `replace` they are independent and uniform; without, they are different ones.
    """
    G = population["gram"]
    n, uniform = G.shape[0], jax.random.uniform(key, (size if replace else G.shape[0],), G.dtype)
    if replace:
        chosen = jnp.minimum((uniform * numbers["from"]).astype(jnp.int32), n - 1)
    else:
        chosen = jnp.argsort(uniform + (jnp.arange(n, dtype=G.dtype) >= numbers["from"]))[:size]
    C = G[:, chosen]
    values, vectors = eigh(C[chosen])
    values, vectors = values[:rank], vectors[:, :rank]
    some = values > size * jnp.finfo(G.dtype).eps * values[0]
    Y = matmul(C, vectors) * jnp.where(some, 1 / jnp.sqrt(jnp.where(some, values, 1)), 0)[None]
    return G - matmul(Y, Y.T)


def nystrom_excess(key: jax.Array, population: Any, numbers: Any, *, size: int, rank: int, spectral: int) -> jax.Array:
    """(|G - C W_k^+ C'| - |G - G_k|) / n in the spectral or the Frobenius norm, landmarks with replacement."""
    E = _sample(key, population, numbers, size, rank, replace=True)
    norm = _norm(E) if spectral else jnp.linalg.norm(E)
    return numbers["scale"] * (norm - population["tail"]) / E.shape[0]


def nystrom_ratio(key: jax.Array, population: Any, numbers: Any, *, size: int, rank: int) -> jax.Array:
    """|G - C W_k^+ C'|_2 / |G - G_k|_2, landmarks without replacement; `rank` cuts the first G alone."""
    return _norm(_sample(key, population, numbers, size, rank, replace=False)) / population["tail"]


def entry_error(key: jax.Array, population: Any, numbers: Any, *, size: int, paired: int) -> jax.Array:
    """The largest |z(x)'z(y) - K(x, y)| over all pairs of points."""
    E = _difference(key, population, numbers, size, paired)
    return jnp.max(jnp.abs(E)) * E.shape[0]


def inner_product(key: jax.Array, population: Any, numbers: Any, *, size: int) -> jax.Array:
    """z(x)'z(y) for two points and shifted features."""
    z = draw(key, population, size, 0)(population["points"])
    return numbers["scale"] * jnp.sum(z[0] * z[1])


def copies_error(key: jax.Array, population: Any, numbers: Any, *, most: int) -> jax.Array:
    """|G - Ghat|_2 / n for copies of a point and the first `numbers["m"]` of `most` shifted features."""
    del population
    dtype = jnp.result_type(float)
    phi = features.shifted_fourier(key, kernels.Gaussian(1.0), 1, num_frequencies=most, dtype=dtype)
    squares = phi(jnp.zeros((1, 1), dtype))[0] ** 2
    first = jnp.arange(most, dtype=dtype) < numbers["m"]
    return jnp.abs(1 - most / numbers["m"] * jnp.sum(jnp.where(first, squares, 0)))


def reservoir_updates(key: jax.Array, population: Any, numbers: Any, *, size: int, length: int) -> jax.Array:
    """The number of rows of a stream that enter a reservoir of `size` rows, one row at a time, by the library."""
    del population, numbers
    dtype = jnp.result_type(float)
    init, update, _ = landmarks.reservoir(num_landmarks=size)

    def step(state: landmarks.Reservoir, row: jax.Array) -> tuple[landmarks.Reservoir, jax.Array]:
        after = update(state, row[None, None])
        return after, jnp.any(after.points[:, 0] != state.points[:, 0])

    # Rows with different numbers, none of them 0, so that every change of the sample shows.
    return jnp.sum(jax.lax.scan(step, init(key, 1, dtype), 1 + jnp.arange(length, dtype=dtype))[1], dtype=dtype)


# ------------------------------------------------------------------------------------------------------ exact numbers


def copies_tail(m: float, eps: float) -> float:
    """Return P(|mean of m independent cos U| > eps), U uniform: |G - Ghat|_2 > eps n for copies of a point.

    The characteristic function of cos U is the Bessel function J_0, so
    P(|sum| > x) = 1 - (2 / pi) int_0^infinity sin(t x) J_0(t)^m / t dt.
    """
    s = np.linspace(0, 40 / math.sqrt(m), 40_001)[1:]  # J_0(s)^m is about exp(-m s^2 / 4): below 1e-170 at the end
    values = np.concatenate([[m * eps], np.sin(s * m * eps) * special.j0(s) ** m / s])
    return 1 - 2 / math.pi * float(np.trapezoid(values, dx=float(s[0])))


def tails(cloud: Cloud, rank: int) -> tuple[float, float]:
    """Return |G - G_k|_2 and |G - G_k|_F."""
    values = np.linalg.eigvalsh(np.asarray(cloud.population["gram"], np.float64))[::-1][rank:]
    return float(np.max(np.abs(values))), float(np.linalg.norm(values))


def coherence(cloud: Cloud, rank: int) -> float:
    """Return n / k times the largest squared row of the k leading eigenvectors of G."""
    vectors = np.linalg.eigh(np.asarray(cloud.population["gram"], np.float64))[1][:, ::-1][:, :rank]
    return float(np.max(np.sum(vectors**2, axis=1))) * cloud.num_points / rank


def small_grams() -> tuple[Setting, ...]:
    """Return Gram matrices of 8 points, with those of the doubled differences, at three lengthscales."""
    rng = np.random.default_rng(21)
    clouds = {"line": np.arange(8.0)[:, None], "plane": rng.standard_normal((8, 2)) * [2.0, 0.5]}
    clouds["two clusters"] = np.repeat([[0.0], [20.0]], 4, axis=0) + 0.1 * rng.standard_normal((8, 1))
    settings = []
    for name, X in clouds.items():
        squares = np.sum((X[:, None] - X[None]) ** 2, axis=-1)
        for scale in (0.3, 1.0, 3.0):
            population = {"gram": np.exp(-squares / (2 * scale**2)), "doubled": np.exp(-2 * squares / scale**2)}
            settings.append(Setting(f"{name}, lengthscale {scale:g}", population))
    return tuple(settings)


def landmark_loss(G: np.ndarray, chosen: Iterable[int]) -> float:
    """Return |G - C W^+ C'|_F^2 for these landmarks."""
    index = list(chosen)
    C = G[:, index]
    return float(np.sum((G - C @ np.linalg.pinv(C[index], rcond=1e-12, hermitian=True) @ C.T) ** 2))


def nystrom_mean_squares(G: np.ndarray) -> list[float]:
    """Return E |G - C W^+ C'|_F^2 for 1, 2, ..., n landmarks drawn with replacement, as sums over sets of landmarks.

    Copies of a landmark change nothing; the sequences of c landmarks that hold exactly s given ones are those onto
    them, sum_j (-1)^j binom(s, j) (s - j)^c.
    """
    n = len(G)
    sets = [sum(landmark_loss(G, chosen) for chosen in itertools.combinations(range(n), s)) for s in range(n + 1)]

    def onto(c: int, s: int) -> int:
        return sum((-1) ** j * math.comb(s, j) * (s - j) ** c for j in range(s + 1))

    return [sum(onto(c, s) * sets[s] for s in range(1, c + 1)) / n**c for c in range(1, n + 1)]


def features_mean_square(G: np.ndarray, doubled: np.ndarray, m: int) -> float:
    """Return E |G - Ghat|_F^2 for m shifted features; `doubled` has the kernel at twice the differences."""
    return (len(G) ** 2 + float(np.sum(doubled)) / 2 - float(np.sum(G**2))) / m


# -------------------------------------------------------------------------------------------- Algorithm 1, literally


def algorithm_1(
    rows: np.ndarray, sketch_size: int, *, shrink_at: int | None = None, last: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return (B, W) of Algorithm 1 with l = `sketch_size` rows, one row at a time, in float64.

    B (l, m) is decomposed as soon as none of its rows is free, and the square of its singular value number `shrink_at`,
    by default l // 2, is subtracted. W (m, r) has the right singular vectors, with a positive singular value, of the
    last decomposition; `last` decomposes once more what came after it.
    """
    half = sketch_size // 2 if shrink_at is None else shrink_at
    B, filled, fresh = np.zeros((sketch_size, rows.shape[1])), 0, False
    W = np.zeros((rows.shape[1], 0))
    for row in np.asarray(rows, np.float64):
        B[filled], fresh = row, True
        filled += 1
        if filled == sketch_size:
            _, s, Vt = np.linalg.svd(B, full_matrices=False)
            W, fresh = Vt[s > 1e-9 * s[0]].T, False
            squares = np.maximum(s**2 - s[half - 1] ** 2, 0)
            squares[squares < 1e-12 * s[0] ** 2] = 0  # rounding must not keep a row
            B = np.zeros_like(B)
            B[: len(s)] = np.sqrt(squares)[:, None] * Vt
            filled = int(np.count_nonzero(squares))
    return B, row_space(B) if last and fresh else W


def row_space(B: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the span of the rows of B, as columns."""
    _, s, Vt = np.linalg.svd(B, full_matrices=False)
    return Vt[s > 1e-9 * max(s[0], 1e-300)].T


def lost(A: np.ndarray, W: np.ndarray) -> float:
    """|A A' - A W W'A'|_2, which is |A (I - W W')|_2^2."""
    return float(np.linalg.norm(A - A @ W @ W.T, 2) ** 2)


def lost_in_lemma_3_2(A: np.ndarray, B: np.ndarray) -> float:
    """The largest |y'A|^2 over unit vectors y with y'A B^+ B = 0."""
    W = row_space(B)
    N = linalg.null_space((A @ W).T, rcond=1e-9) if W.size else np.eye(len(A))
    return float(np.linalg.norm(N.T @ A, 2) ** 2) if N.size else 0.0


# ------------------------------------------------------------------------------------------------------------ streams


def feature_rows(key: jax.Array, cloud: Cloud, size: int) -> np.ndarray:
    """Return Z (n, size) of the library's shifted features, in float64."""
    phi = draw(key, cloud.population, size, 0)
    return np.asarray(phi(cloud.population["points"]), np.float64)


def pairs_of_rows(sketch_size: int) -> np.ndarray:
    """Return (96, 24) rows: batches of l / 2 orthonormal ones, each twice. Every shrink at l / 2 loses all it sees."""
    batch = np.repeat(np.eye(24)[: sketch_size // 2], 2, axis=0)
    return np.tile(batch, (96 // sketch_size, 1))


def low_rank(rank: int) -> np.ndarray:
    """Return (96, 24) rows of this rank."""
    rng = np.random.default_rng(3)
    return rng.standard_normal((96, rank)) @ rng.standard_normal((rank, 24))


def decaying() -> np.ndarray:
    """Return (96, 24) rows with an offset and exponentially decaying singular values."""
    return (np.random.default_rng(4).standard_normal((96, 24)) + 0.5) * 0.7 ** np.arange(24)


def sign_rows(which: Any) -> np.ndarray:
    """Return 64 shifted Fourier features, all of whose cosines are 1 or -1, of points chosen after the features.

    Row i has the signs of row which[i] of a Hadamard matrix: |z|^2 = 2, and different rows are orthogonal. The points,
    in dimension 64, solve <w_j, x> + gamma_j = 0 or pi.
    """
    size = 64
    phi = features.shifted_fourier(jax.random.key(5), kernels.Gaussian(1.0), size, num_frequencies=size)
    W, shifts = np.asarray(phi.frequencies, np.float64), np.asarray(phi.shifts, np.float64)
    phases = np.where(linalg.hadamard(size) > 0, 0, math.pi)
    points = np.linalg.solve(W, phases.T - shifts[:, None]).T
    return (math.sqrt(2 / size) * np.cos(points @ W.T + shifts))[np.asarray(which)]


def doubled_then_elsewhere(sketch_size: int, batches: int) -> np.ndarray:
    """Return sign rows in the pattern of `pairs_of_rows`, and l rows in other directions after them."""
    half = sketch_size // 2
    return sign_rows(np.concatenate([np.tile(np.repeat(np.arange(half), 2), batches), half + np.arange(sketch_size)]))


def then_one_direction(sketch_size: int, late: int) -> np.ndarray:
    """Return sign rows: l different ones, which fill the buffer, and one more direction `late` times after them."""
    return sign_rows(np.minimum(np.arange(sketch_size + late), sketch_size))
