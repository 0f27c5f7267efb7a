"""The certified size is judged on simulated maps whose failure probability is known, and by exact laws."""

import collections
import contextlib
import itertools
import math

import jax
import numpy as np
import pytest
from scipy import special, stats

from proofs_check.certify import _attempts, _search
from proofs_check.certify._attempts import attempt, plan_of
from proofs_check.certify._draws import SEARCH, Draws, OutOfTime
from proofs_check.certify._errors import median_interval, quantiles
from proofs_check.certify._keys import keys_of
from proofs_check.certify._model import Probe
from proofs_check.certify._search import grid, search
from proofs_check.engine import limits, sequential, stopping

FALSE_ALARM = 1e-5
DELTA, ALPHA = 0.05, 1e-3
UNIFORM = np.random.default_rng(20260726).random(2**18)
NORMAL = special.ndtri(UNIFORM).tolist()
MASK = 2**18 - 1


def named(*names):
    """Return where the randomness of these names is in the tables; hashes of integers do not depend on the process."""
    return hash(names) & MASK


def lognormal(run, spread, scale=700.0, eps=0.1):
    """Return a trial, and the failure probability by size."""

    def trial(size, stage, number):
        return (
            eps
            * math.sqrt(scale / size)
            * math.exp(spread * NORMAL[named(run, size, stage, number)])
        )

    return trial, lambda size: float(
        special.ndtr(math.log(scale / size) / (2 * spread))
    )


def found(
    trial, smallest=1, largest=2**16, eps=0.1, delta=DELTA, alpha=ALPHA, **options
):
    return search(
        trial,
        smallest=smallest,
        largest=largest,
        eps=eps,
        delta=delta,
        alpha=alpha,
        **options,
    )


def test_the_grid_holds_both_ends_and_steps_by_an_eighth_of_a_doubling():
    for smallest, largest in (
        (1, 1),
        (7, 7),
        (1, 2),
        (3, 1000),
        (999, 1000),
        (1, 2**20),
    ):
        sizes = grid(smallest, largest)
        assert sizes[0] == smallest and sizes[-1] == largest
        assert np.all(np.diff(sizes) >= 1)
        ratios = np.divide(sizes[1:], sizes[:-1])
        assert np.all(ratios <= 2**0.125 * (1 + 1 / np.array(sizes[:-1])))
    assert len(grid(2**10, 2**20)) == 81
    with pytest.raises(ValueError, match="smallest <= largest"):
        grid(5, 4)


def law(rate, delta, alpha, patient):
    plan = plan_of(delta, alpha, patient=patient)
    return stopping.law_of_ends(rate, plan.looks, plan.certified, plan.hopeless)


@pytest.mark.parametrize("patient", [False, True])
@pytest.mark.parametrize("delta", [0.5, 0.1, 0.05, 0.002])
@pytest.mark.parametrize("alpha", [0.3, 0.0375, 1e-3])
def test_an_attempt_certifies_a_size_at_the_edge_with_at_most_its_level(
    delta, alpha, patient
):
    at_the_edge = law(delta, delta, alpha, patient).certified.sum()
    assert at_the_edge <= alpha
    assert at_the_edge > 0.3 * alpha  # and its level is spent
    assert law(1.2 * delta, delta, alpha, patient).certified.sum() < at_the_edge


@pytest.mark.parametrize("delta", [0.5, 0.05, 0.01])
def test_a_plan_certifies_as_soon_as_draws_without_a_failure_can(delta):
    least = next(
        n
        for n in itertools.count(1)
        if sequential.largest_certified(n, delta, 0.05) >= 0
    )
    plan = plan_of(delta, 0.05, patient=False)
    assert plan.looks[0] == math.ceil(least / _attempts._LOOKS)
    assert least <= plan.fewest < least + plan.looks[0]


