"""Files: every bit comes back, nothing else is run, and what is not such a file is said to be none."""

import contextlib
import copy
import itertools
import json
import os
import subprocess
import sys
import zipfile
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import features, io, kernels, rkhs
from jaxkern import frequent_directions as fd
from jaxkern.bounds import sketching
from jaxkern.kmeans import kmeans
from jaxkern.pytrees import CLASSES, fields_of, public_name, pytree, remember, static


def points(dtype="float32", seed=0, num=20):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(num, 3)), dtype)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "object.npz"


def there_and_back(path, obj):
    io.save(path, obj)
    return io.load(path)


def plain(leaf):
    """Return the bits of a leaf, and what it is."""
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return (
            jax.Array,
            str(leaf.dtype),
            leaf.shape,
            np.asarray(jax.random.key_data(leaf)).tobytes(),
        )
    kind = jax.Array if isinstance(leaf, jax.Array) else type(leaf)
    if hasattr(leaf, "dtype"):
        return kind, str(leaf.dtype), leaf.shape, np.asarray(leaf).tobytes()
    return kind, repr(leaf)


def assert_same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for first, second in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert plain(first) == plain(second)


def sized(cls, dtype):
    return cls(jnp.asarray(1.5, dtype))


@cache
def objects(dtype):
    """Return what builds objects of every kind, by name."""
    k, X = kernels.Gaussian(jnp.asarray(1.5, dtype)), points(dtype)

    @cache
    def stream():
        pca = features.streaming_pca(
            features.nystrom(k, X[:6]), sketch_size=3, centered=True
        )
        return pca, pca.update(pca.init(), X)

    return {
        "gaussian": lambda: k,
        "python lengthscale": lambda: kernels.Matern32(0.1),
        "numpy lengthscale": lambda: kernels.Laplacian(np.float32(0.1)),
        "polynomial": lambda: kernels.Polynomial(3, 0.5, jnp.asarray(2.0, dtype)),
        "algebra": lambda: 2.0 * (k + kernels.Linear()) * sized(kernels.Cauchy, dtype),
        "function": lambda: rkhs.Function(k, X, jnp.ones((20, 2), dtype)),
        "weighted map": lambda: features.kernel_pca(
            k, X, num_components=2, weights=jnp.arange(20, dtype=dtype)
        ),
        "covariance": lambda: rkhs.Covariance(k, X, centered=True),
        "projection": lambda: rkhs.RandomProjection(
            jax.random.key(0), rkhs.Covariance(k, X), num_features=4
        ),
        "sketch state": lambda: stream()[1].sketch,
        "sketch": lambda: fd.finalize(stream()[1].sketch),
        "stream": lambda: stream()[1],
        "streamed map": lambda: stream()[0].finalize(stream()[1], num_components=2),
        "kmeans": lambda: kmeans(jax.random.key(2), X, 3),
        "bound": lambda: sketching.projected_inner_products(
            op_norm=0.4, trace3=0.1, d=64.0, tau=3.0
        ),
        "stacked": lambda: jax.tree.map(lambda a: jnp.stack([a, a]), k),
    }


NAMES = tuple(objects("float32"))


@cache
def built(name, dtype="float32"):
    """Return an object, built once for each dtype that is asked for."""
    with jax.enable_x64(dtype == "float64"):
        return objects(dtype)[name]()


@pytest.mark.parametrize("name", NAMES)
def test_objects_come_back_with_every_bit(name, path, dtype):
    obj = built(name, str(dtype))
    again = there_and_back(path, obj)
    assert type(again) is type(obj)
    assert_same(again, obj)


def test_a_stream_resumes_bitwise_after_every_batch(path):
    X = points(num=30)
    pca = features.streaming_pca(
        features.nystrom(kernels.Gaussian(1.0), X[:6]), sketch_size=2, centered=True
    )
    kept = stored = pca.init()
    for batch in X.reshape(5, 6, 3):
        kept, stored = (
            pca.update(kept, batch),
            pca.update(there_and_back(path, stored), batch),
        )
        assert_same(kept, stored)
    finals = [pca.finalize(state, num_components=2) for state in (kept, stored)]
    assert all(
        np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, finals), strict=True)
    )


def test_every_class_of_the_package_round_trips_by_its_own_name():
    ours = {name: cls for name, cls in CLASSES.items() if name.startswith("jaxkern.")}
    assert {
        "jaxkern.features.Nystrom",
        "jaxkern.kernels.Gaussian",
        "jaxkern.rkhs.RandomProjection",
    } <= set(ours)
    for number, (name, cls) in enumerate(sorted(ours.items())):
        obj = object.__new__(cls)
        for field in fields_of(cls):
            object.__setattr__(obj, field, jnp.float32(number))
        arrays = {}
        again = io._decode(io._encode(obj, "obj", arrays, {}), arrays, {})
        assert type(again) is cls and public_name(cls) == name
        assert all(float(getattr(again, field)) == number for field in fields_of(cls))


def test_a_field_with_a_default_may_be_missing_in_an_older_file(x64):
    arrays = {}
    node = io._encode(built("weighted map", "float64"), "obj", arrays, {})
    del node["fields"]["weights"]
    assert io._decode(node, arrays, {}).weights is None


