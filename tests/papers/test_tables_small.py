"""Figures and tables without their programs: what is traced, arranged, printed, written and drawn.

The slow tests of their own modules run them. Here the costly part of each is traced, or a stand-in gives the numbers.
"""

import functools
import itertools
import json
from unittest import mock

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import distance
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
KERNEL = Gaussian(1.0)


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
        assert problem.X.dtype == np.float64 and seed == 5
        house.close(problem.X.std(0), 1, 1e-7)
        calls.append((len(problem.X), n, d, repetitions))
        return np.linspace(0.4, 0.6, repetitions)

    monkeypatch.setattr(table2, "repeated", repeated)
    options = ["--dtype", "float64", "--seed", "5"]
    document, _ = make("kpotufe2020", "table2", *options)
    assert calls == [(8, 8, 8, 3)] * 4
    rows = document["rows"]
    assert [row["method"] for row in rows] == list(table2.METHODS)
    assert all(row["values"] == [0.4, 0.5, 0.6] for row in rows)
    printed = capsys.readouterr()
    assert "banknote:" in printed.err and "0.5000 ± 0.1000" in printed.out
    calls.clear()
    make("kpotufe2020", "table2", "--full", *options)
    assert calls[::4] == [(9, 9, 9, 30), (600, 400, 50, 30), (8, 8, 8, 30)]


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
    rows = document["rows"]
    assert document["points"] == 500
    sizes = [[row["n"], row["d"]] for row in rows]
    assert sizes[::3] == [[200, 2], [200, 5], [20, 10], [50, 10]]
    house.close([row["values"] for row in rows], np.array(sizes) / 1000)
    assert all(word in picture for word in ("n = 200", "d = 10", *table2.METHODS[1:]))
    assert "0.101 ± 0.140" in capsys.readouterr().out
    assert len(figure2.sizes(True)) == 7 + 6


def embed_by_the_key(key, kernel, X, *, method, d, n=30):
    """Return features whose numbers tell the arguments of a draw apart."""
    assert X is None or X.dtype == np.float64
    method = figure1.METHODS.index(method)
    seed = [*jax.random.key_data(key).tolist(), method, d, n]
    return np.random.default_rng(seed).uniform(size=(400, d))


def test_separations_of_figure_1_are_those_of_its_draws(make, monkeypatch):
    monkeypatch.setattr(figure1, "embed", embed_by_the_key)
    monkeypatch.setattr(figure1, "separation", lambda Z, labels: float(Z[0, 0]))
    document, picture = make("kpotufe2020", "figure1", "--dtype", "float64")
    rows = document["rows"]
    places = itertools.product(figure1.SETS, (2, 10), figure1.METHODS)
    assert [(row["data"], row["d"], row["method"]) for row in rows] == [*places]
    for row in rows:
        place = {"method": row["method"], "d": row["d"]}
        key = jax.random.fold_in(KEY, 1 + list(figure1.SETS).index(row["data"]))
        for draw, share in enumerate(row["values"]):
            Z = embed_by_the_key(jax.random.fold_in(key, draw), None, None, **place)
            assert share == Z[0, 0]
        assert row["separated"] == sum(share >= 0.95 for share in row["values"])
        assert row["data"] in picture
    assert f"K-JL, draw 3: {rows[0]['values'][2]:.3f}" in picture
    assert len(document["pictures"]) == 10
    assert len(document["pictures"][1]["clusters"][0]) == figure1.SHOWN


def number_of(key):
    """Return a number that tells the key of a draw."""
    return float(np.asarray(jax.random.key_data(key)).sum() % 1000 / 1000)


