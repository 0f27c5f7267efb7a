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

from jaxkern import features, kernels, measures, scale
from jaxkern.gram import gram
from tools.stress import main

SLOW_TOTAL = 20_000
EXAMPLES = settings(max_examples=8, deadline=None, derandomize=True, database=None)
POINTS = [name for name, operation in TABLE.items() if operation.points]
ADAPTERS = {name for name in TABLE if name.startswith("sklearn.")} - {
    "sklearn.Nystrom",
    "sklearn.PairedFourier",
}
SLOW = "bounds.fourier.kernel_values_given bounds.fourier.relative_distances_given landmarks.pivoted_cholesky"
SLOW += " bounds.fourier.simplex_success_limit regression.certified_head regression.posterior_variance regression.ridge"
SLOW += " measures.gaussian_spectrum metrics.misclassification_rate problems.SkewedLaw rkhs.Covariance"
SLOW = (
    LONG | ADAPTERS | {*(SLOW + " scale.kmeans scale.landmarks scale.stream").split()}
)
"""Slow to compile; the tests of their own modules do it by default."""


def each(names, slow=SLOW):
    return [
        pytest.param(name, marks=[pytest.mark.slow] * (name in slow)) for name in names
    ]


def complaints_of(case):
    complaints, _ = judge(case)
    return [f"{case.line()}: {line}" for line in complaints]


def test_the_table_holds_everything_public():
    names = public.public_names(*public.MODULES, "plan", "sklearn")
    called = {name for name in names if not public.is_no_call(name)}
    assert set(NAMES) == called - {
        "plan.smallest_size"
    }  # which takes a function of sizes
    assert not set(TABLE) & set(NUMBERS)


@pytest.mark.parametrize("name", each(TABLE))
def test_data_that_hurt(name):
    @EXAMPLES
    @given(
        st.sampled_from(list(FAMILIES) if TABLE[name].points else sorted(ORDINARY)),
        st.sampled_from(RATIOS),
        st.sampled_from(list(ACCEPTED)),
        st.integers(0, 999),
    )
    def holds(family, ratio, form, seed):
        form = form if TABLE[name].points else "NumPy"
        case = Case(
            name,
            family,
            ratio=ratio,
            form=form,
            seed=seed,
            kernel_name=TABLE[name].kernels[0],
        )
        assert not complaints_of(case)

    holds()


@pytest.mark.parametrize("other", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", each(POINTS, ADAPTERS | {"features.fastfood", "features.streaming_pca"})
)
def test_forms_that_are_refused_and_empty_batches(name, other):
    kernel = TABLE[name].kernels[0]
    found = []
    for form in list(REFUSED)[
        (POINTS.index(name) + other) % 2 :: 2
    ]:  # by default its neighbour has the others
        if form not in TABLE[name].skips:
            found += complaints_of(Case(name, form=form, kernel_name=kernel))
    if TABLE[name].used is None:
        for form in OF_NO_ROWS:
            if form not in TABLE[name].skips:
                found += complaints_of(Case(name, n=0, form=form, kernel_name=kernel))
    assert not found


@pytest.mark.parametrize("name", each(NUMBERS))
def test_numbers_that_hurt(name):
    @settings(EXAMPLES, max_examples=12)
    @given(st.integers(0, 2**31 - 1))
    def holds(seed):
        assert not complaints_of(Case(name, seed=seed))

    holds()


def sabotaged(monkeypatch, make, check=nothing_more, **words):
    """Return what is said of an operation of our own in the place of `gram.gram`."""
    monkeypatch.setitem(TABLE, "gram.gram", Operation(make, check, **words))
    return lambda **case: " ".join(judge(Case("gram.gram", **case))[0])


def constant(value, shape):
    return lambda c: {"K": (jnp.full(shape, value, c.dtype), (12, 12))}


def test_wrong_shapes_and_dtypes_are_seen(monkeypatch):
    assert "has shape" in sabotaged(monkeypatch, constant(1.0, (12, 11)))()
    wrong = sabotaged(monkeypatch, lambda c: {"K": (np.ones((12, 12)), (12, 12))})
    assert "has dtype float64" in wrong() and not wrong(dtype="float64")


def test_missing_data_that_are_hidden_are_seen(monkeypatch):
    hiding = sabotaged(monkeypatch, constant(1.0, (12, 12)))
    for family in sorted(MISSING):
        assert "missing data do not show" in hiding(family=family)
    assert not hiding(family="plain")
    flagged = sabotaged(monkeypatch, lambda c: {"finite": (jnp.asarray(False), ())})
    assert not flagged(family="nan") and "not finite" in flagged(family="plain")


@pytest.mark.parametrize("family", sorted(ORDINARY | EXTREME))
def test_numbers_that_are_not_finite_are_seen(monkeypatch, family):
    missing = sabotaged(monkeypatch, constant(jnp.nan, (12, 12)))
    case = Case("gram.gram", family)
    explained = not np.isfinite(case.plain).all() or not case.fits
    assert explained or "not finite" in missing(family=family)
    # Squares out of range explain it, for the functions of which that is said.
    forgiving = sabotaged(monkeypatch, constant(jnp.nan, (12, 12)), overflows=True)
    assert bool(forgiving(family=family)) == (case.in_range and not explained)


def test_errors_without_a_name_are_seen(monkeypatch):
    def broadcast(c):
        return jnp.ones(3) + jnp.ones(4)

    def named(c):
        raise ValueError("X must be better")  # not by the package

    def warned(c):
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)

    for wrong in (
        broadcast,
        named,
        warned,
        lambda c: c.nothing,
        lambda c: kernels.Gaussian(1.0)(c.plain[0], [0.0]),
    ):
        assert "not a refusal by name" in sabotaged(monkeypatch, wrong)(), wrong
    refused = sabotaged(monkeypatch, lambda c: {"K": (gram(c.kernel, c.plain[0]), ())})
    assert "where a result is due" in refused()


