"""Every drawing of the reports, of the atlas and of certificates, as SVG text.

`chart` draws series of points between two axes; `tag`, `svg` and `Axis` are what it is made of. Equal data give equal
text: there are no dates and no random ids, and coordinates are rounded to a tenth of a unit. The style sheets of the
pages colour the classes, in the light and in the dark scheme.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from proofs_check.report.text import escaped, number

Point = tuple[float, float]
_Box = tuple[float, float, float, float]  # left, top, right, bottom
_Way = tuple[float, Point, Point, _Box]

WIDTH, HEIGHT = 480, 340
LEFT, RIGHT, TOP, BOTTOM = 50, 62, 26, 42
COLOURS = 9
"""So many colours the style sheet has for series."""

_STRIP = 46  # height of the strip with bars below a chart
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
    width: int,
    height: int,
    kind: str,
    parts: Sequence[str],
) -> Markup:
    """Return a drawing with the title and the description that screen readers get; ids begin with `ident`."""
    head = tag("title", escaped(title), id=f"{ident}-t") + tag(
        "desc", escaped(description), id=f"{ident}-d"
    )
    attributes = {
        "role": "img",
        "viewBox": f"0 0 {width} {height}",
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
    def upright(
        cls, values: Sequence[float], *, log: bool = True, strip: bool = False
    ) -> Axis:
        """Return the vertical axis of a chart, shorter where there is a strip of bars below it."""
        return cls.around(
            values, float(HEIGHT - BOTTOM - _STRIP * strip), float(TOP), log=log
        )

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

    `points` are values, `tips` what a pointer that rests on one is told, and `label` is written beside one of them.
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


@dataclass(frozen=True)
class Bar:
    """A bar in the strip below a chart, from `low` to `high` on its horizontal axis."""

    low: float
    high: float
    height: float
    tip: str


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
    bars: Sequence[Bar] = (),
    bars_name: str = "",
) -> Markup:
    """Return a chart of series, whose labels stand clear of marks, lines and each other where there is room.

    `x` and `y` are names of axes and the axes, made by `Axis.across` and `Axis.upright`. `limit` is the name and the
    value of a dashed horizontal line, which stand at its end, `guides` are names and values of vertical ones. `bars`
    stand in a strip of their own below the chart, named `bars_name`.
    """
    (x_name, across), (y_name, upright) = x, y
    strip = None
    if bars:
        bottom = float(HEIGHT + 22 - BOTTOM)
        strip = Axis.around(
            [1, *(bar.height for bar in bars)], bottom, bottom - _STRIP, log=True
        )
    parts = _frame(
        across, upright, x_name, y_name, upright.start if strip is None else strip.start
    )
    if strip is not None:
        parts += _bars(bars, bars_name, across, strip)
    taken: list[_Box] = []
    if limit is not None:
        right, at = across.stop, upright.at(limit[1])
        taken.append((across.start, at - 3, right, at + 3))
        parts.append(tag("line", kind="limit", x1=across.start, x2=right, y1=at, y2=at))
        last = min(at + 12, upright.start - 4)  # above the names of the ticks
        parts += [
            text_at(limit[0], right + 5, last - 13),
            text_at(f"= {number(limit[1])}", right + 5, last),
        ]
    parts += _guides(guides, across, upright)
    for group in series:
        parts += _drawn(group, across, upright)
    parts += _labels(series, across, upright, taken)
    return svg(
        ident, title, description, WIDTH, HEIGHT + 22 * bool(bars), "plot large", parts
    )


def _frame(x: Axis, y: Axis, x_name: str, y_name: str, bottom: float) -> list[str]:
    parts = levels(y, x.start, x.stop)
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


def _labels(
    series: Sequence[Series], x: Axis, y: Axis, taken: Sequence[_Box]
) -> list[str]:
    """Return the labels, each at the nearest free place to one of its points, joined to it where that is far."""
    marks = [*taken, *(box for group in series for box in _boxes(group, x, y))]
    labels: list[_Box] = []
    parts: list[str] = []

    def is_free(way: _Way) -> bool:
        _, at, near, box = way
        leader = [(a, b, a, b) for a, b in _along((at, near))]
        return not any(_meet(box, other) for other in marks) and not any(
            _meet(part, other) for part in (box, *leader) for other in labels
        )

    for group in sorted(series, key=lambda group: -len(group.label)):
        ways = sorted(_ways(group, x, y)) if group.label else []
        if not ways:
            continue
        distance, at, near, box = next(filter(is_free, ways), ways[0])
        if distance > _ROW:
            parts.append(
                tag(
                    "line",
                    kind=f"leader {group.colour}",
                    x1=at[0],
                    y1=at[1],
                    x2=near[0],
                    y2=near[1],
                )
            )
            marks += [(a - 1, b - 1, a + 1, b + 1) for a, b in _along((at, near))]
        parts.append(
            text_at(
                group.label,
                box[0],
                box[3] - 3,
                kind=f"label halo {group.colour} {group.kind}",
            )
        )
        labels.append(box)
    return parts


def _ways(series: Series, x: Axis, y: Axis) -> Iterator[_Way]:
    """Yield places of a label: the distance to its nearest point, that point, what is nearest to it, the box."""
    wide = _LETTER * len(series.label) * (1.1 if series.kind == "best" else 1)  # bold
    places = [(x.at(a), y.at(b)) for a, b in series.points]
    for left in range(math.ceil(x.start) + 2, int(x.stop - wide) - 1, 6):
        for top in range(math.ceil(y.stop) + 2, int(y.start) - _ROW - 1, 6):
            box = (left, top, left + wide, top + _ROW)
            yield min(
                (math.dist(at, near), at, near, box)
                for at in places
                for near in [
                    (min(max(at[0], left), box[2]), min(max(at[1], top), box[3]))
                ]
            )


def _boxes(series: Series, x: Axis, y: Axis) -> Iterator[_Box]:
    """Yield boxes around the marks, the lines and the bars of a series."""
    places = [(x.at(a), y.at(b)) for a, b in series.points]
    yield from ((a - 6, b - 6, a + 6, b + 6) for a, b in places)
    if series.kind != "dots":
        yield from ((a - 2, b - 2, a + 2, b + 2) for a, b in _along(places))
    for i, (low, high) in series.ranges.items():
        yield places[i][0] - 3, y.at(high), places[i][0] + 3, y.at(low)


def _along(places: Sequence[Point]) -> list[Point]:
    """Return points on the lines between places, a few units apart."""
    found = []
    for (a, b), (c, d) in itertools.pairwise(places):
        steps = math.ceil(math.dist((a, b), (c, d)) / 4) or 1
        found += [
            (a + (c - a) * i / steps, b + (d - b) * i / steps) for i in range(steps + 1)
        ]
    return found


def _meet(one: _Box, other: _Box) -> bool:
    return (
        one[0] < other[2]
        and other[0] < one[2]
        and one[1] < other[3]
        and other[1] < one[3]
    )


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


def _bars(bars: Sequence[Bar], name: str, x: Axis, strip: Axis) -> list[str]:
    parts = [
        text_at(name, x.start + 4, strip.stop - 6, kind="halo"),
        tag("line", kind="grid", x1=x.start, x2=x.stop, y1=strip.start, y2=strip.start),
    ]
    parts += [
        text_at(label, x.start - 6, at + 1, "end")
        for at, label in (strip.labels()[0], strip.labels()[-1])
    ]
    for bar in bars:
        left, right, top = x.at(bar.low), x.at(bar.high), strip.at(bar.height)
        wide, high = max(right - left - 1, 1.0), max(strip.start - top, 2.0)
        box = {"x": left, "y": strip.start - high, "width": wide, "height": high}
        parts.append(tag("rect", *tip_of(bar.tip), kind="bar", **box))
    return parts
