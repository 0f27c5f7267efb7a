"""Gram matrices of random features and their quadratic forms: ghashami2016, section 3."""

from jaxkern.bounds._bound import Bound, Real, exact, formula, note_of, xp
from jaxkern.bounds.fourier._pair import fails


@formula
def gram_spectral_shifted(
    *, eps: Real, num_features: Real, num_points: Real, as_printed: bool = False
) -> Bound:
    """Bound |G - Ghat|_2 / n by eps for shifted features: matrix Bernstein, 2 n exp(-eps^2 m / (2 + 4 eps / 3)).

    As printed the exponent is eps^2 m / (9 + 8 eps), from a weaker inequality and two triangle inequalities.

    Parameters
    ----------
    eps, num_features, num_points, as_printed : error, m features and n points, and whether as printed.

    Returns
    -------
    Bound, valid for eps > 0 and every shift-invariant kernel with K(x, x) = 1.

    Source: ghashami2016, Lemma 3.1; claim ghashami2016:lem3.1.
    """
    scale = 9 + 8 * eps if as_printed else 2 + 4 * eps / 3
    log_failure = xp.log(2 * num_points) - eps**2 * num_features / scale
    return fails(
        eps,
        log_failure,
        eps > 0,
        "ghashami2016, Lemma 3.1" + note_of(as_printed, "constants corrected"),
    )


@formula
def gram_spectral_paired(
    *, eps: Real, num_frequencies: Real, num_points: Real
) -> Bound:
    """Bound |G - Ghat|_2 / n by eps for paired features: 2 n exp(-eps^2 t / (1/2 + 2 eps / 3)).

    At equal numbers of features, m = 2 t, this is about half of what shifted features need.

    Parameters
    ----------
    eps, num_frequencies, num_points : error, t frequencies and n points.

    Returns
    -------
    Bound, valid for eps > 0 and every shift-invariant kernel with K(x, x) = 1.

    Source: ghashami2016, Lemma 3.1, for paired features; docs/theory/ghashami2016.md; claim jaxkern:gram-spectral.
    """
    log_failure = xp.log(2 * num_points) - eps**2 * num_frequencies / (
        0.5 + 2 * eps / 3
    )
    return fails(eps, log_failure, eps > 0, "ghashami2016, Lemma 3.1 (paired features)")


@formula
def gram_spectral_paired_all_n(*, eps: Real, num_frequencies: Real) -> Bound:
    """Bound |G - Ghat|_2 / n by eps for paired features, whatever n: 40 exp(-eps^2 t / (1/2 + 2 eps / 3)).

    The intrinsic dimension of the variance, at most 5, replaces n.

    Parameters
    ----------
    eps, num_frequencies : error, and t frequencies.

    Returns
    -------
    Bound, valid for eps >= 1 / (2 sqrt(t)) + 1 / (3 t) and every shift-invariant kernel with K(x, x) = 1.

    Source: Theorem C of docs/theory/ghashami2016.md; claim jaxkern:gram-spectral-all-n.
    """
    log_failure = xp.log(exact(40, eps)) - eps**2 * num_frequencies / (
        0.5 + 2 * eps / 3
    )
    valid = eps >= 1 / (2 * xp.sqrt(num_frequencies)) + 1 / (3 * num_frequencies)
    return fails(eps, log_failure, valid, "jaxkern, Theorem C of ghashami2016")


@formula
def gram_frobenius_shifted(
    *, num_features: Real, tau: Real, variance: Real = 1.5
) -> Bound:
    """Bound |G - Ghat|_F / n for shifted features by (sqrt(variance) + 2 sqrt(tau)) / sqrt(m), whatever n.

    Equivalently m = (sqrt(1.5) + 2 sqrt(log(1 / delta)))^2 / eps^2 features give an error of eps n.

    Parameters
    ----------
    num_features, tau : m features, and exponent of the failure probability.
    variance : the largest of 1 + K(2 d) / 2 - K(d)^2 over differences d: at most 3/2 for every kernel, 1 for the
        Gaussian one.

    Returns
    -------
    Bound with probability 1 - exp(-tau), valid for tau > 0.

    Source: Theorem A of docs/theory/ghashami2016.md; claims jaxkern:gram-frobenius, jaxkern:gram-frobenius-identity.
    """
    value = (xp.sqrt(variance) + 2 * xp.sqrt(tau)) / xp.sqrt(num_features)
    return fails(value, -tau, tau > 0, "jaxkern, Theorem A of ghashami2016")


