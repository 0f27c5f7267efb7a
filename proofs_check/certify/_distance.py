"""The goal "distance": all kernel distances of the given points shall survive, to a relative error.

The work is one product of features for all pairs, in float32 and in square tiles. Everything else is about pairs that a
product cannot tell apart. Distances by products lose digits to cancellation: with features less their mean,
|phi(x) - phi(y)|^2 comes out with an error of about 1e-6 (a_x + a_y), a their squared norms, which is nothing for most
pairs and everything for near-duplicates. The kernel knows before any map is drawn which pairs these are. So `prepare`
sorts the pairs of every tile, once: most go to the float32 product, close ones to differences of features, and tiles
that are full of close ones to a float64 product. All three give the ratio to well within 1 % of eps.

Equal rows are one point: their pairs have no relative error, and their features are computed once. Kernel distances
are those of the rows in float64, features those of the rows as the map gets them.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import checks
from jaxkern.features import as_map
from jaxkern.kernels import psd_kernel
from proofs_check.certify._errors import finite
from proofs_check.certify._leading import Choice, Products
from proofs_check.certify._rows import Rows, distinct, embed, rows_of
from proofs_check.certify._tiles import (
    Ratios,
    Reach,
    Tile,
    all_ratios,
    by_difference,
    centred,
    direct,
    mean_of,
    reach_of,
    tile_of,
    worst_of,
)

_SIDE = 1024
_ROUND_SIDE = 64
_MIDDLE = 256
"""Points whose mean is subtracted from features."""
_HELD_BYTES = 2**30
"""Squared distances of all pairs are kept in memory up to this size, and computed again for every draw beyond it."""
_CHUNKS = 256, 1024
"""Pairs whose features are subtracted at once: the smaller number where a tile has no more."""
_CROWDED = 64
"""A tile in which more than one pair in 64 is close takes a float64 product: it costs twice a float32 one, which is
still less than that many differences."""
_CANCELLATION = 1e-4
"""Squared distances above this times (a_x + a_y) / eps come from float32 products. Their error was at most
1.2e-6 (a_x + a_y) for 128 to 40,000 features, which moves the ratio of distances by at most 0.6 % of eps."""
_CLOSE = 0.01
"""Errors that differ by less than this share of eps may be taken for each other."""
_FEW_TILES = 16
"""Of more tiles than this, only pairs that may be the worst are computed with all features."""
_MOST_DETAIL = 2_000
_NUM_BINS = 24


@dataclass(frozen=True, eq=False)
class Pairs:
    """Points and their kernel distances, for the errors of any number of maps.

    Attributes
    ----------
    blocks : the different rows as maps get them, (side, dim) each; copies of the last one fill the last block.
    exact : the same in float64.
    counts : (blocks side,) how often every row was given, 0 for filling.
    weights : (side,) for each block: those of the mean that is subtracted from features.
    tiles : every pair of blocks once.
    zero_pairs : pairs of given rows at distance zero; they have no relative error and are left out.
    unresolved : pairs so close that rounding of their coordinates and features alone may change the distance of
        features by more than eps times the distance. They count with the error that comes out.
    rounding : the largest share of the distance of a pair by which the same rounding may change it.
    sample : at most 2,000 of the given rows, for a plot.
    """

    blocks: tuple[jax.Array, ...]
    exact: tuple[np.ndarray, ...]
    counts: np.ndarray
    weights: tuple[jax.Array, ...]
    tiles: tuple[Tile, ...]
    zero_pairs: int
    unresolved: int
    rounding: float
    sample: Rows
    _reach: tuple[Reach, ...]
    _choices: dict[int, Choice] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class Distance:
    """The error of a map is max over pairs of | |phi(x) - phi(y)| / |K_x - K_y| - 1 |.

    Attributes
    ----------
    kernel : positive semidefinite.
    eps : the error that will be asked for, in (0, 1): it says how exactly errors have to be computed. An error near eps
        is right to about 1 % of eps, and a larger one to about 1 % of itself, for pairs that are not `unresolved`.

    Notes
    -----
    For s points: `prepare` takes s^2 / 2 kernel values in float64 (whatever the dtype of the points) and 2 s^2 bytes,
    up to 1 GiB, beyond which the values are computed again for every draw. `error` takes s^2 num_features / 2
    multiply-adds in float32, from about 5,000 points on a fraction of them where the kernel is smooth, and memory for
    two copies of the features. One program serves all s up to the rounding of tiles, and num_features up to 64, 128
    and multiples of 256; mapping the points is compiled for every num_features, of Fourier features for a few of them.
    """

    kernel: Any
    eps: float

    name = "distance"
    words = "the largest relative error of the kernel distance over all pairs of points"

    def __post_init__(self) -> None:
        """Check what can be checked without points."""
        object.__setattr__(self, "kernel", psd_kernel(self.kernel))
        object.__setattr__(self, "eps", checks.open_unit("eps", self.eps))

    def refuses(self, map_name: str) -> str:
        """Return why a map is not meant to keep kernel distances, "" for all others; centred maps keep them too."""
        if map_name == "kernel_jl":
            return (
                "It preserves the Sigma^3-weighted inner product, not the kernel distance; "
                "distances shrink by as much as the data vary little in their direction."
            )
        return ""

    def prepare(
        self, key: Any, points: Any, _labels: np.ndarray | None = None
    ) -> Pairs:
        """Sort the pairs of points (s, dim) or `Rows` by how their distances can be computed; labels play no part.

        Raises ValueError if points are not a floating matrix of finite numbers.
        """
        rows = rows_of(points)
        rng = np.random.default_rng(
            np.asarray(jax.random.key_data(checks.key(key))).ravel().tolist()
        )
        if not np.isfinite(rows.points).all():
            raise ValueError("points must be finite")
        size = len(rows.points)
        sample = (
            rows
            if size <= _MOST_DETAIL
            else rows.at(np.sort(rng.choice(size, _MOST_DETAIL, replace=False)))
        )
        return dataclasses.replace(self._pairs(rows), sample=sample)

    def error(self, _key: Any, phi: Any, prepared: Pairs) -> float:
        """Return the largest relative error, NaN or inf where features are not numbers; the key is not used."""
        worst = jnp.asarray([1, -1], jnp.float32)

        def error() -> float:
            high, low = (float(value) for value in np.asarray(worst))
            return _off(high) if math.isnan(high) else max(_off(high), _off(-low))

        for part in self._parts(phi, prepared, error):
            worst = worst_of(worst, part.ratios)
        return error()

    def detail(self, phi: Any, prepared: Pairs) -> dict[str, Any]:
        """Return {"pairs": ...}: errors by distance, on at most 2,000 of the points.

        Bins of kernel distance are equal in logarithm and cover all pairs; a bin without pairs is left out.
        """
        pairs = (
            prepared
            if prepared.counts.sum() <= _MOST_DETAIL
            else self._pairs(prepared.sample)
        )
        errors, distances = [], []
        for part in self._parts(phi, pairs):
            measured = np.asarray(part.measured, float)
            counted = measured > 0
            weights = (pairs.counts[part.rows] * pairs.counts[part.cols])[counted]
            off = np.abs(
                np.sqrt(np.maximum(np.asarray(part.ratios, float)[counted], 0)) - 1
            )
            errors.append(np.repeat(off, weights))
            distances.append(np.repeat(measured[counted] ** part.power, weights))
        error, distance = np.concatenate(errors), np.concatenate(distances)
        return {
            "pairs": {
                "points": int(pairs.counts.sum()),
                "pairs": len(error),
                "zero_pairs": pairs.zero_pairs,
                "unresolved": pairs.unresolved,
                "largest": finite(error.max()) if len(error) else None,
                "bins": _bins(distance, error),
            }
        }

    def _pairs(self, rows: Rows) -> Pairs:
        first, counts = distinct(rows.points)
        size = len(first)
        number = -(-size // _SIDE)
        side = _ROUND_SIDE * -(-size // (number * _ROUND_SIDE))
        filling = number * side - size
        counts = np.pad(counts, (0, filling))
        centre = np.linspace(0, size - 1, _MIDDLE).astype(int)
        weights = (np.bincount(centre, minlength=number * side) / _MIDDLE).astype(
            rows.inputs.dtype
        )
        filled = np.pad(first, (0, filling), mode="edge").reshape(number, side)
        pairs = Pairs(
            blocks=tuple(jnp.asarray(rows.inputs[block]) for block in filled),
            exact=tuple(rows.points[block] for block in filled),
            counts=counts,
            weights=tuple(
                jnp.asarray(block) for block in weights.reshape(number, side)
            ),
            tiles=(),
            zero_pairs=int(np.sum(counts * (counts - 1)) // 2),
            unresolved=0,
            rounding=0.0,
            sample=rows,
            _reach=(),
        )
        rounding = float(jnp.finfo(rows.inputs.dtype).eps)
        with jax.enable_x64(True):
            middle = rows.points[first[centre]]
            both = ((rows.points[block], rows.at(block).moved()) for block in filled)
            reach = tuple(
                reach_of(self.kernel, *block, middle, self.eps, rounding)
                for block in both
            )
        pairs = dataclasses.replace(pairs, _reach=reach)
        hold = number * (number + 1) // 2 * side**2 * 4 <= _HELD_BYTES
        tiles = tuple(
            self._tile(pairs, int(i), int(j), hold)
            for i, j in zip(*np.triu_indices(number), strict=True)
        )
        return dataclasses.replace(
            pairs,
            tiles=tiles,
            zero_pairs=pairs.zero_pairs + sum(tile.zero_pairs for tile in tiles),
            unresolved=sum(tile.unresolved for tile in tiles),
            rounding=max(tile.share for tile in tiles) * self.eps,
        )

    def _tile(self, pairs: Pairs, rows: int, cols: int, hold: bool) -> Tile:
        """Return the tile of two blocks, with its pairs sorted by how their distances are computed."""
        side = pairs.blocks[0].shape[0]
        for wide in (False, True):
            squared, near, share = self._squared(pairs, rows, cols, wide)
            i, j = np.nonzero(np.asarray(near))
            if len(i) <= side * side // _CROWDED:
                break
        chunks = []
        zero, unresolved, largest = 0, 0, float(share)
        count = _CHUNKS[len(i) > _CHUNKS[0]]
        for start in range(0, len(i), count):
            used = np.arange(start, start + count) < len(i)
            a, b = (
                np.pad(k[start : start + count], (0, int(np.count_nonzero(~used))))
                for k in (i, j)
            )
            with jax.enable_x64(True):
                exact = direct(self.kernel, pairs.exact[rows], pairs.exact[cols], a, b)
                distances = np.where(used, np.asarray(exact), np.nan)
                chunks.append(
                    (a.astype(np.int32), b.astype(np.int32), jnp.asarray(distances))
                )
            reach = (
                np.asarray(pairs._reach[rows].rounding)[a]
                + np.asarray(pairs._reach[cols].rounding)[b]
            )
            weights = pairs.counts[rows * side + a] * pairs.counts[cols * side + b]
            apart = distances > 0
            zero += int(weights[distances == 0].sum())
            unresolved += int(weights[apart & (distances < reach)].sum())
            largest = max(
                largest, float(np.max(reach[apart] / distances[apart], initial=0))
            )
        return Tile(
            rows,
            cols,
            wide,
            squared if hold else None,
            tuple(chunks),
            zero,
            unresolved,
            largest,
        )

    def _squared(
        self, pairs: Pairs, rows: int, cols: int, wide: bool
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        digits = (
            float(np.finfo(np.float64).eps / np.finfo(np.float32).eps) if wide else 1.0
        )
        side = pairs.blocks[0].shape[0]
        last = int(np.count_nonzero(pairs.counts))
        with jax.enable_x64(True):
            return tile_of(
                self.kernel,
                (pairs.exact[rows], pairs._reach[rows], rows * side),
                (pairs.exact[cols], pairs._reach[cols], cols * side),
                last,
                _CANCELLATION * digits / self.eps,
            )

    def _parts(
        self, phi: Any, pairs: Pairs, known: Callable[[], float] | None = None
    ) -> Iterator[Ratios]:
        """Yield the ratios of all pairs, every pair once; of many tiles only those that may exceed an error `known`."""
        side = pairs.blocks[0].shape[0]
        phi = as_map(phi)
        images = [embed(phi, block) for block in pairs.blocks]
        mean = mean_of(tuple(images), pairs.weights)
        narrow = [centred(image, mean, dtype=jnp.float32) for image in images]
        products = Products(
            narrow,
            known if len(pairs.tiles) > _FEW_TILES else None,
            _CLOSE * self.eps,
            pairs._choices,
        )
        middle = (
            len(pairs.tiles) // 2
        )  # is more like the others than the first one is, and decides how they are done
        order = (*pairs.tiles[middle:], *pairs.tiles[:middle])

        def look(tile: Tile) -> tuple[jax.Array, jax.Array | None]:
            at, squared = (tile.rows, tile.cols), tile.squared
            squared = (
                self._squared(pairs, *at, tile.wide)[0] if squared is None else squared
            )
            return squared, None if tile.wide else products.look(at, squared)

        ahead = look(order[0])
        for tile, after in itertools.zip_longest(order, order[1:]):
            rows, cols, (squared, suspects) = tile.rows, tile.cols, ahead
            if (
                after is not None
            ):  # the device is at the next tile while this one is read
                ahead = look(after)
            if tile.wide:
                with jax.enable_x64(True):
                    a, b = (
                        centred(images[k], mean, dtype=jnp.float64)
                        for k in (rows, cols)
                    )
                    yield all_ratios(a, b, squared, (rows, cols))
            else:
                yield from products((rows, cols), squared, suspects)
            for i, j, distances in tile.near:
                with jax.enable_x64(True):
                    ratios = by_difference(images[rows], images[cols], i, j, distances)
                yield Ratios(ratios, distances, 1.0, rows * side + i, cols * side + j)


def _bins(distance: np.ndarray, error: np.ndarray) -> list[dict[str, Any]]:
    if not len(distance):
        return []
    edges = np.geomspace(distance.min(), distance.max(), _NUM_BINS + 1)
    which = np.clip(
        np.searchsorted(edges, distance, side="right") - 1, 0, _NUM_BINS - 1
    )
    bins = []
    for k in np.unique(which):
        inside = error[which == k]
        quantiles = np.quantile(inside, (0.5, 0.95, 1.0), method="inverted_cdf")
        shares = dict(zip(("q50", "q95", "q100"), map(finite, quantiles), strict=True))
        bins.append(
            {
                "low": float(edges[k]),
                "high": float(edges[k + 1]),
                "pairs": len(inside),
                **shares,
            }
        )
    return bins


def _off(squared_ratio: float) -> float:
    """Return | sqrt(squared_ratio) - 1 |; rounding may have made a ratio of zero a little less."""
    return (
        abs(math.sqrt(max(squared_ratio, 0.0)) - 1)
        if math.isfinite(squared_ratio)
        else squared_ratio
    )
