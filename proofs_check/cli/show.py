"""What `show` prints of a claim: what it says, what is expected, and where its check, its bound and its proof are."""

import difflib
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from proofs_check.claim import (
    Calibrated,
    Claim,
    Exact,
    Form,
    Identity,
    Inequality,
    Rare,
    Tail,
)
from proofs_check.register import function_of
from proofs_check.report.tex import plain
from proofs_check.report.text import slug, without_links, words_and_formulas
from proofs_check.usage import UsageError, meant

ROOT = Path(__file__).resolve().parents[2]


def at_place(claims: Sequence[Claim], words: str) -> list[Claim]:
    """Return the claims at a place such as "ghashami2016 Theorem 3.2"; where there is none, at places that name it.

    Raises UsageError where no place names it either.
    """
    paper, _, place = words.strip().partition(" ")
    of_paper = [claim for claim in claims if claim.paper == paper]
    asked = _plain(place if of_paper else words)
    pattern = re.compile(rf"(?<!\w){re.escape(asked)}(?!\w|\.\d)")
    exactly = [claim for claim in of_paper or claims if _plain(claim.where) == asked]
    chosen = exactly or [
        claim for claim in of_paper or claims if pattern.search(_plain(claim.where))
    ]
    if not chosen:
        places = {
            _plain(claim.where): f"{claim.paper} {claim.where}"
            for claim in of_paper or claims
        }
        close = [places[name] for name in difflib.get_close_matches(asked, places, n=3)]
        raise UsageError(
            f"no statement at {words!r}{meant(close)}; python -m proofs_check list shows the places"
        )
    return chosen


def _plain(place: str) -> str:
    return " ".join(place.lower().split())


def lines(claim: Claim, *, own: bool = False) -> list[str]:
    """Return the lines that describe a claim, of a paper or of one's own."""
    marginal = ", in the margin: only --all runs it" if claim.marginal else ""
    told = [
        f"{claim.id}: {claim.title}",
        f"{claim.paper}, {claim.where} ({claim.kind}{marginal})",
        *([f"  {plain(claim.tex)}"] if claim.tex else []),
    ]
    for name, form in claim.forms.items():
        named = "" if own else f"as {name}: "
        expected = f", expected {form.expect}" if form.expect else ""
        told.append(f"{named}of the class {type(form.statement).__name__}{expected}")
        told += [f"  {plain(form.tex)}"] if form.tex else []
        told += (
            [f"  tried at: {'; '.join(setting.name for setting in form.settings)}"]
            if form.settings
            else []
        )
    told += [f"hypotheses: {_words(claim.hypotheses)}"] if claim.hypotheses else []
    told.append(
        f"controls: {'; '.join(control.name for control in claim.controls) or 'none'}"
    )
    told += [f"because: {claim.because}"] if claim.because else []
    return told + _places(claim)


def _words(text: str) -> str:
    return "".join(
        plain(piece) if is_formula else piece
        for piece, is_formula in words_and_formulas(text)
    )


def _places(claim: Claim) -> list[str]:
    """Return where the check, the bounds that it compares with, and the proof are."""
    told = [f"function: {_place(code)}, {code.co_name}" for code in _own(claim)]
    if claim.check:
        function = function_of(claim.paper, claim.check)
        told.append(f"check: {_place(function.__code__)}, {function.__name__}")
        told += [f"bound: {_place(code)}, {code.co_name}" for code in bounds_of(claim)]
    told += [f"proof: {place}" for place in proofs_of(claim)]
    return told


def _own(claim: Claim) -> list[Any]:
    """Return the code of the functions that a claim in no paper is made of."""
    trials = [
        getattr(getattr(form.statement, "trial", None), "func", None)
        for form in claim.forms.values()
    ]
    sides = getattr(
        getattr(getattr(claim.target, "enclosed", None), "__self__", None), "func", None
    )
    return [
        function.__code__
        for function in (*trials, sides)
        if hasattr(function, "__code__")
    ]


def bounds_of(claim: Claim) -> list[Any]:
    """Return the code of the public functions of `jaxkern.bounds` that a claim's forms call at their first settings."""
    seen: dict[Any, None] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if (
            event == "call"
            and module.startswith("jaxkern.bounds.")
            and name[0] not in "_<"
        ):
            seen.setdefault(frame.f_code)

    before = sys.getprofile()
    try:
        sys.setprofile(watch)
        for form in claim.forms.values():
            if form.settings:
                _right_side(claim, form)
    finally:
        sys.setprofile(before)
    return [code for code in seen if not code.co_filename.endswith("_bound.py")]


def _right_side(claim: Claim, form: Form) -> None:
    setting = form.settings[0]
    match form.statement:
        case Tail(bound=bound) | Calibrated(shape=bound) | Rare(log_claimed=bound):
            bound(setting)
        case Inequality() | Identity() | Exact():
            from proofs_check.engine import samples

            samples.Samples(claim.id, 0).on_the_host("", form, setting)


def _place(code: Any) -> str:
    return f"{_relative(Path(code.co_filename))}:{code.co_firstlineno}"


def _relative(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def proofs_of(claim: Claim) -> list[str]:
    """Return where the documentation proves the corrected form: its words, and file and line of each label in them."""
    if not claim.proof:
        return []
    told = [_words(without_links(claim.proof))]
    for label in re.findall(r"<([\w-]+)>`", claim.proof):
        for page in sorted((ROOT / "docs" / "theory").glob("*.md")):
            told += _lines_of(
                page, lambda line, label=label: line.strip() == f"({label})="
            )
    for target, anchor in re.findall(r"\]\(([^)#]*)#([^)]*)\)", claim.proof):
        told += _lines_of(
            ROOT / "docs" / target,
            lambda line, anchor=anchor: (
                line[:1] == "#" and slug(line.lstrip("#")) == anchor
            ),
        )
    return told


def _lines_of(page: Path, wanted: Callable[[str], bool]) -> list[str]:
    lines = page.read_text(encoding="utf-8").splitlines() if page.is_file() else []
    return [
        f"{_relative(page)}:{number}"
        for number, line in enumerate(lines, 1)
        if wanted(line)
    ]
