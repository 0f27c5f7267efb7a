"""Lipschitz constants of Gram matrices and variances of their entries: amini2021, Lemmas 1 and 2, Proposition 4."""

from typing import Any

from jaxkern.bounds._bound import (
    Bound,
    Real,
    exact,
    formula,
    note_of,
    surely,
    xp,
)


@formula
def gaussian_lipschitz(*, lengthscale: Real, as_printed: bool = False) -> Bound:
    """Bound the constant L of the Gaussian kernel in (2) by exp(-1/2) / lengthscale, which no smaller number replaces.

    As printed sqrt(2) / (e lengthscale), which is the slope at the distance sqrt(2) lengthscale; the steepest is at
    one lengthscale.

    Parameters
    ----------
    lengthscale, as_printed : of the kernel, and whether as printed.

    Returns
    -------
    Bound, deterministic, valid for lengthscale > 0.

    Source: amini2021, Example 1; claim amini2021:ex1-lipschitz.
    """
    source = "amini2021, Example 1, L" + note_of(as_printed, "corrected")
    if as_printed:
        slope = xp.sqrt(exact(2.0, lengthscale)) / xp.exp(exact(1.0, lengthscale))
    else:
        slope = xp.exp(exact(-0.5, lengthscale))
    return surely(slope / lengthscale, lengthscale > 0, source)


@formula
def gram_displacement(
    *, lipschitz: Real, num_points: Real, displacement: Real
) -> Bound:
    """Bound |K(X) - K(X')|_F, hence the change of |K(X) - A| for any matrix A, by 2 sqrt(n) L |X - X'|_F.

    Parameters
    ----------
    lipschitz, num_points, displacement : L, n points, and |X - X'|_F.

    Returns
    -------
    Bound, deterministic. K = L (x + y) attains it.

    Source: amini2021, Lemma 1; claim amini2021:lem1.
    """
    return surely(
        2 * xp.sqrt(num_points) * lipschitz * displacement,
        displacement >= 0,
        "amini2021, Lemma 1",
    )


@formula
def gram_displacement_distance(
    *, lipschitz: Real, num_points: Real, displacement: Real
) -> Bound:
    """Bound the quantity of `gram_displacement` for K(x, y) = g(x - y) with L-Lipschitz g by sqrt(2 n) L |X - X'|_F.

    Parameters
    ----------
    lipschitz, num_points, displacement : L, n points, and |X - X'|_F.

    Returns
    -------
    Bound, deterministic, and attained.

    Source: Theorem A of docs/theory/amini2021.md; claim jaxkern:lem1-distance.
    """
    value = xp.sqrt(2 * num_points) * lipschitz * displacement
    return surely(value, displacement >= 0, "jaxkern, Theorem A of amini2021 (Lemma 1)")


@formula
def pair_variance(
    *, lipschitz: Real, omega: Real, scale: Real, c: Real, as_printed: bool = False
) -> Bound:
    """Bound var K(X_1, X_2) under property (33) with constant c by 2 (1 + log 2) L^2 omega^2 scale^2 / c.

    As printed 4 for 2 (1 + log 2) = 3.39, which holds too.

    Parameters
    ----------
    lipschitz, omega, scale, c : L, omega and c of property (33), and max |Sigma_i|^(1/2).
    as_printed : take the statement as printed. Static.

    Returns
    -------
    Bound, deterministic, valid for c > 0.

    Source: amini2021, Lemma 2, first part; claim amini2021:lem2.
    """
    value = (
        (4.0 if as_printed else 2 * spread(c)) / c * (lipschitz * omega * scale) ** 2
    )
    return surely(value, c > 0, "amini2021, Lemma 2" + note_of(as_printed, "sharper"))


@formula
def pair_variance_lc(*, lipschitz: Real, omega: Real, scale: Real) -> Bound:
    """Bound var K(X_1, X_2) in class LC by 2 L^2 omega^2 scale^2: the Poincare inequality.

    Parameters
    ----------
    lipschitz, omega, scale : L in the sense of (2), the constant of LC, and max |Sigma_i|^(1/2).

    Returns
    -------
    Bound, deterministic. K = L (x + y) with Gaussian noise attains it.

    Source: Theorem A of docs/theory/amini2021.md; claim jaxkern:variance-lc.
    """
    return surely(
        2 * (lipschitz * omega * scale) ** 2,
        scale >= 0,
        "jaxkern, Theorem A of amini2021 (a pair)",
    )


@formula
def diagonal_variance(
    *, lipschitz: Real, omega: Real, scale: Real, c: Real, as_printed: bool = False
) -> Bound:
    """Bound var K(X_1, X_1) under property (33) with constant c by 4 (1 + log 2) L^2 omega^2 scale^2 / c.

    As printed 4 for 4 (1 + log 2) = 6.77, which is false: K(x, x) is 2 L-Lipschitz, not sqrt(2) L.

    Parameters
    ----------
    lipschitz, omega, scale, c, as_printed : as in `pair_variance`.

    Returns
    -------
    Bound, deterministic, valid for c > 0.

    Source: amini2021, Lemma 2, second part; claim amini2021:lem2-diagonal.
    """
    value = (
        (4.0 if as_printed else 4 * spread(c)) / c * (lipschitz * omega * scale) ** 2
    )
    return surely(
        value, c > 0, "amini2021, Lemma 2, diagonal" + note_of(as_printed, "corrected")
    )


