"""kpotufe2020, the relations between its numbered statements: (2), (3), (4), (6), (9), and what is said around them.

The remark after Theorem 1, the last paragraph of its proof, the sentence around Theorem 2, the rate, and the bias of
Kernel JL, which the paper does not mention.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import rkhs
from jaxkern._spectral import matmul
from jaxkern.bounds import Bound
from proofs_check import controls
from proofs_check.claim import (
    Claim,
    Control,
    Exact,
    Expectation,
    Form,
    Identity,
    Inequality,
    Law,
    Rate,
    Setting,
    Tail,
    Undecided,
)
from proofs_check.papers import operators as op
from proofs_check.papers.kpotufe2020 import examples as kpotufe2020_examples
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.places import Places, rough, theorem_n
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import always

PAPER = "kpotufe2020"
MOST_COORDINATES = 64
USED = 100
"""The landmarks that the remark after Theorem 1 calls often sufficient."""


def claims(places: Places) -> list[Claim]:
    """Return the claims, in the paper's order."""
    return [
        _rate(),
        _nystrom_cost(),
        _worst_case(places),
        _eq2(places),
        _no_identity(),
        _eq3(places),
        _eq4(places),
        _mean_cube(places),
        _remark(places),
        _eq6(places),
        _loose_ends(places),
        _thm2_text(places),
        _eq9(places),
    ]


def _path(person: Population, sizes: tuple[float, ...]) -> tuple[Setting, ...]:
    return tuple(Setting(f"{person.name}, n=d={n:g}", person.arrays, {"n": n, "d": n, "tau": 1.0}) for n in sizes)


# ------------------------------------------------------------------------------------------------- Section 1: the rate


def _rate() -> Claim:
    # Any number of rows is drawn as a matrix over the atoms, of which a user's table may have thousands.
    path = _path(kpotufe2020_examples.two_clusters().person, (1e4, 1e5, 1e6, 1e7, 1e8))
    return Claim(
        id="kpotufe2020:rate",
        paper=PAPER,
        where="Section 1 and after Theorem 1, the rate",
        kind="rate",
        tex=r"\|S^*VV^{\top}S-\Sigma^3\|=O(n^{-1/2}+d^{-1/2})",
        hypotheses=r"A bounded kernel, independent $X_i\sim\rho$; $n$ and $d$ above the effective dimensions. Tried "
        r"with $n=d$ from $10^4$ to $10^8$ on two clusters of two points.",
        because="True, with an error that is relative to |Sigma|^3 and not to <f, Sigma^3 f>.",
        printed=Form(Rate(trials.sketch_error, "n", -0.5), path, "certified"),
        controls=(Control("a rate of 1/n", Rate(trials.sketch_error, "n", -1.0), path, "wrong power"),),
    )


def _nystrom_cost() -> Claim:
    reason = (
        "an order of growth without constants, of an algorithm that is not given: O(d n^2) for a pseudo-inverse of "
        "rank d whose precision is left open. What Kernel JL costs is counted by kpotufe2020:cost."
    )
    return Claim(
        id="kpotufe2020:nystrom-cost",
        paper=PAPER,
        where="Section 1, the cost of Nystrom maps",
        kind="cost",
        tex=r"O(d\,n^2)\text{ for the pseudo-inverse of rank }d,\ N\,d\,n\text{ to map }N\text{ points}",
        hypotheses="$n$ landmarks, $N$ points, rank $d$; an iterative solver of a precision that is left open.",
        because="An order without constants cannot fail at any size.",
        printed=Form(Undecided(reason), (), "not testable"),
    )


def _worst_case(places: Places) -> Claim:
    def residual(power: int) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            person = places.person(setting)
            # Sigma from the atoms, not from the eigenvalues that are claimed.
            sigma = person.features.T @ (person.weights[:, None] * person.features)
            found = np.diag(np.linalg.matrix_power(sigma, power))
            return np.abs(found - person.eigenvalues**3) / person.op_norm**3

        return Identity(check)

    settings = tuple(Setting(p.name, p.arrays) for p in places.people)
    telling = tuple(s for s in settings if places.person(s).rank > 1.01)
    return Claim(
        id="kpotufe2020:worst-case",
        paper=PAPER,
        where="Section 1, worst-case distortion",
        kind="identity",
        tex=r"\|f_k\|=1,\ \langle f_k,\Sigma^3f_k\rangle=\lambda_k^3\to0",
        hypotheses=r"$f_k$ a unit eigenfunction of $\Sigma$ with eigenvalue $\lambda_k$.",
        because="True: no multiple of <f, Sigma^3 f> bounds |f|^2 over the whole space, in infinite dimension.",
        printed=Form(residual(3), settings, "identity"),
        controls=(Control("Sigma^2 in place of Sigma^3", residual(2), telling, "wrong power"),),
    )


