"""The report: its JSON against the documented schema, the page and the Markdown made from it, and `report DIR`."""

import copy
import dataclasses
import io
import json
import math
import re
import shlex
import subprocess
import sys
from importlib import resources
from pathlib import Path

import jax
import numpy as np
import pytest
from markupsafe import Markup
from support.pages import Page, contrast, paths, read_alone

from jaxkern.bounds import Bound
from proofs_check.claim import (
    Calibrated,
    Claim,
    Control,
    Exact,
    Expectation,
    Form,
    Identity,
    Inequality,
    Law,
    Rare,
    Rate,
    Setting,
    Tail,
)
from proofs_check.cli.command import _parser, main
from proofs_check.controls import KINDS
from proofs_check.engine import documents, judge
from proofs_check.engine.draws import QUICK
from proofs_check.engine.result import ClaimResult
from proofs_check.engine.run import run
from proofs_check.report import commands as rerun
from proofs_check.report import (
    document,
    draw,
    formulas,
    margins,
    markdown,
    record,
    terminal,
)
from proofs_check.report.run_page import _anchors, power_of_ten, render
from proofs_check.report.text import real, unseen, words_and_formulas
from proofs_check.report.words import label, readable

DOCS = Path(__file__).resolve().parents[2] / "docs"
SETTINGS = tuple(
    Setting(f"size {n}", numbers={"n": float(n)}, shapes={"d": 2})
    for n in (1, 2, 4, 8, 16)
)
FIRST = SETTINGS[:1]
FREE = ("facts", "numbers", "shapes", "papers", "kinds", "flags", "run", "symbols")


def nothing(*_):
    raise AssertionError("no trial is run here")


def bound(value):
    return lambda setting: Bound(value, 0.8, True, "toy2020:1")


ONE = (lambda s: 1.0, lambda s: 1.0, 0.05, None, lambda s: 1e-6)
"""Target, scale, precision, limits and variance."""
# A statement of every class, its samples, and the margins that follow from them by hand.
STEPS = np.arange(1.0, 11.0)
CASES = {
    "Tail": (Tail(nothing, bound(16.0)), FIRST, [STEPS], [16 / 8]),
    "Calibrated": (
        Calibrated(nothing, bound(2.0), 1.0, 20.0),
        FIRST,
        [STEPS],
        [20 / (8 / 2)],
    ),
    "Identity": (
        Identity(nothing),
        FIRST,
        [np.array([0.0, 2.22e-13])],
        [1e4 * np.finfo(float).eps / 2.22e-13],
    ),
    "Exact": (
        Exact(nothing),
        SETTINGS[:2],
        [(-3.0, -2.0), (-np.inf, -2.0)],
        [math.e, math.nan],
    ),
    "Inequality": (
        Inequality(nothing),
        FIRST,
        [np.array([[2.0, 3.0], [1.0, 8.0]])],
        [1.5],
    ),
    "Rare": (
        Rare(nothing, lambda s: -900.0, lambda s: -901.0),
        FIRST,
        [np.full(50, 0.5)],
        [2 * math.e],
    ),
    "Law": (
        Law(nothing, lambda x: np.asarray(x)),
        FIRST,
        [(np.arange(100) + 0.5) / 100],
        None,
    ),
    "Expectation": (
        Expectation(nothing, *ONE),
        FIRST,
        [np.array([0.999, 1.001] * 200)],
        None,
    ),
    "Rate": (
        Rate(nothing, "n", 1.0),
        SETTINGS,
        [n * np.array([0.99, 1.01]) for n in (1, 2, 4, 8, 16)],
        [math.nan] * 5,
    ),
}


