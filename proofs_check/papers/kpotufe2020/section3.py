"""kpotufe2020, Section 3: the random projection Theta, the sampling operator, and where Z K / (n sqrt(n d)) is from."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random
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
from proofs_check.papers.kpotufe2020.setup import (
    Errors,
    Inputs,
    Literal,
    Matrix,
    Settings,
)
from proofs_check.papers.kpotufe2020.trials import Arrays, Numbers
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import Grids, check_of, real, wrong


@jax.jit
def _theta(key: Array, data: Literal) -> tuple[Array, Array, Array]:
    """Return Theta f, <f, Sigma^3 f>, and <f, Theta* images> for the images of the first function."""
    f, kernel, landmarks = data
    sigma = rkhs.Covariance(kernel, landmarks)
    theta = rkhs.RandomProjection(key, sigma, num_features=2 * landmarks.shape[0])
    images = theta(f)
    back = rkhs.inner(f, theta.adjoint(images[0]))
    return images, rkhs.inner(f, sigma(f, power=3)), back[0]


def _projected_products(key: Array, data: Literal, extra: int = 0) -> Errors:
    """Theta f is linear in standard normal numbers, with the mean products <f, Sigma^3 f>: so it has that law."""
    images, exact, product = map(np.asarray, _theta(key, data))
    errors = trials.product_errors(key, data.landmarks, images, exact, extra)
    return np.append(errors, product / np.sum(images[0] ** 2) - 1)


def eq2(inputs: Inputs) -> Check:
    fewer = wrong("1 / (d - 1) for 1 / d", "n for n - 1", extra=1)
    return check_of(Identity, inputs.literals, fewer, printed=_projected_products)


def _norm_below(r: float, B: float, rank: float | None = None) -> tuple[float, float]:
    """Chernoff: P(chi2_r <= B) <= exp(-(B/r - 1 - log(B/r)) r / 2) for B < r."""
    log_small = stats.chi2.logcdf(B, rank or r)
    return float(log_small), -(B / r - 1 - math.log(B / r)) * r / 2


def no_identity(grids: Grids) -> Check:
    rank_one = wrong("a covariance of rank one", "wrong operator", rank=1.0)
    return check_of(Exact, grids["printed"], rank_one, printed=_norm_below)


@sample("a sampled product")
def sampled_product(key: Array, population: Arrays, numbers: Numbers) -> Array:
    """n times the squared errors of (3), summed over the u with u f = 1{x} / rho{x}^(1/2), x an atom: Pearson's sum."""
    n = numbers["n"]
    weights = population["weights"]
    errors = op.shares(key, population, n) - weights
    return n * jnp.sum(errors**2 / weights)


@partial(jax.jit, static_argnames="transposed")
def _products(
    key: Array, kernel: Any, points: Array, weights: Array, *, transposed: bool
) -> list[Array]:
    key_u, key_f, key_beta = random.split(key, 3)
    normal = partial(random.normal, dtype=points.dtype)
    u = rkhs.Function(kernel, points, normal(key_u, (len(points),)))
    f = rkhs.Function(kernel, points, normal(key_f, (len(points),)))
    u_values = u(points)
    f_values = f(points)
    # Sigma u = sum w_i u(x_i) K(., x_i), an integral that is a finite sum here.
    sigma_u = rkhs.Function(kernel, points, weights * u_values)
    integral = jnp.sum(weights * u_values * f_values)
    error = jnp.abs(integral - rkhs.inner(sigma_u, f))
    S = rkhs.SamplingOperator(kernel, points[:10])
    beta = normal(key_beta, (10,))
    image = S.adjoint(S(S.adjoint(beta)) if transposed else beta)
    apart = jnp.abs(jnp.vdot(S(f), beta) - rkhs.inner(image, f))
    size = jnp.sum(weights * jnp.abs(u_values * f_values))
    return [error / size, apart / jnp.sum(jnp.abs(S(f) * beta))]


