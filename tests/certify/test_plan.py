"""How the time of a certificate is spent, and what it recommends, on stand-ins whose errors and times are known.

The error of a map of size s is eps sqrt(need / s), so that it fails below `need` and never from there on; a trial takes
a time that grows with the square of its rows, by a clock that nothing else moves.
"""

import dataclasses
import math
import re
import types
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern.kernels import Gaussian
from proofs_check.certify import (
    Certificate,
    Request,
    _clock,
    _entries,
    _errors,
    _plan,
    _trials,
    _work,
    from_array,
)
from proofs_check.certify._certify import _goal
from proofs_check.certify._clock import Clock
from proofs_check.certify._document import (
    guarantee,
    lines_of_python,
    reasons,
    seed_of,
)
from proofs_check.certify._entries import Entry, cheapest
from proofs_check.certify._maps import families, limited
from proofs_check.certify._model import Demand, Family, Rounding
from proofs_check.certify._precision import trials_for
from proofs_check.cli.command import main

EPS, DELTA, CONFIDENCE = 0.1, 0.2, 0.9
REQUEST = Request(eps=EPS, delta=DELTA, confidence=CONFIDENCE)


def family(name, largest=1000):
    return Family(
        name=name,
        unit="num_frequencies",
        sizes=lambda size: {"num_frequencies": size},
        num_features=lambda size: 2 * size,
        num_points=lambda size: 0,
        draw=None,
        python=None,
        largest=largest,
    )


class Trials:
    """Trials of maps that need `needs[name]` frequencies, or a function of the rows of a trial."""

    is_prepared = True

    def __init__(self, rows, needs, *, seconds=1e-4, goal="spectral", refused=()):
        self.table = types.SimpleNamespace(rows=rows, dim=3)
        self.goal = types.SimpleNamespace(
            name=goal, refuses=lambda name: "it has none" if name in refused else ""
        )
        self.needs, self.seconds, self.now, self.asked, self.dtype = (
            needs,
            seconds,
            0.0,
            [],
            "float32",
        )

    def clock(self):
        return self.now

    def takes(self, rows):
        return self.seconds * (rows / 1000) ** 2

    def look(self, count):
        self.now += self.takes(count)

    def trial(self, family, sample, attempt=0):
        rows = self.table.rows if sample is None else sample
        need = self.needs[family.name]
        need = need(rows) if callable(need) else need

        def error(size, stage, number):
            self.asked.append((family.name, sample, attempt, size, stage, number))
            self.now += self.takes(rows)
            return EPS * math.sqrt(need / size)

        return error


@pytest.fixture
def find(monkeypatch):
    """Return the plan, on the clock of the trials."""

    def call(trials, families=None, demands=(), *, seconds=1e4):
        for module in (_clock, _plan):
            monkeypatch.setattr(
                module, "time", types.SimpleNamespace(monotonic=trials.clock)
            )
        families = (
            {name: family(name) for name in trials.needs}
            if families is None
            else families
        )
        found = _plan.Hunt(
            trials, families, demands, REQUEST, Clock(seconds), [].append
        ).found()
        assert [entry.family.name for entry in found.entries] == list(families)
        # No draw comes twice, and the levels of all searches together leave the confidence.
        assert len(set(trials.asked)) == len(trials.asked)
        assert (
            sum(entry.outcome.alpha for entry in found.entries if entry.outcome)
            <= 1 - CONFIDENCE + 1e-12
        )
        assert trials.now <= seconds + trials.takes(
            trials.table.rows
        )  # a draw that has begun is not cut short
        return found

    return call


def named(found):
    return {entry.family.name: entry for entry in found.entries}


def near(size, need):
    """Tell whether a size is the smallest of the grid that does not fail, or one a few steps above."""
    return need <= size <= 2 * need


def test_few_rows_are_looked_at_as_a_whole(find):
    found = find(Trials(500, {"a": 30, "b": 60, "c": 1}, refused=("c",)))
    for name, need in (("a", 30), ("b", 60)):
        entry = named(found)[name]
        assert (
            entry.status == "certified"
            and entry.for_all_rows
            and entry.basis == "draws"
            and near(entry.size, need)
        )
        assert entry.words.startswith("0 of ") and entry.words.endswith(
            "fresh draws failed"
        )
    refused = named(found)["c"]
    assert (refused.status, refused.words, refused.size) == (
        "not for this goal",
        "it has none",
        None,
    )
    assert found.finished and found.done == 2


