"""A model for the rows of a table: a feature map, and what ridge regression on its features predicts."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxkern._types import Array, Float
from jaxkern.pytrees import pytree, static


@pytree
class TablePredictor:
    """A model that predicts a class or a number from the features of a row.

    The scores of a row x are phi(x)' coefficients + offset, computed in float64 from the features as phi returns them.
    With classes the prediction is the name of the class with the largest score. Without classes it is the score, cut to
    the span. `predict` predicts, and calling the model returns the features.

    Attributes
    ----------
    feature_map : phi, (..., dim) -> (..., m), usually a `features.TableMap`, which takes matrices and DataFrames.
    coefficients : (m, t), with t the number of classes, or 1.
    offset : (t,).
    classes : names of the classes, all different, a tuple; () to predict numbers.
    span : the lowest and the highest number that is predicted, a tuple; None without limits, and for classes.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.features import paired_fourier
    >>> from jaxkern.kernels import Gaussian
    >>> from jaxkern.regression import TablePredictor
    >>> phi = paired_fourier(jax.random.key(1), Gaussian(1.0), 3, num_frequencies=4)
    >>> coefficients = jax.random.normal(jax.random.key(2), (8, 2))
    >>> model = TablePredictor(phi, coefficients, jax.numpy.ones(2), ("cat", "dog"))
    >>> X = jax.random.normal(jax.random.key(3), (5, 3))
    >>> model.predict(X).shape, model(X).shape
    ((5,), (5, 8))
    """

    feature_map: Any
    coefficients: jax.Array
    offset: jax.Array
    classes: tuple[str, ...] = static(default=())
    span: tuple[float, float] | None = static(default=None)

    def __post_init__(self) -> None:
        """Raise ValueError for names, columns and a span that do not fit together."""
        if len(set(self.classes)) < len(self.classes) or not all(
            isinstance(name, str) for name in self.classes
        ):
            raise ValueError("classes must be different names")
        columns = len(self.classes) or 1
        shape = np.shape(self.coefficients)
        if shape[1:] != (columns,) or np.shape(self.offset) != (columns,):
            raise ValueError(
                f"coefficients and offset must have a column for each class, or one for a number, (m, {columns}) "
                f"and ({columns},), got {shape} and {np.shape(self.offset)}"
            )
        if self.span is not None and (self.classes or not self.span[0] <= self.span[1]):
            raise ValueError(
                f"span must be an ascending pair of numbers, and None with classes, got {self.span!r:.60}"
            )

    @property
    def num_features(self) -> int:
        """Number of features, that of the feature map."""
        return self.feature_map.num_features

    def __call__(self, X: Any) -> Float[Array, "... m"]:
        """Return the features of rows, (..., m). X is what the feature map takes."""
        return self.feature_map(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions for rows, (...): an array of text with classes, and of float64 without.

        A number is NaN for a row that has NaN in it. No class stands for that: with classes such a row raises
        ValueError. Other errors are those of the feature map. Runs on the host, outside of `jit`.
        """
        Z = np.asarray(self.feature_map(X), np.float64)
        # In float32 the sum of large terms of both signs could name another class than the one that was judged.
        scores = Z @ np.asarray(self.coefficients, np.float64)
        scores = scores + np.asarray(self.offset, np.float64)
        if self.classes:
            # The largest of NaN would be the first class.
            if not np.isfinite(scores).all():
                raise ValueError(
                    "X has rows without a finite score; leave out rows with NaN or infinite numbers"
                )
            return np.asarray(self.classes)[np.argmax(scores, axis=-1)]
        numbers: np.ndarray = scores[..., 0]
        return numbers if self.span is None else np.clip(numbers, *self.span)
