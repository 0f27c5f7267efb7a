"""What the papers share: how a check is made of one kind of statement."""

from functools import partial

from proofs_check.claim import Control, Identity, Setting
from proofs_check.papers.shared import check_of, wrong

HERE = (Setting("here"),)
THERE = (Setting("there"),)


def residual(n, power=1):
    return n**power


def test_controls_differ_from_the_form_that_holds_and_have_its_settings():
    other = Control("other", Identity(residual), THERE, "wrong law")
    check = check_of(
        partial(Identity, tolerance=7.0),
        HERE,
        wrong("a square", "wrong power", power=2),
        other,
        wrong("a sign", "wrong factor", lambda n: -n, settings=[]),
        printed=partial(residual, power=0),
        corrected=residual,
        printed_settings=THERE,
    )
    square, same, sign = check.controls
    assert same is other
    assert (square.name, square.kind) == ("a square", "wrong power")
    assert square.statement.tolerance == 7.0
    parts = (check.printed, check.corrected, square, sign)
    assert [part.statement.residual(4) for part in parts] == [1, 4, 16, -4]
    assert [part.settings for part in parts] == [THERE, HERE, HERE, ()]


def test_controls_differ_from_the_printed_form_if_there_is_no_other():
    square = wrong("a square", "wrong power", power=2)
    check = check_of(Identity, HERE, square, printed=partial(residual, power=3))
    assert check.corrected is None
    assert check.controls[0].statement.residual(4) == 16
