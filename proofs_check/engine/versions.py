"""The versions on which numbers may depend."""

import platform

import jax
import numpy
import scipy

from jaxkern import __version__


def versions() -> dict[str, str]:
    """Return the versions of this package, of Python, and of what computes."""
    return {
        "jaxkern-verified": __version__,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
    }
