"""Every drawing of the reports, of the atlas and of certificates, as SVG text.

`chart` draws series of points between two axes; `tag`, `svg` and `Axis` are what it is made of. Equal data give equal
text: there are no dates and no random ids, and coordinates are rounded to a tenth of a unit. The style sheets of the
pages colour the classes, in the light and in the dark scheme.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from proofs_check.report.text import escaped, number

Point = tuple[float, float]

WIDTH, HEIGHT = 480, 340
LEFT, RIGHT, TOP, BOTTOM = 50, 62, 26, 42
COLOURS = 9
"""So many colours the style sheet has for series."""

_LETTER, _ROW = (
    6.8,
    14,
)  # a label takes about that much for each letter, and for its line
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
    """An axis: `ticks` from its first value to its last, drawn from `start` to `stop`; on a log axis they are logs."""

    ticks: Sequence[float]
    start: float
    stop: float
    log: bool = True

    @classmethod
    def around(
        cls, values: Sequence[float], start: float, stop: float, *, log: bool
    ) -> Axis:
        """Return an axis with round ticks around finite values, which are positive where it is log."""
        low, high = min(values), max(values)
        ticks = (
            log_ticks(math.log10(low), math.log10(high), at_most=10)
            if log
            else _even_ticks(low, high)
        )
        return cls(ticks, start, stop, log)

    @classmethod
    def across(cls, values: Sequence[float], *, log: bool) -> Axis:
        """Return the horizontal axis of a chart."""
        return cls.around(values, float(LEFT), float(WIDTH - RIGHT), log=log)

    @classmethod
    def upright(cls, values: Sequence[float]) -> Axis:
        """Return the vertical axis of a chart, a log axis."""
        return cls.around(values, float(HEIGHT - BOTTOM), float(TOP), log=True)

    def at(self, value: float) -> float:
        """Return where a value is drawn: at the edge where it lies beyond, or is no positive number on a log axis."""
        return self.place(min(max(self._tick(value), self.ticks[0]), self.ticks[-1]))

    def holds(self, value: float) -> bool:
        """Tell whether a value lies on the axis."""
        return self.ticks[0] <= self._tick(value) <= self.ticks[-1]

    def place(self, tick: float) -> float:
        """Return where a tick is drawn."""
        low, high = self.ticks[0], self.ticks[-1]
        return self.start + (self.stop - self.start) * (tick - low) / (high - low)

    def labels(self) -> list[tuple[float, str]]:
        """Return where the ticks are drawn, and what is written there."""
        return [
            (self.place(tick), _label(tick) if self.log else f"{tick + 0.0:.6g}")
            for tick in self.ticks
        ]

    def _tick(self, value: float) -> float:
        if not self.log:
            return value
        return (
            -math.inf
            if value <= 0
            else math.log10(value)
            if value < math.inf
            else math.inf
        )


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


def _even_ticks(least: float, most: float) -> list[float]:
    """Return round numbers in even steps, from one at or below `least` to one at or above `most`."""
    span = max(most - least, 1e-9 * abs(most))
    span = span if span > 1e-300 else 1.0
    power = 10.0 ** math.floor(math.log10(span / _MOST_TICKS))
    step = next(
        power * m for m in (1, 2, 5, 10, 20) if span / (power * m) <= _MOST_TICKS - 2
    )
    first = math.floor(least / step + 1e-9)
    return [
        step * i
        for i in range(first, max(math.ceil(most / step - 1e-9), first + 1) + 1)
    ]


def _label(tick: float) -> str:
    if abs(tick) < 4:
        return f"{10.0**tick:.4g}"
    exponent = math.floor(tick + 1e-9)  # 10 to such a power may be no float
    return f"{round(10.0 ** (tick - exponent))}e{exponent}"


def levels(axis: Axis, left: float, right: float) -> list[str]:
    """Return the lines of the grid across a drawing, at the ticks of a vertical axis, and their labels."""
    parts = []
    for y, label in axis.labels():
        parts.append(tag("line", kind="grid", x1=left, x2=right, y1=y, y2=y))
        parts.append(text_at(label, left - 6, y + 4, "end"))
    return parts


@dataclass(frozen=True)
class Series:
    """Points of a chart in the colour of a series of this number.

    `points` are values, `tips` what a pointer that rests on one is told, and `label` is written below the chart.
    Those at the places `hollow` are not filled, and `ranges` has, by place, the ends (low, high) of a bar through a
    point. `kind` is "line", "best" for a thick one, "tried" for a dashed one, or "dots" for small dots alone.
    """

    number: int
    points: Sequence[Point]
    tips: Sequence[str] = ()
    label: str = ""
    hollow: Collection[int] = ()
    ranges: Mapping[int, Point] = field(default_factory=dict)
    kind: str = "line"

    @property
    def colour(self) -> str:
        """Return the class of its colour."""
        return f"s{self.number % COLOURS}"


def chart(
    ident: str,
    title: str,
    description: str,
    x: tuple[str, Axis],
    y: tuple[str, Axis],
    series: Sequence[Series],
    *,
    limit: tuple[str, float] | None = None,
    guides: Sequence[tuple[str, float]] = (),
) -> Markup:
    """Return a chart of series, whose labels stand below it.

    `x` and `y` are names of axes and the axes, made by `Axis.across` and `Axis.upright`. `limit` is the name and the
    value of a dashed horizontal line, which stand at its end, `guides` are names and values of vertical ones.
    """
    (x_name, across), (y_name, upright) = x, y
    parts = _frame(across, upright, x_name, y_name)
    if limit is not None:
        right, at = across.stop, upright.at(limit[1])
        parts.append(tag("line", kind="limit", x1=across.start, x2=right, y1=at, y2=at))
        last = min(at + 12, upright.start - 4)  # above the names of the ticks
        parts += [
            text_at(limit[0], right + 5, last - 13),
            text_at(f"= {number(limit[1])}", right + 5, last),
        ]
    parts += _guides(guides, across, upright)
    for group in series:
        parts += _drawn(group, across, upright)
    named = [group for group in series if group.label]
    parts += _key(named, HEIGHT)
    height = HEIGHT + _ROW * (1 + math.ceil(len(named) / 2))
    box = f"0 0 {WIDTH} {height}"
    return svg(ident, title, description, "plot large", parts, viewBox=box)


def _frame(x: Axis, y: Axis, x_name: str, y_name: str) -> list[str]:
    parts, bottom = levels(y, x.start, x.stop), y.start
    for at, label in x.labels():
        parts.append(tag("line", kind="grid", x1=at, x2=at, y1=y.stop, y2=bottom))
        parts.append(text_at(label, at, bottom + 17, "middle"))
    parts.append(
        text_at(x_name, (x.start + x.stop) / 2, bottom + 34, "middle", kind="axis")
    )
    parts.append(text_at(y_name, 4, y.stop - 11, kind="axis"))
    return parts


def _joined(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _drawn(series: Series, x: Axis, y: Axis) -> list[str]:
    places = [(x.at(a), y.at(b)) for a, b in series.points]
    tips = [tip_of(tip) for tip in series.tips] or [()] * len(places)
    if series.kind == "dots":
        return [
            tag("circle", *tip, kind="dot", cx=a, cy=b, r=2.5)
            for (a, b), tip in zip(places, tips, strict=True)
        ]
    parts = [
        tag(
            "polyline",
            kind=f"curve {series.colour} {series.kind}",
            points=_joined(places),
        )
    ]
    for i, (low, high) in series.ranges.items():
        ends = [(places[i][0], y.at(low)), (places[i][0], y.at(high))]
        parts.append(
            tag("polyline", kind=f"range {series.colour}", points=_joined(ends))
        )
    for i, ((a, b), tip) in enumerate(zip(places, tips, strict=True)):
        kind = f"mark {series.colour}" + (" hollow" if i in series.hollow else "")
        parts.append(tag("circle", *tip, kind=kind, cx=a, cy=b, r=4.0))
    return parts


def _key(named: Sequence[Series], top: int) -> list[str]:
    """Return the names of series below a chart, two in a row, each behind a line of its colour."""
    parts = []
    for place, group in enumerate(named):
        left = 4 + WIDTH // 2 * (place % 2)
        y = top + _ROW * (1 + place // 2)
        colour = f"key {group.colour}"
        parts.append(
            tag("line", kind=colour, x1=left, x2=left + 14, y1=y - 4, y2=y - 4)
        )
        kind = f"label {group.colour} {group.kind}"
        parts.append(text_at(group.label, left + 19, y, kind=kind))
    return parts


def _guides(guides: Sequence[tuple[str, float]], x: Axis, y: Axis) -> list[str]:
    """Return vertical lines up to their names, low, where few points are; the first name is the highest."""
    parts: list[str] = []
    shown = sorted((x.at(value), name) for name, value in guides if x.holds(value))
    for row, (at, name) in enumerate(reversed(shown)):
        top = max(y.start - 8 - _ROW * row, y.stop + _ROW)
        parts.append(
            tag("line", kind="guide", x1=at, x2=at, y1=top - _ROW + 4, y2=y.start)
        )
        parts.append(
            text_at(name, min(at + 4, x.stop - _LETTER * len(name)), top, kind="halo")
        )
    return parts
