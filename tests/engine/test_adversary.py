"""The adversary: known worst cases, permutations, dropped restarts, and statements that are false or proved."""

import argparse
import dataclasses
import errno
import functools
import json
import math
import re
from typing import NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from jaxkern.bounds import Bound
from proofs_check.claim import Form, Identity, Setting, Tail
from proofs_check.cli import attack
from proofs_check.engine import adversary, draws, enclosures, files, samples
from proofs_check.engine.adversary import Target
from proofs_check.papers import adversaries as _parts
from proofs_check.papers import targets
from proofs_check.papers.ghashami2016 import targets as ghashami2016
from proofs_check.papers.kpotufe2020 import targets as kpotufe2020
from proofs_check.usage import StorageError, UsageError

CENTRE = np.array([3.0, 4.0])
SIZE = 8


def at_most(left, right):
    """Return left <= right as a form to be judged."""
    return _parts.inequality(left, right, "a toy")


def toy(**changes):
    """Return a target: |x - CENTRE| in the unit disc is at least 4, attained at the nearest boundary point."""
    parts = {
        "claim": "toy",
        "form": "printed",
        "moves": "a point of the disc",
        "start": lambda key: {"x": jax.random.normal(key, (2,)) * 0.1},
        "project": lambda params: {"x": _parts.between(params["x"], 0.0, 1.0)},
        "excess": lambda params, key: (
            4 - jnp.linalg.norm(params["x"] - jnp.asarray(CENTRE, params["x"].dtype))
        ),
        "recheck": lambda params: at_most(
            4 - np.linalg.norm(params["x"] - CENTRE), 0.0
        ),
    }
    return Target(**{**parts, **changes})


def of(claim, form):
    return next(
        target
        for target in targets.targets()
        if (target.claim, target.form) == (claim, form)
    )


def test_a_worst_case_on_the_boundary_is_reached_and_not_crossed(x64):
    # Outside the disc the excess is not a number, so that a place there would drop the restart.
    def excess(params, key):
        inside = jnp.sum(params["x"] ** 2) <= 1 + 1e-12
        return jnp.where(inside, toy().excess(params, key), jnp.nan)

    target = toy(excess=excess)
    found = adversary.search(target, jax.random.key(1), restarts=4, steps=200)
    assert found.failures == 0
    np.testing.assert_allclose(found.best, 0, atol=1e-5)
    np.testing.assert_allclose(
        found.params["x"], np.tile(CENTRE / 5, (4, 1)), atol=3e-3
    )


def test_a_search_is_its_key_and_a_restart_does_not_depend_on_the_others(x64):
    target = toy()
    first, again, more = (
        adversary.search(target, jax.random.key(2), restarts=n, steps=5)
        for n in (3, 3, 5)
    )
    other = adversary.search(target, jax.random.key(3), restarts=3, steps=5)
    np.testing.assert_array_equal(first.best, again.best)
    np.testing.assert_array_equal(first.params["x"], again.params["x"])
    np.testing.assert_allclose(more.best[:3], first.best, rtol=1e-12)
    assert not np.any(first.best == other.best)


def test_float32_is_searched_as_well():
    found = adversary.search(toy(), jax.random.key(1), restarts=2, steps=200)
    np.testing.assert_allclose(found.best, 0, atol=1e-4)
    assert found.params["x"].dtype == np.float64


def order_target(**changes):
    """Return a target: the excess is largest, 0, for the one order that sorts the rows, and the scale at 1."""
    wanted = np.random.default_rng(0).permutation(SIZE)
    limit = float(np.sum(np.arange(SIZE) ** 2))

    def start(key):
        key_scale, key_order = jax.random.split(key)
        return {
            "scale": jax.random.uniform(key_scale),
            "order": jax.random.permutation(key_order, SIZE),
        }

    def excess(params, key):
        scale = params["scale"]
        placed = jnp.asarray(wanted)[params["order"]].astype(scale.dtype)
        return (
            scale * (jnp.sum(placed * jnp.arange(SIZE).astype(scale.dtype)) / limit) - 1
        )

    parts = {
        "start": start,
        "excess": excess,
        "project": lambda p: {**p, "scale": jnp.clip(p["scale"], 0, 1)},
    }
    return toy(**parts, **changes), np.argsort(wanted)


