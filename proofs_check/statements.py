"""Statements of anyone's: one function draws a statistic, one number bounds it, and `validate` says what draws say.

A statement is about one function, `statistic(key)`, which draws it once; with data it is `statistic(key, data)`, and
with sizes the size comes last. `statement` makes a `Claim` of it, which `python -m proofs_check --claims FILE` runs as
those of the papers, and `validate` runs one at once. `inequality` makes a claim that an adversary can attack.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import checks
from jaxkern.bounds import Bound
from proofs_check import controls as sabotages
from proofs_check.claim import (
    Claim,
    Control,
    Evidence,
    Expectation,
    Form,
    Inequality,
    Rate,
    Setting,
    Statement,
    Tail,
)
from proofs_check.engine import enclosures, keys, sets
from proofs_check.engine.adversary import Target
from proofs_check.engine.draws import Profile
from proofs_check.engine.judge.tail import slack_limits
from proofs_check.engine.work import Options, Work

NOISE = 8.0
"""So many times what a few roundings of a place change is taken off an excess."""

Mean = Literal["at most", "equal to"]


@dataclass(frozen=True)
class _Trial:
    """A statistic as the engine draws it; equal ones share their compiled programs.

    `always` says that it is claimed to be at most its bound with certainty: then it may ignore its key.
    """

    func: Callable[..., Any]
    of_data: bool
    of_size: bool
    always: bool = False

    def __call__(self, key: jax.Array, data: Any, _: Any, **shapes: int) -> Any:
        self._check_randomness(key, data, shapes)
        return self.func(key, *_given(self, data, shapes))

    def _check_randomness(
        self, key: jax.Array, data: Any, shapes: Mapping[str, int]
    ) -> None:
        """Raise a ValueError if the trials would share random numbers, or have none."""
        # JAX keeps what it has traced. A new lambda, without a jit of the user, is traced anew.
        func: Any = self.func
        if hasattr(func, "lower"):
            func = func.__wrapped__
        programs = []
        for _ in range(2):
            anew = jax.jit(lambda key, data: func(key, *_given(self, data, shapes)))
            programs.append(anew.trace(key, data))
        # The text of a program has all its numbers.
        if programs[0].lower().as_text() != programs[1].lower().as_text():
            raise ValueError(
                "the statistic draws from a generator that is not its key, such as NumPy's, so all trials would share "
                "these numbers; draw with jax.random from the key, or pass the numbers as data="
            )
        if not (self.always or keys.reaches_result(programs[0].jaxpr)):
            raise ValueError(
                "the statistic does not depend on its key, so every trial would be the same number; draw with "
                "jax.random from the key, as in jax.random.normal(key, (10,)). What is no draw can be compared "
                "with a bound that holds with probability=1"
            )


def _given(trial: _Trial, data: Any, shapes: Mapping[str, int]) -> list[Any]:
    return [
        *([data] if trial.of_data else []),
        *([shapes["size"]] if trial.of_size else []),
    ]


def statement(
    name: str,
    statistic: Callable[..., Any],
    bound: Any = None,
    *,
    probability: float | None = None,
    mean: Mean | None = None,
    exponent: float | None = None,
    data: Any = None,
    stacked: bool = False,
    sizes: Sequence[int] = (),
    limits: tuple[float, float] | None = None,
    variance: float | None = None,
    within: float | None = None,
    controls: Sequence[float] = (),
    expect: str = "",
    **told: Any,
) -> Claim:
    r"""Return a claim about a statistic that one function draws.

    Exactly one of three says what is claimed: a probability, of `bound` itself where that is a `Bound`; `mean`; or
    `exponent`.

    Parameters
    ----------
    name : the id of the claim, such as "mine:hoeffding"; what stands before the colon names the paper.
    statistic : `(key, [data], [size]) -> scalar`, pure and traceable: one draw. It gets the data and a size where there
        are any.
    bound : a number, a `jaxkern.bounds.Bound`, or a function `([data], [size])` that returns one; with stacked data or
        sizes also a sequence of numbers, one for each.
    probability : `statistic <= bound` with at least this probability, in (0, 1]; 1 is an inequality that always holds,
        up to rounding.
    mean : the expectation of the statistic is "at most" the bound, or "equal to" it.
    exponent : the expectation of the statistic is proportional to size^exponent, over five sizes or more.
    data : a PyTree of arrays. With `stacked` its leaves have a leading axis of settings, which share a compilation.
    sizes : static whole numbers, such as numbers of points; one setting, and one compilation, for each.
    limits : (low, high), between which the statistic always lies. With an infinite high, draws can only show that a
        mean is too large. Of a mean or a rate; without it and a variance draws decide nothing about these.
    variance : a number that the variance of the statistic does not exceed; in place of limits.
    within : how far a mean may be off its number (default: 5 % of it), or the exponent off its own (default: .1).
    controls : factors below 1. The check must refute each of these multiples of the bound, or the claim fails.
    expect : the verdict that you expect, such as "refuted"; a run fails with another one. Without it any verdict will
        do.
    told : further fields of `proofs_check.claim.Claim`, such as title, tex, hypotheses, because.

    Returns
    -------
    Claim, for `claims()` of a file of claims, or for `proofs_check.engine.run.run`.

    Raises ValueError where these do not fit together. A statistic whose random numbers do not come from its key is
    refused when it is drawn. Cost: none; nothing is drawn.
    """
    if not callable(statistic):
        raise ValueError(
            f"statistic must be a function of a key, got {type(statistic).__name__}"
        )
    given = {"probability": probability, "mean": mean, "exponent": exponent}
    asked = [name for name, value in given.items() if value is not None]
    if len(asked) > 1 or (bound is None) != (asked == ["exponent"]):
        raise ValueError(
            f"give a bound with a probability or a mean, or an exponent alone; got {asked or 'none'}"
        )
    if probability is not None and not 0 < probability <= 1:
        raise ValueError(f"probability must lie in (0, 1], got {probability!r}")
    if mean not in (None, "at most", "equal to"):
        raise ValueError(f'mean must be "at most" or "equal to", got {mean!r}')
    if stacked and (data is None or sizes):
        raise ValueError("stacked data need data, and go without sizes")
    trial = _Trial(statistic, data is not None, bool(sizes))
    settings = _settings(data, stacked, sizes)
    places = {setting.name: i for i, setting in enumerate(settings)}

    def right(setting: Setting) -> Any:
        value = (
            bound(*_given(trial, setting.data, setting.shapes))
            if callable(bound)
            else bound
        )
        several = (
            isinstance(value, list | tuple | np.ndarray | jax.Array)
            and np.ndim(value) == 1
        )
        if several and len(value) != len(settings):
            raise ValueError(
                f"bound must be one number a setting, {len(settings)}, got {len(value)}"
            )
        return value[places[setting.name]] if several else value

    def whole(setting: Setting) -> Bound:
        value = right(setting)
        if isinstance(value, Bound):
            if probability is not None and not math.isclose(
                float(value.probability), probability, rel_tol=1e-6
            ):
                raise ValueError(
                    f"the bound has the probability {float(value.probability):g}, not {probability:g}"
                )
            return value
        if probability is None:
            raise ValueError("a bound that is a number needs a probability, or mean")
        return Bound(float(value), probability, True, name)

    def target(setting: Setting) -> float:
        value = right(setting)
        return float(value.value if isinstance(value, Bound) else value)

    known: dict[str, Any] = {"limits": None if limits is None else (lambda _: limits)}
    known["moment"] = None if variance is None else (lambda _: variance)
    made: Statement
    if exponent is not None:
        made = Rate(
            trial, "size", exponent, width=0.1 if within is None else within, **known
        )
    elif mean is not None:
        scale: Any = (
            (lambda setting: 0.05 * target(setting))
            if within is None
            else (lambda _: within)
        )
        made = Expectation(
            trial, target, scale, precision=1.0, at_most=mean == "at most", **known
        )
    else:
        always = all(float(whole(setting).probability) == 1 for setting in settings)
        made = Tail(dataclasses.replace(trial, always=always), whole)
    if controls and not isinstance(made, Tail):
        raise ValueError(
            "controls are for statements with a probability; make a claim with expect='refuted'"
        )
    return claim_of(
        name,
        Form(made, settings, expect),
        kind="rate"
        if exponent is not None
        else "expectation"
        if mean
        else "inequality"
        if made.trial.always
        else "tail bound",
        controls=tuple(
            sabotages.part_of(factor, made, settings)
            for factor in controls
            if isinstance(made, Tail)
        ),
        **told,
    )


@dataclass(frozen=True)
class _Sides:
    """Both sides of an inequality, and the set in which they are to hold."""

    name: str
    func: Callable[[Any, Any], tuple[Any, Any]]
    within: Any

    def nearest(self, params: Any) -> Any:
        """Return the projection of params."""
        return (
            jax.tree.map(lambda part, leaf: part(leaf), self.within, params)
            if self.within
            else params
        )

    def members(self, params: Any) -> Any:
        """Return the member of the set, in balls, that belongs to arrays of balls."""

        def member(part: Any, leaf: Any) -> Any:
            return part.exact(leaf) if isinstance(part, sets.Set) else leaf

        return jax.tree.map(member, self.within, params) if self.within else params

    def enclosed(self, params: Any) -> tuple[Any, Any]:
        """Return both sides in balls, at the member of the set that belongs to arrays of balls."""
        try:
            return self.func(self.members(params), enclosures.xp)
        except (AttributeError, TypeError) as error:
            raise ValueError(
                f"{self.name}: both sides must be formulas that balls can evaluate, for balls prove a counterexample; "
                f"got {type(error).__name__}: {str(error).partition(chr(10))[0]}. Use operators and these functions "
                f"of xp: {enclosures.xp.functions()}"
            ) from error

    def rounded(self, params: Any) -> Any:
        """Return the floats next to the member of the set that belongs to floats."""
        with enclosures.precision(enclosures.BITS[0]):
            members = self.members(jax.tree.map(enclosures.balls, params))
            return jax.tree.map(lambda leaf: leaf.astype(float), members)

    def relative(self, params: Any) -> jax.Array:
        """Return left minus right over the larger magnitude, in JAX."""
        left, right = self.func(params, jnp)
        larger = jnp.maximum(jnp.abs(left), jnp.abs(right))
        return (left - right) / jnp.maximum(larger, jnp.finfo(larger.dtype).tiny)

    def excess(self, params: Any, key: jax.Array) -> jax.Array:
        """Return `relative`, less what it owes to rounding: where both sides vanish that may be all of it."""
        leaves, structure = jax.tree.flatten(params)
        keys = jax.random.split(key, len(leaves))
        moved = [_rounded(key, leaf) for key, leaf in zip(keys, leaves, strict=True)]
        value = self.relative(params)
        other = self.relative(jax.tree.unflatten(structure, moved))
        return value - NOISE * lax.stop_gradient(jnp.abs(value - other))

    def pair(self, params: Any) -> tuple[float, float]:
        """Return both sides at a place in floats, to all digits if balls can."""
        if enclosures.available():
            with contextlib.suppress(ArithmeticError):
                return enclosures.rounded(
                    lambda: self.enclosed(jax.tree.map(enclosures.balls, params))
                )
        left, right = self.func(params, np)
        return float(left), float(right)

    def proved(self, params: Any) -> tuple[float, float]:
        """Return the same, and the left side no larger than the right one where that is not proved."""
        left, right = self.pair(params)
        if left > right and enclosures.available():
            balls = jax.tree.map(enclosures.balls, params)
            with contextlib.suppress(ArithmeticError):
                if not enclosures.at_most(lambda: self.enclosed(balls)).holds:
                    return left, right
        return min(left, right), right

    def inside(self, params: Any) -> bool:
        """Tell whether these floats are a place, or lead to one without rounding."""

        def member(part: Any, leaf: Any) -> bool:
            made = isinstance(part, sets.Set) and part.says
            return bool(made) or all(
                map(np.array_equal, jax.tree.leaves(part(leaf)), jax.tree.leaves(leaf))
            )

        return self.within is None or all(
            jax.tree.leaves(jax.tree.map(member, self.within, params))
        )


def _rounded(key: jax.Array, leaf: jax.Array) -> jax.Array:
    if not jnp.issubdtype(leaf.dtype, jnp.floating):
        return leaf
    by = (
        jax.random.uniform(key, leaf.shape, leaf.dtype, -4, 4)
        * jnp.finfo(leaf.dtype).eps
    )
    return leaf * (1 + by)


def inequality(
    name: str,
    sides: Callable[[Any, Any], tuple[Any, Any]],
    start: Callable[[jax.Array], Any],
    within: Any = None,
    *,
    places: int = 100,
    rate: float = 0.05,
    expect: str = "",
    **told: Any,
) -> Claim:
    """Return the claim that left <= right always, which is tried at random places, and which an adversary can attack.

    Parameters
    ----------
    name : the id of the claim.
    sides : `(params, xp) -> (left, right)`, where `xp` is JAX's NumPy, NumPy, or one of balls, whose arithmetic
        encloses what is true. Use operators and functions of `xp` alone. Balls have fewer of these than NumPy: no
        `where`, and of `linalg` only det, eigvalsh, inv, norm, svdvals and trace. A number such as 1 / 3 or 2**0.5 is
        the float that Python makes of it, and xp.sqrt(2) is exact.
    start : `key -> params`, a random place: a PyTree of float arrays.
    within : the set of the places, as a PyTree of members of `proofs_check.sets`, one for each array, or of functions
        from an array to the nearest member; None where every array will do.
    places : how many random ones a run tries.
    rate : of the ascent: how far an entry moves in a step, at first.
    expect, told : as for `statement`.

    Returns
    -------
    Claim, for a file of claims, or for `proofs_check.attack`.

    The sides are compared as a ratio, so that a supremum which is reached only where both of them vanish is found. A
    refutation is said only of what balls prove, at exactly the floats that are printed, or the member of the set that
    these lead to; without python-flint nothing is refuted. Cost: `places` evaluations in a run.

    Examples
    --------
    >>> import jax
    >>> from proofs_check import attack, inequality, sets
    >>> def sides(x, xp):
    ...     return xp.sum(x) ** 2, 2 * xp.sum(x * x)
    >>> claim = inequality("mine:sum", sides, lambda key: jax.random.normal(key, (3,)))
    >>> with jax.enable_x64(True):
    ...     found = attack(claim, restarts=4, steps=20)
    >>> found.found, found.simplest
    (True, array([1., 1., 1.]))
    """
    both = _Sides(name, sides, within)
    parts = [part for part in jax.tree.leaves(within) if isinstance(part, sets.Set)]
    member = "; ".join(dict.fromkeys(part.says for part in parts if part.says))

    def at_random(key: jax.Array) -> list[tuple[float, Bound]]:
        found = jax.jit(jax.vmap(lambda key: both.nearest(start(key))))(
            jax.random.split(key, places)
        )
        pairs = [
            both.proved(jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), found))
            for i in range(places)
        ]
        return [(left, Bound(right, 1.0, True, name)) for left, right in pairs]

    def recheck(params: Any) -> Form:
        left, right = both.pair(params)
        pair = (left, Bound(right, 1.0, True, name))
        return Form(Inequality(lambda: [pair], relative=True), (Setting("this place"),))

    target = Target(
        name, "", told.get("hypotheses") or "all that `start` and `within` allow", start, both.nearest,
        both.excess, recheck, both.enclosed, rate=rate, inside=both.inside, member=member,
        rounded=both.rounded if member else None,
    )  # fmt: skip
    form = Form(
        Inequality(at_random, relative=True),
        (Setting(f"{places} random places"),),
        expect,
    )
    return claim_of(name, form, kind="inequality", target=target, **told)


def claim_of(
    name: str, form: Form, *, kind: str, controls: tuple[Control, ...] = (), **told: Any
) -> Claim:
    """Return a claim of one form, told in words or by its name."""
    paper, _, own = name.rpartition(":")
    words = {
        "paper": paper or "mine",
        "where": kind.capitalize(),
        "title": own,
        "tex": "",
        "because": "",
    }
    return Claim(
        **{
            **words,
            "id": name,
            "kind": kind,
            "printed": form,
            "controls": controls,
            **told,
        }
    )


def _settings(data: Any, stacked: bool, sizes: Sequence[int]) -> tuple[Setting, ...]:
    if stacked:
        counts = {
            np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in jax.tree.leaves(data)
        }
        if len(counts) != 1 or 0 in counts:
            raise ValueError(
                f"stacked data need leaves with one and the same leading axis, got sizes {sorted(counts)}"
            )
        return tuple(
            Setting(
                f"setting {i}",
                jax.tree.map(lambda leaf, i=i: jnp.asarray(leaf)[i], data),
            )
            for i in range(counts.pop())
        )
    sizes = [checks.count("sizes", size) for size in sizes]
    if len(set(sizes)) < len(sizes):
        raise ValueError(f"sizes must differ, got {sizes}")
    return tuple(
        Setting(f"size {n}", data, {"size": float(n)}, {"size": n}) for n in sizes
    ) or (Setting("the one setting", data),)


@dataclass(frozen=True)
class Validation:
    """What draws say of a statement; it prints as a sentence.

    Attributes
    ----------
    verdict : "refuted", "certified", "consistent" (the draws decide nothing), or "vacuous" (nothing is claimed).
    because : the numbers behind it, in words.
    slack : the bound over the quantile or the mean of what it bounds, where it is smallest over the settings; 1 is the
        limit of the claim. NaN where that is not positive.
    slack_limits : (lower, upper) limits of it, each wrong with probability alpha / (2 settings) at most.
    draws : how many were made, over all settings.
    alpha : the probability, at most, that a true statement is refuted, and that a false one is certified.
    settings : what was seen at each setting.
    draws_to_decide : about how many draws at each setting would decide if they go on like these: an estimate, infinite
        beyond 1e8, NaN where the verdict is not open, where draws cannot decide it, and for `exponent`.
    """

    verdict: str
    because: str
    slack: float
    slack_limits: tuple[float, float]
    draws: int
    alpha: float
    settings: tuple[Evidence, ...]
    draws_to_decide: float = math.nan

    def __str__(self) -> str:
        """Return the verdict as a sentence or two."""
        low, high = self.slack_limits
        slack = more = ""
        if not math.isnan(self.slack):
            slack = f" Slack {self.slack:.3g} ({low:.3g} to {high:.3g})."
            if (
                low == 0
            ):  # of what is never exceeded the largest draw is all that is known
                slack = f" Slack at most {high:.3g}."
        if math.isfinite(self.draws_to_decide):
            more = " Ask for more with draws=."
        return (
            f"{self.verdict}: {self.because}.{more}{slack} {self.draws:,} draws; a true statement is refuted, and a "
            f"false one certified, with probability {self.alpha:g} at most."
        )

    __repr__ = __str__


def validate(
    key: jax.Array,
    statistic: Callable[..., Any],
    bound: Any = None,
    *,
    draws: int = 10_000,
    alpha: float = 1e-3,
    **claimed: Any,
) -> Validation:
    """Return what draws say of a statement about a statistic.

    Parameters
    ----------
    key : a typed key; the same key gives the same answer.
    statistic, bound : as for `statement`: `statistic(key, [data], [size])` draws once.
    draws : the most at each setting, 2 or more. A bound that holds with a probability in (0, 1) is looked at after
        every 128, and the draws end where the evidence decides.
    alpha : the probability, at most, that a true statement is refuted, and that a false one is certified, in
        (0, 1/2), over all settings and looks.
    claimed : probability, or mean, or exponent, and all else that `statement` takes.

    Returns
    -------
    Validation.

    Raises what `statement` raises, and ValueError where the statistic leaves its limits, uses its key twice or not at
    all, has other random numbers than those of its key, or is no scalar. Draws are made in the precision of the
    process; a statistic that is not finite counts as a violation. Cost: one compilation for each size, then the draws.

    Source: the evidence that holds at all times is that of `proofs_check.engine.sequential`, means are judged by
    `proofs_check.engine.betting`; the claims of the papers are judged by the same code.

    Examples
    --------
    >>> import jax
    >>> from proofs_check import validate
    >>> largest = lambda key: jax.random.normal(key, (10,)).max()
    >>> validate(jax.random.key(0), largest, 2.0, probability=0.95).verdict
    'refuted'
    >>> validate(jax.random.key(0), largest, 2.9, probability=0.95).verdict
    'certified'
    """
    key = checks.key(key)
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha must lie in (0, 1/2), got {alpha!r}")
    draws = checks.count("draws", draws, minimum=2)
    claim = statement("mine:statement", statistic, bound, **claimed)
    profile = Profile("validate", draws, draws, draws, max_rare=draws, patient=True)
    work = Work(
        claim,
        Options(profile=profile, seed=key, family_alpha=alpha),
        alpha,
        lambda: False,
    )
    work.advance()
    verdict, form = work.result().printed, claim.printed
    assert verdict is not None and form is not None
    slacks = [(math.nan, math.nan, math.nan)]
    for setting, evidence in zip(form.settings, verdict.evidence, strict=True):
        sample = work.samples.first(form, setting, evidence.trials)
        slacks.append(_slack(evidence, sample, alpha / (2 * len(form.settings))))
    least = min(
        slacks, key=lambda slack: math.inf if math.isnan(slack[0]) else slack[0]
    )
    drawn = sum(evidence.trials for evidence in verdict.evidence)
    return Validation(
        verdict.status,
        verdict.because,
        least[0],
        least[1:],
        drawn,
        alpha,
        verdict.evidence,
        float(verdict.facts.get("trials_to_decide", math.nan)),
    )


def _slack(
    evidence: Evidence, sample: np.ndarray, level: float
) -> tuple[float, float, float]:
    """Return the slack at a setting, with its lower and its upper limit."""
    facts = evidence.facts
    if "upper" in facts and "target" in facts:  # of a mean that is at most a number
        low, high = (
            facts["target"] / facts[end] if facts[end] > 0 else math.inf
            for end in ("upper", "lower")
        )
    elif sample.size and "delta" in facts:
        low, high = slack_limits(sample, facts["bound"], facts["delta"], level)
    else:
        return math.nan, math.nan, math.nan
    return float(facts["slack"]), float(low), float(high)
