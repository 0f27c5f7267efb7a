"""ghashami2016: random features of few points, streams with their order, and best approximations."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy import stats

from jaxkern import kernels
from jaxkern.bounds import Bound, streaming
from jaxkern.bounds import fourier as bounds
from jaxkern.gram import gram
from jaxkern.linalg import eigvalsh, matmul
from proofs_check.claim import Form, Setting, Tail
from proofs_check.engine import decided, enclosures
from proofs_check.engine.adversary import Target
from proofs_check.papers.adversaries import (
    FOUND,
    between,
    gaussian,
    length,
    registered_at,
    removed,
    squared_distances,
)
from proofs_check.papers.ghashami2016 import trials
from proofs_check.papers.ghashami2016.section3_1_3 import (
    PRINTED_PROJECTION,
    projection_bound,
)
from proofs_check.papers.ghashami2016.setup import Formula, Function, at_failure
from proofs_check.papers.shared import bound_of

Params = Mapping[str, Array]
Found = Mapping[str, np.ndarray]

DIM = 2
FORMS = ("printed", "corrected")


class Arithmetic(NamedTuple):
    """What the left sides need: eigenvalues in descending order, and Frobenius norms."""

    xp: Any
    eigenvalues: Function
    norm: Function
    largest: Function
    solve: Function


def _descending(matrix: Any) -> Any:
    return enclosures.eigenvalues(matrix)[::-1]


def _solve_in_balls(A: Any, B: Any) -> Any:
    return enclosures.xp.linalg.inv(A) @ B


JAX = Arithmetic(jnp, eigvalsh, length, jnp.max, jnp.linalg.solve)
BALLS = Arithmetic(
    np, _descending, enclosures.xp.linalg.norm, enclosures.xp.max, _solve_in_balls
)


def targets() -> tuple[Target, ...]:
    """Return the targets of this paper."""
    shifted = bounds.quadratic_form_shifted
    printed = partial(shifted, as_printed=True)
    return (
        _quadratic_form("ghashami2016:thm3.1-rare", "printed", printed),
        _quadratic_form("ghashami2016:thm3.1", "corrected", shifted),
        _quadratic_form(PAIRED, "corrected", _paired_form),
        *(_shrinking(*target) for target in ROWS),
        *(_late_rows(form) for form in FORMS),
        *(_best_rank(form) for form in FORMS),
    )


PAIRED = "jaxkern:quadratic-form-paired"
POINTS = 6
EPS = 0.1
DELTA = 0.01
TRIALS = 4_000


def _paired_form(*, eps: Any, num_features: Any) -> Bound:
    return bounds.quadratic_form_paired(eps=eps, num_frequencies=num_features)


def _quadratic_form(claim: str, form: str, formula: Formula) -> Target:
    """The deviation is a mean of independent terms; what is climbed is their standard deviation."""
    paired = claim == PAIRED
    at_eps = Setting("", numbers={"eps": EPS})
    least = at_failure(bound_of(formula), at_eps, "num_features", math.log(DELTA))
    size = math.ceil(least)
    shapes = {"size": size, "paired": int(paired)}
    kind = "pairs" if paired else "shifted features"
    fourth = 1.0 if paired else 1.5
    return Target(
        claim,
        form,
        f"{POINTS} points in dimension {DIM}, their weights x of norm 1, and the lengthscale; "
        f"{size} {kind}, eps={EPS:g}, delta={DELTA:g}",
        start=_start_form,
        project=_project_form,
        excess=partial(_excess_form, formula=formula, size=size, fourth=fourth),
        recheck=partial(_recheck_form, formula=formula, shapes=shapes),
        trials=TRIALS,
    )


def _start_form(key: Array) -> Params:
    key_points, key_weights, key_scale = jax.random.split(key, 3)
    return {
        "points": 2 * jax.random.normal(key_points, (POINTS, DIM)),
        "weights": jax.random.normal(key_weights, (POINTS,)),
        "log_lengthscale": jax.random.normal(key_scale, ()) / 2,
    }


def _project_form(params: Params) -> Params:
    scale = jnp.clip(params["log_lengthscale"], -2, 2)
    weights = between(params["weights"], 1.0, 1.0)
    return {**params, "weights": weights, "log_lengthscale": scale}


def _variance_of_term(params: Params, fourth: float) -> Array:
    """Return the variance of the quadratic form of one pair or shifted feature, over n^2.

    With s(w) = sum_i x_i exp(i <w, a_i>) a pair contributes |s|^2 and a shifted feature (1 + cos 2 b) |s|^2 in law,
    b uniform: second moments E |s|^4 and 3/2 of it, `fourth`. E |s|^4 is a sum of the kernel over pairs of differences.
    """
    x = params["weights"]
    X = params["points"] / jnp.exp(params["log_lengthscale"])
    differences = (X[:, None, :] - X[None, :, :]).reshape(-1, DIM)
    products = (x[:, None] * x[None, :]).ravel()
    mean = jnp.sum(products * gaussian(jnp.sum(differences**2, axis=1)))
    K = gaussian(squared_distances(differences, -differences))
    variance = fourth * jnp.sum(products * matmul(K, products)) - mean**2
    return jnp.maximum(variance, 1e-12) / POINTS**2


def _excess_form(
    params: Params, key: Array, *, formula: Formula, size: int, fourth: float
) -> Array:
    """The standard deviation, over that of a normal error that exceeds the bound with probability delta, minus 1."""
    del key
    deviation = jnp.sqrt(_variance_of_term(params, fourth) / size)
    bound = formula(eps=jnp.full_like(deviation, EPS), num_features=size)
    return deviation * float(stats.norm.isf(DELTA / 2)) / bound.value - 1


def _recheck_form(params: Found, *, formula: Formula, shapes: dict[str, int]) -> Form:
    """The statement at these points, sampled with the library's features."""
    real = jnp.result_type(float)
    weights = params["weights"] / np.linalg.norm(params["weights"])
    points = jnp.asarray(params["points"], real)
    log_lengthscale = jnp.asarray(params["log_lengthscale"], real)
    kernel = kernels.Gaussian(jnp.exp(log_lengthscale))
    population = {
        "kernel": kernel,
        "points": points,
        "gram": gram(kernel, points),
        "weights": jnp.asarray(weights, real),
    }
    setting = Setting(FOUND, population, {"eps": EPS, "scale": 1}, shapes)
    bound = bound_of(formula, num_features="size")
    return Form(Tail(trials.weighted_form_error, bound), (setting,))


