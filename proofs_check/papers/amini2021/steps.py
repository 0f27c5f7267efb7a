"""amini2021: what Section 3 asserts besides its theorems, and the steps of the proofs and appendices."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import kmeans, metrics
from jaxkern.bounds import concentration
from proofs_check.claim import Check, Control, Exact, Form, Identity, Inequality, Law, Setting
from proofs_check.papers import flops
from proofs_check.papers.amini2021 import exact
from proofs_check.papers.amini2021 import trials as t
from proofs_check.papers.amini2021.exact import Pairs
from proofs_check.papers.shared import always

PAPER = "amini2021"

NOISE, TAU = 1.5, math.sqrt(3.25)
"""Of Section 3.5, with alpha = 1."""


def _drawn(key: jax.Array) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def _norm(E: np.ndarray) -> float:
    return float(np.linalg.norm(E, 2))


# ------------------------------------------------------------------------------------------------ Algorithm 1, k-means


def _distances(rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rows[:, None] - rows, axis=2)


def _decomposed(A: np.ndarray, rank: int, *, signed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the `rank` eigenvalues of largest size, or the largest ones where `signed`, and their vectors."""
    values, vectors = np.linalg.eigh(A)
    kept = np.argsort(-(values if signed else np.abs(values)))[:rank]
    return values[kept], vectors[:, kept]


def _symmetric(rng: np.random.Generator, n: int) -> np.ndarray:
    A = rng.standard_normal((n, n))
    return A + A.T


def _isometry() -> Check:
    def residual(power: int) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """Distances between rows of U1 diag(values)^power against those of A^(R) = U1 L1 U1'."""
            values, vectors = _decomposed(_symmetric(_drawn(key), 12), setting.shapes["R"])
            whole = _distances((vectors * values) @ vectors.T)
            return (_distances(vectors * values**power) - whole) / whole.max()

        return Identity(check)

    places = tuple(Setting(f"R={rank}, n=12", shapes={"R": rank}) for rank in (2, 5))
    return Check(
        printed=Form(residual(1), places),
        controls=(Control("without the eigenvalues", residual(0), places, kind="wrong operator"),),
    )


