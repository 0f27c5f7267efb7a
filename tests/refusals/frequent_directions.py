"""What `jaxkern.frequent_directions` refuses."""

import dataclasses

import numpy as np

from jaxkern import frequent_directions as fd

NUMBER = np.float32(0)
STATE = fd.State(
    buffer=np.zeros((4, 3), np.float32),
    filled=np.int32(0),
    removed=np.zeros(2, np.float32),
    squared_norm=np.zeros(2, np.float32),
    magnitude=NUMBER,
    num_rows=np.int32(0),
    sketch_size=2,
    shrink_at=3,
)
SKETCH = fd.Sketch(*[NUMBER] * 7)


def other(*shape, dtype="float32", **sizes):
    """Return a state that is not of the same stream."""
    return dataclasses.replace(STATE, buffer=np.zeros(shape, dtype), **sizes)


def init():
    return fd.init, {"sketch_size": 2, "dim": 3}


def update():
    return fd.update, {"state": STATE, "rows": np.zeros((1, 3), np.float32)}


def merge():
    return fd.merge, {"a": STATE, "b": STATE}


def finalize():
    return fd.finalize, {"state": STATE}


def state():
    return fd.State, vars(STATE)


REFUSED = [
    (init, {"sketch_size": 0}, "sketch_size must be at least 1, got 0"),
    (init, {"dim": 0}, "dim must be at least 1, got 0"),
    (
        init,
        {"dtype": np.int32},
        "dtype must have dtype float32 or float64, got int32",
    ),
    (
        init,
        {"shrink_at": 4},
        r"shrink_at must be at most 3 .sketch_size \+ 1., got 4",
    ),
    (update, {"state": None}, "state must be a State of frequent_directions"),
    (update, {"rows": np.zeros((1, 4), np.float32)}, "rows must have 3 columns"),
    (update, {"rows": np.zeros((1, 3))}, "rows must have the dtype of the state"),
    (
        merge,
        {"b": other(6, 3, sketch_size=3, shrink_at=4)},
        "a and b must have the same sketch_size, got 2 and 3",
    ),
    (merge, {"b": other(4, 3, dtype="float64")}, "a and b must have the same dtype"),
    (merge, {"b": 3}, "b must be a State of frequent_directions, got int"),
    (
        finalize,
        {"state": SKETCH},
        "state must be a State of frequent_directions, got Sketch",
    ),
    (
        state,
        {"buffer": np.zeros((2, 3), np.float32)},
        "buffer must have the rows of a sketch of size 2",
    ),
]
