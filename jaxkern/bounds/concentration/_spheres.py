"""Population parameters of the Gaussian kernel on nested spheres: amini2021, Examples 5 and 6.

Centres are uniform on spheres of radii r_k, the noise is N(0, noise^2 I / dim) (isotropic) or noise / sqrt(dim) times
a standard normal along the centre (radial). psi and psi_double are E exp(x a) at x and at 2 x, where a is the inner
product of two independent uniform directions of R^dim (`measures` has it in closed form).
"""

from typing import Any

from jaxkern.bounds._bound import Bound, Real, formula, note_of, surely, xp

_MOST = 600.0
"""Larger exponents are cut here, and the bound is then not valid: float64 ends at exp(709)."""


@formula
def sphere_moment(*, u: Real, dim: Real, as_printed: bool = False) -> Bound:
    """Bound psi_dim(u) = E exp(u a), a the inner product of two uniform directions, by exp(u^2 / (2 dim)).

    It is what psi is about for u << dim. As printed exp(u^2 / (4 dim)), from Lemma 6, where a variance is half of what
    it is: that is below psi.

    Parameters
    ----------
    u, dim, as_printed : argument of psi, dimension, and whether as printed.

    Returns
    -------
    Bound, deterministic, valid for every u and dim >= 1.

    Source: amini2021, Example 5 and Lemma 6; claims amini2021:psi and amini2021:lem6.
    """
    exponent = u**2 / ((4 if as_printed else 2) * dim)
    valid = (dim >= 1) & (exponent <= _MOST)
    return surely(
        xp.exp(xp.minimum(exponent, _MOST)),
        valid,
        "amini2021, Lemma 6" + note_of(as_printed, "corrected"),
    )


@formula
def isotropic_block_mean(
    *,
    radius: Real,
    other_radius: Real,
    noise: Real,
    lengthscale: Real,
    dim: Real,
    psi: Real,
) -> Bound:
    """Give Psi*_kl for isotropic noise: u_k u_l psi(x), x = radius other_radius / (s lengthscale)^2.

    With s^2 = 1 + 2 noise^2 / (dim lengthscale^2) and u_k = s^(-dim / 2) exp(-radius^2 / (2 s^2 lengthscale^2)).

    Parameters
    ----------
    radius, other_radius, noise, lengthscale, dim : r_k, r_l, sigma, the lengthscale of the kernel, and the dimension.
    psi : psi(x).

    Returns
    -------
    Bound, deterministic, an equality.

    Source: amini2021, Example 5; claim amini2021:ex5-mean.
    """
    weight, _ = _isotropic(radius, other_radius, noise, lengthscale, dim)
    return surely(weight * psi, dim >= 1, "amini2021, Example 5, mean")


@formula
def isotropic_block_variance(
    *,
    radius: Real,
    other_radius: Real,
    noise: Real,
    lengthscale: Real,
    dim: Real,
    psi: Real,
    psi_double: Real,
    as_printed: bool = False,
) -> Bound:
    """Give v*_kl^2 for isotropic noise: u_k^2 u_l^2 (psi(2 x) - psi(x)^2), in the words of `isotropic_block_mean`.

    As printed psi(x) for psi(x)^2. In high dimensions the difference cancels; `isotropic_block_variance_upper` does
    not.

    Parameters
    ----------
    radius, other_radius, noise, lengthscale, dim : r_k, r_l, sigma, the lengthscale of the kernel, and the dimension.
    psi, psi_double, as_printed : psi(x) and psi(2 x), and whether as printed.

    Returns
    -------
    Bound, deterministic, an equality.

    Source: amini2021, Example 5; claim amini2021:ex5-variance.
    """
    weight, _ = _isotropic(radius, other_radius, noise, lengthscale, dim)
    value = weight**2 * (psi_double - (psi if as_printed else psi**2))
    return surely(
        value,
        dim >= 1,
        "amini2021, Example 5, variance" + note_of(as_printed, "corrected"),
    )


@formula
def isotropic_block_variance_upper(
    *, radius: Real, other_radius: Real, noise: Real, lengthscale: Real, dim: Real
) -> Bound:
    """Bound v*_kl^2 for isotropic noise by u_k^2 u_l^2 x^2 / dim exp(2 x^2 / (dim + 2)): (32) with its constants.

    Parameters
    ----------
    radius, other_radius, noise, lengthscale, dim : r_k, r_l, sigma, the lengthscale of the kernel, and the dimension.

    Returns
    -------
    Bound, deterministic, valid for dim >= 2.

    Source: Theorem E of docs/theory/amini2021.md; claim jaxkern:sphere-variance.
    """
    weight, x = _isotropic(radius, other_radius, noise, lengthscale, dim)
    exponent = 2 * x**2 / (dim + 2)
    value = weight**2 * x**2 / dim * xp.exp(xp.minimum(exponent, _MOST))
    valid = (dim >= 2) & (exponent <= _MOST)
    return surely(value, valid, "jaxkern, Theorem E of amini2021 (upper)")


