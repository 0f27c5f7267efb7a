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
import inspect
import os
import pathlib
import re
import traceback
import warnings

import jax
import numpy as np
from public import TABLE
from public.operation import check_range, equal, shape_of
from scipy.spatial.distance import pdist
from support.bounds import named
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
DTYPES = ("float32", "float64")
NAMES = (*TABLE, *NUMBERS)
OUT_OF_RANGE = r"within the range of|positive and finite|non-negative and finite"
TOO_FEW = r"at least \d+ row|at least one row|at least one number|n >= 1|at most 0|at least 1, got 0|at least 2, got"


def words_of(name):
    """Return the words by which a refusal may name an argument of a public function or class."""
    try:
        words = [*inspect.signature(named(name)).parameters]
    except ValueError:
        words = []
    return (
        [*words, "X", "lengthscale", *TABLE[name].words.split()]
        if name in TABLE
        else words
    )


def is_named(name, error):
    """Tell whether an error is a ValueError of the package that names an argument."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename.replace("\\", "/")
    if name in TABLE and TABLE[name].converts:
        theirs = "/sklearn/" in last.replace("/jaxkern/sklearn/", "/")
        if theirs and isinstance(error, ValueError | TypeError):
            return True
    in_package = "/jaxkern/" in last.replace("/tests/jaxkern/", "/")
    word = rf"\b({'|'.join(words_of(name))})\b"
    return (
        type(error) is ValueError and in_package and bool(re.search(word, str(error)))
    )


def expected_end(c, operation):
    """Return what a case must end in: "refused", "too few", or "result"; or may, "out of range" or "either"."""
    too_few = c.n < operation.least
    refused = c.form in REFUSED
    if operation.converts:
        # The default lengthscale is the median distance.
        fits = np.isfinite(c.plain).all() and np.median(pdist(c.plain)) > 0
        return "either" if refused or too_few or not fits else "result"
    refused = refused or (operation.arrays and is_no_array(c))
    if operation.points and refused:
        return "refused"
    if too_few:
        return "too few"
    return "result" if c.fits else "out of range"


def is_no_array(c):
    """Tell whether the form is none that functions of files and large arrays take: they do not convert."""
    lists = ("list", "list of arrays", "memoryview")
    return c.form in lists or (c.form == "wider" and c.dtype == "float32")


def results_of(c):
    """Call the function of a case and return its arrays by word."""
    results = TABLE[c.name].make(c)
    return {word: (np.asarray(value), text) for word, (value, text) in results.items()}


def is_finite(array):
    """Tell whether all numbers are finite; labels are."""
    return array.dtype.kind != "f" or np.isfinite(array).all()


def judge(c):
    """Return what is wrong with a case, a list of lines, and what it ended in."""
    with jax.enable_x64(c.dtype == "float64"), warnings.catch_warnings():
        warnings.simplefilter("error")
        if c.name in NUMBERS:
            return judge_numbers(c, is_named)
        operation = TABLE[c.name]
        if operation.converts:  # it adds up the points to see whether they are finite
            warnings.filterwarnings("ignore", category=RuntimeWarning, module="numpy")
        end = expected_end(c, operation)
        try:
            results = results_of(c)
        except Exception as error:
            return list(judge_error(c, end, error)), "refused"
        if end in ("refused", "too few"):
            return [f"accepted, where it should be {end}"], "result"
        complaints = list(judge_results(c, operation, results))
        if c.form != "NumPy" and operation.points and not operation.converts:
            plain = results_of(dataclasses.replace(c, form="NumPy"))
            for word in results.keys() - set(operation.of_one_array):
                if list(equal(word, results[word][0], plain[word][0])):
                    complaints.append(f"{word} depends on the form")
    return complaints, "result"


def judge_error(c, end, error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(last.filename)}:{last.lineno}"
    text = str(error)
    line = f"{type(error).__name__} at {place}: {text[:200]!r}"
    if not is_named(c.name, error):
        yield f"not a refusal by name: {line}"
    elif end == "result" or (
        end == "out of range" and not re.search(OUT_OF_RANGE, text)
    ):
        yield f"refused, where a {end} is due: {line}"
    elif end == "too few" and c.fits and not re.search(TOO_FEW, text):
        yield f"refused for another reason than its few rows: {line}"


def judge_results(c, operation, results):
    for word, (value, text) in results.items():
        shape = shape_of(c, text)
        if value.shape != shape:
            yield f"{word} has shape {value.shape}, not {shape}"
            return
        is_other = value.dtype.kind == "f" and value.dtype != c.dtype
        if is_other and not operation.any_dtype:
            yield f"{word} has dtype {value.dtype}"
    if operation.converts and c.form in REFUSED:
        return  # what such a form was converted to is not the points of the case
    values = {word: value for word, (value, _) in results.items()}
    points = c.plain[: operation.used] if operation.points else np.zeros(1)
    others = np.asarray(c.rows[c.n :])
    if not np.isfinite(points).all():
        must = np.isnan(points).any() or operation.shows_infinity
        flags = [values[flag] for flag in FLAGS if flag in values]
        shows = not np.all(flags) or not all(map(is_finite, values.values()))
        if must and not operation.hides and not shows:
            yield "missing data do not show"
    elif np.isfinite(others).all() and not may_overflow(c, operation):
        words = [word for word, value in values.items() if not is_finite(value)]
        if not np.all(values.get("finite", True)):
            words.append("finite")
        if words:
            yield f"not finite: {', '.join(words)}"
    with np.errstate(all="ignore"):  # of the checks, not of the package
        for word, (_, text) in results.items():
            yield from check_range(c, values, word, text)
        yield from operation.check(c, values)


def may_overflow(c, operation):
    """Tell whether numbers that are not finite are explained, though the points are finite."""
    explained = operation.overflows and not c.in_range
    if callable(operation.overflows):
        explained = operation.overflows(c)
    return explained or c.grows or not c.fits


def draw(seed, number, names=NAMES):
    """Return case `number` of a run: the functions take turns, all else is random."""
    rng = np.random.default_rng([seed, number])
    name = names[number % len(names)]

    def pick(values, odds=None):
        values = list(values)
        return values[rng.choice(len(values), p=odds)]

    if name in NUMBERS:
        dtype = pick(DTYPES)
        return Case(name, dtype=dtype, seed=int(rng.integers(2**31)))
    operation = TABLE[name]
    # Wide points take long, and most of what can be wrong with them is so in three dimensions.
    odds = np.array([0.2 if dim > 100 else 1.0 for _, dim in SIZES])
    takes_none = operation.points and operation.used is None
    odds *= [dim <= operation.widest and (n > 0 or takes_none) for n, dim in SIZES]
    n, dim = pick(SIZES, odds / odds.sum())
    refused = [form for form in REFUSED if form not in operation.skips]
    form = pick([pick(ACCEPTED), "NumPy", pick(refused)], [0.3, 0.5, 0.2])
    if n == 0:
        form = pick([form for form in OF_NO_ROWS if form not in operation.skips])
    return Case(
        name,
        family=pick(FAMILIES if operation.points else sorted(ORDINARY)),
        n=n,
        dim=dim,
        dtype=pick(DTYPES),
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
    failed = 0
    ends = collections.Counter()
    last = None
    for case in sorted(cases, key=program):
        if case.name != last and case.name in TABLE:
            jax.clear_caches()
            last = case.name
        if patience:
            faulthandler.dump_traceback_later(patience, exit=True)
            path = os.environ.get("STRESS_LAST", os.devnull)
            pathlib.Path(path).write_text(case.line(), encoding="utf-8")
        complaints, end = judge(case)
        ends[end] += 1
        if complaints:
            failed += 1
            report(f"{case.line()}: {'; '.join(complaints)}")
    if patience:
        faulthandler.cancel_dump_traceback_later()
    return failed, ends
