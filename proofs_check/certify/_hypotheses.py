"""What the numbered statements of the papers ask for, evaluated on the data."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxkern import kernels, plan
from jaxkern.bounds import fourier
from jaxkern.plan import smallest_size
from proofs_check.certify._model import Facts, Hypothesis
from proofs_check.certify._request import STATIONARY, Request
from proofs_check.certify._statements import (
    NYSTROM,
    needed_landmarks,
    planned,
    share_of_pairs,
)

_NOISE = (
    "one table cannot tell: signal and noise of a row are not observed apart. Repeated measurements of the same rows "
    "would estimate the noise."
)


def hypotheses(facts: Facts, request: Request) -> list[Hypothesis]:
    """Return one entry a statement, in the order of the papers, at the error and failure probability asked for.

    Population quantities are those of the rows that were sampled. Numbers of rows are the fewest that meet the
    hypothesis with the same spectrum.
    """
    if not facts.op_norm > 0:
        return []
    asked = request.eps, request.delta
    return [
        *_kpotufe(facts, *asked),
        *_amini(facts),
        *_chen(facts, *asked),
        *_ghashami(facts, *asked),
    ]


def _kpotufe(facts: Facts, eps: float, delta: float) -> Iterator[Hypothesis]:
    s, s3 = facts.trace / facts.op_norm, facts.trace3 / facts.op_norm**3
    spectrum = f"kappa = {facts.kappa:.3g}, S = {facts.op_norm:.3g}, s = {s:.3g}"

    def rows(
        statement: str, asks: str, share: float, factor: float, note: str = ""
    ) -> Hypothesis:
        """Return the entry of a statement that asks for n >= factor tau rows, tau = log(share / delta)."""
        tau = max(math.log(share / delta), 1.0)
        needed = max(math.ceil(factor * tau * (1 - 1e-12)), 1)
        have = f"{spectrum}, tau = {tau:.3g}; the table has {facts.rows:,} rows{note}"
        return Hypothesis(
            f"kpotufe2020, {statement}", asks, facts.rows >= needed, have, needed
        )

    unit = facts.kappa * s / facts.op_norm
    tau = max(math.log(1 / delta), 1.0)
    least = math.ceil(max(s3, tau))
    yield Hypothesis(
        "kpotufe2020, Proposition 1",
        "tau >= 1 and d >= max(s3, tau) rows of the projection",
        True,
        f"s3 = {s3:.3g}, tau = {tau:.3g}: any d >= {least:,} will do; no number of landmarks is asked for",
    )
    yield rows(
        "Theorem 1 (printed)",
        "tau >= 1 and n >= 6272 kappa s^5 tau / S landmarks",
        5,
        6272 * unit * s**4,
        "; as printed it is false: a condition on d is missing",
    )
    yield rows(
        "Theorem 1 (corrected: Theorem B)",
        "tau >= 1, n >= 6272 kappa s max(1, sqrt(s) / 4) tau / S landmarks and d >= max(4 s3, tau)",
        3,
        6272 * unit * max(1.0, math.sqrt(s) / 4),
        f"; d >= {math.ceil(max(4 * s3, math.log(3 / delta))):,}",
    )
    landmarks = needed_landmarks(facts, eps, delta)
    yield Hypothesis(
        "kpotufe2020, Theorem 1 (for every n and d: Theorem E)",
        f"nothing; for an error of at most {eps:g} S^3 with d = n / 4, enough landmarks",
        None if landmarks is None else facts.rows >= landmarks,
        f"{spectrum}; the table has {facts.rows:,} rows",
        landmarks,
    )
    yield rows(
        "Theorem 2",
        "n >= kappa s tau max(32 / S, 1) landmarks",
        4,
        facts.kappa * s * max(32 / facts.op_norm, 1.0),
        "; it compares operators that do not approach each other",
    )
    rate = 1.5 * facts.kappa * math.sqrt(facts.trace / facts.rows)
    yield Hypothesis(
        "kpotufe2020, Theorem 3",
        f"n without limit; here a Wasserstein distance of at most {eps:g} |f|",
        rate <= eps,
        f"at n = {facts.rows:,} it is at most {rate:.3g} |f|",
        max(math.ceil((1.5 * facts.kappa / eps) ** 2 * facts.trace), 1),
    )
    negative = not isinstance(facts.kernel, STATIONARY)
    centred = None if negative else False
    most = (4 if negative else 2) * facts.kappa
    not_known = "the kernel may be negative: its mean is not known"
    second = f"; the second half holds with epsilon = {eps:g}, eta = {delta:g} from {_components(facts, eps, delta)}"
    yield Hypothesis(
        "kpotufe2020, Assumption 1",
        "E K(., X) = 0, and k eigenfunctions that hold all but a share epsilon of K(., x), except with probability eta",
        centred,
        (
            not_known
            if negative
            else "the kernel is never negative: its mean is not 0, unless features are centred"
        )
        + second,
    )
    yield Hypothesis(
        "kpotufe2020, Example 1",
        "Assumption 1, and two sets of features at a squared distance of more than 4 epsilon kappa",
        centred,
        f"Assumption 1 as above; squared distances are at most {most:.3g}, so that epsilon < "
        f"{most / (4 * facts.kappa):.2g} is needed at all, and a small error takes the landmarks of Theorem E",
    )
    yield Hypothesis(
        "kpotufe2020, Example 2",
        "two classes that make up the whole law, with E K(., X) = 0",
        centred,
        not_known
        if negative
        else "the kernel is never negative: E K(., X) is not 0, unless features are centred",
    )
    yield rows("(7), (8)", "n >= 32 kappa s tau / S landmarks", 2, 32 * unit)
    yield rows(
        "Lemma B.2",
        "n >= 8 kappa tau / (9 trace) landmarks",
        2,
        8 * facts.kappa / (9 * facts.trace),
    )
    yield Hypothesis(
        "kpotufe2020, Lemma B.3",
        "tau >= 1 and d >= max(tr Sigma_n^3 / |Sigma_n^3|, tau), given the landmarks",
        True,
        f"with all rows as landmarks the ratio is {s3:.3g}: any d >= {least:,} will do",
    )
    yield Hypothesis(
        "kpotufe2020, Theorem C.1",
        "a trace class covariance, tau >= 1 and d >= max(effective rank, tau)",
        True,
        f"for Sigma^3 the effective rank is {s3:.3g}, for Sigma {s:.3g}: any d >= {math.ceil(max(s, tau)):,} will do",
    )


def _components(facts: Facts, epsilon: float, eta: float) -> str:
    """Return in words how many eigenfunctions meet the second half of Assumption 1, by Markov's inequality."""
    tails = facts.trace - np.cumsum(facts.eigenvalues)
    enough = np.flatnonzero(tails <= epsilon * eta * facts.kappa)
    if not len(enough):
        return f"more than k = {len(tails):,}"
    return f"k = {int(enough[0]) + 1:,}"


