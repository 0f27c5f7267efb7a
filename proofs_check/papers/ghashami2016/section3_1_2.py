"""ghashami2016, Section 3.1.2: the error of random features in one direction; Theorem 3.1, also at tiny delta."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from scipy import stats

from jaxkern import features, kernels
from jaxkern.bounds import Bound
from jaxkern.bounds import fourier as bounds
from proofs_check.claim import Calibrated, Check, Control, Exact, Form, Setting, Tail
from proofs_check.engine import tilting
from proofs_check.papers.ghashami2016 import trials
from proofs_check.papers.ghashami2016.setup import (
    PAIRED,
    Inputs,
    badly_scaled,
    two_sided,
)
from proofs_check.papers.shared import (
    COPIES,
    LOG2,
    bound_of,
    parametrized,
    tail_of_mean,
    valid,
)

UNIFORM = tilting.UniformCosine()


def _hoeffding() -> Check:
    @parametrized(Exact)
    def holds(setting: Setting, factor: float) -> tuple[float, float]:
        r, step, alpha = (setting.numbers[name] for name in ("r", "step", "alpha"))
        # M = step * Bin(r, 1/2): P(|M - E M| > alpha) = 2 P(Bin > r / 2 + alpha / step).
        above = math.floor(r / 2 + alpha / step + 1e-9)
        log_tail = math.log(2) + float(stats.binom(r, 0.5).logsf(above))
        return log_tail, math.log(2) - factor * alpha**2 / (r * step**2)

    def coins(r: int, step: float, alpha: float) -> Setting:
        name = f"{r} coins of 0 or {step:.3g}, alpha={alpha:g}"
        return Setting(name, numbers={"r": r, "step": step, "alpha": alpha})

    small = (coins(100, 0.02, 0.2), coins(100, 0.02, 0.4))
    # As in Theorem 3.1: r = m, Delta = 2 n / m and alpha = eps n.
    used = (
        coins(265, 200 / 265, 10.0),
        coins(1060, 200 / 1060, 10.0),
        coins(400, 0.5, 60.0),
    )
    return Check(
        printed=Form(holds(2.0), small),
        corrected=Form(holds(2.0), small + used),
        controls=(
            Control("4 for 2 in the exponent", holds(4.0), used[2:], "wrong factor"),
        ),
    )


def _deviation(
    key: jax.Array, population: Any, numbers: Any, *, rows: int
) -> jax.Array:
    """| |Phi' x|^2 - |Z' x|^2 | / n for n copies of a point and x = (1, ..., 1) / sqrt(n), by the library.

    That is |1 - |z|^2| for the features z of the point.
    """
    del population
    dtype = jnp.result_type(float)
    phi = features.shifted_fourier(
        key, kernels.Gaussian(1.0), 1, num_frequencies=rows, dtype=dtype
    )
    return jnp.abs(1 - numbers["scale"] * jnp.sum(phi(jnp.zeros((1, 1), dtype)) ** 2))


def _thm3_1(inputs: Inputs) -> Check:
    def copies(eps: float, delta: float) -> Setting:
        m = math.ceil(math.log(2 / delta) / (0.823 * eps**2))
        name = f"copies of a point, eps={eps:g}, delta={delta:g}, m={m}"
        return Setting(
            name,
            numbers={"eps": eps, "delta": delta, "m": float(m), "scale": 1},
            shapes={"rows": m},
        )

    def shape(setting: Setting) -> Bound:
        delta, m = setting.numbers["delta"], setting.numbers["m"]
        return Bound(
            math.sqrt(math.log(1 / delta) / m),
            1 - delta,
            delta <= 0.5,
            "ghashami2016, Theorem 3.1",
        )

    tail = Tail(_deviation, bound_of(bounds.quadratic_form_shifted, num_features="m"))
    settings = tuple(
        copies(eps, delta)
        for eps in ((0.1, 0.2) if inputs.full else (0.2,))
        for delta in inputs.deltas
    )
    return Check(
        printed=Form(Calibrated(_deviation, shape, 1.06, 1.56), settings),
        corrected=Form(tail, settings),
        controls=badly_scaled(tail, settings[:1], settings[0].numbers["m"]),
    )


def _quadratic_form_paired(inputs: Inputs) -> Check:
    tail = Tail(
        trials.form_error,
        bound_of(bounds.quadratic_form_paired, num_frequencies="size"),
    )
    settings = inputs.features(PAIRED, 1 / 2, 0, two_sided)
    return Check(
        corrected=Form(tail, settings),
        controls=badly_scaled(tail, settings[:1], PAIRED["size"]),
    )


@parametrized(tail_of_mean)
def _rare(setting: Setting, rate: float, as_printed: bool = False) -> float:
    """Return the statement that a deviation of eps has a probability of at most 2 exp(-rate eps^2 m)."""
    eps, m = setting.numbers["eps"], setting.numbers["m"]
    valid(
        bounds.quadratic_form_shifted(eps=eps, num_features=m, as_printed=as_printed),
        setting,
    )
    return LOG2 - rate * eps**2 * m


def _deviations(logs: Sequence[float], rate: float) -> tuple[Setting, ...]:
    """Return settings for |mean cos U_i| >= eps: the deviation of a quadratic form for copies of a point."""
    settings = []
    for log in logs:
        eps = math.sqrt((log + LOG2) / (COPIES * rate))
        name = f"copies of a point, eps={eps:.3g}, delta=e^-{log:g}, m={COPIES}"
        numbers = {"eps": eps, "m": float(COPIES)}
        settings.append(
            tilting.sums(
                name, UNIFORM, copies=COPIES, above=eps, below=-eps, numbers=numbers
            )
        )
    return tuple(settings)


def _thm3_1_rare(inputs: Inputs) -> Check:
    settings = _deviations(inputs.logs, 0.823)
    return Check(
        printed=Form(_rare(2.0, as_printed=True), _deviations(inputs.logs, 2.0)),
        corrected=Form(_rare(0.823), settings),
        controls=(
            Control(
                "1.5 for 0.823 in the exponent", _rare(1.5), settings, "wrong factor"
            ),
        ),
    )


def _quadratic_form_shifted(inputs: Inputs) -> Check:
    def switched(p: float, eps: float) -> Setting:
        name = f"two points, |s|^2 = n with probability {p:g}, eps={eps:g}, m={COPIES}"
        numbers, law = {"eps": eps, "m": float(COPIES)}, tilting.SwitchedCosine(p)
        return tilting.sums(
            name, law, copies=COPIES, above=p + eps, below=p - eps, numbers=numbers
        )

    settings = tuple(switched(*at) for at in ((0.75, 0.25), (0.7, 0.5), (0.5335, 0.82)))
    return Check(
        corrected=Form(_rare(0.823), settings),
        controls=(
            Control("8/9 for .823", _rare(8 / 9), settings[-1:], "wrong factor"),
        ),
    )


def _copies(inputs: Inputs) -> Check:
    settings = _deviations(inputs.logs, 1.0)
    smaller = tuple(s for s in settings if s.numbers["eps"] < 0.6)[-1:]
    return Check(
        corrected=Form(_rare(1.0), settings),
        controls=(
            Control(
                "one and a half times the exponent", _rare(1.5), smaller, "wrong factor"
            ),
        ),
    )
