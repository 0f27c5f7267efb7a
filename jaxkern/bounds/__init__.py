"""Right-hand sides of theorems as functions: each returns a `Bound`."""

from jaxkern.bounds._bound import Bound

__all__ = ["Bound", "sketching"]
