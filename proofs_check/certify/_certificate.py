"""The certificate: the recommended map, and the document that says what is known of it and of every other one."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax

from jaxkern import io
from proofs_check.certify._entries import Entry
from proofs_check.certify._trials import Trials
from proofs_check.certify._work import MOST_ROWS


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
        """Return the recommended map, for points as they are in the table: a `jaxkern.features.TableMap`.

        `key` is a typed random key, by default that of the certificate, whose map `save` keeps. Raises ValueError where
        no map was certified.
        """
        entry = self._certified()
        key = jax.random.clone(self._key) if key is None else key
        return self._trials.table.attach(
            self._trials.draw(entry.family, entry.known_size, key)
        )

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
        trial can look at. Raises ValueError where no map was certified, and for the goal prediction.
        """
        entry, mine = self._certified(), self._trials
        if mine.goal.name == "prediction":
            raise ValueError(
                "a certificate of a prediction is about the map that draw() returns, not about other draws"
            )
        most = MOST_ROWS[mine.goal.name]
        sample = entry.sample or (most if mine.table.rows > most else None)
        trial = Trials(key, mine.table, mine.kernel, mine.goal, mine.dtype).trial(
            entry.family, sample
        )
        errors = [trial(entry.known_size, "again", number) for number in range(draws)]
        return sum(not error <= self.document["eps"] for error in errors), draws

    def _certified(self) -> Entry:
        if self._entry is None or self._entry.size is None:
            raise ValueError(
                "no map was certified, so there is none to draw; the document says why"
            )
        return self._entry
