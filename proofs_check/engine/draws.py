"""Trials in blocks of one compiled size, with numbers that depend on nothing but the seed and the names.

Trial i of a setting uses `fold_in(key, i)`, and its key comes from the seed and the names of claim, trial and setting.
So the block size, the number of trials and the choice of claims do not change a number: more trials extend a sample.

A batch of trials runs side by side on a device: the whole block where a trial is small, a part of it where the batch
would not stay in a cache, and no more than fit into `MEMORY`. Then a block runs on all devices that there are, each
with its own trials; nothing passes between them, so that there is no collective to wait for.

On a CPU compiling takes longer than most of what is compiled runs, so a program is optimised as its work deserves.
"""

import functools
import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from proofs_check.claim import Calibrated, Control, Expectation, Form, Law, Rare, Rate, Setting, Tail, Trial
from proofs_check.engine import judge, limits, stopping

BLOCK = judge.LOOK
BATCH = 16
MEMORY = 2**30
"""No device may need more bytes than this for the temporaries of a block."""

# Of a trial on a CPU, by the bytes that its operations read and write one after the other, before they are fused. The
# numbers are where the sum of compiling and running was least, over all programs of a quick run.
SIDE_BY_SIDE = 12_500_000
"""Up to so many bytes a trial, a whole block runs side by side; beyond, `BATCH` trials do."""
LIGHT = 1_250_000
"""Up to so many, compiling it takes longer than running it."""
_UNOPTIMISED = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
_OPTIMISED = {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}

Progress = Callable[[int, int], None]
"""`progress(done, total)`, in trials."""


@dataclass(frozen=True)
class Profile:
    """How much to run: the most trials a setting gets.

    `max_trials` caps what is decided by counting or by a slope (Tail, Calibrated, Rate), and `max_control` the trials
    by which a control is counted out, which fails more often than not; `max_draws` is the number of trials of an
    Expectation or of a Law, whose statistics are cheap, and of a Rare probability up to `max_rare`, which is plenty.
    With `lenient`, too few trials to certify are no failure.
    """

    name: str
    max_trials: int
    max_draws: int
    max_control: int
    lenient: bool = False
    max_rare: int = 20_000

    def trials(self, form: Form | Control, alpha: float) -> tuple[int, ...]:
        """Return the most trials of each setting; a tail bound may be decided earlier.

        A Tail gets what decides its delta at its share of `alpha` by the sequential rule, a Calibrated statement what
        decides it by the fixed one, both up to the cap, and nothing where its probability is zero or less.
        Raises what `judge.checked_bound` raises.
        """
        settings, cap = form.settings, self.max_control if isinstance(form, Control) else self.max_trials
        match form.statement:
            case Tail(bound=bound):
                return tuple(_counting(bound, s, alpha / len(settings), cap, _sequential) for s in settings)
            case Calibrated(shape=bound):
                return tuple(_counting(bound, s, alpha / len(settings), cap, limits.trials_needed) for s in settings)
            case Expectation() | Law():
                return (self.max_draws,) * len(settings)
            case Rare():
                return (min(self.max_draws, self.max_rare),) * len(settings)
            case Rate():
                return (self.max_trials,) * len(settings)
        return (0,) * len(settings)


def _counting(
    bound: Callable[[Setting], Any],
    setting: Setting,
    level: float,
    cap: int,
    needed: Callable[[float, float], int],
) -> int:
    _, delta = judge.checked_bound(bound, setting)
    if delta >= 1:
        return 0
    if delta == 0 or limits.certifiable(cap, level) > delta:
        return cap  # out of reach, and the search would be long for a tiny delta
    return min(needed(delta, level), cap)


def _sequential(delta: float, level: float) -> int:
    return stopping.trials_needed(delta, level, block=judge.LOOK)


QUICK = Profile("quick", max_trials=4 * BLOCK, max_draws=2_000, max_control=4 * BLOCK, lenient=True)
FULL = Profile("full", max_trials=160 * BLOCK, max_draws=100_000, max_control=16 * BLOCK)
PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in (QUICK, FULL)}


def sample(
    trial: Trial,
    key: jax.Array,
    setting: Setting,
    num_trials: int,
    *,
    block: int | None = None,
    batch: int | None = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """Return the statistics of trials 0, ..., num_trials - 1 at a setting, shape (num_trials,), float64.

    `trial(key, data, numbers, **shapes)` must return one scalar; the numbers reach it as a dictionary of
    scalars of the default float dtype. `block` trials run in one call of the compiled function (by default up to
    128, a power of two), `batch` of them side by side on each device (by default as many as its memory and its kind
    suggest); neither changes a random draw. NaN is kept.
    Raises ValueError where a trial does not return a scalar. Settings with equal shapes share a compilation.
    """
    if num_trials < 0 or (batch is not None and batch < 1) or (block is not None and block < 1):
        raise ValueError(f"counts must be positive, got num_trials={num_trials}, block={block}, batch={batch}")
    out = np.empty(num_trials)
    if num_trials == 0:
        return out
    size = block or min(BLOCK, 2 ** math.ceil(math.log2(num_trials)))
    draw = Draw(trial, key, setting, block=size, batch=batch)
    for start in range(0, num_trials, size):
        stop = min(start + size, num_trials)
        out[start:stop] = draw(start)[: stop - start]  # the last block runs in full size
        if progress is not None:
            progress(stop, num_trials)
    return out


class Draw:
    """The trials of one setting, by blocks: `draw(start)` returns the statistics of `block` trials from `start` on.

    See `sample` for the arguments. The trial is compiled at the first call.
    """

    def __init__(
        self, trial: Trial, key: jax.Array, setting: Setting, *, block: int = BLOCK, batch: int | None = None
    ) -> None:
        """Take the trial, and what its trials share."""
        real = jnp.result_type(float)
        numbers = {name: jnp.asarray(value, real) for name, value in setting.numbers.items()}
        self.block, self._asked = block, batch
        self._trial, self._shapes = trial, tuple(sorted(setting.shapes.items()))
        self._shared = jax.device_put((key, setting.data, numbers))
        self._program: Callable[..., jax.Array] | None = None

    def __call__(self, start: int) -> np.ndarray:
        """Return the statistics of trials start, ..., start + block - 1, shape (block,), float64."""
        if self._program is None:
            leaves, tree = jax.tree.flatten(self._shared)
            kinds = tuple((leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)) for leaf in leaves)
            what = (self._trial, self._shapes, tree, kinds, jnp.result_type(float))
            self._program, self.batch, where = _program(*what, block=self.block, asked=self._asked)
            self._shared = jax.device_put(self._shared, where)
        values, first = [], start
        while first < start + self.block:  # each is awaited: decompositions under way at once wait for each other
            values.append(np.asarray(self._program(np.uint32(first), *self._shared), np.float64))
            first += values[-1].size
        return np.concatenate(values)[: self.block]


