"""ghashami2016, Table 1 and the comparisons of Sections 1.2 and 4: costs of four methods, and who wins when."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import features, kernels
from jaxkern.bounds import Bound
from proofs_check.claim import Check, Control, Form, Identity, Inequality, Setting
from proofs_check.papers import flops
from proofs_check.papers.ghashami2016 import trials as t
from proofs_check.papers.shared import always

PAPER = "ghashami2016"

Costs = Mapping[str, float]
Sides = Callable[[jax.Array, Setting], list[tuple[float, Bound]]]


# ------------------------------------------------------------------------------------------------------------- Table 1


def _text(n: float, d: float, eps: float, k: float) -> dict[str, float]:
    """Return the costs of Sections 1.2 and 2 with constants 1, at c = m = (log n) / eps^2 and l = 1 / eps."""
    log, m, l = math.log(n), math.log(n) / eps**2, 1 / eps  # noqa: E741, the paper's letter
    return {
        "Nystrom, train": n * m + d * m**2 * log + m**3,
        "Nystrom, test": m * d + m**2,
        "Nystrom, space": m * d + m**2,
        "RNCA, train": n * m * d + n * m**2 + m**3,
        "RNCA, test": d * m + m * k,
        "RNCA, space": d * m + m**2,
        "SKPCA, train": n * d * m + n * m * l,
        "SKPCA, test": d * m + m * l,
        "SKPCA, space": d * m + m * l,
    }


def _printed(n: float, d: float, eps: float, k: float) -> dict[str, float]:
    """Return the entries of Table 1, with constants 1."""
    log = math.log(n)
    return {
        "Nystrom, train": n * log / eps**2 + d * log**3 / eps**4 + log**3 / eps**6,
        "Nystrom, test": d * log / eps**2 + log**2 / eps**4,
        "Nystrom, space": d * log / eps**2 + log**2 / eps**4,
        "RNCA, train": n * d * log / eps**2 + n * log**2 / eps**4 + log**3 / eps**6,
        "RNCA, test": d * log / eps**2 + k * log / eps**2,
        "RNCA, space": d * log / eps**2 + log**2 / eps**4,
        "SKPCA, train": n * d * log / eps**2 + n * log / eps**3,
        "SKPCA, test": d * log / eps**2 + k * log / eps**2,
        "SKPCA, space": d * log / eps**2 + log / eps**3,
    }


def _places() -> tuple[Setting, ...]:
    sizes = ((20_000, 1000, 0.1, 10), (7373, 21, 0.05, 3), (523_910, 54, 0.01, 5))
    return tuple(
        Setting(f"n={n}, d={d}, eps={eps:g}, k={k}", numbers={"n": n, "d": d, "eps": eps, "k": k})
        for n, d, eps, k in sizes
    )


def _table() -> Check:
    def agrees(text: Callable[..., Costs], table: Callable[..., Costs] = _printed) -> Identity:
        def residual(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            derived, entries = text(**setting.numbers), table(**setting.numbers)
            return np.array([derived[name] / entries[name] - 1 for name in entries])

        return Identity(residual)

    def onto_k(n: float, d: float, eps: float, k: float) -> Costs:
        m = math.log(n) / eps**2
        return _text(n, d, eps, k) | {"SKPCA, test": d * m + k * m}

    def linear(n: float, d: float, eps: float, k: float) -> Costs:
        return _printed(n, d, eps, k) | {"SKPCA, space": d * math.log(n) / eps**2 + math.log(n) / eps**2}

    places = _places()
    return Check(
        printed=Form(agrees(_text), places),
        corrected=Form(agrees(onto_k), places),
        controls=(Control("space without 1/eps", agrees(onto_k, linear), places, "wrong power"),),
    )


def _baselines() -> Check:
    """Count the library's programs: the orders that Table 1 rests on."""

    def counts(setting: Setting) -> dict[str, tuple[int, int]]:
        """Return multiply-adds of the library, and the formula, for c = m."""
        n, d, c, k, q = (setting.shapes[name] for name in ("n", "d", "c", "k", "q"))
        kernel, dtype = kernels.Gaussian(1.0), jnp.result_type(float)
        key = jax.eval_shape(lambda: jax.random.key(0))
        X, L, Q = (jax.ShapeDtypeStruct((rows, d), dtype) for rows in (n, c, q))

        def rnca(key: jax.Array, X: jax.Array) -> Any:
            phi = features.shifted_fourier(key, kernel, d, num_frequencies=c)
            return features.random_feature_pca(phi, X, num_components=k, centered=False)

        def kpca(X: jax.Array) -> Any:
            return features.nystrom(kernel, X)  # all points are landmarks, and all directions kept

        fits = {
            "Nystrom": flops.multiply_adds(lambda L: features.nystrom(kernel, L), L),
            "RNCA": flops.multiply_adds(rnca, key, X),
            "KPCA": flops.multiply_adds(kpca, X),
        }
        maps = {
            "Nystrom": flops.multiply_adds(lambda L, Q: features.nystrom(kernel, L)(Q), L, Q),
            "RNCA": flops.multiply_adds(lambda key, X, Q: rnca(key, X)(Q), key, X, Q),
            "KPCA": flops.multiply_adds(lambda X, Q: kpca(X)(Q), X, Q),
        }
        formulas = {
            "Nystrom": (c * c * d, q * (c * d + c * c)),
            "RNCA": (n * d * c + n * c * c, q * (d * c + c * k)),
            "KPCA": (n * n * d, q * (n * d + n * n)),
        }
        found = {}
        for name, (fit, test) in formulas.items():
            found[f"{name}, train"] = (fits[name], fit)
            found[f"{name}, test"] = (maps[name] - fits[name], test)
        return found

    def exact(power: int) -> Identity:
        def residual(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            found = counts(setting)
            claimed = {name: formula for name, (_, formula) in found.items()}
            if power == 1:
                c, d, q = (setting.shapes[name] for name in ("c", "d", "q"))
                claimed["Nystrom, test"] = q * (c * d + c)
            return np.array([counted / claimed[name] - 1 for name, (counted, _) in found.items()])

        return Identity(residual)

    places = tuple(
        Setting(f"n={n}, d={d}, c=m={c}, k={k}", shapes={"n": n, "d": d, "c": c, "k": k, "q": 7})
        for n, d, c, k in ((100, 10, 32, 8), (300, 50, 64, 3))
    )
    return Check(
        printed=Form(exact(2), places),
        controls=(Control("Nystrom without its projection", exact(1), places, "wrong cost"),),
    )


def _advantage() -> Check:
    def ratios(factor: Callable[..., list[float]]) -> Identity:
        def residual(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            d, m, l, k = (setting.numbers[name] for name in ("d", "m", "l", "k"))  # noqa: E741, the paper's letter
            space = (d * m + m * m) / (d * m + m * l)  # of RNCA, and of Nystrom with c = m
            test = (d * m + m * m) / (d * m + m * k)  # of Nystrom
            return np.array([space, test]) / np.array(factor(d, m, l, k)) - 1

        return Identity(residual)

    places = tuple(
        Setting(f"{name}, d={d}, m=1000, l=50, k=10", numbers={"d": d, "m": 1000.0, "l": 50.0, "k": 10.0})
        for name, d in (("RandomNoisy", 1000.0), ("CPU", 21.0), ("Adult", 123.0), ("Forest", 54.0))
    )
    return Check(
        printed=Form(ratios(lambda d, m, rows, k: [m / rows, m / k]), places),
        corrected=Form(ratios(lambda d, m, rows, k: [(d + m) / (d + rows), (d + m) / (d + k)]), places),
        controls=(
            Control("m^2 / l", ratios(lambda d, m, rows, k: [(d + m * m) / (d + rows), m / k]), places, "wrong power"),
        ),
    )


def _crossover_train() -> Check:
    def sides(power: float) -> Sides:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            del key
            n, d = setting.numbers["n"], setting.numbers["d"]
            pairs = []
            for share in (0.9, 0.5, 0.1):
                eps = share * (math.log(n) ** 2 / n) ** power
                costs = _printed(n, d, eps, 1.0)
                # The last terms, and the whole: d n log n / eps^2 is d times a term of Nystrom's.
                last = n * math.log(n) / eps**3 / (math.log(n) ** 3 / eps**6)
                pairs.append((last, Bound(1.0, 1.0, eps < 1, "ghashami2016, Section 1.2")))
                whole = costs["SKPCA, train"] / costs["Nystrom, train"]
                pairs.append((whole / d, Bound(1.0, 1.0, eps < 1, "ghashami2016, Section 1.2")))
            return pairs

        return check

    places = tuple(
        Setting(f"n={n:g}, d={d}", numbers={"n": float(n), "d": float(d)}) for n in (1e4, 1e6, 1e9) for d in (1, 21)
    )
    return Check(
        printed=Form(Inequality(sides(1 / 3)), places),
        controls=(Control("the fourth root", Inequality(sides(1 / 4)), places, "wrong power"),),
    )


def _first() -> Check:
    def sides(method: str) -> Sides:
        """Return the check that costs grow by 2^3 at most when eps is halved, and space like log n."""

        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            del key
            numbers = dict(setting.numbers)
            costs = _text(**numbers)
            finer, longer = (
                _text(**{**numbers, **new}) for new in ({"eps": numbers["eps"] / 2}, {"n": numbers["n"] ** 2})
            )
            space, train = f"{method}, space", f"{method}, train"
            source = "ghashami2016, Section 1.2"
            return [
                (finer[space] / costs[space], always(8.0, source)),
                (finer[train] / costs[train], always(8.0, source)),
                (longer[space] / costs[space], always(2.0, source)),
            ]

        return check

    places = _places()
    return Check(
        corrected=Form(Inequality(sides("SKPCA")), places),
        controls=(Control("RNCA", Inequality(sides("RNCA")), places, "wrong cost"),),
    )


def _fastfood() -> Check:
    def sides(dense: bool) -> Sides:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            d, m = setting.shapes["d"], setting.shapes["m"]
            make = features.shifted_fourier if dense else features.fastfood
            phi = jax.eval_shape(lambda key: make(key, kernels.Gaussian(1.0), d, num_frequencies=m), key)
            held = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(phi))
            return [(held / m, Bound(5.0, 1.0, m >= d, "ghashami2016, Section 1.2"))]

        return check

    places = tuple(Setting(f"d={d}, m={m}", shapes={"d": d, "m": m}) for d, m in ((16, 64), (256, 1024), (1000, 4096)))
    return Check(
        printed=Form(Inequality(sides(dense=False)), places),
        controls=(Control("frequencies without structure", Inequality(sides(dense=True)), places, "wrong cost"),),
    )


# --------------------------------------------------------------------------------------------------------- experiments


def _test_ratio() -> Check:
    def ratio(d: float, m: float) -> float:
        return (m * d + m * m) / (d * m)

    def sides(least: float) -> Sides:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            del key
            d, m = setting.numbers["d"], setting.numbers["m"]
            return [(least / 100, always(ratio(d, m) / 100, "ghashami2016, Section 4"))]

        return check

    def exact(offset: float) -> Identity:
        def residual(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            d, m = setting.numbers["d"], setting.numbers["m"]
            return np.array([ratio(d, m) / (offset + m / d) - 1])

        return Identity(residual)

    places = tuple(
        Setting(f"{name}, d={d}, c=m=1000", numbers={"d": float(d), "m": 1000.0})
        for name, d in (("RandomNoisy", 1000), ("CPU", 21), ("Adult", 123), ("Forest", 54))
    )
    return Check(
        printed=Form(Inequality(sides(100.0)), places),
        corrected=Form(exact(1.0), places),
        controls=(Control("c / d", exact(0.0), places, "term left out"),),
    )


def _crossover_frobenius() -> Check:
    def rnca(setting: Setting, c: int) -> float:
        return t.features_mean_square(setting.population["gram"], setting.population["doubled"], c)

    def somewhere(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
        """Return the smallest ratio of RNCA's mean square to Nystrom's, which a crossing brings to 1 at most."""
        del key
        losses = t.nystrom_mean_squares(setting.population["gram"])
        ratios = [rnca(setting, c) / loss for c, loss in enumerate(losses, 1)]
        return [(min(ratios), always(1.0, "ghashami2016, Section 4"))]

    def everywhere(first: bool) -> Sides:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            del key
            G = setting.population["gram"]
            losses = t.nystrom_mean_squares(G)
            if first:
                losses = [t.landmark_loss(G, range(c)) for c in range(1, len(G) + 1)]
            right = always(1.0, "jaxkern, Theorem I of ghashami2016")
            return [(loss / rnca(setting, c), right) for c, loss in enumerate(losses, 1)]

        return check

    places = t.small_grams()
    return Check(
        printed=Form(Inequality(somewhere), places),
        corrected=Form(Inequality(everywhere(first=False)), places),
        controls=(Control("the first points as landmarks", Inequality(everywhere(first=True)), places, "wrong law"),),
    )
