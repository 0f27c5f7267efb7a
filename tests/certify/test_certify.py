"""Certificates from end to end: small tables, generous time, so that nothing depends on how fast the machine is."""

import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import time
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from jaxkern import io
from proofs_check.certify import Request, _compare, _precision, _search, certify
from proofs_check.certify._clock import Clock
from proofs_check.certify._maps import NAMES, families
from proofs_check.cli.certify import DRAWS, FILES
from proofs_check.cli.command import main
from proofs_check.engine import checkpoint
from proofs_check.report import certificate_terminal
from proofs_check.report.certificate import render
from proofs_check.report.certificate_document import find_fault, read
from proofs_check.report.text import number

pytestmark = pytest.mark.usefixtures("own_precision", "x64")
GENEROUS = 60.0
CLUSTERS = 3
ASKED = [
    "--goal",
    "spectral",
    "--eps",
    "0.3",
    "--delta",
    "0.2",
    "--confidence",
    "0.95",
    "--maps",
    "nystrom",
]


def blobs(rows=90, dim=2, seed=0):
    """Return three groups of points and their classes."""
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % CLUSTERS
    return (
        4 * rng.standard_normal((CLUSTERS, dim))[labels]
        + rng.standard_normal((rows, dim))
    ), labels


def found(goal="spectral", **options):
    X, labels = blobs()
    asked = {
        "eps": 0.3,
        "delta": 0.2,
        "confidence": 0.95,
        "maps": ["nystrom", "paired_fourier"],
        "time": GENEROUS,
    }
    return certify(
        jax.random.key(3),
        X.astype("float32"),
        goal=goal,
        labels=labels,
        **asked | options,
    )


@pytest.fixture(scope="module")
def spectral():
    with jax.enable_x64(True):
        return found(standardize=True)


def test_rows_are_certified_for_a_kernel_that_no_plan_takes():
    rough = found("distance", kernel="exponential", maps=["paired_fourier"], eps=0.8)
    assert (
        rough.map == "paired_fourier" and rough.document["maps"][0]["basis"] == "draws"
    )
    assert "Theorem N" in rough.document["theory"][0]["words"]
    pairs = rough.document["pairs"]
    assert pairs["pairs"] + pairs["zero_pairs"] == math.comb(90, 2)
    assert find_fault(rough.document) == ""


def test_the_document_is_a_certificate_and_no_size_exceeds_what_a_statement_demands(
    spectral,
):
    assert find_fault(spectral.document) == ""
    assert (
        spectral.seed == 3
        and spectral.scope == "all rows"
        and spectral.map in ("nystrom", "paired_fourier")
    )
    family = families(90, 2, spectral.eps)
    for entry in spectral.document["maps"]:
        unit = family[entry["map"]].unit
        asked = [
            t["sizes"][unit]
            for t in spectral.document["theory"]
            if t["map"] == entry["map"] and t["sizes"]
        ]
        tried = [point["size"] for point in entry["curve"]]
        assert tried and max(tried) <= min(asked)
        assert entry["sizes"][unit] <= min(asked)


def test_fresh_draws_fail_as_rarely_as_certified(spectral):
    """If draws failed with probability delta = 0.2, more than 34 of 100 would with probability below 3e-4."""
    failures, draws = spectral.fails(jax.random.key(17), draws=100)
    assert draws == 100 and failures <= 34


def test_the_map_is_drawn_again_by_the_lines_of_python_and_saved_for_points_as_they_come(
    spectral, tmp_path
):
    X = jnp.asarray(blobs()[0], "float32")
    space = {"X": np.asarray(X)}
    exec(spectral.document["commands"]["python"], space)
    spectral.save(tmp_path / "map.npz")
    phi = io.load(tmp_path / "map.npz")
    for drawn in (phi, space["phi"]):
        np.testing.assert_array_equal(drawn(X), spectral.draw()(X))
    scaled = (np.float64(X) - np.float64(X).mean(0)) / np.float64(X).std(0)
    squares = ((scaled[:, None] - scaled[None]) ** 2).sum(-1)
    K = np.exp(-squares / (2 * spectral.lengthscale**2))
    Z = np.float64(phi(X))
    # One draw: it fails with probability 0.2 at most; this one does not.
    assert np.linalg.norm(K - Z @ Z.T, 2) / len(X) <= spectral.eps

    other = spectral.draw(jax.random.key(8))(X)
    assert other.shape == Z.shape and np.abs(np.asarray(other) - Z).max() > 1e-3


