"""Algorithm 1 of ghashami2016 to the letter, against the library's sketch."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import frequent_directions as fd
from proofs_check.papers.ghashami2016 import algorithm1


def test_points_chosen_after_the_features_have_cosines_of_one(claims):
    Z = algorithm1.sign_rows(range(64))
    np.testing.assert_allclose(np.abs(Z), math.sqrt(2 / 64), rtol=1e-12)
    np.testing.assert_allclose(Z @ Z.T, 2 * np.eye(64), atol=1e-12)


@pytest.mark.parametrize("rows", [29, 31])
def test_algorithm_1_is_the_librarys_sketch_shrunk_at_half(claims, rows):
    """The library decomposes a full buffer when the next row comes, and the paper at once: these do not fill it."""
    A = algorithm1.decaying()[:rows]
    B, W = algorithm1.algorithm_1(A, 8, last=True)
    state = fd.update(fd.init(8, 24, A.dtype, shrink_at=4), jnp.asarray(A))
    sketch = fd.finalize(state)
    library = np.asarray(sketch.rows)
    basis = np.asarray(sketch.basis)
    np.testing.assert_allclose(B.T @ B, library.T @ library, atol=1e-12)
    np.testing.assert_allclose(W @ W.T, basis @ basis.T, atol=1e-9)