def test_replicates_of_figure_3_are_in_their_places(make, monkeypatch, capsys):
    def replicate(key, *, dim, radial, sizes, dtype):
        return [number_of(key), dim / 100, float(radial), sizes.points / 100]

    monkeypatch.setattr(figure3, "_replicate", replicate)
    document, picture = make("amini2021", "figure3", "--seed", "4")
    rows = document["rows"]
    assert document["sizes"] == {"points": 60, "replicates": 2, "restarts": 2}
    places = itertools.product(figure3.MODELS, (2, 20), figure3.METHODS)
    assert [(row["noise"], row["dim"], row["method"]) for row in rows] == [*places]
    for row in rows:
        numbers = [row["values"][0], row["dim"] / 100, row["noise"] == "radial", 0.6]
        assert row["values"][0] == numbers[figure3.METHODS.index(row["method"])]
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
        return [level, number_of(key), sizes.points]

    monkeypatch.setattr(circles, "clustered", clustered)
    document, picture = make("amini2021", "figure1")
    rows = document["rows"]
    assert [row["noise"] for row in rows[::3]] == list(circles.LEVELS)
    assert rows[0]["least"] == 0 < rows[6]["least"] < 0.1
    assert len({value for row in rows[1::3] for value in row["values"]}) == 8
    assert all(row["values"] == [row["noise"]] * 2 for row in rows[::3])
    assert all(row["values"] == [60.0] * 2 for row in rows[2::3])
    assert all(text in picture for text in ("σ = 0", "σ = 1.5", "radius 3"))
    # Without noise the points are on their circles, equally many on each, to the digits that are stored.
    clusters = np.array(document["pictures"][0]["clusters"])
    assert clusters.shape == (2, scatter.SHOWN // 2, 2)
    radii = np.linalg.norm(clusters, axis=2)
    house.close(radii.T, np.tile(circles.CIRCLES, (len(radii.T), 1)), 1e-4)


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
    residuals = mock.Mock(return_value=[70.0, 71.0, 72.0, 73.0])
    monkeypatch.setattr(digits, "exact_residual", lambda *_, **__: 100.0)
    monkeypatch.setattr(digits, "residuals", residuals)
    document, picture = make("chen2016", "figure1", "--seed", "2")
    points, *numbers = residuals.call_args_list[0].args
    assert points.shape == (200, 3) and numbers == [4.0, 20]
    options = [call.kwargs for call in residuals.call_args_list]
    assert options[0] == {"components": 10, "centred": False, "draws": 4, "seed": 2}
    assert [words["centred"] for words in options] == [False] * 6 + [True] * 6
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
    assert document["slopes"][0]["slope"] == pytest.approx(-1)
    assert [row["frequencies"] for row in document["right"]] == [100, 1000]
    assert document["right"][0]["errors"] == [-0.1] * 200
    assert "0.0500 ± 0.0000" in capsys.readouterr().out
    assert "t = 1000: two standard deviations" in picture


def test_figure_2_of_ghashami2016_is_of_the_data(make, monkeypatch, capsys):
    row = {"method": "RNCA", "sketch_size": 0, "spectral": 0.25, "residual": 1e-6}
    row |= {"frobenius": 0.125, "train": 1.5, "test": 0.5, "space": 88}
    curves = mock.Mock(return_value=[row | {"size": size} for size in (8, 16)])
    monkeypatch.setattr(streams, "curves", curves)
    options = ["--points", "40", "--sizes", "8,16", "--full"]
    document, picture = make("ghashami2016", "figure2", *options)
    X, test, kernel = curves.call_args.args
    options = {"sizes": (8, 16), "lines": (2, 5, 10, 20, 30, 50), "seed": 0}
    assert curves.call_args.kwargs == options
    assert X.shape == (40, 3) and test.shape == (800, 3) and X.dtype == np.float32
    # A median of 780 pairs that are drawn with replacement: six standard errors of its rank.
    error = 6 * (0.5 * 0.5 / 780) ** 0.5
    low, high = np.quantile(distance.pdist(X), [0.5 - error, 0.5 + error])
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
    embed = mock.Mock(side_effect=rand_indices.embeddings)
    monkeypatch.setattr(rand_indices, "embeddings", embed)
    for method in rand_indices.METHODS:
        repetition = functools.partial(rand_indices.rand_indices, method, sizes=sizes)
        traced = jax.eval_shape(repetition, KEY, numbers, Gaussian(1.0), X, truth)
        assert shapes(traced) == [((4,), jnp.float32)]
    embedded = [call.kwargs["method"] for call in embed.call_args_list]
    assert embedded == list(rand_indices.METHODS[1:])


@pytest.mark.parametrize(
    ("methods", "draw"),
    [
        (figure3.METHODS, functools.partial(figure3._replicate, dim=3, radial=False)),
        (figure3.METHODS, functools.partial(figure3._replicate, dim=3, radial=True)),
        (circles.METHODS, functools.partial(circles.clustered, level=0.7)),
    ],
)
def test_a_replicate_has_a_number_for_every_method(methods, draw):
    sizes = figure3.Sizes(points=12, replicates=1, restarts=1)
    draw = functools.partial(draw, sizes=sizes, dtype="float32")
    assert shapes(jax.eval_shape(draw, KEY)) == [((), jnp.float32)] * len(methods)


def test_a_figure_has_a_row_for_every_map_with_its_own_errors(monkeypatch, rng):
    """Maps of two features and of four, so that the stack is padded; NumPy computes the errors."""
    X = rng.standard_normal((12, 3)).astype(np.float32)
    G = literal_gram(X, X, 1.0)
    weights = {size: rng.standard_normal((3, size)).astype("f") for size in (2, 4)}
    wide = Identity(jnp.asarray(weights[4]))
    fits = {
        "RNCA": (0, mock.Mock(return_value=wide)),
        "Nystrom": (1, mock.Mock(return_value=Identity(jnp.asarray(weights[2])))),
        "SKPCA, l=2": (2, mock.Mock(return_value=wide)),
    }
    monkeypatch.setattr(streams, "_methods", lambda size, rows: fits)
    points = streams.curves(X, X[:2], Gaussian(1.0), sizes=(4, 6), lines=(2,), seed=0)
    for row, (size, name) in zip(points, itertools.product((4, 6), fits), strict=True):
        rows = fits[name][0]
        assert (row["method"], row["size"], row["sketch_size"]) == (name, size, rows)
        Y = X @ weights[2 if name == "Nystrom" else 4]
        E = G - Y @ Y.T
        # The solver's tolerance is 1e-3, and the error of an eigenvalue its square.
        spectral = np.linalg.norm(E, 2) / 12
        assert row["spectral"] == pytest.approx(spectral, rel=1e-4)
        assert row["frobenius"] == pytest.approx(np.linalg.norm(E) / 144, rel=1e-4)
        assert row["space"] == size * 3 + size * (rows or size)
        assert row["train"] >= 0 and row["test"] >= 0
    # Features of one size are those of one key, Nystrom has another, and nothing is shared by two sizes.
    keys = {
        name: [str(jax.random.key_data(call.args[0])) for call in fit.call_args_list]
        for name, (_, fit) in fits.items()
    }
    assert keys["RNCA"] == keys["SKPCA, l=2"]
    assert len({*keys["RNCA"], *keys["Nystrom"]}) == 4


@pytest.mark.float64
def test_maps_are_those_whose_rows_fit_and_have_the_directions_that_they_say():
    """Traced. Of a sketch of 10 rows there is none of 8 features."""
    X = jax.ShapeDtypeStruct((12, 3), np.float64)
    directions = {
        name: jax.eval_shape(lambda key, X, f=fit: f(key, KERNEL, X, 8)(X), KEY, X)
        for name, (_, fit) in streams._methods(8, (2, 8, 10)).items()
    }
    assert {name: Z.shape[1] for name, Z in directions.items()} == {
        "RNCA": 8,
        "Nystrom": 8,
        "RNCA, 50 directions": 8,
        "SKPCA, l=2": 2,
        "SKPCA, buffered, l=2": 2,
        "SKPCA, l=8": 8,
        "SKPCA, buffered, l=8": 8,
    }
