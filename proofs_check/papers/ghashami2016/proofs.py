"""ghashami2016: steps of the proofs of Lemmas 3.2 and 3.3, and the Frobenius bound of Section 3 for the stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg

from jaxkern.bounds import Bound, streaming
from proofs_check import controls
from proofs_check.claim import Claim, Control, Form, Identity, Inequality, Setting, Tail
from proofs_check.papers.ghashami2016 import trials as t
from proofs_check.papers.shared import always

PAPER = "ghashami2016"

Sides = Callable[[jax.Array, Setting], list[tuple[float, Bound]]]


def claims(deltas: Sequence[float]) -> list[Claim]:
    """Return the steps that do not hold, and what holds in their place; and the second bullet of Section 3."""
    return [_null_space(), _oblique(), _bullet(deltas)]


def _pairs() -> tuple[Setting, ...]:
    """Return A and B: two by hand, and what Algorithm 1 makes of 96 rows."""
    pairs = [("diag(10, 1) and (1, 1)", np.diag([10.0, 1.0]), np.ones((1, 2)))]
    for name, A in (("decaying", t.decaying()), ("rank 7", t.low_rank(7))):
        pairs.append((f"{name}, l=8", A, t.algorithm_1(A, 8)[0]))
    return tuple(Setting(name, {"A": A, "B": B}) for name, A, B in pairs)


def _orthogonal(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the y in the column space of A with y'A B^+ B = 0, as columns."""
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    U = U[:, s > 1e-9 * s[0]]
    return U @ linalg.null_space((U.T @ A @ t.row_space(B)).T, rcond=1e-9)


