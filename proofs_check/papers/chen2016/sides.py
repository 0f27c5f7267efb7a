"""chen2016: exact expectations over quadrature nodes, and the two sides of its inequalities."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg, special

from jaxkern import features, kernels
from jaxkern.bounds import Bound, fourier
from jaxkern.gram import gram, kernel_distance
from jaxkern.linalg import HIGHEST, matmul
from proofs_check.claim import Setting
from proofs_check.papers.shared import always

# --------------------------------------------------------------------------------------------------------- expectations


OfKernel = Callable[[Any], Any]


def as_residual(errors: Any) -> np.ndarray:
    """Return errors of computations of the default dtype in that dtype, which says what rounding is allowed for."""
    return np.abs(np.asarray(errors, jnp.result_type(float)))


def _same(kernel: Any) -> Any:
    return kernel


def nodes() -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights with sum p f(w) = E f(w) to rounding, for f(w) = cos(r w) and r <= 20."""
    w = np.linspace(-12, 12, 121)
    weights = np.exp(-(w**2) / 2)
    return w, weights / weights.sum()


def _along(pair: jax.Array, key: jax.Array, scale: float) -> tuple[jax.Array, jax.Array]:
    """Return frequencies (121, d) whose components along x - y are the nodes, and their weights.

    The components across x - y, which enter no kernel value, are random.
    """
    points, weights = nodes()
    difference = pair[0] - pair[1]
    unit = difference / jnp.linalg.norm(difference)
    across = jax.random.normal(key, (len(points), pair.shape[1]), pair.dtype)
    across = across - jnp.outer(matmul(across, unit), unit)
    return across + jnp.outer(jnp.asarray(scale * points, pair.dtype), unit), jnp.asarray(weights, pair.dtype)


def paired_mean(
    key: jax.Array, setting: Setting, *, scale: float = 1.0, drawn: OfKernel = _same, normalised: bool = True
) -> np.ndarray:
    """Return the difference of E <f(x), f(y)> for one pair (cosine, sine) and K(x, y), by the library's map.

    The map is that of the kernel drawn(K); without `normalised` its factor 1/sqrt(t) is taken off.
    """
    kernel, pair = setting.population["kernel"], setting.population["pair"]
    w, weights = _along(pair, key, scale)
    x, y = features.PairedFourier(drawn(kernel), w)(pair)
    product = (x * y).reshape(2, -1).sum(axis=0) * w.shape[0] * (1 if normalised else w.shape[0])
    return np.asarray(jnp.abs(jnp.vdot(weights, product, precision=HIGHEST) - kernel(pair[0], pair[1])))[None]


def shifted_mean(
    key: jax.Array, setting: Setting, *, factor: float = 1.0, shifted: bool = True, drawn: OfKernel = _same
) -> np.ndarray:
    """Return the difference of E <phi(x), phi(y)> for shifted features times `factor` and K(x, y).

    Four equally spaced shifts have the mean over all shifts exactly. The map is that of the kernel drawn(K).
    """
    kernel, pair = setting.population["kernel"], setting.population["pair"]
    w, weights = _along(pair, key, 1.0)
    shifts = jnp.asarray(np.arange(4) * math.pi / 2 * shifted, pair.dtype)
    phi = features.ShiftedFourier(drawn(kernel), jnp.repeat(w, 4, axis=0), jnp.tile(shifts, w.shape[0]))
    x, y = factor * phi(pair)
    product = (x * y).reshape(-1, 4).mean(axis=1) * 4 * w.shape[0]
    return np.asarray(jnp.abs(jnp.vdot(weights, product, precision=HIGHEST) - kernel(pair[0], pair[1])))[None]


