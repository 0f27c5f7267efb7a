"""Which devices share the rows, which rows are those of this process, and what to say when another process is gone."""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from jaxkern import checks
from jaxkern._types import Sharding

AXIS = "rows"
"""The one axis of the meshes made here."""


def devices_of(sharding: Any) -> tuple[jax.Device, ...]:
    """Return all devices of a sharding of rows, in the order of its mesh."""
    mesh = sharding.mesh if isinstance(sharding, NamedSharding) else sharding
    if not isinstance(mesh, Mesh):
        raise ValueError(
            f"sharding must be a jax.sharding.Mesh or NamedSharding, got {type(sharding).__name__}; pass "
            'jax.make_mesh((jax.device_count(),), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))'
        )
    if isinstance(sharding, NamedSharding):
        spec = tuple(sharding.spec)
        if not spec or spec[0] is None or any(axis is not None for axis in spec[1:]):
            raise ValueError(
                f"sharding must divide rows and nothing else, got {sharding.spec}; pass P(axis)"
            )
    return tuple(mesh.devices.flat)


def local_mesh(sharding: Any) -> Mesh:
    """Return the devices of this process that share its rows; those of its default device alone for None."""
    if sharding is None:
        return Mesh(np.array([_default_device()]), AXIS)
    own = [
        device
        for device in devices_of(sharding)
        if device.process_index == jax.process_index()
    ]
    if not own:
        raise ValueError(
            f"sharding must have devices of every process, got none of process {jax.process_index()}"
        )
    return Mesh(np.array(own), AXIS)


def spans_processes(sharding: Any) -> bool:
    """Tell whether other processes have a part in the rows."""
    return sharding is not None and any(
        d.process_index != jax.process_index() for d in devices_of(sharding)
    )


def local_rows(num_rows: int, sharding: Sharding) -> slice:
    """Return which of `num_rows` rows are the share of this process, a range after that of the process before.

    Parameters
    ----------
    num_rows : N, at least 0.
    sharding : a `jax.sharding.Mesh`, or a `NamedSharding` of rows. All devices of its mesh share the rows; the share of
        a process is proportional to how many of them it has.

    Returns
    -------
    slice, with start and stop in [0, N]; the shares of all processes are disjoint and together all rows.

    Examples
    --------
    >>> import jax
    >>> mesh = jax.make_mesh((jax.device_count(),), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
    >>> local_rows(100, mesh)
    slice(0, 100, None)
    """
    num_rows = checks.count("num_rows", num_rows, minimum=0)
    owners = [device.process_index for device in devices_of(sharding)]
    before = sum(owner < jax.process_index() for owner in owners)
    here = owners.count(jax.process_index())
    return slice(
        num_rows * before // len(owners), num_rows * (before + here) // len(owners)
    )


@contextlib.contextmanager
def together(doing: str) -> Iterator[None]:
    """Say clearly that another process is gone, where what all of them do together fails."""
    try:
        yield
    except (
        RuntimeError,
        ValueError,
    ) as error:  # gloo and the coordination service raise either
        if jax.process_count() == 1:
            raise
        raise RuntimeError(
            f"process {jax.process_index()} of {jax.process_count()} could not {doing}: another process has ended or "
            "cannot be reached. Start all processes again; what is recorded as finished stays finished"
        ) from error


def wait_for_all(doing: str) -> None:
    """Return when every process is about to do the same; RuntimeError where one has ended."""
    from jax.experimental import multihost_utils

    with together(f"{doing} with the others"):
        multihost_utils.sync_global_devices(f"jaxkern.scale: {doing}")


def gather(tree: Any) -> Any:
    """Return the arrays of all processes, stacked in front, (processes, ...), as NumPy arrays."""
    from jax.experimental import multihost_utils

    with together("exchange arrays with the others"):
        return multihost_utils.process_allgather(tree)


def agree(digests: dict[str, str]) -> None:
    """Raise ValueError on every process unless all have the same hexadecimal digest under each name."""
    mine = np.array(
        [list(bytes.fromhex(digest)) for digest in digests.values()], np.uint8
    )
    theirs = gather(mine)
    for i, name in enumerate(digests):
        other = [j for j in range(len(theirs)) if (theirs[j, i] != theirs[0, i]).any()]
        if other:
            raise ValueError(
                f"{name} must be the same on every process; that of {other} differs from that of 0"
            )


def _default_device() -> jax.Device:
    (device,) = jax.numpy.zeros(()).devices()
    return device
