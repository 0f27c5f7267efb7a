"""The float32 budget: the backward error of every numerical function, in units of eps32, beside a limit with a reason.

    python tests/float32_budget.py        measures the whole grid and writes the table of docs/float32.md

Each function is computed in float32 and again in float64 from the same float32 numbers: points, lengthscale, weights,
and, where a map is drawn or fitted at random, the map. The largest difference is divided by eps32 and by a natural
scale that the table names. A limit is a formula in the sizes; it holds for every row, family and lengthscale.
"""

import dataclasses
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import registry
from stress_data import KERNELS, RATIOS, Case

from jaxkern import audit, clustering, features, frequent_directions, gram, kernels, learn, measures, metrics, rkhs
from jaxkern.bounds import sketching
from jaxkern.kmeans import kmeans

PAGE = Path(__file__).resolve().parent.parent / "docs" / "float32.md"
EPS = float(np.finfo(np.float32).eps)
COLUMNS = {
    "plain": ("plain", "constant"),
    "offset 1e3": ("offset 1e3",),
    "offset 1e6": ("offset 1e6",),
    "scales": ("scale 1e-6", "scale 1e6"),
    "near-duplicates": ("near-duplicates",),
    "rank one": ("rank one",),
    "mixed, far": ("mixed scales", "far point"),
}
SIZES = ((12, 1), (12, 3), (40, 3), (12, 300))
SEEDS = (0,)
ROWS = {}


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table.

    value(g, dtype) : what is computed in a dtype, an array.
    scale(g, exact) : what its error is relative to, an array that broadcasts against it.
    limit(g) : in units of eps32; `text` is the same as a formula of n, d and m.
    """

    value: Callable[[Any, Any], Any]
    scale: Callable[[Any, Any], Any]
    limit: Callable[[Any], float]
    relative: str
    text: str


class Given:
    """A case whose numbers are float32, in either dtype."""

    def __init__(self, case):
        self.case, self.n, self.d = case, case.n, case.dim
        self.length = np.float32(case.lengthscale)

    def X(self, dtype):
        return jnp.asarray(self.case.plain, dtype)

    def Y(self, dtype):
        return jnp.asarray(np.asarray(self.case.rows[self.n :]), dtype)

    def kernel(self, dtype, name="gaussian"):
        return KERNELS[name](jnp.asarray(self.length, dtype))

    def weights(self, dtype, *shape):
        return jnp.asarray(np.asarray(self.case.numbers(*shape), np.float32), dtype)

    @property
    def spread(self):
        """1 + rho^2, rho the largest distance of a point from the mean over the lengthscale; at most 1e-5 / eps."""
        rows = np.float64(self.case.rows)
        return min(1 + ((rows - rows.mean(axis=0)) ** 2).sum(axis=1).max() / float(self.length) ** 2, 84.0)

    @property
    def reach(self):
        """1 + R, R the largest distance of a point from the origin over the lengthscale."""
        return 1 + np.sqrt((np.float64(self.case.rows) ** 2).sum(axis=1).max()) / float(self.length)

    def drawn(self, name, dtype):
        """A Fourier map that was drawn in float32."""
        kernel = self.kernel("float32", "gaussian")
        with jax.enable_x64(False):
            phi = getattr(features, name)(self.case.key, kernel, self.d, num_frequencies=8, dtype="float32")
        return cast(phi, dtype)

    def turns(self, phi):
        """1 + |w| R: the largest phase."""
        leaf = phi.frequencies if hasattr(phi, "frequencies") else phi.lengths[..., None] * np.ones(2)
        norms = np.linalg.norm(np.float64(leaf).reshape(-1, np.shape(leaf)[-1]), axis=1)
        return 1 + norms.max() * (self.reach - 1)


def cast(tree, dtype):
    """Return a tree whose float32 leaves are of another dtype."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if leaf.dtype == jnp.float32 else leaf, tree)


def row(name, value, scale, limit, relative, text):
    ROWS[name] = Row(value, scale, limit, relative, text)


def products(Z):
    return jnp.matmul(Z, Z.T, precision="highest")


def one(g, exact):
    return 1.0


def spread(g, exact):
    return g.spread


def itself(g, exact):
    return np.abs(exact)


def points_limit(g):
    return 4 + math.sqrt(g.d)


POINTS = "4 + √d"
PRODUCTS, DIRECT = ("gaussian", "matern32", "matern52"), ("laplacian", "exponential", "cauchy")


