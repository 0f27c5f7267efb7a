"""ghashami2016, Section 4: what the experiments say of Nystrom, and Theorem I."""

import math
from collections.abc import Callable

import numpy as np

from jaxkern.bounds import Bound, streaming
from proofs_check.claim import Check, Control, Expectation, Form, Inequality, Setting
from proofs_check.papers.ghashami2016 import clouds, trials
from proofs_check.papers.shared import lines, parametrized


def _reservoir() -> Check:
    c, n = 8, 64
    variance = sum(c / i * (1 - c / i) for i in range(c, n + 1))

    def exact(setting: Setting) -> float:
        return c * (1 + sum(1 / i for i in range(c + 1, n + 1)))

    def holds(target: Callable[[Setting], float]) -> Expectation:
        """Row i enters with probability c / i, independently of the others: the variance is sum c / i (1 - c / i)."""
        return Expectation(
            trials.reservoir_updates, target, exact, moment=lambda setting: variance
        )

    settings = (Setting(f"c={c}, n={n}", shapes={"size": c, "length": n}),)
    logarithm = holds(lambda setting: c * math.log(n))
    from_c = holds(lambda setting: c * (1 + sum(1 / i for i in range(c, n + 1))))
    return Check(
        corrected=Form(holds(exact), settings),
        controls=(
            Control("c log n as a number", logarithm, settings, "term left out"),
            Control("H with c - 1 for c", from_c, settings, "n for n - 1"),
        ),
    )


def _losses(G: np.ndarray, first: bool) -> list[float]:
    """Return the mean squared errors of Nystrom with 1, 2, ... landmarks or, `first`, those of the first points."""
    if first:
        return [trials.landmark_loss(G, range(c)) for c in range(1, len(G) + 1)]
    return trials.nystrom_mean_squares(G)


def _crossover_frobenius() -> Check:
    def ratios(setting: Setting, first: bool = False) -> list[float]:
        """Return Nystrom's mean squares over those of RNCA at the same size."""
        G, doubled = setting.data["gram"], setting.data["doubled"]
        return [
            loss / trials.features_mean_square(G, doubled, c)
            for c, loss in enumerate(_losses(G, first), 1)
        ]

    @parametrized(Inequality)
    def everywhere(setting: Setting, first: bool) -> list[tuple[float, Bound]]:
        return lines(
            [(ratio, 1.0) for ratio in ratios(setting, first)],
            "jaxkern, Theorem I of ghashami2016",
        )

    settings = clouds.small_grams()
    return Check(
        corrected=Form(everywhere(first=False), settings),
        controls=(
            Control(
                "the first points as landmarks",
                everywhere(first=True),
                settings,
                "wrong law",
            ),
        ),
    )


def _nystrom_mean() -> Check:
    @parametrized(Inequality)
    def holds(setting: Setting, first: bool) -> list[tuple[float, Bound]]:
        G, n = setting.data["gram"], len(setting.data["gram"])
        mean_square = float(np.sum(G**2)) / n**2
        return [
            (
                loss / n**2,
                streaming.nystrom_frobenius_mean(
                    mean_square=mean_square, num_landmarks=c
                ),
            )
            for c, loss in enumerate(_losses(G, first), 1)
        ]

    settings = clouds.small_grams()
    return Check(
        corrected=Form(holds(first=False), settings),
        controls=(
            Control(
                "the first points as landmarks",
                holds(first=True),
                settings,
                "wrong law",
            ),
        ),
    )
