"""|K - E K| of amini2021 for whatever kernels, centres, covariances and laws hypothesis draws: Monte Carlo.

An example has DRAWS independent draws of the points. Four statements of docs/theory/amini2021.md are judged by them:

- tail: the bound of |K - E K|_F, hence of |K - E K|, is exceeded with probability DELTA at most; more than ALLOWED
  violations refute it.
- root: E |K - E K|_F is at most its bound.
- mean: every entry of E K is what `measures.mean_kernel` says.
- deviation: for independent V and V' distributed as |K - E K|, V - V' has mean zero. As a function of both noises its
  Lipschitz constant is sqrt(2) times that of V, so that `deviation` with sqrt(2) scale holds for it, and E V need not
  be known.

An average of DRAWS copies of an l-Lipschitz function of standard normals exceeds its mean by l u / sqrt(DRAWS) with
probability exp(-u^2 / 2) at most. With this the second and the third are judged, over all entries. Each statement is
refuted with probability 1e-9 at most where it holds, and so are those said below about known variances and about pairs
of draws: 5e-9 an example, and 5e-7 the module. The controls are fixed examples with something wrong in them, and say
which statement finds it.
"""

import math

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial import distance

from jaxkern import kernels, measures, metrics, problems
from jaxkern.bounds import concentration
from jaxkern.gram import gram
from jaxkern.kernels import Distance, Gaussian
from jaxkern.pytrees import pytree

DELTA = 0.1
DRAWS = 200
ALARM = 1e-9
T = math.sqrt(2 * math.log(1 / DELTA))
T_OF_BOTH_SIDES = math.sqrt(2 * math.log(2 / DELTA))
ALLOWED = int(stats.binom.isf(ALARM, DRAWS, DELTA))
ALLOWED_PAIRS = int(stats.binom.isf(ALARM, DRAWS // 2, DELTA))
ROWS, _, _ = house.USUAL
SHAPES = {
    "isotropic": (ROWS, 128),
    "diagonal": (ROWS, 4),
    "radial": (ROWS, 4),
    "general": (8, 2),
}
"""Points and dimensions. A simplex has a dimension a point at least, and a covariance matrix a point is expensive."""
ISOTROPIC = {"isotropic": measures.IsotropicNoise, "radial": measures.RadialNoise}
GAUSSIAN = problems.GaussianLaw()

pytestmark = pytest.mark.float64  # deviations go down to 1e-4 of the entries

# Scales are powers of ten. That of the centres is in lengthscales, and so is the level of the noise, which is the root
# of the largest |Sigma_i|. The noise of the last point and that of the last coordinate are smaller by the powers
# `uneven` and `anisotropy`.
EXAMPLES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "places": st.sampled_from(["clusters", "line", "simplex"]),
        "clusters": st.integers(1, ROWS),
        "scale": st.floats(-2, 1.5),
        "offset": st.sampled_from([0.0, 1.0, 100.0]),
        "level": st.floats(-3, 1),
        "uneven": st.just(0.0) | st.floats(0, 3),
        "anisotropy": st.just(0.0) | st.floats(0, 3),
        "lengthscale": st.floats(-3, 3),
        "weights": st.sampled_from([(1.0, 0.0), (0.0, 1.0)])
        | st.tuples(st.floats(0, 10), st.floats(0.01, 10)),
    }
)
SIMPLEX = {
    "seed": 1,
    "places": "simplex",
    "clusters": 1,
    "scale": -math.log10(2) / 2,
    "offset": 0.0,
    "level": -2.5,
    "uneven": 0.0,
    "anisotropy": 0.0,
    "lengthscale": 0.0,
    "weights": (1.0, 0.0),
}
"""Gaussian kernel, centres one lengthscale apart, little noise: the sum of the variances attains its bound."""
ON_A_LINE = SIMPLEX | {"places": "line", "scale": 1.0, "weights": (0.0, 1.0)}
LINE = ON_A_LINE | {"anisotropy": 3.0}
"""Distances of far centres on a line: |x - y| is linear, and attains all bounds except that of the operator norm."""
POINT = SIMPLEX | {"places": "clusters", "scale": -2.0, "level": -math.log10(128) / 2}
"""One centre and noise of the length of the lengthscale."""
FAR = SIMPLEX | {"places": "clusters", "clusters": 2, "scale": 1.0, "level": 0.0}
"""Two far centres and large noise: E K is 0 to rounding, and E K^2 is much larger than (E K)^2."""