@pytest.mark.parametrize(
    ("rows", "sure", "samples"),
    [
        (8_000, _plan.SURE, (2_000, None)),
        (100_000, _plan.SURE, (1_250, 20_000)),
        (100_000, 0, (1_250, 5_000, 20_000)),
    ],
)
def test_the_cheapest_map_is_tried_again_on_more_rows_up_to_all(
    rows, sure, samples, find, monkeypatch
):
    """In steps of four times as many where the last one may not end."""
    monkeypatch.setattr(_plan, "SURE", sure)
    trials = Trials(rows, {"a": 30, "b": 60})
    found = find(trials)
    a, b = named(found)["a"], named(found)["b"]
    assert found.finished and a.sample == samples[-1] and b.sample == samples[0]
    assert near(a.size, 30) and near(b.size, 60)
    # What was drawn on fewer rows is kept.
    assert sum(probe.draws for probe in a.probes) > sum(
        probe.draws for probe in a.outcome.probes
    )
    order = list(dict.fromkeys((name, sample) for name, sample, *_ in trials.asked))
    assert order == [
        ("a", samples[0]),
        ("b", samples[0]),
        *(("a", sample) for sample in samples[1:]),
    ]


@pytest.mark.parametrize(("rows", "share"), [(500, 1), (100_000, _plan.FIRST_LEVEL)])
def test_most_of_the_error_is_left_for_more_rows_where_there_are_more(
    rows, share, find
):
    found = find(Trials(rows, {"a": 10_000, "b": 10_000}))
    expected = (1 - CONFIDENCE) * share / 2 * (1 - _plan.LEVELS[-1])
    assert [entry.outcome.alpha for entry in found.entries] == pytest.approx(
        [expected] * 2
    )


def test_a_map_that_fails_on_more_rows_keeps_what_it_has_and_the_next_one_is_tried(
    find,
):
    trials = Trials(8_000, {"a": lambda rows: 30 if rows < 8_000 else 10_000, "b": 60})
    a, b = find(trials).entries
    assert a.status == "certified" and a.sample == 2_000 and near(a.size, 30)
    assert any(name == "a" and sample is None for name, sample, *_ in trials.asked)
    assert b.for_all_rows and near(b.size, 60)


@pytest.mark.parametrize(("need", "stated"), [(60, 80), (60, 70)])
def test_a_statement_about_a_cheaper_map_ends_the_search_on_more_rows(
    need, stated, find
):
    """It holds for all rows, and takes less time than what draws certify of b."""
    trials = Trials(100_000, {"a": need, "b": 200})
    demands = [
        Demand("a", "a theorem", "all is well", 500),
        Demand("a", "a lemma", "all is well", stated, False),
    ]
    found = find(trials, demands=demands)
    assert named(found)["b"].sample == 1_250 and found.finished
    assert {sample for name, sample, *_ in trials.asked if name == "b"} == {1_250}
    assert [asked[4] for asked in trials.asked][: _plan.MEASURED_DRAWS] == [
        "measured"
    ] * _plan.MEASURED_DRAWS
    one = found.stated["a"]
    assert (one.size, one.basis, one.sample) == (stated, "this data", None)
    assert cheapest([*found.entries, one], 3) is one
    assert max(size for name, _, _, size, *_ in trials.asked if name == "a") == stated


def test_a_statement_whose_draws_fail_certifies_nothing(find):
    demands = [Demand("a", "a lemma", "all is well", 40, False)]
    found = find(Trials(100_000, {"a": 10_000, "b": 60}), demands=demands)
    stated = named(found)["a"]
    assert (stated.size, stated.basis, stated.status, stated.demand) == (
        None,
        None,
        "not certified",
        None,
    )
    assert stated.words.startswith(
        "a lemma, which is about exact numbers, gives num_frequencies 40, but 8 of 8 draw"
    )
    assert stated.words.endswith(
        "in float32 failed; even num_frequencies 40 fails too often"
    )
    assert (
        stated.probes[-1].failures == _plan.MEASURED_DRAWS
        and not stated.probes[-1].certifying
    )
    assert not found.stated and named(found)["b"].sample == 20_000


