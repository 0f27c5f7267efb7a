"""Any map on any number of rows: out of core, on the devices of one process, and on those of many processes.

`embed` maps rows, `stream` sketches them, `kmeans` clusters them, `landmarks` chooses a few: rows of an array, of a
memory-mapped file, or of the files that `open_rows` opens. Each takes a `sharding`, whose devices share the rows, and
gives the same numbers on every mesh. Many processes are those of `jax.distributed`; `local_rows` says which rows are
whose. A process that dies ends the others with an error; `embed`, `stream` and `kmeans` can be resumed, and all report
how far they are.
"""

from jaxkern.scale._embed import embed
from jaxkern.scale._kmeans import kmeans
from jaxkern.scale._landmarks import landmarks
from jaxkern.scale._mesh import local_rows
from jaxkern.scale._source import open_rows
from jaxkern.scale._stream import merge_tree, stream

__all__ = [
    "embed",
    "kmeans",
    "landmarks",
    "local_rows",
    "merge_tree",
    "open_rows",
    "stream",
]
