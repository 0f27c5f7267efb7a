"""Where the statements of ghashami2016 are tried: clouds of points, failure probabilities, and sizes to match."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from scipy import optimize

from jaxkern.bounds import Bound
from proofs_check import controls
from proofs_check.claim import Control, Setting, Statement
from proofs_check.papers import shared
from proofs_check.papers.ghashami2016 import clouds
from proofs_check.papers.ghashami2016.clouds import Cloud, Settings

SHIFTED = {"size": 256, "paired": 0}
PAIRED = {"size": 128, "paired": 1}
OfSetting = Callable[[Setting], Bound]
Formula = Callable[..., Bound]
Function = Callable[..., Any]


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
        self, shapes: Mapping[str, int], bound: OfSetting | None = None
    ) -> Settings:
        """Return settings whose eps is the error at which the bound fails with probability delta.

        Theorem A needs no bound: its error depends on tau = log(1 / delta) and not on eps.
        """
        settings = []
        for cloud in self.clouds:
            for delta in self.deltas:
                label = f"{'t' if shapes['paired'] else 'm'}={shapes['size']}, delta={delta:g}"
                numbers = {"eps": 0.0, "tau": math.log(1 / delta), "scale": 1}
                setting = cloud.setting(label, numbers, shapes)
                if bound is not None:
                    eps = at_failure(bound, setting, "eps", -numbers["tau"])
                    numbers["eps"] = eps
                    label += f", eps={eps:.3g}"
                    setting = cloud.setting(label, numbers, shapes)
                settings.append(setting)
        return tuple(settings)

    def sized(
        self, bound: OfSetting, cloud: Cloud, eps: float, sizes: Mapping[str, int]
    ) -> Settings:
        """Return settings of a stream with as many features m as make the bound fail with probability delta at eps."""
        settings = []
        for delta in self.deltas:
            numbers = {"eps": eps, "delta": delta, "seen": float(cloud.num_points)}
            unsized = cloud.setting("", numbers, sizes)
            m = math.ceil(at_failure(bound, unsized, "size", math.log(delta)))
            label = f"l={sizes['rows']}, m={m}, delta={delta:g}"
            settings.append(cloud.setting(label, numbers, {"size": m, **sizes}))
        return tuple(settings)


def at_failure(
    bound: OfSetting, setting: Setting, unknown: str, log_failure: float
) -> float:
    """Return the number `unknown` of a setting at which a bound fails with this log-probability."""

    def excess(value: float) -> float:
        numbers = {**setting.numbers, unknown: value}
        return bound(replace(setting, numbers=numbers)).log_failure - log_failure

    # Errors are above 1e-6, and sizes below 1e6.
    return float(optimize.brentq(excess, 1e-6, 1e6, xtol=1e-15))


def badly_scaled(
    statement: Statement, settings: Sequence[Setting], size: float
) -> tuple[Control, ...]:
    """Return controls with sqrt(1 / m) for sqrt(2 / m), that is with half of Z Z', and without 1 / sqrt(m), m = `size`.

    The trial multiplies Z Z' by `numbers["scale"]`.
    """
    halved = controls.changed(settings, "halved", numbers={"scale": 0.5})
    unscaled = controls.changed(settings, "not divided", numbers={"scale": size})
    without_root = "features without the root of two"
    without_size = "features without 1/sqrt(m)"
    return (
        Control(without_root, statement, halved, "wrong factor"),
        Control(without_size, statement, unscaled, "missing normalisation"),
    )