def test_a_statement_beyond_the_sizes_of_trials_is_told(find):
    demands = [Demand("a", "a theorem", "all is well", 5000)]
    (entry,) = find(Trials(500, {"a": 10_000}), demands=demands).entries
    assert (
        entry.size is None
        and entry.status == "not certified"
        and entry.probes[-1].size == 1000
    )
    asked = "a theorem asks for 5,000, more than the 1,000 that may be tried"
    assert entry.words == f"even num_frequencies 1,000 fails too often; {asked}"
    assert _entries.by_a_statement(entry) is None
    assert _entries.by_a_statement(Entry(family("b"), "out of time", "")) is None


def test_a_map_with_too_many_features_is_not_tried(find):
    few = {"a": limited(family("a"), 1), "b": limited(family("b"), 90)}
    trials = Trials(500, {"a": 1, "b": 60})
    a, b = find(trials, few).entries
    assert (a.status, a.size) == ("not certified", None) and "more than" in a.words
    assert few["b"].largest == 45 == max(asked[3] for asked in trials.asked)
    assert b.words == "even num_frequencies 45 fails too often" and {
        asked[0] for asked in trials.asked
    } == {"b"}


@pytest.mark.parametrize("need", [1, 10_000])
def test_where_the_time_ends_entries_say_so_and_statements_were_measured_before(
    need, find
):
    trials = Trials(500, {"a": need, "b": need}, seconds=40.0)  # 10 s a draw
    found = find(
        trials, demands=[Demand("a", "a theorem", "all is well", 100)], seconds=180.0
    )
    a, b = found.entries
    assert (b.status, b.size) == ("out of time", None) and b.words.startswith(
        "the time ended before "
    )
    assert (
        not found.finished
        and found.done == (1 if need == 1 else 2)
        and found.steps == 3
        and found.seconds_more > 60
    )
    if need == 1:
        assert (
            a.size == 100
            and a.basis == "worst case"
            and a.words.startswith("by a theorem; the time ended")
        )
    else:
        assert a.size is None and a.words.startswith(
            "a theorem, which is about exact numbers, gives"
        )


