"""The JSON document of a certificate: checked, written in one step, read back. docs/certificate_schema.md explains it.

Nothing here imports jax.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from proofs_check.engine.documents import fault_of, load, write_json
from proofs_check.report.text import is_finite

SCHEMA = 3
_HUGE = 1e300  # sums and products of a few numbers below that are finite floats, also of whole numbers
_TINY = 5e-324  # the least number above 0
Test = Callable[[Any], bool]


def read(path: Path) -> dict[str, Any]:
    """Return the certificate that a file holds. Raises DocumentError, in one line, where it holds none to be read."""
    return load(path, "certificate", "certificate", SCHEMA, find_fault)


def write(path: Path, document: Mapping[str, Any]) -> None:
    """Write a certificate as strict JSON in one step. Raises ValueError for what `find_fault` does not accept."""
    fault = find_fault(document)
    if fault:
        raise ValueError(
            f"this is not a certificate of schema version {SCHEMA}: {fault}"
        )
    write_json(path, document)


def find_fault(document: Any) -> str:
    """Return the first thing in which a document differs from the schema, the empty string where there is none."""
    try:
        return fault_of(document, CERTIFICATE, "certificate") or next(
            filter(None, _contradictions(document)), ""
        )
    except RecursionError:
        return "certificate is nested too deeply"


def _contradictions(document: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the parts that may be missing, and which parts contradict each other."""
    maps, faults = document["maps"], []
    for i, entry in enumerate(maps):
        where = f"certificate.maps[{i}]"
        if entry["error"] is not None:
            faults.append(fault_of(entry["error"], ERROR, f"{where}.error"))
        if any(part["failures"] > part["draws"] for part in (entry, *entry["curve"])):
            faults.append(f"{where} has more failures than draws")
    for name, shape in PARTS.items():
        told = document.get(name)
        missing = name not in document or (name in ABSENT and told == ABSENT[name])
        if not missing or name == document["goal"] == "prediction":
            faults.append(fault_of(told, shape, f"certificate.{name}"))
    if document["search"]["done"] > document["search"]["steps"]:
        faults.append("certificate.search has more steps done than there are")
    rows = [(entry["map"], entry["sizes"]) for entry in maps]
    if any(row in rows[:i] for i, row in enumerate(rows)):
        faults.append("certificate.maps has a map twice at the same sizes")
    headline = {
        name: document[name]
        for name in ("map", "sizes", "num_features", "basis", "scope")
    }
    told = [
        {name: entry[name] for name in headline}
        for entry in maps
        if entry["recommended"]
    ]
    if told != ([] if document["map"] is None else [headline]):
        faults.append(
            "certificate.maps recommends something else than the certificate does"
        )
    if any(entry["recommended"] and entry["status"] != "certified" for entry in maps):
        faults.append("certificate.maps recommends what it does not certify")
    return faults


# The shape of a document, as `fault_of` asks for it; the schema page explains every key.


def _within(low: float, high: float = _HUGE) -> Test:
    return lambda value: is_finite(value) and low <= value <= high


def _or_null(fits: Test) -> Test:
    return lambda value: value is None or fits(value)


def _among(*texts: str) -> Test:
    return lambda value: isinstance(value, str) and value in texts


def _each(fits: Test) -> Test:
    """Return what objects with any names pass, whose values pass a test."""
    return lambda value: (
        isinstance(value, dict) and all(fits(entry) for entry in value.values())
    )


def _count(value: Any) -> bool:
    return isinstance(value, int) and _amount(value)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _decay(value: Any) -> bool:
    return isinstance(value, dict) and all(
        (_text if name in ("words", "pairs") else _real)(entry)
        for name, entry in value.items()
    )


def _keys(names: str, shape: Any) -> dict[str, Any]:
    return dict.fromkeys(names.split(), shape)


