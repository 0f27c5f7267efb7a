"""The certificate as one strict JSON document: checked, written in one step, read back.

The page (`_page`) and the table for a terminal (`_terminal`) are made from this document alone. Its keys are explained
in docs/certificate_schema.md. Nothing here imports jax.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from proofs_check.certify._model import GOALS
from proofs_check.engine.documents import fault_of, load, write_json

SCHEMA = 1
Test = Callable[[Any], bool]
_HUGE = 1e300  # sums and products of a few numbers below that are finite floats, also of whole numbers


def read(path: Path) -> dict[str, Any]:
    """Return the certificate that a file holds. Raises DocumentError, in one line, where it holds none to be read."""
    return load(path, "certificate", "certificate", SCHEMA, find_fault)


def write(path: Path, document: Mapping[str, Any]) -> None:
    """Write a certificate as strict JSON in one step. Raises ValueError for what `find_fault` does not accept."""
    fault = find_fault(document)
    if fault:
        raise ValueError(f"this is not a certificate of schema version {SCHEMA}: {fault}")
    write_json(path, document)


def find_fault(document: Any) -> str:
    """Return the first thing in which a document differs from the schema, the empty string where there is none."""
    try:
        return fault_of(document, _CERTIFICATE, "certificate") or next(filter(None, _faults_inside(document)), "")
    except RecursionError:
        return "certificate is nested too deeply"


def _faults_inside(document: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the parts that may be missing, and with parts that contradict each other."""
    maps, recommended = document["maps"], document["map"]
    names = [entry["map"] for entry in maps]
    certified = [entry["map"] for entry in maps if entry["status"] == "certified"]
    faults = [
        fault_of(entry["error"], _ERROR, f"certificate.maps[{i}].error")
        for i, entry in enumerate(maps)
        if entry["error"] is not None
    ]
    faults += [
        f"certificate.maps[{i}] has more failures than draws"
        for i, entry in enumerate(maps)
        if any(part["failures"] > part["draws"] for part in (entry, *entry["curve"]))
    ]
    faults += [fault_of(document["pairs"], _PAIRS, "certificate.pairs")] if document["pairs"] else []
    faults += [fault_of(document["classes"], [_CLASSES], "certificate.classes")] if "classes" in document else []
    if len(set(names)) < len(names):
        faults.append("certificate.maps has a map twice")
    if recommended is not None and recommended not in certified:
        faults.append(f"certificate.map is {_short(recommended)!r}, which certificate.maps does not certify")
    return faults


def _short(value: Any) -> str:
    return str(value)[:30]


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -_HUGE < value < _HUGE


def _or_null(fits: Test) -> Test:
    return lambda value: value is None or fits(value)


def _each(fits: Test) -> Test:
    """Return what objects with any names pass, whose values pass a test."""
    return lambda value: isinstance(value, dict) and all(fits(entry) for entry in value.values())


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_version(value: Any) -> bool:
    return value == SCHEMA and not isinstance(value, bool)


def _above_zero(value: Any) -> bool:
    return _is_real(value) and value > 0


def _not_negative(value: Any) -> bool:
    return _is_real(value) and value >= 0


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and _not_negative(value)


def _is_rate(value: Any) -> bool:
    return _is_real(value) and 0 <= value <= 1


def _is_proper_rate(value: Any) -> bool:
    return _is_rate(value) and 0 < value < 1


def _is_basis(value: Any) -> bool:
    return value in (None, "draws", "this data", "worst case")


def _is_scope(value: Any) -> bool:
    return value in (None, "all rows", "samples")


def _is_decay(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(entry, str) if name in ("words", "pairs") else _is_real(entry) for name, entry in value.items()
    )


# The shape of a document, as `fault_of` asks for it; docs/certificate_schema.md explains every key.
_STATUS = frozenset({"certified", "not certified", "out of time", "not for this goal"})
_ERROR = dict.fromkeys(("median", "low", "high", "largest"), _or_null(_not_negative))
_POINT = {
    **dict.fromkeys(("size", "num_features", "draws", "failures"), _is_count),
    **dict.fromkeys(("low", "median", "high", "seconds_per_million"), _or_null(_not_negative)),
    "certifying": bool,
}
_MAP = {
    "map": str,
    "status": _STATUS,
    "words": str,
    "sizes": _or_null(_each(_is_count)),
    "num_features": _or_null(_is_count),
    "basis": _is_basis,
    "scope": _is_scope,
    "points_per_draw": _or_null(_is_count),
    **dict.fromkeys(("draws", "failures"), _is_count),
    "rate_upper": _or_null(_is_rate),
    "alpha": _is_rate,
    "error": dict | None,
    "seconds_per_million": _or_null(_not_negative),
    **dict.fromkeys(("map_bytes", "feature_bytes_per_million"), _or_null(_is_count)),
    "curve": [_POINT],
}
_DEMAND = {
    "map": str,
    "sizes": _or_null(_each(_is_count)),
    "num_features": _or_null(_is_count),
    "source": str,
    "words": str,
    "worst_case": bool,
}
_HYPOTHESIS = {
    **dict.fromkeys(("statement", "asks", "found"), str),
    "holds": bool | None,
    "needed": _or_null(_is_count),
}
_DATA = {
    "source": str,
    **dict.fromkeys(("rows", "num_columns", "duplicate_rows"), _is_count),
    "columns": [str],
    "left_out": _each(_is_text),
    "standardized": bool,
    "zero_pairs": _or_null(_is_count),
    "notes": [str],
}
_BIN = {
    **dict.fromkeys(("low", "high"), _not_negative),
    "pairs": _is_count,
    **dict.fromkeys(("q50", "q95", "q100"), _or_null(_not_negative)),
}
_PAIRS = {
    **dict.fromkeys(("points", "pairs"), _is_count),
    **dict.fromkeys(("zero_pairs", "unresolved"), _or_null(_is_count)),
    "largest": _or_null(_not_negative),
    "bins": [_BIN],
}
_CLASSES = {**dict.fromkeys(("first", "second"), str), **dict.fromkeys(("exact", "kept"), _or_null(_is_real))}
_CERTIFICATE = {
    "certificate": _is_version,
    "made_by": str,
    "goal": frozenset(GOALS),
    "goal_words": str,
    "map": str | None,
    "sizes": _each(_is_count),
    "num_features": _or_null(_is_count),
    "kernel": str,
    "lengthscale": _above_zero,
    "lengthscale_from": str,
    "eps": _above_zero,
    **dict.fromkeys(("delta", "confidence"), _is_proper_rate),
    "seed": _or_null(_is_count),
    "dtype": frozenset({"float32", "float64"}),
    "basis": _is_basis,
    "scope": _is_scope,
    "points_per_draw": _or_null(_is_count),
    "guarantee": str,
    "reasons": [str],
    "data": _DATA,
    "theory": [_DEMAND],
    "maps": [_MAP],
    "spectrum": {
        "points": _is_count,
        "eigenvalues": [_is_real],
        "effective_dimension": _each(_is_real),
        "decay": _is_decay,
    },
    "hypotheses": [_HYPOTHESIS],
    "pairs": dict,
    "commands": dict.fromkeys(("again", "python", "load"), str | None),
    "run": {
        **dict.fromkeys(("seconds", "minutes_allowed"), _not_negative),
        **dict.fromkeys(("device", "started"), str),
        "versions": _each(_is_text),
    },
}
