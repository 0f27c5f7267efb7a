"""chen2016, Section 5: the gradient of the squared distance, and whole balls of points.

`docs/theory/chen2016.md` derives every correction.
"""

from dataclasses import replace
from functools import partial
from math import ceil, exp, expm1, log, log1p, log2, sqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random
from numpy import ndarray
from numpy.linalg import eigvalsh, norm
from numpy.random import default_rng
from scipy import stats

from jaxkern import features
from jaxkern.bounds import Bound, fourier
from proofs_check.claim import (
    Calibrated,
    Check,
    Control,
    Exact,
    Form,
    Identity,
    Inequality,
    Setting,
    Tail,
)
from proofs_check.controls import changed, one_draw, part_of
from proofs_check.papers import shared
from proofs_check.papers.chen2016 import cosines, setup
from proofs_check.papers.chen2016.cosines import versine
from proofs_check.papers.chen2016.setup import (
    DELTA,
    Inputs,
    Logs,
    Sides,
    all_at_most_one,
    ball,
    fewest,
    half_circle,
    sized,
    squared_distance,
)
from proofs_check.papers.chen2016.trials import (
    GAUSSIAN,
    error_over_ball,
    frequencies_on_host,
    lipschitz,
)
from proofs_check.papers.shared import (
    Grids,
    always,
    as_residual,
    bound_of,
    check_of,
    real,
    rng_of,
    wrong,
)

EPS = 0.3
"""The relative error over a ball."""


def _squared(delta: Array, w: Array) -> Array:
    """Return Dhat^2 at a difference (n,) for frequencies (t, n), by the library."""
    phi = features.PairedFourier(GAUSSIAN, w)
    x, y = phi(jnp.stack([delta, jnp.zeros_like(delta)]))
    return jnp.sum((x - y) ** 2)


_gradients = jax.jit(jax.vmap(jax.grad(_squared)))
"""grad Dhat^2 at deltas (n, d) for frequencies (n, t, d), by automatic differentiation of the library."""


def _without_the_square(w: ndarray, distance: float) -> Bound:
    lengths = norm(w, axis=1)
    return always(2 * float(np.mean(lengths)) * distance, "|w| for |w|^2")


def _lemma(w: ndarray, distance: float, as_printed: bool = False) -> Bound:
    return fourier.gradient(
        frequency_energy=float(np.sum(w**2)),
        distance=distance,
        dim=w.shape[1],
        num_frequencies=w.shape[0],
        as_printed=as_printed,
    )


def gradient_sides(key: Array, t: int, dim: int, *, bound: Any = _lemma) -> Sides:
    """Return the sides of |grad Dhat^2| <= bound at random differences, over the length of the frequencies.

    Features are rounded by eps, and the gradient of the square of their difference by eps |w|. Relative to the bound,
    which vanishes with the difference, that was more than rounding at one seed of 21.
    """
    key_w, key_delta = random.split(key)
    dtype = jnp.result_type(float)
    W = random.normal(key_w, (100, t, dim), dtype)
    normals = np.asarray(random.normal(key_delta, (100, dim), dtype))
    deltas = real(normals * np.repeat([0.1, 1.0], 50)[:, None])
    slopes = norm(np.asarray(_gradients(deltas, W), float), axis=1)
    draws = zip(slopes, np.asarray(W, float), np.asarray(deltas, float), strict=True)
    sides = []
    for slope, w, delta in draws:
        right = bound(w, float(norm(delta)))
        unit = sqrt(np.mean(np.sum(w**2, axis=1)))
        sides.append((slope / unit, always(right.value / unit, right.source)))
    return sides


def lem5_1(grids: Grids) -> Check:
    settings = grids["both"]
    return check_of(
        Inequality,
        settings,
        wrong("|w| for its square", "wrong power", bound=_without_the_square),
        part_of(0.95, Inequality(gradient_sides), settings),
        printed=partial(gradient_sides, bound=partial(_lemma, as_printed=True)),
        corrected=gradient_sides,
    )


