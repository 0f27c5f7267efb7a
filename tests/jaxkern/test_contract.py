"""What holds of every public function: it lowers anywhere, keeps dtype and precision, maps over its arguments, computes
the same with and without `jit`, refuses old keys, and shows what is not a number (docs/sharp_bits.md).
"""

import cProfile
import functools
import importlib
import inspect
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from public import ENTRIES, LONG, MODULES, NO_GRADIENT, ON_THE_HOST, TABLE, WAYS
from support.jaxprs import doubles, imprecise

from jaxkern import scale

OPERATORS = {"__call__", "__add__", "__sub__", "__neg__", "__mul__", "__rmul__"}
OF_STREAMS = {"init", "update", "merge", "finalize"}

OF_OTHER_DTYPE = {name for name in TABLE if TABLE[name].any_dtype} | {"learn.fit_lengthscale"}
"""Functions of labels, and one in which optax computes scalars from its step count, in float64 where that is on."""
ALL = {**ENTRIES, **WAYS}
GRADIENTS = set(ENTRIES) - NO_GRADIENT
IDLE = {
    "num_features": "a number of Python",
    "psd": "the same",
    "Law.omega": "of the base class",
    "Kernel.evaluate": "the same",
    "Kernel.kappa": "the same",
}
SIGNS = ("converged", "finite", "valid")
"""Fields that say, where False, that the numbers next to them are no result."""
LIMITS = {"float32": (1e3, 1e7, 1e15), "float64": (1e3, 1e7, 1e100)}
"""In place of infinity: at one of them a result that has a limit, such as K = 0, has reached it."""
OF_EQUAL_POINTS = ("audit.", "clustering.")
"""What jumps where the lengthscale is infinite and K = 1: no pair of points is apart, and any partition is right."""
CALLED = set()
"""The code that ran while programs were traced."""


@functools.cache
def traced(name):
    """Return the program of a public function on float32 arguments, traced once for all that is said of it."""
    with cProfile.Profile(subcalls=False, builtins=False) as profile, jax.enable_x64(True):
        function, args = ALL[name](jnp.float32, 0)  # float64 that slips in is seen, and not rounded away
        program = jax.jit(lambda *args: function(*args)).trace(*jax.eval_shape(lambda: args))
    CALLED.update(entry.code for entry in profile.getstats())
    return program


@functools.cache
def compiled(name, dtype):
    """Return a public function, jitted: compiled once for all that is computed with it."""
    if dtype == jnp.float32 and jax.config.jax_enable_x64:
        return traced(name).lower().compile()
    return jax.jit(ALL[name](dtype, 0)[0])


def numeric(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree) if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)]


def stack(first, second):
    """Stack two leaves; `jnp.stack` would count keys as used."""
    if jnp.issubdtype(first.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.stack([jax.random.key_data(first), jax.random.key_data(second)]))
    return jnp.stack([first, second])


def codes():
    """Return the code of all that is public and can be called: functions, methods, properties, functions of streams."""
    found = {}
    for name in MODULES:
        module = importlib.import_module(f"jaxkern.{name}")
        for word, value in ((word, getattr(module, word)) for word in module.__all__):
            if inspect.isclass(value):
                for member, held in inspect.getmembers_static(value):
                    held = getattr(held, "fget", None) or getattr(held, "__func__", held)
                    ours = inspect.isfunction(held) and held.__module__.startswith("jaxkern")
                    if ours and (member in OPERATORS or not member.startswith(("_", "tree_"))):
                        found[f"{name}.{word}.{member}"] = held.__code__
            elif callable(value):
                found[f"{name}.{word}"] = code = inspect.unwrap(value).__code__
                inner = (each for each in code.co_consts if inspect.iscode(each) and each.co_name in OF_STREAMS)
                found |= {f"{name}.{word}.{each.co_name}": each for each in inner}
    return found


@pytest.mark.timeout(900)  # every program is traced
def test_every_public_function_and_method_is_called_or_explained():
    for name in ALL:
        traced(name)
    public = codes()
    idle = {name for name in public if name.endswith(tuple(IDLE)) or name.startswith(ON_THE_HOST)}
    assert {name for name, code in public.items() if code not in CALLED} <= idle