@formula
def diagonal_variance_lc(*, lipschitz: Real, omega: Real, scale: Real) -> Bound:
    """Bound var K(X_1, X_1) in class LC by 4 L^2 omega^2 scale^2: the Poincare inequality.

    Parameters
    ----------
    lipschitz, omega, scale : L in the sense of (2), the constant of LC, and max |Sigma_i|^(1/2).

    Returns
    -------
    Bound, deterministic. K = L (x + y) with Gaussian noise attains it.

    Source: Theorem A of docs/theory/amini2021.md; claim jaxkern:variance-lc.
    """
    return surely(
        4 * (lipschitz * omega * scale) ** 2,
        scale >= 0,
        "jaxkern, Theorem A of amini2021 (the diagonal)",
    )


@formula
def frobenius_mean_square(
    *,
    lipschitz: Real,
    omega: Real,
    scale: Real,
    num_points: Real,
    c: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound E |K - E K|_F^2 / n^2 under property (33) by 2 (1 + log 2) (1 + 1 / n) L^2 omega^2 scale^2 / c.

    As printed 4 for 2 (1 + log 2) (1 + 1 / n), which is false for n = 1 and true for n >= 6.

    Parameters
    ----------
    lipschitz, omega, scale, c, as_printed : as in `pair_variance`.
    num_points : n points.

    Returns
    -------
    Bound, deterministic, valid for c > 0 and n >= 1.

    Source: amini2021, (6); claim amini2021:eq6.
    """
    factor = 4.0 if as_printed else 2 * spread(c) * (1 + 1 / num_points)
    value = factor / c * (lipschitz * omega * scale) ** 2
    valid = (c > 0) & (num_points >= 1)
    return surely(value, valid, "amini2021, (6)" + note_of(as_printed, "corrected"))


@formula
def frobenius_mean(
    *,
    lipschitz: Real,
    omega: Real,
    scale: Real,
    num_points: Real,
    c: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound E |K - E K|_F under property (33) by L omega scale sqrt(2 (1 + log 2) n (n + 1) / c).

    As printed 2 n / sqrt(c) for the root, which is false for n = 1 and true for n >= 6.

    Parameters
    ----------
    lipschitz, omega, scale, c, as_printed : as in `pair_variance`.
    num_points : n points.

    Returns
    -------
    Bound, deterministic, valid for c > 0 and n >= 1.

    Source: amini2021, Proposition 4; claim amini2021:prop4.
    """
    root = (
        2 * num_points
        if as_printed
        else xp.sqrt(2 * spread(c) * num_points * (num_points + 1))
    )
    value = lipschitz * omega * scale * root / xp.sqrt(c)
    valid = (c > 0) & (num_points >= 1)
    return surely(
        value, valid, "amini2021, Proposition 4" + note_of(as_printed, "corrected")
    )


@formula
def frobenius_mean_lc(
    *, lipschitz: Real, omega: Real, scale: Real, num_points: Real
) -> Bound:
    """Bound the root of E |K - E K|_F^2 in class LC by L omega scale sqrt(2 n (n + 1)).

    Parameters
    ----------
    lipschitz, omega, scale : L in the sense of (2), the constant of LC, and max |Sigma_i|^(1/2), or its root mean
        square.
    num_points : n points.

    Returns
    -------
    Bound, deterministic. K = L (x + y) with Gaussian noise attains it, for every n.

    Source: Theorem A of docs/theory/amini2021.md; claim jaxkern:variance-lc.
    """
    value = lipschitz * omega * scale * xp.sqrt(2 * num_points * (num_points + 1))
    return surely(value, num_points >= 1, "jaxkern, Theorem A of amini2021 (the mean)")


@formula
def gaussian_pair_variance(
    *, squared_distance: Real, noise_variance: Real, lengthscale: Real, dim: Real
) -> Bound:
    """Give var K(X_i, X_j) of the Gaussian kernel exactly, for X_i - X_j ~ N(m, noise_variance I), |m|^2 given.

    With a = noise_variance / lengthscale^2 it is (E K)^2 (exp(g) - 1) = E K^2 (1 - exp(-g)), where
    (E K)^2 = (1 + a)^(-dim) exp(-|m|^2 / (lengthscale^2 (1 + a))) and
    g = dim / 2 log(1 + a^2 / (1 + 2 a)) + |m|^2 a / (lengthscale^2 (1 + a) (1 + 2 a)).

    Parameters
    ----------
    squared_distance, noise_variance, lengthscale, dim : |m|^2, variance of a coordinate of X_i - X_j, and as above.

    Returns
    -------
    Bound, deterministic, an equality, valid for noise_variance >= 0.

    Source: Theorem A of docs/theory/amini2021.md, from amini2021, Lemma 7; claim jaxkern:gaussian-pair-variance.
    """
    a, x = noise_variance / lengthscale**2, squared_distance / lengthscale**2
    g = dim / 2 * xp.log1p(a**2 / (1 + 2 * a)) + x * a / ((1 + a) * (1 + 2 * a))
    # E K^2 (1 - exp(-g)), not (E K)^2 (exp(g) - 1): for far points the second is zero times infinity.
    value = xp.exp(-dim / 2 * xp.log1p(2 * a) - x / (1 + 2 * a)) * -xp.expm1(-g)
    return surely(
        value, noise_variance >= 0, "jaxkern, Theorem A of amini2021 (Gaussian kernel)"
    )


def spread(c: Real) -> Any:
    """Return the number with E f^2 <= spread / c where P(|f| > s) <= 2 exp(-c s^2), in the arithmetic of c.

    It is 1 + log 2: the integral of min(1, 2 exp(-c s^2)) d(s^2) is this over c.
    """
    return 1 + xp.log(exact(2.0, c))
