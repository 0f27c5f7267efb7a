"""Principal components of features in a stream: a feature map in front of Frequent Directions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import checks
from jaxkern import frequent_directions as fd
from jaxkern._types import Array, ArrayLike, FeatureMap, Float
from jaxkern.linalg import matmul
from jaxkern.pytrees import pytree, static

_BLOCK_ROWS = 64
"""Rows of a centred stream that are treated at once: their cumulative sums are one product with a triangular matrix."""


@pytree
class StreamingState:
    """A stream of features in progress.

    Attributes
    ----------
    sketch : frequent_directions.State of the rows whose outer products sum to the scatter matrix.
    mean : (m,), the weighted mean of all features seen; zero where not centred.
    weight : (2,), the sum of the weights, that is the number of points where they are 1, and the rounding of that sum.
    centered : static.
    """

    sketch: fd.State
    mean: jax.Array
    weight: jax.Array
    centered: bool = static()


@pytree
class StreamingMap:
    """The map x -> W' (phi(x) - mean) onto leading components, and what is certified of it.

    Z has the features phi(x_i)' of the points of the stream as rows, less their mean where centred and times the root
    of their weight; n is the total weight.

    Attributes
    ----------
    features : the feature map phi.
    components : (num_features, m), the rows of W', orthonormal; those after the first `rank` are zero. NaN where a
        feature was NaN or infinite, so that no image looks like a number.
    mean : (m,), the mean of the features; zero where not centred.
    eigenvalues : (num_features,), descending. The i-th eigenvalue of Z'Z, and of the matrix Z Z' of inner products,
        lies between the i-th of these and that plus `shrinkage`.
    shrinkage : scalar, the certificate of the sketch: |Z'Z - B'B|_2 <= shrinkage.
    residual : scalar, certified bound of |Z Z' - Z W W' Z'|_2, what the components leave of the inner products:
        `shrinkage` plus the next squared singular value of the sketch. With all components it is `shrinkage`.
    squared_norm : scalar, |Z|_F^2, the sum of all eigenvalues of Z'Z.
    weight : scalar n.
    rank : scalar int32 in [0, num_features], the number of components that are not zero.
    finite : scalar bool; False if a feature was NaN or infinite, and then nothing is certified.
    centered : static.
    """

    features: Any
    components: jax.Array
    mean: jax.Array
    eigenvalues: jax.Array
    shrinkage: jax.Array
    residual: jax.Array
    squared_norm: jax.Array
    weight: jax.Array
    rank: jax.Array
    finite: jax.Array
    centered: bool = static()

    @property
    def num_features(self) -> int:
        """Number of features."""
        return self.components.shape[0]

    @property
    def variances(self) -> Float[Array, " num_features"]:
        """The eigenvalues over n, (num_features,); those of Z'Z / n are larger by `relative_shrinkage` at most."""
        return self._per_weight(self.eigenvalues)

    @property
    def relative_shrinkage(self) -> jax.Array:
        """The certificate over n: a bound of |Z'Z - B'B|_2 / n."""
        return self._per_weight(self.shrinkage)

    @property
    def relative_residual(self) -> jax.Array:
        """The residual over n: a bound of the spectral error |Z Z' - Z W W' Z'|_2 / n."""
        return self._per_weight(self.residual)

    def _per_weight(self, value: jax.Array) -> jax.Array:
        none = self.weight == 0
        return jnp.where(none, 0, value / jnp.where(none, 1, self.weight))

    def __call__(
        self, X: Float[ArrayLike, "... dim"]
    ) -> Float[Array, "... num_features"]:
        """Return W' (phi(x) - mean), (..., num_features) for X (..., dim).

        Notes
        -----
        m num_features multiply-adds for a point beyond those of phi.
        """
        Z = checks.same_dtype(
            "phi(X)", self.features(X), "the fitted map", self.components
        )
        if self.centered:
            Z = Z - jnp.expand_dims(self.mean, range(Z.ndim - 1))
        return matmul(Z, self.components.T)


class _Init(Protocol):
    def __call__(self, dtype: Any = None) -> StreamingState: ...


