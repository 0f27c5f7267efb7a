r"""The goal "separation": classes that the kernel separates shall stay separated in the features.

Two notions of kpotufe2020, Section 5, made scale-free, so that they make sense for maps that keep distances and for
Kernel JL, which keeps <h, Sigma^3 h> in place of |h|^2. H is the kernel's space, phi the map, and a and b are classes.

"means" (Example 2): R = |m_a - m_b|^2 / max(sigma_a, sigma_b), m the mean of a class and sigma the largest eigenvalue
of its covariance. "points" (Example 1): R = min |f - g|^2 over f in a and g in b, over the mean of |f - g|^2 over all
pairs of points. In both, R(phi) / R(H) is what phi *keeps*, and the error is the largest *loss* of a pair of classes,
max(0, 1 - R(phi) / R(H)): a map may separate better than the kernel, which is no error.

What the paper says of it for Kernel JL is in docs/certificates.md. Where there is nothing to divide by:

* spreads sigma below rounding, 32 eps(dtype) times the mean squared length of a feature, count as that; where both
  classes of a pair have none in H and in the features (all their points coincide), all is kept if the means differ in
  the features, and nothing if they do not;
* pairs of classes whose means in H coincide up to rounding, or all of whose points do, have nothing to lose: they are
  left out, and counted; if no pair is left, `prepare` raises;
* points of different classes that coincide in H are left out of the minimum, and counted;
* features that are all the same keep nothing: the error is 1. Where a feature is not finite it is NaN.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern.kernels import psd_kernel
from proofs_check.certify import _means, _nearest
from proofs_check.certify._errors import finite
from proofs_check.certify._model import Goal
from proofs_check.certify._request import SEPARATIONS
from proofs_check.certify._rows import features, rows_of

_MOST_PAIRS = 500


@dataclass(frozen=True)
class Classes:
    """What the errors of all maps on some points share.

    Attributes
    ----------
    points : (s, dim), as maps get them.
    names : the c classes that count, those with at least two points.
    single : classes that were left out, for they have a single point here.
    missing : classes of the table that have none.
    separation : (c, c), R in the kernel's space. NaN where a pair has nothing to lose, infinite where both classes are
        single points of H.
    coincident : pairs of points of different classes that coincide in H ("points" only).
    """

    points: jax.Array
    names: tuple[str, ...]
    single: tuple[str, ...]
    missing: tuple[str, ...]
    separation: np.ndarray
    coincident: int
    layout: Any = field(repr=False)

    @property
    def words(self) -> str:
        """Return what was left out, in plain sentences; "" where nothing was."""
        sentences = []
        if self.single:
            sentences.append(
                f"Classes with a single point among the {len(self.points)} were left out: {_some(self.single)}."
            )
        if self.missing:
            sentences.append(
                f"Classes without a point among the {len(self.points)}: {_some(self.missing)}."
            )
        if self.coincident:
            sentences.append(
                f"{self.coincident} pairs of points of different classes coincide, and were left out."
            )
        first, second = np.triu_indices(len(self.names), 1)
        nothing = int(np.isnan(self.separation[first, second]).sum())
        if nothing:
            sentences.append(
                f"{nothing} pairs of classes are not separated by the kernel, and have nothing to lose."
            )
        return " ".join(sentences)


@dataclass
class Separation(Goal):
    """The error of a map is the largest share of the kernel's separation of two classes that it loses.

    max over pairs of classes of max(0, 1 - R(phi) / R(H)), see the module: no factor common to all features matters.

    Attributes
    ----------
    kernel : positive semidefinite.
    kind : "means", the squared distance of class means over the larger spread of the two classes, or "points", the
        least squared distance of points of two classes over the mean one of all pairs.
    classes : all labels of the table, so that samples without some of them say so; left empty, those of the points.

    Notes
    -----
    "means": `error` takes w^2 num_features multiply-adds for each class, w the size of the largest, and some 20 to 100
    products of the Gram matrices with 7 vectors; where classes times w^2 exceeds 2^24, no Gram matrices but products of
    the features, s num_features multiply-adds for every class and vector. `prepare` does the same with the kernel, and
    s^2 classes. The spreads are within a relative 2e-4 of an eigenvalue. "points": s^2 num_features multiply-adds for
    the distances, from which the nearest point of every class is taken for every point; the distance of these, and of
    those nearest in H, is then summed over direct differences. Where the least distance is above the rounding of
    squared distances, eps times the largest squared length, it is the minimum; below, some pair may be closer by less
    than that. `prepare` takes s^2 dim; memory 2 s^2.
    """

    kernel: Any
    kind: str = "means"
    classes: Sequence[Any] = ()
    words: str = field(init=False)

    name = "separation"

    def __post_init__(self) -> None:
        """Check the kernel and the kind."""
        self.kernel = psd_kernel(self.kernel)
        if self.kind not in SEPARATIONS:
            raise ValueError(f'kind must be "means" or "points", got {self.kind!r}')
        separation = {
            "means": "the squared distance of the class means over the larger variance within a class in one direction",
            "points": "the least squared distance of points of the two classes over the mean one of all pairs",
        }[self.kind]
        self.words = f"the largest share of its separation that a pair of classes loses; separation is {separation}"

    def prepare(self, _key: Any, points: Any, labels: np.ndarray | None) -> Classes:
        """Measure the separation of classes of points (s, dim) or `Rows` in the kernel's space; the key is not used.

        labels : (s,) of any kind that can be sorted.

        Raises ValueError without labels, where they do not fit, where fewer than two classes have two points, or where
        the kernel separates no two of them.
        """
        rows = rows_of(points)
        names, codes, single, missing = self._classes(labels, len(rows.points))
        measure = _means if self.kind == "means" else _nearest
        with jax.enable_x64(True):
            layout, separation, coincident = measure.prepared(
                self.kernel, jnp.asarray(rows.points), codes, len(names)
            )
        first, second = np.triu_indices(len(names), 1)
        if np.isnan(separation[first, second]).all():
            raise ValueError(
                "the kernel separates no two classes of these points: there is nothing to keep; try another lengthscale"
            )
        return Classes(
            jnp.asarray(rows.inputs),
            names,
            single,
            missing,
            separation,
            coincident,
            layout,
        )

    def error(self, _key: Any, phi: Any, prepared: Classes) -> float:
        """Return the largest loss; NaN for features that are not finite. The key is not used."""
        first, second = np.triu_indices(len(prepared.names), 1)
        shares = self._share_kept(phi, prepared)[first, second]
        shares = shares[~np.isnan(prepared.separation[first, second])]
        return float(np.max(np.maximum(1 - shares, 0)))

    def detail(self, phi: Any, prepared: Classes) -> dict[str, Any]:
        """Return the pairs of classes, those that keep least first and 500 of them at most.

        `exact` is R(H), None where it is infinite, and `kept` is R(phi) / R(H), which may exceed 1.
        """
        shares = self._share_kept(phi, prepared)
        pairs = [
            (float(shares[i, j]), i, j)
            for i, j in zip(*np.triu_indices(len(prepared.names), 1), strict=True)
            if not np.isnan(prepared.separation[i, j])
        ]
        pairs.sort(key=lambda pair: (math.isfinite(pair[0]), pair[0]))
        classes = [
            {
                "first": prepared.names[i],
                "second": prepared.names[j],
                "exact": finite(prepared.separation[i, j]),
                "kept": finite(share),
            }
            for share, i, j in pairs[:_MOST_PAIRS]
        ]
        return {"classes": classes, "words": prepared.words}

    def _classes(
        self, labels: np.ndarray | None, num_points: int
    ) -> tuple[tuple[str, ...], np.ndarray, tuple[str, ...], tuple[str, ...]]:
        """Return the classes that count, their number for every point or -1, and those with one point or none."""
        if labels is None:
            raise ValueError(
                "separation is about classes, and there are no labels; name the column that holds them with --labels"
            )
        labels = np.asarray(labels)
        if labels.shape != (num_points,):
            raise ValueError(
                f"labels must have shape ({num_points},), one for each point, got {labels.shape}"
            )
        values, inverse, counts = np.unique(
            labels, return_inverse=True, return_counts=True
        )
        if (counts >= 2).sum() < 2:
            raise ValueError(
                f"separation needs two classes with at least two points each, got {len(values)} class(es) of at most "
                f"{counts.max()} points among {num_points}; pass more points, or another column to --labels"
            )
        number = np.where(counts >= 2, np.cumsum(counts >= 2) - 1, -1)
        names = [str(value) for value in values]
        return (
            tuple(
                name for name, count in zip(names, counts, strict=True) if count >= 2
            ),
            number[inverse].astype(np.int32),
            tuple(name for name, count in zip(names, counts, strict=True) if count < 2),
            tuple(sorted({str(name) for name in self.classes} - set(names))),
        )

    def _share_kept(self, phi: Any, prepared: Classes) -> np.ndarray:
        Z = features(phi, prepared.points)
        rounding = float(jnp.finfo(Z.dtype).eps)
        with jax.enable_x64(True):
            Z = Z.astype(jnp.float64)
            if self.kind == "means":
                return _means.share_kept(Z, prepared.layout, rounding)
            return _nearest.share_kept(Z, prepared.layout, prepared.separation)


def _some(names: tuple[str, ...]) -> str:
    """Return up to ten names, and how many more there are."""
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more
