"""amini2021, Section 4: the proofs of Theorems 2 and 3 and of Proposition 2; Theorem F."""

import itertools
import math
from collections.abc import Callable
from functools import partial

import jax
import numpy as np
from scipy import stats

from jaxkern.bounds import Bound, concentration
from proofs_check.claim import (
    Check,
    Exact,
    Identity,
    Inequality,
)
from proofs_check.papers.amini2021.section3_1 import truncated
from proofs_check.papers.amini2021.section3_2 import theorem_3, theorem_3_settings
from proofs_check.papers.amini2021.section3_3 import block_means
from proofs_check.papers.amini2021.setup import (
    NOISE,
    Pairs,
    blocks,
    log_of,
    log_sum,
    rescaled,
)
from proofs_check.papers.shared import (
    Grids,
    always,
    check_of,
    exceeds,
    lines,
    op_norm,
    rng_of,
    share_of,
    wrong,
)

SHARP_NET = 1 / (1 - 2 * 0.25**2 + 0.25**4 / 2)
"""The constant for a 1/4-net."""


def net_ratios(
    key: jax.Array, constant: float = SHARP_NET, factor: float = 1.0
) -> Pairs:
    """|B| over the largest |z'Bz| of a net of the circle whose farthest point is at distance 1/4."""
    rng = rng_of(key)
    angle = 2 * math.asin(0.25 / 2)  # between vectors at this distance
    quarters = np.arange(4) * math.pi / 2
    within = np.linspace(angle, math.pi / 2 - angle, 4)
    angles = np.add.outer(quarters, within).ravel()
    net = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # Both eigenvectors of this one are as far from the net as can be.
    matrices = [np.diag([0.5, -0.5])]
    matrices += [rng.standard_normal((2, 2)) for _ in range(200)]
    pairs = []
    for A in matrices:
        B = A + A.T
        largest = float(np.max(np.abs(np.einsum("ki,ij,kj->k", net, B, net))))
        pairs.append((op_norm(B) / largest / constant, factor))
    pairs.append((len(net) / 9**2, 1.0))
    return lines(pairs, "amini2021, proof of Theorem 2")


def thm2_net(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["both"],
        wrong("99 per cent of it", "wrong factor", factor=0.99),
        printed=partial(net_ratios, constant=2.0),
        corrected=net_ratios,
    )


def block_matrix_errors(key: jax.Array, off_diagonal: bool = False) -> np.ndarray:
    """|E K - K*|_F^2 / n^2 against vbar^2, and n |q_k - q_l|^2 for the rows q of K* / n against D_kl."""
    labels = np.repeat([0, 1, 2], [4, 3, 3])
    n = len(labels)
    A = rng_of(key).standard_normal((n, n))
    mean = A + A.T
    parameters = blocks(mean, labels, off_diagonal=off_diagonal)
    K = np.asarray(parameters.psi, np.float64)[labels][:, labels]
    gap = np.sum((mean - K) ** 2) / n**2 / float(parameters.vbar2) - 1
    rows = K[[0, 4, 7]] / n
    apart = n * np.sum((rows[:, None] - rows) ** 2, axis=2)
    separations = np.asarray(parameters.separations, np.float64)
    return np.append((apart - separations).ravel() / apart.max(), gap)


def eq39(grids: Grids) -> Check:
    return check_of(
        Identity,
        grids["printed"],
        wrong("averages off the diagonal", "wrong operator", off_diagonal=True),
        printed=block_matrix_errors,
    )


def embedding_error(
    L: float, d: float, vbar2: float, as_printed: bool = False, factor: float = 1.0
) -> Pairs:
    """2 (w + b) at the bounds of w and b that the proof has, in units of itself, against gamma^2 F / 8 R."""
    n = 400.0
    deviation = concentration.anisotropic_noise(
        lipschitz=L, op_norm=NOISE**2, dim=d, num_points=n, t=1.5, as_printed=True
    )
    left = 2 * (deviation.value**2 + vbar2)
    F = theorem_3(L, d, vbar2, as_printed=as_printed).value / 16
    right = F * 0.3 / (8 * 2)
    return lines([(1.0, factor * right / left)], "amini2021, (40)")


def eq40() -> Check:
    return check_of(
        Inequality,
        theorem_3_settings(),
        wrong("nine tenths of it", "wrong factor", factor=0.9),
        printed=partial(embedding_error, as_printed=True),
        corrected=embedding_error,
    )


