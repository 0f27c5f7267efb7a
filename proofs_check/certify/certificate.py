"""What a certificate says: dataclasses whose fields are the keys of certificate.json, and what can be done with them.

`Certificate` is the document; the others are its parts. A file of version 3 can be read, too: keys that are not
fields are ignored, and fields with a default may be missing.
"""

from __future__ import annotations

import dataclasses
import math
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import jax
import numpy as np

from jaxkern import io
from proofs_check.certify.load import Table
from proofs_check.certify.trials import Trials
from proofs_check.engine.documents import DocumentError, read_json, write_json
from proofs_check.engine.reading import place

VERSION = 4
READABLE = (3, 4)


@dataclass(frozen=True)
class Data:
    """The table.

    Attributes
    ----------
    source : name of the file, or of the array.
    rows, num_columns : rows and columns that were used.
    columns : names of the columns that were used.
    left_out : name of a column -> why it was not used.
    standardized : whether columns were brought to mean 0 and standard deviation 1.
    duplicate_rows : rows that equal an earlier one.
    notes : what else was done to the table, and warnings.
    """

    source: str
    rows: int
    num_columns: int
    columns: list[str]
    left_out: dict[str, str]
    standardized: bool
    duplicate_rows: int
    notes: list[str]


@dataclass(frozen=True)
class Demanded:
    """The sizes that a valid statement demands of a map; None if it says nothing about these data.

    Attributes
    ----------
    map, source : name of the map; the statement.
    words : what it promises, or why it says nothing.
    sizes, num_features : the smallest sizes that it certifies, and the features of a point at these sizes.
    worst_case : whether it holds for all data, and not for these alone.
    """

    map: str
    source: str
    words: str
    sizes: dict[str, int] | None = None
    num_features: int | None = None
    worst_case: bool = True


@dataclass(frozen=True)
class Errors:
    """Errors of the draws at a certified size: median, limits of the median at level 0.95, and the largest."""

    median: float | None
    low: float | None
    high: float | None
    largest: float | None


@dataclass(frozen=True)
class Point:
    """Draws of a map at one size.

    Attributes
    ----------
    size, num_features : the size, and the features of a point.
    draws, failures : how often the map was drawn, and how many draws had an error above eps.
    low, median, high : the 5 %, 50 % and 95 % quantile of the errors; None if one is not finite.
    certifying : whether these draws count for the certificate; draws of the search do not.
    """

    size: int
    num_features: int
    draws: int
    failures: int
    low: float | None
    median: float | None
    high: float | None
    certifying: bool


@dataclass(frozen=True)
class MapRow:
    """What is known of one map.

    Attributes
    ----------
    map : its name, a function of `jaxkern.features`.
    status : "certified", "not certified", "out of time" or "not for this goal".
    words : what was found, or why nothing was.
    recommended : whether it is the recommended map; at most one row is.
    sizes, num_features : the certified sizes, and the features of a point; None if none is certified.
    basis : by what: "draws", "this data" or "worst case" (a statement), "held-out rows".
    scope : about what: "all rows", "samples" or "rows never seen".
    points_per_draw : rows that each draw was measured on.
    draws, failures : the draws that certify, and how many of them failed.
    rate_upper : upper limit of the failure probability that follows from them.
    alpha : the probability that this limit is too low is at most alpha.
    error : the errors of these draws.
    cost : multiply-adds for the features of a point, about.
    curve : every size that was tried.
    """

    map: str
    status: str
    words: str
    recommended: bool = False
    sizes: dict[str, int] | None = None
    num_features: int | None = None
    basis: str | None = None
    scope: str | None = None
    points_per_draw: int | None = None
    draws: int = 0
    failures: int = 0
    rate_upper: float | None = None
    alpha: float = 0.0
    error: Errors | None = None
    cost: float | None = None
    curve: list[Point] = field(default_factory=list)


@dataclass(frozen=True)
class Search:
    """Whether the search ended before the deadline, so that the request alone decides; and the same in words."""

    finished: bool
    words: str


@dataclass(frozen=True)
class Spectrum:
    """The largest eigenvalues of K / n, for the kernel matrix K of `points` rows, and how many exceed eps."""

    points: int
    above_eps: int
    eigenvalues: list[float]


@dataclass(frozen=True)
class Agreement:
    """The adjusted Rand index of some clusters with the classes.

    `name` is "exact kernel", "no kernel" (the columns) or "the recommended map".
    """

    name: str
    adjusted_rand: float | None


@dataclass(frozen=True)
class Clustered:
    """A row in the plane of the two leading components of the recommended features, and its cluster."""

    x: float
    y: float
    cluster: int


