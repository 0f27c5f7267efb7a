"""What `jaxkern.io` refuses to save. The folder does not exist: nothing was written before."""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxkern import io, kernels, rkhs


class Forgotten(NamedTuple):
    """A class that `jaxkern.pytrees` was not told of."""

    first: int


NAMELESS = kernels.FromFunction(partial(max, 1))


def save():
    return io.save, {"path": "no such folder/object.npz", "obj": None}


def save_bfloat16():
    arguments = {"path": "no such folder/object.npz", "obj": jnp.ones(2, jnp.bfloat16)}
    return io.save, arguments


def load():
    return io.load, {"path": "no such file"}


REFUSED = [
    (
        save,
        {"obj": kernels.FromFunction(lambda x, y: x @ y)},
        "obj.function is a function without a name, .*; pass functions=",
    ),
    (
        save,
        {"obj": {"f": rkhs.Function(NAMELESS, np.ones(1), np.ones(1))}},
        r"obj\['f'\].kernel.function is a function without a name",
    ),
    (
        save,
        {"obj": [len, max, np.max]},
        r"obj\[2\] is another function with the name 'max'",
    ),
    (
        save,
        {"obj": [1, object()]},
        r"obj\[1\] is of type object, which cannot be saved",
    ),
    (save, {"obj": Forgotten(1)}, "obj is of type Forgotten, which cannot be saved"),
    (save, {"obj": np.array([None])}, "obj has dtype object, which cannot be saved"),
    (save_bfloat16, {}, "obj has dtype bfloat16, which cannot be saved"),
    (load, {"functions": {"max": 1}}, "functions must be a dict of functions by name"),
    (load, {"functions": {1: max}}, "functions must be a dict of functions by name"),
]
