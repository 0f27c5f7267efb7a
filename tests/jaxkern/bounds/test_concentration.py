"""Bounds of amini2021: exact laws, counterexamples, and Monte Carlo at stated error rates."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats
from support.bound_cases import CONCENTRATION as CASES
from support.bound_cases import GAMMAS, SPHERES, too_often, wrong_edges

from jaxkern.bounds import concentration

LN2 = math.log(2)


DEVIATIONS = [name for name, case in CASES.items() if {"t", "u", "tau"} & set(case.words) and "moment" not in name]


@pytest.mark.parametrize("name", DEVIATIONS)
def test_a_larger_deviation_is_more_probable(name):
    bound, words, *_ = CASES[name]
    word = ({"t", "u", "tau"} & set(words)).pop()
    before, after = (bound(**{**words, word: words[word] * factor}) for factor in (1, 1.3))
    assert after.probability > before.probability
    lower = "lower" in name or "separation" in name
    assert (after.value < before.value) == lower or after.value == before.value
    assert not bound(**{**words, word: -1.0}).valid


@pytest.mark.parametrize("name", [name for name in CASES if f"{name} printed" in CASES])
def test_what_is_called_sharper_is_sharper_and_what_is_corrected_is_not(name):
    """For n >= 6, where Proposition 4 holds as printed."""
    words = CASES[name].words
    ours, printed = (case.bound(**words) for case in (CASES[name], CASES[f"{name} printed"]))
    if "sharper" in ours.source:
        sign = -1 if "separation" in name else 1
        assert sign * ours.value < sign * printed.value or ours.probability > printed.probability
    else:
        assert "corrected" in ours.source or "explicit" in ours.source
        assert ours.value != printed.value


EXACT = dict(gamma2=4.0, vbar2=2.0**-9, num_clusters=2, lipschitz=0, noise=1, op_norm=1, dim=1, num_points=9, t=0)
"""C1 F(g) is 1 / g, without rounding."""


@pytest.mark.parametrize(
    ("name", "words", "hypotheses"),
    [
        ("kmeans_step", dict(GAMMAS, error=0.25), "gamma_tilde2 > 1"),
        ("misclassification", dict(EXACT, gamma_tilde2=2), "gamma_tilde2 >= 1"),
        ("misclassification", dict(EXACT, gamma_tilde2=2, vbar2=0), "gamma_tilde2 > 0"),
        ("misclassification_population", dict(EXACT, gamma_tilde2=3, bound=1, min_share=0.25), "gamma_tilde2 >= 2"),
        (
            "misclassification_population printed",
            dict(EXACT, gamma_tilde2=3, bound=1, min_share=0.25),
            "gamma_tilde2 >= 1",
        ),
        (
            "misclassification_population",
            dict(EXACT, gamma_tilde2=1e9, bound=1, min_share=0.25, t=1, num_points=600),
            "num_points >= 576",
        ),
        ("sphere_moment", dict(u=9, dim=3), "u <= 60"),
        (
            "isotropic_block_variance_upper",
            dict(radius=9, other_radius=1, noise=0, lengthscale=1, dim=10),
            "radius <= 60",
        ),
        ("radial_block_variance", dict(radius=9, other_radius=1, noise=0, lengthscale=1, dim=4), "radius <= 60"),
    ],
)
def test_conditions_hold_up_to_edges_without_rounding(name, words, hypotheses):
    assert wrong_edges(CASES[name].bound, words, hypotheses) == []


def test_without_a_factor_k_means_is_exact_and_the_truncation_sharp():
    names = [name for name in concentration.__all__ if name.startswith(("kmeans_step", "misclassification"))]
    for name in names:
        words, bound = dict(CASES[name].words), getattr(concentration, name)
        factors = {"kmeans_factor": 1.0} | ({"truncation_factor": 5.0} if "operator" in name else {})
        words = {word: value for word, value in words.items() if word not in factors}
        assert bound(**words).value == bound(**words, **factors).value


def test_without_its_constant_property_33_is_that_of_class_lc():
    words = {word: value for word, value in CASES["deviation"].words.items() if word != "c"}
    assert concentration.deviation(**words).probability == concentration.deviation(**words, c=0.5).probability


def test_corollary_1_asks_for_a_separation_that_its_sample_can_show():
    words = CASES["misclassification_population"].words | dict(gamma_tilde2=1e9)
    largest = math.sqrt(math.sqrt(500 * 0.25) * 4 / (48 * 2.5))
    assert wrong_edges(concentration.misclassification_population, words, f"bound <~ {largest}") == []


def test_beyond_their_hypotheses_bounds_are_numbers():
    assert concentration.sphere_moment(u=1e3, dim=2).value == math.exp(600)
    far = SPHERES | dict(radius=1e3)
    assert concentration.isotropic_block_variance_upper(**far).value == 0.0
    assert concentration.radial_block_variance(**far).value == pytest.approx((2.25 / 3.24 / 20) ** 2, rel=1e-12)
    for n in (1, 0.5):
        assert concentration.u_statistic(bound=1, num_points=n, t=1).value == pytest.approx(2e15, rel=1e-12)
    assert concentration.inner_product_lower(mean_norm=3, mean_rank=9, num_points=9.25, u=2).value == -6


# ------------------------------------------------------------------------------ Theorem A: kernels that are Lipschitz


def gaussian_gram(X, tau=1.0):
    return np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / (2 * tau**2))


def distance_gram(X):
    return np.sqrt(np.sum((X[:, None] - X[None]) ** 2, axis=2))


def test_the_printed_lipschitz_constant_of_the_gaussian_kernel_is_exceeded():
    tau, h = 1.7, 1e-6
    slope = (math.exp(-((tau - h) ** 2) / (2 * tau**2)) - math.exp(-((tau + h) ** 2) / (2 * tau**2))) / (2 * h)
    assert slope > concentration.gaussian_lipschitz(lengthscale=tau, as_printed=True).value * 1.16
    r = np.linspace(0, 10, 100_001)
    steepest = np.max(np.abs(np.diff(np.exp(-(r**2) / (2 * tau**2))))) / 1e-4
    value = concentration.gaussian_lipschitz(lengthscale=tau).value
    assert 0.999 * value < steepest <= value * (1 + 1e-9)


def test_lemma_1_holds_and_both_constants_are_attained(rng):
    n = 9
    for _ in range(50):
        X, Y = (rng.standard_normal((n, 2)) for _ in range(2))
        words = dict(lipschitz=1.0, num_points=n, displacement=np.linalg.norm(X - Y))
        moved = np.linalg.norm(distance_gram(X) - distance_gram(Y))
        assert moved <= concentration.gram_displacement_distance(**words).value
        sums = (X[:, None] + X[None] - Y[:, None] - Y[None])[..., 0]  # K(x, y) = x_1 + y_1
        assert np.linalg.norm(sums) <= concentration.gram_displacement(**words).value
    words = dict(lipschitz=1.0, num_points=n, displacement=math.sqrt(n))  # every x moves by one
    assert np.linalg.norm(np.full((n, n), 2.0)) == pytest.approx(concentration.gram_displacement(**words).value)
    # Points 0 and 1, two of each; the former move by -1/2, the latter by 1/2.
    X = np.array([0.0, 0.0, 1.0, 1.0])[:, None]
    moved = np.linalg.norm(distance_gram(X) - distance_gram(2 * X - 0.5))
    words = dict(lipschitz=1.0, num_points=4, displacement=1.0)
    assert moved == pytest.approx(concentration.gram_displacement_distance(**words).value)


def norm_of_sum(w):
    """Return |w 1' + 1 w'|, and its Frobenius norm, for rows w."""
    n, size, total = w.shape[1], np.linalg.norm(w, axis=1), np.sum(w, axis=1)
    return math.sqrt(n) * size + np.abs(total), np.sqrt(2 * n * size**2 + 2 * total**2)


def test_theorem_1_for_the_sum_of_two_numbers_is_exact_in_the_mean_and_holds_as_often_as_it_says(rng):
    for n, trials in ((1, 40_000), (12, 40_000), (200, 5_000)):
        operator, frobenius = norm_of_sum(rng.standard_normal((trials, n)))
        words = dict(lipschitz=1.0, omega=1.0, scale=1.0, num_points=n)
        mean = concentration.frobenius_mean_lc(**words).value ** 2
        assert mean == pytest.approx(2 * n * n + 2 * n)
        squares = frobenius**2
        assert abs(np.mean(squares) - mean) < 5 * np.std(squares) / math.sqrt(trials)
        assert np.all(operator <= frobenius * (1 + 1e-12))
        for t in (0.5, 1.5, 2.5):
            bound = concentration.lipschitz_kernel(**words, t=t)
            assert not too_often(int(np.sum(frobenius > bound.value)), trials, 1 - bound.probability)
        w = rng.uniform(-math.sqrt(3), math.sqrt(3), (trials, n))  # case (b) of LC, density 1 / (2 sqrt 3)
        bound = concentration.lipschitz_kernel(**dict(words, omega=2 * math.sqrt(3) / math.sqrt(2 * math.pi)), t=1.0)
        assert not too_often(int(np.sum(norm_of_sum(w)[1] > bound.value)), trials, 1 - bound.probability)
        assert (
            concentration.lipschitz_kernel(**words, t=2.0).value
            < concentration.lipschitz_kernel(**words, t=2.0, as_printed=True).value
        )


def test_theorem_1_fails_as_printed_for_a_support_with_a_gap():
    """W is uniform near -1 and 1: density 1 / (4 e). Then |w|^2 >= n (1 - e)^2 whatever is drawn, and K = x + y."""
    n = 100
    for e in (1e-2, 1e-3, 1e-4):
        a = math.sqrt(1 - e**2 / 3)
        words = dict(lipschitz=1.0, omega=4 * e, scale=1.0, num_points=n, t=3.0)
        least = n * (a - e)
        assert least > concentration.lipschitz_kernel(**words, as_printed=True).value
        assert concentration.lipschitz_kernel(**words, as_printed=True).probability > 0.98
        ratio = least / concentration.lipschitz_kernel(**words, as_printed=True).value
        assert ratio * e == pytest.approx(100 / (8 * (100 * math.sqrt(2) + 30)), rel=0.03)


def three_scales(rng, n, d):
    """Return centres in three groups, far apart and close, and the noise of each point."""
    centres = rng.standard_normal((n, d)) * np.repeat([0.0, 0.3, 3.0], n // 3)[:, None]
    return centres, np.repeat([0.2, 0.5, 1.0], n // 3)


@pytest.mark.parametrize("kernel", ["distance", "gaussian"])
def test_distance_kernels_of_points_with_unequal_noise_stay_within_the_bound(kernel, rng):
    n, d, trials = 12, 2, 3_000
    centres, noise = three_scales(rng, n, d)
    X = centres + noise[:, None] * rng.standard_normal((trials, n, d))
    differences = np.sum((X[:, :, None] - X[:, None]) ** 2, axis=3)
    if kernel == "distance":
        K, L = np.sqrt(differences), 1.0
        total = None
    else:
        K, L = np.exp(-differences / 2), concentration.gaussian_lipschitz(lengthscale=1.0).value
        squared = np.sum((centres[:, None] - centres[None]) ** 2, axis=2)
        variance = np.array(
            [
                [
                    concentration.gaussian_pair_variance(
                        squared_distance=squared[i, j],
                        noise_variance=noise[i] ** 2 + noise[j] ** 2,
                        lengthscale=1.0,
                        dim=d,
                    ).value
                    for j in range(n)
                ]
                for i in range(n)
            ]
        )
        np.fill_diagonal(variance, 0)
        total = variance.sum()
    mean = np.mean(K, axis=0)
    errors = np.sqrt(np.sum((K - mean) ** 2, axis=(1, 2)))  # E K to a relative 1 / sqrt(3000)
    words = dict(lipschitz=L, omega=1.0, scale=noise.max(), num_points=n, mean_scale=math.sqrt(np.mean(noise**2)))
    slack = 0.02
    for t in (0.3, 1.0, 2.0):
        bound = concentration.distance_kernel(**words, t=t)
        failures = int(np.sum(errors > bound.value + slack))
        assert not too_often(failures, trials, 1 - bound.probability)
        if total is not None:
            known = {key: value for key, value in words.items() if key != "mean_scale"}
            sharper = concentration.distance_kernel_from_variance(**known, total_variance=total, t=t)
            assert sharper.value < bound.value
            assert not too_often(int(np.sum(errors > sharper.value + slack)), trials, 1 - sharper.probability)
    if total is not None:
        spread = np.std(errors**2) / math.sqrt(trials)
        assert abs(np.mean(errors**2) - total) < 5 * spread + 0.01 * total and spread < 0.05 * total
    at_rest = concentration.distance_kernel(**words, t=0.0).value
    assert np.mean(errors**2) <= at_rest**2 * (1 + 5 * np.std(errors**2) / math.sqrt(trials) / at_rest**2)


def test_the_variance_of_a_gaussian_kernel_is_that_of_quadrature():
    x, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    for v, m in ((0.3, (0.0, 0.0)), (1.2, (0.7, -1.1))):
        values = [np.exp(-((a + math.sqrt(v) * x) ** 2) / (2 * 1.4**2)) for a in m]
        first = math.prod(weights @ f for f in values)
        second = math.prod(weights @ f**2 for f in values)
        words = dict(squared_distance=m[0] ** 2 + m[1] ** 2, noise_variance=v, lengthscale=1.4, dim=2)
        found = concentration.gaussian_pair_variance(**words).value
        assert found == pytest.approx(second - first**2, rel=1e-10)
        L = concentration.gaussian_lipschitz(lengthscale=1.4).value
        assert found <= concentration.pair_variance_lc(lipschitz=L, omega=1, scale=math.sqrt(v / 2)).value
    tiny = concentration.gaussian_pair_variance(squared_distance=0, noise_variance=1e-7, lengthscale=1, dim=1)
    assert tiny.value == pytest.approx(0.5e-14, rel=1e-5)


ATOMS = np.array([0.62, 0.90, 1.15, 1.42, 1.72])
MASSES = np.array([28, 25, 22, 15, 10]) / 200
ATOMS, MASSES = np.r_[-ATOMS[::-1], ATOMS], np.r_[MASSES[::-1], MASSES]
"""A symmetric law on ten points with property (33) for c = 1, by the test that follows."""


def test_lemma_2_and_proposition_4_fail_as_printed_for_a_law_on_ten_points():
    """Property (33) with c is P(A) <= exp(-c (E d(W, A))^2) for every set A: here 1023 sets."""
    sets = (np.arange(1, 2**10)[:, None] >> np.arange(10)) & 1
    gaps = np.abs(ATOMS[:, None] - ATOMS[None])
    away = np.min(np.where(sets[:, None, :] == 1, gaps[None], np.inf), axis=2) @ MASSES
    assert np.all(sets @ MASSES <= np.exp(-(away**2)) * (1 + 1e-12))
    words = dict(lipschitz=1.0, omega=1.0, scale=1.0, c=1.0)
    variance = 4 * MASSES @ ATOMS**2  # of K(W, W), K = x + y
    assert abs(MASSES @ ATOMS) < 1e-15
    assert variance > 1.19 * concentration.diagonal_variance(**words, as_printed=True).value
    assert variance <= concentration.diagonal_variance(**words).value
    mean = 2 * MASSES @ np.abs(ATOMS)  # E |K - E K|_F for n = 1
    assert mean > 1.03 * concentration.frobenius_mean(**words, num_points=1, as_printed=True).value
    assert mean <= concentration.frobenius_mean(**words, num_points=1).value
    square = concentration.frobenius_mean_square(**words, num_points=1, as_printed=True)
    assert variance > square.value
    six, five = (
        concentration.frobenius_mean(**words, num_points=n).value
        <= concentration.frobenius_mean(**words, num_points=n, as_printed=True).value
        for n in (6, 5)
    )
    assert six and not five


def test_proposition_1_holds_for_its_exact_law_and_the_norm_is_of_order_n_not_of_order_root_n():
    """X is -2, 0 or 2 with 1/4, 1/2, 1/4 and scale = L = 1: |K - E K| = max(count - 1/2, 1/2), count ~ Bin(n, 1/2)."""
    for n in (8, 16, 32, 64):
        count = np.arange(n + 1)
        norm = np.maximum(count - 0.5, 0.5)
        law = stats.binom.pmf(count, n, 0.5)
        bound = concentration.lower_limit(lipschitz=1.0, scale=1.0, num_points=n)
        assert law @ (norm > bound.value) >= bound.probability
        assert law @ norm / math.sqrt(n) > 0.4 * math.sqrt(n)  # what the text after Proposition 3 says is bounded


# --------------------------------------------------------------------------------- Theorem B: the inner product kernel


def test_theorem_2_fails_as_printed_for_random_signs(rng):
    """The psi-2 norm of a sign is 1 / sqrt(log 2); the ratio tends to 3 log(2) / 2 = 1.04 at n = dim."""
    n = 700
    words = dict(kappa=1 / math.sqrt(LN2), scale=1, mean_norm=0, dim=n, num_points=n, u=0, c1=1, c2=1)
    for _ in range(3):
        W = rng.choice([-1.0, 1.0], (n, n))
        norm = np.max(np.abs(np.linalg.eigvalsh(W.T @ W - n * np.eye(n))))
        assert 1 < norm / concentration.inner_product_kernel(**words, as_printed=True).value < 1.5 * LN2
        assert norm < concentration.inner_product_kernel(**words).value
    assert concentration.inner_product_kernel(**words, as_printed=True).probability > 0.99


def test_inner_products_of_gaussian_points_stay_within_the_bounds(rng):
    n, d, trials, s = 8, 5, 3_000, 0.7
    M = rng.standard_normal((d, 2)) @ rng.standard_normal((2, n))
    norm = np.linalg.norm(M, 2)
    X = M + s * rng.standard_normal((trials, d, n))
    K = np.swapaxes(X, 1, 2) @ X
    errors = np.max(np.abs(np.linalg.eigvalsh(K - d * s**2 * np.eye(n) - M.T @ M)), axis=1)
    for u in (1.2, 1.6, 2.5):
        bound = concentration.inner_product_gaussian(scale=s, mean_norm=norm, mean_rank=2, dim=d, num_points=n, u=u)
        assert not too_often(int(np.sum(errors > bound.value)), trials, 1 - bound.probability)
    assert np.quantile(errors, 0.95) > 0.3 * bound.value  # informative
    sd = rng.uniform(0.2, 0.7, (d, n))  # any covariances, here diagonal ones
    X = M + sd * rng.standard_normal((trials, d, n))
    K = np.swapaxes(X, 1, 2) @ X
    centred = K - np.diag(np.sum(sd**2, axis=0)) - M.T @ M
    errors = np.max(np.abs(np.linalg.eigvalsh(centred)), axis=1)
    words = dict(scale=sd.max(), frobenius=np.sqrt(np.sum(sd**4, axis=0)).max(), mean_norm=norm)
    bound = concentration.inner_product_gaussian_any(**words, num_points=n, tau=1.0)
    assert not too_often(int(np.sum(errors > bound.value)), trials, 1 - bound.probability)
    z = rng.standard_normal(n)
    z /= np.linalg.norm(z)
    forms = np.abs(np.einsum("i,tij,j->t", z, centred, z))
    for tau in (1.0, 3.0):
        bound = concentration.quadratic_form_gaussian(**words, tau=tau)
        assert not too_often(int(np.sum(forms > bound.value)), trials, 1 - bound.probability)


def test_the_chaos_of_gaussian_points_has_variance_2v_and_the_stated_tails(rng):
    n, d, trials = 6, 3, 40_000
    A, M = rng.standard_normal((n, n)), rng.standard_normal((d, n))
    S = (A + A.T) / 2
    X = M + rng.standard_normal((trials, d, n))
    Z = np.einsum("tki,ij,tkj->t", X, A, X, optimize=True)
    Z = Z - (d * np.trace(A) + np.sum(A * (M.T @ M)))
    words = dict(scale=1.0, frobenius=np.linalg.norm(S), op_norm=np.linalg.norm(S, 2), dim=d)
    words["mean_frobenius"] = np.linalg.norm(M @ S)
    v = d * words["frobenius"] ** 2 + 2 * words["mean_frobenius"] ** 2
    assert np.mean(Z**2) == pytest.approx(2 * v, abs=5 * np.std(Z**2) / math.sqrt(trials))
    for tau in (0.8, 2.0, 5.0):
        bound = concentration.hanson_wright_gaussian(**words, tau=tau)
        assert not too_often(int(np.sum(np.abs(Z) > bound.value)), trials, 1 - bound.probability)


def test_the_limit_in_section_2_2_is_half_of_what_is_printed_for_means_of_rank_one(rng):
    n, d, trials = 2_000, 3, 200
    b = np.full(n, 1 / math.sqrt(n))  # M = e b', e a unit vector
    y = rng.standard_normal((trials, n))  # W'e
    limit = np.linalg.norm(y, axis=1) + np.abs(y @ b)  # |b y' + y b'|
    assert np.all(limit / (2 * np.linalg.norm(y, axis=1)) < 0.6)
    W, M = rng.standard_normal((d, 40)), np.outer(np.eye(d)[0], np.full(40, 1 / math.sqrt(40)))
    small = 1e-5
    X = M / small + small * W
    exact = np.linalg.norm(X.T @ X - M.T @ M / small**2, 2)
    assert exact == pytest.approx(np.linalg.norm(M.T @ W + W.T @ M, 2), rel=1e-4)
    assert np.all(limit < math.sqrt(2 * n))  # the printed lower bound
    bound = concentration.inner_product_lower(mean_norm=1, mean_rank=1, num_points=n, u=2.0)
    assert not too_often(int(np.sum(limit < bound.value)), trials, 1 - bound.probability)
    k = np.arange(1, 60)
    means = math.sqrt(2) * np.exp(special.gammaln((k + 1) / 2) - special.gammaln(k / 2))
    assert np.all(means >= np.sqrt(k - 0.5))


def test_lemma_5_is_chernoff_for_a_centred_exponential():
    """log E exp(s (X - 1)) = -s - log(1 - s) <= s^2 v^2 / 2 for |s| <= 1/2, with v^2 = 8 (log(2) - 1/2)."""
    v = math.sqrt(8 * (LN2 - 0.5))
    s = np.linspace(-0.5, 0.5, 1001)
    assert np.all(-s - np.log1p(-s) <= (s * v) ** 2 / 2 + 1e-12)
    for t in (0.5, 1.0, 2.0, 6.0):
        exact = math.exp(-1 - t) + max(0.0, 1 - math.exp(t - 1))
        bound = concentration.sub_exponential(t=t, v=v, alpha=2.0)
        printed = concentration.sub_exponential(t=t, v=v, alpha=2.0, as_printed=True)
        assert exact <= 1 - bound.probability <= (1 - printed.probability) * (1 + 1e-12)


# ------------------------------------------------------------------------------- Theorem C: blocks and clusters


def literal_parameters(EK, z, R, off_diagonal):
    n = len(z)
    psi, v2, vbar2 = np.zeros((R, R)), np.zeros((R, R)), 0.0
    for k, m in itertools.product(range(R), repeat=2):
        entries = [
            EK[i, j] for i in range(n) for j in range(n) if (z[i], z[j]) == (k, m) and (i != j or not off_diagonal)
        ]
        if not entries:
            entries = [EK[i, i] for i in range(n) if z[i] == k]
            psi[k, m], v2[k, m] = np.mean(entries), 0
            continue
        psi[k, m], v2[k, m] = np.mean(entries), np.var(entries)
        vbar2 += len(entries) * v2[k, m] / n**2
    shares = np.bincount(z, minlength=R) / n
    D = np.array(
        [[sum(shares[r] * (psi[k, r] - psi[m, r]) ** 2 for r in range(R)) for m in range(R)] for k in range(R)]
    )
    pairs = [(k, m) for k in range(R) for m in range(R) if k != m]
    gap = math.sqrt(vbar2)
    if off_diagonal:
        gap += max(abs(EK[i, i] - psi[z[i], z[i]]) for i in range(n)) / n
    return dict(
        psi=psi,
        v2=v2,
        shares=shares,
        vbar2=vbar2,
        separations=D,
        gamma2=min(D[k, m] for k, m in pairs),
        gamma_tilde2=min(shares[m] * D[k, m] for k, m in pairs),
        mean_gap=gap,
    )


@pytest.mark.parametrize("off_diagonal", [False, True])
def test_block_parameters_are_those_of_the_literal_sums(off_diagonal, dtype, rng):
    EK = rng.standard_normal((9, 9))
    EK = EK + EK.T
    z = np.array([0, 1, 0, 2, 1, 1, 0, 1, 1])  # cluster 2 has a single point
    found = concentration.block_parameters(
        jnp.asarray(EK, dtype), jnp.asarray(z), num_clusters=3, off_diagonal=off_diagonal
    )
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    for name, value in literal_parameters(EK, z, 3, off_diagonal).items():
        assert getattr(found, name).dtype == dtype
        np.testing.assert_allclose(getattr(found, name), value, rtol=tolerance, atol=tolerance, err_msg=name)
    B = np.asarray(found.psi)[z][:, z]
    assert np.linalg.norm(EK - B, 2) / 9 <= float(found.mean_gap) * (1 + tolerance)
    if not off_diagonal:
        again = concentration.population_parameters(found.psi, found.v2, found.shares)
        for name in ("vbar2", "gamma2", "gamma_tilde2", "mean_gap"):
            np.testing.assert_allclose(getattr(again, name), getattr(found, name), rtol=10 * tolerance)


def test_clusters_of_one_point_have_parameters_with_gradients(x64):
    """Each has no pair of its own and one with each other point; the variances are exactly zero."""
    EK = jnp.array([[1.0, 0.5, 0.25], [0.5, 2.0, 0.75], [0.25, 0.75, 3.0]])

    def parts(matrix):
        found = concentration.block_parameters(matrix, jnp.arange(3), num_clusters=3, off_diagonal=True)
        return found, jnp.sum(found.psi) + found.vbar2 + found.mean_gap

    slope, found = jax.grad(lambda matrix: parts(matrix)[::-1], has_aux=True)(EK)
    assert np.array_equal(found.psi, EK)
    assert float(found.vbar2) == float(found.mean_gap) == 0 and not np.any(found.v2)
    np.testing.assert_array_equal(slope, np.ones((3, 3)))


def test_block_parameters_refuse_what_they_cannot_use():
    EK, z = jnp.eye(4), jnp.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match="num_clusters"):
        concentration.block_parameters(EK, z, num_clusters=1)
    with pytest.raises(ValueError, match="labels"):
        concentration.block_parameters(EK, z[:3], num_clusters=2)
    with pytest.raises(ValueError, match="off_diagonal"):
        concentration.block_parameters(EK, z, num_clusters=2, off_diagonal=1)
    with pytest.raises(ValueError, match="v2 must have the shape of psi"):
        concentration.population_parameters(jnp.eye(2), jnp.eye(3), jnp.ones(2) / 2)
    empty = concentration.block_parameters(EK, z, num_clusters=3)
    assert float(empty.gamma_tilde2) == 0


def truncated(A, R):
    values, vectors = np.linalg.eigh(A)
    top = np.argsort(-np.abs(values))[:R]
    return (vectors[:, top] * values[top]) @ vectors[:, top].T


def test_truncation_loses_at_most_root_5_and_that_is_attained(rng):
    for R in (1, 2):
        for _ in range(100):
            V = rng.standard_normal((6, R))
            B, noise = V @ np.diag(rng.choice([-1, 1], R)) @ V.T, rng.standard_normal((6, 6))
            A = B + noise + noise.T
            bound = concentration.truncation(spectral=np.linalg.norm(A - B, 2), num_clusters=R)
            assert np.linalg.norm(truncated(A, R) - B) <= bound.value
    A, B = np.diag([1 + 1e-6, 1.0]), np.diag([0.0, 2.0])
    bound = concentration.truncation(spectral=np.linalg.norm(A - B, 2), num_clusters=1)
    assert np.linalg.norm(truncated(A, 1) - B) > bound.value * (1 - 1e-5)


def best_split(rows):
    """Return the labels of exact 2-means, by trying every split."""
    n = len(rows)
    costs = []
    for bits in range(2 ** (n - 1)):
        labels = (bits >> np.arange(n)) & 1
        groups = [rows[labels == k] for k in (0, 1)]
        costs.append((sum(np.sum((g - g.mean(axis=0)) ** 2) for g in groups if len(g)), bits))
    return (min(costs)[1] >> np.arange(n)) & 1


def test_exact_k_means_on_perturbed_rows_stays_within_the_k_means_step(rng):
    n, z = 8, np.array([0, 0, 0, 1, 1, 1, 1, 1])
    psi = np.array([[1.0, 0.2], [0.2, 0.8]])
    shares = np.bincount(z) / n
    D = np.sum(shares * (psi[0] - psi[1]) ** 2)
    used = wrong = 0
    for size in np.linspace(0.02, 0.16, 30):
        noise = rng.standard_normal((n, n)) / n
        error = size * noise / np.linalg.norm(noise)
        if size > 0.1:  # all of it on one row, which then may go astray
            error = np.zeros((n, n))
            error[4] = size * (psi[0] - psi[1])[z] / np.linalg.norm((psi[0] - psi[1])[z])
        labels = best_split(psi[z][:, z] / n + error)
        rate = min(np.mean(labels != z), np.mean(labels == z))
        bound = concentration.kmeans_step(error=size, gamma2=D, gamma_tilde2=shares.min() * D)
        if bound.valid:
            used += 1
            assert rate <= bound.value
        wrong += rate > 0
    assert used > 3 and wrong > 0


def directions(rng, n, d):
    """Return the inner products of n independent uniform directions of R^d, by Bartlett's decomposition."""
    T = np.tril(rng.standard_normal((n, n)), -1)
    T[np.diag_indices(n)] = np.sqrt(rng.chisquare(d - np.arange(n)))
    T /= np.linalg.norm(T, axis=1)[:, None]
    return T @ T.T


