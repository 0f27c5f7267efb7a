"""What holds of every public function: it lowers anywhere, keeps dtype and precision, maps over its arguments, computes
the same with and without `jit` and after a way through bytes, refuses old keys, and shows what is not a number
(docs/sharp_bits.md). `support.contract` has the programs.
"""

import functools
import importlib
import inspect
import pathlib
import re
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from public import CALLS, GROUPS, LONG, MODULES, ON_THE_HOST, TABLE, joined
from support.cases import Example
from support.contract import (
    CALLED,
    GRADIENTS,
    PLATFORMS,
    arrays_of,
    check_mapped,
    differs_without_jit,
    exported,
    is_float,
    is_key,
    numeric,
    room,
    sweep,
    traced,
)
from support.jaxprs import doubles, imprecise
from support.numerics import Identity
from support.surface import functions

from jaxkern import features, landmarks, scale

pytestmark = [
    pytest.mark.watches_keys,
    pytest.mark.float64,
]  # float64 that slips into float32 is seen so

OF_STREAMS = {"init", "update", "merge", "finalize"}
OF_OTHER_DTYPE = {name for name in TABLE if TABLE[name].any_dtype}
OF_OTHER_DTYPE |= {"learn.fit_lengthscale"}
"""Functions of labels, and one in which optax computes scalars from its step count, in float64 where that is on."""
IDLE = ("num_features", "psd", "Law.omega", "Kernel.evaluate", "Kernel.kappa")
"""Numbers of Python, and methods of base classes that every class has its own of."""
ELSEWHERE = {
    "frequent_directions.update",
    "problems.gaussian_mixture",
    "problems.nested_spheres",
}
ELSEWHERE |= {"scale.kmeans", "scale.landmarks"} | {
    f"regression.{name}"
    for name in (
        "ridge",
        "ridge_to",
        "head",
        "certified_head",
        "posterior_variance",
        "streaming_ridge.update",
    )
}
"""Functions of weights named as `fd.update`; of weights of clusters, not of rows; tested in scale/; in regression/, as
landmarks are other rows where rows are added."""


@functools.cache
def codes():
    """Return the code of all that is public and can be called: functions, methods, properties, functions of streams."""
    code_of = {}
    for name, function in functions().items():
        code_of[name] = function.__code__
        for constant in function.__code__.co_consts:
            if inspect.iscode(constant) and constant.co_name in OF_STREAMS:
                code_of[f"{name}.{constant.co_name}"] = constant
    return {
        name: code for name, code in code_of.items() if name.startswith(tuple(MODULES))
    }


def slow_if_in(long):
    return [
        pytest.param(name, marks=[pytest.mark.slow] * (name in long)) for name in GROUPS
    ]


@pytest.mark.timeout(900)  # every program is traced
def test_every_public_function_and_method_is_called_or_explained():
    for group in GROUPS:
        traced(group)
    idle = [
        name
        for name, code in codes().items()
        if code not in CALLED and not name.startswith(ON_THE_HOST)
    ]
    assert all(name.endswith(IDLE) for name in idle), idle


def keeps_float64(outputs):
    leaves = [leaf for leaf in jax.tree.leaves(outputs) if hasattr(leaf, "dtype")]
    return all(leaf.dtype == jnp.float64 for leaf in leaves if is_float(leaf))


@pytest.mark.parametrize("name", sorted(LONG))
def test_it_lowers_without_the_hardware_and_keeps_float64(name):
    """What is too long to run by default; of the rest the tests below say so."""
    assert traced(name).lower(lowering_platforms=PLATFORMS).as_text()
    function, args = joined(name, jnp.float64, 0)
    assert name in OF_OTHER_DTYPE or keeps_float64(jax.eval_shape(function, args))


@pytest.mark.parametrize("name", GROUPS)
def test_float32_programs_hold_no_float64_and_every_product_asks_for_full_precision(
    name,
):
    program = traced(name).jaxpr.jaxpr
    assert not imprecise(program)
    assert name in OF_OTHER_DTYPE or not doubles(program)


