"""kpotufe2020: Theorem 1, over populations of few atoms, two functions, and tau."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, random
from scipy import special, stats

from jaxkern.bounds import sketching
from jaxkern.linalg import eigvalsh, matmul
from proofs_check.claim import Exact, Form, Setting
from proofs_check.engine import decided, enclosures, tilting
from proofs_check.engine.adversary import Target
from proofs_check.engine.sets import nearest_shares
from proofs_check.papers.adversaries import FOUND, gaussian, squared_distances

Params = Mapping[str, Array]
Point = Mapping[str, np.ndarray]
"""Params on the host."""

CLAIM = "kpotufe2020:thm1"
ATOMS, DIM = 4, 2
LOG_TAUS = {
    "printed": (math.log(2.0), math.log(400.0)),
    "corrected": (math.log(2.0), math.log(100.0)),
}
BOUNDS = {
    form: partial(
        sketching.inner_products, kappa=1.0, n=1e30, as_printed=form == "printed"
    )
    for form in LOG_TAUS
}
"""Theorem 1 for a kernel with K(x, x) = 1, and so many landmarks that the n-term vanishes."""


def targets() -> tuple[Target, ...]:
    """Return the targets of this paper."""
    return tuple(map(_theorem_1, LOG_TAUS))


def _theorem_1(form: str) -> Target:
    """For n to infinity and fixed f and g the image is Gaussian, and the probability of a violation is computed.

    The supremum over f and g can only be larger, so what is refuted for one pair is refuted. The n-term vanishes.
    """
    printed = form == "printed"
    sketch = "d=1" if printed else "the fewest rows d that are allowed"
    low, high = map(math.exp, LOG_TAUS[form])
    moves = (
        f"{ATOMS} atoms in dimension {DIM} with probabilities, the lengthscale, two functions f and g, and tau in "
        f"[{low:g}, {high:g}]; {sketch}, n to infinity, C={sketching.KOLTCHINSKII_LOUNICI_TRACE:g}"
    )
    return Target(
        CLAIM,
        form,
        moves,
        start=partial(_start, form=form),
        project=partial(_project, form=form),
        excess=partial(_excess, form=form),
        recheck=partial(_recheck, form=form),
        enclosed=_enclosed if printed else None,
    )


def _start(key: Array, *, form: str) -> Params:
    keys = random.split(key, 5)
    low, high = LOG_TAUS[form]
    return {
        "points": 2 * random.normal(keys[0], (ATOMS, DIM)),
        "weights": random.dirichlet(keys[1], jnp.ones(ATOMS)),
        "log_lengthscale": random.normal(keys[2], ()) / 2,
        "functions": random.normal(keys[3], (2, ATOMS)),
        "log_tau": random.uniform(keys[4], (), minval=low, maxval=high),
    }


def _project(params: Params, *, form: str) -> Params:
    return {
        **params,
        "weights": nearest_shares(params["weights"]),
        "log_lengthscale": jnp.clip(params["log_lengthscale"], -3, 3),
        "log_tau": jnp.clip(params["log_tau"], *LOG_TAUS[form]),
    }


def _excess(params: Params, key: Array, *, form: str) -> Array:
    """The log-probability of a violation by Chernoff's bound, minus the log of the one that is claimed.

    u'f and u'g, u ~ N(0, Sigma^3), are normal with correlation rho. The mean of d products exceeds its own mean by R
    with probability exp(-d I(y)) about, y = rho + R / (|f| |g|) in the norms of Sigma^3, where I(y) is the supremum
    of s y + log(1 - 2 rho s - (1 - rho^2) s^2) / 2.
    """
    del key
    X = params["points"] / jnp.exp(params["log_lengthscale"])
    # Equal atoms leave K singular, which no function would feel.
    K = gaussian(squared_distances(X, X)) + 1e-9 * jnp.eye(ATOMS, dtype=X.dtype)
    root = jnp.sqrt(jnp.maximum(params["weights"], 1e-12))
    values = jnp.maximum(eigvalsh(root[:, None] * K * root[None, :]), 0)
    trace3 = jnp.sum(values**3)
    tau = jnp.exp(params["log_tau"])
    fewest = jnp.maximum(4 * trace3 / values[0] ** 3, tau)
    d = jnp.ones_like(tau) if form == "printed" else fewest
    right = BOUNDS[form](
        op_norm=values[0], trace=jnp.sum(values), trace3=trace3, d=d, tau=tau
    )
    WK = params["weights"][:, None] * K
    cubed = matmul(K, matmul(WK, matmul(WK, WK)))
    unit, _ = _norms_and_product(params["functions"], K)
    scale, product = _norms_and_product(params["functions"], (cubed + cubed.T) / 2)
    rho = jnp.clip(product / scale, -1 + 1e-9, 1 - 1e-9)
    above = right.value * unit / scale
    y = rho + above
    q = 1 - rho**2
    b = 2 * rho * y + q
    s = 2 * above / (b + jnp.sqrt(b**2 + 4 * y * q * above))
    inside = jnp.maximum(1 - 2 * rho * s - q * s**2, 1e-30)
    return -d * (s * y + jnp.log(inside) / 2) - right.log_failure


def _norms_and_product(functions: Array, A: Array) -> tuple[Array, Array]:
    """Return |f| |g| and <f, g> in the inner product of A."""
    forms = matmul(matmul(functions, A), functions.T)
    return jnp.sqrt(jnp.maximum(forms[0, 0] * forms[1, 1], 1e-30)), forms[0, 1]


def _law(params: Point) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities and the Gram matrix of the atoms, in floats or in balls."""
    X = params["points"] / np.exp(params["log_lengthscale"])
    squared = np.square(X[:, None] - X[None]).sum(axis=2)
    return params["weights"] / params["weights"].sum(), np.exp(-squared / 2)


