"""How many features, landmarks or sketch rows a target (eps, delta) needs: the bounds, inverted.

A planner returns the smallest sizes that a proved statement certifies, over all the statements it knows, and names the
statement. It runs on the host in float64, by bisection over whole numbers, and never looks at data. What no statement
certifies is refused.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy  # its parts load when they are used first

from jaxkern import checks, kernels
from jaxkern.bounds import Bound, sketching
from jaxkern.bounds import fourier as _fourier
from jaxkern.bounds import streaming as _streaming
from jaxkern.bounds.fourier import _given

__all__ = ["Plan", "fourier", "kernel_jl", "memory", "nystrom", "smallest_size", "streaming"]

_ANY_NUMBER = 1e300
"""Stands for a number of points that is not known: no statement that depends on it helps."""

_LARGEST = 2**53
"""Sizes beyond this are refused: they are not whole numbers in float64 any more."""


_EDGES = np.concatenate([[0.0], np.geomspace(0.05**2, 6.0**2, 255)])
"""Squared distances to which larger ones are lowered where there are many; the bound changes between them only."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """Sizes, and the statement that certifies them.

    The field source names it, as in `Bound`; probability is that with which the target is met, at least 1 - delta; and
    proved is False where a size rests on a numerical minimum, which none does at present. Sizes are in num_frequencies,
    num_features, num_landmarks and sketch_size, None where they do not apply; what `memory` counts is in map_bytes,
    feature_bytes, sketch_bytes and total_bytes.
    """

    source: str
    probability: float = 1.0
    proved: bool = True
    num_frequencies: int | None = None
    num_features: int | None = None
    num_landmarks: int | None = None
    sketch_size: int | None = None
    map_bytes: int | None = None
    feature_bytes: int | None = None
    sketch_bytes: int | None = None
    total_bytes: int | None = None


def fourier(
    eps: float,
    delta: float,
    *,
    num_points: int | None = None,
    dim: int | None = None,
    diameter: float | None = None,
    squared_distances: Any = None,
    pairs: Any = None,
    kernel: Any = None,
) -> Plan:
    """Plan paired Fourier features of the Gaussian kernel that keep kernel distances to a relative error.

    With probability at least 1 - delta over the draw, |Dhat / D - 1| <= eps, where D is the kernel distance and Dhat
    the distance of the features: for all pairs of any `num_points` points of any dimension; for *all* points of
    R^dim at distance <= diameter; for pairs of known distances; or, when several are given, by the cheapest of them.
    Coincident points have no error.

    Parameters
    ----------
    eps : relative error, in (0, 1).
    delta : failure probability, in (0, 1).
    num_points : number of points, fixed before the draw.
    dim, diameter : dimension of the points, and their largest distance in units of the lengthscale; both or neither.
    squared_distances, pairs : (b,) arrays, both or neither: pairs[i] pairs of points are at a squared distance of at
        least squared_distances[i], over the squared lengthscale, as in a histogram with its lower edges.
    kernel : a `kernels.Gaussian`, or None for it. Others are refused: the theorem is about Gaussian frequencies.

    Returns
    -------
    Plan with num_frequencies, and num_features = 2 num_frequencies.

    Raises
    ------
    ValueError
        If eps, delta, a size or an array is out of range, none of the three is given, or the kernel is not Gaussian.

    Notes
    -----
    The plan is for `features.paired_fourier`; `shifted_fourier` and `orthogonal_fourier` are not covered. For a tight
    cluster of n = 100 or 1,000 orthonormal points, eps in {.1, .2, .3} and delta = .05, it is at most 1.12 times the
    smallest number that simulation finds. What is bounded is Dhat / D, within [1 - eps, 1 + eps]; D / Dhat is then
    within [1 / (1 + eps), 1 / (1 - eps)].

    References
    ----------
    chen2016, Theorems 4.1 and 5.1; Theorems B, C and F of docs/theory/chen2016.md.

    Examples
    --------
    >>> from jaxkern import plan
    >>> chosen = plan.fourier(0.2, 0.05, num_points=1000)
    >>> chosen.num_features == 2 * chosen.num_frequencies
    True
    """
    eps, delta = checks.open_unit("eps", eps), checks.open_unit("delta", delta)
    if kernel is not None and not isinstance(kernel, kernels.Gaussian):
        raise ValueError(
            f"kernel must be kernels.Gaussian, got {type(kernel).__name__}; relative errors of kernel distances are "
            "proved for Gaussian frequencies only"
        )
    if (dim is None) != (diameter is None):
        raise ValueError(f"dim and diameter must be given together, got dim={dim!r} and diameter={diameter!r}")
    if (squared_distances is None) != (pairs is None):
        raise ValueError("squared_distances and pairs must be given together, got one of them")
    if num_points is None and dim is None and pairs is None:
        raise ValueError("num_points must be given, or dim and diameter, or squared_distances and pairs; got none")
    certificates: list[Callable[[int], Bound]] = []
    if num_points is not None:
        n = float(checks.count("num_points", num_points))
        statements = [_fourier.relative_distances_closed_form]
        if eps >= 1e-4:  # below, rounding would decide
            statements += [_fourier.relative_distances, _fourier.relative_distances_sharp]
        for statement in statements:
            certificates.append(functools.partial(_pairs, statement, eps, n))
    if dim is not None:
        d = checks.count("dim", dim)
        _positive("diameter", diameter)
        certificates.append(_ball_certificate(eps, delta, d, float(diameter)))  # type: ignore[arg-type]
    if pairs is not None:
        certificates.append(_given_certificate(eps, squared_distances, pairs))
    size, bound = _smallest(certificates, delta)
    return Plan(bound.source, bound.probability, num_frequencies=size, num_features=2 * size)


def streaming(
    eps: float,
    delta: float,
    *,
    num_points: int | None = None,
    sketch_size: int | None = None,
) -> Plan:
    """Plan streaming kernel PCA of paired Fourier features with |G - Gtilde|_2 <= eps n, for any kernel that has them.

    G is the Gram matrix of the n points of the stream and Gtilde that of their projected features. The sketch takes
    1 / (sketch_size + 1) of eps, the features the rest.

    Parameters
    ----------
    eps : error relative to n, in (0, 1).
    delta : failure probability, in (0, 1).
    num_points : length of the stream, where known; it helps only when it is small, and never has to be known.
    sketch_size : rows of the sketch, where they are given. By default those with the least sketch_size * num_features.

    Returns
    -------
    Plan with num_frequencies, num_features = 2 num_frequencies and sketch_size. Keep all sketch_size components.

    Raises
    ------
    ValueError
        If eps or delta is not in (0, 1), a size is not a whole number of at least 1, or sketch_size + 1 <= 1 / eps.

    Notes
    -----
    The plan is for `features.streaming_pca(features.paired_fourier(...), sketch_size=...)` with the default sketch,
    uncentred, in exact arithmetic. The state reports what the sketch lost, which is usually far less.

    References
    ----------
    ghashami2016, Theorem 3.2; Theorem E of docs/theory/ghashami2016.md.

    Examples
    --------
    >>> from jaxkern import plan
    >>> plan.streaming(0.1, 0.01).sketch_size > 10
    True
    """
    eps, delta = checks.open_unit("eps", eps), checks.open_unit("delta", delta)
    n = _ANY_NUMBER if num_points is None else float(checks.count("num_points", num_points))
    if eps < 1 / _LARGEST:
        raise ValueError(f"eps must be larger: no size below 2^53 is certified, got {eps:g}")
    least = math.floor(1 / eps) + 1  # leaves something for the features, also where 1 / eps is a whole number
    if sketch_size is not None:
        sketch_size = checks.count("sketch_size", sketch_size)
        if eps - 1 / (sketch_size + 1) <= 0:
            raise ValueError(
                f"sketch_size must exceed 1 / eps - 1 = {1 / eps - 1:g}, as the sketch alone may lose "
                f"n / (sketch_size + 1), got {sketch_size}"
            )
        candidates = [sketch_size]
    else:
        candidates = sorted({round(x) for x in np.geomspace(least, 8 * least, 200)})
    best: tuple[int, int, int, Bound] | None = None
    for rows in candidates:
        size, bound = _smallest([functools.partial(_stream, eps, n, rows)], delta)
        if best is None or size * rows < best[0]:
            best = (size * rows, size, rows, bound)
    assert best is not None
    _, size, rows, bound = best
    if sketch_size is None:  # fewer rows may do for the same features
        rows, bound = _smallest([lambda r: _stream(eps, n, r, size)], delta)
    return Plan(bound.source, bound.probability, num_frequencies=size, num_features=2 * size, sketch_size=rows)


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
    num_landmarks : n, where it is given. By default the n with the least n * num_features.

    Returns
    -------
    Plan with num_features = d, and num_landmarks where the population quantities are given.

    Raises
    ------
    ValueError
        If an argument is out of range, both or none of the two sets are given, or no d suffices for num_landmarks.

    Notes
    -----
    The second kind is honest, and large: n grows like 1,568 kappa s log(4 / delta) / (S eps^2) with s = trace / S.

    References
    ----------
    kpotufe2020, Theorem 1; Theorems B and C of docs/theory/kpotufe2020.md, and (0) there for finitely many functions.

    Examples
    --------
    >>> from jaxkern import plan
    >>> plan.kernel_jl(0.3, 0.01, num_functions=1770).num_features < 700
    True
    """
    eps, delta = checks.open_unit("eps", eps), checks.open_unit("delta", delta)
    population = {"kappa": kappa, "op_norm": op_norm, "trace": trace, "trace3": trace3, "hs_norm": hs_norm}
    given = [name for name, value in population.items() if value is not None]
    if num_functions is not None:
        if given or num_landmarks is not None:
            raise ValueError("num_functions must be given alone, without population quantities or num_landmarks")
        count = checks.count("num_functions", num_functions)
        size, bound = _smallest([lambda d: _functions(eps, count, d)], delta)
        return Plan(bound.source, bound.probability, num_features=size)
    missing = [name for name in population if name not in given]
    if missing:
        raise ValueError(
            f"{missing[0]} must be given: pass num_functions, or all of {', '.join(population)}; "
            f"got {', '.join(given) or 'none of them'}"
        )
    words = {name: float(_positive(name, value)) for name, value in population.items()}
    if num_landmarks is not None:
        n = checks.count("num_landmarks", num_landmarks)
        found = _rows(eps, delta, words, float(n))
        if found is None:
            raise ValueError(f"num_landmarks must be larger: no number of features reaches eps={eps:g} with {n}")
        return Plan(found[1].source, found[1].probability, num_features=found[0], num_landmarks=n)
    # The n-term of the error alone is 28 S^2 sqrt(2 kappa trace tau / n); let it have a share of eps.
    scale = 1568 * words["kappa"] * words["trace"] * math.log(4 / delta) / (words["op_norm"] * eps) ** 2
    best: tuple[float, int, int, Bound] | None = None
    for share in np.linspace(0.3, 0.98, 69):
        n = math.ceil(scale / share**2)
        if n > _LARGEST:
            continue
        found = _rows(eps, delta, words, float(n))
        if found is not None and (best is None or n * found[0] < best[0]):
            best = (float(n) * found[0], n, found[0], found[1])
    if best is None:
        raise ValueError(f"eps must be larger: no statement reaches eps={eps:g} with fewer than 2^53 landmarks")
    return Plan(best[3].source, best[3].probability, num_features=best[2], num_landmarks=best[1])


