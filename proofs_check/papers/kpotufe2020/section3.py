"""kpotufe2020, Section 3: the random projection Theta, the sampling operator, and where Z K / (n sqrt(n d)) is from."""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import features, kernels, rkhs
from jaxkern.gram import gram
from proofs_check import controls
from proofs_check.claim import (
    Check,
    Control,
    Exact,
    Expectation,
    Form,
    Identity,
    Setting,
    sample,
)
from proofs_check.papers import operators as op
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.setup import Inputs
from proofs_check.papers.shared import grid, parametrized, real


@jax.jit
def _theta(
    key: jax.Array, kernel: Any, landmarks: jax.Array, f: rkhs.Function
) -> tuple[jax.Array, ...]:
    """Return Theta f, <f, Sigma^3 f>, and <f, Theta* images> for the images of the first function."""
    sigma = rkhs.Covariance(kernel, landmarks)
    theta = rkhs.RandomProjection(key, sigma, num_features=2 * landmarks.shape[0])
    images = theta(f)
    return (
        images,
        rkhs.inner(f, sigma(f, power=3)),
        rkhs.inner(f, theta.adjoint(images[0]))[0],
    )


def _eq2(inputs: Inputs) -> Check:
    @parametrized(Identity)
    def holds(key: jax.Array, setting: Setting, extra: int = 0) -> np.ndarray:
        """Theta f is linear in standard normal numbers, with the mean products <f, Sigma^3 f>: so it has that law."""
        kernel, landmarks, f = (setting.data[k] for k in ("kernel", "landmarks", "f"))
        n, (images, exact, product) = (
            landmarks.shape[0],
            map(np.asarray, _theta(key, kernel, landmarks, f)),
        )
        mean, apart = trials.mean_product(
            trials.normals(key, 2 * n, n, landmarks.dtype), images.T
        )
        error = (1 + extra / (2 * n)) * mean - exact
        back = product / np.sum(images[0] ** 2) - 1
        return np.concatenate(
            [error.ravel() / np.abs(exact).max(), apart.ravel(), np.ravel(back)]
        )

    return Check(
        printed=Form(holds(), inputs.literals),
        controls=(
            Control(
                "1 / (d - 1) for 1 / d", holds(extra=1), inputs.literals, "n for n - 1"
            ),
        ),
    )


def _no_identity() -> Check:
    """Chernoff: P(chi2_r <= B) <= exp(-(B/r - 1 - log(B/r)) r / 2) for B < r."""

    def probability(
        setting: Setting, degrees: float | None = None
    ) -> tuple[float, float]:
        r, B = setting.numbers["r"], setting.numbers["B"]
        log_small = stats.chi2.logcdf(B, r if degrees is None else degrees)
        return float(log_small), -(B / r - 1 - math.log(B / r)) * r / 2

    settings = grid("{r:g} coordinates, B={B:g}", B=(1.0, 10.0), r=(20.0, 60.0, 200.0))
    rank_one = Exact(lambda setting: probability(setting, 1.0))
    return Check(
        printed=Form(Exact(probability), settings),
        controls=(
            Control("a covariance of rank one", rank_one, settings, "wrong operator"),
        ),
    )


@sample("a sampled product")
def sampled_product(
    key: jax.Array, population: Mapping[str, jax.Array], numbers: Any
) -> jax.Array:
    """n times the squared errors of (3), summed over the u with u f = 1{x} / rho{x}^(1/2), x an atom: Pearson's sum."""
    weights = population["weights"]
    return numbers["n"] * jnp.sum(
        (op.shares(key, population, numbers["n"]) - weights) ** 2 / weights
    )


