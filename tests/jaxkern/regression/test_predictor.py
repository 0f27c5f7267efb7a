"""A predictor names the class with the largest score, or returns a number, before and after a way through a file."""

import house
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from jaxkern import io
from jaxkern.features import TableMap, paired_fourier
from jaxkern.regression import TablePredictor

pytestmark = pytest.mark.float64

ROWS, _, DIM = house.USUAL
COLUMNS = ("id", "height", "Größe", "width")
USED = (1, 2, 3)
CLASSES = ("setosa", "virginica", "Größe 3")
SPAN = (-0.5, 0.125)
WIDTH = 2 * house.FEATURES


def table_map(dtype="float32"):
    options = {"num_frequencies": house.FEATURES, "dtype": dtype}
    phi = paired_fourier(house.key(), house.KERNEL, DIM, **options)
    return TableMap(phi, COLUMNS, (USED,))


def model_of(classes=(), span=None, dtype="float32"):
    columns = len(classes) or 1
    coefficients = house.rng(2).normal(size=(WIDTH, columns))
    offset = 0.1 * house.rng(1).normal(size=columns)
    return TablePredictor(table_map(dtype), coefficients, offset, classes, span)


def scores(model, X):
    """Return the scores of rows by loops over rows, columns and features."""
    Z = np.float64(model.feature_map(X))
    result = np.zeros((len(Z), len(model.offset)))
    for row, features in zip(result, Z, strict=True):
        for column, offset in enumerate(model.offset):
            terms = [
                z * w
                for z, w in zip(features, model.coefficients[:, column], strict=True)
            ]
            row[column] = sum(terms) + offset
    return result


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_class_is_the_name_of_the_largest_score(dtype):
    X = house.data().X
    model = model_of(CLASSES, dtype=dtype)
    names = model.predict(X)
    expected = [CLASSES[i] for i in scores(model, X).argmax(axis=1)]
    assert names.dtype.kind == "U"
    assert_array_equal(names, expected)
    # All classes occur, so that a wrong order of names would show.
    assert set(names) == set(CLASSES)
    assert_array_equal(model(X), table_map(dtype)(X))
    assert model.num_features == WIDTH


def test_a_number_is_cut_to_the_span():
    X = house.data().X
    free = model_of()
    expected = scores(free, X)[:, 0]
    numbers = free.predict(X)
    assert numbers.dtype == np.float64
    house.close(numbers, expected, 1e-12)
    cut = model_of(span=SPAN).predict(X)
    house.close(cut, expected.clip(*SPAN), 1e-12)
    assert {cut.min(), cut.max()} == set(SPAN)


@pytest.mark.parametrize("settings", [{"classes": CLASSES}, {"span": SPAN}])
def test_a_file_keeps_names_span_and_every_prediction(settings, tmp_path):
    X = house.data().X
    model = model_of(**settings)
    io.save(tmp_path / "model.npz", model)
    again = io.load(tmp_path / "model.npz")
    assert (again.classes, again.span) == (model.classes, model.span)
    assert again.coefficients.dtype == np.float64
    assert_array_equal(again.predict(X), model.predict(X))
    assert_array_equal(again(X), model(X))


def test_rows_come_as_a_data_frame_one_by_one_or_not_at_all():
    pandas = pytest.importorskip("pandas")
    X = house.data().X
    model = model_of(CLASSES)
    names = model.predict(X)
    frame = pandas.DataFrame(dict(zip(COLUMNS[1:], X.T, strict=True)))
    frame["more"] = "text"
    assert_array_equal(model.predict(frame[frame.columns[::-1]]), names)
    assert model.predict(X[0]) == names[0]
    assert model.predict(X[:0]).shape == (0,)


def test_a_missing_number_gives_nan_and_no_class():
    X = np.array(house.data().X)
    X[1, 0] = np.nan
    numbers = model_of(span=SPAN).predict(X)
    assert_array_equal(np.isnan(numbers), np.arange(ROWS) == 1)
    with pytest.raises(ValueError, match="without a finite score"):
        model_of(CLASSES).predict(X)
