"""chen2016, Section 2 (ours): the frequencies that the library draws, for every kernel whose spectral law it knows.

Every law is one of s z, z standard normal and s a function of an independent chi variable.
"""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import features, kernels
from proofs_check.claim import Check, Control, Expectation, Form, Identity, Setting
from proofs_check.papers.chen2016 import trials
from proofs_check.papers.shared import as_residual, real

DIM, ROWS, LENGTHSCALE = 8, 8, 1.5
Array = np.ndarray


class Spectrum(NamedTuple):
    """How s comes from a chi variable, one for all coordinates or one for each, and the kernel of differences."""

    kernel: Callable[[float], Any]
    degrees: int
    scale: Callable[[Array], Array]
    shared: bool
    value: Callable[[Array], Array]


def _student(degrees: int) -> Callable[[Array], Array]:
    return lambda chi: math.sqrt(degrees) / chi


def _matern(degrees: int) -> Callable[[Array], Array]:
    def value(delta: Array) -> Array:
        a = math.sqrt(degrees) * np.linalg.norm(delta, axis=-1)
        return np.exp(-a) * {1: 1, 3: 1 + a, 5: 1 + a + a**2 / 3}[degrees]

    return value


def _exponential_of_sum(delta: Array) -> Array:
    return np.exp(-np.sum(np.abs(delta), axis=-1))


SPECTRA: Mapping[str, Spectrum] = {
    "Gaussian": Spectrum(kernels.Gaussian, 0, np.ones_like, True, lambda d: np.exp(-np.sum(d**2, axis=-1) / 2)),
    "Exponential": Spectrum(kernels.Exponential, 1, _student(1), True, _matern(1)),
    "Matern32": Spectrum(kernels.Matern32, 3, _student(3), True, _matern(3)),
    "Matern52": Spectrum(kernels.Matern52, 5, _student(5), True, _matern(5)),
    "Laplacian": Spectrum(kernels.Laplacian, 1, _student(1), False, _exponential_of_sum),
    "Cauchy": Spectrum(kernels.Cauchy, 2, np.asarray, False, lambda d: np.prod(1 / (1 + d**2), axis=-1)),
}


@functools.partial(jax.jit, static_argnames="columns")
def _drawn(key: jax.Array, kernel: Any, X: jax.Array, columns: int) -> tuple[jax.Array, ...]:
    """Return what the library draws, frequencies and shifts, its K(x_0, x), and the numbers behind the draws."""
    options: dict[str, Any] = {"num_frequencies": ROWS, "dtype": X.dtype}
    phi, psi = (draw(key, kernel, DIM, **options) for draw in (features.paired_fourier, features.shifted_fourier))

    first, second = jax.random.split(key)
    numbered = jax.vmap(lambda i: jax.random.fold_in(second, i))(jnp.arange(ROWS, dtype=jnp.uint32))
    shifts = jax.vmap(lambda k: jax.random.uniform(k, (), X.dtype, 0, 2 * math.pi))(numbered)
    values = jax.vmap(lambda x: kernel(X[0], x))(X[1:])
    own, other = (trials.normals(k, ROWS, columns, X.dtype) for k in (key, first))
    return phi.frequencies, own, psi.frequencies, other, psi.shifts, shifts, values


def _frequencies(law: Spectrum, normals: Array) -> Array:
    """Return s z (ROWS, DIM) from the normals of each row, first those of z and then those of chi."""
    chi = (
        np.linalg.norm(normals[:, DIM:].reshape(ROWS, -1, law.degrees or 1), axis=2) if law.degrees else np.ones((1, 1))
    )
    return normals[:, :DIM] * law.scale(chi)


def _mixture(law: Spectrum, deltas: Array, more: int) -> Array:
    """Return E exp(-|s delta|^2 / 2) for deltas (n, DIM), by the trapezoidal rule for the log of chi."""
    u = np.arange(-45, 4, 0.02)
    weights = stats.chi.pdf(np.exp(u), max(law.degrees, 1) + more) * np.exp(u)
    squared = np.sum(deltas**2, axis=1, keepdims=True) if law.shared else deltas**2
    means = np.exp(-squared[..., None] * law.scale(np.exp(u)) ** 2 / 2) @ (weights / weights.sum())
    return np.asarray(np.prod(means, axis=1))


