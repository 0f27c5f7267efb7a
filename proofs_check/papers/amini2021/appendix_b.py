"""amini2021, Appendix B: details of Examples 4 to 6, and the mean of a Gaussian kernel; Theorem E."""

import itertools
import math
from functools import partial

import jax
import numpy as np
from scipy import stats

from jaxkern.bounds import concentration
from proofs_check.claim import (
    Check,
    Control,
    Form,
    Identity,
    Inequality,
    Law,
    Setting,
)
from proofs_check.papers.amini2021 import trials
from proofs_check.papers.amini2021.expectations import (
    mean_of_gaussian,
    radial_mean,
    still_kernel,
)
from proofs_check.papers.amini2021.setup import NOISE, TAU, Pairs, rescaled
from proofs_check.papers.shared import Grids, check_of, rng_of, wrong


def eigenvector_errors(
    key: jax.Array, cosine: float, length: float = 1.0, half: float = 0.5
) -> np.ndarray:
    """(44): eigenvalues, squared components, signs, and (1 - lambda_i) u_i = -alpha |v| v_i, where |v| is 1."""
    Q, _ = np.linalg.qr(rng_of(key).standard_normal((5, 2)))
    u = Q[:, 0]
    sine = math.sqrt(1 - cosine**2)
    v = cosine * u + sine * Q[:, 1]
    values, vectors = np.linalg.eigh(np.outer(u, u) + np.outer(v, v))
    lambdas = values[::-1][:2]
    x = vectors[:, ::-1][:, :2]
    signs = np.array([1, -1])
    expected = 1 + signs * abs(cosine)
    components = u @ x
    others = v @ x
    turned = math.copysign(1, cosine) * signs * components
    last = (1 - lambdas) * components + cosine * length * others
    squares = components**2 - half * expected
    errors = [lambdas - expected, squares, others - turned, last, values[:3]]
    return np.concatenate(errors)


def b1(grids: Grids) -> Check:
    # As printed the tildes are missing: |u| = 1 and |v| = 5.
    return check_of(
        Identity,
        grids["both"],
        wrong("0.6 for 1/2", "wrong factor", half=0.6),
        printed=partial(eigenvector_errors, length=5.0),
        corrected=eigenvector_errors,
    )


def _angle(name: str, factor: float, reused: float = 0.0) -> tuple[Setting, ...]:
    """Return an angle in 400 dimensions times a factor."""
    numbers = {"factor": factor, "reused": reused}
    return (Setting(f"{name}, d=400", None, numbers, {"dim": 400}),)


def lem6() -> Check:
    law = Law(trials.angle, stats.norm.cdf)
    root = math.sqrt(400)
    half = _angle("sqrt(d) / 2", root / 2)
    reused = _angle("sqrt(d), twice", root, reused=1.0)
    return Check(
        printed=Form(law, _angle("sqrt(2 d)", math.sqrt(2 * 400))),
        corrected=Form(law, _angle("sqrt(d)", root)),
        controls=(
            Control("half of the factor", law, half, "wrong factor"),
            Control("one direction twice", law, reused, "reused key"),
        ),
    )


def beta_law(shape: float) -> Law:
    """Return the statement that the inner product, halved and moved to [0, 1], has the law Beta(shape, shape)."""
    return Law(
        trials.angle, lambda x: stats.beta.cdf(np.asarray(x) + 0.5, shape, shape)
    )


def lem6_beta(grids: Grids) -> Check:
    settings = grids["printed"]
    d = settings[0].shapes["dim"]
    law = beta_law((d - 1) / 2)
    wrong = beta_law(d / 2)
    return Check(
        printed=Form(law, settings),
        controls=(
            Control("Beta(d / 2, d / 2)", wrong, settings, "n for n - 1"),
            Control("one direction twice", law, grids["reused"], "reused key"),
        ),
    )


def largest_gaps(d: int, constant: float = 1.0) -> Pairs:
    """The largest gap over radii, for every cosine, in units of the bound."""
    a = np.linspace(-1, 1, 401)
    right = concentration.radial_mean_gap(noise=NOISE, lengthscale=TAU, dim=d)
    claimed = rescaled(right, constant / right.value)
    gaps = []
    for r, q in itertools.product((0.01, 0.5, 1.0, 3.0, 5.0), repeat=2):
        gap = radial_mean(a, r, q, NOISE, TAU, d) - still_kernel(a, r, q, TAU)
        gaps.append(np.abs(gap))
    return [(float(gap / right.value), claimed) for gap in np.max(gaps, axis=0)]


def b3(grids: Grids) -> Check:
    smaller = wrong("nine tenths of C", "wrong factor", constant=0.9)
    return check_of(Inequality, grids["corrected"], smaller, corrected=largest_gaps)


def gaussian_mean_error(
    m: float, t: float, power: int = 1, square: int = 2
) -> np.ndarray:
    """The mean of exp(-Z^2 / 2), Z ~ N(m, t^2), by the formula over the one by quadrature, minus 1."""
    s = math.sqrt(1 + t**square)
    formula = s**-power * math.exp(-(m**2) / (2 * s**2))
    mean = mean_of_gaussian(np.array([m]), t**2, 1.0)
    return np.array([formula / mean - 1])


def lem7(grids: Grids) -> Check:
    return check_of(
        Identity,
        grids["printed"],
        wrong("s^-2 for s^-1", "wrong power", power=2),
        wrong("1 + t for 1 + t^2", "swapped constants", square=1),
        printed=gaussian_mean_error,
    )
