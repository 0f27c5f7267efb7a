"""ghashami2016: steps of the proofs of Lemmas 3.2 and 3.3, and the Frobenius bound of Section 3 for the stream."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg

from jaxkern.bounds import Bound, streaming
from proofs_check import controls
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting, Tail
from proofs_check.papers.ghashami2016 import trials as t
from proofs_check.papers.ghashami2016.places import Scope
from proofs_check.papers.shared import always

PAPER = "ghashami2016"

Sides = Callable[[jax.Array, Setting], list[tuple[float, Bound]]]


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


def _null_space() -> Check:
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
    return Check(
        printed=Form(Inequality(printed), places),
        corrected=Form(Inequality(right(lambda z: z)), places),
        controls=(Control("z with one sign changed", Inequality(right(_flip)), places[:1], "wrong operator"),),
    )


def _flip(z: np.ndarray) -> np.ndarray:
    return np.concatenate([-z[:1], z[1:]])


def _oblique() -> Check:
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
    return Check(
        printed=Form(Inequality(printed), places),
        corrected=Form(equal(complement=True), places),
        controls=(Control("the maximum over W", equal(complement=False), places, "wrong operator"),),
    )


def _bullet(scope: Scope) -> Check:
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

    corrected = tuple(map(place, scope.deltas))
    dropped = controls.changed(corrected[:1], "the first cluster seen", numbers={"kept": 12.0})
    corrected_statement = Tail(t.stream_rank_excess, bound(as_printed=False))
    return Check(
        printed=Form(Tail(t.stream_rank_excess, bound(as_printed=True)), (printed,)),
        corrected=Form(corrected_statement, corrected),
        controls=(Control("the last rows dropped", corrected_statement, dropped, "rows dropped"),),
    )
