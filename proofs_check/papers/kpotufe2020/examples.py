"""kpotufe2020, Section 5: Assumption 1, Examples 1 and 2 with (10) to (14), and what can be said without a scale.

Centred laws with few atoms, in the coordinates of Sigma. Given the sample, S* V V^T S is a Wishart matrix between roots
of Sigma_n^3, drawn by Bartlett's decomposition, so that a million rows cost as much as four.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern.bounds import Bound, sketching
from proofs_check import controls
from proofs_check.claim import Check, Control, Exact, Form, Identity, Inequality, Setting, Tail
from proofs_check.engine import tilting
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import always

PAPER = "kpotufe2020"
MANY = {"n": 1e9, "d": 1e6}
FEW = {"n": 1e3, "d": 64.0}
NAMES = ("kappa", "op_norm", "trace", "trace3", "hs_norm")


# ---------------------------------------------------------------------------------------------------------------- laws


@dataclasses.dataclass(frozen=True, eq=False)
class Law:
    """A population with atoms in two groups: pi_1, and per group the mean and the covariance operator."""

    person: Population
    labels: np.ndarray

    @property
    def weight(self) -> float:
        """pi_1, the probability of the first group."""
        return float(self.person.weights[self.labels == 0].sum())

    def mean(self, label: int) -> np.ndarray:
        """mu_1 or mu_2."""
        chosen = self.labels == label
        return np.average(self.person.features[chosen], axis=0, weights=self.person.weights[chosen])

    def covariance(self, label: int) -> np.ndarray:
        """Sigma_1 or Sigma_2, which the paper centres."""
        chosen = self.labels == label
        rows = self.person.features[chosen] - self.mean(label)
        weights = self.person.weights[chosen] / self.person.weights[chosen].sum()
        return rows.T @ (weights[:, None] * rows)

    @property
    def sigma(self) -> float:
        """The larger of the leading eigenvalues of Sigma_1 and Sigma_2."""
        return max(float(np.linalg.eigvalsh(self.covariance(label))[-1]) for label in (0, 1))

    @property
    def gap(self) -> np.ndarray:
        """mu_1 - mu_2."""
        return self.mean(0) - self.mean(1)


def _law(name: str, rows: Any, weights: Any, labels: Any, *, centred: bool = True) -> Law:
    """Return the law of feature rows (p, r) with these probabilities, in coordinates in which Sigma is diagonal."""
    rows, weights = np.asarray(rows, float), np.asarray(weights, float)
    if centred:
        rows = rows - weights @ rows
    values, rotation = np.linalg.eigh(rows.T @ (weights[:, None] * rows))
    features = rows @ rotation[:, ::-1]
    kernel = None  # the atoms are given by their features; no trial asks for the kernel
    return Law(Population(name, kernel, rows, weights, features, np.maximum(values[::-1], 0.0)), np.asarray(labels))


def four_atoms(b: float = 0.5, labels: tuple[int, ...] = (0, 0, 1, 1)) -> Law:
    """Return the linear kernel on (+-1, +-b), equally likely: centred, Sigma = diag(1, b^2)."""
    rows = np.array([[1, b, 0, 0], [1, -b, 0, 0], [-1, b, 0, 0], [-1, -b, 0, 0]])  # 0 for the shape of the others
    return _law(f"four atoms, b={b:g}", rows, np.full(4, 0.25), labels)


def two_clusters(weight: float = 0.3, *, centred: bool = True) -> Law:
    """Return a Gaussian kernel on two tight pairs of points in the plane, far apart."""
    noise = 0.15 * np.random.default_rng(5).standard_normal((4, 2))
    points = noise + np.repeat([[0.0, 0.0], [6.0, 0.0]], 2, axis=0)
    K = np.exp(-((points[:, None] - points[None]) ** 2).sum(-1) / 2)
    values, vectors = np.linalg.eigh(K)
    rows = vectors * np.sqrt(np.maximum(values, 0))
    weights = np.repeat([weight / 2, (1 - weight) / 2], 2)
    name = f"two clusters, pi_1={weight:g}" + ("" if centred else ", not centred")
    return _law(name, rows, weights, np.repeat([0, 1], 2), centred=centred)


def two_atoms(weight: float) -> Law:
    """Return two orthonormal atoms, not centred: Sigma = diag(pi_1, pi_2) up to order, Sigma_1 = Sigma_2 = 0."""
    return _law(f"two orthonormal atoms, pi_1={weight:g}", np.eye(2), [weight, 1 - weight], [0, 1], centred=False)


def _epsilon(person: Population, k: int) -> float:
    """Return the smallest epsilon with which every atom meets Assumption 1 for this k."""
    squares = person.features**2
    return float(np.max(squares[:, k:].sum(1) / squares.sum(1)))


def _setting(law: Law, numbers: dict[str, float], *, k: int = 1, tau: float = 3.0) -> Setting:
    """Return a setting with what the trials of this module need."""
    person = law.person
    first, second = np.triu_indices(len(person.weights), 1)
    dtype = jax.dtypes.canonicalize_dtype(float)
    arrays = {
        **person.arrays,
        "pairs": jnp.asarray(person.features[first] - person.features[second], dtype),
        "within": jnp.asarray(law.labels[first] == law.labels[second]),
        "gap": jnp.asarray(law.gap, dtype),
    }
    given = {
        **numbers,
        "tau": tau,
        "eigenvalue": float(person.eigenvalues[k - 1]),
        "epsilon": _epsilon(person, k),
        "sigma": law.sigma,
        "weight": law.weight,
        "mean_gap": float(np.sum(law.gap**2)),
        **{name: getattr(person, name) for name in NAMES},
        "num_points": 1000.0,
        "eta": 1e-12,  # every atom meets Assumption 1, so that any eta > 0 will do
        "pairs": float(len(first)),
    }
    label = f"{person.name}, k={k}, tau={tau:g}, " + ", ".join(f"{key}={v:g}" for key, v in numbers.items())
    return Setting(label, arrays, given)


def _bound(formula: Callable[..., Bound], *names: str) -> Callable[[Setting], Bound]:
    return lambda setting: formula(**{name: setting.numbers[name] for name in (*NAMES, "n", "d", "tau", *names)})


# -------------------------------------------------------------------------------------------------------- Assumption 1


def _assumption1() -> Check:
    def centring(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        del key
        person: Population = setting.population.person
        mean = person.weights @ person.features
        return [(float(np.linalg.norm(mean)) / math.sqrt(person.kappa), always(0.0, "kpotufe2020, Assumption 1"))]

    def markov(power: float) -> Callable[[jax.Array, Setting], list[tuple[float, Bound]]]:
        def sides(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            person: Population = setting.population.person
            pairs = centring(key, setting)
            squares = person.features**2
            for k in range(1, len(person.eigenvalues)):
                outside = squares[:, k:].sum(1) / squares.sum(1)
                for epsilon in (0.01, 0.03, 0.1, 0.3):
                    eta = float(person.weights[outside > epsilon].sum())
                    rest = float(person.eigenvalues[k:].sum()) / float(squares.sum(1).min())
                    pairs.append((eta, always(rest / epsilon**power, "kpotufe2020, Assumption 1")))
            return pairs

        return sides

    def at(*laws: Law) -> tuple[Setting, ...]:
        return tuple(Setting(law.person.name, law) for law in laws)

    centred = at(four_atoms(), two_clusters(), two_clusters(0.5))
    return Check(
        printed=Form(Inequality(centring), at(two_clusters(centred=False))),
        corrected=Form(Inequality(markov(1.0)), centred),
        controls=(Control("without 1 / epsilon", Inequality(markov(0.0)), centred, "wrong power"),),
    )


# ----------------------------------------------------------------------------------------------------------- Example 1


def _eq10() -> Check:
    def limit(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        """The statement as n and d grow, f = (1, b) and g = -f."""
        del key
        b = setting.numbers["b"]
        person = four_atoms(b).person
        h = 2 * person.features[0]
        left = person.eigenvalues[0] ** 3 * (float(h @ h) - 2 * _epsilon(person, 1) * person.kappa)
        return [(left, always(float(person.eigenvalues**3 @ h**2), "kpotufe2020, (10)"))]

    def with_two(setting: Setting) -> Bound:
        right = shortfall(setting)
        lost = 2 * setting.numbers["epsilon"] * setting.numbers["kappa"] * setting.numbers["eigenvalue"] ** 3
        return dataclasses.replace(right, value=right.value - lost)

    shortfall = _bound(sketching.separation_shortfall, "eigenvalue", "epsilon", "num_points", "eta")
    laws = (four_atoms(), two_clusters())
    settings = tuple(_setting(law, sizes, k=k) for law in laws for sizes, k in ((MANY, 1), (MANY, 2), (FEW, 1)))
    return Check(
        printed=Form(
            Inequality(limit), tuple(Setting(f"atoms (+-1, +-b), b={b:g}", numbers={"b": b}) for b in (0.25, 0.5, 0.75))
        ),
        corrected=Form(Tail(trials.separation_loss, shortfall), settings),
        controls=(
            Control("2 epsilon kappa", Tail(trials.separation_loss, with_two), settings[:1], "wrong factor"),
            Control(
                "lambda_1 for lambda_k",
                Tail(trials.separation_loss, shortfall),
                controls.changed(settings[1:2], "lambda_1", numbers={"eigenvalue": settings[0].numbers["eigenvalue"]}),
                "swapped constants",
            ),
        ),
    )


def _eq11() -> Check:
    def violation(setting: Setting) -> tuple[float, float]:
        """K = 1 and h = c: P(c^2 chi2_d / d > c^2 + C2 sqrt(tau / d)) against exp(-tau)."""
        d, tau, constant, c = (setting.numbers[key] for key in ("d", "tau", "C2", "c"))
        y = d + constant * math.sqrt(tau * d) / c**2
        far = y > 1.5 * d + 2
        return tilting.log_chi_square_tail(int(d), y) if far else float(stats.chi2.logsf(y, d)), -tau

    def exceeded(setting: Setting) -> Bound:
        right = _bound(sketching.largest_stretch)(setting)
        return dataclasses.replace(right, value=setting.numbers["op_norm"] ** 3)

    printed = [
        Setting(f"K=1, |h|=1, d={d:g}, C2={c2:g}, tau={tau:g}", numbers={"d": d, "tau": tau, "C2": c2, "c": 1.0})
        for d, c2, tau in ((10.0, 10.0, 300.0), (1e3, 10.0, 3e4), (1e6, 100.0, 1e10))
    ]
    printed += [
        Setting(f"K=1, |h|=1e4, d={d:g}, C2={c2:g}, tau=3", numbers={"d": d, "tau": 3.0, "C2": c2, "c": 1e4})
        for d, c2 in ((1e3, 10.0), (1e6, 100.0))
    ]
    laws = (four_atoms(), two_clusters())
    settings = tuple(_setting(law, sizes) for law in laws for sizes in (MANY, FEW))
    return Check(
        printed=Form(Exact(violation), tuple(printed)),
        corrected=Form(Tail(trials.stretch, _bound(sketching.largest_stretch)), settings),
        controls=(
            Control("without the deviation term", Tail(trials.stretch, exceeded), settings[:1], "term left out"),
        ),
    )


def _relative() -> Check:
    def bound(setting: Setting) -> Bound:
        d, tau, pairs = (setting.numbers[key] for key in ("d", "tau", "pairs"))
        return sketching.relative_norms(num_functions=pairs, d=d, tau=tau)

    laws = (four_atoms(), two_clusters())
    settings = tuple(_setting(law, {"n": 200.0, "d": d}) for law in laws for d in (16.0, 4096.0))
    return Check(
        corrected=Form(Tail(trials.relative_error, bound), settings),
        controls=(
            Control(
                "a quarter of the bound",
                Tail(trials.relative_error, controls.scaled(bound, lambda s: 0.25)),
                settings[2:],
                "wrong factor",
            ),
        ),
    )


def _scale_free() -> Check:
    def bound(setting: Setting) -> Bound:
        given = setting.numbers
        e = sketching.relative_norms(num_functions=given["pairs"], d=given["d"], tau=given["tau"])
        room = given["gap2"] - 4 * given["epsilon"] * given["kappa"]
        value = (
            (1 + e.value) / (1 - e.value) * (given["op_norm"] / given["eigenvalue"]) ** 3 * given["diameter2"] / room
        )
        return Bound(value, e.probability, e.value < 1 and room > 0, "jaxkern, Proposition K")

    def placed(law: Law, d: float, k: int) -> Setting:
        setting = _setting(law, {"n": 1.0, "d": d}, k=k)
        squares, within = np.sum(np.asarray(setting.population["pairs"]) ** 2, axis=1), setting.population["within"]
        inside, outside = squares[np.asarray(within)].max(), squares[~np.asarray(within)].min()
        return dataclasses.replace(
            setting, numbers={**setting.numbers, "diameter2": float(inside), "gap2": float(outside)}
        )

    # Groups by the second sign are as wide as they can be against what separates them: there the bound is sharp.
    laws = ((two_clusters(), 1), (four_atoms(labels=(0, 1, 0, 1)), 2))
    settings = tuple(placed(law, d, k) for law, k in laws for d in (300.0, 1e5))

    def mixed(arrays: dict[str, Any]) -> dict[str, Any]:
        return {**arrays, "within": jnp.roll(arrays["within"], 1)}

    return Check(
        corrected=Form(Tail(trials.image_ratio, bound), settings),
        controls=(
            Control(
                "pairs of the other set counted as within",
                Tail(trials.image_ratio, bound),
                controls.changed(settings[:1], "mixed", population=mixed),
                "hypothesis broken",
            ),
        ),
    )


# ----------------------------------------------------------------------------------------------------------- Example 2


@dataclasses.dataclass(frozen=True)
class Mixture:
    """Two laws in R^q by their weights, means and covariances, and what Example 2 takes from them."""

    weight: float
    means: tuple[np.ndarray, np.ndarray]
    covariances: tuple[np.ndarray, np.ndarray]

    @property
    def gamma(self) -> float:
        """pi_1 / pi_2."""
        return self.weight / (1 - self.weight)

    @property
    def operator(self) -> np.ndarray:
        """Sigma, not centred."""
        parts = [C + np.outer(m, m) for C, m in zip(self.covariances, self.means, strict=True)]
        return self.weight * parts[0] + (1 - self.weight) * parts[1]

    @property
    def sigma(self) -> float:
        """The larger of the leading eigenvalues of the covariances."""
        return max(float(np.linalg.eigvalsh(C)[-1]) for C in self.covariances)

    def leading(self) -> tuple[float, np.ndarray]:
        """lambda_1 and f_1."""
        values, vectors = np.linalg.eigh(self.operator)
        return float(values[-1]), vectors[:, -1]


def _of(law: Law) -> Mixture:
    return Mixture(law.weight, (law.mean(0), law.mean(1)), (law.covariance(0), law.covariance(1)))


def _random_mixtures(seed: int, count: int = 300) -> list[Mixture]:
    """Return centred mixtures: mu_2 = -gamma mu_1, covariances of random rank and size."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        dim = int(rng.integers(2, 6))
        weight = float(rng.uniform(0.05, 0.95))
        mean = rng.standard_normal(dim)
        roots = [10 ** rng.uniform(-2, 0.3) * rng.standard_normal((dim, int(rng.integers(1, dim + 1)))) for _ in "12"]
        covariances = tuple(R @ R.T for R in roots)
        found.append(Mixture(weight, (mean, -weight / (1 - weight) * mean), (covariances[0], covariances[1])))
    return found


