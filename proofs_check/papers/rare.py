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
from proofs_check.claim import Claim, Control, Exact, Form, Rare, Setting
from proofs_check.engine import tilting

COPIES = 128
"""Frequencies or features: one number, so that all settings share their compiled trials."""

MANY_COPIES = 384
LOG2 = math.log(2.0)
UNIFORM = tilting.UniformCosine()

LogClaimed = Callable[[Setting], float]


def claims(*, full: bool = False) -> list[Claim]:
    """Return the claims about very small probabilities, in the order of the papers."""
    logs = (10.0, 20.0, 40.0, 80.0) if full else (10.0, 40.0)
    return [
        _lemma_b2(logs),
        _prop1(logs),
        _prop1_all_d(logs),
        _corollary_2_2(logs),
        _kernel_value_near(logs),
        _lemma_3_2(logs),
        _lemma_4_2(logs),
        _relative_distances(logs),
        _theorem_3_1(logs),
        _copies(logs),
    ]


def _sum(log_claimed: LogClaimed) -> Rare:
    return Rare(tilting.sum_estimate, log_claimed, tilting.log_ceiling)


def _claimed(right: Bound, log_delta: float, setting: Setting) -> float:
    """Return the log of the failure probability of a bound whose hypotheses hold, or raise ValueError."""
    if not right.valid:
        raise ValueError(f"the hypotheses of {right.source} do not hold at setting {setting.name!r}")
    return log_delta


# ------------------------------------------------------------------------------------------------------ kpotufe2020


def _lemma_b2(logs: Sequence[float]) -> Claim:
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
        for tau in logs
    )
    return Claim(
        id="kpotufe2020:lemB.2-rare",
        paper="kpotufe2020",
        where="Lemma B.2, tiny delta",
        kind="tail bound",
        tex=r"\|\Sigma_n-\Sigma\|_{HS}<4\sqrt{\frac{2\kappa\operatorname{tr}(\Sigma)\tau}{n}}"
        r"\quad\text{w.p. }1-2e^{-\tau},\ \tau\ge10",
        because="True. For two orthogonal atoms the deviation is sqrt(2) times that of a binomial share, whose law is "
        "summed in logs. Bernstein's inequality before it is simplified has a quarter of the leading term.",
        printed=Form(exact(sketching.covariance_deviation), settings, "certified"),
        corrected=Form(
            exact(sketching.covariance_deviation_bernstein),
            settings,
            "certified",
            r"\|\Sigma_n-\Sigma\|_{HS}\le\sqrt{2\kappa\operatorname{tr}(\Sigma)\tau/n}+4\kappa\tau/n",
        ),
        controls=(
            Control(
                "half of Bernstein's bound",
                exact(sketching.covariance_deviation_bernstein, 0.5),
                tuple(s for s in settings if s.numbers["w"] == 0.5),
                kind="wrong factor",
            ),
        ),
        hypotheses=r"$n\ge8\kappa\tau/(9\operatorname{tr}\Sigma)$; as corrected $n\ge1$.",
    )


def _prop1(logs: Sequence[float]) -> Claim:
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
    return Claim(
        id="kpotufe2020:prop1-rare",
        paper="kpotufe2020",
        where="Proposition 1, tiny delta",
        kind="tail bound",
        tex=r"\|\Theta^*\Theta-\Sigma^3\|\le C\|\Sigma\|^3\frac{\sqrt{s_3}+\sqrt\tau}{\sqrt d}"
        r"\quad\text{w.p. }1-e^{-\tau},\ \tau\ge10",
        because="With C = 5.92 it holds. For a constant kernel the deviation is |chi2_d / d - 1|, whose tail is known; "
        "at tau = d = 400 it shows that no C of 3 or less will do, which is not seen at a tau that can be counted.",
        corrected=Form(
            Exact(functools.partial(probability, constant=C)), places((*logs, 160.0), (1, 4)), "certified", "C = 5.92"
        ),
        controls=(
            Control(
                "C = 3",
                Exact(functools.partial(probability, constant=3.0)),
                places((400.0,), (1,)),
                kind="wrong factor",
            ),
        ),
        hypotheses=r"$\tau\ge1$ and $d\ge s_3\vee\tau$.",
    )


