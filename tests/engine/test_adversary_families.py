"""Sharp inequalities that are true are never refuted, whatever rounding does to them: 50 families, a program for each.

The restarts of a family climb at a parameter of their own each, and all of them are evaluated again; where the floats
refute, enclosures decide. Some suprema are limits in which both sides of a quotient vanish. Made smaller by one part
in a thousand, the right sides are refuted, so that the search and the proofs are seen to work.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from proofs_check.engine import adversary, enclosures
from proofs_check.papers.adversaries import inequality

PARAMETERS, STEPS = 40, 200
PLACES = np.arange(4.0)


def sq(x):
    return (x * x).sum()


def up(x):
    return 1 + x.cumsum()


def gram(x):
    return x @ x.T


def norm(x, p=2):
    return (abs(x) ** p).sum() ** (1 / p)


def jensen(f, p, x, y):
    """Return both sides for the convex f and the shares p and 1 - p."""
    return f(p * x + (1 - p) * y), p * f(x) + (1 - p) * f(y)


def eig(A, n):
    """Return the eigenvalues of a symmetric matrix, the smallest first."""
    return enclosures.eigenvalues(A) if A.dtype == object else n.linalg.eigvalsh(A)


def det(A):
    return sum(
        A[0, i] * (A[1, i - 2] * A[2, i - 1] - A[1, i - 1] * A[2, i - 2])
        for i in range(3)
    )


def pivoted(A, n):
    """Return the mean of |A - A e_j e_i^T A / A_ij|^2, drawn with probability A_ij^2 / |A|^2, over that of rank 1."""
    S = (
        A[None, None]
        - A.T[None, :, :, None] * A[:, None, None, :] / A[:, :, None, None]
    )
    return ((A * A)[:, :, None, None] * S * S).sum() / (
        sq(A) * eig(A @ A.T, n)[:-1].sum()
    )


UNIT, UP, ANY, TINY = (0.0, 1.0), (0.1, 10.0), (-2.0, 2.0), (1e-7, 1.0)
SHARE, POWER, SCALE = (0.1, 0.9), (1.2, 5.0), (0.5, 2.0)
PAIR = (2, 4)
# The shape of x and its box, that of the parameter p, and (left, right) of p, NumPy or JAX, and x, with right > 0.
FAMILIES = {
    "AM-GM": (
        (2,),
        UP,
        SHARE,
        lambda p, n, x, y: (x**p * y ** (1 - p), p * x + (1 - p) * y),
    ),
    "power means": (
        (4,),
        UP,
        POWER,
        lambda p, n, x: (
            norm(x, p) * 4 ** (1 / (p + 1)),
            norm(x, p + 1) * 4 ** (1 / p),
        ),
    ),
    "Young": (
        (2,),
        UP,
        POWER,
        lambda p, n, x, y: (x * y, x**p / p + y ** (p / (p - 1)) * (1 - 1 / p)),
    ),
    "Cauchy-Schwarz": (
        PAIR,
        ANY,
        SCALE,
        lambda p, n, x, y: ((p**PLACES * x @ y) ** 2, sq(p**PLACES * x) * sq(y)),
    ),
    "Hoelder": (
        PAIR,
        UP,
        POWER,
        lambda p, n, x, y: (x @ y, norm(x, p) * norm(y, p / (p - 1))),
    ),
    "Minkowski": (
        PAIR,
        UP,
        POWER,
        lambda p, n, x, y: (norm(x + y, p), norm(x, p) + norm(y, p)),
    ),
    "triangle": (
        PAIR,
        ANY,
        SCALE,
        lambda p, n, x, y: (norm(x + p * y), norm(x) + p * norm(y)),
    ),
    "Bernoulli": ((), (-0.15, 3.0), POWER, lambda p, n, x: (1 + p * x, (1 + x) ** p)),
    "Bernoulli below one": (
        (),
        (-0.9, 3.0),
        SHARE,
        lambda p, n, x: ((1 + x) ** p, 1 + p * x),
    ),
    "Jensen, exp": ((2,), ANY, SHARE, lambda p, n, x, y: jensen(n.exp, p, x, y)),
    "Jensen, x log x": (
        (2,),
        (1.5, 9.0),
        SHARE,
        lambda p, n, x, y: jensen(lambda z: z * n.log(z), p, x, y),
    ),
    "Jensen, 1 / x": (
        (2,),
        UP,
        SHARE,
        lambda p, n, x, y: jensen(lambda z: 1 / z, p, x, y),
    ),
    "Jensen, log sum exp": (
        PAIR,
        UNIT,
        SHARE,
        lambda p, n, x, y: jensen(lambda z: n.log(n.exp(z).sum()), p, x, y),
    ),
    "Golden-Thompson, 2 x 2": (
        (2,),
        UP,
        SHARE,
        lambda p, n, x, y: jensen(lambda z: n.cosh(n.sqrt(z)), p, x, y),
    ),
    "logarithm": ((), UP, SCALE, lambda p, n, x: (1 + n.log(p * x), p * x)),
    "exponential": ((), ANY, SCALE, lambda p, n, x: ((1 + p * x) * n.exp(-p * x), 1)),
    "sine": ((), TINY, SCALE, lambda p, n, x: (n.sin(p * x) / (p * x), 1)),
    "slope of the logarithm": (
        (),
        TINY,
        SCALE,
        lambda p, n, x: (n.log(1 + p * x) / (p * x), 1),
    ),
    "slope of the exponential": (
        (),
        TINY,
        SCALE,
        lambda p, n, x: ((1 - n.exp(-p * x)) / (p * x), 1),
    ),
    "cosine": (
        (),
        TINY,
        SCALE,
        lambda p, n, x: ((1 - n.cos(p * x)) / (p * x) ** 2, 0.5),
    ),
    "second difference": (
        (),
        TINY,
        SCALE,
        lambda p, n, x: (1, (n.cosh(p * x) - 1) * 2 / (p * x) ** 2),
    ),
    "logarithmic mean": (
        (),
        TINY,
        SCALE,
        lambda p, n, x: (x / n.log(1 + x / p), p + x / 2),
    ),
    "Hoeffding": (
        (),
        (0.01, 0.99),
        SHARE,
        lambda p, n, x: ((n.log(1 - x + x * n.exp(p)) - p * x) / p**2, 0.125),
    ),
    "hyperbolic tangent": (
        (),
        TINY,
        SCALE,
        lambda p, n, x: (n.tanh(p * x) / (p * x), 1),
    ),
    "Gibbs": (
        PAIR,
        UP,
        SCALE,
        lambda p, n, x, y: (p * x.sum(), p * (x @ n.log(x / y) + y.sum())),
    ),
    "Popoviciu": (
        (4,),
        UNIT,
        SCALE,
        lambda p, n, x: (p * p * (sq(x) / 4 - x.mean() ** 2), p * p / 4),
    ),
    "Samuelson": (
        (4,),
        ANY,
        SCALE,
        lambda p, n, x: (p * (x[0] - x.mean()) ** 2, 3 * p * sq(x - x.mean()) / 4),
    ),
    "Kantorovich": (
        (4,),
        UNIT,
        POWER,
        lambda p, n, x: ((p**x).mean() * (p**-x).mean(), (1 + p) ** 2 / (4 * p)),
    ),
    "Greub": (
        (2, 2),
        UNIT,
        POWER,
        lambda p, n, x, y: (
            sq(p**x) * sq(p**y),
            ((p + 1 / p) / 2 * (p**x @ p**y)) ** 2,
        ),
    ),
    "Wielandt": (
        (),
        UNIT,
        POWER,
        lambda p, n, x: (
            (p + 1) ** 2 * x * (1 - x),
            (1 + (p - 1) * x) * (p - (p - 1) * x),
        ),
    ),
    "Lyapunov": (
        (4,),
        UP,
        POWER,
        lambda p, n, x: (
            (x ** (p + 1)).mean() ** 2,
            (x**p).mean() * (x ** (p + 2)).mean(),
        ),
    ),
    "Muirhead": (
        (2,),
        UP,
        POWER,
        lambda p, n, x, y: (x**p * y + x * y**p, x ** (p + 1) + y ** (p + 1)),
    ),
    "Bessel": (
        (4,),
        ANY,
        SCALE,
        lambda p, n, x: ((n.cos(p) * x[0] + n.sin(p) * x[1]) ** 2 + x[2] ** 2, sq(x)),
    ),
    "rearrangement": (
        PAIR,
        UNIT,
        SCALE,
        lambda p, n, x, y: (up(p * x) @ up(y)[::-1], up(p * x) @ up(y)),
    ),
    "Chebyshev": (
        PAIR,
        UNIT,
        SCALE,
        lambda p, n, x, y: (up(p * x).mean() * up(y).sum(), up(p * x) @ up(y)),
    ),
    "pivot": (
        (4, 4),
        (0.01, 10.0),
        SCALE,
        lambda p, n, x: (pivoted(x * p**PLACES, n), 4),
    ),
}
# The same of two positive semidefinite matrices A and B of order 3, A scaled with p, and of eigenvalues, ascending.
MATRICES = {
    "Weyl": lambda e, A, B: (e(A + B)[-1], e(A)[-1] + e(B)[-1]),
    "Ky Fan": lambda e, A, B: (e(A + B)[1:].sum(), e(A)[1:].sum() + e(B)[1:].sum()),
    "Hoffman-Wielandt": lambda e, A, B: (sq(e(A) - e(B)), sq(A - B)),
    "von Neumann": lambda e, A, B: ((A * B).sum(), e(A) @ e(B)),
    "Lieb-Thirring": lambda e, A, B: ((A @ B * (B @ A)).sum(), sq(A @ B)),
    "Schur-Horn": lambda e, A, B: (A[0, 0] + A[1, 1], e(A)[1:].sum()),
    "Hadamard": lambda e, A, B: (det(A), A[0, 0] * A[1, 1] * A[2, 2]),
    "Fischer": lambda e, A, B: (det(A), A[0, 0] * (A[1, 1] * A[2, 2] - A[1, 2] ** 2)),
    "Oppenheim": lambda e, A, B: (det(A) * B[0, 0] * B[1, 1] * B[2, 2], det(A * B)),
    "interlacing": lambda e, A, B: (e(A)[1], e(A[:2, :2])[-1]),
    "traces": lambda e, A, B: ((A * B).sum(), A.trace() * B.trace()),
    "Kadison": lambda e, A, B: (A[0, 0] ** 2, A[0] @ A[0]),
    "Frobenius": lambda e, A, B: (sq(A @ B), sq(A) * sq(B)),
    "Gershgorin": lambda e, A, B: (
        2 * e(A[:2, :2])[1],
        A[0, 0] + A[1, 1] + abs(A[0, 0] - A[1, 1]) + 2 * abs(A[0, 1]),
    ),
}
PSD = (2, 3, 3), ANY, SCALE
FAMILIES |= {
    name: (
        *PSD,
        lambda p, n, x, y, f=f: f(
            lambda A: eig(A, n), gram(p ** PLACES[:3, None] * x), gram(y)
        ),
    )
    for name, f in MATRICES.items()
}
QUICK = ("cosine", "pivot", "Hoffman-Wielandt", "Kantorovich")
SLOW = [
    pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES if name not in QUICK
]


def made(name, share=1.0):
    """Return the target of a family, its right side times `share`."""
    shape, box, around, sides = FAMILIES[name]

    def at(p, n, x, share=share):
        left, right = sides(p, n, *x) if shape[:1] == (2,) else sides(p, n, x)
        return left, share * right

    def start(key):
        key_x, key_p = jax.random.split(key)
        x = jax.random.uniform(
            key_x, shape, minval=max(box[0], -1.0), maxval=min(box[1], 1.0)
        )
        return {
            "x": x,
            "p": jax.random.uniform(key_p, minval=around[0], maxval=around[1]),
        }

    def excess(params, key):
        with jax.numpy_rank_promotion("allow"):
            left, right = at(jax.lax.stop_gradient(params["p"]), jnp, params["x"])
        return left / right - 1

    return adversary.Target(
        name, "printed", "x", start, lambda params: {**params, "x": jnp.clip(params["x"], *box)}, excess,
        recheck=lambda params: inequality(*at(params["p"], np, params["x"]), name),
        enclosed=lambda params: at(params["p"].item(), np, params["x"], enclosures.ball(str(share))),
    )  # fmt: skip


@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_a_sharp_inequality_is_not_refuted_and_one_that_is_a_little_sharper_is(
    name, x64
):
    found = adversary.attack(
        made(name), restarts=PARAMETERS, steps=STEPS, most=PARAMETERS
    )
    assert (
        not found.found
        and found.failures == 0
        and len(found.rechecked) == PARAMETERS
        and len(FAMILIES) == 50
    )
    by_rounding = sum("not confirmed" in verdict.because for verdict in found.rechecked)
    assert by_rounding > 0 or name not in (
        "cosine",
        "pivot",
        "second difference",
        "logarithmic mean",
    )
    verdict = adversary.recheck(
        made(name, 0.999), found.params, jax.random.key(0), alpha=0.1
    )
    assert verdict.status == "refuted" and "proved" in verdict.because
