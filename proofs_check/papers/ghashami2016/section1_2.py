"""ghashami2016, Section 1.2: RNCA and Nystrom at constant probability, Table 1, and who wins when."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array

from jaxkern import features, kernels, landmarks, rkhs
from jaxkern.bounds import Bound, streaming
from proofs_check.claim import (
    Check,
    Control,
    Exact,
    Form,
    Identity,
    Inequality,
    Setting,
    Tail,
)
from proofs_check.papers import flops
from proofs_check.papers.ghashami2016 import clouds, section2, trials
from proofs_check.papers.ghashami2016.setup import Function, Inputs, at_failure
from proofs_check.papers.shared import (
    Grids,
    always,
    as_residual,
    bound_of,
    check_of,
    real,
    wrong,
)

SOURCE = "ghashami2016, Section 1.2"
DIMENSIONS = {"RandomNoisy": 1000, "CPU": 21, "Adult": 123, "Forest": 54}
"""The dimensions of the data of the paper's experiments."""

Costs = dict[str, tuple[Any, Any]]
Pairs = list[tuple[float, Bound]]


def _copies_exceed(m: float, eps: float, delta: float) -> tuple[float, float]:
    return math.log(trials.copies_tail(m, eps)), math.log(delta)


def _copies(eps: float, size: float) -> Setting:
    """Return 10^9 copies of a point with so many features, rounded up, and delta = 1/2."""
    m = math.ceil(size)
    return Setting(
        f"1e+09 copies of a point, eps={eps:g}, m={m:g}, delta=0.5",
        numbers={"eps": eps, "delta": 0.5, "m": float(m)},
    )


def rnca_markov() -> Check:
    exact = Exact(_copies_exceed)
    # m = c^2 log(n) / .005 is C log(n) / eps with C = c / 200.
    few = tuple(_copies(5e-3 / c, c**2 * math.log(1e9) / 5e-3) for c in (1, 10, 100))
    enough = tuple(_copies(eps, 1.5 / (0.5 * eps**2)) for eps in (1e-3, 1e-4))
    thirtieth = tuple(_copies(eps, 0.05 / (0.5 * eps**2)) for eps in (1e-3, 1e-4))
    return Check(
        printed=Form(exact, few),
        corrected=Form(exact, enough),
        controls=(Control("a thirtieth of that", exact, thirtieth, "wrong factor"),),
    )


def nystrom_spectral(inputs: Inputs) -> Check:
    bound = bound_of(streaming.nystrom_spectral, num_landmarks="size")
    # A cluster of 4 in 64 is missed often enough to show.
    rare = [] if inputs.data else [clouds.clusters(60, 4)]
    shapes = {"size": min(30, inputs.stream.num_points)}
    settings = []
    for cloud in (inputs.stream, *rare):
        for delta in inputs.deltas:
            eps = at_failure(bound, Setting("", shapes=shapes), "eps", math.log(delta))
            label = f"c={shapes['size']} landmarks, uniform, delta={delta:g}"
            settings.append(cloud.setting(label, {"eps": eps, "first": 0}, shapes))
    # One half of the points is what a bad choice may miss.
    numbers = {**settings[0].numbers, "first": 1}
    name = settings[0].name.replace("uniform", "the first ones")
    first = replace(settings[0], name=name, numbers=numbers)
    tail = Tail(trials.nystrom_error, bound, lambda setting: 1.0)
    control = Control("landmarks from the first points", tail, (first,), "wrong law")
    return Check(corrected=Form(tail, tuple(settings)), controls=(control,))


def _gaussian_gram(points: np.ndarray) -> np.ndarray:
    """Return the Gram matrix of the Gaussian kernel of lengthscale 2."""
    return np.exp(-np.sum((points[:, None] - points) ** 2, axis=2) / 8)


@partial(jax.jit, static_argnums=2)
def _drawn_landmarks(key: Array, X: Array, replacement: bool) -> Array:
    """Return 32 draws of as many landmarks as there are points."""
    keys = jax.random.split(key, 32)
    size = len(X)
    if replacement:
        return jax.vmap(lambda k: X[jax.random.randint(k, (size,), 0, size)])(keys)
    return jax.vmap(lambda k: landmarks.uniform(k, X, num_landmarks=size))(keys)


def _nystrom_residual(
    key: Array,
    data: Array,
    size: int,
    rank: int,
    scale: float = 1.0,
    replacement: bool = False,
) -> list[np.ndarray]:
    """Compare Z Z' with C W_k^+ C', in units of n, and permutations of all points with the points."""
    drawn = np.asarray(_drawn_landmarks(key, data, replacement))
    rows = drawn[0, :size]
    phi = features.nystrom(kernels.Gaussian(2.0), real(rows), rank=rank)
    Z = scale * np.asarray(phi(data))
    points = np.asarray(data, np.float64)
    G = _gaussian_gram(points)
    squares = np.sum((points[:, None] - rows) ** 2, axis=2)
    chosen = np.argmin(squares, axis=0)
    values, vectors = np.linalg.eigh(G[np.ix_(chosen, chosen)])
    C = G[:, chosen] @ vectors[:, size - rank :]
    cut = C / values[size - rank :] @ C.T
    missing = np.sort(drawn[..., 0], axis=1) - np.sort(points[:, 0])
    return [as_residual(Z @ Z.T - cut), as_residual(missing)]