def nystrom(eps: float, delta: float) -> Plan:
    """Plan Nystrom of full rank with |G - Gbar|_2 <= eps n sup K(x, x), for landmarks drawn uniformly from the points.

    Parameters
    ----------
    eps : error relative to n sup K(x, x), in (0, 1).
    delta : failure probability, in (0, 1).

    Returns
    -------
    Plan with num_landmarks, whatever the kernel and the number n of points. Where n is smaller, take all points: the
    error is zero.

    Raises
    ------
    ValueError
        If eps or delta is not in (0, 1).

    Notes
    -----
    The statement is about `landmarks.uniform` and `features.nystrom` without a rank, in exact arithmetic. No statement
    here says anything better of other landmarks (leverage scores, pivoted Cholesky, k-means++) or anything of Nystrom
    cut to a rank; the trace residual of a fitted map does, afterwards.

    References
    ----------
    Theorem G of docs/theory/ghashami2016.md.

    Examples
    --------
    >>> from jaxkern import plan
    >>> plan.nystrom(0.1, 0.01).num_landmarks
    431
    """
    eps, delta = checks.open_unit("eps", eps), checks.open_unit("delta", delta)
    size, bound = _smallest([lambda c: _streaming.nystrom_spectral(eps=eps, num_landmarks=c)], delta)
    return Plan(bound.source, bound.probability, num_landmarks=size)


