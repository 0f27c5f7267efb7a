"""What work takes, by a model whose constants were measured once: nothing that is decided rests on a clock.

A *reference second* is one of a core that does 25 thousand million multiply-adds in float32 in it, as on an x86 server
of 2024 for the features of 4,096 rows. Another machine is faster or slower, mostly by one factor.
"""

import math
from collections.abc import Callable

from proofs_check.certify._model import LARGEST_SAMPLE, Family

MULTIPLY, COSINE, ENTRY, BUTTERFLY = 4e-11, 3e-9, 3e-9, 5e-10
"""Reference seconds of a multiply-add, a cosine, an entry of a kernel matrix and a step of a Hadamard transform."""
EIGEN = 1e-9
"""Reference seconds of an eigendecomposition, over the cube of its size."""
TRIAL = 4e-3
"""Reference seconds of a trial of a few rows."""
PAIR = {
    "distance": 1e-8,
    "spectral": 1.5e-8,
    "clustering": 4e-7,
    "separation": 1.5e-8,
}
"""Reference seconds of a pair of rows in a trial, by goal; twice that for what the exact kernel says of it."""
CLUSTERED = 2e-7
"""Reference seconds of a row and a feature, for ten restarts of k-means."""
PRODUCT = 1.5e-11
"""Reference seconds of a pair of rows and a feature in a trial."""
COMPILING = 0.5
"""Reference seconds of the first draw of a size, beyond those of a draw."""
LASTING = 10.0
"""What lasts for all draws takes as many times as long to prepare as what serves one, about."""
FACTORED = 3e-9
"""Reference seconds of a row and a column, of features or of what stands for the kernel matrix, in a trial."""
MOST_ROWS = {
    "distance": LARGEST_SAMPLE,
    "spectral": LARGEST_SAMPLE,
    "clustering": 2_000,
    "separation": 4_000,
}
"""The most rows that a trial looks at."""
FEWEST_ROWS = 200


def seconds_per_million(family: Family, size: int, dim: int) -> float:
    """Return the reference seconds for the features of a million points. They grow with the size."""
    sizes, kept = family.sizes(size), family.num_features(size)
    frequencies = sizes.get("num_frequencies", 0)
    if not frequencies:
        landmarks = sizes["num_landmarks"]
        return 1e6 * landmarks * (ENTRY + (dim + kept) * MULTIPLY)
    one = (
        dim * MULTIPLY if family.name != "fastfood" else math.log2(2 * dim) * BUTTERFLY
    )
    per_frequency = 1 if family.name == "shifted_fourier" else 2
    pca = per_frequency * kept * MULTIPLY if "num_points" in sizes else 0.0
    return 1e6 * frequencies * (one + per_frequency * COSINE + pca)


def exact_per_million(rows: int, dim: int) -> float:
    """Return the reference seconds for the values of the kernel of a million points with every row."""
    return 1e6 * rows * (ENTRY + (dim + 1) * MULTIPLY)


def preparing(goal: str, rows: int, dim: int) -> float:
    """Return the reference seconds for what the exact kernel says of some rows."""
    return TRIAL + rows**2 * (PAIR[goal] + dim * MULTIPLY)


def trial(
    goal: str,
    family: Family,
    size: int,
    rows: int,
    dim: int,
    *,
    rank: int | None = None,
    effort: float = 1.0,
    ready: bool = False,
) -> float:
    """Return the reference seconds of one draw of a map and its error on so many rows.

    With a `rank`, as many columns are expected to stand for the kernel matrix of all rows, where that saves time.
    `effort` is that of the goal, and `ready` tells that the clusters of the exact kernel are known.
    """
    features, points = family.num_features(size), family.num_points(size)
    frequencies = family.sizes(size).get("num_frequencies", 0)
    drawn = (
        EIGEN * points**3
        if not frequencies
        else 4 * points * 2 * frequencies * features * MULTIPLY
    )
    measured = preparing(goal, rows, dim) + rows**2 * features * PRODUCT
    if goal == "clustering":
        exact = 0.0 if ready else effort * preparing(goal, rows, dim)
        return drawn + exact + TRIAL + effort * rows * features * CLUSTERED
    return drawn + (
        measured
        if rank is None
        else min(measured, TRIAL + rows * (rank + features) * FACTORED)
    )


def ladder(
    goal: str, rows: int, takes: Callable[[int], float], seconds: float
) -> list[int | None]:
    """Return the numbers of rows that trials look at, each four times the one before; None stands for all of them.

    The last is as many as a trial can look at, and the first the largest at which one `takes` no more than `seconds`.
    """
    most = min(rows, MOST_ROWS[goal])
    numbers = [most]
    while numbers[0] // 4 >= FEWEST_ROWS and takes(numbers[0]) > seconds:
        numbers.insert(0, numbers[0] // 4)
    return [None if number == rows else number for number in numbers]
