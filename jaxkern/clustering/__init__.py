"""Kernel spectral clustering (Algorithm 1 of amini2021) and kernel k-means, with labels for new points.

Both embed the points and run k-means. What they return embeds any point and holds the partition, so that points that
were not clustered get labels too. Data sets of different sizes can share one vmapped call: fill them up with finite
rows of weight 0.
"""

from jaxkern.clustering._kernel_kmeans import KernelKMeans, kernel_kmeans
from jaxkern.clustering._spectral import (
    KernelSpectral,
    SpectralPartition,
    kernel_spectral,
    spectral_from_gram,
)

__all__ = [
    "KernelKMeans", "KernelSpectral", "SpectralPartition", "kernel_kmeans", "kernel_spectral", "spectral_from_gram",
]  # fmt: skip
