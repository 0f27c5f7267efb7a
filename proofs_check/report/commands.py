"""The commands that run a report, or one claim of it, again."""

import shlex
from collections.abc import Mapping
from typing import Any


def run_command(report: Mapping[str, Any]) -> str:
    """Return the command that makes the same numbers once more, as far as a budget of time lets it."""
    asked = _asked(report)
    chosen = ["--paper", str(asked["paper"])] if asked.get("paper") else []
    names = asked.get("claim")
    for name in names if isinstance(names, list) else []:
        chosen += ["--claim", str(name)]
    return _command(report, [*chosen, "--all"] if asked.get("margin") else chosen)


def claim_command(report: Mapping[str, Any], claim_id: str) -> str:
    """Return the command that runs one claim of a report once more, with the same seed."""
    return _command(report, ["--claim", claim_id])


def _asked(report: Mapping[str, Any]) -> Mapping[str, Any]:
    asked = report["run"].get("command")
    return asked if isinstance(asked, Mapping) else {}


def _command(report: Mapping[str, Any], chosen: list[str]) -> str:
    asked = _asked(report)
    words = [
        "python",
        "-m",
        "proofs_check",
        *chosen,
        "--seed",
        str(report["seed"]),
        "--profile",
        report["profile"],
    ]
    if report["dtype"] != "float64":
        words += ["--dtype", report["dtype"]]
    files = asked.get("files")
    for file in files if isinstance(files, list | tuple) else ():
        words += ["--claims", str(file)]
    for option in ("data", "lengthscale", "budget"):
        if asked.get(option) is not None:
            words += [f"--{option}", str(asked[option])]
    table = asked.get("table")
    for option, value in table.items() if isinstance(table, Mapping) else ():
        given = (
            ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        )
        words += [f"--{option}"] if value is True else [f"--{option}", given]
    return shlex.join(words)
