"""ghashami2016: all its claims in order; Theorem 3.1, and from spectral errors to those of best approximations.

`docs/theory/ghashami2016.md` derives every correction.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import features, kernels
from jaxkern.bounds import Bound, streaming
from jaxkern.bounds import fourier as bounds
from proofs_check import controls
from proofs_check.claim import Check, Control, Exact, Form, Identity, Inequality, Setting, Tail
from proofs_check.papers.ghashami2016 import features as gram_matrices
from proofs_check.papers.ghashami2016 import trials as t
from proofs_check.papers.ghashami2016.places import Scope

PAPER = "ghashami2016"


# --------------------------------------------------------------------------------------------------------- Theorem 3.1


def _thm3_1(scope: Scope) -> Check:
    printed = tuple(
        _copies(eps, delta, math.ceil(math.log(2 / delta) / (2 * eps**2)))
        for eps in (0.05, 0.1)
        for delta in (1e-2, 1e-3)
    )
    corrected = tuple(
        _copies(eps, delta, math.ceil(2 * math.log(2 / delta) / eps**2))
        for eps in ((0.1, 0.2) if scope.full else (0.2,))
        for delta in scope.deltas
    )
    return Check(
        printed=Form(Exact(_violation), printed),
        corrected=Form(Tail(_deviation, _quadratic), corrected),
        controls=gram_matrices.badly_scaled(
            Tail(_deviation, _quadratic), corrected[:1], float(corrected[0].numbers["m"])
        ),
    )


def _copies(eps: float, delta: float, m: int) -> Setting:
    name = f"copies of a point, eps={eps:g}, delta={delta:g}, m={m}"
    return Setting(name, numbers={"eps": eps, "delta": delta, "m": float(m), "scale": 1}, shapes={"rows": m})


def _quadratic(setting: Setting) -> Bound:
    return bounds.quadratic_form_shifted(eps=setting.numbers["eps"], num_features=setting.numbers["m"])


def _violation(setting: Setting) -> tuple[float, float]:
    """Return the log-probability that |mean of m independent cos U| exceeds eps, U uniform, and the log of delta."""
    tail = t.copies_tail(setting.numbers["m"], setting.numbers["eps"])
    return math.log(tail), math.log(setting.numbers["delta"])


def _deviation(key: jax.Array, population: Any, numbers: Any, *, rows: int) -> jax.Array:
    """| |Phi' x|^2 - |Z' x|^2 | / n for n copies of a point and x = (1, ..., 1) / sqrt(n), by the library.

    That is |1 - |z|^2| for the features z of the point.
    """
    del population
    dtype = jnp.result_type(float)
    phi = features.shifted_fourier(key, kernels.Gaussian(1.0), 1, num_frequencies=rows, dtype=dtype)
    return jnp.abs(1 - numbers["scale"] * jnp.sum(phi(jnp.zeros((1, 1), dtype)) ** 2))


# ---------------------------------------------------------------------------------- from spectral to Frobenius errors


def _pairs(clouds: Sequence[t.Cloud]) -> tuple[Setting, ...]:
    """Return settings with a Gram matrix, 16 features of whose points approximate it."""
    return tuple(cloud.setting("m=16", {}, {"size": 16, "paired": 0}) for cloud in clouds)


def _matrices(key: jax.Array, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return G and the features Z, divided by sqrt(n): their eigenvalues are at most 1 and 2."""
    n = setting.numbers["n"]
    Z = t.draw(key, setting.population, **setting.shapes)(setting.population["points"])
    return np.asarray(setting.population["gram"], np.float64) / n, np.asarray(Z, np.float64) / math.sqrt(n)


