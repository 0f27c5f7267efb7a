"""Tables and figures of kpotufe2020 beside Table 2: the parts against independent computations."""

import itertools

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import distance
from support.numerics import literal_gram

from jaxkern import features, landmarks
from jaxkern.kernels import Gaussian
from proofs_check.papers.kpotufe2020 import figure1, rand_indices


def test_the_iot_rows_are_those_of_the_five_devices(rng):
    y = rng.integers(0, 9, 400)
    X = np.arange(400.0)[:, None]
    points, labels = rand_indices.iot_sample(X, y, per_device=10)
    rows = points[:, 0].astype(int)
    assert points.shape == (50, 1) and len(set(rows)) == 50
    assert set(labels.tolist()) == set(rand_indices.IOT_DEVICES)
    np.testing.assert_array_equal(y[rows], labels)
    again, _ = rand_indices.iot_sample(X, y, per_device=10)
    np.testing.assert_array_equal(points, again)
    rest, _ = rand_indices.iot_sample(X, y)
    assert len(rest) == np.isin(y, rand_indices.IOT_DEVICES).sum()
    with pytest.raises(ValueError, match="rows of every device"):
        rand_indices.iot_sample(X, 0 * y)


@pytest.mark.parametrize("seed", range(3))
def test_separation_is_the_best_half_plane_of_all(seed):
    """Against all lines through two of the points, moved to either side of both, in every combination."""
    turn = np.array([[0, -1], [1, 0]])
    labels = np.arange(12) % 2
    Z = np.random.default_rng(seed).standard_normal((12, 2))
    shares = []
    for i, j in itertools.combinations(range(12), 2):
        above = (Z - Z[i]) @ (turn @ (Z[j] - Z[i])) > 1e-12
        for sides in itertools.product((False, True), repeat=2):
            above[[i, j]] = sides
            shares.append(np.mean(above == labels))
    best = max(shares + [1 - share for share in shares])
    # 180 directions may miss one point of twelve.
    assert best - 0.1 <= figure1.separation(Z, labels) <= best + 1e-12


@pytest.mark.parametrize(
    ("points", "labels", "share"),
    [
        ([[0.0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1], 0.75),
        ([[0.0, 0], [1, 1], [0, 1], [1, 0]], [0, 1, 0, 1], 1),
        # Equal points are not cut apart.
        ([[0.0, 0], [0, 0], [0, 0], [1, 0]], [0, 1, 1, 1], 0.75),
    ],
)
def test_separation_of_known_sets(points, labels, share):
    assert figure1.separation(np.array(points), np.array(labels)) == share


def test_separation_of_points_of_higher_dimension_looks_past_a_long_axis(rng):
    """One class is spread along the first axis, and Fisher's direction looks past it."""
    points = rng.standard_normal((200, 3)) * 0.1
    points[::2, 0] *= 20
    points[::2] += [1, 1, 0]
    assert figure1.separation(points, np.arange(200) % 2) == 1
    assert figure1.separation(points, rng.integers(0, 2, 200)) < 0.7


@pytest.mark.float64
def test_maps_are_those_of_the_paper(rng):
    X = rng.standard_normal((40, 2))
    kernel = Gaussian.from_width(1.3)
    key_landmarks, key_sketch = jax.random.split(jax.random.key(4))
    L = np.asarray(landmarks.uniform(key_landmarks, X, num_landmarks=15))
    cross = literal_gram(X, L, 1.3 / 2**0.5)
    H = np.eye(15) - 1 / 15
    alpha = np.linalg.eigh(H @ literal_gram(L, L, 1.3 / 2**0.5) @ H)[1][:, -2:]
    phi = features.kernel_jl(key_sketch, kernel, L, num_features=2, centered=True)
    weights = {"KPCA": alpha, "K-JL": np.asarray(phi.projection).T}
    for method in weights:
        key = jax.random.key(4)
        Z = figure1.embed(key, kernel, jnp.asarray(X), method=method, n=15, d=2)
        ours = distance.pdist(np.asarray(Z))
        house.close(ours, distance.pdist(cross @ weights[method]), 1e-9)


def test_the_sets_of_figure_1_are_no_half_planes_and_almost_half_planes():
    """No line separates the disc from the ring around it; one does separate the moon from the crescent, almost."""
    shares = []
    for draw in figure1.SETS.values():
        problem = draw(jax.random.key(0), num_points=400, dtype="float32")
        np.testing.assert_array_equal(problem.labels, np.arange(400) % 2)
        shares.append(figure1.separation(problem.points, problem.labels))
    assert shares[0] < 0.8 < shares[1]
