"""The estimators in scikit-learn's world: its own checks, pipelines, grid searches, batches."""

import operator
import pickle
import warnings

import house
import jax
import numpy as np
import pytest
import scipy.sparse
from house import close, eps
from scipy.spatial.distance import pdist
from sklearn import decomposition
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import pairwise, rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.numerics import literal_gram, tuples

from jaxkern import features, regression
from jaxkern import sklearn as adapters
from jaxkern.sklearn._padded import quick  # whose programs are counted

GROUPS = np.arange(24) % 3
"""Of the rows of `house.data()`."""
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
    # Of NumPy, as after pickling: a number of Python would be compiled once more.
    X = house.data().X
    estimator = clone(estimator).set_params(lengthscale=X.dtype.type(1.5))
    fitted = clone(estimator).fit(X)
    Z = fitted.transform(X)
    assert Z.dtype == X.dtype
    names = fitted.get_feature_names_out()
    assert Z.shape == (len(X), len(names))
    assert names[0] == name_of(estimator).lower() + "0"
    other = clone(estimator).set_params(random_state=1).fit_transform(X)
    assert not np.array_equal(other, Z)

    parts = clone(estimator).partial_fit(X[:12])
    restored = pickle.loads(pickle.dumps(parts)).partial_fit(X[12:])
    batched = parts.partial_fit(X[12:]).transform(X)
    close(restored.transform(X), batched)
    # Features are the same up to a rotation, with the squares of the rounding of the smallest of 24 eigenvalues.
    tolerance = len(X) * eps() ** 0.5 * np.abs(Z).max() ** 2
    close(batched @ batched.T, Z @ Z.T, tolerance)
    close(parts.fit_transform(X), Z)  # the old fit is gone

    sparse = scipy.sparse.csr_matrix(X)
    device = jax.device_put(X)
    for rows, kind in ((sparse, np.ndarray), (device, jax.Array)):
        features = estimator.fit(rows).transform(rows)
        assert isinstance(features, kind)
        features = np.asarray(features)
        assert features.dtype == X.dtype
        close(features @ features.T, Z @ Z.T, tolerance)


@pytest.mark.parametrize("options", [{"gamma": 0.3}, {"lengthscale": 1 / 0.3}], ids=str)
def test_all_rows_as_landmarks_give_the_gram_matrix_of_scikit_learn(options):
    """More than 1,024 landmarks and 2,048 rows are not filled up."""
    X = house.data().X
    rows = house.rng().normal(size=(1030, 3)).astype(X.dtype)
    rows[:24] = X
    fitted = adapters.Nystrom(kernel="laplacian", landmarks=rows, **options).fit(rows)
    Z = fitted.transform(np.tile(X, (86, 1)))[-24:]
    assert Z.shape == (24, 1030)
    exact = pairwise.pairwise_kernels(X, metric="laplacian", gamma=0.3)
    close(Z @ Z.T, exact, 1030 * eps())


def test_the_scale_of_gamma_and_the_median_distance_are_those_of_the_rows():
    X = house.data().X
    sampler = RBFSampler(gamma="scale", random_state=0).fit(X)
    for rows in (X, scipy.sparse.csr_matrix(X)):
        scaled = adapters.PairedFourier(4, gamma="scale").fit(rows).kernel_.lengthscale
        median = adapters.PairedFourier(4).fit(rows).kernel_.lengthscale
        close(2 * scaled**2 * sampler._gamma, 1, 24 * eps())
        close(median / np.median(pdist(X)), 1, 1e-6)
    broken = jax.device_put(np.where(X > 0, X, np.nan))
    with pytest.raises(ValueError, match="X must be finite"):
        adapters.PairedFourier(4).fit(broken)


