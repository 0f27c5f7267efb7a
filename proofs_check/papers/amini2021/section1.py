"""amini2021, Section 1: the alternative decomposition, and eigenvalues."""

from functools import partial

import numpy as np

from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting
from proofs_check.papers.amini2021.setup import (
    Pairs,
)
from proofs_check.papers.shared import lines, op_norm

DIRECTION = np.array([0.6, 0.8, 0.0])
ALONG = np.outer(DIRECTION, DIRECTION)
ACROSS = np.eye(3) - ALONG
GENERAL = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, -0.4], [0.3, -0.4, 3.0]])


def correlation(data: np.ndarray) -> np.ndarray:
    """The covariance of the noise along the mean and of what stays with the signal, over |Sigma|."""
    return np.abs(ALONG @ data @ ACROSS) / op_norm(data)


def noise_given_signal(data: np.ndarray, factor: float = 1.0) -> Pairs:
    """Given the signal the noise has the Schur complement as its covariance, which is 1 / (u' Sigma^-1 u)."""
    noise = ALONG @ data @ ALONG
    cross = ALONG @ data @ ACROSS
    schur = noise - cross @ np.linalg.pinv(ACROSS @ data @ ACROSS) @ cross.T
    left = op_norm(schur)
    precision = float(DIRECTION @ np.linalg.solve(data, DIRECTION))
    gap = abs(left - 1 / precision)
    pairs = [(left, factor * op_norm(noise)), (gap, 0)]
    return lines(pairs, "amini2021, Section 1, the decomposition")


def sec1_decomposition() -> Check:
    isotropic = (Setting("Sigma = 2 I, d=3", 2.0 * np.eye(3)),)
    general = (Setting("a general Sigma, d=3", GENERAL),)
    uncorrelated = Identity(correlation)
    smaller = Inequality(partial(noise_given_signal, factor=0.75))
    return Check(
        printed=Form(uncorrelated, isotropic),
        corrected=Form(Inequality(noise_given_signal), general),
        controls=(
            Control("a general Sigma", uncorrelated, general, "hypothesis broken"),
            Control("three quarters of it", smaller, general, "wrong factor"),
        ),
    )
