"""Tables and figures without their programs: what is traced, what is arranged, printed, written and drawn.

The slow tests of their own modules run them. Here the costly part of each is traced, or a stand-in gives the numbers.
"""

import errno
import functools
import io
import json
import sys
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import features
from jaxkern.kernels import Gaussian
from proofs_check.papers import figures
from proofs_check.papers.amini2021 import figure3, scatter
from proofs_check.papers.chen2016 import figure2 as distances
from proofs_check.papers.ghashami2016 import figures as streams
from proofs_check.papers.kpotufe2020 import (
    figure1,
    figure2,
    rand_indices,
    table1,
    table2,
)

KEY = jax.random.key(0)


def shapes(found):
    return [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(found)]


def test_a_repetition_of_every_method_is_one_number(monkeypatch):
    """k-means alone sees the points as they are, and never embeds them."""
    X, truth = jnp.zeros((12, 2)), jnp.zeros(12, jnp.int32)
    embedded = []
    real = rand_indices.embeddings
    monkeypatch.setattr(
        rand_indices,
        "embeddings",
        lambda *a, method, **k: embedded.append(method) or real(*a, method=method, **k),
    )
    for method in table2.METHODS:
        found = jax.eval_shape(
            lambda key, numbers, method=method: rand_indices.rand_indices(
                method,
                key,
                numbers,
                Gaussian(1.0),
                X,
                truth,
                sizes=rand_indices.Sizes(k=2, n=5, d=3),
            ),
            KEY,
            jnp.arange(4, dtype=jnp.uint32),
        )
        assert shapes(found) == [((4,), jnp.float32)]
    assert embedded == list(table2.METHODS[1:])