# --------------------------------------------------------------------------------------------------- Section 3: (2)-(4)


def projected_square(key: jax.Array, population: Mapping[str, jax.Array], numbers: Any, *, rows: int) -> jax.Array:
    """d |Theta f|^2 over <f, Sigma^3 f>, d = 2 (`rows` of them drawn)."""
    f = population["f"]
    exact = jnp.vdot(f, op.exact_power(population, 3)(f), precision=op.HIGHEST)
    return numbers["d"] * jnp.vdot(f, op.exact_sketch(key, population, rows)(f), precision=op.HIGHEST) / exact


def _eq2(places: Places) -> Claim:
    statement = Law(projected_square, lambda t: stats.chi2.cdf(t, 2))
    settings = tuple(
        Setting(f"{p.name}, d=2", p.arrays, {"n": 1.0, "d": 2.0, "tau": 1.0}, {"rows": 2}) for p in places.people
    )
    return Claim(
        id="kpotufe2020:eq2",
        paper=PAPER,
        where="(2)",
        kind="law",
        tex=r"\Theta f=d^{-1/2}(\langle v_i,f\rangle)_i\ \Rightarrow\ "
        r"d\,\|\Theta f\|^2\sim\langle f,\Sigma^3f\rangle\,\chi^2_d,\ "
        r"\mathbb E\langle\Theta g,\Theta f\rangle=\langle g,\Sigma^3f\rangle",
        hypotheses=r"Independent $v_i\sim N_{\mathcal H}(0,\Sigma^3)$ and one $f$, fixed before the draws. Tried for "
        r"$d=2$.",
        because="True: the definition of a Gaussian measure. The law says that the factor 1/sqrt(d) is the right one.",
        printed=Form(statement, settings, "certified"),
        controls=(
            Control("one direction for both", statement, controls.one_draw(settings), "reused key"),
            Control(
                "d = 1 in the factor",
                statement,
                controls.changed(settings, "d = 1", numbers={"d": 1.0}),
                "missing normalisation",
            ),
        ),
    )


def _no_identity() -> Claim:
    """Chernoff: P(chi2_r <= B) <= exp(-(B/r - 1 - log(B/r)) r / 2) for B < r."""

    def probability(setting: Setting, degrees: float | None = None) -> tuple[float, float]:
        r, B = setting.numbers["r"], setting.numbers["B"]
        found = stats.chi2.logcdf(B, r if degrees is None else degrees)
        return float(found), -(B / r - 1 - math.log(B / r)) * r / 2

    settings = tuple(
        Setting(f"{r:g} coordinates, B={B:g}", numbers={"r": r, "B": B})
        for B in (1.0, 10.0)
        for r in (20.0, 60.0, 200.0)
    )
    return Claim(
        id="kpotufe2020:no-identity",
        paper=PAPER,
        where="Section 3, after (2)",
        kind="tail bound",
        tex=r"P\Big(\sum_{i\le r}g_i^2\le B\Big)\le e^{-\frac r2(\frac Br-1-\ln\frac Br)}\to0\quad(r\to\infty)",
        hypotheses=r"$g_i$ independent and standard normal, the coordinates of a would-be $N_{\mathcal H}(0,I)$; "
        r"$B<r$. That no such measure exists is a statement about all of them at once, which is proved and not tried.",
        because="True: there is no Gaussian measure with covariance I on an infinite-dimensional space, as the norm of "
        "a draw would exceed every B almost surely. What can be computed is how fast that happens.",
        printed=Form(Exact(probability), settings, "certified"),
        controls=(
            Control(
                "a covariance of rank one",
                Exact(lambda setting: probability(setting, 1.0)),
                settings,
                "wrong operator",
            ),
        ),
    )


