"""ghashami2016, Section 3.1.3: Lemmas 3.2 and 3.3 with the steps of their proofs, Theorem 3.2, Theorems D and E."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
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
from proofs_check.papers.ghashami2016.clouds import Settings
from proofs_check.papers.ghashami2016.setup import Formula, Function, Inputs
from proofs_check.papers.shared import always, arguments_of, bound_of, op_norm, real

FEATURES = 24
PRINTED_PROJECTION = partial(streaming.projection, as_printed=True)

Pairs = list[tuple[float, Bound]]


def _orthonormal_rows() -> Setting:
    A = algorithm1.pairs_of_rows(8)
    return algorithm1.stream("orthonormal rows twice", A, 8)


def _feature_streams(inputs: Inputs, size: int) -> Settings:
    """Return settings whose rows are shifted features, drawn anew by each check; l is even and at most n."""
    settings = []
    for cloud in inputs.streams:
        n = cloud.num_points
        rows = min(size, 2 * (n // 2))
        name = f"features of {cloud.name}, n={n}, l={rows}"
        settings.append(Setting(name, {"cloud": cloud}, shapes={"l": rows}))
    return tuple(settings)


def _stream(key: Array, data: Any) -> np.ndarray:
    """Return the rows of a setting."""
    if "rows" in data:
        return np.asarray(data["rows"])
    return algorithm1.feature_rows(key, data["cloud"].data, FEATURES)


def _tails(A: np.ndarray) -> np.ndarray:
    """Return |A - A_k|_F^2 over |A|_F^2 for k = 0, 1, ..."""
    squares = np.linalg.svd(A, compute_uv=False) ** 2
    tails = np.append(np.cumsum(squares[::-1])[::-1], 0)
    return tails / tails[0]


def _every_rank(formula: Formula, A: np.ndarray, size: int) -> list[Bound]:
    """Return a bound, over |A|_F^2, for every rank for which it is valid."""
    rights = [
        formula(residual_energy=tail, sketch_size=size, rank=rank)
        for rank, tail in enumerate(_tails(A))
    ]
    return [right for right in rights if right.valid]


@sample("outside")
def _outside(
    key: Array,
    data: Any,
    l: int,  # noqa: E741, the paper's letter
    formula: Formula = streaming.frequent_directions,
    divisor: int = 2,
) -> Pairs:
    """Compare what Lemma 3.2 bounds with a bound, over |A|_F^2; the sketch shrinks at l / divisor."""
    A = _stream(key, data)
    B, _ = algorithm1.algorithm_1(A, l, shrink_at=l // divisor)
    left = algorithm1.lost_in_lemma_3_2(A, B) / np.sum(A**2)
    return [(float(left), right) for right in _every_rank(formula, A, l)]


def _by_library(data: Any, l: int, share: float = 1.0) -> Pairs:  # noqa: E741, the paper's letter
    """Return the differences of the library's sketch and certificate from those of Algorithm 1, which are 0.

    As all shrinks take from the heavy direction, the certificate is what is lost of it, and so the unit of both.
    """
    A = data["rows"]
    B, _ = algorithm1.algorithm_1(A, l)
    rows = real(A)
    start = fd.init(l, A.shape[1], shrink_at=l // 2, dtype=rows.dtype)
    sketch = fd.finalize(fd.update(start, rows))
    library_rows = np.asarray(sketch.rows, np.float64)
    exact = B.T @ B
    lost = op_norm(A.T @ A - exact)
    difference = float(np.linalg.norm(library_rows.T @ library_rows - exact))
    certificate = abs(share * float(sketch.shrinkage) - lost)
    zero = always(0.0, "Algorithm 1 of ghashami2016, to the letter")
    return [(difference / lost, zero), (certificate / lost, zero)]


def _lemma_and_library(key: Array, setting: Setting, heavy: Setting) -> Pairs:
    """Compare with the lemma and, for the rows with a heavy direction, with the library."""
    arguments = (setting.data, setting.shapes["l"])
    pairs = _outside(key, *arguments)
    return pairs + _by_library(*arguments) if setting is heavy else pairs


def _longer_sketch(*, residual_energy: float, sketch_size: int, rank: int) -> Bound:
    return streaming.frequent_directions(
        residual_energy=residual_energy, sketch_size=sketch_size + 2, rank=rank
    )


def lem3_2(inputs: Inputs) -> Check:
    attained = _orthonormal_rows()
    rank = algorithm1.stream("rank 7", algorithm1.low_rank(7), 10)
    heavy = algorithm1.stream("a heavy direction", algorithm1.heavy(), 8)
    decaying = algorithm1.stream("decaying", algorithm1.decaying(), 8)
    others = (rank, decaying, *_feature_streams(inputs, 8))
    rowwise = partial(
        _outside, formula=streaming.frequent_directions_rowwise, divisor=1
    )
    corrected = partial(_lemma_and_library, heavy=heavy)
    as_printed = partial(streaming.frequent_directions, as_printed=True)
    for_algorithm_1 = Inequality(partial(_outside, formula=as_printed))
    longer = Inequality(partial(_outside, formula=_longer_sketch))
    share = Inequality(partial(_by_library, share=0.99))
    tight = (attained, rank)
    return Check(
        printed=Form(Inequality(rowwise), (attained, *others)),
        corrected=Form(Inequality(corrected), (attained, heavy, *others)),
        controls=(
            Control(
                "as printed, shrunk at l / 2", for_algorithm_1, tight, "wrong operator"
            ),
            Control("l / 2 + 1 for l / 2", longer, (attained,), "n for n - 1"),
            Control("0.99 of the certificate", share, (heavy,), "wrong factor"),
        ),
    )


def _library_sketches(rows: np.ndarray, size: int) -> list[Any]:
    """Return the sketch of the rows by the library, and that of two halves which are merged."""
    start = fd.init(size, rows.shape[1], rows.dtype)
    halves = [fd.update(start, real(half)) for half in np.array_split(rows, 2)]
    return [fd.finalize(fd.update(start, real(rows))), fd.finalize(fd.merge(*halves))]


def _library_shrunk_at_half(rows: np.ndarray, size: int) -> list[Any]:
    start = fd.init(size, rows.shape[1], rows.dtype, shrink_at=size // 2)
    return [fd.finalize(fd.update(start, real(rows)))]


def _certificates(
    key: Array,
    data: Any,
    l: int,  # noqa: E741, the paper's letter
    sketches: Function = _library_sketches,
    forget: int = 0,
) -> Pairs:
    """Compare what is lost with the certificate of a sketch, and the certificate with the bound, over |A|_F^2.

    The sketch does not see the last `forget` rows.
    """
    seen = np.array(_stream(key, data), jnp.result_type(float))
    A = seen.astype(np.float64)
    seen[len(A) - forget :] = 0
    rights = _every_rank(streaming.frequent_directions_buffered, A, l)
    energy = float(np.sum(A**2))
    pairs = []
    for sketch in sketches(seen, l):
        B = np.asarray(sketch.rows, np.float64)
        shrinkage = float(sketch.shrinkage) / energy
        source = "jaxkern, certificate of the sketch"
        certificate = Bound(shrinkage, 1.0, bool(sketch.finite), source)
        outside = algorithm1.lost(A, np.asarray(sketch.basis, np.float64))
        pairs.append((op_norm(A.T @ A - B.T @ B) / energy, certificate))
        pairs.append((outside / energy, certificate))
        pairs += [(shrinkage, right) for right in rights]
    return pairs


def _certified(**options: Any) -> Inequality:
    # The usual 10^4 would be a twentieth of some right sides in float32, as much as the control takes off them.
    return Inequality(partial(_certificates, **options), tolerance=1e3)


def frequent_directions(inputs: Inputs) -> Check:
    settings = (
        _orthonormal_rows(),
        algorithm1.stream("rank 7", algorithm1.low_rank(7), 8),
        algorithm1.stream("decaying", algorithm1.decaying(), 8),
        algorithm1.stream("a heavy direction", algorithm1.heavy(), 8),
        *_feature_streams(inputs, 8),
    )
    half = _certified(sketches=_library_shrunk_at_half)
    forgetful = _certified(forget=1)
    return Check(
        corrected=Form(_certified(), settings),
        controls=(
            Control("shrunk at l / 2", half, settings, "wrong operator"),
            controls.part_of(0.95, _certified(), settings),
            Control("the last rows dropped", forgetful, settings, "rows dropped"),
        ),
    )


def _sketched() -> Settings:
    """Return A and B: two by hand, and what Algorithm 1 makes of 96 rows."""
    by_hand = {"A": np.diag([10.0, 1.0]), "B": np.ones((1, 2))}
    settings = [Setting("diag(10, 1) and (1, 1)", by_hand)]
    streams = {"decaying": algorithm1.decaying(), "rank 7": algorithm1.low_rank(7)}
    for name, A in streams.items():
        B, _ = algorithm1.algorithm_1(A, 8)
        settings.append(Setting(f"{name}, l=8", {"A": A, "B": B}))
    return tuple(settings)


def _singular_vectors(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return U and V of A = U S V', with the columns whose singular value is not 0."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    positive = s > 1e-9 * s[0]
    return U[:, positive], Vt[positive].T


def _orthogonal(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the y in the column space of A with y'A B^+ B = 0, as columns."""
    U, _ = _singular_vectors(A)
    W = algorithm1.row_space(B)
    return U @ linalg.null_space((U.T @ A @ W).T, rcond=1e-9)


