"""ghashami2016, Section 2: the size of features, and what streaming kernel PCA costs, counted in the library."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import features, kernels
from jaxkern import frequent_directions as fd
from jaxkern.bounds import Bound
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting
from proofs_check.papers import flops
from proofs_check.papers.ghashami2016 import algorithm1, clouds, trials
from proofs_check.papers.shared import lines, listed, parametrized

SOURCE = "ghashami2016, Section 2"
_ROWS = ((1_000, 2, 64, 8), (20_000, 50, 512, 16))
SIZES = listed(
    "n={n}, d={d}, m={m}, l={rows}", "n d m rows", _ROWS, shapes="n d m rows"
)


def _features_squares() -> Check:
    def sides(right: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            if setting.data is None:
                Z = algorithm1.sign_rows(range(16))
            else:
                Z = np.asarray(
                    trials.draw(key, setting.data, 16, 0)(setting.data["points"]),
                    np.float64,
                )
            return lines([(float(np.max(Z**2)) * Z.shape[1], right)], SOURCE)

        return Inequality(check)

    chosen, drawn = (
        Setting("points chosen after the features, m=64"),
        clouds.clouds(None, 32)[2],
    )
    settings = (chosen, drawn.setting("m=16", {}, {}))
    return Check(
        printed=Form(sides(2.0), settings),
        controls=(Control("1 / m", sides(1.0), settings, "wrong factor"),),
    )


def _key() -> jax.ShapeDtypeStruct:
    return jax.eval_shape(lambda: jax.random.key(0))


def _pca(
    key: jax.Array, d: int, m: int, rows: int, shrink_at: int
) -> tuple[Any, features.StreamingPCA]:
    """Return shifted features in dimension d and the functions of Algorithm 1 on them, by the library."""
    phi = features.shifted_fourier(key, kernels.Gaussian(1.0), d, num_frequencies=m)
    return phi, features.streaming_pca(phi, sketch_size=rows, shrink_at=shrink_at)


def _points(n: int, d: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((n, d), jnp.result_type(float))


def _numbers_held(n: int, d: int, m: int, rows: int) -> int:
    """Return how many numbers the features and the state hold after n points."""

    def stream(key: jax.Array, X: jax.Array) -> Any:
        phi, pca = _pca(key, d, m, rows, rows // 2)
        return phi.frequencies, phi.shifts, pca.update(pca.init(), X)

    held = jax.eval_shape(stream, _key(), _points(n, d))
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(held))


def _space() -> Check:
    @parametrized(Inequality)
    def at_most(
        setting: Setting, held: Callable[..., int]
    ) -> list[tuple[float, Bound]]:
        d, m, rows = (setting.shapes[name] for name in ("d", "m", "rows"))
        return lines([(held(**setting.shapes) / (d * m + rows * m), 2.0)], SOURCE)

    def exactly(claimed: Callable[..., int]) -> Identity:
        return Identity(
            lambda setting: np.array(
                [_numbers_held(**setting.shapes) / claimed(**setting.shapes) - 1]
            )
        )

    covariance = at_most(lambda n, d, m, rows: d * m + m * m)
    each_point = exactly(lambda n, d, m, rows: d * m + rows * m + 2 * m + 9 + n)
    return Check(
        printed=Form(at_most(_numbers_held), SIZES),
        corrected=Form(
            exactly(lambda n, d, m, rows: d * m + rows * m + 2 * m + 9), SIZES
        ),
        controls=(
            Control("the covariance of the features", covariance, SIZES, "wrong cost"),
            Control("one number for each point", each_point, SIZES, "wrong cost"),
        ),
    )


def _spent(n: int, d: int, m: int, rows: int, shrink_at: int) -> tuple[int, int]:
    """Return the multiply-adds of the features and of all shrinks."""

    def update(key: jax.Array, X: jax.Array) -> Any:
        _, pca = _pca(key, d, m, rows, shrink_at)
        return pca.update(pca.init(), X)

    mapped = flops.multiply_adds(
        lambda key, X: _pca(key, d, m, rows, shrink_at)[0](X), _key(), _points(n, d)
    )
    # The loop over shrinks is counted once. How often it runs does not depend on the rows: the state sums the energy of
    # its buffer over all shrinks that it executes, and here that is 1 at each of them.
    once = flops.multiply_adds(update, _key(), _points(n, d)) - mapped
    state = fd.update(
        fd.init(rows, 1, shrink_at=shrink_at),
        jnp.asarray(np.eye(n, 1, dtype=np.float32)),
    )
    return mapped, round(float(state.magnitude)) * once


def _training() -> Check:
    @parametrized(Inequality)
    def at_most(setting: Setting, every_row: bool) -> list[tuple[float, Bound]]:
        n, d, m, rows = (setting.shapes[name] for name in ("n", "d", "m", "rows"))
        total = sum(_spent(n, d, m, rows, rows if every_row else rows // 2))
        return lines([(total / (n * d * m + n * rows * m), 3.0)], SOURCE)

    @parametrized(Identity)
    def exactly(setting: Setting, freed: Callable[[int], int]) -> np.ndarray:
        """Return the check that a shrink frees so many rows of l."""
        n, d, m, rows = (setting.shapes[name] for name in ("n", "d", "m", "rows"))
        mapped, sketched = _spent(n, d, m, rows, rows // 2)
        claimed = (
            math.ceil((n - rows) / freed(rows)) * (rows**2 + (rows // 2 - 1) * rows) * m
        )
        return np.array([mapped / (n * d * m) - 1, sketched / claimed - 1])

    return Check(
        printed=Form(at_most(every_row=False), SIZES),
        corrected=Form(exactly(lambda rows: rows // 2 + 1), SIZES),
        controls=(
            Control(
                "a decomposition at every row",
                at_most(every_row=True),
                SIZES[:1],
                "wrong cost",
            ),
            Control(
                "l / 2 rows freed by a shrink",
                exactly(lambda rows: rows // 2),
                SIZES[:1],
                "n for n - 1",
            ),
        ),
    )


def test_cost(n: int, d: int, m: int, rows: int, directions: int) -> int:
    """Return the multiply-adds that n points in dimension d take at test, by the library."""

    def fitted(key: jax.Array, X: jax.Array) -> jax.Array:
        _, pca = _pca(key, d, m, rows, rows // 2)
        return pca.finalize(pca.init(), num_components=directions)(X)

    return flops.multiply_adds(fitted, _key(), _points(n, d))


def _test_time() -> Check:
    @parametrized(Identity)
    def exactly(setting: Setting, directions: Callable[[int, int], int]) -> np.ndarray:
        n, d, m, rows = (setting.shapes[name] for name in ("n", "d", "m", "rows"))
        claimed = n * (d * m + directions(m, rows) * m)
        return np.array([test_cost(n, d, m, rows, rows) / claimed - 1])

    onto_all = exactly(lambda m, rows: m)
    return Check(
        printed=Form(exactly(lambda m, rows: rows), SIZES),
        controls=(
            Control(
                "a projection onto all m directions", onto_all, SIZES, "wrong cost"
            ),
        ),
    )
