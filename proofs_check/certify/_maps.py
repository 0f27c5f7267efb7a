"""The maps of the library as families with one size, and the lines of Python that draw one again.

A map with several sizes has a rule that ties the others to one: Kernel JL and kernel PCA take four landmarks a feature,
which makes the landmarks' share of their error the smaller one; principal components of Fourier features keep
ceil(4 / eps) of them, since what comes after component k of a Gram matrix with unit diagonal is at most n / (k + 1).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from jaxkern import features
from proofs_check.certify._model import Family
from proofs_check.certify._rows import First, compiled

LANDMARKS_A_FEATURE = 4
MOST_FEATURES = 2**14
MOST_LANDMARKS = 2**12
FREQUENCIES = 128
"""Sizes share programs up to powers of two from 32 to this, its multiples, and eighths of the next power of two."""
LANDMARKS = 32
"""The same for landmarks, whose number counts with its third power; up to the number of rows."""
STREAM = 4096
"""Rows of a stream, at most: a longer one takes as many times as long, and leaves the errors where they are."""
STREAMED = 2**26
"""Numbers of a stream, at most, where it has a thousand rows or more."""
FOURIER = ("paired_fourier", "shifted_fourier", "orthogonal_fourier", "fastfood")
NAMES = (
    *FOURIER,
    "nystrom",
    "kernel_pca",
    "kernel_jl",
    "random_feature_pca",
    "streaming_pca",
)

Sizes = Mapping[str, int]
OfSize = Callable[[int], int]


def families(rows: int, dim: int, eps: float) -> dict[str, Family]:
    """Return every map of the library, by name, for a table of `rows` rows and an error eps."""
    every = [
        *map(_fourier, FOURIER),
        replace(
            _of_landmarks(rows, "nystrom", "num_landmarks", 1, _nystrom, "nystrom(kernel, points)"),
            first=partial(_first_nystrom, rows),
        ),
        _of_landmarks(
            rows, "kernel_pca", "num_components", LANDMARKS_A_FEATURE, _kernel_pca,
            "kernel_pca(kernel, points, num_components={num_components}, centered=False)",
        ),
        _of_landmarks(
            rows, "kernel_jl", "num_features", LANDMARKS_A_FEATURE, _kernel_jl,
            "kernel_jl(key_map, kernel, points, num_features={num_features})",
        ),
        _random_feature_pca(rows, eps),
        _streaming_pca(rows, dim, eps),
    ]  # fmt: skip
    return {family.name: family for family in every}


def limited(family: Family, features: int) -> Family:
    """Return a map with no sizes of more features than that; where it has none, the largest is 0."""
    low, high = 0, family.largest
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high)
            if family.num_features(middle) <= features
            else (low, middle - 1)
        )
    return replace(family, largest=low)


def components(size: int, eps: float) -> int:
    """Return how many principal components of `size` frequencies are kept."""
    return min(2 * size, math.ceil(4 / eps))


# Fourier features


def _fourier(name: str) -> Family:
    per_frequency = 1 if name == "shifted_fourier" else 2
    return Family(
        name=name,
        unit="num_frequencies",
        sizes=lambda size: {"num_frequencies": size},
        num_features=lambda size: per_frequency * size,
        num_points=lambda _size: 0,
        draw=partial(_draw_fourier, name),
        python=partial(_fourier_python, name),
        largest=MOST_FEATURES // per_frequency,
        first=partial(_first, name),
    )


def _draw_fourier(
    name: str, key: Any, kernel: Any, _points: Any, dim: int, dtype: Any, sizes: Sizes
) -> Any:
    return getattr(features, name)(
        key, kernel, dim, num_frequencies=sizes["num_frequencies"], dtype=dtype
    )


def _first(
    name: str, key: Any, kernel: Any, _points: Any, dim: int, dtype: str, sizes: Sizes
) -> Any:
    size = sizes["num_frequencies"]
    return _first_of(name, key, kernel, dim, dtype, _shared(size, FREQUENCIES), size)


def _shared(size: int, most: int) -> int:
    """Return the size whose programs serve: a power of two, a multiple of `most`, or eighths of one."""
    power = 1 << (size - 1).bit_length()
    step = max(power // 8, min(max(power, 32), most))
    return -(-size // step) * step


@partial(compiled, static_argnums=(0, 3, 4, 5))
def _first_of(
    name: str, key: Any, kernel: Any, dim: int, dtype: str, total: int, size: Any
) -> First:
    return First(
        _draw_fourier(name, key, kernel, None, dim, dtype, {"num_frequencies": total}),
        size,
    )


def _fourier_python(name: str, sizes: Sizes) -> str:
    frequencies = f"num_frequencies={sizes['num_frequencies']}"
    return (
        f"phi = features.{name}(key_map, kernel, table.dim, {frequencies}, dtype=dtype)"
    )


# Landmarks


def _of_landmarks(
    rows: int, name: str, unit: str, per_size: int, draw: Callable[..., Any], call: str
) -> Family:
    def landmarks(size: int) -> int:
        return min(per_size * size, rows)

    return Family(
        name=name,
        unit=unit,
        sizes=lambda size: {unit: size, "num_landmarks": landmarks(size)},
        num_features=lambda size: size,
        num_points=landmarks,
        draw=draw,
        python=lambda sizes: f"phi = features.{call.format(**sizes)}",
        largest=MOST_LANDMARKS // per_size
        if name == "kernel_jl"
        else min(rows, MOST_LANDMARKS // per_size),
    )


def _nystrom(
    _key: Any, kernel: Any, points: Any, _dim: int, _dtype: Any, _sizes: Sizes
) -> Any:
    return features.nystrom(kernel, points)


def _first_nystrom(
    rows: int,
    _key: Any,
    kernel: Any,
    points: Any,
    _dim: int,
    _dtype: Any,
    _sizes: Sizes,
) -> Any:
    more = min(_shared(len(points), LANDMARKS), rows) - len(points)
    filled = np.pad(points, ((0, more), (0, 0)))  # `jnp.pad` would be a program
    return _weighted_nystrom(
        kernel, filled, (np.arange(len(filled)) < len(points)).astype(points.dtype)
    )


@compiled
def _weighted_nystrom(kernel: Any, points: Any, weights: Any) -> Any:
    return features.nystrom(kernel, points, weights=weights)


def _kernel_pca(
    _key: Any, kernel: Any, points: Any, _dim: int, _dtype: Any, sizes: Sizes
) -> Any:
    return features.kernel_pca(
        kernel, points, num_components=sizes["num_components"], centered=False
    )


def _kernel_jl(
    key: Any, kernel: Any, points: Any, _dim: int, _dtype: Any, sizes: Sizes
) -> Any:
    return features.kernel_jl(key, kernel, points, num_features=sizes["num_features"])


# Principal components of paired Fourier features


def _of_components(
    name: str,
    kept: str,
    rank: OfSize,
    num_points: OfSize,
    reduced: Callable[[Any, Any, int], Any],
    lines: str,
) -> Family:
    """Return the map `reduced(phi, points, rank)`, which `lines` of Python write; the rank is its size `kept`."""

    def draw(
        fourier: Any,
        key: Any,
        kernel: Any,
        points: Any,
        dim: int,
        dtype: Any,
        sizes: Sizes,
    ) -> Any:
        return reduced(
            fourier("paired_fourier", key, kernel, None, dim, dtype, sizes),
            points,
            sizes[kept],
        )

    return Family(
        name=name,
        unit="num_frequencies",
        sizes=lambda size: {
            "num_frequencies": size,
            kept: rank(size),
            "num_points": num_points(size),
        },
        num_features=rank,
        num_points=num_points,
        draw=partial(draw, _draw_fourier),
        python=lambda sizes: (
            f"{_fourier_python('paired_fourier', sizes)}\n{lines.format(**sizes)}"
        ),
        largest=MOST_FEATURES // 2,
        first=partial(draw, _first),
    )


def _random_feature_pca(rows: int, eps: float) -> Family:
    def reduced(phi: Any, points: Any, rank: int) -> Any:
        return features.random_feature_pca(
            phi, points, num_components=min(rank, len(points)), centered=False
        )

    def num_points(size: int) -> int:
        return min(rows, max(LANDMARKS_A_FEATURE * components(size, eps), 1000))

    def rank(size: int) -> int:
        return min(components(size, eps), num_points(size))

    line = "phi = features.random_feature_pca(phi, points, num_components={num_components}, centered=False)"
    return _of_components(
        "random_feature_pca", "num_components", rank, num_points, reduced, line
    )


def _streaming_pca(rows: int, dim: int, eps: float) -> Family:
    def reduced(phi: Any, points: Any, rank: int) -> Any:
        pca = features.streaming_pca(phi, sketch_size=rank)
        return pca.finalize(pca.update(pca.init(), points), num_components=rank)

    stream = min(rows, STREAM, max(STREAMED // dim, 1000))
    lines = (
        "pca = features.streaming_pca(phi, sketch_size={sketch_size})\n"
        "state = pca.update(pca.init(), points)\n"
        "phi = pca.finalize(state, num_components={sketch_size})"
    )
    rank = partial(components, eps=eps)
    return _of_components(
        "streaming_pca", "sketch_size", rank, lambda _size: stream, reduced, lines
    )
