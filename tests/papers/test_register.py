"""The register: every statement of the papers has its words, a check or a reason, and a place where it is proved."""

import collections
import re

import pytest

from proofs_check import controls, register
from proofs_check.claim import KINDS, Undecided
from proofs_check.cli import show
from proofs_check.papers.kpotufe2020 import setup
from proofs_check.report import formulas

PAPERS = register.PAPERS
NUMBERED = re.compile(
    r"\w+:(thm|lem|prop|cor|eq|ex|def|alg|assumption)[A-Z]?\.?\d+(\.\d+)*"
)
FALSE = ("refuted", "vacuous")


def entries(paper):
    return [entry for entry in register.entries(paper) if "id" in entry]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_statement_has_a_place_a_title_of_its_own_and_a_check_or_a_reason(paper):
    statements = register.entries(paper)
    assert len(statements) >= 30
    assert len({entry["title"] for entry in statements}) == len(statements)
    for entry in statements:
        title = entry["title"]
        assert entry["place"] and len(title.split()) <= 10, title
        assert not re.match(r"[a-z]{2}", title), title
        if "reason" in entry:
            assert len(entry["reason"].split()) >= 2, title
            continue
        assert entry["id"].startswith((f"{paper}:", "jaxkern:"))
        assert entry["kind"] in KINDS
        assert "check" in entry or "undecided" in entry, title
        assert entry["because"] and entry["expected"], title


@pytest.mark.parametrize("paper", PAPERS)
def test_every_check_is_a_function_of_its_own(paper):
    checks = [entry["check"] for entry in entries(paper) if "check" in entry]
    assert len(set(checks)) == len(checks)
    assert all(callable(register.function_of(paper, check)) for check in checks)


def test_every_transcribed_bound_has_the_form_of_its_entry():
    """An entry with a printed formula alone says the same of both."""
    known = {entry["id"]: entry for paper in PAPERS for entry in entries(paper)}
    for row in register.bounds():
        assert "printed" in known[row.claim] or row.form != "printed", row.claim


def test_no_numbered_statement_is_in_the_margin(registered):
    marginal = [claim.id for claim in registered.values() if claim.marginal]
    assert marginal and not any(map(NUMBERED.fullmatch, marginal))


def test_ids_are_those_of_the_claims_in_order(registered):
    ids = [entry["id"] for paper in PAPERS for entry in entries(paper)]
    assert list(registered) == ids


def test_every_claim_has_a_form_a_reason_and_controls_of_known_kinds(registered):
    table = controls.table(registered.values())  # it raises where a kind is unknown
    assert list(table) == list(registered)
    assert sum(not kinds for kinds in table.values()) < 10
    for claim in registered.values():
        assert claim.printed or claim.corrected, claim.id
        assert claim.because and claim.tex and claim.where, claim.id
        statements = [form.statement for form in claim.forms.values()]
        if not all(isinstance(statement, Undecided) for statement in statements):
            assert claim.controls, claim.id
        assert claim.corrected or not claim.id.startswith("jaxkern:"), claim.id
    counts = collections.Counter(kind for kinds in table.values() for kind in kinds)
    assert set(counts) == set(controls.KINDS) and len(counts) >= 15
    assert min(counts.values()) >= 2


def test_what_is_printed_wrong_is_corrected_with_a_proof_and_what_is_not_testable_says_why(
    registered,
):
    expectations = set()
    for claim in registered.values():
        for form in claim.forms.values():
            expectations.add(form.expect)
            if form.expect == "not testable":
                assert len(form.statement.reason.split()) >= 6, claim.id
        if claim.printed and claim.printed.expect in FALSE:
            assert claim.corrected and claim.says and claim.proof, claim.id
    assert expectations >= {"refuted", "not testable"}


def test_every_proof_is_in_the_documentation(registered):
    """Each label and each link in the words of a proof leads to a line of a page."""
    for claim in registered.values():
        links = re.findall(r"<[\w-]+>`|\]\([^)]*#[^)]*\)", claim.proof)
        lines = re.findall(r"(?m)\.md:\d+$", "\n".join(show.proofs_of(claim)))
        assert len(lines) == len(links), (claim.id, claim.proof, lines)


