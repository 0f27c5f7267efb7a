"""A map that takes the rows of its table, in whatever form they come."""

import house
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import io
from jaxkern.features import TableMap, paired_fourier

pytestmark = pytest.mark.float64  # so that what is cast to the dtype of the map is seen

COLUMNS = ("id", "height", "Größe", "flag", "width")
USED = (1, 2, 4)
NUMERIC = (0, 1, 2, 4)
ALL = (0, 1, 2, 3, 4)
all_layouts = pytest.mark.parametrize("layout", [USED, NUMERIC, ALL])


def inner():
    """Return a map of the three columns in float32."""
    options = {"num_frequencies": house.FEATURES, "dtype": "float32"}
    return paired_fourier(house.key(), house.KERNEL, len(USED), **options)


@pytest.fixture(params=["as it is", "from a file"])
def phi(request, tmp_path):
    phi = TableMap(inner(), COLUMNS, (USED, NUMERIC, ALL))
    if request.param == "as it is":
        return phi
    io.save(tmp_path / "map.npz", phi)
    return io.load(tmp_path / "map.npz")


def table():
    """Return rows of all columns, and what the map of three of them gives."""
    data = house.data()
    # The id comes first, and a flag before the last column that is used.
    rows = np.insert(data.X, [0, 2], data.values, axis=1)
    expected = inner()(data.X.astype("float32"))
    return rows, np.asarray(expected)


FORMS = {
    "float64": np.asarray,
    "float32": np.float32,
    "list": np.ndarray.tolist,
    "JAX": lambda rows: jnp.asarray(rows, "float32"),
}


@all_layouts
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_every_layout_are_taken_in_every_form(phi, layout, form):
    rows, expected = table()
    Z = phi(FORMS[form](rows[:, layout]))
    assert Z.dtype == np.float32
    assert phi.num_features == expected.shape[1]
    np.testing.assert_array_equal(Z, expected)


@all_layouts
def test_text_may_stand_in_a_column_that_the_map_leaves_out(phi, layout):
    rows, expected = table()
    named = rows.astype(object)
    # Neither column is converted to numbers.
    named[:, [0, 3]] = "a name"
    np.testing.assert_array_equal(phi(named[:, layout]), expected)


class Frame:
    """The least that a DataFrame has, with its columns in another order."""

    def __init__(self, columns):
        self.arrays = columns
        self.columns = [*columns][::-1]

    def __getitem__(self, name):
        return self.arrays[name]


def frame(package, columns):
    if package == "none":
        return Frame(columns)
    module = pytest.importorskip(package)
    return module.table(columns) if package == "pyarrow" else module.DataFrame(columns)


@pytest.mark.parametrize("package", ["none", "pandas", "polars", "pyarrow"])
def test_columns_are_found_by_name(phi, package):
    rows, expected = table()
    columns = dict(zip(COLUMNS, rows.T, strict=True))
    np.testing.assert_array_equal(phi(frame(package, columns)), expected)


COLOURS = ["red", " blue", "green", "red"]


def encoding(values=("blue", "green", "red"), used=(0, 1, 3)):
    """Return a map of three of the columns blue, green, height, red."""
    columns = ("colour=blue", "colour=green", "height", "colour=red")
    categories = (("colour", values),)
    return TableMap(inner(), columns, (used,), categories)


@pytest.mark.parametrize("package", ["none", "pandas", "polars", "pyarrow"])
def test_text_is_encoded_by_the_map(package, tmp_path):
    points = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]], "float32")
    words = np.array(COLOURS) if package == "none" else COLOURS
    phi = encoding()
    io.save(tmp_path / "map.npz", phi)
    rows = frame(package, {"width": [1.0] * 4, "colour": words})
    for each in (phi, io.load(tmp_path / "map.npz")):
        np.testing.assert_array_equal(each(rows), inner()(points))
        np.testing.assert_array_equal(each(points), inner()(points))


def test_a_column_of_numbers_stands_beside_text():
    phi = encoding(used=(0, 2, 3))
    rows = Frame({"colour": np.array(COLOURS), "height": np.arange(4.0)})
    points = np.array([[0, 0, 1], [1, 1, 0], [0, 2, 0], [0, 3, 1]], "float32")
    np.testing.assert_array_equal(phi(rows), inner()(points))


def test_missing_text_gives_nan_and_unknown_text_is_refused():
    cells = np.array(["red", None, float("nan"), "NaN"], object)
    Z = np.asarray(encoding()(Frame({"colour": cells})))
    assert np.isfinite(Z[0]).all()
    assert np.isnan(Z[1:]).all()
    with pytest.raises(ValueError, match="'colour' holds 'pink', which was not in the"):
        encoding()(Frame({"colour": np.array(["red", "pink"])}))
    with pytest.raises(ValueError, match=r"X lacks 1 of the columns .*: 'colour'"):
        encoding()(Frame({"height": np.ones(2)}))


def test_a_file_without_categories_is_read(tmp_path, monkeypatch):
    """A file that was written before maps had categories."""
    with monkeypatch.context() as patch:
        fields = ("feature_map", "columns", "layouts")
        known = io.fields_of
        patch.setattr(
            io, "fields_of", lambda cls: fields if cls is TableMap else known(cls)
        )
        io.save(tmp_path / "map.npz", TableMap(inner(), COLUMNS, (USED, ALL)))
    assert b"categories" not in (tmp_path / "map.npz").read_bytes()
    phi = io.load(tmp_path / "map.npz")
    rows, expected = table()
    assert phi.categories is None
    np.testing.assert_array_equal(phi(rows), expected)
