"""TeX as MathML for a page: by latex2mathml, then cleaned and cut where a line may break.

Only elements and attributes of MathML Core pass, so that no TeX can bring a script or a link into the page.
"""

import functools
import math
from xml.etree import ElementTree

from markupsafe import Markup

from proofs_check.report.tex import (
    OPERATORS,
    RELATIONS,
    NoFormula,
    letter,
    name_of,
    tree,
)
from proofs_check.report.text import escaped

_ELEMENTS = {
    "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "msub", "msup", "msubsup", "munder", "mover", "munderover",
    "mfrac", "msqrt", "mroot", "mstyle", "mtable", "mtr", "mtd", "mpadded", "mphantom",
}  # fmt: skip
_ATTRIBUTES = {
    "mathvariant", "stretchy", "fence", "minsize", "maxsize", "separator", "form", "lspace", "rspace", "width",
    "height", "depth", "linethickness", "displaystyle", "scriptlevel", "accent", "accentunder", "movablelimits",
    "largeop", "symmetric", "columnalign",
}  # fmt: skip


@functools.lru_cache(maxsize=4096)
def formula(tex: str, *, inline: bool = False) -> Markup:
    """Return HTML for a formula: MathML in pieces between which a line may break, or the TeX source as code.

    With `inline` it is as low as a line of text. The source stands where latex2mathml is not installed, and where it
    cannot read the formula or does not know a command in it.
    """
    try:
        pieces = _pieces(
            tree(tex, "inline" if inline else "block"), 12 if inline else math.inf
        )
    except (NoFormula, RecursionError):
        return _source(tex)
    style = "" if inline else ' displaystyle="true"'
    return Markup(" ".join(f"<math{style}>{piece}</math>" for piece in pieces))


def _source(tex: str) -> Markup:
    return Markup(f'<code class="tex">{escaped(tex)}</code>')


def _pieces(root: ElementTree.Element, long: float) -> list[str]:
    """Return the formula cut at the wide spaces of its outermost row; the space between pieces is the page's.

    A row of more than `long` elements is cut behind its relations outside of brackets, too.
    """
    rows = list(root)
    top = list(rows[0]) if len(rows) == 1 and name_of(rows[0]) == "mrow" else rows
    pieces, piece, depth = [], "", 0
    for node, after in zip(top, [*top[1:], None], strict=False):
        text = node.text or ""
        blank = name_of(node) == "mtext" and not text.strip("\u00a0 ")
        quad = name_of(node) == "mspace" and node.get("width", "") in ("1em", "2em")
        if blank or quad or (name_of(node) == "mtext" and text[:1] in "\u00a0 "):
            pieces.append(piece)
            piece = ""
            node.text = text.lstrip("\u00a0 ")
        if not (blank or quad):
            piece += _clean(node) + _gap(node, after)
        base = next(
            each for each in node.iter() if not len(each)
        ).text  # that of a bracket with an exponent, too
        depth += (base in tuple("([{⟨⌈⌊")) - (base in tuple(")]}⟩⌉⌋"))
        if (
            len(top) > long
            and depth == 0
            and name_of(node) == "mo"
            and text
            and text in RELATIONS
        ):
            pieces.append(piece)
            piece = ""
    return [f"<mrow>{piece}</mrow>" for piece in (*pieces, piece) if piece]


def _gap(node: ElementTree.Element, after: ElementTree.Element | None) -> str:
    """Return the thin space between a function such as ln and an argument without brackets."""
    is_function = name_of(node) == "mi" and len(node.text or "") > 1
    return (
        '<mspace width="0.167em"></mspace>'
        if is_function and after is not None and name_of(after) != "mo"
        else ""
    )


def _clean(node: ElementTree.Element) -> str:
    children = list(node)
    name, text = name_of(node), node.text or ""
    row = name in (
        "mrow",
        "mstyle",
        "mtd",
    )  # elsewhere the number of children has a meaning
    inner = "".join(
        _clean(child) + (_gap(child, after) if row else "")
        for child, after in zip(children, [*children[1:], None], strict=False)
    )
    if name == "mi" and text == "~":  # what it makes of \sim
        name, text = "mo", "∼"
    if name == "mtext":
        text = text.replace(r"\_", "_")
    attributes = {
        key: value for key, value in node.attrib.items() if key in _ATTRIBUTES
    }
    if name == "mo":
        text = OPERATORS.get(text, text)
        if text in (
            "|",
            "‖",
        ):  # a browser takes a bar for a relation, with space on both sides
            attributes |= {"lspace": "0", "rspace": "0"}
    if (
        name not in _ELEMENTS
        or "\\" in text
        or (inner and text.strip())
        or any((c.tail or "").strip() for c in node)
    ):
        raise NoFormula(name)
    variant = attributes.get("mathvariant", "normal")
    if variant != "normal":
        text = "".join(letter(variant, character) for character in text)
        del attributes["mathvariant"]
    shown = "".join(f' {key}="{escaped(value)}"' for key, value in attributes.items())
    return f"<{name}{shown}>{escaped(text)}{inner}</{name}>"