def result(name):
    """Return the result of a claim on fixed samples, with the same form as printed, as corrected and as control."""
    statement, settings, samples, _ = CASES[name]
    form = Form(statement, settings, "certified", tex=r"U < 1")
    verdict = judge.judge(form, samples, 1e-3)
    form = dataclasses.replace(form, expect=verdict.status)
    claim = Claim(
        id=f"toy2020:{name}",
        paper="toy2020" if name in ("Tail", "Law") else "kpotufe2020",
        where=f"Lemma {name}",
        kind="a kind",
        tex=r"\|U\| \le 1 \text{ w.p. } 1 - \delta",
        because="it is a toy",
        printed=dataclasses.replace(form, tex=""),
        corrected=form,
        controls=(
            Control("sabotage", statement, settings, "wrong factor"),
            Control("other", statement, settings),
        ),
        hypotheses=r"it costs \$1, $U < \infty$ and $d \ge 1$",
        title=f"Sigma_n^2 is {name}",
        symbols=((r"\delta", "a probability, $e^{-\\tau}$"),),
    )
    controls = (("sabotage", verdict), ("other", verdict))
    return ClaimResult(claim, verdict, verdict, controls, 0.25, True, ("a note",), ())


ABOUT = record.About("quick", 7, 1e-3, "float64")
RUN = {
    "command": {"claim": [], "data": None},
    "started": "20200101T000000Z",
    "versions": {"jax": "0"},
}
RUN |= {"budget_minutes": 2.5, "resumed": 3}


@pytest.fixture(scope="module")
def pure():
    """A document of one claim of every class, made without a trial."""
    return record.as_json([result(name) for name in CASES], ABOUT, run=RUN)


@pytest.fixture
def found(pure):
    return copy.deepcopy(pure)


def uniform(key, population, numbers, *, d):
    return jax.random.uniform(key, dtype=numbers["n"].dtype)


REAL = Claim(
    id="toy2020:thm1", paper="toy2020", where="Theorem 1", kind="tail bound", tex=r"U \le 1", because="half is lost",
    printed=Form(Tail(uniform, bound(0.3)), FIRST, "refuted"),
    corrected=Form(Tail(uniform, bound(0.99)), FIRST, "certified"),
    controls=(Control("half", Tail(uniform, bound(0.4)), FIRST),),
)  # fmt: skip


def test_a_real_run_is_what_the_schema_says(tmp_path):
    found = record.as_json(run([REAL], profile=QUICK, seed=3), ABOUT, run={})
    assert document.find_fault(found) == "" and found["schema"] == 6
    documents.write_json(tmp_path / "report.json", found)
    assert document.read(tmp_path / "report.json") == found
    printed, corrected = found["claims"][0]["forms"]
    assert (printed["class"], printed["worst_setting"], corrected["worst_setting"]) == (
        "Tail",
        "size 1",
        "size 1",
    )
    assert printed["evidence"][0]["margin"] < 1 < corrected["evidence"][0]["margin"]
    assert printed["evidence"][0]["numbers"] == {"n": 1.0} and printed["evidence"][0][
        "shapes"
    ] == {"d": 2}
    assert found["claims"][0]["hypotheses"] == "" and found["kinds"] == {"other": ""}
    assert "what the statement says" in render(
        found
    ) and r"| $U \le 1$ | – | refuted |" in markdown.render(found)


@pytest.mark.parametrize("name", CASES)
def test_the_margin_is_one_at_the_limit_of_the_claim(pure, name):
    (claim,) = (c for c in pure["claims"] if c["id"] == f"toy2020:{name}")
    margins = [real(e["margin"]) for e in claim["forms"][0]["evidence"]]
    expected = CASES[name][3]
    if name == "Law":  # the empirical distribution function is 0.005 away at every step
        expected = [math.sqrt(math.log(2 / 1e-3) / 200) / 0.005]
    if name == "Expectation":
        expected = [0.05 / claim["forms"][0]["evidence"][0]["facts"]["half_width"]]
    assert margins == pytest.approx(expected, nan_ok=True)
    assert bool(claim["forms"][0]["margin_is"]) == (name != "Rate")


def test_a_refuted_mean_has_a_margin_below_one():
    form = Form(Expectation(nothing, *ONE), FIRST, "refuted")
    verdict = judge.judge(form, [np.array([1.019, 1.021] * 200)], 1e-3)
    assert verdict.status == "refuted"  # although it is within the precision asked for
    assert record._verdict(form, verdict)["evidence"][0]["margin"] < 1