def mean_distance(squared, variance, d):
    """Return E |m + N(0, variance I)| to four terms in 1 / d."""
    mean, second = squared + variance * d, 2 * variance**2 * d + 4 * variance * squared
    third = 8 * variance**3 * d + 24 * variance**2 * squared
    return np.sqrt(mean) * (1 - second / (8 * mean**2) + third / (16 * mean**3) - 15 * second**2 / (128 * mean**4))


@pytest.mark.parametrize(("n", "d", "printed", "eight"), [(500, 40_000, 29.8, 0.28), (1_000, 20_000, 15.2, 0.25)])
def test_theorem_3_says_nothing_in_the_model_of_figure_3_and_theorem_c_does(n, d, printed, eight, rng, x64):
    """Pairwise distances on nested spheres of radii 1, 5, 10 with noise 1.5, clusters of equal size, t = 2."""
    z = np.arange(n) % 3
    r = np.array([1.0, 5.0, 10.0])[z]
    squared = r[:, None] ** 2 + r[None] ** 2 - 2 * np.outer(r, r) * directions(rng, n, d)
    EK = mean_distance(np.maximum(squared, 0), 2 * 1.5**2 / d, d)
    np.fill_diagonal(EK, 0)
    model = dict(num_clusters=3, lipschitz=1.0, num_points=n, t=2.0)
    found = concentration.block_parameters(jnp.asarray(EK), jnp.asarray(z), num_clusters=3)
    words = dict(gamma2=float(found.gamma2), gamma_tilde2=float(found.gamma_tilde2))
    paper = concentration.misclassification(
        **model, **words, vbar2=float(found.vbar2), noise=1.5, op_norm=1.0, dim=d, as_printed=True
    )
    assert paper.value == pytest.approx(printed, rel=0.02) and not paper.valid
    # The diagonal alone is already too much, in every dimension.
    gaps = (np.asarray(found.psi).diagonal() ** 2) @ np.asarray(found.shares) / n
    assert 16 * 16 * 3 / words["gamma2"] * gaps > 10
    found = concentration.block_parameters(jnp.asarray(EK), jnp.asarray(z), num_clusters=3, off_diagonal=True)
    words = dict(gamma2=float(found.gamma2), gamma_tilde2=float(found.gamma_tilde2))
    words |= dict(omega=1.0, scale=1.5 / math.sqrt(d))
    theorem = partial(concentration.misclassification_operator_distance, **model, **words)
    ours = theorem(mean_gap=float(found.mean_gap), truncation_factor=8.0)
    assert ours.value == pytest.approx(eight, abs=0.005) and ours.valid
    sharper = theorem(mean_gap=float(found.mean_gap))
    assert sharper.value == pytest.approx(ours.value * 5 / 8)
    gap = np.linalg.norm(EK - np.asarray(found.psi)[z][:, z], 2) / n
    assert theorem(mean_gap=gap).value < 0.6 * sharper.value