def _slope_error(data: Any, factor: float = 1.0, as_printed: bool = False) -> ndarray:
    """Return the error of the norm of the gradient; as printed, the sum of its components without 2 / t."""
    w, delta = data
    gradient = np.asarray(_gradients(real(delta)[None], real(w)[None]), float)
    slope = norm(gradient)
    sines = np.sin(w @ delta)
    claimed = norm(2 / len(w) * sines @ w)
    if as_printed:
        claimed = abs(np.sum(w * sines[:, None]))
    return as_residual([factor * claimed / slope - 1])


def lem5_1_proof() -> Check:
    rng = default_rng(3)
    two = np.array([[1.0, -1.0]]), np.array([0.4, 0.1])
    five = rng.standard_normal((5, 3)), rng.standard_normal(3)
    return check_of(
        Identity,
        (Setting("w = (1, -1), t=1", two), Setting("random, t=5, d=3", five)),
        wrong("half of it", "wrong factor", factor=0.5),
        printed=partial(_slope_error, as_printed=True),
        corrected=_slope_error,
    )


def _lipschitz_shape(
    *, radius: float, num_frequencies: float, dim: float, tau: float, delta: float
) -> Bound:
    """Return c t sqrt(d) ln n with n = 1 / delta, the size of a net: ln n >= d."""
    value = radius * num_frequencies * sqrt(dim) * tau
    return Bound(value, 1 - delta, tau >= dim, "chen2016, Corollary 5.1, shape")


def cor5_1(inputs: Inputs) -> Check:
    pairs = []
    for t, d in ((1, 1), (10, 2), (40, 1), (100, 20)):
        for delta in inputs.deltas:
            numbers = {"num_frequencies": float(t), "delta": delta, "radius": 1.0}
            numbers["tau"] = log(1 / delta)
            name = f"t={t}, d={d}, delta={delta:g}"
            pairs.append(Setting(name, None, numbers, {"rows": t, "dim": d}))
    several = len(inputs.deltas)
    settings = tuple(pairs[2 * several :])
    most = 2 * (2 + sqrt(2)) ** 2
    shape = Calibrated(lipschitz, bound_of(_lipschitz_shape), 4.0, most)
    bound = fourier.lipschitz_squared
    bounded = Tail(lipschitz, bound_of(bound))
    no_dimension = Tail(lipschitz, bound_of(bound, dim=0.0))
    return Check(
        printed=Form(shape, tuple(pairs[: 2 * several])),
        corrected=Form(bounded, settings),
        controls=(
            Control("no dimension", no_dimension, settings[several:], "term left out"),
            part_of(0.69, bounded, settings),
        ),
    )


def _longest(t: float, d: float, delta: float, limit: float) -> Logs:
    """Return the log-probability that the longest frequency squared is above the limit, and the claimed one."""
    of_one = exp(min(float(stats.chi2.logsf(limit, d)), -1e-12))
    return log(-expm1(t * log1p(-of_one))), log(delta)


def _longest_as_printed(t: float, d: float, n: float, delta: float) -> Logs:
    return _longest(t, d, delta, (1 + sqrt(2)) ** 2 * log(n))


def _longest_by_union(
    t: float, d: float, delta: float, dimensions: float = 1.0
) -> Logs:
    root = sqrt(dimensions * d) + sqrt(2 * log(t / delta))
    return _longest(t, d, delta, root**2)


def _of_net(d: float, t: float, n: float) -> Setting:
    numbers = {"d": d, "t": t, "n": n, "delta": 1 / n}
    return Setting(f"d={d:g}, t={t:g}, n={n:g}", numbers=numbers)


def cor5_1_proof() -> Check:
    dims = (1.0, 4.0, 10.0, 100.0)
    single = [_of_net(d, 1.0, ceil(exp(max(d, 4.0)))) for d in dims]
    settings = [_of_net(d, t, 100.0) for d in (1.0, 10.0, 1000.0) for t in (1.0, 100.0)]
    return check_of(
        Exact,
        settings,
        wrong("no dimension", "term left out", dimensions=0.0),
        printed=_longest_as_printed,
        printed_settings=single,
        corrected=_longest_by_union,
    )