def test_what_could_have_been_seen_is_the_rate_that_every_setting_would_have_shown():
    form = Form(
        Tail(
            nothing,
            lambda s: Bound(16.0, 0.8 if s.numbers["n"] < 4 else 0.0, True, "x"),
        ),
        SETTINGS,
        "x",
    )
    samples = [
        np.ones(400),
        np.ones(50),
        *[np.ones(0)] * 3,
    ]  # where no probability is claimed there is no rate
    verdict = judge.judge(form, samples, 1e-3)
    rates = [e.facts.get("detectable") for e in verdict.evidence]
    assert (
        rates[0] < rates[1]
        and rates[2:] == [None] * 3
        and record._verdict(form, verdict)["detectable"] == rates[1]
    )
    few = judge.judge(form, [np.ones(2), *samples[1:]], 1e-3)
    assert documents.strict(record._verdict(form, few))["detectable"] == "inf"
    none = judge.judge(Form(Identity(nothing), FIRST, "identity"), [np.zeros(1)], 1e-3)
    assert documents.strict(record._verdict(form, none))["detectable"] is None


def test_the_page_says_what_the_evidence_could_not_have_seen(found):
    (form,) = (c["forms"][1] for c in found["claims"] if c["id"] == "toy2020:Tail")
    form["detectable"] = 0.375
    shown = Page(render(found)).texts
    assert (
        "With this many trials, a violation rate of 0.375 would have been refuted with probability 0.99."
        in shown
    )
    form["detectable"] = "inf"
    assert "no violation rate could have been refuted with so few trials" in render(
        found
    )
    assert "| none | 0/2 |" in markdown.render(found)
    assert (
        unseen({"detectable": 0.5, "status": "refuted"})
        == unseen({**form, "detectable": None})
        == ""
    )


def test_a_logarithm_is_shown_as_a_power_of_ten():
    cases = {
        -900.0: "10<sup>−390.87</sup>",
        30 * math.log(10): "10<sup>30</sup>",
        math.log(0.25): "0.25",
    }
    cases |= {-math.inf: "0", math.nan: "–", -1e9: "10<sup>−434294482</sup>"}
    assert [power_of_ten(log) for log in cases] == list(cases.values())


def test_plain_formulas_become_signs_indices_and_exponents():
    cases = {
        "sqrt(s_3) <= e^-tau": "√(s<sub>3</sub>) ≤ e<sup>−τ</sup>", "|Z|_F^2 < 1": "|Z|<sub>F</sub><sup>2</sup> &lt; 1",
        "(n d)^(-1/4), 10^-8.4, 2^-1/2": "(n d)<sup>−1/4</sup>, 10<sup>−8.4</sup>, 2<sup>−1/2</sup>",
        "e^(-sigma^2 / 2)": "e<sup>−σ<sup>2</sup> / 2</sup>", "n=2.5e+07, 1e-06, a_b": "n=2.5·10⁷, 10⁻⁶, a<sub>b</sub>",
        "chi2 vbar toy2020:psi x2020:mu": "χ<sup>2</sup> v̄ <b>Psi</b> x2020:mu", "relative_norms": "relative_norms",
    }  # fmt: skip
    assert {
        text: readable(text, {"toy2020:psi": Markup("<b>Psi</b>")}) for text in cases
    } == cases
    assert (
        label("pi_1, n_k, e^-10, x^2.5, e^10/3, a_key")
        == "π₁, nₖ, e⁻¹⁰, x^2.5, e^10/3, a_key"
    )


def test_every_key_of_the_document_is_needed_and_typed(found):
    for path in set(paths(found, FREE)) - {
        ("flags",)
    }:  # which the pages do not need, and older reports lack
        changed = copy.deepcopy(found)
        *above, last = path
        inner = changed
        for step in above:
            inner = inner[step]
        kept = inner.pop(last)
        assert f"{last} is missing" in document.find_fault(changed), path
        inner[last] = {"an": "object"} if not isinstance(kept, dict) else "text"
        assert last in document.find_fault(changed), path
    assert document.find_fault(found) == ""
    found["claims"][0]["forms"][0]["trials"] = True
    assert "trials is 'True'" in document.find_fault(found)


