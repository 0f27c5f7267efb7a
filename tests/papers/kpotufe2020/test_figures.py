"""Tables and figures of kpotufe2020 beside Table 2: the parts against independent computations."""

import itertools

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
    X = np.arange(400.0)[:, None] + np.array([0.0, 1000.0])
    points, labels = rand_indices.iot_sample(X, y, per_device=10)
    rows = points[:, 0].astype(int)
    assert points.shape == (50, 2) and len(set(rows)) == 50
    assert set(labels.tolist()) == set(rand_indices.IOT_DEVICES)
    np.testing.assert_array_equal(y[rows], labels)
    again, _ = rand_indices.iot_sample(X, y, per_device=10)
    np.testing.assert_array_equal(points, again)
    everything, counted = rand_indices.iot_sample(X, y)
    count = np.isin(y, rand_indices.IOT_DEVICES).sum()
    assert len(everything) == len(counted) == count
    with pytest.raises(ValueError, match="rows of every device"):
        rand_indices.iot_sample(X, np.zeros(400, int))


def test_separation_is_the_best_half_plane_of_all(rng):
    """Against all lines through two of the points, moved to either side of both, in every combination."""
    turn = np.array([[0, -1], [1, 0]])
    labels = np.arange(12) % 2
    for _ in range(3):
        Z = rng.standard_normal((12, 2))
        best = 0.0
        for i, j in itertools.combinations(range(12), 2):
            scores = (Z - Z[i]) @ (turn @ (Z[j] - Z[i]))
            for first, second in itertools.product((False, True), repeat=2):
                above = scores > 1e-12
                above[[i, j]] = first, second
                right = (above == (labels == 1)).mean()
                best = max(best, right, 1 - right)
        separation = figure1.separation(Z, labels)
        # 180 directions may miss one point of twelve.
        assert best - 0.1 <= separation <= best + 1e-12


def test_separation_of_known_sets():
    square = np.array([[0.0, 0], [1, 1], [0, 1], [1, 0]])
    assert figure1.separation(square, np.array([0, 0, 1, 1])) == 0.75
    assert figure1.separation(square, np.array([0, 1, 0, 1])) == 1
    tied = np.array([[0.0, 0], [0, 0], [0, 0], [1, 0]])
    assert (
        figure1.separation(tied, np.array([0, 1, 1, 1])) == 0.75
    )  # equal points are not cut apart
    space = np.random.default_rng(0).standard_normal((200, 4))
    labels = (space @ np.array([1.0, -2, 0.5, 1]) > 0).astype(int)
    assert figure1.separation(space, labels) > 0.93
    assert figure1.separation(space, np.random.default_rng(1).integers(0, 2, 200)) < 0.7
    # One class is spread along the first axis, and Fisher's direction looks past it.
    draws = np.random.default_rng(2).standard_normal((200, 3)) * 0.1
    draws[::2, 0] *= 20
    draws[::2] += [1, 1, 0]
    assert figure1.separation(draws, np.arange(200) % 2) == 1


@pytest.mark.float64
def test_maps_are_those_of_the_paper(rng):
    X = jnp.asarray(rng.standard_normal((40, 2)))
    kernel = Gaussian.from_width(1.3)
    key_landmarks, key_sketch = jax.random.split(jax.random.key(4))
    L = np.asarray(landmarks.uniform(key_landmarks, X, num_landmarks=15))
    cross = literal_gram(X, L, 1.3 / 2**0.5)
    H = np.eye(15) - 1 / 15
    alpha = np.linalg.eigh(H @ literal_gram(L, L, 1.3 / 2**0.5) @ H)[1][:, -2:]
    phi = features.kernel_jl(
        key_sketch, kernel, jnp.asarray(L), num_features=2, centered=True
    )
    expected = {"KPCA": cross @ alpha, "K-JL": cross @ np.asarray(phi.projection).T}
    for method, points in expected.items():
        key = jax.random.key(4)
        Z = figure1.embed(key, kernel, X, method=method, n=15, d=2)
        ours = distance.pdist(np.asarray(Z))
        np.testing.assert_allclose(ours, distance.pdist(points), atol=1e-9)


def test_the_sets_of_figure_1_are_no_half_planes_and_almost_half_planes():
    """No line separates the disc from the ring around it; one does separate the moon from the crescent, almost."""
    shares = []
    for draw in figure1.SETS.values():
        problem = draw(jax.random.key(0), num_points=400, dtype="float32")
        np.testing.assert_array_equal(problem.labels, np.arange(400) % 2)
        shares.append(figure1.separation(problem.points, problem.labels))
    assert shares[0] < 0.8 < shares[1]
