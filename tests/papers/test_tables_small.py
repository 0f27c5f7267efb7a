"""Figures and tables without their programs: what is traced, arranged, printed, written and drawn.

The slow tests of their own modules run them. Here the costly part of each is traced, or a stand-in gives the numbers.
"""

import functools
import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import Identity, literal_gram

from jaxkern.kernels import Gaussian
from proofs_check.papers import figures
from proofs_check.papers.amini2021 import figure1 as circles
from proofs_check.papers.amini2021 import figure2 as spheres
from proofs_check.papers.amini2021 import figure3, scatter
from proofs_check.papers.chen2016 import figure1 as digits
from proofs_check.papers.chen2016 import figure2 as distances
from proofs_check.papers.ghashami2016 import experiments as streams
from proofs_check.papers.kpotufe2020 import (
    figure1,
    figure2,
    rand_indices,
    table2,
)

KEY = jax.random.key(0)


def shapes(tree):
    return [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)]


# Every figure by its command, with a stand-in for what is costly


def write(folder, name, rng, y, **others):
    X = rng.standard_normal((len(y), 3)) * 9 + 5
    np.savez(folder / f"{name}.npz", X=X, y=y, **others)


@pytest.fixture
def make(monkeypatch, tmp_path, rng, own_precision):
    """Make a figure in a folder with small files, and return its numbers and its picture."""
    pytest.importorskip("matplotlib")
    write(tmp_path, "avila", rng, np.arange(9) % 3)
    write(tmp_path, "banknote", rng, np.arange(8) % 2)
    write(tmp_path, "nbaiot", rng, np.repeat(rand_indices.IOT_DEVICES, 120))
    write(tmp_path, "cpu", rng, np.zeros(840, int))
    write(tmp_path, "usps", rng, np.arange(210) % 10, n_train=200)

    def command(*arguments):
        table = tmp_path / "table.json"
        picture = tmp_path / "figure.svg"
        files = ["--data-dir", str(tmp_path), "--output", str(table), "--overwrite"]
        if arguments[1].startswith("figure"):
            files += ["--picture", str(picture)]
        assert figures.main([*arguments, *files]) == 0
        text = picture.read_text() if picture.exists() else ""
        return json.loads(table.read_text()), text

    return command


def test_table_1_of_kpotufe2020_counts(make, capsys):
    document, _ = make("kpotufe2020", "table1")
    sizes = {row["data"]: row["found"] for row in document["rows"]}
    assert sizes == {"avila": [9, 3, 3], "iot": [600, 3, 5], "banknote": [8, 3, 2]}
    assert "20867" in capsys.readouterr().out


def test_table_2_of_kpotufe2020_is_of_the_right_repetitions(make, monkeypatch, capsys):
    calls = []

    def repeated(method, problem, n, d, *, repetitions, seed):
        calls.append((problem.X.shape, problem.X.dtype, n, d, repetitions, seed))
        np.testing.assert_allclose(problem.X.std(0), 1)
        return np.linspace(0.4, 0.6, repetitions)

    monkeypatch.setattr(table2, "repeated", repeated)
    options = ["--dtype", "float64", "--seed", "5"]
    document, _ = make("kpotufe2020", "table2", *options)
    assert calls == [((8, 3), np.float64, 8, 8, 3, 5)] * 4
    rows = document["rows"]
    assert [row["method"] for row in rows] == list(table2.METHODS)
    assert all(row["values"] == [0.4, 0.5, 0.6] for row in rows)
    printed = capsys.readouterr()
    assert "banknote:" in printed.err and "0.5000 ± 0.1000" in printed.out
    calls.clear()
    document, _ = make("kpotufe2020", "table2", "--full", *options)
    assert [call[2:5] for call in calls[::4]] == [
        (n, min(n, 10 * k), 30) for n, k in ((9, 3), (400, 5), (8, 2))
    ]


def test_a_cell_of_table_2_is_compared_with_print():
    row = table2.compare("banknote", "K-JL", np.array([0.5, 0.6]))
    cells = [cell.format(**row) for cell in table2.TABLES["rows"].values()]
    expected = "Bank Notes K-JL 0.5500 ± 0.0707 0.527 ± 0.031 +0.0230 0.0503"
    assert " ".join(cells) == expected


def test_figure_2_of_kpotufe2020_has_both_sides(make, monkeypatch, capsys):
    def repeated(method, problem, n, d, *, repetitions, seed):
        assert problem.X.shape == (500, 3) and problem.X.dtype == np.float32
        return np.array([n, d]) / 1000

    monkeypatch.setattr(figure2, "repeated", repeated)
    document, picture = make("kpotufe2020", "figure2")
    assert document["points"] == 500
    assert [(row["n"], row["d"]) for row in document["rows"][::3]] == [
        (200, 2),
        (200, 5),
        (20, 10),
        (50, 10),
    ]
    assert all(
        row["values"] == [row["n"] / 1000, row["d"] / 1000] for row in document["rows"]
    )
    assert all(word in picture for word in ("n = 200", "d = 10", *table2.METHODS[1:]))
    assert "0.101 ± 0.140" in capsys.readouterr().out
    assert len(figure2.sizes(True)) == 7 + 6


