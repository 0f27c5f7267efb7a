"""`python -m proofs_check certify`: arguments, progress, files, exit status."""

import argparse
import contextlib
import json
import math
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from proofs_check.cli import folders, tables
from proofs_check.engine import checkpoint, files
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
    whole,
)

EXAMPLES = f"""examples:
  {PROG} certify points.csv --standardize                    kernel distances to 10 %, every map, ten minutes
  {PROG} certify points.npy --goal spectral --eps 0.05       the Gram matrix to 5 % of n
  {PROG} certify points.csv --columns 1-4,age --labels species --goal separation
  {PROG} certify points.csv --goal prediction --target species --standardize
  {PROG} certify points.npz --maps paired_fourier,nystrom --time 2 --save map.npz

Writes certificate.json and certificate.html. With --save, the lines that load the map stand below the table. No file
that exists is replaced without --overwrite, and the table that is read never is. With --output, every draw is kept in
the folder until the search is finished: the same command goes on from there after it was killed, and with --overwrite
where the time ended.

exit status: 0 a map is certified, 1 none is, 2 bad usage or input, 3 a file cannot be written (the certificate is
printed), 130 interrupted."""
FILES = ("certificate.html", "certificate.json")
LOCK = ".certify.lock"
DRAWS = ".certify.draws"
"""The folder, in that of the certificate, of the draws of a search that is not finished."""
SECONDS_BETWEEN_LINES = 5.0
DEFAULTS: dict[str, Any] = {
    "eps": 0.1,
    "delta": 0.05,
    "goal": "distance",
    "kernel": "gaussian",
    "time": 10.0,
    "separation": "means",
    "seed": 0,
}


ASKED = (
    "eps", "delta", "confidence", "goal", "kernel", "lengthscale", "maps", "time", "separation", "dtype",
    "features_at_most", "target_kind", "num_restarts",
)  # fmt: skip
"""Options that are attributes of a `Request` of the same name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `certify` to its parser, with a description and examples."""
    parser.description = (
        "Certify a feature map for a table of points: which map, how many features, with what confidence.\n"
        "Every size comes with what the theorems demand and with what draws on these data certify."
    )
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    known = "gaussian, laplacian, cauchy, exponential, matern32 or matern52"
    unit, count = {"type": _unit, "metavar": "FLOAT"}, {"type": _count}
    add: Any = parser.add_argument
    add(
        "data",
        type=Path,
        metavar="DATA",
        help=".csv, .tsv, .txt, .csv.gz, .parquet, .npz (X, and y for labels) or .npy (any size)",
    )
    add("--eps", **unit, help="the largest error (default: %(default)s)")
    add(
        "--delta",
        **unit,
        help="the largest probability that a draw of the map fails (default: %(default)s)",
    )
    add(
        "--confidence",
        **unit,
        help="of the certificate (default: 0.999, prediction: 0.95)",
    )
    add(
        "--features-at-most",
        **count,
        metavar="N",
        help="no map with more features of a point",
    )
    goals = ("distance", "spectral", "clustering", "separation", "prediction")
    add("--goal", choices=goals, help="what the map shall keep (default: %(default)s)")
    add("--kernel", metavar="NAME", help=f"{known} (default: %(default)s)")
    add(
        "--lengthscale",
        type=positive,
        metavar="FLOAT",
        help="of the kernel (default: the median distance)",
    )
    add(
        "--maps",
        type=tables.names,
        metavar="A,B",
        help="only these maps, such as paired_fourier,nystrom",
    )
    add(
        "--time",
        type=positive,
        metavar="MINUTES",
        help="ends within 1.5 times that, plus one compile (default: %(default)s)",
    )
    tables.add_arguments(parser)
    add("--rows", **count, metavar="N", help="only the first N rows")
    add(
        "--clusters",
        **count,
        metavar="K",
        help="for the goal clustering (default: the number of classes)",
    )
    add(
        "--num-restarts",
        **count,
        metavar="N",
        help="of k-means, for the goal clustering (default: 10, 30 or 100, by a look at the rows)",
    )
    add(
        "--separation",
        choices=("means", "points"),
        help="what stays apart (default: %(default)s)",
    )
    add(
        "--target-kind",
        choices=("number", "class"),
        help="what the target is (default: text and few whole numbers are classes)",
    )
    add(
        "--seed",
        type=whole,
        metavar="INT",
        help="a whole number, below 2^32 (default: %(default)s)",
    )
    add(
        "--dtype",
        choices=("float32", "float64"),
        help="of points and maps (default: what rounding asks for)",
    )
    add(
        "--output",
        type=Path,
        metavar="DIR",
        help="a new or empty folder (default: a new one)",
    )
    add(
        "--save",
        type=Path,
        metavar="FILE",
        help="save the recommended map, as .npz; nothing is appended to the name",
    )
    add(
        "--overwrite",
        action="store_true",
        help="replace what --save names, and a certificate that is in --output",
    )
    parser.set_defaults(**DEFAULTS)


