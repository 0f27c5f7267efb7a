"""Many small problems: one vmapped call of ours against a loop over scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks._case import Case, Work, agree
from benchmarks._data import clouds, exact_gram
from benchmarks.clustering import spectral_peer
from jaxkern.clustering import spectral_from_gram

CLUSTERS = 3


@jax.jit
def _all_labels(keys: jax.Array, Ks: jax.Array) -> jax.Array:
    return jax.vmap(lambda key, K: spectral_from_gram(key, K, CLUSTERS).labels)(keys, Ks)


def _spectral(small: bool) -> Work:
    count, n = (5, 60) if small else (1000, 200)
    data = [clouds(n, 5, CLUSTERS, 3.0, seed) for seed in range(count)]
    Ks = np.stack([exact_gram(X, X, 3.0) for X, _ in data]).astype(np.float32)
    there, keys = jnp.asarray(Ks), jax.random.split(jax.random.key(0), count)

    def check(ours: Any, peers: Mapping[str, Any]) -> dict[str, float]:
        found = {"ours": np.asarray(ours), "sklearn": peers["sklearn SpectralClustering"]}
        report = {
            f"mean agreement of {name} with the truth": float(
                np.mean([adjusted_rand_score(true, labels) for (_, true), labels in zip(data, each, strict=True)])
            )
            for name, each in found.items()
        }
        behind = report["mean agreement of sklearn with the truth"] - report["mean agreement of ours with the truth"]
        return report | agree("sklearn's lead in agreement", behind, 0.02)

    return Work(
        ours=lambda: _all_labels(keys, there),
        peers={"sklearn SpectralClustering": lambda: np.stack([spectral_peer(K, CLUSTERS) for K in Ks])},
        check=check,
        items=count,
        unit="problems",
    )


CASES = (
    Case(
        "small-spectral",
        "1,000 spectral clusterings of 200 points by their Gram matrices, 3 clusters each",
        _spectral,
        {"sklearn SpectralClustering": 10},
        rounds=3,
        one_blas_thread=True,
    ),
)
