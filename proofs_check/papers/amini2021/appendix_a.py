"""amini2021, Appendix A.3: the Hanson-Wright inequality and the steps of its proof; Theorem B."""

import math
from dataclasses import replace
from functools import partial

import jax
import numpy as np

from jaxkern.bounds import Bound, concentration
from proofs_check.claim import (
    Calibrated,
    Check,
    Control,
    Exact,
    Form,
    Identity,
    Inequality,
    Setting,
    Tail,
)
from proofs_check.papers.amini2021 import trials
from proofs_check.papers.amini2021.setup import (
    KAPPA,
    PROVED,
    Inputs,
    Pairs,
    form_shape,
    inner_products,
    log_of,
    with_form,
    with_numbers,
)
from proofs_check.papers.shared import (
    Grids,
    bound_of,
    check_of,
    exceeds,
    lines,
    rng_of,
    share_of,
    wrong,
)


def _trace_errors(rng: np.random.Generator, symmetric: bool) -> list[float]:
    n = 5
    d = 3
    A, B = rng.standard_normal((2, n, n))
    M, centred = rng.standard_normal((2, d, n))
    S = (A + A.T) / 2
    transposed = np.trace(S @ B) - np.trace(S @ B.T)
    symmetrized = np.trace(S @ B) - np.trace(A @ (B + B.T) / 2)
    z = rng.standard_normal(n)
    X = M + centred
    stacked = np.kron(z, np.eye(d)) @ X.T.ravel() - X @ z

    def weighted(Y: np.ndarray) -> float:
        return float(np.trace(A.T @ Y.T @ Y))

    def squared(Y: np.ndarray) -> float:
        return float(np.sum((Y @ z) ** 2))

    # Z(X) - Z(centred) - Z(M) is what is linear in the centred part.
    R = M @ (S if symmetric else A)
    linear = weighted(X) - weighted(centred) - weighted(M)
    form = squared(X) - squared(centred) - squared(M)
    crossed = form - 2 * (M @ z) @ (centred @ z)
    return [
        transposed,
        symmetrized,
        *stacked,
        linear - 2 * np.trace(R.T @ centred),
        crossed,
    ]


def trace_errors(key: jax.Array, symmetric: bool = True) -> np.ndarray:
    """Return the errors of four draws: in one, S and A may differ by less than float32 tells."""
    rng = rng_of(key)
    return np.array([_trace_errors(rng, symmetric) for _ in range(4)]) / 100


def eq42(grids: Grids) -> Check:
    not_symmetric = wrong("R = M A", "transpose for adjoint", symmetric=False)
    return check_of(Identity, grids["printed"], not_symmetric, printed=trace_errors)


def _form_shape(setting: Setting) -> Bound:
    numbers = setting.numbers
    centred = numbers["dim"] * numbers["frobenius"] ** 2
    spread = centred + (numbers["mean_frobenius"] / KAPPA) ** 2
    return form_shape(setting, spread, numbers["op_norm"])


def thm6(inputs: Inputs) -> Check:
    n = 12
    weights = {
        "random": np.random.default_rng(6).standard_normal((n, n)),
        "rank one": np.outer(np.arange(1.0, n + 1), np.ones(n)) / n,
    }

    def settings(level: float) -> tuple[Setting, ...]:
        """Return quadratic forms with the tau of level exp(-tau) = delta."""
        forms = []
        for norm in (0.0, 10.0):
            model = inner_products(n, 16, norm)
            for name, A in weights.items():
                for delta in inputs.deltas:
                    tau = math.log(level / delta)
                    forms.append(with_form(model, A, tau, delta, f"A {name}, "))
        return tuple(forms)

    count = len(inputs.deltas)
    unnamed = settings(4)
    explicit = settings(2)
    formula = concentration.hanson_wright_gaussian
    shape = partial(Calibrated, trials.form_error, _form_shape, 0.0)
    tail = Tail(trials.form_error, bound_of(formula))
    quarter = Tail(trials.form_error, bound_of(share_of(0.25, formula)))
    reused = tuple(with_numbers(s, reused=1.0) for s in explicit[-count:])
    return Check(
        printed=Form(shape(PROVED), unnamed),
        corrected=Form(tail, explicit),
        controls=(
            Control(
                "a tenth of the constant", shape(PROVED / 10), unnamed, "wrong factor"
            ),
            Control("a quarter of it", quarter, explicit[:count], "wrong factor"),
            Control("one draw of the noise for all points", tail, reused, "reused key"),
        ),
    )