def test_a_table_is_aligned_without_rich(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    text = io.StringIO()
    table = figures.Table("Title", ("name", "n"), [("a", "1"), ("longer", "200")])
    figures.show([table, "a line"], file=text)
    assert text.getvalue().splitlines()[1:] == [
        "Title",
        "name    n",
        "a       1",
        "longer  200",
        "a line",
    ]


class Picture:
    """What a function draws, in the place of a picture of matplotlib."""

    def __init__(self, text):
        self.text = text

    def savefig(self, path, **options):
        path.write_text(self.text)


@pytest.fixture
def pictures(monkeypatch):
    """Let pictures stand in for those of matplotlib."""
    monkeypatch.setattr(
        pytest.importorskip("matplotlib.pyplot"), "close", lambda picture: None
    )


FULL = OSError(errno.ENOSPC, "No space left on device")
EMPTY = figures.Figure(
    "paper_figure", "Figure 1", "about", lambda options, say: figures.Result([], {}, {})
)


def test_what_cannot_be_written_or_drawn_is_one_line(pictures, tmp_path, monkeypatch):
    path = tmp_path / "figure.abc"
    EMPTY.draw(path, lambda pyplot: Picture("old"))
    assert path.read_text() == "old"
    for error, kind, message in (
        (
            ImportError("matplotlib"),
            figures.UsageError,
            "--plot needs matplotlib: pip install",
        ),
        (
            ValueError("Format 'abc' is not supported"),
            figures.UsageError,
            rf"--plot {path}: Format 'abc' is not",
        ),
        (FULL, OSError, "No space left"),
    ):
        with pytest.raises(kind, match=message):
            EMPTY.draw(path, mock.Mock(side_effect=error))
    monkeypatch.setattr(figures.files, "_rename", mock.Mock(side_effect=FULL))
    assert EMPTY.main(["--output", str(tmp_path / "table.json")]) == 3
    with pytest.raises(figures.StorageError, match="No space left"):
        EMPTY.draw(path, lambda pyplot: Picture("new"))
    assert [file.name for file in tmp_path.iterdir()] == [
        "figure.abc"
    ] and path.read_text() == "old"


def test_files_that_exist_or_are_read_stay(pictures, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("iot.npz", "old.json", "old.svg"):
        Path(name).write_text(name)

    def compute(options, say):
        return figures.Result(
            [], {}, {}, [("--plot", options.plot, lambda pyplot: Picture("new"))]
        )

    figure = figures.Figure(
        "paper_figure",
        "Figure 1",
        "about",
        compute,
        (figures.data_dir(), figures.plot()),
    )
    common = ["--data-dir", "."]
    for arguments, said in (
        (
            ["--output", "old.json"],
            "--output old.json exists; choose a new file, or pass --overwrite",
        ),
        (["--plot", "old.svg"], "--plot old.svg exists"),
        (["--plot", "new"], "--plot new has no ending that names its format"),
        (
            ["--output", "iot.npz", "--overwrite"],
            "--output iot.npz is read by this command",
        ),
    ):
        assert figure.main([*common, *arguments]) == 2
        assert said in capsys.readouterr().err
    for name in ("iot.npz", "old.json", "old.svg"):
        assert Path(name).read_text() == name
    assert (
        figure.main(
            [*common, "--output", "old.json", "--plot", "new.svg", "--overwrite"]
        )
        == 0
    )
    document = json.loads(Path("old.json").read_text())
    assert (
        document["paper"] == "paper"
        and document["where"] == "Figure 1"
        and Path("new.svg").read_text() == "new"
    )


@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        (figure3, ["--dims", "1"], "2 dimensions"),
        (figure3, ["--dims", "two"], "whole number"),
        (figure3, ["--points", "2"], "3 points"),
        (figure3, ["--replicates", "0"], "1 replicate"),
        (figure3, ["--output", "absent/table.json"], "there is no folder absent"),
        (figure3, ["--nonsense"], "unrecognized"),
        (scatter, ["--dims", "1"], "2 dimensions"),
        (scatter, ["--points", "1"], "2 points"),
        (scatter, ["--replicates", "0"], "1 replicate"),
        (scatter, ["--plot2", "absent/figure.svg"], "there is no folder absent"),
        (distances, ["--pairs", "7"], "8 pairs"),
        (distances, ["--dims", "0"], "1 replicate"),
        (table1, ["--data-dir", "absent"], "no such file"),
        (figure1, ["--points", "5"], "num_landmarks must be at most 5"),
        (figure2, ["--data-dir", "absent"], "no such file"),
        (table2, ["--data-dir", "absent"], "no such file"),
        (
            table2,
            ["--datasets", "avila,iris"],
            "unknown data set 'iris'; there are avila, iot, banknote",
        ),
        (table2, ["--repetitions", "0"], "--repetitions must be at least 1"),
        (table2, ["--seed", "-1"], "must be a whole number from 0"),
        (streams, ["--data-dir", "absent", "--datasets", "cpu"], "no such file"),
        (streams, ["--sizes", "0"], "must be at least 1"),
        (streams, ["--points", "20", "--sizes", "50"], "sizes at most the points"),
        (streams, ["--sizes", "5", "--rows", "10"], "--rows must hold one number"),
        (streams, ["--quantile", "1"], "between 0 and 1"),
        (streams, ["--plot", "absent"], "there is no such folder"),
    ],
)
def test_bad_usage_is_one_line_and_status_two(module, arguments, message, capsys):
    assert module.main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_a_replicate_of_figure_3_has_a_number_for_every_method():
    sizes = figure3.Sizes(points=12, replicates=1, restarts=1)
    for radial in (False, True):
        found = jax.eval_shape(
            lambda key, radial=radial: figure3._replicate(
                key, dim=3, radial=radial, sizes=sizes, dtype="float32"
            ),
            KEY,
        )
        assert shapes(found) == [((), jnp.float32)] * len(figure3.METHODS)


def of_the_key(key, *, dim, radial, sizes, dtype):
    """Four numbers that tell the arguments of a replicate apart."""
    return [float(jax.random.uniform(key)), dim, float(radial), sizes.points]


def test_replicates_of_figure_3_are_in_their_places(monkeypatch):
    monkeypatch.setattr(figure3, "_replicate", of_the_key)
    lines = []
    found = figure3.figure3(
        (5, 7), sizes=figure3.Sizes(60, 3, 2), seed=4, progress=lines.append
    )
    assert list(found) == [
        ("isotropic", 5),
        ("isotropic", 7),
        ("radial", 5),
        ("radial", 7),
    ]
    assert [line.split(":")[0] for line in lines] == [
        f"{model}, d = {dim}" for model, dim in found
    ]
    for (model, dim), scores in found.items():
        assert scores.shape == (4, 3)
        np.testing.assert_array_equal(
            scores[1:], np.outer([dim, model == "radial", 60], np.ones(3))
        )
    keys = np.concatenate([scores[0] for scores in found.values()])
    assert (
        len(set(keys.tolist())) == 12
    )  # every replicate has randomness of its own, which is that of its place
    fewer = figure3.figure3(
        (7,), models=("radial",), sizes=figure3.Sizes(60, 1, 2), seed=4
    )
    assert fewer["radial", 7][0, 0] == found["radial", 7][0, 0]


