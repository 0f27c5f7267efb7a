"""The keys of a certificate: what each random part is drawn by, apart from the map."""

from collections import namedtuple
from typing import Any

import jax

FIRST = 2**31
"""The least number that is folded in. `jax.random.split(key, n)[i]` is `jax.random.fold_in(key, i)`, so that a smaller
number could be a key that splitting gave to the map, whose subkeys would then be drawn by twice."""


Keys = namedtuple(
    "Keys", "scale facts trials detail held_out columns rows exact restarts clusters"
)
"""One key for each use.

`rows` splits off the rows held out, `exact` chooses landmarks for the exact method, `restarts` finds how many k-means
needs, and `clusters` draws its seeds for what is shown.
"""


def keys_of(key: Any) -> Keys:
    """Return the keys of all uses of the caller's key but the map, which is drawn by the key itself."""
    key = jax.random.clone(key)
    uses = range(len(Keys._fields))
    return Keys(*(jax.random.fold_in(key, FIRST + use) for use in uses))
