"""Evidence that may be looked at after every trial: e-processes, limits at any time, and what stopping early costs.

The rule of `limits` needs a number of trials that is fixed before the first one. Here the level holds at
all times at once, so a run may stop as soon as the evidence decides, or go on for as long as one likes.

*The process.* S_n counts violations in n trials. Each trial violates with a probability r_i that may depend on all
trials before it. For a rate p the likelihood ratio against the claimed delta,

    L_n(p) = (p / delta)^S_n ((1 - p) / (1 - delta))^(n - S_n),

gains in expectation, given the past, the factor g(r_i) = r_i p / delta + (1 - r_i) (1 - p) / (1 - delta). It is
affine in r_i and g(delta) = 1. For p > delta its slope is positive, so g(r_i) <= 1 whenever r_i <= delta: L_n(p) is a
supermartingale under *every* course of rates up to delta, and not only at the boundary. A prior on p > delta alone
keeps that (Tonelli), and so

    E_n = integral of L_n(p) prior(p) dp over p > delta,   E_0 = 1,   prior(p) ~ p^(a-1) (1 - p)^(b-1),

is a non-negative supermartingale. A prior that puts mass below delta would not do: there the slope is negative.
Ville's inequality: E_n ever reaches 1 / alpha with probability at most alpha. Exchanging violations with their
absence, and delta with 1 - delta, gives the evidence against "at least delta".

*The prior*, (a, b) = (1/100, 1/2), is close to uniform in log p, so that a rate of 2 delta is found about as fast for
delta = 1e-10 as for delta = 0.1; the b of one side serves the other one, where it is good for rates from 0 to delta.

*Limits.* The lower limit is the largest rate that is refuted. The refuted rates are an interval (0, limit] for every
alpha <= 1/2. Proof: let h = delta^a (1 - delta)^b / integral of the prior's density over p > delta; then

    delta (1 - delta) d log E_n / d delta = h (1 - 1 / E_n) - (S_n - n delta),

and h <= b, as the integral minus delta^a (1 - delta)^b / b vanishes at 1 and falls in delta. Where the right side is
not negative, S_n - n delta < 1/2. There E_n, which is at most the largest likelihood ratio, and so at most 1 where
S_n <= n delta and (S_n / (n delta))^S_n elsewhere, is below (S_n / (S_n - 1/2))^S_n <= 2. So E_n falls in delta
wherever it is 2 or more.

Sources: Ville's inequality (1939); mixtures of likelihood ratios go back to Robbins (1970); limits for bounded
variables after Waudby-Smith and Ramdas (2024), who bet against every candidate of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from proofs_check.engine import limits
from proofs_check.engine.limits import open_unit

PRIOR = (0.01, 0.5)
MOST_BET = 0.5
"""No bet risks more than this part of the capital."""

_EPS = float(np.finfo(np.float64).eps)
_LOGIT = 700.0
_MOST_STEPS = 100


def log_evidence_above(violations: ArrayLike, trials: ArrayLike, delta: ArrayLike) -> Any:
    """Return log E_n, the evidence that the violation rate exceeds `delta`; it refutes where it reaches log(1 / alpha).

    All three broadcast: one entry a stream, with 0 <= violations <= trials and 0 < delta < 1, or ValueError.
    The error is about 5e-15 times the number of trials, down to delta = 1e-10 and below. Cost: two incomplete beta
    functions an entry. See the module for the process; its source is Ville's inequality.
    """
    count, total, edge = _counts(violations, trials, delta)
    return _log_evidence(count, total - count, edge, 1 - edge)


def log_evidence_below(violations: ArrayLike, trials: ArrayLike, delta: ArrayLike) -> Any:
    """Return the log of the evidence that the rate is below `delta`; it certifies where it reaches log(1 / alpha).

    Arguments, errors and cost are those of `log_evidence_above`.
    """
    count, total, edge = _counts(violations, trials, delta)
    return _log_evidence(total - count, count, 1 - edge, edge)


def binomial_limits(violations: ArrayLike, trials: ArrayLike, alpha: float) -> tuple[Any, Any]:
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


@dataclass(frozen=True)
class StoppingLaw:
    """When, and by which verdict, a run ends that stops at the first look that decides.

    Attributes
    ----------
    looks : numbers of trials after which one looks, increasing, shape (k,).
    refuted, certified : probabilities of ending at each look, by each verdict, shape (k,).
    """

    looks: np.ndarray
    refuted: np.ndarray
    certified: np.ndarray

    @property
    def undecided(self) -> float:
        """Return the probability that the last look leaves it open."""
        return max(1.0 - float(self.refuted.sum() + self.certified.sum()), 0.0)

    @property
    def expected_trials(self) -> float:
        """Return the expected number of trials; a run that stays open counts with those of the last look."""
        stopped = self.refuted + self.certified
        return float(stopped @ self.looks) + self.undecided * float(self.looks[-1])

    def quantile(self, level: float) -> float:
        """Return the first look by which the run has ended with probability `level`, inf where there is none."""
        reached = np.flatnonzero(np.cumsum(self.refuted + self.certified) >= level)
        return float(self.looks[reached[0]]) if reached.size else math.inf


def stopping_law(rate: float, delta: float, alpha: float, looks: ArrayLike) -> StoppingLaw:
    """Return the exact law of the end of a run whose trials violate independently with probability `rate`.

    The evidence on either side, each at level `alpha`, is looked at after the numbers of trials `looks`, which are
    positive and increase, or ValueError. Computed by forward recursion over the counts that are still open; steps
    with a probability below 1e-30 are left out. Cost: looks times open counts times violations a step.
    """
    times = np.asarray(looks, np.int64)
    return law_of_ends(rate, times, largest_certified(times, delta, alpha), smallest_refuted(times, delta, alpha))


def law_of_ends(rate: float, looks: ArrayLike, certified: ArrayLike, refuted: ArrayLike) -> StoppingLaw:
    """Return the exact law of the end of a run for critical counts of one's own, one of each a look.

    A run whose trials violate independently with probability `rate` ends, certified, at the first look with at most
    `certified` violations, or, refuted, with at least `refuted`; `certified < refuted`. Errors and cost are those of
    `stopping_law`.
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must lie in [0, 1], got {rate!r}")
    times, lasts, firsts = (np.asarray(values, np.int64) for values in (looks, certified, refuted))
    if times.ndim != 1 or times.size == 0 or times[0] < 1 or np.any(np.diff(times) < 1):
        raise ValueError(f"looks must be positive and increase, got {looks!r}")
    if not times.shape == lasts.shape == firsts.shape or np.any(lasts >= firsts):
        raise ValueError("certified and refuted must have one count a look, certified below refuted")
    mass, offset = np.ones(1), 0  # the probabilities of offset, offset + 1, ... violations, in runs that are open
    ends = np.zeros((2, times.size))
    steps: dict[int, tuple[np.ndarray, int]] = {}
    sizes = np.diff(times, prepend=0)
    for look, (size, last, first) in enumerate(zip(sizes.tolist(), lasts.tolist(), firsts.tolist(), strict=True)):
        if size not in steps:
            law = stats.binom.pmf(np.arange(size + 1), size, rate)
            kept = np.flatnonzero(law > 1e-30)
            steps[size] = law[kept[0] : kept[-1] + 1], int(kept[0])
        step, fewest = steps[size]
        mass, offset = np.convolve(mass, step), offset + fewest
        start = min(max(last + 1 - offset, 0), mass.size)
        stop = max(first - offset, start)
        ends[:, look] = mass[stop:].sum(), mass[:start].sum()
        mass, offset = mass[start:stop], offset + start
        if mass.size == 0:
            break
    return StoppingLaw(times, *ends)


