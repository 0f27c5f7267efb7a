"""Functions, operators and Gaussian measures on the RKHS: exact identities between operators and Gram matrices."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import eps

from jaxkern.gram import center, gram
from jaxkern.kernels import Exponential, Gaussian, Laplacian, Linear, Polynomial
from jaxkern.rkhs import Covariance, Function, RandomProjection, SamplingOperator, draw_gaussian, inner, norm, section

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
    return Covariance(KERNEL, X, w, centered=centered), root[:, None] * (H @ K @ H.T) * root[None], H, v


def test_functions_add_subtract_and_scale(rng):
    X, f, g = points(rng, "float32"), function(rng, "float32"), function(rng, "float32")
    for combined, values in [
        (f + g, f(X) + g(X)),
        (f - g, f(X) - g(X)),
        (-f, -f(X)),
        (2.0 * f, 2 * f(X)),
        (f * jnp.float32(2), 2 * f(X)),
    ]:
        np.testing.assert_allclose(combined(X), values, rtol=0, atol=1e-4)
    assert float(norm(f - f)) <= 1e-2 * float(norm(f))


def test_sections_reproduce(dtype, rng):
    """<K_x, K_y> = K(x, y) and <K_x, f> = f(x)."""
    X, f = points(rng, dtype), function(rng, dtype)
    K = gram(KERNEL, X)
    tolerance = 50 * N * eps(dtype) * float(jnp.abs(K).max())
    np.testing.assert_allclose(inner(section(KERNEL, X), section(KERNEL, X)), K, rtol=0, atol=tolerance)
    np.testing.assert_allclose(inner(section(KERNEL, X), f), f(X), rtol=0, atol=tolerance)
    np.testing.assert_allclose(norm(section(KERNEL, X)) ** 2, jnp.diag(K), rtol=0, atol=tolerance)
    np.testing.assert_array_equal(SamplingOperator(KERNEL, X).gram(), K)


def test_inner_products_are_bilinear_symmetric_and_give_the_norm(x64, rng):
    f, g, h = (function(rng, "float64") for _ in range(3))
    assert inner(f, g).shape == ()
    assert float(inner(f, g)) == pytest.approx(float(inner(g, f)), rel=1e-12)
    total = 2 * inner(f, g) - 3 * inner(h, g)
    assert float(inner(2.0 * f - 3.0 * h, g)) == pytest.approx(float(total), rel=1e-11)
    assert float(norm(f)) == pytest.approx(float(inner(f, f)) ** 0.5, rel=1e-12)
    many = function(rng, "float64", 2)
    assert inner(many, f).shape == (2,) and inner(f, many).shape == (2,) and inner(many, many).shape == (2, 2)
    assert norm(many).shape == (2,)
    np.testing.assert_allclose(norm(many) ** 2, jnp.diag(inner(many, many)), rtol=1e-12)
    assert abs(float(inner(f, g))) <= float(norm(f) * norm(g))


def test_the_power_zero_is_the_identity_and_three_the_default(x64, rng):
    Sigma, f, many = weighted(rng, "float64", True)[0], function(rng, "float64"), function(rng, "float64", 2)
    assert float(Sigma.inner(f, f, power=0)) == pytest.approx(float(inner(f, f)), rel=1e-12)
    assert Sigma(f, power=0) is f and Sigma.inner(many, f).shape == (2,)
    np.testing.assert_allclose(
        Sigma.inner(many, f), inner(many, Sigma(Sigma(Sigma(f, power=1), power=1), power=1)), rtol=1e-10
    )


@pytest.mark.parametrize("centered", [False, True])
def test_spectral_quantities_are_those_of_the_literal_matrix(centered, dtype, rng):
    Sigma, A, _, _ = weighted(rng, dtype, centered)
    values = np.maximum(np.linalg.eigvalsh(A)[::-1], 0)
    tolerance = 50 * N * eps(dtype)
    np.testing.assert_allclose(Sigma.eigenvalues(), values, atol=tolerance * values[0])
    assert Sigma.eigenvalues().dtype == dtype
    for power in (1, 2, 3, 4, 5, 1.5, 0.5):
        total, top = (values**power).sum(), values[0] ** power
        # A half power sees rounding of eigenvalues as its square root.
        slack = 10 * tolerance if power >= 1 else N * (tolerance * 1.0) ** 0.5
        assert float(Sigma.trace(power)) == pytest.approx(total, rel=slack)
        assert float(Sigma.op_norm(power)) == pytest.approx(top, rel=10 * tolerance)
        assert float(Sigma.effective_rank(power)) == pytest.approx(total / top, rel=10 * slack)
        assert float(Sigma.hs_norm(power)) == pytest.approx((values ** (2 * power)).sum() ** 0.5, rel=10 * tolerance)
    assert 1 <= float(Sigma.effective_rank(3)) <= float(Sigma.effective_rank()) <= N


def test_equal_weights_are_the_default_and_copies_count_twice(x64, rng):
    X = points(rng, "float64")
    uniform = Covariance(KERNEL, X, jnp.full(N, 1 / N))
    np.testing.assert_allclose(uniform.matrix(), Covariance(KERNEL, X).matrix(), rtol=1e-12)
    assert float(Covariance(KERNEL, X, jnp.full(N, 2.0)).total) == 2 * N
    np.testing.assert_allclose(Covariance(KERNEL, X, centered=True).matrix() * N, center(gram(KERNEL, X)), atol=1e-12)
    doubled = Covariance(KERNEL, jnp.concatenate([X, X]))
    np.testing.assert_allclose(doubled.eigenvalues()[:N], uniform.eigenvalues(), atol=1e-14)
    assert (doubled.eigenvalues()[N:] == 0).all()


@pytest.mark.parametrize("weights", [[1, 2, 0, -1, 1], [0] * 5, [1, np.nan, 1, 1, 1], [1, np.inf, 1, 1, 1]])
def test_what_are_no_weights_is_refused_or_makes_everything_nan(weights):
    with pytest.raises(ValueError, match=r"weights must (be non-negative and finite, got|have a positive sum)"):
        Covariance(KERNEL, ONES, np.float32(weights)).trace()
    Sigma = Covariance(KERNEL, ONES, jnp.float32(weights))
    values = Sigma.total, Sigma.trace(1.5), Sigma.op_norm(), Sigma.eigenvalues(), Sigma.kappa(), Sigma.mean()(ONES)
    assert all(jnp.isnan(value).all() for value in values)


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("power", [1, 2, 3])
def test_draws_with_an_identity_for_normals_have_the_exact_covariance(centered, power, x64, rng, monkeypatch):
    """The Gaussian numbers replaced by the rows of I: sum_i <v_i, f> <v_i, g> = <f, Sigma^power g>, exactly."""
    Sigma, *_ = weighted(rng, "float64", centered)
    f, g = function(rng, "float64"), function(rng, "float64")
    monkeypatch.setattr(
        "jaxkern.rkhs._covariance.normal_rows", lambda key, rows, cols, dtype: jnp.eye(rows, cols, dtype=dtype)
    )
    v = draw_gaussian(jax.random.key(0), Sigma, power=power, num_draws=N)
    exact = float(Sigma.inner(f, g, power=power))
    assert float(inner(v, f) @ inner(v, g)) == pytest.approx(exact, rel=1e-9)
    Theta = RandomProjection(jax.random.key(0), Sigma, num_features=N, power=power)
    assert float(Theta(f) @ Theta(g)) * N == pytest.approx(exact, rel=1e-9)


def test_first_draws_do_not_depend_on_how_many_there_are(rng):
    Sigma, *_ = weighted(rng, "float32", False)
    few, many = (draw_gaussian(jax.random.key(1), Sigma, power=3, num_draws=d).weights for d in (3, 8))
    assert many.shape == (N, 8) and many.dtype == jnp.float32
    np.testing.assert_allclose(many[:, :3], few, rtol=1e-5)
    assert np.linalg.matrix_rank(np.asarray(many)) == 8


def test_fractional_powers_have_finite_gradients_with_copies_among_the_points(x64, rng):
    """Copies and symmetric points give equal eigenvalues, where eigenvectors have no derivative."""
    X = points(rng, "float64", 4)
    X = jnp.concatenate([X, X[:2], jnp.eye(DIM) * 9])

    def energy(lengthscale):
        f = Function(Gaussian(lengthscale), X, jnp.ones(len(X)))
        return Covariance(f.kernel, X).inner(f, f, power=1.5)

    slope = float(jax.jit(jax.grad(energy))(0.9))
    below, above = (float(energy(0.9 + step)) for step in (-1e-5, 1e-5))
    assert slope == pytest.approx((above - below) / 2e-5, rel=1e-6)


ONES = np.ones((5, 2), np.float32)


def test_functions_of_another_space_are_refused_by_name():
    f = Function(Gaussian(1.0), ONES, ONES[:, 0])
    for other in (Gaussian(2.0), Exponential(1.0), 2.0 * Gaussian(1.0), Polynomial(2)):
        g = Function(other, ONES, ONES[:, 0])
        for call in (partial(inner, f), f.__add__, SamplingOperator(Gaussian(1.0), ONES), Covariance(f.kernel, ONES)):
            with pytest.raises(ValueError, match="f must belong to the same kernel"):
                call(g)
    assert float(inner(f, Function(Gaussian(1), ONES, ONES[:, 0]))) == 25  # one and the same lengthscale
    with pytest.raises(ValueError, match="f must be a Function of the RKHS, got ndarray"):
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
        (lambda: Function(UNIT, ONES, ONES[:4, 0])(ONES), r"weights must have shape \(5,\) or \(5, r\), got \(4,\)"),
        (lambda: Function(UNIT, ONES, np.ones(5))(ONES), "weights must have the dtype of points"),
        (lambda: SamplingOperator(Laplacian(1.0), ONES).adjoint(ONES[:4, 0]), "beta must have shape"),
        (lambda: Function(UNIT, ONES, ONES[:, 0])(ONES[:, :1]), "X must have 2 columns"),
        (lambda: Covariance(UNIT, ONES, ONES).trace(), r"weights must have shape \(5,\)"),
        (lambda: Covariance(UNIT, ONES, centered=1), "centered must be True or False, got 1"),
        (lambda: draw_gaussian(jax.random.key(0), SIGMA, power=0), "power must be at least 1, got 0"),
        (lambda: SIGMA.trace(0), "power must be positive"),
        (lambda: SIGMA.trace(-1), "power must be positive"),
        (lambda: SIGMA.trace(jnp.float32(2)), "power must be a static number"),
        (lambda: draw_gaussian(jax.random.key(0), SIGMA, num_draws=0), "num_draws must be at least 1"),
        (lambda: RandomProjection(jax.random.key(0), SIGMA, num_features=0), "num_features must be at least 1"),
    ],
)
def test_bad_arguments_are_refused_by_name(call, message, x64):
    with pytest.raises(ValueError, match=message):
        call()


def test_powers_between_0_and_1_and_wrong_sizes_of_features_are_refused():
    Sigma, f = Covariance(Gaussian(1.0), ONES), Function(Gaussian(1.0), ONES, ONES[:, 0])
    for power in (0.5, -1, np.nan):
        for call in (partial(Sigma.inner, f, f), partial(Sigma, f), partial(draw_gaussian, jax.random.key(0), Sigma)):
            with pytest.raises(ValueError, match="power must be 0 or at least 1"):
                call(power=power)
    with pytest.raises(ValueError, match=r"alpha must have shape \(3,\)"):
        RandomProjection(jax.random.key(0), Sigma, num_features=3).adjoint(ONES[:, 0])