def centres_of(drawn, rows, dim):
    """Return centres (rows, dim), in units of the lengthscale."""
    rng = np.random.default_rng(drawn["seed"])
    if drawn["places"] == "line":
        centres = np.outer(np.arange(rows), np.eye(1, dim))
    elif drawn["places"] == "simplex" and dim >= rows:
        centres = np.eye(rows, dim)
    else:
        centres = rng.normal(size=(rows, dim))[np.arange(rows) % drawn["clusters"]]
    return centres * 10 ** drawn["scale"] + drawn["offset"]


def noise_of(drawn, kind, rows, dim):
    """Return a noise model in which the largest |Sigma_i| is (10^level lengthscale)^2."""
    largest = drawn["level"] + drawn["lengthscale"]
    levels = 10 ** (largest - drawn["uneven"] * np.linspace(0, 1, rows))
    if kind in ISOTROPIC:
        return ISOTROPIC[kind](levels * math.sqrt(dim))
    axes = 10 ** (-drawn["anisotropy"] * np.linspace(0, 1, dim))
    scales = np.outer(levels, axes)
    if kind == "diagonal":
        return measures.DiagonalNoise(scales**2)
    rng = np.random.default_rng(drawn["seed"])
    turned = np.linalg.qr(rng.normal(size=(rows, dim, dim)))[0] * scales[:, None]
    return measures.GeneralNoise(turned @ turned.transpose(0, 2, 1))


def model(drawn, kind):
    """Return kernel, centres and noise: the kernel is a Gaussian plus a distance, one of which may be missing."""
    shape = SHAPES[kind]
    tau = 10.0 ** drawn["lengthscale"]
    of_bell, of_distance = drawn["weights"]
    # Arrays: numbers of Python would be another program each.
    bell = Gaussian(np.asarray(tau)) * np.asarray(of_bell)
    kernel = bell + Distance() * np.asarray(of_distance / tau)
    return kernel, centres_of(drawn, *shape) * tau, noise_of(drawn, kind, *shape)


@jax.jit
def draw(key, centres, noise, law):
    """Return DRAWS independent sets of points, (DRAWS, n, d)."""

    def points(key):
        return problems.perturb(key, centres, noise, law=law).points

    return jax.lax.map(points, jax.random.split(key, DRAWS), batch_size=20)


@jax.jit
def errors(X, kernel, mean):
    """Return |K - E K|_F and |K - E K| of every draw, and the average of K - E K."""
    n = len(mean)

    def of_draw(X):
        K = gram(kernel, X)
        frobenius = n**2 * metrics.frobenius_error(mean, K)
        return frobenius, n * metrics.spectral_error(mean, K), K - mean

    F, V, E = jax.lax.map(of_draw, X, batch_size=20)
    return F, V, jnp.mean(E, axis=0)


@jax.jit
def differences(X, kernel):
    """Return |K - K'|_F for every draw of an even number, K', and the next one, K."""

    def of_pair(pair):
        first, second = pair
        return jnp.linalg.norm(gram(kernel, second) - gram(kernel, first))

    return jax.lax.map(of_pair, (X[::2], X[1::2]))


