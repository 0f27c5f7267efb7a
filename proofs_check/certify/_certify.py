"""Certify a map for a table: read, ask the theory, draw, recommend."""

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import jax
import numpy as np

from jaxkern import draws
from proofs_check.certify import _prediction, _work
from proofs_check.certify._certificate import Certificate
from proofs_check.certify._clock import CELLS, Clock
from proofs_check.certify._clustering import RESTARTS, Clustering
from proofs_check.certify._compare import (
    MEASURED_ROWS,
    clusters,
    comparison,
    held_out,
)
from proofs_check.certify._distance import Distance
from proofs_check.certify._document import Results, document_of
from proofs_check.certify._entries import cheapest
from proofs_check.certify._facts import facts
from proofs_check.certify._keys import keys_of
from proofs_check.certify._maps import families, limited
from proofs_check.certify._model import LARGEST_SAMPLE, Goal
from proofs_check.certify._plan import Hunt
from proofs_check.certify._precision import trials_for
from proofs_check.certify._request import KERNELS, Request
from proofs_check.certify._separation import Separation
from proofs_check.certify._spectral import Spectral
from proofs_check.certify._theory import demands
from proofs_check.certify.load.opening import from_array
from proofs_check.certify.load.table import Table, rows_for

PAIRS = 100_000
"""Pairs of rows behind the default lengthscale; fewer of a table with more than 500 columns."""
LOOKING, FACTS, LAST = 0.15, 0.15, 0.08
"""Shares of the time: for what rounding may do, for facts about the data, and for what comes after the draws."""
LEAST_LAST = 15.0
"""Seconds that are left at least for what comes after the draws, or a quarter of the time where that is less."""
SLACK = 1e-6
MOST_DETAIL_ROWS = 2_000
SEEDED_ROWS = 500
"""Rows on which the number of restarts of k-means is chosen."""
HELD_OUT = 5.0
"""Reference seconds that are left at least where rows are held out."""