@remember
class Pair(NamedTuple):
    first: jax.Array
    second: dict


@pytree
class Own:
    matrix: jax.Array
    names: tuple = static()


class Forgotten(NamedTuple):
    first: int


def test_containers_numbers_and_classes_of_ones_own(path):
    floats = [0.1, -0.0, float("inf"), 5e-324, 1e308]
    obj = {
        "pair": Pair(jnp.arange(3), {"a": (1, [True, None], "text"), "": ()}),
        "own": Own(np.ones((2, 0), np.float16), ("a", 2, (0.25, None))),
        "floats": floats,
        "nan": float("nan"),
        "numpy": [
            np.arange(4, dtype=np.int8)[::-1],
            np.float32(0.1),
            np.bool_(True),
            np.array("text"),
            np.array(2.0),
        ],
        "order": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "complex": np.array([1 + 2j]),
        "big": 10**30,
        "nothing": None,
        "keys": [jax.random.key(3, impl=name) for name in ("threefry2x32", "rbg")],
        "several keys": jax.random.split(jax.random.key(4), 3),
    }
    again = there_and_back(path, obj)
    assert_same(again, obj)
    assert (
        list(again) == list(obj)
        and type(again["pair"]) is Pair
        and again["own"].names == obj["own"].names
    )
    assert [value.hex() for value in again["floats"]] == [
        value.hex() for value in floats
    ]


def test_equal_objects_give_equal_files(tmp_path):
    for name in "ab":
        io.save(tmp_path / name, fd.update(fd.init(2, 3), points()))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_new_process_finds_the_classes(path):
    io.save(path, built("streamed map"))
    code = f"from jaxkern import io; print(io.load({str(path)!r}).num_features)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "2"


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (
            kernels.FromFunction(lambda x, y: x @ y),
            "obj.function is a function without a name, .*; pass functions=",
        ),
        (
            {
                "f": rkhs.Function(
                    kernels.FromFunction(partial(max, 1)), np.ones(1), np.ones(1)
                )
            },
            r"obj\['f'\].kernel.function is a function without a name",
        ),
        ([len, max, np.max], r"obj\[2\] is another function with the name 'max'"),
        ([1, object()], r"obj\[1\] is of type object, which cannot be saved"),
        (Forgotten(1), "obj is of type Forgotten, which cannot be saved"),
        ({1: 2}, "obj is of type dict, which cannot be saved"),
        (np.array([None]), "obj has dtype object, which cannot be saved"),
        (np.zeros(2, "i4,f4"), "obj has dtype .* cannot be saved"),
        (jnp.ones(2, jnp.bfloat16), "obj has dtype bfloat16, which cannot be saved"),
        (float, "obj is of type type, which cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_named_and_leaves_no_file(obj, message, path):
    with pytest.raises(ValueError, match=message):
        io.save(path, obj)
    assert os.listdir(path.parent) == []


def product(x, y):
    return x @ y


def test_functions_are_kept_by_name_and_asked_for(path):
    half = kernels.FromFunction(lambda x, y: product(x, y) / 2, sup=1.0)
    phi = features.nystrom(kernels.FromFunction(product) + half, points()[:4])
    io.save(path, [phi, product], functions={"half": half.function})
    given = {"product": product, "half": half.function}
    again, function = io.load(path, functions=given)
    assert_same(again, phi)
    assert function is product and np.array_equal(again(points()), phi(points()))
    for missing in given:
        others = {name: f for name, f in given.items() if name != missing}
        with pytest.raises(
            ValueError,
            match=f"it names a function, '{missing}', and holds none; pass functions=",
        ):
            io.load(path, functions=others)
    for wrong in ([product], {"product": 1}, {1: product}):
        with pytest.raises(
            ValueError, match="functions must be a dict of functions by name, got"
        ):
            io.load(path, functions=wrong)


def test_traced_values_are_not_saved(path):
    def save(x):
        io.save(path, kernels.Gaussian(x))
        return x

    with pytest.raises(
        ValueError, match=r"obj.lengthscale is a traced value; save outside of jit"
    ):
        jax.jit(save)(1.0)


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    io.save(path, [1, 2])

    def fail(*args, **kwargs):
        args[0].write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        io.save(path, [3, 4])
    assert io.load(path) == [1, 2] and os.listdir(path.parent) == [path.name]


def test_double_precision_needs_its_switch(path):
    with jax.enable_x64(True):
        io.save(path, {"x": points("float64"), "n": np.ones(2)})
    with pytest.raises(
        ValueError, match=r"a JAX array of dtype float64, which needs jax.config.update"
    ):
        io.load(path)
    io.save(path, {"n": np.ones(2)})
    assert io.load(path)["n"].dtype == np.float64  # NumPy's own do not


def rewrite(path, change):
    """Change the header of a file."""
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(arrays["header"].tobytes())
    arrays["header"] = np.frombuffer(json.dumps(change(header)).encode(), np.uint8)
    with open(path, "wb") as file:
        np.savez(file, **arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda h: h | {"version": 2, "jaxkern": "9.1"},
            "has format version 2, written by jaxkern 9.1; .* upgrade it",
        ),
        (lambda h: h | {"format": "other"}, "not one written by jaxkern.io.save"),
        (lambda h: [h], "not one written by jaxkern.io.save"),
        (
            lambda h: {k: v for k, v in h.items() if k != "object"},
            "is damaged: its header and its arrays",
        ),
        (
            lambda h: (
                h
                | {
                    "object": {
                        "class": "jaxkern.kernels.Gaussian",
                        "fields": {"width": 1},
                    }
                }
            ),
            r"fields \['width'\], this jaxkern has \['lengthscale'\]",
        ),
    ],
)
def test_headers_that_do_not_fit_are_refused(change, message, path):
    io.save(path, kernels.Gaussian(jnp.ones(3, jnp.float32)))
    rewrite(path, change)
    with pytest.raises(ValueError, match=message) as error:
        io.load(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("gaussian", "lengthscale", jnp.float32(-1)), ("polynomial", "offset", -1.0), ("polynomial", "degree", True),
        ("stacked", "lengthscale", jnp.array([1.0, 0])), ("covariance", "points", jnp.ones(20)),
        ("streamed map", "rank", jnp.int32(-1)), ("streamed map", "mean", jnp.full(6, jnp.nan)),
        ("streamed map", "components", jnp.ones((1, 6))), ("streamed map", "features", None),
        ("sketch state", "filled", jnp.int32(99)), ("sketch state", "buffer", jnp.ones((5, 6))),
        ("kmeans", "labels", jnp.full(20, 3, jnp.int32)), ("function", "points", jnp.zeros((0, 2**30))),
    ],
)  # fmt: skip
def test_what_is_not_as_its_class_documents_it_is_neither_written_nor_read(
    name, field, value, path
):
    obj, empty = copy.copy(built(name)), getattr(value, "size", 1) == 0
    object.__setattr__(obj, field, value)
    with (
        contextlib.nullcontext()
        if empty
        else pytest.raises(ValueError, match=r"does not fit, |must (be|have)")
    ):
        io.save(path, obj)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "_validate", lambda value, where: None)
        io.save(path, obj)
    with pytest.raises(
        ValueError,
        match="declares the shape" if empty else r"does not fit, |must (be|have)",
    ):
        io.load(path)


