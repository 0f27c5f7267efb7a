"""A user's table: what is wrong with it in plain words, and its rows as points, without loading all of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from proofs_check.certify._columns import Columns, labelled, read_columns, select
from proofs_check.engine.reading import DataError, extreme, listed, look, place, plain

__all__ = ["Table", "from_array", "open_table", "rows_for"]

_CELLS = 2**20  # of a block: what is read at once takes a few times 8 MiB
_HASHED_ROWS = 2**24  # whose hashes take 128 MiB
_SCALES = 1_000.0  # ratio of two standard deviations beyond which distances hardly see the smaller one
_OUTLIER = 50.0  # standard deviations from the mean
_SINGLE = np.finfo(np.float32)
_RESOLUTION = 0.01  # of a standard deviation: coarser rounding hides what tells rows apart


@dataclass(frozen=True, eq=False)
class Table:
    """A table of points, which stays where it is: in memory, or in a mapped file that must not change meanwhile.

    Attributes
    ----------
    source : name of the file without folders, or what the caller called the array.
    rows, dim : how many points, and columns that are used.
    names : names of the columns that are used.
    labels : (rows,) int32, an index into `label_names`; None without labels.
    label_names : names of the classes.
    standardized : whether `take` and `blocks` subtract `mean` and divide by `scale`.
    mean, scale : (dim,) float64; zeros and ones where it is not standardised. The scale is the standard deviation with
        divisor `rows`.
    duplicate_rows : how many rows equal an earlier row, in the columns that are used and as float64.
    notes : sentences on what was left out and what looks wrong.
    left_out : name of a column -> why it is not used.
    """

    source: str
    rows: int
    dim: int
    names: tuple[str, ...]
    labels: np.ndarray | None
    label_names: tuple[str, ...]
    standardized: bool
    mean: np.ndarray
    scale: np.ndarray
    duplicate_rows: int
    notes: list[str]
    left_out: dict[str, str]
    _view: _View = field(repr=False)
    _largest: float = field(repr=False)

    def take(self, indices: Any, dtype: Any, *, raw: bool = False) -> np.ndarray:
        """Return rows in the order of `indices`, which may repeat, as an array (len(indices), dim).

        Rows are read in ascending order, and no others. Values are standardised in float64 before the cast, or with
        `raw` not at all. Raises ValueError for an index that does not exist, or DataError where a value does not fit
        into `dtype`.
        """
        indices = np.asarray(indices)
        if indices.ndim != 1 or (len(indices) and indices.dtype.kind not in "iu"):
            raise ValueError(f"indices must be a vector of whole numbers, got shape {indices.shape}, {indices.dtype}")
        if len(indices) and not 0 <= indices.min() <= indices.max() < self.rows:
            raise ValueError(f"indices must lie within 0 and {self.rows - 1}, got {indices.min()} to {indices.max()}")
        order = np.argsort(indices, kind="stable")
        out = np.empty((len(indices), self.dim), self._checked_dtype(dtype, raw))
        for part in _slices(len(indices), self.dim):
            block = self._view.rows_at(indices[order[part]])
            out[order[part]] = block if raw else self._finished(block)
        return out

    def blocks(self, size: int, dtype: Any) -> Iterator[np.ndarray]:
        """Yield all rows in order, in arrays (size, dim), of which the last may be shorter."""
        if size < 1:
            raise ValueError(f"size must be at least 1, got {size}")
        kind = self._checked_dtype(dtype)
        for start in range(0, self.rows, size):
            out = np.empty((min(size, self.rows - start), self.dim), kind)
            for part in _slices(len(out), self.dim):
                out[part] = self._finished(self._view.rows_from(start + part.start, start + part.stop))
            yield out

    def sample_rows(self, key: Any, count: int) -> np.ndarray:
        """Return indices of `count` distinct rows, see `rows_for`."""
        return rows_for(key, self.rows, count)

    def fits(self, dtype: Any) -> bool:
        """Tell whether every value of the table is in the range of a dtype."""
        return self._largest <= float(np.finfo(dtype).max)

    def _finished(self, block: np.ndarray) -> np.ndarray:
        return (block.astype(np.float64) - self.mean) / self.scale if self.standardized else block

    def _checked_dtype(self, dtype: Any, raw: bool = False) -> np.dtype:
        kind = np.dtype(dtype)
        if kind not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {kind}")
        if (raw or not self.standardized) and not self.fits(kind):
            raise DataError(
                f"{self.source}: values up to {self._largest:.3g} do not fit into {kind}; "
                + ("use float64" if self.standardized else "standardise the columns or use float64")
            )
        return kind


def open_table(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    labels: str | None = None,
    rows: int | None = None,
    standardize: bool = False,
    missing: str = "error",
    until: float = math.inf,
) -> Table:
    """Return the table in a `.npy`, `.npz` (array X), `.csv` or `.parquet` file.

    Parameters
    ----------
    path : the file; a `.npy` file may be larger than memory.
    columns : which columns to use: names, numbers from 1, or ranges of numbers such as "5-8"; None: all.
    labels : name or number of a column of classes, which is not used as a coordinate, or name of a vector in `.npz`;
        None: the vector y of a `.npz` file that has one.
    rows : how many rows to use, from the first; None: all.
    standardize : whether to subtract its mean from each column, and to divide it by its standard deviation.
    missing : "error", or "drop" to leave out rows in which a used column or the label holds no number.
    until : when reading is given up with a DataError, by the monotonic clock.

    Columns with no number at all and constant columns are left out; everything that is left out or looks wrong is in
    `left_out` and `notes`. Two passes over the data, or four where cells are missing; a few times 8 MiB of memory and
    16 bytes a row, beyond the data themselves where the file is no `.npy`. Raises DataError, in one line.
    """
    _check(rows, missing)
    found = read_columns(path, columns=columns, labels=labels, rows=rows, until=until)
    words = _Words(place(path), "--missing drop", "--columns", "--standardize", "--dtype float64")
    return _table(plain(Path(path).name), found, words, standardize, missing, until)


def from_array(
    X: Any,
    *,
    columns: Sequence[str] | None = None,
    labels: Any = None,
    names: Sequence[str] | None = None,
    rows: int | None = None,
    standardize: bool = False,
    missing: str = "error",
    source: str = "X",
) -> Table:
    """Return the table in a NumPy or JAX array of real numbers (rows, columns), or in a mapped one, without a copy.

    `labels` is a vector (rows,) of numbers or text, or the name or number of a column; `names` are those of the
    columns, x1, x2, ... by default. The rest is as in `open_table`. Raises ValueError with the same words.
    """
    _check(rows, missing)
    where = plain(source)
    array = np.asarray(X)
    by_name = labels if isinstance(labels, str) else None
    found = select(where, array, columns, by_name, rows, names)
    if labels is not None and by_name is None:
        found = labelled(where, found, np.asarray(labels), "labels", len(array))
    words = _Words(where, 'missing="drop"', "columns", "standardize=True", "float64")
    return _table(where, found, words, standardize, missing)


def rows_for(key: Any, num_rows: int, count: int) -> np.ndarray:
    """Return `count` of the indices 0 ... num_rows - 1, uniform without replacement, ascending, as int64.

    They are a function of the typed key and the two numbers, for one version of NumPy. O(count) time and memory where
    count is below num_rows / 50, at most O(num_rows). Raises ValueError.
    """
    import jax

    from jaxkern import checks

    words = np.asarray(jax.random.key_data(checks.key(key))).ravel().tolist()
    count = checks.count("count", count, maximum=num_rows, limit="the number of rows")
    if count == num_rows:
        return np.arange(num_rows)
    rng = np.random.default_rng(np.random.SeedSequence(words))
    return np.sort(rng.choice(num_rows, count, replace=False, shuffle=False))


@dataclass(frozen=True)
class _Words:
    """How messages begin, and how the person who reads them passes the options that they name."""

    where: str
    drop: str
    columns: str
    standardize: str
    double: str


@dataclass(frozen=True)
class _View:
    """Some columns and some rows of an array. `columns` and `kept` are ascending or any indices; None: all."""

    array: np.ndarray
    columns: np.ndarray | None
    kept: np.ndarray | None = None
    until: float = math.inf

    @property
    def rows(self) -> int:
        return len(self.array) if self.kept is None else len(self.kept)

    @property
    def dim(self) -> int:
        return self.array.shape[1] if self.columns is None else len(self.columns)

    def rows_from(self, start: int, stop: int) -> np.ndarray:
        """Return a range of rows as (stop - start, dim), in the dtype of the array, maybe without a copy."""
        if self.kept is not None:
            return self.rows_at(np.arange(start, stop))
        block = self.array[start:stop]
        return block if self.columns is None else block[:, self.columns]

    def rows_at(self, indices: np.ndarray) -> np.ndarray:
        """Return rows by number."""
        at = indices if self.kept is None else self.kept[indices]
        return self.array[at] if self.columns is None else self.array[at[:, None], self.columns]

    def transposed(self) -> Iterator[np.ndarray]:
        """Yield all rows in blocks (dim, size) of float64, copies that may be overwritten."""
        for part in _slices(self.rows, self.dim):
            look("the table", self.until)
            with np.errstate(over="ignore"):  # what does not fit into float64 counts as infinite
                yield np.array(self.rows_from(part.start, part.stop).T, np.float64, order="C")

    def restricted(self, positions: np.ndarray) -> _View:
        """Return the view of some of its columns, by position."""
        if len(positions) == self.dim:
            return self
        return replace(self, columns=positions if self.columns is None else self.columns[positions])


@dataclass(frozen=True)
class _Moments:
    """Each column: how many cells are NaN and infinite, and, without such cells, mean, deviation and range."""

    nan: np.ndarray
    infinite: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def of(self, positions: np.ndarray) -> _Moments:
        return _Moments(*(getattr(self, name)[positions] for name in self.__dataclass_fields__))


def _table(
    source: str, found: Columns, words: _Words, standardize: bool, missing: str, until: float = math.inf
) -> Table:
    notes, left_out = list(found.notes), dict(found.left_out)
    every = found.used == tuple(range(found.array.shape[1]))
    view = _View(found.array, None if every else np.array(found.used, np.int64), until=until)
    moments = _moments(view)
    names = np.array(found.names, object)
    texts = [found.texts.get(i, (0, "")) for i in range(view.dim)]

    holes = moments.nan + moments.infinite
    empty = holes == view.rows
    left_out |= {names[i]: _why_empty(texts[i][1]) for i in np.flatnonzero(empty)}
    if empty.all():
        raise DataError(f"{words.where}: no column holds a number; {_reasons(left_out)}")
    if empty.any():
        notes.append(f"{_columns_are(names[empty])} left out, since no cell there is a number: {listed(names[empty])}.")
    lost_labels = 0 if found.classes is None else int(np.sum(found.classes < 0))
    if (holes[~empty] > 0).any() or lost_labels:
        places = [
            _holes(names[i], texts[i], int(moments.nan[i]), int(moments.infinite[i]))
            for i in np.flatnonzero(~empty & (holes > 0))
        ]
        if lost_labels:
            places.append(f"'{found.label}' (the labels): {lost_labels:,} missing")
        kept = _complete(view.restricted(np.flatnonzero(~empty)), found.classes)
        count = f"{view.rows - len(kept):,} of {view.rows:,} rows"
        where = f"{'; '.join(places[:8])}{f'; and {len(places) - 8:,} more columns' if len(places) > 8 else ''}"
        if missing == "error":
            raise DataError(
                f"{words.where}: {count} hold no number in some column ({where}); "
                f"pass {words.drop} to leave out those rows, or choose others with {words.columns}"
            )
        if len(kept) < 2:
            raise DataError(
                f"{words.where}: only {len(kept)} of {view.rows:,} rows hold a number in every column ({where}); "
                f"choose others with {words.columns}"
            )
        notes.append(f"{count} are left out, since they hold no number in some column ({where}).")
        view = replace(view, kept=kept)
        moments = _moments(view)

    constant = ~empty & (moments.low == moments.high)
    left_out |= {names[i]: f"holds one value, {moments.low[i]:.6g}" for i in np.flatnonzero(constant)}
    used = np.flatnonzero(~empty & ~constant)
    if not len(used):
        raise DataError(f"{words.where}: all rows are equal")
    if constant.any():
        notes.append(f"{_columns_are(names[constant])} left out, since all cells are equal: {listed(names[constant])}.")
    view, moments, names = view.restricted(used), moments.of(used), names[used]
    largest = np.maximum(np.abs(moments.low), np.abs(moments.high))
    unfit = extreme(moments.low, moments.high)
    if unfit.any():
        i = int(np.flatnonzero(unfit)[0])
        raise DataError(
            f"{words.where}: column '{names[i]}' holds values from {moments.low[i]:.3g} to {moments.high[i]:.3g}, "
            f"whose squares are out of range; change its unit, or choose others with {words.columns}"
        )
    classes, class_names = _classes(found, view)
    if len(class_names) > max(20, view.rows // 20):
        notes.append(
            f"The labels '{found.label}' hold {len(class_names):,} different values in {view.rows:,} rows: "
            "are they classes?"
        )
    if not standardize:
        notes += _units(names, moments, largest, words)
    notes += _outliers(names, moments, view)
    duplicates = _duplicates(view)
    if duplicates:
        notes.append(f"{duplicates:,} of {view.rows:,} rows equal an earlier row.")
    return Table(
        source=source,
        rows=view.rows,
        dim=view.dim,
        names=tuple(names.tolist()),
        labels=classes,
        label_names=class_names,
        standardized=standardize,
        mean=moments.mean if standardize else np.zeros(view.dim),
        scale=moments.deviation if standardize else np.ones(view.dim),
        duplicate_rows=duplicates,
        notes=notes,
        left_out=left_out,
        _view=view,
        _largest=float(largest.max()),
    )


def _classes(found: Columns, view: _View) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return the labels of the rows that are used, and the names of the classes that occur there."""
    if found.classes is None or view.kept is None:
        return found.classes, found.class_names
    there, classes = np.unique(found.classes[view.kept], return_inverse=True)
    return classes.astype(np.int32), tuple(found.class_names[i] for i in there)