def certify(
    key: Any,
    X: Any,
    request: Request | None = None,
    *,
    labels: Any = None,
    standardize: bool = False,
    say: Callable[[str], None] | None = None,
    command: str | None = None,
    opened: str | None = None,
    began: float | None = None,
    journal: Any = None,
    **asked: Any,
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
    request : what is asked, a `Request` with eps, delta, confidence, goal, kernel, lengthscale, maps, time (in
        minutes), num_clusters, num_restarts, separation, dtype, features_at_most and target_kind.
    labels : (N,) classes, for the goal "separation"; their number is the default of num_clusters. For the goal
        "prediction", the classes or numbers that are predicted (see `target_kind`).
    standardize : whether columns are shifted and scaled to mean 0 and standard deviation 1.
    say : called with a line of progress now and then.
    command, opened : what the document shows as the command, and as the Python that opens the table.
    began : the time.monotonic() from which `time` counts, by default that of the call.
    journal : a `proofs_check.engine.checkpoint.Checkpoint`, which keeps every draw and hands out those that it holds.
    asked : attributes of `Request` by name, which replace those of `request`.

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
    What is done follows from the request and the table, in a fixed order; the clock decides how much of it. Nothing is
    begun that is not expected to end within `time`: it is kept within 1.5 times, plus the longest single compile. What
    that leaves out is "out of time", and `search` in the document says how much. Memory: that of one trial, at most
    about 1.5 GiB beside X.

    Examples
    --------
    >>> import jax
    >>> from proofs_check.certify import certify
    >>> X = jax.random.normal(jax.random.key(0), (60, 2))
    >>> certificate = certify(jax.random.key(1), X, eps=0.5, goal="spectral", maps=["nystrom"], time=0.5)
    >>> certificate.map, certificate.draw()(X).shape[1] == certificate.num_features
    ('nystrom', True)
    """
    started, request = (
        datetime.now(UTC),
        replace(request, **asked) if request else Request(**asked),
    )
    limit = 60 * request.time
    clock, tell = Clock(limit, began), say or (lambda _: None)
    table = (
        X
        if isinstance(X, Table)
        else from_array(X, labels=labels, standardize=standardize)
    )
    clone = jax.random.clone
    keys = keys_of(key)
    held = None
    if request.goal == "prediction":
        table, held = _prediction.split(
            clone(key), table
        )  # from here on the table is that of the training rows
    lengthscale, source = _lengthscale(keys.scale, table, request.lengthscale)
    kernel = KERNELS[request.kernel](lengthscale)
    if held is not None:
        scale, shown = (lengthscale, source), (started, command, opened)
        return _prediction.certificate(
            key, (table, held), kernel, scale, request, clock, tell, *shown
        )
    goal = _goal(request, kernel, table)
    if isinstance(goal, Clustering) and request.num_restarts is None:
        key_rows, key_seeds = jax.random.split(keys.restarts)
        rows = rows_for(key_rows, table.rows, min(table.rows, SEEDED_ROWS))
        points = table.take(rows, "float64")
        goal = goal.with_restarts(key_seeds, points, request.eps, request.delta)
    known = families(table.rows, table.dim, request.eps)
    trials, rounding, remark = trials_for(
        keys.trials, table, kernel, goal, request, Clock(LOOKING * limit)
    )
    tell(
        f"{table.rows:,} rows, {table.dim:,} columns, lengthscale {lengthscale:.4g}; what the theorems need to know"
    )
    data = facts(
        keys.facts,
        table,
        kernel,
        lengthscale,
        dtype=trials.dtype,
        seconds=FACTS * limit,
    )
    demanded = demands(data, request, rounding)
    last = max(LAST * limit, min(LEAST_LAST, limit / 4))
    most = request.features_at_most or max(
        family.num_features(family.largest) for family in known.values()
    )
    chosen = {name: limited(known[name], most) for name in request.maps or ()}
    found = Hunt(
        trials, chosen, demanded, request, Clock(clock.left - last), tell, journal
    ).found()
    tell("what the page shows")
    certified = [
        *(entry for entry in found.entries if entry.size is not None),
        *found.stated.values(),
    ]
    best = cheapest(certified, table.dim) if certified else None
    affords = Clock(clock.left / found.pace)  # in reference seconds
    detail = (
        {} if best is None else _detail(trials, best, clone(key), keys.detail, affords)
    )
    looked_at = min(table.rows, MEASURED_ROWS)
    if trials.is_prepared:
        looked_at = table.rows
    takes = _work.trial(
        goal.name, known["nystrom"], 1, looked_at, table.dim, ready=trials.is_prepared
    )
    measure = 2 * takes < affords.left
    compared = comparison(keys.columns, trials, best, measure)
    split = (
        held_out(keys.held_out, trials, best, request)
        if affords.left > HELD_OUT
        else {}
    )
    results = Results(
        request=request, key=key, trials=trials, rounding=rounding, facts=data, families=known, demands=demanded,
        found=found, best=best, detail=detail, compared=compared, held_out=split, command=command, opened=opened,
    )  # fmt: skip
    document = document_of(results, lengthscale, source, remark, started, clock.spent)
    if isinstance(goal, Clustering):
        document["clustering"] = clusters(
            keys.clusters, trials, best, clone(key), measure
        )
    return Certificate(document, trials, best, key)


def _lengthscale(key: Any, table: Table, given: float | None) -> tuple[float, str]:
    """Return the lengthscale, by default the median distance of sampled pairs, and where it is from."""
    if given is not None:
        return float(given), "given"
    most, pairs = (
        min(LARGEST_SAMPLE, max(2 * CELLS // table.dim, 1000)),
        min(PAIRS, max(3 * CELLS // table.dim, 1000)),
    )
    rows = rows_for(jax.random.clone(key), table.rows, min(table.rows, most))
    points, drawn = (
        table.take(rows, "float64"),
        np.asarray(draws.pairs(key, len(rows), pairs)),
    )
    # By NumPy: there is nothing to compile, and parts keep the differences of a wide table small.
    lengths = [
        np.linalg.norm(points[i] - points[j], axis=1)
        for i, j in np.array_split(drawn, 16, axis=1)
    ]
    median = float(np.median(np.concatenate(lengths)))
    if not (median > 0 and math.isfinite(median)):
        raise ValueError(
            f"the median distance of {pairs:,} pairs of rows is {median:g}: at least half of all pairs coincide; "
            "pass a lengthscale"
        )
    return median, f"the median distance of {pairs:,} sampled pairs"


def _goal(request: Request, kernel: Any, table: Table) -> Goal:
    if request.goal == "distance":
        return Distance(kernel, request.eps)
    if request.goal == "spectral":
        return Spectral(
            kernel, request.eps, SLACK, once=1e-3 * (1 - request.confidence)
        )
    classes = () if table.labels is None else tuple(np.unique(table.labels))
    if request.goal == "separation":
        if not classes:
            raise ValueError(
                "the goal separation needs a class for every row; pass labels"
            )
        return Separation(kernel, request.separation, classes=classes)
    if request.num_clusters is None and not classes:
        raise ValueError(
            "the goal clustering needs the number of clusters; pass num_clusters, or labels"
        )
    num_clusters = request.num_clusters or len(classes)
    return Clustering(kernel, num_clusters, request.num_restarts or RESTARTS[0])


def _detail(
    trials: Any, best: Any, key: Any, key_sample: Any, clock: Clock
) -> dict[str, Any]:
    """Return what the page draws of the recommended map: on all rows where they are few, a sample or nothing else."""
    count = min(trials.table.rows, MOST_DETAIL_ROWS)
    if (
        2
        * _work.trial(trials.goal.name, best.family, best.size, count, trials.table.dim)
        > clock.left
    ):
        return {}
    prepared = (
        trials.all_rows()
        if count == trials.table.rows
        else trials.sample(key_sample, count)
    )
    return dict(trials.goal.detail(trials.draw(best.family, best.size, key), prepared))