def test_the_order_is_found_by_swaps_next_to_a_gradient(x64):
    target, worst = order_target()
    found = adversary.search(target, jax.random.key(0), restarts=4, steps=150)
    np.testing.assert_allclose(found.best, 0, atol=1e-12)
    np.testing.assert_array_equal(found.params["order"], np.tile(worst, (4, 1)))


def test_a_restart_that_is_not_a_number_is_dropped_and_counted(x64):
    def excess(params, key):
        x = params["x"]
        return jnp.where(x[0] > 0, jnp.nan, 0.0) - jnp.sum(
            (x - jnp.array([-0.5, 0.0])) ** 2
        )

    def recheck(params):
        assert np.all(np.isfinite(params["x"])) and params["x"][0] <= 0
        return at_most(-1.0, 0.0)

    target = toy(excess=excess, recheck=recheck)
    found = adversary.attack(target, restarts=16, steps=20)
    assert 0 < found.failures < 16 and not found.found
    assert found.failures == np.count_nonzero(np.isnan(found.best))
    assert len(found.rechecked) == adversary.RECHECKED
    assert found.excess == np.nanmax(found.best)


def test_a_slope_that_is_not_a_number_drops_a_restart_too(
    capsys, monkeypatch, tmp_path
):
    # At the centre of the disc the norm has no slope.
    target = toy(
        start=lambda key: {"x": jnp.zeros(2)},
        excess=lambda params, key: jnp.linalg.norm(params["x"]),
    )
    found = adversary.attack(target, restarts=2, steps=2)
    assert (
        found.failures == 2
        and found.verdict is None
        and not found.found
        and found.rechecked == ()
    )
    assert attack.as_json(found, "refuted")["as_expected"] is False
    assert (
        json.loads(json.dumps(attack.as_json(found, "refuted"), allow_nan=False))[
            "excess"
        ]
        is None
    )
    # The command says so, and what it could not write.
    monkeypatch.setattr(attack, "attack", lambda *args, **options: found)
    monkeypatch.setattr(
        files,
        "_write",
        mock.Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")),
    )
    with pytest.raises(
        StorageError, match=r"found\.json cannot be written \(No space left"
    ):
        run(
            "amini2021:ex1-lipschitz",
            "--form",
            "printed",
            "--json",
            str(tmp_path / "found.json"),
        )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(
        "nothing to judge, as every restart was dropped, which is not as expected"
    )
    assert len(lines) == 3 and "2 restarts, 2 of them dropped, 2 steps" in lines[2]


@pytest.mark.parametrize(
    "options", [{"restarts": 0}, {"steps": 0}, {"alpha": 1.0}, {"most": 0}]
)
def test_numbers_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        adversary.attack(toy(), **options)


def coin(key, population, numbers):
    """1 with the probability of the population, else 0."""
    return jnp.asarray(
        jax.random.bernoulli(key, population["p"]), jnp.result_type(float)
    )


def coin_target(highest):
    """Return a target: P(coin > 1/2) <= .1, with p in [0, highest]; what is climbed is all noise on top of p."""
    bound = Bound(0.5, 0.9, True, "a coin")
    real = jnp.result_type(float)
    return toy(
        start=lambda key: {"p": highest * jax.random.uniform(key, ())},
        project=lambda params: {"p": jnp.clip(params["p"], 0.0, highest)},
        excess=lambda params, key: params["p"] - 0.1 + jax.random.normal(key, ()),
        recheck=lambda params: Form(
            Tail(coin, lambda setting: bound),
            (Setting("here", {"p": jnp.asarray(params["p"], real)}),),
            "",
        ),
        trials=1000,
    )


