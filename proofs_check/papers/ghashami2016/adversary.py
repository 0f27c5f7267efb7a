"""ghashami2016: random features of few points, streams with their order, and best approximations."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import features, kernels
from jaxkern.bounds import Bound
from jaxkern.bounds import fourier as bounds
from jaxkern.linalg import eigvalsh, matmul
from proofs_check.claim import Form, Setting, Tail
from proofs_check.engine import enclosures
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

Params = Mapping[str, jax.Array]
Found = Mapping[str, np.ndarray]

DIM = 2


def targets() -> tuple[Target, ...]:
    """Return the targets of this paper."""
    forms = ("printed", "corrected")
    return (
        _quadratic_form("ghashami2016:thm3.1-rare", "printed"),
        _quadratic_form("ghashami2016:thm3.1", "corrected"),
        _quadratic_form("jaxkern:quadratic-form-paired", "corrected"),
        *(_shrinking(*target) for target in ROWS),
        *(_late_rows(form) for form in forms),
        *(_best_rank(form) for form in forms),
    )


POINTS = 6
EPS, DELTA = 0.1, 0.01
TRIALS = 4_000


def _quadratic_form(claim: str, form: str) -> Target:
    """The deviation is a mean of independent terms; what is climbed is their standard deviation."""
    paired, printed = claim.endswith("paired"), form == "printed"
    size = math.ceil(
        math.log(2 / DELTA) / (2 * EPS**2) * (1 if paired or printed else 2 / 0.823)
    )
    # Where a normal variable of this standard deviation exceeds EPS sqrt(size) with probability DELTA.
    limit = EPS * math.sqrt(size) / float(stats.norm.isf(DELTA / 2))
    name = f"{size} {'pairs' if paired else 'shifted features'}, eps={EPS:g}, delta={DELTA:g}"
    return Target(
        claim,
        form,
        f"{POINTS} points in dimension {DIM}, their weights x of norm 1, and the lengthscale; {name}",
        start=_start_form,
        project=_project_form,
        excess=functools.partial(
            _excess_form, limit=limit, fourth=1.0 if paired else 1.5
        ),
        recheck=functools.partial(_recheck_form, claim=claim, form=form, size=size),
        trials=TRIALS,
    )


def _start_form(key: jax.Array) -> Params:
    key_points, key_weights, key_scale = jax.random.split(key, 3)
    return {
        "points": 2 * jax.random.normal(key_points, (POINTS, DIM)),
        "weights": jax.random.normal(key_weights, (POINTS,)),
        "log_lengthscale": jax.random.normal(key_scale, ()) / 2,
    }


def _project_form(params: Params) -> Params:
    scale = jnp.clip(params["log_lengthscale"], -2, 2)
    return {
        **params,
        "weights": between(params["weights"], 1.0, 1.0),
        "log_lengthscale": scale,
    }


def _excess_form(
    params: Params, key: jax.Array, *, limit: float, fourth: float
) -> jax.Array:
    """The standard deviation of one term over its limit, minus 1.

    With s(w) = sum_i x_i exp(i <w, a_i>) a pair contributes |s|^2 and a shifted feature (1 + cos 2 b) |s|^2 in law,
    b uniform: second moments E |s|^4 and 3/2 of it. E |s|^4 is a sum of the kernel over pairs of differences.
    """
    del key
    x, X = params["weights"], params["points"] / jnp.exp(params["log_lengthscale"])
    differences = (X[:, None, :] - X[None, :, :]).reshape(-1, DIM)
    products = (x[:, None] * x[None, :]).ravel()
    mean = jnp.sum(products * gaussian(jnp.sum(differences**2, axis=1)))
    K = gaussian(squared_distances(differences, -differences))
    variance = fourth * jnp.sum(products * matmul(K, products)) - mean**2
    return jnp.sqrt(jnp.maximum(variance, 1e-12)) / POINTS / limit - 1


def _recheck_form(params: Found, *, claim: str, form: str, size: int) -> Form:
    """The statement at these points, sampled with the library's features."""
    paired = claim.endswith("paired")

    def bound(setting: Setting) -> Bound:
        if paired:
            return bounds.quadratic_form_paired(eps=EPS, num_frequencies=size)
        return bounds.quadratic_form_shifted(
            eps=EPS, num_features=size, as_printed=form == "printed"
        )

    real = jnp.result_type(float)
    weights = params["weights"] / np.linalg.norm(params["weights"])
    population = {
        "points": jnp.asarray(params["points"], real),
        "weights": jnp.asarray(weights, real),
        "lengthscale": jnp.exp(jnp.asarray(params["log_lengthscale"], real)),
    }
    setting = Setting(FOUND, population, shapes={"size": size, "paired": int(paired)})
    return Form(Tail(_form_error, bound), (setting,), "")


