"""The plots of a certificate: errors against cost, the spectrum of the data, and errors of pairs of points.

Everything is drawn from the document alone (docs/certificate_schema.md). A map is the series of its place in there.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from proofs_check.report.draw import Axis, Bar, Series, chart, swatch
from proofs_check.report.text import Json, number

Curves = Mapping[int, Sequence[Json]]
"""Points of the curves, from small to large sizes, by the places of their maps in the document."""

_RANGE = 10.0  # what lies this many times beyond all medians, or all costs, is cut off


@dataclass(frozen=True)
class Plot:
    """A drawing, which may be empty, samples and words of its legend, its points by map, and what is left out."""

    drawing: str = ""
    legend: Sequence[tuple[Markup, str]] = ()
    points: Sequence[tuple[str, Json]] = ()
    remark: str = ""
    outside: Sequence[str] = ()


# ------------------------------------------------------------------------------------------------- errors against cost


def tradeoff(document: Json) -> Plot:
    """Return error against cost: a curve a map, with the sizes that are certified and those that theory demands."""
    maps, eps = document["maps"], document["eps"]
    order = sorted(range(len(maps)), key=lambda i: maps[i]["map"] == document["map"])  # on top: the best
    curves = {i: points for i in order if (points := curve_of(maps[i]))}
    if not curves:
        return Plot(remark="No size was measured, so there is nothing to draw.")
    timed = _are_timed(curves)
    cost = "seconds_per_million" if timed else "num_features"
    drawn = {i: [point for point in points if point[cost]] for i, points in curves.items()}
    costs = [point[cost] for points in drawn.values() for point in points]
    demands = _demands(document, curves, timed, _RANGE * max(costs, default=0.0))
    upright = _error_axis(eps, [point for points in drawn.values() for point in points])
    if upright is None:
        return Plot(remark="No error above zero was measured, so there is nothing to draw.")
    across = Axis.across([*costs, *(x for _, x, _ in demands if x is not None)], log=True)
    series = [_series(i, maps[i], points, cost, maps[i]["map"] == document["map"]) for i, points in drawn.items()]
    inside = [(i, at, demand) for i, at, demand in demands if at is not None and across.holds(at)]
    outside = [demand for _, at, demand in demands if at is None or not across.holds(at)]
    for i, at, demand in inside:
        series.append(
            Series(i, [(at, eps)], [f"{demand['map']}: a theorem demands {_features(demand)}"], kind="hollow")
        )
    name = "seconds per million points" if timed else "features of a point"
    drawing = chart(
        "tradeoff",
        "Error against cost of the maps",
        _described(document, drawn, name),
        (name, across),
        ("error (median of the draws, and from 5 % to 95 % of them)", upright),
        series,
        limit=(f"eps = {number(eps)}", eps),
    )
    legend = [
        (swatch(i), f"{maps[i]['map']} (recommended)" if maps[i]["map"] == document["map"] else maps[i]["map"])
        for i in sorted(drawn)
    ]
    if any(one.rings for one in series):
        legend.append((swatch(min(drawn), ring=True), "in a ring: the size that is certified"))
    if inside:
        legend.append((swatch(min(drawn), kind="hollow"), "hollow, at eps: the size a theorem demands"))
    untimed = sum(map(len, curves.values())) - len(costs)
    remark = f"{untimed} size(s) without a time are not drawn." if untimed else ""
    listed = [f"{demand['map']}: {_features(demand)}" for demand in outside]
    points = [(maps[i]["map"], point) for i in sorted(curves) for point in curves[i]]
    return Plot(drawing, legend, points, remark, listed)


def curve_of(entry: Json) -> list[Json]:
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
    demands: list[tuple[int, float | None, Json]] = []
    for demand in document["theory"]:
        if demand["num_features"] is None:
            continue
        i, size = places.get(demand["map"], -1), float(demand["num_features"])
        cost = (_time_at(curves[i], size) if timed else size) if i in curves and size > 0 else None
        demands.append((i, cost if cost is not None and cost <= limit else None, demand))
    return demands


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


def _error_axis(eps: float, points: Sequence[Json]) -> Axis | None:
    middle = [*(point["median"] for point in points if point["median"] > 0), eps]
    if len(middle) == 1:
        return None
    least, most = min(middle) / _RANGE, max(middle) * _RANGE
    ends = [point[name] for point in points for name in ("low", "high")]
    return Axis.upright([*middle, *(end for end in ends if end and least <= end <= most)])


def _series(place: int, entry: Json, points: Sequence[Json], cost: str, best: bool) -> Series:
    return Series(
        place,
        [(point[cost], point["median"]) for point in points],
        [_point_described(entry["map"], point) for point in points],
        [(p["median"] if p["low"] is None else p["low"], math.inf if p["high"] is None else p["high"]) for p in points],
        {
            i
            for i, point in enumerate(points)
            if entry["status"] == "certified" and point["num_features"] == entry["num_features"]
        },
        "best" if best else "line",
    )


def _features(demand: Json) -> str:
    return f"{number(demand['num_features'])} features ({demand['source']})"


def _point_described(name: str, point: Json) -> str:
    seconds = point["seconds_per_million"]
    high = "without limit" if point["high"] is None else number(point["high"])
    return (
        f"{name}, {number(point['num_features'])} features: median error {number(point['median'])}, "
        f"from {number(point['low'])} to {high}; {number(point['failures'])} of {number(point['draws'])} draws failed"
        + (f"; {number(seconds)} s per million points" if seconds is not None else "")
    )


def _described(document: Json, drawn: Curves, cost: str) -> str:
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


# ------------------------------------------------------------------------------------------------------------ spectrum


def spectrum(document: Json) -> Plot:
    """Return the eigenvalues on a log axis, with the effective dimensions where they are on the chart.

    Their numbers are on a log axis, too, where a power describes the decay no worse than an exponential does.
    """
    eigenvalues, decay = document["spectrum"]["eigenvalues"], document["spectrum"]["decay"]
    values = [(i + 1, value) for i, value in enumerate(eigenvalues) if value > 0]
    if not values:
        return Plot()
    log = decay.get("power_r2", 0) >= decay.get("exponential_r2", 0)
    description = (
        f"{len(values)} eigenvalues, from {number(values[0][1])} to {number(values[-1][1])}, on a log axis, against "
        f"their number{', on a log axis too' if log else ''}."
    )
    dimensions = effective_dimensions(document)
    drawing = chart(
        "spectrum-plot",
        "Eigenvalues of K / n",
        description,
        ("number of the eigenvalue", Axis.across([1, max(len(eigenvalues), 2)], log=log)),
        ("eigenvalue of K / n", Axis.upright([value for _, value in values])),
        [Series(0, values, [f"{i}: {number(value)}" for i, value in values], kind="dots")],
        guides=[(letter, value, f"{name}: {number(value)}") for letter, name, value in dimensions],
    )
    return Plot(drawing)


def effective_dimensions(document: Json) -> list[tuple[str, str, float]]:
    """Return the effective dimensions, with the letters that stand for them in the plot of the spectrum."""
    dimensions = document["spectrum"]["effective_dimension"]
    return [(chr(ord("a") + i % 26), name, value) for i, (name, value) in enumerate(dimensions.items())]


# ------------------------------------------------------------------------------------------------------ pairs of points

_QUANTILES = {"q50": "median", "q95": "95 %", "q100": "largest"}


def pair_errors(document: Json) -> Plot:
    """Return relative errors of pairs against their kernel distance, with the numbers of pairs in a strip below."""
    bins = [entry for entry in document["pairs"].get("bins", []) if entry["pairs"]]
    errors = [entry[key] for entry in bins for key in _QUANTILES if entry[key]]
    if not errors:
        return Plot()
    ends = [entry[end] for entry in bins for end in ("low", "high")]
    positive = [end for end in ends if end > 0]
    log = len({entry["high"] for entry in bins if entry["high"] > 0}) > 1 and max(ends) > 10 * min(positive)
    title = "Relative error of pairs against kernel distance"
    description = (
        f"Relative errors of pairs of points in {len(bins)} bins of their kernel distance: "
        + "; ".join(f"{name} from {_ends(bins, key)}" for key, name in _QUANTILES.items())
        + ". The numbers are in the table below."
    )
    across = Axis.across(positive if log else [*ends, 0.0], log=log)
    drawing = chart(
        "pairs-plot",
        title,
        description,
        ("kernel distance", across),
        ("relative error", Axis.upright([*errors, document["eps"]], strip=True)),
        [_quantile(i, key, bins, log) for i, key in enumerate(_QUANTILES)],
        limit=(f"eps = {number(document['eps'])}", document["eps"]),
        bars=[Bar(e["low"], e["high"], e["pairs"], f"{number(e['pairs'])} pairs") for e in bins],
        bars_name="number of pairs",
    )
    return Plot(drawing, [(swatch(i), name) for i, name in enumerate(_QUANTILES.values())])


def _quantile(place: int, key: str, bins: Sequence[Json], log: bool) -> Series:
    """Return the errors of one quantile, in the middle of their bins."""
    shown = [entry for entry in bins if entry[key] is not None]
    middles = [
        math.sqrt(e["low"]) * math.sqrt(e["high"]) if log and e["low"] > 0 else (e["low"] + e["high"]) / 2
        for e in shown
    ]
    tips = [
        f"{_QUANTILES[key]} {number(e[key])}, at distances from {number(e['low'])} to {number(e['high'])}"
        for e in shown
    ]
    return Series(place, [(at, e[key]) for at, e in zip(middles, shown, strict=True)], tips)


def _ends(bins: Sequence[Json], key: str) -> str:
    values = [entry[key] for entry in bins if entry[key] is not None]
    return f"{number(values[0])} to {number(values[-1])}" if values else "nothing"
