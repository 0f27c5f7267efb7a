"""The certificate: its JSON against the documented schema, the page made from it, and the table for a terminal."""

import collections
import copy
import functools
import io
import itertools
import json
import math
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.pages import Page, contrast, paths, read_alone

from proofs_check.certify._request import GOALS
from proofs_check.engine.documents import DocumentError
from proofs_check.report import certificate_document as documents
from proofs_check.report import certificate_plots as plots
from proofs_check.report import certificate_terminal, console, draw
from proofs_check.report import certificate_words as words
from proofs_check.report.certificate import render

DOCS = Path(__file__).resolve().parents[2] / "docs"
page_of = functools.cache(lambda name: render(variant(name)))
UNITS = {
    "paired_fourier": ("num_frequencies", 2),
    "orthogonal_fourier": ("num_frequencies", 2),
    "fastfood": ("num_frequencies", 2),
    "shifted_fourier": ("num_features", 1),
    "nystrom": ("num_landmarks", 1),
    "kernel_pca": ("num_components", 1),
    "kernel_jl": ("num_features", 1),
    "random_feature_pca": ("num_components", 1),
    "streaming_pca": ("num_components", 1),
}


def point(size, factor, error, *, certifying=False, failures=0):
    """Return a point of a curve whose error falls as error / sqrt(size)."""
    median = error / math.sqrt(size)
    return {
        "size": size,
        "num_features": factor * size,
        "draws": 140 if certifying else 20,
        "failures": failures,
        "low": 0.8 * median,
        "median": median,
        "high": 1.35 * median,
        "seconds_per_million": 0.4 + 0.003 * factor * size,
        "certifying": certifying,
    }


def entry(name, error, *, status="certified", sizes=(64, 128, 256, 512, 1024)):
    """Return what was found of a map, certified at the last of the sizes that were tried."""
    unit, factor = UNITS[name]
    certified = status == "certified"
    curve = [
        point(size, factor, error, failures=20 if size < 300 else 3) for size in sizes
    ]
    last = point(1024, factor, error)
    if certified:
        last = point(sizes[-1], factor, 0.97 * error, certifying=True, failures=1)
        curve.append(last)
    of_the_certified = {
        "sizes": {unit: last["size"]},
        "num_features": last["num_features"],
        "basis": "draws",
        "scope": "all rows",
        "rate_upper": 0.0482,
        "error": {"median": 0.07, "low": 0.066, "high": 0.074, "largest": 0.104},
        "seconds_per_million": last["seconds_per_million"],
        "map_bytes": 16_384,
        "feature_bytes_per_million": 4_000_000 * last["num_features"],
    }
    found = {
        "map": name,
        "status": status,
        "recommended": name == "orthogonal_fourier",
        "words": "Even the largest size that was tried failed.",
        "points_per_draw": 1372,
        "draws": 0,
        "failures": 0,
        "alpha": 0.00011,
        "curve": curve,
    }
    if certified:
        found |= {"words": "Certified by fresh draws.", "draws": 140, "failures": 1}
        return found | of_the_certified
    return found | dict.fromkeys(of_the_certified)


def demand(name, size, source, *, worst_case=True):
    unit, factor = UNITS[name]
    return {
        "map": name,
        "sizes": None if size is None else {unit: size},
        "num_features": None if size is None else factor * size,
        "source": source,
        "words": "The bound asks for more rows than there are."
        if size is None
        else "It holds for every pair of rows.",
        "worst_case": worst_case,
    }


def bins():
    edges = itertools.pairwise(0.02 * 1.5**i for i in range(11))
    return [
        {
            "low": low,
            "high": high,
            "pairs": 40 * 3**i,
            "q50": 0.02 + 0.01 / (i + 1),
            "q95": 0.06,
            "q100": 0.09 - i / 250,
        }
        for i, (low, high) in enumerate(edges)
    ]


