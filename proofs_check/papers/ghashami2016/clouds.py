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
        return {
            "kernel": self.kernel,
            "points": points,
            "gram": gram(self.kernel, points),
        }

    def setting(
        self, label: str, numbers: Mapping[str, float], shapes: Mapping[str, int]
    ) -> Setting:
        """Return a setting on these points; its numbers have their number, n."""
        name = f"{self.name}, n={self.num_points}, {label}"
        return Setting(
            name, self.data, {"n": float(self.num_points), **numbers}, shapes
        )


def clusters(first: int, second: int) -> Cloud:
    """Return a cluster of points in the plane and, after it, one that is far away."""
    rng = np.random.default_rng(11)
    centres = np.repeat([[0.0, 0.0], [20.0, 20.0]], [first, second], axis=0)
    return Cloud(
        f"clusters of {first} and {second}",
        kernels.Gaussian(1.0),
        centres + 0.1 * rng.standard_normal(centres.shape),
    )


def clouds(data: Population | None, num_points: int = 32) -> tuple[Cloud, ...]:
    """Return copies of a point, two clusters and skewed points in the plane, or the user's own rows."""
    if data is not None:
        return (own(data),)
    plane = np.random.default_rng(12).standard_normal((num_points, 2)) * [2.0, 0.5] + [
        100.0,
        -40.0,
    ]
    return (
        Cloud("copies of a point", kernels.Gaussian(1.0), np.zeros((num_points, 2))),
        clusters(num_points * 5 // 8, num_points - num_points * 5 // 8),
        Cloud("skewed plane", kernels.Gaussian(1.0), plane),
    )


def own(data: Population) -> Cloud:
    """Return the user's rows in their order, or 128 of them at equal distances."""
    rows = np.linspace(
        0, len(data.points) - 1, min(len(data.points), MOST_POINTS)
    ).astype(int)
    return Cloud(data.name, data.kernel, data.points[rows])


def tails(cloud: Cloud, rank: int) -> tuple[float, float]:
    """Return |G - G_k|_2 and |G - G_k|_F."""
    values = np.linalg.eigvalsh(np.asarray(cloud.data["gram"], np.float64))[::-1][rank:]
    return float(np.max(np.abs(values))), float(np.linalg.norm(values))


def coherence(cloud: Cloud, rank: int) -> float:
    """Return n / k times the largest squared row of the k leading eigenvectors of G."""
    vectors = np.linalg.eigh(np.asarray(cloud.data["gram"], np.float64))[1][:, ::-1][
        :, :rank
    ]
    return float(np.max(np.sum(vectors**2, axis=1))) * cloud.num_points / rank


def small_grams() -> tuple[Setting, ...]:
    """Return Gram matrices of 8 points, with those of the doubled differences, at three lengthscales."""
    rng = np.random.default_rng(21)
    clouds = {
        "line": np.arange(8.0)[:, None],
        "plane": rng.standard_normal((8, 2)) * [2.0, 0.5],
    }
    clouds["two clusters"] = np.repeat(
        [[0.0], [20.0]], 4, axis=0
    ) + 0.1 * rng.standard_normal((8, 1))
    settings = []
    for name, X in clouds.items():
        squares = np.sum((X[:, None] - X[None]) ** 2, axis=-1)
        for scale in (0.3, 1.0, 3.0):
            population = {
                "gram": np.exp(-squares / (2 * scale**2)),
                "doubled": np.exp(-2 * squares / scale**2),
            }
            settings.append(Setting(f"{name}, lengthscale {scale:g}", population))
    return tuple(settings)