class Stream(NamedTuple):
    """A stream of rows and the buffer that it goes through."""

    size: int
    """l."""
    slots: int
    """The rows of the buffer."""
    number: int
    """Which squared singular value is subtracted."""
    length: int
    """The rows of the stream."""
    bound: Formula


ROWS = {
    ("ghashami2016:lem3.2", "printed"): Stream(
        2, 2, 2, 6, streaming.frequent_directions_rowwise
    ),
    ("ghashami2016:lem3.2", "corrected"): Stream(
        4, 4, 2, 10, streaming.frequent_directions
    ),
    ("jaxkern:frequent-directions", "corrected"): Stream(
        2, 4, 3, 8, streaming.frequent_directions_buffered
    ),
}
COLUMNS = 5
DECAY = [0.3**i for i in range(COLUMNS)]


def _shrinking(claim: str, form: str) -> Target:
    """What a sketch loses, in units of |A|_F^2; the statement itself is the registered one."""
    stream = ROWS[claim, form]
    loss = _subtracted if claim.startswith("jaxkern") else _lost
    return Target(
        claim,
        form,
        f"{stream.length} rows in dimension {COLUMNS} and their order; l={stream.size}",
        start=partial(_start_rows, count=stream.length),
        project=_project_rows,
        excess=partial(_excess_shrinking, stream=stream, loss=loss),
        recheck=lambda params: registered_at(
            claim, form, {"rows": params["rows"][params["order"]]}, l=stream.size
        ),
    )


def _start_rows(key: Array, *, count: int) -> Params:
    key_rows, key_order = jax.random.split(key)
    # Singular values that fall: rows that are all alike would nearly be a worst case.
    rows = jax.random.normal(key_rows, (count, COLUMNS)) * jnp.asarray(DECAY)[None, :]
    return {"rows": rows, "order": jax.random.permutation(key_order, count)}