def test_what_was_climbed_does_not_count_but_fresh_samples_do(x64):
    """False alarm: at most alpha = 1e-3 by the exact limits, for the seed is fixed and p <= .1 is true."""
    held = adversary.attack(coin_target(0.1), restarts=4, steps=50)
    assert held.excess > 1 and not held.found
    assert all(
        verdict.alpha == pytest.approx(adversary.ALPHA / adversary.RECHECKED)
        for verdict in held.rechecked
    )
    # p = .2 for .1 among 1000 trials is seen with probability above 1 - 1e-9.
    assert adversary.attack(coin_target(0.2), restarts=4, steps=50).found


def test_the_place_that_is_shown_is_one_that_was_refuted(x64):
    """The surrogate prefers places at which the statement holds."""
    target = toy(
        excess=lambda params, key: -(params["x"][0] ** 2) - params["x"][1] ** 2,
        start=lambda key: {"x": jax.random.uniform(key, (2,)) * 0.5},
        recheck=lambda params: at_most(np.sum(params["x"] ** 2), 1e-3),
        enclosed=lambda params: (np.square(params["x"]).sum(), 1e-3),
    )
    found = adversary.attack(target, restarts=3, steps=1, most=3)
    statuses = [verdict.status for verdict in found.rechecked]
    assert statuses[-1] == "refuted" and found.verdict.status == "refuted"
    assert np.sum(found.params["x"] ** 2) > 1e-3


@pytest.mark.parametrize(
    ("enclosed", "why"),
    [
        (lambda x: (x[0], x[1]), "proved: 1.0000000 > 1.0000000, to 3"),
        (lambda x: (x[1], x[0]), "not confirmed; enclosed are 1.0000000 <= 1.0000000"),
        (
            lambda x: (x[1].sqrt(), np.exp(x[1].log() / 2)),
            "not confirmed; the sides cannot be told apart",
        ),
        (None, "not confirmed; the target has no enclosures"),
    ],
)
def test_what_holds_always_is_refuted_by_a_proof_alone(enclosed, why, x64, monkeypatch):
    sides = None if enclosed is None else lambda params: enclosed(params["x"])
    target = toy(recheck=lambda params: at_most(*params["x"]), enclosed=sides)
    at = target, {"x": np.array([1 + 1e-9, 1 + 1e-12])}, jax.random.key(0)
    verdict = adversary.recheck(*at, alpha=0.1)
    assert why in verdict.because
    assert verdict.status == ("refuted" if why.startswith("proved") else "consistent")
    monkeypatch.setattr(enclosures, "available", lambda: False)
    verdict = adversary.recheck(*at, alpha=0.1)
    assert verdict.status == "consistent" and "pip install" in verdict.because


def test_what_a_shrink_removes_has_the_right_slope_where_eigenvalues_are_equal(
    x64, rng
):
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    direction = rng.normal(size=(4, 4))
    direction, removed = (
        direction + direction.T,
        jax.jit(_parts.removed, static_argnums=1),
    )
    tangent = jax.jit(
        lambda C, along, place: jax.jvp(lambda C: removed(C, place), (C,), (along,)),
        static_argnums=2,
    )
    for values, smooth in (
        ([4.0, 3.0, 2.0, 1.0], True),
        ([3.0, 3.0, 1.0, 1.0], True),
        ([2.0, 2.0, 2.0, 0.0], False),
    ):
        C = (Q * np.array(values)) @ Q.T
        place = 2 if values[0] != values[1] else 3
        (gone, delta), (change, moved) = tangent(C, direction, place)
        assert delta == pytest.approx(sorted(values)[-place])
        np.testing.assert_allclose(
            gone, (Q * np.minimum(values, sorted(values)[-place])) @ Q.T, atol=1e-12
        )
        assert np.all(np.isfinite(change))
        if smooth and values[1] != values[2] and values[0] != values[1]:
            h = 1e-6
            ends = [removed(C + s * h * direction, place) for s in (1, -1)]
            np.testing.assert_allclose(
                change, (ends[0][0] - ends[1][0]) / (2 * h), atol=1e-6
            )
            np.testing.assert_allclose(
                moved, (ends[0][1] - ends[1][1]) / (2 * h), atol=1e-6
            )