@dataclass(frozen=True)
class Clusters:
    """The goal clustering.

    Attributes
    ----------
    num_clusters, num_restarts : of k-means, in every draw that certifies.
    agreement : how clusters agree with the classes; empty without classes.
    words : how often k-means with the exact kernel finds its best partition.
    picture : at most 2,000 rows.
    """

    num_clusters: int
    num_restarts: int
    agreement: list[Agreement]
    words: list[str]
    picture: list[Clustered] = field(default_factory=list)


@dataclass(frozen=True)
class Method:
    """The loss of one method on rows that were held out.

    Attributes
    ----------
    name : "exact method", "linear model", the trivial predictor ("mean" or "largest class"), or a map.
    sizes, num_features : sizes of a map; the numbers that stand for a row.
    loss, excess : the mean loss, and the same less the loss of the exact method.
    low, high : limits of the mean excess on rows never seen.
    bound : of the exact method: how far it may be from the exact solution, in the norm of the kernel.
    """

    name: str
    sizes: dict[str, int] | None
    num_features: int
    loss: float
    excess: float
    low: float
    high: float
    bound: float | None = None


@dataclass(frozen=True)
class Predicted:
    """The goal prediction.

    Attributes
    ----------
    target, loss : the column that is predicted; what the loss is, in words.
    numeric : whether the target is a number, and not a class.
    train, test : rows that everything was fitted and chosen on, and rows that were held out.
    regularization : of the exact method and of all maps.
    level : the probability that the limits of one method are wrong is at most this.
    exact_bound : how far the exact method is from the exact solution at the training rows, at most.
    rows : the trivial predictor, the exact method, the linear model, and every map and size that was fitted.
    words : what to use, and how the target was taken.
    classes, confusion : names of at most 20 classes, and held-out rows by true class and predicted class.
    picture : at most 1,000 pairs of the true and the predicted number of a held-out row, in units of the file.
    """

    target: str
    loss: str
    numeric: bool
    train: int
    test: int
    regularization: float
    level: float
    exact_bound: float | None
    rows: list[Method]
    words: list[str]
    classes: list[str] = field(default_factory=list)
    confusion: list[list[int]] = field(default_factory=list)
    picture: list[list[float]] = field(default_factory=list)


@dataclass(frozen=True)
class Commands:
    """What to run: the command again; Python that draws the map; Python that loads the saved one."""

    again: str | None = None
    python: str | None = None
    load: str | None = None


@dataclass(frozen=True)
class Run:
    """About the run: how long it took, the deadline, where, when (UTC), and versions of packages."""

    seconds: float
    minutes_allowed: float
    device: str
    started: str
    versions: dict[str, str]


