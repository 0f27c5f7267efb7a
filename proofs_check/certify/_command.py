"""`python -m proofs_check certify`: arguments, progress, files, exit status."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from proofs_check.certify._model import GOALS
from proofs_check.cli import folders
from proofs_check.engine import files
from proofs_check.engine.checkpoint import MANIFEST
from proofs_check.engine.reading import DataError
from proofs_check.usage import (
    AS_EXPECTED,
    NOT_AS_EXPECTED,
    NOT_WRITTEN,
    PROG,
    StorageError,
    UsageError,
    check_file,
    number,
    positive,
)

EXAMPLES = f"""examples:
  {PROG} certify points.csv --standardize                    kernel distances to 10 %, every map, ten minutes
  {PROG} certify points.npy --goal spectral --eps 0.05       the Gram matrix to 5 % of n
  {PROG} certify points.csv --columns 1-4,age --labels species --goal separation
  {PROG} certify points.npz --maps paired_fourier,nystrom --time 2 --save map.npz

Writes certificate.json and certificate.html. With --save, the lines that load the map stand below the table. No file
that exists is replaced without --overwrite, and the table that is read never is.

exit status: 0 a map is certified, 1 none is, 2 bad usage or input, 3 a file cannot be written (what was found is
printed), 130 interrupted."""
FILES = ("certificate.html", "certificate.json")
LOCK = ".certify.lock"
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
    add(
        "--time",
        type=positive,
        metavar="MINUTES",
        help="ends within 1.5 times that, plus one compile (default: %(default)s)",
    )
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
    add("--save", type=Path, metavar="FILE", help="save the recommended map, as .npz; nothing is appended to the name")
    add("--overwrite", action="store_true", help="replace what --save names, and a certificate that is in --output")
    parser.set_defaults(**DEFAULTS)


def command(options: argparse.Namespace) -> int:
    """Certify, write the files, print the summary and return the exit status. Raises UsageError in one line."""
    began = time.monotonic()
    if not 0 <= options.seed < 2**32:
        raise UsageError(f"--seed must be a whole number from 0 to {2**32 - 1}, got {options.seed}")
    if options.output is not None:
        _check_folder(options.output, options.overwrite)
    if options.save is not None:
        _check_save(options)
    import jax

    from proofs_check.certify import certify, open_table
    from proofs_check.certify._terminal import show
    from proofs_check.cli.request import set_precision

    set_precision("float64")
    reading: dict[str, Any] = {
        "columns": options.columns,
        "labels": options.labels,
        "rows": options.rows,
        "standardize": options.standardize,
        "missing": options.missing,
    }
    try:
        table = open_table(options.data, **reading, until=began + 60 * options.time)
    except DataError as error:
        raise UsageError(str(error)) from None
    shown = {name: value for name, value in reading.items() if value not in (None, False, "error")}
    arguments = "".join(f", {name}={value!r}" for name, value in shown.items())
    left = 60 * options.time - (time.monotonic() - began)
    if left <= 0:
        raise UsageError(f"reading {options.data} took longer than --time {options.time:g} minutes")
    folder = folders.make(options.output, "proofs_certificate", folders.now(), options.seed)
    with _locked(folder, options.overwrite):
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
        written, refused = _write(found, folder, options)
    show(found.document, files=written)
    if refused:
        if folder / FILES[-1] not in written:  # so that nothing is lost
            print(json.dumps(found.document, indent=1, allow_nan=False), flush=True)
        print("\n".join(f"{PROG}: {line}" for line in refused), file=sys.stderr)
        return NOT_WRITTEN
    return AS_EXPECTED if found.map is not None else NOT_AS_EXPECTED


def _check_folder(folder: Path, overwrite: bool) -> None:
    """Raise UsageError unless a folder is new, empty, or holds a certificate that may be replaced."""
    with contextlib.suppress(OSError):  # folders.check says why
        others = {path.name for path in {*folder.iterdir()}.difference(files.leftovers(folder))} - {LOCK}
        if not others or (overwrite and MANIFEST not in others):
            return
        if MANIFEST not in others:
            raise UsageError(f"--output {folder} is not empty; choose a new folder, or pass --overwrite")
    folders.check(folder)


def _check_save(options: argparse.Namespace) -> None:
    """Raise UsageError where the map cannot be saved without loss."""
    check_file("--save", options.save, overwrite=options.overwrite, inputs=[options.data])
    made = () if options.output is None else (options.output / name for name in (*FILES, LOCK))
    if options.save.resolve() in {path.resolve() for path in made}:
        raise UsageError(f"--save {options.save} is a file of the certificate; choose another one")


@contextlib.contextmanager
def _locked(folder: Path, overwrite: bool) -> Iterator[None]:
    """Keep a folder to one certificate: a second one is refused with a UsageError. The end of a process frees it."""
    path = folder / LOCK
    with files.failing(path):
        handle = files.open_locked(path)
    try:
        # Not a lock that its owner has removed since it was opened.
        if handle is None or not os.path.samestat(os.fstat(handle), os.lstat(path)):
            raise FileNotFoundError
    except FileNotFoundError:
        if handle is not None:
            os.close(handle)
        raise UsageError(f"{folder} is in use by another certify; choose a new folder") from None
    try:
        _check_folder(folder, overwrite)
        for left in files.leftovers(folder):
            if left.name.startswith(".certificate."):
                left.unlink()
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def _write(found: Any, folder: Path, options: argparse.Namespace) -> tuple[list[Path], list[str]]:
    """Write the map and the certificate; return what was written, and a line for each thing that could not be."""
    written, refused = [], []
    if options.save is not None and found.map is not None:
        try:
            _check_save(options)  # it may be there by now
            with files.failing(options.save):
                found.save(options.save)
                files.sync_folder(options.save.absolute().parent)
        except (UsageError, StorageError) as error:
            refused.append(f"{error}; the map can be drawn with the lines of Python in the certificate")
        else:
            written.append(options.save)
            lines = ["from jaxkern import io", f"phi = io.load({str(options.save)!r})"]
            if found.dtype == "float64":
                lines[:0] = ["import jax", 'jax.config.update("jax_enable_x64", True)']
            found.document["commands"]["load"] = "\n".join(lines)
    try:
        found.write(folder)
        written = [*(folder / name for name in FILES), *written]
    except (StorageError, ValueError) as error:
        refused.append(str(error))
    return written, refused


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