def certificate():
    """Return a certificate of the goal distance with every part there is."""
    maps = [
        entry("paired_fourier", 2.3, sizes=(64, 128, 256, 512, 700, 1024)),
        entry("shifted_fourier", 4.5, sizes=(128, 256, 512, 1024, 2048, 4096)),
        entry("orthogonal_fourier", 1.9),
        entry("fastfood", 2.6),
        entry("nystrom", 6.0, status="not certified", sizes=(16, 64, 256, 1024)),
        entry("kernel_pca", 5.0, status="out of time", sizes=(16, 64)),
        entry("kernel_jl", 9.0, status="not certified"),
        entry("random_feature_pca", 3.7, status="not certified"),
        entry("streaming_pca", 1.0, status="not for this goal", sizes=()),
    ]
    return {
        "certificate": 3,
        "made_by": "0.1.0",
        "goal": "distance",
        "goal_words": "the largest relative error of the kernel distance over all pairs of points",
        "map": "orthogonal_fourier",
        "sizes": {"num_frequencies": 1024},
        "num_features": 2048,
        "kernel": "Gaussian",
        "lengthscale": 1.2734,
        "lengthscale_from": "the median distance of 100,000 sampled pairs",
        "eps": 0.1,
        "delta": 0.05,
        "confidence": 0.999,
        "seed": 0,
        "dtype": "float32",
        "basis": "draws",
        "scope": "all rows",
        "points_per_draw": 1372,
        "guarantee": "The largest relative error over all pairs is at most 0.1, with probability at least 0.95 over "
        "the draw of the map, for all rows of this table (confidence 0.999, by fresh draws).",
        "reasons": [
            "orthogonal_fourier maps a million points in 6.54 s here, with 2,048 features.",
            "paired_fourier takes 1.3 times as long.",
        ],
        "data": {
            "source": "banknote.npz",
            "rows": 1372,
            "columns": ["variance", "skewness", "curtosis", "entropy"],
            "num_columns": 4,
            "left_out": {"serial": "it has the same value in all rows"},
            "standardized": True,
            "duplicate_rows": 24,
            "zero_pairs": 25,
            "notes": ["3 rows without a value were left out"],
        },
        "theory": [
            demand("paired_fourier", 1500, "chen2016, Theorem 1, corrected", worst_case=False),
            demand("paired_fourier", 61_000, "chen2016, Theorem 3"),
            demand("orthogonal_fourier", 61_000, "the union bound over all pairs"),
            demand("fastfood", 912_345, "a bound without independence"),
            demand("kernel_jl", 700, "kpotufe2020, Corollary 1"),
            demand("nystrom", None, "kpotufe2020, Theorem 1"),
        ],
        "maps": maps,
        "search": {"finished": False, "done": 7, "steps": 9, "words": "7 of 9 steps.", "minutes_more": 12.5},
        "candidate": None,
        "comparison": [
            {"name": name, "num_features": number, "error": 0.0, "seconds_per_million": 7.0, "words": "Exact."}
            for name, number in (("exact kernel", 1372), ("no kernel", 4))
        ],
        "held_out": {
            "train": 1029, "test": 343, "words": "Ridge regression.",
            "rows": [
                {"name": "no kernel", "accuracy": 0.98}, {"name": "exact kernel", "accuracy": 1.0},
                {"name": "the recommended map", "accuracy": None},
            ],
        },
        "spectrum": {
            "points": 1372,
            "above_eps": 2,
            "eigenvalues": [0.5 * i**-1.8 for i in range(1, 201)],
            "effective_dimension": {"trace / op_norm": 2.0, "trace3 / op_norm^3": 1.4, "sum l / (l + 0.01)": 9.7},
            "decay": {
                "words": "eigenvalues 1 to 200 fall about like i^-1.8 (R^2 1.000); exp(-0.03 i) fits less well.",
                "pairs": "all pairs of rows were counted.",
                "power": 1.8,
                "power_r2": 1.0,
                "exponential": 0.03,
                "exponential_r2": 0.7,
                "indices": 200,
            },
        },
        "hypotheses": [
            {"statement": "kpotufe2020, Theorem 1", "asks": "n at least 120", "holds": True, "found": "1,372 rows",
             "needed": 120},
            {"statement": "amini2021, Theorem 2", "asks": "a gap", "holds": False, "found": "0.01", "needed": 90_000},
            {"statement": "chen2016, Lemma 5", "asks": "a ball", "holds": None, "found": "nothing", "needed": None},
        ],
        "pairs": {
            "points": 1372, "pairs": 940_506, "zero_pairs": 25, "unresolved": 3, "largest": 0.09, "bins": bins()
        },
        "classes": [
            {"first": "genuine", "second": "forged", "exact": 0.412, "kept": 0.966},
            {"first": "genuine", "second": "odd", "exact": None, "kept": None},
        ],
        "commands": {
            "again": "proofs-check certify banknote.npz --eps 0.1",
            "python": "import jax\nfrom jaxkern import features, kernels\n"
            "phi = features.orthogonal_fourier(jax.random.key(0), kernels.Gaussian(1.2734), 4, num_frequencies=1024)",
            "load": 'phi = jaxkern.io.load("map.npz")',
        },
        "run": {
            "seconds": 312.4,
            "minutes_allowed": 10,
            "device": "cpu",
            "started": "2026-02-03T04:05:06Z",
            "versions": {"jax": "0.10.2", "numpy": "2.4.6"},
        },
    }  # fmt: skip


