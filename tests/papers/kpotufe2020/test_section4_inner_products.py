"""The steps of the proof of Theorem 1 of kpotufe2020, and how sharp its bounds are."""

import jax
import pytest

from proofs_check.claim import Setting
from proofs_check.papers.kpotufe2020 import laws, section4_inner_products


@pytest.mark.parametrize(
    "chosen",
    [
        "jaxkern:prop1-explicit-rare",
        "kpotufe2020:prop1-rare",
        "kpotufe2020:lemB.2-rare",
    ],
)
def test_bounds_that_are_one_per_cent_smaller_fail_at_every_extreme_setting(
    claims, chosen
):
    for control in claims[chosen].controls:
        found = [control.statement.probability(setting) for setting in control.settings]
        assert found and all(violation > allowed for violation, allowed in found)


def test_the_bounds_of_6_in_both_norms_are_one_number_in_one_coordinate(x64):
    class OnALine:
        each = (Setting("line"),)

        def population_of(self, setting):
            return laws.two_groups("line", [[1.0], [-1.0]], [0.2, 0.8], [0, 1])

    form = section4_inner_products.eq6(OnALine()).printed
    pairs = form.statement.sides(jax.random.key(0), form.settings[0])[3::5]
    assert pairs and max(left for left, _ in pairs) > 0.01
    for left, right in pairs:
        assert left == pytest.approx(right.value, rel=1e-9)
