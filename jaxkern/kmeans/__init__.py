"""k-means: k-means++ seeding, greedy or plain, Lloyd iterations, restarts.

Points are centred once, because the product form |c|^2 - 2 <x, c> of squared distances loses the digits that a common
offset takes; it serves only to find the nearest centre, and only where its rounding is far below the distance to it.
Where a distance itself counts (seeding, the objective) it is summed over direct differences. Rows go through in blocks,
so that nothing is larger than N x d or k x block.

All of it also runs with the rows divided over the devices of a mesh (`scale.kmeans`): what depends on rows of other
devices goes through `Share`, which does nothing on one device.
"""

from jaxkern.kmeans._kmeans import KMeansResult, kmeans

__all__ = ["KMeansResult", "kmeans"]
