"""The theorem atlas and the errata: the committed pages say what the registry says, and what the generator writes."""

import copy
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import jax
import pytest

from proofs_check.engine.draws import QUICK
from proofs_check.engine.run import run
from proofs_check.register import claims
from proofs_check.report import record
from proofs_check.report.atlas import __main__ as command
from proofs_check.report.atlas import _errata, _pages, _plot

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAPERS = ("kpotufe2020", "chen2016", "ghashami2016", "amini2021")
QUICKLY = ("kpotufe2020:mixture", "kpotufe2020:eq13", "chen2016:lem4.1", "chen2016:lem4.1-taylor", "chen2016:sec6-rank")
"""Claims without trials: an identity, inequalities, and what no computation decides."""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def registered():
    with jax.enable_x64(True):
        return {claim.id: claim for claim in claims()}


@pytest.fixture(scope="module")
def ran(registered):
    """A report of a few claims, and as a second paper what has no margin."""
    with jax.enable_x64(True):
        results = run([registered[name] for name in QUICKLY], profile=QUICK, seed=0)
    return record.as_json(results, record.About("quick", 0, 1e-3, "float64"), run={"device": "cpu", "versions": {}})


@pytest.fixture
def report(ran):
    return copy.deepcopy(ran)


def read(name):
    return (DOCS / name).read_text(encoding="utf-8")


def expected(claim):
    forms = {"printed": claim.printed, "corrected": claim.corrected}
    return {name: form.expect for name, form in forms.items() if form is not None}


def sections(text):
    """Return the sections of a page by the id in their headings, in order."""
    parts = re.split(r"^### (.*)\n", text, flags=re.MULTILINE)
    ids = [re.search(r"`([^`]+)`", heading)[1] for heading in parts[1::2]]
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, parts[2::2], strict=True))


def rows(text):
    """Return the rows of the first table of a text that has one, without its head."""
    lines = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def dots(svg):
    """Return the places of all dots of a drawing, and the number of its arrows."""
    tree = ElementTree.fromstring(svg)
    groups = [path.get("d") for path in tree.iter(f"{SVG}path") if path.get("d").startswith("M")][2:]  # the legend
    return [float(x) for group in groups for x in re.findall(r"M(\S+) ", group)], len(list(tree.iter(f"{SVG}polygon")))


# The committed pages.


def test_the_atlas_lists_the_claims_of_the_registry_and_what_is_expected_of_them(registered):
    found = {paper: sections(read(f"atlas/{paper}.md")) for paper in PAPERS}
    listed = {paper: [name for name, claim in registered.items() if claim.paper == paper] for paper in PAPERS}
    assert {paper: list(claims) for paper, claims in found.items()} == listed
    errata = _errata.entries()
    for paper in PAPERS:
        for name, text in found[paper].items():
            claim = registered[name]
            verdicts = {cells[0]: cells[2] for cells in rows(text)}
            assert verdicts == expected(claim), name
            assert all(
                cells[1] == cells[2] or (cells[1], cells[2]) == ("certified", "consistent") for cells in rows(text)
            )
            assert text.count("$$") >= 2 or "`" in text, name
            assert _pages._cell(claim.because) in text, name
            assert _pages._cell(claim.where) in text, name
            assert f"--claim {name} " in text
            assert ("[Erratum]" in text) == (name in errata), name


def test_the_atlas_is_that_of_a_full_run_with_all_verdicts_as_expected(registered):
    text = read("atlas/index.md")
    assert "| profile | full |" in text and "| precision | float64 |" in text
    assert f"{len(registered)} claims, " in text
    assert "Not as expected" not in text and "Every verdict is as expected" in text
    counts = {cells[0].strip("[").split("]")[0]: cells[1] for cells in rows(text)}
    assert counts == {paper: str(sum(c.paper == paper for c in registered.values())) for paper in PAPERS}


@pytest.mark.parametrize("paper", PAPERS)
def test_drawings_are_small_and_still(paper):
    svg = read(f"atlas/{paper}.svg")
    assert len(svg.encode()) < 150_000
    assert not re.search(r"<script|https?://(?!www\.w3\.org/2000/svg\")|\d{4}-\d\d-\d\d", svg)
    places, _ = dots(svg)
    assert len(places) > 50
    assert f"({paper}.svg)" in read(f"atlas/{paper}.md")


