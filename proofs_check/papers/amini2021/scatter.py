"""What Figures 1 and 2 of amini2021 share: the exact laws behind their tables, and points in the plane.

Figure 1 shows two circles in the plane with isotropic noise of several sizes, to illustrate the model (16). Figure 2
shows the first two coordinates of noisy spheres of radii 1, 5 and 10, sigma = 1.5, in several dimensions, isotropic
noise above and radial noise below. Of Figure 2 the paper says that both kinds of noise look qualitatively the same,
and that in high dimensions it is very hard to tell the clusters from a projection to few coordinates. Both pictures
have no numbers. They leave open:

- the radii and the levels of noise of Figure 1: here 1 and 3, and sigma = 0, 0.3, 0.7 and 1.5;
- the dimensions of Figure 2: here 2, 10, 100 and 1000;
- how many points are drawn: here 150, equally many in every cluster.

So that the words can be checked, a table stands beside each picture. The least misclassification rate that any rule
can have is computed from the exact laws of the distance to the origin, which is all that a rule needs: the laws are
invariant under rotations. It is given for all coordinates and for the first two. The total variation distance says how
much the first two coordinates differ between both kinds of noise. For Figure 1 there is also the mean
misclassification rate of Algorithm 1.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from jaxkern import problems
from proofs_check.papers.figures import Numbers, legend_below, panel

SHOWN = 150
BINS = 4000
NODES = 200


def radius_cdf(
    x: Any, *, radius: float, noise: float, dim: int, coordinates: int, radial: bool
) -> np.ndarray:
    """Return P(|P X| <= x) for a point of a noisy sphere, P the projection to the first coordinates, 2 or all.

    The mean is r theta with theta uniform on the sphere; |P theta|^2 has the law Beta(1, (d - 2) / 2) for two
    coordinates. Given it, isotropic noise makes |P X|^2 noncentral chi-square; radial noise multiplies r theta by
    1 + (noise / (r sqrt(d))) xi.

    x : (m,) not negative.
    radius, noise : positive; the standard deviation of a coordinate is noise / sqrt(d).
    """
    x = np.asarray(x, np.float64)
    sd = noise / dim**0.5
    if coordinates < dim:
        return _plane_cdf(x, radius=radius, sd=sd, dim=dim, radial=radial)
    if radial:
        return stats.norm.cdf(x, radius, sd) - stats.norm.cdf(-x, radius, sd)
    return stats.ncx2.cdf((x / sd) ** 2, dim, (radius / sd) ** 2)


def _plane_cdf(
    x: np.ndarray, *, radius: float, sd: float, dim: int, radial: bool
) -> np.ndarray:
    """Return P(|P X| <= x) for the first two of more coordinates."""
    if radial:
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        lengths = np.maximum(np.abs(radius + sd * nodes), 1e-300)
        ratios = np.minimum(x[:, None] / lengths, 1) ** 2
        logs = np.log1p(-np.minimum(ratios, 1 - 1e-16))
        return -np.expm1((dim - 2) / 2 * logs) @ (weights / weights.sum())
    quantiles = (np.arange(NODES) + 0.5) / NODES
    squares = radius**2 * -np.expm1(np.log1p(-quantiles) / ((dim - 2) / 2))
    laws = stats.ncx2.cdf((x[:, None] / sd) ** 2, 2, squares / sd**2)
    return np.mean(laws, axis=1)


def shares(
    radii: Sequence[float], *, noise: float, dim: int, coordinates: int, radial: bool
) -> np.ndarray:
    """Return how the law of |P X| of every cluster is spread over a common grid, (R, BINS + 1), each row of sum one."""
    scale = (coordinates / dim) ** 0.5 * (3 if coordinates < dim else 1)
    farthest = max(radii) + 8 * noise / dim**0.5
    edges = np.linspace(0, scale * farthest + 1e-9, BINS)
    law = partial(
        radius_cdf, noise=noise, dim=dim, coordinates=coordinates, radial=radial
    )
    below = [law(edges, radius=radius) for radius in radii]
    return np.diff(np.array(below), prepend=0, append=1, axis=1)


def least_error(laws: np.ndarray) -> float:
    """Return the least misclassification rate of any rule that sees P X, for clusters of equal shares.

    laws : those of `shares`. Rounding to a grid of 4000 cells can only make it larger, by about 1e-3 at most.
    """
    return float(1 - laws.max(axis=0).sum() / len(laws))


def sample(
    title: str,
    key: Any,
    radii: Sequence[float],
    *,
    noise: float,
    dim: int,
    radial: bool,
) -> dict[str, Any]:
    """Return a panel with the first two coordinates of SHOWN points."""
    spheres = problems.nested_spheres(
        key, num_points=SHOWN, dim=dim, radii=radii, noise=noise, radial=radial
    )
    points = np.asarray(spheres.points[:, :2])
    return panel(title, points, np.asarray(spheres.labels))


def draw_samples(axes: Any, data: Numbers, radii: Sequence[float]) -> None:
    """Draw the points of all panels."""
    for axis, picture in zip(axes, data["pictures"], strict=True):
        clusters = zip(radii, "os^", picture["clusters"], strict=False)
        for radius, marker, points in clusters:
            label = f"radius {radius:g}"
            axis.plot(*np.transpose(points), marker, markersize=2.5, label=label)
        axis.set_aspect("equal", adjustable="datalim")
        axis.tick_params(labelsize=7)
        axis.set_title(picture["title"], fontsize=10)
    legend_below(axes, markerscale=2)