def _within_radius(
    *, eps: float, num_frequencies: float, dim: float, tau: float, diameter: float
) -> Bound:
    """Return the error over a ball, which must be one of those of `fourier.vanishing_ball`."""
    radius = fourier.vanishing_ball(
        eps=eps, num_frequencies=num_frequencies, dim=dim, tau=tau
    )
    if not diameter <= radius.value:
        raise ValueError(f"a ball of {diameter} is larger than {radius.value}")
    return Bound(eps, radius.probability, radius.valid, radius.source)


def _without_dimension(*, num_frequencies: float, tau: float) -> Bound:
    value = sqrt(2 * tau / num_frequencies)
    return Bound(value, 1 - 3 * exp(-tau), True, "without sqrt(d)")


def _ball_setting(name: str, dim: int, diameter: float, t: int, tau: float) -> Setting:
    """Return a ball at eps = .3, by directions over a half sphere and 32 radii up to the diameter."""
    directions = half_circle() if dim == 2 else np.eye(dim)
    differences = ball(directions, diameter * np.geomspace(1e-2, 1, 32))
    return sized(name, differences, t, dim=dim, diameter=diameter, eps=EPS, tau=tau)


def lem5_2(inputs: Inputs) -> Check:
    settings = []
    for dim in (1, 2):
        for delta in inputs.deltas:
            tau = log(3 / delta)
            t = ceil(2 * (sqrt(dim) + sqrt(2 * tau)) ** 2 / EPS**2)
            bound = fourier.vanishing_ball(eps=EPS, num_frequencies=t, dim=dim, tau=tau)
            radius = float(bound.value)
            name = f"d={dim}, |Delta| <= {radius:.3g}, eps=0.3, delta={delta:g}, t={t}"
            settings.append(_ball_setting(name, dim, radius, t, tau))
    directions = real(np.eye(30))
    many = changed(
        settings[-1:], "d=30", data=lambda p: {**p, "directions": directions}
    )
    return check_of(
        setup.tail(error_over_ball),
        settings,
        wrong(
            "the error without sqrt(d)",
            "term left out",
            _without_dimension,
            settings=many,
        ),
        corrected=_within_radius,
    )


def _reverse_triangles(key: Array, power: int = 1) -> Sides:
    """Return the sides of (7), and of what takes the place of (6), for D_K and for Dhat at random differences."""
    t = 6
    dim = 3
    w = frequencies_on_host(key, dim, t)
    most = sqrt(eigvalsh(w.T @ w / t)[-1])
    rng = default_rng(0)
    ratios: list[Any] = []
    for scale in np.repeat((0.01, 0.5, 3.0), 60):
        a = scale * rng.standard_normal(dim)
        b = a + scale * 0.3 * rng.standard_normal(dim)
        differences = (a, b, a - b)
        true = [sqrt(-2 * expm1(-(x @ x) / 2)) for x in differences]
        images = [sqrt(np.mean(2 * versine(w @ x))) for x in differences]
        for (first, second, gap), longest in ((true, 1.0), (images, most)):
            ratios.append(abs(first**power - second**power) / gap**power)
            ratios.append(gap / (longest * norm(a - b)))
    return all_at_most_one(ratios, "chen2016, (7)")


def eq7() -> Check:
    settings = (Setting("random differences in three dimensions"),)
    return check_of(
        Inequality,
        settings,
        wrong("squared distances", "wrong power", power=2),
        part_of(0.99, Inequality(_reverse_triangles), settings),
        printed=_reverse_triangles,
    )


def _errors_on_sphere(key: Array, r: float, factor: float = 1.0) -> Sides:
    """Return the sides of (9) and (10), with the errors of (6) and (8), at pairs of points of a sphere."""
    rng = rng_of(key)
    w = rng.standard_normal((40, 3))
    pairs = rng.standard_normal((1000, 2, 3))
    pairs[:, 1] = pairs[:, 0] + 0.1 * pairs[:, 1]
    phases = r * pairs / norm(pairs, axis=2, keepdims=True) @ w.T
    images = np.mean(2 * versine(phases), axis=2).T
    first, second = images / (2 * cosines.mean(r))
    errors = np.maximum(np.abs(first / second - 1), np.abs(second - 1))
    ratios = np.abs(np.sqrt(first) - 1) / (factor * errors)
    return all_at_most_one(ratios, "chen2016, (9)")


