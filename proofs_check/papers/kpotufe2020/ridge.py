"""Kernel ridge regression (ours): how far a function is from the exact solution, by the operators S and S*.

Truth is computed in decimals of 50 digits, with nothing of `jaxkern.regression` or `jaxkern.gram` in it.
"""

import decimal
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxkern import kernels
from jaxkern.regression import Ridge, ridge, ridge_to
from proofs_check.claim import Check, Inequality, Setting
from proofs_check.papers.kpotufe2020.setup import Pairs
from proofs_check.papers.shared import (
    Wrong,
    check_of,
    lines,
    op_norm,
    real,
    rng_of,
    wrong,
)

Decimals = np.ndarray
"""An array of decimals."""

Sides = Iterator[tuple[Decimal, Decimal]]

PAGE = "docs/theory/regression.md"
ROWS, LANDMARKS, COLUMNS = 14, 4, 2
_exp = np.frompyfunc(Decimal.exp, 1, 1)
_root = np.frompyfunc(lambda value: max(value, Decimal(0)).sqrt(), 1, 1)
# Every float is a decimal fraction.
_exact = np.frompyfunc(lambda value: Decimal(float(value)), 1, 1)
KERNELS: dict[str, tuple[Any, Any]] = {
    "Gaussian": (kernels.Gaussian(1.0), lambda x, y: _exp(-((x - y) ** 2).sum(-1) / 2)),
    "Laplacian": (kernels.Laplacian(2.0), lambda x, y: _exp(-abs(x - y).sum(-1) / 2)),
    "Polynomial": (kernels.Polynomial(2), lambda x, y: ((x * y).sum(-1) + 1) ** 2),
}
SHARES = (1e-8, 0.05, 1.0, 1e-2, 1e-5, 1e2)  # what lambda is of the largest eigenvalue


def _solve(M: Decimals, B: Decimals) -> Decimals:
    """Return M^{-1} B of a positive definite matrix, by elimination."""
    A = np.concatenate([M, B], axis=1)
    for i in range(len(M)):
        A[i] = A[i] / A[i, i]
        rest = np.arange(len(M)) != i
        A[rest] = A[rest] - A[rest, i, None] * A[i]
    return A[:, len(M) :]


@dataclass(frozen=True, eq=False)
class _Problem:
    """Rows, labels, weights and lambda; in decimals those rows that exist, scaled by the roots of their weights."""

    kernel: str
    share: float
    X: Array
    y: Array
    weights: Array

    def present(self, values: Array) -> np.ndarray:
        return np.asarray(values)[np.asarray(self.weights) > 0]

    @functools.cached_property
    def points(self) -> np.ndarray:
        return self.present(self.X)

    @functools.cached_property
    def roots(self) -> Decimals:
        return _root(_exact(self.present(self.weights)))

    @functools.cached_property
    def labels(self) -> Decimals:
        return self.roots[:, None] * _exact(self.present(self.y))

    @functools.cached_property
    def K(self) -> Decimals:
        return self.roots[:, None] * self.gram(self.points, self.points) * self.roots

    @functools.cached_property
    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        return np.linalg.eigh(self.K.astype(float))

    @functools.cached_property
    def regularization(self) -> float:
        return float(np.asarray(self.share * self.spectrum[0][-1], self.points.dtype))

    @functools.cached_property
    def shifted(self) -> Decimals:
        return self.shift(self.K)

    @functools.cached_property
    def solution(self) -> Decimals:
        return _solve(self.shifted, self.labels)

    @property
    def lam(self) -> Decimal:
        return Decimal(self.regularization)

    def shift(self, K: Decimals) -> Decimals:
        return K + self.lam * np.eye(len(K), dtype=int)

    def gram(self, X: np.ndarray, Y: np.ndarray) -> Decimals:
        _, exactly = KERNELS[self.kernel]
        return exactly(_exact(X)[:, None], _exact(Y)[None])

    def norm(self, v: Decimals) -> Decimal:
        return _root(v @ self.K @ v)

    def inverse(self, rho: Decimals) -> Decimals:
        return _solve(self.shifted, rho[:, None])[:, 0]

    def residuals(self, key: Array) -> list[tuple[Decimals, Decimals]]:
        """Return residuals rho, with (K + lambda)^{-1} rho.

        A random one, one where Theorem 1 is sharp for eigenvalues near lambda, and one of a single row.
        """
        values, vectors = self.spectrum
        ratios = np.maximum(values, 1e-300) / self.regularization
        near = vectors[:, np.argmin(abs(np.log(ratios)))]
        normal = rng_of(key).standard_normal(len(near))
        rhos = [_exact(v) for v in (normal, near, np.eye(len(near))[0])]
        return [(rho, self.inverse(rho)) for rho in rhos]

    def guesses(self, rho: Decimals, solved: Decimals) -> list[Decimals]:
        """Return vectors z: 0, rho / lambda, its best multiple, and (K + lambda)^{-1} rho, also to two digits."""
        z = rho / self.lam
        best = (rho @ z) / (z @ self.K @ z + self.lam * (z @ z))
        rounded = _exact([float(f"{v:.1e}") for v in solved])
        return [0 * z, z, best * z, solved, rounded]

    def fits(self, times: float = 1.0) -> list[Ridge]:
        """Return what the library computes, by landmarks and to a tolerance."""
        kernel, _ = KERNELS[self.kernel]
        options: Any = {
            "weights": self.weights,
            "regularization": times * self.regularization,
            "num_landmarks": LANDMARKS,
        }
        start = (jax.random.key(7), kernel, self.X, self.y)
        iterated = ridge_to(*start, tolerance=1e-3, max_products=40, **options)
        return [ridge(*start, **options), iterated]


