"""The theorem atlas and the errata: what is stored of a run fits the register, and the pages say what both say."""

import copy
import dataclasses
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import jax
import pytest

from proofs_check.claim import SEVERITIES
from proofs_check.cli import atlas as command
from proofs_check.engine.draws import QUICK
from proofs_check.engine.run import run
from proofs_check.register import PAPERS, claims, entries, outlines
from proofs_check.report import atlas, errata, margins, record

DOCS = Path(__file__).resolve().parents[2] / "docs"
QUICKLY = (
    "kpotufe2020:mixture",
    "kpotufe2020:eq13",
    "chen2016:lem4.1",
    "chen2016:lem4.1-taylor",
    "chen2016:sec6-rank",
)
"""Claims without trials: an identity, inequalities, and what no computation decides."""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def registered():
    return {claim.id: claim for claim in outlines()}


@pytest.fixture(scope="module")
def chosen():
    with jax.enable_x64(True):
        return claims(only=QUICKLY)


@pytest.fixture(scope="module")
def report(chosen):
    with jax.enable_x64(True):
        results = run(chosen, profile=QUICK, seed=0)
    return record.as_json(
        results,
        record.About("quick", 0, 1e-3, "float64"),
        run={"device": "cpu", "versions": {}},
    )


@pytest.fixture
def kept(report):
    return copy.deepcopy(atlas.evidence_of(report))


@pytest.fixture(scope="module")
def pages(registered):
    stored = json.loads((DOCS / command.STORED).read_text(encoding="utf-8"))
    everything = list(registered.values())
    return atlas.files(stored, everything, errata.anchors(everything))


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
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]
    ]


def dots(svg):
    """Return the places of all dots of a drawing, and the number of its arrows."""
    tree = ElementTree.fromstring(svg)
    groups = [path.get("d") for path in tree.iter(f"{SVG}path")][
        2:
    ]  # the first ones are the legend
    return [float(x) for group in groups for x in re.findall(r"M(\S+) ", group)], len(
        list(tree.iter(f"{SVG}polygon"))
    )


# What is committed.


def test_the_stored_run_is_of_the_claims_of_the_register_and_all_is_as_expected(
    registered, pages
):
    text = pages["index.md"]
    assert f"{len(registered)} claims, " in text and "Not in this run" not in text
    assert "Not as expected" not in text and "Every verdict is as expected" in text
    counts = {cells[0].strip("[").split("]")[0]: cells[1] for cells in rows(text)}
    assert counts == {
        paper: str(sum(c.paper == paper for c in registered.values()))
        for paper in PAPERS
    }
    for paper in PAPERS:
        found = sections(pages[f"{paper}.md"])
        assert list(found) == [
            name for name, claim in registered.items() if claim.paper == paper
        ]
        for name, section in found.items():
            assert {
                cells[0]: cells[2].strip("*") for cells in rows(section)
            } == expected(registered[name]), name
            assert ("[Erratum]" in section) == bool(registered[name].says), name
            assert f"--claim {name} " in section


def test_a_corrected_statement_that_stays_loose_has_a_reason(registered):
    stored = json.loads((DOCS / command.STORED).read_text(encoding="utf-8"))["claims"]
    loose = {
        name
        for name, found in stored.items()
        if any(form["loose"] for form in found["forms"])
    }
    assert loose == {name for name, claim in registered.items() if claim.loose}


@pytest.mark.parametrize("paper", PAPERS)
def test_drawings_are_small_and_still(pages, paper):
    svg = pages[f"{paper}.svg"]
    assert len(svg.encode()) < 150_000
    assert not re.search(
        r"<script|https?://(?!www\.w3\.org/2000/svg\")|\d{4}-\d\d-\d\d", svg
    )
    places, _ = dots(svg)
    assert len(places) > 50 and f"({paper}.svg)" in pages[f"{paper}.md"]


def test_links_of_the_atlas_lead_somewhere(pages):
    text = (DOCS / "errata.md").read_text(encoding="utf-8").replace("\\", "")
    anchors = {
        f"../errata.md#{atlas.slug(heading)}"
        for heading in re.findall(r"^### (.+)$", text, re.MULTILINE)
    }
    for name, text in pages.items():
        anchors |= {
            f"{name}#{atlas.slug(title)}"
            for title in re.findall(r"^### `(.+)`$", text, re.MULTILINE)
        }
    for name, text in pages.items():
        if name.endswith(".md"):
            for target in re.findall(r"\]\(([^()\s]+)\)", text):
                full = f"{name}{target}" if target.startswith("#") else target
                assert full in anchors or full in pages, (name, target)
            for target in re.findall(r"\{doc\}`([^`]+)`", text):
                assert (
                    f"{target}.md" in pages
                    or (DOCS / "atlas" / f"{target}.md").resolve().exists()
                ), target


