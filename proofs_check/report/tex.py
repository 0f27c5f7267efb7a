"""TeX read by latex2mathml: as a tree, from which a page is made, and as a line of Unicode for a terminal."""

import contextlib
import re
import unicodedata
from xml.etree import ElementTree

# Operators that latex2mathml leaves in TeX behind \bigl and the like.
OPERATORS = {
    r"\{": "{", r"\}": "}", r"\lbrace": "{", r"\rbrace": "}", r"\|": "‖", r"\Vert": "‖", r"\lVert": "‖",
    r"\rVert": "‖", r"\vert": "|", r"\lvert": "|", r"\rvert": "|", r"\lceil": "⌈", r"\rceil": "⌉", r"\lfloor": "⌊",
    r"\rfloor": "⌋", r"\langle": "⟨", r"\rangle": "⟩",
}  # fmt: skip
# For a line of text: what stands between spaces, what ends a product, and scripts and accents that Unicode has.
RELATIONS = "=≤≥<>≈≠≡∼≍≲≪≫∈∉⊂∝≻≽⪯⪰≺→⇒↦"
_CLOSED = ("", *" \u00a0)]},;:./+−-±·⟩⌉⌋")
_ACCENTS = {
    "^": "\u0302",
    "~": "\u0303",
    "∼": "\u0303",
    "¯": "\u0304",
    "¨": "\u0308",
    "˙": "\u0307",
    "→": "\u20d7",
}
_ABOVE = str.maketrans(
    "0123456789+−-=()aijkmnprstuvxydTl*⊤′", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ᵃⁱʲᵏᵐⁿᵖʳˢᵗᵘᵛˣʸᵈᵀˡ*ᵀ′"
)
_BELOW = str.maketrans(
    "0123456789+−-=()aeijklmnprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑᵢⱼₖₗₘₙₚᵣₛₜᵤᵥₓ"
)
_SCRIPTS = re.escape(
    "".join({*map(chr, (*_ABOVE.values(), *_BELOW.values())), *_ACCENTS.values()})
)
_ATOM = re.compile(
    rf"√?(?:[\d.]+|\w|‖[^‖]*‖|\([^()]*\))[{_SCRIPTS}]*(?:_(?:\w|\{{\w*\}}))?[{_SCRIPTS}]*"
)


class NoFormula(Exception):
    """The converter gave nothing, or something that does not belong into a page."""


def tree(tex: str, display: str) -> ElementTree.Element:
    """Return the MathML of a formula, for a "block" or "inline". Raises NoFormula, also without latex2mathml."""
    try:
        from latex2mathml.converter import convert

        # It knows align*, and not its twin inside of formulas; a tag stands behind the formula, not in it.
        known = tex.replace("{aligned}", "{align*}").replace(r"\tag{", r"\qquad\tag{")
        return ElementTree.fromstring(convert(known, display=display))
    except (
        Exception
    ) as error:  # it raises many kinds of errors, and no formula is worth a page
        raise NoFormula(tex) from error


def plain(tex: str) -> str:
    """Return a formula as a line of Unicode for a terminal; its TeX source where latex2mathml cannot read it."""
    try:
        return re.sub(r"[ \u00a0]+", " ", _line(tree(tex, "inline"))).strip()
    except (NoFormula, RecursionError):
        return tex


def _line(node: ElementTree.Element) -> str:
    parts = [_line(child) for child in node]
    match name_of(node):
        case "mspace":
            return " "
        case "mfrac" if node.get("linethickness") == "0":
            return f"{parts[0]} over {parts[1]}"
        case "mfrac":
            return (
                (f"({parts[0]})" if re.search(r"[+−/ ]", parts[0]) else parts[0])
                + "/"
                + _grouped(parts[1])
            )
        case "msqrt":
            return "√" + _grouped("".join(parts))
        case "mover" if parts[1].strip() in _ACCENTS:
            return parts[0] + _ACCENTS[parts[1].strip()]
        case "msub" | "munder":
            return parts[0].rstrip() + _script("_", parts[1], _BELOW)
        case "msup" | "mover":
            return parts[0] + _script("^", parts[1], _ABOVE)
        case "msubsup" | "munderover":
            return (
                parts[0]
                + _script("_", parts[1], _BELOW)
                + _script("^", parts[2], _ABOVE)
            )
        case "mroot" | "mphantom":
            raise NoFormula(name_of(node))
        case "mtable":
            return "; ".join(parts)
        case "mo" | "mi" | "mn" | "mtext":
            text = (
                OPERATORS.get(node.text or "", node.text or "")
                .replace("~", "∼")
                .replace(r"\_", "_")
            )
            if "\\" in text:
                raise NoFormula(text)
            if node.get("mathvariant", "bold") != "bold":
                text = "".join(
                    letter(node.get("mathvariant", ""), character) for character in text
                )
            return f" {text} " if text and text in RELATIONS else text
    return _row(list(node), parts)


def _row(nodes: list[ElementTree.Element], parts: list[str]) -> str:
    """Return factors side by side: with a space around a name such as ln, and brackets around a fraction."""
    line, named = "", False
    for node, part, after in zip(nodes, parts, [*parts[1:], ""], strict=True):
        while name_of(node) in ("mstyle", "mrow") and len(node) == 1:
            node = node[0]
        if name_of(node) == "mfrac":
            closed = after[:1] in _CLOSED or (
                after[:1] in "|‖" and (line + part).count(after[:1]) % 2
            )
            part = part if closed and not named else f"({part})"
        elif named and part[:1] not in ("", "(", "[", *_CLOSED):
            line += " "
        while name_of(node) in ("msub", "munder", "msup", "msubsup", "munderover"):
            node = node[0]
        named = (
            name_of(node) in ("mi", "mo")
            and (node.text or "").isalpha()
            and len(node.text or "") > 1
        )
        line += " " * (named and line[-1:].isalnum()) + part
    return line


def _grouped(part: str) -> str:
    return part if _ATOM.fullmatch(part) else f"({part})"


def _script(sign: str, part: str, signs: dict[int, int]) -> str:
    if all(ord(letter) in signs for letter in part.replace(" ", "")):
        return part.replace(" ", "").translate(signs)
    return sign + (
        part
        if len(part) == 1
        else "{" + re.sub(rf" ([{RELATIONS}]) ", r"\1", part) + "}"
    )


def letter(variant: str, character: str) -> str:
    """Return a character of an alphabet of MathML: browsers know one mathvariant, "normal"."""
    name = re.sub("LATIN |LETTER ", "", unicodedata.name(character, ""))
    # Some letters had a code point before the alphabets did.
    for style in (
        f"MATHEMATICAL {variant.upper()}",
        variant.upper().replace("FRAKTUR", "BLACK-LETTER"),
    ):
        with contextlib.suppress(KeyError):
            return unicodedata.lookup(f"{style} {name}")
    return character


def name_of(node: ElementTree.Element) -> str:
    """Return the name of an element, without its namespace."""
    return node.tag.rpartition("}")[2]
