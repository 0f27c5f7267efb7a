"""Plots of a certificate as inline SVG, with a table each: the spectrum and the errors of pairs; and what plots share.

Everything is drawn from the document alone (docs/certificate_schema.md). A map has a colour, a marker and dashes of its
own, by its place in the document, so that curves can be told apart without colours.
"""

from __future__ import annotations

from collections.abc import Sequence

from proofs_check.report.html._parts import Json, number, table, text_of
from proofs_check.report.html._plot import Axis, opening, rules

WIDTH, HEIGHT = 480, 320
LEFT, RIGHT, TOP, BOTTOM = 50, 18, 24, 40
_STRIP_HEIGHT = 46  # height of the strip with the numbers of pairs
COLOURS = 9
_DASHES = ("", "7 3", "2 3", "9 3 2 3")
_MARKERS = (
    # circle, square, triangle, diamond, triangle upside down, plus, cross, pentagon, star
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.5-3.5h7v7h-7z",
    "M0-4.7l4.7 8.2h-9.4z",
    "M0-5l5 5l-5 5l-5-5z",
    "M0 4.7l4.7-8.2h-9.4z",
    "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "M-4.5-2.4l2.1-2.1l2.4 2.4l2.4-2.4l2.1 2.1l-2.4 2.4l2.4 2.4l-2.1 2.1l-2.4-2.4l-2.4 2.4l-2.1-2.1l2.4-2.4z",
    "M0-4.8l4.6 3.3l-1.8 5.4h-5.6l-1.8-5.4z",
    "M0-6l1.6 4.4l4.4 1.6l-4.4 1.6l-1.6 4.4l-1.6-4.4l-4.4-1.6l4.4-1.6z",
)