def _amini(facts: Facts) -> Iterator[Hypothesis]:
    try:
        slope = f"L = {float(kernels.lipschitz(facts.kernel, facts.dim)):.3g}"
    except ValueError:
        slope = "no Lipschitz constant is known"
    yield Hypothesis(
        "amini2021, Theorem 1 (corrected: Theorem A)",
        "a Lipschitz kernel, and rows that are independent signals with noise of class LC",
        None,
        f"{slope}; {_NOISE}",
    )
    yield Hypothesis(
        "amini2021, Theorem 2",
        "the inner product kernel, and rows with independent noise",
        False,
        f"the kernel is {type(facts.kernel).__name__}; {_NOISE}",
    )
    yield Hypothesis(
        "amini2021, Theorem 3 (corrected: Theorem C)",
        "a mean kernel that is nearly constant on blocks, at a gap gamma, with noise that is small against it",
        None,
        f"{slope}; gamma and the variance within blocks belong to classes and noise: {_NOISE}",
    )
    yield Hypothesis(
        "amini2021, Corollary 1",
        "rows from nested spheres or other mixtures of known form, with Gaussian noise",
        None,
        f"{slope}; {_NOISE}",
    )


def _chen(facts: Facts, eps: float, delta: float) -> Iterator[Hypothesis]:
    gaussian, rows = isinstance(facts.kernel, kernels.Gaussian), facts.rows
    kernel = f"the kernel is {type(facts.kernel).__name__}"
    close = math.sqrt(eps) / math.log(1 / delta)
    for number, asks, low, high in (
        ("Lemma 2.2", "pairs at a distance of at least 1", 1.0, math.inf),
        (
            "(3)",
            f"pairs at a distance of at most 2 sqrt(eps) = {2 * math.sqrt(eps):.3g}",
            0.0,
            2 * math.sqrt(eps),
        ),
        (
            "Lemma 3.3",
            f"pairs at a distance of at most sqrt(eps) / log(1 / delta) = {close:.2g}",
            0.0,
            close,
        ),
        ("Lemma 4.2", "pairs at a distance of at most 1", 0.0, 1.0),
    ):
        share = share_of_pairs(facts, low, high)
        yield Hypothesis(
            f"chen2016, {number}",
            f"the Gaussian kernel, and {asks}, in lengthscales",
            False if not gaussian else None if share is None else share > 0,
            kernel
            if share is None
            else f"{kernel}; about {share:.2g} of the pairs that differ",
        )
    yield Hypothesis(
        "chen2016, Theorem 3.1",
        "as many dimensions as half the number of points, for its lower bound on the number of frequencies",
        facts.dim >= rows / 2,
        f"{facts.dim:,} dimensions, {rows:,} rows; with fewer dimensions fewer frequencies may do",
    )
    yield Hypothesis(
        "chen2016, Theorem 4.1",
        "the Gaussian kernel, and points that are fixed before the draw",
        gaussian,
        kernel + (f"; {_frequencies(eps, delta, num_points=rows)}" if gaussian else ""),
    )
    b = (math.sqrt(facts.dim) + math.sqrt(2 * math.log(3 / delta))) ** 2 / eps**2
    yield Hypothesis(
        "chen2016, Lemma 5.2",
        "the Gaussian kernel, and more than (sqrt(dim) + sqrt(2 tau))^2 / eps^2 frequencies",
        gaussian,
        f"{kernel}; more than {math.ceil(b):,} frequencies in dimension {facts.dim:,}, tau = log(3 / delta)",
    )
    logarithm = (
        math.log(facts.dim * facts.diameter / (eps * delta))
        if facts.diameter > 0
        else -math.inf
    )
    yield Hypothesis(
        "chen2016, Theorem 5.1",
        "the Gaussian kernel, and points in a ball with log(dim M / (eps delta)) > 0",
        gaussian and (logarithm > 0 if math.isfinite(logarithm) else None),
        f"{kernel}; M <= {facts.diameter:.3g} lengthscales, the logarithm is at most {logarithm:.3g}"
        + (
            f"; {_frequencies(eps, delta, dim=facts.dim, diameter=facts.diameter)}"
            if gaussian
            else ""
        ),
    )
    relative = (2 * eps - eps**2) / (1 - eps) ** 2
    have = f"{kernel}; eps' = {relative:.3g}"
    if relative < 0.25:
        limit = fourier.dimension_limit(
            eps=relative, dim=facts.dim, radius=max(facts.diameter / 2, 1e-9)
        )
        least = f"no map of norm 1 has fewer than {limit.value:.3g} features for all of the ball of the same diameter"
        have += f"; {least if limit.valid else 'the ball is too small for it to say anything'}"
    yield Hypothesis(
        "chen2016, Theorem 6.1 (corrected)",
        "the Gaussian kernel, and eps' = (2 eps - eps^2) / (1 - eps)^2 < 1/4, that is eps < 0.1056",
        gaussian and relative < 0.25,
        have,
    )


