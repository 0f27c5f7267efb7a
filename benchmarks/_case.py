"""What a benchmark is: frozen dataclasses, and nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Run = Callable[[], Any]


class Disagreement(Exception):
    """Results differ, so that times may not be compared."""


def agree(name: str, value: Any, limit: float) -> dict[str, float]:
    """Return {name: value}, to be reported.

    Raises Disagreement where the value is above the limit, or is no number.
    """
    value = float(value)
    if not value <= limit:
        raise Disagreement(f"{name} is {value:.3g}, more than {limit:.3g}")
    return {name: value}


def _same(result: Any) -> Any:
    return result


@dataclass(frozen=True)
class Part:
    """A part of the floor: the same work by several libraries, of which the fastest counts."""

    name: str
    libraries: Mapping[str, Run]


@dataclass(frozen=True)
class Work:
    """A case with its data: what is timed.

    `check(ours, peers)` gets what `keep` has kept of the results, raises Disagreement where these are not of the same
    work, and returns numbers to report. `items` counts the `unit`s of a call, for a rate.
    """

    ours: Run
    peers: Mapping[str, Run]
    check: Callable[[Any, Mapping[str, Any]], Mapping[str, float]]
    floor: tuple[Part, ...] = ()
    keep: Callable[[Any], Any] = _same
    items: int = 1
    unit: str = "calls"


@dataclass(frozen=True)
class Case:
    """A comparison at one size.

    `make(small)` returns the work. Targets: `at_least` says how many times faster than a peer we want to be, `at_most`
    how many times the floor we may take. `rounds` is how often each function is timed by default. With
    `one_blas_thread` BLAS uses one thread for all: small decompositions are slower with two, whoever calls them.
    `sweep` names the cases it is one of, and how many times faster than their first peer the median is to be.
    """

    name: str
    what: str
    make: Callable[[bool], Work]
    at_least: Mapping[str, float] = field(default_factory=dict)
    at_most: float | None = None
    rounds: int = 7
    one_blas_thread: bool = False
    sweep: tuple[str, float] | None = None


@dataclass(frozen=True)
class Growth:
    """Time and memory over a size.

    `prepare(size, small, folder)` returns what is timed; files may go into the folder, which is empty and removed
    afterwards. Targets: the exponent of time in `exponent`, and at most `most_bytes` of anonymous memory in all.
    """

    name: str
    what: str
    variable: str
    sizes: Callable[[bool], tuple[int, ...]]
    prepare: Callable[[int, bool, Path], Run]
    exponent: tuple[float, float] | None = None
    most_bytes: int | None = None
    rounds: int = 3
