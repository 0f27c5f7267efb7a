"""Squared Euclidean distances, and other sums over coordinates of differences, for all pairs of two sets of points.

The direct form subtracts first: its error is a few roundings of the result, however close or far points are. The
product form |x|^2 + |y|^2 - 2 <x, y> runs at the speed of a matrix product; its error is a few roundings of the squared
norms of the centred points, whatever the distance. `squared_distances` takes the product form where a bound of that
error says that it does not matter, once for all pairs, and the direct form where it may, or in few dimensions, where it
is as fast.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import SymbolicZero

HIGHEST = lax.Precision.HIGHEST

FEW = 8
"""Dimensions up to which direct differences are as fast as a product; terms that are summed before they are added."""
_COLUMNS = 32
"""Most columns of one matrix product: the rounding of a sum grows with its length."""
_UNROLLED = 16
"""Products, or blocks of squares, that are written out; more products are a loop, one program however many."""
_PLAIN = 128
"""Sums that are added one after the other as they are; of more, what each addition loses is carried on (Kahan)."""
_COMPENSATED = 8
"""Roundings of a sum with this correction: two, and one for every 16 million that are added."""
_TOLERANCE = {"float32": 1e-5, "float64": 1e-11}
"""The error of a kernel value with K(x, x) = 1 up to which the product form serves."""
_VALUE = 4
"""Roundings of a kernel value in [0, 1] given its sum."""


def center_of(Y: jax.Array) -> jax.Array:
    """Return about the mean of the rows, (1, d), as the first row and a step: any point among them serves as a centre.

    The step is rounded to half its digits. The product sum * (1 / n) behind a mean may be fused into the subtraction
    that follows, with another rounding in one place than in the next, and copies would differ. A mean itself rounded
    so would lie outside of points that are far from the origin for their spread. Distances do not depend on the
    centre, hence no gradient.
    """
    info = jnp.finfo(Y.dtype)
    Y = lax.stop_gradient(Y)
    step = jnp.mean(Y - Y[:1], axis=0, keepdims=True)
    return Y[:1] + lax.reduce_precision(step, info.nexp, info.nmant // 2 + 1)


@custom_vmap
def everywhere(choice: jax.Array) -> jax.Array:
    """Return a boolean scalar; under `vmap` whether it holds in the whole batch, so that one branch runs for all.

    A condition on a batch of choices would run both branches.
    """
    return choice


@everywhere.def_vmap
def _everywhere(
    size: int, batched: list[bool], choice: jax.Array
) -> tuple[jax.Array, bool]:
    del size, batched
    return everywhere(jnp.all(choice)), False


def squared_distances(
    X: jax.Array,
    Y: jax.Array,
    scale: jax.Array,
    slope: Any = 0.5,
    profile: Callable[..., jax.Array] = jnp.asarray,
) -> jax.Array:
    """Return (|x_i - y_j|^2 / scale^2)_ij, shape (n, m), in the form that is accurate enough; 0 where x_i is y_j.

    The scale is a scalar or (d,), one for each column, here and below.
    `slope` bounds the derivative of what is made of them: the error of that is at most 1e-5 in float32 and 1e-11 in
    float64, or direct differences are taken. For all of a batch under `vmap`, if one of its sets needs them. With a
    `profile` this is applied to them, within either branch: in one pass over the entries.
    """
    if X.shape[1] <= FEW:
        return profile(squared_distances_direct(X, Y, scale))
    one = jnp.ones((), X.dtype)
    if scale.ndim == 0:
        # The derivative in it is left to a factor of one: through both sets it would take a product for each.
        finite, scale = (
            jnp.minimum(scale, jnp.finfo(X.dtype).max),
            lax.stop_gradient(scale),
        )
        one = jnp.square(lax.stop_gradient(finite) / finite)
    A, B, first, second = centered(X, Y, scale)
    near = _serves(first, second, X.shape[1], slope)
    return lax.cond(
        near,
        lambda: profile(one * product_form(A, B, *lax.stop_gradient((first, second)))),
        lambda: profile(one * squared_distances_direct(X, Y, scale)),
    )


def squared_distances_direct(X: jax.Array, Y: jax.Array, scale: jax.Array) -> jax.Array:
    """Return (|x_i - y_j|^2 / scale^2)_ij, shape (n, m), as sums of squared differences; 0 where x_i is y_j."""
    return coordinate_sums(jnp.square, X, Y, scale)


def coordinate_sums(
    term: Callable[[jax.Array], jax.Array], X: jax.Array, Y: jax.Array, scale: jax.Array
) -> jax.Array:
    """Return (sum_k term((x_ik - y_jk) / scale))_ij, shape (n, m), for a term that is zero at zero.

    Memory O(n m) beyond the points, also for gradients: a few coordinates at a time.
    """
    (n, dim), m = X.shape, Y.shape[0]
    padding = ((0, 0), (0, -dim % FEW if dim > FEW else 0))
    columns = jnp.pad(X, padding).T, jnp.pad(Y, padding).T
    inverse = 1 / scale
    if inverse.ndim:
        inverse = jnp.pad(inverse, padding[1])

    @partial(jax.checkpoint, prevent_cse=False)
    def some(columns: tuple[jax.Array, jax.Array], first: Any) -> jax.Array:
        x, y = columns
        rates = [
            inverse[first + k] if inverse.ndim else inverse
            for k in range(min(dim, FEW))
        ]
        return _in_pairs(
            [
                term((x[first + k][:, None] - y[first + k][None, :]) * rate)
                for k, rate in enumerate(rates)
            ]
        )

    if dim <= FEW:
        return some(columns, 0)
    zero, steps = jnp.zeros((n, m), X.dtype), len(columns[0]) // FEW
    if steps <= _PLAIN:
        return lax.fori_loop(
            0, steps, lambda i, total: total + some(columns, FEW * i), zero
        )

    def add(i: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        total, lost = state
        part = some(columns, FEW * i) - lost
        new = total + part
        return new, lax.stop_gradient((new - total) - part)

    return lax.fori_loop(0, steps, add, (zero, zero))[0]


def _in_pairs(terms: list[jax.Array]) -> jax.Array:
    """Return the sum of terms, in pairs of pairs: each is in as few roundings as halving their number to one takes."""
    while len(terms) > 1:
        terms = [
            *(a + b for a, b in zip(terms[::2], terms[1::2], strict=False)),
            *terms[len(terms) // 2 * 2 :],
        ]
    return terms[0]


def rounding(
    X: jax.Array, Y: jax.Array, scale: jax.Array, slope: float | None
) -> jax.Array:
    """Return a bound of the error of a function of the sums above, with values in [0, 1], in the form that is taken.

    That of `squared_distances` with a `slope`; of `coordinate_sums` without one. It is a bound in the model of
    rounding: every operation is right up to half an eps, and sums may be taken in any order but for what is written
    here. The direct form has a relative error, and s |K'(s)| <= 1 / e for every kernel of this package.
    """
    dim, unit = X.shape[1], jnp.finfo(X.dtype).eps / 2
    steps = -(-dim // FEW)
    steps = steps if steps <= _PLAIN else _COMPENSATED
    direct = jnp.asarray(unit * (_VALUE + (steps + FEW + 6) / 2.7), X.dtype)
    if slope is None or dim <= FEW:
        return direct
    _, _, first, second = centered(X, Y, scale)
    product = _product_error(first, second, dim, slope)
    return jnp.where(_serves(first, second, dim, slope), product, direct)


def _serves(first: jax.Array, second: jax.Array, dim: int, slope: Any) -> jax.Array:
    """Tell whether the product form is accurate enough; not where a number is missing."""
    error = lax.stop_gradient(_product_error(first, second, dim, slope))
    return everywhere(error <= _TOLERANCE[first.dtype.name])


def _product_error(
    first: jax.Array, second: jax.Array, dim: int, slope: Any
) -> jax.Array:
    """Return a bound of the error that the product form leaves in values of a function of such a slope.

    Twice that of the squares: what may be zero is made zero. Centred points x have two roundings of |x| each, which a
    squared distance s takes sqrt(s) times twice, and sqrt(s) |K'(s)| <= sqrt(slope / e).
    """
    first, second = jnp.max(first), jnp.max(second)
    cross, norms = _roundings(dim)
    squares = (
        2 * slope * (2 * cross * jnp.sqrt(first * second) + norms * (first + second))
    )
    centring = 4 * jnp.sqrt(slope / math.e * 2 * (first + second))
    return (squares + centring + _VALUE) * jnp.finfo(first.dtype).eps / 2


def _roundings(dim: int) -> tuple[int, int]:
    """Return how many roundings of |x| |y| are in <x, y>, and how many of |x|^2 + |y|^2 in all that is added to it.

    <x, y> is a sum over blocks of equally many columns, |x|^2 one of pairs of pairs, and the last operations are three.
    """
    parts = -(-dim // _COLUMNS)
    return -(-dim // parts) + parts, dim.bit_length() + 4


def centered(
    X: jax.Array, Y: jax.Array, scale: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Return both sets about the mean of Y, over the scale, and the squared norms of their rows."""
    center = center_of(Y)
    if scale.ndim:
        scale = scale[None, :]
    A, B = (X - center) / scale, (Y - center) / scale
    # Columns in blocks of a power of two, summed in pairs: what XLA adds as vectors, which halves of any width are not.
    width = max(FEW, 2 ** math.ceil(math.log2(X.shape[1] / _UNROLLED)))

    def squared_norms(A: jax.Array) -> jax.Array:
        squares = jnp.pad(A * A, ((0, 0), (0, -A.shape[1] % width)))
        sums = _in_pairs(
            [squares[:, k : k + width] for k in range(0, squares.shape[1], width)]
        )
        while (half := sums.shape[1] // 2) > 0:
            sums = sums[:, :half] + sums[:, half:]
        return sums[:, 0]

    return A, B, squared_norms(A), squared_norms(B)


@jax.custom_jvp
def product_form(
    X: jax.Array, Y: jax.Array, first: jax.Array, second: jax.Array
) -> jax.Array:
    """Return the squared distances of centred points; zero for copies and what rounding makes of them.

    Derivatives stay, as they are accurate, and are those in X and Y: `first` and `second` are their squared norms.
    """
    sums = first[:, None] + second[None, :]
    squares = sums - 2 * _products(X, Y)
    small = squares <= sum(_roundings(X.shape[1])) * jnp.finfo(X.dtype).eps / 2 * sums
    return jnp.where(small, 0 * squares, squares)


@partial(product_form.defjvp, symbolic_zeros=True)
def _product_form_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    # One product for each set that moves: the blocks of columns are for the rounding of the values.
    (X, Y, *_), (dX, dY, *_) = primals, tangents
    tangent = jnp.zeros((X.shape[0], Y.shape[0]), X.dtype)
    if not isinstance(dX, SymbolicZero):
        tangent += 2 * (
            jnp.sum(X * dX, axis=1)[:, None] - jnp.matmul(dX, Y.T, precision=HIGHEST)
        )
    if not isinstance(dY, SymbolicZero):
        tangent += 2 * (
            jnp.sum(Y * dY, axis=1)[None, :] - jnp.matmul(X, dY.T, precision=HIGHEST)
        )
    return product_form(*primals), tangent


def _products(X: jax.Array, Y: jax.Array) -> jax.Array:
    """Return X Y^T, a block of columns after the other."""
    parts = -(-X.shape[1] // _COLUMNS)
    width = -(-X.shape[1] // parts)
    if parts <= _UNROLLED:
        ends = [slice(width * k, width * (k + 1)) for k in range(parts)]
        return sum(
            jnp.matmul(X[:, end], Y[:, end].T, precision=HIGHEST) for end in ends
        )  # type: ignore[return-value]
    X, Y = (jnp.pad(A, ((0, 0), (0, parts * width - A.shape[1]))) for A in (X, Y))

    def add(k: jax.Array, total: jax.Array) -> jax.Array:
        x, y = (lax.dynamic_slice_in_dim(A, width * k, width, 1) for A in (X, Y))
        return total + jnp.matmul(x, y.T, precision=HIGHEST)

    return lax.fori_loop(0, parts, add, jnp.zeros((X.shape[0], Y.shape[0]), X.dtype))


def safe_sqrt(s: jax.Array) -> jax.Array:
    """Return sqrt(s) with the derivative at s = 0 set to zero instead of infinity."""
    positive = s > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, s, 1)), s * 0)
