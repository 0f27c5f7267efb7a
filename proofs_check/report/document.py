"""The report as one strict JSON document: made from results, written in one step, read back and checked.

The pages (`html`, `markdown`) are made from this document alone. Its keys are explained in
docs/report_schema.md. Nothing here imports jax before there are results, so that reading a report is quick.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from proofs_check.engine import files
from proofs_check.engine.reading import one_line, place, plain
from proofs_check.report.text import is_number

if TYPE_CHECKING:
    from proofs_check.claim import Claim, Control, Form, Verdict
    from proofs_check.engine.run import ClaimResult

SCHEMA = 3
PAPERS = {
    "kpotufe2020": "Kpotufe and Sriperumbudur, Gaussian Sketching yields a J-L Lemma in RKHS, AISTATS 2020",
    "amini2021": "Amini and Razaee, Concentration of kernel matrices with application to kernel spectral clustering, "
    "Annals of Statistics 2021",
    "chen2016": "Chen and Phillips, Relative Error Embeddings of the Gaussian Kernel Distance, 2016",
    "ghashami2016": "Ghashami, Perry and Phillips, Streaming Kernel Principal Component Analysis, AISTATS 2016",
}

_LONGEST_JSON = 2**25  # bytes; a report of all claims has less than one million
_DEEPEST = 500  # of Python's usual 1000, for functions that call themselves

# By why a run was stopped: what that means, first where claims are missing, then where every claim was reached.
_STOPPED = {
    "interrupted": (
        "The run was interrupted: claims are missing, or open.",
        "The run was interrupted after every claim was tried: more trials could decide open ones.",
    ),
    "out of time": (
        "The run was out of time before its end: claims are missing, or were judged by fewer trials.",
        "The run was out of time after every claim was tried: more trials could decide open ones.",
    ),
}


class ReportError(Exception):
    """A file is no report that can be read; the message is one line."""


@dataclass(frozen=True)
class About:
    """What a run was asked for: everything its numbers depend on.

    `note` says what was done to the user's data. `rule` is "sequential" where trials stop as soon as the evidence
    decides, "fixed" where their numbers are fixed before the first one. `stopped` says why a run ended before its
    time: "interrupted" or "out of time"; it is empty where nothing stopped it. `flags` are the settings of JAX and XLA.
    """

    profile: str
    seed: int
    family_alpha: float
    dtype: str
    note: str = ""
    rule: str = "sequential"
    stopped: str = ""
    flags: Mapping[str, Any] = field(default_factory=dict)


def as_json(
    results: Sequence[ClaimResult], about: About, *, run: Mapping[str, Any], complete: bool = True
) -> dict[str, Any]:
    """Return the report as strict JSON: NaN is null, infinities are the strings "inf" and "-inf".

    Two runs with equal settings agree in everything but the key `run`, which holds the entries of the argument and
    the seconds that each claim took. `complete` is False where the run was stopped before its end.
    """
    papers = {result.claim.paper for result in results}
    report = {
        "schema": SCHEMA,
        "profile": about.profile,
        "seed": about.seed,
        "dtype": about.dtype,
        "family_alpha": about.family_alpha,
        "rule": about.rule,
        "flags": about.flags,
        "note": about.note,
        "complete": complete,
        "stopped": about.stopped,
        "as_expected": all(result.as_expected for result in results),
        "papers": {key: source for key, source in PAPERS.items() if key in papers},
        "kinds": _kinds(results),
        "claims": [_claim(result, about.seed) for result in results],
        "run": {**run, "seconds": {result.claim.id: result.seconds for result in results}},
    }
    strict: dict[str, Any] = _strict(report)
    return strict


def _kinds(results: Sequence[ClaimResult]) -> dict[str, str]:
    """Return the kinds of controls that occur, in the order of `KINDS` and then by name, with what each one is."""
    from proofs_check.controls import KINDS

    found = {control.kind for result in results for control in result.claim.controls}
    known = [kind for kind in KINDS if kind in found]
    return {kind: KINDS.get(kind, "") for kind in (*known, *sorted(found - set(known)))}


def describe(claim: Claim) -> dict[str, Any]:
    """Return what `list --json` says of a claim."""
    return {
        "id": claim.id,
        "paper": claim.paper,
        "where": claim.where,
        "kind": claim.kind,
        "statement": claim.tex,
        "expected_printed": None if claim.printed is None else claim.printed.expect,
        "expected_corrected": None if claim.corrected is None else claim.corrected.expect,
        "because": claim.because,
        "title": claim.title,
        "marginal": claim.marginal,
    }


def write_json(path: Path, report: Mapping[str, Any]) -> None:
    """Write a report in one step: a reader never finds half a file. Raises StorageError."""
    files.write(path, json.dumps(report, indent=1, allow_nan=False, ensure_ascii=False) + "\n")


def read(path: Path) -> dict[str, Any]:
    """Return the report that a file holds. Raises ReportError, in one line, where it holds none of this version."""
    return load(path, "report", "schema", SCHEMA, find_fault)


def load(path: Path, kind: str, key: str, known: int, check: Callable[[Any], str]) -> dict[str, Any]:
    """Return the document of a kind that a file holds: its version is under `key`, and `check` finds faults in it.

    Raises ReportError, in one line, where it holds none of the version that is known, or one with a fault.
    """
    found = read_json(path)
    version = found.get(key) if isinstance(found, dict) else None
    if version is None:
        raise ReportError(f"{place(path)} is no {kind} of proofs_check: it has no schema version")
    if version != known or isinstance(version, bool):
        raise ReportError(
            f"{place(path)} has schema version {str(version)[:30]!r}, and this program reads version {known}"
        )
    fault = check(found)
    if fault:
        raise ReportError(f"{place(path)} is not a {kind} of schema version {known}: {fault}")
    return dict(found)


def read_json(path: Path) -> Any:
    """Return what a file of JSON holds: in UTF-8, without NaN, without a name twice in one object, of bounded size.

    Raises ReportError, in one line, for every other file. A pipe is not waited for.
    """
    where = place(path)
    try:
        if path.exists() and not path.is_file():
            raise ReportError(f"{where} is no regular file")
        with path.open("rb") as file:
            content = file.read(_LONGEST_JSON + 1)
    except OSError as error:
        raise ReportError(f"{where} cannot be read ({error.strerror})") from None
    if len(content) > _LONGEST_JSON:
        raise ReportError(f"{where} is longer than {_LONGEST_JSON:,} bytes, so it is not from this program")
    try:
        hooks = {"parse_constant": _no_constant, "parse_int": _whole, "object_pairs_hook": _object}
        found = json.loads(content.decode("utf-8"), **hooks)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):  # cut short, or brackets without end
        raise ReportError(f"{where} is not JSON; was it cut short?") from None
    except ValueError as error:  # NaN, names that are there twice, numbers of thousands of digits
        raise ReportError(f"{where} is not JSON as this program writes it ({one_line(error)})") from None
    if _is_deep(found):
        raise ReportError(f"{where} is nested more than {_DEEPEST} times, so it is not from this program")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _whole(text: str) -> int:
    if len(text) > 300:  # more than a float can be
        raise ValueError(f"a whole number of {len(text)} digits")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"an object holds {plain(name, 30)!r} twice")
        found[name] = value
    return found


def _is_deep(value: Any) -> bool:
    """Tell whether lists and objects are nested too deeply for functions that call themselves."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def find_fault(report: Any) -> str:
    """Return the first thing in which a document differs from the schema, the empty string where there is none."""
    return fault_of(report, _REPORT, "report")


