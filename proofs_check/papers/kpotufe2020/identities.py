"""kpotufe2020, the exact statements: what Z K is, its normalisation, its cost; and the shortcut that trials take.

These run on the library itself, on landmarks that are atoms of a population, not on the shortcut.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import features, kernels, rkhs
from jaxkern._draws import normal_rows
from jaxkern._spectral import matmul
from jaxkern.gram import center, gram
from proofs_check import controls
from proofs_check.claim import Check, Control, Expectation, Form, Identity, Law, Setting
from proofs_check.papers import flops
from proofs_check.papers import operators as op
from proofs_check.papers.kpotufe2020.places import Scope
from proofs_check.papers.populations import Population

PAPER = "kpotufe2020"
LANDMARKS = 60
FUNCTIONS = 3


def _literal(person: Population) -> Setting:
    """Return a setting with the library's objects: a kernel, landmarks, and a few functions of the RKHS."""
    rng = np.random.default_rng(3)
    count = min(LANDMARKS, 4 * len(person.points))
    rows = rng.choice(len(person.points), count, p=person.weights)
    dtype = jax.dtypes.canonicalize_dtype(float)
    landmarks = jnp.asarray(person.points[rows], dtype)
    # Functions of the span of the landmarks and of points beside them.
    beside = landmarks + 0.1 * jnp.std(landmarks, axis=0, keepdims=True)
    weights = jnp.asarray(rng.standard_normal((2 * count, FUNCTIONS)), dtype)
    f = rkhs.Function(person.kernel, jnp.concatenate([landmarks, beside]), weights)
    population = {"kernel": person.kernel, "landmarks": landmarks, "f": f}
    return Setting(f"{person.name}, n={count}", population, {"d": 40.0}, {"rows": 40})


@functools.cache
def _literals(scope: Scope) -> tuple[Setting, ...]:
    return tuple(_literal(person) for person in scope.people)


# ------------------------------------------------------------------------------------------- (1) and normalisation


def _first(f: rkhs.Function) -> rkhs.Function:
    return rkhs.Function(f.kernel, f.points, f.weights[:, 0])


def _relative_square(key: jax.Array, population: Mapping[str, Any], numbers: Any, *, rows: int) -> jax.Array:
    """|phi.embed(f)|^2 over <f, Sigma_n^3 f>, by the library."""
    del numbers
    phi = features.kernel_jl(key, population["kernel"], population["landmarks"], num_features=rows)
    f = _first(population["f"])
    exact = rkhs.Covariance(population["kernel"], population["landmarks"]).inner(f, f, power=3)
    return jnp.sum(phi.embed(f) ** 2) / exact


def _relative_square_without_k(key: jax.Array, population: Mapping[str, Any], numbers: Any, *, rows: int) -> jax.Array:
    """The same with Z in place of Z K / n."""
    del numbers
    f, landmarks = _first(population["f"]), population["landmarks"]
    n = landmarks.shape[0]
    image = matmul(normal_rows(key, rows, n, landmarks.dtype), f(landmarks)) / math.sqrt(n * rows)
    exact = rkhs.Covariance(population["kernel"], landmarks).inner(f, f, power=3)
    return jnp.sum(image**2) / exact


def _eq1(scope: Scope) -> Check:
    def one(setting: Setting) -> float:
        return 1.0

    return Check(
        printed=Form(Expectation(_relative_square, one, one), _literals(scope)),
        controls=(
            Control(
                "Z in place of Z K",
                Expectation(_relative_square_without_k, one, one),
                _literals(scope),
                "wrong operator",
            ),
        ),
    )


