"""chen2016, Section 1.2: what unit vectors give, the error of a Gram matrix, and the distance to an object."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import features, kernels
from jaxkern.bounds import fourier
from jaxkern.gram import gram
from jaxkern.linalg import HIGHEST
from proofs_check import controls
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting, Tail
from proofs_check.papers.chen2016 import setup, trials
from proofs_check.papers.shared import as_residual, bound_of, real


def _unit_vectors(inputs: setup.Inputs) -> Check:
    def residual(shifted: bool) -> Identity:
        def relations(key: jax.Array, setting: Setting) -> np.ndarray:
            kernel, pair, K = (
                setting.data["kernel"],
                setting.data["pair"],
                setting.numbers["K"],
            )
            draw = features.shifted_fourier if shifted else features.paired_fourier
            x, y = draw(
                key,
                kernel,
                pair.shape[1],
                num_frequencies=setting.shapes["rows"],
                dtype=pair.dtype,
            )(pair)
            inner, squared = (
                float(jnp.vdot(x, y, precision=HIGHEST)),
                float(jnp.sum((x - y) ** 2)),
            )
            lengths = [float(jnp.sum(v**2)) - 1 for v in (x, y)]
            errors = abs(K - inner) - abs(2 - 2 * K - squared) / 2
            return as_residual([*lengths, errors, squared - (2 - 2 * inner)])

        return Identity(relations)

    return Check(
        printed=Form(residual(shifted=False), inputs.pairs),
        controls=(
            Control(
                "shifted features",
                residual(shifted=True),
                inputs.pairs,
                "wrong operator",
            ),
        ),
    )


def _gram_error() -> Check:
    def holds(share: float) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            X, kernel = real(setting.data), kernels.Gaussian(1.0)
            phi = features.paired_fourier(
                key, kernel, X.shape[1], num_frequencies=10, dtype=X.dtype
            )
            Z = np.asarray(phi(X), float)
            E = np.asarray(gram(kernel, X), float) - Z @ Z.T
            images = np.sum((Z[:, None] - Z[None]) ** 2, axis=2)
            right = share / 2 * np.sum(np.abs(setup.all_distances(X) ** 2 - images))
            norms = (
                np.sum(np.abs(E)),
                np.max(np.sum(np.abs(E), axis=0)),
                np.sum(np.abs(np.linalg.eigvalsh(E))),
            )
            return setup.all_at_most_one(norms / right, "chen2016, Section 1.2")

        return Inequality(both)

    settings = (Setting("12 points", setup.cloud(12)),)
    return Check(
        printed=Form(holds(1.0), settings),
        controls=(
            Control("a sum over unordered pairs", holds(0.5), settings, "wrong factor"),
        ),
    )


def _minimum_distance(inputs: setup.Inputs) -> Check:
    angles = np.arange(24) * 2 * math.pi / 24
    curve = 0.5 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    training = np.concatenate(
        [[[0.0, 0.0]], 0.45 * np.random.default_rng(2).uniform(-0.7, 0.7, (7, 2))]
    )
    population = setup.pairs_by_difference(training[:, None] - curve[None])
    unit_disc = functools.partial(fourier.ball, dim=2, diameter=1.0)
    settings = []
    for delta in inputs.deltas:
        tau = math.log(6 / delta)
        t = setup.fewest(functools.partial(unit_disc, eps=0.3, tau=tau), delta)
        numbers = {"eps": 0.3, "t": float(t), "tau": tau}
        settings.append(
            Setting(
                f"d=2, eps=0.3, delta={delta:g}, t={t}",
                population,
                numbers,
                {"rows": t},
            )
        )
    statement = Tail(
        trials.minimum_error, bound_of(unit_disc, num_frequencies="t", tau="tau")
    )
    return Check(
        corrected=Form(statement, tuple(settings)),
        controls=(
            Control(
                "one frequency, repeated",
                statement,
                controls.one_draw(settings[:1]),
                "reused key",
            ),
        ),
    )
