"""The transformers in scikit-learn's world: its own checks, pipelines, grid searches, batches."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from jaxkern import features, kernels
from jaxkern import sklearn as adapters

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
    assert {type(e).__name__ for e in EVERY} == set(adapters.__all__)


def data(dtype=np.float64):
    rng = np.random.default_rng(0)
    radius = np.repeat([1.0, 3.0], 40)
    X = rng.normal(size=(80, 2))
    return (X / np.linalg.norm(X, axis=1, keepdims=True) * radius[:, None]).astype(dtype), (radius > 2).astype(int)


@pytest.mark.parametrize("estimator", EVERY, ids=lambda e: type(e).__name__)
def test_dtype_names_and_seed(estimator):
    for dtype in (np.float32, np.float64):
        X, _ = data(dtype)
        fitted = clone(estimator).fit(X)
        Z = fitted.transform(X)
        assert Z.dtype == dtype and Z.shape == (80, len(fitted.get_feature_names_out()))
        assert fitted.get_feature_names_out()[0] == type(estimator).__name__.lower() + "0"
        assert np.array_equal(clone(estimator).fit_transform(X), Z)
        assert not np.array_equal(clone(estimator).set_params(random_state=1).fit_transform(X), Z)


@pytest.mark.parametrize("estimator", EVERY, ids=lambda e: type(e).__name__)
def test_batches_give_what_one_fit_gives(estimator):
    X, _ = data()
    whole = clone(estimator).set_params(lengthscale=1.0).fit(X)
    parts = clone(estimator).set_params(lengthscale=1.0)
    for batch in (X[:10], X[10:55], X[55:]):
        parts.partial_fit(batch)
    A, B = whole.transform(X), parts.transform(X)
    np.testing.assert_allclose(A @ A.T, B @ B.T, atol=1e-8 * max(np.abs(A @ A.T).max(), 1))
    again = whole.fit(X[:40]).transform(X)  # a new fit forgets the old one
    np.testing.assert_array_equal(again, clone(estimator).set_params(lengthscale=1.0).fit(X[:40]).transform(X))


@pytest.mark.parametrize("estimator", EVERY, ids=lambda e: type(e).__name__)
def test_pickling_keeps_every_digit_and_the_stream(estimator):
    X, _ = data()
    fitted = clone(estimator).set_params(lengthscale=1.0).partial_fit(X[:40])
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.transform(X), fitted.transform(X))
    first, second = fitted.partial_fit(X[40:]).transform(X), again.partial_fit(X[40:]).transform(X)
    assert np.array_equal(first, second)


def test_the_map_inside_is_the_one_of_the_library(x64):
    X, _ = data()
    fitted = adapters.PairedFourier(7, lengthscale=0.8, random_state=3).fit(X)
    assert isinstance(fitted.map_, features.PairedFourier)
    np.testing.assert_allclose(fitted.transform(X), fitted.map_(jnp.asarray(X)), atol=1e-12)
    own = adapters.Nystrom(9, kernel=2.0 * kernels.Matern32(0.5), random_state=3).fit(X)
    assert isinstance(own.kernel_, kernels.Kernel) and own.map_.landmarks.shape == (9, 2)


def test_a_pipeline_learns_what_a_linear_model_cannot():
    X, y = data()
    plain = LogisticRegression().fit(X, y).score(X, y)
    piped = make_pipeline(adapters.Nystrom(30, random_state=0), LogisticRegression(C=100)).fit(X, y)
    assert plain < 0.75 < 0.95 < piped.score(X, y)


def test_a_grid_search_sets_parameters():
    X, y = data()
    pipe = make_pipeline(adapters.PairedFourier(20, random_state=0), LogisticRegression())
    search = GridSearchCV(pipe, {"pairedfourier__lengthscale": [0.01, 1.0]}, cv=2).fit(X, y)
    assert search.best_params_ == {"pairedfourier__lengthscale": 1.0}


def test_bad_parameters_are_named():
    X, _ = data()
    with pytest.raises(ValueError, match="kernel must be one of"):
        adapters.PairedFourier(kernel="rbf").fit(X)
    with pytest.raises(ValueError, match="lengthscale"):
        adapters.PairedFourier(lengthscale=-1.0).fit(X)
    with pytest.raises(ValueError, match="num_frequencies"):
        adapters.PairedFourier(0).fit(X)
    with pytest.raises(ValueError, match="num_landmarks"):
        adapters.Nystrom(0).fit(X)
