"""The estimators in scikit-learn's world: its own checks, pipelines, grid searches, batches."""

import operator
import pickle
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise
from sklearn.metrics import rand_score as rand_index
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from jaxkern import features, kernels, regression
from jaxkern import sklearn as adapters
from jaxkern.sklearn import _estimator
from jaxkern.sklearn._padded import quick

EVERY = [
    adapters.PairedFourier(5, random_state=0),
    adapters.ShiftedFourier(5, random_state=0),
    adapters.OrthogonalFourier(5, random_state=0),
    adapters.Fastfood(5, random_state=0),
    adapters.Nystrom(5, random_state=0),
    adapters.KernelJL(3, n_landmarks=5, random_state=0),
    adapters.KernelPCA(2, n_landmarks=8, random_state=0),
    adapters.StreamingPCA(2, n_frequencies=5, sketch_size=4, random_state=0),
]
SLOW = pytest.mark.slow
SOME = [
    pytest.param(e, marks=[SLOW] * (e in EVERY[1:4]), id=type(e).__name__)
    for e in EVERY
]  # other draws alone
CLUSTERERS = [
    adapters.KernelKMeans(2, random_state=0),
    adapters.KernelSpectral(2, random_state=0),
]
RIDGES = [
    adapters.KernelRidge(tol=1e-9, random_state=0),
    adapters.KernelRidgeClassifier(tol=1e-9, random_state=0),
]


@pytest.fixture(autouse=True)
def no_key_checks():
    with jax.debug_key_reuse(False):
        yield


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(EVERY + CLUSTERERS + RIDGES)
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


def test_every_adapter_is_tried():
    assert {type(e).__name__ for e in EVERY + CLUSTERERS + RIDGES} == set(
        adapters.__all__
    )


def data(dtype=np.float64):
    rng = np.random.default_rng(0)
    radius = np.repeat([1.0, 3.0], 40)
    X = rng.normal(size=(80, 2))
    return (X / np.linalg.norm(X, axis=1, keepdims=True) * radius[:, None]).astype(
        dtype
    ), (radius > 2).astype(int)


@pytest.mark.parametrize("estimator", EVERY, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtype_names_and_seed(estimator, dtype):
    X, _ = data(dtype)
    fitted = clone(estimator).fit(X)
    Z = fitted.transform(X)
    assert Z.dtype == dtype and Z.shape == (80, len(fitted.get_feature_names_out()))
    assert fitted.get_feature_names_out()[0] == type(estimator).__name__.lower() + "0"
    assert np.array_equal(clone(estimator).fit_transform(X), Z)
    assert not np.array_equal(
        clone(estimator).set_params(random_state=1).fit_transform(X), Z
    )


@pytest.mark.parametrize("estimator", SOME)
def test_batches_give_what_one_fit_gives(estimator):
    X, _ = data()
    whole = clone(estimator).set_params(lengthscale=1.0).fit(X)
    parts = clone(estimator).set_params(lengthscale=1.0)
    for batch in (X[:40], X[40:]):
        parts.partial_fit(batch)
    A, B = whole.transform(X), parts.transform(X)
    np.testing.assert_allclose(
        A @ A.T, B @ B.T, atol=1e-8 * max(np.abs(A @ A.T).max(), 1)
    )
    again = whole.fit(X[:40]).transform(X)  # a new fit forgets the old one
    np.testing.assert_array_equal(
        again, clone(estimator).set_params(lengthscale=1.0).fit(X[:40]).transform(X)
    )


@pytest.mark.parametrize("estimator", SOME)
def test_pickling_keeps_every_digit_and_the_stream(estimator):
    X, _ = data()
    fitted = clone(estimator).set_params(lengthscale=1.0).partial_fit(X[:40])
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.transform(X), fitted.transform(X))
    first, second = (
        fitted.partial_fit(X[40:]).transform(X),
        again.partial_fit(X[40:]).transform(X),
    )
    assert np.array_equal(first, second)