def test_point_masses_have_block_variances_of_order_1_over_n(x64):
    """Section 3.4 says that they are zero; two centres at distance 10, noise 1, lengthscale 2, dimension 2000."""
    d, s2 = 2_000, 1 + 2 / (2_000 * 4)
    for n, expected in ((1_000, 4.9e-5), (100, 4.8e-4)):
        z = np.arange(n) % 2
        EK = s2 ** (-d / 2) * np.exp(-np.where(z[:, None] == z[None], 0, 100) / (2 * s2 * 4))
        np.fill_diagonal(EK, 1)  # E K(X_i, X_i) = K(x, x) = 1
        found = concentration.block_parameters(jnp.asarray(EK), jnp.asarray(z), num_clusters=2)
        assert float(found.vbar2) == pytest.approx(expected, rel=0.02)
        assert float(found.vbar2) == pytest.approx((1 - s2 ** (-d / 2)) ** 2 / n * (1 - 2 / n), rel=1e-6)
        off = concentration.block_parameters(jnp.asarray(EK), jnp.asarray(z), num_clusters=2, off_diagonal=True)
        assert float(off.vbar2) < 1e-20 and float(off.mean_gap) == pytest.approx((1 - s2 ** (-d / 2)) / n)


# --------------------------------------------------------------------- Theorem D: empirical and population parameters


