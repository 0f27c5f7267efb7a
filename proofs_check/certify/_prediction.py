"""The goal "prediction": the smallest map with which ridge regression predicts about as well as with the exact kernel.

Rows are split by the key. On the training rows alone the exact method, a linear model and every map are fitted, and
all that is chosen is chosen there. On the held-out rows, each of which is looked at once, the loss of each method is
set beside that of the exact one. For independent rows of one law the limits of the mean difference hold at once for all
methods, by Bonferroni's inequality over a number of them that the sizes of the table fix beforehand.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cho_factor, cho_solve

from jaxkern.gram import gram
from jaxkern.regression import ridge_to
from proofs_check.certify._certificate import Certificate
from proofs_check.certify._clock import Clock
from proofs_check.certify._document import Results, document_of, seed_of
from proofs_check.certify._entries import Entry
from proofs_check.certify._keys import keys_of
from proofs_check.certify._maps import LANDMARKS_A_FEATURE, families, limited
from proofs_check.certify._model import EXACT, Facts, Family
from proofs_check.certify._plan import Found
from proofs_check.certify._request import Request
from proofs_check.certify._trials import Trials
from proofs_check.certify.load.table import Table, moments_of
from proofs_check.engine.betting import betting_limits
from proofs_check.engine.limits import binomial_limits
from proofs_check.engine.reading import as_number

TRAINED, MOST_TRAINED, MOST_HELD_OUT = 0.4, 5_000, 20_000
"""The share of the rows that methods are fitted on, and the most rows on either side."""
MOST_FEATURES, LEVELS = 1_024, 4
"""Of the largest maps, where half of the training rows are more; each of so many sizes is half of the one before."""
PENALTIES = 10.0 ** np.arange(-7, 2)
"""Regularizations that are tried, over the number of rows."""
TOLERANCE = 1e-3
"""Of the exact method, in deviations of the target; for classes, where columns are 1 and -1, half of that."""
CHOOSING_ROWS, LANDMARKS, MOST_PRODUCTS = 2_000, 512, 100
"""The most rows that a penalty is chosen on; of the exact method, the preconditioner and products with the kernel."""
UPPER, MOST_BET = 0.9, 0.95
"""The part of the error rate for upper limits, which decide; the part of the capital that a bet may risk."""
NO_NAME = "the target"
MOST_VALUES = 10
"""A target of more different whole numbers than this is a number, unless `target_kind` says that it is a class."""
MOST_CLASSES = 1_000
"""Every class is a column of the target."""
MEAN, LARGEST_CLASS = "mean", "largest class"
"""The trivial predictors: what they predict is the same for every row."""
TRIVIAL_SHARE = 0.25
"""Share of the error rate for the comparison with the trivial predictor, on which every recommendation depends."""


def part(table: Table, rows: np.ndarray) -> Table:
    """Return the table of some rows."""
    view = table._view
    chosen = rows if view.chosen is None else view.chosen[rows]
    labels = None if table.labels is None else table.labels[rows]
    return replace(
        table, rows=len(rows), labels=labels, _view=replace(view, chosen=chosen)
    )


def split(key: Any, table: Table) -> tuple[Table, Table]:
    """Return training rows and held-out rows of a table, in random order; both are standardised by the former.

    The training rows are two fifths, at most 5,000, and the others at most 20,000 of the rest. Raises ValueError for
    fewer than 20 rows.
    """

    if table.rows < 20:
        raise ValueError(
            f"the goal prediction needs at least 20 rows, got {table.rows}"
        )
    words = np.asarray(jax.random.key_data(keys_of(key).rows)).ravel().tolist()
    order = np.random.default_rng(words).permutation(table.rows)
    count = min(int(TRAINED * table.rows), MOST_TRAINED)
    train = part(table, order[:count])
    held = part(table, order[count : count + MOST_HELD_OUT])
    if table.standardized:
        moments = moments_of(train._view)
        scale = np.where(moments.deviation > 0, moments.deviation, 1.0)
        train, held = (
            replace(each, mean=moments.mean, scale=scale) for each in (train, held)
        )
    return train, held


@dataclass(frozen=True)
class Target:
    """What is predicted: a column for each class, 1 or -1, or a number in units of its deviation, less their means.

    Attributes
    ----------
    name : of the column, "the target" where it has none.
    words : how it was taken, as a class or as a number, and how to change that.
    train : (n, t), and `mean` (t,), which was taken off.
    held : (h,) classes, or numbers in the same units with their mean.
    span : lowest and highest number among the training rows, to which predictions are cut; None for classes.
    """

    name: str
    words: str
    train: np.ndarray
    mean: np.ndarray
    held: np.ndarray
    span: tuple[float, float] | None

    @property
    def trivial(self) -> str:
        """Return the name of the predictor that predicts the same for every row."""
        return LARGEST_CLASS if self.span is None else MEAN

    @property
    def limits(self) -> float:
        """Return the largest loss of a row."""
        return 1.0 if self.span is None else (self.span[1] - self.span[0]) ** 2

    def losses(self, found: np.ndarray) -> np.ndarray:
        """Return the loss of every held-out row, (h,), from the columns that a method finds, (h, t)."""
        if self.span is None:
            return (np.argmax(found + self.mean, axis=1) != self.held).astype(float)
        return np.minimum(
            (np.clip((found + self.mean)[:, 0], *self.span) - self.held) ** 2,
            self.limits,
        )


def target_of(train: Table, held: Table, kind: str | None, python: bool) -> Target:
    """Return the target of a table that was split; `python` says that options are passed in Python.

    Raises ValueError if there is no target, or one value of it, or if its values are not of the kind.
    """
    if train.labels is None or held.labels is None:
        raise ValueError(
            "the goal prediction needs a target for every row; pass labels, or --target COLUMN"
        )
    name = next(
        (name for name, why in train.left_out.items() if why == "holds the labels"),
        NO_NAME,
    )
    values = np.array(
        [as_number(text) for text in train.label_names], float
    )  # NaN for None
    if len(np.unique(train.labels)) < 2:
        value = train.label_names[train.labels[0]]
        raise ValueError(
            f"the {train.rows:,} training rows hold one value of {name}, {value}; pass another target"
        )
    present = np.unique(np.concatenate([train.labels, held.labels]))
    texts = [train.label_names[i] for i in present if np.isnan(values[i])]
    if kind == "number" and texts:
        raise ValueError(
            f"{name} cannot be predicted as a number, since it holds {texts[0]!r}; "
            f"pass {_kind_option('class', python)}"
        )
    whole = not texts and bool(np.all(values[present] == np.floor(values[present])))
    is_class = bool(texts) or (whole and len(present) <= MOST_VALUES)
    if kind is not None:
        is_class = kind == "class"
    count = f"{len(present):,} different values"
    called = "The target" if name == NO_NAME else f"Target {name}"
    words = f"{called}: a {'class' if is_class else 'number'} ({count})"
    if kind is None and whole:
        other = "number" if is_class else "class"
        goal = "a number" if is_class else "classes"
        words += f"; pass {_kind_option(other, python)} to predict it as {goal}"
    if is_class:
        if len(present) > MOST_CLASSES:
            raise ValueError(
                f"{name} has {count}, and at most {MOST_CLASSES:,} classes can be predicted; pass another target"
            )
        columns = 2.0 * np.eye(len(values))[train.labels] - 1
        return Target(
            name,
            f"{words}.",
            columns - columns.mean(axis=0),
            columns.mean(axis=0),
            held.labels,
            None,
        )
    y = values[train.labels]
    unit = y.std()
    mean, span = y.mean() / unit, (float(y.min() / unit), float(y.max() / unit))
    return Target(
        name,
        f"{words}.",
        (y / unit - mean)[:, None],
        np.array([mean]),
        values[held.labels] / unit,
        span,
    )


def _kind_option(kind: str, python: bool) -> str:
    return f'target_kind="{kind}"' if python else f"--target-kind {kind}"


def excess_limits(
    target: Target, difference: np.ndarray, level: float, upper_share: float = UPPER
) -> tuple[float, float]:
    """Return (lower, upper) limits of a mean difference of losses, (h,): together they fail with probability `level`.

    The upper limit has a share of that probability, and the lower limit the rest.
    Those of classes are the limits of Clopper and Pearson for the rates at which only one of two methods is wrong;
    those of numbers come from betting, and hold for every law within the range of the loss.
    """
    lower, upper = (1 - upper_share) * level, upper_share * level
    if target.span is not None:
        ends: Any = dict(
            low=-target.limits,
            high=target.limits,
            horizon=len(difference),
            most=MOST_BET,
        )
        below = betting_limits(difference, lower, **ends)[0]
        above = betting_limits(difference, upper, **ends)[1]
        return float(below), float(above)

    def rates(sign: int, level: float) -> tuple[float, float]:
        count = int(np.sum(difference == sign))
        return binomial_limits(count, len(difference), level / 2)

    return (
        rates(1, lower)[0] - rates(-1, lower)[1],
        rates(1, upper)[1] - rates(-1, upper)[0],
    )


def candidates(rows: int, dim: int, request: Request) -> list[tuple[Family, int]]:
    """Return the maps and sizes that are tried on so many training rows, from few features to many."""
    top = min(rows // 2, MOST_FEATURES, request.features_at_most or MOST_FEATURES)
    found = []
    for most in sorted({top >> level for level in range(LEVELS)} - {0}):
        known = families(
            rows, dim, 4 / (most - 0.5)
        )  # so that components of Fourier features are that many
        for name in request.maps or ():
            family = limited(known[name], most)
            size = min(
                family.largest, LANDMARKS_A_FEATURE * most // 2
            )  # frequencies behind components
            if size >= 1:
                found.append((family, size))
    return found


def certificate(
    key: Any, tables: tuple[Table, Table], kernel: Any, scale: tuple[float, str], request: Request, clock: Clock,
    say: Any, started: datetime, command: str | None, opened: str | None,
) -> Certificate:  # fmt: skip
    """Fit and judge all methods on a table that was split; `scale` is the lengthscale, and where it is from."""
    table, held = tables
    target = target_of(table, held, request.target_kind, command is None)
    say(target.words)
    wide = jax.dtypes.canonicalize_dtype("float64") == np.dtype("float64")
    loss = (
        "rate of errors"
        if target.span is None
        else "mean squared error, over the variance of the target,"
    )
    goal: Any = SimpleNamespace(
        name="prediction",
        words=f"the {loss} on rows never seen, less that of the exact method",
    )
    trials = Trials(
        key, table, kernel, goal, request.dtype or ("float64" if wide else "float32")
    )
    every = candidates(table.rows, table.dim, request)
    error_rate = 1 - request.confidence
    level = (1 - TRIVIAL_SHARE) * error_rate / (len(every) + 1)
    methods = _Methods(key, trials, held, target, level)
    rows = [methods.row("exact method", table.rows, *methods.exact())]
    rows.append(methods.row("linear model", table.dim, methods.linear()))
    # The lower limit decides here: the exact method predicts something if it is above 0.
    shares = {"level": TRIVIAL_SHARE * error_rate, "upper_share": 1 - UPPER}
    columns = np.zeros((held.rows, target.train.shape[1]))
    rows.append(methods.row(target.trivial, 0, columns, **shares))
    predicts = rows[-1]["low"] > 0
    judged: list[tuple[Family, int, dict[str, Any]]] = []
    for family, size in every:
        if not clock.left:
            break
        width = family.num_features(size)
        say(
            f"step {len(judged) + 1} of {len(every)}: {family.name} with {width:,} features"
        )
        row = methods.row(
            family.name,
            width,
            methods.with_map(family, size),
            sizes=family.sizes(size),
        )
        judged.append((family, size, row))
    rows += [row for *_, row in judged]
    entries = [
        _entry(name, judged, every, request.eps, "" if predicts else target.name)
        for name in dict.fromkeys(family.name for family, _ in every)
    ]
    good = [
        (row["num_features"], row["high"], family.name)
        for family, _, row in judged
        if predicts and row["high"] <= request.eps
    ]
    best = (
        next(entry for entry in entries if entry.family.name == min(good)[-1])
        if good
        else None
    )
    words = list(_words(target, rows, best, request.eps, held.rows, level))
    told = {
        "target": target.name, "numeric": target.span is not None, "train": table.rows, "test": held.rows,
        "loss": _loss_words(target), "regularization": methods.regularization, "level": level,
        "exact_bound": methods.exact_bound, "rows": rows, "words": words,
    }  # fmt: skip
    spectrum, nothing = methods.spectrum, np.empty(0)
    facts = Facts(
        rows=table.rows, dim=table.dim, kernel=kernel, lengthscale=scale[0], sampled=len(spectrum), kappa=1.0,
        op_norm=0.0, trace=0.0, trace3=0.0, hs_norm=0.0, eigenvalues=spectrum, diameter=0.0, squared_distances=nothing,
        pairs=nothing, effective_dimension={"that of the penalty": methods.dimension},
    )  # fmt: skip
    line = opened or f"table = from_array(X, standardize={table.standardized})"
    again = f"table, held_out = split(jax.random.key({seed_of(key)}), table)"
    results = Results(
        request=request, key=key, trials=trials, rounding=EXACT, facts=facts, families={}, demands=(),
        found=Found(entries, {}, len(judged), len(every), 1.0, None), best=best, detail={}, compared=(), held_out={},
        command=command, opened=f"{line}\nfrom proofs_check.certify import split\n{again}",
    )  # fmt: skip
    document = document_of(results, *scale, "", started, clock.spent) | {
        "reasons": words,
        "prediction": told,
    }
    data = document["data"]
    asks = "are they classes?" if told["numeric"] else "\n"
    data |= {
        "rows": table.rows + held.rows,
        "notes": [note for note in data["notes"] if not note.endswith(asks)],
    }
    data["left_out"] |= (
        {target.name: "is to be predicted"} if target.name in data["left_out"] else {}
    )
    if best is not None:
        document["guarantee"] = (
            f"With confidence {request.confidence:g}, for independent rows of one law: ridge regression on the "
            f"features of this very map, fitted on {table.rows:,} training rows with the stated penalty, has an excess "
            f"of at most {request.eps:g}: {goal.words}. Limits are those of {held.rows:,} rows that nothing was fitted "
            f"or chosen on, and hold for all {len(every) + 2} methods at once."
        )
        if copies := table.duplicate_rows:
            document["guarantee"] += (
                f" {copies:,} rows equal an earlier one. If the table was made by copying rows, its rows are not "
                "independent: copies of training rows are among the rows held out, and their losses are too small."
            )
    return Certificate(document, trials, best, key)


class _Methods:
    """What is fitted on the training rows: each method gives its columns on the held-out rows, and a bound or None."""

    def __init__(
        self, key: Any, trials: Trials, held: Table, target: Target, level: float
    ) -> None:
        table, self.dtype = trials.table, trials.dtype
        self.key, self.trials, self.target, self.level, self.y = (
            key,
            trials,
            target,
            level,
            target.train,
        )
        every = np.arange(table.rows)
        self.points, self.held = (
            table.take(every, "float64"),
            held.take(np.arange(held.rows), "float64"),
        )
        self.inputs = table.take(every, self.dtype, raw=True)
        self.held_inputs = held.take(np.arange(held.rows), self.dtype, raw=True)
        with jax.enable_x64(True):  # rows are in random order
            K = np.asarray(gram(trials.kernel, self.points[:CHOOSING_ROWS]))
        values, vectors = np.linalg.eigh(K)
        penalty, _ = penalized(vectors, np.maximum(values, 0), self.y[: len(K)])
        self.spectrum, self.regularization = (
            np.maximum(values[::-1], 0) / len(K),
            penalty * table.rows,
        )
        self.dimension = float(np.sum(self.spectrum / (self.spectrum + penalty)))
        self.exact_bound: float | None = None
        self.base: np.ndarray | None = None

    def row(
        self,
        name: str,
        width: int,
        columns: np.ndarray,
        bound: Any = None,
        sizes: Any = None,
        level: float | None = None,
        upper_share: float = UPPER,
    ) -> dict[str, Any]:
        """Return what is told of a method, as JSON; the first is the one that the others are set beside."""
        losses, (low, high) = self.target.losses(columns), (0.0, 0.0)
        if self.base is None:
            self.base = losses
        else:
            shares = level or self.level, upper_share
            low, high = excess_limits(self.target, losses - self.base, *shares)
        return {
            "name": name, "sizes": sizes, "num_features": width, "loss": float(losses.mean()),
            "excess": float(np.mean(losses - self.base)), "low": low, "high": high, "bound": bound,
        }  # fmt: skip

    def exact(self) -> tuple[np.ndarray, float | None]:
        """Fit the exact method, in float64 whatever the maps are in."""
        with jax.enable_x64(True):
            f = ridge_to(
                keys_of(self.key).exact,
                self.trials.kernel,
                jnp.asarray(self.points),
                jnp.asarray(self.y, jnp.float64),
                regularization=self.regularization,
                tolerance=TOLERANCE,
                num_landmarks=min(len(self.points), LANDMARKS),
                max_products=MOST_PRODUCTS,
            )
            columns = np.asarray(f(jnp.asarray(self.held)))
        self.exact_bound = _largest(f.training_bound)
        return columns, _largest(f.distance_bound)

    def linear(self) -> np.ndarray:
        """Fit ridge regression on the columns, at mean 0 and deviation 1, with a penalty of its own."""
        raw, held = self.inputs.astype(np.float64), self.held_inputs.astype(np.float64)
        scale = np.where(np.ptp(raw, axis=0) > 0, raw.std(axis=0), 1.0) * math.sqrt(
            raw.shape[1]
        )
        left, roots, right = np.linalg.svd(
            (raw - raw.mean(axis=0)) / scale, full_matrices=False
        )
        _, solved = penalized(left, roots**2, self.y, roots)
        return (held - raw.mean(axis=0)) / scale @ (right.T @ solved)

    def with_map(self, family: Family, size: int) -> np.ndarray:
        """Return the predictions of ridge regression on the features of the very map that `draw()` returns."""
        phi = self.trials.draw(family, size, jax.random.clone(self.key))
        Z, at = (
            np.asarray(phi(jnp.asarray(part)), np.float64)
            for part in (self.inputs, self.held_inputs)
        )
        # Kernel JL keeps another inner product than the kernel, of any scale.
        level = np.mean(np.sum(Z * Z, axis=1)) if family.name == "kernel_jl" else 1.0
        normal = Z.T @ Z + level * self.regularization * np.eye(Z.shape[1])
        return at @ cho_solve(cho_factor(normal), Z.T @ self.y)


def penalized(
    left: np.ndarray, squares: np.ndarray, y: np.ndarray, roots: Any = 1.0
) -> tuple[float, np.ndarray]:
    """Return the penalty a row with the least squared error of rows left out, and the solution along singular vectors.

    `left` (n, r) are left singular vectors of the features, or eigenvectors of the Gram matrix, `squares` (r,) the
    squared singular values. Leaving a row out divides its residual by 1 less its leverage.
    """
    turned, found = left.T @ y, []
    for penalty in PENALTIES * len(y):
        shrunk = squares / (squares + penalty)
        residuals = y - left @ (shrunk[:, None] * turned)
        leverage = np.sum(left**2 * shrunk, axis=1)
        found.append(
            np.mean((residuals / np.maximum(1 - leverage, 1e-12)[:, None]) ** 2)
        )
    best = PENALTIES[int(np.argmin(found))]
    return float(best), (roots / (squares + best * len(y)))[:, None] * turned


def _largest(bounds: Any) -> float | None:
    bound = float(np.max(np.asarray(bounds)))
    return bound if math.isfinite(bound) else None


def _entry(
    name: str, judged: list[Any], every: list[Any], eps: float, unpredicted: str
) -> Entry:
    """Return what is known of a map: its smallest size that is good, or why there is none.

    `unpredicted` is the name of a target that the exact method is not shown to predict, "" otherwise.
    """
    mine = [(family, size, row) for family, size, row in judged if family.name == name]
    planned = [family for family, _ in every if family.name == name]
    for family, size, row in mine:
        if row["high"] <= eps:
            words = f"its excess is {row['excess']:.3g}, and at most {row['high']:.3g} on rows never seen"
            if unpredicted:
                words += f", but the exact method is not shown to predict {unpredicted}"
                return Entry(family, "not certified", words)
            return Entry(family, "certified", words, size, "held-out rows")
    if len(mine) < len(planned):
        return Entry(
            planned[0],
            "out of time",
            "the time ended before all of its sizes were fitted",
        )
    words = f"its excess may be {min(row['high'] for *_, row in mine):.3g} at the best of its sizes"
    return Entry(planned[0], "not certified", words)


def _loss_words(target: Target) -> str:
    if target.span is None:
        return f"Loss: the share of held-out rows whose class ({target.name}) a method misses."
    low, high = target.span
    return (
        f"Loss: the squared error of {target.name} over its variance among the training rows. Predictions are cut to "
        f"the range of these rows, {high - low:.3g} deviations, and a loss to its square, {target.limits:.3g}."
    )


def _words(
    target: Target,
    rows: list[dict[str, Any]],
    best: Entry | None,
    eps: float,
    test: int,
    level: float,
) -> Iterator[str]:
    """Yield what to use in plain sentences: the map, the linear model, the exact kernel, or nothing."""

    def shown(loss: float) -> str:
        return f"{100 * loss:.3g} %" if target.span is None else f"{loss:.3g}"

    exact, linear, trivial = rows[:3]
    unit = "an error rate" if target.span is None else "a squared error over variance"
    losses = f"has {unit} of {shown(exact['loss'])} on {test:,} held-out rows, and the {trivial['name']} one of "
    losses += shown(trivial["loss"])
    if target.span is not None and trivial["loss"] > 0:
        r_squared = 1 - exact["loss"] / trivial["loss"]
        losses += f" (R^2 = {round(r_squared, 2) + 0.0:.2f})"
    if trivial["low"] <= 0:
        yield target.words
        yield f"Nothing here is shown to predict {target.name}, and nothing is recommended: the exact method {losses}."
        ends = f"between {shown(trivial['low'])} and {shown(trivial['high'])}"
        yield f"On rows never seen the exact method gains {ends} over the {trivial['name']}."
        if linear["high"] < 0:
            yield "The linear model is better than the exact method: try another kernel or lengthscale."
        return
    does = "will do, without a kernel" if linear["high"] <= eps else "is not certified"
    limits = (
        f"between {shown(linear['low'])} and {shown(linear['high'])} on rows never seen"
    )
    yield f"The linear model {does}: its loss exceeds that of the exact method by {shown(linear['excess'])}, {limits}."
    if best is None and linear["high"] > eps:
        yield "No map is certified, and the exact kernel is the better choice."
    yield f"The exact method {losses}."
    yield target.words
    if trivial["high"] <= eps:
        yield f"The {trivial['name']} alone is within eps of the exact method: pass a smaller eps."
    _, least = excess_limits(target, np.zeros(test), level)
    if best is None and least > eps:
        told = f"of two methods that never differ on {test:,} rows the excess may be {shown(least)} on others"
        yield f"No map could have been certified: {told}. About {least / eps:.2g} times as many rows would tell."