def _eq3(inputs: Inputs) -> Check:
    def residual(
        adjoint: Callable[[rkhs.SamplingOperator, jax.Array], jax.Array],
    ) -> Identity:
        @jax.jit
        def errors(
            key: jax.Array, kernel: Any, points: jax.Array, weights: jax.Array
        ) -> list[jax.Array]:
            key_u, key_f, key_beta = jax.random.split(key, 3)
            dtype = points.dtype
            u, f = (
                rkhs.Function(
                    kernel, points, jax.random.normal(k, (len(points),), dtype)
                )
                for k in (key_u, key_f)
            )
            integral = jnp.sum(weights * u(points) * f(points))
            # Sigma u = sum w_i u(x_i) K(., x_i), an integral that is a finite sum here.
            applied = rkhs.inner(rkhs.Function(kernel, points, weights * u(points)), f)
            size = jnp.sum(weights * jnp.abs(u(points) * f(points)))
            sample = rkhs.SamplingOperator(kernel, points[:10])
            beta = jax.random.normal(key_beta, (10,), dtype)
            left, right = (
                jnp.vdot(sample(f), beta),
                rkhs.inner(sample.adjoint(adjoint(sample, beta)), f),
            )
            scale = jnp.sum(jnp.abs(sample(f) * beta))
            return [jnp.abs(integral - applied) / size, jnp.abs(left - right) / scale]

        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """<Sigma u, f> = int f u drho on all atoms, and <S f, beta> = <f, S* beta> on a few."""
            population = inputs.population_of(setting)
            return np.asarray(
                errors(
                    key,
                    population.kernel,
                    real(population.points),
                    real(population.weights),
                )
            )

        return Identity(check)

    # A table of the user's may have thousands of atoms, which an exact sum over all pairs need not have.
    settings = (
        tuple(s for s in inputs.each if len(inputs.population_of(s).points) <= 64)
        or inputs.each[:1]
    )
    rough = inputs.rough[-1]
    sizes = tuple(
        Setting(f"{rough.name}, n={n:g}", rough.arrays, {"n": n}) for n in (10.0, 1e6)
    )
    degrees = len(rough.weights) - 1.0

    def variance(setting: Setting) -> float:
        n, p = setting.numbers["n"], degrees + 1
        return 2 * degrees + (float(np.sum(1 / rough.weights)) - p * p - 2 * p + 2) / n

    def mean(target: Callable[[Setting], float]) -> Expectation:
        return Expectation(
            sampled_product, target, lambda setting: degrees, moment=variance
        )

    over_n_minus_one = mean(
        lambda setting: degrees * setting.numbers["n"] / (setting.numbers["n"] - 1)
    )
    transposed = residual(lambda sample, beta: sample(sample.adjoint(beta)))
    return Check(
        printed=Form(residual(lambda sample, beta: beta), settings),
        corrected=Form(mean(lambda setting: degrees), sizes),
        controls=(
            Control("K S* for S*", transposed, settings[:1], "transpose for adjoint"),
            Control("Var(u f) / (n - 1)", over_n_minus_one, sizes[:1], "n for n - 1"),
        ),
    )


def _eq4(inputs: Inputs) -> Check:
    @parametrized(Identity)
    def holds(setting: Setting, power: float) -> np.ndarray:
        population = inputs.population_of(setting)
        features = population.features
        K = features @ features.T
        left = (features * population.eigenvalues**power) @ features.T
        right = K @ (population.weights[:, None] * K)
        return np.abs(left - right).ravel() / np.abs(right).max()

    return Check(
        printed=Form(holds(1.0), inputs.each),
        controls=(
            Control(
                "Sigma^2 in place of Sigma", holds(2.0), inputs.varying, "wrong power"
            ),
        ),
    )


@jax.jit
def _of_sections(kernel: Any, landmarks: jax.Array) -> jax.Array:
    sections = rkhs.section(kernel, landmarks)
    return rkhs.Covariance(kernel, landmarks).inner(sections, sections, power=1)


def _eq5(inputs: Inputs) -> Check:
    @parametrized(Identity)
    def holds(
        setting: Setting, claimed: Callable[[Any, jax.Array], np.ndarray]
    ) -> np.ndarray:
        kernel, landmarks = setting.data["kernel"], setting.data["landmarks"]
        exact = np.asarray(_of_sections(kernel, landmarks))
        return np.abs(claimed(kernel, landmarks) - exact).ravel() / np.abs(exact).max()

    def printed(kernel: Any, landmarks: jax.Array) -> np.ndarray:
        K = np.asarray(gram(kernel, landmarks))
        return K @ K / len(K)

    def without_square(kernel: Any, landmarks: jax.Array) -> np.ndarray:
        return np.asarray(gram(kernel, landmarks)) / len(landmarks)

    def transposed(kernel: Any, landmarks: jax.Array) -> np.ndarray:
        """In coordinates f = sum a_i K(., X_i) S is the matrix K; its transpose is K too, but its adjoint is I."""
        K = np.asarray(gram(kernel, landmarks))
        return K @ K @ K / len(K)

    def over_n_minus_one(kernel: Any, landmarks: jax.Array) -> np.ndarray:
        n = len(landmarks)
        return printed(kernel, landmarks) * n / (n - 1)

    def swapped(kernel: Any, landmarks: jax.Array) -> np.ndarray:
        return printed(controls.gamma_for_lengthscale(kernel), landmarks)

    def rounded(kernel: Any, landmarks: jax.Array) -> np.ndarray:
        return printed(kernel, controls.in_half(landmarks))

    # K^2 and K are proportional when the kernel is constant or its atoms are orthogonal and equally frequent.
    telling = tuple(
        s for s in inputs.literals if s.name.startswith(("gauss", "skewed", "data"))
    )
    gaussian = tuple(
        s for s in telling if isinstance(s.data["kernel"], kernels.Gaussian)
    )
    return Check(
        printed=Form(holds(printed), inputs.literals),
        controls=(
            Control("K in place of K^2", holds(without_square), telling, "wrong power"),
            Control(
                "the transpose of S for its adjoint",
                holds(transposed),
                telling,
                "transpose for adjoint",
            ),
            Control(
                "1 / (n - 1) for 1 / n",
                holds(over_n_minus_one),
                inputs.literals,
                "n for n - 1",
            ),
            Control(
                "gamma for the lengthscale",
                holds(swapped),
                gaussian,
                "swapped constants",
            ),
            Control("points in float16", holds(rounded), telling[-1:], "low precision"),
        ),
    )


