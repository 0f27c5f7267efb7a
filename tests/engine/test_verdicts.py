"""The decision table of docs/verdicts.md, executed: every row has a case, every case a row, and the judge agrees.

The conditions of the table are read from the page and evaluated on the facts of a verdict, so the page cannot say one
thing and the judge do another.
"""

import dataclasses
import itertools
import math
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from scipy import stats
from support import toys

from jaxkern.bounds import Bound
from proofs_check import usage
from proofs_check.claim import (
    Calibrated,
    Enclosed,
    Exact,
    Expectation,
    Form,
    Identity,
    Inequality,
    Law,
    Rare,
    Rate,
    Setting,
    Statement,
    Tail,
    Undecided,
)
from proofs_check.engine import checkpoint, draws, judge, sequential, stopping
from proofs_check.engine.run import FAMILY_ALPHA, run
from proofs_check.engine.work import enclosed
from proofs_check.papers import populations
from proofs_check.report import terminal

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "verdicts.md").read_text(
    encoding="utf-8"
)
WORDS = " ".join(PAGE.split())  # wherever its lines are broken
ALPHA = 1e-4
RULES = ("fixed", "sequential")
TOGETHER = (
    Expectation,
    Law,
    Rate,
    Rare,
)  # looked at all draws together, each time with a share of the level
ORDER = ("refuted", "vacuous", "certified", "consistent")


