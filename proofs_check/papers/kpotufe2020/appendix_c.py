"""kpotufe2020, Appendix C: Theorem C.1 with the exact effective rank, and Theorem C.2 where its condition is tight."""

import math
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy import integrate, special, stats

from jaxkern.bounds import Bound, sketching
from jaxkern.linalg import matmul, operator_norm
from proofs_check import controls
from proofs_check.claim import Calibrated, Check, Control, Exact, Form, Setting, Tail
from proofs_check.papers.kpotufe2020.setup import (
    Inputs,
)
from proofs_check.papers.kpotufe2020.trials import Arrays, Numbers
from proofs_check.papers.shared import Exceeds, Grids, bound_of, real, share_of

SPECTRA = {
    "rank one": (1.0, *7 * (0.0,)),
    "isotropic": 8 * (1.0,),
    "geometric": tuple(0.5**i for i in range(8)),
}


def effective_rank(spectrum: Sequence[float]) -> float:
    """Return (E|X|)^2 / |Sigma| for X Gaussian with these eigenvalues.

    E sqrt(Q) = (4 pi)^(-1/2) int_0^inf (1 - E exp(-t Q)) t^(-3/2) dt, with E exp(-t Q) = prod (1 + 2 lambda t)^(-1/2).
    """
    values = np.asarray(spectrum, float)

    def integrand(u: float) -> float:  # t = u^2
        log_laplace = -0.5 * float(np.sum(np.log1p(2 * values * u * u)))
        return -2 * math.expm1(log_laplace) / (u * u)

    integral, _ = integrate.quad(integrand, 0, np.inf, limit=200)
    mean = integral / math.sqrt(4 * math.pi)
    return float(mean**2 / values.max())


def covariance_error(
    key: Array, population: Arrays, numbers: Numbers, *, rows: int
) -> Array:
    """|Sigma_hat - Sigma| over |Sigma| for `rows` draws from N(0, Sigma)."""
    del numbers
    spectrum = population["spectrum"]
    normal = jax.random.normal(key, (rows, spectrum.shape[0]), spectrum.dtype)
    drawn = normal * jnp.sqrt(spectrum)
    error = operator_norm(matmul(drawn.T, drawn) / rows - jnp.diag(spectrum))
    return error / jnp.max(spectrum)


def _of_spectrum(inputs: Inputs, name: str, spectrum: Sequence[float]) -> list[Setting]:
    rank = effective_rank(spectrum)
    data = {"spectrum": real(spectrum)}
    settings = []
    for tau in inputs.taus:
        for n in (math.ceil(max(rank, tau)), 64):
            label = f"{name}, r={rank:.3g}, tau={tau:g}, n={n}"
            numbers = {"tau": tau, "rank": rank, "n": float(n), "op_norm": 1.0}
            settings.append(Setting(label, data, numbers, {"rows": n}))
    return settings


def thmC_1(inputs: Inputs) -> Check:
    settings: list[Setting] = []
    for name, spectrum in SPECTRA.items():
        settings += _of_spectrum(inputs, name, spectrum)
    formula = sketching.gaussian_covariance
    shape = bound_of(formula, constant=1.0)
    least = sketching.KOLTCHINSKII_LOUNICI_LOWER
    most = sketching.KOLTCHINSKII_LOUNICI
    calibrated = Calibrated(covariance_error, shape, least, most)
    tail = Tail(covariance_error, bound_of(formula))
    name = "one draw repeated 4096 times"
    repeated = controls.changed(
        settings[-1:], name, numbers={"n": 4096.0}, shapes={"rows": 1}
    )
    return Check(
        printed=Form(calibrated, tuple(settings)),
        corrected=Form(tail, tuple(settings)),
        controls=(Control(name, tail, repeated, "reused key"),),
    )


def _log_tail_below(d: float, x: float) -> float:
    """Return a lower bound of log P(chi2_d > x), d >= 2: Gamma(a, y) >= y^(a - 1) e^-y for a >= 1."""
    a = d / 2
    y = x / 2
    return float((a - 1) * math.log(y) - y - special.gammaln(a))


def rank_one(*, n: float, C: float, rank: float = 2 / math.pi) -> Bound:
    """Return Theorem C.1 for tau = n and a Sigma of rank one, for which r = 2 / pi."""
    return sketching.gaussian_covariance(op_norm=1.0, rank=rank, n=n, tau=n, constant=C)


def _exceeded(n: float, C: float) -> tuple[float, float]:
    """The deviation over |Sigma| is |chi2_n / n - 1|."""
    right = rank_one(n=n, C=C)
    return right.log_failure, _log_tail_below(n, n * (1 + right.value))


def thmC_1_lower(grids: Grids) -> Check:
    exceeded = Exact(_exceeded)
    return Check(
        corrected=Form(exceeded, grids["corrected"]),
        controls=(Control("C = 3.6", exceeded, grids["larger"], "wrong factor"),),
    )


def mean_of_signs(*, n: float, tau: float) -> Bound:
    """Return Theorem C.2 as printed for n signs.

    |xi| = 1, so that E|xi|^m = 1 <= (m! / 2) theta^2 B^(m - 2) with B = 1 and theta^2 = 1/3 for every m > 2 (equality
    at m = 3), but not for m = 2.
    """
    # The root is that of the arithmetic of n: exact in balls.
    theta = ((0 * n + 1) / 3) ** 0.5
    return sketching.hilbert_mean(theta=theta, scale=1.0, n=n, tau=tau, as_printed=True)


def _signs_tail(value: float, n: float) -> float:
    """Return the log-probability that the mean of n signs reaches a value on either side."""
    heads = math.ceil(n * (1 + value) / 2)  # (2 heads - n) / n >= value
    return math.log(2) + float(stats.binom.logsf(heads - 1, n, 0.5))


def mean_of_exponentials(*, n: float, tau: float, variance: float = 2.0) -> Bound:
    """Return Theorem C.2 for n signed exponential variables: E|xi|^m = m!, theta^2 = 2 and B = 1."""
    theta = (0 * n + variance) ** 0.5
    return sketching.hilbert_mean(theta=theta, scale=1.0, n=n, tau=tau)


def _exponentials_tail(value: float, n: float) -> float:
    """Return the log-probability that the mean of n signed exponential variables exceeds a value on either side.

    Of two Poisson processes the one that is first to n points waits for j more of the other with probability
    C(2n - j - 1, n - 1) / 2^(2n - j) each, and these take as long as j exponential variables.
    """
    total = n * value
    j = np.arange(1, n + 1)
    choices = (
        special.gammaln(2 * n - j) - special.gammaln(n) - special.gammaln(n - j + 1)
    )
    ways = choices - (2 * n - j) * math.log(2)
    longer = stats.gamma.logsf(total, j) if n > 1 else -total
    return math.log(2) + float(special.logsumexp(ways + longer))


def thmC_2(grids: Grids) -> Check:
    formula = mean_of_exponentials
    settings = grids["corrected"]
    linear = Exact(Exceeds(_exponentials_tail, partial(formula, variance=0.0)))
    smaller = Exact(Exceeds(_exponentials_tail, share_of(0.99, formula)))
    return Check(
        printed=Form(Exact(Exceeds(_signs_tail, mean_of_signs)), grids["printed"]),
        corrected=Form(Exact(Exceeds(_exponentials_tail, formula)), settings),
        controls=(
            Control("the linear term alone", linear, settings[3:], "term left out"),
            Control("0.99 of the bound", smaller, settings, "wrong factor"),
        ),
    )
