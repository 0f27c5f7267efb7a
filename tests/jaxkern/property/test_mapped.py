"""vmap is natural: over stacked data sets, kernels, weights and keys it gives what a loop gives, in one program.

Of whatever is drawn: streams and spectral clusterings, in the higher precision of the platform. By default the contract
(test_contract.py) maps all other functions that property modules are about, and leaves these to them.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from support.drawn import DIM, PLAIN, PRECISIONS, drawn, natural, programs_of

from jaxkern import clustering, features, frequent_directions
from jaxkern.gram import gram
from jaxkern.kernels import Gaussian
from jaxkern.linalg import matmul

DTYPE = PRECISIONS[-1]


def sketches(key, kernel, X, Y, w):
    """Return products of the rows of sketches, which have signs, and what each says that it lost."""
    phi = features.paired_fourier(
        key, Gaussian(jax.tree.leaves(kernel)[0]), DIM, num_frequencies=4, dtype=X.dtype
    )
    pca = features.streaming_pca(phi, sketch_size=3)
    state = pca.merge(pca.update(pca.init(), X, w), pca.update(pca.init(), Y))
    fitted = pca.finalize(state, num_components=2)
    odd = frequent_directions.finalize(
        frequent_directions.update(
            frequent_directions.init(3, DIM, X.dtype, shrink_at=1), Y, w
        )
    )
    kept = fitted(Y)
    return (
        matmul(kept, kept.T),
        fitted.residual,
        matmul(odd.rows.T, odd.rows),
        odd.shrinkage,
    )


def clusters(key, kernel, X, Y, w):
    """Places are far apart with 2, 4 and 6 points each, so that neither eigenvectors nor labels hang on rounding."""
    places = jnp.eye(3, DIM, dtype=X.dtype)[np.repeat(np.arange(3), [2, 4, 6])]
    X = jax.tree.leaves(kernel)[0] * (6 * places + X / jnp.max(jnp.abs(X)) / 100)
    found = clustering.kernel_spectral(key, kernel, X, 3, weights=w + 1, num_restarts=2)
    K = gram(kernel, X)
    other = clustering.spectral_from_gram(
        jax.random.fold_in(key, 1), K, 3, num_restarts=2
    )
    # Restarts that find the same clusters are told apart by rounding alone: the clusters count, not their numbers.
    together = [
        labels[:, None] == labels[None, :]
        for labels in (found.labels, other.labels, other.predict(K))
    ]
    return found.eigenvalues, found.objective, together


@pytest.mark.parametrize("function", [sketches, clusters])
@given(case=drawn())
def test_functions_are_mapped_over_data_sets_kernels_weights_and_keys(function, case):
    def cases():
        return [(c.key(), *c.given(DTYPE)) for c in (case, PLAIN)]

    with jax.enable_x64(DTYPE == "float64"):
        natural(
            function, cases, 1e4 * float(jnp.finfo(DTYPE).eps)
        )  # phases of far points are a thousand
    assert max(programs_of(function)) == 1


@jax.custom_batching.custom_vmap
def doubled(X):
    return 2 * X


@doubled.def_vmap
def first_for_all(size, batched, X):
    return jnp.broadcast_to(2 * X[0], X.shape), True


def test_one_data_set_for_all_and_a_program_for_each_are_caught():
    with jax.enable_x64(DTYPE == "float64"):
        _, X, Y, _ = PLAIN.given(DTYPE)
        with pytest.raises(AssertionError):
            natural(doubled, lambda: [(X,), (Y,)], 0.0)
        natural(doubled, lambda: [(X[1:],), (X[1:],)], 0.0)
    assert programs_of(doubled) == (2, 2)
