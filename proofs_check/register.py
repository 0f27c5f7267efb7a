"""The register: every statement of the papers in their order, from one data file a paper, with the checks it names.

`papers/KEY/register.toml` says of each statement where it stands, what is printed and what holds, which verdicts are
expected and why, and which function makes its check. Everything that lists statements is made from it. It begins with
the `symbols` of the paper; an entry may have others, and an empty meaning where that of the paper is not meant.
"""

import dataclasses
import functools
import importlib
import inspect
import itertools
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

from proofs_check.claim import KINDS, Check, Claim, Form, Setting, Undecided

PAPERS = ("kpotufe2020", "chen2016", "ghashami2016", "amini2021")
_FIELDS = """
id place section title kind marginal symbols printed reading corrected hypotheses bound expected because says severity
follows loose proof undecided check enclosed settings reason
"""
FIELDS = set(_FIELDS.split())
_TOKEN = re.compile(r"\\math(?:bb|cal) ?\w|\\[A-Za-z]+|\\.|\S")
_WORDS = re.compile(r"\\(?:text|operatorname)\*?\{[^{}]*\}|\\[,;!: ]")

Entry = Mapping[str, Any]


class Transcription(NamedTuple):
    """A right-hand side of a statement in the symbols of its paper, as text: tests compare it with its function."""

    claim: str
    function: str
    """Its name in `jaxkern.bounds`, such as "sketching.inner_products"."""
    form: str
    """ "printed", "centered" or ""."""
    symbols: Mapping[str, str]
    """What each symbol is, in arguments of the function and other symbols."""
    value: str
    failure: str
    """The probability of failure; "0" for a deterministic statement."""
    hypotheses: str
    at: str
    """Arguments at which the two are compared. Semicolons separate places; a later one changes the first."""
    shared: str
    """The places of the paper, for required arguments that `at` leaves out."""


