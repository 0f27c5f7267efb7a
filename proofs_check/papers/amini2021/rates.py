"""amini2021: the orders in n, d and sigma / tau of the deviation of a kernel matrix, by slopes on log scales."""

from __future__ import annotations

from collections.abc import Sequence

from proofs_check.claim import Check, Control, Form, Rate, Setting
from proofs_check.papers.amini2021 import trials as t

PAPER = "amini2021"


def _clipped(sizes: Sequence[int]) -> tuple[Setting, ...]:
    return tuple(Setting(f"n={n}", None, {"n": float(n)}, {"most": max(sizes)}) for n in sizes)


def _after_proposition_3() -> Check:
    settings = _clipped((16, 32, 64, 128, 256, 512))
    return Check(
        printed=Form(Rate(t.clipped_norm, "n", 0.5), settings),
        corrected=Form(Rate(t.clipped_deviation, "n", 0.5), settings),
        controls=(
            Control("n^(1/4) for the deviation", Rate(t.clipped_deviation, "n", 0.25), settings, kind="wrong power"),
        ),
    )


def _rate(true: Rate, wrong: Rate, settings: tuple[Setting, ...]) -> Check:
    return Check(
        printed=Form(true, settings),
        controls=(Control(f"the exponent {wrong.exponent:g}", wrong, settings, kind="wrong power"),),
    )


def _simplexes(levels: Sequence[float], dims: Sequence[int]) -> tuple[Setting, ...]:
    """Return centres at the mutual distance of one bandwidth, where an entry has nearly the largest variance."""
    n, most = t.POINTS, 128
    return tuple(
        t.gaussian("simplex", t.simplex(n, most, 1.0), level, dim).setting(
            f"d={dim}, noise={level:g}", {"sigma": level, "dim": float(dim)}
        )
        for level in levels
        for dim in dims
    )


def _dimension() -> Check:
    settings = _simplexes((0.05,), (48, 64, 80, 104, 128))
    return _rate(Rate(t.gram_error, "dim", -0.5), Rate(t.gram_error, "dim", -1.0), settings)


def _noise() -> Check:
    settings = _simplexes((0.02, 0.04, 0.08, 0.12, 0.2), (64,))
    return _rate(Rate(t.gram_error, "sigma", 1.0), Rate(t.gram_error, "sigma", 0.5), settings)


def _points() -> Check:
    settings = _clipped((16, 32, 64, 128, 256))
    return _rate(Rate(t.clipped_norm, "n", 1.0), Rate(t.clipped_norm, "n", 0.5), settings)