def variances(key: jax.Array, setting: Setting, *, distance: bool) -> tuple[float, float]:
    """Return m times the variance for paired and for shifted features of one pair, m the number of features.

    Of the inner product, or of the squared distance. Both are exact: quadrature nodes for the frequencies, and eight
    equally spaced shifts, which have the mean of every trigonometric polynomial of degree below 8.
    """
    kernel, pair = setting.population["kernel"], setting.population["pair"]
    w, chances = _along(pair, key, 1.0)
    count, weights = w.shape[0], np.asarray(chances, float)
    x, y = np.asarray(features.PairedFourier(kernel, w)(pair), float).reshape(2, 2, count) * math.sqrt(count)
    paired = np.sum((x - y) ** 2 if distance else x * y, axis=0)
    shifts = jnp.asarray(np.arange(8) * math.pi / 4, pair.dtype)
    phi = features.ShiftedFourier(kernel, jnp.repeat(w, 8, axis=0), jnp.tile(shifts, count))
    x, y = np.asarray(phi(pair), float) * math.sqrt(8 * count)
    shifted = (x - y) ** 2 if distance else x * y

    def variance(values: np.ndarray, weights: np.ndarray) -> float:
        mean = weights @ values
        return float(weights @ (values - mean) ** 2)

    return 2 * variance(paired, weights), variance(shifted, np.repeat(weights / 8, 8))


# --------------------------------------------------------------------------------------------------------- inequalities


def at_most_one(ratio: Any, source: str) -> tuple[float, Bound]:
    """Return the two sides of ratio <= 1."""
    return float(ratio), always(1.0, source)


def below(value: Any, bound: Bound) -> tuple[float, Bound]:
    """Return the two sides of value <= bound, relative to the bound."""
    return float(value) / float(bound.value), Bound(1.0, 1.0, bound.valid, bound.source)


def above(value: Any, bound: Bound) -> tuple[float, Bound]:
    """Return the two sides of value >= bound, relative to the value."""
    return float(bound.value) / float(value), Bound(1.0, 1.0, bound.valid, bound.source)


def distances_of(r: np.ndarray) -> np.ndarray:
    """Return the kernel distance at each distance r, by the library and in its default precision."""
    points = jnp.asarray(r[:, None], jnp.result_type(float))
    return np.asarray(kernel_distance(kernels.Gaussian(1.0), jnp.zeros_like(points), points), float)


def all_distances(X: jax.Array) -> np.ndarray:
    """Return the kernel distances (n, n) of points (n, d), by the library."""
    n = X.shape[0]
    rows = kernel_distance(kernels.Gaussian(1.0), jnp.repeat(X, n, axis=0), jnp.tile(X, (n, 1)))
    return np.asarray(rows, float).reshape(n, n)


@jax.jit
def _feature_distances(W: jax.Array, r: jax.Array) -> jax.Array:
    """Return |phi(r_i) - phi(0)| on a line for each row of frequencies W (n, t) and distance r (n,), by the library."""

    def one(w: jax.Array, r: jax.Array) -> jax.Array:
        x, y = features.PairedFourier(kernels.Gaussian(1.0), w[:, None])(jnp.stack([jnp.zeros_like(r), r])[:, None])
        return jnp.linalg.norm(x - y)

    return jax.vmap(one)(W, r)


def taylor_sides(key: jax.Array, setting: Setting, *, as_printed: bool, fourth: float = 1.0) -> list[Any]:
    """Return the sides of (4): S2 - r^2 S4 / 12 <= Dhat^2 / D^2 <= S2 / (1 - r^2 / 4), Dhat by the library.

    The frequencies are far larger than Gaussian ones in two of three draws. As printed |w| r <= 1 for all of them.
    """
    t = setting.shapes["t"]
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    dtype = jnp.result_type(float)
    draws = rng.standard_normal((120, t)) * np.repeat([0.5, 3.0, 10.0], 40)[:, None]
    r = rng.uniform(0.2, 1.0 if as_printed else 1.9, 120)
    if as_printed:
        draws *= np.minimum(1, 0.999 / (r * np.max(np.abs(draws), axis=1)))[:, None]
    W, D = jnp.asarray(draws, dtype), distances_of(r)

    ratios = np.asarray(_feature_distances(W, jnp.asarray(r, dtype)), float) ** 2 / D**2
    sides = []
    for ratio, w, distance_ in zip(ratios, np.asarray(W, float), r, strict=True):
        second, fourth_moment = float(np.mean(w**2)), fourth * float(np.mean(w**4))
        upper = fourier.ratio_upper(second_moment=second, distance=distance_, as_printed=as_printed)
        lower = fourier.ratio_lower(second_moment=second, fourth_moment=fourth_moment, distance=distance_)
        sides += [below(ratio, upper), (lower.value / second, Bound(ratio / second, 1.0, lower.valid, lower.source))]
    return sides