def test_what_the_map_is_compared_with(spectral):
    exact, none = spectral.document["comparison"]
    assert (exact["num_features"], exact["error"], none["num_features"]) == (90, 0.0, 2)
    (row,) = [row for row in spectral.document["maps"] if row["recommended"]]
    assert 0 < row["seconds_per_million"] < exact["seconds_per_million"]
    held = spectral.document["held_out"]
    accuracies = {row["name"]: row["accuracy"] for row in held["rows"]}
    # Two of the three blobs overlap; a third would be right by chance.
    assert (held["train"], held["test"]) == (67, 23) and all(
        0.5 < one <= 1 for one in accuracies.values()
    )
    assert set(accuracies) == {"no kernel", "exact kernel", "the recommended map"}
    X = (X := blobs()[0].astype("float32").astype(float)) - X.mean(0)
    values = np.linalg.eigvalsh(
        np.exp(
            -(((X[:, None] - X) / X.std(0)) ** 2).sum(-1) / 2 / spectral.lengthscale**2
        )
    )
    assert spectral.document["spectrum"]["above_eps"] == np.sum(values > 0.3 * 90)


def test_the_classifier_is_ridge_regression_on_one_hot_classes(rng):
    Z, labels = rng.standard_normal((40, 5)), rng.integers(3, size=40)
    level = (Z[:30] ** 2).sum() / 30
    one = np.hstack([Z / math.sqrt(level), np.ones((40, 1))])
    hot = np.eye(3)[labels[:30]]

    def fitted(rows, penalty):
        normal = one[:30][rows].T @ one[:30][rows] + penalty * 30 * np.eye(6)
        return np.linalg.solve(normal, one[:30][rows].T @ (hot[rows] - hot.mean(0)))

    errors = []
    for penalty in 10.0 ** np.arange(-7, 2):
        left_out = [one[i] @ fitted(np.arange(30) != i, penalty) for i in range(30)]
        errors.append((np.mean((left_out - hot + hot.mean(0)) ** 2), penalty))
    classes = np.argmax(hot.mean(0) + one[30:] @ fitted(slice(30), min(errors)[1]), 1)
    assert _compare._accuracy(Z @ Z.T, labels, 30) == np.mean(classes == labels[30:])


def test_the_penalty_is_fair_to_the_plain_columns():
    """As good as that of scikit-learn, which leaves out one row at a time, on average over splits of a real table."""
    X, y = load_wine(return_X_y=True)
    found = []
    for seed in range(30):
        rows = np.random.default_rng(seed).permutation(len(y))
        Z = (X[rows] - X[rows[:133]].mean(0)) / X[rows[:133]].std(0)
        theirs = (
            RidgeClassifierCV(np.logspace(-4, 4, 9))
            .fit(Z[:133], y[rows[:133]])
            .score(Z[133:], y[rows[133:]])
        )
        found.append((_compare._accuracy(Z @ Z.T, y[rows], 133), theirs))
    ours, theirs = np.mean(found, axis=0)
    assert ours > theirs - 0.01


def test_fewer_features_than_asked_for_or_a_sentence():
    few, none = (
        found(features_at_most=5, standardize=True, maps=["nystrom"]),
        found(features_at_most=1),
    )
    assert (
        few.num_features <= 5
        and max(p["num_features"] for m in few.document["maps"] for p in m["curve"])
        <= 5
    )
    assert (
        none.map is None
        and none.document["reasons"][0] == "No map with more than 1 features was tried."
    )
    assert (
        none.document["candidate"]["num_features"] == 1
        and find_fault(none.document) == ""
    )


@pytest.mark.parametrize("goal", ["clustering", "separation"])
def test_goals_of_classes(goal, monkeypatch):
    monkeypatch.setattr(_search, "STEPS_PER_DOUBLING", 1)  # few sizes, few programs
    asked = (
        {"maps": ["kernel_jl"], "num_clusters": CLUSTERS}
        if goal == "clustering"
        else {"maps": ["nystrom"]}
    )
    made = found(goal, **asked)
    assert made.map in asked["maps"] and made.basis == "draws"
    assert find_fault(made.document) == ""


