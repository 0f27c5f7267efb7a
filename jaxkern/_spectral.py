"""Moved to jaxkern.linalg._dense."""

import sys

import jaxkern.linalg._dense as module

sys.modules[__name__] = module
