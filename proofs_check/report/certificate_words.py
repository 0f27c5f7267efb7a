"""What a certificate says in plain words, on its page and in a terminal, from the document alone."""

from typing import Any

from proofs_check.report.text import Json, number

_KEEPS = {
    "distance": "keeps the kernel distance between every two rows to within {}",
    "spectral": "keeps the kernel matrix to within {} (of the largest norm that it could have)",
    "clustering": "lets k-means put at most {} of the rows into another cluster than kernel k-means does",
    "separation": "loses at most {} of the separation between any two classes",
}
_FIXED = ("nystrom", "kernel_pca")  # draw nothing but their landmarks
ERRORS = {
    "distance": "worst relative error of a distance",
    "spectral": "norm of the error, as a share of n sup K(x, x)",
    "clustering": "share of rows in another cluster",
    "separation": "share of a separation that is lost",
    "prediction": "loss less that of the exact method",
}
"""What the error of a draw is, by goal, for an axis."""
TRIVIAL = ("mean", "largest class")
"""The predictors that predict the same for every row, as rows of a table of losses."""
BASES = {
    "draws": "random draws of the map",
    "this data": "a bound that knows these data",
    "worst case": "a theorem for all data",
    "held-out rows": "rows that were held out",
}
SCOPES = {
    "all rows": "all rows",
    "samples": "samples of the rows, a weaker guarantee",
    "rows never seen": "rows never seen",
}


def headline(document: Json) -> str:
    """Return what to use and what that keeps, in one sentence."""
    if document["map"] is None:
        if _predicts_nothing(document):
            target = document["prediction"]["target"]
            return f"No map is recommended: nothing here is shown to predict {target}."
        return "No map could be certified."
    if document["goal"] == "prediction":
        shown = number if document["prediction"]["numeric"] else percent
        keeps = f"{document['goal_words']}, is at most {shown(document['eps'])}"
        return f"Use {document['map']} with {number(document['num_features'])} features: {keeps}."
    features = (
        ""
        if document["num_features"] is None
        else f" with {number(document['num_features'])} features"
    )
    keeps = _KEEPS[document["goal"]].format(percent(document["eps"]))
    return f"Use {document['map']}{features}: it {keeps}."


def sentences(document: Json) -> list[str]:
    """Return how sure that is, or what came nearest to it, and how far the search came."""
    if "prediction" in document:
        return [*document["prediction"]["words"], document["search"]["words"]]
    candidate, found = document["candidate"], ""
    if document["map"] is not None:
        found = _surety(document)
    elif candidate is not None:
        name = f"{candidate['map']} with {number(candidate['num_features'])} features"
        found = f"Best so far: {name}. {candidate['words']}"
    said = [found, *clustered(document), document["search"]["words"]]
    return [text for text in said if text]


def clustered(document: Json) -> list[str]:
    """Return which k-means is certified, and how clusters agree with the classes; [] for other goals."""
    clustering = document.get("clustering")
    if clustering is None:
        return []
    count = f"{number(clustering['num_clusters'])} clusters"
    lines = [
        f"k-means is that of jaxkern.kmeans: {count}, {number(clustering['num_restarts'])} restarts, seeds of its own."
    ]
    names = {
        "exact kernel": "kernel k-means",
        "no kernel": "plain k-means of the same columns",
        "the recommended map": f"k-means of {document['map']}",
    }
    agreement = [
        f"{names[one['name']]} {number(one['adjusted_rand'])}"
        for one in clustering["agreement"]
    ]
    if agreement:
        lines.append(
            f"Adjusted Rand index with the classes (1: the same, 0: chance): {', '.join(agreement)}."
        )
    return lines + clustering["words"]


def _surety(document: Json) -> str:
    entry, most = recommended(document), percent(document["delta"])
    where = f"all {number(document['data']['rows'])} rows"
    if entry["scope"] != "all rows":
        where = f"samples of {number(entry['points_per_draw'])} rows (less than a check on all)"
    if entry["basis"] != "draws":
        return f"By {BASES[entry['basis']]}, at most {most} of its draws do worse, on {where}."
    if (
        document["goal"] != "clustering"
        and entry["map"] in _FIXED
        and entry["sizes"].get("num_landmarks", 0) >= document["data"]["rows"]
    ):
        return f"All rows are its landmarks, so that nothing in it is random; it was checked on {where}."
    return (
        f"Of {number(entry['draws'])} fresh draws, each checked on {where}, {number(entry['failures'])} did worse: so "
        f"at most {most} of all draws do (confidence {percent(document['confidence'], 6)})."
    )