def _as_ratios(sides: Callable[..., Sides]) -> Callable[..., Pairs]:
    """Make pairs (left, right) of decimals the ratios that an Inequality compares with 1; a left 0 always holds."""

    @functools.wraps(sides)
    def ratios(*args: Any, **options: Any) -> Pairs:
        with decimal.localcontext(decimal.Context(prec=50, traps=[])):
            pairs = [pair for pair in sides(*args, **options) if pair[0]]
            return lines(((float(left / right), 1.0) for left, right in pairs), PAGE)

    return ratios


@_as_ratios
def _distance(
    key: Array, data: _Problem, half: int = 2, power: float = 0.5, times: float = 1
) -> Sides:
    """Theorem 1, both ways, of residuals and vectors z; and the library's bounds of its own solutions."""
    scale = half * data.lam ** Decimal(power)
    for rho, solved in data.residuals(key):
        distance = data.norm(solved)
        for z in data.guesses(rho, solved):
            rest = rho - data.shifted @ z
            outer = _root(rest @ rest) / scale
            inner = data.norm(z)
            yield distance, inner + outer
            yield inner - outer, distance
    points = data.points
    roots = data.roots
    for f in data.fits(times):
        centres = np.concatenate([points, np.asarray(f.points)])
        exact = -roots[:, None] * data.solution
        error = np.concatenate([exact, _exact(f.coefficients)])
        squares = (error * (data.gram(centres, centres) @ error)).sum(0)
        values = (data.gram(centres, points) * roots).T @ error
        yield from zip(_root(squares), _exact(f.distance_bound), strict=True)
        yield from zip(abs(values).max(0), _exact(f.training_bound), strict=True)


