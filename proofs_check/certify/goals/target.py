"""What the goal "prediction" predicts: a class or a number, the loss of a prediction, and limits of mean losses."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxkern.regression import TablePredictor
from proofs_check.certify.load import Table
from proofs_check.engine.betting import betting_limits
from proofs_check.engine.limits import binomial_limits
from proofs_check.engine.reading import as_number

MOST_VALUES = 10
"""A target of more different whole numbers is a number, unless `target_kind` says that it is a class."""
MOST_CLASSES = 1_000
"""Every class is a column."""
MOST_BET = 0.95
"""The part of the capital that a bet may risk."""


@dataclass(frozen=True)
class Target:
    """What is predicted: a class, with a column of 1 and -1 for each, or a number in units of its deviation.

    Attributes
    ----------
    name : of the column, "the target" if it has none.
    words : how it was taken, as a class or as a number, and how to change that.
    columns : (n, t), of the training rows, less their means.
    truth : (h,) names of classes, or numbers in units of the file, of the held-out rows.
    loss : of a row, in words.
    rule : what values of the columns, (h, t), predict; it has classes or the range of the training rows.
    unit : the deviation of a number.
    largest_loss : of a row.
    """

    name: str
    words: str
    columns: np.ndarray
    truth: np.ndarray
    loss: str
    rule: TablePredictor
    unit: float = 1.0
    largest_loss: float = 1.0

    def losses(self, predictions: np.ndarray) -> np.ndarray:
        """Return the loss of every held-out row, (h,)."""
        if self.rule.classes:
            return (predictions != self.truth).astype(float)
        errors = (predictions - self.truth) / self.unit
        # Betting needs a bound that is known beforehand, and a held-out number may lie outside of the span.
        return np.minimum(errors**2, self.largest_loss)


def target_of(train: Table, held_out: Table, kind: str | None) -> Target:
    """Return the target of a table that was split.

    Raises ValueError if there is no target, or one value of it, or if its values are not of the kind.
    """
    if train.labels is None:
        raise ValueError(
            "the goal prediction needs a target for every row; pass labels, or --target COLUMN"
        )
    columns_by_reason = {why: column for column, why in train.left_out.items()}
    name = columns_by_reason.get("holds the labels", "the target")
    texts = np.array(train.label_names)
    values = np.unique(texts)
    is_number, words = _kind_of(name, values, kind)
    if is_number:
        texts = texts.astype(float)
    y = texts[train.labels]
    truth = texts[held_out.labels]
    if len(np.unique(y)) < 2:
        raise ValueError(
            f"the {len(y):,} training rows hold one value of {name}, {y[0]}; pass another target"
        )
    unit: Any = 1.0
    largest = 1.0
    if is_number:
        unit = y.std()
        largest = (np.ptp(y) / unit) ** 2
        columns = y[:, None] / unit
        form: Any = {"span": (float(y.min()), float(y.max()))}
        loss = (
            f"the squared error of {name} over its variance among the training rows, cut to {largest:.3g}; predictions "
            "are cut to the range of these rows"
        )
    elif len(values) > MOST_CLASSES:
        raise ValueError(
            f"{name} has {len(values):,} different values, and at most {MOST_CLASSES:,} classes can be predicted; pass "
            "another target"
        )
    else:
        columns = np.where(y[:, None] == values, 1.0, -1.0)
        form = {"classes": tuple(values.tolist())}
        loss = f"1 if the class ({name}) is missed, and 0 if not"
    mean = columns.mean(axis=0)
    rule = TablePredictor(np.asarray, unit * np.eye(len(mean)), unit * mean, **form)
    return Target(name, words, columns - mean, truth, loss, rule, unit, largest)


def _kind_of(name: str, values: np.ndarray, kind: str | None) -> tuple[bool, str]:
    """Return whether a target is taken as a number, and a sentence about it."""
    numbers = np.array([as_number(text) for text in values], float)
    texts = values[~np.isfinite(numbers)]
    if kind == "number" and texts.size:
        raise ValueError(
            f"{name} holds {str(texts[0])!r} and cannot be predicted as a number; pass --target-kind class, in Python "
            'target_kind="class"'
        )
    are_whole = not texts.size and np.all(numbers % 1 == 0)
    # A count of rows in this rule would make the kind depend on how long the table is.
    are_classes = texts.size or (are_whole and len(values) <= MOST_VALUES)
    label = kind or ("class" if are_classes else "number")
    words = f"Target: {name}, a {label} ({len(values):,} different values)"
    if kind is None and are_whole:
        other = "number" if are_classes else "class"
        words += f"; pass --target-kind {other} to take it as a {other}"
    return label == "number", f"{words}."


def upper_limit(target: Target, difference: Any, level: float) -> float:
    """Return the upper limit, at this level, of the mean of a difference of losses, (h,)."""
    rows = len(difference)
    if target.rule.classes:
        # Limits of Clopper and Pearson for the rates at which only one of two methods is wrong.
        _, worse = binomial_limits(np.sum(difference > 0), rows, level / 2)
        better, _ = binomial_limits(np.sum(difference < 0), rows, level / 2)
        return worse - better
    # It holds for every law within the range of the loss.
    _, high = betting_limits(
        difference,
        level,
        low=-target.largest_loss,
        high=target.largest_loss,
        horizon=rows,
        most=MOST_BET,
    )
    return float(high)
