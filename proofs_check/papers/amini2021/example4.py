"""amini2021, Examples 3 and 4: what noise does to the mean kernel (Section 3.2); Theorem E for (28)."""

import math
from typing import Any

import jax
import numpy as np

from jaxkern import gram, kernels, measures, problems
from jaxkern.bounds import concentration
from proofs_check import controls
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting
from proofs_check.papers.amini2021 import laws
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.amini2021.setup import NOISE, TAU, blocks, two_spheres
from proofs_check.papers.shared import always, as_residual, parametrized, real


def _noiseless() -> Check:
    n, d = 24, 10**6
    labels = np.arange(n) % 2
    where = np.random.default_rng(3).uniform(0, 1, n) + 4 * labels

    def parameters(noise: float, off_diagonal: bool) -> tuple[float, float]:
        s2 = 1 + 2 * noise**2 / (d * TAU**2)
        mean = s2 ** (-d / 2) * np.exp(
            -((where[:, None] - where) ** 2) / (2 * s2 * TAU**2)
        )
        np.fill_diagonal(mean, 1)
        block = blocks(mean, labels, off_diagonal=off_diagonal)
        return float(block.vbar2), float(block.gamma2)

    @parametrized(Inequality)
    def sides(off_diagonal: bool = True, factor: float = 1.0) -> Pairs:
        """vbar / gamma with noise over its bound: entries move by 2 sigma^2 / (e d tau^2) at most."""
        still, moved = parameters(0.0, off_diagonal), parameters(NOISE, off_diagonal)
        step = 2 * NOISE**2 / (math.e * d * TAU**2) * 10  # room for rounding, too
        v, g = (math.sqrt(x) for x in still)
        right = (v + step) / (g - 2 * step)
        return [
            (
                math.sqrt(moved[0] / moved[1]) / right,
                always(factor, "amini2021, after (26)"),
            )
        ]

    settings = (Setting(f"two segments, n={n}, d={d}"),)
    return Check(
        printed=Form(sides(off_diagonal=False), settings),
        corrected=Form(sides(), settings),
        controls=(Control("half of it", sides(factor=0.5), settings, "wrong factor"),),
    )


COSINES = (0.0, 1e-9, 0.3, -0.3, 0.9, -1.0, 1.0)


def _eq28() -> Check:
    @parametrized(Identity)
    def residual(
        setting: Setting,
        cosines: tuple[float, ...],
        zero: int = 1,
        noise: float = NOISE,
    ) -> np.ndarray:
        r, q, d = setting.numbers["r"], setting.numbers["q"], setting.shapes["d"]
        true = np.array(
            [laws.radial_quadrature(a, r, q, NOISE, TAU, d) for a in cosines]
        )
        return laws.radial_mean(np.array(cosines), r, q, noise, TAU, d, zero) / true - 1

    def library(setting: Setting) -> np.ndarray:
        r, q, d = setting.numbers["r"], setting.numbers["q"], setting.shapes["d"]
        true = np.array(
            [laws.radial_quadrature(a, r, q, NOISE, TAU, d) for a in COSINES]
        )
        others = np.stack(
            [q * np.array(COSINES), q * np.sqrt(1 - np.array(COSINES) ** 2)], axis=1
        )
        first, second = (
            real(points @ np.eye(2, d)) for points in (np.array([[r, 0.0]]), others)
        )
        mean = measures.mean_kernel_between(
            kernels.Gaussian(TAU), first, second, measures.RadialNoise(NOISE)
        )
        return as_residual(np.asarray(mean[0]) / true - 1)

    settings = two_spheres(4, 50)
    no_sign, variance = (
        residual(cosines=COSINES[:1], zero=0),
        residual(cosines=COSINES[1:], noise=NOISE**2),
    )
    return Check(
        printed=Form(residual(cosines=COSINES[1:]), settings),
        corrected=Form(Identity(library), settings),
        controls=(
            Control("sign(0) = 0", no_sign, settings, "hypothesis broken"),
            Control(
                "the variance of the noise for its root",
                variance,
                settings,
                "swapped constants",
            ),
        ),
    )


def _noise(means: Any, noise: Any) -> np.ndarray:
    """Return the noise of one draw around the means, W itself for the level sqrt(d)."""
    return np.asarray(
        problems.perturb(jax.random.key(0), means, noise).points - means, np.float64
    )


