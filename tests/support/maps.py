"""Every feature map of the package, made in one way: what the contract tests over all maps go through.

An entry makes a map from a key, a kernel and points (n, dim), of which some maps need the dimension alone. It can be
jitted and vmapped over all three as it is; what is static is inside.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jaxkern import features

MAPS = {}
"""The entries, by the name of the public function or of a variant of it."""
NUM_LANDMARKS = 12
"""So many points give the Nystrom map of full rank its number of features; no other number depends on them."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """How to make a map, and what may be asked of it.

    make : (key, kernel, points) -> map.
    function : the public function behind it.
    num_features : how many features it has.
    random : whether the key matters.
    turned : whether it rests on eigenvectors, so that two fits agree in inner products of features alone.
    landmarks : whether the points are landmarks, of which a few of a dataset do; otherwise it is fitted to all.
    """

    make: Callable[[Any, Any, Any], Any]
    function: str
    num_features: int
    random: bool = False
    turned: bool = False
    landmarks: bool = False


def products(Z, W=None):
    """Return the inner products of features in float64: what does not depend on the signs of eigenvectors."""
    Z = np.float64(Z)
    return Z @ (Z if W is None else np.float64(W)).T


def size(phi):
    """Return the largest sum of absolute terms behind one feature, which its rounding is proportional to.

    Kernel values and cosines are at most 1 (kernels without a constant in front, as in the contract tests).
    """
    if hasattr(phi, "projection"):
        return float(
            (np.abs(phi.projection).sum(1) + np.abs(getattr(phi, "offset", 0.0))).max()
        )
    for inner, rows in (("features", "components"), ("feature_map", "basis")):
        if hasattr(phi, inner) and hasattr(phi, rows):
            W = np.abs(getattr(phi, rows))
            W = W if rows == "components" else W.T
            return float((W @ (size(getattr(phi, inner)) + np.abs(phi.mean))).max())
    return 1.0


def _fourier(name):
    """Seven frequencies: not a multiple of the dimensions used."""

    def make(key, kernel, X):
        return getattr(features, name)(
            key, kernel, X.shape[1], num_frequencies=7, dtype=X.dtype
        )

    MAPS[name] = Entry(make, name, 7 if name == "shifted_fourier" else 14, random=True)


for _name in ("paired_fourier", "shifted_fourier", "orthogonal_fourier", "fastfood"):
    _fourier(_name)


def _drawn(key, kernel, X):
    """Return paired Fourier features whose frequencies are those of float32 in either dtype, so that fits compare."""
    phi = features.paired_fourier(
        key, kernel, X.shape[1], num_frequencies=6, dtype="float32"
    )
    return dataclasses.replace(phi, frequencies=phi.frequencies.astype(X.dtype))


def _nystrom(key, kernel, X, **rank):
    return features.nystrom(kernel, X, **rank)


def _kernel_jl(key, kernel, X, *, centered):
    return features.kernel_jl(key, kernel, X, num_features=5, centered=centered)


def _kernel_pca(key, kernel, X, *, centered):
    return features.kernel_pca(kernel, X, num_components=4, centered=centered)


def _random_feature_pca(key, kernel, X, *, centered):
    return features.random_feature_pca(
        _drawn(key, kernel, X), X, num_components=4, centered=centered
    )


def _streaming_pca(key, kernel, X, *, centered):
    """As many rows of the sketch as features, so that fits in either dtype are the same; components are cut."""
    pca = features.streaming_pca(
        _drawn(key, kernel, X), sketch_size=12, centered=centered
    )
    return pca.finalize(pca.update(pca.init(), X), num_components=4)


def _standardized(key, kernel, X):
    phi = features.paired_fourier(
        key, kernel, X.shape[1], num_frequencies=7, dtype=X.dtype
    )
    return features.standardized(phi, X.mean(0), 1 + X.std(0))


MAPS["standardized"] = Entry(_standardized, "standardized", 14, random=True)
MAPS["nystrom"] = Entry(_nystrom, "nystrom", NUM_LANDMARKS, turned=True, landmarks=True)
MAPS["nystrom_rank"] = Entry(
    partial(_nystrom, rank=5), "nystrom", 5, turned=True, landmarks=True
)


def _centred_or_not(make, default, num_features, **facts):
    """Enter a map with the centring that is its default, and with the other one under a name that says so."""
    name = make.__name__[1:]
    other = "uncentered" if default else "centered"
    MAPS[name] = Entry(partial(make, centered=default), name, num_features, **facts)
    MAPS[f"{name}_{other}"] = Entry(
        partial(make, centered=not default), name, num_features, **facts
    )


_centred_or_not(_kernel_jl, False, 5, random=True, landmarks=True)
_centred_or_not(_kernel_pca, True, 4, turned=True, landmarks=True)
_centred_or_not(_random_feature_pca, True, 4, random=True, turned=True)
_centred_or_not(_streaming_pca, False, 4, random=True, turned=True)
