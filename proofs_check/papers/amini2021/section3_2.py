"""amini2021, Section 3.2: separations and Theorem 3, and Examples 3 and 4 on mean kernels; Theorems C and E."""

import dataclasses
import functools
import math
from collections.abc import Callable
from functools import partial
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
from proofs_check.papers.amini2021 import trials
from proofs_check.papers.amini2021.setup import (
    NOISE,
    SPHERE_DIM,
    SPHERE_POINTS,
    TAU,
    Inputs,
    Pairs,
    blocks,
    distances_on_spheres,
)
from proofs_check.papers.shared import (
    bound_of,
    check_of,
    lines,
    op_norm,
    real,
    rng_of,
    wrong,
)


def _separations(rng: np.random.Generator, shares: np.ndarray) -> tuple[float, float]:
    """Return gamma^2 and gamma~^2 of a random symmetric matrix of block means."""
    A = rng.standard_normal((len(shares), len(shares)))
    psi = real(A + A.T)
    variances = real(np.ones_like(A))
    population = concentration.population_parameters(psi, variances, real(shares))
    return float(population.gamma2), float(population.gamma_tilde2)


@sample("balanced")
def balanced_error(key: jax.Array, data: np.ndarray) -> np.ndarray:
    """R gamma~^2 over gamma^2, minus 1."""
    gamma2, gamma_tilde2 = _separations(rng_of(key), data)
    return np.array([gamma_tilde2 * len(data) / gamma2 - 1])


def separation_ratios(
    key: jax.Array, data: np.ndarray, lower: Callable[[np.ndarray], float] = np.min
) -> Pairs:
    """gamma~^2 over gamma^2, between the smallest share and 1/2."""
    rng = rng_of(key)
    pairs = []
    for _ in range(30):
        gamma2, gamma_tilde2 = _separations(rng, data)
        ratio = gamma_tilde2 / gamma2
        pairs += [(lower(data), ratio), (ratio, 0.5)]
    return lines(pairs, "amini2021, (22)")


def eq22() -> Check:
    equal = (Setting("R=3, equal shares", np.full(3, 1 / 3)),)
    three = Setting("shares .5, .3, .2", np.array([0.5, 0.3, 0.2]))
    two = Setting("shares .9, .1", np.array([0.9, 0.1]))
    unequal = (three, two)
    balanced = Identity(balanced_error)
    largest = Inequality(partial(separation_ratios, lower=np.max))
    return Check(
        printed=Form(balanced, equal),
        corrected=Form(Inequality(separation_ratios), unequal),
        controls=(
            Control("unequal shares", balanced, unequal, "hypothesis broken"),
            Control("pi_max for pi_min", largest, unequal, "wrong operator"),
        ),
    )


def _clustered(model: trials.Model, deltas: tuple[float, ...]) -> tuple[Setting, ...]:
    """Return two clusters with failure probabilities exp(-t^2)."""
    settings = []
    for delta in deltas:
        numbers = {"t": math.sqrt(math.log(1 / delta))}
        settings.append(model.setting(f"delta={delta:g}", numbers, {"clusters": 2}))
    return tuple(settings)


@functools.cache
def _blocks_of(model: trials.Model, *, off_diagonal: bool) -> Any:
    """Return the parameters of the blocks of E K, which is computed when a bound first needs it."""
    labels = np.asarray(model.extra["labels"])
    return blocks(model.arrays["mean"], labels, off_diagonal=off_diagonal)


def _half(setting: Setting) -> float:
    """Return the largest misclassification rate of two clusters."""
    return 0.5


def _two_points(noise: float) -> trials.Model:
    n = SPHERE_POINTS
    d = SPHERE_DIM
    name = f"two points, noise {noise:g}"
    means = trials.two_centres(n, d, 5.0)
    model = trials.distances(name, means, noise / math.sqrt(d), d)
    return dataclasses.replace(model, extra={"labels": np.arange(n) % 2})


def thm3(inputs: Inputs) -> Check:
    model = _two_points(0.1)

    def bound(setting: Setting, as_printed: bool = False) -> Bound:
        """Return the bound for noise 0.1."""
        parameters = _blocks_of(model, off_diagonal=False)
        return concentration.misclassification(
            gamma2=float(parameters.gamma2),
            gamma_tilde2=float(parameters.gamma_tilde2),
            vbar2=float(parameters.vbar2),
            num_clusters=2,
            lipschitz=model.lipschitz,
            noise=0.1,
            op_norm=1.0,
            dim=SPHERE_DIM,
            num_points=SPHERE_POINTS,
            t=setting.numbers["t"],
            as_printed=as_printed,
        )

    tail = partial(Tail, trials.misclassified)
    settings = _clustered(model, inputs.deltas)
    noisy = _clustered(_two_points(30.0), inputs.deltas)
    return Check(
        printed=Form(tail(partial(bound, as_printed=True), _half), settings),
        corrected=Form(tail(bound, _half), settings),
        controls=(
            Control("three hundred times the noise", tail(bound), noisy, "wrong law"),
        ),
    )


