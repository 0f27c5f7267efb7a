"""Ways to choose landmarks: the few points of a data set that stand for all of it.

`uniform`, `kmeans_plus_plus`, `pivoted_cholesky` and `leverage` take all of the data and return rows of it;
`reservoir` sees the data once, in batches. The odds of a row are proportional to its weight. Of a set with fewer rows
than landmarks, filled up with rows of weight 0, the first landmarks are its rows and the others NaN:
`jnp.isfinite(landmarks).all(1).astype(landmarks.dtype)` are the weights of the landmarks.
"""

from jaxkern.landmarks._choices import kmeans_plus_plus, leverage, uniform
from jaxkern.landmarks._pivoted import Pivots, pivoted_cholesky
from jaxkern.landmarks._reservoir import Reservoir, reservoir

__all__ = [
    "Pivots",
    "Reservoir",
    "kmeans_plus_plus",
    "leverage",
    "pivoted_cholesky",
    "reservoir",
    "uniform",
]
