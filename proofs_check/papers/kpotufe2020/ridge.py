"""Kernel ridge regression (ours): how far a function is from the exact solution, by the operators S and S*.

Truth is computed in decimals of 50 digits, with nothing of `jaxkern.regression` or `jaxkern.gram` in it.
"""

import decimal
import functools
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import kernels
from jaxkern.bounds import Bound
from jaxkern.regression import Ridge, ridge, ridge_to
from proofs_check.claim import Check, Control, Form, Inequality, Setting
from proofs_check.papers.shared import lines, op_norm, parametrized, real, rng_of

PAGE = "docs/theory/regression.md"
ROWS, LANDMARKS, COLUMNS = 14, 4, 2
_exp = np.frompyfunc(Decimal.exp, 1, 1)
_root = np.frompyfunc(lambda value: max(value, Decimal(0)).sqrt(), 1, 1)
_exact = np.frompyfunc(
    lambda value: Decimal(float(value)), 1, 1
)  # every float is a decimal fraction
KERNELS: dict[str, tuple[Any, Any]] = {
    "Gaussian": (kernels.Gaussian(1.0), lambda x, y: _exp(-((x - y) ** 2).sum(-1) / 2)),
    "Laplacian": (kernels.Laplacian(2.0), lambda x, y: _exp(-abs(x - y).sum(-1) / 2)),
    "Polynomial": (kernels.Polynomial(2), lambda x, y: ((x * y).sum(-1) + 1) ** 2),
}
SHARES = (1e-8, 0.05, 1.0, 1e-2, 1e-5, 1e2)  # what lambda is of the largest eigenvalue


