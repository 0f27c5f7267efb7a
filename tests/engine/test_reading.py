"""Files of data: CSV and arrays are read, and what is no data says why in one line.

What `certify` refuses as well is refused in the tests of its tables, by both readers.
"""

import numpy as np
import pytest

from proofs_check.engine import reading


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "text", ["1,2\n3,4.5\n", "x;y\n1;2\n3;4.5\n", "\ufeffa\tb\r\n1\t2\r\n\r\n3\t4.5\r\n", '"a","b"\n"1", 2\n3,45e-1']
)
def test_csv_is_read_with_and_without_a_header(tmp_path, text):
    found = reading.load(write(tmp_path / "x.csv", text))
    assert found.dtype == np.float64 and found.tolist() == [[1, 2], [3, 4.5]]


def test_one_column_of_csv_is_a_matrix(tmp_path):
    assert reading.load(write(tmp_path / "x.csv", "x\n1\n2\n")).tolist() == [[1], [2]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, bool, np.float32, np.float64, ">f4"])
def test_arrays_of_every_real_type_are_converted(tmp_path, dtype):
    X = np.eye(3).astype(dtype)
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", X=X, other=np.arange(3))
    for name in ("x.npy", "x.npz"):
        found = reading.load(tmp_path / name)
        assert found.dtype == np.float64 and np.array_equal(found, np.eye(3))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "a,b\n1,2\n3,four\n", "line 3, column 2 holds text 'four'"),
        ("x.csv", "1,2\n3,\n", "line 2, column 2 holds an empty cell"),
        ("x.csv", "1,two\n3,4\n", "line 1, column 2 holds text 'two'"),
        ("x.csv", "1,2\n1_000,4\n", "line 2, column 1 holds text '1_000'"),
        ("x.csv", "1,nan\ninf,4\n", "holds 2 entries that are NaN or infinite, the first in row 1, column 2"),
        ("x.csv", "1,2\n1,2\n", "all rows are equal"),
        ("x.csv", "1,1.7e308\n2,-1.7e308\n", "column 2 holds values from -1.7e"),
        ("x.csv", "1e-308,1\n2e-308,1\n", "whose squares are out of range"),
        ("x.csv", "1,1e308\n2,1e308\n", "whose squares are out of range; change its unit"),
    ],
)
def test_a_file_that_holds_no_data_says_why_in_one_line(tmp_path, name, content, message):
    with pytest.raises(reading.DataError, match=message) as caught:
        reading.load(write(tmp_path / name, content))
    assert "\n" not in str(caught.value) and name in str(caught.value)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.arange(4.0), r"vector of shape \(4,\).*save X\[:, None\]"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.zeros((3, 0)), r"shape \(3, 0\)"),
        (np.float64(1.0), r"shape \(\)"),
        (np.eye(2) * 1j, "type complex128"),
        (np.array([["a", "b"], ["c", "d"]]), "type <U1"),
        (np.array([[1, "a"], [2, None]], object), "pickled objects are not loaded"),
        (np.array([[1.0, 2.0], [np.nan, np.inf]]), "holds 2 entries that are NaN or infinite, the first in row 2"),
    ],
)
def test_an_array_that_is_no_data_says_why_in_one_line(tmp_path, X, message):
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", X=X)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(reading.DataError, match=message) as caught:
            reading.load(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_an_archive_without_X_says_what_it_holds(tmp_path):
    np.savez(tmp_path / "x.npz", train=np.eye(2), labels=np.arange(2))
    with pytest.raises(reading.DataError, match="holds no array named X, but train, labels"):
        reading.load(tmp_path / "x.npz")
