"""All claims, in the papers' order."""

from __future__ import annotations

from collections.abc import Sequence

from proofs_check.claim import Claim
from proofs_check.papers import populations
from proofs_check.papers.populations import Population


def claims(data: Population | None = None, profile: str = "quick") -> list[Claim]:
    """Return every claim, with settings on the synthetic populations, or on a population of the user's own.

    Parameters
    ----------
    data : a population to run on instead of the synthetic ones.
    profile : "quick" or "full"; the full one tries more values of tau and sizes.
    """
    from proofs_check.papers import rare
    from proofs_check.papers.amini2021 import theorems as amini2021
    from proofs_check.papers.chen2016 import theorems as chen2016
    from proofs_check.papers.ghashami2016 import theorems as ghashami2016
    from proofs_check.papers.kpotufe2020 import identities as kpotufe2020_identities
    from proofs_check.papers.kpotufe2020 import theorems as kpotufe2020

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
