"""Gram matrices, products with them that never hold n x n, centring, and the kernel distance."""

import os
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh

from jaxkern import checks
from jaxkern._blocks import by_blocks
from jaxkern._distances import HIGHEST, safe_sqrt
from jaxkern._mesh import copies_below, dealt, even, first, mesh_of, spread, zeros_below
from jaxkern._programs import blockwise
from jaxkern._types import Array, ArrayLike, Float
from jaxkern._weights import mass
from jaxkern.kernels import Kernel, KernelLike, as_kernel

__all__ = ["center", "gram", "gram_matmul", "kernel_distance", "rounding"]

_TILE_SIDES = {"cpu": 1024, "gpu": 4096, "tpu": 4096}
"""Rows and columns of a tile by platform: measured on a CPU and an H200, not on a TPU."""


def gram(
    kernel: KernelLike,
    X: Float[ArrayLike, "n d"],
    Y: Float[ArrayLike, "m d"] | None = None,
) -> Float[Array, "n m"]:
    """Return the Gram matrix (K(x_i, y_j))_ij; with Y left out, that of X with itself.

    Values of the stationary kernels are within 1e-5 of exact in float32 (1e-11 in float64), whatever the points, and 1
    where two points are equal; `rounding` states the bound. Distances come from matrix products on centred points
    where that bound allows it, and from direct differences otherwise, which take up to three times as long: where
    points are many lengthscales from their mean, and for kernels that are rough at zero (`Exponential`, `Distance`) or
    products over coordinates.

    Parameters
    ----------
    kernel : a kernel, or a function of two points.
    X : (n, d) points.
    Y : (m, d) points of the dtype of X, or None for X.

    Notes
    -----
    Time O(n m d), memory O(n m). For a product with K use `gram_matmul`, which does not hold it.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.kernels import Gaussian
    >>> gram(Gaussian(1.0), jax.random.normal(jax.random.key(0), (5, 2))).shape
    (5, 5)
    """
    return _gram(*_arguments(kernel, X, Y))


def rounding(
    kernel: KernelLike,
    X: Float[ArrayLike, "n d"],
    Y: Float[ArrayLike, "m d"] | None = None,
) -> Float[Array, ""]:
    """Return a bound of |gram(kernel, X, Y) - K|, for all entries and relative to sqrt(K(x, x) K(y, y)).

    The exact K is that of the points and parameters as they are, in their dtype. For the stationary kernels the bound
    is at most about 1e-5 in float32 and 1e-11 in float64, in any number of dimensions.

    Parameters
    ----------
    kernel : a built-in positive semidefinite kernel; sums, products and multiples of them.
    X : (n, d) points.
    Y : (m, d) points of the dtype of X, or None for X.

    Returns
    -------
    () array of the dtype of X; that of `gram_matmul` is no larger for any of its tiles.

    Raises
    ------
    ValueError
        As `gram`; and for a user's function and for `Distance`, of which it is not known.

    Notes
    -----
    Time O((n + m) d). Every operation is taken to be right up to half an eps of its dtype, and sums of at most 128
    terms to be added in any order.
    """
    return _rounding(*_arguments(kernel, X, Y))


def gram_matmul(
    kernel: KernelLike,
    X: Float[ArrayLike, "n d"],
    Y: Float[ArrayLike, "m d"] | None,
    V: Float[ArrayLike, "m ..."],
    *,
    block_size: int | None = None,
) -> Float[Array, "n ..."]:
    """Return K(X, Y) V without ever holding K: tile by tile.

    Parameters
    ----------
    kernel : a kernel, or a function of two points.
    X : (n, d) points; n may be 0.
    Y : (m, d) points, or None for X.
    V : (m,) or (m, r) of the dtype of X.
    block_size : rows and columns of a tile; by default chosen from the shapes and the platform: about 1,024 on a CPU,
        and 4,096 on a GPU or TPU. The variable JAXKERN_TILE_SIDE of the environment, set before Python starts,
        replaces these numbers in everything that multiplies by a Gram matrix.

    Returns
    -------
    (n,) or (n, r) array. The result does not depend on `block_size` beyond rounding.

    Notes
    -----
    Time O(n m (d + r)), memory O(n r + block_size^2) beyond the input, also for gradients. Where X, or else Y, lies on
    a mesh of D devices, or `jax.set_mesh` names one, these share the rows: each computes n / D of them, Y and V come by
    in a ring, m (d + r) numbers in all, and the result is divided as the rows are. Derivatives are those of reverse
    mode there.
    """
    kernel, X = as_kernel(kernel), checks.matrix("X", X, min_rows=0)
    Y = checks.matrix("Y", X if Y is None else Y, dim=X.shape[1])
    checks.same_dtype("Y", Y, "X", X)
    V = checks.same_dtype("V", checks.columns("V", V, rows=Y.shape[0]), "X", X)
    return _product(
        kernel,
        X,
        Y,
        V,
        None if block_size is None else checks.count("block_size", block_size),
    )


