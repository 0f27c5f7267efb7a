"""amini2021: Algorithm 1, Theorem 3 and the steps of its proof, and the diagonal of the mean kernel (Section 3)."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import kernels
from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Check, Control, Form, Inequality, Setting, Tail
from proofs_check.papers.amini2021 import exact
from proofs_check.papers.amini2021 import trials as t
from proofs_check.papers.amini2021.exact import Pairs
from proofs_check.papers.amini2021.places import Scope
from proofs_check.papers.shared import always

PAPER = "amini2021"

MOST_POINTS, MOST_DIM = 96, 256


def _clusters(model: t.Model, labels: np.ndarray, label: str, numbers: dict[str, float]) -> Setting:
    """Return a setting in which points around the means of a model are clustered."""
    place = model.setting(label, numbers, {"clusters": int(labels.max()) + 1})
    population = t.OnUse(lambda: {**model.population, "labels": jnp.asarray(labels, jnp.int32)})
    return Setting(place.name, population, place.numbers, place.shapes)


def _spheres(radii: tuple[float, float], noise: float, dim: int) -> t.Model:
    """Return points on two spheres of R^dim with noise, in rows of MOST_DIM numbers, and the kernel |x - y|."""
    rows = np.random.default_rng(41).standard_normal((MOST_POINTS, MOST_DIM)) * (np.arange(MOST_DIM) < dim)
    lengths = np.array(radii)[np.arange(MOST_POINTS) % 2] / np.linalg.norm(rows, axis=1)
    name = f"spheres of radii {radii[0]:g} and {radii[1]:g}, noise {noise:g}, d={dim}"
    return t.distances(name, lengths[:, None] * rows, noise / math.sqrt(dim), dim)


def _blocks(model: t.Model, labels: np.ndarray, *, off_diagonal: bool) -> Any:
    mean = model.population["mean"]
    count = int(labels.max()) + 1
    return concentration.block_parameters(mean, jnp.asarray(labels), num_clusters=count, off_diagonal=off_diagonal)


# ---------------------------------------------------------------------------------------------------------- Theorem 3


def _theorem_3(scope: Scope) -> Check:
    n, d = 64, 64
    labels = np.arange(n) % 2

    def model(noise: float) -> t.Model:
        return t.gaussian(f"two points, noise {noise:g}", t.two_centres(n, d, 5.0), noise)

    said = model(0.1)

    @functools.cache
    def separations() -> dict[str, float]:
        found = _blocks(said, labels, off_diagonal=False)
        return {name: float(getattr(found, name)) for name in ("gamma2", "gamma_tilde2", "vbar2")}

    def bound(as_printed: bool) -> Callable[[Setting], Bound]:
        return lambda setting: concentration.misclassification(
            **separations(),
            num_clusters=2,
            lipschitz=said.lipschitz,
            noise=0.1,
            op_norm=1.0,
            dim=d,
            num_points=n,
            t=setting.numbers["t"],
            as_printed=as_printed,
        )

    def places(actual: t.Model) -> tuple[Setting, ...]:
        return tuple(
            _clusters(actual, labels, f"delta={delta:g}", {"t": math.sqrt(math.log(1 / delta))})
            for delta in scope.deltas
        )

    settings = places(said)
    return Check(
        printed=Form(Tail(t.misclassified, bound(True), lambda setting: 0.5), settings),
        corrected=Form(Tail(t.misclassified, bound(False), lambda setting: 0.5), settings),
        controls=(
            Control("sixty times the noise", Tail(t.misclassified, bound(False)), places(model(6.0)), kind="wrong law"),
        ),
    )


def _operator(scope: Scope) -> Check:
    n, labels = MOST_POINTS, np.arange(MOST_POINTS) % 2
    said = [_spheres((1.0, 10.0), noise, MOST_DIM) for noise in (0.2, 0.5)]

    @functools.cache
    def separations(model: t.Model) -> dict[str, float]:
        found = _blocks(model, labels, off_diagonal=True)
        mean, psi = np.asarray(model.population["mean"], np.float64), np.asarray(found.psi, np.float64)
        gap = float(np.linalg.norm(mean - psi[labels][:, labels], 2)) / n
        return {"gamma2": float(found.gamma2), "gamma_tilde2": float(found.gamma_tilde2), "mean_gap": gap}

    def bound(setting: Setting) -> Bound:
        """Return the bound for the radii that are claimed and the noise of the setting."""
        given = {name: setting.numbers[name] for name in ("lipschitz", "omega", "scale", "t")}
        (model,) = (model for model in said if model.numbers["scale"] == given["scale"])
        given |= separations(model)
        return concentration.misclassification_operator_distance(**given, num_clusters=2, num_points=n)

    def places(actual: t.Model) -> tuple[Setting, ...]:
        return tuple(
            _clusters(actual, labels, f"delta={delta:g}", {"t": math.sqrt(math.log(1 / delta))})
            for delta in scope.deltas[:1]
        )

    alike = _spheres((10.0, 10.0), 0.5, MOST_DIM)  # both clusters on one sphere: their labels mean nothing
    return Check(
        corrected=Form(Tail(t.misclassified, bound, lambda setting: 0.5), (*places(said[0]), *places(said[1]))),
        controls=(
            Control("both clusters on one sphere", Tail(t.misclassified, bound), places(alike), kind="wrong law"),
        ),
    )


def _recovery() -> Check:
    def place(dim: int) -> Setting:
        return _clusters(_spheres((5.0, 10.0), 1.5, dim), np.arange(MOST_POINTS) % 2, "two clusters", {})

    def bound(setting: Setting) -> Bound:
        return Bound(0.02, 0.9, True, "amini2021, Section 3.5")

    return Check(
        printed=Form(Tail(t.misclassified, bound, lambda setting: 0.5), (place(32), place(256))),
        controls=(Control("in the plane", Tail(t.misclassified, bound), (place(2),), kind="hypothesis broken"),),
    )


# ------------------------------------------------------------------------------------------------- steps of the proof


def _truncated(A: np.ndarray, rank: int) -> np.ndarray:
    values, vectors = np.linalg.eigh(A)
    kept = np.argsort(-np.abs(values))[:rank]
    return (vectors[:, kept] * values[kept]) @ vectors[:, kept].T


def _truncation() -> Check:
    def sides(constant: float | None, as_printed: bool = False) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            rank = setting.shapes["R"]
            rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
            attained = np.kron(np.eye(rank), np.diag([1 + 1e-9, 1.0])), np.kron(np.eye(rank), np.diag([0.0, 2.0]))
            cases: list[tuple[np.ndarray, np.ndarray]] = [attained]
            for _ in range(20):
                V, noise = rng.standard_normal((6, rank)), rng.standard_normal((6, 6))
                low_rank = V @ np.diag(rng.choice([-1.0, 1.0], rank)) @ V.T
                cases.append((low_rank + noise + noise.T, low_rank))
            pairs = []
            for A, B in cases:
                spectral = float(np.linalg.norm(A - B, 2))
                right = concentration.truncation(spectral=1.0, num_clusters=rank, as_printed=as_printed)
                if constant is not None:
                    right = always(constant * math.sqrt(rank), right.source)
                pairs.append((float(np.linalg.norm(_truncated(A, rank) - B)) / spectral, right))
            return pairs

        return Inequality(check)

    places = tuple(Setting(f"R={rank}", shapes={"R": rank}) for rank in (1, 2, 3))
    return Check(
        printed=Form(sides(None, True), places),
        corrected=Form(sides(None), places),
        controls=(Control("2 for sqrt(5)", sides(2.0), places, kind="wrong factor"),),
    )


def _kmeans() -> Check:
    n = 14
    labels = np.repeat([0, 1], n // 2)
    psi = np.array([[1.0, 0.2], [0.2, 0.8]])
    separation = float(np.sum((psi[0] - psi[1]) ** 2) / 2)
    splits = np.array(list(itertools.product([0, 1], repeat=n - 1)))
    splits = np.concatenate([np.zeros((len(splits), 1), int), splits], axis=1)
    wrong = np.minimum(np.mean(splits != labels, axis=1), np.mean(splits == labels, axis=1))

    def worst_rate(rows: np.ndarray, factor: float) -> float:
        """Return the largest misclassification rate of two clusters whose cost is within a factor of the least."""
        G = rows @ rows.T
        costs = np.full(len(splits), np.trace(G))
        for members in (splits, 1 - splits):
            sizes = members.sum(axis=1)
            costs -= np.einsum("si,ij,sj->s", members, G, members, optimize=True) / np.maximum(sizes, 1)
        return float(np.max(wrong[costs <= factor * costs.min() + 1e-12]))

    def sides(constant: float, as_printed: bool = False) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            factor = setting.numbers["factor"]
            rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
            rows = psi[labels][:, labels] / n
            pairs = []
            for size in np.linspace(0.02, 0.3, 30):
                for spread in (False, True):
                    step = np.zeros((n, n))
                    if spread:
                        step = rng.standard_normal((n, n))
                    else:  # all of it on one row, towards the other centre
                        step[0] = rows[-1] - rows[0]
                    step *= size * math.sqrt(separation / n) / np.linalg.norm(step) * 3
                    right = concentration.kmeans_step(
                        error=float(np.linalg.norm(step)),
                        gamma2=separation,
                        gamma_tilde2=separation / 2,
                        kmeans_factor=factor,
                        as_printed=as_printed,
                    )
                    if right.valid:
                        pairs.append((worst_rate(rows + step, factor), exact.rescaled(right, constant)))
            return pairs

        return Inequality(check)

    exactly, roughly = (
        Setting(f"two clusters of 7, kappa={factor:g}", numbers={"factor": factor}) for factor in (1.0, 1.5)
    )
    return Check(
        printed=Form(sides(1.0, True), (exactly, roughly)),
        corrected=Form(sides(1.0), (exactly, roughly)),
        controls=(Control("a fifth of it", sides(0.2), (exactly,), kind="wrong factor"),),
    )


# --------------------------------------------------------------------------------------------------------- point masses


def _point_masses() -> Check:
    def sides(*, printed: bool, factor: float = 1.0) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """n vbar^2 / (1 - Psi)^2, where Psi is the mean of the other entries of a diagonal block."""
            del key
            n, d = setting.shapes["n"], setting.shapes["d"]
            labels = np.arange(n) % 2
            means = t.two_centres(n, 1000, 10.0)
            model = t.Model("", kernels.Gaussian(2.0), t.lipschitz_gaussian(2.0), means, t.isotropic(means, 1.0, d))
            everything, others = (_blocks(model, labels, off_diagonal=flag) for flag in (False, True))
            unit = float(1 - others.psi[0, 0]) ** 2 / n
            found = float(everything.vbar2) / unit
            if printed:
                return [(found, always(0, "amini2021, Section 3.4"))]
            lower = always(factor * (1 - 2 / n), "amini2021, (26), the diagonal")
            return [exact.at_least(found, lower)]

        return Inequality(check)

    places = tuple(
        Setting(f"two points at distance 10, n={n}, d={d}", shapes={"n": n, "d": d}) for n, d in ((40, 50), (40, 1000))
    )
    return Check(
        printed=Form(sides(printed=True), places),
        corrected=Form(sides(printed=False), places),
        controls=(
            Control("1.02 times the lower bound", sides(printed=False, factor=1.02), places, kind="wrong factor"),
            Control("n_k for n_k - 1", sides(printed=False, factor=20 / 19), places, kind="n for n - 1"),
        ),
    )
