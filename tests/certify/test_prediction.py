"""The goal prediction: tables whose truth is known, a literal oracle, limits by simulation, what is refused."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from jaxkern import io
from jaxkern.kernels import Gaussian
from jaxkern.regression import TablePredictor
from proofs_check.certify.goals import prediction
from proofs_check.certify.goals.target import Target, target_of, upper_limit
from proofs_check.certify.load import from_array
from proofs_check.certify.request import Request
from proofs_check.certify.trials import Trials

EPS = 0.3
SETTINGS = {"goal": "prediction", "eps": EPS, "maps": ["nystrom", "paired_fourier"]}
SMALL = {"maps": ["paired_fourier"], "features_at_most": 2}


def tables_of(X, y):
    return prediction.split(
        jax.random.key(1), from_array(X, labels=y, standardize=True)
    )


def fit(X, y, *, lengthscale=1.0, dtype="float32", deadline=np.inf, **settings):
    train, held_out = tables_of(X, y)
    kernel = Gaussian(lengthscale)
    trials = Trials(jax.random.key(1), train, kernel, None, dtype, deadline)
    request = Request(**SETTINGS | settings)
    return prediction.predict(trials, held_out, request, print)


def wave(rows=1_000):
    """Return points and numbers; another number of rows is another program for every method."""
    X = np.random.default_rng(0).uniform(-1, 1, (rows, 2))
    return X, np.sin(4 * X[:, 0]) * np.cos(3 * X[:, 1])


@pytest.mark.parametrize(("numeric", "wide"), [(True, False), (False, True)])
def test_a_saved_model_has_the_loss_of_a_literal_solve(numeric, wide, tmp_path):
    X, y = wave()
    labels = y if numeric else np.where(y > 0, "up", "not up, Größe 3")
    train, test = (table.view.rows for table in tables_of(X, labels))
    with jax.enable_x64(wide):
        fitted = fit(X, labels, dtype="float64" if wide else "float32")
        io.save(tmp_path / "model.npz", fitted.drawing.predictor)
        model = io.load(tmp_path / "model.npz")
        Z = np.asarray(model(X), float)
        predictions = model.predict(X[test])
    part = fitted.predicted
    if numeric:
        assert_array_equal(np.transpose(part.picture), [y[test], predictions])
    else:
        y = np.sign(y)
        predictions = np.where(predictions == "up", 1, -1)
        assert np.trace(part.confusion) == np.sum(predictions == y[test])
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    seen = y[train]

    def dual_of(penalty):
        inverse = np.linalg.inv(K[train][:, train] + penalty * np.eye(len(train)))
        return inverse @ (seen - seen.mean()), np.diag(inverse)

    def left_out_error(penalty):
        dual, diagonal = dual_of(penalty)
        return np.sum((dual / diagonal) ** 2)

    def loss(penalty):
        dual, _ = dual_of(penalty)
        return loss_of(seen.mean() + K[test][:, train] @ dual)

    def loss_of(values):
        if not numeric:
            return np.mean(np.sign(values) != y[test])
        errors = np.clip(values, seen.min(), seen.max()) - y[test]
        return np.minimum(errors**2, np.ptp(seen) ** 2).mean() / seen.var()

    trivial, exact, linear, *maps = part.rows
    penalties = prediction.PENALTIES * len(train)
    assert_allclose(trivial.loss, loss_of(seen.mean()))
    K = X @ X.T / 2
    penalty = min(penalties, key=left_out_error)
    assert_allclose(linear.loss, loss(penalty), atol=1e-3)
    K = np.exp(-cdist(X, X, "sqeuclidean") / 2)
    penalty = min(penalties, key=left_out_error)
    # Values end within 1e-3 of the exact solution.
    assert_allclose(exact.loss, loss(penalty), atol=1e-3)
    assert part.exact_bound <= 1e-3
    best = next(row for row in fitted.maps if row.recommended)
    method = next(row for row in maps if row.sizes == best.sizes)
    assert_allclose(method.loss, loss_of(predictions), rtol=1e-12)
    K = Z @ Z.T
    assert_allclose(method.loss, loss(penalty), atol=1e-9)


@pytest.mark.parametrize("classes", [(), ("a",)])
def test_limits_fail_as_rarely_as_they_say(classes):
    """Two methods are wrong on 8 % and 5 % of the rows, on 300 tables, with limits at level 0.2."""
    rule = TablePredictor(None, np.eye(1), np.ones(1), classes)
    target = Target("y", "", None, None, "", rule)
    rng = np.random.default_rng(0)
    differences = rng.choice([1.0, 0.0, -1.0], (300, 150), p=(0.08, 0.87, 0.05))
    low = np.array([-upper_limit(target, -rows, 0.02) for rows in differences])
    high = np.array([upper_limit(target, rows, 0.18) for rows in differences])
    # 0.18 and 0.02 of 300: more by chance has a probability below 1e-3.
    assert np.sum(high < 0.03) <= 80
    assert np.sum(low > 0.03) <= 18
    # Limits that never fail would be of no use.
    assert np.mean(high) < 0.12


def test_a_wave_needs_a_map():
    fitted = fit(*wave())
    trivial, _, linear, *maps = fitted.predicted.rows
    assert linear.low > EPS
    assert 0 < trivial.low < trivial.excess < trivial.high
    best = next(row for row in fitted.maps if row.recommended)
    assert best.num_features == min(row.num_features for row in maps if row.high <= EPS)
    assert "fewer features" in fitted.predicted.words[0]
    late = fit(*wave(), deadline=0.0)
    assert fitted.finished and not late.finished
    assert {row.status for row in late.maps} == {"out of time"}


POINTS, WAVE = wave()
LINE = POINTS[:, 0] + 7
FAIL = [
    (WAVE, SMALL, "the exact kernel is the better choice"),
    (WAVE, SMALL | {"eps": 1e-3}, "No map could have been certified"),
    (LINE, SMALL, "The linear model will do"),
    (LINE, {"lengthscale": 1e-3}, "The linear model is better"),
    (WAVE[::-1], {"eps": 0.9}, "Nothing here is shown to predict"),
]


@pytest.mark.parametrize(("y", "settings", "words"), FAIL)
def test_words_say_why_no_map_is_recommended(y, settings, words):
    fitted = fit(POINTS, y, **settings)
    assert words in " ".join(fitted.predicted.words)
    assert {row.status for row in fitted.maps} == {"not certified"}


def test_nothing_is_fitted_on_held_out_rows():
    X, y = wave()
    first = fit(X, y, maps=["nystrom"])
    _, held_out = tables_of(X, y)
    X[held_out.view.rows] *= 1.01
    y[held_out.view.rows] += 0.01
    second = fit(X, y, maps=["nystrom"])
    assert second.predicted.rows[1].loss != first.predicted.rows[1].loss
    jax.tree.map(assert_array_equal, second.drawing.predictor, first.drawing.predictor)


def test_copies_of_rows_are_told():
    X, y = wave(500)
    assert (
        "500 rows equal an earlier one"
        in fit(np.tile(X, (2, 1)), np.tile(y, 2)).guarantee
    )


KINDS = [
    (11, 1, "a number (11 different values); pass --target-kind class"),
    (10, 1, "a class (10 different values); pass --target-kind number"),
    (3, 2, "a number (3 different values)."),
]


@pytest.mark.parametrize(("count", "unit", "words"), KINDS)
def test_the_kind_of_a_target_is_said_and_can_be_chosen(count, unit, words):
    tables = tables_of(wave(60)[0], np.arange(60) % count / unit)
    assert target_of(*tables, None).words.startswith(f"Target: the target, {words}")
    assert len(target_of(*tables, "class").rule.classes) == count


REFUSED = [
    (None, None, "needs a target"),
    (np.ones(40), None, "one value of the target, 1"),
    (np.repeat([1, "up"], 20), "number", "holds 'up'.*target-kind class"),
    (np.arange(2_600), "class", "2,600 different values.* 1,000 classes"),
    (np.arange(12), None, "at least 20 rows, got 12"),
]


@pytest.mark.parametrize(("y", "kind", "message"), REFUSED)
def test_what_is_refused(y, kind, message):
    X, _ = wave(40 if y is None else len(y))
    with pytest.raises(ValueError, match=message):
        fit(X, y, target_kind=kind)
