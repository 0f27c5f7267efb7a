"""Drawings: axes around any finite data, and names that do not hide each other."""

import itertools
import math
import re

import numpy as np
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


def test_labels_are_clear_of_marks_lines_and_each_other():
    rng = np.random.default_rng(0)
    names = (
        "paired_fourier",
        "orthogonal_fourier",
        "nystrom, not certified",
        "kernel_pca",
        "fastfood",
        "kernel_jl",
    )
    series = [
        Series(
            i,
            [
                (x, 3.0 / 2.0 ** (x / 20) * rng.uniform(0.6, 1.7))
                for x in (10.0, 30.0, 50.0, 70.0)
            ],
            label=name,
        )
        for i, name in enumerate(names)
    ]
    across, upright = Axis.across([1.0, 100.0], log=False), Axis.upright([1e-2, 10.0])
    drawn = chart("id", "", "", ("", across), ("", upright), series, limit=("eps", 0.1))
    labels = re.findall(r'class="label[^"]*" x="([\d.]+)" y="([\d.]+)">([^<]*)<', drawn)
    boxes = {
        name: (float(x), float(y) - 11, float(x) + 6.8 * len(name), float(y) + 3)
        for x, y, name in labels
    }
    assert set(boxes) == set(names)
    for name, (left, top, right, bottom) in boxes.items():
        others = [box for other, box in boxes.items() if other != name]
        assert all(
            right <= a or c <= left or bottom <= b or d <= top for a, b, c, d in others
        ), name
        for one in series:
            places = [(across.at(x), upright.at(y)) for x, y in one.points]
            for (a, b), (c, d) in itertools.pairwise(places):
                line = [
                    (a + (c - a) * t, b + (d - b) * t) for t in np.linspace(0, 1, 200)
                ]
                assert not any(
                    left < x < right and top < y < bottom for x, y in line
                ), (name, one.label)
