"""Right-hand sides of ghashami2016 about Frequent Directions and streaming kernel PCA, as printed and as corrected.

The sketch of the rows of A has l rows, of which Algorithm 1 shrinks at h = floor(l / 2) (l / 2 in the paper, which
needs even l). Rows of paired Fourier features have norm 1, so that their energy |Z|_F^2 is n; those of shifted features
have squared norm at most 2. G is the Gram matrix of the kernel, Ghat = Z Z' that of the features, and
Gtilde = Z W W' Z' that of the features projected to the row space W of the sketch. Proofs: docs/theory/ghashami2016.md.
"""

import dataclasses
from typing import Any

from jaxkern.bounds import fourier
from jaxkern.bounds._bound import (
    Bound,
    Real,
    exact,
    fails,
    formula,
    note_of,
    surely,
    xp,
)

__all__ = [
    "best_rank", "frequent_directions", "frequent_directions_buffered", "frequent_directions_rowwise",
    "frobenius_from_spectral", "leftover_rows", "nystrom_best_rank", "nystrom_coherence", "nystrom_frobenius_mean",
    "nystrom_spectral", "pivoted_cholesky_mean", "projection", "projection_buffered", "streaming_gram",
    "streaming_gram_buffered",
]  # fmt: skip


@formula
def frequent_directions(
    *, residual_energy: Real, sketch_size: Real, rank: Real, as_printed: bool = False
) -> Bound:
    """Bound |A'A - B'B|_2, hence max |A x|^2 over unit x with B x = 0, for Algorithm 1, which shrinks at h.

    |A - A_k|_F^2 / (h - k). As printed |A - A_k|_F^2 / (l - k), which belongs to `frequent_directions_rowwise` and
    fails here by any factor.

    Parameters
    ----------
    residual_energy, sketch_size, rank, as_printed : |A - A_k|_F^2, l rows of the sketch, k, and whether as printed.

    Returns
    -------
    Bound, deterministic, valid for whole k in [0, h); as printed in [0, l) (the paper allows k = l) and even l.

    Source: ghashami2016, Lemma 3.2; claim ghashami2016:lem3.2.
    """
    half = _half(sketch_size)
    source = "ghashami2016, Lemma 3.2" + note_of(as_printed, "for Algorithm 1")
    bound = _shrunk(residual_energy, sketch_size if as_printed else half, rank, source)
    return _even(bound, sketch_size, half) if as_printed else bound


@formula
def frequent_directions_rowwise(
    *, residual_energy: Real, sketch_size: Real, rank: Real
) -> Bound:
    """Bound |A'A - B'B|_2 by |A - A_k|_F^2 / (l - k) when the buffer of l rows is shrunk at l, at every row.

    Parameters
    ----------
    residual_energy, sketch_size, rank : |A - A_k|_F^2, l rows of the sketch, and k.

    Returns
    -------
    Bound, deterministic, valid for whole k in [0, l).

    Source: ghashami2016, Lemma 3.2, for the algorithm that its proof cites; claim ghashami2016:lem3.2.
    """
    return _shrunk(
        residual_energy, sketch_size, rank, "ghashami2016, Lemma 3.2 (shrinking at l)"
    )


@formula
def frequent_directions_buffered(
    *, residual_energy: Real, sketch_size: Real, rank: Real
) -> Bound:
    """Bound |A'A - B'B|_2 by |A - A_k|_F^2 / (l + 1 - k) for a buffer of 2 l rows shrunk at l + 1.

    It is what `jaxkern.frequent_directions` does by default: the better bound at one decomposition per l rows.

    Parameters
    ----------
    residual_energy, sketch_size, rank : |A - A_k|_F^2, l rows of the sketch, and k.

    Returns
    -------
    Bound, deterministic, valid for whole k in [0, l].

    Source: Theorem D of docs/theory/ghashami2016.md; claim jaxkern:frequent-directions.
    """
    return _shrunk(
        residual_energy, sketch_size + 1, rank, "jaxkern, Theorem D of ghashami2016"
    )


@formula
def leftover_rows(*, energy: Real, sketch_size: Real, row_energy: Real) -> Bound:
    """Bound |Ghat - Gtilde|_2 for the literal Algorithm 1, which returns the W of the last decomposition.

    Up to l rows that came later do not enter W: |Z|_F^2 / h + l max |z|^2. Valid once a decomposition was made; before
    that W does not exist.

    Parameters
    ----------
    energy, sketch_size, row_energy : |Z|_F^2, l rows of the sketch, and max |z|^2.

    Returns
    -------
    Bound, deterministic, valid for l >= 2.

    Source: ghashami2016, Algorithm 1 and Lemma 3.3; claim ghashami2016:lem3.3-literal.
    """
    value = energy / _half(sketch_size) + sketch_size * row_energy
    valid = (energy >= 0) & (sketch_size >= 2)
    return surely(value, valid, "ghashami2016, Lemma 3.3 (literal Algorithm 1)")


