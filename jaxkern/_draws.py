"""Moved to jaxkern.draws."""

import sys

import jaxkern.draws as module

sys.modules[__name__] = module
