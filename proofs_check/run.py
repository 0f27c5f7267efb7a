"""Run claims: share out the error rate, sample, judge, and compare each verdict with what is expected."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from proofs_check import judge
from proofs_check.claim import Claim, Control, Form, Inequality, Verdict
from proofs_check.runner import Profile, Progress, Samples, derive_key, name_of

FAMILY_ALPHA = 1e-3


@dataclass(frozen=True)
class ClaimResult:
    """What a run says of one claim.

    Attributes
    ----------
    printed, corrected : the verdicts of the two forms, None where the claim has no such form.
    controls : name and verdict of each control, in the order of the claim.
    seconds : time that sampling and judging took.
    as_expected : False where the claim fails the run.
    notes : one line for each thing that a reader should know beside the verdicts.
    unexpected : the forms, "printed" or "corrected", that fail the run.
    """

    claim: Claim
    printed: Verdict | None
    corrected: Verdict | None
    controls: tuple[tuple[str, Verdict], ...]
    seconds: float
    as_expected: bool
    notes: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()

    @property
    def forms(self) -> tuple[tuple[str, Form, Verdict], ...]:
        """Return name, form and verdict of the forms that the claim has."""
        pairs = (("printed", self.claim.printed, self.printed), ("corrected", self.claim.corrected, self.corrected))
        return tuple((name, form, verdict) for name, form, verdict in pairs if form is not None and verdict is not None)


def run(
    claims: Sequence[Claim],
    *,
    profile: Profile,
    seed: int,
    family_alpha: float = FAMILY_ALPHA,
    data: bool = False,
    progress: Progress | None = None,
) -> list[ClaimResult]:
    """Return the result of every claim, in order; see `iterate`."""
    return list(iterate(claims, profile=profile, seed=seed, family_alpha=family_alpha, data=data, progress=progress))


def iterate(
    claims: Sequence[Claim],
    *,
    profile: Profile,
    seed: int,
    family_alpha: float = FAMILY_ALPHA,
    data: bool = False,
    progress: Progress | None = None,
) -> Iterator[ClaimResult]:
    """Yield the result of one claim after the other.

    Every form and every control gets the same share of `family_alpha`, so the probability that the run refutes
    any true form is at most that. The numbers of trials are fixed for all claims before the first trial;
    `progress(done, total)` counts trials. Which claims are run changes the shares, and no random number.

    A form is as expected where its verdict is the expected one, where it is `certified` and `consistent` was expected,
    and, in a lenient profile, the other way round. Every control must be refuted. Nothing that rests on statistics
    that are not finite is as expected.

    With `data` (a user's own population) only a refuted form can fail the run, and of the printed forms only
    identities; a form whose hypotheses the data do not satisfy is `not testable`; and where a control is not
    refuted the check has no power, so `certified` becomes `consistent`.

    Without `data`, raises ValueError where a claim is tried outside its hypotheses. The ValueError or TypeError of a
    claim carries a note with the claim's id.
    """
    alpha = family_alpha / max(sum(len(_parts(claim)) for claim in claims), 1)
    plans = [_plan(claim, profile, seed, alpha, data) for claim in claims]
    total, done = sum(plan.samples.total for plan in plans), 0

    def count(trials: int) -> None:
        nonlocal done
        done += trials
        if progress is not None:
            progress(done, total)

    for plan in plans:
        start = time.perf_counter()
        verdicts = {name: _verdict(plan, name, part, alpha, count) for name, part in _parts(plan.claim)}
        yield _result(plan.claim, verdicts, time.perf_counter() - start, profile.lenient, data)


@dataclass(frozen=True)
class _Plan:
    """The numbers of trials of each part of a claim, or why the part cannot be tried."""

    claim: Claim
    samples: Samples
    counts: dict[str, tuple[int, ...]]
    refused: dict[str, str]


def _parts(claim: Claim) -> list[tuple[str, Form | Control]]:
    forms = (("printed", claim.printed), ("corrected", claim.corrected))
    named = [(name, form) for name, form in forms if form is not None]
    return [*named, *((f"control {control.name}", control) for control in claim.controls)]


@contextlib.contextmanager
def _named(claim: Claim, name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"raised by claim {claim.id}, {name}")
        raise


def _plan(claim: Claim, profile: Profile, seed: int, alpha: float, data: bool) -> _Plan:
    names = [control.name for control in claim.controls]
    if len(set(names)) < len(names):
        raise ValueError(f"the controls of claim {claim.id} must have different names, got {names}")
    plan = _Plan(claim, Samples(claim.id, seed), {}, {})
    for name, part in _parts(claim):
        with _named(claim, name):
            try:
                plan.counts[name] = profile.trials(part, alpha)
            except judge.InvalidSetting as error:
                if not data:
                    raise
                plan.refused[name] = str(error)
            else:
                plan.samples.want(part, plan.counts[name])
    return plan


def _verdict(plan: _Plan, name: str, part: Form | Control, alpha: float, count: Callable[[int], None]) -> Verdict:
    if name in plan.refused:
        return Verdict("not testable", plan.refused[name], math.nan, alpha, (), {"not_finite": 0})
    eps = float(jnp.finfo(jnp.result_type(float)).eps)
    with _named(plan.claim, name):
        if isinstance(part.statement, Inequality):
            samples = _sides(plan.samples, part, part.statement)
        else:
            samples = plan.samples.draw(part, plan.counts[name], progress=count)
        return judge.judge(part, samples, alpha, eps=eps)


def _sides(samples: Samples, part: Form | Control, statement: Inequality) -> list[np.ndarray]:
    """Return the two sides of an inequality at every setting; inputs that are drawn are the same for all parts."""
    found = []
    for setting in part.settings:
        key = derive_key(samples.seed, samples.claim_id, name_of(statement.sides), setting.name)
        found.append(judge.two_sides(statement.sides(key, setting), setting))
    return found


def _result(claim: Claim, verdicts: dict[str, Verdict], seconds: float, lenient: bool, data: bool) -> ClaimResult:
    controls = tuple((control.name, verdicts[f"control {control.name}"]) for control in claim.controls)
    notes = [f"{name}: {_bad(v)} statistics are not finite" for name, v in verdicts.items() if _bad(v)]
    powerless = [name for name, verdict in controls if not rejected(verdict)]
    notes += [f"control {name} not rejected: the check has no power here" for name in powerless]
    forms, unexpected = {}, []
    for name, form in (("printed", claim.printed), ("corrected", claim.corrected)):
        if form is None:
            continue
        verdict = verdicts[name]
        if data and powerless and verdict.status == "certified":
            because = f"{verdict.because}; but a control is not rejected, so the check has no power here"
            verdict = dataclasses.replace(verdict, status="consistent", because=because)
        forms[name] = verdict
        if _fails_on_data(name, form, verdict) if data else not _expected(form, verdict, lenient):
            unexpected.append(name)
    fine = not unexpected and (data or not powerless)
    return ClaimResult(
        claim,
        forms.get("printed"),
        forms.get("corrected"),
        controls,
        seconds,
        fine,
        tuple(notes),
        tuple(unexpected),
    )


def _expected(form: Form, verdict: Verdict, lenient: bool) -> bool:
    accepted = {form.expect} | ({"certified"} if form.expect == "consistent" else set())
    if lenient and form.expect == "certified":
        accepted.add("consistent")
    return verdict.status in accepted and not _bad(verdict)


def rejected(verdict: Verdict) -> bool:
    """Tell whether the verdict on a control shows that the check has power: refuted, by finite statistics."""
    return verdict.status == "refuted" and not _bad(verdict)


def _fails_on_data(name: str, form: Form, verdict: Verdict) -> bool:
    counts = name == "corrected" or form.expect == "identity"
    return counts and verdict.status == "refuted" and form.expect != "refuted"


def _bad(verdict: Verdict) -> int:
    return int(verdict.facts.get("not_finite", 0))
