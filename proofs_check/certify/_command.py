"""`python -m proofs_check certify`: arguments, progress, files, exit status."""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proofs_check import folders
from proofs_check.certify._model import GOALS
from proofs_check.data import DataError
from proofs_check.usage import AS_EXPECTED, NOT_AS_EXPECTED, NOT_WRITTEN, PROG, UsageError, number, positive

EXAMPLES = f"""examples:
  {PROG} certify points.csv --standardize                    kernel distances to 10 %, every map, ten minutes
  {PROG} certify points.npy --goal spectral --eps 0.05       the Gram matrix to 5 % of n
  {PROG} certify points.csv --columns 1-4,age --labels species --goal separation
  {PROG} certify points.npz --maps paired_fourier,nystrom --time 2 --save map.npz

Writes certificate.json and certificate.html. With --save, the lines that load the map stand below the table.

exit status: 0 a map is certified, 1 none is, 2 bad usage or input, 3 a file cannot be written, 130 interrupted."""
SECONDS_BETWEEN_LINES = 5.0
DEFAULTS: dict[str, Any] = {
    "eps": 0.1,
    "delta": 0.05,
    "confidence": 0.999,
    "goal": "distance",
    "kernel": "gaussian",
    "time": 10.0,
    "missing": "error",
    "separation": "means",
    "seed": 0,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `certify` to its parser, with a description and examples."""
    parser.description = (
        "Certify a feature map for a table of points: which map, how many features, with what confidence.\n"
        "Every size comes with what the theorems demand and with what draws on these data certify."
    )
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    known = "gaussian, laplacian, cauchy, exponential, matern32 or matern52"
    unit, whole = {"type": _unit, "metavar": "FLOAT"}, {"type": _count}
    add: Any = parser.add_argument
    add("data", type=Path, metavar="DATA", help=".npy (any size), .npz (X, and y for labels), .csv or .parquet")
    add("--eps", **unit, help="the largest error (default: %(default)s)")
    add("--delta", **unit, help="the largest probability that a draw of the map fails (default: %(default)s)")
    add("--confidence", **unit, help="of the certificate (default: %(default)s)")
    add("--goal", choices=GOALS, help="what the map shall keep (default: %(default)s)")
    add("--kernel", metavar="NAME", help=f"{known} (default: %(default)s)")
    add("--lengthscale", type=positive, metavar="FLOAT", help="of the kernel (default: the median distance)")
    add("--maps", type=_names, metavar="A,B", help="only these maps, such as paired_fourier,nystrom")
    add("--time", type=positive, metavar="MINUTES", help="the time limit (default: %(default)s)")
    add("--columns", type=_names, metavar="A,B", help="only these: names, numbers from 1 on, ranges such as 2-5")
    add("--labels", metavar="COLUMN", help="the column of classes (.npz: an array, default y)")
    add("--rows", **whole, metavar="N", help="only the first N rows")
    add("--standardize", "--standardise", action="store_true", help="scale columns to mean 0 and deviation 1")
    add("--missing", choices=("error", "drop"), help="rows that lack a value (default: %(default)s)")
    add("--clusters", **whole, metavar="K", help="for the goal clustering (default: the number of classes)")
    add("--separation", choices=("means", "points"), help="what stays apart (default: %(default)s)")
    add("--seed", type=int, metavar="INT", help="a whole number, below 2^32 (default: %(default)s)")
    add("--dtype", choices=("float32", "float64"), help="of points and maps (default: what rounding asks for)")
    add("--output", type=Path, metavar="DIR", help="a new or empty folder (default: a new one)")
    add("--save", type=Path, metavar="FILE", help="save the recommended map, as .npz")
    parser.set_defaults(**DEFAULTS)


def command(options: argparse.Namespace) -> int:
    """Certify, write the files, print the summary and return the exit status. Raises UsageError in one line."""
    began = time.monotonic()
    if not 0 <= options.seed < 2**32:
        raise UsageError(f"--seed must be a whole number from 0 to {2**32 - 1}, got {options.seed}")
    if options.output is not None:
        folders.check(options.output)
    if options.save is not None and not options.save.absolute().parent.is_dir():
        raise UsageError(f"--save {options.save} is in no folder; make it first")
    import jax

    from proofs_check.certify import certify, open_table
    from proofs_check.certify._terminal import show
    from proofs_check.execute import set_precision

    set_precision("float64")
    reading: dict[str, Any] = {
        "columns": options.columns,
        "labels": options.labels,
        "rows": options.rows,
        "standardize": options.standardize,
        "missing": options.missing,
    }
    try:
        table = open_table(options.data, **reading)
    except DataError as error:
        raise UsageError(str(error)) from None
    shown = {name: value for name, value in reading.items() if value not in (None, False, "error")}
    arguments = "".join(f", {name}={value!r}" for name, value in shown.items())
    left = 60 * options.time - (time.monotonic() - began)
    if left <= 0:
        raise UsageError(f"reading {options.data} took longer than --time {options.time:g} minutes")
    folder = folders.make(options.output, "proofs_certificate", folders.now(), options.seed)
    try:
        found = certify(
            jax.random.key(options.seed),
            table,
            eps=options.eps,
            delta=options.delta,
            confidence=options.confidence,
            goal=options.goal,
            kernel=options.kernel,
            lengthscale=options.lengthscale,
            maps=options.maps,
            time=left / 60,
            num_clusters=options.clusters,
            separation=options.separation,
            dtype=options.dtype,
            say=_progress(time.monotonic()),
            command=shlex.join([PROG, *_asked(options)]),
            opened=f"table = open_table({str(options.data)!r}{arguments})",
        )
    except ValueError as error:
        raise UsageError(f"{options.data}: {' '.join(str(error).split())}") from None
    found.document["run"]["minutes_allowed"] = options.time
    found.document["run"]["seconds"] = time.monotonic() - began
    try:
        if options.save is not None and found.map is not None:
            found.save(options.save)
            lines = ["from jaxkern import io", f"phi = io.load({str(options.save)!r})"]
            if found.dtype == "float64":
                lines[:0] = ["import jax", 'jax.config.update("jax_enable_x64", True)']
            found.document["commands"]["load"] = "\n".join(lines)
        found.write(folder)
    except OSError as error:
        print(f"{PROG}: {error.filename or folder} cannot be written ({error.strerror})", file=sys.stderr)
        return NOT_WRITTEN
    saved = [options.save] if found.document["commands"]["load"] else []
    show(found.document, files=[folder / "certificate.html", folder / "certificate.json", *saved])
    return AS_EXPECTED if found.map is not None else NOT_AS_EXPECTED


def _progress(began: float) -> Callable[[str], None]:
    """Return a function that prints a line of progress every few seconds to standard error."""
    last = -math.inf

    def say(line: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES:
            last = now
            print(f"{PROG}: {now - began:.0f} s, {line}", file=sys.stderr, flush=True)

    return say


def _asked(options: argparse.Namespace) -> list[str]:
    """Return the arguments that make the same certificate again."""
    words = ["certify", str(options.data)]
    for name in ("eps", "delta", "confidence", "goal", "kernel", "lengthscale", "time", "labels", "rows", "missing"):
        words += _option(name, getattr(options, name))
    for name in ("clusters", "separation", "seed", "dtype"):
        words += _option(name, getattr(options, name))
    for name in ("maps", "columns"):
        value = getattr(options, name)
        words += [] if value is None else [f"--{name}", ",".join(value)]
    return words + (["--standardize"] if options.standardize else [])


def _option(name: str, value: Any) -> list[str]:
    if value is None or value == DEFAULTS.get(name):
        return []
    return [f"--{name}", f"{value:.10g}" if isinstance(value, float) else str(value)]


def _unit(text: str) -> float:
    value = number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, got {text[:30]!r}")
    return value


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be a positive whole number, got {text[:30]!r}")
    return int(text)


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"must be names separated by commas, got {text[:30]!r}")
    return names
