"""What a certificate promises, why it recommends a map, and the Python that draws the map again."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

import jax
import numpy as np

from proofs_check.certify.certificate import MapRow
from proofs_check.certify.maps import Family
from proofs_check.certify.request import Request
from proofs_check.certify.rounding import Rounding
from proofs_check.certify.theory import rounding_share
from proofs_check.certify.trials import Trials

MISSED = 0.01
"""The chance that a sample holds none of the pairs of a map with too many bad ones. With 0.1, the stated share would
halve, and the probability over the map would be 0.945 in place of 0.949."""


def guarantee(
    request: Request, trials: Trials, row: MapRow, source: str, rounding: Rounding
) -> str:
    """Return what a certified row promises, in a few sentences; `source` is the statement behind it, if any."""
    fixed = is_deterministic(trials, row)
    least = _complement(request.delta)
    seeds = " and of the seeds of k-means" if request.goal == "clustering" else ""
    over = f"With probability at least {least} over the draw of the map{seeds}"
    if fixed:
        over = "All rows are landmarks, so nothing is random in the map"
    units = ", standardised in float64" if trials.table.standardized else ""
    promise = (
        f"the error is at most {request.eps}. The error is {trials.goal.words}, against the kernel of the rows as they "
        f"were read{units}. It includes what {trials.dtype} rounds."
    )
    join = ": for" if fixed else ", for"
    if row.basis != "draws":
        stated = _by_statement(request, row, rounding)
        return (
            f"{over}{join} all rows of this table, {promise}{stated} Source: {source}."
        )
    drawn = f"Shown by fresh draws, with confidence {request.confidence}."
    if row.scope == "all rows":
        return f"{over}{join} all rows of this table, {promise} {drawn}"
    assert row.points_per_draw is not None
    over = (
        f"{over}. With probability at least {least} over the draw"
        if fixed
        else f"{over} and"
    )
    text = (
        f"{over} of a sample of {row.points_per_draw:,} rows, drawn independently from the table, {promise} {drawn} "
        "This is about samples, and weaker than a guarantee for all rows"
    )
    if request.goal != "distance":
        return f"{text}."
    return f"{text}: {_share_of_pairs(request.delta, row.points_per_draw, trials.table.rows)}."


def _by_statement(request: Request, row: MapRow, rounding: Rounding) -> str:
    """Return how a theorem and rounding share eps."""
    kind = ", for every table of this kind" if row.basis == "worst case" else ""
    share = rounding_share(rounding, request.goal, row.map)
    if not share:
        return ""
    text = f" Rounding may take {_at_most(share, 2)} of it, and the rest is by a theorem{kind}."
    if rounding.closest:
        closest = _at_most(rounding.closest, 2)
        text += f" Pairs at a kernel distance below {closest} are left out: it may change them more."
    return text


def _share_of_pairs(delta: float, sample: int, rows: int) -> str:
    """Return what a guarantee for samples says of all pairs; every number is rounded to the side that is true.

    A sample holds sample / 2 independent pairs. With a share q of bad pairs none of these is bad with probability
    (1 - p)^(sample / 2), p = q (1 - 1 / rows): a pair of draws with replacement is one row twice with probability
    1 / rows, and such a pair has no error.
    """
    drawn = -math.expm1(math.log(MISSED) / (sample // 2))
    share = min(drawn / (1 - 1 / rows), 1.0)
    over_the_map = _complement(float(_at_most(delta / (1 - MISSED), 4)))
    return (
        f"with probability at least {over_the_map} over the map alone, at most {_at_most(100 * share, 3)} % of all "
        "pairs are off by more"
    )


def is_deterministic(trials: Trials, row: MapRow) -> bool:
    """Return whether nothing of a draw is random: all rows are landmarks, and the goal has no seeds."""
    landmarks = (row.sizes or {}).get("num_landmarks")
    return (
        trials.goal.name != "clustering"
        and row.map in ("nystrom", "kernel_pca")
        and landmarks == trials.table.rows
    )


def _at_most(value: float, digits: int) -> str:
    """Return a positive number in decimal digits, rounded up."""
    exact = Decimal(str(value))
    last = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(last, ROUND_CEILING)):.{digits}g}"


def _complement(delta: float) -> str:
    """Return 1 - delta in all its decimals: rounding might say more than is known, such as 1."""
    if delta < 1e-6:
        return f"1 - {delta}"
    return str(Decimal(1) - Decimal(str(delta)))


def reasons(request: Request, trials: Trials, rows: Sequence[MapRow]) -> list[str]:
    """Return why this map and this size, or why none, in plain sentences."""
    sentences = []
    if request.features_at_most is not None:
        limit = request.features_at_most
        sentences.append(f"No map with more than {limit:,} features was tried.")
    best = next((row for row in rows if row.recommended), None)
    if best is None:
        sentences += [f"{row.map}: {row.words}." for row in rows]
        return sentences + _nearest(request, rows)
    assert best.cost is not None and best.num_features is not None
    sentences.append(
        f"{best.map} costs least: about {best.cost:,.0f} multiply-adds for the features of a point."
    )
    rows_of_table = trials.table.rows
    if best.num_features >= rows_of_table:
        sentences.append(
            f"It has no fewer features than the table has rows ({rows_of_table:,}): the exact kernel has no error, and "
            "may be cheaper."
        )
    return sentences


def _nearest(request: Request, rows: Sequence[MapRow]) -> list[str]:
    """Return a sentence about the size whose draws came nearest to eps; none if nothing was drawn."""
    points = [(row, point) for row in rows for point in row.curve if point.median]
    if not points:
        return []
    row, point = min(points, key=lambda pair: pair[1].median or math.inf)
    return [
        f"Best so far: {row.map} with {point.num_features:,} features; {point.failures} of {point.draws} draws had an "
        f"error above {request.eps:g}, and the median error was {point.median:.3g}."
    ]


def seed_of(key: Any) -> int | None:
    """Return the seed of jax.random.key(seed), None for a key that no seed makes."""
    words = np.asarray(jax.random.key_data(key)).ravel()
    if str(jax.random.key_impl(key)) != "threefry2x32" or len(words) != 2:
        return None
    return int(words[0]) << 32 | int(words[1])


def lines_of_python(
    trials: Trials, family: Family, row: MapRow, key: Any, opened: str | None
) -> list[str]:
    """Return the lines that draw a certified map again; `opened` is the line that opens the table."""
    table = trials.table
    lines = ["import jax", "import jax.numpy as jnp"]
    if trials.dtype == "float64":
        lines.append('jax.config.update("jax_enable_x64", True)')
    kernel = trials.kernel
    lines += [
        "from jaxkern import features, kernels",
        "from proofs_check.certify import from_array, open_table, rows_for, split",
        opened or f"table = from_array(X, standardize={table.standardized})",
    ]
    if row.scope == "rows never seen":
        lines.append(f"table, held_out = split({python_key(key)}, table)")
    lines += [
        f'dtype = "{trials.dtype}"',
        f"kernel = kernels.{type(kernel).__name__}({float(kernel.lengthscale)!r})",
        f"key_rows, key_map = jax.random.split({python_key(key)})",
    ]
    sizes = row.sizes or {}
    count = sizes.get("num_points", sizes.get("num_landmarks"))
    if count:
        rows = f"rows_for(key_rows, table.rows, {count})"
        lines.append(f"points = jnp.asarray(table.take({rows}, dtype))")
    lines.append(family.python(sizes))
    if table.standardized:
        moments = "jnp.asarray(table.mean, dtype), jnp.asarray(table.scale, dtype)"
        lines.append(f"phi = features.standardized(phi, {moments})")
    return [*lines, "phi = table.attach(phi)"]


def python_key(key: Any) -> str:
    """Return the Python that makes a key."""
    seed = seed_of(key)
    if seed is not None and seed < 2**32:
        return f"jax.random.key({seed})"
    words = np.asarray(jax.random.key_data(key)).ravel().tolist()
    return f"jax.random.wrap_key_data(jnp.array({words}, 'uint32'))"