def test_every_claim_says_what_it_assumes_and_every_formula_becomes_mathml(registered):
    for claim in registered.values():
        assert claim.section and claim.hypotheses.endswith("."), claim.id
        assert claim.hypotheses.count("$") % 2 == 0, claim.id
        formulas_of_claim = [claim.tex, *(form.tex for form in claim.forms.values())]
        texts = [claim.hypotheses]
        for symbol, means in claim.symbols:
            formulas_of_claim.append(symbol)
            texts.append(means)
        for text in texts:
            assert "\\" not in "".join(text.split("$")[::2]), claim.id
            formulas_of_claim += text.split("$")[1::2]
        for tex in filter(None, formulas_of_claim):
            text = formulas.formula(tex)
            assert "<math" in text and "<code" not in text, (claim.id, tex)
            assert "\\" not in text, (claim.id, tex)


def test_the_longest_symbol_that_occurs_is_explained():
    symbols = {r"\Sigma": "a", r"\Sigma_n": "b", "K": "c", "e^": "", "e": "d", "n": "f"}
    assert register._occurring(symbols, r"\Sigma_n^3\le e^{-\tau} \text{ n K}") == (
        (r"\Sigma_n", "b"),
    )
    assert register._occurring(symbols, r"\mathbb E\,K\,e \operatorname{n}") == (
        ("K", "c"),
        ("e", "d"),
    )


ENTRY = """
[[statement]]
id = 'p:one'
place = 'Lemma 1'
title = 'One'
kind = 'identity'
printed = 'x'
because = 'True.'
expected = { printed = 'identity' }
"""


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("kind = 'identity'", "kind = 'guess'"), "the kind 'guess' is none of"),
        (("printed =", "print ="), "'p:one': there is no field 'print'"),
        (("id =", "reason ="), ""),
    ],
)
def test_a_register_with_unknown_fields_or_kinds_is_refused(
    monkeypatch, tmp_path, change, fault
):
    (tmp_path / "register.toml").write_text(ENTRY.replace(*change), encoding="utf-8")
    monkeypatch.setattr(register.resources, "files", lambda name: tmp_path)
    if fault:
        with pytest.raises(ValueError, match=fault):
            register.entries.__wrapped__("p")
    else:
        assert register.entries.__wrapped__("p")[0]["reason"] == "p:one"


def names_of(table, **options):
    entry = {"id": "p:one", "settings": {"both": table}}
    (settings,) = register.grids(entry, **options).values()
    return [setting.name for setting in settings]


def test_settings_of_one_name_are_refused():
    table = {"name": "n={n}", "grid": {"n": [1, 2], "delta": [0.1, 0.2]}}
    with pytest.raises(ValueError, match="has two settings of one name"):
        names_of(table)


def test_a_table_with_rows_and_a_grid_has_every_row_at_every_combination():
    """The rows change first, then the last list."""
    table = {
        "name": "{r} {q} {d}{n}",
        "numbers": "r q",
        "rows": [[1, 2], [3, 4]],
        "grid": {"d": [5, 6], "n": [7, 8]},
        "shapes": "n",
    }
    assert names_of(table) == [
        f"{row} {values}" for values in (57, 58, 67, 68) for row in ("1 2", "3 4")
    ]
    first = register.grids({"settings": {"both": table}})["both"][0]
    assert first.numbers == {"r": 1.0, "q": 2.0, "d": 5.0}
    assert first.shapes == {"n": 7}
    other_rows = {**table, "full": [[9, 0]]}
    assert names_of(other_rows) == names_of(table)
    assert names_of(other_rows, full=True) == ["9 0 57", "9 0 58", "9 0 67", "9 0 68"]


def test_a_table_has_rows_as_long_as_their_names_or_a_grid():
    table = {"name": "", "numbers": "r", "rows": [[1, 2]], "grid": {"d": [3]}}
    with pytest.raises(ValueError, match="longer"):
        names_of(table)
    with pytest.raises(KeyError, match="grid"):
        names_of({"name": ""})


def test_expectations_must_be_those_of_the_forms():
    entry = {**register.entries("kpotufe2020")[0]}
    entry["expected"] = {"corrected": "certified"}
    with pytest.raises(ValueError, match="the register expects"):
        register._claim("kpotufe2020", entry, setup.Inputs())


def test_the_readme_counts_what_a_run_executes(registered):
    readme = (show.ROOT / "README.md").read_text(encoding="utf-8")
    run = [claim for claim in registered.values() if not claim.marginal]
    count = sum(len(claim.controls) for claim in run)
    rejected = f"controls: {count} of {count} rejected"
    assert f"\n{len(run)} claim(s), all as expected.\n{rejected}" in readme
