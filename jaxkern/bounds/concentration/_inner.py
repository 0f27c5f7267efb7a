"""Concentration of the inner product kernel and quadratic forms: amini2021, Section 2.2 and Appendix A.3."""

from typing import Any

from jaxkern.bounds._bound import (
    Bound,
    Real,
    exact,
    fails,
    formula,
    note_of,
    xp,
)


@formula
def inner_product_kernel(
    *,
    kappa: Real,
    scale: Real,
    mean_norm: Real,
    dim: Real,
    num_points: Real,
    u: Real,
    c1: Real,
    c2: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound |K - E K| for K = X'X and independent sub-Gaussian coordinates of norm <= kappa; mean_norm = |M|.

    2 kappa^2 scale^2 eta max(delta^2, delta) with eta = dim + (mean_norm / (kappa scale))^2 and delta =
    (sqrt(C n) + u) / sqrt(eta), C = (log 9 + c1) / c2, with probability 1 - 4 exp(-c1 n - c2 u^2): c2 is the constant c
    of `quadratic_form`, which the paper does not name, and c1 > 0 is free. As printed C = 1, with probability
    1 - 4 n^(-c1) exp(-c2 u^2): false for random signs and n = dim large, whatever c1 and c2 are.

    Parameters
    ----------
    kappa, scale : largest sub-Gaussian norm of a coordinate of W_i, and max |Sigma_i|^(1/2).
    mean_norm, dim, num_points : |M|, the dimension, and n points.
    u, c1, c2, as_printed : deviation, the two constants, and whether as printed.

    Returns
    -------
    Bound, valid for u >= 0, n >= 1 and c1 and c2 > 0.

    Source: amini2021, Theorem 2; claim amini2021:thm2.
    """
    eta = dim + (mean_norm / (kappa * scale)) ** 2
    size = 1.0 if as_printed else (xp.log(exact(9.0, c1)) + c1) / c2
    delta = (xp.sqrt(size * num_points) + u) / xp.sqrt(eta)
    value = 2 * kappa**2 * scale**2 * eta * xp.maximum(delta**2, delta)
    power = c1 * xp.log(num_points) if as_printed else c1 * num_points
    valid = (u >= 0) & (num_points >= 1) & (c1 > 0) & (c2 > 0)
    source = "amini2021, Theorem 2" + note_of(as_printed, "corrected")
    return fails(value, 4, power + c2 * u**2, valid, source)


@formula
def inner_product_gaussian(
    *,
    scale: Real,
    mean_norm: Real,
    mean_rank: Real,
    dim: Real,
    num_points: Real,
    u: Real,
) -> Bound:
    """Bound |K - E K| for K = X'X and X_i ~ N(mu_i, scale^2 I): Theorem 2 with every constant.

    With x = sqrt(n) + u it is scale^2 (2 sqrt(dim) x + x^2) + 2 scale mean_norm (x + sqrt(mean_rank)).

    Parameters
    ----------
    scale, mean_norm, mean_rank : standard deviation of a coordinate, norm and rank of the matrix M of means.
    dim, num_points, u : dimension, n points, and the size of the deviation.

    Returns
    -------
    Bound with probability 1 - 3 exp(-u^2 / 2), valid for u >= 0.

    Source: Theorem B of docs/theory/amini2021.md; claim amini2021:thm2.
    """
    x = xp.sqrt(num_points) + u
    value = scale**2 * (2 * xp.sqrt(dim) * x + x**2) + 2 * scale * mean_norm * (
        x + xp.sqrt(mean_rank)
    )
    source = "jaxkern, Theorem B of amini2021 (isotropic)"
    return fails(value, 3, u**2 / 2, u >= 0, source)


@formula
def inner_product_gaussian_any(
    *, scale: Real, frobenius: Real, mean_norm: Real, num_points: Real, tau: Real
) -> Bound:
    """Bound |K - E K| for K = X'X and X_i ~ N(mu_i, Sigma_i) with any covariances.

    512/449 times `quadratic_form_gaussian` at tau + n log 9, from a 1/4-net of the unit sphere without its negatives.

    Parameters
    ----------
    scale, frobenius, mean_norm : max |Sigma_i|^(1/2), max |Sigma_i|_F, and |M|.
    num_points, tau : n points, and exponent of the failure probability.

    Returns
    -------
    Bound with probability 1 - exp(-tau), valid for tau > 0.

    Source: Theorem B of docs/theory/amini2021.md; claim jaxkern:inner-product-any.
    """
    x = tau + num_points * xp.log(exact(9.0, tau))
    value = (
        exact(512, tau)
        / 449
        * _chaos(frobenius**2 + 2 * (scale * mean_norm) ** 2, scale**2, x)
    )
    source = "jaxkern, Theorem B of amini2021 (any covariances)"
    return fails(value, 1, tau, tau > 0, source)


@formula
def inner_product_lower(
    *, mean_norm: Real, mean_rank: Real, num_points: Real, u: Real
) -> Bound:
    """Bound |M'W + W'M| from *below* by mean_norm (sqrt(n - mean_rank - 1/2) - u), W of independent standard normals.

    It is the limit of |K - E K| for X = M / s + s W as s tends to 0, so the term with |M| in Theorem 2 is needed. The
    paper has 2 |M'W| for the limit, up to twice too much, and sqrt(2 n) mean_norm for the lower bound, which fails.

    Parameters
    ----------
    mean_norm, mean_rank, num_points, u : |M|, the rank of M, n points, and the size of the deviation.

    Returns
    -------
    Bound whose value the norm exceeds, with probability 1 - exp(-u^2 / 2); valid for u >= 0 and n > mean_rank.

    Source: amini2021, Section 2.2, the text after Example 2, corrected; Theorem B of docs/theory/amini2021.md;
    claims amini2021:sec2.2-limit and amini2021:sec2.2-lower.
    """
    free = num_points - mean_rank
    value = mean_norm * (xp.sqrt(xp.maximum(free - 0.5, 0.0)) - u)
    valid = (u >= 0) & (free >= 1)
    source = "amini2021, Section 2.2, sharpness (corrected)"
    return fails(value, 1, u**2 / 2, valid, source)


@formula
def inner_product_lower_centred(
    *, scale: Real, dim: Real, num_points: Real, u: Real
) -> Bound:
    """Bound |K - E K| from *below* for K = X'X and X_i ~ N(0, scale^2 I): the order of Theorem 2 without means.

    scale^2 times the larger of (sqrt(dim - 1/2) - u) (sqrt(n - 3/2) - u) and (sqrt(n + dim - 3/2) - u)^2 - dim.

    Parameters
    ----------
    scale, dim, num_points, u : standard deviation of a coordinate, dimension, n points, and the size of the deviation.

    Returns
    -------
    Bound whose value the norm exceeds, with probability 1 - 3 exp(-u^2 / 2); valid for 0 <= u <= sqrt(dim - 1/2) and
    u <= sqrt(n - 3/2).

    Source: amini2021, Section 2.2 (which names no constant), made explicit; docs/theory/amini2021.md; claim
    amini2021:sec2.2-centred.
    """
    rows, columns = (
        xp.sqrt(xp.maximum(dim - 0.5, 0.0)),
        xp.sqrt(xp.maximum(num_points - 1.5, 0.0)),
    )
    whole = xp.sqrt(xp.maximum(num_points + dim - 1.5, 0.0))
    value = scale**2 * xp.maximum((rows - u) * (columns - u), (whole - u) ** 2 - dim)
    valid = (u >= 0) & (u <= rows) & (u <= columns) & (dim >= 1) & (num_points >= 2)
    source = "amini2021, Section 2.2, without means (explicit)"
    return fails(value, 3, u**2 / 2, valid, source)


@formula
def quadratic_form(
    *, kappa: Real, scale: Real, mean_norm: Real, dim: Real, t: Real, c: Real
) -> Bound:
    """Bound |z'(K - E K) z| for K = X'X and one unit vector z by kappa^2 scale^2 t.

    The probability is 1 - 4 exp(-c min(t^2 / (dim + (mean_norm / (kappa scale))^2), t)), for a constant c that the
    paper does not name. For Gaussian coordinates `quadratic_form_gaussian` has none.

    Parameters
    ----------
    kappa, scale, mean_norm, dim : as in `inner_product_kernel`.
    t, c : deviation, and the constant.

    Returns
    -------
    Bound, valid for t >= 0 and c > 0.

    Source: amini2021, Lemma 3; claim amini2021:lem3.
    """
    eta = dim + (mean_norm / (kappa * scale)) ** 2
    value = kappa**2 * scale**2 * t
    exponent = c * xp.minimum(t**2 / eta, t)
    return fails(value, 4, exponent, (t >= 0) & (c > 0), "amini2021, Lemma 3")


@formula
def quadratic_form_gaussian(
    *, scale: Real, frobenius: Real, mean_norm: Real, tau: Real
) -> Bound:
    """Bound |z'(K - E K) z| for K = X'X, X_i ~ N(mu_i, Sigma_i) and one unit vector z, with every constant.

    2 sqrt(v tau) + 2 scale^2 tau with v = frobenius^2 + 2 scale^2 mean_norm^2.

    Parameters
    ----------
    scale, frobenius, mean_norm : max |Sigma_i|^(1/2), max |Sigma_i|_F (at most scale^2 sqrt(dim)), and |M|.
    tau : exponent of the failure probability.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for tau > 0.

    Source: Theorem B of docs/theory/amini2021.md; claim amini2021:lem3.
    """
    value = _chaos(frobenius**2 + 2 * (scale * mean_norm) ** 2, scale**2, tau)
    return fails(value, 2, tau, tau > 0, "jaxkern, Theorem B of amini2021 (Lemma 3)")


@formula
def hanson_wright(
    *,
    kappa: Real,
    frobenius: Real,
    op_norm: Real,
    mean_frobenius: Real,
    dim: Real,
    t: Real,
    c: Real,
) -> Bound:
    """Bound |Z - E Z| for Z = sum a_ij <X_i, X_j> and independent sub-Gaussian coordinates by kappa^2 t.

    The probability is 1 - 4 exp(-c min(t^2 / (dim frobenius^2 + mean_frobenius^2 / kappa^2), t / op_norm)), for a
    constant c that the paper does not name.

    Parameters
    ----------
    kappa, dim : largest sub-Gaussian norm of a coordinate, and the dimension.
    frobenius, op_norm, mean_frobenius : |A|_F, |A|, and |M (A + A') / 2|_F.
    t, c : deviation, and the constant.

    Returns
    -------
    Bound, valid for t >= 0 and c > 0.

    Source: amini2021, Theorem 6; claim amini2021:thm6.
    """
    spread = dim * frobenius**2 + (mean_frobenius / kappa) ** 2
    exponent = c * xp.minimum(t**2 / spread, t / op_norm)
    valid = (t >= 0) & (c > 0)
    return fails(kappa**2 * t, 4, exponent, valid, "amini2021, Theorem 6")


@formula
def hanson_wright_gaussian(
    *,
    scale: Real,
    frobenius: Real,
    op_norm: Real,
    mean_frobenius: Real,
    dim: Real,
    tau: Real,
) -> Bound:
    """Bound |Z - E Z| for Z = sum a_ij <X_i, X_j> and X_i ~ N(mu_i, Sigma_i), |Sigma_i| <= scale^2.

    2 sqrt(v tau) + 2 scale^2 op_norm tau with v = scale^4 dim frobenius^2 + 2 scale^2 mean_frobenius^2. For Sigma_i =
    scale^2 I and a symmetric A the variance of Z is 2 v.

    Parameters
    ----------
    scale, dim, tau : max |Sigma_i|^(1/2), the dimension, and exponent of the failure probability.
    frobenius, op_norm, mean_frobenius : |A|_F, |A|, and |M (A + A') / 2|_F; the first two may be those of (A + A') / 2.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for tau > 0.

    Source: Theorem B of docs/theory/amini2021.md; claim amini2021:thm6.
    """
    spread = scale**4 * dim * frobenius**2 + 2 * (scale * mean_frobenius) ** 2
    value = _chaos(spread, scale**2 * op_norm, tau)
    return fails(value, 2, tau, tau > 0, "jaxkern, Theorem B of amini2021 (Theorem 6)")


@formula
def sub_exponential(
    *, t: Real, v: Real, alpha: Real, as_printed: bool = False
) -> Bound:
    """Bound |X| by t for a centred X with E exp(s X) <= exp(s^2 v^2 / 2) for |s| <= 1 / alpha.

    The exponent of each tail is t^2 / (2 v^2) for t <= v^2 / alpha and t / alpha - v^2 / (2 alpha^2) beyond. As
    printed min(t^2 / v^2, t / alpha) / 2, which holds and is up to twice smaller.

    Parameters
    ----------
    t, v, alpha, as_printed : deviation, the two numbers of the hypothesis, and whether as printed.

    Returns
    -------
    Bound with probability 1 - 2 exp(-exponent), valid for t >= 0 and v and alpha > 0.

    Source: amini2021, Lemma 5; claim amini2021:lem5.
    """
    if as_printed:
        exponent = xp.minimum((t / v) ** 2, t / alpha) / 2
    else:
        s = xp.minimum(t / v**2, 1 / alpha)  # the best s of Chernoff's bound
        exponent = s * t - (s * v) ** 2 / 2
    valid = (t >= 0) & (v > 0) & (alpha > 0)
    source = "amini2021, Lemma 5" + note_of(as_printed, "sharper")
    return fails(t, 2, exponent, valid, source)


def _chaos(v: Real, b: Real, tau: Real) -> Any:
    """Return 2 sqrt(v tau) + 2 b tau, the deviation of a Gaussian quadratic form."""
    return 2 * xp.sqrt(v * tau) + 2 * b * tau
