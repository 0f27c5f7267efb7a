"""amini2021, Section 3.2: Examples 3 and 4, what noise does to the mean kernel; Theorem E for (28)."""

import dataclasses
import math
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxkern import gram, kernels, measures, problems
from jaxkern.bounds import concentration
from proofs_check import controls
from proofs_check.claim import Check, Identity, Inequality, Setting
from proofs_check.papers.amini2021.expectations import (
    mean_gaussian_of_plane,
    mean_length_of_plane,
    radial_mean,
    radial_quadrature,
    still_kernel,
)
from proofs_check.papers.amini2021.setup import NOISE, TAU, Pairs, blocks, rescaled
from proofs_check.papers.shared import Grids, as_residual, check_of, lines, real, wrong


def _segments(n: int, d: int, noise: float, off_diagonal: bool) -> tuple[float, float]:
    """Return vbar and gamma for two segments and the Gaussian kernel, with noise."""
    labels = np.arange(n) % 2
    points = np.random.default_rng(3).uniform(0, 1, n) + 4 * labels
    s2 = 1 + 2 * noise**2 / (d * TAU**2)
    squared = (points[:, None] - points) ** 2
    mean = s2 ** (-d / 2) * np.exp(-squared / (2 * s2 * TAU**2))
    np.fill_diagonal(mean, 1)
    parameters = blocks(mean, labels, off_diagonal=off_diagonal)
    return math.sqrt(float(parameters.vbar2)), math.sqrt(float(parameters.gamma2))


def noise_in_ratio(
    n: int, d: int, off_diagonal: bool = True, factor: float = 1.0
) -> Pairs:
    """vbar / gamma with noise over its bound: entries move by 2 sigma^2 / (e d tau^2) at most."""
    still_v, still_gamma = _segments(n, d, 0.0, off_diagonal)
    v, gamma = _segments(n, d, NOISE, off_diagonal)
    # Ten times as much leaves room for rounding.
    step = 2 * NOISE**2 / (math.e * d * TAU**2) * 10
    right = (still_v + step) / (still_gamma - 2 * step)
    return lines([(v / gamma / right, factor)], "amini2021, after (26)")


def ex3_noise(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["both"],
        wrong("half of it", "wrong factor", factor=0.5),
        printed=partial(noise_in_ratio, off_diagonal=False),
        corrected=noise_in_ratio,
    )


COSINES = np.array([0.0, 1e-9, 0.3, -0.3, 0.9, -1.0, 1.0])


def _radial_means(r: float, q: float, d: int) -> np.ndarray:
    return np.array([radial_quadrature(a, r, q, NOISE, TAU, d) for a in COSINES])


def radial_mean_errors(
    r: float, q: float, d: int, noise: float = NOISE, chosen: slice = slice(1, None)
) -> np.ndarray:
    """(28), with sign(0) = 0, against quadrature for the chosen cosines, by default for all but 0."""
    formula = radial_mean(COSINES[chosen], r, q, noise, TAU, d, zero=0)
    return formula / _radial_means(r, q, d)[chosen] - 1


def library_radial_errors(r: float, q: float, d: int) -> np.ndarray:
    """The mean kernel of the library against quadrature for all cosines."""
    kernel = kernels.Gaussian(TAU)
    noise = measures.RadialNoise(NOISE)
    sines = np.sqrt(1 - COSINES**2)
    others = q * np.stack([COSINES, sines], axis=1) @ np.eye(2, d)
    first = r * np.eye(1, d)
    mean = measures.mean_kernel_between(kernel, real(first), real(others), noise)
    return as_residual(np.asarray(mean[0]) / _radial_means(r, q, d) - 1)