def _claim(result: ClaimResult, seed: int) -> dict[str, Any]:
    from proofs_check.engine.run import rejected

    return {
        **describe(result.claim),
        "hypotheses": result.claim.hypotheses,
        "as_expected": result.as_expected,
        "notes": result.notes,
        "forms": [
            {
                "form": name,
                "statement": form.tex or result.claim.tex,
                "expected": form.expect,
                "as_expected": name not in result.unexpected,
                "seed": seed,
                **_verdict(form, verdict),
            }
            for name, form, verdict in result.forms
        ],
        "controls": [
            {
                "name": name,
                "kind": control.kind,
                "rejected": rejected(verdict),
                "seed": seed,
                **_verdict(control, verdict),
            }
            for control, (name, verdict) in zip(result.claim.controls, result.controls, strict=True)
        ],
    }


def _verdict(part: Form | Control, verdict: Verdict) -> dict[str, Any]:
    name = type(part.statement).__name__
    margin_is, margin = _MARGINS.get(name, ("", None))
    margins = [math.nan if margin is None else margin({**verdict.facts, **e.facts}) for e in verdict.evidence]
    settings = {setting.name: setting for setting in part.settings}
    finite = [(value, e.setting) for value, e in zip(margins, verdict.evidence, strict=True) if value < math.inf]
    return {
        "class": name,
        "status": verdict.status,
        "because": verdict.because,
        "alpha": verdict.alpha,
        "slack": verdict.slack,
        "trials": sum(evidence.trials for evidence in verdict.evidence),
        "detectable": _detectable(verdict),
        "margin_is": margin_is,
        "worst_setting": verdict.facts.get("worst_setting") or (min(finite)[1] if finite else None),
        "facts": verdict.facts,
        "evidence": [
            {
                "setting": e.setting,
                "trials": e.trials,
                "numbers": settings[e.setting].numbers,
                "shapes": settings[e.setting].shapes,
                "margin": value,
                "facts": e.facts,
            }
            for e, value in zip(verdict.evidence, margins, strict=True)
        ],
    }


