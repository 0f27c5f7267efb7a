"""Figure 2 of chen2016: relative errors of the kernel distance of random pairs of points, at distances 1e-4 to 1e4.

Left: for each number t of paired features, the largest relative error over 2,000 fresh pairs. Right: the relative
errors of 2,000 pairs against their distance, for t = 100 and t = 1000. The paper prints plots and no numbers. It leaves
open the dimension and the lengthscale: here the lengthscale is 1, and the dimensions are 2, 10 and 100 (left) and 10
(right). Its largest error is that of D / Dhat itself; that of |D / Dhat - 1| is what its text is about, and is here.

A pair matters through its difference alone, so that by default Dhat comes from 2 sin(<w, x - y> / 2), which loses no
digits. `--from-features` computes it from the features of both points, x in a ball of radius 500, in --dtype.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern.features import paired_fourier
from jaxkern.kernels import Gaussian
from jaxkern.linalg import matmul
from proofs_check.papers.figures import Numbers, Tables, summary, timed

TABLES: Tables = {
    "left": {
        "d": "{dim}",
        "t": "{frequencies}",
        "eps_max": "{mean:.4f} ± {sd:.4f}",
        "1 / (t eps_max^2)": "{inverse:.3f}",
    },
    "slopes": {"d": "{dim}", "eps_max ~ t^": "{slope:.3f} ± {error:.3f}"},
    "decades": {
        "t": "{frequencies}",
        "distance from": "{start:g}",
        "rms": "{rms:.4f}",
        "theory": "{theory:.4f}",
    },
}
PANELS = (1, 2)
SIZE = (11, 4.2)
PANEL_DIM = 10
RADIUS = 500.0
NEAREST = 1e-4
FARTHEST = 1e4


def data(
    *, full: bool, seed: int, dtype: Any, from_features: bool = False
) -> dict[str, Any]:
    """Return the largest errors of every draw (left) and the errors against the distance (right)."""
    frequencies = (50, 100, 200, 400, 800, 1600) if full else (50, 100, 200)
    dims = (2, 10, 100) if full else (2, 10)
    pairs = 2000 if full else 200
    replicates = 20 if full else 3
    options = {
        "pairs": pairs,
        "seed": seed,
        "dtype": dtype,
        "from_features": from_features,
    }
    largest = left(frequencies, dims=dims, replicates=replicates, **options)
    errors = right(**options)
    return {
        "pairs": pairs,
        "replicates": replicates,
        "from_features": from_features,
        "left": largest,
        "slopes": [slope(largest, dim) for dim in dims],
        "right": errors,
        "decades": [row for panel in errors for row in by_decade(panel)],
    }


def distances(pairs: int) -> np.ndarray:
    """Return the distances (pairs,) of the pairs, equally spaced on a log scale."""
    return np.geomspace(NEAREST, FARTHEST, pairs)


def relative_errors(
    key: Any,
    *,
    dim: int,
    frequencies: int,
    pairs: int,
    from_features: bool = False,
    dtype: Any,
) -> np.ndarray:
    """Return D / Dhat - 1, (pairs,), of pairs in random directions, one draw of paired features for all of them.

    With from_features, Dhat is |phi(x) - phi(y)| as computed in the dtype, and infinite errors are possible.
    """
    key_map, key_direction, key_place, key_radius = jax.random.split(key, 4)
    phi = paired_fourier(
        key_map, Gaussian(1.0), dim, num_frequencies=frequencies, dtype=dtype
    )
    r = jnp.asarray(distances(pairs), dtype)[:, None]
    differences = r * _unit(jax.random.normal(key_direction, (pairs, dim), dtype))
    if from_features:
        radii = RADIUS * jax.random.uniform(key_radius, (pairs, 1), dtype) ** (1 / dim)
        x = radii * _unit(jax.random.normal(key_place, (pairs, dim), dtype))
        images = jnp.linalg.norm(phi(x) - phi(x + differences), axis=1)
    else:
        half_waves = 2 * jnp.sin(matmul(differences, phi.frequencies.T) / 2)
        images = jnp.sqrt(jnp.mean(half_waves**2, axis=1))
    true = np.sqrt(-2 * np.expm1(-(distances(pairs) ** 2) / 2))
    with np.errstate(divide="ignore"):
        return true / np.asarray(images, float) - 1


def _unit(X: Any) -> Any:
    return X / jnp.linalg.norm(X, axis=1, keepdims=True)


def left(
    frequencies: Sequence[int],
    *,
    dims: Sequence[int],
    replicates: int,
    seed: int,
    **options: Any,
) -> list[dict[str, Any]]:
    """Return the largest relative errors for every dimension and t, one for every replicate.

    A replicate depends on seed, dimension, t and its number alone. `options` are those of `relative_errors`.
    """
    rows = []
    for dim in timed(dims):
        for t in frequencies:
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), dim), t)
            values = []
            for number in range(replicates):
                draw_key = jax.random.fold_in(key, number)
                errors = relative_errors(draw_key, dim=dim, frequencies=t, **options)
                values.append(np.max(np.abs(errors)))
            row = {"dim": dim, "frequencies": t, **summary(values)}
            rows.append({**row, "inverse": row["mean"] ** -2 / t})
    return rows


def right(*, pairs: int, seed: int, **options: Any) -> list[dict[str, Any]]:
    """Return the relative errors of one draw of features against the distance, for t = 100 and t = 1000."""
    key = jax.random.fold_in(jax.random.key(seed), 2**20)
    rows = []
    for t in (100, 1000):
        draw_key = jax.random.fold_in(key, t)
        errors = relative_errors(
            draw_key, dim=PANEL_DIM, frequencies=t, pairs=pairs, **options
        )
        r = distances(pairs).tolist()
        rows.append({"frequencies": t, "distances": r, "errors": errors.tolist()})
    return rows


def standard_deviation(distance: Any, frequencies: int) -> Any:
    """Return (1 + K) / sqrt(8 t): the standard deviation of Dhat / D at one distance, up to higher orders of 1 / t."""
    return (1 + np.exp(-(np.asarray(distance, float) ** 2) / 2)) / math.sqrt(
        8 * frequencies
    )


def slope(largest: Sequence[Numbers], dim: int) -> dict[str, float]:
    """Return the slope of log(largest error) against log t, by least squares, and its standard error."""
    rows = [row for row in largest if row["dim"] == dim]
    sizes = [row["frequencies"] for row in rows for _ in row["values"]]
    values = [value for row in rows for value in row["values"]]
    line = stats.linregress(np.log(sizes), np.log(values))
    return {"dim": dim, "slope": line.slope, "error": line.stderr}


def by_decade(panel: Numbers) -> list[dict[str, float]]:
    """Return the root of the mean square error in every decade of the distance, and the same by theory."""
    t = panel["frequencies"]
    r = np.asarray(panel["distances"])
    theory = standard_deviation(r, t)
    squares = np.square([panel["errors"], theory])
    edges = np.geomspace(NEAREST, FARTHEST, 9)
    # The last distance would begin a ninth decade.
    means = stats.binned_statistic(r[:-1], squares[:, :-1], bins=edges).statistic
    decades = zip(edges.tolist(), *np.sqrt(means).tolist(), strict=False)
    names = ("start", "rms", "theory")
    return [{"frequencies": t, **dict(zip(names, d, strict=True))} for d in decades]


def draw(axes: Any, data: Numbers) -> None:
    """Draw both panels."""
    first, second = axes
    for dim in dict.fromkeys(row["dim"] for row in data["left"]):
        curve = [row for row in data["left"] if row["dim"] == dim]
        sizes = [row["frequencies"] for row in curve]
        inverses = [row["mean"] ** -2 for row in curve]
        first.plot(sizes, inverses, marker="o", label=f"d = {dim}")
    first.set_xlabel("number of frequencies t")
    first.set_ylabel("1 / (largest relative error)²")
    first.set_title(f"{data['pairs']:,} pairs, largest error")
    first.grid(alpha=0.3)
    first.legend()
    for row, colour in zip(data["right"], ("C0", "C1"), strict=True):
        r = np.asarray(row["distances"])
        dots = {"markersize": 2, "color": colour, "alpha": 0.5}
        # Rasterised: thousands of dots would be most of the file.
        second.plot(r, np.abs(row["errors"]), ".", rasterized=True, **dots)
        t = row["frequencies"]
        deviations = 2 * standard_deviation(r, t)
        label = f"t = {t}: two standard deviations"
        second.plot(r, deviations, color=colour, linewidth=1.5, label=label)
    second.set(xscale="log", xlabel="distance / lengthscale", title="single pairs")
    second.set(yscale="log", ylim=(1e-4, 1), ylabel="relative error")
    second.grid(alpha=0.3)
    second.legend(loc="lower left")
