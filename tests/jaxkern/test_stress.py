"""Every public function on data that hurt: results that are right or show what is missing, or refusals by name.

`support.stress` says what a call may end in, `public` and `support.stress_numbers` how each function is called and what
must be true. Here hypothesis draws data of one shape, so that every function compiles once, the quick ones by default;
all shapes, both dtypes and 20,000 cases are slow, and `python tools/stress.py` runs as many as one likes.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import public
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from public import LONG, TABLE, Operation
from public.kernels import check_gram
from public.operation import nothing_more
from support import cases, stress
from support.cases import (
    ACCEPTED,
    EXTREME,
    FAMILIES,
    MISSING,
    OF_NO_ROWS,
    ORDINARY,
    RATIOS,
    REFUSED,
    Case,
)
from support.stress import NAMES, judge
from support.stress_numbers import NUMBERS

from jaxkern import kernels, measures
from jaxkern.gram import gram
from tools.stress import main

SLOW_TOTAL = 20_000
EXAMPLES = settings(max_examples=8, deadline=None, derandomize=True, database=None)
POINTS = [name for name, operation in TABLE.items() if operation.points]
ADAPTERS = {name for name in TABLE if name.startswith("sklearn.")}
ADAPTERS -= {"sklearn.Nystrom", "sklearn.PairedFourier"}
SLOW = LONG | ADAPTERS
SLOW |= {
    "bounds.fourier.kernel_values_given",
    "bounds.fourier.relative_distances_given",
    "bounds.fourier.simplex_success_limit",
    "landmarks.pivoted_cholesky",
    "measures.gaussian_spectrum",
    "metrics.misclassification_rate",
    "problems.SkewedLaw",
    "regression.certified_head",
    "regression.posterior_variance",
    "regression.ridge",
    "rkhs.Covariance",
    "scale.kmeans",
    "scale.landmarks",
    "scale.stream",
}
"""Slow to compile; the tests of their own modules do it by default."""


def slow_if_in(slow, names):
    return [
        pytest.param(name, marks=[pytest.mark.slow] * (name in slow)) for name in names
    ]


def complaints_of(name, **words):
    if name in TABLE:
        words = {"kernel_name": TABLE[name].kernels[0], **words}
    case = Case(name, **words)
    complaints, _ = judge(case)
    return [f"{case.line()}: {line}" for line in complaints]


def test_the_table_holds_everything_public():
    names = public.public_names(*public.MODULES, "plan", "sklearn")
    called = {name for name in names if not public.is_no_call(name)}
    # Its argument is a function of sizes.
    assert set(NAMES) == called - {"plan.smallest_size"}
    assert not set(TABLE) & set(NUMBERS)


@pytest.mark.parametrize("name", slow_if_in(SLOW, TABLE))
def test_data_that_hurt(name):
    takes_points = TABLE[name].points

    @EXAMPLES
    @given(
        family=st.sampled_from(list(FAMILIES) if takes_points else sorted(ORDINARY)),
        ratio=st.sampled_from(RATIOS),
        form=st.sampled_from(list(ACCEPTED) if takes_points else ["NumPy"]),
        seed=st.integers(0, 999),
    )
    def holds(**words):
        assert not complaints_of(name, **words)

    holds()


@pytest.mark.parametrize("other", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    slow_if_in(ADAPTERS | {"features.fastfood", "features.streaming_pca"}, POINTS),
)
def test_forms_that_are_refused_and_empty_batches(name, other):
    # By default the next function has the other forms.
    first = (POINTS.index(name) + other) % 2
    forms = [(form, 12) for form in list(REFUSED)[first::2]]
    # Functions of large arrays convert nothing.
    forms += [("list", 12)] * TABLE[name].arrays
    if TABLE[name].used is None:
        forms += [(form, 0) for form in OF_NO_ROWS]
    complaints = []
    for form, n in forms:
        if form not in TABLE[name].skips:
            complaints += complaints_of(name, form=form, n=n)
    assert not complaints


@pytest.mark.parametrize("name", slow_if_in(SLOW, NUMBERS))
def test_numbers_that_hurt(name):
    @settings(EXAMPLES, max_examples=12)
    @given(st.integers(0, 2**31 - 1))
    def holds(seed):
        assert not complaints_of(name, seed=seed)

    holds()


@pytest.fixture
def sabotage(monkeypatch):
    """Return a function that puts an operation in the place of `gram.gram`, and returns its judge."""

    def replace(make, check=nothing_more, **settings):
        monkeypatch.setitem(TABLE, "gram.gram", Operation(make, check, **settings))
        return lambda **words: " ".join(complaints_of("gram.gram", **words))

    return replace


def constant(value, shape=(12, 12)):
    return lambda c: {"K": (jnp.full(shape, value, c.dtype), "12 12: 0..1 descending")}


def test_wrong_shapes_dtypes_and_ranges_are_seen(sabotage):
    assert "has shape" in sabotage(constant(1.0, (12, 11)))()
    assert "not in [0, 1]" in sabotage(constant(1.01))()
    assert "not in [0, 1]" in sabotage(constant(-0.01))()
    ascending = sabotage(lambda c: {"K": (jnp.arange(3.0), "3: descending")})
    assert "not descending" in ascending()
    double = sabotage(lambda c: {"K": (np.ones((12, 12)), "n n")})
    assert "has dtype float64" in double()
    assert not double(dtype="float64")


@pytest.mark.parametrize("family", sorted(MISSING))
def test_missing_data_that_are_hidden_are_seen(sabotage, family):
    hiding = sabotage(constant(1.0))
    assert "missing data do not show" in hiding(family=family)
    assert not hiding()
    flagged = sabotage(lambda c: {"finite": (jnp.asarray(False), "")})
    assert not flagged(family=family)
    assert "not finite" in flagged()


@pytest.mark.parametrize("family", sorted(ORDINARY | EXTREME))
def test_numbers_that_are_not_finite_are_seen(sabotage, family):
    case = Case("gram.gram", family)
    explained = not np.isfinite(case.plain).all() or not case.fits
    complaint = sabotage(constant(jnp.nan))(family=family)
    assert explained or "not finite" in complaint
    # Squares out of range explain it, for the functions of which that is said.
    forgiving = sabotage(constant(jnp.nan), overflows=True)
    assert bool(forgiving(family=family)) == (case.in_range and not explained)


def broadcast(c):
    return jnp.ones(3) + jnp.ones(4)


def refuse_elsewhere(c):
    raise ValueError("X must be better")  # not by the package


def warn(c):
    warnings.warn("overflow", RuntimeWarning, stacklevel=1)


def ask_for_nothing(c):
    return c.nothing


def refuse_without_a_name(c):
    return kernels.Gaussian(1.0)(c.plain[0], [0.0])


@pytest.mark.parametrize(
    "make", [broadcast, refuse_elsewhere, warn, ask_for_nothing, refuse_without_a_name]
)
def test_errors_without_a_name_are_seen(sabotage, make):
    assert "not a refusal by name" in sabotage(make)()


def test_refusals_and_results_where_the_other_is_due_are_seen(sabotage):
    refused = sabotage(lambda c: {"K": (gram(c.kernel, c.plain[0]), "")})
    assert "where a result is due" in refused()
    accepted = sabotage(constant(1.0))
    for form in REFUSED:
        assert "should be refused" in accepted(form=form)
    assert "should be too few" in accepted(n=0)


def test_results_that_depend_on_the_form_are_seen(sabotage):
    def of_layout(c):
        return {"K": (jnp.asarray(float(c.X.flags["C_CONTIGUOUS"]), c.dtype), "")}

    assert "depends on the form" in sabotage(of_layout)(form="Fortran order")


def test_wrong_numbers_are_seen(sabotage):
    """The float32 Gram matrix without centring, as an example of what the table is there for."""

    @jax.jit
    def K(X, Y):
        squares = (X**2).sum(1)[:, None] + (Y**2).sum(1)[None, :]
        squares -= 2 * jnp.matmul(X, Y.T, precision="highest")
        return jnp.exp(-jnp.maximum(squares, 0) / 2)

    def uncentred(c):
        X = jnp.asarray(c.plain) / c.lengthscale
        return {"K": (K(X, X), "n n")}

    assert "K not in" in sabotage(uncentred, check_gram)(family="offset 1e3")


def test_families_are_what_they_are_called():
    assert set(FAMILIES) == ORDINARY | EXTREME | MISSING
    for name in ORDINARY:
        for dtype in ("float32", "float64"):
            case = Case("", name, dtype=dtype)
            assert np.isfinite(case.rows).all()
            assert case.in_range
    for name in EXTREME:
        assert not Case("", name).in_range or "squared" in name
    for name in MISSING:
        assert not np.isfinite(Case("", name).plain).all()
        assert np.isfinite(np.asarray(Case("", name).Y)).any()
    near = Case("", "near-duplicates", dtype="float64")
    distances = cases.between(near.rows) + 9 * np.eye(25)
    assert (distances.min(axis=1) < 1e-6).sum() == 24
    assert Case("", "near-duplicates").lengthscale > 0.1
    rank_one = Case("", "rank one", dtype="float64")
    assert np.linalg.matrix_rank(rank_one.plain) == 1
    assert np.ptp(Case("", "constant").rows, axis=0).max() == 0


def test_forms_hold_the_same_numbers():
    points = Case("").plain
    for form, make in ACCEPTED.items():
        np.testing.assert_array_equal(np.asarray(make(points)), points, err_msg=form)
    assert not ACCEPTED["strided"](points).flags["C_CONTIGUOUS"]
    assert ACCEPTED["negative strides"](points).strides[0] < 0
    assert not ACCEPTED["read-only"](points).flags.writeable


def test_a_line_repeats_a_case(capsys):
    assert stress.draw(3, 141) == stress.draw(3, 141) != stress.draw(4, 141)
    assert main(["--case", Case("gram.center", seed=5).line()]) is False
    assert "as it should be" in capsys.readouterr().out


def test_cases_are_drawn_from_all_names_families_forms_and_sizes():
    drawn = [stress.draw(1, number) for number in range(6 * len(NAMES))]
    assert {c.name for c in drawn} == set(NAMES)
    assert {c.family for c in drawn} == set(FAMILIES)
    assert {c.ratio for c in drawn} == set(RATIOS)
    assert {c.form for c in drawn} == {*ACCEPTED, *REFUSED}
    assert {(c.n, c.dim) for c in drawn} == set(cases.SIZES)


def test_a_date_is_no_static_number():
    date = np.datetime64("2020-01-01")
    X = jnp.ones((2, 2))
    with pytest.raises(ValueError, match="lengthscale must be"):
        gram(kernels.Gaussian(date), X)
    with pytest.raises(ValueError, match="noise must be"):
        measures.mean_gaussian_kernel(X, date, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(0, len(NAMES), 4))
def test_twenty_thousand_cases(turn):
    names = NAMES[turn : turn + 4]
    failures = []
    share = -(-SLOW_TOTAL // len(NAMES)) * len(names)
    drawn = [stress.draw(1, i, names) for i in range(share)]
    failed, ends = stress.run(drawn, failures.append, patience=0)
    assert not failed, "\n".join(failures)
    assert sum(ends.values()) == share
    assert ends["result"] > 0