def _rotated_back(data: Any) -> Pairs:
    """Compare the largest |B x| over x = V U'y, over |B|_2, with 0."""
    A = data["A"]
    B = data["B"]
    U, V = _singular_vectors(A)
    X = V @ U.T @ _orthogonal(A, B)
    return [(op_norm(B @ X) / op_norm(B), always(0.0, "ghashami2016"))]


def _flipped(z: np.ndarray) -> np.ndarray:
    return np.concatenate([-z[:1], z[1:]])


def _by_cauchy_schwarz(data: Any, step: Function = np.asarray) -> Pairs:
    """Compare |A'y|^2 with |A A'y| where B A'y = 0, with step(A'y) for A'y in the last two."""
    A = data["A"]
    B = data["B"]
    size = op_norm(A)
    source = "Cauchy-Schwarz, and B z = 0"
    pairs = []
    for y in _orthogonal(A, B).T:
        z = A.T @ y / size
        stepped = step(z)
        right = np.linalg.norm(A @ stepped) / size
        # In units of |B| |A|, where B z is zero up to rounding.
        left = np.linalg.norm(B @ stepped) / op_norm(B)
        pairs.append((float(z @ z), always(right, source)))
        pairs.append((float(left), always(0.0, source)))
    return pairs


def lem3_2_proof() -> Check:
    settings = _sketched()
    flipped = Inequality(partial(_by_cauchy_schwarz, step=_flipped))
    name = "z with one sign changed"
    return Check(
        printed=Form(Inequality(_rotated_back), settings),
        corrected=Form(Inequality(_by_cauchy_schwarz), settings),
        controls=(Control(name, flipped, settings[:1], "wrong operator"),),
    )


