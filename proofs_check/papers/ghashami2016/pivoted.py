"""Randomly pivoted Cholesky (not of the paper): Theorem J, against the exact law of what so many columns leave."""

import collections
import math

import numpy as np

from jaxkern import plan
from jaxkern.bounds import Bound, streaming
from proofs_check.claim import Check, Control, Form, Inequality, Setting
from proofs_check.papers.ghashami2016 import clouds
from proofs_check.papers.shared import lines, parametrized

Law = list[tuple[np.ndarray, np.ndarray]]
"""For 1, 2, ... columns the probabilities of all outcomes, and the trace that each leaves."""

POINTS = 1000


def _by_sets(A: np.ndarray, uniform: bool) -> Law:
    """Return the law for any matrix, by all sets of columns; the order in which a set was drawn does not matter."""
    law: Law = []
    left, odds = {0: A}, {0: 1.0}
    for _ in range(len(A)):
        then: dict[int, float] = collections.defaultdict(float)
        for chosen, p in odds.items():
            R, diagonal = left[chosen], np.diagonal(left[chosen])
            some = diagonal > 1e-13 * np.trace(A)
            each = (
                some / max(some.sum(), 1)
                if uniform
                else diagonal / diagonal[some].sum()
                if some.any()
                else some
            )
            for i in np.flatnonzero(some):
                then[chosen | 1 << int(i)] += p * each[i]
                left.setdefault(
                    chosen | 1 << int(i), R - np.outer(R[i], R[i]) / R[i, i]
                )
            if not some.any():
                then[chosen] += p
        odds = dict(then)
        law.append(
            (
                np.array(list(odds.values())),
                np.array([np.trace(left[chosen]) for chosen in odds]),
            )
        )
    return law


def _truth(setting: Setting, uniform: bool) -> tuple[Law, np.ndarray]:
    """Return the law of the traces that are left and the eigenvalues, both relative to the trace."""
    if setting.data:
        A = np.asarray(setting.data["matrix"], float)
        law, values = _by_sets(A, uniform), np.maximum(np.linalg.eigvalsh(A)[::-1], 0)
    else:  # I + 1 1', of which columns of one number all leave the same
        law = [
            (np.ones(1), np.array([(POINTS - c) * (1 + 1 / (1 + c))]))
            for c in range(1, POINTS)
        ]
        values = np.append(1.0 + POINTS, np.ones(POINTS - 1))
    return [(p, left / values.sum()) for p, left in law], values / values.sum()


@parametrized(Inequality)
def _holds(
    setting: Setting,
    uniform: bool = False,
    times: float = 1,
    share: float = 1,
    log: float = 1,
) -> list[tuple[float, Bound]]:
    """Plans of the library and the closed form; `share` and `log` are what is taken of its two terms."""
    law, values = _truth(setting, uniform)
    tails = np.append(np.cumsum(values[::-1])[::-1], 0.0)
    pairs = []

    def after(size: int | None) -> tuple[np.ndarray, np.ndarray]:
        return [*law, (np.ones(1), np.zeros(1))][min(size or 1, len(law) + 1) - 1]

    def mean(size: int | None) -> float:
        return float(np.dot(*after(size)))

    for eps in (
        1 - float(values @ values),
        0.5,
        0.2,
        0.05,
    ):  # the first is what one column leaves in the mean
        pairs.append(
            (
                times
                * mean(
                    plan.pivoted_cholesky(eps + 1e-9, eigenvalues=values).num_landmarks
                ),
                eps,
            )
        )
        p, left = after(
            plan.pivoted_cholesky(eps, 0.5, eigenvalues=values).num_landmarks
        )
        pairs.append((float(p @ (left > eps)), 0.5))
    for rank in (1, 2, 3):
        for eps in (2.0, 0.5, 0.1):
            terms = np.array([rank / eps, -rank * math.log(eps * tails[rank])])
            size = math.ceil(max(float(terms @ [share, log]), 1))
            asked = max(size + float(terms @ [1 - share, 1 - log]) + 1e-9, 1)
            bound = streaming.pivoted_cholesky_mean(
                eps=eps, rank=rank, tail=tails[rank], num_landmarks=asked
            )
            assert bound.valid
            pairs.append((mean(size) / bound.value, 1.0))
            for known in (rank, len(values)) if eps < 1 else ():
                trace = None if known == len(values) else 1.0
                found = plan.pivoted_cholesky(
                    eps, eigenvalues=values[:known], trace=trace, rank=rank
                )
                pairs.append((mean(found.num_landmarks) / bound.value, 1.0))
    return lines(pairs, "jaxkern, Theorem J of ghashami2016")


def _pivoted_cholesky() -> Check:
    w = np.sqrt(np.arange(1.0, 9.0))
    settings = (
        *(
            Setting(f"{s.name}, weights", {"matrix": w[:, None] * s.data["gram"] * w})
            for s in clouds.small_grams()
        ),
        Setting(f"{POINTS} points that share something"),
    )
    return Check(
        corrected=Form(_holds(), settings),
        controls=(
            Control("5 % less", _holds(times=1.05), settings, "wrong factor"),
            Control("uniform columns", _holds(uniform=True), settings, "wrong law"),
            Control("half of r / eps", _holds(share=0.5), settings, "wrong factor"),
            Control("the logarithm left out", _holds(log=0), settings, "term left out"),
        ),
    )
