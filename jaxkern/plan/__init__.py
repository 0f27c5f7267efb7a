"""How many features, landmarks or sketch rows a target (eps, delta) needs: the bounds, inverted.

A planner returns the smallest sizes that a proved statement certifies, over all the statements it knows, and names the
statement. It runs on the host in float64, by bisection over whole numbers, and never looks at data. What no statement
certifies is refused.
"""

from jaxkern.plan._fourier import fourier, kernel_values
from jaxkern.plan._kernel_jl import kernel_jl
from jaxkern.plan._memory import memory
from jaxkern.plan._pivoted import pivoted_cholesky
from jaxkern.plan._plan import Plan, smallest_size
from jaxkern.plan._streaming import nystrom, streaming

__all__ = [
    "Plan", "fourier", "kernel_jl", "kernel_values", "memory", "nystrom", "pivoted_cholesky", "smallest_size",
    "streaming",
]  # fmt: skip