def recommended(document: Json) -> Json:
    """Return the row of the recommended map."""
    return next(entry for entry in document["maps"] if entry["recommended"])


def compared(
    document: Json,
) -> list[tuple[str, Any, Any, Any, Any, Any]]:
    """Return the map, the exact kernel and no kernel: numbers for each row, error, accuracy, seconds per million rows.

    The last entry is the adjusted Rand index with the classes. There is none where there is nothing to compare with.
    """
    right = {
        row["name"]: row["accuracy"] for row in document["held_out"].get("rows", [])
    }
    agreement = document.get("clustering", {}).get("agreement", [])
    rand = {row["name"]: row["adjusted_rand"] for row in agreement}
    entries = [(one["name"], one["name"], one) for one in document["comparison"]]
    if document["map"] is not None and entries:
        entry = recommended(document)
        error = {"error": (entry["error"] or {}).get("median")}
        entries.insert(0, (entry["map"], "the recommended map", {**entry, **error}))
    return [
        (
            shown,
            one["num_features"],
            one["error"],
            right.get(name),
            one["seconds_per_million"],
            rand.get(name),
        )
        for shown, name, one in entries
    ]


def uncertified(document: Json) -> list[tuple[str, str, str]]:
    """Return status, names and words of the maps that are not certified; those of which the same is said are one."""
    groups: dict[tuple[str, str], list[str]] = {}
    for entry in document["maps"]:
        if entry["status"] != "certified":
            groups.setdefault((entry["status"], entry["words"]), []).append(
                entry["map"]
            )
    return [
        (status, ", ".join(names), words) for (status, words), names in groups.items()
    ]


def _predicts_nothing(document: Json) -> bool:
    """Tell whether the exact method is not shown to be better than the mean or the largest class."""
    rows = document["prediction"]["rows"] if "prediction" in document else []
    return any(row["name"] in TRIVIAL and row["low"] <= 0 for row in rows)


def prediction_columns(document: Json) -> tuple[str, ...]:
    """Return the names of the columns of `predicted`: the loss has its unit in its name."""
    numeric = document["prediction"]["numeric"]
    loss = "squared error / variance" if numeric else "errors"
    return "method", "features", loss, "excess", "at least", "at most"


def predicted(document: Json) -> list[tuple[str, ...]]:
    """Return a row for each method that was fitted; shares are per cent if classes are predicted."""
    shown, rows = number if document["prediction"]["numeric"] else percent, []
    for one in document["prediction"]["rows"]:
        mark = (
            " (recommended)"
            if (one["name"], one["sizes"]) == (document["map"], document["sizes"])
            else ""
        )
        parts = (shown(one[key]) for key in ("loss", "excess", "low", "high"))
        rows.append(
            (
                one["name"] + mark,
                number(one["num_features"]),
                *parts,
            )
        )
    return rows


def reasons(document: Json) -> list[str]:
    """Return why this map or none, without what the rows of the maps and `uncertified` say."""
    if "prediction" in document:
        return []  # `sentences` has them
    said = [
        entry["words"].rstrip(".")
        for entry in document["maps"]
        if entry["status"] != "certified"
    ]
    said.append(" times as long.")
    return [
        reason
        for reason in document["reasons"]
        if not any(words in reason for words in said)
    ]


def demands(document: Json) -> tuple[list[Json], list[tuple[str, str]]]:
    """Return the sizes that statements demand of the maps that were tried, and names and words where there is none."""
    names = {entry["map"] for entry in document["maps"]}
    mine = [demand for demand in document["theory"] if demand["map"] in names]
    silent: dict[str, list[str]] = {}
    for demand in mine:
        if demand["sizes"] is None:
            silent.setdefault(demand["words"], []).append(demand["map"])
    return [d for d in mine if d["sizes"] is not None], [
        (", ".join(maps), words) for words, maps in silent.items()
    ]


def percent(share: float | None, digits: int = 3) -> str:
    """Return a share as a percentage, a dash for none."""
    return "–" if share is None else f"{number(100.0 * share, digits)} %"


def sizes_of(sizes: Json | None) -> str:
    """Return sizes for a reader, "" for none."""
    return ", ".join(f"{name} = {number(size)}" for name, size in (sizes or {}).items())


def basis_of(entry: Json) -> str:
    """Return by what sizes are certified, "" where they are not."""
    return "" if entry["basis"] is None else BASES[entry["basis"]]


def scope_of(entry: Json) -> str:
    """Return what a guarantee is about, "" where nothing is certified."""
    points = entry["points_per_draw"] if entry["scope"] == "samples" else None
    return SCOPES.get(entry["scope"], "") + (
        f" ({number(points)} a draw)" if points is not None else ""
    )
