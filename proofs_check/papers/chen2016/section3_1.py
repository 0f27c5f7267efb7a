"""chen2016, Section 3.1: how many features small distances need at least.

`docs/theory/chen2016.md` derives every correction.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import features, kernels
from jaxkern.bounds import Bound, fourier
from jaxkern.gram import gram
from proofs_check import controls
from proofs_check.claim import (
    Check,
    Control,
    Exact,
    Form,
    Identity,
    Inequality,
    Setting,
    Tail,
)
from proofs_check.papers.chen2016 import laws, setup, trials
from proofs_check.papers.shared import as_residual, grid, listed, parametrized, real


def _norms() -> Check:
    def residual(as_printed: bool, mean: bool = True) -> Identity:
        def relative(key: jax.Array, setting: Setting) -> np.ndarray:
            """Return the error of each of: the middle term of the display, and the mean of the left one over draws."""
            scale, t = setting.numbers["scale"], 7
            w = np.asarray(trials.frequencies(key, 3, t, jnp.result_type(float)), float)
            difference = np.array([0.3, -0.2, 0.7])
            r = float(np.linalg.norm(difference))
            components = w @ difference / r
            per = t if mean and not as_printed else 1
            left = math.sqrt(np.sum((w @ (scale * difference)) ** 2) / per)
            power = 1 if as_printed else 2
            middle = math.sqrt(
                np.sum(components**2) * scale**power * r**2 / t ** (not as_printed)
            )
            return as_residual([left / middle - 1])

        return Identity(relative)

    settings = grid("lambda={scale:g}", scale=(0.1, 3.0))
    return Check(
        printed=Form(residual(as_printed=True), settings),
        corrected=Form(residual(as_printed=False), settings),
        controls=(
            Control(
                "without 1 / t",
                residual(as_printed=False, mean=False),
                settings,
                "missing normalisation",
            ),
        ),
    )


def _lemma_3_4() -> Check:
    differences = setup.differences_of(
        np.random.default_rng(7).standard_normal((10, 4))
    )
    differences /= np.max(np.linalg.norm(differences, axis=1))
    r = np.linalg.norm(differences, axis=1)

    @parametrized(Inequality)
    def sides(
        key: jax.Array, setting: Setting, share: float = 1.0, other: bool = False
    ) -> list[Any]:
        """Return the difference of both embeddings over its bound by (4), at all pairs and for ten draws."""
        t, scale = setting.shapes["t"], setting.numbers["scale"]
        w = np.asarray(
            trials.frequencies(key, 4, 20 * t, jnp.result_type(float)), float
        ).reshape(20, t, 4)
        components = w[:10] @ (differences / r[:, None]).T
        linear = w[10:] @ (differences / r[:, None]).T if other else components
        images = np.mean(
            2 * np.sin(scale * r * components / 2) ** 2, axis=1
        ) / -np.expm1(-((scale * r) ** 2) / 2)
        norm, fourth = np.sqrt(np.mean(linear**2, axis=1)), np.mean(linear**4, axis=1)
        above = norm / np.sqrt(1 - (scale * r) ** 2 / 4) - norm
        below = norm - np.sqrt(np.maximum(norm**2 - (scale * r) ** 2 / 12 * fourth, 0))
        ratios = np.abs(np.sqrt(images) - norm) / (share * np.maximum(above, below))
        return setup.all_at_most_one(ratios.ravel(), "chen2016, (4)")

    sizes = [(t, scale) for t in (1, 20) for scale in (0.01, 0.1, 0.64)]
    settings = listed("t={t}, lambda={scale:g}", "t scale", sizes, shapes="t")
    return Check(
        corrected=Form(sides(), settings),
        controls=(
            Control(
                "other frequencies in the linear map",
                sides(other=True),
                settings,
                "wrong operator",
            ),
            Control(
                "nine tenths of the bound", sides(share=0.9), settings, "wrong factor"
            ),
        ),
    )


def _theorem_3_1(inputs: setup.Inputs) -> Check:
    def orthogonal(setting: Setting) -> tuple[float, float]:
        """The chance of success; on a line, where all ratios tend to one chi2_t / t whatever n is, that of failure."""
        n, eps, t = (setting.numbers[k] for k in ("n", "eps", "t"))
        if math.isinf(n):
            return laws.chi_square_outside(t, (1 - eps) ** 2, (1 + eps) ** 2), math.log(
                0.5
            )
        success = fourier.success_limit(eps=eps, num_frequencies=t, num_points=n).value
        return math.log(max(success, 1e-300)), math.log(0.5)

    def sized(c: float) -> tuple[Setting, ...]:
        settings = []
        for n in (1e2, 1e3, 1e4, 1e6) if inputs.full else (1e2, 1e3):
            for eps in (0.05, 0.2, 0.5, n**-0.5):
                t = math.floor(c * math.log(n) / eps**2)
                name = f"{n:g} points in {n / 2:g} dimensions, eps={eps:g}, t={t}"
                settings.append(
                    Setting(name, numbers={"n": n, "eps": eps, "t": float(t)})
                )
        return tuple(settings)

    line = Setting(
        "any number of points on a line, eps=0.1, t=30",
        numbers={"n": math.inf, "t": 30.0, "eps": 0.1},
    )
    return Check(
        corrected=Form(Exact(orthogonal), (*sized(0.6), line)),
        controls=(
            Control(
                "the same for t <= .66 ln n / eps^2",
                Exact(orthogonal),
                sized(0.66),
                "wrong factor",
            ),
        ),
    )


def _simplex() -> Check:
    @parametrized(functools.partial(Tail, trials.accuracy))
    def statement(
        setting: Setting, claimed: Callable[..., float], times: float = 1.0
    ) -> Bound:
        """At least so often some pair has an error of at least eps."""
        n, eps, t = (setting.numbers[k] for k in ("n", "eps", "t"))
        return Bound(
            1 / eps,
            claimed(eps=eps, num_frequencies=times * t, num_points=n),
            True,
            "jaxkern, Theorem G",
        )

    def fails(**options: float) -> float:
        return 1 - fourier.simplex_success_limit(**options).value

    def union(**options: float) -> float:
        return min(1 - fourier.relative_distances_sharp(**options).probability, 0.99)

    settings = []  # the last two for the controls, as there the bound is closer to the truth
    for n, eps, t in ((16, 0.2, 60), (50, 0.3, 45), (16, 0.2, 100), (50, 0.3, 65)):
        first, second = np.triu_indices(n, 1)
        units = real((np.eye(n)[first] - np.eye(n)[second]) / math.sqrt(2))
        numbers = {"n": float(n), "eps": eps, "t": float(t)}
        settings.append(
            Setting(
                f"{n} points, eps={eps:g}, t={t}",
                {"units": units},
                numbers,
                {"rows": t},
            )
        )
    return Check(
        corrected=Form(statement(fails), tuple(settings[:2])),
        controls=(
            Control(
                "two thirds of the frequencies",
                statement(fails, 2 / 3),
                tuple(settings[2:]),
                "wrong factor",
            ),
            Control(
                "the union bound for it",
                statement(union),
                tuple(settings[2:]),
                "term left out",
            ),
        ),
    )


def small_copies() -> Check:
    """Return the check of small copies of a set."""

    def holds(curvature: bool) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            X, slack = setting.data, setting.numbers["slack"]
            first, second = np.triu_indices(len(X), 1)
            r = np.linalg.norm(X[first] - X[second], axis=1)
            scale = 2 * math.sqrt(slack) / np.max(r)
            small, kernel = real(scale * X), kernels.Gaussian(1.0)
            D = setup.all_distances(small)[first, second]
            values, vectors = np.linalg.eigh(np.asarray(gram(kernel, small), float))
            phi = features.paired_fourier(
                key, kernel, X.shape[1], num_frequencies=50, dtype=small.dtype
            )
            lower = math.sqrt(1 - slack) if curvature else 1.0
            exact = vectors * np.sqrt(np.maximum(values, 0))
            sides = []
            for h in (exact, np.asarray(phi(small), float), np.asarray(small, float)):
                images = np.linalg.norm(h[first] - h[second], axis=1)
                eps_up, eps_down = (
                    float(np.max(images / D - 1)),
                    float(np.max(1 - images / D)),
                )
                ratios = images / (scale * r)
                sides += setup.all_at_most_one(
                    ratios / (1 + eps_up), "jaxkern, small copies"
                )
                sides += setup.all_at_most_one(
                    (1 - eps_down) * lower / ratios, "jaxkern, small copies"
                )
            return sides

        return Inequality(both)

    sets = {
        "orthonormal points": np.eye(6),
        "a cloud": np.random.default_rng(1).standard_normal((8, 3)),
    }
    settings = tuple(
        Setting(f"{name}, eps'={slack:g}", X, {"slack": slack})
        for slack in (0.04, 0.2)
        for name, X in sets.items()
    )
    return Check(
        corrected=Form(holds(curvature=True), settings),
        controls=(
            Control(
                "without sqrt(1 - eps')",
                holds(curvature=False),
                settings,
                "term left out",
            ),
            controls.part_of(0.95, holds(curvature=True), settings),
        ),
    )
