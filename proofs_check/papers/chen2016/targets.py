"""chen2016: kernel distances at small distances, and the gradient of their approximation."""

import math
from collections.abc import Mapping
from functools import partial
from math import exp, inf, log, pi, sqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random
from numpy import ndarray
from numpy.linalg import norm

from jaxkern.bounds import fourier
from jaxkern.linalg import matmul
from proofs_check.claim import Form
from proofs_check.engine import decided, enclosures
from proofs_check.engine.adversary import Target
from proofs_check.papers.adversaries import between, inequality, length
from proofs_check.papers.chen2016 import cosines
from proofs_check.papers.chen2016.cosines import log_mgf

Params = Mapping[str, Array]
Values = Mapping[str, ndarray]
Balls = tuple[Any, Any]

DIM = 2
NODES = np.linspace(-30.0, 30.0, 1201)


def targets() -> tuple[Target, ...]:
    """Return the targets of this paper."""
    forms = ("printed", "corrected")
    makers = (_distance, _log_mgf, _gradient)
    return tuple(make(form) for make in makers for form in forms)


def _start_pair(key: Array, *, spread: float) -> Params:
    key_points, key_scale = random.split(key)
    return {
        "points": spread * random.normal(key_points, (2, DIM)),
        "log_lengthscale": random.normal(key_scale, ()),
    }


def _project_pair(params: Params, *, nearest: float, farthest: float) -> Params:
    """Move both points along their line until their distance in lengthscales is in [nearest, farthest]."""
    first, second = params["points"]
    scale = jnp.clip(params["log_lengthscale"], -3, 3)
    middle = (first + second) / 2
    half = (second - first) / 2
    size = length(half)
    unit = jnp.exp(scale) / 2
    clipped = jnp.clip(size, nearest * unit, farthest * unit)
    half = half * (clipped / jnp.maximum(size, 1e-12))
    points = jnp.stack([middle - half, middle + half])
    return {**params, "points": points, "log_lengthscale": scale}


def _separation(params: Params) -> Array:
    first, second = params["points"]
    return length(second - first) / jnp.exp(params["log_lengthscale"])


def _separation_on_host(params: Values, farthest: float) -> float:
    """The distance in lengthscales; rounding must not carry it beyond the hypothesis."""
    distance = float(norm(params["points"][1] - params["points"][0]))
    return min(distance / exp(params["log_lengthscale"]), farthest)


def _distance(form: str) -> Target:
    """The left inequality of (2): D / r is at least a constant for r at most 1."""
    lower = partial(fourier.distance_lower, as_printed=form == "printed")
    return Target(
        "chen2016:eq2",
        form,
        f"two points in dimension {DIM} and the lengthscale, at most one lengthscale apart",
        start=partial(_start_pair, spread=0.5),
        project=partial(_project_pair, nearest=1e-3, farthest=1.0),
        excess=partial(_excess_distance, lower=lower),
        recheck=partial(_recheck_distance, lower=lower),
    )


def _excess_distance(params: Params, key: Array, *, lower: Any) -> Array:
    r = _separation(params)
    return (lower(distance=r).value - jnp.sqrt(-2 * jnp.expm1(-(r**2) / 2))) / r


def _recheck_distance(params: Values, *, lower: Any) -> Form:
    r = _separation_on_host(params, 1.0)
    distance = sqrt(2 * cosines.mean(r))
    return inequality(float(lower(distance=r).value) / r, distance / r, "(2)")


def _log_mgf(form: str) -> Target:
    """ln E exp(s (X - E X)) over its bound, minus 1: s is chosen as a share of the largest that is allowed."""
    printed = form == "printed"
    allowed = "2 s mu in [-3, .94], not near 0, r in [.01, 4]"
    if printed:
        allowed = "s r^2 in [.02, .499], r in [.01, 1]"
    return Target(
        "chen2016:lem4.1",
        form,
        f"two points in dimension {DIM}, the lengthscale, and s: {allowed}",
        start=partial(_start_log_mgf, printed=printed),
        project=partial(_project_log_mgf, printed=printed),
        excess=partial(_excess_log_mgf, printed=printed),
        recheck=partial(_recheck_log_mgf, printed=printed),
        enclosed=_enclosed_log_mgf if printed else None,
    )


def _start_log_mgf(key: Array, *, printed: bool) -> Params:
    key_pair, key_share = random.split(key)
    low, high = (0.02, 0.499) if printed else (-3.0, 0.94)
    share = random.uniform(key_share, (), minval=low, maxval=high)
    return {**_start_pair(key_pair, spread=1.0), "share": share}


def _project_log_mgf(params: Params, *, printed: bool) -> Params:
    """At s = 0 both sides are 0, and near it their ratio is rounding."""
    pair = _project_pair(params, nearest=0.01, farthest=1.0 if printed else 4.0)
    positive = jnp.clip(params["share"], 0.02, 0.499 if printed else 0.94)
    if printed:
        return {**pair, "share": positive}
    negative = jnp.clip(params["share"], -3.0, -0.02)
    return {**pair, "share": jnp.where(params["share"] < 0, negative, positive)}