def _frequencies(eps: float, delta: float, **sizes: Any) -> str:
    num_frequencies, why = planned(
        lambda: plan.fourier(eps, delta, **sizes).num_frequencies
    )
    return f"{num_frequencies:,} frequencies" if num_frequencies else why


def _ghashami(facts: Facts, eps: float, delta: float) -> Iterator[Hypothesis]:
    stationary = isinstance(facts.kernel, STATIONARY)
    asks = "a kernel K(x - y) with K(x, x) = 1"
    kernel = f"the kernel is {type(facts.kernel).__name__}"
    n = facts.rows
    sizes = {
        "Lemma 3.1": smallest_size(
            lambda m: fourier.gram_spectral_shifted(
                eps=eps, num_features=m, num_points=n
            ),
            delta,
        ),
        "Theorem 3.1 (corrected)": smallest_size(
            lambda m: fourier.quadratic_form_shifted(eps=eps, num_features=m), delta
        ),
    }
    for statement, size in sizes.items():
        have = (
            kernel if size is None else f"{kernel}; {size:,} shifted features for eps n"
        )
        yield Hypothesis(f"ghashami2016, {statement}", asks, stationary, have)
    stream, why = planned(lambda: plan.streaming(eps, delta, num_points=n))
    sizes_of = (
        f"{stream.sketch_size:,} rows and {stream.num_frequencies:,} frequencies do"
        if stream
        else why
    )
    yield Hypothesis(
        "ghashami2016, Theorem 3.2 (corrected)",
        f"{asks}, and a sketch of more than 4 / eps rows",
        stationary,
        f"{kernel}; with paired features and the library's sketch {sizes_of}",
    )
    landmarks, why = planned(
        lambda: plan.nystrom(min(eps / facts.kappa, 1 - 1e-9), delta).num_landmarks
    )
    yield Hypothesis(
        f"ghashami2016, Section 1.2, Nystrom ({NYSTROM})",
        "any kernel, and landmarks drawn uniformly from at least as many rows",
        landmarks is not None and n >= landmarks,
        f"{landmarks:,} landmarks for eps n; the table has {n:,} rows"
        if landmarks
        else why,
        landmarks,
    )
