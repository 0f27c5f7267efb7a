"""Feature maps: fitting or drawing them, mapping many points, and derivatives of an embedding."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks._case import Case, Part, Work, agree
from benchmarks._data import (
    KEPT,
    ROUNDING,
    difference,
    exact_gram,
    gamma,
    head,
    lengthscale,
    points,
)
from benchmarks._floor import decomposition, elementwise, product, store
from benchmarks._numpy import (
    PIECE,
    Rows,
    fastfood_rows,
    gaussian_gradient,
    gaussian_rows,
    mapped,
    paired_rows,
    shifted_rows,
)
from jaxkern import features
from jaxkern.gram import gram_matmul
from jaxkern.kernels import Gaussian


def by_hand(
    rows: Rows, X: np.ndarray, width: int, inner: int
) -> dict[str, Callable[[], Any]]:
    """Return the peers by hand, whose largest array is of `inner` columns.

    Pieces one after the other are larger: threads of BLAS share each product, and small ones do not pay.
    """
    step = max(PIECE // inner, 1)
    return {
        "numpy": lambda: mapped(rows, X, width, 8 * step, threaded=False),
        "numpy threads": lambda: mapped(rows, X, width, step, threaded=True),
    }


def nystroem(landmarks: np.ndarray, scale: float) -> Nystroem:
    """Return scikit-learn's map, all points landmarks."""
    return Nystroem(gamma=gamma(scale), n_components=landmarks.shape[0], random_state=0)


def kernel_products(
    rows: int, dim: int, num_landmarks: int, width: int
) -> tuple[Part, ...]:
    """Return what mapping by landmarks cannot leave out."""
    return (
        product("x l'", rows, dim, num_landmarks),
        elementwise("exp", rows * num_landmarks),
        product("k p'", rows, num_landmarks, width),
        store(rows, width),
    )


def _sizes(small: bool, *full: int) -> tuple[int, ...]:
    """Return rows, dim, landmarks and features."""
    return (1500, 10, 40, 40 if full[2] == full[3] else 8) if small else full


def _landmark_map(
    small: bool, sizes: tuple[int, ...], make: Callable[[jax.Array, Gaussian, int], Any]
) -> Work:
    """Return the work of mapping by landmarks."""
    rows, dim, n, d = sizes
    X, scale = points(rows, dim), lengthscale(dim)
    landmarks = points(n, dim, 1)
    phi = make(jnp.asarray(landmarks), Gaussian(scale), d)
    theirs, there = nystroem(landmarks, scale).fit(landmarks), jnp.asarray(X)

    def check(ours: np.ndarray, peers: Mapping[str, np.ndarray]) -> dict[str, float]:
        values = exact_gram(X[:KEPT], landmarks, scale)
        exact = values @ np.asarray(phi.projection, np.float64).T
        report = agree("error of ours", difference(ours, exact), ROUNDING)
        report |= agree("error of numpy", difference(peers["numpy"], exact), ROUNDING)
        K = exact_gram(theirs.components_, theirs.components_, scale)
        wanted = exact_gram(X[:KEPT], theirs.components_, scale) @ np.linalg.solve(
            K + 1e-12 * np.eye(n), exact_gram(theirs.components_, X[:KEPT], scale)
        )
        if make is _nystrom:
            report |= agree(
                "error of our inner products", difference(ours @ ours.T, wanted), 0.05
            )
        sklearn = peers["sklearn Nystroem"]
        return report | agree(
            "error of sklearn's inner products",
            difference(sklearn @ sklearn.T, wanted),
            0.05,
        )

    return Work(
        ours=lambda: phi(there),
        peers={"sklearn Nystroem": lambda: theirs.transform(X)}
        | by_hand(gaussian_rows(landmarks, scale, np.asarray(phi.projection)), X, d, n),
        check=check,
        floor=kernel_products(rows, dim, n, d),
        keep=head,
        items=rows,
        unit="rows",
    )


