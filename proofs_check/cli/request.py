"""What a run is asked for: a request that is sound, its data read and its claims chosen, and all it depends on.

Nothing here imports jax before the request is known to be sound, so that bad usage is answered at once.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs_check.engine import checkpoint as checkpoints
from proofs_check.engine.documents import fault_of
from proofs_check.engine.reading import DataError, load
from proofs_check.usage import PROG, UsageError

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


class Prepared:
    """A request that is sound: its data read, its claims chosen."""

    def __init__(self, request: Request, programs: Path | None = None) -> None:
        """Raise UsageError where the data or the choice of claims is not sound."""
        self.request, self._programs = request, programs
        from proofs_check.register import claims, outlines

        rows = _rows(request.data)
        self._data_digest = None if request.data is None else checkpoints.digest_of([Path(request.data)])
        chosen = select(outlines(), request.paper, request.claim, request.margin)
        set_precision(request.dtype)
        population = _population(rows, request)
        self.claims = claims(population, request.profile, only={claim.id for claim in chosen})
        notes = [] if population is None else [str(population.note)]
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
            "program": checkpoints.digest_of_program(),
            "versions": versions(),
            "platform": str(jax.devices()[0].platform),
            "flags": self.flags,
        }

    def kept(self) -> Kept | None:
        """Return the programs kept for runs like this one, None with a user's data, which may be in them."""
        from proofs_check.engine.programs import Kept

        if self._programs is None or self.request.data is not None:
            return None
        mine = self.manifest("")
        return Kept(
            self._programs,
            repr([self.request.profile, *(mine[k] for k in ("program", "versions", "platform", "flags"))]),
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
                raise UsageError(f"{folder} cannot be resumed: {text} since it was started; start a new run")
        for name, here in self.flags.items():
            before = manifest["flags"].get(name)
            if here != before:
                raise UsageError(
                    f"{folder} cannot be resumed: it was started with {name}={before!r}, which is {here!r} now; set "
                    f"this variable as it was, or start a new run"
                )


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
        matching = [name] if name in ids else [i for i in ids if name and i.startswith(name)]
        if not matching:
            close = difflib.get_close_matches(name, ids, n=4, cutoff=0.4)
            hint = f"; did you mean {', '.join(close)}?" if close else f"; see {PROG} list"
            raise UsageError(f"no claim {name!r}{f' of {paper}' if paper else ''}{hint}")
        chosen.update(matching)
    return [claim for claim in claims if claim.id in chosen]


def set_precision(dtype: str) -> None:
    """Set the default precision of the process."""
    import jax

    jax.config.update("jax_enable_x64", dtype == "float64")


def from_manifest(manifest: Mapping[str, Any], folder: Path) -> Request:
    """Return the request of a run that is to be resumed. Raises UsageError where the manifest holds none."""
    shape = {"started": str, "request": _REQUEST, "flags": dict}
    if fault_of(manifest, shape, "manifest") or set(manifest["request"]) != set(_REQUEST):
        raise UsageError(f"{folder / checkpoints.MANIFEST} is not as this version writes it")
    return Request(**{**manifest["request"], "claim": tuple(manifest["request"]["claim"])})


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
    "margin": bool,
    "data": str | None,
    **dict.fromkeys(("lengthscale", "budget"), _is_positive_or_null),
}


def _rows(path: str | None) -> Any:
    if path is None:
        return None
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

    settings = {name.upper(): getattr(jax.config, name, None) for name in _FLAGS}
    for name in _VARIABLES:
        settings[name] = " ".join(sorted(w for w in os.environ.get(name, "").split() if not w.startswith(_HARMLESS)))
    return settings
