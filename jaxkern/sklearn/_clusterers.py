"""The clusterings."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from jaxkern import checks, clustering
from jaxkern.sklearn._estimator import Estimator
from jaxkern.sklearn._padded import quick


@dataclasses.dataclass(eq=False, repr=False)
class _Clusterer(ClusterMixin, Estimator):
    """What clusterings share; `clusters_` is what the function returns."""

    n_clusters: int = 8
    _: dataclasses.KW_ONLY
    n_init: int = 10

    def fit(self, X: Any, y: Any = None) -> Any:
        """Cluster X, (n, dim), and return self, with `labels_` (n,); y is ignored."""
        X = self._validated(X, reset=True)
        self._dtype = X.dtype
        with self._precision():
            self._start(X)
            rows, limit = X.shape[0], "the number of rows of X"
            for name in ("n_clusters", "n_landmarks"):
                if getattr(self, name, None) is not None:
                    size = getattr(self, name)
                    checks.count(name, size, maximum=rows, limit=limit)
            cluster, sizes = self._function()
            sizes["num_restarts"] = self.n_init
            self.clusters_ = cluster(
                self._key(1), self.kernel_, X, self.n_clusters, **sizes
            )
        self.labels_ = (
            self.clusters_.labels
            if isinstance(X, jax.Array)
            else np.asarray(self.clusters_.labels)
        )
        return self

    def predict(self, X: Any) -> Any:
        """Return the labels of X, (n,), those of the nearest centres."""
        check_is_fitted(self, "clusters_")
        X = self._validated(X, reset=False)
        with self._precision():
            labels = quick(type(self.clusters_).predict)(
                self.clusters_, jnp.asarray(X, self._dtype)
            )
        return labels if isinstance(X, jax.Array) else np.asarray(labels)


class KernelSpectral(_Clusterer):
    """`clustering.kernel_spectral`, with labels for new points.

    Parameters
    ----------
    n_clusters : at least 1.
    n_init : seedings of k-means, of which the best is taken.
    kernel, lengthscale, gamma, random_state : see the module.
    """

    def _function(self) -> Any:
        return clustering.kernel_spectral, {}


@dataclasses.dataclass(eq=False, repr=False)
class KernelKMeans(_Clusterer):
    """`clustering.kernel_kmeans`, with labels for new points.

    Parameters
    ----------
    n_clusters, n_init : as in `KernelSpectral`.
    n_landmarks : at most the number of rows, or None for all up to 1,000.
    kernel, lengthscale, gamma, random_state : see the module.
    """

    _: dataclasses.KW_ONLY
    n_landmarks: int | None = None

    def _function(self) -> Any:
        return clustering.kernel_kmeans, {"num_landmarks": self.n_landmarks}
