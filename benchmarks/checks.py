"""Trials of proofs_check a second, against the same trials written literally in NumPy."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from benchmarks._case import Case, Work, agree
from proofs_check import register
from proofs_check.claim import Setting
from proofs_check.engine.draws import Draw


def _literal(setting: Setting, trials: int) -> np.ndarray:
    """Return |S* V V^T S - Sigma^3| of `trials` samples: every matrix is formed, every norm is that of LAPACK."""
    rng = np.random.default_rng(0)
    features, weights, eigenvalues = (
        np.asarray(setting.data[name], np.float64)
        for name in ("features", "weights", "eigenvalues")
    )
    n, rows = int(setting.numbers["n"]), setting.shapes["rows"]
    out, shares = np.empty(trials), weights / weights.sum()
    for i in range(trials):
        frequencies = rng.multinomial(n, shares) / n
        B = np.sqrt(frequencies)[:, None] * features
        V = (rng.standard_normal((rows, B.shape[0])) @ B) @ (B.T @ B)
        M = V.T @ V / rows
        M[np.diag_indices_from(M)] -= eigenvalues**3
        out[i] = np.abs(np.linalg.eigvalsh(M)).max()
    return out


def _trials(small: bool) -> Work:
    with jax.enable_x64(True):
        (claim,) = register.claims(papers=["kpotufe2020"], only=["kpotufe2020:thm1"])
        form: Any = claim.corrected
        settings, trial = form.settings, form.statement.trial
        setting = min(settings, key=_size) if small else max(settings, key=_size)
        block = 64 if small else 128
        draw = Draw(trial, jax.random.key(0), setting, block=block)
    trials = block if small else 8 * block

    def ours() -> np.ndarray:
        with jax.enable_x64(True):
            return np.concatenate([draw(start) for start in range(0, trials, block)])

    def check(ours: np.ndarray, peers: Mapping[str, np.ndarray]) -> dict[str, float]:
        theirs = peers["numpy"]
        error = (ours.std() ** 2 / ours.size + theirs.std() ** 2 / theirs.size) ** 0.5
        # 6 standard errors: a false alarm once in 10^8, were the means normal; they are skewed, but not that much.
        return agree(
            "difference of the means in standard errors",
            abs(ours.mean() - theirs.mean()) / error,
            6,
        )

    return Work(
        ours=ours,
        peers={"numpy": lambda: _literal(setting, trials)},
        check=check,
        items=trials,
        unit="trials",
    )


def _size(setting: Setting) -> int:
    return np.asarray(setting.data["features"]).size * setting.shapes["rows"]


CASES = (
    Case(
        "proofs-trials",
        "1,024 trials of Theorem 1 of kpotufe2020 in float64, at the setting with the most rows",
        _trials,
        one_blas_thread=True,  # as the command has it
    ),
)