def test_declared_fields_are_those_of_the_classes():
    """Shapes stand in the docstrings too; a shape with an alternative is not declared."""
    declared = io._declared()
    for name, fields in declared.items():
        cls = io._find(name)
        assert set(fields) <= set(fields_of(cls))
        for line in fields.values():
            shape = line[line.find("(") : line.find(")") + 1] if "(" in line else ""
            assert shape in cls.__doc__
    missing = {
        f"{name}.{field}"
        for name, cls in CLASSES.items()
        for field, annotation in cls.__annotations__.items()
        if name.startswith("jaxkern.") and annotation == "jax.Array"
        if field not in declared.get(name, {})
    }
    assert {name.partition(".")[2] for name in missing} == {
        "landmarks.Reservoir.key",
        "regression.CertifiedHead.training_bound",
        "regression.Head.coefficients",
        "regression.Head.residual",
        "regression.RidgeState.products",
        "regression.RidgeState.squares",
    }


def test_fields_are_validated_without_docstrings(path):
    """`python -OO` has none: a NaN and a rank that is too large were saved and read."""
    io.save(path, features.nystrom(kernels.Gaussian(1.0), np.eye(3)))
    program = """
import dataclasses, sys
import numpy as np
from jaxkern import io
phi = io.load(sys.argv[1])
for changes in ({"eigenvalues": phi.eigenvalues * np.nan}, {"rank": phi.rank + 99}):
    try:
        io.save(sys.argv[1], dataclasses.replace(phi, **changes))
    except ValueError as error:
        print(str(error).split()[0])
"""
    call = [sys.executable, "-OO", "-c", program, str(path)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["obj.eigenvalues", "obj.rank"], done.stderr


def test_labels_of_rows_of_weight_zero_are_saved(path):
    X, weights = np.eye(4, dtype=np.float32), np.float32([1, 1, 0, 1])
    found = kmeans(jax.random.key(0), X, 2, weights=weights)
    io.save(path, found)
    assert io.load(path).labels[2] == -1


def test_archives_of_other_kinds_are_refused(path):
    np.savez(path, x=np.ones(2))
    with pytest.raises(ValueError, match=r"not one written by jaxkern.io.save"):
        io.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ValueError, match=r"not one written by jaxkern.io.save"):
        io.load(path)
    with pytest.raises(FileNotFoundError):
        io.load(path.with_name("nowhere"))


def test_every_truncation_is_noticed(path):
    io.save(path, fd.init(2, 3))
    whole = path.read_bytes()
    for size in itertools.chain(
        range(0, len(whole), 37), range(len(whole) - 30, len(whole))
    ):
        path.write_bytes(whole[:size])
        with pytest.raises(
            ValueError, match=r"truncated or damaged|not a file written by"
        ):
            io.load(path)
