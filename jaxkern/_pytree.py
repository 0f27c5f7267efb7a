"""Moved to jaxkern.pytrees."""

import sys

import jaxkern.pytrees as module

sys.modules[__name__] = module
