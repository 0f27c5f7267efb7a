"""Run claims: share out the error rate, sample, judge, and compare each verdict with what is expected."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any

from proofs_check.claim import Claim
from proofs_check.engine.draws import Progress
from proofs_check.engine.result import ClaimResult
from proofs_check.engine.work import (
    FAMILY_ALPHA,
    Budget,
    Options,
    Work,
    forms_of,
    share,
)

_FORM_TRIALS = 500
"""A form or a control costs as much as so many trials: its program is compiled, its evidence is judged."""

__all__ = ["FAMILY_ALPHA", "Budget", "Options", "forms_of", "iterate", "run"]


def run(claims: Sequence[Claim], **options: Any) -> list[ClaimResult]:
    """Return the result of every claim that was run, in order, with the fields of `Options`; see `iterate`."""
    results = iterate(claims, Options(**options))
    return list({result.claim.id: result for result in results}.values())


def iterate(claims: Sequence[Claim], options: Options) -> Iterator[ClaimResult]:
    """Yield the result of one claim after the other.

    Every form and every control that draws gets the same share of `family_alpha`, so the probability that the run
    refutes any true form is at most that, over all claims, settings and looks. A tail bound is looked at after every
    `judge.LOOK` trials and stops where the evidence decides, at the latest after the most trials of the profile. Which
    claims are run changes the shares, and no random number.

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
    budget = options.budget
    alpha = share(claims, options.family_alpha)
    start = 0.0 if budget is None else budget.clock()

    def late() -> bool:
        return budget is not None and budget.clock() - start >= budget.seconds

    works = [Work(claim, options, alpha, late) for claim in claims]
    counter = _Counter(
        sum(
            work.samples.wanted + _FORM_TRIALS * len(forms_of(work.claim))
            for work in works
        ),
        options.progress,
    )
    for work in works:
        work.samples.drawn = counter.count

    def advance(work: Work) -> bool:
        if counter.stop.is_set() or late():
            return False
        first, changed = work.round == 0, work.advance()
        if first:
            counter.spare(work.samples.wanted - work.samples.there)
            counter.count(_FORM_TRIALS * len(forms_of(work.claim)))
        return changed

    begun = []
    try:
        for work, done in _in_order(advance, works, options.workers):
            if not done:
                break
            begun.append(work)
            yield work.result()
        while budget is not None and not late() and any(work.open for work in begun):
            for work, changed in _in_order(
                advance, [work for work in begun if work.open], options.workers
            ):
                if changed:
                    yield work.result()
    finally:
        counter.stop.set()


def _in_order(
    advance: Callable[[Work], bool], works: Sequence[Work], workers: int
) -> Iterator[tuple[Work, bool]]:
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
    """Tells `progress` how much work is done and how much there is at most, and claims when to stop."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.stop = threading.Event()
        self._done, self._total, self._progress, self._lock = (
            0,
            total,
            progress,
            threading.Lock(),
        )

    def count(self, work: int) -> None:
        """Count further work."""
        if self.stop.is_set():
            raise _Stopped
        with self._lock:
            self._done += work
            self._total = max(self._total, self._done)
            if self._progress is not None:
                self._progress(self._done, self._total)

    def spare(self, work: int) -> None:
        """Take off the total what is not needed after all."""
        with self._lock:
            self._total = max(self._total - work, self._done)
