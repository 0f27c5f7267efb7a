"""ghashami2016, what streaming kernel PCA costs, counted in the library's own states and programs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import features, kernels
from jaxkern import frequent_directions as fd
from jaxkern.bounds import Bound
from proofs_check.claim import Check, Control, Expectation, Form, Identity, Inequality, Setting
from proofs_check.papers import flops
from proofs_check.papers.ghashami2016 import trials as t

PAPER = "ghashami2016"

Sides = Callable[[jax.Array, Setting], list[tuple[float, Bound]]]


def _sizes(*numbers: tuple[int, int, int, int]) -> tuple[Setting, ...]:
    """Return settings with n points in dimension d, m features and l rows of the sketch."""
    return tuple(
        Setting(f"n={n}, d={d}, m={m}, l={size}", shapes={"n": n, "d": d, "m": m, "l": size})
        for n, d, m, size in numbers
    )


COST_PLACES = _sizes((1_000, 2, 64, 8), (20_000, 50, 512, 16))


def _key() -> jax.ShapeDtypeStruct:
    return jax.eval_shape(lambda: jax.random.key(0))


def _pca(
    key: jax.Array, d: int, m: int, size: int, shrink_at: int | None = None
) -> tuple[features.ShiftedFourier, features.StreamingPCA]:
    """Return shifted features in dimension d and the functions of Algorithm 1 on them, by the library."""
    phi = features.shifted_fourier(key, kernels.Gaussian(1.0), d, num_frequencies=m)
    return phi, features.streaming_pca(phi, sketch_size=size, shrink_at=size // 2 if shrink_at is None else shrink_at)


def _points(n: int, d: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((n, d), jnp.result_type(float))


def _numbers_held(setting: Setting) -> int:
    """Return how many numbers the features and the state hold after n points."""
    n, d, m, size = (setting.shapes[name] for name in ("n", "d", "m", "l"))

    def stream(key: jax.Array, X: jax.Array) -> Any:
        phi, pca = _pca(key, d, m, size)
        return phi.frequencies, phi.shifts, pca.update(pca.init(), X)

    held = jax.eval_shape(stream, _key(), _points(n, d))
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(held))


def _space() -> Check:
    def at_most(quadratic: bool) -> Sides:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            del key
            d, m, size = (setting.shapes[name] for name in ("d", "m", "l"))
            held = d * m + m * m if quadratic else _numbers_held(setting)
            return [(held / (d * m + size * m), Bound(2.0, 1.0, size >= 2, "ghashami2016, Section 2"))]

        return check

    def exact(extra: int) -> Callable[[jax.Array, Setting], np.ndarray]:
        def residual(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            d, m, size = (setting.shapes[name] for name in ("d", "m", "l"))
            return np.array([_numbers_held(setting) / (d * m + size * m + 2 * m + 9 + extra * setting.shapes["n"]) - 1])

        return residual

    return Check(
        printed=Form(Inequality(at_most(quadratic=False)), COST_PLACES),
        corrected=Form(Identity(exact(0)), COST_PLACES),
        controls=(
            Control("the covariance of the features", Inequality(at_most(quadratic=True)), COST_PLACES, "wrong cost"),
            Control("one number for each point", Identity(exact(1)), COST_PLACES, "wrong cost"),
        ),
    )


def _training() -> Check:
    def spent(setting: Setting, shrink_at: int) -> tuple[int, int]:
        """Return the multiply-adds of the features and of all shrinks."""
        n, d, m, size = (setting.shapes[name] for name in ("n", "d", "m", "l"))

        def update(key: jax.Array, X: jax.Array) -> Any:
            _, pca = _pca(key, d, m, size, shrink_at)
            return pca.update(pca.init(), X)

        mapped = flops.multiply_adds(lambda key, X: _pca(key, d, m, size)[0](X), _key(), _points(n, d))
        # The loop over shrinks is counted once, and how often it runs does not depend on the rows.
        one = flops.multiply_adds(update, _key(), _points(n, d)) - mapped
        state = fd.update(fd.init(size, 1, shrink_at=shrink_at), jnp.zeros((n, 1), jnp.float32))
        shrinks = (n - int(state.filled)) // (size + 1 - shrink_at)
        return mapped, shrinks * one

    def at_most(every_row: bool) -> Sides:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            del key
            n, d, m, size = (setting.shapes[name] for name in ("n", "d", "m", "l"))
            total = sum(spent(setting, size if every_row else size // 2))
            return [(total / (n * d * m + n * size * m), Bound(3.0, 1.0, size >= 2, "ghashami2016, Section 2"))]

        return check

    def exact(freed: Callable[[int], int]) -> Identity:
        """Return the check that a shrink frees so many rows of l."""

        def residual(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            n, d, m, size = (setting.shapes[name] for name in ("n", "d", "m", "l"))
            mapped, sketched = spent(setting, size // 2)
            claimed = math.ceil((n - size) / freed(size)) * (size**2 + (size // 2 - 1) * size) * m
            return np.array([mapped / (n * d * m) - 1, sketched / claimed - 1])

        return Identity(residual)

    return Check(
        printed=Form(Inequality(at_most(every_row=False)), COST_PLACES),
        corrected=Form(exact(lambda size: size // 2 + 1), COST_PLACES),
        controls=(
            Control("a decomposition at every row", Inequality(at_most(every_row=True)), COST_PLACES[:1], "wrong cost"),
            Control("l / 2 rows freed by a shrink", exact(lambda size: size // 2), COST_PLACES[:1], "n for n - 1"),
        ),
    )


def _test_time() -> Check:
    def residual(quadratic: bool) -> Callable[[jax.Array, Setting], np.ndarray]:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            n, d, m, size = (setting.shapes[name] for name in ("n", "d", "m", "l"))

            def fitted(key: jax.Array, X: jax.Array) -> jax.Array:
                _, pca = _pca(key, d, m, size)
                return pca.finalize(pca.init(), num_components=size)(X)

            claimed = n * (d * m + (m if quadratic else size) * m)
            return np.array([flops.multiply_adds(fitted, _key(), _points(n, d)) / claimed - 1])

        return check

    return Check(
        printed=Form(Identity(residual(quadratic=False)), COST_PLACES),
        controls=(
            Control(
                "a projection onto all m directions", Identity(residual(quadratic=True)), COST_PLACES, "wrong cost"
            ),
        ),
    )


def _reservoir() -> Check:
    c, n = 8, 64
    places = (Setting(f"c={c}, n={n}", shapes={"size": c, "length": n}),)

    def holds(target: Callable[[Setting], float]) -> Expectation:
        return Expectation(t.reservoir_updates, target, exact)

    def exact(setting: Setting) -> float:
        return c * (1 + sum(1 / i for i in range(c + 1, n + 1)))

    def from_c(setting: Setting) -> float:
        return c * (1 + sum(1 / i for i in range(c, n + 1)))

    def logarithm(setting: Setting) -> float:
        return c * math.log(n)

    return Check(
        corrected=Form(holds(exact), places),
        controls=(
            Control("c log n as a number", holds(logarithm), places, "term left out"),
            Control("H with c - 1 for c", holds(from_c), places, "n for n - 1"),
        ),
    )