def pairs_of(names):
    def value(g, dtype):
        X, Y = g.X(dtype), g.Y(dtype)
        return jnp.stack([jax.vmap(g.kernel(dtype, name)._value)(X, Y[: g.n]) for name in names])

    return value


def grams_of(names):
    return lambda g, dtype: jnp.stack([gram.gram(g.kernel(dtype, name), g.X(dtype), g.Y(dtype)) for name in names])


def norms(rows):
    return np.sqrt((np.float64(rows) ** 2).sum(axis=1))


def polynomial_scale(g, exact):
    both = norms(g.case.plain)[:, None] * norms(g.case.rows[g.n :])[None, :]
    return 2 * (1 + both / float(g.length) ** 2) ** 2


row("kernels, one pair", pairs_of(PRODUCTS + DIRECT), one, points_limit, "1", POINTS)
row("gram.gram, smooth kernels", grams_of(PRODUCTS), spread, points_limit, "1 + ρ²", POINTS)
row("gram.gram, rough kernels", grams_of(DIRECT), one, points_limit, "1", POINTS)
row("gram.gram, `Distance`", grams_of(("distance",)), itself, points_limit, "itself", POINTS)
row(
    "gram.gram, `Linear`",
    grams_of(("linear",)),
    lambda g, exact: norms(g.case.plain)[:, None] * norms(g.case.rows[g.n :])[None, :],
    points_limit,
    "\\|x\\| \\|y\\|",
    POINTS,
)
row(
    "gram.gram, `Polynomial`",
    grams_of(("polynomial",)),
    polynomial_scale,
    points_limit,
    "2 (1 + \\|x\\| \\|y\\| / l²)²",
    POINTS,
)


def sum_limit(g):
    return 4 + math.sqrt(g.d) + math.sqrt(g.n)


SUM = "4 + √d + √n"


def average_limit(g):
    return 1 + (math.sqrt(g.d) + math.sqrt(g.n)) / 4


AVERAGE = "1 + (√d + √n) / 4"


def map_limit(g):
    return 4 * sum_limit(g)


MAP = "4 (4 + √d + √n)"


def total(g, *shape):
    return np.abs(np.float64(np.asarray(g.weights("float32", *shape)))).sum(axis=0)


row(
    "gram.gram_matmul, rkhs.Function",
    lambda g, dtype: gram.gram_matmul(g.kernel(dtype), g.X(dtype), g.Y(dtype), g.weights(dtype, g.n + 1)),
    lambda g, exact: g.spread * total(g, g.n + 1),
    average_limit,
    "(1 + ρ²) Σ\\|v\\|",
    AVERAGE,
)


def matrix(g, dtype):
    rows = np.float64(g.case.plain)
    squares = ((rows[:, None] - rows[None]) ** 2).sum(axis=2) / float(g.length) ** 2
    return jnp.asarray(np.exp(-squares / 2).astype(np.float32), dtype)


row("gram.center", lambda g, dtype: gram.center(matrix(g, dtype)), one, lambda g: 4 + math.sqrt(g.n), "max K", "4 + √n")
row(
    "gram.kernel_distance",
    lambda g, dtype: jnp.stack(
        [
            gram.kernel_distance(g.kernel(dtype, k), g.X(dtype), g.Y(dtype)[: g.n])
            for k in (*PRODUCTS, *DIRECT, "linear")
        ]
    ),
    itself,
    points_limit,
    "itself",
    POINTS,
)
row(
    "kernels.quantile_lengthscale",
    lambda g, dtype: jnp.stack([kernels.quantile_lengthscale(g.X(dtype), q) for q in (0.5, 0.9)]),
    itself,
    lambda g: 8 + math.sqrt(g.d),
    "itself",
    "8 + √d",
)
row(
    "rkhs.inner",
    lambda g, dtype: rkhs.inner(
        rkhs.Function(g.kernel(dtype), g.X(dtype), g.weights(dtype, g.n)),
        rkhs.Function(g.kernel(dtype), g.Y(dtype), g.weights(dtype, g.n + 1)),
    ),
    lambda g, exact: g.spread * total(g, g.n) * total(g, g.n + 1),
    average_limit,
    "(1 + ρ²) Σ\\|a\\| Σ\\|b\\|",
    AVERAGE,
)
row(
    "rkhs.norm, squared",
    lambda g, dtype: rkhs.norm(rkhs.Function(g.kernel(dtype), g.X(dtype), g.weights(dtype, g.n))) ** 2,
    lambda g, exact: g.spread * total(g, g.n) ** 2,
    average_limit,
    "(1 + ρ²) (Σ\\|a\\|)²",
    AVERAGE,
)


