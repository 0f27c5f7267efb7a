"""The examples run as they are, and say what they should; those that take sizes, at small ones."""

import runpy
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run an example with options, its files in a folder of the test, and return what it defined."""

    def run(name, *options):
        monkeypatch.setattr(
            sys, "argv", [name, "--output", str(tmp_path), *map(str, options)]
        )
        return runpy.run_path(str(EXAMPLES / name), run_name="__main__")

    return run


def check_figure(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<?xml") and len(text) < 100_000
    assert "<dc:date>" not in text


@pytest.mark.slow
def test_pictures_of_the_concepts(run, tmp_path):
    run("draw_concepts.py")
    for name in ("sampling", "powers", "kernel_jl"):
        check_figure(tmp_path / f"concepts_{name}.svg")


@pytest.mark.slow
def test_clusters_of_a_real_table(run, tmp_path):
    space = run("cluster_table.py", "--rows", 200, "--draws", 1)
    # Partitions drawn at random have 0 on average; those of these 200 rows have .5 to .8.
    assert all(
        values.shape == (1,) and values.min() > 0.3
        for values in space["scores"].values()
    )
    check_figure(tmp_path / "example_cluster_table.svg")


def test_a_stream_keeps_its_certificate(run, tmp_path):
    space = run("stream.py", "--rows", 20_000, "--block", 500)
    assert space["rows"] == 20_000 and space["counts"][-1] == 20_000
    # The promise itself, with what its rounding allowance is for; and that it says something.
    assert np.all(space["errors"] <= space["promised"])
    assert space["promised"][-1] < 20_000 / (space["SKETCH"] + 1)
    assert space["errors"][-1] > space["promised"][-1] / 10
    assert space["wrong"] < 0.05
    check_figure(tmp_path / "example_stream.svg")


@pytest.mark.slow
def test_many_data_sets_at_once(run, tmp_path):
    space = run("many_datasets.py", "--levels", 3, "--repeats", 6)
    assert space["errors"].shape == (3, 6) and bool(space["converged"].all())
    assert space["mean"][0] < 0.1 < space["mean"][-1]
    assert abs(float(space["alone"]) - space["errors"][-1, -1]) < 1e-6
    check_figure(tmp_path / "example_many_datasets.svg")


def test_a_lengthscale_is_learned(run, tmp_path):
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
        space = run("learn_lengthscale.py", "--steps", 30)
    assert space["fit"].objective > space["fit"].objectives[0] + 0.1
    assert space["progress"][-1] > space["fit"].objective + 0.1
    assert space["elsewhere"][-1] > space["elsewhere"][0] + 0.1
    assert space["scales"][:13].mean() > space["scales"][13:].mean()
    check_figure(tmp_path / "example_lengthscale.svg")


def test_a_bound_of_ones_own(run, tmp_path, capsys):
    space = run("own_bound.py", "--draws", 1000)
    assert [verdict for _, verdict in sorted(space["results"].items())] == [
        "refuted",
        "certified",
    ] * 2
    assert "violation probability at least" in capsys.readouterr().out
    check_figure(tmp_path / "example_own_bound.svg")


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore"
)  # Ray's own, and JAX's of its forks, which run other programs
def test_workers_of_ray_sketch_all_rows(run):
    pytest.importorskip("ray")
    space = run("ray_shards.py", "--rows", 10_000)
    fit, Z = space["fit"], np.float64(space["phi"](space["X"]))
    values = np.linalg.eigvalsh(Z.T @ Z)[::-1][:3]
    assert (
        int(fit.weight) == 10_000
        and (values - fit.eigenvalues <= float(fit.shrinkage) + 1e-4 * values[0]).all()
    )
    rows = space["pyarrow"].parquet.read_table(space["folder"] / "features").num_rows
    assert rows == 10_000
