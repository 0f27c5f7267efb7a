"""chen2016, other kernels (ours): Theorems M and N of `docs/theory/chen2016.md`."""

from functools import partial
from math import exp, expm1, sqrt
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy import stats

from jaxkern import features, kernels, plan
from jaxkern.bounds import Bound
from proofs_check.claim import Check, Inequality, Setting, Tail
from proofs_check.controls import changed
from proofs_check.papers.chen2016.cosines import versine
from proofs_check.papers.chen2016.setup import Sides, all_at_most_one
from proofs_check.papers.shared import check_of, real, wrong

LEVELS = (0.1, 0.5, 1.0, 2.0, 5.0, 20.0)
RADII = np.geomspace(1e-6, 1.0, 16)
MIXTURES = {
    "Matern 5/2": (kernels.Matern52(1.0), 5.0),
    "Matern 3/2": (kernels.Matern32(1.0), 3.0),
}


def _frequencies(key: Array, kernel: Any, size: int) -> Array:
    """Return frequencies of the library's map along a line, whose kernel has the lengthscale 1."""
    dtype = jnp.result_type(float)
    phi = features.paired_fourier(key, kernel, 1, num_frequencies=size, dtype=dtype)
    return phi.frequencies[:, 0]


def _gap(kernel: Any, r: float) -> float:
    """Return 1 - K at a distance r, by the series of the incomplete gamma functions behind these kernels."""
    if isinstance(kernel, kernels.Exponential | kernels.Laplacian):
        return -expm1(-r)
    is_rough = isinstance(kernel, kernels.Matern32)
    a = r * sqrt(3.0 if is_rough else 5.0)
    gap = float(stats.gamma.cdf(a, 2))  # 1 - (1 + a) exp(-a)
    return gap if is_rough else gap - a**2 / 3 * exp(-a)


def _least_ratio(key: Array, data: Any, size: int) -> Sides:
    """Return Dhat / D over 0.01 where r times the mean of w^2 is below 2e-4: Dhat^2 is below 2e-4 r."""
    kernel = data["kernel"]
    w = np.asarray(_frequencies(key, kernel, size), float)
    r = 1.9e-4 / np.mean(w**2)
    squared = np.mean(versine(r * w)) / _gap(kernel, r)
    return all_at_most_one([sqrt(squared) / 0.01], "jaxkern, Theorem N of chen2016")


def _at_kernel(kernel: Any) -> Setting:
    name = f"{type(kernel).__name__}, t=1024"
    return Setting(name, {"kernel": kernel}, shapes={"size": 1024})


def no_fourier_ball() -> Check:
    smooth = (_at_kernel(kernels.Matern32(1.0)),)
    return check_of(
        Inequality,
        (_at_kernel(kernels.Exponential(1.0)), _at_kernel(kernels.Laplacian(1.0))),
        wrong("a kernel with a second moment", "wrong law", settings=smooth),
        corrected=_least_ratio,
    )


def _below_limit(data: Any, r: float, scaled: bool = True) -> Sides:
    """Return means of convex functions of Y = X / E X over those of its limit for small distances."""
    kernel, freedom = MIXTURES[data["kernel"]]
    v = np.linspace(-30.0, 30.0, 600_001)
    w = np.exp(v)
    weights = 2 * stats.t.pdf(w, freedom) * w * (v[1] - v[0])
    Y = versine(r * w) / (_gap(kernel, r) if scaled else r**2 / 2)
    limit = w**2 * (freedom - 2) / freedom if scaled else w**2
    ratios = []
    for c in LEVELS:
        above = weights @ np.maximum(Y - c, 0)
        ratios.append(above / (weights @ np.maximum(limit - c, 0)))
    for slope in (1, 20):
        above = weights @ np.exp(-slope * Y)
        ratios.append(above / (weights @ np.exp(-slope * limit)))
    return all_at_most_one(ratios, "jaxkern, Theorem M of chen2016")


def mixture_convex_order() -> Check:
    settings = []
    for name in MIXTURES:
        for r in (0.05, 0.5, 2.0, 8.0):
            label = f"{name}, r={r:g}"
            settings.append(Setting(label, {"kernel": name}, {"r": r}))
    name = "not divided by the mean"
    return check_of(
        Inequality,
        settings,
        wrong(name, "missing normalisation", settings=settings[-1:], scaled=False),
        corrected=_below_limit,
    )


def _largest_error(key: Array, population: Any, numbers: Any, *, size: int) -> Array:
    """max |Dhat / D - 1| over distances on a line."""
    w = _frequencies(key, population["kernel"], size)
    squared = jnp.mean(2 * jnp.sin(population["radii"][:, None] * w / 2) ** 2, axis=1)
    return jnp.max(jnp.abs(jnp.sqrt(squared / population["gaps"]) - 1))


def _along_line(kernel: Any) -> dict[str, Any]:
    gaps = [_gap(kernel, r) for r in RADII]
    return {"kernel": kernel, "radii": real(RADII), "gaps": real(gaps)}


def mixture_ball() -> Check:
    eps = 0.6
    kernel = kernels.Matern52(real(1.0))
    planned = plan.fourier(eps, 0.2, dim=1, diameter=1.0, kernel=kernel)
    size = planned.num_frequencies or 0
    name = f"Matern 5/2 on a line, eps={eps:g}, t={size}"
    settings = (Setting(name, _along_line(kernel), {}, {"size": size}),)
    right = Bound(eps, planned.probability, True, planned.source)
    exponential = kernels.Exponential(real(1.0))
    rough = changed(settings, "exponential", data=lambda _: _along_line(exponential))
    return check_of(
        partial(Tail, _largest_error),
        settings,
        wrong("a kernel without a second moment", "wrong law", settings=rough),
        corrected=lambda setting: right,
    )
