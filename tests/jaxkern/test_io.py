"""Files: every bit comes back, nothing else is run, and what is not such a file is said to be none."""

import contextlib
import copy
import functools
import json
import os
import subprocess
import sys
import zipfile
from typing import NamedTuple

import house
import jax
import numpy as np
import pytest

from jaxkern import features, io, kernels, rkhs
from jaxkern import frequent_directions as fd
from jaxkern.bounds import sketching
from jaxkern.kmeans import kmeans
from jaxkern.pytrees import CLASSES, fields_of, public_name, pytree, remember, static


@pytest.fixture
def path(tmp_path):
    return tmp_path / "object.npz"


def there_and_back(path, obj):
    io.save(path, obj)
    return io.load(path)


def bits(leaf):
    """Return the bits of a leaf, and what it is."""
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(
        leaf.dtype, jax.dtypes.prng_key
    ):
        return (
            str(leaf.dtype),
            leaf.shape,
            np.asarray(jax.random.key_data(leaf)).tobytes(),
        )
    kind = jax.Array if isinstance(leaf, jax.Array) else type(leaf)
    if hasattr(leaf, "dtype"):
        return kind, str(leaf.dtype), leaf.shape, np.asarray(leaf).tobytes()
    return kind, repr(leaf)


def assert_same(first, second):
    assert type(first) is type(second)
    assert jax.tree.structure(first) == jax.tree.structure(second)
    assert [*map(bits, jax.tree.leaves(first))] == [*map(bits, jax.tree.leaves(second))]


@functools.cache
def objects(precision):
    """Return objects of every kind, by name, in the precision of the environment."""
    data = house.data()
    scale = jax.device_put(np.asarray(1.5, precision))
    kernel = kernels.Gaussian(scale)
    cauchy = kernels.Cauchy(scale)
    covariance = rkhs.Covariance(kernel, data.X, centered=True)
    map_ = features.nystrom(house.KERNEL, data.landmarks)
    pca = features.streaming_pca(map_, sketch_size=2, centered=True)
    state = pca.update(pca.init(precision), data.X)
    return {
        "gaussian": kernel,
        "python lengthscale": kernels.Matern32(0.1),
        "numpy lengthscale": kernels.Laplacian(np.float32(0.1)),
        "polynomial": kernels.Polynomial(3, 0.5, scale),
        "algebra": 2.0 * (kernel + kernels.Linear()) * cauchy,
        "function": rkhs.Function(kernel, data.X, data.values),
        "map": map_,
        "covariance": covariance,
        "projection": rkhs.RandomProjection(
            house.key(), covariance, num_features=house.FEATURES
        ),
        "sketch state": state.sketch,
        "sketch": fd.finalize(state.sketch),
        "stream": state,
        "streamed map": pca.finalize(state, num_components=2),
        # Rows of weight 0 have the label -1.
        "kmeans": kmeans(house.key(), data.X, house.FEATURES, weights=data.weights),
        "bound": sketching.projected_inner_products(
            op_norm=0.4, trace3=0.1, d=64.0, tau=3.0
        ),
        "stacked": kernels.Gaussian(jax.device_put(np.ones(2, precision))),
    }


def test_objects_come_back_with_every_bit(path):
    for name, obj in objects(house.dtype()).items():
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        assert_same(there_and_back(path, obj), obj)
        assert path.exists(), name


def test_every_class_of_the_package_round_trips_by_its_own_name():
    """By the private halves of `save` and `load`: no instance of numbers alone is as its class documents it."""
    ours = {name: cls for name, cls in CLASSES.items() if name.startswith("jaxkern.")}
    assert {"jaxkern.features.Nystrom", "jaxkern.kernels.Gaussian"} <= set(ours)
    for number, (name, cls) in enumerate(sorted(ours.items())):
        obj = object.__new__(cls)
        for field in fields_of(cls):
            object.__setattr__(obj, field, number)
        again = io._decode(io._encode(obj, "obj", {}, {}), {}, {})
        assert type(again) is cls
        assert public_name(cls) == name
        assert all(getattr(again, field) == number for field in fields_of(cls))


