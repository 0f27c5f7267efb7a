"""amini2021, Appendix B: details of Examples 4 to 6, and the mean of a Gaussian kernel; Theorem E."""

import itertools
import math

import jax
import numpy as np
from scipy import stats

from jaxkern.bounds import concentration
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Law, Setting
from proofs_check.papers.amini2021 import laws, trials
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.amini2021.setup import NOISE, TAU
from proofs_check.papers.shared import grid, parametrized, rng_of


def _eigenvectors() -> Check:
    def residual(*, unit: bool, half: float = 0.5) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """(44): eigenvalues, squared components, signs, and (1 - lambda_i) u_i = -alpha v_i."""
            a = setting.numbers["cosine"]
            Q, _ = np.linalg.qr(rng_of(key).standard_normal((5, 2)))
            u, v = Q[:, 0], a * Q[:, 0] + math.sqrt(1 - a**2) * Q[:, 1]
            values, vectors = np.linalg.eigh(np.outer(u, u) + np.outer(v, v))
            lambdas, x = values[::-1][:2], vectors[:, ::-1][:, :2]
            ui, vi = u @ x, v @ x
            expected = 1 + np.array([1, -1]) * abs(a)
            signs = math.copysign(1, a) * np.array([1, -1])
            lengths = (
                (1.0, 1.0) if unit else (1.0, 5.0)
            )  # |u| and |v|, where the tildes are missing
            last = (1 - lambdas) * lengths[0] * ui + a * lengths[1] * vi
            return np.concatenate(
                [
                    lambdas - expected,
                    ui**2 - half * expected,
                    vi - signs * ui,
                    last,
                    values[:3],
                ]
            )

        return Identity(check)

    settings = grid("alpha={cosine:g}", cosine=(0.3, -0.6, 0.95))
    return Check(
        printed=Form(residual(unit=False), settings),
        corrected=Form(residual(unit=True), settings),
        controls=(
            Control(
                "0.6 for 1/2", residual(unit=True, half=0.6), settings, "wrong factor"
            ),
        ),
    )


def _angles(
    name: str, dim: int, factor: float, *, reused: bool = False
) -> tuple[Setting, ...]:
    return (
        Setting(
            f"{name}, d={dim}",
            None,
            {"factor": factor, "reused": float(reused)},
            {"dim": dim},
        ),
    )


def _lemma_6() -> Check:
    d, law = 400, Law(trials.angle, stats.norm.cdf)
    root = math.sqrt(d)
    return Check(
        printed=Form(law, _angles("sqrt(2 d)", d, math.sqrt(2 * d))),
        corrected=Form(law, _angles("sqrt(d)", d, root)),
        controls=(
            Control(
                "half of the factor",
                law,
                _angles("sqrt(d) / 2", d, root / 2),
                "wrong factor",
            ),
            Control(
                "one direction twice",
                law,
                _angles("sqrt(d), twice", d, root, reused=True),
                "reused key",
            ),
        ),
    )


def _beta() -> Check:
    d = 2

    def law(shape: float) -> Law:
        return Law(
            trials.angle, lambda x: stats.beta.cdf(np.asarray(x) + 0.5, shape, shape)
        )

    true, settings = law((d - 1) / 2), _angles("angles", d, 0.5)
    return Check(
        printed=Form(true, settings),
        controls=(
            Control("Beta(d / 2, d / 2)", law(d / 2), settings, "n for n - 1"),
            Control(
                "one direction twice",
                true,
                _angles("reused", d, 0.5, reused=True),
                "reused key",
            ),
        ),
    )


def _gap() -> Check:
    @parametrized(Inequality)
    def sides(setting: Setting, constant: float = 1.0) -> Pairs:
        """The largest gap over radii, for every cosine, in units of the bound."""
        d, a = setting.shapes["d"], np.linspace(-1, 1, 401)
        right = concentration.radial_mean_gap(noise=NOISE, lengthscale=TAU, dim=d)
        gaps = [
            np.abs(
                laws.radial_mean(a, r, q, NOISE, TAU, d)
                - laws.still_kernel(a, r, q, TAU)
            )
            for r, q in itertools.product((0.01, 0.5, 1.0, 3.0, 5.0), repeat=2)
        ]
        return [
            (float(x / right.value), laws.rescaled(right, constant / right.value))
            for x in np.max(gaps, 0)
        ]

    settings = grid("radii from .01 to 5, d={d}", shapes="d", d=(2, 10, 1000))
    return Check(
        corrected=Form(sides(), settings),
        controls=(
            Control("nine tenths of C", sides(constant=0.9), settings, "wrong factor"),
        ),
    )


def _lemma_7() -> Check:
    @parametrized(Identity)
    def residual(setting: Setting, power: int = 1, square: int = 2) -> np.ndarray:
        m, t = setting.numbers["m"], setting.numbers["t"]
        s = math.sqrt(1 + t**square)
        claimed = s**-power * math.exp(-(m**2) / (2 * s**2))
        return np.array([claimed / laws.mean_of_gaussian(np.array([m]), t**2, 1.0) - 1])

    settings = grid("m={m:g}, t={t:g}", m=(0.0, 0.7, -2.5), t=(0.1, 1.0, 1.5))
    return Check(
        printed=Form(residual(), settings),
        controls=(
            Control("s^-2 for s^-1", residual(power=2), settings, "wrong power"),
            Control(
                "1 + t for 1 + t^2", residual(square=1), settings, "swapped constants"
            ),
        ),
    )
