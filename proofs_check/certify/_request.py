"""What is asked of a certificate: one frozen record, which every part of the search reads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import jax
import numpy as np

from jaxkern import checks, kernels
from proofs_check.certify._maps import NAMES

GOALS = ("distance", "spectral", "clustering", "separation")
"""What an error of a draw is about; the goal "prediction" is about one map and rows never seen."""
STATIONARY = (
    kernels.Gaussian,
    kernels.Laplacian,
    kernels.Cauchy,
    kernels.Exponential,
    kernels.Matern32,
    kernels.Matern52,
)
"""Kernels K(x - y) with K(x, x) = 1 that have Fourier features."""
KERNELS: dict[str, Callable[[Any], kernels.Kernel]] = {
    kernel.__name__.lower(): kernel for kernel in STATIONARY
}
SEPARATIONS = ("means", "points")
TARGET_KINDS = ("number", "class")


@dataclass(frozen=True)
class Request:
    """A goal for maps of a table, and how sure of it one wants to be.

    Attributes
    ----------
    eps, delta : largest error and failure probability, in (0, 1).
    confidence : of the certificates, in (0, 1); by default 0.999, and 0.95 for the goal "prediction".
    goal : "distance", the largest relative error of the kernel distance over pairs of points; "spectral",
        |K - Khat|_2 / n for the Gram matrix K; "clustering", the share of points that kernel k-means groups in another
        way than with the exact kernel; "separation", the share of the separation of given classes that is lost;
        "prediction", the loss of ridge regression on rows never seen, less that of the exact method. It has no delta.
    kernel : "gaussian", "laplacian", "cauchy", "exponential", "matern32" or "matern52".
    lengthscale : of the kernel; by default the median distance of 100,000 pairs, fewer for more than 500 columns.
    maps : names of functions of `jaxkern.features`; by default every map of the library.
    time : minutes, the time limit. Where it is short, draws look at samples of the rows, and the guarantee says so.
    num_clusters : for the goal "clustering"; by default the number of classes.
    separation : "means" or "points": what is to stay apart, as in Examples 2 and 1 of kpotufe2020.
    dtype : of points and maps, "float32" or "float64"; by default float32, but float64, where jax_enable_x64 is on, for
        points that float32 rounds too much, or pairs that it cannot tell apart. Errors are measured against the
        kernel of the rows in float64 in any case, so that what rounding does to points and maps is part of them.
    num_restarts : for the goal "clustering": of `kmeans` on the features of a map, which is what is certified. By
        default 10, 30 or 100: as many as k-means with the exact kernel needs to find its best partition again.
    target_kind : for the goal "prediction": "number" or "class", what the target is. By default text is a class, and
        so are whole numbers of at most 10 different values; other numbers are numbers.
    features_at_most : no map with more features of a point is searched or recommended; by default any number.
    """

    eps: float = 0.1
    delta: float = 0.05
    confidence: float = None  # type: ignore[assignment]
    goal: str = "distance"
    kernel: str = "gaussian"
    lengthscale: float | None = None
    maps: Sequence[str] | None = None
    time: float = 10.0
    num_clusters: int | None = None
    separation: str = "means"
    dtype: str | None = None
    features_at_most: int | None = None
    target_kind: str | None = None
    num_restarts: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for what is out of range, and for names that are not known."""
        if self.confidence is None:
            object.__setattr__(
                self, "confidence", 0.95 if self.goal == "prediction" else 0.999
            )
        for name in ("eps", "delta", "confidence"):
            checks.open_unit(name, getattr(self, name))
        _positive("time", self.time)
        if self.lengthscale is not None:
            _positive("lengthscale", self.lengthscale)
        if self.features_at_most is not None:
            checks.count("features_at_most", self.features_at_most)
        _one_of("goal", self.goal, (*GOALS, "prediction"))
        _one_of("kernel", self.kernel, KERNELS)
        _one_of("separation", self.separation, SEPARATIONS)
        if self.num_restarts is not None:
            checks.count("num_restarts", self.num_restarts)
        if self.target_kind is not None:
            _one_of("target_kind", self.target_kind, TARGET_KINDS)
            if self.goal != "prediction":
                raise ValueError(
                    f"target_kind is for the goal prediction, and the goal is {self.goal}"
                )
        object.__setattr__(
            self, "maps", NAMES if self.maps is None else tuple(self.maps)
        )
        for name in self.maps or ():
            _one_of("maps", name, NAMES)
        if not self.maps:
            raise ValueError(f"maps must name at least one of {', '.join(NAMES)}")
        known = self.dtype in (None, "float32", "float64")
        if not known or (
            self.dtype
            and jax.dtypes.canonicalize_dtype(self.dtype) != np.dtype(self.dtype)
        ):
            raise ValueError(
                f"dtype must be float32, or float64 with jax_enable_x64, got {self.dtype!r}"
            )


def _positive(name: str, value: Any) -> None:
    if not isinstance(value, Real):
        raise ValueError(f"{name} must be a positive number, got {value!r}")
    checks.positive(name, value)


def _one_of(name: str, value: Any, known: Any) -> None:
    if value not in tuple(known):
        raise ValueError(f"{name} must be among {', '.join(known)}, got {value!r}")
