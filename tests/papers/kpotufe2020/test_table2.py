"""Table 2 of kpotufe2020: the protocol on toy data, and the printed numbers on the real data."""

import os
from functools import partial
from pathlib import Path

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import distance
from support.numerics import literal_gram

from jaxkern import features, landmarks
from jaxkern.kernels import Gaussian
from proofs_check.papers.figures import read_labelled
from proofs_check.papers.kpotufe2020 import rand_indices
from proofs_check.papers.kpotufe2020 import table2 as module
from proofs_check.papers.kpotufe2020.rand_indices import (
    METHODS,
    clusters,
    repeated,
    standardise,
)
from proofs_check.papers.kpotufe2020.table2 import compare, table2

FOLDER = Path(
    os.environ.get(
        "JAXKERN_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"
    )
)


def real(name):
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        pytest.skip(
            f"no {name}.npz in the folder named by JAXKERN_DATA ({FOLDER}); its source is in {module.__name__}"
        )
    X, y = read_labelled(path)
    return clusters(standardise(X).astype(np.float32), y)


def toy():
    """Three tight, far clusters, which one start of k-means++ practically always finds."""
    truth = np.arange(60) % 3
    X = 100 * np.eye(3)[truth] + np.random.default_rng(1).uniform(-1, 1, (60, 3))
    return standardise(X).astype(np.float32), truth


# Two repetitions, or batches of two, throughout: every other number is another program to compile.


@pytest.mark.slow
def test_far_clusters_are_found_by_every_method():
    X, truth = toy()
    indices = table2(clusters(X, truth * 5 - 1), repetitions=2)
    assert tuple(indices) == METHODS
    for values in indices.values():
        assert values.shape == (2,) and values.dtype == np.float64
        np.testing.assert_allclose(values, 1, atol=1e-6)


@pytest.mark.slow
def test_repetitions_do_not_depend_on_batches_or_on_how_many_there_are(rng):
    problem = clusters(rng.normal(size=(60, 3)).astype(np.float32), toy()[1])
    run = partial(repeated, "K-JL", problem, 60, 30)
    four = run(repetitions=4, batch_size=2, seed=3)
    assert len(set(four.tolist())) == 4
    assert np.array_equal(four[:3], run(repetitions=3, batch_size=2, seed=3))
    assert np.array_equal(four, run(repetitions=4, batch_size=1, seed=3))
    assert not np.array_equal(four[:2], run(repetitions=2, seed=4))


@pytest.mark.slow
@pytest.mark.float64
@pytest.mark.parametrize("method", METHODS[1:])
def test_embeddings_are_those_of_the_paper(method, rng):
    """From the landmarks of a repetition, recomputed in NumPy; distances, which no sign or shift changes."""
    X = rng.normal(size=(60, 3))
    key = jax.random.key(0)
    kernel = Gaussian.from_width(1.7)
    embedded = rand_indices.embeddings(
        key,
        jnp.arange(2, dtype=jnp.uint32),
        kernel,
        jnp.asarray(X),
        method=method,
        sizes=rand_indices.Sizes(k=2, n=30, d=20),
    )
    for number in range(2):
        key_landmarks, key_sketch, _ = rand_indices._keys(key, number)
        L = np.asarray(landmarks.uniform(key_landmarks, X, num_landmarks=30))
        K = literal_gram(L, L, 1.7 / 2**0.5)
        H = np.eye(30) - 1 / 30
        if method == "K-k-means":
            values, V = np.linalg.eigh(K)
            weights = V[:, -20:] / np.sqrt(values[-20:])
        elif method == "KPCA":
            weights = np.linalg.eigh(H @ K @ H)[1][:, -20:]
        else:
            options = {"num_features": 20, "centered": True}
            phi = features.kernel_jl(key_sketch, kernel, L, **options)
            weights = np.asarray(phi.projection).T
        points = literal_gram(X, L, 1.7 / 2**0.5) @ weights
        ours = distance.pdist(np.asarray(embedded[number]))
        house.close(ours, distance.pdist(points), 1e-9 * ours.max())


def test_columns_are_scaled_and_constant_ones_are_zero(rng):
    X = standardise(rng.normal(size=(50, 3)) * [1, 100, 0] + 7)
    np.testing.assert_allclose(X.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(0), [1, 1, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("X", "labels", "message"),
    [
        (np.zeros(5), np.arange(5) % 2, "X must have rank 2"),
        (np.eye(5), np.zeros(5), "labels must hold integer labels"),
    ],
)
def test_points_and_labels_that_do_not_fit_are_refused_by_name(X, labels, message):
    with pytest.raises(ValueError, match=message):
        clusters(X.astype(np.float32), labels, width=1.0)


def test_more_landmarks_than_points_are_refused():
    problem = clusters(np.eye(5, dtype=np.float32), np.arange(5) % 2, width=1.0)
    with pytest.raises(ValueError, match="num_landmarks must be at most 5"):
        table2(problem, num_landmarks=6, repetitions=1)


def test_bank_notes_score_as_printed():
    """Within 0.02 of print for K-JL, whose Rand index varies by 0.045: 30 repetitions have a standard error of 0.008.

    k-means has two fixed points, 0.0002 apart. Of the other two methods the print is known to 0.012 and 0.008 only.
    """
    problem = real("banknote")
    assert width_of(problem) == pytest.approx(1.6513, abs=1e-4)
    indices = table2(problem, repetitions=30, batch_size=30)
    rows = {name: compare("banknote", name, values) for name, values in indices.items()}
    assert abs(rows["K-JL"]["difference"]) <= 0.02
    assert 0.02 < rows["K-JL"]["sd"] < 0.07
    assert abs(rows["k-means"]["difference"]) <= 0.001
    assert rows["k-means"]["sd"] < 0.0005
    for method in ("K-k-means", "KPCA"):
        row = rows[method]
        assert abs(row["difference"]) <= 4 * row["standard_error"]


def width_of(problem):
    """Return sigma of the kernel exp(-|x - x'|^2 / sigma^2)."""
    return float(problem.kernel.lengthscale) * 2**0.5


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_avila_scores_as_printed():
    """Within 0.01 of print. k-means varies by 0.018 around a mean 0.005 above print, so it takes 300 repetitions."""
    problem = real("avila")
    assert width_of(problem) == pytest.approx(2.0735, abs=1e-4)
    indices = table2(problem, methods=("k-means",), repetitions=300)
    indices |= table2(problem, methods=METHODS[1:], repetitions=30)
    for method, values in indices.items():
        row = compare("avila", method, values)
        assert abs(row["difference"]) <= 0.01, row