def command(options: argparse.Namespace) -> int:
    """Certify, write the files, print the summary and return the exit status. Raises UsageError in one line."""
    began = time.monotonic()
    if options.output is not None:
        _check_folder(options.output, options)
    if options.save is not None:
        _check_save(options)
    if options.goal == "prediction" and (
        options.target is None or options.labels is not None
    ):
        raise UsageError(
            "--goal prediction needs --target COLUMN, classes or numbers to be predicted, and no --labels"
        )
    import jax

    from proofs_check.certify import Request, certify
    from proofs_check.cli.request import set_precision

    try:
        from proofs_check.report import certificate_terminal
    except ImportError as error:
        raise UsageError(
            f'certify needs {error.name}: pip install "jaxkern-verified[check]"'
        ) from None

    set_precision("float64")
    asked = {
        name: getattr(options, name)
        for name in ASKED
        if getattr(options, name) is not None
    }
    try:
        request = Request(**asked, num_clusters=options.clusters)
    except ValueError as error:
        raise UsageError(str(error)) from None
    table, opened = _read(options, began)
    if time.monotonic() - began >= 60 * options.time:
        raise UsageError(
            f"reading {options.data} took longer than --time {options.time:g} minutes"
        )
    folder = folders.make(
        options.output, "proofs_certificate", folders.now(), options.seed
    )
    with _locked(folder, options):
        journal = None if options.output is None else _journal(folder / DRAWS, options)
        try:
            certificate = certify(
                jax.random.key(options.seed),
                table,
                request,
                began=began,
                journal=journal,
                say=_progress(time.monotonic()),
                command=_again(options),
                opened=opened,
            )
        except ValueError as error:
            raise UsageError(
                f"{options.data}: {' '.join(str(error).split())}"
            ) from None
        finally:
            if journal is not None:
                journal.close()
        certificate.document["run"]["seconds"] = time.monotonic() - began
        written, refused = _write(certificate, folder, options)
        if not refused and certificate.document["search"]["finished"]:
            shutil.rmtree(folder / DRAWS, ignore_errors=True)
    certificate_terminal.show(certificate.document, files=written)
    if refused:
        if folder / FILES[-1] not in written:  # so that nothing is lost
            print(
                json.dumps(certificate.document, indent=1, allow_nan=False), flush=True
            )
        print("\n".join(f"{PROG}: {line}" for line in refused), file=sys.stderr)
        return NOT_WRITTEN
    return AS_EXPECTED if certificate.map is not None else NOT_AS_EXPECTED


def _read(options: argparse.Namespace, began: float) -> tuple[Any, str]:
    """Return the table, and the line of Python that opens it."""
    from proofs_check.certify import open_table

    reading = tables.asked(options) | (
        {} if options.rows is None else {"rows": options.rows}
    )
    if options.goal == "prediction":
        reading["labels"] = reading.pop("target")
    try:
        table = open_table(options.data, **reading, until=began + 60 * options.time)
    except DataError as error:
        raise UsageError(str(error)) from None
    arguments = "".join(f", {name}={value!r}" for name, value in reading.items())
    return table, f"table = open_table({str(options.data)!r}{arguments})"


def _check_folder(folder: Path, options: argparse.Namespace) -> None:
    """Raise UsageError unless a folder is new, empty, or holds a certificate that may be replaced."""
    with contextlib.suppress(OSError):  # folders.check says why
        others = {
            path.name
            for path in {*folder.iterdir()}.difference(files.leftovers(folder))
        } - {LOCK, DRAWS}
        if not others or (options.overwrite and MANIFEST not in others):
            return
        if others.issubset(FILES) and _was_ending(folder, options):
            return
        if MANIFEST not in others:
            raise UsageError(
                f"--output {folder} is not empty; choose a new folder, or pass --overwrite"
            )
    folders.check(folder)