def misclassification_operator(inputs: Inputs) -> Check:
    model = distances_on_spheres((1.0, 10.0), 0.5, SPHERE_DIM)
    labels = model.extra["labels"]

    @functools.cache
    def mean_gap() -> float:
        psi = np.asarray(_blocks_of(model, off_diagonal=True).psi, np.float64)
        mean = np.asarray(model.arrays["mean"], np.float64)
        return op_norm(mean - psi[labels][:, labels]) / SPHERE_POINTS

    def bound(setting: Setting) -> Bound:
        """Return the bound for the radii 1 and 10."""
        parameters = _blocks_of(model, off_diagonal=True)
        numbers = setting.numbers
        return concentration.misclassification_operator_distance(
            gamma2=float(parameters.gamma2),
            gamma_tilde2=float(parameters.gamma_tilde2),
            mean_gap=mean_gap(),
            num_clusters=2,
            lipschitz=numbers["lipschitz"],
            omega=numbers["omega"],
            scale=numbers["scale"],
            num_points=SPHERE_POINTS,
            t=numbers["t"],
        )

    first = inputs.deltas[:1]
    same = distances_on_spheres((10.0, 10.0), 0.5, SPHERE_DIM)
    tail = partial(Tail, trials.misclassified, bound)
    return Check(
        corrected=Form(tail(_half), _clustered(model, first)),
        controls=(
            Control(
                "both clusters on one sphere",
                tail(),
                _clustered(same, first),
                "wrong law",
            ),
        ),
    )


def sec3_2_euclidean(inputs: Inputs) -> Check:
    n = trials.POINTS
    size = 60.0
    means = size * np.eye(2, 64)[np.arange(n) % 2]
    rate = bound_of(
        concentration.misclassification_operator_inner_product,
        num_points="n",
        num_clusters=2,
    )

    def bound(setting: Setting) -> Bound:
        """Return what |A_R - K* / n|_F may be, from the rate that follows from it: 16 |A_R - K* / n|_F^2 / gamma^2."""
        right = rate(setting)
        # The control changes |M| and not gamma^2.
        return dataclasses.replace(right, value=math.sqrt(right.value * size**4 / 16))

    def settings(mean_norm: float) -> tuple[Setting, ...]:
        listed = []
        for dim in (4, 64):
            variances = np.tile(np.arange(64.0) < dim, (n, 1)) * 1.0
            name = f"two means of length 60, d={dim}"
            model = trials.Model(name, kernels.Linear(), math.inf, means, variances)
            for delta in inputs.deltas:
                numbers = {
                    "mean_norm": mean_norm,
                    "mean_rank": 2.0,
                    "gamma2": size**4,
                    "gamma_tilde2": size**4 / 2,
                    "dim": float(dim),
                    "mean_gap": dim / n,
                    "u": math.sqrt(2 * math.log(3 / delta)),
                }
                setting = model.setting(f"delta={delta:g}", numbers, {"clusters": 2})
                listed.append(setting)
        return tuple(listed)

    tail = Tail(trials.truncation_error, bound)
    return Check(
        corrected=Form(tail, settings(size * math.sqrt(n / 2))),
        controls=(Control("without the means", tail, settings(0.0), "term left out"),),
    )


def theorem_3_settings() -> tuple[Setting, ...]:
    """Return constants, dimensions and variances within blocks at which Theorem 3 is evaluated."""
    steep = {"L": 1.0, "d": 10.0, "vbar2": 0.01}
    gaussian = {"L": math.exp(-0.5) / TAU, "d": 200.0, "vbar2": 1e-4}
    name = "L={L:.3g}, d={d:g}, vbar2={vbar2:g}"
    return tuple(
        Setting(name.format(**numbers), None, numbers) for numbers in (steep, gaussian)
    )


def theorem_3(
    lipschitz: float, dim: float, vbar2: float, as_printed: bool = False
) -> Bound:
    """Return Theorem 3 for two clusters of 400 points, gamma^2 = 0.3 and t = 1.5."""
    return concentration.misclassification(
        gamma2=0.3,
        gamma_tilde2=0.15,
        vbar2=vbar2,
        num_clusters=2,
        lipschitz=lipschitz,
        noise=NOISE,
        op_norm=1.0,
        dim=dim,
        num_points=400.0,
        t=1.5,
        as_printed=as_printed,
    )


def _slope_of_gaussian(r: float) -> float:
    return -r / TAU**2 * math.exp(-(r**2) / (2 * TAU**2))


def gaussian_theorem_3_error(d: float, vbar2: float, power: int = 2) -> np.ndarray:
    """F of Theorem 3 with the steepest slope of the Gaussian kernel, found by search, against (25)."""
    search = optimize.minimize_scalar(
        _slope_of_gaussian, bounds=(0, 4 * TAU), options={"xatol": 1e-10}
    )
    F = float(theorem_3(-search.fun, d, vbar2, as_printed=True).value) / 16
    far = 1 + 1.5 / math.sqrt(400.0)
    noise = NOISE**2 / TAU**power / d * far**2
    printed = 32 / 0.3 * (4 / math.e * noise + vbar2)
    return np.array([printed / F - 1])


def eq25() -> Check:
    return check_of(
        Identity,
        theorem_3_settings(),
        wrong("1 / tau for 1 / tau^2", "wrong power", power=1),
        corrected=gaussian_theorem_3_error,
    )