def test_the_variance_that_is_climbed_is_that_of_the_deviation(x64, rng):
    params = {
        "points": rng.normal(size=(ghashami2016.POINTS, 2)),
        "weights": np.ones(ghashami2016.POINTS) / math.sqrt(ghashami2016.POINTS),
        "log_lengthscale": np.array(0.3),
    }
    w, b = (
        rng.normal(size=(200_000, 2)) / math.exp(0.3),
        rng.uniform(0, 2 * math.pi, 200_000),
    )
    phases = w @ params["points"].T
    amplitude = np.exp(1j * phases) @ params["weights"]
    terms = (
        2 * np.real(amplitude * np.exp(1j * b)) ** 2 / ghashami2016.POINTS,
        np.abs(amplitude) ** 2 / 6,
    )
    for sample, fourth in zip(terms, (1.5, 1.0), strict=True):
        variance = jax.jit(ghashami2016._variance_of_term)(params, fourth)
        # The standard error of a standard deviation: six of them are a false alarm of 2e-9, for a fixed seed.
        error = math.sqrt(np.var((sample - sample.mean()) ** 2) / sample.size) / (
            2 * sample.std()
        )
        assert math.sqrt(variance) == pytest.approx(sample.std(), abs=6 * error)


def test_the_tail_of_a_mean_of_products_is_exact():
    # For rho = 0 and d = 1 the density of the product is K_0(|x|) / pi.
    for y in (0.5, 3.0, 12.0):
        exact = integrate.quad(lambda x: special.k0(x) / math.pi, y, np.inf, epsabs=0)[
            0
        ]
        assert kpotufe2020._log_tail(0.0, y, 1) == pytest.approx(
            math.log(exact), abs=1e-6
        )
    # For rho = 1 it is chi-square, to which the tails tend.
    for d in (1, 7):
        exact = stats.chi2.logsf(d * 4.0, d)
        assert kpotufe2020._log_tail(1.0, 4.0, d) == pytest.approx(exact)
        assert kpotufe2020._log_tail(1 - 1e-9, 4.0, d) == pytest.approx(exact, abs=1e-4)
    assert kpotufe2020._log_tail(-1.0, 4.0, 1) == -math.inf


def test_targets_are_forms_of_registered_claims_and_of_both_kinds():
    known = targets.targets()
    names = [(target.claim, target.form) for target in known]
    assert len(set(names)) == len(names)
    expected = [targets.registered(*name).expect for name in names]
    assert (
        expected.count("refuted") >= 4
        and len(expected) - expected.count("refuted") >= 4
    )


class Places(NamedTuple):
    """Three random places in the hypotheses, on the host, with what the search sees there."""

    params: list  # of mappings
    again: list  # projected a second time
    heights: np.ndarray  # (3, 3): the excess there, and a step ahead of it and behind
    slopes: np.ndarray  # (3,): along that step
    finite: bool  # of all slopes


STEP = 1e-5


