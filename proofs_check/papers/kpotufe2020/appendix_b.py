"""kpotufe2020, Appendix B: the values of a Gaussian draw, and Lemmas B.2 and B.3 with our sharper forms."""

import math
from collections.abc import Callable

import jax
import numpy as np
from scipy import special, stats

from jaxkern import rkhs
from jaxkern.bounds import Bound, sketching
from jaxkern.gram import gram
from proofs_check import controls
from proofs_check.claim import Calibrated, Check, Control, Exact, Form, Identity, Inequality, Setting, Tail
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.places import Scope, lemma_n, safe_d, small_n, times
from proofs_check.papers.shared import LOG2, claimed, lines, op_norm, parametrized

C = sketching.KOLTCHINSKII_LOUNICI


def _values_of_a_draw(scope: Scope) -> Check:
    @parametrized(Identity)
    def holds(key: jax.Array, setting: Setting, power: int = 1, extra: int = 0) -> np.ndarray:
        """Values of draws are linear in standard normal numbers, so jointly normal, and their mean products are M."""
        kernel, landmarks = setting.data["kernel"], setting.data["landmarks"]
        n, sigma = landmarks.shape[0], rkhs.Covariance(kernel, landmarks)
        values = rkhs.draw_gaussian(key, sigma, power=power, num_draws=2 * n)(landmarks).T
        mean, apart = trials.mean_product(trials.normals(key, 2 * n, n, landmarks.dtype), values)
        K = np.asarray(gram(kernel, landmarks), float)
        error = mean / (2 * n) - K @ K / (n - extra)
        return np.concatenate([error.ravel() / (K @ K / n).max(), apart.ravel()])

    return Check(
        printed=Form(holds(), scope.literals),
        controls=(
            Control("draws from N(0, Sigma^3)", holds(power=3), scope.literals[:2], "wrong law"),
            Control("Sigma over n - 1", holds(extra=1), scope.literals, "n for n - 1"),
        ),
    )


def _faster(scope: Scope, bound: Callable[[Setting], Bound]) -> Control:
    """Return the control of a bound on |Sigma_n - Sigma|_HS; a constant kernel, which never deviates, has none."""
    wrong = Tail(trials.covariance_deviation, controls.scaled(bound, lambda s: s.numbers["n"] ** -0.5))
    large = scope.at(times(1e6, lemma_n), populations=scope.rough)
    return Control("a bound that falls like 1/n", wrong, large, "wrong power")


def _lemma_b2(scope: Scope) -> Check:
    bound = scope.bound(sketching.covariance_deviation)
    tail = Tail(trials.covariance_deviation, bound, lambda s: math.sqrt(2) * scope.population_of(s).kappa)
    settings = scope.at(lemma_n) + scope.at(times(1e6, lemma_n))
    return Check(printed=Form(tail, settings), controls=(_faster(scope, bound),))


def _lemma_b2_moments(scope: Scope) -> Check:
    @parametrized(Inequality)
    def holds(setting: Setting, factor: float, share: str) -> list[tuple[float, Bound]]:
        """Return the steps of the proof, each over its right side; `share` is what takes the place of tr Sigma."""
        population = scope.population_of(setting)
        kappa, rows = population.kappa, population.features
        lengths = np.sum(rows**2, axis=1)  # K(x, x)
        ratio = op_norm(np.outer(rows[0], rows[0])) / (factor * lengths[0])
        # |K_x x K_x - Sigma|_HS^2 = K(x, x)^2 - 2 <K_x, Sigma K_x> + |Sigma|_HS^2.
        sizes = np.sqrt(np.maximum(lengths**2 - 2 * rows**2 @ population.eigenvalues + population.hs_norm**2, 0))
        pairs = [(abs(ratio - 1), 0.0), (np.max(sizes) / kappa, 2.0)]
        variance = getattr(population, share) / kappa
        pairs += [(population.weights @ (sizes / kappa) ** m, 2 ** (m - 2) * variance) for m in (2, 3, 4)]
        return lines(pairs, "kpotufe2020, Lemma B.2")

    return Check(
        printed=Form(holds(1.0, "trace"), scope.each),
        controls=(
            Control("2 K(x, x)", holds(2.0, "trace"), scope.each, "wrong factor"),
            Control("|Sigma| for tr Sigma", holds(1.0, "op_norm"), scope.varying, "wrong operator"),
        ),
    )


