"""What rounding may add to the errors of maps, and the precision of points and maps that follows."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern.gram import kernel_distance
from proofs_check.certify import _work
from proofs_check.certify._clock import Clock, affordable
from proofs_check.certify._distance import Distance
from proofs_check.certify._maps import MOST_LANDMARKS
from proofs_check.certify._model import LARGEST_SAMPLE, Goal, Rounding
from proofs_check.certify._request import Request
from proofs_check.certify._rows import Rows, compiled
from proofs_check.certify._trials import Trials
from proofs_check.certify.load.table import Table

LOOKED_AT = 8_000
"""Rows of a larger table that are searched for pairs too close for float32; fewer where time is short."""
SHARE = 0.02
"""Rounding that may add more than this share of eps asks for float64: sizes grow like eps^-2."""
FAR = 0.1
"""Where only a sample of the pairs was looked at, pairs nearer than this may be left out of a guarantee."""


def trials_for(
    key: Any, table: Table, kernel: Any, goal: Goal, request: Request, clock: Clock
) -> tuple[Trials, Rounding, str]:
    """Return trials in the dtype asked for, or in float64 where float32 rounds too much; the rounding; and a remark."""
    may_widen = request.dtype is None and jax.dtypes.canonicalize_dtype(
        "float64"
    ) == np.dtype("float64")
    dtype = request.dtype or "float32"
    if may_widen and not table.fits(dtype):
        dtype, may_widen = "float64", False
    trials = Trials(key, table, kernel, goal, dtype)
    rounding, remark = _rounding(trials, key, request.eps, clock)
    share = rounding.pairs if goal.name == "distance" else rounding.gram
    if not remark and share <= SHARE * request.eps:
        return trials, rounding, ""
    remark = (
        remark
        or f"rounding of the rows to {dtype} may change what the kernel says of them"
    )
    if may_widen and clock.left:
        trials = Trials(key, table, kernel, goal, "float64")
        wide, _ = _rounding(trials, key, request.eps, clock)
        rounding = replace(wide, complete=rounding.complete and wide.complete)
        return trials, rounding, f"{remark}; points and maps are in float64"
    if dtype == "float64":
        return trials, rounding, remark
    return (
        trials,
        rounding,
        f"{remark}; float64 would resolve them (dtype, with jax_enable_x64)",
    )


def _rounding(
    trials: Trials, key: Any, eps: float, clock: Clock
) -> tuple[Rounding, str]:
    """Return what rounding may add to errors, and a sentence about pairs that it may change by more than eps.

    Where the time ends before all rows were read, it may add anything.
    """
    dtype, goal = trials.dtype, trials.goal
    try:
        mean, largest = feature_rounding(trials.kernel, trials.blocks(clock))
    except TimeoutError:
        return Rounding(dtype, math.inf, math.inf, math.inf, complete=False), ""
    # |Z Z' - W W'| <= (|Z| + |W|) |Z - W|_F, with rows of mean squared length 2 at most. Eigenvalues up to the rounding
    # of the largest, n eps(dtype), are cut off or off by as much, and Gram matrices are right to 100 eps(dtype) or so.
    eigen = float(np.finfo(dtype).eps) * (
        2 * min(trials.table.rows, MOST_LANDMARKS) + 400
    )
    rounding = Rounding(dtype, 3 * mean, eigen, math.inf)
    if goal.name == "distance":
        return _of_distances(trials, key, rounding, largest, eps, clock)
    if getattr(goal, "kind", "") == "points":
        return _of_points(trials, key, eps, rounding, clock), ""
    return rounding, ""


def _of_distances(
    trials: Trials,
    key: Any,
    rounding: Rounding,
    largest: float,
    eps: float,
    clock: Clock,
) -> tuple[Rounding, str]:
    """Return the rounding with that of pairs, of all of them where there is time, and the sentence of `_rounding`."""
    rows = trials.table.rows

    def prepared(count: int) -> Any:
        return trials.sample(jax.random.clone(key), count)

    planned = min(
        rows if rows <= LARGEST_SAMPLE else LOOKED_AT, _planned(trials.table.dim, clock)
    )
    count = affordable(prepared, planned, clock.left)
    rounding = replace(rounding, complete=count == planned and clock.left > 0)
    if count == rows:
        pairs, among = trials.all_rows(), ""
        rounding = replace(
            rounding, pairs=rounding_factor(trials.table.dim) * pairs.rounding
        )
    elif clock.left:
        pairs, among = prepared(count), f" among {count:,} rows"
        if 2 * largest <= FAR * SHARE * eps:
            rounding = replace(
                rounding, pairs=SHARE * eps, closest=2 * largest / (SHARE * eps)
            )
    else:
        return rounding, ""
    if not pairs.unresolved:
        return rounding, ""
    close = f"{pairs.unresolved:,} pair(s){among} are so close"
    return (
        rounding,
        f"{close} that rounding in {trials.dtype} may change their distances by more than eps",
    )


def _planned(dim: int, clock: Clock) -> int:
    """Return the rows whose pairs take a sixth of the time, by the model: the clock has the rest."""
    return max(
        int(
            (clock.seconds / 6 / (_work.PAIR["distance"] + dim * _work.MULTIPLY)) ** 0.5
        ),
        256,
    )


def _of_points(
    trials: Trials, key: Any, eps: float, rounding: Rounding, clock: Clock
) -> Rounding:
    """Return the rounding with the largest share of the distance of a pair; it stays infinite if not all are seen."""
    rows, distance = trials.table.rows, Distance(trials.kernel, eps)

    def prepared(count: int) -> Any:
        return distance.prepare(jax.random.clone(key), trials.rows(np.arange(count)))

    if rows > min(LARGEST_SAMPLE, _planned(trials.table.dim, clock)):
        return rounding
    if affordable(prepared, rows, clock.left) < rows:
        return replace(rounding, complete=False)
    return replace(
        rounding,
        pairs=rounding_factor(trials.table.dim) * float(prepared(rows).rounding),
    )


def rounding_factor(dim: int) -> float:
    """Return by how many roundings of its numbers a point may seem to move on its way through a map.

    One is the conversion of the point, one that of the frequencies or landmarks; a sum of dim products has an error of
    about sqrt(dim) roundings, and frequencies may be sqrt(2) times as long as they are on average.
    """
    return 2 + 2 * math.sqrt(dim)


def feature_rounding(kernel: Any, blocks: Iterable[Rows]) -> tuple[float, float]:
    """Return the root mean square and the largest rounding of the features of a row, as a length in feature space.

    Features of phases <w, x> that are off by <w, h> are off by |K_x - K_{x + h}| in the mean square over the
    frequencies; so are rows of the kernel matrix, of whatever landmarks.
    """
    squares, count, largest = 0.0, 0, 0.0
    for rows in blocks:
        factor = rounding_factor(rows.points.shape[1])
        relative = factor * float(jnp.finfo(rows.inputs.dtype).eps)
        with jax.enable_x64(True):
            lengths = np.asarray(
                _lengths(kernel, rows.points, rows.moved(factor), relative)
            )
        squares, count = squares + float(lengths @ lengths), count + len(lengths)
        largest = float(np.maximum(largest, lengths.max()))  # NaN stays
    return math.sqrt(squares / count), largest


@compiled
def _lengths(kernel: Any, X: jax.Array, moved: jax.Array, relative: Any) -> jax.Array:
    return kernel_distance(kernel, X, moved) + relative * jnp.sqrt(
        jax.vmap(lambda x: kernel(x, x))(X)
    )
