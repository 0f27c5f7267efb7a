"""Certify a map for a table: read, ask the theory, draw, recommend."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import __version__, kernels
from proofs_check.certify import _certificate as parts
from proofs_check.certify._certificate import Certificate
from proofs_check.certify._clustering import Clustering
from proofs_check.certify._distance import Distance
from proofs_check.certify._facts import CELLS, affordable, facts
from proofs_check.certify._hypotheses import hypotheses
from proofs_check.certify._maps import MOST_LANDMARKS, NAMES, families
from proofs_check.certify._model import GOALS, LARGEST_SAMPLE, Goal, Rounding
from proofs_check.certify._plan import GROWTH, Clock, Entry, find
from proofs_check.certify._rows import feature_rounding, rounding_factor
from proofs_check.certify._separation import Separation
from proofs_check.certify._spectral import Spectral
from proofs_check.certify._table import Table, from_array, rows_for
from proofs_check.certify._theory import STATIONARY, demands
from proofs_check.certify._trials import Trials
from proofs_check.engine.versions import versions

KERNELS: dict[str, Callable[[Any], kernels.Kernel]] = {kernel.__name__.lower(): kernel for kernel in STATIONARY}
PAIRS = 100_000
"""Pairs of rows behind the default lengthscale; fewer of a table with more than 500 columns."""
FACTS = 0.15
LAST = 0.08
"""Shares of the time for facts about the data, and for what comes after the draws."""
LEAST_LAST = 15.0
"""So many seconds at least come after the draws, or a third of the time where that is less."""
SLACK = 1e-6
LOOKED_AT = 8_000
"""Rows of a larger table in which pairs that are too close for float32 are looked for; fewer where time is short."""
LOOKING = 0.15
"""Share of the time for that, and for what rounding may do."""
SHARE = 0.02
"""Share of eps beyond which what rounding may add asks for float64: sizes grow like eps^-2."""
FAR = 0.1
"""Kernel distance below which all pairs that were not looked at may be left out of a guarantee."""


def certify(
    key: Any,
    X: Any,
    *,
    eps: float = 0.1,
    delta: float = 0.05,
    confidence: float = 0.999,
    goal: str = "distance",
    kernel: str = "gaussian",
    lengthscale: float | None = None,
    maps: Sequence[str] | None = None,
    time: float = 10.0,
    labels: Any = None,
    num_clusters: int | None = None,
    separation: str = "means",
    standardize: bool = False,
    dtype: str | None = None,
    say: Callable[[str], None] | None = None,
    command: str | None = None,
    opened: str | None = None,
) -> Certificate:
    """Find the smallest map of these points that keeps a goal, and certify it.

    A draw of a map fails when its error exceeds eps. A size is certified when the probability that a draw fails is at
    most delta: by a valid statement, or by draws, whose upper confidence limit is at most delta. Sizes are searched by
    bisection, and certified by draws that the search has not seen. All certificates of a call hold together with
    probability `confidence`.

    Parameters
    ----------
    key : typed random key. With jax.random.key(seed), the document holds the seed.
    X : (N, dim) points in a NumPy or JAX array or a memory-mapped file, of any real dtype, or a `Table`.
    eps, delta : largest error and failure probability, in (0, 1).
    confidence : of the certificates, in (0, 1).
    goal : "distance", the largest relative error of the kernel distance over pairs of points; "spectral",
        |K - Khat|_2 / n for the Gram matrix K; "clustering", the share of points that kernel k-means groups in another
        way than with the exact kernel; "separation", the share of the separation of given classes that is lost.
    kernel : "gaussian", "laplacian", "cauchy", "exponential", "matern32" or "matern52".
    lengthscale : of the kernel; by default the median distance of 100,000 pairs, fewer for more than 500 columns.
    maps : names of functions of `jaxkern.features`; by default every map of the library.
    time : minutes, the time limit. Where it is short, draws look at samples of the rows, and the guarantee says so.
    labels : (N,) classes, for the goal "separation"; their number is the default of num_clusters.
    num_clusters : for the goal "clustering".
    separation : "means" or "points": what is to stay apart, as in Examples 2 and 1 of kpotufe2020.
    standardize : whether columns are shifted and scaled to mean 0 and standard deviation 1.
    dtype : of points and maps, "float32" or "float64"; by default float32, but float64, where jax_enable_x64 is on, for
        points that float32 rounds too much, or pairs that it cannot tell apart. Errors are measured against the
        kernel of the rows in float64 in any case, so that what rounding does to points and maps is part of them.
    say : called with a line of progress now and then.
    command, opened : what the document shows as the command, and as the Python that opens the table.

    Returns
    -------
    Certificate, with the recommended map, what is known of all others, and the document that `write` turns into a page.

    Raises
    ------
    ValueError
        If an argument is out of range, a name is not known, X is not a matrix of finite real numbers or has fewer than
        two distinct rows, or a goal lacks its labels or its number of clusters.

    Notes
    -----
    Nothing is begun that is not expected to end within `time`: it is kept within 1.5 times, plus the longest single
    compile. A map that this leaves out is "out of time". Memory: that of one trial, at most about 1.5 GiB beside X.

    Examples
    --------
    >>> import jax
    >>> from proofs_check.certify import certify
    >>> X = jax.random.normal(jax.random.key(0), (60, 2))
    >>> found = certify(jax.random.key(1), X, eps=0.5, goal="spectral", maps=["nystrom"], time=0.5)
    >>> found.map, found.draw()(X).shape[1] == found.num_features
    ('nystrom', True)
    """
    started, clock = datetime.now(UTC), Clock(60 * _positive("time", time))
    _in_unit(eps=eps, delta=delta, confidence=confidence)
    _one_of("goal", goal, GOALS)
    _one_of("kernel", kernel, KERNELS)
    chosen = list(NAMES) if maps is None else [_one_of("maps", name, NAMES) for name in maps]
    if not chosen:
        raise ValueError(f"maps must name at least one of {', '.join(NAMES)}")
    if dtype is not None and (
        dtype not in ("float32", "float64") or jax.dtypes.canonicalize_dtype(dtype) != np.dtype(dtype)
    ):
        raise ValueError(f"dtype must be float32, or float64 with jax_enable_x64, got {dtype!r}")
    tell = say or (lambda line: None)
    table = X if isinstance(X, Table) else from_array(X, labels=labels, standardize=standardize)
    clone = jax.random.clone
    key_scale, key_facts, key_trials, key_detail = jax.random.split(jax.random.fold_in(clone(key), 1), 4)
    size, where = _lengthscale(key_scale, table, lengthscale)
    k = KERNELS[kernel](size)
    asked = _goal(goal, k, eps, table, num_clusters, separation)
    known = families(table.rows, table.dim, eps)
    trials, rounding, close = _trials(key_trials, table, k, asked, eps, dtype, Clock(LOOKING * clock.left))
    dtype = trials.dtype
    tell(f"{table.rows:,} rows, {table.dim:,} columns, lengthscale {size:.4g}; what the theorems need to know")

    def take(rows: Any) -> np.ndarray:
        return table.take(rows, "float64")

    data = facts(key_facts, take, table.rows, table.dim, k, size, dtype=dtype, seconds=FACTS * clock.left)
    asks = demands(data, goal, eps, delta, kind=separation if goal == "separation" else None, rounding=rounding)
    last = max(LAST * clock.left, min(LEAST_LAST, clock.left / 3))
    entries = find(
        trials,
        {name: known[name] for name in chosen},
        asks,
        eps=eps,
        delta=delta,
        confidence=confidence,
        clock=Clock(clock.left - last),
        say=tell,
    )
    tell("time per point, and what the page shows")
    best, cost, seconds = parts.recommended(trials, entries, eps, clock)
    detail = _detail(trials, best, key, key_detail, clock)
    data_seed = _seed(key)
    document: dict[str, Any] = {
        "certificate": 1,
        "made_by": __version__,
        "goal": goal,
        "goal_words": asked.words,
        "map": best.family.name if best else None,
        "sizes": best.family.sizes(best.size) if best and best.size else {},
        "num_features": best.family.num_features(best.size) if best and best.size else None,
        "kernel": type(k).__name__,
        "lengthscale": size,
        "lengthscale_from": where,
        "eps": eps,
        "delta": delta,
        "confidence": confidence,
        "seed": data_seed,
        "dtype": dtype,
        "basis": best.basis if best else None,
        "scope": ("all rows" if best.for_all_rows else "samples") if best else None,
        "points_per_draw": (best.sample or table.rows) if best and best.basis == "draws" else None,
        "guarantee": parts.guarantee(trials, best, eps, delta, confidence, rounding) if best else "",
        "reasons": parts.reasons(best, cost, entries, seconds) if best else _none(entries),
        "data": {
            "source": table.source,
            "rows": table.rows,
            "columns": list(table.names),
            "num_columns": table.dim,
            "left_out": dict(table.left_out),
            "standardized": table.standardized,
            "duplicate_rows": table.duplicate_rows,
            "zero_pairs": detail.get("pairs", {}).get("zero_pairs"),
            "notes": [*table.notes, *filter(None, (close, detail.get("words")))],
        },
        "theory": parts.theory(asks, known),
        "maps": [parts.described(trials, entry, seconds.get(entry.family.name), clock) for entry in entries],
        "spectrum": parts.spectrum(data),
        "hypotheses": parts.hypotheses(hypotheses(data, eps, delta)),
        "pairs": detail.get("pairs", {}),
        "commands": _commands(command, opened, k, size, data_seed, key, dtype, table, best),
        "run": {
            "seconds": clock.spent,
            "minutes_allowed": time,
            "device": str(jax.devices()[0].device_kind),
            "started": started.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "versions": versions(),
        },
    }
    if "classes" in detail:
        document["classes"] = detail["classes"]
    return Certificate(document, trials, best, key)


def _trials(
    key: Any, table: Table, kernel: Any, goal: Goal, eps: float, asked: str | None, clock: Clock
) -> tuple[Trials, Rounding, str]:
    """Return trials in the dtype asked for, float64 where float32 rounds too much; what rounding adds; and a remark."""
    wide = asked is None and jax.dtypes.canonicalize_dtype("float64") == np.dtype("float64")
    dtype = asked or "float32"
    if wide and not table.fits(dtype):
        dtype, wide = "float64", False
    trials = Trials(key, table, kernel, goal, dtype)
    rounding, close = _rounding(trials, key, eps, clock)
    said = close or f"rounding of the rows to {dtype} may change what the kernel says of them"
    share = rounding.pairs if goal.name == "distance" else rounding.gram
    if not close and share <= SHARE * eps:
        return trials, rounding, ""
    if wide and clock.left:
        trials = Trials(key, table, kernel, goal, "float64")
        return trials, _rounding(trials, key, eps, clock)[0], f"{said}; points and maps are in float64"
    if dtype == "float64":
        return trials, rounding, said
    return trials, rounding, f"{said}; float64 would resolve them (dtype, with jax_enable_x64)"


def _rounding(trials: Trials, key: Any, eps: float, clock: Clock) -> tuple[Rounding, str]:
    """Return what rounding may add to errors, and a sentence about pairs that it may change by more than eps.

    Where the time ends before all rows were read, it may add anything.
    """
    goal, rows, dtype = trials.goal, trials.table.rows, trials.dtype
    try:
        mean, largest = feature_rounding(trials.kernel, trials.blocks(clock))
    except TimeoutError:
        return Rounding(dtype, math.inf, math.inf, math.inf), ""
    # |Z Z' - W W'| <= (|Z| + |W|) |Z - W|_F, with rows of mean squared length 2 at most. Eigenvalues up to the rounding
    # of the largest, n eps(dtype), are cut off or off by as much, and Gram matrices are right to 100 eps(dtype) or so.
    eigen = float(np.finfo(dtype).eps) * (2 * min(rows, MOST_LANDMARKS) + 400)
    found = Rounding(dtype, 3 * mean, eigen, math.inf)
    pairwise = Distance(trials.kernel, eps) if getattr(goal, "kind", "") == "points" else goal
    if pairwise.name != "distance" or (pairwise is not goal and rows > LARGEST_SAMPLE):
        return found, ""

    def first(count: int) -> Any:
        if pairwise is goal:
            return trials.sample(jax.random.clone(key), count)
        return pairwise.prepare(jax.random.clone(key), trials.rows(np.arange(count)))

    looked = affordable(first, rows if rows <= LARGEST_SAMPLE else LOOKED_AT, clock.left)
    whole, among = looked == rows, ""
    if pairwise is not goal:
        if not whole:
            return found, ""
        prepared = first(rows)
    elif whole:
        prepared = trials.all_rows()
    elif not clock.left:
        return found, ""
    else:
        prepared, among = first(looked), f" among {looked:,} rows"
    if whole:
        found = replace(found, pairs=rounding_factor(trials.table.dim) * prepared.rounding)
    elif 2 * largest <= FAR * SHARE * eps:
        found = replace(found, pairs=SHARE * eps, closest=2 * largest / (SHARE * eps))
    if pairwise is not goal or not prepared.unresolved:
        return found, ""
    count = f"{prepared.unresolved:,} pair(s){among}"
    return found, f"{count} are so close that rounding in {dtype} may change their distances by more than eps"


def _lengthscale(key: Any, table: Table, given: float | None) -> tuple[float, str]:
    if given is not None:
        return _positive("lengthscale", given), "given"
    most, pairs = min(LARGEST_SAMPLE, max(2 * CELLS // table.dim, 1000)), min(PAIRS, max(3 * CELLS // table.dim, 1000))
    rows = rows_for(jax.random.clone(key), table.rows, min(table.rows, most))
    with jax.enable_x64(True):
        points = jnp.asarray(table.take(rows, "float64"))
        found = float(kernels.sampled_quantile_lengthscale(key, points, num_pairs=pairs))
    if not (found > 0 and math.isfinite(found)):
        raise ValueError(
            f"the median distance of {pairs:,} pairs of rows is {found:g}: at least half of all pairs coincide; "
            "pass a lengthscale"
        )
    return found, f"the median distance of {pairs:,} sampled pairs"


def _goal(goal: str, kernel: Any, eps: float, table: Table, num_clusters: int | None, separation: str) -> Goal:
    if goal == "distance":
        return Distance(kernel, eps)
    if goal == "spectral":
        return Spectral(kernel, eps, SLACK)
    if goal == "separation":
        if table.labels is None:
            raise ValueError("the goal separation needs a class for every row; pass labels")
        return Separation(kernel, separation, classes=tuple(np.unique(table.labels)))
    if num_clusters is None:
        if table.labels is None:
            raise ValueError("the goal clustering needs the number of clusters; pass num_clusters, or labels")
        num_clusters = len(np.unique(table.labels))
    return Clustering(kernel, num_clusters)


def _detail(trials: Trials, best: Entry | None, key: Any, key_sample: Any, clock: Clock) -> dict[str, Any]:
    """Return what the page draws of the recommended map: on all rows where they are few, a sample or nothing else."""
    if best is None or best.size is None:
        return {}
    count = min(trials.table.rows, parts.MOST_DETAIL_ROWS)
    if trials.expected(best.family, best.size, count, GROWTH[trials.goal.name]) > clock.left:
        return {}
    prepared = trials.all_rows() if count == trials.table.rows else trials.sample(key_sample, count)
    return trials.goal.detail(trials.draw(best.family, best.size, jax.random.clone(key)), prepared)


def _none(entries: Sequence[Entry]) -> list[str]:
    """Return why nothing can be recommended."""
    return [f"{entry.family.name}: {entry.words}." for entry in entries]


def _seed(key: Any) -> int | None:
    """Return the seed of jax.random.key(seed), None for a key that no seed makes."""
    words = np.asarray(jax.random.key_data(key)).ravel()
    if str(jax.random.key_impl(key)) != "threefry2x32" or len(words) != 2:
        return None
    return int(words[0]) << 32 | int(words[1])


def _commands(
    command: str | None,
    opened: str | None,
    kernel: Any,
    lengthscale: float,
    seed: int | None,
    key: Any,
    dtype: str,
    table: Table,
    best: Entry | None,
) -> dict[str, str | None]:
    """Return the lines that make this certificate, and this map, again."""
    if best is None or best.size is None:
        return {"again": command, "python": None, "load": None}
    sizes: Mapping[str, int] = best.family.sizes(best.size)
    words = np.asarray(jax.random.key_data(key)).ravel().tolist()
    made = (
        f"jax.random.key({seed})"
        if seed is not None and seed < 2**32
        else f"jax.random.wrap_key_data(jnp.array({words}, 'uint32'))"
    )
    lines = ["import jax", "import jax.numpy as jnp"]
    if dtype == "float64":
        lines.append('jax.config.update("jax_enable_x64", True)')
    lines += [
        "from jaxkern import features, kernels",
        "from proofs_check.certify import from_array, open_table, rows_for",
        opened or f"table = from_array(X, standardize={table.standardized})",
        f'dtype = "{dtype}"',
        f"kernel = kernels.{type(kernel).__name__}({lengthscale!r})",
        f"key_rows, key_map = jax.random.split({made})",
    ]
    count = best.family.num_points(best.size)
    if count:
        lines.append(f"points = jnp.asarray(table.take(rows_for(key_rows, table.rows, {count}), dtype))")
    lines.append(best.family.python(sizes))
    if table.standardized:
        lines.append(
            "phi = features.standardized(phi, jnp.asarray(table.mean, dtype), jnp.asarray(table.scale, dtype))"
        )
    return {"again": command, "python": "\n".join(lines), "load": None}


def _positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be a positive number, got {value!r}")
    return float(value)


def _in_unit(**values: Any) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
            raise ValueError(f"{name} must be a number in (0, 1), got {value!r}")


def _one_of(name: str, value: Any, known: Any) -> str:
    if value not in tuple(known):
        raise ValueError(f"{name} must be among {', '.join(known)}, got {value!r}")
    return str(value)
