"""Principal components of the features of a fitted map: randomized nonlinear component analysis (RNCA)."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern._distances import safe_sqrt
from jaxkern._types import Array, ArrayLike, FeatureMap, Float
from jaxkern._weights import mass, number, present
from jaxkern.features._map import as_map
from jaxkern.linalg import eigen_rows, matmul
from jaxkern.pytrees import pytree, static


@pytree
class RandomFeaturePCA:
    """The map of `random_feature_pca`, of points (..., dim).

    Attributes
    ----------
    feature_map : the map of which features are taken, (..., dim) -> (..., M).
    basis : (M, num_components), orthonormal columns b_1, b_2, ...; those of dropped directions are zero.
    mean : (M,), the mean of the features over X; zero unless centred.
    eigenvalues : (num_components,), the largest ones of the (centred) covariance of the features over X, divided by N
        and not by N - 1, descending; zero if dropped. Centred, they are the variances of the new features over X.
    total_variance : scalar, the sum of all eigenvalues of the covariance.
    rank : scalar int32 in [0, num_components], the number of directions kept. The features after these are zero.
    centered : static.
    """

    feature_map: Any
    basis: jax.Array
    mean: jax.Array
    eigenvalues: jax.Array
    total_variance: jax.Array
    rank: jax.Array
    centered: bool = static(default=True)

    @property
    def num_features(self) -> int:
        """Number of features, the components asked for."""
        return self.basis.shape[1]

    @property
    def explained_variance(self) -> Float[Array, " num_features"]:
        """Variances of the features of X along the components, (num_features,): the eigenvalues."""
        return self.eigenvalues

    @property
    def explained_variance_ratio(self) -> jax.Array:
        """The same as fractions of the total variance; zero where that is zero."""
        none = self.total_variance == 0
        return jnp.where(
            none, 0, self.eigenvalues / jnp.where(none, 1, self.total_variance)
        )

    def __call__(
        self, X: Float[ArrayLike, "... dim"]
    ) -> Float[Array, "... num_features"]:
        """Return (phi(X) - mean) basis, (..., num_features) for X (..., dim)."""
        Z = checks.points("features of X", self.feature_map(X), dim=self.basis.shape[0])
        return _project(
            self.basis,
            self.mean,
            checks.same_dtype("features of X", Z, "the fitted map", self.basis),
        )


def random_feature_pca(
    phi: FeatureMap,
    X: Float[ArrayLike, "N dim"],
    *,
    num_components: int,
    centered: bool = True,
    weights: Float[ArrayLike, " N"] | None = None,
) -> RandomFeaturePCA:
    """Fit principal components of features: x -> B^T (phi(x) - mean), B the leading eigenvectors of their covariance.

    The covariance is C = (1/N) sum_i (z_i - mean)(z_i - mean)^T, z_i = phi(X_i), mean that of the z_i, or 0 with
    `centered=False`. This is kernel PCA with <phi(x), phi(y)> in place of K(x, y), at a cost linear in N: where the two
    agree on the data so do the new features, up to signs, with the normalised ones of `kernel_pca` with all of X as
    landmarks, whose eigenvalues are N times those here. With weights w, mean and covariance are those of w / sum(w).

    Parameters
    ----------
    phi : a feature map, drawn or fitted: any callable (..., dim) -> (..., M). A PyTree keeps its parameters as leaves.
    X : (N, dim) points.
    num_components : number of new features, in [1, min(N, M)]; N - 1 directions at most are not zero where centred.
    centered : static; whether features are centred at their mean over X.
    weights : (N,) non-negative weights in the dtype of X, of any positive sum; a row of weight 0 does not exist,
        whatever it holds. By default all are 1.

    Returns
    -------
    RandomFeaturePCA, a callable PyTree. Directions with eigenvalue at most eps(dtype) * min(N, M) * max(largest
    eigenvalue, largest mean square of the same features before they are centred) are rounding: their features are zero,
    and its field `rank` counts the others.

    Notes
    -----
    O(N M min(N, M) + min(N, M)^3) time and O(N M + min(N, M)^2) memory to fit, beyond the features of X; for few
    components of many features and points the cubic term is that of a partial eigensolver, as in `kernel_pca`. Mapping
    a point takes M num_components multiply-adds beyond its features. The sign of each new feature is arbitrary.
    Derivatives are right where eigenvalues coincide, too, as in `kernel_pca`. Source: lopez2014; ghashami2016, Section
    1.2 and Section 4 (RNCA), uncentred.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.features import paired_fourier
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> phi = paired_fourier(jax.random.key(1), Gaussian(1.0), 3, num_frequencies=8)
    >>> random_feature_pca(phi, X, num_components=2)(X).shape
    (100, 2)
    """
    if isinstance(phi, type) or not callable(phi):
        raise ValueError(
            f"phi must be a feature map, a callable (..., dim) -> (..., M), got {phi!r}"
        )
    phi = as_map(phi)
    X = checks.matrix("X", X)
    weights = checks.weights(weights, "X", X)
    if weights is not None:
        X = present(X, weights)
    Z = checks.matrix("phi(X)", phi(X))
    if Z.shape[0] != X.shape[0]:
        raise ValueError(
            f"phi must return one row for each of the {X.shape[0]} rows of X, got shape {Z.shape}"
        )
    num_components = checks.count(
        "num_components",
        num_components,
        maximum=min(Z.shape),
        limit="the number of points and of features",
    )
    centered = checks.flag("centered", centered)
    return _random_feature_pca(
        phi, Z, weights, num_components=num_components, centered=centered
    )


@partial(jax.jit, static_argnames=("num_components", "centered"))
def _random_feature_pca(
    phi: Any, Z: Any, weights: Any, *, num_components: int, centered: bool
) -> RandomFeaturePCA:
    N, M = Z.shape
    size = None
    if weights is None:
        mean = jnp.mean(Z, axis=0) if centered else jnp.zeros((M,), Z.dtype)
        scaled, raw = (Z - mean[None, :]) / N**0.5, Z / N**0.5
    else:
        shares, size = weights / mass(weights), jnp.minimum(number(weights), M)
        mean = matmul(shares, Z) if centered else jnp.zeros((M,), Z.dtype)
        scaled, raw = (
            safe_sqrt(shares)[:, None] * rows for rows in (Z - mean[None, :], Z)
        )
    # The smaller of two matrices with the same eigenvalues. Centring leaves the rounding of the features themselves,
    # however small what remains is.
    squares = raw * raw
    columns, points = (
        jnp.max(jnp.sum(squares, axis=0)),
        jnp.max(jnp.sum(squares, axis=1)),
    )
    largest = (
        (columns if M <= N else points)
        if weights is None
        else jnp.where(size == M, columns, points)
    )
    if M <= N:
        rows, eigenvalues = eigen_rows(
            matmul(scaled.T, scaled),
            num_components,
            power=0.0,
            largest=largest,
            size=size,
        )
    else:
        rows, eigenvalues = eigen_rows(
            matmul(scaled, scaled.T),
            num_components,
            power=-0.5,
            largest=largest,
            size=size,
        )
        rows = matmul(rows, scaled)
    return RandomFeaturePCA(
        feature_map=phi,
        basis=rows.T,
        mean=mean,
        eigenvalues=eigenvalues,
        total_variance=jnp.sum(scaled * scaled),
        rank=jnp.sum(eigenvalues > 0, dtype=jnp.int32),
        centered=centered,
    )


@jax.jit
def _project(basis: jax.Array, mean: jax.Array, Z: jax.Array) -> jax.Array:
    return matmul(Z - jnp.broadcast_to(mean, Z.shape), basis)
