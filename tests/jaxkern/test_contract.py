"""What holds of every public function: it lowers anywhere, keeps dtype and precision, maps over its arguments, computes
the same with and without `jit` and after a way through bytes, refuses old keys, and shows what is not a number
(docs/sharp_bits.md).

Every function is at an argument of its own of a program, which several may share: nothing said of one rests on another.
"""

import cProfile
import functools
import importlib
import inspect
import itertools
import pathlib
import re
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from public import (
    CALLS,
    ENTRIES,
    GROUPS,
    LONG,
    MODULES,
    NO_GRADIENT,
    ON_THE_HOST,
    TABLE,
    joined,
)
from support.cases import Example
from support.jaxprs import doubles, imprecise
from support.numerics import Identity

from jaxkern import features, landmarks, scale

OPERATORS = {"__call__", "__add__", "__sub__", "__neg__", "__mul__", "__rmul__"}
OF_STREAMS = {"init", "update", "merge", "finalize"}

OF_OTHER_DTYPE = {name for name in TABLE if TABLE[name].any_dtype} | {
    "learn.fit_lengthscale"
}
"""Functions of labels, and one in which optax computes scalars from its step count, in float64 where that is on."""
GRADIENTS = {
    group for group, names in GROUPS.items() if set(names) <= set(ENTRIES) - NO_GRADIENT
}
PLATFORMS = ("cpu", "cuda", "tpu")
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
CALLED = set()
"""The code that ran while programs were traced."""


@functools.cache
def program(group, dtype):
    """Return the functions of a group, jitted, and the shapes of their arguments."""
    function, args = joined(group, dtype, 0)
    return jax.jit(function), jax.eval_shape(lambda: args)


@functools.cache
def traced(group):
    """Return the program of public functions on float32 arguments, traced once for all that is said of it."""
    with (
        cProfile.Profile(subcalls=False, builtins=False) as profile,
        jax.enable_x64(True),
    ):
        jitted, shapes = program(
            group, jnp.float32
        )  # float64 that slips in is seen, and not rounded away
        found = jitted.trace(shapes)
    CALLED.update(entry.code for entry in profile.getstats())
    return found


@functools.cache
def shipped(group, *, _wide):
    """Return the functions of a group as they come back from bytes: one artefact for cpu, cuda and tpu, made here with
    no accelerator, and compiled for the CPU; another one where float64 is on, which labels have scores in."""
    jitted, shapes = program(group, jnp.float32)
    leaves, tree = jax.tree.flatten(shapes)
    arrays = jax.jit(lambda leaves: arrays_of(jitted(jax.tree.unflatten(tree, leaves))))
    made = export.export(arrays, platforms=PLATFORMS)(leaves)
    assert made.platforms == PLATFORMS
    run = jax.jit(export.deserialize(made.serialize()).call)
    return lambda args: run(jax.tree.leaves(args))


def arrays_of(results):
    """Return the arrays of results, which are no keys, by name and path."""
    named = {
        name: jax.tree.leaves_with_path(result) for name, result in results.items()
    }
    return {
        name: {word_of(path): leaf for path, leaf in own if not is_key(leaf)}
        for name, own in named.items()
    }


def numeric(tree):
    return [np.asarray(leaf) for leaf in without_keys(tree)]


def without_keys(tree):
    return [leaf for leaf in jax.tree.leaves(tree) if not is_key(leaf)]


def is_key(leaf):
    return jnp.issubdtype(getattr(leaf, "dtype", float), jax.dtypes.prng_key)


def stack(first, second):
    """Stack two leaves in NumPy, which compiles nothing; `jnp.stack` would count keys as used."""
    if is_key(first):
        return jax.random.wrap_key_data(
            np.stack([jax.random.key_data(first), jax.random.key_data(second)])
        )
    return np.stack([first, second])


def codes():
    """Return the code of all that is public and can be called: functions, methods, properties, functions of streams."""
    found = {}
    for name in MODULES:
        module = importlib.import_module(f"jaxkern.{name}")
        for word, value in ((word, getattr(module, word)) for word in module.__all__):
            if inspect.isclass(value):
                for member, held in inspect.getmembers_static(value):
                    held = getattr(held, "fget", None) or getattr(
                        held, "__func__", held
                    )
                    ours = inspect.isfunction(held) and held.__module__.startswith(
                        "jaxkern"
                    )
                    if ours and (
                        member in OPERATORS or not member.startswith(("_", "tree_"))
                    ):
                        found[f"{name}.{word}.{member}"] = held.__code__
            elif callable(value):
                found[f"{name}.{word}"] = code = inspect.unwrap(value).__code__
                inner = (
                    each
                    for each in code.co_consts
                    if inspect.iscode(each) and each.co_name in OF_STREAMS
                )
                found |= {f"{name}.{word}.{each.co_name}": each for each in inner}
    return found


