"""The document of a certificate: what the steps found, as JSON and in sentences (docs/certificate_schema.md)."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from typing import Any

import jax
import numpy as np
from scipy import stats

from jaxkern import __version__
from proofs_check.certify import _work
from proofs_check.certify._entries import Entry
from proofs_check.certify._errors import quantiles, summary
from proofs_check.certify._hypotheses import hypotheses
from proofs_check.certify._model import EXACT, Demand, Facts, Family, Rounding
from proofs_check.certify._plan import Found
from proofs_check.certify._request import Request
from proofs_check.certify._statements import rounding_share
from proofs_check.certify._trials import Trials
from proofs_check.engine.versions import versions

MISSED = 0.01
"""The chance that a sample holds none of the pairs of a map with too many bad ones."""
MOST_EIGENVALUES = 200


@dataclass(frozen=True)
class Results:
    """What the steps of a certificate found.

    `best` is the recommended entry, one of `found` or None. `detail` is what the page draws of one draw of its map,
    `compared` and `held_out` what the map is compared with.
    """

    request: Request
    key: Any
    trials: Trials
    rounding: Rounding
    facts: Facts
    families: Mapping[str, Family]
    demands: Sequence[Demand]
    found: Found
    best: Entry | None
    detail: Mapping[str, Any]
    compared: Sequence[Mapping[str, Any]]
    held_out: Mapping[str, Any]
    command: str | None
    opened: str | None


def document_of(
    results: Results,
    lengthscale: float,
    source: str,
    remark: str,
    started: datetime,
    seconds: float,
) -> dict[str, Any]:
    """Return the document; `source` says where the lengthscale is from, and `remark` goes to the notes on the data."""
    request, trials, best, detail = (
        results.request,
        results.trials,
        results.best,
        results.detail,
    )
    table, seed = trials.table, seed_of(results.key)
    evidence = _evidence(best, table.rows)
    rows = []
    for entry in results.found.entries:
        rows.append(described(trials, entry) | {"recommended": entry is best})
        if best is not None and best.family is entry.family and best is not entry:
            rows.append(described(trials, best) | {"recommended": True})
    document: dict[str, Any] = {
        "certificate": 3,  # the version of the schema
        "made_by": __version__,
        "goal": request.goal,
        "goal_words": trials.goal.words,
        "map": best.family.name if best else None,
        "sizes": evidence.pop("sizes") or {},
        "num_features": evidence.pop("num_features"),
        "kernel": type(trials.kernel).__name__,
        "lengthscale": lengthscale,
        "lengthscale_from": source,
        "eps": request.eps,
        "delta": request.delta,
        "confidence": request.confidence,
        "seed": seed,
        "dtype": trials.dtype,
        **evidence,
        "points_per_draw": evidence["points_per_draw"]
        if best and best.basis == "draws"
        else None,
        "guarantee": guarantee(request, trials, best, results.rounding) if best else "",
        "reasons": reasons(request, trials, best, results.found.entries),
        "data": {
            "source": table.source,
            "rows": table.rows,
            "columns": list(table.names),
            "num_columns": table.dim,
            "left_out": dict(table.left_out),
            "standardized": table.standardized,
            "duplicate_rows": table.duplicate_rows,
            "zero_pairs": detail.get("pairs", {}).get("zero_pairs"),
            "notes": [*table.notes, *filter(None, (remark, detail.get("words")))],
        },
        "theory": [
            _demanded(demand, results.families.get(demand.map))
            for demand in results.demands
        ],
        "maps": rows,
        "search": search_of(
            results.found, results.facts.complete and results.rounding.complete
        ),
        "candidate": candidate_of(request, results.found.entries)
        if best is None
        else None,
        "comparison": [dict(one) for one in results.compared],
        "held_out": dict(results.held_out),
        "spectrum": {
            "points": results.facts.sampled,
            "above_eps": int(np.sum(results.facts.eigenvalues > request.eps)),
            "eigenvalues": [
                float(value) for value in results.facts.eigenvalues[:MOST_EIGENVALUES]
            ],
            "effective_dimension": {
                name: float(x) for name, x in results.facts.effective_dimension.items()
            },
            "decay": dict(results.facts.decay),
        },
        "hypotheses": [
            dataclasses.asdict(one) for one in hypotheses(results.facts, request)
        ],
        "pairs": detail.get("pairs", {}),
        "commands": {
            "again": results.command,
            "python": lines_of_python(
                trials, best, lengthscale, results.key, results.opened
            ),
            "load": None,
        },
        "run": {
            "seconds": seconds,
            "minutes_allowed": request.time,
            "device": str(jax.devices()[0].device_kind),
            "started": started.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "versions": versions(),
        },
    }
    if "classes" in detail:
        document["classes"] = detail["classes"]
    return document


def _evidence(entry: Entry | None, rows: int) -> dict[str, Any]:
    """Return the sizes of an entry, and by what and for which rows they are certified."""
    told: dict[str, Any] = dict.fromkeys(("sizes", "num_features", "basis", "scope"))
    told["points_per_draw"] = rows
    if entry is not None:
        told |= {"basis": entry.basis, "points_per_draw": entry.sample or rows}
        if entry.size is not None:
            scope = "all rows" if entry.sample is None else "samples"
            if entry.basis == "held-out rows":
                scope = "rows never seen"
            told |= {
                "sizes": entry.family.sizes(entry.size),
                "num_features": entry.family.num_features(entry.size),
                "scope": scope,
            }
    return told


def _demanded(demand: Demand, family: Family | None) -> dict[str, Any]:
    sizes = features = None
    if family is not None and demand.size is not None:
        sizes, features = family.sizes(demand.size), family.num_features(demand.size)
    told = {
        name: getattr(demand, name) for name in ("map", "source", "words", "worst_case")
    }
    return {**told, "sizes": sizes, "num_features": features}


def search_of(found: Found, complete: bool) -> dict[str, Any]:
    """Return how far the search came, as JSON; `complete` tells whether the clock left out nothing of the data."""
    more = 0.0 if found.finished else found.seconds_more
    words = f"All {found.done} steps of the search were finished"
    if found.finished and complete:
        words += ": what is recommended follows from the request and the table, and not from how fast the machine was."
    elif found.finished:
        words += ", but on fewer facts: looking at the data took longer than expected."
    else:
        words = f"The time ended after {found.done} of about {found.steps} steps, the first ones of a fixed order."
        words += (
            f" The others would take about {max(more / 60, 1):,.0f} minute(s) more."
            if more
            else ""
        )
    told = {
        "finished": found.finished and complete,
        "done": found.done,
        "steps": found.steps,
        "words": words,
    }
    return told | {"minutes_more": None if more is None else more / 60}


def candidate_of(request: Request, entries: Sequence[Entry]) -> dict[str, Any] | None:
    """Return the size whose draws come nearest to a certificate, as JSON; None where nothing was drawn."""
    drawn = [
        (_rate(probe.failures, probe.draws), probe, entry.family)
        for entry in entries
        for probe in entry.probes
    ]
    if not drawn:
        return None
    rate, probe, family = min(
        drawn, key=lambda one: (one[0], one[2].num_features(one[1].size))
    )
    found = f"{probe.failures} of {probe.draws} draws of {family.name} with {family.unit} {probe.size:,} failed"
    words = f"{found}. A certificate asks for fresh draws that show a rate of at most {request.delta:g} "
    words += f"with confidence {request.confidence:g}, which these do not."
    return {
        "map": family.name, "sizes": family.sizes(probe.size), "num_features": family.num_features(probe.size),
        "draws": probe.draws, "failures": probe.failures, "rate_upper": rate, "words": words,
    }  # fmt: skip


def _rate(failures: int, draws: int) -> float:
    """Return the upper 95 % limit of a probability, by Clopper and Pearson."""
    return (
        float(stats.beta.ppf(0.95, failures + 1, draws - failures))
        if failures < draws
        else 1.0
    )


def described(trials: Trials, entry: Entry) -> dict[str, Any]:
    """Return what is known of one map, as JSON."""
    family, outcome = entry.family, entry.outcome
    drawn = (
        outcome.probes
        if entry.basis == "draws" and outcome is not None
        else entry.probes[-1:]
    )
    chosen = [probe for probe in drawn if probe.size == entry.size]
    attempts = [
        probe for probe in chosen if probe.certifying and entry.basis == "draws"
    ]
    last = attempts[-1] if attempts else None  # the attempt that succeeded
    evidence = _evidence(entry, trials.table.rows)
    width = evidence["num_features"]
    return {
        "map": family.name,
        "status": entry.status,
        "words": entry.words,
        **evidence,
        "draws": last.draws if last else 0,
        "failures": last.failures if last else 0,
        "rate_upper": outcome.upper if outcome is not None and last else None,
        "alpha": outcome.alpha if outcome is not None else 0.0,
        "error": summary(
            np.concatenate([probe.errors for probe in chosen])
            if chosen
            else np.empty(0)
        ),
        "seconds_per_million": None
        if entry.size is None
        else seconds(trials, family, entry.size),
        "map_bytes": None
        if entry.size is None
        else trials.map_bytes(family, entry.size),
        "feature_bytes_per_million": None
        if width is None
        else 1_000_000 * width * np.dtype(trials.dtype).itemsize,
        "curve": curve(trials, entry),
    }


def seconds(trials: Trials, family: Family, size: int) -> float:
    """Return the reference seconds for the features of a million points."""
    return _work.seconds_per_million(family, size, trials.table.dim)


def curve(trials: Trials, entry: Entry) -> list[dict[str, Any]]:
    """Return the errors at every size that was tried, with the time per point."""
    probes = [
        probe
        for probe in entry.probes
        if probe.draws and np.isfinite(probe.errors).all()
    ]
    points = []
    for probe in sorted(probes, key=lambda probe: (probe.size, probe.certifying)):
        low, median, high = quantiles(probe)
        points.append(
            {
                name: getattr(probe, name)
                for name in ("size", "draws", "failures", "certifying")
            }
            | {
                "low": low,
                "median": median,
                "high": high,
                "seconds_per_million": seconds(trials, entry.family, probe.size),
            }
            | {"num_features": entry.family.num_features(probe.size)}
        )
    return points


def is_deterministic(trials: Trials, entry: Entry) -> bool:
    """Tell whether nothing of a draw is random: the map has all rows as landmarks, and the goal has no seeds."""
    landmarks = entry.family.num_points(entry.known_size)
    return (
        trials.goal.name != "clustering"
        and entry.family.name in ("nystrom", "kernel_pca")
        and landmarks == trials.table.rows
    )


def guarantee(
    request: Request, trials: Trials, entry: Entry, rounding: Rounding = EXACT
) -> str:
    """Return what the certificate promises, in a few sentences."""
    goal, dtype = trials.goal.name, trials.dtype
    seeds = " and of the seeds of k-means" if goal == "clustering" else ""
    least = _complement(request.delta)
    over = f"With probability at least {least} over the draw of the map{seeds}"
    fixed = is_deterministic(trials, entry)
    if fixed:
        over = "All rows are landmarks and nothing is drawn, so that the map is deterministic"
    units = ", standardised in float64" if trials.table.standardized else ""
    promise = (
        f"the error is at most {request.eps}. The error is {trials.goal.words}, against the kernel of the rows as "
        f"they were read{units}; what {dtype} rounds of them and of the map is part of it."
    )
    drawn = f"Shown by fresh draws, with confidence {request.confidence}."
    if entry.basis in ("worst case", "this data"):
        kind = ", for every table of this kind" if entry.basis == "worst case" else ""
        share = rounding_share(rounding, goal, entry.family.name)
        promise += (
            f" Rounding may take {_at_most(share, 2)} of it, and the rest is by a theorem{kind}."
            if share
            else ""
        )
        if rounding.closest:
            closest = _at_most(rounding.closest, 2)
            promise += f" Pairs at a kernel distance below {closest} are left out: it may change them more."
        assert entry.demand is not None
        return f"{over}{': for' if fixed else ', for'} all rows of this table, {promise} Source: {entry.demand.source}."
    if entry.sample is None:
        return f"{over}{': for' if fixed else ', for'} all rows of this table, {promise} {drawn}"
    over = (
        f"{over}. With probability at least {least} over the draw"
        if fixed
        else f"{over} and"
    )
    text = (
        f"{over} of a sample of {entry.sample:,} rows, drawn independently from the table, {promise} {drawn} "
        "This is about samples, and weaker than a guarantee for all rows"
    )
    if goal != "distance":
        return text + "."
    # A sample holds half as many independent pairs. With a share q of bad pairs none of these is bad with probability
    # (1 - p)^(s / 2). Here p = q (1 - 1 / N), as a pair of draws with replacement is one row twice with probability
    # 1 / N, and that has no error. All are rounded to the side on which the sentence is true.
    drawn_share = -math.expm1(math.log(MISSED) / (entry.sample // 2))
    share = min(drawn_share / (1 - 1 / trials.table.rows), 1.0)
    over_the_map = _complement(float(_at_most(request.delta / (1 - MISSED), 4)))
    return (
        f"{text}: with probability at least {over_the_map} over the map alone, at most "
        f"{_at_most(100 * share, 3)} % of all pairs are off by more."
    )


def _at_most(value: float, digits: int) -> str:
    """Return a positive number in decimal digits, rounded up."""
    exact = Decimal(str(value))
    last = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(last, ROUND_CEILING)):.{digits}g}"


def _complement(delta: float) -> str:
    """Return 1 - delta in all its decimals, as rounding might say more than is known, such as 1."""
    if delta < 1e-6:
        return f"1 - {delta}"
    return str(Decimal(1) - Decimal(str(delta)))


def reasons(
    request: Request, trials: Trials, best: Entry | None, entries: Sequence[Entry]
) -> list[str]:
    """Return why this map and this size, or why none, in plain sentences."""
    most = request.features_at_most
    limit = (
        [] if most is None else [f"No map with more than {most:,} features was tried."]
    )
    if best is None:
        return [*limit, *(f"{entry.family.name}: {entry.words}." for entry in entries)]
    family, size, demand, rows = (
        best.family,
        best.known_size,
        best.demand,
        trials.table.rows,
    )
    cost, features = seconds(trials, family, size), family.num_features(size)
    sentences = [
        *limit,
        f"{family.name} has {features:,} features: {cost:.3g} reference seconds for a million points.",
    ]
    if features >= rows:
        sentences.append(
            f"That is no fewer than the {rows:,} rows of the table: the exact kernel has no error, and takes "
            f"{_work.exact_per_million(rows, trials.table.dim) / cost:.2g} times the time."
        )
    for entry in entries:
        if entry is best or entry.size is None:
            continue
        other = seconds(trials, entry.family, entry.size)
        name = f"{entry.family.name} with {entry.family.num_features(entry.size):,} features"
        if (best.sample or math.inf) > (entry.sample or math.inf):
            cheaper = f", and {cost / other:.2g} times as fast" if other < cost else ""
            sentences.append(
                f"{name} is certified for samples of {entry.sample:,} rows only{cheaper}."
            )
        else:
            sentences.append(f"{name} takes {other / cost:.2g} times as long.")
    if demand is None:
        missing = (
            f"No statement gives a size of {family.name} for this goal on these data"
        )
        sentences.append(f"{missing}: draws alone certify it.")
    elif best.basis == "draws" and demand.size:
        fewer = f"{demand.size / size:.2g} times fewer than {demand.source} asks"
        sentences.append(f"The draws certify {family.unit} {size:,}, {fewer}.")
    return sentences


def seed_of(key: Any) -> int | None:
    """Return the seed of jax.random.key(seed), None for a key that no seed makes."""
    words = np.asarray(jax.random.key_data(key)).ravel()
    if str(jax.random.key_impl(key)) != "threefry2x32" or len(words) != 2:
        return None
    return int(words[0]) << 32 | int(words[1])


def lines_of_python(
    trials: Trials, best: Entry | None, lengthscale: float, key: Any, opened: str | None
) -> str | None:
    """Return the lines that draw the recommended map again, None where there is none."""
    if best is None or best.size is None:
        return None
    table, family, size, seed = trials.table, best.family, best.size, seed_of(key)
    made = f"jax.random.key({seed})"
    if seed is None or seed >= 2**32:
        words = np.asarray(jax.random.key_data(key)).ravel().tolist()
        made = f"jax.random.wrap_key_data(jnp.array({words}, 'uint32'))"
    lines = ["import jax", "import jax.numpy as jnp"]
    if trials.dtype == "float64":
        lines.append('jax.config.update("jax_enable_x64", True)')
    lines += [
        "from jaxkern import features, kernels",
        "from proofs_check.certify import from_array, open_table, rows_for",
        opened or f"table = from_array(X, standardize={table.standardized})",
        f'dtype = "{trials.dtype}"',
        f"kernel = kernels.{type(trials.kernel).__name__}({lengthscale!r})",
        f"key_rows, key_map = jax.random.split({made})",
    ]
    if count := family.num_points(size):
        lines.append(
            f"points = jnp.asarray(table.take(rows_for(key_rows, table.rows, {count}), dtype))"
        )
    lines.append(family.python(family.sizes(size)))
    if table.standardized:
        moments = ", ".join(
            f"jnp.asarray(table.{name}, dtype)" for name in ("mean", "scale")
        )
        lines.append(f"phi = features.standardized(phi, {moments})")
    lines.append("phi = table.attach(phi)")
    goal: Any = trials.goal
    if goal.name == "clustering":
        lines += goal.python(made)
    return "\n".join(lines)
