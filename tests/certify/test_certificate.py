"""A certificate as a whole: what it promises, that its parts agree, and that it can be drawn, kept and read again."""

import dataclasses
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from jaxkern import features, io
from jaxkern.kernels import Gaussian
from proofs_check.certify import Certificate, certify, from_array
from proofs_check.certify.maps import NAMES, cost, families, limited
from proofs_check.engine.documents import DocumentError

LOOSE = {"eps": 0.3, "delta": 0.2, "confidence": 0.95}
MAPS = ["nystrom", "paired_fourier"]


def blobs(rows=90):
    labels = np.arange(rows) % 3
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, 2)) + 3 * np.eye(3, 2)[labels]
    return X.astype("float32"), labels


def certificate_of(goal="spectral", rows=90, seed=3, **options):
    X, labels = blobs(rows)
    options = {"maps": MAPS} | LOOSE | options
    return certify(jax.random.key(seed), X, goal=goal, labels=labels, **options)


@pytest.fixture(scope="module")
def spectral():
    with jax.enable_x64(True):
        return certificate_of(standardize=True)


def test_parts_agree_and_no_size_exceeds_what_a_statement_demands(spectral):
    row = spectral.recommended
    assert (spectral.map, spectral.sizes, spectral.scope) == (
        row.map,
        row.sizes,
        "all rows",
    )
    certified = [one for one in spectral.maps if one.basis == "draws"]
    assert row.cost == min(one.cost for one in certified)
    for one in certified:
        demands = [d.num_features for d in spectral.theory if d.map == one.map]
        assert one.num_features <= min(d for d in demands if d)
        assert one.rate_upper <= spectral.delta
        judged = [point for point in one.curve if point.certifying]
        assert (judged[-1].draws, judged[-1].failures) == (one.draws, one.failures)
    assert 0 < sum(one.alpha for one in certified) <= 1 - spectral.confidence
    assert "0.8 over the draw of the map" in spectral.guarantee
    assert "confidence 0.95" in spectral.guarantee


def test_fresh_draws_fail_as_rarely_as_certified(spectral):
    """If draws failed with probability delta = 0.2, more than 34 of 100 would with probability below 3e-4."""
    failures, draws = spectral.fails(jax.random.key(17), draws=100)
    assert draws == 100
    assert failures <= 34


def test_the_map_is_drawn_by_the_lines_of_python_saved_and_read_again(
    spectral, tmp_path
):
    X = blobs()[0]
    space = {"X": X}
    exec(spectral.commands.python, space)
    spectral.save(tmp_path / "map.npz")
    phi = io.load(tmp_path / "map.npz")
    expected = spectral.draw()(X)
    for other in (space["phi"], phi):
        np.testing.assert_allclose(other(X), expected, rtol=1e-6, atol=1e-7)
    spectral.write(tmp_path)
    again = Certificate.read(tmp_path)
    assert again == spectral
    with pytest.raises(ValueError, match="read from a file"):
        again.draw()


def test_the_same_key_gives_the_same_certificate(spectral):
    with jax.enable_x64(True):
        again = certificate_of(standardize=True)
    assert dataclasses.replace(again, run=spectral.run) == spectral


def test_certificates_of_version_3_can_be_read(spectral, tmp_path):
    document = spectral.document | {"certificate": 3, "hypotheses": [], "pairs": {}}
    document["search"] = document["search"] | {"done": 3, "steps": 3}
    for row in document["maps"]:
        row["seconds_per_million"] = row.pop("cost")
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(document))
    assert Certificate.read(path).num_features == spectral.num_features


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"certificate": 5}, "no certificate of version 3 or 4"),
        ({"certificate": True}, "no certificate of version 3 or 4"),
        ({"eps": "0.1"}, "certificate.eps is '0.1'"),
        ({"num_features": True}, "certificate.num_features is True"),
        ({"maps": [{}]}, r"certificate.maps\[0\].map is missing"),
        ({"data": None}, "certificate.data is None"),
    ],
)
def test_files_that_hold_no_certificate_are_refused(spectral, tmp_path, change, words):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(spectral.document | change))
    with pytest.raises(DocumentError, match=words):
        Certificate.read(path)


def test_more_rows_than_a_draw_measures_are_sampled_and_a_theorem_is_about_all():
    result = certificate_of("distance", rows=3200, maps=["paired_fourier"], eps=0.5)
    draws, stated = result.maps
    assert result.recommended is draws
    assert (draws.scope, draws.points_per_draw) == ("samples", 2000)
    # With a share q of bad pairs, 1000 independent ones hold none of them with probability 0.01.
    share = 100 * -math.expm1(math.log(0.01) / 1000) / (1 - 1 / 3200)
    assert f"at most {math.ceil(1000 * share) / 1000:g} % of all pairs" in (
        result.guarantee
    )
    assert (stated.scope, stated.draws) == ("all rows", 0)
    assert stated.basis in ("this data", "worst case")
    assert stated.num_features > draws.num_features


