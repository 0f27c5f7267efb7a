"""What a map is compared with: the exact kernel, the columns as they are, and both of them on rows held out."""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial.distance import pdist

from jaxkern.gram import gram
from proofs_check.certify import _work
from proofs_check.certify._entries import Entry
from proofs_check.certify._errors import finite
from proofs_check.certify._maps import families
from proofs_check.certify._prediction import part, penalized
from proofs_check.certify._request import Request
from proofs_check.certify._rows import embed
from proofs_check.certify._trials import Trials
from proofs_check.certify.load.table import rows_for

MOST_ROWS = 2_000
"""Rows that are split, at most: the exact kernel takes their cube."""
TRAINED = 0.75
MEASURED_ROWS = 1_000


def comparison(
    key: Any, trials: Trials, best: Entry | None, measure: bool
) -> list[dict[str, Any]]:
    """Return what the exact kernel and the columns as they are would do, as JSON; `measure` says whether there is time.

    The columns have an error for the goals that are about partitions and classes, and not about values of the kernel.
    """
    rows, dim, error = trials.table.rows, trials.table.dim, None
    if measure and trials.goal.name in ("clustering", "separation"):
        key_rows, key_error = jax.random.split(key)
        prepared = _prepared(trials, key_rows)
        error = finite(
            trials.goal.error(
                key_error, jax.tree_util.Partial(_columns, trials.table), prepared
            )
        )
    exact = _work.exact_per_million(rows, dim)
    words = f"The values of the kernel with all {rows:,} rows, which have no error"
    if best is not None:
        words += f", in {exact / _work.seconds_per_million(best.family, best.known_size, dim):.2g} times the time"
    plain = (
        ", for a linear method: the goal is not about them"
        if error is None
        else f" have an error of {error:.3g}"
    )
    told = [
        ("exact kernel", rows, 0.0, exact, f"{words}."),
        ("no kernel", dim, error, 0.0, f"The columns as they are{plain}."),
    ]
    names = "name", "num_features", "error", "seconds_per_million", "words"
    return [dict(zip(names, one, strict=True)) for one in told]


def _prepared(trials: Trials, key: Any) -> Any:
    """Return what the goal prepares of all rows if it is there, and of a sample otherwise."""
    if trials.is_prepared:
        return trials.all_rows()
    return trials.sample(key, min(trials.table.rows, MEASURED_ROWS))


def clusters(
    key: Any, trials: Trials, best: Entry | None, key_map: Any, measure: bool
) -> dict[str, Any]:
    """Return the k-means that is certified, and how its clusters agree with the classes, as JSON.

    `key_map` is the key of the recommended map, and `measure` says whether there is time for the agreement.
    """
    goal: Any = trials.goal
    words, agreement = [], []
    if goal.found_by_one is not None:
        missed = (1 - goal.found_by_one) ** goal.num_restarts
        share = f"{100 * goal.found_by_one:.3g} % of its seedings"
        words.append(
            f"k-means with the exact kernel finds its best partition, up to eps, from {share}; "
            f"{goal.num_restarts} restarts miss it with a probability of about {max(missed, 1e-6):.1g}."
        )
    if measure and trials.table.labels is not None:
        key_rows, key_seeds = jax.random.split(key)
        prepared = _prepared(trials, key_rows)
        columns = jax.tree_util.Partial(_columns, trials.table)
        maps = {"exact kernel": None, "no kernel": columns}
        if best is not None:
            phi = trials.draw(best.family, best.known_size, key_map)
            maps["the recommended map"] = phi
        for name, phi in maps.items():
            index = goal.agreement(key_seeds, phi, prepared)
            agreement.append({"name": name, "adjusted_rand": finite(index)})
    return {
        "num_clusters": goal.num_clusters,
        "num_restarts": goal.num_restarts,
        "agreement": agreement,
        "words": words,
    }


def held_out(
    key: Any, trials: Trials, best: Entry | None, request: Request
) -> dict[str, Any]:
    """Return how well one linear classifier does on rows that nothing was fitted on, as JSON; {} without classes.

    Scaling, lengthscale unless it is given, landmarks and penalty come from the other rows alone. O(1,500^3).
    """
    table = trials.table
    if table.labels is None:
        return {}
    key_rows, key_order, key_map = jax.random.split(key, 3)
    rows = rows_for(key_rows, table.rows, min(table.rows, MOST_ROWS))
    rows = rows[np.asarray(jax.random.permutation(key_order, len(rows)))]
    count = int(TRAINED * len(rows))
    classes, labels = np.unique(np.asarray(table.labels)[rows], return_inverse=True)
    if len(classes) < 2 or count < 8:
        return {}
    raw = table.take(rows, "float64", raw=True)
    mean, deviation = raw[:count].mean(axis=0), raw[:count].std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    scaled = (raw - mean) / scale
    points = scaled if table.standardized else raw
    lengthscale = request.lengthscale or float(np.median(pdist(points[:count][:500])))
    if not lengthscale > 0:
        return {}
    kernel = type(trials.kernel)(lengthscale)
    with jax.enable_x64(True):
        grams = {
            "no kernel": scaled @ scaled.T,
            "exact kernel": np.asarray(gram(kernel, points)),
        }
    if best is not None:
        family = families(count, table.dim, request.eps)[best.family.name]
        size = min(best.known_size, family.largest)
        fitted = replace(part(table, rows[:count]), mean=mean, scale=scale)
        own = Trials(key_map, fitted, kernel, trials.goal, trials.dtype)
        phi = own.draw(family, size, key_map)
        inputs = jnp.asarray(table.take(rows, trials.dtype, raw=True))
        Z = np.asarray(embed(phi, inputs), np.float64)
        grams["the recommended map"] = Z @ Z.T
    chance = 1.96 * 0.5 / math.sqrt(len(rows) - count)
    some = "" if len(rows) == table.rows else f" of {len(rows):,} sampled rows"
    return {
        "train": count,
        "test": len(rows) - count,
        "rows": [
            {"name": name, "accuracy": _accuracy(G, labels, count)}
            for name, G in grams.items()
        ],
        "words": f"The share of {len(rows) - count:,} held-out rows{some} whose class ridge regression tells. Scaling, "
        f"lengthscale, landmarks and penalty are from the other {count:,} rows alone. It is one split: differences "
        f"below {chance:.2g} may be chance, and no certificate is about them.",
    }


def _columns(table: Any, points: jax.Array) -> jax.Array:
    return (points - table.mean) / table.scale if table.standardized else points


def _accuracy(G: np.ndarray, labels: np.ndarray, train: int) -> float:
    """Return the accuracy of ridge regression on the rows from `train` on, fitted on those before, penalty included."""
    targets = np.eye(labels.max() + 1)[labels[:train]]
    mean = targets.mean(axis=0)
    G = G / (np.trace(G[:train, :train]) / train) + 1  # with a constant feature
    values, vectors = np.linalg.eigh(G[:train, :train])
    _, solved = penalized(vectors, np.maximum(values, 0), targets - mean)
    predicted = mean + G[train:, :train] @ (vectors @ solved)
    return float(np.mean(np.argmax(predicted, axis=1) == labels[train:]))
