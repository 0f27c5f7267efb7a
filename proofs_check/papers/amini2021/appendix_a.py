"""amini2021, Appendix A.3: the Hanson-Wright inequality and the steps of its proof; Theorem B."""

import math

import jax
import numpy as np

from jaxkern.bounds import concentration
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
from proofs_check.papers.amini2021 import laws, trials
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.amini2021.setup import (
    KAPPA,
    PROVED,
    Inputs,
    form_shape,
    inner_products,
    with_form,
)
from proofs_check.papers.shared import (
    always,
    bound_of,
    grid,
    lines,
    listed,
    parametrized,
    rng_of,
)


def _traces() -> Check:
    def residual(*, symmetric: bool) -> Identity:
        def errors(rng: np.random.Generator) -> list[float]:
            n, d = 5, 3
            A, B = rng.standard_normal((2, n, n))
            M, centred = rng.standard_normal((2, d, n))
            S = (A + A.T) / 2
            traces = [
                np.trace(S @ B) - np.trace(S @ B.T),
                np.trace(S @ B) - np.trace(A @ (B + B.T) / 2),
            ]
            z = rng.standard_normal(n)
            gamma = np.kron(z, np.eye(d))
            X = M + centred
            stacked = gamma @ X.T.ravel() - X @ z
            # Z(X) - Z(centred) - Z(M) is what is linear in the centred part.
            left = sum(
                sign * np.trace(A.T @ Y.T @ Y)
                for sign, Y in ((1, X), (-1, centred), (-1, M))
            )
            R = M @ (S if symmetric else A)
            linear = left - 2 * np.trace(R.T @ centred)
            form = (
                np.sum((X @ z) ** 2) - np.sum((centred @ z) ** 2) - np.sum((M @ z) ** 2)
            )
            crossed = form - 2 * (M @ z) @ (centred @ z)
            return [*traces, *stacked, linear, crossed]

        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """Return the errors of four draws: in one, S and A may differ by less than float32 tells."""
            rng = rng_of(key)
            return np.array([errors(rng) for _ in range(4)]) / 100

        return Identity(check)

    settings = (Setting("random matrices, n=5, d=3"),)
    return Check(
        printed=Form(residual(symmetric=True), settings),
        controls=(
            Control(
                "R = M A", residual(symmetric=False), settings, "transpose for adjoint"
            ),
        ),
    )


def _theorem_6(inputs: Inputs) -> Check:
    n, d = 12, 16
    matrices = {"random": np.random.default_rng(6).standard_normal((n, n))}
    matrices["rank one"] = np.outer(np.arange(1.0, n + 1), np.ones(n)) / n

    def settings(level: float) -> tuple[Setting, ...]:
        return tuple(
            with_form(
                inner_products(n, d, norm),
                A,
                math.log(level / delta),
                delta,
                f"A {name}, ",
            )
            for norm in (0.0, 10.0)
            for name, A in matrices.items()
            for delta in inputs.deltas
        )

    bound = bound_of(concentration.hanson_wright_gaussian)
    shape = form_shape(
        lambda n: n["dim"] * n["frobenius"] ** 2 + (n["mean_frobenius"] / KAPPA) ** 2,
        lambda n: n["op_norm"],
    )
    trial, count = trials.form_error, len(inputs.deltas)
    unnamed, named = settings(4), settings(2)
    tenth = Calibrated(trial, shape, 0.0, PROVED / 10)
    quarter = Tail(trial, lambda setting: laws.rescaled(bound(setting), 0.25))
    reused = tuple(
        Setting(s.name, s.data, {**s.numbers, "reused": 1.0}, s.shapes)
        for s in named[-count:]
    )
    return Check(
        printed=Form(Calibrated(trial, shape, 0.0, PROVED), unnamed),
        corrected=Form(Tail(trial, bound), named),
        controls=(
            Control("a tenth of the constant", tenth, unnamed, "wrong factor"),
            Control("a quarter of it", quarter, named[:count], "wrong factor"),
            Control(
                "one draw of the noise for all points",
                Tail(trial, bound),
                reused,
                "reused key",
            ),
        ),
    )