def test_statistics_of_bounded_kernels_stay_within_hoeffdings_bounds(rng):
    """h(y, z) = y z for signs: U and V are known functions of two sums."""
    n, m, trials = 20, 31, 100_000
    total = 2 * rng.binomial(n, 0.5, trials) - n
    U = (total**2 - n) / (n * (n - 1))
    V = total * (2 * rng.binomial(m, 0.5, trials) - m) / (n * m)
    for t in (0.9, 1.5):
        first = concentration.u_statistic(bound=1.0, num_points=n, t=t)
        assert not too_often(int(np.sum(np.abs(U) > first.value)), trials, 1 - first.probability)
        second = concentration.two_sample_statistic(bound=1.0, num_points=n, num_others=m, t=t)
        assert not too_often(int(np.sum(np.abs(V) > second.value)), trials, 1 - second.probability)


def test_block_means_are_biased_by_the_diagonal_and_within_proposition_2_all_the_same(rng):
    """exp(x a) on a sphere: K(u, u) = exp(x), and the mean over pairs is psi(x)."""
    n, d, x, trials = 20, 5, 1.0, 2_000
    U = rng.standard_normal((trials, n, d))
    U /= np.linalg.norm(U, axis=2, keepdims=True)
    K = np.exp(x * (U @ np.swapaxes(U, 1, 2)))
    psi, psi_double = (special.hyp0f1(d / 2, (k * x) ** 2 / 4) for k in (1, 2))
    means, squares = np.mean(K, axis=(1, 2)), np.mean(K**2, axis=(1, 2))
    error = np.std(means) / math.sqrt(trials)
    assert np.mean(means) - psi == pytest.approx((math.exp(x) - psi) / n, abs=5 * error)
    assert np.mean(means) - psi > 50 * error
    b, t = math.exp(x), 1.5
    words = dict(bound=b, smallest=n, num_clusters=1, t=t)
    variances = squares - means**2 - (psi_double - psi**2)
    for as_printed in (False, True):
        first = concentration.block_means(**words, as_printed=as_printed)
        second = concentration.block_variances(**words, as_printed=as_printed)
        failures = int(np.sum((np.abs(means - psi) > first.value) | (np.abs(variances) > second.value)))
        assert not too_often(failures, trials, 1 - first.probability)


