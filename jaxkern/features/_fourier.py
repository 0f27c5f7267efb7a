"""Random Fourier features: cosines at frequencies drawn from the spectral law of a shift-invariant kernel."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import checks
from jaxkern._blocks import by_blocks
from jaxkern._distances import everywhere
from jaxkern._types import Array, ArrayLike, DTypeLike, Float, PRNGKeyArray
from jaxkern.draws import numbered
from jaxkern.features._map import apply_rows
from jaxkern.kernels import Kernel, KernelLike, as_kernel
from jaxkern.kernels._spectra import spectral_law, unscaled
from jaxkern.linalg import matmul
from jaxkern.pytrees import pytree

_TOLERANCE = {"float32": 3e-5, "float64": 3e-11}
"""Rounding of a phase up to which one product serves; that of an inner product is a mean over frequencies."""
_DIGIT, _DIGITS = 7, 5
"""Bits of a digit of a coordinate, and digits: 2^35 quanta of about an eighth of a turn."""
_BLOCK_ELEMENTS = 2**19
"""Phases of a block: 2 MB in float32. Half as many or twice as many are as fast."""


class _Fourier:
    """What maps of cosines share; `kernel` is evaluated nowhere, its lengthscale and constant factors are used."""

    kernel: Any
    frequencies: jax.Array

    @property
    def num_frequencies(self) -> int:
        """Number of frequencies."""
        return self.frequencies.shape[0]

    @property
    def num_features(self) -> int:
        """Number of features, two for each frequency."""
        return 2 * self.num_frequencies

    def __call__(
        self, X: Float[ArrayLike, "... dim"]
    ) -> Float[Array, "... num_features"]:
        """Return phi(X), (..., num_features) for X (..., dim)."""
        return apply_rows(self._rows, X, self._like())

    def _rows(self, X: jax.Array) -> jax.Array:
        return _paired_rows(self, X)

    def _like(self) -> jax.Array:
        """Return an array of dim columns in the dtype of the map."""
        return self.frequencies

    def _turns(self, X: jax.Array) -> jax.Array:
        """Return the phases <w_j, x_i> / lengthscale in turns, that is divided by 2 pi, (n, num_frequencies)."""
        return matmul(X, (self.frequencies / self._turn(X.dtype)).T)

    def _turns_by_digits(self, X: jax.Array) -> jax.Array:
        """Return the phases in turns less whole turns, (n, num_frequencies), by `turns_by_digits`."""
        turn = self._turn(X.dtype)
        return turns_by_digits(X, self.frequencies / turn, turn)

    def _mean_length(self) -> jax.Array:
        """Return the mean length of a frequency for lengthscale 1."""
        return jnp.mean(jnp.sqrt(jnp.sum(self.frequencies**2, axis=1)))

    def _turn(self, dtype: Any) -> jax.Array:
        """Return 2 pi lengthscale, a scalar, or (1, dim) where each column has its own."""
        scale = unscaled(self.kernel)[0].lengthscale
        turn = (
            2
            * math.pi
            * checks.scalar("lengthscale", scale, dtype, columns=self._like().shape[1])
        )
        return turn[None, :] if turn.ndim else turn

    def _amplitude(self, square: float, dtype: Any) -> jax.Array:
        """Return sqrt(square) times the roots of the constants in front of the kernel."""
        amplitude = jnp.asarray(math.sqrt(square), dtype)
        for factor in unscaled(self.kernel)[1]:
            amplitude = amplitude * jnp.sqrt(checks.scalar("factor", factor, dtype))
        return amplitude


@pytree
class PairedFourier(_Fourier):
    """The map of `paired_fourier` and of `orthogonal_fourier`: columns [cos | sin].

    Attributes
    ----------
    kernel : the kernel.
    frequencies : (num_frequencies, dim), drawn for lengthscale 1 and divided by the kernel's at every call.
    """

    kernel: Any
    frequencies: jax.Array


@pytree
class ShiftedFourier(_Fourier):
    """The map of `shifted_fourier`.

    Attributes
    ----------
    kernel : the kernel.
    frequencies : (num_frequencies, dim), drawn for lengthscale 1 and divided by the kernel's at every call.
    shifts : (num_frequencies,), in [0, 2 pi).
    """

    kernel: Any
    frequencies: jax.Array
    shifts: jax.Array

    @property
    def num_features(self) -> int:
        """Number of features, one for each frequency."""
        return self.num_frequencies

    def _rows(self, X: jax.Array) -> jax.Array:
        return _shifted_rows(self, X)


def paired_fourier(
    key: PRNGKeyArray,
    kernel: KernelLike,
    dim: int,
    *,
    num_frequencies: int,
    dtype: DTypeLike | None = None,
) -> PairedFourier:
    """Draw the map phi(x) = (cos<w_1, x>, ..., cos<w_m, x>, sin<w_1, x>, ..., sin<w_m, x>) / sqrt(m).

    The w_j are independent and drawn from the spectral law of the kernel, so that E cos<w_j, x - y> = K(x, y). As
    <phi(x), phi(y)> is the mean of cos<w_j, x - y>, it depends on x - y alone, <phi(x), phi(x)> = 1 exactly, and

        E <phi(x), phi(y)> = K(x, y),    Var <phi(x), phi(y)> = (1 + K(2x, 2y) - 2 K(x, y)^2) / (2m).

    A constant in front of the kernel multiplies the features by its root, and with it all of these.

    Parameters
    ----------
    key : typed random key. Frequency j depends on the key, dim, the dtype and j alone, so a larger map repeats the
        frequencies of a smaller one.
    kernel : Gaussian, Laplacian, Exponential, Cauchy, Matern32 or Matern52, or a positive multiple of one.
    dim : dimension of the points, at least 1.
    num_frequencies : m, at least 1. There are 2m features.
    dtype : float32 or float64, that of the points to be mapped; by default that of the kernel's lengthscale where this
        is an array, and otherwise the default of JAX.

    Returns
    -------
    PairedFourier, a callable PyTree. Frequencies are kept for lengthscale 1: a gradient through the lengthscale exists,
    and kernels stacked for `vmap` share them.

    Notes
    -----
    m dim normal draws, and at most m max(5, 2 dim) more for the kernels other than Gaussian; mapping N points takes
    N m dim multiply-adds, N m sines and as many cosines. Memory O(m dim) to keep; to map, beyond the 2 N m numbers of
    the result, 2 MB on a CPU, where rows go through in blocks, and about as much again elsewhere and for derivatives.

    Inner products of features keep their digits however far points are from the origin; phases that one product would
    round by more than 3e-5 (float32) take three to four times as long: subtract the mean first, which changes no inner
    product. Source: rahimi2007; chen2016, Section 1.1, the map with a hat.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> phi = paired_fourier(jax.random.key(1), Gaussian(1.0), 3, num_frequencies=8)
    >>> phi(X).shape
    (100, 16)
    """
    return _paired(*draw_arguments(key, kernel, dim, num_frequencies, dtype))


def shifted_fourier(
    key: PRNGKeyArray,
    kernel: KernelLike,
    dim: int,
    *,
    num_frequencies: int,
    dtype: DTypeLike | None = None,
) -> ShiftedFourier:
    """Draw the map phi(x) = sqrt(2/m) (cos(<w_1, x> + b_1), ..., cos(<w_m, x> + b_m)).

    The w_j are independent and drawn from the spectral law of the kernel, the b_j uniform on [0, 2 pi). Then

        E <phi(x), phi(y)> = K(x, y),    Var <phi(x), phi(y)> = (1 + K(2x, 2y) / 2 - K(x, y)^2) / m,

    on the diagonal, too, where the variance is 1 / (2m) and not 0 as it is for `paired_fourier`. A constant in front of
    the kernel multiplies the features by its root.

    Parameters
    ----------
    key : typed random key. Frequency and shift j depend on the key, dim, the dtype and j alone, so a larger map repeats
        those of a smaller one.
    kernel, dim, dtype : as in `paired_fourier`.
    num_frequencies : m, at least 1, the number of features.

    Returns
    -------
    ShiftedFourier, a callable PyTree. Frequencies are kept for lengthscale 1, as in `paired_fourier`.

    Notes
    -----
    m uniform draws beside the normal ones of `paired_fourier`; mapping N points takes N m dim multiply-adds and N m
    cosines. Memory O(m dim) to keep. Moving the points changes inner products of these features, but not their law.
    Source: rahimi2007; ghashami2016, Section 2 (RFFMaps); chen2016, Section 1.1, the map with a tilde, there without
    sqrt(2).
    """
    return _shifted(*draw_arguments(key, kernel, dim, num_frequencies, dtype))


def draw_arguments(
    key: Any,
    kernel: Any,
    dim: Any,
    num_frequencies: Any,
    dtype: Any,
    *,
    rotation_invariant: bool = False,
) -> tuple[jax.Array, Kernel, int, int, np.dtype]:
    """Return the arguments of a draw, validated."""
    key, kernel = checks.key(key), as_kernel(kernel)
    spectral_law(kernel, rotation_invariant=rotation_invariant)
    dim, num_frequencies = (
        checks.count("dim", dim),
        checks.count("num_frequencies", num_frequencies),
    )
    return key, kernel, dim, num_frequencies, _floating(dtype, kernel)


def _floating(dtype: Any, kernel: Kernel) -> np.dtype:
    """Return the dtype asked for, or that of the kernel's lengthscale, or the default."""
    default = np.dtype(jnp.result_type(float))
    floats = {np.dtype("float32"), default}
    if dtype is None:
        own = getattr(unscaled(kernel)[0].lengthscale, "dtype", default)
        return np.dtype(own) if own in floats else default
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        wanted = None
    if wanted not in floats:
        names = " or ".join(sorted(str(name) for name in floats))
        raise ValueError(
            f"dtype must be {names}, got {dtype!r} (float64 needs JAX_ENABLE_X64=1)"
        )
    return wanted