def prediction():
    row = {
        "name": "exact method",
        "sizes": None,
        "num_features": 40,
        "loss": 0.1,
        "excess": 0.0,
        "low": -0.1,
    }
    row |= {"high": 0.2, "bound": 1e-9}
    told = {
        "target": "y",
        "loss": "Loss.",
        "numeric": True,
        "train": 40,
        "test": 60,
        "regularization": 0.1,
    }
    return told | {
        "level": 0.01,
        "exact_bound": 1e-9,
        "rows": [row],
        "words": ["The linear model will do."],
    }


def variant(name):
    """Return the certificate of every sort that there may be."""
    found = certificate()
    if name in GOALS:
        found["goal"] = name
        if name != "distance":
            found["pairs"] = {}
        if name != "separation":
            found.pop("classes")
    elif name == "prediction":
        found |= {
            "goal": name,
            "basis": "held-out rows",
            "scope": "rows never seen",
            "prediction": prediction(),
        }
        best = next(part for part in found["maps"] if part["recommended"])
        best |= {"basis": found["basis"], "scope": found["scope"]}
    elif name == "none":
        for part in found["maps"]:
            part |= entry(part["map"], 1.0, status="not certified", sizes=()) | {
                "words": part["words"],
                "curve": part["curve"],
                "recommended": False,
            }
        found |= {
            "map": None,
            "sizes": {},
            "num_features": None,
            "basis": None,
            "scope": None,
            "guarantee": "",
        }
        found |= {
            "pairs": {},
            "points_per_draw": None,
            "seed": None,
            "reasons": ["nystrom: " + found["maps"][4]["words"], "More columns."],
        }
        found["candidate"] = {
            "map": "nystrom",
            "sizes": {"num_landmarks": 9},
            "num_features": 9,
            "draws": 20,
        }
        found["candidate"] |= {
            "failures": 3,
            "rate_upper": 0.4,
            "words": "Three of twenty draws failed.",
        }
        found["held_out"] = {}
        found["commands"] = {"again": "again", "python": None, "load": None}
    elif name == "one":
        found["maps"], found["theory"] = [found["maps"][2]], []
    elif name == "empty curves":
        for part in found["maps"]:
            part["curve"] = []
    elif name == "no maps":
        found = variant("none") | {
            "maps": [],
            "theory": [],
            "hypotheses": [],
            "reasons": [],
        }
        found["spectrum"] |= {"eigenvalues": [], "effective_dimension": {}, "decay": {}}
        found["data"] |= {"columns": [], "left_out": {}, "notes": []}
    elif name == "untimed":
        for part in found["maps"]:
            for p in part["curve"]:
                p["seconds_per_million"] = None
        found["spectrum"] |= {
            "eigenvalues": [0.5 * 0.9**i for i in range(200)],
            "decay": {"exponential_r2": 1.0, "power_r2": 0.8},
        }
    elif name == "samples":
        found |= {"scope": "samples", "points_per_draw": 2000}
        for part in found["maps"]:
            part["scope"] = part["scope"] and "samples"
    elif name == "extreme":
        for part in found["maps"]:
            for i, p in enumerate(part["curve"]):
                p |= {
                    "low": 0,
                    "median": (0.0, 1e299, 1e-299)[i % 3],
                    "high": None,
                    "num_features": 10 ** (30 * i + 1),
                }
        found["pairs"]["bins"][0] |= {
            "low": 0.0,
            "high": 0.0,
            "q50": 0,
            "q95": None,
            "q100": 1e299,
        }
        found["spectrum"]["eigenvalues"] = [1e299, 1.0, 0.0, -1e-9]
        found["theory"][0]["num_features"] = 10**299
        found["eps"] = 5e-324
    return found


