"""Figures 1 and 2 of chen2016: their parts against NumPy, the command lines, and the printed baselines on real data."""

import io
import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from proofs_check.papers import figures
from proofs_check.papers.chen2016 import figure1 as one
from proofs_check.papers.chen2016 import figure2 as two
from proofs_check.usage import UsageError

USPS = Path(__file__).resolve().parents[4] / "shared" / "data" / "usps.npz"


@pytest.fixture
def digits(tmp_path, rng):
    """A file like usps.npz: 5 rows of each digit to train, and one more that must not be used."""
    X = rng.uniform(-1, 1, (51, 4)).astype(np.float32)
    y = np.append(np.tile(np.arange(10), 5), 0)
    np.savez(tmp_path / "usps.npz", X=X, y=y, n_train=50)
    return tmp_path


def test_the_first_rows_of_each_label():
    labels = np.array([2, 1, 2, 2, 1, 1])
    assert one.first_rows(labels, 2).tolist() == [1, 4, 0, 2]
    with pytest.raises(ValueError, match="needs 4 rows"):
        one.first_rows(labels, 4)


@pytest.mark.parametrize("centred", [False, True])
def test_residuals_are_those_of_numpy(centred, x64, rng):
    X = rng.standard_normal((20, 3))
    n, components, t, lengthscale = 20, 4, 6, 1.5
    H = np.eye(n) - (1 / n if centred else 0)
    squared = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    K = np.exp(-squared / (2 * lengthscale**2))
    exact = np.linalg.eigvalsh(H @ K @ H)[: n - components].sum()
    assert one.exact_residual(
        jnp.asarray(X), lengthscale, components=components, centred=centred
    ) == pytest.approx(exact)

    computed = one.residuals(
        jnp.asarray(X),
        lengthscale,
        t,
        components=components,
        centred=centred,
        draws=2,
        seed=3,
    )
    assert computed[:1] == one.residuals(
        jnp.asarray(X),
        lengthscale,
        t,
        components=components,
        centred=centred,
        draws=1,
        seed=3,
    )
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(3), t), 1500)
    from jaxkern import features, kernels

    for number, value in enumerate(computed):
        phi = features.paired_fourier(
            jax.random.fold_in(key, number),
            kernels.Gaussian(lengthscale),
            3,
            num_frequencies=t,
            dtype=np.float64,
        )
        phases = X @ np.asarray(phi.frequencies).T / lengthscale
        Z = H @ np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / math.sqrt(t)
        assert value == pytest.approx(
            np.sum(np.linalg.svd(Z, compute_uv=False)[components:] ** 2)
        )


def test_scores_and_what_the_printed_numbers_may_be():
    cells = [
        one.Cell(
            "uncentred", 4.0, t, 1667.1, (printed + shift - 1, printed + shift + 1)
        )
        for t, printed, shift in zip(
            one.FREQUENCIES, one.PRINTED[4.0], (1, -1, 1, 0, 2), strict=True
        )
    ]
    assert [round(cell.score, 6) for cell in cells] == [
        round(-s / math.sqrt(2), 6) for s in (1, -1, 1, 0, 2)
    ]
    assert one.probability_of(cells, 1) == pytest.approx(stats.chi2.sf(3.5 / 1.5, 5))
    assert one.probability_of(cells, 10) == pytest.approx(stats.chi2.sf(3.5 / 0.6, 5))
    other = one.Cell("uncentred", 5.0, 50, 100.0, (50.0, 60.0))
    assert (
        other.printed is None
        and math.isnan(other.score)
        and other.error == pytest.approx(0.45)
    )
    out = io.StringIO()
    figures.show(one.result([*cells, other], {}).printed, file=out)
    assert "1667.1" in out.getvalue() and "mean of 10" in out.getvalue()