def test_the_schema_page_names_every_key_and_no_other(pure):
    text = (DOCS / "report_schema.md").read_text(encoding="utf-8")
    assert f"version **{document.SCHEMA}**" in text
    body, free = (
        text[text.index("## The document") :],
        text.index("## The key `run`") - text.index("## The document"),
    )
    documented = {
        m
        for line in body[:free].splitlines()
        for m in re.findall(r"^\| `(\w+)` \| [a-z]", line)
    }
    documented -= set(CASES)  # the table of classes
    held = pure, *pure["claims"][0]["controls"]
    used = {path[-1] for part in held for path in paths(part, FREE)}
    assert documented == used
    assert set(RUN) | {"seconds"} <= set(re.findall(r"`(\w+)`", body[free:]))


def test_the_page_is_self_contained_and_can_be_read_without_eyes_or_mouse(pure):
    page = read_alone(render(pure), scripts=1)
    assert page.tags[[name for name, _ in page.tags].index("a")][1] == {
        "class": "skip",
        "href": "#main",
    }
    plots = page.all("svg")
    assert page.all("table") and plots and all(plot["role"] == "img" for plot in plots)
    assert len(page.all("desc")) == len(plots)


def test_the_page_says_what_a_reader_asks(pure):
    text = render(pure)
    shown = " ".join(" ".join(Page(text).texts).split())
    told = (
        "Lemma Tail",
        "it is a toy",
        "a note",
        "size 16",
        "sabotage",
        "0.001: the probability",
        "jax 0",
    )
    told += (
        "9 statements of 2 papers were run: 5 certified at the settings that were run, 4 held wherever tried.",
        "Nothing in this run contradicts any of them",
    )
    told += (
        "over all claims, settings and looks",
        "2.5 min, resumed 3 time(s)",
        "sequential: trials stop",
    )
    told += (
        "9 claim(s), all as expected",
        "2020-01-01 00:00:00 UTC",
        "Kpotufe and Sriperumbudur",
    )
    told += (
        "python -m proofs_check --claim toy2020:Rate --seed 7 --profile quick",
        "mean of the statistic",
    )
    told += (
        "Worst setting: size 1, where the slack is 2",
        "Slack is the probability claimed over probability estimated",
    )
    for part in told:
        assert part in shown, part
    assert (
        text.index("What the run found")
        < text.index("toy2020:Tail")
        > text.index('id="appendix"')
    )
    assert (
        text.count("<h4>Σ<sub>n</sub><sup>2</sup> is Tail</h4>") == 1
        and "a probability, <math><mrow><msup>" in text
    )
    assert "claimed 10<sup>−390.87</sup>" in text and "log claimed" not in text
    assert 'tabindex="0">it costs $1, <math><mrow><mi>U</mi>' in text and text.count(
        " and <math>"
    ) == len(CASES)


def test_what_is_not_as_expected_is_open_and_listed_first(found):
    found["claims"][1]["as_expected"] = found["claims"][1]["forms"][1][
        "as_expected"
    ] = False
    found["claims"][1]["forms"][1]["expected"] = "refuted"
    found["complete"] = found["as_expected"] = False
    text = render(found)
    assert text.count("<details open>") == 1 and "(expected refuted)" in text
    assert "1 not as expected. The run was interrupted" in text
    assert (
        text.index("Not as expected:") < text.index('id="found"')
        and text.count('class="cell good wrong"') == 1
    )
    assert "**calibrated** (expected refuted)" in markdown.render(
        found
    ) and "interrupted" in markdown.render(found)


