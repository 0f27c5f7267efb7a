"""Frequent Directions against a literal transcription, its proved bounds, and streams made to break it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.jaxprs import equations, largest_intermediate
from support.numerics import eps, squared

from jaxkern import frequent_directions as fd

N, DIM, SIZE = 61, 12, 6
SHRINKS = {"default": None, "half": SIZE // 2, "every row": SIZE}


def literal(rows, size, shrink_at):
    """Return the sketch B and all that was subtracted, one row and one decomposition at a time, in float64."""
    num_slots = 2 * size if shrink_at > size else size
    buffer, filled, removed = np.zeros((num_slots, rows.shape[1])), 0, []

    def shrink(buffer):
        _, s, Vt = np.linalg.svd(buffer, full_matrices=True)
        s = np.pad(s, (0, num_slots - len(s)))
        removed.append(s[shrink_at - 1] ** 2)
        new = np.zeros_like(buffer)
        for i in range(min(shrink_at - 1, len(Vt))):
            new[i] = np.sqrt(max(s[i] ** 2 - removed[-1], 0)) * Vt[i]
        return new

    for row in np.float64(rows):
        if filled == num_slots:
            buffer, filled = shrink(buffer), shrink_at - 1
        buffer[filled] = row
        filled += 1
    if num_slots > size:
        buffer = shrink(buffer)
    return buffer, removed


def half_is_worst(size, dim, batches):
    """Rows that make a shrink at size // 2 lose all it saw: size / 2 unit rows, and tiny ones up to a full buffer."""
    half = size // 2
    tiny = 1e-3 * np.eye(dim)[half : 2 * half]
    first = np.concatenate([np.eye(dim)[:half], tiny[: size - half]])
    later = np.concatenate(
        [np.eye(dim)[:half], tiny[:1]]
    )  # half - 1 slots hold what is left, which is nothing
    return np.concatenate([first] + [later] * (batches - 1) + [tiny[:1]])