def _was_ending(folder: Path, options: argparse.Namespace) -> bool:
    """Tell whether the same command was killed after it began to write its files and before it removed its draws."""
    if not (folder / DRAWS / MANIFEST).exists():
        return False
    try:
        document = json.loads((folder / FILES[-1]).read_bytes())
        is_same = document["commands"]["again"] == _again(options)
        return bool(document["search"]["finished"]) and is_same
    except FileNotFoundError:
        return True
    except (ValueError, KeyError, TypeError):
        return False


def _again(options: argparse.Namespace) -> str:
    """Return the command that makes the same certificate again."""
    return shlex.join([PROG, *_arguments(options)])


def _check_save(options: argparse.Namespace) -> None:
    """Raise UsageError where the map cannot be saved without loss."""
    check_file(
        "--save", options.save, overwrite=options.overwrite, inputs=[options.data]
    )
    made = (
        ()
        if options.output is None
        else (options.output / name for name in (*FILES, LOCK))
    )
    if options.save.resolve() in {path.resolve() for path in made}:
        raise UsageError(
            f"--save {options.save} is a file of the certificate; choose another one"
        )


def _journal(folder: Path, options: argparse.Namespace) -> checkpoint.Checkpoint | None:
    """Return the draws of the same command that an earlier process left in a folder, or none; None if none can be kept.

    Raises UsageError where they are those of another command, and may not be replaced.
    """
    from proofs_check.engine.versions import versions

    data, program = checkpoint.digest_of([options.data]), checkpoint.digest_of_program()
    manifest = {
        "arguments": _arguments(options),
        "data": data,
        "program": program,
        "versions": versions(),
    }
    try:
        if (folder / MANIFEST).exists():
            known = checkpoint.read_manifest(folder)
            if all(known.get(name) == value for name, value in manifest.items()):
                return checkpoint.resume(folder)
            if not options.overwrite:
                where = f"--output {folder.parent} holds the draws of another command, table or version"
                raise UsageError(f"{where}; choose a new folder, or pass --overwrite")
        shutil.rmtree(folder, ignore_errors=True)
        with files.failing(folder):
            folder.mkdir(exist_ok=True)
        return checkpoint.create(folder, manifest)
    except checkpoint.CheckpointError as error:
        raise UsageError(f"{error}; choose a new folder for --output") from None
    except StorageError:
        shutil.rmtree(folder, ignore_errors=True)
        return None


@contextlib.contextmanager
def _locked(folder: Path, options: argparse.Namespace) -> Iterator[None]:
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
        raise UsageError(
            f"{folder} is in use by another certify; choose a new folder"
        ) from None
    try:
        _check_folder(folder, options)
        for left in files.leftovers(folder):
            if left.name.startswith(".certificate."):
                left.unlink()
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def _write(
    certificate: Any, folder: Path, options: argparse.Namespace
) -> tuple[list[Path], list[str]]:
    """Write the map and the certificate; return what was written, and a line for each thing that could not be."""
    written, refused = [], []
    if options.save is not None and certificate.map is not None:
        try:
            _check_save(options)  # it may be there by now
            with files.failing(options.save):
                certificate.save(options.save)
                files.sync_folder(options.save.absolute().parent)
        except (UsageError, StorageError) as error:
            refused.append(
                f"{error}; the map can be drawn with the lines of Python in the certificate"
            )
        else:
            written.append(options.save)
            lines = ["from jaxkern import io", f"phi = io.load({str(options.save)!r})"]
            if certificate.dtype == "float64":
                lines[:0] = ["import jax", 'jax.config.update("jax_enable_x64", True)']
            certificate.document["commands"]["load"] = "\n".join(lines)
    try:
        certificate.write(folder)
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


def _arguments(options: argparse.Namespace) -> list[str]:
    """Return the arguments that make the same certificate again."""
    arguments = ["certify", str(options.data)]
    for name in (*ASKED, "rows", "clusters", "seed", *tables.OPTIONS):
        value = getattr(options, name)
        if value and value != DEFAULTS.get(name):
            text = f"{value:.10g}" if isinstance(value, float) else str(value)
            given = (
                []
                if value is True
                else [",".join(value) if isinstance(value, list) else text]
            )
            arguments += [f"--{name.replace('_', '-')}", *given]
    return arguments


def _unit(text: str) -> float:
    value = number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"must be a number between 0 and 1, got {text[:30]!r}"
        )
    return value


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) > 0):
        raise argparse.ArgumentTypeError(
            f"must be a positive whole number, got {text[:30]!r}"
        )
    return int(text)