@lru_cache(maxsize=1024)
def trials_needed(
    delta: float, alpha: float, *, beta: float = 0.01, good: float = 0.25, bad: float = 2.0, block: int = 1
) -> int:
    """Return the number of trials by which a run decides, whether a violation probability is at most `delta`.

    As `limits.trials_needed`, for a run that looks after every `block` trials and may stop: by then a true rate of
    `good * delta` has been certified, and one of `min(bad * delta, (1 + delta) / 2)` refuted, each with probability at
    least `1 - beta`. The expected number is `stopping_law(...).expected_trials`, often half of it. Same errors, and
    ValueError where alpha > beta: a run that is ended by the wrong verdict is not decided rightly later.
    """
    if alpha > beta:
        raise ValueError(f"alpha must be at most beta, got alpha={alpha!r} and beta={beta!r}")
    low_rate, high_rate = good * delta, min(bad * delta, (1 + delta) / 2)
    most = 2 * limits.trials_needed(delta, alpha, beta=beta, good=good, bad=bad)
    while True:
        looks = _looks(most, block)
        ends = largest_certified(looks, delta, alpha), smallest_refuted(looks, delta, alpha)
        certified = np.cumsum(law_of_ends(low_rate, looks, *ends).certified)
        refuted = np.cumsum(law_of_ends(high_rate, looks, *ends).refuted)
        decided = (certified >= 1 - beta) & (refuted >= 1 - beta)
        if decided.any():
            return int(looks[np.argmax(decided)])
        most *= 2


