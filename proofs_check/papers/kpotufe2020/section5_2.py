"""kpotufe2020, Section 5.2: Example 2, the means of two clusters after Kernel JL, with (12), (13) and (14)."""

import functools
from collections.abc import Callable, Sequence

import jax
import numpy as np

from jaxkern.bounds import Bound, sketching
from proofs_check import controls
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting, Tail
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.two_groups import (
    FEW,
    MANY,
    Mixture,
    four_atoms,
    two_atoms,
    two_clusters,
)
from proofs_check.papers.kpotufe2020.setup import Inputs
from proofs_check.papers.shared import bound_of, lines, parametrized, rng_of


def _random_mixtures(seed: int) -> list[Mixture]:
    """Return 300 centred mixtures: mu_2 = -gamma mu_1, covariances of random rank and size."""
    rng, mixtures = np.random.default_rng(seed), []
    for _ in range(300):
        dim = int(rng.integers(2, 6))
        weight = float(rng.uniform(0.05, 0.95))
        mean = rng.standard_normal(dim)
        roots = [
            10 ** rng.uniform(-2, 0.3)
            * rng.standard_normal((dim, int(rng.integers(1, dim + 1))))
            for _ in "12"
        ]
        first, second = (R @ R.T for R in roots)
        mixtures.append(
            Mixture(weight, (mean, -weight / (1 - weight) * mean), (first, second))
        )
    return mixtures


def _centred_mixtures() -> tuple[Setting, ...]:
    return (
        *(
            Setting(f"300 random centred mixtures, seed {seed}", _random_mixtures(seed))
            for seed in range(3)
        ),
        *(Setting(law.name, [law.mixture]) for law in (four_atoms(), two_clusters())),
    )


def _uncentred_mixtures(
    weights: Sequence[float], cluster: float
) -> tuple[Setting, ...]:
    laws = (*(two_atoms(w) for w in weights), two_clusters(cluster, centred=False))
    return tuple(Setting(law.name, [law.mixture]) for law in laws)


@parametrized(Inequality)
def _holds(
    setting: Setting, compared: Callable[[Mixture], tuple[float, float]], source: str
) -> list[tuple[float, Bound]]:
    return lines(map(compared, setting.data), f"kpotufe2020, {source}")


def _maps(inputs: Inputs) -> Check:
    @parametrized(Identity)
    def holds(
        key: jax.Array, setting: Setting, *, centred: bool = True, cut: bool = True
    ) -> np.ndarray:
        """Functions are rows of coordinates; `landmarks` are 12 of those of the atoms."""
        rows = inputs.population_of(setting).features
        landmarks = rows[rng_of(key).choice(len(rows), 12, replace=False)]
        around = landmarks - landmarks.mean(0)
        # KPCA: sum alpha_i K(x, x_i) is sqrt(lambda) times the score of x, and a number that is the same for all x.
        alpha = np.linalg.eigh(
            around @ around.T if centred else landmarks @ landmarks.T
        )[1][:, -1]
        images, (_, roots, axes) = (
            rows @ landmarks.T @ alpha,
            np.linalg.svd(around, full_matrices=False),
        )
        scores = roots[0] * rows @ axes[0]
        apart = min(np.ptp(images - scores), np.ptp(images + scores)) / np.ptp(images)
        # Nystrom: C K_(3)^+ C' has the products of the projections onto the 3 leading eigenfunctions of Sigma_n.
        values, vectors = np.linalg.eigh(landmarks @ landmarks.T)
        kept = slice(-3, None) if cut else slice(None)
        C = rows @ landmarks.T @ vectors[:, kept]
        projected = rows @ np.linalg.svd(landmarks, full_matrices=False)[2][:3].T
        exact = projected @ projected.T
        return np.array(
            [
                apart,
                np.linalg.norm(C / values[kept] @ C.T - exact) / np.linalg.norm(exact),
            ]
        )

    # In the others Sigma_n has equal eigenvalues, so that its leading eigenfunctions are not unique.
    settings = tuple(
        s for s in inputs.each if s.name.startswith(("gauss", "skewed", "data"))
    )
    return Check(
        printed=Form(holds(), settings),
        controls=(
            Control(
                "a Gram matrix that is not centred",
                holds(centred=False),
                settings,
                "centred for uncentred",
            ),
            Control(
                "a pseudo-inverse of full rank",
                holds(cut=False),
                settings,
                "wrong operator",
            ),
        ),
    )