def streams():
    rng = np.random.default_rng(5)
    normal = rng.normal(size=(N, DIM))
    centres = 5 * rng.normal(size=(3, DIM))
    directions = np.eye(DIM)
    return {
        "random": normal,
        "decaying": normal * 0.6 ** np.arange(DIM),
        "offset": normal + 1e3,
        "clustered": centres[rng.integers(0, 3, N)] + 0.1 * normal,
        "axes in turn": directions[np.arange(N) % DIM],
        "axes one after the other": directions[np.arange(N) * DIM // N],
        "growing": normal * 1.2 ** np.arange(N)[:, None],
        "one large row": np.where(np.arange(N)[:, None] == 20, 1e3, 1) * normal,
        "worst for the half": half_is_worst(SIZE, DIM, 20)[:N],
        "rank 4": normal[:, :4] @ normal[:4],
        "repeated": np.repeat(normal[:1], N, 0),
        "mostly zero": np.where(np.arange(N)[:, None] % 7 == 0, normal, 0),
    }


STREAMS = streams()


def sketch_of(A, dtype, shrink=None, size=SIZE, parts=1):
    """Return the rows in their dtype, and the sketch of them in so many batches."""
    A = np.asarray(A, dtype)
    state = fd.init(size, A.shape[1], dtype, shrink_at=shrink)
    for part in np.array_split(np.arange(len(A)), parts):
        state = fd.update(state, A[part])
    return np.float64(A), fd.finalize(state)


def difference(A, sketch):
    """Return the eigenvalues of A'A - B'B, ascending."""
    B = np.float64(sketch.rows)
    return np.linalg.eigvalsh(A.T @ A - B.T @ B)


def allowance(A, dtype, shrinks=N):
    """The rounding stated in `finalize`, with |B|_F^2 <= |A|_F^2."""
    return eps(dtype) * (8 + A.shape[1] / 12 + 4 * shrinks) * squared(A)


def assert_exact(A, sketch, shrinks=N):
    """Check that nothing was lost but what rounding takes, and that the certificate allows for that and no more."""
    allowed = allowance(A, sketch.rows.dtype, shrinks)
    assert np.abs(difference(A, sketch)).max() <= float(sketch.shrinkage) <= allowed
    assert int(sketch.rank) == np.linalg.matrix_rank(
        A, 1e-5 * np.linalg.norm(A)
    ) and bool(sketch.finite)
    assert not np.asarray(sketch.basis)[:, int(sketch.rank) :].any()


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("variant", SHRINKS)
def test_the_sketch_is_that_of_one_row_at_a_time_within_its_certificate_and_the_proved_bounds(
    variant, stream, dtype
):
    A, sketch = sketch_of(STREAMS[stream], dtype, SHRINKS[variant])
    p, allowed = SHRINKS[variant] or SIZE + 1, allowance(A, dtype)
    B, removed = literal(A, SIZE, p)
    assert sketch.rows.dtype == dtype and sketch.rows.shape == (SIZE, DIM)
    # A shrink moves B'B by no more than a change of its input does.
    ours, shrinkage = np.float64(sketch.rows), float(sketch.shrinkage)
    np.testing.assert_allclose(ours.T @ ours, B.T @ B, rtol=0, atol=2 * allowed)
    assert shrinkage == pytest.approx(sum(removed), abs=2 * allowed)
    assert int(sketch.num_rows) == N and bool(sketch.finite)
    assert float(sketch.squared_norm) == pytest.approx(squared(A), rel=10 * eps(dtype))
    error = difference(A, sketch)
    assert np.abs(error).max() <= shrinkage and error.min() >= -allowed
    assert p * shrinkage <= squared(A) - squared(ours) + p * allowed
    tails = np.append(np.cumsum(np.linalg.svd(A, compute_uv=False)[::-1] ** 2)[::-1], 0)
    assert all(shrinkage <= tails[k] / (p - k) + allowed for k in range(p))
    values = np.linalg.eigvalsh(A.T @ A)[::-1][:SIZE]
    found = np.float64(sketch.singular_values) ** 2
    assert (found <= values + allowed).all() and (values <= found + shrinkage).all()


@pytest.mark.parametrize("variant", SHRINKS)
def test_a_certificate_without_the_last_shrink_is_wrong(variant, x64):
    A, sketch = sketch_of(STREAMS["decaying"], "float64", SHRINKS[variant])
    last = literal(A, SIZE, SHRINKS[variant] or SIZE + 1)[1][-1]
    assert (
        float(sketch.shrinkage) - last
        < difference(A, sketch).max()
        <= float(sketch.shrinkage)
    )


def test_half_the_size_loses_what_has_rank_seven_of_ten(x64):
    rng = np.random.default_rng(3)
    A = rng.normal(size=(200, 7)) @ rng.normal(size=(7, DIM))
    A, half = sketch_of(A, "float64", 5, size=10)
    assert difference(A, half).max() > 0.01 * squared(A)
    assert_exact(*sketch_of(A, "float64", size=10), 20)


def test_nothing_is_lost_across_the_left_out_directions(dtype):
    """|Ax|^2 <= shrinkage for every unit x orthogonal to the basis: the form in which Lemma 3.3 needs it."""
    A, sketch = sketch_of(STREAMS["decaying"], dtype)
    W = np.float64(sketch.basis)
    rest = A - A @ W @ W.T
    assert np.linalg.norm(rest, 2) ** 2 <= float(sketch.shrinkage)
    np.testing.assert_allclose(W.T @ W, np.eye(SIZE), atol=20 * eps(dtype))
    assert (np.diff(sketch.singular_values) <= 0).all() and int(sketch.rank) == SIZE


@pytest.mark.parametrize(
    "A", [STREAMS["rank 4"], STREAMS["random"][:, :1], STREAMS["random"][:, :3]]
)
def test_below_the_sketch_size_the_sketch_is_exact_and_zero_rows_change_nothing(
    A, dtype
):
    A, sketch = sketch_of(A, dtype)
    assert_exact(A, sketch)
    assert sketch.basis.shape == (A.shape[1], SIZE)
    zeros = fd.update(fd.init(SIZE, A.shape[1], dtype), np.zeros_like(A, dtype))
    padded = fd.finalize(fd.update(zeros, np.asarray(A, dtype)))
    assert_exact(A, padded)
    assert int(padded.num_rows) == 2 * N and float(fd.finalize(zeros).shrinkage) == 0


@pytest.mark.parametrize("rows", [1, SIZE, SIZE + 1, 2 * SIZE, 2 * SIZE + 1])
def test_rows_left_in_the_buffer_count(rows, dtype):
    A, sketch = sketch_of(STREAMS["random"][:rows], dtype, parts=rows)
    assert int(sketch.rank) == min(rows, SIZE) and int(sketch.num_rows) == rows
    error = difference(A, sketch)
    assert np.abs(error).max() <= float(sketch.shrinkage)
    assert rows > SIZE or float(sketch.shrinkage) <= allowance(A, dtype, 1)
    last = np.linalg.norm(A[-1])
    found = np.linalg.norm(np.float64(sketch.rows) @ A[-1]) ** 2 / last**2
    assert found >= last**2 - float(sketch.shrinkage)


def test_an_empty_stream_has_an_empty_sketch(dtype):
    state = fd.init(SIZE, DIM, dtype)
    for held in (
        state,
        fd.update(state, jnp.zeros((0, DIM), dtype)),
        fd.merge(state, state),
    ):
        sketch = fd.finalize(held)
        assert (
            not np.asarray(sketch.basis).any()
            and not np.asarray(sketch.singular_values).any()
        )
        assert float(sketch.shrinkage) == 0 == int(sketch.rank) == int(
            sketch.num_rows
        ) and bool(sketch.finite)


def test_a_sketch_of_one_row_holds_half_at_least(x64):
    A, sketch = sketch_of(STREAMS["random"], "float64", size=1)
    assert (
        np.abs(difference(A, sketch)).max() <= float(sketch.shrinkage) <= squared(A) / 2
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
def test_what_is_not_finite_is_said(bad):
    rows = np.array(STREAMS["random"], np.float32)
    rows[17, 3] = bad
    for parts in (1, N):
        sketch = sketch_of(rows, "float32", parts=parts)[1]
        assert not bool(sketch.finite) and not np.isfinite(float(sketch.shrinkage))
        assert not np.isfinite(sketch.singular_values).any()
    assert bool(sketch_of(rows[:17], "float32", parts=17)[1].finite)


@pytest.mark.parametrize("variant", ["default", "half"])
def test_batches_of_any_size_give_the_same_state(variant, x64):
    A = STREAMS["decaying"]
    whole = fd.update(fd.init(SIZE, DIM, A.dtype, shrink_at=SHRINKS[variant]), A)
    for cuts in (range(1, N), [1, 1, 31], [30, 60]):
        state = fd.init(SIZE, DIM, A.dtype, shrink_at=SHRINKS[variant])
        for part in np.split(np.arange(N), list(cuts)):
            state = fd.update(state, A[part])
        assert int(state.filled) == int(whole.filled) and int(state.num_rows) == N
        a, b = fd.finalize(state), fd.finalize(whole)
        ours, theirs = np.asarray(a.rows), np.asarray(b.rows)
        np.testing.assert_allclose(
            ours.T @ ours, theirs.T @ theirs, atol=allowance(A, "float64")
        )
        assert float(a.shrinkage) == pytest.approx(
            float(b.shrinkage), rel=1e3 * eps("float64")
        )


def test_weights_multiply_outer_products(dtype, rng):
    A, w = STREAMS["random"].astype(dtype), rng.uniform(0, 3, N).astype(dtype)
    state = fd.init(SIZE, DIM, dtype)
    weighted, scaled = fd.update(state, A, w), fd.update(state, np.sqrt(w)[:, None] * A)
    assert jax.tree.all(jax.tree.map(np.array_equal, weighted, scaled))
    assert not bool(fd.finalize(fd.update(state, A, jnp.asarray(-w))).finite)


@pytest.mark.parametrize("variant", ["default", "half"])
@pytest.mark.parametrize(
    "stream", ["random", "decaying", "worst for the half", "clustered"]
)
def test_merges_in_any_order_obey_the_bound_of_one_stream(stream, variant, dtype):
    A, p = np.float64(jnp.asarray(STREAMS[stream], dtype)), SHRINKS[variant] or SIZE + 1
    empty = fd.init(SIZE, DIM, dtype, shrink_at=SHRINKS[variant])
    a, b, c = (
        fd.update(empty, jnp.asarray(A[part], dtype))
        for part in np.split(np.arange(N), [30, 60])
    )
    trees = (
        fd.merge(fd.merge(a, b), c),
        fd.merge(a, fd.merge(b, c)),
        fd.merge(c, fd.merge(b, a)),
        fd.merge(fd.merge(empty, c), fd.merge(fd.merge(b, empty), a)),
    )
    sketches = [fd.finalize(tree) for tree in trees]
    for sketch in sketches:
        assert np.abs(difference(A, sketch)).max() <= float(sketch.shrinkage)
        assert float(sketch.shrinkage) <= squared(A) / p + allowance(A, dtype)
        assert int(sketch.num_rows) == N
        assert float(sketch.squared_norm) == pytest.approx(
            squared(A), rel=10 * eps(dtype)
        )
        # Both lie within [0, shrinkage] of the same matrix.
        apart = difference(np.float64(sketches[0].rows), sketch)
        assert np.abs(apart).max() <= max(
            float(sketch.shrinkage), float(sketches[0].shrinkage)
        )


def test_merging_streams_that_fit_in_the_buffer_is_exact_and_keeps_the_order(dtype):
    A = STREAMS["random"][: 2 * SIZE].astype(dtype)
    empty = fd.init(SIZE, DIM, dtype)
    first, second = empty, empty
    for i in range(SIZE):
        first, second = (
            fd.update(first, A[i : i + 1]),
            fd.update(second, A[SIZE + i : SIZE + i + 1]),
        )
    merged = fd.merge(first, second)
    assert np.array_equal(merged.buffer, A) and not np.asarray(merged.removed).any()
    low = STREAMS["rank 4"][:60].astype(dtype)
    assert_exact(
        np.float64(low),
        fd.finalize(fd.merge(fd.update(empty, low[:30]), fd.update(empty, low[30:]))),
    )


def test_rounding_of_a_long_stream_in_float32_stays_within_the_certificate(rng):
    """Rank 3 of 6: all that is lost in 3,300 shrinks is rounding, and it must be accounted for."""
    A = np.float32(rng.normal(size=(20_000, 3)) @ rng.normal(size=(3, DIM)))
    A, sketch = sketch_of(A, "float32")
    error = np.abs(difference(A, sketch)).max()
    assert eps("float32") * squared(A) < error <= float(sketch.shrinkage)
    # |B|_F^2 grows linearly to |A|_F^2: half of it on average.
    assert (
        float(sketch.shrinkage)
        <= 2 * allowance(A, "float32", 20_000 / SIZE / 2)
        < 0.02 * squared(A) / (SIZE + 1)
    )


def test_merging_keeps_the_rounding_of_both():
    state = fd.update(fd.init(SIZE, DIM), jnp.asarray(STREAMS["rank 4"], jnp.float32))
    assert float(fd.merge(state, state).magnitude) >= 2 * float(state.magnitude) > 0


def test_sums_over_many_batches_are_compensated():
    rows = jnp.full((20_000, 1, 1), np.float32(0.1))
    state, _ = jax.lax.scan(
        lambda state, row: (fd.update(state, row), None), fd.init(1, 1), rows
    )
    truth = 20_000 * np.float64(np.float32(np.float32(0.1) ** 2))
    assert float(fd.finalize(state).squared_norm) == pytest.approx(
        truth, rel=2 * eps("float32")
    )
    naive = np.float32(0)
    for _ in range(20_000):
        naive = naive + np.float32(0.1) ** 2
    assert abs(naive / truth - 1) > 20 * eps("float32")


def test_the_number_of_rows_saturates():
    state = fd.init(SIZE, DIM)
    state = jax.tree.unflatten(
        jax.tree.structure(state), [*jax.tree.leaves(state)[:-1], jnp.int32(2**31 - 5)]
    )
    rows = jnp.ones((3, DIM), jnp.float32)
    assert [
        int(s.num_rows)
        for s in (fd.update(state, rows), fd.update(fd.update(state, rows), rows))
    ] == [
        2**31 - 2,
        2**31 - 1,
    ]
    assert int(fd.merge(state, state).num_rows) == 2**31 - 1


def test_programs_do_not_grow_with_the_batch_and_hold_no_more_than_it():
    state = fd.init(SIZE, DIM)
    sizes = [
        len(
            list(equations(jax.make_jaxpr(fd.update)(state, jnp.zeros((b, DIM))).jaxpr))
        )
        for b in (50, 5000)
    ]
    assert sizes[0] == sizes[1]
    assert largest_intermediate(fd.update, state, jnp.zeros((5000, DIM))) <= 5000 * DIM


def test_mapped_streams_may_be_filled_differently(rng):
    A = np.float32(rng.normal(size=(2, 5, DIM)))
    early = fd.update(fd.init(SIZE, DIM), A[0])
    late = fd.update(fd.update(early, A[1]), A[0])
    both = jax.tree.map(lambda a, b: np.stack([a, b]), early, late)
    mapped = jax.device_get(jax.vmap(fd.update, in_axes=(0, None))(both, A[1]))
    merged = jax.device_get(jax.vmap(fd.merge)(both, both))
    for i, state in enumerate((early, late)):
        for many, one in (
            (mapped, fd.update(state, A[1])),
            (merged, fd.merge(state, state)),
        ):
            assert int(many.filled[i]) == int(one.filled) and int(
                many.num_rows[i]
            ) == int(one.num_rows)
            a, b = np.asarray(many.buffer[i]), np.asarray(one.buffer)
            np.testing.assert_allclose(a.T @ a, b.T @ b, atol=allowance(A, "float32"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: fd.init(0, 3), "sketch_size must be at least 1, got 0"),
        (lambda s: fd.init(2, 0), "dim must be at least 1, got 0"),
        (
            lambda s: fd.init(2, 3, jnp.int32),
            "dtype must have dtype float32 or float64, got int32",
        ),
        (
            lambda s: fd.init(2, 3, shrink_at=4),
            r"shrink_at must be at most 3 .sketch_size \+ 1., got 4",
        ),
        (lambda s: fd.init(2, 3, shrink_at=0), "shrink_at must be at least 1, got 0"),
        (
            lambda s: fd.update(None, np.zeros((1, 3), np.float32)),
            "state must be a State of frequent_directions",
        ),
        (
            lambda s: fd.update(s, np.zeros((1, 4), np.float32)),
            "rows must have 3 columns",
        ),
        (lambda s: fd.update(s, np.zeros(3, np.float32)), "rows must have rank 2"),
        (
            lambda s: fd.update(s, np.zeros((1, 3), np.float64)),
            "rows must have the dtype of the state",
        ),
        (
            lambda s: fd.merge(s, fd.init(3, 3)),
            "a and b must have the same sketch_size, got 2 and 3",
        ),
        (
            lambda s: fd.merge(s, fd.init(2, 4)),
            "a and b must have the same dim, got 3 and 4",
        ),
        (
            lambda s: fd.merge(s, fd.init(2, 3, shrink_at=1)),
            "a and b must have the same shrink_at, got 3 and 1",
        ),
        (
            lambda s: fd.merge(s, fd.init(2, 3, jnp.float64)),
            "a and b must have the same dtype",
        ),
        (lambda s: fd.merge(s, 3), "b must be a State of frequent_directions, got int"),
        (
            lambda s: fd.finalize(fd.finalize(s)),
            "state must be a State of frequent_directions, got Sketch",
        ),
    ],
)
def test_bad_arguments_are_refused_by_name(call, message, x64):
    with pytest.raises(ValueError, match=message):
        call(fd.init(2, 3))
