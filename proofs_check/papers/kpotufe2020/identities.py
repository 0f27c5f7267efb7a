"""kpotufe2020, the exact statements: what Z K is, its normalisation, its cost; and the shortcut that trials take.

These run on the library itself, on landmarks that are atoms of a population, not on the shortcut.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
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
from proofs_check.claim import Claim, Control, Expectation, Form, Identity, Law, Setting
from proofs_check.papers import flops
from proofs_check.papers import operators as op
from proofs_check.papers.populations import Population

PAPER = "kpotufe2020"
LANDMARKS = 60
FUNCTIONS = 3


def claims(people: Sequence[Population]) -> list[Claim]:
    """Return the exact claims on these populations, in the paper's order."""
    places = tuple(_literal(person) for person in people)
    atoms = (_three_atoms(),)
    return [
        _eq1(places),
        _normalisation(places),
        _centred(places),
        _eq4_and_b1(places),
        _eq5(places),
        _cost(),
        _shortcut("literal", _literal_square, atoms, _one_key(atoms)),
        _shortcut("counts", _counted_square, atoms, _transposed(atoms)),
    ]


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


def _eq1(places: tuple[Setting, ...]) -> Claim:
    def one(setting: Setting) -> float:
        return 1.0

    return Claim(
        id="kpotufe2020:eq1",
        paper=PAPER,
        where="(1)",
        kind="expectation",
        tex=r"\mathbb E_Z\,\tfrac{1}{n^3d}\langle (ZK)g_X,(ZK)f_X\rangle=\langle g,\Sigma_n^3f\rangle",
        hypotheses="Any bounded kernel and any sample, which is given; the entries of $Z$ are independent and "
        "standard normal. Tried for $g=f$, which decides all pairs, at up to 60 landmarks and $d=40$.",
        because="True. The approximate signs of the paper are its Theorem 1 and Proposition 1; "
        "this is the exact content.",
        printed=Form(Expectation(_relative_square, one, one), places, "certified"),
        controls=(
            Control("Z in place of Z K", Expectation(_relative_square_without_k, one, one), places, "wrong operator"),
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


def _normalisation(places: tuple[Setting, ...]) -> Claim:
    def wrong(Z: jax.Array, K: jax.Array) -> jax.Array:
        return _normalised(Z, K) / K.shape[0]

    return Claim(
        id="kpotufe2020:normalisation",
        paper=PAPER,
        where="end of Section 3",
        kind="identity",
        tex=r"V^{\top}=\frac{1}{n\sqrt{nd}}ZK\ \Rightarrow\ \mathbb E\,S^*VV^{\top}S=\Sigma_n^3",
        hypotheses="Any bounded kernel and any sample, which is given; the entries of $Z$ are independent and "
        "standard normal. Only their second moments enter, so the check takes an orthogonal matrix that has the same "
        "ones.",
        because="True. The proof of Lemma B.3 displays a further factor 1/n^2, which the control applies.",
        printed=Form(Identity(_projected(_normalised)), places, "identity"),
        controls=(
            Control("a further factor 1/n", Identity(_projected(wrong)), places, "missing normalisation"),
            Control("K centred", Identity(_projected(_normalised_and_centred)), places, "centred for uncentred"),
        ),
    )


def _centred(places: tuple[Setting, ...]) -> Claim:
    def with_n_minus_one(Z: jax.Array, K: jax.Array) -> jax.Array:
        n = K.shape[0]
        return _normalised_and_centred(Z, K) * (n / (n - 1)) ** 1.5

    def holds(projection: Callable[[jax.Array, jax.Array], jax.Array]) -> Identity:
        return Identity(_projected(projection, centered=True))

    # A constant kernel has nothing left once it is centred.
    varying = tuple(s for s in places if not s.name.startswith("constant"))
    return Claim(
        id="jaxkern:centred",
        paper=PAPER,
        where="centred Kernel JL (ours)",
        kind="identity",
        tex=r"V^{\top}=\frac{1}{n\sqrt{nd}}ZHKH\ \Rightarrow\ \mathbb E\,S^*VV^{\top}S=\Sigma_{c,n}^3",
        hypotheses=r"As for the normalisation, with $H=I-\tfrac1n11^{\top}$ and the empirical covariance "
        r"$\Sigma_{c,n}$ about the mean of the sample. Constant kernels, of which nothing is left, are not tried.",
        because="The paper runs Kernel JL centred and proves it uncentred; given the sample the same algebra holds.",
        corrected=Form(holds(_normalised_and_centred), varying, "identity"),
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


def _eq4_and_b1(places: tuple[Setting, ...]) -> Claim:
    def with_power(power: int) -> tuple[Setting, ...]:
        return tuple(Setting(s.name, s.population, s.numbers, {**s.shapes, "power": power}) for s in places[:2])

    statement = Law(_projected_values, stats.norm.cdf)
    return Claim(
        id="kpotufe2020:propB.1",
        paper=PAPER,
        where="Proposition B.1 and (4)",
        kind="law",
        tex=r"w\sim N_{\mathcal H}(0,\Sigma)\ \Rightarrow\ (w(x_j))_j\sim N(0,M),\ "
        r"M_{jl}=\langle K_{x_j},\Sigma K_{x_l}\rangle",
        hypotheses=r"Points $x_1,\dots,x_n$ fixed before $w$ is drawn, and a Gaussian measure on the RKHS with "
        r"covariance $\Sigma$. Tried where $\Sigma$ is that of up to 60 landmarks, on two populations.",
        because="True; the paper does not argue joint normality, which is that every linear form is Gaussian: "
        "the check draws a fresh one in every trial.",
        printed=Form(statement, with_power(1), "certified"),
        controls=(Control("draws from N(0, Sigma^3)", statement, with_power(3), "wrong law"),),
    )


def _eq5(places: tuple[Setting, ...]) -> Claim:
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
    telling = tuple(s for s in places if s.name.startswith(("gauss", "skewed", "data")))
    gaussian = tuple(s for s in telling if isinstance(s.population["kernel"], kernels.Gaussian))
    return Claim(
        id="kpotufe2020:eq5",
        paper=PAPER,
        where="(5)",
        kind="identity",
        tex=r"\langle K_{X_j},\Sigma_nK_{X_l}\rangle=\tfrac1n(K^2)_{jl}",
        hypotheses=r"Any kernel and any sample $X_1,\dots,X_n$, which is given; $\Sigma_n=S_X^*S_X/n$ is not centred.",
        because="True.",
        printed=Form(holds(printed), places, "identity"),
        controls=(
            Control("K in place of K^2", holds(without_square), telling, "wrong power"),
            Control("the transpose of S for its adjoint", holds(transposed), telling, "transpose for adjoint"),
            Control("1 / (n - 1) for 1 / n", holds(over_n_minus_one), places, "n for n - 1"),
            Control("gamma for the lengthscale", holds(swapped), gaussian, "swapped constants"),
            Control("points in float16", holds(rounded), telling[-1:], "low precision"),
        ),
    )


# ----------------------------------------------------------------------------------------------------------- cost


def _cost() -> Claim:
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
    return Claim(
        id="kpotufe2020:cost",
        paper=PAPER,
        where="Section 1, time complexity",
        kind="cost",
        tex=r"d\,n^2\text{ multiply-adds to form }ZK,\ N\,d\,n\text{ to map }N\text{ points, with constant }1",
        hypotheses="$n$ landmarks, $N$ points, $d$ rows of $Z$; only the multiply-adds of matrix products count, "
        "neither kernel evaluations nor Gaussians. Tried at sizes that split into equal tiles.",
        because="True of the matrix products, counted in the traced program. It leaves out N n + n(n+1)/2 kernel "
        "evaluations and d n Gaussians, which dominate the time for small d.",
        printed=Form(Identity(residual(lambda n, d, N: d * n**2 + N * d * n)), settings, "identity"),
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


def _shortcut(name: str, trial: Callable[..., jax.Array], settings: tuple[Setting, ...], control: Control) -> Claim:
    K, weights = _shortcut_parts()

    def single(t: Any) -> Any:
        return stats.chi2.cdf(np.asarray(t) * _ROWS / (weights @ K @ weights), _ROWS)

    return Claim(
        id=f"jaxkern:shortcut-{name}",
        paper=PAPER,
        where="how trials are drawn (ours)",
        kind="law",
        tex=r"\|V^{\top}Sf\|^2\sim\sum_{c}P(c)\,\langle f,\Sigma_c^3f\rangle\chi^2_d/d\text{ over all counts }c",
        hypotheses="Three atoms with probabilities .5, .3 and .2, a Gaussian kernel, samples of $n=4$, $d=2$ and one "
        "$f$: small enough to list all samples.",
        because="The literal construction and the one by multinomial counts have the same exact law, "
        "which is what lets n reach 10^12 in the trials above.",
        corrected=Form(Law(trial, _shortcut_cdf), settings, "certified"),
        controls=(Control("the law without Sigma_n^3", Law(trial, single), settings, "wrong operator"), control),
    )
