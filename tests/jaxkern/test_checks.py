"""Validation: what is static is refused with the name of the argument; what depends on entries passes."""

import house
import jax
import numpy as np
import pytest
from support.numerics import Identity

from jaxkern import checks, frequent_directions, scale
from jaxkern import sklearn as estimators

ONES = np.ones((3, 2), np.float32)
COUNTS = np.ones(2, int)
INFO = np.finfo(np.float32)


def test_python_and_numpy_scalars_are_static():
    for value in (1, 1.5, np.float32(1), np.float64(1), np.int32(1)):
        assert checks.is_static(value)
    for value in (True, np.bool_(True), None, "1", np.ones(1), [1.0]):
        assert not checks.is_static(value)


def test_good_arrays_come_back_in_their_dtype():
    X = ONES.astype(house.dtype())
    arrays = [
        checks.floating("X", X),
        checks.matrix("X", X, dim=2, min_rows=3),
        checks.points("X", X, dim=2),
        checks.vector("X", X[0], size=2),
        checks.columns("X", X, rows=3),
        checks.square("X", X[:2]),
    ]
    for array in arrays:
        assert isinstance(array, jax.Array)
        assert array.dtype == house.dtype()
        assert checks.as_array("X", array) is array
    for dtype in (np.int32, np.uint8):
        assert checks.labels("X", dtype([0, 1]), size=2).dtype == dtype


def of(check, *arguments, **options):
    """Return a row of a table of calls, which gives every value the name X."""
    return lambda: check("X", *arguments, **options)


# Other faults of these kinds are refused by rows of tests/refusals.
BAD = [
    (of(checks.floating, np.ones(3, np.int32)), "got int32; .*X.astype"),
    (of(checks.matrix, ONES[0]), r"rank 2, .*\(2,\); pass X\[None, :\] for one point"),
    (of(checks.matrix, ONES[None]), r"rank 2, .*got shape \(1, 3, 2\); .*vmap"),
    (of(checks.matrix, ONES[:, :0]), r"at least one column, got shape \(3, 0\)"),
    (of(checks.points, ONES, dim=3), r"must have shape \(..., 3\), got \(3, 2\)"),
    (of(checks.points, ONES[0, 0], dim=1), r"must have shape \(..., 1\), got \(\)"),
    (of(checks.vector, ONES), r"must have shape \(n,\), got \(3, 2\)"),
    (of(checks.columns, ONES[None], rows=1), r"must have shape \(1,\) or \(1, r\)"),
    (of(checks.square, ONES), r"\(n, n\) with n >= 1, got shape \(3, 2\)"),
    (of(checks.square, ONES[:0, :0]), "must be a square matrix"),
    (of(checks.labels, ONES[0]), "must hold integer labels, got dtype float32"),
    (of(checks.labels, COUNTS[None]), r"must have shape \(n,\) with n >= 1"),
    (of(checks.labels, COUNTS[:0]), r"must have shape \(n,\) with n >= 1"),
    (of(checks.labels, COUNTS, size=3), r"shape \(3,\), got \(2,\)"),
    (of(checks.scalar, ONES[0], "float32"), r"a scalar .*got shape \(2,\); .*vmap"),
    (of(checks.flag, 1), "must be True or False, got 1"),
    (of(checks.count, 1.0), "must be a static whole number"),
    (of(checks.count, True), "must be a whole number, got True"),
    (of(checks.count, 5, maximum=4, limit="rows"), r"at most 4 \(rows\), got 5"),
]
VALUES = {
    checks.positive: (0, -1.0, np.nan, np.inf, np.float32(0), np.int32(-3), True, "1"),
    checks.fraction: (-0.1, 1.1, np.nan, 2),
}
BEYOND = (float(INFO.tiny) / 2, 2 * float(INFO.max), -2 * float(INFO.max))


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=f"^X.*{message}"):
        call()


def test_numbers_out_of_their_range_are_refused_by_name():
    for check, values in VALUES.items():
        for value in values:
            with pytest.raises(ValueError, match=r"^X must (be|lie) .*, got"):
                check("X", value)
    message = "^X.* must be within the range of float32, got"
    for value in BEYOND:
        with pytest.raises(ValueError, match=message):
            checks.scalar("X", value, np.float32)
        with jax.enable_x64(False), pytest.raises(ValueError, match=message):
            checks.numbers("X", {"scale": value})


def test_static_values_at_their_limits_pass():
    assert checks.count("m", 0, minimum=0) == 0
    assert checks.count("m", 4, maximum=4) == 4
    assert type(checks.count("m", np.int64(3))) is int
    assert checks.fraction("q", 0) == 0
    assert checks.fraction("q", 1.0) == 1
    for value in (0.0, float(INFO.tiny), float(INFO.max), -float(INFO.max), np.inf):
        assert checks.numbers("f", {"scale": value})["scale"] == value
        assert checks.scalar("scale", value, np.float32) == value


def test_keys_are_single_and_typed():
    key = house.key()
    assert checks.key(key) is key
    assert jax.eval_shape(checks.key, key).shape == ()
    bad = {
        "a typed random key, got an array of dtype uint32": np.zeros(2, np.uint32),
        "a typed random key, got int": 0,
        r"a single key, got keys of shape \(2,\); vmap over": jax.random.split(key),
    }
    for message, value in bad.items():
        with pytest.raises(ValueError, match=f"seed must be {message}"):
            checks.key(value, "seed")


def test_arrays_tracers_and_placeholders_are_not_looked_at():
    """What depends on entries is a field of a result; structures are rebuilt with objects of any kind."""
    for value in (jax.device_put(ONES[0]), np.array(-1.0), object(), None):
        assert not checks.is_static(value)
        assert checks.positive("scale", value) is value
        assert checks.fraction("q", value) is value

    def traced(value):
        with pytest.raises(ValueError, match="m must be a static whole number"):
            checks.count("m", value)
        return checks.positive("scale", value)

    jax.eval_shape(traced, -1.0)
    assert np.isnan(checks.matrix("X", np.full((2, 2), np.nan, np.float32))).all()


def held(blocks):
    return [checks.as_array("X", X) for X in blocks]


def sketched(blocks):
    state = frequent_directions.init(8, 90)
    for block in blocks:
        state = frequent_directions.update(state, block)
    return state.buffer


def embedded(blocks):
    phi = Identity(np.eye(90, dtype=np.float32))
    return [*scale.embed(phi, blocks, block_size=1000)]  # others would be filled up


def fitted(blocks):
    stream = estimators.StreamingPCA(
        lengthscale=9.0, n_frequencies=30, sketch_size=8, random_state=0
    )
    for block in blocks:
        stream.partial_fit(block)
    return stream.map_.components


@pytest.mark.parametrize("run", [held, sketched, embedded, fitted])
def test_an_array_may_be_filled_anew_when_a_call_has_returned(run):
    """As whoever reads a file into one buffer does; JAX would read it later, in the place where it is.

    Blocks of 360 kB are still read when the next one comes.
    """
    blocks = house.rng().normal(size=(10, 1000, 90)).astype(np.float32)
    memory = np.empty(91_000, np.float32)
    # JAX needs no copy of what begins at a multiple of 64 bytes.
    start = -memory.ctypes.data % 64 // 4
    buffer = memory[start : start + 90_000].reshape(1000, 90)

    def refilled():
        for block in blocks:
            buffer[...] = block
            yield buffer
        buffer[...] = 0

    np.testing.assert_array_equal(run(refilled()), run(iter(blocks)))