row(
    "rkhs.Covariance.eigenvalues",
    lambda g, dtype: rkhs.Covariance(g.kernel(dtype), g.X(dtype)).eigenvalues(),
    spread,
    lambda g: 4 + math.sqrt(g.d) + g.n,
    "1 + ρ²",
    "4 + √d + n",
)
row(
    "rkhs.Covariance.trace, hs_norm²",
    lambda g, dtype: jnp.stack(
        [
            rkhs.Covariance(g.kernel(dtype), g.X(dtype), centered=True).trace(),
            rkhs.Covariance(g.kernel(dtype), g.X(dtype)).trace(3),
            rkhs.Covariance(g.kernel(dtype), g.X(dtype)).hs_norm() ** 2,
        ]
    ),
    spread,
    lambda g: 3 * sum_limit(g),
    "1 + ρ²",
    "3 (4 + √d + √n)",
)


row(
    "features.nystrom, K from features",
    lambda g, dtype: products(features.nystrom(g.kernel(dtype), g.X(dtype))(g.X(dtype))),
    spread,
    map_limit,
    "1 + ρ²",
    MAP,
)
row(
    "features.kernel_pca, H K H from features",
    lambda g, dtype: products(features.kernel_pca(g.kernel(dtype), g.X(dtype), num_components=g.n)(g.X(dtype))),
    spread,
    map_limit,
    "1 + ρ²",
    MAP,
)
row(
    "features.kernel_pca.explained_variance",
    lambda g, dtype: features.kernel_pca(g.kernel(dtype), g.X(dtype), num_components=g.n).explained_variance,
    spread,
    sum_limit,
    "1 + ρ²",
    SUM,
)


def sketched(g):
    with jax.enable_x64(False):
        X = g.X("float32")
        return features.kernel_jl(g.case.key, g.kernel("float32"), X, num_features=4)


row(
    "features.kernel_jl",
    lambda g, dtype: cast(sketched(g), dtype)(g.Y(dtype)),
    lambda g, exact: g.spread * np.abs(np.float64(sketched(g).projection)).sum(axis=1)[None, :],
    average_limit,
    "(1 + ρ²) Σ\\|p\\|",
    AVERAGE,
)
for _name in ("paired_fourier", "shifted_fourier", "orthogonal_fourier", "fastfood"):
    row(
        f"features.{_name}",
        lambda g, dtype, _name=_name: g.drawn(_name, dtype)(g.Y(dtype)),
        lambda g, exact, _name=_name: g.turns(g.drawn(_name, "float32")) / math.sqrt(8),
        lambda g: 8 + math.sqrt(g.d),
        "(1 + \\|w\\| R) / √m",
        "8 + √d",
    )
row(
    "features.random_feature_pca, products",
    lambda g, dtype: products(
        features.random_feature_pca(g.drawn("paired_fourier", dtype), g.X(dtype), num_components=min(g.n, 16))(
            g.X(dtype)
        )
    ),
    lambda g, exact: g.turns(g.drawn("paired_fourier", "float32")),
    map_limit,
    "1 + \\|w\\| R",
    MAP,
)


def excess(g, dtype):
    """By how much B'B exceeds A'A, over |A|_F^2: nothing, but for the rounding that the certificate allows for."""
    if dtype == "float64":
        return jnp.zeros(())
    found = frequent_directions.finalize(frequent_directions.update(frequent_directions.init(4, g.d), g.X(dtype)))
    A, B = np.float64(g.case.plain), np.float64(found.singular_values)[:, None] * np.float64(found.basis).T
    # The difference acts on the span of both.
    basis = np.linalg.qr(np.concatenate([A, B]).T)[0]
    apart = np.linalg.eigvalsh((A @ basis).T @ (A @ basis) - (B @ basis).T @ (B @ basis))
    norm = (A**2).sum()
    return np.float64(max(-apart.min(), 0) / norm) if norm else np.zeros(())


row("frequent_directions, B'B beyond A'A", excess, one, lambda g: 8 + g.d / 12, "\\|A\\|²", "8 + d / 12")