@formula
def isotropic_block_variance_lower(
    *, radius: Real, other_radius: Real, noise: Real, lengthscale: Real, dim: Real
) -> Bound:
    """Bound v*_kl^2 for isotropic noise from *below* by u_k^2 u_l^2 x^2 / dim.

    Parameters
    ----------
    radius, other_radius, noise, lengthscale, dim : r_k, r_l, sigma, the lengthscale of the kernel, and the dimension.

    Returns
    -------
    Bound whose value v*_kl^2 is at least; deterministic, valid for dim >= 2.

    Source: Theorem E of docs/theory/amini2021.md; claim jaxkern:sphere-variance.
    """
    weight, x = _isotropic(radius, other_radius, noise, lengthscale, dim)
    return surely(
        weight**2 * x**2 / dim, dim >= 2, "jaxkern, Theorem E of amini2021 (lower)"
    )


@formula
def radial_mean_gap(*, noise: Real, lengthscale: Real, dim: Real) -> Bound:
    """Bound |f_d(a) - exp(-(r_k^2 + r_l^2 - 2 a r_k r_l) / (2 lengthscale^2))| by noise^2 / (dim lengthscale^2).

    f_d is the mean kernel of radial noise as a function of the cosine a. Hence Psi*_kl differs by no more from
    exp(-(r_k^2 + r_l^2) / (2 lengthscale^2)) psi(r_k r_l / lengthscale^2), and v*_kl by no more from the standard
    deviation without noise. The paper has C / dim with C not named.

    Parameters
    ----------
    noise, lengthscale, dim : sigma, the lengthscale of the kernel, and the dimension.

    Returns
    -------
    Bound, deterministic, valid for every cosine and all radii.

    Source: amini2021, Appendix B.3, made explicit; Theorem E of docs/theory/amini2021.md; claims amini2021:b3
    and amini2021:ex4-alpha.
    """
    return surely(
        (noise / lengthscale) ** 2 / dim, dim >= 1, "amini2021, Appendix B.3 (explicit)"
    )


@formula
def radial_block_variance(
    *,
    radius: Real,
    other_radius: Real,
    noise: Real,
    lengthscale: Real,
    dim: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound v*_kl^2 for radial noise by (w x / sqrt(dim) exp(x^2 / (dim + 2)) + noise^2 / (dim lengthscale^2))^2.

    With x = radius other_radius / lengthscale^2 and w = exp(-(radius^2 + other_radius^2) / (2 lengthscale^2)). As
    printed w^2 / (lengthscale^4 dim), up to a constant that must depend on the radii.

    Parameters
    ----------
    radius, other_radius, noise, lengthscale, dim, as_printed : as in `isotropic_block_variance`.

    Returns
    -------
    Bound, deterministic, valid for dim >= 2.

    Source: amini2021, Example 6; Theorem E of docs/theory/amini2021.md; claim amini2021:ex6.
    """
    weight = xp.exp(-(radius**2 + other_radius**2) / (2 * lengthscale**2))
    source = "amini2021, Example 6" + note_of(as_printed, "explicit")
    if as_printed:
        return surely(weight**2 / (lengthscale**4 * dim), dim >= 2, source)
    x = radius * other_radius / lengthscale**2
    exponent = x**2 / (dim + 2)
    spread = weight * x / xp.sqrt(dim) * xp.exp(xp.minimum(exponent, _MOST))
    return surely(
        (spread + (noise / lengthscale) ** 2 / dim) ** 2,
        (dim >= 2) & (exponent <= _MOST),
        source,
    )


def _isotropic(
    radius: Real, other: Real, noise: Real, lengthscale: Real, dim: Real
) -> tuple[Any, Any]:
    """Return u_k u_l and x."""
    stretched = lengthscale**2 + 2 * noise**2 / dim
    shrunk = dim / 2 * xp.log1p(2 * noise**2 / (dim * lengthscale**2))
    weight = xp.exp(-shrunk - (radius**2 + other**2) / (2 * stretched))
    return weight, radius * other / stretched
