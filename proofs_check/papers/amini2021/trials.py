"""amini2021: points with noise around given means, and the statistics that its trials return."""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import clustering, kernels, measures, metrics, problems
from jaxkern.bounds import concentration
from jaxkern.gram import gram
from jaxkern.linalg import eigh, eigvalsh, matmul
from proofs_check.claim import Setting, sample
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import real

POINTS = 48
GAUSSIAN = problems.GaussianLaw()

_BOUNDS = (
    "t u tau dim mean_norm mean_rank mean_frobenius frobenius op_norm total_variance"
)
EXTRA = (*_BOUNDS.split(), "operator", "sigma", "reused")
"""Numbers of a setting besides those of its model. All settings have all of them, so as to share compiled trials."""

Numbers = Mapping[str, Any]


def first_coordinates(x: jax.Array, y: jax.Array) -> jax.Array:
    """K(x, y) = x_1 + y_1, which is 1-Lipschitz and attains most constants."""
    return x[0] + y[0]


@dataclass(frozen=True, eq=False)
class Model:
    """Independent points X_i = mu_i + sqrt(Sigma_i) W_i with diagonal Sigma_i, and a Lipschitz kernel.

    Models of one kernel, one law and one shape share a compiled trial, so noise is given coordinate by coordinate.

    Attributes
    ----------
    kernel : None stands for `first_coordinates`, whose mean is known for every law.
    lipschitz : its constant, inf for a kernel that is not Lipschitz.
    means : (n, d).
    variances : (n, d), the diagonals of the Sigma_i.
    law : of W; Gaussian unless the kernel is None.
    extra : further arrays for trials: the weights `A` of a quadratic form, or `labels`.

    As a PyTree a model is the dictionary of its `arrays`, which are made when a run first needs them: mean kernels are
    compiled, so that claims would be slow to build otherwise.
    """

    name: str
    kernel: Any
    lipschitz: float
    means: np.ndarray
    variances: np.ndarray
    law: Any = GAUSSIAN
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)

    @functools.cached_property
    def arrays(self) -> dict[str, Any]:
        """What trials need: kernel, means, noise, law and E K, in the default dtype, and what is extra."""
        arrays: dict[str, Any] = {
            "kernel": self.kernel,
            "means": real(self.means),
            "noise": measures.DiagonalNoise(real(self.variances)),
            "law": self.law,
        }
        if self.kernel is None:
            arrays["kernel"] = kernels.as_kernel(first_coordinates)
            arrays["mean"] = real(self.means[:, :1] + self.means[:, 0])
        else:
            arrays["mean"] = self._mean()
        for name, x in self.extra.items():
            arrays[name] = real(x) if x.dtype.kind == "f" else jnp.asarray(x, jnp.int32)
        return arrays

    def _mean(self) -> jax.Array:
        """Return E K of a kernel of distances or inner products: coordinates that are always 0 do not matter."""
        means = self.means
        variances = self.variances
        # Means of other kernels are cheap, and share a compilation.
        if isinstance(self.kernel, kernels.Distance):
            used = np.any(variances > 0, axis=0) | np.any(means != 0, axis=0)
            means = means[:, used]
            variances = variances[:, used]
        noise: Any = measures.DiagonalNoise(real(variances))
        if np.ptp(variances) == 0:  # cheaper
            level = math.sqrt(variances[0, 0] * variances.shape[1])
            noise = measures.IsotropicNoise(level)
        return measures.mean_kernel(self.kernel, real(means), noise)

    @property
    def numbers(self) -> dict[str, float]:
        """What bounds need: n, L, omega, the largest |Sigma_i|^(1/2) and their root mean square."""
        sizes = self.variances.max(axis=1)
        # In case (b) of class LC omega / sqrt(2 pi) may stand for omega.
        omega = float(self.law.omega)
        if self.law.lc_class == "b":
            omega /= math.sqrt(2 * math.pi)
        return {
            "n": float(len(self.means)),
            "lipschitz": self.lipschitz,
            "omega": omega,
            "scale": math.sqrt(sizes.max()),
            "mean_scale": math.sqrt(sizes.mean()),
        }

    def setting(
        self,
        label: str,
        extra: Mapping[str, float],
        shapes: Mapping[str, int] | None = None,
    ) -> Setting:
        """Return a setting on these points, with their numbers and some of EXTRA."""
        name = f"{self.name}, n={len(self.means)}, {label}"
        numbers = {**dict.fromkeys(EXTRA, 0.0), **self.numbers, **extra}
        return Setting(name, self, numbers, shapes or {})


jax.tree_util.register_pytree_node(
    Model, lambda model: ((model.arrays,), None), lambda _, arrays: arrays[0]
)


def simplex(num_points: int, dim: int, side: float) -> np.ndarray:
    """Return (n, d) points at the distance `side` from each other, n <= d."""
    return side / math.sqrt(2) * np.eye(num_points, dim)


