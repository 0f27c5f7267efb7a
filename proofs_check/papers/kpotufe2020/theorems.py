"""kpotufe2020, the probabilistic statements: deviations of Sigma_n, of the sketch, and their limits.

Population quantities are exact; a sample enters through multinomial counts, and the sketch given the sample through its
Gaussian law N(0, Sigma_n^3). `docs/theory/kpotufe2020.md` derives every correction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from scipy import stats

from jaxkern.bounds import Bound, sketching
from proofs_check import controls
from proofs_check.claim import Calibrated, Check, Control, Exact, Form, Law, Rate, Setting, Tail
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.deviation import for_every_n
from proofs_check.papers.kpotufe2020.places import (
    Scope,
    enough_d,
    fixed,
    lemma_n,
    rough,
    safe_d,
    small_n,
    theorem_n,
    times,
)
from proofs_check.papers.populations import Population

PAPER = "kpotufe2020"
C = sketching.KOLTCHINSKII_LOUNICI
REUSED = "reused key"
POWER = "wrong power"


def _repeated(
    scope: Scope,
    n: Callable[[Population, float], float] | None = None,
    people: Sequence[Population] | None = None,
) -> tuple[Setting, ...]:
    """Return settings with 1024 rows that are all the same one."""
    wide = scope.at(n, d=fixed(1024), rows=fixed(1024), people=people or rough(scope))
    return controls.one_draw(wide)


def _prop1(scope: Scope) -> Check:
    settings = scope.at(None, d=enough_d, rows=enough_d)
    names = ("op_norm", "trace3", "d", "tau")
    bound = scope.bound(sketching.projected_inner_products, *names)
    return Check(
        printed=Form(
            Calibrated(
                trials.projection,
                scope.bound(sketching.projected_inner_products, *names, constant=1.0),
                sketching.KOLTCHINSKII_LOUNICI_LOWER,
                C,
            ),
            settings,
        ),
        corrected=Form(Tail(trials.projection, bound), settings),
        controls=(
            Control("one direction repeated 1024 times", Tail(trials.projection, bound), _repeated(scope), REUSED),
        ),
    )


def _prop1_all_d(scope: Scope) -> Check:
    bound = scope.bound(sketching.projected_inner_products_all_d, "op_norm", "trace3", "d", "tau")
    return Check(
        corrected=Form(
            Tail(trials.projection, bound),
            scope.at(None, d=fixed(1), rows=fixed(1)) + scope.at(None, d=enough_d, rows=enough_d),
        ),
        controls=(
            Control("one direction repeated 1024 times", Tail(trials.projection, bound), _repeated(scope), REUSED),
        ),
    )


def _chi_square_violation(setting: Setting) -> tuple[float, float]:
    """Return the log-probability that the printed Theorem 1 fails, and the log of the failure it allows.

    Orthogonal atoms of equal weight, one of them for the constant kernel: with d = 1 the deviation is
    S^3 (chi2_p - 1), exactly for p = 1 and in the limit of large n otherwise.
    """
    p, tau, constant = (setting.numbers[k] for k in ("p", "tau", "C"))
    n_term = 28 * math.sqrt(2 / 6272) / p**2
    threshold = 1 + 3 * constant * (math.sqrt(2 * p) + math.sqrt(tau)) + n_term
    # The tail of chi2_1 is that of a normal variable, whose logarithm is known far beyond what underflows.
    tail = math.log(2) + stats.norm.logsf(math.sqrt(threshold)) if p == 1 else stats.chi2.logsf(threshold, p)
    return float(tail), math.log(5) - tau


def _thm1(scope: Scope) -> Check:
    names = ("kappa", "op_norm", "trace", "trace3", "n", "d", "tau")
    bound = scope.bound(sketching.inner_products, *names)
    printed = [
        Setting(f"one atom, d=1, C={c:g}, tau={tau:g}", numbers={"p": 1.0, "tau": tau, "C": c})
        for c in (1.0, 3.505, C, 100.0)
        for tau in (math.ceil((3 * c) ** 2) + 12.0,)
    ]
    printed += [
        Setting(f"{p:g} orthogonal atoms, d=1, n large, C={C}, tau=3", numbers={"p": p, "tau": 3.0, "C": C})
        for p in (1e4, 1e6)
    ]
    wide = scope.at(times(100, theorem_n), d=fixed(1024), rows=fixed(1024), people=rough(scope), target=2)
    return Check(
        printed=Form(Exact(_chi_square_violation), tuple(printed)),
        corrected=Form(
            Tail(trials.sketch, bound),
            scope.at(theorem_n, d=enough_d, rows=enough_d)
            + scope.at(times(1e4, theorem_n), d=enough_d, rows=enough_d, people=rough(scope)),
        ),
        controls=(Control("Sigma^2 in place of Sigma^3", Tail(trials.sketch, bound), wide, POWER),),
    )


def _thm1_all_d(scope: Scope) -> Check:
    names = ("kappa", "op_norm", "trace", "trace3", "hs_norm", "n", "d", "tau")
    bound = scope.bound(sketching.inner_products_all_d, *names)
    return Check(
        corrected=Form(
            Tail(trials.sketch, bound),
            scope.at(small_n, d=fixed(1), rows=fixed(1)) + scope.at(times(1e4, small_n), d=enough_d, rows=enough_d),
        ),
        controls=(
            Control(
                "Sigma^2 in place of Sigma^3",
                Tail(trials.sketch, bound),
                scope.at(times(1e6, small_n), d=fixed(1024), rows=fixed(1024), people=rough(scope), target=2),
                POWER,
            ),
        ),
    )


def _eq7(scope: Scope) -> Check:
    bound = scope.bound(sketching.cube_deviation, "kappa", "op_norm", "trace", "n", "tau")
    settings = scope.at(small_n) + scope.at(times(1e5, small_n))
    return Check(
        printed=Form(Tail(trials.cube_deviation, bound, scope.ceiling(3)), settings),
        controls=(
            Control(
                "Sigma^2 in place of Sigma^3",
                Tail(trials.cube_deviation, bound),
                scope.at(times(1e5, small_n), people=rough(scope), target=2),
                POWER,
            ),
        ),
    )


def _eq8(scope: Scope) -> Check:
    names = ("kappa", "op_norm", "trace", "trace3", "hs_norm", "n", "tau")
    printed = scope.bound(sketching.cube_trace, *names, as_printed=True)
    bound = scope.bound(sketching.cube_trace, *names)
    settings = scope.at(small_n) + scope.at(times(1e5, small_n))

    def without_term(setting: Setting) -> Bound:
        b = bound(setting)
        return Bound(scope.person(setting).trace3, b.probability, b.valid, b.source)

    return Check(
        printed=Form(Tail(trials.cube_trace, printed, scope.ceiling(3)), settings),
        corrected=Form(Tail(trials.cube_trace, bound, scope.ceiling(3)), settings),
        controls=(
            Control(
                "without the deviation term",
                Tail(trials.cube_trace, without_term),
                scope.at(small_n, people=rough(scope)),
                "term left out",
            ),
        ),
    )


def _thm2(scope: Scope) -> Check:
    names = ("kappa", "op_norm", "trace", "n", "d", "tau")
    printed = scope.bound(sketching.weak_difference, *names, as_printed=True)
    coupled = scope.bound(sketching.weak_difference_coupled, *names)

    def printed_n(p: Population, tau: float) -> float:
        return p.kappa * p.rank * tau * max(32 / p.op_norm, 1.0)

    wide = scope.at(printed_n, d=fixed(10**6), people=rough(scope))
    far = scope.at(times(1e8, small_n), d=fixed(10), people=rough(scope))
    return Check(
        printed=Form(Tail(trials.weak_difference, printed), scope.at(printed_n, d=fixed(10))),
        corrected=Form(
            Tail(trials.weak_difference_coupled, coupled),
            scope.at(small_n, d=fixed(10)) + scope.at(times(1e6, small_n), d=fixed(10)),
        ),
        controls=(
            Control("without 1/sqrt(d)", Tail(trials.weak_difference_unscaled, printed), wide, "missing normalisation"),
            Control(
                "independent Gaussians under the coupled bound",
                Tail(trials.weak_difference, coupled),
                far,
                "hypothesis broken",
            ),
        ),
    )


def _thm3(scope: Scope) -> Check:
    people = rough(scope)
    normal = stats.norm.cdf
    sizes = (1e2, 1e3, 1e4, 1e6, 1e8)
    path = tuple(
        Setting(f"{people[0].name}, n={n:g}", people[0].arrays, {"n": n, "d": 1.0, "tau": 1.0}) for n in sizes[1:]
    )
    path = (Setting(f"{people[0].name}, n=300", people[0].arrays, {"n": 300.0, "d": 1.0, "tau": 1.0}), *path)
    far = tuple(Setting(f"{p.name}, n=1e+10", p.arrays, {"n": 1e10, "d": 1.0, "tau": 1.0}) for p in people)
    wrong = controls.changed(far, "Sigma^2", shapes={"target": 2})
    return Check(
        printed=Form(Law(trials.standardised_image, normal), far),
        corrected=Form(Rate(trials.coupling_distance, "n", -1.0), path),
        controls=(
            Control("Sigma^2 in place of Sigma^3", Law(trials.standardised_image, normal), wrong, POWER),
            Control("a rate of n^-2", Rate(trials.coupling_distance, "n", -2.0), path, POWER),
        ),
    )


def _lemma_b2(scope: Scope) -> Check:
    bound = scope.bound(sketching.covariance_deviation, "kappa", "trace", "n", "tau")
    settings = scope.at(lemma_n) + scope.at(times(1e6, lemma_n))
    return Check(
        printed=Form(
            Tail(trials.covariance_deviation, bound, lambda s: math.sqrt(2) * scope.person(s).kappa), settings
        ),
        controls=(
            Control(
                "a bound that falls like 1/n",
                Tail(trials.covariance_deviation, controls.scaled(bound, lambda s: s.numbers["n"] ** -0.5)),
                scope.at(times(1e6, lemma_n), people=rough(scope)),
                POWER,
            ),
        ),
    )


def _lemma_b2_bernstein(scope: Scope) -> Check:
    bound = scope.bound(sketching.covariance_deviation_bernstein, "kappa", "trace", "n", "tau")
    return Check(**for_every_n(scope, bound))


def _conditional(constant: float) -> Callable[[Setting], Bound]:
    def bound(setting: Setting) -> Bound:
        probability = 1 - math.exp(-setting.numbers["tau"])
        # d is at least the number of atoms or 4 s3, so that d >= r_n holds for every sample that matters.
        return Bound(constant, probability, True, "kpotufe2020, Lemma B.3")

    return bound


def _lemma_b3(scope: Scope) -> Check:
    settings = scope.at(small_n, d=safe_d, rows=safe_d)
    return Check(
        printed=Form(
            Calibrated(trials.conditional_ratio, _conditional(1.0), sketching.KOLTCHINSKII_LOUNICI_LOWER, C), settings
        ),
        corrected=Form(Tail(trials.conditional_ratio, _conditional(C)), settings),
        controls=(
            Control(
                "one direction repeated 1024 times",
                Tail(trials.conditional_ratio, _conditional(C)),
                _repeated(scope, small_n),
                REUSED,
            ),
        ),
    )


def _lemma_b3_proof(scope: Scope) -> Check:
    people = scope.people[:1]
    settings = scope.at(small_n, d=safe_d, rows=safe_d, people=people)

    def printed(setting: Setting) -> Bound:
        b = _conditional(C)(setting)
        return Bound(C / setting.numbers["n"] ** 2, b.probability, True, "kpotufe2020, proof of Lemma B.3")

    return Check(
        printed=Form(Tail(trials.conditional_ratio, printed), settings),
        corrected=Form(Tail(trials.conditional_ratio, _conditional(C)), settings),
        controls=(
            Control(
                "one direction repeated 1024 times",
                Tail(trials.conditional_ratio, _conditional(C)),
                _repeated(scope, small_n, people),
                REUSED,
            ),
        ),
    )
