"""`python -m proofs_check certify`: arguments, progress, files, exit status."""

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from proofs_check.engine import checkpoint, files, folders
from proofs_check.engine import table_options as tables
from proofs_check.usage import (
    AS_EXPECTED,
    NOT_AS_EXPECTED,
    NOT_WRITTEN,
    PROG,
    UsageError,
    check_file,
    positive,
    whole,
)

EXAMPLES = """examples:
  proofs-check certify points.csv --standardize                    kernel distances to 10 %, every map, ten minutes
  proofs-check certify points.npy --goal spectral --eps 0.05       the Gram matrix to 5 % of n
  proofs-check certify points.csv --columns 1-4,age --labels species --goal separation
  proofs-check certify points.csv --goal prediction --target species --standardize
  proofs-check certify points.npz --maps paired_fourier,nystrom --time 2 --save map.npz

Writes certificate.html, its pictures and certificate.json. No file that exists is replaced without --overwrite, and the
table that is read never is. Draws are kept in the folder until the search is finished. The same command with this
folder as --output goes on from them, with any --time; with --overwrite if a certificate is there.

exit status: 0 a map is certified, 1 none is, 2 bad usage or input, 3 a file cannot be written (the certificate is
printed), 130 interrupted."""
PAGE = "certificate.html"
DOCUMENT = "certificate.json"
LOCK = ".certify.lock"
DRAWS = ".certify.draws.json"
"""The draws of a search that is not finished, in the folder of the certificate."""
SECONDS_BETWEEN_LINES = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `certify` to its parser; one that is not set is None, and a `Request` has its default."""
    parser.description = (
        "Certify a feature map for a table of points: which map, how many features, with what confidence.\n"
        "Every size comes with what the theorems demand and with what draws on these data certify."
    )
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    real = {"type": positive, "metavar": "FLOAT"}
    count = {"type": whole, "metavar": "N"}
    path = {"type": Path, "metavar": "PATH"}
    table = ".csv, .tsv, .txt, .csv.gz, .parquet, .npz (X, and y for labels) or .npy"
    add: Any = parser.add_argument
    add("data", **path, help=table)

    add = parser.add_argument_group("what the map shall keep").add_argument
    goals = ("distance", "spectral", "clustering", "separation", "prediction")
    clusters = "of k-means (default: the number of classes)"
    restarts = "of k-means (default: 10, 30 or 100, by a look at the rows)"
    target = "of the target (default: text and few whole numbers are classes)"
    add("--goal", choices=goals, help="default: distance")
    add("--eps", **real, help="the largest error (default: 0.1)")
    add("--clusters", "--num-clusters", dest="num_clusters", **count, help=clusters)
    add("--num-restarts", **count, help=restarts)
    add("--target-kind", choices=("number", "class"), help=target)

    add = parser.add_argument_group("how sure").add_argument
    fails = "the largest probability that a draw of the map fails (default: 0.05)"
    add("--delta", **real, help=fails)
    add("--confidence", **real, help="default: 0.999, and 0.95 for a prediction")
    add("--seed", type=whole, default=0, metavar="INT", help="default: 0")

    group: Any = parser.add_argument_group("the table")
    tables.add_arguments(group)

    add = parser.add_argument_group("maps and limits").add_argument
    kernels = "gaussian (default), laplacian, cauchy, exponential, matern32 or matern52"
    precision = "of points and maps (default: what rounding asks for)"
    late = "no draw begins later than that (default: 10.0)"
    add("--maps", type=tables.names, metavar="A,B", help="only these maps")
    add("--kernel", metavar="NAME", help=kernels)
    add("--lengthscale", **real, help="of the kernel (default: the median distance)")
    add("--dtype", choices=("float32", "float64"), help=precision)
    add("--features-at-most", **count, help="no map with more features")
    add("--time", type=positive, metavar="MINUTES", help=late)

    add = parser.add_argument_group("files").add_argument
    replace = "replace what --save names, and a certificate that is in --output"
    add("--output", **path, help="an empty folder (default: a new one)")
    add("--save", **path, help="write the recommended map to this file, as .npz")
    add("--overwrite", action="store_true", help=replace)


def command(options: argparse.Namespace) -> int:
    """Certify, write the files, print the summary and return the exit status. Raises UsageError in one line."""
    _check(options)
    import jax

    try:
        import matplotlib  # noqa: F401 (a missing package is told before hours of draws)

        from proofs_check.certify import (  # noqa: F401
            Request,
            certify,
            open_table,
            page,
            terminal,
        )
    except ImportError as error:
        install = 'pip install "jaxkern-verified[check]"'
        raise UsageError(f"certify needs {error.name}: {install}") from None

    # Before the table is read: errors are against its kernel in float64.
    jax.config.update("jax_enable_x64", True)
    reading = tables.asked(options)
    if options.goal == "prediction":
        # As a target it would be left out.
        reading["labels"] = reading.pop("target")
    words = "".join(f", {name}={value!r}" for name, value in reading.items())
    opened = f"table = open_table({str(options.data)!r}{words})"
    fields = [field.name for field in dataclasses.fields(Request)]
    settings = {name: getattr(options, name) for name in fields}
    settings = {name: value for name, value in settings.items() if value is not None}
    with _usage():
        request = Request(**settings)
        table = open_table(options.data, **reading)
    now = folders.now()
    folder = folders.make(options.output, "proofs_certificate", now, options.seed)
    draws = folder / DRAWS
    with _locked(folder, options):
        with _usage():
            certificate = certify(
                jax.random.key(options.seed),
                table,
                request,
                say=_progress(),
                command=_again(options, fields),
                opened=opened,
                finished=(draws, _digest(options, request, opened)),
            )
        certificate, written, faults = _write(certificate, folder, options)
        if certificate.search.finished and not faults:
            draws.unlink(missing_ok=True)
    terminal.show(certificate, written)
    if folder / DOCUMENT not in written:
        # A full disk must not cost hours of draws.
        print(json.dumps(certificate.document, indent=1, allow_nan=False), flush=True)
    if faults:
        print(*(f"{PROG}: {fault}" for fault in faults), sep="\n", file=sys.stderr)
        return NOT_WRITTEN
    return NOT_AS_EXPECTED if certificate.map is None else AS_EXPECTED


@contextlib.contextmanager
def _usage() -> Iterator[None]:
    """Raise a ValueError as a UsageError of one line."""
    try:
        yield
    except ValueError as error:
        raise UsageError(" ".join(str(error).split())) from None


def _check(options: argparse.Namespace) -> None:
    """Raise UsageError for what cannot end well, before JAX is imported and the table is read."""
    if options.output is not None:
        _check_folder(options.output, options)
    if options.save is not None:
        _check_save(options)
    if options.goal == "prediction" and (options.labels or not options.target):
        raise UsageError(
            "--goal prediction needs --target COLUMN, classes or numbers to be predicted, and no --labels"
        )


def _check_folder(folder: Path, options: argparse.Namespace) -> None:
    """Raise UsageError if a folder is a file, belongs to a run, or holds more than draws."""
    if not folder.is_dir() or (folder / checkpoint.MANIFEST).exists():
        folders.check(folder)
        return
    known = {LOCK, DRAWS, *(path.name for path in files.leftovers(folder))}
    if not options.overwrite and not known.issuperset(os.listdir(folder)):
        advice = "choose a new folder, or pass --overwrite"
        raise UsageError(f"--output {folder} is not empty; {advice}")


def _check_save(options: argparse.Namespace) -> None:
    """Raise UsageError if the map cannot be saved without loss."""
    path = options.save
    overwrite = options.overwrite
    check_file("--save", path, overwrite=overwrite, inputs=[options.data])
    is_beside = options.output and path.resolve().parent == options.output.resolve()
    if is_beside and path.name in (PAGE, DOCUMENT, LOCK, DRAWS):
        where = f"--save {path} is a file of the certificate"
        raise UsageError(f"{where}; choose another one")


def _again(options: argparse.Namespace, fields: list[str]) -> str:
    """Return the command that makes the same certificate again; `fields` are options of a request."""
    arguments = [PROG, "certify", str(options.data)]
    for name in (*fields, "seed", *tables.OPTIONS):
        value = getattr(options, name)
        if not value:
            continue
        arguments.append(f"--{name.replace('_', '-')}")
        if isinstance(value, list):
            arguments.append(",".join(value))
        elif value is not True:
            arguments.append(str(value))
    return shlex.join(arguments)


def _digest(options: argparse.Namespace, request: Any, opened: str) -> str:
    """Return a text that differs if another request, table or program would make other draws."""
    from proofs_check.engine.versions import versions

    # More time makes more draws, and the same ones first.
    endless = dataclasses.replace(request, time=1.0)
    table = checkpoint.digest_of([options.data])
    program = checkpoint.digest_of_program()
    parts = repr([endless, opened, options.seed, program, versions(), table])
    return hashlib.sha256(parts.encode()).hexdigest()


@contextlib.contextmanager
def _locked(folder: Path, options: argparse.Namespace) -> Iterator[None]:
    """Keep a folder to one certificate: a second one is refused with a UsageError. The end of a process frees it."""
    path = folder / LOCK
    with files.failing(path):
        lock = files.open_locked(path)
    if lock is None:
        where = f"{folder} is in use by another certify"
        raise UsageError(f"{where}; choose a new folder")
    try:
        # Another certificate may be there since the first look.
        _check_folder(folder, options)
        files.clear(folder)
        yield
    finally:
        # Before it is closed: a lock that another process has opened meanwhile must not be removed.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(lock)


def _write(
    certificate: Any, folder: Path, options: argparse.Namespace
) -> tuple[Any, list[Path], list[str]]:
    """Write the map and the certificate; return it, the files, and a line for each that could not be written."""
    written = []
    faults = []
    if options.save is not None and certificate.map is not None:
        try:
            # Another file may be there since the first look.
            _check_save(options)
            with files.failing(options.save):
                certificate.save(options.save)
            written.append(options.save)
            load = _loading(certificate, options.save)
            commands = dataclasses.replace(certificate.commands, load=load)
            certificate = dataclasses.replace(certificate, commands=commands)
        except (UsageError, OSError) as error:
            faults.append(f"{error}; Python in the certificate draws the map")
    try:
        certificate.write(folder)
        # The document is the last file that is written, so that both are there.
        written = [folder / PAGE, folder / DOCUMENT, *written]
    except OSError as error:
        faults.append(str(error))
    return certificate, written, faults


def _loading(certificate: Any, path: Path) -> str:
    """Return the lines of Python that load the saved map, or the predictor."""
    name = "predictor" if certificate.goal == "prediction" else "phi"
    lines = ["from jaxkern import io", f"{name} = io.load({str(path)!r})"]
    if certificate.dtype == "float64":
        # Or JAX would load it in float32.
        lines[:0] = ["import jax", 'jax.config.update("jax_enable_x64", True)']
    return "\n".join(lines)


def _progress() -> Callable[[str], None]:
    """Return a function that prints a line to standard error, every few seconds at most."""
    began = time.monotonic()
    due = began

    def say(line: str) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due:
            due = now + SECONDS_BETWEEN_LINES
            print(f"{PROG}: {now - began:.0f} s, {line}", file=sys.stderr, flush=True)

    return say
