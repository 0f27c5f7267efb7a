"""Moved to jaxkern.checks."""

import sys

import jaxkern.checks as module

sys.modules[__name__] = module
