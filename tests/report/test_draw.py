"""Drawings: axes around any finite data, and names that do not hide each other."""

import itertools
import math
import re

import pytest

from proofs_check.report.draw import Axis, Series, chart


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0.0, 1.4),
        (0.0, 0.0),
        (5.0, 5.0),
        (0.0, 5e-324),
        (-3.0, 7.0),
        (1e299, 1e299),
        (0.3, 0.30001),
    ],
)
def test_even_ticks_are_few_and_around_the_data(low, high):
    axis = Axis.around([low, high], 10.0, 100.0, log=False)
    assert axis.ticks[0] <= low and axis.ticks[-1] >= high and 2 <= len(axis.ticks) <= 9
    assert (
        list(axis.ticks) == sorted(set(axis.ticks))
        and axis.place(axis.ticks[-1]) == 100.0
    )
    assert axis.holds(low) and axis.at(-math.inf) == 10.0 and axis.at(math.inf) == 100.0


def test_a_log_axis_puts_what_has_no_logarithm_at_its_edge():
    axis = Axis.around([1e-3, 1e308], 0.0, 1.0, log=True)
    assert (
        axis.at(0.0) == axis.at(-1.0) == 0.0
        and axis.at(math.inf) == 1.0
        and not axis.holds(0.0)
    )
    assert all(re.fullmatch(r"\de-?\d+|[\d.]+", label) for _, label in axis.labels())


def test_names_of_near_lines_are_in_rows_of_their_own():
    across, upright = Axis.across([0.0, 100.0], log=False), Axis.upright([1.0, 10.0])
    guides = [("b", 12.0), ("a", 11.0), ("c", 11.5), ("d", 20.0)]
    drawn = chart(
        "id",
        "",
        "",
        ("", across),
        ("", upright),
        [Series(0, [(1.0, 1.0)])],
        guides=guides,
    )
    rows = re.findall(r'class="halo" x="[\d.]+" y="([\d.]+)">(\w)<', drawn)
    assert sorted(rows, key=lambda row: row[1]) == [
        ("248.0", "a"),
        ("276.0", "b"),
        ("262.0", "c"),
        ("290.0", "d"),
    ]


def test_labels_are_below_the_chart_and_clear_of_each_other():
    names = [f"a map of the library, not certified {i}" for i in range(7)]
    series = [Series(i, [(10.0, 1.0)], label=name) for i, name in enumerate(names)]
    across, upright = Axis.across([1.0, 100.0], log=False), Axis.upright([1e-2, 10.0])
    drawn = chart("id", "", "", ("", across), ("", upright), series, limit=("eps", 0.1))
    width, height = map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', drawn).groups())
    labels = re.findall(r'class="label[^"]*" x="([\d.]+)" y="([\d.]+)">([^<]*)<', drawn)
    assert [name for *_, name in labels] == names
    boxes = [(float(x), float(y), float(x) + 5.5 * len(name)) for x, y, name in labels]
    for left, y, right in boxes:
        assert left > 0 and right < width and upright.start + 40 < y < height
    for (_, y, right), (left, other, _) in itertools.combinations(boxes, 2):
        assert right < left or abs(y - other) >= 14
