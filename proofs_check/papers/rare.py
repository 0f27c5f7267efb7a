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
from scipy import optimize, special, stats

from jaxkern.bounds import Bound, fourier, sketching
from proofs_check.claim import Check, Control, Exact, Form, Rare, Setting
from proofs_check.engine import tilting
from proofs_check.papers.shared import Scope

COPIES = 128
"""Frequencies or features: one number, so that all settings share their compiled trials."""

MANY_COPIES = 384
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


# --------------------------------------------------------------------------------------------------------- chen2016


def _kernel_values(
    distances: Sequence[float], logs: Sequence[float], rate: Callable[[float], float], copies: int = COPIES
) -> tuple[Setting, ...]:
    """Return settings for |Khat - K| >= eps, with the eps at which 2 exp(-t rate(r) eps^2) is e^-log."""
    settings = []
    for r in distances:
        law = tilting.FourierPair(r)
        for log in logs:
            eps = math.sqrt((log + LOG2) / (copies * rate(r)))
            name = f"r={r:g}, eps={eps:.3g}, delta=e^-{log:g}, t={copies}"
            numbers = {"r": r, "eps": eps, "t": float(copies)}
            below, above = 1 - eps / law.mu, 1 + eps / law.mu
            settings.append(tilting.sums(name, law, copies=copies, above=above, below=below, numbers=numbers))
    return tuple(settings)


def _hoeffding(setting: Setting, *, rate: float, as_printed: bool = False) -> float:
    eps, t = setting.numbers["eps"], setting.numbers["t"]
    right = fourier.kernel_value(eps=eps, num_frequencies=t, as_printed=as_printed)
    return _claimed(right, LOG2 - t * eps**2 * rate, setting)