def rounded_truncation(*, spectral: float, num_clusters: float) -> Bound:
    """Return (41) with 2.2 for sqrt(5)."""
    return always(2.2 * math.sqrt(num_clusters) * spectral, "(41)")


def truncation_errors(key: jax.Array, R: int, formula: Callable[..., Bound]) -> Pairs:
    """|A_R - B|_F over |A - B|: where the bound is attained in the limit, and for random matrices."""
    rng = rng_of(key)
    right = formula(spectral=1.0, num_clusters=R)
    blocks_of_two = np.kron(np.eye(R), np.diag([1 + 1e-9, 1.0]))
    cases = [(blocks_of_two, np.kron(np.eye(R), np.diag([0.0, 2.0])))]
    for _ in range(20):
        V = rng.standard_normal((6, R))
        noise = rng.standard_normal((6, 6))
        low_rank = V @ np.diag(rng.choice([-1.0, 1.0], R)) @ V.T
        cases.append((low_rank + noise + noise.T, low_rank))
    pairs = []
    for A, B in cases:
        left = float(np.linalg.norm(truncated(A, R) - B))
        pairs.append((left / op_norm(A - B), right))
    return pairs


def eq41(grids: Grids) -> Check:
    sharp = partial(truncation_errors, formula=concentration.truncation)
    return check_of(
        Inequality,
        grids["both"],
        wrong("2.2 for sqrt(5)", "wrong factor", formula=rounded_truncation),
        printed=partial(
            sharp, formula=partial(concentration.truncation, as_printed=True)
        ),
        corrected=sharp,
    )


def eigengap_errors(key: jax.Array, r: int, R: int, factor: float = 1.0) -> Pairs:
    """|A_R - A'_r|_F over |A - A'|: where the bound is attained in the limit, and for random matrices."""
    rng = rng_of(key)
    n = r + R
    leading_part = np.diag([1.0] * r + [0.0] * R)
    # Noise from each leading vector to another, and on the rest.
    crossed = np.eye(n, k=R) + np.eye(n, k=-R)
    rest = np.diag([0.0] * r + [1.0] * (R - r) + [0.0] * r)
    cases = [(leading_part, 1e-6 * (crossed + rest))]
    for size in np.geomspace(0.01, 0.4, 20):
        noise, other = rng.standard_normal((2, n, n))
        mean = leading_part + (other + other.T) / (10 * n)
        cases.append((mean, size * (noise + noise.T) / op_norm(noise + noise.T)))
    pairs = []
    for mean, noise in cases:
        spectral = op_norm(noise)
        left = truncated(mean + noise, R) - truncated(mean, r)
        sizes = np.sort(np.abs(np.linalg.eigvalsh(mean)))[::-1]
        right = concentration.truncation_eigengap(
            spectral=spectral,
            eigenvalue=sizes[r - 1],
            next_eigenvalue=sizes[r],
            rank=r,
            num_clusters=R,
        )
        error = float(np.linalg.norm(left)) / spectral
        pairs.append((error, rescaled(right, factor / spectral)))
    return pairs


def truncation_eigengap(grids: Grids) -> Check:
    smaller = wrong("99 per cent of it", "wrong factor", factor=0.99)
    return check_of(Inequality, grids["corrected"], smaller, corrected=eigengap_errors)