def test_separations_of_figure_1_are_those_of_its_draws(make, monkeypatch):
    monkeypatch.setattr(figure1, "embed", embed_by_the_key)
    monkeypatch.setattr(figure1, "separation", lambda Z, labels: float(Z[0, 0]))
    document, picture = make("kpotufe2020", "figure1", "--dtype", "float64")
    places = itertools.product(figure1.SETS, (2, 10), figure1.METHODS)
    for row, (name, d, method) in zip(document["rows"], places, strict=True):
        assert (row["data"], row["d"], row["method"]) == (name, d, method)
        key = jax.random.fold_in(KEY, 1 + list(figure1.SETS).index(name))
        for draw, share in enumerate(row["values"]):
            own = jax.random.fold_in(key, draw)
            assert share == embed_by_the_key(own, None, None, method=method, d=d)[0, 0]
        assert row["separated"] == sum(s >= 0.95 for s in row["values"])
        assert name in picture
    third = document["rows"][0]["values"][2]
    assert f"K-JL, draw 3: {third:.3f}" in picture
    assert len(document["pictures"]) == 10
    assert len(document["pictures"][1]["clusters"][0]) == figure1.SHOWN


def embed_by_the_key(key, kernel, X, *, method, d, n=30):
    """Return features whose numbers tell the arguments of a draw apart."""
    assert X is None or X.dtype == np.float64
    method = figure1.METHODS.index(method)
    seed = [*jax.random.key_data(key).tolist(), method, d, n]
    return np.random.default_rng(seed).uniform(size=(400, d))


def test_replicates_of_figure_3_are_in_their_places(make, monkeypatch, capsys):
    def replicate(key, *, dim, radial, sizes, dtype):
        number = np.asarray(jax.random.key_data(key)).sum() % 1000 / 1000
        return [float(number), dim / 100, float(radial), sizes.points / 100]

    monkeypatch.setattr(figure3, "_replicate", replicate)
    document, picture = make("amini2021", "figure3", "--seed", "4")
    rows = document["rows"]
    assert document["sizes"] == {"points": 60, "replicates": 2, "restarts": 2}
    places = itertools.product(figure3.MODELS, (2, 20), figure3.METHODS)
    for row, (noise, dim, method) in zip(rows, places, strict=True):
        assert (row["noise"], row["dim"], row["method"]) == (noise, dim, method)
        expected = [None, dim / 100, float(noise == "radial"), 0.6]
        number = expected[figure3.METHODS.index(method)]
        assert number is None or row["values"] == [number] * 2
    # Every replicate has randomness of its own, which is that of its place.
    draws = [value for row in rows[::4] for value in row["values"]]
    assert len(set(draws)) == 8
    single = figure3.Sizes(points=60, replicates=1, restarts=2)
    alone = figure3.scores("radial", 20, sizes=single, seed=4)
    assert alone[0]["values"] == rows[12]["values"][:1]
    error = np.std(rows[0]["values"], ddof=1) / 2**0.5
    assert f"{rows[0]['mean']:.3f} ± {error:.3f}" in capsys.readouterr().out
    words = ("isotropic noise", "radial noise", "dimension d", *figure3.METHODS)
    assert all(word in picture for word in words)


def test_errors_on_circles_are_in_their_places(make, monkeypatch):
    monkeypatch.setattr(scatter, "BINS", 50)

    def clustered(key, level, *, sizes, dtype):
        number = np.asarray(jax.random.key_data(key)).sum() % 1000 / 1000
        return [level, float(number), sizes.points]

    monkeypatch.setattr(circles, "clustered", clustered)
    document, picture = make("amini2021", "figure1")
    rows = document["rows"]
    assert [row["noise"] for row in rows[::3]] == list(circles.LEVELS)
    assert rows[0]["least"] == 0 < rows[6]["least"] < 0.1
    assert len({value for row in rows[1::3] for value in row["values"]}) == 8
    for level, points in zip(rows[::3], rows[2::3], strict=True):
        assert level["values"] == [level["noise"]] * 2
        assert points["values"] == [60.0] * 2
    assert all(text in picture for text in ("σ = 0", "σ = 1.5", "radius 3"))
    # Without noise the points are on their circles, equally many on each, to the digits that are stored.
    clusters = document["pictures"][0]["clusters"]
    for radius, points in zip(circles.CIRCLES, clusters, strict=True):
        lengths = np.linalg.norm(points, axis=1)
        np.testing.assert_allclose(lengths, radius, atol=1e-4)
        assert len(points) == scatter.SHOWN // 2


