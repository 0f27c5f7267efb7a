"""What the papers share: what a run tries their statements on, bounds of settings, and probabilities below e^-10."""

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import checks
from jaxkern.bounds import Bound
from proofs_check import register
from proofs_check.claim import (
    Check,
    Control,
    Enclosed,
    Exact,
    Form,
    Rare,
    Setting,
)
from proofs_check.engine import decided, enclosures, samples, tilting
from proofs_check.papers.populations import Population

LOG2 = math.log(2.0)
COPIES = 128
"""Frequencies or features in a mean whose tiny tail is estimated: one number, so that all settings share a program."""


Grids = Mapping[str, tuple[Setting, ...]]
"""The settings that the register lists for a claim, by their names there."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a run tries statements on: a user's data in the place of synthetic ones, and more settings where `full`."""

    data: Population | None = None
    full: bool = False

    @property
    def logs(self) -> tuple[float, ...]:
        """Minus the logarithms of the tiny probabilities that are tried."""
        return (10.0, 20.0, 40.0, 80.0) if self.full else (10.0, 40.0)


def always(value: Any, source: str) -> Bound:
    """Return a bound that is claimed to hold always."""
    return Bound(float(value), 1.0, True, source)


def lines(
    pairs: Iterable[tuple[float, float]], source: str
) -> list[tuple[float, Bound]]:
    """Return pairs (left, right) with left <= right always as what an Inequality compares."""
    return [(float(left), always(right, source)) for left, right in pairs]


def arguments_of(formula: Callable[..., Any]) -> set[str]:
    """Return the names of the parameters of a formula that have no default."""
    parameters = inspect.signature(formula).parameters.values()
    return {p.name for p in parameters if p.default is p.empty}


def bound_of(
    formula: Callable[..., Bound],
    *,
    of: Callable[[Setting], Any] | None = None,
    **options: Any,
) -> Callable[[Setting], Bound]:
    """Return the bound of a setting by a formula of `jaxkern.bounds`.

    Each argument is the number or the shape of the setting with its name, or with the name that `options` has for it;
    what the setting does not have is an attribute of `of(setting)`. Options that are no names are passed on.
    """
    renamed = {name: value for name, value in options.items() if isinstance(value, str)}
    passed = {
        name: value for name, value in options.items() if not isinstance(value, str)
    }
    names = [*(arguments_of(formula) - set(passed)), *renamed]

    def evaluate(setting: Setting) -> Bound:
        given = {**setting.numbers, **setting.shapes}
        values = {}
        for name in names:
            source = renamed.get(name, name)
            values[name] = (
                given[source]
                if source in given or of is None
                else getattr(of(setting), source)
            )
        return formula(**values, **passed)

    return evaluate


@dataclass(frozen=True)
class Wrong:
    """A control of `check_of`: how it differs from the form that holds. Its settings are those, if it has no others."""

    name: str
    kind: str
    function: Callable[..., Any] | None
    settings: Sequence[Setting] | None
    options: Mapping[str, Any]

    def of(
        self,
        statement: Callable[..., Any],
        function: Callable[..., Any],
        settings: Sequence[Setting],
    ) -> Control:
        """Return the control for the function and the settings of the form that holds."""
        varied = functools.partial(self.function or function, **self.options)
        chosen = settings if self.settings is None else self.settings
        return Control(self.name, statement(varied), tuple(chosen), self.kind)


def wrong(
    name: str,
    kind: str,
    function: Callable[..., Any] | None = None,
    /,
    *,
    settings: Sequence[Setting] | None = None,
    **options: Any,
) -> Wrong:
    """Return a control with another function, or with other options of the same function, by keyword."""
    return Wrong(name, kind, function, settings, options)


def check_of(
    statement: Callable[..., Any],
    settings: Sequence[Setting],
    *controls: Wrong | Control,
    printed: Callable[..., Any] | None = None,
    corrected: Callable[..., Any] | None = None,
    printed_settings: Sequence[Setting] | None = None,
) -> Check:
    """Return the check whose forms and controls are one kind of statement, of different functions.

    statement : makes a statement of a function, such as `Inequality`.
    settings : of all forms and controls that have no others; `printed_settings` are those of the printed form.
    controls : how they differ from the corrected form, or from the printed one if there is no other.
    """
    forms = {}
    if printed is not None:
        tried = settings if printed_settings is None else printed_settings
        forms["printed"] = Form(statement(printed), tuple(tried))
    if corrected is not None:
        forms["corrected"] = Form(statement(corrected), tuple(settings))
    right = corrected or printed
    assert right is not None
    rejected = [
        control.of(statement, right, settings)
        if isinstance(control, Wrong)
        else control
        for control in controls
    ]
    return Check(**forms, controls=tuple(rejected))


def share_of(share: float, formula: Callable[..., Bound]) -> Callable[..., Bound]:
    """Return a formula of which the value is a share of that of another, for controls."""

    @functools.wraps(formula)
    def smaller(**arguments: Any) -> Bound:
        right = formula(**arguments)
        return replace(right, value=share * right.value)

    return smaller


