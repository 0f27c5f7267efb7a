"""The Nystrom map: the projection onto the landmarks' span, against textbook formulas and scikit-learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import eps, literal_gram, up_to_sign

from jaxkern import features, rkhs
from jaxkern.features import _nystrom as module
from jaxkern.gram import gram
from jaxkern.kernels import Distance, Gaussian, Linear, Matern32

N, n, DIM, RANK = 40, 12, 3, 5
LENGTHSCALE = 1.5


def data(rng, dtype):
    """Points and landmarks, the latter spread enough for a Gram matrix with condition number below 1e3."""
    X, L = rng.normal(size=(N, DIM)), 2 * rng.normal(size=(n, DIM))
    return X.astype(dtype), L.astype(dtype)


def literal_map(X, L, rank):
    values, vectors = np.linalg.eigh(literal_gram(L, L, LENGTHSCALE))
    return (
        literal_gram(X, L, LENGTHSCALE)
        @ vectors[:, ::-1][:, :rank]
        / np.sqrt(values[::-1][:rank])
    )


def products(phi, X, Y):
    return np.float64(phi(X)) @ np.float64(phi(Y)).T


def tolerance(dtype):
    """Rounding of the kernel, n eps, through the inverse of a Gram matrix with condition number 1e3."""
    return 1e3 * n * eps(dtype)


def test_features_are_the_textbook_ones(dtype, rng):
    X, L = data(rng, dtype)
    phi = features.nystrom(Gaussian(LENGTHSCALE), L, rank=RANK)
    expected = literal_map(X, L, RANK)
    Z = phi(X)
    assert Z.shape == (N, RANK) == (N, phi.num_features) and Z.dtype == dtype
    np.testing.assert_allclose(up_to_sign(Z, expected), expected, atol=tolerance(dtype))
    assert int(phi.rank) == RANK and phi.rank.dtype == jnp.int32
    values = np.linalg.eigvalsh(literal_gram(L, L, LENGTHSCALE))[::-1]
    np.testing.assert_allclose(phi.eigenvalues, values[:RANK], atol=10 * n * eps(dtype))


def test_functions_have_coordinates_in_an_orthonormal_system(dtype, rng):
    X, L = data(rng, dtype)
    kernel = Gaussian(LENGTHSCALE)
    phi = features.nystrom(kernel, L, rank=RANK)

    @jax.jit
    def found(phi, c):
        system, one = (
            rkhs.Function(kernel, L, phi.projection.T),
            rkhs.Function(kernel, X, c),
        )
        rest = one - rkhs.Function(kernel, L, phi.projection.T @ phi.embed(one))
        pairs = (
            (phi.embed(rkhs.section(kernel, X)), phi(X)),
            (phi.embed(one), rkhs.inner(system, one)),
        )
        return (
            *pairs,
            rkhs.inner(system, system),
            phi.embed(system),
            rkhs.norm(one),
            rkhs.norm(rest),
        )

    *pairs, products, own, length, rest = jax.device_get(
        found(phi, rng.normal(size=N).astype(dtype))
    )
    for (ours, expected), size in zip(pairs, (1, length), strict=True):
        np.testing.assert_allclose(ours, expected, atol=tolerance(dtype) * size)
    for identity in (products, own):
        np.testing.assert_allclose(identity, np.eye(RANK), atol=tolerance(dtype))
    gap = length**2 - (np.float64(pairs[1][0]) ** 2).sum()
    np.testing.assert_allclose(gap, rest**2, rtol=0, atol=tolerance(dtype) * length**2)


def test_landmarks_may_repeat(dtype, rng):
    """Three copies of each: the same span, so the same inner products, and the same number of directions."""
    X, L = data(rng, dtype)
    once = features.nystrom(Gaussian(LENGTHSCALE), L)
    thrice = features.nystrom(Gaussian(LENGTHSCALE), np.concatenate([L, L, L]))
    assert int(once.rank) == int(thrice.rank) == n
    assert (
        not np.asarray(thrice(X))[:, n:].any()
        and not np.asarray(thrice.eigenvalues)[n:].any()
    )
    np.testing.assert_allclose(
        products(thrice, X, X), products(once, X, X), atol=3 * tolerance(dtype)
    )
    values, expected = (
        np.asarray(thrice.eigenvalues)[:n],
        3 * np.asarray(once.eigenvalues),
    )
    np.testing.assert_allclose(values, expected, atol=10 * 3 * n * eps(dtype))


def test_close_landmarks_do_not_spoil_the_map():
    """200 landmarks on a segment, numerically of rank about six: in float32 an absolute cut-off fails here."""
    L = np.float32(np.linspace(0, 1, 200)[:, None])
    truth = literal_gram(L, L, LENGTHSCALE)
    phi = features.nystrom(Gaussian(LENGTHSCALE), L)
    assert 3 <= int(phi.rank) <= 12
    # What is dropped has norm eps n^2 at most, so eps n in an entry; at the ends of the segment a few times that.
    allowed = 10 * 200 * eps("float32")
    np.testing.assert_allclose(products(phi, L, L), truth, atol=allowed)
    values, vectors = np.linalg.eigh(np.asarray(gram(Gaussian(LENGTHSCALE), L)))
    absolute = (
        truth.astype(np.float32)
        @ vectors
        / np.sqrt(np.maximum(values, np.float32(1e-12)))
    )
    assert np.abs(absolute @ absolute.T - truth).max() > 10 * allowed


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_the_cut_off_does_not_depend_on_the_size_of_the_kernel(size, rng):
    X, L = data(rng, "float32")
    L = np.concatenate([L, L])
    plain, scaled = (
        features.nystrom(Gaussian(LENGTHSCALE), L),
        features.nystrom(size * Gaussian(LENGTHSCALE), L),
    )
    assert int(plain.rank) == int(scaled.rank) == n
    np.testing.assert_allclose(
        products(scaled, X, X) / size,
        products(plain, X, X),
        atol=2 * tolerance("float32"),
    )


def test_gradients_of_single_features_match_differences(rng, x64):
    X, L = data(rng, "float64")
    direction, target = rng.normal(size=L.shape), rng.normal(size=(N, RANK))

    @jax.jit
    @jax.value_and_grad
    def loss(L):
        Z = features.nystrom(Gaussian(LENGTHSCALE), L, rank=RANK)(X)
        return (
            (Z * jnp.sign(Z[:1])) * target
        ).sum()  # whatever the sign of the eigenvectors

    difference = (
        float(loss(L + 1e-5 * direction)[0]) - float(loss(L - 1e-5 * direction)[0])
    ) / 2e-5
    assert (np.asarray(loss(L)[1]) * direction).sum() == pytest.approx(
        difference, rel=1e-6
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"kernel": Distance()},
            "kernel must be positive semidefinite to have an RKHS, got Distance",
        ),
        ({"rank": 0}, "rank must be at least 1, got 0"),
        ({"rank": 6}, "rank must be at most 5 .the number of landmarks., got 6"),
    ],
)
def test_bad_arguments_are_refused_by_name(changes, message):
    arguments = {
        "kernel": Gaussian(1.0),
        "landmarks": np.zeros((5, 2), np.float32),
    } | changes
    with pytest.raises(ValueError, match=message):
        features.nystrom(**arguments)


def test_maps_refuse_other_functions(rng):
    X, L = data(rng, "float32")
    jl = features.kernel_jl(jax.random.key(0), Gaussian(LENGTHSCALE), L, num_features=2)
    for phi in (features.nystrom(Gaussian(LENGTHSCALE), L, rank=RANK), jl):
        with pytest.raises(ValueError, match="f must belong to the same kernel"):
            phi.embed(rkhs.section(Linear(), X))
        with pytest.raises(ValueError, match="f must be a Function"):
            phi.embed(X)


def test_the_trace_residual_is_that_of_the_gram_matrices(dtype, rng):
    """Over the data in one pass, with a padded last block; over the landmarks the dropped eigenvalues."""
    X = rng.normal(size=(50, 3)).astype(dtype)
    kernel = Matern32(1.0)
    K = np.float64(gram(kernel, X))
    tolerance = 20 * 50 * float(jnp.finfo(dtype).eps)
    for rank in (None, 4):
        phi = features.nystrom(kernel, X[:10], rank=rank, X=X)
        exact = np.trace(K) - np.sum(np.float64(phi(X)) ** 2)
        assert abs(float(phi.trace_residual) - exact) <= tolerance
        own = features.nystrom(kernel, X[:10], rank=rank)
        dropped = np.linalg.eigvalsh(K[:10, :10])[: 10 - (rank or 10)].sum()
        assert abs(float(own.trace_residual) - dropped) <= tolerance
    assert module._BLOCK > 50
    many = np.tile(X, (25, 1))[:1201]
    blocks = jax.jit(module._trace_residual)(kernel, X[:10], phi.projection, many)
    repeated = np.float64(K[np.arange(1201) % 50, np.arange(1201) % 50]).sum()
    exact = repeated - np.sum(np.float64(phi(many)) ** 2)
    assert abs(float(blocks) - exact) <= 25 * tolerance