def _project_rows(params: Params) -> Params:
    """The statements do not depend on the scale: |A|_F^2 is the number of rows."""
    size = math.sqrt(params["rows"].shape[0])
    return {**params, "rows": between(params["rows"], size, size)}


def _shrinks(A: Array, stream: Stream) -> tuple[list[Array], list[Array]]:
    """Return what each shrink takes away, if the stream ends with one, and the squares that they subtract.

    The buffer shrinks when it is full, to `number` - 1 rows.
    """
    C = jnp.zeros((COLUMNS, COLUMNS), A.dtype)
    taken_away = []
    squares = []
    start = 0
    for stop in range(
        stream.slots, stream.length + 1, stream.slots - stream.number + 1
    ):
        C = C + matmul(A[start:stop].T, A[start:stop])
        gone, square = removed(C, stream.number)
        C = C - gone
        start = stop
        taken_away.append(gone)
        squares.append(square)
    return taken_away, squares


def _lost(A: Array, stream: Stream) -> Array:
    """Return |A'A - B'B|_2."""
    taken_away, _ = _shrinks(A, stream)
    return eigvalsh(jnp.sum(jnp.stack(taken_away), axis=0))[0]


def _subtracted(A: Array, stream: Stream) -> Array:
    """Return the sum of what was subtracted, which certifies the loss."""
    _, squares = _shrinks(A, stream)
    return jnp.sum(jnp.stack(squares))


def _excess_shrinking(
    params: Params,
    key: Array,
    *,
    stream: Stream,
    loss: Function,
) -> Array:
    """The logarithm of the loss, or of its certificate, over the smallest bound, all over |A|_F^2.

    Where A is nearly of rank k both are small, and say little: 1e-4 is added to the bound.
    """
    del key
    A = params["rows"][params["order"]]
    total = jnp.sum(A * A)
    left = jnp.maximum(loss(A, stream), 0) / total
    squares = jnp.maximum(eigvalsh(matmul(A.T, A)), 0)
    tails = jnp.flip(jnp.cumsum(jnp.flip(squares))) / total
    ranks = jnp.arange(COLUMNS).astype(A.dtype)
    bound = stream.bound(residual_energy=tails, sketch_size=stream.size, rank=ranks)
    limit = jnp.min(jnp.where(bound.valid, bound.value, jnp.inf))
    return jnp.log((left + 1e-9) / (limit + 1e-4))


SKETCH = 8
LATE = 4
FEATURES = 16


def _late_rows(form: str) -> Target:
    """Algorithm 1 returns the W of its last decomposition: the buffer is full after l rows, and not again."""
    claim = "ghashami2016:lem3.3-literal"
    printed = form == "printed"
    formula = PRINTED_PROJECTION if printed else streaming.leftover_rows
    return Target(
        claim,
        form,
        f"{SKETCH + LATE} points in dimension {DIM} and their order, {FEATURES} frequencies and shifts, and the "
        f"lengthscale; l={SKETCH}",
        start=_start_late,
        project=_project_late,
        excess=partial(_excess_late, formula=formula),
        recheck=lambda params: registered_at(
            claim, form, {"rows": _features(params)}, l=SKETCH
        ),
        enclosed=_enclosed_late if printed else None,
    )


def _start_late(key: Array) -> Params:
    keys = jax.random.split(key, 5)
    return {
        "points": jax.random.normal(keys[0], (SKETCH + LATE, DIM)),
        "frequencies": jax.random.normal(keys[1], (FEATURES, DIM)),
        "shifts": jax.random.uniform(keys[2], (FEATURES,), maxval=2 * math.pi),
        "log_lengthscale": jax.random.normal(keys[3], ()) / 2,
        "order": jax.random.permutation(keys[4], SKETCH + LATE),
    }


def _project_late(params: Params) -> Params:
    shifts = jnp.clip(params["shifts"], 0, 2 * math.pi)
    scale = jnp.clip(params["log_lengthscale"], -2, 2)
    return {**params, "shifts": shifts, "log_lengthscale": scale}