def test_the_command_of_figure_3_prints_writes_and_draws(
    monkeypatch, tmp_path, capsys, own_precision
):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(
        figure3, "_replicate", lambda key, **_: jax.random.uniform(key, 4).tolist()
    )
    table, picture = tmp_path / "table.json", tmp_path / "figure.svg"
    sizes = ["--points", "6", "--replicates", "2", "--restarts", "1", "--dims", "3,9"]
    assert figure3.main([*sizes, "--output", str(table), "--plot", str(picture)]) == 0
    printed = capsys.readouterr()
    assert (
        "radial" in printed.out
        and "amini2021_figure3: isotropic, d = 3:" in printed.err
    )
    document = json.loads(table.read_text())
    assert (
        document["sizes"] == {"points": 6, "replicates": 2, "restarts": 1}
        and len(document["rows"]) == 2 * 2 * 4
    )
    for row in document["rows"]:
        assert (
            row["mean"] == pytest.approx(np.mean(row["values"]))
            and len(row["values"]) == 2
        )
        mean, error = row["mean"], np.std(row["values"], ddof=1) / 2**0.5
        assert f"{mean:.3f} ± {error:.3f}" in printed.out
    text = picture.read_text()
    assert all(
        words in text
        for words in (
            "isotropic noise",
            "radial noise",
            "dimension d",
            *figure3.METHODS,
        )
    )
    assert figures.standard_error(np.array([0.3])) == 0


def test_a_data_set_of_the_circles_has_an_error_for_every_method():
    found = jax.eval_shape(
        lambda key: scatter._clustered(
            key, 0.7, points=12, restarts=1, dtype="float32"
        ),
        KEY,
    )
    assert shapes(found) == [((), jnp.float32)] * len(scatter.METHODS)


def test_errors_on_circles_are_in_their_places(monkeypatch):
    monkeypatch.setattr(scatter, "BINS", 50)
    monkeypatch.setattr(
        scatter,
        "_clustered",
        lambda key, level, **_: [level, float(jax.random.uniform(key)), 1.0],
    )
    found = scatter.figure1((0.0, 0.7), replicates=3)
    assert (
        list(found) == [0.0, 0.7]
        and found[0.0]["least"] == 0 < found[0.7]["least"] < 0.1
    )
    draws = [found[level][scatter.METHODS[1]] for level in found]
    assert len(set(np.concatenate(draws).tolist())) == 6
    for level, row in found.items():
        np.testing.assert_array_equal(row[scatter.METHODS[0]], [level] * 3)
        np.testing.assert_array_equal(row[scatter.METHODS[2]], [1] * 3)


def test_both_pictures_are_of_the_spheres(monkeypatch, tmp_path):
    """Without noise the points are on their spheres; the pictures are those of the sizes that are set."""
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(scatter, "DIMS", (2, 3))
    monkeypatch.setattr(scatter, "LEVELS", (0.0, 0.7))
    points, labels = scatter._sample(
        0, radii=scatter.CIRCLES, noise=0.0, dim=2, radial=False, seed=0
    )
    assert points.shape == (scatter.SHOWN, 2) and np.bincount(labels).tolist() == [
        75,
        75,
    ]
    # float32: a few roundings of numbers of the size of the radius.
    np.testing.assert_allclose(
        np.linalg.norm(points, axis=1), np.array(scatter.CIRCLES)[labels], rtol=1e-6
    )
    for plot, titles in (
        (scatter.plot1, ("σ = 0", "σ = 0.7")),
        (scatter.plot2, ("isotropic, d = 2", "radial, d = 2")),
    ):
        for name in ("a.svg", "b.svg"):
            scatter.FIGURE.draw(tmp_path / name, plot)
        text = (tmp_path / "a.svg").read_text()
        assert text == (tmp_path / "b.svg").read_text() and all(
            title in text for title in (*titles, "radius 1")
        )


