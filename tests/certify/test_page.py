"""A certificate on its page, in its pictures and in a terminal."""

import base64
import dataclasses
import re
import sys
from xml.etree import ElementTree

import matplotlib
import pytest
from certify.samples import certificate, map_row
from support.odd_files import is_plain
from support.pages import Page, read_alone

from proofs_check.certify import page, pictures, terminal, words
from proofs_check.certify.certificate import Search

PICTURES = {
    "spectral": ["error.svg"],
    "clustering": ["clusters.svg", "error.svg"],
    "prediction": ["confusion.svg", "error.svg"],
    "numbers": ["error.svg", "prediction.svg"],
}
MARKUP = '<script>alert(1)</script>"><img src=x onerror=alert(1)>{{ 7*7 }} $\\frac{'
UNSEEN = "[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f-\x9f]"
CONTROLS = "\x1b[31m\r\u202etxt.exe\u2066 \udcff \u4e2d"


def page_of(example):
    text = page.render(example, pictures.pictures(example))
    return text, "".join(read_alone(text).texts)


def tags_of(text):
    """Return the tags of a page with the names of their attributes."""
    return {(name, key) for name, keys in Page(text).tags for key in ("", *keys)}


def leaves(value, name=""):
    """Yield the names and values of all that is no list or dictionary."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from leaves(entry, key)
    elif isinstance(value, list):
        for entry in value:
            yield from leaves(entry, name)
    else:
        yield name, value


def poisoned(value, payload):
    """Return a certificate with a payload before every text, and before every key of a dictionary."""
    if dataclasses.is_dataclass(value):
        parts = {name: poisoned(part, payload) for name, part in vars(value).items()}
        return dataclasses.replace(value, **parts)
    if isinstance(value, dict):
        return {payload + key: poisoned(entry, payload) for key, entry in value.items()}
    if isinstance(value, list):
        return [poisoned(entry, payload) for entry in value]
    return payload + value if isinstance(value, str) else value


@pytest.mark.parametrize("sort", PICTURES)
def test_the_page_shows_every_text_and_number_of_the_certificate(sort):
    example = certificate(sort)
    text = page_of(example)[1]
    # Pictures show these.
    apart = {"started", "picture", "x", "y", "cluster", "classes", "confusion"}
    for name, value in leaves(example.document):
        if isinstance(value, str) and name not in apart:
            assert words.BASES.get(value, value) in text, name
        elif isinstance(value, int | float) and not isinstance(value, bool):
            digits = 6 if name in ("lengthscale", "cost") else 3
            number = words.number(int(value) if name == "cost" else value, digits)
            assert name in apart or number in text, name
    assert "2026-02-03 04:05:06 UTC" in text


@pytest.mark.parametrize("goal", words.KEEPS)
def test_page_and_terminal_have_the_order_of_a_reader(goal, capsys):
    example = certificate(goal, search=Search(False, "The deadline came."))
    terminal.show(example)
    _, _, seen = page_of(example)[1].partition("A feature map for")
    eps = "0.03" if goal == "prediction" else "3 %"
    order = [
        *("The deadline came. Run the same command again", "Asked: a map that "),
        *(words.KEEPS[goal].format(eps), "confidence 99.9 %", "Use nystrom with 32 "),
        *(example.guarantee, "1,372 rows of banknote.csv", example.data.columns[0]),
        *("features", "certified", example.commands.again, example.commands.load),
    ]
    for text in (seen, capsys.readouterr().out):
        place = 0
        for part in order:
            place = text.index(part, place)


def test_the_page_has_one_fold_and_a_headline_in_the_colour_of_its_news():
    good, _ = page_of(certificate())
    assert good.count("<details") == 1
    assert '<p class="result good">Use nystrom with 32 features.</p>' in good
    assert good.index("</table>") < good.index("<img") < good.index("<details")
    none = certificate(map=None, maps=[], guarantee="", reasons=["Too few rows."])
    text, example = page_of(none)
    assert '<p class="result bad">No map is certified.</p>\n<p>Too few' in text
    # A theorem about a map that was not tried is no news.
    assert "What theorems demand" not in example
    assert "<img" not in text and "This map was not saved" not in example
    assert "confidence 99.9999 %" in words.question(certificate(confidence=0.999999))


def test_tables_have_errors_of_draws_losses_of_classes_and_r_squared_of_numbers():
    columns, rows = words.table(certificate())
    assert columns == ["map", "status", "features", "cost", "error", "failed draws"]
    best = ["nystrom (recommended)", "certified", "32", "6,144"]
    late = ["paired_fourier", "out of time", "–", "–", "–", "–"]
    row = map_row()
    failures = f"{row.failures} of {row.draws}"
    assert rows == [[*best, f"{row.error.median:.3g}", failures], late]
    columns, rows = words.table(certificate("prediction"))
    assert columns[4:] == ["errors", "excess"]
    assert rows[0] == ["largest class", "–", "32", "–", "90 %", "51.8 % to 55 %"]
    assert rows[3:] == [[*best, "37.8 %", "-0.4 % to 2.8 %"], late]
    columns, rows = words.table(certificate("numbers"))
    assert columns[4] == "R^2"
    assert [row[4] for row in rows] == ["0", "0.592", "0.444", "0.58", "–"]


@pytest.mark.parametrize("sort", PICTURES)
def test_pictures_are_svg_in_the_page_and_beside_it_the_same_every_time(sort, tmp_path):
    before = dict(matplotlib.rcParams)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        page.write(tmp_path / name, certificate(sort))
    assert dict(matplotlib.rcParams) == before
    files = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    assert sorted(files) == sorted([*PICTURES[sort], "certificate.html"])
    for name, content in files.items():
        assert content == (tmp_path / "b" / name).read_bytes()
    text = files.pop("certificate.html").decode()
    inside = [base64.b64decode(x) for x in re.findall(r"base64,([^\"]*)", text)]
    assert sorted(inside) == sorted(files.values())
    for content in inside:
        assert ElementTree.fromstring(content).tag.endswith("svg")
        assert b"<image" not in content


def test_limits_of_the_draws_that_certify_are_drawn_and_only_they_are_filled():
    example = certificate()
    row = example.maps[1]
    points = pictures._points(example, row)
    assert [point[0] for point in points] == [8, 16, 32]
    assert points[2] == (32, 0.02, 0.025, 0.03)
    (picture,) = pictures.pictures(example)
    assert picture.svg.count("fill: #1f77b4") == 1
    example = certificate("prediction")
    (point,) = pictures._points(example, example.maps[1])
    assert point == pytest.approx((32, -0.004, 0.011, 0.028))
    infinite = dataclasses.replace(row.curve[0], low=None, median=None, high=None)
    assert pictures.pictures(certificate(maps=[map_row(curve=[infinite])])) == []


@pytest.mark.parametrize("payload", [MARKUP, CONTROLS])
def test_names_are_text_whatever_they_are(payload, monkeypatch, capsys):
    for sort in PICTURES:
        example = certificate(sort)
        evil = poisoned(example, payload)
        drawn = pictures.pictures(evil)
        text = page.render(evil, drawn)
        assert tags_of(text) <= tags_of(page_of(example)[0])
        assert not re.search(UNSEEN, text)
        for picture in drawn:
            tags = {node.tag for node in ElementTree.fromstring(picture.svg).iter()}
            assert not any("script" in tag for tag in tags)
        for module in ("with rich", "rich.console"):
            monkeypatch.setitem(sys.modules, module, None)
            terminal.show(evil)
            assert all(map(is_plain, capsys.readouterr().out.splitlines()))


@pytest.mark.parametrize("number", [0.0, 5e-324, 1e100])
def test_pictures_are_drawn_of_any_numbers(number):
    errors = {"low": number, "median": number, "high": number}
    curve = [dataclasses.replace(point, **errors) for point in map_row().curve]
    part = certificate("numbers").prediction
    part = dataclasses.replace(part, picture=[[number, number], [0.0, -number]])
    drawn = pictures.pictures(certificate("numbers", prediction=part))
    drawn += pictures.pictures(certificate(maps=[map_row(curve=curve)]))
    for picture in drawn:
        ElementTree.fromstring(picture.svg)
