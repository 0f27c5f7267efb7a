"""The steps of the proof of Theorem 1 of kpotufe2020, and how sharp its bounds are."""

import jax
import pytest

from proofs_check.claim import Setting
from proofs_check.papers.kpotufe2020 import section4_inner_products, two_groups


@pytest.mark.parametrize(
    "name",
    [
        "jaxkern:prop1-explicit-rare",
        "kpotufe2020:prop1-rare",
        "kpotufe2020:lemB.2-rare",
    ],
)
def test_bounds_that_are_one_per_cent_smaller_fail_at_every_extreme_setting(
    claims, name
):
    for control in claims[name].controls:
        assert control.settings
        for setting in control.settings:
            violation, allowed = control.statement.probability(setting)
            assert violation > allowed, setting.name


@pytest.mark.float64
def test_the_bounds_of_6_in_both_norms_are_one_number_in_one_coordinate():
    law = two_groups.two_groups("line", [[1.0], [-1.0]], [0.2, 0.8], [0, 1])

    class OnALine:
        each = (Setting("line", law),)

    form = section4_inner_products.eq6(OnALine()).printed
    pairs = form.statement.sides(jax.random.key(0), law)[3::5]
    assert pairs and max(left for left, _ in pairs) > 0.01
    for left, right in pairs:
        assert left == pytest.approx(right.value, rel=1e-9)


def test_the_proof_for_every_constant_is_about_the_bound_of_theorem_1():
    flint = pytest.importorskip("flint")
    from proofs_check.engine.decided import bound
    from proofs_check.engine.enclosures import ball, precision
    from proofs_check.papers.kpotufe2020 import proofs

    formula = section4_inner_products.printed_for_orthogonal_atoms
    with precision(128):
        for constant in (2**-10, 0.5, 3, 10**6):  # few bits: n is exactly the least one
            C = ball(constant)
            right = bound(formula, p=1, tau=9 * C * C + 12, C=C)
            gap = abs(1 + right.value - proofs.threshold(C))
            assert right.valid and gap < flint.arb("1e-20")
