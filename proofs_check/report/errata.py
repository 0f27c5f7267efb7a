"""The errata of the papers, and the inventory of all that they state, from the register.

A statement is in the errata where the register has its printed form in words (`says`). One that is expected to be
refuted as printed and has none is an error.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from proofs_check.claim import Claim
from proofs_check.report.atlas import FORMS, filled, slug
from proofs_check.report.document import PAPERS
from proofs_check.report.markdown import cell

FALSE = ("refuted", "vacuous")
UNNAMED = "calibrated"


def listed(claims: Sequence[Claim]) -> dict[str, Claim]:
    """Return the claims that are in the errata. Raise a ValueError if one is false as printed and not among them."""
    false = [c.id for c in claims if _expected(c) in FALSE and not (c.says and c.proof)]
    if false:
        raise ValueError(f"{', '.join(false)}: false as printed, but the register lacks `says` or `proof`")
    return {claim.id: claim for claim in claims if claim.says}


def anchors(claims: Sequence[Claim]) -> dict[str, str]:
    """Return the anchors of the errata on their page, by id of the claim."""
    return {name: slug(_heading(claim)) for name, claim in listed(claims).items()}


def page(claims: Sequence[Claim]) -> str:
    """Return the page of errata."""
    among = listed(claims)
    return filled(
        "errata.md",
        papers=PAPERS,
        forms=FORMS,
        heading=_heading,
        listed=among,
        refuted=[claim for claim in claims if _expected(claim) in FALSE],
        imprecise=[claim for claim in among.values() if _expected(claim) not in FALSE],
        unnamed=[claim for claim in claims if _expected(claim) == UNNAMED],
    )


def inventory(papers: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return every statement in its order, with its claim or why it has none, from the register's entries by paper."""
    return filled("inventory.md", papers=papers)


def _heading(claim: Claim) -> str:
    return f"{cell(claim.where)} (`{claim.id}`)"


def _expected(claim: Claim) -> str:
    return "" if claim.printed is None else claim.printed.expect
