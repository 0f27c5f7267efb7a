"""Options of the compiler: on a CPU, where a function is called alone, by its size, and none that XLA does not know."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import _programs
from jaxkern.linalg import matmul

ON_CPU = jax.default_backend() == "cpu"


@pytest.fixture
def product(monkeypatch):
    """Return a matrix product, and the list of the options that it asked for."""
    monkeypatch.setattr(_programs, "_LARGE", 64)
    asked = []
    monkeypatch.setattr(_programs, "known", lambda **options: asked.append(options))
    return _programs.blockwise(matmul), asked


def test_options_are_those_of_large_calls_outside_of_every_trace(product, rng):
    multiplied, asked = product
    A = jnp.asarray(rng.normal(size=(16, 16)), jnp.float32)
    expected = np.asarray(A) @ np.asarray(A)
    calls = {
        "small": lambda: multiplied(A[:4, :4], A[:4, :4]),
        "of a tracer": lambda: jax.jit(multiplied)(A, A),
        "of constants in a trace": lambda: jax.jit(lambda x: multiplied(A, A) + x)(0.0),
        "in a loop": lambda: jax.lax.map(lambda x: multiplied(x, A), A[None])[0],
        "mapped": lambda: jax.vmap(multiplied)(A[None], A[None])[0],
        "derived": lambda: jax.grad(lambda x: multiplied(x, A).sum())(A),
    }
    for call in calls.values():
        call()
    assert not asked
    for call in (
        calls["of constants in a trace"],
        lambda: multiplied(A, A),
        lambda: multiplied(A, A),
    ):
        np.testing.assert_allclose(call(), expected, rtol=0, atol=1e-4)
    assert asked == ([_programs._EIGEN] if ON_CPU else [])  # compiled once
    slope = jax.grad(lambda x: (multiplied(A, A) * x).sum())(1.0)
    np.testing.assert_allclose(slope, expected.sum(), rtol=0, atol=1e-2)
    assert "neg" not in str(
        jax.make_jaxpr(multiplied)(A, A)
    )  # nothing is added to a program of somebody else


def test_options_that_are_not_known_are_left_out():
    known = _programs.known.__wrapped__
    level = {"xla_backend_optimization_level": 0}
    assert known(xla_no_such_flag=1, **level) == (level if ON_CPU else {})