def test_the_map_inside_is_the_one_of_the_library(x64):
    X, _ = data()
    fitted = adapters.PairedFourier(7, lengthscale=0.8, random_state=3).fit(X)
    assert isinstance(fitted.map_, features.PairedFourier)
    np.testing.assert_allclose(
        fitted.transform(X), fitted.map_(jnp.asarray(X)), atol=1e-12
    )
    own = adapters.Nystrom(9, kernel=2.0 * kernels.Matern32(0.5), random_state=3).fit(X)
    assert isinstance(own.kernel_, kernels.Kernel) and own.map_.landmarks.shape == (
        9,
        2,
    )


def test_a_pipeline_learns_what_a_linear_model_cannot():
    X, y = data()
    plain = LogisticRegression().fit(X, y).score(X, y)
    piped = make_pipeline(
        adapters.Nystrom(30, random_state=0), LogisticRegression(C=100)
    ).fit(X, y)
    assert plain < 0.75 < 0.95 < piped.score(X, y)


def test_a_grid_search_sets_parameters():
    X, y = data()
    pipe = make_pipeline(
        adapters.PairedFourier(20, random_state=0), LogisticRegression()
    )
    search = GridSearchCV(pipe, {"pairedfourier__lengthscale": [0.01, 1.0]}, cv=2).fit(
        X, y
    )
    assert search.best_params_ == {"pairedfourier__lengthscale": 1.0}


@pytest.mark.parametrize("estimator", SOME)
def test_sparse_rows_and_arrays_of_jax(estimator):
    X = data(np.float32)[0]
    dense = clone(estimator).fit(X).transform(X)
    for own in (scipy.sparse.csr_matrix(X), jnp.asarray(X)):
        fitted = clone(estimator).fit(own)
        Z = fitted.transform(own)
        np.testing.assert_allclose(
            np.abs(Z), np.abs(dense), atol=1e-4
        )  # up to the signs of eigenvectors
        assert (
            isinstance(Z, jax.Array if isinstance(own, jax.Array) else np.ndarray)
            and Z.dtype == np.float32
        )
    if estimator in EVERY[::2]:
        many = np.tile(
            X, (30, 1)
        )  # beyond the few rows that are mapped in padded blocks
        np.testing.assert_allclose(fitted.transform(many)[:80], Z, atol=1e-5)
    with pytest.raises(ValueError, match="X must be finite"):
        clone(estimator).fit(
            jnp.asarray(np.where(np.arange(80)[:, None] == 0, np.nan, X))
        )


