"""Functions, operators and Gaussian measures on the RKHS: exact identities between operators and Gram matrices."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import eps

from jaxkern.gram import gram
from jaxkern.kernels import Exponential, Gaussian, Laplacian, Linear, Polynomial
from jaxkern.rkhs import (
    Covariance,
    Function,
    RandomProjection,
    SamplingOperator,
    draw_gaussian,
    inner,
    norm,
)

N, P, DIM = 12, 7, 3
KERNEL = Gaussian(0.9) + 0.3 * Linear()


def points(rng, dtype, n=N, dim=DIM):
    return jnp.asarray(rng.normal(size=(n, dim)), dtype)


def function(rng, dtype, columns=None):
    weights = rng.normal(size=(P,) if columns is None else (P, columns))
    return Function(KERNEL, points(rng, dtype, P), jnp.asarray(weights, dtype))


def probabilities(rng, dtype):
    weights = rng.random(N) + 0.1
    return jnp.asarray(weights / weights.sum(), dtype)


def weighted(rng, dtype, centered):
    """A covariance with unequal weights, and the literal B B* = W^(1/2) H' K H W^(1/2) behind it, in float64."""
    X, w = points(rng, dtype), probabilities(rng, dtype)
    K, v = np.float64(gram(KERNEL, X)), np.float64(w)
    H = np.eye(N) - np.outer(np.ones(N), v) if centered else np.eye(N)
    root = np.sqrt(v)
    return (
        Covariance(KERNEL, X, w, centered=centered),
        root[:, None] * (H @ K @ H.T) * root[None],
        H,
        v,
    )


def test_functions_add_subtract_and_scale(rng):
    X, f, g = points(rng, "float32"), function(rng, "float32"), function(rng, "float32")
    values = jax.jit(
        lambda f, g: [
            h(X) for h in (f, g, f + g, f - g, -f, 2.0 * f, f * jnp.float32(2))
        ]
    )
    a, b, *found = jax.device_get(values(f, g))
    for combined, expected in zip(found, (a + b, a - b, -a, 2 * a, 2 * a), strict=True):
        np.testing.assert_allclose(combined, expected, rtol=0, atol=1e-4)
    assert jax.jit(lambda f: norm(f - f) / norm(f))(f) <= 1e-2


def test_inner_products_are_bilinear_symmetric_and_give_the_norm(x64, rng):
    f, g, h, m = (
        function(rng, "float64", columns) for columns in (None, None, None, 2)
    )
    pairs = (
        (f, g),
        (g, f),
        (h, g),
        (2.0 * f - 3.0 * h, g),
        (f, f),
        (m, f),
        (f, m),
        (m, m),
    )
    fg, gf, hg, combined, ff, *others = jax.device_get(
        jax.jit(lambda ps: [inner(*p) for p in ps])(pairs)
    )
    size, other, sizes = jax.device_get(
        jax.jit(lambda *fs: [norm(f) for f in fs])(f, g, m)
    )
    assert fg.shape == () and fg == pytest.approx(gf, rel=1e-12)
    assert combined == pytest.approx(2 * fg - 3 * hg, rel=1e-11)
    assert size == pytest.approx(ff**0.5, rel=1e-12) and abs(fg) <= size * other
    assert [each.shape for each in (*others, sizes)] == [(2,), (2,), (2, 2), (2,)]
    np.testing.assert_allclose(sizes**2, np.diag(others[2]), rtol=1e-12)


