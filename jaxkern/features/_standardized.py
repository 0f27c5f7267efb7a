"""A feature map of standardised points, as one of the points as they come."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern._types import Array, ArrayLike, FeatureMap, Float
from jaxkern.features._map import as_map
from jaxkern.pytrees import pytree


@pytree
class Standardized:
    """The map of `standardized`, of points (..., dim).

    Attributes
    ----------
    feature_map : the map of standardised points, (..., dim) -> (..., num_features).
    mean, scale : (dim,).
    """

    feature_map: Any
    mean: jax.Array
    scale: jax.Array

    @property
    def num_features(self) -> int:
        """Number of features, that of the feature map."""
        return self.feature_map.num_features

    def __call__(
        self, X: Float[ArrayLike, "... dim"]
    ) -> Float[Array, "... num_features"]:
        """Return phi((X - mean) / scale), (..., num_features) for X (..., dim)."""
        X = checks.same_dtype(
            "X",
            checks.points("X", X, dim=self.mean.shape[0]),
            "the fitted map",
            self.mean,
        )
        return self.feature_map(_scaled(X, self.mean, self.scale))


@jax.jit
def _scaled(X: jax.Array, mean: jax.Array, scale: jax.Array) -> jax.Array:
    axes = range(X.ndim - 1)
    return (X - jnp.expand_dims(mean, axes)) / jnp.expand_dims(scale, axes)


def standardized(
    phi: FeatureMap, mean: Float[ArrayLike, " dim"], scale: Float[ArrayLike, " dim"]
) -> Standardized:
    """Return the map x -> phi((x - mean) / scale), so that a map travels with the scaling that it was made for.

    Parameters
    ----------
    phi : a feature map of standardised points: any callable (..., dim) -> (..., num_features).
    mean, scale : (dim,), what is subtracted from every point and what it is divided by, usually the columns' means and
        standard deviations. A scale of zero gives features that are not finite.

    Returns
    -------
    Standardized, a callable PyTree, of points in the dtype of mean.

    Notes
    -----
    A subtraction and a division an entry beyond the cost of phi. In float32 a column whose mean is a million times its
    standard deviation has lost most of its digits before it arrives here; scale such a table in float64.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from jaxkern.features import paired_fourier
    >>> from jaxkern.kernels import Gaussian
    >>> X = 5 + 100 * jax.random.normal(jax.random.key(0), (50, 3))
    >>> phi = paired_fourier(jax.random.key(1), Gaussian(1.0), 3, num_frequencies=4)
    >>> standardized(phi, jnp.mean(X, axis=0), jnp.std(X, axis=0))(X).shape
    (50, 8)
    """
    if not callable(phi):
        raise ValueError(f"phi must be a feature map, got {type(phi).__name__}")
    mean = checks.vector("mean", mean)
    scale = checks.same_dtype(
        "scale", checks.vector("scale", scale, size=mean.shape[0]), "mean", mean
    )
    return Standardized(as_map(phi), mean, scale)
