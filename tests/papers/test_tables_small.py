"""Figures and tables without their programs: the command, and what is traced, arranged, printed, written and drawn.

The slow tests of their own modules run them. Here the costly part of each is traced, or a stand-in gives the numbers.
"""

import errno
import functools
import inspect
import itertools
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

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
NAMES = [(paper, name) for paper, names in figures.FIGURES.items() for name in names]


def shapes(tree):
    return [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)]


# The command


def draw_line(axes, data):
    axes[0].plot(data["line"], label="a line")
    figures.legend_below(axes)


@pytest.fixture
def figure(monkeypatch, own_precision):
    """Let a small figure stand in for all of them, and return it."""
    module = SimpleNamespace(
        __doc__="Title\nmore",
        data=lambda *, full, seed: {
            "line": [1.0, seed],
            "rows": [{"name": "a", "n": 1.25}, {"name": "longer", "n": 200}],
            "none": [],
        },
        TABLES={"rows": {"name": "{name}", "n": "{n:.1f}"}, "none": {"x": "{x}"}},
        draw=draw_line,
        PANELS=(1, 2),
        SIZE=(4, 2),
    )
    monkeypatch.setattr(figures, "_module", lambda paper, name: module)
    return module


def run(*arguments):
    return figures.main(["kpotufe2020", "figure1", *arguments])


def test_a_figure_is_printed_written_and_drawn(figure, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.chdir(tmp_path)
    assert run("--seed", "3", "--output", "a.json", "--picture", "a.svg") == 0
    assert run("--seed", "3", "--picture", "b.svg") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:5] == ["Title", "name    n", "a       1.2", "longer  200.0"]
    document = json.loads(Path("a.json").read_text())
    assert document.pop("run")["seconds"] >= 0
    assert document == {
        "schema": figures.SCHEMA,
        "paper": "kpotufe2020",
        "figure": "figure1",
        "full": False,
        "seed": 3,
        "dtype": "float32",
        **figure.data(full=False, seed=3),
    }
    picture = Path("a.svg").read_text()
    assert picture == Path("b.svg").read_text()
    assert "a line" in picture and "dc:date" not in picture


