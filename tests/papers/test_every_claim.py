"""Every form of every claim and every control, without the statistics: trials are traced, the rest is judged.

The quick run of `proofs_check` draws the trials. Here each of them is traced at all its shapes (in float32 at those of
one setting), all bounds and numbers that it is compared with are computed at all settings, and what needs no draws is
judged at its first setting, or at all if that does not show what is expected; the slow run judges all at all.
"""

import contextlib
import functools
import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.forms import at_first, changed

from jaxkern.draws import normal_rows
from proofs_check import register
from proofs_check.claim import (
    Calibrated,
    Control,
    Exact,
    Expectation,
    Identity,
    Inequality,
    Law,
    Rare,
    Setting,
    Tail,
    Undecided,
    draws_as,
)
from proofs_check.engine import draws, judge, keys, programs, run
from proofs_check.papers import populations

PAPERS = ("kpotufe2020", "amini2021", "chen2016", "ghashami2016", "jaxkern")
WITHOUT_DRAWS = Identity | Inequality | Exact | Undecided


@contextlib.contextmanager
def as_in_a_run(dtype):
    """Set the precision, and what the command line leaves as JAX has it."""
    with (
        jax.enable_x64(dtype == "float64"),
        jax.debug_key_reuse(False),
        jax.numpy_rank_promotion("allow"),
        jax.numpy_dtype_promotion("standard"),
    ):
        yield


def of_paper(claims, paper):
    return [claim for claim in claims.values() if claim.id.startswith(f"{paper}:")]


def parts(claims):
    """Yield the name of every form and control of claims, and what it is."""
    for claim in claims:
        for name, part in run.forms_of(claim):
            yield f"{claim.id}, {name}", part


def in_precision(leaf, dtype):
    """Return the shape of an array and its dtype in a precision: a trace needs no more."""
    if not hasattr(leaf, "dtype"):
        return leaf
    is_float = jnp.issubdtype(leaf.dtype, jnp.floating)
    return jax.ShapeDtypeStruct(leaf.shape, dtype if is_float else leaf.dtype)


def faults_of_the_trace(trial, setting, real):
    """Return what is wrong with the program of a trial: its result, its precision, a key that is not used once."""
    numbers = {name: jax.ShapeDtypeStruct((), real) for name in setting.numbers}
    with as_in_a_run("float64"):  # a model computes its mean kernel for a precision
        data = jax.tree.map(lambda leaf: in_precision(leaf, real), setting.data)
    traced, result = jax.make_jaxpr(
        lambda *args: trial(*args, **setting.shapes), return_shape=True
    )(jax.random.key(0), data, numbers)
    if result.shape != ():
        yield f"the result has shape {result.shape}"
    if not keys.reaches_result(traced):
        yield "the key is not used"
    for uses in keys.used_twice(traced.jaxpr):
        yield f"a key is used twice: {uses}"
    if jnp.issubdtype(result.dtype, jnp.floating) and result.dtype != real:
        yield f"the result is {result.dtype}"


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("real", ["float32", "float64"])
def test_trials_are_programs_of_one_precision_that_use_their_key(
    registered, paper, real
):
    faults = []
    seen = set()
    with as_in_a_run(real):
        for name, part in parts(of_paper(registered, paper)):
            if not hasattr(part.statement, "trial"):
                continue
            trial = part.statement.trial
            reuses = isinstance(part, Control) and part.kind == "reused key"
            # Shapes do not choose the precision.
            settings = part.settings if real == "float64" else part.settings[:1]
            for setting in settings:
                sizes = tuple(sorted(setting.shapes.items()))
                shapes = str(jax.tree.map(jnp.shape, setting.data))
                program = (trial, reuses, sizes, shapes)
                if program in seen:  # forms have trials in common
                    continue
                seen.add(program)
                for fault in faults_of_the_trace(trial, setting, jnp.dtype(real)):
                    if not (reuses and "key" in fault):
                        faults.append(f"{name}, {setting.name}: {fault}")
    assert seen and not faults, faults


drawn = jax.jit(jax.random.normal)


