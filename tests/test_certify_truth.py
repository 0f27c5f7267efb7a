"""Certificates against a program of their own: errors in extended precision, from the table as it is in the file.

Nothing here is computed by the package but the features of the maps that it certifies.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats
from scipy.cluster.vq import kmeans2

from proofs_check.certify import _certify, _search, certify, from_array
from proofs_check.certify._maps import NAMES

ROWS, DIM, CLUSTERS, DRAWS = 60, 3, 3, 12
DELTA, CONFIDENCE = 0.2, 0.95
EPS = {"distance": 0.5, "spectral": 0.25, "clustering": 0.1, "separation": 0.4}
"""Sizes of a few dozen features, so that few programs are compiled."""


def gaps(X, kernel, lengthscale):
    """Return 1 - K(x, y), (n, n), in extended precision."""
    apart = (X.astype(np.longdouble)[:, None] - X.astype(np.longdouble)[None]) / np.longdouble(lengthscale)
    if kernel == "gaussian":
        return -np.expm1(-np.sum(apart**2, axis=2) / 2)
    return -np.expm1(-np.sum(np.abs(apart), axis=2))  # laplacian


def partition(points, clusters):
    """Return the best of twenty runs of k-means."""
    runs = [kmeans2(points, clusters, iter=50, minit="++", rng=seed, missing="warn") for seed in range(20)]
    return min(runs, key=lambda run: np.sum((points - run[0][run[1]]) ** 2))[1]


def disagreement(first, second):
    table = np.zeros((CLUSTERS, CLUSTERS))
    np.add.at(table, (first, second), 1)
    return 1 - table[optimize.linear_sum_assignment(-table)].sum() / len(first)


def spread(G):
    """Return the largest eigenvalue of the covariance of points with this Gram matrix."""
    H = np.eye(len(G)) - 1 / len(G)
    return np.linalg.eigvalsh(H @ G @ H)[-1] / len(G)


def separations(squares, G, labels, kind):
    found = []
    for a, b in itertools.combinations(range(CLUSTERS), 2):
        one, two = labels == a, labels == b
        if kind == "points":
            found.append(squares[one][:, two].min() / squares.mean())
            continue
        gap = G[one][:, one].mean() + G[two][:, two].mean() - 2 * G[one][:, two].mean()
        found.append(gap / max(spread(G[one][:, one]), spread(G[two][:, two])))
    return np.array(found)


def error(goal, kind, kernel, lengthscale, X, Z, labels):
    """Return the error of features Z of the rows X for a goal."""
    gap = gaps(X, kernel, lengthscale)
    K = (1 - gap).astype(float)
    squares = np.sum((Z[:, None] - Z[None]) ** 2, axis=2)
    if goal == "spectral":
        return np.linalg.norm(K - Z @ Z.T, 2) / len(X)
    if goal == "distance":
        away = gap > 0
        return float(np.max(np.abs(np.sqrt(squares[away] / (2 * gap[away])) - 1)))
    if goal == "separation":
        exact, found = separations(2 * gap.astype(float), K, labels, kind), separations(squares, Z @ Z.T, labels, kind)
        return float(np.max(1 - found / exact, initial=0))
    values, vectors = np.linalg.eigh(K)
    return disagreement(partition(vectors * np.sqrt(np.maximum(values, 0)), CLUSTERS), partition(Z, CLUSTERS))


def table(kind, size, rng):
    """Return points (60, 3), three classes of them, and the lengthscale to ask for."""
    labels = np.arange(ROWS) % CLUSTERS
    X = rng.standard_normal((ROWS, DIM)) + 3 * np.eye(DIM)[labels]
    if kind == "clusters":
        X[:, 0] += size * labels
    elif kind == "outlier":
        X[rng.integers(ROWS), 0] = size
    elif kind == "offset":
        X += size
    elif kind == "scale":
        X *= size
    elif kind == "near":
        X[ROWS // 2 :] = X[: ROWS // 2] + size * rng.standard_normal((ROWS // 2, DIM))
        labels[ROWS // 2 :] = labels[: ROWS // 2]
    return X, labels, 2.0 * (size if kind == "scale" else 1.0)


KINDS = [("plain", 1.0), *(("clusters", 10.0**k) for k in range(2, 8)), *(("outlier", 10.0**k) for k in (3, 6, 7))]
KINDS += [*(("offset", 10.0**k) for k in (3, 5, 7, 8)), *(("scale", 10.0**k) for k in (-42, -38, -25, 20, 30))]
KINDS += [("near", 0.0), ("near", 1e-3), ("near", 1e-7)]
PRECISIONS = [(False, None), (True, None), (True, "float32")]


def checked(kind, size, goal, name, precision, *, seed=0, time=0.02, kernel="gaussian", standardize=False):
    """Return the basis of a certificate or None, its precision, and how many of its draws failed in truth."""
    rng = np.random.default_rng([seed, int(1e3 * abs(np.log10(size or 2)))])
    X, labels, lengthscale = table(kind, size, rng)
    wide, dtype = precision
    goal, _, separation = goal.partition(" ")
    words = {"separation": separation or "means", "num_clusters": CLUSTERS, "eps": EPS[goal], "delta": DELTA}
    with jax.enable_x64(wide):
        try:
            rows = from_array(X, labels=labels, standardize=standardize)
            found = certify(
                jax.random.key(seed),
                rows,
                goal=goal,
                maps=[name],
                time=time,
                kernel=kernel,
                lengthscale=None if standardize else lengthscale,
                confidence=CONFIDENCE,
                dtype=dtype,
                **words,
            )
        except ValueError:  # such as values that do not fit into float32
            return None, None, 0
        if found.map is None:
            return None, found.dtype, 0
        exact = (X.astype(np.longdouble) - X.mean(axis=0)) / X.std(axis=0) if standardize else X
        failures = 0
        for number in range(DRAWS):
            phi = found.draw(jax.random.key(1000 + number))
            Z = np.asarray(phi(jnp.asarray(X, found.dtype)), float)
            truth = error(goal, words["separation"], kernel, found.lengthscale, exact, Z, labels)
            failures += not truth <= 1.01 * EPS[goal]  # distances are right to a hundredth of eps
    return found.basis, found.dtype, failures


def refuted(failures):
    """Tell whether so many failures are out of the question where a draw fails with probability DELTA at most."""
    return stats.binom.sf(failures - 1, DRAWS, DELTA) < 1e-4


@pytest.mark.parametrize(
    ("kind", "size", "goal", "precision"),
    [
        ("clusters", 1e4, "spectral", (False, None)),
        ("clusters", 1e5, "spectral", (True, None)),
        ("outlier", 3e6, "spectral", (True, "float32")),
        ("offset", 1e8, "spectral", (True, None)),
    ],
)
def test_what_is_certified_is_true_where_float32_rounds(kind, size, goal, precision):
    basis, dtype, failures = checked(kind, size, goal, "nystrom", precision, time=0.05)
    if precision == (True, None):
        assert basis is not None and dtype == "float64"
    assert failures == 0


@pytest.mark.parametrize("standardize", [False, True])
def test_the_rows_are_those_of_the_table_and_the_map_is_the_one_that_is_saved(standardize, rng):
    """At an offset of 1e8 float32 knows neither the distances of the points nor their scaling."""
    X = rng.standard_normal((ROWS, DIM))
    tables = [from_array(Y, standardize=standardize) for Y in (X, X + 1e8)]
    near, far = (_certify._lengthscale(jax.random.key(0), table, None)[0] for table in tables)
    assert near == pytest.approx(far, rel=1e-6) and near > 1
    words = {"goal": "spectral", "eps": 0.25, "maps": ["nystrom"], "time": 0.02, "lengthscale": 2.0}
    lost = certify(jax.random.key(1), tables[1], **words)
    assert lost.map is None and "Rounding in float32 may" in lost.theory[0]["words"]


FOURIER = ("paired_fourier", "shifted_fourier", "orthogonal_fourier")
ASKED = {
    "spectral": tuple(name for name in NAMES if name != "kernel_jl"),
    "distance": (*FOURIER, "nystrom"),
    "clustering": ("paired_fourier", "nystrom", "kernel_pca"),
    "separation means": ("orthogonal_fourier", "nystrom", "kernel_jl"),
    "separation points": ("paired_fourier", "nystrom", "kernel_pca"),
}
"""Maps that may keep a goal."""


@pytest.fixture
def quick_to_compile():
    """Compile without most optimisations: the programs are many, and small."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)  # as in all runs with slow tests


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_four_hundred_certificates_are_true(quick_to_compile, monkeypatch):
    """None that rests on a statement is false, and no more of those that rest on draws than the confidence allows."""
    monkeypatch.setattr(_search, "STEPS_PER_DOUBLING", 1)  # few sizes, few programs
    found, refused = {"draws": [], "statement": []}, []
    triples = [(*kind, goal, name) for kind in KINDS for goal, names in ASKED.items() for name in names]
    for number in np.random.default_rng(0).permutation(len(triples))[:400]:
        triple = triples[number]
        basis, dtype, failures = checked(
            *triple,
            PRECISIONS[number % 3],
            seed=int(number),
            time=(0.001, 0.3)[number % 2],
            kernel="laplacian" if number % 7 == 0 else "gaussian",
            standardize=triple[0] in ("offset", "scale") and number % 5 == 0,
        )
        told = (*triple, PRECISIONS[number % 3], basis, dtype, failures)
        where = refused if basis is None else found["draws" if basis == "draws" else "statement"]
        where.append(told)
    wrong = {rest: [told for told in every if refuted(told[-1])] for rest, every in found.items()}
    count = {rest: len(every) for rest, every in found.items()}
    print(count, "refused", len(refused), "false", wrong)
    assert min(count.values()) >= 60
    assert not wrong["statement"]
    assert len(wrong["draws"]) <= stats.binom.ppf(1 - 1e-6, count["draws"], 1 - CONFIDENCE)