@_as_ratios
def _pointwise(
    key: Array, data: _Problem, power: int = 1, ridged: int = 1, at_rows: bool = True
) -> Sides:
    """Theorem 2 at rows and elsewhere, by all rows and by some; and the library's bounds of what it predicts."""
    rows = data.points
    noise = rng_of(key).standard_normal(rows[:3].shape)
    X = np.concatenate([rows[:2], rows[:3] + noise.astype(rows.dtype)])
    sections = data.gram(X, rows) * data.roots
    widths = []
    for chosen in (slice(None), slice(0, None, 3)):
        points = rows[chosen] if at_rows else X
        roots = data.roots[chosen] if at_rows else np.ones(len(X), dtype=int)
        k = data.gram(X, points) * roots
        K = (data.gram(points, points) * roots).T * roots
        q = _solve(data.shift(K), k.T).T
        gain = (q * (2 * k - q @ K - ridged * data.lam * q)).sum(1)
        widths.append(_root(np.diagonal(data.gram(X, X)) - gain) ** power)
    for rho, solved in data.residuals(key):
        errors = np.tile(abs(sections @ solved), 2)
        for z in data.guesses(rho, solved):
            rest = rho - data.lam * z
            radius = _root(z @ data.K @ z + rest @ rest / data.lam)
            yield from zip(errors, np.concatenate(widths) * radius, strict=True)
    inputs = jnp.asarray(X)
    for f in data.fits():
        error = abs(_exact(f(inputs)) - sections @ data.solution)
        bound = _exact(f.bound_at(inputs))
        yield from zip(error.ravel(), bound.ravel(), strict=True)


@_as_ratios
def _head(data: _Problem, first: int = 1, share: float = 1, times: int = 1) -> Sides:
    """Theorem 3 of the best functions in spans of some sections, or of none, for the labels and for the worst ones."""
    distinct = np.unique(data.points, axis=0, return_index=True)[1]
    worst = _exact(data.spectrum[1][:, -1])
    for number in (0, 2, LANDMARKS):
        L = distinct[:number]
        C = data.K[:, L]
        W = data.K[np.ix_(L, L)]
        missing = data.K - C @ _solve(W, C.T)
        factor = first + Decimal(share * op_norm(missing.astype(float))) / data.lam
        for y in (*data.labels.T, worst):
            a = 0 * y
            best = _solve(C.T @ C + data.lam * W, (C.T @ y)[:, None])
            a[L] = times * best[:, 0]
            rho = y - data.shifted @ a
            distance = data.norm(data.inverse(rho))
            gradient = data.norm(rho) / data.lam
            yield distance, gradient
            yield gradient, factor * distance


def _setting(seed: int, share: float) -> Setting:
    """Return a setting, in some of which rows stand twice, and weights may be 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, 3))
    y = rng.standard_normal((ROWS, COLUMNS))
    weights = np.ones(ROWS)
    kernel = list(KERNELS)[seed % 3]
    name = f"{kernel}, lambda {share:g} of the largest eigenvalue"
    if seed % 2 == 0:
        X[ROWS // 2 :] = X[: ROWS // 2]
        name += ", every row twice"
    if seed in (2, 3):
        weights = rng.choice([0.0, 0.3, 1.0, 7.0], ROWS)
        name += ", weights"
    problem = _Problem(kernel, share, real(X), real(y), real(weights))
    return Setting(name, problem, {"share": share})


def _check(sides: Callable[..., Pairs], *controls: Wrong) -> Check:
    settings = [_setting(seed, share) for seed, share in enumerate(SHARES)]
    precise = functools.partial(Inequality, tolerance=16)
    return check_of(precise, settings, *controls, corrected=sides)


def ridge_distance() -> Check:
    return _check(
        _distance,
        wrong("1 / (4 sqrt(lambda))", "wrong factor", half=4),
        wrong("lambda left out", "term left out", power=0),
        wrong("lambda for its root", "wrong power", power=1),
        wrong("the library's bounds for 2 lambda", "wrong factor", times=2),
    )


def ridge_pointwise() -> Check:
    return _check(
        _pointwise,
        wrong("s^2 for s", "wrong power", power=2),
        wrong("lambda q'q left out of s^2", "term left out", ridged=0),
        wrong("points that are no rows", "hypothesis broken", at_rows=False),
    )


def ridge_head() -> Check:
    return _check(
        _head,
        wrong("1 left out", "term left out", first=0),
        wrong("half of |K - Khat|", "wrong factor", share=0.5),
        wrong("twice the minimiser", "hypothesis broken", times=2),
    )