def table(title):
    """Return the rows of the first table below a heading, without its head, as lists of cells."""
    section = re.search(
        rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL
    )[1]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the decision table: which of the settings, at how many of them, which condition."""

    id: str
    cls: str
    where: str
    quantifier: str
    condition: dict[str, str]
    verdict: str


def row_of(cells):
    name, cls, where, evidence, verdict = cells
    found = re.fullmatch(
        r"(some|every|all together): `([^`]+)`(?:; fixed rule: `([^`]+)`)?", evidence
    )
    quantifier, by_evidence, fixed = found.groups() if found else ("", evidence, None)
    condition = {"sequential": by_evidence, "fixed": fixed or by_evidence}
    where = where.strip("`") if where.startswith("`") else where
    return Row(name, cls.strip("`"), where, quantifier, condition, verdict.strip("`"))


ROWS = {cells[0]: row_of(cells) for cells in table("The decision table")}


def applies(row, form, verdict, rule, level):
    """Evaluate the condition of a row on the facts of a verdict."""
    statement = form.statement
    shared = {
        "level": level,
        "rounding": judge.ROUNDING * judge.EPS,
        "log": math.log,
        "ceiling": math.inf,
        "inf": math.inf,
    }
    shared |= {
        name: getattr(sequential, name)
        for name in ("log_evidence_above", "log_evidence_below")
    }
    shared |= {
        name: getattr(statement, name)
        for name in ("exponent", "width")
        if hasattr(statement, name)
    }
    condition = row.condition[rule]
    if row.quantifier == "all together":
        return bool(eval(condition, {**shared, **verdict.facts}))
    held = []
    for setting, seen in zip(form.settings, verdict.evidence, strict=True):
        names = {**shared, **verdict.facts, **seen.facts, "trials": seen.trials}
        if isinstance(statement, Expectation):
            names["scale"] = abs(statement.scale(setting))
        if not row.where or eval(row.where, names):
            held.append(bool(eval(condition, names)))
    return any(held) if row.quantifier == "some" else all(held)


def judged(form, samples, rule, look=0):
    """Return the verdict, and the row of the table that gives one."""
    verdict = judge.judge(form, samples, ALPHA, rule=rule, look=look)
    share = (
        0.5 ** (look + 1)
        if rule == "sequential" and isinstance(form.statement, TOGETHER)
        else 1.0
    )
    level = ALPHA * share / len(form.settings)
    rows = [row for row in ROWS.values() if row.cls == type(form.statement).__name__]
    return verdict, next(
        row for row in rows if applies(row, form, verdict, rule, level)
    )


def no_trial(key, population, numbers):
    raise AssertionError("the judge runs no trial")


def settings(*numbers):
    return tuple(
        Setting(f"{i}", numbers={"value": float(value)})
        for i, value in enumerate(numbers)
    )


def value(setting):
    return setting.numbers["value"]


def tail(*deltas, ceiling=None):
    """Return a Tail "at most 1" with a delta of its own at each setting."""
    highest = None if ceiling is None else lambda setting: ceiling
    bound = Tail(
        no_trial, lambda setting: Bound(1.0, 1 - value(setting), True, "toy:1"), highest
    )
    return Form(bound, settings(*deltas), "certified")


def seen(violations, trials, calm=0.5):
    return np.where(np.arange(trials) < violations, 2.0, calm)


def calibrated(*deltas, proved=1.0):
    def shape(setting):
        return Bound(1.0, 1 - value(setting), True, "toy:1")

    return Form(
        Calibrated(no_trial, shape, 0.1, proved), settings(*deltas), "calibrated"
    )


def mean(target=0.0, between=None, variance=0.01):
    """Return the Expectation of a statistic between two numbers, or else of this variance at most, or of any law."""
    within = None if between is None else lambda setting: between
    moment = None if variance is None or within else lambda setting: variance
    statement = Expectation(
        no_trial, lambda s: target, lambda s: 1.0, limits=within, moment=moment
    )
    return Form(statement, settings(0, 1), "certified")


def around(middle, spread, trials):
    return middle + spread * np.where(np.arange(trials) % 2, 1.0, -1.0)


def law(trials, shift=0.0):
    return stats.norm.ppf((np.arange(trials) + 0.5) / trials) + shift


NORMAL = Form(Law(no_trial, stats.norm.cdf, width=0.16), settings(0, 1), "certified")


def rate(spread=0.1):
    """Return the Rate n^-1/2 of a statistic whose standard deviation is at most `spread` times that, or of any law."""
    moment = None if spread is None else lambda s: (spread * value(s) ** -0.5) ** 2
    return Form(
        Rate(no_trial, "value", -0.5, moment=moment),
        settings(10, 20, 40, 80, 160),
        "certified",
    )


def power(exponent, spread, trials=100):
    return [around(1.0, spread, trials) * value(s) ** exponent for s in rate().settings]


IDENTITY = Form(Identity(no_trial), settings(0, 1), "identity")
INEQUALITY = Form(Inequality(no_trial), settings(0, 1), "consistent")


def exact(count):
    return Form(Exact(no_trial), settings(*range(count)), "certified")


def rare(*log_claimed, log_ceiling=-40.0):
    """Return a Rare probability of at most exp(log_claimed) at each setting, estimated over exp(log_ceiling)."""
    return Form(
        Rare(no_trial, value, lambda setting: log_ceiling),
        settings(*log_claimed),
        "certified",
    )


def half(trials=400):
    return np.arange(trials) % 2 * 1.0


NAN = math.nan
CASES = [
    (
        "I1",
        "an error beyond rounding at one setting",
        IDENTITY,
        [[1e-16], [1e-16, -1e-9]],
    ),
    ("I1", "not a number", IDENTITY, [[0.0, NAN], [0.0]]),
    ("I2", "to rounding", IDENTITY, [[1e-13, 0.0], [-1e-16]]),
    ("T1", "many violations", tail(0.1), [seen(60, 200)]),
    (
        "T1",
        "many violations at one setting, none at the other",
        tail(0.1, 0.1),
        [seen(0, 200), seen(60, 200)],
    ),
    (
        "T1",
        "many violations beside a setting that claims nothing",
        tail(2.0, 0.1),
        [[], seen(60, 200)],
    ),
    ("T1", "refuted goes before vacuous", tail(0.1, ceiling=0.9), [np.full(200, NAN)]),
    ("T2", "one violation of what holds always", tail(0.0), [seen(1, 1000)]),
    (
        "T2",
        "one violation beside a setting that is certified",
        tail(0.1, 0.0),
        [seen(0, 200), seen(1, 1000)],
    ),
    (
        "T2",
        "refuted goes before vacuous here, too",
        tail(0.0, ceiling=0.9),
        [[0.5, NAN]],
    ),
    ("T3", "no probability is claimed, no trials", tail(1.0, 1.5), [[], []]),
    ("T3", "vacuous goes before certified", tail(0.1, ceiling=0.9), [seen(0, 200)]),
    (
        "T3",
        "vacuous goes before consistent",
        tail(0.1, 0.0, ceiling=0.9),
        [seen(0, 2), seen(0, 2)],
    ),
    ("T4", "no violation", tail(0.1), [seen(0, 200)]),
    (
        "T4",
        "no violation beside a setting that claims nothing",
        tail(2.0, 0.1),
        [[], seen(0, 200)],
    ),
    (
        "T4",
        "below the ceiling",
        tail(0.1, 0.2, ceiling=3.0),
        [seen(0, 200), seen(2, 200)],
    ),
    ("T5", "at the edge", tail(0.1), [seen(20, 200)]),
    ("T5", "so small a delta", tail(1e-3), [seen(0, 200)]),
    (
        "T5",
        "certified at one setting alone",
        tail(0.1, 0.1),
        [seen(0, 200), seen(20, 200)],
    ),
    ("T6", "examples of what holds always", tail(0.0), [seen(0, 1000)]),
    ("T6", "examples to rounding", tail(0.0), [[1 + 1e-14]]),
    (
        "T6",
        "examples beside a setting that is certified",
        tail(0.1, 0.0),
        [seen(0, 200), seen(0, 9)],
    ),
    ("C1", "once more than what holds always", calibrated(0.0), [seen(1, 50)]),
    ("C1", "not a number", calibrated(0.1), [np.full(200, NAN)]),
    ("C2", "no probability is claimed", calibrated(1.0), [[]]),
    ("C3", "too few trials refute no constant", calibrated(0.5, proved=0.2), [[9.0]]),
    (
        "C3",
        "a setting that claims nothing is passed over",
        calibrated(1.0, 0.5),
        [[], np.linspace(0, 1, 400)],
    ),
    ("E1", "off its target", mean(), [around(0, 0.1, 1000), around(1, 0.1, 1000)]),
    (
        "E1",
        "off by less than the precision",
        mean(),
        [around(0, 0.1, 1000), around(0.02, 0.01, 1000)],
    ),
    ("E1", "not a number", mean(), [[0.0, NAN], [0.0, 0.0]]),
    (
        "E1",
        "off its target, by betting",
        mean(0.5, (0, 1)),
        [half(), seen(0, 400, calm=0.1)],
    ),
    ("E1", "not a number, by betting", mean(0.5, (0, 1)), [half(), [0.5, NAN]]),
    ("E2", "inside", mean(), [around(0, 0.1, 1000), around(0.001, 0.1, 1000)]),
    ("E2", "inside, by betting", mean(0.5, (0, 1)), [around(0.5, 0.05, 1000)] * 2),
    ("E3", "too few trials", mean(), [around(0, 0.1, 20), around(0, 0.1, 1000)]),
    (
        "E3",
        "nothing is proved of the statistic",
        mean(variance=None),
        [around(5, 0.1, 1000)] * 2,
    ),
    ("E3", "too few trials, by betting", mean(0.5, (0, 1)), [half(20), half(20)]),
    ("L1", "another law", NORMAL, [law(2000), law(2000, shift=0.3)]),
    ("L1", "not a number", NORMAL, [law(2000), np.append(law(2000), NAN)]),
    ("L2", "the law", NORMAL, [law(1000), law(2000)]),
    ("L3", "few trials", NORMAL, [law(500), law(2000)]),
    (
        "R1",
        "a mean that is negative",
        rate(),
        [*power(-0.5, 0.1)[:4], -power(-0.5, 0.1)[4]],
    ),
    ("R1", "not a number", rate(), [*power(-0.5, 0.1)[:4], [1.0, NAN]]),
    ("R2", "another rate", rate(), power(-1.0, 0.1)),
    (
        "R2",
        "the rate, and half of it at the fifth size",
        rate(),
        [*power(-0.5, 0.1)[:4], power(-0.5, 0.1)[4] / 2],
    ),
    ("R3", "the rate", rate(), power(-0.5, 0.1)),
    ("R4", "much noise", rate(2.0), power(-0.45, 2.0)),
    ("R4", "nothing is proved of the statistic", rate(None), power(-1.0, 0.1)),
    ("X1", "too large at one setting", exact(2), [(-5.0, -4.0), (-2.0, -3.0)]),
    ("X1", "refuted goes before vacuous", exact(1), [(NAN, 0.0)]),
    ("X2", "a probability of 1 is claimed", exact(2), [(-5.0, 0.0), (-1.0, 2.0)]),
    ("X2", "the event cannot happen", exact(2), [(-math.inf, -2.0), (-1.0, 0.0)]),
    (
        "X3",
        "the event cannot happen, as is claimed",
        exact(1),
        [(-math.inf, -math.inf)],
    ),
    ("X3", "at most what is claimed", exact(2), [(-5.0, -4.0), (-3.0, -3.0)]),
    (
        "X3",
        "a setting that claims nothing is passed over",
        exact(2),
        [(-5.0, -4.0), (-1.0, 0.0)],
    ),
    ("Q1", "one violation", INEQUALITY, [[(0.5, 1.0)], [(0.5, 1.0), (1.1, 1.0)]]),
    ("Q1", "not a number", INEQUALITY, [[(0.5, 1.0)], [(NAN, 1.0)]]),
    ("Q2", "no violation", INEQUALITY, [[(0.5, 1.0)], [(1 + 1e-13, 1.0), (-3.0, 0.0)]]),
    ("P1", "more than what is claimed", rare(-38.0, -42.0), [half(), half()]),
    ("P1", "not a number", rare(-38.0), [np.append(half(), NAN)]),
    ("P1", "refuted goes before vacuous", rare(0.0), [np.append(half(), NAN)]),
    (
        "P2",
        "a probability of 1 is claimed, vacuous goes before certified",
        rare(0.0, 1.0),
        [half(), half()],
    ),
    ("P3", "less than what is claimed", rare(-38.0, -40.1), [half(), half()]),
    (
        "P3",
        "less than what is claimed beside a setting that claims nothing",
        rare(0.0, -38.0),
        [half(), half()],
    ),
    ("P4", "between the limits", rare(-38.0, -40.7), [half(), half()]),
]


@pytest.mark.parametrize(
    ("row", "name", "form", "samples"),
    CASES,
    ids=[f"{case[0]}: {case[1]}" for case in CASES],
)
def test_a_case_meets_its_row_and_gets_its_verdict(row, name, form, samples):
    for rule in RULES:
        verdict, found = judged(form, samples, rule)
        assert (found.id, verdict.status) == (row, ROWS[row].verdict), (rule, verdict)
    if isinstance(form.statement, TOGETHER):
        verdict, found = judged(form, samples, "sequential", look=1)
        assert (found.id, verdict.status) == (row, ROWS[row].verdict), verdict


def test_what_no_computation_decides_is_not_testable_and_says_why():
    form = Form(Undecided("it speaks of all maps"), (), "not testable")
    verdict = judge.judge(form, [], ALPHA, rule="sequential")
    assert (verdict.status, verdict.because, verdict.evidence) == (
        ROWS["U1"].verdict,
        form.statement.reason,
        (),
    )
    claim = dataclasses.replace(toys.CLAIM, printed=form, corrected=None, controls=())
    (result,) = run([claim], profile=draws.QUICK, seed=0)
    assert result.as_expected and result.printed.status == "not testable"


def test_every_row_has_a_case_and_every_case_a_row():
    assert set(ROWS) == {case[0] for case in CASES} | {"U1", "B1", "B2", "N1", "N2"}
    assert len(table("The decision table")) == len(ROWS)  # no id twice


def test_the_table_has_what_the_judge_says_that_a_class_can_become():
    by_page = {(row.cls, row.verdict) for row in ROWS.values() if row.cls != "any"}
    by_judge = {("Undecided", "not testable")}
    _, _, body, _ = re.split(r"^=+ =+ =+ =+\n", judge.__doc__, flags=re.MULTILINE)
    for line in body.splitlines():
        cls, held, *otherwise = re.findall(r"\w+", line)
        by_judge |= {(cls, "refuted"), (cls, held)} | {
            (cls, word) for word in otherwise if word in terminal.COLOURS
        }
    assert by_page == by_judge
    classes = {
        cells[0].strip("`") for cells in table("What is claimed, and what decides it")
    }
    assert (
        classes
        == {cls for cls, _ in by_page}
        == {cls.__name__ for cls in get_args(Statement)}
    )


def test_ball_arithmetic_proves_disproves_and_says_where_it_contradicts():
    def verdict_of(form, samples, holds):
        form = dataclasses.replace(
            form, enclosed=lambda: Enclosed(holds, 20, "at one place")
        )
        return enclosed(form, judge.judge(form, samples, ALPHA))

    pytest.importorskip("flint")
    held, broken = [[(0.5, 1.0)]] * 2, [[(0.5, 1.0)], [(1.1, 1.0)]]
    assert verdict_of(INEQUALITY, held, True).status == ROWS["B2"].verdict
    assert verdict_of(INEQUALITY, held, False).status == ROWS["B1"].verdict
    for samples, holds in ((held, True), (broken, False)):
        told = verdict_of(INEQUALITY, samples, holds)
        assert told.facts["digits"] == 20 and "contradicts" not in told.because
    for samples, holds in ((held, False), (broken, True)):
        contradicted = verdict_of(INEQUALITY, samples, holds)
        assert (
            contradicted.status == "refuted" and "contradicts" in contradicted.because
        )
    assert verdict_of(exact(1), [(-5.0, -4.0)], True).status == "certified"


def test_the_verdicts_are_the_eight_and_rows_are_in_the_order_of_precedence():
    eight = [cells[0].strip("`") for cells in table("The eight verdicts")]
    assert len(eight) == 8 and set(eight) == set(terminal.COLOURS) == {
        row.verdict for row in ROWS.values()
    }
    for _, rows in itertools.groupby(ROWS.values(), key=lambda row: row.cls):
        places = [ORDER.index(row.verdict) for row in rows if row.verdict in ORDER]
        assert places == sorted(places)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("other", [(0.1, 0), (0.1, 5), (0.0, 0), (2.0, 0)], ids=str)
def test_the_table_and_the_judge_agree_on_every_count(rule, other):
    """Every number of violations among 60 at delta = 0.3, beside a second setting."""
    delta, violations = other
    form, beside = tail(0.3, delta), seen(violations, 0 if delta >= 1 else 160)
    met = set()
    for count in range(61):
        verdict, row = judged(form, [seen(count, 60), beside], rule)
        assert verdict.status == row.verdict
        met.add(row.id)
    assert met == {"T1", "T5"} | (
        {"T6"} if delta == 0 else {"T4"} if violations == 0 else set()
    )


GRIDS = {
    "Calibrated": [
        (calibrated(delta, proved=proved), [np.linspace(0, 1, trials)])
        for delta in (0.0, 0.1, 0.5)
        for proved in (0.2, 0.45, 0.9, 1.0)
        for trials in (5, 60, 400)
    ],
    "Expectation": [
        (
            mean(0.5, between, 0.1),
            [np.clip(around(0.5 + shift, spread, trials), 0, 1)] * 2,
        )
        for between in (None, (0, 1))
        for shift in (0.0, 0.02, 0.2)
        for spread in (0.01, 0.3)
        for trials in (20, 1000)
    ],
    "Law": [
        (NORMAL, [law(n, shift)] * 2)
        for n in (30, 500, 1000, 5000)
        for shift in (0.0, 0.05, 0.1, 0.3)
    ],
    "Rate": [
        (rate(s), power(e, s))
        for e in (-1.0, -0.65, -0.55, -0.5)
        for s in (0.01, 0.2, 0.5, 3.0)
    ],
    "Rare": [
        (rare(c), [half(n)])
        for c in (0.0, -38.0, -40.0, -40.5, -40.8, -42.0)
        for n in (10, 400)
    ],
}


@pytest.mark.parametrize("cls", GRIDS)
def test_the_table_and_the_judge_agree_on_a_grid(cls):
    """Verdicts change along the grid: all rows of the class are met but those that other tests are for."""
    met = set()
    for form, samples in GRIDS[cls]:
        for rule, look in (("fixed", 0), ("sequential", 0), ("sequential", 3)):
            verdict, row = judged(form, samples, rule, look)
            assert verdict.status == row.verdict, (form.statement, verdict)
            met.add(row.id)
    assert met == {row.id for row in ROWS.values() if row.cls == cls} - {"C2", "R1"}


def test_rows_of_a_users_own_data():
    """That a run gives these verdicts is asserted in test_draws.py."""
    for row, verdict in (("N1", "not testable"), ("N2", "consistent")):
        assert (ROWS[row].cls, ROWS[row].where) == ("any", "with `--data`")
        assert ROWS[row].verdict == verdict


def test_the_numbers_of_the_profiles_are_those_of_the_code():
    by_name = {cells[0]: cells[1:] for cells in table("Numbers of trials")}
    for column, profile in enumerate((draws.QUICK, draws.FULL)):
        shown = {name: cells[column] for name, cells in by_name.items()}
        assert (
            shown["most trials a setting, `Tail`, `Calibrated`, `Rate`"]
            == f"{profile.max_trials:,}"
        )
        assert (
            shown["the same in a control, `Tail`, `Calibrated`"]
            == f"{profile.max_control:,}"
        )
        assert shown["times as many for what must be refuted, at most"] == str(
            2**profile.doublings
        )
        for cls, form in (
            ("`Expectation`, `Law`", mean()),
            ("`Expectation`, `Law`", NORMAL),
            ("`Rare`", rare(-40.0)),
        ):
            assert {shown[f"trials a setting, {cls}"]} == {
                f"{count:,}" for count in profile.trials(form, ALPHA)
            }
        assert (
            shown["`consistent` where `certified` is expected"] == "accepted"
        ) == profile.lenient


def test_constants_on_the_page_are_those_of_the_code():
    assert f"the family-wise rate {FAMILY_ALPHA:g}," in WORDS
    assert f"looked at after every {judge.LOOK} trials" in WORDS
    assert f"{Law(no_trial, no_trial).width:g} where nothing else is said" in WORDS
    assert judge.ROUNDING == 1e4 and "`rounding` is $10^4$ times" in WORDS
    assert f"Beyond {populations.MOST_ROWS:,} rows" in WORDS
    assert f"`{checkpoint.MANIFEST}` and `{checkpoint.CHECKPOINT}`" in WORDS
    known = {
        usage.AS_EXPECTED,
        usage.NOT_AS_EXPECTED,
        usage.BAD_USAGE,
        usage.NOT_WRITTEN,
        usage.INTERRUPTED,
    }
    assert [int(cells[0]) for cells in table("Exit status")] == sorted(known)


def test_examples_on_the_page_are_what_the_rule_computes():
    delta, level = 0.05, 1e-6
    most = stopping.trials_needed(delta, level, block=judge.LOOK)
    looks = range(judge.LOOK, most + 1, judge.LOOK)
    mean_trials = stopping.stopping_law(delta / 4, delta, level, looks).expected_trials
    assert (
        f"level $10^{{-6}}$ it is {most:,}; a bound that is violated at a quarter of its rate"
        in WORDS
    )
    assert f"certified after {mean_trials:.0f} on" in WORDS
    for profile, words in (
        (
            draws.QUICK,
            "certify $\\delta={}$ at best, and see a bound that claims 0.05 fail when its true rate is {};",
        ),
        (draws.FULL, "of the full profile $\\delta={}$, and a rate of {}."),
    ):
        smallest = float(sequential.binomial_limits(0, profile.max_trials, level)[1])
        rate = stopping.detectable_rate(profile.max_trials, delta, level)
        rounded = [
            f"{math.ceil(x * 10**digits) / 10**digits:.{digits}f}"
            for x, digits in (
                (smallest, 3 if smallest > 0.01 else 5),
                (rate, 2 if rate > 0.1 else 3),
            )
        ]
        assert (
            f"the {profile.max_trials:,} " in WORDS and words.format(*rounded) in WORDS
        )
