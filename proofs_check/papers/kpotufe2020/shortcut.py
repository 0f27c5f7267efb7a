"""kpotufe2020: that the shortcut of its trials, by multinomial counts, has the law of the literal construction (ours).

Three atoms and samples of four, few enough to list all of them.
"""

import itertools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import features, kernels, rkhs
from jaxkern.linalg import HIGHEST, matmul
from proofs_check import controls
from proofs_check.claim import Check, Control, Form, Law, Setting
from proofs_check.papers import operators as op

_ATOMS = np.array([[0.0], [1.0], [2.5]])
_GRAM = np.exp(-((_ATOMS - _ATOMS.T) ** 2) / 2)
_WEIGHTS = np.array([0.5, 0.3, 0.2])
_F = np.array([1.0, -0.5, 2.0])
"""The weights of f on the atoms."""
_DRAWS = 4
_ROWS = 2


def _shortcut_cdf(t: Any) -> Any:
    """Return P(|V^T S f|^2 <= t) for samples of four: the mixture of scaled chi-squares over all 15 counts."""
    total = np.zeros(np.shape(t))
    for counts in itertools.product(range(_DRAWS + 1), repeat=3):
        if sum(counts) == _DRAWS:
            CK = np.diag(np.array(counts) / _DRAWS) @ _GRAM
            scale = _F @ _GRAM @ CK @ CK @ CK @ _F
            probability = stats.multinomial.pmf(counts, _DRAWS, _WEIGHTS)
            total = total + probability * stats.chi2.cdf(np.asarray(t) * _ROWS / scale, _ROWS)
    return total


def _literal_square(key: jax.Array, population: Mapping[str, Any], numbers: Any) -> jax.Array:
    """|phi.embed(f)|^2 with landmarks drawn one by one and the library's Kernel JL."""
    del numbers
    key_sample, key_sketch = jax.random.split(key)
    index = jax.random.choice(key_sample, 3, (_DRAWS,), p=population["weights"])
    kernel = population["kernel"]
    phi = features.kernel_jl(key_sketch, kernel, population["points"][index], num_features=_ROWS)
    return jnp.sum(phi.embed(rkhs.Function(kernel, population["points"], population["f"])) ** 2)


def _counted_square(key: jax.Array, population: Mapping[str, Any], numbers: Any) -> jax.Array:
    """The same by counts and the Gaussian law given the sample, as the trials of all tail bounds do."""
    del numbers
    key_sample, key_sketch = jax.random.split(key)
    shares = op.shares(key_sample, population, jnp.asarray(float(_DRAWS), population["weights"].dtype))
    f = matmul(population["features"].T, population["f"])
    return jnp.vdot(f, op.sketch(key_sketch, population, shares, _ROWS)(f), precision=HIGHEST)


def _three_atoms() -> tuple[Setting, ...]:
    arrays = {"points": _ATOMS, "weights": _WEIGHTS, "f": _F, "features": np.linalg.cholesky(_GRAM)}
    dtype = jax.dtypes.canonicalize_dtype(float)
    population: dict[str, Any] = {k: jnp.asarray(v, dtype) for k, v in arrays.items()}
    return (Setting("3 atoms, n=4, d=2", {**population, "kernel": kernels.Gaussian(1.0)}),)


def _shortcut_literal() -> Check:
    atoms = _three_atoms()
    one_key = Law(controls.same_key(_literal_square), _shortcut_cdf)
    control = Control("every trial with one key", one_key, atoms, "reused key")
    return Check(
        corrected=Form(Law(_literal_square, _shortcut_cdf), atoms), controls=(_single(_literal_square, atoms), control)
    )


def _shortcut_counts() -> Check:
    def without_adjoint(population: Mapping[str, Any]) -> dict[str, Any]:
        return {**population, "features": population["features"].T}

    atoms, law = _three_atoms(), Law(_counted_square, _shortcut_cdf)
    transposed = controls.changed(atoms, "transposed", data=without_adjoint)
    control = Control("L' for L in K = L L'", law, transposed, "transpose for adjoint")
    return Check(corrected=Form(law, atoms), controls=(_single(_counted_square, atoms), control))


def _single(trial: Any, atoms: tuple[Setting, ...]) -> Control:
    def cdf(t: Any) -> Any:
        return stats.chi2.cdf(np.asarray(t) * _ROWS / (_F @ _GRAM @ _F), _ROWS)

    return Control("the law without Sigma_n^3", Law(trial, cdf), atoms, "wrong operator")
