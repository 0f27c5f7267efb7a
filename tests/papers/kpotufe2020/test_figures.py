"""Tables and figures of kpotufe2020 beside Table 2: the parts against independent computations, the command lines."""

import itertools
import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import features, landmarks
from jaxkern.kernels import Gaussian
from proofs_check.papers.kpotufe2020 import (
    figure1,
    figure2,
    rand_indices,
    table1,
    table2,
)


def test_the_iot_rows_are_those_of_the_five_devices(rng):
    y = rng.integers(0, 9, 400)
    X = np.arange(400.0)[:, None] + np.array([0.0, 1000.0])
    points, labels = rand_indices.iot_sample(X, y, per_device=10)
    assert points.shape == (50, 2) and set(labels.tolist()) == set(
        rand_indices.IOT_DEVICES
    )
    assert (
        np.array_equal(y[points[:, 0].astype(int)], labels)
        and len(set(points[:, 0])) == 50
    )
    again, _ = rand_indices.iot_sample(X, y, per_device=10)
    assert np.array_equal(points, again)
    everything, counted = rand_indices.iot_sample(X, y)
    assert len(everything) == np.isin(y, rand_indices.IOT_DEVICES).sum() == len(counted)
    with pytest.raises(ValueError, match="y must hold every one of the devices"):
        rand_indices.iot_sample(X, np.zeros(400, int))


def test_table_1_counts_rows_columns_and_labels(tmp_path, rng, capsys):
    for name, file in rand_indices.FILES.items():
        y = (
            np.repeat(rand_indices.IOT_DEVICES, 4)
            if name == "iot"
            else np.arange(20) % 4
        )
        np.savez(tmp_path / file, X=rng.standard_normal((20, 3)), y=y)
    output = tmp_path / "table.json"
    assert table1.main(["--data-dir", str(tmp_path), "--output", str(output)]) == 0
    assert "20867" in capsys.readouterr().out
    rows = {row["data"]: row for row in json.loads(output.read_text())["rows"]}
    assert rows["avila"] == {
        "data": "avila",
        "found": [20, 3, 4],
        "printed": [20867, 10, 12],
    }
    assert rows["iot"]["found"] == [20, 3, 5] and set(rows) == set(table1.PRINTED)


def test_separation_is_the_best_half_plane_of_all(rng):
    """Against all lines through two of the points, moved to either side of both, in every combination."""
    for _ in range(5):
        Z, labels = rng.standard_normal((12, 2)), np.arange(12) % 2
        best = 0.0
        for i, j in itertools.combinations(range(12), 2):
            normal = np.array([[0, -1], [1, 0]]) @ (Z[j] - Z[i])
            scores = (Z - Z[i]) @ normal
            for a, b in itertools.product((-1, 1), repeat=2):
                above = scores > 1e-12
                above[i], above[j] = a > 0, b > 0
                right = (above == (labels == 1)).mean()
                best = max(best, right, 1 - right)
        found = figure1.separation(Z, labels)
        assert (
            best - 0.1 <= found <= best + 1e-12
        )  # 180 directions may miss one point of twelve


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


def test_maps_are_those_of_the_paper(x64, rng):
    X = jnp.asarray(rng.standard_normal((40, 2)))
    key_landmarks, key_sketch = jax.random.split(jax.random.key(4))
    L = np.asarray(landmarks.uniform(key_landmarks, X, num_landmarks=15))

    def k(A, B):
        return np.exp(
            -((np.asarray(A)[:, None] - np.asarray(B)[None]) ** 2).sum(-1) / 1.3**2
        )

    def squares(Z):
        return ((Z[:, None] - Z[None]) ** 2).sum(-1)

    H = np.eye(15) - 1 / 15
    alpha = np.linalg.eigh(H @ k(L, L) @ H)[1][:, -2:]
    ours = figure1.embed(jax.random.key(4), X, method="KPCA", n=15, d=2, width=1.3)
    np.testing.assert_allclose(squares(ours), squares(k(X, L) @ alpha), atol=1e-9)
    ours = figure1.embed(jax.random.key(4), X, method="K-JL", n=15, d=2, width=1.3)
    phi = features.kernel_jl(
        key_sketch,
        Gaussian.from_width(1.3),
        jnp.asarray(L),
        num_features=2,
        centered=True,
    )
    np.testing.assert_allclose(
        squares(ours), squares(k(X, L) @ np.asarray(phi.projection).T), atol=1e-12
    )


def test_the_sets_of_figure_1_are_those_of_the_library():
    for name in figure1.SETS:
        X, labels = figure1.data(name, num_points=60)
        assert X.shape == (60, 2) and np.array_equal(labels, np.arange(60) % 2)
        # No line separates the disc from the ring around it; one does separate the moon from the crescent, almost.
    assert figure1.separation(*figure1.data(figure1.SETS[0], num_points=400)) < 0.8
    with pytest.raises(ValueError, match="data must be one of"):
        figure1.data("rings")
    with pytest.raises(ValueError, match="method must be one of"):
        figure1.embed(jax.random.key(0), X, method="PCA", n=5, d=2)


def test_figure_2_is_table_2_at_other_sizes(monkeypatch, rng):
    monkeypatch.setattr(figure2, "KERNEL_METHODS", ("K-JL",))
    X, labels = rng.standard_normal((60, 3)).astype(np.float32), np.arange(60) % 3
    lines = []
    found = figure2.figure2(
        X, labels, [(30, 30)], repetitions=2, seed=5, progress=lines.append
    )
    expected = table2.table2(
        X, labels, repetitions=2, seed=5, num_landmarks=30, methods=("K-JL",)
    )
    assert np.array_equal(found[30, 30]["K-JL"], expected["K-JL"]) and lines[
        0
    ].startswith("n = 30, d = 30")
    with pytest.raises(ValueError, match="num_features must be at most 20"):
        figure2.figure2(X, labels, [(20, 30)])
    with pytest.raises(ValueError, match="num_landmarks must be at most 60"):
        figure2.figure2(X, labels, [(61, 3)])


def some_indices():
    scores = {method: np.array([0.7, 0.72]) for method in figure2.KERNEL_METHODS}
    return {(20, 2): scores, (20, 5): scores, (50, 5): scores}


def test_figure_2_is_drawn_the_same_every_time(tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("a.svg", "b.svg"):
        figure2.FIGURE.draw(
            tmp_path / name, partial(figure2.plot, indices=some_indices(), n=20, d=5)
        )
    first, second = (tmp_path / name for name in ("a.svg", "b.svg"))
    text = first.read_text()
    assert (
        text == second.read_text() and "landmarks n" in text and "<dc:date>" not in text
    )


def test_the_command_of_figure_1_prints_its_table(monkeypatch, capsys, own_precision):
    monkeypatch.setattr(
        figure1, "figure1", lambda **_: {("a set", 2, "K-JL"): np.array([1.0, 0.5])}
    )
    assert figure1.main([]) == 0
    printed = capsys.readouterr().out
    assert "a set" in printed and "1 of 2" in printed
