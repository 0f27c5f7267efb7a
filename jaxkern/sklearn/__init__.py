"""Maps, clusterings and ridge regression as scikit-learn estimators, for pipelines and searches: the extra `sklearn`.

Each estimator is a thin shell: `fit` calls functions of the package, and `map_` or `clusters_` is what they return.
Computations run in the dtype of X, float32 or float64. JAX arrays give JAX arrays; no more than the rows that become
landmarks, or tell a lengthscale, are copied. Transformers take sparse matrices and make a few rows at a time dense:
memory stays small, and time is that of dense rows. Every estimator has these parameters, by keyword:

- `kernel`: one of "gaussian" or "rbf", "laplacian", "exponential", "cauchy", "matern32", "matern52", or a kernel of
  `jaxkern.kernels`, whose own parameters then hold;
- `lengthscale`: a positive number, an array of one for each column, or None for the median distance between the points
  of `fit` (of 2,000 of them where there are more); a median of 0, where half of all pairs coincide, is a `ValueError`;
- `gamma`: instead of a lengthscale, what scikit-learn calls so, for the first two kernels and "exponential": a positive
  number, or "scale" as in its `RBFSampler`;
- `random_state`: where everything random comes from; the same number gives the same result.

Those made of landmarks have `n_landmarks` (where there are fewer rows `fit` warns and takes all) and `landmarks`:
"uniform", which `partial_fit` keeps over batches, the name of another choice of `jaxkern.landmarks`, or an array of
points; `KernelKMeans` and ridge regression take uniform rows. Up to 1,024 landmarks and 2,048 rows are filled up to a
few sizes: a search compiles few programs. `centered`: whether features are taken less their mean, over the landmarks or
the stream.
"""

from jaxkern.sklearn._clusterers import KernelKMeans, KernelSpectral
from jaxkern.sklearn._regression import KernelRidge, KernelRidgeClassifier
from jaxkern.sklearn._transformers import (
    Fastfood,
    KernelJL,
    KernelPCA,
    Nystrom,
    OrthogonalFourier,
    PairedFourier,
    ShiftedFourier,
    StreamingPCA,
)

__all__ = [
    "Fastfood", "KernelJL", "KernelKMeans", "KernelPCA", "KernelRidge", "KernelRidgeClassifier", "KernelSpectral",
    "Nystrom", "OrthogonalFourier", "PairedFourier", "ShiftedFourier", "StreamingPCA",
]  # fmt: skip
