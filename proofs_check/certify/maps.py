"""The maps of the library as families with one size, what they cost, and the Python that draws one again.

A map with several sizes has a rule that ties the others to one. Kernel JL and kernel PCA take four landmarks a feature,
which makes the landmarks' share of their error the smaller one. Principal components of Fourier features keep
ceil(4 / eps) of them, since component k + 1 of a Gram matrix with unit diagonal is at most n / (k + 1).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import features
from jaxkern.pytrees import pytree
from proofs_check.certify.points import compiled

LANDMARKS_A_FEATURE = 4
MOST_FEATURES = 2**14
MOST_LANDMARKS = 2**12
STREAM = 4096
"""Rows of a stream, at most: a longer one takes as many times as long, and leaves the errors where they are."""
STREAMED = 2**26
"""Numbers of a stream, at most, if it has a thousand rows or more."""
ENTRY = 75
"""Multiply-adds that take as long as a cosine or a value of the kernel. Without it, maps of many cheap frequencies
would look as cheap as maps of few landmarks in low dimension."""
SHARED = 64
"""Sizes up to this share one program, and larger ones up to a multiple of it or of an eighth of the next power of two.
Without sharing every size of a map compiles programs of its own, for about a second; a search tries about ten."""
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


@dataclass(frozen=True)
class Family:
    """A map of the library with one size, from which all its sizes follow.

    Attributes
    ----------
    name : the public function of `jaxkern.features`.
    unit : what the size counts, such as "num_frequencies".
    sizes : size -> the keyword sizes of the map, in the order in which they are passed.
    num_features : size -> features of a point.
    num_points : size -> rows of the table that the map is made of: landmarks, or a stream; 0 for none.
    draw : (key, kernel, points, dim, dtype, sizes) -> map; points are None if num_points is 0.
    python : (sizes) -> the lines of Python that draw it from `key_map`, `kernel`, `table` (and `points`).
    largest : the largest size; the smallest is 1.
    shared : as `draw`, for the same map up to zero features and rounding, whose programs neighbouring sizes share.
    """

    name: str
    unit: str
    sizes: Callable[[int], dict[str, int]]
    num_features: Callable[[int], int]
    num_points: Callable[[int], int]
    draw: Callable[..., Any]
    python: Callable[[Sizes], str]
    largest: int
    shared: Callable[..., Any] | None = None


def families(rows: int, dim: int, eps: float) -> dict[str, Family]:
    """Return every map of the library, by name, for a table of `rows` rows and an error eps."""
    all_families = [_fourier(name) for name in FOURIER]
    all_families += [
        _nystrom(rows),
        _kernel_pca(rows),
        _kernel_jl(rows),
        _random_feature_pca(rows, eps),
        _streaming_pca(rows, dim, eps),
    ]
    return {family.name: family for family in all_families}


def limited(family: Family, features: int) -> Family:
    """Return a map with no sizes of more features than that; if it has none, the largest is 0."""
    low = 0
    high = family.largest
    while low < high:
        middle = (low + high + 1) // 2
        if family.num_features(middle) <= features:
            low = middle
        else:
            high = middle - 1
    return replace(family, largest=low)


def cost(family: Family, size: int, dim: int) -> float:
    """Return about how many multiply-adds the features of a point take; a cosine counts as `ENTRY` of them."""
    sizes = family.sizes(size)
    num_features = family.num_features(size)
    if "num_frequencies" not in sizes:
        return float(sizes["num_landmarks"] * (ENTRY + dim + num_features))
    phase = 12 * math.log2(2 * dim) if family.name == "fastfood" else dim
    cosines = 1 if family.name == "shifted_fourier" else 2
    projected = cosines * num_features if "num_points" in sizes else 0
    return float(sizes["num_frequencies"] * (phase + cosines * ENTRY + projected))


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
        shared=partial(_shared_fourier, name),
    )


def _draw_fourier(
    name: str, key: Any, kernel: Any, _points: Any, dim: int, dtype: Any, sizes: Sizes
) -> Any:
    draw = getattr(features, name)
    num_frequencies = sizes["num_frequencies"]
    return draw(key, kernel, dim, num_frequencies=num_frequencies, dtype=dtype)


@pytree
class First:
    """The map of the first `count` frequencies of a larger one; the other features are zero."""

    feature_map: Any
    count: Any

    @property
    def num_features(self) -> int:
        """Number of features, zeros included."""
        return int(self.feature_map.num_features)

    def __call__(self, X: jax.Array) -> jax.Array:
        """Return the features, as many as the larger map has, at the scale of the smaller one."""
        Z = self.feature_map(X)
        total = self.feature_map.num_frequencies
        scale = jnp.sqrt(total / jnp.asarray(self.count, Z.dtype))
        is_used = jnp.arange(Z.shape[1]) % total < self.count
        return jnp.where(is_used[None, :], Z * scale, 0)


def _shared_fourier(
    name: str, key: Any, kernel: Any, _points: Any, dim: int, dtype: str, sizes: Sizes
) -> First:
    size = sizes["num_frequencies"]
    return _first(name, key, kernel, dim, dtype, _shared_size(size), size)


@partial(compiled, static_argnums=(0, 3, 4, 5))
def _first(
    name: str, key: Any, kernel: Any, dim: int, dtype: str, total: int, size: Any
) -> First:
    sizes = {"num_frequencies": total}
    return First(_draw_fourier(name, key, kernel, None, dim, dtype, sizes), size)


def _shared_size(size: int) -> int:
    """Return the size whose programs serve a size."""
    step = max(SHARED, 1 << max((size - 1).bit_length() - 3, 0))
    return -(-size // step) * step


def _fourier_python(name: str, sizes: Sizes) -> str:
    frequencies = f"num_frequencies={sizes['num_frequencies']}"
    return (
        f"phi = features.{name}(key_map, kernel, table.dim, {frequencies}, dtype=dtype)"
    )


# Landmarks


def _nystrom(rows: int) -> Family:
    def draw(
        _key: Any, kernel: Any, points: Any, _dim: int, _dtype: Any, _sizes: Sizes
    ) -> Any:
        return features.nystrom(kernel, points)

    return Family(
        name="nystrom",
        unit="num_landmarks",
        sizes=lambda size: {"num_landmarks": size},
        num_features=lambda size: size,
        num_points=lambda size: size,
        draw=draw,
        python=lambda _sizes: "phi = features.nystrom(kernel, points)",
        largest=min(rows, MOST_LANDMARKS),
        shared=partial(_shared_nystrom, rows),
    )


def _shared_nystrom(
    rows: int,
    _key: Any,
    kernel: Any,
    points: Any,
    _dim: int,
    _dtype: Any,
    _sizes: Sizes,
) -> Any:
    total = min(_shared_size(len(points)), rows)
    # By NumPy: `jnp.pad` would be a program for every size.
    padded = np.pad(points, ((0, total - len(points)), (0, 0)))
    weights = (np.arange(total) < len(points)).astype(points.dtype)
    return _weighted_nystrom(kernel, padded, weights)


@compiled
def _weighted_nystrom(kernel: Any, points: Any, weights: Any) -> Any:
    return features.nystrom(kernel, points, weights=weights)


def _kernel_pca(rows: int) -> Family:
    def draw(
        _key: Any, kernel: Any, points: Any, _dim: int, _dtype: Any, sizes: Sizes
    ) -> Any:
        components = sizes["num_components"]
        return features.kernel_pca(
            kernel, points, num_components=components, centered=False
        )

    line = "phi = features.kernel_pca(kernel, points, num_components={num_components}, centered=False)"
    largest = min(rows, MOST_LANDMARKS // LANDMARKS_A_FEATURE)
    return _of_landmarks(rows, "kernel_pca", "num_components", draw, line, largest)


def _kernel_jl(rows: int) -> Family:
    def draw(
        key: Any, kernel: Any, points: Any, _dim: int, _dtype: Any, sizes: Sizes
    ) -> Any:
        return features.kernel_jl(
            key, kernel, points, num_features=sizes["num_features"]
        )

    line = (
        "phi = features.kernel_jl(key_map, kernel, points, num_features={num_features})"
    )
    largest = MOST_LANDMARKS // LANDMARKS_A_FEATURE
    return _of_landmarks(rows, "kernel_jl", "num_features", draw, line, largest)


def _of_landmarks(
    rows: int, name: str, unit: str, draw: Callable[..., Any], line: str, largest: int
) -> Family:
    """Return a map with four landmarks a feature, as far as there are rows."""

    def landmarks(size: int) -> int:
        return min(LANDMARKS_A_FEATURE * size, rows)

    return Family(
        name=name,
        unit=unit,
        sizes=lambda size: {unit: size, "num_landmarks": landmarks(size)},
        num_features=lambda size: size,
        num_points=landmarks,
        draw=draw,
        python=lambda sizes: line.format(**sizes),
        largest=largest,
    )


# Principal components of paired Fourier features


def _components(size: int, eps: float) -> int:
    """Return how many principal components of `size` frequencies are kept."""
    return min(2 * size, math.ceil(4 / eps))


def _random_feature_pca(rows: int, eps: float) -> Family:
    def num_points(size: int) -> int:
        return min(rows, max(LANDMARKS_A_FEATURE * _components(size, eps), 1000))

    def rank(size: int) -> int:
        return min(_components(size, eps), num_points(size))

    def reduced(phi: Any, points: Any, rank: int) -> Any:
        return features.random_feature_pca(
            phi, points, num_components=rank, centered=False
        )

    line = "phi = features.random_feature_pca(phi, points, num_components={num_components}, centered=False)"
    return _of_components(
        "random_feature_pca", "num_components", rank, num_points, reduced, line
    )


def _streaming_pca(rows: int, dim: int, eps: float) -> Family:
    stream = min(rows, STREAM, max(STREAMED // dim, 1000))

    def reduced(phi: Any, points: Any, rank: int) -> Any:
        pca = features.streaming_pca(phi, sketch_size=rank)
        return pca.finalize(pca.update(pca.init(), points), num_components=rank)

    lines = (
        "pca = features.streaming_pca(phi, sketch_size={sketch_size})\n"
        "state = pca.update(pca.init(), points)\n"
        "phi = pca.finalize(state, num_components={sketch_size})"
    )
    rank = partial(_components, eps=eps)
    return _of_components(
        "streaming_pca", "sketch_size", rank, lambda _size: stream, reduced, lines
    )


def _of_components(
    name: str,
    kept: str,
    rank: Callable[[int], int],
    num_points: Callable[[int], int],
    reduced: Callable[[Any, Any, int], Any],
    lines: str,
) -> Family:
    """Return the map `reduced(phi, points, rank)`, which `lines` of Python write; `kept` is the name of its rank."""

    def draw(
        fourier: Any,
        key: Any,
        kernel: Any,
        points: Any,
        dim: int,
        dtype: Any,
        sizes: Sizes,
    ) -> Any:
        phi = fourier("paired_fourier", key, kernel, None, dim, dtype, sizes)
        return reduced(phi, points, sizes[kept])

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
        shared=partial(draw, _shared_fourier),
    )
