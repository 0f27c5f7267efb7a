"""vmap is natural: over stacked data sets, kernels, weights and keys it gives what a loop gives, in one program.

Every function that another property module is about is here once, in the higher precision of the platform.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from support.drawn import DIM, PLAIN, PRECISIONS, N, drawn, natural, programs_of

from jaxkern import clustering, features, frequent_directions, measures, metrics, problems, rkhs
from jaxkern.bounds import concentration
from jaxkern.gram import gram, kernel_distance
from jaxkern.kernels import Gaussian
from jaxkern.linalg import matmul

DTYPE = PRECISIONS[-1]


def operators(key, kernel, X, Y, w):
    S, sigma = rkhs.SamplingOperator(kernel, X), rkhs.Covariance(kernel, X, w, centered=True)
    f = rkhs.section(kernel, Y)
    norms = sigma.op_norm(), sigma.hs_norm(), sigma.trace(2.5)
    return S(f), S.adjoint(w)(Y), sigma.mean()(Y), norms, sigma(f, power=3)(Y), sigma.inner(f, f, power=3)


def draws(key, kernel, X, Y, w):
    sigma, (one, two) = rkhs.Covariance(kernel, X, w), jax.random.split(key)
    theta = rkhs.RandomProjection(two, sigma, num_features=5)
    return (
        rkhs.draw_gaussian(one, sigma, power=3, num_draws=4)(Y),
        theta(rkhs.section(kernel, Y)),
        theta.adjoint(w[:5])(Y),
    )


def kernel_jl(key, kernel, X, Y, w):
    phi = features.kernel_jl(key, kernel, X, num_features=5, centered=True)
    return phi.projection, phi.offset, phi(Y)


def projections(key, kernel, X, Y, w):
    few, pca = features.nystrom(kernel, X[: N // 2], X=X), features.kernel_pca(kernel, X, num_components=4)
    Z = few(Y)
    return matmul(Z, Z.T), few.trace_residual, pca.eigenvalues, pca.reconstruction_residual(Y)


def fourier(key, kernel, X, Y, w):
    """Return features, and how far kernel values and distances are from those that they stand for."""
    kernel = Gaussian(jax.tree.leaves(kernel)[0])
    Z = features.fastfood(key, kernel, DIM, num_frequencies=4, dtype=X.dtype)(X)
    return Z, metrics.spectral_error(gram(kernel, X), matmul(Z, Z.T)), kernel_distance(kernel, X, Y)


def sketches(key, kernel, X, Y, w):
    """Return products of the rows of sketches, which have signs, and what each says that it lost."""
    phi = features.paired_fourier(key, Gaussian(jax.tree.leaves(kernel)[0]), DIM, num_frequencies=4, dtype=X.dtype)
    pca = features.streaming_pca(phi, sketch_size=3)
    state = pca.merge(pca.update(pca.init(), X, w), pca.update(pca.init(), Y))
    fitted = pca.finalize(state, num_components=2)
    odd = frequent_directions.finalize(
        frequent_directions.update(frequent_directions.init(3, DIM, X.dtype, shrink_at=1), Y, w)
    )
    kept = fitted(Y)
    return matmul(kept, kept.T), fitted.residual, matmul(odd.rows.T, odd.rows), odd.shrinkage


def concentration_of(key, kernel, X, Y, w):
    kernel = Gaussian(jax.tree.leaves(kernel)[0])
    noise = measures.IsotropicNoise(kernel.lengthscale * (0.1 + w))
    points = problems.perturb(key, X, noise, law=problems.GaussianLaw()).points
    mean = measures.mean_kernel(kernel, X, noise)
    numbers = {"lipschitz": jnp.exp(-0.5) / kernel.lengthscale, "omega": 1.0, "num_points": N, "t": 1.0}
    bound = concentration.distance_kernel(**numbers, scale=jnp.sqrt(jnp.max(noise.op_norm(X))))
    return points, mean, metrics.spectral_error(mean, gram(kernel, points)), bound.value


def clusters(key, kernel, X, Y, w):
    """Places are far apart with 2, 4 and 6 points each, so that neither eigenvectors nor labels hang on rounding."""
    places = jnp.eye(3, DIM, dtype=X.dtype)[np.repeat(np.arange(3), [2, 4, 6])]
    X = jax.tree.leaves(kernel)[0] * (6 * places + X / jnp.max(jnp.abs(X)) / 100)
    found = clustering.kernel_spectral(key, kernel, X, 3, weights=w + 1, num_restarts=2)
    K = gram(kernel, X)
    other = clustering.spectral_from_gram(jax.random.fold_in(key, 1), K, 3, num_restarts=2)
    # Restarts that find the same clusters are told apart by rounding alone: the clusters count, not their numbers.
    together = [labels[:, None] == labels[None, :] for labels in (found.labels, other.labels, other.predict(K))]
    return found.eigenvalues, found.objective, together


LONG = (sketches, clusters)
OTHERS = (operators, draws, kernel_jl, projections, fourier, concentration_of)  # what the contracts map by default, too


@pytest.mark.parametrize("function", [*LONG, *(pytest.param(other, marks=pytest.mark.slow) for other in OTHERS)])
@given(case=drawn())
def test_functions_are_mapped_over_data_sets_kernels_weights_and_keys(function, case):
    def cases():
        return [(c.key(), *c.given(DTYPE)) for c in (case, PLAIN)]

    with jax.enable_x64(DTYPE == "float64"):
        natural(function, cases, 1e4 * float(jnp.finfo(DTYPE).eps))  # phases of far points are a thousand
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