def test_the_display_in_the_proof_of_proposition_2_forgets_the_diagonal():
    """h(y, z) is 1 for y = z and -1 otherwise, over many equally likely values; the block has two points."""
    values, t = 10_000, 0.99
    mean = -1 + 2 / values  # Psi*
    found = (2 * 1 + 2 * -1) / 4  # Psi for two different values
    assert abs(found - mean) > t * (2 - 1) / 2 * math.sqrt(8 / 2)
    assert 1 - 1 / values > 2 * math.exp(-(t**2))  # how often it happens, and how often it may
    assert abs(found - mean) <= concentration.block_means(bound=1, smallest=2, num_clusters=1, t=t).value


def test_the_constant_of_corollary_1_is_512_times_too_small():
    """Take the worst parameters that Proposition 2 allows, and compare Theorem 3 with Corollary 1."""
    b, t, share, n = 1.0, 2.5, 0.5, 1e8
    gamma2, vbar2 = 0.2, 1e-7
    model = dict(num_clusters=2, lipschitz=1.0, noise=1.0, op_norm=1.0, dim=1e9, num_points=n, t=t)
    lost = t * b**2 / math.sqrt(share * n)
    theorem = concentration.misclassification(
        **model, gamma2=gamma2 - 24 * lost, gamma_tilde2=share * (gamma2 - 24 * lost), vbar2=vbar2 + 9 * lost
    )
    words = dict(model, gamma2=gamma2, gamma_tilde2=share * gamma2, vbar2=vbar2, bound=b, min_share=share)
    corrected = concentration.misclassification_population(**words)
    printed = concentration.misclassification_population(**words, as_printed=True)
    assert corrected.value >= theorem.value > 100 * printed.value
    assert gamma2 - 24 * lost >= gamma2 / 2
    F = 2 * concentration.misclassification(**words_of(words)).value
    Fp = 2 * concentration.misclassification(**words_of(words), as_printed=True).value
    assert (corrected.value - F) / (printed.value - Fp) == pytest.approx(512)


