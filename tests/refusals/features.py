"""What `jaxkern.features` refuses."""

import house
import numpy as np

from jaxkern import features
from jaxkern.kernels import Cauchy, Distance, Gaussian, Laplacian, Linear

LANDMARKS = np.zeros((5, 2), np.float32)


def nystrom():
    return features.nystrom, {"kernel": Gaussian(1.0), "landmarks": LANDMARKS}


def kernel_pca():
    arguments = {"kernel": Gaussian(1.0), "landmarks": LANDMARKS, "num_components": 2}
    return features.kernel_pca, arguments


REFUSED = [
    (
        nystrom,
        {"kernel": Distance()},
        "kernel must be positive semidefinite to have an RKHS, got Distance",
    ),
    (nystrom, {"rank": 0}, "rank must be at least 1, got 0"),
    (nystrom, {"rank": 6}, "rank must be at most 5 .the number of landmarks., got 6"),
    (
        kernel_pca,
        {"kernel": Distance()},
        "kernel must be positive semidefinite to have an RKHS, got Distance",
    ),
    (kernel_pca, {"num_components": 0}, "num_components must be at least 1, got 0"),
    (
        kernel_pca,
        {"num_components": 6},
        "num_components must be at most 5 .the number of landmarks., got 6",
    ),
    (kernel_pca, {"centered": 1}, "centered must be True or False"),
    (kernel_pca, {"normalized": "yes"}, "normalized must be True or False"),
]


def drawn(function):
    arguments = {"key": house.key(), "kernel": Gaussian(1.0), "dim": 2}
    return function, arguments | {"num_frequencies": 3}


def paired_fourier():
    return drawn(features.paired_fourier)


def shifted_fourier():
    return drawn(features.shifted_fourier)


def orthogonal_fourier():
    return drawn(features.orthogonal_fourier)


def fastfood():
    return drawn(features.fastfood)


def kernel_jl():
    arguments = {"key": house.key(), "kernel": Gaussian(1.0), "landmarks": LANDMARKS}
    return features.kernel_jl, arguments | {"num_features": 2}


def standardized():
    zeros = np.zeros(3, np.float32)
    return features.standardized, {"phi": np.sin, "mean": zeros, "scale": zeros}


def standardized_points():
    return features.Standardized(np.sin, *LANDMARKS[:2]), {"X": LANDMARKS}


COLUMNS = ("id", "height", "Größe")


def table_map():
    phi = features.PairedFourier(Gaussian(1.0), LANDMARKS)
    arguments = {"feature_map": phi, "columns": COLUMNS, "layouts": ((1, 2),)}
    return features.TableMap, arguments


def table_rows():
    function, arguments = table_map()
    return function(**arguments), {"X": LANDMARKS}


class Frame:
    """The least that a DataFrame has."""

    def __init__(self, **columns):
        self.arrays = columns
        self.columns = list(columns)

    def __getitem__(self, name):
        return self.arrays[name]


def preimage():
    parts = (np.zeros((2, 5), np.float32), np.zeros(2, np.float32))
    phi = features.KernelPCA(Gaussian(1.0), LANDMARKS, *parts, *parts[1:], 2, 1.0, 0.0)
    return features.preimage, {"phi": phi, "Z": LANDMARKS}


def residual():
    return preimage()[1]["phi"].reconstruction_residual, {"X": LANDMARKS}


def cosines_of_points():
    phi = features.PairedFourier(Gaussian(1.0), LANDMARKS)
    return phi, {"X": LANDMARKS}


def cosines_of_many_kernels():
    phi = features.PairedFourier(Gaussian(np.ones(3)), LANDMARKS)
    return phi, {"X": LANDMARKS}


# One message for both functions, since one check serves them.
ROTATED = "rotation invariant spectral law for .* fastfood, got {}.* use paired_fourier"

for draw in (paired_fourier, shifted_fourier, orthogonal_fourier, fastfood):
    REFUSED += [
        (
            draw,
            {"kernel": Linear()},
            "known spectral law, got Linear; pass one of Cauchy, Exp",
        ),
        (
            draw,
            {"kernel": 2.0 * (Gaussian(1.0) * Gaussian(1.0))},
            "known spectral law, got Product",
        ),
        (
            draw,
            {"kernel": Gaussian(1.0) + Gaussian(2.0)},
            "known spectral law, got Sum.* side by side",
        ),
        (draw, {"dim": 0}, "dim must be at least 1, got 0"),
        (draw, {"num_frequencies": 0}, "num_frequencies must be at least 1, got 0"),
        (draw, {"dtype": int}, "dtype must be float32 or float64, got <class 'int'>"),
    ]