def objective(g, dtype):
    with jax.enable_x64(False):
        found = kmeans(g.case.key, g.X("float32"), 3)
    if dtype == "float32":
        return found.objective
    return ((np.float64(g.case.plain) - np.float64(found.centers)[np.asarray(found.labels)]) ** 2).sum()


def centres_rounded(g, exact):
    """Centres are rounded like the points: a difference x - c by eps |x|, and its square by that times |x - c|."""
    return exact + np.sqrt(exact * (np.float64(g.case.plain) ** 2).sum())


row("kmeans.kmeans.objective J", objective, centres_rounded, average_limit, "J + \\|X\\| √J", AVERAGE)
row(
    "clustering.spectral_from_gram.eigenvalues",
    lambda g, dtype: clustering.spectral_from_gram(g.case.key, matrix(g, dtype), 3, num_restarts=1).eigenvalues,
    one,
    lambda g: 4 + math.sqrt(g.n),
    "1",
    "4 + √n",
)
row(
    "clustering.kernel_spectral.eigenvalues",
    lambda g, dtype: clustering.kernel_spectral(g.case.key, g.kernel(dtype), g.X(dtype), 3, num_restarts=1).eigenvalues,
    spread,
    sum_limit,
    "1 + ρ²",
    SUM,
)
row(
    "learn.eigengap",
    lambda g, dtype: learn.eigengap(g.kernel(dtype), g.X(dtype), num_components=2),
    spread,
    points_limit,
    "1 + ρ²",
    POINTS,
)


def alignment_scale(g, exact):
    K = np.float64(matrix(g, "float32"))
    H = np.eye(g.n) - 1 / g.n
    centred = np.linalg.norm(H @ K @ H)
    return g.spread * math.sqrt(g.n) / centred if centred > g.n * EPS * g.spread else math.inf


row(
    "learn.alignment",
    lambda g, dtype: learn.alignment(g.kernel(dtype), g.X(dtype), jnp.arange(g.n, dtype=jnp.int32) % 3, num_labels=3),
    alignment_scale,
    average_limit,
    "(1 + ρ²) √n / \\|H K H\\|",
    AVERAGE,
)
row(
    "metrics.spectral_error, frobenius_error",
    lambda g, dtype: jnp.stack(
        [f(matrix(g, dtype), jnp.eye(g.n, dtype=dtype)) for f in (metrics.spectral_error, metrics.frobenius_error)]
    ),
    one,
    lambda g: 4 + math.sqrt(g.n),
    "1",
    "4 + √n",
)


def distance_error(g, dtype):
    found = audit.distance_error(g.drawn("paired_fourier", dtype), g.kernel(dtype), g.X(dtype), g.Y(dtype)[: g.n])
    return found.mean


def over_distance(g, exact):
    apart = np.float64(gram.kernel_distance(g.kernel("float64"), g.X("float64"), g.Y("float64")[: g.n]))
    apart = apart[apart > 0]
    return g.turns(g.drawn("paired_fourier", "float32")) / apart.min() if apart.size else 1.0


row("audit.distance_error.mean", distance_error, over_distance, average_limit, "(1 + \\|w\\| R) / D", AVERAGE)
row(
    "audit.spectral_error.lower",
    lambda g, dtype: spectral_error(g, dtype),
    lambda g, exact: g.spread + g.turns(g.drawn("paired_fourier", "float32")),
    lambda g: 4 + math.sqrt(g.d) + 8 * math.sqrt(g.n),
    "1 + ρ² + \\|w\\| R",
    "4 + √d + 8 (√n)",
)


def spectral_error(g, dtype):
    """All of the space is probed, so that the lower bound is the error itself, whatever the probes."""
    phi = g.drawn("paired_fourier", dtype)
    return audit.spectral_error(g.case.key, phi, g.kernel(dtype), g.X(dtype), num_steps=1, num_probes=g.n).lower


