"""The register: every statement of the papers has its words, a check or a reason, and a place where it is proved."""

import collections
import re

import pytest

from proofs_check import controls, register
from proofs_check.claim import KINDS, Undecided
from proofs_check.cli import show
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
    titles = [entry["title"] for entry in statements]
    assert len(set(titles)) == len(titles)
    for entry in statements:
        title = entry["title"]
        assert (
            entry["place"]
            and not re.match(r"[a-z]{2}", title)
            and len(title.split()) <= 10
        ), title
        if "reason" in entry:
            assert len(entry["reason"].split()) >= 2, title
        else:
            assert (
                entry["id"].startswith((f"{paper}:", "jaxkern:"))
                and entry["kind"] in KINDS
            )
            assert (
                ("check" in entry or "undecided" in entry)
                and entry["because"]
                and entry["expected"]
            ), entry["id"]


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


def test_no_numbered_statement_is_in_the_margin():
    marginal = [
        entry["id"]
        for paper in PAPERS
        for entry in entries(paper)
        if entry.get("marginal")
    ]
    assert marginal and not [name for name in marginal if NUMBERED.fullmatch(name)]


def test_ids_are_those_of_the_claims_in_order(registered):
    assert list(registered) == [
        entry["id"] for paper in PAPERS for entry in entries(paper)
    ]


def test_every_claim_has_a_form_a_reason_and_controls_of_known_kinds(registered):
    kinds = controls.table(registered.values())  # it raises where a kind is unknown
    assert (
        list(kinds) == list(registered)
        and sum(not known_kinds for known_kinds in kinds.values()) < 10
    )
    for claim in registered.values():
        assert claim.printed or claim.corrected, claim.id
        undecided = all(
            isinstance(form.statement, Undecided) for form in claim.forms.values()
        )
        assert (
            (claim.controls or undecided)
            and claim.because
            and claim.tex
            and claim.where
        ), claim.id
        assert claim.corrected or not claim.id.startswith("jaxkern:"), claim.id
    counts = collections.Counter(
        kind for known_kinds in kinds.values() for kind in known_kinds
    )
    assert (
        set(counts) == set(controls.KINDS)
        and min(counts.values()) >= 2
        and len(counts) >= 15
    )


def test_what_is_printed_wrong_is_corrected_with_a_proof(registered):
    wrong = [
        claim
        for claim in registered.values()
        if claim.printed and claim.printed.expect in FALSE
    ]
    assert wrong and all(
        claim.corrected and claim.says and claim.proof for claim in wrong
    )


def test_what_is_not_testable_says_why(registered):
    forms = [
        form
        for claim in registered.values()
        for form in (claim.printed, claim.corrected)
        if form is not None
    ]
    undecided = [form for form in forms if form.expect == "not testable"]
    assert undecided and all(
        len(form.statement.reason.split()) >= 6 for form in undecided
    )


def test_every_proof_is_in_the_documentation(registered):
    """Each label and each link in the words of a proof leads to a line of a page."""
    for claim in registered.values():
        links = re.findall(r"<[\w-]+>`|\]\([^)]*#[^)]*\)", claim.proof)
        lines = [
            line for line in show.proofs_of(claim) if re.search(r"\.md:\d+$", line)
        ]
        assert len(lines) == len(links), (claim.id, claim.proof, lines)


def test_every_claim_says_what_it_assumes_and_every_formula_becomes_mathml(registered):
    for claim in registered.values():
        said = [claim.hypotheses, *(means for _, means in claim.symbols)]
        assert (
            claim.section
            and claim.hypotheses.endswith(".")
            and claim.hypotheses.count("$") % 2 == 0
        ), claim.id
        assert not any(
            "\\" in words for text in said for words in text.split("$")[::2]
        ), claim.id
        formulas_said = [tex for text in said for tex in text.split("$")[1::2]]
        written = [claim.tex, *formulas_said, *(symbol for symbol, _ in claim.symbols)]
        for tex in (*written, *(form.tex for form in claim.forms.values() if form.tex)):
            text = formulas.formula(tex)
            assert "<math" in text and "<code" not in text and "\\" not in text, (
                f"{claim.id}: {tex}"
            )


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
    entry = {
        **register.entries("kpotufe2020")[0],
        "expected": {"corrected": "certified"},
    }
    inputs = register.importlib.import_module(
        "proofs_check.papers.kpotufe2020.setup"
    ).Inputs()
    with pytest.raises(ValueError, match="the register expects"):
        register._claim("kpotufe2020", entry, inputs)


def test_the_readme_counts_what_a_run_executes(claims):
    readme = (show.ROOT / "README.md").read_text(encoding="utf-8")
    run = [claim for claim in claims.values() if not claim.marginal]
    controls_run = sum(len(claim.controls) for claim in run)
    assert (
        f"\n{len(run)} claim(s), all as expected.\ncontrols: {controls_run} of {controls_run} rejected"
        in readme
    )