def center(
    K: Float[ArrayLike, "n n"], *, weights: Float[ArrayLike, " n"] | None = None
) -> Float[Array, "n n"]:
    """Return H K H' with H = I - 1w'/sum(w), or I - 11'/n: the Gram matrix of the features less their weighted mean.

    Parameters
    ----------
    K : (n, n) matrix.
    weights : (n,) non-negative weights in the dtype of K, of any positive sum; a row and column of weight 0 do not
        exist, whatever they hold, and are 0 in the result. By default all are 1.
    """
    K = checks.square("K", K)
    return _center(K, checks.weights(weights, "K", K))


def kernel_distance(
    kernel: KernelLike, X: Float[ArrayLike, "n d"], Y: Float[ArrayLike, "n d"]
) -> Float[Array, " n"]:
    """Return |K_x - K_y| = sqrt(K(x, x) + K(y, y) - 2 K(x, y)) for every row x of X and y of Y.

    Relative accuracy holds however close the points are: built-in kernels carry a series for the difference, and
    points are subtracted before anything else, so a common offset does not matter. For a user's function the three
    values are subtracted, and the distance loses digits below about sqrt(eps).

    Parameters
    ----------
    kernel : a positive semidefinite kernel, or a function of two points.
    X, Y : (n, d) points of one dtype.

    Notes
    -----
    Time and memory O(n d). The gradient at coincident points is zero.
    """
    kernel = as_kernel(kernel)
    if not kernel.psd:
        raise ValueError(
            f"kernel must be positive semidefinite to have a kernel distance, got {type(kernel).__name__}; "
            "pass another kernel"
        )
    X = checks.matrix("X", X)
    Y = _other("Y", Y, X)
    if X.shape != Y.shape:
        raise ValueError(
            f"Y must have the shape of X, {X.shape}, got {Y.shape}; distances are taken row by row"
        )
    return _kernel_distance(kernel, X, Y)


def _product(
    kernel: Kernel,
    X: jax.Array,
    Y: jax.Array,
    V: jax.Array,
    block_size: int | None = None,
    terms: int | None = None,
    less: jax.Array | None = None,
) -> jax.Array:
    """Return K(X, Y) V, V (m,) or (m, r), of arguments that are valid, summed as `_terms` says; each row less (r,)."""
    if X.shape[0] == 0:
        return jnp.zeros((0, *V.shape[1:]), X.dtype)
    return _gram_matmul(kernel, X, Y, V, less, block_size=block_size, terms=terms)


def _arguments(
    kernel: Any, X: Any, Y: Any
) -> tuple[Kernel, jax.Array, jax.Array | None]:
    same = Y is None or Y is X
    kernel, X = as_kernel(kernel), checks.matrix("X", X)
    return kernel, X, None if same else _other("Y", Y, X)


def _other(name: str, value: Any, X: jax.Array) -> jax.Array:
    return checks.same_dtype(name, checks.matrix(name, value, dim=X.shape[1]), "X", X)


@blockwise
def _gram(kernel: Kernel, X: jax.Array, Y: jax.Array | None = None) -> jax.Array:
    return kernel._tile(X, X if Y is None else Y)


@jax.jit
def _rounding(kernel: Kernel, X: jax.Array, Y: jax.Array | None) -> jax.Array:
    return kernel._rounding(X, X if Y is None else Y)


@jax.jit
def _center(K: jax.Array, weights: jax.Array | None = None) -> jax.Array:
    if weights is None:
        rows = K - jnp.mean(K, axis=0, keepdims=True)
        return rows - jnp.mean(rows, axis=1, keepdims=True)
    # Less a row and a column first, so that what is constant is exactly zero, with any weights.
    shares, one = weights / mass(weights), jnp.argmax(weights)
    exists = (weights > 0)[:, None] & (weights > 0)[None, :]
    K = jnp.where(exists, K, 0)
    K = K - K[None, one]
    K = K - K[:, one, None]
    rows = K - jnp.matmul(shares, K, precision=HIGHEST)[None, :]
    return jnp.where(
        exists,
        rows - jnp.matmul(rows, shares, precision=HIGHEST)[:, None],
        0 * shares[:, None],
    )


@jax.jit
def _kernel_distance(kernel: Kernel, X: jax.Array, Y: jax.Array) -> jax.Array:
    gaps = jax.vmap(lambda x, y: kernel._pair(x, y).gap)(X, Y)
    return safe_sqrt(2 * jnp.maximum(gaps, 0))