def test_the_command_of_the_scatter_prints_and_writes(
    pictures, monkeypatch, tmp_path, capsys, own_precision
):
    monkeypatch.setattr(scatter, "BINS", 50)
    sizes, asked = ["--points", "40", "--restarts", "2", "--replicates", "1"], []

    def clustered(key, level, **sizes):
        asked.append((sizes["points"], sizes["restarts"]))
        return jax.random.uniform(key, 3).tolist()

    monkeypatch.setattr(scatter, "_clustered", clustered)
    for name in ("plot1", "plot2"):
        monkeypatch.setattr(
            scatter, name, lambda pyplot, *, seed: Picture(f"seed {seed}")
        )
    paths = [tmp_path / name for name in ("table.json", "1.svg", "2.svg")]
    outputs = [
        part
        for pair in zip(
            ("--output", "--plot1", "--plot2"), map(str, paths), strict=True
        )
        for part in pair
    ]
    assert scatter.main(
        ["--dims", "2,5", *sizes, "--seed", "3", *outputs]
    ) == 0 and set(asked) == {(40, 2)}
    printed, document = capsys.readouterr().out, json.loads(paths[0].read_text())
    assert all(path.read_text() == "seed 3" for path in paths[1:])
    assert [row["noise"] for row in document["figure1"]] == list(scatter.LEVELS)
    assert [row["dim"] for row in document["figure2"]] == [2, 5]
    for row in document["figure1"]:
        assert all(
            f"{row[method][0]:.3f} ± 0.000" in printed for method in scatter.METHODS
        )
    # Two coordinates of two are all.
    assert (
        document["figure2"][0]["radial, two"] == document["figure2"][0]["radial, all"]
    )
    assert document["figure2"][1]["radial, two"] > document["figure2"][1]["radial, all"]


def test_separations_of_figure_1_are_those_of_its_draws(monkeypatch, x64):
    monkeypatch.setattr(figure1, "SETS", figure1.SETS[:1])
    X, labels = figure1.data(figure1.SETS[0], num_points=40, dtype="float64")
    found = figure1.figure1(
        num_points=40, n=15, features=(2,), draws=2, dtype="float64"
    )
    assert list(found) == [(figure1.SETS[0], 2, method) for method in figure1.METHODS]
    key = jax.random.fold_in(jax.random.fold_in(KEY, 1), 1)
    for (_, d, method), shares in found.items():
        Z = figure1.embed(jax.random.clone(key), X, method=method, n=15, d=d)
        assert (
            shares.shape == (2,)
            and shares[1] == figure1.separation(Z, labels)
            and np.all(shares >= 0.5)
        )
    rows = figure1.result(found, {}).numbers["rows"]
    assert [row["shares"] for row in rows] == [
        shares.tolist() for shares in found.values()
    ]


