"""A certificate as one self-contained HTML page, made from its JSON document alone (docs/certificate_schema.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proofs_check.engine import files
from proofs_check.report import certificate_document
from proofs_check.report.certificate_plots import effective_dimensions, pair_errors, spectrum, tradeoff
from proofs_check.report.page import Table, badge, page
from proofs_check.report.text import Json, number, time_of, visible

BASES = {
    "draws": "random draws of the map",
    "this data": "a bound that knows these data",
    "worst case": "a theorem for all data",
}
SCOPES = {"all rows": "all rows", "samples": "samples of the rows, a weaker guarantee"}
_ANSWERS = {True: ("yes", "good"), False: ("no", "bad"), None: ("cannot tell", "open")}
_TONES = {"certified": "good", "not certified": "bad", "out of time": "open", "not for this goal": "empty"}


def write(folder: Path, document: Mapping[str, Any]) -> None:
    """Write certificate.html and then certificate.json, each in one step. Raises OSError."""
    files.write(folder / "certificate.html", render(document))
    certificate_document.write(folder / "certificate.json", document)


def render(document: Json) -> str:
    """Return the page of a certificate that `certificate_document.find_fault` accepts."""
    commands = document["commands"]
    named = {
        "This certificate again": commands["again"],
        "Draw the map in Python": commands["python"],
        "Load the map that was saved": commands["load"],
    }
    sections = {
        "run": any(named.values()) and "What to run",
        "maps": document["maps"] and "The maps",
        "tradeoff": "Error against cost",
        "theory": "What theory demands",
        "spectrum": "The spectrum of the data",
        "pairs": document["pairs"] and "Errors of pairs of points",
        "classes": document.get("classes") and "Separation of the classes",
        "hypotheses": document["hypotheses"] and "What the theorems ask of the data",
        "data": "The data",
        "about": "About this run",
    }
    return page(
        "certificate.html",
        title=f"Certificate: {document['map'] or 'no map'} for {document['data']['source']}",
        links=[(f"part-{anchor}", name) for anchor, name in sections.items() if name],
        d=document,
        sizes_of=sizes_of,
        sentence=_sentence,
        asked=_asked(document),
        commands=[(name, command) for name, command in named.items() if command],
        maps=_maps(document),
        evidence=_evidence(document),
        in_words=[(entry["map"], _status(entry) + " " + visible(entry["words"])) for entry in document["maps"]],
        tradeoff=tradeoff(document),
        theory=_theory(document),
        spectrum=spectrum(document),
        dimensions=[(f"{letter}: {name}", number(value)) for letter, name, value in effective_dimensions(document)],
        pairs=pair_errors(document),
        classes=_classes(document),
        hypotheses=_hypotheses(document),
        data=_data(document["data"]),
        left_out=_left_out(document),
        columns=", ".join(document["data"]["columns"]),
        about=_about(document),
    )


def sizes_of(sizes: Json | None) -> str:
    """Return sizes for a reader, "" for none."""
    return ", ".join(f"{name} = {number(size)}" for name, size in (sizes or {}).items())


def basis_of(entry: Json) -> str:
    """Return by what sizes are certified, "" where they are not."""
    return "" if entry["basis"] is None else BASES[entry["basis"]]


def scope_of(entry: Json) -> str:
    """Return what a guarantee is about, "" where nothing is certified."""
    if entry["scope"] is None:
        return ""
    points = entry["points_per_draw"]
    rows = f" ({number(points)} a draw)" if entry["scope"] == "samples" and points is not None else ""
    return f"{SCOPES[entry['scope']]}{rows}"


def _sentence(words: str | None) -> str:
    return words[0].upper() + words[1:] if words else ""


def _status(entry: Json) -> Any:
    return badge(entry["status"], tone=_TONES[entry["status"]])


def _asked(document: Json) -> list[tuple[str, Any]]:
    asked = (
        f"an error of at most {number(document['eps'])}, except with probability at most {number(document['delta'])}; "
        f"all certificates together with confidence {number(document['confidence'], 6)}"
    )
    scale = f"lengthscale {number(document['lengthscale'], 6)} ({document['lengthscale_from']})"
    return [
        ("guarantee", document["guarantee"] or "None: no map could be certified."),
        ("certified by", basis_of(document) or None),
        ("holds for", scope_of(document) or None),
        ("goal", f"{document['goal']}: {document['goal_words']}"),
        ("asked for", asked),
        ("kernel", f"{document['kernel']}, {scale}"),
    ]


def _maps(document: Json) -> Table:
    rows = []
    for entry in document["maps"]:
        name, error = entry["map"], entry["error"] or {}
        interval = f"{number(error['median'])} [{number(error['low'])}, {number(error['high'])}]" if error else None
        rows.append(
            (
                f"{name} (recommended)" if name == document["map"] else name,
                _status(entry),
                sizes_of(entry["sizes"]) or None,
                entry["num_features"],
                interval,
                error.get("largest"),
                entry["seconds_per_million"],
                _over(entry["map_bytes"], 1e6),
                _over(entry["feature_bytes_per_million"], 1e9),
            )
        )
    columns = "map|status|sizes|features|median error|largest|s per million|MB of the map|GB of features per million"
    caption = "What was found of every map: size, error, and cost for a million points"
    return Table(caption, columns, rows, numbers=range(3, 9))


def _evidence(document: Json) -> Table:
    rows = [
        (
            entry["map"],
            basis_of(entry) or None,
            scope_of(entry) or None,
            *(entry[name] for name in ("draws", "failures", "rate_upper", "alpha")),
        )
        for entry in document["maps"]
        if entry["basis"] is not None or entry["draws"]
    ]
    columns = "map|certified by|holds for|draws|failures|upper limit|at level"
    return Table("How the sizes are certified", columns, rows, numbers=range(3, 7))


def _over(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _theory(document: Json) -> Table:
    rows = [
        (
            demand["map"],
            badge("no size", tone="empty") if demand["sizes"] is None else sizes_of(demand["sizes"]),
            demand["num_features"],
            None if demand["sizes"] is None else "all data" if demand["worst_case"] else "these data",
            demand["source"],
            demand["words"],
        )
        for demand in document["theory"]
    ]
    columns = "map|sizes|features|for|source|in words"
    return Table("Sizes that valid statements demand", columns, rows, numbers=(2,), kind="wordy")


def _classes(document: Json) -> Table:
    names = ("first", "second", "exact", "kept")
    rows = [tuple(entry[name] for name in names) for entry in document.get("classes", [])]
    caption = "Separation of two classes with the exact kernel, and the share of it that one draw of the map keeps"
    return Table(caption, "class|and class|separation|share kept", rows, numbers=(2, 3))


def _hypotheses(document: Json) -> Table:
    rows = []
    for entry in document["hypotheses"]:
        answer, tone = _ANSWERS[entry["holds"]]
        met = badge(answer, tone=tone)
        rows.append((entry["statement"], entry["asks"], met, entry["found"], entry["needed"]))
    caption = "Hypotheses of the numbered statements, on these data"
    return Table(caption, "statement|it asks|met|found|rows needed", rows, numbers=(4,), kind="wordy")


def _data(data: Json) -> list[tuple[str, Any]]:
    return [
        ("source", data["source"]),
        ("rows", number(data["rows"])),
        ("columns", number(data["num_columns"])),
        ("standardized", "yes, every column to mean 0 and deviation 1" if data["standardized"] else "no"),
        ("duplicate rows", number(data["duplicate_rows"])),
        ("pairs at distance zero", None if data["zero_pairs"] is None else number(data["zero_pairs"])),
    ]


def _left_out(document: Json) -> Table:
    rows = list(document["data"]["left_out"].items())
    return Table("Columns that are left out", "column|why", rows, kind="narrow")


def _about(document: Json) -> list[tuple[str, Any]]:
    run, seed = document["run"], document["seed"]
    return [
        ("seed", "none: the key was not made of one" if seed is None else seed),
        ("confidence", f"{number(document['confidence'], 6)}, of all certificates on this page together"),
        ("precision", document["dtype"]),
        ("time", f"{number(run['seconds'])} s, of {number(run['minutes_allowed'])} min allowed"),
        ("started", time_of(run["started"])),
        ("device", run["device"]),
        ("made by", f"jaxkern {document['made_by']}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in run["versions"].items()) or None),
    ]
