"""PCA of random features: against ordinary PCA of the features, and kernel PCA where the features are exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import eps, up_to_sign

from jaxkern import features
from jaxkern.features import (
    RandomFeaturePCA,
    kernel_pca,
    paired_fourier,
    random_feature_pca,
)
from jaxkern.kernels import Gaussian, Linear
from jaxkern.linalg import prefers_partial

N, DIM, COMPONENTS = 30, 3, 4
FEW, MANY = 5, 25
"""Frequencies: 10 features, fewer than points, and 50, more."""
LENGTHSCALE = 1.5


def data(rng, dtype, n=N):
    return rng.normal(size=(n, DIM)).astype(dtype)


def draw(m, dtype, **options):
    return paired_fourier(
        jax.random.key(0),
        Gaussian(LENGTHSCALE),
        DIM,
        num_frequencies=m,
        dtype=dtype,
        **options,
    )


def fit(phi, X, **options):
    return random_feature_pca(phi, X, **{"num_components": COMPONENTS} | options)


def tolerance(dtype):
    """Rounding of a covariance of norm below 1, through leading eigenvectors with gaps of at least 1e-2."""
    return 1e2 * N * eps(dtype)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("m", [FEW, MANY])
def test_it_is_textbook_pca_of_the_features(m, centered, dtype, rng):
    X, Y = data(rng, dtype), data(rng, dtype)
    phi = draw(m, dtype)
    pca = fit(phi, X, centered=centered)
    Z = np.float64(phi(X))
    mean = Z.mean(0) if centered else np.zeros(2 * m)
    _, singular, axes = np.linalg.svd(Z - mean, full_matrices=False)
    assert np.diff(singular[: COMPONENTS + 1] ** 2 / N).max() < -1e-3
    expected = (np.float64(phi(Y)) - mean) @ axes[:COMPONENTS].T
    found = pca(Y)
    assert (
        isinstance(pca, RandomFeaturePCA)
        and pca.centered is centered
        and pca.num_features == COMPONENTS
    )
    assert (
        found.shape == (N, COMPONENTS)
        and found.dtype == dtype
        and int(pca.rank) == COMPONENTS
    )
    np.testing.assert_allclose(
        up_to_sign(found, expected), expected, rtol=0, atol=10 * tolerance(dtype)
    )
    np.testing.assert_allclose(
        up_to_sign(pca.basis, axes[:COMPONENTS].T),
        axes[:COMPONENTS].T,
        atol=10 * tolerance(dtype),
    )
    np.testing.assert_allclose(pca.mean, mean, rtol=0, atol=4 * eps(dtype))
    own, B = np.float64(pca(X)), np.float64(pca.basis)
    np.testing.assert_allclose(
        own.T @ own / N, np.diag(pca.eigenvalues), rtol=0, atol=tolerance(dtype)
    )
    np.testing.assert_allclose(
        B.T @ B, np.eye(COMPONENTS), rtol=0, atol=tolerance(dtype)
    )
    assert not centered or np.abs(own.mean(0)).max() <= 4 * eps(dtype)
    variances = singular**2 / N
    np.testing.assert_allclose(
        pca.eigenvalues, variances[:COMPONENTS], rtol=0, atol=N * eps(dtype)
    )
    np.testing.assert_allclose(
        pca.explained_variance, variances[:COMPONENTS], rtol=0, atol=N * eps(dtype)
    )
    np.testing.assert_allclose(pca.total_variance, variances.sum(), rtol=N * eps(dtype))
    ratio = variances[:COMPONENTS] / variances.sum()
    np.testing.assert_allclose(
        pca.explained_variance_ratio, ratio, rtol=0, atol=2 * N * eps(dtype)
    )


@pytest.mark.parametrize("m", [105, pytest.param(120, marks=pytest.mark.slow)])
def test_few_components_of_many_features_are_those_of_all(m, x64, rng):
    """By the partial solver, 210 features of 230 points and 240 of them."""
    X = data(rng, "float64", 230)
    phi = draw(m, "float64")
    assert prefers_partial(min(230, 2 * m), COMPONENTS)
    pca, Z = fit(phi, X), np.asarray(phi(X))
    _, singular, axes = np.linalg.svd(Z - Z.mean(0), full_matrices=False)
    np.testing.assert_allclose(
        pca.eigenvalues, singular[:COMPONENTS] ** 2 / 230, rtol=1e-11
    )
    expected = axes[:COMPONENTS].T
    np.testing.assert_allclose(
        up_to_sign(pca.basis, expected), expected, rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(
        pca.total_variance, (singular**2).sum() / 230, rtol=1e-12
    )


def test_the_identity_as_feature_map_gives_principal_components_of_the_points(
    dtype, rng
):
    """A plain function is part of the tree structure; uncentred and linear, it is the kernel PCA of `Linear`, too."""
    X = data(rng, dtype)
    pca = random_feature_pca(jnp.asarray, X, num_components=DIM, centered=False)
    exact = kernel_pca(Linear(), X, num_components=DIM, centered=False)
    np.testing.assert_allclose(
        up_to_sign(pca(X), exact(X)), exact(X), rtol=0, atol=10 * tolerance(dtype)
    )
    assert len(jax.tree.leaves(pca)) == 5


@pytest.mark.parametrize("m", [1, 8])
@pytest.mark.parametrize("centered", [True, False])
def test_directions_that_are_rounding_are_dropped(m, centered, dtype, rng):
    """Six points, all the same or one another, in 2 or 16 features: a direction each, one less where centred."""
    phi, (x, y) = draw(m, dtype), data(rng, dtype, 2)
    for X, rank in (
        (np.stack([x] * 6), 1 - centered),
        (np.stack([x] * 5 + [y]), 2 - centered),
    ):
        pca = random_feature_pca(
            phi, X, num_components=min(6, 2 * m), centered=centered
        )
        assert int(pca.rank) == rank and pca.rank.dtype == jnp.int32
        assert np.isfinite(np.asarray(pca.explained_variance_ratio)).all()
        assert (
            not np.asarray(pca.eigenvalues)[rank:].any()
            and not np.asarray(pca.basis)[:, rank:].any()
        )
        assert (
            not np.asarray(pca(X))[:, rank:].any()
            and np.asarray(pca(X))[:, :rank].any(0).all()
        )


def test_a_point_alone_has_no_components(dtype, rng):
    alone = random_feature_pca(draw(8, dtype), data(rng, dtype, 1), num_components=1)
    assert (
        int(alone.rank) == 0
        and float(alone.total_variance) == 0
        and not np.asarray(alone.explained_variance_ratio)
    )


@pytest.mark.parametrize("dim", [2, 8])
def test_gradients_match_differences_where_variances_are_equal(dim, x64, rng):
    """A regular pentagon, and its image in 8 dimensions, more than there are points."""
    angles = 2 * np.pi * np.arange(5) / 5
    X = (
        np.stack([np.cos(angles), np.sin(angles)], axis=1)
        @ np.linalg.qr(rng.normal(size=(dim, 2)))[0].T
    )
    direction, weights = rng.normal(size=X.shape), rng.normal(size=(5, 5))

    def loss(X):
        pca = random_feature_pca(jnp.asarray, X, num_components=2)
        return jnp.stack(
            [(weights * (pca(X) @ pca(X).T)).sum(), (pca.explained_variance**2).sum()]
        )

    both = jax.jit(lambda X: (loss(X), jax.jacrev(loss)(X)))
    ends = [np.asarray(both(X + sign * 1e-5 * direction)[0]) for sign in (1, -1)]
    found = (np.asarray(both(X)[1]) * direction).sum((1, 2))
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / 2e-5, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"phi": 3.0}, r"phi must be a feature map, a callable .* got 3\.0"),
        ({"phi": features.PairedFourier}, "phi must be a feature map"),
        (
            {"phi": lambda X: X[:2]},
            r"phi must return one row for each of the 5 rows of X, got shape \(2, 3\)",
        ),
        ({"phi": lambda X: X[:, 0]}, r"phi\(X\) must have rank 2"),
        ({"phi": lambda X: X > 0}, r"phi\(X\) must have dtype float32"),
        (
            {"X": np.zeros((5, 2), np.float32)},
            r"X must have shape \(..., 3\), got \(5, 2\)",
        ),
        ({"num_components": 0}, "num_components must be at least 1, got 0"),
        (
            {"num_components": 6},
            "num_components must be at most 5 .the number of points and of features., got 6",
        ),
        ({"centered": 1}, "centered must be True or False, got 1"),
    ],
)
def test_bad_arguments_are_refused_by_name(changes, message):
    arguments = {
        "phi": draw(FEW, "float32"),
        "X": np.zeros((5, 3), np.float32),
        "num_components": 2,
    } | changes
    with pytest.raises(ValueError, match=message):
        random_feature_pca(**arguments)


def test_a_map_of_a_plain_function_refuses_other_features(rng, x64):
    X = data(rng, "float32")
    plain = random_feature_pca(jnp.asarray, X, num_components=2)
    with pytest.raises(
        ValueError, match="features of X must have the dtype of the fitted map"
    ):
        plain(X.astype("float64"))
    with pytest.raises(ValueError, match=r"features of X must have shape \(..., 3\)"):
        plain(X[:, :2])
