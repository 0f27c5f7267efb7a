"""A certificate as one self-contained HTML page, and its pictures beside it."""

import base64
from pathlib import Path
from typing import Any

from proofs_check.certify import words
from proofs_check.certify.pictures import Picture, pictures
from proofs_check.engine import files
from proofs_check.report.page import page
from proofs_check.report.text import time_of


def write(folder: Path, certificate: Any) -> None:
    """Write the pictures of a certificate and then certificate.html, each in one step. Raises StorageError."""
    drawn = pictures(certificate)
    for picture in drawn:
        files.write(folder / picture.file, picture.svg)
    files.write(folder / "certificate.html", render(certificate, drawn))


def render(certificate: Any, drawn: list[Picture]) -> str:
    """Return the page."""
    return page(
        "certificate.html",
        c=certificate,
        words=words,
        pictures=drawn,
        source=source,
        time_of=time_of,
    )


def source(picture: Picture) -> str:
    """Return a picture as the source of an image: nothing is loaded, and no name in it can meet one of the page."""
    content = picture.svg.encode("utf-8", "backslashreplace")
    return f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}"
