"""Figure 3 of amini2021: what it computes on small sizes, and its shape at full size."""

from functools import partial

import jax
import numpy as np
import pytest

from proofs_check.papers.amini2021 import figure3 as module
from proofs_check.papers.amini2021 import scatter
from proofs_check.papers.amini2021.figure3 import METHODS, Sizes, figure3

SMALL = Sizes(points=60, replicates=2, restarts=2)


@pytest.mark.parametrize(
    ("noise", "draw"),
    [
        (1.5, partial(module._replicate, dim=3, radial=False, sizes=SMALL)),
        (0.7, partial(scatter._clustered, level=0.7, points=6, restarts=1)),
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
    both = figure3((300, 5), models=("radial",), sizes=SMALL)
    assert list(both) == [("radial", 300), ("radial", 5)]
    alone = figure3(
        (300,), models=("radial",), sizes=Sizes(points=60, replicates=1, restarts=2)
    )
    for scores in both.values():
        assert (
            scores.shape == (len(METHODS), 2)
            and ((scores >= 0) & (scores <= 1 + 1e-6)).all()
        )
    assert np.array_equal(alone["radial", 300][:, 0], both["radial", 300][:, 0])
    np.testing.assert_allclose(
        both["radial", 300][METHODS.index("pairwise distance")], 1, atol=1e-6
    )
    assert both["radial", 300][METHODS.index("Lloyd")].max() < 0.9


def test_unknown_models_are_named():
    with pytest.raises(ValueError, match="models"):
        figure3((5,), models=("lateral",))


@pytest.mark.slow
def test_all_three_kernels_are_consistent_as_the_dimension_grows():
    """n = 500, three replicates. The plateau and the gap between the noises are those of 12 replicates, with room."""
    dims = (2, 20, 100, 5000)
    found = figure3(dims, sizes=Sizes(replicates=3))
    one, two, distance, lloyd = range(len(METHODS))
    for model in module.MODELS:
        mean = {dim: found[model, dim].mean(axis=1) for dim in dims}
        assert (
            (mean[5000][:3] >= 0.97).all()
            and mean[20][distance] >= 0.99
            and mean[20][two] >= 0.95
        )
        assert (mean[2][:3] <= 0.75).all() and 0.6 <= mean[100][one] <= 0.7
        assert max(m[lloyd] for m in mean.values()) <= 0.35
