"""The estimators in scikit-learn's world: its own checks, pipelines, grid searches, batches."""

import operator
import pickle
import warnings

import house
import jax
import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import pdist
from sklearn import decomposition
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise, rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.numerics import literal_gram

from jaxkern import features, regression
from jaxkern import sklearn as adapters
from jaxkern.sklearn._padded import quick  # whose programs are counted

TRANSFORMERS = [
    adapters.PairedFourier(4, random_state=0),
    adapters.ShiftedFourier(4, random_state=0),
    adapters.OrthogonalFourier(4, random_state=0),
    adapters.Fastfood(4, random_state=0),
    adapters.Nystrom(8, random_state=0),
    adapters.KernelJL(4, n_landmarks=8, random_state=0),
    adapters.KernelPCA(2, n_landmarks=8, random_state=0),
    adapters.StreamingPCA(2, n_frequencies=4, sketch_size=3, random_state=0),
]
CLUSTERERS = [
    adapters.KernelKMeans(3, lengthscale=1.5, random_state=0),
    adapters.KernelSpectral(3, lengthscale=1.5, random_state=0),
]
RIDGES = [
    adapters.KernelRidge(tol=1e-9, random_state=0),
    adapters.KernelRidgeClassifier(tol=1e-9, random_state=0),
]
EVERY = TRANSFORMERS + CLUSTERERS + RIDGES
GAMMA = 1 / (2 * house.LENGTHSCALE**2)
SLOW = pytest.mark.slow


def name_of(estimator):
    return type(estimator).__name__


@pytest.fixture(autouse=True)
def no_key_checks():
    with jax.debug_key_reuse(False):
        yield


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(EVERY)
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


def test_every_adapter_is_tried():
    assert {name_of(estimator) for estimator in EVERY} == set(adapters.__all__)
    for estimator in EVERY:  # scikit-learn shows what differs from the defaults
        assert "kernel=" not in repr(estimator)


