"""How the time of a certificate is spent, and what it recommends, on stand-ins whose errors and times are known.

The error of a map of size s is eps sqrt(need / s), so that it fails below `need` and never from there on; a trial takes
a time that grows with the square of its rows, by a clock that nothing else moves.
"""

import dataclasses
import errno
import functools
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern.kernels import Gaussian
from proofs_check.certify import Certificate, Request, _clock, _entries, _errors, _plan, _trials, from_array
from proofs_check.certify._certificate import recommended
from proofs_check.certify._certify import _goal
from proofs_check.certify._clock import Clock
from proofs_check.certify._document import MISSED, curve, guarantee, lines_of_python, reasons, seed_of, times
from proofs_check.certify._entries import Entry
from proofs_check.certify._maps import families
from proofs_check.certify._model import Demand, Family, Probe, Rounding
from proofs_check.certify._precision import trials_for
from proofs_check.certify._search import search
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

    def __init__(self, rows, needs, *, seconds=1e-4, goal="spectral", refused=()):
        self.table = types.SimpleNamespace(rows=rows, dim=3)
        self.goal = types.SimpleNamespace(name=goal, refuses=lambda name: "it has none" if name in refused else "")
        self.needs, self.seconds, self.now, self.asked, self.dtype = needs, seconds, 0.0, [], "float32"

    def clock(self):
        return self.now

    def _takes(self, rows):
        return self.seconds * (rows / 1000) ** 2

    def preparing(self, count, growth):
        return 0.0

    def timed(self, family, size, count, clock):
        return 0.0, self._takes(count)

    def trial(self, family, sample, attempt=0):
        rows = self.table.rows if sample is None else sample
        need = self.needs[family.name]
        need = need(rows) if callable(need) else need

        def error(size, stage, number):
            self.asked.append((family.name, sample, attempt, size, stage, number))
            self.now += self._takes(rows)
            return EPS * math.sqrt(need / size)

        return error

    def expected(self, family, size, count=0, growth=2.0):
        return self._takes(count)

    def cost(self, family, size, seconds=math.inf):
        """The maps are the slower, the later they are named."""
        return size * (1 + sorted(self.needs).index(family.name))


@pytest.fixture
def find(monkeypatch):
    """Return the plan, on the clock of the trials."""

    def call(trials, families=None, demands=(), *, seconds=100.0):
        for module in (_clock, _entries):
            monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=trials.clock))
        monkeypatch.setattr(_plan, "search", functools.partial(search, clock=trials.clock))
        families = {name: family(name) for name in trials.needs} if families is None else families
        entries = _plan.find(trials, families, demands, REQUEST, Clock(seconds), [].append)
        assert [entry.family.name for entry in entries] == list(families)
        # No draw comes twice, and the levels of all searches together leave the confidence.
        assert len(set(trials.asked)) == len(trials.asked)
        assert sum(entry.outcome.alpha for entry in entries if entry.outcome) <= 1 - CONFIDENCE + 1e-12
        assert trials.now <= seconds + trials._takes(trials.table.rows)  # a draw that has begun is not cut short
        return {entry.family.name: entry for entry in entries}

    return call


def near(size, need):
    """Tell whether a size is the smallest of the grid that does not fail, or one a few steps above."""
    return need <= size <= 2 * need


def test_few_rows_are_looked_at_as_a_whole(find):
    found = find(Trials(500, {"a": 30, "b": 60, "c": 1}, refused=("c",)))
    for name, need in (("a", 30), ("b", 60)):
        entry = found[name]
        assert entry.status == "certified" and entry.for_all_rows and entry.basis == "draws" and near(entry.size, need)
        assert entry.words.startswith("0 of ") and entry.words.endswith("fresh draws failed")
    assert (found["c"].status, found["c"].words, found["c"].size) == ("not for this goal", "it has none", None)


