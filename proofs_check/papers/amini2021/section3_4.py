"""amini2021, Section 3.4: point masses, functions of the squared distance, and networks."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxkern import kernels
from proofs_check.claim import Check, Inequality, Setting
from proofs_check.papers.amini2021 import trials
from proofs_check.papers.amini2021.setup import Pairs, blocks
from proofs_check.papers.shared import Grids, check_of, lines, op_norm, rng_of, wrong


def diagonal_variance(n: int, d: int) -> float:
    """Return n vbar^2 / (1 - Psi)^2 for two far points, Psi the mean of the other entries of a diagonal block."""
    labels = np.arange(n) % 2
    means = trials.two_centres(n, 1000, 10.0)
    variances = trials.isotropic(means, 1.0, d)
    lipschitz = trials.lipschitz_gaussian(2.0)
    model = trials.Model("", kernels.Gaussian(2.0), lipschitz, means, variances)
    mean = model.arrays["mean"]
    all_entries = blocks(mean, labels, off_diagonal=False)
    others = blocks(mean, labels, off_diagonal=True)
    return float(all_entries.vbar2) / (float(1 - others.psi[0, 0]) ** 2 / n)


def vanishing_variance(n: int, d: int) -> Pairs:
    """The variance within blocks, which would be 0 without the diagonal."""
    return lines([(diagonal_variance(n, d), 0)], "amini2021, Section 3.4")


def lower_variance(n: int, d: int, factor: float = 1.0) -> Pairs:
    """The variance within blocks from below, by the diagonal alone."""
    lower = factor * (1 - 2 / n)
    return lines([(lower, diagonal_variance(n, d))], "amini2021, (26), the diagonal")


def sec3_4(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["both"],
        wrong("1.02 times the lower bound", "wrong factor", factor=1.02),
        wrong("n_k for n_k - 1", "n for n - 1", factor=20 / 19),
        printed=vanishing_variance,
        corrected=lower_variance,
    )


FAMILIES: dict[str, tuple[Any, float]] = {
    "exp(-s / 2)": (lambda s: np.exp(-s / 2), math.exp(-0.5)),
    "1 / (1 + s)": (lambda s: 1 / (1 + s), 3 * math.sqrt(3) / 8),
    "sin(s)": (np.sin, 2.0),
}
"""Functions f of the squared distance, and the constants of their kernels; that of the last would be infinite."""


def slopes_of_squared(setting: Setting, factor: float = 1.0) -> Pairs:
    """Quotients in (2) when y moves along x - y: |f(r^2) - f(q^2)| / |r - q|."""
    f, constant = FAMILIES[setting.name]
    r = np.linspace(0, 20, 40_001)
    steepest = float(np.max(np.abs(np.diff(f(r**2)) / np.diff(r))))
    return lines([(steepest / constant, factor)], "amini2021, Section 3.4")


def sec3_4_lipschitz() -> Check:
    settings = tuple(map(Setting, FAMILIES))
    return check_of(
        Inequality,
        settings[:2],
        wrong(
            "a function with an infinite supremum",
            "hypothesis broken",
            settings=settings[2:],
        ),
        wrong("99 per cent of L", "wrong factor", factor=0.99),
        corrected=slopes_of_squared,
    )


def network(x: np.ndarray, y: np.ndarray, weights: Sequence[np.ndarray]) -> float:
    """Return the value of a ReLU network at the pair (x, y)."""
    value = np.concatenate([x, y])
    for A in weights[:-1]:
        value = np.maximum(A @ value, 0)
    return float((weights[-1] @ value)[0])


def network_quotients(key: jax.Array, layers: int = 3) -> Pairs:
    """Quotients in (2) of (N(x, y) + N(y, x)) / 2, over the product of the norms of `layers` weights."""
    rng = rng_of(key)
    pairs = []
    for _ in range(20):
        matrices = [rng.standard_normal(shape) for shape in ((8, 6), (8, 8), (1, 8))]
        weights = [3 * A / op_norm(A) for A in matrices]
        x, y = rng.standard_normal((2, 3))
        before = network(x, y, weights) + network(y, x, weights)
        _, _, rows = np.linalg.svd(weights[0])
        steps = [rng.standard_normal((2, 3)) for _ in range(50)]
        steps += [row.reshape(2, 3) for row in rows]
        for step in steps:
            dx, dy = 1e-3 * step
            after = network(x + dx, y + dy, weights) + network(y + dy, x + dx, weights)
            apart = 1e-3 * float(np.sum(np.linalg.norm(step, axis=1)))
            pairs.append((abs(before - after) / 2 / apart / 3.0**layers, 1))
    return lines(pairs, "amini2021, Section 3.4")


def sec3_4_network(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["printed"],
        wrong("no layer counted", "term left out", layers=0),
        printed=network_quotients,
    )
