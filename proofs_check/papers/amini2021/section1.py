"""amini2021, Section 1: the alternative decomposition, and eigenvalues."""

import math
from collections.abc import Callable

import jax
import numpy as np

from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.shared import lines, op_norm, parametrized, rng_of


def _decomposition() -> Check:
    direction = np.array([0.6, 0.8, 0.0])
    along = np.outer(direction, direction)
    across = np.eye(3) - along
    general = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, -0.4], [0.3, -0.4, 3.0]])

    def correlation(setting: Setting) -> np.ndarray:
        """The covariance of the noise along the mean and of what stays with the signal, over |Sigma|."""
        return np.abs(along @ setting.data @ across) / op_norm(setting.data)

    @parametrized(Inequality)
    def sides(setting: Setting, factor: float = 1.0) -> Pairs:
        """Given the signal the noise has the Schur complement as its covariance, which is 1 / (u' Sigma^-1 u)."""
        Sigma = setting.data
        cross = along @ Sigma @ across
        left = op_norm(along @ Sigma @ along - cross @ np.linalg.pinv(across @ Sigma @ across) @ cross.T)
        gap = abs(left - 1 / float(direction @ np.linalg.solve(Sigma, direction)))
        pairs = [(left, factor * op_norm(along @ Sigma @ along)), (gap, 0)]
        return lines(pairs, "amini2021, Section 1, the decomposition")

    anisotropic = (Setting("a general Sigma, d=3", general),)
    return Check(
        printed=Form(Identity(correlation), (Setting("Sigma = 2 I, d=3", 2.0 * np.eye(3)),)),
        corrected=Form(sides(), anisotropic),
        controls=(
            Control("a general Sigma", Identity(correlation), anisotropic, "hypothesis broken"),
            Control("three quarters of it", sides(factor=0.75), anisotropic, "wrong factor"),
        ),
    )


def _eigenvalues() -> Check:
    def kernel_and_mean(rng: np.random.Generator, name: str) -> tuple[np.ndarray, np.ndarray]:
        n, d, noise = 12, 3, 0.7
        means = rng.standard_normal((n, d))
        X = means + noise / math.sqrt(d) * rng.standard_normal((n, d))
        if name == "x + y":
            W = X - means
            return W[:, :1] + W[:, :1].T, np.zeros((n, n))
        square = np.sum((X[:, None] - X) ** 2, axis=2)
        s2 = 1 + 2 * noise**2 / d
        mean = s2 ** (-d / 2) * np.exp(-np.sum((means[:, None] - means) ** 2, axis=2) / (2 * s2))
        np.fill_diagonal(mean, 1)
        return np.exp(-square / 2), mean

    def sides(size: Callable[[np.ndarray], float], factor: float = 1.0) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            rng = rng_of(key)
            pairs = []
            for _ in range(20):
                K, mean = kernel_and_mean(rng, setting.name)
                moved = np.linalg.eigvalsh(K) - np.linalg.eigvalsh(mean)
                unit = size(np.linalg.eigvalsh(K - mean))
                pairs.append((size(moved) / unit, factor))
            return lines(pairs, "amini2021, Section 1.1")

        return Inequality(check)

    def largest(values: np.ndarray) -> float:
        return float(np.max(np.abs(values)))

    settings = (Setting("Gaussian kernel"), Setting("x + y"))
    return Check(
        printed=Form(sides(largest), settings),
        corrected=Form(sides(lambda values: float(np.sqrt(np.sum(values**2)))), settings),
        controls=(Control("nine tenths of it", sides(largest, 0.9), settings, "wrong factor"),),
    )
