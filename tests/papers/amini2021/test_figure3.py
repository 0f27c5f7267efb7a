"""Figure 3 of amini2021: what it computes on small sizes, and its shape at full size."""

from functools import partial

import jax
import numpy as np
import pytest

from proofs_check.papers.amini2021 import figure1 as circles
from proofs_check.papers.amini2021 import figure3 as module
from proofs_check.papers.amini2021.figure3 import METHODS, SMALL, scores


@pytest.mark.parametrize(
    ("noise", "draw"),
    [
        (1.5, partial(module._replicate, dim=3, radial=False, sizes=SMALL)),
        (0.7, partial(circles.clustered, level=0.7, sizes=SMALL)),
    ],
)
def test_the_lengthscales_are_those_of_the_paper_and_follow_the_noise(
    noise, draw, monkeypatch
):
    seen = []

    def gram(kernel, points):
        raise StopIteration

    monkeypatch.setattr(module, "Gaussian", seen.append)
    monkeypatch.setattr(module, "gram", gram)
    with pytest.raises(StopIteration):
        draw(jax.random.key(0), dtype=np.float32)
    assert seen == [pytest.approx((alpha * (1 + noise**2)) ** 0.5) for alpha in (1, 2)]


@pytest.mark.slow
def test_a_replicate_depends_on_its_own_numbers_alone():
    """Distances are sharp in dimension 300: the pairwise distance finds the spheres of 60 points."""
    far = values_of("radial", 300, SMALL)
    alone = values_of("radial", 300, SMALL._replace(replicates=1))
    for table in (far, values_of("radial", 5, SMALL)):
        assert table.shape == (len(METHODS), 2)
        assert ((table >= 0) & (table <= 1 + 1e-6)).all()
    assert np.array_equal(alone[:, 0], far[:, 0])
    np.testing.assert_allclose(far[METHODS.index("pairwise distance")], 1, atol=1e-6)
    assert far[METHODS.index("Lloyd")].max() < 0.9


def values_of(model, dim, sizes):
    """Return the mutual informations, (methods, replicates)."""
    return np.array([row["values"] for row in scores(model, dim, sizes=sizes)])


@pytest.mark.slow
@pytest.mark.parametrize("model", module.MODELS)
def test_all_three_kernels_are_consistent_as_the_dimension_grows(model):
    """n = 500, three replicates. The plateau and the gap between the noises are those of 12 replicates, with room."""
    sizes = module.FULL._replace(replicates=3)
    means = {}
    for dim in (2, 20, 100, 5000):
        means[dim] = values_of(model, dim, sizes).mean(axis=1)
        assert means[dim][METHODS.index("Lloyd")] <= 0.35
    assert np.all(means[5000][:3] >= 0.97) and np.all(means[2][:3] <= 0.75)
    _, wide, distance, _ = means[20]
    assert distance >= 0.99 and wide >= 0.95
    assert 0.6 <= means[100][0] <= 0.7
