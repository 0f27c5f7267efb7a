"""Feature maps: draw or fit once, then call; each is a callable PyTree (..., dim) -> (..., num_features)."""

from jaxkern.features._fastfood import Fastfood, fastfood
from jaxkern.features._fourier import (
    PairedFourier,
    ShiftedFourier,
    paired_fourier,
    shifted_fourier,
)
from jaxkern.features._fourier_orthogonal import orthogonal_fourier
from jaxkern.features._map import as_map
from jaxkern.features._nystrom import Nystrom, nystrom
from jaxkern.features._pca import KernelPCA, kernel_pca
from jaxkern.features._preimage import PreImage, preimage
from jaxkern.features._random_feature_pca import RandomFeaturePCA, random_feature_pca
from jaxkern.features._sketch import KernelJL, kernel_jl
from jaxkern.features._standardized import Standardized, standardized
from jaxkern.features._streaming import (
    StreamingMap,
    StreamingPCA,
    StreamingState,
    streaming_pca,
)
from jaxkern.features._table import TableMap

__all__ = [
    "Fastfood", "KernelJL", "KernelPCA", "Nystrom", "PairedFourier", "PreImage", "RandomFeaturePCA", "ShiftedFourier",
    "Standardized", "StreamingMap", "StreamingPCA", "StreamingState", "TableMap", "as_map", "fastfood", "kernel_jl",
    "kernel_pca", "nystrom", "orthogonal_fourier", "paired_fourier", "preimage", "random_feature_pca",
    "shifted_fourier", "standardized", "streaming_pca",
]  # fmt: skip