def _recheck(params: Point, *, form: str) -> Form:
    """The probability by quadrature, in the eigenvectors of Sigma."""
    weights, K = _law(params)
    values, vectors = np.linalg.eigh(K)
    Phi = vectors * np.sqrt(np.maximum(values, 0))
    spectrum, axes = np.linalg.eigh(Phi.T @ (weights[:, None] * Phi))
    eigenvalues = np.maximum(spectrum, 0)
    cubes = eigenvalues**3
    functions = params["functions"] @ Phi
    unit = functions @ axes / np.linalg.norm(functions, axis=1)[:, None]
    (ff, fg), (_, gg) = (unit * cubes @ unit.T).tolist()
    tau = math.exp(params["log_tau"])
    S = float(eigenvalues[-1])
    trace3 = float(cubes.sum())
    d = 1 if form == "printed" else math.ceil(max(4 * trace3 / S**3, tau))
    trace = float(eigenvalues.sum())
    right = BOUNDS[form](op_norm=S, trace=trace, trace3=trace3, d=d, tau=tau)
    if not right.valid:
        raise ValueError(
            f"the hypotheses of {right.source} do not hold at tau = {tau}, d = {d}"
        )
    scale = math.sqrt(ff * gg)
    rho = min(max(fg / scale, -1.0), 1.0)
    log_probability = _log_tail(rho, (fg + right.value) / scale, d)
    statement = Exact(lambda setting: (log_probability, right.log_failure))
    setting = Setting(FOUND, numbers={"tau": tau, "d": float(d)})
    return Form(statement, (setting,), "")


def _log_tail(rho: float, y: float, d: int) -> float:
    """Return log P(mean of d products > y) for standard normal factors of correlation rho.

    The sum of the products is ((1 + rho) A - (1 - rho) B) / 2 with independent chi-square variables of d degrees.
    """
    if 1 + rho < 1e-12:
        return -math.inf  # no product is positive
    if 1 - rho < 1e-12:
        return float(tilting.log_chi_square_tail(d, d * y))
    step = (math.sqrt(d) + 40) / 40_000
    v = step * (np.arange(40_000) + 0.5)  # B = v^2
    density = stats.chi2.logpdf(v**2, d) + np.log(2 * v)
    tails = tilting.log_chi_square_tail(d, (2 * d * y + (1 - rho) * v**2) / (1 + rho))
    return float(special.logsumexp(density + tails)) + math.log(step)


def _enclosed(params: Point) -> tuple[Any, Any]:
    """Return the logs of the probability of a violation as printed, d = 1, from below, and of the claimed one.

    Given B = b^2 it is a normal tail that falls in b, and so does the density of b: values at right ends are summed.
    """
    from flint import arb

    weights, K = _law(params)
    root = np.sqrt(weights)
    M = root[:, None] * K * root
    right = decided.bound(
        BOUNDS["printed"],
        op_norm=enclosures.eigenvalues(M)[-1],
        trace=np.trace(M),
        trace3=np.trace(M @ M @ M),
        d=1,
        tau=np.exp(params["log_tau"]),
    )
    f, g = params["functions"]
    WK = weights[:, None] * K
    cubed = K @ WK @ WK @ WK
    unit = np.sqrt((f @ K @ f) * (g @ K @ g))
    scale = np.sqrt((f @ cubed @ f) * (g @ cubed @ g))
    rho = f @ cubed @ g / scale
    y = rho + right.value * unit / scale
    total = enclosures.ball(0)
    for i in range(1, 257):
        b = enclosures.ball(i) / 32
        threshold = (2 * y + (1 - rho) * b**2) / (1 + rho)
        total += enclosures.normal_tail(threshold.sqrt()) * (-(b**2) / 2).exp()
    return (total / 8 / (2 * arb.pi()).sqrt()).log(), right.log_failure