def log_mgf(s: float, r: float) -> float:
    """Return log E exp(s (X - E X)) for X = 1 - cos(r w), to rounding for s r^2 <= .9."""
    step = min(0.02, 0.1 / r)
    w = np.arange(-40, 40, step)
    X = 2 * np.sin(r * w / 2) ** 2
    mean = -math.expm1(-(r**2) / 2)
    return float(special.logsumexp(s * (X - mean) - w**2 / 2)) + math.log(step) - math.log(2 * math.pi) / 2


def stop_loss(c: float, r: float) -> float:
    """Return E (Y - c)_+ for Y = (1 - cos(r w)) / mu by Gauss-Legendre rules between the kinks, to rounding."""
    mu = -math.expm1(-(r**2) / 2)
    if c * mu >= 2:
        return 0.0
    kink = math.acos(1 - c * mu)
    abscissas, weights = np.polynomial.legendre.leggauss(60)
    total = 0.0
    for k in itertools.count():  # cos(r w) < 1 - c mu between these two
        left, right = (2 * math.pi * k + kink) / r, (2 * math.pi * (k + 1) - kink) / r
        if left > 12:
            return total
        edges = np.linspace(left, min(right, 14.0), 1 + math.ceil(min(right, 14.0) - left))
        for a, b in itertools.pairwise(edges):
            w = (a + b) / 2 + (b - a) / 2 * abscissas
            excess = 2 * np.sin(r * w / 2) ** 2 / mu - c
            total += (b - a) * float(weights @ (excess * np.exp(-(w**2) / 2))) / math.sqrt(2 * math.pi)
    raise AssertionError


def chi_square_stop_loss(c: float, degrees: int) -> float:
    """Return E (Y - c)_+ for Y = chi2 / degrees."""
    half = degrees / 2
    return float(special.gammaincc(half + 1, half * c) - c * special.gammaincc(half, half * c))


def gradient(delta: jax.Array, W: jax.Array) -> jax.Array:
    """Return grad Dhat^2 (d,) at one difference delta for frequencies W (t, d)."""
    return _gradients(delta[None], W[None])[0]


@jax.jit
def _gradients(deltas: jax.Array, W: jax.Array) -> jax.Array:
    """Return grad Dhat^2 at deltas (n, d) for frequencies W (n, t, d), by automatic differentiation of the library."""

    def squared(delta: jax.Array, w: jax.Array) -> jax.Array:
        x, y = features.PairedFourier(kernels.Gaussian(1.0), w)(jnp.stack([delta, jnp.zeros_like(delta)]))
        return jnp.sum((x - y) ** 2)

    return jax.vmap(jax.grad(squared))(deltas, W)


def gradient_sides(key: jax.Array, setting: Setting, *, bound: Any) -> list[Any]:
    """Return the sides of |grad Dhat^2| <= bound at random differences."""
    t, dim = setting.shapes["t"], setting.shapes["dim"]
    key_w, key_delta = jax.random.split(key)
    dtype = jnp.result_type(float)
    W = jax.random.normal(key_w, (100, t, dim), dtype)
    deltas = jax.random.normal(key_delta, (100, dim), dtype) * jnp.repeat(jnp.asarray([0.1, 1.0], dtype), 50)[:, None]

    slopes = jnp.linalg.norm(_gradients(deltas, W), axis=1)
    found = zip(np.asarray(slopes, float), np.asarray(W, float), np.asarray(deltas, float), strict=True)
    return [below(slope, bound(w, float(np.linalg.norm(delta)))) for slope, w, delta in found]


