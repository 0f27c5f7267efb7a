"""Plans of landmarks by randomly pivoted Cholesky."""

import math

import numpy as np

from jaxkern import checks
from jaxkern._types import ArrayLike, Float
from jaxkern.bounds import streaming as bounds
from jaxkern.plan._plan import Plan, nonnegative, smallest, static_positive

_MOST_STEPS = 10**5


def pivoted_cholesky(
    eps: float,
    delta: float | None = None,
    *,
    eigenvalues: Float[ArrayLike, " r"],
    trace: float | None = None,
    rank: int | None = None,
) -> Plan:
    """Plan randomly pivoted Cholesky with tr(K - Khat) <= eps tr(K), or with (1 + eps) times the best of a rank.

    E tr(K - Khat) is at most the trace of n steps of v <- v - v^2 / sum(v) from the eigenvalues v of K, and within
    (1 + eps) of the best of rank r once n >= r / eps + r log(1 / (eps eta)), eta the relative tail of rank r. For a
    probability Markov's inequality is added, above what n landmarks leave at least: the tail of rank n.

    Parameters
    ----------
    eps : error relative to tr(K) or, with `rank`, relative excess over the best approximation of that rank, in (0, 1).
    delta : failure probability, in (0, 1); None plans the mean, E tr(K - Khat).
    eigenvalues : (r,) non-negative, the largest of K, or all; with weights w those of the matrix K_ij sqrt(w_i w_j).
        Where the tail eta of rank r is all that is known, r times (1 - eta) / r with trace=1 is the worst case.
    trace : tr(K), where `eigenvalues` are not all of them; by default their sum.
    rank : in [1, r], or None.

    Returns
    -------
    Plan with num_landmarks: `max_landmarks` for `landmarks.pivoted_cholesky` with the tolerance eps.

    Raises
    ------
    ValueError
        If what the eigenvalues leave out is too large for the target, and as for other plans.

    Notes
    -----
    O(r num_landmarks) time. In exact arithmetic. Source: Chen, Epperly, Tropp and Webber (2025); Theorem J of
    docs/theory/ghashami2016.md; claim jaxkern:pivoted-cholesky.

    Examples
    --------
    >>> from jaxkern import plan
    >>> plan.pivoted_cholesky(0.1, eigenvalues=[0.5, 0.25], trace=0.8).num_landmarks
    8
    """
    eps, share = (
        checks.open_unit("eps", eps),
        1.0 if delta is None else checks.open_unit("delta", delta),
    )
    v = np.sort(nonnegative("eigenvalues", eigenvalues))[::-1]
    total = math.fsum(v) if trace is None else float(static_positive("trace", trace))
    if not 0 < math.fsum(v) <= total * (1 + 1e-12):
        raise ValueError(
            f"eigenvalues must have a positive sum of at most the trace {total:g}, got {math.fsum(v):g}"
        )
    rest = max(total - math.fsum(v), 0.0) if trace is not None else 0.0
    tails = rest + np.append(np.cumsum(v[::-1])[::-1], 0.0)
    kept = (
        len(v)
        if rank is None
        else checks.count(
            "rank", rank, maximum=len(v), limit="the number of eigenvalues"
        )
    )
    target = eps * total if rank is None else (1 + eps) * tails[kept]
    source = "jaxkern, Theorem J of ghashami2016" + (
        " (mean)" if delta is None else " with Markov's inequality"
    )
    reachable, exists = share * target > rest, np.count_nonzero(v)
    for n in range(1, _MOST_STEPS if reachable and rest else len(v) + 1):
        v = np.maximum(v - v * (v / (np.sum(v) + rest)), 0)
        least = tails[n] if n < len(tails) else 0.0
        if (n >= exists and rest == 0) or np.sum(v) + rest - least <= share * (
            target - least
        ):
            return Plan(source, 1 - share if delta else 1.0, num_landmarks=n)
    if not reachable:
        raise ValueError(
            f"eigenvalues must be more, or eps and delta larger: they leave out {rest:g} of {total:g}"
        )
    words = {"eps": share * target / rest - 1, "rank": len(v), "tail": rest / total}
    size, bound = smallest(
        [lambda n: bounds.pivoted_cholesky_mean(**words, num_landmarks=n)], 1.0
    )
    return Plan(bound.source, 1 - share if delta else 1.0, num_landmarks=size)