def test_a_good_size_is_certified_soon_and_a_bad_one_left_soon():
    never, tenth, aimed, bad = (
        law(rate * DELTA, DELTA, ALPHA, False) for rate in (0, 0.1, _search.TARGET, 2)
    )
    assert never.expected_trials == 158 and never.certified.sum() == 1
    assert tenth.certified.sum() > 0.93 and tenth.expected_trials < 205
    assert aimed.certified.sum() > 0.88 and aimed.expected_trials < 215
    assert bad.refuted.sum() > 1 - 1e-6 and bad.expected_trials < 40
    patient = law(DELTA / 8, DELTA, ALPHA, True)
    assert patient.certified.sum() > 0.9999 and patient.expected_trials < 250


def test_what_the_docs_say_of_sequential_and_fixed_numbers():
    for alpha, means, fixed in (
        (1e-3, (158, 219, 363), (135, 220, 417)),
        (1e-4, (205, 287, 480), (180, 312, 547)),
    ):
        for rate, mean, number in zip(
            (0, DELTA / 10, DELTA / 4), means, fixed, strict=True
        ):
            run = stopping.stopping_law(rate, DELTA, alpha, np.arange(1, 1501))
            assert round(run.expected_trials) == mean
            numbers = np.arange(100, 600)
            last = limits.largest_certified(numbers, DELTA, alpha)
            assert (
                numbers[np.argmax(stats.binom.cdf(last, numbers, rate) >= 0.9)]
                == number
            )


def one_size(trial, eps=0.5, most=math.inf):
    return Draws(trial, eps, lambda size, first: 1.0, most, None)


def test_attempts_follow_their_law():
    """5 standard errors of two means: a false alarm in a million; for one fixed seed."""
    delta, alpha, rate, runs = 0.2, 0.01, 0.08, 1000
    ends = law(rate, delta, alpha, True)
    upper, draws = [], []
    for run in range(runs):
        drawn = one_size(
            lambda size, stage, number, run=run: float(
                UNIFORM[named(run, size, stage, number)] < rate
            )
        )
        upper.append(attempt(drawn, 17, 1_000, delta, alpha, patient=True))
        draws.append(drawn.probes()[0].draws)
    certified, draws = np.array([limit is not None for limit in upper]), np.array(draws)
    share = ends.certified.sum()
    assert (
        abs(certified.mean() - share) < 5 * math.sqrt(share * (1 - share) / runs) + 1e-9
    )
    assert abs(draws.mean() - ends.expected_trials) < 5 * draws.std() / math.sqrt(runs)
    assert draws.std() / math.sqrt(runs) < 0.04 * ends.expected_trials
    wrong = sum(limit < rate for limit in upper if limit is not None)
    assert wrong <= stats.binom.isf(FALSE_ALARM, runs, alpha)


LEVEL = 0.05


def false_certificates(runs, sabotage=lambda trial: trial):
    """Return how many of `runs` searches certify a size at LEVEL, where every size fails a little more often than 1/2.

    So many failures, and errors far below eps where there is none: the search takes many draws and tries many sizes.
    """
    delta, rate = 0.5, 0.5 * (1 + 1e-9)
    errors = np.where(
        rate > UNIFORM, 1.01, np.exp(-2.9 - 0.8 * (UNIFORM - rate))
    ).tolist()
    count = 0
    for run in range(runs):

        def trial(size, stage, number, run=run):
            return errors[named(run, size, stage, number)]

        outcome = found(
            sabotage(trial), smallest=4, largest=1024, eps=1.0, delta=delta, alpha=LEVEL
        )
        count += outcome.size is not None
    return count


def most(runs):
    """Return a count that `runs` searches exceed with a probability of at most 1e-5 where the level is kept."""
    return stats.binom.isf(FALSE_ALARM, runs, LEVEL)


def test_sizes_that_are_not_good_are_certified_at_most_at_the_level():
    count = false_certificates(500)
    assert 0.3 * LEVEL * 500 < count <= most(500)  # and the searches did try


def test_attempts_without_a_correction_are_caught(monkeypatch):
    def uncorrected(draws, size, stage, delta, alpha, *, patient):
        return attempt(draws, size, stage, delta, LEVEL, patient=patient)

    monkeypatch.setattr(_search, "attempt", uncorrected)
    assert false_certificates(300) > most(300)