@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=name_of)
def test_batches_pickles_seeds_and_kinds_of_arrays_give_the_same(estimator):
    X = house.data().X
    # Of NumPy, as after pickling: a number of Python would be compiled once more.
    estimator = clone(estimator).set_params(lengthscale=np.asarray(1.5, X.dtype)[()])
    fitted = clone(estimator).fit(X)
    Z = fitted.transform(X)
    assert Z.dtype == house.dtype()
    names = fitted.get_feature_names_out()
    assert Z.shape == (len(X), len(names))
    assert names[0] == name_of(estimator).lower() + "0"
    np.testing.assert_array_equal(clone(estimator).fit_transform(X), Z)
    other = clone(estimator).set_params(random_state=1).fit_transform(X)
    assert not np.array_equal(other, Z)

    parts = clone(estimator).partial_fit(X[:12])
    restored = pickle.loads(pickle.dumps(parts))
    np.testing.assert_array_equal(restored.transform(X), parts.transform(X))
    batched = parts.partial_fit(X[12:]).transform(X)
    np.testing.assert_array_equal(restored.partial_fit(X[12:]).transform(X), batched)
    # Features are the same up to a rotation, with the squares of the rounding of the smallest of 24 eigenvalues.
    tolerance = len(X) * house.eps() ** 0.5 * np.abs(Z).max() ** 2
    np.testing.assert_allclose(batched @ batched.T, Z @ Z.T, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(parts.fit(X).transform(X), Z)  # the old fit is gone

    sparse = scipy.sparse.csr_matrix(X)
    device = jax.device_put(X)
    for rows, kind in ((sparse, np.ndarray), (device, jax.Array)):
        features = clone(estimator).fit(rows).transform(rows)
        assert isinstance(features, kind)
        assert features.dtype == house.dtype()
        products = np.asarray(features) @ np.asarray(features).T
        np.testing.assert_allclose(products, Z @ Z.T, rtol=0, atol=tolerance)


@pytest.mark.parametrize("options", [{"gamma": 0.3}, {"lengthscale": 1 / 0.3}], ids=str)
def test_all_rows_as_landmarks_give_the_gram_matrix_of_scikit_learn(options):
    """More than 1,024 landmarks and 2,048 rows are not filled up."""
    X = house.rng().normal(size=(1030, 3)).astype(house.dtype())
    fitted = adapters.Nystrom(kernel="laplacian", landmarks=X, **options).fit(X)
    Z = fitted.transform(np.tile(X[:24], (86, 1)))[-24:]
    assert Z.shape == (24, 1030)
    exact = pairwise.pairwise_kernels(X[:24], metric="laplacian", gamma=0.3)
    np.testing.assert_allclose(Z @ Z.T, exact, rtol=0, atol=1030 * house.eps())


def test_the_scale_of_gamma_and_the_median_distance_are_those_of_the_rows():
    X = house.data().X
    for rows in (X, scipy.sparse.csr_matrix(X)):
        sampler = RBFSampler(gamma="scale", random_state=0).fit(rows)
        fitted = adapters.PairedFourier(4, gamma="scale").fit(rows)
        gamma = 1 / (2 * fitted.kernel_.lengthscale**2)
        np.testing.assert_allclose(gamma, sampler._gamma, rtol=24 * house.eps())
        median = adapters.PairedFourier(4).fit(rows).kernel_.lengthscale
        np.testing.assert_allclose(median, np.median(pdist(X)), rtol=1e-6)
    broken = jax.device_put(np.where(X > 0, X, np.nan))
    with pytest.raises(ValueError, match="X must be finite"):
        adapters.PairedFourier(4).fit(broken)


def rings():
    """Return rows inside and outside of a sphere with their mirror images, which no linear model tells apart."""
    half = house.data().X[:12]
    radius = np.linalg.norm(half, axis=1, keepdims=True)
    outside = radius > np.median(radius)
    half = half * np.where(outside, 2, 0.3).astype(half.dtype)
    return np.concatenate([half, -half]), np.tile(outside[:, 0].astype(int), 2)


def test_a_grid_search_over_a_pipeline_learns_what_a_linear_model_cannot():
    X, y = rings()
    linear = LogisticRegression(C=100)
    transformer = adapters.Nystrom(12, random_state=0)
    grid = {"nystrom__lengthscale": [0.01, 1.5]}
    search = GridSearchCV(make_pipeline(transformer, linear), grid, cv=2).fit(X, y)
    assert search.best_params_ == {"nystrom__lengthscale": 1.5}
    assert linear.fit(X, y).score(X, y) < 0.9 < search.score(X, y)


def test_few_programs_serve_searches():
    """Folds of other sizes and other numbers of landmarks are filled up to the same shapes."""
    X, y = rings()
    fits = quick(features.nystrom, rank=None)
    maps = quick(operator.call)
    before = None
    for count, size in ((7, 20), (3, 20), (20, 21), (20, 24)):
        fitted = adapters.Nystrom(count, lengthscale=1.0 + size).fit(X[:size])
        fitted.transform(X[size // 2 :])
        before = before or (fits._cache_size(), maps._cache_size())
    assert (fits._cache_size(), maps._cache_size()) == before
    programs = [
        quick(regression.ridge, num_landmarks=count, landmarks="uniform")
        for count in (256, 8)
    ]
    before = [program._cache_size() for program in programs]
    grid = {"alpha": [0.01, 1.0], "gamma": [0.1, "scale"], "n_landmarks": [None, 8]}
    grid = {f"kernelridgeclassifier__{name}": values for name, values in grid.items()}
    pipe = make_pipeline(StandardScaler(), adapters.KernelRidgeClassifier())
    assert GridSearchCV(pipe, grid, cv=3).fit(X, y).best_score_ > 0.8
    for program, old in zip(programs, before, strict=True):
        assert 0 < program._cache_size() <= old + 1


def test_filling_up_changes_nothing():
    """Rows in double precision are computed in it, whatever the environment."""
    data = house.data()
    X = np.float64(data.X)
    landmarks = np.float64(data.landmarks)
    options = {"gamma": GAMMA, "landmarks": landmarks}
    nystrom = adapters.Nystrom(kernel=2.0 * house.KERNEL, landmarks=landmarks).fit(X)
    assert nystrom.map_.landmarks.shape == landmarks.shape
    Z = nystrom.transform(X)
    assert Z.dtype == np.float64
    cross = literal_gram(X, landmarks, house.LENGTHSCALE)
    K = literal_gram(landmarks, landmarks, house.LENGTHSCALE)
    exact = 2 * cross @ np.linalg.solve(K, cross.T)
    np.testing.assert_allclose(Z @ Z.T, exact, rtol=0, atol=1e-10)
    solver = decomposition.KernelPCA(8, kernel="rbf", gamma=GAMMA).fit(landmarks)
    exact = np.abs(solver.transform(X)[:, :2])
    for count in (2, None):  # all components, if no number is given
        Z = adapters.KernelPCA(count, **options).fit(X).transform(X)
        assert Z.shape == (24, count or 8)
        np.testing.assert_allclose(np.abs(Z[:, :2]), exact, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "choice",
    ["kmeans_plus_plus", "leverage", pytest.param("pivoted_cholesky", marks=SLOW)],
)
def test_landmarks_are_chosen_by_name(choice):
    X = house.data().X
    fitted = adapters.Nystrom(8, landmarks=choice, random_state=0).fit(X)
    chosen = np.asarray(fitted.map_.landmarks).tolist()
    assert all(row in X.tolist() for row in chosen)
    with pytest.raises(ValueError, match=f"landmarks='{choice}' takes one dense X"):
        fitted.partial_fit(X)


def test_more_landmarks_than_rows_are_said():
    X = house.data().X
    message = "n_landmarks is 100, and X has 24 rows: all are landmarks"
    with pytest.warns(UserWarning, match=message):
        assert adapters.Nystrom(100).fit(X).map_.landmarks.shape == (24, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapters.Nystrom(50).partial_fit(X[:12]).partial_fit(X[12:])


def test_kernel_pca_goes_back():
    X = house.data().X
    fitted = adapters.KernelPCA(24, lengthscale=2.0).fit(X)
    again = fitted.inverse_transform(fitted.transform(X))
    np.testing.assert_allclose(again, X, rtol=0, atol=1e-2)
    rows = fitted.inverse_transform(fitted.transform(jax.device_put(X)))
    assert isinstance(rows, jax.Array)


@pytest.mark.parametrize("estimator", CLUSTERERS, ids=name_of)
def test_clusters_have_labels_for_new_points(estimator):
    data = house.data()
    X = 0.2 * data.X + 20 * data.labels[:, None].astype(house.dtype())
    fitted = clone(estimator).fit(X)
    assert rand_score(fitted.labels_, data.labels) == 1
    restored = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(restored.predict(X), fitted.labels_)
    with pytest.raises(ValueError, match="X has 2 features, but"):
        fitted.predict(X[:, :2])
    rows = jax.device_put(X)
    assert isinstance(clone(estimator).fit(rows).labels_, jax.Array)
    assert isinstance(fitted.predict(rows), jax.Array)


def exact_ridge(X, y, points, weights=None):
    """Return what scikit-learn's own solver predicts in double precision."""
    solver = KernelRidge(alpha=0.1, kernel="rbf", gamma=GAMMA)
    solver.fit(np.float64(X), np.float64(y), sample_weight=weights)
    return solver.predict(np.float64(points))


@pytest.mark.parametrize(
    "sizes", [{}, {"n_landmarks": 8}, {"n_landmarks": 8, "tol": 0.1}], ids=len
)
def test_ridge_regression_is_within_its_bounds_of_scikit_learns(sizes):
    data = house.data()
    estimator = adapters.KernelRidge(0.1, gamma=GAMMA, random_state=0, **sizes)
    fitted = estimator.fit(data.X, data.values, data.weights)
    fitted = pickle.loads(pickle.dumps(fitted))
    exact = exact_ridge(data.X, data.values, data.Y, data.weights)
    errors = np.abs(fitted.predict(data.Y) - exact)
    bounds = fitted.bound(data.Y)
    assert bounds.dtype == house.dtype()
    assert (errors <= bounds).all()
    assert (bounds <= 2 * fitted.distance_bound_).all()
    exact = exact_ridge(data.X, data.values, data.X, data.weights)
    shares = np.sqrt(data.weights)[:, None]
    at_rows = np.abs(fitted.predict(data.X) - exact) * shares
    assert (at_rows.max(axis=0) <= fitted.training_bound_).all()
    assert (errors.max() < 1e-3) == (len(sizes) == 0)
    assert bounds.max() < 0.2 or len(sizes) < 2


def test_ridge_regression_of_many_rows_in_arrays_of_jax():
    """More than the 2,048 rows that are filled up."""
    X = house.rng().normal(size=(2100, 2)).astype(house.dtype())
    y = np.sin(X[:, 0])
    estimator = adapters.KernelRidge(0.1, gamma=GAMMA, n_landmarks=8, random_state=0)
    fitted = estimator.fit(jax.device_put(X), y)
    values = fitted.predict(jax.device_put(X))
    bounds = fitted.bound(jax.device_put(X))
    assert isinstance(values, jax.Array)
    assert values.shape == bounds.shape == (2100,)
    errors = np.abs(np.asarray(values) - exact_ridge(X, y, X))
    assert (errors <= np.asarray(bounds)).all()


@pytest.mark.parametrize(("n_landmarks", "count"), [(None, 2), (8, 3)])
def test_certain_classes_are_those_of_the_exact_classifier(n_landmarks, count):
    data = house.data()
    X = 0.5 * data.X + 4 * np.eye(3, dtype=house.dtype())[data.labels]
    rows = data.labels < count
    classes = np.array(["one", "three", "two"], dtype=object)[data.labels]
    estimator = adapters.KernelRidgeClassifier(0.1, gamma=GAMMA, random_state=0)
    estimator.set_params(n_landmarks=n_landmarks).fit(X[rows], classes[rows])
    targets = 2.0 * (data.labels[rows][:, None] == np.arange(count)) - 1
    exact = exact_ridge(X[rows], targets, X)
    values = exact[:, 1] if count == 2 else exact
    errors = np.abs(estimator.decision_function(X) - values)
    assert (errors <= estimator.bound(X)).all()
    best = estimator.classes_[exact.argmax(axis=1)]
    certain = estimator.certain(X)
    assert (estimator.predict(X) == best)[certain].all()
    assert estimator.score(X[rows], classes[rows]) > 0.8
    assert certain.mean() > 0.95 if n_landmarks is None else certain.mean() < 0.95


def test_the_median_distance_of_weighted_rows_is_that_of_copies():
    data = house.data()
    weights = np.arange(24) % 4
    for count in (24, 8):
        copies = np.repeat(np.float64(data.X[:count]), weights[:count], axis=0)
        fitted = adapters.KernelRidge(random_state=0)
        fitted.fit(data.X[:count], data.values[:count], weights[:count])
        # Distances of rows in single precision.
        median = np.median(pdist(copies))
        np.testing.assert_allclose(fitted.kernel_.lengthscale, median, rtol=1e-6)


def test_a_tolerance_that_is_not_reached_is_said():
    data = house.data()
    estimator = adapters.KernelRidge(n_landmarks=8, tol=1e-9)
    message = "above tol=1e-09; pass more n_landmarks, or X in float64"
    with pytest.warns(ConvergenceWarning, match=message):
        estimator.fit(np.float32(data.X), data.values, np.ones(24))


@pytest.mark.parametrize("name", adapters.__all__)
def test_a_bad_value_of_any_parameter_is_an_error_with_its_name(name):
    X, y = rings()
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
            optional = parameter == "n_landmarks" or name == "KernelPCA"
            bad |= set() if default is None or optional else {None}
        for value in bad:
            with pytest.raises(ValueError, match=f"^{parameter} "):
                estimator(**{parameter: value}).fit(X, y)
