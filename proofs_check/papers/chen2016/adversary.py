"""chen2016: kernel distances at small distances, and the gradient of their approximation."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern.bounds import fourier
from jaxkern.linalg import matmul
from proofs_check.claim import Form
from proofs_check.engine import enclosures
from proofs_check.engine.adversary import Target
from proofs_check.papers.adversaries import between, inequality, length
from proofs_check.papers.chen2016 import laws

Params = Mapping[str, jax.Array]
Values = Mapping[str, np.ndarray]

DIM = 2
NODES = np.linspace(-30.0, 30.0, 1201)


def targets() -> tuple[Target, ...]:
    """Return the targets of this paper."""
    forms = ("printed", "corrected")
    return (
        *(_distance(form) for form in forms),
        *(_log_mgf(form) for form in forms),
        *(_gradient(form) for form in forms),
    )


def _start_pair(key: jax.Array, *, spread: float) -> Params:
    key_points, key_scale = jax.random.split(key)
    return {
        "points": spread * jax.random.normal(key_points, (2, DIM)),
        "log_lengthscale": jax.random.normal(key_scale, ()),
    }


def _project_pair(params: Params, *, nearest: float, farthest: float) -> Params:
    """Move both points along their line until their distance in lengthscales is in [nearest, farthest]."""
    scale = jnp.clip(params["log_lengthscale"], -3, 3)
    half = (params["points"][1] - params["points"][0]) / 2
    middle = (params["points"][0] + params["points"][1]) / 2
    unit = jnp.exp(scale) / 2
    half = half * (
        jnp.clip(length(half), nearest * unit, farthest * unit)
        / jnp.maximum(length(half), 1e-12)
    )
    return {
        **params,
        "points": jnp.stack([middle - half, middle + half]),
        "log_lengthscale": scale,
    }


def _separation(params: Params) -> jax.Array:
    return length(params["points"][1] - params["points"][0]) / jnp.exp(
        params["log_lengthscale"]
    )


def _separation_on_host(params: Values, farthest: float) -> float:
    """The distance in lengthscales; rounding must not carry it beyond the hypothesis."""
    distance = float(np.linalg.norm(params["points"][1] - params["points"][0]))
    return min(distance / math.exp(params["log_lengthscale"]), farthest)


def _distance(form: str) -> Target:
    """The left inequality of (2): D / r is at least a constant for r at most 1."""
    return Target(
        "chen2016:eq2",
        form,
        f"two points in dimension {DIM} and the lengthscale, at most one lengthscale apart",
        start=functools.partial(_start_pair, spread=0.5),
        project=functools.partial(_project_pair, nearest=1e-3, farthest=1.0),
        excess=functools.partial(_excess_distance, constant=_lower(form, 1.0)),
        recheck=functools.partial(_recheck_distance, form=form),
    )


def _lower(form: str, r: float) -> float:
    return float(fourier.distance_lower(distance=r, as_printed=form == "printed").value)


def _excess_distance(params: Params, key: jax.Array, *, constant: float) -> jax.Array:
    r = _separation(params)
    return constant - jnp.sqrt(-2 * jnp.expm1(-(r**2) / 2)) / r


def _recheck_distance(params: Values, *, form: str) -> Form:
    r = _separation_on_host(params, 1.0)
    distance = math.sqrt(-2 * math.expm1(-(r**2) / 2))
    return inequality(_lower(form, r) / r, distance / r, "(2)")


def _log_mgf(form: str) -> Target:
    """ln E exp(s (X - E X)) over its bound, minus 1: s is chosen as a share of the largest that is allowed."""
    printed = form == "printed"
    allowed = (
        "s r^2 in [.02, .499], r in [.01, 1]"
        if printed
        else "2 s mu in [-3, .94], not near 0, r in [.01, 4]"
    )
    return Target(
        "chen2016:lem4.1",
        form,
        f"two points in dimension {DIM}, the lengthscale, and s: {allowed}",
        start=functools.partial(_start_log_mgf, printed=printed),
        project=functools.partial(_project_log_mgf, printed=printed),
        excess=functools.partial(_excess_log_mgf, printed=printed),
        recheck=functools.partial(_recheck_log_mgf, form=form),
        enclosed=_enclosed_log_mgf if printed else None,
    )


def _start_log_mgf(key: jax.Array, *, printed: bool) -> Params:
    key_pair, key_share = jax.random.split(key)
    low, high = (0.02, 0.499) if printed else (-3.0, 0.94)
    share = jax.random.uniform(key_share, (), minval=low, maxval=high)
    return {**_start_pair(key_pair, spread=1.0), "share": share}


def _project_log_mgf(params: Params, *, printed: bool) -> Params:
    """At s = 0 both sides are 0, and near it their ratio is rounding."""
    pair = _project_pair(params, nearest=0.01, farthest=1.0 if printed else 4.0)
    if printed:
        return {**pair, "share": jnp.clip(params["share"], 0.02, 0.499)}
    share = jnp.clip(params["share"], -3.0, 0.94)
    return {
        **pair,
        "share": jnp.where(
            share < 0, jnp.minimum(share, -0.02), jnp.maximum(share, 0.02)
        ),
    }


def _excess_log_mgf(params: Params, key: jax.Array, *, printed: bool) -> jax.Array:
    r, share = _separation(params), params["share"]
    mean = -jnp.expm1(-(r**2) / 2)
    s = share / (r**2 if printed else 2 * mean)
    w = jnp.asarray(NODES, share.dtype)
    exponents = s * (2 * jnp.sin(r * w / 2) ** 2 - mean) - w**2 / 2
    left = jax.nn.logsumexp(exponents) + math.log(
        (NODES[1] - NODES[0]) / math.sqrt(2 * math.pi)
    )
    right = share**2 / 4 if printed else -jnp.log1p(-share) / 2 - share / 2
    return left / right - 1


def _at(params: Values, printed: bool) -> tuple[float, float]:
    """Return s and r as floats within the hypotheses."""
    r = _separation_on_host(params, 1.0 if printed else math.inf)
    return float(params["share"]) / (
        r**2 if printed else -2 * math.expm1(-(r**2) / 2)
    ), r


def _recheck_log_mgf(params: Values, *, form: str) -> Form:
    printed = form == "printed"
    s, r = _at(params, printed)
    bound = fourier.log_mgf(s=s, distance=r, as_printed=printed)
    if not bound.valid:
        raise ValueError(
            f"the hypotheses of {bound.source} do not hold at s = {s}, r = {r}"
        )
    left = laws.log_mgf(s, r) / float(bound.value)
    return inequality(left, 1.0, bound.source)


def _enclosed_log_mgf(params: Values) -> tuple[Any, Any]:
    """Both sides as printed, the left from below: |w| above 40 is left out of the mean."""
    from flint import acb, arb

    s, r = map(
        enclosures.ball,
        _at(jax.tree.map(lambda leaf: leaf.astype(float), params), True),
    )
    inner = acb.integral(
        lambda w, _: (2 * s * (r * w / 2).sin() ** 2 - w**2 / 2).exp(), 0, 40
    ).real
    return (inner * (2 / arb.pi()).sqrt()).log() - s * (
        1 - (-(r**2) / 2).exp()
    ), s**2 * r**4 / 4


def _gradient(form: str) -> Target:
    t, dim = (1, 3) if form == "printed" else (3, 2)
    return Target(
        "chen2016:lem5.1",
        form,
        f"a difference of norm .01 to 3 in dimension {dim}, and t={t} of the frequencies, of norm .1 to 10",
        start=functools.partial(_start_gradient, t=t, dim=dim),
        project=_project_gradient,
        excess=functools.partial(
            _excess_gradient, factor=math.sqrt(dim) if form == "printed" else 2 / t
        ),
        recheck=functools.partial(_recheck_gradient, form=form),
        enclosed=functools.partial(_enclosed_gradient, form=form),
    )


def _start_gradient(key: jax.Array, *, t: int, dim: int) -> Params:
    key_frequencies, key_difference = jax.random.split(key)
    return {
        "frequencies": 3 * jax.random.normal(key_frequencies, (t, dim)),
        "difference": jax.random.normal(key_difference, (dim,)),
    }


def _project_gradient(params: Params) -> Params:
    return {
        "frequencies": jax.vmap(lambda w: between(w, 0.1, 10.0))(params["frequencies"]),
        "difference": between(params["difference"], 0.01, 3.0),
    }


def _squared(difference: jax.Array, W: jax.Array) -> jax.Array:
    """Dhat^2, the mean of |exp(i <w, Delta>) - 1|^2 over the frequencies."""
    return jnp.mean(4 * jnp.sin(matmul(W, difference) / 2) ** 2)


def _excess_gradient(params: Params, key: jax.Array, *, factor: float) -> jax.Array:
    difference, W = params["difference"], params["frequencies"]
    slope = length(jax.grad(_squared)(difference, W))
    return slope / (jnp.sum(W**2) * length(difference)) - factor


def _recheck_gradient(params: Values, *, form: str) -> Form:
    W = params["frequencies"]
    slope, distance = (float(length) for length in _lengths(params))
    bound = fourier.gradient(
        frequency_energy=float(np.sum(W**2)),
        distance=distance,
        dim=W.shape[1],
        num_frequencies=W.shape[0],
        as_printed=form == "printed",
    )
    return inequality(slope / float(bound.value), 1.0, bound.source)


def _enclosed_gradient(params: Values, *, form: str) -> tuple[Any, Any]:
    (t, dim), (slope, distance) = params["frequencies"].shape, _lengths(params)
    factor = (
        enclosures.ball(dim).sqrt() if form == "printed" else enclosures.ball(2) / t
    )
    return slope, factor * np.square(params["frequencies"]).sum() * distance


def _lengths(params: Values) -> tuple[Any, Any]:
    """Return the norms of the gradient and of the difference, of floats or balls."""
    difference, W = params["difference"], params["frequencies"]
    slope = 2 * (W * np.sin(W @ difference)[:, None]).sum(axis=0) / len(W)
    return np.sqrt(np.square(slope).sum()), np.sqrt(np.square(difference).sum())
