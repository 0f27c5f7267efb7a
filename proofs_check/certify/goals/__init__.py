"""The goals of a certificate: what the error of a map on some points is, one goal a module."""

from typing import Any, Protocol

import numpy as np


class Goal(Protocol):
    """What a map has to keep: a draw of the map fails if its error is not at most eps.

    Attributes
    ----------
    name : the word for it on the command line.
    words : what the error is, in one sentence.
    most_rows : up to so many rows of a table, every draw is measured on all of them.
    sample_rows : rows of the fresh sample that every draw is measured on, if the table has more rows.
    slack : probability that a reported error is too small, for each error.
    once : the same for all errors on points that `lasting` prepared, together.
    """

    name: str
    words: str
    most_rows: int
    sample_rows: int
    slack: float = 0.0
    once: float = 0.0

    def refuses(self, _map_name: str, /) -> str:
        """Return why this goal makes no sense for a map; "" if it does."""
        return ""

    def prepare(self, key: Any, points: Any, labels: np.ndarray | None, /) -> Any:
        """Return what the errors of all maps on these points share.

        key : typed random key. points : (s, dim) or `Rows`. labels : (s,), or None if there are no classes.
        """

    def lasting(self, _key: Any, prepared: Any, /) -> Any:
        """Return the same for many errors on the same points: prepared for longer, errors take less."""
        return prepared

    def left_out(self, _prepared: Any, /) -> str:
        """Return what of the points the errors are not about, in plain sentences; "" if they are about all."""
        return ""

    def error(self, key: Any, phi: Any, prepared: Any, /) -> float:
        """Return the error of a map; NaN and inf are failures. key : typed random key."""
