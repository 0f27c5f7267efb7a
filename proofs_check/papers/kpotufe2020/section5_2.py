"""kpotufe2020, Section 5.2: Example 2, the means of two clusters after Kernel JL, with (12), (13) and (14)."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from jax import Array

from jaxkern.bounds import sketching
from proofs_check import controls
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting, Tail
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.setup import (
    Errors,
    Inputs,
    Pairs,
    Settings,
)
from proofs_check.papers.kpotufe2020.two_groups import (
    FEW,
    MANY,
    Mixture,
    four_atoms,
    two_atoms,
    two_clusters,
)
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import bound_of, check_of, lines, rng_of, wrong


def _random_mixture(rng: np.random.Generator) -> Mixture:
    """Return a centred mixture: mu_2 = -gamma mu_1, covariances of random rank and size."""
    dim = int(rng.integers(2, 6))
    weight = float(rng.uniform(0.05, 0.95))
    mean = rng.standard_normal(dim)
    covariances = []
    for _ in range(2):
        size = 10 ** rng.uniform(-2, 0.3)
        root = size * rng.standard_normal((dim, int(rng.integers(1, dim + 1))))
        covariances.append(root @ root.T)
    means = (mean, -weight / (1 - weight) * mean)
    return Mixture(weight, means, (covariances[0], covariances[1]))


def _centred_mixtures() -> Settings:
    settings = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        mixtures = [_random_mixture(rng) for _ in range(300)]
        name = f"300 random centred mixtures, seed {seed}"
        settings.append(Setting(name, mixtures))
    for law in (four_atoms(), two_clusters()):
        settings.append(Setting(law.name, [law.mixture]))
    return tuple(settings)


def _uncentred_mixtures(weights: Sequence[float], cluster: float) -> Settings:
    laws = (*map(two_atoms, weights), two_clusters(cluster, centred=False))
    return tuple(Setting(law.name, [law.mixture]) for law in laws)


def _maps(
    key: Array, data: Population, *, centred: bool = True, cut: bool = True
) -> Errors:
    """Functions are rows of coordinates; `landmarks` are 12 of those of the atoms."""
    rows = data.features
    landmarks = rows[rng_of(key).choice(len(rows), 12, replace=False)]
    around = landmarks - landmarks.mean(0)
    # KPCA: sum alpha_i K(x, x_i) is sqrt(lambda) times the score of x, and a number that is the same for all x.
    used = around if centred else landmarks
    alpha = np.linalg.eigh(used @ used.T)[1][:, -1]
    images = rows @ landmarks.T @ alpha
    _, roots, axes = np.linalg.svd(around, full_matrices=False)
    scores = roots[0] * rows @ axes[0]
    apart = min(np.ptp(images - scores), np.ptp(images + scores)) / np.ptp(images)
    # Nystrom: C K_(3)^+ C' has the products of the projections onto the 3 leading eigenfunctions of Sigma_n.
    values, vectors = np.linalg.eigh(landmarks @ landmarks.T)
    first = -3 if cut else 0
    C = rows @ landmarks.T @ vectors[:, first:]
    projected = rows @ np.linalg.svd(landmarks, full_matrices=False)[2][:3].T
    exact = projected @ projected.T
    error = np.linalg.norm(C / values[first:] @ C.T - exact) / np.linalg.norm(exact)
    return np.array([apart, error])


def maps(inputs: Inputs) -> Check:
    # In the others Sigma_n has equal eigenvalues, so that its leading eigenfunctions are not unique.
    names = ("gauss", "skewed", "data")
    settings = tuple(s for s in inputs.each if s.name.startswith(names))
    uncentred = "a Gram matrix that is not centred"
    return check_of(
        Identity,
        settings,
        wrong(uncentred, "centred for uncentred", centred=False),
        wrong("a pseudo-inverse of full rank", "wrong operator", cut=False),
        printed=_maps,
    )


def _decomposition(
    data: Sequence[Mixture], sign: float = -1.0, swapped: bool = False
) -> Errors:
    errors = []
    for m in data:
        gamma = 1 / m.gamma if swapped else m.gamma
        first, second = m.means
        within = m.weight * m.covariances[0] + (1 - m.weight) * m.covariances[1]
        rest = m.operator - within - gamma * np.outer(first, first)
        of_mean = np.linalg.norm(second - sign * gamma * first)
        shares = (1 + gamma) ** 2 / gamma * m.weight * (1 - m.weight)
        errors += [
            of_mean / np.linalg.norm(second),
            np.linalg.norm(rest) / np.linalg.norm(m.operator),
            abs(shares - 1),
        ]
    return np.asarray(errors)


def mixture() -> Check:
    return check_of(
        Identity,
        _centred_mixtures(),
        wrong("gamma = pi_2 / pi_1", "swapped constants", swapped=True),
        printed=partial(_decomposition, sign=1.0),
        corrected=_decomposition,
    )


def _mean_separation(m: Mixture) -> tuple[float, float]:
    """Return both sides of (12) as n and d grow, over lambda_1^3 |mu_1 - mu_2|^2."""
    values = np.linalg.eigvalsh(m.operator)
    square = m.gap @ m.gap
    lost = sketching.mean_separation_shortfall(
        kappa=values.sum(),  # it only enters what vanishes in the limit
        op_norm=values[-1],
        trace=values.sum(),
        trace3=np.sum(values**3),
        hs_norm=np.sqrt(np.sum(values**2)),
        n=1e60,
        d=1e60,
        tau=3.0,
        sigma=m.sigma,
        weight=m.weight,
        mean_gap=square,
    )
    unit = values[-1] ** 3 * square
    image = m.gap @ np.linalg.matrix_power(m.operator, 3) @ m.gap
    return 1 - lost.value / unit, image / unit


def _above(m: Mixture, spread: float = 1.0) -> tuple[float, float]:
    """Return both sides of (13) over lambda_1, with sigma times `spread`."""
    largest, leading = m.leading()
    right = m.gamma * float(leading @ m.means[0]) ** 2 + spread * m.sigma
    return 1.0, right / largest


def _below(m: Mixture) -> tuple[float, float]:
    """Return both sides of (14) over lambda_1."""
    square = float(m.means[0] @ m.means[0])
    return m.gamma * square / m.leading()[0], 1.0


def _of_mixtures(
    data: Sequence[Mixture],
    sides: Callable[[Mixture], tuple[float, float]] = _mean_separation,
) -> Pairs:
    return lines(map(sides, data), "kpotufe2020, Example 2")


def eq12() -> Check:
    bound = bound_of(sketching.mean_separation_shortfall)
    tail = Tail(trials.mean_separation_loss, bound)
    laws = (four_atoms(), two_clusters(), two_clusters(0.5))
    settings = tuple(law.setting(sizes) for law in laws for sizes in (MANY, FEW))
    uncentred = (two_atoms(0.9), two_clusters(0.7, centred=False))
    not_centred = tuple(law.setting(MANY) for law in uncentred)
    printed = Inequality(_of_mixtures)
    return Check(
        printed=Form(printed, _uncentred_mixtures((0.9, 0.6), 0.7)),
        corrected=Form(tail, settings),
        controls=(Control("not centred", tail, not_centred, "centred for uncentred"),),
    )


def eq13() -> Check:
    sides = partial(_of_mixtures, sides=_above)
    settings = _centred_mixtures()
    no_spread = partial(_above, spread=0.0)
    return check_of(
        Inequality,
        settings,
        wrong("without sigma", "term left out", sides=no_spread),
        controls.part_of(0.95, Inequality(sides), settings),
        printed=sides,
        corrected=sides,
        printed_settings=_uncentred_mixtures((0.1, 0.4), 0.3),
    )


def eq14() -> Check:
    holds = Inequality(partial(_of_mixtures, sides=_below))
    form = Form(holds, _centred_mixtures())
    return Check(
        printed=Form(holds, _uncentred_mixtures((0.9, 0.6), 0.7)),
        corrected=form,
        controls=(controls.part_of(0.95, holds, form.settings),),
    )