def test_the_power_zero_is_the_identity_and_three_the_default(x64, rng):
    Sigma, f, many = (
        weighted(rng, "float64", True)[0],
        function(rng, "float64"),
        function(rng, "float64", 2),
    )
    cubed = lambda S, f: S(S(S(f, power=1), power=1), power=1)  # noqa: E731
    pairs = lambda S, f, m: (  # noqa: E731
        S.inner(f, f, power=0),
        inner(f, f),
        S.inner(m, f),
        inner(m, cubed(S, f)),
    )
    none, squared, found, expected = jax.device_get(jax.jit(pairs)(Sigma, f, many))
    assert (
        Sigma(f, power=0) is f
        and none == pytest.approx(squared, rel=1e-12)
        and found.shape == (2,)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("centered", [False, True])
def test_spectral_quantities_are_those_of_the_literal_matrix(centered, dtype, rng):
    Sigma, A, _, _ = weighted(rng, dtype, centered)
    values = np.maximum(np.linalg.eigvalsh(A)[::-1], 0)
    tolerance = 50 * N * eps(dtype)
    powers = (1, 2, 3, 4, 5, 1.5, 0.5)
    every = lambda S: [  # noqa: E731
        (S.trace(p), S.op_norm(p), S.effective_rank(p), S.hs_norm(p)) for p in powers
    ]
    eigenvalues, found = jax.device_get(
        jax.jit(lambda S: (S.eigenvalues(), every(S)))(Sigma)
    )
    np.testing.assert_allclose(eigenvalues, values, atol=tolerance * values[0])
    assert eigenvalues.dtype == dtype
    for power, (trace, op_norm, rank, hs_norm) in zip(powers, found, strict=True):
        total, top = (values**power).sum(), values[0] ** power
        # A half power sees rounding of eigenvalues as its square root.
        slack = 10 * tolerance if power >= 1 else N * (tolerance * 1.0) ** 0.5
        assert trace == pytest.approx(total, rel=slack)
        assert op_norm == pytest.approx(top, rel=10 * tolerance)
        assert rank == pytest.approx(total / top, rel=10 * slack)
        assert hs_norm == pytest.approx(
            (values ** (2 * power)).sum() ** 0.5, rel=10 * tolerance
        )
    assert 1 <= found[2][2] <= found[0][2] <= N


@pytest.mark.parametrize(
    "centered", [pytest.param(False, marks=pytest.mark.slow), True]
)
def test_draws_with_an_identity_for_normals_have_the_exact_covariance(
    centered, x64, rng, monkeypatch
):
    """The Gaussian numbers replaced by the rows of I: sum_i <v_i, f> <v_i, g> = <f, Sigma^power g>, exactly."""
    Sigma, *_ = weighted(rng, "float64", centered)
    f, g = function(rng, "float64"), function(rng, "float64")
    monkeypatch.setattr(
        "jaxkern.rkhs._covariance.normal_rows",
        lambda key, rows, cols, dtype: jnp.eye(rows, cols, dtype=dtype),
    )

    def numbers(Sigma, power):
        v = draw_gaussian(jax.random.key(0), Sigma, power=power, num_draws=N)
        Theta = RandomProjection(jax.random.key(0), Sigma, num_features=N, power=power)
        return (
            Sigma.inner(f, g, power=power),
            inner(v, f) @ inner(v, g),
            Theta(f) @ Theta(g) * N,
        )

    for exact, *found in np.array(
        jax.jit(lambda S: [numbers(S, power) for power in (1, 2, 3)])(Sigma)
    ).tolist():
        assert found == pytest.approx([exact, exact], rel=1e-9)


ONES = np.ones((5, 2), np.float32)


def test_functions_of_another_space_are_refused_by_name():
    f = Function(Gaussian(1.0), ONES, ONES[:, 0])
    for other in (Gaussian(2.0), Exponential(1.0), 2.0 * Gaussian(1.0), Polynomial(2)):
        g = Function(other, ONES, ONES[:, 0])
        for call in (
            partial(inner, f),
            f.__add__,
            SamplingOperator(Gaussian(1.0), ONES),
            Covariance(f.kernel, ONES),
        ):
            with pytest.raises(ValueError, match="f must belong to the same kernel"):
                call(g)
    assert (
        float(inner(f, Function(Gaussian(1), ONES, ONES[:, 0]))) == 25
    )  # one and the same lengthscale
    with pytest.raises(
        ValueError, match="f must be a Function of the RKHS, got ndarray"
    ):
        inner(f, ONES)
    with pytest.raises(ValueError, match="X must have 3 columns"):
        inner(f, Function(Gaussian(1.0), np.ones((5, 3), np.float32), ONES[:, 0]))
    with pytest.raises(ValueError, match="points must have 2 columns"):
        f + Function(Gaussian(1.0), np.ones((5, 3), np.float32), ONES[:, 0])
    with pytest.raises(ValueError, match="weights of the two functions do not match"):
        f + Function(Gaussian(1.0), ONES, ONES)


UNIT = Gaussian(1.0)
SIGMA = Covariance(UNIT, ONES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Function(UNIT, ONES, ONES[:4, 0])(ONES),
            r"weights must have shape \(5,\) or \(5, r\), got \(4,\)",
        ),
        (
            lambda: Function(UNIT, ONES, np.ones(5))(ONES),
            "weights must have the dtype of points",
        ),
        (
            lambda: SamplingOperator(Laplacian(1.0), ONES).adjoint(ONES[:4, 0]),
            "beta must have shape",
        ),
        (
            lambda: Function(UNIT, ONES, ONES[:, 0])(ONES[:, :1]),
            "X must have 2 columns",
        ),
        (
            lambda: Covariance(UNIT, ONES, ONES).trace(),
            r"weights must have shape \(5,\)",
        ),
        (
            lambda: Covariance(UNIT, ONES, -ONES[:, 0]).trace(),
            "weights must be non-negative and finite, got",
        ),
        (
            lambda: Covariance(UNIT, ONES, 0 * ONES[:, 0]).trace(),
            "weights must have a positive sum",
        ),
        (
            lambda: Covariance(UNIT, ONES, centered=1),
            "centered must be True or False, got 1",
        ),
        (
            lambda: draw_gaussian(jax.random.key(0), SIGMA, power=0),
            "power must be at least 1, got 0",
        ),
        (lambda: SIGMA.trace(0), "power must be positive"),
        (lambda: SIGMA.trace(-1), "power must be positive"),
        (lambda: SIGMA.trace(jnp.float32(2)), "power must be a static number"),
        (
            lambda: draw_gaussian(jax.random.key(0), SIGMA, num_draws=0),
            "num_draws must be at least 1",
        ),
        (
            lambda: RandomProjection(jax.random.key(0), SIGMA, num_features=0),
            "num_features must be at least 1",
        ),
    ],
)
def test_bad_arguments_are_refused_by_name(call, message, x64):
    with pytest.raises(ValueError, match=message):
        call()


def test_powers_between_0_and_1_and_wrong_sizes_of_features_are_refused():
    Sigma, f = (
        Covariance(Gaussian(1.0), ONES),
        Function(Gaussian(1.0), ONES, ONES[:, 0]),
    )
    for power in (0.5, -1, np.nan):
        for call in (
            partial(Sigma.inner, f, f),
            partial(Sigma, f),
            partial(draw_gaussian, jax.random.key(0), Sigma),
        ):
            with pytest.raises(ValueError, match="power must be 0 or at least 1"):
                call(power=power)
    with pytest.raises(ValueError, match=r"alpha must have shape \(3,\)"):
        RandomProjection(jax.random.key(0), Sigma, num_features=3).adjoint(ONES[:, 0])