def counts_and_rows(key, X, numbers, d):
    first, second = jax.random.split(key)
    counts = jax.random.multinomial(first, 9.0, jnp.full(3, 1 / 3))
    rows = normal_rows(first, 3, 1, float)[:, 0]
    return counts @ rows + jax.random.normal(second)


def folded(key, X, numbers, d):
    first, second = (jax.random.fold_in(key, number) for number in (0, 1))
    return drawn(first) * drawn(second)


def single_precision(key, X, numbers, d):
    return jax.random.normal(key, (), jnp.float32)


@pytest.mark.parametrize(
    ("fault", "trial"),
    [
        ("", lambda key, X, numbers, d: jax.random.normal(key) * numbers["tau"]),
        ("", folded),
        ("twice: random_split and fold_in of many numbers", counts_and_rows),
        ("twice: ", lambda key, X, numbers, d: drawn(key) * drawn(key)),
        ("the key is not used", lambda key, X, numbers, d: X.sum() * numbers["tau"]),
        ("shape (2,)", lambda key, X, numbers, d: jax.random.normal(key, (d,))),
        ("the result is float32", single_precision),
    ],
)
def test_faults_of_a_trace_are_seen(fault, trial):
    setting = Setting("here", np.ones(3), {"tau": 1.0}, {"d": 2})
    with as_in_a_run("float64"):
        faults = list(faults_of_the_trace(trial, setting, jnp.dtype("float64")))
    assert len(faults) == bool(fault) and fault in "".join(faults), faults


def test_a_key_that_is_used_twice_is_seen_in_a_batch():
    with as_in_a_run("float64"):
        batch = jax.vmap(lambda key: counts_and_rows(key, None, None, 2))
        traced = jax.make_jaxpr(batch)(jax.random.split(jax.random.key(0)))
    assert len(keys.used_twice(traced)) == 1


def numbers_of(statement, setting):
    """Yield what a statistic is compared with at a setting, each as (what, value, whether it makes sense).

    A bound above the most that its statistic can be would be vacuous; delta must leave room for a violation.
    """
    match statement:
        case Tail() | Calibrated():
            is_tail = isinstance(statement, Tail)
            bound = statement.bound if is_tail else statement.shape
            right = bound(setting)
            yield "bound", right, bool(right.valid) and 0 < right.value < np.inf
            yield "delta", 1 - right.probability, 0 < 1 - right.probability < 1
            judge.checked_bound(bound, setting)
            if is_tail and statement.ceiling is not None:
                ceiling = statement.ceiling(setting)
                yield "ceiling", ceiling, ceiling > 0
        case Expectation():
            target = statement.target(setting)
            scale = statement.scale(setting)
            yield "target", target, np.isfinite(target)
            yield "scale", scale, 0 < scale < np.inf
            if statement.limits is not None:
                low, high = statement.limits(setting)
                yield "limits", (low, high), low <= target <= high
        case Law():
            values = np.asarray(statement.cdf(np.linspace(-50, 50, 201)))
            yield "cdf", values, np.all(np.diff(values) >= -1e-12)
            yield "range", values, values[0] >= 0 and values[-1] <= 1
            yield "rise", values, values[-1] - values[0] > 0.5
        case Rare():
            claimed = statement.log_claimed(setting)
            ceiling = statement.log_ceiling(setting)
            yield "log ceiling", ceiling, np.isfinite(ceiling)
            yield "log claimed", claimed, claimed < 0


def faults_of_settings(claim):
    """Yield what is wrong with the settings of a claim: their names, which keys come from, and their numbers."""
    names = {}
    for what, part in parts([claim]):
        for field in ("trial", "residual", "sides"):
            function = getattr(part.statement, field, None)
            if function and "key" in inspect.signature(function).parameters:
                name, code = draws_as(function)
                if names.setdefault(name, code) != code:
                    yield f"two functions draw as {name!r}"
        # The two norms of this claim are tried on the same draws.
        shares = claim.id == "jaxkern:nystrom-best-rank"
        different = {setting.name for setting in part.settings}
        if len(different) < len(part.settings) and not shares:
            yield f"{what}: settings of one name"
        for setting in part.settings:
            for number, value, is_right in numbers_of(part.statement, setting):
                if not is_right:
                    yield f"{what}, {setting.name}: {number} is {value}"


