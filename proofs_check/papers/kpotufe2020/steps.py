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
    Check,
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
)
from proofs_check.papers import operators as op
from proofs_check.papers.kpotufe2020 import examples as kpotufe2020_examples
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.places import Scope, rough, theorem_n
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import always

PAPER = "kpotufe2020"
MOST_COORDINATES = 64
USED = 100
"""The landmarks that the remark after Theorem 1 calls often sufficient."""


def _path(person: Population, sizes: tuple[float, ...]) -> tuple[Setting, ...]:
    return tuple(Setting(f"{person.name}, n=d={n:g}", person.arrays, {"n": n, "d": n, "tau": 1.0}) for n in sizes)


# ------------------------------------------------------------------------------------------------- Section 1: the rate


def _rate() -> Check:
    # Any number of rows is drawn as a matrix over the atoms, of which a user's table may have thousands.
    path = _path(kpotufe2020_examples.two_clusters().person, (1e4, 1e5, 1e6, 1e7, 1e8))
    return Check(
        printed=Form(Rate(trials.sketch_error, "n", -0.5), path),
        controls=(Control("a rate of 1/n", Rate(trials.sketch_error, "n", -1.0), path, "wrong power"),),
    )


def _worst_case(scope: Scope) -> Check:
    def residual(power: int) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            person = scope.person(setting)
            # Sigma from the atoms, not from the eigenvalues that are claimed.
            sigma = person.features.T @ (person.weights[:, None] * person.features)
            found = np.diag(np.linalg.matrix_power(sigma, power))
            return np.abs(found - person.eigenvalues**3) / person.op_norm**3

        return Identity(check)

    settings = tuple(Setting(p.name, p.arrays) for p in scope.people)
    telling = tuple(s for s in settings if scope.person(s).rank > 1.01)
    return Check(
        printed=Form(residual(3), settings),
        controls=(Control("Sigma^2 in place of Sigma^3", residual(2), telling, "wrong power"),),
    )


# --------------------------------------------------------------------------------------------------- Section 3: (2)-(4)


def projected_square(key: jax.Array, population: Mapping[str, jax.Array], numbers: Any, *, rows: int) -> jax.Array:
    """d |Theta f|^2 over <f, Sigma^3 f>, d = 2 (`rows` of them drawn)."""
    f = population["f"]
    exact = jnp.vdot(f, op.exact_power(population, 3)(f), precision=op.HIGHEST)
    return numbers["d"] * jnp.vdot(f, op.exact_sketch(key, population, rows)(f), precision=op.HIGHEST) / exact


