"""The judge, judged: how often each rule errs where the true violation rate is known.

Runs are simulated at the edge (the rate is delta itself) and beyond it (1.5 delta), for the fixed rule of
`limits`, for the sequential rule of `sequential`, and for two rules that no one should use:
the limits for a fixed number of trials, looked at after every block; and "the proportion exceeds delta". Beside
each measured number stands the exact one, by binomial sums and by `stopping.stopping_law`. A second table judges every
kind of statement that draws, at its own edge, by the judge itself.

`python -m tools.judge_study --figure FILE` prints the tables of the documentation and draws its figure, in minutes.
"""

import argparse
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxkern.bounds import Bound
from proofs_check import claim
from proofs_check.engine import judge, limits, sequential, stopping
from proofs_check.usage import UsageError, check_file

DELTAS = (0.5, 0.1, 0.01, 0.001)
ALPHA, BETA = 0.01, 0.01
BAD = 1.5
RUNS = 20_000
LOOKS = 100
"""About so many looks in as many trials as the fixed rule takes."""


@dataclass(frozen=True)
class Rule:
    """When to look, and the counts that decide there: at most `certified`, at least `refuted`; all of shape (k,)."""

    looks: np.ndarray
    certified: np.ndarray
    refuted: np.ndarray

    def law(self, rate: float) -> stopping.StoppingLaw:
        """Return the exact law of the end of a run."""
        return stopping.law_of_ends(rate, self.looks, self.certified, self.refuted)


def fixed_rule(delta: float) -> Rule:
    """Return the rule of the package: one look, after the number of trials that the two error rates ask for."""
    return peeked_rule(
        delta, np.array([limits.trials_needed(delta, ALPHA, beta=BETA, bad=BAD)])
    )


def peeked_rule(delta: float, looks: np.ndarray, evidence: Any = limits) -> Rule:
    """Return the limits for a fixed number of trials, looked at again and again: a mistake."""
    return Rule(
        looks,
        *(
            f(looks, delta, ALPHA)
            for f in (evidence.largest_certified, evidence.smallest_refuted)
        ),
    )


def sequential_rule(delta: float, looks: np.ndarray) -> Rule:
    """Return the e-processes of both sides, which may be looked at again and again."""
    return peeked_rule(delta, looks, sequential)


def naive_rule(delta: float, trials: int) -> Rule:
    """Return "refuted if the proportion of violations exceeds delta, certified if not": no error rate at all."""
    last = np.array([int(np.floor(delta * trials * (1 + 1e-12)))])
    return Rule(np.array([trials]), last, last + 1)


