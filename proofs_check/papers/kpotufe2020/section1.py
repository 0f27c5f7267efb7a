"""kpotufe2020, Section 1: what Kernel JL preserves on average, at which rate, and what it costs.

(1) and the costs are tried on the library itself, on landmarks that are atoms of a population.
"""

import math
from collections.abc import Callable

import jax
import numpy as np
from jax import Array
from scipy import stats

from jaxkern import features, kernels, rkhs
from proofs_check.claim import Check, Identity, Inequality, Setting
from proofs_check.papers import flops
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.setup import (
    Errors,
    Inputs,
    Literal,
    Matrix,
    Pairs,
)
from proofs_check.papers.kpotufe2020.two_groups import two_atoms, two_clusters
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import Grids, check_of, lines, wrong


@jax.jit
def _library(key: Array, data: Literal) -> tuple[Array, dict[int, Array]]:
    """Return the images of functions, and <f, Sigma_n^power f> for the powers 1 and 3."""
    f, kernel, landmarks = data
    phi = features.kernel_jl(
        key, kernel, landmarks, num_features=2 * landmarks.shape[0]
    )
    sigma = rkhs.Covariance(kernel, landmarks)
    return phi.embed(f), {power: sigma.inner(f, f, power=power) for power in (1, 3)}


def _mean_products(key: Array, data: Literal, power: int = 3, extra: int = 0) -> Errors:
    """All products of three functions: what the library draws is linear in Z, whose second moments are known."""
    images, products = _library(key, data)
    return trials.product_errors(key, data.landmarks, images, products[power], extra)


def eq1(inputs: Inputs) -> Check:
    return check_of(
        Identity,
        inputs.literals,
        wrong("Z in place of Z K / n", "wrong operator", power=1),
        wrong("1 / (d - 1) for 1 / d", "n for n - 1", extra=1),
        printed=_mean_products,
    )


def _all_counts(n: int, atoms: int) -> Matrix:
    """Return all counts (ways, atoms) of n draws."""
    others = np.indices((n + 1,) * (atoms - 1)).reshape(atoms - 1, -1).T
    first = n - others.sum(1)
    return np.column_stack([first, others])[first >= 0]


def _mean_cube(data: Population, n: float, biased: bool = True) -> Errors:
    """The mean of <f, Sigma_n^3 f> over all counts of the atoms, in units of <f, Sigma^3 f>."""
    f = np.asarray(data.arrays["f"], float)
    rows = data.features
    counts = _all_counts(int(n), len(data.weights))
    shares = counts / n
    images = np.einsum("cp,pr->cr", shares * (rows @ f), rows)  # Sigma_n f
    cubes = np.einsum("cp,cp->c", shares, (images @ rows.T) ** 2)
    mean = stats.multinomial.pmf(counts, int(n), data.weights) @ cubes
    cubed = float(data.eigenvalues**3 @ f**2)
    claimed = trials.mean_cube(data, f, n) if biased else cubed
    return np.array([mean - claimed]) / cubed


def bias() -> Check:
    laws = ((two_atoms(0.7), 300.0), (two_atoms(0.7), 1.0), (two_clusters(), 24.0))
    settings = tuple(Setting(f"{law.name}, n={n:g}", law, {"n": n}) for law, n in laws)
    unbiased = wrong("no bias", "term left out", settings=settings[:1], biased=False)
    return check_of(Identity, settings, unbiased, corrected=_mean_cube)


def _mean_square(n: float, d: float, w: float) -> float:
    """Return E |S* V V^T S - Sigma^3|_HS^2 for two orthonormal atoms of masses w and 1 - w, over all counts.

    Given the sample it is (tr^2 Sigma_n^3 + tr Sigma_n^6) / d + |Sigma_n^3 - Sigma^3|_HS^2.
    """
    counts = np.arange(n + 1)
    exact = np.array([[w], [1 - w]]) ** 3
    cubes = np.stack([counts / n, 1 - counts / n]) ** 3
    sketched = (cubes.sum(0) ** 2 + (cubes**2).sum(0)) / d
    squares = sketched + ((cubes - exact) ** 2).sum(0)
    return float(stats.binom.pmf(counts, n, w) @ squares)


def _sum_of_roots(n: float, d: float) -> float:
    return n**-0.5 + d**-0.5


def _sum_of_inverses(n: float, d: float) -> float:
    return 1 / n + 1 / d


def _root_of_both(n: float, d: float) -> float:
    return (n * d) ** -0.25


def _falls(
    n: float, d: float, size: Callable[[float, float], float] = _sum_of_roots
) -> Pairs:
    """The root of the mean square, over 3 kappa^3 = 3 times the rate: it bounds the mean of the norm."""
    ratio = math.sqrt(_mean_square(n, d, 0.7)) / size(n, d)
    return lines([(ratio, 3.0)], "kpotufe2020, the rate")


def rate(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["printed"],
        wrong("a rate of 1/n + 1/d", "wrong power", size=_sum_of_inverses),
        wrong("a rate of (n d)^(-1/4)", "wrong power", size=_root_of_both),
        printed=_falls,
    )


def _multiply_adds(n: int, d: int, points: int) -> float:
    """Return what the library multiplies and adds. Its kernel, of direct differences, has no matrix products."""
    dtype = jax.dtypes.canonicalize_dtype(float)
    landmarks = jax.ShapeDtypeStruct((n, 3), dtype)
    X = jax.ShapeDtypeStruct((points, 3), dtype)
    kernel = kernels.Laplacian(1.0)

    def fit_and_map(landmarks: Array, X: Array) -> Array:
        key = jax.random.key(0)
        return features.kernel_jl(key, kernel, landmarks, num_features=d)(X)

    # The offset of the centred map, Z K 1 / n, costs d n in either case.
    return float(flops.multiply_adds(fit_and_map, landmarks, X) - d * n)


def _cost_error(n: float, d: float, N: float, power: int = 0) -> Errors:
    """The relative error of d n^2 + N d n, or of n^power + N d n."""
    fit = n**power if power else d * n**2
    counted = _multiply_adds(int(n), int(d), int(N))
    return np.array([abs(counted / (fit + N * d * n) - 1)])


def cost(grids: Grids) -> Check:
    cubic = wrong("an eigen-decomposition of n^3", "wrong cost", power=3)
    return check_of(Identity, grids["printed"], cubic, printed=_cost_error)


def _weighted_norms(data: Population, power: int = 3) -> Errors:
    # Sigma from the atoms, not from the eigenvalues that are claimed.
    sigma = data.features.T @ (data.weights[:, None] * data.features)
    weighted = np.diag(np.linalg.matrix_power(sigma, power))
    return np.abs(weighted - data.eigenvalues**3) / data.op_norm**3


def worst_case(inputs: Inputs) -> Check:
    name = "Sigma^2 in place of Sigma^3"
    square = wrong(name, "wrong power", settings=inputs.varying, power=2)
    return check_of(Identity, inputs.each, square, printed=_weighted_norms)
