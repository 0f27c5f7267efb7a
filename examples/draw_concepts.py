"""Draw the pictures of docs/concepts.md: the sampling operator, the powers of Sigma, and Kernel JL.

`python examples/draw_concepts.py --output docs/figures` writes three SVG files, the same bytes each time on one
machine. `--format png` writes PNG files instead.
"""

import argparse
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.figure import Figure

from jaxkern import features, kernels, rkhs

BLUE, ORANGE, GREEN, GREY = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#8c8c8c",
)  # told apart by colour-blind readers
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "jaxkern",
    "font.size": 9,
    "axes.spines.top": False,
}
STYLE["axes.spines.right"] = False
KERNEL = kernels.Gaussian(0.5)
LINE = jnp.linspace(-4, 4, 401)[:, None]


def sampling() -> Figure:
    """Draw a function, its values at the sample, and the function that the adjoint makes of them."""
    X = jnp.array([-3.0, -2.4, -2.1, -1.9, -1.3, -0.9, -0.6, -0.1, 0.2, 0.8])[:, None]
    f = rkhs.Function(
        KERNEL,
        jnp.array([[-2.5], [-1.2], [0.3], [2.8]]),
        jnp.array([1.2, -1.0, 1.0, 1.3]),
    )
    S = rkhs.SamplingOperator(KERNEL, X)
    values = S(f)
    image = S.adjoint(values / X.shape[0])
    bumps = rkhs.section(KERNEL, X)(LINE) * (values / X.shape[0])[None, :]

    figure = Figure(figsize=(8, 2.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(LINE[:, 0], f(LINE), color=BLUE, label="$f$")
    left.vlines(X[:, 0], 0, values, color=ORANGE, linewidth=1)
    left.plot(
        X[:, 0],
        values,
        "o",
        color=ORANGE,
        markersize=4,
        label=r"$Sf$: its values at $X_1,\ldots,X_{10}$",
    )
    left.set_title("sampling: a function becomes numbers")
    right.plot(LINE[:, 0], bumps, color=GREY, linewidth=0.7)
    right.plot([], [], color=GREY, linewidth=0.7, label=r"$f(X_i)\,K(\cdot,X_i)/n$")
    right.plot(
        LINE[:, 0], image(LINE), color=ORANGE, label=r"their sum $S^*Sf/n=\Sigma_nf$"
    )
    right.set_title("adjoint: numbers become a function")
    for axes in (left, right):
        axes.plot(X[:, 0], jnp.zeros(X.shape[0]), "|", color="black", markersize=9)
        axes.axhline(0, color="black", linewidth=0.5)
        axes.set_xlabel("$x$")
    left.set_ylim(-1.3, 2.1)
    right.set_ylim(-0.25, 0.45)
    for axes in (left, right):
        axes.legend(frameon=False, loc="upper left", fontsize=8)
    return figure


def powers() -> Figure:
    """Draw the eigenvalues of Sigma and of its cube, and what either makes of one function."""
    key = jax.random.key(3)
    X = jnp.concatenate(
        [-1.5 + 0.7 * jax.random.normal(key, (140, 1)), 2 + 0.5 * LINE[::7]]
    )  # 140 dense, 58 sparse
    sigma = rkhs.Covariance(KERNEL, X)
    top = float(sigma.op_norm())
    values = np.asarray(sigma.eigenvalues()[:12]) / top
    slow = rkhs.Function(KERNEL, jnp.array([[-1.5], [2.0]]), jnp.array([1.0, 1.0]))
    fast = rkhs.Function(
        KERNEL, jnp.linspace(-3.6, 3.6, 11)[:, None], jnp.array([0.5, -0.5] * 5 + [0.5])
    )
    f = slow + fast

    figure = Figure(figsize=(8, 2.9), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[2, 3])
    number = np.arange(1, 13)
    left.semilogy(
        number, values, "o-", color=ORANGE, markersize=4, label=r"of $\Sigma$"
    )
    left.semilogy(
        number, values**3, "s-", color=GREEN, markersize=4, label=r"of $\Sigma^3$"
    )
    left.set(xlabel="number", title="eigenvalues over the largest", ylim=(1e-7, 2))
    left.legend(frameon=False)
    right.plot(LINE[:, 0], f(LINE), color=BLUE, label="$f$")
    right.plot(
        LINE[:, 0],
        sigma(f)(LINE) / top,
        color=ORANGE,
        linestyle="--",
        label=r"$\Sigma f/\|\Sigma\|$",
    )
    cubed = sigma(f, power=3)(LINE) / top**3
    right.plot(
        LINE[:, 0],
        cubed,
        color=GREEN,
        linestyle="-.",
        label=r"$\Sigma^3f/\|\Sigma\|^3$",
    )
    right.plot(
        X[:, 0],
        jnp.full(X.shape[0], -0.75),
        "|",
        color="black",
        markersize=6,
        alpha=0.4,
    )
    right.set(xlabel="$x$", title="one function", ylim=(-0.9, 1.9))
    right.legend(frameon=False, loc="upper right", ncols=3, fontsize=8)
    return figure


def kernel_jl() -> Figure:
    """Draw points, the geometry that Kernel JL keeps, one random draw of it, and how close inner products come."""
    key_points, key_draw, key_small, key_large = jax.random.split(jax.random.key(1), 4)
    labels = np.repeat([0, 1], 80)
    X = jax.random.normal(key_points, (160, 2))
    ring = 4 * X / jnp.linalg.norm(X, axis=1, keepdims=True) + 0.15 * X
    X = jnp.where((labels == 0)[:, None], 0.7 * X, ring)
    kernel = kernels.Gaussian(1.0)
    sigma = rkhs.Covariance(kernel, X)
    # Coordinates of K_x in the eigenfunctions of Sigma; Sigma^(3/2) multiplies the j-th by lambda_j^(3/2).
    pca = features.kernel_pca(kernel, X, num_components=2, centered=False)
    kept = pca(X) * pca.explained_variance[None, :] ** 1.5
    exact = sigma.inner(rkhs.section(kernel, X), rkhs.section(kernel, X), power=3)
    size = float(jnp.max(exact))

    figure = Figure(figsize=(8.4, 2.6), layout="constrained")
    panels = figure.subplots(1, 4)
    for axes, Z, title, name in (
        (panels[0], X, "points", "coordinate"),
        (
            panels[1],
            kept / size**0.5,
            r"$\Sigma^{3/2}K_x$, two directions",
            "eigenfunction",
        ),
        (
            panels[2],
            features.kernel_jl(key_draw, kernel, X, num_features=2)(X) / size**0.5,
            "Kernel JL, $d=2$",
            "feature",
        ),
    ):
        for label, (color, marker) in enumerate(((BLUE, "o"), (ORANGE, "^"))):
            chosen = np.asarray(Z)[labels == label]
            axes.plot(
                chosen[:, 0],
                chosen[:, 1],
                marker,
                color=color,
                markersize=2.5,
                alpha=0.7,
                rasterized=True,
            )
        axes.set(
            title=title,
            xlabel=f"{name} 1",
            ylabel=f"{name} 2",
            aspect="equal",
            adjustable="datalim",
        )
    rows, columns = np.triu_indices(160, 1)
    shown = np.random.default_rng(0).choice(rows.size, 250, replace=False)
    rows, columns = rows[shown], columns[shown]
    for d, key, color, marker in (
        (20, key_small, GREY, "x"),
        (1000, key_large, GREEN, "."),
    ):
        Z = features.kernel_jl(key, kernel, X, num_features=d)(X)
        products = np.asarray((Z[rows] * Z[columns]).sum(axis=1)) / size
        wanted = np.asarray(exact)[rows, columns] / size
        panels[3].plot(
            wanted,
            products,
            marker,
            color=color,
            markersize=3,
            rasterized=True,
            label=f"$d={d}$",
        )
    panels[3].axline((0, 0), slope=1, color="black", linewidth=0.7)
    panels[3].set(
        title="inner products",
        xlabel=r"$\langle K_x,\Sigma^3K_y\rangle$",
        ylabel="of the features",
    )
    panels[3].legend(frameon=False, fontsize=8)
    return figure


def main() -> None:
    """Write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output", type=Path, default=None, metavar="DIR", help="default: a new folder"
    )
    parser.add_argument("--format", choices=("svg", "png"), default="svg")
    options = parser.parse_args()
    folder = options.output or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        for name, draw in (
            ("sampling", sampling),
            ("powers", powers),
            ("kernel_jl", kernel_jl),
        ):
            path = folder / f"concepts_{name}.{options.format}"
            undated = (
                {"Date": None} if options.format == "svg" else None
            )  # so that equal figures are equal files
            draw().savefig(path, metadata=undated, dpi=160)
            print(path)


if __name__ == "__main__":
    main()
