"""Rows on storage: a folder of Parquet shards against one file that is mapped into memory."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._case import Case, Work, agree
from benchmarks.growth import write
from jaxkern import features, scale
from jaxkern.kernels import Gaussian

DIM, SHARDS = 8, 10


def _stream(small: bool) -> Work:
    """Both stream the same rows through the same small map, so that reading counts as much as it can."""
    import pyarrow as arrow
    from pyarrow import parquet

    rows = 20_000 if small else 10_000_000
    folder = tempfile.TemporaryDirectory(prefix="benchmarks")
    shards = Path(folder.name, "shards")
    shards.mkdir()
    one = write(Path(folder.name, "rows.npy"), rows, DIM)
    for i, start in enumerate(range(0, rows, rows // SHARDS)):
        part = one[start : start + rows // SHARDS]
        table = arrow.table(
            {f"x{j}": np.ascontiguousarray(part[:, j]) for j in range(DIM)}
        )
        parquet.write_table(table, shards / f"part-{i:03}.parquet")
    phi = features.paired_fourier(
        jax.random.key(0), Gaussian(3.0), DIM, num_frequencies=8, dtype=jnp.float32
    )
    pca = features.streaming_pca(phi, sketch_size=8)

    def check(ours: Any, peers: Mapping[str, Any]) -> dict[str, float]:
        pairs = zip(
            jax.tree.leaves(ours), jax.tree.leaves(peers["one .npy file"]), strict=True
        )
        return agree(
            "arrays that differ", sum(not np.array_equal(a, b) for a, b in pairs), 0
        )

    return Work(
        ours=lambda folder=folder: scale.stream(
            pca, scale.open_rows(shards)
        ),  # the folder lives as long as the case
        peers={"one .npy file": lambda: scale.stream(pca, one)},
        check=check,
        items=rows,
        unit="rows",
    )


CASES = (
    Case(
        "stream-shards",
        "principal components of a stream of 10,000,000 rows of 8 columns in ten Parquet shards, 16 features",
        _stream,
        {"one .npy file": 1 / 1.5},
        rounds=3,
        one_blas_thread=True,  # small decompositions
    ),
)