def sampled_product(key: jax.Array, population: Mapping[str, jax.Array], numbers: Any) -> jax.Array:
    """The squared error of (3) over |u|^2_L2 |f|^2_L2, for u = f."""
    features, weights, f = population["features"], population["weights"], population["f"]
    values = matmul(features, f) ** 2
    error = jnp.vdot(op.frequencies(key, population, numbers["n"]) - weights, values, precision=op.HIGHEST)
    return (error / jnp.vdot(weights, values, precision=op.HIGHEST)) ** 2


def _eq3(places: Places) -> Claim:
    def residual(adjoint: Callable[[rkhs.SamplingOperator, jax.Array], Any]) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """<Sigma u, f> = int f u drho on all atoms, and <S f, beta> = <f, S* beta> on a few."""
            person = places.person(setting)
            key_u, key_f, key_beta = jax.random.split(key, 3)
            dtype = jax.dtypes.canonicalize_dtype(float)
            points, weights = jnp.asarray(person.points, dtype), jnp.asarray(person.weights, dtype)
            u, f = (
                rkhs.Function(person.kernel, points, jax.random.normal(k, (len(points),), dtype))
                for k in (key_u, key_f)
            )
            integral = jnp.sum(weights * u(points) * f(points))
            # Sigma u = sum w_i u(x_i) K(., x_i), an integral that is a finite sum here.
            applied = rkhs.inner(rkhs.Function(person.kernel, points, weights * u(points)), f)
            size = jnp.sum(weights * jnp.abs(u(points) * f(points)))
            sample = rkhs.SamplingOperator(person.kernel, points[:10])
            beta = jax.random.normal(key_beta, (10,), dtype)
            left, right = jnp.vdot(sample(f), beta), adjoint(sample, beta)(f)
            scale = jnp.sum(jnp.abs(sample(f) * beta))
            return np.asarray([jnp.abs(integral - applied) / size, jnp.abs(left - right) / scale])

        return Identity(check)

    def adjoint(sample: rkhs.SamplingOperator, beta: jax.Array) -> Any:
        return lambda f: rkhs.inner(sample.adjoint(beta), f)

    def transposed(sample: rkhs.SamplingOperator, beta: jax.Array) -> Any:
        return lambda f: rkhs.inner(sample.adjoint(sample(sample.adjoint(beta))), f)

    # A table of the user's may have thousands of atoms, which an exact sum over all pairs need not have.
    settings = tuple(Setting(p.name, p.arrays) for p in places.people if len(p.points) <= 64) or (
        Setting(places.people[0].name, places.people[0].arrays),
    )
    person = rough(places)[0]
    path = tuple(Setting(f"{person.name}, n={n:g}", person.arrays, {"n": n}) for n in (1e2, 1e3, 1e4, 1e5, 1e6))
    return Claim(
        id="kpotufe2020:eq3",
        paper=PAPER,
        where="(3) and the displays around it",
        kind="identity",
        tex=r"\langle\Sigma u,f\rangle=\int fu\,d\rho\approx\tfrac1n\langle S_Xu,S_Xf\rangle,\quad "
        r"\langle S_Xf,\beta\rangle=\langle f,S_X^*\beta\rangle,\ S_X^*\beta=\sum\beta_iK_{X_i}",
        hypotheses=r"$f,u\in\mathcal H$ and $\beta\in\mathbb R^n$. As corrected: independent $X_i\sim\rho$, and $u$ "
        r"and $f$ fixed before they are drawn.",
        because="True; in (3) the mean square of the error is Var(u f) / n exactly, a rate that the paper leaves out.",
        printed=Form(residual(adjoint), settings, "identity"),
        corrected=Form(
            Rate(sampled_product, "n", -1.0),
            path,
            "certified",
            r"\mathbb E\big(\tfrac1n\langle S_Xu,S_Xf\rangle-\langle\Sigma u,f\rangle\big)^2=\operatorname{Var}(uf)/n",
        ),
        controls=(
            Control("K S* for S*", residual(transposed), settings[:1], "transpose for adjoint"),
            Control("an error that falls like 1 / n^2", Rate(sampled_product, "n", -2.0), path, "wrong power"),
        ),
    )


