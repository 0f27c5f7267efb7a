"""chen2016, other kernels (ours): Theorems M and N of `docs/theory/chen2016.md`."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import features, kernels, plan
from jaxkern.bounds import Bound
from proofs_check import controls
from proofs_check.claim import Check, Control, Form, Inequality, Setting, Tail
from proofs_check.papers.chen2016 import setup
from proofs_check.papers.shared import at_most_one, parametrized, real

LEVELS = (0.1, 0.5, 1.0, 2.0, 5.0, 20.0)
RADII = np.geomspace(1e-6, 1.0, 16)
MIXTURES = {
    "Matern 5/2": (kernels.Matern52(1.0), 5.0),
    "Matern 3/2": (kernels.Matern32(1.0), 3.0),
}


def _frequencies(key: jax.Array, kernel: Any, size: int) -> jax.Array:
    """Return frequencies of the library's map along a line, whose kernel has the lengthscale 1."""
    dtype = jnp.result_type(float)
    return features.paired_fourier(
        key, kernel, 1, num_frequencies=size, dtype=dtype
    ).frequencies[:, 0]


def _gap(kernel: Any, r: float) -> float:
    """Return 1 - K at a distance r, by the series of the incomplete gamma functions behind these kernels."""
    if isinstance(kernel, kernels.Exponential | kernels.Laplacian):
        return -math.expm1(-r)
    a = r * math.sqrt(3.0 if isinstance(kernel, kernels.Matern32) else 5.0)
    gap = float(stats.gamma.cdf(a, 2))  # 1 - (1 + a) exp(-a)
    return (
        gap if isinstance(kernel, kernels.Matern32) else gap - a**2 / 3 * math.exp(-a)
    )


def _no_ball() -> Check:
    def sides(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        """Return Dhat / D over 0.01 where r times the mean of w^2 is below 2e-4: Dhat^2 is below 2e-4 r."""
        kernel = setting.data["kernel"]
        w = np.asarray(_frequencies(key, kernel, setting.shapes["size"]), float)
        r = 1.9e-4 / float(np.mean(w**2))
        squared = float(np.mean(2 * np.sin(r * w / 2) ** 2)) / _gap(kernel, r)
        return [
            at_most_one(math.sqrt(squared) / 0.01, "jaxkern, Theorem N of chen2016")
        ]

    def at(kernel: Any) -> Setting:
        return Setting(
            f"{type(kernel).__name__}, t=1024",
            {"kernel": kernel},
            shapes={"size": 1024},
        )

    settings = tuple(map(at, (kernels.Exponential(1.0), kernels.Laplacian(1.0))))
    smooth = Control(
        "a kernel with a second moment",
        Inequality(sides),
        (at(kernels.Matern32(1.0)),),
        "wrong law",
    )
    return Check(corrected=Form(Inequality(sides), settings), controls=(smooth,))


def _convex_order() -> Check:
    @parametrized(Inequality)
    def holds(setting: Setting, scaled: bool = True) -> list[tuple[float, Bound]]:
        (kernel, freedom), r = MIXTURES[setting.data["kernel"]], setting.numbers["r"]
        v = np.linspace(-30.0, 30.0, 600_001)
        w = np.exp(v)
        weights = 2 * stats.t.pdf(w, freedom) * w * (v[1] - v[0])
        Y = 2 * np.sin(r * w / 2) ** 2 / (_gap(kernel, r) if scaled else r**2 / 2)
        limit = w**2 * (freedom - 2) / freedom if scaled else w**2
        pairs = [
            (weights @ np.maximum(Y - c, 0), weights @ np.maximum(limit - c, 0))
            for c in LEVELS
        ]
        pairs += [
            (weights @ np.exp(-y), weights @ np.exp(-z))
            for y, z in ((Y, limit), (20 * Y, 20 * limit))
        ]
        ratios = [left / right for left, right in pairs]
        return setup.all_at_most_one(ratios, "jaxkern, Theorem M of chen2016")

    settings = tuple(
        Setting(f"{name}, r={r:g}", {"kernel": name}, {"r": r})
        for name in MIXTURES
        for r in (0.05, 0.5, 2.0, 8.0)
    )
    unscaled = Control(
        "not divided by the mean", holds(False), settings[-1:], "missing normalisation"
    )
    return Check(corrected=Form(holds(), settings), controls=(unscaled,))


def _largest_error(
    key: jax.Array, population: Any, numbers: Any, *, size: int
) -> jax.Array:
    """max |Dhat / D - 1| over distances on a line."""
    w = _frequencies(key, population["kernel"], size)
    squared = jnp.mean(2 * jnp.sin(population["radii"][:, None] * w / 2) ** 2, axis=1)
    return jnp.max(jnp.abs(jnp.sqrt(squared / population["gaps"]) - 1))


def _ball() -> Check:
    kernel, eps, delta = kernels.Matern52(real(1.0)), 0.6, 0.2
    found = plan.fourier(eps, delta, dim=1, diameter=1.0, kernel=kernel)
    size = found.num_frequencies or 0

    def of(other: Any) -> dict[str, Any]:
        gaps = [_gap(other, r) for r in RADII]
        return {"kernel": other, "radii": real(RADII), "gaps": real(gaps)}

    settings = (
        Setting(
            f"Matern 5/2 on a line, eps={eps:g}, t={size}",
            of(kernel),
            {},
            {"size": size},
        ),
    )
    tail = Tail(
        _largest_error, lambda _: Bound(eps, found.probability, True, found.source)
    )
    rough = controls.changed(
        settings, "exponential", data=lambda _: of(kernels.Exponential(real(1.0)))
    )
    control = Control("a kernel without a second moment", tail, rough, "wrong law")
    return Check(corrected=Form(tail, settings), controls=(control,))
