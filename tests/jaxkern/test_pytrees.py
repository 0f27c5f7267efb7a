"""Every class of the package that is a PyTree: round trips, what is static, and structures that tell classes apart."""

import dataclasses
import itertools
import pickle
from typing import NamedTuple

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.surface import filled, trees

from jaxkern import pytrees
from jaxkern.features import nystrom
from jaxkern.kernels import Gaussian, Matern32, Polynomial
from jaxkern.pytrees import pytree, static
from jaxkern.rkhs import Covariance, Function, RandomProjection

CLASSES = trees()
of_every_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


def is_static(field):
    return bool(field.metadata.get("static"))


def paths_of(tree):
    return [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(tree)]


def test_the_walk_finds_the_classes():
    names = {cls.__name__ for cls in CLASSES}
    assert {"Gaussian", "Sum", "FromFunction", "Discrete", "Function"} <= names
    assert {"Covariance", "KernelJL", "Bound"} <= names
    assert len(CLASSES) >= 20
    for cls in CLASSES:  # no two share a name
        assert pytrees.CLASSES[pytrees.public_name(cls)] is cls


def test_structures_of_different_classes_differ():
    """With `jax.tree_util.register_dataclass` classes of equally many fields may compare equal."""
    structures = [jax.tree.structure(filled(cls)) for cls in CLASSES]
    for a, b in itertools.combinations(structures, 2):
        assert a != b


@of_every_class
def test_classes_round_trip_with_their_static_fields_in_the_structure(cls):
    instance = filled(cls)
    leaves, structure = jax.tree.flatten(instance)
    fields = dataclasses.fields(cls)
    dynamic = [field.name for field in fields if not is_static(field)]
    assert paths_of(instance) == [f".{name}" for name in dynamic]
    assert leaves == [getattr(instance, name) for name in dynamic]
    again = jax.tree.unflatten(structure, leaves)
    assert type(again) is cls
    assert jax.tree.structure(again) == structure
    for field in fields:
        assert getattr(again, field.name) is getattr(instance, field.name)
        if is_static(field):
            other = object.__new__(cls)
            other.__dict__.update(instance.__dict__ | {field.name: "something else"})
            assert jax.tree.structure(other) != structure


@of_every_class
@pytest.mark.parametrize(
    ("leaf", "text"),
    [
        (None, "None"),
        (jnp.float32(0.1), "0.1"),
        (jax.ShapeDtypeStruct((3, 2), "bfloat16"), "bf16[3,2]"),
    ],
)
def test_classes_are_shown_on_one_line_whatever_their_leaves(cls, leaf, text):
    instance = filled(cls)
    parts = []
    for field in dataclasses.fields(cls):
        value = repr(getattr(instance, field.name)) if is_static(field) else text
        parts.append(f"{field.name}={value}")
    changed = jax.tree.map(lambda _: leaf, instance)
    assert repr(changed) == f"{cls.__name__}({', '.join(parts)})"


def test_what_is_shown_holds_no_data():
    precision = house.dtype().name.replace("float", "f")
    text = (
        "Nystrom(kernel=Gaussian(lengthscale={0}), landmarks=f32[20,3], projection=f32[4,20], eigenvalues=f32[4], "
        "rank={1}, trace_residual={2})"
    ).replace("f32", precision)
    phi = nystrom(Gaussian(2.0), jnp.ones((20, 3)), rank=4)
    assert repr(phi) == text.format("2.0", 1, "0.0")
    shown = []
    jax.jit(lambda phi: shown.append(repr(phi)))(phi)
    assert shown == [text.format(f"{precision}[]", "i32[]", f"{precision}[]")]
    nested = {"key": jax.random.key(0), "f": [len]}
    holder = Holder(nested, (np.float32(0.1),), np.zeros((2, 0), bool))
    text = (
        "Holder(first={'key': key<fry>[], 'f': [len]}, second=(0.1,), third=bool[2,0])"
    )
    assert repr(holder) == text
    deleted = Gaussian(jnp.ones(()))
    deleted.lengthscale.delete()
    assert repr(deleted) == f"Gaussian(lengthscale={precision}[])"


@pytrees.remember
class Holder(NamedTuple):
    first: dict
    second: tuple
    third: jax.Array


@of_every_class
def test_instances_are_frozen_and_rebuilt_from_any_leaves(cls):
    instance = filled(cls)
    names = [field.name for field in dataclasses.fields(cls)]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(instance, names[0] if names else "anything", 1)
    assert type(jax.tree.map(lambda _: object(), instance)) is cls
    # Validation would refuse a negative lengthscale.
    assert type(jax.tree.map(lambda leaf: -leaf, instance)) is cls


def test_the_random_projection_is_a_pytree_of_its_own():
    sigma = Covariance(Gaussian(1.0), house.data().X)
    projection = RandomProjection(jax.random.key(0), sigma, num_features=3)
    leaves, structure = jax.tree.flatten(projection)
    assert type(jax.tree.unflatten(structure, leaves)) is RandomProjection
    assert structure != jax.tree.structure(projection.directions)
    names = ["kernel.lengthscale", "points", "weights"]
    assert paths_of(projection) == [f".directions.{name}" for name in names]


def test_programs_are_cached_by_class_and_static_fields():
    classes = []

    @jax.jit
    def program(kernel):
        classes.append(type(kernel))
        return kernel(jnp.ones(2), jnp.zeros(2))

    for kernel in (Gaussian(1.0), Gaussian(2.0), Matern32(1.0)):
        program(kernel)
    for kernel in (Polynomial(2), Polynomial(2, 2.0), Polynomial(3)):
        program(kernel)
    assert classes == [Gaussian, Matern32, Polynomial, Polynomial]


@pytree
class Line:
    slope: float
    name: str = static(default="line")

    def __post_init__(self):
        if isinstance(self.slope, float) and self.slope < 0:
            raise ValueError("slope must not be negative")


def test_a_class_of_ones_own_declares_leaves_and_static_fields():
    line = Line(2.0)
    assert jax.tree.leaves(line) == [2.0]
    with pytest.raises(ValueError, match="slope"):
        Line(-2.0)
    assert jax.tree.map(lambda leaf: -leaf, line).slope == -2.0
    assert jax.grad(lambda line: 3 * line.slope)(line).slope == 3.0
    doubled = jax.vmap(lambda line: line.slope * 2)(Line(jnp.arange(3.0)))
    assert doubled.tolist() == [0, 2, 4]
    assert dataclasses.replace(line, name="other").name == "other"
    # Compared by identity: leaves may be arrays.
    assert line != Line(2.0)
    assert hash(line) is not None


def test_arrays_of_numpy_may_be_overwritten_after_construction():
    X = np.ones((3, 2))
    sigma = Covariance(Gaussian(X[0]), X, X[:, 0])
    f = Function(Gaussian(1.0), X, X[:, 0])
    X[:] = 0
    for leaf in jax.tree.leaves((sigma, f)):
        assert np.all(np.asarray(leaf) == 1)


def test_instances_survive_pickling():
    f = Function(Gaussian(0.5), jnp.ones((3, 2)), jnp.arange(3.0))
    again = pickle.loads(pickle.dumps(f))
    assert jax.tree.structure(again) == jax.tree.structure(f)
    assert again.weights.tolist() == [0, 1, 2]