def _lemma_b2_rare(scope: Scope) -> Check:
    @parametrized(Exact)
    def exact(setting: Setting, formula: Callable[..., Bound], part: float = 1.0) -> tuple[float, float]:
        n, w, tau = (setting.numbers[k] for k in ("n", "w", "tau"))
        right = formula(kappa=1.0, trace=1.0, n=n, tau=tau)
        gap = part * right.value / math.sqrt(2)  # |Sigma_n - Sigma|_HS = sqrt(2) |share of the first atom - w|
        counts = np.arange(n + 1)
        outside = counts[np.abs(counts / n - w) >= gap]
        tail = float(special.logsumexp(stats.binom.logpmf(outside, n, w)))
        return tail, claimed(right, LOG2 - tau, setting)

    settings = tuple(
        Setting(f"two orthogonal atoms, w={w:g}, n=1e4, tau={tau:g}", numbers={"n": 1e4, "w": w, "tau": tau})
        for w in (0.5, 0.02)
        for tau in scope.logs
    )
    equal = tuple(s for s in settings if s.numbers["w"] == 0.5)
    half = exact(sketching.covariance_deviation_bernstein, 0.5)
    return Check(
        printed=Form(exact(sketching.covariance_deviation), settings),
        corrected=Form(exact(sketching.covariance_deviation_bernstein), settings),
        controls=(Control("half of Bernstein's bound", half, equal, "wrong factor"),),
    )


def _for_every_n(scope: Scope, formula: Callable[..., Bound]) -> Check:
    bound = scope.bound(formula)
    settings = scope.at(1.0) + scope.at(times(1e6, lemma_n))
    return Check(corrected=Form(Tail(trials.covariance_deviation, bound), settings), controls=(_faster(scope, bound),))


def _lemma_b2_bernstein(scope: Scope) -> Check:
    return _for_every_n(scope, sketching.covariance_deviation_bernstein)


def _lemma_b2_sharp(scope: Scope) -> Check:
    return _for_every_n(scope, sketching.covariance_deviation_sharp)


def _conditional(constant: float, power: float = 0.0) -> Callable[[Setting], Bound]:
    """Return the bound of Lemma B.3 over its shape, which depends on the sample, with a factor n^power."""

    def bound(setting: Setting) -> Bound:
        probability = 1 - math.exp(-setting.numbers["tau"])
        # d is at least the number of atoms or 4 s3, so that d >= r_n holds for every sample that matters.
        return Bound(constant * setting.numbers["n"] ** power, probability, True, "kpotufe2020, Lemma B.3")

    return bound


def _lemma_b3(scope: Scope) -> Check:
    settings = scope.at(small_n, rows=safe_d)
    least, tail = sketching.KOLTCHINSKII_LOUNICI_LOWER, Tail(trials.conditional_ratio, _conditional(C))
    return Check(
        printed=Form(Calibrated(trials.conditional_ratio, _conditional(1.0), least, C), settings),
        corrected=Form(tail, settings),
        controls=(scope.repeated(tail, small_n),),
    )


def _lemma_b3_proof(scope: Scope) -> Check:
    settings = scope.at(small_n, rows=safe_d, populations=scope.populations[:1])
    tail = Tail(trials.conditional_ratio, _conditional(C))
    return Check(
        printed=Form(Tail(trials.conditional_ratio, _conditional(C, power=-2.0)), settings),
        corrected=Form(tail, settings),
        controls=(scope.repeated(tail, small_n, scope.populations[:1]),),
    )