VARIANTS = (
    *GOALS,
    "prediction",
    "none",
    "one",
    "empty curves",
    "no maps",
    "samples",
    "untimed",
    "extreme",
)
SHAPES = {
    "The document": documents.CERTIFICATE,
    "The data": documents.DATA,
    "A demand": documents.DEMAND,
    "A map": documents.MAP,
    "The error of a map": documents.ERROR,
    "A point of a curve": documents.POINT,
    "The key `search`": documents.SEARCH,
    "The key `candidate`": documents.CANDIDATE,
    "A comparison": documents.COMPARISON,
    "The key `held_out`": documents.HELD_OUT,
    "An accuracy": documents.ACCURACY,
    "The spectrum": documents.SPECTRUM,
    "A hypothesis": documents.HYPOTHESIS,
    "The key `pairs`": documents.PAIRS,
    "A bin of pairs": documents.BIN,
    "A pair of classes": documents.CLASSES,
    "The key `prediction`": documents.PREDICTION,
    "A method": documents.METHOD,
    "The key `clustering`": documents.CLUSTERING,
    "An agreement": documents.AGREEMENT,
    "The key `commands`": documents.COMMANDS,
    "The key `run`": documents.RUN,
}
FREE = ("sizes", "left_out", "effective_dimension", "decay", "versions")


@pytest.fixture
def found():
    return certificate()


def at(document, path):
    for step in path:
        document = document[step]
    return document


def test_every_key_of_the_document_is_needed_and_typed(found):
    for path in list(paths(found, FREE)):
        changed, last = copy.deepcopy(found), path[-1]
        inner = at(changed, path[:-1])
        kept = inner.pop(last)
        if path != ("classes",):
            assert f"{last} is missing" in documents.find_fault(changed), path
        for odd in (
            math.nan,
            math.inf,
            10**301,
            -1e301,
            {"an": []},
            [[]],
            "" if not isinstance(kept, str) else 1,
        ):
            inner[last] = odd
            assert last in documents.find_fault(changed), (path, odd)
    assert documents.find_fault(found) == ""


