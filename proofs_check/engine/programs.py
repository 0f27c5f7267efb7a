"""Trials compiled: how many run side by side, how far a program is optimised, and the programs of earlier runs.

A batch of trials runs side by side on a device: the whole block where a trial is small, a part of it where the batch
would not stay in a cache, and no more than fit into `MEMORY`. Then a block runs on all devices that there are, each
with its own trials; nothing passes between them, so that there is no collective to wait for.

On a CPU compiling takes longer than most of what is compiled runs, so a program is optimised as its work deserves. How
far, and the batch, follow from the program alone, not from what else runs or from the number of devices, and so do the
numbers: each device runs what one alone would run.
"""

import functools
import hashlib
import math
import pickle
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.serialize_executable import deserialize_and_load, serialize
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from proofs_check.claim import Trial
from proofs_check.engine import files, keys
from proofs_check.usage import StorageError

BATCH = 16
MEMORY = 2**30
"""No device may need more bytes than this for the temporaries of a block."""

# Of a trial on a CPU, by the bytes that its operations would read and write one after the other. The numbers are where
# the sum of compiling and running was least, over all programs of a quick run.
SMALL = 2_000_000
"""Up to so many bytes a trial, a whole block runs side by side; beyond, `BATCH` trials do."""
LIGHT = 125_000
"""Up to so many, compiling it takes longer than running it."""
_UNOPTIMISED = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
}
_OPTIMISED = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}


@dataclass(frozen=True)
class Kept:
    """The programs that earlier runs left in a folder, where nobody else can write: a program is code.

    `of` is a digest of all that programs depend on but for their names: the sources, the versions, the flags.
    """

    folder: Path
    of: str

    def path(self, name: str) -> Path:
        """Return the file of a program."""
        return (
            self.folder
            / f"trial-{hashlib.sha256(f'{self.of} {name}'.encode()).hexdigest()}-cache"
        )

    def load(
        self, name: str, num_arguments: int
    ) -> tuple[Callable[..., jax.Array], int] | None:
        """Return a program and its batch, None where there is none or the file is damaged."""
        try:
            batch, program = pickle.loads(zlib.decompress(self.path(name).read_bytes()))
        except (OSError, zlib.error, EOFError, pickle.UnpicklingError):
            return None
        _prepare_lapack()
        ins, out = jax.tree.structure(((0,) * num_arguments, {})), jax.tree.structure(0)
        return deserialize_and_load(program, ins, out), batch

    def keep(self, name: str, program: Any, batch: int) -> None:
        """Write a program, if that can be done."""
        try:
            files.write(
                self.path(name),
                zlib.compress(pickle.dumps((batch, serialize(program)[0])), 1),
            )
        except (
            StorageError,
            NotImplementedError,
        ):  # constants of a trial are not written
            return


@functools.cache
def _prepare_lapack() -> None:
    """Let JAX look up the functions of LAPACK, as it does when it lowers one: a loaded program calls them unasked."""
    jax.jit(jnp.linalg.eigvalsh).lower(jax.ShapeDtypeStruct((1, 1), np.float32))


class _Taken(threading.local):
    """How many programs a thread has taken from JAX's own cache. What JAX writes of such a one cannot be loaded."""

    count = 0


_taken = _Taken()


def _listen(event: str, **_: Any) -> None:
    _taken.count += event == "/jax/compilation_cache/cache_hits"


jax.monitoring.register_event_listener(_listen)


