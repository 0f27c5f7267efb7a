"""The certificate: the recommended map, and the document that says what is known of it and of every other one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax

from jaxkern import io
from proofs_check.certify._clock import Clock
from proofs_check.certify._entries import MOST_ROWS, Entry, by_a_statement, measured
from proofs_check.certify._trials import Trials


@dataclass(frozen=True)
class Certificate:
    """What `certify` found.

    Attributes
    ----------
    document : all of it, as in certificate.json (docs/certificate_schema.md).
    map, sizes : the recommended map and its sizes; None and {} where no map could be certified.
    """

    document: dict[str, Any]
    _trials: Trials = field(repr=False)
    _entry: Entry | None = field(repr=False)
    _key: Any = field(repr=False)

    def __getattr__(self, name: str) -> Any:
        """Return what the document holds under a name, such as `eps` or `guarantee`."""
        try:
            return self.__dict__["document"][name]
        except KeyError:
            raise AttributeError(name) from None

    def draw(self, key: Any = None) -> Any:
        """Return the recommended map, for points as they are in the table: a callable PyTree.

        `key` is a typed random key, by default that of the certificate, whose map `save` keeps. Raises ValueError where
        no map was certified.
        """
        entry = self._certified()
        return self._trials.draw(entry.family, entry.known_size, jax.random.clone(self._key) if key is None else key)

    def save(self, path: str | Path) -> None:
        """Write the recommended map to a file, for `jaxkern.io.load`. Raises as `draw` and `io.save` do."""
        io.save(path, self.draw())

    def write(self, folder: str | Path) -> None:
        """Write certificate.html and then certificate.json into a folder that exists, each in one step.

        Raises OSError where it cannot.
        """
        from proofs_check.report import certificate

        certificate.write(Path(folder), self.document)

    def fails(self, key: Any, *, draws: int = 200) -> tuple[int, int]:
        """Return (failures, draws) of as many fresh draws of the recommended map, measured as the certificate says.

        That is on the samples that its guarantee is about, and otherwise on all rows, or on a sample of as many as a
        trial can look at. Raises ValueError where no map was certified.
        """
        entry, mine = self._certified(), self._trials
        most = MOST_ROWS[mine.goal.name]
        sample = entry.sample or (most if mine.table.rows > most else None)
        trial = Trials(key, mine.table, mine.kernel, mine.goal, mine.dtype).trial(entry.family, sample)
        errors = [trial(entry.known_size, "again", number) for number in range(draws)]
        return sum(not error <= self.document["eps"] for error in errors), draws

    def _certified(self) -> Entry:
        if self._entry is None or self._entry.size is None:
            raise ValueError("no map was certified, so there is none to draw; the document says why")
        return self._entry


def recommended(
    trials: Trials, entries: Sequence[Entry], eps: float, clock: Clock
) -> tuple[Entry | None, float | None, dict[str, float | None]]:
    """Return the entry to recommend, its seconds per million points, and those of every certified map.

    A guarantee for all rows goes before one for samples, then time per point decides; where there was no time to
    measure it, it is None, and features decide. Where a statement about all rows goes first for a map that draws
    certified on samples, one draw at its size is measured before.
    """
    ready = [entry for entry in entries if entry.size is not None]
    seconds = {entry.family.name: trials.cost(entry.family, entry.known_size, clock.left) for entry in ready}
    costs = [(entry, seconds[entry.family.name]) for entry in ready]
    for entry in entries:
        stated = None if entry.for_all_rows else by_a_statement(entry)
        if stated is not None:
            costs.append((stated, trials.cost(stated.family, stated.known_size, clock.left)))

    def order(pair: tuple[Entry, float | None]) -> tuple[bool, bool, float]:
        entry, cost = pair
        features = entry.family.num_features(entry.known_size)
        return not entry.for_all_rows, cost is None, features if cost is None else cost

    for entry, cost in sorted(costs, key=order):
        best = entry
        if entry.basis != "draws" and entry not in ready:
            sample = next(other.sample for other in entries if other.family is entry.family)
            best = measured(trials, entry, sample, eps, Clock(clock.left), most=1)
        if best.size is not None:
            return best, cost, seconds
    return None, None, seconds
