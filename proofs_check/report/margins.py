"""Drawings of the room that claims have: of one form at each of its settings, and of all claims of a paper."""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from proofs_check.report.draw import Axis, levels, log_ticks, svg, tag, text_at, tip_of

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
    parts += [text_at(i + 1, x.at(i + 0.5), bottom + 15, "middle") for i in range(0, len(values), every)]
    parts.append(text_at("setting", (left + right) / 2, _SMALL_HEIGHT - 4, "middle", kind="axis"))
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


# ------------------------------------------------------------------------------------------------------- all of a paper

LOW, HIGH = -3, 6
"""Decades that the axis of `overview` shows; what lies further out is an arrow at the edge."""

FORMS = {"printed": ("#c2410c", "as printed"), "corrected": ("#1d5fa8", "as corrected")}
_STYLE = "path{fill:none;stroke-width:5;stroke-linecap:round;stroke-opacity:.65}" + "".join(
    f".{name}{{stroke:{colour}}}.{name}-out{{fill:{colour}}}" for name, (colour, _) in FORMS.items()
)


def overview(paper: str, rows: Sequence[tuple[str, Mapping[str, Sequence[float]]]]) -> str:
    """Return a file of SVG: a line a claim, with a dot a setting on a log axis of the room that it has there.

    `rows` are the names of claims and their margins by form. Dots of one form are one path of strokes without length,
    which keeps hundreds of them small, and settings at the same place are one dot.
    """
    line, gap, top, bottom, width = 8, 6, 46, 34, 720
    height = top + sum(line * len(forms) + gap for _, forms in rows) + bottom
    axis = Axis([float(power) for power in range(LOW, HIGH + 1)], 178.0, width - 14.0)
    count = sum(len(values) for _, forms in rows for values in forms.values())
    told = (
        f"{count} settings of {len(rows)} claims on a log axis, a dot each. 1, the dashed line, is the limit of a "
        "claim, and to the right of it there is room."
    )
    parts = [tag("style", _STYLE), tag("rect", width=width, height=height, fill="#fff")]
    for i, (name, (_, told_form)) in enumerate(FORMS.items()):
        parts += [tag("path", kind=name, d=f"M{178 + 110 * i} 11h0"), text_at(told_form, 186 + 110 * i, 14)]
    parts.append(text_at("1 is the limit of the claim, more is room", axis.stop, 14, "end"))
    for x, label in axis.labels():
        stroke = {"stroke": "#333", "stroke_dasharray": "4 3"} if label == "1" else {"stroke": "#ddd"}
        parts.append(tag("line", x1=x, x2=x, y1=top - 12, y2=height - bottom + 4, **stroke))
        parts += [text_at(label, x, y, "middle") for y in (top - 16, height - bottom + 16)]
    parts.append(text_at("room at a setting (margin)", (axis.start + axis.stop) / 2, height - 4, "middle"))
    y = float(top)
    for name, forms in rows:
        parts.append(text_at(name, axis.start - 14, y + line * len(forms) / 2 + 3, "end"))
        for form, values in forms.items():
            parts += _strokes(form, values, axis, y + line / 2)
            y += line
        y += gap
    drawing = svg("room", f"{paper}: room at every setting", told, width, height, "room", parts)
    attributes = 'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="9" '
    return str(drawing).replace("<svg ", f"<svg {attributes}", 1).replace("><", ">\n<") + "\n"


def _strokes(form: str, values: Sequence[float], axis: Axis, y: float) -> list[str]:
    """Return the dots of one form, and an arrow at an edge beyond which there are some."""
    inside = sorted({f"{axis.at(value):.1f}" for value in values if value > 0 and axis.holds(value)}, key=float)
    parts = [tag("path", kind=form, d="".join(f"M{x} {y:.1f}h0" for x in inside))] if inside else []
    for edge, out, beyond in ((axis.start - 5, 6, lambda v: v < 1), (axis.stop + 5, -6, lambda v: v > 1)):
        if any(not axis.holds(value) and beyond(value) for value in values):
            corners = f"{edge:.1f},{y:.1f} {edge + out:.1f},{y - 3:.1f} {edge + out:.1f},{y + 3:.1f}"
            parts.append(tag("polygon", kind=f"{form}-out", points=corners))
    return parts
