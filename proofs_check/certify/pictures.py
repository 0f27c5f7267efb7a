"""The pictures of a certificate: SVG by matplotlib, the same bytes for the same certificate.

Figures are drawn without pyplot, so that no display and no figure of the caller is touched.
"""

import io
import warnings
from dataclasses import dataclass
from typing import Any

from proofs_check.engine.reading import plain
from proofs_check.report.text import number

STYLE = {
    # Letters as letters: smaller, and readable by machines.
    "svg.fonttype": "none",
    # Without it, names inside of the SVG are random.
    "svg.hashsalt": "certificate",
    "font.size": 9.0,
    # Axes say 0.002 and 1000, not powers of ten.
    "axes.formatter.min_exponent": 5,
}
MARKERS = "osD^vPX*"
LONGEST_NAME = 40
"""Characters of a name in a picture."""


@dataclass(frozen=True)
class Picture:
    """The name of a file, what it shows in words, and SVG."""

    file: str
    caption: str
    svg: str


def pictures(certificate: Any) -> list[Picture]:
    """Return the pictures for which a certificate has numbers. Raises ImportError without matplotlib."""
    import matplotlib

    clustering, prediction = certificate.clustering, certificate.prediction
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        # Letters that the font lacks, and a range of numbers without a round tick, are no news to a user.
        warnings.simplefilter("ignore")
        drawn = [_errors(certificate)]
        if clustering and clustering.picture:
            drawn.append(_clusters(clustering))
        if prediction and prediction.picture:
            drawn.append(_predictions(prediction))
        if prediction and prediction.confusion:
            drawn.append(_confusion(prediction))
    return [picture for picture in drawn if picture is not None]


def _errors(certificate: Any) -> Picture | None:
    """Return error against features, a line for each map; of a prediction, loss above the exact method."""
    axes = _axes("features", "error")
    names = []
    for row in certificate.maps:
        points = _points(certificate, row)
        if not points:
            continue
        features, lows, errors, highs = zip(*points, strict=True)
        color = f"C{len(names) % 10}"
        layer = 4 if row.recommended else 2
        style = {"color": color, "lw": layer / 2, "zorder": layer}
        axes.vlines(features, lows, highs, **style)
        axes.plot(features, errors, label=_text(row.map), **style)
        fills = [color if count == row.num_features else "white" for count in features]
        axes.scatter(features, errors, c=fills, edgecolors=color, zorder=layer + 1)
        names.append(row.map)
    if not names:
        return None
    axes.axhline(certificate.eps, color="black", ls="--", label="eps")
    axes.set_xscale("log")
    axes.set_yscale("log")
    bars = "5 % to 95 % of the draws"
    if certificate.prediction is not None:
        # An excess may be negative, for which a log axis has no place.
        axes.set_yscale("linear")
        axes.set_ylabel("loss above the exact method")
        bars = "limits for rows never seen"
    # Below the axes: beside them it would leave a phone too little for the lines.
    axes.figure.legend(loc="outside lower center", ncols=3)
    signs = f"Bars: {bars}. Filled: certified. Thick: recommended. Dashed: eps."
    caption = f"Error against features of {', '.join(names)}. {signs}"
    return _picture("error.svg", caption, axes)


def _points(certificate: Any, row: Any) -> list[tuple[float, ...]]:
    """Return (features, low, error, high) for each size of a map."""
    points = {}
    if certificate.prediction is not None:
        for method in certificate.prediction.rows:
            if method.name == row.map:
                errors = (method.low, method.excess, method.high)
                points[method.num_features] = errors
    # Of a size that was drawn twice, the draws that certify come last, and are shown.
    for point in row.curve:
        if point.high is not None:
            points[point.num_features] = (point.low, point.median, point.high)
    return [(features, *points[features]) for features in sorted(points)]


def _clusters(clustering: Any) -> Picture:
    """Return rows in the plane of the two leading components, by cluster."""
    axes = _axes("first component of the features", "second component")
    clusters = {row.cluster for row in clustering.picture}
    for cluster in sorted(clusters):
        rows = [(row.x, row.y) for row in clustering.picture if row.cluster == cluster]
        marker = MARKERS[cluster % len(MARKERS)]
        axes.scatter(*zip(*rows, strict=True), s=12, marker=marker)
    count = number(len(clustering.picture))
    caption = f"{count} rows by their leading components, in {len(clusters)} clusters."
    return _picture("clusters.svg", caption, axes)


def _predictions(prediction: Any) -> Picture:
    """Return predicted against true numbers of held-out rows."""
    axes = _axes(f"true {prediction.target}", f"predicted {prediction.target}")
    truth, guesses = zip(*prediction.picture, strict=True)
    axes.axline((truth[0], truth[0]), slope=1, color="black", ls="--")
    axes.scatter(truth, guesses, s=12)
    caption = (
        f"Predicted against true {prediction.target} of held-out rows. Dashed: equal."
    )
    return _picture("prediction.svg", caption, axes)


def _confusion(prediction: Any) -> Picture:
    """Return held-out rows by true and predicted class as a matrix with numbers."""
    axes = _axes("predicted class", "true class")
    # Twice the largest count, so that black numbers can be read on every colour.
    most = 2 * max(map(max, prediction.confusion))
    # No imshow: it would put a bitmap into the SVG.
    axes.pcolormesh(prediction.confusion, cmap="Blues", vmin=0, vmax=most)
    names = [_text(name) for name in prediction.classes]
    middles = [place + 0.5 for place in range(len(names))]
    axes.set_xticks(middles, names, rotation=45, ha="right")
    axes.set_yticks(middles, names)
    axes.invert_yaxis()
    for y, counts in zip(middles, prediction.confusion, strict=True):
        for x, count in zip(middles, counts, strict=True):
            axes.text(x, y, str(count), ha="center", va="center")
    caption = f"Held-out rows by true and predicted {prediction.target}."
    return _picture("confusion.svg", caption, axes)


def _axes(across: str, up: str) -> Any:
    """Return the axes of a new figure with these names."""
    from matplotlib.figure import Figure

    # So small that letters of 9 points can be read on a phone, whose screen is 5 inches of the page wide.
    figure = Figure(figsize=(5.5, 3.7), layout="constrained")
    return figure.subplots(subplot_kw={"xlabel": _text(across), "ylabel": _text(up)})


def _text(name: str) -> str:
    """Return a name as short as an axis is, in signs that matplotlib has: half a character raises TypeError."""
    # A dollar sign would begin a formula, and a wrong formula raises ValueError.
    return plain(name, LONGEST_NAME).replace("$", r"\$")


def _picture(file: str, caption: str, axes: Any) -> Picture:
    """Return the figure of axes as a picture."""
    content = io.StringIO()
    # The date would be another one in every run.
    axes.figure.savefig(content, format="svg", metadata={"Date": None})
    return Picture(file, caption, content.getvalue())
