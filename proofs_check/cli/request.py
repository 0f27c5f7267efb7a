"""What a run is asked for: a request that is sound, its data read and its claims chosen, and all it depends on.

Nothing here imports jax before the request is known to be sound, so that bad usage is answered at once.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs_check.cli import own
from proofs_check.engine import checkpoint as checkpoints
from proofs_check.engine import table_options as tables
from proofs_check.engine.documents import fault_of
from proofs_check.engine.reading import DataError
from proofs_check.usage import PROG, UsageError, meant

if TYPE_CHECKING:
    from proofs_check.claim import Claim
    from proofs_check.engine.programs import Kept

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

    `budget` is in minutes, None for a run that takes the trials of its profile and no more; `table` holds what
    `engine.table_options` asks of the data, and `files` are those of claims of one's own, in the place of the papers'.
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
    table: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()


class Prepared:
    """A request that is sound: its data read, its claims chosen."""

    def __init__(self, request: Request, programs: Path | None = None) -> None:
        """Raise UsageError where the data or the choice of claims is not sound."""
        self.request, self._programs = request, programs
        from proofs_check.register import claims, outlines

        rows = _rows(request)
        self._data_digest = (
            None
            if request.data is None
            else checkpoints.digest_of([Path(request.data)])
        )
        population = None
        if request.files:
            set_precision(request.dtype)
            self.claims = select(
                own.claims_of(request.files), request.paper, request.claim
            )
        else:
            chosen = select(outlines(), request.paper, request.claim, request.margin)
            set_precision(request.dtype)
            population = _population(rows, request)
            self.claims = claims(
                population, request.profile, only={claim.id for claim in chosen}
            )
        notes = (
            []
            if population is None
            else [str(population.note), *(note.rstrip(".") for note in rows.notes)]
        )
        if request.dtype == "float32":
            notes.append(FLOAT32)
        self.note = "; ".join(notes)
        self.flags = flags()

    def manifest(self, began: str) -> dict[str, Any]:
        """Return all that must be equal where the run is resumed."""
        import jax

        from proofs_check.engine.versions import versions

        asked = dataclasses.asdict(self.request)
        if self.request.data is not None:
            asked["data"] = str(Path(self.request.data).absolute())
        return {
            "started": began,
            "request": asked,
            "claims": [claim.id for claim in self.claims],
            "data": self._data_digest,
            "files": digest_of_files(self.request),
            "program": checkpoints.digest_of_program(),
            "versions": versions(),
            "platform": str(jax.devices()[0].platform),
            "flags": self.flags,
        }

    def kept(self) -> Kept | None:
        """Return the programs kept for runs like this one, None with a user's data or claims, which may be in them."""
        from proofs_check.engine.programs import Kept

        if (
            self._programs is None
            or self.request.data is not None
            or self.request.files
        ):
            return None
        mine = self.manifest("")
        return Kept(
            self._programs,
            repr(
                [
                    self.request.profile,
                    *(mine[k] for k in ("program", "versions", "platform", "flags")),
                ]
            ),
        )

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
                raise UsageError(
                    f"{folder} cannot be resumed: {text} since it was started; start a new run"
                )
        for name, here in self.flags.items():
            before = manifest["flags"].get(name)
            if here != before:
                raise UsageError(
                    f"{folder} cannot be resumed: it was started with {name}={before!r}, which is {here!r} now; set "
                    f"this variable as it was, or start a new run"
                )


def select(
    claims: Sequence[Claim],
    paper: str | None,
    wanted: Sequence[str],
    margin: bool = True,
) -> list[Claim]:
    """Return the claims of a paper that are named, or that begin with what is named, in the order of the register.

    Where none is named, those of the margin are left out unless `margin`.
    """
    if paper is not None:
        papers = sorted({claim.paper for claim in claims})
        if paper not in papers:
            close = difflib.get_close_matches(paper, papers, n=1)
            raise UsageError(
                f"no claims of a paper {paper!r}{meant(close)}; there are {', '.join(papers)}"
            )
        claims = [claim for claim in claims if claim.paper == paper]
    if not wanted:
        return [claim for claim in claims if margin or not claim.marginal]
    ids = [claim.id for claim in claims]
    chosen: set[str] = set()
    for name in wanted:
        matching = (
            [name] if name in ids else [i for i in ids if name and i.startswith(name)]
        )
        if not matching:
            hint = meant(_close(name, ids)) or f"; see {PROG} list"
            raise UsageError(
                f"no claim {name!r}{f' of {paper}' if paper else ''}{hint}"
            )
        chosen.update(matching)
    return [claim for claim in claims if claim.id in chosen]