@dataclass(frozen=True)
class Exceeds:
    """The statement that a statistic exceeds a bound with at most the probability that the bound claims, for `Exact`.

    log_tail : takes the value of the bound, and the numbers and shapes of the setting that it names, and returns the
        log-probability that the statistic exceeds this value.
    bound : a formula of `jaxkern.bounds`; its other arguments are numbers or shapes of the setting.
    """

    log_tail: Callable[..., float]
    bound: Callable[..., Bound]

    def __call__(self, setting: Setting) -> tuple[float, float]:
        """Return the log-probability, and the log of the one that is claimed; the hypotheses hold, or ValueError."""
        right = valid(bound_of(self.bound)(setting), setting)
        log_tail = functools.partial(self.log_tail, right.value)
        return samples.evaluate(log_tail, setting), float(right.log_failure)


def exceeds(log_tail: Callable[..., float]) -> Callable[..., Exact]:
    """Return what makes an Exact of a bound: the statistic with this tail exceeds it as rarely as it claims."""
    return lambda formula: Exact(Exceeds(log_tail, formula))


# A probability 1 - delta has lost all digits of delta below 1e-16, so the log of delta comes from the formula in the
# exponent; the bounds of `jaxkern.bounds` say whether the hypotheses hold, and give every value.


def valid(right: Bound, setting: Setting) -> Bound:
    """Return a bound whose hypotheses hold, or raise ValueError."""
    if not right.valid:
        raise ValueError(
            f"the hypotheses of {right.source} do not hold at setting {setting.name!r}"
        )
    return right


def claimed(right: Bound, setting: Setting) -> float:
    """Return the log of the failure probability of a bound whose hypotheses hold, or raise ValueError."""
    return float(valid(right, setting).log_failure)


def tail_of_mean(log_claimed: Callable[[Setting], float]) -> Rare:
    """Return the statement that the tail of a mean of copies, by `tilting.sums`, has at most the claimed log."""
    return Rare(tilting.sum_estimate, log_claimed, tilting.log_ceiling)


def real(x: Any) -> jax.Array:
    """Return an array of the default float dtype."""
    dtype = jnp.result_type(float)
    return (
        jnp.asarray(x, dtype)
        if isinstance(x, jax.Array)
        else checks.as_array("x", np.asarray(x, dtype))
    )


def as_residual(errors: Any) -> np.ndarray:
    """Return errors of computations of the default dtype in that dtype, which says what rounding is allowed for."""
    return np.abs(np.asarray(errors, jnp.result_type(float)))


def rng_of(key: jax.Array) -> np.random.Generator:
    """Return NumPy's generator with the bits of a key as its seed."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def normals(key: jax.Array, rows: int, columns: int, dtype: Any) -> jax.Array:
    """Return the normal numbers (rows, columns) that the library's draws are made of: row i is of fold_in(key, i)."""
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(
        jnp.arange(rows, dtype=jnp.uint32)
    )
    return jax.vmap(lambda k: jax.random.normal(k, (columns,), dtype))(keys)


def op_norm(A: np.ndarray) -> float:
    """Return the operator norm of a matrix."""
    return float(np.linalg.norm(A, 2))


def everywhere(claim: str, *, above: bool = False, **forms: Callable[..., Any]) -> Any:
    """Return the enclosures of forms at all their settings: one function, or a list in the order of the forms.

    The function of a form gets all numbers as balls, and the shapes that it names. It returns (left, right) of
    left <= right. For an `Exceeds` it first gets the value of the bound, by the formula of the check in balls, then the
    numbers that it names, and returns the probability alone: what is claimed is that of the formula. A right side None
    is what an Exact claims.
    With `above` the left side is what a probability is at most, so that nothing is refuted.
    """

    def enclosed(name: str) -> Enclosed:
        form = register.claims(only=[claim])[0].forms[name]
        return enclosures.together(
            _enclosed(form.statement, forms[name], setting, above)
            for setting in form.settings
        )

    functions = [functools.partial(enclosed, name) for name in forms]
    return functions if len(functions) > 1 else functions[0]


def _enclosed(
    statement: Any, function: Callable[..., Any], setting: Setting, above: bool
) -> Enclosed:
    sides = functools.partial(_sides, statement, function, setting)
    result = enclosures.at_most(sides, setting.name)
    if above and not result.holds:
        raise ArithmeticError(f"not decided: at most {result.because}")
    return result


def _sides(
    statement: Any, function: Callable[..., Any], setting: Setting
) -> tuple[Any, Any]:
    """Return both sides at a setting, in balls of the present precision."""
    numbers = {name: enclosures.ball(x) for name, x in setting.numbers.items()}
    in_balls = replace(setting, numbers=numbers)
    is_exact = isinstance(statement, Exact)
    if is_exact and isinstance(statement.probability, Exceeds):
        formula = statement.probability.bound
        known = {**numbers, **setting.shapes}
        arguments = {name: known[name] for name in arguments_of(formula)}
        right = valid(decided.bound(formula, **arguments), setting)
        tail = functools.partial(function, right.value)
        return samples.evaluate(tail, in_balls), right.log_failure.exp()
    names = inspect.signature(function).parameters
    shapes = {name: x for name, x in setting.shapes.items() if name in names}
    left, right = function(**numbers, **shapes)
    if is_exact:
        # What the library claims, where that is more than the formula.
        _, log_claimed = samples.evaluate(statement.probability, setting)
        claimed_by_check = enclosures.ball(log_claimed).exp()
        printed = claimed_by_check if right is None else enclosures.ball(right)
        right = claimed_by_check.min(printed)
    return left, right