def test_certifying_with_the_draws_of_the_search_is_caught():
    def reused(trial):
        return lambda size, stage, number: trial(size, SEARCH, number)

    assert false_certificates(2000, reused) > most(2000)


@pytest.mark.parametrize(
    ("spread", "alpha", "runs", "excess", "draws"),
    [
        (0.1, LEVEL, 300, 0.22, 180),
        (0.1, ALPHA, 150, 0.22, 310),
        (0.3, ALPHA, 150, 0.70, 410),
    ],
)
def test_the_certified_size_is_not_much_larger_than_the_smallest_good_one(
    spread, alpha, runs, excess, draws
):
    """The share of false certificates has a false alarm of 1e-5; the bounds leave a tenth to the means."""
    sizes = grid(4, 2**16)
    rate = lognormal(0, spread)[1]
    best = next(size for size in sizes if rate(size) <= DELTA)
    ends = [
        found(lognormal(run, spread)[0], smallest=4, alpha=alpha) for run in range(runs)
    ]
    assert all(
        end.stopped == "" and 0 < end.upper <= DELTA and end.alpha == alpha
        for end in ends
    )
    assert sum(rate(end.size) > DELTA for end in ends) <= stats.binom.isf(
        FALSE_ALARM, runs, alpha
    )
    ratios = np.array([end.size / best for end in ends])
    assert math.exp(np.log(ratios).mean()) < 1 + excess
    assert np.quantile(ratios, 0.95) < (1 + excess) ** 2
    assert np.mean([sum(probe.draws for probe in end.probes) for end in ends]) < draws
    assert (
        np.mean([sum(probe.certifying for probe in end.probes) for end in ends]) < 1.5
    )


@pytest.mark.parametrize("start", [None, 1, 300, 2**16])
def test_the_neighbour_on_the_grid_is_found_for_a_step(start):
    for largest, step in itertools.product(
        (2**16, 50_000), (1, 2, 3, 100, 701, 20_000, 50_000)
    ):
        for low in (0.0, 0.0999, 0.1):
            end = found(
                lambda size, stage, number, step=step, low=low: (
                    low if size >= step else 1.0
                ),
                1,
                largest,
                start=start,
            )
            assert end.size == min(size for size in grid(1, largest) if size >= step)
            assert (
                end.stopped == "" and sum(probe.certifying for probe in end.probes) == 1
            )
            assert end.probes[-1].size == end.size


def test_a_step_to_random_errors_ends_near_it():
    """They are three deviations better than eps: good, and not so clearly that few draws are enough."""
    for run in range(100):

        def trial(size, stage, number, run=run):
            deviation = min(max(NORMAL[named(run, size, stage, number)], -2.5), 2.5)
            return 0.1 * math.exp(-1 + deviation / 3) if size >= 700 else 0.2

        end = found(trial)
        assert (
            700 <= end.size <= 3 * 700
            and sum(probe.draws for probe in end.probes) < 400
        )


def test_errors_that_never_come_down_are_too_large():
    for error in (1.0, math.nan, math.inf, 0.1000001):
        end = found(lambda size, stage, number, error=error: error)
        assert (end.size, end.upper, end.stopped) == (None, 1.0, "too large")
        assert end.probes[-1].size == 2**16 and not any(
            probe.certifying for probe in end.probes
        )
        assert sum(probe.draws for probe in end.probes) < 60
        assert all(probe.failures == probe.draws for probe in end.probes)


def test_errors_of_zero_and_below_end_at_the_smallest_size():
    for error in (0.0, -3.0, 1e-300):
        assert (
            found(lambda size, stage, number, error=error: error, 5, start=4000).size
            == 5
        )


def test_one_size_is_enough():
    end = found(lambda size, stage, number: 0.0, 9, 9)
    assert (end.size, end.stopped) == (9, "") and [
        probe.certifying for probe in end.probes
    ] == [False, True]
    assert found(lambda size, stage, number: 1.0, 9, 9).stopped == "too large"


