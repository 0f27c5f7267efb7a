"""An adversary that searches the worst case of a bound by gradient ascent, within the hypotheses of the statement.

A `Target` says what may move: points, weights, the parameters of a kernel, functions, the rows of a stream and their
order. Many random starts climb side by side; after every step they are projected back into the hypotheses. What is
climbed, `excess`, is only a surrogate of left side minus right side, and the optimum of many noisy numbers is biased.
So nothing that the search sees counts: its best places are evaluated again, by other code in float64 or by sampling
with fresh keys, and judged as every claim is (`proofs_check.engine.judge`). A violation is found if that refutes; and
where chance plays no part, only if enclosures of both sides prove it (`proofs_check.engine.enclosures`), for there is
no end to what rounding makes of a quotient of two small numbers.

That none is found proves nothing, but it is what a true statement must give however long one searches; and where a
constant cannot be improved, the best excess should be close to zero, which shows that the search works.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import checks
from jaxkern.draws import numbered
from proofs_check.claim import Claim, Exact, Form, Inequality, Tail, Verdict
from proofs_check.engine import draws, enclosures, judge
from proofs_check.engine.samples import evaluate

Params = Any
"""A PyTree of arrays: a floating leaf moves by gradients; a leaf of integers is a permutation, and moves by swaps."""

ALPHA = 1e-3
RECHECKED = 3
SWAPS = 4
PROBE = 1e-4
WHOLE = 4096


@dataclass(frozen=True)
class Target:
    """One form of a claim, and what the adversary may choose in it.

    Attributes
    ----------
    claim, form : the id of the claim, and "printed" or "corrected", or "" for a claim of one's own.
    moves : what is searched over and within what, in words.
    start : `key -> params`, a random start.
    project : `params -> params`, back into the hypotheses: the nearest place, and the identity on what is inside.
    excess : `(params, key) -> scalar`, a surrogate of left side minus right side with 0 as the limit, differentiable
        almost everywhere in the floating leaves. The key is fresh at every step.
    recheck : `params -> Form`, the statement at this one place, params being NumPy arrays, the floating ones float64:
        an Inequality or Exact that other code evaluates, or a Tail that is sampled. Its `expect` is not looked at.
    enclosed : `params -> (left, right)`, the same two sides as balls, or the left from below; the floating params are
        arrays of balls, exactly the floats found. Without it a violation of what holds always is not confirmed.
    trials : of a Tail.
    rate : the first learning rate, which falls to zero along a cosine.
    inside : whether floats are a place, or `enclosed` makes a place of them; by default, whether `project` keeps them.
    member : how `enclosed` makes a place of floats, in words, where it does.
    rounded : `params -> params`, the floats next to the place that `enclosed` makes of floats, where it does.
    """

    claim: str
    form: str
    moves: str
    start: Callable[[jax.Array], Params]
    project: Callable[[Params], Params]
    excess: Callable[[Params, jax.Array], jax.Array]
    recheck: Callable[[Params], Form]
    enclosed: Callable[[Params], tuple[Any, Any]] | None = None
    trials: int = 0
    rate: float = 0.05
    inside: Callable[[Params], bool] | None = None
    member: str = ""
    rounded: Callable[[Params], Params] | None = None


@dataclass(frozen=True)
class Search:
    """Where the restarts ended: `best` (restarts,) the largest excess each has seen, NaN where it was dropped.

    `params` holds the places of these, stacked along the first axis, in float64 on the host.
    """

    best: np.ndarray
    params: Params

    @property
    def failures(self) -> int:
        """The number of restarts that were dropped, for an excess or a slope that is not finite at the start."""
        return int(np.count_nonzero(np.isnan(self.best)))


@dataclass(frozen=True)
class Attack:
    """What an attack on one form found.

    Attributes
    ----------
    found : whether a recheck refuted: only that is a violation.
    verdict : of the place that is shown: the first that was refuted, or the one with the largest excess. None where
        all restarts were dropped.
    params : that place.
    simplest : the place with the shortest numbers that was found beside it, and proved as well, or None.
    simplest_verdict : the verdict there.
    member : how a proof makes a place of these numbers, which are next to it, where floats are no places themselves.
    moves : what was searched.
    excess : the surrogate there, and `best` (restarts,) that of every restart, NaN where it was dropped.
    rechecked : the verdicts of all places that were evaluated again, the largest excess first.
    alpha : the error rate of all rechecks together.
    """

    claim: str
    form: str
    found: bool
    verdict: Verdict | None
    params: Params
    excess: float
    best: np.ndarray
    rechecked: tuple[Verdict, ...]
    restarts: int
    steps: int
    failures: int
    seed: int
    alpha: float
    simplest: Params | None = None
    simplest_verdict: Verdict | None = None
    member: str = ""
    moves: str = ""

    @property
    def name(self) -> str:
        """The claim, and the form if it has several."""
        return f"{self.claim} as {self.form}" if self.form else self.claim

    def __str__(self) -> str:
        """Return what was found in a few lines, the places in full precision."""
        name = f"{self.name}: "
        dropped = f", {self.failures} of them dropped" if self.failures else ""
        told = [f"  searched   {self.moves}"]
        told.append(
            f"  budget     {self.restarts} restarts{dropped}, {self.steps} steps, seed {self.seed}"
        )
        if self.verdict is None:
            return "\n".join(
                [f"{name}nothing to judge, as every restart was dropped", *told]
            )
        refuted = sum(verdict.status == "refuted" for verdict in self.rechecked)
        where = f"{refuted} of the {len(self.rechecked)} best places"
        least, middle, most = np.nanquantile(self.best, (0, 0.5, 1))
        told.append(
            f"  excess     {self.excess:.6g} there; all restarts {least:.3g} to {most:.3g}, median {middle:.3g} (0 is "
            "the limit; a surrogate)"
        )
        told.append(f"  rechecked  {self.verdict.because}")
        for what, params in (("", self.params), ("simplest ", self.simplest)):
            for leaf_name, leaf in named(params):
                text = np.array2string(
                    leaf,
                    floatmode="unique",
                    separator=", ",
                    threshold=200,
                    max_line_width=100,
                )
                begin = f"  {what}{leaf_name} = "
                told.append(begin + text.replace("\n", "\n" + " " * len(begin)))
        if self.simplest_verdict is not None:
            told.append(f"  simplest   {self.simplest_verdict.because}")
        if self.member and self.found:
            told.append(
                f"  The proof is at {self.member}, x being these numbers, which are off by rounding."
            )
        found = (
            f"VIOLATED at {where}"
            if self.found
            else f"no violation at the {len(self.rechecked)} best places"
        )
        return "\n".join([name + found, *told])


def named(params: Params) -> list[tuple[str, Any]]:
    """Return the leaves of params with their names."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    return [
        (jax.tree_util.keystr(path, simple=True, separator="/") or "x", leaf)
        for path, leaf in leaves
    ]