@pytest.mark.parametrize("profile", ["quick", "full", "data"])
def test_settings_have_names_and_hypotheses_are_met_and_bounds_can_fail(
    registered, profile
):
    with as_in_a_run("float64"):
        claims = list(registered.values())
        if profile == "full":
            claims = register.claims(profile="full")
        if profile == "data":
            X = np.random.default_rng(0).standard_normal((40, 2))
            claims = register.claims(populations.from_rows(X))
        for claim in claims:
            assert not list(faults_of_settings(claim)), claim.id
    assert [claim.id for claim in claims] == list(registered)
    if profile == "full":
        full = {claim.id: claim for claim in claims}["kpotufe2020:thm1"]
        quick = registered["kpotufe2020:thm1"].corrected.settings
        assert len(full.corrected.settings) > len(quick)


def test_bounds_fail_with_the_probability_that_their_settings_name(claims):
    """Sizes are the least whole numbers that are enough, so that failures may be a few per cent less likely."""
    named = 0
    for what, form in parts(claims.values()):
        if not isinstance(form.statement, Tail) or isinstance(form, Control):
            continue
        if "lem3.3" in what:  # delta is that of a pair, of which it takes four
            continue
        for setting in form.settings:
            delta = re.search(r"delta=([\d.]+)", setting.name)
            if delta:
                named += 1
                failure = 1 - form.statement.bound(setting).probability
                assert 0.93 < failure / float(delta[1]) < 1 + 1e-9, (what, setting)
    assert named > 80


def without_draws(part):
    is_judged = part is not None and isinstance(part.statement, WITHOUT_DRAWS)
    return part if is_judged else None


@pytest.mark.parametrize("paper", PAPERS)
def test_what_needs_no_draws_is_as_expected(registered, paper):
    """Exact statements, identities and inequalities, with their controls, judged as in a run."""
    judged = functools.partial(run.run, profile=draws.QUICK, seed=0)
    claims = [changed(claim, without_draws) for claim in of_paper(registered, paper)]
    claims = [claim for claim in claims if run.forms_of(claim)]
    with as_in_a_run("float64"):
        first = judged([changed(claim, at_first) for claim in claims])
        open_ids = {r.claim.id for r in first if not r.as_expected}
        results = judged([claim for claim in claims if claim.id in open_ids])
    for result in results:
        because = [verdict.because for _, _, verdict in result.forms]
        assert result.as_expected, (result.claim.id, result.notes, because)
    assert sum(len(r.controls) for r in first)


@functools.cache
def claims_in(dtype):
    with as_in_a_run(dtype):
        return {claim.id: claim for claim in register.claims()}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("dtype", "seeds"), [("float32", 3), ("float64", 4)])
@pytest.mark.parametrize("paper", PAPERS)
def test_no_true_statement_is_refuted_in_either_precision_and_every_control_is(
    paper, dtype, seeds
):
    """At the levels of a run of all claims: each seed has a false alarm with probability 0.001 at most."""
    claims = claims_in(dtype)
    parts_of_all = sum(len(run.forms_of(claim)) for claim in claims.values())
    wrong = []
    judged = 0
    for claim in of_paper(claims, paper):
        share = run.FAMILY_ALPHA / parts_of_all * len(run.forms_of(claim))
        with as_in_a_run(dtype):
            for seed in range(seeds):
                (result,) = run.run(
                    [claim], profile=draws.QUICK, seed=seed, family_alpha=share
                )
                judged += len(result.forms)
                if not result.as_expected:
                    verdicts = [(n, v.status, v.because) for n, _, v in result.forms]
                    wrong.append((claim.id, seed, result.notes, verdicts))
        # Seeds share programs. Claims hardly do, and programs of all fill the memory.
        programs.program_of.cache_clear()
        jax.clear_caches()
    assert judged and not wrong, wrong
