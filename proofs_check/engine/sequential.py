"""Evidence that may be looked at after every trial: e-processes and limits at any time.

The rule of `limits` needs a number of trials that is fixed before the first one. Here the level holds at
all times at once, so a run may stop as soon as the evidence decides, or go on for as long as one likes.

*The process.* docs/judge_study.md derives the evidence E_n, a ratio of incomplete beta functions, from S_n violations
in n trials, and why it is a supermartingale under *every* course of rates up to the claimed delta. Its prior over
rates p > delta, ~ p^(a-1) (1 - p)^(b-1), must put no mass below delta: there a trial with a smaller rate than
delta would gain. Exchanging violations with their absence, and delta with 1 - delta, gives the evidence against "at
least delta".

*The prior*, (a, b) = (1/100, 1/2), is close to uniform in log p, so that a rate of 2 delta is found about as fast for
delta = 1e-10 as for delta = 0.1; the b of one side serves the other one, where it is good for rates from 0 to delta.

*Limits.* The lower limit is the largest rate that is refuted. The refuted rates are an interval (0, limit] for every
alpha <= 1/2. Proof: let h = delta^a (1 - delta)^b / integral of the prior's density over p > delta; then

    delta (1 - delta) d log E_n / d delta = h (1 - 1 / E_n) - (S_n - n delta),

and h <= b, as the integral minus delta^a (1 - delta)^b / b vanishes at 1 and falls in delta. Where the right side is
not negative, S_n - n delta < 1/2. There E_n, which is at most the largest likelihood ratio, and so at most 1 where
S_n <= n delta and (S_n / (n delta))^S_n elsewhere, is below (S_n / (S_n - 1/2))^S_n <= 2. So E_n falls in delta
wherever it is 2 or more.

Sources: Ville's inequality (1939); mixtures of likelihood ratios go back to Robbins (1970). `stopping` says what
looking early costs, `betting` has limits for bounded variables.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from proofs_check.engine.limits import open_unit

PRIOR = (0.01, 0.5)
_EPS = float(np.finfo(np.float64).eps)
_LOGIT = 700.0
_MOST_STEPS = 100


def log_evidence_above(
    violations: ArrayLike, trials: ArrayLike, delta: ArrayLike
) -> Any:
    """Return log E_n, the evidence that the violation rate exceeds `delta`; it refutes where it reaches log(1 / alpha).

    All three broadcast: one entry a stream, with 0 <= violations <= trials and 0 < delta < 1, or ValueError.
    The error is about 5e-15 times the number of trials, down to delta = 1e-10 and below. Cost: two incomplete beta
    functions an entry. See the module for the process; its source is Ville's inequality.
    """
    count, total, edge = _counts(violations, trials, delta)
    return _log_evidence(count, total - count, edge, 1 - edge)


def log_evidence_below(
    violations: ArrayLike, trials: ArrayLike, delta: ArrayLike
) -> Any:
    """Return the log of the evidence that the rate is below `delta`; it certifies where it reaches log(1 / alpha).

    Arguments, errors and cost are those of `log_evidence_above`.
    """
    count, total, edge = _counts(violations, trials, delta)
    return _log_evidence(total - count, count, 1 - edge, edge)


def binomial_limits(
    violations: ArrayLike, trials: ArrayLike, alpha: float
) -> tuple[Any, Any]:
    """Return (lower, upper) limits of the violation rate that hold at all times at once, each at level `alpha`.

    The probability that a lower limit ever exceeds the rate is at most alpha, and so for the upper one. Shapes are
    those of `violations` and `trials`, broadcast; without trials the limits are (0, 1). `0 < alpha <= 1/2`, or
    ValueError. The largest lower and the smallest upper limit so far hold as well. Cost: some 20 evaluations of the
    evidence.
    """
    _level(alpha)
    count, total, _ = _counts(violations, trials, 0.5)
    lower = special.expit(_logit_limit(count, total - count, alpha))
    upper = special.expit(-_logit_limit(total - count, count, alpha))
    return np.where(count > 0, lower, 0.0)[()], np.where(count < total, upper, 1.0)[()]


def smallest_refuted(trials: ArrayLike, delta: float, alpha: float) -> Any:
    """Return the smallest count of violations that refutes "at most delta", trials + 1 where there is none."""
    return _critical(trials, delta, alpha, log_evidence_above)


def largest_certified(trials: ArrayLike, delta: float, alpha: float) -> Any:
    """Return the largest count of violations that certifies "at most delta", -1 where there is none."""

    def clean(held: ArrayLike, trials: ArrayLike, delta: ArrayLike) -> Any:
        return log_evidence_below(np.asarray(trials) - held, trials, delta)

    return np.asarray(trials) - _critical(trials, delta, alpha, clean)


def _counts(
    violations: ArrayLike, trials: ArrayLike, delta: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    count, total = np.asarray(violations, np.float64), np.asarray(trials, np.float64)
    edge = np.asarray(delta, np.float64)
    if not np.all((count >= 0) & (count <= total)):
        raise ValueError(
            f"violations must lie in [0, trials], got {violations!r} of {trials!r}"
        )
    if not np.all((edge > 0) & (edge < 1)):
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta!r}")
    return count, total, edge


def _level(alpha: float) -> None:
    if not 0 < alpha <= 0.5:
        raise ValueError(f"alpha must lie in (0, 1/2], got {alpha!r}")


def _log_evidence(hits: Any, misses: Any, edge: Any, rest: Any) -> Any:
    """Return log E for hits whose rate is claimed to be at most `edge`; `rest` = 1 - edge, with all its digits."""
    a, b = PRIOR
    shape = np.broadcast_shapes(*map(np.shape, (hits, misses, edge, rest)))
    hits, misses, edge, rest = np.broadcast_arrays(
        *map(np.atleast_1d, (hits, misses, edge, rest))
    )
    share = _upper(a + hits, b + misses, edge, rest)
    log_edge = np.where(edge < 0.5, np.log(edge), np.log1p(-np.minimum(rest, 0.5)))
    log_rest = np.where(rest < 0.5, np.log(rest), np.log1p(-np.minimum(edge, 0.5)))
    far = (
        share < 1e-250
    )  # the posterior lies below the edge: its share above would underflow
    with np.errstate(divide="ignore"):
        near = (
            special.betaln(a + hits, b + misses)
            + np.log(share)
            - hits * log_edge
            - misses * log_rest
        )
    if np.any(far):
        tail = _log_tail(a + hits[far], b + misses[far], rest[far])
        near[far] = a * log_edge[far] + b * log_rest[far] + tail
    return (near - _log_prior_mass(edge, rest)).reshape(shape)[()]


def _log_prior_mass(edge: Any, rest: Any) -> Any:
    """Return the log of the integral of the prior's density, p^(a-1) (1-p)^(b-1), over p > edge."""
    return special.betaln(*PRIOR) + np.log(_upper(*PRIOR, edge, rest))


