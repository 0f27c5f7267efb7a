"""What valid statements demand of each map for a goal on given data, and in words why they often demand nothing."""

import math
from collections.abc import Iterator
from typing import Any

from jaxkern import kernels, plan
from proofs_check.certify._maps import LANDMARKS_A_FEATURE, NAMES
from proofs_check.certify._model import EXACT, Demand, Facts, Rounding
from proofs_check.certify._request import Request
from proofs_check.certify._spectral_theory import spectral
from proofs_check.certify._statements import lost, needed_landmarks, planned


def demands(facts: Facts, request: Request, rounding: Rounding = EXACT) -> list[Demand]:
    """Return what the valid statements demand of every map of the library, one entry a statement or a refusal.

    The rows behind a statement about "these data" are all of them. What `rounding` may add to the errors is taken from
    eps, and the statements have the rest. The size is None where no statement can be met, and the words say why.
    """
    if request.goal == "clustering":
        return [_clustering(name) for name in NAMES]
    of = {"distance": _distance, "spectral": spectral, "separation": _separation}[
        request.goal
    ]
    return [demand for name in NAMES for demand in of(name, facts, request, rounding)]


def _distance(
    name: str, facts: Facts, request: Request, rounding: Rounding
) -> Iterator[Demand]:
    if name != "paired_fourier":
        yield Demand(name, "none", _NO_DISTANCE[name])
    elif not isinstance(facts.kernel, kernels.Gaussian):
        yield Demand(
            name,
            "chen2016, Theorem 4.1",
            _NOT_GAUSSIAN.format(type(facts.kernel).__name__),
        )
    else:
        promise = f"keep their kernel distance to a relative error of {request.eps:g}"
        yield from _relative(facts, request.eps, request.delta, promise, rounding)


def _relative(
    facts: Facts, eps: float, delta: float, promise: str, rounding: Rounding
) -> Iterator[Demand]:
    """Yield the demands on paired features of the Gaussian kernel: for any points, for a ball, for these points."""
    name, rows, total = "paired_fourier", facts.rows, facts.rows * (facts.rows - 1) // 2
    if refusal := lost(name, eps, rounding.pairs, rounding.dtype):
        yield refusal
        return

    def demand(
        source: str, words: str, worst_case: bool = True, **sizes: Any
    ) -> Demand:
        found, why = planned(lambda: plan.fourier(eps - rounding.pairs, delta, **sizes))
        if found is None:
            return Demand(
                name,
                source,
                f"No size below 2^53 is certified: {why}.",
                None,
                worst_case,
            )
        return Demand(name, found.source, words, found.num_frequencies, worst_case)

    words = f"All {total:,} pairs of any {rows:,} points, of any dimension, {promise}, together."
    yield demand("chen2016, Theorem 4.1", words, num_points=rows)
    words = (
        f"All points of a ball in dimension {facts.dim:,} and of diameter {facts.diameter:.3g} lengthscales, which "
        f"holds these data, {promise}, rows to come included."
    )
    yield demand("chen2016, Theorem 5.1", words, dim=facts.dim, diameter=facts.diameter)
    source = "Theorem F of docs/theory/chen2016.md"
    if not facts.has_pairs:
        words = f"It needs the distances of all pairs: {facts.decay.get('pairs', 'they were not counted.')}"
        yield Demand(name, source, words, None, False)
        return
    squared, pairs = facts.squared_distances, facts.pairs
    near = float(pairs[squared < 0.25].sum() / max(pairs.sum(), 1.0))
    words = (
        f"These {int(pairs.sum()):,} pairs {promise}, together. Far pairs err less than near ones; {near:.2g} of the "
        "pairs are nearer than half a lengthscale."
    )
    yield demand(source, words, False, squared_distances=squared, pairs=pairs)


_NOT_GAUSSIAN = (
    "No statement names a size for any points and the {} kernel; where its frequencies have no second moment none is "
    "enough (Theorem N of docs/theory/chen2016.md). The errors on these rows are measured all the same."
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


def _separation(
    name: str, facts: Facts, request: Request, rounding: Rounding
) -> Iterator[Demand]:
    points = request.separation == "points"
    if name == "kernel_jl":
        yield _kernel_jl(facts, request)
    elif (
        name == "paired_fourier"
        and points
        and isinstance(facts.kernel, kernels.Gaussian)
    ):
        root = math.sqrt(1 - request.eps)
        relative = (1 - root) / (1 + root)  # 1 - ((1 - r) / (1 + r))^2 = eps
        promise = (
            f"keep their kernel distance to {relative:.2g}, hence {1 - request.eps:g}"
        )
        yield from _relative(facts, relative, request.delta, promise, rounding)
    else:
        words = (
            "No statement bounds the share of a separation that is lost. |K - Khat|_2 <= e n (goal spectral) keeps the "
            "squared distance of the means of classes of n1 and n2 rows within e n (1 / n1 + 1 / n2)."
        )
        yield Demand(name, "none", words)


def _kernel_jl(facts: Facts, request: Request) -> Demand:
    """Return what Example 2 of kpotufe2020 would ask of Kernel JL."""
    source = "Theorem E and Example 2 (corrected) of docs/theory/kpotufe2020.md"
    landmarks = needed_landmarks(facts, request.eps, request.delta)
    if landmarks is None:
        return Demand(
            "kernel_jl",
            source,
            "No number of landmarks below 2^53 makes the error small enough.",
        )
    words = (
        f"For |<h, Sigma_n^3 h> - <h, Sigma^3 h>| <= {request.eps:g} op_norm^3 |h|^2 it would need n = {landmarks:,} "
        f"landmarks and d = {-(-landmarks // LANDMARKS_A_FEATURE):,} features; the table has {facts.rows:,} rows. "
        "And it asks for features with mean zero, which a kernel that is never negative does not have uncentred."
    )
    return Demand("kernel_jl", source, words)
