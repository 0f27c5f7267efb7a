"""A run in a folder: begun with a manifest, kept by blocks, ended with a report; and the same run resumed.

Nothing here imports jax before the request is known to be sound, so that bad usage is answered at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs_check.cli import folders
from proofs_check.engine import checkpoint as checkpoints
from proofs_check.engine.versions import versions
from proofs_check.usage import (
    AS_EXPECTED,
    INTERRUPTED,
    NOT_AS_EXPECTED,
    NOT_WRITTEN,
    PROG,
    StorageError,
    UsageError,
)

if TYPE_CHECKING:
    from proofs_check.claim import Claim
    from proofs_check.engine.checkpoint import Checkpoint
    from proofs_check.engine.run import ClaimResult
    from proofs_check.report.terminal import About

WORKERS = 4
"""So many claims are under way at once, if there are as many cores."""

FLOAT32 = (
    "in float32 numbers that are meant to be equal may differ by 0.0012 of what is compared (10^4 epsilons; some "
    "claims state another number); the counts of samples beyond 10^7 spread more than they should (twice at 10^12) and "
    "differences carry rounding, so tail bounds are judged more strictly there than they deserve"
)

_FLAGS = (
    "jax_default_prng_impl", "jax_threefry_partitionable", "jax_threefry_gpu_kernel_lowering", "jax_random_seed_offset",
    "jax_high_dynamic_range_gumbel", "jax_enable_x64", "jax_explicit_x64_dtypes",
    "jax_default_matmul_precision", "jax_allow_f16_reductions", "jax_use_magma", "jax_disable_jit",
    "jax_disable_most_optimizations", "jax_optimization_level", "jax_exec_time_optimization_effort",
    "jax_memory_fitting_level", "jax_memory_fitting_effort",
)  # fmt: skip
_VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "NVIDIA_TF32_OVERRIDE")
_HARMLESS = ("--xla_force_host_platform_device_count", "--xla_dump_")


@dataclass(frozen=True)
class Request:
    """What a run was asked for: all that its numbers depend on, but for the program itself.

    `budget` is in minutes, None for a run that takes the trials of its profile and no more.
    """

    profile: str = "quick"
    seed: int = 0
    dtype: str = "float64"
    paper: str | None = None
    claim: tuple[str, ...] = ()
    margin: bool = False
    data: str | None = None
    lengthscale: float | None = None
    budget: float | None = None


def start(request: Request, output: Path | None) -> int:
    """Run into a new folder, or into an empty one that is named, and return the exit status.

    Raises UsageError, and then nothing was run.
    """
    if request.lengthscale is not None and request.data is None:
        raise UsageError("--lengthscale needs --data")
    if output is not None:
        folders.check(output)
    prepared = _Prepared(request)
    began = folders.now()
    folder = folders.make(output, "proofs_report", began, request.seed)
    try:
        blocks = checkpoints.create(folder, prepared.manifest(began))
    except checkpoints.CheckpointError as error:
        raise UsageError(str(error)) from None
    except StorageError as error:
        return _not_written(folder, error)
    return _execute(prepared, folder, blocks, began)


def resume(folder: Path, budget: float | None) -> int:
    """Go on with the run of a folder, and return the exit status.

    A finished run stays as it is, but for pages that are missing or not those of its report, unless a `budget`
    (minutes) is given to go on where verdicts are open. Raises UsageError where it cannot be resumed exactly, and then
    nothing is written.
    """
    try:
        manifest = checkpoints.read_manifest(folder)
        request = _request(manifest, folder)
        found = _finished(folder)
        if found is not None and budget is None:
            print(f"{folder} holds a finished run; --budget MINUTES would go on where verdicts are open")
            for name in write_pages(folder, found):  # it may have been killed before them
                print(f"{name} was missing or of another report, and is written now")
            return AS_EXPECTED if found["as_expected"] else NOT_AS_EXPECTED
        if budget is not None:
            request = dataclasses.replace(request, budget=budget)
        prepared = _Prepared(request)
        prepared.check(manifest, folder)
        blocks = checkpoints.resume(folder)
    except checkpoints.CheckpointError as error:
        raise UsageError(str(error)) from None
    except StorageError as error:
        return _not_written(folder, error)
    if blocks.damaged:
        lines = f"{blocks.damaged} line(s) of {checkpoints.CHECKPOINT}"
        print(f"{PROG}: {lines} are damaged and not used; their blocks are drawn again", file=sys.stderr)
    return _execute(prepared, folder, blocks, str(manifest["started"]))


def select(claims: Sequence[Claim], paper: str | None, wanted: Sequence[str], margin: bool = True) -> list[Claim]:
    """Return the claims of a paper that are named, or that begin with what is named, in the order of the register.

    Where none is named, those of the margin are left out unless `margin`.
    """
    if paper is not None:
        papers = sorted({claim.paper for claim in claims})
        if paper not in papers:
            raise UsageError(f"no claims of a paper {paper!r}; there are {', '.join(papers)}")
        claims = [claim for claim in claims if claim.paper == paper]
    if not wanted:
        return [claim for claim in claims if margin or not claim.marginal]
    ids = [claim.id for claim in claims]
    chosen: set[str] = set()
    for name in wanted:
        found = [name] if name in ids else [i for i in ids if name and i.startswith(name)]
        if not found:
            close = difflib.get_close_matches(name, ids, n=4, cutoff=0.4)
            hint = f"; did you mean {', '.join(close)}?" if close else f"; see {PROG} list"
            raise UsageError(f"no claim {name!r}{f' of {paper}' if paper else ''}{hint}")
        chosen.update(found)
    return [claim for claim in claims if claim.id in chosen]


def known_claims(population: Any = None, profile: str = "quick") -> list[Claim]:
    """Return the claims of the registry."""
    from proofs_check.register import claims

    return list(claims(data=population, profile=profile))


def set_precision(dtype: str) -> None:
    """Set the default precision of the process."""
    import jax

    jax.config.update("jax_enable_x64", dtype == "float64")


def write_pages(folder: Path, found: Mapping[str, Any]) -> list[str]:
    """Write those of the pages that are not as they follow from a report; return their names. StorageError.

    report.html needs jinja2; where that is not installed, there is report.md alone.
    """
    from proofs_check.engine import files
    from proofs_check.report import markdown

    pages = {"report.md": markdown.render(found)}
    try:
        from proofs_check.report import page
    except ImportError:
        print(f"{PROG}: no report.html without jinja2: pip install jaxkern-verified[check]", file=sys.stderr)
    else:
        pages["report.html"] = page.render(found)
    missing = [name for name, text in pages.items() if not files.holds(folder / name, text)]
    for name in missing:
        files.write(folder / name, pages[name])
    return missing


class _Prepared:
    """A request that is sound: its data read, its claims chosen."""

    def __init__(self, request: Request) -> None:
        self.request = request
        rows = _rows(request.data)
        self._data_digest = None if request.data is None else checkpoints.digest_of([Path(request.data)])
        set_precision(request.dtype)
        population = _population(rows, request)
        self.claims = select(known_claims(population, request.profile), request.paper, request.claim, request.margin)
        notes = [] if population is None else [str(population.note)]
        if request.dtype == "float32":
            notes.append(FLOAT32)
        self.note = "; ".join(notes)
        self.flags = flags()

    def manifest(self, began: str) -> dict[str, Any]:
        """Return all that must be equal where the run is resumed."""
        asked = dataclasses.asdict(self.request)
        if self.request.data is not None:
            asked["data"] = str(Path(self.request.data).absolute())
        return {
            "started": began,
            "request": asked,
            "claims": [claim.id for claim in self.claims],
            "data": self._data_digest,
            "program": checkpoints.digest_of_program(),
            "versions": versions(),
            "platform": _platform(),
            "flags": self.flags,
        }

    def check(self, manifest: Mapping[str, Any], folder: Path) -> None:
        """Raise UsageError where resuming the run of a manifest would mix numbers that do not belong together."""
        mine = self.manifest("")
        what = {
            "data": "the data file has changed",
            "versions": "other versions of the libraries are installed",
            "program": "the program has changed",
            "platform": "the device is of another kind",
            "claims": "the claims are not the same",
        }
        for key, text in what.items():
            if mine[key] != manifest.get(key):
                raise UsageError(f"{folder} cannot be resumed: {text} since it was started; start a new run")
        for name, here in self.flags.items():
            before = manifest["flags"].get(name)
            if here != before:
                raise UsageError(
                    f"{folder} cannot be resumed: it was started with {name}={before!r}, which is {here!r} now; set "
                    f"this variable as it was, or start a new run"
                )


def _execute(prepared: _Prepared, folder: Path, blocks: Checkpoint, began: str) -> int:
    with contextlib.closing(blocks):  # and locked until then
        return _run_and_report(prepared, folder, blocks, began)


def _run_and_report(prepared: _Prepared, folder: Path, blocks: Checkpoint, began: str) -> int:
    from proofs_check.engine.draws import PROFILES
    from proofs_check.engine.run import FAMILY_ALPHA, Budget, iterate
    from proofs_check.report import terminal

    request, claims = prepared.request, prepared.claims
    about = terminal.About(
        request.profile, request.seed, FAMILY_ALPHA, request.dtype, prepared.note, flags=prepared.flags
    )
    results: dict[str, ClaimResult] = {}
    budget = None if request.budget is None else Budget(60 * request.budget)
    first = time.monotonic()
    stopped = ""
    try:
        with _as_interrupt(signal.SIGTERM), terminal.progress() as tell:
            for result in iterate(
                claims,
                profile=PROFILES[request.profile],
                seed=request.seed,
                data=request.data is not None,
                progress=tell,
                checkpoint=blocks,
                budget=budget,
                workers=min(os.cpu_count() or 1, WORKERS),
            ):
                results[result.claim.id] = result
        if budget is not None and time.monotonic() - first >= budget.seconds:
            stopped = "out of time"
    except KeyboardInterrupt:
        stopped = "interrupted"
        known = f"{len(results)} of {len(claims)} claim(s)"
        print(f"{PROG}: interrupted after {known}; go on with: {PROG} resume {folder}", file=sys.stderr)
    except StorageError as error:
        return _not_written(folder, error)
    found, complete = list(results.values()), len(results) == len(claims)
    about = dataclasses.replace(about, stopped=stopped)
    failed = None
    try:
        _write(folder, prepared, found, about, began, blocks.resumed, complete)
    except StorageError as error:
        failed = error
    terminal.terminal(found, about)
    if not complete and stopped == "out of time":
        print(f"The time ended after {len(found)} of {len(claims)} claim(s); go on with: {PROG} resume {folder}")
    if failed is not None:
        return _not_written(folder, failed)
    print(f"Report: {folder / 'report.html'} (and report.json, report.md)")
    if stopped == "interrupted":
        return INTERRUPTED
    return AS_EXPECTED if complete and all(result.as_expected for result in found) else NOT_AS_EXPECTED


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


def _not_written(folder: Path, error: StorageError) -> int:
    begun = (folder / checkpoints.MANIFEST).exists()
    then = f"go on with: {PROG} resume {folder}" if begun else f"start again with: --output {folder}"
    print(f"{PROG}: {error}; make room and {then}", file=sys.stderr)
    return NOT_WRITTEN


def _request(manifest: Mapping[str, Any], folder: Path) -> Request:
    from proofs_check.report.document import fault_of

    shape = {"started": str, "request": _REQUEST, "flags": dict}
    if fault_of(manifest, shape, "manifest") or set(manifest["request"]) != set(_REQUEST):
        raise UsageError(f"{folder / checkpoints.MANIFEST} is not as this version writes it")
    return Request(**{**manifest["request"], "claim": tuple(manifest["request"]["claim"])})


def _is_seed(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**32


def _is_positive_or_null(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and 0 < value < math.inf)


# The shape of a request in a manifest, as `proofs_check.report.document.fault_of` asks for it.
_REQUEST: Mapping[str, Any] = {
    "profile": frozenset({"quick", "full"}),
    "seed": _is_seed,
    "dtype": frozenset({"float32", "float64"}),
    "paper": str | None,
    "claim": [str],
    "margin": bool,
    "data": str | None,
    **dict.fromkeys(("lengthscale", "budget"), _is_positive_or_null),
}


def _finished(folder: Path) -> dict[str, Any] | None:
    """Return the report of a run that came to its end, None where there is something left to do."""
    from proofs_check.report import document

    path = folder / "report.json"
    if not path.exists():
        return None
    try:
        found = document.read(path)
    except document.ReportError as error:
        raise UsageError(str(error)) from None
    return found if found["complete"] and found["stopped"] != "interrupted" else None


def _rows(path: str | None) -> Any:
    if path is None:
        return None
    from proofs_check.engine.reading import DataError, load

    try:
        return load(Path(path))
    except DataError as error:
        raise UsageError(str(error)) from None


def _population(rows: Any, request: Request) -> Any:
    if rows is None:
        return None
    from proofs_check.papers.populations import from_rows

    try:
        return from_rows(rows, lengthscale=request.lengthscale, seed=request.seed)
    except ValueError as error:
        raise UsageError(f"{request.data}: {error}") from None


def flags() -> dict[str, Any]:
    """Return the settings of JAX and XLA on which numbers may depend, by the variables that set them."""
    import jax

    found = {name.upper(): getattr(jax.config, name, None) for name in _FLAGS}
    for name in _VARIABLES:
        found[name] = " ".join(sorted(w for w in os.environ.get(name, "").split() if not w.startswith(_HARMLESS)))
    return found


def _platform() -> str:
    import jax

    return str(jax.devices()[0].platform)


def _write(
    folder: Path,
    prepared: _Prepared,
    results: Sequence[ClaimResult],
    about: About,
    began: str,
    resumed: int,
    complete: bool,
) -> None:
    import platform

    import jax

    from proofs_check.report import terminal

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
    found = terminal.as_json(results, about, run=run, complete=complete)
    terminal.write_json(folder / "report.json", found)
    write_pages(folder, found)