def nystrom_map(grids: Grids) -> Check:
    points = real(np.random.default_rng(13).standard_normal((64, 8)))
    settings = tuple(replace(s, data=points) for s in grids["normal"])
    larger = Identity(partial(_nystrom_residual, scale=1.005))
    replaced = Identity(partial(_nystrom_residual, replacement=True))
    first = settings[:1]
    return Check(
        corrected=Form(Identity(_nystrom_residual), settings),
        controls=(
            Control("features times 1.005", larger, first, "wrong factor"),
            Control("landmarks drawn with replacement", replaced, first, "wrong law"),
        ),
    )


@partial(jax.jit, static_argnums=1)
def _effective_rank(sigma: rkhs.Covariance, power: int) -> Array:
    return sigma.effective_rank(power)


def _components_residual(
    key: Array, data: Array, rank: int, scale: float = 1.0
) -> list[np.ndarray]:
    """Compare eigenvalues, the best rank-k approximation by features of X, and the effective rank with NumPy's."""
    kernel = kernels.Gaussian(2.0)
    num_points, dim = data.shape
    G = _gaussian_gram(np.asarray(data, np.float64))
    phi = features.paired_fourier(
        key, kernel, dim, num_frequencies=20, dtype=data.dtype
    )
    F = np.asarray(phi(data), np.float64)
    exact = features.kernel_pca(kernel, data, num_components=rank)
    sketched = features.random_feature_pca(phi, data, num_components=rank)
    H = np.eye(num_points) - 1 / num_points
    errors: list[Any] = []
    for pca, gram, size in ((exact, G, 1), (sketched, F @ F.T, num_points)):
        values, vectors = np.linalg.eigh(H @ gram @ H)
        values = values[: -rank - 1 : -1]
        leading = vectors[:, : -rank - 1 : -1]
        Z = scale * np.asarray(pca(data), np.float64)
        errors.append(Z @ Z.T - (leading * values) @ leading.T)
        errors.append(np.asarray(pca.eigenvalues) * size - values)
    spectrum = np.linalg.eigvalsh(G)
    relative = spectrum / spectrum[-1]
    covariance = rkhs.Covariance(kernel, data)
    for power in (1, 3):
        effective = float(_effective_rank(covariance, power))
        errors.append(effective / np.sum(relative**power) - 1)
    return [as_residual(error) for error in errors]


def principal_components() -> Check:
    points = real(np.random.default_rng(17).standard_normal((32, 6)))
    setting = Setting("normal points, n=32, d=6, k=4", points, shapes={"rank": 4})
    larger = wrong("features times 1.005", "wrong factor", scale=1.005)
    return check_of(Identity, [setting], larger, corrected=_components_residual)


def _nystrom(chosen: Array) -> Any:
    return features.nystrom(kernels.Gaussian(1.0), chosen)


def _rnca(key: Array, X: Array, *, size: int, rank: int) -> Any:
    kernel = kernels.Gaussian(1.0)
    phi = features.shifted_fourier(key, kernel, X.shape[1], num_frequencies=size)
    return features.random_feature_pca(phi, X, num_components=rank, centered=False)


def _fitted(fit: Function, queries: Array, *arguments: Array) -> Any:
    return fit(*arguments)(queries)


def _cost_residual(
    n: int, d: int, c: int, k: int, q: int, power: int = 2
) -> list[float]:
    """Compare multiply-adds of the library, in training and for q points, with their formulas for c = m."""
    points, chosen, queries = (section2.abstract_points(rows, d) for rows in (n, c, q))
    rnca = partial(_rnca, size=c, rank=k)
    key = section2.abstract_key()
    programs = (
        (_nystrom, [chosen], c * c * d, q * (c * d + c**power)),
        (rnca, [key, points], n * d * c + n * c * c, q * (d * c + c * k)),
        # For KPCA all points are landmarks, and all directions stay.
        (_nystrom, [points], n * n * d, q * (n * d + n * n)),
    )
    residuals = []
    for fit, arguments, train, test in programs:
        fitting = flops.multiply_adds(fit, *arguments)
        both = flops.multiply_adds(partial(_fitted, fit), queries, *arguments)
        residuals += [fitting / train - 1, (both - fitting) / test - 1]
    return residuals


def baselines(grids: Grids) -> Check:
    """Count the library's programs: the orders that Table 1 rests on."""
    linear = wrong("Nystrom without its projection", "wrong cost", power=1)
    return check_of(Identity, grids["sizes"], linear, printed=_cost_residual)


