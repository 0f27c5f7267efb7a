"""Figure 2 of amini2021: two coordinates of noisy spheres, and what they say about the clusters.

What it leaves open, and what the least rate of all rules is, says `amini2021.scatter`.
"""

from functools import partial
from typing import Any

import jax
import numpy as np

from proofs_check.papers.amini2021 import scatter
from proofs_check.papers.amini2021.figure3 import MODELS, NOISE, RADII
from proofs_check.papers.figures import Numbers, Tables

TABLES: Tables = {
    "rows": {
        "d": "{dim}",
        "isotropic, two": "{isotropic, two:.3f}",
        "radial, two": "{radial, two:.3f}",
        "isotropic, all": "{isotropic, all:.3f}",
        "radial, all": "{radial, all:.3f}",
        "difference": "{difference:.3f}",
    }
}
PANELS = (2, 4)
SIZE = (10.4, 5.6)
DIMS = (2, 10, 100, 1000)


def data(*, seed: int) -> dict[str, Any]:
    """Return the least misclassification rates for every dimension, and the points that are drawn."""
    pictures: list[dict[str, Any]] = []
    for model in MODELS:
        for dim in DIMS:
            points = scatter.sample(
                f"{model}, d = {dim}",
                jax.random.fold_in(jax.random.key(seed), len(pictures)),
                RADII,
                noise=NOISE,
                dim=dim,
                radial=model == "radial",
            )
            pictures.append(points)
    return {"rows": [measure(dim) for dim in DIMS], "pictures": pictures}


def measure(dim: int) -> dict[str, Any]:
    """Return the least rates from two and from all coordinates, and how the noises differ in two.

    `difference` is the total variation distance between both kinds of noise.
    """
    row: dict[str, Any] = {"dim": dim}
    laws = []
    for model in MODELS:
        radial = model == "radial"
        law = partial(scatter.shares, RADII, noise=NOISE, dim=dim, radial=radial)
        plane = law(coordinates=2)
        row[f"{model}, two"] = scatter.least_error(plane)
        row[f"{model}, all"] = scatter.least_error(law(coordinates=dim))
        laws.append(plane.mean(axis=0))
    row["difference"] = float(np.abs(laws[0] - laws[1]).sum() / 2)
    return row


def draw(axes: Any, data: Numbers) -> None:
    """Draw the spheres, isotropic noise above and radial noise below."""
    scatter.draw_samples(axes, data, RADII)
