"""Pieces of the page: text, numbers, badges and tables, escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from proofs_check.report.text import is_number

Json = Mapping[str, Any]

# Controls that HTML has no place for, and those of the direction of writing.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

TONES = {
    "identity": "good",
    "certified": "good",
    "calibrated": "good",
    "consistent": "fine",
    "refuted": "bad",
    "vacuous": "empty",
    "not testable": "open",
}


def visible(value: Any) -> str:
    """Return a value as text in which controls, and signs that could turn what follows around, are written out."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", str(value))


def text_of(value: Any) -> str:
    """Return a value as text for the page: visible, and escaped."""
    return escape(visible(value))


def number(value: Any, digits: int = 3) -> str:
    """Return a number of the document, which may be null or "inf", for a reader."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return {"inf": "∞", "-inf": "−∞"}.get(value, text_of(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return text_of(value)
    if isinstance(value, int) and not 1e15 <= abs(value) < 1e300:  # more than that is no float
        return f"{value:,}"
    return f"{value + 0.0:.{digits}g}"  # no -0


def is_finite(value: Any) -> bool:
    """Tell whether a value is a finite number that JSON writes as one."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf


def real(value: Any) -> float:
    """Return a number of the document as a float."""
    return float(value) if value is not None and is_number(value) else math.nan


def power_of_ten(log: float) -> str:
    """Return the number with this natural logarithm, for numbers that a float may not hold."""
    if not math.isfinite(log):
        return "–" if math.isnan(log) else "0" if log < 0 else "∞"
    if abs(log) < 9:
        return number(math.exp(log))
    if abs(log) > 1e12:  # rounding has eaten the digits in front
        return f"e<sup>{number(log)}</sup>"
    exponent = math.floor(log / math.log(10))
    mantissa = f"{10 ** (log / math.log(10) - exponent):.2f}"
    if mantissa == "10.00":
        mantissa, exponent = "1.00", exponent + 1
    return f"{mantissa}·10<sup>{exponent}</sup>".replace("-", "−")


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


def time_of(value: Any) -> str:
    """Return the text, and a time such as 20200131T235959Z in a form that is easier on the eye."""
    return re.sub(r"^(\d{4})-?(\d\d)-?(\d\d)T(\d\d):?(\d\d):?(\d\d)Z$", r"\1-\2-\3 \4:\5:\6 UTC", str(value))


def badge(status: str, expected: str | None = None, label: str = "", *, tone: str = "") -> str:
    """Return a verdict in its colour, or other words in a tone, with the expected ones where they differ."""
    hint = "" if expected in (None, status) else f' <span class="soft">(expected {text_of(expected)})</span>'
    return f'<span class="badge {tone or TONES.get(status, "open")}">{text_of(label + status)}</span>{hint}'


def facts(pairs: Iterable[tuple[str, str | None]]) -> str:
    """Return a list of names and values, both escaped already, without those that have no value."""
    rows = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in pairs if value is not None)
    return f'<dl class="facts">{rows}</dl>\n' if rows else ""


def page_of(*, title: str, style: str, header: str, links: Sequence[tuple[str, str]], main: str) -> str:
    """Return the whole page, from escaped pieces; `links` are the anchors of its contents and their names."""
    contents = "".join(f'<li><a href="#{anchor}">{name}</a></li>' for anchor, name in links)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#main">Skip to the results</a>\n'
        f"<header>\n{header}</header>\n"
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav>\n'
        f'<main id="main">\n{main}</main>\n</body>\n</html>\n'
    )


def table(caption: str, head: str, rows: Sequence[str], kind: str = "") -> str:
    """Return a table in a box that scrolls sideways, by keyboard too."""
    told = text_of(caption)
    return (
        f'<div class="scroll" role="group" aria-label="{told}" tabindex="0"><table class="{kind}">'
        f"<caption>{told}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
        "</table></div>\n"
    )