@pytest.mark.parametrize("name", sorted(LONG))
def test_it_lowers_without_the_hardware_and_keeps_float64(name, x64):
    """What is too long to run by default; of the rest test_portability.py and the tests below say so."""
    assert traced(name).lower(lowering_platforms=("cpu", "cuda", "tpu")).as_text()
    function, args = ALL[name](jnp.float64, 0)
    assert name in OF_OTHER_DTYPE or keeps_float64(jax.eval_shape(function, *args))


@pytest.mark.parametrize("name", ALL)
def test_float32_programs_hold_no_float64_and_every_product_asks_for_full_precision(name):
    program = traced(name).jaxpr.jaxpr
    assert not imprecise(program) and (name in OF_OTHER_DTYPE or not doubles(program))


def keeps_float64(outputs):
    floats = [leaf for leaf in jax.tree.leaves(outputs) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return all(leaf.dtype == jnp.float64 for leaf in floats)


def mapped(name, dtype, tolerance, gradient=False):
    """Assert that one program of stacked arguments gives what two calls without `jit` give, and return these.

    With `gradient` the program differentiates, too: its gradients are finite at the first, and agree with differences.
    """
    function, args = ALL[name](dtype, 0)
    leaves, tree = jax.tree.flatten(args)
    floats = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.floating)]

    def fresh(seed):  # keys are consumed once
        return jax.tree.leaves(ALL[name](dtype, seed)[1])

    def total(values, held):
        held = list(held)
        for i, value in zip(floats, values, strict=True):
            held[i] = value
        outputs = function(*jax.tree.unflatten(tree, held))
        kept = [leaf for leaf in jax.tree.leaves(outputs) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in kept), outputs

    program = jax.jit(jax.vmap(jax.value_and_grad(total, has_aux=True) if gradient else total))

    def run(first, second):
        rows = [stack(*pair) for pair in zip(first, second, strict=True)]
        return program([rows[i] for i in floats], rows)

    found = run(fresh(0), fresh(1))
    (_, outputs), gradients = found if gradient else (found, [])
    singles = [function(*jax.tree.unflatten(tree, fresh(seed))) for seed in (0, 1)]
    for rows, *pair in zip(numeric(outputs), *map(numeric, singles), strict=True):
        scale = 1 + max(np.abs(single).max(initial=0) for single in pair)
        for row, single in zip(rows, pair, strict=True):
            assert row.dtype == single.dtype
            np.testing.assert_allclose(row, single, rtol=0, atol=tolerance * scale)
    assert numeric(outputs) and all(np.isfinite(np.asarray(g)[0]).all() for g in gradients)
    if gradient:
        rng = np.random.default_rng(5)
        at = [leaves[i] for i in floats]
        way = [jnp.asarray(rng.standard_normal(leaf.shape)) * (1e-6 * jnp.maximum(1, jnp.abs(leaf))) for leaf in at]
        ends = [fresh(0), fresh(0)]
        for end, sign in zip(ends, (1, -1), strict=True):
            for i, w in zip(floats, way, strict=True):
                end[i] = end[i] + sign * w
        moved = run(*ends)[0][0]
        slope = sum(float(jnp.vdot(g[0], w)) for g, w in zip(gradients, way, strict=True))
        size = sum(float(jnp.vdot(jnp.abs(g[0]), jnp.abs(w))) for g, w in zip(gradients, way, strict=True))
        assert abs(float(moved[0] - moved[1]) / 2 - slope) <= 1e-4 * size + 1e-12 * (1 + abs(float(moved[0])))
    return singles


def each(long):
    return [pytest.param(name, marks=pytest.mark.slow) if name in long else name for name in ALL]


@pytest.mark.parametrize("name", each(LONG - GRADIENTS))
def test_a_program_of_stacked_arguments_computes_what_single_steps_do_and_differentiates(name, x64):
    first, second = mapped(name, jnp.float64, 1e-10, name in GRADIENTS)
    assert any(not np.array_equal(a, b) for a, b in zip(numeric(first), numeric(second), strict=True))
    assert name in OF_OTHER_DTYPE or keeps_float64(first)