def test_the_errata_are_what_the_registry_and_the_list_say(registered):
    assert read("errata.md") == _errata.page(list(registered.values())), (
        "the page is out of date: python -m proofs_check.report.atlas"
    )


def test_every_statement_that_is_false_as_printed_has_an_erratum(registered):
    # By the page alone, which the generator above could have got wrong.
    found = sections(read("errata.md"))
    false = {name for name, claim in registered.items() if expected(claim).get("printed") in ("refuted", "vacuous")}
    assert false <= set(found) <= set(registered)
    for name, text in found.items():
        verdicts = ", ".join(f"{status} as {form}" for form, status in expected(registered[name]).items())
        assert f"(atlas/{registered[name].paper}.md#{_pages.slug(name)}): {verdicts}." in text
        assert all(f"- *{part}.* " in text for part in ("Printed", "Proof", "Claim"))
    constants = {name for name, claim in registered.items() if expected(claim).get("printed") == "calibrated"}
    assert all(f"| [`{name}`]" in read("errata.md") for name in constants)


def test_paraphrases_are_short():
    for name, entry in _errata.entries().items():
        assert 5 <= len(entry.printed.split()) <= 45, name
        assert entry.printed.endswith(".") and not entry.proof.endswith("."), name


# The generator.


def test_a_list_that_lacks_or_invents_a_statement_is_refused(registered):
    listed = _errata.entries()
    everything = list(registered.values())
    _errata.checked(everything, listed)
    entry = listed.pop("kpotufe2020:thm1")
    with pytest.raises(ValueError, match=r"kpotufe2020:thm1: these are false as printed and are not in errata\.toml"):
        _errata.checked(everything, listed)
    with pytest.raises(ValueError, match="toy:1: these are no claims"):
        _errata.checked(everything, {**listed, "kpotufe2020:thm1": entry, "toy:1": entry})
    with pytest.raises(ValueError, match=r"jaxkern:thm1-all-d: these are in errata\.toml without a printed form"):
        _errata.checked(everything, {**listed, "kpotufe2020:thm1": entry, "jaxkern:thm1-all-d": entry})


def test_pages_follow_from_the_report_and_not_from_when_and_where_it_ran(report):
    before = _pages.files(report, {})
    assert set(before) == {"index.md", "kpotufe2020.md", "kpotufe2020.svg", "chen2016.md", "chen2016.svg"}
    report["run"] |= {"started": "20300101T000000Z", "platform": "elsewhere", "folder": "/x", "seconds": {}}
    assert _pages.files(report, {}) == before
    for name in ("elsewhere", "/x"):
        assert all(name not in text for text in before.values())


def test_a_section_has_all_that_was_found(report, registered):
    text = sections(_pages.files(report, {"kpotufe2020:eq13": "here"})["kpotufe2020.md"])["kpotufe2020:eq13"]
    found = next(claim for claim in report["claims"] if claim["id"] == "kpotufe2020:eq13")
    printed, corrected = found["forms"]
    least = [min(e["margin"] for e in form["evidence"]) for form in (printed, corrected)]
    assert [[cells[0], *cells[1:3], *cells[4:]] for cells in rows(text)] == [
        [
            form["form"],
            form["status"],
            form["expected"],
            f"{margin:.3g}",
            str(len(form["evidence"])),
            f"{form['trials']:,}",
        ]
        for form, margin in zip((printed, corrected), least, strict=True)
    ]
    assert "[Erratum](../errata.md#here)" in text
    assert re.search(r"As corrected:\n\n\$\$\n", text)
    assert "*Controls:* " in text and "Not as expected" not in text
    assert "python -m proofs_check --claim kpotufe2020:eq13 --seed 0 --profile quick" in text


def test_links_stay_on_the_page_of_a_paper_or_lead_to_it():
    claim = {"id": "chen2016:eq2", "paper": "chen2016"}
    here, there = _pages._link(claim), _pages._link(claim, page=True)
    assert here.startswith("[`chen2016:eq2`](#") and there == here.replace("(#", "(chen2016.md#")


