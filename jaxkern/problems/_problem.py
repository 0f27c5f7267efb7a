"""A data set together with the truth that it was drawn from."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import checks, measures
from jaxkern._types import Array, ArrayLike, Float, Int, PRNGKeyArray
from jaxkern.kernels import KernelLike
from jaxkern.measures._noise import Noise, model_of
from jaxkern.problems._laws import GaussianLaw, Law
from jaxkern.pytrees import pytree

GAUSSIAN = GaussianLaw()


@pytree
class Problem:
    """Points X_i = mu_i + sqrt(Sigma_i) W_i, and what they were made of.

    Attributes
    ----------
    points : (n, d) the data X.
    labels : (n,) int32, the cluster of each point.
    means : (n, d) the signal mu.
    noise : the noise model of `measures` that holds the covariances Sigma_i.
    law : the law of W.
    """

    points: jax.Array
    labels: jax.Array
    means: jax.Array
    noise: Any
    law: Any

    @property
    def omega(self) -> Any:
        """The constant omega of amini2021, Definition 2, for the law of W."""
        return self.law.omega

    def sigma_inf(self) -> jax.Array:
        """Return amini2021's sigma_infinity, the square root of the largest |Sigma_i|."""
        return jnp.sqrt(jnp.max(self.noise.op_norm(self.means)))

    def mean_kernel(self, kernel: KernelLike) -> Float[Array, "n n"]:
        """Return E K(X) given the means, (n, n), as `measures.mean_kernel` does.

        Raises
        ------
        ValueError
            If the law of W is not Gaussian, or the mean of the kernel is not known.
        """
        if not isinstance(self.law, GaussianLaw):
            raise ValueError(
                f"law must be GaussianLaw for a known mean kernel, got {type(self.law).__name__}"
            )
        return measures.mean_kernel(kernel, self.means, self.noise)


def perturb(
    key: PRNGKeyArray,
    means: Float[ArrayLike, "n d"],
    noise: Noise | Float[ArrayLike, ...],
    *,
    law: Law = GAUSSIAN,
    labels: Int[ArrayLike, " n"] | None = None,
) -> Problem:
    """Return the problem X_i = mu_i + sqrt(Sigma_i) W_i around given means (amini2021, Definition 2 and (15)).

    Parameters
    ----------
    key : typed random key.
    means : (n, d).
    noise : a noise model of `measures`, or a number or (n,) of them: amini2021's sigma_i, for covariance
        (sigma_i^2 / d) I.
    law : the law of W.
    labels : (n,) integers, kept as int32; zeros by default.

    Returns
    -------
    Problem whose row i depends on the key, i, and the i-th mean and noise alone.

    Notes
    -----
    Time and memory O(n d), with full covariance matrices O(n d^2), and O(d^3) for the root of each.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from jaxkern.problems import UniformLaw
    >>> problem = perturb(jax.random.key(0), jnp.zeros((4, 3)), 1.5, law=UniformLaw())
    >>> problem.points.shape, round(problem.omega, 3)
    ((4, 3), 3.464)
    """
    means = checks.matrix("means", means)
    model = model_of(noise, means)
    if not isinstance(law, Law):
        raise ValueError(
            f"law must be a law of this module, such as GaussianLaw(), got {law!r}"
        )
    checks.numbers("law", law)
    if labels is None:
        labels = jnp.zeros(means.shape[:1], jnp.int32)
    return _perturb(
        checks.key(key),
        means,
        model,
        law,
        checks.labels("labels", labels, size=means.shape[0]),
    )


@jax.jit
def _perturb(
    key: jax.Array, means: jax.Array, noise: Noise, law: Law, labels: jax.Array
) -> Problem:
    num_points, dim = means.shape
    W = law._rows(key, num_points, noise._width(dim), means.dtype)
    return Problem(
        means + noise._shape(means, W), labels.astype(jnp.int32), means, noise, law
    )