@pytest.mark.timeout(900)  # every program is traced
def test_every_public_function_and_method_is_called_or_explained():
    for group in GROUPS:
        traced(group)
    public = codes()
    idle = {
        name
        for name in public
        if name.endswith(tuple(IDLE)) or name.startswith(ON_THE_HOST)
    }
    assert {name for name, code in public.items() if code not in CALLED} <= idle


@pytest.mark.parametrize("name", sorted(LONG))
def test_it_lowers_without_the_hardware_and_keeps_float64(name, x64):
    """What is too long to run by default; of the rest the tests below say so."""
    assert traced(name).lower(lowering_platforms=PLATFORMS).as_text()
    function, args = joined(name, jnp.float64, 0)
    assert name in OF_OTHER_DTYPE or keeps_float64(jax.eval_shape(function, args))


@pytest.mark.parametrize("name", GROUPS)
def test_float32_programs_hold_no_float64_and_every_product_asks_for_full_precision(
    name,
):
    program = traced(name).jaxpr.jaxpr
    assert not imprecise(program) and (name in OF_OTHER_DTYPE or not doubles(program))


def keeps_float64(outputs):
    floats = [
        leaf
        for leaf in jax.tree.leaves(outputs)
        if jnp.issubdtype(leaf.dtype, jnp.floating)
    ]
    return all(leaf.dtype == jnp.float64 for leaf in floats)


@functools.cache
def stacked(group, dtype):
    """Return one program of two rows of arguments, and what it differentiates: the leaves that are floats.

    It takes the leaves of both and returns (totals, results), and the gradients of the totals for a group that has any.
    """
    function, args = joined(group, dtype, 0)
    leaves, tree = jax.tree.flatten(args)
    floats = [
        i for i, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.floating)
    ]

    def total(values, held):
        held = list(held)
        for i, value in zip(floats, values, strict=True):
            held[i] = value
        outputs = function(jax.tree.unflatten(tree, held))

        def number(result):
            kept = [
                leaf
                for leaf in jax.tree.leaves(result)
                if jnp.issubdtype(leaf.dtype, jnp.floating)
            ]
            return sum(jnp.sum(jnp.sin(leaf)) for leaf in kept)

        totals = {name: number(result) for name, result in outputs.items()}
        return sum(totals.values()), (totals, outputs)

    differentiates = group in GRADIENTS and dtype == jnp.float64
    jitted = jax.jit(
        jax.vmap(jax.value_and_grad(total, has_aux=True) if differentiates else total)
    )

    def run(first, second):
        rows = [stack(*pair) for pair in zip(first, second, strict=True)]
        found = jitted([rows[i] for i in floats], rows)
        (_, seen), gradients = found if differentiates else (found, [])
        return seen, gradients

    return run, floats


def mapped(group, dtype, tolerance):
    """Assert that one program of stacked arguments gives what two calls without `jit` give, and return these.

    Where there are gradients those of every function are finite at the first row, and agree with differences.
    """
    function, args = joined(group, dtype, 0)
    paths, tree = jax.tree.flatten_with_path(args)
    run, floats = stacked(group, dtype)

    def fresh(seed):  # keys are consumed once
        return jax.tree.leaves(joined(group, dtype, seed)[1])

    (_, outputs), gradients = run(fresh(0), fresh(1))
    singles = [function(jax.tree.unflatten(tree, fresh(seed))) for seed in (0, 1)]
    for rows, *pair in zip(numeric(outputs), *map(numeric, singles), strict=True):
        scale = 1 + max(np.abs(single).max(initial=0) for single in pair)
        for row, single in zip(rows, pair, strict=True):
            assert row.dtype == single.dtype
            np.testing.assert_allclose(row, single, rtol=0, atol=tolerance * scale)
    assert all(map(numeric, outputs.values())) and all(
        np.isfinite(np.asarray(g)[0]).all() for g in gradients
    )
    if gradients:
        rng = np.random.default_rng(5)
        leaves = {i: paths[i][1] for i in floats}
        way = {
            i: rng.standard_normal(x.shape) * 1e-6 * np.maximum(1, np.abs(x))
            for i, x in leaves.items()
        }
        ends = [
            [
                leaf + sign * way[i] if i in way else leaf
                for i, leaf in enumerate(fresh(0))
            ]
            for sign in (1, -1)
        ]
        for name, (up, down) in run(*ends)[0][0].items():
            own = (
                pair
                for pair in zip(floats, gradients, strict=True)
                if paths[pair[0]][0][0].key == name
            )
            at = [(np.asarray(g)[0], way[i]) for i, g in own]
            slope, size = (
                sum(np.vdot(g, w) for g, w in at),
                sum(np.vdot(np.abs(g), np.abs(w)) for g, w in at),
            )
            assert abs(float(up - down) / 2 - slope) <= 1e-4 * size + 1e-12 * (
                1 + abs(float(up))
            ), name
    return singles


