"""The plots of a certificate: errors against features, the spectrum of the data, and errors of pairs of points.

Everything is drawn from the document alone (docs/certificate_schema.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from proofs_check.report.certificate_words import ERRORS
from proofs_check.report.draw import Axis, Series, chart
from proofs_check.report.text import Json, number


@dataclass(frozen=True)
class Plot:
    """A drawing, which may be empty, what is said below it, and its points by map."""

    drawing: Markup | str = ""
    caption: str = ""
    points: Sequence[tuple[str, Json]] = ()


def tradeoff(document: Json) -> Plot:
    """Return error against features: a line a map, in which what is certified is filled and all else is hollow."""
    rows: dict[str, list[Json]] = {}
    for entry in document["maps"]:
        rows.setdefault(entry["map"], []).append(entry)
    curves = {
        name: points for name, entries in rows.items() if (points := curve_of(entries))
    }
    every = [point for points in curves.values() for point in points]
    medians = [point["median"] for point in every if point["median"] > 0]
    if not medians:
        return Plot()
    upright = Axis.upright([*medians, document["eps"]])
    best = document["map"]
    series = [
        _series(i, rows[name], curves[name], name == best)
        for i, name in enumerate(rows)
        if name in curves
    ]
    drawing = chart(
        "tradeoff",
        "Error against the number of features",
        f"Median errors of {', '.join(curves)}; the numbers are in the table below.",
        (
            "features: numbers for each row (log scale)",
            Axis.across([p["num_features"] for p in every], log=True),
        ),
        (f"error: {ERRORS[document['goal']]} (log scale)", upright),
        sorted(
            series, key=lambda one: one.kind == "best"
        ),  # on top: the recommended map
        limit=("eps", document["eps"]),
    )
    draws, edge = (
        [point["draws"] for point in every],
        sum(not upright.holds(point["median"]) for point in every),
    )
    beyond = (
        f" Errors of zero or far beyond the others are at the edge: {edge}."
        if edge
        else ""
    )
    caption = (
        f"Each dot is the median error of {' to '.join(map(number, sorted({min(draws), max(draws)})))} draws of a map "
        "with one number of features, on all rows or a sample. Filled: certified, with a bar from 5 % to 95 % of the "
        "draws. Hollow: tried, and no result. Dashed: eps, the error that is allowed. Lines only join the dots of a "
        f"map; nothing between them was measured.{beyond}"
    )
    return Plot(
        drawing,
        caption,
        [(name, point) for name, points in curves.items() for point in points],
    )


def curve_of(entries: Sequence[Json]) -> list[Json]:
    """Return one point for each number of features, from few to many, each with whether it is `certified`.

    Of several points, one of the draws that certify is taken before the others, then one of the largest size.
    """
    certified = {
        entry["num_features"] for entry in entries if entry["status"] == "certified"
    }
    points = [
        point
        for entry in entries
        for point in entry["curve"]
        if point["median"] is not None
    ]
    points.sort(key=lambda point: (point["certifying"], point["size"], point["draws"]))
    best = {point["num_features"]: point for point in points if point["num_features"]}
    return [{**best[size], "certified": size in certified} for size in sorted(best)]


def _series(
    i: int, entries: Sequence[Json], points: Sequence[Json], best: bool
) -> Series:
    name, statuses = entries[0]["map"], {entry["status"] for entry in entries}
    certified = "certified" in statuses
    reason = (
        ""
        if certified
        else ", time ended"
        if "out of time" in statuses
        else ", not certified"
    )
    return Series(
        i,
        [(point["num_features"], point["median"]) for point in points],
        [
            f"{name}, {number(p['num_features'])} features: median {number(p['median'])} of {number(p['draws'])}"
            for p in points
        ],
        label=name + reason,
        hollow=[place for place, point in enumerate(points) if not point["certified"]],
        ranges={
            place: (
                point["low"] or 0.0,
                math.inf if point["high"] is None else point["high"],
            )
            for place, point in enumerate(points)
            if point["certified"]
        },
        kind="best" if best else "line" if certified else "tried",
    )


def spectrum(document: Json) -> Plot:
    """Return the eigenvalues on a log axis, with the effective dimensions where they are on the chart.

    Their numbers are on a log axis, too, where a power describes the decay no worse than an exponential does.
    """
    found, eps = document["spectrum"], document["eps"]
    values = [
        (i + 1, value) for i, value in enumerate(found["eigenvalues"]) if value > 0
    ]
    if not values:
        return Plot()
    log = found["decay"].get("power_r2", 0) >= found["decay"].get("exponential_r2", 0)
    scale = " (log scale)" if log else ""
    upright = Axis.upright([value for _, value in values])
    drawing = chart(
        "spectrum-plot",
        "Eigenvalues of K / n",
        f"{len(values)} eigenvalues, from {number(values[0][1])} to {number(values[-1][1])}, on a log axis, against "
        f"their number{', on a log axis too' if log else ''}.",
        (
            f"number of the eigenvalue{scale}",
            Axis.across([1, max(len(found["eigenvalues"]), 2)], log=log),
        ),
        ("eigenvalue of K / n (log scale)", upright),
        [
            Series(
                0, values, [f"{i}: {number(value)}" for i, value in values], kind="dots"
            )
        ],
        limit=("eps", eps) if upright.holds(eps) else None,
        guides=[
            (f"{name} = {number(value)}", value)
            for name, value in found["effective_dimension"].items()
        ],
    )
    return Plot(
        drawing,
        "Each dot is an eigenvalue. The lines that rise from the axis are effective dimensions: how many features "
        "would carry the spectrum, by a smooth count in place of a threshold.",
    )


_QUANTILES = {"q50": "median", "q95": "95 % of the pairs", "q100": "largest"}


def pair_errors(document: Json) -> Plot:
    """Return relative errors of pairs against their kernel distance."""
    bins = [entry for entry in document["pairs"].get("bins", []) if entry["pairs"]]
    errors = [entry[key] for entry in bins for key in _QUANTILES if entry[key]]
    if not errors:
        return Plot()
    ends = [entry[end] for entry in bins for end in ("low", "high")]
    across = Axis.across([end for end in ends if end > 0] or [1.0], log=True)
    drawing = chart(
        "pairs-plot",
        "Relative error of pairs against kernel distance",
        f"Median, 95 % quantile and largest error in {len(bins)} bins; the numbers are in the table below.",
        ("kernel distance of the pair (log scale)", across),
        (
            "relative error of the distance (log scale)",
            Axis.upright([*errors, document["eps"]]),
        ),
        [_quantile(i, key, bins) for i, key in enumerate(_QUANTILES)],
        limit=("eps", document["eps"]),
    )
    caption = (
        "Each dot stands for the pairs of one bin of distances, at its middle. "
        "Dashed: eps, the error that is allowed."
    )
    return Plot(drawing, caption)


def _quantile(place: int, key: str, bins: Sequence[Json]) -> Series:
    """Return the errors of one quantile, in the middle of their bins."""
    shown = [entry for entry in bins if entry[key] is not None]
    middles = [
        math.sqrt(e["low"]) * math.sqrt(e["high"]) or (e["low"] + e["high"]) / 2
        for e in shown
    ]
    tips = [
        f"{number(e[key])} at distances from {number(e['low'])} to {number(e['high'])}, {number(e['pairs'])} pairs"
        for e in shown
    ]
    return Series(
        place,
        [(at, e[key]) for at, e in zip(middles, shown, strict=True)],
        tips,
        _QUANTILES[key],
    )
