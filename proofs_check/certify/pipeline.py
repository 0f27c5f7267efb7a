"""The steps of a certificate: read the table, ask the theory, search a size of each map, recommend one."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxkern import __version__, draws
from proofs_check.certify.candidates import Candidates, ended
from proofs_check.certify.certificate import (
    Agreement,
    Certificate,
    Clustered,
    Clusters,
    Commands,
    Data,
    Demanded,
    Drawing,
    MapRow,
    Run,
    Spectrum,
)
from proofs_check.certify.facts import eigenvalues_of, facts, sample_of
from proofs_check.certify.goals import prediction
from proofs_check.certify.goals.clustering import RESTARTS, Clustering
from proofs_check.certify.goals.distance import Distance
from proofs_check.certify.goals.separation import Separation
from proofs_check.certify.goals.spectral import Spectral
from proofs_check.certify.guarantee import (
    lines_of_python,
    python_key,
    reasons,
    seed_of,
)
from proofs_check.certify.keys import keys_of
from proofs_check.certify.load import Table, from_array, rows_for
from proofs_check.certify.maps import Family, families
from proofs_check.certify.points import mapped
from proofs_check.certify.request import KERNELS, Request
from proofs_check.certify.rounding import trials_for
from proofs_check.certify.theory import Demand, demands
from proofs_check.certify.trials import Trials
from proofs_check.engine.versions import versions

PAIRS = 100_000
"""Pairs of rows behind the default lengthscale. With 1,000, it would move by 3 % from seed to seed."""
CELLS = 2**24
"""Numbers of the sampled rows of a wide table, about: 128 MiB in float64."""
SLACK = 1e-6
"""Probability that the goal spectral reports too small an error for a draw; it is taken from delta."""
ONCE_SHARE = 1e-3
"""Share of the error rate for the bound that the goal spectral computes once for all draws."""
SEEDED_ROWS = 500
"""Rows on which the number of restarts of k-means is chosen."""
MOST_SHOWN = 200
"""Eigenvalues that are shown."""


class Lengthscale(NamedTuple):
    """A lengthscale, and where it is from."""

    value: float
    source: str


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
    finished: tuple[Path, str] | None = None,
    **options: Any,
) -> Certificate:
    """Return the certificate of the cheapest map of these points that keeps a goal.

    A draw of a map fails if its error exceeds eps. A size is certified if the probability that a draw fails is at most
    delta: by fresh draws, whose upper confidence limit is at most delta, or by a valid statement. All certificates of
    a call hold together with probability `confidence`.

    Parameters
    ----------
    key : typed random key. With jax.random.key(seed), the certificate holds the seed.
    X : (N, dim) points in a NumPy or JAX array or a memory-mapped file, of any real dtype, a DataFrame, or a `Table`.
    request : what is asked, a `Request`.
    labels : (N,) classes, for the goals "separation" and "clustering"; for the goal "prediction", the classes or
        numbers that are predicted.
    standardize : whether columns are shifted and scaled to mean 0 and standard deviation 1.
    say : called with a line of progress after every draw.
    command, opened : what the certificate shows as the command, and as the Python that opens the table.
    finished : a file that keeps the draws of finished maps, and a text that names the request and the table. Draws in
        the file under the same text are taken up again.
    options : attributes of `Request` by name, which replace those of `request`.

    Returns
    -------
    Certificate, with the recommended map and what is known of the others.

    Raises
    ------
    ValueError
        If an argument is out of range, a name is not known, X is not a matrix of finite real numbers or has fewer than
        two distinct rows, or a goal lacks its labels or its number of clusters.

    Notes
    -----
    Maps are searched one after the other. `time` is a deadline: no draw begins after it. Two calls that end before
    the deadline return the same. Memory: about 1.5 GiB beside X.

    Examples
    --------
    >>> import jax
    >>> from proofs_check.certify import certify
    >>> X = jax.random.normal(jax.random.key(0), (60, 2))
    >>> certificate = certify(jax.random.key(1), X, eps=0.5, goal="spectral", maps=["nystrom"])
    >>> certificate.map, certificate.draw()(X).shape[1] == certificate.num_features
    ('nystrom', True)
    """
    request = replace(request, **options) if request else Request(**options)
    table = X
    if not isinstance(X, Table):
        table = from_array(X, labels=labels, standardize=standardize)
    call = _Call(
        key=key,
        request=request,
        say=say or (lambda _line: None),
        command=command,
        opened=opened,
        finished=finished,
        started=datetime.now(UTC),
        began=time.monotonic(),
    )
    if request.goal == "prediction":
        return _prediction(call, table)
    return _certificate(call, table)


@dataclass(frozen=True)
class _Call:
    """The arguments of `certify`, and when it began."""

    key: Any
    request: Request
    say: Callable[[str], None]
    command: str | None
    opened: str | None
    finished: tuple[Path, str] | None
    started: datetime
    began: float

    @property
    def deadline(self) -> float:
        return self.began + 60 * self.request.time

    def run(self) -> Run:
        """Return what is told of the run, at its end."""
        return Run(
            seconds=time.monotonic() - self.began,
            minutes_allowed=self.request.time,
            device=str(jax.devices()[0].device_kind),
            started=self.started.isoformat(timespec="seconds").replace("+00:00", "Z"),
            versions=versions(),
        )


def _certificate(call: _Call, table: Table) -> Certificate:
    """Return the certificate of a goal that is about draws of a map."""
    request = call.request
    keys = keys_of(call.key)
    lengthscale = lengthscale_of(keys.scale, table, request.lengthscale)
    kernel = KERNELS[request.kernel](lengthscale.value)
    goal = _goal(request, kernel, table, keys.restarts)
    trials, rounding, remark = trials_for(keys.trials, table, kernel, goal, request)
    trials = replace(trials, deadline=call.deadline)
    call.say(
        f"{table.rows:,} rows, {table.dim:,} columns; what the theorems need to know"
    )
    about = facts(keys.facts, table, kernel, lengthscale.value)
    demanded = demands(about, request, rounding)
    known = families(table.rows, table.dim, request.eps)
    search = Candidates(trials, request, demanded, call.say, call.finished)
    rows = search.rows({name: known[name] for name in request.maps or ()})
    best = next((row for row in rows if row.recommended), None)
    drawing = None
    if best is not None:
        assert best.sizes is not None
        family = known[best.map]
        drawing = Drawing(trials, family, best.sizes[family.unit], call.key)
    clusters = None
    if isinstance(goal, Clustering):
        clusters = _clusters(keys.clusters, goal, trials, drawing)
    remarks = [remark]
    if trials.sample_rows is None:
        remarks.append(goal.left_out(trials.all_rows()))
    return _assembled(
        call,
        trials,
        lengthscale,
        best,
        drawing,
        goal_words=goal.words,
        guarantee=search.guarantee(best, rounding) if best else "",
        reasons=reasons(request, trials, rows),
        data=_data(table, table.rows, remarks),
        theory=[_demanded(demand, known[demand.map]) for demand in demanded],
        maps=rows,
        search=search.ended(),
        spectrum=_spectrum(about.eigenvalues, request.eps),
        clustering=clusters,
    )


def _prediction(call: _Call, table: Table) -> Certificate:
    """Return the certificate of the goal prediction."""
    request = call.request
    train, held_out = prediction.split(jax.random.clone(call.key), table)
    keys = keys_of(call.key)
    lengthscale = lengthscale_of(keys.scale, train, request.lengthscale)
    kernel = KERNELS[request.kernel](lengthscale.value)
    widest = "float64" if jax.config.read("jax_enable_x64") else "float32"
    dtype = request.dtype or widest
    trials = Trials(call.key, train, kernel, None, dtype, call.deadline)
    fitted = prediction.predict(trials, held_out, request, call.say)
    eigenvalues = eigenvalues_of(kernel, sample_of(keys.facts, train))
    best = next((row for row in fitted.maps if row.recommended), None)
    return _assembled(
        call,
        trials,
        lengthscale,
        best,
        fitted.drawing,
        goal_words=prediction.GOAL,
        guarantee=fitted.guarantee,
        reasons=fitted.predicted.words,
        data=_data(table, train.rows + held_out.rows, []),
        theory=[],
        maps=fitted.maps,
        search=ended(fitted.finished, request.time),
        spectrum=_spectrum(eigenvalues, request.eps),
        prediction=fitted.predicted,
    )


def _assembled(
    call: _Call,
    trials: Trials,
    lengthscale: Lengthscale,
    best: MapRow | None,
    drawing: Drawing | None,
    **parts: Any,
) -> Certificate:
    """Return the certificate of these parts, with what all goals say alike."""
    request = call.request
    lines = None
    if best is not None and drawing is not None:
        python = lines_of_python(trials, drawing.family, best, call.key, call.opened)
        if request.goal == "clustering":
            python += trials.goal.python(python_key(call.key))
        lines = "\n".join(python)
    return Certificate(
        made_by=__version__,
        goal=request.goal,
        map=best.map if best else None,
        sizes=(best.sizes or {}) if best else {},
        num_features=best.num_features if best else None,
        kernel=type(trials.kernel).__name__,
        lengthscale=lengthscale.value,
        lengthscale_from=lengthscale.source,
        eps=request.eps,
        delta=request.delta,
        confidence=request.confidence,
        seed=seed_of(call.key),
        dtype=trials.dtype,
        basis=best.basis if best else None,
        scope=best.scope if best else None,
        points_per_draw=best.points_per_draw if best else None,
        commands=Commands(again=call.command, python=lines),
        run=call.run(),
        _drawing=drawing,
        **parts,
    )


def lengthscale_of(key: Any, table: Table, lengthscale: float | None) -> Lengthscale:
    """Return the lengthscale and where it is from; by default the median distance of sampled pairs of rows."""
    if lengthscale is not None:
        return Lengthscale(float(lengthscale), "given")
    count = min(table.rows, max(CELLS // table.dim, 1000), 20_000)
    pairs = min(PAIRS, max(CELLS // table.dim, 1000))
    points = table.take(rows_for(jax.random.clone(key), table.rows, count), "float64")
    first, second = np.asarray(draws.pairs(key, count, pairs))
    # In parts, so that the differences of a wide table take little memory.
    lengths = [
        np.linalg.norm(points[i] - points[j], axis=1)
        for i, j in zip(
            np.array_split(first, 16), np.array_split(second, 16), strict=True
        )
    ]
    median = float(np.median(np.concatenate(lengths)))
    if not (median > 0 and math.isfinite(median)):
        raise ValueError(
            f"the median distance of {pairs:,} pairs of rows is {median:g}: at least half of all pairs coincide; "
            "pass a lengthscale"
        )
    return Lengthscale(median, f"the median distance of {pairs:,} sampled pairs")


def _goal(request: Request, kernel: Any, table: Table, key: Any) -> Any:
    """Return the goal, with the number of restarts of k-means."""
    if request.goal == "distance":
        return Distance(kernel, request.eps)
    if request.goal == "spectral":
        once = ONCE_SHARE * (1 - request.confidence)
        return Spectral(kernel, request.eps, SLACK, once=once)
    classes = () if table.labels is None else tuple(np.unique(table.labels))
    if request.goal == "separation":
        if not classes:
            raise ValueError(
                "the goal separation needs a class for every row; pass labels"
            )
        return Separation(kernel)
    if request.num_clusters is None and not classes:
        raise ValueError(
            "the goal clustering needs the number of clusters; pass num_clusters, or labels"
        )
    goal = Clustering(
        kernel,
        request.num_clusters or len(classes),
        request.num_restarts or RESTARTS[0],
    )
    if request.num_restarts is not None:
        return goal
    key_rows, key_seeds = jax.random.split(key)
    rows = rows_for(key_rows, table.rows, min(table.rows, SEEDED_ROWS))
    points = table.take(rows, "float64")
    return goal.with_restarts(key_seeds, points, request.eps, request.delta)


def _clusters(
    key: Any, goal: Clustering, trials: Trials, drawing: Drawing | None
) -> Clusters:
    """Return the k-means that is certified, how its clusters agree with the classes, and a picture of them."""
    key_rows, key_seeds = jax.random.split(key)
    prepared = trials.prepared(key_rows)
    table = trials.table

    columns = jax.tree_util.Partial(_columns, table.mean, table.scale)
    maps: dict[str, Any] = {"exact kernel": None, "no kernel": columns}
    picture = []
    if drawing is not None:
        phi = trials.draw(drawing.family, drawing.size, jax.random.clone(drawing.key))
        maps["the recommended map"] = phi
        picture = _picture(goal, jax.random.clone(key_seeds), phi, prepared)
    agreement = []
    if table.labels is not None:
        for name, phi in maps.items():
            index = goal.agreement(jax.random.clone(key_seeds), phi, prepared)
            agreement.append(Agreement(name, index if math.isfinite(index) else None))
    words = [prepared.words]
    if goal.found_by_one is not None:
        missed = max((1 - goal.found_by_one) ** goal.num_restarts, 1e-6)
        words.append(
            f"k-means with the exact kernel finds its best partition, up to eps, from {100 * goal.found_by_one:.3g} % "
            f"of its seedings; {goal.num_restarts} restarts miss it with a probability of about {missed:.1g}."
        )
    return Clusters(goal.num_clusters, goal.num_restarts, agreement, words, picture)


def _columns(mean: Any, scale: Any, rows: Any) -> Any:
    """Return the columns of the table as features."""
    return (rows - mean.astype(rows.dtype)[None]) / scale.astype(rows.dtype)[None]


def _picture(goal: Clustering, key: Any, phi: Any, prepared: Any) -> list[Clustered]:
    """Return rows in the plane of the two leading components of their features, with their clusters."""
    labels = np.asarray(goal.cluster(key, phi, prepared.inputs).labels)
    Z = mapped(phi, prepared.inputs).astype(np.float64)
    Z -= Z.mean(axis=0)
    directions = np.linalg.svd(Z, full_matrices=False)[2][:2]
    plane = np.zeros((len(Z), 2))
    plane[:, : len(directions)] = Z @ directions.T
    return [
        Clustered(float(x), float(y), int(label))
        for (x, y), label in zip(plane, labels, strict=True)
    ]


def _data(table: Table, rows: int, remarks: list[str]) -> Data:
    return Data(
        source=table.source,
        rows=rows,
        num_columns=table.dim,
        columns=list(table.names),
        left_out=dict(table.left_out),
        standardized=table.standardized,
        duplicate_rows=table.duplicate_rows,
        notes=[note for note in (*table.notes, *remarks) if note],
    )


def _demanded(demand: Demand, family: Family) -> Demanded:
    sizes = num_features = None
    if demand.size is not None:
        sizes = family.sizes(demand.size)
        num_features = family.num_features(demand.size)
    return Demanded(
        demand.map, demand.source, demand.words, sizes, num_features, demand.worst_case
    )


def _spectrum(eigenvalues: np.ndarray, eps: float) -> Spectrum:
    return Spectrum(
        points=len(eigenvalues),
        above_eps=int(np.sum(eigenvalues > eps)),
        eigenvalues=eigenvalues[:MOST_SHOWN].tolist(),
    )
