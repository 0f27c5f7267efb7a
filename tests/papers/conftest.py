"""The claims of the register, made once a process in double precision, as a run of the command makes them."""

import jax
import numpy as np
import pytest

from proofs_check import register
from proofs_check.engine import samples


@pytest.fixture(scope="session")
def registered():
    with jax.enable_x64(True), jax.debug_key_reuse(False):
        return {claim.id: claim for claim in register.claims()}


@pytest.fixture
def claims(registered):
    # The checker takes the splits of jax.random.multinomial for reuse.
    with jax.enable_x64(True), jax.debug_key_reuse(False):
        yield registered


@pytest.fixture
def compared(claims):
    """Return what an inequality compares at one of its settings: left sides and bounds, as an array."""

    def evaluate(name, form, number):
        part = getattr(claims[name], form)
        pairs = samples.evaluate(
            part.statement.sides, part.settings[number], lambda: jax.random.key(0)
        )
        return np.array([(left, float(right.value)) for left, right in pairs])

    return evaluate
