"""The goal "prediction": the smallest map with which ridge regression predicts about as well as with the exact kernel.

The key splits the rows. The exact method, a linear model and every map are fitted on the training rows, and everything
that is chosen is chosen there. The loss of each method on the held-out rows is compared with the loss of the exact
method. For independent rows of one law the limits of the mean differences hold for all methods at once, by
Bonferroni's inequality. The number of methods follows from the sizes of the table, and is fixed beforehand.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from scipy.stats.contingency import crosstab

from jaxkern.kernels import Linear
from jaxkern.regression import Ridge, TablePredictor, leave_one_out, ridge_to
from proofs_check.certify.certificate import Drawing, MapRow, Method, Predicted
from proofs_check.certify.goals.target import Target, target_of, upper_limit
from proofs_check.certify.keys import keys_of
from proofs_check.certify.load import Table, moments_of
from proofs_check.certify.maps import (
    LANDMARKS_A_FEATURE,
    Family,
    cost,
    families,
    limited,
)
from proofs_check.certify.points import Rows
from proofs_check.certify.request import Request
from proofs_check.certify.trials import Trials

LEAST_ROWS = 20
TRAINED = 0.4
"""The share of the rows that methods are fitted on."""
MOST_TRAINED = 5_000
MOST_HELD_OUT = 20_000
MOST_FEATURES = 1_024
"""Features of the largest maps, or half of the training rows if that is less."""
LEVELS = 4
"""Sizes of each map: each is half of the one before."""
PENALTIES = 10.0 ** np.arange(-7, 2)
"""Regularizations that are tried, over the number of rows."""
CHOOSING_ROWS = 2_000
"""The most rows that a penalty is chosen on: an eigendecomposition takes their cube."""
TOLERANCE = 1e-3
"""Of the exact method, in deviations of the target; for classes, whose columns are 1 and -1, half of that."""
LANDMARKS = 512
MOST_PRODUCTS = 100
"""Landmarks of the preconditioner of the exact method, and its most products with the kernel matrix."""
UPPER = 0.9
"""Share of the error rate for upper limits, which decide; lower limits have the rest."""
TRIVIAL_SHARE = 0.25
"""Share of the error rate for the comparison with the trivial predictor, on which every recommendation depends."""
GOAL = "the mean loss on rows never seen, less the mean loss of the exact method"
MOST_SHOWN_CLASSES = 20
MOST_PAIRS = 1_000


@dataclass(frozen=True)
class Fitted:
    """What the goal prediction found.

    Attributes
    ----------
    predicted, maps : parts of the certificate.
    finished : whether all maps were fitted before the deadline.
    guarantee : what is promised, "" if no map is recommended.
    drawing : the recommended map with its predictor, which takes rows of the table; None if there is none.
    """

    predicted: Predicted
    maps: list[MapRow]
    finished: bool
    guarantee: str
    drawing: Drawing | None


def predict(
    trials: Trials, held_out: Table, request: Request, say: Callable[[str], None]
) -> Fitted:
    """Fit all methods on the table of `trials`, and judge them on held-out rows; `split` returns both.

    No map is begun after the deadline of `trials`. `say` is called with lines of progress. Raises ValueError as
    `target_of` does.
    """
    table = trials.table
    target = target_of(table, held_out, request.target_kind)
    say(target.words)
    plan = list(candidates(table.rows, table.dim, request))
    error_rate = 1 - request.confidence
    level = (1 - TRIVIAL_SHARE) * error_rate / (len(plan) + 1)
    train = _all_rows(trials, table)
    new = _all_rows(trials, held_out)
    f, exact = kernel_ridge(trials.key, trials.kernel, target, train, new)
    penalty = float(f.regularization)
    x = _all_rows(trials, standardized(table, table))
    new_x = _all_rows(trials, standardized(held_out, table))
    # Squared lengths of 1 on average: penalties then mean the same as for the kernel.
    _, linear = kernel_ridge(trials.key, Linear() * (1 / table.dim), target, x, new_x)
    exact_losses = target.losses(exact)

    def judged(
        predictions: np.ndarray, level: float = level, share: float = UPPER
    ) -> tuple[float, ...]:
        """Return the mean loss, the mean excess and its limits; the upper one has this share of the level."""
        losses = target.losses(predictions)
        difference = losses - exact_losses
        low = -upper_limit(target, -difference, (1 - share) * level)
        high = upper_limit(target, difference, share * level)
        return float(losses.mean()), float(difference.mean()), low, high

    # Scores of 0 predict the mean, or the largest class.
    constant = target.rule.predict(np.zeros_like(target.rule.offset))
    name = "largest class" if target.rule.classes else "mean"
    # The lower limit decides here: the exact method predicts something if it is above 0.
    trivial = Method(
        name, None, 0, *judged(constant, TRIVIAL_SHARE * error_rate, 1 - UPPER)
    )
    # Even a map that predicts the same as the exact method could not stay below `least`.
    loss, _, _, least = judged(exact)
    bound = _largest(f.distance_bound)
    rows = [
        trivial,
        Method("exact method", None, table.rows, loss, 0.0, 0.0, 0.0, bound),
        Method("linear model", None, table.dim, *judged(linear)),
    ]
    good = []
    for number, (family, size) in enumerate(plan, 1):
        if time.monotonic() >= trials.deadline:
            break
        name = family.name
        width = family.num_features(size)
        say(f"map {number} of {len(plan)}: {name} with {width:,} features")
        # It takes the columns that are used, as here, and whole rows of the table, too.
        phi = table.attach(trials.draw(family, size, jax.random.clone(trials.key)))
        predictor = map_ridge(phi, name, target, train.inputs, penalty)
        predictions = predictor.predict(new.inputs)
        row = Method(name, family.sizes(size), width, *judged(predictions))
        rows.append(row)
        if trivial.low > 0 and row.high <= request.eps:
            good.append((row, Drawing(trials, family, size, trials.key, predictor)))

    late = {family.name for family, _ in plan[len(rows) - 3 :]}
    _, drawing = min(
        good,
        key=lambda pair: (pair[0].num_features, pair[0].high),
        default=(None, None),
    )
    guarantee = ""
    pictured = exact
    if drawing is not None:
        guarantee = _guarantee(request, table, target)
        pictured = drawing.predictor.predict(new.inputs)
    predicted = Predicted(
        target=target.name,
        loss=f"Loss: {target.loss}.",
        numeric=not target.rule.classes,
        train=table.rows,
        test=held_out.rows,
        regularization=penalty,
        level=level,
        exact_bound=_largest(f.training_bound),
        rows=rows,
        words=[*_words(target, rows, drawing, request.eps, least), target.words],
        **_pictures(target, pictured),
    )
    maps = [_map_row(name, rows, good, drawing, late) for name in request.maps or ()]
    return Fitted(predicted, maps, not late, guarantee, drawing)


def candidates(rows: int, dim: int, request: Request) -> Iterator[tuple[Family, int]]:
    """Yield the maps and sizes that are tried on so many training rows, from few features to many."""
    most = min(rows // 2, MOST_FEATURES, request.features_at_most or MOST_FEATURES)
    for level in reversed(range(LEVELS)):
        num_features = most >> level
        # With this eps, principal components of Fourier features are so many.
        known = families(rows, dim, 4 / (num_features - 0.5))
        for name in request.maps or ():
            family = limited(known[name], num_features)
            # A frequency has two features, and there are four features for a principal component of them. The size is
            # 0 if the map has none with so few features.
            size = min(family.largest, LANDMARKS_A_FEATURE * num_features // 2)
            if size >= 1:
                yield family, size


# The rows


def split(key: Any, table: Table) -> tuple[Table, Table]:
    """Return training rows and held-out rows of a table, in random order.

    Two fifths of the rows, at most 5,000, are for training. Of the rest at most 20,000 are held out. Both parts are
    standardised by the moments of the training rows. Raises ValueError for fewer than 20 rows.
    """
    if table.rows < LEAST_ROWS:
        raise ValueError(
            f"the goal prediction needs at least {LEAST_ROWS} rows, got {table.rows}"
        )
    order = np.asarray(jax.random.permutation(keys_of(key).rows, table.rows))
    count = min(int(TRAINED * table.rows), MOST_TRAINED)
    train = table.part(order[:count])
    held_out = table.part(order[count : count + MOST_HELD_OUT])
    if not table.standardized:
        return train, held_out
    return standardized(train, train), standardized(held_out, train)


def standardized(table: Table, train: Table) -> Table:
    """Return a table standardised by the training rows; moments of all rows would let the others into every fit."""
    moments = moments_of(train.view)
    # Columns that are constant there are shifted, and not scaled.
    scale = moments.deviation + (moments.deviation == 0)
    return replace(table, standardized=True, mean=moments.mean, scale=scale)


def _all_rows(trials: Trials, table: Table) -> Rows:
    return replace(trials, table=table).rows(np.arange(table.rows))


# What is fitted on the training rows


def kernel_ridge(
    key: Any, kernel: Any, target: Target, train: Rows, new: Rows
) -> tuple[Ridge, np.ndarray]:
    """Return kernel ridge regression in float64 and its predictions for new rows, (h,).

    Its penalty has the least squared error of rows left out.
    """
    y = target.columns
    # The first rows are a random sample, since all rows are in random order.
    few = train.points[:CHOOSING_ROWS]
    # The rounding of float32 is as large as the smallest penalty, 1e-7 of the trace.
    with jax.enable_x64(True):
        residuals = leave_one_out(
            kernel, few, y[: len(few)], regularization=PENALTIES * len(few)
        )
        errors = np.linalg.norm(residuals, axis=(1, 2))
        f = ridge_to(
            keys_of(key).exact,
            kernel,
            train.points,
            y,
            regularization=PENALTIES[np.argmin(errors)] * len(y),
            tolerance=TOLERANCE,
            num_landmarks=min(len(y), LANDMARKS),
            max_products=MOST_PRODUCTS,
        )
        return f, target.rule.predict(f(new.points))


def map_ridge(
    phi: Any, name: str, target: Target, inputs: np.ndarray, penalty: float
) -> TablePredictor:
    """Return ridge regression on the features of a map, in float64 whatever the precision of the map."""
    Z = np.asarray(phi(inputs), np.float64)
    gram = Z.T @ Z
    if name == "kernel_jl":
        # Its inner product is not the kernel, and of any scale; other maps have squared lengths of about 1.
        penalty *= np.trace(gram) / len(Z)
    gram += penalty * np.eye(len(gram))
    weights: Any = (
        np.linalg.solve(gram, Z.T @ target.columns) @ target.rule.coefficients
    )
    return replace(target.rule, feature_map=phi, coefficients=weights)


# What is known of maps


def _largest(bounds: Any) -> float | None:
    """Return the largest bound of the columns; JSON has no infinity."""
    bound = float(np.asarray(bounds).max())
    return bound if np.isfinite(bound) else None


def _map_row(
    name: str,
    rows: list[Method],
    good: list[tuple[Method, Drawing]],
    best: Drawing | None,
    late: set[str],
) -> MapRow:
    """Return what is known of a map: its smallest size that is good, or why there is none."""
    for row, drawing in good:
        # The plan goes from few features to many: the first size that passes is the smallest.
        if row.name == name:
            return MapRow(
                name,
                "certified",
                f"its excess is at most {row.high:.3g} on rows never seen",
                recommended=drawing is best,
                sizes=row.sizes,
                num_features=row.num_features,
                basis="held-out rows",
                scope="rows never seen",
                cost=cost(drawing.family, drawing.size, drawing.table.dim),
            )
    if name in late:
        return MapRow(
            name, "out of time", "the time ended before all of its sizes were fitted"
        )
    highs = [row.high for row in rows if row.name == name]
    words = "it has no size with so few features"
    if highs:
        words = f"its excess may be {min(highs):.3g} at the best of its sizes"
    return MapRow(name, "not certified", words)


def _pictures(target: Target, predictions: np.ndarray) -> dict[str, Any]:
    """Return the confusion of few classes, or pairs of true and predicted numbers, as fields of `Predicted`."""
    classes = target.rule.classes
    if not classes:
        pairs = np.transpose([target.truth, predictions])
        return {"picture": pairs[:MOST_PAIRS].tolist()}
    if len(classes) > MOST_SHOWN_CLASSES:
        return {}
    counts = crosstab(target.truth, predictions, levels=(classes, classes)).count
    return {"classes": list(classes), "confusion": counts.tolist()}


# Words


def _guarantee(request: Request, table: Table, target: Target) -> str:
    text = (
        f"With confidence {request.confidence:g}, for independent rows of one law: ridge regression on the features of "
        f"this very map, fitted on {table.rows:,} training rows with the stated penalty, has an excess of at most "
        f"{request.eps:g}. The excess is {GOAL}. The loss is {target.loss}. The limits are from "
        f"{len(target.truth):,} rows that nothing was fitted or chosen on, and hold for all methods at once."
    )
    if table.duplicate_rows:
        text += (
            f" {table.duplicate_rows:,} rows equal an earlier one. If the table was made by copying rows, its rows are "
            "not independent: copies of training rows are among the rows held out, and their losses are too small."
        )
    return text


def _words(
    target: Target, rows: list[Method], best: Drawing | None, eps: float, least: float
) -> Iterator[str]:
    """Yield what to use, a map, the linear model, the exact kernel, or nothing."""
    trivial, _, linear, *_ = rows
    if trivial.low <= 0:
        yield (
            f"Nothing here is shown to predict {target.name}, and nothing is recommended: on rows never seen the exact "
            f"method may be no better than the {trivial.name}."
        )
        if linear.high < 0:
            yield "The linear model is better than the exact method: try another kernel or lengthscale."
        return
    if best:
        yield "No map with fewer features, of those that were tried, is shown to be good enough."
    if linear.high <= eps:
        yield "The linear model will do, without a kernel."
    elif not best:
        yield "No map is certified, and the exact kernel is the better choice."
    if trivial.high <= eps:
        yield f"The {trivial.name} alone is within eps of the exact method: pass a smaller eps."
    if least > eps:
        yield (
            f"No map could have been certified: even without any excess, the upper limit for {len(target.truth):,} "
            f"held-out rows is {least:.3g}. About {least / eps:.2g} times as many rows would tell."
        )