@functools.cache
def places(target):
    """Return three places of a target by one compiled program: starts have the shapes, NumPy the randomness."""
    shapes, rng = (
        jax.eval_shape(target.start, jax.random.key(0)),
        np.random.default_rng(20200),
    )
    raw = {
        name: rng.normal(size=(3, *leaf.shape)) / 2
        if jnp.issubdtype(leaf.dtype, jnp.floating)
        else np.stack(
            [rng.permutation(leaf.shape[0]).astype(leaf.dtype) for _ in range(3)]
        )
        for name, leaf in shapes.items()
    }
    if "weights" in raw:  # none of them 0, where the slope has a side
        raw["weights"] = 0.5 + raw["weights"] / 10
    moving = [name for name in raw if raw[name].dtype.kind == "f"]
    along = {name: rng.normal(size=raw[name].shape[1:]) for name in moving}
    size = math.sqrt(sum(np.sum(leaf**2) for leaf in along.values()))
    along = {name: leaf / size for name, leaf in along.items()}

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None))
    def program(raw, key):
        params = target.project(raw)
        floats, orders = (
            {n: leaf for n, leaf in params.items() if (n in moving) == moves}
            for moves in (True, False)
        )

        def end(side):
            return {name: floats[name] + STEP * side * along[name] for name in moving}

        here = jax.value_and_grad(
            lambda floats: target.excess({**floats, **orders}, key)
        )
        heights, slopes = jax.vmap(lambda side: here(end(side)))(
            jnp.array([0.0, 1.0, -1.0])
        )
        slope = sum(jnp.sum(slopes[name][0] * along[name]) for name in moving)
        return (
            params,
            heights,
            slope,
            jnp.stack([jnp.isfinite(slopes[name]).all() for name in moving]),
        )

    params, heights, slopes, finite = jax.device_get(program(raw, jax.random.key(0)))
    again = jax.device_get(program(params, jax.random.key(0))[0])
    at = [
        [{name: leaf[i] for name, leaf in each.items()} for i in range(3)]
        for each in (params, again)
    ]
    return Places(*at, heights, slopes, bool(finite.all()))


def both_sides(target, params):
    """Return the left and right sides of the statement at a place, as its claim computes them."""
    form = target.recheck(params)
    (setting,) = form.settings
    return np.array(
        [
            (left, right.value)
            for left, right in samples.evaluate(
                form.statement.sides, setting, lambda: jax.random.key(0)
            )
        ]
    )


def every_target(*claims):
    chosen = [
        target for target in targets.targets() if not claims or target.claim in claims
    ]
    return pytest.mark.parametrize(
        "target", chosen, ids=lambda target: f"{target.claim}-{target.form}"
    )


@every_target()
def test_a_projection_stays_where_it_is_and_the_slope_is_that_of_the_excess(
    target, x64
):
    found = places(target)
    for once, twice in zip(found.params, found.again, strict=True):
        for name, leaf in once.items():
            np.testing.assert_allclose(twice[name], leaf, rtol=1e-9, atol=1e-12)
            if leaf.dtype.kind == "i":
                np.testing.assert_array_equal(np.sort(leaf), np.arange(leaf.size))
    assert found.finite and np.ptp(found.heights[:, 0]) > 0
    # A central difference: rounding of both ends, and third derivatives of at most 1e5 in units of the slope.
    differences = (found.heights[:, 1] - found.heights[:, 2]) / (2 * STEP)
    rounding = 100 * np.finfo(float).eps * (1 + np.abs(found.heights[:, 0])) / STEP
    assert np.all(
        np.abs(differences - found.slopes)
        <= rounding + 1e-5 * (1 + np.abs(found.slopes))
    )


def scaled_gap(claim, params, left, right):
    """Return what the excess of a target should be, from both sides of its claim."""
    match claim:
        case "chen2016:lem4.1" | "ghashami2016:lem3.3-literal":
            return left / right - 1
        case "chen2016:lem5.1":
            t, dim = params["frequencies"].shape
            return (left / right - 1) * (math.sqrt(dim) if t == 1 else 2 / t)
        case "ghashami2016:lem3.5":
            G = params["points"] @ params["points"].T
            return (left - right) / np.linalg.norm(G - np.diag(params["values"]), 2)
        case _:
            return left - right


