"""Drawings of the room that claims have: of one form at each of its settings, and of all claims of a paper."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from proofs_check.report.draw import Axis, levels, log_ticks, svg, tag, tip_of, words

_SMALL_WIDTH, _SMALL_HEIGHT = 340, 175
_DECADES = 14  # beside a limit at 1, what lies further out is drawn at the edge


def of_form(
    values: Sequence[float], names: Sequence[str], *, ident: str, title: str, axis: str, worst: str | None, limit: bool
) -> Markup:
    """Return the drawing of `values` (NaN: not drawn; infinite or not positive: an arrow at the edge), one a setting.

    Settings are numbered as in the table below the drawing, and the one named `worst` is marked. With `limit` there is
    a line at 1, the limit of the claim. Returns "" where there is nothing to draw.
    """
    shown = [(i, v) for i, v in enumerate(values) if not math.isnan(v)]
    logs = [math.log10(v) for _, v in shown if 0 < v < math.inf] + [0.0] * limit
    if not logs or all(v == math.inf for _, v in shown):
        return Markup("")
    if limit:
        logs = [min(max(log, -_DECADES), _DECADES) for log in logs]
    left, right, bottom = 44.0, _SMALL_WIDTH - 8.0, _SMALL_HEIGHT - 34.0
    y = Axis(log_ticks(min(logs), max(logs)), bottom, 10.0)
    x = Axis((0.0, float(len(values))), left, right, log=False)
    parts = levels(y, left, right)
    if limit:
        parts.append(tag("line", kind="limit", x1=left, x2=right, y1=y.place(0.0), y2=y.place(0.0)))
    every = max(1, math.ceil(len(values) / 20))
    parts += [words(i + 1, x.at(i + 0.5), bottom + 15, "middle") for i in range(0, len(values), every)]
    parts.append(words("setting", (left + right) / 2, _SMALL_HEIGHT - 4, "middle", kind="axis"))
    for i, value in shown:
        tip = tip_of(f"{i + 1}: {names[i]}: {value:.4g}")
        at, up, kind = x.at(i + 0.5), y.at(value), "point worst" if names[i] == worst else "point"
        if 0 < value < math.inf and y.holds(value):
            parts.append(tag("circle", *tip, kind=kind, cx=at, cy=up, r=5 if names[i] == worst else 4))
        else:
            parts.append(tag("path", *tip, kind=kind, d=_arrow(at, up, up=value > 1)))
    least, most = (f"{extreme(v for _, v in shown):.3g}" for extreme in (min, max))
    told = f"{axis}, at {len(names)} setting(s) on a log axis: from {least} to {most}."
    told += f" The worst setting is {worst}." if worst in names else ""
    return svg(ident, title, told, _SMALL_WIDTH, _SMALL_HEIGHT, "plot", parts)


def _arrow(x: float, y: float, *, up: bool) -> str:
    y, tall = (y - 1, -7) if up else (y + 1, 7)
    return f"M{x - 5:.1f} {y - tall:.1f}h10l-5 {tall}z"