def test_the_largest_size_has_the_benefit_of_the_doubt():
    """Two failures in the first eight draws leave any other size; here the size is good."""
    end = found(
        lambda size, stage, number: float(stage == SEARCH and number in (1, 3)), 9, 9
    )
    assert end.size == 9


def test_errors_that_rise_with_the_size_and_holes_do_not_break_the_search():
    for good in (
        lambda size: size < 50,
        lambda size: 40 < size < 60,
        lambda size: size % 2,
        lambda size: size == 64,
    ):
        end = found(
            lambda size, stage, number, good=good: 0.0 if good(size) else 1.0, 1, 1000
        )
        assert end.stopped == "too large" if end.size is None else good(end.size)
    assert (
        found(lambda size, stage, number: 0.0 if size < 50 else 1.0, 1, 1000).size == 1
    )


def test_a_size_that_looked_good_and_is_not_is_passed_by():
    """Below 100 only the search's draws are good, as if luck had chosen them."""
    end = found(
        lambda size, stage, number: 0.0 if size >= 100 or stage == SEARCH else 1.0,
        64,
        1024,
    )
    assert end.size >= 100
    attempts = [probe for probe in end.probes if probe.certifying]
    assert len(attempts) > 1 and [probe.size for probe in attempts] == sorted(
        {probe.size for probe in attempts}
    )
    assert all(probe.draws < 10 for probe in attempts[:-1])


def test_no_draw_is_named_twice_and_attempts_have_stages_of_their_own():
    for run in range(20):
        trial, _ = lognormal(run, 0.3)
        names: list[tuple[int, int, int]] = []

        def recorded(size, stage, number, trial=trial, names=names):
            names.append((size, stage, number))
            return trial(size, stage, number)

        end = found(recorded, smallest=4)
        assert len(names) == len(set(names)) == sum(probe.draws for probe in end.probes)
        for probe in end.probes:
            stages = {
                stage
                for size, stage, _ in names
                if size == probe.size and (stage > 0) == probe.certifying
            }
            assert len(stages) == 1
            for stage in stages:
                errors = [
                    trial(probe.size, stage, number) for number in range(probe.draws)
                ]
                np.testing.assert_array_equal(probe.errors, errors)
                assert probe.failures == sum(not error <= 0.1 for error in errors)
        at = {stage: size for size, stage, _ in names if stage > 0}
        assert sorted(at) == list(range(1, len(at) + 1))


def test_reports_count_up_and_what_a_trial_raises_passes_through():
    told = []
    end = found(lognormal(1, 0.1)[0], smallest=4, report=lambda *now: told.append(now))
    assert len(told) == sum(probe.draws for probe in end.probes)
    last = {(size, stage): (draws, failures) for size, stage, draws, failures in told}
    assert list(last.values()) == [
        (probe.draws, probe.failures) for probe in end.probes
    ]
    for error in (KeyboardInterrupt, RuntimeError):

        def broken(size, stage, number, error=error):
            raise error

        with pytest.raises(error):
            found(broken)


@pytest.mark.parametrize(
    "wrong",
    [{"delta": 0.0}, {"delta": 1.0}, {"alpha": 0.0}, {"alpha": 0.6}, {"eps": 0.0}],
)
def test_settings_that_mean_nothing_are_refused(wrong):
    options = {"eps": 0.1, "delta": DELTA, "alpha": ALPHA} | wrong
    with pytest.raises(ValueError, match=next(iter(wrong))):
        search(lambda size, stage, number: 0.0, smallest=1, largest=2, **options)


@pytest.mark.parametrize("compiling", [0.0, 3.0])
def test_the_limit_is_kept_and_no_work_is_done_for_what_cannot_end(compiling):
    """The work of a draw is in proportion to the size, and the first is more; the whole takes about 300."""
    spent = {}
    for most in (-5, 0, 1, 5, 20, 80, 180, 250, 400, 1000, 1e6):
        end = found(
            lognormal(3, 0.1)[0],
            4,
            most=most,
            work=lambda size, first: size / 1000 + compiling * first,
        )
        drawn = collections.Counter()
        for probe in end.probes:
            drawn[probe.size] += probe.draws
        spent[most] = sum(
            size * draws / 1000 + compiling for size, draws in drawn.items()
        )
        assert spent[most] <= max(most, 0) + 1e-9
        assert end.stopped == ("out of work" if end.size is None else "")
    assert (
        end.size is not None
        and found(lognormal(3, 0.1)[0], smallest=4).size == end.size
    )
    assert spent[1e6] == spent[1000] > 150 and spent[0] == 0
    assert (
        spent[80] < 30 + 8 * compiling
    )  # the search sees that 158 draws of such a size take more