def test_what_is_done_is_a_prefix_of_one_order_whatever_a_draw_takes(find):
    """On machines of several speeds, all of them held up at times, of which three have too little time."""

    class HeldUp(Trials):
        def takes(self, rows):
            return super().takes(rows) * (10 if len(self.asked) % 7 == 0 else 1)

    needs = {"a": lambda rows: 30 + rows // 1000, "b": 60, "c": 10_000, "d": 45}
    demands = [Demand("b", "a theorem", "all is well", 70)]
    whole = Trials(8_000, needs)
    found = find(whole, demands=demands)
    assert found.finished
    for seconds, limit in (
        (1e-2, 1e6),
        (1e-5, 1e3),
        (1e-2, 60.0),
        (1e-2, 30.0),
        (1e-3, 1.0),
    ):
        other = HeldUp(8_000, needs, seconds=seconds)
        again = find(other, demands=demands, seconds=limit)
        assert whole.asked[: len(other.asked)] == other.asked
        assert again.finished == (len(whole.asked) == len(other.asked)) == (limit > 100)
        if again.finished:
            told = [
                [(e.status, e.words, e.size, e.sample) for e in one.entries]
                for one in (found, again)
            ]
            assert told[0] == told[1] and cheapest_of(found) == cheapest_of(again)


def cheapest_of(found):
    best = cheapest([*(e for e in found.entries if e.size), *found.stated.values()], 3)
    return best.family.name, best.size, best.sample


def entry(name, size, *, sample=None, basis="draws", demand=None, probes=()):
    return Entry(
        family(name), "certified", "", size, basis, sample, None, probes, demand
    )


def test_all_rows_go_before_samples_and_then_the_cheapest_map_wins():
    a, b, c = entry("a", 10, sample=1000), entry("b", 20), entry("c", 25)
    assert cheapest([a, c, b], 3) is b and cheapest([a], 3) is a
    assert cheapest([a, entry("b", 40, sample=4000)], 3).sample == 4000
    # A tenth more is a tie, which the fewest features decide.
    few = dataclasses.replace(
        c, family=dataclasses.replace(c.family, num_features=lambda size: 5)
    )
    assert cheapest([b, few], 3) is b
    assert cheapest([b, dataclasses.replace(few, size=22)], 3).family is few.family


def test_time_per_point_grows_with_the_size_and_little_is_no_less_than_the_exact_kernel():
    for one in families(500, 10, EPS).values():
        costs = [
            _work.seconds_per_million(one, size, 10) for size in (1, 2, 5, 20, 100)
        ]
        assert costs == sorted(set(costs)) and costs[0] > 0
    nystrom = families(500, 10, EPS)["nystrom"]
    assert _work.seconds_per_million(nystrom, 500, 10) > _work.exact_per_million(
        500, 10
    )


def test_a_guarantee_says_what_it_rests_on():
    def promised(entry, goal="distance", wide=False):
        asked, table = (
            types.SimpleNamespace(name=goal, words="a number"),
            from_array(np.eye(3), standardize=wide),
        )
        trials, rounding = (
            _trials.Trials(None, table, None, asked, "float32"),
            Rounding(pairs=0.02, closest=1e-3),
        )
        return guarantee(REQUEST, trials, entry, rounding)

    theorem = Demand("a", "a theorem", "", 50)
    data = promised(entry("a", 50, basis="worst case", demand=theorem))
    assert (
        "the kernel of the rows as they were read; what float32 rounds of them and of the map is part of it."
        in data
    )
    assert (
        "Rounding may take 0.02 of it, and the rest is by a theorem, for every table of this kind. Pairs "
        in data
    )
    data = promised(entry("a", 50, basis="this data", demand=theorem), "spectral", True)
    assert "for all rows of this table" in data and data.endswith("Source: a theorem.")
    assert "as they were read, standardised in float64;" in data
    whole = dataclasses.replace(entry("a", 3), family=families(3, 3, EPS)["nystrom"])
    assert promised(whole).startswith(
        "All rows are landmarks and nothing is drawn, so that the map is deterministic: for"
    )
    part = promised(dataclasses.replace(whole, sample=2), "spectral")
    assert (
        "deterministic. With probability at least 0.8 over the draw of a sample of 2 rows"
        in part
    )
    assert promised(entry("a", 10)).endswith(
        "Shown by fresh draws, with confidence 0.9."
    )
    assert promised(entry("a", 10, sample=1000), "spectral").endswith(
        "weaker than a guarantee for all rows."
    )


@pytest.mark.parametrize("rows", [3, 300])
@pytest.mark.parametrize("sample", [1000, 8192])
@pytest.mark.parametrize("delta", [0.05, 0.01, 1e-7])
def test_a_guarantee_for_samples_is_rounded_to_the_safe_side(rows, sample, delta):
    asked = types.SimpleNamespace(name="distance", words="a number")
    trials = _trials.Trials(None, from_array(np.eye(rows)), None, asked, "float32")
    request = dataclasses.replace(REQUEST, delta=delta)
    text = guarantee(request, trials, entry("a", 10, sample=sample))
    said = re.findall(r"at least (?:1 - )?(\S+) over the (?:draw|map)", text)
    over_both, over_the_map = (
        Fraction(number) if "e-" in number else 1 - Fraction(number) for number in said
    )
    assert over_both == Fraction(str(delta))
    assert 1 <= over_the_map / (Fraction(delta) / Fraction(99, 100)) < 1.001
    # A pair of draws from N rows is a bad pair with probability q (1 - 1 / N); sample / 2 of them are independent.
    share = Fraction(re.search(r"at most (\S+) % of all pairs", text)[1]) / 100
    bad = float(share * (1 - Fraction(1, rows)))
    missed = math.exp(sample // 2 * math.log1p(-bad))
    assert 0.0095 < missed <= 0.01


def test_reasons_compare_times_features_and_what_is_certified():
    asked = types.SimpleNamespace(table=types.SimpleNamespace(rows=39, dim=3))
    best = entry("b", 20, demand=Demand("b", "a theorem", "", 80))
    others = [
        entry("a", 10, sample=1000),
        entry("c", 25),
        Entry(family("d"), "out of time", ""),
    ]
    found = reasons(REQUEST, asked, best, [*others, best])
    assert found == [
        "b has 40 features: 0.122 reference seconds for a million points.",
        "That is no fewer than the 39 rows of the table: the exact kernel has no error, and takes 1 times the time.",
        "a with 20 features is certified for samples of 1,000 rows only, and 2 times as fast.",
        "c with 50 features takes 1.2 times as long.",
        "The draws certify num_frequencies 20, 4 times fewer than a theorem asks.",
    ]
    asked.table.rows = 41
    alone = reasons(REQUEST, asked, entry("b", 20), [entry("a", 30, sample=1000)])
    assert alone[1] == "a with 60 features is certified for samples of 1,000 rows only."
    assert (
        alone[2]
        == "No statement gives a size of b for this goal on these data: draws alone certify it."
    )
    assert (
        len(
            reasons(
                REQUEST,
                asked,
                entry("b", 20, basis="worst case", demand=best.demand),
                [],
            )
        )
        == 1
    )
    few = dataclasses.replace(REQUEST, features_at_most=7)
    assert reasons(few, asked, None, others[2:]) == [
        "No map with more than 7 features was tried.",
        "d: .",
    ]


def test_a_certificate_without_a_map_has_none_to_draw():
    empty = Certificate({"eps": EPS}, None, None, jax.random.key(0))
    assert empty.eps == EPS
    with pytest.raises(AttributeError, match="guarantee"):
        empty.guarantee  # noqa: B018, it is looked up
    for call in (empty.draw, lambda: empty.fails(jax.random.key(1))):
        with pytest.raises(
            ValueError, match="no map was certified, so there is none to draw"
        ):
            call()


class Close:
    """A goal of the name of the distances, with so many pairs that rounding may change."""

    name = "distance"

    def __init__(self, unresolved):
        self.unresolved = unresolved

    def prepare(self, key, points, labels):
        return types.SimpleNamespace(unresolved=self.unresolved, rounding=0.0)


@pytest.mark.parametrize("wide", [False, True])
def test_close_pairs_ask_for_float64_and_say_so(wide):
    table = from_array(np.eye(5, 2))

    def chosen(unresolved, asked=None):
        with jax.enable_x64(True):
            request = Request(eps=EPS, dtype=asked)
        with jax.enable_x64(wide):
            goal = Close(unresolved)
            trials, _, words = trials_for(
                jax.random.key(0), table, Gaussian(1.0), goal, request, Clock(9.0)
            )
        return trials.dtype, words

    assert chosen(0) == ("float32", "") and chosen(0, "float64") == ("float64", "")
    said = "3 pair(s) are so close that rounding in {} may change their distances by more than eps"
    assert chosen(3, "float64") == ("float64", said.format("float64"))
    offered = (
        said.format("float32")
        + "; float64 would resolve them (dtype, with jax_enable_x64)"
    )
    assert chosen(3, "float32") == ("float32", offered)
    turned = ("float64", said.format("float32") + "; points and maps are in float64")
    assert chosen(3) == (turned if wide else ("float32", offered))


def test_clusters_are_counted_by_the_classes_of_the_table():
    labels, kernel = np.array([0, 1, 1, 2, 0]), Gaussian(1.0)
    table = from_array(np.eye(5, 2), labels=labels)
    by_hand = Request(goal="clustering", num_clusters=3)
    assert _goal(Request(goal="clustering"), kernel, table) == _goal(
        by_hand, kernel, table
    )


def test_the_lines_that_draw_a_map_again_name_its_key_and_precision():
    def lines(key, dtype):
        trials = types.SimpleNamespace(
            goal=types.SimpleNamespace(name="spectral"),
            table=from_array(np.eye(5, 2)),
            kernel=Gaussian(1.0),
            dtype=dtype,
        )
        return seed_of(key), lines_of_python(trials, best, 1.0, key, None)

    best = Entry(families(5, 2, EPS)["paired_fourier"], "certified", "", 4)
    seed, text = lines(jax.random.key(7), "float32")
    assert (
        seed == 7
        and "jax.random.split(jax.random.key(7))" in text
        and "jax_enable_x64" not in text
    )
    folded = jax.random.fold_in(jax.random.key(7), 1)
    _, text = lines(folded, "float64")
    words = jax.random.key_data(folded).tolist()
    assert (
        f"wrap_key_data(jnp.array({words}, 'uint32'))" in text
        and 'update("jax_enable_x64", True)' in text
    )
    assert seed_of(jax.random.key(7, impl="rbg")) is None


def test_a_sample_that_does_not_fit_the_goal_is_a_failure_and_a_table_that_does_not_is_refused():
    class Unfit(Close):
        def prepare(self, key, points, labels):
            raise ValueError("two classes are needed")

    trials = _trials.Trials(
        jax.random.key(0), from_array(np.eye(5, 2)), Gaussian(1.0), Unfit(0), "float32"
    )
    assert math.isnan(trials.trial(family("a"), 3)(10, 0, 0))
    with pytest.raises(ValueError, match="two classes are needed"):
        trials.trial(family("a"), None)(10, 0, 0)


def test_a_map_is_drawn_in_its_own_precision(x64):
    """A lengthscale that went through jit is a double, and the rest of the map is not."""
    drawn = {
        "scale": jnp.ones((), "float64"),
        "rows": jnp.ones(2, "float32"),
        "number": 3,
    }
    one = dataclasses.replace(
        family("a"), draw=lambda *words: drawn | {"asked": words[-1]["num_frequencies"]}
    )
    trials = _trials.Trials(
        jax.random.key(1), from_array(np.eye(5, 2)), None, None, "float32"
    )
    phi = trials.draw(one, 4, jax.random.key(0))
    assert (
        phi["scale"].dtype == phi["rows"].dtype == np.float32
        and phi["number"] == 3
        and phi["asked"] == 4
    )


def test_the_command_saves_and_says_how_to_load(
    monkeypatch, tmp_path, capsys, own_precision
):
    """The certificate is a stand-in, whose map is in float64."""
    shown = []
    told = {"run": {}, "commands": {"load": None}, "search": {"finished": True}}

    class Found(types.SimpleNamespace):
        def save(self, path):
            pass

        def write(self, folder):
            pass

    def certified(key, table, request, *, began, **options):
        return Found(map="nystrom", dtype="float64", document=dict(told))

    monkeypatch.setattr("proofs_check.certify.certify", certified)
    monkeypatch.setattr(
        "proofs_check.report.certificate_terminal.show",
        lambda document, files: shown.append((document, files)),
    )
    (tmp_path / "points.csv").write_text("a,b\n1,0\n0,1\n0,0\n0,0\n0,0\n")
    monkeypatch.chdir(tmp_path)
    words = "certify points.csv --save map.npz --output o --time 2"
    assert main(words.split()) == 0
    ((document, files),) = shown
    assert document["commands"]["load"].splitlines() == [
        "import jax",
        'jax.config.update("jax_enable_x64", True)',
        "from jaxkern import io",
        "phi = io.load('map.npz')",
    ]
    assert [str(file) for file in files] == [
        "o/certificate.html",
        "o/certificate.json",
        "map.npz",
    ]
    assert main(["certify", "points.csv", "--time", "1e-9"]) == 2
    assert main(["certify", "points.csv", "--clusters", "0"]) == 2
    assert len(shown) == 1 and [
        line.split(": ", 1)[1] for line in capsys.readouterr().err.splitlines()
    ] == [
        "points.csv: the time ended before all of it was read; allow more, or fewer rows",
        "argument --clusters: must be a positive whole number, got '0' (try proofs-check certify --help)",
    ]


def test_errors_are_summed_up_where_there_are_enough_finite_ones():
    assert (
        _errors.summary(np.array([])) is None
        and _errors.summary(np.array([1.0, np.nan] * 9)) is None
    )
    assert (
        _errors.summary(np.arange(5.0)) is None
    )  # a median of five is not known to 95 %
    found = _errors.summary(np.arange(101.0))
    assert (
        found["median"] == 50
        and found["largest"] == 100
        and 35 < found["low"] < 50 < found["high"] < 65
    )
