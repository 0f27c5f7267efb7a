"""The errata of the papers, and the inventory of all that they state, from the register.

A statement is in the errata where the register has its printed form in words (`says`), with what is wrong with it: a
`severity`, or the claim from whose mistake it `follows`. A mistake counts once, and its consequences stand below it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from proofs_check.claim import SEVERITIES, Claim
from proofs_check.report.atlas import FORMS, filled
from proofs_check.report.document import PAPERS
from proofs_check.report.markdown import cell
from proofs_check.report.text import slug

FALSE = ("refuted", "vacuous")
UNNAMED = "calibrated"


def listed(claims: Sequence[Claim]) -> dict[str, Claim]:
    """Return the claims that are in the errata, consequences after the mistake that they follow from.

    Raise a ValueError if a claim is false as printed and not among them, or if it is not said what is wrong with it.
    """
    among = {
        claim.id: claim for claim in claims if claim.says or _expected(claim) in FALSE
    }
    for claim in among.values():
        mistake = among.get(claim.follows, claim)
        graded = mistake.severity in SEVERITIES and bool(claim.severity) != bool(
            claim.follows
        )
        if not (claim.says and claim.proof and graded and mistake.paper == claim.paper):
            raise ValueError(
                f"{claim.id}: false or imprecise as printed, but the register lacks `says` or `proof`, or one of a "
                "`severity` and the id of a claim with one that it `follows`"
            )
    order = list(among)
    return dict(
        sorted(
            among.items(),
            key=lambda item: (
                order.index(item[1].follows or item[0]),
                bool(item[1].follows),
            ),
        )
    )


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
        severities=SEVERITIES,
        counts=[
            sum(claim.severity == severity for claim in among.values())
            for severity in SEVERITIES
        ],
        consequences=sum(bool(claim.follows) for claim in among.values()),
        wrong=lambda claim: _expected(claim) in FALSE,
        chosen=lambda paper, severity: [
            claim
            for claim in among.values()
            if claim.paper == paper
            and among.get(claim.follows, claim).severity == severity
        ],
        unnamed=[claim for claim in claims if _expected(claim) == UNNAMED],
    )


def inventory(papers: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return every statement in its order, with its claim or why it has none, from the register's entries by paper."""
    return filled("inventory.md", papers=papers)


def _heading(claim: Claim) -> str:
    return f"{cell(claim.where)} (`{claim.id}`)"


def _expected(claim: Claim) -> str:
    return "" if claim.printed is None else claim.printed.expect