def lem5_2_steps(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["corrected"],
        wrong("0.9 of the errors", "wrong factor", factor=0.9),
        corrected=_errors_on_sphere,
    )


def _largest_error(w: ndarray, r: ndarray) -> float:
    images = np.mean(2 * versine(np.outer(r, w)), axis=1)
    return float(np.max(np.abs(np.sqrt(images / squared_distance(r)) - 1)))


def _net_of_far_differences(key: Array, spacing: float, gap: float = 1.0) -> Sides:
    """Return the largest error over 1 <= |Delta| <= 30, and that of a net plus what lies between, of 30 draws."""
    nearest = sqrt(2 * cosines.mean(1.0))
    pairs = []
    for w in rng_of(key).standard_normal((30, 50)):
        inner = _largest_error(w, np.arange(1, 30 + spacing, spacing))
        slope = 1 + sqrt(np.mean(w**2))
        right = inner + gap * (slope + inner) * spacing / 2 / nearest
        pairs.append((_largest_error(w, np.linspace(1, 30, 5001)), right))
    return shared.lines(pairs, "jaxkern, Theorem C of chen2016")


def thm5_1_proof(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["corrected"],
        wrong("the net alone", "term left out", gap=0.0),
        corrected=_net_of_far_differences,
    )


def _fall_below_tangent(
    w: ndarray, x: ndarray, y: ndarray, level: float, kernel: float
) -> Logs:
    """Return how far F falls below its tangent over |y|^2, and the curvature that Theorem H allows.

    F = Dhat^2 - u D^2 for a level u above 1, and v D^2 - Dhat^2 for a level v below.
    """
    sign = 1.0 if level > 1 else -1.0

    def F(z: ndarray) -> float:
        image = np.mean(2 * versine(w @ z))
        return float(sign * (image + 2 * level * np.expm1(-z @ z / 2)))

    r = norm(x)
    gradient = 2 / 3 * np.sin(w @ x) @ w - 2 * level * np.exp(-x @ x / 2) * x
    if sign > 0:
        of_kernel = exp(-((0.7 * r) ** 2) / 2)
    else:
        peak = np.clip(sqrt(3), 0.7 * r, 1.3 * r)
        of_kernel = (peak**2 - 1) * exp(-(peak**2) / 2)
    largest = eigvalsh(w.T @ w / 3)[-1]
    fall = (F(x) + sign * gradient @ y - F(x + y)) / (y @ y)
    return fall, largest + kernel * level * of_kernel


def _curvatures(
    key: Array, level: float, share: float = 1.0, kernel: float = 1.0
) -> Sides:
    """Compare how far F falls below its tangent with what Theorem H allows, both over |y|^2.

    The allowed curvature may vanish or be negative, so neither side is divided by it. There are 20 differences for
    each of 20 draws.
    """
    rng = rng_of(key)
    scales = np.geomspace(0.05, 3, 20)[:, None, None]
    compared = []
    for w in rng.standard_normal((20, 3, 2)):
        for x, y in rng.standard_normal((20, 2, 2)) * scales:
            y *= 0.3 * norm(x) / norm(y)
            fall, curve = _fall_below_tangent(w, x, y, level, kernel)
            compared.append((fall, curve - (1 - share) * abs(curve)))
    return shared.lines(compared, "jaxkern, Theorem H of chen2016")


def ball_curvature(grids: Grids) -> Check:
    settings = grids["corrected"]
    return check_of(
        Inequality,
        settings,
        wrong(
            "without the curvature of the kernel",
            "term left out",
            settings=settings[:1],
            kernel=0.0,
        ),
        wrong("two thirds of the curvature", "wrong factor", share=2 / 3),
        corrected=_curvatures,
    )


