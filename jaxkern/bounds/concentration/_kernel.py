"""Concentration of the Gram matrix of a Lipschitz kernel: amini2021, Section 2.1."""

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
from jaxkern.bounds.concentration._variance import spread


@formula
def lipschitz_kernel(
    *,
    lipschitz: Real,
    omega: Real,
    scale: Real,
    num_points: Real,
    t: Real,
    mean_scale: Real | None = None,
    c: Real = 0.5,
    as_printed: bool = False,
) -> Bound:
    """Bound |K - E K|_F, hence |K - E K|, in class LC by L omega (mean_scale sqrt(2 n (n + 1)) + 2 scale sqrt(n) t).

    As printed the operator norm is bounded by 2 L omega scale (n / sqrt(c) + sqrt(n) t) with probability 1 - exp(-c
    t^2) for a universal c; it is false for case (b) of LC with a gap in the support, and otherwise c = 1/2 is right.

    Parameters
    ----------
    lipschitz, omega, scale : L in the sense of (2), the constant of LC, and max |Sigma_i|^(1/2).
    num_points, t : n points, and the size of the deviation.
    mean_scale : root mean square of |Sigma_i|^(1/2), or None for scale. Not used as printed.
    c, as_printed : the universal constant, of the statement as printed only, and whether to take that.

    Returns
    -------
    Bound with probability 1 - exp(-t^2 / 2), valid for t >= 0 and n >= 1.

    Source: amini2021, Theorem 1; Theorem A of docs/theory/amini2021.md; claims amini2021:thm1 and jaxkern:thm1-lc.
    """
    valid = (t >= 0) & (num_points >= 1)
    source = "amini2021, Theorem 1" + note_of(as_printed, "explicit")
    if as_printed:
        value = _printed(lipschitz, omega, scale, num_points, t, c)
        return fails(value, 1, c * t**2, valid, source)
    typical = scale if mean_scale is None else mean_scale
    mean = typical * xp.sqrt(2 * num_points * (num_points + 1))
    value = lipschitz * omega * (mean + 2 * scale * xp.sqrt(num_points) * t)
    return fails(value, 1, t**2 / 2, valid, source)


@formula
def distance_kernel(
    *,
    lipschitz: Real,
    omega: Real,
    scale: Real,
    num_points: Real,
    t: Real,
    mean_scale: Real | None = None,
) -> Bound:
    """Bound |K - E K|_F in class LC for K(x, y) = g(x - y) with L-Lipschitz g, such as f(|x - y|).

    L omega (mean_scale sqrt(2 n (n - 1)) + scale sqrt(2 n) t): the diagonal is constant, and a common shift of all
    points changes nothing.

    Parameters
    ----------
    lipschitz, omega, scale, num_points, t, mean_scale : as in `lipschitz_kernel`.

    Returns
    -------
    Bound with probability 1 - exp(-t^2 / 2), valid for t >= 0 and n >= 1.

    Source: Theorem A of docs/theory/amini2021.md; claim jaxkern:distance-kernel.
    """
    typical = scale if mean_scale is None else mean_scale
    mean = typical * xp.sqrt(2 * num_points * (num_points - 1))
    value = lipschitz * omega * (mean + scale * xp.sqrt(2 * num_points) * t)
    valid = (t >= 0) & (num_points >= 1)
    source = "jaxkern, Theorem A of amini2021 (distance kernels)"
    return fails(value, 1, t**2 / 2, valid, source)


@formula
def distance_kernel_from_variance(
    *,
    total_variance: Real,
    lipschitz: Real,
    omega: Real,
    scale: Real,
    num_points: Real,
    t: Real,
) -> Bound:
    """Bound the quantity of `distance_kernel` by sqrt(total_variance) + L omega scale sqrt(2 n) t.

    For the Gaussian kernel total_variance is known exactly, by `gaussian_pair_variance`.

    Parameters
    ----------
    total_variance : sum of var K(X_i, X_j) over all i and j, or any upper bound of it.
    lipschitz, omega, scale, num_points, t : as in `lipschitz_kernel`.

    Returns
    -------
    Bound with probability 1 - exp(-t^2 / 2), valid for t >= 0 and n >= 1.

    Source: Theorem A of docs/theory/amini2021.md; claim jaxkern:distance-kernel-variance.
    """
    value = (
        xp.sqrt(total_variance)
        + lipschitz * omega * scale * xp.sqrt(2 * num_points) * t
    )
    valid = (t >= 0) & (num_points >= 1)
    source = "jaxkern, Theorem A of amini2021 (known variance)"
    return fails(value, 1, t**2 / 2, valid, source)


