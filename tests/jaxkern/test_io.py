"""Files: every bit comes back, nothing else is run, and what is not such a file is said to be none."""

import copy
import functools
import json
import os
import re
import subprocess
import sys
from typing import NamedTuple

import house
import jax
import numpy as np
import pytest
from house import FEATURES, KERNEL

from jaxkern import features, io, kernels, rkhs
from jaxkern.bounds import sketching
from jaxkern.kmeans import kmeans
from jaxkern.pytrees import CLASSES, fields_of, pytree, remember, static


@pytest.fixture
def path(tmp_path):
    return tmp_path / "object.npz"


def there_and_back(path, obj):
    io.save(path, obj)
    return io.load(path)


def bits(leaf):
    """Return the bits of a leaf, and what it is."""
    if not hasattr(leaf, "dtype"):
        return repr(leaf)
    kind = type(leaf), str(leaf.dtype), leaf.shape
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return kind, np.asarray(leaf).tobytes()


def assert_same(first, second):
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
    map_ = features.nystrom(KERNEL, data.landmarks)
    pca = features.streaming_pca(map_, sketch_size=2, centered=True)
    state = pca.update(pca.init(precision), data.X)
    return {
        "gaussian": kernel,
        "numpy lengthscale": kernels.Laplacian(np.float32(0.1)),
        "polynomial": kernels.Polynomial(3, 0.5, scale),
        "algebra": 2.0 * (kernel + kernels.Linear()) * cauchy,
        "map": map_,
        "covariance": covariance,
        "projection": rkhs.RandomProjection(
            house.key(), covariance, num_features=FEATURES
        ),
        "sketch state": state.sketch,
        "stream": state,
        "streamed map": pca.finalize(state, num_components=2),
        # Rows of weight 0 have the label -1.
        "kmeans": kmeans(house.key(), data.X, FEATURES, weights=data.weights),
        "bound": sketching.projected_inner_products(
            op_norm=0.4, trace3=0.1, d=64.0, tau=3.0
        ),
        "stacked": kernels.Gaussian(jax.device_put(np.ones(2, precision))),
    }


def test_objects_come_back_with_every_bit(path):
    for obj in objects(house.dtype()).values():
        assert_same(there_and_back(path, obj), obj)


def rewrite(path, change):
    """Change the header of a file."""
    with np.load(path) as archive:
        arrays = dict(archive)
    header = change(json.loads(arrays["header"].tobytes()))
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def test_a_field_with_a_default_may_be_missing_in_an_older_file(path):
    io.save(path, features.kernel_pca(KERNEL, house.data().X, num_components=2))

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
        "numpy": [np.int8([1, 2])[::-1], np.float32(0.1), np.bool_(True)],
        "text": np.array("text"),
        "order": np.ones((2, 3)).T * [1, 2],
        "complex": np.array([1 + 2j]),
        "big": 10**30,
        "nothing": None,
        "keys": [house.key(3), jax.random.key(3, impl="rbg")],
        "several keys": jax.random.split(house.key(4), 3),
    }
    again = there_and_back(path, obj)
    assert_same(again, obj)
    assert list(again) == list(obj)
    assert type(again["pair"]) is Pair
    assert again["own"].names == obj["own"].names
    assert [x.hex() for x in again["floats"]] == [x.hex() for x in floats]


def test_equal_objects_give_equal_files(tmp_path):
    contents = []
    for name in ("first", "second"):
        map_ = copy.deepcopy(objects(house.dtype())["map"])
        io.save(tmp_path / name, map_)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]


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
    message = "it names a function, 'half', and holds none; pass functions="
    with pytest.raises(ValueError, match=message):
        io.load(path, functions={"product": product})


def test_traced_values_are_not_saved(path):
    def save(x):
        io.save(path, kernels.Gaussian(x))

    message = r"obj.lengthscale is a traced value; save outside of jit"
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(save, 1.0)


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    io.save(path, 1)

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        io.save(path, 2)
    assert io.load(path) == 1
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
    rewrite(path, lambda header: header | changes)
    with pytest.raises(ValueError, match=message) as error:
        io.load(path)
    assert str(path) in str(error.value)


BAD_FIELDS = [
    ("gaussian", "lengthscale", np.float32(-1)),
    ("polynomial", "offset", -1.0),
    ("polynomial", "degree", True),
    ("stacked", "lengthscale", np.array([1.0, 0])),
    ("streamed map", "rank", np.int32(-1)),
    ("streamed map", "mean", np.full(8, np.nan)),
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
    for name in declared:
        io._find(name)  # imports its module
    missing = set()
    for name, cls in CLASSES.items():
        lines = declared.pop(name, {})
        assert set(lines) <= set(fields_of(cls))
        for line in lines.values():
            shapes = re.findall(r"\(.*?\)", line)
            assert all(shape in cls.__doc__ for shape in shapes[:1])
        for field, annotation in cls.__annotations__.items():
            if annotation == "jax.Array" and field not in lines:
                missing.add(f"{name}.{field}")
    assert not declared
    # Of this module, which has no such lines, and of the package.
    assert {name for name in missing if name.startswith("jaxkern.")} == {
        "jaxkern.landmarks.Reservoir.key",
        "jaxkern.regression.CertifiedHead.training_bound",
        "jaxkern.regression.Head.coefficients",
        "jaxkern.regression.Head.residual",
        "jaxkern.regression.RidgeState.products",
        "jaxkern.regression.RidgeState.squares",
    }


def test_archives_of_other_kinds_are_refused(path):
    np.savez(path, x=np.ones(2))
    with pytest.raises(ValueError, match=r"not one written by jaxkern.io.save"):
        io.load(path)
    with pytest.raises(FileNotFoundError):
        io.load(path.with_name("nowhere"))


def test_every_truncation_is_noticed(path):
    io.save(path, kernels.Gaussian(np.ones(3, np.float32)))
    content = path.read_bytes()
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        message = r"truncated or damaged|not a file written by"
        with pytest.raises(ValueError, match=message):
            io.load(path)
