"""Nystrom, kernel PCA and Frequent Directions of whatever is drawn: what they are exact for, their order, their errors.

Everything is exact, and compared with matrices in float64 up to rounding: of a Gram matrix, its eigenvalues or a
product of features, SLACK times the rounding of a kernel value. A direction whose eigenvalue is rounding is dropped,
and one whose eigenvalue is little more has features that are: where both points are landmarks that costs as much, with
another point its square root.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from support.drawn import PLAIN, N, drawn, in_every_precision, in_one_precision

from jaxkern import features, frequent_directions
from jaxkern.bounds import streaming
from jaxkern.linalg import matmul

KEPT, SLACK = 4, 60


@jax.jit
def approximations(kernel, X, Y):
    """Return inner products of features of all points, and what the maps say of themselves."""
    Z = jnp.concatenate([X, Y])
    few, all_of_them = (
        features.nystrom(kernel, X[: N // 2]),
        features.nystrom(kernel, X),
    )
    pca = features.kernel_pca(kernel, X, num_components=KEPT)
    plain = features.kernel_pca(kernel, X, num_components=KEPT, centered=False)
    found = {
        name: matmul(phi(Z), phi(Z).T)
        for name, phi in {"few": few, "all": all_of_them}.items()
    }
    found |= {
        name: matmul(phi(X), phi(X).T)
        for name, phi in {"centred": pca, "plain": plain}.items()
    }
    return found | {
        "rank": all_of_them.rank,
        "left": features.nystrom(kernel, X[: N // 2], X=X).trace_residual,
        "eigenvalues": jnp.stack([pca.eigenvalues, plain.eigenvalues]),
        "total": pca.total_variance,
        "residual": jnp.mean(pca.reconstruction_residual(X)),
        "explained": jnp.sum(pca.explained_variance),
    }


def least(A):
    return np.linalg.eigvalsh((A + A.T) / 2)[0]


def off(case, dtype, sabotage=lambda found: found):
    """Return the names of the statements that are not true."""
    with jax.enable_x64(dtype == "float64"):
        found = sabotage(
            jax.tree.map(np.float64, approximations(*case.given(dtype)[:3]))
        )
        exact = case.exact(dtype)
    G, one = exact.G, SLACK * exact.spread * exact.size * float(jnp.finfo(dtype).eps)
    rounding, root = 2 * N * one, 2 * N * (one * exact.size) ** 0.5
    K, H = G[:N, :N], np.eye(N) - 1 / N
    told = {
        "exact on landmarks": np.abs(found["all"] - G)[:N, :N].max() <= one * N**0.5,
        "exact beside landmarks": np.abs(found["all"] - G)[:N].max()
        <= (N * one * exact.size) ** 0.5,
        "below K": least(G - found["all"]) >= -root
        and least(G - found["few"]) >= -root,
        "more landmarks": found["rank"] < N
        or least(found["all"] - found["few"]) >= -root,
        "what is left": abs(found["left"] - np.trace((G - found["few"])[:N, :N]))
        <= rounding,
        "the residual": abs(found["residual"] - (found["total"] - found["explained"]))
        <= rounding / N,
        "the total": abs(found["total"] - np.trace(H @ K @ H) / N) <= rounding / N,
    }
    for i, (name, matrix) in enumerate({"centred": H @ K @ H, "plain": K}.items()):
        values = np.linalg.eigvalsh(matrix)[::-1]
        told[f"eigenvalues, {name}"] = (
            np.abs(found["eigenvalues"][i] - values[:KEPT]).max() <= rounding
        )
        # Eckart and Young: no matrix of this rank is closer.
        told[f"best of its rank, {name}"] = (
            np.linalg.norm(matrix - found[name], 2) <= values[KEPT] + rounding
        )
        told[f"below K, {name}"] = least(matrix - found[name]) >= -rounding
    return {name for name, is_so in told.items() if not is_so}


@in_every_precision
@given(case=drawn())
@example(case=PLAIN)
def test_projections_are_exact_where_they_should_be_below_k_and_the_best_of_their_rank(
    dtype, case
):
    assert not off(case, dtype)


@in_one_precision
def test_wrong_projections_are_caught(dtype):
    def changed(name, change):
        return off(PLAIN, dtype, lambda found: found | {name: change(found)})

    assert changed("all", lambda found: 2 * found["all"]) >= {
        "exact on landmarks",
        "below K",
    }
    assert changed("all", lambda found: found["few"] - 0.5 * np.eye(2 * N)) >= {
        "exact on landmarks",
        "more landmarks",
    }
    assert changed("centred", lambda found: found["plain"]) == {
        "best of its rank, centred",
        "below K, centred",
    }
    assert changed("eigenvalues", lambda found: found["eigenvalues"] / N) == {
        "eigenvalues, centred",
        "eigenvalues, plain",
    }


SKETCHES = [
    (3, 4),
    (4, 2),
    *(
        pytest.param(*sizes, marks=pytest.mark.slow)
        for sizes in ((5, 2), (4, 5), (3, 1))
    ),
]
"""Sizes with shrink_at: the default, and that of Algorithm 1 of ghashami2016, for even and odd sizes."""


@partial(jax.jit, static_argnames=("size", "shrink_at"))
def sketch(rows, weights, *, size, shrink_at):
    """Return rows and certificates of sketches: one stream, two merged, the first of these, and one with weights."""
    empty = frequent_directions.init(
        size, rows.shape[1], rows.dtype, shrink_at=shrink_at
    )
    halves = [frequent_directions.update(empty, part) for part in (rows[:N], rows[N:])]
    states = (
        frequent_directions.update(empty, rows),
        frequent_directions.merge(*halves),
        halves[0],
    )
    weighted = frequent_directions.update(empty, rows[:N], weights)
    return [
        (found.rows, found.shrinkage)
        for found in map(frequent_directions.finalize, (*states, weighted))
    ]


def certificates(case, dtype, size, shrink_at, which=0):
    """Return what is wrong with one of the sketches of rows with the Gram matrix of all points, as one of all rows."""
    with jax.enable_x64(dtype == "float64"):
        weights = case.given(dtype)[3]
        rows = jnp.asarray(case.exact(dtype).F, dtype)
        B, shrinkage = map(
            np.float64, sketch(rows, weights, size=size, shrink_at=shrink_at)[which]
        )
    A = np.float64(rows)
    if which == 3:
        A = A[:N] * np.sqrt(np.float64(weights))[:, None]
    squares = np.linalg.svd(A, compute_uv=False) ** 2
    rounding = 100 * N * float(jnp.finfo(dtype).eps) * squares.sum()
    lost = np.linalg.eigvalsh(A.T @ A - B.T @ B)
    found = set()
    if lost[0] < -rounding:
        found.add("more than there was")
    if lost[-1] > shrinkage + rounding:
        found.add("the certificate")
    bound = (
        streaming.frequent_directions_buffered
        if shrink_at > size
        else streaming.frequent_directions_rowwise
    )
    for k in range(shrink_at):
        tail = squares[k:].sum()
        limit = tail / (shrink_at - k)
        if shrinkage > limit + rounding:
            found.add("the bound")
        said = bound(residual_energy=tail, sketch_size=size, rank=k)
        assert (
            not said.valid
            or shrink_at not in (size + 1, size)
            or said.value >= limit * (1 - 1e-12)
        )
    return found


@in_every_precision
@pytest.mark.parametrize(("size", "shrink_at"), SKETCHES)
@given(case=drawn())
@example(case=PLAIN)
def test_sketches_lose_no_more_than_their_certificates_which_are_within_the_bound(
    dtype, size, shrink_at, case
):
    """0 <= A'A - B'B <= shrinkage <= |A - A_k|^2 / (p - k) for every k < p: one stream, two merged, and weights."""
    assert not set.union(
        *(certificates(case, dtype, size, shrink_at, which) for which in (0, 1, 3))
    )


@pytest.mark.slow
@in_one_precision
def test_wrong_sketches_are_caught(dtype, monkeypatch):
    assert "the certificate" in certificates(
        PLAIN, dtype, 4, 5, which=2
    )  # half of the rows was dropped
    finalize = frequent_directions.finalize

    def half(state):
        found = finalize(state)
        return type(found)(
            **vars(found) | {"shrinkage": found.shrinkage / 2, "basis": 3 * found.basis}
        )

    monkeypatch.setattr(frequent_directions, "finalize", half)
    sketch.clear_cache()
    assert certificates(PLAIN, dtype, 4, 5) >= {"more than there was"}
    sketch.clear_cache()
