"""Feature maps: draw or fit once, then call; each is a callable PyTree (..., dim) -> (..., num_features)."""

from jaxkern.features._sketch import KernelJL, kernel_jl

__all__ = ["KernelJL", "kernel_jl"]