def _upper(a: Any, b: Any, edge: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return P(Beta(a, b) > edge), from the smaller one of edge and rest."""
    small, found = edge < 0.5, np.empty(edge.shape)
    special.betaincc(a, b, edge, out=found, where=small)
    special.betainc(b, a, rest, out=found, where=~small)
    return found


def _log_tail(a: np.ndarray, b: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return the log of the integral of p^(a-1) (1-p)^(b-1) over p > edge = 1 - rest, over edge^a rest^b.

    The continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method. It is used far in the tail
    alone, where about ten steps are enough.
    """
    value, upper, lower = np.ones_like(a), np.ones_like(a), np.zeros_like(a)
    change, step = np.full_like(a, np.inf), 1
    while np.any(np.abs(change - 1) > 4 * _EPS):
        m, odd = divmod(step, 2)
        top = -(b + m) * (a + b + m) if odd else m * (a - m)
        term = top * rest / ((b + step - 1) * (b + step))
        lower = 1 / (1 + term * lower)
        upper = 1 + term / upper
        change = upper * lower
        value = value * change
        step += 1
    return -np.log(value) - np.log(b)


def _logit_limit(hits: np.ndarray, misses: np.ndarray, alpha: float) -> Any:
    """Return the logit of the largest refuted rate, from below, by Newton's method within halved brackets.

    The derivative is that of the module's proof. The target is above log(1 / alpha) by the rounding of the evidence, so
    that the iterates end where the rate is refuted. Where there is no hit the result says nothing.
    """
    a, b = PRIOR
    hits, misses = np.broadcast_arrays(hits, misses)
    target = -math.log(alpha) + 1e-12 + 4e-15 * (hits + misses)
    above = np.clip(
        np.log(np.maximum(hits, 1e-300)) - np.log(np.maximum(misses, 1e-300)),
        -_LOGIT,
        _LOGIT,
    )
    below = np.full(hits.shape, -_LOGIT)
    x = below
    for _ in range(_MOST_STEPS):
        edge, rest = special.expit(x), special.expit(-x)
        evidence = _log_evidence(hits, misses, edge, rest)
        refuted = evidence >= -math.log(alpha)
        below, above = np.where(refuted, x, below), np.where(refuted, above, x)
        hazard = np.exp(
            a * np.log(edge) + b * np.log(rest) - _log_prior_mass(edge, rest)
        )
        slope = (
            -hazard * np.expm1(-np.maximum(evidence, 0.0)) - hits * rest + misses * edge
        )
        step = (target - evidence) / np.minimum(slope, -1e-300)
        tiny = 1e-12 * (1 + np.abs(x))
        inside = (x + step > below) & (x + step < above) | (np.abs(step) <= tiny)
        new = np.where(inside, x + step, (below + above) / 2)
        if np.all((np.abs(new - x) <= tiny) | (hits == 0)):
            break
        x = new
    return below


def _critical(
    trials: ArrayLike, delta: float, alpha: float, evidence: Callable[..., Any]
) -> Any:
    """Return the smallest count whose evidence reaches 1 / alpha, trials + 1 where there is none; it grows with it."""
    open_unit(delta=delta, alpha=alpha)
    total = np.asarray(trials, np.int64)
    low, high = np.zeros_like(total), total + 1
    while np.any(low < high):
        middle = (low + high) // 2
        reached = (middle > total) | (
            evidence(np.minimum(middle, total), total, delta) >= -math.log(alpha)
        )
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return low[()]
