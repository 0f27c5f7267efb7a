"""What `jaxkern.regression` refuses."""

import jax
import numpy as np
from support.numerics import Identity

from jaxkern import regression
from jaxkern.kernels import Distance, Gaussian

X = np.eye(8, 2, dtype=np.float32)
LABELS = np.zeros(8, np.float32)
TABLE = {"kernel": Gaussian(1.0), "X": X, "y": LABELS}
LANDMARKS = {"regularization": 1.0, "num_landmarks": 4}


MAP = Identity(X[:2])
STREAM = regression.streaming_ridge(MAP)
STATE = regression.RidgeState(X[:2], X[0], LABELS[0], X[0])
PAIRS = regression.RidgeState(X[:2], X[:2], X[0], X[0])
HEAD = regression.Head(MAP, X[0], np.float32(1), LABELS[0], LABELS[0])


def ridge():
    return regression.ridge, {"key": jax.random.key(0)} | TABLE | LANDMARKS


def ridge_to():
    arguments = {"key": jax.random.key(0), "tolerance": 0.1} | TABLE | LANDMARKS
    return regression.ridge_to, arguments


def posterior_variance():
    arguments = {"kernel": Gaussian(1.0), "X": X, "points": X} | LANDMARKS
    return regression.posterior_variance, {"key": jax.random.key(0)} | arguments


def leave_one_out():
    return regression.leave_one_out, TABLE | {"regularization": 1.0}


def head():
    arguments = {"phi": MAP, "X": X, "y": LABELS, "regularization": 1.0}
    return regression.head, arguments


def update():
    return STREAM.update, {"state": STATE, "X": X, "y": LABELS}


def merge():
    return STREAM.merge, {"a": STATE, "b": STATE}


def certified_head():
    arguments = {"key": jax.random.key(0), "head": HEAD, "num_landmarks": 2} | TABLE
    return regression.certified_head, arguments


CLASSES = ("a", "b")


def predictor():
    arguments = {"feature_map": MAP, "coefficients": X[:2], "offset": X[0]}
    return regression.TablePredictor, arguments | {"classes": CLASSES}


def predict():
    function, arguments = predictor()
    return function(**arguments).predict, {"X": X}


SPAN = "span must be an ascending pair of numbers, and None with classes"
NUMBER = {"coefficients": X[:, :1], "offset": X[0, :1], "classes": ()}

REFUSED = [
    (
        ridge,
        {"y": LABELS[:7]},
        r"y must have shape \(8,\) or \(8, t\) for X \(8, 2\), got \(7,\)",
    ),
    (ridge, {"y": np.where(X[:, 0] == 1, np.nan, LABELS)}, "y must be finite"),
    (ridge, {"regularization": 0.0}, "regularization must be positive"),
    (ridge, {"num_landmarks": 9}, "num_landmarks must be at most 8"),
    (ridge, {"kernel": Distance()}, "kernel must be positive semidefinite"),
    (ridge, {"certified": 1}, "certified must be True or False"),
    (ridge, {"landmarks": "leverage"}, "must be uniform or pivoted_cholesky"),
    (ridge_to, {"regularization": -1.0}, "regularization must be positive"),
    (ridge_to, {"num_landmarks": 9}, "num_landmarks must be at most 8"),
    (ridge_to, {"landmarks": "leverage"}, "must be uniform or pivoted_cholesky"),
    (ridge_to, {"tolerance": -1.0}, "tolerance must be positive"),
    (ridge_to, {"max_products": 3}, "max_products must be at least"),
    (posterior_variance, {"points": X[:, :1]}, "points must have"),
    (posterior_variance, {"num_landmarks": 9}, "num_landmarks must be at most 8"),
    (posterior_variance, {"landmarks": "leverage"}, "must be uniform or"),
    (leave_one_out, {"y": LABELS[:7]}, "^y must have shape"),
    (leave_one_out, {"landmarks": np.zeros((2, 3), np.float32)}, "^landmarks"),
    (leave_one_out, {"regularization": np.array([1.0, 0.0])}, "^regularization"),
    (head, {"y": LABELS[:7]}, "y must have shape"),
    (update, {"y": X}, "y must have shape"),
    (update, {"state": X}, "state must be a RidgeState"),
    (merge, {"b": PAIRS}, "b must be a state of this stream"),
    (certified_head, {"head": 1}, "head must be a Head"),
    (certified_head, {"y": X}, "y must have one column for each output of the head"),
    (certified_head, {"num_landmarks": 9}, "num_landmarks must be at most 8"),
    (predictor, {"classes": ("a", "a")}, "classes must be different names"),
    (predictor, {"classes": (1, 2)}, "classes must be different names"),
    (predictor, {"classes": ("a",)}, r"\(m, 1\) and \(1,\), got \(2, 2\) and \(2,\)"),
    (predictor, {"offset": X}, r"\(m, 2\) and \(2,\), got \(2, 2\) and \(8, 2\)"),
    (predictor, {"span": (0.0, 1.0)}, SPAN),
    (predictor, {"span": (1.0, 0.0)} | NUMBER, SPAN),
    (predict, {"X": X * np.nan}, "X has rows without a finite score"),
]