def _solve(M: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return M^{-1} B of a positive definite matrix, by elimination."""
    A = np.concatenate([M, B], axis=1)
    for i in range(len(M)):
        A[i] = A[i] / A[i, i]
        rest = np.arange(len(M)) != i
        A[rest] = A[rest] - A[rest, i, None] * A[i]
    return A[:, len(M) :]


class _Exact:
    """Rows, labels, weights and lambda; in decimals those rows that exist, scaled by the roots of their weights.

    What a form and its controls have in common is computed once, when one of them asks.
    """

    def __init__(self, name: str, share: float, *given: np.ndarray) -> None:
        self.name, self.share, self.given = name, share, tuple(map(real, given))
        self._fits: dict[float, list[Ridge]] = {}
        self._cases: dict[
            bytes, list[tuple[np.ndarray, np.ndarray, list[np.ndarray]]]
        ] = {}

    @functools.cached_property
    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The points, the roots of their weights, and their labels times these."""
        X, y, w = (np.asarray(v)[np.asarray(self.given[2]) > 0] for v in self.given)
        roots = _root(_exact(w))
        return X, roots, roots[:, None] * _exact(y)

    @functools.cached_property
    def K(self) -> np.ndarray:
        points, roots, _ = self.rows
        return roots[:, None] * self.gram(points, points) * roots

    @functools.cached_property
    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        return np.linalg.eigh(self.K.astype(float))

    @functools.cached_property
    def scalar(self) -> float:
        return float(np.asarray(self.share * self.spectrum[0][-1], self.rows[0].dtype))

    @functools.cached_property
    def shifted(self) -> np.ndarray:
        return self.K + self.lam * np.eye(len(self.K), dtype=int)

    @functools.cached_property
    def solution(self) -> np.ndarray:
        return _solve(self.shifted, self.rows[2])

    @property
    def lam(self) -> Decimal:
        return Decimal(self.scalar)

    def gram(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        return KERNELS[self.name][1](_exact(X)[:, None], _exact(Y)[None])

    def norm(self, v: np.ndarray) -> Any:
        return _root(v @ self.K @ v)

    def cases(
        self, key: jax.Array
    ) -> list[tuple[np.ndarray, np.ndarray, list[np.ndarray]]]:
        """Return residuals rho, with (K + lambda)^{-1} rho and vectors z.

        A random one, one where Theorem 1 is sharp for eigenvalues near lambda, and one of a single row. As z none,
        rho / lambda and its best multiple, and (K + lambda)^{-1} rho, also to two digits.
        """
        place = np.asarray(jax.random.key_data(key)).tobytes()
        if (found := self._cases.get(place)) is not None:
            return found
        found, (values, vectors) = [], self.spectrum
        near = vectors[
            :, np.argmin(abs(np.log(np.maximum(values, 1e-300) / self.scalar)))
        ]
        for rho in map(
            _exact, (rng_of(key).standard_normal(len(near)), near, np.eye(len(near))[0])
        ):
            z, solved = rho / self.lam, _solve(self.shifted, rho[:, None])[:, 0]
            best = (rho @ z) / (z @ self.K @ z + self.lam * (z @ z))
            found.append(
                (
                    rho,
                    solved,
                    [
                        0 * z,
                        z,
                        best * z,
                        solved,
                        _exact([float(f"{v:.1e}") for v in solved]),
                    ],
                )
            )
        return self._cases.setdefault(place, found)

    def fit(self, times: float = 1.0) -> list[Ridge]:
        """Return what the library finds, by landmarks and to a tolerance."""
        if times not in self._fits:
            start = jax.random.key(7), KERNELS[self.name][0], *self.given[:2]
            options: Any = {
                "weights": self.given[2],
                "regularization": times * self.scalar,
                "num_landmarks": LANDMARKS,
            }
            self._fits[times] = [
                ridge(*start, **options),
                ridge_to(*start, tolerance=1e-3, max_products=40, **options),
            ]
        return self._fits[times]


def _ratios(sides: Callable[..., Any]) -> Callable[..., Inequality]:
    """Make pairs (left, right) of decimals the ratios that an Inequality compares with 1; a left 0 always holds."""

    @parametrized(Inequality, tolerance=16)
    @functools.wraps(sides)
    def wrapped(*args: Any, **options: Any) -> list[tuple[float, Bound]]:
        with decimal.localcontext(prec=50, traps=[]):
            return lines(
                (
                    (left / Decimal(right), 1.0)
                    for left, right in sides(*args, **options)
                    if left
                ),
                PAGE,
            )

    return wrapped


@_ratios
def _distance(
    key: jax.Array,
    setting: Setting,
    half: float = 2,
    power: float = 0.5,
    times: float = 1,
) -> Any:
    """Theorem 1, both ways, of residuals and vectors z; and the library's bounds of its own solutions."""
    at: _Exact = setting.data
    rows, roots, _ = at.rows
    scale = Decimal(half) * at.lam ** Decimal(power)
    for rho, solved, guesses in at.cases(key):
        distance = at.norm(solved)
        for z in guesses:
            left = rho - at.shifted @ z
            inner, outer = at.norm(z), _root(left @ left) / scale
            yield from ((distance, inner + outer), (inner - outer, distance))
    for f in at.fit(times):
        points = np.concatenate([rows, np.asarray(f.points)])
        error = np.concatenate([-roots[:, None] * at.solution, _exact(f.coefficients)])
        K, values = at.gram(points, points), (at.gram(points, rows) * roots).T @ error
        for j in range(COLUMNS):
            yield _root(error[:, j] @ K @ error[:, j]), float(f.distance_bound[j])
            yield max(abs(values[:, j])), float(f.training_bound[j])


@_ratios
def _pointwise(
    key: jax.Array,
    setting: Setting,
    power: int = 1,
    ridged: bool = True,
    own: bool = True,
) -> Any:
    """Theorem 2 at rows and elsewhere, by all rows and by some; and the library's bounds of what it predicts."""
    at: _Exact = setting.data
    every, all_roots, _ = at.rows
    X = np.concatenate(
        [
            every[:2],
            every[:3]
            + rng_of(key).standard_normal(every[:3].shape).astype(every.dtype),
        ]
    )
    widths, sections = [], at.gram(X, every) * all_roots
    for some in (slice(None), slice(0, None, 3)):
        points, roots = (every[some], all_roots[some]) if own else (X, 1)
        k, K = at.gram(X, points) * roots, (at.gram(points, points) * roots).T * roots
        q = _solve(K + at.lam * np.eye(len(K), dtype=int), k.T).T
        squares = np.diagonal(at.gram(X, X)) - (
            q * (2 * k - q @ K - ridged * at.lam * q)
        ).sum(1)
        widths.append(_root(squares) ** power)
    for rho, solved, guesses in at.cases(key):
        found = abs(sections @ solved)
        for z in guesses:
            left = rho - at.lam * z
            radius = _root(z @ at.K @ z + left @ left / at.lam)
            yield from zip(
                np.tile(found, 2), np.concatenate(widths) * radius, strict=True
            )
    for f in at.fit():
        found = abs(_exact(f(jnp.asarray(X))) - sections @ at.solution)
        yield from zip(
            found.ravel(), _exact(f.bound_at(jnp.asarray(X))).ravel(), strict=True
        )


@_ratios
def _head(setting: Setting, one: int = 1, share: float = 1, times: int = 1) -> Any:
    """Theorem 3 of the best functions in spans of some sections, or of none, for the labels and for the worst ones."""
    at: _Exact = setting.data
    points, _, labels = at.rows
    for number in (0, 2, LANDMARKS):
        L = np.unique(points, axis=0, return_index=True)[1][:number]
        C, W = at.K[:, L], at.K[np.ix_(L, L)]
        missing = at.K - C @ _solve(W, C.T)
        factor = one + Decimal(share * op_norm(missing.astype(float))) / at.lam
        for y in (*labels.T, _exact(at.spectrum[1][:, -1])):
            a = np.zeros(len(y), int) * y
            a[L] = times * _solve(C.T @ C + at.lam * W, (C.T @ y)[:, None])[:, 0]
            rho = y - at.shifted @ a
            distance, gradient = (
                at.norm(_solve(at.shifted, rho[:, None])[:, 0]),
                at.norm(rho) / at.lam,
            )
            yield from ((distance, gradient), (gradient, factor * distance))


def _check(statement: Inequality, *controls: tuple[str, Inequality, str]) -> Check:
    """Return the check at settings of which some have rows that stand twice, and some weights that may be 0."""
    settings: tuple[Setting, ...] = ()
    for seed, share in enumerate(SHARES):
        rng = np.random.default_rng(seed)
        X, y, w = (
            rng.standard_normal((ROWS, 3)),
            rng.standard_normal((ROWS, COLUMNS)),
            np.ones(ROWS),
        )
        if twice := seed % 2 == 0:
            X[ROWS // 2 :] = X[: ROWS // 2]
        if weighted := 1 < seed < 4:
            w = rng.choice([0.0, 0.3, 1.0, 7.0], ROWS)
        words = ", every row twice" * twice + ", weights" * weighted
        kernel = list(KERNELS)[seed % 3]
        name = f"{kernel}, lambda {share:g} of the largest eigenvalue{words}"
        settings += (Setting(name, _Exact(kernel, share, X, y, w), {"share": share}),)
    wrong = tuple(
        Control(name, sabotaged, settings, kind) for name, sabotaged, kind in controls
    )
    return Check(corrected=Form(statement, settings), controls=wrong)


def ridge_distance() -> Check:
    return _check(
        _distance(),
        ("1 / (4 sqrt(lambda))", _distance(half=4), "wrong factor"),
        ("lambda left out", _distance(power=0), "term left out"),
        ("lambda for its root", _distance(power=1), "wrong power"),
        ("the library's bounds for 2 lambda", _distance(times=2), "wrong factor"),
    )


def ridge_pointwise() -> Check:
    return _check(
        _pointwise(),
        ("s^2 for s", _pointwise(power=2), "wrong power"),
        ("lambda q'q left out of s^2", _pointwise(ridged=False), "term left out"),
        ("points that are no rows", _pointwise(own=False), "hypothesis broken"),
    )


def ridge_head() -> Check:
    return _check(
        _head(),
        ("1 left out", _head(one=0), "term left out"),
        ("half of |K - Khat|", _head(share=0.5), "wrong factor"),
        ("twice the minimiser", _head(times=2), "hypothesis broken"),
    )