REFUSED += [
    (kernel_jl, {"landmarks": LANDMARKS[0]}, "landmarks must have rank 2"),
    (kernel_jl, {"num_features": 0}, "num_features must be at least 1, got 0"),
    (kernel_jl, {"centered": 1}, "centered must be True or False"),
    (
        orthogonal_fourier,
        {"kernel": 2.0 * Laplacian(1.0)},
        ROTATED.format("Laplacian"),
    ),
    (paired_fourier, {"dtype": "double trouble"}, "float64, got 'double trouble'"),
    (fastfood, {"kernel": Cauchy(1.0)}, ROTATED.format("Cauchy")),
    (
        cosines_of_points,
        {"X": LANDMARKS[:, :1]},
        r"X must have shape \(\.\.\., 2\), got \(5, 1\)",
    ),
    (
        cosines_of_points,
        {"X": np.float64(LANDMARKS)},
        "X must have the dtype of the fitted map, float32, got float64",
    ),
    (
        cosines_of_many_kernels,
        {},
        "lengthscale must be a scalar where the kernel is evaluated",
    ),
    (standardized, {"phi": 3}, "phi must be a feature map, got int"),
    (standardized, {"mean": LANDMARKS}, r"mean must have shape \(n,\), got \(5, 2\)"),
    (standardized, {"scale": np.zeros(2, np.float32)}, r"scale must have shape \(3,\)"),
    (
        standardized_points,
        {"X": np.float64(LANDMARKS)},
        "X must have the dtype of the fitted map, float32, got float64",
    ),
    (table_map, {"columns": ("a", 1)}, "columns must be different names"),
    (
        table_map,
        {"categories": (("id", ("a",)),)},
        "categories hold the value 'a' of 'id', so columns must hold 'id=a'",
    ),
    (
        table_rows,
        {"X": np.zeros((7, 4))},
        r"X must have shape \(\.\.\., 2\), got .*'height', 'Größe'$",
    ),
    (table_rows, {"X": 0.0}, r"X must have shape \(\.\.\., 2\)"),
    (
        table_rows,
        {"X": Frame(height=np.zeros(2), more=np.zeros(2))},
        "X lacks 1 of the columns of this map: 'Größe'; pass a DataFrame",
    ),
    (
        table_rows,
        {"X": Frame(height=np.array(["5%", "6%"]), Größe=np.zeros(2))},
        r"'height' holds what is no number \(.*5%.*; pass numbers, and 0.05 for 5%",
    ),
    (
        preimage,
        {"phi": np.sin},
        "phi must be a kernel_pca map with a Gaussian kernel, got ufunc",
    ),
    (preimage, {"Z": LANDMARKS[:, :1]}, "Z must have 2 columns"),
    (preimage, {"num_steps": 0}, "num_steps must be at least 1, got 0"),
    (residual, {"X": LANDMARKS[:, :1]}, "X must have 2 columns"),
]

# A cast to the dtype of the map would lose the mask, the imaginary part or the unit.
MASKED = np.ma.masked_array([1.0, 2.0], [True, False])
DATES = np.array(["2026-01-01", "2026-01-02"], "datetime64[D]")

for column in (MASKED, np.array([1j, 2]), DATES):
    frame = Frame(height=column, Größe=np.zeros(2))
    message = r"'height' must hold real numbers, got (MaskedArray|ndarray) of dtype"
    REFUSED.append((table_rows, {"X": frame}, message))

# Out of order, repeated, beyond the table, not nested, not larger.
ASCENDING = "layouts must be ascending numbers of the 3 columns, each with more"
NOT_ASCENDING = [(2, 1)], [(1, 1, 2)], [(2, 3)], [(1, 2), (0, 1)], [(1,), (1,)]

for layouts in ([], [()], *NOT_ASCENDING):
    REFUSED.append((table_map, {"layouts": tuple(layouts)}, ASCENDING))
