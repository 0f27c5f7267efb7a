"""Right-hand sides of kpotufe2020 (Kernel JL), as printed and as corrected.

S = |Sigma|_op, and the effective ranks are s = tr Sigma / S and s3 = tr Sigma^3 / S^3. The paper leaves the constant of
its d-term open. Here it has the value `KOLTCHINSKII_LOUNICI_TRACE` = 3.51, proved in docs/theory/kpotufe2020.md
(Theorem A there), where the corrections are derived too.

A bound is not valid for quantities that no kernel has together. They must meet S <= |Sigma|_HS <= sqrt(S tr Sigma),
S <= tr Sigma <= kappa and S^3 <= tr Sigma^3 <= S^2 tr Sigma, up to 1e-9 (1.5e-5 for float32). To mix the norms of K
with those of K / n violates them.
"""

from jaxkern.bounds.sketching._covariance import (
    KOLTCHINSKII_LOUNICI,
    KOLTCHINSKII_LOUNICI_LOWER,
    KOLTCHINSKII_LOUNICI_TRACE,
    covariance_deviation,
    covariance_deviation_bernstein,
    covariance_deviation_operator,
    covariance_deviation_sharp,
    cube_deviation,
    cube_trace,
    gaussian_covariance,
    hilbert_mean,
)
from jaxkern.bounds.sketching._difference import (
    law_distance,
    weak_difference,
    weak_difference_coupled,
    weak_difference_given,
)
from jaxkern.bounds.sketching._inner_products import (
    conditional_sketch,
    inner_products,
    inner_products_all_d,
    inner_products_every_n,
    inner_products_intrinsic,
    projected_inner_products,
    projected_inner_products_all_d,
    relative_norms,
)
from jaxkern.bounds.sketching._separation import (
    largest_stretch,
    mean_separation_shortfall,
    relative_separation,
    separation_shortfall,
)

__all__ = [
    "KOLTCHINSKII_LOUNICI", "KOLTCHINSKII_LOUNICI_LOWER", "KOLTCHINSKII_LOUNICI_TRACE",
    "conditional_sketch", "covariance_deviation",
    "covariance_deviation_bernstein", "covariance_deviation_operator", "covariance_deviation_sharp", "cube_deviation",
    "cube_trace", "gaussian_covariance", "hilbert_mean", "inner_products", "inner_products_all_d",
    "inner_products_every_n", "inner_products_intrinsic", "largest_stretch", "law_distance",
    "mean_separation_shortfall",
    "projected_inner_products", "projected_inner_products_all_d", "relative_norms", "relative_separation",
    "separation_shortfall", "weak_difference", "weak_difference_coupled", "weak_difference_given",
]  # fmt: skip
