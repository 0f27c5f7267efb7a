"""A certificate as one self-contained HTML page: no script, no network, light and dark, for a phone and for a keyboard.

`render(document)` makes the page from the JSON document alone (docs/certificate_schema.md). Everything that comes from
the document is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

from proofs_check.certify._plots import effective_dimensions, pair_errors, spectrum
from proofs_check.certify._tradeoff import tradeoff
from proofs_check.report.html._parts import Json, badge, facts, number, page_of, table, text_of, time_of

BASES = {
    "draws": "random draws of the map",
    "this data": "a bound that knows these data",
    "worst case": "a theorem for all data",
}
SCOPES = {
    "all rows": "all rows",
    "samples": "samples of the rows, a weaker guarantee",
}
_MEDIAN = '<p class="soft">The median error is over the draws at this size, with its 95 % interval.</p>\n'
_UPPER = (
    '<p class="soft">The upper limit is on the failure probability over the draw of the map; it is too low with at '
    "most the probability at its level.</p>\n"
)
_ANSWERS = {True: ("yes", "good"), False: ("no", "bad"), None: ("cannot tell", "open")}
_NUMBER = ' class="number"'
_STATUS_TONES = {"certified": "good", "not certified": "bad", "out of time": "open", "not for this goal": "empty"}


def render(document: Json) -> str:
    """Return the page of a certificate that `proofs_check.certify._document.find_fault` accepts."""
    style = resources.files("proofs_check.report").joinpath("templates/page.css").read_text(encoding="utf-8")
    style += resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    sections = [
        ("run", "What to run", _commands(document)),
        ("maps", "The maps", _maps(document)),
        ("tradeoff", "Error against cost", tradeoff(document)),
        ("theory", "What theory demands", _theory(document)),
        ("spectrum", "The spectrum of the data", _spectrum(document)),
        ("pairs", "Errors of pairs of points", _pairs(document)),
        ("classes", "Separation of the classes", _classes(document)),
        ("hypotheses", "What the theorems ask of the data", _hypotheses(document)),
        ("data", "The data", _data(document)),
        ("about", "About this run", _about(document)),
    ]
    shown = [(f"part-{anchor}", name, content) for anchor, name, content in sections if content]
    return page_of(
        title=f"Certificate: {_title(document)}",
        style=style,
        header=_headline(document),
        links=[(anchor, name) for anchor, name, _ in shown],
        main="".join(_section(*section) for section in shown),
    )


def _section(anchor: str, name: str, content: str) -> str:
    head = f'<h2 id="{anchor}-h">{name}</h2>\n'
    return f'<section id="{anchor}" aria-labelledby="{anchor}-h">\n{head}{content}</section>\n'


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


def _title(document: Json) -> str:
    return f"{text_of(document['map'] or 'no map')} for {text_of(document['data']['source'])}"


def _headline(document: Json) -> str:
    name, data = document["map"], document["data"]
    if name is None:
        result = '<p class="result open">No map could be certified.</p>\n'
    else:
        features = "" if document["num_features"] is None else f": {number(document['num_features'])} features"
        result = (
            f'<p class="result good">{text_of(name)}{features}</p>\n'
            f"<p>Draw it with <strong>{text_of(sizes_of(document['sizes']))}</strong>.</p>\n"
        )
    scale = f"lengthscale {number(document['lengthscale'], 6)} ({text_of(document['lengthscale_from'])})"
    guarantee = text_of(document["guarantee"]) if document["guarantee"] else "None: no map could be certified."
    asked = (
        f"an error of at most {number(document['eps'])}, except with probability at most {number(document['delta'])}; "
        f"all certificates together with confidence {number(document['confidence'], 6)}"
    )
    items = "".join(f"<li>{text_of(reason)}</li>" for reason in document["reasons"])
    return (
        f"<h1>A feature map for {text_of(data['source'])}</h1>\n{result}"
        + facts(
            [
                ("guarantee", guarantee),
                ("certified by", basis_of(document) or None),
                ("holds for", scope_of(document) or None),
                ("goal", f"{text_of(document['goal'])}: {text_of(document['goal_words'])}"),
                ("asked for", asked),
                ("kernel", f"{text_of(document['kernel'])}, {scale}"),
            ]
        )
        + (f'<p>{"Why this map" if name else "Why none"}:</p>\n<ul class="notes">{items}</ul>\n' if items else "")
    )


def _commands(document: Json) -> str:
    commands = document["commands"]
    named = (
        ("This certificate again", commands["again"]),
        ("Draw the map in Python", commands["python"]),
        ("Load the map that was saved", commands["load"]),
    )
    return "".join(
        f'<h3>{name}</h3>\n<pre class="command"><code>{text_of(command)}</code></pre>\n'
        for name, command in named
        if command
    )


def _head(names: str, figures: Sequence[int]) -> str:
    """Return the head of a table, of names between bars; the columns at the places `figures` hold numbers."""
    return "".join(
        f'<th scope="col"{_NUMBER if i in figures else ""}>{name}</th>' for i, name in enumerate(names.split("|"))
    )


def _row(cells: Sequence[str], figures: Sequence[int]) -> str:
    """Return a row of a table, from escaped cells."""
    first, *others = cells
    return (
        f'<tr><th scope="row">{first}</th>'
        + "".join(f"<td{_NUMBER if i in figures else ''}>{cell}</td>" for i, cell in enumerate(others, 1))
        + "</tr>"
    )


def _table(
    caption: str, names: str, rows: Sequence[Sequence[str]], *, figures: Sequence[int] = (), kind: str = ""
) -> str:
    """Return a table, "" without rows."""
    filled = [_row(row, figures) for row in rows]
    return table(caption, _head(names, figures), filled, kind) if rows else ""


def _maps(document: Json) -> str:
    found, certified, words = [], [], []
    for entry in document["maps"]:
        name, error = text_of(entry["map"]), entry["error"]
        status = badge(entry["status"], tone=_STATUS_TONES[entry["status"]])
        found.append(
            (
                f"<strong>{name}</strong> (recommended)" if entry["map"] == document["map"] else name,
                status,
                text_of(sizes_of(entry["sizes"])) or "–",
                number(entry["num_features"]),
                _median(error),
                number(None if error is None else error["largest"]),
                number(entry["seconds_per_million"]),
                _over(entry["map_bytes"], 1e6),
                _over(entry["feature_bytes_per_million"], 1e9),
            )
        )
        if entry["basis"] is not None or entry["draws"]:
            evidence = [number(entry[key]) for key in ("draws", "failures", "rate_upper", "alpha")]
            certified.append((name, basis_of(entry) or "–", scope_of(entry) or "–", *evidence))
        words.append((name, f"{status} {text_of(entry['words'])}" if entry["words"] else None))
    return (
        _table(
            "What was found of every map: size, error, and cost for a million points",
            "map|status|sizes|features|median error|largest|s per million|MB of the map|GB of features per million",
            found,
            figures=range(3, 9),
        )
        + (_MEDIAN if found else "")
        + _table(
            "How the sizes are certified",
            "map|certified by|holds for|draws|failures|upper limit|at level",
            certified,
            figures=range(3, 7),
        )
        + (_UPPER if certified else "")
        + (f"<h3>In words</h3>\n{facts(words)}" if any(told for _, told in words) else "")
    )


def _median(error: Json | None) -> str:
    if error is None:
        return "–"
    return f"{number(error['median'])} [{number(error['low'])}, {number(error['high'])}]"


def _over(value: float | None, unit: float) -> str:
    return number(None if value is None else value / unit)


def _theory(document: Json) -> str:
    rows = [
        (
            text_of(demand["map"]),
            text_of(sizes_of(demand["sizes"])) if demand["sizes"] is not None else badge("no size", tone="empty"),
            number(demand["num_features"]),
            "–" if demand["sizes"] is None else "all data" if demand["worst_case"] else "these data",
            text_of(demand["source"]),
            text_of(demand["words"]),
        )
        for demand in document["theory"]
    ]
    names = "map|sizes|features|for|source|in words"
    counted = document["spectrum"]["decay"].get("pairs")
    return (
        _table("Sizes that valid statements demand", names, rows, figures=(2,), kind="wordy")
        or "<p>No statement gives a size for this goal.</p>\n"
    ) + (f'<p class="soft">{_sentence(counted).strip()}</p>\n' if counted else "")


def _spectrum(document: Json) -> str:
    found = document["spectrum"]
    dimensions = [
        (f"{letter}: {text_of(name)}", number(value)) for letter, name, value in effective_dimensions(document)
    ]
    words = found["decay"].get("words")
    return (
        f"<p>The kernel matrix K of {number(found['points'])} point(s), over their number.{_sentence(words)}</p>\n"
        + spectrum(document)
        + ("<h3>Effective dimensions</h3>\n" + facts(dimensions) if dimensions else "")
    )


def _sentence(words: str | None) -> str:
    return f" {text_of(words[0].upper() + words[1:])}" if words else ""


def _pairs(document: Json) -> str:
    pairs = document["pairs"]
    if not pairs:
        return ""
    told = (
        (" Pairs of equal points, which are left out: ", pairs["zero_pairs"]),
        (" Pairs too close for this precision to tell their error: ", pairs["unresolved"]),
    )
    more = "".join(f"{words}{number(count)}." for words, count in told if count)
    return (
        f"<p>One draw of the recommended map, on {number(pairs['pairs'])} pair(s) of {number(pairs['points'])} points: "
        f"the largest relative error is {number(pairs['largest'])}.{more}</p>\n{pair_errors(document)}"
    )


def _classes(document: Json) -> str:
    rows = [
        (
            text_of(entry["first"]),
            text_of(entry["second"]),
            number(entry["exact"]),
            number(entry["kept"]),
        )
        for entry in document.get("classes", [])
    ]
    return _table(
        "Separation of two classes with the exact kernel, and the share of it that one draw of the map keeps",
        "class|and class|separation|share kept",
        rows,
        figures=(2, 3),
    )


def _hypotheses(document: Json) -> str:
    rows = [
        (
            text_of(entry["statement"]),
            text_of(entry["asks"]),
            badge(_ANSWERS[entry["holds"]][0], tone=_ANSWERS[entry["holds"]][1]),
            text_of(entry["found"]),
            number(entry["needed"]),
        )
        for entry in document["hypotheses"]
    ]
    return _table(
        "Hypotheses of the numbered statements, on these data",
        "statement|it asks|met|found|rows needed",
        rows,
        figures=(4,),
        kind="wordy",
    )


def _data(document: Json) -> str:
    data = document["data"]
    left_out = [(text_of(name), text_of(why)) for name, why in data["left_out"].items()]
    notes = "".join(f"<li>{text_of(note)}</li>" for note in data["notes"])
    columns = ", ".join(text_of(name) for name in data["columns"])
    return (
        facts(
            [
                ("source", text_of(data["source"])),
                ("rows", number(data["rows"])),
                ("columns", number(data["num_columns"])),
                ("standardized", "yes, every column to mean 0 and deviation 1" if data["standardized"] else "no"),
                ("duplicate rows", number(data["duplicate_rows"])),
                ("pairs at distance zero", number(data["zero_pairs"]) if data["zero_pairs"] is not None else None),
            ]
        )
        + (f'<ul class="notes">{notes}</ul>\n' if notes else "")
        + _table("Columns that are left out", "column|why", left_out, kind="narrow")
        + (f"<details><summary>Names of the columns</summary><p>{columns}</p></details>\n" if columns else "")
    )


def _about(document: Json) -> str:
    run = document["run"]
    seed: Any = document["seed"]
    return facts(
        [
            ("seed", text_of(seed) if seed is not None else "none: the key was not made of one"),
            ("confidence", f"{number(document['confidence'], 6)}, of all certificates on this page together"),
            ("precision", text_of(document["dtype"])),
            ("time", f"{number(run['seconds'])} s, of {number(run['minutes_allowed'])} min allowed"),
            ("started", text_of(time_of(run["started"]))),
            ("device", text_of(run["device"])),
            ("made by", f"jaxkern {text_of(document['made_by'])}"),
            ("versions", ", ".join(f"{text_of(n)} {text_of(v)}" for n, v in run["versions"].items()) or None),
        ]
    )