EIGENVALUES = np.array([1.0, 0.7, 0.4, -0.5])
SQUARE = float(np.sum(EIGENVALUES**2))


def printed_log_mgf(C1: float) -> Pairs:
    """log E e^(s Z) over s tr A for A with the eigenvalues 1, .7, .4, .5 and normal X, at s = 1 / (4 C1)."""
    positive = np.abs(EIGENVALUES)
    s = positive.sum() / (4 * C1 * SQUARE)
    left = -float(np.sum(np.log1p(-2 * s * positive))) / 2
    unit = s * positive.sum()
    pair = (left / unit, C1 * s**2 * SQUARE / unit)
    return lines([pair], "amini2021, proof of Theorem 6")


def log_mgf(constant: float = 2.0) -> Pairs:
    """log E e^(s (Z - E Z)) over s^2 |A|_F^2 for |s| <= 1 / (4 |A|)."""
    pairs = []
    for s in np.linspace(-0.25, 0.25, 40):
        log = np.sum(-np.log1p(-2 * s * EIGENVALUES) / 2 - s * EIGENVALUES)
        pairs.append((float(log) / (s**2 * SQUARE), constant))
    return lines(pairs, "amini2021, proof of Theorem 6")


def thm6_mgf(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["corrected"],
        wrong("1/2 for 2", "wrong factor", constant=0.5),
        printed=printed_log_mgf,
        corrected=log_mgf,
        printed_settings=grids["printed"],
    )


def split_tails(m: float, s: float, multiple: float = 3.0) -> tuple[float, float]:
    """X = b + w with w = -m, 0 or m of variance one, A = 1: all three probabilities by the law of w."""
    b = 0.9 * s / m
    w = np.array([-m, 0.0, m])
    chances = np.array([0.5 / m**2, 1 - 1 / m**2, 0.5 / m**2])
    Y = w**2 - 1
    T = b * w
    left = chances @ (np.abs(Y + 2 * T) >= multiple * s)
    right = chances @ (np.abs(Y) >= s) + chances @ (np.abs(T) >= s)
    return log_of(float(left)), log_of(float(right))


def thm6_split() -> Check:
    settings = []
    for m in (1.5, 2.0, 4.0):
        numbers = {"m": m, "s": (m**2 - 1) / 0.9}
        settings.append(Setting(f"three values, m={m:g}", None, numbers))
    return check_of(
        Exact,
        tuple(settings),
        wrong("2.5 for 3", "wrong factor", multiple=2.5),
        printed=partial(split_tails, multiple=2.0),
        corrected=split_tails,
    )


V_SQUARED = 8 * (math.log(2) - 0.5)
"""The least v^2 with -s - log(1 - s) <= s^2 v^2 / 2 for |s| <= 1/2, for a centred exponential variable."""


def exponential_bound(*, t: float, as_printed: bool = False) -> Bound:
    """Return Lemma 5 for a centred exponential variable and alpha = 2."""
    return concentration.sub_exponential(
        t=t, v=math.sqrt(V_SQUARED), alpha=2.0, as_printed=as_printed
    )


def exponential_tail(value: float) -> float:
    """log P(|X| > value), X + 1 has the exponential law: log E exp(s X) = -s - log(1 - s)."""
    s = np.linspace(-0.5, 0.5, 1001)
    if not np.all(-s - np.log1p(-s) <= s**2 * V_SQUARED / 2 + 1e-12):
        raise ValueError("v is too small for the exponential law")
    return math.log(math.exp(-1 - value) + max(0.0, -math.expm1(value - 1)))


def thrice_exponent(*, t: float) -> Bound:
    """Return the bound with three times its exponent."""
    right = exponential_bound(t=t)
    exponent = math.log(2) - right.log_failure
    return replace(right, exponent=3 * exponent - math.log(2))


def lem5(grids: Grids) -> Check:
    statement = exceeds(exponential_tail)
    return check_of(
        statement,
        grids["both"],
        wrong("three times the exponent", "wrong factor", thrice_exponent),
        printed=partial(exponential_bound, as_printed=True),
        corrected=exponential_bound,
    )
