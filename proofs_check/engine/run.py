"""Run claims: share out the error rate, sample, judge, and compare each verdict with what is expected."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from dataclasses import dataclass, field

import jax.numpy as jnp

from proofs_check.claim import Claim, Control, Exact, Form, Identity, Inequality, Tail, Undecided, Verdict
from proofs_check.engine import judge
from proofs_check.engine.checkpoint import Checkpoint
from proofs_check.engine.draws import Profile, Progress
from proofs_check.engine.samples import Samples

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


def run(
    claims: Sequence[Claim],
    *,
    profile: Profile,
    seed: int,
    family_alpha: float = FAMILY_ALPHA,
    data: bool = False,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    budget: Budget | None = None,
    workers: int = 1,
) -> list[ClaimResult]:
    """Return the result of every claim that was run, in order; see `iterate`."""
    found = iterate(
        claims,
        profile=profile,
        seed=seed,
        family_alpha=family_alpha,
        data=data,
        progress=progress,
        checkpoint=checkpoint,
        budget=budget,
        workers=workers,
    )
    return list({result.claim.id: result for result in found}.values())


def iterate(
    claims: Sequence[Claim],
    *,
    profile: Profile,
    seed: int,
    family_alpha: float = FAMILY_ALPHA,
    data: bool = False,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    budget: Budget | None = None,
    workers: int = 1,
) -> Iterator[ClaimResult]:
    """Yield the result of one claim after the other.

    Every form and every control gets the same share of `family_alpha`, so the probability that the run refutes
    any true form is at most that, over all claims, settings and looks. A tail bound is looked at after every
    `judge.LOOK` trials and stops where the evidence decides, at the latest after the most trials of the profile;
    `progress(done, total)` counts trials, and the total shrinks where some are not needed. Which claims are run
    changes the shares, and no random number.

    A form is as expected where its verdict is the expected one, where it is `certified` and `consistent` was expected,
    and, in a lenient profile, the other way round. Every control must be refuted. Nothing that rests on statistics
    that are not finite is as expected.

    With `data` (a user's own population) only a refuted form can fail the run, and of the printed forms only
    identities; a form whose hypotheses the data do not satisfy is `not testable`; and where a control is not
    refuted the check has no power, so `certified` becomes `consistent`.

    Blocks of trials that `checkpoint` holds are not drawn again, and every new one is kept there. With a `budget`,
    claims whose verdicts are open afterwards are taken up again, in rounds that each double the trials, and yielded
    again when they changed, until the time is over or nothing is open; claims that the time does not reach are not
    yielded. With `workers` so many claims are under way at once, each in a thread: most of the time of a short run goes
    into compiling. Results come in the order of the claims all the same, and with the same numbers. Threads have the
    configuration of the process: `jax.enable_x64(...)` as a context of the caller does not reach them.

    Without `data`, raises ValueError where a claim is tried outside its hypotheses. The ValueError or TypeError of a
    claim carries a note with the claim's id.
    """
    alpha = family_alpha / max(sum(len(_parts(claim)) for claim in claims), 1)
    start = 0.0 if budget is None else budget.clock()

    def late() -> bool:
        return budget is not None and budget.clock() - start >= budget.seconds

    works = [_Work(claim, profile, seed, alpha, data, checkpoint or Checkpoint(), late) for claim in claims]
    counter = _Counter(sum(work.samples.wanted for work in works), progress)
    for work in works:
        work.samples.drawn = counter.count

    def advance(work: _Work) -> bool:
        if counter.stop.is_set() or late():
            return False
        first, changed = work.round == 0, work.advance()
        if first:
            counter.spare(work.samples.wanted - work.samples.there)
        return changed

    begun = []
    try:
        for work, done in _in_order(advance, works, workers):
            if not done:
                break
            begun.append(work)
            yield work.result()
        while budget is not None and not late() and any(work.open for work in begun):
            for work, changed in _in_order(advance, [work for work in begun if work.open], workers):
                if changed:
                    yield work.result()
    finally:
        counter.stop.set()


def _in_order(advance: Callable[[_Work], bool], works: Sequence[_Work], workers: int) -> Iterator[tuple[_Work, bool]]:
    """Advance all works, so many at once, and yield them in order. What is under way at the end ends with its block."""
    if workers <= 1:  # in the calling thread, with its configuration
        yield from ((work, advance(work)) for work in works)
        return
    pool = futures.ThreadPoolExecutor(workers)
    try:
        done = [pool.submit(advance, work) for work in works]
        for work, changed in zip(works, done, strict=True):
            yield work, changed.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class _Stopped(Exception):
    """The run has ended, and with it the claims that were under way."""


class _Counter:
    """Tells `progress` how many trials there are and how many there will be at most, and claims when to stop."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.stop = threading.Event()
        self._done, self._total, self._progress, self._lock = 0, total, progress, threading.Lock()

    def count(self, trials: int) -> None:
        """Count further trials."""
        if self.stop.is_set():
            raise _Stopped
        with self._lock:
            self._done += trials
            self._total = max(self._total, self._done)
            if self._progress is not None:
                self._progress(self._done, self._total)

    def spare(self, trials: int) -> None:
        """Take off the total what is not needed after all."""
        with self._lock:
            self._total = max(self._total - trials, self._done)


@dataclass
class _Part:
    """A form or a control at work: the trials that count, one a setting, and where the evidence is still open."""

    name: str
    part: Form | Control
    alpha: float
    most: tuple[int, ...] = ()
    counts: list[int] = field(default_factory=list)
    open: list[bool] = field(default_factory=list)
    look: int = 0
    refused: str = ""
    verdict: Verdict | None = None


class _Work:
    """One claim at work: `advance` takes its parts further by a round, `result` says what is known."""

    def __init__(
        self,
        claim: Claim,
        profile: Profile,
        seed: int,
        alpha: float,
        data: bool,
        checkpoint: Checkpoint,
        late: Callable[[], bool],
    ) -> None:
        self.claim, self.samples, self.round = claim, Samples(claim.id, seed, checkpoint), 0
        self._lenient, self._data, self._late, self._seconds = profile.lenient, data, late, 0.0
        names = [control.name for control in claim.controls]
        if len(set(names)) < len(names):
            raise ValueError(f"the controls of claim {claim.id} must have different names, got {names}")
        self._parts = [_Part(name, part, alpha) for name, part in _parts(claim)]
        for part in self._parts:
            with _named(claim, part.name):
                try:
                    part.most = profile.trials(part.part, alpha)
                except judge.InvalidSetting as error:
                    if not data:
                        raise
                    part.refused = str(error)
                else:
                    part.counts, part.open = [0] * len(part.most), [most > 0 for most in part.most]
                    self.samples.want(part.part, part.most)

    @property
    def open(self) -> bool:
        """Tell whether more trials could change a verdict."""
        return any(any(part.open) for part in self._parts)

    def advance(self) -> bool:
        """Take every open part to twice the trials of the round before; tell whether a verdict was judged anew."""
        start, changed = time.perf_counter(), False
        for part in self._parts:
            with _named(self.claim, part.name):
                changed |= self._advance(part)
        self.round += 1
        self._seconds += time.perf_counter() - start
        return changed

    def result(self) -> ClaimResult:
        """Return what is known after one round or more."""
        verdicts = {part.name: part.verdict for part in self._parts if part.verdict is not None}
        return _result(self.claim, verdicts, self._seconds, self._lenient, self._data)

    def _advance(self, part: _Part) -> bool:
        if part.refused:
            part.verdict = _not_testable(part.refused, part.alpha)
            return self.round == 0
        if self.round and not any(part.open):
            return False
        if isinstance(part.part.statement, Tail):
            bound = part.part.statement
            changed = [self._count_further(part, bound, i) for i, is_open in enumerate(part.open) if is_open]
            if self.round and not any(changed):
                return False
        elif self.round:
            counts = [most << self.round for most in part.most]
            if not self._drawn_in_time(part, counts):
                return False
            part.counts, part.look = counts, self.round
        else:
            part.counts = list(part.most)
        self._judge(part)
        return True

    def _count_further(self, part: _Part, statement: Tail, index: int) -> bool:
        """Add looks at one setting of a tail bound until it is decided, the round is over or the time is."""
        setting = part.part.settings[index]
        value, delta = judge.checked_bound(statement.bound, setting)
        level, most, before = part.alpha / len(part.most), part.most[index] << self.round, part.counts[index]
        while part.open[index] and part.counts[index] < most and not (part.counts[index] and self._late()):
            count = min(part.counts[index] + judge.LOOK, most)
            found = self.samples.first(part.part, setting, count)
            part.counts[index] = count
            # What is looked at anew is the end alone: the looks before it did not decide.
            part.open[index] = not judge.decides(found, value, delta, level, eps=_eps())
        return part.counts[index] > before

    def _drawn_in_time(self, part: _Part, counts: Sequence[int]) -> bool:
        for setting, count in zip(part.part.settings, counts, strict=True):
            for reached in range(judge.LOOK, count + judge.LOOK, judge.LOOK):
                if self._late():
                    return False
                self.samples.first(part.part, setting, min(reached, count))
        return True

    def _judge(self, part: _Part) -> None:
        form = part.part
        if isinstance(form.statement, Identity | Inequality | Exact | Undecided):
            try:
                found = [self.samples.on_the_host(part.name, form, setting) for setting in form.settings]
            except judge.InvalidSetting as error:
                if not self._data:
                    raise
                part.verdict = _not_testable(str(error), part.alpha)
                return
        else:
            asked = zip(form.settings, part.counts, strict=True)
            found = [self.samples.first(form, setting, count) for setting, count in asked]
        part.verdict = judge.judge(form, found, part.alpha, eps=_eps(), rule="sequential", look=part.look)
        if not isinstance(form.statement, Tail):
            goes_on = part.verdict.status == "consistent" and any(part.most)
            part.open = [goes_on] * len(part.open)
        elif self.round == 0:  # what holds always is not shown by more examples, and an empty bound by none
            facts = [evidence.facts for evidence in part.verdict.evidence]
            pairs = zip(part.open, facts, strict=True)
            part.open = [is_open and f["delta"] > 0 and not f["says_nothing"] for is_open, f in pairs]


def _not_testable(because: str, alpha: float) -> Verdict:
    return Verdict("not testable", because, math.nan, alpha, (), {"not_finite": 0})


def _eps() -> float:
    return float(jnp.finfo(jnp.result_type(float)).eps)


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
