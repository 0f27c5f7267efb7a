"""chen2016, section 7: residuals of principal components, and the figure on pairs of points."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import features, kernels
from jaxkern._spectral import eigh, eigvalsh, matmul
from jaxkern.bounds import Bound
from jaxkern.gram import gram
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Rate, Setting, Tail
from proofs_check.papers.chen2016 import places, sides, trials
from proofs_check.papers.shared import always

PAPER = places.PAPER


def residual() -> Check:
    """Return the claim that a residual is a sum of eigenvalues."""

    def relative(extra: int) -> Identity:
        def both(key: jax.Array, setting: Setting) -> np.ndarray:
            X, kept = setting.population, setting.shapes["kept"]
            phi = features.paired_fourier(key, kernels.Gaussian(1.0), 3, num_frequencies=12, dtype=X.dtype)
            Z = phi(X)
            if setting.shapes["centred"]:
                Z = Z - Z.mean(axis=0)[None]
            _, vectors = eigh(matmul(Z.T, Z))
            V = vectors[:, :kept]
            left = float(jnp.sum((Z - matmul(matmul(Z, V), V.T)) ** 2))
            values = eigvalsh(matmul(Z, Z.T))
            return sides.as_residual([left / float(jnp.sum(values[kept + extra :])) - 1])

        return Identity(both)

    X = places.real(np.random.default_rng(2).standard_normal((30, 3)))
    settings = tuple(
        Setting(f"k={kept}, {'centred' if centred else 'uncentred'}", X, {}, {"kept": kept, "centred": centred})
        for kept in (1, 6)
        for centred in (0, 1)
    )
    return Check(
        printed=Form(relative(0), settings),
        controls=(Control("the sum from k + 2 on", relative(1), settings, "n for n - 1"),),
    )


def relative_residual() -> Check:
    """Return the claim that residuals have the relative errors of distances."""

    def bound(setting: Setting) -> Bound:
        s = setting.numbers
        return Bound(s["eps"], 1 - 1 / s["n"], True, "chen2016, Section 7.1")

    def additive(times: bool) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            X, kernel = setting.population, kernels.Gaussian(1.0)
            phi = features.paired_fourier(key, kernel, 3, num_frequencies=setting.shapes["t"], dtype=X.dtype)
            Z = np.asarray(phi(X), float)
            G = np.asarray(gram(kernel, X), float)
            exact, found = np.linalg.eigvalsh(G), np.linalg.eigvalsh(Z @ Z.T)
            error, n = float(np.max(np.abs(np.linalg.eigvalsh(G - Z @ Z.T)))), len(X)
            sides_ = []
            for kept in (5, 10, 20):
                left = abs(found[:-kept].sum() - exact[:-kept].sum())
                right = (kept if times else 1) * error
                sides_.append((left / n, always(right / n, "jaxkern, Section 7.1 of chen2016")))
            return sides_

        return Inequality(both)

    printed = []
    for constant, kept in ((6.0, 6), (60.0, 8), (600.0, 11)):
        eps, n = 0.3, kept + 1
        t = math.ceil(constant * math.log(n) / eps**2)
        name = f"{n} points of a line, k={kept}, eps=0.3, t={t}, C={constant:g}"
        printed.append(Setting(name, None, {"eps": eps, "n": float(n)}, {"rows": t, "kept": kept}))
    X = places.real(np.random.default_rng(3).standard_normal((40, 3)))
    settings = tuple(Setting(f"40 points, t={t}", X, {}, {"t": t}) for t in (15, 60))
    return Check(
        printed=Form(Tail(trials.tail_ratio, bound), tuple(printed)),
        corrected=Form(additive(times=True), settings),
        controls=(Control("without the factor k", additive(times=False), settings, "term left out"),),
    )


def largest_errors() -> Check:
    """Return the claim on the left panel of Figure 2."""
    rng = np.random.default_rng(12)
    directions = rng.standard_normal((64, 10))
    differences = np.geomspace(1e-4, 1e4, 64)[:, None] * directions / np.linalg.norm(directions, axis=1)[:, None]
    population = {
        "differences": places.real(differences),
        "squared": places.real(np.sum(differences**2, axis=1)),
    }
    settings = tuple(
        Setting(f"t={t}", population, {"t": float(t)}, {"most": 1600}) for t in (200, 400, 600, 1000, 1600)
    )

    def rate(exponent: float) -> Rate:
        return Rate(trials.largest_inverse_error, "t", exponent, 0.1)

    return Check(printed=Form(rate(-0.5), settings), controls=(Control("1 / t", rate(-1.0), settings, "wrong power"),))


def profile() -> Check:
    """Return the claim on the right panel of Figure 2."""

    def law(step: bool) -> Identity:
        def relative(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            r = setting.numbers["r"]
            w, weights = sides.nodes()
            X = 2 * np.sin(r * w / 2) ** 2
            mean = weights @ X
            K = float(np.asarray(gram(kernels.Gaussian(1.0), places.real(np.array([[0.0], [r]]))))[0, 1])
            claimed = (1 + K) ** 2 / 2 if step else 2.0
            return sides.as_residual([weights @ (X - mean) ** 2 / mean**2 / claimed - 1])

        return Identity(relative)

    settings = tuple(Setting(f"r={r:g}", numbers={"r": r}) for r in (0.05, 0.5, 1.18, 3.0, 8.0))
    return Check(
        corrected=Form(law(step=True), settings),
        controls=(Control("the plateau of small distances everywhere", law(step=False), settings, "wrong operator"),),
    )