@every_target(
    "amini2021:ex1-lipschitz", "amini2021:lem1", "jaxkern:lem1-distance", "amini2021:eq41",
    "chen2016:eq2", "chen2016:lem4.1", "chen2016:lem5.1", "ghashami2016:lem3.5", "ghashami2016:lem3.3-literal",
)  # fmt: skip
def test_what_is_climbed_is_the_gap_of_both_sides_and_decides_the_recheck(target, x64):
    """The excess adds at most 1e-6 to what it divides by or inverts; all else is of the order of one."""
    found = places(target)
    for params, (height, *_) in zip(found.params, found.heights, strict=True):
        ((left, right),) = both_sides(target, params)
        slack = 1e-4
        if target.claim == "ghashami2016:lem3.3-literal":
            Z = target.recheck(params).settings[0].data["rows"]
            first, late = Z[: ghashami2016.SKETCH], Z[ghashami2016.SKETCH :]
            slack += 1e-6 * np.linalg.norm(late @ np.linalg.pinv(first), 2) ** 2
        assert height == pytest.approx(
            scaled_gap(target.claim, params, left, right), abs=slack
        )
        verdict = adversary.recheck(target, params, jax.random.key(0), alpha=1e-3)
        assert abs(height) <= slack or verdict.status == (
            "refuted" if height > 0 and target.enclosed else "consistent"
        )


def lost_by_rows(A, slots, place):
    """Return |A'A - B'B|_2 and the sum of what is subtracted, row by row with decompositions of the buffer."""
    B, subtracted = np.zeros((0, A.shape[1])), 0.0
    for row in A:
        B = np.vstack([B, row])
        if len(B) == slots:
            _, values, right = np.linalg.svd(B)
            subtracted += values[place - 1] ** 2
            shrunk = (
                np.sqrt(np.maximum(values**2 - values[place - 1] ** 2, 0))[:, None]
                * right[: len(values)]
            )
            B = shrunk[: place - 1]
    return np.linalg.norm(A.T @ A - B.T @ B, 2), subtracted


@every_target(*(claim for claim, _ in ghashami2016.ROWS))
def test_the_loss_that_is_climbed_is_that_of_the_stream(target, x64):
    """Lemma 3.2 is about what is outside of the sketch, which is less than the loss; the certificate is the loss."""
    found = places(target)
    stream = ghashami2016.ROWS[target.claim, target.form]
    for params, (height, *_) in zip(found.params, found.heights, strict=True):
        A = params["rows"][params["order"]]
        sides, losses = (
            both_sides(target, params),
            np.array(lost_by_rows(A, stream.slots, stream.number)) / np.sum(A * A),
        )
        if target.claim == "jaxkern:frequent-directions":
            sides = sides[
                : len(sides) // 2
            ]  # of one stream; the others are of two that are merged
            loss, certified, limits = losses[1], sides[:2], sides[2:]
            np.testing.assert_allclose(certified[:, 1], loss, rtol=1e-6)
            assert np.all(certified[:, 0] <= loss * (1 + 1e-6)) and np.all(
                limits[:, 0] == certified[0, 1]
            )
        else:
            loss, limits = losses[0], sides
            assert np.all(limits[:, 0] <= loss * (1 + 1e-6))
        assert height == pytest.approx(
            math.log((loss + 1e-9) / (limits[:, 1].min() + 1e-4)), abs=1e-5
        )


@every_target(kpotufe2020.CLAIM)
def test_chernoffs_bound_is_above_the_probability_and_close_for_one_row(target, x64):
    """The bound leaves out a factor that grows like a power of the exponent, so its logarithm is close."""
    found = places(target)
    for params, (height, *_) in zip(found.params, found.heights, strict=True):
        form = target.recheck(params)
        log_probability, claimed = form.statement.probability(form.settings[0])
        assert height >= log_probability - claimed - 1e-6
        assert (
            adversary.recheck(target, params, jax.random.key(0), alpha=1e-3).status
            != "refuted"
        )
        if target.form == "printed":
            assert height - (log_probability - claimed) <= 5 + 2 * math.log(
                -log_probability
            )
            assert claimed == pytest.approx(math.log(5) - math.exp(params["log_tau"]))


