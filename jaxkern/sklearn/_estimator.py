"""What all estimators share: the kernel, its lengthscale, the dtype, and where random numbers come from."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from jaxkern import checks, kernels

_NAMES = ("Gaussian", "Laplacian", "Exponential", "Cauchy", "Matern32", "Matern52")
_KERNELS = {name.lower(): getattr(kernels, name) for name in _NAMES} | {
    "rbf": kernels.Gaussian
}
_MANY = 2_000
_COUNTS = ["n_clusters", "n_init", "n_landmarks", "n_components", "n_frequencies"]
_COUNTS += ["sketch_size"]


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class Estimator(BaseEstimator):
    """What all share: the parameters of the module's docstring, the kernel, the dtype, random keys."""

    kernel: Any = "gaussian"
    lengthscale: Any = None
    gamma: Any = None
    random_state: Any = None

    _sparse = False
    _optional: ClassVar[tuple[str, ...]] = ("n_landmarks",)  # counts that may be None

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled, with arrays of NumPy: those of JAX might come back in another dtype."""
        state = super().__getstate__()
        return jax.tree.map(
            lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf,
            state,
        )

    def _precision(self) -> Any:
        """Return the context in which JAX computes in the dtype of the first data."""
        return jax.enable_x64(self._dtype == np.float64)

    def _key(self, purpose: int) -> Any:
        return jax.random.fold_in(jax.random.key(self._seed), purpose)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        if isinstance(X, jax.Array) and X.dtype in (np.float32, np.float64):
            if not jnp.isfinite(checks.matrix("X", X)).all():
                raise ValueError("X must be finite, got NaN or infinity")
            return validate_data(self, X, skip_check_array=True, reset=reset)
        sparse = "csr" if self._sparse else False
        return validate_data(
            self, X, dtype=[np.float64, np.float32], accept_sparse=sparse, reset=reset
        )

    def _start(self, X: Any, weights: Any = None) -> None:
        """Fix what the first data decide: the seed and the kernel."""
        for name in _COUNTS:
            value = getattr(self, name, None)
            optional = value is None and name in self._optional
            if hasattr(self, name) and not optional:
                checks.count(name, value)
        try:
            random = check_random_state(self.random_state)
        except ValueError:
            raise ValueError(
                "random_state must be None, a whole number in [0, 2^32) or a RandomState of NumPy, "
                f"got {self.random_state!r}"
            ) from None
        self._seed = int(random.randint(2**31 - 1))
        self.kernel_ = self._kernel(X, weights)

    def _kernel(self, X: Any, weights: Any) -> Any:
        lengthscale, gamma = self.lengthscale, self.gamma
        if not isinstance(self.kernel, str):
            if lengthscale is not None or gamma is not None:
                raise ValueError(
                    f"lengthscale and gamma are those of the kernel {self.kernel!r}; pass None"
                )
            return kernels.as_kernel(self.kernel)
        if self.kernel not in _KERNELS:
            raise ValueError(
                f"kernel must be one of {', '.join(_KERNELS)} or a kernel object, got {self.kernel!r}"
            )
        cls = _KERNELS[self.kernel]
        if gamma is not None:
            if lengthscale is not None:
                raise ValueError(
                    f"pass lengthscale or gamma, not both, got {lengthscale!r} and {gamma!r}"
                )
            if not hasattr(cls, "from_gamma"):
                raise ValueError(
                    f"gamma is for gaussian, laplacian and exponential; the kernel is {self.kernel!r}"
                )
            return cls.from_gamma(
                _scale(X) if isinstance(gamma, str) and gamma == "scale" else gamma
            )
        if lengthscale is None:
            lengthscale = _median(X, np.random.default_rng(self._seed), weights)
        if np.ndim(lengthscale):
            lengthscale = np.asarray(lengthscale, X.dtype)
            if not np.all((lengthscale > 0) & np.isfinite(lengthscale)):
                raise ValueError(
                    f"lengthscale must be positive and finite, got {self.lengthscale!r}"
                )
        return cls(lengthscale)


def _scale(X: Any) -> float:
    """Return gamma="scale" of scikit-learn's RBFSampler."""
    variance = float(
        (X.multiply(X)).mean() - X.mean() ** 2 if scipy.sparse.issparse(X) else X.var()
    )
    return 1 / (X.shape[1] * variance) if variance else 1.0


def _median(X: Any, rng: np.random.Generator, weights: Any) -> float:
    """Return the median distance, computed on the host: no size of a fold is compiled for it."""
    some = (
        slice(None)
        if X.shape[0] <= _MANY
        else rng.choice(X.shape[0], _MANY, replace=False)
    )
    rows = X[some]
    if scipy.sparse.issparse(rows):
        distances = euclidean_distances(rows)[np.triu_indices(rows.shape[0], 1)]
    else:
        distances = pdist(np.asarray(rows))
    if not distances.size:
        return 1.0  # there is one row
    median = float(
        np.median(distances)
        if weights is None
        else _weighted_median(distances, weights[some])
    )
    if not median > 0:
        raise ValueError(
            "the median distance of the rows of X is 0: at least half of all pairs coincide; pass a lengthscale"
        )
    return median


def _weighted_median(distances: np.ndarray, weights: np.ndarray) -> Any:
    """Return the median distance of rows that stand there as often as their weights say."""
    weights = weights.astype(np.float64)
    first, second = np.triu_indices(len(weights), 1)
    of_copies = np.sum(np.maximum(weights * (weights - 1), 0)) / 2
    distances, counts = (
        np.append(distances, 0.0),
        np.append(weights[first] * weights[second], of_copies),
    )
    order = np.argsort(distances)
    totals = np.cumsum(counts[order])
    return np.mean(
        [
            distances[order[np.searchsorted(totals, totals[-1] / 2, side)]]
            for side in ("left", "right")
        ]
    )