_real, _amount, _rate = _within(-_HUGE), _within(0), _within(0, 1)
_open_rate = _within(_TINY, 1 - 2**-53)
_evidence = {
    "sizes": _or_null(_each(_count)),
    "basis": _or_null(_among("draws", "this data", "worst case", "held-out rows")),
    "scope": _or_null(_among("all rows", "samples", "rows never seen")),
    **_keys("num_features points_per_draw", _or_null(_count)),
}
ERROR = _keys("median low high largest", _or_null(_amount))
POINT = {
    **_keys("size num_features draws failures", _count),
    **_keys("low median high seconds_per_million", _or_null(_amount)),
    "certifying": bool,
}
MAP = {
    **_keys("map words", str),
    "recommended": bool,
    "status": _among("certified", "not certified", "out of time", "not for this goal"),
    **_evidence,
    **_keys("draws failures", _count),
    "rate_upper": _or_null(_rate),
    "alpha": _rate,
    "error": dict | None,
    "seconds_per_million": _or_null(_amount),
    **_keys("map_bytes feature_bytes_per_million", _or_null(_count)),
    "curve": [POINT],
}
DEMAND = {
    **_keys("map source words", str),
    "sizes": _evidence["sizes"],
    "num_features": _or_null(_count),
    "worst_case": bool,
}
HYPOTHESIS = {
    **_keys("statement asks found", str),
    "holds": bool | None,
    "needed": _or_null(_count),
}
DATA = {
    "source": str,
    **_keys("rows num_columns duplicate_rows", _count),
    **_keys("columns notes", [str]),
    "left_out": _each(_text),
    "standardized": bool,
    "zero_pairs": _or_null(_count),
}
BIN = {
    **_keys("low high", _amount),
    "pairs": _count,
    **_keys("q50 q95 q100", _or_null(_amount)),
}
PAIRS = {
    **_keys("points pairs", _count),
    **_keys("zero_pairs unresolved", _or_null(_count)),
    "largest": _or_null(_amount),
    "bins": [BIN],
}
CLASSES = {**_keys("first second", str), **_keys("exact kept", _or_null(_real))}
METHOD = {
    "name": str,
    "sizes": _evidence["sizes"],
    "num_features": _count,
    "loss": _amount,
    **_keys("excess low high", _real),
    "bound": _or_null(_amount),
}
PREDICTION = {
    **_keys("target loss", str),
    "numeric": bool,
    **_keys("train test", _count),
    "regularization": _within(_TINY),
    "level": _rate,
    "exact_bound": _or_null(_amount),
    "rows": [METHOD],
    "words": [str],
}
AGREEMENT = {
    "name": _among("no kernel", "exact kernel", "the recommended map"),
    "adjusted_rand": _or_null(_real),
}
CLUSTERING = {
    **_keys("num_clusters num_restarts", _count),
    "agreement": [AGREEMENT],
    "words": [str],
}
SPECTRUM = {
    **_keys("points above_eps", _count),
    "eigenvalues": [_real],
    "effective_dimension": _each(_real),
    "decay": _decay,
}
SEARCH = {
    "finished": bool,
    **_keys("done steps", _count),
    "words": str,
    "minutes_more": _or_null(_amount),
}
CANDIDATE = {
    **_keys("map words", str),
    "sizes": _each(_count),
    **_keys("num_features draws failures", _count),
    "rate_upper": _or_null(_rate),
}
COMPARISON = {
    "name": _among("exact kernel", "no kernel"),
    "words": str,
    "num_features": _or_null(_count),
    **_keys("error seconds_per_million", _or_null(_amount)),
}
ACCURACY = {
    "name": _among("no kernel", "exact kernel", "the recommended map"),
    "accuracy": _or_null(_rate),
}
HELD_OUT = {**_keys("train test", _count), "rows": [ACCURACY], "words": str}
COMMANDS = _keys("again python load", str | None)
RUN = {
    **_keys("seconds minutes_allowed", _amount),
    **_keys("device started", str),
    "versions": _each(_text),
}
CERTIFICATE = {
    "certificate": lambda value: value == SCHEMA and value is not True,
    **_keys("made_by goal_words kernel lengthscale_from guarantee", str),
    "goal": _among("distance", "spectral", "clustering", "separation", "prediction"),
    "map": str | None,
    **_evidence,
    "sizes": _each(_count),
    **_keys("lengthscale eps", _within(_TINY)),
    **_keys("delta confidence", _open_rate),
    "seed": _or_null(_count),
    "dtype": _among("float32", "float64"),
    "reasons": [str],
    "data": DATA,
    "theory": [DEMAND],
    "maps": [MAP],
    "search": SEARCH,
    "candidate": dict | None,
    "comparison": [COMPARISON],
    "held_out": dict,
    "spectrum": SPECTRUM,
    "hypotheses": [HYPOTHESIS],
    "pairs": dict,
    "commands": COMMANDS,
    "run": RUN,
}
PARTS = {
    "pairs": PAIRS,
    "classes": [CLASSES],
    "prediction": PREDICTION,
    "clustering": CLUSTERING,
    "candidate": CANDIDATE,
    "held_out": HELD_OUT,
}
"""Parts that may be missing."""
ABSENT: dict[str, Any] = {"pairs": {}, "candidate": None, "held_out": {}}
"""How a part says that it is missing, if its key is there all the same."""
