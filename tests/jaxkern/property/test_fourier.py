"""Fourier maps of every kernel and of whatever points are drawn: unbiased, with the variance that is known.

With delta = x - y a paired frequency gives cos <w, delta>, whose mean is K(delta) and whose square has the mean
(1 + K(2 delta)) / 2. A shifted one gives 2 cos(<w, x> + b) cos(<w, y> + b), whose mean is K(delta) and whose square has
that mean plus 1/2. So means of terms are known, and those of paired features of structured frequencies (orthogonal
ones, Fastfood) are, too. Terms are bounded, so Hoeffding's and Bernstein's inequalities judge their averages over
TERMS independent frequencies: a number is refuted with probability 1e-9 at most where it holds, which is below 1e-6
for the module at 6 examples a test.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from support.drawn import (
    ALARM,
    DIM,
    PLAIN,
    VALUES,
    drawn,
    in_every_precision,
    in_one_precision,
)

from jaxkern import features, kernels

MAKES = (
    features.paired_fourier,
    features.shifted_fourier,
)  # which draw the same frequencies: one for each by default
PAIRS = [
    (name, make, (i + j) % 2)
    for i, name in enumerate(VALUES)
    for j, make in enumerate(MAKES)
]
SOME = (
    "Gaussian",
    "Exponential",
    "Cauchy",
)  # a law of each kind: normal, with a heavy tail, by coordinates
PAIRS = [
    pytest.param(*pair, marks=[pytest.mark.slow] * (other or pair[0] not in SOME))
    for *pair, other in PAIRS
]
TERMS = 20_000
LEVEL = math.log(4 / ALARM)


def one_shift(*args, **options):
    phi = features.shifted_fourier(*args, **options)
    return features.ShiftedFourier(
        phi.kernel, phi.frequencies, jnp.zeros_like(phi.shifts)
    )


def too_wide(key, kernel, dim, **options):
    return features.paired_fourier(
        key, type(kernel)(kernel.lengthscale / 1.2), dim, **options
    )


@partial(jax.jit, static_argnames="make")
def terms(key, kernel, x, y, *, make):
    """Return the terms of the frequencies, (pairs, TERMS), whose average is the inner product of the features."""
    phi = make(key, kernel, DIM, num_frequencies=TERMS, dtype=x.dtype)
    products = TERMS * phi(x) * phi(y)
    paired = products.shape[1] == 2 * TERMS
    return products[:, :TERMS] + products[:, TERMS:] if paired else products


def off(case, dtype, name, make, *, factor=1.0):
    """Return which of the two averages are too far from their means: of terms, and of their squares."""
    shifted = make in (features.shifted_fourier, one_shift)
    with jax.enable_x64(dtype == "float64"):
        X = case.given(dtype)[1]
        X = np.asarray(X)
        x, y = np.concatenate([X[:2], X[:1]]), np.concatenate([X[2:4], X[:1]])
        kernel = getattr(kernels, name)(jnp.asarray(10**case.lengthscale, dtype))
        found = factor * np.float64(terms(case.key(), kernel, x, y, make=make))
    delta = (np.float64(x) - np.float64(y)) / 10**case.lengthscale
    mean, square = VALUES[name](delta), (1 + VALUES[name](2 * delta)) / 2 + shifted / 2
    # Phases are rounded by eps |<w, x>|; a share of heavy-tailed frequencies has phases that are noise.
    reach = np.abs(np.float64(x)).max() / 10**case.lengthscale
    rounding = 300 * (1 + reach) * float(jnp.finfo(dtype).eps)
    largest = 2.0 if shifted else 1.0
    variance = np.maximum(square - mean**2, 0)
    bernstein = np.sqrt(2 * variance * LEVEL / TERMS) + 2 * 2 * largest * LEVEL / (
        3 * TERMS
    )
    hoeffding = largest**2 * math.sqrt(LEVEL / (2 * TERMS))
    wrong = set()
    if np.any(np.abs(found.mean(axis=1) - mean) > bernstein + rounding):
        wrong.add("mean")
    if np.any(
        np.abs((found**2).mean(axis=1) - square) > hoeffding + 2 * largest * rounding
    ):
        wrong.add("variance")
    return wrong


@in_every_precision
@pytest.mark.parametrize(("name", "make"), PAIRS)
@given(case=drawn())
@example(case=PLAIN)
def test_features_are_unbiased_with_the_variance_of_their_formula(
    dtype, name, make, case
):
    assert not off(case, dtype, name, make)


@pytest.mark.slow
@in_one_precision
def test_wrong_features_are_caught(dtype):
    assert "mean" in off(PLAIN, dtype, "Gaussian", too_wide)
    assert off(PLAIN, dtype, "Cauchy", features.shifted_fourier, factor=0.5**0.5) == {
        "mean",
        "variance",
    }
    assert off(PLAIN, dtype, "Laplacian", one_shift)
    assert "mean" in off(PLAIN, dtype, "Matern32", features.paired_fourier, factor=1.1)


def structured(key, kernel, x, y):
    """Return inner products of features of many independent blocks: DIM frequencies each, or a Hadamard matrix of 4."""

    def one(key):
        both = zip(
            jax.random.split(key),
            (features.orthogonal_fourier, features.fastfood),
            strict=True,
        )
        phis = [
            make(k, kernel, DIM, num_frequencies=4, dtype=x.dtype) for k, make in both
        ]
        return jnp.stack([jnp.sum(phi(x) * phi(y), axis=1) for phi in phis])

    return jax.lax.map(one, jax.random.split(key, TERMS // 10), batch_size=1000)


@in_every_precision
@given(case=drawn())
@example(case=PLAIN)
def test_structured_frequencies_are_unbiased(dtype, case):
    with jax.enable_x64(dtype == "float64"):
        X = case.given(dtype)[1]
        kernel = kernels.Gaussian(jnp.asarray(10**case.lengthscale, dtype))
        found = np.float64(jax.jit(structured)(case.key(), kernel, X[:3], X[3:6])).mean(
            axis=0
        )
    wanted = VALUES["Gaussian"](
        (np.float64(X[:3]) - np.float64(X[3:6])) / 10**case.lengthscale
    )
    reach = np.abs(np.float64(X)).max() / 10**case.lengthscale
    slack = math.sqrt(2 * LEVEL / (TERMS // 10)) + 300 * (1 + reach) * float(
        jnp.finfo(dtype).eps
    )
    assert np.abs(found - wanted).max() <= slack
