"""Linear algebra of symmetric matrices: products in full precision, sorted eigenvalues, and a few eigenpairs only."""

from jaxkern.linalg._dense import (
    HIGHEST,
    eigh,
    eigvalsh,
    matmul,
    operator_norm,
    psd_eigvalsh,
    psd_power,
    svd,
    trace_power,
)
from jaxkern.linalg._krylov import (
    Eigenpairs,
    largest_eigenpairs,
    largest_modulus_eigenpairs,
    start_block,
)
from jaxkern.linalg._leading import (
    dense_restarts,
    eigen_rows,
    host_eigenpairs,
    leading_eigh,
    leading_modulus_eigh,
    prefers_partial,
)

__all__ = [
    "HIGHEST", "Eigenpairs", "dense_restarts", "eigen_rows", "eigh", "eigvalsh", "host_eigenpairs",
    "largest_eigenpairs", "largest_modulus_eigenpairs", "leading_eigh", "leading_modulus_eigh", "matmul",
    "operator_norm", "prefers_partial", "psd_eigvalsh", "psd_power", "start_block", "svd", "trace_power",
]  # fmt: skip
