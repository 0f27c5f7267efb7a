"""Plain formulas in the words of the register, of verdicts and of settings, as a reader sees them on a page."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from markupsafe import Markup

from proofs_check.report.text import escaped

_LETTERS = dict(zip(
    ("alpha", "beta", "gamma", "delta", "Delta", "eps", "eta", "theta", "Theta", "kappa", "lambda", "mu", "xi", "pi",
     "rho", "sigma", "Sigma", "tau", "phi", "Phi", "psi", "Psi", "omega"),
    "αβγδΔεηθΘκλμξπρσΣτφΦψΨω", strict=True,
))  # fmt: skip
_SIGNS = {
    "<=": "≤",
    ">=": "≥",
    "!=": "≠",
    "+-": "±",
    "->": "→",
    "vbar": "v̄",
    "Rhat": "R̂",
    "chi2": "χ^2",
}
_NAME = re.compile(rf"(?<![A-Za-z])(?:sqrt(?=[ (])|{'|'.join(_LETTERS)})(?![A-Za-z])")
_EXPONENT = re.compile(r"(?<=\d)e([+-]?)0*(\d+)(?![\w.])")
_DIGITS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_ID = re.compile(r"(\b[a-z]+(?:20\d\d)?:\w[\w.-]*\w)")
_RAISED = re.compile(r"\^(?:\(([^()]*)\)|(-\d+/\d+|[-+]?[\d.]*\d|[-+]?\w))")
_LOWERED = re.compile(r"((?<!\w)\w[\u0300-\u036f]?|\|)_([^\W_]+)")
_INDICES = str.maketrans("0123456789kimnp", "₀₁₂₃₄₅₆₇₈₉ₖᵢₘₙₚ")


def signs(text: str) -> str:
    """Return words with Greek letters and signs for their names, and powers of ten: `tau >= 2e-05` is τ ≥ 2·10⁻⁵."""
    for plain, sign in _SIGNS.items():
        text = text.replace(plain, sign)
    text = _EXPONENT.sub(
        lambda match: "·10" + (match[1].strip("+") + match[2]).translate(_DIGITS), text
    )
    text = re.sub(r"(?<![\d.])1·", "", text)
    return _NAME.sub(lambda match: _LETTERS.get(match[0], "√"), text)


def label(text: str) -> str:
    """Return words as `signs` does for a drawing, which has no other indices and exponents than signs of their own."""
    text = re.sub(
        r"\^(-?\d+)(?![\w./])", lambda match: match[1].translate(_DIGITS), signs(text)
    )
    return re.sub(
        r"(?<=\b\w)_([\dkimnp])(?!\w)", lambda match: match[1].translate(_INDICES), text
    )


def readable(text: str, links: Mapping[str, Markup] = MappingProxyType({})) -> Markup:
    """Return words with plain formulas in them, such as sqrt(s_3) <= e^-tau, in signs, indices and exponents.

    `links` is what stands in the place of the id of a claim.
    """
    pieces = _ID.split(text)
    shown = (
        links.get(piece, Markup(escaped(piece))) if i % 2 else _scripts(piece)
        for i, piece in enumerate(pieces)
    )
    return Markup("").join(shown)


def _scripts(text: str) -> Markup:
    return Markup(
        _RAISED.sub(_raised, _LOWERED.sub(r"\1<sub>\2</sub>", escaped(signs(text))))
    )


def _raised(match: re.Match[str]) -> str:
    return f"<sup>{_RAISED.sub(_raised, match[1] or match[2])}</sup>".replace("-", "−")
