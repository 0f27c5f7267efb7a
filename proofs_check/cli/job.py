"""A run in a folder: begun with a manifest, kept by blocks, ended with a report; and the same run resumed.

Nothing here imports jax before the request is known to be sound, so that bad usage is answered at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs_check import usage
from proofs_check.cli import own
from proofs_check.cli.request import Prepared, Request, from_manifest
from proofs_check.engine import checkpoint as checkpoints
from proofs_check.engine import documents, folders

if TYPE_CHECKING:
    from proofs_check.engine.checkpoint import Checkpoint
    from proofs_check.engine.result import ClaimResult
    from proofs_check.report.record import About

WORKERS = 4
"""So many claims are under way at once, if there are as many cores."""


def start(request: Request, output: Path | None, programs: Path | None = None) -> int:
    """Run into a new folder, or into an empty one that is named, and return the exit status.

    `programs` is the folder in which compiled ones are kept, None where none are.

    Raises UsageError, and then nothing was run.
    """
    if request.lengthscale is not None and request.data is None:
        raise usage.UsageError("--lengthscale needs --data")
    if request.files and request.data is not None:
        raise usage.UsageError(
            "--data is for the claims of the papers; read your table in the file of --claims"
        )
    if request.table and request.data is None:
        raise usage.UsageError(f"--{next(iter(request.table))} needs --data")
    if output is not None:
        folders.check(output)
    prepared = Prepared(request, programs)
    began = folders.now()
    folder = folders.make(output, "proofs_report", began, request.seed)
    try:
        blocks = checkpoints.create(folder, prepared.manifest(began))
    except checkpoints.CheckpointError as error:
        raise usage.UsageError(str(error)) from None
    except usage.StorageError as error:
        return _not_written(folder, error)
    return _execute(prepared, folder, blocks, began)


def resume(folder: Path, budget: float | None, programs: Path | None = None) -> int:
    """Go on with the run of a folder, and return the exit status.

    A finished run stays as it is, but for pages that are missing or not those of its report, unless a `budget`
    (minutes) is given to go on where verdicts are open. Raises UsageError where it cannot be resumed exactly, and then
    nothing is written.
    """
    try:
        manifest = checkpoints.read_manifest(folder)
        request = from_manifest(manifest, folder)
        report = _finished(folder)
        if report is not None and budget is None:
            print(
                f"{folder} holds a finished run; --budget MINUTES would go on where verdicts are open"
            )
            for name in write_pages(
                folder, report
            ):  # it may have been killed before them
                print(f"{name} was missing or of another report, and is written now")
            return usage.AS_EXPECTED if report["as_expected"] else usage.NOT_AS_EXPECTED
        if budget is not None:
            request = dataclasses.replace(request, budget=budget)
        prepared = Prepared(request, programs)
        prepared.check(manifest, folder)
        blocks = checkpoints.resume(folder)
    except checkpoints.CheckpointError as error:
        raise usage.UsageError(str(error)) from None
    except usage.StorageError as error:
        return _not_written(folder, error)
    if blocks.damaged:
        lines = f"{blocks.damaged} line(s) of {checkpoints.CHECKPOINT}"
        print(
            f"{usage.PROG}: {lines} are damaged and not used; their blocks are drawn again",
            file=sys.stderr,
        )
    return _execute(prepared, folder, blocks, str(manifest["started"]))


def write_pages(folder: Path, report: Mapping[str, Any]) -> list[str]:
    """Write those of the pages that are not as they follow from a report; return their names. StorageError.

    report.html needs jinja2; where that is not installed, there is report.md alone.
    """
    from proofs_check.engine import files
    from proofs_check.report import markdown

    pages = {"report.md": markdown.render(report)}
    try:
        from proofs_check.report import run_page
    except ImportError:
        print(
            f"{usage.PROG}: no report.html without jinja2: pip install jaxkern-verified[check]",
            file=sys.stderr,
        )
    else:
        pages["report.html"] = run_page.render(report)
    missing = [
        name for name, text in pages.items() if not files.holds(folder / name, text)
    ]
    for name in missing:
        files.write(folder / name, pages[name])
    return missing


def what_is_there(folder: Path) -> str:
    """Return the line that names the files of a report, its page first where there is one."""
    first, *others = [
        name
        for name in ("report.html", "report.md", "report.json")
        if (folder / name).exists()
    ]
    return f"Report: {folder / first} (and {', '.join(others)})"


def _execute(prepared: Prepared, folder: Path, blocks: Checkpoint, began: str) -> int:
    with contextlib.closing(blocks):  # and locked until then
        return _run_and_report(prepared, folder, blocks, began)


def _run_and_report(
    prepared: Prepared, folder: Path, blocks: Checkpoint, began: str
) -> int:
    from proofs_check.engine.draws import ANYONES, PROFILES
    from proofs_check.engine.run import FAMILY_ALPHA, Budget, Options, iterate
    from proofs_check.report import record, terminal

    request, claims = prepared.request, prepared.claims
    about = record.About(
        request.profile,
        request.seed,
        FAMILY_ALPHA,
        request.dtype,
        prepared.note,
        flags=prepared.flags,
        files=tuple(Path(file).name for file in request.files),
    )
    results: dict[str, ClaimResult] = {}
    budget = None if request.budget is None else Budget(60 * request.budget)
    first = time.monotonic()
    stopped = ""
    try:
        with (
            own.blamed(request.files),
            _as_interrupt(signal.SIGTERM),
            terminal.progress() as tell,
        ):
            options = Options(
                profile=(ANYONES if request.files else PROFILES)[request.profile],
                seed=request.seed,
                data=request.data is not None,
                progress=tell,
                checkpoint=blocks,
                budget=budget,
                workers=min(
                    (os.cpu_count() or 1) + 1, WORKERS
                ),  # one may wait for threads of XLA
                kept=prepared.kept(),
            )
            gc.freeze()  # what is there now stays, and would be looked through again and again
            for result in iterate(claims, options):
                results[result.claim.id] = result
        if budget is not None and time.monotonic() - first >= budget.seconds:
            stopped = "out of time"
    except KeyboardInterrupt:
        stopped = "interrupted"
        known = f"{len(results)} of {len(claims)} claim(s)"
        print(
            f"{usage.PROG}: interrupted after {known}; go on with: {usage.PROG} resume {folder}",
            file=sys.stderr,
        )
    except usage.StorageError as error:
        return _not_written(folder, error)
    finished, complete = list(results.values()), len(results) == len(claims)
    about = dataclasses.replace(about, stopped=stopped)
    failed = None
    try:
        _write(folder, prepared, finished, about, began, blocks.resumed, complete)
    except usage.StorageError as error:
        failed = error
    terminal.terminal(finished, about)
    if not complete and stopped == "out of time":
        print(
            f"The time ended after {len(finished)} of {len(claims)} claim(s); go on with: {usage.PROG} resume {folder}"
        )
    if failed is not None:
        return _not_written(folder, failed)
    print(what_is_there(folder))
    if request.files and any(
        "trials_to_decide" in verdict.facts
        for result in finished
        for _, _, verdict in result.forms
    ):
        print(
            f"More trials for open verdicts: {usage.PROG} resume {folder} --budget MINUTES. One claim alone has the "
            "whole error rate and needs fewer: --claim ID."
        )
    if stopped == "interrupted":
        return usage.INTERRUPTED
    return (
        usage.AS_EXPECTED
        if complete and all(result.as_expected for result in finished)
        else usage.NOT_AS_EXPECTED
    )


@contextlib.contextmanager
def _as_interrupt(number: signal.Signals) -> Iterator[None]:
    """Treat a signal like Ctrl-C, so that a run that is told to end writes what is known."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    try:
        yield
    finally:
        signal.signal(number, before)