def test_few_programs_serve_a_search():
    """Folds of other sizes and other numbers of landmarks are filled up to the same shapes."""
    X, _ = data()
    fits, maps = quick(features.nystrom, rank=None), quick(operator.call)
    adapters.Nystrom(7, lengthscale=2.0).fit(X[:50]).transform(X[:33])
    before = fits._cache_size(), maps._cache_size()
    for count in (3, 20, 50):
        for size in (50, 61, 80):
            adapters.Nystrom(count, lengthscale=1.0 + size).fit(X[:size]).transform(
                X[size // 2 :]
            )
    assert (fits._cache_size(), maps._cache_size()) == before


@pytest.mark.parametrize("count", [7, 1030, pytest.param(1031, marks=SLOW)])
def test_filling_up_changes_nothing(count, x64):
    X = np.random.default_rng(0).normal(size=(1100, 3))
    kernel = kernels.Laplacian(2.0)
    for adapter, own in (
        (
            adapters.Nystrom(kernel=kernel, landmarks=X[:count]),
            lambda L: features.nystrom(kernel, L),
        ),
        (
            adapters.KernelPCA(2, kernel=kernel, landmarks=X[:count]),
            lambda L: features.kernel_pca(kernel, L, num_components=2),
        ),
    )[: 1 if count == 1030 else 2]:
        Z, expected = adapter.fit(X).transform(X), np.asarray(own(X[:count])(X))
        np.testing.assert_allclose(
            np.abs(Z @ Z[:5].T), np.abs(expected @ expected[:5].T), atol=1e-10
        )
        assert adapter.map_.landmarks.shape == (count, 3) and Z.shape == expected.shape


@pytest.mark.parametrize(
    "choice",
    ["kmeans_plus_plus", "leverage", pytest.param("pivoted_cholesky", marks=SLOW)],
)
def test_landmarks_are_chosen_by_name(choice):
    X, _ = data()
    fitted = adapters.Nystrom(6, landmarks=choice, random_state=0).fit(X)
    assert {tuple(row) for row in np.asarray(fitted.map_.landmarks)} <= {
        tuple(row) for row in X
    }
    with pytest.raises(ValueError, match=f"landmarks='{choice}' takes one dense X"):
        fitted.partial_fit(X)


def test_more_landmarks_than_rows_are_said():
    X, _ = data()
    with pytest.warns(
        UserWarning, match="n_landmarks is 100, and X has 80 rows: all are landmarks"
    ):
        assert adapters.Nystrom(100).fit(X).map_.landmarks.shape == (80, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapters.Nystrom(50).partial_fit(X[:20]).partial_fit(X[20:30])
        adapters.KernelPCA().fit(X)


def test_gamma_is_that_of_scikit_learn():
    X, _ = data()
    for name in ("rbf", "laplacian"):
        Z = adapters.Nystrom(80, kernel=name, gamma=0.3).fit(X).transform(X)
        np.testing.assert_allclose(
            Z @ Z.T, pairwise.pairwise_kernels(X, metric=name, gamma=0.3), atol=1e-6
        )
    for own in (X, scipy.sparse.csr_matrix(X)):
        scaled = RBFSampler(gamma="scale", random_state=0).fit(own)
        ours = adapters.PairedFourier(2, gamma="scale").fit(own).kernel_.lengthscale
        np.testing.assert_allclose(1 / (2 * ours**2), scaled._gamma)


def test_kernel_pca_goes_back():
    X, _ = data()
    fitted = adapters.KernelPCA(60, lengthscale=2.0).fit(X)
    np.testing.assert_allclose(
        fitted.inverse_transform(fitted.transform(X)), X, atol=1e-2
    )
    single = jnp.asarray(X, jnp.float32)
    assert isinstance(fitted.inverse_transform(fitted.transform(single)), jax.Array)


@pytest.mark.parametrize("estimator", CLUSTERERS, ids=lambda e: type(e).__name__)
def test_clusters_have_labels_for_new_points(estimator, x64):
    X, y = data()
    X = X + 9 * y[:, None]
    fitted = clone(estimator).fit(X)
    again = pickle.loads(pickle.dumps(fitted))
    assert rand_index(fitted.labels_, y) == 1 and np.array_equal(
        again.predict(X), fitted.labels_
    )
    assert isinstance(clone(estimator).fit(jnp.asarray(X)).labels_, jax.Array)
    assert isinstance(fitted.predict(jnp.asarray(X)), jax.Array)


def exact(X, y, T, weights=None):
    """Return what scikit-learn's own solver predicts at T, with alpha 0.1 and gamma 0.3."""
    own = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.3)
    return own.fit(np.float64(X), np.float64(y), sample_weight=weights).predict(
        np.float64(T)
    )


FITS = [(np.float32, ()), (np.float64, (30,)), (np.float32, (20, 0.1))]
OTHERS = [(np.float64, ()), (np.float32, (30,)), (np.float64, (20, 0.1))]


@pytest.mark.parametrize(
    ("dtype", "sizes"), [*FITS, *(pytest.param(*fit, marks=SLOW) for fit in OTHERS)]
)
def test_ridge_regression_is_within_its_bounds_of_scikit_learns(dtype, sizes):
    X, T = (
        data(dtype)[0],
        2 * np.random.default_rng(1).normal(size=(30, 2)).astype(dtype),
    )
    y, weights = (
        np.sin(X @ np.array([[2, 0, 1], [0, 2, 1]], dtype)),
        np.arange(80.0) % 3,
    )
    words = dict(zip(("n_landmarks", "tol"), sizes, strict=False))
    fitted = adapters.KernelRidge(0.1, gamma=0.3, random_state=0, **words).fit(
        X, y, weights
    )
    fitted = pickle.loads(pickle.dumps(fitted))
    errors, bounds = (
        np.abs(fitted.predict(T) - exact(X, y, T, weights)),
        fitted.bound(T),
    )
    assert (
        bounds.dtype == dtype
        and (errors <= bounds).all()
        and (bounds <= 2 * fitted.distance_bound_).all()
    )
    at_rows = (
        np.abs(fitted.predict(X) - exact(X, y, X, weights)) * np.sqrt(weights)[:, None]
    )
    assert (at_rows.max(axis=0) <= fitted.training_bound_).all()
    assert {0: errors.max() < 1e-3, 1: errors.max() > 1e-3, 2: bounds.max() < 0.2}[
        len(sizes)
    ]


def test_ridge_regression_of_many_rows_in_arrays_of_jax():
    rows = np.float32(np.random.default_rng(0).normal(size=(2100, 2)))
    X, y = jnp.asarray(rows), np.sin(rows[:, 0])
    fitted = adapters.KernelRidge(0.1, gamma=0.3, n_landmarks=60, random_state=0).fit(
        X, jnp.asarray(y)
    )
    found, bounds = fitted.predict(X), fitted.bound(X)
    assert isinstance(found, jax.Array) and found.shape == bounds.shape == (2100,)
    assert (
        np.abs(np.asarray(found) - exact(rows, y, rows)) <= np.asarray(bounds)
    ).all()


@pytest.mark.parametrize(("n_landmarks", "count"), [(None, 2), (30, 3)])
def test_certain_classes_are_those_of_the_exact_classifier(n_landmarks, count):
    names, at = (
        np.array(["one", "three", "two"], dtype=object),
        np.repeat([0, 1, 2], 30),
    )
    X = (
        np.random.default_rng(0).normal(size=(90, 2))
        + 2 * np.array([[0, 0], [2, 0], [0, 2]])[at]
    )
    rows = at < count
    fitted = adapters.KernelRidgeClassifier(
        0.1, gamma=0.3, n_landmarks=n_landmarks, random_state=0
    )
    fitted.fit(X[rows], names[at[rows]])
    wanted = exact(X[rows], 2.0 * (at[rows][:, None] == np.arange(count)) - 1, X)
    values = wanted[:, 1] if count == 2 else wanted
    assert (np.abs(fitted.decision_function(X) - values) <= fitted.bound(X)).all()
    same, certain = fitted.predict(X) == names[wanted.argmax(axis=1)], fitted.certain(X)
    assert same[certain].all() and fitted.score(X[rows], names[at[rows]]) > 0.85
    assert certain.mean() > 0.95 if n_landmarks is None else 0 < certain.mean() < 0.95


def test_the_median_distance_of_weighted_rows_is_that_of_copies():
    X, weights = data()[0], np.arange(80) % 4
    for some in (slice(None), slice(0, 8)):
        copies = pdist(np.repeat(X[some], weights[some], axis=0))
        found = _estimator._median(X[some], np.random.default_rng(0), weights[some])
        assert found == pytest.approx(np.median(copies), rel=1e-12)


def test_few_programs_serve_a_search_of_ridge_regression():
    X, y = (array[np.random.default_rng(0).permutation(80)] for array in data())
    pipe = make_pipeline(StandardScaler(), adapters.KernelRidgeClassifier())
    programs = [
        quick(regression.ridge, num_landmarks=count, landmarks="uniform")
        for count in (256, 10)
    ]
    before = [program._cache_size() for program in programs]
    grid = {"alpha": [0.01, 1.0], "gamma": [0.1, "scale"], "n_landmarks": [None, 10]}
    grid = {f"kernelridgeclassifier__{name}": values for name, values in grid.items()}
    assert GridSearchCV(pipe, grid, cv=3).fit(X, y).best_score_ > 0.9
    assert all(
        0 < program._cache_size() <= old + 1
        for program, old in zip(programs, before, strict=True)
    )


def test_bad_labels_and_tolerances_are_named():
    X, y = data()
    for estimator, args, message in (
        (adapters.KernelRidge(0.0), (X, y), "alpha must be positive"),
        (adapters.KernelRidge(tol=-1.0), (X, y), "tol must be positive"),
        (adapters.KernelRidge(), (X, np.where(y, np.nan, 1)), "Input y contains NaN"),
        (adapters.KernelRidge(), (X, y[1:]), "inconsistent numbers of samples"),
        (
            adapters.KernelRidge(),
            (np.float32(X), y * 1e60),
            "y must be within the range of float32",
        ),
        (
            adapters.KernelRidgeClassifier(),
            (X, y, y),
            "at least 2 classes .* got 1 class: .*1",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            estimator.fit(*args)
    with pytest.warns(
        ConvergenceWarning,
        match="above tol=1e-09; pass more n_landmarks, or X in float64",
    ):
        adapters.KernelRidge(n_landmarks=20, tol=1e-9).fit(
            np.float32(X), np.stack([y, y, y], axis=1), np.ones(80)
        )


def test_bad_parameters_are_named():
    X, _ = data()
    with pytest.raises(ValueError, match="lengthscale or gamma, not both"):
        adapters.PairedFourier(lengthscale=1.0, gamma=1.0).fit(X)
    with pytest.raises(
        ValueError, match="gamma is for gaussian, laplacian and exponential"
    ):
        adapters.PairedFourier(kernel="cauchy", gamma=1.0).fit(X)
    with pytest.raises(
        ValueError, match="lengthscale and gamma are those of the kernel"
    ):
        adapters.PairedFourier(kernel=kernels.Gaussian(1.0), gamma=1.0).fit(X)


@pytest.mark.parametrize("name", adapters.__all__)
def test_a_bad_value_of_any_parameter_is_an_error_with_its_name(name):
    X, y = data()
    estimator = getattr(adapters, name)
    for parameter, default in estimator().get_params().items():
        bad = {0, -1, "other", np.nan}
        if parameter in {"gamma", "lengthscale"}:
            bad |= {(1.0, -1.0), (np.nan, 1.0)}
        if parameter == "random_state":
            bad -= {0}
        if parameter.startswith("n_") or parameter == "sketch_size":
            bad |= {1.5, True}
            # Every other count may be None: all rows, or all components.
            if (
                default is not None
                and parameter != "n_landmarks"
                and name != "KernelPCA"
            ):
                bad |= {None}
        for value in bad:
            with pytest.raises(ValueError, match=f"^{parameter} "):
                estimator(**{parameter: value}).fit(X, y)


def test_sizes_that_the_data_do_not_have_are_named():
    X, _ = data()
    for estimator in (
        adapters.KernelKMeans(81),
        adapters.KernelKMeans(n_landmarks=81),
        adapters.StreamingPCA(51),
        adapters.StreamingPCA(5, n_frequencies=2),
    ):
        with pytest.raises(ValueError, match=r"^n_[a-z]+ must be at most"):
            estimator.fit(X)


def test_all_components_are_those_of_all_landmarks():
    X, _ = data()
    fitted = adapters.KernelPCA(None, n_landmarks=7, landmarks=X[:7]).fit(X)
    some = adapters.KernelPCA(6, landmarks=X[:7]).fit(X)
    assert fitted.transform(X).shape == (80, 7)
    np.testing.assert_allclose(
        fitted.transform(X)[:, :6] ** 2, some.transform(X) ** 2, atol=1e-8
    )


def test_a_weight_that_is_a_number_is_looked_at():
    X, y = data()
    for weight in (np.nan, np.inf, -1.0, np.float32(np.nan)):
        with pytest.raises(ValueError, match="sample_weight"):
            adapters.KernelRidge().fit(X, y, sample_weight=weight)


def test_a_median_distance_of_zero_is_an_error():
    X = np.r_[np.ones((16, 2)), np.arange(8.0).reshape(4, 2)]
    for estimator in (adapters.PairedFourier(), adapters.KernelRidge()):
        with pytest.raises(ValueError, match="at least half of all pairs coincide"):
            estimator.fit(X, np.arange(20))
