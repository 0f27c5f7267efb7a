"""Every form of every claim and every control, without the statistics: trials are traced, the rest is judged.

The quick run of `proofs_check` draws the trials. Here every one of them is traced at all its shapes (in float32 at
those of one setting), every bound and number it is compared with is computed at all settings, and what needs no draws
is judged at its first one, or at all where that does not show what is expected; the slow run judges all at all.
"""

import contextlib
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern.draws import normal_rows
from proofs_check import register
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
    Setting,
    Tail,
    Undecided,
)
from proofs_check.engine import draws, judge, keys, programs, run

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


@functools.cache
def claims_in(dtype):
    with as_in_a_run(dtype):
        return register.claims()


@pytest.fixture(params=["float32", "float64"])
def every_claim(request, made):
    return request.param, claims_in(
        "float32"
    ) if request.param == "float32" else made.values()


def parts(claims, paper):
    """Yield the name of every form and control of a paper's claims, and what it is."""
    for claim in claims:
        if claim.id.startswith(f"{paper}:"):
            for name, part in run.forms_of(claim):
                yield f"{claim.id}, {name}", part


def faults_of_the_trace(trial, setting, real):
    """Return what is wrong with the program of a trial: its result, its precision, a key that is not used once."""
    numbers = {name: jax.ShapeDtypeStruct((), real) for name in setting.numbers}
    traced, result = jax.make_jaxpr(
        lambda *args: trial(*args, **setting.shapes), return_shape=True
    )(jax.random.key(0), setting.data, numbers)
    if result.shape != ():
        yield f"the result has shape {result.shape}"
    used = {id(v) for e in traced.jaxpr.eqns for v in e.invars} | {
        id(v) for v in traced.jaxpr.outvars
    }
    if id(traced.jaxpr.invars[0]) not in used:
        yield "the key is not used"
    yield from (
        f"a key is used twice: {uses}" for uses in keys.used_twice(traced.jaxpr)
    )
    if jnp.issubdtype(result.dtype, jnp.floating) and result.dtype != real:
        yield f"the result is {result.dtype}"


@pytest.mark.parametrize("paper", PAPERS)
def test_trials_are_programs_of_one_precision_that_use_their_key(every_claim, paper):
    dtype, claims = every_claim
    faults, seen = [], set()
    with as_in_a_run(dtype):
        for name, part in parts(claims, paper):
            one_key = isinstance(part, Control) and part.kind == "reused key"
            settings = part.settings if hasattr(part.statement, "trial") else ()
            for setting in (
                settings if dtype == "float64" else settings[:1]
            ):  # shapes do not choose the precision
                shapes = (
                    tuple(sorted(setting.shapes.items())),
                    str(jax.tree.map(jnp.shape, setting.data)),
                )
                if (
                    program := (part.statement.trial, one_key, shapes)
                ) not in seen:  # forms have trials in common
                    seen.add(program)
                    found = faults_of_the_trace(
                        part.statement.trial, setting, jnp.dtype(dtype)
                    )
                    found = [
                        fault for fault in found if not (one_key and "key" in fault)
                    ]
                    faults += [f"{name}, {setting.name}: {fault}" for fault in found]
    assert seen and not faults, faults


def test_faults_of_a_trace_are_seen():
    setting = Setting("here", np.ones(3, np.float32), {"tau": 1.0}, {"d": 2})

    def counts_and_rows(key, X, numbers, d):
        first, second = jax.random.split(key)
        counts = jax.random.multinomial(first, 9.0, jnp.full(3, 1 / 3))
        return counts @ normal_rows(first, 3, 1, float)[:, 0] + jax.random.normal(
            second
        )

    drawn = jax.jit(lambda key: jax.random.normal(key))

    def faults(trial):
        with as_in_a_run("float64"):
            return list(faults_of_the_trace(trial, setting, jnp.dtype("float64")))

    assert not faults(
        lambda key, X, numbers, d: jax.random.normal(key) * numbers["tau"]
    )
    assert faults(counts_and_rows) == [
        "a key is used twice: random_split and fold_in of many numbers"
    ]
    with as_in_a_run("float64"):
        several = jax.random.split(jax.random.key(0))
        many = jax.make_jaxpr(
            jax.vmap(lambda key: counts_and_rows(key, None, None, 2))
        )(several)
    assert len(keys.used_twice(many)) == 1
    assert not faults(
        lambda key, X, numbers, d: (
            drawn(jax.random.fold_in(key, 0)) * drawn(jax.random.fold_in(key, 1))
        )
    )
    assert len(faults(lambda key, X, numbers, d: drawn(key) * drawn(key))) == 1
    assert faults(lambda key, X, numbers, d: X.sum() * numbers["tau"]) == [
        "the key is not used"
    ]
    assert faults(lambda key, X, numbers, d: jax.random.normal(key, (d,))) == [
        "the result has shape (2,)"
    ]
    assert faults(
        lambda key, X, numbers, d: jax.random.normal(key, (), jnp.float32)
    ) == ["the result is float32"]


