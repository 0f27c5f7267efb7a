"""Enclosures: numbers as balls (python-flint's `arb`), so that a comparison of two of them is a proof.

A ball holds the number for certain, rounding included. `ball` and `balls` convert floats exactly; NumPy's arithmetic
and its `exp`, `log`, `sqrt`, `cos` then work on arrays of balls entry by entry. `at_most` and `equal` turn two
enclosed sides into `Enclosed`, `together` many of these into one, and `prove` shows that a function of a few real
parameters is positive over a whole box. What cannot be told at the highest precision raises ArithmeticError: it is
neither true nor false. `bound` evaluates a formula of `jaxkern.bounds` in balls, on numbers that compare in this way
(`_Decided`). Without python-flint the module imports, `available()` is false, and nothing else works.
"""

import functools
import importlib.util
import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from proofs_check.claim import Enclosed

if importlib.util.find_spec("flint"):  # an extra
    from flint import arb, arb_mat, arb_series, ctx, fmpq

BITS = (128, 512, 2048)
"""The precisions at which two sides are compared, until they are told apart."""
PIECES, TERMS = 20_000, 5_000
"""The most pieces of a box, and terms of a series, that are looked at."""
_BITS_OF_PIECES = 64

Ball = Any
"""A real number known to lie in an interval: `flint.arb`."""


def available() -> bool:
    """Return whether python-flint is installed."""
    return "arb" in globals()


def precision(bits: int) -> Any:
    """Return the context manager, or decorator, within which balls carry so many bits."""
    return ctx.workprec(bits)


def ball(x: Any) -> Ball:
    """Return a number as a ball, exactly: a float for what it is in binary, a Fraction or "0.1" as it reads."""
    if isinstance(x, Fraction):
        return arb(fmpq(x.numerator, x.denominator))
    return (
        x
        if isinstance(x, arb | arb_series)
        else arb(x.item() if isinstance(x, np.generic) else x)
    )


def balls(array: Any) -> np.ndarray:
    """Return an array of numbers as an array of balls of the same shape (dtype object)."""
    array = np.asarray(array)
    return np.array([ball(x) for x in array.ravel()] + [None], dtype=object)[
        :-1
    ].reshape(array.shape)


def digits(x: Ball) -> int:
    """Return how many significant decimal digits of a ball are known, at most those of the working precision."""
    return max(0, int(min(x.rel_accuracy_bits(), ctx.prec) * math.log10(2)))


def at_most(sides: Callable[[], tuple[Any, Any]], note: str = "") -> Enclosed:
    """Decide whether left <= right, for `sides() -> (left, right)`, evaluated with more and more digits until known."""

    def decided(left: Ball, right: Ball) -> bool | None:
        return True if left <= right else False if left > right else None

    return _decide(sides, decided, ("<=", ">"), note)


def rounded(sides: Callable[[], tuple[Any, Any]]) -> tuple[float, float]:
    """Return both sides as floats, right to 1e-16 of the larger magnitude, with as many digits as that needs."""
    for bits in BITS:
        with precision(bits):
            left, right = map(ball, sides())
            larger = abs(left).max(abs(right))
            if larger == 0:
                return 0.0, 0.0
            errors = [(x / larger).rad() for x in (left, right)]
            if larger.is_finite() and all(float(error) < 1e-16 for error in errors):
                return float(left.mid()), float(right.mid())
    raise ArithmeticError(
        f"the sides cannot be enclosed: {short(left)} and {short(right)}"
    )


def equal(sides: Callable[[], tuple[Any, Any]], note: str = "") -> Enclosed:
    """Decide whether left = right: refuted where the balls are apart, true only where both are exact numbers."""

    def decided(left: Ball, right: Ball) -> bool | None:
        return True if left == right else False if left != right else None

    return _decide(sides, decided, ("=", "!="), note)


def _decide(sides: Any, decided: Any, signs: tuple[str, str], note: str) -> Enclosed:
    for bits in BITS:
        with precision(bits):
            left, right = map(ball, sides())
            holds = decided(left, right)
            if holds is not None:
                shown = (
                    f"{short(left)} {signs[not holds]} {short(right)}"
                    + f" ({note})" * bool(note)
                )
                return Enclosed(holds, digits(right - left), shown)
    raise ArithmeticError(
        f"the sides cannot be told apart: {short(left)} and {short(right)}"
    )


def short(x: Ball) -> str:
    """Return eight digits of a ball."""
    return str(x.str(8, radius=False))


def together(parts: Iterable[Enclosed]) -> Enclosed:
    """Return what several say together: the first that fails, or the one known to the fewest digits if all hold."""
    made = []
    for part in parts:
        if not part.holds:
            return part
        made.append(part)
    least = min(made, key=lambda part: part.digits)
    return Enclosed(
        True,
        least.digits,
        least.because + f", and {len(made) - 1} more" * (len(made) > 1),
    )


