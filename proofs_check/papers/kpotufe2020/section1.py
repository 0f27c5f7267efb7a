"""kpotufe2020, Section 1: what Kernel JL preserves on average, at which rate, and what it costs.

(1) and the costs are tried on the library itself, on landmarks that are atoms of a population.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy import stats

from jaxkern import features, kernels, rkhs
from jaxkern.bounds import Bound
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting
from proofs_check.papers import flops
from proofs_check.papers.kpotufe2020 import laws, trials
from proofs_check.papers.kpotufe2020.setup import Inputs
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import lines, listed, parametrized


@jax.jit
def _library(
    key: jax.Array, kernel: Any, landmarks: jax.Array, f: rkhs.Function
) -> tuple[jax.Array, dict[int, Any]]:
    """Return the images of functions, and <f, Sigma_n^power f> for the powers 1 and 3."""
    phi = features.kernel_jl(
        key, kernel, landmarks, num_features=2 * landmarks.shape[0]
    )
    sigma = rkhs.Covariance(kernel, landmarks)
    return phi.embed(f), {power: sigma.inner(f, f, power=power) for power in (1, 3)}


def _eq1(inputs: Inputs) -> Check:
    @parametrized(Identity)
    def holds(
        key: jax.Array, setting: Setting, power: int = 3, extra: int = 0
    ) -> np.ndarray:
        """All products of three functions: what the library draws is linear in Z, whose second moments are known."""
        kernel, landmarks, f = (setting.data[k] for k in ("kernel", "landmarks", "f"))
        n, (images, products) = landmarks.shape[0], _library(key, kernel, landmarks, f)
        mean, apart = trials.mean_product(
            trials.normals(key, 2 * n, n, landmarks.dtype), np.asarray(images).T
        )
        exact = np.asarray(products[power])
        error = (1 + extra / (2 * n)) * mean - exact
        return np.concatenate([error.ravel() / np.abs(exact).max(), apart.ravel()])

    return Check(
        printed=Form(holds(), inputs.literals),
        controls=(
            Control(
                "Z in place of Z K / n",
                holds(power=1),
                inputs.literals,
                "wrong operator",
            ),
            Control(
                "1 / (d - 1) for 1 / d", holds(extra=1), inputs.literals, "n for n - 1"
            ),
        ),
    )


def _mean_cube() -> Check:
    @parametrized(Identity)
    def holds(setting: Setting, biased: bool = True) -> np.ndarray:
        """The mean of <f, Sigma_n^3 f> over all counts of the atoms, in units of <f, Sigma^3 f>."""
        law: Population = setting.data
        n, f = int(setting.numbers["n"]), np.asarray(law.arrays["f"], float)
        counts = (
            np.indices((n + 1,) * (len(law.weights) - 1))
            .reshape(len(law.weights) - 1, -1)
            .T
        )
        counts = np.column_stack([n - counts.sum(1), counts])[counts.sum(1) <= n]
        image = np.einsum(
            "cp,pr->cr", counts / n * (law.features @ f), law.features
        )  # Sigma_n f
        cubes = np.einsum("cp,cp->c", counts / n, (image @ law.features.T) ** 2)
        found = stats.multinomial.pmf(counts, n, law.weights) @ cubes
        cubed = float(law.eigenvalues**3 @ f**2)
        return (
            np.array([found - (trials.mean_cube(law, f, n) if biased else cubed)])
            / cubed
        )

    sizes = (
        (laws.two_atoms(0.7), 3e2),
        (laws.two_atoms(0.7), 1.0),
        (laws.two_clusters(), 24.0),
    )
    settings = tuple(Setting(f"{law.name}, n={n:g}", law, {"n": n}) for law, n in sizes)
    return Check(
        corrected=Form(holds(), settings),
        controls=(Control("no bias", holds(False), settings[:1], "term left out"),),
    )


def _mean_square(n: float, d: float, w: float) -> float:
    """Return E |S* V V^T S - Sigma^3|_HS^2 for two orthonormal atoms of masses w and 1 - w, over all counts.

    Given the sample it is (tr^2 Sigma_n^3 + tr Sigma_n^6) / d + |Sigma_n^3 - Sigma^3|_HS^2.
    """
    counts, exact = np.arange(n + 1), np.array([[w], [1 - w]]) ** 3
    cubes = np.stack([counts / n, 1 - counts / n]) ** 3
    given = (cubes.sum(0) ** 2 + (cubes**2).sum(0)) / d + ((cubes - exact) ** 2).sum(0)
    return float(stats.binom.pmf(counts, n, w) @ given)


def _rate() -> Check:
    @parametrized(Inequality)
    def falls(
        setting: Setting, size: Callable[[float, float], float]
    ) -> list[tuple[float, Bound]]:
        """The root of the mean square, over 3 kappa^3 = 3 times the rate: it bounds the mean of the norm."""
        n, d = (setting.numbers[k] for k in ("n", "d"))
        return lines(
            [(math.sqrt(_mean_square(n, d, 0.7)) / size(n, d), 3.0)],
            "kpotufe2020, the rate",
        )

    rows = [
        row
        for least in (1e2, 1e3)
        for row in ((least, least**2), (least**2, least), (least, least))
    ]
    sizes = listed("two orthonormal atoms, n={n:g}, d={d:g}", "n d", rows)
    return Check(
        printed=Form(falls(lambda n, d: n**-0.5 + d**-0.5), sizes),
        controls=(
            Control(
                "a rate of 1/n + 1/d",
                falls(lambda n, d: 1 / n + 1 / d),
                sizes,
                "wrong power",
            ),
            Control(
                "a rate of (n d)^(-1/4)",
                falls(lambda n, d: (n * d) ** -0.25),
                sizes,
                "wrong power",
            ),
        ),
    )


def _cost() -> Check:
    """Kernel evaluations are kept free of matrix products by a kernel of direct differences."""
    kernel = kernels.Laplacian(1.0)

    def counted(n: int, d: int, points: int) -> float:
        dtype = jax.dtypes.canonicalize_dtype(float)
        landmarks, X = (
            jax.ShapeDtypeStruct((n, 3), dtype),
            jax.ShapeDtypeStruct((points, 3), dtype),
        )
        key = jax.eval_shape(lambda: jax.random.key(0))

        def fit_and_map(
            key: jax.Array, landmarks: jax.Array, X: jax.Array
        ) -> jax.Array:
            return features.kernel_jl(key, kernel, landmarks, num_features=d)(X)

        # The offset of the centred map, Z K 1 / n, costs d n in either case.
        return float(flops.multiply_adds(fit_and_map, key, landmarks, X) - d * n)

    @parametrized(Identity)
    def costs(
        setting: Setting, claimed: Callable[[int, int, int], float]
    ) -> np.ndarray:
        n, d, points = (int(setting.numbers[k]) for k in ("n", "d", "N"))
        return np.asarray([abs(counted(n, d, points) / claimed(n, d, points) - 1)])

    # Sizes that split into equal tiles: a padded last one costs a little more.
    settings = listed(
        "n={n}, d={d}, N={N}",
        "n d N",
        ((200, 20, 1_000), (256, 120, 12_288), (400, 10, 131_000)),
    )
    cubic = costs(lambda n, d, N: n**3 + N * d * n)
    return Check(
        printed=Form(costs(lambda n, d, N: d * n**2 + N * d * n), settings),
        controls=(
            Control("an eigen-decomposition of n^3", cubic, settings, "wrong cost"),
        ),
    )


def _worst_case(inputs: Inputs) -> Check:
    @parametrized(Identity)
    def cubed(setting: Setting, power: int) -> np.ndarray:
        population = inputs.population_of(setting)
        # Sigma from the atoms, not from the eigenvalues that are claimed.
        sigma = population.features.T @ (
            population.weights[:, None] * population.features
        )
        weighted = np.diag(np.linalg.matrix_power(sigma, power))
        return np.abs(weighted - population.eigenvalues**3) / population.op_norm**3

    return Check(
        printed=Form(cubed(3), inputs.each),
        controls=(
            Control(
                "Sigma^2 in place of Sigma^3", cubed(2), inputs.varying, "wrong power"
            ),
        ),
    )