def _form_error(
    key: jax.Array, population: Any, numbers: Any, *, size: int, paired: int
) -> jax.Array:
    """|x'(G - Z Z') x| / n."""
    del numbers
    points, x = population["points"], population["weights"]
    kernel = kernels.Gaussian(population["lengthscale"])
    make = features.paired_fourier if paired else features.shifted_fourier
    Z = make(key, kernel, points.shape[1], num_frequencies=size, dtype=points.dtype)(
        points
    )
    exact = jnp.sum(
        x[:, None]
        * x[None, :]
        * gaussian(squared_distances(points, points) / kernel.lengthscale**2)
    )
    return jnp.abs(exact - jnp.sum(matmul(x, Z) ** 2)) / points.shape[0]


ROWS = {  # (l, rows of the buffer, which squared singular value is subtracted, rows of the stream)
    ("ghashami2016:lem3.2", "printed"): (2, 2, 2, 6),
    ("ghashami2016:lem3.2", "corrected"): (4, 4, 2, 10),
    ("jaxkern:frequent-directions", "corrected"): (2, 4, 3, 8),
}
COLUMNS = 5
DECAY = [0.3**i for i in range(COLUMNS)]


def _shrinking(claim: str, form: str) -> Target:
    """What a sketch loses, in units of |A|_F^2; the statement itself is the registered one."""
    size, slots, place, count = ROWS[claim, form]
    ranks = (
        place
        if claim.startswith("jaxkern")
        else (size if form == "printed" else size // 2)
    )
    return Target(
        claim,
        form,
        f"{count} rows in dimension {COLUMNS} and their order; l={size}",
        start=functools.partial(_start_rows, count=count),
        project=_project_rows,
        excess=functools.partial(
            _excess_shrinking,
            slots=slots,
            place=place,
            ranks=ranks,
            certified=claim.startswith("jaxkern"),
        ),
        recheck=functools.partial(
            _recheck_shrinking, claim=claim, form=form, size=size
        ),
    )


def _start_rows(key: jax.Array, *, count: int) -> Params:
    key_rows, key_order = jax.random.split(key)
    # Singular values that fall: rows that are all alike would nearly be a worst case.
    rows = jax.random.normal(key_rows, (count, COLUMNS)) * jnp.asarray(DECAY)[None, :]
    return {"rows": rows, "order": jax.random.permutation(key_order, count)}


def _project_rows(params: Params) -> Params:
    """The statements do not depend on the scale: |A|_F^2 is the number of rows."""
    size = math.sqrt(params["rows"].shape[0])
    return {**params, "rows": between(params["rows"], size, size)}


def _excess_shrinking(
    params: Params,
    key: jax.Array,
    *,
    slots: int,
    place: int,
    ranks: int,
    certified: bool,
) -> jax.Array:
    """The logarithm of the loss over the smallest of |A - A_k|_F^2 / (ranks - k), k < ranks.

    Where A is nearly of rank k both are small, and say little: 1e-4 |A|_F^2 is added to the second. The loss is
    |A'A - B'B|_2 or, `certified`, the sum of what was subtracted. The buffer shrinks when `slots` rows are full, to
    `place` - 1 rows, and the stream ends with a shrink.
    """
    del key
    A = params["rows"][params["order"]]
    total = jnp.sum(A * A)
    C = lost = jnp.zeros((COLUMNS, COLUMNS), A.dtype)
    subtracted, start = jnp.zeros((), A.dtype), 0
    for stop in range(slots, A.shape[0] + 1, slots - place + 1):
        C = C + matmul(A[start:stop].T, A[start:stop])
        gone, delta = removed(C, place)
        C, lost, subtracted, start = C - gone, lost + gone, subtracted + delta, stop
    loss = subtracted if certified else eigvalsh(lost)[0]
    squares = jnp.maximum(eigvalsh(matmul(A.T, A)), 0)
    tails = jnp.flip(jnp.cumsum(jnp.flip(squares)))[: min(ranks, COLUMNS)]
    limits = tails / (ranks - jnp.arange(tails.shape[0]).astype(A.dtype))
    return jnp.log(
        (jnp.maximum(loss, 0) / total + 1e-9) / (jnp.min(limits) / total + 1e-4)
    )


def _recheck_shrinking(params: Found, *, claim: str, form: str, size: int) -> Form:
    return registered_at(claim, form, {"rows": params["rows"][params["order"]]}, l=size)


SKETCH, LATE, FEATURES = 8, 4, 16


def _late_rows(form: str) -> Target:
    """Algorithm 1 returns the W of its last decomposition: the buffer is full after l rows, and not again."""
    return Target(
        "ghashami2016:lem3.3-literal",
        form,
        f"{SKETCH + LATE} points in dimension {DIM} and their order, {FEATURES} frequencies and shifts, and the "
        f"lengthscale; l={SKETCH}",
        start=_start_late,
        project=_project_late,
        excess=functools.partial(_excess_late, printed=form == "printed"),
        recheck=functools.partial(_recheck_late, form=form),
        enclosed=_enclosed_late if form == "printed" else None,
    )


def _start_late(key: jax.Array) -> Params:
    keys = jax.random.split(key, 5)
    return {
        "points": jax.random.normal(keys[0], (SKETCH + LATE, DIM)),
        "frequencies": jax.random.normal(keys[1], (FEATURES, DIM)),
        "shifts": jax.random.uniform(keys[2], (FEATURES,), maxval=2 * math.pi),
        "log_lengthscale": jax.random.normal(keys[3], ()) / 2,
        "order": jax.random.permutation(keys[4], SKETCH + LATE),
    }


def _project_late(params: Params) -> Params:
    return {
        **params,
        "shifts": jnp.clip(params["shifts"], 0, 2 * math.pi),
        "log_lengthscale": jnp.clip(params["log_lengthscale"], -2, 2),
    }


def _excess_late(params: Params, key: jax.Array, *, printed: bool) -> jax.Array:
    """|Z (I - W W')|_2^2 over the bound, minus 1, W an orthonormal basis of the first l rows of Z."""
    del key
    X = params["points"][params["order"]] / jnp.exp(params["log_lengthscale"])
    phases = matmul(X, params["frequencies"].T) + params["shifts"][None, :]
    Z = math.sqrt(2 / FEATURES) * jnp.cos(phases)
    first, late = Z[:SKETCH], Z[SKETCH:]
    G = matmul(first, first.T)
    G = G + 1e-6 * jnp.eye(
        SKETCH, dtype=G.dtype
    )  # rows that are all alike leave it singular
    across = matmul(late, first.T)
    outside = matmul(late, late.T) - matmul(across, jnp.linalg.solve(G, across.T))
    squares = jnp.sum(Z * Z, axis=1)
    if printed:
        limit = jnp.asarray(2 * (SKETCH + LATE) / SKETCH, Z.dtype)
    else:
        limit = 2 * jnp.sum(squares) / SKETCH + SKETCH * jnp.max(squares) + 1e-9
    return eigvalsh((outside + outside.T) / 2)[0] / limit - 1


def _recheck_late(params: Found, *, form: str) -> Form:
    return registered_at(
        "ghashami2016:lem3.3-literal", form, {"rows": _features(params)}, l=SKETCH
    )


def _features(params: Found) -> Any:
    """Return the features of the points in their order, of floats or balls."""
    X = params["points"][params["order"]] / np.exp(params["log_lengthscale"])
    return np.cos(X @ params["frequencies"].T + params["shifts"]) / math.sqrt(
        FEATURES / 2
    )


def _enclosed_late(params: Found) -> tuple[Any, Any]:
    """Both sides as printed, with the projection to the first rows by their Gram matrix."""
    from flint import arb_mat

    Z = _features(params)
    first, late = Z[:SKETCH], Z[SKETCH:]
    across = late @ first.T
    solved = (
        arb_mat((first @ first.T).tolist()).solve(arb_mat(across.T.tolist())).tolist()
    )
    outside = late @ late.T - across @ np.array(solved, dtype=object)
    return enclosures.eigenvalues(outside)[-1], enclosures.ball(2 * len(Z)) / SKETCH


ORDER, RANK = 4, 1


def _best_rank(form: str) -> Target:
    return Target(
        "ghashami2016:lem3.5",
        form,
        f"{ORDER} points in dimension {ORDER}, whose inner products are G, and the eigenvalues of G'; k={RANK}",
        start=_start_best_rank,
        project=_project_best_rank,
        excess=functools.partial(
            _excess_best_rank, constant=1.0 if form == "printed" else math.sqrt(5)
        ),
        recheck=functools.partial(_recheck_best_rank, form=form),
        enclosed=functools.partial(
            _enclosed_best_rank, squared=1 if form == "printed" else 5
        ),
    )


def _start_best_rank(key: jax.Array) -> Params:
    key_points, key_values = jax.random.split(key)
    return {
        "points": jax.random.normal(key_points, (ORDER, ORDER)),
        "values": jax.random.uniform(key_values, (ORDER,)),
    }


def _project_best_rank(params: Params) -> Params:
    """G' is diagonal, which a rotation makes it, its eigenvalues descend, and the first k are without a tie."""
    values = jnp.clip(-jnp.sort(-params["values"]), 0, 4)
    values = values.at[RANK:].set(
        jnp.minimum(values[RANK:], jnp.maximum(values[RANK - 1] - 1e-6, 0))
    )
    return {"points": between(params["points"], 0.5, 2.0), "values": values}


def _excess_best_rank(params: Params, key: jax.Array, *, constant: float) -> jax.Array:
    """(|G - G'_k|_F - |G - G_k|_F) / (sqrt(k) |G - G'|_2) - constant."""
    del key
    F, values = params["points"], params["values"]
    G = matmul(F, F.T)
    first = jnp.where(jnp.arange(ORDER) < RANK, values, 0)
    tail = length(eigvalsh(G)[RANK:])
    spectral = jnp.max(jnp.abs(eigvalsh(G - jnp.diag(values))))
    return (length(G - jnp.diag(first)) - tail) / (
        math.sqrt(RANK) * spectral + 1e-9
    ) - constant


def _recheck_best_rank(params: Found, *, form: str) -> Form:
    G = params["points"] @ params["points"].T
    return registered_at(
        "ghashami2016:lem3.5", form, {"G": G, "H": np.diag(params["values"])}, k=RANK
    )


def _enclosed_best_rank(params: Found, *, squared: int) -> tuple[Any, Any]:
    """|G - G'_k|_F and |G - G_k|_F + C sqrt(k) |G - G'|_2, C^2 = `squared`."""
    G, values = params["points"] @ params["points"].T, np.diag(params["values"])
    kept = np.diag([*params["values"][:RANK], *[0] * (ORDER - RANK)])
    tail = enclosures.eigenvalues(G)[:-RANK]
    return (
        np.sqrt(np.square(G - kept).sum()),
        np.sqrt(np.square(tail).sum())
        + enclosures.ball(squared * RANK).sqrt() * enclosures.norms(G - values)[0],
    )
