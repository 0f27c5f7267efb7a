"""Sabotages: what every check must reject.

A control is a claim with one mistake put in, of the sort that is made in practice. `KINDS` names the mistakes; every
`Control` of the registry carries one of these names, and `table` tells which claim was tried against which kind.
The functions below make a sabotaged statement, trial or setting from a sound one, so that a control is one line.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern.bounds import Bound
from proofs_check.claim import (
    Claim,
    Control,
    Inequality,
    Setting,
    Tail,
    Trial,
)

KINDS: Mapping[str, str] = {
    "wrong factor": "a constant of the statement multiplied by 2, by 1/2 or the like",
    "wrong power": "a power of a size, of an operator or of a deviation that is not the right one",
    "term left out": "one term of a sum in the statement dropped",
    "swapped constants": "lengthscale and gamma, variance and standard deviation, or two other conventions exchanged",
    "reused key": "one random draw used where independent ones belong",
    "transpose for adjoint": "the transpose where the adjoint in the inner product of the space belongs, or neither",
    "missing normalisation": "a factor such as 1/sqrt(m) missing, or one too many",
    "n for n - 1": "a count that is off by one",
    "centred for uncentred": "an operator centred where it must not be, or not where it must",
    "rows dropped": "the last rows of a stream, or a part of the sample, lost",
    "low precision": "numbers rounded to float16 on the way",
    "wrong law": "draws from another distribution than the stated one",
    "wrong operator": "another operator, matrix, kernel or quantity in the place of the right one",
    "hypothesis broken": "an assumption of the statement not met",
    "wrong cost": "another algorithm, with other costs, counted",
}


def table(claims: Iterable[Claim]) -> dict[str, tuple[str, ...]]:
    """Return the kinds of mistakes that the controls of each claim put in, by claim id and in the order of `KINDS`.

    Raises ValueError where a control has a kind that `KINDS` does not name.
    """
    found = {}
    for claim in claims:
        kinds = {control.kind for control in claim.controls}
        if not kinds <= set(KINDS):
            raise ValueError(
                f"kinds of controls must be among {sorted(KINDS)}, got {sorted(kinds)} at {claim.id}"
            )
        found[claim.id] = tuple(kind for kind in KINDS if kind in kinds)
    return found


def changed(
    settings: Sequence[Setting],
    what: str,
    *,
    numbers: Mapping[str, float] | None = None,
    shapes: Mapping[str, int] | None = None,
    data: Callable[[Any], Any] | None = None,
) -> tuple[Setting, ...]:
    """Return settings with `what` after their names, some numbers and shapes replaced, and other data.

    Parameters
    ----------
    numbers, shapes : what to replace or to add.
    data : takes the data of a setting to the sabotaged ones.
    """
    return tuple(
        dataclasses.replace(
            setting,
            name=f"{setting.name}, {what}",
            numbers={**setting.numbers, **(numbers or {})},
            shapes={**setting.shapes, **(shapes or {})},
            data=setting.data if data is None else data(setting.data),
        )
        for setting in settings
    )


def part_of(
    factor: float, statement: Tail | Inequality, settings: Sequence[Setting]
) -> Control:
    """Return the control in which right sides are smaller by |1 - factor|: by a factor just below 1 / slack."""
    if isinstance(statement, Tail):
        less = dataclasses.replace(
            statement, bound=scaled(statement.bound, lambda _: factor)
        )
        return Control(
            f"{factor:g} of the bound", less, tuple(settings), "wrong factor"
        )

    @functools.wraps(statement.sides)
    def smaller(*args: Any, **kwargs: Any) -> list[tuple[float, Bound]]:
        return [
            (
                left,
                dataclasses.replace(
                    right, value=right.value - (1 - factor) * abs(right.value)
                ),
            )
            for left, right in statement.sides(*args, **kwargs)
        ]

    wrong = dataclasses.replace(statement, sides=smaller)
    return Control(
        f"{factor:g} of the right side", wrong, tuple(settings), "wrong factor"
    )


def one_draw(settings: Sequence[Setting], shape: str = "rows") -> tuple[Setting, ...]:
    """Return settings in which a trial draws one row for all: what comes out if every row uses the same key.

    For trials whose statistic of equal rows is that of one of them, as it is for means over rows.
    """
    return changed(settings, "one draw for all", shapes={shape: 1})


def scaled(
    bound: Callable[[Setting], Bound], factor: Callable[[Setting], float]
) -> Callable[[Setting], Bound]:
    """Return a bound whose value is multiplied by a factor that may depend on the setting."""

    def evaluate(setting: Setting) -> Bound:
        right = bound(setting)
        return dataclasses.replace(right, value=right.value * factor(setting))

    return evaluate


@functools.cache
def same_key(trial: Trial) -> Trial:
    """Return a trial that uses one and the same key whatever key it is given: every trial gives the same number."""

    @functools.wraps(trial)
    def sabotaged(
        key: jax.Array, population: Any, numbers: Any, **shapes: int
    ) -> jax.Array:
        del key
        return trial(jax.random.key(0), population, numbers, **shapes)

    return sabotaged


def in_half(tree: Any) -> Any:
    """Return a PyTree of arrays with its real numbers rounded to float16, in the dtypes that they had."""

    def rounded(x: Any) -> Any:
        return (
            x.astype(np.float16).astype(x.dtype)
            if jnp.issubdtype(x.dtype, jnp.floating)
            else x
        )

    return jax.tree.map(rounded, tree)


def gamma_for_lengthscale(kernel: Any) -> Any:
    """Return a Gaussian kernel whose lengthscale is the gamma = 1 / (2 lengthscale^2) of the one that is given.

    The two agree at the lengthscale 2^(-1/3), where this is no mistake and no check can see it.
    """
    return dataclasses.replace(kernel, lengthscale=1 / (2 * kernel.lengthscale**2))