@partial(jax.jit, static_argnums=(2, 3, 4))
def _paired(
    key: jax.Array, kernel: Kernel, dim: int, m: int, dtype: Any
) -> PairedFourier:
    return PairedFourier(kernel, spectral_law(kernel).frequencies(key, m, dim, dtype))


@partial(jax.jit, static_argnums=(2, 3, 4))
def _shifted(
    key: jax.Array, kernel: Kernel, dim: int, m: int, dtype: Any
) -> ShiftedFourier:
    frequencies_key, shifts_key = jax.random.split(key)
    shifts = jax.vmap(lambda k: jax.random.uniform(k, (), dtype, 0, 2 * math.pi))(
        numbered(shifts_key, m)
    )
    return ShiftedFourier(
        kernel, spectral_law(kernel).frequencies(frequencies_key, m, dim, dtype), shifts
    )


@jax.jit
def _paired_rows(phi: Any, X: jax.Array) -> jax.Array:
    return by_blocks(_paired_block, phi, X, block_size=_block_size(phi))


def _paired_block(phi: Any, X: jax.Array) -> tuple[jax.Array, jax.Array]:
    turns, amplitude = (
        _reduced_turns(phi, X),
        phi._amplitude(1 / phi.num_frequencies, X.dtype),
    )
    # sin a = cos(a - pi / 2)
    return amplitude * _cos_of_turns(turns), amplitude * _cos_of_turns(turns - 0.25)