def test_figure_2_of_amini2021_compares_two_coordinates_with_all(make, monkeypatch):
    monkeypatch.setattr(scatter, "BINS", 50)
    document, picture = make("amini2021", "figure2")
    rows = document["rows"]
    assert [row["dim"] for row in rows] == list(spheres.DIMS)
    # Two coordinates of two are all.
    assert rows[0]["radial, two"] == rows[0]["radial, all"]
    assert rows[1]["radial, two"] > rows[1]["radial, all"]
    assert all(text in picture for text in ("isotropic, d = 2", "radial, d = 1000"))


def test_figure_1_of_chen2016_has_the_residuals_of_both_readings(make, monkeypatch):
    calls = []

    def residuals(points, lengthscale, frequencies, *, draws, seed, **options):
        calls.append((points.shape, lengthscale, frequencies, seed, options))
        return [90.0 - frequencies + draw for draw in range(draws)]

    monkeypatch.setattr(digits, "exact_residual", lambda *_, **__: 100.0)
    monkeypatch.setattr(digits, "residuals", residuals)
    document, picture = make("chen2016", "figure1", "--seed", "2")
    options = {"components": 10, "centred": False}
    assert calls[0] == ((200, 3), 4.0, 20, 2, options)
    assert [call[-1]["centred"] for call in calls] == [False] * 6 + [True] * 6
    row = document["rows"][0]
    assert row["values"] == [70, 71, 72, 73] and row["exact"] == 100
    assert row["scaled"] == pytest.approx(20 * (1 - 0.715))
    assert document["comparison"] == [] and "printed" not in picture
    assert "sigma = 16, 4 draws ± 2 sd" in picture


def test_figure_2_of_chen2016_is_of_the_errors(make, monkeypatch, capsys):
    def errors(key, *, dim, frequencies, pairs, dtype, from_features):
        assert from_features and dtype == "float64"
        return -np.full(pairs, dim / frequencies)

    monkeypatch.setattr(distances, "relative_errors", errors)
    options = ["--from-features", "--dtype", "float64"]
    document, picture = make("chen2016", "figure2", *options)
    row = document["left"][-1]
    assert (row["dim"], row["frequencies"]) == (10, 200)
    assert row["values"] == [0.05] * 3 and row["inverse"] == pytest.approx(2)
    slope = document["slopes"][0]
    assert slope["slope"] == pytest.approx(-1)
    assert slope["error"] == pytest.approx(0, abs=1e-7)
    assert [row["frequencies"] for row in document["right"]] == [100, 1000]
    assert document["right"][0]["errors"] == [-0.1] * 200
    assert "0.0500 ± 0.0000" in capsys.readouterr().out
    assert "t = 1000: two standard deviations" in picture


def test_figure_2_of_ghashami2016_is_of_the_data(make, monkeypatch, capsys):
    calls = []

    def curves(X, test, kernel, *, sizes, lines, seed):
        calls.append((X, test, kernel, sizes, lines))
        row = {"method": "RNCA", "sketch_size": 0, "spectral": 0.25, "residual": 1e-6}
        row |= {"frobenius": 0.125, "train": 1.5, "test": 0.5, "space": 88}
        return [{**row, "size": size} for size in sizes]

    monkeypatch.setattr(streams, "curves", curves)
    options = ["--points", "40", "--sizes", "8,16", "--full"]
    document, picture = make("ghashami2016", "figure2", *options)
    X, test, kernel, sizes, lines = calls[0]
    assert sizes == (8, 16) and lines == (2, 5, 10, 20, 30, 50)
    assert X.shape == (40, 3) and test.shape == (800, 3) and X.dtype == np.float32
    pairs = np.linalg.norm(X[:, None] - X[None], axis=2)[np.triu_indices(40, 1)]
    # A median of 780 pairs that are drawn with replacement: six standard errors of its rank.
    ranks = 0.5 + np.array([-6, 6]) * (0.5 * 0.5 / 780) ** 0.5
    low, high = np.quantile(pairs, ranks)
    assert low <= kernel.lengthscale <= high
    assert document["lengthscale"] == kernel.lengthscale
    assert document["rows"][0]["spectral"] == 0.25
    assert "CPU, n = 40, d = 3" in picture and "RNCA" in picture
    assert "2.50e-01" in capsys.readouterr().out


# What is costly, traced or on small sizes


