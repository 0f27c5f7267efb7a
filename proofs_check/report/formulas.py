"""TeX as MathML for a page: by latex2mathml, then cleaned and cut where a line may break.

Only elements and attributes of MathML Core pass, so that no TeX can bring a script or a link into the page.
"""

import functools
from xml.etree import ElementTree

from markupsafe import Markup

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
# Operators that latex2mathml leaves in TeX behind \bigl and the like.
_OPERATORS = {
    r"\{": "{", r"\}": "}", r"\lbrace": "{", r"\rbrace": "}", r"\|": "‖", r"\Vert": "‖", r"\lVert": "‖",
    r"\rVert": "‖", r"\vert": "|", r"\lvert": "|", r"\rvert": "|", r"\lceil": "⌈", r"\rceil": "⌉", r"\lfloor": "⌊",
    r"\rfloor": "⌋", r"\langle": "⟨", r"\rangle": "⟩",
}  # fmt: skip
# Browsers know one mathvariant, "normal"; the other alphabets are characters of their own: code points of A, a and 0.
_ALPHABETS = {
    "double-struck": (0x1D538, 0x1D552, 0x1D7D8),
    "script": (0x1D49C, 0x1D4B6, 0x30),
    "fraktur": (0x1D504, 0x1D51E, 0x30),
    "bold": (0x1D400, 0x1D41A, 0x1D7CE),
    "sans-serif": (0x1D5A0, 0x1D5BA, 0x1D7E2),
    "monospace": (0x1D670, 0x1D68A, 0x1D7F6),
}
# Letters that had a code point before the alphabets did.
_OLDER = {
    "double-struck": dict(zip("CHNPQRZ", "ℂℍℕℙℚℝℤ", strict=True)),
    "script": dict(zip("BEFHILMRego", "ℬℰℱℋℐℒℳℛℯℊℴ", strict=True)),
    "fraktur": dict(zip("CHIRZ", "ℭℌℑℜℨ", strict=True)),
}


class _NoFormula(Exception):
    """The converter gave something that does not belong into a page."""


@functools.lru_cache(maxsize=4096)
def formula(tex: str, *, inline: bool = False) -> Markup:
    """Return HTML for a formula: MathML in pieces between which a line may break, or the TeX source as code.

    With `inline` it is as low as a line of text. The source stands where latex2mathml is not installed, and where it
    cannot read the formula or does not know a command in it.
    """
    try:
        from latex2mathml.converter import convert
    except ImportError:
        return _source(tex)
    try:
        xml = convert(tex)
    except Exception:  # it raises many kinds of errors, and no formula is worth a page
        return _source(tex)
    try:
        pieces = _pieces(ElementTree.fromstring(xml))
    except (_NoFormula, ElementTree.ParseError, RecursionError, UnicodeEncodeError):  # the last: half a character
        return _source(tex)
    style = "" if inline else ' displaystyle="true"'
    return Markup(" ".join(f"<math{style}>{piece}</math>" for piece in pieces))


def _source(tex: str) -> Markup:
    return Markup(f'<code class="tex">{escaped(tex)}</code>')


def _pieces(root: ElementTree.Element) -> list[str]:
    """Return the formula cut at the wide spaces of its outermost row; the space between pieces is the page's."""
    rows = list(root)
    top = list(rows[0]) if len(rows) == 1 and _name(rows[0]) == "mrow" else rows
    pieces, piece = [], ""
    for node, after in zip(top, [*top[1:], None], strict=False):
        text = node.text or ""
        blank = _name(node) == "mtext" and not text.strip("\u00a0 ")
        quad = _name(node) == "mspace" and node.get("width", "") in ("1em", "2em")
        if blank or quad or (_name(node) == "mtext" and text[:1] in "\u00a0 "):
            pieces.append(piece)
            piece = ""
            node.text = text.lstrip("\u00a0 ")
        if not (blank or quad):
            piece += _clean(node) + _gap(node, after)
    return [f"<mrow>{piece}</mrow>" for piece in (*pieces, piece) if piece]


def _name(node: ElementTree.Element) -> str:
    return node.tag.rpartition("}")[2]


def _gap(node: ElementTree.Element, after: ElementTree.Element | None) -> str:
    """Return the thin space between a function such as ln and an argument without brackets."""
    is_function = _name(node) == "mi" and len(node.text or "") > 1
    return '<mspace width="0.167em"></mspace>' if is_function and after is not None and _name(after) != "mo" else ""


def _clean(node: ElementTree.Element) -> str:
    children = list(node)
    name, text = _name(node), node.text or ""
    row = name in ("mrow", "mstyle", "mtd")  # elsewhere the number of children has a meaning
    inner = "".join(
        _clean(child) + (_gap(child, after) if row else "")
        for child, after in zip(children, [*children[1:], None], strict=False)
    )
    if name == "mi" and text == "~":  # what it makes of \sim
        name, text = "mo", "∼"
    attributes = {key: value for key, value in node.attrib.items() if key in _ATTRIBUTES}
    if name == "mo":
        text = _OPERATORS.get(text, text)
        if text in ("|", "‖"):  # a browser takes a bar for a relation, with space on both sides
            attributes |= {"lspace": "0", "rspace": "0"}
    if name not in _ELEMENTS or "\\" in text or (inner and text.strip()) or any((c.tail or "").strip() for c in node):
        raise _NoFormula(name)
    variant = attributes.get("mathvariant", "normal")
    if variant != "normal":
        text = "".join(_letter(variant, character) for character in text)
        del attributes["mathvariant"]
    shown = "".join(f' {key}="{escaped(value)}"' for key, value in attributes.items())
    return f"<{name}{shown}>{escaped(text)}{inner}</{name}>"


def _letter(variant: str, character: str) -> str:
    if character in _OLDER.get(variant, {}):
        return _OLDER[variant][character]
    for first, start in zip("Aa0", _ALPHABETS.get(variant, ()), strict=False):
        if 0 <= ord(character) - ord(first) < (10 if first == "0" else 26):
            return chr(start + ord(character) - ord(first))
    return character
