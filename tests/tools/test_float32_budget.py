"""The float32 budget: errors stay within their limits, and docs/float32.md says what was measured."""

import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import pytest

from tools import float32_budget as budget
from tools.float32_budget import COLUMNS, PAGE, ROWS

PART = {"sizes": ((12, 3),), "ratios": (1e-3, 1.0)}
# Left to the slow run, whose grid holds this part.
LEFT = r"audit|bounds|clustering|features.(fast|ran|shift)|gram.(gram, rough|kern)|ker|kmeans|"
LEFT += r"measures.gau|rkhs.(Cov|norm)"
measured = functools.cache(lambda name: budget.measured(name, **PART))


@pytest.mark.parametrize("name", [name for name in ROWS if not re.match(LEFT, name)])
def test_a_part_of_the_grid_is_within_the_limits(name):
    largest, (share, case) = measured(name)
    assert share <= 1, f"{share} of the limit at {case}"
    assert max(largest.values()) > 0  # float32 and float64 do differ


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_the_grid_is_within_the_limits(name):
    """Two further seeds beside the one of the page."""
    _, (share, case) = budget.measured(name, seeds=(0, 1, 2))
    assert share <= 1, f"{share} of the limit at {case}"


def test_the_page_holds_every_row_with_its_limit():
    lines = [
        re.split(r" (?<!\\)\| ", line.strip("| "))
        for line in budget.table_of(PAGE.read_text(encoding="utf-8"))
    ]
    assert lines[0] == re.split(r" (?<!\\)\| ", budget.HEADER.strip("| "))
    table = {cells[0]: cells for cells in lines[2:]}
    assert list(table) == list(ROWS)
    for name, row in ROWS.items():
        cells = table[name]
        assert (
            cells[1] == row.relative
            and cells[-2] == row.text
            and len(cells) == len(COLUMNS) + 4
        )
        assert 0 < float(cells[-1]) <= 1


@pytest.mark.parametrize(
    "name",
    ["gram.gram, smooth kernels", "gram.gram, `Distance`", "features.paired_fourier"],
)
def test_the_page_is_what_is_measured_again(name):
    """On another platform the last digits may differ, and the order of magnitude may not."""
    line = next(
        line
        for line in budget.table_of(PAGE.read_text(encoding="utf-8"))
        if line.startswith(f"| {name} |")
    )
    written = [
        float(cell)
        for cell in re.split(r" (?<!\\)\| ", line.strip("| "))[2 : 2 + len(COLUMNS)]
    ]
    largest, _ = measured(name)
    for column, error in zip(COLUMNS, written, strict=True):
        assert largest[column] <= 2 * error + 1, column


def test_a_digit_that_is_lost_is_seen():
    """A Gram matrix of points that are not centred, in the place of the right one."""
    row = ROWS["gram.gram, smooth kernels"]

    @jax.jit
    def uncentred(X, Y):
        squares = (
            (X**2).sum(1)[:, None]
            + (Y**2).sum(1)[None, :]
            - 2 * jnp.matmul(X, Y.T, precision="highest")
        )
        return jnp.exp(-jnp.maximum(squares, 0) / 2)

    wrong = dataclasses.replace(
        row, value=lambda g: uncentred(g.X / g.length, g.Y / g.length)
    )
    for family, seen in (("plain", False), ("offset 1e3", True), ("offset 1e6", True)):
        worst = max(
            error / limit
            for error, limit in (
                budget.error_of(wrong, c) for c in budget.cases_of(family, **PART)
            )
        )
        assert (worst > 1) is seen, family
