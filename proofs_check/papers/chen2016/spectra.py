"""chen2016, Section 2 (ours): the frequencies that the library draws, for every kernel whose spectral law it knows.

Every law is one of s z, z standard normal and s a function of an independent chi variable.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import features, kernels
from proofs_check.claim import Check, Control, Expectation, Form, Identity, Setting
from proofs_check.papers.chen2016 import trials
from proofs_check.papers.shared import as_residual, normals, parametrized, real

DIM, ROWS, LENGTHSCALE = 8, 8, 1.5
Array = np.ndarray


class Spectrum(NamedTuple):
    """A kernel, and how s comes from a chi variable of so many degrees: one for all coordinates, or one for each."""

    kernel: Callable[[float], Any]
    degrees: int
    scale: Callable[[Array], Array]
    sets: int = 1


SPECTRA = {
    "Gaussian": Spectrum(kernels.Gaussian, 0, np.ones_like),
    "Exponential": Spectrum(kernels.Exponential, 1, lambda chi: 1 / chi),
    "Matern32": Spectrum(kernels.Matern32, 3, lambda chi: math.sqrt(3) / chi),
    "Matern52": Spectrum(kernels.Matern52, 5, lambda chi: math.sqrt(5) / chi),
    "Laplacian": Spectrum(kernels.Laplacian, 1, lambda chi: 1 / chi, DIM),
    "Cauchy": Spectrum(kernels.Cauchy, 2, np.asarray, DIM),
}


@functools.partial(jax.jit, static_argnames="columns")
def _drawn(
    key: jax.Array, kernel: Any, X: jax.Array, columns: int
) -> tuple[jax.Array, ...]:
    """Return what the library draws, frequencies and shifts, its K(x_0, x), and the numbers behind the draws."""
    options: dict[str, Any] = {"num_frequencies": ROWS, "dtype": X.dtype}
    phi, psi = (
        draw(key, kernel, DIM, **options)
        for draw in (features.paired_fourier, features.shifted_fourier)
    )
    lengths = jnp.zeros((DIM, DIM), X.dtype)
    if not isinstance(
        kernel, kernels.Laplacian | kernels.Cauchy
    ):  # one block of orthogonal ones, as long as those of phi
        V = features.orthogonal_fourier(key, kernel, DIM, **options).frequencies
        lengths = (V @ V.T - jnp.diag(jnp.sum(phi.frequencies**2, axis=1))) / (
            1 + jnp.max(phi.frequencies**2)
        )
    if isinstance(
        kernel, kernels.Gaussian
    ):  # and a block of Fastfood, whose lengths are chi
        F, keys = (
            features.fastfood(key, kernel, DIM, **options).frequencies,
            jax.random.split(key, 3)[1],
        )
        folded = jax.vmap(lambda i: jax.random.fold_in(keys, i))(
            jnp.arange(ROWS, dtype=jnp.uint32)
        )
        squares = 2 * jax.vmap(lambda k: jax.random.gamma(k, DIM / 2, (), X.dtype))(
            folded
        )
        lengths = jnp.concatenate(
            [lengths, (jnp.sum(F**2, axis=1) - squares)[None] / DIM]
        )

    first, second = jax.random.split(key)
    numbered = jax.vmap(lambda i: jax.random.fold_in(second, i))(
        jnp.arange(ROWS, dtype=jnp.uint32)
    )
    shifts = jax.vmap(lambda k: jax.random.uniform(k, (), X.dtype, 0, 2 * math.pi))(
        numbered
    )
    values = jax.vmap(lambda x: kernel(X[0], x))(X[1:])
    own, other = (normals(k, ROWS, columns, X.dtype) for k in (key, first))
    return (
        phi.frequencies,
        own,
        psi.frequencies,
        other,
        psi.shifts,
        shifts,
        values,
        lengths,
    )


def _frequencies(law: Spectrum, normals: Array) -> Array:
    """Return s z (ROWS, DIM) from the normals of each row, first those of z and then those of chi."""
    chi = np.linalg.norm(normals[:, DIM:].reshape(ROWS, law.sets, law.degrees), axis=2)
    return normals[:, :DIM] * law.scale(chi)


def _mixture(law: Spectrum, deltas: Array, more: int = 0) -> Array:
    """Return K = E exp(-|s delta|^2 / 2) for deltas (n, DIM), by the trapezoidal rule for the log of chi."""
    u = np.arange(-45, 4, 0.02)
    weights = stats.chi.pdf(np.exp(u), max(law.degrees, 1) + more) * np.exp(u)
    squared = np.sum(deltas**2, axis=1, keepdims=True) if law.sets == 1 else deltas**2
    means = np.exp(-squared[..., None] * law.scale(np.exp(u)) ** 2 / 2) @ (
        weights / weights.sum()
    )
    return np.asarray(np.prod(means, axis=1))


def drawn_features(
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
    law, points = (
        SPECTRA[setting.name],
        np.random.default_rng(11).standard_normal((6, DIM)),
    )
    X, kernel = real(LENGTHSCALE * points), law.kernel(stretched * LENGTHSCALE)
    found = _drawn(key, kernel, X, DIM + law.degrees * law.sets)
    W, normals, V, others, shifts, uniforms, values, orthogonal = (
        np.asarray(v, float) for v in found
    )
    if repeated:
        W = W[:1]
    errors = [shifts - uniforms]
    for frequencies, numbers in ((W, normals), (V, others)):
        expected = _frequencies(law, numbers)
        # Cauchy frequencies exceed 10^4 at one seed of a hundred, and are rounded relative to their size.
        errors.append((frequencies - expected) / np.maximum(1, np.abs(expected)))
    errors += [values - _mixture(law, points[1:] - points[0], more), orthogonal]
    if setting.name == "Gaussian":  # the maps are the same for all
        paired = features.PairedFourier(kernel, real(W))(X)
        shifted = features.ShiftedFourier(kernel, real(V), real(shifts))(X)
        phases, turned = points @ W.T, points @ V.T + shifts
        errors += [
            paired - np.hstack([np.cos(phases), np.sin(phases)]) / math.sqrt(len(W))
        ]
        errors += [shifted - np.cos(turned) * math.sqrt(2 / ROWS)]
    return as_residual(np.concatenate([np.ravel(error) for error in errors]))


def drawn() -> Check:
    """Return the check of the features that are drawn, number by number."""
    settings = tuple(map(Setting, SPECTRA))
    residual = parametrized(Identity)(drawn_features)
    return Check(
        corrected=Form(residual(), settings),
        controls=(
            Control(
                "a lengthscale one per cent longer",
                residual(stretched=1.01),
                settings,
                "wrong factor",
            ),
            Control(
                "one frequency for all", residual(repeated=True), settings, "reused key"
            ),
            Control(
                "one normal more in chi", residual(more=1), settings[1:], "wrong law"
            ),
        ),
    )


def means() -> Check:
    """Return the check of the means of the features, over the coordinate directions."""

    statement = Expectation(
        trials.inner_product,
        lambda s: s.numbers["K"],
        lambda s: s.numbers["K"],
        precision=0.02,
        moment=lambda s: s.numbers["variance"] / s.shapes["rows"],
    )

    def setting(name: str, r: float, rows: int, stretched: float = 1.0) -> Setting:
        law, points = (
            SPECTRA[name],
            r * np.eye(DIM + 1, DIM),
        )  # the last one is the origin
        pair = real(LENGTHSCALE * points)
        population = {"kernel": law.kernel(stretched * LENGTHSCALE), "pair": pair}
        K, double, two = _mixture(
            law, np.stack([points[0], 2 * points[0], points[0] + points[1]])
        ).tolist()
        # Exact: cos w_1 has the variance (1 + K(2 delta)) / 2 - K^2, and with cos w_2 the covariance `two` - K^2.
        variance = ((1 + double) / 2 - K**2) / DIM + (1 - 1 / DIM) * (two - K**2)
        return Setting(
            f"{name}, r={r:g}, t={rows}",
            population,
            {"K": K, "variance": variance},
            {"rows": rows},
        )

    # As many frequencies as show one per cent of the lengthscale, ten standard errors of 2,000 draws.
    sizes = {"Exponential": (1.3, 450), "Matern32": (1.1, 150), "Matern52": (1.0, 128)}
    sizes |= {"Laplacian": (0.8, 150), "Cauchy": (0.5, 75)}
    settings = tuple(setting(name, *size) for name, size in sizes.items())
    longer = (setting("Matern52", 1.0, 128, stretched=1.01),)
    return Check(
        corrected=Form(statement, settings),
        controls=(
            Control(
                "a lengthscale one per cent longer", statement, longer, "wrong factor"
            ),
        ),
    )
