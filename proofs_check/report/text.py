"""Numbers and texts of a document, as a reader sees them on a page and in a terminal."""

import math
import re
from collections.abc import Mapping
from html import escape
from typing import Any

Json = Mapping[str, Any]

# Controls that HTML has no place for, and those of the direction of writing.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(value: Any) -> str:
    """Return a value as text in which controls, and signs that could turn what follows around, are written out."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", str(value))


def escaped(value: Any) -> str:
    """Return a value as text for XML: visible, and escaped. Templates escape by themselves."""
    return escape(visible(value))


def number(value: Any, digits: int = 3) -> str:
    """Return a number of a document, which may be null or "inf", for a reader."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return {"inf": "∞", "-inf": "−∞"}.get(value, value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if (
        isinstance(value, int) and not 1e15 <= abs(value) < 1e300
    ):  # more than that is no float
        return f"{value:,}"
    return f"{value + 0.0:.{digits}g}"  # no -0


def slug(heading: str) -> str:
    """Return the anchor that GitHub and MyST give to a heading in plain words and code."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def is_number(value: Any) -> bool:
    """Tell whether a value of a document is a number: null stands for NaN, two strings for the infinities."""
    return (
        value is None
        or value in ("inf", "-inf")
        or (isinstance(value, int | float) and not isinstance(value, bool))
    )


def is_finite(value: Any) -> bool:
    """Tell whether a value is a finite number that JSON writes as one."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -math.inf < value < math.inf
    )


def real(value: Any) -> float:
    """Return a number of a document as a float."""
    return float(value) if value is not None and is_number(value) else math.nan


def time_of(value: Any) -> str:
    """Return the text, and a time such as 20200131T235959Z in a form that is easier on the eye."""
    return re.sub(
        r"^(\d{4})-?(\d\d)-?(\d\d)T(\d\d):?(\d\d):?(\d\d)Z$",
        r"\1-\2-\3 \4:\5:\6 UTC",
        str(value),
    )


def without_links(text: str) -> str:
    """Return the words of a text with references of MyST and links of Markdown."""
    return re.sub(
        r"\{ref\}`([^<`]*?) ?<[^>]*>`|\[([^]]*)\]\([^)]*\)",
        lambda m: m[1] or m[2],
        text,
    )


def words_and_formulas(text: str) -> list[tuple[str, bool]]:
    """Return text cut at its dollar signs: pieces, and whether a piece is a formula in TeX.

    A dollar sign behind a backslash is a word. Text in which the others do not pair up is all words.
    """
    pieces = re.split(r"(?<!\\)\$", text)
    if len(pieces) % 2 == 0:
        return [(text, False)]
    return [
        (piece, True) if i % 2 else (piece.replace("\\$", "$"), False)
        for i, piece in enumerate(pieces)
        if piece
    ]


def unseen(part: Json) -> str:
    """Return which violation rate a form or a control would have shown, "" where there is no such number.

    Nothing is said of a refuted one: its evidence saw what there is to see.
    """
    rate = part["detectable"]
    if rate is None or part["status"] == "refuted":
        return ""
    if isinstance(rate, str):
        return "no violation rate could have been refuted with so few trials"
    return f"a violation rate of {number(rate)} would have been refuted with probability 0.99"
