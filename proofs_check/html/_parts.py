"""Pieces of the page: text, numbers, badges and tables, escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from proofs_check.document import is_number

Json = Mapping[str, Any]

TONES = {
    "identity": "good",
    "certified": "good",
    "calibrated": "good",
    "consistent": "fine",
    "refuted": "bad",
    "vacuous": "empty",
    "not testable": "open",
}


def text_of(value: Any) -> str:
    """Return a value as text for the page."""
    return escape(str(value))


def number(value: Any, digits: int = 3) -> str:
    """Return a number of the document, which may be null or "inf", for a reader."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return {"inf": "∞", "-inf": "−∞"}.get(value, text_of(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return text_of(value)
    return text_of(f"{value:,}" if isinstance(value, int) else f"{value + 0.0:.{digits}g}")  # no -0


def is_finite(value: Any) -> bool:
    """Tell whether a value is a finite number that JSON writes as one."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


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
    return re.sub(r"^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$", r"\1-\2-\3 \4:\5:\6 UTC", str(value))


def badge(status: str, expected: str | None = None, label: str = "") -> str:
    """Return a verdict in its colour, with the expected one where it differs."""
    hint = "" if expected in (None, status) else f' <span class="soft">(expected {text_of(expected)})</span>'
    return f'<span class="badge {TONES.get(status, "open")}">{text_of(label + status)}</span>{hint}'


def table(caption: str, head: str, rows: Sequence[str], kind: str = "") -> str:
    """Return a table in a box that scrolls sideways, by keyboard too."""
    return (
        f'<div class="scroll" role="group" aria-label="{escape(caption)}" tabindex="0"><table class="{kind}">'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
        "</table></div>\n"
    )