row(
    "measures.mean_gaussian_kernel",
    lambda g, dtype: measures.mean_gaussian_kernel(
        g.X(dtype), jnp.asarray(g.length, dtype), jnp.asarray(g.length, dtype)
    ),
    spread,
    points_limit,
    "1 + ρ²",
    POINTS,
)
row(
    "measures.mean_kernel, `Distance`",
    lambda g, dtype: measures.mean_kernel(kernels.Distance(), g.X(dtype), jnp.asarray(g.length, dtype)),
    itself,
    lambda g: 8 + math.sqrt(g.d),
    "itself",
    "8 + √d",
)
row(
    "measures.log_sphere_mgf",
    lambda g, dtype: measures.log_sphere_mgf(g.X(dtype) / jnp.asarray(g.length, dtype), 5),
    itself,
    lambda g: 16,
    "itself",
    "16",
)
row(
    "measures.gaussian_spectrum",
    lambda g, dtype: jnp.stack(
        [
            f(measures.gaussian_spectrum(jnp.asarray(g.length, dtype), jnp.asarray([0.5, 2.0], dtype)))
            for f in (lambda s: s.trace(), lambda s: s.effective_rank(3), lambda s: s.op_norm(2))
        ]
    ),
    itself,
    lambda g: 32,
    "itself",
    "32",
)


def bounds_of(g, dtype):
    return jnp.stack(
        [
            getattr(sketching, name)(**{w: jnp.asarray(np.float32(registry.QUANTITIES[w]), dtype) for w in words}).value
            for name, words in registry.BOUNDS.items()
        ]
    )


row("bounds.sketching", bounds_of, itself, lambda g: 8, "itself", "8")


def error_of(line, case):
    """Return the backward error in units of eps32, and the limit."""
    g = Given(case)
    with jax.enable_x64(False):
        found = np.float64(np.asarray(line.value(g, "float32")))
    with jax.enable_x64(True):
        exact = np.float64(np.asarray(line.value(g, "float64")))
        scale = np.broadcast_to(np.float64(line.scale(g, exact)), exact.shape)
    assert np.isfinite(found).all() and np.isfinite(exact).all(), case
    # Numbers below the normal range are rounded to it.
    gap = np.abs(found - exact)
    least = float(np.finfo(np.float32).tiny) / EPS
    return float(np.max(gap / (EPS * np.maximum(scale, least)), initial=0.0)), float(line.limit(g))


def cases_of(family, sizes=SIZES, ratios=RATIOS, seeds=SEEDS):
    for n, dim in sizes:
        for ratio in ratios:
            for seed in seeds:
                yield Case("", family, n=n, dim=dim, ratio=ratio, seed=seed)


def measured(name, **grid):
    """Return the largest error of each column, and the largest ratio of an error to its limit with its case."""
    largest, worst = {}, (0.0, None)
    for column, families in COLUMNS.items():
        largest[column] = 0.0
        for family in families:
            for case in cases_of(family, **grid):
                error, limit = error_of(ROWS[name], case)
                largest[column] = max(largest[column], error)
                worst = max(worst, (error / limit, case), key=lambda pair: pair[0])
    return largest, worst


def shown(error):
    return "0" if error == 0 else f"{error:.1g}" if error < 1 else f"{float(f'{error:.2g}'):g}"


def line_of(name, largest, worst):
    limit = ROWS[name].text
    cells = [name, ROWS[name].relative, *(shown(largest[column]) for column in COLUMNS), limit, f"{worst[0]:.2f}"]
    return "| " + " | ".join(cells) + " |"


HEADER = "| function | relative to | " + " | ".join(COLUMNS) + " | limit | of the limit |"


def main(only=()):
    """Measure the rows whose names are given, or all, and write them to the page."""
    made = {}
    for name in only or ROWS:
        largest, worst = measured(name)
        made[name] = line_of(name, largest, worst)
        print(made[name], "" if worst[0] <= 1 else f"BEYOND: {worst[1]}", flush=True)
        jax.clear_caches()
    kept = {line.split(" | ")[0].removeprefix("| "): line for line in table_of(PAGE.read_text(encoding="utf-8"))}
    lines = [HEADER, "| " + " | ".join(["---"] * (len(COLUMNS) + 4)) + " |"]
    lines += [(kept | made)[name] for name in ROWS if name in kept | made]
    text = re.sub(TABLE, lambda _: "\n".join(lines) + "\n", PAGE.read_text(encoding="utf-8"), count=1)
    PAGE.write_text(text, encoding="utf-8")


TABLE = r"(?m)^\| function .*\n(\|.*\n)+"


def table_of(text):
    """Return the lines of the table on the page."""
    return re.search(TABLE, text).group(0).splitlines()


if __name__ == "__main__":
    main(sys.argv[1:])