def _projected(projection: Callable[[jax.Array, jax.Array], jax.Array], *, centered: bool = False) -> Any:
    """Return the residual of <V^T S g, V^T S f> = <g, Sigma_n^3 f> for V^T = projection(Z, K) with Z'Z = d I.

    An orthogonal Z times sqrt(n) has the second moments of a Gaussian one exactly, so the expectation over Z becomes
    an identity.
    """

    def residual(key: jax.Array, setting: Setting) -> np.ndarray:
        kernel, landmarks, f = (setting.population[k] for k in ("kernel", "landmarks", "f"))
        n = landmarks.shape[0]
        Z = jnp.linalg.qr(jax.random.normal(key, (n, n), landmarks.dtype))[0] * math.sqrt(n)
        phi = features.KernelJL(
            kernel, landmarks, projection(Z, gram(kernel, landmarks)), jnp.zeros((n,), landmarks.dtype), centered
        )
        images = phi.embed(f)
        exact = rkhs.Covariance(kernel, landmarks, centered=centered).inner(f, f, power=3)
        return np.asarray(jnp.abs(matmul(images, images.T) - exact) / jnp.max(jnp.abs(exact))).ravel()

    return residual


def _normalised(Z: jax.Array, K: jax.Array) -> jax.Array:
    n, d = K.shape[0], Z.shape[0]
    return matmul(Z, K) / (n * math.sqrt(n * d))


def _normalised_and_centred(Z: jax.Array, K: jax.Array) -> jax.Array:
    return _normalised(Z, center(K))


def _normalisation(scope: Scope) -> Check:
    def wrong(Z: jax.Array, K: jax.Array) -> jax.Array:
        return _normalised(Z, K) / K.shape[0]

    return Check(
        printed=Form(Identity(_projected(_normalised)), _literals(scope)),
        controls=(
            Control("a further factor 1/n", Identity(_projected(wrong)), _literals(scope), "missing normalisation"),
            Control(
                "K centred", Identity(_projected(_normalised_and_centred)), _literals(scope), "centred for uncentred"
            ),
        ),
    )


def _centred(scope: Scope) -> Check:
    def with_n_minus_one(Z: jax.Array, K: jax.Array) -> jax.Array:
        n = K.shape[0]
        return _normalised_and_centred(Z, K) * (n / (n - 1)) ** 1.5

    def holds(projection: Callable[[jax.Array, jax.Array], jax.Array]) -> Identity:
        return Identity(_projected(projection, centered=True))

    # A constant kernel has nothing left once it is centred.
    varying = tuple(s for s in _literals(scope) if not s.name.startswith("constant"))
    return Check(
        corrected=Form(holds(_normalised_and_centred), varying),
        controls=(
            Control("K not centred", holds(_normalised), varying, "centred for uncentred"),
            Control("a covariance over n - 1", holds(with_n_minus_one), varying, "n for n - 1"),
        ),
    )


# -------------------------------------------------------------------------------------------- (4), (5), Prop. B.1


def _projected_values(
    key: jax.Array, population: Mapping[str, Any], numbers: Any, *, rows: int, power: int
) -> jax.Array:
    """A random linear form of (w(x_j))_j, w drawn from N_H(0, Sigma^power), over the deviation that (4) says."""
    del numbers, rows
    key_form, key_draw = jax.random.split(key)
    landmarks = population["landmarks"]
    sigma = rkhs.Covariance(population["kernel"], landmarks)
    form = jax.random.normal(key_form, (landmarks.shape[0],), landmarks.dtype)
    values = rkhs.draw_gaussian(key_draw, sigma, power=power)(landmarks)[:, 0]
    g = rkhs.Function(population["kernel"], landmarks, form)
    return jnp.vdot(form, values, precision=op.HIGHEST) / jnp.sqrt(sigma.inner(g, g, power=1))


def _eq4_and_b1(scope: Scope) -> Check:
    def with_power(power: int) -> tuple[Setting, ...]:
        return tuple(
            Setting(s.name, s.population, s.numbers, {**s.shapes, "power": power}) for s in _literals(scope)[:2]
        )

    statement = Law(_projected_values, stats.norm.cdf)
    return Check(
        printed=Form(statement, with_power(1)),
        controls=(Control("draws from N(0, Sigma^3)", statement, with_power(3), "wrong law"),),
    )


