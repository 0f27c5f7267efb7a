"""ghashami2016, Section 4: what the experiments say of Nystrom; Theorem I, and Theorem J on pivoted Cholesky."""

import math
from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np

from jaxkern import plan
from jaxkern.bounds import Bound, streaming
from proofs_check.claim import Check, Control, Expectation, Form, Inequality, Setting
from proofs_check.papers.ghashami2016 import clouds, trials
from proofs_check.papers.ghashami2016.setup import Function
from proofs_check.papers.shared import always, check_of, valid, wrong

Pairs = list[tuple[float, Bound]]
Law = list[tuple[np.ndarray, np.ndarray]]
"""For 1, 2, ... columns the probabilities of all outcomes, and the trace that each leaves."""

POINTS = 1000


def _harmonic(first: int, last: int) -> float:
    return sum(1 / i for i in range(first, last + 1))


def reservoir() -> Check:
    c = 8
    n = 64
    # Row i enters with probability c / i, independently of the others.
    chances = [c / i for i in range(c, n + 1)]
    variance = sum(p * (1 - p) for p in chances)
    exact = c * (1 + _harmonic(c + 1, n))
    counts = partial(
        Expectation,
        trials.reservoir_updates,
        scale=lambda setting: exact,
        moment=lambda setting: variance,
    )
    one_more = c * (1 + _harmonic(c, n))
    logarithm = counts(target=lambda setting: c * math.log(n))
    from_c = counts(target=lambda setting: one_more)
    settings = (Setting(f"c={c}, n={n}", shapes={"size": c, "length": n}),)
    return Check(
        corrected=Form(counts(target=lambda setting: exact), settings),
        controls=(
            Control("c log n as a number", logarithm, settings, "term left out"),
            Control("H with c - 1 for c", from_c, settings, "n for n - 1"),
        ),
    )


def _first_points(G: np.ndarray) -> list[float]:
    """Return the squared errors of Nystrom with the first 1, 2, ... points as landmarks."""
    return [trials.landmark_loss(G, range(c)) for c in range(1, len(G) + 1)]


def _over_features(data: Any, losses: Function = trials.nystrom_mean_squares) -> Pairs:
    """Compare Nystrom's mean squares, over those of RNCA at the same size, with 1."""
    G = data["gram"]
    right = always(1.0, "jaxkern, Theorem I of ghashami2016")
    pairs = []
    for c, loss in enumerate(losses(G), 1):
        pairs.append((loss / trials.features_mean_square(G, data["doubled"], c), right))
    return pairs


def _with_mean_square(
    data: Any, losses: Function = trials.nystrom_mean_squares
) -> Pairs:
    """Compare Nystrom's mean squares, over n^2, with the bound."""
    G = data["gram"]
    energy = G.size
    mean_square = float(np.sum(G**2)) / energy
    bound = partial(streaming.nystrom_frobenius_mean, mean_square=mean_square)
    return [
        (loss / energy, bound(num_landmarks=c)) for c, loss in enumerate(losses(G), 1)
    ]


def _for_small_grams(sides: Function) -> Check:
    name = "the first points as landmarks"
    first = wrong(name, "wrong law", losses=_first_points)
    return check_of(Inequality, clouds.small_grams(), first, corrected=sides)


def crossover_frobenius() -> Check:
    return _for_small_grams(_over_features)


def nystrom_frobenius_mean() -> Check:
    return _for_small_grams(_with_mean_square)


def _by_diagonal(diagonal: np.ndarray, positive: np.ndarray) -> np.ndarray:
    return np.where(positive, diagonal, 0) / np.sum(diagonal[positive])


def _uniformly(diagonal: np.ndarray, positive: np.ndarray) -> np.ndarray:
    return positive / np.sum(positive)