def _slope(share: Any, r: Any, printed: bool, xp: Any) -> Any:
    """Return s for a share of 1 / r^2 as printed, and of 1 / (2 mu) as corrected."""
    return share / (r**2 if printed else -2 * xp.expm1(-(r**2) / 2))


def _excess_log_mgf(params: Params, key: Array, *, printed: bool) -> Array:
    share = params["share"]
    r = _separation(params)
    s = _slope(share, r, printed, jnp)
    w = jnp.asarray(NODES, share.dtype)
    centred = 2 * jnp.sin(r * w / 2) ** 2 + jnp.expm1(-(r**2) / 2)
    step = log((NODES[1] - NODES[0]) / sqrt(2 * pi))
    left = jax.nn.logsumexp(s * centred - w**2 / 2) + step
    return left / fourier.log_mgf(s=s, distance=r, as_printed=printed).value - 1


def _at(params: Values, printed: bool) -> tuple[float, float]:
    """Return s and r as floats within the hypotheses."""
    r = _separation_on_host(params, 1.0 if printed else inf)
    return _slope(float(params["share"]), r, printed, math), r


def _recheck_log_mgf(params: Values, *, printed: bool) -> Form:
    s, r = _at(params, printed)
    bound = fourier.log_mgf(s=s, distance=r, as_printed=printed)
    if not bound.valid:
        raise ValueError(
            f"the hypotheses of {bound.source} do not hold at s = {s}, r = {r}"
        )
    return inequality(log_mgf(s, r) / float(bound.value), 1.0, bound.source)


def _enclosed_log_mgf(params: Values) -> Balls:
    """Both sides as printed, the left from below: |w| above 40 is left out of the mean."""
    from flint import acb, arb

    floats = {name: leaf.astype(float) for name, leaf in params.items()}
    s, r = map(enclosures.ball, _at(floats, True))
    integral = acb.integral(
        lambda w, _: (2 * s * (r * w / 2).sin() ** 2 - w**2 / 2).exp(), 0, 40
    )
    mean = integral.real * (2 / arb.pi()).sqrt()
    right = decided.bound(fourier.log_mgf, s=s, distance=r, as_printed=True)
    return mean.log() - s * (1 - (-(r**2) / 2).exp()), right.value


def _gradient(form: str) -> Target:
    printed = form == "printed"
    t, dim = (1, 3) if printed else (3, 2)
    bound = partial(fourier.gradient, dim=dim, num_frequencies=t, as_printed=printed)
    return Target(
        "chen2016:lem5.1",
        form,
        f"a difference of norm .01 to 3 in dimension {dim}, and t={t} of the frequencies, of norm .1 to 10",
        start=partial(_start_gradient, t=t, dim=dim),
        project=_project_gradient,
        excess=partial(_excess_gradient, bound=bound),
        recheck=partial(_recheck_gradient, bound=bound),
        enclosed=partial(_enclosed_gradient, bound=bound),
    )


def _start_gradient(key: Array, *, t: int, dim: int) -> Params:
    key_frequencies, key_difference = random.split(key)
    return {
        "frequencies": 3 * random.normal(key_frequencies, (t, dim)),
        "difference": random.normal(key_difference, (dim,)),
    }


def _project_gradient(params: Params) -> Params:
    return {
        "frequencies": jax.vmap(lambda w: between(w, 0.1, 10.0))(params["frequencies"]),
        "difference": between(params["difference"], 0.01, 3.0),
    }


def _squared(difference: Array, W: Array) -> Array:
    """Dhat^2, the mean of |exp(i <w, Delta>) - 1|^2 over the frequencies."""
    return jnp.mean(4 * jnp.sin(matmul(W, difference) / 2) ** 2)


def _excess_gradient(params: Params, key: Array, *, bound: Any) -> Array:
    """The gap of both sides over the product on the right, without its factor."""
    slope = length(jax.grad(_squared)(params["difference"], params["frequencies"]))
    energy = jnp.sum(params["frequencies"] ** 2)
    distance = length(params["difference"])
    right = bound(frequency_energy=energy, distance=distance)
    return (slope - right.value) / (energy * distance)


def _sizes(params: Values) -> tuple[Any, dict[str, Any]]:
    """Return the norm of the gradient, and what the bound takes, of floats or balls."""
    W = params["frequencies"]
    difference = params["difference"]
    gradient = 2 * (W * np.sin(W @ difference)[:, None]).sum(axis=0) / len(W)
    distance = np.sqrt(np.square(difference).sum())
    numbers = {"frequency_energy": np.square(W).sum(), "distance": distance}
    return np.sqrt(np.square(gradient).sum()), numbers


def _recheck_gradient(params: Values, *, bound: Any) -> Form:
    slope, numbers = _sizes(params)
    right = bound(**numbers)
    return inequality(slope / right.value, 1.0, right.source)


def _enclosed_gradient(params: Values, *, bound: Any) -> Balls:
    slope, numbers = _sizes(params)
    return slope, decided.bound(bound, **numbers).value
