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

from proofs_check.certify import _certify, _model, _plan, _search, certify, from_array
from proofs_check.certify._maps import NAMES

ROWS, DIM, CLUSTERS, DRAWS, DELTA, CONFIDENCE = 60, 3, 3, 12, 0.2, 0.95
EPS = {"distance": 0.5, "spectral": 0.25, "clustering": 0.1, "separation": 0.4}
PRECISIONS = [(False, None), (True, None), (True, "float32")]
FAR = {
    "clusters": range(2, 8),
    "outlier": (3, 6, 7),
    "offset": (3, 5, 7, 8),
    "scale": (-42, -38, -25, 20, 30),
}
FAR |= {"near": (-np.inf, -7, -3), "plain": (0,)}
TABLES = [(kind, 10.0**power) for kind, powers in FAR.items() for power in powers]
MAPS = {  # those that may keep a goal
    "spectral": tuple(name for name in NAMES if name != "kernel_jl"),
    "distance": ("paired_fourier", "shifted_fourier", "orthogonal_fourier", "nystrom"),
    "clustering": ("paired_fourier", "nystrom", "kernel_pca"),
    "separation means": ("orthogonal_fourier", "nystrom", "kernel_jl"),
    "separation points": ("paired_fourier", "nystrom", "kernel_pca"),
}


def error(goal, kind, kernel, lengthscale, X, Z, labels):
    """Return the error of features Z of the rows X for a goal; 1 - K(x, y) is in extended precision."""
    apart = (
        X.astype(np.longdouble)[:, None] - X.astype(np.longdouble)[None]
    ) / np.longdouble(lengthscale)
    gap = -np.expm1(
        -np.sum(apart**2, axis=2) / 2
        if kernel == "gaussian"
        else -np.sum(np.abs(apart), axis=2)
    )
    K, images = (1 - gap).astype(float), np.sum((Z[:, None] - Z[None]) ** 2, axis=2)
    if goal == "spectral":
        return np.linalg.norm(K - Z @ Z.T, 2) / len(X)
    if goal == "distance":
        return float(np.max(np.abs(np.sqrt(images[gap > 0] / (2 * gap[gap > 0])) - 1)))
    if goal == "separation":
        exact, found = (
            separations(*space, labels, kind)
            for space in ((2 * gap.astype(float), K), (images, Z @ Z.T))
        )
        return float(np.max(1 - found / exact, initial=0))
    values, vectors = np.linalg.eigh(K)
    counts = np.zeros((CLUSTERS, CLUSTERS))
    np.add.at(
        counts, (partition(vectors * np.sqrt(np.maximum(values, 0))), partition(Z)), 1
    )
    return 1 - counts[optimize.linear_sum_assignment(-counts)].sum() / len(X)


def partition(points):
    """Return the best of twenty runs of k-means."""
    runs = [
        kmeans2(points, CLUSTERS, iter=50, minit="++", rng=seed) for seed in range(20)
    ]
    return min(runs, key=lambda run: np.sum((points - run[0][run[1]]) ** 2))[1]


def separations(squares, G, labels, kind):
    def spread(G):
        return np.linalg.eigvalsh(
            G - G.mean(axis=0) - G.mean(axis=1)[:, None] + G.mean()
        )[-1] / len(G)

    found = []
    for one, two in itertools.combinations(
        [labels == number for number in range(CLUSTERS)], 2
    ):
        if kind == "points":
            found.append(squares[one][:, two].min() / squares.mean())
        else:
            gap = (
                G[one][:, one].mean()
                + G[two][:, two].mean()
                - 2 * G[one][:, two].mean()
            )
            found.append(gap / max(spread(G[one][:, one]), spread(G[two][:, two])))
    return np.array(found)