def test_a_search_that_is_short_of_work_certifies_what_it_has():
    """Every size is good and takes the same: from the top down, a few sizes can be tried only."""
    end = found(
        lambda *_: 0.09, 1, 2**20, most=200.0, start=2**20, work=lambda size, first: 1.0
    )
    assert end.stopped == "" and 1 < end.size < 2**20


def test_one_size_is_certified_refuted_or_left_open():
    def tried(every, most=math.inf):
        """Return the limit of an attempt in which one draw of so many fails, and all that was drawn."""
        drawn = one_size(
            lambda size, stage, number: float(number % every == 1), 0.1, most
        )
        with contextlib.nullcontext() if most == math.inf else pytest.raises(OutOfTime):
            return attempt(drawn, 40, 1, DELTA, ALPHA, patient=True), drawn.probes()
        return None, drawn.probes()

    upper, (good,) = tried(60)
    assert 1 / 60 < upper <= DELTA and good.certifying and good.draws > 158
    low, high = sequential.binomial_limits(good.failures, good.draws, ALPHA)
    assert low < 1 / 60 < high == pytest.approx(upper)
    upper, (bad,) = tried(3)
    assert (
        upper is None
        and sequential.binomial_limits(bad.failures, bad.draws, ALPHA)[0] > DELTA
    )
    upper, (edge,) = tried(20)
    assert upper is None and edge.draws > 500
    assert tried(60, 150.0) == (None, ())  # 158 of them take too much


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_interval_of_the_median_has_its_level_exactly_and_is_the_shortest(level):
    for count in (1, 2, 5, 6, 7, 30, 101):
        low, high = median_interval(np.arange(count, 0, -1), level)
        if math.isinf(low):
            assert high == math.inf and 1 - 2 * 0.5**count <= level
            continue
        ranks = np.arange(count + 1)  # errors below the median
        covered = (ranks >= low) & (ranks <= high - 1)
        assert low + high == count + 1
        assert stats.binom.pmf(ranks[covered], count, 0.5).sum() >= level
        inner = (ranks >= low + 1) & (ranks <= high - 2)
        assert stats.binom.pmf(ranks[inner], count, 0.5).sum() < level + 1e-12
    assert median_interval([], level) == (-math.inf, math.inf)
    assert median_interval([math.nan] * 30, level) == (math.inf, math.inf)
    with pytest.raises(ValueError, match="level"):
        median_interval([1.0], 1.0)


def test_quantiles_are_errors_and_failures_without_one_are_large():
    def probe(errors):
        return Probe(3, np.asarray(errors, float), 0, False)

    assert quantiles(probe(np.arange(1, 101)[::-1])) == (5, 50, 95)
    assert quantiles(probe([2.0])) == (2, 2, 2)
    assert quantiles(probe([1.0, math.nan, 2.0])) == (1, 2, math.inf)
    assert all(math.isnan(point) for point in quantiles(probe([])))


def test_no_use_of_the_key_has_a_key_that_another_one_splits_off():
    """`jax.random.split(key, n)[i]` is `fold_in(key, i)`: the map's keys and their own subkeys are of that kind."""
    key = jax.random.key(3)
    uses = [*keys_of(key), *jax.random.split(key, 64)]
    key_map = jax.random.split(key)[1]
    uses += [*jax.random.split(key_map, 64), *jax.random.split(uses[2], 64)]
    words = {tuple(jax.random.key_data(use).tolist()) for use in uses}
    assert len(words) == len(uses)
