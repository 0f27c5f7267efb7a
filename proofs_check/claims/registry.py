"""All claims, in the papers' order."""

from __future__ import annotations

from collections.abc import Sequence

from proofs_check import populations
from proofs_check.claim import Claim
from proofs_check.populations import Population


def claims(data: Population | None = None, profile: str = "quick") -> list[Claim]:
    """Return every claim, with settings on the synthetic populations, or on a population of the user's own.

    Parameters
    ----------
    data : a population to run on instead of the synthetic ones.
    profile : "quick" or "full"; the full one tries more values of tau and sizes.
    """
    from proofs_check.claims import amini2021, chen2016, ghashami2016, kpotufe2020, kpotufe2020_identities, rare

    people: Sequence[Population] = populations.synthetic() if data is None else (data,)
    full = profile == "full"
    return [
        *kpotufe2020_identities.claims(people),
        *kpotufe2020.claims(people, full=full),
        *chen2016.claims(data, full=full),
        *ghashami2016.claims(data, full=full),
        *amini2021.claims(data, full=full),
        *rare.claims(full=full),
    ]