@pytest.mark.parametrize(
    ("stopped", "said"),
    [("out of time", "was out of time"), ("interrupted", "was interrupted")],
)
def test_a_run_that_was_stopped_says_why(stopped, said):
    about = dataclasses.replace(ABOUT, stopped=stopped, rule="fixed")
    found = record.as_json([result("Exact")], about, run={}, complete=False)
    assert (
        document.find_fault(found) == ""
        and found["stopped"] == stopped
        and found["rule"] == "fixed"
    )
    text = render(found)
    assert (
        f"all as expected. The run {said}" in text
        and "fixed: the numbers of trials" in text
    )
    assert f"The run {said}" in markdown.render(found)
    shown = io.StringIO()
    terminal.terminal([result("Exact")], about, file=shown)
    assert f"The run {said}" in shown.getvalue()
    found["complete"] = True
    assert "after every claim was tried" in render(
        found
    ) and 'class="result good"' in render(found)
    found |= {"complete": False, "stopped": ""}  # only `complete` is known
    assert "The run was interrupted: claims" in render(found)


def test_words_are_cut_at_their_dollar_signs():
    cases = {
        "": [], "words": [("words", False)], "$n$": [("n", True)], "a $n b": [("a $n b", False)],
        "a $n$ b $m$.": [("a ", False), ("n", True), (" b ", False), ("m", True), (".", False)],
        r"\$5 and $n$": [("$5 and ", False), ("n", True)],
    }  # fmt: skip
    assert {text: words_and_formulas(text) for text in cases} == cases


def test_controls_are_counted_by_kind(found):
    first = found["claims"][0]["controls"]
    first.append({**first[0], "name": "again", "rejected": True})
    first[1]["rejected"] = True
    found["claims"][1]["controls"] = []
    for control in found["claims"][2]["controls"]:
        control["rejected"] = True
    found["claims"][3]["controls"][0]["kind"] = "a new one"
    rows = re.findall(
        r'<th scope="row">([^<]*)</th><td class="">([^<]*)</td><td class="number">([\d/]+)</td>',
        render(found),
    )
    assert rows == [
        ("wrong factor", KINDS["wrong factor"], "2/8"),
        ("other", "–", "2/8"),
        ("a new one", "–", "0/1"),
    ]
    assert (
        "| wrong factor | 2/8 |\n| other | 2/8 |\n| a new one | 0/1 |\n"
        in markdown.render(found)
    )
    for claim in found["claims"]:
        claim["controls"] = []
    assert "sabotage" not in render(found) and "## Controls" not in markdown.render(
        found
    )


def test_the_terminal_counts_controls_and_kinds():
    refuted = judge.judge(Form(Identity(nothing), FIRST, "refuted"), [np.ones(1)], 1e-3)
    one = result("Identity")
    one = dataclasses.replace(one, controls=(one.controls[0], ("other", refuted)))
    shown = io.StringIO()
    terminal.terminal([one, result("Law")], ABOUT, file=shown)
    assert "controls: 1 of 4 rejected, of 2 kind(s)" in shown.getvalue()
    assert "over all claims, settings and looks" in shown.getvalue()


@pytest.mark.parametrize(
    ("reports", "words"),
    [
        (((30, 100, 1000), (40, 200, 1000)), "about 1 min 20 s left"),
        (((30, 100, 1000), (40, 200, 1000), (60, 400, 1000)), "about 1 min left"),
        # Compilation and the first seconds give no estimate, nor do the first five percent.
        (((300, 1, 10**6), (301, 10, 10**6), (304.9, 10**5, 10**6)), ""),
        (((0, 1, 10**6), (100, 10**4, 10**6)), ""),
        # Trials that are no longer needed count as done: half of the plan is gone, though a twentieth has run.
        (((0, 0, 2000), (100, 100, 1100)), "about 1 min 40 s left"),
        (((0, 0, 2000), (100, 100, 4000)), ""),  # more than ever is left
        (((0, 0, 2000), (100, 1500, 1500)), ""),
        (((0, 0, 0), (9, 0, 0)), ""),
        # What a resumed run finds done is no speed.
        (
            ((0, 5000, 10_000), (0.5, 8000, 10_000), (10, 9000, 10_000)),
            "about 10 s left",
        ),
        # It begins anew where there is more to do, and not where a block has more trials than were asked for.
        (
            (
                (0, 0, 10_000),
                (20, 8000, 10_000),
                (30, 8100, 20_000),
                (40, 8200, 20_000),
            ),
            "",
        ),
        (((0, 0, 10_000), (20, 8000, 10_000), (20, 8000, 10_100)), "about 5 s left"),
    ],
)
def test_the_time_left_follows_the_speed(reports, words):
    left = terminal.TimeLeft()
    assert [left.update(*each) for each in reports][-1] == words


