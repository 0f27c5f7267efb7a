"""ghashami2016, Section 2: the size of features, and what streaming kernel PCA costs, counted in the library."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxkern import features, kernels
from jaxkern import frequent_directions as fd
from jaxkern.bounds import Bound
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting
from proofs_check.papers import flops
from proofs_check.papers.ghashami2016 import algorithm1, clouds
from proofs_check.papers.ghashami2016.setup import Function
from proofs_check.papers.shared import Grids, always, check_of, wrong

SOURCE = "ghashami2016, Section 2"

Pairs = list[tuple[float, Bound]]


def _largest_square(key: Array, data: Any, right: float = 2.0) -> Pairs:
    """Compare m max z_i^2 with 2, for drawn features or, without points, for points chosen after the features."""
    Z = (
        algorithm1.feature_rows(key, data, 16)
        if data
        else algorithm1.sign_rows(range(16))
    )
    return [(float(np.max(Z**2)) * Z.shape[1], always(right, SOURCE))]


def features_squares() -> Check:
    chosen = Setting("points chosen after the features, m=64")
    drawn = clouds.clouds(None, 32)[2].setting("m=16")
    smaller = wrong("1 / m", "wrong factor", right=1.0)
    return check_of(Inequality, [chosen, drawn], smaller, printed=_largest_square)


def abstract_key() -> jax.ShapeDtypeStruct:
    """Return the shape of a key, for programs that are counted and not executed."""
    return jax.eval_shape(jax.random.key, 0)


def abstract_points(n: int, d: int) -> jax.ShapeDtypeStruct:
    """Return the shape of n points in dimension d."""
    return jax.ShapeDtypeStruct((n, d), jnp.result_type(float))


def _pca(
    key: Array, d: int, m: int, rows: int, shrink_at: int
) -> tuple[Any, features.StreamingPCA]:
    """Return shifted features in dimension d and the functions of Algorithm 1 on them, by the library."""
    phi = features.shifted_fourier(key, kernels.Gaussian(1.0), d, num_frequencies=m)
    return phi, features.streaming_pca(phi, sketch_size=rows, shrink_at=shrink_at)


def _mapped(key: Array, X: Array, **sizes: int) -> Array:
    phi, _ = _pca(key, X.shape[1], **sizes)
    return phi(X)


def _streamed(key: Array, X: Array, **sizes: int) -> Any:
    """Return what the library holds after the points: frequencies, shifts and the state."""
    phi, pca = _pca(key, X.shape[1], **sizes)
    return phi.frequencies, phi.shifts, pca.update(pca.init(), X)


def _projected(key: Array, X: Array, directions: int, **sizes: int) -> Any:
    _, pca = _pca(key, X.shape[1], **sizes)
    return pca.finalize(pca.init(), num_components=directions)(X)


def _numbers_between_points(n: int, d: int, m: int, rows: int) -> int:
    """Return how many numbers the features and the state hold after n points."""
    stream = partial(_streamed, m=m, rows=rows, shrink_at=rows // 2)
    leaves = jax.tree.leaves(
        jax.eval_shape(stream, abstract_key(), abstract_points(n, d))
    )
    return sum(math.prod(leaf.shape) for leaf in leaves)


def _order_of_space(
    n: int,
    d: int,
    m: int,
    rows: int,
    count: Function = _numbers_between_points,
) -> Pairs:
    numbers = count(n, d, m, rows)
    return [(numbers / (d * m + rows * m), always(2.0, SOURCE))]


def _covariance_space(n: int, d: int, m: int, rows: int) -> int:
    return d * m + m * m


def _exact_space(n: int, d: int, m: int, rows: int, each_point: int = 0) -> float:
    claimed = d * m + rows * m + 2 * m + 9 + each_point * n
    return _numbers_between_points(n, d, m, rows) / claimed - 1


def space(grids: Grids) -> Check:
    sizes = grids["sizes"]
    covariance = Inequality(partial(_order_of_space, count=_covariance_space))
    each_point = Identity(partial(_exact_space, each_point=1))
    return Check(
        printed=Form(Inequality(_order_of_space), sizes),
        corrected=Form(Identity(_exact_space), sizes),
        controls=(
            Control("the covariance of the features", covariance, sizes, "wrong cost"),
            Control("one number for each point", each_point, sizes, "wrong cost"),
        ),
    )


def _spent(n: int, d: int, m: int, rows: int, shrink_at: int) -> tuple[int, int]:
    """Return the multiply-adds of the features and of all shrinks."""
    sizes: Any = {"m": m, "rows": rows, "shrink_at": shrink_at}
    arguments = (abstract_key(), abstract_points(n, d))
    mapped = flops.multiply_adds(partial(_mapped, **sizes), *arguments)
    # The loop over shrinks is counted once. How often it runs does not depend on the rows: the state sums the energy of
    # its buffer over all shrinks that it executes, and here that is 1 at each of them.
    once = flops.multiply_adds(partial(_streamed, **sizes), *arguments) - mapped
    unit_rows = jnp.asarray(np.eye(n, 1, dtype=np.float32))
    state = fd.update(fd.init(rows, 1, shrink_at=shrink_at), unit_rows)
    return mapped, round(float(state.magnitude)) * once


def _order_of_training(
    n: int, d: int, m: int, rows: int, every_row: bool = False
) -> Pairs:
    total = sum(_spent(n, d, m, rows, rows if every_row else rows // 2))
    return [(total / (n * d * m + n * rows * m), always(3.0, SOURCE))]


def _exact_training(n: int, d: int, m: int, rows: int, freed: int = 1) -> list[float]:
    """Compare with what is claimed if a shrink frees l / 2 + `freed` rows of l."""
    mapped, sketched = _spent(n, d, m, rows, rows // 2)
    shrinks = math.ceil((n - rows) / (rows // 2 + freed))
    claimed = shrinks * (rows**2 + (rows // 2 - 1) * rows) * m
    return [mapped / (n * d * m) - 1, sketched / claimed - 1]


def training(grids: Grids) -> Check:
    sizes = grids["sizes"]
    every_row = Inequality(partial(_order_of_training, every_row=True))
    fewer = Identity(partial(_exact_training, freed=0))
    return Check(
        printed=Form(Inequality(_order_of_training), sizes),
        corrected=Form(Identity(_exact_training), sizes),
        controls=(
            Control("a decomposition at every row", every_row, sizes[:1], "wrong cost"),
            Control("l / 2 rows freed by a shrink", fewer, sizes[:1], "n for n - 1"),
        ),
    )


def test_cost(n: int, d: int, m: int, rows: int, directions: int) -> int:
    """Return the multiply-adds that n points in dimension d take at test, by the library."""
    project = partial(
        _projected, m=m, rows=rows, shrink_at=rows // 2, directions=directions
    )
    return flops.multiply_adds(project, abstract_key(), abstract_points(n, d))


def _exact_test(n: int, d: int, m: int, rows: int, onto_all: bool = False) -> float:
    """Compare with what is claimed if the projection is onto l directions or, for a control, onto all m."""
    directions = m if onto_all else rows
    claimed = n * (d * m + directions * m)
    return test_cost(n, d, m, rows, rows) / claimed - 1


def test(grids: Grids) -> Check:
    onto_all = wrong("a projection onto all m directions", "wrong cost", onto_all=True)
    return check_of(Identity, grids["sizes"], onto_all, printed=_exact_test)
