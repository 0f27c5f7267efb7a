"""The checks of amini2021 against exact laws, and what they must notice."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import distance

from jaxkern.bounds import concentration
from proofs_check.papers.amini2021 import (
    expectations,
    section2_2,
    section3_1,
    section3_3,
    section3_3_examples,
    setup,
)


def test_the_limit_for_means_of_rank_one_has_the_law_that_is_computed(rng):
    """200,000 draws, 6 standard errors: false alarms below 1e-8."""
    n = 10
    level = 3.5
    y = rng.standard_normal((200_000, n))
    b = np.eye(1, n)[0]
    limits = np.linalg.norm(y, axis=1) + np.abs(y @ b)
    M = np.outer(b, y[0])
    assert np.linalg.norm(M + M.T, 2) == pytest.approx(limits[0])
    chance = math.exp(section2_2.log_below(level, n))
    share = np.mean(limits < level)
    assert abs(chance - share) <= 6 * math.sqrt(chance * (1 - chance) / 200_000)


@pytest.mark.float64
def test_two_binomial_variables_give_the_block_parameters_of_the_library():
    """For the kernel y z, with means 1/2 and -1/2 of 8 signs each."""
    y = np.repeat([1.0, -1.0, 1.0, -1.0], [6, 2, 2, 6])
    labels = np.repeat([0, 1], 8)
    parameters = setup.blocks(np.outer(y, y), labels, off_diagonal=False)
    first, mixed, second = section3_3.block_means(0.5, -0.5)
    psi = [[first, mixed], [mixed, second]]
    np.testing.assert_allclose(parameters.psi, psi, rtol=1e-12)
    gamma2, vbar2 = section3_3.separation_and_variance(0.5, -0.5)
    assert float(parameters.gamma2) == pytest.approx(gamma2)
    assert float(parameters.vbar2) == pytest.approx(vbar2)
    _, _, logs = section3_3.two_clusters(400, 0.9, 0.2)
    assert np.exp(logs).sum() == pytest.approx(1, abs=1e-11)


def test_the_sub_gaussian_norm_of_a_normal_variable_by_its_definition():
    """E exp(X^2 / kappa^2) = (1 - 2 / kappa^2)^(-1/2) is 2."""
    assert pytest.approx(2) == (1 - 2 / setup.KAPPA**2) ** -0.5


def test_theorem_2_is_tried_with_the_constant_that_it_names(claims):
    claim = claims["amini2021:thm2"]
    (setting,) = claim.printed.settings
    right = claim.printed.statement.bound(setting)
    assert right.value == pytest.approx(2 / math.log(2))


@pytest.mark.float64
def test_the_spheres_have_the_moments_that_quadrature_over_the_angle_gives():
    spheres = section3_3_examples.Spheres.of((1.0, 5.0), 50)
    mean, variance, x = section3_3_examples.moments(1.0, 5.0, 50)
    assert spheres.products[0, 1] == pytest.approx(x)
    assert spheres.variances[0, 1] == pytest.approx(variance, rel=1e-8)
    psi = np.array([[expectations.psi(v, 50) for v in row] for row in spheres.products])
    means = np.outer(spheres.heights, spheres.heights) * psi
    assert means[0, 1] == pytest.approx(mean, rel=1e-10)
    shares = jnp.full(2, 0.5)
    parameters = concentration.population_parameters(
        jnp.asarray(means), jnp.asarray(spheres.variances), shares
    )
    assert spheres.separation == pytest.approx(float(parameters.gamma2))
    assert spheres.variance == pytest.approx(float(parameters.vbar2))


def test_all_seeds_of_a_few_points_are_tried():
    X = np.random.default_rng(4).standard_normal((6, 2))
    square = distance.cdist(X, X, "sqeuclidean")
    pairs = np.minimum(square[:, None], square).sum(axis=2)
    seeds = square / square.sum(axis=1, keepdims=True) / 6
    chances, costs = section3_1.seeded_costs(X, 2)
    assert chances.sum() == pytest.approx(1)
    assert chances @ costs == pytest.approx(np.sum(seeds * pairs))
    _, of_three = section3_1.seeded_costs(X, 3)
    assert np.min(of_three) >= section3_1.least_cost(X, 3)
