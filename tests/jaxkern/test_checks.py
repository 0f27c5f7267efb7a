"""Validation: what is static is refused with the name of the argument; what depends on entries passes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import checks, features, frequent_directions, kernels, scale
from jaxkern import sklearn as estimators

ONES = np.ones((3, 2), np.float32)


@pytest.mark.parametrize("value", [1, 1.5, np.float32(1), np.float64(1), np.int32(1)])
def test_python_and_numpy_scalars_are_static(value):
    assert checks.is_static(value)


@pytest.mark.parametrize("value", [True, np.bool_(True), None, "1", np.ones(1), [1.0]])
def test_nothing_else_is_static(value):
    assert not checks.is_static(value)
    assert not checks.is_static(jnp.float32(1))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "float16", "complex64"])
def test_other_dtypes_are_refused_and_told_how_to_convert(dtype):
    with pytest.raises(
        ValueError,
        match=rf"data must have dtype float32 or float64, got {dtype}; .*data.astype",
    ):
        checks.floating("data", np.ones(3, dtype))
    with pytest.raises(
        ValueError, match="data must have dtype float32 or float64, got int32"
    ):
        checks.floating("data", [1, 2])


def test_good_arrays_come_back_in_their_dtype(dtype):
    X = ONES.astype(dtype)
    for found in (
        checks.floating("X", X),
        checks.matrix("X", X, dim=2, min_rows=3),
        checks.points("X", X, dim=2),
        checks.vector("X", X[0], size=2),
        checks.columns("X", X, rows=3),
        checks.columns("X", X[:, 0], rows=3),
        checks.square("X", X[:2]),
    ):
        assert isinstance(found, jax.Array) and found.dtype == dtype
    already = jnp.asarray(X)
    assert checks.matrix("X", already) is already
    assert checks.matrix("X", X[:0], min_rows=0).shape == (0, 2)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (
            lambda: checks.matrix("X", ONES[0]),
            r"X must have rank 2, .*got shape \(2,\); pass X\[None, :\] for one point",
        ),
        (
            lambda: checks.matrix("X", ONES[None]),
            r"X must have rank 2, .*got shape \(1, 3, 2\); .*vmap",
        ),
        (
            lambda: checks.matrix("X", ONES[:0]),
            r"X must have at least 1 row\(s\), got shape \(0, 2\)",
        ),
        (
            lambda: checks.matrix("X", ONES, min_rows=4),
            r"X must have at least 4 row\(s\)",
        ),
        (
            lambda: checks.matrix("X", ONES[:, :0]),
            r"X must have at least one column, got shape \(3, 0\)",
        ),
        (
            lambda: checks.matrix("Y", ONES, dim=3),
            r"Y must have 3 columns, got shape \(3, 2\)",
        ),
        (
            lambda: checks.points("X", ONES, dim=3),
            r"X must have shape \(..., 3\), got \(3, 2\)",
        ),
        (
            lambda: checks.points("X", np.float32(1), dim=1),
            r"X must have shape \(..., 1\), got \(\)",
        ),
        (lambda: checks.vector("w", ONES), r"w must have shape \(n,\), got \(3, 2\)"),
        (
            lambda: checks.vector("w", ONES[0], size=3),
            r"w must have shape \(3,\), got \(2,\)",
        ),
        (
            lambda: checks.columns("V", ONES, rows=2),
            r"V must have shape \(2,\) or \(2, r\), got \(3, 2\)",
        ),
        (
            lambda: checks.columns("V", ONES[None], rows=1),
            r"V must have shape \(1,\) or \(1, r\)",
        ),
        (
            lambda: checks.square("K", ONES),
            r"K must be a square matrix \(n, n\) with n >= 1, got shape \(3, 2\)",
        ),
        (lambda: checks.square("K", ONES[:0, :0]), "K must be a square matrix"),
        (
            lambda: checks.labels("labels", ONES[0]),
            "labels must hold integer labels, got dtype float32",
        ),
        (
            lambda: checks.labels("labels", np.ones((2, 2), int)),
            r"labels must have shape \(n,\) with n >= 1",
        ),
        (
            lambda: checks.labels("labels", np.ones(0, int)),
            r"labels must have shape \(n,\) with n >= 1",
        ),
        (
            lambda: checks.labels("labels", np.ones(2, int), size=3),
            r"labels must have shape \(3,\), got \(2,\)",
        ),
        (
            lambda: checks.scalar("q", ONES[0], "float32"),
            r"q must be a scalar .*got shape \(2,\); .*vmap",
        ),
        (lambda: checks.flag("centered", 1), "centered must be True or False, got 1"),
        (
            lambda: checks.flag("centered", None),
            "centered must be True or False, got None",
        ),
    ],
)
def test_wrong_shapes_are_refused_by_name(check, message):
    with pytest.raises(ValueError, match=message):
        check()


def test_labels_of_any_integer_type_pass():
    for name in ("int32", "uint8"):
        assert checks.labels("labels", np.array([0, 1, 2], name), size=3).dtype == name


def test_two_dtypes_are_refused_by_both_names(x64):
    single, double = jnp.ones(2, jnp.float32), jnp.ones(2)
    assert checks.same_dtype("Y", single, "X", single) is single
    with pytest.raises(
        ValueError,
        match="Y must have the dtype of X, float32, got float64; convert one of them",
    ):
        checks.same_dtype("Y", double, "X", single)


def test_keys_are_single_and_typed():
    key = jax.random.key(0)
    assert checks.key(key) is key
    assert jax.jit(lambda key: jax.random.uniform(checks.key(key)))(key).shape == ()
    with pytest.raises(
        ValueError, match="key must be a typed random key, got an array of dtype uint32"
    ):
        checks.key(np.zeros(2, np.uint32))
    for wrong, found in [(0, "int"), (None, "NoneType"), ("key", "str")]:
        with pytest.raises(
            ValueError, match=f"seed must be a typed random key, got {found}"
        ):
            checks.key(wrong, "seed")
    with pytest.raises(
        ValueError,
        match=r"key must be a single key, got keys of shape \(2,\); vmap over the keys",
    ):
        checks.key(jax.random.split(jax.random.key(1), 2))


def test_counts_are_static_whole_numbers_within_limits():
    assert (
        checks.count("m", 3) == 3
        and checks.count("m", np.int64(3)) == 3
        and checks.count("m", 0, minimum=0) == 0
    )
    assert type(checks.count("m", np.int64(3))) is int
    for wrong in (1.0, "3", None, np.ones(2, int)):
        with pytest.raises(ValueError, match="m must be a static whole number"):
            checks.count("m", wrong)
    with pytest.raises(ValueError, match="m must be a whole number, got True"):
        checks.count("m", True)
    with pytest.raises(ValueError, match="m must be at least 1, got 0"):
        checks.count("m", 0)
    with pytest.raises(
        ValueError, match=r"m must be at most 4 \(the number of points\), got 5"
    ):
        checks.count("m", 5, maximum=4, limit="the number of points")
    with pytest.raises(ValueError, match="m must be a static whole number"):
        jax.jit(lambda m: checks.count("m", m))(3)


@pytest.mark.parametrize(
    "value",
    [0, -1.0, float("nan"), float("inf"), np.float32(0), np.int32(-3), True, "1"],
)
def test_static_values_that_are_not_positive_are_refused(value):
    with pytest.raises(ValueError, match="scale must be positive and finite, got"):
        checks.positive("scale", value)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), 2])
def test_static_values_outside_the_unit_interval_are_refused(value):
    with pytest.raises(ValueError, match=r"q must lie in \[0, 1\], got"):
        checks.fraction("q", value)
    assert checks.fraction("q", 0) == 0 and checks.fraction("q", 1.0) == 1


def test_parameters_stay_within_the_range_of_their_dtype():
    info = np.finfo(np.float32)
    for value in (
        0.0,
        float(info.tiny),
        float(info.max),
        -float(info.max),
        float("inf"),
    ):
        assert checks.numbers("f", {"scale": value})["scale"] == value
        assert float(checks.scalar("scale", value, jnp.float32)) == value
    for value in (float(info.tiny) / 2, 2 * float(info.max), -2 * float(info.max)):
        with pytest.raises(
            ValueError, match=r"f\['scale'\] must be within the range of float32, got"
        ):
            checks.numbers("f", {"scale": value})
        with pytest.raises(
            ValueError, match="scale must be within the range of float32, got"
        ):
            checks.scalar("scale", value, jnp.float32)


def test_arrays_tracers_and_placeholders_are_not_looked_at():
    """What depends on entries is a field of a result; structures are rebuilt with objects of any kind."""
    marker = object()
    for value in (jnp.float32(-1), np.array(-1.0), marker, None):
        assert checks.positive("scale", value) is value
        assert checks.fraction("q", value) is value
    assert (
        jax.jit(lambda v: checks.positive("scale", v) + checks.fraction("q", v))(-1.0)
        == -2
    )
    assert np.isnan(checks.matrix("X", np.full((2, 2), np.nan, np.float32))).all()


def _sketched(blocks):
    state = frequent_directions.init(8, 90)
    for block in blocks:
        state = frequent_directions.update(state, block)
    return state.buffer


def _embedded(blocks):
    phi = features.paired_fourier(
        jax.random.key(0), kernels.Gaussian(9.0), 90, num_frequencies=100
    )
    return [*scale.embed(phi, blocks, block_size=1000)]


def _fitted(blocks):
    stream = estimators.StreamingPCA(
        lengthscale=9.0, n_frequencies=30, sketch_size=8, random_state=0
    )
    for block in blocks:
        stream.partial_fit(block)
    return stream.map_.components


@pytest.mark.parametrize(
    "run",
    [
        lambda blocks: [checks.as_array("X", X) for X in blocks],
        _sketched,
        _embedded,
        _fitted,
    ],
)
def test_an_array_may_be_filled_anew_when_a_call_has_returned(run, rng):
    """As whoever reads a file into one buffer does; JAX would read it later, in the place where it is."""
    blocks = rng.standard_normal((20, 1000, 90)).astype(np.float32)
    memory = np.empty(blocks[0].nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64  # where JAX needs no copy
    buffer = (
        memory[start:][: blocks[0].nbytes].view(np.float32).reshape(blocks[0].shape)
    )

    def refilled():
        for block in blocks:
            buffer[...] = block
            yield buffer
        buffer[...] = 0

    np.testing.assert_array_equal(run(refilled()), run(iter(blocks)))