@formula
def projection(
    *,
    num_points: Real,
    sketch_size: Real,
    row_energy: Real = 2.0,
    as_printed: bool = False,
) -> Bound:
    """Bound |Ghat - Gtilde|_2 by row_energy n / h for Algorithm 1 with a last decomposition of the buffer.

    As printed 2 n / l, whatever the features; twice that is attained with shifted features.

    Parameters
    ----------
    num_points, sketch_size : n points, and l rows of the sketch.
    row_energy, as_printed : max |z|^2: 2 for shifted features, 1 for paired ones, and whether as printed.

    Returns
    -------
    Bound, deterministic, valid for l >= 2; as printed for even l.

    Source: ghashami2016, Lemma 3.3; claim ghashami2016:lem3.3.
    """
    half = _half(sketch_size)
    value = (
        2 * num_points / sketch_size if as_printed else row_energy * num_points / half
    )
    source = "ghashami2016, Lemma 3.3" + note_of(as_printed, "corrected")
    bound = surely(value, sketch_size >= 2, source)
    return _even(bound, sketch_size, half) if as_printed else bound


@formula
def projection_buffered(
    *, num_points: Real, sketch_size: Real, row_energy: Real = 1.0
) -> Bound:
    """Bound |Ghat - Gtilde|_2 by row_energy n / (l + 1) for a buffer of 2 l rows shrunk at l + 1.

    Parameters
    ----------
    num_points, sketch_size, row_energy : as in `projection`.

    Returns
    -------
    Bound, deterministic, valid for l >= 1.

    Source: Theorem D of docs/theory/ghashami2016.md; claim jaxkern:frequent-directions.
    """
    value = row_energy * num_points / (sketch_size + 1)
    return surely(
        value, sketch_size >= 1, "jaxkern, Theorem D of ghashami2016 (projection)"
    )


