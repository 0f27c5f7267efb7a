"""What the figures and tables of the papers share: a record of each, its command line, tables, files and pictures."""

import argparse
import contextlib
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import jax
import numpy as np

from proofs_check.engine import files
from proofs_check.engine.documents import write_json
from proofs_check.report import console
from proofs_check.usage import (
    BAD_USAGE,
    NOT_WRITTEN,
    Parser,
    StorageError,
    UsageError,
    check_file,
    whole,
)

SCHEMA = 1

Option = tuple[str, dict[str, Any]]
Say = Callable[[str], None]
Draw = Callable[[Any], Any]
"""Takes `matplotlib.pyplot` and returns the picture."""


@dataclass(frozen=True)
class Table:
    """A table to print: its cells are text, and its first `names` columns are words."""

    title: str
    columns: Sequence[str]
    cells: Sequence[Sequence[str]]
    names: int = 1


@dataclass(frozen=True)
class Result:
    """What is computed: tables and lines to print, what they were computed from, the numbers, and pictures.

    `pictures` are (option, path or None, function that draws).
    """

    printed: Sequence[Table | str]
    about: Mapping[str, Any]
    numbers: Mapping[str, Any]
    pictures: Sequence[tuple[str, Path | None, Draw]] = ()


@dataclass(frozen=True)
class Figure:
    """A figure or a table of a paper, computed again.

    name : the paper and the module, as in "kpotufe2020_figure1".
    where : its place in the paper.
    compute : takes the options and a function that says a line, and returns the result; or yields one whenever a part
        is complete, so that what is interrupted leaves the parts before it.
    options : those that it has besides --seed, --dtype, --output and --overwrite.
    timed : whether the whole is timed; otherwise `about` says what the run took.
    """

    name: str
    where: str
    description: str
    compute: Callable[[argparse.Namespace, Say], Result | Iterator[Result]]
    options: Sequence[Option] = ()
    timed: bool = True
    dpi: int = 150

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run the command line: 0 when all is made, 2 for bad usage or input, 3 where a file cannot be written.

        It sets jax_enable_x64 by --dtype.
        """
        parser = Parser(
            prog=self.name, description=self.description, allow_abbrev=False
        )
        for name, about in (*self.options, *_COMMON):
            parser.add_argument(name, **about)
        try:
            options = parser.parse_args(argv)
            _check_files(options)
            self._run(options)
        except (UsageError, StorageError) as error:
            print(f"{self.name}: {error}", file=sys.stderr)
            return BAD_USAGE if isinstance(error, UsageError) else NOT_WRITTEN
        return 0

    def _run(self, options: argparse.Namespace) -> None:
        jax.config.update("jax_enable_x64", options.dtype == "float64")
        start = time.monotonic()
        results = self.compute(options, self._say)
        for result in [results] if isinstance(results, Result) else results:
            show(result.printed)
            about = dict(result.about)
            if self.timed:
                seconds = round(time.monotonic() - start, 1)
                self._say(f"{seconds} s")
                about["run"] = {"seconds": seconds}
            if options.output is not None:
                write_json(options.output, self.document(about, result.numbers))
            for option, path, draw in result.pictures:
                if path is not None:
                    self.draw(path, draw, option)

    def _say(self, line: str) -> None:
        print(f"{self.name}: {line}", file=sys.stderr)

    def document(
        self, about: Mapping[str, Any], numbers: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return every number, ready for JSON."""
        return {
            "schema": SCHEMA,
            "paper": self.name.split("_")[0],
            "where": self.where,
            **about,
            **numbers,
        }

    def draw(self, path: Path, draw: Draw, option: str = "--plot") -> None:
        """Draw a picture into a file, whose ending says the format: the same file every time."""
        try:
            import matplotlib

            matplotlib.use("Agg")
            # Letters as letters: smaller, and readable by machines.
            matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": self.name}
            from matplotlib import pyplot

            picture = draw(pyplot)
            with tempfile.TemporaryDirectory() as folder:
                drawn, metadata = (
                    Path(folder) / path.name,
                    {"Date": None} if path.suffix == ".svg" else None,
                )
                picture.savefig(drawn, dpi=self.dpi, metadata=metadata)
                pyplot.close(picture)
                files.write(path, drawn.read_bytes())
        except ImportError:
            raise UsageError(
                f'{option} needs matplotlib: pip install "jaxkern-verified[check]"'
            ) from None
        except ValueError as error:  # an ending that names no format
            raise UsageError(f"{option} {path}: {error}") from None


