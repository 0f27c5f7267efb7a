"""What a certificate says in plain words, in the order in which a page and a terminal say it.

Every function takes a `Certificate`. Numbers are those of the certificate; only per cent and R^2 are computed.
"""

from typing import Any

from proofs_check.engine.reading import listed
from proofs_check.report.text import number

KEEPS = {
    "distance": "keeps the kernel distance of every two rows to within {}",
    "spectral": "keeps the kernel matrix to within {} of n sup K(x, x)",
    "clustering": "makes k-means put at most {} of the rows into another cluster than kernel k-means does",
    "separation": "loses at most {} of the separation of the means of any two classes",
    "prediction": "predicts with a loss of at most {} more than the exact kernel method",
}
BASES = {
    "draws": "fresh draws of the map",
    "this data": "a bound that knows these data",
    "worst case": "a theorem for all data",
    "held-out rows": "rows that were held out",
}
TONES = {
    "certified": "good",
    "not certified": "bad",
    "out of time": "open",
    "not for this goal": "empty",
}


def summary(certificate: Any) -> list[str]:
    """Return the sentences above the table of maps; the first is what to do if the time ran out."""
    lines = [next_step(certificate), question(certificate), headline(certificate)]
    lines.append(certificate.guarantee)
    if certificate.prediction is not None:
        lines += certificate.reasons
    elif certificate.map is None:
        # A sentence for each map: the first one is enough here.
        lines += certificate.reasons[:1]
    lines.append(rows_and_columns(certificate.data))
    return [line for line in lines if line]


def next_step(certificate: Any) -> str:
    """Return what to do if the time ran out, and "" if it did not."""
    if certificate.search.finished:
        return ""
    return (
        f"{certificate.search.words} Run the same command again with a longer --time and --output DIR --overwrite, "
        "where DIR is the folder of this certificate; it goes on from here. Or ask for a larger --eps or fewer --maps."
    )


def question(certificate: Any) -> str:
    """Return what was asked: goal, eps, delta and confidence."""
    keeps = KEEPS.get(certificate.goal, "has an error of at most {}")
    # The loss of numbers is no share: per cent would say something else.
    eps = number(certificate.eps, 10)
    draws = ""
    if certificate.prediction is None:
        eps = percent(certificate.eps)
        draws = f", in all but {percent(certificate.delta)} of its draws"
    confidence = percent(certificate.confidence)
    return (
        f"Asked: a map that {keeps.format(eps)}{draws}, with confidence {confidence}."
    )


def headline(certificate: Any) -> str:
    """Return what to use."""
    if certificate.map is None:
        return "No map is certified."
    return f"Use {certificate.map} with {number(certificate.num_features)} features."


def rows_and_columns(data: Any) -> str:
    """Return how many rows there are, the columns that were used, and those that were not."""
    rows = f"{number(data.rows)} rows of {data.source}"
    text = f"{rows}, {number(data.num_columns)} columns: {listed(data.columns)}"
    if data.standardized:
        text += ", brought to mean 0 and standard deviation 1"
    if data.left_out:
        text += f". Left out: {listed(data.left_out)}"
    return f"{text}."


def table(certificate: Any) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns of the table of maps, and its rows.

    Of a prediction, methods without a map come first; then the recommended map, and the others.
    """
    part = certificate.prediction
    columns = ["error", "failed draws"]
    rows = []
    if part is not None:
        columns = ["R^2" if part.numeric else "errors", "excess"]
        for method in part.rows:
            if method.sizes is None:
                size = number(method.num_features)
                rows.append([method.name, "–", size, "–", *_losses(part, method)])
    for row in sorted(certificate.maps, key=lambda row: not row.recommended):
        name = f"{row.map} (recommended)" if row.recommended else row.map
        cost = number(row.cost and round(row.cost))
        results = _results(part, row)
        rows.append([name, row.status, number(row.num_features), cost, *results])
    return ["map", "status", "features", "cost", *columns], rows


def _results(part: Any, row: Any) -> list[str]:
    """Return the median error and the failures of a certified map, or its losses."""
    if part is not None:
        for method in part.rows:
            if (method.name, method.sizes) == (row.map, row.sizes):
                return _losses(part, method)
    if row.error is None:
        return ["–", "–"]
    failures = f"{number(row.failures)} of {number(row.draws)}"
    return [number(row.error.median), failures]


def _losses(part: Any, method: Any) -> list[str]:
    """Return the quality of a fitted method, and the limits of its excess."""
    if not part.numeric:
        limits = f"{percent(method.low, 3)} to {percent(method.high, 3)}"
        return [percent(method.loss, 3), limits]
    # A squared error means little to a reader without the variance beside it.
    baseline = sum(other.loss for other in part.rows if other.name == "mean")
    quality = number(1 - method.loss / baseline if baseline else None)
    return [quality, f"{number(method.low)} to {number(method.high)}"]


def percent(share: float, digits: int = 10) -> str:
    """Return a share as a percentage. Ten digits, because 99.9999 % must not be rounded to 100 %."""
    return f"{number(100.0 * share, digits)} %"


def sizes_of(sizes: dict[str, int] | None) -> str:
    """Return sizes for a reader."""
    return ", ".join(f"{name} = {number(size)}" for name, size in (sizes or {}).items())