FOR_THE_BALL = Tail(error_over_ball, bound_of(fourier.ball, tau="tau"))
FOR_ONE_PAIR = Tail(error_over_ball, bound_of(fourier.near_distance, distance=1.0))
SINGLE = "the frequencies of a single pair, in 8 dimensions"


def _single() -> int:
    """Return the frequencies that a single pair needs."""
    return fewest(fourier.near_distance, DELTA, eps=EPS, distance=1.0)


def _ball_of_fewest(name: str, dim: int, diameter: float, delta: float) -> Setting:
    """Return a ball with as many frequencies as the bound asks for; `name` is formatted with their number t."""
    tau = log(6 / delta)
    bound = partial(fourier.ball, dim=dim, diameter=diameter)
    t = fewest(bound, delta, eps=EPS, tau=tau)
    return _ball_setting(name.format(t=t), dim, diameter, t, tau)


def _as_asked(dim: int, diameter: float, delta: float, logarithm: float) -> Setting:
    """Return a ball with the frequencies of Section 5 for a constant of one: d / eps^2 times a logarithm."""
    t = ceil(dim * logarithm / EPS**2)
    name = f"d={dim}, M={diameter:g}, eps=0.3, delta={delta:g}, as many as are asked for, t={t}"
    setting = _ball_setting(name, dim, diameter, t, 0.0)
    numbers = {**setting.numbers, "delta": delta, "logarithm": logarithm}
    return replace(setting, numbers=numbers)


def _in_units(
    *,
    dim: float,
    logarithm: float,
    num_frequencies: float,
    delta: float,
    diameter: float,
) -> Bound:
    value = sqrt(dim * logarithm / num_frequencies)
    return Bound(value, 1 - delta, diameter >= 1, "chen2016, Section 5, shape")


def cor5_2(inputs: Inputs) -> Check:
    few = []
    for dim in (1, 2):
        logarithm = log(dim / EPS)
        few += [_as_asked(dim, 1.0, delta, logarithm) for delta in inputs.deltas]
    corrected = [
        _ball_of_fewest(f"d=1, eps=0.3, delta={delta:g}, t={{t}}", 1, 1.0, delta)
        for delta in inputs.deltas
    ]
    single = _single()
    eight = (_ball_setting(f"d=8, eps=0.3, t={single}", 8, 1.0, single, 1.0),)
    most = 31 * sqrt(1 + log2(100))
    shape = Calibrated(error_over_ball, bound_of(_in_units), 0.0, most)
    return Check(
        printed=Form(shape, tuple(few)),
        corrected=Form(FOR_THE_BALL, tuple(corrected)),
        controls=(Control(SINGLE, FOR_ONE_PAIR, eight, "term left out"),),
    )


def _name_of_ball(dim: int, diameter: float, delta: float) -> str:
    return f"d={dim}, M={diameter:g}, eps=0.3, delta={delta:g}, t={{t}}"


def thm5_1(inputs: Inputs) -> Check:
    few = []
    for dim, diameter in ((1, 1.0), (1, 5.0), (2, 10.0)):
        for delta in inputs.deltas:
            logarithm = log(dim * diameter / (EPS * delta))
            few.append(_as_asked(dim, diameter, delta, logarithm))
    corrected = []
    for dim, diameter in ((1, 5.0), (2, 1.0)):
        for delta in inputs.deltas:
            name = _name_of_ball(dim, diameter, delta)
            corrected.append(_ball_of_fewest(name, dim, diameter, delta))
    single = _single()
    name = _name_of_ball(8, 0.1, DELTA).format(t=single)
    eight = (_ball_setting(name, 8, 0.1, single, log(6 / DELTA)),)
    repeated = one_draw(corrected[:1])
    shape = Calibrated(error_over_ball, bound_of(_in_units), 1.0, 31.0)
    return Check(
        printed=Form(shape, tuple(few)),
        corrected=Form(FOR_THE_BALL, tuple(corrected)),
        controls=(
            Control("one frequency, repeated", FOR_THE_BALL, repeated, "reused key"),
            Control(SINGLE, FOR_ONE_PAIR, eight, "term left out"),
        ),
    )