def constants(kernel, centres, noise, law=GAUSSIAN):
    """Return what bounds need, and |Sigma_i|^(1/2) of every point."""
    sizes = np.sqrt(np.asarray(noise.op_norm(centres)))
    numbers = {
        "lipschitz": float(kernels.lipschitz(kernel, centres.shape[1])),
        "omega": float(law.omega),
        "scale": float(sizes.max()),
        "num_points": len(sizes),
    }
    if law.lc_class == "b":  # omega / sqrt(2 pi) may stand for omega (Theorem A)
        numbers["omega"] /= math.sqrt(2 * math.pi)
    return numbers, sizes


def drift(alarm):
    """Return u / sqrt(DRAWS), by which an average exceeds its mean with probability `alarm` at most."""
    return math.sqrt(2 * math.log(1 / alarm) / DRAWS)


def rounding_of_points(X, lipschitz):
    """Return how far |K - E K|_F may be off because points are rounded: a coordinate by half an eps of its size."""
    _, rows, dim = X.shape
    length = math.sqrt(dim) * float(np.abs(np.asarray(X)).max()) * house.eps()
    return 2 * rows * lipschitz * length


def exceeds_too_often(sample, bound, allowed):
    """Tell whether more statistics than are allowed exceed a bound; NaN does."""
    return sample.size - np.count_nonzero(sample <= bound) > allowed


def refuted(draws, numbers, sizes, bound, off, factor=1.0):
    """Return what the draws refute, with `factor` times the bounds and `off` for rounding."""
    F, V, average = map(np.asarray, draws)
    numbers = numbers | {"mean_scale": float(np.sqrt(np.mean(sizes**2)))}
    tail = factor * float(bound(**numbers, t=T).value)
    root = factor * float(bound(**numbers, t=0.0).value)
    slope = (tail - root) / T
    pair = deviation_of_pairs(numbers)
    # An entry is Lipschitz in the noises of two points; on the diagonal those are the same.
    noises = np.hypot.outer(sizes, sizes) * np.sqrt(1 + np.eye(len(sizes)))
    steepest = numbers["lipschitz"] * numbers["omega"] * noises
    allowance = steepest * drift(ALARM / (2 * average.size))
    rounding = 1e4 * house.eps()  # points are up to 1e4 lengthscales from the origin
    allowance += rounding * (1 + np.max(F)) + off
    assert np.all(F * (1 + 1e-9 + rounding) + rounding >= V)
    apart = np.abs(V[::2] - V[1::2])
    verdicts = {
        "tail": exceeds_too_often(F, off + tail, ALLOWED),
        "root": not np.mean(F) <= off + root + slope * drift(ALARM),
        "mean": not np.all(np.abs(average) <= allowance),
        "deviation": exceeds_too_often(apart, off + factor * pair, ALLOWED_PAIRS),
    }
    return true_of(verdicts)


def deviation_of_pairs(numbers):
    words = {word: numbers[word] for word in ("lipschitz", "omega", "num_points")}
    scale = math.sqrt(2) * numbers["scale"]
    bound = concentration.deviation(**words, scale=scale, t=T_OF_BOTH_SIDES)
    assert float(bound.probability) == pytest.approx(1 - DELTA / 2, rel=1e-12)
    return float(bound.value)


def true_of(verdicts):
    return {name for name, is_refuted in verdicts.items() if is_refuted}


def judged(drawn, kind, *, off_mean=0.0, factor=1.0, **wrong):
    """Return what is refuted of an example with Gaussian noise; `off_mean` and `wrong` numbers sabotage it."""
    kernel, centres, noise = model(drawn, kind)
    numbers, sizes = constants(kernel, centres, noise)
    mean = measures.mean_kernel(kernel, centres, noise) + off_mean
    X = draw(jax.random.key(drawn["seed"]), centres, noise, GAUSSIAN)
    off = rounding_of_points(X, numbers["lipschitz"])
    bound = concentration.distance_kernel
    return refuted(errors(X, kernel, mean), numbers | wrong, sizes, bound, off, factor)


SLOW = pytest.mark.slow
KINDS = [
    "isotropic",
    "general",
    pytest.param("diagonal", marks=SLOW),
    pytest.param("radial", marks=SLOW),
]