def each(sides: Callable[..., tuple[Any, Any]], *settings: Sequence[Any]) -> Enclosed:
    """Decide left <= right at every setting, for `sides(*setting) -> (left, right)`."""
    return together(at_most(functools.partial(sides, *setting)) for setting in settings)


def prove(
    f: Callable[..., Ball],
    box: Sequence[tuple[Any, Any]],
    *,
    zeros: Mapping[int, tuple[Any, int]] | None = None,
    pieces: int = PIECES,
) -> Enclosed:
    """Prove that f > 0 over a whole box, by subdivision, or return a place where f < 0.

    Parameters
    ----------
    f : a formula in as many arguments as the box has sides, of balls and of `flint.arb_series` alike (operators and
        `exp`, `log`, `sqrt`, `sin`, `cos`, `erf`; `x * x`, not `x**2`, which is nan where a ball holds 0). A piece of
        the box is enclosed directly and by the mean-value form.
    box : (low, high) of every parameter, both ends included.
    zeros : `{i: (place, order)}` where f vanishes with its first `order` derivatives (the 0th counts) in parameter i,
        whatever the others are: by an identity, which the caller vouches for. Pieces that hold the place are decided
        by the next Taylor coefficient: f > 0 off the zero. Such a place is an end of the box, or the order is even.
    pieces : the most that are looked at; beyond them ArithmeticError is raised.
    """
    with precision(_BITS_OF_PIECES):
        todo = deque([[(ball(low), ball(high)) for low, high in box]])
        looked = 0
        while todo:
            piece = todo.popleft()
            looked += 1
            if looked > pieces:
                raise ArithmeticError(
                    f"not decided within {pieces} pieces, near {[short(a) for a, _ in piece]}"
                )
            if _value(f, piece, zeros or {}) > 0:
                continue
            middle = [(low + high).mid() / 2 for low, high in piece]
            there = f(*middle)
            if there < 0:
                return Enclosed(
                    False,
                    digits(there),
                    f"{short(there)} at {', '.join(map(short, middle))}",
                )
            widths = [
                float((b - a) / (1 + ball(y) - ball(x)))
                for (a, b), (x, y) in zip(piece, box, strict=True)
            ]
            i = int(np.argmax(widths))
            cut = middle[i].mid()
            todo += [
                [*piece[:i], half, *piece[i + 1 :]]
                for half in ((piece[i][0], cut), (cut, piece[i][1]))
            ]
        return Enclosed(
            True,
            int(_BITS_OF_PIECES * math.log10(2)),
            f"over the whole range, in {looked} piece(s)",
        )


def _value(
    f: Callable[..., Ball],
    piece: list[tuple[Ball, Ball]],
    zeros: Mapping[int, tuple[Any, int]],
) -> Ball:
    """Return an enclosure of f over a piece, or of f over a positive factor where the piece holds a zero."""
    sides = [low.union(high) for low, high in piece]
    for i, (place, order) in zeros.items():
        place, (low, high) = ball(place), piece[i]
        if sides[i].contains(place):
            if not (
                place.is_exact() and (low >= place or high <= place or order % 2 == 0)
            ):
                raise ValueError(
                    "a zero is an exact number, and of even order or at an end of the box"
                )
            return _coefficient(f, sides, i, order) * (
                -1 if order % 2 and not low >= place else 1
            )
    value = f(*sides)
    if value > 0 or not value.is_finite():
        return value
    middle = [side.mid() for side in sides]
    slopes = [
        (_coefficient(f, sides, i, 1), side - x)
        for i, (side, x) in enumerate(zip(sides, middle, strict=True))
    ]
    return value.intersection(f(*middle) + sum(slope * off for slope, off in slopes))


def _coefficient(f: Callable[..., Ball], sides: list[Ball], i: int, order: int) -> Ball:
    """Return an enclosure, over the piece, of the Taylor coefficient of f of this order in parameter i."""
    places = [
        arb_series([side, 1] if j == i else [side], prec=order + 1)
        for j, side in enumerate(sides)
    ]
    before, ctx.cap = ctx.cap, order + 1
    try:
        return arb_series(f(*places), prec=order + 1)[order]
    finally:
        ctx.cap = before


def normal_tail(x: Any) -> Ball:
    """Return P(N(0, 1) >= x)."""
    return (ball(x) / ball(2).sqrt()).erfc() / 2


def chi_square_tail(x: Any, freedom: Any) -> Ball:
    """Return P(chi^2 >= x)."""
    return gamma_above(ball(freedom) / 2, ball(x) / 2)