@lru_cache(maxsize=4096)
def detectable_rate(trials: int, delta: float, alpha: float, *, power: float = 0.99, block: int | None = None) -> float:
    """Return the smallest violation rate that `trials` trials refute with probability `power`, inf where none is.

    `limits.detectable` is the same for the fixed rule. With `block`, a run that looks after every `block` trials and
    stops, at a cost of about 25 laws (`stopping_law`); the answer is rounded up by at most 1e-4 of itself. Without, an
    upper bound for every way of looking that includes the last trial: what the last look alone refutes with
    probability power + alpha, alpha for the runs that were certified before (so inf where that is 1 or more), by one
    incomplete beta function.
    """
    open_unit(alpha=alpha, power=power)
    count = int(smallest_refuted(trials, delta, alpha))
    within = count <= trials and power + alpha < 1
    bound = float(special.betaincinv(count, trials - count + 1, power + alpha)) if within else math.inf
    if block is None:
        return bound
    looks = _looks(trials, block)
    ends = largest_certified(looks, delta, alpha), smallest_refuted(looks, delta, alpha)

    def refuted(rate: float) -> bool:
        return float(law_of_ends(rate, looks, *ends).refuted.sum()) >= power

    low, high = delta, min(bound, 1.0)
    if not refuted(high):
        return math.inf
    while high > low * (1 + 1e-4):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return high