@pytest.mark.parametrize("kind", KINDS)
@given(drawn=EXAMPLES)
@example(drawn=SIMPLEX)
@example(drawn=LINE)
def test_kernel_matrices_are_as_close_to_their_mean_as_promised(kind, drawn):
    """`distance_kernel` is the sharpest of the bounds of these kernels."""
    assert not judged(drawn, kind)


@pytest.mark.parametrize(
    ("drawn", "kind"), [(SIMPLEX, "isotropic"), (LINE, "diagonal")]
)
def test_half_the_bound_is_caught(drawn, kind):
    assert judged(drawn, kind, factor=0.5) >= {"tail", "root"}


@pytest.mark.slow
def test_the_printed_lipschitz_constant_and_the_noise_of_one_point_of_two_are_caught():
    """The one is smaller by 1.166 than the steepest slope, which centres one lengthscale apart have."""
    assert "above" in misses_its_variances(SIMPLEX, factor=0.5)
    assert misses_its_variances(SIMPLEX, factor=2.0) == {"below"}
    printed = concentration.gaussian_lipschitz(lengthscale=1.0, as_printed=True)
    assert "root" in judged(SIMPLEX, "isotropic", lipschitz=printed.value)


def test_a_mean_kernel_that_forgets_that_a_point_is_its_own_neighbour_is_caught():
    """E K_ii is 1; the closed form of the other entries would be s^-d, here 0.37."""
    rows, dim = SHAPES["isotropic"]
    off = (1 + 2 / dim) ** (-dim / 2) - 1
    assert judged(POINT, "isotropic", off_mean=off * np.eye(rows)) >= {"tail", "mean"}


def misses_its_variances(drawn, *, factor=1.0):
    """Return what the draws refute of the exact variances, `factor` times which are judged.

    With T the sum of the variances and F = |K - E K|_F, E F^2 = T and var F <= l^2 for l-Lipschitz F, so that
    E F lies between sqrt(T - l^2) and sqrt(T).
    """
    kernel, centres, noise = model(drawn, "isotropic")
    numbers, sizes = constants(kernel, centres, noise)
    exact = concentration.gaussian_pair_variance(
        squared_distance=distance.cdist(centres, centres, "sqeuclidean"),
        noise_variance=np.add.outer(sizes**2, sizes**2),
        lengthscale=10.0 ** drawn["lengthscale"],
        dim=centres.shape[1],
    )
    variances = np.asarray(exact.value)
    total = factor * float(np.sum(variances) - np.trace(variances))
    X = draw(jax.random.key(drawn["seed"]), centres, noise, GAUSSIAN)
    F = np.asarray(errors(X, kernel, measures.mean_kernel(kernel, centres, noise))[0])
    bound = concentration.distance_kernel_from_variance
    tail = bound(**numbers, total_variance=total, t=T).value
    off = rounding_of_points(X, numbers["lipschitz"])
    slope = math.sqrt(2 * len(sizes)) * numbers["lipschitz"] * numbers["scale"]
    allowance = slope * drift(ALARM) + off
    least = math.sqrt(max(total - slope**2, 0))
    return true_of(
        {
            "tail": exceeds_too_often(F, tail + off, ALLOWED),
            "above": not np.mean(F) <= math.sqrt(total) + allowance,
            "below": not np.mean(F) >= least - allowance,
        }
    )


@given(drawn=EXAMPLES)
@example(drawn=SIMPLEX)
@example(drawn=POINT)
@example(drawn=FAR)
def test_gaussian_kernels_have_the_variances_of_their_closed_form(drawn):
    assert not misses_its_variances(drawn | {"weights": (1.0, 0.0)})