def test_the_command_line_of_figure_1(digits, capsys):
    pytest.importorskip("matplotlib")
    table, picture = digits / "table.json", digits / "figure.svg"
    arguments = [
        "--data-dir",
        str(digits),
        "--per-digit",
        "2",
        "--kept",
        "3",
        "--draws",
        "2",
        "--frequencies",
        "4,8",
    ]
    with jax.debug_key_reuse(False):
        assert (
            one.main(
                [
                    *arguments,
                    "--readings",
                    "uncentred",
                    "--output",
                    str(table),
                    "--plot",
                    str(picture),
                ]
            )
            == 0
        )
    assert "residuals from features" in capsys.readouterr().out
    document = json.loads(table.read_text())
    assert document["where"] == "Figure 1" and len(document["rows"]) == 6
    assert all(
        row["printed"] is None and len(row["values"]) == 2 for row in document["rows"]
    )
    assert (
        picture.read_text().lstrip().startswith("<?xml")
        and "dc:date" not in picture.read_text()
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--draws", "1"], "2 draws"),
        (["--kept", "20", "--frequencies", "10"], "--kept must be below"),
        (["--per-digit", "6"], "needs 6 rows"),
        (["--readings", "squared"], "unknown reading"),
        (["--data-dir", "absent"], "cannot be read"),
    ],
)
def test_bad_usage_of_figure_1_is_one_line_and_status_two(
    arguments, message, digits, capsys
):
    assert one.main(["--data-dir", str(digits), "--per-digit", "2", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and message in error


def test_a_file_of_another_shape_is_refused(tmp_path):
    path = tmp_path / "usps.npz"
    np.savez(path, X=np.zeros((3, 2)), y=np.zeros(2), n_train=3)
    with pytest.raises(UsageError, match="must be finite points"):
        one.read(path)


@pytest.mark.slow
@pytest.mark.skipif(
    not USPS.exists(), reason="needs usps.npz, which is not part of the project"
)
def test_the_printed_baselines_come_from_the_training_digits():
    X, y = one.read(USPS)
    points = jnp.asarray(X[one.first_rows(y)], np.float32)
    for lengthscale, printed in one.BASELINES.items():
        assert abs(one.exact_residual(points, lengthscale) - printed) < 0.2
    assert abs(one.exact_residual(points, 16.0, centred=True) - one.BASELINES[16.0]) > 2
    for t in (50, 100):
        values = np.array(one.residuals(points, 4.0, t, draws=8))
        assert abs(
            one.PRINTED[4.0][one.FREQUENCIES.index(t)] - values.mean()
        ) < 4 * values.std(ddof=1)


def test_relative_errors_by_differences_and_by_features_agree_where_no_digits_are_lost(
    x64,
):
    options = {"dim": 3, "frequencies": 20, "pairs": 50, "dtype": "float64"}
    errors = two.relative_errors(jax.random.key(5), **options)
    direct = two.relative_errors(jax.random.key(5), from_features=True, **options)
    r = two.distances(50)
    assert r[0] == pytest.approx(1e-4) and r[-1] == pytest.approx(1e4)
    np.testing.assert_allclose(errors[r > 1e-2], direct[r > 1e-2], atol=1e-8)
    assert np.max(np.abs(direct - errors)) < 1e-6
    options["dtype"] = "float32"
    lost = np.abs(
        two.relative_errors(jax.random.key(5), **options)
        - two.relative_errors(jax.random.key(5), from_features=True, **options)
    )
    assert lost[r < 1e-3].max() > 0.02 > lost[(r > 0.1) & (r < 100)].max()


def test_the_standard_deviation_is_that_of_many_draws():
    """2,000 draws with t = 200 at three distances: within 9 %, more than 5 standard errors."""
    rng = np.random.default_rng(0)
    for r in (0.01, 1.2, 6.0):
        w = rng.standard_normal((2000, 200))
        ratios = np.sqrt(
            np.mean(2 * np.sin(r * w / 2) ** 2, axis=1) / -np.expm1(-(r**2) / 2)
        )
        assert np.std(ratios) == pytest.approx(
            float(two.standard_deviation(r, 200)), rel=0.09
        )


def test_slopes_and_decades():
    largest = {(2, t): np.full(3, 5 / t**0.5) for t in (10, 20, 40)}
    assert two.slope(largest, 2) == (pytest.approx(-0.5), pytest.approx(0, abs=1e-9))
    assert math.isnan(two.slope({(2, 10): np.ones(4)}, 2)[0])
    rng = np.random.default_rng(0)
    noisy = {(2, t): rng.uniform(1, 2, 4) / t for t in (10, 20, 40)}
    line = stats.linregress(
        np.repeat(np.log([10, 20, 40]), 4), np.log(np.concatenate(list(noisy.values())))
    )
    assert two.slope(noisy, 2) == (
        pytest.approx(line.slope),
        pytest.approx(line.stderr),
    )
    rows = two.by_decade(np.full(16, 0.1), 100)
    assert [row[0] for row in rows] == [10.0**p for p in range(-4, 4)]
    assert all(row[1] == pytest.approx(0.1) for row in rows)
    assert rows[0][2] == pytest.approx(200**-0.5, rel=1e-5) and rows[-1][
        2
    ] == pytest.approx(800**-0.5)


def test_the_command_line_of_figure_2(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    table, picture = tmp_path / "table.json", tmp_path / "figure.svg"
    arguments = [
        "--frequencies",
        "8,16",
        "--dims",
        "2",
        "--pairs",
        "16",
        "--replicates",
        "2",
    ]
    with jax.debug_key_reuse(False):
        assert (
            two.main([*arguments, "--output", str(table), "--plot", str(picture)]) == 0
        )
    assert "eps_max" in capsys.readouterr().out
    document = json.loads(table.read_text())
    assert len(document["left"]) == 2 and [
        row["frequencies"] for row in document["right"]
    ] == [100, 1000]
    assert "dc:date" not in picture.read_text()
