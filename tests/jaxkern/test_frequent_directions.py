"""Frequent Directions against a literal transcription, its proved bounds, and streams made to break it."""

import dataclasses
import functools

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import close, eps
from hypothesis import example, given
from numpy.testing import assert_allclose
from support.drawn import PLAIN, drawn
from support.jaxprs import equations, largest_intermediate
from support.numerics import squared

from jaxkern import frequent_directions as fd
from jaxkern.bounds import streaming

N, DIM, _ = house.USUAL
"""Rows and columns of a stream, which three batches of 8 rows make, too."""
SIZE = house.FEATURES
VARIANTS = {
    "default": (SIZE, SIZE + 1, streaming.frequent_directions_buffered),
    "Algorithm 1": (SIZE, SIZE // 2, streaming.frequent_directions),
    "every row": (SIZE, SIZE, streaming.frequent_directions_rowwise),
    "one row": (1, 2, streaming.frequent_directions_buffered),
    "odd": (3, 1, streaming.frequent_directions),
}
"""Sketch size, singular value at which a shrink cuts, and the bound that is proved for these."""
TWO = ("default", "Algorithm 1")


def streams():
    """Return streams by name, (N, DIM) each."""
    normal = house.rng().normal(size=(N, DIM))
    row = np.arange(N)[:, None]
    axes = np.eye(DIM)
    # A shrink at the second of four rows loses all it saw: two unit rows, and tiny ones up to a full buffer.
    order = [0, 1, 2, 3, *[0, 1, 2] * N]
    tiny = np.where(np.arange(DIM) < 2, 1, 1e-3)
    arrays = {
        "random": normal,
        "decaying": normal * 0.6 ** np.arange(DIM),
        "offset": normal + 1e3,
        "axes in turn": axes[np.arange(N) % DIM],
        "axes one after the other": axes[np.arange(N) * DIM // N],
        "growing": normal * 1.5**row,
        "one large row": np.where(row == 10, 1e3, 1) * normal,
        "worst for Algorithm 1": tiny * axes[order[:N]],
        "rank 3": normal[:, :3] @ normal[:3],
        "mostly zero": np.where(row % 7 == 0, normal, 0),
    }
    return {name: array.astype(house.dtype()) for name, array in arrays.items()}


def literal(rows, size, shrink_at):
    """Return the sketch B and all that was subtracted, one row and one decomposition at a time, in float64."""
    num_slots = 2 * size if shrink_at > size else size
    buffer = np.zeros((num_slots, rows.shape[1]))
    filled = 0
    removed = []

    def shrink(buffer):
        _, values, axes = np.linalg.svd(buffer)
        values = np.pad(values, (0, num_slots - len(values)))
        removed.append(values[shrink_at - 1] ** 2)
        squares = np.maximum(values**2 - removed[-1], 0)
        smaller = np.zeros_like(buffer)
        rank = min(shrink_at - 1, len(axes))
        smaller[:rank] = np.sqrt(squares[:rank, None]) * axes[:rank]
        return smaller

    for row in np.float64(rows):
        if filled == num_slots:
            buffer = shrink(buffer)
            filled = shrink_at - 1
        buffer[filled] = row
        filled += 1
    return shrink(buffer) if num_slots > size else buffer, removed


@functools.cache
def empty(variant="default", dim=DIM):
    size, shrink_at, _ = VARIANTS[variant]
    return fd.init(size, dim, house.dtype(), shrink_at=shrink_at)


def state_of(rows, variant="default"):
    return fd.update(empty(variant, rows.shape[1]), rows)


def loss(rows, sketch):
    """Return the eigenvalues of A'A - B'B, ascending."""
    A = np.float64(rows)
    B = np.float64(sketch.rows)
    return np.linalg.eigvalsh(A.T @ A - B.T @ B)


def allowance(rows):
    """Return the rounding that `finalize` states, with a shrink for every row, each of |B|_F^2 <= |A|_F^2."""
    return eps() * (8 + rows.shape[1] / 12 + 4 * len(rows)) * squared(rows)


def check(rows, sketch, variant="default"):
    """Assert all that holds of a sketch of these rows."""
    size, shrink_at, bound = VARIANTS[variant]
    sketch = jax.device_get(sketch)
    slack = allowance(rows)
    assert sketch.finite, "finite"
    assert sketch.num_rows == len(rows), "the number of rows"
    energy = squared(rows)
    gap = abs(sketch.squared_norm - energy)
    # The sum is compensated, so that its error does not grow with the number of rows.
    assert gap <= 10 * eps() * energy, "|A|^2"
    lost = loss(rows, sketch)
    assert lost[0] >= -slack, "more than there was"
    # Without slack: the certificate has an allowance for rounding of its own.
    shrinkage = float(sketch.shrinkage)
    assert np.abs(lost).max() <= shrinkage, "the certificate"
    squares = np.linalg.svd(np.float64(rows), compute_uv=False) ** 2
    for k in range(shrink_at):
        limit = bound(residual_energy=squares[k:].sum(), sketch_size=size, rank=k)
        assert shrinkage <= limit.value + slack, "the bound"
    assert (np.diff(sketch.singular_values) <= 0).all(), "the order"
    gap = sketch.basis.T @ sketch.basis - np.diag(np.arange(size) < sketch.rank)
    assert np.abs(gap).max() <= 20 * eps(), "the basis"


def check_transcribed(rows, sketch, variant="default"):
    """Assert that a sketch is the literal one: a shrink moves B'B by no more than a change of its input does."""
    size, shrink_at, _ = VARIANTS[variant]
    check(rows, sketch, variant)
    expected, removed = literal(rows, size, shrink_at)
    B = np.float64(sketch.rows)
    close(B.T @ B, expected.T @ expected, 2 * allowance(rows))
    close(sketch.shrinkage, sum(removed), 2 * allowance(rows))


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_sketch_is_the_literal_one_within_its_certificate_and_the_proved_bounds(
    variant,
):
    for rows in streams().values():
        check_transcribed(rows, fd.finalize(state_of(rows, variant)), variant)


@pytest.mark.parametrize("variant", TWO)
def test_merges_in_any_order_obey_the_bounds_of_one_stream(variant):
    merge = fd.merge
    for rows in streams().values():
        a, b, c = (state_of(part, variant) for part in np.split(rows, 3))
        check(rows, fd.finalize(merge(merge(a, b), c)), variant)
        turned = merge(merge(empty(variant), c), merge(b, a))
        check(rows, fd.finalize(turned), variant)


@given(case=drawn())
@example(case=PLAIN)
def test_sketches_of_whatever_is_drawn_obey_them_too(case):
    """Rows are coordinates of sections in DIM dimensions, and weights range over powers of ten."""
    rows = case.exact().FX[:, -DIM:].astype(house.dtype())
    weights = np.asarray(case.given()[3])
    weighted = np.sqrt(weights)[:, None] * rows
    for variant in TWO:
        sketch = fd.finalize(fd.update(empty(variant), rows, weights))
        # A row of weight 0 does not exist.
        check_transcribed(weighted[weights > 0], sketch, variant)


@pytest.mark.parametrize("variant", TWO)
def test_batches_do_not_matter_and_rows_left_in_the_buffer_count(variant):
    """After every single row the sketch is the one of all rows so far."""
    rows = streams()["decaying"]
    state = empty(variant)
    for count in range(1, N + 1):
        state = fd.update(state, rows[count - 1 : count])
        check_transcribed(rows[:count], fd.finalize(state), variant)
    assert int(state.filled) == int(state_of(rows, variant).filled)


@pytest.mark.parametrize("variant", [*TWO, "every row"])
def test_wrong_sketches_are_caught(variant):
    rows = streams()["decaying"]
    sketch = fd.finalize(state_of(rows, variant))
    size, shrink_at, _ = VARIANTS[variant]
    _, removed = literal(rows, size, shrink_at)
    # What Lemma 3.3 would give if rows left in the buffer did not count.
    without_the_last = {"shrinkage": float(sketch.shrinkage) - removed[-1]}
    energy = squared(rows)
    dropped = vars(fd.finalize(state_of(rows[:DIM], variant)))
    counts = {"num_rows": N, "squared_norm": energy}
    for changes, name in (
        (without_the_last, "the certificate"),
        ({"shrinkage": energy}, "the bound"),
        ({"basis": 3 * np.asarray(sketch.basis)}, "more than there was"),
        (dropped, "the number of rows"),
        (dropped | counts, "the certificate"),
    ):
        with pytest.raises(AssertionError, match=name):
            check(rows, dataclasses.replace(sketch, **changes), variant)


def test_below_the_sketch_size_nothing_is_lost_and_zero_rows_change_nothing():
    """The certificate allows for rounding, and no more. Algorithm 1 with as many rows loses a hundredth."""
    low = streams()["rank 3"]
    zeros = np.zeros_like(low)
    padded = np.concatenate([zeros, low])
    # Fewer columns than the sketch has rows.
    narrow = house.data(shape=house.ODD).X
    for rows, state in (
        (low, state_of(low)),
        (padded, fd.update(state_of(zeros), low)),
        (padded, fd.merge(state_of(low), state_of(zeros))),
        (narrow, state_of(narrow)),
    ):
        sketch = fd.finalize(state)
        check(rows, sketch)
        assert float(sketch.shrinkage) <= allowance(rows)
        assert int(sketch.rank) == min(3, rows.shape[1])
    # Without a shrink the certificate is the allowance for rounding itself.
    expected = eps() * (8 + 1 / 12) * squared(narrow)
    assert_allclose(sketch.shrinkage, expected, rtol=1e-4)
    algorithm_1 = fd.finalize(state_of(low, "Algorithm 1"))
    assert loss(low, algorithm_1).max() > 0.01 * squared(low)


def test_an_empty_stream_has_an_empty_sketch():
    state = empty()
    no_rows = np.zeros((0, DIM), house.dtype())
    for same in (state, fd.update(state, no_rows), fd.merge(state, state)):
        sketch = fd.finalize(same)
        check(no_rows, sketch)
        assert float(sketch.shrinkage) == int(sketch.rank) == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, "large", "negative"])
