"""ghashami2016, Section 3.1.3: Lemmas 3.2 and 3.3 with the steps of their proofs, Theorem 3.2, Theorems D and E."""

import functools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg

from jaxkern import frequent_directions as fd
from jaxkern import plan
from jaxkern.bounds import Bound, streaming
from proofs_check import controls
from proofs_check.claim import (
    Calibrated,
    Check,
    Control,
    Form,
    Identity,
    Inequality,
    Setting,
    Tail,
    sample,
)
from proofs_check.papers.ghashami2016 import algorithm1, trials
from proofs_check.papers.ghashami2016.clouds import Cloud
from proofs_check.papers.ghashami2016.setup import Inputs, enough_features
from proofs_check.papers.shared import bound_of, lines, parametrized, real

FEATURES = 24


def _rows(name: str, A: np.ndarray, size: int) -> Setting:
    """Return a setting with the rows of a fixed stream."""
    return Setting(f"{name}, l={size}", {"rows": A}, shapes={"l": size})


def _feature_streams(streams: Sequence[Cloud], size: int) -> tuple[Setting, ...]:
    """Return settings whose rows are shifted features, drawn anew by each check; l is even and at most n."""
    settings = []
    for cloud in streams:
        rows = min(size, 2 * (cloud.num_points // 2))
        name = f"features of {cloud.name}, n={cloud.num_points}, l={rows}"
        settings.append(Setting(name, {"cloud": cloud}, shapes={"l": rows}))
    return tuple(settings)


def _stream(key: jax.Array, setting: Setting) -> tuple[np.ndarray, int]:
    """Return the rows of a setting and l."""
    population, size = setting.data, setting.shapes["l"]
    if "rows" in population:
        return population["rows"], size
    return algorithm1.feature_rows(key, population["cloud"], FEATURES), size


def _tails(A: np.ndarray) -> np.ndarray:
    """Return |A - A_k|_F^2 for k = 0, 1, ..."""
    squares = np.linalg.svd(A, compute_uv=False) ** 2
    return np.append(np.cumsum(squares[::-1])[::-1], 0)


def _half(size: int) -> int:
    return size // 2


def _outside(
    formula: Callable[..., Bound], shrink_at: Callable[[int], int]
) -> Inequality:
    """Return the check of Lemma 3.2, in units of |A|_F^2, for every rank for which the bound is valid."""

    @sample("outside")
    def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        A, size = _stream(key, setting)
        B, _ = algorithm1.algorithm_1(A, size, shrink_at=shrink_at(size))
        tails = _tails(A)
        left = algorithm1.lost_in_lemma_3_2(A, B) / tails[0]
        rights = [
            formula(residual_energy=tail / tails[0], sketch_size=size, rank=rank)
            for rank, tail in enumerate(tails)
        ]
        return [(left, right) for right in rights if right.valid]

    return Inequality(check)


def _by_library(setting: Setting, share: float = 1.0) -> list[tuple[float, Bound]]:
    """Return the differences of the library's sketch and certificate from those of Algorithm 1, which are 0.

    As all shrinks take from the heavy direction, the certificate is what is lost of it, and so the unit of both.
    """
    A, size = setting.data["rows"], setting.shapes["l"]
    B, _ = algorithm1.algorithm_1(A, size)
    sketch = fd.finalize(
        fd.update(
            fd.init(size, A.shape[1], shrink_at=size // 2, dtype=real(A).dtype), real(A)
        )
    )
    rows = np.asarray(sketch.rows, np.float64)
    lost = float(np.linalg.norm(A.T @ A - B.T @ B, 2))
    apart = (
        float(np.linalg.norm(rows.T @ rows - B.T @ B)),
        abs(share * float(sketch.shrinkage) - lost),
    )
    return lines(
        [(value / lost, 0.0) for value in apart],
        "Algorithm 1 of ghashami2016, to the letter",
    )


def _lem3_2(inputs: Inputs) -> Check:
    def one_more(*, residual_energy: float, sketch_size: int, rank: int) -> Bound:
        return streaming.frequent_directions(
            residual_energy=residual_energy, sketch_size=sketch_size + 2, rank=rank
        )

    attained = _rows("orthonormal rows twice", algorithm1.pairs_of_rows(8), 8)
    rank = _rows("rank 7", algorithm1.low_rank(7), 10)
    heavy = _rows("a heavy direction", algorithm1.heavy(), 8)
    others = (
        rank,
        _rows("decaying", algorithm1.decaying(), 8),
        *_feature_streams(inputs.streams, 8),
    )
    cited = functools.partial(streaming.frequent_directions, as_printed=True)
    short = functools.partial(_by_library, share=0.99)
    algorithm = _outside(streaming.frequent_directions, _half)

    def corrected(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        return algorithm.sides(key, setting) + (
            _by_library(setting) if setting is heavy else []
        )

    return Check(
        printed=Form(
            _outside(streaming.frequent_directions_rowwise, lambda size: size),
            (attained, *others),
        ),
        corrected=Form(Inequality(corrected), (attained, heavy, *others)),
        controls=(
            Control(
                "as printed, shrunk at l / 2",
                _outside(cited, _half),
                (attained, rank),
                "wrong operator",
            ),
            Control(
                "l / 2 + 1 for l / 2",
                _outside(one_more, _half),
                (attained,),
                "n for n - 1",
            ),
            Control(
                "0.99 of the certificate", Inequality(short), (heavy,), "wrong factor"
            ),
        ),
    )


def _frequent_directions(inputs: Inputs) -> Check:
    def sides(*, half: bool = False, forget: int = 0) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            A, size = _stream(key, setting)
            seen = np.array(A, jnp.result_type(float))
            A = seen.astype(np.float64)
            seen[len(A) - forget :] = 0
            tails = _tails(A)
            start = fd.init(
                size, A.shape[1], seen.dtype, shrink_at=size // 2 if half else None
            )
            states = [fd.update(start, real(seen))]
            if not half:
                states.append(
                    fd.merge(
                        *(
                            fd.update(start, real(part))
                            for part in np.array_split(seen, 2)
                        )
                    )
                )
            pairs = []
            for sketch in map(fd.finalize, states):
                B = np.asarray(sketch.rows, np.float64)
                shrinkage = float(sketch.shrinkage) / tails[0]
                certificate = Bound(
                    shrinkage,
                    1.0,
                    bool(sketch.finite),
                    "jaxkern, certificate of the sketch",
                )
                pairs.append(
                    (
                        float(np.linalg.norm(A.T @ A - B.T @ B, 2)) / tails[0],
                        certificate,
                    )
                )
                pairs.append(
                    (
                        algorithm1.lost(A, np.asarray(sketch.basis, np.float64))
                        / tails[0],
                        certificate,
                    )
                )
                for k in range(min(size + 1, len(tails))):
                    residual = tails[k] / tails[0]
                    right = streaming.frequent_directions_buffered(
                        residual_energy=residual, sketch_size=size, rank=k
                    )
                    pairs.append((shrinkage, right))
            return pairs

        # The usual 10^4 would be a twentieth of some right sides in float32, as much as the control takes off them.
        return Inequality(check, tolerance=1e3)

    fixed = (
        ("orthonormal rows twice", algorithm1.pairs_of_rows(8)),
        ("rank 7", algorithm1.low_rank(7)),
        ("decaying", algorithm1.decaying()),
        ("a heavy direction", algorithm1.heavy()),
    )
    settings = (
        *(_rows(name, A, 8) for name, A in fixed),
        *_feature_streams(inputs.streams, 8),
    )
    return Check(
        corrected=Form(sides(), settings),
        controls=(
            Control("shrunk at l / 2", sides(half=True), settings, "wrong operator"),
            controls.part_of(0.95, sides(), settings),
            Control("the last rows dropped", sides(forget=1), settings, "rows dropped"),
        ),
    )


def _sketched() -> tuple[Setting, ...]:
    """Return A and B: two by hand, and what Algorithm 1 makes of 96 rows."""
    pairs = [("diag(10, 1) and (1, 1)", np.diag([10.0, 1.0]), np.ones((1, 2)))]
    for name, A in (
        ("decaying", algorithm1.decaying()),
        ("rank 7", algorithm1.low_rank(7)),
    ):
        pairs.append((f"{name}, l=8", A, algorithm1.algorithm_1(A, 8)[0]))
    return tuple(Setting(name, {"A": A, "B": B}) for name, A, B in pairs)


def _null_space() -> Check:
    def columns(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return U and V of A = U S V', with the columns whose singular value is not 0."""
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        return U[:, s > 1e-9 * s[0]], Vt[s > 1e-9 * s[0]].T

    def orthogonal(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return an orthonormal basis of the y in the column space of A with y'A B^+ B = 0, as columns."""
        U, _ = columns(A)
        return U @ linalg.null_space((U.T @ A @ algorithm1.row_space(B)).T, rcond=1e-9)

    def printed(setting: Setting) -> list[tuple[float, Bound]]:
        """Return the largest |B x| over x = V U'y, in units of |B|_2."""
        A, B = setting.data["A"], setting.data["B"]
        U, V = columns(A)
        X = V @ U.T @ orthogonal(A, B)
        return lines(
            [(float(np.linalg.norm(B @ X, 2) / np.linalg.norm(B, 2)), 0.0)],
            "ghashami2016",
        )

    @parametrized(Inequality)
    def right(
        setting: Setting, step: Callable[[np.ndarray], np.ndarray]
    ) -> list[tuple[float, Bound]]:
        """Return the check of |A'y|^2 <= |A A'y| where B A'y = 0, with step(A'y) for A'y in the last two."""
        A, B = setting.data["A"], setting.data["B"]
        size = float(np.linalg.norm(A, 2))
        pairs = []
        for y in orthogonal(A, B).T:
            z = A.T @ y / size
            stepped = step(z)
            pairs.append((float(z @ z), float(np.linalg.norm(A @ stepped)) / size))
            # In units of |B| |A|, where B z is zero up to rounding.
            pairs.append(
                (float(np.linalg.norm(B @ stepped) / np.linalg.norm(B, 2)), 0.0)
            )
        return lines(pairs, "Cauchy-Schwarz, and B z = 0")

    def flip(z: np.ndarray) -> np.ndarray:
        return np.concatenate([-z[:1], z[1:]])

    settings = _sketched()
    return Check(
        printed=Form(Inequality(printed), settings),
        corrected=Form(right(lambda z: z), settings),
        controls=(
            Control(
                "z with one sign changed", right(flip), settings[:1], "wrong operator"
            ),
        ),
    )


def _projection(
    formula: Callable[[np.ndarray, int], Bound], *, last: bool, first_only: bool = False
) -> Inequality:
    """Return the check of |Ghat - Gtilde|_2 / n, W from Algorithm 1 or, `first_only`, from its first decomposition."""

    def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        Z, size = _stream(key, setting)
        _, W = algorithm1.algorithm_1(Z[:size] if first_only else Z, size, last=last)
        right = formula(Z, size)
        return [
            (
                algorithm1.lost(Z, W) / len(Z),
                Bound(
                    right.value / len(Z), right.probability, right.valid, right.source
                ),
            )
        ]

    return Inequality(check)


def _as_printed(Z: np.ndarray, size: int) -> Bound:
    return streaming.projection(num_points=len(Z), sketch_size=size, as_printed=True)


def _lem3_3(inputs: Inputs) -> Check:
    def corrected(Z: np.ndarray, size: int) -> Bound:
        return streaming.projection(num_points=len(Z), sketch_size=size)

    attained = tuple(
        _rows(
            "chosen after the features",
            algorithm1.doubled_then_elsewhere(size, 99),
            size,
        )
        for size in (8, 16)
    )
    late = (
        _rows("one direction late, n=2l-1", algorithm1.then_one_direction(16, 15), 16),
    )
    literal = _projection(corrected, last=False)
    return Check(
        printed=Form(_projection(_as_printed, last=True), attained),
        corrected=Form(
            _projection(corrected, last=True),
            (*attained, *late, *_feature_streams(inputs.streams, 16)),
        ),
        controls=(
            Control("without the last decomposition", literal, late, "rows dropped"),
        ),
    )


def _lem3_3_literal(inputs: Inputs) -> Check:
    def with_leftover(Z: np.ndarray, size: int) -> Bound:
        squares = np.sum(Z**2, axis=1)
        energy, row_energy = float(np.sum(squares)), float(np.max(squares))
        return streaming.leftover_rows(
            energy=energy, sketch_size=size, row_energy=row_energy
        )

    late = tuple(
        _rows(
            "one direction late, n=2l-1",
            algorithm1.then_one_direction(size, size - 1),
            size,
        )
        for size in (8, 32)
    )
    long = _rows("one direction late, n=208", algorithm1.then_one_direction(8, 200), 8)
    first = _projection(with_leftover, last=False, first_only=True)
    return Check(
        printed=Form(_projection(_as_printed, last=False), late),
        corrected=Form(
            _projection(with_leftover, last=False),
            (*late, long, *_feature_streams(inputs.streams, 16)),
        ),
        controls=(
            Control("the W of the first decomposition", first, (long,), "rows dropped"),
        ),
    )


def _oblique() -> Check:
    def printed(setting: Setting) -> list[tuple[float, Bound]]:
        Z, W = setting.data["A"], algorithm1.row_space(setting.data["B"])
        oblique = (Z - Z @ W @ W.T) @ np.linalg.pinv(Z, rcond=1e-9)
        return lines(
            [(float(np.linalg.norm(oblique, 2)), 1.0)], "ghashami2016, Lemma 3.3, proof"
        )

    @parametrized(Identity)
    def equal(setting: Setting, complement: bool) -> np.ndarray:
        Z, W = setting.data["A"], algorithm1.row_space(setting.data["B"])
        N = linalg.null_space(W.T) if complement else W
        size = float(np.linalg.norm(Z, 2)) ** 2
        left = float(np.linalg.norm(Z @ Z.T - Z @ W @ W.T @ Z.T, 2))
        return np.array([(left - float(np.linalg.norm(Z @ N, 2)) ** 2) / size])

    settings = _sketched()
    return Check(
        printed=Form(Inequality(printed), settings),
        corrected=Form(equal(complement=True), settings),
        controls=(
            Control(
                "the maximum over W",
                equal(complement=False),
                settings,
                "wrong operator",
            ),
        ),
    )


def _last_half_dropped(statement: Tail, setting: Setting) -> Control:
    """Return the control in which the sketch sees the first half of the points alone."""
    half = controls.changed(
        (setting,),
        "half of the points seen",
        numbers={"seen": setting.numbers["n"] // 2},
    )
    return Control("the last rows dropped", statement, half, "rows dropped")


def _thm3_2(inputs: Inputs) -> Check:
    size, share = 20, 0.2
    names = {"num_features": "size", "num_points": "n", "sketch_size": "rows"}

    def at(delta: float) -> Setting:
        m = enough_features(share, delta, inputs.stream.num_points, 2, 4 / 3)
        shapes = {"size": m, "paired": 0, "rows": size, "shrink_at": size // 2}
        numbers = {"eps": share, "delta": delta, "seen": inputs.stream.num_points}
        return inputs.stream.setting(
            f"l={size}, m={m}, delta={delta:g}", numbers, shapes
        )

    def shape(setting: Setting) -> Bound:
        """Return eps / 2 at m = 4 log(n / delta) / eps^2, what l = 4 / eps leaves of eps for the features."""
        n, delta, m = (
            setting.numbers["n"],
            setting.numbers["delta"],
            setting.shapes["size"],
        )
        valid = n >= 2 and delta <= 0.5
        return Bound(
            math.sqrt(math.log(n / delta) / m),
            1 - delta,
            valid,
            "ghashami2016, Theorem 3.2",
        )

    settings = tuple(map(at, inputs.deltas))
    corrected = Tail(trials.stream_error, bound_of(streaming.streaming_gram, **names))
    return Check(
        printed=Form(Calibrated(trials.stream_excess, shape, 0.0, 4.5), settings),
        corrected=Form(corrected, settings),
        controls=(_last_half_dropped(corrected, settings[0]),),
    )


def _streaming_gram(inputs: Inputs) -> Check:
    eps, cloud = 0.3, inputs.stream

    def at(delta: float) -> Setting:
        sizes = plan.streaming(eps, delta, num_points=cloud.num_points)
        rows = int(sizes.sketch_size or 0)
        label = f"t={sizes.num_frequencies}, l={rows}, delta={delta:g}"
        shapes = {
            "size": int(sizes.num_frequencies or 0),
            "paired": 1,
            "rows": rows,
            "shrink_at": rows + 1,
        }
        return cloud.setting(
            label, {"eps": eps - 1 / (rows + 1), "seen": cloud.num_points}, shapes
        )

    names = {"num_frequencies": "size", "num_points": "n", "sketch_size": "rows"}
    tail = Tail(
        trials.stream_error, bound_of(streaming.streaming_gram_buffered, **names)
    )
    settings = tuple(map(at, inputs.deltas))
    return Check(
        corrected=Form(tail, settings),
        controls=(_last_half_dropped(tail, settings[0]),),
    )
