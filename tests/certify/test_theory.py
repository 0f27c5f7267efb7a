"""Facts about data, and what statements demand and ask of them."""

import dataclasses
import json
import math
import types

import jax
import numpy as np
import pytest
from scipy import stats

from jaxkern import kernels, plan
from jaxkern.bounds import fourier, sketching, streaming
from proofs_check.certify import _facts, _hypotheses
from proofs_check.certify._facts import edges, facts
from proofs_check.certify._hypotheses import hypotheses
from proofs_check.certify._maps import FOURIER, NAMES, families
from proofs_check.certify._model import EXACT, Rounding
from proofs_check.certify._request import GOALS, Request
from proofs_check.certify._rows import distinct
from proofs_check.certify._statements import needed_landmarks, share_of_pairs
from proofs_check.certify._theory import demands

FALSE_ALARM = 1e-6
"""Of every statistical test below: the chance to fail although the statement holds."""


def measured(X, lengthscale=1.0, kernel=None, **words):
    kernel = kernels.Gaussian(lengthscale) if kernel is None else kernel
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float32
    table = types.SimpleNamespace(
        rows=len(X), dim=X.shape[1], take=lambda rows, dtype: np.asarray(X[rows], dtype)
    )
    return facts(
        jax.random.key(3),
        table,
        kernel,
        lengthscale,
        dtype=dtype,
        **{"seconds": 60.0} | words,
    )


def test_the_spectrum_of_far_points_is_flat_and_known():
    """100 points, far apart: K = I, all eigenvalues of K / n are 1 / n."""
    n = 100
    found = measured((1e3 * np.eye(n)).astype(np.float32))
    assert found.sampled == found.rows == n and found.kappa == 1
    for name, value in dict(
        op_norm=1 / n, trace=1.0, trace3=1 / n**2, hs_norm=1 / math.sqrt(n)
    ).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-5)
    dimension = found.effective_dimension
    assert dimension["trace / op_norm"] == pytest.approx(n, rel=1e-5)
    assert dimension["trace3 / op_norm^3"] == pytest.approx(n, rel=1e-5)
    assert dimension["sum l / (l + 0.1 op_norm)"] == pytest.approx(n / 1.1, rel=1e-5)
    assert dimension["sum l / (l + 0.001 op_norm)"] == pytest.approx(
        n / 1.001, rel=1e-5
    )
    assert found.diameter == pytest.approx(
        1e3 * math.sqrt(n), rel=1
    )  # the bounding box, or twice the radius
    assert found.diameter >= 1e3 * math.sqrt(2)


def test_sums_over_eigenvalues_are_those_of_the_matrix_and_samples_are_smaller(rng):
    X = rng.standard_normal((90, 2)).astype(np.float32)
    K = (
        np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / (2 * 1.3**2)).astype(
            float
        )
        / 90
    )
    found = measured(X, 1.3)
    assert found.op_norm == pytest.approx(np.linalg.norm(K, 2), rel=1e-5)
    assert found.trace3 == pytest.approx(np.trace(K @ K @ K), rel=1e-5)
    assert found.hs_norm == pytest.approx(np.linalg.norm(K), rel=1e-5)
    assert (
        np.all(np.diff(found.eigenvalues) <= 0)
        and found.eigenvalues[0] == found.op_norm
    )
    part = measured(X, 1.3, sample=30)
    assert (
        part.sampled == 30
        and part.rows == 90
        and part.op_norm == pytest.approx(found.op_norm, rel=0.3)
    )
    assert np.array_equal(part.pairs, found.pairs)


@pytest.mark.parametrize(
    ("law", "best"), [("power", "i^-1.8"), ("exponential", "exp(-0.12 i)")]
)
def test_decay_is_named_after_the_law_that_fits(law, best):
    i = np.arange(1, 201)
    values = i**-1.8 if law == "power" else np.exp(-0.12 * i)
    found = _facts._decay(values, np.dtype("float64"))
    assert f"fall about like {best} (R^2 1.000)" in found["words"]
    assert found[law] == pytest.approx(1.8 if law == "power" else 0.12) and found[
        law + "_r2"
    ] == pytest.approx(1)
    assert (
        found["indices"] == 50
        and found["power_r2" if law == "exponential" else "exponential_r2"] < 0.98
    )
    assert (
        "too soon"
        in _facts._decay(np.array([1.0, 1e-9, 1e-12, 0, 0]), np.dtype("float32"))[
            "words"
        ]
    )