def _law_of_columns(A: np.ndarray, chances: Function) -> Law:
    """Return the law for any matrix, by all sets of columns; the order in which a set was drawn does not matter."""
    law: Law = []
    residuals = {frozenset[int](): A}
    odds = dict.fromkeys(residuals, 1.0)
    for _ in A:
        next_odds: dict[frozenset[int], float] = defaultdict(float)
        for columns, p in odds.items():
            R = residuals[columns]
            diagonal = np.diagonal(R)
            positive = diagonal > 1e-13 * np.trace(A)
            if not positive.any():
                next_odds[columns] += p
                continue
            share = chances(diagonal, positive)
            for i in np.flatnonzero(positive):
                more = columns | {int(i)}
                next_odds[more] += p * share[i]
                residuals.setdefault(more, R - np.outer(R[i], R[i]) / R[i, i])
        odds = next_odds
        traces = [np.trace(residuals[columns]) for columns in odds]
        law.append((np.array([*odds.values()]), np.array(traces)))
    return law


def _law_and_spectrum(data: Any, chances: Function) -> tuple[Law, np.ndarray]:
    """Return the law of the traces that are left and the eigenvalues, both relative to the trace.

    Without a matrix it is I + 1 1', of which all sets of c columns leave the same.
    """
    if data:
        A = np.asarray(data["matrix"], float)
        law = _law_of_columns(A, chances)
        values = np.maximum(np.linalg.eigvalsh(A)[::-1], 0)
    else:
        sure = np.ones(1)
        counts = range(1, POINTS)
        law = [(sure, (POINTS - c) * (1 + sure / (1 + c))) for c in counts]
        values = np.append(1.0 + POINTS, np.ones(POINTS - 1))
    trace = values.sum()
    return [(p, traces / trace) for p, traces in law], values / trace


def _at(outcomes: list[Any], size: int | None) -> Any:
    """Return what so many columns leave: at least one, and at most all."""
    return outcomes[min(size or 1, len(outcomes)) - 1]


def _traces(
    setting: Setting,
    chances: Function = _by_diagonal,
    times: float = 1,
    share: float = 1,
    log: float = 1,
) -> Pairs:
    """Compare what is left at the sizes of the library's plans, and at those of the closed form, with what is claimed.

    `share` and `log` are what is taken of the two terms of the closed form.
    """
    law, values = _law_and_spectrum(setting.data, chances)
    law.append((np.ones(1), np.zeros(1)))
    means = [float(p @ traces) for p, traces in law]
    tails = np.append(np.cumsum(values[::-1])[::-1], 0.0)
    planned = partial(plan.pivoted_cholesky, eigenvalues=values)
    right = partial(always, source="jaxkern, Theorem J of ghashami2016")
    pairs = []
    # The first is what one column leaves in the mean.
    for eps in (1 - float(values @ values), 0.5, 0.2, 0.05):
        mean = _at(means, planned(eps + 1e-9).num_landmarks)
        p, traces = _at(law, planned(eps, 0.5).num_landmarks)
        pairs.append((times * mean, right(eps)))
        pairs.append((float(p @ (traces > eps)), right(0.5)))
    for rank in (1, 2, 3):
        tail = tails[rank]
        for eps in (2.0, 0.5, 0.1):
            first = rank / eps
            second = -rank * math.log(eps * tail)
            size = math.ceil(max(share * first + log * second, 1))
            rest = (1 - share) * first + (1 - log) * second
            bound = streaming.pivoted_cholesky_mean(
                eps=eps, rank=rank, tail=tail, num_landmarks=max(size + rest + 1e-9, 1)
            )
            sizes: list[int | None] = [size]
            if eps < 1:
                leading = planned(eps, eigenvalues=values[:rank], trace=1.0, rank=rank)
                every_value = planned(eps, rank=rank)
                sizes += [leading.num_landmarks, every_value.num_landmarks]
            most = valid(bound, setting).value
            pairs += [(_at(means, size) / most, right(1.0)) for size in sizes]
    return pairs


def pivoted_cholesky() -> Check:
    weights = np.sqrt(np.arange(1.0, 9.0))
    settings = []
    for setting in clouds.small_grams():
        matrix = weights[:, None] * setting.data["gram"] * weights
        settings.append(Setting(f"{setting.name}, weights", {"matrix": matrix}))
    settings.append(Setting(f"{POINTS} points that share something"))
    return check_of(
        Inequality,
        settings,
        wrong("5 % less", "wrong factor", times=1.05),
        wrong("uniform columns", "wrong law", chances=_uniformly),
        wrong("half of r / eps", "wrong factor", share=0.5),
        wrong("the logarithm left out", "term left out", log=0),
        corrected=_traces,
    )
