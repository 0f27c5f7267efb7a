"""The points that the statements of ghashami2016 are tried on, in the order in which a stream brings them."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import kernels
from jaxkern.gram import gram
from proofs_check.claim import Setting
from proofs_check.papers.populations import Population

MOST_POINTS = 128
NONE: Mapping[str, int] = {}
Settings = tuple[Setting, ...]


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points, in the order in which a stream brings them, and a kernel with K(x, x) = 1 of a known spectral law."""

    name: str
    kernel: Any
    points: np.ndarray

    @property
    def num_points(self) -> int:
        """n."""
        return len(self.points)

    @functools.cached_property
    def data(self) -> dict[str, Any]:
        """What trials need: the kernel, the points (n, d) and their Gram matrix (n, n), in the default dtype."""
        points = jnp.asarray(self.points, jax.dtypes.canonicalize_dtype(float))
        G = gram(self.kernel, points)
        return {"kernel": self.kernel, "points": points, "gram": G}

    def with_tail(self, rank: int, spectral: bool) -> dict[str, Any]:
        """Return the data with `tail`, |G - G_k|_2 or |G - G_k|_F for k = `rank`."""
        tail = tails(self, rank)[0 if spectral else 1]
        return {**self.data, "tail": jnp.asarray(tail, self.data["gram"].dtype)}

    def setting(
        self,
        label: str,
        numbers: Mapping[str, float] = NONE,
        shapes: Mapping[str, int] = NONE,
    ) -> Setting:
        """Return a setting on these points; its numbers have their number, n."""
        name = f"{self.name}, n={self.num_points}, {label}"
        numbers = {"n": float(self.num_points), **numbers}
        return Setting(name, self.data, numbers, shapes)


def clusters(first: int, second: int) -> Cloud:
    """Return a cluster of points in the plane and, after it, one that is far away."""
    rng = np.random.default_rng(11)
    centres = np.repeat([[0.0, 0.0], [20.0, 20.0]], [first, second], axis=0)
    points = centres + 0.1 * rng.standard_normal(centres.shape)
    name = f"clusters of {first} and {second}"
    return Cloud(name, kernels.Gaussian(1.0), points)


def clouds(data: Population | None, num_points: int = 32) -> tuple[Cloud, ...]:
    """Return copies of a point, two clusters and skewed points in the plane, or the user's own rows."""
    if data is not None:
        return (own(data),)
    kernel = kernels.Gaussian(1.0)
    normal = np.random.default_rng(12).standard_normal((num_points, 2))
    plane = normal * [2.0, 0.5] + [100.0, -40.0]
    larger = num_points * 5 // 8
    return (
        Cloud("copies of a point", kernel, np.zeros((num_points, 2))),
        clusters(larger, num_points - larger),
        Cloud("skewed plane", kernel, plane),
    )


def own(data: Population) -> Cloud:
    """Return the user's rows in their order, or 128 of them at equal distances."""
    num_points = len(data.points)
    rows = np.linspace(0, num_points - 1, min(num_points, MOST_POINTS)).astype(int)
    return Cloud(data.name, data.kernel, data.points[rows])


def _gram(cloud: Cloud) -> np.ndarray:
    return np.asarray(cloud.data["gram"], np.float64)


def tails(cloud: Cloud, rank: int) -> tuple[float, float]:
    """Return |G - G_k|_2 and |G - G_k|_F."""
    values = np.linalg.eigvalsh(_gram(cloud))[::-1][rank:]
    return float(np.max(np.abs(values))), float(np.linalg.norm(values))


def coherence(cloud: Cloud, rank: int) -> float:
    """Return n / k times the largest squared row of the k leading eigenvectors of G."""
    leading = np.linalg.eigh(_gram(cloud))[1][:, ::-1][:, :rank]
    return float(np.max(np.sum(leading**2, axis=1))) * cloud.num_points / rank


def small_grams() -> Settings:
    """Return Gram matrices of 8 points, with those of the doubled differences, at three lengthscales."""
    rng = np.random.default_rng(21)
    plane = rng.standard_normal((8, 2)) * [2.0, 0.5]
    two = np.repeat([[0.0], [20.0]], 4, axis=0) + 0.1 * rng.standard_normal((8, 1))
    points = {"line": np.arange(8.0)[:, None], "plane": plane, "two clusters": two}
    settings = []
    for name, X in points.items():
        squares = np.sum((X[:, None] - X[None]) ** 2, axis=-1)
        for scale in (0.3, 1.0, 3.0):
            data = {
                "gram": np.exp(-squares / (2 * scale**2)),
                "doubled": np.exp(-2 * squares / scale**2),
            }
            settings.append(Setting(f"{name}, lengthscale {scale:g}", data))
    return tuple(settings)