def numbers_of(statement, setting):
    """Yield what a statistic is compared with at a setting, each as (what, value, whether it makes sense)."""
    match statement:
        case Tail() | Calibrated():
            value, delta = judge.checked_bound(
                statement.bound if isinstance(statement, Tail) else statement.shape,
                setting,
            )
            yield "bound", value, value > 0 and np.isfinite(value)
            yield "delta", delta, 0 <= delta < 1
            if isinstance(statement, Tail) and statement.ceiling is not None:
                yield "ceiling", (most := statement.ceiling(setting)), most > 0
        case Expectation():
            yield "target", (target := statement.target(setting)), np.isfinite(target)
            yield "scale", (scale := statement.scale(setting)), 0 < scale < np.inf
            if statement.limits is not None:
                low, high = statement.limits(setting)
                yield "limits", (low, high), low <= target <= high
        case Law():
            values = np.asarray(statement.cdf(np.linspace(-50, 50, 201)))
            rises = np.all(np.diff(values) >= -1e-12)
            yield (
                "cdf",
                values,
                rises
                and values[0] >= 0
                and values[-1] <= 1
                and values[-1] - values[0] > 0.5,
            )
        case Rare():
            claimed, ceiling = (
                statement.log_claimed(setting),
                statement.log_ceiling(setting),
            )
            yield "log ceiling", ceiling, np.isfinite(ceiling)
            yield "log claimed", claimed, claimed < 0


@pytest.mark.parametrize("paper", PAPERS)
def test_what_statistics_are_compared_with_makes_sense(every_claim, paper):
    dtype, claims = every_claim
    with as_in_a_run(dtype):
        wrong = [
            f"{name}, {setting.name}: {what} is {value}"
            for name, part in parts(claims, paper)
            for setting in part.settings
            for what, value, sense in numbers_of(part.statement, setting)
            if not sense
        ]
    assert not wrong, wrong


@pytest.mark.parametrize("paper", PAPERS)
def test_what_needs_no_draws_is_as_expected(made, paper):
    """Exact statements, identities and inequalities, with their controls, judged as in a run."""

    def kept(part: Form | Control | None):
        return (
            part
            if part is not None and isinstance(part.statement, WITHOUT_DRAWS)
            else None
        )

    def first(part: Form | Control | None):
        return part and dataclasses.replace(part, settings=part.settings[:1])

    def changed(claim, change):
        forms = {
            name: change(getattr(claim, name)) for name in ("printed", "corrected")
        }
        return dataclasses.replace(
            claim, **forms, controls=tuple(filter(None, map(change, claim.controls)))
        )

    chosen = [
        changed(claim, kept)
        for claim in made.values()
        if claim.id.startswith(f"{paper}:")
    ]
    chosen, judged = (
        [c for c in chosen if run.forms_of(c)],
        functools.partial(run.run, profile=draws.QUICK, seed=0),
    )
    with as_in_a_run("float64"):
        at_first = judged([changed(claim, first) for claim in chosen])
        found = judged(
            [
                claim
                for claim, r in zip(chosen, at_first, strict=True)
                if not r.as_expected
            ]
        )
    unexpected = {
        f"{r.claim.id}: {r.notes} {[v.because for _, _, v in r.forms]}"
        for r in found
        if not r.as_expected
    }
    assert not unexpected and sum(len(r.controls) for r in at_first)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("dtype", "seeds"), [("float32", 3), ("float64", 4)])
@pytest.mark.parametrize("paper", PAPERS)
def test_no_true_statement_is_refuted_in_either_precision_and_every_control_is(
    paper, dtype, seeds
):
    """At the levels of a run of all claims: each seed has a false alarm with probability 0.001 at most."""
    claims, wrong, judged = claims_in(dtype), [], 0
    alpha = run.FAMILY_ALPHA / sum(len(run.forms_of(claim)) for claim in claims)
    for claim in claims:
        if not claim.id.startswith(f"{paper}:"):
            continue
        with as_in_a_run(dtype):
            for seed in range(seeds):
                share = alpha * len(run.forms_of(claim))
                (found,) = run.run(
                    [claim], profile=draws.QUICK, seed=seed, family_alpha=share
                )
                judged += len(found.forms)
                if not found.as_expected:
                    wrong.append(
                        (
                            claim.id,
                            seed,
                            found.notes,
                            [(n, v.status, v.because) for n, _, v in found.forms],
                        )
                    )
        programs.program_of.cache_clear()  # seeds share programs, claims hardly do, and those of all fill the memory
        jax.clear_caches()
    assert judged and not wrong, wrong