@pytest.mark.parametrize("group", slow_if_in(LONG - GRADIENTS))
def test_a_program_of_stacked_arguments_computes_what_single_calls_do_and_differentiates(
    group,
):
    first, second = check_mapped(group, jnp.float64, 1e-10)
    for name in first:
        pairs = zip(numeric(first[name]), numeric(second[name]), strict=True)
        assert any(not np.array_equal(a, b) for a, b in pairs), name
    assert group in OF_OTHER_DTYPE or keeps_float64(first)


@pytest.mark.parametrize("name", slow_if_in(LONG))
def test_what_is_no_number_shows(name):
    assert not sweep(name, jnp.float64, every=False)


QUICK_TO_EXPORT = {"bounds.sketching", "features.kernel_jl", "kernels"}


@pytest.mark.parametrize("group", slow_if_in(set(GROUPS) - QUICK_TO_EXPORT))
def test_what_comes_back_from_bytes_computes_the_same(group):
    again = exported(group)(joined(group, jnp.float32, 0)[1])
    program = traced(group).lower().compile()
    results = arrays_of(program(joined(group, jnp.float32, 0)[1]))
    assert jax.tree.structure(again) == jax.tree.structure(results)
    assert jax.tree.leaves(again)
    for a, b in zip(numeric(again), numeric(results), strict=True):
        # One program chooses the platform when it runs, the other one when it is compiled: they are fused differently.
        assert a.dtype == b.dtype
        size = np.max(np.abs(b), initial=0, where=np.isfinite(b))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * room(group) * (1 + size))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("name", CALLS)
def test_the_same_of_every_number_and_in_both_precisions(name, kind):
    assert not sweep(name, kind, every=True)
    assert not differs_without_jit(name, kind, every=True)
    check_mapped(name, kind, 2e-4 if kind == jnp.float32 else 1e-10 * room(name))


OLD_KEY = r"^key must be a typed random key, got an array of dtype"


def test_old_keys_are_refused_by_name():
    refusing = set()
    for make in CALLS.values():
        function, args = make(jnp.float32, 0)
        for i in range(len(args)):
            if is_key(args[i]):
                old = (*args[:i], jax.random.PRNGKey(0), *args[i + 1 :])
                with pytest.raises(ValueError, match=OLD_KEY) as caught:
                    function(*old)
                refusing |= {frame.f_code for frame, _ in traceback.walk_tb(caught.tb)}
    takes_key = {
        name
        for name, code in codes().items()
        if "key" in code.co_varnames[: code.co_argcount] and code not in refusing
    }
    assert takes_key == set(KEYS_ON_THE_HOST)


KEYS_ON_THE_HOST = {
    "scale.kmeans": lambda key, X: scale.kmeans(key, X, 2),
    "scale.landmarks": lambda key, X: scale.landmarks(key, X, num_landmarks=2),
}
"""Functions that are no programs, and so not among `CALLS`."""


@pytest.mark.parametrize("name", KEYS_ON_THE_HOST)
def test_old_keys_are_refused_on_the_host(name):
    with pytest.raises(ValueError, match=OLD_KEY):
        KEYS_ON_THE_HOST[name](jax.random.PRNGKey(0), np.ones((4, 2), np.float32))


def weighted():
    """Return the public functions that take weights, with the name of each such argument."""
    pairs = []
    for name, code in codes().items():
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        pairs += [(name, word) for word in arguments if word.endswith("weights")]
    return sorted(pairs)


def test_every_function_of_weights_is_compared_on_sets_that_are_filled_up():
    folder = pathlib.Path(__file__).parent
    modules = (
        "test_weights.py",
        "features/test_weights.py",
        "kernels/test_weights.py",
    )
    text = "".join((folder / name).read_text() for name in modules)
    use = r'\b{0}\.{1}\b|from jaxkern\.{0} import .*\b{1}\b|SCORES = .*"{1}"'
    missing = {
        name
        for name, _ in weighted()
        if not re.search(use.format(*name.split(".")), text)
    }
    assert missing == ELSEWHERE


def first_call(name, monkeypatch):
    """Return a public function of a module with the arguments of its first call in the table."""
    module_name, word = name.split(".")
    module = importlib.import_module(f"jaxkern.{module_name}")
    function = getattr(module, word)
    calls = []

    def note(*args, **keywords):
        calls.append(inspect.signature(function).bind(*args, **keywords).arguments)
        raise StopIteration

    monkeypatch.setattr(module, word, note)
    with pytest.raises(StopIteration):
        TABLE[name].make(Example("", kernel_name=TABLE[name].kernels[0]))
    return lambda **weights: function(**(calls[0] | weights))


