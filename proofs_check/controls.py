"""The kinds of sabotage that checks must reject.

A control is a claim with one mistake put in, of the sort that is made in practice. `KINDS` names the mistakes; every
`Control` of the registry carries one of these names, and the report shows which claim was tried against which kind.
"""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, str] = {
    "wrong factor": "a constant of the statement multiplied by 2, by 1/2 or the like",
    "wrong power": "a power of a size, of an operator or of a deviation that is not the right one",
    "term left out": "one term of a sum in the statement dropped",
    "swapped constants": "lengthscale and gamma, variance and standard deviation, or two other conventions exchanged",
    "reused key": "one random draw used where independent ones belong",
    "transpose for adjoint": "the transpose where the adjoint in the inner product of the space belongs",
    "missing normalisation": "a factor such as 1/sqrt(m) missing, or one too many",
    "n for n - 1": "a count that is off by one",
    "centred for uncentred": "an operator centred where it must not be, or not where it must",
    "rows dropped": "the last rows of a stream, or a part of the sample, lost",
    "low precision": "numbers rounded to float16 on the way",
    "wrong law": "draws from another distribution than the stated one",
    "wrong operator": "another operator, matrix or kernel in the place of the right one",
    "hypothesis broken": "an assumption of the statement not met",
    "wrong cost": "another algorithm, with other costs, counted",
}