def _eq5(scope: Scope) -> Check:
    def holds(claimed: Callable[[Any, jax.Array], jax.Array]) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            kernel, landmarks = setting.population["kernel"], setting.population["landmarks"]
            sections = rkhs.section(kernel, landmarks)
            exact = rkhs.Covariance(kernel, landmarks).inner(sections, sections, power=1)
            return np.asarray(jnp.abs(claimed(kernel, landmarks) - exact) / jnp.max(jnp.abs(exact))).ravel()

        return Identity(check)

    def printed(kernel: Any, landmarks: jax.Array) -> jax.Array:
        K = gram(kernel, landmarks)
        return matmul(K, K) / landmarks.shape[0]

    def without_square(kernel: Any, landmarks: jax.Array) -> jax.Array:
        return gram(kernel, landmarks) / landmarks.shape[0]

    def transposed(kernel: Any, landmarks: jax.Array) -> jax.Array:
        """In coordinates f = sum a_i K(., X_i) S is the matrix K; its transpose is K too, but its adjoint is I."""
        K = gram(kernel, landmarks)
        return matmul(K, matmul(K, K)) / landmarks.shape[0]

    def over_n_minus_one(kernel: Any, landmarks: jax.Array) -> jax.Array:
        n = landmarks.shape[0]
        return printed(kernel, landmarks) * n / (n - 1)

    def swapped(kernel: Any, landmarks: jax.Array) -> jax.Array:
        return printed(controls.gamma_for_lengthscale(kernel), landmarks)

    def rounded(kernel: Any, landmarks: jax.Array) -> jax.Array:
        return printed(kernel, controls.in_half(landmarks))

    # K^2 and K are proportional when the kernel is constant or its atoms are orthogonal and equally frequent.
    telling = tuple(s for s in _literals(scope) if s.name.startswith(("gauss", "skewed", "data")))
    gaussian = tuple(s for s in telling if isinstance(s.population["kernel"], kernels.Gaussian))
    return Check(
        printed=Form(holds(printed), _literals(scope)),
        controls=(
            Control("K in place of K^2", holds(without_square), telling, "wrong power"),
            Control("the transpose of S for its adjoint", holds(transposed), telling, "transpose for adjoint"),
            Control("1 / (n - 1) for 1 / n", holds(over_n_minus_one), _literals(scope), "n for n - 1"),
            Control("gamma for the lengthscale", holds(swapped), gaussian, "swapped constants"),
            Control("points in float16", holds(rounded), telling[-1:], "low precision"),
        ),
    )


# ----------------------------------------------------------------------------------------------------------- cost


def _cost() -> Check:
    """Kernel evaluations are kept free of matrix products by a kernel of direct differences."""
    kernel = kernels.Laplacian(1.0)

    def counted(n: int, d: int, points: int) -> float:
        dtype = jax.dtypes.canonicalize_dtype(float)
        landmarks, X = jax.ShapeDtypeStruct((n, 3), dtype), jax.ShapeDtypeStruct((points, 3), dtype)
        key = jax.eval_shape(lambda: jax.random.key(0))

        def fit_and_map(key: jax.Array, landmarks: jax.Array, X: jax.Array) -> jax.Array:
            return features.kernel_jl(key, kernel, landmarks, num_features=d)(X)

        # The offset of the centred map, Z K 1 / n, costs d n in either case.
        return float(flops.multiply_adds(fit_and_map, key, landmarks, X) - d * n)

    def residual(claimed: Callable[[int, int, int], float]) -> Callable[[jax.Array, Setting], np.ndarray]:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            n, d, points = (int(setting.numbers[k]) for k in ("n", "d", "N"))
            return np.asarray([abs(counted(n, d, points) / claimed(n, d, points) - 1)])

        return check

    # Sizes that split into equal tiles: a padded last one costs a little more.
    settings = tuple(
        Setting(f"n={n}, d={d}, N={points}", numbers={"n": n, "d": d, "N": points})
        for n, d, points in ((200, 20, 1_000), (256, 120, 12_288), (400, 10, 104_000))
    )
    return Check(
        printed=Form(Identity(residual(lambda n, d, N: d * n**2 + N * d * n)), settings),
        controls=(
            Control(
                "an eigen-decomposition of n^3",
                Identity(residual(lambda n, d, N: n**3 + N * d * n)),
                settings,
                "wrong cost",
            ),
        ),
    )


# ------------------------------------------------------------------------------------------------------- shortcut

_ATOMS = np.array([[0.0], [1.0], [2.5]])
_WEIGHTS = np.array([0.5, 0.3, 0.2])
_DRAWS = 4
_ROWS = 2