def test_the_kmeans_that_is_printed_finds_the_clusters(monkeypatch, capsys):
    """Of single seedings of k-means one in twenty finds the best partition: the restarts are part of the claim."""
    monkeypatch.setattr(_search, "STEPS_PER_DOUBLING", 1)  # few sizes, few programs
    num_clusters, eps = 8, 0.1
    rng = np.random.default_rng(0)
    classes = np.arange(80) % num_clusters
    X = rng.normal(size=(80, 2)) + 4 * rng.normal(size=(num_clusters, 2))[classes]
    asked = {"goal": "clustering", "labels": classes, "maps": ["nystrom"], "eps": eps}
    asked |= {"delta": 0.2, "confidence": 0.95, "time": GENEROUS}
    once = certify(jax.random.key(3), X, num_restarts=1, **asked)
    assert once.map is None and once.clustering["num_restarts"] == 1
    made = certify(jax.random.key(3), X, **asked)
    restarts = f"{made.clustering['num_restarts']} restarts"
    assert made.map == "nystrom" and restarts in made.guarantee
    assert "seeds of k-means" in made.guarantee

    K = rbf_kernel(X, gamma=1 / (2 * made.lengthscale**2))
    values, vectors = np.linalg.eigh(K)
    Z = vectors * np.sqrt(np.maximum(values, 0))
    kmeans = KMeans(num_clusters, n_init=300, random_state=0)
    exact = kmeans.fit_predict(Z)
    lines, failures = made.document["commands"]["python"], 0
    for seed in range(100, 130):
        space = {"X": X}
        exec(lines.replace("key(3)", f"key({seed})"), space)
        counts = np.zeros((num_clusters, num_clusters))
        np.add.at(counts, (exact, np.asarray(space["labels"])), 1)
        matched = counts[optimize.linear_sum_assignment(-counts)].sum()
        failures += 1 - matched / len(X) > eps
    # More than 17 of 30 at a rate of 0.2 have a probability below 1e-5.
    assert failures <= 17

    agreement = {a["name"]: a["adjusted_rand"] for a in made.clustering["agreement"]}
    plain = kmeans.fit_predict(X)
    for name, labels in (("exact kernel", exact), ("no kernel", plain)):
        rand = adjusted_rand_score(classes, labels)
        assert agreement[name] == pytest.approx(rand, abs=0.05)
    certificate_terminal.show(made.document)
    told = " ".join(capsys.readouterr().out.split())
    page = render(made.document)
    for text in (told, page):
        assert restarts in text and "djusted Rand index" in text
        assert number(agreement["exact kernel"]) in text


def test_the_same_key_gives_the_same_sizes(spectral):
    again = found(standardize=True)
    assert again.document["search"]["finished"]
    assert {**again.document, "run": None} == {**spectral.document, "run": None}


def test_close_pairs_are_looked_for_among_all_rows_of_a_table_that_is_small_enough(
    monkeypatch,
):
    def trials(key, table, kernel, goal, dtype):
        looked = {
            "all_rows": lambda: found(2),
            "sample": lambda key, count: found(3),
            "blocks": lambda clock: [],
        }
        return types.SimpleNamespace(
            **looked, table=table, kernel=kernel, goal=goal, dtype=dtype
        )

    def found(unresolved):
        return types.SimpleNamespace(unresolved=unresolved, rounding=0.01)

    monkeypatch.setattr(_precision, "Trials", trials)
    monkeypatch.setattr(
        _precision, "feature_rounding", lambda kernel, blocks: (1e-6, 1e-5)
    )
    goal = types.SimpleNamespace(name="distance")
    all_rows, some = (
        "2 pair(s) are so close",
        f"3 pair(s) among {_precision.LOOKED_AT:,} rows are so close",
    )
    for more, said in ((0, all_rows), (1, some)):
        table = types.SimpleNamespace(rows=_precision.LARGEST_SAMPLE + more, dim=1)
        request = Request(dtype="float32")
        _, rounding, words = _precision.trials_for(
            jax.random.key(0), table, None, goal, request, Clock(1e9)
        )
        assert words.startswith(said)
        # All pairs tell what rounding may do to them; otherwise the close ones are left out.
        assert (rounding.pairs, rounding.closest) == pytest.approx(
            (0.002, 0.01) if more else (0.04, 0.0)
        )


