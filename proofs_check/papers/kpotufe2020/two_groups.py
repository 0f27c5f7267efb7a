"""Laws of features with few atoms in two groups, in coordinates in which Sigma is diagonal: what Section 5 is about.

Given the sample, S* V V^T S is a Wishart matrix between roots of Sigma_n^3, drawn by Bartlett's decomposition, so that
a million rows cost as much as four.
"""

import dataclasses
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from proofs_check.claim import Setting
from proofs_check.papers.populations import Population, diagonal
from proofs_check.papers.shared import real

Pair = tuple[np.ndarray, np.ndarray]

MANY = {"n": 1e9, "d": 1e6}
FEW = {"n": 1e3, "d": 64.0}


@dataclasses.dataclass(frozen=True)
class Mixture:
    """Two laws in R^q by their weights, means and covariances, and what Example 2 takes from them."""

    weight: float
    means: Pair
    covariances: Pair

    @property
    def gamma(self) -> float:
        """pi_1 / pi_2."""
        return self.weight / (1 - self.weight)

    @property
    def gap(self) -> np.ndarray:
        """mu_1 - mu_2."""
        return self.means[0] - self.means[1]

    @property
    def operator(self) -> np.ndarray:
        """Sigma, not centred."""
        first = self.covariances[0] + np.outer(self.means[0], self.means[0])
        second = self.covariances[1] + np.outer(self.means[1], self.means[1])
        return self.weight * first + (1 - self.weight) * second

    @property
    def sigma(self) -> float:
        """The larger of the leading eigenvalues of the covariances."""
        return max(float(np.linalg.eigvalsh(C)[-1]) for C in self.covariances)

    def leading(self) -> tuple[float, np.ndarray]:
        """lambda_1 and f_1."""
        values, vectors = np.linalg.eigh(self.operator)
        return float(values[-1]), vectors[:, -1]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class TwoGroups(Population):
    """A population whose atoms are in two groups, 0 and 1."""

    labels: np.ndarray

    @cached_property
    def mixture(self) -> Mixture:
        """The groups as the two laws of a mixture."""
        weight = float(self.weights[self.labels == 0].sum())
        means, covariances = zip(self._moments(0), self._moments(1), strict=True)
        return Mixture(weight, means, covariances)

    def _moments(self, label: int) -> Pair:
        """Return the mean and the covariance of a group."""
        chosen = self.labels == label
        weights = self.weights[chosen]
        mean = np.average(self.features[chosen], axis=0, weights=weights)
        rows = self.features[chosen] - mean
        return mean, rows.T @ ((weights / weights.sum())[:, None] * rows)

    def epsilon(self, k: int) -> float:
        """Return the smallest epsilon with which every atom meets Assumption 1 for this k."""
        squares = self.features**2
        return float(np.max(squares[:, k:].sum(1) / squares.sum(1)))

    def setting(
        self, numbers: dict[str, float], *, k: int = 1, tau: float = 3.0
    ) -> Setting:
        """Return a setting with what the trials and the bounds of Section 5 need."""
        first, second = np.triu_indices(len(self.weights), 1)
        mixture = self.mixture
        arrays = {
            **self.arrays,
            "pairs": real(self.features[first] - self.features[second]),
            "within": jnp.asarray(self.labels[first] == self.labels[second]),
            "gap": real(mixture.gap),
        }
        exact = {
            **numbers,
            "tau": tau,
            "eigenvalue": float(self.eigenvalues[k - 1]),
            "epsilon": self.epsilon(k),
            "sigma": mixture.sigma,
            "weight": mixture.weight,
            "mean_gap": float(np.sum(mixture.gap**2)),
            **self.quantities,
            "num_points": 1000.0,
            "eta": 1e-12,  # every atom meets Assumption 1, so that any eta > 0 will do
            "num_pairs": float(len(first)),
        }
        sizes = ", ".join(f"{name}={value:g}" for name, value in numbers.items())
        label = f"{self.name}, k={k}, tau={tau:g}, {sizes}"
        return Setting(label, arrays, exact)


def two_groups(
    name: str, rows: Any, weights: Any, labels: Any, *, centred: bool = True
) -> TwoGroups:
    """Return the law of feature rows (p, r) with these probabilities, in coordinates in which Sigma is diagonal."""
    rows = np.asarray(rows, float)
    weights = np.asarray(weights, float)
    if centred:
        rows = rows - weights @ rows
    features, eigenvalues = diagonal(rows, weights)
    return TwoGroups(
        name=name,
        kernel=None,  # the atoms are known by their features; no trial uses the kernel
        points=rows,
        weights=weights,
        features=features,
        eigenvalues=eigenvalues,
        labels=np.asarray(labels),
    )


def four_atoms(b: float = 0.5, labels: tuple[int, ...] = (0, 0, 1, 1)) -> TwoGroups:
    """Return the linear kernel on (+-1, +-b), equally likely: centred, Sigma = diag(1, b^2)."""
    # The zeros give the shape of the other laws.
    rows = np.zeros((4, 4))
    rows[:, 0] = [1, 1, -1, -1]
    rows[:, 1] = [b, -b, b, -b]
    return two_groups(f"four atoms, b={b:g}", rows, np.full(4, 0.25), labels)


def two_clusters(weight: float = 0.3, *, centred: bool = True) -> TwoGroups:
    """Return a Gaussian kernel on two tight pairs of points in the plane, far apart."""
    noise = 0.15 * np.random.default_rng(5).standard_normal((4, 2))
    points = noise + np.repeat([[0.0, 0.0], [6.0, 0.0]], 2, axis=0)
    K = np.exp(-((points[:, None] - points[None]) ** 2).sum(-1) / 2)
    values, vectors = np.linalg.eigh(K)
    rows = vectors * np.sqrt(np.maximum(values, 0))
    weights = np.repeat([weight / 2, (1 - weight) / 2], 2)
    name = f"two clusters, pi_1={weight:g}" + ("" if centred else ", not centred")
    return two_groups(name, rows, weights, np.repeat([0, 1], 2), centred=centred)


def two_atoms(weight: float) -> TwoGroups:
    """Return two orthonormal atoms, not centred: Sigma = diag(pi_1, pi_2) up to order, Sigma_1 = Sigma_2 = 0."""
    name = f"two orthonormal atoms, pi_1={weight:g}"
    return two_groups(name, np.eye(2), [weight, 1 - weight], [0, 1], centred=False)
