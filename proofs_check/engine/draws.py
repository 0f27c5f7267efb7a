"""Trials in blocks of one compiled size, with numbers that depend on nothing but the seed and the names.

Trial i of a setting uses `fold_in(key, i)`, and its key comes from the seed and the names of claim, trial and setting.
So the block size, the number of trials and the choice of claims do not change a number: more trials extend a sample.

A block runs on all devices that there are, each with its own trials; nothing passes between them, so that there is no
collective to wait for. On every device a batch of trials runs side by side, as many as fit into `MEMORY`.
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
        """Put what the trials share on all devices that will be used."""
        real = jnp.result_type(float)
        numbers = {name: jnp.asarray(value, real) for name, value in setting.numbers.items()}
        devices = jax.local_devices()
        self.block = block
        self._batch = min(block, batch or (BATCH if devices[0].platform == "cpu" else BLOCK))
        self._devices = tuple(devices[: math.ceil(block / self._batch)])
        self._fixed, self._trial, self._shapes = batch is not None, trial, tuple(sorted(setting.shapes.items()))
        shared = NamedSharding(Mesh(np.array(self._devices), "trials"), PartitionSpec())
        self._shared = jax.device_put((key, setting.data, numbers), shared)
        self._program: Callable[..., jax.Array] | None = None

    def __call__(self, start: int) -> np.ndarray:
        """Return the statistics of trials start, ..., start + block - 1, shape (block,), float64."""
        if self._program is None:
            leaves, tree = jax.tree.flatten(self._shared)
            kinds = tuple((leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)) for leaf in leaves)
            what = (self._trial, self._shapes, tree, kinds, self._devices, jnp.result_type(float))
            self._program, self._batch = _program(*what, batch=self._batch, fixed=self._fixed)
        step = self._batch * len(self._devices)
        values = [self._program(np.uint32(first), *self._shared) for first in range(start, start + self.block, step)]
        return np.concatenate([np.asarray(v, np.float64) for v in values])[: self.block]  # waits for all devices


@functools.lru_cache(maxsize=512)
def _program(
    trial: Trial,
    shapes: tuple[tuple[str, int], ...],
    tree: Any,
    kinds: tuple[Any, ...],
    devices: tuple[jax.Device, ...],
    real: Any,
    *,
    batch: int,
    fixed: bool,
) -> tuple[Callable[..., jax.Array], int]:
    """Compile `batch` trials side by side on each device: (first trial, key, population, numbers) -> statistics.

    Returns the program and its batch, which is smaller where the one asked for, unless it is fixed, does not fit into
    `MEMORY`. The batch follows from the program alone, not from what else runs or from the number of devices, and so do
    the numbers: each device runs what one alone would run.
    """
    del real  # it only tells programs apart: a trial may draw in the default precision
    mesh = Mesh(np.array(devices), "trials")
    everywhere = NamedSharding(mesh, PartitionSpec())
    like = [jax.ShapeDtypeStruct(shape, kind, sharding=everywhere, weak_type=weak) for shape, kind, weak in kinds]
    shared = jax.tree.unflatten(tree, like)
    while True:
        run = functools.partial(_side_by_side, trial=trial, shapes=shapes, batch=batch)
        spread = jax.shard_map(
            run, mesh=mesh, in_specs=PartitionSpec(), out_specs=PartitionSpec("trials"), check_vma=False
        )
        compiled = jax.jit(spread).lower(jax.ShapeDtypeStruct((), np.uint32), *shared).compile()
        analysis = compiled.memory_analysis()
        needed = 0 if analysis is None else int(analysis.temp_size_in_bytes)
        if fixed or batch == 1 or needed <= MEMORY:
            return compiled, batch
        batch = max(1, min(batch // 2, batch * MEMORY // needed))


def _side_by_side(
    start: jax.Array,
    key: jax.Array,
    population: Any,
    numbers: dict[str, jax.Array],
    *,
    trial: Trial,
    shapes: tuple[tuple[str, int], ...],
    batch: int,
) -> jax.Array:
    """Return the statistics of the trials of one device."""

    def one(index: jax.Array) -> jax.Array:
        value = jnp.asarray(trial(jax.random.fold_in(key, index), population, numbers, **dict(shapes)))
        if value.shape != ():
            raise ValueError(f"{name_of(trial)} must return a scalar, got shape {value.shape}")
        return value

    first = start + lax.axis_index("trials").astype(jnp.uint32) * jnp.uint32(batch)
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