def _features(params: Any, xp: Any = np) -> Any:
    """Return the features of the points in their order, of arrays of floats, of balls, or of JAX with xp = jnp."""
    X = params["points"][params["order"]] / xp.exp(params["log_lengthscale"])
    phases = X @ params["frequencies"].T + params["shifts"][None, :]
    return xp.cos(phases) / math.sqrt(FEATURES / 2)


def _outside(Z: Any, ops: Arithmetic, ridge: float) -> Any:
    """Return |Z (I - W W')|_2^2, W an orthonormal basis of the first l rows of Z.

    A ridge keeps their Gram matrix from being singular where they are all alike.
    """
    first = Z[:SKETCH]
    late = Z[SKETCH:]
    across = late @ first.T
    G = first @ first.T + ridge * np.eye(SKETCH)
    outside = late @ late.T - across @ ops.solve(G, across.T)
    return ops.eigenvalues((outside + outside.T) / 2)[0]


def _excess_late(params: Params, key: Array, *, formula: Formula) -> Array:
    """The left side over the bound, minus 1."""
    del key
    Z = _features(params, jnp)
    right = projection_bound(formula, jnp.sum(Z * Z, axis=1), SKETCH).value
    return _outside(Z, JAX, 1e-6) / (right + 1e-9) - 1


def _enclosed_late(params: Found) -> tuple[Any, Any]:
    """Both sides as printed."""
    Z = _features(params)
    sizes = {"num_points": len(Z), "sketch_size": SKETCH}
    return _outside(Z, BALLS, 0.0), decided.bound(PRINTED_PROJECTION, **sizes).value


ORDER = 4
RANK = 1


def _best_rank(form: str) -> Target:
    claim = "ghashami2016:lem3.5"
    formula = partial(streaming.best_rank, rank=RANK, as_printed=form == "printed")
    return Target(
        claim,
        form,
        f"{ORDER} points in dimension {ORDER}, whose inner products are G, and the eigenvalues of G'; k={RANK}",
        start=_start_best_rank,
        project=_project_best_rank,
        excess=partial(_excess_best_rank, formula=formula),
        recheck=lambda params: registered_at(claim, form, _matrices(params), k=RANK),
        enclosed=partial(_enclosed_best_rank, formula=formula),
    )


def _start_best_rank(key: Array) -> Params:
    key_points, key_values = jax.random.split(key)
    return {
        "points": jax.random.normal(key_points, (ORDER, ORDER)),
        "values": jax.random.uniform(key_values, (ORDER,)),
    }


def _project_best_rank(params: Params) -> Params:
    """G' is diagonal, which a rotation makes it, its eigenvalues descend, and the first k are without a tie."""
    values = jnp.clip(-jnp.sort(-params["values"]), 0, 4)
    below = jnp.maximum(values[RANK - 1] - 1e-6, 0)
    values = values.at[RANK:].set(jnp.minimum(values[RANK:], below))
    return {"points": between(params["points"], 0.5, 2.0), "values": values}


def _matrices(params: Any) -> dict[str, Any]:
    """Return G and G', of floats or balls."""
    F = params["points"]
    return {"G": F @ F.T, "H": np.diag(params["values"])}


def _norms(G: Any, values: Any, ops: Arithmetic) -> tuple[Any, Any, Any]:
    """Return |G - G'_k|_F, |G - G_k|_F and |G - G'|_2, G' diagonal with these values."""
    first = values * (np.arange(ORDER) < RANK).astype(float)
    tail = ops.eigenvalues(G)[RANK:]
    spectrum = ops.eigenvalues(G - ops.xp.diag(values))
    spectral = ops.largest(abs(spectrum))
    return ops.norm(G - ops.xp.diag(first)), ops.norm(tail), spectral


def _excess_best_rank(params: Params, key: Array, *, formula: Formula) -> Array:
    """The left side minus the bound, over |G - G'|_2."""
    del key
    F = params["points"]
    left, tail, spectral = _norms(matmul(F, F.T), params["values"], JAX)
    right = formula(tail=tail, spectral=spectral).value
    return (left - right) / (spectral + 1e-9)


def _enclosed_best_rank(params: Found, *, formula: Formula) -> tuple[Any, Any]:
    """Both sides."""
    left, tail, spectral = _norms(_matrices(params)["G"], params["values"], BALLS)
    return left, decided.bound(formula, tail=tail, spectral=spectral).value
