"""The maps of the library as families with one size, and the lines of Python that draw one again.

A map with several sizes has a rule that ties the others to one: Kernel JL and kernel PCA take four landmarks a feature,
which makes the landmarks' share of their error the smaller one; principal components of Fourier features keep
ceil(4 / eps) of them, since what comes after component k of a Gram matrix with unit diagonal is at most n / (k + 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp

from jaxkern import features
from proofs_check.certify._model import LARGEST_SAMPLE, Family

LANDMARKS_A_FEATURE = 4
MOST_FEATURES = 2**14
MOST_LANDMARKS = 2**12
BATCH = 4096
"""Rows of a stream that are handed over at once."""
STREAMED = 2**26
"""Numbers of a stream, at most, where it has a thousand rows or more."""
FOURIER = ("paired_fourier", "shifted_fourier", "orthogonal_fourier", "fastfood")
NAMES = (*FOURIER, "nystrom", "kernel_pca", "kernel_jl", "random_feature_pca", "streaming_pca")


def families(rows: int, dim: int, eps: float) -> dict[str, Family]:
    """Return every map of the library, by name, for a table of `rows` rows and an error eps."""
    found = [_fourier(name) for name in FOURIER]
    found += [_nystrom(rows), _kernel_pca(rows), _kernel_jl(rows)]
    found += [_random_feature_pca(rows, eps), _streaming_pca(rows, dim, eps)]
    return {family.name: family for family in found}


def components(size: int, eps: float) -> int:
    """Return how many principal components of `size` frequencies are kept."""
    return min(2 * size, math.ceil(4 / eps))


def _fourier(name: str) -> Family:
    per = 1 if name == "shifted_fourier" else 2

    def draw(key: Any, kernel: Any, points: None, dim: int, dtype: Any, sizes: Mapping[str, int]) -> Any:
        return getattr(features, name)(key, kernel, dim, **sizes, dtype=dtype)

    def python(sizes: Mapping[str, int]) -> str:
        return f"phi = features.{name}(key_map, kernel, table.dim, {_arguments(sizes)}, dtype=dtype)"

    return Family(
        name=name,
        unit="num_frequencies",
        sizes=lambda size: {"num_frequencies": size},
        num_features=lambda size: per * size,
        num_points=lambda size: 0,
        draw=draw,
        python=python,
        largest=MOST_FEATURES // per,
    )


def _nystrom(rows: int) -> Family:
    def draw(key: Any, kernel: Any, points: Any, dim: int, dtype: Any, sizes: Mapping[str, int]) -> Any:
        return features.nystrom(kernel, points)

    return Family(
        name="nystrom",
        unit="num_landmarks",
        sizes=lambda size: {"num_landmarks": size},
        num_features=lambda size: size,
        num_points=lambda size: size,
        draw=draw,
        python=lambda sizes: "phi = features.nystrom(kernel, points)",
        largest=min(rows, MOST_LANDMARKS),
    )


def _kernel_pca(rows: int) -> Family:
    def draw(key: Any, kernel: Any, points: Any, dim: int, dtype: Any, sizes: Mapping[str, int]) -> Any:
        return features.kernel_pca(kernel, points, num_components=sizes["num_components"], centered=False)

    call = "kernel_pca(kernel, points, num_components={num_components}, centered=False)"
    largest = min(rows, MOST_LANDMARKS // LANDMARKS_A_FEATURE)
    return _of_landmarks("kernel_pca", "num_components", draw, call, rows, largest)


def _kernel_jl(rows: int) -> Family:
    def draw(key: Any, kernel: Any, points: Any, dim: int, dtype: Any, sizes: Mapping[str, int]) -> Any:
        return features.kernel_jl(key, kernel, points, num_features=sizes["num_features"])

    call = "kernel_jl(key_map, kernel, points, num_features={num_features})"
    return _of_landmarks("kernel_jl", "num_features", draw, call, rows, MOST_LANDMARKS // LANDMARKS_A_FEATURE)


def _of_landmarks(name: str, unit: str, draw: Callable[..., Any], call: str, rows: int, largest: int) -> Family:
    def landmarks(size: int) -> int:
        return min(LANDMARKS_A_FEATURE * size, rows)

    return Family(
        name=name,
        unit=unit,
        sizes=lambda size: {unit: size, "num_landmarks": landmarks(size)},
        num_features=lambda size: size,
        num_points=landmarks,
        draw=draw,
        python=lambda sizes: f"phi = features.{call.format(**sizes)}",
        largest=largest,
    )


def _random_feature_pca(rows: int, eps: float) -> Family:
    def draw(key: Any, kernel: Any, points: Any, dim: int, dtype: Any, sizes: Mapping[str, int]) -> Any:
        phi = features.paired_fourier(key, kernel, dim, num_frequencies=sizes["num_frequencies"], dtype=dtype)
        return features.random_feature_pca(
            phi, points, num_components=min(sizes["num_components"], len(points)), centered=False
        )

    def python(sizes: Mapping[str, int]) -> str:
        return (
            f"phi = features.paired_fourier(key_map, kernel, table.dim, num_frequencies={sizes['num_frequencies']}, "
            "dtype=dtype)\n"
            f"phi = features.random_feature_pca(phi, points, num_components={sizes['num_components']}, centered=False)"
        )

    def num_points(size: int) -> int:
        return min(rows, max(LANDMARKS_A_FEATURE * components(size, eps), 1000))

    return Family(
        name="random_feature_pca",
        unit="num_frequencies",
        sizes=lambda size: {
            "num_frequencies": size,
            "num_components": min(components(size, eps), num_points(size)),
            "num_points": num_points(size),
        },
        num_features=lambda size: min(components(size, eps), num_points(size)),
        num_points=num_points,
        draw=draw,
        python=python,
        largest=MOST_FEATURES // 2,
    )


def _streaming_pca(rows: int, dim: int, eps: float) -> Family:
    def draw(key: Any, kernel: Any, points: Any, dim: int, dtype: Any, sizes: Mapping[str, int]) -> Any:
        phi = features.paired_fourier(key, kernel, dim, num_frequencies=sizes["num_frequencies"], dtype=dtype)
        pca = features.streaming_pca(phi, sketch_size=sizes["sketch_size"])
        state = pca.init()
        for start in range(0, len(points), BATCH):
            state = pca.update(state, jnp.asarray(points[start : start + BATCH]))
        return pca.finalize(state, num_components=sizes["sketch_size"])

    def python(sizes: Mapping[str, int]) -> str:
        return (
            f"phi = features.paired_fourier(key_map, kernel, table.dim, num_frequencies={sizes['num_frequencies']}, "
            "dtype=dtype)\n"
            f"pca = features.streaming_pca(phi, sketch_size={sizes['sketch_size']})\n"
            "state = pca.init()\n"
            f"for start in range(0, len(points), {BATCH}):\n"
            f"    state = pca.update(state, points[start : start + {BATCH}])\n"
            f"phi = pca.finalize(state, num_components={sizes['sketch_size']})"
        )

    stream = min(rows, LARGEST_SAMPLE, max(STREAMED // dim, 1000))
    return Family(
        name="streaming_pca",
        unit="num_frequencies",
        sizes=lambda size: {
            "num_frequencies": size,
            "sketch_size": components(size, eps),
            "num_points": stream,
        },
        num_features=lambda size: components(size, eps),
        num_points=lambda size: stream,
        draw=draw,
        python=python,
        largest=MOST_FEATURES // 2,
    )


def _arguments(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items())
