"""Randomly pivoted Cholesky (ours to check): Theorem J, against the exact law of what so many columns leave."""

import collections
import math
from typing import Any

import numpy as np

from jaxkern import plan
from jaxkern.bounds import Bound, streaming
from proofs_check.claim import Check, Control, Form, Inequality, Setting
from proofs_check.papers.ghashami2016 import clouds
from proofs_check.papers.shared import lines, parametrized

Law = list[tuple[np.ndarray, np.ndarray]]
"""For 1, 2, ... columns the probabilities of all outcomes, and the trace that each leaves."""

SOURCE = "jaxkern, Theorem J of ghashami2016"
BLOCKS = ((1, 1000, 1.0), (2, 20, 1e4), (3, 8, 30.0))  # how many, of how many points each, and what these share


def _by_sets(A: np.ndarray, uniform: bool) -> Law:
    """Return the law for any matrix, by all sets of columns; the order in which a set was drawn does not matter."""
    law: Law = []
    left, odds = {0: A}, {0: 1.0}
    for _ in range(len(A)):
        then: dict[int, float] = collections.defaultdict(float)
        for chosen, p in odds.items():
            R, diagonal = left[chosen], np.diagonal(left[chosen])
            some = diagonal > 1e-13 * np.trace(A)
            for i in np.flatnonzero(some):
                then[chosen | 1 << int(i)] += p * (1 / some.sum() if uniform else diagonal[i] / diagonal[some].sum())
                left.setdefault(chosen | 1 << int(i), R - np.outer(R[i], R[i]) / R[i, i])
            if not some.any():
                then[chosen] += p
        odds = dict(then)
        law.append((np.array(list(odds.values())), np.array([np.trace(left[chosen]) for chosen in odds])))
    return law


def _by_counts(blocks: int, copies: int, shared: float, uniform: bool) -> Law:
    """Return the law for blocks of I + shared 1 1', by how many columns were drawn of each block."""
    law: Law = []
    odds = {(0,) * blocks: 1.0}
    for _ in range(blocks * copies - 1):
        then: dict[Any, float] = collections.defaultdict(float)
        for counts, p in odds.items():
            free = copies - np.array(counts)
            each = free * (1.0 if uniform else 1 + shared / (1 + shared * np.array(counts)))
            for i in np.flatnonzero(free):
                then[tuple(sorted((*counts[:i], counts[i] + 1, *counts[i + 1 :])))] += p * each[i] / each.sum()
        odds = dict(then)
        at = np.array(list(odds))
        law.append((np.array(list(odds.values())), ((copies - at) * (1 + shared / (1 + shared * at))).sum(axis=1)))
    return law


def _truth(setting: Setting, uniform: bool = False) -> tuple[Law, np.ndarray]:
    """Return the law of the traces that are left, relative to the whole, and the eigenvalues, in the same unit."""
    if "matrix" in setting.data:
        A = np.asarray(setting.data["matrix"], float)
        law, values = _by_sets(A, uniform), np.maximum(np.linalg.eigvalsh(A)[::-1], 0)
    else:
        blocks, copies = setting.shapes["blocks"], setting.shapes["copies"]
        shared = setting.numbers["shared"]
        law = _by_counts(blocks, copies, shared, uniform)
        values = np.repeat([1 + shared * copies, 1.0], [blocks, blocks * (copies - 1)])
    return [(p, left / values.sum()) for p, left in law], values / values.sum()


@parametrized(Inequality)
def _holds(
    setting: Setting, uniform: bool = False, more: float = 1, columns: float = 1, log: float = 1
) -> list[tuple[float, Bound]]:
    """Plans of the library and the closed form: `more` is what the mean is multiplied by, the others change sizes."""
    law, values = _truth(setting, uniform)
    means = np.array([p @ left for p, left in law] + [0.0])
    tails = np.append(np.cumsum(values[::-1])[::-1], 0.0)
    pairs = []

    def mean(size: float) -> float:
        return float(means[min(math.ceil(max(size, 1)), len(means)) - 1])

    for eps in (1 - float(values @ values), 0.5, 0.2, 0.05):  # the first is what one column leaves in the mean
        pairs.append((more * mean(plan.pivoted_cholesky(eps + 1e-9, eigenvalues=values).num_landmarks or 0), eps))
        for delta in (0.5, 0.1):
            size = plan.pivoted_cholesky(eps, delta, eigenvalues=values).num_landmarks or 0
            if size <= len(law):
                p, left = law[size - 1]
                pairs.append((float(p @ (left > eps)), delta))
    for rank in (1, 2, 3):
        for eps in (2.0, 0.5, 0.1):
            words = {"eps": eps, "rank": rank, "tail": tails[rank]}
            least = columns * rank / eps - log * rank * math.log(eps * tails[rank])
            missing = (1 - columns) * rank / eps - (1 - log) * rank * math.log(eps * tails[rank])
            asked = max(math.ceil(max(least, 1)) + missing + 1e-9, 1)
            bound = streaming.pivoted_cholesky_mean(**words, num_landmarks=asked)
            assert bound.valid
            pairs.append((mean(least) / bound.value, 1.0))
            if eps < 1:
                for known in (rank, rank + 1, len(values)):
                    trace = None if known == len(values) else 1.0
                    found = plan.pivoted_cholesky(eps, eigenvalues=values[:known], trace=trace, rank=rank)
                    pairs.append((mean(found.num_landmarks or 0) / bound.value, 1.0))
    return lines(pairs, SOURCE)


def _pivoted_cholesky() -> Check:
    w = np.sqrt(np.arange(1.0, 9.0))
    grams = tuple(
        Setting(f"{s.name}, weights", {"matrix": w[:, None] * s.data["gram"] * w}) for s in clouds.small_grams()
    )
    blocks = tuple(
        Setting(f"{r} blocks of {m}, {a:g} shared", {}, {"shared": a}, {"blocks": r, "copies": m}) for r, m, a in BLOCKS
    )
    settings = grams + blocks
    return Check(
        corrected=Form(_holds(), settings),
        controls=(
            Control("5 % less", _holds(more=1.05), settings, "wrong factor"),
            Control("uniform columns", _holds(uniform=True), settings, "wrong law"),
            Control("half of r / eps", _holds(columns=0.5), settings, "wrong factor"),
            Control("the logarithm left out", _holds(log=0), settings, "term left out"),
        ),
    )