def looks_of(delta: float) -> np.ndarray:
    """Return the looks by which the sequential rule has the power of the fixed one."""
    block = max(int(fixed_rule(delta).looks[0]) // LOOKS, 1)
    needed = stopping.trials_needed(delta, ALPHA, beta=BETA, bad=BAD, block=block)
    return np.arange(block, needed + 1, block)


@dataclass(frozen=True)
class Ends:
    """How simulated runs ended: counts of verdicts, and the mean number of trials."""

    runs: int
    refuted: int
    certified: int
    mean_trials: float


def simulate(
    rng: np.random.Generator, rate: float, rule: Rule, *, runs: int = RUNS
) -> Ends:
    """Return the ends of independent runs whose trials violate with probability `rate`."""
    counts, ends, spent, previous = (
        np.zeros(runs, np.int64),
        {"refuted": 0, "certified": 0},
        0,
        0,
    )
    for look, last, first in zip(
        rule.looks.tolist(), rule.certified.tolist(), rule.refuted.tolist(), strict=True
    ):
        counts = counts + rng.binomial(look - previous, rate, counts.size)
        spent += (look - previous) * counts.size
        ends["refuted"] += int(np.count_nonzero(counts >= first))
        ends["certified"] += int(np.count_nonzero(counts <= last))
        counts = counts[(counts > last) & (counts < first)]
        previous = look
    return Ends(runs, ends["refuted"], ends["certified"], spent / runs)


COLUMNS: tuple[str, ...] = (
    "delta",
    "rule",
    "trials",
    "false refutations",
    "their rate",
    "exact",
)
COLUMNS += ("found at 1.5 delta", "exact", "mean trials there", "exact")


def rows(
    deltas: Sequence[float] = DELTAS, *, runs: int = RUNS, seed: int = 0
) -> list[tuple[str, ...]]:
    """Return the cells of the table; limits of a measured rate are at level 0.005 on either side."""
    found = []
    for number, delta in enumerate(deltas):
        looks = looks_of(delta)
        rules = {
            "fixed": fixed_rule(delta),
            "sequential": sequential_rule(delta, looks),
            "fixed, peeked at": peeked_rule(delta, looks),
            "proportion": naive_rule(delta, int(fixed_rule(delta).looks[0])),
        }
        for place, (name, rule) in enumerate(rules.items()):
            rng = np.random.default_rng([seed, number, place])
            edge, beyond = (
                simulate(rng, delta, rule, runs=runs),
                simulate(rng, BAD * delta, rule, runs=runs),
            )
            low, high = limits.binomial_limits(edge.refuted, runs, 0.005)
            exact_edge, exact_beyond = rule.law(delta), rule.law(BAD * delta)
            cells = [f"{delta:g}", name, f"{rule.looks[-1]:,}", f"{edge.refuted:,}"]
            cells += [f"{low:.2%} to {high:.2%}", f"{exact_edge.refuted.sum():.2%}"]
            cells += [
                f"{beyond.refuted / runs:.2%}",
                f"{exact_beyond.refuted.sum():.2%}",
            ]
            cells += [
                f"{beyond.mean_trials:,.0f}",
                f"{exact_beyond.expected_trials:,.0f}",
            ]
            found.append(tuple(cells))
    return found


EDGE, TRIALS = 0.05, 200
"""The level of the second table, and the trials of a setting."""


@dataclass(frozen=True)
class Edge:
    """A kind of statement at its edge: of samples, a row a setting, `true` is true and none of `false` is.

    What is false is so by what its precision, width or resolution leaves open; of samples of `other`, if there is one.
    """

    kind: str
    law: str
    draw: Callable[[np.random.Generator], np.ndarray]
    true: Any
    false: tuple[Any, ...] = ()
    other: Callable[[np.random.Generator], np.ndarray] | None = None
    sizes: tuple[float, ...] = (1.0,)

    def count(self, rng: np.random.Generator, runs: int) -> tuple[int, int]:
        """Return how many runs refute what is true, and how many certify something that is false."""
        settings = tuple(
            claim.Setting(f"{size:g}", numbers={"size": size}) for size in self.sizes
        )
        refuted = certified = 0
        for _ in range(runs):
            sample = self.draw(rng)
            refuted += (
                judge.judge(claim.Form(self.true, settings), sample, EDGE).status
                == "refuted"
            )
            sample = sample if self.other is None else self.other(rng)
            forms = [claim.Form(statement, settings) for statement in self.false]
            certified += any(
                judge.judge(form, sample, EDGE).status == "certified" for form in forms
            )
        return refuted, certified


def edges() -> list[Edge]:
    """Return every kind of statement that draws; statistics of mean 0 and variance 1, or in [0, 1]."""
    laws: dict[str, Callable[..., np.ndarray]] = {
        "normal": lambda rng, n=1: rng.standard_normal((n, TRIALS)),
        "two values, one in 100": lambda rng, n=1: np.where(
            rng.random((n, TRIALS)) < 0.01, 99**0.5, -(99**-0.5)
        ),
        "log-normal": lambda rng, n=1: (
            (rng.lognormal(0, 1.5, (n, TRIALS)) - math.exp(1.125))
            / math.exp(1.125)
            / math.expm1(2.25) ** 0.5
        ),
        "Pareto, 2.5": lambda rng, n=1: (
            (rng.pareto(2.5, (n, TRIALS)) - 2 / 3) / (20 / 9) ** 0.5
        ),
    }
    unit: dict[str, tuple[Callable[..., np.ndarray], float]] = {
        "uniform": (lambda rng: rng.random((1, TRIALS)), 0.5),
        "0 or 1, one in 50": (
            lambda rng: (rng.random((1, TRIALS)) < 0.02).astype(float),
            0.02,
        ),
    }
    uniform, never = unit["uniform"][0], {"trial": None}
    tail = claim.Tail(**never, bound=lambda _: Bound(0.9, 0.9, True, "the study"))
    constant = claim.Calibrated(
        **never, shape=lambda _: Bound(1.0, 0.9, True, "the study"), lower=0, upper=0.9
    )
    law = claim.Law(**never, cdf=lambda x: np.clip(x, 0, 1), width=0.2)
    found = [
        Edge("Tail", "uniform", uniform, tail, (tail,)),
        Edge("Calibrated", "uniform", uniform, constant),
    ]
    # The other law is that of a distribution function 0.2 below the claimed one at 0.6, and nearer to it elsewhere.
    low = functools.partial(
        lambda rng, draw: np.interp(draw(rng), [0, 0.4, 1], [0, 0.6, 1]), draw=uniform
    )
    found.append(Edge("Law", "uniform", uniform, law, (law,), low))

    def expectation(
        kind: str, name: str, draw: Any, mean: float, precision: float, **proved: Any
    ) -> Edge:
        at = [
            claim.Expectation(
                **never,
                target=lambda _, x=x: x,
                scale=lambda _: 1.0,
                precision=precision,
                **proved,
            )
            for x in (mean, mean - precision, mean + precision)
        ]
        return Edge(f"Expectation, {kind}", name, draw, at[0], tuple(at[1:]))

    for name, (draws, mean) in unit.items():
        found.append(
            expectation("`limits`", name, draws, mean, 0.2, limits=lambda _: (0.0, 1.0))
        )
        rare = claim.Rare(
            **never,
            log_claimed=lambda _, mean=mean: math.log(mean),
            log_ceiling=lambda _: 0.0,
        )
        found.append(Edge("Rare", name, draws, rare, (rare,)))
    for name, draws in laws.items():
        found.append(
            expectation("`moment`", name, draws, 0.0, 0.5, moment=lambda _: 1.0)
        )
    found.append(expectation("neither", "log-normal", laws["log-normal"], 0.0, 0.5))
    # Means of size^(1/2) and, at the largest size, of as much more as the width allows; that one alone is noisy.
    sizes, noise = np.array([1.0, 2, 4, 8, 16]), np.array([1e-4, 1e-4, 1e-4, 1e-4, 0.5])
    means = np.sqrt(sizes) * np.where(sizes == 16, 16**0.1, 1.0)
    moments = dict(zip(sizes, (means * noise) ** 2, strict=True))
    rate = claim.Rate(
        **never,
        size="size",
        exponent=0.5,
        moment=lambda setting: moments[setting.numbers["size"]],
    )
    for name, draws in laws.items():
        draw = functools.partial(
            lambda rng, draws: (means * (1 + noise * draws(rng, 5).T)).T, draws=draws
        )
        found.append(
            Edge("Rate, `moment`", name, draw, rate, (rate,), sizes=tuple(sizes))
        )
    return found


KINDS: tuple[str, ...] = (
    "kind",
    "statistic",
    "runs",
    "false refutations",
    "their rate",
)
KINDS += ("false certificates", "their rate")


def kinds(*, runs: int = RUNS, seed: int = 0) -> list[tuple[str, ...]]:
    """Return the cells of the second table; a tenth of the runs where limits are found by bisection."""
    found = []
    for number, edge in enumerate(edges()):
        count = (
            runs if edge.kind in ("Tail", "Calibrated", "Law") else max(runs // 10, 1)
        )
        ends = edge.count(np.random.default_rng([seed, 1, number]), count)
        cells = [edge.kind, edge.law, f"{count:,}"]
        for errors in ends[: 1 + bool(edge.false)]:
            low, high = limits.binomial_limits(errors, count, 0.005)
            cells += [f"{errors:,}", f"{low:.2%} to {high:.2%}"]
        found.append((*cells, *["-"] * (len(KINDS) - len(cells))))
    return found


def draw(path: Path) -> None:
    """Draw the figure: power at delta = 0.2, and what looking and stopping do at delta = 0.1; all of it exact."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    style: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "judge",
        "font.size": 9,
    }
    with pyplot.rc_context(style):
        figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
        _draw_power(axes[0], 0.2)
        _draw_peeking(axes[1], 0.1)
        _draw_sizes(axes[2], 0.1)
        for axis in axes:
            axis.grid(alpha=0.3)
            axis.legend(fontsize=8)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def _draw_power(axis: Any, delta: float) -> None:
    rules = {
        "proportion": (naive_rule(delta, 100), "C3"),
        "fixed": (fixed_rule(delta), "C0"),
        "sequential": (sequential_rule(delta, looks_of(delta)), "C1"),
    }
    rates = np.linspace(0.5, 1.75, 51) * delta
    for name, (rule, colour) in rules.items():
        power = [rule.law(rate).refuted.sum() for rate in rates]
        axis.plot(rates, power, color=colour, label=f"{name}, {rule.looks[-1]} trials")
    axis.axvline(delta, color="grey", linewidth=0.8)
    axis.set(
        xlabel="true violation rate",
        ylabel="probability of refuting",
        title=f"claimed: at most {delta:g}",
    )


def _draw_peeking(axis: Any, delta: float) -> None:
    looks = np.arange(5, 4001, 5)
    shown = np.unique(np.geomspace(1, looks.size, 80).astype(int)) - 1
    rules = {
        "fixed, peeked at": (peeked_rule(delta, looks), "C0"),
        "sequential": (sequential_rule(delta, looks), "C1"),
    }
    for name, (rule, colour) in rules.items():
        axis.plot(
            looks[shown],
            np.cumsum(rule.law(delta).refuted)[shown],
            color=colour,
            label=name,
        )
    axis.axhline(ALPHA, color="grey", linestyle="--", linewidth=0.8, label="declared")
    axis.set(
        xlabel="trials, one look every 5",
        ylabel="refuted so far",
        title=f"true rate {delta:g} = claimed",
    )
    axis.set(xscale="log", ylim=(0, None))


def _draw_sizes(axis: Any, delta: float) -> None:
    fixed = int(fixed_rule(delta).looks[0])
    rule = sequential_rule(delta, np.arange(10, 8 * fixed, 10))
    for rates in (np.linspace(0, 0.7, 15) * delta, np.linspace(1.35, 3, 23) * delta):
        ends = [rule.law(rate) for rate in rates]
        (mean,) = axis.plot(rates, [law.expected_trials for law in ends], color="C1")
        (most,) = axis.plot(
            rates, [law.quantile(0.99) for law in ends], color="C1", linestyle=":"
        )
    mean.set_label("sequential, mean")
    most.set_label("sequential, 99 of 100 runs")
    axis.axhline(fixed, color="C0", label="fixed, for 1.5 delta")
    axis.set(
        xlabel="true violation rate",
        ylabel="trials",
        yscale="log",
        title=f"claimed: at most {delta:g}",
    )
    axis.set_ylim(top=50 * fixed)  # room for the legend


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table as Markdown, and draw the figure where a file is named."""
    parser = argparse.ArgumentParser(
        prog="judge_study", description="The judge, judged by simulation and exactly."
    )
    parser.add_argument(
        "--runs", type=int, default=RUNS, metavar="INT", help=f"default: {RUNS}"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="INT", help="default: 0")
    parser.add_argument(
        "--figure",
        type=Path,
        metavar="FILE",
        help="draw the figure, as FILE.svg or another format",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a figure that exists"
    )
    options = parser.parse_args(argv)
    if options.figure is not None:
        try:
            check_file(
                "--figure", options.figure, overwrite=options.overwrite, named=True
            )
        except UsageError as error:
            parser.error(str(error))
    for columns, table in ((COLUMNS, rows), (KINDS, kinds)):
        for cells in (
            columns,
            ["---"] * len(columns),
            *table(runs=options.runs, seed=options.seed),
        ):
            print("| " + " | ".join(cells) + " |")
        print()
    if options.figure is not None:
        draw(options.figure)


if __name__ == "__main__":
    main()
