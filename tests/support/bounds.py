"""A value for every argument of every bound, at which its hypotheses hold: those of its case without a name."""

import importlib

from support.bound_cases import TABLES

OF_ARRAYS = {"relative_distances_given", "kernel_values_given"}
ARGUMENTS = {
    f"bounds.{topic}.{name}": {word: float(value) for word, value in case.words.items()}
    for topic, table in TABLES.items()
    for name, case in table.items()
    if " " not in name and name not in OF_ARRAYS
}
"""By public name, the arguments of a bound with their values."""


def named(name):
    """Return the function of a public name."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(f"jaxkern.{module}"), attribute)