def test_edges_are_the_numbers_at_which_bins_change(dtype, x64):
    low = edges()
    assert (
        low[0] == 0
        and low[1] == 2.0**-9
        and low[-1] == 36
        and np.all(np.diff(low) > 0)
        and len(low) < 255
    )
    assert np.all(low[2:] / low[1:-1] <= 1 + 1 / 16)
    for k, value in enumerate(low[1:], 1):
        at, below = (
            np.asarray(value, dtype),
            np.nextafter(np.asarray(value, dtype), np.asarray(0, dtype)),
        )
        codes = [
            _facts._code(v) - _facts._code(np.asarray(low[1], dtype)) + 1
            for v in (at, below)
        ]
        assert codes == [k, k - 1]


@pytest.mark.parametrize("offset", [0.0, 300.0])
def test_no_pair_is_counted_in_a_higher_bin_and_none_is_lost(
    offset, dtype, rng, monkeypatch
):
    """Near, far and equal rows, an outlier, and tiles that do not divide the rows."""
    monkeypatch.setattr(_facts, "_TILE", 64)
    monkeypatch.setattr(_facts, "_BLOCK", 50)
    X = np.concatenate(
        [
            rng.standard_normal((80, 3)),
            5 + 1e-3 * rng.standard_normal((30, 3)),
            np.ones((4, 3)),
            [[400.0, 0, 0]],
        ]
    )
    X = (X + offset).astype(dtype)
    found = measured(X, 1.5)
    exact = (
        np.sum((X[:, None].astype(float) - X[None]) ** 2, axis=2)[
            np.triu_indices(len(X), 1)
        ]
        / 1.5**2
    )
    exact = exact[exact > 0]
    true = np.histogram(exact, np.append(edges(), np.inf))[0]
    assert found.pairs.sum() == true.sum() == len(exact)
    assert np.all(np.cumsum(found.pairs) >= np.cumsum(true))
    moved = np.abs(np.cumsum(found.pairs) - np.cumsum(true)).max()
    assert moved <= (
        0 if dtype == "float64" else 150
    )  # the outlier takes the centre away
    assert "6 at distance zero" in found.decay["pairs"] and found.has_pairs
    assert math.sqrt(exact.max()) <= found.diameter <= 2.01 * math.sqrt(exact.max())


