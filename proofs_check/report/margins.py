"""Drawings of the slack that claims have: of one claim at each of its settings, and of all claims of a paper."""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from proofs_check.report.draw import Axis, log_ticks, svg, tag, text_at, tip_of
from proofs_check.report.text import escaped
from proofs_check.report.words import label, signs

_DECADES = 14  # beside a limit at 1, what lies further out is an arrow at the edge
_MOST_ROWS = 12
_ROW, _TOP = 34, 30


def of_claim(
    forms: Mapping[str, Mapping[str, float]],
    *,
    ident: str,
    title: str,
    axis: str,
    limit: bool,
) -> tuple[Markup, int]:
    """Return the drawing of values by form and by setting, and of how many settings it shows the lowest ones.

    Every setting is a row with its name above a log axis, which is as wide as the page, so that words keep their size;
    NaN is not drawn, and what is infinite, not positive or far from 1 is an arrow with its value. With `limit` there is
    a line at 1, the limit of the claim. Returns no drawing where fewer than two settings have a value.
    """
    drawn = {
        form: {name: v for name, v in values.items() if not math.isnan(v)}
        for form, values in forms.items()
    }
    forms = {form: values for form, values in drawn.items() if values}
    least: dict[str, float] = {}
    for values in forms.values():
        for name, value in values.items():
            least[name] = min(value, least.get(name, math.inf))
    if len(least) < 2:
        return Markup(""), len(least)
    rows = [
        name
        for name in least
        if name in sorted(least, key=least.__getitem__)[:_MOST_ROWS]
    ]
    logs = [
        math.log10(v)
        for values in forms.values()
        for v in values.values()
        if 0 < v < math.inf
    ]
    bounded = [min(max(log, -_DECADES), _DECADES) for log in logs]
    if limit or not logs:
        bounded.append(0.0)
    x = Axis(log_ticks(min(bounded), max(bounded), at_most=6), 6.0, 94.0)
    bottom = _TOP + _ROW * len(rows)
    parts = [text_at(axis, "50%", bottom + 34, "middle", kind="axis")]
    for at, words in x.labels():
        kind = "limit" if limit and words == "1" else "grid"
        parts.append(
            tag("line", kind=kind, x1=f"{at:.1f}%", x2=f"{at:.1f}%", y1=_TOP, y2=bottom)
        )
        parts.append(text_at(signs(words), f"{at:.1f}%", bottom + 16, "middle"))
    legend = [
        (name, f"as {name}" if len(forms) > 1 else "found at a setting")
        for name in forms
    ] + [("limit", "1, the limit")] * limit
    for i, (name, words) in enumerate(legend):
        parts += [
            _mark(name, f"{2 + 33 * i}%", 10),
            text_at(words, f"{2 + 33 * i}%", 14, dx=12),
        ]
    for i, name in enumerate(rows):
        y = _TOP + _ROW * i
        parts.append(tag("line", kind="grid", x1="0", x2="100%", y1=y + 25, y2=y + 25))
        parts.append(text_at(label(name), "0", y + 14, kind="halo"))
        for form, values in forms.items():
            if name in values:
                parts.append(
                    _value(
                        form,
                        values[name],
                        f"{name}, as {form}" if len(forms) > 1 else name,
                        x,
                        y + 25,
                    )
                )
    told = f"{axis}, at {len(rows)} settings on a log axis."
    height = bottom + 42
    drawing = svg(ident, title, told, "rows", parts, width="100%", height=height)
    return drawing, len(least)


def _value(form: str, value: float, name: str, x: Axis, y: float) -> str:
    tip, at = tip_of(f"{name}: {value:.4g}"), f"{x.at(value):.1f}%"
    if 0 < value < math.inf and x.holds(value):
        return _mark(form, at, y, *tip)
    words, side = (
        (f"{value:.2g} →", "end") if value > 1 else (f"← {value:.2g}", "start")
    )
    return tag(
        "text",
        *tip,
        escaped(signs(words)),
        kind=f"out {form}",
        x=at,
        y=y + 4,
        text_anchor=side,
    )