def test_forms_that_matter_and_forms_that_pass_are_seen(monkeypatch):
    def of_layout(c):
        return {"K": (jnp.asarray(float(c.X.flags["C_CONTIGUOUS"]), c.dtype), ())}

    assert "depends on the form" in sabotaged(monkeypatch, of_layout)(
        form="Fortran order"
    )
    anything = sabotaged(monkeypatch, constant(1.0, (12, 12)))
    for form in REFUSED:
        assert "should be refused" in anything(form=form)
    assert "should be too few" in anything(n=0)


def test_wrong_numbers_are_seen(monkeypatch):
    """The float32 Gram matrix without centring, as an example of what the table is there for."""

    def uncentred(c):
        X, Y = (jnp.asarray(rows) / c.lengthscale for rows in (c.plain, c.Y))

        @jax.jit
        def K(X, Y):
            squares = (
                (X**2).sum(1)[:, None]
                + (Y**2).sum(1)[None, :]
                - 2 * jnp.matmul(X, Y.T, precision="highest")
            )
            return jnp.exp(-jnp.maximum(squares, 0) / 2)

        return {"K": (K(X, X), (c.n, c.n)), "K(X, Y)": (K(X, Y), (c.n, c.n + 1))}

    wrong = sabotaged(monkeypatch, uncentred, check_gram)
    assert "off by" in wrong(family="offset 1e3")
    own = sabotaged(monkeypatch, public.TABLE["gram.gram"].make, check_gram)
    assert own(family="offset 1e3")  # the same sabotage, and not the library again


def test_every_family_is_what_it_is_called():
    assert set(FAMILIES) == ORDINARY | EXTREME | MISSING
    for name in ORDINARY:
        for dtype in ("float32", "float64"):
            assert (
                np.isfinite(Case("", name, dtype=dtype).rows).all()
                and Case("", name, dtype=dtype).in_range
            )
    for name in EXTREME:
        assert not Case("", name, dtype="float32").in_range or "squared" in name
    for name in MISSING:
        assert (
            not np.isfinite(Case("", name).plain).all()
            and np.isfinite(np.asarray(Case("", name).Y)).any()
        )
    near = Case("", "near-duplicates", dtype="float64")
    apart = np.sort(
        np.linalg.norm(near.rows[:, None] - near.rows[None], axis=2) + 9 * np.eye(25),
        axis=1,
    )[:, 0]
    assert (apart < 1e-6).sum() == 24 and Case("", "near-duplicates").lengthscale > 0.1
    rank_one = Case("", "rank one", dtype="float64")
    assert (
        np.linalg.matrix_rank(rank_one.plain) == 1
        and len(np.unique(Case("", "constant").rows, axis=0)) == 1
    )


def test_every_form_holds_the_same_numbers():
    case = Case("", "plain")
    for form, make in ACCEPTED.items():
        np.testing.assert_array_equal(
            np.asarray(make(case.plain)), case.plain, err_msg=form
        )
    assert not cases._strided(case.plain).flags["C_CONTIGUOUS"]
    assert cases._reversed(case.plain).strides[0] < 0
    assert not cases._read_only(case.plain).flags.writeable


def test_a_line_repeats_a_case(capsys):
    case = stress.draw(3, 141)
    assert case == stress.draw(3, 141) != stress.draw(4, 141)
    assert main(["--case", Case("gram.center", seed=5).line()]) is False
    assert "as it should be" in capsys.readouterr().out
    drawn = [stress.draw(1, number) for number in range(6 * len(NAMES))]
    assert {c.name for c in drawn} == set(NAMES)
    assert {c.family for c in drawn} == set(FAMILIES) and {
        c.ratio for c in drawn
    } == set(RATIOS)
    assert {c.form for c in drawn} == {*ACCEPTED, *REFUSED} and {
        (c.n, c.dim) for c in drawn
    } == set(cases.SIZES)


def test_functions_that_take_arrays_alone_say_so_of_lists():
    phi = features.nystrom(kernels.Gaussian(1.0), jnp.ones((2, 3)))
    with pytest.raises(
        ValueError, match="block of X must be an array of NumPy or JAX, got list"
    ):
        list(scale.embed(phi, [[1.0, 2.0, 3.0]]))
    pca = features.streaming_pca(phi, sketch_size=2)
    with pytest.raises(
        ValueError, match="X must be an array of NumPy or JAX, got list"
    ):
        scale.stream(pca, [[1.0, 2.0, 3.0]])


def test_a_date_is_no_static_number():
    with pytest.raises(ValueError, match="lengthscale must be"):
        gram(kernels.Gaussian(np.datetime64("2020-01-01")), jnp.ones((2, 2)))
    with pytest.raises(ValueError, match="noise must be"):
        measures.mean_gaussian_kernel(
            jnp.ones((2, 2)), np.datetime64("2020-01-01"), 1.0
        )


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(0, len(NAMES), 4))
def test_twenty_thousand_cases(turn):
    names = NAMES[turn : turn + 4]
    failures = []
    share = -(-SLOW_TOTAL // len(NAMES)) * len(names)
    failed, ends = stress.run(
        [stress.draw(1, i, names) for i in range(share)], failures.append, patience=0
    )
    assert not failed, "\n".join(failures)
    assert sum(ends.values()) == share and ends["result"] > 0