def search(
    target: Target, key: jax.Array, *, restarts: int = 32, steps: int = 300
) -> Search:
    """Climb from random starts, all restarts side by side in one compiled program.

    A step looks at the orders as they are and at a few with two entries exchanged, takes the best of these, makes one
    step of Adam on the floating leaves, along what the projection leaves of the slope, and projects. A restart ends
    where its excess or slope is not finite, and is dropped if that is where it starts. The number of restarts does not
    change what each of them does.

    The same key gives the same search. Raises ValueError if it is no typed key, or a number is not at least 1. Cost:
    restarts * (steps + 1) evaluations of `excess` with its gradient, and `SWAPS` + 1 times as many where there is a
    permutation. Search in float64 (`jax.enable_x64`) where the limit may be attained.
    """
    key = checks.key(key)
    restarts, steps = checks.count("restarts", restarts), checks.count("steps", steps)
    best, params = _climb(numbered(key, restarts), target=target, steps=steps)
    return Search(np.asarray(best, np.float64), jax.tree.map(_on_host, params))


@functools.partial(jax.jit, static_argnames=("target", "steps"))
def _climb(keys: jax.Array, *, target: Target, steps: int) -> tuple[jax.Array, Params]:
    import optax

    optimizer = optax.adam(optax.cosine_decay_schedule(target.rate, steps))

    def one(key: jax.Array) -> tuple[jax.Array, Params]:
        key_start, key_steps = jax.random.split(key)
        leaves, structure = jax.tree.flatten(target.project(target.start(key_start)))
        moving = [jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves]

        def join(floats: Sequence[jax.Array], orders: Sequence[jax.Array]) -> Params:
            first, second = iter(floats), iter(orders)
            return jax.tree.unflatten(
                structure, [next(first if moves else second) for moves in moving]
            )

        def parts(params: Params) -> tuple[list[jax.Array], list[jax.Array]]:
            split = list(zip(jax.tree.leaves(params), moving, strict=True))
            return [leaf for leaf, moves in split if moves], [
                leaf for leaf, moves in split if not moves
            ]

        def candidates(orders: list[jax.Array], key: jax.Array) -> list[jax.Array]:
            return [
                _swaps(jax.random.fold_in(key, i), order)
                for i, order in enumerate(orders)
            ]

        def projected(
            floats: list[jax.Array], orders: list[jax.Array]
        ) -> list[jax.Array]:
            return parts(target.project(join(floats, orders)))[0]

        def value(
            floats: list[jax.Array], orders: list[jax.Array], key: jax.Array
        ) -> jax.Array:
            return target.excess(join(floats, orders), key)

        def step(state: Any, index: jax.Array) -> tuple[Any, None]:
            floats, orders, memory, best, alive = state
            key_value, key_swaps = jax.random.split(
                jax.random.fold_in(key_steps, index)
            )
            here = jax.value_and_grad(value)
            if orders:
                tried = candidates(orders, key_swaps)
                values, all_slopes = jax.vmap(here, (None, 0, None))(
                    floats, tried, key_value
                )
                # Without an improvement it is the first, the orders as they are.
                chosen = jnp.argmax(jnp.where(jnp.isnan(values), -jnp.inf, values))
                height, slopes, orders = jax.tree.map(
                    lambda leaf: leaf[chosen], (values, all_slopes, tried)
                )
            else:
                height, slopes = here(floats, orders, key_value)
            finite = jnp.array(
                [jnp.isfinite(leaf).all() for leaf in (height, *slopes)]
            ).all()
            alive = alive & finite
            best = _where(alive & (height > best[0]), (height, floats, orders), best)
            # Adam scales every entry by itself. Where a constraint is active that would turn a slope which points out
            # of the set into a step along its boundary; so it gets what the projection leaves of the slope.
            size = jnp.sqrt(
                sum([jnp.sum(slope**2) for slope in slopes], jnp.zeros_like(height))
            )
            short = PROBE / jnp.maximum(size, jnp.finfo(size.dtype).tiny ** 0.5)
            ends = projected(
                [
                    leaf + short * slope
                    for leaf, slope in zip(floats, slopes, strict=True)
                ],
                orders,
            )
            inward = [
                (leaf - end) / short for leaf, end in zip(floats, ends, strict=True)
            ]
            with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
                change, new_memory = optimizer.update(inward, memory, floats)
            new_floats = projected(
                [leaf + by for leaf, by in zip(floats, change, strict=True)], orders
            )
            floats, memory = _where(alive, (new_floats, new_memory), (floats, memory))
            return (floats, orders, memory, best, alive), None

        floats, orders = parts(jax.tree.unflatten(structure, leaves))
        lowest = jnp.full((), -jnp.inf, jnp.result_type(*floats))
        state = (
            floats,
            orders,
            optimizer.init(floats),
            (lowest, floats, orders),
            jnp.bool_(True),
        )
        # The last of these evaluates the place that the last step has reached.
        (*_, (height, floats, orders), _), _ = lax.scan(
            step, state, jnp.arange(steps + 1, dtype=jnp.uint32)
        )
        return jnp.where(height > -jnp.inf, height, jnp.nan), join(floats, orders)

    return jax.vmap(one)(keys)


