"""The Nystrom map: the projection onto the landmarks' span, of whatever is drawn and against textbook formulas.

Inner products of features are compared with the Gram matrix up to SLACK times the rounding of a kernel value. A
direction whose eigenvalue is rounding is dropped. One whose eigenvalue is little more has features that are rounding:
that costs as much if both points are landmarks, and its square root otherwise.
"""

import dataclasses

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from numpy.testing import assert_allclose
from support.drawn import PLAIN, N, drawn
from support.numerics import literal_gram, up_to_sign

from jaxkern import features, rkhs

SLACK = 60
RANK = house.FEATURES


@jax.jit
def approximations(kernel, X, Y):
    """Return features of all points and what the maps say of themselves, by one program for all cases."""
    few = features.nystrom(kernel, X[: N // 2], X=X)
    full = features.nystrom(kernel, X)
    Z = jnp.concatenate([X, Y])
    return {
        "few": few(Z),
        "full": full(Z),
        "rank": full.rank,
        "eigenvalues": full.eigenvalues,
        "dropped": full.trace_residual,
        "left": few.trace_residual,
    }


def results_of(case):
    kernel, X, Y, _ = case.given()
    return jax.tree.map(np.float64, approximations(kernel, X, Y))


def least(A):
    return np.linalg.eigvalsh((A + A.T) / 2)[0]


def check(case, results):
    """Assert all that holds of the results of a case."""
    exact = case.exact()
    K = exact.G
    trace = np.trace(K[:N, :N])
    few = results["few"] @ results["few"].T
    full = results["full"] @ results["full"].T
    rounding = SLACK * exact.spread * exact.size * house.eps()
    gap = np.abs(full - K)
    assert gap[:N, :N].max() <= N**0.5 * rounding, "on landmarks"
    # Beside landmarks a direction whose eigenvalue is little more than rounding is not divided out.
    root = (rounding * exact.size) ** 0.5
    assert gap[:N].max() <= N**0.5 * root, "beside landmarks"
    assert least(K - full) >= -2 * N * root, "all below K"
    assert least(K - few) >= -2 * N * root, "few below K"
    # Unless a direction of the few was dropped as rounding of the many.
    more = least(full - few)
    assert more >= -2 * N * root or results["rank"] < N, "more landmarks"
    # An eigenvalue moves by the norm of the rounding of N x N entries at most.
    rounding *= 2 * N
    values = np.linalg.eigvalsh(K[:N, :N])[::-1]
    estimates = results["eigenvalues"]
    assert np.abs(estimates - values).max() <= rounding, "eigenvalues"
    rank = int(results["rank"])
    assert not estimates[rank:].any(), "dropped eigenvalues"
    assert not results["full"][:, rank:].any(), "dropped directions"
    # Points that repeat add no direction.
    distinct = np.unique(case.given()[1], axis=0)
    assert rank <= len(distinct), "the rank"
    dropped = trace - estimates.sum()
    assert abs(results["dropped"] - dropped) <= rounding, "what was dropped"
    left = trace - np.trace(few[:N, :N])
    assert abs(results["left"] - left) <= rounding, "what is left"


@given(case=drawn())
@example(case=PLAIN)
def test_projections_are_exact_where_they_should_be_and_below_k(case):
    check(case, results_of(case))


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_cut_offs_do_not_depend_on_the_size_of_the_kernel(size):
    case = dataclasses.replace(PLAIN, parts=(size, 0.0, 0.0))
    check(case, results_of(case))


def test_wrong_projections_are_caught():
    results = results_of(PLAIN)
    full = results["full"]
    mistakes = (
        ("on landmarks", {"full": 2 * full}),
        ("beside landmarks", {"full": np.concatenate([full[:N], 2 * full[N:]])}),
        ("few below K", {"few": 1.5 * results["few"]}),
        ("eigenvalues", {"eigenvalues": results["eigenvalues"] / N}),
        ("what was dropped", {"dropped": results["left"]}),
        ("what is left", {"left": results["dropped"]}),
    )
    for name, changes in mistakes:
        with pytest.raises(AssertionError, match=name):
            check(PLAIN, results | changes)


def test_an_absolute_cut_off_is_caught():
    """Of points on a line the Gram matrix has eigenvalues that are rounding, and what divides by them is, too."""
    case = dataclasses.replace(PLAIN, arrangement="on a line")
    K = case.exact().G.astype(house.dtype())
    values, vectors = np.linalg.eigh(K[:N, :N])
    roots = np.sqrt(np.maximum(values, house.eps() ** 2))
    absolute = {"full": np.float64(K[:, :N] @ (vectors / roots))}
    results = results_of(case)
    check(case, results)
    with pytest.raises(AssertionError, match="on landmarks"):
        check(case, results | absolute)


def test_features_are_the_textbook_ones_and_coordinates_in_an_orthonormal_system():
    data = house.data()
    phi = features.nystrom(house.KERNEL, data.landmarks, rank=RANK)
    K = literal_gram(data.landmarks, data.landmarks)
    values, vectors = np.linalg.eigh(K)
    rows = vectors.T[::-1][:RANK] / np.sqrt(values[::-1][:RANK, None])
    expected = literal_gram(data.X, data.landmarks) @ rows.T
    # Rounding of the kernel through the inverse of the Gram matrix.
    allowed = 10 * len(K) * house.eps() * np.linalg.cond(K)
    Z = np.float64(phi(data.X))
    P = np.float64(phi.projection)
    assert_allclose(up_to_sign(Z, expected), expected, atol=allowed)
    assert_allclose(phi.eigenvalues, values[::-1][:RANK], rtol=allowed)
    assert_allclose(P @ K @ P.T, np.eye(RANK), atol=allowed)
    assert int(phi.rank) == phi.num_features == RANK
    f = rkhs.Function(house.KERNEL, data.X, data.values)
    assert_allclose(phi.embed(f), data.values.T @ Z, atol=10 * allowed)


def test_the_trace_residual_is_taken_over_blocks_of_rows():
    """A block has 1,024 rows, so that 1,201 make a whole one and a padded one."""
    data = house.data()
    many = np.tile(data.X, (51, 1))[:1201]
    phi = features.nystrom(house.KERNEL, data.landmarks, rank=RANK, X=many)
    Z = np.float64(phi(data.X))
    left = np.tile(1 - (Z**2).sum(axis=1), 51)[:1201].sum()
    assert float(phi.trace_residual) == pytest.approx(left, rel=1201 * house.eps())
