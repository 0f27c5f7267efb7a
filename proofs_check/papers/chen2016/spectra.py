"""chen2016, Section 2 (ours): the frequencies that the library draws, for every kernel whose spectral law it knows.

Every law is one of s z, z standard normal and s a function of an independent chi variable.
"""

from collections.abc import Callable
from functools import partial
from math import pi, sqrt
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from numpy import ndarray
from numpy.linalg import norm
from numpy.random import default_rng
from scipy import stats

from jaxkern import features, kernels
from proofs_check.claim import Check, Control, Expectation, Form, Identity, Setting
from proofs_check.papers.chen2016.trials import inner_product
from proofs_check.papers.shared import as_residual, check_of, normals, real, wrong

DIM, ROWS, LENGTHSCALE = 8, 8, 1.5
Array = ndarray


class Spectrum(NamedTuple):
    """A kernel, and how s comes from a chi variable of so many degrees: one for all coordinates, or one for each."""

    kernel: Callable[[float], Any]
    degrees: int
    scale: Callable[[Array], Array]
    sets: int = 1


SPECTRA = {
    "Gaussian": Spectrum(kernels.Gaussian, 0, np.ones_like),
    "Exponential": Spectrum(kernels.Exponential, 1, lambda chi: 1 / chi),
    "Matern32": Spectrum(kernels.Matern32, 3, lambda chi: sqrt(3) / chi),
    "Matern52": Spectrum(kernels.Matern52, 5, lambda chi: sqrt(5) / chi),
    "Laplacian": Spectrum(kernels.Laplacian, 1, lambda chi: 1 / chi, DIM),
    "Cauchy": Spectrum(kernels.Cauchy, 2, np.asarray, DIM),
}


class Draws(NamedTuple):
    """What the library draws, its K(x_0, x), and the numbers behind the draws."""

    frequencies: Any
    normals: Any
    shifted_frequencies: Any
    shifted_normals: Any
    shifts: Any
    uniforms: Any
    values: Any
    lengths: Any