def _read(paper: str) -> dict[str, Any]:
    path = resources.files(f"proofs_check.papers.{paper}").joinpath("register.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


@functools.cache
def entries(paper: str) -> tuple[Entry, ...]:
    """Return what the register says of each statement of a paper; one without an id has a reason instead of a check.

    A section holds until the next one is named, and `symbols` are those that the formulas of the entry have.
    """
    read = _read(paper)
    found, section = read["statement"], ""
    for entry in found:
        section = entry.setdefault("section", section)
        formulas = " ; ".join(
            entry.get(name, "") for name in ("printed", "reading", "corrected")
        )
        entry["symbols"] = _occurring(
            {**read.get("symbols", {}), **entry.get("symbols", {})}, formulas
        )
        fault = _fault(entry)
        if fault:
            raise ValueError(
                f"{paper}, {entry.get('id', entry.get('place'))!r}: {fault}"
            )
        if "check" in entry:
            # The function has the name of the claim, with _ for other signs.
            entry["check"] += ":" + re.sub(r"\W", "_", entry["id"].partition(":")[2])
    return tuple(
        {
            name: " ".join(v.split()) if isinstance(v, str) else v
            for name, v in e.items()
        }
        for e in found
    )


def _fault(entry: Entry) -> str:
    """Return what is wrong with the fields of an entry, or nothing."""
    unknown = sorted(set(entry) - FIELDS)
    if unknown:
        return (
            f"there is no field {unknown[0]!r}; fields are {', '.join(sorted(FIELDS))}"
        )
    if ("id" in entry) == ("reason" in entry):
        return "an entry has either an id or a reason why there is no claim"
    if "id" in entry and entry.get("kind") not in KINDS:
        return f"the kind {entry.get('kind')!r} is none of {', '.join(KINDS)}"
    return ""


def _occurring(
    symbols: Mapping[str, str], formulas: str
) -> tuple[tuple[str, str], ...]:
    """Return the symbols that occur in formulas, with their meanings, in this order; the longest one counts."""
    text = _TOKEN.findall(_WORDS.sub(" ", formulas))
    tokens = sorted(
        ((_TOKEN.findall(symbol), symbol) for symbol in symbols),
        key=lambda pair: -len(pair[0]),
    )
    found: set[str] = set()
    at = 0
    while at < len(text):
        size, symbol = next(
            ((len(t), s) for t, s in tokens if text[at : at + len(t)] == t), (1, "")
        )
        found.add(symbol)
        at += size
    return tuple(
        (symbol, means)
        for symbol, means in symbols.items()
        if symbol in found and means
    )


@functools.cache
def bounds() -> tuple[Transcription, ...]:
    """Return the right-hand sides that the registers transcribe, in the papers' order.

    A bound has the fields of the one before it in its entry, unless it has its own, and the symbols of the paper.
    """
    rows = []
    for paper in PAPERS:
        shared = _read(paper)["bound"]
        for entry in entries(paper):
            fields = {"failure": "0", "hypotheses": "", "symbols": "", "at": ""}
            for bound in entry.get("bound", ()):
                fields |= bound
                rows.append(_transcription(entry["id"], shared, fields))
    return tuple(rows)


def _transcription(
    claim: str, shared: Mapping[str, str], fields: Mapping[str, str]
) -> Transcription:
    text = {name: " ".join(words.split()) for name, words in fields.items()}
    function, _, form = text.pop("function").partition(" ")
    symbols = _definitions(shared["symbols"]) | _definitions(text.pop("symbols"))
    return Transcription(
        claim=claim,
        function=function,
        form=form,
        symbols=symbols,
        shared=" ".join(shared.get("at", "").split()),
        **text,
    )


def _definitions(text: str) -> dict[str, str]:
    """Return the symbols of a text such as "S = op_norm; s = trace / S", with what they are."""
    parts = (" ".join(part.split()) for part in text.split(";"))
    return dict(part.split(" = ", 1) for part in parts if part)


def outlines() -> list[Claim]:
    """Return every claim in the papers' order, as the register tells of it, without its check: at once, without jax."""
    return [
        _outline(paper, entry)
        for paper in PAPERS
        for entry in entries(paper)
        if "id" in entry
    ]


def claims(
    data: Any = None,
    profile: str = "quick",
    *,
    papers: Collection[str] = PAPERS,
    only: Collection[str] | None = None,
) -> list[Claim]:
    """Return every claim, in the papers' order, with settings on synthetic populations, or on a user's own.

    Parameters
    ----------
    data : a `Population` to run on instead of the synthetic ones.
    profile : "quick" or "full"; the full one tries more values of tau and sizes.
    papers : their keys.
    only : the ids of the claims that are wanted; None for all.
    """
    made = []
    for paper in papers:
        chosen = [
            e for e in entries(paper) if "id" in e and (only is None or e["id"] in only)
        ]
        if chosen:
            inputs = importlib.import_module(
                f"proofs_check.papers.{paper}.setup"
            ).Inputs(data, profile == "full")
            made += [_claim(paper, entry, inputs) for entry in chosen]
    return made


def function_of(paper: str, check: str) -> Callable[..., Any]:
    """Return the function that makes a check or an enclosure, which the register names as `module:function`."""
    module, _, name = check.partition(":")
    function: Callable[..., Any] = getattr(
        importlib.import_module(f"proofs_check.papers.{paper}.{module}"), name
    )
    return function


def grids(entry: Entry, *, full: bool = False) -> dict[str, tuple[Setting, ...]]:
    """Return the settings that an entry of the register lists, by the names that it has for them.

    A table has the format of their names, and numbers: all combinations of the lists of `grid`, the last one changing
    first; or the rows of `rows`, in the order of the names in `numbers`. With both, every row is tried at every
    combination, and the rows change first. Numbers that are named in `shapes` are static. `full` has the rows of the
    full profile where these are others, or without rows the lists.
    """
    settings = {}
    for name, table in entry.get("settings", {}).items():
        if "rows" in table:
            rows = table.get("full", table["rows"]) if full else table["rows"]
            lists = table.get("grid", {})
        else:
            rows = [[]]
            lists = table["grid"] | (table.get("full", {}) if full else {})
        names = [*table.get("numbers", "").split(), *lists]
        shapes = table.get("shapes", "").split()
        settings[name] = tuple(
            _setting(
                table["name"], dict(zip(names, (*row, *values), strict=True)), shapes
            )
            for values in itertools.product(*lists.values())
            for row in rows
        )
        if len({setting.name for setting in settings[name]}) < len(settings[name]):
            raise ValueError(
                f"{entry['id']}: settings.{name} has two settings of one name; "
                f"the format {table['name']!r} must tell all numbers"
            )
    return settings


def _setting(name: str, values: Mapping[str, Any], shapes: Sequence[str]) -> Setting:
    numbers = {key: float(v) for key, v in values.items() if key not in shapes}
    return Setting(
        name.format(**values), None, numbers, {key: values[key] for key in shapes}
    )


def _claim(paper: str, entry: Entry, inputs: Any) -> Claim:
    check = Check()
    if "check" in entry:
        make = function_of(paper, entry["check"])
        known = {"inputs": inputs, "grids": grids(entry, full=inputs.full)}
        names = inspect.signature(make).parameters
        check = make(**{name: known[name] for name in names if name in known})
    forms, expected = check.forms, entry["expected"]
    if "undecided" in entry:
        forms["printed"] = Form(Undecided(entry["undecided"]))
    if set(forms) != set(expected):
        raise ValueError(
            f"{entry['id']}: the register expects {dict(expected)}, and the forms are {sorted(forms)}"
        )
    told, enclosed = _outline(paper, entry), entry.get("enclosed", {})
    made: dict[str, Any] = {
        name: dataclasses.replace(
            told.forms[name],
            statement=form.statement,
            settings=form.settings,
            enclosed=function_of(paper, enclosed[name]) if name in enclosed else None,
        )
        for name, form in forms.items()
    }
    return dataclasses.replace(told, controls=check.controls, **made)


def _outline(paper: str, entry: Entry) -> Claim:
    # Without a printed formula the corrected one is that of the claim, and its form needs none of its own.
    own = entry.get("corrected", "") if "printed" in entry else ""
    formulas = {"printed": entry.get("reading", ""), "corrected": own}
    unmade = Undecided("")
    forms: dict[str, Any] = {
        name: Form(unmade, (), expect, formulas[name])
        for name, expect in entry["expected"].items()
    }
    same = {
        name: entry[name]
        for name in ("id", "kind", "because", "title", "section", "symbols")
    }
    there = (
        "hypotheses",
        "marginal",
        "says",
        "severity",
        "follows",
        "loose",
        "proof",
        "check",
    )
    same |= {name: entry[name] for name in there if name in entry}
    return Claim(
        paper=paper,
        where=entry["place"],
        tex=entry.get("printed") or entry["corrected"],
        **same,
        **forms,
    )
