"""The trials of amini2021 against literal constructions."""

import dataclasses
import math
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import measures, problems
from jaxkern.gram import gram
from proofs_check import register
from proofs_check.claim import Setting
from proofs_check.engine import draws
from proofs_check.papers.amini2021 import trials
from proofs_check.papers.shared import real


@pytest.mark.parametrize("profile", ["quick", "full"])
def test_claims_are_made_without_mean_kernels_and_share_their_numbers(
    monkeypatch, profile
):
    """Numbers of other names would be another program, which every claim would compile anew."""
    mean_kernel = mock.Mock(side_effect=AssertionError("a mean kernel was computed"))
    monkeypatch.setattr(measures, "mean_kernel", mean_kernel)
    models = 0
    names = set()
    for claim in register.claims(profile=profile, papers=("amini2021",)):
        for part in (*claim.forms.values(), *claim.controls):
            trial = getattr(part.statement, "trial", None)
            for setting in part.settings:
                if isinstance(setting.data, trials.Model):
                    models += 1
                    assert "arrays" not in vars(setting.data)
                if trial in (trials.gram_error, trials.misclassified):
                    names.add(tuple(sorted(setting.numbers)))
    assert models > 50 and len(names) == 1


@pytest.mark.float64
def test_a_model_is_a_dictionary_for_jax_with_what_is_extra():
    extra = {"A": np.eye(2), "labels": np.array([0, 1])}
    model = dataclasses.replace(trials.sums("sums"), extra=extra)
    copy = jax.device_put(model)
    assert type(copy) is dict
    assert set(copy) == set(["kernel", "means", "noise", "law", "mean", "A", "labels"])
    assert model.arrays is model.arrays
    assert copy["A"].dtype == jnp.float64
    assert copy["labels"].dtype == jnp.int32


gram_error = jax.jit(trials.gram_error)


@pytest.mark.float64
def test_the_norms_of_the_trials_are_literal_ones():
    model = trials.gaussian("three points", np.eye(3, 4), 2.0, 2)
    assert model.numbers["scale"] == pytest.approx(2 / math.sqrt(2))
    assert model.numbers["n"] == 3
    key = jax.random.key(1)
    arrays = model.arrays
    X = problems.perturb(key, arrays["means"], arrays["noise"]).points
    E = np.asarray(gram(model.kernel, X)) - np.asarray(arrays["mean"])
    for operator, norm in ((1.0, np.linalg.norm(E, 2)), (0.0, np.linalg.norm(E))):
        error = gram_error(key, arrays, {"operator": operator, "reused": 0.0})
        assert error.dtype == np.float64
        assert float(error) == pytest.approx(norm / 3)


@pytest.mark.float64
def test_a_reused_draw_is_the_noise_of_the_first_point_on_all():
    key = jax.random.key(1)
    model = trials.sums("")
    arrays = model.arrays
    W = np.asarray(problems.perturb(key, arrays["means"], arrays["noise"]).points)
    numbers = model.setting("", {"reused": 1.0}).numbers
    reused = gram_error(key, arrays, numbers)
    # K = x_1 + y_1 is then constant.
    assert float(reused) == pytest.approx(2 * abs(W[0, 0]))
    fresh = gram_error(key, arrays, numbers | {"reused": 0.0})
    sums = np.add.outer(W[:, 0], W[:, 0])
    assert float(fresh) == pytest.approx(np.linalg.norm(sums) / len(W))


@pytest.mark.float64
def test_one_direction_twice_is_at_the_angle_zero():
    angle = jax.jit(trials.angle, static_argnames="dim")
    numbers = {"factor": 3.0, "reused": 1.0}
    twice = angle(jax.random.key(1), None, numbers, dim=4)
    assert float(twice) == pytest.approx(3.0)


@pytest.mark.float64
def test_coordinates_that_are_always_zero_do_not_change_the_mean():
    means = np.eye(4, 6)
    used = np.tile(np.arange(6) < 2, (4, 1))
    for deviations in (0.5, np.array([0.2, 0.5, 1.0, 0.1])):
        model = trials.distances("", means, deviations, 2)
        np.testing.assert_array_equal(model.variances > 0, used)
        noise = measures.DiagonalNoise(real(model.variances))
        literal = measures.mean_kernel(model.kernel, real(means), noise)
        mean = model.arrays["mean"]
        np.testing.assert_allclose(mean, literal, rtol=1e-10, atol=1e-12)


@pytest.mark.float64
def test_ritz_values_come_close_to_the_norm_of_the_sample_covariance_from_below():
    n = 96
    key = jax.random.key(2)
    first, _ = jax.random.split(key)
    W = np.asarray(jax.random.rademacher(first, (n, n), jnp.float64))
    norm = np.linalg.norm(W.T @ W / n - np.eye(n), 2)
    numbers = {"u": 0.0}
    signs_norm = jax.jit(trials.signs_norm, static_argnames=("n", "steps"))
    ritz = float(signs_norm(key, None, numbers, n=n, steps=32))
    assert norm * (1 - 1e-3) <= ritz <= norm * (1 + 1e-12)


@pytest.mark.float64
def test_the_kernel_of_proposition_1_has_the_norm_that_is_computed():
    key = jax.random.key(3)
    X = 4 * np.asarray(jax.random.uniform(key, (16,), jnp.float64)) - 2
    h = np.clip(X[:12], -1, 1)
    literal = np.linalg.norm(np.outer(h, h) - 2 / 3 * np.eye(12), 2)
    for trial, expected in (
        (trials.clipped_norm, literal),
        (trials.clipped_deviation, abs(literal - 11 * 2 / 3)),
    ):
        norm = jax.jit(trial, static_argnames="most")(key, None, {"n": 12.0}, most=16)
        assert float(norm) == pytest.approx(expected)


@pytest.mark.float64
def test_the_law_with_a_gap_is_standardised_and_its_norm_is_nearly_one():
    setting = Setting("", None, {"e": 0.3}, {"n": 8})
    values = draws.sample(trials.gap_error, jax.random.key(0), setting, 64)
    a = math.sqrt(1 - 0.03)
    assert a**2 + 0.3**2 / 3 == pytest.approx(1)
    assert min(values) >= a - 0.3
    assert max(values) <= 2 * (a + 0.3)
