"""Self-contained HTML pages: no network, nothing that needs a script, light and dark, for a phone and for a keyboard.

`page` fills a template of the folder `templates`, which escapes whatever is not markup already; `Table` and `badge` are
what rows and cells are made of, with the macros of `parts.html`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2
from markupsafe import Markup

from proofs_check.report.document import TONES
from proofs_check.report.text import number, visible


@dataclass(frozen=True)
class Table:
    """A table of a page: names of columns, in a text between bars, and rows of cells, the first of which is a heading.

    The columns at the places `numbers` are numbers of a document, and `kind` is a class of the style sheet.
    """

    caption: str
    columns: str | Sequence[str]
    rows: Sequence[Sequence[Any]]
    numbers: Collection[int] = ()
    kind: str = ""

    @property
    def names(self) -> Sequence[str]:
        """Return the names of the columns."""
        return (
            self.columns.split("|") if isinstance(self.columns, str) else self.columns
        )

    def class_of(self, column: int) -> str:
        """Return the classes of a column."""
        return "number" if column in self.numbers else ""


def page(template: str, **values: Any) -> str:
    """Return a page from a template and from values, which are escaped where they are not markup.

    Every page needs `title` and `links`, the anchors of its contents with their names; its template may set them.
    """
    return _PAGES.get_template(template).render(values)


def badge(
    status: str, expected: str | None = None, *, label: str = "", tone: str = ""
) -> Markup:
    """Return a verdict in its colour, or other words in a tone, with the expected ones where they differ."""
    shown = joined(
        '<span class="badge {}">{}{}</span>',
        tone or TONES.get(status, "open"),
        label,
        status,
    )
    return (
        shown
        if not expected or expected == status
        else shown + joined(' <span class="soft">(expected {})</span>', expected)
    )


def joined(markup: str, *values: Any) -> Markup:
    """Return markup with values between, escaped where they are not markup."""
    return Markup(markup).format(*map(_shown, values))


def _shown(value: Any) -> Any:
    return (
        value if isinstance(value, Markup) else "–" if value is None else visible(value)
    )


_PAGES = jinja2.Environment(
    loader=jinja2.PackageLoader("proofs_check.report"),
    autoescape=True,
    finalize=_shown,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
    extensions=["jinja2.ext.do"],
)
_PAGES.globals |= {"Table": Table, "badge": badge, "number": number}
