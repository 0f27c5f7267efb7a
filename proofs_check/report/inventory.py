"""The inventory: every statement of the papers, in their order, with its claim or the reason why it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proofs_check.report.markdown import cell, table

HEAD = ("place", "statement", "claim, or why there is none")


def page(papers: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the page, from the entries of the register by paper."""
    lines = [
        "# Inventory",
        "",
        "Every statement of the four papers, in their order, with the claim that executes it, or the reason why there "
        "is none. `python -m proofs_check show ID` prints a claim, and the places of its check, its bound and its "
        "proof. Ids that begin with `jaxkern:` are sharper or further statements of our own; those in *italics* are "
        "steps of proofs, remarks and prose, which only `--all` runs. The page is made from the register.",
        "",
    ]
    for paper, entries in papers.items():
        rows = [[cell(entry["place"]), cell(entry["title"]), _claim(entry)] for entry in entries]
        lines += [f"## {paper}", "", table(HEAD, rows), ""]
    return "\n".join(lines)


def _claim(entry: Mapping[str, Any]) -> str:
    if "id" not in entry:
        return cell(entry["reason"])
    return f"*`{entry['id']}`*" if entry.get("marginal") else f"`{entry['id']}`"