@formula
def gram_frobenius_paired(
    *, num_frequencies: Real, tau: Real, variance: Real = 1.0
) -> Bound:
    """Bound |G - Ghat|_F / n for paired features by (sqrt(variance) + sqrt(tau)) / sqrt(t), whatever n.

    Parameters
    ----------
    num_frequencies, tau : t frequencies, and exponent of the failure probability.
    variance : the largest of (1 + K(2 d)) / 2 - K(d)^2 over differences d: at most 1 for every kernel, 1/2 for the
        Gaussian and every other kernel with K(2 d) <= 2 K(d)^2.

    Returns
    -------
    Bound with probability 1 - exp(-tau), valid for tau > 0.

    Source: Theorem A of docs/theory/ghashami2016.md; claim jaxkern:gram-frobenius-paired.
    """
    value = (xp.sqrt(variance) + xp.sqrt(tau)) / xp.sqrt(num_frequencies)
    return fails(
        value, -tau, tau > 0, "jaxkern, Theorem A of ghashami2016 (paired features)"
    )


@formula
def gram_frobenius_paired_bernstein(
    *, eps: Real, num_frequencies: Real, variance: Real = 1.0
) -> Bound:
    """Bound |G - Ghat|_F / n by eps for paired features, whatever n: 2 exp(-eps^2 t / (2 v + 2 sqrt(2) eps / 3)).

    v is the variance. The smaller of the two bounds for small failure probabilities.

    Parameters
    ----------
    eps, num_frequencies : error, and t frequencies.
    variance : v, as in `gram_frobenius_paired`.

    Returns
    -------
    Bound, valid for eps > 0.

    Source: Theorem B of docs/theory/ghashami2016.md; claim jaxkern:gram-frobenius-bernstein.
    """
    log_failure = xp.log(exact(2, eps)) - eps**2 * num_frequencies / (
        2 * variance + 2 * xp.sqrt(exact(2.0, eps)) * eps / 3
    )
    return fails(eps, log_failure, eps > 0, "jaxkern, Theorem B of ghashami2016")


@formula
def quadratic_form_shifted(
    *, eps: Real, num_features: Real, as_printed: bool = False
) -> Bound:
    """Bound |x' (G - Ghat) x| / n by eps for one unit vector x and shifted features: 2 exp(-.823 eps^2 m).

    .8231 for .823 would be false. As printed in the last line of its proof 2 exp(-2 eps^2 m), and false.

    Parameters
    ----------
    eps, num_features, as_printed : error, m features, and whether as printed.

    Returns
    -------
    Bound, valid for eps > 0 and every shift-invariant kernel with K(x, x) = 1.

    Source: ghashami2016, Theorem 3.1; docs/theory/ghashami2016.md; claims ghashami2016:thm3.1 and
    jaxkern:quadratic-form-shifted.
    """
    factor = 2 if as_printed else 0.823
    log_failure = xp.log(exact(2, eps)) - factor * eps**2 * num_features
    return fails(
        eps,
        log_failure,
        eps > 0,
        "ghashami2016, Theorem 3.1" + note_of(as_printed, "corrected"),
    )


@formula
def quadratic_form_paired(*, eps: Real, num_frequencies: Real) -> Bound:
    """Bound |x' (G - Ghat) x| / n by eps for one unit vector x and paired features: 2 exp(-2 eps^2 t).

    The exponent printed for m shifted features holds for t pairs of them; no larger one does for all eps.

    Parameters
    ----------
    eps, num_frequencies : error, and t frequencies.

    Returns
    -------
    Bound, valid for eps > 0 and every shift-invariant kernel with K(x, x) = 1.

    Source: ghashami2016, Theorem 3.1, for paired features; docs/theory/ghashami2016.md; claim
    jaxkern:quadratic-form-paired.
    """
    log_failure = xp.log(exact(2, eps)) - 2 * eps**2 * num_frequencies
    return fails(
        eps, log_failure, eps > 0, "ghashami2016, Theorem 3.1 (paired features)"
    )
