"""chen2016, section 1: the kernel distance, its exact embedding, additive errors, and what unit vectors give.

Constants that the section leaves in O(.) are proved in `docs/theory/chen2016.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import features, kernels
from jaxkern._spectral import HIGHEST, eigh
from jaxkern.bounds import Bound, fourier
from jaxkern.gram import gram
from proofs_check import controls
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
from proofs_check.papers import flops
from proofs_check.papers.chen2016 import places, sides, trials
from proofs_check.papers.chen2016.places import Scope

# ------------------------------------------------------------------------------------------------------------ distances


def _points(n: int, spacing: float) -> np.ndarray:
    """Return n points in three dimensions whose typical distance is about two spacings."""
    return spacing * np.random.default_rng(3).standard_normal((n, 3))


def _metric() -> Check:
    def holds(power: int) -> Inequality:
        def triangles(key: jax.Array, setting: Setting) -> list[Any]:
            del key
            X = places.real(setting.population)
            D = sides.all_distances(X) ** power
            i, j, k = (a.ravel() for a in np.meshgrid(*[np.arange(len(X))] * 3, indexing="ij"))
            keep = (i < k) & (j != i) & (j != k)
            left, right = D[i, k][keep], (D[i, j] + D[j, k])[keep]
            return [sides.at_most_one(a / b, "triangle inequality") for a, b in zip(left, right, strict=True)]

        return Inequality(triangles)

    line = np.linspace(0, 1, 8)[:, None] @ np.eye(1, 3)
    settings = (
        Setting("a cloud of 10 points", _points(10, 1.0)),
        Setting("a small cloud", _points(10, 0.05)),
        Setting("8 points on a line", line),
    )
    return Check(
        printed=Form(holds(1), settings), controls=(Control("the squared distance", holds(2), settings, "wrong power"),)
    )


def _factor(X: jax.Array) -> jax.Array:
    """Return F with F F' = K: the exact embedding of n points into n dimensions."""
    values, vectors = eigh(gram(kernels.Gaussian(1.0), X))
    return vectors * jnp.sqrt(jnp.maximum(values, 0))[None]