def _seeded_costs(X: np.ndarray, num: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the chances of all sequences of k-means++ seeds, and the cost of each."""
    n = len(X)
    square = np.sum((X[:, None] - X) ** 2, axis=2)
    seeds, chances = np.arange(n)[:, None], np.full(n, 1 / n)
    for _ in range(num - 1):
        nearest = np.min(square[seeds], axis=1)
        nxt = chances[:, None] * nearest / nearest.sum(axis=1, keepdims=True)
        rows, cols = np.indices((len(seeds), n)).reshape(2, -1)
        seeds, chances = np.column_stack([seeds[rows], cols]), nxt.reshape(-1)
        seeds, chances = seeds[chances > 0], chances[chances > 0]
    return chances, np.min(square[seeds], axis=1).sum(axis=1)


def _least_cost(X: np.ndarray, num: int) -> float:
    """Return the least cost over all partitions into at most `num` cells."""
    best = math.inf
    for labels in itertools.product(range(num), repeat=len(X) - 1):
        cells = np.array((0, *labels))
        cost = sum(float(np.sum((X[cells == k] - X[cells == k].mean(axis=0)) ** 2)) for k in set(cells.tolist()))
        best = min(best, cost)
    return best


def _factor() -> Check:
    @functools.cache
    def cases(rank: int) -> list[tuple[np.ndarray, np.ndarray, float]]:
        rng = np.random.default_rng(rank)
        places = [rng.standard_normal((7, 2)) for _ in range(3)]
        places += [np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [30.0], [30.2]]), np.array([[0.0]] * 6 + [[1.0]])]
        places[-1][:6, 0] = np.linspace(0, 1e-3, 6)
        return [(*_seeded_costs(X, rank), _least_cost(X, rank)) for X in places]

    def sides(level: float | None, *, surely: bool = False) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            del key
            rank = setting.shapes["R"]
            right = always(8 * (math.log(rank) + 2) if level is None else level, "k-means++")
            return [
                (float(costs.max() if surely else chances @ costs) / least, right)
                for chances, costs, least in cases(rank)
            ]

        return Inequality(check)

    places = tuple(Setting(f"R={rank}, 7 points", shapes={"R": rank}) for rank in (2, 3))
    return Check(
        corrected=Form(sides(None), places),
        controls=(
            Control("a factor 1.5 in the mean", sides(1.5), places, kind="wrong factor"),
            Control("the same factor surely", sides(None, surely=True), places, kind="hypothesis broken"),
        ),
    )


def _linear_time() -> Check:
    def spent(n: int, rank: int, *, whole: bool) -> float:
        """Multiply-adds of k-means with one step of Lloyd's loop, or of all n^2 distances besides."""

        def run(key: jax.Array, X: jax.Array) -> Any:
            found = kmeans.kmeans(key, X, rank, num_restarts=1, num_candidates=1)
            return (found.labels, X @ X.T) if whole else found.labels

        shape = jax.ShapeDtypeStruct((n, rank), jnp.result_type(float))
        return float(flops.multiply_adds(run, jax.eval_shape(lambda: jax.random.key(0)), shape))

    def sides(*, whole: bool) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            del key
            n, rank = setting.shapes["n"], setting.shapes["R"]
            return [(spent(n, rank, whole=whole) / (n * rank**2), always(8, "amini2021, Section 3.1"))]

        return Inequality(check)

    places = tuple(Setting(f"n={n}, R=D={rank}", shapes={"n": n, "R": rank}) for n in (256, 4096) for rank in (2, 8))
    return Check(
        corrected=Form(sides(whole=False), places),
        controls=(Control("with all n^2 inner products", sides(whole=True), places, kind="wrong cost"),),
    )


# ---------------------------------------------------------------------------------------------- (22), (39), (40), (25)


def _parameters(rng: np.random.Generator, shares: np.ndarray) -> Any:
    psi = _symmetric(rng, len(shares))
    return concentration.population_parameters(t.real(psi), t.real(np.ones_like(psi)), t.real(shares))


def _separations() -> Check:
    def balanced(key: jax.Array, setting: Setting) -> np.ndarray:
        shares = np.asarray(setting.population, np.float64)
        found = _parameters(_drawn(key), shares)
        return np.array([float(found.gamma_tilde2) * len(shares) / float(found.gamma2) - 1])

    def sides(lower: Callable[[np.ndarray], float]) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            rng, shares = _drawn(key), np.asarray(setting.population, np.float64)
            pairs = []
            for _ in range(30):
                found = _parameters(rng, shares)
                ratio = float(found.gamma_tilde2) / float(found.gamma2)
                pairs += [
                    exact.at_least(ratio, always(lower(shares), "amini2021, (22)")),
                    (ratio, always(0.5, "amini2021, (22)")),
                ]
            return pairs

        return Inequality(check)

    alike = (Setting("R=3, equal shares", np.full(3, 1 / 3)),)
    unlike = (Setting("shares .5, .3, .2", np.array([0.5, 0.3, 0.2])), Setting("shares .9, .1", np.array([0.9, 0.1])))
    return Check(
        printed=Form(Identity(balanced), alike),
        corrected=Form(sides(lambda shares: float(shares.min())), unlike),
        controls=(
            Control("unequal shares", Identity(balanced), unlike, kind="hypothesis broken"),
            Control("pi_max for pi_min", sides(lambda shares: float(shares.max())), unlike, kind="wrong operator"),
        ),
    )


def _block_matrix() -> Check:
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2])

    def residual(off_diagonal: bool) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """|E K - K*|_F^2 / n^2 against vbar^2, and n |q_k - q_l|^2 for the rows q of K* / n against D_kl."""
            del setting
            n = len(labels)
            mean = _symmetric(_drawn(key), n)
            found = concentration.block_parameters(
                t.real(mean), jnp.asarray(labels), num_clusters=3, off_diagonal=off_diagonal
            )
            blocks = np.asarray(found.psi, np.float64)[labels][:, labels]
            gap = np.sum((mean - blocks) ** 2) / n**2 / float(found.vbar2) - 1
            first = [0, 4, 7]
            rows = blocks[first] / n
            apart = n * np.sum((rows[:, None] - rows) ** 2, axis=2)
            return np.append((apart - np.asarray(found.separations, np.float64)).ravel() / apart.max(), gap)

        return Identity(check)

    places = (Setting("n=10, three clusters"),)
    return Check(
        printed=Form(residual(False), places),
        controls=(Control("averages off the diagonal", residual(True), places, kind="wrong operator"),),
    )