def test_a_deadline_says_what_was_found_by_then():
    result = certificate_of(time=1e-6)
    assert not result.search.finished
    assert result.map is None
    assert {row.status for row in result.maps} == {"out of time"}
    with pytest.raises(ValueError, match="no map was certified"):
        result.draw()


def test_draws_of_finished_maps_are_taken_up_again(tmp_path):
    place = (tmp_path / "draws.json", "request")
    lines = []
    maps = ["paired_fourier", "orthogonal_fourier"]

    def interrupted(line):
        lines.append(line)
        if line.startswith("map 2 of 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        certificate_of(maps=maps, say=interrupted, finished=place)
    first = sum(line.startswith(("look", "map 1 of 2")) for line in lines)
    assert first > 10
    lines.clear()
    result = certificate_of(maps=maps, say=lines.append, finished=place)
    assert not any(line.startswith(("look", "map 1 of 2")) for line in lines)
    plain = certificate_of(
        maps=maps, finished=(tmp_path / "draws.json", "another request")
    )
    assert dataclasses.replace(plain, run=result.run) == result


def test_the_kmeans_of_the_certificate_finds_the_clusters():
    with jax.enable_x64(True):
        result = certificate_of("clustering", maps=["nystrom"])
    X, classes = blobs()
    assert result.clustering.num_restarts == 10
    assert "seeds of k-means" in result.guarantee
    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=0.5 / result.lengthscale**2))
    Z = vectors * np.sqrt(np.maximum(values, 0))
    exact = KMeans(3, n_init=50, random_state=0).fit_predict(Z)
    agreement = {one.name: one.adjusted_rand for one in result.clustering.agreement}
    expected = adjusted_rand_score(classes, exact)
    assert agreement["exact kernel"] == pytest.approx(expected, abs=0.05)
    assert len(result.clustering.picture) == 90
    space = {"X": X}
    exec(result.commands.python, space)
    assert adjusted_rand_score(exact, np.asarray(space["labels"])) > 0.5


def test_a_class_of_one_row_is_left_out_by_name():
    X, labels = blobs()
    names = np.array(["red", "green", "blue"])[labels]
    names[0] = "grey"
    result = certify(
        jax.random.key(0), X, goal="separation", labels=names, maps=["nystrom"], **LOOSE
    )
    assert "Classes with a single point are left out: grey." in result.data.notes


def test_every_map_of_the_library_has_a_family_that_draws_what_it_says(rng):
    aside = {"as_map", "preimage", "standardized"}
    public = {name for name in features.__all__ if name.islower()} - aside
    known = families(40, 3, 0.2)
    assert set(NAMES) == set(known) == public
    X = jnp.asarray(rng.standard_normal((5, 3)), "float32")
    for family in known.values():
        points = rng.standard_normal((max(family.num_points(6), 1), 3))
        points = jnp.asarray(points, "float32")
        arguments = (Gaussian(1.0), points, 3, "float32", family.sizes(6))
        Z = np.asarray(family.draw(jax.random.key(0), *arguments)(X))
        assert Z.shape == (5, family.num_features(6))
        assert cost(family, 6, 3) < cost(family, 12, 3)
        assert limited(family, 7).largest < limited(family, 9).largest <= family.largest
        if family.shared is not None:
            shared = np.asarray(family.shared(jax.random.key(0), *arguments)(X))
            shared = shared[:, shared.any(axis=0)]
            np.testing.assert_allclose(shared @ shared.T, Z @ Z.T, atol=2e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eps": 0}, "eps must be a number in"),
        ({"delta": 1.0}, "delta must be a number in"),
        ({"confidence": True}, "confidence must be a number in"),
        ({"goal": "speed"}, "goal must be among"),
        ({"kernel": "sinc"}, "kernel must be among"),
        ({"maps": ["fourier"]}, "maps must be among"),
        ({"maps": []}, "maps must name at least one"),
        ({"lengthscale": -1.0}, "lengthscale must be positive"),
        ({"time": 0}, "time must be positive"),
        ({"features_at_most": 0}, "features_at_most must be"),
        ({"num_clusters": 1}, "num_clusters must be"),
        ({"dtype": "float16"}, "dtype must be"),
        ({"target_kind": "class"}, "target_kind is for the goal prediction"),
        ({"goal": "clustering"}, "pass num_clusters"),
        ({"goal": "separation"}, "pass labels"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        certify(jax.random.key(0), np.eye(5, dtype="float32"), **options)


def test_a_median_distance_of_zero_is_refused():
    X = np.zeros((40, 2), "float32")
    X[:5] = np.random.default_rng(0).standard_normal((5, 2))
    with pytest.raises(ValueError, match="pass a lengthscale"):
        certify(jax.random.key(0), from_array(X))


def test_a_limit_of_features_leaves_maps_out():
    result = certificate_of(maps=["nystrom", "paired_fourier"], features_at_most=1)
    rows = {row.map: row for row in result.maps}
    assert rows["paired_fourier"].words == "it has more than 1 features"
    assert "No map with more than 1 features was tried." in result.reasons
