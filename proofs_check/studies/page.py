"""The tables of the power study, written into a page from its results."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from proofs_check.engine import files
from proofs_check.studies.mutants import Mutant, mutants

BEGIN, END = "<!-- power: written by proofs_check.studies -->", "<!-- power: end -->"
Found = Mapping[str, Any]


def write(path: Path, results: Mapping[str, Found]) -> None:
    """Replace what stands between the two marks of a page by the tables of these results."""
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    files.write(path, f"{before}{BEGIN}\n\n{tables(results)}\n{END}{after}")


def group_of(mutant: Mutant, found: Found) -> str:
    """Return what a mutant makes wrong; a bound is still true if no slack of the claims that use it is below 1."""
    if not mutant.is_bound:
        return "the library"
    return (
        "bounds made false"
        if found["caught"] or found["slack"] < 1 - 1e-6
        else "bounds still true"
    )


def tables(results: Mapping[str, Found]) -> str:
    """Return the summary, the table by kind, and the survivors of the run, in Markdown."""
    tried = [
        (group_of(m, results[m.label]), m, results[m.label])
        for m in mutants()
        if m.label in results
    ]
    sizes = sorted({m.size for _, m, _ in tried}, reverse=True)
    shown = [f"{size:.0%}" for size in sizes]
    lines = _head("changed", *(f"caught at {size}" for size in shown), "with pins")
    for group in ("the library", "bounds made false", "bounds still true"):
        own = [(m, found) for g, m, found in tried if g == group]
        cells = [
            _share(found["caught"] for m, found in own if m.size == size)
            for size in sizes
        ]
        lines.append(
            _row(
                group,
                *cells,
                _share(found["caught"] or found["pins"] for _, found in own),
            )
        )
    lines += ["", *_head("error", "claims", *shown)]
    for name in dict.fromkeys(m.name for _, m, _ in tried):
        cells = {m.size: found for _, m, found in tried if m.name == name}
        claims = str(max(found["claims"] for found in cells.values()))
        lines.append(_row(name, claims, *(_cell(cells.get(size)) for size in sizes)))
    lines += ["", "The run does not see:", ""]
    missed: dict[tuple[str, str], list[str]] = {}
    for group, m, found in tried:
        if not found["caught"]:
            why = (
                "still true wherever it is tried"
                if group == "bounds still true"
                else "less than the trials can tell"
            )
            why = m.reason or (
                why if found["claims"] else "the default run does not execute it"
            )
            why += "" if found["pins"] else "; no pin sees it either"
            missed.setdefault((m.name, why), []).append(f"{m.size:.0%}")
    lines += [
        f"- {name}, {', '.join(sizes)}: {why}" for (name, why), sizes in missed.items()
    ]
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _head(*cells: str) -> list[str]:
    return [_row(*cells), _row(*["---"] * len(cells))]


def _share(caught: Iterable[Any]) -> str:
    each = [bool(one) for one in caught]
    return f"{sum(each)} of {len(each)}" if each else "-"


def _cell(found: Found | None) -> str:
    if found is None:
        return "-"
    return next(
        (f"`{name}`" for name in found["caught"]), "pins" if found["pins"] else "no"
    )
