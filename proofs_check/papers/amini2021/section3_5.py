"""amini2021, Section 3.5: the sign of the kernel, mean distances of spheres, and mutual information."""

import functools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import metrics
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting
from proofs_check.papers.amini2021.expectations import cosines, gauss_hermite, mean_norm
from proofs_check.papers.amini2021.section3_1 import distances, leading
from proofs_check.papers.amini2021.setup import NOISE, Pairs
from proofs_check.papers.shared import Grids, check_of, lines, rng_of, wrong


def sign_errors(key: jax.Array, R: int, signed: bool = False) -> np.ndarray:
    """Distances between embedded points for K = |x - y| and for -K."""
    K = distances(rng_of(key).standard_normal((15, 3))) / 15

    def embedded(A: np.ndarray) -> np.ndarray:
        values, vectors = leading(A, R, signed=signed)
        return distances(vectors * values)

    plus = embedded(K)
    return (plus - embedded(-K)) / plus.max()


def sec3_5_sign(grids: Grids) -> Check:
    signed = wrong("the R largest eigenvalues", "wrong operator", signed=True)
    return check_of(Identity, grids["printed"], signed, printed=sign_errors)


def mean_distances(r: float, q: float, d: int, power: float = 0.5) -> Pairs:
    """Mean distances of two spheres under radial noise: their spread, and how far they are from the limit."""
    a, chances = cosines(d)
    w, weights = gauss_hermite(40)
    x = r + NOISE / math.sqrt(d) * w
    y = q + NOISE / math.sqrt(d) * w
    products = np.multiply.outer(np.outer(x, y), a)
    squared = np.add.outer(x**2, y**2)[:, :, None] - 2 * products
    means = np.einsum("i,j,ijk->k", weights, weights, np.sqrt(squared))
    mean = float(chances @ means)
    spread = math.sqrt(chances @ (means - mean) ** 2)
    limit = math.hypot(r, q)
    right = (2 * r * q / limit + math.sqrt(8 / math.pi) * NOISE) / d**power
    return lines([(spread, right), (abs(mean - limit), right)], "Section 3.5")


def sec3_5_distance(grids: Grids) -> Check:
    last = grids["corrected"][-4:]
    faster = wrong("1 / d for its root", "wrong power", settings=last, power=1.0)
    return check_of(Inequality, grids["corrected"], faster, corrected=mean_distances)


def gaps_of_lengths(r: float, q: float, d: int, across: int = 1) -> Pairs:
    """The gap between the mean lengths of points on two spheres: noise in d directions against one."""
    variance = NOISE**2 / d
    spread = mean_norm(d, variance, q) - mean_norm(d, variance, r)
    radial = mean_norm(across, variance, q) - mean_norm(across, variance, r)
    return lines([(spread, radial)], "Section 3.5")


def sec3_5_closer(grids: Grids) -> Check:
    first = grids["printed"][:2]
    name = "noise in more directions"
    more = wrong(name, "wrong operator", settings=first, across=30)
    return check_of(Inequality, grids["printed"], more, printed=gaps_of_lengths)


MERGED = "three clusters, two merged"


@functools.cache
def information_and_accuracy(name: str) -> list[tuple[float, float]]:
    """Mutual information and accuracy of labelings of 12 points, all that differ in counts."""
    true = np.repeat([0, 1], 6)
    guesses = []
    for a in range(7):
        for b in range(7):
            guesses.append(np.concatenate([np.arange(6) < a, np.arange(6) < b]) * 1)
    if name == MERGED:
        true = np.repeat([0, 1, 2], 4)
        guesses = [np.repeat([0, 0, 1], 4)]
    pairs = []
    for guess in guesses:
        pair = (jnp.asarray(true), jnp.asarray(guess))
        accuracy = 1 - float(metrics.misclassification_rate(*pair))
        pairs.append((float(metrics.normalized_mutual_info(*pair)), accuracy))
    return pairs


def information_below(setting: Setting, level: float = 1.0) -> Pairs:
    """Information is at most a multiple of the accuracy."""
    pairs = information_and_accuracy(setting.name)
    return lines(((x, level * y) for x, y in pairs), "amini2021, Section 3.5")


def information_sides(setting: Setting) -> Pairs:
    """Information is at most the accuracy, and the other way round where two of three clusters are merged."""
    if setting.name != MERGED:
        return information_below(setting)
    pairs = information_and_accuracy(MERGED)
    return lines(((y, x) for x, y in pairs), "amini2021, Section 3.5")


def sec3_5_nmi(grids: Grids) -> Check:
    merged = grids["merged"]
    equal = grids["equal"]
    below = Inequality(information_below)
    smaller = Inequality(partial(information_below, level=0.75))
    return Check(
        corrected=Form(Inequality(information_sides), equal + merged),
        controls=(
            Control("three quarters of the accuracy", smaller, equal, "wrong factor"),
            Control("the same for merged clusters", below, merged, "hypothesis broken"),
        ),
    )
