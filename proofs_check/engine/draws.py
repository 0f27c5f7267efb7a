"""Trials in blocks of one compiled size, with numbers that depend on nothing but the seed and the names.

Trial i of a setting uses `fold_in(key, i)`. Its key comes from the seed, the id of the claim, the declared name of the
sample (`claim.sample`) and the name of the setting.
So the block size, the number of trials and the choice of claims do not change a number: more trials extend a sample.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from proofs_check.claim import (
    Calibrated,
    Control,
    Expectation,
    Form,
    Law,
    Rare,
    Rate,
    Setting,
    Tail,
    Trial,
)
from proofs_check.engine import judge, limits, stopping
from proofs_check.engine.programs import Kept, program_of

BLOCK = judge.LOOK
Progress = Callable[[int, int], None]
"""`progress(done, total)`, in trials and in what costs as much."""


@dataclass(frozen=True)
class Profile:
    """How much to run: the most trials a setting gets.

    `max_trials` caps what is decided by counting or by a slope (Tail, Calibrated, Rate), and `max_control` the trials
    by which a control is counted out, which fails more often than not; `max_draws` is the number of trials of an
    Expectation or of a Law, whose statistics are cheap, and of a Rare probability up to `max_rare`, which is plenty.
    What must be refuted (a control, or a form whose expected verdict is that) and is not yet gets twice the trials, up
    to `doublings` times.
    With `lenient`, too few trials to certify are no failure; with `patient`, what is counted goes on to the cap where
    the evidence is open, and not only as far as a statement with room to spare needs.
    """

    name: str
    max_trials: int
    max_draws: int
    max_control: int
    lenient: bool = False
    max_rare: int = 20_000
    patient: bool = False
    doublings: int = 0

    def trials(self, form: Form | Control, alpha: float) -> tuple[int, ...]:
        """Return the most trials of each setting; a tail bound may be decided earlier.

        A Tail gets what decides its delta at its share of `alpha` by the sequential rule, a Calibrated statement what
        decides it by the fixed one, both up to the cap, and nothing where its probability is zero or less.
        Raises what `judge.checked_bound` raises.
        """
        settings, cap = (
            form.settings,
            self.max_control if isinstance(form, Control) else self.max_trials,
        )
        match form.statement:
            case Tail(bound=bound) if self.patient:
                return tuple(
                    cap * (judge.checked_bound(bound, s)[1] < 1) for s in settings
                )
            case Tail(bound=bound):
                return tuple(
                    _counting(bound, s, alpha / len(settings), cap, _sequential)
                    for s in settings
                )
            case Calibrated(shape=bound):
                return tuple(
                    _counting(
                        bound, s, alpha / len(settings), cap, limits.trials_needed
                    )
                    for s in settings
                )
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


# With 512 trials alone, a control that is rejected at 24 of 25 seeds fails a run at one seed of 25. Twice the trials
# square the probability of missing it, and are drawn at such a seed only.
QUICK = Profile(
    "quick",
    max_trials=4 * BLOCK,
    max_draws=2_000,
    max_control=4 * BLOCK,
    lenient=True,
    doublings=4,
)
FULL = Profile(
    "full",
    max_trials=160 * BLOCK,
    max_draws=100_000,
    max_control=16 * BLOCK,
    doublings=2,
)
PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in (QUICK, FULL)}
ANYONES: Mapping[str, Profile] = {
    name: Profile(
        name, draws, draws, draws, lenient=name == "quick", max_rare=draws, patient=True
    )
    for name, draws in (("quick", 10_000), ("full", 100_000))
}
"""For statements of which nobody knows how sharp they are."""


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
    if (
        num_trials < 0
        or (batch is not None and batch < 1)
        or (block is not None and block < 1)
    ):
        raise ValueError(
            f"counts must be positive, got num_trials={num_trials}, block={block}, batch={batch}"
        )
    out = np.empty(num_trials)
    if num_trials == 0:
        return out
    size = block or min(BLOCK, 2 ** math.ceil(math.log2(num_trials)))
    draw = Draw(trial, key, setting, block=size, batch=batch)
    for start in range(0, num_trials, size):
        stop = min(start + size, num_trials)
        out[start:stop] = draw(start)[
            : stop - start
        ]  # the last block runs in full size
        if progress is not None:
            progress(stop, num_trials)
    return out


class Draw:
    """The trials of one setting, by blocks: `draw(start)` returns the statistics of `block` trials from `start` on.

    See `sample` for the arguments. The trial is compiled at the first call, or taken from the programs that are `kept`,
    under its name.
    """

    def __init__(
        self,
        trial: Trial,
        key: jax.Array,
        setting: Setting,
        *,
        block: int = BLOCK,
        batch: int | None = None,
        name: str = "",
        kept: Kept | None = None,
    ) -> None:
        """Take the trial, and what its trials share."""
        real = jnp.result_type(float)
        numbers = {
            name: np.asarray(value, real) for name, value in setting.numbers.items()
        }
        self._shared, tree = jax.tree.flatten(
            jax.device_put((key, setting.data, numbers))
        )
        kinds = tuple(
            (leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False))
            for leaf in self._shared
        )
        self.block, self._kept = block, (name, kept, batch)
        self.program = program_of(
            trial,
            tuple(sorted(setting.shapes.items())),
            tree,
            kinds,
            block,
            batch,
            real,
        )
        self._call: Callable[..., jax.Array] | None = None

    def __call__(self, start: int) -> np.ndarray:
        """Return the statistics of trials start, ..., start + block - 1, shape (block,), float64."""
        if self._call is None:
            self._call = self.program.ready(*self._kept)
            self._shared = jax.device_put(self._shared, self.program.where)
        values, first = [], start
        while (
            first < start + self.block
        ):  # each is awaited: decompositions under way at once wait for each other
            values.append(
                np.asarray(self._call(np.uint32(first), *self._shared), np.float64)
            )
            first += values[-1].size
        return np.concatenate(values)[: self.block]


def derive_key(seed: int | jax.Array, *names: str) -> jax.Array:
    """Return the key that belongs to a seed (a whole number from 0 on, or a key) and to names, in every process."""
    given = isinstance(seed, jax.Array)
    text = "\x1f".join(("" if given else str(int(seed)), *names))
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    first, second = int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:], "big")
    root = (
        jax.random.fold_in(seed, np.uint32(first))
        if given
        else jax.random.key(first >> 1)
    )
    return jax.random.fold_in(root, np.uint32(second))