def _swaps(key: jax.Array, order: jax.Array) -> jax.Array:
    """Return the order and, below it, SWAPS orders in each of which two random entries have changed places."""
    places = jax.random.randint(key, (SWAPS, 2), 0, order.shape[0], jnp.int32)
    swapped = jax.vmap(lambda pair: order.at[pair].set(order[pair[::-1]]))(places)
    return jnp.concatenate([order[None], swapped])


def _where(chosen: jax.Array, new: Any, old: Any) -> Any:
    return jax.tree.map(functools.partial(jnp.where, chosen), new, old)


def _on_host(leaf: jax.Array) -> np.ndarray:
    return np.asarray(
        leaf, np.float64 if jnp.issubdtype(leaf.dtype, jnp.floating) else None
    )


def attack(
    what: Target | Claim,
    *,
    seed: int = 0,
    restarts: int = 32,
    steps: int = 300,
    alpha: float = ALPHA,
    most: int = RECHECKED,
) -> Attack:
    """Search, and judge the best places on fresh randomness.

    Parameters
    ----------
    what : a target, or a claim that has one, as `proofs_check.inequality` makes them.
    seed : a whole number from 0 on; the same seed gives the same attack.
    restarts, steps : of the search, at least 1.
    alpha : the probability, at most, that a true statement is called violated, in (0, 1). It is shared evenly by the
        places that are evaluated again, and matters for a Tail only.
    most : how many restarts are evaluated again, the best first.

    Where a refutation is proved, places with small whole numbers and the one found with fewer digits are tried, and the
    simplest that is proved to be a counterexample is shown beside it.

    Raises ValueError if a number is out of range, a claim has no target, or a place is outside the hypotheses, which is
    a mistake in `target.project`, or both sides have a function that balls lack.
    """
    checks.open_unit("alpha", alpha)
    target = what.target if isinstance(what, Claim) else what
    if target is None:
        raise ValueError(
            "the claim has no target; make it with proofs_check.inequality"
        )
    names = (target.claim, target.form or "printed")
    _check_functions(target, draws.derive_key(seed, *names, "check"))
    reached = search(
        target, draws.derive_key(seed, *names, "search"), restarts=restarts, steps=steps
    )
    ranked = np.argsort(-reached.best)  # NaN last
    ranked = ranked[~np.isnan(reached.best[ranked])][: checks.count("most", most)]
    verdicts = []
    for rank, index in enumerate(ranked):
        key = draws.derive_key(seed, *names, "recheck", str(rank))
        verdicts.append(
            recheck(
                target, _at(reached.params, int(index)), key, alpha=alpha / len(ranked)
            )
        )
    refuted = [
        rank for rank, verdict in enumerate(verdicts) if verdict.status == "refuted"
    ]
    shown = refuted[0] if refuted else 0
    index = int(ranked[shown]) if verdicts else 0
    proved = bool(refuted) and not any(
        evidence.facts.get("delta", 0) > 0 for evidence in verdicts[shown].evidence
    )
    simple = simple_verdict = None
    if proved:
        key = draws.derive_key(seed, *names, "simple")
        simple = _simplest(target, _at(reached.params, index), key)
    if simple is not None:
        simple_verdict = recheck(target, simple, key, alpha=alpha)
    return Attack(
        target.claim,
        target.form,
        found=bool(refuted),
        verdict=verdicts[shown] if verdicts else None,
        params=_at(reached.params, index),
        excess=float(reached.best[index]),
        best=reached.best,
        rechecked=tuple(verdicts),
        restarts=restarts,
        steps=steps,
        failures=reached.failures,
        seed=seed,
        alpha=alpha,
        simplest=simple,
        simplest_verdict=simple_verdict,
        member=target.member,
        moves=target.moves,
    )


