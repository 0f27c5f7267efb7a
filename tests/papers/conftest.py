"""The claims of the register, made once a process in double precision, as a run of the command makes them."""

import jax
import pytest

from proofs_check import register


@pytest.fixture(scope="session")
def made():
    with jax.enable_x64(True), jax.debug_key_reuse(False):
        return {claim.id: claim for claim in register.claims()}


@pytest.fixture
def claims(x64, made):
    with jax.debug_key_reuse(False):  # the checker takes the splits of jax.random.multinomial for reuse
        yield made