def _eq4(places: Places) -> Claim:
    def residual(power: float) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            person = places.person(setting)
            features = person.features
            K = features @ features.T
            left = (features * person.eigenvalues**power) @ features.T
            right = K @ (person.weights[:, None] * K)
            return np.abs(left - right).ravel() / np.abs(right).max()

        return Identity(check)

    settings = tuple(Setting(p.name, p.arrays) for p in places.people)
    telling = tuple(s for s in settings if places.person(s).rank > 1.01)
    return Claim(
        id="kpotufe2020:eq4",
        paper=PAPER,
        where="(4)",
        kind="identity",
        tex=r"\langle K_{X_j},\Sigma K_{X_l}\rangle=\int K(x,X_j)K(x,X_l)\,d\rho(x)",
        hypotheses=r"A bounded kernel; $\Sigma$ is that of the law, not of the sample. Tried for all pairs of atoms of "
        "laws with finitely many. That the values of a draw have this covariance is Proposition B.1.",
        because="True: the reproducing property under the integral.",
        printed=Form(residual(1.0), settings, "identity"),
        controls=(Control("Sigma^2 in place of Sigma", residual(2.0), telling, "wrong power"),),
    )


# ------------------------------------------------------------------------------------------------------------- the bias


def sampled_cube(key: jax.Array, population: Mapping[str, jax.Array], numbers: Any) -> jax.Array:
    """<f, Sigma_n^3 f> over <f, Sigma^3 f>."""
    f = population["f"]
    sample = op.covariance(population, op.frequencies(key, population, numbers["n"]))
    exact = jnp.vdot(f, op.exact_power(population, 3)(f), precision=op.HIGHEST)
    return jnp.vdot(f, op.cube(sample)(f), precision=op.HIGHEST) / exact


def mean_cube(person: Population, f: np.ndarray, n: float) -> float:
    """Return E <f, Sigma_n^3 f>: the terms of (A_1 + ... + A_n)^3 / n^3, A_i = K_i x K_i, by which indices agree."""
    features, weights = person.features, person.weights
    sigma, lengths, values = person.eigenvalues, np.sum(features**2, axis=1), features @ f
    square = features.T @ (weights * lengths * values)  # E[A^2] f
    twice = float(square @ (sigma * f))  # <f, E[A^2] Sigma f>
    inner = float(np.sum(weights * values**2 * np.sum(features**2 * sigma, axis=1)))  # <f, E[A Sigma A] f>
    alone = float(np.sum(weights * lengths**2 * values**2))  # <f, E[A^3] f>
    cubed = float(np.sum(sigma**3 * f**2))
    return (n * (n - 1) * (n - 2) * cubed + n * (n - 1) * (2 * twice + inner) + n * alone) / n**3


def _mean_cube(places: Places) -> Claim:
    def exact(setting: Setting) -> float:
        person = places.person(setting)
        f = np.asarray(person.arrays["f"], float)
        return mean_cube(person, f, setting.numbers["n"]) / float(np.sum(person.eigenvalues**3 * f**2))

    def one(setting: Setting) -> float:
        return 1.0

    people = rough(places)
    settings = tuple(Setting(f"{p.name}, n={n:g}", p.arrays, {"n": n}) for p in people for n in (30.0, 300.0))
    return Claim(
        id="jaxkern:bias",
        paper=PAPER,
        where="after (1) (ours)",
        kind="expectation",
        tex=r"\mathbb E\|V^{\top}Sf\|^2=\mathbb E\langle f,\Sigma_n^3f\rangle=\tfrac{(n-1)(n-2)}{n^2}"
        r"\langle f,\Sigma^3f\rangle+\tfrac{n-1}{n^2}"
        r"\langle f,(\mathbb E[A^2]\Sigma+\Sigma\mathbb E[A^2]+\mathbb E[A\Sigma A])f\rangle"
        r"+\tfrac1{n^2}\langle f,\mathbb E[A^3]f\rangle",
        hypotheses=r"A bounded kernel, independent $X_i\sim\rho$, $A=K_X\otimes K_X$, one $f$. Tried at $n=30$ and "
        r"$n=300$ on two laws.",
        because="The terms of the third power of a sum by which of its indices agree. Kernel JL is unbiased for "
        "Sigma_n^3 and, by this, biased for Sigma^3 by a term of order 1/n, which the first sign of (1) hides.",
        corrected=Form(Expectation(sampled_cube, exact, exact), settings, "certified"),
        controls=(Control("no bias", Expectation(sampled_cube, one, one), settings[::2], "term left out"),),
    )


