"""What `jaxkern.ragged` refuses."""

import numpy as np

from jaxkern import ragged

SETS = [np.zeros((n, 2), np.float32) for n in (3, 4)]


def pack():
    return ragged.pack, {"sets": SETS}


def apply():
    def call(numbers):
        return ragged.map(lambda X, weights, number: X, ragged.pack(SETS), numbers)

    return call, {"numbers": np.zeros(2)}


def by_group():
    return ragged.by_group, {"X": SETS[0], "groups": np.zeros(3)}


REFUSED = [
    (apply, {"numbers": np.zeros(3)}, "one entry for each of the 2 data sets"),
    (pack, {"classes": (2, 3)}, "last at least 4"),
    (pack, {"sets": []}, "at least one data set"),
    (pack, {"sets": [*SETS, SETS[0][:0]]}, "number 2 has not"),
    (pack, {"sets": [*SETS, SETS[0][:, :1]]}, "same dtype and trailing shape"),
    (by_group, {"groups": np.zeros(2)}, "groups must have shape"),
]