def projection_bound(formula: Formula, squares: Any, size: int) -> Bound:
    """Return a bound on |Ghat - Gtilde|_2, of the arguments that it requires, for rows with these squared lengths."""
    known = {
        "num_points": len(squares),
        "sketch_size": size,
        "energy": squares.sum(),
        "row_energy": squares.max(),
    }
    return formula(**{name: known[name] for name in arguments_of(formula)})


def _projection(
    key: Array,
    data: Any,
    l: int,  # noqa: E741, the paper's letter
    formula: Formula = streaming.projection,
    last: bool = True,
    most: int | None = None,
) -> Pairs:
    """Compare |Ghat - Gtilde|_2 / n, W from Algorithm 1 on the first `most` rows, with a bound on it."""
    Z = _stream(key, data)
    _, W = algorithm1.algorithm_1(Z[:most], l, last=last)
    right = projection_bound(formula, np.sum(Z**2, axis=1), l)
    n = len(Z)
    return [(algorithm1.lost(Z, W) / n, replace(right, value=right.value / n))]


def _chosen(name: str, signs: np.ndarray, size: int) -> Setting:
    """Return a setting with features of points that are chosen after the features."""
    return algorithm1.stream(name, algorithm1.sign_rows(signs), size)


def _late_direction(size: int) -> Setting:
    signs = algorithm1.then_one_direction(size, size - 1)
    return _chosen("one direction late, n=2l-1", signs, size)


def lem3_3(inputs: Inputs) -> Check:
    attained = tuple(
        _chosen(
            "chosen after the features",
            algorithm1.doubled_then_elsewhere(size, 99),
            size,
        )
        for size in (8, 16)
    )
    late = _late_direction(16)
    settings = (*attained, late, *_feature_streams(inputs, 16))
    literal = Inequality(partial(_projection, last=False))
    name = "without the last decomposition"
    printed = partial(_projection, formula=PRINTED_PROJECTION)
    return Check(
        printed=Form(Inequality(printed), attained),
        corrected=Form(Inequality(_projection), settings),
        controls=(Control(name, literal, (late,), "rows dropped"),),
    )