def memory(
    *,
    dim: int,
    num_features: int,
    num_points: int = 0,
    num_landmarks: int | None = None,
    sketch_size: int | None = None,
    itemsize: int = 4,
) -> Plan:
    """Count the bytes of a feature map, of the features of a dataset, and of a stream.

    Parameters
    ----------
    dim : dimension of the points.
    num_features : features per point.
    num_points : points whose features are held at once.
    num_landmarks : landmarks, for a map that is made of them (`nystrom`, `kernel_jl`, `kernel_pca`): it holds
        num_landmarks (dim + num_features) numbers. Without it the map is `paired_fourier`, num_features / 2 rows.
    sketch_size : rows of a stream's sketch, whose buffer has 2 sketch_size num_features numbers.
    itemsize : bytes per number: 4 for float32, 8 for float64.

    Returns
    -------
    Plan with map_bytes, feature_bytes, sketch_bytes (0 without a sketch) and total_bytes, arrays only.

    Raises
    ------
    ValueError
        If a size is not a whole number in its range, or num_features is odd for paired Fourier features.

    Examples
    --------
    >>> from jaxkern import plan
    >>> plan.memory(dim=10, num_features=1000, num_points=10**6).feature_bytes
    4000000000
    """
    d = checks.count("dim", dim)
    m = checks.count("num_features", num_features)
    n = checks.count("num_points", num_points, minimum=0)
    size = checks.count("itemsize", itemsize)
    if size not in (4, 8):
        raise ValueError(f"itemsize must be 4 (float32) or 8 (float64), got {size}")
    if num_landmarks is not None:
        landmarks = checks.count("num_landmarks", num_landmarks)
        held = landmarks * (d + m)
        frequencies = None
    else:
        landmarks = None
        if m % 2:
            raise ValueError(f"num_features must be even for paired Fourier features, got {m}; or pass num_landmarks")
        frequencies = m // 2
        held = frequencies * d
    rows = None if sketch_size is None else checks.count("sketch_size", sketch_size)
    map_bytes, feature_bytes, sketch_bytes = size * held, size * n * m, size * 2 * (rows or 0) * m
    return Plan(
        source="array sizes",
        num_frequencies=frequencies,
        num_features=m,
        num_landmarks=landmarks,
        sketch_size=rows,
        map_bytes=map_bytes,
        feature_bytes=feature_bytes,
        sketch_bytes=sketch_bytes,
        total_bytes=map_bytes + feature_bytes + sketch_bytes,
    )