def test_the_sketch_says_that_a_row_was_not_finite_or_a_weight_negative(bad):
    rows = streams()["random"]
    if bad == "negative":
        state = fd.update(empty(), rows, jnp.asarray(-house.data().weights))
    else:
        # Its square leaves the range of the dtype.
        large = np.finfo(house.dtype()).max ** 0.75
        rows[17, 3] = large if bad == "large" else bad
        state = state_of(rows)
    sketch = fd.finalize(state)
    assert not bool(sketch.finite)
    assert not np.isfinite(float(sketch.shrinkage))
    assert not np.isfinite(sketch.singular_values).any()


def test_merging_streams_that_fit_in_the_buffer_is_exact_and_keeps_the_order():
    rows = streams()["random"][:DIM]
    merged = fd.merge(*map(state_of, np.split(rows, 2)))
    assert np.array_equal(merged.buffer, rows)
    assert not np.asarray(merged.removed).any()


def test_merging_adds_what_both_have_lost():
    """Streams without rows, so that nothing is shrunk meanwhile."""
    losses = np.asarray([1, 2], house.dtype())
    lossy = dataclasses.replace(empty(), removed=losses, magnitude=losses[0])
    merged = fd.merge(lossy, lossy)
    assert float(merged.magnitude) == 2
    # A sum carries its rounding, which counts as the sum does.
    assert np.asarray(merged.removed).sum() == 6