def _terms(X: jax.Array, Y: jax.Array, terms: int | None) -> int:
    """Return how many roundings the sum of a product K(X, Y) v has, X (n, d) and Y (m, d), whatever its order.

    The columns of a tile are summed in any order, or `terms` at a time and then these sums; then the tiles, and then
    what these give for the points of each device.
    """
    mesh = _ring_mesh(X, Y)
    m, steps = (
        (Y.shape[0], 0)
        if mesh is None
        else (even(mesh, Y.shape[0]) // mesh.size, mesh.size)
    )
    _, cols = _tile_sides(X.shape[0], m, None)
    return (
        (cols if terms is None else terms + -(-cols // terms)) + -(-m // cols) + steps
    )


def _ring_mesh(X: jax.Array, Y: jax.Array) -> AbstractMesh | None:
    """Return the mesh of which every device has points of X and Y of its own; so few Y that all have them need none."""
    mesh = mesh_of(X, Y)
    return (
        None
        if mesh is None or X.shape[0] < mesh.size or Y.shape[0] <= 2 * _tile_side()
        else mesh
    )


def _tile_side() -> int:
    """Return the side of a tile on the platform that JAX prefers; what is exported for another one keeps it."""
    if given := os.environ.get("JAXKERN_TILE_SIDE"):
        if not given.isdecimal() or int(given) < 1:
            raise ValueError(
                f"JAXKERN_TILE_SIDE must be a whole number of at least 1, got {given!r}"
            )
        return int(given)
    return _TILE_SIDES.get(jax.default_backend(), _TILE_SIDES["cpu"])


def _tile_sides(n: int, m: int, block_size: int | None) -> tuple[int, int]:
    """Return rows and columns of a tile, no more than needed to split n and m evenly."""
    if block_size is None:
        rows = cols = side = _tile_side()
        if m <= 2 * side:
            # A core's cache holds a quarter of the entries; an accelerator would wait for the start of so little work.
            share = 1 if jax.default_backend() in ("gpu", "tpu") else 4
            cols, rows = m, max(side // 4, side * side // share // m)
    else:
        rows = cols = block_size
    return tuple(-(-size // -(-size // side)) for size, side in ((n, rows), (m, cols)))  # type: ignore[return-value]


@partial(jax.jit, static_argnames=("block_size", "terms"))
def _gram_matmul(
    kernel: Kernel,
    X: jax.Array,
    Y: jax.Array,
    V: jax.Array,
    less: jax.Array | None = None,
    *,
    block_size: int | None,
    terms: int | None = None,
) -> jax.Array:
    own, mesh, matrix = (
        partial(_on_one_device, block_size, terms),
        _ring_mesh(X, Y),
        V.reshape(V.shape[0], -1),
    )
    if mesh is None:
        return own(kernel, X, Y, matrix, less).reshape(X.shape[0], *V.shape[1:])
    points, (columns,) = (
        dealt(mesh, X, Y, below=copies_below),
        dealt(mesh, matrix, below=zeros_below),
    )
    found = first(mesh, _ring(own, mesh, kernel, *points, columns), X.shape[0])
    return (found if less is None else found - less[None, :]).reshape(
        X.shape[0], *V.shape[1:]
    )


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _ring(
    own: Any,
    mesh: AbstractMesh,
    kernel: Kernel,
    X: jax.Array,
    Y: jax.Array,
    V: jax.Array,
) -> jax.Array:
    """Return K(X, Y) V of rows that devices share: each passes the Y and V that it has had on to the next one."""

    def go(
        kernel: Kernel, X: jax.Array, Y: jax.Array, V: jax.Array
    ) -> tuple[Any, jax.Array]:
        def step(state: Any, _: None) -> tuple[Any, None]:
            total, held = state
            return (total + own(kernel, X, *held), _passed_on(mesh, held)), None

        zero = jnp.zeros((X.shape[0], V.shape[1]), X.dtype)
        return (), lax.scan(step, (zero, (Y, V)), None, length=mesh.size)[0][0]

    return spread(go, mesh, kernel, X, Y, V)[1]


def _ring_forth(own: Any, mesh: AbstractMesh, *given: Any) -> tuple[jax.Array, Any]:
    return _ring(own, mesh, *given), given


def _ring_back(own: Any, mesh: AbstractMesh, given: Any, slope: jax.Array) -> Any:
    # The derivative of the loop would keep what has come by; here it comes by again, and its slopes go round with it.
    leaves, structure = jax.tree.flatten(given[0])
    moving = {
        i: leaf
        for i, leaf in enumerate(leaves)
        if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)
    }

    def go(
        leaves: Any, X: jax.Array, Y: jax.Array, V: jax.Array, slope: jax.Array
    ) -> tuple[Any, Any]:
        def product(moved: dict[int, jax.Array], *points: jax.Array) -> jax.Array:
            return own(
                jax.tree.unflatten(
                    structure, [moved.get(i, leaf) for i, leaf in enumerate(leaves)]
                ),
                *points,
            )

        def step(state: Any, _: None) -> tuple[Any, None]:
            stay, held, slopes = state
            parameters, x, *new = jax.vjp(
                product, {i: leaves[i] for i in moving}, X, *held
            )[1](slope)
            stay, slopes = jax.tree.map(
                jnp.add, (stay, slopes), ((parameters, x), tuple(new))
            )
            return (stay, *_passed_on(mesh, (held, slopes))), None

        start = jax.tree.map(
            jnp.zeros_like, (({i: leaves[i] for i in moving}, X), (Y, V))
        )
        (terms, x), _, (y, v) = lax.scan(
            step, (start[0], (Y, V), start[1]), None, length=mesh.size
        )[0]
        return terms, (x, y, v)

    terms, found = spread(go, mesh, leaves, *given[1:], slope)
    none = [np.zeros(jnp.shape(leaf), jax.dtypes.float0) for leaf in leaves]
    return jax.tree.unflatten(
        structure, [terms.get(i, zero) for i, zero in enumerate(none)]
    ), *found


_ring.defvjp(_ring_forth, _ring_back)


def _passed_on(mesh: AbstractMesh, held: Any) -> Any:
    """Return what the next device has held."""
    return lax.ppermute(
        held, mesh.axis_names, [((i + 1) % mesh.size, i) for i in range(mesh.size)]
    )


def _on_one_device(
    block_size: int | None,
    terms: int | None,
    kernel: Kernel,
    X: jax.Array,
    Y: jax.Array,
    V: jax.Array,
    less: jax.Array | None = None,
) -> jax.Array:
    rows, cols = _tile_sides(X.shape[0], Y.shape[0], block_size)
    block = rows
    if cols < Y.shape[0]:
        # Each device takes all its rows at once: the loop over tiles of columns has to be the outer one.
        mesh = mesh_of(X)
        block = max(rows, -(-X.shape[0] // (1 if mesh is None else mesh.size)))
    sides = rows, cols if terms is None else -(-cols // terms) * terms
    return by_blocks(
        partial(_by_tiles, sides, terms), (kernel, Y, V, less), X, block_size=block
    )


def _by_tiles(
    sides: tuple[int, int],
    terms: int | None,
    other: tuple[Kernel, jax.Array, jax.Array, Any],
    X: jax.Array,
) -> jax.Array:
    kernel, Y, V, less = other
    (n, dim), (m, width), (rows, cols) = X.shape, V.shape, sides
    row_tiles, col_tiles = -(-n // rows), -(-m // cols)
    rows = -(-n // row_tiles)
    X = copies_below(X, row_tiles * rows).reshape(row_tiles, rows, dim)
    Y = copies_below(Y, col_tiles * cols).reshape(col_tiles, cols, dim)
    V = zeros_below(V, col_tiles * cols).reshape(col_tiles, cols, width)

    def one_column_of_tiles(
        totals: jax.Array, columns: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, None]:
        y, v = columns

        # Without the checkpoint a gradient would keep every tile, that is all of K, for the way back.
        @partial(jax.checkpoint, prevent_cse=False)
        def one_tile(row_tile: tuple[jax.Array, jax.Array]) -> jax.Array:
            x, total = row_tile
            K = kernel._tile(x, y)
            if terms is None:
                return total + jnp.matmul(K, v, precision=HIGHEST)
            parts = (
                K.reshape(rows, cols // terms, terms),
                v.reshape(cols // terms, terms, width),
            )
            sums = jnp.einsum("rgk,gkt->grt", *parts, precision=HIGHEST)
            return total + sums.sum(axis=0)

        if row_tiles == 1:
            return one_tile((X[0], totals[0]))[None], None
        return lax.map(one_tile, (X, totals)), None

    start = jnp.zeros((), X.dtype) if less is None else -less
    totals = jnp.broadcast_to(start, (row_tiles, rows, width))
    if col_tiles == 1:
        totals, _ = one_column_of_tiles(totals, (Y[0], V[0]))
    else:
        # The loop over rows is the inner one, so that a tile of columns is an array of its own. If the columns are cut
        # out where the entries are computed, XLA looks up their place for each entry on a CPU, which takes five times
        # as long for up to 8 dimensions.
        totals, _ = lax.scan(one_column_of_tiles, totals, (Y, V))
    return totals.reshape(row_tiles * rows, width)[:n]