def _sampling(key: Array, data: Population, transposed: bool = False) -> Errors:
    """<Sigma u, f> = int f u drho on all atoms, and <S f, beta> = <f, S* beta> on a few."""
    points = real(data.points)
    weights = real(data.weights)
    return np.asarray(
        _products(key, data.kernel, points, weights, transposed=transposed)
    )


def eq3(inputs: Inputs) -> Check:
    # A table of the user's may have thousands of atoms, which an exact sum over all pairs need not have.
    small = tuple(s for s in inputs.each if len(s.data.points) <= 64)
    settings = small or inputs.each[:1]
    law = inputs.rough[-1]
    sizes = tuple(
        Setting(f"{law.name}, n={n:g}", law.arrays, {"n": n}) for n in (10.0, 1e6)
    )
    atoms = len(law.weights)
    excess = float(np.sum(1 / law.weights)) - atoms * atoms - 2 * atoms + 2

    def degrees(setting: Setting) -> float:
        return atoms - 1.0

    def variance(setting: Setting) -> float:
        return 2 * degrees(setting) + excess / setting.numbers["n"]

    def over_n_minus_one(setting: Setting) -> float:
        n = setting.numbers["n"]
        return degrees(setting) * n / (n - 1)

    mean = partial(Expectation, sampled_product, scale=degrees, moment=variance)
    transposed = Identity(partial(_sampling, transposed=True))
    kind = "transpose for adjoint"
    larger = mean(target=over_n_minus_one)
    return Check(
        printed=Form(Identity(_sampling), settings),
        corrected=Form(mean(target=degrees), sizes),
        controls=(
            Control("K S* for S*", transposed, settings[:1], kind),
            Control("Var(u f) / (n - 1)", larger, sizes[:1], "n for n - 1"),
        ),
    )


def _covariances(data: Population, power: float = 1.0) -> Errors:
    rows = data.features
    K = rows @ rows.T
    left = (rows * data.eigenvalues**power) @ rows.T
    return np.abs(trials.relative(left, K @ (data.weights[:, None] * K)))


def eq4(inputs: Inputs) -> Check:
    name = "Sigma^2 in place of Sigma"
    square = wrong(name, "wrong power", settings=inputs.varying, power=2.0)
    return check_of(Identity, inputs.each, square, printed=_covariances)


@jax.jit
def _of_sections(kernel: Any, landmarks: Array) -> Array:
    sections = rkhs.section(kernel, landmarks)
    return rkhs.Covariance(kernel, landmarks).inner(sections, sections, power=1)


def _unchanged(data: Literal) -> Literal:
    return data


def _swapped(data: Literal) -> Literal:
    return data._replace(kernel=controls.gamma_for_lengthscale(data.kernel))


def _rounded(data: Literal) -> Literal:
    return data._replace(landmarks=controls.in_half(data.landmarks))


def _section_products(
    data: Literal,
    power: int = 2,
    lost: int = 0,
    change: Callable[[Literal], Literal] = _unchanged,
) -> Errors:
    """Compare products of sections with K^power / (n - lost) of changed data.

    In coordinates f = sum a_i K(., X_i) S is the matrix K; its transpose is K too, but its adjoint is I. So the
    transpose of S for its adjoint gives K^3.
    """
    exact = _of_sections(data.kernel, data.landmarks)
    _, kernel, landmarks = change(data)
    K = np.asarray(gram(kernel, landmarks))
    products = np.linalg.matrix_power(K, power) / (len(K) - lost)
    return np.abs(trials.relative(products, exact))


def eq5(inputs: Inputs) -> Check:
    # K^2 and K are proportional when the kernel is constant or its atoms are orthogonal and equally frequent.
    names = ("gauss", "skewed", "data")
    telling = tuple(s for s in inputs.literals if s.name.startswith(names))
    gaussian = tuple(s for s in telling if isinstance(s.data.kernel, kernels.Gaussian))
    transposed = wrong(
        "the transpose of S for its adjoint",
        "transpose for adjoint",
        settings=telling,
        power=3,
    )
    swapped = wrong(
        "gamma for the lengthscale",
        "swapped constants",
        settings=gaussian,
        change=_swapped,
    )
    rounded = wrong(
        "points in float16", "low precision", settings=telling[-1:], change=_rounded
    )
    return check_of(
        Identity,
        inputs.literals,
        wrong("K in place of K^2", "wrong power", settings=telling, power=1),
        transposed,
        wrong("1 / (n - 1) for 1 / n", "n for n - 1", lost=1),
        swapped,
        rounded,
        printed=_section_products,
    )


