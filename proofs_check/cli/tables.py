"""The options that say what a user's table is, for every command that reads one."""

import argparse
from typing import Any

from proofs_check.usage import Parser

OPTIONS = (
    "columns", "labels", "target", "exclude", "keep", "missing", "standardize",
    "separator", "header", "decimal", "missing_words",
)  # fmt: skip
"""Options that are arguments of `proofs_check.certify.open_table` of the same names."""


def add_arguments(parser: argparse.ArgumentParser | Parser) -> None:
    """Add them to a parser; what is not given is None or False."""
    add = parser.add_argument
    add(
        "--columns",
        type=names,
        metavar="A,B",
        help="only these: names, numbers from 1 on, ranges such as 2-5",
    )
    add(
        "--labels",
        metavar="COLUMN",
        help="the column of classes (.npz: an array, default y)",
    )
    add(
        "--target",
        metavar="COLUMN",
        help="a column that is to be predicted: left out, or the goal prediction",
    )
    add("--exclude", type=names, metavar="A,B", help="leave these columns out")
    add(
        "--keep",
        type=names,
        metavar="A,B",
        help="use these columns of numbers although they look like an id, a target or a copy",
    )
    add(
        "--missing",
        choices=("error", "drop"),
        help="rows that lack a value (default: error)",
    )
    add(
        "--standardize",
        "--standardise",
        action="store_true",
        help="scale columns to mean 0 and deviation 1",
    )
    add(
        "--separator",
        choices=("comma", "semicolon", "tab"),
        help="of a file of text (default: as in its first line)",
    )
    add(
        "--header",
        choices=("yes", "no"),
        help="whether its first line holds names (default: if it holds words)",
    )
    add(
        "--decimal",
        choices=(".", ","),
        metavar="MARK",
        help="its decimal mark, a point or a comma (default: a point)",
    )
    add(
        "--missing-words",
        type=names,
        metavar="A,B",
        help="its words for a missing cell, beside NA, NaN, null and none at all",
    )


def asked(options: argparse.Namespace) -> dict[str, Any]:
    """Return those that were given, as arguments of `open_table`."""
    given = {name: getattr(options, name) for name in OPTIONS}
    return {
        name: value
        for name, value in given.items()
        if value and value not in ("error", ".")
    }


def names(text: str) -> list[str]:
    """Return names separated by commas, as the type of an argument."""
    held = [name.strip() for name in text.split(",")]
    if not all(held):
        raise argparse.ArgumentTypeError(
            f"must be names separated by commas, got {text[:30]!r}"
        )
    return held


def is_asked(value: Any) -> bool:
    """Tell whether a value of JSON may be what `asked` returns."""
    kinds = {"standardize": bool}
    return isinstance(value, dict) and all(
        name in OPTIONS and isinstance(given, kinds.get(name, list | str))
        for name, given in value.items()
    )
