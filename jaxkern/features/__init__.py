"""Feature maps: draw or fit once, then call; each is a callable PyTree (..., dim) -> (..., num_features)."""

from jaxkern.features._nystrom import Nystrom, nystrom
from jaxkern.features._pca import KernelPCA, kernel_pca
from jaxkern.features._sketch import KernelJL, kernel_jl

__all__ = ["KernelJL", "KernelPCA", "Nystrom", "kernel_jl", "kernel_pca", "nystrom"]
