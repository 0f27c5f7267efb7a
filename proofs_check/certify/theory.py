"""What valid statements demand of each map for a goal on given data, or in words why they demand nothing.

One statement is not in the papers. Let Pi project on the k leading eigenvectors of the covariance Sigma_c of c rows
that are drawn uniformly, Q = I - Pi, and let kappa = 1. As Q Sigma Q is positive and tr Sigma_c <= 1,

    |Q Sigma Q| <= |Q Sigma_c Q| + lambda_max(Sigma - Sigma_c)_+ <= 1 / (k + 1) + lambda_max(Sigma - Sigma_c)_+.

The left-hand side is |G - Gbar| / n for kernel PCA with k components, and |Ghat - Gtilde| / n
for principal components of features whose rows have norm at most 1; a sketch of k rows has the same 1 / (k + 1), by
Theorem D of docs/theory/ghashami2016.md. The last term is what Theorem G there bounds, and 0 where all rows are taken.

Statements are about exact numbers: what rounding may add to an error is taken from eps before a size is planned.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

from jaxkern import kernels, plan
from jaxkern.bounds import Bound, fourier, streaming
from jaxkern.plan import smallest_size
from proofs_check.certify.facts import EDGES, Facts
from proofs_check.certify.maps import FOURIER, NAMES, families
from proofs_check.certify.request import Request
from proofs_check.certify.rounding import EXACT, Rounding

NYSTROM = "Theorem G of docs/theory/ghashami2016.md"
_SHARES = (0.02, 0.1, 0.3, 0.6)
"""Shares of delta that the choice of rows may have; the frequencies have the rest."""


@dataclass(frozen=True)
class Demand:
    """The size that a valid statement demands of a map for a goal, or why it demands none that can be met.

    Attributes
    ----------
    map : name of the map.
    source : the statement.
    words : one or two plain sentences: what it promises, or why it says nothing on these data.
    size : smallest certified size in the map's own unit (see `Family.sizes`), None if there is none.
    worst_case : whether it holds for all data with this number of rows, and not for these data alone.
    """

    map: str
    source: str
    words: str
    size: int | None = None
    worst_case: bool = True


def demands(facts: Facts, request: Request, rounding: Rounding = EXACT) -> list[Demand]:
    """Return what valid statements demand of each map of the library, at least one entry a map.

    An entry without a size is a refusal, and its words give the reason. Statements about "these data" are about all
    rows of the table. The sizes keep `request.eps` and `request.delta`, with what `rounding` leaves of eps.
    """
    entries: list[Demand] = []
    for name in NAMES:
        share = rounding_share(rounding, request.goal, name)
        if words := _refusal(name, facts, request, share, rounding.dtype):
            entries.append(Demand(name, "none", words))
        elif request.goal == "distance":
            entries += _distances(facts, request, request.eps - share)
        else:
            entries += _PLANNERS[name](name, facts, request, request.eps - share)
    return entries


def least(demands: Sequence[Demand]) -> dict[str, Demand]:
    """Return the demand with the smallest size of each map that has one."""
    smallest: dict[str, Demand] = {}
    with_size = [demand for demand in demands if demand.size]
    for demand in sorted(with_size, key=attrgetter("size")):
        smallest.setdefault(demand.map, demand)
    return smallest


def rounding_share(rounding: Rounding, goal: str, name: str) -> float:
    """Return what rounding may add to the error of a map."""
    if goal != "spectral":
        return rounding.pairs
    return rounding.gram + (0.0 if name in FOURIER else rounding.eigen)


def _refusal(
    name: str, facts: Facts, request: Request, share: float, dtype: str
) -> str:
    """Return why no statement gives a size for a map, or an empty string."""
    refusals = _REFUSALS[request.goal]
    refusal = refusals.get(name, refusals.get("other", ""))
    if refusal:
        return refusal
    if request.goal == "distance" and not isinstance(facts.kernel, kernels.Gaussian):
        return _NOT_GAUSSIAN.format(type(facts.kernel).__name__)
    if share < request.eps:  # NaN is not, and is refused
        return ""
    more = "; float64 would leave more" if dtype == "float32" else ""
    return (
        f"Statements are about exact numbers. Rounding in {dtype} may change these data, or pairs that were not looked "
        f"at, by all of {request.eps:.2g}{more}."
    )


_NOT_GAUSSIAN = (
    "No statement names a size for any points and the {} kernel. If its frequencies have no second moment, no size is "
    "enough (Theorem N of docs/theory/chen2016.md). The errors on these rows are measured all the same."
)
_ONE_PAIR = "Bounds of |K - Khat| say nothing about the relative error of near pairs."
_CUT = f"The bound of what is cut off is for all points together, not pair by pair. {_ONE_PAIR}"
_SPAN = (
    "A pair whose difference lies outside the span of the landmarks has equal features, a relative error of 1, and no "
    "statement bounds the number of such pairs. If all distinct rows are landmarks, the only error is rounding."
)
_DEPENDENT = "The statements add independent frequencies, and these depend on each other: only draws can tell."
_CLUSTERS = "No statement bounds the share of points that k-means groups in another way, for any map. "
_NEAR_TIES = "but partitions of nearly the same cost may differ."
_REFUSALS = {
    "distance": {
        "shifted_fourier": "The proof for paired features needs one frequency to be less spread than chi-square, and a "
        f"random shift spreads it more. {_ONE_PAIR}",
        "orthogonal_fourier": "Each frequency is a normal vector, but they depend on each other, and the proof adds "
        f"independent ones. {_ONE_PAIR}",
        "fastfood": f"Its frequencies depend on each other and are not normal vectors. {_ONE_PAIR}",
        "nystrom": _SPAN,
        "kernel_pca": f"{_SPAN} Components that are cut off add to that.",
        "kernel_jl": "It keeps <h, Sigma^3 h>, which differs from the squared kernel distance by the cube of the "
        "spectrum. No size makes them agree.",
        "random_feature_pca": _CUT,
        "streaming_pca": _CUT,
    },
    "spectral": {
        "kernel_jl": "Its features have the Gram matrix of Sigma^3, not of the kernel.",
        "orthogonal_fourier": _DEPENDENT,
        "fastfood": _DEPENDENT,
    },
    "clustering": {
        "kernel_jl": f"{_CLUSTERS}Kernel JL keeps <h, Sigma^3 h>, other distances than those of kernel k-means.",
        "paired_fourier": f"{_CLUSTERS}Relative errors of all distances (goal distance) keep the cost of every "
        f"partition within (1 +- eps)^2, {_NEAR_TIES}",
        "other": f"{_CLUSTERS}|K - Khat|_2 <= eps n (goal spectral) keeps the cost of k clusters within k eps n, up to "
        f"a constant, {_NEAR_TIES}",
    },
    "separation": {
        "kernel_jl": "Example 2 of kpotufe2020 needs features with mean zero. A kernel that is never negative has them "
        "only after centring.",
        "other": "No statement bounds the share of a separation that is lost. |K - Khat|_2 <= e n (goal spectral) "
        "keeps the squared distance of the means of classes of n1 and n2 rows within e n (1 / n1 + 1 / n2).",
    },
}
"""Why no statement gives a size, by goal and map."""


# Relative errors of the distances of all pairs, for paired features of the Gaussian kernel


def _distances(facts: Facts, request: Request, eps: float) -> list[Demand]:
    """Return the demands for any points, for all points of a ball, and for pairs at the distances of these data."""
    promise = f"keep their kernel distance to a relative error of {request.eps:g}"
    planned = partial(_planned, eps, request.delta)
    any_points = planned(
        f"All pairs of any {facts.rows:,} points, of any dimension, {promise}, together.",
        "chen2016, Theorem 4.1",
        num_points=facts.rows,
    )
    ball = planned(
        f"All points of a ball of diameter {facts.diameter:.3g} lengthscales, which holds these data, {promise}. "
        "New rows in the ball are included.",
        "chen2016, Theorem 5.1",
        dim=facts.dim,
        diameter=facts.diameter,
    )
    source = "Theorem F of docs/theory/chen2016.md"
    if facts.pairs is None:
        words = (
            "It needs the distances of all pairs, and the table is too large for that."
        )
        these = Demand("paired_fourier", source, words)
    else:
        these = planned(
            f"These {facts.pairs.sum():,} pairs {promise}, together. Far pairs err less than near ones.",
            source,
            squared_distances=EDGES,
            pairs=facts.pairs,
        )
    return [any_points, ball, replace(these, worst_case=False)]


def _planned(eps: float, delta: float, words: str, source: str, **sizes: Any) -> Demand:
    """Return the demand of a plan, or the reason why there is no plan."""
    promise = Demand("paired_fourier", source, words)
    try:
        planned = plan.fourier(eps, delta, **sizes)
    except ValueError as error:
        return replace(promise, words=f"No size below 2^53 is certified: {error}.")
    return replace(promise, source=planned.source, size=planned.num_frequencies)


# The Gram matrix: |K - Khat|_2 <= eps n


def _fourier(name: str, facts: Facts, request: Request, eps: float) -> list[Demand]:
    """Return the smallest sizes by bounds of the spectral norm, and by bounds of the Frobenius norm."""
    n = facts.rows
    gaussian = isinstance(facts.kernel, kernels.Gaussian)
    # exp(-log(1 / delta)) may be larger than delta by rounding, and then no size would be certified.
    tau = math.log(1 / request.delta) + 1e-12
    if name == "paired_fourier":
        variance = 0.5 if gaussian else 1.0
        # The statement for n points asks for less only below 20 of them.
        spectral = [
            lambda t: fourier.gram_spectral_paired_all_n(eps=eps, num_frequencies=t)
        ]
        frobenius = [
            lambda t: fourier.gram_frobenius_paired(
                num_frequencies=t, tau=tau, variance=variance
            ),
            lambda t: fourier.gram_frobenius_paired_bernstein(
                eps=eps, num_frequencies=t, variance=variance
            ),
        ]
    else:
        variance = 1.0 if gaussian else 1.5
        spectral = [
            lambda m: fourier.gram_spectral_shifted(
                eps=eps, num_features=m, num_points=n
            )
        ]
        frobenius = [
            lambda m: fourier.gram_frobenius_shifted(
                num_features=m, tau=tau, variance=variance
            )
        ]
    vectors = f"For any {n:,} points, |K - Khat|_2 <= {eps:.4g} n."
    entries = f"For any points, of any number n, even the Frobenius norm of K - Khat is at most {eps:.4g} n."
    return [
        _smallest(Demand(name, "", vectors), spectral, eps, request.delta),
        _smallest(Demand(name, "", entries), frobenius, eps, request.delta),
    ]


def _smallest(
    promise: Demand,
    statements: Sequence[Callable[[int], Bound]],
    eps: float,
    delta: float,
) -> Demand:
    """Return a promise with the smallest size at which a statement gives an error of at most eps."""
    entries = []
    for statement in statements:
        size = smallest_size(partial(_at_most, eps, statement), delta)
        source = statement(1).source
        entries.append(replace(promise, source=source, size=size))
    refusal = replace(entries[0], words="No size below 2^53 is certified.")
    return least(entries).get(promise.map, refusal)


def _at_most(eps: float, statement: Callable[[int], Bound], size: int) -> Bound:
    """Return a bound that is valid only if its value is at most eps."""
    bound = statement(size)
    return replace(bound, valid=bound.valid and bound.value <= eps)


def _nystrom(name: str, facts: Facts, request: Request, eps: float) -> list[Demand]:
    size = smallest_size(
        lambda count: streaming.nystrom_spectral(eps=eps, num_landmarks=count),
        request.delta,
    )
    words = f"For any table, of any number n of rows, |K - Khat|_2 <= {eps:.4g} n with landmarks drawn uniformly."
    if size is None or size >= facts.rows:
        size = facts.rows
        words = (
            f"The statement asks for at least as many landmarks as the table has rows, {size:,}. With all of them the "
            "only error is rounding."
        )
    return [Demand(name, NYSTROM, words, size)]


def _kernel_pca(name: str, facts: Facts, request: Request, eps: float) -> list[Demand]:
    family = families(facts.rows, facts.dim, request.eps)[name]

    def certificate(size: int) -> Bound:
        landmarks = family.num_points(size)
        left = eps - 1 / (size + 1)
        bound = streaming.nystrom_spectral(eps=left, num_landmarks=landmarks)
        if landmarks < facts.rows:
            return bound
        return replace(bound, probability=1.0, valid=left >= 0)

    size = smallest_size(certificate, request.delta)
    words = (
        f"For any table, components that are left out and landmarks drawn uniformly cost |K - Khat|_2 at most "
        f"{eps:.4g} n."
    )
    if size is None or size > family.largest:
        size = None
        words = f"It would need more components than {family.largest:,}, the most here."
    return [Demand(name, f"{NYSTROM}, with a rank", words, size)]


def _components(name: str, facts: Facts, request: Request, eps: float) -> list[Demand]:
    """Return the demand on principal components of paired features, of sampled rows or of a stream of rows."""
    n = facts.rows
    delta = request.delta
    family = families(n, facts.dim, request.eps)[name]
    ranks = "sketch_size" if name == "streaming_pca" else "num_components"

    def certificate(size: int, share: float) -> Bound:
        sizes = family.sizes(size)
        rank = sizes[ranks]
        left = eps - 1 / (rank + 1)
        failure = 0.0
        if sizes["num_points"] < n:
            failure = share * delta
            left -= _deviation(sizes["num_points"], failure)
        bound = streaming.streaming_gram_buffered(
            eps=max(left, 0.0), num_frequencies=size, num_points=n, sketch_size=rank
        )
        return replace(bound, probability=bound.probability - failure)

    certificates = [partial(certificate, share=share) for share in _SHARES]
    sizes = [smallest_size(certificate, delta) for certificate in certificates]
    size = min(filter(None, sizes), default=None)
    last = family.sizes(size or family.largest)
    parts = f"{last[ranks]:,} components of {last['num_points']:,} rows"
    source = "Theorem E of docs/theory/ghashami2016.md"
    if last["num_points"] < n:
        source = "Theorems E and G of docs/theory/ghashami2016.md"
        parts += ", which are drawn uniformly,"
    words = f"For any {n:,} points: {parts} leave out a part, and the frequencies have the rest of {request.eps:g}."
    if size is None:
        words = f"With {parts} nothing is left of eps for the frequencies."
    return [Demand(name, source, words, size)]


def _deviation(points: int, delta: float) -> float:
    """Return an eps for which Theorem G holds with probability at least 1 - delta."""
    log = math.log(20 / delta)
    # The positive root of points eps^2 = log (1/2 + 2 eps / 3), and the smallest eps for which the theorem is valid.
    root = (log / 3 + math.sqrt((log / 3) ** 2 + log * points / 2)) / points
    smallest = 1 / (2 * math.sqrt(points)) + 1 / (3 * points)
    # Rounding must not make it smaller.
    return max(root, smallest) * (1 + 1e-9)


_PLANNERS = {
    "paired_fourier": _fourier,
    "shifted_fourier": _fourier,
    "nystrom": _nystrom,
    "kernel_pca": _kernel_pca,
    "random_feature_pca": _components,
    "streaming_pca": _components,
}
"""Functions that plan the maps of the goal spectral."""
