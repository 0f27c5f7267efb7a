"""Plans of Kernel JL, for finitely many functions or for all of them."""

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np
import scipy  # its parts load when they are used first

from jaxkern import checks
from jaxkern.bounds import Bound, sketching
from jaxkern.bounds._bound import consistent
from jaxkern.plan._plan import (
    LARGEST,
    Plan,
    certifies,
    smallest,
    smallest_size,
    static_positive,
)


def kernel_jl(
    eps: float,
    delta: float,
    *,
    num_functions: int | None = None,
    kappa: float | None = None,
    op_norm: float | None = None,
    trace: float | None = None,
    trace3: float | None = None,
    hs_norm: float | None = None,
    num_landmarks: int | None = None,
    centered: bool = False,
) -> Plan:
    """Plan Kernel JL, for finitely many functions or for all of them.

    With `num_functions`: for so many functions f, which may depend on the landmarks but not on the sketch,
    | |V' S f|^2 - <f, Sigma_n^3 f> | <= eps <f, Sigma_n^3 f>. The ratio has the law chi2_d / d exactly. To keep the
    distances of N functions take num_functions = N (N - 1) / 2.

    With the population quantities: |<V' S g, V' S f> - <g, Sigma^3 f>| <= eps S^3 |f| |g| for all f and g, S = op_norm.

    Parameters
    ----------
    eps : relative error, in (0, 1).
    delta : failure probability, in (0, 1).
    num_functions : number of functions.
    kappa, op_norm, trace, trace3, hs_norm : sup K(x, x), |Sigma|_op, tr Sigma, tr Sigma^3, |Sigma|_HS; all or none.
    num_landmarks : n, where it is given. By default that of about the least n * num_features, within .1 %.
    centered : plan the centred sketch, with the five quantities of the centred features K_x - E K_X; for finitely many
        functions it takes as many rows as the other.

    Returns
    -------
    Plan with num_features = d, and num_landmarks where the population quantities are given.

    Raises
    ------
    ValueError
        If both or none of the two sets are given, if no kernel has the population quantities, such as a trace larger
        than kappa, or if no d suffices for num_landmarks.

    Notes
    -----
    The second kind is honest, and large: n grows like 18 kappa m / (S eps^2), where m is the smaller one of
    s log(4 / delta) and log(6 s / delta), s = trace / S. Source: kpotufe2020, Theorem 1; Theorems E and F of
    docs/theory/kpotufe2020.md, and (0) there for finitely many functions.

    Examples
    --------
    >>> from jaxkern import plan
    >>> plan.kernel_jl(0.3, 0.01, num_functions=1770).num_features < 700
    True
    """
    eps, delta = checks.open_unit("eps", eps), checks.open_unit("delta", delta)
    centered = checks.flag("centered", centered)
    population = {
        "kappa": kappa,
        "op_norm": op_norm,
        "trace": trace,
        "trace3": trace3,
        "hs_norm": hs_norm,
    }
    given = [name for name, value in population.items() if value is not None]
    if num_functions is not None:
        if given or num_landmarks is not None:
            raise ValueError(
                "num_functions must be given alone, without population quantities or num_landmarks"
            )
        count = checks.count("num_functions", num_functions)
        size, bound = smallest([lambda d: _functions(eps, count, d)], delta)
        return Plan(bound.source, bound.probability, num_features=size)
    missing = [name for name in population if name not in given]
    if missing:
        raise ValueError(
            f"{missing[0]} must be given: pass num_functions, or all of {', '.join(population)}; "
            f"got {', '.join(given) or 'none of them'}"
        )
    numbers = {name: static_positive(name, value) for name, value in population.items()}
    quantities = {name: float(value) for name, value in numbers.items()}
    for words, holds in consistent(numbers).items():
        if not holds:
            listed = ", ".join(f"{name}={x:g}" for name, x in quantities.items())
            raise ValueError(
                f"{words} must hold, as it does for every kernel, got {listed}; "
                "pass the norms of the covariance operator, those of K / n for a sample"
            )
    statements = _statements(delta, quantities, centered)
    if num_landmarks is not None:
        n = checks.count("num_landmarks", num_landmarks)
        able = [
            f
            for holds in statements
            if certifies((f := functools.partial(holds, eps, n))(LARGEST), delta)
        ]
        if not able:
            raise ValueError(
                f"num_landmarks must be larger: no number of features reaches eps={eps:g} with {n}"
            )
        size, bound = smallest(able, delta)
        return Plan(bound.source, bound.probability, num_features=size, num_landmarks=n)
    found: list[tuple[int, int, Bound]] = []
    for holds in statements:
        for share in (
            np.linspace(0.3, 0.98, 35) * eps
        ):  # what the landmarks alone may take
            least = smallest_size(lambda n: holds(share, n, LARGEST), delta)  # noqa: B023, called here
            if least is not None and certifies(holds(eps, least, LARGEST), delta):
                found.append(
                    (least, *smallest([functools.partial(holds, eps, least)], delta))
                )
    if not found:
        raise ValueError(
            f"eps must be larger: no statement reaches eps={eps:g} with fewer than 2^53 landmarks"
        )
    _, size, _ = min(found, key=lambda plan: plan[0] * plan[1])
    # As n was found for a share of eps, fewer landmarks may do with as many features.
    enough = [
        functools.partial(_with_features, holds, eps, size) for holds in statements
    ]
    n, bound = smallest(enough, delta)
    return Plan(bound.source, bound.probability, num_features=size, num_landmarks=n)


def _with_features(
    holds: Callable[[float, int, int], Bound], eps: float, d: int, n: int
) -> Bound:
    return holds(eps, n, d)


def _functions(eps: float, count: int, size: int) -> Bound:
    """Return the exact chi-square law of the squared length of one function, times the number of functions."""
    half = size / 2
    outside = scipy.special.gammaincc(half, half * (1 + eps)) + scipy.special.gammainc(
        half, half * (1 - eps)
    )
    source = "kpotufe2020, Kernel JL given the landmarks: chi-square, exact"
    return Bound(eps, float(1 - count * outside), True, source)


def _statements(
    delta: float, quantities: dict[str, float], centered: bool
) -> list[Callable[[float, int, int], Bound]]:
    """Return functions of eps, n and d that are the bounds for all functions, valid where they are at most eps S^3."""
    norm = quantities["op_norm"]
    cube = norm * norm * norm  # a power would raise where it leaves the range

    def statement(
        theorem: Callable[..., Bound], times: int
    ) -> Callable[[float, int, int], Bound]:
        tau = math.log((times + 2 * centered) / delta) + 1e-12

        def holds(eps: float, n: int, d: int) -> Bound:
            bound = theorem(**quantities, n=n, d=d, tau=tau, centered=centered)
            return dataclasses.replace(
                bound, valid=bound.valid and bound.value <= eps * cube
            )

        return holds

    return [
        statement(sketching.inner_products_every_n, 4),
        statement(sketching.inner_products_intrinsic, 6),
    ]
