"""Kernel ridge regression whose distance from the exact solution is known: in the RKHS and at every point."""

from jaxkern.regression._head import (
    CertifiedHead,
    Head,
    RidgeState,
    StreamingRidge,
    certified_head,
    head,
    streaming_ridge,
)
from jaxkern.regression._leave_one_out import leave_one_out
from jaxkern.regression._predictor import TablePredictor
from jaxkern.regression._ridge import Ridge, ridge, ridge_to
from jaxkern.regression._variance import posterior_variance

__all__ = [
    "CertifiedHead", "Head", "Ridge", "RidgeState", "StreamingRidge", "TablePredictor", "certified_head", "head",
    "leave_one_out", "posterior_variance", "ridge", "ridge_to", "streaming_ridge",
]  # fmt: skip