class _Update(Protocol):
    def __call__(
        self, state: StreamingState, X: Any, weights: Any = None
    ) -> StreamingState: ...


class _Finalize(Protocol):
    def __call__(
        self, state: StreamingState, *, num_components: int
    ) -> StreamingMap: ...


class StreamingPCA(NamedTuple):
    """The pure functions that `streaming_pca` returns, which says what they do.

    Attributes
    ----------
    init, update, merge, finalize : functions.
    """

    init: _Init
    update: _Update
    merge: Callable[[StreamingState, StreamingState], StreamingState]
    finalize: _Finalize


def streaming_pca(
    phi: FeatureMap,
    *,
    sketch_size: int,
    centered: bool = False,
    shrink_at: int | None = None,
) -> StreamingPCA:
    """Return (init, update, merge, finalize) of principal components of the features phi(x) of a stream of points.

    - `init(dtype=None)` -> StreamingState, by default of the dtype of phi's parameters;
    - `update(state, X, weights=None)` -> StreamingState, X (b, dim) with any b, weights (b,) not negative, of any
      sum, in the dtype of the state; a row of weight 0 does not exist, whatever it holds;
    - `merge(a, b)` -> StreamingState of two streams with one phi and the same sizes together;
    - `finalize(state, *, num_components)` -> StreamingMap, num_components in [1, sketch_size]. The stream may go on.

    Z has the rows phi(x_i)' or, centred, phi(x_i)' less their mean, and B is its Frequent Directions sketch:
    0 <= Z'Z - B'B <= shrinkage I, with shrinkage <= |Z - Z_k|_F^2 / (sketch_size + 1 - k) for every k <= sketch_size,
    up to rounding. Components are the leading right singular vectors of B. They do not depend on how the points were
    divided into batches but for rounding; after a merge they differ within the certificates.

    Parameters
    ----------
    phi : a feature map: a callable PyTree (..., dim) -> (..., m) with `num_features` = m.
    sketch_size : number of rows of the sketch, at least 1.
    centered : static; whether components are those of the features less their mean over the stream.
    shrink_at : as in `frequent_directions.init`.

    Returns
    -------
    StreamingPCA, a NamedTuple of pure functions. States and maps are PyTrees.

    Notes
    -----
    Memory does not grow with the number of points: 2 sketch_size m numbers. Beyond the cost of phi, a point takes 6
    sketch_size m multiply-adds. Source: ghashami2016, Algorithm 1 with the default sketch, and Lemma 3.3 and Theorem
    3.2 (corrected: points left in the buffer count).

    Examples
    --------
    >>> import jax
    >>> from jaxkern.features import nystrom
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> pca = streaming_pca(nystrom(Gaussian(1.0), X[:20]), sketch_size=10)
    >>> state = pca.init()
    >>> for batch in (X[:50], X[50:]):
    ...     state = pca.update(state, batch)
    >>> pca.finalize(state, num_components=2)(X).shape
    (100, 2)
    """
    m = checks.count("num_features of phi", _num_features(phi))
    centered = checks.flag("centered", centered)
    empty = fd.init(
        sketch_size, 1, shrink_at=shrink_at
    )  # refuses bad sizes now rather than in init
    expected = (m, empty.sketch_size, empty.shrink_at, centered)

    def init(dtype: Any = None) -> StreamingState:
        """Return the state of a stream without points, by default of the dtype of phi's parameters."""
        sketch = fd.init(
            sketch_size, m, _dtype(phi) if dtype is None else dtype, shrink_at=shrink_at
        )
        dtype = sketch.buffer.dtype
        return StreamingState(
            sketch, jnp.zeros((m,), dtype), jnp.zeros((2,), dtype), centered
        )

    def update(state: StreamingState, X: Any, weights: Any = None) -> StreamingState:
        """Return the state after the points X, (b, dim) with any b, with weights (b,) that are not negative."""
        state = _own("state", state)
        X = checks.matrix("X", X, min_rows=0)
        rows = jax.ShapeDtypeStruct(X.shape, state.mean.dtype)
        return _update(
            state, phi, X, checks.weights(weights, "the state", rows, some=False)
        )

    def merge(a: StreamingState, b: StreamingState) -> StreamingState:
        """Return the state of two streams together."""
        return _merge(_own("a", a), _own("b", b))

    def finalize(state: StreamingState, *, num_components: int) -> StreamingMap:
        """Return the feature map (..., dim) -> (..., num_components) of the points so far; the stream may go on."""
        state = _own("state", state)
        size = state.sketch.sketch_size
        count = checks.count(
            "num_components", num_components, maximum=size, limit="the sketch size"
        )
        return dataclasses.replace(_finalize(state, num_components=count), features=phi)

    def _own(name: str, state: Any) -> StreamingState:
        if not isinstance(state, StreamingState):
            raise ValueError(
                f"{name} must be a StreamingState, got {type(state).__name__}; pass what init returns"
            )
        own = (
            state.mean.shape[-1],
            state.sketch.sketch_size,
            state.sketch.shrink_at,
            state.centered,
        )
        if own != expected:
            raise ValueError(
                f"{name} must be a state of this stream, with (num_features, sketch_size, shrink_at, centered) = "
                f"{expected}, got {own}; pass what its own init and update return"
            )
        return state

    return StreamingPCA(init, update, merge, finalize)


