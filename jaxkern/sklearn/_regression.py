"""Kernel ridge regression, and classification by it, with bounds against the exact solution."""

from __future__ import annotations

import dataclasses
import functools
import numbers
import operator
import warnings
from typing import Any, cast

import jax
import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_X_y
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from jaxkern import checks, regression
from jaxkern.sklearn._estimator import Estimator
from jaxkern.sklearn._padded import by_rows, filled_up, is_small, quick


@dataclasses.dataclass(eq=False, repr=False)
class _KernelRidge(Estimator):
    """What both share; `ridge_` is what the function returns, to whose training set rows of weight 0 may be added."""

    alpha: float = 1.0
    _: dataclasses.KW_ONLY
    n_landmarks: int | None = None
    landmarks: str = "uniform"
    tol: float | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to X, (n, dim), and y, with weights (n,), none negative: 2 counts twice. Return self."""
        X = self._validated(X, reset=True)
        rows, y = check_X_y(
            np.zeros((X.shape[0], 1)),
            y,
            multi_output=self._real,
            y_numeric=self._real,
            estimator=self,
        )
        self._dtype = X.dtype
        if isinstance(sample_weight, numbers.Number):
            # scikit-learn does not look whether a number is finite.
            sample_weight = np.full(len(rows), sample_weight, float)
        weights = _check_sample_weight(
            sample_weight, rows, dtype=self._dtype, ensure_non_negative=True
        )
        if not weights.any():
            raise ValueError("sample_weight must have a positive sum, got zeros alone")
        if not weights.all():
            X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        with np.errstate(over="ignore"):
            Y = self._columns(y).astype(self._dtype)
        if not np.isfinite(Y).all():
            raise ValueError(
                f"y must be within the range of {self._dtype}, the dtype of X; rescale it"
            )
        with self._precision():
            self._start(X, None if sample_weight is None else weights)
            self._solve(X, Y, weights)
        return self

    def bound(self, X: Any) -> Any:
        """Return bounds of |f(X) - f*(X)| for the exact solution f*, in the shape of f(X).

        f is `predict` of the regressor and `decision_function` of the classifier, as they are computed; X is taken in
        the dtype of `fit`.
        """
        return self._values(regression.Ridge.bound_at, X)

    def _solve(self, X: Any, Y: np.ndarray, weights: np.ndarray) -> None:
        rows, asked = X.shape[0], self.n_landmarks
        count = 1_000 if asked is None else checks.count("n_landmarks", asked)
        if asked is not None and rows < count:
            warnings.warn(
                f"n_landmarks is {count}, and X has {rows} rows: all are landmarks",
                stacklevel=3,
            )
        function = cast(
            Any, regression.ridge if self.tol is None else regression.ridge_to
        )
        words = {"regularization": self._number("alpha")}
        words |= {} if self.tol is None else {"tolerance": self._number("tol")}
        small = is_small(X)
        if small:
            X, Y, weights = filled_up(X), filled_up(Y), filled_up(weights, "constant")
        sizes = {
            "num_landmarks": X.shape[0] if rows <= count else count,
            "landmarks": self.landmarks,
        }
        # Many products are worth an optimised program.
        call = (
            quick(function, **sizes)
            if small and self.tol is None
            else functools.partial(function, **sizes)
        )
        self.ridge_ = call(self._key(1), self.kernel_, X, Y, **words, weights=weights)
        self.distance_bound_ = np.asarray(self.ridge_.distance_bound)[()]
        self.training_bound_ = np.asarray(self.ridge_.training_bound)[()]
        if not self.ridge_.converged:
            reached = f"{np.max([self.distance_bound_, self.training_bound_]):.2g}, above tol={self.tol}"
            advice = "pass more n_landmarks, or X in float64"
            warnings.warn(
                f"the bounds are {reached}; {advice}", ConvergenceWarning, stacklevel=3
            )

    def _number(self, name: str) -> jax.Array:
        value = getattr(self, name)
        return checks.scalar(
            name, checks.positive(name, checks.real(name, value)), self._dtype
        )

    def _values(self, function: Any, X: Any) -> Any:
        """Return what a function of the solution is at rows, in the dtype of `fit`."""
        check_is_fitted(self, "ridge_")
        X = self._validated(X, reset=False)
        with self._precision():
            return by_rows(function, self.ridge_, X.astype(self._dtype, copy=False))


class KernelRidge(MultiOutputMixin, RegressorMixin, _KernelRidge):
    """`regression.ridge`, or with `tol` `regression.ridge_to`: kernel ridge regression, and how far it is from exact.

    The exact solution is that of `sklearn.kernel_ridge.KernelRidge` for the numbers as they are in the dtype of X. In
    float32 the bounds are hundreds of times the error: pass X in float64 where they matter.

    Parameters
    ----------
    alpha : positive, the regularization.
    n_landmarks : as in the module, or None for all rows up to 1,000.
    landmarks : "uniform" or "pivoted_cholesky".
    tol : None, or a positive number in units of y: more is computed until both bounds are at most this.
    kernel, lengthscale, gamma, random_state : see the module.

    Attributes
    ----------
    distance_bound_ : the norm of the difference to the exact solution is at most this; one for each column of y.
    training_bound_ : at no row of `fit`, times the root of its weight, they differ by more; one for each column.
    ridge_, kernel_ : the `regression.Ridge` and its kernel.
    """

    _real = True

    def predict(self, X: Any) -> Any:
        """Return predictions at X, (n,) or (n, n_outputs)."""
        return self._values(operator.call, X)

    def _columns(self, y: Any) -> np.ndarray:
        return check_array(y, ensure_2d=False, input_name="y")


class KernelRidgeClassifier(ClassifierMixin, _KernelRidge):
    """`KernelRidge` on one column of +1 and -1 for each class, or a single one for two classes: the largest one wins.

    Parameters
    ----------
    alpha, n_landmarks, landmarks, tol, kernel, lengthscale, gamma, random_state : as in `KernelRidge`.

    Attributes
    ----------
    classes_ : (n_classes,), sorted; those with a row of positive weight.
    distance_bound_, training_bound_, ridge_, kernel_ : as in `KernelRidge`, for `decision_function`.
    """

    _real = False

    def decision_function(self, X: Any) -> Any:
        """Return the values of the columns, (n, n_classes), or (n,) for two classes: those of `classes_[1]`."""
        return self._values(operator.call, X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the classes of X, (n,), an array of NumPy."""
        values = np.asarray(self.decision_function(X))
        return self.classes_[
            (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        ]

    def certain(self, X: Any) -> np.ndarray:
        """Return where the exact solution predicts the same class for certain, (n,) of bool, an array of NumPy."""
        values, bounds = (
            np.asarray(self.decision_function(X)),
            np.asarray(self.bound(X)),
        )
        if values.ndim == 1:
            return np.abs(values) > bounds
        best = np.arange(values.shape[1]) == values.argmax(axis=1)[:, None]
        others = np.where(best, -np.inf, values + bounds).max(axis=1)
        return np.where(best, values - bounds, np.inf).min(axis=1) > others

    def _columns(self, y: np.ndarray) -> np.ndarray:
        check_classification_targets(y)
        self.classes_, at = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must have at least 2 classes in rows of positive weight, got 1 class: {y[0]!r}"
            )
        Y = 2.0 * (at[:, None] == np.arange(len(self.classes_))) - 1
        return Y[:, 1] if len(self.classes_) == 2 else Y