def test_files_that_exist_or_are_read_stay(figure, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("iot.npz", "old.json", "old.svg"):
        Path(name).write_text(name)
    for option, path, message in (
        ("--output", "old.json", "exists; choose a new file, or pass --overwrite"),
        ("--picture", "old.svg", "exists"),
        ("--picture", "new", "has no ending that names its format"),
        ("--output", "absent/new.json", "there is no folder absent"),
    ):
        assert run(option, path) == 2
        assert f"{option} {path}" in (error := capsys.readouterr().err)
        assert message in error and error.count("\n") == 1
    assert run("--data-dir", ".", "--output", "iot.npz", "--overwrite") == 2
    assert "--output iot.npz is read by this command" in capsys.readouterr().err
    for name in ("iot.npz", "old.json", "old.svg"):
        assert Path(name).read_text() == name
    assert run("--output", "old.json", "--overwrite") == 0
    assert json.loads(Path("old.json").read_text())["line"] == [1.0, 0]


def test_what_cannot_be_written_or_drawn_is_one_line(
    figure, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    Path("old.svg").write_text("old")
    assert run("--picture", "new.abc") == 2
    assert "--picture new.abc: Format 'abc' is not" in capsys.readouterr().err
    full = OSError(errno.ENOSPC, "No space left on device")
    with monkeypatch.context() as patch:
        patch.setattr(figures.files, "_rename", mock.Mock(side_effect=full))
        for option, path in (("--picture", "old.svg"), ("--output", "new.json")):
            assert run(option, path, "--overwrite") == 3
            assert "No space left" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run("--output", "new.json", "--picture", "new.svg") == 2
    assert "--picture needs matplotlib: pip install" in capsys.readouterr().err
    # The numbers are complete without their picture.
    assert json.loads(Path("new.json").read_text())["rows"]
    assert {path.name for path in tmp_path.iterdir()} == {"old.svg", "new.json"}
    assert Path("old.svg").read_text() == "old"


def test_a_run_that_is_interrupted_leaves_the_files_of_others(figure, tmp_path):
    path = tmp_path / "old.json"
    path.write_text("old")

    def interrupted():
        raise KeyboardInterrupt

    figure.data = interrupted
    with pytest.raises(KeyboardInterrupt):
        run("--output", str(path), "--overwrite")
    assert [file.name for file in tmp_path.iterdir()] == ["old.json"]
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "required: paper, figure"),
        ("kpotufe2021 figure1", "did you mean kpotufe2020?"),
        ("kpotufe2020 figure3", "there are table1, table2, figure1, figure2"),
        ("kpotufe2020 figure1 --nonsense", "unrecognized"),
        ("kpotufe2020 figure1 --seed -1", "must be a whole number from 0"),
        ("kpotufe2020 figure1 --sizes 5", "figure1 has no option --sizes"),
        ("kpotufe2020 table1 --picture a.svg", "table1 has no option --picture"),
        ("chen2016 figure1 --from-features", "has no option --from-features"),
        ("ghashami2016 figure2 --sizes two", "must be a whole number"),
        ("ghashami2016 figure1 --points 1", "points must be at least 2"),
        ("ghashami2016 figure1 --points 20 --sizes 0", "sizes must be at least 1"),
        ("ghashami2016 figure1 --points 20 --sizes 50", "sizes must be at most 20"),
        ("kpotufe2020 table1 --data-dir absent", "absent/avila.npz: no such file"),
        ("kpotufe2020 table2 --data-dir absent", "absent/banknote.npz: no such file"),
        ("kpotufe2020 figure2 --data-dir absent", "absent/nbaiot.npz: no such file"),
        ("chen2016 figure1 --data-dir absent", "absent/usps.npz: no such file"),
        ("ghashami2016 figure3 --data-dir absent", "absent/a9a.npz: no such file"),
    ],
)
def test_bad_usage_is_one_line_and_status_two(
    arguments, message, capsys, own_precision
):
    assert figures.main(arguments.split()) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.eye(3)}, "holds no array named y"),
        ({"X": np.eye(3), "y": np.arange(2)}, "y must be 3 integers"),
        ({"X": np.eye(3), "y": np.ones(3)}, "y must be 3 integers"),
        ({"X": np.eye(3), "y": np.array([None] * 3)}, "no plain array of numbers as y"),
        ({"X": np.full((3, 2), np.nan), "y": np.arange(3)}, "NaN or infinite"),
        ({"X": np.zeros(3), "y": np.arange(3)}, "not (rows, columns)"),
    ],
)
def test_bad_files_are_refused_in_one_line(
    arrays, message, tmp_path, capsys, own_precision
):
    np.savez(tmp_path / "banknote.npz", **arrays)
    assert figures.main(["kpotufe2020", "table2", "--data-dir", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_every_figure_is_complete_and_takes_options_that_there_are():
    for paper, name in NAMES:
        module = figures._module(paper, name)
        assert f"of {paper}:" in module.__doc__.splitlines()[0]
        options = ("--points", "5", "--sizes", "5", "--from-features")
        known = vars(figures._parser().parse_args([paper, name, *options]))
        assert inspect.signature(module.data).parameters.keys() <= known.keys()
        assert hasattr(module, "draw") == name.startswith("figure")
        if hasattr(module, "draw"):
            assert len(module.PANELS) == len(module.SIZE) == 2


def test_a_summary_has_the_spread_of_its_numbers():
    row = figures.summary([1.0, 2.0, 4.0])
    assert row["mean"] == pytest.approx(7 / 3)
    assert row["sd"] == pytest.approx(np.std([1, 2, 4], ddof=1))
    assert row["standard_error"] == pytest.approx(row["sd"] / 3**0.5)
    assert row["values"] == [1.0, 2.0, 4.0]
    assert figures.summary([0.3])["standard_error"] == 0


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