def test_few_programs_serve_searches():
    """Folds of other sizes and other numbers of landmarks are filled up to the same shapes."""
    X = house.data().X
    counts = []
    for count, size in ((7, 20), (3, 20), (20, 21), (20, 24)):
        fitted = adapters.Nystrom(count, lengthscale=1.0 + size).fit(X[:size])
        fitted.transform(X[size // 2 :])
        programs = (quick(features.nystrom, rank=None), quick(operator.call))
        counts.append([program._cache_size() for program in programs])
    assert counts == counts[:1] * 4
    programs = [
        quick(regression.ridge, num_landmarks=count, landmarks="uniform")
        for count in (256, 8)
    ]
    before = [program._cache_size() for program in programs]
    grid = {
        "kernelridgeclassifier__alpha": [0.01, 1.0],
        "kernelridgeclassifier__gamma": [0.1, "scale"],
        "kernelridgeclassifier__n_landmarks": [None, 8],
    }
    pipe = make_pipeline(StandardScaler(), adapters.KernelRidgeClassifier())
    assert GridSearchCV(pipe, grid, cv=3).fit(X, GROUPS).best_score_ > 0.8
    for program, old in zip(programs, before, strict=True):
        assert 0 < program._cache_size() <= old + 1


def test_filling_up_changes_nothing():
    """Rows in double precision are computed in it, whatever the environment."""
    data = house.data()
    X = data.X
    rows = np.float64(X)
    landmarks = np.float64(data.landmarks)
    nystrom = adapters.Nystrom(kernel=2.0 * house.KERNEL, landmarks=landmarks).fit(rows)
    assert nystrom.map_.landmarks.shape == landmarks.shape
    Z = nystrom.transform(rows)
    assert Z.dtype == np.float64
    cross = literal_gram(X, landmarks, house.LENGTHSCALE)
    K = literal_gram(landmarks, landmarks, house.LENGTHSCALE)
    close(Z @ Z.T, 2 * cross @ np.linalg.solve(K, cross.T), 1e-10)
    solver = decomposition.KernelPCA(8, kernel="rbf", gamma=GAMMA).fit(landmarks)
    exact = np.abs(solver.transform(rows)[:, :2])
    for count in (2, None):  # all components, if no number is given
        pca = adapters.KernelPCA(count, gamma=GAMMA, landmarks=landmarks)
        Z = pca.fit_transform(rows)
        assert Z.shape == (24, count or 8)
        close(np.abs(Z[:, :2]), exact, 1e-10)


@pytest.mark.parametrize(
    "choice",
    ["kmeans_plus_plus", "leverage", pytest.param("pivoted_cholesky", marks=SLOW)],
)
def test_landmarks_are_chosen_by_name(choice):
    X = house.data().X
    fitted = adapters.Nystrom(8, landmarks=choice, random_state=0).fit(X)
    assert set(tuples(fitted.map_.landmarks)) <= set(tuples(X))
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
    rows = fitted.inverse_transform(fitted.transform(jax.device_put(X)))
    assert isinstance(rows, jax.Array)
    # Preimages are searched for until steps are small.
    close(rows, X, 1e-2)


@pytest.mark.parametrize("estimator", CLUSTERERS, ids=name_of)
def test_clusters_have_labels_for_new_points(estimator):
    data = house.data()
    X = data.X
    rows = 0.2 * X + 20 * data.labels[:, None].astype(X.dtype)
    fitted = clone(estimator).fit(rows)
    assert rand_score(fitted.labels_, data.labels) == 1
    restored = pickle.loads(pickle.dumps(fitted))
    close(restored.predict(rows), fitted.labels_)
    with pytest.raises(ValueError, match="X has 2 features, but"):
        fitted.predict(rows[:, :2])
    rows = jax.device_put(rows)
    assert isinstance(clone(estimator).fit(rows).labels_, jax.Array)
    assert isinstance(fitted.predict(rows), jax.Array)


def exact_ridge(X, y, points, weights=None):
    """Return what scikit-learn's own solver predicts in double precision."""
    solver = KernelRidge(alpha=0.1, kernel="rbf", gamma=GAMMA)
    solver.fit(np.float64(X), y, sample_weight=weights)
    return solver.predict(np.float64(points))


@pytest.mark.parametrize(
    "sizes", [{}, {"n_landmarks": 8}, {"n_landmarks": 8, "tol": 0.1}], ids=len
)
def test_ridge_regression_is_within_its_bounds_of_scikit_learns(sizes):
    data = house.data()
    X = data.X
    estimator = adapters.KernelRidge(0.1, gamma=GAMMA, random_state=0, **sizes)
    fitted = estimator.fit(X, data.values, data.weights)
    fitted = pickle.loads(pickle.dumps(fitted))
    points = np.concatenate([X, data.Y])
    exact = exact_ridge(X, data.values, points, data.weights)
    errors = np.abs(fitted.predict(points) - exact)
    bounds = fitted.bound(points)
    assert bounds.dtype == X.dtype
    assert (errors <= bounds).all()
    assert (bounds <= 2 * fitted.distance_bound_).all()
    at_rows = errors[:24] * np.sqrt(data.weights)[:, None]
    assert (at_rows <= fitted.training_bound_).all()
    assert (errors.max() < 1e-3) == (len(sizes) == 0)
    assert bounds.max() < 0.2 or len(sizes) < 2


def test_ridge_regression_of_many_rows_in_arrays_of_jax():
    """More than the 2,048 rows that are filled up."""
    X = house.data().X
    rows = house.rng().normal(size=(2100, 2)).astype(X.dtype)
    y = np.sin(rows[:, 0])
    exact = exact_ridge(rows, y, rows)
    rows = jax.device_put(rows)
    estimator = adapters.KernelRidge(0.1, gamma=GAMMA, n_landmarks=8, random_state=0)
    fitted = estimator.fit(rows, y)
    values = fitted.predict(rows)
    bounds = fitted.bound(rows)
    assert isinstance(values, jax.Array)
    assert values.shape == bounds.shape == (2100,)
    assert (np.abs(np.asarray(values) - exact) <= bounds).all()


@pytest.mark.parametrize(("n_landmarks", "count"), [(None, 2), (8, 3)])
def test_certain_classes_are_those_of_the_exact_classifier(n_landmarks, count):
    data = house.data()
    X = data.X
    rows = data.labels < count
    labels = data.labels[rows]
    points = (0.5 * X + 4 * np.eye(3, dtype=X.dtype)[data.labels])[rows]
    classes = np.array(["one", "three", "two"], dtype=object)[labels]
    estimator = adapters.KernelRidgeClassifier(0.1, gamma=GAMMA, random_state=0)
    estimator.set_params(n_landmarks=n_landmarks).fit(points, classes)
    targets = 2.0 * (labels[:, None] == np.arange(count)) - 1
    exact = exact_ridge(points, targets, points)
    values = exact[:, 1] if count == 2 else exact
    errors = np.abs(estimator.decision_function(points) - values)
    assert (errors <= estimator.bound(points)).all()
    best = estimator.classes_[exact.argmax(axis=1)]
    certain = estimator.certain(points)
    assert (estimator.predict(points) == best)[certain].all()
    assert estimator.score(points, classes) > 0.8
    assert (certain.mean() > 0.95) == (n_landmarks is None)


def test_the_median_distance_of_weighted_rows_is_that_of_copies():
    data = house.data()
    X = data.X
    weights = np.arange(24) % 4
    fitted = adapters.KernelRidge(random_state=0).fit(X, data.values, weights)
    median = np.median(pdist(np.float64(np.repeat(X, weights, axis=0))))
    # Distances of rows in single precision.
    close(fitted.kernel_.lengthscale / median, 1, 1e-6)


def test_a_tolerance_that_is_not_reached_is_said():
    data = house.data()
    X = data.X
    estimator = adapters.KernelRidge(n_landmarks=8, tol=1e-9)
    message = "above tol=1e-09; pass more n_landmarks, or X in float64"
    with pytest.warns(ConvergenceWarning, match=message):
        estimator.fit(np.float32(X), data.values, np.ones(24))


@pytest.mark.parametrize("name", adapters.__all__)
def test_a_bad_value_of_any_parameter_is_an_error_with_its_name(name):
    X = house.data().X
    estimator = getattr(adapters, name)
    for parameter, default in estimator().get_params().items():
        bad = [-1, "other", np.nan]
        if parameter != "random_state":
            bad.append(0)
        if parameter in ("gamma", "lengthscale"):
            bad.append((np.nan, 1.0))
        if parameter.startswith("n_"):
            bad += [1.5, True]
            # Every other count may be None: all rows, or all components.
            if not (
                default is None or parameter == "n_landmarks" or name == "KernelPCA"
            ):
                bad.append(None)
        for value in bad:
            with pytest.raises(ValueError, match=f"^{parameter} "):
                estimator(**{parameter: value}).fit(X, GROUPS)
