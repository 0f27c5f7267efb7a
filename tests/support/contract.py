"""The programs of the contract: every public function, traced once, and mapped over two rows and differentiated.

`public.joined` gives the functions of a group as one function of {name: arguments}. Every function has arguments of its
own, so nothing that is said of one rests on another.
"""

import cProfile
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from public import ENTRIES, GROUPS, NO_GRADIENT, joined

PLATFORMS = ("cpu", "cuda", "tpu")
GRADIENTS = {
    group for group, names in GROUPS.items() if set(names) <= set(ENTRIES) - NO_GRADIENT
}
SIGNS = ("converged", "finite", "valid")
"""Fields that say, where False, that the numbers next to them are no result."""
LIMITS = {"float32": (1e3, 1e7, 1e15), "float64": (1e3, 1e7, 1e100)}
"""In place of infinity: at one of them a result that has a limit, such as K = 0, has reached it."""
OF_EQUAL_POINTS = ("audit.", "clustering.")
"""Modules whose results jump if the lengthscale is infinite: K = 1, no pair is apart, and any partition is right."""
CALLED = set()
"""The code that ran while programs were traced."""


@functools.cache
def traced(group):
    """Return the program of public functions on float32 arguments, traced once for all that is said of it."""
    with jax.enable_x64(False):  # else what is traced here is not traced below
        function, args = joined(group, jnp.float32, 0)
    with (
        cProfile.Profile(subcalls=False, builtins=False) as profile,
        jax.enable_x64(True),  # float64 that slips in is seen, and not rounded away
    ):
        program = jax.jit(function).trace(jax.eval_shape(lambda: args))
    CALLED.update(entry.code for entry in profile.getstats())
    return program


def exported(group):
    """Return the functions of a group as they come back from bytes: one artefact for cpu, cuda and tpu."""
    function, args = joined(group, jnp.float32, 0)
    shapes, tree = jax.tree.flatten(jax.eval_shape(lambda: args))
    arrays = jax.jit(
        lambda leaves: arrays_of(function(jax.tree.unflatten(tree, leaves)))
    )
    artefact = export.export(arrays, platforms=PLATFORMS)(shapes)
    assert artefact.platforms == PLATFORMS
    run = jax.jit(export.deserialize(artefact.serialize()).call)
    return lambda args: run(jax.tree.leaves(args))


def is_key(leaf):
    return jnp.issubdtype(getattr(leaf, "dtype", float), jax.dtypes.prng_key)


def is_float(leaf):
    return jnp.issubdtype(leaf.dtype, jnp.floating)


def word_of(path):
    return jax.tree_util.keystr(path, simple=True, separator=".")


def arrays_of(results):
    """Return the arrays of results, which are no keys, by name and path."""
    return {
        name: {
            word_of(path): leaf
            for path, leaf in jax.tree.leaves_with_path(result)
            if not is_key(leaf)
        }
        for name, result in results.items()
    }


def numeric(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree) if not is_key(leaf)]


def stack(first, second):
    """Stack two leaves in NumPy, which compiles nothing; `jnp.stack` would count keys as used."""
    if is_key(first):
        pair = [jax.random.key_data(leaf) for leaf in (first, second)]
        return jax.random.wrap_key_data(np.stack(pair))
    return np.stack([first, second])


@functools.cache
def stacked(group, dtype):
    """Return one program of two rows of arguments, and the numbers of the leaves that it differentiates: the floats.

    It takes the leaves of both rows and returns ((totals, results), gradients of the totals, if the group has any).
    """
    function, args = joined(group, dtype, 0)
    leaves, tree = jax.tree.flatten(args)
    floats = [i for i, leaf in enumerate(leaves) if is_float(leaf)]

    def total_of(result):
        sines = [jnp.sum(jnp.sin(x)) for x in jax.tree.leaves(result) if is_float(x)]
        return sum(sines)

    def total(values, leaves):
        leaves = list(leaves)
        for i, value in zip(floats, values, strict=True):
            leaves[i] = value
        outputs = function(jax.tree.unflatten(tree, leaves))
        totals = {name: total_of(result) for name, result in outputs.items()}
        return sum(totals.values()), (totals, outputs)

    differentiates = group in GRADIENTS and dtype == jnp.float64
    row = jax.value_and_grad(total, has_aux=True) if differentiates else total
    program = jax.jit(jax.vmap(row))

    def run(first, second):
        rows = [stack(*pair) for pair in zip(first, second, strict=True)]
        # The single calls watch for keys that are used twice; to watch here traces every program again.
        with jax.debug_key_reuse(False):
            result = program([rows[i] for i in floats], rows)
        (_, outputs), gradients = result if differentiates else (result, [])
        return outputs, gradients

    return run, floats


