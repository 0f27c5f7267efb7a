"""Where the statements of ghashami2016 are tried: clouds of points, failure probabilities, and sizes to match."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from proofs_check import controls
from proofs_check.claim import Control, Setting, Statement
from proofs_check.papers import shared
from proofs_check.papers.ghashami2016 import clouds
from proofs_check.papers.ghashami2016.clouds import Cloud

SHIFTED, PAIRED = {"size": 256, "paired": 0}, {"size": 128, "paired": 1}


@dataclass(frozen=True, eq=False)
class Inputs(shared.Inputs):
    """Clouds of points, streams of them, and failure probabilities.

    On a user's table, what is said of all Gram matrices and all streams of features is tried on its rows; the
    counterexamples, and what is about a number rather than about points, stay as they are.
    """

    @property
    def deltas(self) -> tuple[float, ...]:
        """Failure probabilities."""
        return (0.05, 0.02) if self.full else (0.05,)

    @cached_property
    def clouds(self) -> tuple[Cloud, ...]:
        """32 points of each kind."""
        return clouds.clouds(self.data)

    @cached_property
    def streams(self) -> tuple[Cloud, ...]:
        """96 points of each kind, in the order in which a stream brings them."""
        return clouds.clouds(self.data, 96)

    @cached_property
    def stream(self) -> Cloud:
        """Two clusters of 32 points, or the user's own."""
        return clouds.clusters(32, 32) if self.data is None else clouds.own(self.data)

    def features(
        self,
        shapes: dict[str, int],
        p: float,
        q: float,
        log: Callable[[float, int], float],
    ) -> tuple[Setting, ...]:
        """Return settings with the eps at which eps^2 size = (p + q eps) log(delta, n): the bound fails with delta.

        Theorem A, whose error depends on tau = log(1 / delta) and not on eps, takes p = q = 0.
        """
        size, settings = shapes["size"], []
        for cloud in self.clouds:
            for delta in self.deltas:
                L = log(delta, cloud.num_points)
                eps = (q * L + math.sqrt((q * L) ** 2 + 4 * size * p * L)) / (2 * size)
                label = f"{'t' if shapes['paired'] else 'm'}={size}, delta={delta:g}"
                numbers = {"eps": eps, "tau": math.log(1 / delta), "scale": 1}
                settings.append(
                    cloud.setting(
                        label + (f", eps={eps:.3g}" if eps else ""), numbers, shapes
                    )
                )
        return tuple(settings)


def all_points(delta: float, n: int) -> float:
    """Return log(2 n / delta), that of a bound for all of n points."""
    return math.log(2 * n / delta)


def two_sided(delta: float, n: int) -> float:
    """Return log(2 / delta), that of a bound for one direction."""
    return math.log(2 / delta)


def badly_scaled(
    statement: Statement, settings: Sequence[Setting], size: float
) -> tuple[Control, ...]:
    """Return controls with sqrt(1 / m) for sqrt(2 / m), that is with half of Z Z', and without 1 / sqrt(m), m = `size`.

    The trial multiplies Z Z' by `numbers["scale"]`.
    """
    halved = controls.changed(settings, "halved", numbers={"scale": 0.5})
    unscaled = controls.changed(settings, "not divided", numbers={"scale": size})
    return (
        Control("features without the root of two", statement, halved, "wrong factor"),
        Control(
            "features without 1/sqrt(m)", statement, unscaled, "missing normalisation"
        ),
    )


def enough_features(
    eps: float, delta: float, num_points: int, p: float, q: float
) -> int:
    """Return m = (p + q eps) log(2 n / delta) / eps^2, rounded up: 9 and 8 as printed in Lemma 3.1."""
    return math.ceil((p + q * eps) * math.log(2 * num_points / delta) / eps**2)
