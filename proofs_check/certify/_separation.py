r"""The goal "separation": classes that the kernel separates shall stay separated in the features.

Two notions of kpotufe2020, Section 5, made scale-free, so that they make sense for maps that keep distances and for
Kernel JL, which keeps <h, Sigma^3 h> in place of |h|^2. H is the kernel's space, phi the map, and a and b are classes.

"means" (Example 2): R = |m_a - m_b|^2 / max(sigma_a, sigma_b), m the mean of a class and sigma the largest eigenvalue
of its covariance. "points" (Example 1): R = min |f - g|^2 over f in a and g in b, over the mean of |f - g|^2 over all
pairs of points. In both, R(phi) / R(H) is what phi *keeps*, and the error is the largest *loss* of a pair of classes,
max(0, 1 - R(phi) / R(H)): a map may separate better than the kernel, which is no error.

What the paper says of it, for Kernel JL in the population (n and d without limit, when |phi(h)|^2 = <h, Sigma^3 h>).
Let lambda_i be the eigenvalues of Sigma = E K_X (x) K_X, and Sigma_c the covariance less the mean.

* Points. The squared distances of all pairs have the means 2 tr Sigma_c in H and 2 tr(Sigma^3 Sigma_c) in the
  features, so the pair with h = f - g keeps q(h) = (<h, Sigma^3 h> / |h|^2) tr Sigma_c / tr(Sigma^3 Sigma_c) of its
  relative distance. If Assumption 1's inequality holds for f and g with k and epsilon, (10) as corrected in
  docs/theory/kpotufe2020.md gives <h, Sigma^3 h> >= lambda_k^3 (|h|^2 - 4 epsilon kappa), and (11) gives
  tr(Sigma^3 Sigma_c) <= lambda_1^3 tr Sigma_c: two classes at squared distance at least Delta lose at most

      1 - (lambda_k / lambda_1)^3 (1 - 4 epsilon kappa / Delta),

  which is near 1 where the condition number lambda_1 / lambda_k is large. That is no weakness of the proof: distances
  along the k-th eigenfunction are rescaled by lambda_k^3 exactly, and if the mean is zero they keep lambda_k^3 over the
  mean of lambda_i^3 with weights lambda_i. On most data Kernel JL fails this goal for every size, and that is reported.
* Means. If the features have mean zero, as those of `centered=True` do, the two classes are the whole law, of weights
  pi_a and pi_b, and sigma = max(sigma_a, sigma_b), then (12) gives lambda_1^3 (|m_a - m_b|^2 - sigma / (pi_a pi_b)) for
  the squared distance of the means, and the covariances grow by lambda_1^3 at most: the loss is at most
  1 / (pi_a pi_b R(H)), whatever the condition number. For finite n and d, where E K_X = 0 for the kernel itself, which
  none that is never negative has, let e be the value of `bounds.sketching.inner_products_every_n`: on its event the
  loss is at most 1 - (lambda_1^3 (1 - 1 / (pi_a pi_b R(H))) - e) / (lambda_1^3 + e). Without centring (12) is false,
  and the loss may be near 1. For more than two classes the paper says nothing.

For a map that keeps all distances |f - g| up to a factor in [1 - r, 1 + r], the loss of points is at most
1 - ((1 - r) / (1 + r))^2. Means are not differences of two points, and a bound on distances says nothing of sigma.

Where there is nothing to divide by:

* spreads sigma below rounding, 32 eps(dtype) times the mean squared length of a feature, count as that; where both
  classes of a pair have none in H and in the features (all their points coincide), all is kept if the means differ in
  the features, and nothing if they do not;
* pairs of classes whose means in H coincide up to rounding, or all of whose points do, have nothing to lose: they are
  left out, and counted; if no pair is left, `prepare` raises;
* points of different classes that coincide in H are left out of the minimum, and counted;
* features that are all the same keep nothing: the error is 1. Where a feature is not finite it is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern.gram import gram, gram_matmul, kernel_distance
from jaxkern.kernels import psd_kernel
from jaxkern.linalg import largest_eigenpairs, matmul, start_block
from proofs_check.certify._clustering import features, ranged
from proofs_check.certify._rows import rows_of

__all__ = ["LARGEST", "Classes", "Separation"]

LARGEST = {"means": 20_000, "points": 5_000}
"""Points beyond which a draw takes seconds, or gigabytes."""

_KINDS = tuple(LARGEST)
_DENSE = 2**24
_ROWS = 128
_MOST_PAIRS = 500
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class _Means:
    """Squared distances of class means (c, c), largest eigenvalues of class covariances (c,), and their rounding."""

    gaps: np.ndarray
    spreads: np.ndarray
    rounding: float

    @property
    def spread(self) -> np.ndarray:
        """Return the larger spread of the two classes of all pairs, (c, c)."""
        return np.maximum(self.spreads[:, None], self.spreads[None, :])

    @property
    def apart(self) -> np.ndarray:
        """Return the squared distances, and zero where they are rounding."""
        return np.where(self.gaps > self.rounding, self.gaps, 0.0)

    @property
    def separation(self) -> np.ndarray:
        """Return R for all pairs; infinite where both classes are single points, NaN where the means coincide."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.apart / np.where(self.spread > self.rounding, self.spread, 0.0)
        return np.where(self.apart > 0, ratio, np.nan)

    def kept(self, exact: _Means) -> np.ndarray:
        """Return R over the exact R for all pairs, NaN where that has nothing to lose."""
        with np.errstate(divide="ignore", invalid="ignore"):
            truth = exact.apart / np.maximum(exact.spread, exact.rounding)
            ratio = self.apart / np.maximum(self.spread, self.rounding) / truth
        single = (self.spread <= self.rounding) & (exact.spread <= exact.rounding)
        return np.where(exact.apart > 0, np.where(single, self.apart > 0, ratio), np.nan)


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
        said = []
        if self.single:
            said.append(
                f"Classes with a single point among the {len(self.points)} were left out: {_some(self.single)}."
            )
        if self.missing:
            said.append(f"Classes without a point among the {len(self.points)}: {_some(self.missing)}.")
        if self.coincident:
            said.append(f"{self.coincident} pairs of points of different classes coincide, and were left out.")
        first, second = np.triu_indices(len(self.names), 1)
        nothing = int(np.isnan(self.separation[first, second]).sum())
        if nothing:
            said.append(f"{nothing} pairs of classes are not separated by the kernel, and have nothing to lose.")
        return " ".join(said)


