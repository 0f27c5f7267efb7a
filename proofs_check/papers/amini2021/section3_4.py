"""amini2021, Section 3.4: point masses, functions of the squared distance, and networks."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxkern import kernels
from proofs_check.claim import Check, Control, Form, Inequality, Setting
from proofs_check.papers.amini2021 import laws, trials
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.amini2021.setup import blocks
from proofs_check.papers.shared import (
    always,
    lines,
    listed,
    op_norm,
    parametrized,
    rng_of,
)


def _point_masses() -> Check:
    @parametrized(Inequality)
    def sides(setting: Setting, factor: float | None = 1.0) -> Pairs:
        """n vbar^2 / (1 - Psi)^2, where Psi is the mean of the other entries of a diagonal block; without factor 0."""
        n, d = setting.shapes["n"], setting.shapes["d"]
        labels, means = np.arange(n) % 2, trials.two_centres(n, 1000, 10.0)
        variances = trials.isotropic(means, 1.0, d)
        model = trials.Model(
            "", kernels.Gaussian(2.0), trials.lipschitz_gaussian(2.0), means, variances
        )
        everything, others = (
            blocks(model.arrays["mean"], labels, off_diagonal=flag)
            for flag in (False, True)
        )
        value = float(everything.vbar2) / (float(1 - others.psi[0, 0]) ** 2 / n)
        if factor is None:
            return [(value, always(0, "amini2021, Section 3.4"))]
        return [
            laws.at_least(
                value, always(factor * (1 - 2 / n), "amini2021, (26), the diagonal")
            )
        ]

    settings = listed(
        "two points at distance 10, n={n}, d={d}",
        "n d",
        ((40, 50), (40, 1000)),
        shapes="n d",
    )
    return Check(
        printed=Form(sides(factor=None), settings),
        corrected=Form(sides(), settings),
        controls=(
            Control(
                "1.02 times the lower bound",
                sides(factor=1.02),
                settings,
                "wrong factor",
            ),
            Control("n_k for n_k - 1", sides(factor=20 / 19), settings, "n for n - 1"),
        ),
    )


def _squared_distance() -> Check:
    families: dict[str, tuple[Callable[[Any], Any], float]] = {
        "exp(-s / 2)": (lambda s: np.exp(-s / 2), math.exp(-0.5)),
        "1 / (1 + s)": (lambda s: 1 / (1 + s), 3 * math.sqrt(3) / 8),
        "sin(s)": (np.sin, 2.0),
    }

    @parametrized(Inequality)
    def sides(setting: Setting, factor: float = 1.0) -> Pairs:
        """Quotients in (2) when y moves along x - y: |f(r^2) - f(q^2)| / |r - q|."""
        f, constant = families[setting.name]
        r = np.linspace(0, 20, 40_001)
        steepest = float(np.max(np.abs(np.diff(f(r**2)) / np.diff(r))))
        return [(steepest / constant, always(factor, "amini2021, Section 3.4"))]

    *settings, outside = map(Setting, families)
    return Check(
        corrected=Form(sides(), tuple(settings)),
        controls=(
            Control(
                "a function with an infinite supremum",
                sides(),
                (outside,),
                "hypothesis broken",
            ),
            Control(
                "99 per cent of L", sides(factor=0.99), tuple(settings), "wrong factor"
            ),
        ),
    )


def _network() -> Check:
    def sides(layers: int) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """Quotients in (2) of (N(x, y) + N(y, x)) / 2, over the product of the norms of `layers` weights."""
            rng = rng_of(key)
            pairs = []
            for _ in range(20):
                weights = [
                    rng.standard_normal(shape) for shape in ((8, 6), (8, 8), (1, 8))
                ]
                weights = [3 * A / op_norm(A) for A in weights]
                right = 3.0**layers

                def network(
                    x: np.ndarray,
                    y: np.ndarray,
                    weights: Sequence[np.ndarray] = weights,
                ) -> float:
                    value = np.concatenate([x, y])
                    for A in weights[:-1]:
                        value = np.maximum(A @ value, 0)
                    return float((weights[-1] @ value)[0])

                x, y = rng.standard_normal((2, 3))
                _, _, rows = np.linalg.svd(weights[0])
                steps = [rng.standard_normal((2, 3)) for _ in range(50)] + [
                    row.reshape(2, 3) for row in rows
                ]
                for step in steps:
                    step = 1e-3 * step
                    a, b = (
                        network(*p) + network(*p[::-1])
                        for p in ((x, y), (x + step[0], y + step[1]))
                    )
                    apart = float(np.sum(np.linalg.norm(step, axis=1)))
                    pairs.append((abs(a - b) / 2 / apart / right, 1))
            return lines(pairs, "amini2021, Section 3.4")

        return Inequality(check)

    settings = (Setting("three layers of norm 3"),)
    return Check(
        printed=Form(sides(3), settings),
        controls=(Control("no layer counted", sides(0), settings, "term left out"),),
    )
