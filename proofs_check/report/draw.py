"""Drawings of the reports and of the atlas, as SVG text.

`tag`, `svg` and `Axis` are what they are made of. Equal data give equal text: there are no dates and no random ids, and
coordinates are rounded to a tenth of a unit. The style sheets of the pages colour the classes, in the light and in the
dark scheme.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from proofs_check.report.text import escaped

_MOST_TICKS = 7


def tag(name: str, *inside: str, **attributes: object) -> str:
    """Return an element; `inside` is XML, attributes are values, and `kind` is the class."""
    values = {
        {"kind": "class"}.get(key, key.replace("_", "-")): value
        for key, value in attributes.items()
    }
    shown = "".join(
        f' {key}="{f"{value:.1f}" if isinstance(value, float) else escaped(value)}"'
        for key, value in values.items()
    )
    return (
        f"<{name}{shown}>{''.join(inside)}</{name}>" if inside else f"<{name}{shown}/>"
    )


def tip_of(text: str) -> tuple[str, ...]:
    """Return what a pointer that rests on an element is told."""
    return (tag("title", escaped(text)),) if text else ()


def text_at(
    text: object, x: float | str, y: float, anchor: str = "", **attributes: object
) -> str:
    """Return text at a place; `anchor` is "middle" or "end" where the place is not its beginning."""
    return tag(
        "text",
        escaped(text),
        **attributes,
        x=x,
        y=y,
        **({"text_anchor": anchor} if anchor else {}),
    )


def svg(
    ident: str,
    title: str,
    description: str,
    kind: str,
    parts: Sequence[str],
    **size: object,
) -> Markup:
    """Return a drawing with the title and the description that screen readers get; ids begin with `ident`."""
    head = tag("title", escaped(title), id=f"{ident}-t") + tag(
        "desc", escaped(description), id=f"{ident}-d"
    )
    attributes = {
        "role": "img",
        **size,
        "aria_labelledby": f"{ident}-t {ident}-d",
    }
    return Markup(tag("svg", head, *parts, kind=kind, **attributes))


@dataclass(frozen=True)
class Axis:
    """A log axis: `ticks` are logs, from its first value, drawn at `start`, to its last, drawn at `stop`."""

    ticks: Sequence[float]
    start: float
    stop: float

    def at(self, value: float) -> float:
        """Return where a value is drawn: at the edge if it lies beyond, or is not positive."""
        return self.place(min(max(_log(value), self.ticks[0]), self.ticks[-1]))

    def holds(self, value: float) -> bool:
        """Tell whether a value lies on the axis."""
        return self.ticks[0] <= _log(value) <= self.ticks[-1]

    def place(self, tick: float) -> float:
        """Return where a tick is drawn."""
        low, high = self.ticks[0], self.ticks[-1]
        return self.start + (self.stop - self.start) * (tick - low) / (high - low)

    def labels(self) -> list[tuple[float, str]]:
        """Return where the ticks are drawn, and what is written there."""
        return [(self.place(tick), _label(tick)) for tick in self.ticks]


def _log(value: float) -> float:
    """Return the logarithm to base ten, minus infinity for what has none."""
    if value <= 0:
        return -math.inf
    return math.log10(value) if value < math.inf else math.inf


def log_ticks(least: float, most: float, *, at_most: int = _MOST_TICKS) -> list[float]:
    """Return logs of round numbers from one at or below `least` to one at or above `most`: 1, 2, 5 or powers of ten."""
    first, last = math.floor(least), math.ceil(most)
    fine = [
        power + math.log10(m)
        for power in range(first, max(last, first + 1))
        for m in (1, 2, 5)
    ]
    fine.append(float(max(last, first + 1)))
    start = max(i for i, tick in enumerate(fine) if tick <= least)
    stop = min(i for i, tick in enumerate(fine) if tick >= most)
    chosen = fine[start : max(stop, start + 1) + 1]
    if len(chosen) <= at_most:
        return chosen
    step = math.ceil((last - first) / (at_most - 1))
    return [float(power) for power in range(first // step * step, last + step, step)]


def _label(tick: float) -> str:
    if abs(tick) < 4:
        return f"{10.0**tick:.4g}"
    exponent = math.floor(tick + 1e-9)  # 10 to such a power may be no float
    return f"{round(10.0 ** (tick - exponent))}e{exponent}"
