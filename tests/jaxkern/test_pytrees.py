"""Every class of the package that is a PyTree: round trips, what is static, and structures that tell classes apart."""

import dataclasses
import itertools
import pickle
from typing import NamedTuple

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


def test_the_walk_finds_the_classes():
    names = {cls.__name__ for cls in CLASSES}
    assert {
        "Gaussian",
        "Sum",
        "FromFunction",
        "Discrete",
        "Function",
        "Covariance",
        "KernelJL",
        "Bound",
    } <= names
    assert len(CLASSES) >= 20
    assert all(
        pytrees.CLASSES[pytrees.public_name(cls)] is cls for cls in CLASSES
    )  # no two share a name


def test_structures_of_different_classes_differ():
    """With `jax.tree_util.register_dataclass` classes of equally many fields may compare equal."""
    structures = {cls: jax.tree.structure(filled(cls)) for cls in CLASSES}
    for a, b in itertools.combinations(CLASSES, 2):
        assert structures[a] != structures[b], (a, b)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_classes_round_trip_with_their_static_fields_in_the_structure(cls):
    instance = filled(cls)
    leaves, structure = jax.tree.flatten(instance)
    fields = dataclasses.fields(cls)
    dynamic = [field.name for field in fields if not field.metadata.get("static")]
    assert [float(leaf) for leaf in leaves] == [
        float(getattr(instance, name)) for name in dynamic
    ]
    again = jax.tree.unflatten(structure, leaves)
    assert type(again) is cls and jax.tree.structure(again) == structure
    for field in fields:
        assert getattr(again, field.name) is getattr(instance, field.name)
    paths = [
        jax.tree_util.keystr(path)
        for path, _ in jax.tree_util.tree_flatten_with_path(instance)[0]
    ]
    assert paths == [f".{name}" for name in dynamic]
    for field in fields:
        if field.metadata.get("static"):
            other = object.__new__(cls)
            other.__dict__.update(instance.__dict__ | {field.name: "something else"})
            assert jax.tree.structure(other) != structure


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_class_is_shown_on_one_line_whatever_its_leaves(cls):
    instance = filled(cls)
    for leaf, shown in (
        (None, "None"),
        (jnp.float32(0.1), "0.1"),
        (jax.ShapeDtypeStruct((3, 2), "bfloat16"), "bf16[3,2]"),
    ):
        parts = (
            f"{field.name}="
            + (
                repr(getattr(instance, field.name))
                if field.metadata.get("static")
                else shown
            )
            for field in dataclasses.fields(cls)
        )
        changed = jax.tree.map(lambda _, leaf=leaf: leaf, instance)
        assert repr(changed) == f"{cls.__name__}({', '.join(parts)})"


def test_what_is_shown_holds_no_data():
    X = jnp.ones((20, 3))
    shown = "Nystrom(kernel=Gaussian(lengthscale={}), landmarks=f32[20,3], projection=f32[4,20], eigenvalues=f32[4], "
    phi = nystrom(Gaussian(2.0), X, rank=4)
    assert repr(phi) == shown.format("2.0") + "rank=1, trace_residual=0.0)"
    traced = []
    jax.jit(lambda phi: traced.append(repr(phi)))(phi)
    assert traced == [shown.format("f32[]") + "rank=i32[], trace_residual=f32[])"]
    held = Holder(
        {"key": jax.random.key(0), "f": [len]},
        (np.float32(0.1),),
        np.zeros((2, 0), bool),
    )
    assert (
        repr(held)
        == "Holder(first={'key': key<fry>[], 'f': [len]}, second=(0.1,), third=bool[2,0])"
    )
    deleted = Gaussian(jnp.ones(()))
    deleted.lengthscale.delete()
    assert repr(deleted) == "Gaussian(lengthscale=f32[])"


@pytrees.remember
class Holder(NamedTuple):
    first: dict
    second: tuple
    third: jax.Array


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_instances_are_frozen_and_rebuilt_from_any_leaves(cls):
    instance = filled(cls)
    name = dataclasses.fields(cls)[0].name if dataclasses.fields(cls) else "anything"
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(instance, name, 1)
    assert type(jax.tree.map(lambda _: None, instance)) is cls
    assert type(jax.tree.map(lambda _: object(), instance)) is cls
    assert (
        type(jax.tree.map(lambda leaf: -leaf, instance)) is cls
    )  # validation would refuse a negative lengthscale


def test_the_random_projection_is_a_pytree_of_its_own(rng):
    Sigma = Covariance(Gaussian(1.0), jnp.asarray(rng.normal(size=(4, 2)), jnp.float32))
    projection = RandomProjection(jax.random.key(0), Sigma, num_features=3)
    leaves, structure = jax.tree.flatten(projection)
    again = jax.tree.unflatten(structure, leaves)
    assert type(again) is RandomProjection and len(leaves) == 3
    assert structure != jax.tree.structure(projection.directions)
    paths = [
        jax.tree_util.keystr(path)
        for path, _ in jax.tree_util.tree_flatten_with_path(projection)[0]
    ]
    assert paths == [
        ".directions.kernel.lengthscale",
        ".directions.points",
        ".directions.weights",
    ]


def test_programs_are_cached_by_class_and_static_fields():
    traced = []

    @jax.jit
    def program(kernel):
        traced.append(type(kernel))
        return kernel(jnp.ones(2), jnp.zeros(2))

    for kernel in (
        Gaussian(1.0),
        Gaussian(2.0),
        Matern32(1.0),
        Polynomial(2),
        Polynomial(2, 2.0),
        Polynomial(3),
    ):
        program(kernel)
    assert traced == [Gaussian, Matern32, Polynomial, Polynomial]


def test_a_class_of_ones_own_declares_leaves_and_static_fields():
    @pytree
    class Line:
        slope: float
        name: str = static(default="line")

        def __post_init__(self):
            if isinstance(self.slope, float) and self.slope < 0:
                raise ValueError("slope must not be negative")

    line = Line(2.0)
    assert jax.tree.leaves(line) == [2.0] and line.name == "line"
    with pytest.raises(ValueError, match="slope"):
        Line(-2.0)
    assert jax.tree.map(lambda leaf: -leaf, line).slope == -2.0
    assert jax.grad(lambda line: 3 * line.slope)(line).slope == 3.0
    assert jax.vmap(lambda line: line.slope * 2)(Line(jnp.arange(3.0))).tolist() == [
        0,
        2,
        4,
    ]
    assert dataclasses.replace(line, name="other").name == "other"
    assert (
        line != Line(2.0) and hash(line) is not None
    )  # compared by identity: leaves may be arrays
    assert pytrees.static().metadata["static"] is True


def test_arrays_of_numpy_may_be_overwritten_after_construction():
    X = np.ones((3, 2))
    made = (Covariance(Gaussian(X[0]), X, X[:, 0]), Function(Gaussian(1.0), X, X[:, 0]))
    X[:] = 0
    for leaf in jax.tree.leaves(made):
        assert np.all(np.asarray(leaf) == 1)


def test_instances_survive_pickling():
    f = Function(Gaussian(0.5), jnp.ones((3, 2)), jnp.arange(3.0))
    again = pickle.loads(pickle.dumps(f))
    assert jax.tree.structure(again) == jax.tree.structure(
        f
    ) and again.weights.tolist() == [0, 1, 2]