def test_the_errata_are_what_the_register_says(registered):
    assert (DOCS / "errata.md").read_text(encoding="utf-8") == errata.page(
        list(registered.values())
    ), "the page is out of date: python -m proofs_check.cli.atlas"


def test_every_statement_that_is_false_as_printed_has_an_erratum(registered):
    # By the page alone, which the generator above could have got wrong.
    text = (DOCS / "errata.md").read_text(encoding="utf-8")
    found = sections(text)
    false = {
        name
        for name, claim in registered.items()
        if expected(claim).get("printed") in ("refuted", "vacuous")
    }
    assert false <= set(found) <= set(registered)
    for name, section in found.items():
        verdicts = ", ".join(
            f"{status} as {form}" for form, status in expected(registered[name]).items()
        )
        assert f"`{name}`: {verdicts}." in section
        assert all(f"- *{part}.* " in section for part in ("Printed", "Proof", "Claim"))
    constants = {
        name
        for name, claim in registered.items()
        if expected(claim).get("printed") == "calibrated"
    }
    assert all(f"| `{name}` |" in text for name in constants)


def test_every_statement_has_its_claim_or_the_reason_why_it_has_none():
    papers = {paper: entries(paper) for paper in PAPERS}
    sections = re.split(r"^## (\w+)$", errata.inventory(papers), flags=re.MULTILINE)
    assert tuple(sections[1::2]) == PAPERS
    for paper, body in zip(sections[1::2], sections[2::2], strict=True):
        rows = [line for line in body.splitlines() if line.startswith("| ")][2:]
        assert len(rows) == len(papers[paper])
        for row, entry in zip(rows, papers[paper], strict=True):
            *_, last = re.split(r"(?<!\\) \| ", row.strip("| "))
            assert (
                last.strip("*") == f"`{entry['id']}`"
                if "id" in entry
                else len(last.split()) >= 2
            ), row
            assert last.startswith("*") == entry.get("marginal", False), row


def test_errata_count_a_mistake_once_and_place_its_consequences_below_it(registered):
    text = errata.page(list(registered.values()))
    among, order = (
        errata.listed(list(registered.values())),
        re.findall(r"^### .*`(.+)`", text, re.MULTILINE),
    )
    assert sorted(order) == sorted(
        name for name, claim in registered.items() if claim.says
    )
    head = [int(number) for number in re.findall(r"\d+", text.split("\n")[2])]
    grades = [claim.severity for claim in among.values()]
    assert head == [*map(grades.count, SEVERITIES), grades.count("")] and sum(
        head
    ) == len(order)
    for name, claim in among.items():
        if claim.follows:
            between = order[order.index(claim.follows) + 1 : order.index(name)]
            assert all(among[each].follows == claim.follows for each in between), name
    part = dict(
        zip(order, re.split(r"^### ", text, flags=re.MULTILINE)[1:], strict=True)
    )
    assert "Follows from* `kpotufe2020:eq12`" in part["kpotufe2020:eq13"]


@pytest.mark.parametrize(
    "change",
    [
        {"severity": ""},
        {"severity": "grave"},
        {"follows": "kpotufe2020:eq12"},
        {"says": ""},
        {"severity": "", "follows": "x"},
    ],
)
def test_a_false_statement_without_its_grade_is_refused(registered, change):
    wrong = dataclasses.replace(registered["kpotufe2020:thm1"], **change)
    with pytest.raises(ValueError, match="kpotufe2020:thm1: false or imprecise"):
        errata.page([wrong, registered["kpotufe2020:eq12"]])


# The generator.


def test_what_is_kept_of_a_run_does_not_depend_on_when_and_where_it_ran(
    report, chosen, kept
):
    other = copy.deepcopy(report)
    other["run"] |= {
        "started": "20300101T000000Z",
        "platform": "elsewhere",
        "folder": "/x",
        "seconds": {},
    }
    assert atlas.evidence_of(other) == kept == json.loads(command._stored(report))
    files = atlas.files(kept, chosen, {})
    assert set(files) == {
        "index.md",
        "kpotufe2020.md",
        "kpotufe2020.svg",
        "chen2016.md",
        "chen2016.svg",
    }