def test_durations_are_as_exact_as_an_estimate():
    words = {
        0.01: "1 s",
        59.4: "59 s",
        59.6: "1 min",
        200: "3 min 20 s",
        3594: "59 min 50 s",
        3596: "1 h",
    }
    assert {seconds: terminal._duration(seconds) for seconds in words} == words
    assert terminal._duration(1e5) == "27 h 47 min"


@pytest.mark.parametrize(
    "odd", [None, 5, -1e400, "text", ["list"], {"an": "object"}, True]
)
def test_what_the_schema_leaves_free_may_be_anything(found, odd):
    found["run"] = {
        "seconds": {"toy2020:Tail": odd},
        "versions": odd,
        "started": odd,
        "command": {"claim": odd},
    }
    found["run"]["command"] |= {"paper": odd, "data": odd}
    found["run"] |= {"budget_minutes": odd, "resumed": odd}
    found["papers"]["toy2020"] = found["kinds"]["wrong factor"] = odd
    for claim in found["claims"]:
        for evidence in claim["forms"][0]["evidence"]:
            evidence |= {"facts": {"mean": odd, "odd": odd}, "numbers": {"odd": odd}}
    assert document.find_fault(found) == ""
    Page(render(found)), markdown.render(found)


def test_claims_whose_names_differ_in_signs_have_their_own_anchors():
    anchors = [
        "claim-a-b",
        "claim-a-b-2",
        "claim-a-b-3",
        "claim-unnamed",
        "claim-a-b-2-2",
    ]
    assert _anchors(["a:b", "a b", "a/b", "", "a-b-2"]) == anchors


def test_formulas_are_repaired_where_the_converter_leaves_something():
    pytest.importorskip("latex2mathml")
    cases = {
        r"a \sim b": ["<mo>∼</mo>"], r"\mathbb E X, \mathcal M, \mathbb 1": ["𝔼", "ℳ", "𝟙"],
        r"\bigl\lceil x \bigr\rceil": ["⌈", "⌉"], r"\Bigl\{ x \Bigr\}": ["{", "}"], "a < b": ["&lt;"],
        r"\ln n": ['<mi>ln</mi><mspace width="0.167em"></mspace><mi>n</mi>'],
        r"\ln(n)": ['<mi>ln</mi><mo stretchy="false">('], r"\text{num\_rows}": ["num_rows"],
        r"\begin{aligned}a&b\\c&d\end{aligned}": ["<mtable"], r"a\tag{1}": ["</math> <math", "(1)"],
        r"\sum_i x": ["<munder>"],
    }  # fmt: skip
    for tex, parts in cases.items():
        assert all(part in formulas.formula(tex) for part in parts), tex
    # A long one can break where it has wide spaces.
    assert formulas.formula(r"a\quad b,\ c\text{ w.p. }d").count("<math") == 4
    assert formulas.formula(r"\sqrt{a\quad b}").count("<math") == 1
    long = r"P(a>b+c+d+e)^2\ge P(g>h)"
    assert [
        formulas.formula(long, inline=inline).count("<math") for inline in (True, False)
    ] == [2, 1]


@pytest.mark.parametrize(
    "tex",
    [
        *(
            "",
            r"\foo{x}",
            "a & b",
            r"\left( x",
            "{" * 3000,
            r"\bigl\foo x",
            r"\sqrt{" * 400 + "x" + "}" * 400,
        ),
        "<script>alert(1)</script>",
    ],
)
def test_what_is_no_formula_is_shown_as_its_source(tex):
    pytest.importorskip("latex2mathml")
    found = formulas.formula(tex)
    page = Page(found)
    assert "script" not in {name for name, _ in page.tags} and ("<math" in found) != (
        "<code" in found
    )
    if tex != "<script>alert(1)</script>":
        assert "".join(page.texts) == tex and "<code" in found