def _mean_kernels() -> Check:
    rng = np.random.default_rng(5)
    means, roots = rng.standard_normal((4, 2)), 0.5 * rng.standard_normal((4, 2, 2))
    levels, full = np.array([0.3, 0.6, 0.9, 1.2]), roots @ roots.transpose(0, 2, 1)
    diagonals = np.stack([np.diag(C) for C in full])
    along = means / np.linalg.norm(means, axis=1)[:, None]
    models: dict[str, tuple[Any, np.ndarray]] = {
        "isotropic": (
            measures.IsotropicNoise(real(levels)),
            levels[:, None, None] ** 2 / 2 * np.eye(2),
        ),
        "radial": (
            measures.RadialNoise(real(levels)),
            levels[:, None, None] ** 2 / 2 * along[:, :, None] * along[:, None, :],
        ),
        "diagonal": (
            measures.DiagonalNoise(real(diagonals)),
            diagonals[:, :, None] * np.eye(2),
        ),
        "general": (measures.GeneralNoise(real(full)), full),
    }

    @parametrized(Identity)
    def residual(
        setting: Setting, factor: float = 1.0, share: float = 1.0
    ) -> np.ndarray:
        """Compare E K and K with their entries, and the points with roots of the covariances times normal vectors.

        E K is taken with a `factor` off the diagonal, and a `share` of the noise.
        """
        kernel, (noise, covariances) = (
            setting.data["kernel"],
            models[setting.data["noise"]],
        )
        name, true = type(kernel).__name__, np.zeros((4, 4))
        apart = np.linalg.norm(means[:, None] - means, axis=2)
        values = {
            "Linear": means @ means.T,
            "Distance": apart,
            "Gaussian": np.exp(-(apart**2) / 2),
        }[name]
        for i, j in np.ndindex(4, 4):
            if name == "Linear":
                true[i, j] = means[i] @ means[j] + (i == j) * np.trace(covariances[i])
            elif i == j:
                true[i, j] = values[i, j]
            else:
                C = share * (covariances[i] + covariances[j])
                true[i, j] = factor * laws.mean_of_plane(name, means[i] - means[j], C)
        errors = [np.asarray(measures.mean_kernel(kernel, real(means), noise)) - true]
        errors += [np.asarray(gram.gram(kernel, real(means))) - values]
        if setting.data["noise"] != "radial":
            W, found = (_noise(real(means), each) for each in (math.sqrt(2), noise))
            eigenvalues, vectors = np.linalg.eigh(covariances)
            roots = (vectors * np.sqrt(eigenvalues)[:, None]) @ vectors.transpose(
                0, 2, 1
            )
            errors.append((found - np.einsum("nij,nj->ni", roots, W)).T)
        return as_residual(np.concatenate(errors))

    tried = [(kernels.Distance(), name) for name in models]
    tried += [(kernels.Gaussian(1.0), "general"), (kernels.Linear(), "diagonal")]
    settings = tuple(
        Setting(
            f"{type(kernel).__name__}, {name} noise, n=4, d=2",
            {"kernel": kernel, "noise": name},
        )
        for kernel, name in tried
    )
    return Check(
        corrected=Form(residual(), settings),
        controls=(
            Control(
                "1.001 times it off the diagonal",
                residual(factor=1.001),
                settings[:1],
                "wrong factor",
            ),
            Control(
                "0.99 of the noise",
                residual(share=0.99),
                settings[2:3],
                "swapped constants",
            ),
        ),
    )


def _angle() -> Check:
    dims, r = (10, 100, 10**6), 5.0

    def goes_away() -> Pairs:
        """By how much the kernel differs between two angles: in high dimensions, and in dimension 10."""
        low, high = (
            float(np.ptp(laws.radial_mean(np.array([0.01, 0.9]), r, r, NOISE, TAU, d)))
            for d in (dims[0], dims[-1])
        )
        return [(high, always(low / 2, "amini2021, Example 4"))]

    @parametrized(Inequality)
    def limit(level: float = 1.0) -> Pairs:
        """|f_d - f_tau(|u - v|)| in units of the bound."""
        a = np.linspace(-1, 1, 41)
        pairs = []
        for d in dims:
            right = concentration.radial_mean_gap(noise=NOISE, lengthscale=TAU, dim=d)
            mean = laws.radial_mean(a, r, r, NOISE, TAU, d)
            apart = np.abs(mean - laws.still_kernel(level * a, r, r, TAU)) / right.value
            pairs += [(float(x), laws.rescaled(right, 1 / right.value)) for x in apart]
        return pairs

    settings = (Setting("both at distance 5 from the origin, noise 1.5"),)
    return Check(
        printed=Form(Inequality(goes_away), settings),
        corrected=Form(limit(), settings),
        controls=(
            Control(
                "a limit that depends on the norms alone",
                limit(level=0.0),
                settings,
                "term left out",
            ),
            controls.part_of(0.95, limit(), settings),
        ),
    )