def smallest_size(certificate: Callable[[int], Bound], delta: float) -> int | None:
    """Return a size that is certified while the size below is not: doubling, then bisection.

    Parameters
    ----------
    certificate : a function of a size, such as `lambda m: bounds.fourier.gram_spectral(num_frequencies=m, ...)`.
    delta : failure probability; a size is certified where the bound is valid with probability at least 1 - delta.

    Returns
    -------
    The size, the smallest one where certificates hold from some size on; None if it would exceed 2^53.
    """
    high = 1
    while not _certifies(certificate(high), delta):
        high *= 2
        if high > _LARGEST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _certifies(certificate(middle), delta) else (middle, high)
    return high


# ------------------------------------------------------------------------------------------------------- certificates


def _pairs(bound: Callable[..., Bound], eps: float, num_points: float, size: int) -> Bound:
    return bound(eps=eps, num_frequencies=size, num_points=num_points)


def _stream(eps: float, num_points: float, rows: int, size: int) -> Bound:
    """Return Theorem E for a total error eps: the features get what the sketch leaves."""
    share = eps - 1 / (rows + 1)
    if share <= 0:
        return Bound(eps, -math.inf, False, "")
    return _streaming.streaming_gram_buffered(eps=share, num_frequencies=size, num_points=num_points, sketch_size=rows)


