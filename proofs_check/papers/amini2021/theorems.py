"""Claims of amini2021: concentration of kernel matrices, and kernel spectral clustering.

`docs/theory/amini2021.md` derives every correction. On a user's table the statements about Gaussian kernels and about
Lemma 1 are tried around its rows; the others, which need clusters, special kernels or special laws, stay as they are.
"""

from __future__ import annotations

from proofs_check.claim import Claim
from proofs_check.papers.amini2021 import bandwidth as amini2021_bandwidth
from proofs_check.papers.amini2021 import clustering as amini2021_clustering
from proofs_check.papers.amini2021 import constants as amini2021_constants
from proofs_check.papers.amini2021 import inner as amini2021_inner
from proofs_check.papers.amini2021 import lipschitz as amini2021_lipschitz
from proofs_check.papers.amini2021 import rates as amini2021_rates
from proofs_check.papers.amini2021 import remarks as amini2021_remarks
from proofs_check.papers.amini2021 import spheres as amini2021_spheres
from proofs_check.papers.amini2021 import statistics as amini2021_statistics
from proofs_check.papers.amini2021 import steps as amini2021_steps
from proofs_check.papers.amini2021 import trials as _amini2021_trials
from proofs_check.papers.amini2021 import variances as amini2021_variances
from proofs_check.papers.populations import Population


def claims(data: Population | None = None, *, full: bool = False) -> list[Claim]:
    """Return the claims of the paper, section by section, and then ours."""
    deltas = (0.05, 0.01) if full else (0.05,)
    models = _amini2021_trials.gaussian_models(data)
    return [
        *amini2021_constants.claims(data),
        *amini2021_variances.claims(data),
        *amini2021_lipschitz.claims(models, deltas),
        *amini2021_rates.claims(),
        *amini2021_remarks.claims(deltas),
        *amini2021_inner.claims(deltas),
        *amini2021_clustering.claims(deltas),
        *amini2021_statistics.claims(),
        *amini2021_spheres.claims(),
        *amini2021_bandwidth.claims(),
        *amini2021_steps.claims(),
        *amini2021_constants.ours(),
        *amini2021_variances.ours(),
        *amini2021_lipschitz.ours(models, deltas),
        *amini2021_inner.ours(deltas),
        *amini2021_clustering.ours(deltas[:1]),
        *amini2021_spheres.ours(),
    ]