@pytest.mark.parametrize("name", VARIANTS)
def test_certificates_of_every_sort_are_written_read_and_drawn(name, tmp_path):
    found = variant(name)
    path = tmp_path / "certificate.json"
    documents.write(path, found)
    assert documents.read(path) == found and list(tmp_path.iterdir()) == [path]
    certificate_terminal.show(found, file=io.StringIO())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("certificate",), True),
        (("eps",), 0),
        (("delta",), 1),
        (("confidence",), 0.0),
        (("seed",), -1),
        (("lengthscale",), 0.0),
        (("map",), "nystrom"),
        (("maps", 2, "sizes"), {"num_frequencies": 512}),
        (("maps", 2, "recommended"), False),
        (("maps", 0, "recommended"), True),
        (("search", "done"), 10),
        (("candidate",), {}),
        (("comparison", 0, "name"), "a kernel"),
        (("held_out", "rows", 0, "accuracy"), 2),
        (("maps", 0, "failures"), 141),
        (("maps", 2, "curve", 0, "failures"), 21),
        (("maps", 0, "draws"), True),
        (("maps", 0, "draws"), 20.0),
        (("maps", 0, "rate_upper"), 1.5),
        (("maps", 0, "status"), "proved"),
        (("maps", 0, "basis"), "hope"),
        (("sizes", "num_frequencies"), 0.5),
        (("data", "left_out", "serial"), None),
        (("pairs", "bins", 0, "low"), -0.1),
        (("run", "versions", "jax"), 0.1),
        (("spectrum", "decay", "words"), 0.1),
        (("spectrum", "decay", "power"), "steep"),
        (("spectrum", "eigenvalues", 7), math.nan),
        (("classes", 1, "first"), None),
    ],
)
def test_values_that_cannot_be_are_found(found, path, value, tmp_path):
    at(found, path[:-1])[path[-1]] = value
    fault = documents.find_fault(found)
    assert fault and "\n" not in fault and len(fault) < 200
    with pytest.raises(ValueError, match="not a certificate of schema version 3"):
        documents.write(tmp_path / "certificate.json", found)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"certificate": 1, "ma', "is not JSON"),
        ('{"schema": 3}', "no schema version"),
        ('{"certificate": 1}', "schema version '1', and this program reads version 3"),
        ('{"certificate": true}', "this program reads version 3"),
        (
            '{"certificate": 3}',
            "not a certificate of schema version 3: certificate.made_by is missing",
        ),
        ("deep", "certificate.map is "),
        ("overflow", "certificate.eps is 'inf'"),
    ],
)
def test_what_is_no_certificate_is_one_line(found, tmp_path, content, message):
    path = tmp_path / "certificate.json"
    if content in ("deep", "overflow"):
        odd = {"deep": "[" * 400 + "]" * 400, "overflow": "1e999"}[content]
        found["map" if content == "deep" else "eps"] = "HERE"
        content = json.dumps(found).replace('"HERE"', odd)
    path.write_text(content)
    with pytest.raises(DocumentError) as error:
        documents.read(path)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_document_that_is_nested_too_deeply_is_said(found):
    deep = []
    for _ in range(10_000):
        deep = [deep]
    found["map"] = deep
    assert documents.find_fault(found) == "certificate is nested too deeply"


def test_the_schema_page_names_every_key_and_no_other():
    text = (DOCS / "certificate_schema.md").read_text(encoding="utf-8")
    assert f"version **{documents.SCHEMA}**" in text
    sections = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n)*)", text, re.MULTILINE))
    assert set(SHAPES) == set(sections) - {"Version", "Conventions"}
    for name, shape in SHAPES.items():
        assert sorted(
            re.findall(r"^\| `(\w+)` \|", sections[name], re.MULTILINE)
        ) == sorted(shape)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_page_is_self_contained_and_can_be_read_without_eyes_or_mouse(name):
    page = read_alone(page_of(name))
    plots = [attrs for attrs in page.all("svg") if attrs.get("aria-hidden") != "true"]
    assert all(plot["role"] == "img" for plot in plots) and len(
        page.all("desc")
    ) == len(plots)
    assert len(page.all("details")) >= len(plots)  # every plot has its numbers below