@functools.partial(jax.jit, static_argnames="centered")
def _images(
    key: jax.Array,
    kernel: Any,
    landmarks: jax.Array,
    points: jax.Array,
    *,
    centered: bool,
) -> tuple[jax.Array, ...]:
    """Return images of the points and of their sections, K, sections at landmarks, and the products claimed."""
    n = landmarks.shape[0]
    phi = features.kernel_jl(
        key, kernel, landmarks, num_features=2 * n, centered=centered
    )
    weights = jnp.concatenate(
        [jnp.eye(len(points)), jnp.full((n, len(points)), -1 / n if centered else 0.0)]
    )
    f = rkhs.Function(
        kernel, jnp.concatenate([points, landmarks]), weights.astype(landmarks.dtype)
    )
    products = rkhs.Covariance(kernel, landmarks, centered=centered).inner(
        f, f, power=3
    )
    return phi(points), phi.embed(f), gram(kernel, landmarks), f(landmarks), products


def _projected(
    projection: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    centered: bool = False,
) -> Identity:
    """Return: the map that the library draws is V^T = projection(Z, K) for its Z, with the mean that is claimed.

    It is tried on K_x for 20 points x, ten of them landmarks, less the mean over the landmarks where it is centred.
    """

    def residual(key: jax.Array, setting: Setting) -> np.ndarray:
        kernel, landmarks = setting.data["kernel"], setting.data["landmarks"]
        n = landmarks.shape[0]
        points = np.asarray(setting.data["f"].points)[n - 10 : n + 10]
        found = _images(key, kernel, landmarks, points, centered=centered)
        images, embedded, K, values, products = map(np.asarray, found)
        Z = trials.normals(key, 2 * n, n, landmarks.dtype)
        literal = projection(Z, np.asarray(K, float)) @ np.asarray(values, float)
        mean, apart = trials.mean_product(Z, images.T)
        pairs = ((images.T, literal), (embedded.T, literal), (mean, products))
        errors = [
            np.ravel((left - right) / np.abs(right).max()) for left, right in pairs
        ]
        return np.concatenate([*errors, apart.ravel()])

    return Identity(residual)


def _normalised(Z: np.ndarray, K: np.ndarray) -> np.ndarray:
    n, d = K.shape[0], Z.shape[0]
    return Z @ K / (n * math.sqrt(n * d))


def _normalised_and_centred(Z: np.ndarray, K: np.ndarray) -> np.ndarray:
    return _normalised(Z, K - K.mean(0) - K.mean(1)[:, None] + K.mean())


def _varying(inputs: Inputs) -> tuple[Setting, ...]:
    """Return settings without a constant kernel, of which nothing is left once it is centred."""
    return tuple(s for s in inputs.literals if not s.name.startswith("constant"))


def _normalisation(inputs: Inputs) -> Check:
    twice = _projected(lambda Z, K: _normalised(Z, K) / K.shape[0])
    centred = _projected(_normalised_and_centred)
    return Check(
        printed=Form(_projected(_normalised), inputs.literals),
        controls=(
            Control(
                "a further factor 1/n", twice, inputs.literals, "missing normalisation"
            ),
            Control("K centred", centred, _varying(inputs), "centred for uncentred"),
        ),
    )


def _centred(inputs: Inputs) -> Check:
    def with_n_minus_one(Z: np.ndarray, K: np.ndarray) -> np.ndarray:
        n = K.shape[0]
        return _normalised_and_centred(Z, K) * (n / (n - 1)) ** 1.5

    uncentred, fewer = (
        _projected(V, centered=True) for V in (_normalised, with_n_minus_one)
    )
    varying = _varying(inputs)
    return Check(
        corrected=Form(_projected(_normalised_and_centred, centered=True), varying),
        controls=(
            Control("K not centred", uncentred, varying, "centred for uncentred"),
            Control("a covariance over n - 1", fewer, varying, "n for n - 1"),
        ),
    )