def _shortcut_parts() -> tuple[np.ndarray, np.ndarray]:
    """Return the Gram matrix of the three atoms and the weights of f on them."""
    K = np.exp(-((_ATOMS - _ATOMS.T) ** 2) / 2)
    return K, np.array([1.0, -0.5, 2.0])


def _shortcut_cdf(t: Any) -> Any:
    """Return P(|V^T S f|^2 <= t) for samples of four: the mixture of scaled chi-squares over all 15 counts."""
    K, weights = _shortcut_parts()
    total = np.zeros(np.shape(t))
    for counts in itertools.product(range(_DRAWS + 1), repeat=3):
        if sum(counts) == _DRAWS:
            CK = np.diag(np.array(counts) / _DRAWS) @ K
            scale = weights @ K @ CK @ CK @ CK @ weights
            probability = stats.multinomial.pmf(counts, _DRAWS, _WEIGHTS)
            total = total + probability * stats.chi2.cdf(np.asarray(t) * _ROWS / scale, _ROWS)
    return total


def _literal_square(key: jax.Array, population: Mapping[str, Any], numbers: Any) -> jax.Array:
    """|phi.embed(f)|^2 with landmarks drawn one by one and the library's Kernel JL."""
    del numbers
    key_sample, key_sketch = jax.random.split(key)
    index = jax.random.choice(key_sample, 3, (_DRAWS,), p=population["weights"])
    kernel = population["kernel"]
    phi = features.kernel_jl(key_sketch, kernel, population["points"][index], num_features=_ROWS)
    return jnp.sum(phi.embed(rkhs.Function(kernel, population["points"], population["f"])) ** 2)


def _counted_square(key: jax.Array, population: Mapping[str, Any], numbers: Any) -> jax.Array:
    """The same by counts and the Gaussian law given the sample, as the trials of all tail bounds do."""
    del numbers
    key_sample, key_sketch = jax.random.split(key)
    frequencies = op.frequencies(key_sample, population, jnp.asarray(float(_DRAWS), population["weights"].dtype))
    f = matmul(population["features"].T, population["f"])
    return jnp.vdot(f, op.sketch(key_sketch, population, frequencies, _ROWS)(f), precision=op.HIGHEST)


def _three_atoms() -> Setting:
    K, weights = _shortcut_parts()
    arrays = {"points": _ATOMS, "weights": _WEIGHTS, "f": weights, "features": np.linalg.cholesky(K)}
    dtype = jax.dtypes.canonicalize_dtype(float)
    population: dict[str, Any] = {k: jnp.asarray(v, dtype) for k, v in arrays.items()}
    population["kernel"] = kernels.Gaussian(1.0)
    return Setting("3 atoms, n=4, d=2", population)


def _one_key(atoms: tuple[Setting, ...]) -> Control:
    statement = Law(controls.same_key(_literal_square), _shortcut_cdf)
    return Control("every trial with one key", statement, atoms, "reused key")


def _transposed(atoms: tuple[Setting, ...]) -> Control:
    def without_adjoint(population: Mapping[str, Any]) -> dict[str, Any]:
        return {**population, "features": population["features"].T}

    places = controls.changed(atoms, "transposed", population=without_adjoint)
    return Control("L' for L in K = L L'", Law(_counted_square, _shortcut_cdf), places, "transpose for adjoint")


def _shortcut_literal() -> Check:
    atoms = (_three_atoms(),)
    return _shortcut(_literal_square, atoms, _one_key(atoms))


def _shortcut_counts() -> Check:
    atoms = (_three_atoms(),)
    return _shortcut(_counted_square, atoms, _transposed(atoms))


def _shortcut(trial: Callable[..., jax.Array], settings: tuple[Setting, ...], control: Control) -> Check:
    K, weights = _shortcut_parts()

    def single(t: Any) -> Any:
        return stats.chi2.cdf(np.asarray(t) * _ROWS / (weights @ K @ weights), _ROWS)

    return Check(
        corrected=Form(Law(trial, _shortcut_cdf), settings),
        controls=(Control("the law without Sigma_n^3", Law(trial, single), settings, "wrong operator"), control),
    )