def test_a_repetition_of_every_method_is_one_number(monkeypatch):
    """k-means alone sees the points as they are, and never embeds them."""
    X = jnp.zeros((12, 2))
    truth = jnp.zeros(12, jnp.int32)
    numbers = jnp.arange(4, dtype=jnp.uint32)
    sizes = rand_indices.Sizes(k=2, n=5, d=3)
    embedded = []
    embeddings = rand_indices.embeddings

    def seen(*arguments, method, **options):
        embedded.append(method)
        return embeddings(*arguments, method=method, **options)

    monkeypatch.setattr(rand_indices, "embeddings", seen)
    for method in rand_indices.METHODS:
        repetition = functools.partial(rand_indices.rand_indices, method, sizes=sizes)
        traced = jax.eval_shape(
            lambda key, numbers, f=repetition: f(key, numbers, Gaussian(1.0), X, truth),
            KEY,
            numbers,
        )
        assert shapes(traced) == [((4,), jnp.float32)]
    assert embedded == list(rand_indices.METHODS[1:])


def test_a_replicate_of_figure_3_has_a_number_for_every_method():
    sizes = figure3.Sizes(points=12, replicates=1, restarts=1)
    for radial in (False, True):
        traced = jax.eval_shape(
            lambda key, radial=radial: figure3._replicate(
                key, dim=3, radial=radial, sizes=sizes, dtype="float32"
            ),
            KEY,
        )
        assert shapes(traced) == [((), jnp.float32)] * len(figure3.METHODS)
    traced = jax.eval_shape(
        lambda key: circles.clustered(key, 0.7, sizes=sizes, dtype="float32"), KEY
    )
    assert shapes(traced) == [((), jnp.float32)] * len(circles.METHODS)


def test_a_figure_has_a_row_for_every_map_with_its_own_errors(monkeypatch):
    """Maps of two features and of four, so that the stack is padded; NumPy computes the errors."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((12, 3)).astype(np.float32)
    kernel = Gaussian(1.0)
    keys = {}
    sketch_rows = {"RNCA": 0, "Nystrom": 1, "SKPCA, l=2": 2}
    weights = {
        name: rng.standard_normal((3, 2 if name == "Nystrom" else 4)).astype(np.float32)
        for name in sketch_rows
    }

    def fit(name, key, kernel, X, size):
        keys[name, size] = tuple(jax.random.key_data(key).tolist())
        return Identity(jnp.asarray(weights[name]))

    def errors(G, Ys):
        off = [np.asarray(G - Y @ Y.T) for Y in Ys]
        spectral = [np.linalg.norm(E, 2) for E in off]
        return spectral, [0.0] * len(off), [np.linalg.norm(E) for E in off]

    methods = {
        name: (rows, functools.partial(fit, name)) for name, rows in sketch_rows.items()
    }
    monkeypatch.setattr(streams, "_methods", lambda size, rows: methods)
    monkeypatch.setattr(streams, "errors", errors)
    points = streams.curves(X, X[:2], kernel, sizes=(4, 6), lines=(2,), seed=0)
    places = itertools.product((4, 6), sketch_rows.items())
    G = literal_gram(X, X, 1.0)
    for row, (size, (name, rows)) in zip(points, places, strict=True):
        assert (row["method"], row["size"], row["sketch_size"]) == (name, size, rows)
        E = G - X @ weights[name] @ (X @ weights[name]).T
        assert row["spectral"] == pytest.approx(np.linalg.norm(E, 2), rel=1e-4)
        assert row["frobenius"] == pytest.approx(np.linalg.norm(E), rel=1e-4)
        assert row["space"] == size * 3 + size * (rows or size)
        assert row["train"] >= 0 and row["test"] >= 0
    # Features of one size are those of one key, Nystrom has another, and nothing is shared by two sizes.
    assert keys["RNCA", 4] == keys["SKPCA, l=2", 4] != keys["Nystrom", 4]
    assert len(set(keys.values())) == 4


def test_methods_of_a_figure_are_those_whose_rows_fit():
    names = list(streams._methods(8, (2, 8, 10)))
    sketches = [
        f"SKPCA{kind}, l={rows}" for kind in ("", ", buffered") for rows in (2, 8)
    ]
    assert names == ["RNCA", "Nystrom", "RNCA, 50 directions", *sketches]


@pytest.mark.float64
def test_maps_of_a_figure_have_the_directions_that_it_says():
    """Traced: the number of features of each, and which one holds the sketch."""
    X = jnp.asarray(np.random.default_rng(1).standard_normal((12, 3)))
    directions = {
        name: jax.eval_shape(
            lambda key, fit=fit: fit(key, Gaussian(1.0), X, 8)(X), KEY
        ).shape[1]
        for name, (_, fit) in streams._methods(8, (2,)).items()
    }
    assert directions == {
        "RNCA": 8,
        "Nystrom": 8,
        "RNCA, 50 directions": 8,
        "SKPCA, l=2": 2,
        "SKPCA, buffered, l=2": 2,
    }