def each(long):
    return [
        pytest.param(name, marks=pytest.mark.slow) if name in long else name
        for name in GROUPS
    ]


@pytest.mark.parametrize("group", each(LONG - GRADIENTS))
def test_a_program_of_stacked_arguments_computes_what_single_steps_do_and_differentiates(
    group, x64
):
    first, second = mapped(group, jnp.float64, 1e-10)
    for name in first:
        pairs = zip(numeric(first[name]), numeric(second[name]), strict=True)
        assert any(not np.array_equal(a, b) for a, b in pairs), name
    assert group in OF_OTHER_DTYPE or keeps_float64(first)


def test_old_keys_are_refused_by_name():
    refused = set()
    for make in CALLS.values():
        function, args = make(jnp.float32, 0)
        for i, _ in filter(lambda pair: is_key(pair[1]), enumerate(args)):
            with pytest.raises(
                ValueError,
                match=r"^key must be a typed random key, got an array of dtype",
            ) as caught:
                function(*args[:i], jax.random.PRNGKey(0), *args[i + 1 :])
            refused |= {frame.f_code for frame, _ in traceback.walk_tb(caught.tb)}
    X = np.ones((4, 2), np.float32)
    functions = (
        functools.partial(scale.kmeans, num_clusters=2),
        functools.partial(scale.landmarks, num_landmarks=2),
    )
    for function in functions:
        with pytest.raises(ValueError, match=r"^key must be a typed random key"):
            function(jax.random.PRNGKey(0), X=X)
    takes_one = {
        name: code
        for name, code in codes().items()
        if "key" in code.co_varnames[: code.co_argcount]
    }
    left = {name for name, code in takes_one.items() if code not in refused}
    assert left == {"scale.kmeans", "scale.landmarks"}  # just above


