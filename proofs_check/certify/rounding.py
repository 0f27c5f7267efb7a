"""What rounding may add to the errors of maps, and the precision of points and maps that follows."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from proofs_check.certify.goals import Goal
from proofs_check.certify.load import Table
from proofs_check.certify.maps import MOST_LANDMARKS
from proofs_check.certify.points import Rows
from proofs_check.certify.request import Request
from proofs_check.certify.trials import Trials

SHARE = 0.02
"""Rounding that may add more than this share of eps asks for float64: sizes grow like eps^-2, so by 4 %."""
FAR = 0.1
"""If only a sample of the pairs was looked at, pairs nearer than this may be left out of a guarantee. Distances are at
most sqrt(2); with more, a guarantee would be about few pairs of tables with many clusters."""


@dataclass(frozen=True)
class Rounding:
    """What rounding may add to errors, of which statements about exact numbers know nothing.

    Attributes
    ----------
    dtype : of points and maps.
    gram : a bound of |Khat - Kexact| / n.
    eigen : what eigenvectors add to it.
    pairs : the relative change of the distance of a pair, except of pairs nearer than `closest`; infinite if it is
        not known.
    closest : a distance.
    """

    dtype: str = "float64"
    gram: float = 0.0
    eigen: float = 0.0
    pairs: float = 0.0
    closest: float = 0.0


EXACT = Rounding()


def trials_for(
    key: Any, table: Table, kernel: Any, goal: Goal, request: Request
) -> tuple[Trials, Rounding, str]:
    """Return trials in the requested dtype, or in float64 if float32 rounds too much; the rounding; and a remark."""
    float64_is_on = jax.dtypes.canonicalize_dtype("float64") == np.dtype("float64")
    may_widen = request.dtype is None and float64_is_on
    dtype = request.dtype or "float32"
    if may_widen and not table.fits(dtype):
        dtype = "float64"
        may_widen = False
    trials = Trials(key, table, kernel, goal, dtype)
    rounding, remark = rounding_of(trials, key, request.eps)
    share = rounding.pairs if goal.name == "distance" else rounding.gram
    if not remark and share <= SHARE * request.eps:
        return trials, rounding, ""
    if not remark:
        remark = (
            f"rounding of the rows to {dtype} may change what the kernel says of them"
        )
    if may_widen:
        trials = Trials(key, table, kernel, goal, "float64")
        rounding, _ = rounding_of(trials, key, request.eps)
        remark += "; points and maps are in float64"
    elif dtype != "float64":
        remark += "; float64 would resolve them (dtype, with jax_enable_x64)"
    return trials, rounding, remark


def rounding_of(trials: Trials, key: Any, eps: float) -> tuple[Rounding, str]:
    """Return what rounding may add to errors, and a sentence about pairs that it may change by more than eps."""
    table, goal = trials.table, trials.goal
    mean, largest = feature_rounding(trials.kernel, trials.blocks())
    # Eigenvalues up to the rounding of the largest, n eps(dtype), are cut off or off by as much, and Gram matrices are
    # right to 100 eps(dtype) or so.
    roundings = 2 * min(table.rows, MOST_LANDMARKS) + 400
    eigen = float(np.finfo(trials.dtype).eps) * roundings
    # |Z Z' - W W'| <= (|Z| + |W|) |Z - W|_F, with rows of mean squared length 2 at most.
    rounding = Rounding(trials.dtype, 3 * mean, eigen, math.inf)
    if goal.name != "distance":
        return rounding, ""
    among = ""
    if table.rows <= goal.most_rows:
        pairs = trials.all_rows()
        share = rounding_factor(table.dim) * pairs.rounding
        rounding = replace(rounding, pairs=share)
    else:
        pairs = trials.sample(jax.random.clone(key), goal.most_rows)
        among = f" among {goal.most_rows:,} rows"
        closest = 2 * largest / (SHARE * eps)
        if closest <= FAR:
            rounding = replace(rounding, pairs=SHARE * eps, closest=closest)
    if not pairs.unresolved:
        return rounding, ""
    return (
        rounding,
        f"{pairs.unresolved:,} pair(s){among} are so close that rounding in {trials.dtype} may change their distances "
        "by more than eps",
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
    squares = 0.0
    count = 0
    largest = 0.0
    for rows in blocks:
        factor = rounding_factor(rows.points.shape[1])
        lengths = rows.rounding(kernel, factor)
        squares += float(lengths @ lengths)
        count += len(lengths)
        largest = float(np.maximum(largest, lengths.max()))  # NaN stays
    return math.sqrt(squares / count), largest