def _num_features(phi: Any) -> int:
    leaves = jax.tree.leaves(phi)
    if (
        not callable(phi)
        or not hasattr(phi, "num_features")
        or (len(leaves) == 1 and leaves[0] is phi)
    ):
        raise ValueError(
            f"phi must be a feature map, a callable PyTree with num_features, got {type(phi).__name__}; "
            "pass what a function of jaxkern.features returns"
        )
    return phi.num_features


def _dtype(phi: Any) -> Any:
    """Return the dtype of the first floating array of a map, float32 if it has none.

    Arrays of a weak type, such as a lengthscale that was a Python number, take the dtype of what they meet.
    """
    arrays = (
        leaf
        for leaf in jax.tree.leaves(phi)
        if hasattr(leaf, "dtype") and not getattr(leaf, "weak_type", False)
    )
    return next(
        (leaf.dtype for leaf in arrays if jnp.issubdtype(leaf.dtype, jnp.floating)),
        jnp.float32,
    )


@jax.jit
def _update(
    state: StreamingState, phi: Any, X: jax.Array, weights: jax.Array | None
) -> StreamingState:
    if weights is not None and X.shape[0] > 0:
        X = jnp.where((weights > 0)[:, None], X, X[jnp.argmax(weights)])
    Z = checks.matrix("phi(X)", phi(X), dim=state.mean.shape[0], min_rows=0)
    checks.same_dtype("phi(X)", Z, "the state", state.mean)
    if Z.shape[0] == 0:
        return state
    given = weights
    if weights is not None:
        Z = jnp.where(jnp.any(weights > 0), Z, 0)  # of rows none of which exists
    # What is no weight is seen in the sum of the weights, also where none of its rows reaches the sketch.
    weights = (
        jnp.ones((Z.shape[0],), Z.dtype)
        if weights is None
        else jnp.where(weights >= 0, weights, jnp.nan)
    )
    added = jnp.cumsum(weights)
    weight = fd._add(state.weight, added[-1])
    if not state.centered:
        return dataclasses.replace(
            state, sketch=fd._update(state.sketch, Z, given), weight=weight
        )
    # The scatter about the mean grows by one outer product a point: with W and mu the weight and the mean before it,
    #     S + w W / (W + w) (z - mu)(z - mu)'.
    # For a set with scatter S about mu, sum w_i |v'(z_i - c)|^2 = v'S v + W (v'(mu - c))^2. The new mean c is
    # mu + w / (W + w) (z - mu), so the old points give S + W (w / (W + w))^2 (z - mu)(z - mu)', the new one
    # w (W / (W + w))^2 (z - mu)(z - mu)', and W w^2 + w W^2 = w W (W + w). These rows are those of one point at a time,
    # so the batches do not matter.
    total = state.weight[0] + state.weight[1]
    before = total + added - weights
    after = before + weights
    share = jnp.where(after > 0, before / jnp.where(after > 0, after, 1), 0)
    shift = jnp.where(total > 0, state.mean, Z[0])

    def append(
        start: Any, size: int, carry: tuple[fd.State, jax.Array]
    ) -> tuple[fd.State, jax.Array]:
        """Go on by `size` rows, given the sum of those before in this batch, less the shift."""
        sketch, summed = carry
        z, w, W, part = (
            lax.dynamic_slice_in_dim(each, start, size)
            for each in (Z, weights, before, share)
        )
        moved = z - shift[None, :]
        weighed = w[:, None] * moved
        sums = summed[None, :] + matmul(
            jnp.tril(jnp.ones((size, size), z.dtype), -1), weighed
        )
        # Means before each point, less the shift. Before the first one there is none; its share is zero.
        means = sums / jnp.where(W > 0, W, 1)[:, None]
        rows = jnp.sqrt(w * part)[:, None] * (moved - means)
        return fd._update(
            sketch, rows, None if given is None else jnp.sign(w)
        ), summed + weighed.sum(axis=0)

    # In blocks that a cache holds.
    blocks, rest = divmod(Z.shape[0], _BLOCK_ROWS)
    carry = state.sketch, jnp.zeros_like(shift)
    if blocks:
        carry = lax.fori_loop(
            0,
            blocks,
            lambda i, carry: append(i * _BLOCK_ROWS, _BLOCK_ROWS, carry),
            carry,
        )
    sketch, summed = append(blocks * _BLOCK_ROWS, rest, carry) if rest else carry
    mean = shift + summed / jnp.where(after[-1] > 0, after[-1], 1)
    return dataclasses.replace(
        state,
        sketch=sketch,
        mean=jnp.where(after[-1] > 0, mean, state.mean),
        weight=weight,
    )


