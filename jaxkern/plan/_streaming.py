"""Plans of what approximates a Gram matrix in the spectral norm: streams of features, and the Nystrom map."""

import functools
import math

import numpy as np

from jaxkern import checks
from jaxkern.bounds import Bound
from jaxkern.bounds import streaming as bounds
from jaxkern.plan._plan import ANY_NUMBER, LARGEST, Plan, smallest


def streaming(
    eps: float,
    delta: float,
    *,
    num_points: int | None = None,
    sketch_size: int | None = None,
) -> Plan:
    """Plan streaming kernel PCA of paired Fourier features with |G - Gtilde|_2 <= eps n, for any kernel that has them.

    G is the Gram matrix of the n points of the stream and Gtilde that of their projected features. The sketch takes
    1 / (sketch_size + 1) of eps, the features the rest.

    Parameters
    ----------
    eps : error relative to n, in (0, 1).
    delta : failure probability, in (0, 1).
    num_points : length of the stream, where known; it helps only when it is small, and never has to be known.
    sketch_size : rows of the sketch, where they are given. By default those with the least sketch_size * num_features.

    Returns
    -------
    Plan with num_frequencies, num_features = 2 num_frequencies and sketch_size. Keep all sketch_size components.

    Raises
    ------
    ValueError
        If sketch_size + 1 <= 1 / eps.

    Notes
    -----
    The plan is for `features.streaming_pca(features.paired_fourier(...), sketch_size=...)` with the default sketch,
    uncentred, in exact arithmetic. The state reports what the sketch lost, which is usually far less. Source:
    ghashami2016, Theorem 3.2; Theorem E of docs/theory/ghashami2016.md.

    Examples
    --------
    >>> from jaxkern import plan
    >>> plan.streaming(0.1, 0.01).sketch_size > 10
    True
    """
    eps, delta = checks.open_unit("eps", eps), checks.open_unit("delta", delta)
    n = (
        ANY_NUMBER
        if num_points is None
        else float(checks.count("num_points", num_points))
    )
    if eps < 1 / LARGEST:
        raise ValueError(
            f"eps must be larger: no size below 2^53 is certified, got {eps:g}"
        )
    least = (
        math.floor(1 / eps) + 1
    )  # leaves something for the features, also where 1 / eps is a whole number
    if sketch_size is not None:
        sketch_size = checks.count("sketch_size", sketch_size)
        if eps - 1 / (sketch_size + 1) <= 0:
            raise ValueError(
                f"sketch_size must exceed 1 / eps - 1 = {1 / eps - 1:g}, as the sketch alone may lose "
                f"n / (sketch_size + 1), got {sketch_size}"
            )
        candidates = [sketch_size]
    else:
        candidates = sorted({round(x) for x in np.geomspace(least, 8 * least, 200)})
    found = [
        (rows, *smallest([functools.partial(_stream, eps, n, rows)], delta))
        for rows in candidates
    ]
    rows, size, bound = min(found, key=lambda plan: plan[0] * plan[1])
    if sketch_size is None:  # fewer rows may do for the same features
        rows, bound = smallest([lambda r: _stream(eps, n, r, size)], delta)
    return Plan(
        bound.source,
        bound.probability,
        num_frequencies=size,
        num_features=2 * size,
        sketch_size=rows,
    )


def nystrom(eps: float, delta: float) -> Plan:
    """Plan Nystrom of full rank with |G - Gbar|_2 <= eps n sup K(x, x), for landmarks drawn uniformly from the points.

    Parameters
    ----------
    eps : error relative to n sup K(x, x), in (0, 1).
    delta : failure probability, in (0, 1).

    Returns
    -------
    Plan with num_landmarks, whatever the kernel and the number n of points. Where n is smaller, take all points: the
    error is zero.

    Notes
    -----
    The statement is about `landmarks.uniform` and `features.nystrom` without a rank, in exact arithmetic. No statement
    here says anything better of other landmarks (leverage scores, pivoted Cholesky, k-means++) or anything of Nystrom
    cut to a rank; the trace residual of a fitted map does, afterwards. Source: Theorem G of
    docs/theory/ghashami2016.md.

    Examples
    --------
    >>> from jaxkern import plan
    >>> plan.nystrom(0.1, 0.01).num_landmarks
    431
    """
    eps, delta = checks.open_unit("eps", eps), checks.open_unit("delta", delta)
    size, bound = smallest(
        [lambda c: bounds.nystrom_spectral(eps=eps, num_landmarks=c)], delta
    )
    return Plan(bound.source, bound.probability, num_landmarks=size)


def _stream(eps: float, num_points: float, rows: int, size: int) -> Bound:
    """Return Theorem E for a total error eps: the features get what the sketch leaves."""
    share = eps - 1 / (rows + 1)
    if share <= 0:
        return Bound(eps, -math.inf, False, "")
    return bounds.streaming_gram_buffered(
        eps=share, num_frequencies=size, num_points=num_points, sketch_size=rows
    )
