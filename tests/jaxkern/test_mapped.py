"""vmap is natural: over stacked data sets, kernels, weights and keys it gives what a loop gives, in one program.

By default the contract (test_contract.py) maps nearly all functions. Streams are left to this module, clusterings to
test_clustering.py and test_kmeans.py.
"""

import house
import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from support.drawn import DIM, PLAIN, drawn, natural, programs_of

from jaxkern import features, frequent_directions
from jaxkern.kernels import Gaussian
from jaxkern.linalg import matmul

pytestmark = pytest.mark.float64


def sketches(key, kernel, X, Y, w):
    """Return products of the rows of sketches, which have signs, and what each says that it lost."""
    kernel = Gaussian(jax.tree.leaves(kernel)[0])
    phi = features.paired_fourier(key, kernel, DIM, num_frequencies=4, dtype=X.dtype)
    pca = features.streaming_pca(phi, sketch_size=3)
    state = pca.merge(pca.update(pca.init(), X, w), pca.update(pca.init(), Y))
    fitted = pca.finalize(state, num_components=2)
    rows = fitted(Y)
    state = frequent_directions.init(3, DIM, X.dtype, shrink_at=1)
    state = frequent_directions.update(state, Y, w)
    sketch = frequent_directions.finalize(state)
    products = matmul(rows, rows.T), matmul(sketch.rows.T, sketch.rows)
    return products, fitted.residual, sketch.shrinkage


@given(case=drawn())
def test_streams_are_mapped_over_data_sets_kernels_weights_and_keys(case):
    def cases():
        return [(c.key(), *c.given()) for c in (case, PLAIN)]

    # Phases of far points are a thousand.
    natural(sketches, cases, 1e4 * house.eps())
    assert max(programs_of(sketches)) == 1


@jax.custom_batching.custom_vmap
def doubled(X):
    return 2 * X


@doubled.def_vmap
def first_for_all(size, batched, X):
    return jnp.broadcast_to(2 * X[0], X.shape), True


def test_one_data_set_for_all_and_a_program_for_each_are_caught():
    _, X, Y, _ = PLAIN.given()
    with pytest.raises(AssertionError):
        natural(doubled, lambda: [(X,), (Y,)], 0.0)
    natural(doubled, lambda: [(X[1:],), (X[1:],)], 0.0)
    assert programs_of(doubled) == (2, 2)
