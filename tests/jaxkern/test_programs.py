"""Options of the compiler: on a CPU, where a function is called alone, by its size, and none that XLA does not know.

Which options a program was compiled with is seen nowhere else, so the private functions that choose them are replaced.
"""

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import _programs
from jaxkern.linalg import matmul

ON_CPU = jax.default_backend() == "cpu"


def test_options_are_those_of_large_calls_outside_of_every_trace(monkeypatch):
    requests = []
    # From 64 numbers on, so that a product of 16 rows is a large one.
    monkeypatch.setattr(_programs, "_LARGE", 64)
    monkeypatch.setattr(_programs, "known", lambda **names: requests.append(names))
    multiplied = _programs.blockwise(matmul)
    A = jnp.asarray(house.rng().normal(size=(16, 16)), house.dtype())
    small = jnp.asarray(np.eye(4), house.dtype())
    expected = np.asarray(A) @ np.asarray(A)

    def constant(x):
        return multiplied(A, A) + x

    multiplied(small, small)
    jax.jit(multiplied)(A, A)
    jax.jit(constant)(0.0)
    jax.lax.map(lambda x: multiplied(x, A), A[None])
    jax.vmap(multiplied)(A[None], A[None])
    jax.grad(lambda x: multiplied(x, A).sum())(A)
    assert not requests
    tolerance = 1e3 * house.eps()
    for product in (jax.jit(constant)(0.0), multiplied(A, A), multiplied(A, A)):
        np.testing.assert_allclose(product, expected, rtol=0, atol=tolerance)
    assert requests == ([_programs._EIGEN] if ON_CPU else [])  # compiled once
    slope = jax.grad(lambda x: (multiplied(A, A) * x).sum())(1.0)
    assert slope == pytest.approx(expected.sum(), abs=100 * tolerance)
    # Nothing is added to a program that contains the function.
    assert "neg" not in str(jax.make_jaxpr(multiplied)(A, A))


def test_options_that_are_not_known_are_left_out():
    known = _programs.known.__wrapped__
    level = {"xla_backend_optimization_level": 0}
    assert known(xla_no_such_flag=1, **level) == (level if ON_CPU else {})
