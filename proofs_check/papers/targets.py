"""What the adversary of `proofs_check.engine.adversary` attacks: one file a paper, one `Target` a form of a claim.

Some claims are refuted as printed, and the search must find that from random starts; the others are proved, and it
must find nothing. Several of these cannot be improved: there it must come close to the limit without crossing it.
"""

import functools

from proofs_check.engine.adversary import Target
from proofs_check.papers.adversaries import registered
from proofs_check.papers.amini2021 import targets as amini2021
from proofs_check.papers.chen2016 import targets as chen2016
from proofs_check.papers.ghashami2016 import targets as ghashami2016
from proofs_check.papers.kpotufe2020 import targets as kpotufe2020

__all__ = ["registered", "targets"]


@functools.cache
def targets() -> tuple[Target, ...]:
    """Return all targets, in the papers' order. Made once, so that a search compiles once."""
    return (
        *kpotufe2020.targets(),
        *chen2016.targets(),
        *ghashami2016.targets(),
        *amini2021.targets(),
    )
