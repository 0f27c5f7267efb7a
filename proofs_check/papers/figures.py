"""The figures and tables of the papers, computed again: `python -m proofs_check.papers.figures PAPER FIGURE`.

A figure or table is a module with

- `data(...)`, which returns its numbers, ready for JSON. It takes those of the options that it needs, by keyword;
- `TABLES`, what is printed: {a list of rows in the numbers: {column: format of a cell}};
- `draw(axes, data)`, if it is a figure, which draws on `PANELS` (rows and columns of axes) in a picture of `SIZE`
  inches.

Sizes are small unless --full is given, which takes the sizes of the paper or those on the pages in docs/tables.
"""

import argparse
import importlib
import inspect
import io
import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from proofs_check.engine import files
from proofs_check.engine.documents import write_json
from proofs_check.engine.reading import DataError, check_matrix, read_npz, reading
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

PROG = "python -m proofs_check.papers.figures"
SCHEMA = 2
FIGURES = {
    "amini2021": ("figure1", "figure2", "figure3"),
    "chen2016": ("figure1", "figure2"),
    "ghashami2016": ("figure1", "figure2", "figure3", "figure4"),
    "kpotufe2020": ("table1", "table2", "figure1", "figure2"),
}
SHARED = {"ghashami2016": "experiments"}
"""The module of a paper whose figures differ in their data alone. Other figures have a module each."""

Numbers = Mapping[str, Any]
Tables = Mapping[str, Mapping[str, str]]


# The command


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command: 0 if all is made, 2 for bad usage or input, 3 if a file cannot be written.

    It sets jax_enable_x64 by --dtype.
    """
    try:
        options = _parser().parse_args(argv)
        _run(options, _module(options.paper, options.figure))
    except (UsageError, StorageError) as error:
        print(f"{PROG}: {error}", file=sys.stderr)
        return NOT_WRITTEN if isinstance(error, StorageError) else BAD_USAGE
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog=PROG,
        description="Compute a figure or a table of a paper again.",
        epilog="\n".join(
            f"{paper}: {', '.join(names)}" for paper, names in FIGURES.items()
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("paper", choices=tuple(FIGURES))
    add("figure", help="such as figure1, see below")
    add("--full", action="store_true", help="take the sizes of the paper")
    add("--seed", type=whole, default=0, metavar="INT", help="below 2^32 (default: 0)")
    add("--dtype", choices=("float32", "float64"), default="float32")
    add(
        "--data-dir",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help="holds the .npz files (default: data)",
    )
    add("--output", type=Path, metavar="FILE", help="write the numbers as JSON")
    add("--picture", type=Path, metavar="FILE", help="draw the figure (matplotlib)")
    add("--overwrite", action="store_true", help="replace files that exist")
    only = parser.add_argument_group(
        "options of single figures", argument_default=argparse.SUPPRESS
    )
    add = only.add_argument
    add("--points", type=whole, metavar="INT", help="ghashami2016: points at most")
    add(
        "--sizes",
        type=_wholes,
        metavar="LIST",
        help="ghashami2016: numbers of features and landmarks",
    )
    add(
        "--from-features",
        action="store_true",
        help="chen2016 figure2: distances from the features of both points",
    )
    return parser


def _wholes(text: str) -> tuple[int, ...]:
    """Return the whole numbers of a list with commas."""
    return tuple(dict.fromkeys(whole(part) for part in text.split(",")))


def _module(paper: str, figure: str) -> Any:
    if figure not in FIGURES[paper]:
        known = ", ".join(FIGURES[paper])
        raise UsageError(f"{paper} has no {figure!r}; there are {known}")
    name = SHARED.get(paper, figure)
    return importlib.import_module(f"proofs_check.papers.{paper}.{name}")


def _run(options: argparse.Namespace, module: Any) -> None:
    arguments = _arguments(options, module)
    jax.config.update("jax_enable_x64", options.dtype == "float64")
    start = time.monotonic()
    try:
        data = module.data(**arguments)
    except ValueError as error:  # of files and sizes that do not fit
        raise UsageError(str(error)) from None
    seconds = round(time.monotonic() - start, 1)
    print(f"{seconds} s", file=sys.stderr)
    title = module.__doc__.splitlines()[0]
    for name, columns in module.TABLES.items():
        show(title, columns, data[name])
    if options.output is not None:
        names = ("paper", "figure", "full", "seed", "dtype")
        about = {name: getattr(options, name) for name in names}
        run = {"seconds": seconds}
        write_json(options.output, {"schema": SCHEMA, **about, "run": run, **data})
    if options.picture is not None:
        name = f"{options.paper}_{options.figure}"
        save_picture(options.picture, module, data, name=name)


def _arguments(options: argparse.Namespace, module: Any) -> dict[str, Any]:
    """Return the options that a figure takes.

    Raises UsageError for an option that it does not have, or a file that must not be written.
    """
    names = inspect.signature(module.data).parameters
    strange = {"points", "sizes", "from_features"} & vars(options).keys() - names.keys()
    if options.picture is not None and not hasattr(module, "draw"):
        strange.add("picture")
    if strange:
        option = min(strange).replace("_", "-")
        raise UsageError(f"{options.paper} {options.figure} has no option --{option}")
    for name in ("output", "picture"):
        path = getattr(options, name)
        if path is not None:
            check_file(
                f"--{name}",
                path,
                overwrite=options.overwrite,
                inputs=options.data_dir.glob("*.npz"),
                named=name == "picture",
            )
    return {name: value for name, value in vars(options).items() if name in names}


def show(title: str, columns: Mapping[str, str], rows: Sequence[Numbers]) -> None:
    """Print rows, if there are any, as a table with these formats of cells by columns."""
    cells = [[cell.format(**row) for cell in columns.values()] for row in rows]
    if cells:
        first = zip(columns, cells[0], strict=True)
        numeric = [name for name, cell in first if not cell[:1].isalpha()]
        names = tuple(columns)
        console.show(names, cells, (), numeric=numeric, title=title, file=sys.stdout)


def save_picture(path: Path, module: Any, data: Numbers, *, name: str) -> None:
    """Draw a figure into a file, whose ending says the format: the same bytes every time."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(
            '--picture needs matplotlib: pip install "jaxkern-verified[check]"'
        ) from None
    content = io.BytesIO()
    ending = path.suffix[1:]
    metadata = {"Date": None} if ending == "svg" else None
    # Letters as letters: smaller, and readable by machines.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        picture = Figure(figsize=module.SIZE)
        axes = picture.subplots(*module.PANELS, squeeze=False)
        module.draw(axes.ravel(), data)
        # A legend of the whole picture stands below the panels.
        picture.tight_layout(rect=(0, 0.08 if picture.legends else 0, 1, 1))
        try:
            picture.savefig(content, format=ending, dpi=150, metadata=metadata)
        except ValueError as error:  # an ending that names no format
            raise UsageError(f"--picture {path}: {error}") from None
    files.write(path, content.getvalue())


