"""Every public function: how to call it on a case, what shapes must come back, and what must be true of the numbers.

The stress (`support.stress`) makes cases of data that hurt, and judges what holds of all functions there: shapes and
dtypes, finite numbers where the data allow it, missing data that show. For the contract
(`tests/jaxkern/test_contract.py`) a
function is a program.
"""

from public import features, host, judges, kernels, measures, rkhs
from public.operation import TABLE, Operation
from public.programs import (
    CALLS,
    ENTRIES,
    GROUPS,
    LONG,
    MODULES,
    NO_GRADIENT,
    ON_THE_HOST,
    is_no_call,
    joined,
    public_names,
)

__all__ = [
    "CALLS",
    "ENTRIES",
    "GROUPS",
    "LONG",
    "MODULES",
    "NO_GRADIENT",
    "ON_THE_HOST",
    "TABLE",
    "Operation",
    "features",
    "host",
    "is_no_call",
    "joined",
    "judges",
    "kernels",
    "measures",
    "public_names",
    "rkhs",
]