def test_the_fastest_map_is_tried_again_on_as_many_rows_as_the_time_allows(find):
    trials = Trials(100_000, {"a": 30, "b": 60}, seconds=1e-2)
    found = find(trials)
    assert _plan.FEWEST_ROWS < found["b"].sample < found["a"].sample < _entries.MOST_ROWS["spectral"]
    assert found["a"].sample >= _plan.WORTH_MORE * min(sample for _, sample, *_ in trials.asked)
    assert not found["a"].for_all_rows and near(found["a"].size, 30) and near(found["b"].size, 60)
    # What was drawn on fewer rows is kept.
    assert sum(probe.draws for probe in found["a"].probes) > sum(probe.draws for probe in found["a"].outcome.probes)
    first, again = sorted({sample for name, sample, *_ in trials.asked if name == "a"})
    assert again == found["a"].sample and first in {sample for name, sample, *_ in trials.asked if name == "b"}


def test_where_the_time_allows_it_the_fastest_map_is_tried_on_all_rows(find):
    found = find(Trials(3_000, {"a": 30, "b": 60}, seconds=0.06), seconds=300.0)
    assert found["a"].for_all_rows and near(found["a"].size, 30)
    assert found["b"].sample is not None and found["b"].status == "certified"


@pytest.mark.parametrize(("rows", "half"), [(500, 1), (100_000, 2)])
def test_half_of_the_error_is_left_for_more_rows_where_there_are_more(rows, half, find):
    found = find(Trials(rows, {"a": 10_000, "b": 10_000}, seconds=1e-2))
    expected = (1 - CONFIDENCE) / half / 2 * _plan.LEVELS[0]
    assert [entry.outcome.alpha for entry in found.values()] == pytest.approx([expected] * 2)


def test_a_map_that_fails_on_more_rows_keeps_what_it_has_and_the_next_one_is_tried(find):
    def more_for_more(rows):
        return 30 if rows < 2_900 else 10_000

    trials = Trials(3_000, {"a": more_for_more, "b": 60}, seconds=0.06)
    found = find(trials, seconds=300.0)
    assert found["a"].status == "certified" and found["a"].sample < 2_900 and near(found["a"].size, 30)
    assert any(name == "a" and sample is None for name, sample, *_ in trials.asked)
    assert found["b"].for_all_rows and near(found["b"].size, 60)


def test_a_statement_about_a_faster_map_ends_the_search_on_more_rows(find):
    """Map a would be recommended by its statement, so that b on more rows is worth nothing."""
    demands = [Demand("a", "a theorem", "all is well", 500), Demand("a", "a lemma", "all is well", 40, False)]
    trials, without = (Trials(100_000, {"a": 10_000, "b": 60}, seconds=1e-2) for _ in range(2))
    found = find(trials, demands=demands)
    assert found["b"].sample < find(without)["b"].sample
    assert {sample for name, sample, *_ in trials.asked if name == "b"} == {found["b"].sample}
    # The draws fail at the size of the statement: they are not in exact numbers.
    stated = found["a"]
    assert (stated.size, stated.basis, stated.status, stated.demand) == (None, None, "not certified", None)
    assert stated.words.startswith(
        "a lemma, which is about exact numbers, gives num_frequencies 40, but 20 of 20 draws"
    )
    assert stated.words.endswith("in float32 failed; even num_frequencies 40 fails too often")
    measured = stated.probes[-1]
    assert measured.draws == _entries.MEASURED_DRAWS and measured.failures == measured.draws and not measured.certifying
    assert max(size for name, _, _, size, *_ in trials.asked if name == "a") == 40


def test_a_statement_beyond_the_sizes_of_trials_is_told(find):
    demands = [Demand("a", "a theorem", "all is well", 5000)]
    entry = find(Trials(500, {"a": 10_000}), demands=demands)["a"]
    assert entry.size is None and entry.status == "not certified" and entry.probes[-1].size == 1000
    asked = "a theorem asks for 5,000, beyond the 1,000 at which trials end"
    assert entry.words == f"even num_frequencies 1,000 fails too often; {asked}"
    assert _entries.by_a_statement(entry) is None
    assert _entries.by_a_statement(Entry(family("b"), "out of time", "")) is None