@every_target("ghashami2016:lem3.3-literal")
def test_late_rows_outside_of_the_span_of_the_first_are_compared_with_the_bound(
    target, rng, x64
):
    """All first points are in one place, so that most of what comes late is outside."""
    points = np.concatenate(
        [np.zeros((ghashami2016.SKETCH, 2)), rng.normal(size=(ghashami2016.LATE, 2))]
    )
    params = {
        "points": points,
        "frequencies": rng.normal(size=(ghashami2016.FEATURES, 2)),
        "shifts": rng.uniform(0, 2 * math.pi, ghashami2016.FEATURES),
        "log_lengthscale": np.array(0.0),
        "order": np.arange(len(points)),
    }
    ((left, right),) = both_sides(target, params)
    assert left > right / 10
    height = float(jax.jit(target.excess)(params, jax.random.key(0)))
    assert height == pytest.approx(left / right - 1, abs=1e-5)


@every_target(kpotufe2020.CLAIM)
def test_chernoffs_bound_is_close_where_all_eigenvalues_are_equal(target, x64):
    """Four far atoms, an effective rank of four, and as many rows as tau, a whole number but for rounding.

    The functions have correlation 0.8; the tail of those that are less alike would underflow.
    """
    params = {
        "points": np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0], [9.0, 9.0]]),
        "weights": np.full(4, 0.25),
        "log_lengthscale": np.array(0.0),
        "functions": np.array([[2.0, 1.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0]]),
        "log_tau": np.array(math.log(20 - 1e-9)),
    }
    form = target.recheck(params)
    log_probability, claimed = form.statement.probability(form.settings[0])
    height = float(jax.jit(target.excess)(params, jax.random.key(0)))
    assert math.isfinite(log_probability)
    assert (
        0 <= height - (log_probability - claimed) <= 5 + 2 * math.log(-log_probability)
    )


@every_target(
    "ghashami2016:thm3.1", "ghashami2016:thm3.1-rare", "jaxkern:quadratic-form-paired"
)
def test_the_limit_of_the_variance_is_where_the_tail_would_fail(target, x64):
    """A mean of squares of 1,000 nearly normal errors is within 6 sqrt(2 / 1000), about a quarter, of its own mean."""
    found, trials = places(target), 1_000
    params, height = found.params[0], found.heights[0, 0]
    form = target.recheck(params)
    (setting,) = form.settings
    bound = form.statement.bound(setting)
    assert (
        bound.valid
        and bound.value == ghashami2016.EPS
        and bound.probability >= 1 - ghashami2016.DELTA
    )
    errors = draws.sample(form.statement.trial, jax.random.key(1), setting, trials)
    # At the limit, excess 0, a normal error is above the bound with probability delta.
    deviation = (1 + height) * bound.value / stats.norm.isf(ghashami2016.DELTA / 2)
    assert np.mean(errors**2) == pytest.approx(
        deviation**2, rel=6 * math.sqrt(2 / trials)
    )


@pytest.mark.parametrize(
    ("claim", "outside", "hypotheses"),
    [
        ("chen2016:lem4.1", {"share": 0.6}, "s = 0.6, r = 1"),
        (kpotufe2020.CLAIM, {"log_tau": -3.0}, "tau = 0.04"),
    ],
)
def test_a_recheck_outside_of_the_hypotheses_says_which_do_not_hold(
    claim, outside, hypotheses, x64
):
    target = of(claim, "printed")
    inside = jax.tree.map(np.asarray, places(target).params[0])
    inside |= {
        "points": np.eye(len(inside["points"]), 2),
        "log_lengthscale": np.log(2.0) / 2,
    }  # at distance 1, if two
    target.recheck(inside)
    with pytest.raises(
        ValueError, match=f"the hypotheses of .* do not hold at {hypotheses}"
    ):
        target.recheck(
            {**inside, **{name: np.asarray(value) for name, value in outside.items()}}
        )


def test_a_statement_without_a_recheck_and_a_form_that_is_not_there_are_named(x64):
    form = Form(Identity(lambda: []), (Setting("here"),), "")
    with pytest.raises(TypeError, match="no recheck for a statement of type Identity"):
        adversary.recheck(
            toy(recheck=lambda params: form), {}, jax.random.key(0), alpha=0.1
        )
    with pytest.raises(ValueError, match="amini2021:lem1 has no form as corrected"):
        targets.registered("amini2021:lem1", "corrected")


