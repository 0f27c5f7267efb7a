"""The plot of errors against cost: a curve a map, what is certified, and what theory demands, with a table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from proofs_check.certify._plots import (
    BOTTOM,
    COLOURS,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    boxed,
    curve,
    eps_line,
    folded,
    frame,
    joined,
    mark,
    swatch,
)
from proofs_check.report.html._parts import Json, number, table, text_of
from proofs_check.report.html._plot import Axis, opening

Curves = Mapping[int, Sequence[Json]]
"""Points of the curves, from small to large sizes, by the places of their maps in the document."""

_RANGE = 10.0  # what lies so many times beyond all medians, or all costs, is cut off


def tradeoff(document: Json) -> str:
    """Return error against cost: a curve a map, with the sizes that are certified and those that theory demands."""
    entries = sorted(
        enumerate(document["maps"]), key=lambda item: item[1]["map"] == document["map"]
    )  # on top: the best
    curves = {i: points for i, entry in entries if (points := _points(entry))}
    if not curves:
        return '<p class="soft">No size was measured, so there is nothing to draw.</p>\n'
    timed = _are_timed(curves)
    cost = "seconds_per_million" if timed else "num_features"
    drawn = {i: [point for point in points if point[cost]] for i, points in curves.items()}
    untimed = sum(len(points) for points in curves.values()) - sum(len(points) for points in drawn.values())
    costs = [point[cost] for points in drawn.values() for point in points]
    demands = _demands(document, curves, timed, _RANGE * max(costs, default=0.0))
    axes = _error_axes(document, drawn, [*costs, *(x for _, x, _ in demands if x is not None)])
    if axes is None:
        return '<p class="soft">No error above zero was measured, so there is nothing to draw.</p>\n'
    x, y = axes
    name = "seconds per million points" if timed else "features of a point"
    parts = [
        opening(
            "tradeoff", "Error against cost of the maps", _told(document, drawn, name), WIDTH, HEIGHT, "plot large"
        ),
        *frame(x, y, name, "error (median of the draws, and from 5 % to 95 % of them)"),
        *(_band(i, points, x, y, cost) for i, points in drawn.items()),
        *eps_line(document["eps"], y),
    ]
    certified = False
    for i, points in drawn.items():
        entry, places = document["maps"][i], [(x.at(point[cost]), y.at(point["median"])) for point in points]
        parts.append(curve(i, places, " best" if entry["map"] == document["map"] else ""))
        for point, (across, up) in zip(points, places, strict=True):
            if entry["status"] == "certified" and point["num_features"] == entry["num_features"]:
                certified = True
                parts.append(f'<circle class="ring s{i % COLOURS}" cx="{across:.1f}" cy="{up:.1f}" r="8"/>')
            parts.append(mark(i, across, up, _point_told(entry["map"], point)))
    inside = [(i, at, demand) for i, at, demand in demands if at is not None and x.holds(at)]
    parts += [
        mark(i, x.at(at), y.at(document["eps"]), f"{demand['map']}: a theorem demands {_features(demand)}", " theory")
        for i, at, demand in inside
    ]
    outside = [demand for i, at, demand in demands if at is None or not x.holds(at)]
    return (
        boxed("Error against cost of the maps", "".join(parts) + "</svg>")
        + _legend(document, drawn, bool(inside), certified)
        + (f'<p class="soft">{untimed} size(s) without a time are not drawn.</p>\n' if untimed else "")
        + _off_chart(outside)
        + _numbers(document, curves)
    )


def _points(entry: Json) -> list[Json]:
    """Return one point of a curve a size, the draws that certify before those of the search, from small to large.

    A size has the time of any of its points, and the certified one that of the map.
    """
    best: dict[int, Json] = {}
    for point in sorted(entry["curve"], key=lambda point: (point["certifying"], point["draws"])):
        if point["median"] is not None:
            best[point["num_features"]] = point
    timed = [part for part in (*entry["curve"], entry) if part["seconds_per_million"] is not None]
    seconds = {part["num_features"]: part["seconds_per_million"] for part in timed}
    return [{**best[size], "seconds_per_million": seconds.get(size)} for size in sorted(best)]


def _are_timed(curves: Curves) -> bool:
    """Tell whether most sizes of every map have a time, so that a plot against time leaves little out."""
    return all(sum(bool(p["seconds_per_million"]) for p in points) * 3 >= 2 * len(points) for points in curves.values())


def _demands(document: Json, curves: Curves, timed: bool, limit: float) -> list[tuple[int, float | None, Json]]:
    """Return the sizes that theory demands: the map's place, the cost or None where it is off the chart, the demand.

    A time is read off the map's own curve, between two sizes that were measured.
    """
    places = {entry["map"]: i for i, entry in enumerate(document["maps"])}
    found: list[tuple[int, float | None, Json]] = []
    for demand in document["theory"]:
        if demand["num_features"] is None:
            continue
        i, size = places.get(demand["map"], -1), float(demand["num_features"])
        cost = (_time_at(curves.get(i, []), size) if timed else size) if i in curves and size > 0 else None
        found.append((i, cost if cost is not None and cost <= limit else None, demand))
    return found


def _time_at(points: Sequence[Json], size: float) -> float | None:
    known = [
        (float(p["num_features"]), float(p["seconds_per_million"]))
        for p in points
        if p["seconds_per_million"] and p["num_features"]
    ]
    for (low, before), (high, after) in itertools.pairwise(known):
        if low <= size <= high:
            share = (math.log(size) - math.log(low)) / (math.log(high) - math.log(low))
            return math.exp((1 - share) * math.log(before) + share * math.log(after))
    return None


def _error_axes(document: Json, drawn: Curves, costs: Sequence[float]) -> tuple[Axis, Axis] | None:
    points = [point for points in drawn.values() for point in points]
    medians = [point["median"] for point in points if point["median"] > 0]
    if not medians:
        return None
    middle = [*medians, document["eps"]]
    least, most = min(middle) / _RANGE, max(middle) * _RANGE
    spread = [
        point[name] for point in points for name in ("low", "high") if point[name] and least <= point[name] <= most
    ]
    x = Axis.around(costs, LEFT, WIDTH - RIGHT, log=True)
    return x, Axis.around([*middle, *spread], HEIGHT - BOTTOM, TOP, log=True)


def _band(i: int, points: Sequence[Json], x: Axis, y: Axis, cost: str) -> str:
    upper = [(x.at(p[cost]), y.at(math.inf if p["high"] is None else p["high"])) for p in points]
    lower = [(x.at(p[cost]), y.at(p["median"] if p["low"] is None else p["low"])) for p in points]
    if len(points) == 1:  # a band of one point is a line
        return f'<polyline class="whisker s{i % COLOURS}" points="{joined(upper + lower)}"/>'
    return f'<polygon class="band s{i % COLOURS}" points="{joined(upper + lower[::-1])}"/>'


def _features(demand: Json) -> str:
    return f"{number(demand['num_features'])} features ({demand['source']})"


def _point_told(name: str, point: Json) -> str:
    seconds = point["seconds_per_million"]
    high = "without limit" if point["high"] is None else number(point["high"])
    return (
        f"{name}, {number(point['num_features'])} features: median error {number(point['median'])}, "
        f"from {number(point['low'])} to {high}; {number(point['failures'])} of {number(point['draws'])} draws failed"
        + (f"; {number(seconds)} s per million points" if seconds is not None else "")
    )


def _told(document: Json, drawn: Curves, cost: str) -> str:
    ends = []
    for i, points in sorted(drawn.items()):
        first, last = (
            f"{number(p['median'])} with {number(p['num_features'])} features" for p in (points[0], points[-1])
        )
        ends.append(f"{document['maps'][i]['map']} from {first} to {last}")
    return (
        f"Median errors against {cost}, both on log axes, with a dashed line at eps = {number(document['eps'])}: "
        f"{'; '.join(ends)}. The numbers are in the table below."
    )


def _legend(document: Json, drawn: Curves, demanded: bool, certified: bool) -> str:
    first = min(drawn)
    recommended = document["map"]
    items = [
        f"<li>{swatch(i)} {text_of(document['maps'][i]['map'])}"
        f"{' (recommended)' if document['maps'][i]['map'] == recommended else ''}</li>"
        for i in sorted(drawn)
    ]
    if certified:
        items.append(f"<li>{swatch(first, line=False, ring=True)} in a ring: the size that is certified</li>")
    if demanded:
        items.append(f"<li>{swatch(first, ' theory', line=False)} hollow, at eps: the size a theorem demands</li>")
    return f'<ul class="legend">{"".join(items)}</ul>\n'


def _off_chart(demands: Sequence[Json]) -> str:
    if not demands:
        return ""
    items = "".join(f"<li>{text_of(demand['map'])}: {text_of(_features(demand))}</li>" for demand in demands)
    return f'<p class="soft">Sizes that theorems demand, off the chart:</p>\n<ul class="notes">{items}</ul>\n'


def _numbers(document: Json, curves: Curves) -> str:
    head = (
        '<th scope="col">map</th>'
        + "".join(
            f'<th scope="col" class="number">{name}</th>'
            for name in ("features", "draws", "failures", "5 %", "median", "95 %", "s per million")
        )
        + '<th scope="col">drawn for</th>'
    )
    rows = [
        f'<tr><th scope="row">{text_of(document["maps"][i]["map"])}</th>'
        + "".join(
            f'<td class="number">{number(point[key])}</td>'
            for key in ("num_features", "draws", "failures", "low", "median", "high", "seconds_per_million")
        )
        + f"<td>{'the certificate' if point['certifying'] else 'the search'}</td></tr>"
        for i, points in sorted(curves.items())
        for point in points
    ]
    return folded(table("Errors of every size that was measured", head, rows))