def _not_written(folder: Path, error: usage.StorageError) -> int:
    begun = (folder / checkpoints.MANIFEST).exists()
    then = (
        f"go on with: {usage.PROG} resume {folder}"
        if begun
        else f"start again with: --output {folder}"
    )
    print(f"{usage.PROG}: {error}; make room and {then}", file=sys.stderr)
    return usage.NOT_WRITTEN


def _finished(folder: Path) -> dict[str, Any] | None:
    """Return the report of a run that came to its end, None where there is something left to do."""
    from proofs_check.report import document

    path = folder / "report.json"
    if not path.exists():
        return None
    try:
        report = document.read(path)
    except documents.DocumentError as error:
        raise usage.UsageError(str(error)) from None
    return report if report["complete"] and report["stopped"] != "interrupted" else None


def _write(
    folder: Path,
    prepared: Prepared,
    results: Sequence[ClaimResult],
    about: About,
    began: str,
    resumed: int,
    complete: bool,
) -> None:
    import platform

    import jax

    from proofs_check.engine.versions import versions
    from proofs_check.report import record

    run = {
        "started": began,
        "finished": folders.now(),
        "command": dataclasses.asdict(prepared.request),
        "budget_minutes": prepared.request.budget,
        "resumed": resumed,
        "folder": str(folder),
        "versions": versions(),
        "platform": platform.platform(),
        "device": str(jax.devices()[0].device_kind),
        "devices": jax.local_device_count(),
    }
    report = record.as_json(results, about, run=run, complete=complete)
    documents.write_json(folder / "report.json", report)
    write_pages(folder, report)
