"""What a run found, as a table for a terminal, and how far it is."""

import contextlib
import math
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TextIO

from proofs_check.claim import Verdict
from proofs_check.engine.draws import Progress
from proofs_check.engine.result import ClaimResult, rejected
from proofs_check.report import console
from proofs_check.report.document import TONES, headline
from proofs_check.report.record import About

COLUMNS = (
    "claim",
    "where",
    "form",
    "verdict",
    "expected",
    "slack",
    "trials",
    "controls",
    "seconds",
)
_COLOURS_OF = {
    "good": "green",
    "fine": "cyan",
    "bad": "red",
    "empty": "magenta",
    "open": "yellow",
}
COLOURS = {status: _COLOURS_OF[tone] for status, tone in TONES.items()}
_NUMERIC = {"slack", "trials", "controls", "seconds"}
_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_TO_SETTLE = 1.0
_SECONDS_TO_ESTIMATE = 5.0
_SHARE_TO_ESTIMATE = 0.05


def terminal(
    results: Sequence[ClaimResult], about: About, *, file: TextIO | None = None
) -> None:
    """Print the table of verdicts and, below it, the reason of each that a reader will ask about.

    A coloured table where rich is installed, plain text otherwise; no colours where `file` (standard output) is not
    a terminal.
    """
    file = sys.stdout if file is None else file
    own = bool(about.files)
    rows = [row for result in results for row in _rows(result)]
    columns: tuple[str, ...] = COLUMNS
    if own:  # one form, which nobody printed
        columns = (*COLUMNS[:2], *COLUMNS[3:])
        rows = [(*row[:2], *row[3:]) for row in rows]
    lines = [line for result in results for line in _explanations(result, own=own)]
    closing = _closing(results, about)
    console.show(
        columns, rows, [*lines, *([""] if lines else []), *closing],
        numeric=_NUMERIC, colours={"verdict": COLOURS}, file=file,
    )  # fmt: skip


@contextlib.contextmanager
def progress(file: TextIO | None = None) -> Iterator[Progress]:
    """Give a callback (done, total): a bar on a terminal, a line every few seconds elsewhere."""
    file = sys.stderr if file is None else file
    last = time.monotonic()
    estimate = TimeLeft()

    def line(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        left = estimate.update(now, done, total)
        if now - last >= _SECONDS_BETWEEN_LINES:
            last = now
            print(
                ", ".join(filter(None, (f"proofs-check: {done / total:.0%}", left))),
                file=file,
                flush=True,
            )

    try:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Bar
    except ImportError:
        yield line
        return
    if not file.isatty():
        yield line
        return
    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[left]}"))
    with Bar(*columns, console=Console(file=file), transient=True) as bar:
        task = bar.add_task("", total=None, left="")

        def move(done: int, total: int) -> None:
            bar.update(
                task,
                completed=done,
                total=total,
                left=estimate.update(time.monotonic(), done, total),
            )

        yield move


class TimeLeft:
    """How long a run will still take, by its mean speed so far.

    Work that a claim no longer needs counts as done, so later claims are taken to stop as early as the ones
    before. The clock starts at the first report, which ends the first compilation, and anew where there is clearly more
    to do than before. What comes within its first second (trials that a resumed run finds done) is no measure of
    speed. Nothing is said before 5 seconds and 5 percent of the work.
    """

    def __init__(self) -> None:
        """Begin with no report."""
        self._start = math.nan
        self._most = self._remaining = 0

    def update(self, now: float, done: int, total: int) -> str:
        """Return "about 3 min 20 s left", or "" where it cannot be told; `now` is in seconds, from any origin."""
        remaining = max(total - done, 0)
        if (
            math.isnan(self._start)
            or remaining > self._remaining + _SHARE_TO_ESTIMATE * self._most
        ):
            self._start = now
        self._remaining, elapsed = remaining, now - self._start
        if elapsed < _SECONDS_TO_SETTLE:
            self._most = remaining
        finished = self._most - remaining
        if (
            elapsed < _SECONDS_TO_ESTIMATE
            or finished <= _SHARE_TO_ESTIMATE * self._most
            or remaining == 0
        ):
            return ""
        return f"about {_duration(elapsed * remaining / finished)} left"


def _duration(seconds: float) -> str:
    """Return a time in words, as exact as an estimate can be."""
    if seconds < 59.5:
        return f"{max(round(seconds), 1)} s"
    if seconds < 3595:
        minutes, rest = divmod(10 * round(seconds / 10), 60)
        return f"{minutes} min" + (f" {rest} s" if rest else "")
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h" + (f" {minutes} min" if minutes else "")


def _rows(result: ClaimResult) -> list[tuple[str, ...]]:
    claim = result.claim
    controls = f"{sum(rejected(verdict) for _, verdict in result.controls)}/{len(result.controls)}"
    return [
        (
            claim.id,
            claim.where,
            name,
            verdict.status,
            form.expect or "-",
            "-" if math.isnan(verdict.slack) else f"{verdict.slack:.3g}",
            str(_trials(verdict)),
            controls,
            f"{result.seconds:.1f}",
        )
        for name, form, verdict in result.forms
    ]


def _explanations(result: ClaimResult, *, own: bool) -> list[str]:
    lines = []
    asked = ["refuted", "vacuous", "not testable", *["consistent"] * own]
    for name, form, verdict in result.forms:
        if name in result.unexpected or verdict.status in asked:
            extra = ""
            if form.expect and verdict.status != form.expect:
                extra = f" (expected {form.expect})"
            named = result.claim.id if own else f"{result.claim.id} {name}"
            lines.append(f"{named}, {verdict.status}{extra}: {verdict.because}")
    lines += [f"{result.claim.id}: {note}" for note in result.notes]
    if lines and result.claim.because:
        lines.append(f"{result.claim.id}: {result.claim.because}")
    if not result.as_expected:
        lines.append(f"{result.claim.id}: NOT AS EXPECTED")
    return lines


def _closing(results: Sequence[ClaimResult], about: About) -> list[str]:
    wrong = [result.claim.id for result in results if not result.as_expected]
    differing = f"not as expected: {', '.join(wrong)}" if wrong else ""
    statuses = [
        next((verdict.status for _, _, verdict in result.forms), "not tried")
        for result in results
    ]
    lines = [
        f"{headline(statuses, differing, own=bool(about.files))}.",
        *_controls(results),
        f"A true statement is refuted with probability at most {about.family_alpha:g} in the whole run, over all "
        f"claims, settings and looks. Profile {about.profile}, seed {about.seed}, {about.dtype}.",
    ]
    if about.stopped:
        lines.insert(0, f"The run was {about.stopped}.")
    return [*lines, about.note] if about.note else lines


def _controls(results: Sequence[ClaimResult]) -> list[str]:
    held = [rejected(verdict) for result in results for _, verdict in result.controls]
    kinds = {control.kind for result in results for control in result.claim.controls}
    return (
        [f"controls: {sum(held)} of {len(held)} rejected, of {len(kinds)} kind(s)"]
        if held
        else []
    )


def _trials(verdict: Verdict) -> int:
    return sum(evidence.trials for evidence in verdict.evidence)