def is_key(leaf):
    return jnp.issubdtype(getattr(leaf, "dtype", float), jax.dtypes.prng_key)


def test_old_keys_are_refused_by_name():
    refused = set()
    for make in ALL.values():
        function, args = make(jnp.float32, 0)
        for i, _ in filter(lambda pair: is_key(pair[1]), enumerate(args)):
            with pytest.raises(ValueError, match=r"^key must be a typed random key, got an array of dtype") as caught:
                function(*args[:i], jax.random.PRNGKey(0), *args[i + 1 :])
            refused |= {frame.f_code for frame, _ in traceback.walk_tb(caught.tb)}
    with pytest.raises(ValueError, match=r"^key must be a typed random key"):
        scale.kmeans(jax.random.PRNGKey(0), np.ones((4, 2), np.float32), 2, sharding=None)
    takes_one = {name: code for name, code in codes().items() if "key" in code.co_varnames[: code.co_argcount]}
    left = {name for name, code in takes_one.items() if code not in refused}
    assert left == {"scale.kmeans"}  # just above


def word_of(path):
    return jax.tree_util.keystr(path, simple=True, separator=".")


class Spoiled:
    """A public function at its example, with one number of one argument replaced."""

    def __init__(self, name, dtype):
        self.run, (_, args) = compiled(name, dtype), ALL[name](dtype, 0)
        self.leaves, self.tree = jax.tree.flatten_with_path(args)
        self.places = [i for i, (_, leaf) in enumerate(self.leaves) if jnp.issubdtype(leaf.dtype, jnp.floating)]

    def __call__(self, place=None, index=None, value=None, run=None):
        """Return the arrays of the result by their paths."""
        leaves = [jax.random.clone(leaf) if is_key(leaf) else leaf for _, leaf in self.leaves]
        if place is not None:
            leaves[place] = jnp.asarray(self.spoil(place, index, value))
        found = jax.tree.leaves_with_path((run or self.run)(*jax.tree.unflatten(self.tree, leaves)))
        return {word_of(path): np.asarray(leaf) for path, leaf in found if not is_key(leaf)}

    def spoil(self, place, index, value):
        array = np.array(self.leaves[place][1])
        array.reshape(-1)[index] = value
        return array


def near(a, b, tolerance):
    size = np.abs(b).max(initial=0, where=np.isfinite(b)) if b.dtype.kind == "f" else 0
    return np.allclose(a, b, rtol=0, atol=tolerance * (1 + size), equal_nan=True)


def hides(found, base, other, limits):
    """Return the parts of a result that depend on a number that is missing, and do not show it.

    `found` is the result without the number, `base` with it, `other` with another one.
    """
    told = any(word.endswith(SIGNS) and (was & ~found[word]).any() for word, was in base.items())
    told = told or any(word.endswith("probability") and (found[word] <= 0).all() for word in base)
    lost = {  # no number where there was one, or no label
        word
        for word, was in base.items()
        if (was.dtype.kind == "f" and (np.isfinite(was) & ~np.isfinite(found[word])).any())
        or (was.dtype.kind == "i" and ((was != -1) & (found[word] == -1)).any())
    }
    parts = []
    for word, was in base.items():
        shown = told or word in lost or (was.dtype.kind != "f" and lost) or word.endswith(SIGNS)
        strict = 1e-5 if was.dtype == np.float32 else 1e-9
        if shown or (near(found[word], was, strict) and near(other[word], was, strict)):
            continue
        if not any(near(found[word], limit[word], 1e-3) for limit in limits):
            parts.append(word)
    return parts


