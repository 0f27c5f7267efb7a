"""chen2016, Section 1.2: what unit vectors give, the error of a Gram matrix, and the distance to an object."""

from functools import partial
from math import log, pi
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy import ndarray
from numpy.linalg import eigvalsh
from numpy.random import default_rng

from jaxkern import features
from jaxkern.bounds import fourier
from jaxkern.linalg import HIGHEST
from proofs_check.claim import Check, Identity, Inequality, Setting, Tail
from proofs_check.controls import one_draw
from proofs_check.papers.chen2016.setup import (
    Inputs,
    Sides,
    all_at_most_one,
    all_distances,
    cloud,
    fewest,
    gram_of,
    pairs_by_difference,
    sized,
)
from proofs_check.papers.chen2016.trials import features_on_host, minimum_error
from proofs_check.papers.shared import as_residual, bound_of, check_of, real, wrong


def _relations(
    key: Array, data: Any, K: float, rows: int, *, shifted: bool = False
) -> ndarray:
    """Return the errors of the lengths, of the error of K by that of D^2, and of D^2 by the inner product."""
    pair = data["pair"]
    draw = features.shifted_fourier if shifted else features.paired_fourier
    phi = draw(
        key, data["kernel"], pair.shape[1], num_frequencies=rows, dtype=pair.dtype
    )
    x, y = phi(pair)
    inner = float(jnp.vdot(x, y, precision=HIGHEST))
    squared = float(jnp.sum((x - y) ** 2))
    lengths = [float(jnp.sum(v**2)) - 1 for v in (x, y)]
    errors = abs(K - inner) - abs(2 - 2 * K - squared) / 2
    return as_residual([*lengths, errors, squared - (2 - 2 * inner)])


def sec1_2_unit(inputs: Inputs) -> Check:
    return check_of(
        Identity,
        inputs.pairs,
        wrong("shifted features", "wrong operator", shifted=True),
        printed=_relations,
    )


def _gram_errors(key: Array, data: ndarray, share: float = 1.0) -> Sides:
    X = real(data)
    Z = features_on_host(key, X, 10)
    E = gram_of(X) - Z @ Z.T
    images = np.sum((Z[:, None] - Z[None]) ** 2, axis=2)
    right = share / 2 * np.sum(np.abs(all_distances(X) ** 2 - images))
    columns = np.sum(np.abs(E), axis=0)
    nuclear = np.sum(np.abs(eigvalsh(E)))
    norms = np.array([np.sum(np.abs(E)), np.max(columns), nuclear])
    return all_at_most_one(norms / right, "chen2016, Section 1.2")


def sec1_2_gram() -> Check:
    return check_of(
        Inequality,
        (Setting("12 points", cloud(12)),),
        wrong("a sum over unordered pairs", "wrong factor", share=0.5),
        printed=_gram_errors,
    )


def sec1_2_minimum(inputs: Inputs) -> Check:
    angles = np.arange(24) * 2 * pi / 24
    curve = 0.5 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    others = 0.45 * default_rng(2).uniform(-0.7, 0.7, (7, 2))
    training = np.concatenate([np.zeros((1, 2)), others])
    population = pairs_by_difference(training[:, None] - curve[None])
    unit_disc = partial(fourier.ball, dim=2, diameter=1.0)
    settings = []
    for delta in inputs.deltas:
        tau = log(6 / delta)
        t = fewest(unit_disc, delta, eps=0.3, tau=tau)
        name = f"d=2, eps=0.3, delta={delta:g}, t={t}"
        settings.append(sized(name, population, t, eps=0.3, tau=tau))
    # tau has a default in the formula, so that it is named here.
    bound = bound_of(unit_disc, tau="tau")
    return check_of(
        partial(Tail, minimum_error),
        settings,
        wrong("one frequency, repeated", "reused key", settings=one_draw(settings[:1])),
        corrected=bound,
    )
