"""The reusable sabotages do what they say."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import toys

from jaxkern import features, kernels
from jaxkern.bounds import Bound
from jaxkern.gram import gram
from proofs_check import controls
from proofs_check.claim import Control, Expectation, Form, Identity, Law, Setting
from proofs_check.engine import draws, programs, run

HERE = (Setting("here", {"x": jnp.ones(3)}, {"n": 4.0}, {"rows": 5}),)


def claim(*kinds):
    statement = Identity(lambda key, setting: np.zeros(1))
    return dataclasses.replace(
        toys.CLAIM,
        id="toy:1",
        printed=Form(statement, HERE, "identity"),
        corrected=None,
        controls=tuple(
            Control(f"control {i}", statement, HERE, kind)
            for i, kind in enumerate(kinds)
        ),
    )


def test_a_table_has_the_kinds_of_a_claim_in_one_order():
    assert controls.table(
        [claim("low precision", "wrong factor", "low precision")]
    ) == {"toy:1": ("wrong factor", "low precision")}
    assert controls.table([claim()]) == {"toy:1": ()}
    with pytest.raises(ValueError, match=r"got \['clumsiness'\] at toy:1"):
        controls.table([claim("clumsiness")])


def test_changed_settings_differ_where_they_should():
    (found,) = controls.changed(
        HERE,
        "worse",
        numbers={"n": 3.0, "d": 1.0},
        shapes={"rows": 6},
        data=lambda p: {"x": 2 * p["x"]},
    )
    assert found.name == "here, worse"
    assert found.numbers == {"n": 3.0, "d": 1.0} and found.shapes == {"rows": 6}
    assert np.array_equal(found.data["x"], 2 * np.ones(3))
    (same,) = controls.changed(HERE, "only in name")
    assert same == dataclasses.replace(HERE[0], name="here, only in name")


def test_one_draw_leaves_a_row_of_each_setting():
    (found,) = controls.one_draw(HERE)
    assert found.shapes == {"rows": 1} and found.numbers == HERE[0].numbers


def test_a_map_of_one_frequency_is_one_of_equal_frequencies(x64):
    """Why `one_draw` stands for a reused key: the inner products are means over frequencies."""
    X = jnp.asarray(np.random.default_rng(0).standard_normal((4, 2)))
    w = features.paired_fourier(
        jax.random.key(0), kernels.Gaussian(1.0), 2, num_frequencies=1
    ).frequencies
    one, many = (
        features.PairedFourier(kernels.Gaussian(1.0), jnp.tile(w, (k, 1)))(X)
        for k in (1, 5)
    )
    np.testing.assert_allclose(one @ one.T, many @ many.T, atol=1e-12)


def test_a_scaled_bound_has_another_value_and_nothing_else():
    found = controls.scaled(
        lambda s: Bound(2.0, 0.9, True, "toy"), lambda s: 1 / s.numbers["n"]
    )(HERE[0])
    assert (found.value, found.probability, found.valid, found.source) == (
        0.5,
        0.9,
        True,
        "toy",
    )


def normal(key, population, numbers, *, rows):
    return jnp.sum(jax.random.normal(key, (rows,), jnp.float32))


def test_same_key_makes_all_trials_equal():
    wrong = controls.same_key(normal)
    assert wrong is controls.same_key(normal) and programs.name_of(
        wrong
    ) == programs.name_of(normal)
    values = draws.sample(wrong, jax.random.key(3), HERE[0], 20)
    np.testing.assert_allclose(
        values, float(normal(jax.random.key(0), None, None, rows=5)), rtol=1e-6
    )
    assert np.std(draws.sample(normal, jax.random.key(3), HERE[0], 20)) > 0.1


def test_a_law_is_refuted_by_trials_with_one_key_and_a_mean_by_one_far_draw(x64):
    from scipy import stats

    law = Law(controls.same_key(standard), stats.norm.cdf)
    mean = Expectation(
        controls.same_key(standard), lambda s: 0.0, lambda s: 0.01, moment=lambda s: 1.0
    )
    sound = Law(standard, stats.norm.cdf)
    toy = dataclasses.replace(
        claim(),
        printed=Form(sound, HERE, "certified"),
        controls=(
            Control("law", law, HERE, "reused key"),
            Control("mean", mean, HERE, "reused key"),
        ),
    )
    (result,) = run.run([toy], profile=draws.QUICK, seed=0)
    assert result.as_expected, result.notes


def standard(key, population, numbers, *, rows):
    """A standard normal variable."""
    return jnp.sum(jax.random.normal(key, (rows,))) / jnp.sqrt(jnp.asarray(rows, float))


def test_in_half_rounds_real_numbers_and_keeps_their_types(dtype):
    found = controls.in_half(
        {
            "x": jnp.asarray([1.0, 1.0001, 1e-9, 100.03], dtype),
            "i": jnp.arange(3),
            "n": np.pi * np.ones(1),
        }
    )
    assert (
        found["x"].dtype == dtype
        and found["i"].dtype == jnp.arange(3).dtype
        and found["n"].dtype == np.float64
    )
    assert found["x"].tolist() == [1.0, 1.0, 0.0, 100.0] and found["i"].tolist() == [
        0,
        1,
        2,
    ]
    assert 0 < abs(found["n"][0] - np.pi) < 2**-9


def test_gamma_for_the_lengthscale_is_the_mistake_of_calling_it_gamma(x64):
    X = jnp.asarray(np.random.default_rng(1).standard_normal((5, 2)))
    squared = np.sum((np.asarray(X)[:, None] - np.asarray(X)[None]) ** 2, axis=2)
    gamma = 1 / (2 * 1.5**2)
    wrong = gram(controls.gamma_for_lengthscale(kernels.Gaussian(1.5)), X)
    np.testing.assert_allclose(wrong, np.exp(-squared / (2 * gamma**2)), rtol=1e-12)
    assert np.max(np.abs(wrong - gram(kernels.Gaussian(1.5), X))) > 0.1