def _prop1_all_d(logs: Sequence[float]) -> Claim:
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
    return Claim(
        id="jaxkern:prop1-explicit-rare",
        paper="kpotufe2020",
        where="after Proposition 1 (ours), tiny delta",
        kind="tail bound",
        tex=r"\|\Theta^*\Theta-\Sigma^3\|\le\|\Sigma\|^3(2D+D^2),\ "
        r"D=\frac{\sqrt{s_3}+.51+\sqrt{2\tau}}{\sqrt d}\quad\text{w.p. }1-2e^{-\tau},\ \tau\ge10",
        because="Theorem A holds for every tau. Two rows in two dimensions: given the direction of the Gaussian matrix "
        "the probability is a tail of chi-square with four degrees of freedom.",
        corrected=Form(statement, places(sorted({*logs, 80.0}), (1.0, 0.5)), "certified"),
        controls=(Control("tau for 2 tau", statement, places((80.0, 120.0), (1.0,), 0.5), kind="wrong factor"),),
        hypotheses=r"$d\ge1$ and $\tau>0$.",
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


def _corollary_2_2(logs: Sequence[float]) -> Claim:
    corrected = _kernel_values((1.0, 3.0), [log for log in logs if log <= 40], lambda r: 0.5)
    return Claim(
        id="chen2016:cor2.2-rare",
        paper="chen2016",
        where="Corollary 2.2, tiny delta",
        kind="tail bound",
        tex=r"|K(x,y)-\langle\hat\phi(x),\hat\phi(y)\rangle|\le\varepsilon\text{ w.p. }1-\delta,\ "
        r"t=\tfrac8{\varepsilon^2}\ln\tfrac2\delta,\ \delta\le e^{-10}",
        because="True. A cosine has at most half of the variance that Hoeffding's inequality allows for terms in "
        "[-1, 1], which at tiny delta is a factor of two in the exponent.",
        printed=Form(
            _sum(functools.partial(_hoeffding, rate=1 / 8, as_printed=True)),
            _kernel_values((1.0, 3.0), (10.0,), lambda r: 1 / 8, MANY_COPIES),
            "certified",
        ),
        corrected=Form(
            _sum(functools.partial(_hoeffding, rate=1 / 2)),
            corrected,
            "certified",
            r"t=\tfrac2{\varepsilon^2}\ln\tfrac2\delta",
        ),
        controls=(
            Control(
                "Hoeffding's exponent for terms in an interval of length 1",
                _sum(functools.partial(_hoeffding, rate=2.0)),
                corrected[len(corrected) // 2 :],
                kind="wrong factor",
            ),
        ),
        hypotheses=r"$\varepsilon>0$; as printed $\varepsilon<1/2$.",
    )


def _kernel_value_near(logs: Sequence[float]) -> Claim:
    def rate(r: float) -> float:
        return 1 / (-2 * math.expm1(-(r**2)))

    def own_variance(r: float) -> float:
        return 1 / math.expm1(-(r**2)) ** 2  # 1 / (2 Var cos(r g))

    def log_claimed(setting: Setting, *, rate: Callable[[float], float]) -> float:
        return LOG2 - setting.numbers["t"] * setting.numbers["eps"] ** 2 * rate(setting.numbers["r"])

    settings = _kernel_values((0.3, 1.0), logs, rate)
    return Claim(
        id="jaxkern:kernel-value-near",
        paper="chen2016",
        where="after Corollary 2.2 (ours)",
        kind="tail bound",
        tex=r"|K-\hat K|\le\varepsilon\text{ w.p. }1-\delta,\ t=\tfrac{2(1-K^2)}{\varepsilon^2}\ln\tfrac2\delta",
        because="Let B be a Brownian motion and T = r^2. N_s = exp((s - T) / 2) cos(B_s) is a martingale that starts "
        "in K and ends in cos(B_T), which has the law of cos(r g); its bracket is at most the integral of exp(s - T) "
        "over [0, T], 1 - K^2. So cos(r g) - K is sub-Gaussian with that parameter; Hoeffding's inequality has 1.",
        corrected=Form(_sum(functools.partial(log_claimed, rate=rate)), settings, "certified"),
        controls=(
            Control(
                "the variance of the cosine for the bound of the bracket",
                _sum(functools.partial(log_claimed, rate=own_variance)),
                _kernel_values((0.3,), logs, own_variance),
                kind="wrong factor",
            ),
        ),
        hypotheses=r"$K=e^{-r^2/2}$, the Gaussian kernel at distance $r$; any $\varepsilon>0$.",
    )


def _chi_square_outside(t: float, low: float, high: float) -> float:
    return float(np.logaddexp(stats.chi2.logsf(t * high, t), stats.chi2.logcdf(t * low, t)))


def _chernoff(t: float, *levels: float) -> float:
    return float(special.logsumexp([-t * (x - 1 - math.log(x)) / 2 for x in levels]))


def _lemma_3_2(logs: Sequence[float]) -> Claim:
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
            for log in logs:
                root = optimize.brentq(lambda t, eps=eps, log=log: log_failure(t, eps) + log, 1.0, 1e6)
                t = float(math.ceil(root))
                settings.append(Setting(f"eps={eps:g}, delta=e^-{log:g}, t={t:g}", numbers={"t": t, "eps": eps}))
        return tuple(settings)

    exact = places(lambda t, eps: _chernoff(t, 1 + eps, 1 - eps))
    return Claim(
        id="chen2016:lem3.2-rare",
        paper="chen2016",
        where="Lemma 3.2, tiny delta",
        kind="tail bound",
        tex=r"\Pr\bigl[\tfrac1t\sum_i\omega_{i,\Delta}^2\notin[1-\varepsilon,1+\varepsilon]\bigr]\le\delta,\ "
        r"t\ge8\varepsilon^{-2}\ln\tfrac2\delta,\ \delta\le e^{-10}",
        because="True; the law is chi-square. With the exact exponents a factor like 1 / sqrt(log(1 / delta)) is left.",
        printed=Form(Exact(printed), places(lambda t, eps: LOG2 - t * eps**2 / 8), "certified"),
        corrected=Form(
            Exact(corrected),
            exact,
            "certified",
            r"e^{-t(\varepsilon-\ln(1+\varepsilon))/2}+e^{-t(-\varepsilon-\ln(1-\varepsilon))/2}\le\delta",
        ),
        controls=(
            Control(
                "half of the frequencies", Exact(functools.partial(corrected, times=2)), exact, kind="wrong factor"
            ),
        ),
        hypotheses=r"$0<\varepsilon<1$.",
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


def _lemma_4_2(logs: Sequence[float]) -> Claim:
    def log_claimed(setting: Setting, *, as_printed: bool = False, times: float = 1.0) -> float:
        r, eps, t = (setting.numbers[k] for k in ("r", "eps", "t"))
        right = fourier.near_distance(eps=eps, num_frequencies=t, distance=r, as_printed=as_printed)
        log_delta = _near_printed(eps, r) if as_printed else _near_corrected(eps, r)
        return _claimed(right, times * log_delta, setting)

    settings = _ratios((0.3, 1.0), logs, _near_corrected)
    return Claim(
        id="chen2016:lem4.2-rare",
        paper="chen2016",
        where="Lemma 4.2, tiny delta",
        kind="tail bound",
        tex=r"\|x-y\|\le\sigma\ \Rightarrow\ \frac{D_{\hat K}}{D_K}\in[1-\varepsilon,1+\varepsilon]"
        r"\text{ w.p. }1-2e^{-t\varepsilon^2D_K^4/(6\|x-y\|^4)},\ \delta\le e^{-10}",
        because="True, though its proof rests on Lemma 4.1, which is false just where tails are far: the law is nearly "
        "chi-square there, and its exponent is what the corrected form has.",
        printed=Form(
            _sum(functools.partial(log_claimed, as_printed=True)),
            _ratios((0.3, 1.0), logs, _near_printed),
            "certified",
        ),
        corrected=Form(
            _sum(log_claimed),
            settings,
            "certified",
            r"e^{-t(u-1-\ln u)/2}+e^{-t(v-1-\ln v)/2}\le\delta,\ u=(1+\varepsilon)^2,\ v=(1-\varepsilon)^2",
        ),
        controls=(
            Control(
                "twice the exponent", _sum(functools.partial(log_claimed, times=2.0)), settings, kind="wrong factor"
            ),
        ),
        hypotheses=r"$0<\varepsilon<1$, and $\|x-y\|\le\sigma$ as printed.",
    )


def _sharp(eps: float, *, scaled: bool = True) -> float:
    """Return the log of the failure probability of `fourier.relative_distances_sharp` for two points."""
    half, u, v = COPIES / 2, (1 + eps) ** 2, (1 - eps) ** 2
    above, below = max(u - 2 * u / (COPIES * (u - 1)), 0.0), v + 2 * v / (COPIES * (1 - v))
    upper = special.gammaincc(half + 1, half * above) - above * special.gammaincc(half, half * above)
    lower = below * special.gammainc(half, half * below) - special.gammainc(half + 1, half * below)
    return math.log(upper / (u - above) + lower / (below - v) if scaled else upper + lower)


def _relative_distances(logs: Sequence[float]) -> Claim:
    def log_claimed(setting: Setting, *, scaled: bool = True) -> float:
        eps, t = setting.numbers["eps"], setting.numbers["t"]
        right = fourier.relative_distances_sharp(eps=eps, num_frequencies=t, num_points=2.0)
        return _claimed(right, _sharp(eps, scaled=scaled), setting)

    def places(r: float) -> tuple[Setting, ...]:
        return _ratios((r,), logs, lambda eps, r: _sharp(eps))

    return Claim(
        id="jaxkern:relative-distances-rare",
        paper="chen2016",
        where="Theorem B for a pair (ours), tiny delta",
        kind="tail bound",
        tex=r"\Pr\bigl[|D_{\hat K}/D_K-1|\ge\varepsilon\bigr]"
        r"\le\tfrac{\mathbb E(Y-c)_+}{u-c}+\tfrac{\mathbb E(c'-Y)_+}{c'-v},\ Y=\chi^2_t/t",
        because="Stop-loss means lose a factor of about e to the tail of chi-square, whatever delta is. Chernoff's "
        "bound loses sqrt(4 pi log(1 / delta)) and cannot certify it; estimates within a small factor can.",
        corrected=Form(_sum(log_claimed), places(0.3), "certified"),
        controls=(
            Control(
                "stop-loss means that are not divided by u - c",
                _sum(functools.partial(log_claimed, scaled=False)),
                places(0.3),
                kind="missing normalisation",
            ),
        ),
        hypotheses=r"$10^{-4}\le\varepsilon<1$; any distance.",
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


def _theorem_3_1(logs: Sequence[float]) -> Claim:
    settings = _deviations([log for log in logs if log <= 40], 0.5)
    return Claim(
        id="ghashami2016:thm3.1-rare",
        paper="ghashami2016",
        where="Theorem 3.1, tiny delta",
        kind="tail bound",
        tex=r"\bigl|\|\Phi^{\top}x\|^2-\|Z^{\top}x\|^2\bigr|\le\epsilon n\text{ w.p. }1-2e^{-2\epsilon^2m},\ "
        r"\delta\le e^{-10}",
        because="For n copies of a point the deviation is |mean cos U_i|, whose exponent is eps^2 m for small eps: "
        "half of the printed one, which is off by about 1 / sqrt(delta), and twice the corrected one.",
        printed=Form(_sum(functools.partial(_form, rate=2.0, as_printed=True)), _deviations(logs, 2.0), "refuted"),
        corrected=Form(
            _sum(functools.partial(_form, rate=0.5)),
            settings,
            "certified",
            r"m=\tfrac2{\epsilon^2}\ln\tfrac2\delta",
        ),
        controls=(
            Control(
                "three times the exponent", _sum(functools.partial(_form, rate=1.5)), settings, kind="wrong factor"
            ),
        ),
        hypotheses=r"One fixed unit vector $x$; $K(0)=1$; shifted features.",
    )


def _copies(logs: Sequence[float]) -> Claim:
    settings = _deviations(logs, 1.0)
    smaller = tuple(s for s in settings if s.numbers["eps"] < 0.6)[-1:]
    return Claim(
        id="jaxkern:quadratic-form-copies",
        paper="ghashami2016",
        where="after Theorem 3.1 (ours)",
        kind="tail bound",
        tex=r"x_1=\dots=x_n\ \Rightarrow\ \bigl|\|\Phi^{\top}x\|^2-\|Z^{\top}x\|^2\bigr|\le\epsilon n"
        r"\text{ w.p. }1-2e^{-\epsilon^2m}",
        because="I_0(s) = sum (s^2 / 4)^k / k!^2 <= exp(s^2 / 4), and Chernoff's bound: where all points are equal "
        "half of the features of Theorem 3.1 are enough.",
        corrected=Form(_sum(functools.partial(_form, rate=1.0)), settings, "certified"),
        controls=(
            Control(
                "one and a half times the exponent",
                _sum(functools.partial(_form, rate=1.5)),
                smaller,
                kind="wrong factor",
            ),
        ),
        hypotheses=r"Copies of one point; $K(0)=1$; shifted features.",
    )