SIZE = 14
LABELS = np.repeat([0, 1], SIZE // 2)


def _splits() -> np.ndarray:
    """Return all labelings of the points by 0 and 1 in which the first has 0."""
    others = np.array(list(itertools.product([0, 1], repeat=SIZE - 1)))
    return np.concatenate([np.zeros((len(others), 1), int), others], axis=1)


def worst_rate(rows: np.ndarray, splits: np.ndarray, factor: float) -> float:
    """Return the largest misclassification rate of two clusters whose cost is within a factor of the least."""
    G = rows @ rows.T
    costs = np.full(len(splits), np.trace(G))
    for members in (splits, 1 - splits):
        sizes = members.sum(axis=1)
        inner = np.einsum("si,ij,sj->s", members, G, members, optimize=True)
        costs -= inner / np.maximum(sizes, 1)
    share = np.mean(splits != LABELS, axis=1)
    near = costs <= factor * costs.min() + 1e-12
    return float(np.max(np.minimum(share, 1 - share)[near]))


def kmeans_rates(
    key: jax.Array, factor: float, share: float = 1.0, as_printed: bool = False
) -> Pairs:
    """Worst rates of two clusters of 7 whose rows are moved, if the hypothesis holds, against a share of the bound."""
    rng = rng_of(key)
    splits = _splits()
    psi = np.array([[1.0, 0.2], [0.2, 0.8]])
    separation = float(np.sum((psi[0] - psi[1]) ** 2) / 2)
    rows = psi[LABELS][:, LABELS] / SIZE
    towards = np.zeros((SIZE, SIZE))
    towards[0] = rows[-1] - rows[0]
    pairs = []
    for size in np.linspace(0.02, 0.3, 30):
        # All of the error is on one row, towards the other centre, or it is spread over all rows.
        for direction in (towards, rng.standard_normal((SIZE, SIZE))):
            length = size * math.sqrt(separation / SIZE) * 3
            step = direction * (length / np.linalg.norm(direction))
            right = concentration.kmeans_step(
                error=float(np.linalg.norm(step)),
                gamma2=separation,
                gamma_tilde2=separation / 2,
                kmeans_factor=factor,
                as_printed=as_printed,
            )
            if right.valid:
                rate = worst_rate(rows + step, splits, factor)
                pairs.append((rate, rescaled(right, share)))
    return pairs


def kmeans_step(grids: Grids) -> Check:
    first = grids["both"][:1]
    return check_of(
        Inequality,
        grids["both"],
        wrong("a fifth of it", "wrong factor", settings=first, share=0.2),
        printed=partial(kmeans_rates, as_printed=True),
        corrected=kmeans_rates,
    )


def signs_statistic(*, n: float, t: float, as_printed: bool = False) -> Bound:
    """Return the bound for h = (y + z) / 2 and n signs."""
    return concentration.u_statistic(
        bound=1.0, num_points=n, t=t, as_printed=as_printed
    )


def two_signs_statistic(*, n: float, t: float, as_printed: bool = False) -> Bound:
    """Return the bound for h = y, n signs and as many others."""
    return concentration.two_sample_statistic(
        bound=1.0, num_points=n, num_others=n, t=t, as_printed=as_printed
    )


def signs_tail(value: float, n: int) -> float:
    """log P(|mean of n signs| > value)."""
    count = np.arange(n + 1)
    outside = np.abs(2 * count / n - 1) > value
    return log_sum(stats.binom.logpmf(count, n, 0.5), outside)


def _mean_of_signs(formula: Callable[..., Bound], share: float, grids: Grids) -> Check:
    last = grids["both"][-1:]
    part = share_of(share, formula)
    return check_of(
        exceeds(signs_tail),
        grids["both"],
        wrong(f"{share} of the deviation", "wrong factor", part, settings=last),
        printed=partial(formula, as_printed=True),
        corrected=formula,
    )


def u_statistic(grids: Grids) -> Check:
    return _mean_of_signs(signs_statistic, 0.6, grids)


def v_statistic(grids: Grids) -> Check:
    return _mean_of_signs(two_signs_statistic, 0.9, grids)


def bias_error(
    m: int, p: float, formula: Callable[[float], float] = lambda m: 1.0
) -> np.ndarray:
    """The bias of Psi_kk, in units of the corrected one."""
    count = np.arange(m + 1)
    psi, _, _ = block_means(2 * count / m - 1, 0.0)
    mean = stats.binom.pmf(count, m, p) @ psi
    true = (2 * p - 1) ** 2
    return np.array([(mean - true) * m / (1 - true) - formula(m)])


def prop2_bias(grids: Grids) -> Check:
    return check_of(
        Identity,
        grids["both"],
        wrong(
            "1 / (n_k - 1) for 1 / n_k", "n for n - 1", formula=lambda m: m / (m - 1)
        ),
        printed=partial(bias_error, formula=lambda m: 0.0),
        corrected=bias_error,
    )


def two_points_outside(
    t: float,
    values: float,
    deviation: Callable[[float], float] = lambda t: t / 2 * math.sqrt(4) + 2 / 2,
) -> tuple[float, float]:
    """Two points of equally likely values, h = 1 where they agree and -1 elsewhere: Psi is 0 or 1."""
    bound = deviation(t)
    agree = 1 / values
    mean = 2 * agree - 1
    outside = (1 - agree) * (abs(mean) > bound) + agree * (abs(1 - mean) > bound)
    return log_of(outside), math.log(2) - t**2


def prop2_display(grids: Grids) -> Check:
    many = grids["printed"]
    return check_of(
        Exact,
        grids["corrected"],
        wrong(
            "without the bias", "term left out", settings=many, deviation=lambda t: t
        ),
        printed=partial(
            two_points_outside, deviation=lambda t: t / 2 * math.sqrt(8 / 2)
        ),
        corrected=two_points_outside,
        printed_settings=many,
    )
