"""One plot: a number at every setting on a log axis, with the line at 1, as inline SVG.

Settings are numbered as in the table below the plot; the page's style sheet colours the classes in both schemes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 340, 175
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 8, 10, 34
_DECADES = 14  # beside a limit at 1, what lies further out is drawn at the edge
_MOST_TICKS = 7


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
    ticks = _ticks(min(logs), max(logs))
    low, high = ticks[0], ticks[-1]
    parts = [
        f'<svg class="plot" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" aria-labelledby="{ident}-t {ident}-d">',
        f'<title id="{ident}-t">{escape(title)}</title>',
        f'<desc id="{ident}-d">{escape(_description(values, names, axis, worst))}</desc>',
    ]
    for tick in ticks:
        y = _y(tick, low, high)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_label(tick)}</text>')
    if limit:
        y = _y(0, low, high)
        parts.append(f'<line class="limit" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
    every = max(1, math.ceil(len(values) / 20))
    for i in range(0, len(values), every):
        x = _x(i, len(values))
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - _BOTTOM + 15}" text-anchor="middle">{i + 1}</text>')
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(f'<text class="axis" x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">setting</text>')
    parts += [_point(i, v, len(values), names[i], names[i] == worst, low, high) for i, v in shown]
    return "".join(parts) + "</svg>"


def _point(i: int, value: float, count: int, name: str, worst: bool, low: float, high: float) -> str:
    x, kind = _x(i, count), "point worst" if worst else "point"
    tip = f"<title>{i + 1}: {escape(name)}: {value:.4g}</title>"
    log = -math.inf if value <= 0 else math.log10(value) if value < math.inf else math.inf
    if low <= log <= high:
        return (
            f'<circle class="{kind}" cx="{x:.1f}" cy="{_y(log, low, high):.1f}" r="{5 if worst else 4}">{tip}</circle>'
        )
    y, up = (_y(high, low, high) - 1, -7) if log > 0 else (_y(low, low, high) + 1, 7)
    return f'<path class="{kind}" d="M{x - 5:.1f} {y - up:.1f}h10l-5 {up}z">{tip}</path>'


def _x(i: int, count: int) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * (i + 0.5) / count


def _y(log: float, low: float, high: float) -> float:
    return _TOP + (HEIGHT - _TOP - _BOTTOM) * (high - log) / (high - low)


def _ticks(least: float, most: float) -> list[float]:
    """Return logs of round numbers from one at or below `least` to one at or above `most`: 1, 2, 5 or powers of ten."""
    first, last = math.floor(least), math.ceil(most)
    fine = [power + math.log10(m) for power in range(first, max(last, first + 1)) for m in (1, 2, 5)]
    fine.append(float(max(last, first + 1)))
    start = max(i for i, tick in enumerate(fine) if tick <= least)
    stop = min(i for i, tick in enumerate(fine) if tick >= most)
    chosen = fine[start : max(stop, start + 1) + 1]
    if len(chosen) <= _MOST_TICKS:
        return chosen
    step = math.ceil((last - first) / (_MOST_TICKS - 1))
    return [float(power) for power in range(first // step * step, last + step, step)]


def _label(tick: float) -> str:
    mantissa, exponent = f"{10.0**tick:.0e}".split("e")
    return f"{10.0**tick:.4g}" if abs(tick) < 4 else f"{mantissa}e{int(exponent)}"


def _description(values: Sequence[float], names: Sequence[str], axis: str, worst: str | None) -> str:
    found = [v for v in values if not math.isnan(v)]
    text = f"{axis}, at {len(names)} setting(s) on a log axis: from {min(found):.3g} to {max(found):.3g}."
    return text + (f" The worst setting is {worst}." if worst in names else "")