def residual_sides(key: jax.Array, setting: Setting, *, of_features: bool = True) -> list[Any]:
    """Return the sides of E Rhat_k <= R_k, both over n, the expectation over all draws of t of 12 frequencies.

    G is the mean over the 12 frequencies, which the library draws, so that it is the expectation of Ghat exactly. For
    `of_features=False`, Rhat_k is the residual of G itself outside the k leading directions of the draw.
    """
    X, t = setting.population["points"], setting.shapes["t"]
    count = 12
    phi = features.paired_fourier(key, setting.population["kernel"], X.shape[1], num_frequencies=count, dtype=X.dtype)
    Z = np.asarray(phi(X), float).reshape(len(X), 2, count) * math.sqrt(count)
    parts = np.einsum("iaj,kaj->jik", Z, Z)
    draws = list(itertools.combinations_with_replacement(range(count), t))
    chances = np.array([math.factorial(t) / math.prod(math.factorial(d.count(i)) for i in set(d)) for d in draws])
    drawn = parts[np.array(draws)].mean(axis=1)
    n = len(X)
    sides = []
    for H in (np.eye(n), np.eye(n) - 1 / n):
        G = H @ parts.mean(axis=0) @ H
        values, vectors = np.linalg.eigh(H @ drawn @ H)
        if not of_features:
            values = np.einsum("dik,ij,djk->dk", vectors, G, vectors)
        exact = np.linalg.eigvalsh(G)
        for k in (1, 2, 4):
            k = min(k, n - 1)
            residuals = np.trace(G) - values[:, -k:].sum(axis=1) if not of_features else values[:, :-k].sum(axis=1)
            mean = float(chances @ residuals) / count**t / n
            sides.append((mean, always(float(exact[:-k].sum()) / n, "jaxkern, Ky Fan")))
    return sides


def map_dimensions(key: jax.Array, setting: Setting) -> tuple[int, int, float, float]:
    """Return (dimension, points, largest error, spacing) of a unit-norm map of equally spaced points of a line.

    With `t` in the setting the map has Fourier features; with as many dimensions as points it is exact; and with half
    as many it takes the points to two bases whose inner products are the roots of 1 / dim.
    """
    n, t, spacing = setting.shapes["n"], setting.shapes.get("t"), float(setting.numbers["spacing"])
    X = jnp.arange(n, dtype=jnp.result_type(float))[:, None] * spacing
    K = np.asarray(gram(kernels.Gaussian(1.0), X), float)
    if t is not None:
        phi = features.paired_fourier(key, kernels.Gaussian(1.0), 1, num_frequencies=t, dtype=X.dtype)
        h = np.asarray(phi(X), float)
    elif setting.shapes["dim"] == n:
        h = np.linalg.cholesky(K)
    else:
        h = np.concatenate([np.eye(n // 2), linalg.hadamard(n // 2) / math.sqrt(n // 2)])
    error = float(np.max(np.abs(K - h @ h.T)[~np.eye(n, dtype=bool)]))
    return h.shape[1], n, error, spacing


def packing(dim: int, ratio: float, seed: int) -> int:
    """Return how many of 30,000 random points of a ball of radius `ratio` keep distances above 1, chosen greedily."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((30_000, dim))
    points *= ratio * rng.uniform(0, 1, (30_000, 1)) ** (1 / dim) / np.linalg.norm(points, axis=1, keepdims=True)
    count = 0
    while len(points):
        points = points[np.sum((points - points[0]) ** 2, axis=1) > 1]
        count += 1
    return count