# --------------------------------------------------------------------------------------------------- around Theorem 1


def _least_landmarks(person: Population) -> float:
    """Return the least n at which the printed Theorem 1 says something: its probability is positive for tau > ln 5."""
    return 6272 * person.kappa * person.rank**5 * math.log(5) / person.op_norm


def _remark(places: Places) -> Claim:
    def small(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        del key
        return [(_least_landmarks(places.person(setting)) / USED, always(1.0, "kpotufe2020, Remark after Theorem 1"))]

    def holds(least: float) -> Inequality:
        def sides(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            del key
            person = places.person(setting)
            ratios = (
                person.op_norm / person.kappa,
                person.rank3 / person.rank,
                least / _least_landmarks(person),
            )
            return [(ratio, always(1.0, "kpotufe2020, Remark after Theorem 1")) for ratio in ratios]

        return Inequality(sides)

    settings = tuple(Setting(p.name, p.arrays) for p in places.people)
    atom = tuple(s for s in settings if places.person(s).rank < 1.01) or settings[:1]
    return Claim(
        id="kpotufe2020:remark",
        paper=PAPER,
        where="Remark after Theorem 1",
        kind="inequality",
        tex=r"\|\Sigma\|\le\kappa,\ s_3\le s,\ \text{and } d\le n\le100\text{ can keep the guarantee of Theorem 1}",
        hypotheses="Any law and bounded kernel. Theorem 1 says something where its probability is positive and its "
        r"condition on $n$ holds: $n\ge6272\,\kappa s^5\tau/\|\Sigma\|$ with $\tau>\ln5$.",
        because="Both inequalities are true, the conclusion is not: as kappa >= |Sigma| and s >= 1, Theorem 1 is "
        "silent below 6272 ln 5 = 10,094.3 landmarks for every kernel and law, and the constant kernel needs just that "
        "many. The experiments of the paper, with 100 to 400, are outside it.",
        printed=Form(Inequality(small), settings, "refuted"),
        corrected=Form(
            holds(6272 * math.log(5)), settings, "consistent", r"\|\Sigma\|\le\kappa,\ s_3\le s,\ n\ge6272\ln5"
        ),
        controls=(Control("at least 11,000 landmarks", holds(11_000.0), atom, "wrong factor"),),
    )


def _eq6(places: Places) -> Claim:
    def sides(drop: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            """Every line of (6) and of the displays after it, for several samples and sketches; units of |Sigma|."""
            person = places.person(setting)
            rng = np.random.default_rng(int(jax.random.randint(key, (), 0, 2**31 - 1)))
            S = person.op_norm
            # The leading coordinates are a law of their own, with matrices that a table of thousands of rows needs.
            features = person.features[:, :MOST_COORDINATES] / math.sqrt(S)
            sigma = np.diag(person.eigenvalues[:MOST_COORDINATES] / S)
            found = []
            for n in (3, 30, 3000):
                for d in (1, 10):
                    frequencies = rng.multinomial(n, person.weights) / n
                    sample = features.T @ (frequencies[:, None] * features)
                    half = sample @ features.T * np.sqrt(frequencies)
                    drawn = half @ rng.standard_normal((len(frequencies), d))
                    third, cube = np.linalg.matrix_power(sample, 3), sigma**3
                    norm = lambda A: float(np.linalg.norm(A, 2))  # noqa: E731
                    e, o, t = norm(third - cube), norm(third), float(np.trace(third))
                    D, H = norm(sample - sigma), float(np.linalg.norm(sample - sigma))
                    h, tau, C = float(np.linalg.norm(sigma)), 2.0, 5.92
                    sketch = drawn @ drawn.T / d
                    lines = (
                        (norm(sketch - cube), norm(sketch - third) + e),
                        (
                            C * (math.sqrt(t * o / d) + o * math.sqrt(tau / d)) + e,
                            C * (math.sqrt(t * e / d) + math.sqrt(t / d) + math.sqrt(tau / d))
                            + e * (1 + C * math.sqrt(tau / d)),
                        ),
                        (e, D**3 + drop * 3 * D**2 + 3 * D),
                        (D**3 + 3 * D**2 + 3 * D, H**3 + 3 * H**2 + 3 * H),
                        (t, float(np.trace(cube)) + H**3 + 3 * h * H**2 + 3 * h**2 * H),
                    )
                    scale = max(1.0, *(right for _, right in lines))
                    found += [(left / scale, always(right / scale, "kpotufe2020, (6)")) for left, right in lines]
            return found

        return Inequality(check)

    settings = tuple(Setting(p.name, p.arrays) for p in places.people)
    return Claim(
        id="kpotufe2020:eq6",
        paper=PAPER,
        where="(6) and the displays before (7)",
        kind="inequality",
        tex=r"\|S^*VV^{\top}S-\Sigma^3\|\le\|S^*VV^{\top}S-\Sigma_n^3\|+\|\Sigma_n^3-\Sigma^3\|,\quad "
        r"\|\Sigma_n^3-\Sigma^3\|\le\delta^3+3\delta^2\|\Sigma\|+3\delta\|\Sigma\|^2,\ \delta=\|\Sigma_n-\Sigma\|",
        hypotheses=r"Any sample and any sketch; the middle line of (6) is Lemma B.3. Tried on random samples of 3, 30 "
        r"and 3,000 and sketches of 1 and 10 rows, line by line, also with traces and Hilbert-Schmidt norms.",
        because="True: the triangle inequality, sqrt(a + b) <= sqrt(a) + sqrt(b), seven terms of a third power.",
        printed=Form(sides(1.0), settings, "consistent"),
        controls=(Control("without the square of the deviation", sides(0.0), settings, "term left out"),),
    )


def _loose_ends(places: Places) -> Claim:
    """The last paragraph of the proof, in units of |Sigma|^3."""

    def terms(setting: Setting) -> tuple[Population, float, float]:
        person = places.person(setting)
        n = theorem_n(person, 1.0)
        n_term = 28 * math.sqrt(2 * person.kappa * person.trace / n) / person.op_norm
        return person, n_term, n_term * person.hs_norm / person.op_norm

    def printed(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        del key
        person, _, trace_term = terms(setting)
        return [(person.rank3, always(trace_term, "kpotufe2020, proof of Theorem 1"))]

    def corrected(most: float) -> Inequality:
        def sides(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            del key
            person, n_term, trace_term = terms(setting)
            lines = (
                (2 * n_term, 1.0),
                (trace_term / person.rank3, 1.0),
                ((person.rank3 + trace_term) / (1 - n_term) / (most * person.rank3), 1.0),
            )
            return [(left, always(right, "kpotufe2020, proof of Theorem 1")) for left, right in lines]

        return Inequality(sides)

    settings = tuple(Setting(p.name, p.arrays) for p in places.people)
    return Claim(
        id="kpotufe2020:thm1-proof",
        paper=PAPER,
        where="proof of Theorem 1, last paragraph",
        kind="inequality",
        tex=r"2\Delta'\le\|\Sigma\|^3,\ \operatorname{tr}\Sigma^3\le\Delta,\ "
        r"\frac{\operatorname{tr}\Sigma^3+\Delta}{\|\Sigma\|^3-\Delta'}\le4s_3",
        hypotheses=r"The smallest $n$ of Theorem B, which is at most that of Theorem 1; $\Delta'$ and $\Delta$ are "
        r"the last terms of (7) and, in its better form, of (8).",
        because="The middle one is printed the wrong way round: it is Delta <= tr Sigma^3 that the proof needs and "
        "that holds. So d >= 4 s3 v tau is enough, which the proof says and the theorem does not.",
        printed=Form(Inequality(printed), settings, "refuted"),
        corrected=Form(corrected(4.0), settings, "consistent", r"\Delta\le\operatorname{tr}\Sigma^3"),
        controls=(Control("3 s3 for 4 s3", corrected(3.0), settings, "wrong factor"),),
    )


# --------------------------------------------------------------------------------------------------- around Theorem 2


def squared_difference(key: jax.Array, population: Mapping[str, jax.Array], numbers: Any) -> jax.Array:
    """d <alpha, (V^T S - Theta) f>^2 over <f, Sigma^3 f> when both operators share their Gaussians."""
    f = population["f"]
    exact = jnp.vdot(f, op.exact_power(population, 3)(f), precision=op.HIGHEST)
    return trials.weak_difference_coupled(key, population, numbers) ** 2 / exact


def _thm2_text(places: Places) -> Claim:
    def better(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        """Mean squares, over that of <alpha, V^T S f>: of its difference from <alpha, Theta f>, and from zero."""
        del key
        person = places.person(setting)
        f = np.asarray(person.arrays["f"], float)
        image = mean_cube(person, f, setting.numbers["n"])
        own = float(np.sum(person.eigenvalues**3 * f**2))
        return [((image + own) / image, always(1.0, "kpotufe2020, text around Theorem 2"))]

    people = rough(places)
    settings = tuple(Setting(f"{p.name}, n={n:g}", p.arrays, {"n": n}) for p in places.people for n in (1e3, 1e6, 1e12))
    path = _path(people[0], (1e4, 1e5, 1e6, 1e7, 1e8))
    path = controls.changed(path, "d=1", numbers={"d": 1.0})
    return Claim(
        id="kpotufe2020:thm2-text",
        paper=PAPER,
        where="text before and after Theorem 2",
        kind="expectation",
        tex=r"\langle\alpha,V^{\top}Sf\rangle\to\langle\alpha,\Theta f\rangle\text{ at the rate }d^{-1/2}"
        r"\ \big(\mathbb E(\langle\alpha,V^{\top}Sf\rangle-\langle\alpha,\Theta f\rangle)^2"
        r"\le\mathbb E\langle\alpha,V^{\top}Sf\rangle^2\big)",
        hypotheses=r"$V$ and $\Theta$ independent given the sample, as in the proof of Theorem 2; unit $\alpha$, one "
        r"$f$, any $d$. As corrected both are driven by the same Gaussians.",
        because="An approximation should be better than zero. This one is worse, for every n and d: the mean squares "
        "add up. Both sides fall like 1/sqrt(d) because both operators do. Coupled, the mean square of the difference "
        "falls like 1/n, for every d (Theorem D).",
        printed=Form(Inequality(better), settings, "refuted"),
        corrected=Form(
            Rate(squared_difference, "n", -1.0), path, "certified", r"\mathbb E(\cdot)^2=O(1/(nd))\text{ when coupled}"
        ),
        controls=(Control("a rate of n^-2", Rate(squared_difference, "n", -2.0), path, "wrong power"),),
    )


def standardised_difference(key: jax.Array, population: Mapping[str, jax.Array], numbers: Any) -> jax.Array:
    """|<alpha, V^T S f> - <alpha, Theta f>| over sqrt(2 <f, (Sigma^3 + Sigma_n^3) f> / d)."""
    first, second = trials.scales(key, population, numbers)
    normal = jax.random.normal(jax.random.fold_in(key, 1), (2,), first.dtype)
    return jnp.abs(first * normal[0] - second * normal[1]) / jnp.sqrt(2 * (first**2 + second**2))


def _eq9(places: Places) -> Claim:
    def bound(factor: float) -> Callable[[Setting], Bound]:
        def evaluate(setting: Setting) -> Bound:
            tau = setting.numbers["tau"]
            return Bound(math.sqrt(tau), 1 - factor * math.exp(-tau), tau > 0, "kpotufe2020, (9)")

        return evaluate

    settings = places.at(lambda p, tau: 20.0)
    return Claim(
        id="kpotufe2020:eq9",
        paper=PAPER,
        where="(9)",
        kind="tail bound",
        tex=r"|\langle\alpha,V^{\top}Sf-\Theta f\rangle|\le\|\alpha\|\sqrt{\frac{2\tau\langle f,(\Sigma^3+\Sigma_n^3)f"
        r"\rangle}d}\quad\text{w.p. }1-2e^{-\tau}",
        hypotheses=r"$V$ and $\Theta$ independent given the sample, $\tau>0$, any $n$ and $d$. Tried at $n=20$; the "
        r"second line of (9) follows from $\langle f,\Sigma^3f\rangle\le\|\Sigma\|^3\|f\|^2$.",
        because="True. A normal variable exceeds sigma sqrt(2 tau) with probability exp(-tau) at most, so that half of "
        "the failure probability is enough.",
        printed=Form(Tail(standardised_difference, bound(2.0)), settings, "certified"),
        corrected=Form(Tail(standardised_difference, bound(1.0)), settings, "certified", r"\text{w.p. }1-e^{-\tau}"),
        controls=(
            Control(
                "half of the bound",
                Tail(standardised_difference, controls.scaled(bound(2.0), lambda s: 0.5)),
                settings,
                "wrong factor",
            ),
        ),
    )
