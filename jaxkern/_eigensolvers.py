"""Moved to jaxkern.linalg."""

from jaxkern.linalg import *  # noqa: F403
from jaxkern.linalg._krylov import _orthonormal  # noqa: F401
