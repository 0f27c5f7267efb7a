"""Figure 1 of amini2021: two noisy circles, and misclassification rates.

What it leaves open, and what the least rate of all rules is, says `amini2021.scatter`.
"""

from typing import Any

import jax

from jaxkern import problems
from jaxkern.metrics import misclassification_rate
from proofs_check.papers.amini2021 import figure3, scatter
from proofs_check.papers.figures import Numbers, Tables, summary, timed

TABLES: Tables = {
    "rows": {
        "noise": "{noise:g}",
        "least of all rules": "{least:.3f}",
        "method": "{method}",
        "rate": "{mean:.3f} ± {standard_error:.3f}",
    }
}
PANELS = (1, 4)
SIZE = (10.4, 3.1)
CIRCLES = (1.0, 3.0)
LEVELS = (0.0, 0.3, 0.7, 1.5)
METHODS = figure3.METHODS[:3]


def data(*, full: bool, seed: int, dtype: Any) -> dict[str, Any]:
    """Return, for every level of noise, the least rate and the rates of Algorithm 1, and the points that are drawn."""
    sizes = figure3.FULL if full else figure3.SMALL
    rows = []
    pictures = []
    for number, level in enumerate(timed(LEVELS)):
        key = jax.random.fold_in(jax.random.key(seed), number)
        law: dict[str, Any] = {"noise": level, "dim": 2, "radial": False}
        points_key = jax.random.clone(key)
        picture = scatter.sample(f"σ = {level:g}", points_key, CIRCLES, **law)
        pictures.append(picture)
        least = 0.0
        if level:
            least = scatter.least_error(scatter.shares(CIRCLES, coordinates=2, **law))
        draws = [
            clustered(jax.random.fold_in(key, i), level, sizes=sizes, dtype=dtype)
            for i in range(sizes.replicates)
        ]
        for method, rates in zip(METHODS, zip(*draws, strict=True), strict=True):
            place = {"noise": level, "least": least, "method": method}
            rows.append({**place, **summary(rates)})
    return {"sizes": sizes._asdict(), "rows": rows, "pictures": pictures}


def clustered(key: Any, level: float, *, sizes: figure3.Sizes, dtype: Any) -> list[Any]:
    """Return the misclassification rate of Algorithm 1 with every kernel, for one data set."""
    key_data, *keys = jax.random.split(key, 1 + len(METHODS))
    circles = problems.circles(
        key_data, num_points=sizes.points, radii=CIRCLES, noise=level, dtype=dtype
    )
    num_labels = len(CIRCLES)
    clusterings = figure3.algorithm_1(
        keys,
        circles.points,
        noise=level,
        clusters=num_labels,
        restarts=sizes.restarts,
    )
    return [
        misclassification_rate(circles.labels, clustering, num_labels=num_labels)
        for clustering in clusterings
    ]


def draw(axes: Any, data: Numbers) -> None:
    """Draw the circles, one panel for a level of noise."""
    scatter.draw_samples(axes, data, CIRCLES)