def _check_functions(target: Target, key: jax.Array) -> None:
    """Evaluate both sides in balls at a start, so that what balls lack is an error before the search and not after."""
    if target.enclosed is None or not enclosures.available():
        return
    start = jax.jit(lambda key: target.project(target.start(key)))(key)
    place = jax.tree.map(lambda leaf: _as_balls(_on_host(leaf)), start)
    with contextlib.suppress(ArithmeticError):  # undecided at this one place
        target.enclosed(place)


def recheck(target: Target, params: Params, key: jax.Array, *, alpha: float) -> Verdict:
    """Return the verdict on the statement of a target at one place, by evaluation or by sampling with `key`.

    What holds always is refuted only by a proof; else it is consistent, and the reason says what was not confirmed.
    """
    form = target.recheck(params)
    samples: list[Any] = []
    for i, setting in enumerate(form.settings):
        key_setting = jax.random.fold_in(key, i)
        match form.statement:
            case Inequality(sides=sides):
                pairs = evaluate(
                    sides, setting, functools.partial(jax.random.fold_in, key, i)
                )
                samples.append(judge.two_sides(pairs, setting))
            case Exact(probability=probability):
                samples.append(np.array(evaluate(probability, setting), np.float64))
            case Tail(trial=trial):
                samples.append(draws.sample(trial, key_setting, setting, target.trials))
            case statement:
                raise TypeError(
                    f"no recheck for a statement of type {type(statement).__name__}"
                )
    verdict = judge.judge(
        form, samples, alpha, eps=float(jnp.finfo(jnp.result_type(float)).eps)
    )
    by_chance = any(evidence.facts.get("delta", 0) > 0 for evidence in verdict.evidence)
    return (
        verdict
        if verdict.status != "refuted" or by_chance
        else _confirmed(target, params, verdict)
    )