def _gram_product(small: bool) -> Work:
    """Return the work of K(X, X) v in three dimensions, where no matrix is held."""
    rows, dim = (1500 if small else 20_000), 3
    X, scale = points(rows, dim), lengthscale(dim)
    v = points(rows, 1, 1)
    kernel, points_here, vector = Gaussian(scale), jnp.asarray(X), jnp.asarray(v)

    def sklearn_rows(block: np.ndarray) -> np.ndarray:
        return rbf_kernel(block, X, gamma=gamma(scale)) @ v

    def check(ours: np.ndarray, peers: Mapping[str, np.ndarray]) -> dict[str, float]:
        exact = exact_gram(X[:KEPT], X, scale) @ np.float64(v)
        report = agree("error of ours", difference(ours, exact), ROUNDING)
        for name, values in peers.items():
            report |= agree(f"error of {name}", difference(values, exact), ROUNDING)
        return report

    step = max(PIECE // rows, 1)
    return Work(
        ours=lambda: gram_matmul(kernel, points_here, None, vector),
        peers={
            "sklearn rbf_kernel": lambda: mapped(
                sklearn_rows, X, 1, 8 * step, threaded=False
            )
        }
        | by_hand(gaussian_rows(X, scale, v.T), X, 1, rows),
        check=check,
        floor=(elementwise("exp", rows * rows),),
        keep=head,
        items=rows,
        unit="rows",
    )


def _kernel_jl(landmarks: jax.Array, kernel: Gaussian, d: int) -> Any:
    return features.kernel_jl(jax.random.key(0), kernel, landmarks, num_features=d)


def _nystrom(landmarks: jax.Array, kernel: Gaussian, d: int) -> Any:
    return features.nystrom(kernel, landmarks, rank=d)


def _fit(
    small: bool, make: Callable[[jax.Array, Gaussian, int], Any], *full: int
) -> Work:
    """Return the work of fitting a map to given landmarks."""
    _, dim, n, d = _sizes(small, *full)
    landmarks, scale = points(n, dim, 1), lengthscale(dim)
    there, kernel = jnp.asarray(landmarks), Gaussian(scale)

    def check(ours: Any, peers: Mapping[str, Any]) -> dict[str, float]:
        K = exact_gram(landmarks, landmarks, scale)
        Z = peers["sklearn Nystroem"].transform(landmarks)
        report = agree(
            "error of sklearn's inner products", difference(Z @ Z.T, K), ROUNDING
        )
        ours_at = np.asarray(ours(there), np.float64)
        report |= agree(
            "error of ours",
            difference(ours_at, K @ np.asarray(ours.projection, np.float64).T),
            ROUNDING,
        )
        if make is _nystrom:
            report |= agree(
                "error of our inner products",
                difference(ours_at @ ours_at.T, K),
                ROUNDING,
            )
        return report

    return Work(
        ours=lambda: make(there, kernel, d),
        peers={"sklearn Nystroem": lambda: nystroem(landmarks, scale).fit(landmarks)},
        check=check,
        floor=(
            product("l l'", n, dim, n),
            elementwise("exp", n * n),
            decomposition(n, 1) if make is _nystrom else product("z k", d, n, n),
        ),
        items=n,
        unit="landmarks",
    )


def _fourier(
    small: bool,
    sizes: tuple[int, ...],
    draw: Callable[..., Any],
    *,
    shifted: bool = False,
    draws: bool = False,
) -> Work:
    """Return the work of mapping by random frequencies; with `draws` they are drawn in every call."""
    rows, dim, num_features = sizes
    X, scale = points(rows, dim), lengthscale(dim)
    there, kernel, m = (
        jnp.asarray(X),
        Gaussian(scale),
        num_features if shifted else num_features // 2,
    )

    def drawn() -> Any:
        return draw(
            jax.random.key(0), kernel, dim, num_frequencies=m, dtype=jnp.float32
        )

    phi, fast = drawn(), draw is features.fastfood
    sampler = RBFSampler(
        gamma=gamma(scale), n_components=num_features, random_state=0
    ).fit(X[:2])
    if fast:
        rows_of = fastfood_rows(phi)
    else:
        frequencies = np.asarray(phi.frequencies) / np.float32(scale)
        rows_of = paired_rows(frequencies)
        if shifted:
            rows_of = shifted_rows(frequencies, np.asarray(phi.shifts))
            # Then scikit-learn can compute the very same numbers.
            sampler.random_weights_, sampler.random_offset_ = (
                frequencies.T.copy(),
                np.asarray(phi.shifts),
            )

    def check(ours: np.ndarray, peers: Mapping[str, np.ndarray]) -> dict[str, float]:
        K = exact_gram(X[:KEPT], X[:KEPT], scale)
        report: dict[str, float] = {}
        # Inner products are means of m terms of variance 1.5 at most; the mean error over all pairs is hardly above
        # its standard deviation, and a map of another kernel is far off.
        for name, Z in {"ours": ours, **peers}.items():
            report |= agree(
                f"kernel error of {name}",
                np.mean(np.abs(Z @ Z.T - K)),
                (1.5 / m) ** 0.5 * 2,
            )
        if not fast:
            report |= agree(
                "difference from numpy", difference(ours, peers["numpy"]), ROUNDING
            )
        if shifted:
            report |= agree(
                "difference from sklearn",
                difference(ours, peers["sklearn RBFSampler"]),
                ROUNDING,
            )
        return report

    def theirs() -> Any:
        return clone(sampler).fit_transform(X) if draws else sampler.transform(X)

    return Work(
        ours=(lambda: drawn()(there)) if draws else (lambda: phi(there)),
        peers={"sklearn RBFSampler": theirs} | by_hand(rows_of, X, num_features, 2 * m),
        check=check,
        # Fastfood has no large product; what it cannot leave out are cosines and the store.
        floor=(() if fast else (product("x w'", rows, dim, m),))
        + (elementwise("cos", rows * num_features), store(rows, num_features)),
        keep=head,
        items=rows,
        unit="rows",
    )


def _gradient(small: bool) -> Work:
    rows, dim, n, d = _sizes(small, 20_000, 115, 400, 50)
    X, C, landmarks, scale = (
        points(rows, dim),
        points(rows, d, 2),
        points(n, dim, 1),
        lengthscale(dim),
    )
    phi = features.kernel_jl(
        jax.random.key(0), Gaussian(scale), jnp.asarray(landmarks), num_features=d
    )

    def loss(X: jax.Array, scale: jax.Array, C: jax.Array) -> jax.Array:
        moved = type(phi)(
            Gaussian(scale), phi.landmarks, phi.projection, phi.offset, phi.centered
        )
        return jnp.sum(moved(X) * C)

    ours = jax.jit(jax.grad(loss, argnums=(0, 1)))
    arguments = (jnp.asarray(X), jnp.float32(scale), jnp.asarray(C))
    theirs = gaussian_gradient(landmarks, scale, np.asarray(phi.projection))

    def check(ours: Any, peers: Mapping[str, Any]) -> dict[str, float]:
        wanted, slope = peers["numpy threads"]
        size = float(np.abs(wanted).max() * rows**0.5)
        report = agree(
            "difference of the gradient in X", difference(ours[0], wanted), ROUNDING
        )
        return report | agree(
            "difference of that in the lengthscale",
            abs(float(ours[1]) - slope) / size,
            0.01,
        )

    return Work(
        ours=lambda: ours(*arguments),
        peers={"numpy threads": lambda: theirs(X, C)},
        check=check,
        # phi itself is not asked for, so its product k p' is not needed.
        floor=(
            product("x l'", rows, dim, n),
            elementwise("exp", rows * n),
            product("c p", rows, d, n),
            product("g l", rows, n, dim),
            store(rows, dim),
        ),
        items=rows,
        unit="rows",
    )


def _fourier_sizes(small: bool, *full: int) -> tuple[int, ...]:
    return (1500, 10, 64) if small else full


def _sweep() -> tuple[Case, ...]:
    """Return the sweep: rows and dimensions cross, the other sizes alternate so that each meets small and large."""
    cases = []
    for i, (rows, dim) in enumerate(
        itertools.product((20_000, 200_000), (20, 90, 300))
    ):
        n, d, m = (100, 350)[i % 2], (20, 40)[i // 2 % 2], (256, 1024)[i % 2]
        where = f"{rows:,} points of dimension {dim} to"
        by_landmarks = Case(
            f"sweep-jl-{rows}-{dim}",
            f"{where} {d} features by {n} landmarks",
            lambda s, sizes=(rows, dim, n, d): _landmark_map(
                s, _sizes(s, *sizes), _kernel_jl
            ),
            {"sklearn Nystroem": 3},
            1.25,
            sweep=("Kernel JL", 4),
        )
        by_phases = Case(
            f"sweep-fourier-{rows}-{dim}",
            f"{where} {m:,} paired Fourier features",
            lambda s, sizes=(rows, dim, m): _fourier(
                s, _fourier_sizes(s, *sizes), features.paired_fourier
            ),
            {"sklearn RBFSampler": 1},
            1.25,
            sweep=("paired Fourier", 1.2),
        )
        cases += [by_landmarks, by_phases]
    return tuple(cases)


_LARGE, _FOURIER, _FAST = (
    (200_000, 115, 400, 50),
    (200_000, 115, 1024),
    (5_000, 2048, 8192),
)
_HAND = {"numpy": 1.0, "numpy threads": 1.0}

CASES = (
    Case(
        "gram-product",
        "Gram matrix of 20,000 points of dimension 3 times a vector, without the matrix",
        _gram_product,
        {"numpy threads": 1},
    ),
    Case(
        "kernel-jl-fit",
        "Kernel JL drawn at 400 landmarks of dimension 115, 50 features",
        lambda s: _fit(s, _kernel_jl, *_LARGE),
        {"sklearn Nystroem": 15},
        rounds=15,
    ),
    Case(
        "kernel-jl-map",
        "200,000 points of dimension 115 to 50 features by 400 landmarks",
        lambda s: _landmark_map(s, _sizes(s, *_LARGE), _kernel_jl),
        {"sklearn Nystroem": 4} | _HAND,
        1.3,
    ),
    Case(
        "kernel-jl-map-400",
        "the same to 400 features, as many as Nystroem has",
        lambda s: _landmark_map(s, _sizes(s, 200_000, 115, 400, 400), _kernel_jl),
    ),
    Case(
        "nystrom-fit",
        "Nystrom fitted to 400 landmarks of dimension 115",
        lambda s: _fit(s, _nystrom, 0, 115, 400, 400),
        rounds=15,
    ),
    Case(
        "nystrom-map",
        "200,000 points of dimension 115 to 400 features by 400 landmarks",
        lambda s: _landmark_map(s, _sizes(s, 200_000, 115, 400, 400), _nystrom),
    ),
    Case(
        "paired-fourier",
        "200,000 points of dimension 115 to 1,024 features",
        lambda s: _fourier(s, _fourier_sizes(s, *_FOURIER), features.paired_fourier),
        {"sklearn RBFSampler": 1.3},
        1.5,
    ),
    Case(
        "shifted-fourier",
        "the same with shifts",
        lambda s: _fourier(
            s, _fourier_sizes(s, *_FOURIER), features.shifted_fourier, shifted=True
        ),
    ),
    Case(
        "orthogonal-fourier",
        "the same with orthogonal frequencies, which are drawn in every call",
        lambda s: _fourier(
            s, _fourier_sizes(s, *_FOURIER), features.orthogonal_fourier, draws=True
        ),
    ),
    Case(
        "fastfood",
        "5,000 points of dimension 2,048 to 8,192 features",
        lambda s: _fourier(s, _fourier_sizes(s, *_FAST), features.fastfood),
    ),
    Case(
        "gradient",
        "gradient of an embedding of 20,000 points in the points and the lengthscale",
        _gradient,
    ),
    *_sweep(),
)
