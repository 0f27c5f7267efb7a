"""One claim at work: how its forms and controls get their trials, and what the verdicts on them say together."""

import contextlib
import dataclasses
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

import jax
import jax.numpy as jnp

from proofs_check.claim import (
    USERS,
    Claim,
    Control,
    Exact,
    Expectation,
    Form,
    Identity,
    Inequality,
    Rate,
    Tail,
    Undecided,
    Verdict,
)
from proofs_check.engine import judge
from proofs_check.engine.checkpoint import Checkpoint
from proofs_check.engine.draws import Profile, Progress
from proofs_check.engine.outlook import with_outlook
from proofs_check.engine.programs import Kept
from proofs_check.engine.result import ClaimResult, count_not_finite, rejected
from proofs_check.engine.samples import Samples

FAMILY_ALPHA = 1e-3
_COMPUTED = Identity | Inequality | Exact | Undecided
"""Statements that are judged without draws, or by inputs at which chance plays no part."""
_BALLS = threading.Lock()
"""python-flint has one working precision for all threads."""


@dataclass(frozen=True)
class Budget:
    """Time for a run that goes on where verdicts are open.

    Attributes
    ----------
    seconds : after so long no claim or round is begun any more, and no look but the first one at a setting.
    clock : seconds from some beginning on.
    """

    seconds: float
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, kw_only=True)
class Options:
    """How claims are run.

    Attributes
    ----------
    profile, seed : how much is run, and the seed, or the key, from which all keys come.
    family_alpha : the probability, at most, that any true form is refuted, over all claims, settings and looks.
    data : whether the settings are a user's own population.
    progress : `progress(done, total)` counts work, a trial as one; the total shrinks where some is not needed.
    checkpoint : holds blocks of trials that are not drawn again, and keeps every new one.
    budget : time to go on where verdicts are open.
    workers : so many claims are under way at once, each in a thread.
    kept : programs of earlier runs.
    """

    profile: Profile
    seed: int | jax.Array
    family_alpha: float = FAMILY_ALPHA
    data: bool = False
    progress: Progress | None = None
    checkpoint: Checkpoint | None = None
    budget: Budget | None = None
    workers: int = 1
    kept: Kept | None = None


@dataclass
class _Progress:
    """A form or a control at work: the trials that count, one a setting, and where the evidence is still open."""

    name: str
    form: Form | Control
    alpha: float
    most: tuple[int, ...] = ()
    counts: list[int] = field(default_factory=list)
    open: list[bool] = field(default_factory=list)
    round: int = 0
    look: int = 0
    refused: str = ""
    verdict: Verdict | None = None

    @property
    def must_fail(self) -> bool:
        """Tell whether the verdict is to be `refuted`."""
        return isinstance(self.form, Control) or self.form.expect == "refuted"

    @property
    def lacks_power(self) -> bool:
        """Tell whether the form must be refuted, is not, and more trials could do it."""
        missed = self.verdict is None or self.verdict.status != "refuted"
        return self.must_fail and missed and any(self.open)


