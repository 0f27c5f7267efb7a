"""The feature maps as scikit-learn transformers, for pipelines and grid searches. Needs the extra `sklearn`.

Each transformer is a thin shell: `fit` chooses landmarks or draws frequencies with the functions of the package, keeps
the fitted map in `map_`, and `transform` calls it in blocks. Computations run in the dtype of X, float32 or float64.
Every transformer has these parameters, by keyword:

- `kernel`: one of "gaussian", "laplacian", "exponential", "cauchy", "matern32", "matern52", or a kernel of
  `jaxkern.kernels`, whose own parameters then hold;
- `lengthscale`: a positive number, an array of one for each column, or None for the median distance between the points
  of `fit` (of a sample of pairs beyond 2,000 points);
- `random_state`: where everything random comes from; the same number gives the same map.

Those that choose landmarks, draw frequencies or centre have `n_landmarks` or `n_frequencies`, at least 1, and
`centered`: whether features are taken less their mean, over the landmarks or the stream.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from jaxkern import features, kernels, landmarks, scale

__all__ = [
    "Fastfood", "KernelJL", "KernelPCA", "Nystrom", "OrthogonalFourier", "PairedFourier", "ShiftedFourier",
    "StreamingPCA",
]  # fmt: skip

_NAMES = ("Gaussian", "Laplacian", "Exponential", "Cauchy", "Matern32", "Matern52")
_KERNELS = {name.lower(): getattr(kernels, name) for name in _NAMES}
_MANY = 2_000

_FITTED = ("map_", "kernel_", "_reservoir", "_features", "_stream_state")


@dataclasses.dataclass
class _Key:
    """The numbers of a random key, which can be pickled."""

    data: np.ndarray


def _to_host(leaf: Any) -> Any:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return _Key(np.asarray(jax.random.key_data(leaf)))
    return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf


def _from_host(leaf: Any) -> Any:
    return jax.random.wrap_key_data(jnp.asarray(leaf.data)) if _is_key(leaf) else leaf


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, _Key)


@dataclasses.dataclass(kw_only=True, eq=False, repr=False)
class _Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What all transformers share: the parameters of the module's docstring, and how they are fitted and called."""

    kernel: Any = "gaussian"
    lengthscale: Any = None
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled, with arrays of NumPy: those of JAX might come back in another dtype."""
        state: dict[str, Any] = super().__getstate__()
        return {name: jax.tree.map(_to_host, value) if name in _FITTED else value for name, value in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore what was pickled."""
        super().__setstate__(
            {
                name: jax.tree.map(_from_host, value, is_leaf=_is_key) if name in _FITTED else value
                for name, value in state.items()
            }
        )

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
            return self.fit(X)
        X = self._validated(X, reset=False).astype(self._dtype, copy=False)
        with self._precision():
            self._learn(X)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of X, (n, n_features_out), in the dtype of X."""
        check_is_fitted(self, "map_")
        X = self._validated(X, reset=False)
        with self._precision():
            return np.asarray(scale.embed(self.map_, X.astype(self._dtype, copy=False))).astype(X.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        with self._precision():
            point = jax.ShapeDtypeStruct((1, self.n_features_in_), self._dtype)
            return int(jax.eval_shape(self.map_, point).shape[1])

    def _precision(self) -> Any:
        """Return the context in which JAX computes in the dtype of the first data."""
        return jax.enable_x64(self._dtype == np.float64)

    def _key(self, purpose: int) -> Any:
        return jax.random.fold_in(jax.random.key(self._seed), purpose)

    def _validated(self, X: Any, *, reset: bool) -> np.ndarray:
        return np.asarray(validate_data(self, X, dtype=[np.float64, np.float32], reset=reset))

    def _start(self, X: np.ndarray) -> None:
        """Fix what the first data decide: the seed, the kernel, and what is drawn."""
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.kernel_ = self._kernel(X)

    def _kernel(self, X: np.ndarray) -> Any:
        if not isinstance(self.kernel, str):
            return kernels.as_kernel(self.kernel)
        if self.kernel not in _KERNELS:
            raise ValueError(f"kernel must be one of {', '.join(_KERNELS)} or a kernel object, got {self.kernel!r}")
        lengthscale = self.lengthscale
        if lengthscale is None:
            lengthscale = _median(X, self._key(0))
        return _KERNELS[self.kernel](np.asarray(lengthscale, X.dtype) if np.ndim(lengthscale) else lengthscale)

    def _learn(self, X: np.ndarray) -> None:
        raise NotImplementedError


def _median(X: np.ndarray, key: Any) -> float:
    if len(X) < 2:
        return 1.0
    if len(X) <= _MANY:
        median = float(kernels.quantile_lengthscale(jnp.asarray(X), 0.5))
    else:
        median = float(kernels.sampled_quantile_lengthscale(key, jnp.asarray(X), 0.5))
    return median if median > 0 else 1.0


@dataclasses.dataclass(eq=False, repr=False)
class _Fourier(_Transformer):
    """Random Fourier features, drawn at the first data and independent of them but for the lengthscale."""

    n_frequencies: int = 100

    def _start(self, X: np.ndarray) -> None:
        super()._start(X)
        draw = getattr(features, self._draw)
        self.map_ = draw(self._key(1), self.kernel_, X.shape[1], num_frequencies=self.n_frequencies, dtype=self._dtype)

    def _learn(self, X: np.ndarray) -> None:
        """Nothing depends on further data."""


class PairedFourier(_Fourier):
    """`features.paired_fourier`: cos and sin of every frequency, 2 n_frequencies features.

    Parameters
    ----------
    n_frequencies, kernel, lengthscale, random_state : see the module.
    """

    _draw = "paired_fourier"


class ShiftedFourier(_Fourier):
    """`features.shifted_fourier`: the cosine of every frequency with a random shift, n_frequencies features.

    Parameters
    ----------
    n_frequencies, kernel, lengthscale, random_state : see the module.
    """

    _draw = "shifted_fourier"


class OrthogonalFourier(_Fourier):
    """`features.orthogonal_fourier`: cos and sin of orthogonal frequencies, 2 n_frequencies features.

    Parameters
    ----------
    n_frequencies, kernel, lengthscale, random_state : see the module.
    """

    _draw = "orthogonal_fourier"


class Fastfood(_Fourier):
    """`features.fastfood`: cos and sin of structured frequencies, 2 n_frequencies features; for many dimensions.

    Parameters
    ----------
    n_frequencies, kernel, lengthscale, random_state : see the module.
    """

    _draw = "fastfood"


class _Landmarks(_Transformer):
    """A map made of landmarks: a uniform sample of all data seen, also over batches."""

    n_landmarks: int

    def _start(self, X: np.ndarray) -> None:
        super()._start(X)
        sample = landmarks.reservoir(num_landmarks=self.n_landmarks)
        self._reservoir = sample.init(self._key(1), X.shape[1], self._dtype)

    def _learn(self, X: np.ndarray) -> None:
        self._reservoir = landmarks.reservoir(num_landmarks=self.n_landmarks).update(self._reservoir, jnp.asarray(X))
        chosen = self._reservoir.points[: min(int(self._reservoir.seen), self.n_landmarks)]
        self.map_ = self._fitted(chosen, self._key(2))

    def _fitted(self, chosen: Any, key: Any) -> Any:
        raise NotImplementedError


@dataclasses.dataclass(eq=False, repr=False)
class Nystrom(_Landmarks):
    """`features.nystrom` on a uniform sample of at most n_landmarks points.

    Parameters
    ----------
    n_components : the rank, or None for as many as landmarks.
    n_landmarks, kernel, lengthscale, random_state : see the module.
    """

    n_landmarks: int = 100
    _: dataclasses.KW_ONLY
    n_components: int | None = None

    def _fitted(self, chosen: Any, key: Any) -> Any:
        rank = None if self.n_components is None else min(self.n_components, len(chosen))
        return features.nystrom(self.kernel_, chosen, rank=rank)


@dataclasses.dataclass(eq=False, repr=False)
class KernelJL(_Landmarks):
    """`features.kernel_jl` on a uniform sample of at most n_landmarks points.

    Parameters
    ----------
    n_components : rows of the sketch, at least 1.
    n_landmarks, centered, kernel, lengthscale, random_state : see the module.
    """

    n_components: int = 20
    _: dataclasses.KW_ONLY
    n_landmarks: int = 200
    centered: bool = True

    def _fitted(self, chosen: Any, key: Any) -> Any:
        return features.kernel_jl(key, self.kernel_, chosen, num_features=self.n_components, centered=self.centered)


@dataclasses.dataclass(eq=False, repr=False)
class KernelPCA(_Landmarks):
    """`features.kernel_pca` on a uniform sample of at most n_landmarks points: all of them where there are no more.

    Parameters
    ----------
    n_components : at least 1.
    n_landmarks, centered, kernel, lengthscale, random_state : see the module.
    """

    n_components: int = 2
    _: dataclasses.KW_ONLY
    n_landmarks: int = 1000
    centered: bool = True

    def _fitted(self, chosen: Any, key: Any) -> Any:
        count = min(self.n_components, len(chosen))
        return features.kernel_pca(self.kernel_, chosen, num_components=count, centered=self.centered)


@dataclasses.dataclass(eq=False, repr=False)
class StreamingPCA(_Transformer):
    """`features.streaming_pca` on paired Fourier features: kernel PCA in memory independent of the number of points.

    Parameters
    ----------
    n_components : at least 1.
    sketch_size : rows kept, at least n_components.
    n_frequencies : of the map in front, at least 1.
    centered, kernel, lengthscale, random_state : see the module.
    """

    n_components: int = 2
    _: dataclasses.KW_ONLY
    n_frequencies: int = 200
    sketch_size: int = 50
    centered: bool = True

    def _start(self, X: np.ndarray) -> None:
        super()._start(X)
        self._features = features.paired_fourier(
            self._key(1), self.kernel_, X.shape[1], num_frequencies=self.n_frequencies, dtype=self._dtype
        )
        self._stream_state = self._stream().init(self._dtype)

    def _stream(self) -> Any:
        size = min(self.sketch_size, 2 * self.n_frequencies)
        return features.streaming_pca(self._features, sketch_size=size, centered=self.centered)

    def _learn(self, X: np.ndarray) -> None:
        stream = self._stream()
        self._stream_state = stream.update(self._stream_state, jnp.asarray(X))
        self.map_ = stream.finalize(self._stream_state, num_components=self.n_components)