def weighted():
    """Return the public functions that take weights, and by which name."""
    words = (
        (name, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        for name, code in codes().items()
    )
    return sorted(
        (name, word) for name, own in words for word in own if word.endswith("weights")
    )


def test_every_function_of_weights_is_compared_on_sets_that_are_filled_up():
    files = (
        "test_weights.py",
        "features/test_weights.py",
        "kernels/test_weights.py",
    )
    text = "".join((pathlib.Path(__file__).parent / name).read_text() for name in files)
    named = r'\b{0}\.{1}\b|from jaxkern\.{0} import .*\b{1}\b|SCORES = .*"{1}"'
    assert {
        name
        for name, _ in weighted()
        if not re.search(named.format(*name.split(".")), text)
    } == ELSEWHERE


def weighing(name, monkeypatch):
    """Return a public function with the arguments of its first call in the table; of a stream, after `init`."""
    if name.count(".") == 2:
        pca = features.streaming_pca(Identity(jnp.eye(3)), sketch_size=2)
        stream, args = (
            (pca, ())
            if "pca" in name
            else (landmarks.reservoir(num_landmarks=2), (jax.random.key(0), 3))
        )
        return functools.partial(
            stream[1], stream[0](*args), np.ones((12, 3), np.float32)
        )
    module, word = name.split(".")
    module, seen = importlib.import_module(f"jaxkern.{module}"), []
    function = getattr(module, word)
    monkeypatch.setattr(
        module, word, lambda *args, **named: seen.append((args, named)) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        TABLE[name].make(Example("", kernel_name=TABLE[name].kernels[0]))
    args = inspect.signature(function).bind(*seen[0][0], **seen[0][1]).arguments
    return lambda **weights: function(**(args | weights))


@pytest.mark.parametrize(("name", "word"), weighted())
def test_numpy_weights_that_are_none_are_refused_by_name(name, word, monkeypatch):
    function, sizes = (
        weighing(name, monkeypatch),
        rf"^{word} must have shape \((\d+),\), got \(97,\)",
    )
    with jax.debug_key_reuse(False), pytest.raises(ValueError, match=sizes) as caught:
        function(**{word: np.ones(97, np.float32)})
    ones = np.ones(int(re.match(sizes, str(caught.value))[1]), np.float32)
    unfit = [np.append(ones[1:], np.float32(entry)) for entry in (-1, np.nan, np.inf)]
    unfit += [] if name.endswith("update") else [0 * ones]  # a batch may have no rows
    unfit += (
        [] if name.startswith("problems.") else [ones.astype(int)]
    )  # odds of clusters are converted
    for array in unfit:
        with (
            jax.debug_key_reuse(False),
            pytest.raises(ValueError, match=rf"^{word} must (?!have shape)"),
        ):
            function(**{word: array})


def word_of(path):
    return jax.tree_util.keystr(path, simple=True, separator=".")


def first_row(group, dtype):
    """Return the functions of a group, as the program of two rows computes them."""

    def call(args):
        leaves = jax.tree.leaves(args)
        (_, outputs), _ = stacked(group, dtype)[0](leaves, leaves)
        return jax.tree.map(lambda rows: np.asarray(rows)[0], arrays_of(outputs))

    return call


class Spoiled:
    """The functions of a group at their examples, with some numbers of their arguments replaced.

    By default they run as programs of their own, in float32 as they come back from bytes.
    """

    def __init__(self, group, dtype, run=None):
        self.plain, args = joined(group, dtype, 0)
        self.run = run or (
            shipped(group, _wide=False)
            if dtype == jnp.float32
            else program(group, dtype)[0]
        )
        self.leaves, self.tree = jax.tree.flatten_with_path(args)
        self.places = [
            i
            for i, (_, leaf) in enumerate(self.leaves)
            if jnp.issubdtype(leaf.dtype, jnp.floating)
        ]

    def __call__(self, change=None, spots=(), run=None):
        """Return the arrays of the results, by name and path, where numbers at (place, index) are changed."""
        leaves = [
            jax.random.clone(leaf) if is_key(leaf) else leaf for _, leaf in self.leaves
        ]
        for place, index in spots:
            array = np.array(leaves[place])
            array.reshape(-1)[index] = change(float(array.reshape(-1)[index]))
            leaves[place] = jnp.asarray(
                array
            )  # numbers of NumPy are computed with as those of Python
        return jax.tree.map(
            np.asarray,
            arrays_of((run or self.run)(jax.tree.unflatten(self.tree, leaves))),
        )

    def name_of(self, place):
        return self.leaves[place][0][0].key

    def rounds(self, every):
        """Yield numbers to change at once, one of each function: the first and last of each array, or all."""
        spots = {}
        for place in self.places:
            size = self.leaves[place][1].size
            own = spots.setdefault(self.name_of(place), [])
            own += [
                (place, index) for index in (range(size) if every else {0, size - 1})
            ]
        yield from (
            [spot for spot in row if spot]
            for row in itertools.zip_longest(*spots.values())
        )


def room(name):
    """Return how many times the rounding of others a function may have: for systems whose condition is some tens, and
    for exponents of some ten thousands."""
    return 4 if name.startswith(("regression.", "bounds.fourier.ball_matern")) else 1


def near(a, b, tolerance):
    size = np.abs(b).max(initial=0, where=np.isfinite(b)) if b.dtype.kind == "f" else 0
    return np.allclose(a, b, rtol=0, atol=tolerance * (1 + size), equal_nan=True)


def hides(found, base, other, limits):
    """Return the parts of a result that depend on a number that is missing, and do not show it.

    `found` is the result without the number, `base` with it, `other` with another one.
    """
    told = any(
        word.endswith(SIGNS) and (was & ~found[word]).any()
        for word, was in base.items()
    )
    told = told or any(
        word.endswith("probability") and (found[word] <= 0).all() for word in base
    )
    lost = {  # no number where there was one, or no label
        word
        for word, was in base.items()
        if (
            was.dtype.kind == "f"
            and (np.isfinite(was) & ~np.isfinite(found[word])).any()
        )
        or (was.dtype.kind == "i" and ((was != -1) & (found[word] == -1)).any())
    }
    parts = []
    for word, was in base.items():
        shown = (
            told
            or word in lost
            or (was.dtype.kind != "f" and lost)
            or word.endswith(SIGNS)
        )
        strict = 1e-5 if was.dtype == np.float32 else 1e-9
        if shown or (near(found[word], was, strict) and near(other[word], was, strict)):
            continue
        if not any(near(found[word], limit[word], 1e-3) for limit in limits):
            parts.append(word)
    return parts


def sweep(group, dtype, every, run=None):
    """Return what hides that a number of an argument is NaN or infinite."""
    call = Spoiled(group, dtype, run)
    base, complaints = call(), []
    for spots in call.rounds(every):
        other = call(lambda x: 1.37 * x + 0.11, spots)
        ends = [
            [call(lambda _, to=sign * to: to, spots) for to in LIMITS[dtype.__name__]]
            for sign in (1, -1)
        ]
        for value, limits in ((np.nan, []), (np.inf, ends[0]), (-np.inf, ends[1])):
            found = call(lambda _, value=value: value, spots)
            for place, index in spots:
                name, where = call.name_of(place), word_of(call.leaves[place][0])
                if (
                    np.isinf(value)
                    and "lengthscale" in where
                    and name.startswith(OF_EQUAL_POINTS)
                ):
                    continue
                parts = hides(
                    found[name],
                    base[name],
                    other[name],
                    [limit[name] for limit in limits],
                )
                complaints += [
                    f"{name}: {part or 'it'} hides {where}[{index}] = {value}"
                    for part in parts
                ]
    return complaints


def eager(group, dtype, every):
    """Return what is not the same without `jit`: with good numbers, and with a NaN in every argument."""
    call = Spoiled(group, dtype)
    complaints = []
    for spots in ([], *([(place, 0)] for place in call.places)) if every else ([],):
        try:
            found = call(lambda _: np.nan, spots, run=call.plain)
        except ValueError:
            if not spots:
                raise
            continue  # refused: without `jit` values may be looked at
        for name, results in call(lambda _: np.nan, spots).items():
            for word, wanted in results.items():
                assert found[name][word].dtype == wanted.dtype
                if not near(
                    found[name][word], wanted, 64 * room(name) * np.finfo(dtype).eps
                ):
                    complaints.append(
                        f"{name}: {word} differs without jit, NaN in {spots}"
                    )
    return complaints


@pytest.mark.parametrize("name", each(LONG))
def test_what_is_no_number_shows(name, x64):
    assert not sweep(name, jnp.float64, every=False, run=first_row(name, jnp.float64))


@pytest.mark.parametrize(
    "group", each(set(GROUPS) - {"bounds.sketching", "features.kernel_jl", "kernels"})
)
def test_what_comes_back_from_bytes_computes_the_same(group, x64):
    found = shipped(group, _wide=True)(joined(group, jnp.float32, 0)[1])
    wanted = arrays_of(
        traced(group).lower().compile()(joined(group, jnp.float32, 0)[1])
    )
    assert jax.tree.structure(found) == jax.tree.structure(wanted) and jax.tree.leaves(
        found
    )
    for ours, theirs in zip(
        map(np.asarray, jax.tree.leaves(found)), numeric(wanted), strict=True
    ):
        # One program chooses the platform when it runs, the other one when it is compiled: they are fused differently.
        assert ours.dtype == theirs.dtype
        size = np.max(np.abs(theirs), initial=0, where=np.isfinite(theirs))
        np.testing.assert_allclose(
            ours, theirs, rtol=0, atol=1e-5 * room(group) * (1 + size)
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_the_same_of_every_number_and_in_both_precisions(name, dtype):
    kind = getattr(jnp, dtype.name)
    assert not sweep(name, kind, every=True) + eager(name, kind, every=True)
    mapped(name, kind, 2e-4 if kind == jnp.float32 else 1e-10 * room(name))


def test_the_checks_themselves_can_fail(x64):
    X = jax.ShapeDtypeStruct((4, 4), jnp.float32)

    def jaxpr(function):
        return jax.make_jaxpr(function)(X).jaxpr

    assert doubles(jaxpr(lambda x: x.astype(jnp.float64))) and not doubles(
        jaxpr(lambda x: x / 3.0)
    )
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
def test_what_hides_is_seen(name, x64, monkeypatch):
    function, is_seen = HIDE[name]
    monkeypatch.setitem(
        CALLS,
        name,
        lambda dtype, seed: (function, (jnp.asarray([0.7, 0.4, 2.0], dtype),)),
    )
    assert bool(sweep(name, jnp.float64, every=True)) == is_seen and not eager(
        name, jnp.float64, every=True
    )


def test_what_differs_without_jit_is_seen(x64, monkeypatch):
    differs = lambda x: x + isinstance(x, jax.core.Tracer) * 1e-9  # noqa: E731
    monkeypatch.setitem(
        CALLS, "differs", lambda dtype, seed: (differs, (jnp.ones(3, dtype),))
    )
    assert eager("differs", jnp.float64, every=False)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        mapped("differs", jnp.float64, 1e-10)