def _corollary_2_2(scope: Scope) -> Check:
    corrected = _kernel_values((1.0, 3.0), [log for log in scope.logs if log <= 40], lambda r: 0.5)
    return Check(
        printed=Form(
            _sum(functools.partial(_hoeffding, rate=1 / 8, as_printed=True)),
            _kernel_values((1.0, 3.0), (10.0,), lambda r: 1 / 8, MANY_COPIES),
        ),
        corrected=Form(_sum(functools.partial(_hoeffding, rate=1 / 2)), corrected),
        controls=(
            Control(
                "Hoeffding's exponent for terms in an interval of length 1",
                _sum(functools.partial(_hoeffding, rate=2.0)),
                corrected[len(corrected) // 2 :],
                kind="wrong factor",
            ),
        ),
    )


def _kernel_value_near(scope: Scope) -> Check:
    def rate(r: float) -> float:
        return 1 / (-2 * math.expm1(-(r**2)))

    def own_variance(r: float) -> float:
        return 1 / math.expm1(-(r**2)) ** 2  # 1 / (2 Var cos(r g))

    def log_claimed(setting: Setting, *, rate: Callable[[float], float]) -> float:
        return LOG2 - setting.numbers["t"] * setting.numbers["eps"] ** 2 * rate(setting.numbers["r"])

    settings = _kernel_values((0.3, 1.0), scope.logs, rate)
    return Check(
        corrected=Form(_sum(functools.partial(log_claimed, rate=rate)), settings),
        controls=(
            Control(
                "the variance of the cosine for the bound of the bracket",
                _sum(functools.partial(log_claimed, rate=own_variance)),
                _kernel_values((0.3,), scope.logs, own_variance),
                kind="wrong factor",
            ),
        ),
    )


def _chi_square_outside(t: float, low: float, high: float) -> float:
    return float(np.logaddexp(stats.chi2.logsf(t * high, t), stats.chi2.logcdf(t * low, t)))


def _chernoff(t: float, *levels: float) -> float:
    return float(special.logsumexp([-t * (x - 1 - math.log(x)) / 2 for x in levels]))


def _lemma_3_2(scope: Scope) -> Check:
    def printed(setting: Setting) -> tuple[float, float]:
        t, eps = setting.numbers["t"], setting.numbers["eps"]
        right = fourier.chi_square_mean(eps=eps, num_frequencies=t, as_printed=True)
        return _chi_square_outside(t, 1 - eps, 1 + eps), _claimed(right, LOG2 - t * eps**2 / 8, setting)

    def corrected(setting: Setting, *, times: float = 1.0) -> tuple[float, float]:
        t, eps = setting.numbers["t"], setting.numbers["eps"]
        right = fourier.chi_square_mean(eps=eps, num_frequencies=t)
        log_delta = _chernoff(times * t, 1 + eps, 1 - eps)
        return _chi_square_outside(t, 1 - eps, 1 + eps), _claimed(right, log_delta, setting)

    def places(log_failure: Callable[[float, float], float]) -> tuple[Setting, ...]:
        settings = []
        for eps in (0.1, 0.5, 0.9):
            for log in scope.logs:
                root = optimize.brentq(lambda t, eps=eps, log=log: log_failure(t, eps) + log, 1.0, 1e6)
                t = float(math.ceil(root))
                settings.append(Setting(f"eps={eps:g}, delta=e^-{log:g}, t={t:g}", numbers={"t": t, "eps": eps}))
        return tuple(settings)

    exact = places(lambda t, eps: _chernoff(t, 1 + eps, 1 - eps))
    return Check(
        printed=Form(Exact(printed), places(lambda t, eps: LOG2 - t * eps**2 / 8)),
        corrected=Form(Exact(corrected), exact),
        controls=(
            Control(
                "half of the frequencies", Exact(functools.partial(corrected, times=2)), exact, kind="wrong factor"
            ),
        ),
    )


def _ratios(
    distances: Sequence[float], logs: Sequence[float], log_failure: Callable[[float, float], float]
) -> tuple[Setting, ...]:
    """Return settings for |Dhat / D - 1| >= eps, with the eps < 1 at which log_failure(eps, r) is -log."""
    settings = []
    for r in distances:
        for log in logs:
            if log_failure(0.999, r) > -log:
                continue
            eps = float(optimize.brentq(lambda eps, r=r, log=log: log_failure(eps, r) + log, 1e-3, 0.999))
            name = f"r={r:g}, eps={eps:.3g}, delta=e^-{log:g}, t={COPIES}"
            numbers = {"r": r, "eps": eps, "t": float(COPIES)}
            above, below = (1 + eps) ** 2, (1 - eps) ** 2
            law = tilting.FourierPair(r)
            settings.append(tilting.sums(name, law, copies=COPIES, above=above, below=below, numbers=numbers))
    return tuple(settings)


def _near_printed(eps: float, r: float) -> float:
    return LOG2 - COPIES * eps**2 * (-2 * math.expm1(-(r**2) / 2) / r**2) ** 2 / 6


def _near_corrected(eps: float, r: float) -> float:
    return _chernoff(COPIES, (1 + eps) ** 2, (1 - eps) ** 2)


def _lemma_4_2(scope: Scope) -> Check:
    def log_claimed(setting: Setting, *, as_printed: bool = False, times: float = 1.0) -> float:
        r, eps, t = (setting.numbers[k] for k in ("r", "eps", "t"))
        right = fourier.near_distance(eps=eps, num_frequencies=t, distance=r, as_printed=as_printed)
        log_delta = _near_printed(eps, r) if as_printed else _near_corrected(eps, r)
        return _claimed(right, times * log_delta, setting)

    settings = _ratios((0.3, 1.0), scope.logs, _near_corrected)
    return Check(
        printed=Form(
            _sum(functools.partial(log_claimed, as_printed=True)), _ratios((0.3, 1.0), scope.logs, _near_printed)
        ),
        corrected=Form(_sum(log_claimed), settings),
        controls=(
            Control(
                "twice the exponent", _sum(functools.partial(log_claimed, times=2.0)), settings, kind="wrong factor"
            ),
        ),
    )


def _sharp(eps: float, *, scaled: bool = True) -> float:
    """Return the log of the failure probability of `fourier.relative_distances_sharp` for two points."""
    half, u, v = COPIES / 2, (1 + eps) ** 2, (1 - eps) ** 2
    above, below = max(u - 2 * u / (COPIES * (u - 1)), 0.0), v + 2 * v / (COPIES * (1 - v))
    upper = special.gammaincc(half + 1, half * above) - above * special.gammaincc(half, half * above)
    lower = below * special.gammainc(half, half * below) - special.gammainc(half + 1, half * below)
    return math.log(upper / (u - above) + lower / (below - v) if scaled else upper + lower)


def _relative_distances(scope: Scope) -> Check:
    def log_claimed(setting: Setting, *, scaled: bool = True) -> float:
        eps, t = setting.numbers["eps"], setting.numbers["t"]
        right = fourier.relative_distances_sharp(eps=eps, num_frequencies=t, num_points=2.0)
        return _claimed(right, _sharp(eps, scaled=scaled), setting)

    def places(r: float) -> tuple[Setting, ...]:
        return _ratios((r,), scope.logs, lambda eps, r: _sharp(eps))

    return Check(
        corrected=Form(_sum(log_claimed), places(0.3)),
        controls=(
            Control(
                "stop-loss means that are not divided by u - c",
                _sum(functools.partial(log_claimed, scaled=False)),
                places(0.3),
                kind="missing normalisation",
            ),
        ),
    )


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
