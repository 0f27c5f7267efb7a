"""Right-hand sides of theorems as functions: each returns a `Bound`.

Arguments are numbers, or arrays that broadcast against each other. Python floats give exact float64; arrays and tracers
give `jax.numpy`, so that bounds can be jitted, mapped and differentiated. What is no number is a ValueError that names
the argument.
"""

from jaxkern.bounds._bound import Bound

__all__ = ["Bound", "concentration", "fourier", "sketching", "streaming"]