# What several figures share


def timed(places: Iterable[Any]) -> Iterator[Any]:
    """Yield the places of a loop, and print to standard error how long each took."""
    for place in places:
        start = time.monotonic()
        yield place
        print(f"{place}: {time.monotonic() - start:.1f} s", file=sys.stderr)


def read_points(path: Path, *names: str) -> list[np.ndarray]:
    """Return X, (n, dim) float64, and the arrays with these names of an .npz file.

    Raises `reading.DataError`, whose message is one line.
    """
    with reading(path, {".npz": ".npz (with X)"}), path.open("rb") as file:
        X = read_npz(path, file, "X")
        others = [read_npz(path, file, name) for name in names]
    check_matrix(str(path), X.dtype, X.shape)
    if not np.isfinite(X).all():
        raise DataError(f"{path}: X holds entries that are NaN or infinite")
    return [X.astype(np.float64), *others]


def read_labelled(path: Path, *names: str) -> list[np.ndarray]:
    """Return X, the labels y, (n,) integers, and more arrays of an .npz file. Raises DataError."""
    X, y, *others = read_points(path, "y", *names)
    if y.shape != X.shape[:1] or y.dtype.kind not in "iu":
        raise DataError(
            f"{path}: y must be {len(X)} integers, one label for each row of X, got {y.dtype} {y.shape}"
        )
    return [X, y, *others]


def summary(values: Any) -> dict[str, Any]:
    """Return mean, standard deviation and standard error of numbers, and the numbers."""
    values = np.asarray(values, float)
    sd = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return {
        "mean": float(values.mean()),
        "sd": sd,
        "standard_error": sd / math.sqrt(len(values)),
        "values": values.tolist(),
    }


def draw_methods(
    axis: Any, rows: Sequence[Numbers], x: str, spread: str, factor: float = 1
) -> None:
    """Draw the mean of every method, and its spread times a factor, against the number under `x` on a log scale."""
    methods = dict.fromkeys(row["method"] for row in rows)
    for method, marker in zip(methods, "os^x", strict=False):
        curve = [row for row in rows if row["method"] == method]
        axis.errorbar(
            [row[x] for row in curve],
            [row["mean"] for row in curve],
            yerr=[factor * row[spread] for row in curve],
            marker=marker,
            capsize=2,
            label=method,
        )
    axis.set_xscale("log")
    axis.grid(alpha=0.3)


def panel(
    title: str, points: np.ndarray, labels: np.ndarray, most: int | None = None
) -> dict[str, Any]:
    """Return the title of a panel and its points in the plane, the first ones of every label."""
    places = points.astype(float).round(4)
    clusters = [places[labels == label][:most].tolist() for label in np.unique(labels)]
    return {"title": title, "clusters": clusters}


def legend_below(axes: Any, **options: Any) -> None:
    """Draw one legend for all axes below them, from the first axis."""
    handles, labels = axes[0].get_legend_handles_labels()
    columns = min(len(labels), 5)
    axes[0].figure.legend(handles, labels, ncol=columns, loc="lower center", **options)


if __name__ == "__main__":
    sys.exit(main())
