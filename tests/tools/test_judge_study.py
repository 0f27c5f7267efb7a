"""The judge, judged: 20,000 simulated runs at the edge of a claim and beyond it, for every rule that may refute.

A rule with a right error rate fails one of these simulated checks with probability at most FALSE_ALARM; there are 60
of them, so 6e-4 in all, and the seeds are fixed. With 20,000 runs a rule declared at 0.01 that errs at 0.0152 would
be found with probability 0.99.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from jaxkern.bounds import Bound
from proofs_check.claim import Form, Setting, Tail
from proofs_check.engine import limits
from proofs_check.engine.judge import judge
from tools import judge_study
from tools.judge_study import ALPHA, BAD, BETA, DELTAS, EDGE, RUNS

FALSE_ALARM = 1e-5


def at_most(count, declared, runs=RUNS):
    """Tell whether `count` of `runs` errors are compatible with a declared rate."""
    return limits.binomial_limits(count, runs, FALSE_ALARM)[0] <= declared


def at_least(count, declared, runs=RUNS):
    return limits.binomial_limits(count, runs, FALSE_ALARM)[1] >= declared


def refutes(delta, violations, trials):
    """Return what the judge of the package says of so many violations."""

    def never(key, population, numbers):
        raise AssertionError("the judge runs no trial")

    tail = Tail(never, lambda setting: Bound(1.0, 1 - delta, True, "toy:1"))
    form = Form(tail, (Setting("here"),), "certified")
    return (
        judge(form, [np.where(np.arange(trials) < violations, 2.0, 0.5)], ALPHA).status
        == "refuted"
    )


def test_these_checks_have_the_power_they_state():
    assert limits.detectable(RUNS, ALPHA, FALSE_ALARM) < 0.0152


@pytest.mark.parametrize("delta", DELTAS)
def test_the_fixed_rule_of_the_study_is_that_of_the_judge(delta):
    rule = judge_study.fixed_rule(delta)
    trials, first = int(rule.looks[0]), int(rule.refuted[0])
    assert refutes(delta, first, trials) and not refutes(delta, first - 1, trials)
    assert stats.binom.sf(first - 1, trials, delta) <= ALPHA
    assert stats.binom.sf(first - 1, trials, BAD * delta) >= 1 - BETA


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("name", ["fixed", "sequential"])
def test_at_the_edge_false_refutations_are_as_rare_as_declared_and_beyond_it_they_are_found(
    name, delta
):
    rng = np.random.default_rng([20200, round(1 / delta), len(name)])
    looks = judge_study.looks_of(delta)
    rule = (
        judge_study.fixed_rule(delta)
        if name == "fixed"
        else judge_study.sequential_rule(delta, looks)
    )
    edge = judge_study.simulate(rng, delta, rule)
    assert at_most(edge.refuted, ALPHA) and at_most(edge.certified, ALPHA)
    assert edge.refuted > 0  # a rule that never refutes would pass, too
    beyond = judge_study.simulate(rng, BAD * delta, rule)
    assert at_least(beyond.refuted, 1 - BETA)
    assert beyond.mean_trials <= rule.looks[-1] * (1 if name == "fixed" else 0.5)


@pytest.mark.parametrize("delta", DELTAS)
def test_control_peeking_at_the_limits_of_a_fixed_number_of_trials_is_caught(delta):
    rng = np.random.default_rng([20201, round(1 / delta)])
    rule = judge_study.peeked_rule(delta, judge_study.looks_of(delta))
    assert not at_most(judge_study.simulate(rng, delta, rule).refuted, ALPHA)


def test_control_the_naive_rule_fails_true_bounds_and_passes_false_ones():
    rule = judge_study.naive_rule(0.2, 100)
    fails_a_tight_bound, passes_a_false_one = (
        stats.binom.sf(20, 100, 0.2),
        stats.binom.cdf(20, 100, 0.25),
    )
    assert (
        round(fails_a_tight_bound, 2) == 0.44 and round(passes_a_false_one, 2) == 0.15
    )
    np.testing.assert_allclose(
        rule.law(0.2).refuted.sum(), fails_a_tight_bound, rtol=1e-12
    )
    np.testing.assert_allclose(
        rule.law(0.25).certified.sum(), passes_a_false_one, rtol=1e-12
    )
    assert not at_most(
        judge_study.simulate(np.random.default_rng(20202), 0.2, rule).refuted, ALPHA
    )


@pytest.mark.parametrize(
    "edge", judge_study.edges(), ids=lambda edge: f"{edge.kind}-{edge.law}"
)
def test_every_kind_of_statement_errs_at_its_edge_as_rarely_as_declared(edge):
    runs = (
        20 if "`" in edge.kind or edge.kind == "Rare" else 100
    )  # limits by bisection are slow
    refuted, certified = edge.count(np.random.default_rng(20206), runs)
    assert at_most(refuted, EDGE, runs) and at_most(certified, EDGE, runs)
    if (edge.kind, edge.law) == (
        "Expectation, `moment`",
        "normal",
    ):  # control: a variance that is not proved
        wrong = dataclasses.replace(edge.true, moment=lambda setting: 0.01)
        assert not at_most(
            dataclasses.replace(edge, true=wrong).count(np.random.default_rng(0), runs)[
                0
            ],
            EDGE,
            runs,
        )


@pytest.mark.parametrize("name", ["sequential", "peeked"])
def test_simulated_runs_end_as_their_exact_law_says(name):
    """Two independent computations; the mean is allowed five of its standard errors."""
    delta, looks = 0.1, np.arange(5, 400, 5)
    rule = (
        judge_study.sequential_rule if name == "sequential" else judge_study.peeked_rule
    )(delta, looks)
    found, law = (
        judge_study.simulate(np.random.default_rng(20203), 1.3 * delta, rule),
        rule.law(1.3 * delta),
    )
    for count, exact in (
        (found.refuted, law.refuted.sum()),
        (found.certified, law.certified.sum()),
    ):
        low, high = limits.binomial_limits(count, RUNS, FALSE_ALARM / 2)
        assert low <= exact <= high
    np.testing.assert_allclose(found.mean_trials, law.expected_trials, rtol=0.02)


def test_a_table_of_the_study_is_made():
    fixed, by_evidence, peeked, proportion = judge_study.rows((0.5,), runs=200)
    assert len(fixed) == len(proportion) == len(judge_study.COLUMNS)
    assert float(by_evidence[5].rstrip("%")) <= 1 < float(peeked[5].rstrip("%"))


def test_the_command_prints_markdown_and_draws_the_same_figure_every_time(
    tmp_path, monkeypatch, capsys
):
    pytest.importorskip("matplotlib")
    asked = []
    monkeypatch.setattr(judge_study, "kinds", lambda **options: [["Tail"] * 7])
    monkeypatch.setattr(
        judge_study,
        "rows",
        lambda **options: asked.append(options) or [("0.5", "fixed", *"12345678")],
    )
    for name in ("a.svg", "b.svg"):
        judge_study.main(
            ["--runs", "30", "--seed", "4", "--figure", str(tmp_path / name)]
        )
    assert asked == [{"runs": 30, "seed": 4}] * 2
    lines = capsys.readouterr().out.splitlines()[:3]
    assert [line.count("|") for line in lines] == [len(judge_study.COLUMNS) + 1] * 3
    assert lines[2].startswith("| 0.5 | fixed | 1 |")
    text = (tmp_path / "a.svg").read_text()
    assert (
        text == (tmp_path / "b.svg").read_text()
        and "claimed: at most 0.2" in text
        and "<dc:date>" not in text
    )


def test_the_figure_shows_power_levels_and_sizes():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, (power, peeking, sizes) = pyplot.subplots(1, 3)
    judge_study._draw_power(power, 0.2)
    judge_study._draw_peeking(peeking, 0.1)
    judge_study._draw_sizes(sizes, 0.1)
    curves = {
        line.get_label().split(",")[0]: line.get_data()
        for line in power.lines
        if "," in line.get_label()
    }
    assert set(curves) == {"proportion", "fixed", "sequential"}
    for name, (rates, refuted) in curves.items():
        assert np.all(np.diff(refuted) > -1e-12)
        at_the_edge, beyond = np.interp([0.2, 0.3], rates, refuted)
        assert beyond >= 1 - BETA - 1e-3 or name == "proportion"
        assert at_the_edge > 0.4 if name == "proportion" else at_the_edge <= ALPHA
    ends = {line.get_label(): line.get_ydata()[-1] for line in peeking.lines}
    assert ends["sequential"] <= ends["declared"] == ALPHA < ends["fixed, peeked at"]
    means, most = (
        [
            line.get_ydata()
            for line in sizes.lines
            if line.get_linestyle() == style and len(line.get_xdata()) > 2
        ]
        for style in ("-", ":")
    )
    assert len(means) == len(most) == 2
    for mean, highest in zip(means, most, strict=True):
        assert np.all(np.asarray(mean) <= highest)
    fixed = judge_study.fixed_rule(0.1).looks[0]
    assert (
        means[0][0] < fixed and means[1][-1] < fixed
    )  # what is far from the edge is decided sooner
    pyplot.close(figure)


def test_the_page_shows_the_exact_numbers_that_the_study_computes():
    page = Path(__file__).resolve().parents[2] / "docs" / "judge_study.md"
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in page.read_text(encoding="utf-8").splitlines()
    ]
    shown = {
        tuple(cells[:2]): cells
        for cells in lines
        if len(cells) == len(judge_study.COLUMNS)
    }
    exact = [
        i for i, name in enumerate(judge_study.COLUMNS) if name in ("trials", "exact")
    ]
    for cells in judge_study.rows((0.5, 0.1, 0.01), runs=2):
        assert [shown[cells[:2]][i] for i in exact] == [cells[i] for i in exact]
    measured = [cells for cells in lines if len(cells) == len(judge_study.KINDS)][2:]
    assert [tuple(cells[:2]) for cells in measured] == [
        (edge.kind, edge.law) for edge in judge_study.edges()
    ]
    for _, _, runs, refuted, _, certified, _ in (
        [cell.replace(",", "") for cell in cells] for cells in measured
    ):
        assert all(
            at_most(int(count), EDGE, int(runs))
            for count in (refuted, certified.replace("-", "0"))
        )
