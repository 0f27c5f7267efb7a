"""Mapping in blocks: the same numbers for every block size and container, one compilation, nothing lost."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import features, scale
from jaxkern.kernels import Gaussian

N, DIM = 103, 3


@pytest.fixture
def phi(rng):
    landmarks = jnp.asarray(rng.normal(size=(9, DIM)), jnp.float32)
    return features.kernel_jl(jax.random.key(0), Gaussian(1.0), landmarks, num_features=5, centered=True)


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, DIM)).astype(np.float32)


def tolerance(Z):
    return 100 * np.finfo(np.float32).eps * np.abs(Z).max()


@pytest.mark.parametrize("block_size", [1, 10, 50, N, 1000, None])
def test_block_sizes_do_not_change_the_numbers(phi, X, block_size):
    Z = np.asarray(phi(X))
    found = scale.embed(phi, X, block_size=block_size)
    assert isinstance(found, np.ndarray) and found.dtype == np.float32
    np.testing.assert_allclose(found, Z, atol=tolerance(Z))


def test_jax_arrays_files_and_iterators_give_the_same(phi, X, tmp_path):
    Z = scale.embed(phi, X, block_size=20)
    assert np.array_equal(scale.embed(phi, jnp.asarray(X), block_size=20), Z)
    np.save(tmp_path / "points.npy", X)
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    out = np.lib.format.open_memmap(tmp_path / "features.npy", "w+", np.float32, (N, 5))
    assert scale.embed(phi, mapped, block_size=20, out=out) is out
    out.flush()
    assert np.array_equal(np.load(tmp_path / "features.npy"), Z)
    pieces = [X[:1], X[1:1], X[1:40], X[40:]]
    blocks = scale.embed(phi, iter(pieces), block_size=20)
    found = list(blocks)
    assert [len(b) for b in found] == [1, 0, 39, 63]
    np.testing.assert_allclose(np.concatenate(found), Z, atol=tolerance(Z))
    again = scale.embed(phi, (p for p in pieces), block_size=20, out=np.empty((N, 5), np.float32))
    assert np.array_equal(again, np.concatenate(found))


def test_one_program_serves_every_number_of_points(phi, X):
    before = scale._apply._cache_size()
    for count in (20, 1, 39, 77, N):
        scale.embed(phi, X[:count], block_size=23)
    list(scale.embed(phi, [X[:7], X[7:50]], block_size=23))
    assert scale._apply._cache_size() == before + 1


def test_iterators_are_read_one_block_at_a_time(phi, X):
    taken = []

    def source():
        for start in range(0, N, 10):
            taken.append(start)
            yield X[start : start + 10]

    blocks = scale.embed(phi, source())
    assert taken == []
    next(blocks)
    assert taken == [0]


def test_a_plain_function_is_a_map(X):
    found = scale.embed(lambda x: jnp.cos(x[:, :2]), X, block_size=20)
    np.testing.assert_allclose(found, np.cos(X[:, :2]), atol=1e-6)


def test_no_points_give_no_features(phi, X):
    assert scale.embed(phi, X[:0]).shape == (0, 5)


def test_float64_is_kept(rng, x64):
    X = rng.normal(size=(30, DIM))
    phi = features.nystrom(Gaussian(1.0), jnp.asarray(X[:9]))
    Z = scale.embed(phi, X, block_size=7)
    assert Z.dtype == np.float64
    np.testing.assert_allclose(Z, phi(X), atol=1e-12)


def test_what_does_not_fit_is_named(phi, X):
    bad = {
        "block_size": lambda: scale.embed(phi, X, block_size=0),
        "rank 2": lambda: scale.embed(phi, X[0]),
        "floating|float32": lambda: scale.embed(phi, X.astype(int)),
        "enable float64": lambda: scale.embed(phi, X.astype(np.float64)),
        "iterable": lambda: scale.embed(phi, 3.0),
        "feature map": lambda: scale.embed(None, X),
        "out must": lambda: scale.embed(phi, X, out=np.empty((N, 4), np.float32)),
        "out must have as many rows": lambda: scale.embed(phi, [X], out=np.empty((N + 1, 5), np.float32)),
        "room": lambda: scale.embed(phi, [X], out=np.empty((N - 1, 5), np.float32)),
        "dtype": lambda: scale.embed(phi, X, out=np.empty((N, 5), np.float64)),
        "map \\(n, dim\\)": lambda: scale.embed(jnp.sum, X),
    }
    for message, call in bad.items():
        with pytest.raises(ValueError, match=message):
            call()
    frozen = np.empty((N, 5), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        scale.embed(phi, X, out=frozen)
