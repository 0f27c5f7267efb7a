"""amini2021: the orders in n, d and sigma / tau of the deviation of a kernel matrix, by slopes on log scales."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from proofs_check.claim import Claim, Control, Form, Rate, Setting
from proofs_check.papers.amini2021 import trials as t

PAPER = "amini2021"


def claims() -> list[Claim]:
    """Return the text after Proposition 3, and the orders in (4) and (10)."""
    return [_after_proposition_3(), *_rates()]


def _clipped(sizes: Sequence[int]) -> tuple[Setting, ...]:
    return tuple(Setting(f"n={n}", None, {"n": float(n)}, {"most": max(sizes)}) for n in sizes)


def _after_proposition_3() -> Claim:
    settings = _clipped((16, 32, 64, 128, 256, 512))
    return Claim(
        id="amini2021:prop3-norm",
        paper=PAPER,
        where="After Proposition 3",
        kind="rate",
        tex=r"\bigl\|\|K-\mathbb EK\|\bigr\|_{\psi_2}\lesssim\sqrt n\,L\sigma_\infty\omega",
        hypotheses="As in Proposition 3: property (33) for all $W_i$ together and an $L$-Lipschitz kernel. Tried "
        r"with the kernel of Proposition 1 and the uniform law on $(-2\sigma,2\sigma)$, where $L$, $\sigma_\infty$ "
        r"and $\omega$ are the same for all $n$.",
        because="The norm is at least the mean E |K - E K|, which is of the order n for the kernel of Proposition 1. "
        "The deviation from the mean is of the order sqrt(n).",
        printed=Form(Rate(t.clipped_norm, "n", 0.5), settings, "refuted"),
        corrected=Form(
            Rate(t.clipped_deviation, "n", 0.5),
            settings,
            "certified",
            r"\bigl\|V-\mathbb EV\bigr\|_{\psi_2}\lesssim\sqrt n",
        ),
        controls=(
            Control("n^(1/4) for the deviation", Rate(t.clipped_deviation, "n", 0.25), settings, kind="wrong power"),
        ),
    )


def _rates() -> list[Claim]:
    n, most, small = t.POINTS, 128, 0.05

    def places(levels: Sequence[float], dims: Sequence[int]) -> tuple[Setting, ...]:
        return tuple(
            t.gaussian("simplex", t.simplex(n, most, 1.0), level, dim).setting(
                f"d={dim}, noise={level:g}", {"sigma": level, "dim": float(dim)}
            )
            for level in levels
            for dim in dims
        )

    def claim(
        name: str,
        what: str,
        tex: str,
        hypotheses: str,
        because: str,
        rates: Sequence[Rate],
        where: tuple[Setting, ...],
    ) -> Claim:
        true, wrong = rates
        return Claim(
            id=f"amini2021:rate-{name}",
            paper=PAPER,
            where=what,
            kind="rate",
            tex=tex,
            hypotheses=hypotheses,
            because=because,
            printed=Form(true, where, "certified"),
            controls=(Control(f"the exponent {wrong.exponent:g}", wrong, where, kind="wrong power"),),
        )

    model = (
        r"$X_i=\mu_i+(\sigma/\sqrt d)\,w_i$ with independent standard normal $w_i$; the Gaussian kernel of bandwidth "
    )
    model += r"$\tau$. Tried where an entry has nearly the largest variance: centres at the mutual distance $\tau$, "
    over_d = places((small,), (48, 64, 80, 104, 128))
    over_noise = places((0.02, 0.04, 0.08, 0.12, 0.2), (64,))
    frobenius = functools.partial(Rate, t.gram_error)
    return [
        claim(
            "dimension",
            "Example 1, the order in d of (10)",
            r"\tfrac1n\|K-\mathbb EK\|\asymp d^{-1/2}",
            model + r"$n=48$, $\sigma=\tau/20$ and $d$ from 48 to 128.",
            "(10) has the right order: for noise of a fixed length the deviation is of the order d^(-1/2).",
            (frobenius("dim", -0.5), frobenius("dim", -1.0)),
            over_d,
        ),
        claim(
            "noise",
            "Example 1, the order in sigma / tau of (10)",
            r"\tfrac1n\|K-\mathbb EK\|\asymp\sigma/\tau",
            model + r"$n=48$, $d=64$ and $\sigma$ from $\tau/50$ to $\tau/5$.",
            "(10) has the right order for small noise, where the centres are about a lengthscale apart.",
            (frobenius("sigma", 1.0), frobenius("sigma", 0.5)),
            over_noise,
        ),
        claim(
            "points",
            "Proposition 1, the order in n of (4)",
            r"\|K-\mathbb EK\|\asymp n",
            "Independent points of one law and a Lipschitz kernel, both the same for all $n$. Tried with the uniform "
            r"law on $(-2\sigma,2\sigma)$ and the kernel of Proposition 1.",
            "(4) has the right order: the kernel of Proposition 1 attains n.",
            (Rate(t.clipped_norm, "n", 1.0), Rate(t.clipped_norm, "n", 0.5)),
            _clipped((16, 32, 64, 128, 256)),
        ),
    ]
