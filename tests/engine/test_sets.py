"""Common sets: projections that keep members, and exact members in balls, close to floats."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from proofs_check.engine import enclosures, sets

pytestmark = pytest.mark.skipif(
    not enclosures.available(), reason="python-flint is not installed"
)


# The set, whether a float array is a member up to rounding, and equations (as zeros, in floats or balls) of a member.
SETS = {
    "box": (
        sets.box(-0.5, 0.7),
        lambda x: abs(x - 0.1).max() <= 0.6 + 1e-12,
        lambda x: [],
    ),
    "positive": (sets.positive(0.25), lambda x: x.min() >= 0.25, lambda x: []),
    "simplex": (sets.simplex(), lambda x: x.min() >= 0, lambda x: [x.sum() - 1]),
    "sphere": (sets.sphere(), lambda x: True, lambda x: [(x * x).sum() - 1]),
    "unit_trace": (sets.unit_trace(), lambda x: True, lambda x: [x.trace() - 1]),
    "psd": (
        sets.psd(),
        lambda x: np.linalg.eigvalsh(x).min() > -1e-12,
        lambda x: (x - x.T).ravel(),
    ),
    "psd of trace 2": (
        sets.psd(2.0),
        lambda x: np.linalg.eigvalsh(x).min() > -1e-12,
        lambda x: [*(x - x.T).ravel(), x.trace() - 2],
    ),
    "orthonormal_rows": (
        sets.orthonormal_rows(),
        lambda x: True,
        lambda x: (x @ x.T - np.eye(len(x))).ravel(),
    ),
}


def drawn(name, rng):
    shape = {
        "simplex": (4,),
        "box": (2, 3),
        "positive": (2, 3),
        "orthonormal_rows": (2, 3),
    }.get(name, (3, 3))
    return rng.normal(size=shape)


@pytest.mark.parametrize("name", SETS)
def test_projections_lead_into_the_set_and_keep_its_members(name, rng, x64):
    within, inside, zeros = SETS[name]
    within = jax.jit(within)
    for _ in range(20):
        x = drawn(name, rng)
        near = np.asarray(within(x))
        assert inside(near) and np.all(np.abs(zeros(near)) < 1e-12)
        np.testing.assert_allclose(within(near), near, atol=1e-12)
        # No member is closer: those towards which it could move are on the other side.
        for other in range(10):
            member = np.asarray(within(drawn(name, np.random.default_rng(other))))
            assert np.linalg.norm(x - near) <= np.linalg.norm(x - member) + 1e-12
    assert jax.vmap(within)(jnp.asarray(x)[None]).shape == (1, *x.shape)


@pytest.mark.parametrize("name", SETS)
def test_exact_members_are_members_to_all_digits_and_close(name, rng, x64):
    within, _, zeros = SETS[name]
    for x in (np.asarray(within(jnp.asarray(drawn(name, rng)))) for _ in range(5)):
        with enclosures.precision(256):
            member = within.exact(enclosures.balls(x))
            assert all(abs(enclosures.ball(zero)) < 1e-60 for zero in zeros(member))
            if name.startswith("psd"):
                assert enclosures.eigenvalues(member)[0] > -1e-60
        np.testing.assert_allclose(
            np.frompyfunc(float, 1, 1)(member).astype(float), x, atol=1e-12
        )