def _lem3_4(scope: Scope) -> Check:
    def holds(power: int = 2, of: Callable[[np.ndarray], np.ndarray] = np.asarray) -> Identity:
        """Return the check with another power of the lengths, and with of(Phi) for Phi."""

        def residual(key: jax.Array, setting: Setting) -> np.ndarray:
            G, Y = _matrices(key, setting)
            values, vectors = np.linalg.eigh(G)
            Phi = vectors * np.sqrt(np.maximum(values, 0))
            G = Phi @ Phi.T  # without the eigenvalues below zero that rounding made
            Phi = of(Phi)
            spectral = np.linalg.norm(G - Y @ Y.T, 2)
            directions = [np.linalg.eigh(G - Y @ Y.T)[1], np.random.default_rng(0).standard_normal(G.shape)]
            found = []
            for X in directions:
                X = X / np.linalg.norm(X, axis=0)
                lengths = [np.linalg.norm(A.T @ X, axis=0) ** power for A in (Phi, Y)]
                found.append(float(np.max(np.abs(lengths[0] - lengths[1]))))
            # The largest is attained at an eigenvector, and no other direction exceeds it.
            return np.array([found[0] - spectral, max(found[1] - spectral, 0)]) / spectral

        return Identity(residual)

    places = _pairs(scope.clouds)
    return Check(
        printed=Form(holds(), places),
        controls=(
            Control("lengths that are not squared", holds(power=1), places, "wrong power"),
            Control("Phi for its adjoint", holds(of=np.transpose), places, "transpose for adjoint"),
            Control("Phi in float16", holds(of=controls.in_half), places, "low precision"),
        ),
    )


def _frobenius(scope: Scope) -> Check:
    def sides(power: float) -> Callable[[jax.Array, Setting], list[tuple[float, Bound]]]:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            G, Z = _matrices(key, setting)
            pairs = []
            for E in (G - Z @ Z.T, np.eye(len(G))):  # the identity attains it
                right = streaming.frobenius_from_spectral(
                    spectral=float(np.linalg.norm(E, 2)), num_points=len(E) ** power
                )
                pairs.append((float(np.linalg.norm(E)), right))
            return pairs

        return check

    places = _pairs(scope.clouds)
    return Check(
        printed=Form(Inequality(sides(1)), places),
        controls=(Control("the fourth root of n for the square root", Inequality(sides(0.5)), places, "wrong power"),),
    )


def _best(A: np.ndarray, rank: int) -> np.ndarray:
    """Return the best approximation of this rank of a symmetric matrix in the Frobenius norm."""
    values, vectors = np.linalg.eigh(A)
    kept = np.argsort(-np.abs(values))[:rank]
    return (vectors[:, kept] * values[kept]) @ vectors[:, kept].T


def _best_rank_pair(G: np.ndarray, H: np.ndarray, rank: int, **options: Any) -> tuple[float, Bound]:
    """Return |G - H_k|_F and what Lemma 3.5 says of it."""
    tail, spectral = float(np.linalg.norm(G - _best(G, rank))), float(np.linalg.norm(G - H, 2))
    right = streaming.best_rank(tail=tail, spectral=spectral, rank=rank, **options)
    return float(np.linalg.norm(G - _best(H, rank))), right


def _counterexamples() -> tuple[Setting, ...]:
    """Return pairs of diagonal matrices: (1, .81) and (.9, .91); and (2 I, 0) and (I, (1 + 1e-9) I) of order 2 k."""
    pairs = [("diag(1, 0.81), k=1", [1, 0.81], [0.9, 0.91], 1)]
    pairs += [(f"sqrt(5) attained, k={k}", [2.0] * k + [0.0] * k, [1.0] * k + [1 + 1e-9] * k, k) for k in (1, 3)]
    return tuple(Setting(name, {"G": np.diag(g), "H": np.diag(h)}, shapes={"k": k}) for name, g, h, k in pairs)


def _lem3_5(scope: Scope) -> Check:
    def sides(factor: float | None) -> Callable[[jax.Array, Setting], list[tuple[float, Bound]]]:
        """Return the check with a constant of its own, or with that of the corrected lemma."""

        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            if "k" in setting.shapes:
                G, H, ranks = setting.population["G"], setting.population["H"], [setting.shapes["k"]]
            else:
                G, Z = _matrices(key, setting)
                H, ranks = Z @ Z.T, [1, 2, 3]
            if factor is None:
                return [_best_rank_pair(G, H, k) for k in ranks]
            pairs = [_best_rank_pair(G, H, k, as_printed=True) for k in ranks]
            # The printed bound is tail + sqrt(k) spectral.
            extra = [(factor - 1) * math.sqrt(k) * float(np.linalg.norm(G - H, 2)) for k in ranks]
            return [
                (left, dataclasses.replace(right, value=right.value + more))
                for (left, right), more in zip(pairs, extra, strict=True)
            ]

        return check

    diagonal = _counterexamples()
    return Check(
        printed=Form(Inequality(sides(1.0)), diagonal),
        corrected=Form(Inequality(sides(None)), diagonal + _pairs(scope.clouds)),
        controls=(Control("the constant 2", Inequality(sides(2.0)), diagonal, "wrong factor"),),
    )