def words_of(words):
    return {key: value for key, value in words.items() if key not in ("bound", "min_share")}


# ------------------------------------------------------------------------------------- Theorem E: nested spheres


def psi_of(u, d):
    return special.hyp0f1(d / 2, u**2 / 4)


def cosine_law(d):
    """Return nodes and weights of the cosine of two uniform directions of R^d, a shifted Beta law."""
    x, weights = special.roots_gegenbauer(200, (d - 2) / 2) if d > 2 else special.roots_chebyt(200)
    return x, weights / weights.sum()


@pytest.mark.parametrize("d", [2, 3, 10, 200])
def test_moments_of_the_cosine_are_those_of_variance_1_over_d(d):
    """Lemma 6 has variance 1 / (2 d), and psi about exp(u^2 / 4 d)."""
    a, weights = cosine_law(d)
    assert weights @ a**2 == pytest.approx(1 / d, rel=1e-9)
    for u in (0.1, 1.0, 5.0):
        assert weights @ np.exp(u * a) == pytest.approx(psi_of(u, d), rel=1e-9)
        assert psi_of(u, d) <= concentration.sphere_moment(u=u, dim=d).value
        if u**2 < 5 * d:
            assert psi_of(u, d) > concentration.sphere_moment(u=u, dim=d, as_printed=True).value
    if d == 200:
        bound, printed = (concentration.sphere_moment(u=10, dim=d, as_printed=flag).value for flag in (False, True))
        assert psi_of(10, d) == pytest.approx(bound, rel=1e-3) and psi_of(10, d) > 1.1 * printed