@pytest.mark.parametrize("need", [1, 10_000])
def test_where_the_time_ends_the_entry_says_so_and_a_statement_is_measured_in_what_is_left(find, need):
    """A trial takes a sixtieth of the time: no size can be certified in the share of a map."""
    trials = Trials(500, {"a": need, "b": need}, seconds=40.0)
    demands = [Demand("a", "a theorem", "all is well", 100)]
    found = find(trials, demands=demands, seconds=100.0)
    assert found["b"].status == "out of time" and found["b"].size is None
    assert found["b"].words.startswith("the time ended before draws could certify a size")
    stated = found["a"]
    if need == 1:
        assert stated.size == 100 and stated.basis == "worst case" and stated.words.startswith("by a theorem; ")
    else:
        assert stated.size is None and stated.words.startswith("a theorem, which is about exact numbers, gives")
    measured = stated.probes[-1]
    assert 0 < measured.draws <= _entries.MEASURED_DRAWS and measured.size == 100 and not measured.certifying
    assert measured.failures == (0 if need == 1 else measured.draws)
    # Only where the errors come near to eps another round may certify a size.
    assert max(asked[2] for asked in trials.asked) == (len(_plan.LEVELS) - 1 if need == 1 else 0)


def entry(name, size, *, sample=None, basis="draws", demand=None, probes=()):
    return Entry(family(name), "certified", "", size, basis, sample, None, probes, demand)


def test_all_rows_go_before_samples_and_then_the_fastest_map_wins():
    trials = Trials(30_000, {"a": 1, "b": 1, "c": 1})
    a, b, c = entry("a", 10, sample=1000), entry("b", 20), entry("c", 15)
    assert recommended(trials, [a, b, c], EPS, Clock(9.0)) == (b, 40, {"a": 10, "b": 40, "c": 45})
    best, cost, _ = recommended(trials, [a], EPS, Clock(9.0))
    assert best is a and cost == 10
    ended = [Entry(family("a"), "out of time", "")]
    assert recommended(trials, ended, EPS, Clock(9.0)) == (None, None, {})
    # A statement about all rows goes before draws on samples.
    stated = entry("a", 10, sample=1000, demand=Demand("a", "a theorem", "", 50))
    best, cost, seconds = recommended(trials, [stated, *ended], EPS, Clock(9.0))
    assert (best.size, best.basis, best.sample, cost, seconds) == (50, "worst case", None, 50, {"a": 10})
    # But not where a draw at its size fails.
    assert recommended(Trials(30_000, {"a": 60}), [stated], EPS, Clock(9.0))[0] is stated


def test_a_guarantee_says_what_it_rests_on():
    def promised(entry, goal="distance", wide=False):
        asked, table = types.SimpleNamespace(name=goal, words="a number"), from_array(np.eye(3), standardize=wide)
        trials, rounding = _trials.Trials(None, table, None, asked, "float32"), Rounding(pairs=0.02, closest=1e-3)
        return guarantee(REQUEST, trials, entry, rounding)

    theorem = Demand("a", "a theorem", "", 50)
    data = promised(entry("a", 50, basis="worst case", demand=theorem))
    assert "the kernel of the rows as they were read; what float32 rounds of them and of the map is part of it." in data
    assert "Rounding may take 0.02 of it, and the rest is by a theorem, for every table of this kind. Pairs " in data
    data = promised(entry("a", 50, basis="this data", demand=theorem), "spectral", True)
    assert "for all rows of this table" in data and data.endswith("Source: a theorem.")
    assert "as they were read, standardised in float64;" in data
    assert promised(entry("a", 10)).endswith("Shown by fresh draws, with confidence 0.9.")
    assert promised(entry("a", 10, sample=1000), "spectral").endswith("weaker than a guarantee for all rows.")
    # 500 independent pairs all are good with probability (1 - q)^500 = 1/100 at q = 0.917 %.
    share = 100 * (1 - MISSED ** (1 / 500))
    assert promised(entry("a", 10, sample=1000)).endswith(f"at most {share:.2g} % of all pairs are off by more.")


