"""What valid statements demand of each map for |K - Khat|_2 <= eps n.

One statement is not in the papers. Let Pi project on the k leading eigenvectors of the covariance Sigma_c of c rows
that are drawn uniformly, Q = I - Pi, and let kappa = 1. As Q Sigma Q is positive and tr Sigma_c <= 1,

    |Q Sigma Q| <= |Q Sigma_c Q| + lambda_max(Sigma - Sigma_c)_+ <= 1 / (k + 1) + lambda_max(Sigma - Sigma_c)_+.

The left-hand side is |G - Gbar| / n for kernel PCA with k components, and |Ghat - Gtilde| / n
for principal components of features whose rows have norm at most 1; a sketch of k rows has the same 1 / (k + 1), by
Theorem D of docs/theory/ghashami2016.md. The last term is what Theorem G there bounds, and 0 where all rows are taken.
"""

import math
from collections.abc import Callable, Iterator

from jaxkern import kernels, plan
from jaxkern.bounds import Bound, fourier, streaming
from jaxkern.plan import smallest_size
from proofs_check.certify._maps import FOURIER, families
from proofs_check.certify._model import Demand, Facts, Rounding
from proofs_check.certify._request import STATIONARY, Request
from proofs_check.certify._statements import (
    LARGEST,
    NYSTROM,
    lost,
    planned,
    rounding_share,
    smallest,
)

_SHARES = (0.02, 0.1, 0.3, 0.6)
"""Shares of delta that the choice of rows may have; the frequencies have the rest."""


def spectral(
    name: str, facts: Facts, request: Request, rounding: Rounding
) -> Iterator[Demand]:
    """Yield the demands for |K - Khat|_2 <= eps n."""
    share = rounding_share(rounding, "spectral", name)
    eps, delta = request.eps - share, request.delta
    if name == "kernel_jl":
        yield Demand(
            name,
            "none",
            "Its features have the Gram matrix of Sigma^3, not of the kernel.",
        )
    elif name in ("orthogonal_fourier", "fastfood"):
        words = "The statements add independent frequencies, and these depend on each other: only draws can tell."
        yield Demand(name, "none", words)
    elif refusal := lost(name, request.eps, share, rounding.dtype):
        yield refusal
    elif name == "nystrom":
        yield _nystrom(facts, eps, delta)
    elif name == "kernel_pca":
        yield _kernel_pca(facts, eps, delta)
    elif not isinstance(facts.kernel, STATIONARY):
        yield Demand(
            name,
            "none",
            f"The {type(facts.kernel).__name__} kernel is not one with Fourier features.",
        )
    elif name in FOURIER:
        yield from _fourier(name, facts, eps, delta)
    else:
        yield _components(name, facts, request, share)


def _fourier(name: str, facts: Facts, eps: float, delta: float) -> Iterator[Demand]:
    n, tau, gaussian = (
        facts.rows,
        math.log(1 / delta),
        isinstance(facts.kernel, kernels.Gaussian),
    )
    statements: list[tuple[bool, Callable[[int], Bound]]]
    if name == "paired_fourier":
        variance = 0.5 if gaussian else 1.0
        statements = [
            (
                True,
                lambda t: fourier.gram_spectral_paired(
                    eps=eps, num_frequencies=t, num_points=n
                ),
            ),
            (
                True,
                lambda t: fourier.gram_spectral_paired_all_n(
                    eps=eps, num_frequencies=t
                ),
            ),
            (
                False,
                lambda t: fourier.gram_frobenius_paired(
                    num_frequencies=t, tau=tau, variance=variance
                ),
            ),
            (
                False,
                lambda t: fourier.gram_frobenius_paired_bernstein(
                    eps=eps, num_frequencies=t, variance=variance
                ),
            ),
        ]
    else:
        variance = 1.0 if gaussian else 1.5
        statements = [
            (
                True,
                lambda m: fourier.gram_spectral_shifted(
                    eps=eps, num_features=m, num_points=n
                ),
            ),
            (
                False,
                lambda m: fourier.gram_frobenius_shifted(
                    num_features=m, tau=tau, variance=variance
                ),
            ),
        ]
    for norm in (True, False):
        able = [
            smallest(statement, eps, delta)
            for kind, statement in statements
            if kind == norm
        ]
        size, source = min(able)
        if size == LARGEST:
            yield Demand(name, source, "No size below 2^53 is certified.")
            continue
        if norm:
            words = f"For any {n:,} points and all unit vectors x together, |x' (K - Khat) x| <= {eps:.4g} n."
        else:
            words = f"For any points, of any number n, even the Frobenius norm of K - Khat is at most {eps:.4g} n."
        yield Demand(name, source, words, size)


