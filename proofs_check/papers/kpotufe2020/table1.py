"""Table 1 of kpotufe2020: sizes, dimensions and numbers of clusters of its data, against the files.

The files are those of `kpotufe2020.table2`. For IoT it takes what `iot_sample` takes: the paper's 40,000 traces are not
published.
"""

from pathlib import Path
from typing import Any

from proofs_check.papers.figures import Tables
from proofs_check.papers.kpotufe2020.rand_indices import load
from proofs_check.papers.kpotufe2020.table2 import NAMES

TABLES: Tables = {
    "rows": {
        "data": "{title}",
        "N": "{found[0]}",
        "dimension": "{found[1]}",
        "clusters": "{found[2]}",
        "printed N": "{printed[0]}",
        "printed dimension": "{printed[1]}",
        "printed clusters": "{printed[2]}",
    }
}
PRINTED = {"avila": (20867, 10, 12), "iot": (40000, 115, 5), "banknote": (1372, 4, 2)}


def data(*, data_dir: Path) -> dict[str, Any]:
    """Return the numbers of rows, columns and labels of every file, and the printed ones."""
    rows = []
    for name, printed in PRINTED.items():
        X, labels = load(data_dir, name)
        sizes = (*X.shape, len(set(labels.tolist())))
        rows.append(
            {"data": name, "title": NAMES[name], "found": sizes, "printed": printed}
        )
    return {"rows": rows}