def _theorem_words(setting: Setting) -> dict[str, Any]:
    n = setting.numbers
    words = {"gamma2": 0.3, "gamma_tilde2": 0.15, "num_clusters": 2, "op_norm": 1.0, "num_points": 400.0, "t": 1.5}
    return {**words, "lipschitz": n["L"], "noise": NOISE, "dim": n["d"], "vbar2": n["vbar2"]}


def _places() -> tuple[Setting, ...]:
    return tuple(
        Setting(f"L={L:.3g}, d={d:g}, vbar2={v:g}", numbers={"L": L, "d": d, "vbar2": v})
        for L, d, v in ((1.0, 10.0, 0.01), (math.exp(-0.5) / TAU, 200.0, 1e-4))
    )


def _error() -> Check:
    def sides(as_printed: bool, factor: float = 1.0) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """2 (w + b) at the bounds of w and b that the proof has, in units of itself, against gamma^2 F / 8 R."""
            del key
            words = _theorem_words(setting)
            n, scale = words["num_points"], words["noise"] / math.sqrt(words["dim"])
            deviation = 2 * words["lipschitz"] * scale * (math.sqrt(2) * n + math.sqrt(2 * n) * words["t"])
            left = 2 * ((deviation / n) ** 2 + words["vbar2"])
            theorem = concentration.misclassification(**words, as_printed=as_printed)
            right = float(theorem.value) / 16 * words["gamma2"] / (8 * words["num_clusters"])
            return [(1.0, always(factor * right / left, "amini2021, (40)"))]

        return Inequality(check)

    places = _places()
    return Check(
        printed=Form(sides(True), places),
        corrected=Form(sides(False), places),
        controls=(Control("nine tenths of it", sides(False, 0.9), places, kind="wrong factor"),),
    )


def _eq25() -> Check:
    def residual(power: int) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """F of Theorem 3 with L of the Gaussian kernel, against (25) with its constant."""
            del key
            words = _theorem_words(setting)
            words["lipschitz"] = float(concentration.gaussian_lipschitz(lengthscale=TAU).value)
            found = float(concentration.misclassification(**words, as_printed=True).value) / 16
            noise = NOISE**2 / TAU**power / words["dim"] * (1 + words["t"] / math.sqrt(words["num_points"])) ** 2
            said = 32 / words["gamma2"] * (4 / math.e * noise + words["vbar2"])
            return np.array([said / found - 1])

        return Identity(check)

    places = _places()
    return Check(
        corrected=Form(residual(2), places),
        controls=(Control("1 / tau for 1 / tau^2", residual(1), places, kind="wrong power"),),
    )


def _noiseless() -> Check:
    n, d = 24, 10**6
    labels = np.arange(n) % 2
    places = (Setting(f"two segments, n={n}, d={d}"),)

    def parameters(noise: float, off_diagonal: bool) -> tuple[float, float]:
        rng = np.random.default_rng(3)
        where = rng.uniform(0, 1, n) + 4 * labels
        s2 = 1 + 2 * noise**2 / (d * TAU**2)
        mean = s2 ** (-d / 2) * np.exp(-((where[:, None] - where) ** 2) / (2 * s2 * TAU**2))
        np.fill_diagonal(mean, 1)
        found = concentration.block_parameters(
            t.real(mean), jnp.asarray(labels), num_clusters=2, off_diagonal=off_diagonal
        )
        return float(found.vbar2), float(found.gamma2)

    def sides(off_diagonal: bool, factor: float = 1.0) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """vbar / gamma with noise over its bound: entries move by 2 sigma^2 / (e d tau^2) at most."""
            del key, setting
            still, moved = parameters(0.0, off_diagonal), parameters(NOISE, off_diagonal)
            step = 2 * NOISE**2 / (math.e * d * TAU**2) * 10  # room for rounding, too
            v, g = (math.sqrt(x) for x in still)
            right = (v + step) / (g - 2 * step)
            return [(math.sqrt(moved[0] / moved[1]) / right, always(factor, "amini2021, after (26)"))]

        return Inequality(check)

    return Check(
        printed=Form(sides(False), places),
        corrected=Form(sides(True), places),
        controls=(Control("half of it", sides(True, 0.5), places, kind="wrong factor"),),
    )