@jax.jit
def _merge(a: StreamingState, b: StreamingState) -> StreamingState:
    sketch = fd._merge(a.sketch, b.sketch)
    weight = fd._add(fd._add(a.weight, b.weight[0]), b.weight[1])
    if not a.centered:
        return dataclasses.replace(a, sketch=sketch, weight=weight)
    # By the identity above about the common mean c = mu_a + n_b / (n_a + n_b) (mu_b - mu_a):
    #     S_a + n_a |c - mu_a|^2 + S_b + n_b |c - mu_b|^2 = S_a + S_b + n_a n_b / (n_a + n_b) |mu_b - mu_a|^2.
    first, second, both = jnp.sum(a.weight), jnp.sum(b.weight), jnp.sum(weight)
    share = jnp.where(both > 0, second / jnp.where(both > 0, both, 1), 0)
    gap = b.mean - a.mean
    moved = fd._update(sketch, jnp.sqrt(first * share) * gap[None, :], None)
    # The correction is not one of the points.
    moved = dataclasses.replace(moved, num_rows=sketch.num_rows)
    return dataclasses.replace(
        a, sketch=moved, mean=a.mean + share * gap, weight=weight
    )


@partial(jax.jit, static_argnames="num_components")
def _finalize(state: StreamingState, *, num_components: int) -> StreamingMap:
    sketch = fd._finalize(state.sketch)
    squares = sketch.singular_values**2
    following = (
        squares[num_components]
        if num_components < squares.shape[0]
        else jnp.zeros_like(squares[0])
    )
    weight = jnp.sum(state.weight)
    return StreamingMap(
        features=None,
        # The sketch keeps no direction of a buffer that is not finite; zeros would pass for features.
        components=jnp.where(
            sketch.finite, sketch.basis[:, :num_components].T, jnp.nan
        ),
        mean=state.mean,
        eigenvalues=squares[:num_components],
        shrinkage=sketch.shrinkage,
        # For a unit x orthogonal to the components |Zx|^2 <= |Bx|^2 + shrinkage, and |Bx|^2 is at most the next square.
        residual=sketch.shrinkage + following,
        squared_norm=sketch.squared_norm,
        weight=weight,
        rank=jnp.minimum(sketch.rank, num_components),
        finite=sketch.finite & jnp.isfinite(weight) & jnp.all(jnp.isfinite(state.mean)),
        centered=state.centered,
    )