def points(kind, size, rng):
    """Return points (60, 3), three classes of them, and the lengthscale to ask for."""
    labels = np.arange(ROWS) % CLUSTERS
    X = rng.standard_normal((ROWS, DIM)) + 3 * np.eye(DIM)[labels]
    if kind == "near":
        X[ROWS // 2 :] = X[: ROWS // 2] + size * rng.standard_normal((ROWS // 2, DIM))
    X[:, 0] += size * {
        "clusters": labels,
        "outlier": np.arange(ROWS) == 7,
        "offset": 1,
    }.get(kind, 0)
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
    time=1.0,
    kernel="gaussian",
    standardize=False,
):
    """Return the basis of a certificate or None, its precision, and how many of its draws failed in truth."""
    X, labels, lengthscale = points(kind, size, np.random.default_rng(seed))
    (goal, _, separation), (wide, dtype) = goal.partition(" "), precision
    asked = {
        "goal": goal,
        "eps": EPS[goal],
        "delta": DELTA,
        "confidence": CONFIDENCE,
        "num_clusters": CLUSTERS,
    }
    asked |= {
        "separation": separation or "means",
        "lengthscale": None if standardize else lengthscale,
    }
    with jax.enable_x64(wide):
        try:
            table = from_array(X, labels=labels, standardize=standardize)
            words = {"maps": [name], "time": time, "kernel": kernel, "dtype": dtype}
            found = certify(jax.random.key(seed), table, **asked, **words)
        except (
            ValueError
        ):  # such as values that do not fit into float32, or Fastfood of the Laplacian
            return None, None, 0
        if found.map is None:
            return None, found.dtype, 0
        exact = (
            (X.astype(np.longdouble) - X.mean(axis=0)) / X.std(axis=0)
            if standardize
            else X
        )
        failures = 0
        for number in range(DRAWS):
            Z = np.asarray(
                found.draw(jax.random.key(1000 + number))(jnp.asarray(X, found.dtype)),
                float,
            )
            finite = np.isfinite(Z).all()  # distances are right to a hundredth of eps
            words = goal, separation, kernel, found.lengthscale, exact, Z, labels
            failures += not (finite and error(*words) <= 1.01 * EPS[goal])
    return found.basis, found.dtype, failures


@pytest.mark.parametrize(
    "case",
    [
        ("clusters", 1e4, 0),
        ("clusters", 1e5, 1),
        ("outlier", 3e6, 2),
        ("offset", 1e8, 1),
    ],
)
def test_what_is_certified_is_true_where_float32_rounds(case):
    kind, size, precision = case
    basis, dtype, failures = checked(
        kind, size, "spectral", "nystrom", PRECISIONS[precision]
    )
    assert failures == 0 and (
        precision != 1 or (basis is not None and dtype == "float64")
    )


@pytest.mark.parametrize("standardize", [False, True])
def test_the_rows_are_those_of_the_table_and_the_map_is_the_one_that_is_saved(
    standardize, rng
):
    """At an offset of 1e8 float32 knows neither the distances of the points nor their scaling."""
    X = rng.standard_normal((ROWS, DIM))
    tables = [from_array(Y, standardize=standardize) for Y in (X, X + 1e8)]
    near, far = (
        _certify._lengthscale(jax.random.key(0), table, None)[0] for table in tables
    )
    assert near == pytest.approx(far, rel=1e-6) and near > 1
    lost = certify(
        jax.random.key(1),
        tables[1],
        goal="spectral",
        maps=["nystrom"],
        time=1.0,
        lengthscale=2.0,
    )
    assert lost.map is None and "Rounding in float32 may" in lost.theory[0]["words"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_four_hundred_certificates_are_true(monkeypatch):
    """None that rests on a statement is false, and no more of those that rest on draws than the confidence allows."""
    monkeypatch.setattr(_search, "STEPS_PER_DOUBLING", 1)  # few sizes, few programs
    unknown = _model.Outcome(
        None, 1.0, 0.1, "out of time", ()
    )  # leaves it to a statement, if there is one
    searches = (lambda *_, **words: unknown), _search.search
    found = {"refused": [], "draws": [], "statement": []}
    triples = [
        (*table, goal, name)
        for table in TABLES
        for goal, names in MAPS.items()
        for name in names
    ]
    for number in np.random.default_rng(0).permutation(len(triples))[:400].tolist():
        words = {"seed": number, "kernel": "gaussian" if number % 7 else "laplacian"}
        monkeypatch.setattr(_plan, "search", searches[number % 2])
        words["standardize"] = (
            triples[number][0] in ("offset", "scale") and number % 5 == 0
        )
        basis, *rest = checked(*triples[number], PRECISIONS[number % 3], **words)
        kind = (
            "refused" if basis is None else "draws" if basis == "draws" else "statement"
        )
        found[kind].append((*triples[number], words, *rest))
    # So many failures are out of the question where a draw fails with probability DELTA at most.
    wrong = [
        [one for one in every if stats.binom.sf(one[-1] - 1, DRAWS, DELTA) < 1e-4]
        for every in found.values()
    ]
    assert min(len(every) for every in found.values()) >= 40
    assert not wrong[2]
    assert len(wrong[1]) <= stats.binom.ppf(
        1 - 1e-6, len(found["draws"]), 1 - CONFIDENCE
    ), wrong[1]