def lem3_3_literal(inputs: Inputs) -> Check:
    late = (_late_direction(8), _late_direction(32))
    signs = algorithm1.then_one_direction(8, 200)
    long = _chosen("one direction late, n=208", signs, 8)
    literal = partial(_projection, last=False)
    printed = partial(literal, formula=PRINTED_PROJECTION)
    corrected = partial(literal, formula=streaming.leftover_rows)
    # l rows make the first decomposition.
    first = Inequality(partial(corrected, most=8))
    settings = (*late, long, *_feature_streams(inputs, 16))
    name = "the W of the first decomposition"
    return Check(
        printed=Form(Inequality(printed), late),
        corrected=Form(Inequality(corrected), settings),
        controls=(Control(name, first, (long,), "rows dropped"),),
    )


def _oblique(data: Any) -> Pairs:
    """Compare the norm of Z (I - W W') Z^+ with 1."""
    Z = data["A"]
    W = algorithm1.row_space(data["B"])
    oblique = (Z - Z @ W @ W.T) @ np.linalg.pinv(Z, rcond=1e-9)
    return [(op_norm(oblique), always(1.0, "ghashami2016, Lemma 3.3, proof"))]


def _complement(W: np.ndarray) -> np.ndarray:
    return linalg.null_space(W.T)


def _over_complement(data: Any, basis: Function = _complement) -> float:
    """Compare |Z (I - W W') Z'|_2 with the largest |Z x|^2 over unit vectors x of the complement of W."""
    Z = data["A"]
    W = algorithm1.row_space(data["B"])
    largest = op_norm(Z @ basis(W)) ** 2
    return (op_norm(Z @ Z.T - Z @ W @ W.T @ Z.T) - largest) / op_norm(Z) ** 2


def lem3_3_proof() -> Check:
    settings = _sketched()
    over_W = Identity(partial(_over_complement, basis=np.asarray))
    return Check(
        printed=Form(Inequality(_oblique), settings),
        corrected=Form(Identity(_over_complement), settings),
        controls=(Control("the maximum over W", over_W, settings, "wrong operator"),),
    )


def _last_half_dropped(statement: Tail, setting: Setting) -> Control:
    """Return the control in which the sketch sees the first half of the points alone."""
    half = {"seen": setting.numbers["n"] // 2}
    changed = controls.changed([setting], "half of the points seen", numbers=half)
    return Control("the last rows dropped", statement, changed, "rows dropped")


def _share_of_features(*, n: float, delta: float, size: float) -> Bound:
    """Return eps / 2 at m = 4 log(n / delta) / eps^2, what l = 4 / eps leaves of eps for the features."""
    value = math.sqrt(math.log(n / delta) / size)
    valid = n >= 2 and delta <= 0.5
    return Bound(value, 1 - delta, valid, "ghashami2016, Theorem 3.2")


def thm3_2(inputs: Inputs) -> Check:
    bound = bound_of(
        streaming.streaming_gram,
        num_features="size",
        num_points="n",
        sketch_size="rows",
    )
    sizes = {"rows": 20, "paired": 0, "shrink_at": 10}
    settings = inputs.sized(bound, inputs.stream, 0.2, sizes)
    corrected = Tail(trials.stream_error, bound)
    shape = bound_of(_share_of_features)
    calibrated = Calibrated(trials.stream_excess, shape, 0.0, 4.5)
    return Check(
        printed=Form(calibrated, settings),
        corrected=Form(corrected, settings),
        controls=(_last_half_dropped(corrected, settings[0]),),
    )


def streaming_gram(inputs: Inputs) -> Check:
    cloud = inputs.stream
    eps = 0.3
    settings = []
    for delta in inputs.deltas:
        sizes = plan.streaming(eps, delta, num_points=cloud.num_points)
        rows = int(sizes.sketch_size or 0)
        size = int(sizes.num_frequencies or 0)
        label = f"t={size}, l={rows}, delta={delta:g}"
        numbers = {"eps": eps - 1 / (rows + 1), "seen": cloud.num_points}
        shapes = {"size": size, "paired": 1, "rows": rows, "shrink_at": rows + 1}
        settings.append(cloud.setting(label, numbers, shapes))
    bound = bound_of(
        streaming.streaming_gram_buffered,
        num_frequencies="size",
        num_points="n",
        sketch_size="rows",
    )
    tail = Tail(trials.stream_error, bound)
    return Check(
        corrected=Form(tail, tuple(settings)),
        controls=(_last_half_dropped(tail, settings[0]),),
    )
