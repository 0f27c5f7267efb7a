"""Trials in blocks of one compiled size, with numbers that depend on nothing but the seed and the names.

Trial i of a setting uses `fold_in(key, i)`, and its key comes from the seed and the names of claim, trial and setting.
So the block size, the number of trials and the choice of claims do not change a number: more trials extend a sample.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from proofs_check import judge, limits
from proofs_check.claim import (
    Calibrated,
    Control,
    Exact,
    Expectation,
    Form,
    Identity,
    Law,
    Rare,
    Rate,
    Setting,
    Tail,
    Trial,
)

BLOCK = 128
BATCH = 16

Progress = Callable[[int, int], None]
"""`progress(done, total)`, in trials."""


@dataclass(frozen=True)
class Profile:
    """How much to run: the most trials a setting gets.

    `max_trials` caps what is decided by counting or by a slope (Tail, Calibrated, Rate), and `max_control` the trials
    by which a control is counted out, which fails more often than not; `max_draws` is the number of trials of an
    Expectation or of a Law, whose statistics are cheap. With `lenient`, too few trials to certify are no failure.
    """

    name: str
    max_trials: int
    max_draws: int
    max_control: int
    lenient: bool = False

    def trials(self, form: Form | Control, alpha: float) -> tuple[int, ...]:
        """Return the number of trials of each setting, fixed before the first one.

        A Tail or Calibrated statement gets what decides its delta at its share of `alpha`, up to the cap, and nothing
        where its probability is zero or less. Raises what `judge.checked_bound` raises.
        """
        match form.statement:
            case Tail(bound=bound) | Calibrated(shape=bound):
                cap = self.max_control if isinstance(form, Control) else self.max_trials
                return tuple(_counting(bound, s, alpha / len(form.settings), cap) for s in form.settings)
            case Expectation() | Law() | Rare():
                return (self.max_draws,) * len(form.settings)
            case Rate():
                return (self.max_trials,) * len(form.settings)
        return (0,) * len(form.settings)


def _counting(bound: Callable[[Setting], Any], setting: Setting, level: float, cap: int) -> int:
    _, delta = judge.checked_bound(bound, setting)
    if delta >= 1:
        return 0
    if delta == 0 or limits.certifiable(cap, level) > delta:
        return cap  # out of reach, and the search would be long for a tiny delta
    return min(limits.trials_needed(delta, level), cap)


QUICK = Profile("quick", max_trials=400, max_draws=2_000, max_control=BLOCK, lenient=True)
FULL = Profile("full", max_trials=20_000, max_draws=100_000, max_control=8 * BLOCK)
PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in (QUICK, FULL)}


def sample(
    trial: Trial,
    key: jax.Array,
    setting: Setting,
    num_trials: int,
    *,
    block: int | None = None,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> np.ndarray:
    """Return the statistics of trials 0, ..., num_trials - 1 at a setting, shape (num_trials,), float64.

    `trial(key, population, numbers, **shapes)` must return one scalar; the numbers reach it as a dictionary of
    scalars of the default float dtype. `block` trials run in one call of the compiled function (by default up to
    128, a power of two), `batch` of them side by side; neither changes a random draw. NaN is kept.
    Raises ValueError where a trial does not return a scalar. Settings with equal shapes share a compilation.
    """
    if num_trials < 0 or batch < 1 or (block is not None and block < 1):
        raise ValueError(f"counts must be positive, got num_trials={num_trials}, block={block}, batch={batch}")
    if num_trials == 0:
        return np.empty(0)
    size = block or min(BLOCK, 2 ** math.ceil(math.log2(num_trials)))
    real = jnp.result_type(float)
    numbers = {name: jnp.asarray(value, real) for name, value in setting.numbers.items()}
    shapes = tuple(sorted(setting.shapes.items()))
    population = jax.device_put(setting.population)
    out = np.empty(num_trials)
    for start in range(0, num_trials, size):
        stop = min(start + size, num_trials)
        values = _block(key, np.uint32(start), population, numbers, trial=trial, shapes=shapes, block=size, batch=batch)
        out[start:stop] = np.asarray(values, np.float64)[: stop - start]  # the last block runs in full size
        if progress is not None:
            progress(stop, num_trials)
    return out


@functools.partial(jax.jit, static_argnames=("trial", "shapes", "block", "batch"))
def _block(
    key: jax.Array,
    start: jax.Array,
    population: Any,
    numbers: dict[str, jax.Array],
    *,
    trial: Trial,
    shapes: tuple[tuple[str, int], ...],
    block: int,
    batch: int,
) -> jax.Array:
    def one(index: jax.Array) -> jax.Array:
        value = jnp.asarray(trial(jax.random.fold_in(key, index), population, numbers, **dict(shapes)))
        if value.shape != ():
            raise ValueError(f"{name_of(trial)} must return a scalar, got shape {value.shape}")
        return value

    return lax.map(one, start + jnp.arange(block, dtype=jnp.uint32), batch_size=min(batch, block))


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


@dataclass
class Samples:
    """The samples of one claim: forms and controls that run the same trial at the same setting share them.

    `want` first says how many trials each form needs, `draw` then returns them; a shared sample has the length
    of the longest request, and each request gets its beginning.
    """

    claim_id: str
    seed: int
    _wanted: dict[Any, int] = field(default_factory=dict)
    _drawn: dict[Any, np.ndarray] = field(default_factory=dict)

    def want(self, form: Form | Control, counts: Sequence[int]) -> None:
        """Register the numbers of trials, one a setting, that a form or a control needs."""
        for setting, count in zip(form.settings, counts, strict=True):
            if count:
                place = _place(form, setting)
                self._wanted[place] = max(count, self._wanted.get(place, 0))

    @property
    def total(self) -> int:
        """Return the number of trials that all requests together take."""
        return sum(self._wanted.values())

    def draw(
        self, form: Form | Control, counts: Sequence[int], *, progress: Callable[[int], None] | None = None
    ) -> list[np.ndarray]:
        """Return what `judge` needs for a form: statistics, residuals, or a pair of log probabilities, a setting.

        `progress(count)` is told of every further `count` trials that have run.
        """
        match form.statement:
            case Identity(residual=residual):
                keys = (derive_key(self.seed, self.claim_id, name_of(residual), s.name) for s in form.settings)
                return [_flat(residual(key, s)) for key, s in zip(keys, form.settings, strict=True)]
            case Exact(probability=probability):
                return [np.array(probability(s), np.float64) for s in form.settings]
        return [self._statistics(form, s, n, progress) for s, n in zip(form.settings, counts, strict=True)]

    def _statistics(
        self, form: Form | Control, setting: Setting, count: int, progress: Callable[[int], None] | None
    ) -> np.ndarray:
        if not count:
            return np.empty(0)
        place = _place(form, setting)
        if place not in self._drawn:
            trial = _trial(form)
            key = derive_key(self.seed, self.claim_id, name_of(trial), setting.name)
            before = 0

            def tell(done: int, _: int) -> None:
                nonlocal before
                if progress is not None:
                    progress(done - before)
                before = done

            self._drawn[place] = sample(trial, key, setting, self._wanted[place], progress=tell)
        return self._drawn[place][:count]


def _trial(form: Form | Control) -> Trial:
    return form.statement.trial  # type: ignore[union-attr]  # asked only of statements that have one


def _place(form: Form | Control, setting: Setting) -> Any:
    """Return what tells samples apart; the population by identity, and the others by value."""
    numbers = tuple(sorted((name, float(value)) for name, value in setting.numbers.items()))
    shapes = tuple(sorted(setting.shapes.items()))
    return _trial(form), setting.name, numbers, shapes, id(setting.population)


def _flat(residual: Any) -> np.ndarray:
    """Return the residuals of one setting as a vector, in the dtype they have."""
    leaves = [np.asarray(leaf).ravel() for leaf in jax.tree.leaves(residual)]
    return np.concatenate(leaves) if leaves else np.empty(0)
