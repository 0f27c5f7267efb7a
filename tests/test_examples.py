"""The examples run as they are, and say what they should."""

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def test_a_certificate_for_a_real_table(capsys):
    space = runpy.run_path(str(EXAMPLES / "certificate.py"))
    shown = capsys.readouterr().out
    assert (space["folder"] / "certificate.html").exists()
    assert space["Z"].shape == (569, space["spectral"].num_features)
    # Failing with probability 5 %, more than 16 of 100 draws would fail with probability 7e-6.
    assert space["failures"] <= 16
    assert "left out: {'diagnosis'" in shown and "fresh draws failed" in shown