@partial(jax.jit, static_argnames="centered")
def _images(
    key: Array, data: Literal, points: Array, *, centered: bool
) -> tuple[Array, ...]:
    """Return images of the points and of their sections, K, sections at landmarks, and the products claimed."""
    _, kernel, landmarks = data
    n = landmarks.shape[0]
    phi = features.kernel_jl(
        key, kernel, landmarks, num_features=2 * n, centered=centered
    )
    mean = jnp.full((n, len(points)), -1 / n if centered else 0.0)
    weights = jnp.concatenate([jnp.eye(len(points)), mean]).astype(landmarks.dtype)
    f = rkhs.Function(kernel, jnp.concatenate([points, landmarks]), weights)
    sigma = rkhs.Covariance(kernel, landmarks, centered=centered)
    products = sigma.inner(f, f, power=3)
    return phi(points), phi.embed(f), gram(kernel, landmarks), f(landmarks), products


def _normalised(Z: Matrix, K: Matrix) -> Matrix:
    d, n = Z.shape
    return Z @ K / (n * math.sqrt(n * d))


def _normalised_twice(Z: Matrix, K: Matrix) -> Matrix:
    return _normalised(Z, K) / len(K)


def _normalised_and_centred(Z: Matrix, K: Matrix, lost: int = 0) -> Matrix:
    """Return the map of a covariance over n - lost."""
    n = len(K)
    projection = _normalised(Z, K - K.mean(0) - K.mean(1)[:, None] + K.mean())
    return projection * (n / (n - lost)) ** 1.5


def _map_errors(
    key: Array,
    data: Literal,
    projection: Callable[[Matrix, Matrix], Matrix] = _normalised,
    centered: bool = False,
) -> Errors:
    """The map that the library draws is V^T = projection(Z, K) for its Z, with the mean that is claimed.

    It is tried on K_x for 20 points x, ten of them landmarks, less the mean over the landmarks where it is centred.
    """
    n = data.landmarks.shape[0]
    points = np.asarray(data.f.points)[n - 10 : n + 10]
    library = _images(key, data, points, centered=centered)
    images, embedded, K, values, products = map(np.asarray, library)
    Z = trials.normal_rows(key, data.landmarks)
    literal = projection(Z, np.asarray(K, float)) @ np.asarray(values, float)
    mean, apart = trials.mean_product(Z, images)
    errors = (
        trials.relative(images.T, literal),
        trials.relative(embedded.T, literal),
        trials.relative(mean, products),
        apart,
    )
    return np.concatenate(errors)


def _varying(inputs: Inputs) -> Settings:
    """Return settings without a constant kernel, of which nothing is left once it is centred."""
    return tuple(s for s in inputs.literals if not s.name.startswith("constant"))


def normalisation(inputs: Inputs) -> Check:
    twice = wrong(
        "a further factor 1/n", "missing normalisation", projection=_normalised_twice
    )
    centred = wrong(
        "K centred",
        "centred for uncentred",
        settings=_varying(inputs),
        projection=_normalised_and_centred,
    )
    return check_of(Identity, inputs.literals, twice, centred, printed=_map_errors)


def centred(inputs: Inputs) -> Check:
    errors = partial(_map_errors, projection=_normalised_and_centred, centered=True)
    uncentred = wrong("K not centred", "centred for uncentred", projection=_normalised)
    fewer = partial(_normalised_and_centred, lost=1)
    over = wrong("a covariance over n - 1", "n for n - 1", projection=fewer)
    return check_of(Identity, _varying(inputs), uncentred, over, corrected=errors)