def _embedding() -> Check:
    def residual(dropped: int) -> Identity:
        def distances_of_images(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            X = places.real(setting.population)
            F = np.asarray(_factor(X), float)[:, : len(X) - dropped]
            D = sides.all_distances(X)
            first, second = np.triu_indices(len(X), 1)
            images = np.linalg.norm(F[first] - F[second], axis=1)
            return sides.as_residual(images / D[first, second] - 1)

        return Identity(distances_of_images)

    settings = tuple(Setting(f"{n} points", _points(n, 1.0)) for n in (3, 8))
    return Check(
        printed=Form(residual(0), settings),
        controls=(Control("one dimension less", residual(1), settings, "n for n - 1"),),
    )


def _johnson_lindenstrauss() -> Check:
    n, delta = 16, places.DELTA
    X = places.real(_points(n, 1.0))
    F = _factor(X)
    first, second = np.triu_indices(n, 1)
    gaps = F[first] - F[second]
    units = gaps / jnp.linalg.norm(gaps, axis=1, keepdims=True)

    def bound(setting: Setting) -> Bound:
        s = setting.numbers
        return fourier.relative_distances(eps=s["eps"], num_frequencies=s["m"], num_points=s["n"])

    settings = []
    for eps in (0.2, 0.4):
        m = places.fewest(lambda t, e=eps: fourier.relative_distances(eps=e, num_frequencies=t, num_points=n), delta)  # type: ignore[misc]
        numbers = {"eps": eps, "m": float(m), "n": float(n)}
        settings.append(Setting(f"eps={eps:g}, m={m}", {"units": units}, numbers, {"rows": m}))
    statement = Tail(trials.projection_error, bound)
    half = controls.changed(settings[:1], "half of the dimensions", shapes={"part": 2})
    return Check(
        corrected=Form(statement, tuple(settings)),
        controls=(Control("half of the dimensions", statement, half, "wrong factor"),),
    )


def _cost() -> Check:
    def residual(per_frequency: int) -> Identity:
        def spent(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            n, d, t = (setting.shapes[name] for name in ("n", "d", "t"))
            dtype = jnp.result_type(float)
            X, w = jax.ShapeDtypeStruct((n, d), dtype), jax.ShapeDtypeStruct((t, d), dtype)
            kernel = kernels.Gaussian(1.0)
            lifted = flops.multiply_adds(lambda X, w: features.PairedFourier(kernel, w)(X), X, w)
            numbers = math.prod(jax.eval_shape(lambda X, w: features.PairedFourier(kernel, w)(X), X, w).shape)
            whole = flops.multiply_adds(lambda X: gram(kernel, X), X)
            return np.array([lifted / (n * d * t * per_frequency) - 1, numbers / (2 * n * t) - 1, whole / n**2 / d - 1])

        return Identity(spent)

    settings = tuple(
        Setting(f"n={n}, d={d}, t={t}", shapes={"n": n, "d": d, "t": t})
        for n, d, t in ((1000, 10, 50), (20_000, 256, 800))
    )
    return Check(
        printed=Form(residual(1), settings),
        controls=(Control("two products a frequency", residual(2), settings, "wrong cost"),),
    )


# ------------------------------------------------------------------------------------------------------------- features


def _variance(scope: Scope) -> Check:
    def holds(distance: bool) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            paired, shifted = sides.variances(key, setting, distance=distance)
            return [sides.at_most_one(paired / shifted, "the variance of the map with a tilde")]

        return Inequality(both)

    close = tuple(s for s in scope.pairs if s.numbers["K"] > 0.5)
    if not close:  # of a table without close rows
        close = places.pairs_of(None)[:2]
    return Check(
        printed=Form(holds(distance=False), scope.pairs),
        controls=(Control("the squared distances of close points", holds(distance=True), close, "wrong operator"),),
    )


def _both_variances(scope: Scope) -> Check:
    def residual(closed: Callable[[float], tuple[float, float]]) -> Identity:
        def relative(key: jax.Array, setting: Setting) -> np.ndarray:
            K = setting.numbers["K"]
            found = np.asarray(sides.variances(key, setting, distance=True)) / (2 - 2 * K) ** 2
            return sides.as_residual(found / np.asarray(closed(K)) - 1)

        return Identity(relative)

    def both(K: float) -> tuple[float, float]:
        return (1 + K) ** 2, 0.5 + 0.75 * (1 + K) ** 2

    def swapped(K: float) -> tuple[float, float]:
        paired, shifted = both(K)
        return shifted, paired

    return Check(
        corrected=Form(residual(both), scope.pairs),
        controls=(Control("the two maps exchanged", residual(swapped), scope.pairs, "swapped constants"),),
    )


def _all_points(scope: Scope) -> Check:
    def bound(setting: Setting) -> Bound:
        s = setting.numbers
        failure = s["n"] * (s["n"] - 1) * math.exp(-s["t"] * s["eps"] ** 2 / 2)
        return Bound(s["eps"], 1 - failure, failure < 1, "chen2016, Section 1.1 (explicit)")

    def shape(setting: Setting) -> Bound:
        s = setting.numbers
        return Bound(math.sqrt(math.log(s["n"] / s["delta"]) / s["t"]), 1 - s["delta"], True, "chen2016, Section 1.1")

    def at(sets: Sequence[places.PointSet]) -> tuple[Setting, ...]:
        settings = []
        for name, n, arrays in sets:
            for delta in scope.deltas:
                t = math.ceil(2 / 0.3**2 * math.log(n * (n - 1) / delta) + 1e-9)
                numbers = {"eps": 0.3, "t": float(t), "n": float(n), "delta": delta}
                settings.append(Setting(f"{name}, delta={delta:g}, t={t}", arrays, numbers, {"rows": t}))
        return tuple(settings)

    settings = at(scope.people)
    # Not on a table, whose rows may be so close that no number of frequencies is too small.
    few = controls.changed(at(places.point_sets(None))[-1:], "a sixteenth of the frequencies", shapes={"part": 16})
    return Check(
        printed=Form(Calibrated(trials.kernel_error, shape, 1.0, 2.0), settings),
        corrected=Form(Tail(trials.kernel_error, bound), settings),
        controls=(Control("a sixteenth of the frequencies", Tail(trials.kernel_error, bound), few, "wrong factor"),),
    )


def additive_ball(*, eps: float, num_frequencies: float, dim: int, diameter: float, tau: float) -> Bound:
    """Bound sup |Khat - K| over all differences of at most `diameter` by eps: Theorem D of the derivations."""
    b = (math.sqrt(dim) + math.sqrt(2 * tau)) / math.sqrt(num_frequencies)
    failure = math.inf
    for share in np.linspace(0.05, 0.95, 37):
        spacing = eps * (1 - share) / (1 + b + math.exp(-0.5))
        points = dim * math.log1p(2 * diameter / spacing)
        failure = min(failure, 2 * math.exp(min(points - num_frequencies * (share * eps) ** 2 / 2, 700.0)))
    failure += math.exp(-tau)
    return Bound(eps, max(1 - failure, 0.0), failure < 1, "jaxkern, Theorem D of chen2016")


def _additive_ball(scope: Scope) -> Check:
    def one_feature(setting: Setting) -> tuple[float, float]:
        """A single frequency w has cos(<w, Delta>) = -1 somewhere in the ball if |w| M >= pi, where K > .99."""
        s = setting.numbers
        return float(stats.chi2.logsf((math.pi / s["M"]) ** 2, s["d"])), math.log(s["delta"])

    def bound(setting: Setting) -> Bound:
        s = setting.numbers
        return additive_ball(
            eps=s["eps"], num_frequencies=s["t"], dim=int(s["d"]), diameter=s["M"], tau=math.log(2 / s["delta"])
        )

    def one_pair(setting: Setting) -> Bound:
        return Bound(setting.numbers["eps"], 1 - setting.numbers["delta"], True, "Hoeffding for one pair")

    def place(dim: int, diameter: float, eps: float, delta: float, t: int) -> Setting:
        numbers = {"d": float(dim), "M": diameter, "eps": eps, "t": float(t), "delta": delta}
        name = f"d={dim}, M={diameter:g}, eps={eps:g}, delta={delta:g}, t={t}"
        return Setting(name, ball_population(dim, diameter), numbers, {"rows": t})

    printed = []
    for M in (1e-2, 1e-3):
        d = math.ceil(2 * (math.pi / M) ** 2)
        numbers = {"M": M, "d": float(d), "delta": 0.05}
        printed.append(Setting(f"M={M:g}, d={d}, delta=0.05: a negative number of features", numbers=numbers))
    corrected = []
    for dim, diameter in ((1, 5.0), (2, 3.0)):
        for delta in scope.deltas:
            options = {"eps": 0.3, "dim": dim, "diameter": diameter, "tau": math.log(2 / delta)}
            t = places.fewest(lambda t, o=options: additive_ball(num_frequencies=t, **o), delta)  # type: ignore[misc]
            corrected.append(place(dim, diameter, 0.3, delta, t))
    single = math.ceil(2 / 0.3**2 * math.log(2 / 0.05))
    return Check(
        printed=Form(Exact(one_feature), tuple(printed)),
        corrected=Form(Tail(trials.kernel_error_over_ball, bound), tuple(corrected)),
        controls=(
            Control(
                "the frequencies of a single pair, in 20 dimensions",
                Tail(trials.kernel_error_over_ball, one_pair),
                (place(20, 6.0, 0.3, 0.05, single),),
                "term left out",
            ),
        ),
    )


def ball_population(dim: int, diameter: float) -> dict[str, jax.Array]:
    """Return directions over a half sphere (the axes and 200 more, but for a line) and 32 radii up to the diameter."""
    more = np.random.default_rng(4).standard_normal((200, dim))
    directions = np.eye(1) if dim == 1 else np.concatenate([np.eye(dim), more])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return {"directions": places.real(directions), "radii": places.real(diameter * np.linspace(1 / 32, 1, 32))}


def _unit_vectors(scope: Scope) -> Check:
    def residual(shifted: bool) -> Identity:
        def relations(key: jax.Array, setting: Setting) -> np.ndarray:
            kernel, pair = setting.population["kernel"], setting.population["pair"]
            draw = features.shifted_fourier if shifted else features.paired_fourier
            phi = draw(key, kernel, pair.shape[1], num_frequencies=setting.shapes["rows"], dtype=pair.dtype)
            x, y = phi(pair)
            inner = float(jnp.vdot(x, y, precision=HIGHEST))
            squared, K = float(jnp.sum((x - y) ** 2)), setting.numbers["K"]
            lengths = [float(jnp.sum(v**2)) - 1 for v in (x, y)]
            return sides.as_residual(
                [*lengths, abs(K - inner) - abs(2 - 2 * K - squared) / 2, squared - (2 - 2 * inner)]
            )

        return Identity(relations)

    return Check(
        printed=Form(residual(shifted=False), scope.pairs),
        controls=(Control("shifted features", residual(shifted=True), scope.pairs, "wrong operator"),),
    )


def _gram_error() -> Check:
    def holds(share: float) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            X, kernel = places.real(setting.population), kernels.Gaussian(1.0)
            phi = features.paired_fourier(key, kernel, X.shape[1], num_frequencies=10, dtype=X.dtype)
            Z = np.asarray(phi(X), float)
            E = np.asarray(gram(kernel, X), float) - Z @ Z.T
            D = sides.all_distances(X)
            images = np.sum((Z[:, None] - Z[None]) ** 2, axis=2)
            right = share / 2 * np.sum(np.abs(D**2 - images))
            norms = (np.sum(np.abs(E)), np.max(np.sum(np.abs(E), axis=0)), np.sum(np.abs(np.linalg.eigvalsh(E))))
            return [sides.at_most_one(norm / right, "chen2016, Section 1.2") for norm in norms]

        return Inequality(both)

    settings = (Setting("12 points", _points(12, 1.0)),)
    return Check(
        printed=Form(holds(1.0), settings),
        controls=(Control("a sum over unordered pairs", holds(0.5), settings, "wrong factor"),),
    )


def _minimum(scope: Scope) -> Check:
    angles = np.arange(24) * 2 * math.pi / 24
    curve = 0.5 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    training = np.concatenate([[[0.0, 0.0]], 0.45 * np.random.default_rng(2).uniform(-0.7, 0.7, (7, 2))])
    differences = places.real(training[:, None] - curve[None])
    population = {"differences": differences, "squared": jnp.sum(differences**2, axis=2)}

    def bound(setting: Setting) -> Bound:
        s = setting.numbers
        return fourier.ball(eps=s["eps"], num_frequencies=s["t"], dim=2, diameter=1.0, tau=s["tau"])

    settings = []
    for delta in scope.deltas:
        tau = math.log(6 / delta)
        t = places.fewest(
            lambda t, tau=tau: fourier.ball(eps=0.3, num_frequencies=t, dim=2, diameter=1.0, tau=tau),  # type: ignore[misc]
            delta,
        )
        numbers = {"eps": 0.3, "t": float(t), "tau": tau}
        settings.append(Setting(f"d=2, eps=0.3, delta={delta:g}, t={t}", population, numbers, {"rows": t}))
    statement = Tail(trials.minimum_error, bound)
    return Check(
        corrected=Form(statement, tuple(settings)),
        controls=(Control("one frequency, repeated", statement, controls.one_draw(settings[:1]), "reused key"),),
    )