def chi_square_below(x: Any, freedom: Any) -> Ball:
    """Return P(chi^2 <= x), to many digits where that is small, too."""
    return gamma_below(ball(freedom) / 2, ball(x) / 2)


def gamma_above(a: Ball, x: Ball) -> Ball:
    """Return the regularised incomplete gamma function Q(a, x)."""
    return x.gamma_upper(a, regularized=1) if x > a else 1 - _gamma_series(a, x)


def gamma_below(a: Ball, x: Ball) -> Ball:
    """Return the regularised incomplete gamma function P(a, x)."""
    return 1 - x.gamma_upper(a, regularized=1) if x > a else _gamma_series(a, x)


def _gamma_series(a: Ball, x: Ball) -> Ball:
    """Return P(a, x) = x^a e^-x / Gamma(a + 1) times the sum of x^k / ((a + 1) ... (a + k)), for 0 < x <= a."""
    if not (x > 0 and x.is_finite()):
        return arb.nan()
    total, term, k = ball(1), ball(1), 0
    while not term < ball(2) ** -ctx.prec and k < TERMS:
        k += 1
        term *= x / (a + k)
        total += term
    ratio = x / (
        a + k + 1
    )  # each later term is less than this times the one before, and stands in the ball
    return (a * x.log() - x - (a + 1).lgamma()).exp() * (
        total + ball(0).union(term * ratio / (1 - ratio))
    )


def beta_below(x: Any, a: Any, b: Any) -> Ball:
    """Return P(Beta(a, b) <= x)."""
    return ball(x).beta_lower(ball(a), ball(b), regularized=True)


def binomial_tail(count: int, trials: int, p: Any) -> Ball:
    """Return P(Bin(trials, p) >= count)."""
    p, total = ball(p), ball(0)
    if count <= 0 or count > trials or trials > 2000 or not 0 < p < 1:
        return (
            ball(1)
            if count <= 0
            else ball(0)
            if count > trials
            else beta_below(p, count, trials - count + 1)
        )
    term, odds = (
        math.comb(trials, count) * p**count * (1 - p) ** (trials - count),
        p / (1 - p),
    )
    for k in range(count, trials + 1):  # much faster than the Beta law
        total, term = total + term, term * odds * (trials - k) / (k + 1)
    return total


def eigenvalues(matrix: Any) -> np.ndarray:
    """Return the eigenvalues of a symmetric matrix as balls, in ascending order, to about fourteen digits of its norm.

    Beyond the first precision of `BITS` they are known to about all digits that it has. With V the eigenvectors that
    NumPy finds, then made more precise, those of V^T A V are its diagonal up to the Frobenius norm of what is
    left (Weyl), and those of A times factors between 1 - d and 1 + d with d = |V^T V - I|_F (Ostrowski).
    """
    A = balls(matrix)
    if not all(x.overlaps(y) for x, y in zip(A.ravel(), A.T.ravel(), strict=True)):
        raise ValueError("the matrix must be symmetric, entry by entry")
    V = balls(np.linalg.eigh(A.astype(float))[1])
    if ctx.prec > BITS[0]:
        V = _rotated(A, V)
    B = V.T @ A @ V
    d = _frobenius(V.T @ V - balls(np.eye(len(A)))).abs_upper()
    if not d < 1:
        raise ArithmeticError("NumPy's eigenvectors are not close to orthonormal")
    spread = _frobenius(B - np.diag(np.diag(B))).abs_upper()
    around = (1 + d).union(1 - d)
    found = sorted(np.diag(B), key=lambda x: x.mid())
    return np.array([x + arb(0, spread) for x in found], dtype=object) / around


