"""Right-hand sides of chen2016 and of the random-feature part of ghashami2016, as printed and as corrected.

Each of t frequencies gives a cosine and a sine (`features.paired_fourier`); m features are cosines with random shifts
(`features.shifted_fourier`, the map of ghashami2016). Distances are in units of the lengthscale. D is the kernel
distance, Dhat the distance of the features, K the kernel and Khat the inner product of the features, G and Ghat their
Gram matrices over n points. In most statements the value is the error asked for, and the probability follows from the
sizes.

Everything about relative errors rests on one theorem (Theorem A of docs/theory/chen2016.md): for the Gaussian kernel
Dhat^2 / D^2 is below chi2_t / t in the convex order, at every distance; and it falls in that order as the distance
grows (Theorem E there).
"""

from jaxkern.bounds.fourier._ball import (
    ball,
    ball_additive,
    dimension_limit,
    gradient,
    lipschitz_squared,
    vanishing_ball,
)
from jaxkern.bounds.fourier._given import kernel_values_given, relative_distances_given
from jaxkern.bounds.fourier._gram import (
    gram_frobenius_paired,
    gram_frobenius_paired_bernstein,
    gram_frobenius_shifted,
    gram_spectral_paired,
    gram_spectral_paired_all_n,
    gram_spectral_shifted,
    quadratic_form_paired,
    quadratic_form_shifted,
)
from jaxkern.bounds.fourier._mixture import ball_matern
from jaxkern.bounds.fourier._pair import (
    chi_square_mean,
    distance_lower,
    far_distance,
    kernel_value,
    log_mgf,
    near_distance,
    ratio_lower,
    ratio_upper,
    segment,
    squared_distance_lower,
    sub_exponential,
)
from jaxkern.bounds.fourier._pairs import (
    kernel_values,
    kernel_values_shifted,
    relative_distances,
    relative_distances_closed_form,
    relative_distances_sharp,
    simplex_success_limit,
    success_limit,
)

__all__ = [
    "ball", "ball_additive", "ball_matern", "chi_square_mean", "dimension_limit", "distance_lower", "far_distance",
    "gradient", "gram_frobenius_paired", "gram_frobenius_paired_bernstein", "gram_frobenius_shifted",
    "gram_spectral_paired", "gram_spectral_paired_all_n", "gram_spectral_shifted", "kernel_value", "kernel_values",
    "kernel_values_given", "kernel_values_shifted", "lipschitz_squared", "log_mgf", "near_distance",
    "quadratic_form_paired", "quadratic_form_shifted", "ratio_lower", "ratio_upper", "relative_distances",
    "relative_distances_closed_form", "relative_distances_given", "relative_distances_sharp", "segment",
    "simplex_success_limit", "squared_distance_lower", "sub_exponential", "success_limit", "vanishing_ball",
]  # fmt: skip
