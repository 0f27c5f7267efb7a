"""docs/theory/inventory.md lists every statement of the papers, and the registry holds what it says."""

import re
from pathlib import Path

import pytest

from proofs_check.register import claims

PAGE = Path(__file__).resolve().parents[2] / "docs" / "theory" / "inventory.md"
PAPERS = ("kpotufe2020", "amini2021", "chen2016", "ghashami2016")


@pytest.fixture(scope="module")
def registered():
    return {claim.id: claim for claim in claims()}


def sections():
    """Return the rows (place, statement, claims) of each paper."""
    parts = re.split(r"^## (\w+)", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    rows = {}
    for paper, body in zip(parts[1::2], parts[2::2], strict=True):
        lines = [line for line in body.splitlines() if line.startswith("| ")]
        rows[paper] = [tuple(cell.strip() for cell in line.strip("| ").split(" | ")) for line in lines[2:]]
    return rows


def ids(cell):
    return re.findall(r"`([\w.-]+:[^`]+)`", cell)


def test_every_claim_stands_in_the_inventory_and_every_id_there_is_a_claim(registered):
    listed = [name for rows in sections().values() for *_, cell in rows for name in ids(cell)]
    assert set(listed) == set(registered)


def test_every_statement_has_a_claim_or_a_reason():
    found = sections()
    assert set(found) == set(PAPERS)
    for paper, rows in found.items():
        assert len(rows) >= 30, paper
        for row in rows:
            assert len(row) == 3, row
            place, statement, cell = row
            assert place and statement
            named = ids(cell)
            assert all(name.startswith((f"{paper}:", "jaxkern:")) for name in named), row
            assert named or len(cell.split()) >= 2, row  # a reason in words


def test_what_is_not_testable_says_why_and_points_at_what_is_checked_instead(registered):
    forms = [
        (claim, form)
        for claim in registered.values()
        for form in (claim.printed, claim.corrected)
        if form is not None and form.expect == "not testable"
    ]
    assert forms
    for claim, form in forms:
        assert len(form.statement.reason.split()) >= 6, claim.id