def test_equal_rows_are_counted_and_signed_zeros_are_equal(rng):
    X = rng.integers(0, 3, (200, 3)).astype(np.float32)
    X[:50] *= -1.0  # makes -0
    i, j = np.triu_indices(200, 1)
    copies = distinct(X)[1]
    assert np.sum(copies * (copies - 1) // 2) == np.sum(np.all(X[i] == X[j], axis=1))


def test_pairs_that_are_not_counted_stand_in_the_lowest_bin(rng, monkeypatch):
    X = rng.standard_normal((300, 2)).astype(np.float32)
    short = measured(X, kernel=kernels.Laplacian(1.0))
    assert (
        "Gaussian" in short.decay["pairs"]
        and not short.has_pairs
        and short.pairs.sum() == 300 * 299 / 2
    )
    monkeypatch.setattr(_facts, "_TILE", 32)
    hurried = measured(X, seconds=0.0)
    assert (
        "longer than there is time" in hurried.decay["pairs"] and not hurried.has_pairs
    )
    monkeypatch.setattr(_facts, "MOST_ROWS", 299)
    many = measured(X)
    assert (
        "too many" in many.decay["pairs"]
        and not many.has_pairs
        and share_of_pairs(many) is None
    )
    demanded = [d for d in demands(many, Request(eps=0.2)) if not d.worst_case]
    assert [d.size for d in demanded] == [None] and "too many" in demanded[0].words


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(7).standard_normal((1500, 3)).astype(np.float32)
    return measured(X, 1.5, sample=400)


def sizes(data, goal, eps=0.1, delta=0.05, rounding=EXACT, **more):
    asked = {}
    for demand in demands(
        data, Request(goal=goal, eps=eps, delta=delta, **more), rounding
    ):
        asked.setdefault(demand.map, []).append(demand)
    return asked


@pytest.mark.parametrize("goal", GOALS)
def test_every_map_has_a_demand_or_a_reason(goal, data):
    laplacian = dataclasses.replace(data, kernel=kernels.Laplacian(1.5))
    for found in (data, laplacian, dataclasses.replace(data, rows=10**6)):
        asked = sizes(found, goal)
        assert tuple(asked) == NAMES
        for name, held in asked.items():
            for demand in held:
                assert (
                    demand.words.endswith(".")
                    and demand.source
                    and "{" not in demand.words
                )
                assert demand.size is None or (
                    type(demand.size) is int and demand.size >= 1
                )
                if demand.size is not None:
                    assert (
                        families(found.rows, 3, 0.1)[name].num_features(demand.size)
                        >= 1
                    )
    if goal == "clustering":
        assert all(demand.size is None for held in asked.values() for demand in held)


@pytest.mark.parametrize("goal", ["distance", "spectral"])
def test_statements_have_what_rounding_leaves_of_eps(goal, data):
    exact, rounding = sizes(data, goal), Rounding("float32", gram=0.002, pairs=0.002)
    for name, held in sizes(data, goal, rounding=rounding).items():
        for demand, before in zip(held, exact[name], strict=True):
            more = (
                1.06 if name in FOURIER else 1.5
            )  # components and rows drawn have taken most of eps already
            assert (
                demand.size == before.size
                or before.size <= demand.size <= more * before.size
            )
    for lost in (
        Rounding("float32", gram=0.1, pairs=0.1),
        Rounding("float32", gram=math.nan, pairs=math.inf),
    ):
        asked = sizes(data, goal, rounding=lost)
        assert all(demand.size is None for held in asked.values() for demand in held)
        words = asked["paired_fourier"][0].words
        assert words.startswith(
            "Statements are about exact numbers."
        ) and words.endswith("float64 would leave more.")


def test_the_distances_of_the_data_ask_for_less_than_all_data(data):
    asked = sizes(data, "distance")
    any_points, ball, these = asked["paired_fourier"]
    assert any_points.worst_case and ball.worst_case and not these.worst_case
    assert these.size < 0.95 * any_points.size
    assert any_points.size == plan.fourier(0.1, 0.05, num_points=1500).num_frequencies
    assert all(
        asked[name][0].size is None for name in NAMES if name != "paired_fourier"
    )
    near = dataclasses.replace(
        data,
        squared_distances=np.array([0.0, 0.003]),
        pairs=np.array([10.0, data.pairs.sum() - 10]),
    )
    assert (
        these.size
        < sizes(near, "distance")["paired_fourier"][2].size
        <= any_points.size
    )
    laplacian = dataclasses.replace(data, kernel=kernels.Laplacian(1.5))
    (refused,) = sizes(laplacian, "distance")["paired_fourier"]
    assert refused.size is None and "Laplacian" in refused.words


@pytest.mark.parametrize("goal", ["distance", "spectral"])
def test_demands_fall_with_eps_and_delta(goal, data):
    tight, loose, rare = (
        sizes(data, goal, *words) for words in ((0.1, 0.05), (0.15, 0.05), (0.1, 0.005))
    )
    for name in NAMES:
        for a, b, c in zip(tight[name], loose[name], rare[name], strict=True):
            if a.size is not None:
                assert b.size < a.size < c.size


def test_spectral_demands_are_the_smallest_sizes_of_their_statements(data):
    asked = sizes(data, "spectral")
    paired = asked["paired_fourier"][0].size
    words = dict(eps=0.1, num_frequencies=paired - 1)
    assert fourier.gram_spectral_paired_all_n(**words).probability < 0.95
    assert fourier.gram_spectral_paired(**words, num_points=1500).probability < 0.95
    assert (
        fourier.gram_spectral_paired_all_n(eps=0.1, num_frequencies=paired).probability
        >= 0.95
    )
    shifted = asked["shifted_fourier"][1].size
    tau = math.log(20)
    assert (
        fourier.gram_frobenius_shifted(
            num_features=shifted, tau=tau, variance=1.0
        ).value
        <= 0.1
    )
    assert (
        fourier.gram_frobenius_shifted(
            num_features=shifted - 1, tau=tau, variance=1.0
        ).value
        > 0.1
    )
    assert asked["nystrom"][0].size == plan.nystrom(0.1, 0.05).num_landmarks
    k = asked["kernel_pca"][0].size
    held = [
        streaming.nystrom_spectral(
            eps=0.1 - 1 / (j + 1), num_landmarks=4 * j
        ).probability
        >= 0.95
        for j in (k - 1, k)
    ]
    assert held == [False, True]
    rows = families(1500, 3, 0.1)["streaming_pca"].sizes(500)["sketch_size"]
    stream = plan.streaming(0.1, 0.05, num_points=1500, sketch_size=rows)
    assert asked["streaming_pca"][0].size == stream.num_frequencies
    assert asked["random_feature_pca"][0].size > stream.num_frequencies


def test_tables_that_are_smaller_than_what_is_asked_give_all_their_rows(data):
    small = dataclasses.replace(data, rows=200)
    asked = sizes(small, "spectral")
    assert asked["nystrom"][0].size == 200 and "200 rows" in asked["nystrom"][0].words
    assert (
        asked["kernel_pca"][0].size == 50
    )  # 4 landmarks a component, all rows, and 1 / 51 is left out
    assert sizes(data, "spectral", eps=1e-9)["nystrom"][0].size == 1500


def test_what_components_leave_out_is_bounded_as_the_module_says(rng):
    """|Q Sigma Q| <= 1 / (k + 1) + lambda_max(Sigma - Sigma_c)_+, for random unit features and every k."""
    Z = rng.standard_normal((60, 12)) * np.geomspace(3, 0.1, 12)
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    full = Z.T @ Z / 60
    tight = 0.0
    for count in (5, 20, 60):
        part = Z[rng.permutation(60)[:count]]
        drawn = part.T @ part / count
        excess = max(np.linalg.eigvalsh(full - drawn)[-1], 0)
        vectors = np.linalg.eigh(drawn)[1][:, ::-1]
        for k in range(1, 12):
            Q = np.eye(12) - vectors[:, :k] @ vectors[:, :k].T
            left = np.linalg.norm(Q @ full @ Q, 2)
            assert left <= 1 / (k + 1) + excess + 1e-12
            tight = max(tight, left / (1 / (k + 1) + excess))
    assert tight > 0.5


def test_kernel_pca_of_the_demanded_size_keeps_the_gram_matrix(data, rng):
    """20 draws, which may fail with probability .05 each; by NumPy, from the definition."""
    n, eps = 400, 0.2
    X = rng.standard_normal((n, 3))
    G = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / (2 * 1.5**2))
    k = sizes(dataclasses.replace(data, rows=n), "spectral", eps=eps)["kernel_pca"][
        0
    ].size
    assert 4 * k < n / 2
    failed = 0
    for _ in range(20):
        rows = rng.permutation(n)[: 4 * k]
        values, vectors = np.linalg.eigh(G[np.ix_(rows, rows)])
        Z = G[:, rows] @ vectors[:, -k:] / np.sqrt(np.maximum(values[-k:], 1e-12))
        failed += np.abs(np.linalg.eigvalsh(G - Z @ Z.T)).max() > eps * n
    assert stats.binom.sf(failed - 1, 20, 0.05) > FALSE_ALARM