def two_centres(num_points: int, dim: int, distance: float) -> np.ndarray:
    """Return (n, d) means, half of them at the origin and half at a distance from it, in turns."""
    return np.outer(np.arange(num_points) % 2, distance * np.eye(1, dim))


def isotropic(means: np.ndarray, noise: float, dim: int | None = None) -> np.ndarray:
    """Return the variances (n, d) of N(0, noise^2 I / dim) on the first `dim` coordinates, by default on all."""
    used = means.shape[1] if dim is None else dim
    diagonal = np.where(np.arange(means.shape[1]) < used, noise**2 / used, 0)
    return np.tile(diagonal, (len(means), 1))


def lipschitz_gaussian(lengthscale: float) -> float:
    """Return the constant L of a Gaussian kernel."""
    return float(concentration.gaussian_lipschitz(lengthscale=lengthscale).value)


def gaussian_models(data: Population | None) -> tuple[Model, ...]:
    """Return points with isotropic noise and a Gaussian kernel: of lengthscale 1, or that of the user's rows.

    The noise of the simplex is small, so that its bounds are nearly attained.
    """
    if data is not None:
        count = min(len(data.points), POINTS)
        rows = np.linspace(0, len(data.points) - 1, count).astype(int)
        tau = float(data.kernel.lengthscale)
        means = data.points[rows]
        variances = isotropic(means, 0.3 * tau)
        return (Model("rows", data.kernel, lipschitz_gaussian(tau), means, variances),)
    dim = 128
    return (
        gaussian("simplex, noise 0.05", simplex(POINTS, dim, 1.0), 0.05),
        gaussian("one point, noise 0.5", np.zeros((POINTS, dim)), 0.5),
        gaussian("two points, noise 0.5", two_centres(POINTS, dim, 1.0), 0.5),
    )


def gaussian(
    name: str, means: np.ndarray, noise: float, dim: int | None = None
) -> Model:
    """Return points with isotropic noise and a Gaussian kernel of lengthscale 1."""
    variances = isotropic(means, noise, dim)
    return Model(name, kernels.Gaussian(1.0), lipschitz_gaussian(1.0), means, variances)


def distances(name: str, means: np.ndarray, deviations: Any, dim: int) -> Model:
    """Return points with the kernel |x - y|, given standard deviations of their first `dim` coordinates."""
    n, d = means.shape
    levels = np.broadcast_to(deviations, (n,))[:, None]
    variances = np.where(np.arange(d) < dim, levels**2, 0)
    return Model(name, kernels.Distance(), 1.0, means, variances)


def sums(name: str, law: Any = GAUSSIAN, variances: Any = 1.0) -> Model:
    """Return points around zero with the kernel x_1 + y_1; of unit covariance, unless variances (d,) are given."""
    shape = (POINTS, POINTS)
    return Model(name, None, 1.0, np.zeros(shape), variances * np.ones(shape), law)


def _deviation(key: jax.Array, population: Any, numbers: Numbers) -> jax.Array:
    """K - E K or, where the number `reused` is not 0, with the noise of the first point on all of them."""
    means = population["means"]
    X = problems.perturb(key, means, population["noise"], law=population["law"]).points
    shifted = means + (X[:1] - means[:1])
    X = jnp.where(numbers["reused"] > 0, shifted, X)
    return gram(population["kernel"], X) - population["mean"]


def _norm(E: jax.Array) -> jax.Array:
    return jnp.max(jnp.abs(eigvalsh((E + E.T) / 2)))


def gram_error(key: jax.Array, population: Any, numbers: Numbers) -> jax.Array:
    """|K - E K| / n in operator norm or, where the number `operator` is 0, in Frobenius norm."""
    E = _deviation(key, population, numbers)
    norm = jnp.where(numbers["operator"] > 0, _norm(E), jnp.linalg.norm(E))
    return norm / E.shape[0]


def form_error(key: jax.Array, population: Any, numbers: Numbers) -> jax.Array:
    """|Z - E Z| for Z = sum a_ij K_ij, A of the population."""
    return jnp.abs(jnp.sum(population["A"] * _deviation(key, population, numbers)))


@sample("gap")
def gap_error(
    key: jax.Array, population: Any, numbers: Numbers, *, n: int
) -> jax.Array:
    """|K - E K| / n for K = x + y and W uniform within e of a or of -a, 3 a^2 + e^2 = 3: mean 0 and variance 1."""
    del population
    first, second = jax.random.split(key)
    e = numbers["e"]
    signs = jax.random.rademacher(first, (n,), e.dtype)
    steps = 2 * jax.random.uniform(second, (n,), e.dtype) - 1
    W = signs * jnp.sqrt(1 - e**2 / 3) + e * steps
    return _norm(W[:, None] + W[None, :]) / n


