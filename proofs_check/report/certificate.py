"""A certificate as one self-contained HTML page, made from its JSON document alone (docs/certificate_schema.md)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proofs_check.engine import files
from proofs_check.report import certificate_document
from proofs_check.report import certificate_words as words
from proofs_check.report.certificate_plots import pair_errors, spectrum, tradeoff
from proofs_check.report.page import page
from proofs_check.report.text import Json, time_of, visible


def write(folder: Path, document: Mapping[str, Any]) -> None:
    """Write certificate.html and then certificate.json, each in one step. Raises OSError."""
    files.write(folder / "certificate.html", render(document))
    certificate_document.write(folder / "certificate.json", document)


def render(document: Json) -> str:
    """Return the page of a certificate that `certificate_document.find_fault` accepts."""
    return page(
        "certificate.html",
        d=document,
        words=words,
        time_of=time_of,
        visible=visible,
        tradeoff=tradeoff(document),
        spectrum=spectrum(document),
        pairs=pair_errors(document),
    )
