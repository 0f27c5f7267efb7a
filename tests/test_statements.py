"""Statements of anyone's: what `validate` says of true and false ones, its limits, its refusals, and inequalities."""

import functools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import proofs_check
from jaxkern.bounds import Bound
from proofs_check import attack, inequality, sets, statement, validate
from proofs_check.engine import adversary, betting
from proofs_check.engine.judge.tail import slack_limits

SIZES = (4, 8, 16, 32, 64)


def largest(key):
    return jax.random.normal(key, (10,)).max()


def uniform(key):
    return jax.random.uniform(key)


def pareto(key):
    return jax.random.pareto(key, 2.5)


def deviation(key, n):
    return jnp.abs(jax.random.rademacher(key, (n,), jnp.float32).mean())


def coin(key, p):
    return jax.random.bernoulli(key, p).astype(jnp.float32)


def chi_square(key, k):
    return jnp.sum(jax.random.normal(key, (k,)) ** 2)


def hutchinson(key, A):
    products = jax.random.rademacher(key, (4, len(A)), A.dtype) @ A
    return jnp.sum(products**2) / (4 * jnp.sum(A**2))


SQUARE = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
QUANTILE = float(stats.norm.ppf(0.95**0.1))
UNIT = {"limits": (0.0, 1.0)}
# What is claimed of whom, true and false by a few percent, and the verdicts.
STATEMENTS = {
    "quantile": (
        (largest,),
        {"probability": 0.95},
        QUANTILE + 0.12,
        QUANTILE - 0.12,
        "certified",
    ),
    "bound": (
        (largest,),
        {},
        Bound(2.7, 0.95, True, "a"),
        Bound(2.3, 0.95, True, "a"),
        "certified",
    ),
    "always": ((uniform,), {"probability": 1}, 1.0, 0.995, "consistent"),
    "mean": (
        (uniform,),
        {"mean": "equal to", "within": 0.03, **UNIT},
        0.5,
        0.53,
        "certified",
    ),
    "at most": ((uniform,), {"mean": "at most", **UNIT}, 0.52, 0.48, "certified"),
    "half a line": (
        (uniform,),
        {"mean": "at most", "limits": (0, math.inf)},
        0.52,
        0.48,
        "consistent",
    ),
    "heavy": (
        (pareto,),
        {"mean": "at most", "limits": (1, math.inf)},
        5 / 3,
        1.5,
        "consistent",
    ),
    "variance": (
        (uniform,),
        {"mean": "at most", "variance": 1 / 12},
        0.52,
        0.48,
        "certified",
    ),
    "sizes": (
        (deviation,),
        {"probability": 0.9, "sizes": (10, 100)},
        lambda n: 1.95 / math.sqrt(n),
        lambda n: 1.45 / math.sqrt(n),
        "certified",
    ),
    "chi square": (
        (chi_square,),
        {"probability": 1 - math.exp(-3), "sizes": (1, 5, 200)},
        lambda k: k + 2 * math.sqrt(3 * k) + 6,
        lambda k: k + 1.2 * math.sqrt(3 * k),
        "certified",
    ),
    "trace": (
        (hutchinson,),
        {"mean": "equal to", "variance": 3.0, "data": SQUARE},
        1.0,
        1.2,
        "consistent",
    ),
    "stacked": (
        (coin,),
        {
            "mean": "at most",
            "data": np.array([0.1, 0.5], np.float32),
            "stacked": True,
            **UNIT,
        },
        [0.13, 0.53],
        [0.13, 0.47],
        "certified",
    ),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", STATEMENTS)
def test_true_statements_stand_and_false_ones_fall(name, seed):
    given, claimed, true, false, best = STATEMENTS[name]
    for bound, verdict in ((true, best), (false, "refuted")):
        found = validate(jax.random.key(seed), *given, bound, **claimed)
        assert found.verdict == verdict, str(found)
        assert 0 < found.draws <= 10_000 * len(found.settings)
        low, high = found.slack_limits
        assert math.isnan(found.slack) or low <= found.slack <= high
        assert str(found).startswith(
            f"{verdict}: "
        ) and f"{found.draws:,} draws" in str(found)


@pytest.mark.parametrize(
    ("exponent", "verdict"), [(-0.5, "certified"), (-0.8, "refuted")]
)
def test_a_rate(exponent, verdict):
    found = validate(
        jax.random.key(0),
        deviation,
        exponent=exponent,
        sizes=SIZES,
        draws=4_000,
        **UNIT,
    )
    assert found.verdict == verdict and math.isnan(found.slack)
    undecided = validate(
        jax.random.key(0), deviation, exponent=exponent, sizes=SIZES, draws=200
    )
    assert undecided.verdict == "consistent"


def test_the_key_alone_decides_and_draws_are_of_the_statistic():
    first, again, other = (
        validate(jax.random.key(s), largest, QUANTILE, probability=0.95, draws=500)
        for s in (1, 1, 2)
    )
    assert str(first) == str(again) and first.slack != other.slack
    fifty = validate(jax.random.key(1), largest, 9.0, probability=1, draws=50)
    assert (
        fifty.draws == 50 and fifty.slack_limits[0] == 0
    )  # one never seen may be larger
    assert fifty.slack_limits[1] == pytest.approx(fifty.slack)


@pytest.mark.parametrize("x64", [False, True])
def test_it_draws_in_the_precision_of_the_process(x64):
    seen = []

    def kind(key, x):
        seen.append(jax.random.uniform(key).dtype)
        return x.sum()

    with jax.enable_x64(x64):
        found = validate(
            jax.random.key(0), kind, 3.0, probability=1, data=jnp.ones(3), draws=10
        )
    assert found.verdict == "consistent" and set(seen) == {
        jnp.dtype("float64" if x64 else "float32")
    }


def test_limits_of_the_slack_hold_as_often_as_they_say():
    rng = np.random.default_rng(0)
    sample, truth = rng.exponential(size=(400, 300)), 2.0 / -math.log(0.1)
    limits = np.array([slack_limits(row, 2.0, 0.1, 0.05) for row in sample])
    assert np.count_nonzero(limits[:, 0] > truth) <= stats.binom.isf(1e-6, 400, 0.05)
    assert np.count_nonzero(limits[:, 1] < truth) <= stats.binom.isf(1e-6, 400, 0.05)
    assert np.median(limits[:, 1] / limits[:, 0]) < 2
    assert slack_limits([math.nan, 1.0, 2.0], 1.0, 0.5, 0.05)[0] == 0


def test_lower_limits_without_an_upper_end_hold_for_heavy_tails():
    sample = np.random.default_rng(0).pareto(2.5, (300, 400))
    lower, upper = betting.betting_limits(
        sample, 0.05, low=0.0, high=math.inf, unit=2 / 1.5
    )
    assert np.all(np.isinf(upper)) and np.count_nonzero(
        lower > 1 / 1.5
    ) <= stats.binom.isf(1e-6, 300, 0.05)
    assert np.median(lower) > 0.4 / 1.5 * 1.5  # some 60 % of the mean
    one = betting.betting_limits(sample[:5] % 1, 0.05, unit=7.0)
    assert np.array_equal(
        one, betting.betting_limits(sample[:5] % 1, 0.05)
    )  # the unit is for infinite ends alone


REFUSED = {
    "statistic must be a function": ((3.0, 1.0), {"probability": 0.5}),
    "give a bound with a probability or a mean": ((largest,), {"probability": 0.5}),
    "an exponent alone; got": ((largest, 1.0), {"exponent": 0.5}),
    "got ['probability', 'mean']": (
        (largest, 1.0),
        {"probability": 0.5, "mean": "at most"},
    ),
    "probability must lie in (0, 1], got 1.5": ((largest, 1.0), {"probability": 1.5}),
    "probability must lie in (0, 1], got 0": ((largest, 1.0), {"probability": 0}),
    'mean must be "at most"': ((largest, 1.0), {"mean": "least"}),
    "a bound that is a number needs a probability": ((largest, 1.0), {}),
    "the bound has the probability 0.9, not 0.8": (
        (largest, Bound(1.0, 0.9, True, "a")),
        {"probability": 0.8},
    ),
    "stacked data need data": ((coin, 1.0), {"probability": 0.5, "stacked": True}),
    "leading axis, got sizes [1, 2]": (
        (coin, 1.0),
        {"probability": 0.5, "data": (np.ones(1), np.ones(2)), "stacked": True},
    ),
    "one number a setting, 2, got 3": (
        (coin, [1, 2, 3]),
        {"probability": 0.5, "data": np.ones(2, np.float32), "stacked": True},
    ),
    "sizes must differ": ((deviation, 1.0), {"probability": 0.5, "sizes": (3, 3)}),
    "sizes must": ((deviation, 1.0), {"probability": 0.5, "sizes": (0,)}),
    "controls are for statements with a probability": (
        (largest, 1.0),
        {"mean": "at most", "controls": (0.5,)},
    ),
    "alpha must lie in (0, 1/2)": ((largest, 1.0), {"probability": 0.5, "alpha": 0.7}),
    "draws must": ((largest, 1.0), {"probability": 0.5, "draws": 1}),
    "must return a scalar": (
        (lambda key: jax.random.normal(key, (2,)), 1.0),
        {"probability": 0.5},
    ),
    "uses a key twice": (
        (lambda key: uniform(key) + largest(key), 1.0),
        {"probability": 0.5},
    ),
    "does not depend on its key": (
        (lambda key: (uniform(key), coin(jax.random.key(0), 0.5))[1], 0.5),
        {"mean": "equal to", **UNIT},
    ),
    "a generator that is not its key": (
        (jax.jit(lambda key: uniform(key) + np.random.normal()), 1.0),
        {"probability": 0.9},
    ),
    "must lie in its limits [0, 0.5]": (
        (uniform, 1.0),
        {"mean": "at most", "limits": (0, 0.5)},
    ),
    "a rate needs at least five": (
        (deviation,),
        {"exponent": 1.0, "sizes": (1, 2), **UNIT},
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_does_not_fit_is_refused_by_name(message):
    given, claimed = REFUSED[message]
    with pytest.raises(ValueError) as refused:
        validate(jax.random.key(0), *given, **claimed)
    assert message in str(refused.value)


@pytest.mark.parametrize("seed", range(40))
def test_a_statistic_of_numpy_is_refused_whatever_it_draws(seed):
    rng = np.random.default_rng(seed)
    for draw in (rng.normal, lambda: np.random.default_rng(seed).normal()):
        with pytest.raises(ValueError, match=r"its key, .* draw with jax\.random"):
            validate(
                jax.random.key(0), lambda key, draw=draw: draw(), 0.7, probability=0.9
            )


def test_what_is_computed_and_holds_always_may_ignore_the_key():
    for bound, verdict in ((1e-6, "consistent"), (-1.0, "refuted")):
        found = validate(
            jax.random.key(0), lambda key: abs(0.5 - 1 / 2), bound, probability=1
        )
        assert found.verdict == verdict
        assert ("no more than one trial" in found.because) == (verdict == "consistent")


def test_what_stays_open_says_how_many_draws_would_decide_and_what_is_missing():
    claimed = {"probability": 0.9, "draws": 500}
    found = validate(jax.random.key(0), uniform, 0.93, **claimed)
    assert "Ask for more with draws=" in str(found)
    claimed["draws"] = math.ceil(2 * found.draws_to_decide)
    assert validate(jax.random.key(0), uniform, 0.93, **claimed).verdict == "certified"
    missing = {"mean": "equal to", "limits": (0, math.inf)}
    found = validate(jax.random.key(0), uniform, 0.9, **missing)
    assert found.verdict == "consistent" and "no upper limit was given" in str(found)
    assert math.isnan(found.draws_to_decide)
    # The mean is .876 and 1 is claimed; a variance of 81 hides that from 10,000 draws.
    claimed = {"mean": "equal to", "variance": 81.0}
    square = lambda key: 0.876 * jax.random.normal(key) ** 2  # noqa: E731
    found = validate(jax.random.key(0), square, 1.0, **claimed)
    assert 5e4 < found.draws_to_decide < 5e5
    claimed["draws"] = math.ceil(2 * found.draws_to_decide)
    assert validate(jax.random.key(0), square, 1.0, **claimed).verdict == "refuted"


def test_what_is_not_a_number_is_a_violation():
    found = validate(
        jax.random.key(0), lambda key: jnp.nan * uniform(key), 1.0, probability=0.5
    )
    assert found.verdict == "refuted" and "not finite" in found.because


def test_a_statement_is_a_claim_with_controls():
    claim = statement(
        "own:quantile", largest, 3.0, probability=0.95, controls=(0.5,), title="A title"
    )
    assert (claim.paper, claim.title, claim.kind, claim.printed.expect) == (
        "own",
        "A title",
        "tail bound",
        "",
    )
    assert [control.name for control in claim.controls] == ["0.5 of the bound"]
    assert claim.tex == ""  # nothing is made up
    assert {"validate", "statement", "inequality", "attack", "sets", "certify"} <= set(
        dir(proofs_check)
    )
    with pytest.raises(
        AttributeError, match="'proofs_check' has no attribute 'nothing'"
    ):
        _ = proofs_check.nothing


@functools.cache
def lu(factor):
    """Return that a random pivot of a 3 x 3 matrix leaves at most `factor` times the best error of rank one."""

    def sides(A, xp):
        residual = (
            A[None, None]
            - A.T[None, :, :, None] * A[:, None, None, :] / A[:, :, None, None]
        )
        mean = xp.sum((A * A)[:, :, None, None] * residual * residual) / xp.sum(A * A)
        return mean, factor * xp.sum(xp.linalg.eigvalsh(A @ A.T)[:-1])

    start = lambda key: jax.random.uniform(key, (3, 3), minval=0.1)  # noqa: E731
    return inequality(f"own:lu{factor}", sides, start, sets.box(0.01, 10.0))


def cholesky(factor):
    """Return that two random pivots of a 3 x 3 matrix leave at most `factor` times the best error of rank two."""

    def left(A, xp, rest):
        if len(rest) == 1:
            return xp.trace(A)
        after = {j: A - xp.outer(A[:, j], A[:, j]) / A[j, j] for j in rest}
        return sum(
            A[j, j] / xp.trace(A) * left(after[j], xp, [i for i in rest if i != j])
            for j in rest
        )

    def sides(L, xp):
        A = L @ L.T
        return left(A, xp, [0, 1, 2]), factor * xp.linalg.eigvalsh(A)[0]

    return inequality(
        f"own:cholesky{factor}", sides, lambda key: jax.random.normal(key, (3, 3))
    )


@pytest.mark.parametrize("make", [lu, cholesky])
def test_two_conjectures_of_the_literature_fall_and_the_sharp_constants_stand(
    make, x64
):
    claim, sharp = make(2), make(4)
    for seed in range(2):
        found = attack(claim, seed=seed)
        assert (
            found.found
            and len([v for v in found.rechecked if v.status == "refuted"]) == 3
        )
        assert found.excess == pytest.approx(
            0.5, abs=1e-3
        )  # twice the conjectured factor, in a limit
        assert (
            np.all(found.simplest == np.round(found.simplest))
            and np.abs(found.simplest).max() <= 3
        )
        assert (
            claim.target.excess(found.simplest, jax.random.key(0)) > 0.1
        )  # without balls
    assert not any(attack(sharp, seed=seed).found for seed in range(5))
    text = str(found)
    assert "VIOLATED" in text and "simplest x = [[" in text
    assert set(np.ravel(found.params).tolist()) <= {
        float(word) for word in re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", text)
    }


def psd_pair(key):
    S, T = jax.random.normal(key, (2, 3, 3))
    return {"S": S @ S.T, "T": T @ T.T}


PSD_PAIR = {"S": sets.psd(), "T": sets.psd()}


def test_a_counterexample_is_a_member_of_the_set_with_both_sides_as_stated(x64):
    def sides(params, xp):
        S, T = params["S"], params["T"]
        return xp.trace(S + T) ** 2, 2 * (xp.sum(S * S) + xp.sum(T * T))

    found = attack(inequality("own:F2", sides, psd_pair, PSD_PAIR), restarts=4)
    for params, verdict in (
        (found.params, found.verdict),
        (found.simplest, found.simplest_verdict),
    ):
        left, right = sides(params, np)
        assert min(np.linalg.eigvalsh(leaf).min() for leaf in params.values()) > -1e-12
        assert f"{left:.6g} where at most {right:.6g} is claimed" in verdict.because
        assert left > right and verdict.because in str(found)


@pytest.mark.parametrize("name", ["linalg.eigh", "where", "jnp.sum"])
def test_a_function_that_balls_lack_is_named_before_the_search(name, x64, monkeypatch):
    def sides(x, xp):
        if name == "linalg.eigh":
            return xp.linalg.eigh(x @ x.T)[0][0], 1.0
        return (xp.where(x > 0, x, 0) if name == "where" else jnp.sum(x)), 1.0

    claim = inequality("own:odd", sides, lambda key: jax.random.normal(key, (2, 2)))
    monkeypatch.setattr(adversary, "search", None)
    with pytest.raises(ValueError, match=r"own:odd: .*linalg\.eigvalsh") as refused:
        attack(claim)
    assert name == "jnp.sum" or f"balls have no '{name}'" in str(refused.value)


def test_what_floats_alone_refute_is_not_refuted(x64):
    def sides(x, xp):  # equal, and rounding makes either side the larger one
        return xp.exp(x[0]) * xp.exp(x[1]), xp.exp(x[0] + x[1])

    claim = inequality("own:exp", sides, lambda key: jax.random.normal(key, (2,)))
    assert not attack(claim, restarts=4, steps=20).found
    assert all(
        left <= right.value * (1 + 1e-12)
        for left, right in claim.printed.statement.sides(jax.random.key(0))
    )
    with pytest.raises(ValueError, match="the claim has no target"):
        attack(statement("own:none", largest, 3.0, probability=0.5))


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("simplex", lambda w, xp: (xp.sum(w), 1 - 1e-9)),
        ("sphere", lambda w, xp: (xp.sum(w * w), 1 - 1e-9)),
    ],
)
def test_members_of_a_set_are_exact_in_a_proof(name, made, x64):
    within = getattr(sets, name)()
    claim = inequality(
        f"own:{name}",
        made,
        lambda key: jax.random.uniform(key, (3,)),
        {"w": within}["w"],
    )
    found = attack(claim, restarts=2, steps=5)
    assert found.found and f"The proof is at {within.says}" in str(found)
