"""Every public function on data that hurt: cases, and what may come of them.

A call may end in two ways. It may refuse: by a ValueError out of the package that names the argument, for what is
static (shapes, dtypes, kinds of objects, Python numbers). Or it returns results of the right shapes and dtypes, which
are finite where the data are finite and their squares in range, have the properties in the table, show missing data by
a number that is not finite or by a field (`converged`, `finite`), and do not depend on the form of the input, to the
last bit. Whatever else happens is a failure: another error, a warning, a number that is wrong or missing in silence.
"""

import collections
import dataclasses
import faulthandler
import importlib
import inspect
import os
import re
import traceback
import warnings

import jax
import numpy as np
from public import TABLE
from scipy.spatial.distance import pdist
from support.cases import (
    ACCEPTED,
    FAMILIES,
    OF_NO_ROWS,
    ORDINARY,
    RATIOS,
    REFUSED,
    SIZES,
    Case,
)
from support.stress_numbers import NUMBERS, judge_numbers

FLAGS = ("converged", "finite")
NAMES = (*TABLE, *NUMBERS)
OUT_OF_RANGE = r"within the range of|positive and finite|non-negative and finite"
TOO_FEW = r"at least \d+ row|at least one row|at least one number|n >= 1|at most 0|at least 1, got 0|at least 2, got"


def words_of(name):
    """The names of the arguments of a public function, and of those a class is made with."""
    module, _, attribute = name.rpartition(".")
    function = getattr(importlib.import_module(f"jaxkern.{module}"), attribute)
    try:
        return tuple(inspect.signature(function).parameters)
    except ValueError:
        return ()


