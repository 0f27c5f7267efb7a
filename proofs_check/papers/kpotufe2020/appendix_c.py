"""kpotufe2020, Appendix C: Theorem C.1 with the exact effective rank, and Theorem C.2 where its condition is tight."""

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import integrate, special, stats

from jaxkern.bounds import sketching
from jaxkern.linalg import matmul, operator_norm
from proofs_check import controls
from proofs_check.claim import Calibrated, Check, Control, Exact, Form, Setting, Tail
from proofs_check.papers.kpotufe2020.setup import Inputs
from proofs_check.papers.shared import bound_of, claimed, listed, parametrized

SPECTRA = {
    "rank one": (1.0, *7 * (0.0,)),
    "isotropic": 8 * (1.0,),
    "geometric": tuple(0.5**i for i in range(8)),
}


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


def covariance_error(
    key: jax.Array, population: Mapping[str, jax.Array], numbers: Any, *, rows: int
) -> jax.Array:
    """|Sigma_hat - Sigma| over |Sigma| for `rows` draws from N(0, Sigma)."""
    del numbers
    spectrum = population["spectrum"]
    drawn = jax.random.normal(
        key, (rows, spectrum.shape[0]), spectrum.dtype
    ) * jnp.sqrt(spectrum)
    return operator_norm(matmul(drawn.T, drawn) / rows - jnp.diag(spectrum)) / jnp.max(
        spectrum
    )


def _theorem_c1(inputs: Inputs) -> Check:
    settings = []
    for name, spectrum in SPECTRA.items():
        rank = effective_rank(spectrum)
        population = {
            "spectrum": jnp.asarray(spectrum, jax.dtypes.canonicalize_dtype(float))
        }
        for tau in inputs.taus:
            for rows in (math.ceil(max(rank, tau)), 64):
                label = f"{name}, r={rank:.3g}, tau={tau:g}, n={rows}"
                numbers = {"tau": tau, "rank": rank, "n": float(rows), "op_norm": 1.0}
                settings.append(Setting(label, population, numbers, {"rows": rows}))
    bound = bound_of(sketching.gaussian_covariance)
    shape = bound_of(sketching.gaussian_covariance, constant=1.0)
    name, tail = "one draw repeated 4096 times", Tail(covariance_error, bound)
    repeated = controls.changed(
        settings[-1:], name, numbers={"n": 4096.0}, shapes={"rows": 1}
    )
    least, most = sketching.KOLTCHINSKII_LOUNICI_LOWER, sketching.KOLTCHINSKII_LOUNICI
    return Check(
        printed=Form(Calibrated(covariance_error, shape, least, most), tuple(settings)),
        corrected=Form(tail, tuple(settings)),
        controls=(Control(name, tail, repeated, "reused key"),),
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

    def rank_one(*constants: float) -> tuple[Setting, ...]:
        return listed(
            "rank one, C={C:g}, tau=n={n:g}",
            "C n",
            zip(constants, (1e3, 1e4, 1e10), strict=True),
        )

    return Check(
        corrected=Form(Exact(probability), rank_one(3.3, 3.45, 3.505)),
        controls=(
            Control(
                "C = 3.6", Exact(probability), rank_one(3.6, 3.6, 3.6), "wrong factor"
            ),
        ),
    )


def _rademacher(setting: Setting) -> tuple[float, float]:
    """Return the log-probability that the mean of n signs reaches the printed bound, and what is allowed.

    |xi| = 1, so that E|xi|^m = 1 <= (m! / 2) theta^2 B^(m - 2) with B = 1 and theta^2 = 1/3 for every m > 2 (equality
    at m = 3), but not for m = 2.
    """
    n, tau = int(setting.numbers["n"]), setting.numbers["tau"]
    bound = sketching.hilbert_mean(
        theta=math.sqrt(1 / 3), scale=1.0, n=n, tau=tau, as_printed=True
    ).value
    heads = math.ceil(n * (1 + bound) / 2)  # (2 heads - n) / n >= bound
    return math.log(2) + float(stats.binom.logsf(heads - 1, n, 0.5)), math.log(2) - tau


def _theorem_c2() -> Check:
    @parametrized(Exact)
    def laplace(
        setting: Setting, part: float = 1.0, *, linear: bool = False
    ) -> tuple[float, float]:
        """The mean of n signed exponential variables: E|xi|^m = m!, theta^2 = 2 and B = 1.

        Of two Poisson processes the one that is first to n points waits for j more of the other with probability
        C(2n - j - 1, n - 1) / 2^(2n - j) each, and these take as long as j exponential variables.
        """
        n, tau = setting.numbers["n"], setting.numbers["tau"]
        right = sketching.hilbert_mean(theta=math.sqrt(2), scale=1.0, n=n, tau=tau)
        total = n * (tau / n if linear else part * right.value)
        j = np.arange(1, n + 1)
        ways = (
            special.gammaln(2 * n - j)
            - special.gammaln(n)
            - special.gammaln(n - j + 1)
            - (2 * n - j) * math.log(2)
        )
        longer = stats.gamma.logsf(total, j) if n > 1 else -total
        return math.log(2) + float(special.logsumexp(ways + longer)), claimed(
            right, setting
        )

    sizes = (
        (1.0, 3.0),
        (1.0, 40.0),
        (1.0, 1e6),
        (40.0, 3.0),
        (40.0, 40.0),
        (400.0, 40.0),
    )
    settings = listed("n={n:g}, tau={tau:g}", "n tau", sizes)
    large = ((1e4, 5.0), (1e6, 5.0), (1e6, 20.0), (1e8, 200.0))
    signs = listed("signs, theta^2=1/3, B=1, n={n:g}, tau={tau:g}", "n tau", large)
    return Check(
        printed=Form(Exact(_rademacher), signs),
        corrected=Form(laplace(), settings),
        controls=(
            Control(
                "the linear term alone",
                laplace(linear=True),
                settings[3:],
                "term left out",
            ),
            Control("0.99 of the bound", laplace(0.99), settings, "wrong factor"),
        ),
    )
