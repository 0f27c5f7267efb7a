"""Table 1 of kpotufe2020: sizes, dimensions and numbers of clusters of its data, against the files.

`python -m proofs_check.papers.kpotufe2020.table1 --data-dir DIR` reads the files of `kpotufe2020_table2`. For IoT it
takes what `iot_sample` takes: the paper's 40,000 traces are not published.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from proofs_check.papers import figures as _command
from proofs_check.papers.kpotufe2020.table2 import FILES, NAMES, iot_sample, read
from proofs_check.usage import UsageError

PROG = "kpotufe2020_table1"
PRINTED = {"avila": (20867, 10, 12), "iot": (40000, 115, 5), "banknote": (1372, 4, 2)}
COLUMNS = ("data", "N", "dimension", "clusters", "printed N", "printed dimension", "printed clusters")
SCHEMA = 1


def sizes(X: Any, y: Any) -> tuple[int, int, int]:
    """Return (N, dimension, number of clusters) of points X, (N, dim), with labels y, (N,)."""
    return (*X.shape, len(set(y.tolist())))


def terminal(found: Mapping[str, tuple[int, int, int]], *, file: TextIO | None = None) -> None:
    """Print the table."""
    cells = [(NAMES[name], *map(str, (*row, *PRINTED[name]))) for name, row in found.items()]
    _command.terminal("kpotufe2020, Table 1", COLUMNS, cells, names=1, file=file)


def _parser() -> _command.Parser:
    parser = _command.parser(PROG, "Compare Table 1 of kpotufe2020 with the files.")
    parser.add_argument(
        "--data-dir", type=Path, default=Path("data"), metavar="DIR", help=f"holds {', '.join(FILES.values())}"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: 0 when the table is made, 2 for bad usage or input."""
    return _command.main(_parser(), _run, argv)


def _run(options: argparse.Namespace) -> None:
    from proofs_check.engine.reading import DataError

    found = {}
    try:
        for name, file in FILES.items():
            X, y = read(options.data_dir / file)
            found[name] = sizes(*(iot_sample(X, y) if name == "iot" else (X, y)))
    except (DataError, ValueError) as error:
        raise UsageError(str(error)) from None
    terminal(found)
    rows = [{"data": name, "found": row, "printed": PRINTED[name]} for name, row in found.items()]
    _command.write(options.output, {"schema": SCHEMA, "paper": "kpotufe2020", "where": "Table 1", "rows": rows})


if __name__ == "__main__":
    sys.exit(main())