def is_named(name, error):
    """Tell whether an error is a ValueError of the package that names an argument."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename.replace("\\", "/")
    theirs = "/sklearn/" in last.replace("/jaxkern/sklearn/", "/")
    if (
        name in TABLE
        and TABLE[name].converts
        and theirs
        and isinstance(error, ValueError | TypeError)
    ):
        return True
    words = (
        *words_of(name),
        *(("X", "lengthscale", *TABLE[name].words) if name in TABLE else ()),
    )
    return (
        type(error) is ValueError
        and "/jaxkern/" in last.replace("/tests/jaxkern/", "/")
        and bool(re.search(rf"\b({'|'.join(words)})\b", str(error)))
    )


def wants(c, operation):
    """Return what a case must end in: "refused", "too few", or "result"; or may, "out of range" or "either"."""
    if operation.converts:
        return (
            "either"
            if c.form in REFUSED
            or c.n < operation.least
            or not np.isfinite(c.plain).all()
            or not np.median(pdist(c.plain)) > 0  # the default lengthscale
            else "result"
        )
    if operation.points and (
        c.form in REFUSED or (operation.arrays and is_no_array(c))
    ):
        return "refused"
    if c.n < operation.least:
        return "too few"
    return "result" if c.fits else "out of range"


def is_no_array(c):
    """Tell whether the form is none that functions of files and large arrays take: they do not convert."""
    return c.form in ("list", "list of arrays", "memoryview") or (
        c.form == "wider" and c.dtype == "float32"
    )


def sizes_of(c, shape):
    """Return a shape as numbers (see `public.operation` for the words)."""
    if not isinstance(shape, str):
        return shape
    sizes = {"n": c.n, "m": c.n + 1, "2n": 2 * c.n, "dim": c.dim, "few": c.few}
    return tuple(sizes[word] if word in sizes else int(word) for word in shape.split())


def values_of(c):
    """Call the function of a case and return its arrays with the shapes that they should have."""
    results = TABLE[c.name].make(c)
    return {
        word: (np.asarray(value), sizes_of(c, shape))
        for word, (value, shape) in results.items()
    }


def judge(c):
    """Return what is wrong with a case, a list of lines, and what it ended in."""
    if c.name in NUMBERS:
        with jax.enable_x64(c.dtype == "float64"), warnings.catch_warnings():
            warnings.simplefilter("error")
            return judge_numbers(c, is_named)
    operation = TABLE[c.name]
    wanted = wants(c, operation)
    with jax.enable_x64(c.dtype == "float64"), warnings.catch_warnings():
        warnings.simplefilter("error")
        if operation.converts:  # it adds up the points to see whether they are finite
            warnings.filterwarnings("ignore", category=RuntimeWarning, module="numpy")
        try:
            found = values_of(c)
        except Exception as error:
            return list(judge_error(c, wanted, error)), "refused"
        if wanted in ("refused", "too few"):
            return [f"accepted, where it should be {wanted}"], "result"
        complaints = list(judge_values(c, operation, found))
        if c.form != "NumPy" and operation.points and not operation.converts:
            plain = values_of(dataclasses.replace(c, form="NumPy"))
            complaints += [
                f"{word} depends on the form"
                for word in found.keys() - set(operation.of_one_array)
                if not np.array_equal(
                    found[word][0],
                    plain[word][0],
                    equal_nan=found[word][0].dtype.kind == "f",
                )
            ]
    return complaints, "result"


def judge_error(c, wanted, error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(last.filename)}:{last.lineno}"
    said = f"{type(error).__name__} at {place}: {str(error)[:200]!r}"
    if not is_named(c.name, error):
        yield f"not a refusal by name: {said}"
    elif wanted == "result" or (
        wanted == "out of range" and not re.search(OUT_OF_RANGE, str(error))
    ):
        yield f"refused, where a {wanted} is due: {said}"
    elif wanted == "too few" and c.fits and not re.search(TOO_FEW, str(error)):
        yield f"refused for another reason than its few rows: {said}"


def judge_values(c, operation, found):
    values = {word: value for word, (value, _) in found.items()}
    for word, (value, shape) in found.items():
        if value.shape != shape:
            yield f"{word} has shape {value.shape}, not {shape}"
            return
        if (
            value.dtype.kind == "f"
            and not operation.any_dtype
            and value.dtype != c.dtype
        ):
            yield f"{word} has dtype {value.dtype}"
    used = c.plain[: operation.used] if operation.points else np.zeros(1)
    shows = any(
        value.dtype.kind == "f" and not np.isfinite(value).all()
        for value in values.values()
    )
    shows = shows or any(not np.all(values[flag]) for flag in FLAGS if flag in values)
    others = np.asarray(c.rows[c.n :])
    if operation.converts and c.form in REFUSED:
        return  # what such a form was converted to is not the points of the case
    if not np.isfinite(used).all():
        if (
            not operation.hides
            and not shows
            and (np.isnan(used).any() or operation.shows_infinity)
        ):
            yield "missing data do not show"
    elif np.isfinite(others).all():
        yield from shows_beyond(c, operation, values)
    with np.errstate(all="ignore"):  # of the checks, not of the package
        yield from operation.check(c, values)


def shows_beyond(c, operation, values):
    """Return what is not finite though the data are, and nothing explains it."""
    explained = (
        operation.overflows(c)
        if callable(operation.overflows)
        else operation.overflows and not c.in_range
    )
    if explained or c.grows or not c.fits:
        return []
    words = [
        word
        for word, value in values.items()
        if value.dtype.kind == "f" and not np.isfinite(value).all()
    ]
    words += [
        flag for flag in ("finite",) if flag in values and not np.all(values[flag])
    ]
    return [f"not finite: {', '.join(words)}"] if words else []


def draw(seed, number, names=NAMES):
    """Return case `number` of a run: the functions take turns, all else is random."""
    rng = np.random.default_rng([seed, number])
    name = names[number % len(names)]
    operation = TABLE.get(name)

    def pick(values, odds=None):
        values = list(values)
        return values[rng.choice(len(values), p=odds)]

    if operation is None:
        return Case(
            name, dtype=pick(["float32", "float64"]), seed=int(rng.integers(2**31))
        )
    # Wide points take long, and most of what can be wrong with them is so in three dimensions.
    odds = np.array([0.2 if dim > 100 else 1.0 for _, dim in SIZES]) * [
        dim <= operation.widest
        and (n > 0 or (operation.points and operation.used is None))
        for n, dim in SIZES
    ]
    n, dim = pick(SIZES, odds / odds.sum())
    form = pick(
        [
            pick(ACCEPTED),
            "NumPy",
            pick([form for form in REFUSED if form not in operation.skips]),
        ],
        [0.3, 0.5, 0.2],
    )
    if n == 0:
        form = pick([form for form in OF_NO_ROWS if form not in operation.skips])
    return Case(
        name,
        family=pick(FAMILIES if operation.points else sorted(ORDINARY)),
        n=n,
        dim=dim,
        dtype=pick(["float32", "float64"]),
        ratio=pick(RATIOS),
        kernel_name=pick(operation.kernels),
        form=form if operation.points else "NumPy",
        seed=int(rng.integers(2**31)),
    )


def program(c):
    """Return what a compiled program depends on: cases in this order compile each of them once."""
    return c.name, c.dtype, c.kernel_name, c.n, c.dim


def run(cases, report=print, patience=240):
    """Judge cases, report failures line by line, and return how many failed and how many ended in what."""
    failed, ends, last = 0, collections.Counter(), None
    for case in sorted(cases, key=program):
        if case.name != last and case.name in TABLE:
            jax.clear_caches()
            last = case.name
        if patience:
            faulthandler.dump_traceback_later(patience, exit=True)
            with open(
                os.environ.get("STRESS_LAST", os.devnull), "w", encoding="utf-8"
            ) as file:
                file.write(case.line())
        complaints, end = judge(case)
        ends[end] += 1
        if complaints:
            failed += 1
            report(f"{case.line()}: {'; '.join(complaints)}")
    if patience:
        faulthandler.cancel_dump_traceback_later()
    return failed, ends
