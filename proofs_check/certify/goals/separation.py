r"""The goal "separation": the means of classes that the kernel separates stay separated in the features.

Example 2 of kpotufe2020, made scale-free, so that it makes sense for maps that keep distances and for Kernel JL, which
keeps <h, Sigma^3 h> in place of |h|^2. H is the kernel's space, phi the map, and a and b are classes:
R = |m_a - m_b|^2 / max(sigma_a, sigma_b), m the mean of a class and sigma the largest eigenvalue of its covariance.
R(phi) / R(H) is what phi *keeps*, and the error is the largest *loss* of a pair of classes, max(0, 1 - R(phi) / R(H)):
a map may separate better than the kernel, which is no error.

What the paper says of it for Kernel JL is in docs/certificates.md. If there is nothing to divide by:

* spreads sigma below rounding, 32 eps(dtype) times the mean squared length of a feature, count as that. If both
  classes of a pair have none in H and in the features (all their points coincide), all is kept if the means differ in
  the features, and nothing if they do not;
* pairs of classes whose means in H coincide up to rounding have nothing to lose, and are left out; if no pair is left,
  `prepare` raises;
* features that are all the same keep nothing: the error is 1. If a feature is not finite it is NaN.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.sparse.linalg import eigsh

from jaxkern.gram import gram
from proofs_check.certify.goals import Goal
from proofs_check.certify.points import mapped, rows_of

# Roundings of the mean squared length that a spread or a gap may consist of. Features of points that all coincide had a
# spread of 0.06 of them, by a map that rounds all rows alike; the rest is for maps that do not.
_ROUNDINGS = 32
# Residual of an eigenvalue, relative: a loss moves by no more than that, and by its square if the eigenvalue is apart
# from the others. With 1e-6, a spectrum that is flat at its end takes 10 times as long.
_TOLERANCE = 1e-4


class Means(NamedTuple):
    """Pairs of classes, (c, c) each.

    gaps : squared distances of their means, zero if they are rounding.
    spreads : the larger one of their spreads, or rounding if that is more.
    single : whether both spreads are rounding.
    """

    gaps: np.ndarray
    spreads: np.ndarray
    single: np.ndarray


@dataclass(frozen=True)
class Classes:
    """What the errors of all maps on some points share.

    Attributes
    ----------
    inputs : (s, dim), as maps get them.
    members : the numbers of the points of each class that counts, those with at least two points.
    means : their separation in the kernel's space.
    words : which classes and pairs are left out, in plain sentences; "" if none is.
    """

    inputs: np.ndarray
    members: list[np.ndarray]
    means: Means
    words: str


@dataclass
class Separation(Goal):
    """The error of a map is the largest share of the kernel's separation of two classes that it loses.

    max over pairs of classes of max(0, 1 - R(phi) / R(H)), see the module: no factor common to all features matters.

    Attributes
    ----------
    kernel : positive semidefinite.

    Notes
    -----
    For s points: `error` takes s^2 num_features / 2 multiply-adds and some 50 products of the Gram matrices of the
    classes with a vector; memory 8 s^2 bytes.
    """

    kernel: Any

    name = "separation"
    words = (
        "the largest share of its separation that a pair of classes loses; separation is the squared distance of the "
        "class means over the larger variance within a class in one direction"
    )
    # 300 draws of 512 paired frequencies take 70 s on two cores for 3,000 rows; 4,000 take three times as long.
    most_rows = 3_000
    # With what the kernel says of a sample, 60 s. In fewer rows more samples lack two points of a small class.
    sample_rows = 2_000

    def prepare(self, _key: Any, points: Any, labels: Any) -> Classes:
        """Measure the separation of classes of points (s, dim) or `Rows` in the kernel's space; the key is not used.

        labels : (s,) of any kind that can be sorted.

        Raises ValueError if fewer than two classes have two points, or if the kernel separates no two of them.
        """
        rows = rows_of(points)
        values, counts = np.unique(labels, return_counts=True)
        large = values[counts >= 2]
        if len(large) < 2:
            raise ValueError(
                f"separation needs two classes with at least two points each, got {len(values)} class(es) of at most "
                f"{counts.max()} points among {len(labels)}; pass more points, or another column to --labels"
            )
        members = [np.flatnonzero(labels == value) for value in large]
        with jax.enable_x64(True):
            K = np.asarray(gram(self.kernel, rows.points))
        if not np.isfinite(K).all():
            raise ValueError(
                "the separation of the classes is not finite; look for NaN or huge entries in the points"
            )
        length = float(np.trace(K)) / len(K)
        means = means_of(K, members, float(np.finfo(np.float64).eps), length)
        if not means.gaps.any():
            raise ValueError(
                "the kernel separates no two classes of these points: there is nothing to keep; try another lengthscale"
            )
        words = []
        if len(large) < len(values):
            names = ", ".join(map(str, values[counts < 2][:10]))
            words.append(f"Classes with a single point are left out: {names}.")
        coincident = int(np.sum(np.triu(means.gaps == 0, 1)))
        if coincident:
            words.append(
                f"{coincident} pairs of classes are not separated by the kernel, and have nothing to lose."
            )
        return Classes(rows.inputs, members, means, " ".join(words))

    def left_out(self, prepared: Classes) -> str:
        """Return which classes and pairs are left out, in plain sentences; "" if none is."""
        return prepared.words

    def error(self, _key: Any, phi: Any, prepared: Classes) -> float:
        """Return the largest loss; NaN for features that are not finite. The key is not used."""
        features = mapped(phi, prepared.inputs)
        rounding = float(np.finfo(features.dtype).eps)
        Z = features.astype(np.float64)
        if not np.isfinite(Z).all():
            return math.nan
        # What Kernel JL keeps may be too small for its square.
        Z = np.ldexp(Z, -np.frexp(np.abs(Z).max())[1])
        length = float(np.einsum("ij,ij->", Z, Z)) / len(Z)
        Z -= Z.mean(axis=0)
        exact = prepared.means
        gaps, spreads, single = means_of(Z @ Z.T, prepared.members, rounding, length)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = gaps / spreads / (exact.gaps / exact.spreads)
        shares = np.where(single & exact.single, gaps > 0, shares)
        return float(np.maximum(1 - shares[exact.gaps > 0].min(), 0))


def means_of(
    G: np.ndarray, members: Sequence[np.ndarray], eps: float, length: float
) -> Means:
    """Return the separation of classes from the Gram matrix (n, n) of all points, in float64.

    `eps` is the rounding of the points, and `length` their mean squared length.
    """
    weights = np.full((len(members), len(G)), -1 / len(G))
    for row, chosen in zip(weights, members, strict=True):
        row[chosen] += 1 / len(chosen)
    inner = weights @ G @ weights.T
    lengths = inner.diagonal()
    gaps = lengths[:, None] + lengths[None, :] - 2 * inner
    # Features that are all zero have no length, and everything about them is rounding.
    rounding = _ROUNDINGS * eps * (length or 1.0)
    of_classes = np.array([_spread(G[np.ix_(i, i)], rounding) for i in members])
    spreads = np.maximum(of_classes[:, None], of_classes)
    return Means(
        np.where(gaps > rounding, gaps, 0.0),
        np.maximum(spreads, rounding),
        spreads <= rounding,
    )


def _spread(G: np.ndarray, rounding: float) -> float:
    """Return the largest eigenvalue of the covariance of points with a Gram matrix, or its trace below `rounding`."""
    G = G - G.mean(axis=0)
    G -= G.mean(axis=1)[:, None]
    G /= len(G)
    trace = float(np.trace(G))
    if trace <= rounding:
        return trace  # the Lanczos process cannot start on a matrix of zeros
    # A fixed start makes equal calls give equal errors; a random one is orthogonal to no eigenvector.
    start = np.random.default_rng(0).standard_normal(len(G))
    values = eigsh(
        G, 1, which="LA", v0=start, tol=_TOLERANCE, return_eigenvectors=False
    )
    return float(values[0])
