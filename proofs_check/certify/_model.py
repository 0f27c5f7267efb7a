"""What the parts of a certificate hand to each other: frozen dataclasses, and nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

LARGEST_SAMPLE = 20_000
"""With more rows than this a trial looks at a sample of them, and the guarantee is about samples."""


class Goal(Protocol):
    """What a map shall keep, as an error that is at most eps, or the draw of the map has failed.

    `prepare` computes what does not depend on the map, from points (s, dim) and, where the goal needs classes, their
    labels (s,). `error` is a Python float, NaN or inf where there is none, which is a failure. `detail` is what the
    page draws of one map, as JSON; {} where there is nothing. `key` is a typed random key.
    """

    name: str
    words: str
    """What the error is, in one sentence."""

    def refuses(self, _map_name: str, /) -> str:
        """Return why this goal makes no sense for a map; "" where it does."""
        return ""

    def prepare(self, key: Any, points: Any, labels: np.ndarray | None, /) -> Any:
        """Return what the errors of all maps on these points share."""

    def error(self, key: Any, phi: Any, prepared: Any, /) -> float:
        """Return the error of a map."""

    def detail(self, _phi: Any, _prepared: Any, /) -> dict[str, Any]:
        """Return what a page may draw of this map."""
        return {}


@dataclass(frozen=True)
class Facts:
    """What the data are like to a theorem, in units of the kernel. Sums over eigenvalues are of Sigma_n = K / n.

    Attributes
    ----------
    rows, dim : size of the table.
    kernel, lengthscale : a `jaxkern.kernels` kernel, and its lengthscale.
    sampled : rows behind the numbers below, all of them or a uniform sample.
    kappa : sup K(x, x).
    op_norm, trace, trace3, hs_norm : largest eigenvalue, sum, sum of cubes, root of the sum of squares.
    eigenvalues : largest ones, descending.
    diameter : an upper bound of the largest distance of two rows, over the lengthscale.
    squared_distances, pairs : squared distances over the squared lengthscale at the lower edges of bins, and an upper
        bound of the number of pairs of rows (zero distances left out) in each bin; the bins cover all pairs.
    effective_dimension : by name, such as "trace / op_norm".
    decay : words and numbers about how the eigenvalues fall.
    complete : whether the clock left nothing out that the time allows on the reference machine.
    """

    rows: int
    dim: int
    kernel: Any
    lengthscale: float
    sampled: int
    kappa: float
    op_norm: float
    trace: float
    trace3: float
    hs_norm: float
    eigenvalues: np.ndarray
    diameter: float
    squared_distances: np.ndarray
    pairs: np.ndarray
    effective_dimension: Mapping[str, float] = field(default_factory=dict)
    decay: Mapping[str, Any] = field(default_factory=dict)
    complete: bool = True

    @property
    def has_pairs(self) -> bool:
        """Tell whether the histogram of distances says anything of these data."""
        return bool(np.any(self.pairs[self.squared_distances > 0] > 0))


@dataclass(frozen=True)
class Rounding:
    """What rounding may add to errors, of which statements about exact numbers know nothing.

    `gram` bounds |Khat - Kexact| / n, `eigen` what eigenvectors add to it, and `pairs` the relative change of the
    distance of a pair, but of those nearer than `closest`; infinite where pairs were not looked at. `complete` tells
    that the clock left nothing out.
    """

    dtype: str = "float64"
    gram: float = 0.0
    eigen: float = 0.0
    pairs: float = 0.0
    closest: float = 0.0
    complete: bool = True


EXACT = Rounding()


@dataclass(frozen=True)
class Demand:
    """The size that a valid statement demands of a map for a goal, or why it demands none that can be met.

    Attributes
    ----------
    map : name of the map.
    source : the statement.
    words : one or two plain sentences: what it promises, or why it says nothing on these data.
    size : smallest certified size in the map's own unit (see `Family.sizes`), None where the statement is vacuous here.
    worst_case : whether it holds for all data with this number of rows, and not for these data alone.
    """

    map: str
    source: str
    words: str
    size: int | None = None
    worst_case: bool = True


@dataclass(frozen=True)
class Hypothesis:
    """What a numbered statement asks for, evaluated on the data.

    Attributes
    ----------
    statement : such as "kpotufe2020, Theorem 1".
    asks : the hypothesis, in words.
    holds : None where the data cannot tell.
    found : what the data have, in words and numbers.
    needed : the smallest number of rows that would meet it, None where no number does or none is asked for.
    """

    statement: str
    asks: str
    holds: bool | None
    found: str
    needed: int | None = None


@dataclass(frozen=True)
class Probe:
    """Draws of a map at one size.

    `errors` has one entry a draw; `certifying` tells the draws that count from those of the search.
    """

    size: int
    errors: np.ndarray
    failures: int
    certifying: bool

    @property
    def draws(self) -> int:
        """Return how many."""
        return len(self.errors)


@dataclass(frozen=True)
class Outcome:
    """What a search found: the certified size, or None, and why.

    Attributes
    ----------
    size : certified at level alpha, or None.
    upper : upper limit of the failure probability at that size, at level alpha; 1 where nothing was certified.
    alpha : level of the certifying draws, all attempts together.
    stopped : "" where it is certified, "out of work" where the draws may take no more, "too large" where even the
        largest size fails.
    probes : every size that was tried, in order.
    """

    size: int | None
    upper: float
    alpha: float
    stopped: str
    probes: tuple[Probe, ...]


@dataclass(frozen=True)
class Family:
    """A map of the library with one size, from which all its sizes follow.

    Attributes
    ----------
    name : the public function of `jaxkern.features`.
    unit : what the size counts, such as "num_frequencies".
    sizes : size -> the keyword sizes of the map, in the order in which they are passed.
    num_features : size -> features of a point.
    num_points : size -> how many rows of the table the map is made of: landmarks, or a stream; 0 for none.
    draw : (key, kernel, points, dim, dtype, sizes) -> map; points are None where num_points is 0.
    python : (sizes) -> the lines of Python that draw it from `key`, `kernel`, `X` (and `points`).
    largest : the largest size; the smallest is 1.
    first : the same, for a map with the features of `draw`, up to zeros and rounding, whose programs neighbouring
        sizes share; None where there is no such map.
    """

    name: str
    unit: str
    sizes: Callable[[int], dict[str, int]]
    num_features: Callable[[int], int]
    num_points: Callable[[int], int]
    draw: Callable[..., Any]
    python: Callable[[Mapping[str, int]], str]
    largest: int = 2**20
    first: Callable[..., Any] | None = None