def _numbers_of_features(d: int, m: int, make: Function = features.fastfood) -> Pairs:
    """Compare how many numbers the library holds for m features, over m, with 5."""
    draw = partial(make, kernel=kernels.Gaussian(1.0), dim=d, num_frequencies=m)
    phi = jax.eval_shape(draw, section2.abstract_key())
    numbers = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(phi))
    return [(numbers / m, Bound(5.0, 1.0, m >= d, SOURCE))]


def fastfood(grids: Grids) -> Check:
    make = features.shifted_fourier
    dense = wrong("frequencies without structure", "wrong cost", make=make)
    return check_of(Inequality, grids["sizes"], dense, printed=_numbers_of_features)


def costs(n: Any, d: Any, eps: Any, k: Any) -> Costs:
    """Return the costs of Sections 1.2 and 2, and the entries of Table 1 for them, with constants 1.

    In the text c = m = (log n) / eps^2 and l = 1 / eps.
    """
    log = np.log(n)
    m = log / eps**2
    rows = 1 / eps
    mapped = d * m
    # The table has no m and no l.
    linear = d * log / eps**2
    squared = log**2 / eps**4
    cubed = log**3 / eps**6
    test = linear + k * log / eps**2
    streamed = log / eps**3
    nystrom = n * log / eps**2 + d * log**3 / eps**4 + cubed
    return {
        "Nystrom, train": (n * m + mapped * m * log + m**3, nystrom),
        "Nystrom, test": (mapped + m**2, linear + squared),
        "Nystrom, space": (mapped + m**2, linear + squared),
        "RNCA, train": (n * (mapped + m**2) + m**3, n * (linear + squared) + cubed),
        "RNCA, test": (mapped + m * k, test),
        "RNCA, space": (mapped + m**2, linear + squared),
        "SKPCA, train": (n * (mapped + m * rows), n * (linear + streamed)),
        "SKPCA, test": (mapped + m * rows, test),
        "SKPCA, space": (mapped + m * rows, linear + streamed),
    }


def _table_residual(
    n: float,
    d: float,
    eps: float,
    k: float,
    cut: bool = True,
    space_of_rows: bool = True,
) -> list[float]:
    """Compare the text with the table; the test time of SKPCA, linear in m, is that of the library.

    It projects onto k directions or, without `cut`, onto all l. Without `space_of_rows` the entry for the space of
    SKPCA has no 1 / eps.
    """
    pairs = costs(n, d, eps, k)
    m = math.log(n) / eps**2
    rows = round(1 / eps)
    cost = section2.test_cost(7, int(d), 64, rows, int(k) if cut else rows)
    _, entry = pairs["SKPCA, test"]
    pairs["SKPCA, test"] = (cost / (7 * 64) * m, entry)
    if not space_of_rows:
        text, _ = pairs["SKPCA, space"]
        pairs["SKPCA, space"] = (text, (d + 1) * m)
    return [text / entry - 1 for text, entry in pairs.values()]


def table1(grids: Grids) -> Check:
    return check_of(
        Identity,
        grids["sizes"],
        wrong("space without 1/eps", "wrong power", space_of_rows=False),
        printed=partial(_table_residual, cut=False),
        corrected=_table_residual,
    )


def _orders(d: float, m: float, l: float, k: float) -> Pairs:  # noqa: E741, the paper's letter
    """Compare the exact ratios over those printed, from above with 1 and from below with 1 / (1 + d)."""
    right = always(1.0, SOURCE)
    pairs = []
    for rows in (l, k):
        share = (d + m) / (d + rows) * rows / m
        pairs += [(share, right), (1 / (share * (1 + d)), right)]
    return pairs


def _ratio_residual(
    d: float,
    m: float,
    l: float,  # noqa: E741, the paper's letter
    k: float,
    squared: bool = False,
) -> list[float]:
    """Compare RNCA over SKPCA in space, and Nystrom over SKPCA at test, with their factors."""
    cost = d * m + m * m
    space = (d + m) / (d + l)
    test = (d + m) / (d + k)
    if squared:
        space = (d + m * m) / (d + l)
        test = m / k
    return [cost / (d * m + m * l) / space - 1, cost / (d * m + m * k) / test - 1]


def advantage() -> Check:
    sizes = {"m": 1000.0, "l": 50.0, "k": 10.0}
    settings = tuple(
        Setting(f"{name}, d={d}, m=1000, l=50, k=10", None, {"d": float(d), **sizes})
        for name, d in DIMENSIONS.items()
    )
    squared = Identity(partial(_ratio_residual, squared=True))
    return Check(
        printed=Form(Inequality(_orders), settings),
        corrected=Form(Identity(_ratio_residual), settings),
        controls=(Control("m^2 / l", squared, settings, "wrong power"),),
    )