def test_what_is_not_as_expected_stands_out(report):
    claim = report["claims"][0]
    claim["as_expected"] = claim["forms"][0]["as_expected"] = False
    claim["forms"][0]["expected"] = "certified"
    claim["controls"][0]["rejected"] = False
    claim["notes"] = ["an *odd* note"]
    files = _pages.files(report, {})
    assert f"Not as expected: [`{claim['id']}`](kpotufe2020.md#{_pages.slug(claim['id'])})." in files["index.md"]
    text = sections(files["kpotufe2020.md"])[claim["id"]]
    assert "**Not as expected.**" in text and f"| **{claim['forms'][0]['status']}** | certified |" in text
    assert ", **not refuted**)" in text and r"*Note:* an \*odd\* note" in text


def test_a_run_that_was_stopped_says_so(report):
    report |= {"complete": False, "stopped": "interrupted"}
    assert "The run was interrupted" in _pages.index(report)


def test_every_setting_is_a_dot_or_beyond_an_edge(report):
    (claim,) = (claim for claim in report["claims"] if claim["id"] == "chen2016:lem4.1")
    form = claim["forms"][0]
    claim["forms"] = [form]

    def drawn(margins):
        form["evidence"] = [{**form["evidence"][0], "margin": margin} for margin in margins]
        return dots(_plot.overview("chen2016", [claim]))

    axis_start, axis_stop = drawn([1e-3])[0][0], drawn([1e6])[0][0]
    assert drawn([10**-1.5])[0] == pytest.approx([axis_start + (axis_stop - axis_start) / 6], abs=0.06)
    assert drawn([1.0, 1.0, 2.0]) == (drawn([1.0, 2.0])[0], 0)  # what coincides is one dot
    assert drawn([None, 2.0]) == (drawn([2.0])[0], 0)
    assert drawn([1e-4, 0.0, -1.0, "-inf"]) == ([], 1)
    assert drawn([1e7, "inf", 1e-9, 1.0]) == (drawn([1.0])[0], 2)
    form["evidence"] = [{**form["evidence"][0], "margin": None}]
    assert _plot.overview("chen2016", [claim]) == ""


def test_a_paper_without_margins_has_no_drawing(report):
    report["claims"] = [claim for claim in report["claims"] if claim["id"] == "chen2016:sec6-rank"]
    (claim,) = report["claims"]
    claim["forms"] = [form for form in claim["forms"] if form["status"] == "not testable"]
    files = _pages.files(report, {})
    assert set(files) == {"index.md", "chen2016.md"}
    assert ".svg" not in files["chen2016.md"]


def test_formulas_neither_link_nor_end_their_display():
    start, line, stop, empty = _pages._display(r"\|[a](b)\| < 1")
    assert (start, stop, empty) == ("$$", "$$", "")
    assert "](" not in line and r"\lt 1" in line
    assert _pages._display("a $ b") == ["`a $ b`", ""]


@pytest.mark.usefixtures("own_precision")
def test_the_command_writes_and_says_what_it_wrote(report, tmp_path, capsys):
    run_folder, docs = tmp_path / "run", tmp_path / "docs"
    run_folder.mkdir(), docs.mkdir()
    (run_folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    assert command.main([str(run_folder), "--docs", str(docs)]) == 0
    out, err = capsys.readouterr()
    written = sorted(path for path in docs.rglob("*") if path.is_file())
    assert sorted(line.split(": ")[0] for line in out.splitlines()) == [str(path) for path in written]
    assert (docs / "errata.md").read_text(encoding="utf-8") == read("errata.md")
    assert "profile quick" in err and "missing" in err


@pytest.mark.usefixtures("own_precision")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--docs", "nowhere"], "--docs nowhere is no folder"),
        (["nowhere", "--docs", "."], "nowhere holds no report.json"),
        (["--what"], "unrecognized arguments"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command.execute, "known_claims", lambda: [])
    monkeypatch.setattr(command._errata, "page", lambda claims: "")
    assert command.main(arguments) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
    assert not list(tmp_path.iterdir())