def _mixture() -> Check:
    @parametrized(Identity)
    def holds(setting: Setting, sign: float, *, swapped: bool = False) -> np.ndarray:
        errors = []
        for m in setting.data:
            gamma = 1 / m.gamma if swapped else m.gamma
            first, second = m.means
            within = m.weight * m.covariances[0] + (1 - m.weight) * m.covariances[1]
            rest = m.operator - within - gamma * np.outer(first, first)
            errors += [
                np.linalg.norm(second - sign * gamma * first) / np.linalg.norm(second),
                np.linalg.norm(rest) / np.linalg.norm(m.operator),
                abs((1 + gamma) ** 2 / gamma * m.weight * (1 - m.weight) - 1),
            ]
        return np.asarray(errors)

    centred = _centred_mixtures()
    return Check(
        printed=Form(holds(1.0), centred),
        corrected=Form(holds(-1.0), centred),
        controls=(
            Control(
                "gamma = pi_2 / pi_1",
                holds(-1.0, swapped=True),
                centred,
                "swapped constants",
            ),
        ),
    )


def _eq12() -> Check:
    def compared(m: Mixture) -> tuple[float, float]:
        largest, _ = m.leading()
        square = float(m.gap @ m.gap)
        left = 1 - m.sigma / (m.weight * (1 - m.weight) * square)
        return left, float(m.gap @ np.linalg.matrix_power(m.operator, 3) @ m.gap) / (
            largest**3 * square
        )

    tail = Tail(
        trials.mean_separation_loss, bound_of(sketching.mean_separation_shortfall)
    )
    laws = (four_atoms(), two_clusters(), two_clusters(0.5))
    loose = (
        two_atoms(0.9).setting(MANY),
        two_clusters(0.7, centred=False).setting(MANY),
    )
    return Check(
        printed=Form(_holds(compared, "(12)"), _uncentred_mixtures((0.9, 0.6), 0.7)),
        corrected=Form(
            tail, tuple(law.setting(sizes) for law in laws for sizes in (MANY, FEW))
        ),
        controls=(Control("not centred", tail, loose, "centred for uncentred"),),
    )


def _eq13() -> Check:
    def compared(m: Mixture, with_sigma: bool = True) -> tuple[float, float]:
        largest, leading = m.leading()
        right = m.gamma * float(leading @ m.means[0]) ** 2 + (
            m.sigma if with_sigma else 0.0
        )
        return 1.0, right / largest

    centred, holds = _centred_mixtures(), _holds(compared, "(13)")
    without = _holds(functools.partial(compared, with_sigma=False), "(13)")
    return Check(
        printed=Form(holds, _uncentred_mixtures((0.1, 0.4), 0.3)),
        corrected=Form(holds, centred),
        controls=(
            Control("without sigma", without, centred, "term left out"),
            controls.part_of(0.95, holds, centred),
        ),
    )


def _eq14() -> Check:
    def compared(m: Mixture) -> tuple[float, float]:
        return m.gamma * float(m.means[0] @ m.means[0]) / m.leading()[0], 1.0

    centred, holds = _centred_mixtures(), _holds(compared, "(14)")
    return Check(
        printed=Form(holds, _uncentred_mixtures((0.9, 0.6), 0.7)),
        corrected=Form(holds, centred),
        controls=(controls.part_of(0.95, holds, centred),),
    )
