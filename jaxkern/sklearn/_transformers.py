"""The feature maps as transformers."""

from __future__ import annotations

import dataclasses
import operator
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from jaxkern import checks, features, landmarks
from jaxkern.sklearn._estimator import Estimator
from jaxkern.sklearn._padded import MOST_PADDED, blocks, mapped, padded, quick, resized

_CHOICES = {
    "kmeans_plus_plus": False,
    "leverage": True,
    "pivoted_cholesky": True,
}  # whether it takes the kernel
_apply = jax.jit(operator.call)


class _Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """What all transformers share: how they are fitted and called."""

    _sparse = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit the map to X, (n, dim), and return self; y is ignored."""
        X = self._validated(X, reset=True)
        self._dtype = X.dtype
        with self._precision():
            self._start(X)
            self._learn(X)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Go on with a further batch of the data; the lengthscale stays that of the first batch."""
        if not hasattr(self, "kernel_"):
            return _Transformer.fit(
                self, X
            )  # without a word on how few rows the first batch has
        X = self._validated(X, reset=False)
        with self._precision():
            self._learn(X.astype(self._dtype, copy=False))
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of X, (n, n_features_out), in the dtype of X."""
        check_is_fitted(self, "map_")
        X, phi = self._validated(X, reset=False), self.map_
        with self._precision():
            if isinstance(X, jax.Array):
                return _apply(phi, X.astype(self._dtype)).astype(X.dtype)
            Z = np.concatenate(list(mapped(phi, X, self._dtype)))
            return Z[:, : self._n_features_out].astype(X.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return int(self.map_.num_features)

    def _learn(self, X: Any) -> None:
        raise NotImplementedError


@dataclasses.dataclass(eq=False, repr=False)
class _Fourier(_Transformer):
    """Random Fourier features, drawn at the first data and independent of them but for the lengthscale."""

    n_frequencies: int = 100

    def _start(self, X: Any, weights: Any = None) -> None:
        super()._start(X)
        draw = getattr(features, self._draw)
        self.map_ = draw(
            self._key(1),
            self.kernel_,
            X.shape[1],
            num_frequencies=self.n_frequencies,
            dtype=self._dtype,
        )

    def _learn(self, X: Any) -> None:
        """Nothing depends on further data."""


class PairedFourier(_Fourier):
    """`features.paired_fourier`: cos and sin of every frequency, 2 n_frequencies features.

    Parameters
    ----------
    n_frequencies, kernel, lengthscale, gamma, random_state : see the module.
    """

    _draw = "paired_fourier"


class ShiftedFourier(_Fourier):
    """`features.shifted_fourier`: the cosine of every frequency with a random shift, n_frequencies features.

    Parameters
    ----------
    n_frequencies, kernel, lengthscale, gamma, random_state : see the module.
    """

    _draw = "shifted_fourier"


class OrthogonalFourier(_Fourier):
    """`features.orthogonal_fourier`: cos and sin of orthogonal frequencies, 2 n_frequencies features.

    Parameters
    ----------
    n_frequencies, kernel, lengthscale, gamma, random_state : see the module.
    """

    _draw = "orthogonal_fourier"


class Fastfood(_Fourier):
    """`features.fastfood`: cos and sin of structured frequencies, 2 n_frequencies features; for many dimensions.

    Parameters
    ----------
    n_frequencies, kernel, lengthscale, gamma, random_state : see the module.
    """

    _draw = "fastfood"


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _Landmarks(_Transformer):
    """A map made of landmarks: a choice from the first data, a uniform sample also over batches, or given points."""

    landmarks: Any = "uniform"

    n_landmarks: int | None = None

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit the map to X, (n, dim), and return self; y is ignored."""
        super().fit(X)
        held, asked = len(self._points), self.n_landmarks
        if isinstance(self.landmarks, str) and asked is not None and held < asked:
            warnings.warn(
                f"n_landmarks is {asked}, and X has {held} rows: all are landmarks",
                stacklevel=2,
            )
        return self

    def _start(self, X: Any, weights: Any = None) -> None:
        super()._start(X)
        if isinstance(self.landmarks, str) and self.landmarks not in (
            "uniform",
            *_CHOICES,
        ):
            raise ValueError(
                f"landmarks must be uniform, {', '.join(_CHOICES)} or an array, got {self.landmarks!r}"
            )
        self._draws = np.random.default_rng([self._seed, 1])
        self._points, self._odds = np.empty((0, X.shape[1]), self._dtype), np.empty(0)

    def _learn(self, X: Any) -> None:
        if not isinstance(self.landmarks, str):
            self._points = np.asarray(
                checks.matrix("landmarks", self.landmarks, dim=X.shape[1])
            ).astype(self._dtype)
        else:
            self._choose(
                X,
                1_000
                if self.n_landmarks is None
                else checks.count("n_landmarks", self.n_landmarks),
            )
        count = len(self._points)
        size = padded(count)
        weights = (
            (np.arange(size) < count).astype(self._dtype)
            if size <= MOST_PADDED
            else None
        )
        phi = self._fitted(
            np.pad(self._points, ((0, size - count), (0, 0)), mode="edge"),
            weights,
            count,
        )
        self.map_ = resized(phi, count, self._width(count))

    def _choose(self, X: Any, count: int) -> None:
        """Choose landmarks; uniform ones are the rows with the smallest of random numbers, over all batches."""
        if self.landmarks == "uniform":
            odds = self._draws.random(X.shape[0])
            rows = np.argsort(odds)[:count]
            points, odds = (
                np.vstack([self._points, *blocks(X[rows])]),
                np.concatenate([self._odds, odds[rows]]),
            )
            first = np.argsort(odds)[:count]
            self._points, self._odds = points[first], odds[first]
        elif len(self._points) or scipy.sparse.issparse(X):
            raise ValueError(
                f"landmarks={self.landmarks!r} takes one dense X; pass landmarks='uniform' or an array"
            )
        else:
            kernel = (self.kernel_,) if _CHOICES[self.landmarks] else ()
            choose = getattr(landmarks, self.landmarks)
            self._points = np.asarray(
                choose(self._key(1), *kernel, X, num_landmarks=min(count, X.shape[0]))
            )

    def _fitted(self, points: np.ndarray, weights: Any, count: int) -> Any:
        """Return the map, given landmarks of which those of weight 0 fill up."""
        raise NotImplementedError

    def _width(self, count: int) -> int:
        """Return the number of features."""
        return count if self.n_components is None else min(self.n_components, count)