def drawn_features(
    key: jax.Array, setting: Setting, *, stretched: float = 1.0, repeated: bool = False, more: int = 0
) -> Array:
    """Return differences of the library's draws, maps and kernel from their formulas in NumPy.

    Sabotaged, the lengthscale is `stretched`, all frequencies are the first, or chi has `more` normals.
    """
    law, points = SPECTRA[setting.name], np.random.default_rng(11).standard_normal((6, DIM))
    X, kernel = real(LENGTHSCALE * points), law.kernel(stretched * LENGTHSCALE)
    found = _drawn(key, kernel, X, DIM + law.degrees * (1 if law.shared else DIM))
    W, normals, V, others, shifts, uniforms, values = (np.asarray(v, float) for v in found)
    if repeated:
        W = W[:1]
    deltas = points[1:] - points[0]
    errors = [W - _frequencies(law, normals), V - _frequencies(law, others), shifts - uniforms]
    errors += [values - law.value(deltas), values - _mixture(law, deltas, more)]
    if setting.name == "Gaussian":  # the maps are the same for all
        paired = features.PairedFourier(kernel, real(W))(X)
        shifted = features.ShiftedFourier(kernel, real(V), real(shifts))(X)
        phases, turned = points @ W.T, points @ V.T + shifts
        errors += [paired - np.hstack([np.cos(phases), np.sin(phases)]) / math.sqrt(len(W))]
        errors += [shifted - np.cos(turned) * math.sqrt(2 / ROWS)]
    return as_residual(np.concatenate([np.ravel(error) for error in errors]))


def drawn() -> Check:
    """Return the check of the features that are drawn, number by number."""
    settings = tuple(map(Setting, SPECTRA))
    residual = functools.partial(functools.partial, drawn_features)
    return Check(
        corrected=Form(Identity(residual()), settings),
        controls=(
            Control("a lengthscale one per cent longer", Identity(residual(stretched=1.01)), settings, "wrong factor"),
            Control("one frequency for all", Identity(residual(repeated=True)), settings, "reused key"),
            Control("one normal more in chi", Identity(residual(more=1)), settings[1:], "wrong law"),
        ),
    )


def means() -> Check:
    """Return the check of the means of the features, over the coordinate directions."""

    def moment(setting: Setting) -> float:
        """Exact: cos w_1 has the variance (1 + K(2 delta)) / 2 - K^2, and with cos w_2 the covariance K_2 - K^2."""
        K, r = SPECTRA[setting.name.split(",")[0]].value, setting.numbers["r"]
        one, two = np.eye(DIM)[0], np.eye(DIM)[1]
        square = K(r * one) ** 2
        own, shared = (1 + K(2 * r * one)) / 2 - square, K(r * (one + two)) - square
        return float(own / DIM + (1 - 1 / DIM) * shared) / setting.shapes["rows"]

    statement = Expectation(
        trials.inner_product, lambda s: s.numbers["K"], lambda s: s.numbers["K"], precision=0.02, moment=moment
    )

    def setting(name: str, r: float, rows: int, stretched: float = 1.0) -> Setting:
        law = SPECTRA[name]
        points = LENGTHSCALE * r * np.eye(DIM + 1, DIM)  # the last one is the origin
        population = {"kernel": law.kernel(stretched * LENGTHSCALE), "pair": real(points)}
        numbers = {"K": float(law.value(r * np.eye(DIM)[0])), "r": r}
        return Setting(f"{name}, r={r:g}, t={rows}", population, numbers, {"rows": rows})

    # As many frequencies as show one per cent of the lengthscale, ten standard errors of 2,000 draws.
    sizes = {"Exponential": (1.3, 600), "Matern32": (1.1, 200), "Matern52": (1.0, 160)}
    sizes |= {"Laplacian": (0.8, 200), "Cauchy": (0.5, 100)}
    settings = tuple(setting(name, *size) for name, size in sizes.items())
    longer = (setting("Matern52", 1.0, 160, stretched=1.01),)
    return Check(
        corrected=Form(statement, settings),
        controls=(Control("a lengthscale one per cent longer", statement, longer, "wrong factor"),),
    )
