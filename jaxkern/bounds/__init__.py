"""Right-hand sides of theorems as functions: each returns a `Bound`. Topics load when they are first used.

Arguments are numbers, or arrays that broadcast against each other. Python floats give exact float64; arrays and tracers
give `jax.numpy`, so that bounds can be jitted, mapped and differentiated. Numbers of mpmath give numbers of mpmath, and
`proofs_check.engine.decided.bound` gives balls: the formula is the same, its constants are exact, and nothing is
rounded to a float. What is no number is a ValueError that names the argument. The static flag `as_printed` takes a
statement as its paper prints it, where that is not what is proved.
"""

import importlib
from types import ModuleType

from jaxkern.bounds._bound import Bound

__all__ = ["Bound", "concentration", "fourier", "sketching", "streaming"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
