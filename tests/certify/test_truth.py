"""Certificates against a program of their own: errors in extended precision, from the table as it is in the file.

Nothing here is computed by the package except the features of the maps that it certifies.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats
from scipy.cluster.vq import kmeans2

from proofs_check.certify import candidates, certify, from_array, search
from proofs_check.certify.maps import NAMES
from proofs_check.certify.pipeline import lengthscale_of

ROWS, DIM, CLUSTERS, DRAWS, DELTA, CONFIDENCE = 60, 3, 3, 12, 0.2, 0.95
EPS = {"distance": 0.5, "spectral": 0.25, "clustering": 0.1, "separation": 0.4}
PRECISIONS = [(False, None), (True, None), (True, "float32")]
POWERS = {
    "clusters": range(2, 8),
    "outlier": (3, 6, 7),
    "offset": (3, 5, 7, 8),
    "scale": (-42, -38, -25, 20, 30),
    "near": (-np.inf, -7, -3),
    "plain": (0,),
}
TABLES = [(kind, 10.0**power) for kind, powers in POWERS.items() for power in powers]
MAPS = {  # maps that may keep a goal
    "spectral": tuple(name for name in NAMES if name != "kernel_jl"),
    "distance": ("paired_fourier", "shifted_fourier", "orthogonal_fourier", "nystrom"),
    "clustering": ("paired_fourier", "nystrom", "kernel_pca"),
    "separation": (
        "orthogonal_fourier",
        "paired_fourier",
        "nystrom",
        "kernel_pca",
        "kernel_jl",
    ),
}


def error_of(goal, kernel, lengthscale, X, Z, labels):
    """Return the error of features Z of the rows X for a goal; 1 - K(x, y) is in extended precision."""
    wide = X.astype(np.longdouble)
    apart = (wide[:, None] - wide[None]) / np.longdouble(lengthscale)
    exponent = np.sum(apart**2, axis=2) / 2
    if kernel == "laplacian":
        exponent = np.sum(np.abs(apart), axis=2)
    gap = -np.expm1(-exponent)
    K = (1 - gap).astype(float)
    if goal == "spectral":
        return np.linalg.norm(K - Z @ Z.T, 2) / len(X)
    if goal == "distance":
        images = np.sum((Z[:, None] - Z[None]) ** 2, axis=2)
        ratios = images[gap > 0] / (2 * gap[gap > 0])
        return float(np.max(np.abs(np.sqrt(ratios) - 1)))
    if goal == "separation":
        exact = separations(K, labels)
        return float(np.max(1 - separations(Z @ Z.T, labels) / exact, initial=0))
    values, vectors = np.linalg.eigh(K)
    counts = np.zeros((CLUSTERS, CLUSTERS))
    exact = partition(vectors * np.sqrt(np.maximum(values, 0)))
    np.add.at(counts, (exact, partition(Z)), 1)
    return 1 - counts[optimize.linear_sum_assignment(-counts)].sum() / len(X)


def partition(points):
    """Return the best of twenty runs of k-means."""
    runs = [
        kmeans2(points, CLUSTERS, iter=50, minit="++", rng=seed) for seed in range(20)
    ]
    return min(runs, key=lambda run: np.sum((points - run[0][run[1]]) ** 2))[1]


def separations(G, labels):
    """Return the squared distances of class means over the larger spread, from a Gram matrix."""

    def spread(G):
        centred = G - G.mean(axis=0) - G.mean(axis=1)[:, None] + G.mean()
        return np.linalg.eigvalsh(centred)[-1] / len(G)

    ratios = []
    for a, b in itertools.combinations(range(CLUSTERS), 2):
        one = labels == a
        two = labels == b
        gap = G[one][:, one].mean() + G[two][:, two].mean() - 2 * G[one][:, two].mean()
        ratios.append(gap / max(spread(G[one][:, one]), spread(G[two][:, two])))
    return np.array(ratios)


def points(kind, size, rng):
    """Return points (60, 3), three classes of them, and the lengthscale to ask for."""
    labels = np.arange(ROWS) % CLUSTERS
    X = rng.standard_normal((ROWS, DIM)) + 3 * np.eye(DIM)[labels]
    if kind == "near":
        X[ROWS // 2 :] = X[: ROWS // 2] + size * rng.standard_normal((ROWS // 2, DIM))
    is_outlier = np.arange(ROWS) == 7
    shifts = {"clusters": labels, "outlier": is_outlier, "offset": 1}
    X[:, 0] += size * shifts.get(kind, 0)
    scale = size if kind == "scale" else 1.0
    return scale * X, labels, 2 * scale


def checked(
    kind,
    size,
    goal,
    name,
    precision,
    *,
    seed=0,
    kernel="gaussian",
    standardize=False,
):
    """Return the basis of a certificate or None, its precision, and how many of its draws failed in truth."""
    X, labels, lengthscale = points(kind, size, np.random.default_rng(seed))
    wide, dtype = precision
    options = {
        "eps": EPS[goal],
        "delta": DELTA,
        "confidence": CONFIDENCE,
        "num_clusters": CLUSTERS,
        "lengthscale": None if standardize else lengthscale,
        "time": 5.0,
    }
    with jax.enable_x64(wide):
        try:
            table = from_array(X, labels=labels, standardize=standardize)
            certificate = certify(
                jax.random.key(seed),
                table,
                goal=goal,
                maps=[name],
                kernel=kernel,
                dtype=dtype,
                **options,
            )
        except ValueError:
            # Such as values that do not fit into float32, or Fastfood of the Laplacian.
            return None, None, 0
        if certificate.map is None:
            return None, certificate.dtype, 0
        exact = X.astype(np.longdouble)
        if standardize:
            exact = (exact - X.mean(axis=0)) / X.std(axis=0)
        failures = 0
        for number in range(DRAWS):
            phi = certificate.draw(jax.random.key(1000 + number))
            Z = np.asarray(phi(jnp.asarray(X, certificate.dtype)), float)
            # Distances are right to a hundredth of eps.
            true = np.isfinite(Z).all() and (
                error_of(goal, kernel, certificate.lengthscale, exact, Z, labels)
                <= 1.01 * EPS[goal]
            )
            failures += not true
    return certificate.basis, certificate.dtype, failures


@pytest.mark.parametrize(
    "case",
    [
        ("clusters", 1e4, 0),
        ("clusters", 1e5, 1),
        ("outlier", 3e6, 2),
        ("offset", 1e8, 1),
    ],
)
def test_certificates_are_true_where_float32_rounds(case):
    kind, size, precision = case
    basis, dtype, failures = checked(
        kind, size, "spectral", "nystrom", PRECISIONS[precision]
    )
    assert failures == 0
    if precision == 1:
        assert basis is not None
        assert dtype == "float64"


@pytest.mark.parametrize("standardize", [False, True])
def test_the_kernel_is_that_of_the_rows_as_they_were_read(standardize, rng):
    """At an offset of 1e8 float32 knows neither the distances of the points nor their scaling."""
    X = rng.standard_normal((ROWS, DIM))
    near, far = (
        lengthscale_of(jax.random.key(0), from_array(Y, standardize=standardize), None)
        for Y in (X, X + 1e8)
    )
    assert near[0] == pytest.approx(far[0], rel=1e-6)
    options = {"goal": "spectral", "maps": ["nystrom"], "lengthscale": 2.0}
    table = from_array(X + 1e8, standardize=standardize)
    certificate = certify(jax.random.key(1), table, **options)
    assert certificate.map is None
    words = next(one.words for one in certificate.theory if one.map == "nystrom")
    assert "ounding" in words


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_four_hundred_certificates_are_true(monkeypatch):
    """None that rests on a statement is false, and no more of those that rest on draws than the confidence allows."""
    # Few sizes, and so few programs.
    monkeypatch.setattr(search, "STEPS", 1)
    unknown = search.Outcome(None, 1.0, 0.1, "out of time", [])
    # Half of all certificates are left to a statement, if there is one.
    looks = [lambda *_args, **_options: unknown, search.look]
    results = {"refused": [], "draws": [], "statement": []}
    triples = [
        (*table, goal, name)
        for table in TABLES
        for goal, names in MAPS.items()
        for name in names
    ]
    order = np.random.default_rng(0).permutation(len(triples))
    for number in order[:400].tolist():
        kind, size, goal, name = triples[number]
        monkeypatch.setattr(candidates, "look", looks[number % 2])
        options = {
            "seed": number,
            "kernel": "gaussian" if number % 7 else "laplacian",
            "standardize": kind in ("offset", "scale") and number % 5 == 0,
        }
        basis, dtype, failures = checked(
            kind, size, goal, name, PRECISIONS[number % 3], **options
        )
        group = "refused" if basis is None else basis
        if group in ("this data", "worst case"):
            group = "statement"
        results[group].append((failures, triples[number], dtype, options))
    # So many failures are out of the question if a draw fails with probability DELTA at most.
    wrong = {
        group: [one for one in many if stats.binom.sf(one[0] - 1, DRAWS, DELTA) < 1e-4]
        for group, many in results.items()
    }
    assert min(len(many) for many in results.values()) >= 40
    assert not wrong["statement"]
    most = stats.binom.ppf(1 - 1e-6, len(results["draws"]), 1 - CONFIDENCE)
    assert len(wrong["draws"]) <= most, wrong["draws"]