@formula
def concentrated_data(
    *,
    lipschitz: Real,
    omega: Real,
    scale: Real,
    num_points: Real,
    t: Real,
    c: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound |K - E K|_F under property (33) alone, in which the points need not be independent.

    L omega scale (sqrt(2 (1 + log 2) n (n + 1) / c) + 2 sqrt(n) t). As printed 2 L omega scale (n / sqrt(c) +
    sqrt(n) t), from Proposition 4, which is false for n = 1; this is the larger of the two for n >= 6.

    Parameters
    ----------
    lipschitz, omega, scale, c : L, omega and c of property (33), and max |Sigma_i|^(1/2).
    num_points, t, as_printed : n points, the size of the deviation, and whether as printed.

    Returns
    -------
    Bound with probability 1 - exp(-c t^2), valid for t >= 0, c > 0 and n >= 1.

    Source: amini2021, Theorem 1 and the remark after it; claim amini2021:thm1-33.
    """
    valid = (t >= 0) & (c > 0) & (num_points >= 1)
    source = "amini2021, Theorem 1 under (33)" + note_of(as_printed, "corrected")
    if as_printed:
        value = _printed(lipschitz, omega, scale, num_points, t, c)
        return fails(value, 1, c * t**2, valid, source)
    root = (
        xp.sqrt(2 * spread(c) * num_points * (num_points + 1) / c)
        + 2 * xp.sqrt(num_points) * t
    )
    return fails(lipschitz * omega * scale * root, 1, c * t**2, valid, source)


@formula
def deviation(
    *,
    lipschitz: Real,
    omega: Real,
    scale: Real,
    num_points: Real,
    t: Real,
    c: Real = 0.5,
) -> Bound:
    """Bound V - E V for V = |K - E K| under property (33) by 2 sqrt(n) L scale omega t.

    The sentence that follows in the paper, that the sub-Gaussian norm of V is of this order, is false: E V may be of
    order n (`lower_limit`). It holds for V - E V.

    Parameters
    ----------
    lipschitz, omega, scale, c : L, omega and c of property (33), and max |Sigma_i|^(1/2).
    num_points, t : n points, and the size of the deviation.

    Returns
    -------
    Bound with probability 1 - exp(-c t^2), valid for t >= 0 and c > 0.

    Source: amini2021, Proposition 3; claims amini2021:prop3 and amini2021:prop3-norm.
    """
    value = 2 * xp.sqrt(num_points) * lipschitz * scale * omega * t
    valid = (t >= 0) & (c > 0)
    return fails(value, 1, c * t**2, valid, "amini2021, Proposition 3")


@formula
def lower_limit(*, lipschitz: Real, scale: Real, num_points: Real) -> Bound:
    """Bound |K - E K| from *below* by L scale n / 8, for points and a kernel that show Theorem 1 to be of right order.

    The points are independent copies of a symmetric X with P(|X| > scale) = 1/2, and K(x, y) = h(x) h(y) with
    h(x) = sqrt(L / scale) times x clipped to [-scale, scale].

    Parameters
    ----------
    lipschitz, scale, num_points : L, the median of |X|, and n points.

    Returns
    -------
    Bound whose value the norm exceeds, with probability 1 - exp(-n / 8); valid for n >= 8.

    Source: amini2021, Proposition 1; claim amini2021:prop1.
    """
    value = lipschitz * scale * num_points / 8
    valid = num_points >= 8
    return fails(value, 1, num_points / 8, valid, "amini2021, Proposition 1")


@formula
def gaussian_kernel(
    *,
    noise: Real,
    lengthscale: Real,
    dim: Real,
    num_points: Real,
    t: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound |K - E K| / n for the Gaussian kernel and noise N(0, noise^2 I / dim) around any centres.

    exp(-1/2) (noise / lengthscale) dim^(-1/2) (sqrt(2 (1 - 1 / n)) + 2 t / sqrt(n)). As printed
    (4 / e) (noise / lengthscale) dim^(-1/2) (1 + t / sqrt(n)): that holds, as it is larger, though it is derived from a
    wrong Lipschitz constant.

    Parameters
    ----------
    noise, lengthscale, dim : sigma, the lengthscale of the kernel, and the dimension.
    num_points, t, as_printed : n points, the size of the deviation, and whether as printed.

    Returns
    -------
    Bound with probability 1 - exp(-t^2), valid for t >= 0 and n >= 1.

    Source: amini2021, (10); Theorem A of docs/theory/amini2021.md; claim amini2021:eq10.
    """
    unit = noise / lengthscale / xp.sqrt(dim)
    if as_printed:
        value = 4 / xp.exp(exact(1.0, t)) * unit * (1 + t / xp.sqrt(num_points))
    else:
        value = (
            xp.exp(exact(-0.5, t))
            * unit
            * (xp.sqrt(2 * (1 - 1 / num_points)) + 2 * t / xp.sqrt(num_points))
        )
    valid = (t >= 0) & (num_points >= 1)
    source = "amini2021, (10)" + note_of(as_printed, "sharper")
    return fails(value, 1, t**2, valid, source)


@formula
def anisotropic_noise(
    *,
    lipschitz: Real,
    op_norm: Real,
    dim: Real,
    num_points: Real,
    t: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound |K - E K| / n for noise N(0, Sigma / dim) around any centres.

    L sqrt(op_norm / dim) (sqrt(2 (1 + 1 / n)) + 2 sqrt(2) t / sqrt(n)). As printed
    2 sqrt(2) L sqrt(op_norm / dim) (1 + t / sqrt(n)), which holds, as it is larger.

    Parameters
    ----------
    lipschitz, op_norm, dim : L, |Sigma|, and the dimension.
    num_points, t, as_printed : n points, the size of the deviation, and whether as printed.

    Returns
    -------
    Bound with probability 1 - exp(-t^2), valid for t >= 0, n >= 1 and dim > 0.

    Source: amini2021, (12); Theorem A of docs/theory/amini2021.md; claim amini2021:eq12.
    """
    unit = lipschitz * xp.sqrt(op_norm / dim)
    slope = 2 * xp.sqrt(exact(2.0, t))
    mean = slope if as_printed else xp.sqrt(2 * (1 + 1 / num_points))
    value = unit * (mean + slope * t / xp.sqrt(num_points))
    valid = (t >= 0) & (num_points >= 1) & (dim > 0)
    source = "amini2021, (12)" + note_of(as_printed, "sharper")
    return fails(value, 1, t**2, valid, source)


def _printed(
    lipschitz: Real, omega: Real, scale: Real, n: Real, t: Real, c: Real
) -> Any:
    """Return the right-hand side of amini2021, (4)."""
    return 2 * lipschitz * omega * scale * (n / xp.sqrt(c) + xp.sqrt(n) * t)