@dataclass
class Separation:
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
        if self.kind not in _KINDS:
            raise ValueError(f'kind must be "means" or "points", got {self.kind!r}')
        separation = {
            "means": "the squared distance of the class means over the larger variance within a class in one direction",
            "points": "the least squared distance of points of the two classes over the mean one of all pairs",
        }[self.kind]
        self.words = f"the largest share of its separation that a pair of classes loses; separation is {separation}"

    def refuses(self, map_name: str) -> str:
        """Return "": separation has no scale, so that every map can be asked."""
        return ""

    def prepare(self, key: Any, points: Any, labels: np.ndarray | None) -> Classes:
        """Measure the separation of classes of points (s, dim) or `Rows` in the kernel's space; the key is not used.

        labels : (s,) of any kind that can be sorted.

        Raises ValueError without labels, where they do not fit, where fewer than two classes have two points, or where
        the kernel separates no two of them.
        """
        rows = rows_of(points)
        names, codes, single, missing = self._classes(labels, len(rows.points))
        measure = _prepared_means if self.kind == "means" else _prepared_points
        with jax.enable_x64(True):
            layout, separation, coincident = measure(self.kernel, jnp.asarray(rows.points), codes, len(names))
        first, second = np.triu_indices(len(names), 1)
        if np.isnan(separation[first, second]).all():
            raise ValueError(
                "the kernel separates no two classes of these points: there is nothing to keep; try another lengthscale"
            )
        return Classes(rows.inputs, names, single, missing, separation, coincident, layout)

    def error(self, key: Any, phi: Any, prepared: Classes) -> float:
        """Return the largest loss; NaN for features that are not finite. The key is not used."""
        first, second = np.triu_indices(len(prepared.names), 1)
        kept = self._kept(phi, prepared)[first, second]
        kept = kept[~np.isnan(prepared.separation[first, second])]
        return float(np.max(np.maximum(1 - kept, 0)))

    def detail(self, phi: Any, prepared: Classes) -> dict[str, Any]:
        """Return the pairs of classes, those that keep least first and 500 of them at most.

        `exact` is R(H), None where it is infinite, and `kept` is R(phi) / R(H), which may exceed 1.
        """
        kept = self._kept(phi, prepared)
        pairs = [
            (float(kept[i, j]), i, j)
            for i, j in zip(*np.triu_indices(len(prepared.names), 1), strict=True)
            if not np.isnan(prepared.separation[i, j])
        ]
        pairs.sort(key=lambda pair: (math.isfinite(pair[0]), pair[0]))
        classes = [
            {
                "first": prepared.names[i],
                "second": prepared.names[j],
                "exact": _finite(prepared.separation[i, j]),
                "kept": _finite(share),
            }
            for share, i, j in pairs[:_MOST_PAIRS]
        ]
        return {"classes": classes, "kind": self.kind, "words": prepared.words}

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
            raise ValueError(f"labels must have shape ({num_points},), one for each point, got {labels.shape}")
        found, inverse, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if (counts >= 2).sum() < 2:
            raise ValueError(
                f"separation needs two classes with at least two points each, got {len(found)} class(es) of at most "
                f"{counts.max()} points among {num_points}; pass more points, or another column to --labels"
            )
        number = np.where(counts >= 2, np.cumsum(counts >= 2) - 1, -1)
        names = [str(name) for name in found]
        return (
            tuple(name for name, count in zip(names, counts, strict=True) if count >= 2),
            number[inverse].astype(np.int32),
            tuple(name for name, count in zip(names, counts, strict=True) if count < 2),
            tuple(sorted({str(name) for name in self.classes} - set(names))),
        )

    def _kept(self, phi: Any, prepared: Classes) -> np.ndarray:
        Z = features(phi, prepared.points)
        rounding = float(jnp.finfo(Z.dtype).eps)
        with jax.enable_x64(True):
            Z = Z.astype(jnp.float64)
            if self.kind == "points":
                return _kept_points(Z, prepared)
            rows, inside, exact = prepared.layout
            found = _means(_features_means, _features_spreads, (Z,), rows, inside, rounding)
        return found.kept(exact) if found is not None else np.full(exact.gaps.shape, np.nan)