@formula
def streaming_gram(
    *,
    eps: Real,
    num_features: Real,
    num_points: Real,
    sketch_size: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound |G - Gtilde|_2 / n for Algorithm 1 with shifted features by eps + 2 / h: features, then the sketch.

    eps is the share of the features, whose probability is that of `gram_spectral_shifted`. As printed l = 4 / eps' and
    m = O(log(n / delta) / eps'^2) give eps': a share of 2 / l for the sketch. It needs a last decomposition.

    Parameters
    ----------
    eps, num_features, num_points, sketch_size : share of the features, and m features, n points, l rows of the sketch.
    as_printed : take the statement as printed. Static.

    Returns
    -------
    Bound, valid for eps > 0 and l >= 2; as printed for even l.

    Source: ghashami2016, Theorem 3.2; claim ghashami2016:thm3.2.
    """
    gram = fourier.gram_spectral_shifted(
        eps=eps, num_features=num_features, num_points=num_points, as_printed=as_printed
    )
    half = _half(sketch_size)
    valid = gram.valid & (sketch_size >= 2)
    source = "ghashami2016, Theorem 3.2" + note_of(as_printed, "corrected")
    value = eps + 2 / (sketch_size if as_printed else half)
    bound = dataclasses.replace(gram, value=value, valid=valid, source=source)
    return _even(bound, sketch_size, half) if as_printed else bound


@formula
def streaming_gram_buffered(
    *, eps: Real, num_frequencies: Real, num_points: Real, sketch_size: Real
) -> Bound:
    """Bound |G - Gtilde|_2 / n by eps + 1 / (l + 1) for paired features and a buffer of 2 l rows.

    The probability is the larger of those of `gram_spectral_paired` and `gram_spectral_paired_all_n`.

    Parameters
    ----------
    eps, num_frequencies, num_points, sketch_size : share of the features, and t frequencies, n points, l rows.

    Returns
    -------
    Bound, valid for eps > 0 and l >= 1.

    Source: Theorem E of docs/theory/ghashami2016.md; claim jaxkern:streaming-gram.
    """
    direct = fourier.gram_spectral_paired(
        eps=eps, num_frequencies=num_frequencies, num_points=num_points
    )
    free = fourier.gram_spectral_paired_all_n(eps=eps, num_frequencies=num_frequencies)
    # Where the second is not valid it is negative: 40 exp(-1 / 2) > 1.
    probability = xp.maximum(direct.probability, free.probability)
    return Bound(
        eps + 1 / (sketch_size + 1),
        probability,
        (eps > 0) & (sketch_size >= 1),
        "jaxkern, Theorem E of ghashami2016",
        exponent=xp.maximum(direct.exponent, free.exponent),
    )


@formula
def frobenius_from_spectral(*, spectral: Real, num_points: Real) -> Bound:
    """Bound |G - G'|_F by sqrt(n) |G - G'|_2.

    Parameters
    ----------
    spectral, num_points : |G - G'|_2, and n points.

    Returns
    -------
    Bound, deterministic. For Fourier features `fourier.gram_frobenius_paired` is smaller, by the factor sqrt(n).

    Source: ghashami2016, Section 3.2 (eps n^1.5); claim ghashami2016:frobenius.
    """
    return surely(
        xp.sqrt(num_points) * spectral, spectral >= 0, "ghashami2016, Section 3.2"
    )


@formula
def best_rank(
    *, tail: Real, spectral: Real, rank: Real, as_printed: bool = False
) -> Bound:
    """Bound |G - G'_k|_F by |G - G_k|_F + sqrt(5 k) |G - G'|_2, for symmetric G and G'.

    sqrt(5) is the best constant. As printed with 1 in its place, which is false.

    Parameters
    ----------
    tail, spectral, rank, as_printed : |G - G_k|_F, |G - G'|_2 and k, and whether as printed.

    Returns
    -------
    Bound, deterministic, valid for whole k >= 0.

    Source: ghashami2016, Lemma 3.5; Theorem F of docs/theory/ghashami2016.md; claim ghashami2016:lem3.5.
    """
    constant = 1.0 if as_printed else xp.sqrt(exact(5.0, tail))
    value = tail + constant * xp.sqrt(rank) * spectral
    return surely(
        value,
        _whole(rank) & (tail >= 0) & (spectral >= 0),
        "ghashami2016, Lemma 3.5" + note_of(as_printed, "corrected"),
    )


@formula
def nystrom_best_rank(*, num_landmarks: Real, rank: Real, tau: Real) -> Bound:
    """Bound (|G - Gbar_k| - |G - G_k|) / (kappa n) by 2 (1 + sqrt(tau)) / sqrt(c), in spectral and Frobenius norm.

    Gbar_k = C W_k^+ C' for c landmarks drawn uniformly from the n points with replacement, kappa = max K(x, x).

    Parameters
    ----------
    num_landmarks, rank, tau : c landmarks, k, and exponent of the failure probability.

    Returns
    -------
    Bound with probability 1 - exp(-tau) for both norms at once, valid for tau >= 0 and 1 <= k <= c.

    Source: Theorem H of docs/theory/ghashami2016.md; claim jaxkern:nystrom-best-rank.
    """
    value = 2 * (1 + xp.sqrt(tau)) / xp.sqrt(num_landmarks)
    valid = (tau >= 0) & _whole(rank) & (rank >= 1) & (rank <= num_landmarks)
    return fails(value, 1, tau, valid, "jaxkern, Theorem H of ghashami2016")


@formula
def nystrom_coherence(
    *,
    eps: Real,
    coherence: Real,
    rank: Real,
    num_landmarks: Real,
    num_points: Real,
    tau: Real,
) -> Bound:
    """Bound |G - Gbar|_2 / |G - G_k|_2 by 1 + n / ((1 - eps) c) for Nystrom of full rank with c landmarks.

    They are drawn uniformly without replacement. The paper has Gbar_k for Gbar, of which no proof is known to us, and
    leaves the constant of c open.

    Parameters
    ----------
    eps, num_landmarks, num_points : free, c landmarks, and n points.
    coherence, rank : (n / k) max_i |U_i|^2, U the k leading eigenvectors of G, and k.
    tau : exponent of the failure probability.

    Returns
    -------
    Bound with probability 1 - exp(-tau), valid for 0 < eps < 1, k >= 1 and
    2 coherence k (log(k) + tau) / eps^2 <= c <= n.

    Source: ghashami2016, Section 1.1, with a constant; claim ghashami2016:nystrom-coherence.
    """
    value = 1 + num_points / ((1 - eps) * num_landmarks)
    least = (
        2 * coherence * rank * (xp.log(rank) + tau) * (1 - 1e-12)
    )  # room for a size computed from it
    enough = (num_landmarks * eps**2 >= least) & (num_landmarks <= num_points)
    valid = enough & (eps > 0) & (eps < 1) & _whole(rank) & (rank >= 1)
    return fails(value, 1, tau, valid, "ghashami2016, Section 1.1 (coherence)")


@formula
def nystrom_frobenius_mean(*, mean_square: Real, num_landmarks: Real) -> Bound:
    """Bound E |G - Gbar|_F^2 / n^2 by (1 - mean_square) / c for Nystrom with c landmarks, where K(x, x) = 1.

    They are drawn uniformly with replacement. c shifted features have a mean square error of at least as much.

    Parameters
    ----------
    mean_square, num_landmarks : |G|_F^2 / n^2, and c landmarks.

    Returns
    -------
    Bound, deterministic, valid for mean_square <= 1.

    Source: Theorem I of docs/theory/ghashami2016.md; claim jaxkern:nystrom-frobenius-mean.
    """
    return surely(
        (1 - mean_square) / num_landmarks,
        mean_square <= 1,
        "jaxkern, Theorem I of ghashami2016",
    )


@formula
def nystrom_spectral(*, eps: Real, num_landmarks: Real) -> Bound:
    """Bound |G - Gbar|_2 / (kappa n) by eps for Nystrom with c landmarks drawn uniformly from the n points.

    Gbar = C W^+ C' of full rank, kappa = max K(x, x). The probability is 1 - 20 exp(-eps^2 c / (1/2 + 2 eps / 3)) for
    draws with or without replacement, whatever n. Nothing is said of Nystrom cut to a smaller rank.

    Parameters
    ----------
    eps, num_landmarks : error, and c landmarks.

    Returns
    -------
    Bound, valid for eps >= 1 / (2 sqrt(c)) + 1 / (3 c).

    Source: Theorem G of docs/theory/ghashami2016.md; claim jaxkern:nystrom-spectral.
    """
    exponent = eps**2 * num_landmarks / (0.5 + 2 * eps / 3)
    valid = eps >= 1 / (2 * xp.sqrt(num_landmarks)) + 1 / (3 * num_landmarks)
    return fails(eps, 20, exponent, valid, "jaxkern, Theorem G of ghashami2016")


@formula
def pivoted_cholesky_mean(
    *, eps: Real, rank: Real, tail: Real, num_landmarks: Real
) -> Bound:
    """Bound E tr(K - Khat) / tr(K) by (1 + eps) tail for landmarks of randomly pivoted Cholesky.

    tail = tr(K - K_r) / tr(K) is what the best approximation of rank r leaves, for any positive semidefinite K.

    Parameters
    ----------
    eps, rank, tail, num_landmarks : relative excess over the best, r, its relative tail, and the number of landmarks.

    Returns
    -------
    Bound, deterministic, valid for num_landmarks >= rank / eps + rank log(1 / (eps tail)), eps > 0, 0 < tail <= 1.

    Source: Chen, Epperly, Tropp and Webber (2025); Theorem J of docs/theory/ghashami2016.md; claim
    jaxkern:pivoted-cholesky.
    """
    valid = num_landmarks >= rank / eps - rank * xp.log(eps * tail)
    valid = valid & _whole(rank) & (rank >= 1) & (eps > 0) & (tail > 0) & (tail <= 1)
    return surely((1 + eps) * tail, valid, "jaxkern, Theorem J of ghashami2016")


def _half(sketch_size: Real) -> Any:
    """Return the number of the singular value at which Algorithm 1 shrinks, floor(l / 2)."""
    return xp.floor(sketch_size / 2)


def _whole(rank: Real) -> Any:
    """Return whether a rank is a whole number that is at least 0."""
    return (rank >= 0) & (xp.floor(rank) == rank)


def _even(bound: Bound, sketch_size: Real, half: Real) -> Bound:
    """Return a printed bound, valid for even l only: otherwise the paper's singular value number l / 2 is none."""
    valid = bound.valid & (2 * half == sketch_size)
    return dataclasses.replace(bound, valid=valid)


def _shrunk(residual_energy: Real, rows: Real, rank: Real, source: str) -> Bound:
    """Return residual_energy / (rows - rank), valid for 0 <= rank < rows."""
    valid = _whole(rank) & (rank < rows) & (residual_energy >= 0)
    return surely(residual_energy / xp.maximum(rows - rank, 1e-30), valid, source)