def test_the_page_says_what_a_reader_asks_in_this_order(found):
    shown = " ".join(Page(render(found)).texts)
    told = (
        "A feature map for banknote.npz",
        "Use orthogonal_fourier with 2,048 features: it keeps the kernel distance between every two rows to within",
        "Of 140 fresh draws, each checked on all 1,372 rows, 1 did worse: so at most 5\xa0% of all draws do",
        "confidence 99.9\xa0%", "7 of 9 steps.", 'jaxkern.io.load("map.npz")', "Z = phi(X)", "num_frequencies = 1,024",
        "phi = features.orthogonal_fourier(", "numbers a row", "accuracy on held-out rows", "0.07", "exact kernel",
        "100 %", "no kernel", "98 %", "Ridge regression.",
        "orthogonal_fourier (recommended)", "0.0164", "with 2,048 features.", "not certified",
        "nystrom, kernel_jl, random_feature_pca", "out of time", "not for this goal", "0.0482", "0.00011",
        "0.066 to 0.074", "Dashed: eps, the error that is allowed.", "genuine", "0.966", "940,506 pair(s)",
        "equal rows, which are left out: 25.", "tell their error: 3.", "1,372 rows and 4 columns", "24 duplicate",
        "3 rows without a value", "serial", "curtosis", "with probability at least 0.95",
        "distance: the largest relative error", "an error of at most 0.1", "chen2016, Theorem 1, corrected",
        "No statement gives a size", "The bound asks for more rows", "All pairs of rows were counted.",
        "kpotufe2020, Theorem 1", "1,372 rows", "90,000", "cannot tell", "2 of its eigenvalues are above eps = 0.1.",
        "fall about like i^-1.8", "trace / op_norm = 2", "proofs-check certify banknote.npz",
        "lengthscale 1.2734 (the median distance", "312 s, of 10 min allowed", "2026-02-03 04:05:06 UTC",
        "jax 0.10.2",
    )  # fmt: skip
    position = 0
    for text in told:
        assert text in shown[position:], text
        position = shown.index(text, position)


def test_what_only_theory_needs_is_folded(found):
    text = render(found)
    opened = " ".join(re.findall(r'<section id="part-(\w+)"', text))
    assert opened == "use compared maps tradeoff classes pairs data"
    folded = re.findall(
        r'<details class="part"><summary><h2>[^<]+</h2></summary><div id="part-(\w+)"',
        text,
    )
    assert folded == ["guarantee", "theory", "hypotheses", "spectrum", "about"]


def test_a_page_without_a_map_says_so():
    shown = " ".join(Page(render(variant("none"))).texts)
    assert (
        "No map could be certified." in shown
        and "Best so far: nystrom with 9 features." in shown
    )
    assert (
        shown.count("Even the largest size that was tried failed.") == 1
    )  # of all maps together
    assert (
        "recommended" not in shown
        and "How to use it" not in shown
        and "the key was not made of one" in shown
    )


def test_a_map_that_was_not_saved_one_without_chance_and_one_that_is_a_theorems(found):
    found["commands"]["load"] = None
    found["maps"][2] |= {"map": "nystrom", "sizes": {"num_landmarks": 9}}
    fixed = words.sentences({**found, "data": {"rows": 9}})[0]
    found |= {"basis": "worst case", "scope": "samples"}
    found["maps"][2] |= {
        "basis": "worst case",
        "scope": "samples",
        "points_per_draw": 2000,
    }
    shown = " ".join(Page(render(found)).texts)
    assert "This map was not saved." in shown and "Z = phi(X)" not in shown
    assert "so that nothing in it is random; it was checked on all 9 rows." in fixed
    assert (
        "By a theorem for all data, at most 5\xa0% of its draws do worse, on samples of 2,000 rows (less"
        in shown
    )


def test_theory_of_maps_that_were_not_tried_is_left_out(found):
    found["maps"] = found["maps"][2:3]
    shown = " ".join(Page(render(found)).texts)
    assert (
        "the union bound over all pairs" in shown and "chen2016, Theorem 3" not in shown
    )
    assert "The bound asks for more rows" not in shown


def test_a_guarantee_for_samples_is_called_weaker():
    shown = " ".join(Page(render(variant("samples"))).texts)
    assert "samples of the rows, a weaker guarantee (2,000 a draw)" in shown