def _close(name: str, ids: Sequence[str]) -> list[str]:
    """Return what a mistyped id may have meant: the same name in any paper, what looks alike, what begins so."""
    (paper, _, own), names = (
        name.lower().rpartition(":"),
        {i: i.lower().partition(":")[2] for i in ids},
    )
    same = [i for i in ids if names[i] == own]
    same.sort(
        key=lambda i: -difflib.SequenceMatcher(None, i.partition(":")[0], paper).ratio()
    )
    alike = difflib.get_close_matches(own, set(names.values()), n=3)
    alike += [other for other in names.values() if own and other.startswith(own)]
    near = [
        *difflib.get_close_matches(name, ids, n=3),
        *(i for each in alike for i in ids if names[i] == each),
    ]
    return list(dict.fromkeys([*same, *near]))[: max(len(same), 5)]


def set_precision(dtype: str) -> None:
    """Set the default precision of the process."""
    import jax

    jax.config.update("jax_enable_x64", dtype == "float64")


def from_manifest(manifest: Mapping[str, Any], folder: Path) -> Request:
    """Return the request of a run that is to be resumed. Raises UsageError where the manifest holds none."""
    shape = {"started": str, "request": _REQUEST, "flags": dict}
    if fault_of(manifest, shape, "manifest") or set(manifest["request"]) != set(
        _REQUEST
    ):
        raise UsageError(
            f"{folder / checkpoints.MANIFEST} is not as this version writes it"
        )
    asked: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v
        for name, v in manifest["request"].items()
    }
    request = Request(**asked)
    if manifest.get("files") != digest_of_files(request):  # before what is in them runs
        raise UsageError(
            f"{folder} cannot be resumed: a file of claims has changed since it was started; start a new run"
        )
    return request


def digest_of_files(request: Request) -> str | None:
    """Return the digest of the files of claims, None without any."""
    try:
        return (
            checkpoints.digest_of([Path(path) for path in request.files])
            if request.files
            else None
        )
    except OSError as error:
        raise UsageError(f"--claims {error.filename}: {error.strerror}") from None


def _is_seed(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**32


def _is_positive_or_null(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and 0 < value < math.inf)


# The shape of a request in a manifest, as `proofs_check.engine.documents.fault_of` asks for it.
_REQUEST: Mapping[str, Any] = {
    "profile": frozenset({"quick", "full"}),
    "seed": _is_seed,
    "dtype": frozenset({"float32", "float64"}),
    "paper": str | None,
    "claim": [str],
    "files": [str],
    "margin": bool,
    "data": str | None,
    "table": tables.is_asked,
    **dict.fromkeys(("lengthscale", "budget"), _is_positive_or_null),
}


def _rows(request: Request) -> Any:
    """Return the table of the data, None without one."""
    if request.data is None:
        return None
    from proofs_check.certify import open_table

    try:
        return open_table(request.data, **request.table)
    except DataError as error:
        raise UsageError(str(error)) from None


def _population(table: Any, request: Request) -> Any:
    if table is None:
        return None
    from proofs_check.papers.populations import from_rows

    try:
        rows = table.take(range(table.rows), "float64")
        return from_rows(rows, lengthscale=request.lengthscale, seed=request.seed)
    except ValueError as error:
        raise UsageError(f"{request.data}: {error}") from None


def flags() -> dict[str, Any]:
    """Return the settings of JAX and XLA on which numbers may depend, by the variables that set them."""
    import jax

    settings = {name.upper(): getattr(jax.config, name, None) for name in _FLAGS}
    for name in _VARIABLES:
        settings[name] = " ".join(
            sorted(
                w
                for w in os.environ.get(name, "").split()
                if not w.startswith(_HARMLESS)
            )
        )
    return settings