@functools.lru_cache(maxsize=512)
def _program(
    trial: Trial,
    shapes: tuple[tuple[str, int], ...],
    tree: Any,
    kinds: tuple[Any, ...],
    real: Any,
    *,
    block: int,
    asked: int | None,
) -> tuple[Callable[..., jax.Array], int, Any]:
    """Compile a batch of trials side by side on each device: (first trial, key, population, numbers) -> statistics.

    Returns the program, its batch, and where its arguments belong. The batch that is `asked` for is kept; otherwise it
    follows from the program alone, not from what else runs or from the number of devices, and so do the numbers: each
    device runs what one alone would run.
    """
    del real  # it only tells programs apart: a trial may draw in the default precision
    like = [jax.ShapeDtypeStruct(shape, kind, weak_type=weak) for shape, kind, weak in kinds]
    devices = jax.local_devices()
    on_cpu = devices[0].platform == "cpu"
    batch, options = min(block, asked or BLOCK), None

    def lowered() -> tuple[Any, Any]:
        run = functools.partial(_side_by_side, trial=trial, shapes=shapes, batch=batch)
        used = devices[: math.ceil(block / batch)]
        mesh = Mesh(np.array(used), "trials")
        where = NamedSharding(mesh, PartitionSpec())
        if len(used) > 1:
            parts = {"in_specs": PartitionSpec(), "out_specs": PartitionSpec("trials"), "check_vma": False}
            run = jax.shard_map(functools.partial(run, axis="trials"), mesh=mesh, **parts)
        with jax.debug_key_reuse(False):  # which takes jax.random.multinomial under vmap for one
            traced = jax.jit(run, in_shardings=where)
            return traced.lower(jax.ShapeDtypeStruct((), np.uint32), *jax.tree.unflatten(tree, like)), where

    program, where = lowered()
    if on_cpu:
        touched = (program.cost_analysis() or {}).get("bytes accessed", math.inf) / batch
        options = _UNOPTIMISED if touched <= LIGHT else _OPTIMISED
        if asked is None and touched > SIDE_BY_SIDE and batch > BATCH:
            batch = BATCH
            program, where = lowered()
    while True:
        compiled = _compiled(program, options)
        analysis = compiled.memory_analysis()
        needed = 0 if analysis is None else int(analysis.temp_size_in_bytes)
        if asked is not None or batch == 1 or needed <= MEMORY:
            return compiled, batch, where
        batch = max(1, min(batch // 2, batch * MEMORY // needed))
        program, where = lowered()


def _compiled(program: Any, options: dict[str, Any] | None) -> Any:
    """Compile with options where the compiler knows them: their names are not the same in all its versions."""
    try:
        return program.compile(compiler_options=options)
    except jax.errors.JaxRuntimeError as error:
        if "compile option" not in str(error):
            raise
        return program.compile()


def _side_by_side(
    start: jax.Array,
    key: jax.Array,
    population: Any,
    numbers: dict[str, jax.Array],
    *,
    trial: Trial,
    shapes: tuple[tuple[str, int], ...],
    batch: int,
    axis: str | None = None,
) -> jax.Array:
    """Return the statistics of the trials of one device, of those along an axis of a mesh."""

    def one(index: jax.Array) -> jax.Array:
        value = jnp.asarray(trial(jax.random.fold_in(key, index), population, numbers, **dict(shapes)))
        if value.shape != ():
            raise ValueError(f"{name_of(trial)} must return a scalar, got shape {value.shape}")
        return value

    first = start if axis is None else start + lax.axis_index(axis).astype(jnp.uint32) * jnp.uint32(batch)
    return jax.vmap(one)(first + jnp.arange(batch, dtype=jnp.uint32))


def name_of(function: Any) -> str:
    """Return a name of a trial that is the same in every process."""
    inner = getattr(function, "func", function)  # functools.partial
    return getattr(inner, "__qualname__", type(inner).__qualname__)


def derive_key(seed: int, *names: str) -> jax.Array:
    """Return the key that belongs to a seed (any whole number from 0 on) and to names, the same in every process."""
    text = "\x1f".join((str(int(seed)), *names))
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    first, second = int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:], "big")
    return jax.random.fold_in(jax.random.key(first >> 1), np.uint32(second))