@pytree
class TwoIntervals(problems.Law):
    """Within `half` of a or of -a, a^2 + half^2 / 3 = 1: Definition 2 (b) without the word interval admits it."""

    half: float = 0.1
    lc_class = "b"

    @property
    def omega(self):
        """One over the density."""
        return 4 * self.half

    def _rows(self, key, num_points, dim, dtype):
        signs, places = jax.random.split(key)
        shape = (num_points, dim)
        W = self.half * jax.random.uniform(places, shape, dtype, -1, 1)
        center = jnp.sqrt(1 - self.half**2 / 3)
        return W + center * jax.random.rademacher(signs, shape, dtype)


LAWS = {
    "image of a normal": lambda a: problems.UniformImageLaw(),
    "softplus": lambda a: problems.SoftplusImageLaw(),
    "uniform": lambda a: problems.UniformLaw(),
    "ramp": lambda a: problems.RampLaw(jnp.asarray(10 * a**2)),
    "skewed": lambda a: problems.SkewedLaw(jnp.asarray(5 * a)),
}


def sum_of_coordinates(x, y):
    """(sum x + sum y) / sqrt(d): 1-Lipschitz, and its mean is its value at the centres, whatever the law."""
    return jnp.sum(x + y) / math.sqrt(x.shape[0])


SUM = kernels.as_kernel(sum_of_coordinates)


def judged_law(drawn, law, *, factor=1.0):
    """Return what is refuted of SUM, and "symmetrised" if the difference of two kernel matrices is too large.

    |K - K'|_F is a function of both noises with sqrt(2) times the Lipschitz constant of |K - E K|_F, and the mean of
    its square is 2 sum var K_ij: sqrt(2) times every bound of Theorem A holds for it, and E K need not be known.
    """
    kernel, centres, noise = model(drawn, "diagonal")
    X = draw(jax.random.key(drawn["seed"]), centres, noise, law)
    numbers, sizes = constants(kernel, centres, noise, law)
    mean_scale = float(np.sqrt(np.mean(sizes**2)))
    right = concentration.distance_kernel(**numbers, mean_scale=mean_scale, t=T)
    allowance = factor * math.sqrt(2) * float(right.value)
    allowance += 2 * rounding_of_points(X, numbers["lipschitz"])
    numbers["lipschitz"] = 1.0
    bound = concentration.lipschitz_kernel
    draws = errors(X, SUM, gram(SUM, centres))
    off = rounding_of_points(X, 1.0)
    verdicts = refuted(draws, numbers, sizes, bound, off, factor=factor)
    apart = np.asarray(differences(X, kernel))
    if exceeds_too_often(apart, allowance, ALLOWED_PAIRS):
        verdicts.add("symmetrised")
    return verdicts


OF_EACH_CLASS = [
    "image of a normal",
    "uniform",
    "skewed",
    pytest.param("softplus", marks=SLOW),
    pytest.param("ramp", marks=SLOW),
]


@pytest.mark.parametrize("law", OF_EACH_CLASS)
@given(drawn=EXAMPLES, parameter=st.floats(-2, 2))
@example(drawn=ON_A_LINE, parameter=1.0)
def test_kernel_matrices_of_every_law_are_as_close_to_their_mean_as_promised(
    law, drawn, parameter
):
    assert not judged_law(drawn, LAWS[law](parameter))


def test_half_the_bound_is_caught_with_sums_and_an_eighth_of_the_deviation():
    """V = sqrt(n) |w| + |sum w| for SUM, with a standard deviation of 0.93 sqrt(n) where 2 sqrt(n) is allowed for."""
    halved = judged_law(ON_A_LINE, GAUSSIAN, factor=0.5)
    assert halved == {"tail", "root", "symmetrised"}
    assert "deviation" in judged_law(ON_A_LINE, GAUSSIAN, factor=0.125)


@pytest.mark.slow
def test_a_density_on_two_intervals_is_caught():
    """Where the paper's words would include it: Definition 2 (b) needs an interval. The factor leaves it omega."""
    factor = math.sqrt(2 * math.pi)
    verdicts = judged_law(ON_A_LINE, TwoIntervals(), factor=factor)
    assert verdicts >= {"tail", "root", "symmetrised"}