def sweep(name, dtype, every):
    """Return what hides that a number of an argument is NaN or infinite; the first and last of each array, or all."""
    call = Spoiled(name, dtype)
    base, complaints = call(), []
    for place in call.places:
        path, leaf = call.leaves[place]
        where = word_of(path)
        for index in range(leaf.size) if every else {0, leaf.size - 1}:
            other = call(place, index, 1.37 * float(leaf.reshape(-1)[index]) + 0.11)
            for value in (np.nan, np.inf, -np.inf):
                if np.isinf(value) and "lengthscale" in where and name.startswith(OF_EQUAL_POINTS):
                    continue
                found = call(place, index, value)
                parts = hides(found, base, other, [])
                if parts and np.isinf(value):
                    limits = [call(place, index, np.sign(value) * limit) for limit in LIMITS[dtype.__name__]]
                    parts = hides(found, base, other, limits)
                complaints += [f"{name}: {part or 'it'} hides {where}[{index}] = {value}" for part in parts]
    return complaints


def eager(name, dtype, every):
    """Return what is not the same without `jit`: with good numbers, and with a NaN in every argument."""
    call = Spoiled(name, dtype)
    complaints = []
    for place in (None, *call.places) if every else (None,):
        try:
            found = call(place, 0, np.nan, run=ALL[name](dtype, 0)[0])
        except ValueError:
            if place is None:
                raise
            continue  # refused: without `jit` values may be looked at
        for word, wanted in call(place, 0, np.nan).items():
            assert found[word].dtype == wanted.dtype
            if not near(found[word], wanted, 64 * np.finfo(dtype).eps):
                complaints.append(f"{name}: {word} differs without jit, NaN in {place}")
    return complaints


@pytest.mark.parametrize("name", each(LONG))
def test_what_is_no_number_shows(name, x64):
    assert not sweep(name, jnp.float32, every=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_the_same_of_every_number_and_in_both_precisions(name, dtype):
    kind = getattr(jnp, dtype.name)
    assert not sweep(name, kind, every=True) + eager(name, kind, every=True)
    mapped(name, kind, 2e-4 if kind == jnp.float32 else 1e-10)


def test_the_checks_themselves_can_fail(x64):
    X = jax.ShapeDtypeStruct((4, 4), jnp.float32)

    def jaxpr(function):
        return jax.make_jaxpr(function)(X).jaxpr

    assert doubles(jaxpr(lambda x: x.astype(jnp.float64))) and not doubles(jaxpr(lambda x: x / 3.0))
    assert imprecise(jaxpr(lambda x: x @ x.T))
    with pytest.raises(NotImplementedError):
        jax.jit(jnp.linalg.eigvals).trace(X).lower(lowering_platforms=("cpu", "cuda", "tpu"))


def reciprocal(x):
    return {"inverse": jnp.where(x > 0, 1 / jnp.where(x > 0, x, 1), 0.0)}


HIDE = {
    "0 for NaN": (reciprocal, True),
    "a field that is False": (lambda x: reciprocal(x) | {"finite": jnp.isfinite(x).all()}, False),
    "a field that is always False": (lambda x: reciprocal(x) | {"finite": False & (x > 0)}, True),
    "a limit": (lambda x: 1 / x, False),
    "a wrong limit": (lambda x: jnp.where(jnp.isinf(x), 1.0, 1 / x), True),
    "not used": (lambda x: x[1] ** 2, False),
    "an index": (jnp.argmin, True),
    "an index, and what it is of": (lambda x: (jnp.argmin(x), x.min()), False),
    "no label": (lambda x: jnp.where(jnp.isfinite(x).all(), jnp.argmin(x), -1), False),
}


@pytest.mark.parametrize("name", HIDE)
def test_what_hides_is_seen(name, x64, monkeypatch):
    function, is_seen = HIDE[name]
    monkeypatch.setitem(ALL, name, lambda dtype, seed: (function, (jnp.asarray([0.7, 0.4, 2.0], dtype),)))
    assert bool(sweep(name, jnp.float64, every=True)) == is_seen and not eager(name, jnp.float64, every=True)


def test_what_differs_without_jit_is_seen(x64, monkeypatch):
    differs = lambda x: x + isinstance(x, jax.core.Tracer) * 1e-9  # noqa: E731
    monkeypatch.setitem(ALL, "differs", lambda dtype, seed: (differs, (jnp.ones(3, dtype),)))
    assert eager("differs", jnp.float64, every=False)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        mapped("differs", jnp.float64, 1e-10)