class Work:
    """One claim at work: `advance` takes its forms further by a round, `result` says what is known."""

    def __init__(
        self, claim: Claim, options: Options, alpha: float, late: Callable[[], bool]
    ) -> None:
        """Register what every form needs; `late` tells whether the time is over."""
        self.claim, self.round = claim, 0
        self.samples = Samples(
            claim.id,
            options.seed,
            options.checkpoint or Checkpoint(),
            kept=options.kept,
        )
        self._options, self._late, self._seconds = options, late, 0.0
        names = [control.name for control in claim.controls]
        if len(set(names)) < len(names):
            raise ValueError(
                f"the controls of claim {claim.id} must have different names, got {names}"
            )
        self._forms = [_Progress(name, form, alpha) for name, form in forms_of(claim)]
        for progress in self._forms:
            with _named(claim, progress.name):
                try:
                    progress.most = options.profile.trials(progress.form, alpha)
                except judge.InvalidSetting as error:
                    if not options.data:
                        raise
                    progress.refused = str(error)
                else:
                    progress.counts, progress.open = (
                        [0] * len(progress.most),
                        [most > 0 for most in progress.most],
                    )
                    self.samples.want(progress.form, progress.most)

    @property
    def open(self) -> bool:
        """Tell whether more trials could change a verdict."""
        return any(any(progress.open) for progress in self._forms)

    def advance(self) -> bool:
        """Take every open form to twice the trials of the round before; tell whether a verdict was judged anew.

        The first round goes on with a form that must be refuted and is not, as often as the profile says.
        """
        start, changed = time.perf_counter(), False
        for progress in self._forms:
            with _named(self.claim, progress.name):
                changed |= self._advance(progress)
                # A table of a user's own may leave a control no power at all.
                doublings = 0 if self._options.data else self._options.profile.doublings
                while progress.lacks_power and progress.round <= doublings:
                    if not self._advance(progress):
                        break
        self.round += 1
        self._seconds += time.perf_counter() - start
        return changed

    def result(self) -> ClaimResult:
        """Return what is known after one round or more."""
        verdicts = {
            progress.name: progress.verdict
            for progress in self._forms
            if progress.verdict is not None
        }
        return _result(self.claim, verdicts, self._seconds, self._options)

    def _advance(self, progress: _Progress) -> bool:
        if progress.refused:
            progress.verdict = _not_testable(progress.refused, progress.alpha)
            return self.round == 0
        if progress.round and not any(progress.open):
            return False
        if isinstance(progress.form.statement, Tail):
            bound = progress.form.statement
            changed = [
                self._count_further(progress, bound, i)
                for i, is_open in enumerate(progress.open)
                if is_open
            ]
            if progress.round and not any(changed):
                return False
        elif progress.round:
            counts = [most << progress.round for most in progress.most]
            if not self._drawn_in_time(progress, counts):
                return False
            progress.counts, progress.look = counts, progress.round
        else:
            progress.counts = list(progress.most)
        self._judge(progress)
        progress.round += 1
        return True

    def _count_further(self, progress: _Progress, statement: Tail, index: int) -> bool:
        """Add looks at one setting of a tail bound until it is decided, the round is over or the time is."""
        setting = progress.form.settings[index]
        value, delta = judge.checked_bound(statement.bound, setting)
        level, most, before = (
            progress.alpha / len(progress.most),
            progress.most[index] << progress.round,
            progress.counts[index],
        )
        while (
            progress.open[index]
            and progress.counts[index] < most
            and not (progress.counts[index] and self._late())
        ):
            count = min(progress.counts[index] + judge.LOOK, most)
            sample = self.samples.first(progress.form, setting, count)
            progress.counts[index] = count
            # What is looked at anew is the end alone: the looks before it did not decide.
            progress.open[index] = not judge.decides(
                sample, value, delta, level, eps=_eps()
            )
        return progress.counts[index] > before

    def _drawn_in_time(self, progress: _Progress, counts: Sequence[int]) -> bool:
        for setting, count in zip(progress.form.settings, counts, strict=True):
            for reached in range(judge.LOOK, count + judge.LOOK, judge.LOOK):
                if self._late():
                    return False
                self.samples.first(progress.form, setting, min(reached, count))
        return True

    def _judge(self, progress: _Progress) -> None:
        form = progress.form
        if isinstance(form.statement, _COMPUTED):
            try:
                samples = [
                    self.samples.on_the_host(progress.name, form, setting)
                    for setting in form.settings
                ]
            except judge.InvalidSetting as error:
                if not self._options.data:
                    raise
                progress.verdict = _not_testable(str(error), progress.alpha)
                return
        else:
            asked = zip(form.settings, progress.counts, strict=True)
            samples = [
                self.samples.first(form, setting, count) for setting, count in asked
            ]
        progress.verdict = judge.judge(
            form,
            samples,
            progress.alpha,
            eps=_eps(),
            rule="sequential",
            look=progress.look,
        )
        if isinstance(form, Form) and not self._options.data:
            progress.verdict = with_outlook(form, enclosed(form, progress.verdict))
        if not isinstance(form.statement, Tail):
            of_a_mean = isinstance(form.statement, Expectation | Rate)
            decidable = not of_a_mean or form.statement.limits or form.statement.moment
            undecided = (
                {"consistent", "calibrated"} if progress.must_fail else {"consistent"}
            )
            goes_on = (
                progress.verdict.status in undecided
                and any(progress.most)
                and bool(decidable)
            )
            progress.open = [goes_on] * len(progress.open)
        elif (
            progress.round == 0
        ):  # what holds always is not shown by more examples, and an empty bound by none
            facts = [evidence.facts for evidence in progress.verdict.evidence]
            pairs = zip(progress.open, facts, strict=True)
            progress.open = [
                is_open and f["delta"] > 0 and not f["says_nothing"]
                for is_open, f in pairs
            ]


