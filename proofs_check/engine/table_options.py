"""The options that say what a user's table is, for every command that reads one."""

import argparse
from typing import Any

from proofs_check.usage import Parser

OPTIONS = (
    "columns", "labels", "target", "exclude", "keep", "missing", "standardize",
    "one_hot", "separator", "header", "decimal", "missing_words",
)  # fmt: skip
"""Options that are arguments of `proofs_check.certify.open_table` of the same names."""
FLAGS = {"standardize", "one_hot"}


def add_arguments(parser: argparse.ArgumentParser | Parser) -> None:
    """Add them to a parser; an option that is not set is None or False."""
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
        "--one-hot",
        action="store_true",
        help="text of at most 20 different values becomes columns of 0 and 1",
    )
    add(
        "--separator",
        choices=("comma", "semicolon", "tab"),
        help="of a file of text (default: as in its first line)",
    )
    add(
        "--header",
        choices=("yes", "no"),
        help="whether its first line holds names (default: if it holds no values)",
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
    """Return the options that were set on the command line, as arguments of `open_table`."""
    return {name: getattr(options, name) for name in OPTIONS if getattr(options, name)}


def names(text: str) -> list[str]:
    """Return names separated by commas, as the type of an argument."""
    parts = [name.strip() for name in text.split(",")]
    if not all(parts):
        raise argparse.ArgumentTypeError(
            f"must be names separated by commas, got {text[:30]!r}"
        )
    return parts


def is_asked(value: Any) -> bool:
    """Return whether a value of JSON may be what `asked` returns."""
    return isinstance(value, dict) and all(
        name in OPTIONS and isinstance(setting, bool if name in FLAGS else list | str)
        for name, setting in value.items()
    )