def test_kernel_jl_is_told_how_many_landmarks_it_lacks(data):
    n = needed_landmarks(data, 0.1, 0.05)
    words = {
        name: getattr(data, name)
        for name in ("kappa", "op_norm", "trace", "trace3", "hs_norm")
    }

    def error(landmarks):
        found = sketching.inner_products_every_n(
            **words, n=landmarks, d=landmarks // 4, tau=math.log(80)
        )
        return found.value / data.op_norm**3

    assert error(n) <= 0.1 < error(n - 4)
    (found,) = sizes(data, "separation")["kernel_jl"]
    assert (
        found.size is None
        and f"n = {n:,} landmarks" in found.words
        and "1,500 rows" in found.words
    )


def test_distances_that_are_kept_keep_the_separation_of_points(data):
    found = sizes(data, "separation", eps=0.3, separation="points")["paired_fourier"]
    relative = (1 - math.sqrt(0.7)) / (1 + math.sqrt(0.7))
    assert 1 - ((1 - relative) / (1 + relative)) ** 2 == pytest.approx(0.3)
    assert (
        found[0].size == plan.fourier(relative, 0.05, num_points=1500).num_frequencies
    )
    assert all(
        d.size is None
        for d in sizes(data, "separation", eps=0.3, separation="means")[
            "paired_fourier"
        ]
    )


