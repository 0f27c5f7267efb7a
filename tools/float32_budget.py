"""The float32 budget: the backward error of every numerical function, in units of eps32, beside a limit with a reason.

    python tools/float32_budget.py        measures the whole grid and writes the table of docs/float32.md

Each function is computed in float32 and again in float64 from the same float32 numbers: points, lengthscale, weights,
and, where a map is drawn or fitted at random, the map. The largest difference is divided by eps32 and by a natural
scale that the table names. A limit is a formula in the sizes; it holds for every row, family and lengthscale.
"""

import copy
import dataclasses
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import jax
import jax.numpy as jnp
import numpy as np
from public import TABLE
from public.operation import products
from support.bounds import ARGUMENTS, named
from support.cases import KERNELS, RATIOS, Case

from jaxkern import (
    audit,
    clustering,
    features,
    frequent_directions,
    gram,
    kernels,
    learn,
    measures,
    metrics,
    rkhs,
)
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

    value(g) : what is computed, an array.
    scale(g, exact) : what its error is relative to, an array that broadcasts against it; `relative` says it in text.
    text : the limit in units of eps32, a formula of n and d.
    """

    value: Callable[[Any], Any]
    scale: Callable[[Any, Any], Any]
    relative: str
    text: str

    def limit(self, n, d):
        """Return the value of the formula."""
        formula = re.sub(
            r"(\w) \(", r"\1 * (", re.sub(r"√(\w)", r"math.sqrt(\1)", self.text)
        )
        return float(eval(formula, {"math": math, "n": n, "d": d}))


class Given:
    """A case whose numbers are float32, as arrays of a dtype."""

    def __init__(self, case, dtype):
        self.case, self.dtype, self.n, self.d = case, dtype, case.n, case.dim
        self.single = np.float32(case.lengthscale)
        self.length = jnp.asarray(self.single, dtype)
        self.X = jnp.asarray(case.plain, dtype)
        self.Y = jnp.asarray(np.asarray(case.rows[case.n :]), dtype)
        self.kernel = kernels.Gaussian(self.length)

    def of(self, kernel_name):
        """The same with another kernel."""
        other = copy.copy(self)
        other.kernel = KERNELS[kernel_name](self.length)
        return other

    def numbers(self, *shape):
        return jnp.asarray(
            np.asarray(self.case.numbers(*shape), np.float32), self.dtype
        )

    @property
    def K(self):
        rows = np.float64(self.case.plain)
        squares = ((rows[:, None] - rows[None]) ** 2).sum(axis=2) / float(
            self.single
        ) ** 2
        return jnp.asarray(np.exp(-squares / 2).astype(np.float32), self.dtype)

    @property
    def spread(self):
        """1 + rho^2, rho the largest distance of a point from the mean over the lengthscale; at most 1e-5 / eps."""
        rows = np.float64(self.case.rows)
        return min(
            1
            + ((rows - rows.mean(axis=0)) ** 2).sum(axis=1).max()
            / float(self.single) ** 2,
            84.0,
        )

    @property
    def reach(self):
        """R, the largest distance of a point from the origin over the lengthscale."""
        return np.sqrt((np.float64(self.case.rows) ** 2).sum(axis=1).max()) / float(
            self.single
        )

    def cast(self, tree):
        """Return a tree whose float32 leaves are of the dtype."""
        return jax.tree.map(
            lambda leaf: leaf.astype(self.dtype) if leaf.dtype == jnp.float32 else leaf,
            tree,
        )

    def drawn(self, name="paired_fourier"):
        """A Fourier map that was drawn in float32."""
        with jax.enable_x64(False):
            kernel = kernels.Gaussian(jnp.asarray(self.single))
            phi = getattr(features, name)(
                self.case.key, kernel, self.d, num_frequencies=8, dtype="float32"
            )
        return self.cast(phi)

    def turns(self, name="paired_fourier"):
        """1 + |w| R: the largest phase."""
        phi = self.drawn(name)
        leaf = (
            phi.frequencies
            if hasattr(phi, "frequencies")
            else phi.lengths[..., None] * np.ones(2)
        )
        return (
            1
            + np.linalg.norm(
                np.float64(leaf).reshape(-1, np.shape(leaf)[-1]), axis=1
            ).max()
            * self.reach
        )


def row(name, value, scale, relative, text):
    ROWS[name] = Row(value, scale, relative, text)


def called(name, word, kernel_names=("gaussian",)):
    """Return a result of a public function, called as the table of all of them does."""
    make = TABLE[name].make
    return lambda g: jnp.stack(
        [make(g.of(kernel_name))[word][0] for kernel_name in kernel_names]
    )


def one(g, exact):
    return 1.0


def spread(g, exact):
    return g.spread


def itself(g, exact):
    return np.abs(exact)


def total(g, *shape):
    return np.abs(np.float64(g.numbers(*shape))).sum(axis=0)


def norms(g):
    """|x| |y| for all points."""
    return (
        np.linalg.norm(np.float64(g.X), axis=1)[:, None]
        * np.linalg.norm(np.float64(g.Y), axis=1)[None, :]
    )


ONE, SPREAD, ITSELF = (one, "1"), (spread, "1 + ρ²"), (itself, "itself")
"""What most errors are relative to, with the words for it."""
POINTS, SUM, AVERAGE, MAP = (
    "4 + √d",
    "4 + √d + √n",
    "1 + (√d + √n) / 4",
    "4 (4 + √d + √n)",
)
PRODUCTS, DIRECT = (
    ("gaussian", "matern32", "matern52"),
    ("laplacian", "exponential", "cauchy"),
)


def pairs(g):
    every = (g.of(name).kernel for name in PRODUCTS + DIRECT)
    return jnp.stack([jax.vmap(kernel._value)(g.X, g.Y[: g.n]) for kernel in every])


row("kernels, one pair", pairs, *ONE, POINTS)
for _label, _names, _scale, _relative in (
    ("smooth kernels", PRODUCTS, *SPREAD),
    ("rough kernels", DIRECT, *ONE),
    ("`Distance`", ("distance",), *ITSELF),
    ("`Linear`", ("linear",), lambda g, exact: norms(g), "\\|x\\| \\|y\\|"),
    ("`Polynomial`", ("polynomial",), lambda g, exact: 2 * (1 + norms(g) / float(g.single) ** 2) ** 2,
     "2 (1 + \\|x\\| \\|y\\| / l²)²"),
):  # fmt: skip
    row(
        f"gram.gram, {_label}",
        called("gram.gram", "K(X, Y)", _names),
        _scale,
        _relative,
        POINTS,
    )


row(
    "gram.gram_matmul, rkhs.Function",
    lambda g: gram.gram_matmul(g.kernel, g.X, g.Y, g.numbers(g.n + 1)),
    lambda g, exact: g.spread * total(g, g.n + 1),
    "(1 + ρ²) Σ\\|v\\|",
    AVERAGE,
)


row("gram.center", called("gram.center", "HKH"), one, "max K", "4 + √n")
row("gram.kernel_distance", called("gram.kernel_distance", "distance", (*PRODUCTS, *DIRECT, "linear")),
    *ITSELF, POINTS)  # fmt: skip
row("kernels.quantile_lengthscale", lambda g: jnp.stack([kernels.quantile_lengthscale(g.X, q) for q in (0.5, 0.9)]),
    *ITSELF, "8 + √d")  # fmt: skip
row(
    "rkhs.inner",
    lambda g: rkhs.inner(
        rkhs.Function(g.kernel, g.X, g.numbers(g.n)),
        rkhs.Function(g.kernel, g.Y, g.numbers(g.n + 1)),
    ),
    lambda g, exact: g.spread * total(g, g.n) * total(g, g.n + 1),
    "(1 + ρ²) Σ\\|a\\| Σ\\|b\\|",
    AVERAGE,
)
row("rkhs.norm, squared", lambda g: called("rkhs.norm", "|f|")(g) ** 2, lambda g, exact: g.spread * total(g, g.n) ** 2,
    "(1 + ρ²) (Σ\\|a\\|)²", AVERAGE)  # fmt: skip
row(
    "rkhs.Covariance.eigenvalues",
    lambda g: rkhs.Covariance(g.kernel, g.X).eigenvalues(),
    *SPREAD,
    "4 + √d + n",
)


def traces(g):
    plain, centred = (
        rkhs.Covariance(g.kernel, g.X),
        rkhs.Covariance(g.kernel, g.X, centered=True),
    )
    return jnp.stack([centred.trace(), plain.trace(3), plain.hs_norm() ** 2])


row("rkhs.Covariance.trace, hs_norm²", traces, *SPREAD, "3 (4 + √d + √n)")


row(  # what is left out has eigenvalues of at most eps √n times the largest, which is n at most
    "features.nystrom, K from features",
    lambda g: products(features.nystrom(g.kernel, g.X)(g.X)),
    *SPREAD,
    "4 + √d + n (√n)",
)


def components(g):
    return features.kernel_pca(g.kernel, g.X, num_components=g.n)


row(
    "features.kernel_pca, H K H from features",
    lambda g: products(components(g)(g.X)),
    *SPREAD,
    MAP,
)
row(
    "features.kernel_pca.explained_variance",
    lambda g: components(g).explained_variance,
    *SPREAD,
    SUM,
)


def sketched(g):
    with jax.enable_x64(False):
        single = Given(g.case, "float32")
        phi = features.kernel_jl(g.case.key, single.kernel, single.X, num_features=4)
    return g.cast(phi)


row(
    "features.kernel_jl",
    lambda g: sketched(g)(g.Y),
    lambda g, exact: (
        g.spread * np.abs(np.float64(sketched(g).projection)).sum(axis=1)[None, :]
    ),
    "(1 + ρ²) Σ\\|p\\|",
    AVERAGE,
)
for _name in ("paired_fourier", "shifted_fourier", "orthogonal_fourier", "fastfood"):
    row(
        f"features.{_name}",
        lambda g, name=_name: g.drawn(name)(g.Y),
        lambda g, exact, name=_name: g.turns(name) / math.sqrt(8),
        "(1 + \\|w\\| R) / √m",
        "8 + √d",
    )


def feature_pca(g):
    return products(
        features.random_feature_pca(g.drawn(), g.X, num_components=min(g.n, 16))(g.X)
    )


row(
    "features.random_feature_pca, products",
    feature_pca,
    lambda g, exact: g.turns(),
    "1 + \\|w\\| R",
    MAP,
)


def excess(g):
    """By how much B'B exceeds A'A, over |A|_F^2: nothing, but for the rounding that the certificate allows for."""
    if g.dtype == "float64":
        return jnp.zeros(())
    found = frequent_directions.finalize(
        frequent_directions.update(frequent_directions.init(4, g.d), g.X)
    )
    A, B = (
        np.float64(g.case.plain),
        np.float64(found.singular_values)[:, None] * np.float64(found.basis).T,
    )
    # The difference acts on the span of both.
    basis = np.linalg.qr(np.concatenate([A, B]).T)[0]
    apart = np.linalg.eigvalsh(
        (A @ basis).T @ (A @ basis) - (B @ basis).T @ (B @ basis)
    )
    norm = (A**2).sum()
    return np.float64(max(-apart.min(), 0) / norm) if norm else np.zeros(())


row("frequent_directions, B'B beyond A'A", excess, one, "\\|A\\|²", "8 + d / 12")


def objective(g):
    with jax.enable_x64(False):
        found = kmeans(g.case.key, Given(g.case, "float32").X, 3)
    if g.dtype == "float32":
        return found.objective
    return (
        (np.float64(g.case.plain) - np.float64(found.centers)[np.asarray(found.labels)])
        ** 2
    ).sum()


def centres_rounded(g, exact):
    """Centres are rounded like the points: a difference x - c by eps |x|, and its square by that times |x - c|."""
    return exact + np.sqrt(exact * (np.float64(g.case.plain) ** 2).sum())


row("kmeans.kmeans.objective J", objective, centres_rounded, "J + \\|X\\| √J", AVERAGE)
row(
    "clustering.spectral_from_gram.eigenvalues",
    lambda g: (
        clustering.spectral_from_gram(g.case.key, g.K, 3, num_restarts=1).eigenvalues
    ),
    *ONE,
    "4 + √n",
)
row(
    "clustering.kernel_spectral.eigenvalues",
    lambda g: (
        clustering.kernel_spectral(
            g.case.key, g.kernel, g.X, 3, num_restarts=1
        ).eigenvalues
    ),
    *SPREAD,
    SUM,
)
row(
    "learn.eigengap",
    lambda g: learn.eigengap(g.kernel, g.X, num_components=2),
    *SPREAD,
    POINTS,
)


def alignment_scale(g, exact):
    K = np.float64(g.K)
    H = np.eye(g.n) - 1 / g.n
    centred = np.linalg.norm(H @ K @ H)
    return (
        g.spread * math.sqrt(g.n) / centred
        if centred > g.n * EPS * g.spread
        else math.inf
    )


row(
    "learn.alignment",
    lambda g: learn.alignment(
        g.kernel, g.X, jnp.arange(g.n, dtype=jnp.int32) % 3, num_labels=3
    ),
    alignment_scale,
    "(1 + ρ²) √n / \\|H K H\\|",
    AVERAGE,
)
row(
    "metrics.spectral_error, frobenius_error",
    lambda g: jnp.stack(
        [
            f(g.K, jnp.eye(g.n, dtype=g.dtype))
            for f in (metrics.spectral_error, metrics.frobenius_error)
        ]
    ),
    *ONE,
    "4 + √n",
)


def distance_error(g):
    return audit.distance_error(g.drawn(), g.kernel, g.X, g.Y[: g.n]).mean


def over_distance(g, exact):
    apart = np.float64(gram.kernel_distance(g.kernel, g.X, g.Y[: g.n]))
    apart = apart[apart > 0]
    return g.turns() / apart.min() if apart.size else 1.0


row(
    "audit.distance_error.mean",
    distance_error,
    over_distance,
    "(1 + \\|w\\| R) / D",
    AVERAGE,
)


def spectral_error(g):
    """All of the space is probed, so that the lower bound is the error itself, whatever the probes."""
    return audit.spectral_error(
        g.case.key, g.drawn(), g.kernel, g.X, num_steps=1, num_probes=g.n
    ).lower


row(
    "audit.spectral_error.lower",
    spectral_error,
    lambda g, exact: g.spread + g.turns(),
    "1 + ρ² + \\|w\\| R",
    "4 + √d + 8 (√n)",
)


row(
    "measures.mean_gaussian_kernel",
    lambda g: measures.mean_gaussian_kernel(g.X, g.length, g.length),
    *SPREAD,
    POINTS,
)
row(
    "measures.mean_kernel, `Distance`",
    lambda g: measures.mean_kernel(kernels.Distance(), g.X, g.length),
    *ITSELF,
    "8 + √d",
)
# A recurrence of 30 steps.
row(
    "measures.log_sphere_mgf",
    lambda g: measures.log_sphere_mgf(g.X / g.length, 5),
    *ITSELF,
    "32",
)


def spectrum(g):
    found = measures.gaussian_spectrum(g.length, jnp.asarray([0.5, 2.0], g.dtype))
    return jnp.stack([found.trace(), found.effective_rank(3), found.op_norm(2)])


row("measures.gaussian_spectrum", spectrum, *ITSELF, "32")


def bounds_of(g):
    arguments = {
        name: words
        for name, words in ARGUMENTS.items()
        if name.startswith("bounds.sketching.")
    }
    single = {
        name: {
            w: jnp.asarray(np.float32(x), g.dtype) for w, x in arguments[name].items()
        }
        for name in arguments
    }
    return jnp.stack([named(name)(**words).value for name, words in single.items()])


row("bounds.sketching", bounds_of, *ITSELF, "8")


def error_of(line, case):
    """Return the backward error in units of eps32, and the limit."""
    with jax.enable_x64(False):
        found = np.float64(np.asarray(line.value(Given(case, "float32"))))
    with jax.enable_x64(True):
        g = Given(case, "float64")
        exact = np.float64(np.asarray(line.value(g)))
        scale = np.broadcast_to(np.float64(line.scale(g, exact)), exact.shape)
    assert np.isfinite(found).all() and np.isfinite(exact).all(), case
    # Numbers below the normal range are rounded to it.
    gap = np.abs(found - exact)
    least = float(np.finfo(np.float32).tiny) / EPS
    return float(
        np.max(gap / (EPS * np.maximum(scale, least)), initial=0.0)
    ), line.limit(case.n, case.dim)


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
    return (
        "0"
        if error == 0
        else f"{error:.1g}"
        if error < 1
        else f"{float(f'{error:.2g}'):g}"
    )


def line_of(name, largest, worst):
    limit = ROWS[name].text
    cells = [
        name,
        ROWS[name].relative,
        *(shown(largest[column]) for column in COLUMNS),
        limit,
        f"{worst[0]:.2f}",
    ]
    return "| " + " | ".join(cells) + " |"


HEADER = (
    "| function | relative to | " + " | ".join(COLUMNS) + " | limit | of the limit |"
)


def main(only=()):
    """Measure the rows whose names are given, or all, and write them to the page."""
    made = {}
    for name in only or ROWS:
        largest, worst = measured(name)
        made[name] = line_of(name, largest, worst)
        print(made[name], "" if worst[0] <= 1 else f"BEYOND: {worst[1]}", flush=True)
        jax.clear_caches()
    kept = {
        line.split(" | ")[0].removeprefix("| "): line
        for line in table_of(PAGE.read_text(encoding="utf-8"))
    }
    lines = [HEADER, "| " + " | ".join(["---"] * (len(COLUMNS) + 4)) + " |"]
    lines += [(kept | made)[name] for name in ROWS if name in kept | made]
    text = re.sub(
        PATTERN,
        lambda _: "\n".join(lines) + "\n",
        PAGE.read_text(encoding="utf-8"),
        count=1,
    )
    PAGE.write_text(text, encoding="utf-8")


PATTERN = r"(?m)^\| function .*\n(\|.*\n)+"


def table_of(text):
    """Return the lines of the table on the page."""
    return re.search(PATTERN, text).group(0).splitlines()


if __name__ == "__main__":
    main(sys.argv[1:])