def _mark(form: str, x: str, y: float, *tip: str) -> str:
    """Return the mark of a form: a ring as printed, a dot as corrected, so that both are seen at one place."""
    if form == "limit":
        return tag("line", kind="limit", x1=x, x2=x, y1=y - 8, y2=y + 8)
    return tag("circle", *tip, kind=form, cx=x, cy=y, r=6 if form == "printed" else 4)


LOW, HIGH = -3, 6
"""Decades that the axis of `overview` shows; what lies further out is an arrow at the edge."""

FORMS = {"printed": ("#c2410c", "as printed"), "corrected": ("#1d5fa8", "as corrected")}
_STYLE = (
    "path{fill:none;stroke-width:5;stroke-linecap:round;stroke-opacity:.65}"
    + "".join(
        f".{name}{{stroke:{colour}}}.{name}-out{{fill:{colour}}}"
        for name, (colour, _) in FORMS.items()
    )
)


def overview(
    paper: str, rows: Sequence[tuple[str, Mapping[str, Sequence[float]]]]
) -> str:
    """Return a file of SVG: a line a claim, with a dot a setting on a log axis of the slack there.

    `rows` are the names of claims and their slacks by form. Dots of one form are one path of strokes without length,
    which keeps hundreds of them small, and settings at the same place are one dot.
    """
    line, gap, top, bottom, width = 8, 6, 46, 34, 720
    height = top + sum(line * len(forms) + gap for _, forms in rows) + bottom
    axis = Axis([float(power) for power in range(LOW, HIGH + 1)], 178.0, width - 14.0)
    count = sum(len(values) for _, forms in rows for values in forms.values())
    told = (
        f"{count} settings of {len(rows)} claims on a log axis, a dot each. 1, the dashed line, is the limit of a "
        "claim."
    )
    parts = [tag("style", _STYLE), tag("rect", width=width, height=height, fill="#fff")]
    for i, (name, (_, told_form)) in enumerate(FORMS.items()):
        parts += [
            tag("path", kind=name, d=f"M{178 + 110 * i} 11h0"),
            text_at(told_form, 186 + 110 * i, 14),
        ]
    parts.append(text_at("1 is the limit of the claim", axis.stop, 14, "end"))
    for x, words in axis.labels():
        stroke = (
            {"stroke": "#333", "stroke_dasharray": "4 3"}
            if words == "1"
            else {"stroke": "#ddd"}
        )
        parts.append(
            tag("line", x1=x, x2=x, y1=top - 12, y2=height - bottom + 4, **stroke)
        )
        parts += [
            text_at(words, x, y, "middle") for y in (top - 16, height - bottom + 16)
        ]
    parts.append(
        text_at(
            "slack at a setting",
            (axis.start + axis.stop) / 2,
            height - 4,
            "middle",
        )
    )
    y = float(top)
    for name, forms in rows:
        parts.append(
            text_at(name, axis.start - 14, y + line * len(forms) / 2 + 3, "end")
        )
        for form, values in forms.items():
            parts += _strokes(form, values, axis, y + line / 2)
            y += line
        y += gap
    box = f"0 0 {width} {height}"
    title = f"{paper}: slack at every setting"
    drawing = svg("slack", title, told, "slack", parts, viewBox=box)
    attributes = (
        'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="9" '
    )
    return (
        str(drawing).replace("<svg ", f"<svg {attributes}", 1).replace("><", ">\n<")
        + "\n"
    )


def _strokes(form: str, values: Sequence[float], axis: Axis, y: float) -> list[str]:
    """Return the dots of one form, and an arrow at an edge beyond which there are some."""
    inside = sorted(
        {
            f"{axis.at(value):.1f}"
            for value in values
            if value > 0 and axis.holds(value)
        },
        key=float,
    )
    parts = (
        [tag("path", kind=form, d="".join(f"M{x} {y:.1f}h0" for x in inside))]
        if inside
        else []
    )
    outside = [value for value in values if not axis.holds(value)]
    for edge, out, there in (
        (axis.start - 5, 6, any(value < 1 for value in outside)),
        (axis.stop + 5, -6, any(value > 1 for value in outside)),
    ):
        if there:
            corners = f"{edge:.1f},{y:.1f} {edge + out:.1f},{y - 3:.1f} {edge + out:.1f},{y + 3:.1f}"
            parts.append(tag("polygon", kind=f"{form}-out", points=corners))
    return parts
