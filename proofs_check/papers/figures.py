"""What the command lines of all tables share: arguments, one-line errors, printing, writing."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from proofs_check.cli import folders
from proofs_check.cli.usage import BAD_USAGE, NOT_WRITTEN, StorageError, UsageError
from proofs_check.engine import files


class Parser(argparse.ArgumentParser):
    """A parser that raises instead of leaving."""

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError."""
        raise UsageError(f"{message} (try {self.prog} --help)")


def parser(prog: str, description: str) -> Parser:
    """Return a parser with the options that every table has: --seed, --dtype, --output and --overwrite."""
    made = Parser(prog=prog, description=description, allow_abbrev=False)
    made.add_argument("--seed", type=whole, default=0, metavar="INT", help="below 2^32 (default: 0)")
    made.add_argument("--dtype", choices=("float32", "float64"), default="float32", help="default: float32")
    made.add_argument("--output", type=Path, metavar="FILE", help="write the table as JSON, too")
    made.add_argument("--overwrite", action="store_true", help="replace files that exist")
    return made


def whole(text: str) -> int:
    """Return the whole number below 2^32 that a text spells."""
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) < 2**32):
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {2**32 - 1}, got {text[:30]!r}")
    return int(text)


def wholes(text: str) -> tuple[int, ...]:
    """Return the whole numbers of a list with commas."""
    return tuple(dict.fromkeys(whole(part) for part in text.split(",")))


def check_files(options: argparse.Namespace) -> None:
    """Raise a UsageError if a file that was asked for cannot be written, or would replace one that is to be kept."""
    read = [*options.data_dir.glob("*.npz")] if "data_dir" in options else []
    for name in ("output", "plot", "plot1", "plot2"):
        if getattr(options, name, None) is not None:
            path, named = getattr(options, name), name != "output"
            folders.check_file(f"--{name}", path, overwrite=options.overwrite, inputs=read, named=named)


def terminal(
    title: str,
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    *,
    names: int,
    file: TextIO | None = None,
) -> None:
    """Print a table, by rich where that is installed, as plain text otherwise; the first `names` columns are words."""
    file = sys.stdout if file is None else file
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
        for line in (columns, *cells):
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip(), file=file)
        return
    table = Table(title=title)
    for i, name in enumerate(columns):
        table.add_column(name, justify="left" if i < names else "right")
    for line in cells:
        table.add_row(*line)
    Console(file=file, width=None if file.isatty() else 120).print(table)


def write(path: Path | None, document: Mapping[str, Any]) -> None:
    """Write the JSON file, if one was asked for."""
    if path is None:
        return
    from proofs_check.report.terminal import write_json

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