def test_figure_1_is_drawn_by_its_draws_and_the_same_every_time(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    rng, calls = np.random.default_rng(0), []
    clouds = rng.standard_normal((2, 60, 2)), np.arange(60) % 2
    monkeypatch.setattr(
        figure1,
        "data",
        lambda name, **_: (clouds[0][figure1.SETS.index(name)], clouds[1]),
    )

    def embed(key, X, *, method, n, d):
        calls.append((method, n, d))
        return X + float(jax.random.uniform(key))

    monkeypatch.setattr(figure1, "embed", embed)
    for name in ("a.svg", "b.svg"):
        figure1.FIGURE.draw(
            tmp_path / name, functools.partial(figure1.plot, num_points=60, n=20)
        )
    text = (tmp_path / "a.svg").read_text()
    assert text == (tmp_path / "b.svg").read_text() and "<dc:date>" not in text
    assert (
        calls[:4] == [("K-JL", 20, 2)] * 3 + [("KPCA", 20, 2)]
        and len(calls) == 2 * 2 * 4
    )
    for name, cloud in zip(figure1.SETS, clouds[0], strict=True):
        assert (
            name in text
            and f"K-JL, draw 3: {figure1.separation(cloud, clouds[1]):.3f}" in text
        )


def write_iot(folder, rng):
    labels = np.repeat(rand_indices.IOT_DEVICES, 4)
    np.savez(
        folder / rand_indices.FILES["iot"],
        X=rng.standard_normal((20, 3)) * 9 + 5,
        y=labels,
    )


def test_the_command_of_figure_2_asks_for_both_sides(
    pictures, monkeypatch, tmp_path, capsys, rng, own_precision
):
    asked = []

    def indices(X, labels, sizes, *, repetitions, seed, progress):
        asked.append((X, labels, sizes))
        progress("n = 200, d = 2: done")
        scores = {method: np.array([0.7, 0.72]) for method in figure2.KERNEL_METHODS}
        return dict.fromkeys(sizes, scores)

    write_iot(tmp_path, rng)
    output = tmp_path / "figure.json"
    monkeypatch.setattr(figure2, "figure2", indices)
    monkeypatch.setattr(
        figure2, "plot", lambda pyplot, indices, *, n, d: Picture(f"{n}, {d}")
    )
    arguments = [
        "--data-dir",
        str(tmp_path),
        "--features",
        "2,5",
        "--landmarks",
        "30",
        "--per-device",
        "3",
    ]
    assert (
        figure2.main(
            [*arguments, "--output", str(output), "--plot", str(tmp_path / "f.svg")]
        )
        == 0
    )
    (X, labels, sizes), printed = asked[0], capsys.readouterr()
    assert (
        sizes == [(200, 2), (200, 5), (30, 10)]
        and (tmp_path / "f.svg").read_text() == "200, 10"
    )
    assert X.shape == (15, 3) and X.dtype == np.float32
    assert sorted(set(labels.tolist())) == sorted(rand_indices.IOT_DEVICES)
    np.testing.assert_allclose(X.std(0), 1, rtol=1e-5)
    assert "0.710 ± 0.014" in printed.out and "n = 200, d = 2: done" in printed.err
    document = json.loads(output.read_text())
    assert document["points"] == 15 and len(document["rows"]) == 3 * len(
        figure2.KERNEL_METHODS
    )
    assert document["rows"][0]["values"] == [0.7, 0.72] and document["rows"][0][
        "mean"
    ] == pytest.approx(0.71)
    most = ValueError("num_landmarks must be at most 15")
    monkeypatch.setattr(figure2, "figure2", mock.Mock(side_effect=most))
    assert figure2.main(arguments) == 2
    assert "num_landmarks must be at most 15" in capsys.readouterr().err
    assert figures.deviation(np.array([0.7])) == 0


def test_the_command_of_table_2_prints_and_writes(
    monkeypatch, tmp_path, capsys, rng, own_precision
):
    write_iot(tmp_path, rng)
    np.savez(
        tmp_path / rand_indices.FILES["banknote"],
        X=rng.standard_normal((8, 2)),
        y=np.arange(8) % 2,
    )
    asked = []

    def indices(X, y, *, repetitions, seed, num_landmarks):
        asked.append((X.shape, X.dtype, repetitions, num_landmarks))
        return {method: np.linspace(0.4, 0.6, repetitions) for method in table2.METHODS}

    monkeypatch.setattr(table2, "table2", indices)
    arguments = [
        "--data-dir",
        str(tmp_path),
        "--datasets",
        "banknote,iot",
        "--repetitions",
        "3",
        "--dtype",
        "float64",
    ]
    assert table2.main([*arguments, "--output", str(tmp_path / "table.json")]) == 0
    printed, document = (
        capsys.readouterr(),
        json.loads((tmp_path / "table.json").read_text()),
    )
    assert asked == [
        ((8, 2), np.float64, 3, table2.LANDMARKS.get("banknote")),
        ((20, 3), np.float64, 3, table2.LANDMARKS.get("iot")),
    ]
    assert (
        "Bank Notes, 3 repetitions in" in printed.err
        and "0.5000 ± 0.1000" in printed.out
    )
    assert (
        document["rand_indices"]["iot"]["KPCA"] == [0.4, 0.5, 0.6]
        and len(document["rows"]) == 2 * 4
    )
    for row in document["rows"]:
        assert row["mean"] == pytest.approx(0.5) and row["difference"] == pytest.approx(
            0.5 - row["printed_mean"]
        )


def test_a_figure_has_a_row_for_every_map_with_its_own_errors(monkeypatch, x64):
    """Maps of two features and of four, so that the stack is padded; NumPy computes the errors."""
    X = np.random.default_rng(1).standard_normal((12, 3))
    kernel, fitted = Gaussian(1.0), []
    maps = {
        name: (
            rows,
            features.shifted_fourier(
                jax.random.key(rows), kernel, 3, num_frequencies=count, dtype="float64"
            ),
        )
        for name, rows, count in (
            ("RNCA", 0, 4),
            ("Nystrom", 1, 2),
            ("SKPCA, l=2", 2, 4),
        )
    }

    def fit(name, own, kernel, X, size):
        fitted.append((name, size, tuple(jax.random.key_data(own).tolist())))
        return maps[name][1]

    def errors(G, Ys):
        off = [np.asarray(G - Y @ Y.T) for Y in Ys]
        return (
            [np.linalg.norm(E, 2) for E in off],
            [0.0] * len(off),
            [np.linalg.norm(E) for E in off],
        )

    methods = {
        name: (rows, functools.partial(fit, name)) for name, (rows, _) in maps.items()
    }
    monkeypatch.setattr(streams, "_methods", lambda size, rows: methods)
    monkeypatch.setattr(streams, "errors", errors)
    lines = []
    found = streams.figure(
        X, X[:2], kernel, sizes=(4, 6), rows=(2,), progress=lines.append
    )
    assert [(row.method, row.size) for row in found] == [
        (name, size) for size in (4, 6) for name in maps
    ]
    assert [line.split(":")[0] for line in lines] == ["m = 4", "m = 6"]
    G = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 2)
    for row in found:
        rows, phi = maps[row.method]
        E = G - np.asarray(phi(X) @ phi(X).T)
        assert row.spectral == pytest.approx(
            np.linalg.norm(E, 2)
        ) and row.frobenius == pytest.approx(np.linalg.norm(E))
        assert row.sketch_size == rows and row.space == row.size * 3 + row.size * (
            rows or row.size
        )
        assert row.train >= 0 and row.test >= 0
    # Features of one size are those of one key, Nystrom has another, and nothing is shared by two sizes.
    keys = {(name, size): key for name, size, key in fitted}
    assert keys["RNCA", 4] == keys["SKPCA, l=2", 4] != keys["Nystrom", 4]
    assert len(set(keys.values())) == 4


