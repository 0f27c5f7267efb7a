"""The time that is left, and how much of a step fits into it."""

import time
from collections.abc import Callable
from typing import Any

CELLS = 2**24
"""Numbers of a wide table that are processed between two looks at the clock, at least."""


class Clock:
    """The time that is left of a limit in seconds, from now on, or from when time.monotonic() was `start`."""

    def __init__(self, seconds: float, start: float | None = None) -> None:
        self._start = time.monotonic() if start is None else start
        self.seconds = seconds

    @property
    def spent(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._start

    @property
    def left(self) -> float:
        """Return the seconds to the limit, 0 at least."""
        return max(self.seconds - self.spent, 0.0)


def affordable(
    step: Callable[[int], Any], most: int, seconds: float, *, growth: float = 2.0
) -> int:
    """Return how many rows, at most `most`, `step` can process within `seconds`, judged by its time for a few rows.

    The time is taken to grow like rows ** growth. The step is run twice with 256 rows, since the first run compiles,
    and if these are quick, with 1,024. With no time left, or no more rows than that, it is not run. The result is at
    least 256, or `most` where that is less.
    """
    until, count = time.monotonic() + seconds, 256
    if most <= count or seconds <= 0:
        return min(most, count)
    while True:
        for _ in range(2):
            start = time.monotonic()
            if start >= until:
                return count
            step(count)
            spent = max(time.monotonic() - start, 1e-6)
        can = int(count * max(seconds / spent, 1.0) ** (1 / growth))
        if count == 1024 or min(can, most) < 4 * count:
            return min(can, most)
        count = 1024
