"""A certificate as one self-contained HTML page, made from its JSON document alone (docs/certificate_schema.md)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proofs_check.engine import files
from proofs_check.report import certificate_document
from proofs_check.report.certificate_plots import effective_dimensions, pair_errors, spectrum, tradeoff
from proofs_check.report.page import page
from proofs_check.report.text import Json, number, time_of, visible

BASES = {
    "draws": "random draws of the map",
    "this data": "a bound that knows these data",
    "worst case": "a theorem for all data",
}
SCOPES = {"all rows": "all rows", "samples": "samples of the rows, a weaker guarantee"}


def write(folder: Path, document: Mapping[str, Any]) -> None:
    """Write certificate.html and then certificate.json, each in one step. Raises OSError."""
    files.write(folder / "certificate.html", render(document))
    certificate_document.write(folder / "certificate.json", document)


def render(document: Json) -> str:
    """Return the page of a certificate that `certificate_document.find_fault` accepts."""
    return page(
        "certificate.html",
        d=document,
        sizes_of=sizes_of,
        basis_of=basis_of,
        scope_of=scope_of,
        time_of=time_of,
        visible=visible,
        tradeoff=tradeoff(document),
        spectrum=spectrum(document),
        dimensions=effective_dimensions(document),
        pairs=pair_errors(document),
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
