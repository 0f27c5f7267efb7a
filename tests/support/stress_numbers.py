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


def draw_arguments(c):
    """Return the kind of numbers, the arguments, and whether one of them is no number."""
    rng = np.random.default_rng(c.seed)
    words = dict(NUMBERS[c.name])
    kind = "float"
    if c.name not in PLANS:
        kind = list(KINDS)[rng.integers(len(KINDS))]
        factor = 10.0 ** rng.uniform(-1, 1)
        for word in words:
            words[word] *= factor if rng.uniform() < 0.3 else 1
    no_number = False
    for _ in range(rng.integers(3)):
        word = list(words)[rng.integers(len(words))]
        no_number = rng.uniform() < 0.2
        choices = NO_NUMBERS if no_number else EDGES
        words[word] = choices[rng.integers(len(choices))]
        if no_number:
            default = inspect.signature(named(c.name)).parameters[word].default
            if words[word] is None and default is None:
                words[word] = "1.0"
            break
    words = {word: cast(kind, value, c.dtype) for word, value in words.items()}
    return kind, words, no_number


def cast(kind, value, dtype):
    if not isinstance(value, float | int) or isinstance(value, bool):
        return value
    with np.errstate(all="ignore"):
        if kind.startswith("array"):
            return jnp.asarray(np.float64(value).astype(KINDS[kind] or dtype))
        return value if isinstance(value, int) else KINDS[kind](value)


def judge_numbers(c, is_named):
    """Return what is wrong with a case, and what it ended in."""
    kind, words, no_number = draw_arguments(c)
    complaints = []
    end = "result"
    try:
        result = named(c.name)(**words)
    except Exception as error:
        end = "refused"
        if not is_named(c.name, error):
            complaints.append(f"not a refusal by name: {error!r:.200}")
        elif not no_number and c.name not in PLANS:
            complaints.append(f"numbers refused: {error!r:.200}")
    else:
        if c.name in PLANS:
            complaints += judge_plan(words, result)
        elif no_number:
            complaints.append(f"accepted what is no number: {result}")
        else:
            dtype = KINDS[kind] or c.dtype if kind.startswith("array") else None
            complaints += judge_bound(words, result, dtype)
    return [f"{line} for {kind} {words}" for line in complaints], end


def judge_bound(words, bound, dtype):
    """Yield what is wrong with a bound at numbers, which are arrays of this dtype, if any."""
    if not isinstance(bound, Bound):
        yield f"no Bound but {type(bound).__name__}"
        return
    parts = (bound.value, bound.probability, bound.valid)
    if any(jnp.shape(part) != () for part in parts):
        yield f"parts have shapes {[jnp.shape(part) for part in parts]}"
        return
    if dtype and isinstance(bound.value, jax.Array) and bound.value.dtype != dtype:
        yield f"value has dtype {bound.value.dtype}"
    numbers = [float(value) for value in words.values()]
    if not bound.valid:
        return
    is_nan = np.isnan([float(bound.value), float(bound.probability)]).any()
    if np.isnan(numbers).any() and not is_nan:
        yield f"NaN is hidden: {bound}"
    if np.isfinite(numbers).all() and is_nan:
        yield f"valid, and not a number: {bound}"


def judge_plan(words, result):
    if not isinstance(result, plan.Plan):
        yield f"no Plan but {type(result).__name__}"
        return
    delta = words.get("delta")
    if delta is not None and not result.probability >= 1 - delta:
        yield f"probability {result.probability}"
    for word in ("num_frequencies", "num_features", "num_landmarks", "sketch_size"):
        size = getattr(result, word)
        if size is not None and not (isinstance(size, int) and size >= 1):
            yield f"{word} is {size}"