def eq28(grids: Grids) -> Check:
    name = "the variance of the noise for its root"
    return check_of(
        Identity,
        grids["both"],
        wrong(
            "sign(0) = 0",
            "hypothesis broken",
            radial_mean_errors,
            chosen=slice(1),
        ),
        wrong(name, "swapped constants", radial_mean_errors, noise=NOISE**2),
        printed=radial_mean_errors,
        corrected=library_radial_errors,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class NoisyPoints:
    """Four points of the plane with a kernel, its values, a noise of the library, and the covariances of the noise."""

    kernel: Any
    means: np.ndarray
    noise: Any
    covariances: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """K of the means."""
        if isinstance(self.kernel, kernels.Linear):
            return self.means @ self.means.T
        apart = np.linalg.norm(self.means[:, None] - self.means, axis=2)
        if isinstance(self.kernel, kernels.Distance):
            return apart
        return np.exp(-(apart**2) / 2)

    def mean(self, factor: float, share: float) -> np.ndarray:
        """Return E K, with a factor off the diagonal and a share of the noise; all of it for inner products."""
        mean = self.values
        if isinstance(self.kernel, kernels.Linear):
            return mean + np.diag(np.trace(self.covariances, axis1=1, axis2=2))
        is_distance = isinstance(self.kernel, kernels.Distance)
        expectation = mean_length_of_plane if is_distance else mean_gaussian_of_plane
        for i, j in zip(*np.where(~np.eye(4, dtype=bool)), strict=True):
            C = share * (self.covariances[i] + self.covariances[j])
            mean[i, j] = factor * expectation(self.means[i] - self.means[j], C)
        return mean


def _noise(means: Any, noise: Any) -> np.ndarray:
    """Return the noise of one draw around the means, W itself for the level sqrt(d)."""
    points = problems.perturb(jax.random.key(0), means, noise).points
    return np.asarray(points - means, np.float64)


def mean_kernel_errors(
    data: NoisyPoints, factor: float = 1.0, share: float = 1.0
) -> np.ndarray:
    """Compare E K and K with their entries, and the points with roots of the covariances times normal vectors."""
    means = real(data.means)
    mean = np.asarray(measures.mean_kernel(data.kernel, means, data.noise))
    values = np.asarray(gram.gram(data.kernel, means))
    errors = [mean - data.mean(factor, share), values - data.values]
    # Radial noise is drawn along the mean, not by a root of its covariance.
    if not isinstance(data.noise, measures.RadialNoise):
        W = _noise(means, math.sqrt(2))
        eigenvalues, vectors = np.linalg.eigh(data.covariances)
        roots = (vectors * np.sqrt(eigenvalues)[:, None]) @ vectors.transpose(0, 2, 1)
        moved = np.einsum("nij,nj->ni", roots, W)
        errors.append((_noise(means, data.noise) - moved).T)
    return as_residual(np.concatenate(errors))


def mean_kernels() -> Check:
    rng = np.random.default_rng(5)
    means = rng.standard_normal((4, 2))
    roots = 0.5 * rng.standard_normal((4, 2, 2))
    full = roots @ roots.transpose(0, 2, 1)
    levels = np.array([0.3, 0.6, 0.9, 1.2])
    squares = levels[:, None, None] ** 2 / 2
    diagonals = np.stack([np.diag(C) for C in full])
    along = means / np.linalg.norm(means, axis=1)[:, None]
    directions = along[:, :, None] * along[:, None, :]
    isotropic = (measures.IsotropicNoise(real(levels)), squares * np.eye(2))
    radial = (measures.RadialNoise(real(levels)), squares * directions)
    diagonal = (
        measures.DiagonalNoise(real(diagonals)),
        diagonals[:, :, None] * np.eye(2),
    )
    general = (measures.GeneralNoise(real(full)), full)

    def setting(kernel: Any, name: str, noise: Any, covariances: Any) -> Setting:
        label = f"{type(kernel).__name__}, {name} noise, n=4, d=2"
        return Setting(label, NoisyPoints(kernel, means, noise, covariances))

    distance = kernels.Distance()
    settings = (
        setting(distance, "isotropic", *isotropic),
        setting(distance, "radial", *radial),
        setting(distance, "diagonal", *diagonal),
        setting(distance, "general", *general),
        setting(kernels.Gaussian(1.0), "general", *general),
        setting(kernels.Linear(), "diagonal", *diagonal),
    )
    name = "1.001 times it off the diagonal"
    first = settings[:1]
    larger = wrong(name, "wrong factor", settings=first, factor=1.001)
    name = "0.99 of the noise"
    third = settings[2:3]
    quieter = wrong(name, "swapped constants", settings=third, share=0.99)
    return check_of(Identity, settings, larger, quieter, corrected=mean_kernel_errors)


RADIUS = 5.0
DIMS = (10, 100, 10**6)


def angle_dependence() -> Pairs:
    """By how much the kernel differs between two angles: in high dimensions, and in dimension 10."""
    angles = np.array([0.01, 0.9])
    low = np.ptp(radial_mean(angles, RADIUS, RADIUS, NOISE, TAU, DIMS[0]))
    high = np.ptp(radial_mean(angles, RADIUS, RADIUS, NOISE, TAU, DIMS[-1]))
    return lines([(high, low / 2)], "amini2021, Example 4")


def angle_limit(level: float = 1.0) -> Pairs:
    """|f_d - f_tau(|u - v|)| in units of the bound; the limit depends on `level` times the cosine."""
    a = np.linspace(-1, 1, 41)
    limit = still_kernel(level * a, RADIUS, RADIUS, TAU)
    pairs = []
    for d in DIMS:
        right = concentration.radial_mean_gap(noise=NOISE, lengthscale=TAU, dim=d)
        mean = radial_mean(a, RADIUS, RADIUS, NOISE, TAU, d)
        unit = rescaled(right, 1 / right.value)
        pairs += [(float(x), unit) for x in np.abs(mean - limit) / right.value]
    return pairs


def ex4_alpha(grids: Grids) -> Check:
    name = "a limit that depends on the norms alone"
    return check_of(
        Inequality,
        grids["both"],
        wrong(name, "term left out", level=0.0),
        controls.part_of(0.95, Inequality(angle_limit), grids["both"]),
        printed=angle_dependence,
        corrected=angle_limit,
    )
