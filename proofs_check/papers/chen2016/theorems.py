"""Claims of chen2016: relative errors of random Fourier features.

Distances are in units of the lengthscale, r is one, and t counts frequencies. `docs/theory/chen2016.md` derives every
correction. On a user's table the statements about points use its rows.
"""

from __future__ import annotations

from proofs_check.claim import Claim
from proofs_check.papers.chen2016 import balls as chen2016_balls
from proofs_check.papers.chen2016 import given, places
from proofs_check.papers.chen2016 import introduction as chen2016_introduction
from proofs_check.papers.chen2016 import pairs as chen2016_pairs
from proofs_check.papers.chen2016 import sets as chen2016_sets
from proofs_check.papers.populations import Population


def claims(data: Population | None = None, *, full: bool = False) -> list[Claim]:
    """Return the claims of the paper, in its order, and then ours."""
    deltas = (places.DELTA, 0.01) if full else (places.DELTA,)
    pairs, people = places.pairs_of(data), places.point_sets(data)
    return [
        *chen2016_pairs.claims(data, pairs, people, deltas, full=full),
        *chen2016_sets.claims(data, people, deltas),
        *chen2016_balls.claims(deltas),
        *chen2016_introduction.ours(pairs),
        *chen2016_sets.ours(data, people, full=full),
        *given.claims(data, people, full=full),
        *chen2016_balls.ours(data),
    ]
