"""kpotufe2020: Theorem 1, over populations of few atoms, two functions, and tau."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special, stats

from jaxkern.bounds import sketching
from jaxkern.linalg import eigvalsh, matmul
from proofs_check.claim import Exact, Form, Setting
from proofs_check.engine import enclosures, tilting
from proofs_check.engine.adversary import Target
from proofs_check.engine.sets import nearest_shares
from proofs_check.papers.adversaries import FOUND, gaussian, squared_distances

Params = Mapping[str, jax.Array]
Found = Mapping[str, np.ndarray]

CLAIM = "kpotufe2020:thm1"
ATOMS, DIM = 4, 2
C = sketching.KOLTCHINSKII_LOUNICI_TRACE
TAUS = {"printed": (2.0, 400.0), "corrected": (2.0, 100.0)}


def targets() -> tuple[Target, ...]:
    """Return the targets of this paper."""
    return tuple(_theorem_1(form) for form in ("printed", "corrected"))


def _theorem_1(form: str) -> Target:
    """For n to infinity and fixed f and g the image is Gaussian, and the probability of a violation is computed.

    The supremum over f and g can only be larger, so what is refuted for one pair is refuted. The n-term vanishes.
    """
    sketch = "d=1" if form == "printed" else "the fewest rows d that are allowed"
    low, high = TAUS[form]
    return Target(
        CLAIM,
        form,
        f"{ATOMS} atoms in dimension {DIM} with probabilities, the lengthscale, two functions f and g, and tau in "
        f"[{low:g}, {high:g}]; {sketch}, n to infinity, C={C:g}",
        start=functools.partial(_start, form=form),
        project=functools.partial(_project, form=form),
        excess=functools.partial(_excess, form=form),
        recheck=functools.partial(_recheck, form=form),
        enclosed=_enclosed if form == "printed" else None,
    )


def _start(key: jax.Array, *, form: str) -> Params:
    keys = jax.random.split(key, 5)
    low, high = (math.log(tau) for tau in TAUS[form])
    return {
        "points": 2 * jax.random.normal(keys[0], (ATOMS, DIM)),
        "weights": jax.random.dirichlet(keys[1], jnp.ones(ATOMS)),
        "log_lengthscale": jax.random.normal(keys[2], ()) / 2,
        "functions": jax.random.normal(keys[3], (2, ATOMS)),
        "log_tau": jax.random.uniform(keys[4], (), minval=low, maxval=high),
    }


def _project(params: Params, *, form: str) -> Params:
    low, high = (math.log(tau) for tau in TAUS[form])
    return {
        **params,
        "weights": nearest_shares(params["weights"]),
        "log_lengthscale": jnp.clip(params["log_lengthscale"], -3, 3),
        "log_tau": jnp.clip(params["log_tau"], low, high),
    }


def _excess(params: Params, key: jax.Array, *, form: str) -> jax.Array:
    """The log-probability of a violation by Chernoff's bound, minus the log of the one that is claimed.

    u'f and u'g, u ~ N(0, Sigma^3), are normal with correlation rho. The mean of d products exceeds its own mean by R
    with probability exp(-d I(y)) about, y = rho + R / (|f| |g|) in the norms of Sigma^3, where I(y) is the supremum
    of s y + log(1 - 2 rho s - (1 - rho^2) s^2) / 2.
    """
    del key
    X = params["points"] / jnp.exp(params["log_lengthscale"])
    # Atoms on the same place leave K singular, which no function would feel.
    K = gaussian(squared_distances(X, X)) + 1e-9 * jnp.eye(ATOMS, dtype=X.dtype)
    root = jnp.sqrt(jnp.maximum(params["weights"], 1e-12))
    values = jnp.maximum(eigvalsh(root[:, None] * K * root[None, :]), 0)
    largest, rank = values[0], jnp.sum(values**3) / values[0] ** 3
    WK = params["weights"][:, None] * K
    cubed = matmul(K, matmul(WK, matmul(WK, WK)))
    norms = _quadratic(params["functions"], K)
    forms = _quadratic(params["functions"], (cubed + cubed.T) / 2)
    scale = jnp.sqrt(jnp.maximum(forms[0, 0] * forms[1, 1], 1e-30))
    rho = jnp.clip(forms[0, 1] / scale, -1 + 1e-9, 1 - 1e-9)
    tau = jnp.exp(params["log_tau"])
    if form == "printed":
        d, claimed = jnp.ones_like(tau), math.log(5) - tau
        right = 3 * C * (jnp.sqrt(2 * rank) + jnp.sqrt(tau))
    else:
        d, claimed = jnp.maximum(4 * rank, tau), math.log(3) - tau
        right = C * (jnp.sqrt(3 * rank) + 1.5 * jnp.sqrt(tau)) / jnp.sqrt(d)
    unit = jnp.sqrt(jnp.maximum(norms[0, 0] * norms[1, 1], 1e-30))
    above = right * largest**3 * unit / scale
    y, q = rho + above, 1 - rho**2
    b = 2 * rho * y + q
    s = 2 * above / (b + jnp.sqrt(b**2 + 4 * y * q * above))
    rate = s * y + jnp.log(jnp.maximum(1 - 2 * rho * s - q * s**2, 1e-30)) / 2
    return -d * rate - claimed


def _quadratic(functions: jax.Array, A: jax.Array) -> jax.Array:
    return matmul(matmul(functions, A), functions.T)


def _recheck(params: Found, *, form: str) -> Form:
    """The probability by quadrature, in the eigenvectors of Sigma."""
    X, weights = (
        params["points"] / math.exp(params["log_lengthscale"]),
        params["weights"] / params["weights"].sum(),
    )
    K = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / 2)
    values, vectors = np.linalg.eigh(K)
    Phi = vectors * np.sqrt(np.maximum(values, 0))
    eigenvalues, axes = np.linalg.eigh(Phi.T @ (weights[:, None] * Phi))
    eigenvalues = np.maximum(eigenvalues, 0)
    f, g = (a @ Phi @ axes / np.linalg.norm(a @ Phi) for a in params["functions"])
    tau, S, trace3 = (
        math.exp(params["log_tau"]),
        float(eigenvalues[-1]),
        float(np.sum(eigenvalues**3)),
    )
    rank = trace3 / S**3
    d = 1 if form == "printed" else math.ceil(max(4 * rank, tau))
    bound = sketching.inner_products(
        kappa=1.0, op_norm=S, trace=float(eigenvalues.sum()), trace3=trace3, n=1e30, d=d, tau=tau,
        as_printed=form == "printed",
    )  # fmt: skip
    if not bound.valid:
        raise ValueError(
            f"the hypotheses of {bound.source} do not hold at tau = {tau}, d = {d}"
        )
    ff, gg, fg = (
        float(np.sum(eigenvalues**3 * a * b)) for a, b in ((f, f), (g, g), (f, g))
    )
    scale = math.sqrt(ff * gg)
    log_probability = _log_tail(
        min(max(fg / scale, -1.0), 1.0), fg / scale + float(bound.value) / scale, d
    )
    claimed = (math.log(5) if form == "printed" else math.log(3)) - tau
    statement = Exact(lambda setting: (log_probability, claimed))
    return Form(statement, (Setting(FOUND, numbers={"tau": tau, "d": float(d)}),), "")


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


def _enclosed(params: Found) -> tuple[Any, Any]:
    """Return the logs of the probability of a violation as printed, d = 1, from below, and of the claimed one.

    Given B = b^2 it is a normal tail that falls in b, and so does the density of b: values at right ends are summed.
    """
    from flint import arb

    ball = enclosures.ball
    X, weights = (
        params["points"] / np.exp(params["log_lengthscale"]),
        params["weights"] / params["weights"].sum(),
    )
    K = np.exp(-np.square(X[:, None] - X[None]).sum(axis=2) / 2)
    root = np.sqrt(weights)
    M, WK = root[:, None] * K * root, weights[:, None] * K
    S, trace3, tau = (
        enclosures.eigenvalues(M)[-1],
        np.trace(M @ M @ M),
        np.exp(params["log_tau"]),
    )
    right = 3 * ball(str(C)) * S**3 * (np.sqrt(2 * trace3 / S**3) + np.sqrt(tau))
    f, g = params["functions"]
    unit = np.sqrt((f @ K @ f) * (g @ K @ g))
    ff, gg, fg = (a @ K @ WK @ WK @ WK @ b for a, b in ((f, f), (g, g), (f, g)))
    rho, y = fg / np.sqrt(ff * gg), (fg + right * unit) / np.sqrt(ff * gg)
    steps = [ball(i) / 32 for i in range(1, 257)]
    normal = enclosures.normal_tail
    tails = [
        normal(((2 * y + (1 - rho) * b**2) / (1 + rho)).sqrt()) * (-(b**2) / 2).exp()
        for b in steps
    ]
    return (sum(tails) / 8 / (2 * arb.pi()).sqrt()).log(), ball(5).log() - tau
