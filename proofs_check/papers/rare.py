"""Statements of all papers where they are used: at failure probabilities from e^-10 to e^-160, too small to count.

The other claims count violations, at delta = 0.05 and 0.01. Here the probability itself is estimated by tilted or
conditional sampling (`proofs_check.engine.tilting`), or computed where its law is known.

A probability 1 - delta has lost all digits of delta below 1e-16, so the log of delta comes from the formula in the
exponent; the bounds of `jaxkern.bounds` say whether the hypotheses hold, and give every value. Tests compare the two
where delta can still be seen.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import special, stats

from jaxkern.bounds import Bound, fourier, sketching
from proofs_check.claim import Check, Control, Exact, Form, Rare, Setting
from proofs_check.engine import tilting
from proofs_check.papers.shared import Scope

COPIES = 128
"""Frequencies or features: one number, so that all settings share their compiled trials."""

LOG2 = math.log(2.0)
UNIFORM = tilting.UniformCosine()

LogClaimed = Callable[[Setting], float]


def _sum(log_claimed: LogClaimed) -> Rare:
    return Rare(tilting.sum_estimate, log_claimed, tilting.log_ceiling)


def _claimed(right: Bound, log_delta: float, setting: Setting) -> float:
    """Return the log of the failure probability of a bound whose hypotheses hold, or raise ValueError."""
    if not right.valid:
        raise ValueError(f"the hypotheses of {right.source} do not hold at setting {setting.name!r}")
    return log_delta


# ------------------------------------------------------------------------------------------------------ kpotufe2020


def _lemma_b2(scope: Scope) -> Check:
    def probability(setting: Setting, *, formula: Callable[..., Bound], part: float = 1.0) -> tuple[float, float]:
        n, w, tau = (setting.numbers[k] for k in ("n", "w", "tau"))
        right = formula(kappa=1.0, trace=1.0, n=n, tau=tau)
        gap = part * right.value / math.sqrt(2)  # |Sigma_n - Sigma|_HS = sqrt(2) |share of the first atom - w|
        counts = np.arange(n + 1)
        outside = counts[np.abs(counts / n - w) >= gap]
        return float(special.logsumexp(stats.binom.logpmf(outside, n, w))), _claimed(right, LOG2 - tau, setting)

    def exact(formula: Callable[..., Bound], part: float = 1.0) -> Exact:
        return Exact(functools.partial(probability, formula=formula, part=part))

    settings = tuple(
        Setting(f"two orthogonal atoms, w={w:g}, n=1e4, tau={tau:g}", numbers={"n": 1e4, "w": w, "tau": tau})
        for w in (0.5, 0.02)
        for tau in scope.logs
    )
    return Check(
        printed=Form(exact(sketching.covariance_deviation), settings),
        corrected=Form(exact(sketching.covariance_deviation_bernstein), settings),
        controls=(
            Control(
                "half of Bernstein's bound",
                exact(sketching.covariance_deviation_bernstein, 0.5),
                tuple(s for s in settings if s.numbers["w"] == 0.5),
                kind="wrong factor",
            ),
        ),
    )


def _prop1(scope: Scope) -> Check:
    def probability(setting: Setting, *, constant: float) -> tuple[float, float]:
        d, tau = setting.numbers["d"], setting.numbers["tau"]
        right = sketching.projected_inner_products(op_norm=1.0, trace3=1.0, d=d, tau=tau, constant=constant)
        if right.value < 1:
            raise ValueError(f"the lower tail counts at setting {setting.name!r}")
        return tilting.log_chi_square_tail(int(d), d * (1 + right.value)), _claimed(right, -tau, setting)

    def places(taus: Sequence[float], factors: Sequence[int]) -> tuple[Setting, ...]:
        return tuple(
            Setting(f"one atom, tau={tau:g}, d={f * tau:g}", numbers={"tau": tau, "d": f * tau})
            for tau in taus
            for f in factors
        )

    C = sketching.KOLTCHINSKII_LOUNICI
    return Check(
        corrected=Form(Exact(functools.partial(probability, constant=C)), places((*scope.logs, 160.0), (1, 4))),
        controls=(
            Control(
                "C = 3",
                Exact(functools.partial(probability, constant=3.0)),
                places((400.0,), (1,)),
                kind="wrong factor",
            ),
        ),
    )


def _prop1_all_d(scope: Scope) -> Check:
    def places(taus: Sequence[float], seconds: Sequence[float], part: float = 1.0) -> tuple[Setting, ...]:
        """Return settings with Sigma^3 = diag(1, q) and two rows; `part` multiplies the tau of the threshold.

        |Theta' Theta - Sigma^3| >= x > 1 can only come from above: Theta' Theta - Sigma^3 - x has an eigenvalue that
        is not negative, and so C G' G C one of at least d, C^2 = Sigma^3 (Sigma^3 + x)^-1.
        """
        settings = []
        for tau in taus:
            for q in seconds:
                cubed = np.array([1.0, q])
                x = _explicit(q, part * tau).value
                name = f"Sigma^3 = diag(1, {q:g}), d=2, tau={tau:g}" + (f" with {part:g} tau" if part != 1 else "")
                scales = np.sqrt(cubed / (cubed + x))
                settings.append(tilting.radial(name, scales, rows=2, level=2.0, numbers={"q": q, "tau": tau}))
        return tuple(settings)

    def log_claimed(setting: Setting) -> float:
        q, tau = setting.numbers["q"], setting.numbers["tau"]
        return _claimed(_explicit(q, tau), LOG2 - tau, setting)

    statement = Rare(tilting.radial_estimate, log_claimed, tilting.log_ceiling)
    return Check(
        corrected=Form(statement, places(sorted({*scope.logs, 80.0}), (1.0, 0.5))),
        controls=(Control("tau for 2 tau", statement, places((80.0, 120.0), (1.0,), 0.5), kind="wrong factor"),),
    )


def _explicit(q: float, tau: float) -> Bound:
    return sketching.projected_inner_products_all_d(op_norm=1.0, trace3=1.0 + q, d=2.0, tau=tau)


# ----------------------------------------------------------------------------------------------------- ghashami2016


def _deviations(logs: Sequence[float], rate: float) -> tuple[Setting, ...]:
    """Return settings for |mean cos U_i| >= eps: the deviation of a quadratic form for copies of a point."""
    settings = []
    for log in logs:
        eps = math.sqrt((log + LOG2) / (COPIES * rate))
        name = f"copies of a point, eps={eps:.3g}, delta=e^-{log:g}, m={COPIES}"
        numbers = {"eps": eps, "m": float(COPIES)}
        settings.append(tilting.sums(name, UNIFORM, copies=COPIES, above=eps, below=-eps, numbers=numbers))
    return tuple(settings)


def _form(setting: Setting, *, rate: float, as_printed: bool = False) -> float:
    eps, m = setting.numbers["eps"], setting.numbers["m"]
    right = fourier.quadratic_form_shifted(eps=eps, num_features=m, as_printed=as_printed)
    return _claimed(right, LOG2 - rate * eps**2 * m, setting)


def _theorem_3_1(scope: Scope) -> Check:
    settings = _deviations([log for log in scope.logs if log <= 40], 0.5)
    return Check(
        printed=Form(_sum(functools.partial(_form, rate=2.0, as_printed=True)), _deviations(scope.logs, 2.0)),
        corrected=Form(_sum(functools.partial(_form, rate=0.5)), settings),
        controls=(
            Control(
                "three times the exponent", _sum(functools.partial(_form, rate=1.5)), settings, kind="wrong factor"
            ),
        ),
    )


def _copies(scope: Scope) -> Check:
    settings = _deviations(scope.logs, 1.0)
    smaller = tuple(s for s in settings if s.numbers["eps"] < 0.6)[-1:]
    return Check(
        corrected=Form(_sum(functools.partial(_form, rate=1.0)), settings),
        controls=(
            Control(
                "one and a half times the exponent",
                _sum(functools.partial(_form, rate=1.5)),
                smaller,
                kind="wrong factor",
            ),
        ),
    )
