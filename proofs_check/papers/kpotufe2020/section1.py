"""kpotufe2020, Section 1: what Kernel JL preserves on average, at which rate, and what it costs.

(1) and the costs are tried on the library itself, on landmarks that are atoms of a population.
"""

from collections.abc import Callable

import jax
import numpy as np

from jaxkern import features, kernels, rkhs
from proofs_check.claim import Check, Control, Expectation, Form, Identity, Rate, Setting
from proofs_check.papers import flops
from proofs_check.papers.kpotufe2020 import laws, trials
from proofs_check.papers.kpotufe2020.places import Scope
from proofs_check.papers.shared import one, parametrized


def _eq1(scope: Scope) -> Check:
    @parametrized(Identity)
    def holds(key: jax.Array, setting: Setting, power: int = 3, extra: int = 0) -> np.ndarray:
        """All products of three functions: what the library draws is linear in Z, whose second moments are known."""
        kernel, landmarks, f = (setting.data[k] for k in ("kernel", "landmarks", "f"))
        n = landmarks.shape[0]
        phi = features.kernel_jl(key, kernel, landmarks, num_features=2 * n)
        mean, apart = trials.mean_product(trials.normals(key, 2 * n, n, landmarks.dtype), phi.embed(f).T)
        exact = np.asarray(rkhs.Covariance(kernel, landmarks).inner(f, f, power=power))
        error = (1 + extra / (2 * n)) * mean - exact
        return np.concatenate([error.ravel() / np.abs(exact).max(), apart.ravel()])

    return Check(
        printed=Form(holds(), scope.literals),
        controls=(
            Control("Z in place of Z K / n", holds(power=1), scope.literals, "wrong operator"),
            Control("1 / (d - 1) for 1 / d", holds(extra=1), scope.literals, "n for n - 1"),
        ),
    )


def _mean_cube(scope: Scope) -> Check:
    def exact(setting: Setting) -> float:
        population = scope.population_of(setting)
        f = np.asarray(population.arrays["f"], float)
        cubed = float(np.sum(population.eigenvalues**3 * f**2))
        return trials.mean_cube(population, f, setting.numbers["n"]) / cubed

    settings = tuple(Setting(f"{p.name}, n={n:g}", p.arrays, {"n": n}) for p in scope.rough for n in (30.0, 300.0))
    unbiased = Expectation(trials.sampled_cube, one, one)
    return Check(
        corrected=Form(Expectation(trials.sampled_cube, exact, exact), settings),
        controls=(Control("no bias", unbiased, settings[::2], "term left out"),),
    )


def _rate() -> Check:
    # Any number of rows is drawn as a matrix over the atoms, of which a user's table may have thousands.
    law = laws.two_clusters()
    sizes = tuple(
        Setting(f"{law.name}, n={n:g}, d={d:g}", law.arrays, {"n": n, "d": d, "least": least})
        for least in (1e3, 5e3, 3e4, 2e5, 1e6)
        for n, d in ((least, least**2), (least**2, least))
    )
    return Check(
        printed=Form(Rate(trials.sketch_error, "least", -0.5), sizes),
        controls=(
            Control("a rate of 1/n + 1/d", Rate(trials.sketch_error, "least", -1.0), sizes, "wrong power"),
            Control("a rate of (n d)^(-1/4)", Rate(trials.sketch_error, "least", -0.75), sizes, "wrong power"),
        ),
    )


def _cost() -> Check:
    """Kernel evaluations are kept free of matrix products by a kernel of direct differences."""
    kernel = kernels.Laplacian(1.0)

    def counted(n: int, d: int, points: int) -> float:
        dtype = jax.dtypes.canonicalize_dtype(float)
        landmarks, X = jax.ShapeDtypeStruct((n, 3), dtype), jax.ShapeDtypeStruct((points, 3), dtype)
        key = jax.eval_shape(lambda: jax.random.key(0))

        def fit_and_map(key: jax.Array, landmarks: jax.Array, X: jax.Array) -> jax.Array:
            return features.kernel_jl(key, kernel, landmarks, num_features=d)(X)

        # The offset of the centred map, Z K 1 / n, costs d n in either case.
        return float(flops.multiply_adds(fit_and_map, key, landmarks, X) - d * n)

    @parametrized(Identity)
    def costs(setting: Setting, claimed: Callable[[int, int, int], float]) -> np.ndarray:
        n, d, points = (int(setting.numbers[k]) for k in ("n", "d", "N"))
        return np.asarray([abs(counted(n, d, points) / claimed(n, d, points) - 1)])

    # Sizes that split into equal tiles: a padded last one costs a little more.
    settings = tuple(
        Setting(f"n={n}, d={d}, N={points}", numbers={"n": n, "d": d, "N": points})
        for n, d, points in ((200, 20, 1_000), (256, 120, 12_288), (400, 10, 131_000))
    )
    cubic = costs(lambda n, d, N: n**3 + N * d * n)
    return Check(
        printed=Form(costs(lambda n, d, N: d * n**2 + N * d * n), settings),
        controls=(Control("an eigen-decomposition of n^3", cubic, settings, "wrong cost"),),
    )


def _worst_case(scope: Scope) -> Check:
    @parametrized(Identity)
    def cubed(setting: Setting, power: int) -> np.ndarray:
        population = scope.population_of(setting)
        # Sigma from the atoms, not from the eigenvalues that are claimed.
        sigma = population.features.T @ (population.weights[:, None] * population.features)
        weighted = np.diag(np.linalg.matrix_power(sigma, power))
        return np.abs(weighted - population.eigenvalues**3) / population.op_norm**3

    return Check(
        printed=Form(cubed(3), scope.each),
        controls=(Control("Sigma^2 in place of Sigma^3", cubed(2), scope.varying, "wrong power"),),
    )
