"""Ridge regression on the features of any map, also of a stream, and how far it is from the exact kernel's solution."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern._blocks import by_blocks, sum_by_blocks
from jaxkern._types import Array, ArrayLike, FeatureMap, Float, PRNGKeyArray
from jaxkern._weights import mass
from jaxkern.features._streaming import _dtype, _num_features
from jaxkern.frequent_directions import _add
from jaxkern.kernels import KernelLike
from jaxkern.linalg import matmul
from jaxkern.pytrees import pytree
from jaxkern.regression._certificate import System, certificate, length
from jaxkern.regression._ridge import Ridge, _arguments, _flat, _predict, _ridge
from jaxkern.regression._span import BLOCK


@pytree
class Head:
    """The function x -> phi(x)' beta with beta = (Z'WZ + regularization)^{-1} Z'W y, Z the features of the points.

    Attributes
    ----------
    features : the feature map phi.
    coefficients : (m,) or (m, t), beta. NaN where a feature or a label was not finite.
    regularization : scalar.
    residual : scalar or (t,), sum_i w_i (y_i - phi(x_i)' beta)^2 over the points, up to eps sum_i w_i y_i^2.
    weight : scalar, the sum of the weights.
    """

    features: Any
    coefficients: jax.Array
    regularization: jax.Array
    residual: jax.Array
    weight: jax.Array

    def __call__(self, X: Float[ArrayLike, "... d"]) -> Float[Array, ...]:
        """Return phi(X)' beta, (...) or (..., t), for X (..., d): features block by block, and m t multiply-adds."""
        X = checks.same_dtype(
            "X", checks.floating("X", X), "the head", self.coefficients
        )
        X = checks.points("X", X, dim=X.shape[-1] if X.ndim else 1)
        values = _values(self, X.reshape(-1, X.shape[-1]))
        return values.reshape(*X.shape[:-1], *self.coefficients.shape[1:])


@pytree
class RidgeState:
    """What ridge regression on features has to know of the points so far.

    Attributes
    ----------
    gram : (m, m), Z'WZ.
    products : (m,) or (m, t), Z'W y.
    squares : scalar or (t,), y'W y.
    weight : (2,), the sum of the weights, that is the number of points where they are 1, and the rounding of that sum.
    """

    gram: jax.Array
    products: jax.Array
    squares: jax.Array
    weight: jax.Array


class StreamingRidge(NamedTuple):
    """The pure functions that `streaming_ridge` returns, which says what they do.

    Attributes
    ----------
    init, update, merge, finalize : functions.
    """

    init: Callable[..., RidgeState]
    update: Callable[..., RidgeState]
    merge: Callable[[RidgeState, RidgeState], RidgeState]
    finalize: Callable[..., Head]


def streaming_ridge(
    phi: FeatureMap, *, num_outputs: int | None = None
) -> StreamingRidge:
    """Return (init, update, merge, finalize) of ridge regression on the features phi(x) of a stream of points.

    - `init(dtype=None)` -> RidgeState, by default of the dtype of phi's parameters;
    - `update(state, X, y, weights=None)` -> RidgeState, X (b, d) with any b, y (b,) or (b, num_outputs), weights (b,)
      not negative, of any sum, in the dtype of the state; a row of weight 0 does not exist, whatever it holds;
    - `merge(a, b)` -> RidgeState of two streams with one phi together;
    - `finalize(state, *, regularization)` -> Head. The stream may go on, and one state serves many regularizations.

    Parameters
    ----------
    phi : a feature map: a callable PyTree (..., d) -> (..., m) with `num_features` = m.
    num_outputs : None for labels (b,), or t for labels (b, t).

    Notes
    -----
    A state has m (m + t) numbers. Beyond phi, a point takes m (m + t) multiply-adds, a head O(m^3). Heads do not depend
    on batches and merges but for rounding. `scale.stream` reads the rows of files.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.features import nystrom
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> init, update, merge, finalize = streaming_ridge(nystrom(Gaussian(1.0), X[:20]))
    >>> state = merge(update(init(), X[:50], X[:50, 0]), update(init(), X[50:], X[50:, 0]))
    >>> finalize(state, regularization=0.1)(X).shape
    (100,)
    """
    m = checks.count("num_features of phi", _num_features(phi))
    outputs = () if num_outputs is None else (checks.count("num_outputs", num_outputs),)

    def init(dtype: Any = None) -> RidgeState:
        zero = checks.floating(
            "dtype", jnp.zeros((m, m), _dtype(phi) if dtype is None else dtype)
        )
        return RidgeState(
            zero,
            *(jnp.zeros(shape, zero.dtype) for shape in ((m, *outputs), outputs, (2,))),
        )

    def update(state: RidgeState, X: Any, y: Any, weights: Any = None) -> RidgeState:
        state = _own("state", state)
        X = checks.same_dtype(
            "X", checks.matrix("X", X, min_rows=0), "the state", state.gram
        )
        y = checks.same_dtype("y", checks.floating("y", y), "the state", state.gram)
        if y.shape != (X.shape[0], *outputs):
            raise ValueError(
                f"y must have shape {(X.shape[0], *outputs)} for X {X.shape}, got {y.shape}"
            )
        weights = checks.weights(weights, "X", X, some=False)
        return state if X.shape[0] == 0 else _update(state, phi, X, y, weights)

    def merge(a: RidgeState, b: RidgeState) -> RidgeState:
        a, b = _own("a", a), _own("b", b)
        both = jax.tree.map(jnp.add, a, b)
        return dataclasses.replace(
            both, weight=_add(_add(a.weight, b.weight[0]), b.weight[1])
        )

    def finalize(state: RidgeState, *, regularization: Any) -> Head:
        state = _own("state", state)
        given = checks.scalar(
            "regularization",
            checks.positive("regularization", regularization),
            state.gram.dtype,
        )
        return Head(phi, *_solve(state, given))

    def _own(name: str, state: Any) -> RidgeState:
        if not isinstance(state, RidgeState):
            raise ValueError(
                f"{name} must be a RidgeState, got {type(state).__name__}; pass what init returns"
            )
        if (shape := state.products.shape) != (m, *outputs):
            raise ValueError(
                f"{name} must be a state of this stream, with products {(m, *outputs)}, got {shape}"
            )
        return state

    return StreamingRidge(init, update, merge, finalize)


def head(
    phi: FeatureMap,
    X: Float[ArrayLike, "n d"],
    y: Float[ArrayLike, " n"],
    *,
    regularization: float | Float[Array, ""],
    weights: Float[ArrayLike, " n"] | None = None,
) -> Head:
    """Fit ridge regression on the features of any map.

    Parameters
    ----------
    phi : a feature map: a callable PyTree (..., d) -> (..., m) with `num_features` = m.
    X : (n, d) points.
    y : (n,) labels in the dtype of X, or (n, t) for t functions at once.
    regularization : positive, what scikit-learn's Ridge calls alpha, for the sum over points, whatever n.
    weights : (n,) non-negative weights in the dtype of X: 2 counts as if the row stood there twice, and a row of weight
        0 does not exist, whatever it holds. By default all are 1.

    Returns
    -------
    Head, a callable PyTree.

    Notes
    -----
    Time that of phi, and O(n m^2 + m^3); memory O(m^2) and the features of a block. `certified_head` says how far it is
    from exact kernel ridge regression.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.features import paired_fourier
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> phi = paired_fourier(jax.random.key(1), Gaussian(1.0), 3, num_frequencies=20)
    >>> head(phi, X, X[:, 0], regularization=0.1)(X).shape
    (100,)
    """
    X, y = checks.matrix("X", X), checks.floating("y", y)
    weights = checks.weights(weights, "X", X)
    weights = None if weights is None else weights + 0 * mass(weights)
    ridge = streaming_ridge(phi, num_outputs=y.shape[1] if y.ndim > 1 else None)
    return ridge.finalize(
        ridge.update(ridge.init(X.dtype), X, y, weights), regularization=regularization
    )


@pytree
class CertifiedHead:
    """A head with a function g of the RKHS near it, whose distance from the exact solution f* is known.

    f* minimises sum_i w_i (f(x_i) - y_i)^2 + regularization |f|_H^2 over the RKHS of the kernel, for the points that
    `certified_head` was given. Of g distances in H and at points are certified; of the head, which need not be
    in H, its values, by way of g: |head(x) - f*(x)| <= |head(x) - g(x)| + s(x) r.

    Attributes
    ----------
    head : the Head.
    dual : g, a `Ridge`; g(x) and g.bound_at(x) are its own.
    training_bound : scalar or (t,), sqrt(sum_i w_i (head(x_i) - f*(x_i))^2) over the points is at most this.
    """

    head: Any
    dual: Any
    training_bound: jax.Array

    def with_bounds(
        self, X: Float[ArrayLike, "q d"]
    ) -> tuple[Float[Array, " q"], Float[Array, " q"]]:
        """Return head(x) and bounds of |head(x) - f*(x)|, (q,) or (q, t) each, at points (q, d).

        They are bounds of these numbers, rounding included: in another program a map may round in another way. They
        take q n kernel evaluations, and q l^2 multiply-adds for l landmarks, beyond the head.
        """
        values, near, bounds = self.head(X), self.dual(X), self.dual.bound_at(X)
        return values, (jnp.abs(values - near) + bounds) * (
            1 + 4 * float(jnp.finfo(bounds.dtype).eps)
        )


def certified_head(
    key: PRNGKeyArray,
    head: Head,
    kernel: KernelLike,
    X: Float[ArrayLike, "n d"],
    y: Float[ArrayLike, " n"],
    *,
    num_landmarks: int,
    weights: Float[ArrayLike, " n"] | None = None,
) -> CertifiedHead:
    """Bound how far a head on any feature map is from exact kernel ridge regression, through the dual.

    What the head leaves of the labels is a dual vector a = (y - head(X)) / regularization, and g = sum_i a_i w_i
    K(., x_i) a function of the RKHS. Landmarks improve g where they can, and narrow its bounds.

    Parameters
    ----------
    key : typed random key, for the landmarks, drawn as by `ridge`.
    head : a Head; its regularization is that of f*. It may be fitted to other points, and to any map.
    kernel : a positive semidefinite kernel; of a user's function the bounds are infinite.
    X, y, weights : (n, d), (n,) or (n, t), (n,): points, labels and weights of f*, as for `ridge`.
    num_landmarks : l, in [1, n].

    Returns
    -------
    CertifiedHead, a callable PyTree.

    Raises
    ------
    ValueError
        As `ridge`; and for a head that is none, or has another number of outputs than y.

    Notes
    -----
    Two products with the n x n Gram matrix, in tiles, never held; time O(n l^2 + l^3) more, memory O(l^2 + n). Source:
    williams2001 for the correction; the certificate is `docs/theory/regression.md`, Theorem 1.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.features import nystrom
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.uniform(jax.random.key(0), (500, 2))
    >>> fit = head(nystrom(Gaussian(1.0), X[:40]), X, X[:, 0], regularization=1.0)
    >>> found = certified_head(jax.random.key(1), fit, Gaussian(1.0), X, X[:, 0], num_landmarks=40)
    >>> bool(found.with_bounds(X)[1].max() < 0.1)
    True
    """
    if not isinstance(head, Head):
        raise ValueError(
            f"head must be a Head, got {type(head).__name__}; pass what regression.head returns"
        )
    key, system, flat = _arguments(key, kernel, X, y, head.regularization, weights)
    checks.same_dtype("X", system.points, "the head", head.coefficients)
    if head.coefficients.shape[1:] != (() if flat else system.labels.shape[1:]):
        raise ValueError(
            f"y must have one column for each output of the head, {head.coefficients.shape[1:]}"
        )
    count = checks.count(
        "num_landmarks",
        num_landmarks,
        maximum=system.points.shape[0],
        limit="the number of points",
    )
    dual, training = _certified(key, head, system, num_landmarks=count)
    return CertifiedHead(head, _flat(dual, flat), training[0] if flat else training)


@jax.jit
def _values(head: Head, X: jax.Array) -> jax.Array:
    coefficients = head.coefficients.reshape(head.coefficients.shape[0], -1)
    return by_blocks(
        lambda own, rows: matmul(own[0](rows), own[1]),
        (head.features, coefficients),
        X,
        block_size=BLOCK,
    )


@jax.jit
def _update(
    state: RidgeState, phi: Any, X: jax.Array, y: jax.Array, weights: jax.Array | None
) -> RidgeState:
    n = X.shape[0]
    y = y.reshape(n, -1)
    if weights is None:
        weights = jnp.ones(n, X.dtype)
    else:
        weights = jnp.where(weights >= 0, weights, jnp.nan)
        X = jnp.where((weights == 0)[:, None], X[jnp.argmax(weights)], X)
        y = jnp.where((weights == 0)[:, None], 0, y)

    def term(
        phi: Any, X: jax.Array, y: jax.Array, weights: jax.Array
    ) -> tuple[jax.Array, ...]:
        Z = checks.same_dtype(
            "phi(X)",
            checks.matrix("phi(X)", phi(X), dim=len(state.gram)),
            "the state",
            state.gram,
        )
        root = jnp.sqrt(weights)[:, None]
        Z, y = jnp.where(root == 0, 0, root * Z), root * y
        return matmul(Z.T, Z), matmul(Z.T, y), jnp.sum(y * y, axis=0)

    gram, products, squares = sum_by_blocks(term, phi, X, y, weights, block_size=BLOCK)
    return RidgeState(
        state.gram + gram, state.products + products.reshape(state.products.shape),
        state.squares + squares.reshape(state.squares.shape), _add(state.weight, jnp.sum(weights)),
    )  # fmt: skip


@jax.jit
def _solve(state: RidgeState, regularization: jax.Array) -> tuple[jax.Array, ...]:
    """Return the coefficients, the regularization, the residual and the weight of a head."""
    # The larger one: a sum of both would be another regularization.
    rounding = jnp.finfo(state.gram.dtype).eps * jnp.trace(state.gram)
    shift = jnp.maximum(regularization, rounding) * jnp.eye(
        len(state.gram), dtype=state.gram.dtype
    )
    beta = jax.scipy.linalg.cho_solve(
        jax.scipy.linalg.cho_factor(state.gram + shift, lower=True), state.products
    )
    left = state.squares - jnp.sum(
        beta * (2 * state.products - matmul(state.gram, beta)), axis=0
    )
    return beta, regularization, jnp.maximum(left, 0), jnp.sum(state.weight)


@partial(jax.jit, static_argnames="num_landmarks")
def _certified(
    key: jax.Array, head: Head, system: System, *, num_landmarks: int
) -> tuple[Ridge, jax.Array]:
    roots, regularization = system.roots[:, None], system.regularization
    unit = float(jnp.finfo(system.points.dtype).eps)
    first = roots * (system.labels - _values(head, system.points)) / regularization
    rho, error = system.residual(first, *system.product(first))
    # The rest is fitted on landmarks; what that leaves of it is added to the dual vector.
    rest = dataclasses.replace(
        system, labels=jnp.where(roots > 0, rho / jnp.where(roots > 0, roots, 1), 0)
    )
    fit = _ridge(
        key, rest, num_landmarks=num_landmarks, choice="uniform", certified=False
    )
    second = first + (rho - roots * _predict(fit, system.points)) / regularization
    new = system.residual(second, *system.product(second))
    better = length(new[0]) < length(rho)
    a = jnp.where(better, second, first)
    rho, error = jnp.where(better, new[0], rho), jnp.where(better, new[1], error)
    distance, radius = certificate(system, rho, error)
    # sqrt(w_i) (head - f*)(x_i) = regularization (a* - first)_i, and |regularization (a* - a)| <= |rho|.
    moved = regularization * (
        jnp.abs(a - first) + 4 * unit * (jnp.abs(a) + jnp.abs(first))
    )
    training = length(rho) + length(error) + length(moved)
    dual = dataclasses.replace(
        fit, points=system.points, coefficients=roots * a, distance_bound=distance, radius=radius,
        training_bound=length(rho) + length(error), num_products=jnp.asarray(2, jnp.int32),
    )  # fmt: skip
    return dual, training * (1 + 4 * unit)
