"""amini2021, Section 1: the alternative decomposition, and eigenvalues."""

import numpy as np

from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.shared import lines, op_norm, parametrized


def _decomposition() -> Check:
    direction = np.array([0.6, 0.8, 0.0])
    along = np.outer(direction, direction)
    across = np.eye(3) - along
    general = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, -0.4], [0.3, -0.4, 3.0]])

    def correlation(setting: Setting) -> np.ndarray:
        """The covariance of the noise along the mean and of what stays with the signal, over |Sigma|."""
        return np.abs(along @ setting.data @ across) / op_norm(setting.data)

    @parametrized(Inequality)
    def sides(setting: Setting, factor: float = 1.0) -> Pairs:
        """Given the signal the noise has the Schur complement as its covariance, which is 1 / (u' Sigma^-1 u)."""
        Sigma = setting.data
        cross = along @ Sigma @ across
        left = op_norm(
            along @ Sigma @ along
            - cross @ np.linalg.pinv(across @ Sigma @ across) @ cross.T
        )
        gap = abs(left - 1 / float(direction @ np.linalg.solve(Sigma, direction)))
        pairs = [(left, factor * op_norm(along @ Sigma @ along)), (gap, 0)]
        return lines(pairs, "amini2021, Section 1, the decomposition")

    anisotropic = (Setting("a general Sigma, d=3", general),)
    return Check(
        printed=Form(
            Identity(correlation), (Setting("Sigma = 2 I, d=3", 2.0 * np.eye(3)),)
        ),
        corrected=Form(sides(), anisotropic),
        controls=(
            Control(
                "a general Sigma",
                Identity(correlation),
                anisotropic,
                "hypothesis broken",
            ),
            Control(
                "three quarters of it", sides(factor=0.75), anisotropic, "wrong factor"
            ),
        ),
    )