def test_a_curve_has_a_mark_a_size_and_is_filled_where_it_is_certified(found):
    plot = plots.tradeoff(found)
    kinds = [
        element.get("class", "").split()
        for element in ElementTree.fromstring(plot.drawing).iter()
    ]
    count = collections.Counter(kind[0] for kind in kinds if kind)
    assert count["mark"] == 6 + 6 + 5 + 5 + 4 + 2 + 5 + 5 == len(plot.points)
    assert count["curve"] == count["label"] == 8 and count["range"] == 4
    assert sum("hollow" in kind for kind in kinds) == count["mark"] - 4
    assert (
        len({kind[1] for kind in kinds if kind[:1] == ["curve"]}) == 8
    )  # a colour of its own for every map
    assert (
        "kernel_pca, time ended" in plot.drawing
        and "nystrom, not certified" in plot.drawing
    )
    assert "of 20 to 140 draws" in plot.caption


def test_points_are_where_their_numbers_are(found):
    found["maps"] = [entry("orthogonal_fourier", 1.0, sizes=(100, 400))]
    found["maps"][0]["curve"] = found["maps"][0]["curve"][:2]
    plot = plots.tradeoff(found)
    circles = re.findall(
        r'class="mark s0[^"]*" cx="([\d.]+)" cy="([\d.]+)"', plot.drawing
    )
    (first, second) = [(float(x), float(y)) for x, y in circles]
    (eps,) = re.findall(r'class="limit"[^>]*y1="([\d.]+)"', plot.drawing)
    assert first[0] < second[0] and first[1] == pytest.approx(
        float(eps), abs=0.11
    )  # its error is 0.1
    assert first[1] < second[1]  # a smaller error is lower


def test_a_number_of_features_has_one_point_the_certified_one_or_the_largest(found):
    first = found["maps"][0]
    points = plots.curve_of([first])
    assert [p["size"] for p in points] == [64, 128, 256, 512, 700, 1024] and points[-1][
        "certifying"
    ]
    assert [p["certified"] for p in points] == [False] * 5 + [True]
    first["curve"] = [{**p, "num_features": 40} for p in first["curve"][:3]]
    assert [p["size"] for p in plots.curve_of([first])] == [256]


def test_the_spectrum_has_a_point_an_eigenvalue_and_its_axis_follows_the_decay(found):
    drawn = plots.spectrum(found).drawing
    assert drawn.count('class="dot"') == 200 and drawn.count('class="guide"') == 3
    assert ">eps</text>" in drawn and ">= 0.1</text>" in drawn
    assert (
        "on a log axis too" in drawn
        and "on a log axis too" not in plots.spectrum(variant("untimed")).drawing
    )
    found["spectrum"]["eigenvalues"][-1] = -1e-9
    assert plots.spectrum(found).drawing.count('class="dot"') == 199


def test_pairs_have_three_curves_and_their_number_in_tips(found):
    drawn = plots.pair_errors(found).drawing
    assert drawn.count(" pairs</title>") == 30 and drawn.count('class="mark s') == 30
    found["pairs"]["bins"] = [
        {**e, "low": i / 10, "high": (i + 1) / 10}
        for i, e in enumerate(found["pairs"]["bins"])
    ]
    found["pairs"]["bins"][4] |= {"pairs": 0, "q50": None, "q95": None, "q100": None}
    drawn = plots.pair_errors(found).drawing
    assert drawn.count(" pairs</title>") == 27 and ">0.2<" in drawn


@pytest.mark.parametrize("name", VARIANTS)
def test_nothing_is_drawn_outside(name):
    for svg in re.findall(r'<svg class="plot.*?</svg>', page_of(name)):
        width, height = map(
            float, re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups()
        )
        across = re.findall(r' (?:x|x1|x2|cx)="([-\d.a-z]+)"', svg) + re.findall(
            r"translate\((\S+) ", svg
        )
        down = re.findall(r' (?:y|y1|y2|cy)="([-\d.a-z]+)"', svg) + re.findall(
            r"translate\(\S+ ([^)]+)\)", svg
        )
        for points in re.findall(r'points="([^"]*)"', svg):
            across += [point.split(",")[0] for point in points.split()]
            down += [point.split(",")[1] for point in points.split()]
        assert all(0 <= float(x) <= width for x in across) and all(
            0 <= float(y) <= height for y in down
        )
        texts = [
            (float(x), text)
            for x, text in re.findall(r'<text x="([\d.]+)"[^>]*middle">([^<]*)<', svg)
        ]
        assert all(
            x + 3.2 * len(text) <= width for x, text in texts
        )  # 6.4 units a figure, at 11 units a letter