def _detectable(verdict: Verdict) -> float:
    """Return the violation rate that every setting with such a number would have shown, NaN without one."""
    rates = [float(e.facts["detectable"]) for e in verdict.evidence if e.facts.get("detectable") is not None]
    return max((rate for rate in rates if not math.isnan(rate)), default=math.nan)


def _over(allowed: float, found: float) -> float:
    """Return what is allowed over what was found; infinite where nothing was found."""
    return allowed / found if found > 0 else math.inf if found == 0 and allowed > 0 else math.nan


def _log_margin(claimed: float, found: float) -> float:
    """Return the ratio of two probabilities from their logs."""
    logs = claimed - found
    return math.exp(logs) if logs < 700 else math.inf if logs > 0 else math.nan


def _calibrated_margin(facts: Mapping[str, Any]) -> float:
    return _over(facts["proved_upper"], facts["needed"]) if "needed" in facts else math.nan


def _expectation_margin(facts: Mapping[str, Any]) -> float:
    gap, half = facts["gap"], facts["half_width"]
    return _over(half, gap) if facts["excludes_target"] else _over(facts["allowed"], gap + half)


# By class of statement: what the margin of a setting is, and how it follows from the facts. 1 is the limit of the
# claim, and more is room.
_MARGINS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], float]]] = {
    "Tail": ("bound over the (1 - delta)-quantile of what it bounds", lambda f: f.get("slack", math.nan)),
    "Inequality": ("right side over left side, the smallest ratio", lambda f: f.get("slack", math.nan)),
    "Calibrated": ("constant proved over constant needed", _calibrated_margin),
    "Identity": ("error allowed for rounding over largest error", lambda f: _over(f["limit"], f["worst_residual"])),
    "Exact": (
        "probability claimed over probability computed",
        lambda f: _log_margin(f["log_claimed"], f["log_probability"]),
    ),
    "Rare": (
        "probability claimed over probability estimated",
        lambda f: _log_margin(f["log_claimed"], f["log_estimate"]),
    ),
    "Expectation": (
        "precision asked for over distance and half-width; half-width over distance where it is refuted",
        _expectation_margin,
    ),
    "Law": ("distance that would be refuted over distance found", lambda f: _over(f["resolution"], f["distance"])),
}