# Passes over the rows


def _slices(rows: int, dim: int) -> Iterator[slice]:
    size = max(1, _CELLS // dim)
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def _moments(view: _View) -> _Moments:
    """Return mean and deviation of each column by blocks that are centred at their own mean and merged.

    A column with NaN or infinite cells has no numbers here but their count. The merge is that of T. F. Chan,
    G. H. Golub and R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
    """
    dim = view.dim
    nan, infinite = np.zeros(dim, np.int64), np.zeros(dim, np.int64)
    mean, squares = np.zeros(dim), np.zeros(dim)
    low, high = np.full(dim, np.inf), np.full(dim, -np.inf)
    rows = 0
    with np.errstate(invalid="ignore", over="ignore"):
        for block in view.transposed():
            size = block.shape[1]
            np.minimum(low, block.min(axis=1), out=low)  # NaN stays
            np.maximum(high, block.max(axis=1), out=high)
            for i in np.flatnonzero(~np.isfinite(block.sum(axis=1))):  # or a sum that overflows
                nan[i] += np.count_nonzero(np.isnan(block[i]))
                infinite[i] += np.count_nonzero(np.isinf(block[i]))
            centre = block.mean(axis=1)
            block -= centre[:, None]
            rest = block.mean(axis=1)  # what rounding left of the mean
            own = np.einsum("ij,ij->i", block, block) - size * rest**2
            step = centre + rest - mean
            rows += size
            mean += step * (size / rows)
            squares += own + step**2 * (size * (rows - size) / rows)
        squares = np.maximum(squares, (high - low) ** 2 / 2)  # at least that of the two ends, were it not for rounding
    return _Moments(nan, infinite, mean, np.sqrt(squares / rows), low, high)


def _complete(view: _View, classes: np.ndarray | None) -> np.ndarray:
    """Return the rows without NaN and infinite cells, and with a label."""
    whole = np.concatenate([np.isfinite(block).all(axis=0) for block in view.transposed()])
    return np.flatnonzero(whole if classes is None else whole & (classes >= 0))


def _duplicates(view: _View) -> int:
    """Return how many rows equal an earlier row, by 64-bit hashes of their float64 entries.

    Of n different rows some two have the same hash with probability about n**2 / 2**65, 3e-6 for ten million; rows that
    differ in one entry never have. Tables of more than `_HASHED_ROWS` rows are read several times, each time for one
    part of the hashes, which bounds the memory.
    """
    parts = -(-view.rows // _HASHED_ROWS)
    distinct = 0
    for part in range(parts):
        hashes = [_hashes(block) for block in view.transposed()] if parts == 1 else []
        for block in view.transposed() if parts > 1 else ():
            every = _hashes(block)
            hashes.append(every[every % np.uint64(parts) == part])
        held = np.concatenate(hashes)
        hashes.clear()
        held.sort()
        distinct += min(len(held), 1) + int(np.count_nonzero(held[1:] != held[:-1]))
    return view.rows - distinct


def _hashes(block: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of each row of a block (dim, rows); each entry is mixed in by a bijection."""
    block += 0.0  # -0.0 equals 0.0
    mixed = np.zeros(block.shape[1], np.uint64)
    for bits in block.view(np.uint64):
        mixed ^= bits
        for factor, shift in ((0xBF58476D1CE4E5B9, 29), (0x94D049BB133111EB, 32)):
            mixed *= np.uint64(factor)  # modulo 2**64
            mixed ^= mixed >> np.uint64(shift)
    return mixed


# Words


def _check(rows: int | None, missing: str) -> None:
    if missing not in ("error", "drop"):
        raise DataError(f'missing must be "error" or "drop", got {plain(missing)!r}')
    if rows is not None and operator.index(rows) < 2:
        raise DataError(f"rows must be at least 2, got {rows}")


def _columns_are(names: Sequence[str]) -> str:
    return "1 column is" if len(names) == 1 else f"{len(names):,} columns are"


def _why_empty(example: str) -> str:
    return f"holds text, such as '{example}'" if example else "holds no number"


def _reasons(left_out: dict[str, str]) -> str:
    return "; ".join(f"'{name}' {why}" for name, why in list(left_out.items())[:3])


def _holes(name: str, text: tuple[int, str], nan: int, infinite: int) -> str:
    count, example = text
    kinds = [f"{nan - count:,} missing"] if nan > count else []
    kinds += [f"{count:,} with text such as '{example}'"] if count else []
    kinds += [f"{infinite:,} infinite"] if infinite else []
    return f"'{name}': {', '.join(kinds)}"


def _units(names: np.ndarray, moments: _Moments, largest: np.ndarray, words: _Words) -> list[str]:
    """Return what columns that are not standardised do to distances, and to single precision."""
    found = []
    wide, narrow = int(np.argmax(moments.deviation)), int(np.argmin(moments.deviation))
    ratio = moments.deviation[wide] / moments.deviation[narrow]
    if ratio > _SCALES:
        found.append(
            f"The standard deviation of column '{names[wide]}' ({moments.deviation[wide]:.3g}) is {ratio:,.4g} times "
            f"that of '{names[narrow]}' ({moments.deviation[narrow]:.3g}), so that distances hardly see the latter; "
            f"{words.standardize} gives every column the same."
        )
    over = largest > float(_SINGLE.max) ** 0.5
    if over.any():
        found.append(
            f"The values of {listed(names[over])} are so large (up to {largest.max():.3g}) that they or their squares "
            f"overflow in single precision; pass {words.standardize} or {words.double}."
        )
    lost = ~over & (float(_SINGLE.eps) * largest > _RESOLUTION * moments.deviation)
    if lost.any():
        found.append(
            f"The values of {listed(names[lost])} are so large, compared with their standard deviations, that single "
            f"precision rounds away what tells rows apart; pass {words.standardize} or {words.double}."
        )
    return found


def _outliers(names: np.ndarray, moments: _Moments, view: _View) -> list[str]:
    """Return a sentence on entries far from the mean; columns whose range has none are not read again."""
    limit = _OUTLIER * moments.deviation
    far = np.flatnonzero(np.maximum(moments.high - moments.mean, moments.mean - moments.low) > limit)
    if not len(far):
        return []
    counts = np.zeros(len(far), np.int64)
    for block in view.restricted(far).transposed():
        counts += np.count_nonzero(np.abs(block - moments.mean[far, None]) > limit[far, None], axis=1)
    places = [f"{count:,} in '{name}'" for name, count in zip(names[far], counts, strict=True)]
    more = f" and more in {len(places) - 8:,} other columns" if len(places) > 8 else ""
    return [
        f"{counts.sum():,} entries lie more than {_OUTLIER:g} standard deviations from the mean of their column: "
        f"{', '.join(places[:8])}{more}."
    ]