def test_a_section_has_all_that_was_found(report, kept, chosen):
    text = sections(
        atlas.files(kept, chosen, {"kpotufe2020:eq13": "here"})["kpotufe2020.md"]
    )["kpotufe2020:eq13"]
    found = next(
        claim for claim in report["claims"] if claim["id"] == "kpotufe2020:eq13"
    )
    assert rows(text) == [
        [
            *(form[name] for name in ("form", "status", "expected")),
            *(
                f"{form[name]:.3g}"
                for name in ("slack", "slack_median", "slack_largest")
            ),
            *(str(len(form["evidence"])), f"{form['trials']:,}"),
        ]
        for form in found["forms"]
    ]
    assert "[Erratum](../errata.md#here)" in text
    assert re.search(r"As corrected:\n\n\$\$\n", text)
    assert "*Controls:* " in text and "Not as expected" not in text
    assert (
        "python -m proofs_check --claim kpotufe2020:eq13 --seed 0 --profile quick"
        in text
    )


def test_what_is_not_as_expected_or_not_there_stands_out(kept, chosen):
    name, gone = "kpotufe2020:eq13", "chen2016:lem4.1"
    evidence = kept["claims"][name]
    evidence["forms"][0]["as_expected"] = False
    evidence["controls"] = dict.fromkeys(evidence["controls"], False)
    evidence["notes"] = ["an *odd* note"]
    del kept["claims"][gone]
    kept |= {"complete": False, "stopped": "interrupted"}
    files = atlas.files(kept, chosen, {})
    assert (
        f"Not as expected: [`{name}`](kpotufe2020.md#{atlas.slug(name)})."
        in files["index.md"]
    )
    assert f"Not in this run: [`{gone}`](chen2016.md#" in files["index.md"]
    assert "The run was interrupted" in files["index.md"]
    text = sections(files["kpotufe2020.md"])[name]
    assert (
        "**Not as expected.**" in text
        and f"| **{evidence['forms'][0]['status']}** | " in text
    )
    assert ", **not refuted**)" in text and r"*Note:* an \*odd\* note" in text
    assert "Not in the run that is stored." in sections(files["chen2016.md"])[gone]


def test_every_setting_is_a_dot_or_beyond_an_edge():
    def drawn(values):
        return dots(margins.overview("a paper", [("a claim", {"printed": values})]))

    start, stop = drawn([1e-3])[0][0], drawn([1e6])[0][0]
    assert drawn([10**-1.5])[0] == pytest.approx([start + (stop - start) / 6], abs=0.06)
    assert drawn([1.0, 1.0, 2.0]) == (
        drawn([1.0, 2.0])[0],
        0,
    )  # what coincides is one dot
    assert drawn([1e-4, 0.0, -1.0, float("-inf")]) == ([], 1)
    assert drawn([1e7, float("inf"), 1e-9, 1.0]) == (drawn([1.0])[0], 2)


def test_a_paper_without_margins_has_no_drawing(kept, registered):
    files = atlas.files(kept, [registered["chen2016:sec6-rank"]], {})
    kept["claims"]["chen2016:sec6-rank"]["forms"][-1]["margins"] = [None]
    assert set(files) >= {"index.md", "chen2016.md"}
    for form in kept["claims"]["chen2016:sec6-rank"]["forms"]:
        form["margins"] = []
    files = atlas.files(kept, [registered["chen2016:sec6-rank"]], {})
    assert (
        set(files) == {"index.md", "chen2016.md"} and ".svg" not in files["chen2016.md"]
    )


def test_formulas_neither_link_nor_end_their_display():
    start, line, stop = atlas.display(r"\|[a](b)\| < 1").splitlines()
    assert (start, stop) == ("$$", "$$") and "](" not in line and r"\lt 1" in line
    assert atlas.display("a $ b") == "`a $ b`"


@pytest.mark.usefixtures("own_precision")
def test_the_command_stores_a_run_and_builds_the_pages(
    report, tmp_path, capsys, monkeypatch, chosen, registered
):
    folder, docs = tmp_path / "run", tmp_path / "docs"
    folder.mkdir(), (docs / "theory").mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    monkeypatch.setattr(
        command.register, "claims", lambda: [*chosen, registered["kpotufe2020:eq12"]]
    )
    assert command.main([str(folder), "--docs", str(docs)]) == 0
    written = sorted(path for path in docs.rglob("*") if path.is_file())
    assert [path.name for path in written] == ["atlas.json", "errata.md"]
    assert sorted(
        line.split(": ")[0] for line in capsys.readouterr().out.splitlines()
    ) == [str(p) for p in written]
    command.build(docs)
    assert "Theorem atlas" in (docs / "atlas" / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--docs", "nowhere"], "--docs nowhere is no folder"),
        (["nowhere", "--docs", "."], "report.json cannot be read"),
        (["--what"], "unrecognized arguments"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(
    arguments, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert command.main(arguments) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
    assert not list(tmp_path.iterdir())
