"""Kernel methods as pure JAX functions: Gram matrices, operators of an RKHS, sketches, clustering, and their bounds."""

__version__ = "0.1.0"
