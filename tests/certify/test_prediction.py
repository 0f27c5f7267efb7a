"""Certificates of the goal "prediction": tables whose truth is known, a NumPy oracle, limits, what is refused."""

import jax
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from proofs_check.certify import _prediction, certify, from_array, split
from proofs_check.cli.command import main
from proofs_check.report.certificate import render
from proofs_check.report.certificate_document import find_fault, read

pytestmark = pytest.mark.usefixtures("own_precision")
NUMBERS, CLASSES, EPS = (
    1_000,
    600,
    0.3,
)  # rows, by kind of target: another number is another program for every method


@pytest.fixture(autouse=True)
def few_sizes(monkeypatch):
    monkeypatch.setattr(
        _prediction, "LEVELS", 2
    )  # of each map: every size is a program of its own


def found(X, y, eps=EPS, seed=1, **asked):
    asked = {
        "maps": ["nystrom", "paired_fourier"],
        "time": 60.0,
        "standardize": True,
    } | asked
    return certify(
        jax.random.key(seed), X, goal="prediction", labels=y, eps=eps, **asked
    )


def wave(rows, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (rows, 2))
    return X, np.sin(4 * X[:, 0]) * np.cos(3 * X[:, 1])


def losses(made, X, y, unseen, y_unseen, *, standardize=True):
    """Return the losses of the exact method and of the recommended map on other rows, by NumPy in float64."""
    table = from_array(X, labels=y, standardize=standardize)
    train = split(jax.random.key(made.seed), table)[0]
    raw, unseen = (
        train.take(np.arange(train.rows), "float64", raw=True),
        unseen[:, list(train.layouts[0])],
    )
    names = np.array(train.label_names, object)
    if made.prediction["numeric"]:
        numbers = names.astype(float)[train.labels]
        wanted, target = numbers[:, None] / numbers.std(), y_unseen / numbers.std()
    else:
        wanted, target = (
            2.0 * np.eye(len(names))[train.labels] - 1,
            np.searchsorted(names.astype(float), y_unseen),
        )
    mean, penalty = wanted.mean(axis=0), made.prediction["regularization"]
    points, at = ((part - train.mean) / train.scale for part in (raw, unseen))
    squares = [((part[:, None] - points[None]) ** 2).sum(-1) for part in (points, at)]
    K, across = (np.exp(-square / (2 * made.lengthscale**2)) for square in squares)
    phi = made.draw()
    Z, W = (np.float64(phi(np.asarray(part, made.dtype))) for part in (raw, unseen))
    scale = np.mean((Z * Z).sum(1)) if made.map == "kernel_jl" else 1.0
    told = []
    for G, H in ((K, across), (Z @ Z.T / scale, W @ Z.T / scale)):
        columns = mean + H @ np.linalg.solve(
            G + penalty * np.eye(len(G)), wanted - mean
        )
        if made.prediction["numeric"]:
            low, high = wanted.min(), wanted.max()
            told.append(
                np.minimum(
                    (columns.clip(low, high)[:, 0] - target) ** 2, (high - low) ** 2
                ).mean()
            )
        else:
            told.append((columns.argmax(axis=1) != target).mean())
    return told


def row(made, name, features=None):
    return next(
        r
        for r in made.prediction["rows"]
        if r["name"] == name and features in (None, r["num_features"])
    )


@pytest.mark.parametrize("seed", [2, 3])
def test_a_wave_needs_a_map_and_no_linear_model_will_do(seed, tmp_path):
    """Ridge regression by the landmarks alone, without the cut-off of the map, has another loss at these seeds."""
    X, y = wave(NUMBERS)
    made = found(X, y, seed=seed, maps=["nystrom"], features_at_most=32)
    assert made.map == "nystrom" and made.num_features == 32
    assert (
        made.prediction["numeric"]
        and made.basis == "held-out rows"
        and made.scope == "rows never seen"
    )
    assert row(made, "linear model")["low"] > EPS and "not certified" in made.reasons[0]
    best = row(made, made.map, made.num_features)
    assert best["low"] <= best["excess"] <= best["high"] <= EPS
    smaller = [
        r for r in made.prediction["rows"][2:] if r["num_features"] < made.num_features
    ]
    assert smaller and all(r["high"] > EPS for r in smaller)
    exact, loss = losses(made, X, y, *wave(2_000, seed=9))
    assert loss - exact <= EPS and loss == pytest.approx(best["loss"], abs=0.05)
    assert find_fault(made.document) == "" and "Loss on held-out rows" in render(
        made.document
    )
    made.write(tmp_path)
    assert read(tmp_path / "certificate.json") == made.document
    with pytest.raises(ValueError, match="about the map that draw"):
        made.fails(jax.random.key(0))


