"""The reproducing kernel Hilbert space H made concrete: functions, operators and Gaussian measures on it.

Everything lives in the span of finitely many kernel sections, so every quantity here is exact up to rounding:

- `Function`: f = sum_i weights_i K(., points_i); several at once are columns of the weights;
- `SamplingOperator`: S f = (f(X_1), ..., f(X_n)), with adjoint S* beta = sum_i beta_i K(., X_i), so that K = S S*;
- `Covariance`: Sigma = sum_i w_i K_{x_i} (x) K_{x_i} of a finite-support measure, its powers, traces and norms;
- `draw_gaussian`: draws from N_H(0, Sigma^p), and `RandomProjection`, the operator Theta of kpotufe2020 (2).
"""

from jaxkern.rkhs._covariance import Covariance, RandomProjection, draw_gaussian
from jaxkern.rkhs._function import Function, SamplingOperator, inner, norm, section

__all__ = [
    "Covariance", "Function", "RandomProjection", "SamplingOperator", "draw_gaussian", "inner", "norm", "section",
]  # fmt: skip
