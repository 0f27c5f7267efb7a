"""The inventory: a page made from the register, with every statement of the papers."""

import re

from proofs_check import register
from proofs_check.report import inventory


def test_every_statement_has_its_claim_or_the_reason_why_it_has_none():
    papers = {paper: register.entries(paper) for paper in register.PAPERS}
    sections = re.split(r"^## (\w+)$", inventory.page(papers), flags=re.MULTILINE)
    assert tuple(sections[1::2]) == register.PAPERS
    for paper, body in zip(sections[1::2], sections[2::2], strict=True):
        rows = [line for line in body.splitlines() if line.startswith("| ")][2:]
        assert len(rows) == len(papers[paper])
        for row, entry in zip(rows, papers[paper], strict=True):
            *_, last = re.split(r"(?<!\\) \| ", row.strip("| "))
            assert last.strip("*") == f"`{entry['id']}`" if "id" in entry else len(last.split()) >= 2, row
            assert last.startswith("*") == entry.get("marginal", False), row