def _ball_certificate(eps: float, delta: float, dim: int, diameter: float) -> Callable[[int], Bound]:
    """Return the best of `bounds.fourier.ball` over its free parameters, on a fixed grid."""
    taus = [math.log(3 / (share * delta)) for share in (0.02, 0.1, 0.3)]
    inners = [0.6, 0.7, 0.75, 0.8, 0.84, 0.87, 0.9, 0.92, 0.94, 0.96, 0.98]
    ratios = sorted({1 + 1 / dim, 1 + 2 / dim, 1.5, 2.0, 4.0})

    def best(size: int) -> Bound:
        found = (
            _fourier.ball(eps=eps, num_frequencies=size, dim=dim, diameter=diameter, tau=tau, inner=inner, shell=ratio)
            for tau in taus
            for inner in inners
            for ratio in ratios
        )
        return max(found, key=lambda bound: (bound.valid, bound.probability))

    return best


def _given_certificate(eps: float, squared_distances: Any, pairs: Any) -> Callable[[int], Bound]:
    """Return `bounds.fourier.relative_distances_given` of a histogram, without its empty bins."""
    squared, counts = (_nonnegative(*v) for v in (("squared_distances", squared_distances), ("pairs", pairs)))
    if squared.shape != counts.shape:
        raise ValueError(f"pairs must have the shape of squared_distances, {squared.shape}, got {counts.shape}")
    if squared.size > len(_EDGES):
        counts = np.bincount(np.searchsorted(_EDGES, squared, side="right") - 1, counts, len(_EDGES))
        squared = _EDGES
    return _given.certificate(eps, squared[counts > 0], counts[counts > 0])


def _functions(eps: float, count: int, size: int) -> Bound:
    """Return the exact chi-square law of the squared length of one function, times the number of functions."""
    half = size / 2
    outside = scipy.special.gammaincc(half, half * (1 + eps)) + scipy.special.gammainc(half, half * (1 - eps))
    source = "kpotufe2020, Kernel JL given the landmarks: chi-square, exact"
    return Bound(eps, float(1 - count * outside), True, source)


def _rows(eps: float, delta: float, words: dict[str, float], n: float) -> tuple[int, Bound] | None:
    """Return the fewest sketch rows that Theorem B or Theorem C certifies with n landmarks, or None."""
    shared: dict[str, Any] = {name: words[name] for name in ("kappa", "op_norm", "trace", "trace3")}
    norm = words["op_norm"]
    target = eps * norm * norm * norm  # a power would raise where it leaves the range

    def judged(bound: Bound) -> Bound:
        return dataclasses.replace(bound, valid=bound.valid and bound.value <= target)

    def theorem_b(d: int) -> Bound:
        return judged(sketching.inner_products(**shared, n=n, d=d, tau=math.log(3 / delta) + 1e-12))

    def theorem_c(d: int) -> Bound:
        tau = math.log(4 / delta) + 1e-12
        return judged(sketching.inner_products_all_d(**shared, hs_norm=words["hs_norm"], n=n, d=d, tau=tau))

    able = [c for c in (theorem_b, theorem_c) if _certifies(c(_LARGEST), delta)]
    return _smallest(able, delta) if able else None


# ------------------------------------------------------------------------------------------------------------ shared


def _certifies(bound: Bound, delta: float) -> bool:
    return bool(bound.valid) and bound.probability >= 1 - delta


def _smallest(certificates: Sequence[Callable[[int], Bound]], delta: float) -> tuple[int, Bound]:
    """Return the smallest whole number at which one of the certificates holds, and the bound that says so."""
    found = [(size, certificate(size)) for certificate in certificates if (size := smallest_size(certificate, delta))]
    if not found:
        raise ValueError(f"eps and delta must be larger: no size below 2^53 is certified, got delta={delta:g}")
    return min(found, key=lambda pair: pair[0])


def _positive(name: str, value: Any) -> Any:
    """Return a static positive number, or raise."""
    if not checks.is_static(value):
        raise ValueError(f"{name} must be a positive number, got {value!r}")
    return checks.positive(name, value)


def _nonnegative(name: str, value: Any) -> np.ndarray:
    """Return a vector of finite numbers that are at least 0, or raise."""
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a vector of numbers, got {value!r}") from None
    if array.ndim != 1 or not np.all((array >= 0) & np.isfinite(array)):
        raise ValueError(f"{name} must be a vector of finite numbers that are at least 0, got {value!r}")
    return array


_least = smallest_size