def fresh_leaves(group, dtype, seed):
    """Return the leaves of the arguments; keys are consumed once."""
    return jax.tree.leaves(joined(group, dtype, seed)[1])


def check_mapped(group, dtype, tolerance):
    """Assert that one program of stacked arguments gives what two calls without `jit` give, and return these.

    The gradients of every function are finite at the first row, and agree with differences.
    """
    function, args = joined(group, dtype, 0)
    tree = jax.tree.structure(args)
    run, _ = stacked(group, dtype)
    pair = [fresh_leaves(group, dtype, seed) for seed in (0, 1)]
    (_, outputs), gradients = run(*pair)
    if group.startswith("bounds."):
        # A formula on JAX arrays is a program for each operation, 230 in all; the same formulas run on NumPy.
        pair = [[np.asarray(leaf)[()] for leaf in leaves] for leaves in pair]
    else:
        pair = [fresh_leaves(group, dtype, seed) for seed in (0, 1)]
    singles = [function(jax.tree.unflatten(tree, leaves)) for leaves in pair]
    for rows, *alone in zip(numeric(outputs), *map(numeric, singles), strict=True):
        size = 1 + max(np.abs(single).max(initial=0) for single in alone)
        for row, single in zip(rows, alone, strict=True):
            assert row.dtype == single.dtype
            np.testing.assert_allclose(row, single, rtol=0, atol=tolerance * size)
    assert all(map(numeric, outputs.values()))
    if gradients:
        check_gradients(group, dtype, [np.asarray(slope)[0] for slope in gradients])
    return singles


def check_gradients(group, dtype, gradients):
    """Assert that gradients at the first row are finite, and agree with differences in a random direction."""
    paths, _ = jax.tree.flatten_with_path(joined(group, dtype, 0)[1])
    run, floats = stacked(group, dtype)
    rng = np.random.default_rng(5)
    steps = {}
    for i in floats:
        x = np.asarray(paths[i][1])
        steps[i] = rng.standard_normal(x.shape) * 1e-6 * np.maximum(1, np.abs(x))
    ends = []
    for sign in (1, -1):
        leaves = fresh_leaves(group, dtype, 0)
        ends.append(
            [
                leaf + sign * steps.get(i, 0) if i in steps else leaf
                for i, leaf in enumerate(leaves)
            ]
        )
    (totals, _), _ = run(*ends)
    for name, (up, down) in totals.items():
        slope = 0.0
        size = 0.0
        for i, gradient in zip(floats, gradients, strict=True):
            if paths[i][0][0].key == name:
                assert np.isfinite(gradient).all()
                slope += np.vdot(gradient, steps[i])
                size += np.vdot(np.abs(gradient), np.abs(steps[i]))
        rounding = 1e-12 * (1 + abs(float(up)))
        assert abs(float(up - down) / 2 - slope) <= 1e-4 * size + rounding, name


class Spoiled:
    """The functions of a group at their examples, with some numbers of their arguments replaced.

    They run as the first row of the program of two rows.
    """

    def __init__(self, group, dtype):
        self.eager, args = joined(group, dtype, 0)
        self.program, self.places = stacked(group, dtype)
        self.leaves, self.tree = jax.tree.flatten_with_path(args)

    def changed(self, change, spots):
        """Return the leaves with the numbers at (place, index) changed."""
        leaves = [
            jax.random.clone(leaf) if is_key(leaf) else leaf for _, leaf in self.leaves
        ]
        for place, index in spots:
            array = np.array(leaves[place])
            flat = array.reshape(-1)
            flat[index] = change(float(flat[index]))
            # Numbers of NumPy are computed with as those of Python.
            leaves[place] = jnp.asarray(array)
        return leaves

    def __call__(self, change=None, spots=()):
        """Return the arrays of the results, by name and path, where numbers at (place, index) are changed."""
        leaves = self.changed(change, spots)
        (_, outputs), _ = self.program(leaves, leaves)
        return jax.tree.map(lambda rows: np.asarray(rows)[0], arrays_of(outputs))

    def without_jit(self, change=None, spots=()):
        """Return the same of calls without `jit`."""
        leaves = self.changed(change, spots)
        outputs = self.eager(jax.tree.unflatten(self.tree, leaves))
        return jax.tree.map(np.asarray, arrays_of(outputs))

    def name_of(self, place):
        return self.leaves[place][0][0].key

    def rounds(self, every):
        """Yield numbers to change at once, one of each function: the first and last of each array, or all."""
        spots = {}
        for place in self.places:
            size = self.leaves[place][1].size
            indices = range(size) if every else {0, size - 1}
            spots.setdefault(self.name_of(place), []).extend(
                (place, index) for index in indices
            )
        for row in itertools.zip_longest(*spots.values()):
            yield [spot for spot in row if spot]