def clipped_norm(
    key: jax.Array, population: Any, numbers: Numbers, *, most: int
) -> jax.Array:
    """V = |K - E K| of Proposition 1 for X uniform on [-2, 2] and L = s = 1, n of `most` points.

    K = h h' with E h^2 = 2/3, so K - E K = h h' - 2/3 I has the eigenvalues |h|^2 - 2/3 and -2/3.
    """
    del population
    dtype = numbers["n"].dtype
    X = 4 * jax.random.uniform(key, (most,), dtype) - 2
    h = jnp.clip(X, -1, 1)
    counted = jnp.arange(most, dtype=dtype) < numbers["n"]
    square = jnp.sum(jnp.where(counted, h * h, 0))
    return jnp.maximum(square - 2 / 3, 2 / 3)


@sample("deviation")
def clipped_deviation(
    key: jax.Array, population: Any, numbers: Numbers, *, most: int
) -> jax.Array:
    """|V - E V| of the same; where |h|^2 >= 4/3, as good as always for n >= 16, V = |h|^2 - 2/3."""
    norm = clipped_norm(key, population, numbers, most=most)
    return jnp.abs(norm - (numbers["n"] - 1) * (2 / 3))


def clipped_moment(setting: Setting) -> float:
    """Return a bound of the variance of both, 1-Lipschitz functions of |h|^2: n (E h^4 - (E h^2)^2) = n (3/5 - 4/9)."""
    return setting.numbers["n"] * 7 / 45


def gram_moment(setting: Setting) -> float:
    """Return a bound of the variance of |K - E K|_F / n, a kernel of differences and Gaussian noise, by Poincare.

    |K(X) - K(X')|_F is at most sqrt(2 n) L |X - X'|_F (lem1-distance).
    """
    n = setting.numbers
    return 2 * (n["lipschitz"] * n["scale"]) ** 2 / n["n"]


@sample("signs")
def signs_norm(
    key: jax.Array, population: Any, numbers: Numbers, *, n: int, steps: int
) -> jax.Array:
    """A lower bound of |W'W - n I| / n for an (n, n) matrix W of random signs: the largest of `steps` Ritz values.

    Lanczos's method; it comes within 1e-3 of the norm.
    """
    del population
    dtype = numbers["u"].dtype
    first, second = jax.random.split(key)
    W = jax.random.rademacher(first, (n, n), dtype)
    start = jax.random.normal(second, (n,), dtype)

    def step(
        state: tuple[jax.Array, jax.Array, jax.Array], _: None
    ) -> tuple[Any, tuple[jax.Array, jax.Array]]:
        v, before, beta = state
        product = matmul(matmul(W, v)[None, :], W)[0]
        w = product / n - beta * before
        alpha = jnp.vdot(v, w, precision=jax.lax.Precision.HIGHEST)
        w = w - alpha * v
        beta = jnp.linalg.norm(w)
        return (w / beta, v, beta), (alpha, beta)

    unit = start / jnp.linalg.norm(start)
    initial = (unit, jnp.zeros_like(start), jnp.zeros((), dtype))
    _, (alphas, betas) = jax.lax.scan(step, initial, None, length=steps)
    off_diagonal = betas[:-1]
    T = jnp.diag(alphas) + jnp.diag(off_diagonal, 1) + jnp.diag(off_diagonal, -1)
    return jnp.max(eigvalsh(T)) - 1


def misclassified(
    key: jax.Array, population: Any, numbers: Numbers, *, clusters: int
) -> jax.Array:
    """The misclassification rate of Algorithm 1, by the library, on points around the means of the population."""
    del numbers
    noise_key, cluster_key = jax.random.split(key)
    problem = problems.perturb(noise_key, population["means"], population["noise"])
    K = gram(population["kernel"], problem.points)
    result = clustering.spectral_from_gram(cluster_key, K, clusters, num_restarts=3)
    return metrics.misclassification_rate(
        population["labels"], result.labels, num_labels=clusters
    )


def truncation_error(
    key: jax.Array, population: Any, numbers: Numbers, *, clusters: int
) -> jax.Array:
    """|A_R - M'M / n|_F for A = K / n of the inner product kernel, R the number of clusters."""
    del numbers
    means = population["means"]
    X = problems.perturb(key, means, population["noise"]).points
    values, vectors = eigh(gram(population["kernel"], X))
    leading = vectors[:, :clusters]
    truncated = matmul(leading * values[None, :clusters], leading.T)
    return jnp.linalg.norm(truncated - matmul(means, means.T)) / len(means)


def angle(key: jax.Array, population: Any, numbers: Numbers, *, dim: int) -> jax.Array:
    """The inner product of two uniform directions, or where `reused` is not 0 of one with itself, times `factor`."""
    del population
    factor = numbers["factor"]
    normal = jax.random.normal(key, (2, dim), factor.dtype)
    u, v = normal / jnp.linalg.norm(normal, axis=1, keepdims=True)
    other = jnp.where(numbers["reused"] > 0, u, v)
    return factor * jnp.sum(u * other)