# ------------------------------------------------------------------------------------------------ Sections 3.4 and 3.5


def _squared_distance() -> Check:
    families: dict[str, tuple[Callable[[Any], Any], float]] = {
        "exp(-s / 2)": (lambda s: np.exp(-s / 2), math.exp(-0.5)),
        "1 / (1 + s)": (lambda s: 1 / (1 + s), 3 * math.sqrt(3) / 8),
        "sin(s)": (np.sin, 2.0),
    }

    def sides(factor: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """Quotients in (2) when y moves along x - y: |f(r^2) - f(q^2)| / |r - q|."""
            del key
            f, constant = families[setting.name]
            r = np.linspace(0, 20, 40_001)
            steepest = float(np.max(np.abs(np.diff(f(r**2)) / np.diff(r))))
            return [(steepest / constant, always(factor, "amini2021, Section 3.4"))]

        return Inequality(check)

    places, outside = tuple(map(Setting, ("exp(-s / 2)", "1 / (1 + s)"))), (Setting("sin(s)"),)
    return Check(
        corrected=Form(sides(1.0), places),
        controls=(
            Control("a function with an infinite supremum", sides(1.0), outside, kind="hypothesis broken"),
            Control("99 per cent of L", sides(0.99), places, kind="wrong factor"),
        ),
    )


def _network() -> Check:
    def sides(layers: int) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """Quotients in (2) of (N(x, y) + N(y, x)) / 2, over the product of the norms of `layers` weights."""
            del setting
            rng = _drawn(key)
            pairs = []
            for _ in range(20):
                weights = [rng.standard_normal(shape) for shape in ((8, 6), (8, 8), (1, 8))]
                weights = [3 * A / _norm(A) for A in weights]
                right = 3.0**layers

                def network(x: np.ndarray, y: np.ndarray, weights: Sequence[np.ndarray] = weights) -> float:
                    value = np.concatenate([x, y])
                    for A in weights[:-1]:
                        value = np.maximum(A @ value, 0)
                    return float((weights[-1] @ value)[0])

                x, y = rng.standard_normal((2, 3))
                _, _, rows = np.linalg.svd(weights[0])
                steps = [rng.standard_normal((2, 3)) for _ in range(50)] + [row.reshape(2, 3) for row in rows]
                for step in steps:
                    step = 1e-3 * step
                    a, b = (network(*p) + network(*p[::-1]) for p in ((x, y), (x + step[0], y + step[1])))
                    apart = float(np.sum(np.linalg.norm(step, axis=1)))
                    pairs.append((abs(a - b) / 2 / apart / right, always(1, "amini2021, Section 3.4")))
            return pairs

        return Inequality(check)

    places = (Setting("three layers of norm 3"),)
    return Check(
        printed=Form(sides(3), places), controls=(Control("no layer counted", sides(0), places, kind="term left out"),)
    )


def _sign() -> Check:
    def residual(*, signed: bool) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """Distances between embedded points for K = |x - y| and for -K."""
            X = _drawn(key).standard_normal((15, 3))
            K = _distances(X) / 15
            rank = setting.shapes["R"]
            ours, theirs = (
                _distances(vectors * values)
                for values, vectors in (_decomposed(A, rank, signed=signed) for A in (K, -K))
            )
            return (ours - theirs) / ours.max()

        return Identity(check)

    places = tuple(Setting(f"R={rank}, n=15", shapes={"R": rank}) for rank in (2, 3))
    return Check(
        printed=Form(residual(signed=False), places),
        controls=(Control("the R largest eigenvalues", residual(signed=True), places, kind="wrong operator"),),
    )


def _information() -> Check:
    @functools.cache
    def pairs_of(name: str) -> list[tuple[float, float]]:
        """Mutual information and accuracy of labelings of 12 points, all that differ in counts."""
        if name == "three clusters, two merged":
            true, guesses = np.repeat([0, 1, 2], 4), [np.repeat([0, 0, 1], 4)]
        else:
            true = np.repeat([0, 1], 6)
            guesses = [np.concatenate([np.arange(6) < a, np.arange(6) < b]) * 1 for a in range(7) for b in range(7)]
        return [
            (
                float(metrics.normalized_mutual_info(jnp.asarray(true), jnp.asarray(guess))),
                1 - float(metrics.misclassification_rate(jnp.asarray(true), jnp.asarray(guess))),
            )
            for guess in guesses
        ]

    def sides(level: float = 1.0) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            del key
            return [(info, always(level * right, "amini2021, Section 3.5")) for info, right in pairs_of(setting.name)]

        return Inequality(check)

    merged, equal = (Setting("three clusters, two merged"),), (Setting("two clusters of 6"),)
    return Check(
        printed=Form(sides(), merged),
        corrected=Form(sides(), equal),
        controls=(Control("three quarters of the accuracy", sides(0.75), equal, kind="wrong factor"),),
    )


# ------------------------------------------------------------------------------------------------- steps of Theorem 2


def _net() -> Check:
    eps = 0.25

    def sides(constant: float, factor: float = 1.0) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """|B| over the largest |z'Bz| of a net of the circle whose farthest point is at distance eps."""
            rng = _drawn(key)
            angle = 2 * math.asin(eps / 2)  # between vectors at distance eps
            angles = np.add.outer(np.arange(4) * math.pi / 2, np.linspace(angle, math.pi / 2 - angle, 4)).ravel()
            net = np.stack([np.cos(angles), np.sin(angles)], axis=1)
            worst = np.diag([1.0, -1.0])  # both of its eigenvectors are as far from the net as can be
            cases = [worst] + [_symmetric(rng, 2) for _ in range(200)]
            pairs = []
            for B in cases:
                best = float(np.max(np.abs(np.einsum("ki,ij,kj->k", net, B, net))))
                pairs.append((_norm(B) / best / constant, always(factor, "amini2021, proof of Theorem 2")))
            pairs.append((len(net) / 9**2, always(1, "amini2021, proof of Theorem 2")))
            return pairs

        return Inequality(check)

    sharp = 1 / (1 - 2 * eps**2 + eps**4 / 2)
    places = (Setting("a 1/4-net of the circle"),)
    return Check(
        printed=Form(sides(2.0), places),
        corrected=Form(sides(sharp), places),
        controls=(Control("99 per cent of it", sides(sharp, 0.99), places, kind="wrong factor"),),
    )


def _traces() -> Check:
    def residual(*, symmetric: bool) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del setting
            rng = _drawn(key)
            n, d = 5, 3
            A, B = rng.standard_normal((2, n, n))
            M, centred = rng.standard_normal((2, d, n))
            S = (A + A.T) / 2
            traces = [np.trace(S @ B) - np.trace(S @ B.T), np.trace(S @ B) - np.trace(A @ (B + B.T) / 2)]
            z = rng.standard_normal(n)
            gamma = np.kron(z, np.eye(d))
            X = M + centred
            stacked = gamma @ X.T.ravel() - X @ z
            # Z(X) - Z(centred) - Z(M) is what is linear in the centred part.
            left = sum(sign * np.trace(A.T @ Y.T @ Y) for sign, Y in ((1, X), (-1, centred), (-1, M)))
            R = M @ (S if symmetric else A)
            linear = left - 2 * np.trace(R.T @ centred)
            form = np.sum((X @ z) ** 2) - np.sum((centred @ z) ** 2) - np.sum((M @ z) ** 2)
            crossed = form - 2 * (M @ z) @ (centred @ z)
            return np.array([*traces, *stacked, linear, crossed]) / 100

        return Identity(check)

    places = (Setting("random matrices, n=5, d=3"),)
    return Check(
        printed=Form(residual(symmetric=True), places),
        controls=(Control("R = M A", residual(symmetric=False), places, kind="transpose for adjoint"),),
    )


def _moment_generating() -> Check:
    beta = np.array([1.0, 0.7, 0.4, -0.5])
    square = float(np.sum(beta**2))

    def printed(key: jax.Array, setting: Setting) -> Pairs:
        """log E e^(s Z) over s tr A for A with the eigenvalues 1, .7, .4, .5 and normal X, at s = 1 / (4 C1)."""
        del key
        constant, positive = setting.numbers["C1"], np.abs(beta)
        s = positive.sum() / (4 * constant * square)
        found = -float(np.sum(np.log1p(-2 * s * positive))) / 2
        right = constant * s**2 * square
        unit = s * positive.sum()
        return [(found / unit, always(right / unit, "amini2021, proof of Theorem 6"))]

    def sides(constant: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """log E e^(s (Z - E Z)) over s^2 |A|_F^2 for |s| <= 1 / (4 |A|)."""
            del key, setting
            source = "amini2021, proof of Theorem 6"
            return [
                (
                    float(np.sum(-np.log1p(-2 * s * beta) / 2 - s * beta)) / (s**2 * square),
                    always(constant, source),
                )
                for s in np.linspace(-0.25, 0.25, 40)
            ]

        return Inequality(check)

    places = (Setting("eigenvalues 1, .7, .4, -.5"),)
    return Check(
        printed=Form(
            Inequality(printed), tuple(Setting(f"C1={c:g}", numbers={"C1": c}) for c in (1.0, 100.0, 10_000.0))
        ),
        corrected=Form(sides(2.0), places),
        controls=(Control("1/2 for 2", sides(0.5), places, kind="wrong factor"),),
    )


def _split() -> Check:
    def probability(multiple: float) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            """X = b + w with w = -m, 0 or m of variance one, A = 1: all three probabilities by the law of w."""
            m, s = setting.numbers["m"], setting.numbers["s"]
            b = 0.9 * s / m
            w = np.array([-m, 0.0, m])
            chances = np.array([0.5, 0.0, 0.5]) / m**2
            chances[1] = 1 - 1 / m**2
            Y, T = w**2 - 1, b * w
            left = chances @ (np.abs(Y + 2 * T) >= multiple * s)
            right = chances @ (np.abs(Y) >= s) + chances @ (np.abs(T) >= s)
            return exact.log_of(float(left)), exact.log_of(float(right))

        return Exact(check)

    places = tuple(Setting(f"three values, m={m:g}", numbers={"m": m, "s": (m**2 - 1) / 0.9}) for m in (1.5, 2.0, 4.0))
    return Check(
        printed=Form(probability(2.0), places),
        corrected=Form(probability(3.0), places),
        controls=(Control("2.5 for 3", probability(2.5), places, kind="wrong factor"),),
    )


# ---------------------------------------------------------------------------------------------- Appendices B.1 and B.2


def _eigenvectors() -> Check:
    def residual(*, unit: bool, half: float = 0.5) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """(44): eigenvalues, squared components, signs, and (1 - lambda_i) u_i = -alpha v_i."""
            a = setting.numbers["cosine"]
            rng = _drawn(key)
            Q, _ = np.linalg.qr(rng.standard_normal((5, 2)))
            u, v = Q[:, 0], a * Q[:, 0] + math.sqrt(1 - a**2) * Q[:, 1]
            values, vectors = np.linalg.eigh(np.outer(u, u) + np.outer(v, v))
            lambdas, x = values[::-1][:2], vectors[:, ::-1][:, :2]
            ui, vi = u @ x, v @ x
            expected = 1 + np.array([1, -1]) * abs(a)
            signs = math.copysign(1, a) * np.array([1, -1])
            lengths = (1.0, 1.0) if unit else (1.0, 5.0)  # |u| and |v|, where the tildes are missing
            return np.concatenate(
                [
                    lambdas - expected,
                    ui**2 - half * expected,
                    vi - signs * ui,
                    (1 - lambdas) * lengths[0] * ui + a * lengths[1] * vi,
                    values[:3],
                ]
            )

        return Identity(check)

    places = tuple(Setting(f"alpha={a:g}", numbers={"cosine": a}) for a in (0.3, -0.6, 0.95))
    return Check(
        printed=Form(residual(unit=False), places),
        corrected=Form(residual(unit=True), places),
        controls=(Control("0.6 for 1/2", residual(unit=True, half=0.6), places, kind="wrong factor"),),
    )


def _beta() -> Check:
    d = 2

    def place(name: str, *, reused: bool = False) -> tuple[Setting, ...]:
        return (Setting(f"{name}, d={d}", None, {"factor": 0.5, "reused": float(reused)}, {"dim": d}),)

    def law(shape: float) -> Law:
        return Law(t.angle, lambda x: stats.beta.cdf(np.asarray(x) + 0.5, shape, shape))

    return Check(
        printed=Form(law((d - 1) / 2), place("angles")),
        controls=(
            Control("Beta(d / 2, d / 2)", law(d / 2), place("angles"), kind="n for n - 1"),
            Control("one direction twice", law((d - 1) / 2), place("reused", reused=True), kind="reused key"),
        ),
    )