def _nystrom(facts: Facts, eps: float, delta: float) -> Demand:
    # The goal is eps n, the statement is about eps n kappa.
    share = eps / facts.kappa
    if share >= 1:
        return Demand(
            "nystrom",
            NYSTROM,
            "The error never exceeds n times the largest K(x, x).",
            1,
        )
    landmarks, _ = planned(lambda: plan.nystrom(share, delta).num_landmarks)
    size = landmarks or LARGEST
    if size >= facts.rows:
        asked = f"{size:,} landmarks" if landmarks else "2^53 landmarks and more"
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
        return (
            Bound(eps, 1.0, True, "")
            if points >= rows
            else streaming.nystrom_spectral(eps=rest, num_landmarks=points)
        )

    size = smallest_size(certificate, delta)
    source = f"{NYSTROM}, with a rank"
    if size is None or size > family.largest:
        return Demand(
            "kernel_pca",
            source,
            f"It would need more components than {family.largest:,}, the most here.",
        )
    words = (
        f"For any table: {size:,} components leave out at most n / {size + 1:,}, and {family.num_points(size):,} "
        f"uniform landmarks find them well enough for |K - Khat|_2 <= {eps:.4g} n."
    )
    return Demand("kernel_pca", source, words, size)


def _components(name: str, facts: Facts, request: Request, rounding: float) -> Demand:
    """Return the demand on principal components of paired features, of sampled rows or of a stream of rows."""
    n, eps, delta = facts.rows, request.eps, request.delta
    family = families(n, facts.dim, eps)[name]

    def rank_and_points(size: int) -> tuple[int, int]:
        sizes = family.sizes(size)
        return sizes.get("sketch_size", sizes.get("num_components", 0)), sizes[
            "num_points"
        ]

    def certificate(size: int) -> Bound:
        rank, points = rank_and_points(size)
        left, best = eps - rounding - 1 / (rank + 1), -math.inf
        for share in _SHARES if points < n else (0.0,):
            drawn = 0.0 if points >= n else _deviation(points, share * delta)
            if left > drawn:
                direct = fourier.gram_spectral_paired(
                    eps=left - drawn, num_frequencies=size, num_points=n
                ).probability
                free = fourier.gram_spectral_paired_all_n(
                    eps=left - drawn, num_frequencies=size
                )
                best = max(
                    best,
                    direct - share * delta,
                    free.probability - share * delta if free.valid else -math.inf,
                )
        return Bound(eps, best, best > 0, "")

    size = smallest_size(certificate, delta)
    rank, points = rank_and_points(size or family.largest)
    source = "Theorem E of docs/theory/ghashami2016.md"
    if points < n:
        source = "Theorems E and G of docs/theory/ghashami2016.md"
    held = (
        f"{rank:,} rows of the sketch"
        if name == "streaming_pca"
        else f"{rank:,} components"
    )
    if size is None:
        return Demand(
            name,
            source,
            f"With {held} of {points:,} rows nothing is left of eps for the frequencies.",
        )
    over = (
        f", more than the {family.largest:,} that are tried"
        if size > family.largest
        else ""
    )
    words = (
        f"For any {n:,} points: {held} leave out at most n / {rank + 1:,}, and the frequencies have what remains of "
        f"{eps:g}{over}."
    )
    if points < n:
        words += f" The rows seen are {points:,}, drawn uniformly, "
        words += f"and their share is {_deviation(points, delta / 10):.2g}."
    elif name == "streaming_pca":
        words += " It holds for the stream itself, which is the table."
    return Demand(name, source, words, size)


def _deviation(points: int, delta: float) -> float:
    """Return an eps for which Theorem G holds with probability at least 1 - delta, infinite where none is certified."""
    log = math.log(20 / delta)
    root = (2 * log / 3 + math.sqrt((2 * log / 3) ** 2 + 2 * log * points)) / (
        2 * points
    )
    eps = max(root, 1 / (2 * math.sqrt(points)) + 1 / (3 * points)) * (1 + 1e-9)
    bound = streaming.nystrom_spectral(eps=eps, num_landmarks=points)
    return eps if bound.valid and bound.probability >= 1 - delta else math.inf
