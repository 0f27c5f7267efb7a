"""Samples depend on seed and names alone, and a run compares verdicts with what is expected."""

import dataclasses
import functools
import math
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import toys

from jaxkern.bounds import Bound
from proofs_check import controls
from proofs_check.claim import (
    Calibrated,
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
from proofs_check.claim import sample as sample_name
from proofs_check.engine import draws, limits, programs, stopping
from proofs_check.engine import judge as judging
from proofs_check.engine.draws import FULL, QUICK, Profile, derive_key, sample
from proofs_check.engine.result import rejected
from proofs_check.engine.run import forms_of, run
from proofs_check.engine.samples import Samples, evaluate

pytestmark = pytest.mark.optimised

TINY = Profile("quick", max_trials=100, max_draws=300, max_control=100, lenient=True)
STRICT = dataclasses.replace(TINY, lenient=False)


def waiting_time(key, population, numbers):
    """Exponential with mean 1, times a scale."""
    return numbers["scale"] * jax.random.exponential(key, dtype=numbers["scale"].dtype)


def log_bound(setting, factor=1.0):
    """P(exponential > log(1/delta)) = delta."""
    delta = setting.numbers["delta"]
    return Bound(
        factor * setting.numbers["scale"] * math.log(1 / delta),
        1 - delta,
        True,
        "toy:1",
    )


def place(scale=1.0, delta=0.2, name=""):
    return Setting(name or f"scale={scale:g}", numbers={"scale": scale, "delta": delta})


GRID = (place(1.0), place(3.0))
TWICE = Tail(waiting_time, functools.partial(log_bound, factor=2.0))
HALF = Tail(waiting_time, functools.partial(log_bound, factor=0.5))
CLAIM = dataclasses.replace(
    toys.CLAIM,
    printed=Form(HALF, GRID, "refuted"),
    corrected=Form(TWICE, GRID, "certified"),
    controls=(
        Control(
            "a third",
            Tail(waiting_time, functools.partial(log_bound, factor=1 / 3)),
            GRID,
        ),
    ),
)


@pytest.mark.parametrize("num_trials", [1, 5, 128, 300])
def test_the_numbers_do_not_depend_on_the_block(num_trials, dtype):
    key = jax.random.key(3)
    reference = sample(waiting_time, key, GRID[0], num_trials)
    assert reference.shape == (num_trials,) and reference.dtype == np.float64
    assert np.array_equal(
        reference, sample(waiting_time, key, GRID[0], num_trials, block=48, batch=16)
    )
    np.testing.assert_allclose(
        sample(waiting_time, key, GRID[0], num_trials, block=7, batch=3),
        reference,
        rtol=4 * jnp.finfo(dtype).eps,
    )


def test_trial_i_uses_the_key_folded_with_i(x64):
    key = jax.random.key(5)
    numbers = {"scale": jnp.float64(3.0)}
    expected = [
        float(waiting_time(jax.random.fold_in(key, i), None, numbers)) for i in range(9)
    ]
    np.testing.assert_allclose(
        sample(waiting_time, key, place(3.0), 9), expected, rtol=1e-14
    )


def test_settings_with_equal_shapes_share_a_compilation(x64):
    traces = []

    def trial(key, population, numbers, *, n):
        traces.append(n)
        assert numbers["shift"].dtype == jnp.float64
        return (
            jnp.sum(jax.random.normal(key, (n,)))
            + numbers["shift"]
            + population["mean"]
        )

    key = jax.random.key(0)
    for shift, count in ((0.0, 300), (1.0, 200), (2.0, 128)):
        setting = Setting("s", {"mean": np.float64(shift)}, {"shift": shift}, {"n": 3})
        sample(trial, key, setting, count)
    before = len(traces)
    assert set(traces) == {3}
    sample(trial, key, dataclasses.replace(setting, numbers={"shift": 7.0}), 256)
    assert len(traces) == before
    sample(trial, key, dataclasses.replace(setting, shapes={"n": 4}), 128)
    assert traces[before:] and set(traces[before:]) == {4}


def test_a_trial_must_return_a_scalar():
    def trial(key, population, numbers):
        return jax.random.normal(key, (2,))

    with pytest.raises(
        ValueError, match=r"trial must return a scalar, got shape \(2,\)"
    ):
        sample(trial, jax.random.key(0), Setting("here"), 3)


def test_no_trials_are_an_empty_sample_and_fewer_are_refused():
    assert sample(waiting_time, jax.random.key(0), GRID[0], 0).shape == (0,)
    with pytest.raises(ValueError, match="counts must be positive"):
        sample(waiting_time, jax.random.key(0), GRID[0], -1)


def test_progress_counts_trials_up_to_the_total():
    seen = []
    sample(
        waiting_time,
        jax.random.key(0),
        GRID[0],
        300,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(128, 300), (256, 300), (300, 300)]


def test_a_derived_key_belongs_to_its_seed_and_names():
    def words(*args):
        return tuple(jax.random.key_data(derive_key(*args)).tolist())

    assert words(0, "a", "b") == words(0, "a", "b") == (3115712623, 1479565483)
    keys = {
        words(0, "a", "b"),
        words(1, "a", "b"),
        words(0, "b", "a"),
        words(0, "ab"),
        words(10**30, "a", "b"),
    }
    assert len(keys) == 5


def test_a_profile_gives_what_decides_up_to_its_cap():
    alpha = 1e-5
    tried = Form(
        TWICE,
        (place(delta=0.3), place(delta=0.01), place(delta=1e-9), place(delta=2.0)),
        "certified",
    )
    needed = stopping.trials_needed(1 - (1 - 0.3), alpha / 4, block=128)
    assert needed < 512
    assert QUICK.trials(tried, alpha) == (needed, 512, 512, 0)
    most = stopping.trials_needed(1 - (1 - 0.01), alpha / 4, block=128)
    assert FULL.trials(tried, alpha) == (needed, most, 20_480, 0) and most % 128 == 0
    constant = Form(
        Calibrated(waiting_time, log_bound, 0.0, 1.0), (place(delta=0.3),), "calibrated"
    )
    assert QUICK.trials(constant, alpha) == (
        limits.trials_needed(1 - (1 - 0.3), alpha),
    )


def test_a_profile_knows_every_statement():
    def number(setting):
        return 1.0

    counts = {
        Expectation(waiting_time, number, number): (2000,),
        Law(waiting_time, np.exp): (2000,),
        Rate(waiting_time, "n", 1.0): (512,),
        Rare(waiting_time, number, number): (2000,),
        Identity(number): (0,),
        Exact(number): (0,),
    }
    for statement, expected in counts.items():
        assert QUICK.trials(Form(statement, GRID[:1], ""), 1e-5) == expected


def test_forms_that_run_the_same_trial_share_its_sample(x64):
    calls = []
    samples = Samples("toy:1", 0, drawn=calls.append)
    other = Form(
        TWICE,
        (dataclasses.replace(GRID[0], numbers={"scale": 2.0, "delta": 0.2}),),
        "certified",
    )
    forms = [(CLAIM.printed, (50, 60)), (CLAIM.corrected, (130, 20)), (other, (10,))]
    for form, counts in forms:
        samples.want(form, counts)
    assert samples.wanted == 130 + 60 + 10 and samples.there == 0
    drawn = [
        [
            samples.first(form, setting, count)
            for setting, count in zip(form.settings, counts, strict=True)
        ]
        for form, counts in forms
    ]
    assert sum(calls) == samples.there == 256 + 64 + 16
    assert [len(s) for found in drawn for s in found] == [50, 60, 130, 20, 10]
    assert np.array_equal(drawn[0][0], drawn[1][0][:50])
    np.testing.assert_allclose(
        drawn[2][0], 2 * drawn[0][0][:10]
    )  # the same name has the same key, and its own sample


def test_a_claim_is_judged_in_both_forms_and_its_control_is_rejected(dtype):
    (result,) = run([CLAIM], profile=QUICK, seed=0)
    assert result.printed.status == "refuted" and result.corrected.status == "certified"
    assert [(name, rejected(verdict)) for name, verdict in result.controls] == [
        ("a third", True)
    ]
    assert result.as_expected and not result.unexpected and not result.notes
    assert result.printed.alpha == pytest.approx(1e-3 / 3)


def test_a_subset_of_the_claims_has_the_same_numbers(x64):
    more = [dataclasses.replace(CLAIM, id="toy2020:thm0"), CLAIM]
    alone = run([CLAIM], profile=TINY, seed=4)[0]
    among = run(more, profile=TINY, seed=4)[1]
    for one, other in zip(
        alone.corrected.evidence, among.corrected.evidence, strict=True
    ):
        assert other.trials == one.trials == 100
        assert one.facts["quantile"] == other.facts["quantile"]
    assert (
        run(more, profile=TINY, seed=4)[0].corrected.evidence
        != among.corrected.evidence
    )


def test_progress_reaches_the_total_once_for_shared_samples():
    seen = []
    run(
        [CLAIM],
        profile=TINY,
        seed=0,
        progress=lambda done, total: seen.append((done, total)),
    )
    done, total = zip(*seen, strict=True)
    forms = 500 * len(forms_of(CLAIM))
    assert (
        total[0] == 200 + forms and done[-1] == total[-1] == 256 + forms
    )  # blocks are not cut
    assert list(done) == sorted(done)


def expecting(expect, **changes):
    return dataclasses.replace(
        CLAIM, **changes, corrected=dataclasses.replace(CLAIM.corrected, expect=expect)
    )


RARE = Form(TWICE, (place(delta=1e-6),), "certified")


@pytest.mark.parametrize(
    ("claim", "profile", "unexpected"),
    [
        (expecting("refuted"), TINY, ("corrected",)),
        (expecting("consistent"), QUICK, ()),
        (dataclasses.replace(CLAIM, corrected=RARE), TINY, ()),
        (dataclasses.replace(CLAIM, corrected=RARE), STRICT, ("corrected",)),
        (dataclasses.replace(CLAIM, printed=None), QUICK, ()),
    ],
)
def test_a_verdict_is_compared_with_what_is_expected(claim, profile, unexpected):
    (result,) = run([claim], profile=profile, seed=0)
    assert result.unexpected == unexpected and result.as_expected == (not unexpected)
    assert len(result.forms) == (claim.printed is not None) + (
        claim.corrected is not None
    )


def test_a_control_that_is_not_rejected_fails_the_run_and_on_own_data_takes_the_certificate():
    claim = dataclasses.replace(CLAIM, controls=(Control("nothing", TWICE, GRID),))
    (result,) = run([claim], profile=QUICK, seed=0)
    assert not result.as_expected and not result.unexpected
    assert result.notes == (
        "control nothing not rejected: the check has no power here",
    )
    (result,) = run([claim], profile=QUICK, seed=0, data=True)
    assert (
        result.as_expected
        and result.corrected.status == "consistent"
        and "no power" in result.corrected.because
    )
    # What is refuted stays so, and a control that is rejected leaves the certificate.
    false = dataclasses.replace(claim, corrected=claim.printed)
    for tried, status in ((false, "refuted"), (CLAIM, "certified")):
        (result,) = run([tried], profile=QUICK, seed=0, data=True)
        assert result.corrected.status == status


def test_what_rests_on_numbers_that_are_not_finite_is_never_as_expected():
    @sample_name("broken")
    def not_finite(*trial):
        return jnp.nan * waiting_time(*trial)

    broken = Tail(not_finite, log_bound)
    claim = dataclasses.replace(
        CLAIM,
        printed=Form(broken, GRID, "refuted"),
        controls=(Control("c", broken, GRID),),
    )
    (result,) = run([claim], profile=TINY, seed=0)
    assert result.printed.status == "refuted" and result.unexpected == ("printed",)
    assert not rejected(result.controls[0][1]) and not result.as_expected
    assert "printed: 200 statistics are not finite" in result.notes


@pytest.mark.parametrize(
    ("claim", "as_expected"),
    [
        (
            dataclasses.replace(
                CLAIM, printed=dataclasses.replace(CLAIM.printed, expect="certified")
            ),
            True,
        ),
        (
            dataclasses.replace(
                CLAIM, corrected=dataclasses.replace(CLAIM.printed, expect="certified")
            ),
            False,
        ),
        (
            dataclasses.replace(
                CLAIM,
                printed=Form(Identity(lambda: 1.0), GRID, "identity"),
            ),
            False,
        ),
        (
            dataclasses.replace(
                CLAIM, corrected=dataclasses.replace(CLAIM.corrected, expect="vacuous")
            ),
            True,
        ),
    ],
)
def test_on_own_data_only_refuted_corrected_forms_and_identities_fail(
    claim, as_expected
):
    (result,) = run([claim], profile=TINY, seed=0, data=True)
    assert result.as_expected == as_expected


def outside(setting):
    return Bound(1.0, 0.9, False, "toy:1")


@pytest.mark.parametrize(
    "statement",
    [Tail(waiting_time, outside), Inequality(lambda: [(0.5, outside(None))])],
)
def test_a_setting_outside_the_hypotheses_stops_a_run_and_is_not_testable_on_own_data(
    statement,
):
    claim = dataclasses.replace(CLAIM, corrected=Form(statement, GRID, "certified"))
    with pytest.raises(judging.InvalidSetting) as caught:
        run([claim], profile=TINY, seed=0)
    assert caught.value.__notes__ == ["raised by claim toy2020:thm1, corrected"]
    (result,) = run([claim], profile=TINY, seed=0, data=True)
    assert (
        result.corrected.status == "not testable"
        and "hypotheses of toy:1" in result.corrected.because
    )
    assert result.as_expected


def test_controls_of_one_claim_have_different_names():
    claim = dataclasses.replace(CLAIM, controls=CLAIM.controls * 2)
    with pytest.raises(ValueError, match="different names"):
        run([claim], profile=TINY, seed=0)


def test_identities_and_exact_probabilities_run_on_the_host(x64):
    keys = []

    def residual(key, setting):
        keys.append(jax.random.key_data(key).tolist())
        return {"a": np.float64(1e-17), "b": np.zeros(3)}

    forms = [
        Form(Identity(residual), GRID, "identity"),
        Form(Exact(lambda setting: (-2.0, -1.0)), GRID[:1], "certified"),
    ]
    claim = dataclasses.replace(
        CLAIM, printed=forms[0], corrected=forms[1], controls=()
    )
    (result,) = run([claim], profile=QUICK, seed=0)
    assert (
        result.printed.status == "identity" and result.corrected.status == "certified"
    )
    assert [e.trials for e in result.printed.evidence] == [4, 4]
    assert len(keys) == 2 and keys[0] != keys[1]


def test_single_precision_is_judged_by_its_own_rounding(dtype):
    def third(key, population, numbers):
        return numbers["third"] * 3

    setting = Setting("here", numbers={"third": 1 / 3})
    statement = Tail(third, lambda s: Bound(1 - 1e-8, 1.0, True, "toy:1"))
    claim = dataclasses.replace(
        CLAIM,
        printed=None,
        corrected=Form(statement, (setting,), "consistent"),
        controls=(),
    )
    (result,) = run([claim], profile=TINY, seed=0)
    assert result.corrected.status == (
        "consistent" if dtype == jnp.float32 else "refuted"
    )

    def residual(
        key, setting
    ):  # as claims hand it over: computed in the precision of the run, in an array of float64
        return np.float64(
            [float(jnp.asarray(1 / 3) * 3 * setting.numbers["factor"]) - 1]
        )

    for factor, expected in (
        (1 - 1e-8, ("identity", "refuted")),
        (0.998, ("refuted", "refuted")),
    ):
        form = Form(
            Identity(residual),
            (Setting("here", numbers={"factor": factor}),),
            "identity",
        )
        (result,) = run(
            [dataclasses.replace(claim, corrected=form)], profile=TINY, seed=0
        )
        assert result.corrected.status == expected[dtype == jnp.float64]


def test_the_batch_shrinks_until_a_block_fits_into_memory(x64, monkeypatch):
    def trial(key, population, numbers, *, n):
        A = jax.random.normal(key, (n, n))
        return jnp.linalg.norm(jnp.sin(A @ A) @ A)

    place_ = Setting("here", shapes={"n": 32})
    key = jax.random.key(0)
    free = draws.Draw(trial, key, place_, block=16)
    expected = free(0)
    monkeypatch.setattr(programs, "MEMORY", 64 * 1024)
    programs.program_of.cache_clear()
    small = draws.Draw(trial, key, place_, block=16)
    np.testing.assert_allclose(small(0), expected, rtol=1e-12)
    assert 1 <= small.program.batch < free.program.batch == 16
    programs.program_of.cache_clear()


DEVICES = """
import os
os.environ["PJRT_NPROC"] = "32"  # as the command line does: see docs/design.md
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
from proofs_check.claim import Setting
from proofs_check.engine import programs
from proofs_check.engine.draws import Draw
def trial(key, population, numbers, *, n):
    A = population @ jax.random.normal(key, (n, n))
    return jnp.linalg.eigvalsh(A @ A.T)[-1] + jnp.linalg.svd(A, compute_uv=False)[0] + jnp.sum(jnp.exp(A))
found, every = [], jax.local_devices()
for count in (1, 3):
    jax.local_devices = lambda: every[:count]
    programs.program_of.cache_clear()
    draw = Draw(trial, jax.random.key(3), Setting("here", jnp.eye(24) + 1.0, {}, {"n": 24}), batch=16)
    found.append(np.concatenate([draw(0), draw(128)]).tobytes())
print(len(draw.program.where.device_set), found[0] == found[1])
"""


def test_three_devices_give_the_same_numbers_and_decompositions_do_not_wait_for_each_other():
    done = subprocess.run(
        [sys.executable, "-c", DEVICES],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    assert done.stdout.split() == ["3", "True"]


def test_a_check_gets_the_arguments_that_it_names():
    setting = Setting("here", "rows", {"n": 4.0}, {"d": 3})
    for function, result in (
        (lambda n, d, data: (n, d, data), (4.0, 3, "rows")),
        (lambda key, n, power=2: (key, n, power), ("the key", 4.0, 2)),
        (functools.partial(lambda n, power: (n, power), power=3), (4.0, 3)),
        (lambda key, setting: (key, setting), ("the key", setting)),
        (lambda setting, **options: (setting, options), (setting, {})),
        (lambda: "nothing", "nothing"),
        (lambda *, power=2: power, 2),
    ):
        assert evaluate(function, setting, lambda: "the key") == result
    with pytest.raises(TypeError, match="'tau' is neither key, setting nor data"):
        evaluate(lambda n, tau: n, setting)


def test_draws_depend_on_the_declared_name_and_not_on_the_name_of_the_function():
    setting = Setting("here")

    def drawn(function, samples=None):
        part = Form(Inequality(function), (setting,))
        samples = samples or Samples("toy:1", 0)
        return samples.on_the_host("printed", part, setting)[0, 0]

    def pairs(key, factor=1.0):
        return [(factor * jax.random.normal(key, ()), Bound(1.0, 1.0, True, "toy"))]

    def other(key):
        return pairs(key)

    @sample_name("third")
    def third(key):
        return pairs(key)

    assert drawn(pairs) == drawn(other) != drawn(third)
    both = Samples("toy:1", 0)
    assert drawn(pairs, both) == drawn(
        controls.part_of(0.5, Inequality(pairs), ()).statement.sides, both
    )
    assert drawn(functools.partial(pairs, factor=2.0), both) == 2 * drawn(pairs, both)
    with pytest.raises(ValueError, match="toy:1: two functions draw under the name ''"):
        drawn(other, both)


def kept_run(folder, trial, of="this version"):
    """Draw as a new process would; return the numbers, and how often the trial was traced."""
    traces = []

    def counted(key, population, numbers):
        traces.append(1)
        return trial(key, population, numbers)

    draw = draws.Draw(
        counted,
        jax.random.key(1),
        GRID[0],
        block=32,
        name="a",
        kept=programs.Kept(folder, of),
    )
    return draw(64), len(traces)


def test_a_kept_program_gives_the_same_numbers_without_being_traced(x64, tmp_path):
    expected, traced = kept_run(tmp_path, waiting_time)
    (path,) = tmp_path.iterdir()
    found, again = kept_run(tmp_path, waiting_time)
    assert traced and not again and np.array_equal(found, expected)
    assert kept_run(tmp_path, waiting_time, of="another version")[1]
    for damage in (path.read_bytes()[:100], b"", b"\x78" + bytes(99)):
        path.write_bytes(damage)
        found, traced = kept_run(tmp_path, waiting_time)
        assert traced and np.array_equal(found, expected)
    constant = np.arange(3.0)
    for _ in range(2):  # what a trial holds as an array is in no file
        assert kept_run(
            tmp_path / "no folder",
            lambda k, p, n: waiting_time(k, p, n) + jnp.asarray(constant)[1],
        )[1]


def test_what_is_heavy_runs_in_smaller_batches_and_is_optimised(x64, monkeypatch):
    def trial(key, population, numbers, *, n):
        rows = jax.random.normal(key, (n, 8))
        return jax.lax.scan(lambda s, row: (jnp.sin(s) + row, None), rows[0], rows)[
            0
        ].sum()

    key, options, compiled = jax.random.key(0), [], programs._compiled
    monkeypatch.setattr(
        programs,
        "_compiled",
        lambda low, how: options.append(how) or compiled(low, how),
    )
    batches = []
    for n in (3, 400, 5_000):
        draw = draws.Draw(trial, key, Setting("here", shapes={"n": n}))
        rows = np.asarray(jax.random.normal(jax.random.fold_in(key, 5), (n, 8)))
        single = functools.reduce(lambda s, row: np.sin(s) + row, rows, rows[0]).sum()
        np.testing.assert_allclose(draw(0)[5], single, rtol=1e-12)
        batches.append(draw.program.batch)
    assert batches == [128, 128, 16]
    assert options == [programs._UNOPTIMISED, programs._OPTIMISED, programs._OPTIMISED]