def test_hypotheses_hold_from_the_number_of_rows_that_is_needed_on(data, monkeypatch):
    found = {h.statement: h for h in hypotheses(data, Request())}
    needed = {name: h.needed for name, h in found.items() if h.needed is not None}
    assert len(needed) >= 8 and not any(name.startswith("chen2016") for name in needed)
    monkeypatch.setattr(
        _hypotheses, "_chen", lambda *args: ()
    )  # most of the time goes into them
    for name, rows in needed.items():
        for count, holds in ((rows, True), (rows - 1, False)):
            again = {
                h.statement: h
                for h in hypotheses(
                    dataclasses.replace(data, rows=max(count, 1)), Request()
                )
            }[name]
            assert again.needed == rows and (again.holds is holds or count == 0)


def test_hypotheses_of_kernel_jl_are_the_formulas(data):
    found = {h.statement: h for h in hypotheses(data, Request())}
    s, unit = data.trace / data.op_norm, data.kappa / data.op_norm
    printed = found["kpotufe2020, Theorem 1 (printed)"]
    assert (
        printed.needed == math.ceil(6272 * unit * s**5 * math.log(5 / 0.05))
        and not printed.holds
    )
    corrected = found["kpotufe2020, Theorem 1 (corrected: Theorem B)"]
    assert corrected.needed == math.ceil(
        6272 * unit * s * max(1, math.sqrt(s) / 4) * math.log(3 / 0.05)
    )
    words = {
        name: getattr(data, name) for name in ("kappa", "op_norm", "trace", "trace3")
    }
    for rows in (corrected.needed, corrected.needed - 1):
        bound = sketching.inner_products(
            **words, n=rows, d=10**6, tau=math.log(3 / 0.05)
        )
        assert bound.valid == (rows == corrected.needed)
    lemma = found["kpotufe2020, Lemma B.2"]
    tau = math.log(2 / 0.05)
    assert (
        sketching.covariance_deviation(
            kappa=1.0, trace=data.trace, n=lemma.needed, tau=tau
        ).valid
        and lemma.holds
    )
    assert not sketching.covariance_deviation(
        kappa=1.0, trace=data.trace, n=lemma.needed - 1, tau=tau
    ).valid
    assert found["kpotufe2020, Assumption 1"].holds is False
    double = dataclasses.replace(data, kappa=2.0)
    name, needed = "kpotufe2020, Theorem 3", math.ceil(9 * data.trace / 0.1**2)
    for rows in (needed, needed - 1):
        theorem = {
            h.statement: h
            for h in hypotheses(dataclasses.replace(double, rows=rows), Request())
        }[name]
        assert theorem.holds is (rows == needed) and theorem.needed == needed


def test_what_the_data_cannot_tell_is_said_and_all_is_json(data):
    for found in (
        data,
        dataclasses.replace(data, kernel=kernels.Matern32(1.5)),
        measured(np.ones((5, 2), np.float32)),
    ):
        entries = hypotheses(found, Request())
        json.dumps([dataclasses.asdict(h) for h in entries], allow_nan=False)
        json.dumps(
            [dict(found.decay), dict(found.effective_dimension)], allow_nan=False
        )
        names = [h.statement for h in entries]
        assert len(set(names)) == len(names) >= 25
        assert {name.split(",")[0] for name in names} == {
            "kpotufe2020",
            "amini2021",
            "chen2016",
            "ghashami2016",
        }
        noise = [
            h
            for h in entries
            if "amini2021" in h.statement and "Theorem 2" not in h.statement
        ]
        assert all(h.holds is None and "cannot tell" in h.found for h in noise)
    entries = hypotheses(
        dataclasses.replace(data, kernel=kernels.Matern32(1.5)), Request()
    )
    assert not any(
        h.holds
        for h in entries
        if "chen2016" in h.statement and "3.1" not in h.statement
    )
    assert hypotheses(dataclasses.replace(data, op_norm=0.0), Request()) == []


def test_shares_of_pairs_follow_the_bins(data):
    assert share_of_pairs(data) == 1
    near, far = share_of_pairs(data, 0.0, 1.0), share_of_pairs(data, 1.0)
    assert near + far == pytest.approx(1) and 0 < near < 1
    found = {h.statement: h for h in hypotheses(data, Request())}
    assert f"about {near:.2g}" in found["chen2016, Lemma 4.2"].found
    assert f"about {far:.2g}" in found["chen2016, Lemma 2.2"].found
