"""amini2021: the constant of the Gaussian kernel, Lemma 1 for two kernels, and (41)."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern.bounds import Bound, concentration
from jaxkern.linalg import eigvalsh
from proofs_check.claim import Form
from proofs_check.engine import decided
from proofs_check.engine.adversary import Target
from proofs_check.papers import adversaries
from proofs_check.papers.amini2021.section3_1 import truncated
from proofs_check.papers.shared import op_norm

Params = Mapping[str, jax.Array]
Result = Mapping[str, np.ndarray]
Formula = Callable[..., Bound]

DIM = 3
POINTS = 6
ORDER = 4


def targets() -> tuple[Target, ...]:
    """Return the targets of this paper."""
    slope = concentration.gaussian_lipschitz
    truncation = concentration.truncation
    return (
        _slope("printed", partial(slope, as_printed=True)),
        _slope("corrected", slope),
        _displacement("amini2021:lem1", "printed", "x + y", _excess_sum),
        _displacement(
            "jaxkern:lem1-distance", "corrected", "distances", _excess_distance
        ),
        _truncation("printed", partial(truncation, as_printed=True)),
        _truncation("corrected", truncation),
    )


def _slope(form: str, formula: Formula) -> Target:
    return Target(
        "amini2021:ex1-lipschitz",
        form,
        f"two pairs of points in dimension {DIM} and the lengthscale, in [.02, 50]",
        start=_start_slope,
        project=_project_slope,
        excess=partial(_excess_slope, formula=formula),
        recheck=partial(_recheck_slope, formula=formula),
        enclosed=partial(_enclosed_slope, formula=formula),
    )


def _start_slope(key: jax.Array) -> Params:
    key_points, key_steps, key_scale = jax.random.split(key, 3)
    points = 3 * jax.random.normal(key_points, (2, DIM))
    steps = jax.random.normal(key_steps, (2, DIM))
    log_lengthscale = jax.random.normal(key_scale, ())
    return {"points": points, "steps": steps, "log_lengthscale": log_lengthscale}


def _project_slope(params: Params) -> Params:
    """Steps are in lengthscales, and not so short that a quotient of differences loses its digits."""
    size = adversaries.length(params["steps"])
    steps = params["steps"] * (jnp.maximum(size, 1e-3) / jnp.maximum(size, 1e-12))
    log_lengthscale = jnp.clip(params["log_lengthscale"], -4, 4)
    return {**params, "steps": steps, "log_lengthscale": log_lengthscale}


def _excess_slope(params: Params, key: jax.Array, *, formula: Formula) -> jax.Array:
    """tau |K(x1, x2) - K(y1, y2)| / (|x1 - y1| + |x2 - y2|) - tau L."""
    lengthscale = jnp.exp(params["log_lengthscale"])
    steps = params["steps"]
    X = params["points"] / lengthscale
    Y = X + steps
    before = adversaries.gaussian(jnp.sum((X[0] - X[1]) ** 2))
    after = adversaries.gaussian(jnp.sum((Y[0] - Y[1]) ** 2))
    apart = adversaries.length(steps[0]) + adversaries.length(steps[1])
    constant = lengthscale * formula(lengthscale=lengthscale).value
    return jnp.abs(before - after) / apart - constant


def _recheck_slope(params: Result, *, formula: Formula) -> Form:
    tau = math.exp(params["log_lengthscale"])
    right = tau * float(formula(lengthscale=tau).value)
    return adversaries.inequality(_steepness(params), right, "Example 1")


def _enclosed_slope(params: Result, *, formula: Formula) -> tuple[Any, Any]:
    tau = np.exp(params["log_lengthscale"])
    right = decided.bound(formula, lengthscale=tau).value
    return _steepness(params), tau * right


def _steepness(params: Result) -> Any:
    """Return tau |K(X) - K(Y)| over the way from X to Y, of floats or balls."""
    tau = np.exp(params["log_lengthscale"])
    X = params["points"]
    Y = X + tau * params["steps"]
    before = np.square(X[0] - X[1]).sum()
    after = np.square(Y[0] - Y[1]).sum()
    change = np.exp(-before / (2 * tau**2)) - np.exp(-after / (2 * tau**2))
    way = np.sqrt(np.square(X - Y).sum(axis=1)).sum()
    return tau * abs(change) / way


def _displacement(
    claim: str, form: str, kernel: str, excess: Callable[..., jax.Array]
) -> Target:
    """The registered statement: |K(X) - K(X')|_F over sqrt(n) |X - X'|_F."""
    return Target(
        claim,
        form,
        f"{POINTS} points in dimension {DIM} and as many that they move to, K = {kernel}",
        start=_start_displacement,
        project=_project_displacement,
        excess=excess,
        recheck=partial(_recheck_displacement, claim=claim, form=form),
    )


def _start_displacement(key: jax.Array) -> Params:
    X, steps = jax.random.normal(key, (2, POINTS, DIM))
    return {"points": X, "steps": steps}


def _project_displacement(params: Params) -> Params:
    steps = adversaries.between(params["steps"], 0.1, 10.0)
    return {"points": params["points"], "steps": steps}


def _over_bound(change: jax.Array, steps: jax.Array, formula: Formula) -> jax.Array:
    """Return the change of K, less the bound, over sqrt(n) |X - X'|_F."""
    displacement = adversaries.length(steps)
    right = formula(lipschitz=1.0, num_points=POINTS, displacement=displacement)
    return (change - right.value) / (math.sqrt(POINTS) * displacement)


def _excess_sum(params: Params, key: jax.Array) -> jax.Array:
    steps = params["steps"]
    change = adversaries.length(steps[:, None, 0] + steps[None, :, 0])
    return _over_bound(change, steps, concentration.gram_displacement)


def _excess_distance(params: Params, key: jax.Array) -> jax.Array:
    X = params["points"]
    steps = params["steps"]
    change = adversaries.length(_distances(X) - _distances(X + steps))
    return _over_bound(change, steps, concentration.gram_displacement_distance)


def _distances(X: jax.Array) -> jax.Array:
    squared = adversaries.squared_distances(X, X)
    return jnp.where(squared > 0, jnp.sqrt(jnp.where(squared > 0, squared, 1)), 0)


def _recheck_displacement(params: Result, *, claim: str, form: str) -> Form:
    X = params["points"]
    arrays = adversaries.registered(claim, form).settings[0].data
    return adversaries.registered_at(
        claim, form, {**arrays, "pairs": lambda key: [(X, X + params["steps"])]}
    )


def _truncation(form: str, formula: Formula) -> Target:
    return Target(
        "amini2021:eq41",
        form,
        f"a symmetric A of order {ORDER} and a symmetric B of rank 1",
        start=_start_truncation,
        project=_project_truncation,
        excess=partial(_excess_truncation, formula=formula),
        recheck=partial(_recheck_truncation, formula=formula),
    )


def _start_truncation(key: jax.Array) -> Params:
    key_values, key_vector, key_factor = jax.random.split(key, 3)
    values = jax.random.normal(key_values, (ORDER,))
    vector = jax.random.normal(key_vector, (ORDER,))
    factor = jax.random.normal(key_factor, ())
    return {"values": values, "vector": vector, "factor": factor}


def _project_truncation(params: Params) -> Params:
    """A is diagonal, which a rotation makes it, of norm 1; its largest entry in size is the first, without a tie."""
    values = params["values"]
    values = values[jnp.argsort(-jnp.abs(values))]
    values = values / jnp.maximum(jnp.abs(values[0]), 1e-6)
    others = jnp.clip(values[1:], -1 + 1e-6, 1 - 1e-6)
    values = values.at[1:].set(others)
    vector = adversaries.between(params["vector"], 1.0, 1.0)
    return {**params, "values": values, "vector": vector}


def _excess_truncation(
    params: Params, key: jax.Array, *, formula: Formula
) -> jax.Array:
    values = params["values"]
    vector = params["vector"]
    B = params["factor"] * vector[:, None] * vector[None, :]
    first = jnp.where(jnp.arange(ORDER) == 0, values, 0)
    # An A that is B would be 0 over 0.
    spectral = jnp.max(jnp.abs(eigvalsh(jnp.diag(values) - B))) + 1e-9
    right = formula(spectral=spectral, num_clusters=1)
    return (adversaries.length(jnp.diag(first) - B) - right.value) / spectral


def _recheck_truncation(params: Result, *, formula: Formula) -> Form:
    normal = np.random.default_rng(0).standard_normal((ORDER, ORDER))
    rotation, _ = np.linalg.qr(normal)
    vector = rotation @ params["vector"]
    A = rotation @ np.diag(params["values"]) @ rotation.T
    B = params["factor"] * np.outer(vector, vector)
    ratio = float(np.linalg.norm(truncated(A, 1) - B)) / op_norm(A - B)
    right = float(formula(spectral=1.0, num_clusters=1).value)
    return adversaries.inequality(ratio, right, "(41)")
