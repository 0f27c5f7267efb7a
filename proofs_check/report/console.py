"""What a command prints: standard streams that may fail, and a table with lines below it.

The table is coloured where rich is installed, and plain text otherwise.
"""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TextIO

NO_RICH = "(plain text: install jaxkern-verified[check] for the coloured table)"


class _Stream:
    """A stream whose failure ends no command: what it does not take is lost, and `error` holds the first reason.

    A sign that it has no code for, such as a byte of an odd file name, is written as an escape.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream: Any = (
            io.StringIO() if stream is None else stream
        )  # None is one that was closed from the start
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self._try(
            self._stream.write,
            text.encode(encoding, "backslashreplace").decode(encoding),
        )
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def close(self) -> None:
        self.flush()
        if (
            self.error is not None
        ):  # at the end of the process, Python flushes what the stream still holds into nothing
            with contextlib.suppress(OSError), open(os.devnull, "w") as nothing:
                os.dup2(nothing.fileno(), self._stream.fileno())

    def _try(self, call: Callable[..., Any], *args: str) -> None:
        if self.error is None:
            try:
                call(*args)
            except OSError as error:
                self.error = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def streams() -> Iterator[tuple[_Stream, _Stream]]:
    """Let standard output and standard error fail, or be closed, without harm."""
    while (
        handle := os.open(os.devnull, os.O_RDWR)
    ) <= 2:  # or a file would get the number of a stream that is closed
        pass
    os.close(handle)
    out, error = _Stream(sys.stdout), _Stream(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            yield out, error
        finally:
            out.close()
            error.close()


def show(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    lines: Sequence[str],
    *,
    numeric: Collection[str],
    file: TextIO,
    colours: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    title: str | None = None,
) -> None:
    """Print a table with these columns, under its title, and lines below it.

    The columns in `numeric` stand to the right; `colours` has, by column, the colours of its words. There are none
    where `file` is not a terminal.
    """
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        below = ["", *lines] if lines else []
        print(
            "\n".join(
                [
                    NO_RICH,
                    *([title] if title else []),
                    *_plain([columns, *rows]),
                    *below,
                ]
            ),
            file=file,
        )
        return
    # A pipe has no width; text that a person or grep will read must not be cut at 80 columns.
    console = Console(file=file, width=None if file.isatty() else 200)
    table = Table(title=title)
    for name in columns:
        table.add_column(name, justify="right" if name in numeric else "left")
    for row in rows:
        cells = zip(columns, row, strict=True)
        table.add_row(
            *(Text(cell, colours.get(name, {}).get(cell, "")) for name, cell in cells)
        )
    console.print(table)
    for line in lines:
        console.print(Text(line), soft_wrap=True)


def _plain(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in table
    ]