def test_curves_have_contrast_in_both_schemes():
    text = render(certificate())
    schemes = [
        dict(re.findall(r"--(page|s\d): (#\w{6});", part))
        for part in split_by_scheme(text)
    ]
    for colours in schemes:
        assert len(colours) == 1 + draw.COLOURS
        for name in set(colours) - {"page"}:
            assert contrast(colours[name], colours["page"]) >= 4.5, name


def split_by_scheme(text):
    """Return the colours of the light and of the dark scheme, of both style sheets."""
    dark = re.findall(
        r"@media \(prefers-color-scheme: dark\) \{\n  :root \{.*?\n  \}\n\}",
        text,
        re.DOTALL,
    )
    assert len(dark) == 2
    light = text
    for part in dark:
        light = light.replace(part, "")
    return light, "".join(dark)


def terminal(document, *, rich, files=()):
    """Return what the terminal shows, with rich or as without it."""
    shown = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        if not rich:
            patch.setitem(sys.modules, "rich.console", None)
        certificate_terminal.show(document, files=files, file=shown)
    return shown.getvalue()


@pytest.mark.parametrize("rich", [True, False])
def test_the_terminal_shows_the_maps_and_what_to_use(found, rich):
    if rich:
        pytest.importorskip("rich")
    shown = terminal(found, rich=rich, files=[Path("out") / "certificate.html"])
    lines = shown.splitlines()
    assert (lines[0] == console.NO_RICH) != rich
    assert all(
        any(entry["map"] in line and entry["status"] in line for line in lines)
        for entry in found["maps"]
    )
    assert "1 of 140" in shown
    closing = lines[
        next(
            i
            for i, line in enumerate(lines)
            if line.startswith("Use orthogonal_fourier with 2,048")
        ) :
    ]
    assert (
        "checked on all 1,372 rows, 1 did worse: so at most 5 % of" in closing[1]
        and closing[2] == "7 of 9 steps."
    )
    assert closing[3] == "Draw it with num_frequencies = 1,024."
    assert (
        closing[4]
        == "- orthogonal_fourier: 2,048 numbers a row, error 0.07, 6.54 s per million rows"
    )
    assert closing[5].startswith(
        "- exact kernel: 1,372 numbers a row, error 0, 100 % right on rows held out"
    )
    assert closing[6].startswith("- no kernel")
    written = [
        f"Written: {Path('out/certificate.html')}",
        'Load the map: phi = jaxkern.io.load("map.npz")',
    ]
    assert closing[7:] == [
        f"- {found['reasons'][0]}",
        "Columns used: 'variance', 'skewness', 'curtosis', 'entropy'.",
        "Note: 3 rows without a value were left out",
        *written,
    ]


@pytest.mark.parametrize("rich", [True, False])
def test_the_terminal_says_that_there_is_no_map(rich):
    if rich:
        pytest.importorskip("rich")
    none = variant("none")
    lines = terminal(none, rich=rich).splitlines()
    closing = lines[lines.index("No map could be certified.") :]
    assert (
        closing[1]
        == "Best so far: nystrom with 9 features. Three of twenty draws failed."
    )
    assert closing[2] == "7 of 9 steps."
    assert "- More columns." in closing
    assert (
        len(
            [
                line
                for line in closing
                if line.startswith("- not certified: paired_fourier, shifted_fourier,")
            ]
        )
        == 1
    )