def test_rounding_of_a_long_stream_stays_within_the_certificate():
    """20,000 rows of rank 3 below 5: all that is lost in 5,000 shrinks is rounding, and it must be accounted for."""
    rng = house.rng()
    rows = rng.normal(size=(20_000, 3)) @ rng.normal(size=(3, DIM))
    rows = rows.astype(house.dtype())
    sketch = fd.finalize(state_of(rows))
    error = np.abs(loss(rows, sketch)).max()
    assert eps() * squared(rows) < error <= float(sketch.shrinkage)
    # |B|_F^2 grows linearly to |A|_F^2, half of it on average, and there is a shrink for SIZE rows.
    assert float(sketch.shrinkage) <= allowance(rows) / SIZE


def test_sums_over_many_batches_are_compensated():
    """5,000 batches: a plain sum is off by more than 20 eps."""
    rows = np.full((5_000, 1, 1), 0.1, house.dtype())
    state = fd.init(1, 1, house.dtype())
    state, _ = jax.lax.scan(lambda s, row: (fd.update(s, row), None), state, rows)
    norm = fd.finalize(state).squared_norm
    assert_allclose(norm, squared(rows), rtol=2 * eps())
    # NumPy sums the elements of an array in pairs, but cumulative sums in their order.
    plain = np.cumsum(rows**2)[-1]
    assert abs(plain / squared(rows) - 1) > 20 * eps()


def test_the_number_of_rows_saturates():
    # Eight rows fit below the largest number of 32 bits, and sixteen do not.
    state = dataclasses.replace(empty(), num_rows=np.int32(2**31 - 12))
    rows = streams()["random"][:DIM]
    once = fd.update(state, rows)
    assert int(once.num_rows) == 2**31 - 4
    for longer in (fd.update(once, rows), fd.merge(state, once)):
        assert int(longer.num_rows) == 2**31 - 1


def test_programs_do_not_grow_with_the_batch_and_hold_no_more_than_it():
    counts = set()
    for rows in (50, 5000):
        batch = jax.ShapeDtypeStruct((rows, DIM), house.dtype())
        program = jax.make_jaxpr(fd.update)(empty(), batch)
        counts.add(len(list(equations(program.jaxpr))))
    assert len(counts) == 1
    assert largest_intermediate(fd.update, empty(), batch) <= 5000 * DIM


def test_mapped_streams_may_be_filled_differently():
    """A loop that is mapped goes on until the last stream is done, and the others must not change meanwhile."""
    rows = streams()["random"]
    long = state_of(rows)
    # The first of the merges ends before the second.
    states = (state_of(rows[:DIM]), long)
    both = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    mapped = jax.device_get(jax.vmap(fd.merge, in_axes=(0, None))(both, long))
    for i, state in enumerate(states):
        alone = fd.merge(state, long)
        assert int(mapped.filled[i]) == int(alone.filled)
        # Rows of a buffer are eigenvectors, whose signs are arbitrary.
        close(np.abs(mapped.buffer[i]), np.abs(alone.buffer), allowance(rows))
