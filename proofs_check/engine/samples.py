"""The samples of one claim, which its forms and controls share: taken from a checkpoint, or drawn and kept there."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from proofs_check.claim import (
    Control,
    Exact,
    Form,
    Identity,
    Inequality,
    Setting,
    Trial,
    draws_as,
)
from proofs_check.engine import judge
from proofs_check.engine.checkpoint import Checkpoint
from proofs_check.engine.draws import BLOCK, Draw, derive_key
from proofs_check.engine.programs import Kept


@dataclass
class _Sample:
    """The trials of one setting that are there, how many are wanted at first, and how more of them are drawn."""

    label: str
    make: Callable[[int], Draw]
    wanted: int = 0
    values: np.ndarray = field(default_factory=lambda: np.empty(0))
    draw: Draw | None = None

    def grow(
        self, count: int, checkpoint: Checkpoint, drawn: Callable[[int], None]
    ) -> None:
        """Append blocks, of a power of two up to `BLOCK` that suits what is wanted, until `count` trials are there."""
        blocks, there, size = (
            [self.values],
            self.values.size,
            min(BLOCK, 1 << max(self.wanted - 1, 0).bit_length()),
        )
        while there < count:
            block = checkpoint.take(self.label, there)
            if block is None:
                if self.draw is None:
                    self.draw = self.make(size)
                block = self.draw(there)
                checkpoint.keep(self.label, there, block)
            blocks.append(block)
            there += size
            drawn(size)
        self.values = np.concatenate(blocks)


@dataclass
class Samples:
    """The samples of one claim: forms and controls that run the same trial at the same setting share them.

    `want` first says how many trials each form needs, `first` then returns them: a shared sample grows by blocks, and
    each form gets its beginning. Samples are numbered in the order in which they are wanted, so that their labels in a
    checkpoint do not depend on what was drawn. `drawn` is told of every further trial; `kept` are programs of earlier
    runs.
    """

    claim_id: str
    seed: int | jax.Array
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    drawn: Callable[[int], None] = lambda _: None
    kept: Kept | None = None
    _samples: dict[Any, _Sample] = field(default_factory=dict)
    _codes: dict[str, Any] = field(default_factory=dict)

    def want(self, form: Form | Control, counts: Sequence[int]) -> None:
        """Register the numbers of trials, one a setting, that a form or a control needs at most."""
        for setting, count in zip(form.settings, counts, strict=True):
            if count:
                sample = self._sample(form, setting)
                sample.wanted = max(count, sample.wanted)

    @property
    def wanted(self) -> int:
        """Return how many trials all forms together may take."""
        return sum(sample.wanted for sample in self._samples.values())

    @property
    def there(self) -> int:
        """Return how many trials there are."""
        return sum(sample.values.size for sample in self._samples.values())

    def first(self, form: Form | Control, setting: Setting, count: int) -> np.ndarray:
        """Return the first `count` statistics; those that are missing are drawn."""
        if count == 0:
            return np.empty(0)
        sample = self._sample(form, setting)
        if sample.values.size < count:
            sample.grow(count, self.checkpoint, self.drawn)
        return sample.values[:count]

    def on_the_host(
        self, name: str, form: Form | Control, setting: Setting
    ) -> np.ndarray:
        """Return what `judge` needs of an Identity, an Inequality or an Exact at a setting; `name` is that of the form.

        Inputs that are drawn are the same for all forms that have the same function.
        """
        match form.statement:
            case Identity(residual=function) | Inequality(sides=function):
                label = "\x1f".join((self.claim_id, name, setting.name))
                values = self.checkpoint.take(label, 0)
                if values is None:
                    result = evaluate(
                        function, setting, lambda: self._key(function, setting)
                    )
                    values = (
                        _flat(result)
                        if isinstance(form.statement, Identity)
                        else judge.two_sides(result, setting)
                    )
                    self.checkpoint.keep(label, 0, values)
                return values
            case Exact(probability=probability):
                return np.array(evaluate(probability, setting), np.float64)
        raise TypeError(f"a {type(form.statement).__name__} is decided by trials")

    def _sample(self, form: Form | Control, setting: Setting) -> _Sample:
        trial: Trial = form.statement.trial  # type: ignore[union-attr]  # asked only of statements that have one
        identity = _identity(trial, setting)
        if identity not in self._samples:
            key = self._key(trial, setting)
            label = "\x1f".join((self.claim_id, str(len(self._samples)), setting.name))
            self._samples[identity] = _Sample(
                label,
                lambda block: Draw(
                    trial, key, setting, block=block, name=label, kept=self.kept
                ),
            )
        return self._samples[identity]

    def _key(self, function: Callable[..., Any], setting: Setting) -> jax.Array:
        """Return the key of what a function draws at a setting.

        Raises ValueError if another function of the claim draws under the same name: their draws would be dependent.
        """
        name, code = draws_as(function)
        if self._codes.setdefault(name, code) != code:
            raise ValueError(
                f"{self.claim_id}: two functions draw under the name {name!r}; "
                "give one of them another name with @sample(name)"
            )
        return derive_key(self.seed, self.claim_id, name, setting.name)


def evaluate(
    function: Callable[..., Any],
    setting: Setting,
    make_key: Callable[[], Any] = lambda: None,
) -> Any:
    """Call the function of an Identity, of an Inequality or of an Exact with the arguments that it names.

    These are `key`, `setting`, `data`, and the numbers and shapes of the setting. A parameter with a default keeps it,
    since defaults make variants of a function. `make_key` is called only if the function takes a key. Raises TypeError
    if the function requires anything else.
    """
    known = {**setting.numbers, **setting.shapes, "data": setting.data}
    known["setting"] = setting
    arguments = {}
    for p in inspect.signature(function).parameters.values():
        if p.default is not p.empty or p.kind is p.VAR_KEYWORD:
            continue
        if p.name == "key":
            arguments["key"] = make_key()
        elif p.name in known:
            arguments[p.name] = known[p.name]
        else:
            raise TypeError(
                f"the parameter {p.name!r} is neither key, setting nor data, nor a number or a shape of the setting "
                f"{setting.name!r}: {', '.join(known)}"
            )
    return function(**arguments)


def _identity(trial: Trial, setting: Setting) -> Any:
    """Return what tells samples apart; the data by identity, and the others by value."""
    numbers = tuple(
        sorted((name, float(value)) for name, value in setting.numbers.items())
    )
    return (
        trial,
        setting.name,
        numbers,
        tuple(sorted(setting.shapes.items())),
        id(setting.data),
    )


def _flat(residual: Any) -> np.ndarray:
    """Return the residuals of one setting as a vector, in the dtype they have."""
    leaves = [np.asarray(leaf).ravel() for leaf in jax.tree.leaves(residual)]
    return np.concatenate(leaves) if leaves else np.empty(0)