def _null_space() -> Claim:
    def printed(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        """Return the largest |B x| over x = V U'y, in units of |B|_2."""
        del key
        A, B = setting.population["A"], setting.population["B"]
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        X = (Vt[s > 1e-9 * s[0]]).T @ U[:, s > 1e-9 * s[0]].T @ _orthogonal(A, B)
        return [(float(np.linalg.norm(B @ X, 2) / np.linalg.norm(B, 2)), always(0.0, "ghashami2016"))]

    def right(step: Callable[[np.ndarray], np.ndarray]) -> Sides:
        """Return the check of |A'y|^2 <= |A A'y| where B A'y = 0, with step(A'y) for A'y in the last two."""

        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            del key
            A, B = setting.population["A"], setting.population["B"]
            size = float(np.linalg.norm(A, 2))
            pairs = []
            for y in _orthogonal(A, B).T:
                z = A.T @ y / size
                left = float(z @ z)
                z = step(z)
                pairs.append((left, always(float(np.linalg.norm(A @ z)) / size, "Cauchy-Schwarz")))
                # In units of |B| |A|, where B z is zero up to rounding.
                pairs.append((float(np.linalg.norm(B @ z) / np.linalg.norm(B, 2)), always(0.0, "B z = 0")))
            return pairs

        return check

    places = _pairs()
    return Claim(
        id="ghashami2016:lem3.2-proof",
        paper=PAPER,
        where="Lemma 3.2, proof",
        kind="inequality",
        tex=r"\|y^{\top}AB^{\dagger}B\|=0\ \Rightarrow\ \|Bx\|=0,\ x=VU^{\top}y",
        hypotheses="$A=USV^{\\top}$, $y$ a unit vector in the column space of $A$. Tried by hand and for sketches of "
        "Algorithm 1 with $l=8$.",
        because="False: scales cannot be removed from A. diag(10, 1) and B = (1, 1) have y = (1, -10) / sqrt(101) and "
        "B x = -9 / sqrt(101). With z = A'y for x the proof is one line.",
        printed=Form(Inequality(printed), places, "refuted"),
        corrected=Form(
            Inequality(right(lambda z: z)),
            places,
            "consistent",
            r"z=A^{\top}y:\ Bz=0,\ \|z\|^2=\langle y,Az\rangle\le\|Az\|",
        ),
        controls=(Control("z with one sign changed", Inequality(right(_flip)), places[:1], "wrong operator"),),
    )


def _flip(z: np.ndarray) -> np.ndarray:
    return np.concatenate([-z[:1], z[1:]])


def _oblique() -> Claim:
    def printed(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        del key
        Z, W = setting.population["A"], t.row_space(setting.population["B"])
        oblique = (Z - Z @ W @ W.T) @ np.linalg.pinv(Z, rcond=1e-9)
        return [(float(np.linalg.norm(oblique, 2)), always(1.0, "ghashami2016, Lemma 3.3, proof"))]

    def equal(complement: bool) -> Identity:
        def residual(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            Z, W = setting.population["A"], t.row_space(setting.population["B"])
            N = linalg.null_space(W.T) if complement else W
            size = float(np.linalg.norm(Z, 2)) ** 2
            left = float(np.linalg.norm(Z @ Z.T - Z @ W @ W.T @ Z.T, 2))
            return np.array([(left - float(np.linalg.norm(Z @ N, 2)) ** 2) / size])

        return Identity(residual)

    places = _pairs()
    return Claim(
        id="ghashami2016:lem3.3-proof",
        paper=PAPER,
        where="Lemma 3.3, proof",
        kind="inequality",
        tex=r"\|v\|\le1,\ v=y^{\top}Z(I-WW^{\top})Z^{\dagger},\ \|y\|=1",
        hypotheses="$W$ spans the rows of a sketch of $Z$. Tried by hand and for sketches of Algorithm 1 with $l=8$.",
        because="False: Z (I - W W') Z^+ is an oblique projection; for diag(10, 1) and (1, 1) its norm is 5.05. What "
        "is needed follows at once from the norm over the complement of W.",
        printed=Form(Inequality(printed), places, "refuted"),
        corrected=Form(
            equal(complement=True),
            places,
            "identity",
            r"\|\hat G-\tilde G\|_2=\max\{\|Zx\|^2:\|x\|=1,\ W^{\top}x=0\}",
        ),
        controls=(Control("the maximum over W", equal(complement=False), places, "wrong operator"),),
    )


def _bullet(deltas: Sequence[float]) -> Claim:
    rank = 1

    def with_tail(cloud: t.Cloud, label: str, numbers: dict[str, float], shapes: dict[str, int]) -> Setting:
        tail = jnp.asarray(t.tails(cloud, rank)[1], cloud.population["gram"].dtype)
        place = cloud.setting(f"{label}, k={rank}", numbers, {**shapes, "rank": rank})
        return Setting(place.name, {**place.population, "tail": tail}, place.numbers, place.shapes)

    def bound(as_printed: bool) -> Callable[[Setting], Bound]:
        def evaluate(setting: Setting) -> Bound:
            spectral = streaming.streaming_gram(
                eps=setting.numbers["eps"],
                num_features=setting.shapes["size"],
                num_points=setting.numbers["n"],
                sketch_size=setting.shapes["rows"],
                as_printed=as_printed,
            )
            right = streaming.best_rank(tail=0.0, spectral=spectral.value, rank=rank, as_printed=as_printed)
            return Bound(right.value, spectral.probability, spectral.valid, "ghashami2016, Section 3")

        return evaluate

    # As for Theorem 3.2: with l = 4 / eps the sketch has eps / 2, and as much is left for the features.
    literal, half, delta, rows = t.grid_then_cluster(20, 10), 0.1, 0.5, 20
    m = math.ceil((9 + 8 * half) * math.log(2 * literal.num_points / delta) / half**2)
    label = f"l={rows}, eps={2 * half:g}, m={m}, delta={delta:g}"
    shapes = {"size": m, "rows": rows, "shrink_at": 0}
    printed = with_tail(literal, label, {"eps": half, "kept": literal.num_points}, shapes)
    # The larger cluster comes last, so that it is the first direction of G.
    cloud, share, many = t.clusters(12, 116), 0.12, 64

    def place(delta: float) -> Setting:
        m = math.ceil((2 + 4 * share / 3) * math.log(2 * cloud.num_points / delta) / share**2)
        numbers = {"eps": share, "kept": float(cloud.num_points)}
        shapes = {"size": m, "rows": many, "shrink_at": many // 2}
        return with_tail(cloud, f"l={many}, m={m}, delta={delta:g}", numbers, shapes)

    corrected = tuple(map(place, deltas))
    dropped = controls.changed(corrected[:1], "the first cluster seen", numbers={"kept": 12.0})
    corrected_statement = Tail(t.stream_rank_excess, bound(as_printed=False))
    return Claim(
        id="ghashami2016:frobenius-stream",
        paper=PAPER,
        where="Section 3, second bullet",
        kind="algorithm guarantee",
        tex=r"\|G-\tilde G_k\|_F\le\|G-G_k\|_F+\epsilon\sqrt k\,n\text{ w.p. }1-\delta",
        hypotheses="As Theorem 3.2, with the best approximations of rank $k$. The corrected form decomposes after the "
        "last row; tried with the Gaussian kernel and $k=1$.",
        because="Algorithm 1 to the letter ignores its last rows, which may hold the first direction of G; and Lemma "
        "3.5, from which it is to follow, needs 2 sqrt(2) for 1.",
        printed=Form(Tail(t.stream_rank_excess, bound(as_printed=True)), (printed,), "refuted"),
        corrected=Form(
            corrected_statement,
            corrected,
            "certified",
            r"\|G-\tilde G_k\|_F\le\|G-G_k\|_F+2\sqrt2\,(\epsilon+4/l)\sqrt k\,n",
        ),
        controls=(Control("the last rows dropped", corrected_statement, dropped, "rows dropped"),),
    )
