"""The functions of numbers, bounds and plans: at numbers that hurt, of every kind, and at what is no number."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
from support.bounds import ARGUMENTS, named

from jaxkern import plan
from jaxkern.bounds import Bound

PLANS = {
    "plan.fourier": {"eps": 0.2, "delta": 0.05, "num_points": 100},
    "plan.kernel_values": {
        "eps": 0.2,
        "delta": 0.05,
        "squared_distances": [0.5, 2.0],
        "pairs": [3.0, 4.0],
    },
    "plan.streaming": {"eps": 0.2, "delta": 0.05, "num_points": 100},
    "plan.nystrom": {"eps": 0.2, "delta": 0.05},
    "plan.kernel_jl": {"eps": 0.5, "delta": 0.05, "num_functions": 10},
    "plan.pivoted_cholesky": {
        "eps": 0.2,
        "delta": 0.5,
        "eigenvalues": [0.3, 0.6, 0.05],
        "trace": 1.0,
        "rank": 2,
    },
    "plan.memory": {"dim": 5, "num_features": 8, "num_points": 10},
}
NUMBERS = ARGUMENTS | PLANS
"""By public name, the arguments of a function with values at which its hypotheses hold, or nearly."""

KINDS = {
    "float": float,
    "NumPy float64": np.float64,
    "NumPy float32": np.float32,
    "array": None,  # in the dtype of the case
    "array of float16": "float16",
    "array of bfloat16": "bfloat16",
}
EDGES = (
    0.0,
    -0.0,
    -1.0,
    1.0,
    1e-6,
    1e6,
    1e-30,
    1e30,
    1e-300,
    1e300,
    5e-324,
    float("nan"),
    float("inf"),
    -float("inf"),
)
NO_NUMBERS = (
    None,
    "1.0",
    True,
    1j,
    [],
    ["1.0"],
    {},
    object,
    np.array("x"),
    np.datetime64("2020-01-01"),
)


def arguments_of(c):
    """Return the kind of numbers, the arguments, and whether one of them is no number."""
    rng = np.random.default_rng(c.seed)
    words = dict(NUMBERS[c.name])
    kind = "float" if c.name in PLANS else list(KINDS)[rng.integers(len(KINDS))]
    factor = 10.0 ** rng.uniform(-1, 1)
    given = {
        word: value * factor if rng.uniform() < 0.3 and c.name not in PLANS else value
        for word, value in words.items()
    }
    no_number = False
    for _ in range(rng.integers(3)):
        word = list(given)[rng.integers(len(given))]
        no_number = no_number or rng.uniform() < 0.2
        given[word] = (
            NO_NUMBERS[rng.integers(len(NO_NUMBERS))]
            if no_number
            else EDGES[rng.integers(len(EDGES))]
        )
        if no_number:
            break
    if (
        no_number
        and given[word] is None
        and inspect.signature(named(c.name)).parameters[word].default is None
    ):
        given[word] = "1.0"  # None is what it is by default
    return (
        kind,
        {word: cast(kind, value, c.dtype) for word, value in given.items()},
        no_number,
    )


def cast(kind, value, dtype):
    if not isinstance(value, float | int) or isinstance(value, bool):
        return value
    with np.errstate(all="ignore"):
        if kind.startswith("array"):
            return jnp.asarray(np.float64(value).astype(KINDS[kind] or dtype))
        return value if isinstance(value, int) else KINDS[kind](value)


def judge_numbers(c, is_named):
    """Return what is wrong with a case, and what it ended in."""
    kind, given, no_number = arguments_of(c)
    try:
        found = named(c.name)(**given)
    except Exception as error:
        complaints = (
            []
            if is_named(c.name, error)
            else [f"not a refusal by name: {error!r:.200}"]
        )
        if not complaints and not no_number and c.name not in PLANS:
            complaints = [f"numbers refused: {error!r:.200}"]
        return [f"{line} for {kind} {given}" for line in complaints], "refused"
    judged = judge_plan if c.name in PLANS else judge_bound
    return [
        f"{line} for {kind} {given}"
        for line in judged(c, kind, given, no_number, found)
    ], "result"


def judge_bound(c, kind, given, no_number, found):
    if not isinstance(found, Bound):
        yield f"no Bound but {type(found).__name__}"
        return
    if no_number:
        yield f"accepted what is no number: {found}"
        return
    for word in ("value", "probability", "valid"):
        value = getattr(found, word)
        if jnp.shape(value) != ():
            yield f"{word} has shape {jnp.shape(value)}"
        if (
            kind.startswith("array")
            and word == "value"
            and isinstance(value, jax.Array)
        ):
            wanted = jnp.dtype(KINDS[kind] or c.dtype)
            if value.dtype != wanted:
                yield f"value has dtype {value.dtype}"
    numbers = [float(value) for value in given.values()]
    value, probability, valid = (
        float(found.value),
        float(found.probability),
        bool(found.valid),
    )
    if (
        any(np.isnan(numbers))
        and valid
        and not np.isnan(value)
        and not np.isnan(probability)
    ):
        yield f"NaN is hidden: {found}"
    if (
        all(np.isfinite(numbers))
        and valid
        and (np.isnan(value) or np.isnan(probability))
    ):
        yield f"valid, and not a number: {found}"


def judge_plan(c, kind, given, no_number, found):
    if not isinstance(found, plan.Plan):
        yield f"no Plan but {type(found).__name__}"
        return
    if given.get("delta") is not None and not found.probability >= 1 - given["delta"]:
        yield f"probability {found.probability}"
    for word in ("num_frequencies", "num_features", "num_landmarks", "sketch_size"):
        size = getattr(found, word)
        if size is not None and not (isinstance(size, int) and size >= 1):
            yield f"{word} is {size}"
