"""One drawing a paper: for each form of each claim, a dot a setting on a log axis of the room that it has there.

The SVG is written as text, with no date, no random ids and coordinates to a tenth of a unit: equal reports give equal
files. Dots of one form are one path of strokes without length, which keeps hundreds of them small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from proofs_check.report.html._parts import Json, real, text_of
from proofs_check.report.html._plot import Axis

LOW, HIGH = -3, 6
"""Decades that the axis shows; what lies further out is an arrow at the edge."""

FORMS = {"printed": ("#c2410c", "as printed"), "corrected": ("#1d5fa8", "as corrected")}
_LEFT, _WIDTH, _RIGHT = 178, 720, 14
_TOP, _LINE, _GAP, _BOTTOM = 46, 8, 6, 34


def drawn(claim: Json) -> Iterator[tuple[Json, list[float]]]:
    """Yield the forms of a claim that have a margin at some setting, each with its margins."""
    for form in claim["forms"]:
        margins = [real(e["margin"]) for e in form["evidence"]]
        margins = [margin for margin in margins if not math.isnan(margin)]
        if margins:
            yield form, margins


def overview(paper: str, claims: Sequence[Json]) -> str:
    """Return the SVG of all claims of a paper that have a margin, "" where none has one."""
    rows = [(claim, list(drawn(claim))) for claim in claims]
    rows = [(claim, forms) for claim, forms in rows if forms]
    if not rows:
        return ""
    height = _TOP + sum(_LINE * len(forms) + _GAP for _, forms in rows) + _BOTTOM
    axis = Axis([float(power) for power in range(LOW, HIGH + 1)], _LEFT, _WIDTH - _RIGHT)
    count = sum(len(margins) for _, forms in rows for _, margins in forms)
    description = (
        f"{count} settings of {len(rows)} claims on a log axis, a dot each. 1, the dashed line, is the limit of a "
        "claim, and to the right of it there is room."
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        f'font-size="9" role="img"><title>{text_of(paper)}: room at every setting</title>'
        f"<desc>{text_of(description)}</desc>",
        "<style>path{fill:none;stroke-width:5;stroke-linecap:round;stroke-opacity:.65}"
        + "".join(f".{name}{{stroke:{colour}}}.{name}-out{{fill:{colour}}}" for name, (colour, _) in FORMS.items())
        + "</style>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        *_legend(),
        *_grid(axis, height),
    ]
    y = float(_TOP)
    for claim, forms in rows:
        middle = y + _LINE * len(forms) / 2 + 3
        name = claim["id"].removeprefix(f"{claim['paper']}:")
        parts.append(f'<text x="{_LEFT - 14}" y="{middle:.1f}" text-anchor="end">{text_of(name)}</text>')
        for form, margins in forms:
            parts.append(_dots(form["form"], margins, axis, y + _LINE / 2))
            y += _LINE
        y += _GAP
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend() -> Iterator[str]:
    for i, (name, (_, words)) in enumerate(FORMS.items()):
        x = _LEFT + 110 * i
        yield f'<path class="{name}" d="M{x} 11h0"/><text x="{x + 8}" y="14">{words}</text>'
    yield f'<text x="{_WIDTH - _RIGHT}" y="14" text-anchor="end">1 is the limit of the claim, more is room</text>'


def _grid(axis: Axis, height: int) -> Iterator[str]:
    bottom = height - _BOTTOM + 4
    for x, label in axis.labels():
        limit = label == "1"
        stroke = 'stroke="#333" stroke-dasharray="4 3"' if limit else 'stroke="#ddd"'
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 12}" y2="{bottom}" {stroke}/>'
        for y in (_TOP - 16, bottom + 12):
            yield f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{label}</text>'
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield f'<text x="{middle}" y="{height - 4}" text-anchor="middle">room at a setting (margin)</text>'


def _dots(name: str, margins: Sequence[float], axis: Axis, y: float) -> str:
    """Return the dots of one form, and an arrow at an edge beyond which there are some; what coincides is one dot."""
    inside = sorted({f"{axis.at(margin):.1f}" for margin in margins if margin > 0 and axis.holds(margin)}, key=float)
    marks = []
    if inside:
        marks.append(f'<path class="{name}" d="{"".join(f"M{x} {y:.1f}h0" for x in inside)}"/>')
    left, right = axis.start - 5, axis.stop + 5
    if any(not axis.holds(margin) and margin < 1 for margin in margins):
        marks.append(
            f'<polygon class="{name}-out" points="{left},{y:.1f} {left + 6},{y - 3:.1f} {left + 6},{y + 3:.1f}"/>'
        )
    if any(not axis.holds(margin) and margin > 1 for margin in margins):
        marks.append(
            f'<polygon class="{name}-out" points="{right},{y:.1f} {right - 6},{y - 3:.1f} {right - 6},{y + 3:.1f}"/>'
        )
    return "".join(marks)
