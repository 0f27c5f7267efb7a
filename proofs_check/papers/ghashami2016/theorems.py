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
from proofs_check.claim import Claim, Control, Exact, Form, Identity, Inequality, Setting, Tail
from proofs_check.papers.ghashami2016 import costs, facts, proofs, streams, table1
from proofs_check.papers.ghashami2016 import features as gram_matrices
from proofs_check.papers.ghashami2016 import trials as t
from proofs_check.papers.populations import Population

PAPER = "ghashami2016"


def claims(data: Population | None = None, *, full: bool = False) -> list[Claim]:
    """Return the claims of the paper, in its order, and then those of our own.

    With `data`, what is said of all Gram matrices and all streams of features is tried on the user's rows; the
    counterexamples, and what is about a number rather than about points, stay as they are.
    """
    clouds = t.clouds(data)
    deltas = (0.05, 0.02) if full else (0.05,)
    return [
        *facts.claims(clouds, deltas),
        *table1.claims(),
        gram_matrices.lem3_1(clouds, deltas),
        _thm3_1(deltas, full),
        *streams.claims(data, deltas),
        *proofs.claims(deltas),
        _lem3_4(clouds),
        _frobenius(clouds),
        _lem3_5(clouds),
        *costs.claims(),
        *table1.experiments(),
        *gram_matrices.ours(clouds, deltas),
        *streams.ours(data, deltas),
        *facts.ours(deltas),
    ]


# --------------------------------------------------------------------------------------------------------- Theorem 3.1


def _thm3_1(deltas: Sequence[float], full: bool) -> Claim:
    printed = tuple(
        _copies(eps, delta, math.ceil(math.log(2 / delta) / (2 * eps**2)))
        for eps in (0.05, 0.1)
        for delta in (1e-2, 1e-3)
    )
    corrected = tuple(
        _copies(eps, delta, math.ceil(2 * math.log(2 / delta) / eps**2))
        for eps in ((0.1, 0.2) if full else (0.2,))
        for delta in deltas
    )
    return Claim(
        id="ghashami2016:thm3.1",
        paper=PAPER,
        where="Theorem 3.1",
        kind="tail bound",
        tex=r"\bigl|\|\Phi^{\top}x\|^2-\|Z^{\top}x\|^2\bigr|\le\epsilon n\text{ w.p. }1-\delta,\ "
        r"m=\tfrac1{2\epsilon^2}\ln\tfrac2\delta",
        hypotheses=r"A shift-invariant kernel with $K(x,x)=1$, points of any dimension and a unit vector $x\in\mathbb "
        "R^n$, all fixed before the draw of $m$ independent shifted features. Tried for copies of one point, the "
        r"worst case, and $x=(1,\dots,1)/\sqrt n$.",
        because="Hoeffding's inequality for terms in [0, 2n/m] gives exp(-eps^2 m / 2), not exp(-2 eps^2 m): four "
        "times as many features are needed. For n copies of a point the deviation is |mean cos 2 b_i|, b_i uniform, "
        "whose law is known exactly. The printed number is right for pairs of a cosine and a sine.",
        printed=Form(Exact(_violation), printed, "refuted"),
        corrected=Form(
            Tail(_deviation, _quadratic),
            corrected,
            "certified",
            r"m=\tfrac2{\epsilon^2}\ln\tfrac2\delta",
        ),
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


def _lem3_4(clouds: Sequence[t.Cloud]) -> Claim:
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

    places = _pairs(clouds)
    return Claim(
        id="ghashami2016:lem3.4",
        paper=PAPER,
        where="Lemma 3.4",
        kind="identity",
        tex=r"\|G-YY^{\top}\|_2=\max_{\|x\|=1}\bigl|\|\Phi^{\top}x\|^2-\|Y^{\top}x\|^2\bigr|",
        hypotheses=r"Any symmetric positive semidefinite $G=\Phi\Phi^{\top}$ and any $Y$ with as many rows. Tried on "
        "Gram matrices of the Gaussian kernel and 16 features.",
        because="True: the spectral norm of a symmetric matrix is its largest quadratic form.",
        printed=Form(holds(), places, "identity"),
        controls=(
            Control("lengths that are not squared", holds(power=1), places, "wrong power"),
            Control("Phi for its adjoint", holds(of=np.transpose), places, "transpose for adjoint"),
            Control("Phi in float16", holds(of=controls.in_half), places, "low precision"),
        ),
    )


def _frobenius(clouds: Sequence[t.Cloud]) -> Claim:
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

    places = _pairs(clouds)
    return Claim(
        id="ghashami2016:frobenius",
        paper=PAPER,
        where="Section 3.2",
        kind="inequality",
        tex=r"\|G-G'\|_2\le\epsilon n\ \Rightarrow\ \|G-G'\|_F\le\epsilon n^{1.5}",
        hypotheses="Any symmetric $G$ and $G'$ of order $n$.",
        because="True, and attained by the identity matrix. For Fourier features the factor sqrt(n) is not needed: "
        "jaxkern:gram-frobenius.",
        printed=Form(Inequality(sides(1)), places, "consistent"),
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


def _lem3_5(clouds: Sequence[t.Cloud]) -> Claim:
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
    return Claim(
        id="ghashami2016:lem3.5",
        paper=PAPER,
        where="Lemma 3.5",
        kind="inequality",
        tex=r"\|G-G'\|_2\le\epsilon n\ \Rightarrow\ \|G-G'_k\|_F\le\|G-G_k\|_F+\epsilon\sqrt k\,n",
        hypotheses=r"Symmetric $G$ and $G'$ of order $n$ with $\|G-G'\|_2\le\epsilon n$, and $k\le n$; $G_k$ and "
        "$G'_k$ are the best approximations of rank $k$.",
        because="diag(1, 0.81) and diag(0.9, 0.91) with k = 1 give 1.005 > 0.91. The proof takes the eigenvectors of "
        "G - G' for those of G - G'_k. The optimality of G'_k gives 2 sqrt(2) for 1; no constant below sqrt(5) does.",
        printed=Form(Inequality(sides(1.0)), diagonal, "refuted"),
        corrected=Form(
            Inequality(sides(None)),
            diagonal + _pairs(clouds),
            "consistent",
            r"\|G-G'_k\|_F\le\|G-G_k\|_F+2\sqrt2\,\epsilon\sqrt k\,n",
        ),
        controls=(Control("the constant 2", Inequality(sides(2.0)), diagonal, "wrong factor"),),
    )