def _wholes(text: str) -> tuple[int, ...]:
    """Return the whole numbers of a list with commas."""
    return tuple(dict.fromkeys(whole(part) for part in text.split(",")))


def _some(text: str, *, choices: Sequence[str], what: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    unknown = [name for name in names if name not in choices]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"unknown {what} {unknown[0]!r}; there are {', '.join(choices)}"
        )
    return names


def number(name: str, default: int, about: str = "") -> Option:
    """Return an option that takes a whole number."""
    return name, {
        "type": whole,
        "default": default,
        "metavar": "INT",
        "help": f"{about} (default: {default})".strip(),
    }


def numbers(name: str, default: Sequence[int], about: str) -> Option:
    """Return an option that takes a list of whole numbers."""
    every = ",".join(map(str, default))
    return name, {
        "type": _wholes,
        "default": default,
        "metavar": "LIST",
        "help": f"{about} (default: {every})",
    }


def some(name: str, choices: Sequence[str], what: str) -> Option:
    """Return an option that takes some of several names, by default all."""
    every = tuple(choices)
    parse = partial(_some, choices=every, what=what)
    return name, {
        "type": parse,
        "default": every,
        "metavar": "LIST",
        "help": ",".join(every),
    }


def data_dir(*names: str) -> Option:
    """Return the option for the folder that holds these files."""
    return "--data-dir", {
        "type": Path,
        "default": Path("data"),
        "metavar": "DIR",
        "help": f"holds {', '.join(names)}",
    }


def plot(name: str = "--plot", what: str = "the figure") -> Option:
    """Return the option for the file of a picture."""
    return name, {
        "type": Path,
        "metavar": "FILE",
        "help": f"draw {what} (needs matplotlib), too",
    }


_COMMON: Sequence[Option] = (
    (
        "--seed",
        {
            "type": whole,
            "default": 0,
            "metavar": "INT",
            "help": "below 2^32 (default: 0)",
        },
    ),
    (
        "--dtype",
        {
            "choices": ("float32", "float64"),
            "default": "float32",
            "help": "default: float32",
        },
    ),
    (
        "--output",
        {"type": Path, "metavar": "FILE", "help": "write the table as JSON, too"},
    ),
    ("--overwrite", {"action": "store_true", "help": "replace files that exist"}),
)


def _check_files(options: argparse.Namespace) -> None:
    """Raise a UsageError if a file that was asked for cannot be written, or would replace one that must stay."""
    inputs = [*options.data_dir.glob("*.npz")] if "data_dir" in options else []
    for name in ("output", "plot", "plot1", "plot2"):
        if getattr(options, name, None) is not None:
            path, named = getattr(options, name), name != "output"
            check_file(
                f"--{name}",
                path,
                overwrite=options.overwrite,
                inputs=inputs,
                named=named,
            )


@contextlib.contextmanager
def as_usage() -> Iterator[None]:
    """Turn the ValueError of data or sizes that do not fit into a UsageError."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from None


def deviation(values: np.ndarray) -> float:
    """Return the standard deviation, 0 for a single value."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def standard_error(values: np.ndarray) -> float:
    """Return the standard error of the mean, 0 for a single value."""
    return deviation(values) / math.sqrt(len(values))


def scored(
    title: str,
    columns: Sequence[str],
    scores: Mapping[tuple[Any, ...], Mapping[str, np.ndarray]],
    spread: Callable[[np.ndarray], float],
    methods: Sequence[str],
) -> tuple[Table, dict[str, Any]]:
    """Return the table of mean ± spread, and every number, of the scores of methods at some setup."""
    cells, rows = [], []
    for place, found in scores.items():
        told = dict(zip(columns, place, strict=True))
        for method, values in found.items():
            mean = float(values.mean())
            rows.append(
                {**told, "method": method, "mean": mean, "values": values.tolist()}
            )
        shown = (found[method] for method in methods)
        cells.append(
            (*map(str, place), *(f"{v.mean():.3f} ± {spread(v):.3f}" for v in shown))
        )
    words = sum(isinstance(part, str) for part in next(iter(scores)))
    return Table(title, (*columns, *methods), cells, names=words), {"rows": rows}


def show(printed: Sequence[Table | str], file: TextIO | None = None) -> None:
    """Print tables and lines."""
    file = sys.stdout if file is None else file
    for part in printed:
        if isinstance(part, str):
            print(part, file=file)
        else:
            numeric = part.columns[part.names :]
            console.show(
                part.columns,
                part.cells,
                (),
                numeric=numeric,
                title=part.title,
                file=file,
            )