def test_without_the_converter_the_page_shows_tex(pure, monkeypatch):
    monkeypatch.setitem(sys.modules, "latex2mathml", None)
    monkeypatch.setitem(sys.modules, "latex2mathml.converter", None)
    formulas.formula.cache_clear()
    try:
        text = render(pure)
    finally:
        formulas.formula.cache_clear()
    assert (
        "<math" not in text
        and r'<code class="tex">\|U\| \le 1 \text{ w.p. } 1 - \delta</code>' in text
    )


def plot(**forms):
    named = {
        form: {f"tau={i}": value for i, value in enumerate(values)}
        for form, values in forms.items()
    }
    return margins.of_claim(named, ident="p", title="t", axis="a", limit=True)[0]


def test_a_plot_names_its_settings_and_puts_both_forms_around_the_line_at_one():
    found = plot(printed=[0.1, 10.0, 1.0, math.nan], corrected=[2.0])
    marks = {
        form: re.findall(rf'class="{form}" cx="([\d.]+)%"', found)[1:]
        for form in ("printed", "corrected")
    }
    low, high, middle = map(
        float, marks["printed"]
    )  # the first mark is that of the legend
    (limit,) = set(re.findall(r'class="limit" x1="([\d.]+)%" x2="\1%" y1="30"', found))
    assert len(marks["corrected"]) == 1 and middle == float(limit) == pytest.approx(
        (low + high) / 2, abs=0.1
    )
    assert all(
        f">{words}</text>" in found
        for words in ("τ=0", "τ=2", "as printed", "as corrected", "1, the limit")
    )
    assert "τ=3" not in found and ">a</text>" in found
    found = plot(
        printed=[math.inf, 0.0, -1.0, 1e-300, 2.0]
    )  # what does not fit is an arrow with its number
    assert [text in found for text in ("inf →", "← 0<", "← -1<", "← 10⁻³⁰⁰")] == [
        True
    ] * 4
    assert found.count('class="printed"') == 2
    assert plot(printed=range(1, 30)).count('class="halo"') == 12
    assert plot() == plot(printed=[math.nan]) == plot(printed=[1.0]) == ""


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.0, 0.0), (0.1, 0.2), (-0.4, 1.2), (-14.0, 14.0), (3.0, 3.3), (-0.5, 6.7)],
)
def test_ticks_are_few_round_and_around_the_data(low, high):
    ticks = draw.log_ticks(low, high)
    assert (
        ticks[0] <= low
        and ticks[-1] >= high
        and 2 <= len(ticks) <= 8
        and ticks == sorted(set(ticks))
    )
    assert all(
        re.fullmatch(r"[125]0*|0\.0*[125]|[125]e-?\d+", draw._label(tick))
        for tick in ticks
    )


def test_text_has_contrast_in_both_schemes():
    css = (
        resources.files("proofs_check.report")
        .joinpath("templates/page.css")
        .read_text(encoding="utf-8")
    )
    light, dark = css.split("@media (prefers-color-scheme: dark)")
    for scheme in (light, dark.split("* {")[0]):
        colours = dict(re.findall(r"--([\w-]+): (#\w{6});", scheme))
        pairs = [
            (name, back)
            for name in ("text", "soft", "link")
            for back in ("page", "panel")
        ]
        pairs += [("bad", "page"), ("rust", "page")]
        pairs += [
            (name, f"{name}-back") for name in ("good", "fine", "bad", "empty", "open")
        ]
        for pair in pairs:
            assert contrast(*(colours[name] for name in pair)) >= 4.5, pair