def rewrite(path, change):
    """Change the header of a file."""
    with np.load(path) as archive:
        arrays = dict(archive)
    header = change(json.loads(arrays["header"].tobytes()))
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def test_a_field_with_a_default_may_be_missing_in_an_older_file(path):
    ones = np.ones(2, np.float32)
    matrices = {
        "landmarks": np.eye(2, dtype=np.float32),
        "projection": np.outer(ones, ones),
    }
    scalars = {"rank": np.int32(2), "total_variance": ones[0], "mean_square": ones[0]}
    vectors = {"offset": ones, "eigenvalues": ones}
    io.save(path, features.KernelPCA(house.KERNEL, **matrices, **vectors, **scalars))

    def older(header):
        assert header["object"]["fields"].pop("weights") is None
        return header

    rewrite(path, older)
    assert io.load(path).weights is None


@remember
class Pair(NamedTuple):
    first: jax.Array
    second: dict


@pytree
class Own:
    matrix: jax.Array
    names: tuple = static()


def test_containers_numbers_and_classes_of_ones_own(path):
    floats = [0.1, -0.0, float("inf"), 5e-324, 1e308]
    obj = {
        "pair": Pair(np.arange(3), {"a": (1, [True, None], "text"), "": ()}),
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
        "several keys": jax.random.split(house.key(4), 3),
    }
    again = there_and_back(path, obj)
    assert_same(again, obj)
    assert list(again) == list(obj)
    assert type(again["pair"]) is Pair
    assert again["own"].names == obj["own"].names
    for first, second in zip(again["floats"], floats, strict=True):
        assert first.hex() == second.hex()


def test_equal_objects_give_equal_files(tmp_path):
    for name in ("first", "second"):
        map_ = jax.tree.map(lambda leaf: leaf, objects(house.dtype())["map"])
        io.save(tmp_path / name, map_)
    first = (tmp_path / "first").read_bytes()
    assert first == (tmp_path / "second").read_bytes()


PROGRAM = """
import dataclasses, sys
import numpy as np
from jaxkern import io
phi = io.load(sys.argv[1])
print(phi.num_features)
for changes in ({"eigenvalues": phi.eigenvalues * np.nan}, {"rank": phi.rank + 99}):
    try:
        io.save(sys.argv[1], dataclasses.replace(phi, **changes))
    except ValueError as error:
        print(str(error).split()[0])
"""


def test_a_new_process_finds_the_classes_and_validates_without_docstrings(path):
    """`python -OO` has none: a NaN and a rank that is too large were saved and read."""
    io.save(path, objects(house.dtype())["map"])
    call = [sys.executable, "-OO", "-c", PROGRAM, str(path)]
    variables = {"JAX_ENABLE_X64": str(house.dtype() == np.float64)}
    environment = os.environ | variables
    done = subprocess.run(
        call, capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert done.stdout.split() == ["8", "obj.eigenvalues", "obj.rank"], done.stderr


def product(x, y):
    return x @ y


def test_functions_are_kept_by_name_and_asked_for(path):
    half = kernels.FromFunction(lambda x, y: product(x, y) / 2, sup=1.0)
    kernel = kernels.FromFunction(product) + half
    io.save(path, [kernel, product], functions={"half": half.function})
    named = {"product": product, "half": half.function}
    again, function = io.load(path, functions=named)
    assert_same(again, kernel)
    assert function is product
    for missing in named:
        others = {name: named[name] for name in named if name != missing}
        message = f"it names a function, '{missing}', and holds none; pass functions="
        with pytest.raises(ValueError, match=message):
            io.load(path, functions=others)


def test_traced_values_are_not_saved(path):
    def save(x):
        io.save(path, kernels.Gaussian(x))

    message = r"obj.lengthscale is a traced value; save outside of jit"
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(save, 1.0)


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    io.save(path, [1, 2])

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        io.save(path, [3, 4])
    assert io.load(path) == [1, 2]
    assert os.listdir(path.parent) == [path.name]


def test_double_precision_needs_its_switch(path):
    """Arrays of NumPy do not need it."""
    with jax.enable_x64(True):
        io.save(path, jax.device_put(np.ones(2)))
    message = r"a JAX array of dtype float64, which needs jax.config.update"
    with jax.enable_x64(False):
        with pytest.raises(ValueError, match=message):
            io.load(path)
        assert there_and_back(path, {"n": np.ones(2)})["n"].dtype == np.float64


OTHER_FIELDS = {"class": "jaxkern.kernels.Gaussian", "fields": {"width": 1}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"version": 2, "jaxkern": "9.1"},
            "has format version 2, written by jaxkern 9.1; .* upgrade it",
        ),
        ({"format": "other"}, "not one written by jaxkern.io.save"),
        (None, "not one written by jaxkern.io.save"),
        ({"object": {}}, "cannot be read|is damaged"),
        ({"object": {"jax": "7"}}, "is damaged: its header and its arrays"),
        (
            {"object": OTHER_FIELDS},
            r"fields \['width'\], this jaxkern has \['lengthscale'\]",
        ),
    ],
)
def test_headers_that_do_not_fit_are_refused(changes, message, path):
    io.save(path, kernels.Gaussian(np.ones(3, np.float32)))
    rewrite(path, lambda header: [header] if changes is None else header | changes)
    with pytest.raises(ValueError, match=message) as error:
        io.load(path)
    assert str(path) in str(error.value)