def enclosed(form: Form, verdict: Verdict) -> Verdict:
    """Return a verdict with what ball arithmetic says of the form, if it can be proved or disproved and flint is there.

    What was consistent is `proved`. What either of the two refutes is refuted: ball arithmetic speaks of the formula,
    and what was computed of the library too.
    """
    if form.enclosed is None or find_spec("flint") is None:
        return verdict
    with _BALLS:
        found = form.enclosed()
    fits = found.holds != (verdict.status == "refuted")
    status = (
        "proved" if found.holds and verdict.status == "consistent" else verdict.status
    )
    because = f"{verdict.because}; {'proved' if found.holds else 'disproved'} by ball arithmetic, {found.because}"
    if not fits:
        status = "refuted"
        because += ", which contradicts what was computed"
    return dataclasses.replace(
        verdict,
        status=status,
        because=because,
        facts={**verdict.facts, "digits": found.digits},
    )


def _not_testable(because: str, alpha: float) -> Verdict:
    return Verdict("not testable", because, math.nan, alpha, (), {"not_finite": 0})


def _eps() -> float:
    return float(jnp.finfo(jnp.result_type(float)).eps)


def share(claims: Sequence[Claim], family_alpha: float) -> float:
    """Return the error rate of each form and control that draws; the others spend none."""
    forms = [form for claim in claims for _, form in forms_of(claim)]
    return family_alpha / max(
        sum(not isinstance(form.statement, _COMPUTED) for form in forms), 1
    )


def forms_of(claim: Claim) -> list[tuple[str, Form | Control]]:
    """Return the forms and the controls of a claim, with names that differ."""
    return [
        *claim.forms.items(),
        *((f"control {control.name}", control) for control in claim.controls),
    ]


@contextlib.contextmanager
def _named(claim: Claim, name: str) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:
        error.add_note(f"raised by claim {claim.id}, {name}")
        raise


def _result(
    claim: Claim, verdicts: dict[str, Verdict], seconds: float, options: Options
) -> ClaimResult:
    controls = tuple(
        (control.name, verdicts[f"control {control.name}"])
        for control in claim.controls
    )
    odd = {
        name: count
        for name, verdict in verdicts.items()
        if (count := count_not_finite(verdict))
    }
    notes = [
        f"{name}: {count} statistics are not finite" for name, count in odd.items()
    ]
    powerless = [name for name, verdict in controls if not rejected(verdict)]
    notes += [
        f"control {name} not rejected: the check has no power here"
        for name in powerless
    ]
    forms, unexpected = {}, []
    for name, form in claim.forms.items():
        verdict = verdicts[name]
        if options.data and powerless and verdict.status == "certified":
            because = f"{verdict.because}; but a control is not rejected, so the check has no power here"
            verdict = dataclasses.replace(verdict, status="consistent", because=because)
        if (
            options.data
            and verdict.evidence
            and not any(one.setting.startswith(USERS) for one in verdict.evidence)
        ):
            because = f"not about your data, but at settings of the statement's own: {verdict.because}"
            verdict = dataclasses.replace(verdict, because=because)
        forms[name] = verdict
        lenient = options.profile.lenient
        if (
            _fails_on_data(name, form, verdict)
            if options.data
            else not _expected(form, verdict, lenient)
        ):
            unexpected.append(name)
    fine = not unexpected and (options.data or not powerless)
    both = forms.get("printed"), forms.get("corrected")
    return ClaimResult(
        claim, *both, controls, seconds, fine, tuple(notes), tuple(unexpected)
    )


def _expected(form: Form, verdict: Verdict, lenient: bool) -> bool:
    if not form.expect:  # a statement of anyone's
        return not count_not_finite(verdict)
    accepted = {form.expect} | (
        {"certified", "proved"} if form.expect == "consistent" else set()
    )
    if (
        lenient and form.expect == "certified" and hasattr(form.statement, "trial")
    ):  # too few trials are an excuse
        accepted.add("consistent")
    return verdict.status in accepted and not count_not_finite(verdict)


def _fails_on_data(name: str, form: Form, verdict: Verdict) -> bool:
    counts = name == "corrected" or form.expect == "identity"
    return counts and verdict.status == "refuted" and form.expect != "refuted"
