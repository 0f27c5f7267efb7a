"""What is asked of a certificate: one frozen record, which every part reads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import jax
import numpy as np

from jaxkern import checks, kernels
from proofs_check.certify.maps import NAMES

GOALS = ("distance", "spectral", "clustering", "separation", "prediction")
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
        way than with the exact kernel; "separation", the share of the separation of class means that is lost;
        "prediction", the loss of ridge regression on new rows, less the loss of the exact method. It has no delta.
    kernel : "gaussian", "laplacian", "cauchy", "exponential", "matern32" or "matern52".
    lengthscale : of the kernel; by default the median distance of sampled pairs.
    maps : names of functions of `jaxkern.features`; by default every map of the library.
    time : minutes, a deadline. What is found by then is what the certificate says.
    num_clusters : for the goal "clustering"; by default the number of classes.
    num_restarts : of k-means, for the goal "clustering". By default 10, 30 or 100: as many as k-means with the exact
        kernel needs to find its best partition again.
    dtype : of points and maps, "float32" or "float64"; by default float32, or float64, if jax_enable_x64 is on, for
        points that float32 rounds too much. Errors are against the kernel of the rows in float64 in any case.
    target_kind : for the goal "prediction": "number" or "class". By default text is a class, and so are whole numbers
        of at most 10 different values; other numbers are numbers.
    features_at_most : the largest number of features of a point; by default any number.
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
    num_restarts: int | None = None
    dtype: str | None = None
    target_kind: str | None = None
    features_at_most: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for what is out of range, and for names that are not known."""
        if self.confidence is None:
            confidence = 0.95 if self.goal == "prediction" else 0.999
            object.__setattr__(self, "confidence", confidence)
        for name in ("eps", "delta", "confidence"):
            checks.open_unit(name, getattr(self, name))
        for name in ("time", "lengthscale"):
            _check_positive(name, getattr(self, name))
        for name in ("num_clusters", "num_restarts", "features_at_most"):
            if getattr(self, name) is not None:
                least = 2 if name == "num_clusters" else 1
                checks.count(name, getattr(self, name), minimum=least)
        _check_name("goal", self.goal, GOALS)
        _check_name("kernel", self.kernel, KERNELS)
        if self.target_kind is not None:
            _check_name("target_kind", self.target_kind, TARGET_KINDS)
            if self.goal != "prediction":
                raise ValueError(
                    f"target_kind is for the goal prediction, and the goal is {self.goal}"
                )
        maps = NAMES if self.maps is None else tuple(self.maps)
        object.__setattr__(self, "maps", maps)
        for name in maps:
            _check_name("maps", name, NAMES)
        if not maps:
            raise ValueError(f"maps must name at least one of {', '.join(NAMES)}")
        self._check_dtype()

    def _check_dtype(self) -> None:
        if self.dtype is None:
            return
        if self.dtype not in ("float32", "float64") or jax.dtypes.canonicalize_dtype(
            self.dtype
        ) != np.dtype(self.dtype):
            raise ValueError(
                f"dtype must be float32, or float64 with jax_enable_x64, got {self.dtype!r}"
            )


def _check_positive(name: str, value: Any) -> None:
    if value is None and name == "lengthscale":
        return
    if not isinstance(value, Real):
        raise ValueError(f"{name} must be a positive number, got {value!r}")
    checks.positive(name, value)


def _check_name(name: str, value: Any, known: Any) -> None:
    if value not in tuple(known):
        raise ValueError(f"{name} must be among {', '.join(known)}, got {value!r}")
