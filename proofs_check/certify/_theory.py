"""What valid statements demand of each map for a goal on given data, and in words why they often demand nothing.

One statement is not in the papers. Let Pi project on the k leading eigenvectors of the covariance Sigma_c of c rows
that are drawn uniformly, Q = I - Pi, and let kappa = 1. As Q Sigma Q is positive and tr Sigma_c <= 1,

    |Q Sigma Q| <= |Q Sigma_c Q| + lambda_max(Sigma - Sigma_c)_+ <= 1 / (k + 1) + lambda_max(Sigma - Sigma_c)_+.

The left-hand side is |G - Gbar| / n for kernel PCA with k components, and |Ghat - Gtilde| / n
for principal components of features whose rows have norm at most 1; a sketch of k rows has the same 1 / (k + 1), by
Theorem D of docs/theory/ghashami2016.md. The last term is what Theorem G there bounds, and 0 where all rows are taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jaxkern import kernels, plan
from jaxkern.bounds import Bound, fourier, sketching, streaming
from jaxkern.plan import smallest_size
from proofs_check.certify._facts import without_pairs
from proofs_check.certify._maps import FOURIER, LANDMARKS_A_FEATURE, NAMES, families
from proofs_check.certify._model import EXACT, GOALS, Demand, Facts, Rounding

STATIONARY = (
    kernels.Gaussian,
    kernels.Laplacian,
    kernels.Cauchy,
    kernels.Exponential,
    kernels.Matern32,
    kernels.Matern52,
)
"""Kernels K(x - y) with K(x, x) = 1 that have Fourier features."""

NYSTROM = "Theorem G of docs/theory/ghashami2016.md"
_SHARES = (0.02, 0.1, 0.3, 0.6)
"""Of delta, that the choice of rows may have; the frequencies have the rest."""


def demands(
    facts: Facts, goal_name: str, eps: float, delta: float, kind: str | None = None, rounding: Rounding = EXACT
) -> list[Demand]:
    """Return what the valid statements demand of every map of the library, one entry a statement or a refusal.

    Parameters
    ----------
    facts : of the data. The rows behind a statement about "these data" are all of them.
    goal_name : one of `GOALS`.
    eps, delta : largest error, and largest probability of a draw that exceeds it, in (0, 1).
    kind : of the goal "separation", "means" or "points" where it is known.
    rounding : what it may add to the errors; the statements have the rest of eps.

    Returns
    -------
    list of Demand; the size is None where no statement can be met, and the words say why.

    Raises
    ------
    ValueError
        If goal_name or kind is not known.
    """
    if goal_name not in GOALS:
        raise ValueError(f"goal_name must be one of {', '.join(GOALS)}, got {goal_name!r}")
    if kind not in (None, "means", "points"):
        raise ValueError(f"kind must be 'means' or 'points', got {kind!r}")
    if goal_name == "distance":
        return [demand for name in NAMES for demand in _distance(name, facts, eps, delta, rounding)]
    if goal_name == "spectral":
        return [demand for name in NAMES for demand in _spectral(name, facts, eps, delta, rounding)]
    if goal_name == "clustering":
        return [_clustering(name) for name in NAMES]
    return [demand for name in NAMES for demand in _separation(name, facts, eps, delta, kind, rounding)]


def rounding_share(rounding: Rounding, goal_name: str, name: str) -> float:
    """Return what rounding may add to the error of a map, as far as a statement is about the goal."""
    gram = rounding.gram + (0.0 if name in FOURIER else rounding.eigen)
    return gram if goal_name == "spectral" else rounding.pairs


def _lost(name: str, eps: float, share: float, dtype: str) -> Demand | None:
    """Return why no statement holds for a map in some precision, None where rounding leaves something of eps."""
    if share < eps:
        return None
    why = f"Rounding in {dtype} may change these data, or pairs that were not looked at, by all of {eps:.2g}"
    more = "; float64 would leave more" if dtype == "float32" else ""
    return Demand(name, "none", f"Statements are about exact numbers. {why}{more}.")


# ----------------------------------------------------------------------------------------------------------- distance


def _distance(name: str, facts: Facts, eps: float, delta: float, rounding: Rounding) -> Iterator[Demand]:
    if name != "paired_fourier":
        yield Demand(name, "none", _NO_DISTANCE[name])
    elif not isinstance(facts.kernel, kernels.Gaussian):
        yield Demand(name, "chen2016, Theorem 4.1", _NOT_GAUSSIAN.format(type(facts.kernel).__name__))
    else:
        yield from _relative(facts, eps, delta, f"keep their kernel distance to a relative error of {eps:g}", rounding)


def _relative(facts: Facts, eps: float, delta: float, promise: str, rounding: Rounding) -> Iterator[Demand]:
    """Yield the demands on paired features of the Gaussian kernel: for any points, for a ball, for these points."""
    name, rows, total = "paired_fourier", facts.rows, facts.rows * (facts.rows - 1) // 2
    lost = _lost(name, eps, rounding.pairs, rounding.dtype)
    if lost is not None:
        yield lost
        return
    eps -= rounding.pairs
    found, why = planned(lambda: plan.fourier(eps, delta, num_points=rows))
    if found is None:
        yield Demand(name, "chen2016, Theorem 4.1", f"No size below 2^53 is certified: {why}.")
    else:
        words = f"All {total:,} pairs of any {rows:,} points, of any dimension, {promise}, together."
        yield Demand(name, found.source, words, found.num_frequencies)
    found, why = planned(lambda: plan.fourier(eps, delta, dim=facts.dim, diameter=facts.diameter))
    if found is None:
        yield Demand(name, "chen2016, Theorem 5.1", f"No size below 2^53 is certified: {why}.")
    else:
        words = (
            f"All points of a ball in dimension {facts.dim:,} and of diameter {facts.diameter:.3g} lengthscales, which "
            f"holds these data, {promise}, rows to come included."
        )
        yield Demand(name, found.source, words, found.num_frequencies)
    source = "Theorem F of docs/theory/chen2016.md"
    if without_pairs(facts):
        words = f"It needs the distances of all pairs: {facts.decay.get('pairs', 'they were not counted.')}"
        yield Demand(name, source, words, None, False)
        return
    squared, pairs = facts.squared_distances, facts.pairs
    found, why = planned(lambda: plan.fourier(eps, delta, squared_distances=squared, pairs=pairs))
    if found is None:
        yield Demand(name, source, f"No size below 2^53 is certified: {why}.", None, False)
        return
    near = float(pairs[squared < 0.25].sum() / max(pairs.sum(), 1.0))
    words = (
        f"These {int(pairs.sum()):,} pairs {promise}, together. Far pairs err less than near ones; {near:.2g} of the "
        "pairs are nearer than half a lengthscale."
    )
    yield Demand(name, found.source, words, found.num_frequencies, False)


_NOT_GAUSSIAN = (
    "Relative errors of kernel distances are proved for Gaussian frequencies only, not for the {} kernel. What is "
    "known bounds |K - Khat|, which says nothing of near pairs."
)

_ONE_PAIR = "Bounds of |K - Khat| say nothing of the relative error of near pairs."
_SPAN = (
    "A pair whose difference lies outside the span of the landmarks has features that coincide, a relative error of 1, "
    "and no statement bounds how many do. With all distinct rows as landmarks the error is that of rounding."
)
_NO_DISTANCE = {
    "shifted_fourier": (
        "The proof for paired features rests on one frequency being less spread than chi-square, and a random shift "
        f"spreads it more. {_ONE_PAIR}"
    ),
    "orthogonal_fourier": (
        f"Each frequency is a normal vector, but they depend on each other, and the proof adds independent ones. "
        f"{_ONE_PAIR}"
    ),
    "fastfood": f"Its frequencies depend on each other and are not normal vectors. {_ONE_PAIR}",
    "nystrom": _SPAN,
    "kernel_pca": f"{_SPAN} Components that are cut off add to that.",
    "kernel_jl": (
        "It keeps <h, Sigma^3 h>, which differs from the squared kernel distance by the cube of the spectrum; no size "
        "makes them agree."
    ),
    "random_feature_pca": f"What is cut off is bounded over all points together, not pair by pair. {_ONE_PAIR}",
    "streaming_pca": f"What the sketch loses is bounded over all points together, not pair by pair. {_ONE_PAIR}",
}


# ----------------------------------------------------------------------------------------------------------- spectral


def _spectral(name: str, facts: Facts, eps: float, delta: float, rounding: Rounding) -> Iterator[Demand]:
    """Yield the demands for |K - Khat|_2 <= eps n."""
    stationary = isinstance(facts.kernel, STATIONARY)
    share = rounding_share(rounding, "spectral", name)
    if name == "kernel_jl":
        yield Demand(name, "none", "Its features have the Gram matrix of Sigma^3, not of the kernel.")
    elif name in ("orthogonal_fourier", "fastfood"):
        words = "The statements add independent frequencies, and these depend on each other: only draws can tell."
        yield Demand(name, "none", words)
    elif (lost := _lost(name, eps, share, rounding.dtype)) is not None:
        yield lost
    elif name == "nystrom":
        yield _nystrom(facts, eps - share, delta)
    elif name == "kernel_pca":
        yield _kernel_pca(facts, eps - share, delta)
    elif not stationary:
        yield Demand(name, "none", f"The {type(facts.kernel).__name__} kernel is not one with Fourier features.")
    elif name in FOURIER:
        yield from _fourier(name, facts, eps - share, delta)
    else:
        yield _components(name, facts, eps, delta, share)


def _fourier(name: str, facts: Facts, eps: float, delta: float) -> Iterator[Demand]:
    n, tau, gaussian = facts.rows, math.log(1 / delta), isinstance(facts.kernel, kernels.Gaussian)
    statements: list[tuple[bool, Callable[[int], Bound]]]
    if name == "paired_fourier":
        variance = 0.5 if gaussian else 1.0
        statements = [
            (True, lambda t: fourier.gram_spectral_paired(eps=eps, num_frequencies=t, num_points=n)),
            (True, lambda t: fourier.gram_spectral_paired_all_n(eps=eps, num_frequencies=t)),
            (False, lambda t: fourier.gram_frobenius_paired(num_frequencies=t, tau=tau, variance=variance)),
            (False, lambda t: fourier.gram_frobenius_paired_bernstein(eps=eps, num_frequencies=t, variance=variance)),
        ]
    else:
        variance = 1.0 if gaussian else 1.5
        statements = [
            (True, lambda m: fourier.gram_spectral_shifted(eps=eps, num_features=m, num_points=n)),
            (False, lambda m: fourier.gram_frobenius_shifted(num_features=m, tau=tau, variance=variance)),
        ]
    for spectral in (True, False):
        able = [_smallest(statement, eps, delta) for kind, statement in statements if kind == spectral]
        size, source = min(able)
        if size == 2**53:
            yield Demand(name, source, "No size below 2^53 is certified.")
            continue
        if spectral:
            words = f"For any {n:,} points and all unit vectors x together, |x' (K - Khat) x| <= {eps:.4g} n."
        else:
            words = f"For any points, of any number n, even the Frobenius norm of K - Khat is at most {eps:.4g} n."
        yield Demand(name, source, words, size)


def _nystrom(facts: Facts, eps: float, delta: float) -> Demand:
    # The goal is eps n, the statement is about eps n kappa.
    share = eps / facts.kappa
    if share >= 1:
        return Demand("nystrom", NYSTROM, "The error never exceeds n times the largest K(x, x).", 1)
    found, _ = planned(lambda: plan.nystrom(share, delta))
    size = (found and found.num_landmarks) or 2**53
    if size >= facts.rows:
        asked = f"{size:,} landmarks" if found else "2^53 landmarks and more"
        words = f"The table has {facts.rows:,} rows, no more than {asked}: take all, for no error but rounding."
        return Demand("nystrom", NYSTROM, words, facts.rows)
    words = f"For any table, of any number n of rows, |K - Khat|_2 <= {eps:.4g} n with landmarks drawn uniformly."
    return Demand("nystrom", NYSTROM, words, size)


def _kernel_pca(facts: Facts, eps: float, delta: float) -> Demand:
    share, rows = eps / facts.kappa, facts.rows
    family = families(rows, facts.dim, eps)["kernel_pca"]

    def certificate(size: int) -> Bound:
        points = family.num_points(size)
        rest = share - 1 / (size + 1)
        if rest < 0 or (rest == 0 and points < rows):
            return Bound(eps, -math.inf, False, "")
        return Bound(eps, 1.0, True, "") if points >= rows else _drawn(rest, points)

    size = smallest_size(certificate, delta)
    source = f"{NYSTROM}, with a rank"
    if size is None or size > family.largest:
        return Demand("kernel_pca", source, f"It would need more components than {family.largest:,}, the most here.")
    words = (
        f"For any table: {size:,} components leave out at most n / {size + 1:,}, and {family.num_points(size):,} "
        f"uniform landmarks find them well enough for |K - Khat|_2 <= {eps:.4g} n."
    )
    return Demand("kernel_pca", source, words, size)


def _components(name: str, facts: Facts, eps: float, delta: float, rounding: float) -> Demand:
    """Return the demand on principal components of paired features, of sampled rows or of a stream of rows."""
    n, family = facts.rows, families(facts.rows, facts.dim, eps)[name]

    def certificate(size: int) -> Bound:
        sizes = family.sizes(size)
        kept, points = sizes.get("sketch_size", sizes.get("num_components", 0)), sizes["num_points"]
        left, best = eps - rounding - 1 / (kept + 1), -math.inf
        for share in _SHARES if points < n else (0.0,):
            drawn = 0.0 if points >= n else _deviation(points, share * delta)
            if left > drawn:
                words = {"eps": left - drawn, "num_frequencies": size}
                direct = fourier.gram_spectral_paired(**words, num_points=n).probability
                free = fourier.gram_spectral_paired_all_n(**words)
                best = max(best, direct - share * delta, free.probability - share * delta if free.valid else -math.inf)
        return Bound(eps, best, best > 0, "")

    size = smallest_size(certificate, delta)
    sizes = family.sizes(size or family.largest)
    kept, points = sizes.get("sketch_size", sizes.get("num_components", 0)), sizes["num_points"]
    source = "Theorem E of docs/theory/ghashami2016.md"
    if points < n:
        source = "Theorems E and G of docs/theory/ghashami2016.md"
    held = f"{kept:,} rows of the sketch" if name == "streaming_pca" else f"{kept:,} components"
    if size is None:
        return Demand(name, source, f"With {held} of {points:,} rows nothing is left of eps for the frequencies.")
    over = f", more than the {family.largest:,} that are tried" if size > family.largest else ""
    words = (
        f"For any {n:,} points: {held} leave out at most n / {kept + 1:,}, and the frequencies have what remains of "
        f"{eps:g}{over}."
    )
    if points < n:
        words += (
            f" The rows seen are {points:,}, drawn uniformly, and their share is {_deviation(points, delta / 10):.2g}."
        )
    elif name == "streaming_pca":
        words += " It holds for the stream itself, which is the table."
    return Demand(name, source, words, size)


def _drawn(eps: float, points: int) -> Bound:
    """Return Theorem G, for lambda_max(Sigma - Sigma_c) <= eps with uniform draws."""
    return streaming.nystrom_spectral(eps=eps, num_landmarks=points)


def _deviation(points: int, delta: float) -> float:
    """Return an eps for which Theorem G holds with probability at least 1 - delta."""
    log = math.log(20 / delta)
    root = (2 * log / 3 + math.sqrt((2 * log / 3) ** 2 + 2 * log * points)) / (2 * points)
    found = max(root, 1 / (2 * math.sqrt(points)) + 1 / (3 * points)) * (1 + 1e-9)
    bound = _drawn(found, points)
    assert bound.valid and bound.probability >= 1 - delta
    return found


# --------------------------------------------------------------------------------------------------------- clustering


def _clustering(name: str) -> Demand:
    words = "No statement bounds the share of points that k-means groups in another way, for any map: "
    if name == "kernel_jl":
        words += "Kernel JL keeps <h, Sigma^3 h>, other distances than those of kernel k-means."
    elif name == "paired_fourier":
        words += (
            "relative errors of all distances (goal distance) keep the cost of every partition within (1 +- eps)^2, "
            "but partitions of nearly the same cost may differ."
        )
    else:
        words += (
            "|K - Khat|_2 <= eps n (goal spectral) keeps the cost of k clusters within k eps n, up to a constant, "
            "but partitions of nearly the same cost may differ."
        )
    return Demand(name, "none", words)


# --------------------------------------------------------------------------------------------------------- separation


def _separation(
    name: str, facts: Facts, eps: float, delta: float, kind: str | None, rounding: Rounding
) -> Iterator[Demand]:
    if name == "kernel_jl":
        yield _kernel_jl(facts, eps, delta)
    elif name == "paired_fourier" and kind == "points" and isinstance(facts.kernel, kernels.Gaussian):
        root = math.sqrt(1 - eps)
        relative = (1 - root) / (1 + root)  # 1 - ((1 - r) / (1 + r))^2 = eps
        promise = f"keep their kernel distance to {relative:.2g}, hence {1 - eps:g}"
        yield from _relative(facts, relative, delta, promise, rounding)
    else:
        words = (
            "No statement bounds the share of a separation that is lost. |K - Khat|_2 <= e n (goal spectral) keeps the "
            "squared distance of the means of classes of n1 and n2 rows within e n (1 / n1 + 1 / n2)."
        )
        yield Demand(name, "none", words)


def _kernel_jl(facts: Facts, eps: float, delta: float) -> Demand:
    """Return what Example 2 of kpotufe2020 would ask of Kernel JL."""
    source = "Theorem E and Example 2 (corrected) of docs/theory/kpotufe2020.md"
    landmarks = needed_landmarks(facts, eps, delta)
    if landmarks is None:
        return Demand("kernel_jl", source, "No number of landmarks below 2^53 makes the error small enough.")
    words = (
        f"For |<h, Sigma_n^3 h> - <h, Sigma^3 h>| <= {eps:g} op_norm^3 |h|^2 it would need n = {landmarks:,} landmarks "
        f"and d = {-(-landmarks // LANDMARKS_A_FEATURE):,} features; the table has {facts.rows:,} rows. "
        "And it asks for features with mean zero, which a kernel that is never negative does not have uncentred."
    )
    return Demand("kernel_jl", source, words)


def needed_landmarks(facts: Facts, eps: float, delta: float) -> int | None:
    """Return the fewest landmarks n for which Theorem E of kpotufe2020 is at most eps op_norm^3, with d = n / 4."""
    if facts.op_norm <= 0:
        return None
    words: dict[str, Any] = {name: getattr(facts, name) for name in ("kappa", "op_norm", "trace", "trace3", "hs_norm")}

    def certificate(n: int) -> Bound:
        d = max(n // LANDMARKS_A_FEATURE, 1)
        bound = sketching.inner_products_every_n(**words, n=n, d=d, tau=math.log(4 / delta) + 1e-12)
        return Bound(
            bound.value, bound.probability, bound.valid and bound.value <= eps * facts.op_norm**3, bound.source
        )

    return smallest_size(certificate, delta)


# ------------------------------------------------------------------------------------------------------------- shared


def _smallest(statement: Callable[[int], Bound], eps: float, delta: float) -> tuple[int, str]:
    """Return the smallest size for which a statement gives an error of at most eps, and its source."""

    def judged(size: int) -> Bound:
        bound = statement(size)
        # exp(-log(1 / delta)) may round to the other side of delta.
        return Bound(bound.value, bound.probability + 1e-12, bound.valid and bound.value <= eps, bound.source)

    size = smallest_size(judged, delta)
    return (2**53 if size is None else size), statement(size or 1).source


def planned(make: Callable[[], plan.Plan]) -> tuple[plan.Plan | None, str]:
    """Return a plan, or None and why there is none."""
    try:
        return make(), ""
    except ValueError as error:
        return None, str(error)


def share_of_pairs(facts: Facts, low: float = 0.0, high: float = math.inf) -> float | None:
    """Return about the share of the counted pairs at distances within [low, high), or None where none was counted."""
    if without_pairs(facts):
        return None
    inside = (facts.squared_distances >= low**2) & (facts.squared_distances < high**2)
    return float(np.sum(facts.pairs[inside]) / max(np.sum(facts.pairs), 1.0))