def test_losses_and_bounds_are_those_of_numpy(x64):
    y = np.arange(CLASSES) % 2
    X = 3.0 * y[:, None] + np.random.default_rng(3).normal(size=(CLASSES, 2))
    made = found(X, y)
    held = split(jax.random.key(1), from_array(X, labels=y))[1]
    rows = held.take(np.arange(held.rows), "float64")
    exact, loss = losses(made, X, y, rows, held.labels)
    assert exact == pytest.approx(row(made, "exact method")["loss"], abs=1e-9)
    assert loss == pytest.approx(
        row(made, made.map, made.num_features)["loss"], abs=1e-9
    )
    assert (
        made.prediction["train"] == 240
        and made.prediction["test"] == 360
        and not made.prediction["numeric"]
    )
    assert made.prediction["exact_bound"] < 0.01
    assert row(made, "exact method")["bound"] > 0


def test_a_line_needs_no_map():
    X, _ = wave(NUMBERS)
    made = found(X, X @ [0.1, -2.0] + 7, maps=["paired_fourier"], features_at_most=2)
    assert (
        "The linear model will do" in made.reasons[0]
        and row(made, "linear model")["excess"] < 0.01
    )


def test_maps_of_two_features_do_not_predict_and_few_rows_certify_nothing():
    made, few = (
        found(*wave(NUMBERS), eps, maps=["paired_fourier"], features_at_most=2)
        for eps in (EPS, 1e-3)
    )
    assert (
        made.map is None and "the exact kernel is the better choice" in made.reasons[1]
    )
    assert find_fault(made.document) == "" and "No map could be certified" in render(
        made.document
    )
    assert few.map is None and "No map could have been certified" in few.reasons[-1]


def test_the_key_decides_the_split_the_maps_and_the_lines_of_python_draw_the_map_again(
    x64,
):
    X, y = wave(CLASSES)
    made, again, other = (
        found(X, y > 0, maps=["nystrom"], seed=seed) for seed in (1, 1, 2)
    )
    assert made.prediction == again.prediction != other.prediction
    space = {"X": X}
    exec(made.document["commands"]["python"], space)
    at = np.asarray(X, made.dtype)
    np.testing.assert_array_equal(space["phi"](at), made.draw()(at))


def test_limits_fail_as_rarely_as_they_say():
    """Differences of two methods that are wrong on 8 % and 5 % of the rows; 300 tables, each limit at 0.2."""
    rng = np.random.default_rng(0)
    target = _prediction.Target(
        "y", "", np.zeros((2, 2)), np.zeros(2), np.zeros(150), None
    )
    samples = rng.choice([1, 0, -1], (300, 150), p=(0.08, 0.87, 0.05))
    low, high = np.transpose(
        [_prediction.excess_limits(target, sample, 0.2) for sample in samples]
    )
    # 0.18 and 0.02 of 300: more by chance has a probability below 1e-3.
    assert np.sum(high < 0.03) <= 80 and np.sum(low > 0.03) <= 18
    assert _prediction.excess_limits(target, np.zeros(150), 0.2)[1] < 0.05


def test_what_is_refused(tmp_path, capsys):
    for labels, rows, message in (
        (None, 40, "needs a target"),
        (np.ones(40), 40, "one value of the target, 1"),
    ):
        with pytest.raises(ValueError, match=message):
            found(wave(rows)[0], labels)
    with pytest.raises(ValueError, match="at least 20 rows, got 12"):
        found(*wave(12))
    cells = [
        f"{a},{b},{'' if i == 4 else i % 2},1" for i, (a, b) in enumerate(wave(30)[0])
    ]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d", *cells]))
    for target, message in (
        ([], "needs --target COLUMN"),
        (["--target", "c", "--labels", "c"], "no --labels"),
        (["--target", "c"], "--missing drop"),
        (["--target", "d", "--exclude", "c"], "hold one value of d"),
    ):
        asked = [
            "certify",
            str(tmp_path / "t.csv"),
            "--output",
            str(tmp_path / "o"),
            "--goal",
            "prediction",
        ]
        assert main([*asked, *target]) == 2
        assert message in capsys.readouterr().err


def test_the_trivial_predictor_is_in_the_table_with_its_loss_by_numpy():
    X, y = wave(NUMBERS)
    for target, name in ((y, "mean"), (1.0 * (y > -0.2), "largest class")):
        made = found(X, target, maps=["nystrom"], features_at_most=32)
        table = from_array(X, labels=target)
        train, held = split(jax.random.key(1), table)
        values = np.array(table.label_names, float)
        seen, unseen = values[train.labels], values[held.labels]
        loss = np.mean(unseen != (seen.mean() > 0.5))
        if name == "mean":
            loss = np.mean((unseen - seen.mean()) ** 2) / seen.var()
        trivial = row(made, name)
        assert trivial["loss"] == pytest.approx(loss)
        # It is far behind the exact method, which the limits show.
        assert 0 < trivial["low"] < trivial["excess"] < trivial["high"]
        assert made.map == "nystrom"


