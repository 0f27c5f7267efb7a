"""What the command lines of all tables share: arguments, one-line errors, printing, writing."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from proofs_check.engine import files
from proofs_check.report import console
from proofs_check.usage import BAD_USAGE, NOT_WRITTEN, Parser, StorageError, UsageError, check_file, whole


def parser(prog: str, description: str) -> Parser:
    """Return a parser with the options that every table has: --seed, --dtype, --output and --overwrite."""
    made = Parser(prog=prog, description=description, allow_abbrev=False)
    made.add_argument("--seed", type=whole, default=0, metavar="INT", help="below 2^32 (default: 0)")
    made.add_argument("--dtype", choices=("float32", "float64"), default="float32", help="default: float32")
    made.add_argument("--output", type=Path, metavar="FILE", help="write the table as JSON, too")
    made.add_argument("--overwrite", action="store_true", help="replace files that exist")
    return made


def wholes(text: str) -> tuple[int, ...]:
    """Return the whole numbers of a list with commas."""
    return tuple(dict.fromkeys(whole(part) for part in text.split(",")))


def check_files(options: argparse.Namespace) -> None:
    """Raise a UsageError if a file that was asked for cannot be written, or would replace one that is to be kept."""
    read = [*options.data_dir.glob("*.npz")] if "data_dir" in options else []
    for name in ("output", "plot", "plot1", "plot2"):
        if getattr(options, name, None) is not None:
            path, named = getattr(options, name), name != "output"
            check_file(f"--{name}", path, overwrite=options.overwrite, inputs=read, named=named)


def terminal(
    title: str,
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    *,
    names: int,
    file: TextIO | None = None,
) -> None:
    """Print a table, by rich where that is installed, as plain text otherwise; the first `names` columns are words."""
    numeric = columns[names:]
    console.show(columns, cells, (), numeric=numeric, title=title, file=sys.stdout if file is None else file)


def write(path: Path | None, document: Mapping[str, Any]) -> None:
    """Write the JSON file, if one was asked for."""
    if path is None:
        return
    from proofs_check.engine.documents import write_json

    write_json(path, dict(document))


def draw(path: Path | None, plot: Callable[[Path], None], option: str = "--plot") -> None:
    """Draw the figure, if one was asked for."""
    if path is None:
        return
    try:
        with tempfile.TemporaryDirectory() as folder:
            plot(Path(folder) / path.name)
            files.write(path, Path(folder, path.name).read_bytes())
    except ImportError:
        raise UsageError(f'{option} needs matplotlib: pip install "jaxkern-verified[check]"') from None
    except ValueError as error:  # an ending that names no format
        raise UsageError(f"{option} {path}: {error}") from None


def main(parser: Parser, run: Callable[[argparse.Namespace], None], argv: Sequence[str] | None) -> int:
    """Run a command line: 0 when the table is made, 2 for bad usage or input, 3 where a file cannot be written."""
    try:
        options = parser.parse_args(argv)
        check_files(options)
        run(options)
    except (UsageError, StorageError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return BAD_USAGE if isinstance(error, UsageError) else NOT_WRITTEN
    return 0