def _eq2(scope: Scope) -> Check:
    statement = Law(projected_square, lambda t: stats.chi2.cdf(t, 2))
    settings = tuple(
        Setting(f"{p.name}, d=2", p.arrays, {"n": 1.0, "d": 2.0, "tau": 1.0}, {"rows": 2}) for p in scope.people
    )
    return Check(
        printed=Form(statement, settings),
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


def _no_identity() -> Check:
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
    return Check(
        printed=Form(Exact(probability), settings),
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


def _eq3(scope: Scope) -> Check:
    def residual(adjoint: Callable[[rkhs.SamplingOperator, jax.Array], Any]) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """<Sigma u, f> = int f u drho on all atoms, and <S f, beta> = <f, S* beta> on a few."""
            person = scope.person(setting)
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
    settings = tuple(Setting(p.name, p.arrays) for p in scope.people if len(p.points) <= 64) or (
        Setting(scope.people[0].name, scope.people[0].arrays),
    )
    person = rough(scope)[0]
    path = tuple(Setting(f"{person.name}, n={n:g}", person.arrays, {"n": n}) for n in (1e2, 1e3, 1e4, 1e5, 1e6))
    return Check(
        printed=Form(residual(adjoint), settings),
        corrected=Form(Rate(sampled_product, "n", -1.0), path),
        controls=(
            Control("K S* for S*", residual(transposed), settings[:1], "transpose for adjoint"),
            Control("an error that falls like 1 / n^2", Rate(sampled_product, "n", -2.0), path, "wrong power"),
        ),
    )


def _eq4(scope: Scope) -> Check:
    def residual(power: float) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            person = scope.person(setting)
            features = person.features
            K = features @ features.T
            left = (features * person.eigenvalues**power) @ features.T
            right = K @ (person.weights[:, None] * K)
            return np.abs(left - right).ravel() / np.abs(right).max()

        return Identity(check)

    settings = tuple(Setting(p.name, p.arrays) for p in scope.people)
    telling = tuple(s for s in settings if scope.person(s).rank > 1.01)
    return Check(
        printed=Form(residual(1.0), settings),
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


def _mean_cube(scope: Scope) -> Check:
    def exact(setting: Setting) -> float:
        person = scope.person(setting)
        f = np.asarray(person.arrays["f"], float)
        return mean_cube(person, f, setting.numbers["n"]) / float(np.sum(person.eigenvalues**3 * f**2))

    def one(setting: Setting) -> float:
        return 1.0

    people = rough(scope)
    settings = tuple(Setting(f"{p.name}, n={n:g}", p.arrays, {"n": n}) for p in people for n in (30.0, 300.0))
    return Check(
        corrected=Form(Expectation(sampled_cube, exact, exact), settings),
        controls=(Control("no bias", Expectation(sampled_cube, one, one), settings[::2], "term left out"),),
    )


# --------------------------------------------------------------------------------------------------- around Theorem 1


def _least_landmarks(person: Population) -> float:
    """Return the least n at which the printed Theorem 1 says something: its probability is positive for tau > ln 5."""
    return 6272 * person.kappa * person.rank**5 * math.log(5) / person.op_norm


def _remark(scope: Scope) -> Check:
    def small(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        del key
        return [(_least_landmarks(scope.person(setting)) / USED, always(1.0, "kpotufe2020, Remark after Theorem 1"))]

    def holds(least: float) -> Inequality:
        def sides(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            del key
            person = scope.person(setting)
            ratios = (
                person.op_norm / person.kappa,
                person.rank3 / person.rank,
                least / _least_landmarks(person),
            )
            return [(ratio, always(1.0, "kpotufe2020, Remark after Theorem 1")) for ratio in ratios]

        return Inequality(sides)

    settings = tuple(Setting(p.name, p.arrays) for p in scope.people)
    atom = tuple(s for s in settings if scope.person(s).rank < 1.01) or settings[:1]
    return Check(
        printed=Form(Inequality(small), settings),
        corrected=Form(holds(6272 * math.log(5)), settings),
        controls=(Control("at least 11,000 landmarks", holds(11_000.0), atom, "wrong factor"),),
    )


def _eq6(scope: Scope) -> Check:
    def sides(drop: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            """Every line of (6) and of the displays after it, for several samples and sketches; units of |Sigma|."""
            person = scope.person(setting)
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

    settings = tuple(Setting(p.name, p.arrays) for p in scope.people)
    return Check(
        printed=Form(sides(1.0), settings),
        controls=(Control("without the square of the deviation", sides(0.0), settings, "term left out"),),
    )


def _loose_ends(scope: Scope) -> Check:
    """The last paragraph of the proof, in units of |Sigma|^3."""

    def terms(setting: Setting) -> tuple[Population, float, float]:
        person = scope.person(setting)
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

    settings = tuple(Setting(p.name, p.arrays) for p in scope.people)
    return Check(
        printed=Form(Inequality(printed), settings),
        corrected=Form(corrected(4.0), settings),
        controls=(Control("3 s3 for 4 s3", corrected(3.0), settings, "wrong factor"),),
    )


# --------------------------------------------------------------------------------------------------- around Theorem 2


def squared_difference(key: jax.Array, population: Mapping[str, jax.Array], numbers: Any) -> jax.Array:
    """d <alpha, (V^T S - Theta) f>^2 over <f, Sigma^3 f> when both operators share their Gaussians."""
    f = population["f"]
    exact = jnp.vdot(f, op.exact_power(population, 3)(f), precision=op.HIGHEST)
    return trials.weak_difference_coupled(key, population, numbers) ** 2 / exact


def _thm2_text(scope: Scope) -> Check:
    def better(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        """Mean squares, over that of <alpha, V^T S f>: of its difference from <alpha, Theta f>, and from zero."""
        del key
        person = scope.person(setting)
        f = np.asarray(person.arrays["f"], float)
        image = mean_cube(person, f, setting.numbers["n"])
        own = float(np.sum(person.eigenvalues**3 * f**2))
        return [((image + own) / image, always(1.0, "kpotufe2020, text around Theorem 2"))]

    people = rough(scope)
    settings = tuple(Setting(f"{p.name}, n={n:g}", p.arrays, {"n": n}) for p in scope.people for n in (1e3, 1e6, 1e12))
    path = _path(people[0], (1e4, 1e5, 1e6, 1e7, 1e8))
    path = controls.changed(path, "d=1", numbers={"d": 1.0})
    return Check(
        printed=Form(Inequality(better), settings),
        corrected=Form(Rate(squared_difference, "n", -1.0), path),
        controls=(Control("a rate of n^-2", Rate(squared_difference, "n", -2.0), path, "wrong power"),),
    )


def standardised_difference(key: jax.Array, population: Mapping[str, jax.Array], numbers: Any) -> jax.Array:
    """|<alpha, V^T S f> - <alpha, Theta f>| over sqrt(2 <f, (Sigma^3 + Sigma_n^3) f> / d)."""
    first, second = trials.scales(key, population, numbers)
    normal = jax.random.normal(jax.random.fold_in(key, 1), (2,), first.dtype)
    return jnp.abs(first * normal[0] - second * normal[1]) / jnp.sqrt(2 * (first**2 + second**2))


def _eq9(scope: Scope) -> Check:
    def bound(factor: float) -> Callable[[Setting], Bound]:
        def evaluate(setting: Setting) -> Bound:
            tau = setting.numbers["tau"]
            return Bound(math.sqrt(tau), 1 - factor * math.exp(-tau), tau > 0, "kpotufe2020, (9)")

        return evaluate

    settings = scope.at(lambda p, tau: 20.0)
    return Check(
        printed=Form(Tail(standardised_difference, bound(2.0)), settings),
        corrected=Form(Tail(standardised_difference, bound(1.0)), settings),
        controls=(
            Control(
                "half of the bound",
                Tail(standardised_difference, controls.scaled(bound(2.0), lambda s: 0.5)),
                settings,
                "wrong factor",
            ),
        ),
    )
