"""Table 1 of kpotufe2020: sizes, dimensions and numbers of clusters of its data, against the files.

`python -m proofs_check.papers.kpotufe2020.table1 --data-dir DIR` reads the files of `kpotufe2020.table2`. For IoT it
takes what `iot_sample` takes: the paper's 40,000 traces are not published.
"""

import argparse
import sys

from proofs_check.papers import figures
from proofs_check.papers.kpotufe2020.rand_indices import FILES, iot_sample, read
from proofs_check.papers.kpotufe2020.table2 import NAMES

PRINTED = {"avila": (20867, 10, 12), "iot": (40000, 115, 5), "banknote": (1372, 4, 2)}
COLUMNS = (
    "data",
    "N",
    "dimension",
    "clusters",
    "printed N",
    "printed dimension",
    "printed clusters",
)


def _compute(options: argparse.Namespace, say: figures.Say) -> figures.Result:
    sizes = {}
    with figures.as_usage():
        for name, file in FILES.items():
            X, y = read(options.data_dir / file)
            X, y = iot_sample(X, y) if name == "iot" else (X, y)
            sizes[name] = (*X.shape, len(set(y.tolist())))
    cells = [
        (NAMES[name], *map(str, (*row, *PRINTED[name]))) for name, row in sizes.items()
    ]
    rows = [
        {"data": name, "found": row, "printed": PRINTED[name]}
        for name, row in sizes.items()
    ]
    return figures.Result(
        [figures.Table("kpotufe2020, Table 1", COLUMNS, cells)], {}, {"rows": rows}
    )


TABLE = figures.Figure(
    "kpotufe2020_table1",
    "Table 1",
    "Compare Table 1 of kpotufe2020 with the files.",
    _compute,
    (figures.data_dir(*FILES.values()),),
    timed=False,
)
main = TABLE.main

if __name__ == "__main__":
    sys.exit(main())