def first_update(name):
    """Return the update of a stream with its first state and a batch."""
    if "pca" in name:
        pca = features.streaming_pca(
            Identity(jnp.eye(3, dtype="float32")), sketch_size=2
        )
        state = pca.init("float32")
        update = pca.update
    else:
        init, update, _ = landmarks.reservoir(num_landmarks=2)
        state = init(jax.random.key(0), 3, "float32")
    return functools.partial(update, state, np.ones((12, 3), np.float32))


@pytest.mark.parametrize(("name", "word"), weighted())
def test_numpy_weights_that_are_none_are_refused_by_name(name, word, monkeypatch):
    is_stream = name.count(".") == 2
    function = first_update(name) if is_stream else first_call(name, monkeypatch)
    size = rf"^{word} must have shape \((\d+),\), got \(97,\)"
    with jax.debug_key_reuse(False):  # a refused call has used its key
        with pytest.raises(ValueError, match=size) as caught:
            function(**{word: np.ones(97, np.float32)})
        ones = np.ones(int(re.match(size, str(caught.value))[1]), np.float32)
        unfit = [np.append(ones[1:], np.float32(x)) for x in (-1, np.nan, np.inf)]
        if not name.endswith("update"):  # a batch may have no rows
            unfit.append(0 * ones)
        if not name.startswith("problems."):  # odds of clusters are converted
            unfit.append(ones.astype(int))
        for weights in unfit:
            with pytest.raises(ValueError, match=rf"^{word} must (?!have shape)"):
                function(**{word: weights})


def test_the_checks_themselves_can_fail():
    X = jax.ShapeDtypeStruct((4, 4), jnp.float32)

    def jaxpr(function):
        return jax.make_jaxpr(function)(X).jaxpr

    assert doubles(jaxpr(lambda x: x.astype(jnp.float64)))
    assert not doubles(jaxpr(lambda x: x / 3.0))
    assert imprecise(jaxpr(lambda x: x @ x.T))
    with pytest.raises(NotImplementedError):
        jax.jit(jnp.linalg.eigvals).trace(X).lower(lowering_platforms=PLATFORMS)
    with pytest.raises((NotImplementedError, ValueError)):
        export.export(jax.jit(jnp.linalg.eigvals), platforms=PLATFORMS)(X)


def reciprocal(x):
    return {"inverse": jnp.where(x > 0, 1 / jnp.where(x > 0, x, 1), 0.0)}


HIDE = {
    "0 for NaN": (reciprocal, True),
    "a field that is False": (
        lambda x: reciprocal(x) | {"finite": jnp.isfinite(x).all()},
        False,
    ),
    "a field that is always False": (
        lambda x: reciprocal(x) | {"finite": False & (x > 0)},
        True,
    ),
    "a limit": (lambda x: 1 / x, False),
    "a wrong limit": (lambda x: jnp.where(jnp.isinf(x), 1.0, 1 / x), True),
    "not used": (lambda x: x[1] ** 2, False),
    "an index": (jnp.argmin, True),
    "an index, and what it is of": (lambda x: (jnp.argmin(x), x.min()), False),
    "no label": (lambda x: jnp.where(jnp.isfinite(x).all(), jnp.argmin(x), -1), False),
}


@pytest.mark.parametrize("name", HIDE)
def test_what_hides_is_seen(name, monkeypatch):
    function, is_seen = HIDE[name]

    def make(dtype, seed):
        return function, (jnp.asarray([0.7, 0.4, 2.0], dtype),)

    monkeypatch.setitem(CALLS, name, make)
    assert bool(sweep(name, jnp.float64, every=True)) == is_seen
    assert not differs_without_jit(name, jnp.float64, every=True)


def test_what_differs_without_jit_is_seen(monkeypatch):
    def make(dtype, seed):
        return lambda x: x + isinstance(x, jax.core.Tracer) * 1e-9, (
            jnp.ones(3, dtype),
        )

    monkeypatch.setitem(CALLS, "differs", make)
    assert differs_without_jit("differs", jnp.float64, every=False)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_mapped("differs", jnp.float64, 1e-10)
