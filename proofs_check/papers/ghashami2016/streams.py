"""ghashami2016, the statements about sketches: Algorithm 1 to the letter, Frequent Directions, streams, and Nystrom."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import frequent_directions as fd
from jaxkern import plan
from jaxkern.bounds import Bound, streaming
from proofs_check import controls
from proofs_check.claim import Check, Control, Form, Inequality, Setting, Tail
from proofs_check.papers.ghashami2016 import trials as t
from proofs_check.papers.ghashami2016.places import Scope
from proofs_check.papers.populations import Population

PAPER = "ghashami2016"
FEATURES = 24

Sides = Callable[[jax.Array, Setting], list[tuple[float, Bound]]]


# ------------------------------------------------------------------------------------------ Algorithm 1, to the letter


def _rows(name: str, A: np.ndarray, size: int) -> Setting:
    """Return a setting with the rows of a fixed stream."""
    return Setting(f"{name}, l={size}", {"rows": A}, shapes={"l": size})


def _feature_streams(clouds: Sequence[t.Cloud], size: int) -> tuple[Setting, ...]:
    """Return settings whose rows are shifted features, drawn anew by each check; l is even and at most n."""
    settings = []
    for cloud in clouds:
        rows = min(size, 2 * (cloud.num_points // 2))
        name = f"features of {cloud.name}, n={cloud.num_points}, l={rows}"
        settings.append(Setting(name, {"cloud": cloud}, shapes={"l": rows}))
    return tuple(settings)


def _stream(key: jax.Array, setting: Setting) -> tuple[np.ndarray, int]:
    """Return the rows of a setting and l."""
    population, size = setting.population, setting.shapes["l"]
    if "rows" in population:
        return population["rows"], size
    return t.feature_rows(key, population["cloud"], FEATURES), size


def _tails(A: np.ndarray) -> np.ndarray:
    """Return |A - A_k|_F^2 for k = 0, 1, ..."""
    squares = np.linalg.svd(A, compute_uv=False) ** 2
    return np.append(np.cumsum(squares[::-1])[::-1], 0)


def _outside(formula: Callable[..., Bound], shrink_at: Callable[[int], int]) -> Sides:
    """Return the check of Lemma 3.2, in units of |A|_F^2, for every rank for which the bound is valid."""

    def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        A, size = _stream(key, setting)
        B, _ = t.algorithm_1(A, size, shrink_at=shrink_at(size))
        tails = _tails(A)
        left = t.lost_in_lemma_3_2(A, B) / tails[0]
        rights = [
            formula(residual_energy=tail / tails[0], sketch_size=size, rank=rank) for rank, tail in enumerate(tails)
        ]
        return [(left, right) for right in rights if right.valid]

    return check


def _half(size: int) -> int:
    return size // 2


def _every_row(size: int) -> int:
    return size


def _lem3_2(scope: Scope) -> Check:
    attained = _rows("orthonormal rows twice", t.pairs_of_rows(8), 8)
    rank = _rows("rank 7", t.low_rank(7), 10)
    others = (rank, _rows("decaying", t.decaying(), 8), *_feature_streams(scope.streams, 8))
    printed = functools.partial(streaming.frequent_directions, as_printed=True)

    def one_more(*, residual_energy: float, sketch_size: int, rank: int) -> Bound:
        return streaming.frequent_directions(residual_energy=residual_energy, sketch_size=sketch_size + 2, rank=rank)

    return Check(
        printed=Form(Inequality(_outside(printed, _half)), (attained, rank)),
        corrected=Form(Inequality(_outside(streaming.frequent_directions, _half)), (attained, *others)),
        controls=(
            Control(
                "the largest singular value subtracted",
                Inequality(_outside(streaming.frequent_directions, lambda size: 1)),
                others,
                "wrong operator",
            ),
            Control("l / 2 + 1 for l / 2", Inequality(_outside(one_more, _half)), (attained,), "n for n - 1"),
        ),
    )


def _lem3_2_rowwise(scope: Scope) -> Check:
    formula = streaming.frequent_directions_rowwise
    attained = _rows("orthonormal rows twice", t.pairs_of_rows(8), 8)
    places = (attained, _rows("rank 7", t.low_rank(7), 10), *_feature_streams(scope.streams, 8))
    return Check(
        printed=Form(Inequality(_outside(formula, _every_row)), places),
        controls=(Control("shrunk at l / 2", Inequality(_outside(formula, _half)), places, "wrong operator"),),
    )


def _projection(*, last: bool, first_only: bool = False, formula: Callable[..., Bound]) -> Sides:
    """Return the check of |Ghat - Gtilde|_2 / n, W from Algorithm 1 or, `first_only`, from its first decomposition."""

    def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        Z, size = _stream(key, setting)
        _, W = t.algorithm_1(Z[:size] if first_only else Z, size, last=last)
        right = formula(Z, size)
        return [(t.lost(Z, W) / len(Z), Bound(right.value / len(Z), right.probability, right.valid, right.source))]

    return check


def _lemma_3_3(as_printed: bool) -> Callable[[np.ndarray, int], Bound]:
    return lambda Z, size: streaming.projection(num_points=len(Z), sketch_size=size, as_printed=as_printed)


def _with_leftover(Z: np.ndarray, size: int) -> Bound:
    squares = np.sum(Z**2, axis=1)
    return streaming.leftover_rows(energy=float(np.sum(squares)), sketch_size=size, row_energy=float(np.max(squares)))


def _lem3_3(scope: Scope) -> Check:
    attained = tuple(_rows("chosen after the features", t.doubled_then_elsewhere(size, 99), size) for size in (8, 16))
    late = (_rows("one direction late, n=2l-1", t.then_one_direction(16, 15), 16),)
    corrected = Inequality(_projection(last=True, formula=_lemma_3_3(False)))
    return Check(
        printed=Form(Inequality(_projection(last=True, formula=_lemma_3_3(True))), attained),
        corrected=Form(corrected, (*attained, *late, *_feature_streams(scope.streams, 16))),
        controls=(
            Control(
                "without the last decomposition",
                Inequality(_projection(last=False, formula=_lemma_3_3(False))),
                late,
                "rows dropped",
            ),
        ),
    )


def _lem3_3_literal(scope: Scope) -> Check:
    late = tuple(_rows("one direction late, n=2l-1", t.then_one_direction(size, size - 1), size) for size in (8, 32))
    long = _rows("one direction late, n=208", t.then_one_direction(8, 200), 8)
    corrected = Inequality(_projection(last=False, formula=_with_leftover))
    return Check(
        printed=Form(Inequality(_projection(last=False, formula=_lemma_3_3(True))), late),
        corrected=Form(corrected, (*late, long, *_feature_streams(scope.streams, 16))),
        controls=(
            Control(
                "the W of the first decomposition",
                Inequality(_projection(last=False, first_only=True, formula=_with_leftover)),
                (long,),
                "rows dropped",
            ),
        ),
    )


# -------------------------------------------------------------------------------------------------------- Theorem 3.2


def _stream_cloud(data: Population | None) -> t.Cloud:
    return t.clusters(32, 32) if data is None else t.own(data)


def _thm3_2(scope: Scope) -> Check:
    size, share = 20, 0.2

    def bound(setting: Setting) -> Bound:
        return streaming.streaming_gram(
            eps=setting.numbers["eps"],
            num_features=setting.shapes["size"],
            num_points=setting.numbers["n"],
            sketch_size=size,
        )

    def printed_bound(setting: Setting) -> Bound:
        return streaming.streaming_gram(
            eps=setting.numbers["eps"],
            num_features=setting.shapes["size"],
            num_points=setting.numbers["n"],
            sketch_size=size,
            as_printed=True,
        )

    # With l = 4 / eps the sketch has eps / 2, and as much is left for the features. Every trial fails: delta is large.
    literal, half, delta = t.grid_then_cluster(size, size // 2), 2 / size, 0.5
    m = math.ceil((9 + 8 * half) * math.log(2 * literal.num_points / delta) / half**2)
    label = f"l={size}, eps={2 * half:g}, m={m}, delta={delta:g}"
    printed = literal.setting(label, {"eps": half}, {"size": m, "rows": size})

    cloud = _stream_cloud(scope.data)

    def place(delta: float) -> Setting:
        m = math.ceil((2 + 4 * share / 3) * math.log(2 * cloud.num_points / delta) / share**2)
        shapes = {"size": m, "paired": 0, "rows": size, "shrink_at": size // 2}
        return cloud.setting(f"l={size}, m={m}, delta={delta:g}", {"eps": share, "kept": cloud.num_points}, shapes)

    corrected = tuple(map(place, scope.deltas))
    return Check(
        printed=Form(Tail(t.literal_stream_error, printed_bound), (printed,)),
        corrected=Form(Tail(t.stream_error, bound), corrected),
        controls=(_last_half_dropped(Tail(t.stream_error, bound), corrected[0]),),
    )


def _last_half_dropped(statement: Tail, place: Setting) -> Control:
    """Return the control in which the sketch sees the first half of the points alone."""
    half = controls.changed((place,), "half of the points seen", numbers={"kept": place.numbers["n"] // 2})
    return Control("the last rows dropped", statement, half, "rows dropped")


def _streaming_gram(scope: Scope) -> Check:
    cloud, eps = _stream_cloud(scope.data), 0.3

    def place(delta: float) -> Setting:
        sizes = plan.streaming(eps, delta, num_points=cloud.num_points)
        rows = int(sizes.sketch_size or 0)
        label = f"t={sizes.num_frequencies}, l={rows}, delta={delta:g}"
        shapes = {"size": int(sizes.num_frequencies or 0), "paired": 1, "rows": rows, "shrink_at": rows + 1}
        return cloud.setting(label, {"eps": eps - 1 / (rows + 1), "kept": cloud.num_points}, shapes)

    def bound(setting: Setting) -> Bound:
        return streaming.streaming_gram_buffered(
            eps=setting.numbers["eps"],
            num_frequencies=setting.shapes["size"],
            num_points=setting.numbers["n"],
            sketch_size=setting.shapes["rows"],
        )

    statement, places = Tail(t.stream_error, bound), tuple(map(place, scope.deltas))
    return Check(corrected=Form(statement, places), controls=(_last_half_dropped(statement, places[0]),))


def _nystrom(scope: Scope) -> Check:
    # A cluster of 4 in 64 is missed often enough to show; one half of the points is what a bad choice may miss.
    clouds = (t.clusters(32, 32), t.clusters(60, 4)) if scope.data is None else (t.own(scope.data),)
    size = min(30, clouds[0].num_points)

    def place(cloud: t.Cloud, delta: float, first: int) -> Setting:
        log = math.log(20 / delta)
        eps = (2 * log / 3 + math.sqrt(4 * log**2 / 9 + 2 * size * log)) / (2 * size)  # eps^2 c = log (1/2 + 2 eps / 3)
        which = "the first ones" if first else "uniform"
        label = f"c={size} landmarks, {which}, delta={delta:g}"
        return cloud.setting(label, {"eps": eps, "first": first}, {"size": size})

    def bound(setting: Setting) -> Bound:
        return streaming.nystrom_spectral(eps=setting.numbers["eps"], num_landmarks=setting.shapes["size"])

    statement = Tail(t.nystrom_error, bound, lambda setting: 1.0)
    return Check(
        corrected=Form(statement, tuple(place(cloud, delta, 0) for cloud in clouds for delta in scope.deltas)),
        controls=(
            Control("landmarks from the first points", statement, (place(clouds[0], scope.deltas[0], 1),), "wrong law"),
        ),
    )


# ------------------------------------------------------------------------------------------------- Frequent Directions


def _frequent_directions(scope: Scope) -> Check:
    def sides(*, half: bool = False, forget: int = 0) -> Sides:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            A, size = _stream(key, setting)
            rows = jnp.asarray(A, jnp.result_type(float))
            A, seen = np.asarray(rows, np.float64), rows.at[len(A) - forget :].set(0)
            tails = _tails(A)
            start = fd.init(size, A.shape[1], rows.dtype, shrink_at=size // 2 if half else None)
            states = [fd.update(start, seen)]
            if not half:
                states.append(fd.merge(*(fd.update(start, part) for part in jnp.array_split(seen, 2))))
            pairs = []
            for state in states:
                sketch = fd.finalize(state)
                B = np.asarray(sketch.rows, np.float64)
                shrinkage = float(sketch.shrinkage) / tails[0]
                certificate = Bound(shrinkage, 1.0, bool(sketch.finite), "jaxkern, certificate of the sketch")
                pairs.append((float(np.linalg.norm(A.T @ A - B.T @ B, 2)) / tails[0], certificate))
                pairs.append((t.lost(A, np.asarray(sketch.basis, np.float64)) / tails[0], certificate))
                for k in range(min(size + 1, len(tails))):
                    residual = tails[k] / tails[0]
                    right = streaming.frequent_directions_buffered(residual_energy=residual, sketch_size=size, rank=k)
                    pairs.append((shrinkage, right))
            return pairs

        return check

    worst = _rows("orthonormal rows twice", t.pairs_of_rows(8), 8)
    fixed = (worst, _rows("rank 7", t.low_rank(7), 8), _rows("decaying", t.decaying(), 8))
    places = (*fixed, *_feature_streams(scope.streams, 8))
    return Check(
        corrected=Form(Inequality(sides()), places),
        controls=(
            Control("shrunk at l / 2", Inequality(sides(half=True)), places, "wrong operator"),
            Control("the last rows dropped", Inequality(sides(forget=1)), places, "rows dropped"),
        ),
    )
