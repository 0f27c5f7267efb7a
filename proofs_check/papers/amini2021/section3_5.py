"""amini2021, Section 3.5: the sign of the kernel, and mutual information."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import metrics
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting
from proofs_check.papers.amini2021 import laws
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.amini2021.section2_1 import mean_norm
from proofs_check.papers.amini2021.section3_1 import distances, leading
from proofs_check.papers.amini2021.setup import NOISE, two_spheres
from proofs_check.papers.shared import grid, lines, parametrized, rng_of


def _sign() -> Check:
    def residual(*, signed: bool) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """Distances between embedded points for K = |x - y| and for -K."""
            K = distances(rng_of(key).standard_normal((15, 3))) / 15
            embedded = (leading(A, setting.shapes["R"], signed=signed) for A in (K, -K))
            plus, minus = (distances(vectors * values) for values, vectors in embedded)
            return (plus - minus) / plus.max()

        return Identity(check)

    settings = grid("R={R}, n=15", shapes="R", R=(2, 3))
    return Check(
        printed=Form(residual(signed=False), settings),
        controls=(
            Control(
                "the R largest eigenvalues",
                residual(signed=True),
                settings,
                "wrong operator",
            ),
        ),
    )


def _block_distances() -> Check:
    @parametrized(Inequality)
    def sides(setting: Setting, power: float = 0.5) -> Pairs:
        """Mean distances of two spheres under radial noise: their spread, and how far they are from the limit."""
        r, q, d = setting.numbers["r"], setting.numbers["q"], setting.shapes["d"]
        (a, chances), (w, weights) = laws.cosines(d), laws.gauss_hermite(40)
        x, y = (radius + NOISE / math.sqrt(d) * w for radius in (r, q))
        squared = np.add.outer(x**2, y**2)[:, :, None] - 2 * np.multiply.outer(
            np.outer(x, y), a
        )
        means = np.einsum("i,j,ijk->k", weights, weights, np.sqrt(squared))
        mean, limit = float(chances @ means), math.hypot(r, q)
        right = (2 * r * q / limit + math.sqrt(8 / math.pi) * NOISE) / d**power
        return lines(
            [
                (math.sqrt(chances @ (means - mean) ** 2), right),
                (abs(mean - limit), right),
            ],
            "Section 3.5",
        )

    settings = two_spheres(10, 50, 400)
    return Check(
        corrected=Form(sides(), settings),
        controls=(
            Control(
                "1 / d for its root", sides(power=1.0), settings[-4:], "wrong power"
            ),
        ),
    )


def _closer() -> Check:
    @parametrized(Inequality)
    def sides(setting: Setting, across: int = 1) -> Pairs:
        """The gap between the mean lengths of points on two spheres: noise in d directions against one."""
        d, radii = setting.shapes["d"], (setting.numbers["r"], setting.numbers["q"])
        (near, far), (inner, outer) = (
            [mean_norm(k, NOISE**2 / d, r) for r in radii] for k in (across, d)
        )
        return lines([(outer - inner, far - near)], "Section 3.5")

    settings = tuple(s for s in two_spheres(10, 50) if s.numbers["r"] < s.numbers["q"])
    return Check(
        printed=Form(sides(), settings),
        controls=(
            Control(
                "noise in more directions",
                sides(across=30),
                settings[:2],
                "wrong operator",
            ),
        ),
    )


def _information() -> Check:
    @functools.cache
    def pairs_of(name: str) -> list[tuple[float, float]]:
        """Mutual information and accuracy of labelings of 12 points, all that differ in counts."""
        if name == "three clusters, two merged":
            true, guesses = np.repeat([0, 1, 2], 4), [np.repeat([0, 0, 1], 4)]
        else:
            true = np.repeat([0, 1], 6)
            guesses = [
                np.concatenate([np.arange(6) < a, np.arange(6) < b]) * 1
                for a in range(7)
                for b in range(7)
            ]
        labelings = [(jnp.asarray(true), jnp.asarray(guess)) for guess in guesses]
        return [
            (
                float(metrics.normalized_mutual_info(*pair)),
                1 - float(metrics.misclassification_rate(*pair)),
            )
            for pair in labelings
        ]

    @parametrized(Inequality)
    def sides(setting: Setting, level: float = 1.0, upwards: bool = True) -> Pairs:
        """Information is at most the accuracy, and the other way round where two of three clusters are merged."""
        pairs = [(info, level * right) for info, right in pairs_of(setting.name)]
        turned = upwards and setting in merged
        return lines(
            (pair[::-1] if turned else pair for pair in pairs), "amini2021, Section 3.5"
        )

    merged, equal = (
        (Setting("three clusters, two merged"),),
        (Setting("two clusters of 6"),),
    )
    return Check(
        corrected=Form(sides(), (*equal, *merged)),
        controls=(
            Control(
                "three quarters of the accuracy",
                sides(level=0.75),
                equal,
                "wrong factor",
            ),
            Control(
                "the same for merged clusters",
                sides(upwards=False),
                merged,
                "hypothesis broken",
            ),
        ),
    )