@jax.jit
def _shifted_rows(phi: ShiftedFourier, X: jax.Array) -> jax.Array:
    return by_blocks(_shifted_block, phi, X, block_size=_block_size(phi))


def _shifted_block(phi: ShiftedFourier, X: jax.Array) -> jax.Array:
    turns = _reduced_turns(phi, X) + phi.shifts[None, :] / (2 * math.pi)
    return phi._amplitude(2 / phi.num_frequencies, X.dtype) * _cos_of_turns(turns)


def _block_size(phi: Any) -> int:
    return max(_BLOCK_ELEMENTS // phi.num_frequencies, 64)


def _reduced_turns(phi: Any, X: jax.Array) -> jax.Array:
    """Return the phases in turns less whole turns, (n, num_frequencies), without the rounding of large ones.

    Rows whose phases one product would round by more than a tolerance, six times what is typical of its sums, are
    mapped by digits. Each row for itself: its features do not depend on the others. Derivatives are those of the
    product.
    """
    return _fraction(_corrected(phi._turns(X), phi, X))


@jax.custom_jvp
def _corrected(turns: jax.Array, phi: Any, X: jax.Array) -> jax.Array:
    """Return the phases, by digits where they need it."""
    unit = jnp.finfo(X.dtype).eps / 2
    sizes = jnp.sqrt(jnp.sum((X * (2 * math.pi / phi._turn(X.dtype))) ** 2, axis=1))
    near = 6 * unit * sizes * phi._mean_length() <= _TOLERANCE[X.dtype.name]

    def by_digits(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return jnp.where(near[:, None], state[0], phi._turns_by_digits(X)), jnp.ones(
            (), bool
        )

    # A loop of at most one turn, in place; a condition would copy the phases.
    return lax.while_loop(
        lambda state: ~state[1], by_digits, (turns, everywhere(jnp.all(near)))
    )[0]


@_corrected.defjvp
def _corrected_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    return _corrected(*primals), tangents[0]


def turns_by_digits(X: jax.Array, rate: jax.Array, turn: jax.Array) -> jax.Array:
    """Return X rate^T less whole turns, to a few roundings of one turn; X up to 2^31 times `turn`, 2 pi lengthscale.

    `turn` is a scalar or (1, dim), as are the quanta.
    A coordinate is a sum of digits times a power of two each, and a rest of at most a lengthscale. A whole
    number of turns in such a power may be taken off, exactly; what is left is cut after 10 bits, so that its products
    with digits of 6 bits are added without rounding.
    """
    info = jnp.finfo(X.dtype)
    quantum = lax.reduce_precision(turn, info.nexp, 0) / 8  # a power of two
    X, rate = X / quantum, rate * quantum

    def take(
        _: Any, state: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        X, total, step = state
        digits = jnp.round(X / step)
        left = _fraction(rate * step)
        head = jnp.round(left * 1024) / 1024
        total = _fraction(
            total + _fraction(matmul(digits, head.T)) + matmul(digits, (left - head).T)
        )
        return X - digits * step, total, step / 2**_DIGIT

    none = jnp.zeros((X.shape[0], rate.shape[0]), X.dtype)
    first = jnp.asarray(2.0 ** (_DIGIT * (_DIGITS - 1)), X.dtype)
    X, total, _ = lax.fori_loop(0, _DIGITS, take, (X, none, first))
    return _fraction(total + matmul(X, rate.T))


@jax.custom_jvp
def _cos_of_turns(turns: jax.Array) -> jax.Array:
    """Return cos(2 pi t), with an absolute error of about one rounding of a number near 1, however large t is.

    Whole turns are subtracted exactly, r = t - round(t). Then cos(2 pi r) = sin(2 pi u), u = 1/4 - |r| in [-1/4, 1/4],
    where few terms of a series are left. XLA's cosine in float32 takes several times longer on a CPU, since it prepares
    for arguments that are not given in turns.
    """
    u = 0.25 - jnp.abs(_fraction(turns))
    square = u * u
    terms = _SINE_TERMS[turns.dtype.name]
    series = jnp.full_like(u, terms[-1])
    for term in terms[-2::-1]:
        series = series * square + term
    return u * series


@_cos_of_turns.defjvp
def _cos_of_turns_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    (turns,), (change,) = primals, tangents
    return _cos_of_turns(turns), -2 * math.pi * _cos_of_turns(
        _fraction(turns) - 0.25
    ) * change


def _fraction(turns: jax.Array) -> jax.Array:
    """Return t - round(t), exact; a quarter added to a large t would be lost, not so one added to this."""
    return turns - jnp.round(turns)


def _interpolated(count: int) -> list[float]:
    """Return the odd polynomial of so many terms that is sin(2 pi u) at Chebyshev points of [-1/4, 1/4]."""
    x = np.cos(math.pi * (np.arange(count) + 0.5) / (2 * count))
    terms = np.linalg.solve(
        x[:, None] ** np.arange(1, 2 * count, 2), np.sin(math.pi / 2 * x)
    )
    return [float(term) * 4.0 ** (2 * k + 1) for k, term in enumerate(terms)]


_SINE_TERMS = {
    "float32": _interpolated(5),  # within 7e-9
    # Taylor: what is left out is at most (pi / 2)^(2k + 1) / (2k + 1)! for k terms, 1e-18.
    "float64": [
        (-1) ** k * (2 * math.pi) ** (2 * k + 1) / math.factorial(2 * k + 1)
        for k in range(11)
    ],
}
