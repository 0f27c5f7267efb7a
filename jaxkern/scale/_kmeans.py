"""k-means of rows that the devices of a mesh share: what `kmeans.kmeans` computes, with sums over the devices."""

from __future__ import annotations

import dataclasses
import os
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxkern import checks
from jaxkern._types import ArrayLike, Float, PRNGKeyArray, Sharding
from jaxkern.kmeans._kmeans import (
    KMeansResult,
    Points,
    Sizes,
    _kmeans,
    arguments,
    existing,
)
from jaxkern.kmeans._lloyd import Blocks, LloydState, iterate
from jaxkern.kmeans._share import Share, table_width
from jaxkern.scale import _mesh
from jaxkern.scale._embed import host_matrix
from jaxkern.scale._resume import Report, State, Teller, facts, fingerprint


def kmeans(
    key: PRNGKeyArray,
    X: Any,
    num_clusters: int,
    *,
    sharding: Sharding | None = None,
    weights: Float[ArrayLike, " N"] | None = None,
    num_restarts: int = 1,
    max_iterations: int = 300,
    tolerance: Float[ArrayLike, ""] = 1e-4,
    num_candidates: int | None = None,
    block_size: int | None = None,
    progress: str | os.PathLike[str] | None = None,
    report: Report | None = None,
) -> KMeansResult:
    """Cluster points that many devices share: the result of `kmeans.kmeans` with the same key, within rounding.

    Every device holds a range of the rows. Seeds are drawn as there: all devices draw the same row of the same table of
    weights, and the device that has it tells the others. A Lloyd iteration adds up sums and counts over the devices.

    Parameters
    ----------
    key : a typed random key, the same on every process.
    X : (N, d) points, float32 or float64, N >= num_clusters, in a NumPy or JAX array, a memory-mapped file, or what
        `open_rows` returns, that all processes see; each device is sent its own rows only.
    sharding : a `jax.sharding.Mesh`, or a `NamedSharding` of rows, whose devices share the rows; by default one
        device.
    num_clusters, weights, num_restarts, max_iterations, tolerance : as in `kmeans.kmeans`.
    num_candidates, block_size : as there; blocks are those of one device.
    progress : path of a file in which the centres are kept, after the seeding of each restart, every ten seconds and
        at the end. If it is there, the same call goes on from it, even after `kill -9`, and ends with the same bits on
        as many devices. Over several processes the first one keeps it, and any number of them goes on.
    report : called as report(done, None) on the host after the seeding of each restart and after every iteration, with
        the number of iterations done in all; how many there will be is not known.

    Returns
    -------
    KMeansResult, of arrays that every process holds: labels (N,), centers (k, d), objective, converged, iterations.

    Raises
    ------
    ValueError
        As `kmeans.kmeans`, and if sharding is of another kind, or processes have different keys; if
        progress is damaged or belongs to another key, size, tolerance or weights, shape of X, first or last row of X,
        or table of `open_rows`.
    RuntimeError
        If another process has ended.

    Notes
    -----
    Time that of `kmeans.kmeans`, divided by the number of devices D. A device holds N / D + sqrt(N) rows at most,
    twice, and all labels. An iteration exchanges k (d + 1) numbers; a seed sqrt(N) numbers, and num_candidates times
    d + sqrt(N) more. With `progress` or `report`, or where the log listens, every iteration is a program of its own:
    the same numbers within rounding, and going on repeats one iteration.

    Examples
    --------
    >>> import jax
    >>> mesh = jax.make_mesh((jax.device_count(),), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> kmeans(jax.random.key(1), X, 4, sharding=mesh).labels.shape
    (100,)
    """
    key = checks.key(key)
    host_matrix("X", X)
    weights = checks.weights(weights, "X", X)
    devices = (
        tuple(_mesh.local_mesh(None).devices.flat)
        if sharding is None
        else _mesh.devices_of(sharding)
    )
    mesh = Mesh(np.array(devices), _mesh.AXIS)
    key_data, impl = np.asarray(jax.random.key_data(key)), str(jax.random.key_impl(key))
    many = _mesh.spans_processes(sharding)
    if many:
        _mesh.agree(
            {
                "key": fingerprint((key_data, impl)),
                "X": fingerprint((X.shape, str(X.dtype))),
            }
        )
    width = table_width(max(X.shape[0], 1))
    rows = -(-X.shape[0] // (width * len(devices))) * width  # of one device
    shape = rows, X.shape[1]
    sizes, max_iterations = arguments(
        X.shape[0],
        shape,
        num_clusters,
        num_restarts,
        max_iterations,
        tolerance,
        num_candidates,
        block_size,
    )
    job = _Job(impl, Share(X.shape[0], _mesh.AXIS), sizes)
    common = {"key": key_data, "max_iterations": np.asarray(max_iterations, np.int32)}
    common["tolerance"] = np.asarray(tolerance, X.dtype)
    kept, tell = None, Teller("kmeans", report)
    if progress is not None and (jax.process_index() == 0 or not many):
        run = {
            "key": fingerprint((key_data, impl)),
            "sizes": list(sizes[:3]),
            "weights": fingerprint(weights),
        }
        run |= facts(X) | {
            "max_iterations": max_iterations,
            "tolerance": float(common["tolerance"]),
        }
        kept = State(progress, run)
    with _mesh.together("cluster with the others"):
        rows_of = {"X": _put(X, rows, mesh)}
        if weights is not None:
            rows_of["weights"] = _put(np.asarray(weights), rows, mesh)
        on_mesh = partial(_on_mesh, job=job, mesh=mesh)
        watched = progress is not None or tell.listened
        if many:  # where one process watches, all must run the same programs
            watched = bool(_mesh.gather(np.array(watched)).any())
        if watched:
            result = _in_turns(on_mesh, common, rows_of, sizes, tell, kept, many)
        else:
            result, _ = on_mesh("whole", common, rows_of)
        # Programs with sums over several devices of a CPU must not queue up: they could wait for each other for ever.
        result = jax.tree.map(np.asarray, jax.block_until_ready(result))
    result = jax.tree.map(jnp.asarray, result)
    return dataclasses.replace(result, labels=result.labels[: X.shape[0]])


class _Job(NamedTuple):
    """What the devices of a mesh do together: the whole, or one turn of it.

    Each takes, and returns, what all devices hold alike, and what each holds of its rows.
    """

    impl: str
    share: Share
    sizes: Sizes

    def whole(self, common: Any, rows: Any) -> Any:
        key = jax.random.wrap_key_data(common["key"], impl=self.impl)
        numbers = common["max_iterations"], common["tolerance"]
        return self._all(
            _kmeans(
                key,
                rows["X"],
                rows.get("weights"),
                *numbers,
                sizes=self.sizes,
                share=self.share,
            )
        )

    def prepare(self, _: Any, rows: Any) -> Any:
        """Centre the points."""
        points = Points.of(rows["X"], rows.get("weights"), None, self.sizes, self.share)
        own = {
            "blocks": points.blocks[:3],
            "labels": LloydState.begin(points.blocks, points.mean).labels,
        }
        return {"mean": points.mean, "spread": points.spread}, own

    def seed(self, common: Any, rows: Any) -> Any:
        key = jax.random.wrap_key_data(common["key"], impl=self.impl)
        return self._points(common, rows).seeds(
            jax.random.fold_in(key, common["restart"]), self.sizes
        ), ()

    def iterate(self, common: Any, rows: Any) -> Any:
        """Do one iteration."""
        state = LloydState(
            common["centers"], rows["labels"], jnp.array(False), common["iterations"]
        )
        threshold = common["tolerance"] * common["spread"]
        state = iterate(
            self._points(common, rows).blocks, state, state.iterations + 1, threshold
        )
        return (state.centers, state.stands), state.labels

    def finish(self, common: Any, rows: Any) -> Any:
        numbers = common["centers"], common["stands"], common["iterations"]
        return self._all(self._points(common, rows).result(*numbers))

    def _points(self, common: Any, rows: Any) -> Points:
        X, weights = rows["X"], rows.get("weights")
        cut, sizes, counts = rows["blocks"]
        blocks = Blocks(cut, sizes, counts, self.share.count(X.shape[0]), self.share)
        return Points(
            existing(X, weights, self.share),
            weights,
            None,
            common["mean"],
            common["spread"],
            blocks,
        )

    def _all(self, result: KMeansResult) -> Any:
        return dataclasses.replace(result, labels=self.share.gather(result.labels)), ()


@partial(jax.jit, static_argnames=("turn", "job", "mesh"))
def _on_mesh(turn: str, common: Any, rows: Any, *, job: _Job, mesh: Mesh) -> Any:
    specs = PartitionSpec(), PartitionSpec(_mesh.AXIS)
    function = getattr(job, turn)
    return jax.shard_map(
        function, mesh=mesh, in_specs=specs, out_specs=specs, check_vma=False
    )(common, rows)


def _in_turns(
    on_mesh: Any,
    common: Any,
    rows: Any,
    sizes: Sizes,
    tell: Teller,
    kept: State | None,
    many: bool,
) -> Any:
    """Return what `whole` does, by one iteration after the other.

    What is kept are the centres before an iteration that is finished, and did not end its restart. To go on is to do
    that one again, for the labels with which the next one compares its own. All begin where the first process says.
    """
    X, unseeded = rows["X"], np.array(-1, np.int32)
    nowhere = {
        "centers": np.full((sizes.num_clusters, X.shape[1]), np.nan, X.dtype),
        "iterations": unseeded,
    }
    best = nowhere | {"stands": np.array(False), "objective": np.array(np.inf, X.dtype)}
    fresh = (0, nowhere | {"restart": np.array(0, np.uint32), "best": best})
    start = jax.tree.map(np.asarray, fresh if kept is None else kept.read(fresh[1]))
    done, state = (
        jax.tree.map(lambda leaf: leaf[0], _mesh.gather(start)) if many else start
    )

    def keep(done: int, state: Any) -> None:
        if kept is not None:
            kept.keep(int(done), state)

    alike, own = jax.block_until_ready(on_mesh("prepare", common, rows))
    common, rows, whole = common | alike, rows | own, None
    while state["restart"] < sizes.num_restarts:
        if state["iterations"] < 0:
            seeds, _ = on_mesh("seed", common | {"restart": state["restart"]}, rows)
            state |= {"centers": np.asarray(seeds), "iterations": unseeded + 1}
            keep(done, state)
            tell(int(done), None)
        now = {name: state[name] for name in ("centers", "iterations")} | {
            "stands": np.array(False)
        }
        labels = rows["labels"]
        while not now["stands"] and now["iterations"] < common["max_iterations"]:
            before = {name: now[name] for name in ("centers", "iterations")}
            (centers, stands), labels = on_mesh(
                "iterate", common | now, rows | {"labels": labels}
            )
            now = {
                "centers": centers,
                "iterations": now["iterations"] + 1,
                "stands": np.asarray(stands),
            }
            done = done + 1  # anew: it may be an array that is kept
            if kept is not None and kept.due and not now["stands"]:
                keep(done - 1, state | before)
            tell(int(done), None)
        result, _ = on_mesh("finish", common | now, rows)
        now |= {"objective": np.asarray(result.objective)}
        if sizes.num_restarts == 1 or now["objective"] < state["best"]["objective"]:
            state["best"], whole = now, result
        state |= {"restart": state["restart"] + 1, "iterations": unseeded}
        keep(done, state)
    return (
        on_mesh("finish", common | state["best"], rows)[0] if whole is None else whole
    )


def _put(array: Any, rows: int, mesh: Mesh) -> jax.Array:
    """Give every device its `rows` rows of an array that has fewer in all; zeros follow."""
    shape = (rows * mesh.devices.size, *array.shape[1:])

    def part(index: Any) -> np.ndarray:
        here = np.asarray(array[index[0]])
        return np.pad(here, ((0, rows - here.shape[0]), *((0, 0),) * (here.ndim - 1)))

    return jax.make_array_from_callback(
        shape, NamedSharding(mesh, PartitionSpec(_mesh.AXIS)), part
    )