def _moment_generating() -> Check:
    beta = np.array([1.0, 0.7, 0.4, -0.5])
    square = float(np.sum(beta**2))
    source = "amini2021, proof of Theorem 6"

    def printed(setting: Setting) -> Pairs:
        """log E e^(s Z) over s tr A for A with the eigenvalues 1, .7, .4, .5 and normal X, at s = 1 / (4 C1)."""
        constant, positive = setting.numbers["C1"], np.abs(beta)
        s = positive.sum() / (4 * constant * square)
        left = -float(np.sum(np.log1p(-2 * s * positive))) / 2
        unit = s * positive.sum()
        return [(left / unit, always(constant * s**2 * square / unit, source))]

    @parametrized(Inequality)
    def sides(constant: float = 2.0) -> Pairs:
        """log E e^(s (Z - E Z)) over s^2 |A|_F^2 for |s| <= 1 / (4 |A|)."""
        slopes = np.linspace(-0.25, 0.25, 40)
        logs = (
            float(np.sum(-np.log1p(-2 * s * beta) / 2 - s * beta)) / (s**2 * square)
            for s in slopes
        )
        return lines(((log, constant) for log in logs), source)

    settings = (Setting("eigenvalues 1, .7, .4, -.5"),)
    constants = grid("C1={C1:g}", C1=(1.0, 100.0, 10_000.0))
    return Check(
        printed=Form(Inequality(printed), constants),
        corrected=Form(sides(), settings),
        controls=(Control("1/2 for 2", sides(constant=0.5), settings, "wrong factor"),),
    )


def _split() -> Check:
    @parametrized(Exact)
    def probability(setting: Setting, multiple: float) -> tuple[float, float]:
        """X = b + w with w = -m, 0 or m of variance one, A = 1: all three probabilities by the law of w."""
        m, s = setting.numbers["m"], setting.numbers["s"]
        b = 0.9 * s / m
        w = np.array([-m, 0.0, m])
        chances = np.array([0.5 / m**2, 1 - 1 / m**2, 0.5 / m**2])
        Y, T = w**2 - 1, b * w
        left = chances @ (np.abs(Y + 2 * T) >= multiple * s)
        right = chances @ (np.abs(Y) >= s) + chances @ (np.abs(T) >= s)
        return laws.log_of(float(left)), laws.log_of(float(right))

    settings = listed(
        "three values, m={m:g}", "m s", [(m, (m**2 - 1) / 0.9) for m in (1.5, 2.0, 4.0)]
    )
    return Check(
        printed=Form(probability(multiple=2.0), settings),
        corrected=Form(probability(multiple=3.0), settings),
        controls=(
            Control("2.5 for 3", probability(multiple=2.5), settings, "wrong factor"),
        ),
    )


def _lemma_5() -> Check:
    v, alpha = math.sqrt(8 * (math.log(2) - 0.5)), 2.0

    @parametrized(Exact)
    def probability(
        setting: Setting, power: float = 1.0, as_printed: bool = False
    ) -> tuple[float, float]:
        """X + 1 has the exponential law: log E exp(s X) = -s - log(1 - s), and v is best for |s| <= 1/2."""
        far = setting.numbers["t"]
        s = np.linspace(-0.5, 0.5, 1001)
        if not np.all(-s - np.log1p(-s) <= (s * v) ** 2 / 2 + 1e-12):
            raise ValueError("v is too small for the exponential law")
        outside = math.exp(-1 - far) + max(0.0, -math.expm1(far - 1))
        right = concentration.sub_exponential(
            t=far, v=v, alpha=alpha, as_printed=as_printed
        )
        return math.log(outside), math.log(2) + power * math.log(
            (1 - right.probability) / 2
        )

    settings = grid("exponential law, t={t:g}", t=(0.5, 1.0, 2.0, 4.0, 8.0))
    return Check(
        printed=Form(probability(as_printed=True), settings),
        corrected=Form(probability(), settings),
        controls=(
            Control(
                "three times the exponent",
                probability(power=3.0),
                settings,
                "wrong factor",
            ),
        ),
    )