def test_reasons_compare_times_features_and_what_is_certified():
    best = entry("b", 20, demand=Demand("b", "a theorem", "", 80))
    others = [entry("a", 10, sample=1000), entry("c", 15), Entry(family("d"), "out of time", "")]
    found = reasons(best, 40.0, [*others, best], {"a": 10.0, "b": 40.0, "c": 45.0})
    assert found == [
        "b maps a million points in 40 s here, with 40 features.",
        "a with 20 features is certified for samples of 1,000 rows only, and 4 times as fast.",
        "c with 30 features takes 1.1 times as long.",
        "The draws certify num_frequencies 20, 4 times fewer than a theorem asks.",
    ]
    alone = reasons(entry("b", 20), 40.0, [others[0]], {"a": 80.0})
    assert alone[1] == "a with 20 features is certified for samples of 1,000 rows only."
    assert alone[2] == "No statement gives a size of b for this goal on these data: draws alone certify it."
    stated = entry("b", 80, basis="worst case", demand=best.demand)
    assert len(reasons(stated, 160.0, [], {})) == 1


def test_a_certificate_without_a_map_has_none_to_draw():
    empty = Certificate({"eps": EPS}, None, None, jax.random.key(0))
    assert empty.eps == EPS
    with pytest.raises(AttributeError, match="guarantee"):
        empty.guarantee  # noqa: B018, it is looked up
    for call in (empty.draw, lambda: empty.fails(jax.random.key(1))):
        with pytest.raises(ValueError, match="no map was certified, so there is none to draw"):
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
            trials, _, words = trials_for(jax.random.key(0), table, Gaussian(1.0), goal, request, Clock(9.0))
        return trials.dtype, words

    assert chosen(0) == ("float32", "") and chosen(0, "float64") == ("float64", "")
    said = "3 pair(s) are so close that rounding in {} may change their distances by more than eps"
    assert chosen(3, "float64") == ("float64", said.format("float64"))
    offered = said.format("float32") + "; float64 would resolve them (dtype, with jax_enable_x64)"
    assert chosen(3, "float32") == ("float32", offered)
    turned = ("float64", said.format("float32") + "; points and maps are in float64")
    assert chosen(3) == (turned if wide else ("float32", offered))


def test_clusters_are_counted_by_the_classes_of_the_table():
    labels, kernel = np.array([0, 1, 1, 2, 0]), Gaussian(1.0)
    table = from_array(np.eye(5, 2), labels=labels)
    by_hand = Request(goal="clustering", num_clusters=3)
    assert _goal(Request(goal="clustering"), kernel, table) == _goal(by_hand, kernel, table)
    for goal, message in (("clustering", "the number of clusters"), ("separation", "a class for every row")):
        with pytest.raises(ValueError, match=message):
            _goal(Request(goal=goal), kernel, from_array(np.eye(5, 2)))


def test_the_lines_that_draw_a_map_again_name_its_key_and_precision():
    def lines(key, dtype):
        trials = types.SimpleNamespace(table=from_array(np.eye(5, 2)), kernel=Gaussian(1.0), dtype=dtype)
        return seed_of(key), lines_of_python(trials, best, 1.0, key, None)

    best = Entry(families(5, 2, EPS)["paired_fourier"], "certified", "", 4)
    seed, text = lines(jax.random.key(7), "float32")
    assert seed == 7 and "jax.random.split(jax.random.key(7))" in text and "jax_enable_x64" not in text
    folded = jax.random.fold_in(jax.random.key(7), 1)
    _, text = lines(folded, "float64")
    words = jax.random.key_data(folded).tolist()
    assert f"wrap_key_data(jnp.array({words}, 'uint32'))" in text and 'update("jax_enable_x64", True)' in text
    assert seed_of(jax.random.key(7, impl="rbg")) is None


def test_a_sample_that_does_not_fit_the_goal_is_a_failure_and_a_table_that_does_not_is_refused():
    class Unfit(Close):
        def prepare(self, key, points, labels):
            raise ValueError("two classes are needed")

    trials = _trials.Trials(jax.random.key(0), from_array(np.eye(5, 2)), Gaussian(1.0), Unfit(0), "float32")
    assert math.isnan(trials.trial(family("a"), 3)(10, 0, 0))
    with pytest.raises(ValueError, match="two classes are needed"):
        trials.trial(family("a"), None)(10, 0, 0)