@dataclass(frozen=True)
class Certificate:
    """What `certify` found.

    Attributes
    ----------
    certificate : the version of this schema.
    made_by : the version of jaxkern.
    goal, goal_words : what the map shall keep, and what the error of a draw is.
    map, sizes, num_features : the recommended map; None, {} and None if no map could be certified.
    kernel, lengthscale, lengthscale_from : the kernel.
    eps, delta, confidence, seed : a draw fails if its error exceeds eps; the failure probability that is allowed; of
        all certificates together; seed of all random numbers, None for a key without one.
    dtype : precision of maps and of the rows that they get; errors are against the kernel of the rows in float64.
    basis, scope, points_per_draw : of the recommended map, as in `MapRow`.
    guarantee : what is promised, in a sentence or two; "" if nothing is.
    reasons : why this map, or why none.
    data, theory, maps, search, spectrum, commands, run : parts.
    clustering, prediction : parts of the goals of that name; None for other goals.
    """

    made_by: str
    goal: str
    goal_words: str
    map: str | None
    sizes: dict[str, int]
    num_features: int | None
    kernel: str
    lengthscale: float
    lengthscale_from: str
    eps: float
    delta: float
    confidence: float
    seed: int | None
    dtype: str
    basis: str | None
    scope: str | None
    points_per_draw: int | None
    guarantee: str
    reasons: list[str]
    data: Data
    theory: list[Demanded]
    maps: list[MapRow]
    search: Search
    spectrum: Spectrum
    commands: Commands
    run: Run
    clustering: Clusters | None = None
    prediction: Predicted | None = None
    certificate: int = VERSION
    _drawing: Drawing | None = field(default=None, repr=False, compare=False)

    @property
    def document(self) -> dict[str, Any]:
        """The certificate as JSON has it."""
        shown = dataclasses.replace(self, _drawing=None)
        document = dataclasses.asdict(shown)
        del document["_drawing"]
        return document

    @property
    def recommended(self) -> MapRow | None:
        """The row of the recommended map."""
        return next((row for row in self.maps if row.recommended), None)

    @classmethod
    def read(cls, path: str | Path) -> Certificate:
        """Return the certificate in a certificate.json, or in a folder with one.

        It says what was found. To draw or to check the map again, run `commands.python` on the table. Raises
        DocumentError, in one line, for a file that holds no certificate of version 3 or 4.
        """
        path = Path(path)
        if path.is_dir():
            path = path / "certificate.json"
        document = read_json(path)
        version = document.get("certificate") if isinstance(document, dict) else None
        if version not in READABLE or isinstance(version, bool):
            raise DocumentError(
                f"{place(path)} is no certificate of version 3 or 4; its key certificate is {version!r:.30}"
            )
        try:
            return _typed(cls, document, "certificate")
        except (TypeError, RecursionError) as error:
            raise DocumentError(f"{place(path)} is no certificate: {error}") from None

    def write(self, folder: str | Path) -> None:
        """Write certificate.html, its pictures and then certificate.json into a folder that exists.

        Each file is written in one step. Raises OSError.
        """
        from proofs_check.certify import page

        page.write(Path(folder), self)
        write_json(Path(folder) / "certificate.json", self.document)

    def draw(self, key: Any = None) -> Any:
        """Return the recommended map, for points as they are in the table: a `jaxkern.features.TableMap`.

        `key` is a typed random key, by default the key of the certificate, whose map `save` writes. Raises ValueError
        if no map was certified, or for a certificate that was read from a file.
        """
        drawing = self._certified()
        return drawing.map(drawing.key if key is None else key)

    def save(self, path: str | Path) -> None:
        """Write the recommended map to a file, for `jaxkern.io.load`; for the goal prediction with its predictor.

        Raises as `draw` and `io.save` do.
        """
        drawing = self._certified()
        io.save(path, drawing.predictor or self.draw())

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions for new rows, classes by name or numbers, for the goal prediction.

        X is a matrix in the units of the table, or a DataFrame. Raises ValueError for another goal, and as `draw` does.
        """
        predictor = self._certified().predictor
        if predictor is None:
            raise ValueError(
                f"the goal is {self.goal}; only certificates of the goal prediction predict"
            )
        return np.asarray(predictor.predict(X))

    def fails(self, key: Any, *, draws: int = 200) -> tuple[int, int]:
        """Return (failures, draws) of fresh draws of the recommended map, measured as the guarantee says.

        Raises ValueError for the goal prediction, whose guarantee is about one map, and as `draw` does.
        """
        drawing = self._certified()
        if self.goal == "prediction":
            raise ValueError(
                "a certificate of a prediction is about the map that draw() returns, not about other draws"
            )
        trial = drawing.trials.with_key(key).trial(drawing.family)
        errors = [trial(drawing.size, "again", number) for number in range(draws)]
        failures = sum(not error <= self.eps for error in errors)
        return failures, draws

    def _certified(self) -> Drawing:
        if self.map is None:
            raise ValueError(
                "no map was certified, so there is none to draw; `reasons` says why"
            )
        if self._drawing is None:
            raise ValueError(
                "this certificate was read from a file; run commands.python to draw its map"
            )
        return self._drawing


@dataclass(frozen=True)
class Drawing:
    """What it takes to draw the recommended map again."""

    trials: Trials
    family: Any
    size: int
    key: Any
    predictor: Any = None

    @property
    def table(self) -> Table:
        """The table."""
        return self.trials.table

    def map(self, key: Any) -> Any:
        """Return the map of a key, for rows as they are in the table."""
        phi = self.trials.draw(self.family, self.size, jax.random.clone(key))
        return self.table.attach(phi)


def _typed(kind: Any, value: Any, where: str) -> Any:
    """Return JSON as a value of a type hint; raise TypeError that names the first part which is of another type."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        options = get_args(kind)
        if value is None and types.NoneType in options:
            return None
        return _typed(options[0], value, where)
    if origin is list and isinstance(value, list):
        (entry,) = get_args(kind)
        return [_typed(entry, x, f"{where}[{i}]") for i, x in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        _, entry = get_args(kind)
        return {name: _typed(entry, x, f"{where}.{name}") for name, x in value.items()}
    if dataclasses.is_dataclass(kind) and isinstance(value, dict):
        return _record(kind, value, where)
    # True is an int in Python, and no number in JSON.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # JSON has no infinity, but 1e999 is read as one.
    if kind is float and is_number and math.isfinite(value):
        return float(value)
    if kind is int and is_number and isinstance(value, int):
        return value
    if kind in (bool, str) and isinstance(value, kind):
        return value
    raise TypeError(f"{where} is {value!r:.30}")


def _record(kind: Any, value: dict[str, Any], where: str) -> Any:
    """Return a dataclass from an object, whose further keys are ignored."""
    hints = get_type_hints(kind)
    parts = {}
    for entry in dataclasses.fields(kind):
        if entry.name.startswith("_"):
            continue
        if entry.name in value:
            label = f"{where}.{entry.name}"
            parts[entry.name] = _typed(hints[entry.name], value[entry.name], label)
        elif entry.default is entry.default_factory is dataclasses.MISSING:
            raise TypeError(f"{where}.{entry.name} is missing")
    return kind(**parts)
