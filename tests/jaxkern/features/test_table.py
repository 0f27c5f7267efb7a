"""A map that takes the rows of its table, in whatever form they come."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import io
from jaxkern.features import TableMap, paired_fourier, standardized
from jaxkern.kernels import Gaussian

COLUMNS = ("id", "height", "Größe", "flag", "class")
USED, NUMERIC, EVERY = (1, 2), (0, 1, 2), (0, 1, 2, 3, 4)


def table(rng, dtype="float64"):
    """Return rows of all columns, and the map of two of them."""
    X = rng.normal(size=(7, 5)).astype(dtype)
    phi = paired_fourier(
        jax.random.key(1), Gaussian(1.0), 2, num_frequencies=4, dtype="float32"
    )
    phi = standardized(
        phi, jnp.asarray([1.0, 2.0], "float32"), jnp.asarray([0.5, 3.0], "float32")
    )
    return X, phi, TableMap(phi, COLUMNS, (USED, NUMERIC, EVERY))


def frames(X):
    columns = dict(zip(COLUMNS, X.T, strict=True))
    yield _Frame(columns)
    for name in ("pandas", "polars"):
        yield pytest.importorskip(name).DataFrame(columns)
    yield pytest.importorskip("pyarrow").table(columns)


class _Frame:
    """The least that a DataFrame has."""

    def __init__(self, columns):
        self.columns, self._held = [*columns][::-1], columns

    def __getitem__(self, name):
        return self._held[name]


@pytest.mark.parametrize("x64", [False, True])
def test_rows_are_taken_in_every_form(rng, x64, tmp_path):
    X, inner, phi = table(rng)
    expected = inner(jnp.asarray(X[:, [1, 2]], "float32"))
    io.save(tmp_path / "map.npz", phi)
    with jax.enable_x64(x64):
        for mine in (phi, io.load(tmp_path / "map.npz")):
            assert mine.num_features == 8
            for layout in (USED, NUMERIC, EVERY):
                part = X[:, list(layout)]
                single = part.astype("float32")
                named = part.astype(object)  # text in a column that the map leaves out
                named[
                    :, [i for i, column in enumerate(layout) if column not in USED]
                ] = "a name"
                for form in (part, single, part.tolist(), named, jnp.asarray(single)):
                    found = mine(form)
                    assert found.dtype == jnp.float32
                    np.testing.assert_array_equal(found, expected)
            for frame in frames(X):
                np.testing.assert_array_equal(mine(frame), expected)


def test_it_is_a_function_of_arrays_under_every_transformation(rng):
    X, inner, phi = table(rng, "float32")
    for call in (
        jax.jit(phi),
        jax.vmap(phi),
        lambda X: jax.jit(lambda phi, X: phi(X))(phi, X),
    ):
        np.testing.assert_allclose(call(X), inner(X[:, 1:3]), atol=1e-6)
    gradient = np.asarray(jax.jit(jax.grad(lambda X: phi(X).sum()))(X))
    assert (
        gradient.shape == X.shape
        and not gradient[:, [0, 3, 4]].any()
        and np.abs(gradient[:, 1:3]).min(0).all()
    )


def test_anything_else_is_one_clear_error(rng):
    X, _, phi = table(rng)
    shapes = (
        r"X must have shape \(\.\.\., 2\) or .* \(\.\.\., 5\), got .*'height', 'Größe'$"
    )
    for wrong in (X[:, :4], X[0, 0], jnp.zeros((2, 1))):
        with pytest.raises(ValueError, match=shapes):
            phi(wrong)
    with pytest.raises(
        ValueError,
        match="X lacks 1 of the 2 columns of this map: 'Größe'; pass a DataFrame",
    ):
        phi(_Frame({"height": X[:, 0], "more": X[:, 1]}))
    with pytest.raises(
        ValueError,
        match=r"'height' holds what is no number \(.*5%.*; pass numbers, and 0.05 for 5%",
    ):
        phi(_Frame({"height": np.array(["5%", "6%"]), "Größe": [1, 2]}))
    dates = np.array(["2026-01-01", "2026-01-02"], "datetime64[D]")
    for wrong in (
        np.ma.masked_array([1.0, 2.0], [True, False]),
        np.array([1j, 2]),
        dates,
    ):
        with pytest.raises(
            ValueError,
            match=r"'height' must hold real numbers, got (MaskedArray|ndarray) of dtype",
        ):
            phi(_Frame({"height": wrong, "Größe": [1, 2]}))
    for columns in (("a", "a"), ("a", 1)):
        with pytest.raises(ValueError, match="columns must be different names"):
            TableMap(phi, columns, (USED,))
    for layouts in (
        (),
        ((),),
        ((2, 1),),
        ((1, 1, 2),),
        ((4, 5),),
        ((1, 2), (0, 1)),
        ((1, 2), (1, 2)),
    ):
        with pytest.raises(
            ValueError,
            match="layouts must be ascending numbers of the 5 columns, each with more",
        ):
            TableMap(phi, COLUMNS, layouts)