@dataclasses.dataclass(eq=False, repr=False)
class Nystrom(_Landmarks):
    """`features.nystrom` on landmarks.

    Parameters
    ----------
    n_components : the rank, or None for as many as landmarks.
    n_landmarks, landmarks, kernel, lengthscale, gamma, random_state : see the module.
    """

    n_landmarks: int = 100
    _: dataclasses.KW_ONLY
    n_components: int | None = None

    _optional = ("n_landmarks", "n_components")

    def _fitted(self, points: np.ndarray, weights: Any, count: int) -> Any:
        rank = None if self.n_components is None else self._width(count)
        return quick(features.nystrom, rank=rank)(self.kernel_, points, weights=weights)


@dataclasses.dataclass(eq=False, repr=False)
class KernelJL(_Landmarks):
    """`features.kernel_jl` on landmarks.

    Parameters
    ----------
    n_components : rows of the sketch, at least 1.
    n_landmarks, landmarks, centered, kernel, lengthscale, gamma, random_state : see the module.
    """

    n_components: int = 20
    _: dataclasses.KW_ONLY
    n_landmarks: int = 200
    centered: bool = True

    def _fitted(self, points: np.ndarray, weights: Any, count: int) -> Any:
        sizes = {"num_features": self.n_components, "centered": self.centered}
        return quick(features.kernel_jl, **sizes)(
            self._key(2), self.kernel_, points, weights=weights
        )

    def _width(self, count: int) -> int:
        return self.n_components


@dataclasses.dataclass(eq=False, repr=False)
class KernelPCA(_Landmarks):
    """`features.kernel_pca` on landmarks.

    Parameters
    ----------
    n_components : at least 1, or None for all: as many as landmarks.
    n_landmarks : as in the module, or None for all rows up to 1,000.
    landmarks, centered, kernel, lengthscale, gamma, random_state : see the module.
    """

    n_components: int | None = 2
    _: dataclasses.KW_ONLY
    centered: bool = True

    _optional = ("n_landmarks", "n_components")

    def _fitted(self, points: np.ndarray, weights: Any, count: int) -> Any:
        phi = features.kernel_pca(
            self.kernel_,
            points,
            num_components=self._width(count),
            centered=self.centered,
            weights=weights,
        )
        if not phi.definite:
            raise ValueError(
                f"kernel must be positive semidefinite: the Gram matrix of {self.kernel!r} has negative eigenvalues"
            )
        return phi

    def inverse_transform(self, X: Any) -> Any:
        """Return points whose features are close to X, (n, n_features_in), by `features.preimage`: Gaussian kernels."""
        check_is_fitted(self, "map_")
        own = isinstance(X, jax.Array)
        Z = X if own else check_array(X, dtype=[np.float64, np.float32])
        with self._precision():
            points = features.preimage(self.map_, jnp.asarray(Z, self._dtype)).points
            return (
                points.astype(Z.dtype)
                if own
                else np.asarray(points).astype(Z.dtype, copy=False)
            )


@dataclasses.dataclass(eq=False, repr=False)
class StreamingPCA(_Transformer):
    """`features.streaming_pca` on paired Fourier features: kernel PCA in memory independent of the number of points.

    Parameters
    ----------
    n_components : at least 1.
    sketch_size : rows kept, at least n_components.
    n_frequencies : of the map in front, at least 1.
    centered, kernel, lengthscale, gamma, random_state : see the module.
    """

    n_components: int = 2
    _: dataclasses.KW_ONLY
    n_frequencies: int = 200
    sketch_size: int = 50
    centered: bool = True

    def _start(self, X: Any, weights: Any = None) -> None:
        super()._start(X)
        self._features = features.paired_fourier(
            self._key(1),
            self.kernel_,
            X.shape[1],
            num_frequencies=self.n_frequencies,
            dtype=self._dtype,
        )
        self._stream_state = self._stream().init(self._dtype)

    def _stream(self) -> Any:
        size = min(self.sketch_size, 2 * self.n_frequencies)
        limit = "the smaller one of sketch_size and 2 n_frequencies"
        checks.count("n_components", self.n_components, maximum=size, limit=limit)
        return features.streaming_pca(
            self._features, sketch_size=size, centered=self.centered
        )

    def _learn(self, X: Any) -> None:
        stream = self._stream()
        for block in blocks(X):
            self._stream_state = stream.update(self._stream_state, block)
        self.map_ = stream.finalize(
            self._stream_state, num_components=self.n_components
        )
