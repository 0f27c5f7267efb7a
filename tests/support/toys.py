"""Toy claims for the tests of runs: a tail bound with a control, a rate, an identity and an expectation."""

import dataclasses
import json
from pathlib import Path

import jax

from jaxkern.bounds import Bound
from proofs_check.claim import (
    Claim,
    Control,
    Expectation,
    Form,
    Identity,
    Rate,
    Setting,
    Tail,
    sample,
)
from proofs_check.engine import draws


def uniform(key, population, numbers):
    return jax.random.uniform(key, dtype=numbers["size"].dtype) / numbers["size"]


def bound(value, delta):
    return lambda setting: Bound(
        value / setting.numbers["size"], 1 - delta, True, "toy2020:1"
    )


@sample("rounding")
def rounding(key):
    return 1e-15 * jax.random.uniform(key, (3,))


SIZES = tuple(
    Setting(f"size={n}", numbers={"size": float(n)}) for n in (1, 2, 4, 8, 16)
)
CLAIM = Claim(
    id="toy2020:thm1",
    paper="toy2020",
    where="Theorem 1",
    kind="tail bound",
    tex="U < 1",
    because="it is so",
    printed=Form(Tail(uniform, bound(0.75, 0.1)), SIZES[:2], "refuted"),
    corrected=Form(Tail(uniform, bound(0.92, 0.1)), SIZES[:2], "certified"),
    controls=(
        Control("half", Tail(uniform, bound(0.5, 0.1)), SIZES[:1], "wrong factor"),
    ),
)
OTHERS = (
    dataclasses.replace(
        CLAIM,
        id="toy2020:rate",
        printed=Form(Rate(uniform, "size", -1.0), SIZES, "certified"),
        corrected=Form(Identity(rounding), SIZES[:1], "identity"),
        controls=(),
    ),
    dataclasses.replace(
        CLAIM,
        id="toy2020:mean",
        printed=None,
        corrected=Form(
            Expectation(uniform, lambda s: 0.5, lambda s: 1.0, moment=lambda s: 1 / 12),
            SIZES[:1],
            "certified",
        ),
        controls=(),
    ),
)
CLAIMS = [CLAIM, *OTHERS]
PROFILE = draws.Profile(
    "quick", max_trials=16 * 128, max_draws=700, max_control=128, lenient=True
)


def report(folder):
    """Return a report without what may differ between equal runs."""
    fields = json.loads((Path(folder) / "report.json").read_text())
    run = fields.pop("run")
    return fields, run
