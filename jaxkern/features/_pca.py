"""Kernel principal components: coordinates in the leading eigenfunctions of the landmarks' covariance operator."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern._distances import safe_sqrt
from jaxkern._types import Array, ArrayLike, Float
from jaxkern._weights import mass, number, present
from jaxkern.features._projection import OffsetProjection
from jaxkern.gram import _center, _gram, _product
from jaxkern.kernels import Kernel, KernelLike, psd_kernel
from jaxkern.linalg import eigen_rows, host_eigenpairs, matmul
from jaxkern.pytrees import pytree, static


@pytree
class KernelPCA(OffsetProjection):
    """The map of `kernel_pca`: `phi(X)` for points, `phi.embed(f)` for functions of the RKHS.

    Normalised, `embed(f)` holds the coordinates of f in the leading eigenfunctions of the (centred) covariance operator
    of the landmarks, which are orthonormal. Uncentred, phi(x) = embed(K_x); centred, phi(x) = embed(K_x - mu_n), mu_n
    the mean of the sections K_{X_i}.

    Attributes
    ----------
    kernel : the kernel.
    landmarks : (n, dim) points X_1, ..., X_n.
    projection : (num_features, n), the matrix Lambda^{-1/2} V^T H, or V^T H where not normalised; H is left out where
        not centred, and rows of dropped directions are zero.
    offset : (num_features,), what is subtracted from every image; zero unless centred.
    eigenvalues : (num_features,), the largest ones of H K H, descending; zero if dropped. Divided by n, or the sum of
        the weights, they are the variances of the normalised features over the landmarks.
    rank : scalar int32 in [0, num_features], the number of directions kept. The features after these are zero.
    total_variance : scalar, tr(H K H) / n, or that of Sigma, the sum of the variances in all directions of the RKHS.
    mean_square : scalar, |mu_n|^2; zero unless centred.
    centered, normalized : static.
    weights : (n,) non-negative weights of the landmarks as they were given, or None.
    definite : scalar bool, False if the matrix of the landmarks has negative eigenvalues that matter: the eigenvalues
        left out add up to less than the root of the sum of their squares. Components of an indefinite kernel are none
        of an RKHS. True does not prove that the kernel is positive semidefinite. None in a map of an older version.
    """

    kernel: Any
    landmarks: jax.Array
    projection: jax.Array
    offset: jax.Array
    eigenvalues: jax.Array
    rank: jax.Array
    total_variance: jax.Array
    mean_square: jax.Array
    centered: bool = static(default=True)
    normalized: bool = static(default=True)
    weights: Any = None
    definite: Any = None

    @property
    def explained_variance(self) -> Float[Array, " num_features"]:
        """Variances of the landmarks along the components, (num_features,): eigenvalues / n."""
        return self.eigenvalues / _total(self.landmarks, self.weights)

    @property
    def explained_variance_ratio(self) -> jax.Array:
        """The same as fractions of the total variance; zero where that is zero."""
        none = self.total_variance == 0
        return jnp.where(
            none, 0, self.explained_variance / jnp.where(none, 1, self.total_variance)
        )

    def reconstruction_residual(
        self, X: Float[ArrayLike, "N dim"]
    ) -> Float[Array, " N"]:
        """Return the squared distance in the RKHS of K_x - mu_n from its projection on the components, (N,).

        The mean over the landmarks is `total_variance` less the sum of `explained_variance`.
        """
        X = checks.matrix("X", X, dim=self.landmarks.shape[1], min_rows=0)
        checks.same_dtype("X", X, "the fitted map", self.landmarks)
        return _residual(self, X)

    def coefficients(
        self, Z: Float[ArrayLike, "N num_features"]
    ) -> Float[Array, "n N"]:
        """Return weights (n, N) on the landmarks' sections of the functions with features Z (N, num_features).

        They include those of mu_n: `Function(kernel, landmarks, coefficients(phi(X)))` projects the sections of X.
        """
        Z = checks.matrix("Z", Z, dim=self.num_features, min_rows=0)
        checks.same_dtype("Z", Z, "the fitted map", self.landmarks)
        weights = matmul(self.projection.T, _normalizing(self, Z).T)
        return (
            weights + _shares(self.landmarks, self.weights)[:, None]
            if self.centered
            else weights
        )


def kernel_pca(
    kernel: KernelLike,
    landmarks: Float[ArrayLike, "n dim"],
    *,
    num_components: int,
    centered: bool = True,
    normalized: bool = True,
    weights: Float[ArrayLike, " n"] | None = None,
) -> KernelPCA:
    """Fit kernel PCA: phi(x) = Lambda^{-1/2} V^T H (k(x) - K 1/n), k(x) = (K(x, X_1), ..., K(x, X_n)).

    K is the Gram matrix of the landmarks X_1, ..., X_n, H = I - 11^T/n, and V Lambda V^T the leading eigenpairs of
    H K H. These are the out-of-sample projections of scikit-learn's KernelPCA; at the landmarks themselves they are the
    rows of V Lambda^{1/2}. With `normalized=False`, phi(x) = V^T H (k(x) - K 1/n): unit eigenvectors, which
    kpotufe2020 uses, weigh each component by a further Lambda^{1/2}. With `centered=False`, H is I and K 1/n left out.
    With weights w, W = diag(w), the mean is that of w / sum(w), V Lambda V^T the leading eigenpairs of
    W^{1/2} H K H^T W^{1/2} with H = I - 1w^T/sum(w), that is of sum(w) Sigma, and V^T W^{1/2} stands for V^T H.

    Parameters
    ----------
    kernel : a positive semidefinite kernel, or a function of two points.
    landmarks : (n, dim) points, all of the data or a uniform subsample; they may repeat.
    num_components : number of features, in [1, n]; n - 1 directions at most are not zero where centred.
    centered : static; whether features are centred at the mean over the landmarks.
    normalized : static; whether eigenfunctions have norm 1 in the RKHS, or eigenvectors norm 1 in R^n.
    weights : (n,) non-negative weights in the dtype of the landmarks, of any positive sum; a row of weight 0 does not
        exist, whatever it holds. By default all are 1.

    Returns
    -------
    KernelPCA, a callable PyTree. Directions with eigenvalue at most eps(dtype) * max(sqrt(n) * largest eigenvalue,
    n * largest entry of K) are rounding: their features are zero, and its field `rank` counts the others.

    Notes
    -----
    Beyond the n^2 kernel evaluations, O(n^3) time and O(n^2) memory to fit, or O(n^2 num_components) a step of a
    partial eigensolver for few components of many landmarks: by the sizes alone (`linalg.prefers_partial`). On a CPU
    and outside of `jit` that is ARPACK while a cache holds K. What does not converge is decomposed in full; totals and
    residuals are exact in either case. Mapping N points takes N n num_components multiply-adds and N n kernel
    evaluations. The sign of each feature is arbitrary.

    Derivatives take a full decomposition. Those of inner products of features, of residuals and of sums of variances
    are right also where eigenvalues coincide, as long as num_components does not divide a group of equal ones. Source:
    scholkopf1998; kpotufe2020, Section 5.2 (experiments).

    Examples
    --------
    >>> import jax
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> kernel_pca(Gaussian(1.0), X[:20], num_components=2)(X).shape
    (100, 2)
    """
    kernel = psd_kernel(kernel)
    landmarks = checks.matrix("landmarks", landmarks)
    n = landmarks.shape[0]
    count = checks.count(
        "num_components", num_components, maximum=n, limit="the number of landmarks"
    )
    centered, normalized = (
        checks.flag("centered", centered),
        checks.flag("normalized", normalized),
    )
    weights = checks.weights(weights, "landmarks", landmarks)
    if weights is not None:
        landmarks = present(landmarks, weights)
    scatter = _scatter(kernel, landmarks, weights, centered)
    pairs = host_eigenpairs(scatter[0], count)
    return _kernel_pca(
        kernel, landmarks, (*scatter, weights), pairs, count, centered, normalized
    )


def _total(landmarks: jax.Array, weights: Any) -> Any:
    return landmarks.shape[0] if weights is None else mass(weights)


def _shares(landmarks: jax.Array, weights: Any) -> jax.Array:
    n = landmarks.shape[0]
    return (
        jnp.full((n,), 1 / n, landmarks.dtype)
        if weights is None
        else weights / mass(weights)
    )


@partial(jax.jit, static_argnums=3)
def _scatter(
    kernel: Kernel, landmarks: jax.Array, weights: Any, centered: bool
) -> tuple[jax.Array, ...]:
    """Return what is decomposed, the largest entry of K, whose rounding centring leaves, and the mean section."""
    C = K = _gram(kernel, landmarks)
    mean = jnp.zeros(K.shape[:1], K.dtype)
    if centered:
        mean = (
            jnp.mean(K, axis=1)
            if weights is None
            else matmul(K, _shares(landmarks, weights))
        )
        C = _center(K, weights)
    if weights is not None:
        root = safe_sqrt(weights)
        C, K = root[:, None] * C * root[None, :], root[:, None] * K * root[None, :]
    return C, jnp.max(jnp.abs(K)), mean


@partial(jax.jit, static_argnums=(4, 5, 6))
def _kernel_pca(
    kernel: Kernel,
    landmarks: jax.Array,
    scatter: Any,
    pairs: Any,
    count: int,
    centered: bool,
    normalized: bool,
) -> KernelPCA:
    (C, largest, mean, weights), power = scatter, -0.5 if normalized else 0.0
    size = None if weights is None else number(weights)
    projection, eigenvalues = eigen_rows(
        C, count, power=power, largest=largest, pairs=pairs, size=size
    )
    # Where centred, orthogonal to 1 already, up to a rounding that the division by a small eigenvalue has made larger.
    if weights is None:
        mean_square = jnp.mean(mean)
        projection = (
            projection - jnp.mean(projection, axis=1, keepdims=True)
            if centered
            else projection
        )
    else:
        shares = _shares(landmarks, weights)
        mean_square, projection = (
            jnp.sum(shares * mean),
            projection * safe_sqrt(weights)[None, :],
        )
        left = jnp.sum(projection, axis=1, keepdims=True) * shares[None, :]
        projection = projection - left if centered else projection
    return KernelPCA(
        kernel=kernel,
        landmarks=landmarks,
        projection=projection,
        offset=matmul(projection, mean),
        eigenvalues=eigenvalues,
        rank=jnp.sum(eigenvalues > 0, dtype=jnp.int32),
        total_variance=jnp.trace(C) / _total(landmarks, weights),
        mean_square=mean_square,
        centered=centered,
        normalized=normalized,
        weights=weights,
        definite=_definite(C, largest, eigenvalues),
    )


def _definite(C: jax.Array, largest: jax.Array, eigenvalues: jax.Array) -> jax.Array:
    """Return whether the eigenvalues left out can all be non-negative: then their sum bounds the root of their squares.

    Both are known without them, from the trace and the Frobenius norm of C, up to the cut-off of an eigenvalue.
    """
    n, scale = C.shape[0], jnp.where(largest > 0, largest, 1)
    C, values = C / scale, eigenvalues / scale
    rounding = len(values) * n * jnp.finfo(C.dtype).eps * jnp.maximum(values[0], 1)
    total = jnp.trace(C) - jnp.sum(values) + rounding
    squares = jnp.sum(C * C) - jnp.sum(values * values) - rounding * (1 + 2 * values[0])
    return (total >= 0) & (total * total >= squares)


def _normalizing(phi: KernelPCA, Z: jax.Array) -> jax.Array:
    """Return W (N, num_features) for which the rows of W P are the weights of the functions with features Z (N, .)."""
    if phi.normalized:
        return Z
    return matmul(
        Z, _inverse_gram(phi.kernel, phi.landmarks, phi.projection, phi.eigenvalues)
    )


@jax.custom_jvp
def _inverse_gram(
    kernel: Any,  # noqa: ARG001
    landmarks: jax.Array,  # noqa: ARG001
    projection: jax.Array,  # noqa: ARG001
    eigenvalues: jax.Array,
) -> jax.Array:
    """Return the inverse of P K P' for the unit eigenvectors P, (num_features, n); zero in dropped directions.

    P K P' is the diagonal matrix of the eigenvalues. Its derivative is not diagonal where some of these are equal: the
    eigenvalues alone do not know it, and a residual differentiated through them would be wrong there.
    """
    kept = eigenvalues > 0
    return jnp.diag(jnp.where(kept, 1 / jnp.where(kept, eigenvalues, 1), 0))


@_inverse_gram.defjvp
def _inverse_gram_jvp(primals: Any, tangents: Any) -> Any:
    def of_rows(kernel: Any, landmarks: jax.Array, projection: jax.Array) -> jax.Array:
        return matmul(projection, _product(kernel, landmarks, landmarks, projection.T))

    inverse = _inverse_gram(*primals)
    _, change = jax.jvp(of_rows, primals[:3], tangents[:3])
    return inverse, -matmul(matmul(inverse, change), inverse)


@jax.jit
def _residual(phi: KernelPCA, X: jax.Array) -> jax.Array:
    features = phi(X)
    size = phi.kernel._diagonal(X)
    if phi.centered:
        shares = _shares(phi.landmarks, phi.weights)
        size = (
            size - 2 * _product(phi.kernel, X, phi.landmarks, shares) + phi.mean_square
        )
    return jnp.maximum(
        size - jnp.sum(features * _normalizing(phi, features), axis=1), 0
    )