def _strict(value: Any) -> Any:
    """Return `value` in the types of strict JSON."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _strict(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(entry) for entry in value]
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return None if math.isnan(value) else float(value) if math.isfinite(value) else str(float(value))
    if hasattr(value, "dtype"):  # NumPy and JAX
        return _strict(np.asarray(value).tolist())
    return str(value)


def kinds_of(report: Mapping[str, Any]) -> list[str]:
    """Return the kinds of controls of a document: those it explains, in this order, then the others."""
    found = dict.fromkeys(control["kind"] for claim in report["claims"] for control in claim["controls"])
    return [*(kind for kind in report["kinds"] if kind in found), *(k for k in found if k not in report["kinds"])]


def rejections(controls: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Return, for every kind among the controls of a document, how many are rejected and how many there are."""
    found: dict[str, tuple[int, int]] = {}
    for control in controls:
        rejected, total = found.get(control["kind"], (0, 0))
        found[control["kind"]] = rejected + control["rejected"], total + 1
    return found


def what_stopped(report: Mapping[str, Any]) -> str:
    """Return what a reader must know of a run that was stopped, "" for one that came to its end."""
    missing, open_ = _STOPPED.get(report["stopped"] or ("" if report["complete"] else "interrupted"), ("", ""))
    return open_ if report["complete"] else missing


# The shape of a document, as `fault_of` asks for it. docs/report_schema.md explains every key.
_STATUS = frozenset({"identity", "certified", "consistent", "refuted", "vacuous", "calibrated", "not testable"})
_EVIDENCE = {"setting": str, "trials": int, "numbers": dict, "shapes": dict, "margin": is_number, "facts": dict}
_VERDICT = {
    "class": str,
    "status": _STATUS,
    "because": str,
    "alpha": is_number,
    "slack": is_number,
    "trials": int,
    "detectable": is_number,
    "margin_is": str,
    "worst_setting": str | None,
    "facts": dict,
    "evidence": [_EVIDENCE],
    "seed": int,
}
_FORM = {
    **_VERDICT,
    "form": frozenset({"printed", "corrected"}),
    "statement": str,
    "expected": str,
    "as_expected": bool,
}
_CLAIM = {
    **dict.fromkeys(("id", "paper", "where", "kind", "statement", "hypotheses", "because", "title"), str),
    "marginal": bool,
    **dict.fromkeys(("expected_printed", "expected_corrected"), str | None),
    "as_expected": bool,
    "notes": [str],
    "forms": [_FORM],
    "controls": [{**_VERDICT, "name": str, "kind": str, "rejected": bool}],
}
_REPORT = {
    "schema": int,
    **dict.fromkeys(("profile", "dtype", "note"), str),
    "seed": int,
    "family_alpha": is_number,
    "rule": frozenset({"sequential", "fixed"}),
    "complete": bool,
    "stopped": frozenset({"", *_STOPPED}),
    "as_expected": bool,
    "papers": dict,
    "kinds": dict,
    "claims": [_CLAIM],
    "run": {"seconds": dict},
}


def fault_of(value: Any, shape: Any, where: str) -> str:
    """Return the first thing in which a value differs from a shape, "" where there is none; `where` is its name.

    A shape is a dictionary for an object with at least these keys, a list for a list of such entries, a set for one of
    several texts, a function for what passes it as a test, otherwise a type.
    """
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{where} is not an object"
        missing = [f"{where}.{key} is missing" for key in shape if key not in value]
        faults = (fault_of(value[key], inner, f"{where}.{key}") for key, inner in shape.items())
        return missing[0] if missing else next(filter(None, faults), "")
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{where} is not a list"
        return next(filter(None, (fault_of(entry, shape[0], f"{where}[{i}]") for i, entry in enumerate(value))), "")
    if isinstance(shape, frozenset):
        fits = isinstance(value, str) and value in shape
    elif isinstance(shape, FunctionType):
        fits = shape(value)
    else:  # True is an int in Python, and no number in JSON
        fits = isinstance(value, shape) and not (shape is int and isinstance(value, bool))
    return "" if fits else f"{where} is {str(value)[:30]!r}"