def test_methods_of_a_figure_are_those_whose_rows_fit():
    names = list(streams._methods(8, (2, 8, 10)))
    sketches = [
        f"SKPCA{kind}, l={rows}" for kind in ("", ", buffered") for rows in (2, 8)
    ]
    assert names == ["RNCA", "Nystrom", "RNCA, 50 directions", *sketches]


def test_maps_of_a_figure_have_the_directions_that_it_says(x64):
    """Traced: the number of features of each, and which one holds the sketch."""
    X = jnp.asarray(np.random.default_rng(1).standard_normal((12, 3)))
    found = {
        name: jax.eval_shape(
            lambda key, fit=fit: fit(key, Gaussian(1.0), X, 8)(X), KEY
        ).shape[1]
        for name, (_, fit) in streams._methods(8, (2,)).items()
    }
    assert found == {
        "RNCA": 8,
        "Nystrom": 8,
        "RNCA, 50 directions": 8,
        "SKPCA, l=2": 2,
        "SKPCA, buffered, l=2": 2,
    }


def test_the_command_of_the_figures_prints_and_writes(
    pictures, monkeypatch, tmp_path, capsys, rng, own_precision
):
    np.savez(tmp_path / "cpu.npz", X=rng.normal(size=(840, 3)))
    asked = []

    def figure(X, test, kernel, *, sizes, rows, seed, progress):
        asked.append((X, test, kernel))
        progress("m = 8: done")
        return [streams.Row("RNCA", 8, 0, 0.25, 1e-6, 0.125, 1.5, 0.5, 88)]

    monkeypatch.setattr(streams, "figure", figure)
    monkeypatch.setattr(streams, "plot", lambda pyplot, rows, *, title: Picture(title))
    output = tmp_path / "streams.json"
    arguments = [
        "--data-dir",
        str(tmp_path),
        "--datasets",
        "cpu",
        "--points",
        "40",
        "--sizes",
        "8",
        "--rows",
        "2",
    ]
    assert (
        streams.main(
            [
                *arguments,
                "--quantile",
                "0.25",
                "--output",
                str(output),
                "--plot",
                str(tmp_path),
            ]
        )
        == 0
    )
    (X, test, kernel), printed, document = (
        asked[0],
        capsys.readouterr(),
        json.loads(output.read_text()),
    )
    assert X.shape == (40, 3) and test.shape == (800, 3) and X.dtype == np.float32
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)[np.triu_indices(40, 1)]
    # A quantile of 780 pairs that are drawn with replacement: six standard errors of its rank.
    ranks = 0.25 + np.array([-6, 6]) * (0.25 * 0.75 / 780) ** 0.5
    low, high = np.quantile(distances, ranks)
    assert (
        low <= kernel.lengthscale <= high
        and document["data"]["cpu"]["lengthscale"] == kernel.lengthscale
    )
    assert document["quantile"] == 0.25 and document["rows"][0]["spectral"] == 0.25
    assert (tmp_path / "ghashami2016_figure2.svg").read_text() == "CPU, n = 40, d = 3"
    assert "2.50e-01" in printed.out and "m = 8: done" in printed.err
    assert (
        streams.main(["--quantile", "x"]) == 2
        and "between 0 and 1, got 'x'" in capsys.readouterr().err
    )
