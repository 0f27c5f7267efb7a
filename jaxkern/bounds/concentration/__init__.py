"""Right-hand sides of amini2021 (concentration of kernel matrices), as printed and as corrected.

The n points X_i = mu_i + S_i W_i of R^dim are independent, and S_i S_i' = Sigma_i; `scale` is the paper's
sigma_infinity, the maximum of |Sigma_i|^(1/2). In the models with noise N(0, sigma^2 I / dim), `noise` is sigma and
`lengthscale` the paper's tau. K is the Gram matrix of the kernel, and the diagonal of its mean E K holds E K(X_i, X_i).

Class LC, in which omega is 1 for Gaussian noise, needs one hypothesis that the paper leaves out: the density of case
(b) is bounded below on an *interval*. Then omega / sqrt(2 pi) may be passed for omega. "Property (33)" with a constant
c means P(f - E f > s) <= exp(-c s^2 / omega^2) for every 1-Lipschitz f of all W_i together; c = 1/2 holds for all of
LC. Proofs: docs/theory/amini2021.md.
"""

from jaxkern.bounds.concentration._blocks import (
    BlockParameters,
    block_parameters,
    population_parameters,
)
from jaxkern.bounds.concentration._clustering import (
    kmeans_step,
    misclassification,
    misclassification_operator,
    misclassification_operator_distance,
    misclassification_operator_inner_product,
    misclassification_population,
    truncation,
    truncation_eigengap,
)
from jaxkern.bounds.concentration._inner import (
    hanson_wright,
    hanson_wright_gaussian,
    inner_product_gaussian,
    inner_product_gaussian_any,
    inner_product_kernel,
    inner_product_lower,
    inner_product_lower_centred,
    quadratic_form,
    quadratic_form_gaussian,
    sub_exponential,
)
from jaxkern.bounds.concentration._kernel import (
    anisotropic_noise,
    concentrated_data,
    deviation,
    distance_kernel,
    distance_kernel_from_variance,
    gaussian_kernel,
    lipschitz_kernel,
    lower_limit,
)
from jaxkern.bounds.concentration._spheres import (
    isotropic_block_mean,
    isotropic_block_variance,
    isotropic_block_variance_lower,
    isotropic_block_variance_upper,
    radial_block_variance,
    radial_mean_gap,
    sphere_moment,
)
from jaxkern.bounds.concentration._statistics import (
    block_means,
    block_variances,
    empirical_separation,
    empirical_variance,
    two_sample_statistic,
    u_statistic,
)
from jaxkern.bounds.concentration._variance import (
    diagonal_variance,
    diagonal_variance_lc,
    frobenius_mean,
    frobenius_mean_lc,
    frobenius_mean_square,
    gaussian_lipschitz,
    gaussian_pair_variance,
    gram_displacement,
    gram_displacement_distance,
    pair_variance,
    pair_variance_lc,
)

__all__ = [
    "BlockParameters", "anisotropic_noise", "block_means", "block_parameters", "block_variances", "concentrated_data",
    "deviation", "diagonal_variance", "diagonal_variance_lc", "distance_kernel", "distance_kernel_from_variance",
    "empirical_separation", "empirical_variance", "frobenius_mean", "frobenius_mean_lc", "frobenius_mean_square",
    "gaussian_kernel", "gaussian_lipschitz", "gaussian_pair_variance", "gram_displacement",
    "gram_displacement_distance", "hanson_wright", "hanson_wright_gaussian", "inner_product_gaussian",
    "inner_product_gaussian_any", "inner_product_kernel", "inner_product_lower", "inner_product_lower_centred",
    "isotropic_block_mean", "isotropic_block_variance", "isotropic_block_variance_lower",
    "isotropic_block_variance_upper", "kmeans_step", "lipschitz_kernel", "lower_limit", "misclassification",
    "misclassification_operator", "misclassification_operator_distance", "misclassification_operator_inner_product",
    "misclassification_population", "pair_variance", "pair_variance_lc", "population_parameters", "quadratic_form",
    "quadratic_form_gaussian", "radial_block_variance", "radial_mean_gap", "sphere_moment", "sub_exponential",
    "truncation", "truncation_eigengap", "two_sample_statistic", "u_statistic",
]  # fmt: skip