def room(name):
    """Return how many times the rounding of others a function may have: for systems whose condition is some tens, and
    for exponents of some ten thousands."""
    return 4 if name.startswith(("regression.", "bounds.fourier.ball_matern")) else 1


def near(a, b, tolerance):
    size = np.abs(b).max(initial=0, where=np.isfinite(b)) if b.dtype.kind == "f" else 0
    return np.allclose(a, b, rtol=0, atol=tolerance * (1 + size), equal_nan=True)


def is_lost(before, after):
    """Tell whether there is no number where there was one, or no label."""
    if before.dtype.kind == "f":
        return (np.isfinite(before) & ~np.isfinite(after)).any()
    return before.dtype.kind == "i" and ((before != -1) & (after == -1)).any()


def hides(result, base, other, limits):
    """Return the parts of a result that depend on a number that is missing, and do not show it.

    `result` is the one without the number, `base` the one with it, `other` the one with another number.
    """
    if any(
        word.endswith(SIGNS) and (before & ~result[word]).any()
        for word, before in base.items()
    ):
        return []
    if any(word.endswith("probability") and (result[word] <= 0).all() for word in base):
        return []
    lost = {word for word, before in base.items() if is_lost(before, result[word])}
    parts = []
    for word, before in base.items():
        strict = 1e-5 if before.dtype == np.float32 else 1e-9
        shows = word in lost or (before.dtype.kind != "f" and lost)
        depends = not (
            near(result[word], before, strict) and near(other[word], before, strict)
        )
        if shows or word.endswith(SIGNS) or not depends:
            continue
        if not any(near(result[word], limit[word], 1e-3) for limit in limits):
            parts.append(word)
    return parts


def sweep(group, dtype, every):
    """Return what hides that a number of an argument is NaN or infinite."""
    call = Spoiled(group, dtype)
    base = call()
    complaints = []
    for spots in call.rounds(every):
        other = call(lambda x: 1.37 * x + 0.11, spots)
        sizes = LIMITS[dtype.__name__]
        ends = [
            [call(lambda _, end=sign * size: end, spots) for size in sizes]
            for sign in (1, -1)
        ]
        for value, limits in ((np.nan, []), (np.inf, ends[0]), (-np.inf, ends[1])):
            result = call(lambda _, value=value: value, spots)
            for place, index in spots:
                name = call.name_of(place)
                argument = word_of(call.leaves[place][0])
                is_flat = np.isinf(value) and "lengthscale" in argument
                if is_flat and name.startswith(OF_EQUAL_POINTS):
                    continue
                for part in hides(
                    result[name], base[name], other[name], [x[name] for x in limits]
                ):
                    complaints.append(
                        f"{name}: {part or 'it'} hides {argument}[{index}] = {value}"
                    )
    return complaints


def differs_without_jit(group, dtype, every):
    """Return what is not the same without `jit`: with good numbers, and with a NaN in every argument."""
    call = Spoiled(group, dtype)
    complaints = []
    for spots in ([], *([(place, 0)] for place in call.places)) if every else ([],):
        try:
            eager = call.without_jit(lambda _: np.nan, spots)
        except ValueError:
            if not spots:
                raise
            continue  # refused: without `jit` values may be looked at
        for name, results in call(lambda _: np.nan, spots).items():
            for word, array in results.items():
                assert eager[name][word].dtype == array.dtype
                if not near(
                    eager[name][word], array, 64 * room(name) * np.finfo(dtype).eps
                ):
                    complaints.append(
                        f"{name}: {word} differs without jit, NaN in {spots}"
                    )
    return complaints