def _rotated(A: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return approximate eigenvectors made more precise, by Gram-Schmidt and the cyclic method of Jacobi."""
    middle = np.frompyfunc(lambda x: x.mid(), 1, 1)
    for j in range(len(A)):
        V[:, j] -= V[:, :j] @ (V[:, :j].T @ V[:, j])
        V[:, j] /= (V[:, j] @ V[:, j]).sqrt()
        V = middle(V)
    B = middle(V.T @ A @ V)
    small = _frobenius(B) * ball(2) ** (8 - ctx.prec)
    for _ in range(20):
        if _frobenius(B - np.diag(np.diag(B))) < small:
            break
        for i, j in itertools.combinations(range(len(B)), 2):
            if B[i, j] == 0:
                continue
            ratio = (B[j, j] - B[i, i]) / (2 * B[i, j])
            tangent = (1 if ratio >= 0 else -1) / (
                abs(ratio) + (1 + ratio * ratio).sqrt()
            )
            cosine = 1 / (1 + tangent * tangent).sqrt()
            turn = middle(
                np.array(
                    [[cosine, tangent * cosine], [-tangent * cosine, cosine]],
                    dtype=object,
                )
            )
            pair = [i, j]
            V[:, pair] = middle(V[:, pair] @ turn)
            B[:, pair] = B[:, pair] @ turn
            B[pair] = middle(turn.T @ B[pair])
    return V


def singular_values(matrix: Any) -> np.ndarray:
    """Return the singular values of a matrix as balls, in descending order: eigenvalues of [[0, A], [A^T, 0]]."""
    A = balls(matrix)
    m, n = A.shape
    return eigenvalues(
        np.block([[balls(np.zeros((m, m))), A], [A.T, balls(np.zeros((n, n)))]])
    )[::-1][: min(m, n)]


class _Linalg(SimpleNamespace):
    """What NumPy and JAX have in `linalg`, for arrays of balls."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"balls have no 'linalg.{name}'")


class _Balls:
    """What NumPy and JAX have, for arrays of balls: a formula in a namespace `xp` is then a proof.

    Only what needs no comparison of entries, which balls that overlap leave open, and the least and the largest entry.
    """

    _SHAPING = (
        *(
            "arange",
            "array",
            "asarray",
            "broadcast_to",
            "concatenate",
            "diag",
            "diagonal",
            "expand_dims",
            "eye",
        ),
        *(
            "flip",
            "full",
            "matrix_transpose",
            "moveaxis",
            "newaxis",
            "ones",
            "ravel",
            "reshape",
            "roll",
            "squeeze",
        ),
        *(
            "stack",
            "swapaxes",
            "tile",
            "transpose",
            "tril",
            "triu",
            "hstack",
            "vstack",
            "zeros",
        ),
    )
    _COMPUTING = (
        *(
            "abs",
            "add",
            "cos",
            "cosh",
            "cumsum",
            "divide",
            "dot",
            "exp",
            "expm1",
            "inner",
            "kron",
            "log",
            "log1p",
        ),
        *(
            "matmul",
            "mean",
            "multiply",
            "negative",
            "outer",
            "power",
            "prod",
            "reciprocal",
            "sin",
            "sinh",
            "sqrt",
        ),
        *("square", "subtract", "sum", "tan", "tanh", "tensordot", "trace"),
    )

    def __init__(self) -> None:
        self.linalg = _Linalg(
            eigvalsh=eigenvalues,
            svdvals=singular_values,
            norm=self._norm,
            det=self._det,
            inv=self._inv,
            trace=np.trace,
        )
        self.maximum = np.frompyfunc(lambda x, y: ball(x).max(y), 2, 1)
        self.minimum = np.frompyfunc(lambda x, y: ball(x).min(y), 2, 1)
        self.max = lambda x: self.maximum.reduce(np.ravel(x))
        self.min = lambda x: self.minimum.reduce(np.ravel(x))

    @property
    def pi(self) -> Ball:
        return arb.pi()

    def einsum(self, formula: str, *arrays: Any) -> Any:
        return np.einsum(formula, *map(balls, arrays))

    def functions(self) -> str:
        """Return the names of all that there is."""
        others = ("einsum", "max", "maximum", "min", "minimum", "pi")
        names = sorted((*others, *self._COMPUTING, *self._SHAPING))
        return ", ".join([*names, *(f"linalg.{name}" for name in vars(self.linalg))])

    def __getattr__(self, name: str) -> Any:
        if name in self._SHAPING:
            return getattr(np, name)
        if name in self._COMPUTING:  # of numbers as well: NumPy would round
            return lambda *given, **options: getattr(np, name)(
                *map(balls, given), **options
            )
        raise AttributeError(f"balls have no {name!r}")

    def _norm(self, x: np.ndarray, ord: Any = None) -> Ball:
        if ord not in (None, "fro", 2):
            raise ValueError(f"norms of balls are None, 'fro' or 2, got {ord!r}")
        return norms(x)[0] if ord == 2 and x.ndim == 2 else _frobenius(x)

    def _det(self, x: np.ndarray) -> Ball:
        return arb_mat(balls(x).tolist()).det()

    def _inv(self, x: np.ndarray) -> np.ndarray:
        return np.array(arb_mat(balls(x).tolist()).inv().tolist(), dtype=object)


xp = _Balls()


def norms(matrix: Any) -> tuple[Ball, Ball]:
    """Return the spectral and the Frobenius norm of a matrix."""
    return singular_values(matrix)[0], _frobenius(balls(matrix))


def _frobenius(matrix: np.ndarray) -> Ball:
    return sum((x * x for x in matrix.ravel()), start=ball(0)).nonnegative_part().sqrt()