@pytest.mark.slow
@pytest.mark.parametrize(
    "target", targets.targets(), ids=lambda target: f"{target.claim}-{target.form}"
)
def test_every_target_gives_what_its_claim_expects(target, x64):
    """A proved tail is refuted with probability 1e-3 at most, for a fixed seed."""
    found = adversary.attack(target)
    assert found.failures == 0
    assert found.found == (
        targets.registered(target.claim, target.form).expect == "refuted"
    )


def test_twenty_starts_nearly_reach_the_best_constant_of_theorem_f_and_do_not_exceed_it(
    x64,
):
    found = adversary.attack(of("ghashami2016:lem3.5", "corrected"), restarts=20)
    assert not found.failures and not found.found and -1e-4 < found.excess < 1e-9


def run(*words):
    parser = argparse.ArgumentParser()
    attack.add_arguments(parser)
    return attack.command(parser.parse_args(words))


BUDGET = ("--restarts", "8", "--steps", "120")


def test_the_command_returns_0_as_expected_and_writes_what_it_found(tmp_path, capsys):
    path = tmp_path / "found.json"
    assert run("amini2021:ex1-lipschitz", *BUDGET, "--json", str(path)) == 0
    printed, corrected = json.loads(path.read_text())
    assert (
        printed["found"]
        and printed["as_expected"]
        and printed["verdict"]["status"] == "refuted"
    )
    assert (
        not corrected["found"]
        and corrected["as_expected"]
        and corrected["expected"] == "consistent"
    )
    assert (
        np.shape(printed["params"]["points"]) == (2, 3)
        and len(printed["best"]) == printed["restarts"] == 8
    )
    text = capsys.readouterr().out
    assert "VIOLATED at" in text and re.search(
        r"proved: 0\.\d+ > 0\.52026010, to \d\d digits", text
    )
    assert "no violation at the 3 best places" in text and "log_lengthscale = " in text
    assert (
        jnp.zeros(1).dtype == jnp.float32
    )  # the precision of the process is as before


@pytest.mark.parametrize(
    ("form", "expected"), [("printed", "consistent"), ("corrected", "refuted")]
)
def test_the_command_returns_1_where_it_finds_what_is_not_expected(
    form, expected, capsys, monkeypatch
):
    there = targets.registered("amini2021:ex1-lipschitz", form)
    monkeypatch.setattr(
        targets, "registered", lambda *name: dataclasses.replace(there, expect=expected)
    )
    assert run("amini2021:ex1-lipschitz", "--form", form, *BUDGET) == 1
    assert (
        f"(expected {expected})" in (text := capsys.readouterr().out)
        and "which is not as expected" in text
    )


def test_without_a_claim_the_targets_are_listed(capsys):
    assert run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(targets.targets()) and any(
        line.startswith("kpotufe2020:thm1 ") for line in lines
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["chen2016:nothing"],
            "no attack on 'chen2016:nothing'; there are attacks on amini2021:eq41, ",
        ),
        (
            ["amini2021:lem1", "--form", "corrected"],
            "amini2021:lem1 has no attack on the form as corrected",
        ),
        (["amini2021:lem1", "--seed", "-1"], "--seed must be at least 0, got -1"),
        (["amini2021:lem1", "--restarts", "0"], "--restarts must be at least 1, got 0"),
        (["amini2021:lem1", "--json", "."], "--json . exists; choose a new file"),
        (
            ["amini2021:lem1", "--json", "no/such/x.json"],
            "--json no/such/x.json is in no folder",
        ),
    ],
)
def test_bad_usage_is_one_line(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as error:
        run(*words)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_the_help_has_examples():
    parser = argparse.ArgumentParser()
    attack.add_arguments(parser)
    assert (
        "examples:" in parser.format_help() and "exit status:" in parser.format_help()
    )
