"""kpotufe2020, the tools of Appendix C as statements of their own, and what sharper tools give.

Theorem C.1 on Gaussian laws whose effective rank is computed exactly, Theorem C.2 on a law that meets its moment
condition with equality; Lemma B.2 and Theorem 1 again with the better constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import integrate, special, stats

from jaxkern._spectral import matmul, operator_norm
from jaxkern.bounds import Bound, sketching
from proofs_check import controls
from proofs_check.claim import Calibrated, Check, Control, Exact, Form, Setting, Tail
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.deviation import for_every_n
from proofs_check.papers.kpotufe2020.places import Scope, fixed, rough

PAPER = "kpotufe2020"
C = sketching.KOLTCHINSKII_LOUNICI
SPECTRA = {
    "rank one": (1.0, *7 * (0.0,)),
    "isotropic": 8 * (1.0,),
    "geometric": tuple(0.5**i for i in range(8)),
}


# -------------------------------------------------------------------------------------------------------- Theorem C.1


def effective_rank(spectrum: Any) -> float:
    """Return (E|X|)^2 / |Sigma| for X Gaussian with these eigenvalues.

    E sqrt(Q) = (4 pi)^(-1/2) int_0^inf (1 - E exp(-t Q)) t^(-3/2) dt, with E exp(-t Q) = prod (1 + 2 lambda t)^(-1/2).
    """
    values = np.asarray(spectrum, float)

    def integrand(u: float) -> float:  # t = u^2
        log_laplace = -0.5 * float(np.sum(np.log1p(2 * values * u * u)))
        return -2 * math.expm1(log_laplace) / (u * u)

    mean = integrate.quad(integrand, 0, np.inf, limit=200)[0] / math.sqrt(4 * math.pi)
    return float(mean**2 / values.max())


def covariance_error(key: jax.Array, population: Mapping[str, jax.Array], numbers: Any, *, rows: int) -> jax.Array:
    """|Sigma_hat - Sigma| over |Sigma| for `rows` draws from N(0, Sigma)."""
    del numbers
    spectrum = population["spectrum"]
    drawn = jax.random.normal(key, (rows, spectrum.shape[0]), spectrum.dtype) * jnp.sqrt(spectrum)
    return operator_norm(matmul(drawn.T, drawn) / rows - jnp.diag(spectrum)) / jnp.max(spectrum)


def _c1_bound(constant: float) -> Callable[[Setting], Bound]:
    def bound(setting: Setting) -> Bound:
        rank, tau, rows = setting.numbers["rank"], setting.numbers["tau"], setting.shapes["rows"]
        value = constant * (math.sqrt(rank) + math.sqrt(tau)) / math.sqrt(rows)
        return Bound(value, 1 - math.exp(-tau), tau >= 1 and rows >= max(rank, tau), "kpotufe2020, Theorem C.1")

    return bound


def _c1_settings(scope: Scope) -> tuple[Setting, ...]:
    settings = []
    for name, spectrum in SPECTRA.items():
        rank = effective_rank(spectrum)
        population = {"spectrum": jnp.asarray(spectrum, jax.dtypes.canonicalize_dtype(float))}
        for tau in scope.taus:
            for rows in (math.ceil(max(rank, tau)), 64):
                label = f"{name}, r={rank:.3g}, tau={tau:g}, n={rows}"
                settings.append(Setting(label, population, {"tau": tau, "rank": rank}, {"rows": rows}))
    return tuple(settings)


def _theorem_c1(scope: Scope) -> Check:
    settings = _c1_settings(scope)
    wide = controls.changed(settings[-1:], "one draw repeated 4096 times", shapes={"rows": 1})

    def repeated(setting: Setting) -> Bound:
        rank, tau = setting.numbers["rank"], setting.numbers["tau"]
        value = C * (math.sqrt(rank) + math.sqrt(tau)) / math.sqrt(4096)
        return Bound(value, 1 - math.exp(-tau), True, "kpotufe2020, Theorem C.1")

    return Check(
        printed=Form(Calibrated(covariance_error, _c1_bound(1.0), sketching.KOLTCHINSKII_LOUNICI_LOWER, C), settings),
        corrected=Form(Tail(covariance_error, _c1_bound(C)), settings),
        controls=(Control("one draw repeated 4096 times", Tail(covariance_error, repeated), wide, "reused key"),),
    )


def _log_tail_below(d: int, x: float) -> float:
    """Return a lower bound of log P(chi2_d > x), d >= 2: Gamma(a, y) >= y^(a - 1) e^-y for a >= 1."""
    a, y = d / 2, x / 2
    return float((a - 1) * math.log(y) - y - special.gammaln(a))


def _theorem_c1_lower() -> Check:
    """With rank one, r = 2 / pi, and tau = n the deviation over |Sigma| is |chi2_n / n - 1|."""

    def probability(setting: Setting) -> tuple[float, float]:
        constant, n = setting.numbers["C"], int(setting.numbers["n"])
        threshold = n * (1 + constant * (1 + math.sqrt(2 / (math.pi * n))))
        return -float(n), _log_tail_below(n, threshold)

    def places(constants: tuple[float, ...]) -> tuple[Setting, ...]:
        return tuple(
            Setting(f"rank one, C={c:g}, tau=n={n:g}", numbers={"C": c, "n": n})
            for c, n in zip(constants, (1e3, 1e4, 1e10), strict=False)
        )

    return Check(
        corrected=Form(Exact(probability), places((3.3, 3.45, 3.505))),
        controls=(Control("C = 3.6", Exact(probability), places((3.6, 3.6, 3.6)), "wrong factor"),),
    )


# -------------------------------------------------------------------------------------------------------- Theorem C.2


def _rademacher(setting: Setting) -> tuple[float, float]:
    """Return the log-probability that the mean of n signs reaches the printed bound, and what is allowed.

    |xi| = 1, so that E|xi|^m = 1 <= (m! / 2) theta^2 B^(m - 2) with B = 1 and theta^2 = 1/3 for every m > 2 (equality
    at m = 3), but not for m = 2.
    """
    n, tau = int(setting.numbers["n"]), setting.numbers["tau"]
    bound = sketching.hilbert_mean(theta=math.sqrt(1 / 3), scale=1.0, n=n, tau=tau, as_printed=True).value
    heads = math.ceil(n * (1 + bound) / 2)  # (2 heads - n) / n >= bound
    return math.log(2) + float(stats.binom.logsf(heads - 1, n, 0.5)), math.log(2) - tau


def laplace_mean(key: jax.Array, population: Any, numbers: Any, *, dim: int, n: int) -> jax.Array:
    """|mean of n copies of E u|, E exponential and u uniform on the sphere: E|xi|^m = m!, theta^2 = 2 and B = 1."""
    del population, numbers
    key_length, key_direction = jax.random.split(key)
    dtype = jax.dtypes.canonicalize_dtype(float)
    direction = jax.random.normal(key_direction, (n, dim), dtype)
    direction = direction / jnp.linalg.norm(direction, axis=1, keepdims=True)
    return jnp.linalg.norm(jnp.mean(jax.random.exponential(key_length, (n, 1), dtype) * direction, axis=0))


def _c2_bound(setting: Setting) -> Bound:
    return sketching.hilbert_mean(theta=math.sqrt(2), scale=1.0, n=setting.shapes["n"], tau=setting.numbers["tau"])


def _theorem_c2() -> Check:
    settings = tuple(
        Setting(f"E u in R^{dim}, n={n}, tau={tau:g}", None, {"tau": tau}, {"dim": dim, "n": n})
        for dim in (1, 5)
        for n in (1, 40)
        for tau in (1.0, 3.0)
    )
    printed = tuple(
        Setting(f"signs, theta^2=1/3, B=1, n={n:g}, tau={tau:g}", numbers={"n": n, "tau": tau})
        for n, tau in ((1e4, 5.0), (1e6, 5.0), (1e6, 20.0), (1e8, 200.0))
    )

    def linear_alone(setting: Setting) -> Bound:
        right = _c2_bound(setting)
        return Bound(setting.numbers["tau"] / setting.shapes["n"], right.probability, right.valid, right.source)

    return Check(
        printed=Form(Exact(_rademacher), printed),
        corrected=Form(Tail(laplace_mean, _c2_bound), settings),
        controls=(
            Control(
                "the linear term alone",
                Tail(laplace_mean, linear_alone),
                tuple(s for s in settings if s.shapes["n"] == 40 and s.numbers["tau"] == 3),
                "term left out",
            ),
        ),
    )


# ------------------------------------------------------------------------------------------------ sharper consequences


def _lemma_b2_sharp(scope: Scope) -> Check:
    bound = scope.bound(sketching.covariance_deviation_sharp, "kappa", "trace", "hs_norm", "n", "tau")
    return Check(**for_every_n(scope, bound))


def _every_n(scope: Scope) -> Check:
    names = ("kappa", "op_norm", "trace", "trace3", "hs_norm", "n", "d", "tau")
    bound = scope.bound(sketching.inner_products_every_n, *names)

    def n_of(value: float) -> Callable[[Any, float], float]:
        return lambda p, tau: value

    return Check(
        corrected=Form(
            Tail(trials.sketch, bound),
            scope.at(n_of(1.0), d=fixed(1), rows=fixed(1))
            + scope.at(n_of(1e3), d=fixed(1), rows=fixed(1))
            + scope.at(n_of(1e10), d=fixed(32), rows=fixed(32)),
        ),
        controls=(
            Control(
                "Sigma^2 in place of Sigma^3",
                Tail(trials.sketch, bound),
                scope.at(n_of(1e10), d=fixed(1024), rows=fixed(1024), people=rough(scope), target=2),
                "wrong power",
            ),
        ),
    )