def _each_row(key: jax.Array, draw: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """Return what is drawn with the key of each row."""
    rows = jnp.arange(ROWS, dtype=jnp.uint32)
    return jax.vmap(lambda i: draw(random.fold_in(key, i)))(rows)


def _lengths(
    key: jax.Array, kernel: Any, frequencies: jax.Array, options: Any
) -> jax.Array:
    """Return errors of the lengths of frequencies that are drawn in blocks.

    A block of orthogonal ones has those of independent ones, and the lengths of a block of Fastfood are chi.
    """
    dtype = frequencies.dtype
    if isinstance(kernel, kernels.Laplacian | kernels.Cauchy):
        return jnp.zeros((DIM, DIM), dtype)
    V = features.orthogonal_fourier(key, kernel, DIM, **options).frequencies
    squares = frequencies**2
    errors = V @ V.T - jnp.diag(jnp.sum(squares, axis=1))
    errors = errors / (1 + jnp.max(squares))
    if not isinstance(kernel, kernels.Gaussian):
        return errors
    F = features.fastfood(key, kernel, DIM, **options).frequencies
    chi = 2 * _each_row(
        random.split(key, 3)[1],
        lambda k: random.gamma(k, DIM / 2, (), dtype),
    )
    return jnp.concatenate([errors, (jnp.sum(F**2, axis=1) - chi)[None] / DIM])


@partial(jax.jit, static_argnames="columns")
def _drawn(key: jax.Array, kernel: Any, X: jax.Array, columns: int) -> Draws:
    dtype = X.dtype
    options: dict[str, Any] = {"num_frequencies": ROWS, "dtype": dtype}
    phi = features.paired_fourier(key, kernel, DIM, **options)
    psi = features.shifted_fourier(key, kernel, DIM, **options)
    first, second = random.split(key)
    draw = partial(random.uniform, shape=(), dtype=dtype, minval=0, maxval=2 * pi)
    from_origin = partial(kernel, X[0])
    return Draws(
        frequencies=phi.frequencies,
        normals=normals(key, ROWS, columns, dtype),
        shifted_frequencies=psi.frequencies,
        shifted_normals=normals(first, ROWS, columns, dtype),
        shifts=psi.shifts,
        uniforms=_each_row(second, draw),
        values=jax.vmap(from_origin)(X[1:]),
        lengths=_lengths(key, kernel, phi.frequencies, options),
    )


def _frequencies(law: Spectrum, numbers: Array) -> Array:
    """Return s z (ROWS, DIM) from the normals of each row, first those of z and then those of chi."""
    behind_chi = numbers[:, DIM:].reshape(ROWS, law.sets, law.degrees)
    return numbers[:, :DIM] * law.scale(norm(behind_chi, axis=2))


def _mixture(law: Spectrum, deltas: Array, more: int = 0) -> Array:
    """Return K = E exp(-|s delta|^2 / 2) for deltas (n, DIM), by the trapezoidal rule for the log of chi."""
    u = np.arange(-45, 4, 0.02)
    chi = np.exp(u)
    weights = stats.chi.pdf(chi, max(law.degrees, 1) + more) * chi
    squared = deltas**2
    if law.sets == 1:
        squared = np.sum(squared, axis=1, keepdims=True)
    waves = np.exp(-squared[..., None] * law.scale(chi) ** 2 / 2)
    return np.asarray(np.prod(waves @ (weights / weights.sum()), axis=1))


def _relative(frequencies: Array, expected: Array) -> Array:
    """Return errors relative to the size: Cauchy frequencies exceed 10^4 at one seed of a hundred."""
    return (frequencies - expected) / np.maximum(1, np.abs(expected))


def drawn_errors(
    key: jax.Array,
    setting: Setting,
    *,
    stretched: float = 1.0,
    repeated: bool = False,
    more: int = 0,
) -> Array:
    """Return differences of the library's draws, maps and kernel from their formulas in NumPy.

    Sabotaged, the lengthscale is `stretched`, all frequencies are the first, or chi has `more` normals.
    """
    law = SPECTRA[setting.name]
    points = default_rng(11).standard_normal((6, DIM))
    X = real(LENGTHSCALE * points)
    kernel = law.kernel(stretched * LENGTHSCALE)
    draws = _drawn(key, kernel, X, DIM + law.degrees * law.sets)
    draws = jax.tree.map(lambda v: np.asarray(v, float), draws)
    W = draws.frequencies[:1] if repeated else draws.frequencies
    V = draws.shifted_frequencies
    errors = [
        draws.shifts - draws.uniforms,
        _relative(W, _frequencies(law, draws.normals)),
        _relative(V, _frequencies(law, draws.shifted_normals)),
        draws.values - _mixture(law, points[1:] - points[0], more),
        draws.lengths,
    ]
    if setting.name == "Gaussian":  # the maps are the same for all
        paired = features.PairedFourier(kernel, real(W))(X)
        shifted = features.ShiftedFourier(kernel, real(V), real(draws.shifts))(X)
        phases = points @ W.T
        waves = np.hstack([np.cos(phases), np.sin(phases)]) / sqrt(len(W))
        turned = np.cos(points @ V.T + draws.shifts)
        errors.append(paired - waves)
        errors.append(shifted - turned * sqrt(2 / ROWS))
    return as_residual(np.concatenate([np.ravel(error) for error in errors]))


def drawn_features() -> Check:
    settings = tuple(map(Setting, SPECTRA))
    return check_of(
        Identity,
        settings,
        wrong("a lengthscale one per cent longer", "wrong factor", stretched=1.01),
        wrong("one frequency for all", "reused key", repeated=True),
        wrong("one normal more in chi", "wrong law", settings=settings[1:], more=1),
        corrected=drawn_errors,
    )


def _axes(name: str, r: float, rows: int, stretched: float = 1.0) -> Setting:
    """Return pairs of the origin and a point at distance r on each axis."""
    law = SPECTRA[name]
    points = r * np.eye(DIM + 1, DIM)  # the last one is the origin
    kernel = law.kernel(stretched * LENGTHSCALE)
    data = {"kernel": kernel, "pair": real(LENGTHSCALE * points)}
    deltas = np.stack([points[0], 2 * points[0], points[0] + points[1]])
    K, double, two = _mixture(law, deltas).tolist()
    # Exact: cos w_1 has the variance (1 + K(2 delta)) / 2 - K^2, and with cos w_2 the covariance `two` - K^2.
    of_one = (1 + double) / 2 - K**2
    variance = of_one / DIM + (1 - 1 / DIM) * (two - K**2)
    numbers = {"K": K, "variance": variance}
    return Setting(f"{name}, r={r:g}, t={rows}", data, numbers, {"rows": rows})


def spectral_means() -> Check:
    """Return the check of the means of the features, over the coordinate directions."""
    statement = Expectation(
        inner_product,
        lambda s: s.numbers["K"],
        lambda s: s.numbers["K"],
        precision=0.02,
        moment=lambda s: s.numbers["variance"] / s.shapes["rows"],
    )
    # As many frequencies as show one per cent of the lengthscale, ten standard errors of 2,000 draws.
    settings = (
        _axes("Exponential", 1.3, 450),
        _axes("Matern32", 1.1, 150),
        _axes("Matern52", 1.0, 128),
        _axes("Laplacian", 0.8, 150),
        _axes("Cauchy", 0.5, 75),
    )
    longer = (_axes("Matern52", 1.0, 128, stretched=1.01),)
    return Check(
        corrected=Form(statement, settings),
        controls=(
            Control(
                "a lengthscale one per cent longer", statement, longer, "wrong factor"
            ),
        ),
    )