# --- means -----------------------------------------------------------------------------------------------------------


def _prepared_means(
    kernel: Any, points: jax.Array, codes: np.ndarray, num_classes: int
) -> tuple[tuple[jax.Array, jax.Array, _Means], np.ndarray, int]:
    """Return where the points of the classes are and how they are separated in H, R, and 0."""
    counts = np.bincount(codes[codes >= 0], minlength=num_classes)
    # A multiple of a number: samples of one size share programs. What fills it up counts nothing.
    width = int(-(-counts.max() // _ROWS) * _ROWS)
    rows = np.zeros((num_classes, width), np.int32)
    for number in range(num_classes):
        rows[number, : counts[number]] = np.flatnonzero(codes == number)
    layout = jnp.asarray(rows), jnp.asarray(np.arange(width)[None, :] < counts[:, None])
    rounding = float(jnp.finfo(points.dtype).eps)
    exact = _means(_kernel_means, _kernel_spreads, (kernel, points), *layout, rounding)
    if exact is None:
        raise ValueError("the separation of the classes is not finite; look for NaN or huge entries in the points")
    return (*layout, exact), exact.separation, 0


def _means(means: Any, spreads: Any, space: Any, rows: jax.Array, inside: jax.Array, eps: float) -> _Means | None:
    """Return the numbers of the kernel's space or of the features, in float64; None where some are not finite.

    The largest eigenvalues come from the Gram matrices of the classes where these are small, by one program for the
    kernel and all maps, for it takes seconds to compile; and else from products without them.
    """
    dense = inside.shape[0] * inside.shape[1] ** 2 <= _DENSE
    gaps, size, grams = means(*space, rows, inside, dense=dense)
    if dense:
        # One after the other, by a program that does not depend on their number: samples may miss a class.
        pairs = [_gram_spread(one, mask) for one, mask in zip(grams, inside, strict=True)]
        values, settled = np.array([float(pair[0]) for pair in pairs]), all(bool(pair[1]) for pair in pairs)
    else:
        values, settled = spreads(*space, rows, inside)
    # Features that are all zero have no size, and nothing that is not rounding.
    rounding = 32 * eps * (float(size) or 1.0)
    found = _Means(np.asarray(gaps, float), np.asarray(values, float), rounding)
    finite = np.isfinite(found.gaps).all() and np.isfinite(found.spreads).all() and math.isfinite(rounding)
    return found if finite and bool(settled) else None


@partial(jax.jit, static_argnames="dense")
def _kernel_means(
    kernel: Any, points: jax.Array, rows: jax.Array, inside: jax.Array, *, dense: bool
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """Return the squared distances (c, c) of the class means in H, the mean of K(x, x), and the Gram matrices."""
    counts = inside.sum(axis=1).astype(points.dtype)

    def weights(row: jax.Array, mask: jax.Array, count: jax.Array) -> jax.Array:
        return jnp.zeros(len(points), points.dtype).at[row].add(mask.astype(points.dtype) / count)

    # Less the mean of all points: the entries of the product are then no larger than they need be.
    W = jax.vmap(weights)(rows, inside, counts).T - 1 / len(points)
    products = gram_matmul(kernel, points, None, W)
    gaps = lax.map(lambda a: ((W[:, a][:, None] - W) * (products[:, a][:, None] - products)).sum(axis=0), _range(W.T))
    size = jnp.mean(jax.vmap(lambda x: kernel(x, x))(points))
    return gaps, size, lax.map(lambda row: gram(kernel, points[row]), rows) if dense else None


@jax.jit
def _kernel_spreads(kernel: Any, points: jax.Array, rows: jax.Array, inside: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the largest eigenvalues (c,) of the covariances in H, without a Gram matrix, and if they are settled."""

    def spread(one: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        members = points[one[0]]
        return _largest(lambda V: gram_matmul(kernel, members, None, V), one[1], points.dtype)

    values, settled = lax.map(spread, (rows, inside))
    return values, settled.all()


@jax.jit
def _gram_spread(K: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the same of one class from its Gram matrix (w, w), of which masked rows and columns count."""
    return _largest(lambda V: matmul(K, V), mask, K.dtype)


@partial(jax.jit, static_argnames="dense")
def _features_means(
    Z: jax.Array, rows: jax.Array, inside: jax.Array, *, dense: bool
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """Return the same of features (s, m) as `_kernel_means` of H, up to a common factor."""
    Z, size = _scaled(Z)
    means = lax.map(lambda one: _members(Z, *one)[1], (rows, inside))
    gaps = lax.map(lambda a: ((means[a][None, :] - means) ** 2).sum(axis=1), _range(means))

    def class_gram(one: tuple[jax.Array, jax.Array]) -> jax.Array:
        centred = _members(Z, *one)[0]
        return matmul(centred, centred.T)

    return gaps, size, lax.map(class_gram, (rows, inside)) if dense else None


@jax.jit
def _features_spreads(Z: jax.Array, rows: jax.Array, inside: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the same of features as `_kernel_spreads` of H, up to the same factor."""
    Z = _scaled(Z)[0]

    def spread(one: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        centred = _members(Z, *one)[0]
        return _largest(lambda V: matmul(centred, matmul(centred.T, V)), one[1], Z.dtype)

    values, settled = lax.map(spread, (rows, inside))
    return values, settled.all()


def _scaled(Z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the features at a scale of 1 less their mean, and the mean squared length before that is taken off."""
    Z = ranged(Z)
    return Z - jnp.mean(Z, axis=0, keepdims=True), jnp.mean((Z * Z).sum(axis=1))


def _members(Z: jax.Array, row: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the features (w, m) of a class less their mean, zero where the mask is, and that mean (m,)."""
    members = jnp.where(mask[:, None], Z[row], 0)
    mean = members.sum(axis=0) / mask.sum().astype(Z.dtype)
    return jnp.where(mask[:, None], members - mean[None, :], 0), mean


def _range(rows: jax.Array) -> jax.Array:
    return jnp.arange(len(rows), dtype=jnp.int32)


def _largest(product: Any, mask: jax.Array, dtype: Any) -> tuple[jax.Array, jax.Array]:
    """Return the largest eigenvalue of the covariance of the masked points, whose Gram matrix `product` multiplies.

    And whether it is within a relative 2e-4 of an eigenvalue.
    """
    count = mask.sum().astype(dtype)

    def centred(V: jax.Array) -> jax.Array:
        V = jnp.where(mask[:, None], V, 0)
        return jnp.where(mask[:, None], V - V.sum(axis=0, keepdims=True) / count, 0)

    start = start_block(len(mask), 1, dtype)
    found = largest_eigenpairs(lambda V: centred(product(centred(V))), start, num_values=1, tolerance=_TOLERANCE)
    return jnp.maximum(found.values[0], 0) / count, found.converged


# --- points ----------------------------------------------------------------------------------------------------------


def _prepared_points(
    kernel: Any, points: jax.Array, codes: np.ndarray, num_classes: int
) -> tuple[tuple[jax.Array, jax.Array, jax.Array], np.ndarray, int]:
    """Return the classes of the points, who is apart from whom and the nearest ones of every class; R; coincidences."""
    classes = jnp.asarray(codes)
    least, nearest, apart, sums, coincident = _measured_points(kernel, points, classes, num_classes=num_classes)
    mean = float(np.asarray(sums, float).sum()) / (len(points) * (len(points) - 1))
    separation = _between(least, codes, num_classes)
    with np.errstate(divide="ignore", invalid="ignore"):
        separation = separation / mean
    separation = np.where(np.isfinite(separation), separation, np.nan)
    # Every pair was seen from both sides.
    return (classes, apart, nearest), separation, int(np.asarray(coincident, np.int64).sum()) // 2


def _kept_points(Z: jax.Array, prepared: Classes) -> np.ndarray:
    """Return R over the exact R for all pairs of classes; NaN where features are not finite."""
    classes, apart, nearest = prepared.layout
    least, mean = _features_points(Z, classes, apart, nearest, num_classes=len(prepared.names))
    if not math.isfinite(float(mean)):
        return np.full(prepared.separation.shape, np.nan)
    between = _between(least, np.asarray(classes), len(prepared.names))
    return between / (float(mean) or 1.0) / prepared.separation


def _between(least: jax.Array, codes: np.ndarray, num_classes: int) -> np.ndarray:
    """Return the minima (c, c) over the points of a class of the distance (c, s) to the nearest one of another."""
    values = np.asarray(least, float)
    found = np.stack([values[:, codes == number].min(axis=1) for number in range(num_classes)])
    return np.minimum(found, found.T)


@partial(jax.jit, static_argnames="num_classes")
def _measured_points(
    kernel: Any, points: jax.Array, classes: jax.Array, *, num_classes: int
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """Return squared distances in H and indices (c, s) of the nearest point of every class that does not coincide.

    Then who does not coincide (s, s), and for every point the sum of its squared distances and the number of points of
    other classes that coincide with it.
    """
    numbers = jnp.arange(num_classes, dtype=jnp.int32)

    def one(point: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
        x, own = point
        distances = kernel_distance(kernel, jnp.broadcast_to(x[None, :], points.shape), points) ** 2
        apart = distances != 0
        other = (classes != own) & (own >= 0)
        wanted = (classes[None, :] == numbers[:, None]) & (other & apart)[None, :]
        values = jnp.where(wanted, distances[None, :], jnp.inf)
        return (
            values.min(axis=1),
            jnp.argmin(values, axis=1).astype(jnp.int32),
            apart,
            distances.sum(),
            (other & (classes >= 0) & ~apart).sum(dtype=jnp.int32),
        )

    least, nearest, apart, sums, coincident = lax.map(one, (points, classes))
    return least.T, nearest.T, apart, sums, coincident


@partial(jax.jit, static_argnames="num_classes")
def _features_points(
    Z: jax.Array, classes: jax.Array, apart: jax.Array, nearest: jax.Array, *, num_classes: int
) -> tuple[jax.Array, jax.Array]:
    """Return the squared distance (c, s) to the nearest point of every class, and the mean one of all pairs.

    Products tell who is near; how near is summed over differences, for that pair and for the nearest in H.
    """
    num_points = len(Z)
    # Differences are taken before the mean is: to subtract it is to round.
    Z, centred = ranged(Z), _scaled(Z)[0]
    lengths = (centred * centred).sum(axis=1)
    distances = lengths[:, None] + lengths[None, :] - 2 * matmul(centred, centred.T)
    outside = ~apart | (classes[:, None] == classes[None, :])

    def one_class(one: tuple[jax.Array, jax.Array]) -> jax.Array:
        number, other = one
        without = outside | (classes != number)[None, :]
        chosen = jnp.argmin(jnp.where(without, jnp.inf, distances), axis=1)
        least = jnp.minimum(((Z - Z[chosen]) ** 2).sum(axis=1), ((Z - Z[other]) ** 2).sum(axis=1))
        return jnp.where(without.all(axis=1), jnp.inf, least)

    least = lax.map(one_class, (jnp.arange(num_classes, dtype=jnp.int32), nearest))
    return least, lengths.sum() * 2 / (num_points - 1)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _some(names: tuple[str, ...]) -> str:
    """Return up to ten names, and how many more there are."""
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more
