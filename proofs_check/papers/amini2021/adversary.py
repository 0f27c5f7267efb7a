"""amini2021: the constant of the Gaussian kernel, Lemma 1 for two kernels, and (41)."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern.bounds import concentration
from jaxkern.linalg import eigvalsh
from proofs_check.claim import Form
from proofs_check.engine import enclosures
from proofs_check.engine.adversary import Target
from proofs_check.papers import adversaries
from proofs_check.papers.amini2021.section3_1 import leading
from proofs_check.papers.shared import op_norm

Params = Mapping[str, jax.Array]
Result = Mapping[str, np.ndarray]

DIM, POINTS = 3, 6
ORDER = 4


def targets() -> tuple[Target, ...]:
    """Return the targets of this paper."""
    return (
        *(_slope(form) for form in ("printed", "corrected")),
        _displacement("amini2021:lem1", "printed"),
        _displacement("jaxkern:lem1-distance", "corrected"),
        *(_truncation(form) for form in ("printed", "corrected")),
    )


def _slope(form: str) -> Target:
    return Target(
        "amini2021:ex1-lipschitz",
        form,
        f"two pairs of points in dimension {DIM} and the lengthscale, in [.02, 50]",
        start=_start_slope,
        project=_project_slope,
        excess=functools.partial(_excess_slope, constant=_constant(form)),
        recheck=functools.partial(_recheck_slope, form=form),
        enclosed=functools.partial(_enclosed_slope, form=form),
    )


def _constant(form: str, lengthscale: float = 1.0) -> float:
    return float(
        concentration.gaussian_lipschitz(
            lengthscale=lengthscale, as_printed=form == "printed"
        ).value
    )


def _start_slope(key: jax.Array) -> Params:
    key_points, key_steps, key_scale = jax.random.split(key, 3)
    return {
        "points": 3 * jax.random.normal(key_points, (2, DIM)),
        "steps": jax.random.normal(key_steps, (2, DIM)),
        "log_lengthscale": jax.random.normal(key_scale, ()),
    }


def _project_slope(params: Params) -> Params:
    """Steps are in lengthscales, and not so short that a quotient of differences loses its digits."""
    size = adversaries.length(params["steps"])
    steps = params["steps"] * (jnp.maximum(size, 1e-3) / jnp.maximum(size, 1e-12))
    return {
        **params,
        "steps": steps,
        "log_lengthscale": jnp.clip(params["log_lengthscale"], -4, 4),
    }


def _excess_slope(params: Params, key: jax.Array, *, constant: float) -> jax.Array:
    """tau |K(x1, x2) - K(y1, y2)| / (|x1 - y1| + |x2 - y2|) - constant."""
    lengthscale = jnp.exp(params["log_lengthscale"])
    X = params["points"] / lengthscale
    Y = X + params["steps"]
    change = adversaries.gaussian(jnp.sum((X[0] - X[1]) ** 2)) - adversaries.gaussian(
        jnp.sum((Y[0] - Y[1]) ** 2)
    )
    return (
        jnp.abs(change)
        / (
            adversaries.length(params["steps"][0])
            + adversaries.length(params["steps"][1])
        )
        - constant
    )


def _recheck_slope(params: Result, *, form: str) -> Form:
    tau = math.exp(params["log_lengthscale"])
    return adversaries.inequality(
        _steepness(params), tau * _constant(form, tau), "Example 1"
    )


def _enclosed_slope(params: Result, *, form: str) -> tuple[Any, Any]:
    one = enclosures.ball(1)
    return _steepness(params), (2 * one).sqrt() / one.exp() if form == "printed" else (
        -one / 2
    ).exp()


def _steepness(params: Result) -> Any:
    """Return tau |K(X) - K(Y)| over the way from X to Y, of floats or balls."""
    tau, X = np.exp(params["log_lengthscale"]), params["points"]
    Y = X + tau * params["steps"]
    values = [np.exp(-np.square(Z[0] - Z[1]).sum() / (2 * tau**2)) for Z in (X, Y)]
    return (
        tau * abs(values[0] - values[1]) / np.sqrt(np.square(X - Y).sum(axis=1)).sum()
    )


def _displacement(claim: str, form: str) -> Target:
    """The registered statement: |K(X) - K(X')|_F over sqrt(n) |X - X'|_F, for x + y or for distances."""
    distance = claim.endswith("distance")
    kernel = "distances" if distance else "x + y"
    return Target(
        claim,
        form,
        f"{POINTS} points in dimension {DIM} and as many that they move to, K = {kernel}",
        start=_start_displacement,
        project=_project_displacement,
        excess=_excess_distance if distance else _excess_sum,
        recheck=functools.partial(_recheck_displacement, claim=claim, form=form),
    )


def _start_displacement(key: jax.Array) -> Params:
    X, steps = jax.random.normal(key, (2, POINTS, DIM))
    return {"points": X, "steps": steps}


def _project_displacement(params: Params) -> Params:
    return {
        "points": params["points"],
        "steps": adversaries.between(params["steps"], 0.1, 10.0),
    }


def _excess_sum(params: Params, key: jax.Array) -> jax.Array:
    first = params["steps"][:, 0]
    change = adversaries.length(first[:, None] + first[None, :])
    return change / (math.sqrt(POINTS) * adversaries.length(params["steps"])) - 2


def _excess_distance(params: Params, key: jax.Array) -> jax.Array:
    X, steps = params["points"], params["steps"]
    change = adversaries.length(_distances(X) - _distances(X + steps))
    return change / (math.sqrt(POINTS) * adversaries.length(steps)) - math.sqrt(2)


def _distances(X: jax.Array) -> jax.Array:
    squared = adversaries.squared_distances(X, X)
    return jnp.where(squared > 0, jnp.sqrt(jnp.where(squared > 0, squared, 1)), 0)


def _recheck_displacement(params: Result, *, claim: str, form: str) -> Form:
    X = params["points"]
    arrays = adversaries.registered(claim, form).settings[0].data
    return adversaries.registered_at(
        claim, form, {**arrays, "pairs": lambda key: [(X, X + params["steps"])]}
    )


def _truncation(form: str) -> Target:
    return Target(
        "amini2021:eq41",
        form,
        f"a symmetric A of order {ORDER} and a symmetric B of rank 1",
        start=_start_truncation,
        project=_project_truncation,
        excess=functools.partial(
            _excess_truncation, constant=_truncation_constant(form)
        ),
        recheck=functools.partial(_recheck_truncation, form=form),
    )


def _truncation_constant(form: str) -> float:
    return float(
        concentration.truncation(
            spectral=1.0, num_clusters=1, as_printed=form == "printed"
        ).value
    )


def _start_truncation(key: jax.Array) -> Params:
    key_values, key_vector, key_factor = jax.random.split(key, 3)
    return {
        "values": jax.random.normal(key_values, (ORDER,)),
        "vector": jax.random.normal(key_vector, (ORDER,)),
        "factor": jax.random.normal(key_factor, ()),
    }


def _project_truncation(params: Params) -> Params:
    """A is diagonal, which a rotation makes it, of norm 1; its largest entry in size is the first, without a tie."""
    values = params["values"]
    values = values[jnp.argsort(-jnp.abs(values))]
    values = values / jnp.maximum(jnp.abs(values[0]), 1e-6)
    values = values.at[1:].set(jnp.clip(values[1:], -1 + 1e-6, 1 - 1e-6))
    return {
        "values": values,
        "vector": adversaries.between(params["vector"], 1.0, 1.0),
        "factor": params["factor"],
    }


def _excess_truncation(params: Params, key: jax.Array, *, constant: float) -> jax.Array:
    values, vector = params["values"], params["vector"]
    B = params["factor"] * vector[:, None] * vector[None, :]
    first = jnp.zeros_like(values).at[0].set(values[0])
    spectral = jnp.max(jnp.abs(eigvalsh(jnp.diag(values) - B)))
    return adversaries.length(jnp.diag(first) - B) / (spectral + 1e-9) - constant


def _recheck_truncation(params: Result, *, form: str) -> Form:
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((ORDER, ORDER)))[0]
    A = rotation @ np.diag(params["values"]) @ rotation.T
    B = (
        rotation
        @ (params["factor"] * np.outer(params["vector"], params["vector"]))
        @ rotation.T
    )
    values, vectors = leading(A, 1)
    left = float(np.linalg.norm((vectors * values) @ vectors.T - B))
    return adversaries.inequality(
        left / op_norm(A - B), _truncation_constant(form), "(41)"
    )
