"""The time of certify is kept, on a clock that only its steps move: each has a price, and compiles at first."""

import itertools
import math
import types

import jax
import numpy as np
import pytest

from jaxkern import features
from jaxkern.kernels import Gaussian
from proofs_check.certify import (
    _certify,
    _clock,
    _facts,
    _plan,
    _trials,
    certify,
    from_array,
)
from proofs_check.report.certificate_document import find_fault

pytestmark = pytest.mark.optimised

ROWS, COMPILING = 1_100, 3.0
WHOLE = ROWS**2


class Machine:
    """A clock. `pays` charges seconds, and those of a compile for what is new."""

    def __init__(self, rate):
        self.now, self.rate, self.known = 0.0, rate, set()

    def clock(self):
        return self.now

    def pays(self, work, *new):
        self.now += self.rate * work + COMPILING * (new not in self.known)
        self.known.add(new)


class Goal:
    """A goal whose steps take the square of the rows; small maps fail."""

    name, words = "distance", "nothing"

    def __init__(self, machine):
        self.machine, self.refuses = machine, lambda name: ""

    def prepare(self, key, rows, labels=None):
        self.machine.pays(len(rows.points) ** 2, "prepare", len(rows.points))
        return types.SimpleNamespace(unresolved=0, rounding=0.0, rows=len(rows.points))

    def error(self, key, phi, prepared):
        self.machine.pays(prepared.rows**2, "error", prepared.rows)
        return 0.05

    def detail(self, phi, prepared):
        self.error(None, phi, prepared)
        return {}


@pytest.mark.parametrize(
    ("rate", "minutes", "least"),
    [
        (1e-8, 20, 8),
        (1e-8, 1, 0),
        (1 / WHOLE, 1, 0),
        (30 / WHOLE, 1, 0),
        (100 / WHOLE, 1, 0),
    ],
)
def test_time_is_kept_whatever_steps_take(
    rate, minutes, least, monkeypatch, own_precision
):
    """From steps of no time to ones of which one on all rows takes longer than the limit."""
    machine = Machine(rate)
    ticking = types.SimpleNamespace(monotonic=machine.clock, perf_counter=machine.clock)
    for module in (_clock, _facts, _plan):
        monkeypatch.setattr(module, "time", ticking)
    monkeypatch.setattr(_certify, "_goal", lambda *_: Goal(machine))
    points = np.random.default_rng(0).standard_normal((ROWS, 2))
    table, phi = (
        from_array(points),
        features.paired_fourier(jax.random.key(0), Gaussian(1.0), 2, num_frequencies=4),
    )
    take, eigen = type(table).take, _facts.scipy.linalg.eigvalsh

    def taking(self, indices, dtype, **more):
        machine.pays(len(indices))
        return take(self, indices, dtype, **more)

    def eigvalsh(K):
        machine.pays(len(K) ** 3 / ROWS, "eigen", len(K))
        return eigen(K)

    def draw(self, family, size, key, shared=False):
        count = family.num_points(size)
        machine.pays(count**3 / ROWS + size, family.name, size)
        return phi

    monkeypatch.setattr(type(table), "take", taking)
    monkeypatch.setattr(
        _facts,
        "scipy",
        types.SimpleNamespace(linalg=types.SimpleNamespace(eigvalsh=eigvalsh)),
    )
    monkeypatch.setattr(_trials.Trials, "draw", draw)
    found = certify(
        jax.random.key(0),
        table,
        delta=0.3,
        confidence=0.9,
        time=minutes,
        lengthscale=1.0,
    )
    assert find_fault(found.document) == ""
    assert machine.now <= 1.5 * 60 * minutes + COMPILING
    certified = {
        entry["map"]
        for entry in found.document["maps"]
        if entry["status"] == "certified"
    }
    assert len(certified) >= least


def test_rows_that_a_step_can_afford_are_told_by_a_few(monkeypatch):
    machine = Machine(1e-6)
    monkeypatch.setattr(_clock, "time", types.SimpleNamespace(monotonic=machine.clock))

    def step(rows):
        machine.pays(rows**2, "step", rows)

    assert _clock.affordable(step, 256, 0.0) == 256 and machine.now == 0
    assert _clock.affordable(step, 10_000, 0.0) == 256 and machine.now == 0
    assert _clock.affordable(step, 10_000, 100.0) == pytest.approx(10_000, abs=2)
    assert machine.now == pytest.approx(
        2 * (256**2 + 1024**2) * 1e-6 + 2 * COMPILING
    )  # which a step does not take
    assert _clock.affordable(step, 10_000, 25.0) == pytest.approx(5_000, abs=2)
    assert _clock.affordable(step, 10_000, 1e-9) == 256


def test_what_was_not_looked_at_in_time_is_infinite_or_in_the_lowest_bin(monkeypatch):
    count = itertools.count()
    for module in (_clock, _facts):
        monkeypatch.setattr(
            module, "time", types.SimpleNamespace(monotonic=lambda: float(next(count)))
        )
    monkeypatch.setattr(_facts, "CELLS", 20)
    X = np.random.default_rng(0).standard_normal((100, 2))
    table = types.SimpleNamespace(rows=100, dim=2, take=lambda rows, dtype: X[rows])
    words = jax.random.key(0), table, Gaussian(1.0), 1.0
    late = _facts.facts(*words, dtype="float64", seconds=5.0)
    assert (
        late.diameter == math.inf
        and not late.has_pairs
        and "there was time" in late.decay["pairs"]
    )
    early = _facts.facts(*words, dtype="float64", seconds=500.0)
    assert math.isfinite(early.diameter) and early.has_pairs