def empirical_bernstein_limits(
    sample: ArrayLike, alpha: float, *, low: float = 0.0, high: float = 1.0, horizon: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return (lower, upper) limits of the mean of bounded variables after each of them, each at level `alpha`.

    `sample` has shape (..., n), streams of values in [low, high]; the results too. Each value has the mean mu given
    those before it. All limits of a stream hold at once, with probability 1 - alpha on either side, so the best so far
    is returned. `horizon` is the number of values for which to be tightest; by default none is preferred. Cost: O(n).
    Raises ValueError for values that are not in [low, high], and for a horizon below 1.

    Derived from: log(1 + t y) >= t y - f(t) y^2 for y >= -1 and 0 <= t < 1, f(t) = -log(1 - t) - t, since
    (log(1 + z) - z) / z^2 rises in z and z = t y >= -t. With y = x_i - m_i for any guess m_i in [0, 1] made before x_i,
    E exp(t (x_i - mu) - f(t) (x_i - m_i)^2) <= exp(t (m_i - mu)) (1 + t (mu - m_i)) <= 1. So the product over i is a
    supermartingale for all t_i that are chosen before x_i, and Ville's inequality bounds mu from below. The upper limit
    is that of 1 - x. Source: Theorem 2 of Waudby-Smith and Ramdas (2024).
    """
    open_unit(alpha=alpha)
    values = _unit(sample, low, high)

    def lower(x: np.ndarray) -> np.ndarray:
        bets, guesses = _bets(x, alpha, horizon)
        bets = np.minimum(bets, MOST_BET)
        drift = bets * x + (np.log1p(-bets) + bets) * (x - guesses) ** 2
        found = (np.cumsum(drift, -1) + math.log(alpha)) / np.cumsum(bets, -1)
        return np.maximum.accumulate(np.clip(found, 0, 1), -1)

    return low + (high - low) * lower(values), high - (high - low) * lower(1 - values)


def betting_limits(
    sample: ArrayLike, alpha: float, *, low: float = 0.0, high: float = 1.0, horizon: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return (lower, upper) limits of the mean of bounded variables, each at level `alpha`, by betting against means.

    Arguments and errors are those of `empirical_bernstein_limits`; the results have shape (...), the best limits after
    all n values, and those of every shorter stream hold at the same time. They are the tighter ones. Cost: 106 passes.

    The capital prod (1 + t_i (x_i - m)), with t_i chosen before x_i and at most c / m, c < 1, stays positive and is a
    supermartingale where the mean is at most m. Each factor falls in m, also where t_i = c / m, so the means that were
    ever refuted are an interval [0, limit]. Source: section 4 of Waudby-Smith and Ramdas (2024); here the two sides
    are separate, each with its own level.
    """
    open_unit(alpha=alpha)
    values = _unit(sample, low, high)

    def lower(x: np.ndarray) -> np.ndarray:
        bets, _ = _bets(x, alpha, horizon)
        below, above = np.zeros(x.shape[:-1]), np.ones(x.shape[:-1])
        for _ in range(53):
            mean = ((below + above) / 2)[..., None]
            gains = np.log1p(np.minimum(bets, MOST_BET / mean) * (x - mean))
            refuted = np.max(np.cumsum(gains, -1), -1, initial=0.0) >= -math.log(alpha)
            below, above = np.where(refuted, mean[..., 0], below), np.where(refuted, above, mean[..., 0])
        return below

    return low + (high - low) * lower(values), high - (high - low) * lower(1 - values)


def _counts(violations: ArrayLike, trials: ArrayLike, delta: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    count, total = np.asarray(violations, np.float64), np.asarray(trials, np.float64)
    edge = np.asarray(delta, np.float64)
    if not np.all((count >= 0) & (count <= total)):
        raise ValueError(f"violations must lie in [0, trials], got {violations!r} of {trials!r}")
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
    hits, misses, edge, rest = np.broadcast_arrays(*map(np.atleast_1d, (hits, misses, edge, rest)))
    share = _upper(a + hits, b + misses, edge, rest)
    log_edge = np.where(edge < 0.5, np.log(edge), np.log1p(-np.minimum(rest, 0.5)))
    log_rest = np.where(rest < 0.5, np.log(rest), np.log1p(-np.minimum(edge, 0.5)))
    far = share < 1e-250  # the posterior lies below the edge: its share above would underflow
    with np.errstate(divide="ignore"):
        near = special.betaln(a + hits, b + misses) + np.log(share) - hits * log_edge - misses * log_rest
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
    above = np.clip(np.log(np.maximum(hits, 1e-300)) - np.log(np.maximum(misses, 1e-300)), -_LOGIT, _LOGIT)
    below = np.full(hits.shape, -_LOGIT)
    x = below
    for _ in range(_MOST_STEPS):
        edge, rest = special.expit(x), special.expit(-x)
        evidence = _log_evidence(hits, misses, edge, rest)
        refuted = evidence >= -math.log(alpha)
        below, above = np.where(refuted, x, below), np.where(refuted, above, x)
        hazard = np.exp(a * np.log(edge) + b * np.log(rest) - _log_prior_mass(edge, rest))
        slope = -hazard * np.expm1(-np.maximum(evidence, 0.0)) - hits * rest + misses * edge
        step = (target - evidence) / np.minimum(slope, -1e-300)
        tiny = 1e-12 * (1 + np.abs(x))
        inside = (x + step > below) & (x + step < above) | (np.abs(step) <= tiny)
        new = np.where(inside, x + step, (below + above) / 2)
        if np.all((np.abs(new - x) <= tiny) | (hits == 0)):
            break
        x = new
    return below


def _critical(trials: ArrayLike, delta: float, alpha: float, evidence: Callable[..., Any]) -> Any:
    """Return the smallest count whose evidence reaches 1 / alpha, trials + 1 where there is none; it grows with it."""
    open_unit(delta=delta, alpha=alpha)
    total = np.asarray(trials, np.int64)
    low, high = np.zeros_like(total), total + 1
    while np.any(low < high):
        middle = (low + high) // 2
        reached = (middle > total) | (evidence(np.minimum(middle, total), total, delta) >= -math.log(alpha))
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return low[()]


def _looks(trials: int, block: int) -> np.ndarray:
    if block < 1 or trials < 1:
        raise ValueError(f"trials and block must be positive, got trials={trials}, block={block}")
    return np.append(np.arange(block, trials, block), trials)


def _unit(sample: ArrayLike, low: float, high: float) -> np.ndarray:
    values = np.asarray(sample, np.float64)
    if not low < high:
        raise ValueError(f"low must be below high, got [{low!r}, {high!r}]")
    if values.ndim < 1 or values.shape[-1] < 1 or not np.all((values >= low) & (values <= high)):
        raise ValueError(f"sample must hold at least one value a stream, all in [{low:g}, {high:g}]")
    return (values - low) / (high - low)


def _bets(x: np.ndarray, alpha: float, horizon: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return (bets, guesses) of each value, both from the values before it alone, shape (..., n).

    The guess is the mean so far, with one more value of 1/2; the bet is what would be best for n values of
    the variance so far, n the horizon or else t log(1 + t) at time t.
    """
    if horizon is not None and horizon < 1:
        raise ValueError(f"horizon must be at least 1, got {horizon}")
    time = np.arange(1, x.shape[-1] + 1)
    mean = (0.5 + np.cumsum(x, -1)) / (time + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2, -1)) / (time + 1)

    def before(values: np.ndarray, first: float) -> np.ndarray:
        return np.concatenate([np.full((*x.shape[:-1], 1), first), values[..., :-1]], -1)

    span = time * np.log1p(time) if horizon is None else horizon
    return np.sqrt(-2 * math.log(alpha) / (before(variance, 0.25) * span)), before(mean, 0.5)