@pytest.mark.parametrize(("d", "radii"), [(10, (1.0, 1.0)), (50, (1.0, 5.0)), (200, (5.0, 5.0)), (2, (0.5, 0.9))])
def test_variances_on_spheres_are_the_corrected_ones(d, radii):
    noise, tau = 1.5, math.sqrt(3.25)
    a, weights = cosine_law(d)
    s2 = 1 + 2 * noise**2 / (d * tau**2)
    squared = radii[0] ** 2 + radii[1] ** 2 - 2 * a * radii[0] * radii[1]
    f = s2 ** (-d / 2) * np.exp(-squared / (2 * s2 * tau**2))
    mean, variance = weights @ f, weights @ (f - weights @ f) ** 2
    words = dict(radius=radii[0], other_radius=radii[1], noise=noise, lengthscale=tau, dim=d)
    x = radii[0] * radii[1] / (s2 * tau**2)
    psi = dict(psi=psi_of(x, d))
    assert concentration.isotropic_block_mean(**words, **psi).value == pytest.approx(mean, rel=1e-9)
    both = dict(psi, psi_double=psi_of(2 * x, d))
    assert concentration.isotropic_block_variance(**words, **both).value == pytest.approx(variance, rel=1e-6)
    printed = concentration.isotropic_block_variance(**words, **both, as_printed=True).value
    assert printed > 1.2 * variance
    lower = concentration.isotropic_block_variance_lower(**words).value
    upper = concentration.isotropic_block_variance_upper(**words).value
    assert lower * (1 - 1e-9) <= variance <= upper * (1 + 1e-9)
    if (x**2) < 0.02 * d:
        assert upper < 1.1 * lower


