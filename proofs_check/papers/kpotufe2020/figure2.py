"""Figure 2 of kpotufe2020: the Rand index against the number of features d and of landmarks n, on the IoT data.

The paper takes N = 10,000 traces, n = 200 and varies d (left), or d = 10 and varies n (right), with 10 repetitions, and
prints curves without numbers. Rows, scaling, kernel and k-means are those of `kpotufe2020.table2`: the 2,000 traces of
each of five devices that `iot_sample` takes are close to the paper's N.
"""

from pathlib import Path
from typing import Any

from proofs_check.papers.figures import (
    Numbers,
    Tables,
    draw_methods,
    summary,
    timed,
)
from proofs_check.papers.kpotufe2020.rand_indices import (
    METHODS,
    clusters,
    load,
    repeated,
    standardise,
)

TABLES: Tables = {
    "rows": {
        "n": "{n}",
        "d": "{d}",
        "method": "{method}",
        "Rand index": "{mean:.3f} ± {sd:.3f}",
    }
}
PANELS = (1, 2)
SIZE = (9, 3.8)
FIXED_LANDMARKS = 200
FIXED_FEATURES = 10


def data(*, full: bool, seed: int, dtype: Any, data_dir: Path) -> dict[str, Any]:
    """Return the Rand indices of the three kernel methods, for every n and d."""
    per_device = 2000 if full else 100
    repetitions = 10 if full else 2
    X, labels = load(data_dir, "iot", per_device=per_device)
    problem = clusters(standardise(X).astype(dtype), labels)
    rows = []
    for n, d in timed(sizes(full)):
        for method in METHODS[1:]:
            values = repeated(method, problem, n, d, repetitions=repetitions, seed=seed)
            rows.append({"n": n, "d": d, "method": method, **summary(values)})
    return {"points": len(X), "rows": rows}


def sizes(full: bool) -> list[tuple[int, int]]:
    """Return the pairs (n, d) of both panels."""
    features = (2, 5, 10, 20, 50, 100, 200) if full else (2, 5)
    landmarks = (10, 20, 50, 100, 200, 500, 1000) if full else (20, 50)
    left = [(FIXED_LANDMARKS, d) for d in features]
    right = [(n, FIXED_FEATURES) for n in landmarks]
    return list(dict.fromkeys(left + right))


def draw(axes: Any, data: Numbers) -> None:
    """Draw the Rand index against d at the fixed n (left) and against n at the fixed d (right)."""
    axes[0].set_ylabel("Rand index")
    axes[1].sharey(axes[0])
    ordered = sorted(data["rows"], key=lambda row: (row["n"], row["d"]))
    left = [row for row in ordered if row["n"] == FIXED_LANDMARKS]
    right = [row for row in ordered if row["d"] == FIXED_FEATURES]
    draw_methods(axes[0], left, "d", "sd")
    draw_methods(axes[1], right, "n", "sd")
    axes[0].set(xlabel="features d", title=f"n = {FIXED_LANDMARKS}")
    axes[1].set(xlabel="landmarks n", title=f"d = {FIXED_FEATURES}")
    axes[1].legend(loc="lower right")