class Program:
    """The trials of settings that have equal shapes: `ready` compiles them, once, to a call that runs a batch."""

    batch: int
    where: Any

    def __init__(
        self,
        trial: Trial,
        shapes: tuple[tuple[str, int], ...],
        tree: Any,
        kinds: Any,
        block: int,
    ) -> None:
        """Take what a program depends on."""
        self._trial, self._shapes, self._tree, self._block = trial, shapes, tree, block
        self._like = [
            jax.ShapeDtypeStruct(shape, kind, weak_type=weak)
            for shape, kind, weak in kinds
        ]
        self._devices = jax.local_devices()
        self._lock = threading.Lock()
        self._call: Any = None

    def ready(
        self, name: str = "", kept: Kept | None = None, batch: int | None = None
    ) -> Callable[..., jax.Array]:
        """Return the program, compiled, or loaded and kept under a name. A `batch` that is asked for is not changed."""
        with self._lock:
            if self._call is None:
                kept = kept if len(self._devices) == 1 else None
                name = f"{name} {self._shapes} {self._block} {batch} {self._like}"
                found = None if kept is None else kept.load(name, len(self._like) + 1)
                if found is not None:
                    (self._call, self.batch), self.where = found, self._devices[0]
                else:
                    before = _taken.count
                    self._call = self._compile(batch)
                    if kept is not None and _taken.count == before:
                        kept.keep(name, self._call, self.batch)
            return self._call

    def _compile(self, asked: int | None) -> Any:
        on_cpu = self._devices[0].platform == "cpu"
        batch, options = min(self._block, asked or self._block), None
        traced = self._traced(batch)
        for uses in keys.used_twice(traced.jaxpr.jaxpr):
            raise ValueError(f"{name_of(self._trial)} uses a key twice: {uses}")
        if on_cpu:
            moved = _bytes_moved(traced.jaxpr.jaxpr) / batch
            options = _UNOPTIMISED if moved <= LIGHT else _OPTIMISED
            if asked is None and moved > SMALL and batch > BATCH:
                batch = BATCH
                traced = self._traced(batch)
        while True:
            compiled = _compiled(traced.lower(), options)
            analysis = compiled.memory_analysis()
            needed = 0 if analysis is None else int(analysis.temp_size_in_bytes)
            if asked is not None or batch == 1 or needed <= MEMORY:
                self.batch = batch
                return compiled
            batch = max(1, min(batch // 2, batch * MEMORY // needed))
            traced = self._traced(batch)

    def _traced(self, batch: int) -> Any:
        """Trace a batch of trials on each device: (first trial, *what they share) -> statistics."""
        run = functools.partial(
            _side_by_side,
            trial=self._trial,
            shapes=self._shapes,
            tree=self._tree,
            batch=batch,
            axis=None,
        )
        used = self._devices[: math.ceil(self._block / batch)]
        if len(used) == 1:
            self.where = used[0]
            program = jax.jit(run)
        else:
            mesh = Mesh(np.array(used), "trials")
            self.where = NamedSharding(mesh, PartitionSpec())
            parts: dict[str, Any] = {
                "in_specs": PartitionSpec(),
                "out_specs": PartitionSpec("trials"),
                "check_vma": False,
            }
            run = jax.shard_map(
                functools.partial(run, axis="trials"), mesh=mesh, **parts
            )
            program = jax.jit(run, in_shardings=self.where)
        with jax.debug_key_reuse(
            False
        ):  # which takes jax.random.multinomial under vmap for one
            return program.trace(jax.ShapeDtypeStruct((), np.uint32), *self._like)


@functools.lru_cache(maxsize=512)
def program_of(
    trial: Trial,
    shapes: tuple[tuple[str, int], ...],
    tree: Any,
    kinds: Any,
    block: int,
    batch: int | None,
    real: Any,
) -> Program:
    """Return the program of trials, the same one for equal arguments."""
    del (
        batch,
        real,
    )  # they only tell programs apart: a trial may draw in the default precision
    return Program(trial, shapes, tree, kinds, block)


def _side_by_side(
    start: jax.Array,
    *shared: Any,
    trial: Trial,
    shapes: tuple[tuple[str, int], ...],
    tree: Any,
    batch: int,
    axis: str | None,
) -> jax.Array:
    """Return the statistics of the trials of one device, or of those along the axis of a mesh."""
    key, population, numbers = jax.tree.unflatten(tree, shared)

    def one(index: jax.Array) -> jax.Array:
        value = jnp.asarray(
            trial(jax.random.fold_in(key, index), population, numbers, **dict(shapes))
        )
        if value.shape != ():
            raise ValueError(
                f"{name_of(trial)} must return a scalar, got shape {value.shape}"
            )
        return value

    first = (
        start
        if axis is None
        else start + lax.axis_index(axis).astype(jnp.uint32) * jnp.uint32(batch)
    )
    return jax.vmap(one)(first + jnp.arange(batch, dtype=jnp.uint32))


def _bytes_moved(jaxpr: Any) -> int:
    """Return the bytes that all operations read and write, those of a loop as often as is known."""
    total = 0
    for eqn in jaxpr.eqns:
        inner = [
            value
            for value in jax.tree.leaves(eqn.params, is_leaf=keys.is_jaxpr)
            if keys.is_jaxpr(value)
        ]
        if inner:
            total += eqn.params.get("length", 1) * sum(
                _bytes_moved(getattr(each, "jaxpr", each)) for each in inner
            )
        else:
            total += sum(
                v.aval.size * getattr(v.aval.dtype, "itemsize", 4)
                for v in (*eqn.invars, *eqn.outvars)
            )
    return total


def _compiled(program: Any, options: dict[str, Any] | None) -> Any:
    """Compile with options where the compiler knows them: their names are not the same in all its versions."""
    try:
        return program.compile(compiler_options=options)
    except jax.errors.JaxRuntimeError as error:
        if "compile option" not in str(error):
            raise
        return program.compile()


def name_of(function: Any) -> str:
    """Return a name of a trial that is the same in every process."""
    inner = getattr(function, "func", function)  # functools.partial
    return getattr(inner, "__qualname__", type(inner).__qualname__)