def _centred_places() -> tuple[Setting, ...]:
    laws = (four_atoms(), two_clusters())
    return (
        *(Setting(f"300 random centred mixtures, seed {seed}", _random_mixtures(seed)) for seed in range(3)),
        *(Setting(law.person.name, [_of(law)]) for law in laws),
    )


def _uncentred_places(weights: Sequence[float], cluster: float) -> tuple[Setting, ...]:
    laws = (*(two_atoms(w) for w in weights), two_clusters(cluster, centred=False))
    return tuple(Setting(law.person.name, [_of(law)]) for law in laws)


def _sides(one: Callable[[Mixture], tuple[float, float]], source: str) -> Inequality:
    def sides(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        del key
        return [(left, always(right, f"kpotufe2020, {source}")) for left, right in map(one, setting.population)]

    return Inequality(sides)


CENTRING = (
    "A mixture of two laws of features with means $\\mu_1,\\mu_2$ and covariances whose eigenvalues are at most "
    "$\\sigma$. That $\\pi_1\\mu_1+\\pi_2\\mu_2=0$ is used and not assumed; the corrected form assumes it."
)


def _mixture() -> Check:
    def residual(sign: float, *, swapped: bool = False) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            found = []
            for m in setting.population:
                gamma = 1 / m.gamma if swapped else m.gamma
                first, second = m.means
                size = np.linalg.norm(m.operator)
                parts = m.weight * m.covariances[0] + (1 - m.weight) * m.covariances[1]
                found += [
                    np.linalg.norm(second - sign * gamma * first) / np.linalg.norm(second),
                    np.linalg.norm(m.operator - parts - gamma * np.outer(first, first)) / size,
                    abs((1 + gamma) ** 2 / gamma * m.weight * (1 - m.weight) - 1),
                ]
            return np.asarray(found)

        return Identity(check)

    places = _centred_places()
    return Check(
        printed=Form(Identity(residual(1.0).residual), places),
        corrected=Form(residual(-1.0), places),
        controls=(Control("gamma = pi_2 / pi_1", residual(-1.0, swapped=True), places, "swapped constants"),),
    )


def _eq13() -> Check:
    def holds(with_sigma: bool = True) -> Inequality:
        def one(m: Mixture) -> tuple[float, float]:
            largest, leading = m.leading()
            right = m.gamma * float(leading @ m.means[0]) ** 2 + (m.sigma if with_sigma else 0.0)
            return 1.0, right / largest

        return _sides(one, "(13)")

    centred = _centred_places()
    return Check(
        printed=Form(holds(), _uncentred_places((0.1, 0.4), 0.3)),
        corrected=Form(holds(), centred),
        controls=(Control("without sigma", holds(with_sigma=False), centred, "term left out"),),
    )


def _eq14() -> Check:
    def holds(factor: float = 1.0) -> Inequality:
        def one(m: Mixture) -> tuple[float, float]:
            largest, _ = m.leading()
            return factor * m.gamma * float(m.means[0] @ m.means[0]) / largest, 1.0

        return _sides(one, "(14)")

    centred = _centred_places()
    return Check(
        printed=Form(holds(), _uncentred_places((0.9, 0.6), 0.7)),
        corrected=Form(holds(), centred),
        controls=(Control("2 gamma", holds(2.0), centred, "wrong factor"),),
    )


def _eq12() -> Check:
    def one(m: Mixture) -> tuple[float, float]:
        largest, _ = m.leading()
        gap = m.means[0] - m.means[1]
        unit = largest**3 * float(gap @ gap)
        left = 1 - m.sigma / (m.weight * (1 - m.weight) * float(gap @ gap))
        return left, float(gap @ np.linalg.matrix_power(m.operator, 3) @ gap) / unit

    shortfall = _bound(sketching.mean_separation_shortfall, "sigma", "weight", "mean_gap")
    laws = (four_atoms(), two_clusters(), two_clusters(0.5))
    settings = tuple(_setting(law, sizes) for law in laws for sizes in (MANY, FEW))
    loose = (_setting(two_atoms(0.9), MANY), _setting(two_clusters(0.7, centred=False), MANY))
    return Check(
        printed=Form(_sides(one, "(12)"), _uncentred_places((0.9, 0.6), 0.7)),
        corrected=Form(Tail(trials.mean_separation_loss, shortfall), settings),
        controls=(
            Control("not centred", Tail(trials.mean_separation_loss, shortfall), loose, "centred for uncentred"),
        ),
    )
