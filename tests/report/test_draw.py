"""Drawings: a log axis around any data."""

import math
import re

from proofs_check.report.draw import Axis, log_ticks


def test_a_log_axis_puts_what_has_no_logarithm_at_its_edge():
    axis = Axis(log_ticks(-3.0, math.log10(1e308), at_most=10), 0.0, 1.0)
    assert axis.ticks[0] <= -3.0 and axis.ticks[-1] >= 308
    assert len(axis.ticks) <= 12
    assert axis.at(0.0) == axis.at(-1.0) == 0.0
    assert axis.at(math.inf) == 1.0
    assert axis.holds(1.0) and not axis.holds(0.0)
    assert all(re.fullmatch(r"\de-?\d+|[\d.]+", label) for _, label in axis.labels())