def test_every_map_of_the_library_is_known():
    from jaxkern import features

    public = {name for name in features.__all__ if name.islower()} - {
        "as_map",
        "preimage",
        "standardized",
    }
    assert set(NAMES) == set(families(100, 3, 0.1)) == public


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n == "fastfood")) for n in NAMES],
)
def test_every_family_draws_what_it_says(name, rng):
    family = families(40, 3, 0.2)[name]
    from jaxkern.kernels import Gaussian

    points = (
        jnp.asarray(rng.standard_normal((family.num_points(6), 3)), "float32")
        if family.num_points(6)
        else None
    )
    phi = family.draw(
        jax.random.key(0), Gaussian(1.0), points, 3, "float32", family.sizes(6)
    )
    X = jnp.asarray(rng.standard_normal((5, 3)), "float32")
    assert phi(X).shape == (5, family.num_features(6))
    assert family.sizes(6)[family.unit] == 6
    if (
        family.first is not None
    ):  # the same features and zeros, by programs that serve other sizes
        Z = np.asarray(
            family.first(
                jax.random.key(0), Gaussian(1.0), points, 3, "float32", family.sizes(6)
            )(X)
        )
        np.testing.assert_allclose(
            abs(Z[:, np.any(Z, axis=0)]), abs(phi(X)), atol=1e-5
        )  # components have any sign


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eps": 0}, "eps must be a number in"),
        ({"delta": 1.0}, "delta must be a number in"),
        ({"confidence": True}, "confidence must be a number in"),
        ({"goal": "speed"}, "goal must be among"),
        ({"kernel": "sinc"}, "kernel must be among"),
        ({"maps": ["fourier"]}, "maps must be among"),
        ({"maps": []}, "maps must name at least one"),
        ({"lengthscale": -1.0}, "lengthscale must be positive"),
        ({"separation": "lines"}, "separation must be among"),
        ({"time": 0}, "time must be positive"),
        ({"features_at_most": 0}, "features_at_most must be"),
        ({"dtype": "float16"}, "dtype must be"),
        ({"goal": "clustering"}, "pass num_clusters"),
        ({"goal": "separation"}, "pass labels"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        certify(jax.random.key(0), np.eye(5, dtype="float32"), **options)


def test_half_of_the_pairs_coincide():
    X = np.zeros((40, 2), "float32")
    X[:5] = np.random.default_rng(0).standard_normal((5, 2))
    with pytest.raises(ValueError, match="pass a lengthscale"):
        certify(jax.random.key(0), X)


@pytest.fixture
def csv(tmp_path):
    X, labels = blobs()
    path = tmp_path / "points.csv"
    rows = [
        f"{a:.6f},{b:.6f},town {c},{'abc'[c]}"
        for (a, b), c in zip(X, labels, strict=True)
    ]
    path.write_text("\n".join(["height,<b>width</b>,town,class", *rows]) + "\n")
    return path


def run(*arguments):
    return main(["certify", *map(str, arguments), "--time", "30"])


def test_command_line(csv, tmp_path, capsys):
    out, saved = tmp_path / "out", tmp_path / "map.npz"
    more = ("--labels", "class", "--standardize", "--output", out, "--save", saved)
    assert run(csv, *ASKED, *more) == 0
    document = read(out / "certificate.json")
    assert document["map"] == "nystrom" and document["data"]["columns"] == [
        "height",
        "<b>width</b>",
    ]
    assert list(document["data"]["left_out"]) == ["class", "town"]
    assert "<b>width</b>" not in (out / "certificate.html").read_text()
    shown = capsys.readouterr().out
    assert "nystrom" in shown and "certificate.html" in shown
    space = {}
    exec(document["commands"]["python"], space)
    with jax.enable_x64(False):  # as in a process of its own, by default
        exec(document["commands"]["load"].replace("phi", "loaded"), space)
    assert {
        leaf.dtype
        for leaf in jax.tree.leaves(space["loaded"])
        if leaf.dtype.kind == "f"
    } == {np.dtype("float32")}
    assert (
        f"Written: {saved}" in shown
        and "Load the map: from jaxkern import io; phi = io.load(" in shown
    )
    assert (
        all(f"Note: {note}" in shown for note in document["data"]["notes"])
        and "'town'" in shown
    )
    points = jnp.asarray(
        np.loadtxt(csv, delimiter=",", skiprows=1, usecols=(0, 1)), "float32"
    )
    np.testing.assert_array_equal(space["phi"](points), space["loaded"](points))
    assert document["commands"]["again"].split()[:2] == ["proofs-check", "certify"]


def test_a_command_that_was_killed_goes_on_from_its_draws(csv, tmp_path, monkeypatch):
    """What a kill in the second attempt leaves is copied from a command that nothing stops."""
    kept, keep = [], checkpoint.Checkpoint.keep

    def keeping(self, *block):
        keep(self, *block)
        kept.append(block)
        if len(kept) == 75:  # of some 90
            shutil.copytree("whole", "cut")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checkpoint.Checkpoint, "keep", keeping)
    words = [csv, *ASKED]
    assert run(*words, "--output", "whole") == 0
    draws = len(kept)
    assert run(*words, "--output", "cut") == 0 and len(kept) == 2 * draws - 75
    whole, cut = (
        json.loads(Path(folder, "certificate.json").read_text())
        for folder in ("whole", "cut")
    )
    again = whole["commands"].pop("again")
    assert cut["commands"].pop("again") == again and cut | {"run": 0} == whole | {
        "run": 0
    }
    assert whole["search"]["finished"] and {
        file.name for file in Path("cut").iterdir()
    } == set(FILES)
    # Killed after the last file and before the draws are removed.
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        assert run(*words, "--output", "whole", "--overwrite") == 0
    draws = len(kept)
    assert {*FILES, DRAWS} == {file.name for file in Path("whole").iterdir()}
    assert run(*words, "--seed", 1, "--output", "whole") == 2
    assert run(*words, "--output", "whole") == 0 and len(kept) == draws
    ended = json.loads(Path("whole/certificate.json").read_text())
    del ended["commands"]["again"]
    assert ended | {"run": 0} == whole | {"run": 0}
    assert {*FILES} == {file.name for file in Path("whole").iterdir()}
    assert run(*words, "--output", "whole") == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--eps", "2"), "must be a number between 0 and 1"),
        (("--maps", "a,,b"), "must be names separated by commas"),
        (("--goal", "clustering"), "num_clusters"),
        (("--columns", "nosuch"), "nosuch"),
        (("--save", "no/such/folder/map.npz"), "there is no folder"),
        (("--seed", "-1"), "--seed: must be a whole number"),
        (("--lengthscale", "0"), "must be a positive number"),
        (("--rows", "0"), "must be a positive whole number"),
    ],
)
def test_bad_usage_is_one_line(options, message, csv, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(csv, *options) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert (
        len([line for line in error if not line.startswith("proofs-check: 0 s")]) == 1
    )
    assert message in error[-1] and error[-1].startswith("proofs-check:")


@pytest.mark.slow
@pytest.mark.skipif(
    not os.path.exists("/proc/self/status"),
    reason="the memory of a process is read from /proc",
)
def test_ten_million_rows_need_less_than_two_gigabytes(tmp_path):
    """Anonymous memory, looked at twenty times a second; the pages of the mapped file itself are not the process's."""
    path = tmp_path / "points.npy"
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, "w+", np.float32, (10_000_000, 20))
    for start in range(0, len(X), 100_000):
        X[start : start + 100_000] = rng.standard_normal((100_000, 20), np.float32)
    X.flush()
    del X
    options = [
        "--standardize",
        "--time",
        "2",
        "--maps",
        "orthogonal_fourier,nystrom",
        "--output",
    ]
    command = [sys.executable, "-m", "proofs_check", "certify", str(path), *options]
    command.append(str(tmp_path / "out"))
    largest = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            with (
                contextlib.suppress(OSError, StopIteration),
                open(f"/proc/{process.pid}/status") as lines,
            ):
                largest = max(
                    largest,
                    next(
                        int(line.split()[1])
                        for line in lines
                        if line.startswith("RssAnon")
                    ),
                )
            time.sleep(0.05)
    document = read(tmp_path / "out" / "certificate.json")
    assert process.returncode in (0, 1) and document["data"]["rows"] == 10_000_000
    assert 0 < largest < 2 * 2**20, f"{largest / 2**20:.2f} GiB"
