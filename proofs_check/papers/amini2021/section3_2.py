"""amini2021, Section 3.2: separations, Theorem 3 and the steps of its proof; Theorem C."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy import optimize

from jaxkern import kernels
from jaxkern.bounds import Bound, concentration
from proofs_check.claim import (
    Check,
    Control,
    Form,
    Identity,
    Inequality,
    Setting,
    Tail,
    sample,
)
from proofs_check.papers import shared
from proofs_check.papers.amini2021 import laws, setup, trials
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.amini2021.section3_1 import leading
from proofs_check.papers.shared import (
    always,
    grid,
    listed,
    op_norm,
    parametrized,
    real,
    rng_of,
)


def _separations() -> Check:
    def parameters(rng: np.random.Generator, shares: np.ndarray) -> tuple[float, float]:
        A = rng.standard_normal((len(shares), len(shares)))
        psi = A + A.T
        population = concentration.population_parameters(
            real(psi), real(np.ones_like(psi)), real(shares)
        )
        return float(population.gamma2), float(population.gamma_tilde2)

    @sample("balanced")
    def balanced(key: jax.Array, setting: Setting) -> np.ndarray:
        gamma2, gamma_tilde2 = parameters(rng_of(key), setting.data)
        return np.array([gamma_tilde2 * len(setting.data) / gamma2 - 1])

    def sides(lower: Callable[[np.ndarray], float]) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            rng, shares, source = rng_of(key), setting.data, "amini2021, (22)"
            pairs = []
            for _ in range(30):
                gamma2, gamma_tilde2 = parameters(rng, shares)
                ratio = gamma_tilde2 / gamma2
                pairs += [
                    laws.at_least(ratio, always(lower(shares), source)),
                    (ratio, always(0.5, source)),
                ]
            return pairs

        return Inequality(check)

    alike = (Setting("R=3, equal shares", np.full(3, 1 / 3)),)
    unlike = (
        Setting("shares .5, .3, .2", np.array([0.5, 0.3, 0.2])),
        Setting("shares .9, .1", np.array([0.9, 0.1])),
    )
    return Check(
        printed=Form(Identity(balanced), alike),
        corrected=Form(sides(np.min), unlike),
        controls=(
            Control("unequal shares", Identity(balanced), unlike, "hypothesis broken"),
            Control("pi_max for pi_min", sides(np.max), unlike, "wrong operator"),
        ),
    )


def _clustered(model: trials.Model, deltas: tuple[float, ...]) -> tuple[Setting, ...]:
    """Return two clusters with failure probabilities exp(-t^2)."""
    return tuple(
        model.setting(
            f"delta={delta:g}", {"t": math.sqrt(math.log(1 / delta))}, {"clusters": 2}
        )
        for delta in deltas
    )


def _theorem_3(inputs: setup.Inputs) -> Check:
    n, d = setup.SPHERE_POINTS, setup.SPHERE_DIM
    labels = np.arange(n) % 2

    def model(noise: float) -> trials.Model:
        name, means = f"two points, noise {noise:g}", trials.two_centres(n, d, 5.0)
        return dataclasses.replace(
            trials.distances(name, means, noise / math.sqrt(d), d),
            extra={"labels": labels},
        )

    claimed = model(0.1)

    @functools.cache
    def separations() -> dict[str, float]:
        parameters = setup.blocks(claimed.arrays["mean"], labels, off_diagonal=False)
        return {
            name: float(getattr(parameters, name))
            for name in ("gamma2", "gamma_tilde2", "vbar2")
        }

    @parametrized(
        functools.partial(Tail, trials.misclassified), ceiling=lambda setting: 0.5
    )
    def tail(setting: Setting, as_printed: bool) -> Bound:
        given = {
            "num_clusters": 2,
            "lipschitz": claimed.lipschitz,
            "noise": 0.1,
            "op_norm": 1.0,
            "dim": d,
        }
        given |= {"num_points": n, "t": setting.numbers["t"], **separations()}
        return concentration.misclassification(**given, as_printed=as_printed)

    settings, noisy = (
        _clustered(claimed, inputs.deltas),
        _clustered(model(30.0), inputs.deltas),
    )
    control = Tail(trials.misclassified, tail(False).bound)
    return Check(
        printed=Form(tail(True), settings),
        corrected=Form(tail(False), settings),
        controls=(
            Control("three hundred times the noise", control, noisy, "wrong law"),
        ),
    )


def _operator(inputs: setup.Inputs) -> Check:
    n, labels = setup.SPHERE_POINTS, np.arange(setup.SPHERE_POINTS) % 2
    claimed = setup.distances_on_spheres((1.0, 10.0), 0.5, setup.SPHERE_DIM)

    @functools.cache
    def separations() -> dict[str, float]:
        parameters = setup.blocks(claimed.arrays["mean"], labels, off_diagonal=True)
        mean, psi = (
            np.asarray(claimed.arrays["mean"], np.float64),
            np.asarray(parameters.psi, np.float64),
        )
        gap = op_norm(mean - psi[labels][:, labels]) / n
        return {
            "gamma2": float(parameters.gamma2),
            "gamma_tilde2": float(parameters.gamma_tilde2),
            "mean_gap": gap,
        }

    def bound(setting: Setting) -> Bound:
        """Return the bound for the radii that are claimed."""
        given = {
            name: setting.numbers[name] for name in ("lipschitz", "omega", "scale", "t")
        } | separations()
        return concentration.misclassification_operator_distance(
            **given, num_clusters=2, num_points=n
        )

    settings = _clustered(claimed, inputs.deltas[:1])
    one_sphere = _clustered(
        setup.distances_on_spheres((10.0, 10.0), 0.5, setup.SPHERE_DIM),
        inputs.deltas[:1],
    )
    control = Tail(trials.misclassified, bound)
    return Check(
        corrected=Form(
            Tail(trials.misclassified, bound, lambda setting: 0.5), settings
        ),
        controls=(
            Control("both clusters on one sphere", control, one_sphere, "wrong law"),
        ),
    )


def _theorem_3_settings() -> tuple[Setting, ...]:
    rows = ((1.0, 10.0, 0.01), (math.exp(-0.5) / setup.TAU, 200.0, 1e-4))
    return listed("L={L:.3g}, d={d:g}, vbar2={vbar2:g}", "L d vbar2", rows)


def _theorem_3_arguments(setting: Setting) -> dict[str, Any]:
    n = setting.numbers
    given = {
        "gamma2": 0.3,
        "gamma_tilde2": 0.15,
        "num_clusters": 2,
        "op_norm": 1.0,
        "num_points": 400.0,
        "t": 1.5,
    }
    return {
        **given,
        "lipschitz": n["L"],
        "noise": setup.NOISE,
        "dim": n["d"],
        "vbar2": n["vbar2"],
    }


def _eq25() -> Check:
    @parametrized(Identity)
    def residual(setting: Setting, power: int = 2) -> np.ndarray:
        """F of Theorem 3 with the steepest slope of the Gaussian kernel, found by search, against (25)."""

        def falls(r: float) -> float:
            return -r / setup.TAU**2 * math.exp(-(r**2) / (2 * setup.TAU**2))

        steepest = -optimize.minimize_scalar(
            falls, bounds=(0, 4 * setup.TAU), options={"xatol": 1e-10}
        ).fun
        given = _theorem_3_arguments(setting) | {"lipschitz": steepest}
        F = float(concentration.misclassification(**given, as_printed=True).value) / 16
        noise = (
            setup.NOISE**2
            / setup.TAU**power
            / given["dim"]
            * (1 + given["t"] / math.sqrt(given["num_points"])) ** 2
        )
        return np.array(
            [32 / given["gamma2"] * (4 / math.e * noise + given["vbar2"]) / F - 1]
        )

    settings = _theorem_3_settings()
    return Check(
        corrected=Form(residual(), settings),
        controls=(
            Control(
                "1 / tau for 1 / tau^2", residual(power=1), settings, "wrong power"
            ),
        ),
    )


def _euclidean(inputs: setup.Inputs) -> Check:
    n, size = trials.POINTS, 60.0
    means = size * np.eye(2, 64)[np.arange(n) % 2]
    known = {
        "mean_norm": size * math.sqrt(n / 2),
        "mean_rank": 2.0,
        "gamma2": size**4,
        "gamma_tilde2": size**4 / 2,
    }

    def bound(setting: Setting) -> Bound:
        """Return what |A_R - K* / n|_F may be, from the rate that follows from it: 16 |A_R - K* / n|_F^2 / gamma^2."""
        rate = shared.bound_of(
            concentration.misclassification_operator_inner_product,
            num_points="n",
            num_clusters=2,
        )(setting)
        return Bound(
            math.sqrt(rate.value * known["gamma2"] / 16),
            rate.probability,
            rate.valid,
            rate.source,
        )

    def settings(**numbers: float) -> tuple[Setting, ...]:
        made = []
        for dim in (4, 64):
            model = trials.Model(
                f"two means of length 60, d={dim}",
                kernels.Linear(),
                math.inf,
                means,
                (np.arange(64) < dim) + 0.0 * means,
            )
            for delta in inputs.deltas:
                given = {
                    "dim": float(dim),
                    "mean_gap": dim / n,
                    "u": math.sqrt(2 * math.log(3 / delta)),
                }
                made.append(
                    model.setting(
                        f"delta={delta:g}", known | given | numbers, {"clusters": 2}
                    )
                )
        return tuple(made)

    tail = Tail(trials.truncation_error, bound)
    return Check(
        corrected=Form(tail, settings()),
        controls=(
            Control(
                "without the means", tail, settings(mean_norm=0.0), "term left out"
            ),
        ),
    )


def _block_matrix() -> Check:
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2])

    def residual(off_diagonal: bool) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """|E K - K*|_F^2 / n^2 against vbar^2, and n |q_k - q_l|^2 for the rows q of K* / n against D_kl."""
            n = len(labels)
            A = rng_of(key).standard_normal((n, n))
            mean = A + A.T
            parameters = setup.blocks(mean, labels, off_diagonal=off_diagonal)
            K = np.asarray(parameters.psi, np.float64)[labels][:, labels]
            gap = np.sum((mean - K) ** 2) / n**2 / float(parameters.vbar2) - 1
            rows = K[[0, 4, 7]] / n
            apart = n * np.sum((rows[:, None] - rows) ** 2, axis=2)
            return np.append(
                (apart - np.asarray(parameters.separations, np.float64)).ravel()
                / apart.max(),
                gap,
            )

        return Identity(check)

    settings = (Setting("n=10, three clusters"),)
    return Check(
        printed=Form(residual(False), settings),
        controls=(
            Control(
                "averages off the diagonal", residual(True), settings, "wrong operator"
            ),
        ),
    )


def _error() -> Check:
    @parametrized(Inequality)
    def sides(setting: Setting, as_printed: bool = False, factor: float = 1.0) -> Pairs:
        """2 (w + b) at the bounds of w and b that the proof has, in units of itself, against gamma^2 F / 8 R."""
        given = _theorem_3_arguments(setting)
        n, scale = given["num_points"], given["noise"] / math.sqrt(given["dim"])
        deviation = (
            2
            * given["lipschitz"]
            * scale
            * (math.sqrt(2) * n + math.sqrt(2 * n) * given["t"])
        )
        left = 2 * ((deviation / n) ** 2 + given["vbar2"])
        theorem = concentration.misclassification(**given, as_printed=as_printed)
        right = (
            float(theorem.value) / 16 * given["gamma2"] / (8 * given["num_clusters"])
        )
        return [(1.0, always(factor * right / left, "amini2021, (40)"))]

    settings = _theorem_3_settings()
    return Check(
        printed=Form(sides(as_printed=True), settings),
        corrected=Form(sides(), settings),
        controls=(
            Control("nine tenths of it", sides(factor=0.9), settings, "wrong factor"),
        ),
    )


def _truncation() -> Check:
    def sides(constant: float | None, as_printed: bool = False) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            rank, rng = setting.shapes["R"], rng_of(key)
            right = concentration.truncation(
                spectral=1.0, num_clusters=rank, as_printed=as_printed
            )
            if constant is not None:
                right = always(constant * math.sqrt(rank), right.source)
            attained = (
                np.kron(np.eye(rank), np.diag([1 + 1e-9, 1.0])),
                np.kron(np.eye(rank), np.diag([0.0, 2.0])),
            )
            cases: list[tuple[np.ndarray, np.ndarray]] = [attained]
            for _ in range(20):
                V, noise = rng.standard_normal((6, rank)), rng.standard_normal((6, 6))
                low_rank = V @ np.diag(rng.choice([-1.0, 1.0], rank)) @ V.T
                cases.append((low_rank + noise + noise.T, low_rank))
            pairs = []
            for A, B in cases:
                values, vectors = leading(A, rank)
                left = float(np.linalg.norm((vectors * values) @ vectors.T - B))
                pairs.append((left / op_norm(A - B), right))
            return pairs

        return Inequality(check)

    settings = grid("R={R}", shapes="R", R=(1, 2, 3))
    return Check(
        printed=Form(sides(None, True), settings),
        corrected=Form(sides(None), settings),
        controls=(Control("2.2 for sqrt(5)", sides(2.2), settings, "wrong factor"),),
    )


def _eigengap() -> Check:
    @parametrized(Inequality)
    def sides(key: jax.Array, setting: Setting, factor: float = 1.0) -> Pairs:
        """|A_R - A'_r|_F over |A - A'|: where the bound is attained in the limit, and for random matrices."""
        r, R, rng = setting.shapes["r"], setting.shapes["R"], rng_of(key)
        first, n = (
            np.diag([1.0] * r + [0.0] * R),
            r + R,
        )  # noise from each leading vector to another, and on the rest
        attained = 1e-6 * (
            np.eye(n, k=R)
            + np.eye(n, k=-R)
            + np.diag([0.0] * r + [1.0] * (R - r) + [0.0] * r)
        )
        cases = [(first, attained)]
        for size in np.geomspace(0.01, 0.4, 20):
            noise, rest = rng.standard_normal((2, n, n))
            cases.append(
                (
                    first + (rest + rest.T) / (10 * n),
                    size * (noise + noise.T) / op_norm(noise + noise.T),
                )
            )
        pairs = []
        for mean, noise in cases:
            (values, vectors), (kept, basis) = (
                leading(mean, r + 1),
                leading(mean + noise, R),
            )
            left = (basis * kept) @ basis.T - (vectors[:, :r] * values[:r]) @ vectors[
                :, :r
            ].T
            sizes = {
                "eigenvalue": abs(values[r - 1]),
                "next_eigenvalue": abs(values[r]),
                "spectral": op_norm(noise),
            }
            right = concentration.truncation_eigengap(**sizes, rank=r, num_clusters=R)
            pairs.append(
                (
                    float(np.linalg.norm(left)) / op_norm(noise),
                    laws.rescaled(right, factor / op_norm(noise)),
                )
            )
        return pairs

    settings = listed(
        "r={r}, R={R}", "r R", ((1, 1), (2, 2), (1, 3), (2, 3)), shapes="r R"
    )
    return Check(
        corrected=Form(sides(), settings),
        controls=(
            Control("99 per cent of it", sides(factor=0.99), settings, "wrong factor"),
        ),
    )


def _kmeans() -> Check:
    n = 14
    labels = np.repeat([0, 1], n // 2)
    psi = np.array([[1.0, 0.2], [0.2, 0.8]])
    separation = float(np.sum((psi[0] - psi[1]) ** 2) / 2)
    splits = np.array(list(itertools.product([0, 1], repeat=n - 1)))
    splits = np.concatenate([np.zeros((len(splits), 1), int), splits], axis=1)
    wrong = np.minimum(
        np.mean(splits != labels, axis=1), np.mean(splits == labels, axis=1)
    )

    def worst_rate(rows: np.ndarray, factor: float) -> float:
        """Return the largest misclassification rate of two clusters whose cost is within a factor of the least."""
        G = rows @ rows.T
        costs = np.full(len(splits), np.trace(G))
        for members in (splits, 1 - splits):
            sizes = members.sum(axis=1)
            costs -= np.einsum(
                "si,ij,sj->s", members, G, members, optimize=True
            ) / np.maximum(sizes, 1)
        return float(np.max(wrong[costs <= factor * costs.min() + 1e-12]))

    def sides(constant: float, as_printed: bool = False) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            factor, rng = setting.numbers["factor"], rng_of(key)
            rows = psi[labels][:, labels] / n
            pairs = []
            for size, spread in itertools.product(
                np.linspace(0.02, 0.3, 30), (False, True)
            ):
                step = rng.standard_normal((n, n)) if spread else np.zeros((n, n))
                if not spread:  # all of it on one row, towards the other centre
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
                    pairs.append(
                        (
                            worst_rate(rows + step, factor),
                            laws.rescaled(right, constant),
                        )
                    )
            return pairs

        return Inequality(check)

    settings = grid("two clusters of 7, kappa={factor:g}", factor=(1.0, 1.5))
    return Check(
        printed=Form(sides(1.0, True), settings),
        corrected=Form(sides(1.0), settings),
        controls=(Control("a fifth of it", sides(0.2), settings[:1], "wrong factor"),),
    )
