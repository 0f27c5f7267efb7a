"""Plots as inline SVG: axes, and one plot, of a number at every setting on a log axis, with the line at 1.

Settings are numbered as in the table below the plot; the page's style sheet colours the classes in both schemes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from proofs_check.report.html._parts import text_of

WIDTH, HEIGHT = 340, 175
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 8, 10, 34
_DECADES = 14  # beside a limit at 1, what lies further out is drawn at the edge
_MOST_TICKS = 7


@dataclass(frozen=True)
class Axis:
    """An axis: `ticks` from its first value to its last, drawn from `start` to `stop`; on a log axis they are logs."""

    ticks: Sequence[float]
    start: float
    stop: float
    log: bool = True

    @classmethod
    def around(cls, values: Sequence[float], start: float, stop: float, *, log: bool) -> Axis:
        """Return an axis with round ticks around finite values, which are positive where it is log."""
        low, high = min(values), max(values)
        ticks = _ticks(math.log10(low), math.log10(high), at_most=10) if log else _even_ticks(low, high)
        return cls(ticks, start, stop, log)

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
        return [(self.place(tick), _label(tick) if self.log else f"{tick + 0.0:.6g}") for tick in self.ticks]

    def _tick(self, value: float) -> float:
        if not self.log:
            return value
        return -math.inf if value <= 0 else math.log10(value) if value < math.inf else math.inf


def opening(ident: str, title: str, description: str, width: int, height: int, kind: str = "plot") -> str:
    """Return the head of an SVG, with the title and the description that screen readers get; ids begin with `ident`."""
    return (
        f'<svg class="{kind}" role="img" viewBox="0 0 {width} {height}" aria-labelledby="{ident}-t {ident}-d">'
        f'<title id="{ident}-t">{text_of(title)}</title><desc id="{ident}-d">{text_of(description)}</desc>'
    )


def rules(axis: Axis, left: float, right: float) -> list[str]:
    """Return the lines of the grid across a plot, at the ticks of a vertical axis, and their labels."""
    parts = []
    for y, label in axis.labels():
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    return parts


def dots(
    values: Sequence[float], names: Sequence[str], *, ident: str, title: str, axis: str, worst: str | None, limit: bool
) -> str:
    """Return the SVG of `values` (NaN: not drawn; infinite or not positive: an arrow at the edge), one a setting.

    `ident` begins the ids of the title and of the description that screen readers get. The setting named `worst` is
    marked. With `limit` there is a line at 1, the limit of the claim. Returns "" where there is nothing to draw.
    """
    shown = [(i, v) for i, v in enumerate(values) if not math.isnan(v)]
    logs = [math.log10(v) for _, v in shown if 0 < v < math.inf] + [0.0] * limit
    if not logs or all(v == math.inf for _, v in shown):
        return ""
    if limit:
        logs = [min(max(log, -_DECADES), _DECADES) for log in logs]
    axis_y = Axis(_ticks(min(logs), max(logs)), HEIGHT - _BOTTOM, _TOP)
    description = _description(values, names, axis, worst)
    parts = [opening(ident, title, description, WIDTH, HEIGHT), *rules(axis_y, _LEFT, WIDTH - _RIGHT)]
    if limit:
        y = axis_y.place(0.0)
        parts.append(f'<line class="limit" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
    every = max(1, math.ceil(len(values) / 20))
    for i in range(0, len(values), every):
        x = _x(i, len(values))
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - _BOTTOM + 15}" text-anchor="middle">{i + 1}</text>')
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(f'<text class="axis" x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">setting</text>')
    parts += [_point(i, v, len(values), names[i], names[i] == worst, axis_y) for i, v in shown]
    return "".join(parts) + "</svg>"


def _point(i: int, value: float, count: int, name: str, worst: bool, axis: Axis) -> str:
    x, kind = _x(i, count), "point worst" if worst else "point"
    tip = f"<title>{i + 1}: {text_of(name)}: {value:.4g}</title>"
    y = axis.at(value)
    if 0 < value < math.inf and axis.holds(value):
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{5 if worst else 4}">{tip}</circle>'
    y, up = (y - 1, -7) if value > 1 else (y + 1, 7)
    return f'<path class="{kind}" d="M{x - 5:.1f} {y - up:.1f}h10l-5 {up}z">{tip}</path>'


def _x(i: int, count: int) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * (i + 0.5) / count


def _ticks(least: float, most: float, *, at_most: int = _MOST_TICKS) -> list[float]:
    """Return logs of round numbers from one at or below `least` to one at or above `most`: 1, 2, 5 or powers of ten."""
    first, last = math.floor(least), math.ceil(most)
    fine = [power + math.log10(m) for power in range(first, max(last, first + 1)) for m in (1, 2, 5)]
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
    step = next(power * m for m in (1, 2, 5, 10, 20) if span / (power * m) <= _MOST_TICKS - 2)
    first = math.floor(least / step + 1e-9)
    return [step * i for i in range(first, max(math.ceil(most / step - 1e-9), first + 1) + 1)]


def _label(tick: float) -> str:
    if abs(tick) < 4:
        return f"{10.0**tick:.4g}"
    exponent = math.floor(tick + 1e-9)  # 10 to such a power may be no float
    return f"{round(10.0 ** (tick - exponent))}e{exponent}"


def _description(values: Sequence[float], names: Sequence[str], axis: str, worst: str | None) -> str:
    found = [v for v in values if not math.isnan(v)]
    text = f"{axis}, at {len(names)} setting(s) on a log axis: from {min(found):.3g} to {max(found):.3g}."
    return text + (f" The worst setting is {worst}." if worst in names else "")