def _confirmed(target: Target, params: Params, verdict: Verdict) -> Verdict:
    """Return a refutation with its proof by enclosures, or `consistent` with the reason why there is none."""
    enclosed = target.enclosed
    if not enclosures.available():
        why = "install python-flint for a proof: pip install 'jaxkern-verified[proved]'"
    elif enclosed is None:
        why = "the target has no enclosures of both sides"
    else:
        try:
            found = enclosures.at_most(
                lambda: enclosed(jax.tree.map(_as_balls, params))
            )
        except ArithmeticError as error:
            why = str(error)
        else:
            if not found.holds:
                return replace(
                    verdict,
                    because=f"{verdict.because}; proved: {found.because}, to {found.digits} digits",
                )
            why = f"enclosed are {found.because}"
    return replace(
        verdict, status="consistent", because=f"{verdict.because}: not confirmed; {why}"
    )


def _simplest(target: Target, params: Params, key: jax.Array) -> Params | None:
    """Return the simplest counterexample that is found: small whole numbers, or the one at `params` with fewer digits.

    Then signs go, and every entry becomes 0 or 1, where they may. Each place is proved; one that floats do not hold is
    no place.
    """
    if target.enclosed is None or not enclosures.available():
        return None
    leaves, structure = jax.tree.flatten(params)
    floats = [i for i, leaf in enumerate(leaves) if leaf.dtype.kind == "f"]

    def place(values: Sequence[np.ndarray]) -> Params:
        changed = dict(zip(floats, values, strict=True))
        return jax.tree.unflatten(
            structure, [changed.get(i, leaf) for i, leaf in enumerate(leaves)]
        )

    def proved(values: Sequence[np.ndarray]) -> bool:
        found, enclosed = place(values), target.enclosed
        assert enclosed is not None
        if target.inside is None:
            kept = target.project(jax.tree.map(jnp.asarray, found))
            inside = all(jax.tree.leaves(jax.tree.map(np.array_equal, kept, found)))
        else:
            inside = target.inside(jax.tree.map(jnp.asarray, found))
        if not inside:
            return False
        try:
            return not enclosures.at_most(
                lambda: enclosed(jax.tree.map(_as_balls, found))
            ).holds
        except (ArithmeticError, ValueError):
            return False

    def whole(rng: np.random.Generator, most: int, leaf: np.ndarray) -> np.ndarray:
        return rng.integers(
            -most if np.any(leaf < 0) else 0, most + 1, (WHOLE, *leaf.shape)
        ).astype(float)

    own, rng = (
        [leaves[i] for i in floats],
        np.random.default_rng(np.asarray(jax.random.key_data(key))),
    )
    height, fold = (
        jax.jit(jax.vmap(target.excess, (0, None))),
        functools.partial(jax.random.fold_in, key),
    )

    def candidates() -> Iterator[list[np.ndarray]]:
        for most in (1, 2, 3, 5, 9):
            tried = [whole(rng, most, leaf) for leaf in own]
            both = dict(zip(floats, tried, strict=True))
            stacked = [
                both.get(i, np.broadcast_to(leaf, (WHOLE, *leaf.shape)))
                for i, leaf in enumerate(leaves)
            ]
            heights = np.asarray(
                height(
                    jax.tree.unflatten(
                        structure, [jnp.asarray(leaf) for leaf in stacked]
                    ),
                    fold(most),
                )
            )
            for index in np.argsort(-np.nan_to_num(heights, nan=-np.inf))[:5]:
                yield [leaf[index] for leaf in tried]
        for digits in range(1, 17):
            yield [
                np.array([float(f"{x:.{digits}g}") for x in leaf.ravel()]).reshape(
                    leaf.shape
                )
                for leaf in own
            ]

    best = next((values for values in candidates() if proved(values)), None)
    if best is None:
        return None
    best = [np.array(leaf) for leaf in best]
    if proved(positive := [np.array(abs(leaf)) for leaf in best]):
        best = positive
    for leaf in best:
        for index in np.ndindex(leaf.shape):
            for simple in (0.0, 1.0):
                before = leaf[index]
                leaf[index] = simple
                if before != simple and (before == 0 or not proved(best)):
                    leaf[index] = before
    simplest = place(best)
    if target.rounded is not None:
        member = target.rounded(simplest)
        values = jax.tree.leaves(member)
        if proved([values[i] for i in floats]):
            return member
    return simplest


def _as_balls(leaf: np.ndarray) -> np.ndarray:
    return enclosures.balls(leaf) if leaf.dtype.kind == "f" else leaf


def _at(params: Params, index: int) -> Params:
    return jax.tree.map(lambda leaf: leaf[index], params)