@pytest.mark.parametrize("kind", ["number", "class"])
def test_nothing_is_recommended_if_nothing_predicts(kind):
    """The features are noise: all methods are close to each other, and none is better than the trivial one."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(CLASSES, 3))
    y = rng.normal(size=CLASSES)
    if kind == "class":
        y = rng.choice(["x", "y", "z"], CLASSES, p=[0.6, 0.3, 0.1])
    made = found(X, y, 0.9, maps=["nystrom"], features_at_most=8)
    told = " ".join(made.reasons)
    assert made.map is None and "Nothing here is shown to predict" in told
    assert "will do" not in told and "better choice" not in told
    assert "times as many rows" not in told
    assert {entry["status"] for entry in made.maps} == {"not certified"}
    assert find_fault(made.document) == ""
    page = render(made.document)
    assert "No map is recommended" in page and "Use nystrom" not in page
    assert ("mean" if kind == "number" else "largest class") in page


def test_a_better_linear_model_is_named_if_the_exact_method_predicts_nothing():
    X, _ = wave(NUMBERS)
    asked = {"maps": ["nystrom"], "features_at_most": 4, "lengthscale": 1e-3}
    made = found(X, X @ [0.1, -2.0] + 7, **asked)
    assert made.map is None and "The linear model is better" in made.reasons[-1]


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (np.arange(4_000) % 60, "a number (60 different values); pass target_kind"),
        (np.arange(60) % 11, "a number (11 different values); pass target_kind"),
        (np.arange(60) % 10, "a class (10 different values); pass target_kind"),
        (np.arange(60) % 3 / 2, "a number (3 different values)."),
        (np.arange(60) % 2 > 0, "a class (2 different values)."),
    ],
)
def test_the_kind_of_a_target_is_said_and_does_not_depend_on_the_rows(y, said):
    made = found(wave(len(y))[0], y, maps=["nystrom"], features_at_most=2)
    assert f"The target: {said}" in " ".join(made.reasons)
    assert made.prediction["numeric"] == said.startswith("a number")


def test_a_kind_that_the_target_cannot_be_is_refused():
    X, y = wave(60)
    with pytest.raises(ValueError, match=r"holds 'no'.* target_kind=.class."):
        found(X, np.where(y > 0, "yes", "no"), target_kind="number")
    with pytest.raises(ValueError, match="among number, class, got 'count'"):
        found(X, y, target_kind="count")
    with pytest.raises(ValueError, match="the goal is spectral"):
        certify(jax.random.key(0), X, goal="spectral", target_kind="number")
    X, y = wave(1_200)
    with pytest.raises(ValueError, match=r"1,200 different values.* 1,000 classes"):
        found(X, y, target_kind="class")


@pytest.mark.parametrize(
    ("asked", "said", "loss"),
    [
        ([], "a number (20 different", "squared error / variance"),
        (["--target-kind", "class"], "a class (20 different values).", "errors"),
    ],
)
def test_the_command_says_how_a_count_is_taken(tmp_path, capsys, asked, said, loss):
    X, _ = wave(CLASSES)
    visits = np.floor(10 + 10 * np.sin(2 * X[:, 0])).astype(int)
    assert len(np.unique(visits)) == 20
    cells = [f"{a},{b},{c}" for (a, b), c in zip(X, visits, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,visits", *cells]))
    goal = ["--goal", "prediction", "--target", "visits", "--maps", "nystrom"]
    files = [str(tmp_path / "t.csv"), "--output", str(tmp_path / "o")]
    assert main(["certify", *files, *goal, "--features-at-most", "8", *asked]) < 2
    out = " ".join(capsys.readouterr().out.split())
    assert f"Target visits: {said}" in out and loss in out
    assert ("pass --target-kind class" in out) == (not asked)
    told = read(tmp_path / "o" / "certificate.json")
    assert told["confidence"] == 0.95 and told["data"]["columns"] == ["a", "b"]
    assert said in " ".join(told["prediction"]["words"])
    assert told["prediction"]["numeric"] == (not asked)
    again = told["commands"]["again"]
    assert ("--target-kind class" in again) == bool(asked)
    page = (tmp_path / "o" / "certificate.html").read_text(encoding="utf-8")
    assert f"Target visits: {said}" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "eps", "standardize"),
    [
        (load_wine, 0.1, True),
        (load_breast_cancer, 0.1, True),
        (load_digits, 0.02, False),
    ],
)
def test_recommended_maps_predict_as_well_as_the_exact_method_on_rows_never_seen(
    load, eps, standardize
):
    """Twenty splits: three quarters of the rows for the certificate, and the last one for what it promises."""
    data, excesses = load(), []
    for seed in range(20):
        mine, unseen = np.split(
            np.random.default_rng(seed).permutation(len(data.target)),
            [3 * len(data.target) // 4],
        )
        X, y = data.data[mine], data.target[mine]
        made = found(X, y, eps, seed, maps=None, standardize=standardize)
        if made.map is not None:
            assert made.num_features <= made.prediction["train"] / 2
            exact, loss = losses(
                made,
                X,
                y,
                data.data[unseen],
                data.target[unseen],
                standardize=standardize,
            )
            excesses.append(loss - exact)
    assert len(excesses) >= 10 and sum(excess > eps for excess in excesses) <= 1


def test_the_guarantee_says_that_rows_are_copies():
    X, y = wave(NUMBERS // 2)
    made = found(np.repeat(X, 2, axis=0), np.repeat(y, 2), maps=["nystrom"])
    assert "500 rows equal an earlier one." in made.guarantee
    assert "copies of training rows are among the rows held out" in made.guarantee
