"""ghashami2016, the statements about random features: quadratic forms of the Gram matrix.

`docs/theory/ghashami2016.md` derives every correction.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from jaxkern import features, kernels
from jaxkern.bounds import Bound
from jaxkern.bounds import fourier as bounds
from proofs_check.claim import Claim, Control, Exact, Form, Setting, Tail
from proofs_check.populations import Population

PAPER = "ghashami2016"


def claims(data: Population | None = None, *, full: bool = False) -> list[Claim]:
    """Return the claims of the paper, in its order."""
    return [_thm3_1((0.05, 0.02) if full else (0.05,))]


def _thm3_1(deltas: tuple[float, ...]) -> Claim:
    printed = tuple(
        _place(eps, delta, math.ceil(math.log(2 / delta) / (2 * eps**2)))
        for eps in (0.05, 0.1)
        for delta in (1e-2, 1e-3)
    )
    corrected = tuple(
        _place(eps, delta, math.ceil(2 * math.log(2 / delta) / eps**2)) for eps in (0.1, 0.2) for delta in deltas
    )
    return Claim(
        id="ghashami2016:thm3.1",
        paper=PAPER,
        where="Theorem 3.1",
        kind="tail bound",
        tex=r"\bigl|\|\Phi^{\top}x\|^2-\|Z^{\top}x\|^2\bigr|\le\epsilon n\text{ w.p. }1-\delta,\ "
        r"m=\tfrac1{2\epsilon^2}\ln\tfrac2\delta",
        because="Hoeffding's inequality for terms in [0, 2n/m] gives exp(-eps^2 m / 2), not exp(-2 eps^2 m): four "
        "times as many features are needed. For n copies of a point the deviation is |mean cos 2 b_i|, b_i uniform, "
        "whose law is known exactly. The printed number is right for pairs of a cosine and a sine.",
        printed=Form(Exact(_violation), printed, "refuted"),
        corrected=Form(
            Tail(_deviation, _bound),
            corrected,
            "certified",
            r"m=\tfrac2{\epsilon^2}\ln\tfrac2\delta",
        ),
        controls=(Control("features without the root of two", Tail(_halved, _bound), corrected[:1]),),
    )


def _place(eps: float, delta: float, m: int) -> Setting:
    name = f"copies of a point, eps={eps:g}, delta={delta:g}, m={m}"
    return Setting(name, numbers={"eps": eps, "delta": delta, "m": float(m)}, shapes={"rows": m})


def _bound(setting: Setting) -> Bound:
    return bounds.quadratic_form_shifted(eps=setting.numbers["eps"], num_features=setting.numbers["m"])


def _violation(setting: Setting) -> tuple[float, float]:
    """Return the log-probability that |mean of m independent cos U| exceeds eps, U uniform, and the log of delta.

    The characteristic function of cos U is the Bessel function J_0, so
    P(|sum| > x) = 1 - (2 / pi) int_0^infinity sin(t x) J_0(t)^m / t dt.
    """
    m, eps = setting.numbers["m"], setting.numbers["eps"]
    t = np.linspace(0, 40 / math.sqrt(m), 40_001)[1:]  # J_0(t)^m is about exp(-m t^2 / 4): below 1e-170 at the end
    values = np.concatenate([[m * eps], np.sin(t * m * eps) * special.j0(t) ** m / t])
    inside = 2 / math.pi * np.trapezoid(values, dx=float(t[0]))
    return math.log(1 - inside), math.log(setting.numbers["delta"])


def _squared_norm(key: jax.Array, rows: int) -> jax.Array:
    """Return |z|^2 for the shifted Fourier features z of one point, by the library."""
    dtype = jnp.result_type(float)
    phi = features.shifted_fourier(key, kernels.Gaussian(1.0), 1, num_frequencies=rows, dtype=dtype)
    return jnp.sum(phi(jnp.zeros((1, 1), dtype)) ** 2)


def _deviation(key: jax.Array, population: Any, numbers: Any, *, rows: int) -> jax.Array:
    """| |Phi' x|^2 - |Z' x|^2 | / n for n copies of a point and x = (1, ..., 1) / sqrt(n)."""
    del population, numbers
    return jnp.abs(1 - _squared_norm(key, rows))


def _halved(key: jax.Array, population: Any, numbers: Any, *, rows: int) -> jax.Array:
    """The same with sqrt(1 / m) for sqrt(2 / m)."""
    del population, numbers
    return jnp.abs(1 - _squared_norm(key, rows) / 2)
