"""Covariance operators of finite-support measures, Gaussian draws with them, and random projections."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import checks, linalg
from jaxkern._distances import safe_sqrt
from jaxkern._types import Array, ArrayLike, Float, PRNGKeyArray
from jaxkern._weights import mass, number, positions, present
from jaxkern.draws import normal_rows
from jaxkern.gram import _gram
from jaxkern.kernels import Kernel, as_kernel
from jaxkern.linalg import matmul
from jaxkern.linalg._dense import power_of, scale_of
from jaxkern.linalg._leading import positive_power
from jaxkern.pytrees import pytree, static
from jaxkern.rkhs._function import Function, along, contract, inner, same_space


@pytree
class Covariance:
    """Sigma = sum_i w_i K_{x_i} (x) K_{x_i}, the covariance operator of a finite-support measure.

    With equal weights it is the empirical operator Sigma_n = S* S / n of kpotufe2020; with the atoms and probabilities
    of a population it is the exact population operator. `centered=True` subtracts the mean embedding
    mu = sum_i w_i K_{x_i} first.

    Parameters
    ----------
    kernel : a kernel, or a function of two points.
    points : (p, d) atoms.
    weights : (p,) non-negative weights in the dtype of the points, of any positive sum, by which they are divided; or
        None for equal ones. An atom of weight 0 does not exist, whatever it holds. NumPy weights that are negative, not
        finite or all zero raise ValueError when used; with others, `total` and everything else is NaN.
    centered : static; whether the mean is subtracted.

    Notes
    -----
    Sigma = B* B with B f = (sqrt(w_i) f(x_i))_i, and A = B B* is p x p: eigenvalues of Sigma are those of A, and
    Sigma^p = B* A^(p-1) B. Memory O(p^2).
    """

    kernel: Any
    points: Any
    weights: Any = None
    centered: bool = static(default=False)

    def __post_init__(self) -> None:
        """Validate the static flag."""
        checks.flag("centered", self.centered)

    def __call__(self, f: Function, *, power: float = 1) -> Function:
        """Return Sigma^power f, power >= 1 (or 0, the identity); whole powers need no eigen-decomposition."""
        power = _power(power, least=1)
        f = same_space(f, as_kernel(self.kernel))
        if power == 0:
            return f
        kernel, points, root = self._parts()
        A = _whitened(kernel, points, root, self.centered)
        half = _apply_power(A, root, self._analysis(f), power - 1)
        return Function(kernel, points, _synthesis(root, half, self.centered))

    def inner(self, f: Function, g: Function, *, power: float = 3) -> Float[Array, ...]:
        """Return <f, Sigma^power g>: a scalar, or all pairs (r_f, r_g); power 0 is the inner product of H."""
        power = _power(power, least=1)
        kernel, points, root = self._parts()
        f, g = same_space(f, kernel), same_space(g, kernel)
        if power == 0:
            return inner(f, g)
        A = _whitened(kernel, points, root, self.centered)
        return contract(
            self._analysis(f), _apply_power(A, root, self._analysis(g), power - 1)
        )

    @property
    def total(self) -> jax.Array:
        """The sum of the weights as they were given, or NaN if they are no weights."""
        points = checks.matrix("points", self.points)
        weights = checks.weights(self.weights, "points", points)
        return mass(
            jnp.ones(points.shape[0], points.dtype) if weights is None else weights
        )

    def matrix(self) -> Float[Array, "p p"]:
        """Return A = B B*, (p, p), which has the eigenvalues of Sigma."""
        return _whitened(*self._parts(), self.centered)

    def eigenvalues(self) -> Float[Array, " p"]:
        """Return the p eigenvalues, descending; those below eps * (atoms that exist) * the largest are set to zero."""
        return linalg.psd_eigvalsh(self.matrix(), number(self._parts()[2]))

    def trace(self, power: float = 1) -> jax.Array:
        """Return tr Sigma^power; whole powers are products, without an eigen-decomposition."""
        power = _power(power, least=0)
        scale, A = self._scaled()
        return power_of(scale, power) * self._trace(A, power)

    def op_norm(self, power: float = 1) -> jax.Array:
        """Return the operator norm of Sigma^power."""
        power = _power(power, least=0)
        scale, A = self._scaled()
        return power_of(scale, power) * _largest(A, power)

    def hs_norm(self, power: float = 1) -> jax.Array:
        """Return the Hilbert-Schmidt norm of Sigma^power."""
        power = _power(power, least=0)
        scale, A = self._scaled()
        square = self._trace(A, 2 * power)
        return power_of(scale, power) * jnp.sqrt(square)

    def effective_rank(self, power: float = 1) -> jax.Array:
        """Return tr Sigma^power / |Sigma^power|, the effective dimension s of the papers."""
        power = _power(power, least=0)
        _, A = self._scaled()
        return self._trace(A, power) / _largest(A, power)

    def mean(self) -> Function:
        """Return the mean embedding mu = sum_i w_i K_{x_i}, whether or not Sigma is centred."""
        kernel, points, root = self._parts()
        return Function(kernel, points, root * root)

    def kappa(self) -> jax.Array:
        """Return the largest K(x, x) over the atoms."""
        kernel, points, _ = self._parts()
        return jnp.max(kernel._diagonal(points))

    def _scaled(self) -> tuple[jax.Array, jax.Array]:
        """Return a scale and A over it, whose powers stay in the range of the dtype."""
        A = self.matrix()
        scale = scale_of(A)
        return scale, A / scale

    def _trace(self, A: jax.Array, power: float) -> jax.Array:
        if power.is_integer():
            return linalg.trace_power(A, round(power))
        values = linalg.psd_eigvalsh(A, number(self._parts()[2]))
        return jnp.sum(positive_power(values, power))

    def _parts(self) -> tuple[Kernel, jax.Array, jax.Array]:
        points = checks.matrix("points", self.points)
        weights = checks.weights(self.weights, "points", points)
        if weights is None:
            root = jnp.full(
                points.shape[:1], (1 / points.shape[0]) ** 0.5, points.dtype
            )
        else:
            root, points = safe_sqrt(weights / mass(weights)), present(points, weights)
        return as_kernel(self.kernel), points, root

    def _analysis(self, f: Function) -> jax.Array:
        """Return B f, (p,) or (p, r)."""
        _, points, root = self._parts()
        values = f(points)
        if self.centered:
            mean = jnp.tensordot(root * root, values, axes=1, precision=linalg.HIGHEST)
            values = values - mean[None, ...]
        return along(root, values) * values


def _largest(A: jax.Array, power: float) -> jax.Array:
    """Return the largest eigenvalue of A^power."""
    return jnp.maximum(linalg.eigvalsh(A)[0], 0) ** power


@partial(jax.jit, static_argnames=("centered",))
def _whitened(
    kernel: Kernel, points: jax.Array, root: jax.Array, centered: bool
) -> jax.Array:
    K = _gram(kernel, points)
    if centered:
        weights = (root * root)[:, None]
        K = K - matmul(weights.T, K)
        K = K - matmul(K, weights)
    return root[:, None] * K * root[None, :]


@partial(jax.jit, static_argnames=("power",))
def _apply_power(
    A: jax.Array, root: jax.Array, values: jax.Array, power: float
) -> jax.Array:
    if float(power).is_integer():
        for _ in range(round(power)):
            values = matmul(A, values)
        return values
    return matmul(linalg.psd_power(A, power, number(root)), values)


@partial(jax.jit, static_argnames=("centered",))
def _synthesis(root: jax.Array, beta: jax.Array, centered: bool) -> jax.Array:
    """Return the weights of B* beta."""
    weights = along(root, beta) * beta
    if centered:
        weights = weights - along(root * root, beta) * jnp.sum(
            weights, axis=0, keepdims=True
        )
    return weights


def draw_gaussian(
    key: PRNGKeyArray, covariance: Covariance, *, power: float = 1, num_draws: int = 1
) -> Function:
    """Draw from the Gaussian measure N_H(0, Sigma^power), power >= 1.

    v = B* A^((power - 1) / 2) g with g standard normal has covariance B* A^(power - 1) B = Sigma^power exactly. Odd
    powers need no eigen-decomposition.

    Parameters
    ----------
    key : typed random key. The first draws do not depend on how many are drawn, nor any on atoms of weight 0.
    covariance : a Covariance.
    power : static number >= 1; kpotufe2020 uses 1 (directions u_i) and 3 (directions v_i).
    num_draws : number r of draws.

    Returns
    -------
    Function with weights (p, r).
    """
    key = checks.key(key)
    power = _power(power, least=1)
    if power < 1:
        raise ValueError(
            f"power must be at least 1, got {power}; Sigma^0 is not trace class"
        )
    num_draws = checks.count("num_draws", num_draws)
    kernel, points, root = covariance._parts()
    normal = normal_rows(key, num_draws, points.shape[0], points.dtype).T
    if covariance.weights is not None:
        normal = normal[positions(root)]
    half = _apply_power(covariance.matrix(), root, normal, (power - 1) / 2)
    return Function(kernel, points, _synthesis(root, half, covariance.centered))


@jax.tree_util.register_pytree_with_keys_class
class RandomProjection:
    """Theta: H -> R^d, f -> (<v_1, f>, ..., <v_d, f>) / sqrt(d) with v_i from N_H(0, Sigma^power) (kpotufe2020, (2)).

    It preserves <f, Sigma^power g> in expectation.

    Parameters
    ----------
    key : typed random key.
    covariance : a Covariance.
    num_features : d, at least 1.
    power : static number >= 1, 3 in the paper.
    """

    directions: Function

    def __init__(
        self,
        key: PRNGKeyArray,
        covariance: Covariance,
        *,
        num_features: int,
        power: float = 3,
    ) -> None:
        """Draw the directions."""
        num_features = checks.count("num_features", num_features)
        self.directions = draw_gaussian(
            key, covariance, power=power, num_draws=num_features
        )

    def __call__(self, f: Function) -> Float[Array, "... d"]:
        """Return Theta f, (d,) for one function, (r, d) for r of them."""
        products = inner(self.directions, f)
        return products.T / products.shape[0] ** 0.5

    def adjoint(self, alpha: Float[ArrayLike, " d"]) -> Function:
        """Return Theta* alpha = sum_i alpha_i v_i / sqrt(d) for alpha (d,)."""
        weights = jnp.asarray(self.directions.weights)
        alpha = checks.vector("alpha", alpha, size=weights.shape[1])
        combined = matmul(weights, alpha) / weights.shape[1] ** 0.5
        return Function(self.directions.kernel, self.directions.points, combined)

    def tree_flatten_with_keys(self) -> tuple[Any, None]:
        """Return the directions, the one child."""
        return ((jax.tree_util.GetAttrKey("directions"), self.directions),), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> RandomProjection:
        """Rebuild from the directions."""
        projection = object.__new__(cls)
        (projection.directions,) = children
        return projection


def _power(power: Any, *, least: float) -> float:
    """Return a static power: zero, or at least `least`; anything positive where least is 0."""
    if not checks.is_static(power):
        raise ValueError(f"power must be a static number, got {power!r}")
    if not (power == 0 and least > 0) and not (power >= least and power > 0):
        wanted = "0 or at least 1" if least > 0 else "positive"
        raise ValueError(f"power must be {wanted}, got {power}")
    return float(power)