def test_the_command_to_run_again_is_read_as_it_was_meant(found):
    found["dtype"] = "float32"
    found["run"]["command"] = {
        "paper": "kpotufe2020",
        "claim": ["a b", "c"],
        "data": "my $x.npy",
        "lengthscale": 0.5,
    }
    words = shlex.split(rerun.run_command(found))
    assert words[:3] == ["python", "-m", "proofs_check"]
    asked = _parser().parse_args(["run", *words[3:]])
    assert (asked.paper, asked.claim, asked.seed, asked.dtype) == (
        "kpotufe2020",
        ["a b", "c"],
        7,
        "float32",
    )
    assert (str(asked.data), asked.lengthscale, asked.profile) == (
        "my $x.npy",
        0.5,
        "quick",
    )
    one = _parser().parse_args(
        ["run", *shlex.split(rerun.claim_command(found, "it's"))[3:]]
    )
    assert one.claim == ["it's"] and one.paper is None
    found["run"]["command"]["budget"] = 2.5
    for command in (rerun.run_command(found), rerun.claim_command(found, "x")):
        assert command.endswith(" --budget 2.5")
    found["run"] = {"seconds": {}}
    assert "--data" not in rerun.run_command(found)


def test_markdown_has_one_table_a_paper(pure):
    lines = markdown.render(pure).splitlines()
    assert [line for line in lines if line.startswith("## ")] == [
        "## toy2020",
        "## kpotufe2020",
        "## Controls",
    ]
    row = next(line for line in lines if line.startswith("| `toy2020:Tail`"))
    statement = r"$\Vert U\Vert \le 1 \text{ w.p. } 1 - \delta$"
    hypotheses = r"it costs \$1, $U \lt \infty$ and $d \ge 1$"
    assert row == (
        f"| `toy2020:Tail` | Lemma Tail | {statement} | {hypotheses} | consistent | consistent | 2 | 0.907 | 0/2 |"
    )


def test_report_makes_the_pages_again_without_jax(pure, tmp_path):
    documents.write_json(tmp_path / "report.json", pure)
    script = (
        "import sys\nfrom proofs_check.cli.command import main\n"
        f"assert main(['report', {str(tmp_path)!r}]) == 0\nassert 'jax' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "report.html") in done.stdout
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render(pure)
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == markdown.render(pure)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "report.html",
        "report.json",
        "report.md",
    ]
    (tmp_path / "report.html").unlink()
    script = (
        f"import sys\nsys.modules['jinja2'] = None\n{script.removeprefix('import sys')}"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (
        done.returncode == 0
        and "no report.html without jinja2" in done.stderr
        and "report.md" in done.stdout
    )
    assert not (tmp_path / "report.html").exists()


def test_a_name_that_is_no_unicode_does_not_stop_a_report(found, tmp_path):
    found["run"]["command"]["data"] = found["note"] = "x\udcff.npy"
    documents.write_json(tmp_path / "report.json", found)
    assert main(["report", str(tmp_path)]) == 0
    assert "x\\udcff.npy" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "holds no report.json"),
        ('{"schema": 6, "cla', "is not JSON"),
        ("[]", "no schema version"),
        ('{"schema": 2}', "schema version '2', and this program reads version 6"),
        ('{"schema": true}', "this program reads version 6"),
        (
            '{"schema": 6}',
            "is not a report of schema version 6: report.profile is missing",
        ),
        (lambda r: r["claims"][2].pop("forms"), "report.claims[2].forms is missing"),
        (
            lambda r: r["claims"][2]["forms"][0].update(status="shown"),
            "report.claims[2].forms[0].status is 'shown'",
        ),
    ],
)
def test_what_is_no_report_is_one_line_and_nothing_is_overwritten(
    found, tmp_path, capsys, content, message
):
    path = tmp_path / "report.json"
    if callable(content):
        content(found)
        content = json.dumps(found)
    if content is not None:
        path.write_text(content, encoding="utf-8")
    (tmp_path / "report.html").write_text("old")
    assert main(["report", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert (
        error.startswith("proofs-check: ")
        and error.count("\n") == 1
        and message in error
    )
    assert (tmp_path / "report.html").read_text() == "old" and not (
        tmp_path / "report.md"
    ).exists()


def test_a_folder_that_is_none_is_said(tmp_path, capsys):
    for name in ("none", "file"):
        (tmp_path / "file").touch()
        assert main(["report", str(tmp_path / name)]) == 2
        assert "is no folder" in capsys.readouterr().err
    assert main(["report"]) == 2
    assert "required: DIR" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    assert "python -m proofs_check report out" in capsys.readouterr().out