def curve(i: int, points: Sequence[tuple[float, float]], kind: str = "") -> str:
    """Return the line of the map at place `i`, in its colour and its dashes."""
    pattern = _DASHES[(i + i // COLOURS) % len(_DASHES)]
    dashes = f' stroke-dasharray="{pattern}"' if pattern else ""
    return f'<polyline class="curve s{i % COLOURS}{kind}"{dashes} points="{joined(points)}"/>'


def joined(points: Sequence[tuple[float, float]]) -> str:
    """Return positions as the points of a line."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def mark(i: int, x: float, y: float, told: str, kind: str = "") -> str:
    """Return the marker of the map at place `i`, which tells its numbers to a pointer that rests on it."""
    return (
        f'<path class="mark s{i % COLOURS}{kind}" transform="translate({x:.1f} {y:.1f})" '
        f'd="{_MARKERS[i % len(_MARKERS)]}"><title>{text_of(told)}</title></path>'
    )


def eps_line(eps: float, y: Axis) -> list[str]:
    """Return the dashed line at eps, with its name."""
    at = y.at(eps)
    return [
        f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>',
        f'<text class="halo" x="{WIDTH - RIGHT - 2}" y="{at - 5:.1f}" text-anchor="end">eps = {number(eps)}</text>',
    ]


def frame(x: Axis, y: Axis, x_name: str, y_name: str, floor: float | None = None) -> list[str]:
    """Return the grid of a plot, down to `floor`, the labels of its ticks, and the names of its axes."""
    bottom = y.start if floor is None else floor
    parts = rules(y, x.start, x.stop)
    for at, label in x.labels():
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{y.stop}" y2="{bottom}"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 15}" text-anchor="middle">{label}</text>')
    middle = (x.start + x.stop) / 2
    parts.append(f'<text class="axis" x="{middle}" y="{bottom + 32}" text-anchor="middle">{text_of(x_name)}</text>')
    parts.append(f'<text class="axis" x="4" y="{y.stop - 11}">{text_of(y_name)}</text>')
    return parts


def boxed(name: str, drawing: str) -> str:
    """Return a drawing in a box that scrolls sideways where the screen is too narrow for its words."""
    return f'<div class="scroll" role="group" aria-label="{text_of(name)}" tabindex="0">{drawing}</div>\n'


def swatch(i: int, kind: str = "", *, line: bool = True, ring: bool = False) -> str:
    """Return a sample of the line and the marker of the map at place `i`, for a legend."""
    return (
        '<svg class="swatch" viewBox="0 0 40 18" aria-hidden="true">'
        + (curve(i, [(1, 9), (39, 9)]) if line else "")
        + (f'<circle class="ring s{i % COLOURS}" cx="20" cy="9" r="8"/>' if ring else "")
        + f'<path class="mark s{i % COLOURS}{kind}" transform="translate(20 9)" d="{_MARKERS[i % len(_MARKERS)]}"/>'
        + "</svg>"
    )


def folded(fallback: str) -> str:
    """Return the table with the numbers of a plot, folded."""
    return f"<details><summary>The numbers of this plot</summary>{fallback}</details>\n"


def spectrum(document: Json) -> str:
    """Return the eigenvalues on a log axis, with the effective dimensions where they are on the chart.

    Their numbers are on a log axis, too, where a power describes the decay no worse than an exponential does.
    """
    found = document["spectrum"]
    values = [(i + 1, value) for i, value in enumerate(found["eigenvalues"]) if value > 0]
    if not values:
        return ""
    power, exponential = (found["decay"].get(name, 0) for name in ("power_r2", "exponential_r2"))
    log = power >= exponential
    x = Axis.around([1, max(len(found["eigenvalues"]), 2)], LEFT, WIDTH - RIGHT, log=log)
    y = Axis.around([value for _, value in values], HEIGHT - BOTTOM, TOP, log=True)
    told = (
        f"{len(values)} eigenvalues, from {number(values[0][1])} to {number(values[-1][1])}, on a log axis, against "
        f"their number{', on a log axis too' if log else ''}."
    )
    parts = [
        opening("spectrum-plot", "Eigenvalues of K / n", told, WIDTH, HEIGHT, "plot large"),
        *frame(x, y, "number of the eigenvalue", "eigenvalue of K / n"),
    ]
    guides = [
        (x.at(value), letter, name, value) for letter, name, value in effective_dimensions(document) if x.holds(value)
    ]
    parts += [
        f'<line class="guide" x1="{at:.1f}" x2="{at:.1f}" y1="{y.stop}" y2="{y.start}">'
        f"<title>{text_of(name)}: {number(value)}</title></line>"
        for at, _, name, value in guides
    ]
    parts += _letters([(at, letter) for at, letter, _, _ in guides], y.start)
    parts += [
        f'<circle class="dot" cx="{x.at(i):.1f}" cy="{y.at(value):.1f}" r="2.5">'
        f"<title>{i}: {number(value)}</title></circle>"
        for i, value in values
    ]
    head = '<th scope="col" class="number">number</th><th scope="col" class="number">eigenvalue</th>'
    rows = [
        f'<tr><td class="number">{i + 1}</td><td class="number">{number(value)}</td></tr>'
        for i, value in enumerate(found["eigenvalues"])
    ]
    drawing = boxed("Eigenvalues of K / n", "".join(parts) + "</svg>")
    return drawing + folded(table("Eigenvalues of K / n", head, rows, "narrow"))


def effective_dimensions(document: Json) -> list[tuple[str, str, float]]:
    """Return the effective dimensions, with the letters that stand for them in the plot of the spectrum."""
    found = document["spectrum"]["effective_dimension"]
    return [(chr(ord("a") + i % 26), name, value) for i, (name, value) in enumerate(found.items())]


def _letters(places: Sequence[tuple[float, str]], bottom: float) -> list[str]:
    """Return letters beside vertical lines, low, where eigenvalues are not; near ones are in rows of their own."""
    ends: list[float] = []  # by row, from the bottom: where its last letter ends
    parts = []
    for at, letter in sorted(places):
        row = next((row for row, end in enumerate(ends) if end <= at), len(ends))
        ends[row : row + 1] = [at + 16]
        parts.append(
            f'<text class="halo" x="{at + 4:.1f}" y="{max(bottom - 6 - 13 * row, TOP + 12):.1f}">{letter}</text>'
        )
    return parts


_QUANTILES = (("q50", "median", 0), ("q95", "95 %", 1), ("q100", "largest", 2))


def pair_errors(document: Json) -> str:
    """Return relative errors of pairs against their kernel distance, with the numbers of pairs in a strip below."""
    bins = [entry for entry in document["pairs"].get("bins", []) if entry["pairs"]]
    errors = [entry[key] for entry in bins for key, _, _ in _QUANTILES if entry[key]]
    if not errors:
        return ""
    lows, tops = [e["low"] for e in bins if e["low"] > 0], [e["high"] for e in bins if e["high"] > 0]
    log = len(tops) > 1 and max(tops) > 10 * min(lows + tops)
    x = Axis.around([*lows, *tops] if log else [*(e["low"] for e in bins), *tops, 0.0], LEFT, WIDTH - RIGHT, log=log)
    bottom = HEIGHT - BOTTOM - _STRIP_HEIGHT
    y = Axis.around([*errors, document["eps"]], bottom, TOP, log=True)
    height = HEIGHT + 22
    strip = Axis.around(
        [1, max(entry["pairs"] for entry in bins)], height - BOTTOM, height - BOTTOM - _STRIP_HEIGHT, log=True
    )
    told = (
        f"Relative errors of pairs of points in {len(bins)} bins of their kernel distance: "
        + "; ".join(f"{name} from {_ends(bins, key)}" for key, name, _ in _QUANTILES)
        + ". The numbers are in the table below."
    )
    parts = [
        opening("pairs-plot", "Relative error of pairs against kernel distance", told, WIDTH, height, "plot large"),
        *frame(x, y, "kernel distance", "relative error", floor=strip.start),
        *_strip(x, strip),
        *eps_line(document["eps"], y),
    ]
    for entry in bins:
        left, right, top = x.at(entry["low"]), x.at(entry["high"]), strip.at(entry["pairs"])
        wide, high = max(right - left - 1, 1), max(strip.start - top, 2)
        parts.append(
            f'<rect class="bar" x="{left:.1f}" y="{strip.start - high:.1f}" width="{wide:.1f}" height="{high:.1f}">'
            f"<title>{number(entry['pairs'])} pairs</title></rect>"
        )
    for key, name, i in _QUANTILES:
        points = [((x.at(e["low"]) + x.at(e["high"])) / 2, y.at(e[key]), e) for e in bins if e[key] is not None]
        parts.append(curve(i, [(at, up) for at, up, _ in points]))
        parts += [
            mark(i, at, up, f"{name} {number(e[key])}, at distances from {number(e['low'])} to {number(e['high'])}")
            for at, up, e in points
        ]
    legend = "".join(f"<li>{swatch(i)} {name}</li>" for _, name, i in _QUANTILES)
    return (
        boxed("Relative error of pairs against kernel distance", "".join(parts) + "</svg>")
        + f'<ul class="legend">{legend}</ul>\n'
        + folded(_bins(document["pairs"]["bins"]))
    )


def _strip(x: Axis, strip: Axis) -> list[str]:
    """Return the name of the strip below a plot, its ground, and its first and last tick."""
    parts = [
        f'<text class="halo" x="{x.start + 4}" y="{strip.stop - 6}">number of pairs</text>',
        f'<line class="grid" x1="{x.start}" x2="{x.stop}" y1="{strip.start}" y2="{strip.start}"/>',
    ]
    for at, label in (strip.labels()[0], strip.labels()[-1]):
        parts.append(f'<text x="{x.start - 6}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    return parts


def _ends(bins: Sequence[Json], key: str) -> str:
    found = [entry[key] for entry in bins if entry[key] is not None]
    return f"{number(found[0])} to {number(found[-1])}" if found else "nothing"


def _bins(bins: Sequence[Json]) -> str:
    names = ("distance from", "to", "pairs", "median", "95 %", "largest")
    head = "".join(f'<th scope="col" class="number">{name}</th>' for name in names)
    rows = [
        "<tr>"
        + "".join(f'<td class="number">{number(e[key])}</td>' for key in ("low", "high", "pairs", "q50", "q95", "q100"))
        + "</tr>"
        for e in bins
    ]
    return table("Relative errors of pairs, by their kernel distance", head, rows)