def radial_mean(a, r, q, noise, tau, d):
    """Return amini2021, (28), with sign(0) = 1."""
    sign = np.where(a >= 0, 1.0, -1.0)
    first, second = 1 + np.abs(a), 1 - np.abs(a)
    s1, s2 = (1 + noise**2 * x / (tau**2 * d) for x in (first, second))
    exponent = first / (2 * s1) * (r - sign * q) ** 2 + second / (2 * s2) * (r + sign * q) ** 2
    return np.exp(-exponent / (2 * tau**2)) / np.sqrt(s1 * s2)


def test_the_radial_mean_kernel_is_within_the_explicit_gap_which_is_nearly_attained():
    noise, tau = 1.5, math.sqrt(3.25)
    a = np.linspace(-1, 1, 2_001)
    for d in (2, 10, 100):
        worst = 0.0
        gap = concentration.radial_mean_gap(noise=noise, lengthscale=tau, dim=d).value
        for r, q in itertools.product((0.01, 0.5, 1.0, 3.0, 5.0), repeat=2):
            still = np.exp(-(r**2 + q**2 - 2 * a * r * q) / (2 * tau**2))
            worst = max(worst, np.max(np.abs(radial_mean(a, r, q, noise, tau, d) - still)))
        assert 0.7 * gap < worst <= gap
    nodes, weights = cosine_law(20)
    for r, q in ((1.0, 1.0), (1.0, 5.0), (2.0, 3.0)):
        f = radial_mean(nodes, r, q, noise, tau, 20)
        words = dict(radius=r, other_radius=q, noise=noise, lengthscale=tau, dim=20)
        assert weights @ (f - weights @ f) ** 2 <= concentration.radial_block_variance(**words).value


def test_the_radial_mean_kernel_depends_on_the_angle_in_every_dimension():
    """Example 4 says that the dependence mostly goes away."""
    values = [radial_mean(a, 5.0, 5.0, 1.5, math.sqrt(3.25), 1e6) for a in (0.01, 0.9)]
    assert values[1] / values[0] > 900


def test_quadrature_in_the_plane_confirms_the_radial_mean_kernel():
    noise, tau, d, a, r, q = 1.5, 1.8, 4, 0.3, 1.0, 2.0
    u, v = np.array([1.0, 0.0]), np.array([a, math.sqrt(1 - a**2)])

    def integrand(y, x):
        gap = np.sum(((r + noise / math.sqrt(d) * x) * u - (q + noise / math.sqrt(d) * y) * v) ** 2)
        return math.exp(-gap / (2 * tau**2) - (x**2 + y**2) / 2) / (2 * math.pi)

    found, _ = integrate.dblquad(integrand, -8, 8, -8, 8, epsabs=1e-8)
    assert found == pytest.approx(float(radial_mean(a, r, q, noise, tau, d)), rel=1e-6)