BAD_FIELDS = [
    ("gaussian", "lengthscale", np.float32(-1)),
    ("polynomial", "offset", -1.0),
    ("polynomial", "degree", True),
    ("stacked", "lengthscale", np.array([1.0, 0])),
    ("covariance", "points", np.ones(24)),
    ("streamed map", "rank", np.int32(-1)),
    ("streamed map", "mean", np.full(8, np.nan)),
    ("streamed map", "components", np.ones((1, 8))),
    ("streamed map", "features", None),
    ("sketch state", "filled", np.int32(99)),
    ("sketch state", "buffer", np.ones((5, 8))),
    ("kmeans", "labels", np.full(24, 4, np.int32)),
]


@pytest.mark.parametrize(("name", "field", "value"), BAD_FIELDS)
def test_what_is_not_as_its_class_documents_it_is_neither_written_nor_read(
    name, field, value, path, monkeypatch
):
    obj = copy.copy(objects(house.dtype())[name])
    object.__setattr__(obj, field, value)
    with pytest.raises(ValueError, match=r"does not fit, |must (be|have)"):
        io.save(path, obj)
    with monkeypatch.context() as unchecked:  # no public function writes such a file
        unchecked.setattr(io, "_validate", lambda value, where: None)
        io.save(path, obj)
    with pytest.raises(ValueError, match=r"does not fit, |must (be|have)"):
        io.load(path)


def test_an_empty_array_of_a_vast_shape_is_not_read(path):
    io.save(path, np.zeros((0, 2**30), np.float32))
    with pytest.raises(ValueError, match="declares the shape"):
        io.load(path)


def test_declared_fields_are_those_of_the_classes():
    """Shapes stand in the docstrings too; a shape with an alternative is not declared. Nothing public tells them."""
    declared = io._declared()
    for name, lines in declared.items():
        cls = io._find(name)
        assert set(lines) <= set(fields_of(cls))
        for line in lines.values():
            shape = line[line.find("(") : line.find(")") + 1] if "(" in line else ""
            assert shape in cls.__doc__
    missing = set()
    for name, cls in CLASSES.items():
        if not name.startswith("jaxkern."):
            continue
        for field, annotation in cls.__annotations__.items():
            if annotation == "jax.Array" and field not in declared.get(name, {}):
                missing.add(f"{name}.{field}".removeprefix("jaxkern."))
    assert missing == {
        "landmarks.Reservoir.key",
        "regression.CertifiedHead.training_bound",
        "regression.Head.coefficients",
        "regression.Head.residual",
        "regression.RidgeState.products",
        "regression.RidgeState.squares",
    }


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
    io.save(path, kernels.Gaussian(np.ones(3, np.float32)))
    content = path.read_bytes()
    ends = range(len(content) - 30, len(content))
    for size in [*range(0, len(content), 37), *ends]:
        path.write_bytes(content[:size])
        message = r"truncated or damaged|not a file written by"
        with pytest.raises(ValueError, match=message):
            io.load(path)