def test_a_map_is_drawn_in_its_own_precision(x64):
    """A lengthscale that went through jit is a double, and the rest of the map is not."""
    drawn = {"scale": jnp.ones((), "float64"), "rows": jnp.ones(2, "float32"), "number": 3}
    one = dataclasses.replace(family("a"), draw=lambda *words: drawn | {"asked": words[-1]["num_frequencies"]})
    trials = _trials.Trials(jax.random.key(1), from_array(np.eye(5, 2)), None, None, "float32")
    phi = Certificate({}, trials, Entry(one, "certified", "", 4), jax.random.key(0)).draw()
    assert phi["scale"].dtype == phi["rows"].dtype == np.float32 and phi["number"] == 3 and phi["asked"] == 4


def test_the_command_saves_says_how_to_load_and_what_it_could_not_write(monkeypatch, tmp_path, capsys, own_precision):
    """The certificate is a stand-in, whose map is in float64."""
    made, shown = [], []

    class Found(types.SimpleNamespace):
        def save(self, path):
            made.append(path)

        def write(self, folder):
            if len(made) == 2:
                raise OSError(errno.ENOSPC, "No space left on device", str(folder / "certificate.json"))

    def certified(key, table, request, *, time, **options):
        return Found(map="nystrom", dtype="float64", document={"run": {}, "commands": {"load": None}})

    monkeypatch.setattr("proofs_check.certify.certify", certified)
    monkeypatch.setattr(
        "proofs_check.report.certificate_terminal.show", lambda document, files: shown.append((document, files))
    )
    np.savetxt(tmp_path / "points.csv", np.eye(5, 2), delimiter=",")
    monkeypatch.chdir(tmp_path)
    assert main(["certify", "points.csv", "--save", "map.npz", "--output", "o", "--time", "2"]) == 0
    ((document, files),) = shown
    assert document["run"]["minutes_allowed"] == 2
    assert document["commands"]["load"].splitlines() == [
        "import jax",
        'jax.config.update("jax_enable_x64", True)',
        "from jaxkern import io",
        "phi = io.load('map.npz')",
    ]
    assert [str(file) for file in files] == ["o/certificate.html", "o/certificate.json", "map.npz"]
    assert main(["certify", "points.csv", "--save", "map.npz", "--output", "p"]) == 3
    assert main(["certify", "points.csv", "--time", "1e-9"]) == 2
    assert main(["certify", "points.csv", "--clusters", "0"]) == 2
    assert len(shown) == 1 and [line.split(": ", 1)[1] for line in capsys.readouterr().err.splitlines()] == [
        "p/certificate.json: No space left on device",
        "points.csv: the time ended before all of it was read; allow more, or fewer rows",
        "argument --clusters: must be a positive whole number, got '0' (try proofs-check certify --help)",
    ]


def test_errors_are_summed_up_where_there_are_enough_finite_ones():
    assert _errors.summary(np.array([])) is None and _errors.summary(np.array([1.0, np.nan] * 9)) is None
    assert _errors.summary(np.arange(5.0)) is None  # a median of five is not known to 95 %
    found = _errors.summary(np.arange(101.0))
    assert found["median"] == 50 and found["largest"] == 100 and 35 < found["low"] < 50 < found["high"] < 65


def test_times_between_sizes_are_on_lines_of_logarithms():
    """The map takes a time in proportion to its size, so that every line is that of the times."""

    class Costs(Trials):
        def cost(self, family, size, seconds=math.inf):
            if seconds > 0:
                known[size] = 3.0 * size

        def costs(self, family):
            return known

    known, trials, sizes = {}, Costs(10, {"a": 1}), [1, 2, 4, 8, 16]
    assert times(trials, family("a"), sizes, Clock(0.0)) == dict.fromkeys(sizes)
    found = times(trials, family("a"), sizes, Clock(1e9))
    assert sorted(known) == [1, 16] and found == pytest.approx({size: 3.0 * size for size in sizes})
    points = [Probe(size, np.full(3, 0.2), 3, False, 1.0) for size in (4, 2)]
    drawn = curve(trials, entry("a", 4, probes=(*points, Probe(8, np.array([np.nan]), 1, False, 1.0))), Clock(0.0))
    assert [point["size"] for point in drawn] == [2, 4] and drawn[0]["seconds_per_million"] == pytest.approx(6)
